//! The system that this head is one of two of.

pub(crate) mod far;
mod processes;
mod reach;
pub(crate) mod trials;

use crate::path::far::wire::Pairing;
use crate::path::far::{FarSetup, FarSide};
use crate::peer::{OutSince, PeerNews, PeerWork, SystemSettings};
use crate::steward::context::open::OpenDrive;
use crate::steward::context::system::processes::Processes;
use base::fence::{Process, Registrants};
use base::{Bug, DriveId, Duration, FenceKey, Instant, Uuid, planted};
use cluster::link::{Do, Fault};
use cluster::member::{self, NotReached};
use cluster::{HeadNo, HeadState, Heartbeat, Member, Part, SystemRecord, Voter};
use core::net::SocketAddr;
use far::Far;
use finding::{Event, OutReason, StateFault, Why};
use reach::Reach;
pub(crate) use reach::ReachNews;
use std::collections::{BTreeMap, BTreeSet};
use trials::Trials;

/// What the Steward knows of its system.
pub(crate) struct SystemContext {
    member: Member,
    /// Something happened of which the member has not been told what to do.
    news: bool,
    /// The connection of each network.
    paths: Vec<Option<u64>>,
    /// Where the first head listens on each of them.
    networks: Vec<SocketAddr>,
    /// See `SystemSettings`.
    both_serve: bool,
    /// The secret of the path that came up last.
    secret: Option<[u8; 32]>,
    /// By what they were opened.
    standby: BTreeMap<String, OpenDrive>,
    /// See `asked`.
    asked: BTreeSet<String>,
    /// Why the other head is refused whenever it comes by the link, since they met last.
    refused: Option<Fault>,
    /// Voters that do something just now.
    busy: BTreeSet<Voter>,
    /// Processes of the other head, by their lives.
    processes: Processes,
    /// Drives that have not confirmed that the other head is shut out.
    late: BTreeMap<DriveId, String>,
    /// Until when a takeover waits for drives that have not, with the pools that need them; and whether it was told that they are late.
    waited_for: BTreeMap<DriveId, (Instant, bool)>,
    /// What the other head was when an open drive confirmed that nobody else may write there.
    confirmed: BTreeMap<DriveId, Standing>,
    /// Drives of pools that are open, by their labels: they may be voters.
    drives: BTreeMap<Uuid, DriveId>,
    /// Those that were let go of, by their labels: the kernel may still hold something on them.
    leaving: Vec<(Uuid, DriveId)>,
    /// When this head was decided to lead, as far as it knows.
    led: Instant,
    /// Until when what drives answer may be passed on; None: for ever.
    sight: Option<Instant>,
    /// It was said that this time is over.
    blind: bool,
    /// It was said that the state directory is an older copy.
    old_directory: bool,
    /// How often the member has said that what is confirmed may be served.
    serves: u64,
    /// Files of the state directory that were sent to the follower, and that it has.
    sent: u64,
    had: u64,
    /// An operator has said that the other head is switched off which this epoch let in.
    off: Option<u64>,
    /// Somebody changes files that are shared.
    sharing: bool,
    /// The epoch that was kept for the next start.
    kept: u64,
    latest: [bool; 2],
    /// Drives that may vote, as the member was told.
    offered: Vec<Uuid>,
    /// Connections of hosts that the leader has told of: our address, and theirs.
    connections: Vec<(SocketAddr, SocketAddr)>,
    /// Files that came from the leader, in order, to be written here.
    came: std::collections::VecDeque<Vec<u8>>,
    trials: Trials,
    reach: Reach,
    far: Far,
    /// When a head was last to go on alone because one of both had lost a path, and the other head's epoch then.
    path_lost: Option<(Instant, u64)>,
    /// Since when the other head is out, if it was in while this process was.
    out: Option<OutSince>,
    said: Option<Event>,
    /// What the follower could not keep that it must have.
    has_not: Option<Why>,
    /// A file that the follower does not get, as it cannot be read here or is not whole.
    unsent: Option<String>,
}

