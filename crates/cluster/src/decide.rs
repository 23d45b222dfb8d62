//! The decider: one system record for each epoch, by Disk Paxos (Gafni and Lamport, 2003) over voters that only keep blocks.
//!
//! ```text
//!   look:    read both heads' blocks on most voters: is anything newer decided?
//!   begin:   on each voter write the own block (promised = ballot), THEN read the other's
//!            most voters, and no higher ballot: the accepted record of the highest ballot seen, or else our own
//!   accept:  in the own directory, then on each other voter: write the own block (accepted = ballot, record), THEN read the other's
//!            most voters, and no higher ballot: decided
//! ```
//!
//! A head that starts remembers no promise, so it reads its own block on each voter before it first writes there. The ballot of every
//! record that it ever accepted is on most voters, and any other majority shares a voter with them.
//!
//! A head that reads a higher ballot gives way. The layer above decides when it tries again and what it proposes. This module knows no
//! time: the layer above reports a voter without an answer as failed.

use crate::record::{HeadNo, SystemRecord, Voter};
use crate::slot::Slot;
use base::{Bug, planted, planted_if};
use std::collections::BTreeMap;

/// What is to be done on a voter. Each ends in `Decider::on_done` with the same voter and round. What is asked of one voter is
/// carried out in order, each when the one before is over: a write that was given up may still land, and until it has, its voter
/// has failed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ask {
    /// Where.
    pub voter: Voter,
    /// Comes back.
    pub round: u64,
    /// The own block to write, durably, before the other's is read; None: both are read.
    pub write: Option<Slot>,
}

/// What was found on a voter behind the write: the block of each head. None: none yet.
pub type Found = [Option<Slot>; 2];

/// What a turn led to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// This is the record of its epoch, from either head. The decision under way is over.
    Decided(Box<SystemRecord>),
    /// The other head has begun a higher ballot: try again, a little later.
    Outbid,
    /// Too few voters can be reached: try again when more can.
    Minority {
        /// Voters that answered.
        reached: usize,
    },
    /// The voters were looked at: nothing newer is known to be decided.
    Looked,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Idle,
    Look,
    Begin,
    Accept,
}

/// What a voter has said in this round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Vote {
    /// What it holds of us is to be read before anything is written there.
    Unread,
    /// It is asked once the own directory has accepted, or failed to.
    Later,
    Asked,
    Given,
    Failed,
}

/// One head's part in the decisions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Decider {
    me: HeadNo,
    life: u64,
    /// Decided last, as far as is known.
    known: SystemRecord,
    /// Our promise, and what we accepted, in the epoch behind `known`.
    promised: u64,
    accepted: Option<(u64, SystemRecord)>,
    /// Sequence of our newest block on each voter that was read in this life: then its promises are ours.
    sequences: BTreeMap<Voter, u64>,
    /// The highest ballot that was seen in the epoch behind `known`.
    highest: u64,
    phase: Phase,
    round: u64,
    votes: BTreeMap<Voter, Vote>,
    /// The record of the highest accepted ballot that this round has seen.
    seen: Option<(u64, SystemRecord)>,
    /// What is proposed if nothing is accepted.
    pending: Option<SystemRecord>,
    asks: Vec<Ask>,
}

