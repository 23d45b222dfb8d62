//! The layer above: registers, shuts out, and serves.

use super::drive::Act;
use super::fencing::{Fencing, State};
use super::layer::{Purpose, Serving, Work};
use super::{Event, Failure, Input, MS, World};
use crate::member::Part;
use crate::record::HeadNo;
use base::{Fence, FenceAct, FenceError, FenceKey, Uuid};
use std::collections::BTreeSet;

/// A registration that failed is repeated after this.
pub(super) const AGAIN: u64 = 300 * MS;
/// Values that are under way to one drive, at most.
const WRITES: usize = 8;

impl World {
    /// Registers on a drive; false: a key is being changed there.
    pub(super) fn register(
        &mut self,
        head: HeadNo,
        drive: Uuid,
        key: FenceKey,
        then: Option<(FenceKey, u64)>,
    ) -> bool {
        if !self.process(head).busy.insert(drive) {
            return false;
        }
        let op = self.issue(head, drive, Act::Register(key));
        self.process(head).purposes.insert(op, Purpose::Register(key, then));
        true
    }
    /// Who follows registers under the key by which it is in: once, for what takes that away is another one that shuts it out.
    pub(super) fn follow(&mut self, head: HeadNo, drive: Uuid) {
        let process = self.process(head);
        let Some(key) = process.follows.filter(|_| process.member.part() == Part::Follower) else { return };
        if process.registered.get(&drive) == Some(&key) || self.register(head, drive, key, None) {
            return;
        }
        let number = self.process(head).number;
        self.input(head, number, AGAIN, Input::FollowAgain { drive });
    }

