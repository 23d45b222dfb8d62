//! The member: one head's part in the system, and what it is to do.
//!
//! ```text
//!              ┌──────────── let in by whoever leads ───────────▶ Follower ── the leader is gone: decided ─┐
//!   Outside ───┤                                                     │                                     ▼
//!              └── nobody else is there, and most votes: decided ────┼─────────────────────────────────▶ Leader
//!                                                                    ▼                                     │
//!                                              Over: this process is out, and ends ◀── the other says so ──┘
//! ```
//!
//! A process is in once, and then out for good: its *life* names it, and a head that comes back has another life. So nothing of a process
//! that is out needs to be undone: it ends, and the kernel cleans up.
//!
//! Does no I/O: `turn` lists what is to be done on voters and by the link. A leader may not serve before every drive that it serves from
//! has confirmed that the other head is shut out. The layer above sees to that, and reports it (`on_fenced`).

use crate::decide::{Ask, Decider, Found, Outcome};
use crate::heartbeat::Heartbeat;
use crate::link::{self, Heard, Link};
use crate::message::Message;
use crate::parts::{Incoming, Outgoing, PART_MAX, WINDOW};
use crate::record::{HeadNo, HeadState, SystemRecord, Voter};
use crate::watch::{End, Times, Watch, Why};
use base::fence::Process;
use base::{Bug, Duration, Instant, Prng, Uuid, planted, planted_if};
use gives_way::GivesWay;
use returns::Returns;
use std::collections::{BTreeMap, BTreeSet};

mod gives_way;
mod pending;
mod returns;

/// A head that starts and does not meet the other one waits so long before it goes on alone.
pub const ALONE: Duration = Duration::from_secs(1);
/// A head that starts beside one that starts, and did not lead before, waits so long for the other one to.
pub const AFTER_YOU: Duration = Duration::from_secs(2);
/// The other head's state directory answers within this, or has failed.
const REMOTE: Duration = Duration::from_millis(500);
/// Between two attempts to decide while too few voters are reached.
const MINORITY_AGAIN: Duration = Duration::from_millis(200);
/// A head that is not in asks again after this.
const JOIN_AGAIN: Duration = Duration::from_millis(500);
/// A head whose layer above does not say whether it could follow asks to be let in all the same after this.
const LACKS_PATIENCE: Duration = Duration::from_secs(1);
/// Who leads looks at the voters so often while there is another head.
const SIGHT_EVERY: Duration = Duration::from_millis(400);
/// Voter drives that are gone so long are replaced.
const VOTER_GONE: Duration = Duration::from_secs(2);

/// What a member is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which head it is.
    pub me: HeadNo,
    /// Random name of this process, not 0.
    pub life: u64,
    /// What people call this head.
    pub name: String,
    /// This process.
    pub process: Process,
    /// Networks of the link.
    pub networks: usize,
    /// How long what may take.
    pub times: Times,
    /// For pauses between attempts.
    pub seed: u64,
}

/// What this head is to the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Not in (yet).
    Outside,
    /// In; the other one leads.
    Follower,
    /// In; it leads.
    Leader,
    /// It was in, and is not any more: the process is to end.
    Over,
}

/// Why a process is out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// The record of this epoch says so.
    Decided(u64),
    /// Most voter drives refuse it: the other head has shut it out.
    Fenced,
    /// It followed, had not yet all that it needs to lead, and the one that led is gone: that one is waited for.
    Behind,
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Do {
    /// By the link.
    Link(link::Do),
    /// On a drive, or in the own state directory; ends in `on_voted`. One after the other for each voter.
    Vote(Ask),
    /// In the own state directory, for the other head; ends in `on_voted_for`.
    VoteFor {
        /// Comes back: no other one has this number.
        number: u64,
        /// The other head's block, to be written first.
        write: Option<crate::slot::Slot>,
    },
    /// On a drive: write the own heartbeat, then read the other's; ends in `on_drive`.
    Heartbeat {
        /// Which drive.
        drive: Uuid,
        /// What to write.
        heartbeat: Heartbeat,
    },
    /// This head leads from now on. It may serve from a drive once the other head is shut out there.
    Lead {
        /// Why, if the other one led before.
        why: Option<Why>,
    },
    /// What had confirmed its fence when `on_fenced` was called may be served: nothing newer was decided meanwhile. A drive that does not
    /// know this head's key any more leaves that set before the key is registered there again, and comes back by the next `Serve`.
    Serve,
    /// Until then what drives answer may be passed on; None: for ever, there is no other head. At that time the other one may have been
    /// decided on, and may be about to put a leg out that this head still reads: see `fence::PUT_OUT`.
    Sight {
        /// By this head's clock.
        until: Option<Instant>,
    },
    /// This head is in, and follows.
    Follow,
    /// The other head was put out, and is to be shut off every drive; `on_fenced` when that is done.
    PutOut {
        /// Why.
        why: Why,
    },
    /// The other head is in, as a new process.
    LetIn,
    /// This process is out: it answers nothing more, and ends.
    End(Out),
    /// The layer above of the other head says this.
    Upper(Vec<u8>),
}