impl Decider {
    /// The part of a head that knows `known` to be decided, from a block of its own or from its peer.
    pub fn new(me: HeadNo, life: u64, known: SystemRecord) -> Self {
        assert!(life != 0, "0 names no process");
        Self {
            me,
            life,
            known,
            promised: 0,
            accepted: None,
            sequences: BTreeMap::new(),
            highest: 0,
            phase: Phase::Idle,
            round: 0,
            votes: BTreeMap::new(),
            seen: None,
            pending: None,
            asks: vec![],
        }
    }
    /// The newest record that is known to be decided.
    pub fn known(&self) -> &SystemRecord {
        &self.known
    }
    /// Whether something is under way.
    pub fn is_busy(&self) -> bool {
        self.phase != Phase::Idle
    }
    /// Whether something may be decided in the epoch behind `known`: somebody has begun a ballot that is higher than ours, or the look found
    /// that somebody has accepted a record. That counts in a lower ballot, too: ours may be higher because we tried in vain, later.
    pub fn is_contested(&self) -> bool {
        self.highest > self.promised || self.seen.is_some() && !planted(Bug::AcceptedIsNoNews)
    }
    /// The round under way: answers to others are no news.
    pub fn round(&self) -> u64 {
        self.round
    }
    /// What is to be done on voters now.
    pub fn asks(&mut self) -> Vec<Ask> {
        core::mem::take(&mut self.asks)
    }
    /// Reads the voters: whether something newer is decided. What was under way is given up; its answers are no news any more.
    pub fn look(&mut self) {
        self.seen = None;
        self.start(Phase::Look);
    }
    /// Proposes the next record. If another one of this epoch is decided, `Decided` says that one.
    ///
    /// Panics if it is not of the next epoch.
    pub fn propose(&mut self, record: SystemRecord) {
        assert_eq!(record.epoch, self.known.epoch + 1, "one record for each epoch");
        self.pending = Some(record);
        self.begin();
    }
    /// Takes over a record that is known to be decided. Whether it is news.
    pub fn learn(&mut self, record: &SystemRecord) -> bool {
        let news = record.system == self.known.system && record.epoch > self.known.epoch;
        if news {
            self.advance(record.clone());
        }
        news
    }

    fn begin(&mut self) {
        let parity = self.me as u64;
        self.promised = (self.highest.max(self.promised) / 2 + 1) * 2 + parity;
        self.highest = self.promised;
        self.seen = self.accepted.clone();
        self.start(Phase::Begin);
    }
    fn start(&mut self, phase: Phase) {
        self.phase = phase;
        self.round += 1;
        self.asks.clear();
        self.votes.clear();
        let own = Voter::Directory(self.me);
        for voter in self.known.voters.clone() {
            let vote = match phase {
                Phase::Look => Vote::Asked,
                Phase::Accept if voter != own && self.known.voters.contains(&own) => Vote::Later,
                _ => self.first_vote(voter),
            };
            self.votes.insert(voter, vote);
            if vote != Vote::Later {
                self.ask(voter, vote == Vote::Asked && phase != Phase::Look);
            }
        }
    }
    /// Before anything is written on a voter, what it holds of us is read.
    fn first_vote(&self, voter: Voter) -> Vote {
        if self.sequences.contains_key(&voter) { Vote::Asked } else { Vote::Unread }
    }
    /// The own directory knows of what is accepted here, or has failed: now the others may learn of it. So a directory that does not know what
    /// its head has decided is an older copy (`Member::has_old_directory`), whoever ends the decision.
    fn ask_others(&mut self) {
        for voter in self.known.voters.clone() {
            if self.votes.get(&voter) == Some(&Vote::Later) {
                let vote = self.first_vote(voter);
                self.votes.insert(voter, vote);
                self.ask(voter, vote == Vote::Asked);
            }
        }
    }
    fn ask(&mut self, voter: Voter, write: bool) {
        let write = write.then(|| {
            let sequence = self.sequences.get_mut(&voter).expect("what we wrote there is known");
            *sequence += 1;
            Slot {
                head: self.me,
                life: self.life,
                sequence: *sequence,
                promised: self.promised,
                decided: self.known.clone(),
                accepted: self.accepted.clone().filter(|_| !planted(Bug::AcceptedForgotten)),
            }
        });
        self.asks.push(Ask { voter, round: self.round, write });
    }
    /// Another record is decided: promises and what was accepted were of the epoch before.
    fn advance(&mut self, record: SystemRecord) {
        self.known = record;
        self.promised = 0;
        self.highest = 0;
        self.accepted = None;
        self.seen = None;
        self.give_up();
    }
    /// What is under way is over; its answers are no news.
    fn give_up(&mut self) {
        self.phase = Phase::Idle;
        self.pending = None;
        self.round += 1;
        self.asks.clear();
    }

