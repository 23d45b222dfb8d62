//! What the Steward was told, for worlds that check whether it is true.
//!
//! Worlds ask for `stray`, `moment` and `partings` after each turn, so these build nothing where all is as it must be.

use super::Steward;
use crate::books::{ArrayAtSteward, StewardBooks, SystemBooks};
use crate::steward::context::array::ArrayContext;
use std::collections::BTreeSet;

impl Steward {
    /// What it keeps of somebody who is none: a figure of a shard beyond those that take part, which counts for whoever comes next. What it is
    /// of, the first such shard, and how many take part.
    pub fn stray(&self) -> Option<(&'static str, u16, u16)> {
        let context = self.procedures.context();
        let shards = context.shards();
        let beyond = |shard: &u16| *shard >= shards;
        let found = |what: &'static str, shard: Option<u16>| shard.map(|shard| (what, shard, shards));
        let arrays = || context.pools.iter().flat_map(|p| &p.arrays);
        let of = |set: fn(&ArrayContext) -> &BTreeSet<u16>| arrays().flat_map(set).copied().find(beyond);
        let legs = || arrays().flat_map(|a| &a.legs);
        let applied = context.applied.len();
        found("applied", (applied != usize::from(shards)).then_some(applied as u16))
            .or_else(|| found("halted", context.halted.iter().map(|(_, shard)| *shard).find(beyond)))
            .or_else(|| found("quiesced", context.quiesced.iter().map(|(_, shard)| *shard).find(beyond)))
            .or_else(|| found("clean", of(|a| &a.clean)))
            .or_else(|| found("marked", of(|a| &a.marked)))
            .or_else(|| found("cleared", of(|a| &a.cleared)))
            .or_else(|| found("all dirty", of(|a| &a.all_dirty)))
            .or_else(|| found("synced", legs().flat_map(|leg| &leg.synced).copied().find(beyond)))
            .or_else(|| found("slow", legs().flat_map(|leg| &leg.slow).copied().find(beyond)))
            .or_else(|| found("pool", context.pools.iter().map(|p| p.shards).find(|known| *known > shards)))
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