/// How a look at a voter drive failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotReached {
    /// It refuses this head.
    Fenced,
    /// It cannot be read or written.
    Failed,
}

/// A drive on which this head writes heartbeats.
#[derive(Clone, Copy, Debug, Default)]
struct DriveHeartbeat {
    asked: Option<Instant>,
    next: Option<Instant>,
    fails: Option<NotReached>,
}

/// How far this head is from serving. A command of its fence may have been on its way while the other head decided, and shut this one
/// out: such a one registers it again, and then all drives look as if it had won. So once they have confirmed, the voters are looked at:
/// what the other one decided before its fence is seen there, and what it decides later it has to fence later, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Serve {
    No,
    /// The drives have confirmed; the voters are to be looked at.
    Wanted,
    Looks,
    /// And nothing newer was decided.
    Looked,
}

/// The process at the other end of the link.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Peer {
    life: u64,
    /// It is not in, and asks to be: by this name.
    asks: Option<String>,
    /// It says that it could not follow, and why; None: it has not said anything of that, or that it could.
    lacks: Option<Vec<u8>>,
}

/// One head's part.
#[derive(Debug)]
pub struct Member {
    set: Settings,
    decider: Decider,
    watch: Watch,
    link: Link,
    /// What the layers above say to each other.
    outgoing: Outgoing,
    incoming: Incoming,
    part: Part,
    peer: Option<Peer>,
    started: Option<Instant>,
    /// The last turn.
    turned: Instant,
    /// When the next one was due at the latest.
    due: Option<Instant>,
    /// The last look at the voters did not reach most of them.
    minority: bool,
    heartbeats: u64,
    next_heartbeat: Instant,
    next_join: Instant,
    drives: BTreeMap<Uuid, DriveHeartbeat>,
    /// Drives that took a heartbeat of this head since that is in.
    taken: BTreeSet<Uuid>,
    /// Drives whose fences are being tried on this head, with how many trials have not ended: that they refuse says nothing, and they get no
    /// heartbeats. A drive that hangs ends its trial late, when the next one goes on.
    tried: BTreeMap<Uuid, u32>,
    /// Voters in the other head's directory that were asked, with when.
    remote: BTreeMap<u64, Instant>,
    /// What the process at the other end has asked of the own directory: its rounds, by numbers of ours, since the next process may be in
    /// the same round. And the last number.
    asked_here: BTreeMap<u64, u64>,
    last_asked_here: u64,
    /// Nothing is proposed before.
    retry: Instant,
    /// How it gives way to ballots of the other head.
    way: GivesWay,
    /// When what is being decided, or looked for, was begun.
    began: Instant,
    /// The last look began then that found nothing newer, of a head that leads while there is another one.
    looked: Option<Instant>,
    /// Something newer than what is known may be decided.
    doubt: bool,
    /// No drive that this head serves from lets the other head's last process in.
    fenced: bool,
    /// The layer above wants the other one out, whatever is heard of it.
    unwanted: Option<Why>,
    /// The other head has all files of this one.
    synced: bool,
    /// When it may be let in again.
    returns: Returns,
    /// Why this head could not follow; empty: it could. None: the layer above has not said.
    lacks: Option<Vec<u8>>,
    /// An operator wants this head to lead, whatever it lacks.
    forced: bool,
    /// An operator wants this head to be alone: the other one is to be none any more.
    released: bool,
    /// The epoch of the newest record that the own directory knows of.
    directory: u64,
    /// It knows of none, and nobody else has said so far that there is one.
    blank: bool,
    /// Changes of hosts and portals that the layer above has reported, and those that a decision was made for.
    changes: u64,
    marked: u64,
    /// The decision of this epoch is made for so many of them.
    marking: Option<(u64, u64)>,
    serve: Serve,
    /// Why the other one is being put out.
    why: Option<Why>,
    /// Drives that may vote, the best first; None until the layer above has set them.
    candidates: Option<Vec<Uuid>>,
    /// When a voter was first seen to be none of them.
    voter_gone: Option<Instant>,
    hosts: bool,
    prng: Prng,
    dos: Vec<Do>,
}

