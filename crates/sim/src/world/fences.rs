//! Fences of drives: one operation at a time for each drive, as slow as the drive, with a result within its limit.

use super::actor::ActorId;
use super::{Crash, Happening, World, Wrong};
use crate::registrants::Nexus;
use base::{DriveId, Duration, Event, Fence, FenceAct, FenceError, FenceKind, FenceOp, Instant, Token};
use std::collections::{BTreeMap, VecDeque};

/// How often a fence of a drive that hangs looks whether it may go on.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How often the lock of a file is asked for (docs/fencing.md).
const LOCK_AGAIN: Duration = Duration::from_millis(2);

#[derive(Clone, Copy)]
struct Fencing {
    nth: u64,
    actor: ActorId,
    life: u32,
    token: Token,
    drive: DriveId,
    act: FenceAct,
    until: Instant,
    /// Nothing is done before.
    begins: Instant,
    /// Its limit was reached, and the asker got the result.
    given_up: bool,
}

/// What was asked of drives and has not ended.
#[derive(Default)]
pub(super) struct Fences {
    under_way: VecDeque<Fencing>,
    asked: u64,
    /// Drives that shut no head out until then: the reset that belongs to it hangs.
    held_up: BTreeMap<usize, Instant>,
    /// Servers of which nothing that they ask is begun before then.
    late_of: BTreeMap<usize, Instant>,
}

impl World {
    /// By which path a machine reaches the drives: that of its server.
    pub(super) fn nexus_of(&self, actor: ActorId) -> Nexus {
        self.server_of(actor).unwrap_or_default() as Nexus
    }

    pub(super) fn fence(&mut self, actor: ActorId, token: Token, drive: DriveId, op: FenceOp) {
        let server = usize::from(self.nexus_of(actor));
        let kind = self.there(server, drive).map(|disk| self.disks[disk].fence);
        let same = |f: &&Fencing| f.drive == drive && usize::from(self.nexus_of(f.actor)) == server;
        let stuck = self.fences.under_way.iter().filter(same).any(|f| f.given_up);
        let at_once = match kind {
            None => Some(FenceError::Gone),
            Some(FenceKind::None(why)) => Some(FenceError::None(why)),
            Some(_) if stuck => Some(FenceError::TimedOut),
            Some(_) => None,
        };
        if let Some(error) = at_once {
            return self.send_to_head(actor, Event::Fenced { token, result: Err(error) });
        }
        self.fences.asked += 1;
        let (nth, life, until) = (self.fences.asked, self.actors[actor].life, self.now() + op.within());
        let FenceOp { act, .. } = op;
        let begins = self.late_fence(server);
        self.fences.under_way.push_back(Fencing {
            nth,
            actor,
            life,
            token,
            drive,
            act,
            until,
            begins,
            given_up: false,
        });
        let at = self.now() + Duration::from_micros(5 + self.rng.below(self.delivery.drive_us));
        self.push(at, Happening::Fence { nth });
    }

