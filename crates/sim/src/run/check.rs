//! Checks at the end of a run, and the words for a failure.

use super::{DEALT_MAX, READ_MAX, Run, SCARCE_HUNG_MAX, SCARCE_MAX, SLOW_PEERS_MAX, WRITE_MAX};
use crate::host::Ledger;
use crate::volume::Broken;
use array::format::{LABEL_AT, Label, RECORD_BYTES, label_copy_at};
use base::view::Protocol;
use base::{Duration, FaultKind, Instant};
use std::cell::RefCell;
use std::rc::Rc;

/// A mirror with a good leg serves again after this time, whatever happened to the others.
const RECOVERED: Duration = Duration::from_secs(3);
/// The same where drives are pulled: until somebody has looked at all drives, and has found the last leg again.
const REOPENED: Duration = Duration::from_secs(8);
/// What a host left in silence is over after: its keep-alive of 5 s, or the head's patience with a login, and a turn.
const KEEP_ALIVE_ENDS: Duration = Duration::from_secs(12);
/// A head that began so long ago has had the time to find its drives, though one hung.
const UP: Duration = Duration::from_secs(12);
/// The same where whole mirrors hung, which are looked for again at longer and longer intervals.
const UP_LATE: Duration = Duration::from_secs(60);
impl Run {
    /// What the hosts have seen so far: only data that may be there, and no error without a cause.
    pub(super) fn check_hosts(&mut self) -> Result<(), String> {
        let now = self.world.now();
        self.access.as_mut().map_or(Ok(()), |access| access.check(now))?;
        for (i, ledger) in self.ledgers.iter().enumerate() {
            let ledger = ledger.borrow();
            if let Some(broken) = ledger.broken.first() {
                return Err(describe(i, broken));
            }
            if let Some((kind, raw)) = ledger.refused.iter().find(|(kind, _)| !self.may_refuse(*kind)) {
                return Err(format!("status: host {i} got {kind:?} ({raw:#x}), for no reason"));
            }
        }
        let unready = |l: &Rc<RefCell<Ledger>>| core::mem::take(&mut l.borrow_mut().unready);
        if self.ledgers.iter().filter(|l| unready(l)).count() > 0 && self.is_calm() {
            return Err("status: a host got NotReady beside good legs".into());
        }
        Ok(())
    }
    /// The head has been up for long, no drive became ill or well of late, and every mirror has a good leg.
    fn is_calm(&self) -> bool {
        let since = |then: Instant| self.world.now().since(then);
        let up = if self.options.ill_max == 1 || self.froze { UP } else { UP_LATE };
        let long_up = self.lives == 1 || since(self.booted) > up;
        let patience = match (self.pulled, self.options.seesaw) {
            (true, _) => REOPENED,
            // What one leg refused is answered when the other one, which hangs, has had its time.
            (false, true) => WRITE_MAX,
            (false, false) => RECOVERED,
        };
        // A loss that came before it was known that the state directory takes nothing waits until it does, whatever becomes
        // of the other legs meanwhile.
        let loss_not_on_record = self.loss_not_on_record && self.world.servers[0].frozen_at.is_some();
        let waits = loss_not_on_record || self.world.may_have_loss_not_on_record(self.ailed_at);
        let served = since(self.ailed_at) > patience && self.world.has_good_legs();
        // Whatever was on record: all drives are there, and have been for long.
        let whole = self.world.servers[0].frozen_at.is_none()
            && self.world.disks.iter().all(|d| !d.faults.any())
            && since(self.ailed_at.max(self.booted)) > UP_LATE;
        long_up && !waits && !self.stalls && (served || whole)
    }
    /// What the drive_checker of the drives shows, at this moment and beside the answers of it.
    pub(super) fn check_surface(&mut self) -> Result<(), String> {
        let cut_off = self.world.take_cut_off();
        for (i, (ledger, host)) in self.ledgers.iter().zip(&self.hosts).enumerate() {
            let left = if self.stalls { self.world.left_in_silence(*host) } else { None };
            ledger.borrow_mut().left_in_silence = left.is_some();
            // Promise 3: a keep-alive that expires ends the whole association.
            if self.options.hosts.get(i) == Some(&Protocol::Nvme)
                && !self.down
                && left.is_some_and(|at| self.world.now().since(at.max(self.booted)) > KEEP_ALIVE_ENDS)
            {
                return Err(format!(
                    "host {i} left a connection long ago, in silence, and the head has it still"
                ));
            }
            let over = core::mem::take(&mut ledger.borrow_mut().over);
            self.world.checker_over(over.into_iter());
            if cut_off.contains(host) {
                let lost = core::mem::take(&mut ledger.borrow_mut().begun);
                self.world.checker_cut_off(lost.into_iter());
            }
            if !ledger.borrow().let_in.is_empty() {
                let lost = core::mem::take(&mut ledger.borrow_mut().let_in);
                self.world.checker_let_in(*host, &lost);
            }
        }
        let answers = core::mem::take(&mut self.volume.borrow_mut().answers);
        if !self.down && !answers.is_empty() {
            self.world.checker_answered(&answers);
        }
        self.world.broken_at_surface().map_or(Ok(()), Err)
    }
    /// Whether a command may end so in this world.
    fn may_refuse(&self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::Changed | FaultKind::Aborted | FaultKind::Miscompare => true,
            // A head that begins, or a mirror without a leg to live on.
            FaultKind::NotReady => self.lives > 1 || self.options.ill_max > 1,
            // A host that wants blocks forgotten where that is not offered.
            FaultKind::Unsupported => !self.options.deallocate_zeroes,
            // The last leg of a mirror refuses writes.
            FaultKind::Medium => self.options.pairs,
            FaultKind::NoVolume => self.access.is_some(),
            FaultKind::OutOfRange
            | FaultKind::NoSpace
            | FaultKind::WriteProtected
            | FaultKind::Busy
            | FaultKind::Transport
            | FaultKind::Other => false,
        }
    }

    /// Everything was answered in time, and legs hold the same, byte for byte.
    pub(super) fn check(&mut self) -> Result<(), String> {
        self.check_times()?;
        self.check_label()?;
        let arrays = self.last_look.iter().flat_map(|s| s.pools.iter().flat_map(|p| &p.arrays));
        let disk = |path: &str| self.world.disks.iter().position(|d| d.spec == path);
        for array in arrays {
            let legs: Vec<usize> = array.legs.iter().filter_map(|l| disk(&l.path)).collect();
            let whole = legs.len() == array.legs.len() && (legs.len() >= 2 || self.options.legs == 1);
            if !whole {
                return Err(format!("legs: drives {legs:?} are a mirror: {:?}", array.legs));
            }
            for leg in &legs[1..] {
                self.check_legs(legs[0], *leg)?;
            }
        }
        Ok(())
    }
    /// A drive of which something was overwritten has both copies of its label.
    fn check_label(&self) -> Result<(), String> {
        let Some((disk, ..)) = self.wiped else { return Ok(()) };
        let copies = [LABEL_AT, label_copy_at(self.world.disks[disk].bytes)].map(|at| {
            let mut bytes = vec![0; RECORD_BYTES];
            self.world.disks[disk].read(at, &mut bytes);
            Label::decode(&bytes).ok()
        });
        let [first, second] = copies;
        if first.is_none() || first != second {
            return Err(format!("label: d{disk} has not both copies"));
        }
        Ok(())
    }
    /// Promise 7. While the head is down nobody answers, and when it is back there is much to do; links
    /// that keep bytes back make anything late; a mirror without a leg answers when it has one; and who
    /// waits for memory waits as long as those whose memory a drive holds. Where the state directory froze nobody waits
    /// for it: a write whose loss can be put on record nowhere gets a retry status.
    fn check_times(&self) -> Result<(), String> {
        if self.options.scarce {
            return self.check_waits();
        }
        let late = self.lives > 1 || self.options.ill_max > 1;
        if late && !self.froze || self.stalls || self.options.tight {
            return Ok(());
        }
        let slow_peers = if self.options.slow_peers.is_empty() { Duration::ZERO } else { SLOW_PEERS_MAX };
        let more = slow_peers + if self.options.deals.is_some() { DEALT_MAX } else { Duration::ZERO };
        for (i, ledger) in self.ledgers.iter().enumerate() {
            let Ledger { slowest_read, slowest_write, .. } = *ledger.borrow();
            if slowest_read > READ_MAX + more || slowest_write > WRITE_MAX + more {
                return Err(format!(
                    "time: host {i} waited {slowest_read:?} for a read and {slowest_write:?} for a write"
                ));
            }
        }
        Ok(())
    }
    /// Nobody waits for memory for long, though a leg keeps what it was given, and no session is given up.
    fn check_waits(&self) -> Result<(), String> {
        let most = if self.options.ill_max > 1 { SCARCE_HUNG_MAX } else { SCARCE_MAX };
        for (i, ledger) in self.ledgers.iter().enumerate() {
            let Ledger { slowest_read, slowest_write, lost, .. } = *ledger.borrow();
            if slowest_read.max(slowest_write) > most || lost > 0 {
                return Err(format!(
                    "time: host {i} waited {slowest_read:?} for a read and {slowest_write:?} for a write, and lost {lost} \
                     commands with its sessions"
                ));
            }
        }
        Ok(())
    }
    fn check_legs(&self, first: usize, other: usize) -> Result<(), String> {
        let (at, len) = self.data_space(first).ok_or(format!("legs: d{first} has lost its label"))?;
        let (a, b) = (&self.world.disks[first], &self.world.disks[other]);
        let mut sectors = a.sectors(at, len);
        sectors.extend(b.sectors(at, len));
        let size = a.sector as usize;
        let (mut x, mut y) = (vec![0; size], vec![0; size]);
        for sector in sectors {
            a.read(sector * a.sector, &mut x);
            b.read(sector * b.sector, &mut y);
            let named = || [first, other].into_iter().filter_map(|d| self.block_in(d, sector));
            let unknown = |block| self.volume.borrow().is_rotten(block) && !self.repair.knew(block);
            // What was overwritten came from the other leg since.
            let rotten = || self.wiped.is_none() && named().any(unknown);
            if x != y && !rotten() {
                return Err(format!(
                    "legs: d{first} and d{other} differ at byte {} of the array: {:?} and {:?}",
                    sector * a.sector - at,
                    &x[..16],
                    &y[..16]
                ));
            }
            let repaired = named().find(|block| self.repair.knew(*block));
            if let Some(block) = repaired.filter(|block| !self.volume.borrow().may_hold(*block, &x)) {
                return Err(format!("legs: block {block} was repaired, and holds {:?}", &x[..16]));
            }
        }
        Ok(())
    }

    /// What is not as it should be: unfinished hosts, and the reasons of the last `status`.
    pub(super) fn ills(&self) -> String {
        let mut lines = vec![];
        for (i, ledger) in self.ledgers.iter().enumerate() {
            let l = ledger.borrow();
            if !l.finished {
                lines.push(format!("host {i} has ended {} commands", l.good + l.failed + l.lost));
            }
        }
        if !self.restless.is_empty() {
            lines.push(self.restless.clone());
        }
        match &self.last_look {
            None => lines.push("no status was answered".into()),
            Some(s) => {
                lines.push(format!("the system is {}", s.health.word()));
                lines.extend(
                    s.reasons.iter().map(|r| format!("{}: {} {:?}", r.what, r.state.word(), r.cause)),
                );
                for array in s.pools.iter().flat_map(|p| &p.arrays) {
                    let legs: Vec<_> = array
                        .legs
                        .iter()
                        .map(|l| format!("{} {} {}", l.path, l.state.word(), l.reason))
                        .collect();
                    lines.push(format!("array, epoch {}: {legs:?}, resync {:?}", array.epoch, array.resync));
                }
                let drives = s.drives.iter().map(|d| {
                    format!(
                        "drive {} {:?} {:?}: {}",
                        d.path,
                        d.role,
                        d.state.map(head::order::State::word),
                        d.reason
                    )
                });
                lines.extend(drives);
                lines.extend(
                    s.events.iter().rev().take(12).rev().map(|e| format!("event: {}: {:?}", e.what, e.event)),
                );
            }
        }
        lines.iter().map(|l| format!("\n    {l}")).collect()
    }
}

fn describe(host: usize, broken: &Broken) -> String {
    match broken {
        Broken::Stale { block, what } => {
            format!(
                "data: host {host} read write {} in block {block}; allowed were {:?}",
                what.found, what.allowed
            )
        }
        Broken::Garbled { block, head } => {
            format!("data: host {host} read {head:?} in block {block}, which is no stamp of it")
        }
        Broken::Miscompared { at } => {
            format!("data: host {host} compared block {at} with the only thing it may hold, and it differed")
        }
    }
}