impl Member {
    /// A process that begins, and knows this to be decided.
    pub fn new(set: Settings, known: SystemRecord) -> Self {
        let decider = Decider::new(set.me, set.life, known.clone());
        Self {
            watch: Watch::new(set.times, set.networks, Instant(0)),
            link: Link::new(known.system, set.me, set.life, known.epoch, set.networks),
            decider,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            part: Part::Outside,
            peer: None,
            started: None,
            turned: Instant(0),
            due: None,
            minority: false,
            heartbeats: 0,
            next_heartbeat: Instant(0),
            next_join: Instant(0),
            drives: BTreeMap::new(),
            taken: BTreeSet::new(),
            tried: BTreeMap::new(),
            remote: BTreeMap::new(),
            asked_here: BTreeMap::new(),
            last_asked_here: 0,
            retry: Instant(0),
            way: GivesWay::default(),
            began: Instant(0),
            looked: None,
            doubt: false,
            fenced: false,
            unwanted: None,
            synced: false,
            returns: Returns::default(),
            lacks: None,
            forced: false,
            released: false,
            directory: u64::MAX,
            blank: false,
            changes: 0,
            marked: 0,
            marking: None,
            serve: Serve::No,
            why: None,
            candidates: None,
            voter_gone: None,
            hosts: true,
            prng: Prng::new(set.seed),
            dos: vec![],
            set,
        }
    }
    /// The newest record that the own state directory knows of, decided or accepted, is of this epoch.
    pub fn on_directory(&mut self, epoch: u64) {
        self.directory = epoch;
    }
    /// The own state directory knows of no record, as where a `system create` was cut off, and as where its files were lost: this head does
    /// not begin a system that may be there until `on_nothing_found`, or an operator says so.
    pub fn on_blank(&mut self) {
        self.blank = true;
    }
    /// Whether it waits for that.
    pub fn is_blank(&self) -> bool {
        self.blank
    }
    /// No drive knows of a record either.
    pub fn on_nothing_found(&mut self) {
        self.blank = false;
    }
    /// A drive that this head can use says that this was decided.
    pub fn on_found(&mut self, now: Instant, record: &SystemRecord) {
        if self.decider.learn(record) {
            self.on_known(now);
        }
    }
    /// What it is.
    pub fn part(&self) -> Part {
        self.part
    }
    /// How long what may take.
    pub fn times(&self) -> &Times {
        &self.set.times
    }
    /// Which head it is.
    pub fn me(&self) -> HeadNo {
        self.set.me
    }
    /// Random name of this process.
    pub fn life(&self) -> u64 {
        self.set.life
    }
    /// What is decided, as far as it knows.
    pub fn known(&self) -> &SystemRecord {
        self.decider.known()
    }
    /// Whether the other head is met by some network.
    pub fn is_linked(&self) -> bool {
        self.link.is_up()
    }
    /// Of each network of the link: whether it meets the other head, and when that one's last heartbeat came.
    pub fn networks(&self) -> Vec<(bool, Option<Instant>)> {
        (0..self.set.networks).map(|path| (self.link.is_met(path), self.watch.heartbeat_by(path))).collect()
    }
    /// When a drive was asked that showed a new heartbeat of the other head.
    pub fn heartbeat_on_drives(&self) -> Option<Instant> {
        self.watch.heartbeat_on_drives()
    }
    /// The other head is met, and is not in either.
    pub fn meets_outsider(&self) -> bool {
        self.link.is_up() && self.peer.as_ref().is_some_and(|p| p.asks.is_some())
    }
    /// The other head's last heartbeat.
    pub fn last_heartbeat(&self) -> Option<&Heartbeat> {
        self.watch.last()
    }
    /// The other head's process, as far as it has said: for drives that are files.
    pub fn other_process(&self) -> Option<Process> {
        self.watch.last().map(|b| b.process)
    }
    /// What is waited for of the other head may be late by so much, as it and this head's own turns were lately.
    pub fn slack(&self, now: Instant) -> Duration {
        self.watch.slack(now)
    }
    /// Whether the voters were asked, and most of them refused or stay away. A head that did not come to ask has not lost them.
    pub fn misses_voters(&self, now: Instant) -> bool {
        let stays_away = self.decider.is_busy() && now.since(self.began) >= REMOTE;
        self.minority || stays_away || planted(Bug::LoadIsDeath)
    }
    /// Whether the other head is in, and this head's words to it count.
    pub fn follower_is_in(&self) -> bool {
        self.part == Part::Leader && self.known().is_in(self.set.me.other())
    }
    /// Voter drives that this head reaches.
    pub fn reaches(&self) -> u16 {
        self.drives.values().filter(|d| d.next.is_some() && d.fails.is_none()).count() as u16
    }

