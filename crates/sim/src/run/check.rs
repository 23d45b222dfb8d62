//! What must be so at each moment and at the end of a run, and the words for a failure.

use super::{Harm, Options, Run, Stage};
use crate::disk::Disk;
use crate::host::Ledger;
use crate::registrants::Nexus;
use crate::volume::Broken;
use crate::world::{ActorId, Books};
use array::format::{LABEL_AT, Label, RECORD_BYTES, label_copy_at, newest_label};
use base::view::Protocol;
use base::{Duration, FaultKind, Instant};
use head::layout::ArrayId;
use head::order::{State, Status};
use std::cell::RefCell;
use std::rc::Rc;

/// Longest time that a command may take, whatever one leg does: promise 7, and the network's part.
const READ_MAX: Duration = Duration::from_millis(2100);
/// See `READ_MAX`.
pub(super) const WRITE_MAX: Duration = Duration::from_millis(5100);
/// What hosts wait beside that while arrays do not come to rest that are halted, once or twice.
const DEALT_MAX: Duration = Duration::from_millis(600);
/// What hosts that keep buffers may add to it: until they are cut off.
const SLOW_PEERS_MAX: Duration = Duration::from_secs(6);
/// Longest time that a command may take where memory is scarce: others' that a leg keeps for its deadline, and its own.
const SCARCE_MAX: Duration = Duration::from_secs(12);
/// The same where both legs of a mirror hang: hosts get a retry status, and lose no session.
const SCARCE_HUNG_MAX: Duration = Duration::from_secs(22);
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
/// A command to two heads has ended so long after all was well again, whatever it had to wait for before: where lanes are dealt anew, a
/// host comes anew, and what it sent waits for memory of the other head.
const ENDED: Duration = Duration::from_secs(12);
/// What a head reads after its last good look at the voters it passes on for so long, by a clock that is a fifth too slow.
const SIGHT_MAX: Duration = Duration::from_millis(1875);

