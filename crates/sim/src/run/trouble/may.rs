//! Whether something may go wrong now. Promises have conditions, and this is where worlds keep them: whoever picks
//! a fault asks here.

use crate::moves;
use crate::run::{NOTICED, Run};
use crate::world::Server;
use base::Instant;
use head::order::{Order, State};

/// Ends that wait for a head, at most.
const DOOMS_MAX: usize = 3;

impl Run {
    /// Whether this drive may fall ill. With one ill drive at a time every mirror has a good leg, and a command
    /// meets one ill leg, not two in a row.
    pub(super) fn may_ail(&mut self, disk: usize) -> bool {
        if self.two() {
            return self.may_ail_for_two(Some(disk));
        }
        let ill = self.world.disks.iter().filter(|d| d.faults.any()).count();
        let may = match self.options.ill_max {
            1 => {
                let (last, until) = self.harm.convalescent;
                ill == 0 && (Some(disk) == last || until < self.world.now()) && self.all_well()
            }
            most => ill < most,
        };
        may && !self.world.disks[disk].faults.any()
    }
    /// The same of drives that two heads share. Legs are also lost where a path is, or where a drive does not
    /// confirm that a head is shut off; and who leads may not know yet, as it stood still, or came to lead since.
    fn may_ail_for_two(&self, disk: Option<usize>) -> bool {
        let now = self.world.now();
        let (last, until) = self.harm.convalescent;
        let again = disk.is_some() && disk == last;
        let noticed = again || !self.harm.ailed || until.max(self.harm.stood_until + NOTICED) < now;
        let well = self.harm.well_at > self.harm.disturbed_at.max(self.harm.held_until);
        let ill = self.world.disks.iter().any(|d| d.faults.any());
        noticed && well && !ill && self.world.has_all_paths()
    }
    /// Whether all drives may lose their power alone: power goes once, beside nothing else (promise 1).
    pub(super) fn may_lose_power(&self) -> bool {
        self.may_ail_for_two(None)
    }
    /// Whether a leg may have lost its cache without anybody's notice: what was not flushed may be lost if a head
    /// falls, too (promise 1). Who stands still notices nothing.
    pub(in crate::run) fn may_lack_cache(&self) -> bool {
        let until = self.harm.drained_until;
        let stood = self.two() && until > Instant(0);
        let until = if stood { until.max(self.harm.stood_until + NOTICED) } else { until };
        self.world.now() < until
    }
    /// Whether the head of a server may have one more end: one that always ends as it begins teaches nothing.
    pub(super) fn may_doom(&self, server: usize) -> bool {
        self.world.dooms(server) < DOOMS_MAX
    }
    /// No drive is ill, or was of late.
    pub(in crate::run) fn drives_are_well(&self) -> bool {
        let ill = self.world.disks.iter().any(|d| d.faults.any());
        !ill && self.harm.convalescent.1 < self.world.now()
    }
    /// Whether a head may lose its path to a drive: both heads reach all, and each leg is in sync.
    pub(super) fn may_lose_path(&self) -> bool {
        let well = self.last_look.as_ref().is_some_and(|s| s.health == State::Optimal);
        well && self.may_lose_all_paths()
    }
    /// Whether a head may lose its paths to all drives: the other one reaches each, and they are well.
    pub(super) fn may_lose_all_paths(&self) -> bool {
        self.world.has_all_paths() && self.drives_are_well()
    }
    /// Whether the state directory of a server may be another one when its head begins: the other one leads, so that
    /// nothing is there alone, and the drives that vote are well.
    pub(super) fn may_exchange_directory(&self, server: usize) -> bool {
        let other = 1 - server;
        let takes = |s: &Server| s.frozen_at.is_none() && s.refuses.is_empty();
        let leads = self.leader() == Some(other) && self.world.is_paused(other).is_none();
        leads && takes(&self.world.servers[other]) && self.may_lose_all_paths()
    }
    /// Whether drives may shut nobody out for a time: a takeover may put their legs out, and the others are to be
    /// well.
    pub(super) fn may_hold_fences(&self) -> bool {
        self.drives_are_well()
    }
    /// Whether an operator may give up drives: nobody does beside one that is ill.
    pub(in crate::run) fn may_move_drives(&self) -> bool {
        if self.two() { self.may_ail_for_two(None) } else { self.drives_are_well() }
    }
    /// Whether the head that follows may leave: the one that leads has all, and drives confirm that the other one is gone.
    pub(super) fn may_leave(&self) -> bool {
        self.follower_has_all() && self.may_lose_all_paths() && self.harm.foreign.is_none()
    }
    /// Whether drives may lose the keys of heads with their power: both heads are in, so that none is kept from them
    /// by a key.
    pub(super) fn may_lose_keys(&self) -> bool {
        let lives =
            |s: usize| self.world.runs(s) && self.world.is_paused(s).is_none() && !self.heads.each[s].out;
        !self.options.forgets_keys || self.follower_has_all() && lives(0) && lives(1)
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
