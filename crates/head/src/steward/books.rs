//! What the Steward was told, for worlds that check whether it is true.

use super::Steward;
use crate::books::{ArrayAtSteward, StewardBooks, SystemBooks};

impl Steward {
    /// What it keeps account of.
    pub fn books(&self) -> StewardBooks {
        let context = self.procedures.context();
        let (waiting, partings, parting) = context.sessions.counts();
        let rooms =
            context.rooms.iter().map(|told| told.map(|(room, most)| (room.mirrors, room.singles, most)));
        let arrays = context.pools.iter().flat_map(|p| &p.arrays).map(|a| ArrayAtSteward {
            id: a.id,
            map: a.map,
            clean: a.clean.clone(),
            marks: a.marks,
            marked: a.marked.clone(),
            cleared: a.cleared.clone(),
            all_dirty_number: a.all_dirty_number,
            all_dirty: a.all_dirty.clone(),
            synced: a.legs.iter().map(|leg| leg.synced.clone()).collect(),
        });
        let system = context.system.as_ref().map(|s| {
            let ((sent, had), (asked, let_go)) = (s.files_sent(), s.far().questions());
            let (confirmed, late) = s.confirmations();
            SystemBooks { sent, had, asked, let_go, confirmed, late, sharing: s.is_sharing() }
        });
        StewardBooks {
            ready: context.ready,
            generation: context.generation,
            applied: context.applied.clone(),
            halted: context.halted.clone(),
            quiesced: context.quiesced.clone(),
            rooms: rooms.collect(),
            promised: (context.promised.mirrors, context.promised.singles),
            meeting: context.meeting,
            far_met: context.far_met.clone(),
            arrays: arrays.collect(),
            system,
            waiting,
            parting,
            partings,
            filing: context.filing,
            dealing: context.pools.iter().any(|p| p.dealing),
        }
    }
}