/// A head that leads says so once it has not seen most voters for so long behind the time for which it knew.
const BLIND: Duration = Duration::from_millis(500);
/// A head's state, and the epoch that let it in last.
pub(crate) type Standing = (HeadState, u64);

impl SystemContext {
    /// `known` is decided, and the state directory knows of nothing newer than what is of the epoch `newest`.
    pub fn new(settings: SystemSettings, life: u64, seed: u64, (known, newest): (SystemRecord, u64)) -> Self {
        let SystemSettings { me, name, networks, process, times, said, both_serve, .. } = settings;
        let (kept, latest) = (known.epoch, known.latest);
        let count = networks.len();
        let set = member::Settings { me, life, name, process, networks: count, times, seed };
        let mut member = Member::new(set, known);
        member.on_directory(newest);
        Self {
            member,
            news: true,
            paths: vec![None; count],
            networks,
            both_serve,
            secret: None,
            standby: BTreeMap::new(),
            asked: BTreeSet::new(),
            refused: None,
            busy: BTreeSet::new(),
            processes: Processes::default(),
            late: BTreeMap::new(),
            waited_for: BTreeMap::new(),
            confirmed: BTreeMap::new(),
            drives: BTreeMap::new(),
            leaving: vec![],
            led: Instant(0),
            sight: None,
            blind: false,
            old_directory: false,
            serves: 0,
            sent: 0,
            had: 0,
            off: None,
            sharing: false,
            kept,
            latest,
            offered: vec![],
            connections: vec![],
            came: Default::default(),
            path_lost: None,
            trials: Trials::default(),
            reach: Reach::default(),
            far: Far::default(),
            out: None,
            said,
            has_not: None,
            unsent: None,
        }
    }
    pub fn member(&self) -> &Member {
        &self.member
    }
    /// The member, to be told something.
    pub fn tell(&mut self) -> &mut Member {
        self.news = true;
        &mut self.member
    }
    /// Whether something happened since the member's last turn.
    pub fn has_news(&self) -> bool {
        self.news
    }
    /// The member's turn.
    pub fn turn(&mut self, now: Instant) -> Vec<member::Do> {
        self.news = false;
        let dos = self.member.turn(now);
        if self.member.is_linked() {
            self.refused = None;
        }
        if let Some(Heartbeat { life, process, .. }) = self.member.last_heartbeat().copied() {
            let on_record = self.member.known().head(self.member.me().other()).life;
            self.processes.meet(life, process, on_record);
        }
        dos
    }
    /// Something of the link.
    pub fn on_peer(&mut self, news: PeerNews) {
        match news {
            PeerNews::Up { path, number, secret } if path < self.paths.len() => {
                (self.paths[path], self.secret) = (Some(number), Some(secret));
                self.tell().on_up(path);
            }
            PeerNews::Bytes { path, number, bytes } if self.paths.get(path) == Some(&Some(number)) => {
                self.tell().on_bytes(path, &bytes);
            }
            PeerNews::Down { path, end } if path < self.paths.len() => {
                if end != cluster::watch::End::Refused {
                    self.paths[path] = None;
                }
                self.tell().on_down(path, end);
            }
            PeerNews::Up { .. } | PeerNews::Bytes { .. } | PeerNews::Down { .. } => {}
        }
    }
    /// How this head's shards meet those of the other one, of which there are so many. None: it is not in.
    pub fn far_setup(&self, meeting: u32, shards: u16, secret: [u8; 32]) -> Option<FarSetup> {
        let (record, me) = (self.member.known(), self.member.me());
        let [first, second] = [record.head(me), record.head(me.other())];
        let both = record.is_in(me) && record.is_in(me.other());
        // Shards have the ports behind that of the link.
        let first_shard = |a: &SocketAddr| SocketAddr::new(a.ip(), a.port().wrapping_add(1));
        let addresses: Vec<SocketAddr> = self.networks.iter().map(first_shard).collect();
        let side = match me {
            HeadNo::A => FarSide::Listens(addresses),
            HeadNo::B => FarSide::Dials(addresses),
        };
        let pairing =
            Pairing { secret, lives: [first.life, second.life], epoch: first.since.max(second.since) };
        both.then_some(FarSetup { meeting, shards, pairing, side })
    }
    /// Whether shards of both heads take part.
    pub fn both_serve(&self) -> bool {
        self.both_serve
    }
    /// The secret of a path that came up.
    pub fn secret(&self) -> Option<[u8; 32]> {
        self.secret
    }
    /// A network of the link is closed. True: for a reason that lasts, and that was not known.
    pub fn closes(&mut self, why: Fault) -> bool {
        why.lasts() && !self.member.is_linked() && self.refused.replace(why) != Some(why)
    }
    /// Why the other head is refused whenever it comes by the link.
    pub fn refused(&self) -> Option<Fault> {
        self.refused
    }
    /// Work of the link, with the connection that it is for; None: that one is gone.
    pub fn work(&self, what: Do) -> Option<PeerWork> {
        let (Do::Send { path, .. } | Do::Close { path, .. }) = &what;
        let number = self.paths.get(*path).copied().flatten()?;
        Some(PeerWork { number, what })
    }
    pub fn part(&self) -> Part {
        self.member.part()
    }

