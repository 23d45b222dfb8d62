//! What happens to the state, as it happens: for a second state that takes the same changes.

use super::Change;

/// What a second state is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalEntry {
    /// This is about to become durable. After a crash it has happened, or it has not.
    Proposed(Vec<u8>),
    /// What was about to become durable was refused: it is not found after a crash.
    Refused(Vec<u8>),
    /// It has happened.
    Applied(Vec<u8>),
    /// A pool was found so on its drives, before this head wrote to them: as a change that brings it.
    Found(Vec<u8>),
}

/// Keeps entries until they are taken; nothing if nobody takes any.
#[derive(Default)]
pub(crate) struct Journal {
    entries: Option<Vec<JournalEntry>>,
}

impl Journal {
    /// One that somebody takes entries from.
    pub(crate) fn kept() -> Self {
        Self { entries: Some(vec![]) }
    }
    pub(in crate::steward) fn applied(&mut self, number: u64, change: &Change) {
        if let Some(entries) = &mut self.entries {
            entries.push(JournalEntry::Applied(change.encode(number)));
        }
    }
    pub(in crate::steward) fn proposed(&mut self, change: &Change) {
        if let Some(entries) = &mut self.entries {
            entries.push(JournalEntry::Proposed(change.encode(0)));
        }
    }
    pub(in crate::steward) fn refused(&mut self, change: &Change) {
        if let Some(entries) = &mut self.entries {
            entries.push(JournalEntry::Refused(change.encode(0)));
        }
    }
    pub(in crate::steward) fn found(&mut self, change: &Change) {
        if let Some(entries) = &mut self.entries {
            entries.push(JournalEntry::Found(change.encode(0)));
        }
    }
    /// What happened since the last call.
    pub(in crate::steward) fn take(&mut self) -> Vec<JournalEntry> {
        self.entries.as_mut().map(core::mem::take).unwrap_or_default()
    }
}
