//! Checks of two heads.

use super::{Options, Run};
use crate::disk::Disk;
use crate::registrants::Nexus;
use crate::run::{Outcome, READ_MAX, WRITE_MAX};
use crate::volume::Broken;
use crate::world::Books;
use array::format::{LABEL_AT, Label, RECORD_BYTES, label_copy_at, newest_label};
use base::{Duration, FaultKind};
use head::layout::ArrayId;
use head::order::{Order, State, Status};
use std::collections::BTreeMap;

/// What operators have ordered, and what of it is certain: it was answered, and is so after every takeover.
#[derive(Default)]
pub(super) struct Ordered(BTreeMap<String, Option<bool>>);

fn means(order: &Order) -> Option<(String, bool)> {
    Some(match order {
        Order::VolumeCreate { pool, name, .. } => (format!("volume {pool}/{name}"), true),
        Order::VolumeRemove { volume, .. } => (format!("volume {volume}"), false),
        Order::HostAdd { name, .. } => (format!("host {name}"), true),
        Order::HostRemove { name, .. } => (format!("host {name}"), false),
        Order::PortalAdd { address, .. } => (format!("portal {address}"), true),
        _ => return None,
    })
}

impl Ordered {
    /// It may be so from now on.
    pub fn is_asked(&mut self, order: &Order) {
        self.is_unknown(order);
    }
    /// It was answered with success.
    pub fn is_done(&mut self, order: &Order) {
        if let Some((name, is)) = means(order) {
            self.0.insert(name, Some(is));
        }
    }
    /// It may be so, or not.
    pub fn is_unknown(&mut self, order: &Order) {
        if let Some((name, _)) = means(order) {
            self.0.insert(name, None);
        }
    }
    /// Whether the head that leads knows all that is certain.
    pub fn verdict(&self, snapshot: &Status) -> Result<(), String> {
        if snapshot.pools.is_empty() {
            return Ok(());
        }
        for (name, is) in &self.0 {
            let there = match name.split_once(' ') {
                Some(("volume", v)) => snapshot.volumes.iter().any(|x| x.name == v),
                Some(("host", h)) => snapshot.hosts.iter().any(|x| x.name == h),
                Some((_, p)) => snapshot.portals.iter().any(|x| x.address.to_string() == p),
                None => continue,
            };
            if is.is_some_and(|is| is != there) {
                let word = if there { "is there, and was removed" } else { "is not there, and was made" };
                let pools: Vec<String> =
                    snapshot.pools.iter().map(|p| format!("{} {}", p.name, p.state.word())).collect();
                let names = snapshot.volumes.iter().map(|v| v.name.clone());
                let all: Vec<String> = names.chain(snapshot.hosts.iter().map(|h| h.name.clone())).collect();
                return Err(format!("orders: {name} {word}: {pools:?}, {all:?}"));
            }
        }
        Ok(())
    }
}

/// What a head reads after its last good look at the voters it passes on for so long, by a clock that is a fifth too slow.
const SIGHT_MAX: Duration = Duration::from_millis(1875);

