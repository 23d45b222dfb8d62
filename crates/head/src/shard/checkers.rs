//! What a shard is at, for checkers and for worlds that move its bytes themselves.

use super::Shard;
use crate::admission::buffers::Buffers;
use crate::layout::ArrayId;
use crate::path::far::FarLink;
use crate::path::link::{Connection, Front, Life};
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