    /// A drive shuts no head out for a time. It goes on with all else, and does then what it was asked for.
    pub fn hold_fences_up(&mut self, disk: usize, time: Duration) {
        self.say(|| format!("d{disk} shuts nobody out for {time:?}"));
        self.tally.make(Wrong::HoldFences);
        self.fences.held_up.insert(disk, self.now() + time);
    }
    /// All that a head asks of the fences of drives is late for a time: the way there is busy.
    pub fn fences_are_late(&mut self, server: usize, time: Duration) {
        self.say(|| format!("fences of server {server} begin {time:?} from now"));
        self.tally.make(Wrong::LateFences);
        self.fences.late_of.insert(server, self.now() + time);
    }
    /// No fence is held up any more.
    pub fn let_fences_go_on(&mut self) {
        self.fences.held_up.clear();
        self.fences.late_of.clear();
    }
    fn is_held_up(&self, disk: usize, act: FenceAct) -> bool {
        let until = self.fences.held_up.get(&disk);
        matches!(act, FenceAct::ShutOut { .. }) && until.is_some_and(|until| self.now() < *until)
    }
    /// A drive is a file, and another process than that of this head has its lock.
    fn is_locked(&self, disk: usize, own: Nexus) -> bool {
        self.disks[disk].fence == FenceKind::File && self.others_have(disk, own)
    }
    /// The other head's process is killed, if it is the one that is named.
    fn kills_holder(&mut self, own: Nexus, act: FenceAct) {
        let FenceAct::ShutOut { process: Some(process), .. } = act else { return };
        let holder = 1 - usize::from(own);
        let server = &self.servers[holder];
        if server.runs && server.process == Some(process) && self.fell.is_none() {
            self.tally.make(Wrong::FileFence);
            self.fell = Some((holder, Crash::Killed));
        }
    }
    /// When the next fence of a server begins: where two heads share drives, now and then late, or too late.
    fn late_fence(&mut self, server: usize) -> Instant {
        if let Some(until) = self.fences.late_of.get(&server).copied().filter(|until| *until > self.now()) {
            self.tally.meet(Wrong::LateFences);
            return until;
        }
        if self.delivery.late_permille == 0 || !self.rng.chance(self.delivery.late_permille, 1000) {
            return self.now();
        }
        self.now() + Duration::from_micros(self.rng.below(400_000))
    }
    /// One of them is carried out, or looks again later: its drive hangs, or has others to do before.
    pub(super) fn fence_goes_on(&mut self, nth: u64) {
        let Some(at) = self.fences.under_way.iter().position(|f| f.nth == nth) else { return };
        let Fencing { actor, life, token, drive, act, until, given_up, begins, .. } =
            self.fences.under_way[at];
        let own = self.nexus_of(actor);
        let (now, disk) = (self.now(), self.there(own.into(), drive));
        let waits = |d: usize| self.disks[d].faults.met_by(actor).hang || self.is_held_up(d, act);
        let hangs = now < begins || disk.is_some_and(waits);
        if disk.is_some_and(|d| self.is_held_up(d, act)) {
            self.tally.meet(Wrong::HoldFences);
        }
        let same = |f: &Fencing| f.drive == drive && self.nexus_of(f.actor) == own;
        let behind = self.fences.under_way.iter().take(at).any(same);
        let report = |w: &mut Self, result| {
            if !given_up && w.actors[actor].life == life {
                w.send_to_head(actor, Event::Fenced { token, result });
            }
        };
        if disk.is_some() && (hangs || behind) {
            if now >= until {
                report(self, Err(FenceError::TimedOut));
                if behind {
                    // It was not begun, and never is.
                    self.fences.under_way.remove(at);
                    return;
                }
                self.fences.under_way[at].given_up = true;
            }
            // To the moment at its limit, and from then on only for what it still does.
            let next = now + LOOK_AGAIN;
            let at = if now < until { next.min(until) } else { next };
            return self.push(at, Happening::Fence { nth });
        }
        let locked = disk.filter(|d| matches!(act, FenceAct::ShutOut { .. }) && self.is_locked(*d, own));
        if locked.is_some() {
            // Who waits for a lock ends with its process.
            if self.actors[actor].life != life {
                self.fences.under_way.remove(at);
                return;
            }
            self.tally.meet(Wrong::FileFence);
            if now < until {
                self.kills_holder(own, act);
                return self.push(until.min(now + LOCK_AGAIN), Happening::Fence { nth });
            }
            self.fences.under_way.remove(at);
            return report(self, Err(FenceError::TimedOut));
        }
        self.fences.under_way.remove(at);
        let result = match disk {
            Some(disk) => {
                if self.disks[disk].misses_keys() {
                    self.tally.meet(Wrong::ForgetKeys);
                }
                let others = self.others_have(disk, own);
                let done = self.disks[disk].carry_out_fence(own, act);
                // Who has a file is known here.
                done.map(|f| if matches!(f, Fence::File { .. }) { Fence::File { others } } else { f })
            }
            None => Err(FenceError::Gone),
        };
        if let (Some(disk), Ok(_), FenceAct::ShutOut { .. }) = (disk, &result, act)
            && !self.disks[disk].fence_lies
        {
            self.reset_unit(disk, own);
            self.checker_confirmed(disk);
        }
        report(self, result);
    }
}