impl Run {
    /// A head that takes over serves. A drive in sync that has not shut the other one out, whose process serves, may be read by that one for
    /// a time: until then nothing may change without the drive. A process that has begun since has nothing to pass on.
    pub(super) fn check_wait(&self, server: usize) -> Result<(), String> {
        let other = 1 - server;
        let well = self.last_look.as_ref().is_some_and(|s| s.health == State::Optimal);
        let Some(led) = self.led[server].filter(|_| well && self.ready.contains(&other)) else {
            return Ok(());
        };
        let waited = self.world.now().since(led);
        let reads = |d: usize| self.world.has_path(other, d) && self.world.disks[d].is_in(other as Nexus);
        match (0..self.world.disks.len()).find(|d| reads(*d)) {
            Some(disk) if waited < SIGHT_MAX => Err(format!(
                "stale: server {server} serves {} ms after it began to lead, and d{disk} still lets the other one read",
                waited.as_millis(),
            )),
            _ => Ok(()),
        }
    }
    /// Nothing happens but that one head loses its paths to drives: the other one reaches them, so their legs stay in sync.
    pub(super) fn check_paths(&self, snapshot: &Status) -> Result<(), String> {
        if self.options.loses.is_none() || !self.options.troubles.is_empty() {
            return Ok(());
        }
        let legs = snapshot.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
        match legs.into_iter().find(|l| l.state != State::Optimal) {
            Some(leg) => Err(format!("paths: {} is {:?}: {}", leg.path, leg.state, leg.reason)),
            None => Ok(()),
        }
    }
    /// What hosts have seen: only data that may be there, and no error without a cause.
    pub(super) fn check_hosts(&mut self) -> Result<(), String> {
        let now = self.world.now();
        self.access.as_mut().map_or(Ok(()), |access| access.check(now)).map_err(|e| e + &self.ills())?;
        for (i, ledger) in self.ledgers.iter().enumerate() {
            let ledger = ledger.borrow();
            match ledger.broken.first() {
                Some(Broken::Stale { block, what }) => {
                    let (found, allowed) = (what.found, &what.allowed);
                    return Err(format!(
                        "data: host {i} read write {found} in block {block}; allowed were {allowed:?}"
                    ));
                }
                Some(broken) => return Err(format!("data: host {i}: {broken:?}")),
                None => {}
            }
            // A head that begins, or is out and has not heard of it, has nothing to serve.
            use FaultKind::{Aborted, Changed, Miscompare, NotReady};
            let taken = |kind: FaultKind| kind == FaultKind::NoVolume && self.access.is_some();
            let may =
                |kind: FaultKind| matches!(kind, Aborted | Changed | Miscompare | NotReady) || taken(kind);
            if let Some((kind, raw)) = ledger.refused.iter().find(|(kind, _)| !may(*kind)) {
                return Err(format!("status: host {i} got {kind:?} ({raw:#x}), for no reason"));
            }
            if let Some(most) = self.options.path_stall_most {
                let (by_all, by_one) = (ledger.longest_stall, ledger.longest_path_stall);
                if by_all.max(by_one) > most {
                    return Err(format!("stall: host {i} waited for {by_all:?}, and {by_one:?} by one path"));
                }
            }
        }
        Ok(())
    }
    /// What the drive checker finds, at this moment and beside what hosts were answered.
    pub(super) fn check_surface(&mut self) -> Result<(), String> {
        // What a head has closed may still begin at the other one, until the host is let in again.
        drop(self.world.take_cut_off());
        for (ledger, host) in self.ledgers.iter().zip(&self.hosts) {
            let over = core::mem::take(&mut ledger.borrow_mut().over);
            self.world.checker_over(over.into_iter());
            let lost = core::mem::take(&mut ledger.borrow_mut().let_in);
            if !lost.is_empty() {
                self.world.checker_let_in(*host, &lost);
            }
        }
        let answers = core::mem::take(&mut self.volume.borrow_mut().answers);
        if !answers.is_empty() {
            self.world.checker_answered(&answers);
        }
        self.world.broken_at_surface().map_or(Ok(()), |what| Err(what + &self.ills()))
    }
    /// A run is over: what went on for longer, or more often, than its options let it.
    pub(super) fn waited_too_long(&self, outcome: &Outcome) -> Option<String> {
        let Options { stall_most, outs_most, path_stall_most, .. } = self.options;
        let (read, write) = outcome.slowest;
        if path_stall_most.is_some() && (read > READ_MAX || write > WRITE_MAX) {
            return Some(format!("a host waited {read:?} for a read and {write:?} for a write"));
        }
        let stalled = stall_most.filter(|most| outcome.longest_stall > *most);
        let out = outs_most.filter(|most| self.outs > *most);
        match (stalled, out) {
            (Some(most), _) => {
                Some(format!("a host waited for {:?}, longer than {most:?}", outcome.longest_stall))
            }
            (None, Some(most)) => {
                Some(format!("heads were put out {} times, at most {most} may be", self.outs))
            }
            (None, None) => None,
        }
    }
    /// Nothing is under way: at the head that leads, at shards of the other one, and between shards of both.
    pub(super) fn rests(&self) -> Result<(), String> {
        let Some(leader) = self.leader() else { return Err("nobody leads".into()) };
        self.world.heads_at_rest(|s| s == leader)?;
        if self.is_alone() {
            return Ok(());
        }
        self.world.shards_at_rest(1 - leader)?;
        self.world.far_links_at_rest(&[0, 1])
    }
    /// What heads keep account of adds up.
    pub(super) fn check_books(&self) -> Result<(), String> {
        match self.leader().filter(|_| self.is_alone()) {
            Some(leader) => self.world.check_books(&[leader]),
            None => self.world.check_books(&[0, 1]),
        }
    }
    /// All drives are legs, and those in sync hold the same, byte for byte.
    pub(super) fn check(&self) -> Result<(), String> {
        let arrays = self.last_look.iter().flat_map(|s| &s.pools).flat_map(|p| &p.arrays);
        let disk = |path: &str| self.world.disks.iter().position(|d| d.spec == path);
        let mut known = 0;
        for (id, array) in self.arrays().into_iter().zip(arrays) {
            let legs = array.legs.iter().filter_map(|l| Some((disk(&l.path)?, l.state)));
            let legs: Vec<(usize, State)> = legs.collect();
            known += legs.len();
            if legs.len() != 2 || legs.len() != array.legs.len() {
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
            all if known == all => Ok(()),
            all => Err(format!("legs: {known} of {all} drives are legs")),
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
    /// Two legs in sync hold the same, region by region, whatever the bitmaps say: but where whoever owns the region knows that it is unclean, or
    /// where a change is at a drive still, as it was given up.
    fn check_legs(&self, array: ArrayId, legs: [usize; 2]) -> Result<(), String> {
        let [a, b] = legs.map(|d| &self.world.disks[d]);
        let [one, other] = [label(a)?, label(b)?];
        let Label { data_at, data_bytes, region_bytes, .. } = one;
        if (data_at, data_bytes, region_bytes) != (other.data_at, other.data_bytes, other.region_bytes) {
            return Err(format!("legs: data of {} and {} lie elsewhere", a.spec, b.spec));
        }
        for region in 0..data_bytes.div_ceil(region_bytes.max(1)) {
            let from = region * region_bytes;
            let len = region_bytes.min(data_bytes - from);
            for sector in a.unlike(b, data_at + from, len, false) {
                let at = sector * a.sector;
                let may_differ = self.world.is_unclean(array, at - data_at)
                    || legs.into_iter().any(|d| self.world.changes_at(d, at, a.sector));
                if !may_differ {
                    return Err(format!(
                        "legs: {} and {} differ in region {region} of array {array}, at byte {at}",
                        a.spec, b.spec
                    ));
                }
            }
        }
        Ok(())
    }
    /// What is not as it should be.
    pub(super) fn ills(&self) -> String {
        let mut lines = vec![format!("ready are {:?}; {:?}", self.ready, self.view)];
        let runs = |s| format!("server {s}: runs {}, {:?}", self.world.runs(s), self.world.is_paused(s));
        lines.extend((0..2).map(runs));
        for (i, ledger) in self.ledgers.iter().enumerate() {
            lines.push(format!("host {i}: finished {}", ledger.borrow().finished));
        }
        if let Some(s) = &self.last_look {
            lines.push(format!("the system is {}", s.health.word()));
            lines.extend(s.reasons.iter().map(|r| format!("{}: {} {:?}", r.what, r.state.word(), r.cause)));
        }
        lines.push(format!("{:?}", self.rests()));
        lines.extend(self.log.iter().cloned());
        lines.iter().map(|l| format!("\n    {l}")).collect()
    }
}

/// The newer copy of a drive's label.
fn label(disk: &Disk) -> Result<Label, String> {
    let copies = [LABEL_AT, label_copy_at(disk.bytes)].map(|at| {
        let mut label = vec![0; RECORD_BYTES];
        disk.read(at, &mut label);
        label
    });
    newest_label(&copies[0], &copies[1]).map_err(|_| format!("legs: {} has no label", disk.spec))
}