    /// A voter has done what was asked of it; None: it failed, or did not answer in time. An answer to an older round is no news.
    pub fn on_done(&mut self, voter: Voter, round: u64, found: Option<Found>) -> Option<Outcome> {
        if round != self.round || self.phase == Phase::Idle {
            return None;
        }
        let vote = *self.votes.get(&voter)?;
        let Some(found) = found else {
            // What lies there now is not known: the write may have landed.
            self.sequences.remove(&voter);
            self.votes.insert(voter, Vote::Failed);
            if voter == Voter::Directory(self.me) {
                self.ask_others();
            }
            return self.count();
        };
        let latest = found.iter().flatten().map(|s| &s.decided).max_by_key(|d| d.epoch);
        if let Some(latest) = latest.filter(|d| d.epoch > self.known.epoch).cloned() {
            // It was decided without us, or in a former life, which may have promised something behind it.
            let looks = self.phase == Phase::Look;
            self.advance(latest.clone());
            self.sequences.clear();
            if looks {
                self.look();
                return None;
            }
            return Some(Outcome::Decided(Box::new(latest)));
        }
        let own = found[self.me.index()].as_ref();
        let newest = own.map_or(0, |s| s.sequence);
        if self.phase != Phase::Look {
            let sequence = self.sequences.entry(voter).or_insert(newest);
            *sequence = (*sequence).max(newest);
        }
        let mut outbid = false;
        for slot in found.iter().flatten().filter(|s| s.epoch() == self.known.epoch + 1) {
            self.highest = self.highest.max(slot.promised);
            let former = slot.head == self.me && slot.life != self.life;
            let accepted = slot.accepted.as_ref().map(|a| a.0) > self.accepted.as_ref().map(|a| a.0);
            let promised = slot.promised >= self.promised;
            let former = former && !planted_if(Bug::FormerLifeForgotten, || accepted || promised);
            if former && accepted {
                self.accepted.clone_from(&slot.accepted);
                outbid |= self.phase == Phase::Accept;
            }
            outbid |= former && promised;
            outbid |= slot.head != self.me && slot.promised > self.promised;
            if slot.accepted.as_ref().map(|a| a.0) > self.seen.as_ref().map(|a| a.0) {
                self.seen.clone_from(&slot.accepted);
            }
        }
        if outbid && self.phase != Phase::Look && !planted(Bug::OutbidGoesOn) {
            self.give_up();
            return Some(Outcome::Outbid);
        }
        if vote == Vote::Unread {
            self.votes.insert(voter, Vote::Asked);
            self.ask(voter, true);
            return None;
        }
        self.votes.insert(voter, Vote::Given);
        if voter == Voter::Directory(self.me) {
            self.ask_others();
        }
        self.count()
    }

    fn count(&mut self) -> Option<Outcome> {
        let count = |what: Vote| self.votes.values().filter(|v| **v == what).count();
        let (given, failed) = (count(Vote::Given), count(Vote::Failed));
        let (most, left) = (self.known.majority(), self.votes.len() - failed);
        let half = planted_if(Bug::HalfDecides, || given + 1 == most || left + 1 == most);
        let most = most - usize::from(half);
        if given >= most {
            return self.most_said();
        }
        if left < most {
            self.give_up();
            return Some(Outcome::Minority { reached: given });
        }
        None
    }
    fn most_said(&mut self) -> Option<Outcome> {
        match self.phase {
            Phase::Idle => None,
            Phase::Look => {
                self.give_up();
                Some(Outcome::Looked)
            }
            Phase::Begin => {
                let other = |seen: &SystemRecord| self.pending.as_ref() != Some(seen);
                let seen = self.seen.take();
                let seen = seen.filter(|(_, seen)| !planted_if(Bug::SeenIgnored, || other(seen)));
                let value = seen.map(|(_, value)| value).or_else(|| self.pending.clone());
                let value = value.expect("a ballot is begun for a record");
                self.accepted = Some((self.promised, value));
                self.start(Phase::Accept);
                None
            }
            Phase::Accept => {
                let (_, value) = self.accepted.clone().expect("it is accepted here");
                self.advance(value.clone());
                Some(Outcome::Decided(Box::new(value)))
            }
        }
    }
}