    /// Under which key this head is registered with drives.
    pub fn own_key(&self) -> FenceKey {
        let record = self.member.known();
        let me = self.member.me();
        if record.is_in_as(me, self.member.life()) {
            record.key(me).expect("who is in was let in")
        } else {
            record.key_outside(me)
        }
    }
    /// The key of the other head, if it is to be shut out, and its process on this machine as far as it is known.
    pub fn victim(&self) -> Option<(FenceKey, Option<Process>)> {
        let (record, other) = (self.member.known(), self.member.me().other());
        let key = record.key(other).filter(|_| !record.is_in(other))?;
        Some((key, self.processes.of(record.head(other).life)))
    }
    /// The key of the other head, if it is in.
    pub fn rival(&self) -> Option<FenceKey> {
        let (record, other) = (self.member.known(), self.member.me().other());
        record.key(other).filter(|_| record.is_in(other))
    }
    /// Trials of fences.
    pub fn tried(&self) -> &Trials {
        &self.trials
    }
    /// The same, to be changed.
    pub fn trials(&mut self) -> &mut Trials {
        &mut self.trials
    }

    /// The follower could not keep what it must have.
    pub fn follower_has_not(&mut self, why: Why) {
        self.has_not = Some(why);
        self.member.on_silent();
    }
    pub fn has_not(&self) -> Option<&Why> {
        self.has_not.as_ref()
    }
    /// A file cannot be sent to the follower, or all can.
    pub fn cannot_send(&mut self, file: Option<String>) {
        self.unsent = file;
    }
    /// A file that the follower does not get.
    pub fn unsent(&self) -> Option<&str> {
        self.unsent.as_deref()
    }
    /// Why the other head, which is not in, could not follow, as it says.
    pub fn other_lacks(&self) -> Option<StateFault> {
        let text = core::str::from_utf8(self.member.other_lacks()?).ok()?;
        finding::from_text(text)
    }
    /// The other head was put out, or None: it was let in.
    pub fn goes_out(&mut self, out: Option<OutSince>) {
        if out.is_none() {
            self.has_not = None;
        }
        self.out = out;
    }
    /// What the process before said last.
    pub fn take_said(&mut self) -> Option<Event> {
        self.said.take()
    }
    /// Since when it is out, and why, as long as it is.
    pub fn out(&self) -> Option<&OutSince> {
        let state = self.member.known().head(self.member.me().other()).state;
        self.out.as_ref().filter(|_| state == cluster::HeadState::Out)
    }

    /// Whether the other head's process, which is out, was well and hears of it: it lets go of its drives by itself.
    pub fn other_lets_go(&self) -> bool {
        let hears = |out: &OutSince| {
            matches!(out.why, OutReason::Asked | OutReason::NotKept { .. } | OutReason::LostPath)
        };
        self.member.releases() || self.out().is_some_and(hears)
    }