    pub(super) fn begin_fence(&mut self, head: HeadNo) {
        self.pause_in_fence(head);
        let now = self.local(head);
        let drives: Vec<Uuid> = self.drives.iter().map(|d| d.id).collect();
        let process = self.process(head);
        let known = process.member.known();
        let own = known.key(head).expect("it is in");
        let victim = known.key(head.other()).unwrap_or_else(|| known.key_outside(head.other()));
        process.works += 1;
        let fencing = Fencing::new((own, victim), None, drives, now);
        process.work = Some(Work { fencing, number: process.works, own, reported: BTreeSet::new() });
    }
    /// Asks the drives that are due, and reports to the member once all have confirmed or are given up.
    pub(super) fn fence(&mut self, head: HeadNo) {
        if !self.runs(head) {
            return;
        }
        let now = self.local(head);
        let process = self.process(head);
        let number = process.number;
        let Some(work) = process.work.as_mut() else { return };
        let (work_number, own, due) = (work.number, work.own, work.fencing.due(now));
        for (drive, op) in due {
            let FenceAct::ShutOut { victim, .. } = op.act else { continue };
            let limit = self.real(head, op.limit.as_nanos() as u64);
            let input = Input::FenceLimit { drive, number: work_number, asked: now };
            self.input(head, number, limit, input);
            if self.process(head).registered.get(&drive) == Some(&own) {
                self.shut_out(head, drive, victim, work_number);
            } else if !self.register(head, drive, own, Some((victim, work_number))) {
                self.fenced(head, drive, work_number, &Err(FenceError::TimedOut));
            }
        }
        let Some(work) = self.process(head).work.as_mut() else { return };
        let overdue = work.fencing.overdue(now);
        let drives = &self.drives;
        let work = self.heads[head.index()].process.as_mut().and_then(|p| p.work.as_mut()).expect("as above");
        let good: BTreeSet<Uuid> = drives.iter().map(|d| d.id).filter(|d| !overdue.contains(d)).collect();
        if !good.is_empty() && good != work.reported && work.fencing.confirmed(good.iter().copied()) {
            work.reported = good;
            self.process(head).member.on_fenced();
            self.input(head, number, 1, Input::Nothing);
        }
        let work = self.process(head).work.as_mut().expect("as above");
        if let Some(at) = work.fencing.next_deadline(now) {
            let after = self.real(head, at.since(now).as_nanos() as u64);
            if self.heads[head.index()].fence_time != self.now + after {
                self.heads[head.index()].fence_time = self.now + after;
                self.input(head, number, after, Input::FenceTime);
            }
        }
    }
    pub(super) fn shut_out(&mut self, head: HeadNo, drive: Uuid, victim: FenceKey, number: u64) {
        let Some(own) = self.process(head).work.as_ref().map(|w| w.own) else { return };
        if !self.process(head).busy.insert(drive) {
            return self.fenced(head, drive, number, &Err(FenceError::TimedOut));
        }
        let op = self.issue(head, drive, Act::ShutOut { own, victim });
        self.process(head).purposes.insert(op, Purpose::ShutOut(number));
    }
    pub(super) fn fenced(
        &mut self,
        head: HeadNo,
        drive: Uuid,
        number: u64,
        result: &Result<Fence, FenceError>,
    ) {
        let now = self.local(head);
        self.say(|| format!("{head:?} fence of {drive}: {result:?}"));
        let work = self.process(head).work.as_mut().filter(|w| w.number == number);
        // An answer behind its limit is none.
        if let Some(work) = work.filter(|w| matches!(w.fencing.state(drive), Some(State::Asked(_)))) {
            work.fencing.on_done(drive, result, now);
        }
    }
    pub(super) fn serve(&mut self, head: HeadNo) -> Result<(), Failure> {
        let now = self.now;
        let process = self.process(head);
        let (epoch, number) = (process.leads, process.number);
        if let Some(drive) = process.unconfirmed() {
            return Err(format!("{head:?} serves from {drive}, which has not confirmed its fence"));
        }
        let drives = process.work.as_ref().map(|w| w.reported.clone()).unwrap_or_default();
        let has = self.files[head.index()];
        if has < self.answered {
            let answered = self.answered;
            return Err(format!("{head:?} serves with change {has} of hosts, and {answered} was answered"));
        }
        let process = self.process(head);
        let first = process.serving.is_none();
        process.serving = Some(Serving { epoch, drives: drives.clone() });
        for drive in self.drives.iter_mut().filter(|d| drives.contains(&d.id)) {
            drive.served = drive.served.max(epoch);
        }
        self.outcome.serves += u64::from(first);
        self.served.push((now, head, epoch));
        if first {
            self.at(MS, Event::Write(head, number));
        }
        Ok(())
    }
    /// An operator changes hosts: answered once the state directories have it of all heads that are in.
    fn change_hosts(&mut self, head: HeadNo) {
        let (i, o) = (head.index(), head.other().index());
        let process = self.heads[i].process.as_ref().expect("it serves");
        let known = process.member.known().clone();
        let synced = process.synced == known.head(head.other()).since;
        self.files[i] += 1;
        if known.is_in(head.other()) {
            let follower = self.heads[o].process.as_ref();
            let there = follower.is_some_and(|f| {
                f.member.part() == Part::Follower && f.member.life() == known.head(head.other()).life
            });
            if !there || !process.member.is_linked() || self.heads[o].paused > self.now {
                return;
            }
            if synced {
                self.files[o] = self.files[i];
            }
        }
        self.answered = self.answered.max(self.files[i]);
    }
    /// A head that serves writes a value to all drives, or reads one.
    pub(super) fn write(&mut self, head: HeadNo, number: u64) {
        let paused = self.heads[head.index()].paused > self.now;
        let Some(process) = self.heads[head.index()].process.as_ref().filter(|p| p.number == number) else {
            return;
        };
        let serving = process.serving.as_ref().filter(|_| !paused);
        let serving = serving.map(|s| (s.epoch, s.drives.clone()));
        let after = self.rng.between(5, 20) * MS;
        self.at(after, Event::Write(head, number));
        let Some((epoch, drives)) = serving else { return };
        self.change_hosts(head);
        let act = if self.rng.chance(1, 5) { Act::Read } else { Act::Write { epoch } };
        for id in drives {
            let drive = self.drives.iter().find(|d| d.id == id).expect("one of them");
            let data = |a: &Act| matches!(a, Act::Read | Act::Write { .. });
            if drive.ops.iter().filter(|o| o.head == head && data(&o.act)).count() < WRITES {
                let op = self.issue(head, id, act.clone());
                self.process(head).purposes.insert(op, Purpose::Data);
            }
        }
    }
}