// While hosts work.
impl Run {
    /// What the hosts have seen so far: only data that may be there, and no error without a cause. Nothing is new in their
    /// ledgers unless they have `seen` something.
    pub(super) fn check_hosts(&mut self, seen: bool) -> Result<(), String> {
        let now = self.world.now();
        self.orders.access.as_mut().map_or(Ok(()), |access| access.check(now))?;
        if !seen {
            return Ok(());
        }
        for (i, ledger) in self.hosts.ledgers.iter().enumerate() {
            let ledger = ledger.borrow();
            if let Some(broken) = ledger.broken.first() {
                return Err(describe(i, broken));
            }
            if let Some((kind, raw)) = ledger.refused.iter().find(|(kind, _)| !self.may_refuse(*kind)) {
                return Err(format!("status: host {i} got {kind:?} ({raw:#x}), for no reason"));
            }
            if let Some(most) = self.options.path_stall_most {
                let (by_all, by_one) = (ledger.longest_stall, ledger.longest_path_stall);
                if by_all.max(by_one) > most {
                    return Err(format!("stall: host {i} waited for {by_all:?}, and {by_one:?} by one path"));
                }
            }
        }
        let unready = |l: &Rc<RefCell<Ledger>>| core::mem::take(&mut l.borrow_mut().unready);
        if self.hosts.ledgers.iter().filter(|l| unready(l)).count() > 0 && self.is_calm() {
            return Err("status: a host got NotReady beside good legs".into());
        }
        Ok(())
    }
    /// A head alone has been up for long, no drive became ill or well of late, and every mirror has a good leg.
    fn is_calm(&self) -> bool {
        let ailed_at = self.harm.ailed_at;
        let booted = self.heads.each[0].booted;
        let since = |then: Instant| self.world.now().since(then);
        let up = if self.options.ill_max == 1 || self.harm.froze { UP } else { UP_LATE };
        let long_up = self.heads.lives == 1 || since(booted) > up;
        let patience = match (self.harm.pulled, self.options.seesaw) {
            (true, _) => REOPENED,
            // What one leg refused is answered when the other one, which hangs, has had its time.
            (false, true) => WRITE_MAX,
            (false, false) => RECOVERED,
        };
        // A loss that came before it was known that the state directory takes nothing waits until it does, whatever becomes
        // of the other legs meanwhile.
        let frozen = self.world.servers[0].frozen_at.is_some();
        let loss_not_on_record = self.harm.loss_not_on_record && frozen;
        let waits = loss_not_on_record || self.world.may_have_loss_not_on_record(ailed_at);
        let served = since(ailed_at) > patience && self.world.has_good_legs();
        // Whatever was on record: all drives are there, and have been for long.
        let whole = !frozen
            && self.world.disks.iter().all(|d| !d.faults.any())
            && since(ailed_at.max(booted)) > UP_LATE;
        !self.two() && long_up && !waits && !self.harm.stalls && (served || whole)
    }
    /// Whether anything is wrong that a command may wait for: with a drive, a path, a head, the link or a directory.
    fn is_unwell(&self) -> bool {
        let head = |server: usize| {
            let head = &self.heads.each[server];
            let stands = self.world.is_paused(server).is_some();
            let takes = self.world.servers[server].frozen_at.is_none();
            head.up && !head.out && !head.stopping && !stands && takes
        };
        let confirmed = self.heads.view.as_ref().is_some_and(|view| view.late.is_empty());
        let whole = (0..self.options.heads).all(head) && self.follower_has_all() && confirmed;
        !whole || !self.world.has_all_paths() || !self.world.networks_are_well() || !self.drives_are_well()
    }
    /// One rule for every host and path of two heads: a command ends within a time since it began, or since all was well again. Beside hosts
    /// whose own ways are silent, or from whom an operator takes what they log in by.
    pub(super) fn check_ages(&mut self) -> Result<(), String> {
        let now = self.world.now();
        if !self.two() || self.options.cut.is_some() || self.is_unwell() {
            self.harm.unwell_at = now;
        }
        let Harm { unwell_at, disturbed_at, ailed_at, held_until, stood_until, .. } = self.harm;
        let excused = [unwell_at, disturbed_at, ailed_at, held_until, stood_until, self.world.upset_at()];
        let excused = excused.into_iter().max().unwrap_or_default();
        if self.options.failover || self.harm.stalls || self.orders.access.is_some() {
            return Ok(());
        }
        for (i, ledger) in self.hosts.ledgers.iter().enumerate() {
            let Some(began) = ledger.borrow().oldest else { continue };
            let since = began.max(excused);
            if now > since + ENDED {
                return Err(format!(
                    "wait: a command of host {i} is under way since {} ms, and all is well since {} ms",
                    began.0 / 1_000_000,
                    excused.0 / 1_000_000
                ));
            }
        }
        Ok(())
    }
    /// What the drive checker shows, at this moment and beside what hosts were answered, if they have `seen` something.
    pub(super) fn check_surface(&mut self, seen: bool) -> Result<(), String> {
        let cut_off = self.world.take_cut_off();
        let silent = self.harm.stalls || self.options.failover;
        // What is left in silence changes with the links, and lasts too long by the clock alone.
        if seen || silent || !cut_off.is_empty() {
            self.check_ends(&cut_off, silent)?;
        }
        self.world.broken_at_surface().map_or(Ok(()), Err)
    }
    /// The drive checker hears what has ended for hosts.
    fn check_ends(&mut self, cut_off: &[ActorId], silent: bool) -> Result<(), String> {
        let up = (0..self.options.heads).any(|server| self.heads.each[server].up);
        for (i, (ledger, host)) in self.hosts.ledgers.iter().zip(&self.hosts.actors).enumerate() {
            let left = if silent { self.world.left_in_silence(*host) } else { None };
            ledger.borrow_mut().left_in_silence = left.is_some();
            // Promise 3: a keep-alive that expires ends the whole association.
            let since = left.map(|at| at.max(self.heads.each[0].booted));
            let ends = since.is_some_and(|at| self.world.now().since(at) > KEEP_ALIVE_ENDS);
            if ends && up && !self.two() && self.options.hosts[i] == Protocol::Nvme {
                return Err(format!(
                    "host {i} left a connection long ago, in silence, and the head has it still"
                ));
            }
            let over = core::mem::take(&mut ledger.borrow_mut().over);
            self.world.checker_over(over.into_iter());
            // What one of two heads has closed may still begin at the other one, until the host is let in again.
            if !self.two() && cut_off.contains(host) {
                let lost = core::mem::take(&mut ledger.borrow_mut().begun);
                self.world.checker_cut_off(lost.into_iter());
            }
            let lost = core::mem::take(&mut ledger.borrow_mut().let_in);
            if !lost.is_empty() {
                self.world.checker_let_in(*host, &lost);
            }
        }
        let answers = core::mem::take(&mut self.hosts.volume.borrow_mut().answers);
        if up && !answers.is_empty() {
            self.world.checker_answered(&answers);
        }
        Ok(())
    }
    /// Whether a command may end so in this world.
    fn may_refuse(&self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::Changed | FaultKind::Aborted | FaultKind::Miscompare => true,
            // A head that begins, or is out and has not heard of it, or a mirror without a leg to live on.
            FaultKind::NotReady => self.heads.lives > 1 || self.options.ill_max > 1,
            // A host that wants blocks forgotten where that is not offered.
            FaultKind::Unsupported => !self.options.deallocate_zeroes,
            // The last leg of a mirror refuses writes.
            FaultKind::Medium => self.options.pairs,
            FaultKind::NoVolume => self.orders.access.is_some(),
            FaultKind::OutOfRange
            | FaultKind::NoSpace
            | FaultKind::WriteProtected
            | FaultKind::Busy
            | FaultKind::Transport
            | FaultKind::Other => false,
        }
    }
    /// A head that takes over serves. A drive in sync that has not shut the other one out, whose process serves, may be read by that one for a
    /// time: until then no host's write may go to another leg of its mirror. A process that has begun since has nothing to pass on.
    pub(super) fn watch_takeover(&mut self, server: usize) {
        let other = 1 - server;
        // The leg of a drive that was ill may be out since, by a record of the head that led.
        let well = self.last_look.as_ref().is_some_and(|s| s.health == State::Optimal);
        let well = well && self.drives_are_well();
        let Some(led) = self.heads.each[server].led.filter(|_| well && self.heads.ready.contains(&other))
        else {
            return;
        };
        let reads = |d: &usize| self.world.has_path(other, *d) && self.world.disks[*d].is_in(other as Nexus);
        let drives = (0..self.world.disks.len()).filter(reads).collect();
        self.world.checker_takes_over(server, drives, led + SIGHT_MAX);
    }
    /// Nothing happens but that one head loses its paths to drives: the other one reaches them, so their legs stay in sync.
    pub(super) fn check_paths(&self, snapshot: &Status) -> Result<(), String> {
        if self.options.loses.is_none() || self.options.ails() {
            return Ok(());
        }
        let legs = snapshot.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
        match legs.into_iter().find(|l| l.state != State::Optimal) {
            Some(leg) => Err(format!("paths: {} is {:?}: {}", leg.path, leg.state, leg.reason)),
            None => Ok(()),
        }
    }
}