    /// Drives that each head reaches.
    pub fn reached(&self) -> &Reach {
        &self.reach
    }
    /// The same, to be changed.
    pub fn reach(&mut self) -> &mut Reach {
        &mut self.reach
    }

    /// Shards that take part for the other head, or of the other head for this one.
    pub fn far(&self) -> &Far {
        &self.far
    }
    /// The same, to be changed.
    pub fn far_mut(&mut self) -> &mut Far {
        &mut self.far
    }

    /// A voter does something from now on.
    pub fn takes_voter(&mut self, voter: Voter) {
        self.busy.insert(voter);
    }
    pub fn is_free(&self, voter: Voter) -> bool {
        !self.busy.contains(&voter)
    }
    pub fn frees_voter(&mut self, voter: Voter) {
        self.busy.remove(&voter);
    }
    pub fn on_drive(&mut self, now: Instant, drive: Uuid, found: Result<Option<Heartbeat>, NotReached>) {
        self.tell().on_drive(now, drive, found);
    }

    pub fn standby(&self) -> &BTreeMap<String, OpenDrive> {
        &self.standby
    }
    pub fn stands_by(&mut self, spec: String, drive: OpenDrive) {
        self.is_open(drive.label.drive, drive.id);
        self.standby.insert(spec, drive);
    }
    /// Those drives that have said what is decided, to a head whose state directory does not.
    pub fn asked(&self) -> &BTreeSet<String> {
        &self.asked
    }
    pub fn asks(&mut self, spec: &str) {
        self.asked.insert(spec.into());
    }
    /// A drive that is open already, for who would open it.
    pub fn take_standby(&mut self, spec: &str) -> Option<OpenDrive> {
        self.standby.remove(spec)
    }