    /// A network of the link has a connection.
    pub fn on_up(&mut self, path: usize) {
        self.link.on_up(path);
    }
    /// A network's connection has ended, or none can be had.
    pub fn on_down(&mut self, path: usize, end: End) {
        if end != End::Refused {
            self.link.on_down(path);
        }
        self.watch.on_end(path, end);
    }
    /// Bytes came by a network, in order.
    pub fn on_bytes(&mut self, path: usize, bytes: &[u8]) {
        self.link.on_bytes(path, bytes);
    }
    /// A voter has done what was asked of it; None: it failed.
    pub fn on_voted(&mut self, now: Instant, voter: Voter, round: u64, found: Option<Found>) {
        let before = self.known().epoch;
        let outcome = self.decider.on_done(voter, round, found);
        let reported = matches!(outcome, Some(Outcome::Decided(_)));
        if self.known().epoch > before && !reported && !planted(Bug::LookKeptSecret) {
            // A look that finds something newer goes on behind it; what it found counts at once.
            self.on_known(now);
        }
        self.on_outcome(now, outcome);
    }
    /// The own state directory has done what the other head asked of it. Another process of that head is not told: in the round that it has
    /// by the same number something else is to be written.
    pub fn on_voted_for(&mut self, number: u64, found: Option<Found>) {
        if let Some(round) = self.asked_here.remove(&number) {
            self.send_message(&Message::Voted { round, found: found.map(Box::new) });
        }
    }
    /// A heartbeat was written to a drive and the other's read there; None: there is none, or it is just being written.
    pub fn on_drive(&mut self, now: Instant, drive: Uuid, found: Result<Option<Heartbeat>, NotReached>) {
        let Some(d) = self.drives.get_mut(&drive) else { return };
        let Some(asked) = d.asked.take() else { return };
        d.next = Some((asked + self.set.times.drive_every).max(now));
        d.fails = found.err();
        if found.is_ok() {
            self.taken.insert(drive);
        }
        if let Ok(heartbeat) = found {
            let others =
                |b: &Heartbeat| b.head == self.set.me.other() && b.system == self.decider.known().system;
            let heartbeat = heartbeat.filter(others);
            self.doubt |= heartbeat.is_some_and(|b| b.epoch > self.decider.known().epoch);
            self.watch.on_drive(asked, heartbeat);
        }
        // One that is let in is not registered everywhere at once: who refuses it then has not shut it out.
        let refuses = |(drive, d): &(&Uuid, &DriveHeartbeat)| {
            self.taken.contains(drive)
                && d.fails == Some(NotReached::Fenced)
                && !self.tried.contains_key(*drive)
        };
        let refuse = self.drives.iter().filter(refuses).count();
        if refuse * 2 > self.drives.len() && self.is_in() && !planted(Bug::FencedGoesOn) {
            self.end(Out::Fenced);
        }
    }
    /// A trial of this drive's fence begins on this head: the drive gets no heartbeats meanwhile.
    pub fn on_trial(&mut self, drive: Uuid) {
        *self.tried.entry(drive).or_default() += 1;
    }
    /// It has ended.
    pub fn on_tried(&mut self, drive: Uuid) {
        let Some(trials) = self.tried.get_mut(&drive) else { return };
        *trials -= 1;
        if *trials == 0 {
            self.tried.remove(&drive);
            // What it said meanwhile is over: its next heartbeat says more.
            if let Some(d) = self.drives.get_mut(&drive) {
                d.fails = None;
            }
        }
    }
    /// Whether a heartbeat to this drive is under way.
    pub fn heartbeat_is_under_way_on(&self, drive: Uuid) -> bool {
        self.drives.get(&drive).is_some_and(|d| d.asked.is_some())
    }
    /// No drive that this head is to serve from lets the other head's last process in: it may be let in as a new one. Said again when
    /// drives confirm that were late.
    pub fn on_fenced(&mut self) {
        self.fenced = true;
        self.on_confirmed();
    }
    /// The other head did not confirm in time what it must have: it is to be put out.
    pub fn on_silent(&mut self) {
        self.wants_out(Why::Silent);
    }
    /// The other head's process that is in is to be put out. Where none is, that is done: it says nothing of the next one.
    fn wants_out(&mut self, why: Why) {
        if self.known().is_in(self.set.me.other()) {
            self.unwanted = Some(why);
        }
    }
    /// The other head has lost its path to a drive that this one reaches, and has begun something there: it is to be put out, also where
    /// it leads.
    pub fn on_path_lost(&mut self) {
        // Who is not to lead would only end.
        if self.part == Part::Leader || self.part == Part::Follower && !self.is_behind() {
            self.wants_out(Why::LostPath);
        }
    }
    /// The follower has all that it needs to take over.
    pub fn on_synced(&mut self) {
        self.synced = true;
    }
    /// What the own directory says of hosts or portals has changed: a decision is made for that, so that an older copy is known by
    /// not knowing of it. Its number, for `has_marked`.
    pub fn on_changed(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }
    /// Whether that decision is made.
    pub fn has_marked(&self, change: u64) -> bool {
        self.marked >= change
    }
    /// An operator wants this head to lead, although the other one alone has the latest hosts and portals; or
    /// wants it no more.
    pub fn lead_as_it_is(&mut self, forced: bool) {
        self.forced = forced;
    }
    /// An operator wants the other head out.
    pub fn put_out(&mut self) {
        self.wants_out(Why::Asked);
    }
    /// An operator wants the other head back, however often it was put out.
    pub fn return_at_once(&mut self) {
        self.returns = Returns::default();
    }
    /// Whether this head could follow: empty; or why not, for the layer above of the other head (`other_lacks`). A head that could not is
    /// not let in.
    pub fn on_lacks(&mut self, why: Vec<u8>) {
        if self.lacks.as_ref() != Some(&why) {
            self.lacks = Some(why);
            self.next_join = Instant(0);
        }
    }
    /// Why the other head, which is not in, could not follow, as its layer above says.
    pub fn other_lacks(&self) -> Option<&[u8]> {
        self.peer.as_ref().and_then(|p| p.lacks.as_deref())
    }
    /// The other head is put out again and again for the same cause: it is let in then at the earliest.
    pub fn lets_in_at(&self) -> Option<Instant> {
        self.returns.not_before()
    }
    /// An operator wants there to be no other head any more. It is put out if it is in, and struck from the record once no drive
    /// that this head serves from lets it in.
    pub fn release(&mut self) {
        self.released = true;
        self.wants_out(Why::Asked);
    }
    /// That is wanted, and not done yet.
    pub fn releases(&self) -> bool {
        self.released
    }
    /// Drives have confirmed their fences from which this head is to serve, now or besides others: `Do::Serve` follows once the voters say
    /// that nothing newer is decided.
    pub fn on_confirmed(&mut self) {
        let unlooked = planted_if(Bug::ServedUnlooked, || self.part == Part::Leader);
        self.serve = if unlooked { Serve::Looked } else { Serve::Wanted };
    }
    /// Drives that may vote, the best first. The leader chooses among them.
    pub fn on_candidates(&mut self, drives: Vec<Uuid>) {
        self.candidates = Some(drives);
    }
    /// Whether this head has a network on which hosts come.
    pub fn on_hosts(&mut self, hosts: bool) {
        self.hosts = hosts;
    }
    /// Sends something to the layer above of the other head, in order, as its process takes it; another process of it gets nothing of that.
    ///
    /// # Errors
    /// More would wait than may (`parts::WHOLE_MAX`): nothing is sent.
    pub fn send(&mut self, bytes: Vec<u8>) -> Result<(), link::Full> {
        if self.outgoing.push(bytes) { Ok(()) } else { Err(link::Full) }
    }

