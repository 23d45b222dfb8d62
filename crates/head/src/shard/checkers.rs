//! What a shard is at, for checkers and for worlds that move its bytes themselves.

use super::Shard;
use crate::admission::buffers::Buffers;
use crate::books::{ArrayOnShard, DriveBooks, FarBooks, ShardBooks};
use crate::layout::ArrayId;
use crate::path::far::FarLink;
use crate::path::link::{Connection, Front, Life, Link};
use array::Array;
use base::Memory;

/// Nothing that a far shard has sent by this connection waits, or has come in part.
fn takes_all(connection: &Connection) -> bool {
    match &connection.front {
        Front::Far(far) => far.is_idle() || connection.link.life == Life::Closed,
        Front::Nvme(_) | Front::Iscsi(_) => true,
    }
}

impl<M: Memory> Shard<M> {
    /// Nothing is under way: no request, flight, drive operation or buffer but those of connections
    /// and arrays themselves. For tests after quiescence.
    pub fn idle(&self) -> bool {
        self.under_way().is_empty()
    }
    /// Names of what is, for tests.
    pub fn under_way(&self) -> Vec<&'static str> {
        let core = &self.core;
        let all = [
            ("requests", core.requests.is_empty()),
            ("flights", core.flights.is_empty()),
            ("drive operations", core.has_no_ops()),
            ("timed commands", core.timing.is_idle()),
            ("turns", !core.turn.is_over_full()),
            ("arrays", core.arrays.iter().flatten().all(|a| a.array.idle())),
            ("queued requests", core.turns.is_empty()),
            ("parked commands", core.parked.is_empty()),
            ("early commands", core.early.is_empty()),
            ("waiting peers", core.peers.is_empty()),
            ("rate limiters", core.limiters.held_back() == 0),
            ("stranded requests", core.far_waits.is_empty()),
            ("far input", self.connections.iter().all(|(_, c)| takes_all(c))),
        ];
        all.into_iter().chain(core.far_idle_parts()).filter(|(_, idle)| !idle).map(|(what, _)| what).collect()
    }
    /// Bytes of buffers in use.
    pub fn buffers_used(&self) -> u64 {
        self.core.buffers.used()
    }
    /// Bytes of buffers that connections and arrays keep for themselves: all that is in use when idle.
    pub fn buffers_kept(&self) -> u64 {
        let open = self.connections.iter().filter(|(_, c)| c.link.life != Life::Closed);
        let rings = open.map(|(_, c)| c.link.outbox.ring()).filter(|s| s.len > 0);
        let scratch = self.core.arrays.iter().flatten().map(|a| a.scratch).filter(|s| s.len > 0);
        let kept = self.core.scratch.iter().chain(&self.core.single_scratch).copied();
        let granted = self.core.far.iter().chain(&self.core.far_left).flat_map(FarLink::runs).copied();
        rings.chain(scratch).chain(kept).chain(granted).map(|s| Buffers::footprint(s.len)).sum()
    }
    /// What it keeps account of.
    pub fn books(&self) -> ShardBooks {
        let core = &self.core;
        let (hosts_hold, connections_hold) = core.quota.held();
        let far_waits = core.far.iter().map(|link| link.waits.len()).sum::<usize>() + core.far_waits.len();
        let from_shards = core.parked.iter().chain(&core.early).chain(core.peers.iter().map(|(_, p)| p));
        let of_far = from_shards.filter(|p| p.shard >= core.shards);
        let drives =
            core.drives.iter().map(|d| DriveBooks { drive: d.drive, in_flight: d.in_flight, hung: d.hung });
        let arrays = core.arrays.iter().enumerate().filter_map(|(i, a)| Some((i, a.as_ref()?)));
        let arrays = arrays.map(|(i, state)| ArrayOnShard {
            id: ArrayId(i as u16),
            map: state.map,
            epoch: state.epoch,
            bereft: state.bereft,
            lacks_path: state.lacks_path || state.path_lost,
            busy: state.busy,
            waiting: state.waiters.waiting(),
            instance: state.array.books(),
        });
        ShardBooks {
            shard: core.id,
            promised: core.promised,
            tags: self.connections.iter().map(|(_, c)| c.link.tags.len() as u32).sum(),
            requests: core.requests.len(),
            flights: core.flights.len(),
            parked: core.parked.len() as u32,
            early: core.early.len() as u32,
            peers: core.peers.len(),
            of_far: of_far.count() as u32,
            turns: core.turns.len() as u32,
            far_waits: far_waits as u32,
            held_back: core.limiters.held_back(),
            drives: drives.collect(),
            hosts_hold,
            connections_hold,
            waiting: core.quota.waiting(),
            used: self.buffers_used(),
            kept: self.buffers_kept(),
            arrays: arrays.collect(),
            far: core.far.iter().map(|link| self.far_books(link)).collect(),
            far_left: core.far_left.iter().map(|link| self.far_books(link)).collect(),
            far_left_stale: core.far_left_stale,
        }
    }
    fn far_books(&self, far: &FarLink) -> FarBooks {
        let link = far.open.and_then(|index| self.connections.get(index)).map(|c| &c.link);
        let untaken =
            |link: &Link| link.staged.iter().map(|(data, taken)| u64::from(data.len - taken)).sum::<u64>();
        let granted = u64::from(far.granted_bytes());
        FarBooks {
            open: link.is_some_and(|link| link.life == Life::Open),
            credit: far.credit().into(),
            sent: far.sent_cost(),
            granted,
            in_use: granted - u64::from(far.free_bytes()),
            kept: self.core.kept_of(far),
            stale: far.stale,
            messages: far.out.len() as u32,
            unsent: link.map_or(0, |link| link.outbox.pending()),
            gone: link.map_or(0, |link| link.outbox.sent()),
            came: link.map_or(0, |link| link.came),
            untaken: link.map_or(0, untaken),
        }
    }
    /// For tests that are its connections.
    #[cfg(test)]
    pub(crate) fn core_mut(&mut self) -> &mut super::Core<M> {
        &mut self.core
    }
    /// Connections that exist.
    pub fn connections(&self) -> u32 {
        self.connections.len()
    }
    /// Access to the array machines, for checkers.
    pub fn arrays(&self) -> impl Iterator<Item = (ArrayId, &Array)> {
        let arrays = self.core.arrays.iter().enumerate();
        arrays.filter_map(|(i, a)| a.as_ref().map(|a| (ArrayId(i as u16), &a.array)))
    }
    /// The staging memory, for worlds that move bytes themselves.
    pub fn staging_mut(&mut self) -> &mut M {
        &mut self.staging
    }
}