    /// A drive of a pool is open.
    pub fn is_open(&mut self, uuid: Uuid, drive: DriveId) {
        self.drives.insert(uuid, drive);
    }
    /// It is let go of. `leaves`: whether the kernel still holds something on one that was.
    pub fn is_closed(&mut self, drive: DriveId, leaves: impl Fn(DriveId) -> bool) {
        self.leaving.retain(|(_, id)| leaves(*id));
        self.leaving.extend(self.drives.extract_if(.., |_, id| *id == drive));
        self.confirmed.remove(&drive);
        self.late.remove(&drive);
        self.waited_for.remove(&drive);
        self.reach.is_closed(drive);
    }
    /// Under which numbers the drive with this label was let go of: the kernel may still hold something on it.
    pub fn leaving(&self, uuid: Uuid) -> Vec<DriveId> {
        self.leaving.iter().filter(|(of, _)| *of == uuid).map(|(_, id)| *id).collect()
    }
    /// The open drive with this label.
    pub fn open_drive(&self, uuid: Uuid) -> Option<DriveId> {
        self.drives.get(&uuid).copied()
    }
    /// What the other head is: what a drive has confirmed counts until that changes.
    pub fn others_standing(&self) -> Standing {
        let row = self.member.known().head(self.member.me().other());
        (row.state, row.since)
    }
    /// A drive confirmed that nobody else may write there, as the other head stood when it was asked. False: that says nothing of what the
    /// other head is now.
    pub fn confirms(&mut self, drive: DriveId, asked: Standing) -> bool {
        let counts = asked == self.others_standing();
        if counts {
            self.late.remove(&drive);
            self.confirmed.insert(drive, asked);
        }
        counts
    }
    pub fn has_confirmed(&self, drive: DriveId) -> bool {
        let confirmed = self.confirmed.get(&drive);
        confirmed == Some(&self.others_standing()) || confirmed.is_some() && planted(Bug::StandingOfBefore)
    }
    /// A drive has confirmed that a process of the other head that was in since this epoch has no way to it any more.
    pub fn has_shut_out(&self, drive: DriveId, since: u64) -> bool {
        let shut_out = |(state, of): &Standing| {
            *of > since || *of == since && matches!(state, HeadState::Out | HeadState::None)
        };
        self.confirmed.get(&drive).is_some_and(shut_out)
    }
    /// A head goes on alone, because the other one has lost a path.
    pub fn loses_path(&mut self, now: Instant) {
        self.path_lost = Some((now, self.other_since()));
    }
    /// Whether that was later than then, and is over.
    pub fn has_lost_path(&self, then: Instant) -> bool {
        self.path_lost.is_some_and(|(at, epoch)| at > then && epoch != self.other_since())
    }
    /// This head leads from now on.
    pub fn begins_to_lead(&mut self, now: Instant) {
        self.led = now;
    }
    /// What drives answer may be passed on until then.
    pub fn sees(&mut self, until: Option<Instant>) {
        self.sight = until;
    }
    /// Whether this head leads and has not seen most voters for too long.
    pub fn is_blind(&self, now: Instant) -> bool {
        let over = self.sight.is_some_and(|until| now > until);
        self.part() == Part::Leader && over && self.member.misses_voters(now)
    }
    /// Whether that is otherwise than it was said last.
    pub fn news_of_sight(&mut self, now: Instant) -> Option<bool> {
        // What lasts so short is of a start, or a decision.
        let blind = self.is_blind(now) && (self.blind || self.is_blind(now - BLIND));
        (core::mem::replace(&mut self.blind, blind) != blind).then_some(blind)
    }
    /// The epoch of the newest decision that the state directory should know of and does not, once.
    pub fn news_of_directory(&mut self) -> Option<u64> {
        let old = self.part() == Part::Outside && self.member.has_old_directory();
        let news = old && !self.old_directory;
        self.old_directory |= old;
        let known = self.member.known();
        news.then(|| known.head(self.member.me()).since.max(known.changed))
    }
    /// Until then a head that was out when this one began to lead may still pass on what it reads from a drive that this one does not
    /// reach; None: there is no such head.
    pub fn other_sees_until(&self) -> Option<Instant> {
        let there = self.victim().is_some() && !self.is_believed_off();
        there.then_some(self.led + cluster::fence::PUT_OUT)
    }
    /// Whether any drive has confirmed.
    pub fn has_any_confirmed(&self) -> bool {
        self.confirmed.values().any(|standing| *standing == self.others_standing())
    }
    /// Most voters could be asked if only the drives were open that have confirmed.
    pub fn has_most_confirmed(&self) -> bool {
        let record = self.member.known();
        let asked = |voter: &&Voter| match voter {
            Voter::Directory(head) => *head == self.member.me() || self.member.is_linked(),
            Voter::Drive(uuid) => self.open_drive(*uuid).is_some_and(|drive| self.has_confirmed(drive)),
        };
        record.voters.iter().filter(asked).count() >= record.majority()
    }
    /// What is confirmed may be served.
    pub fn may_serve(&mut self) {
        self.serves += 1;
    }
    pub fn serves(&self) -> u64 {
        self.serves
    }
    /// A key on a drive that is of a process of the other head that is out.
    pub fn stale_key(&self, there: &Registrants) -> Option<FenceKey> {
        let (record, other) = (self.member.known(), self.member.me().other());
        let again = record.key(other).filter(|_| record.is_in(other));
        cluster::fence::stale_key(there, record.key_outside(other), again)
    }
    /// A drive has not confirmed.
    pub fn is_late(&mut self, drive: DriveId, path: &str) {
        self.late.insert(drive, path.into());
    }
    /// A pool that needs it waits until then for it to confirm.
    pub fn waits_for(&mut self, drive: DriveId, until: Instant) {
        self.waited_for.entry(drive).or_insert((until, false));
    }
    /// Whether it is late for the first time.
    pub fn is_overdue(&mut self, drive: DriveId, now: Instant) -> bool {
        let waited = self.waited_for.get_mut(&drive).filter(|(until, _)| now >= *until);
        waited.is_some_and(|(_, told)| !core::mem::replace(told, true))
    }
    /// Until when a pool waits for it; None: the takeover is over, or had no need of it.
    pub fn is_waited_for(&self, drive: DriveId) -> Option<Instant> {
        self.waited_for.get(&drive).map(|(until, _)| *until)
    }
    /// Whether a drive is late.
    pub fn is_late_drive(&self, drive: DriveId) -> bool {
        self.late.contains_key(&drive)
    }
    /// Whether it confirms is no question any more.
    pub fn is_not_late(&mut self, drive: DriveId) {
        self.late.remove(&drive);
    }
    /// An operator has said that the other head is switched off: what no drive can confirm is believed until it is let in again.
    pub fn is_off(&mut self) {
        self.off = Some(self.other_since());
    }
    pub fn is_believed_off(&self) -> bool {
        self.off == Some(self.other_since())
    }
    /// Since this epoch the other head is what it is.
    pub fn other_since(&self) -> u64 {
        self.member.known().head(self.member.me().other()).since
    }
    pub fn late(&self) -> Vec<String> {
        self.late.values().cloned().collect()
    }

