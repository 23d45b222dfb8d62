//! Words about the link of two heads: why the other head is refused.

use cluster::link::{Fault, VERSION, VERSION_MIN};

/// Why a network of the link is closed.
pub fn link_fault(why: Fault) -> String {
    match why {
        Fault::Garbage => "what came is not what a head sends".into(),
        Fault::OtherSystem => "the other head is of another system".into(),
        Fault::SameHead => "the other head says that it is this one".into(),
        Fault::FormerLife => "the other head's process has ended, and another one is there".into(),
        Fault::Version(oldest, newest) => format!(
            "the other head speaks {} of the link, and this one {}",
            versions(oldest, newest),
            versions(VERSION_MIN, VERSION)
        ),
    }
}

/// What helps.
pub fn link_next(why: Fault) -> String {
    match why {
        Fault::Garbage | Fault::FormerLife => "millrace head ls, in a moment".into(),
        Fault::OtherSystem => "millrace system leave --force on the head that is not of this system, then \
                               millrace system join there"
            .into(),
        Fault::SameHead => {
            "put the state directory of that head back from a backup of its own: it has a copy \
                            of this head's"
                .into()
        }
        Fault::Version(_, newest) if newest < VERSION_MIN => format!(
            "update Millrace on the other head to a release that speaks version {VERSION_MIN} of the link"
        ),
        Fault::Version(oldest, _) => {
            format!("update Millrace on this head to a release that speaks version {oldest} of the link")
        }
    }
}

fn versions(oldest: u16, newest: u16) -> String {
    if oldest == newest { format!("version {newest}") } else { format!("versions {oldest} to {newest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_head_learns_which_versions_the_other_has_and_which_one_is_to_be_updated() {
        let (newer, older) = (Fault::Version(2, 3), Fault::Version(0, 0));
        assert_eq!(
            link_fault(newer),
            "the other head speaks versions 2 to 3 of the link, and this one version 1"
        );
        assert_eq!(
            link_next(newer),
            "update Millrace on this head to a release that speaks version 2 of the link"
        );
        assert_eq!(link_fault(older), "the other head speaks version 0 of the link, and this one version 1");
        assert_eq!(
            link_next(older),
            "update Millrace on the other head to a release that speaks version 1 of the link"
        );
    }
}