    /// What is to be done now. Called whenever something has happened, and at `next_deadline`.
    pub fn turn(&mut self, now: Instant) -> Vec<Do> {
        if self.part != Part::Over {
            self.go_on(now);
        }
        let mut dos = core::mem::take(&mut self.dos);
        if self.part == Part::Over && !planted(Bug::OverGoesOn) {
            // Whatever this turn had begun before it learned that is not done any more.
            dos.retain(|d| matches!(d, Do::End(_)));
        } else {
            self.send_parts();
            dos.extend(self.link.dos().into_iter().map(Do::Link));
        }
        self.due = self.next_deadline();
        dos
    }
    /// When to call `turn` again, if nothing happens before.
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.part == Part::Over {
            return None;
        }
        // What is over by the last turn waits for something else than time.
        let remote = self.remote.values().map(|asked| *asked + REMOTE);
        let drives = self.drives.values().filter(|d| d.asked.is_none()).filter_map(|d| d.next);
        let waits = [Some(self.retry), self.watch.next_deadline()].into_iter().flatten();
        let waits = waits.chain(self.returns.not_before()).chain(self.way.looks_at());
        let later = waits.chain(remote).chain(drives).filter(|at| *at > self.turned);
        later.chain(self.next_look().filter(|at| *at > self.turned)).chain([self.next_heartbeat]).min()
    }

    fn is_in(&self) -> bool {
        matches!(self.part, Part::Follower | Part::Leader)
    }
    fn end(&mut self, out: Out) {
        if self.part != Part::Over {
            self.part = Part::Over;
            self.dos.push(Do::End(out));
        }
    }
    fn send_message(&mut self, message: &Message) {
        // A link that takes nothing any more is one that brings no heartbeats either.
        let _ = self.link.send(message.encode());
    }
    /// Sends what waits of the layer above, as much as may be under way. Not before the link's news are heard: it may have met another
    /// process, which is not to get the rest of what was begun for the one before.
    fn send_parts(&mut self) {
        while self.link.unacknowledged() + PART_MAX < WINDOW {
            let Some(part) = self.outgoing.take() else { return };
            self.link.send(part.encode()).expect("the window of the link is larger");
        }
    }
    fn go_on(&mut self, now: Instant) {
        self.turned = now;
        if let Some(due) = self.due.filter(|due| now > *due) {
            self.watch.on_late(now, now.since(due));
        }
        if self.started.is_none() {
            self.started = Some(now);
            self.watch = Watch::new(self.set.times, self.set.networks, now);
        }
        if self.watch.on_turn(now) && self.is_in() {
            // Who was away may be out.
            self.doubt = true;
        }
        for heard in self.link.heard() {
            self.hear(now, heard);
        }
        self.send_heartbeats(now);
        let over = |asked: &Instant| now >= *asked + REMOTE;
        let late: Vec<u64> = self.remote.iter().filter(|(_, a)| over(a)).map(|(r, _)| *r).collect();
        for round in late {
            self.remote_failed(now, round);
        }
        self.propose(now);
        self.ask(now);
        if self.serve == Serve::Looked && self.part == Part::Leader {
            self.serve = Serve::No;
            self.dos.push(Do::Serve);
        }
    }
    fn hear(&mut self, now: Instant, heard: Heard) {
        match heard {
            Heard::Met { hello, fresh, .. } => {
                self.doubt |= hello.epoch > self.known().epoch;
                if fresh {
                    self.incoming.clear();
                    self.asked_here.clear();
                    if self.peer.is_some() {
                        self.outgoing.clear();
                    }
                    self.peer = Some(Peer { life: hello.life, ..Peer::default() });
                    for round in self.remote.keys().copied().collect::<Vec<_>>() {
                        self.remote_failed(now, round);
                    }
                    self.next_join = now;
                }
                // A decision without any network did not reach the other head, and a head that is shut off the drives learns it only here.
                if fresh || hello.epoch < self.known().epoch && !planted(Bug::EpochNotTold) {
                    let known = self.known().clone();
                    self.send_message(&Message::Record(Box::new(known)));
                }
            }
            Heard::Heartbeat { path, heartbeat } => {
                self.doubt |= heartbeat.epoch > self.known().epoch;
                self.watch.on_heartbeat(now, path, heartbeat);
            }
            Heard::Message(bytes) => {
                // Others are of a later version: a sender asks for our version before it sends what we must understand.
                if let Ok(message) = Message::decode(self.set.me.other(), &bytes) {
                    self.on_message(now, message);
                }
            }
        }
    }
    fn on_message(&mut self, now: Instant, message: Message) {
        match message {
            Message::Join { name } => {
                if let Some(peer) = &mut self.peer {
                    peer.asks = Some(name);
                }
            }
            Message::Lacks(why) => {
                let lacks = Some(why).filter(|why| !why.is_empty());
                if let Some(peer) = &mut self.peer {
                    if peer.lacks.is_some() && lacks.is_none() {
                        // What kept it from following is mended.
                        self.returns = Returns::default();
                    }
                    peer.lacks = lacks;
                }
            }
            Message::Record(record) => {
                if self.decider.learn(&record) {
                    self.on_known(now);
                }
            }
            Message::Vote { round, write } => {
                self.last_asked_here += 1;
                self.asked_here.insert(self.last_asked_here, round);
                self.dos.push(Do::VoteFor { number: self.last_asked_here, write: write.map(|w| *w) });
            }
            Message::Voted { round, found } => {
                if self.remote.remove(&round).is_some() {
                    let voter = Voter::Directory(self.set.me.other());
                    self.on_voted(now, voter, round, found.map(|f| *f));
                }
            }
            Message::Part(part) => self.incoming.part(&part),
            Message::Upper(part) => {
                if let Some(whole) = self.incoming.last(part) {
                    self.dos.push(Do::Upper(whole));
                }
            }
        }
    }
    fn remote_failed(&mut self, now: Instant, round: u64) {
        self.remote.remove(&round);
        let found = planted(Bug::SilentVoterCounts).then_some([None, None]);
        self.on_voted(now, Voter::Directory(self.set.me.other()), round, found);
    }

    /// Sends heartbeats by the link and on the voter drives, each as often as it is due.
    fn send_heartbeats(&mut self, now: Instant) {
        let heartbeat = Heartbeat {
            system: self.known().system,
            head: self.set.me,
            hosts: self.hosts,
            reaches: self.reaches(),
            process: self.set.process,
            life: self.set.life,
            count: self.heartbeats + 1,
            epoch: self.known().epoch,
            slack: self.watch.slack(now),
        };
        let mut sent = false;
        if now >= self.next_heartbeat {
            self.next_heartbeat = now + self.set.times.link_every;
            self.link.send_heartbeat(&heartbeat);
            sent = true;
            let started = self.started.is_some_and(|s| now >= s + LACKS_PATIENCE);
            let may_ask = self.lacks.is_some() || started;
            if self.part == Part::Outside && may_ask && now >= self.next_join && self.link.is_up() {
                self.next_join = now + JOIN_AGAIN;
                if let Some(why) = self.lacks.clone() {
                    self.send_message(&Message::Lacks(why));
                }
                self.send_message(&Message::Join { name: self.set.name.clone() });
            }
        }
        let voters: Vec<Uuid> = self.known().voters.iter().filter_map(|v| v.drive()).collect();
        self.drives.retain(|d, _| voters.contains(d));
        // Who is not in leaves the drives alone while the link may bring what it wants to know.
        let alone = !self.link.is_up() && self.started.is_some_and(|s| now >= s + self.set.times.silence);
        if self.is_in() || alone {
            for drive in voters {
                let d = self.drives.entry(drive).or_default();
                let spared = self.tried.contains_key(&drive);
                if !spared && d.asked.is_none() && d.next.is_none_or(|at| now >= at) {
                    d.asked = Some(now);
                    self.dos.push(Do::Heartbeat { drive, heartbeat });
                    sent = true;
                }
            }
        }
        self.heartbeats += u64::from(sent);
    }

    /// Asks voters, until there is nothing to ask.
    fn ask(&mut self, now: Instant) {
        loop {
            let asks = self.decider.asks();
            if asks.is_empty() {
                return;
            }
            for ask in asks {
                if ask.voter != Voter::Directory(self.set.me.other()) {
                    self.dos.push(Do::Vote(ask));
                } else if self.link.is_up() {
                    self.remote.insert(ask.round, now);
                    self.send_message(&Message::Vote { round: ask.round, write: ask.write.map(Box::new) });
                } else {
                    self.on_voted(now, ask.voter, ask.round, None);
                }
            }
        }
    }
    fn on_outcome(&mut self, now: Instant, outcome: Option<Outcome>) {
        match outcome {
            None => {}
            Some(Outcome::Decided(_)) => self.on_known(now),
            Some(Outcome::Outbid) => {
                // The other one decides something: what that is will be seen.
                self.doubt = true;
                self.retry = now + self.way.outbid(Duration::from_millis(20 + self.prng.below(60)));
            }
            Some(Outcome::Minority { .. }) => {
                self.minority = true;
                // What was to be known is not known yet.
                self.doubt = true;
                self.retry = now + MINORITY_AGAIN;
            }
            Some(Outcome::Looked) => {
                self.minority = false;
                if !self.decider.is_contested() {
                    if self.serve == Serve::Looks {
                        self.serve = Serve::Looked;
                    }
                    self.sees();
                }
                // Somebody has begun a ballot: what came of it is known by one of our own, for a record that changes nothing. The head that leads
                // is left the time to end its own: it says then what was decided.
                if self.decider.is_contested() {
                    let is_led = self.part == Part::Follower && self.link.is_up();
                    if is_led && self.way.spares(now) {
                        self.doubt = true;
                    } else {
                        self.began = now;
                        self.decider.propose(self.decider.known().next());
                    }
                }
            }
        }
    }
    /// Something is decided that was not known before.
    fn on_known(&mut self, now: Instant) {
        self.minority = false;
        (self.way, self.blank) = (GivesWay::default(), false);
        let (me, other) = (self.set.me, self.set.me.other());
        let known = self.known().clone();
        self.link.knows(known.epoch);
        if self.link.is_up() {
            self.send_message(&Message::Record(Box::new(known.clone())));
        }
        if self.part == Part::Over {
            return;
        }
        if let Some((epoch, changes)) = self.marking.take_if(|(epoch, _)| known.epoch >= *epoch)
            && known.changed == epoch
        {
            self.marked = changes;
        }
        let was = self.part;
        let in_as = known.is_in_as(me, self.set.life) || known.is_in(me) && planted(Bug::AnyLifeIsIn);
        self.part = match (in_as, known.leader == me) {
            (true, true) => Part::Leader,
            (true, false) => Part::Follower,
            (false, _) => Part::Outside,
        };
        // It may have been let in and put out again before it heard of the first.
        let was_in = self.part == Part::Outside && known.head(me).life == self.set.life;
        if was == Part::Outside && self.part != was {
            self.taken.clear();
        }
        let why = self.why.take();
        let there = known.head(other).state != HeadState::None;
        let new_sight = Self::serves(self.part) && (was != self.part || there != self.looked.is_some());
        self.unwanted = self.unwanted.filter(|_| known.is_in(other));
        self.released &= known.head(other).state != HeadState::None;
        match (was, self.part) {
            (_, Part::Outside) if (was != Part::Outside || was_in) && planted(Bug::OutGoesOn) => {
                self.part = was
            }
            (_, Part::Outside) if was != Part::Outside || was_in => self.end(Out::Decided(known.epoch)),
            (Part::Outside | Part::Follower, Part::Leader) => {
                self.fenced = false;
                self.serve = Serve::No;
                self.dos.push(Do::Lead { why });
            }
            (Part::Outside, Part::Follower) => self.dos.push(Do::Follow),
            (Part::Leader, Part::Leader) => {
                let there = known.is_in(other);
                if there && self.fenced {
                    self.fenced = false;
                    self.synced = false;
                    self.returns.is_in(now);
                    self.dos.push(Do::LetIn);
                } else if let (false, Some(why)) = (there, why) {
                    self.returns.is_out(now, why);
                    self.fenced = false;
                    self.serve = Serve::No;
                    self.dos.push(Do::PutOut { why });
                }
            }
            _ => {}
        }
        if new_sight {
            // The voters are looked at before anything else is passed on.
            self.looked = there.then_some(Instant(0));
            self.dos.push(Do::Sight { until: there.then_some(now) });
        }
        if known.is_in(other) && self.peer.as_ref().is_none_or(|p| p.life == known.head(other).life) {
            if let Some(peer) = &mut self.peer {
                peer.asks = None;
            }
            if was != self.part {
                // It has as long as anybody to say its first word.
                self.watch.on_pause(now);
            }
        }
    }
}
