//! Whether something may go wrong now. Promises have conditions, and this is where worlds keep them: whoever picks a
//! fault asks here.

use crate::moves;
use crate::run::Run;
use head::order::{Order, State};

impl Run {
    /// Whether this drive may fall ill. With one ill drive at a time every mirror has a good leg, and a command meets
    /// one ill leg, not two in a row.
    pub(super) fn may_ail(&mut self, disk: usize) -> bool {
        let ill = self.world.disks.iter().filter(|d| d.faults.any()).count();
        let may = match self.options.ill_max {
            1 => {
                let (last, until) = self.harm.convalescent;
                ill == 0 && (disk == last || until < self.world.now()) && self.all_well()
            }
            most => ill < most,
        };
        may && !self.world.disks[disk].faults.any()
    }
    /// Whether a head may lose its path to a drive: both heads reach all, and each leg is in sync.
    pub(super) fn may_lose_path(&self) -> bool {
        let well = self.last_look.as_ref().is_some_and(|s| s.health == State::Optimal);
        well && self.world.has_all_paths()
    }
    /// Whether a head may lose its paths to all drives: the other one reaches each of them.
    pub(super) fn may_lose_all_paths(&self) -> bool {
        self.world.has_all_paths()
    }
    /// Whether every leg was in sync when last looked at; asks for a new look.
    fn all_well(&mut self) -> bool {
        let moving = self.orders.moving;
        let well = self.snapshot.take().is_some_and(|s| {
            if self.options.moves > 0 {
                // While a drive takes another's place, the old one serves.
                !moving && moves::redundant(&s)
            } else {
                s.health == State::Optimal
            }
        });
        if self.orders.queue.is_empty() {
            self.orders.queue.push_back(Order::Status);
        }
        well
    }
}