// At the end.
impl Run {
    /// Nothing is under way: of one head at all; of two at the head that leads, at shards of the other one, and between
    /// shards of both.
    pub(super) fn rests(&self) -> Result<(), String> {
        if !self.two() {
            return self.world.at_rest();
        }
        let Some(leader) = self.leader() else { return Err("nobody leads".into()) };
        self.world.heads_at_rest(|s| s == leader)?;
        if self.is_alone() {
            return Ok(());
        }
        self.world.shards_at_rest(1 - leader)?;
        self.world.far_links_at_rest(&[0, 1])
    }
    /// What heads keep account of adds up, and is the same as what the other one knows and what lies on drives and in both directories.
    pub(super) fn check_books(&mut self) -> Result<(), String> {
        let servers: Vec<usize> = match self.leader() {
            Some(leader) if self.is_alone() => vec![leader],
            _ => (0..self.options.heads).collect(),
        };
        self.world.check_books(&servers)?;
        let Some(leader) = self.leader() else { return Ok(()) };
        self.world.check_maps(leader, &servers)?;
        self.world.check_directories(leader)
    }
    /// Everything was answered in time, all drives are legs, and those in sync hold the same, byte for byte.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_times()?;
        self.check_waits()?;
        self.check_label()?;
        let arrays = self.last_look.iter().flat_map(|s| &s.pools).flat_map(|p| &p.arrays);
        let disk = |path: &str| self.world.disks.iter().position(|d| d.spec == path);
        let mut known = 0;
        for (id, array) in self.arrays().into_iter().zip(arrays) {
            let legs = array.legs.iter().filter_map(|l| Some((disk(&l.path)?, l.state)));
            let legs: Vec<(usize, State)> = legs.collect();
            known += legs.len();
            if legs.len() != array.legs.len() || legs.len() < self.options.legs.min(2) {
                return Err(format!("legs: drives {legs:?} are a mirror: {:?}", array.legs));
            }
            // One that is out, or copied to, lacks what others have.
            let in_sync = legs.iter().filter(|(_, state)| *state == State::Optimal).map(|(disk, _)| *disk);
            let in_sync: Vec<usize> = in_sync.collect();
            for pair in in_sync.windows(2) {
                self.check_legs(id, [pair[0], pair[1]])?;
            }
        }
        match self.world.disks.len() {
            all if known == all || self.options.moves > 0 => Ok(()),
            all => Err(format!("legs: {known} of {all} drives are legs")),
        }
    }
    /// A drive of which something was overwritten has both copies of its label.
    fn check_label(&self) -> Result<(), String> {
        let Some((disk, ..)) = self.harm.wiped else { return Ok(()) };
        let copies = label_copies(&self.world.disks[disk]).map(|bytes| Label::decode(&bytes).ok());
        let [first, second] = copies;
        if first.is_none() || first != second {
            return Err(format!("label: d{disk} has not both copies"));
        }
        Ok(())
    }
    /// Promise 7.
    fn check_times(&self) -> Result<(), String> {
        let Some((read_max, write_max)) = self.times_max() else { return Ok(()) };
        for (i, ledger) in self.hosts.ledgers.iter().enumerate() {
            let Ledger { slowest_read, slowest_write, lost, .. } = *ledger.borrow();
            if slowest_read > read_max || slowest_write > write_max || self.options.scarce && lost > 0 {
                return Err(format!(
                    "time: host {i} waited {slowest_read:?} for a read and {slowest_write:?} for a write, and lost {lost} \
                     commands with its sessions"
                ));
            }
        }
        Ok(())
    }
    /// Longest time that a read may take, and a write, where that is promised. While the head is down nobody
    /// answers, and when it is back there is much to do; links that keep bytes back make anything late; a
    /// mirror without a leg answers when it has one. Where the state directory froze nobody waits for it: a
    /// write whose loss can be put on record nowhere gets a retry status.
    fn times_max(&self) -> Option<(Duration, Duration)> {
        let Options { ill_max, scarce, tight, path_stall_most, .. } = self.options;
        if scarce {
            // Nobody waits for memory for long, though a leg keeps what it was given, and no session is given up.
            let most = if ill_max > 1 { SCARCE_HUNG_MAX } else { SCARCE_MAX };
            return Some((most, most));
        }
        let late = (self.heads.lives > 1 || ill_max > 1) && !self.harm.froze;
        let promised =
            if self.two() { path_stall_most.is_some() } else { !late && !self.harm.stalls && !tight };
        let slow_peers = if self.options.slow_peers.is_empty() { Duration::ZERO } else { SLOW_PEERS_MAX };
        let more = slow_peers + if self.options.deals.is_some() { DEALT_MAX } else { Duration::ZERO };
        promised.then_some((READ_MAX + more, WRITE_MAX + more))
    }
    /// Nothing went on for longer, or more often, than the options let it.
    fn check_waits(&self) -> Result<(), String> {
        let stalls = self.hosts.ledgers.iter().map(|l| l.borrow().longest_stall);
        let longest = stalls.max().unwrap_or_default();
        if let Some(most) = self.options.stall_most.filter(|most| longest > *most) {
            return Err(format!("a host waited for {longest:?}, longer than {most:?}"));
        }
        let outs = self.heads.outs;
        match self.options.outs_most.filter(|most| outs > *most) {
            Some(most) => Err(format!("heads were put out {outs} times, at most {most} may be")),
            None => Ok(()),
        }
    }
    /// The numbers of arrays at the head that leads, which its shards and those of the other one know them by, in the order of its pools.
    fn arrays(&self) -> Vec<ArrayId> {
        let books = self.leader().map_or(vec![], |leader| self.world.books_of(leader));
        let stewards = books.into_iter().filter_map(|books| match books {
            Books::Steward(books) => Some(books.arrays),
            Books::Shard(_) => None,
        });
        stewards.flatten().map(|array| array.id).collect()
    }
    /// Two legs in sync hold the same, region by region, whatever the bitmaps say, but for what rotted. Of two heads
    /// also but where whoever owns the region knows that it is unclean, or where a change is at a drive still, as it
    /// was given up.
    fn check_legs(&self, array: ArrayId, legs: [usize; 2]) -> Result<(), String> {
        let [a, b] = legs.map(|d| &self.world.disks[d]);
        let [one, other] = [label(a)?, label(b)?];
        let Label { data_at, data_bytes, region_bytes, .. } = one;
        if (data_at, data_bytes, region_bytes) != (other.data_at, other.data_bytes, other.region_bytes) {
            return Err(format!("legs: data of {} and {} lie elsewhere", a.spec, b.spec));
        }
        for sector in a.unlike(b, data_at, data_bytes, false) {
            let at = sector * a.sector;
            let moves = || {
                self.world.is_unclean(array, at - data_at)
                    || legs.into_iter().any(|d| self.world.changes_at(d, at, a.sector))
            };
            let excused = self.two() && moves() || self.has_rotted(legs, sector);
            if !excused {
                let region = (at - data_at) / region_bytes.max(1);
                return Err(format!(
                    "legs: {} and {} differ in region {region} of array {array}, at byte {at}",
                    a.spec, b.spec
                ));
            }
        }
        self.check_repaired(legs, (data_at, data_bytes))
    }
    /// Whether a block rotted in this sector of one of these legs, and nobody could know which of them is right.
    fn has_rotted(&self, legs: [usize; 2], sector: u64) -> bool {
        let unknown = |block| self.hosts.volume.borrow().is_rotten(block) && !self.orders.repair.knew(block);
        // What was overwritten came from the other leg since.
        let wiped = self.harm.wiped.is_some();
        !wiped && legs.into_iter().filter_map(|d| self.block_in(d, sector)).any(unknown)
    }
    /// What was repaired is what hosts wrote.
    fn check_repaired(&self, legs: [usize; 2], (at, len): (u64, u64)) -> Result<(), String> {
        if !self.orders.repair.is_over() {
            return Ok(());
        }
        let [a, b] = legs.map(|d| &self.world.disks[d]);
        let mut bytes = vec![0; a.sector as usize];
        for sector in a.sectors(at, len).into_iter().chain(b.sectors(at, len)) {
            a.read(sector * a.sector, &mut bytes);
            let mut blocks = legs.into_iter().filter_map(|d| self.block_in(d, sector));
            let repaired = blocks.find(|block| self.orders.repair.knew(*block));
            let wrong = |block: &u64| !self.hosts.volume.borrow().may_hold(*block, &bytes);
            if let Some(block) = repaired.filter(wrong) {
                return Err(format!("legs: block {block} was repaired, and holds {:?}", &bytes[..16]));
            }
        }
        Ok(())
    }

    /// What is not as it should be: heads, unfinished hosts, the reasons of the last `status`, and what heads said.
    pub(super) fn ills(&self) -> String {
        let mut lines = vec![format!("ready are {:?}; {:?}", self.heads.ready, self.heads.view)];
        let runs = |s| format!("server {s}: runs {}, {:?}", self.world.runs(s), self.world.is_paused(s));
        lines.extend((0..self.options.heads).map(runs));
        for (i, ledger) in self.hosts.ledgers.iter().enumerate() {
            let l = ledger.borrow();
            if !l.finished {
                lines.push(format!("host {i} has ended {} commands", l.good + l.failed + l.lost));
            }
        }
        if let Stage::Calming { .. } = self.stage {
            lines.extend(self.rests().err());
        }
        match &self.last_look {
            None => lines.push("no status was answered".into()),
            Some(s) => lines.extend(of_status(s)),
        }
        lines.extend(self.heads.said.iter().cloned());
        lines.iter().map(|l| format!("\n    {l}")).collect()
    }
}

