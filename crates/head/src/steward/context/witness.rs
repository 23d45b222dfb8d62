//! What lies in the state directory of a pool.

use array::format::{LegState, MembershipRecord};

/// So many records behind a witness proves nothing: it is neither the pool's record nor its parent.
pub(crate) const BEHIND: u32 = 2;

/// What lies in the state directory of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Witness {
    /// The record that was written last.
    Newest,
    /// Nothing.
    Gone,
    /// Perhaps an older one, which could neither be replaced nor removed.
    Older {
        /// Records that every leg in sync has taken since, not counting those that put a leg out.
        behind: u32,
    },
}

impl Witness {
    /// It proves no leg that is lost from now on, though nothing could be written.
    pub(crate) fn is_harmless(self) -> bool {
        match self {
            Self::Newest => false,
            Self::Gone => true,
            Self::Older { behind } => behind >= BEHIND,
        }
    }
    /// After a record that the directory did not take, and that all legs in sync have or not.
    pub(crate) fn missed(self, on_all: bool) -> Self {
        let more = u32::from(on_all);
        match self {
            Self::Newest => Self::Older { behind: more },
            Self::Gone => Self::Gone,
            Self::Older { behind } => Self::Older { behind: behind.saturating_add(more) },
        }
    }
}

/// Whether a record takes a leg out that was in sync.
pub(crate) fn puts_out(record: &MembershipRecord) -> bool {
    record.arrays.iter().flat_map(|a| &a.legs).any(|l| l.state == LegState::JustOut)
}
