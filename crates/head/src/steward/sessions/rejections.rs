//! Rejections: one line at once, then a count for each interval, however many come.
//!
//! A host with a wrong secret tries again for ever, and a scanner tries everything: neither may fill the
//! event log. What is kept is bounded: `KINDS_MAX` kinds (address, name, reason) in an interval, all others
//! as one count. An interval in which somebody goes on is followed by one twice as long, up to an hour.

use base::{Duration, Instant};
use core::net::{IpAddr, SocketAddr};
use finding::{HostEvent, LoginFate};

/// The first interval.
const INTERVAL_MIN: Duration = Duration::from_secs(60);
/// The longest one.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// Kinds that are told apart in one interval.
const KINDS_MAX: usize = 20;
/// Characters of a name that are told: an iSCSI or NVMe name has at most 223.
const NAME_MAX: usize = 223;

struct Kind {
    address: IpAddr,
    name: String,
    fate: LoginFate,
    /// Times since it was told last.
    more: u64,
}

/// Rejections of this interval.
#[derive(Default)]
pub(crate) struct Rejections {
    kinds: Vec<Kind>,
    /// Beyond `KINDS_MAX`.
    others: u64,
    interval: Option<(Instant, Duration)>,
}

impl Rejections {
    /// What became of somebody, and why. An event if it is to be reported now.
    pub fn on_rejection(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        name: &str,
        fate: LoginFate,
    ) -> Option<HostEvent> {
        let name = printable(name);
        self.interval.get_or_insert((now + INTERVAL_MIN, INTERVAL_MIN));
        let same = |k: &&mut Kind| k.address == peer.ip() && k.name == name && k.fate == fate;
        if let Some(kind) = self.kinds.iter_mut().find(same) {
            kind.more += 1;
            return None;
        }
        if self.kinds.len() >= KINDS_MAX {
            self.others += 1;
            return None;
        }
        let event = HostEvent::Rejected { name: name.clone(), address: peer.to_string(), fate: fate.clone() };
        self.kinds.push(Kind { address: peer.ip(), name, fate, more: 0 });
        Some(event)
    }
    /// When `on_timer` is to be called.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.interval.map(|(end, _)| end)
    }
    /// The interval is over: events to be reported.
    pub fn on_timer(&mut self, now: Instant) -> Vec<HostEvent> {
        let Some((_, length)) = self.interval.filter(|(end, _)| *end <= now) else { return vec![] };
        let seconds = length.as_secs();
        let mut out = vec![];
        self.kinds.retain(|k| k.more > 0);
        for k in &mut self.kinds {
            out.push(HostEvent::RejectedAgain {
                name: k.name.clone(),
                address: k.address.to_string(),
                fate: k.fate.clone(),
                times: k.more,
                seconds,
            });
            k.more = 0;
        }
        if self.others > 0 {
            out.push(HostEvent::OthersRejected { times: self.others, seconds });
            self.others = 0;
        }
        let next = (length + length).min(INTERVAL_MAX);
        self.interval = (!out.is_empty()).then_some((now + next, next));
        out
    }
}

/// The name that an unknown peer gives, fit for a log.
fn printable(name: &str) -> String {
    name.chars().take(NAME_MAX).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{ConnectionFault, IscsiFault, NvmeFault};

    fn peer(n: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, n], port))
    }
    fn at(seconds: u64) -> Instant {
        Instant(seconds * 1_000_000_000)
    }
    fn rejected(why: impl Into<ConnectionFault>) -> LoginFate {
        LoginFate::Rejected { why: why.into() }
    }

    #[test]
    fn a_login_loop_is_one_line_and_then_a_count_for_each_longer_interval() {
        let mut t = Rejections::default();
        let mut told = vec![];
        for i in 0..3600u64 * 1000 {
            let now = Instant(i * 1_000_000);
            let fate = rejected(IscsiFault::SecretWrong);
            told.extend(t.on_rejection(now, peer(1, i as u16), "iqn.2026-01.test:a", fate));
            if t.next_deadline().is_some_and(|d| d <= now) {
                told.extend(t.on_timer(now));
            }
        }
        let (name, fate) = ("iqn.2026-01.test:a".to_string(), rejected(IscsiFault::SecretWrong));
        let first =
            HostEvent::Rejected { name: name.clone(), address: "10.0.0.1:0".into(), fate: fate.clone() };
        assert_eq!(told[0], first);
        let again =
            HostEvent::RejectedAgain { name, address: "10.0.0.1".into(), fate, times: 60_000, seconds: 60 };
        assert_eq!(told[1], again);
        assert_eq!(told.len(), 6, "after 1, 3, 7, 15 and 31 minutes: {told:?}");
    }

    #[test]
    fn each_kind_is_told_at_once_and_too_many_kinds_are_one_count() {
        let mut t = Rejections::default();
        let told: Vec<HostEvent> = (0..1000)
            .filter_map(|i| {
                t.on_rejection(at(1), peer(1, 1), &format!("name{i}"), rejected(NvmeFault::NqnUnknown))
            })
            .collect();
        assert_eq!(told.len(), KINDS_MAX);
        assert_eq!(t.on_timer(at(60)), [], "not yet");
        assert_eq!(t.on_timer(at(61)), [HostEvent::OthersRejected { times: 980, seconds: 60 }]);
        assert!(
            t.on_rejection(at(62), peer(1, 1), "name0", rejected(NvmeFault::NqnUnknown)).is_some(),
            "a quiet kind is new again"
        );
    }

    #[test]
    fn it_comes_to_rest_and_the_next_interval_is_short_again() {
        let mut t = Rejections::default();
        let told = t.on_rejection(at(0), peer(1, 1), "", rejected(NvmeFault::PduType)).expect("told");
        assert!(
            matches!(told, HostEvent::Rejected { name, address, .. } if name.is_empty() && address == "10.0.0.1:1")
        );
        assert!(t.on_timer(at(60)).is_empty());
        assert_eq!(t.next_deadline(), None);
        assert!(t.on_rejection(at(100), peer(1, 2), "", rejected(NvmeFault::PduType)).is_some());
        assert_eq!(t.next_deadline(), Some(at(160)));
    }

    #[test]
    fn a_name_cannot_forge_lines() {
        let mut t = Rejections::default();
        let mut name_of =
            |name: &str| match t.on_rejection(at(0), peer(1, 1), name, rejected(NvmeFault::NqnUnknown)) {
                Some(HostEvent::Rejected { name, .. }) => name,
                other => panic!("{other:?}"),
            };
        assert_eq!(name_of("a\nb\t\u{1b}[31m\u{e4}"), "a?b??[31m?");
        assert_eq!(name_of(&"n".repeat(100_000)).len(), NAME_MAX);
    }
}