    /// The number of the next file that the follower is sent.
    pub fn next_file(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }
    /// What the follower has.
    pub fn follower_has(&mut self, seq: u64) {
        self.had = self.had.max(seq);
    }
    pub fn has_had(&self, seq: u64) -> bool {
        self.had >= seq
    }
    /// The last file that the follower was sent, and the last one that it has. For checkers.
    pub fn files_sent(&self) -> (u64, u64) {
        (self.sent, self.had)
    }
    /// Since which epoch the other head was what it was when drives confirmed; and drives that have not. For checkers.
    pub fn confirmations(&self) -> (BTreeMap<DriveId, u64>, BTreeSet<DriveId>) {
        let confirmed = self.confirmed.iter().map(|(drive, (_, epoch))| (*drive, *epoch));
        (confirmed.collect(), self.late.keys().copied().collect())
    }
    /// Somebody changes files that are shared, or has.
    pub fn shares(&mut self, sharing: bool) {
        self.sharing = sharing;
    }
    pub fn is_sharing(&self) -> bool {
        self.sharing
    }
    /// What is decided, if it was not kept for the next start, and who had the latest hosts and portals before.
    pub fn take_news_of_record(&mut self) -> Option<(SystemRecord, [bool; 2])> {
        let record = self.member.known();
        let (news, was) = (record.epoch > self.kept, self.latest);
        (self.kept, self.latest) = (record.epoch, record.latest);
        news.then(|| (record.clone(), was))
    }
    /// Drives that may vote.
    pub fn offers(&mut self, drives: Vec<Uuid>) {
        if self.offered != drives {
            self.offered.clone_from(&drives);
            self.tell().on_candidates(drives);
        }
    }
    /// Connections that hosts have to the leader. Once this head leads they are what that one had, to be made known as over.
    pub fn leader_has(&mut self, connections: Vec<(SocketAddr, SocketAddr)>) {
        if self.part() == Part::Follower {
            self.connections = connections;
        }
    }
    /// What the leader before had.
    pub fn take_connections(&mut self) -> Vec<(SocketAddr, SocketAddr)> {
        core::mem::take(&mut self.connections)
    }
    /// Something came from the layer above of the other head.
    pub fn comes(&mut self, message: Vec<u8>) {
        self.came.push_back(message);
    }
    pub fn take_came(&mut self) -> Option<Vec<u8>> {
        self.came.pop_front()
    }
    pub fn has_come(&self) -> bool {
        !self.came.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::fence::Process;
    use cluster::link::Link;
    use cluster::message::Message;

    const SYSTEM: Uuid = Uuid([7; 16]);

    /// The other head comes, and says hello as a program of these versions; whether that is news.
    fn comes(context: &mut SystemContext, number: u64, versions: Option<u8>) -> bool {
        let mut other = Link::new(SYSTEM, HeadNo::B, 22, 1, 1);
        other.on_up(0);
        let Some(Do::Send { mut bytes, .. }) = other.dos().pop() else { panic!("it says hello") };
        if let Some(version) = versions {
            (bytes[5], bytes[7]) = (version, version + 1);
        }
        context.on_peer(PeerNews::Up { path: 0, number, secret: [0; 32] });
        context.on_peer(PeerNews::Bytes { path: 0, number, bytes });
        let now = Instant(0) + base::Duration::from_millis(10 * number);
        let closes = |d| match d {
            member::Do::Link(Do::Close { why, .. }) => Some(why),
            _ => None,
        };
        let closed: Vec<Fault> = context.turn(now).into_iter().filter_map(closes).collect();
        closed.into_iter().any(|why| context.closes(why))
    }

    #[test]
    fn a_head_of_another_version_is_told_once_and_until_they_meet() {
        let mut context = of(SystemRecord::founding(SYSTEM));
        let newer = cluster::link::VERSION as u8 + 1;
        assert!(comes(&mut context, 1, Some(newer)), "it begins");
        assert_eq!(context.refused(), Some(Fault::Version(newer.into(), u16::from(newer) + 1)));
        assert!(!comes(&mut context, 2, Some(newer)) && context.refused().is_some(), "it goes on");
        assert!(comes(&mut context, 3, Some(newer + 2)), "it is another one");
        assert!(!comes(&mut context, 4, None));
        assert_eq!(context.refused(), None, "they met");
    }

    fn of(known: SystemRecord) -> SystemContext {
        let settings = SystemSettings {
            system: SYSTEM,
            me: HeadNo::A,
            name: String::new(),
            networks: vec!["10.9.0.1:7400".parse().expect("an address")],
            process: Process { pid: 1, started: 1 },
            times: cluster::watch::Times::default(),
            both_serve: false,
            said: None,
        };
        SystemContext::new(settings, 11, 1, (known, 1))
    }
    /// The other head comes, and says that this is decided.
    fn learns(context: &mut SystemContext, number: u64, record: &SystemRecord) {
        let mut other = Link::new(SYSTEM, HeadNo::B, 20 + number, 1, 1);
        other.on_up(0);
        context.on_peer(PeerNews::Up { path: 0, number, secret: [0; 32] });
        let now = Instant(1_000_000_000 * number);
        for said in [None, Some(Message::Record(Box::new(record.clone())))] {
            if let Some(message) = said {
                other.send(message.encode()).expect("the link is empty");
            }
            for what in other.dos() {
                let Do::Send { bytes, .. } = what else { panic!("{what:?}") };
                context.on_peer(PeerNews::Bytes { path: 0, number, bytes });
            }
            for what in context.turn(now) {
                if let member::Do::Link(Do::Send { bytes, .. }) = what {
                    other.on_bytes(0, &bytes);
                }
            }
        }
        assert_eq!(context.member().known(), record);
    }

    /// It was asked while that head was in, or for a process before the one that is out, and its answer was late.
    #[test]
    fn a_drive_confirms_for_what_the_other_head_was_when_it_was_asked() {
        let both = SystemRecord::founding(SYSTEM).led_by(HeadNo::A, 11, "a").with(HeadNo::B, 21);
        let (mut context, drive) = (of(both.clone()), DriveId(1));
        let is_in = context.others_standing();
        let alone = both.without(HeadNo::B);
        learns(&mut context, 1, &alone);
        assert!(!context.confirms(drive, is_in) && !context.has_confirmed(drive), "nobody was shut out");
        let is_out = context.others_standing();
        assert!(context.confirms(drive, is_out) && context.has_confirmed(drive));
        let again = alone.with(HeadNo::B, 22);
        learns(&mut context, 2, &again);
        learns(&mut context, 3, &again.without(HeadNo::B));
        assert!(!context.has_confirmed(drive) && !context.confirms(drive, is_out), "another process is out");
    }
}
