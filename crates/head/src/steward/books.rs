//! What the Steward was told, for worlds that check whether it is true.
//!
//! Worlds ask for `contradiction`, `moment` and `partings` after each turn, so these build nothing where all is as it must be.

use super::Steward;
use crate::books::{ArrayAtSteward, StewardBooks, SystemBooks};

impl Steward {
    /// What it keeps of somebody who is none: figures of shards beyond those that take part, which count for whoever comes next.
    pub fn contradiction(&self) -> Option<String> {
        let context = self.procedures.context();
        let shards = context.shards();
        let wrong =
            |shard: &u16, what: &str| Some(format!("{what} of shard {shard}, and there are {shards}"));
        let beyond = |shard: &&u16| **shard >= shards;
        if context.applied.len() != usize::from(shards) {
            return wrong(&(context.applied.len() as u16), "configurations in force up to those");
        }
        for (what, all) in [("the halt", &context.halted), ("the rest", &context.quiesced)] {
            if let Some((array, shard)) = all.iter().find(|(_, shard)| *shard >= shards) {
                return wrong(shard, &format!("{what} of array {array}"));
            }
        }
        for a in context.pools.iter().flat_map(|p| &p.arrays) {
            let sets = [&a.clean, &a.marked, &a.cleared, &a.all_dirty].into_iter();
            let sets = sets.chain(a.legs.iter().flat_map(|leg| [&leg.synced, &leg.slow]));
            if let Some(shard) = sets.flatten().find(beyond) {
                return wrong(shard, &format!("what array {} was told", a.id));
            }
        }
        let pool = context.pools.iter().find(|p| p.shards > shards)?;
        wrong(&pool.shards, &format!("pool {}", pool.config().name))
    }
    /// A number that changes with the maps by which lanes are dealt, the arrays that there are and the shards that take part. None
    /// unless the head is ready and every shard has all of it in force.
    pub fn moment(&self) -> Option<u64> {
        let context = self.procedures.context();
        let all = context.ready && context.applied.iter().all(|g| *g >= context.generation);
        let arrays = context.pools.iter().flat_map(|p| &p.arrays);
        let fold = |sum: u64, n: u64| (sum ^ n).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        let maps = || arrays.fold(0, |sum, a| fold(fold(sum, a.id.0.into()), a.map.into()));
        all.then(|| fold(maps(), context.far_shards.into()))
    }
    /// The number of the last parting, and shards that have not parted yet.
    pub fn partings(&self) -> (u32, Vec<u16>) {
        let (_, partings, parting) = self.procedures.context().sessions.counts();
        (partings, parting)
    }
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
            let (sharing, has_not) = (s.is_sharing(), s.has_not().is_some());
            SystemBooks { sent, had, asked, let_go, confirmed, late, sharing, has_not }
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
