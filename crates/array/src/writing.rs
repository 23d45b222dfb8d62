//! The write of one block to all legs, of the bitmap or of the uncleared map.

use crate::flight::{Legs, bit};
use base::DriveError;

/// A block under way to the legs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    pub(crate) pending: u8,
    /// Given-up writes on a leg that stays in use: the next write may not overtake them.
    pub(crate) late: u8,
    /// Legs that have it.
    pub(crate) took: Legs,
    pub(crate) refused: Option<DriveError>,
    /// It was begun after everything was marked.
    pub(crate) marks: bool,
}

impl Writing {
    /// A write to these legs begins.
    pub(crate) fn begun(targets: Legs, marks: bool) -> Self {
        Self { pending: targets.count_ones() as u8, late: 0, took: targets, refused: None, marks }
    }
    /// It ended on one leg; `refused`: that leg stays in use. Whether it is still waited for although it was given up.
    pub(crate) fn ended(&mut self, leg: usize, result: Result<(), DriveError>, refused: bool) -> bool {
        self.pending -= 1;
        let Err(error) = result else { return false };
        self.took &= !bit(leg);
        if !refused {
            return false;
        }
        self.refused = Some(error);
        let keeps = error == DriveError::TimedOut;
        self.late += u8::from(keeps);
        keeps
    }
}
