//! The pending change of a head: which record it wants decided next (members, leader, voters).

use super::{AFTER_YOU, ALONE, Do, Member, Out, Part, Peer, SIGHT_EVERY, Serve, VOTER_GONE};
use crate::fence::SIGHT;
use crate::record::{HeadNo, HeadState, SystemRecord, Voter};
use crate::voters;
use crate::watch::{Verdict, View, Why};
use base::{Bug, Instant, planted};

impl Member {
    /// Decides what should be decided next, if anything should.
    pub(super) fn propose(&mut self, now: Instant) {
        let verdict = self.verdict(now);
        if self.decider.is_busy() || now < self.retry {
            return;
        }
        if self.serve == Serve::Looks {
            // It was given up.
            self.serve = Serve::Wanted;
        }
        if self.serve == Serve::Wanted && self.part == Part::Leader {
            self.serve = Serve::Looks;
            self.doubt = false;
            self.retry = now;
            self.began = now;
            self.decider.look();
        } else if let Some(mut pending) =
            self.pending(now, verdict).or_else(|| self.owes_mark().then(|| self.known().next()))
        {
            assert!(pending.epoch == self.known().epoch + 1, "one record for each epoch");
            if self.owes_mark() {
                pending.changed = pending.epoch;
                self.marking = Some((pending.epoch, self.changes));
            }
            self.retry = now;
            self.began = now;
            self.decider.propose(pending);
        } else if self.way.looks_at().is_none_or(|at| now >= at)
            && (self.doubt || self.next_look().is_some_and(|at| now >= at))
        {
            self.doubt = false;
            self.retry = now;
            self.began = now;
            self.decider.look();
        }
    }
    /// Its shards pass on what drives hold: those of a follower, too.
    pub(super) fn serves(part: Part) -> bool {
        matches!(part, Part::Leader | Part::Follower)
    }
    /// When a head that serves looks at the voters again, only to see whether it reaches them.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.looked.filter(|_| Self::serves(self.part)).map(|at| at + SIGHT_EVERY)
    }
    /// Nothing newer than what is known was decided when the look began that is over now.
    pub(super) fn sees(&mut self) {
        if Self::serves(self.part) {
            let other = self.known().head(self.set.me.other()).state != HeadState::None;
            self.looked = other.then_some(self.began);
            self.dos.push(Do::Sight { until: self.looked.map(|at| at + SIGHT) });
        }
    }
    pub(super) fn verdict(&mut self, now: Instant) -> Verdict {
        let ours = View { hosts: self.hosts, reaches: self.reaches() };
        let leads = self.part == Part::Leader;
        let verdict = self.watch.verdict(now, ours, leads);
        let other = self.known().head(self.set.me.other());
        let replaced = self.peer.as_ref().is_some_and(|p| p.life != other.life);
        if let Some(why) = self.unwanted.filter(|why| leads || *why == Why::LostPath) {
            return Verdict::Propose(why);
        }
        // Another process of that head is there: the one that is in has ended.
        if replaced && self.known().is_in(self.set.me.other()) {
            Verdict::Propose(Why::Ended)
        } else {
            verdict
        }
    }
    /// Whether hosts or portals have changed, and no decision was made for that yet.
    pub(super) fn owes_mark(&self) -> bool {
        self.part == Part::Leader && self.marked < self.changes
    }
    pub(super) fn pending(&mut self, now: Instant, verdict: Verdict) -> Option<SystemRecord> {
        let (me, life, other) = (self.set.me, self.set.life, self.set.me.other());
        let known = self.known().clone();
        match self.part {
            Part::Over => None,
            Part::Outside => {
                let begins = self.may_begin(now, verdict);
                if begins && known.is_in(other) {
                    // It goes out with this decision.
                    self.why = match verdict {
                        _ if self.forced => Some(Why::Asked),
                        Verdict::Propose(why) => Some(why),
                        Verdict::Well | Verdict::Suspected { .. } => None,
                    };
                }
                begins.then(|| {
                    let mut next = known.led_by(me, life, &self.set.name);
                    if self.forced {
                        next.latest = [me == HeadNo::A, me == HeadNo::B];
                    }
                    next
                })
            }
            Part::Follower | Part::Leader if known.is_in(other) => match verdict {
                Verdict::Propose(_) if self.part == Part::Follower && self.is_behind() => {
                    self.end(Out::Behind);
                    None
                }
                Verdict::Propose(why) => {
                    self.why = Some(why);
                    Some(known.without(other))
                }
                _ if self.part == Part::Leader && self.synced && !known.has_latest(other) => {
                    Some(known.with_latest(other))
                }
                _ if self.part == Part::Leader => self.other_voters(now),
                _ => None,
            },
            Part::Follower => None,
            Part::Leader => {
                // A process that was in and is out is never in again: it ends once it hears of it.
                if self.released && known.head(other).state == HeadState::Out {
                    return self.may_let_in().then(|| known.removed(other));
                }
                let let_in = |p: &Peer| {
                    if p.life == known.head(other).life {
                        self.fenced && planted(Bug::SameLifeAgain)
                    } else {
                        self.may_let_in()
                    }
                };
                let may = |p: &Peer| p.lacks.is_none() && self.returns.may_return(now) && let_in(p);
                let asks = self.peer.clone().filter(|p| p.asks.is_some() && self.link.is_up() && may(p));
                if let Some(Peer { life, asks: Some(name), .. }) = asks {
                    let mut next = known.with(other, life);
                    next.heads[other.index()].name = name;
                    if let Some(voters) = self.voters(&next) {
                        next.voters = voters;
                    }
                    return Some(next);
                }
                self.other_voters(now)
            }
        }
    }
    pub(super) fn is_behind(&self) -> bool {
        (!self.known().has_latest(self.set.me) || self.has_old_directory()) && !planted(Bug::LeadsBehind)
    }
    /// Whether the state directory knows nothing of the decision that let this head in last, as a former process, or of the one that was
    /// made as hosts or portals changed last: then it is an older copy, and what it says of them is old.
    pub fn has_old_directory(&self) -> bool {
        let row = self.known().head(self.set.me);
        let was_in = row.state == HeadState::In && row.life != self.set.life;
        was_in && row.since.max(self.known().changed) > self.directory && !planted(Bug::OldDirectoryLeads)
    }
    pub(super) fn may_let_in(&self) -> bool {
        self.fenced || planted(Bug::LetInUnfenced)
    }
    /// Whether this head, which is not in, may try to lead.
    pub(super) fn may_begin(&self, now: Instant, verdict: Verdict) -> bool {
        let known = self.known();
        let started = self.started.unwrap_or(now);
        if known.head(self.set.me.other()).state == HeadState::None {
            return !self.blank || self.forced || planted(Bug::BlankBegins);
        }
        if self.is_behind() && !self.forced {
            return false;
        }
        if self.link.is_up() {
            // The other one is there. If it is not in either, the one that led goes first.
            let both = self.peer.as_ref().is_some_and(|p| p.asks.is_some());
            return both && (known.leader == self.set.me || now >= started + AFTER_YOU);
        }
        let nobody = matches!(verdict, Verdict::Propose(Why::Ended | Why::Still { .. }));
        nobody && now >= started + ALONE
    }
    /// The next record, if it should have other voters than this one.
    pub(super) fn other_voters(&mut self, now: Instant) -> Option<SystemRecord> {
        let known = self.known().clone();
        let Some(voters) = self.voters(&known).filter(|v| *v != known.voters) else {
            self.voter_gone = None;
            return None;
        };
        let since = *self.voter_gone.get_or_insert(now);
        // More voters are taken at once, and a head that is out votes no more from when it is; a drive that is away may come back.
        let (more, others) = (voters.len() > known.voters.len(), Voter::Directory(self.set.me.other()));
        let no_more = known.voters.contains(&others) && !voters.contains(&others);
        (more || no_more || now >= since + VOTER_GONE).then(|| SystemRecord { voters, ..known.next() })
    }
    pub(super) fn voters(&self, record: &SystemRecord) -> Option<Vec<Voter>> {
        Some(voters::of(record, self.set.me, self.candidates.as_deref()?))
    }
}