fn of_status(s: &Status) -> Vec<String> {
    let mut lines = vec![format!("the system is {}", s.health.word())];
    lines.extend(s.reasons.iter().map(|r| format!("{}: {} {:?}", r.what, r.state.word(), r.cause)));
    for array in s.pools.iter().flat_map(|p| &p.arrays) {
        let legs = array.legs.iter().map(|l| format!("{} {} {}", l.path, l.state.word(), l.reason));
        let legs: Vec<_> = legs.collect();
        lines.push(format!("array, epoch {}: {legs:?}, resync {:?}", array.epoch, array.resync));
    }
    lines.extend(s.drives.iter().map(|d| {
        let state = d.state.map(State::word);
        format!("drive {} {:?} {state:?}: {}", d.path, d.role, d.reason)
    }));
    let events = s.events.iter().rev().take(12).rev();
    lines.extend(events.map(|e| format!("event: {}: {:?}", e.what, e.event)));
    lines
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

/// Both copies of a drive's label.
fn label_copies(disk: &Disk) -> [Vec<u8>; 2] {
    [LABEL_AT, label_copy_at(disk.bytes)].map(|at| {
        let mut label = vec![0; RECORD_BYTES];
        disk.read(at, &mut label);
        label
    })
}

/// The newer copy of a drive's label.
pub(super) fn label(disk: &Disk) -> Result<Label, String> {
    let [first, second] = label_copies(disk);
    newest_label(&first, &second).map_err(|_| format!("legs: {} has no label", disk.spec))
}
