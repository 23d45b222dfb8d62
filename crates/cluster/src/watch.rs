//! Watches the heartbeats of the other head on each network of the link and on the voter drives. Reports when that head is suspected, and
//! when this head should propose to go on without it.
//!
//! ```text
//!   heartbeats ─▶ heard ── reset, or silent on all networks ─▶ suspected ── its heartbeats on the drives stand still ─▶ propose
//!                                                             └─ they move: the link is cut ─▶ the head that sees more proposes, the other waits
//! ```
//!
//! A wrong suspicion costs a takeover, never data: data safety depends on fences, not on this module. A head that was paused itself
//! has received nothing meanwhile. It notices that (`on_pause`), and reads the record before it suspects the other head.
//!
//! On a loaded machine turns and heartbeats are late, which is nobody's death: the silence that makes a head suspect is longer by as much as
//! they were late lately (`limit`).

use crate::heartbeat::Heartbeat;
use crate::lateness::Lateness;
use base::{Bug, Duration, Instant, planted};

/// How long what may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// Between two heartbeats by each network of the link.
    pub link_every: Duration,
    /// Between two heartbeats on each voter drive, and between two looks at the other's.
    pub drive_every: Duration,
    /// Silence on all networks by which a head is suspected.
    pub silence: Duration,
    /// How long the head that sees less, or follows, waits while the other one lives.
    pub patience: Duration,
    /// A gap between two turns of our own that is a pause: heartbeats that came meanwhile were not heard.
    pub pause: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            link_every: Duration::from_millis(100),
            drive_every: Duration::from_millis(200),
            silence: Duration::from_millis(300),
            patience: Duration::from_millis(500),
            pause: Duration::from_millis(250),
        }
    }
}

/// A silence that makes a head suspect is no longer than this, however late turns and heartbeats were; unless it is set to more.
const SILENCE_MOST: Duration = Duration::from_secs(2);

/// Lives of the other head that are remembered.
const LIVES_MAX: usize = 8;

/// How a network of the link ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The other side closed or reset it: its process has ended, as a rule.
    Closed,
    /// Nothing came for too long, or our side could not send.
    Lost,
    /// The other machine refuses the connection: its process has ended.
    Refused,
}

/// What a head sees of the world, for the comparison with the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct View {
    /// It has a network on which hosts come.
    pub hosts: bool,
    /// Voter drives that it reaches.
    pub reaches: u16,
}

/// What to think of the other head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It lives.
    Well,
    /// It may be gone; nothing is to be done before `at`.
    Suspected {
        /// When to ask again, at the latest.
        at: Instant,
    },
    /// Go on without it.
    Propose(Why),
}

/// Why a head should go on alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The other's process has ended: its machine refuses the link, or has closed it and its heartbeats on the drives stand still.
    Ended,
    /// No network of the link brings anything, and its heartbeats on the drives stand still.
    Still {
        /// Silence of the link, so far.
        silent: Duration,
    },
    /// No network of the link brings anything, but the other lives: the link is cut. We see at least as much as it.
    Cut {
        /// Silence of the link, so far.
        silent: Duration,
    },
    /// It lives, and did not confirm a change in time.
    Silent,
    /// An operator says so.
    Asked,
    /// It lives, and does not reach a drive any more that this head reaches.
    LostPath,
}

#[derive(Clone, Copy, Debug, Default)]
struct Network {
    heard: Option<Instant>,
    end: Option<End>,
    /// When a heartbeat came; pauses of this head do not count as one.
    heartbeat: Option<Instant>,
}

/// What the drives have brought of the other head.
#[derive(Clone, Copy, Debug, Default)]
struct OnDrives {
    life: u64,
    count: u64,
    at: Option<Instant>,
}

/// The other head may be gone.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    since: Instant,
    /// When to ask for a verdict again.
    again: Instant,
}

/// What is known of the other head.
#[derive(Debug)]
pub struct Watch {
    times: Times,
    networks: Vec<Network>,
    /// The last heartbeat, by whichever way.
    last: Option<Heartbeat>,
    /// The largest count of each life that was seen, the latest lives last: what lies on a drive may be of one long ago.
    lives: Vec<(u64, u64)>,
    /// When a heartbeat was last seen on a drive that the link had not brought before.
    moved: Option<Instant>,
    /// When a drive was last looked at, and that said nothing new.
    still: Option<Instant>,
    on_drives: OnDrives,
    suspected: Option<Suspicion>,
    turned: Option<Instant>,
    /// By how much turns of this head and heartbeats of the other one were late.
    late: Lateness,
}

impl Watch {
    /// Watches a head with so many networks of the link, from now on: its first heartbeat may take as long as any other.
    pub fn new(times: Times, networks: usize, now: Instant) -> Self {
        let network = Network { heard: Some(now), ..Network::default() };
        Self {
            times,
            networks: vec![network; networks],
            last: None,
            lives: vec![],
            moved: None,
            still: None,
            on_drives: OnDrives::default(),
            suspected: None,
            turned: Some(now),
            late: Lateness::default(),
        }
    }
    /// A turn of this head, or what it does at drives, was late by so much.
    pub fn on_late(&mut self, now: Instant, late: Duration) {
        self.late.note(now, late);
    }
    /// What was waited for may be late by so much, as lately.
    pub fn slack(&self, now: Instant) -> Duration {
        self.limit(now).saturating_sub(self.times.silence)
    }
    /// The silence that makes this head suspect.
    fn limit(&self, now: Instant) -> Duration {
        let (silence, most) = (self.times.silence, SILENCE_MOST.max(self.times.silence));
        let limit = (silence + self.late.most(now)).min(most);
        if limit != silence && planted(Bug::LoadIsDeath) { silence } else { limit }
    }
    /// The last heartbeat of the other head.
    pub fn last(&self) -> Option<&Heartbeat> {
        self.last.as_ref()
    }
    /// When the last heartbeat came by a network of the link.
    pub fn heartbeat_by(&self, network: usize) -> Option<Instant> {
        self.networks.get(network).and_then(|n| n.heartbeat)
    }
    /// When a drive was asked that showed a heartbeat which no drive had shown before.
    pub fn heartbeat_on_drives(&self) -> Option<Instant> {
        self.on_drives.at
    }
    /// A heartbeat came by a network of the link.
    pub fn on_heartbeat(&mut self, now: Instant, network: usize, heartbeat: Heartbeat) {
        if let Some(heard) = self.networks.iter().filter_map(|n| n.heard).max() {
            self.late.note(now, now.since(heard).saturating_sub(self.times.link_every));
        }
        if let Some(n) = self.networks.get_mut(network) {
            *n = Network { heard: Some(now), end: None, heartbeat: Some(now) };
        }
        self.count(&heartbeat);
        self.last = Some(heartbeat);
        self.suspected = None;
    }
    /// Whether a heartbeat is newer than all that were seen of its life; None if it is the first.
    fn count(&mut self, heartbeat: &Heartbeat) -> Option<bool> {
        if let Some((_, count)) = self.lives.iter_mut().find(|(life, _)| *life == heartbeat.life) {
            let news = heartbeat.count > *count;
            *count = heartbeat.count.max(*count);
            return Some(news);
        }
        if self.lives.len() == LIVES_MAX {
            self.lives.remove(0);
        }
        self.lives.push((heartbeat.life, heartbeat.count));
        None
    }
    /// A network of the link ended.
    pub fn on_end(&mut self, network: usize, end: End) {
        if let Some(n) = self.networks.get_mut(network) {
            n.end = Some(end);
        }
    }
    /// A voter drive was read, `asked` then: the other's heartbeat there, if it is whole.
    pub fn on_drive(&mut self, asked: Instant, heartbeat: Option<Heartbeat>) {
        if let Some(heartbeat) = heartbeat {
            self.shows(asked, &heartbeat);
        }
        // The first of a life may be an old one; the second shows that it lives.
        let news = heartbeat.is_some_and(|b| self.count(&b) == Some(true));
        if let (true, Some(heartbeat)) = (news, heartbeat) {
            self.last = Some(heartbeat);
            self.moved = Some(asked);
        } else {
            self.still = self.still.max(Some(asked));
        }
    }
    /// A drive shows a heartbeat: if the link has brought it already, this shows that drives bring it, too.
    fn shows(&mut self, asked: Instant, heartbeat: &Heartbeat) {
        let before = self.on_drives;
        if before.life == heartbeat.life && heartbeat.count > before.count {
            self.on_drives = OnDrives { count: heartbeat.count, at: Some(asked), ..before };
        } else if before.life != heartbeat.life && self.last.is_none_or(|last| last.life == heartbeat.life) {
            // The first of a life may have lain there for long.
            self.on_drives = OnDrives { life: heartbeat.life, count: heartbeat.count, at: before.at };
        }
    }
    /// This head was paused, or starts: heartbeats that came meanwhile were not received, and the other head is not suspected for that.
    pub fn on_pause(&mut self, now: Instant) {
        for n in &mut self.networks {
            n.heard = Some(now);
        }
        self.suspected = None;
        self.moved = None;
        self.still = None;
    }
    /// A turn of this head begins; whether it was paused since the last one.
    pub fn on_turn(&mut self, now: Instant) -> bool {
        let paused = self.turned.is_some_and(|t| now.since(t) > self.times.pause + self.times.link_every);
        self.turned = Some(now);
        if paused {
            self.on_pause(now);
        }
        paused
    }
    /// What to think, and do. `ours` is what this head sees, `leads` whether it leads.
    pub fn verdict(&mut self, now: Instant, ours: View, leads: bool) -> Verdict {
        let heard = self.networks.iter().filter_map(|n| n.heard).max();
        let silent = heard.map_or(Duration::ZERO, |h| now.since(h));
        let open = self.networks.iter().any(|n| n.end.is_none());
        // Networks that the other side has ended are no silence, and load does not explain them.
        let limit = if open { self.limit(now) } else { Duration::ZERO };
        if open && silent < limit {
            self.suspected = None;
            return Verdict::Well;
        }
        let suspicion = self.suspected.get_or_insert(Suspicion { since: now, again: now });
        let since = suspicion.since;
        if !open && self.networks.iter().any(|n| n.end == Some(End::Refused)) {
            return Verdict::Propose(Why::Ended);
        }
        // The other head stands still on a drive if a heartbeat was due there since the last one by the link, and none came.
        let due = heard.map(|h| h + limit.max(self.times.drive_every + self.times.link_every));
        // What a head wrote last before it died may differ from drive to drive, and seem to move once.
        let again =
            |m: Instant| self.still.is_some_and(|s| s >= m + self.times.drive_every + self.times.link_every);
        let moved = self.moved.filter(|m| !again(*m));
        let lives = moved.is_some_and(|m| due.is_some_and(|due| m >= due) || m >= since);
        let still = self.still.is_some_and(|s| due.is_some_and(|due| s >= due));
        if lives {
            let theirs = self.last.map(|b| View { hosts: b.hosts, reaches: b.reaches });
            let better = theirs.is_none_or(|theirs| (ours, leads) > (theirs, !leads));
            // The other one proposes first, once it suspects this head: later, if it is loaded.
            let theirs = self.last.map_or(Duration::ZERO, |b| b.slack.min(SILENCE_MOST));
            let at = since + self.times.patience + theirs;
            if better || now >= at {
                return Verdict::Propose(Why::Cut { silent });
            }
            suspicion.again = at;
            return Verdict::Suspected { at };
        }
        // Without a look at any drive for that long, this head does not reach the drives. Then the vote shows that, too.
        let at = since + self.times.patience + limit.saturating_sub(self.times.silence);
        if !still && now < at {
            suspicion.again = at;
            return Verdict::Suspected { at };
        }
        // Its machine is there and has ended each of them, and nothing comes to the drives: that is no silence.
        let closed = |n: &Network| matches!(n.end, Some(End::Closed | End::Refused));
        let ended = self.networks.iter().all(closed);
        Verdict::Propose(if ended { Why::Ended } else { Why::Still { silent } })
    }
    /// When to ask for a verdict again, if nothing happens before.
    pub fn next_deadline(&self) -> Option<Instant> {
        let heard = self.networks.iter().filter_map(|n| n.heard).max()?;
        Some(match (self.suspected, self.turned) {
            (Some(suspicion), _) => suspicion.again,
            (None, Some(turned)) => heard + self.limit(turned),
            (None, None) => heard + self.times.silence,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::HeadNo;
    use base::Uuid;
    use base::fence::Process;

    fn at(ms: u64) -> Instant {
        Instant(1_000_000_000 + ms * 1_000_000)
    }
    fn heartbeat(count: u64) -> Heartbeat {
        let (system, head, process) = (Uuid([1; 16]), HeadNo::B, Process { pid: 1, started: 2 });
        Heartbeat {
            system,
            head,
            hosts: true,
            reaches: 3,
            process,
            life: 9,
            count,
            epoch: 1,
            slack: Duration::ZERO,
        }
    }
    const OURS: View = View { hosts: true, reaches: 3 };

    fn heard_until(ms: u64) -> Watch {
        let mut w = Watch::new(Times::default(), 2, at(0));
        for n in 1..=ms / 100 {
            w.on_heartbeat(at(n * 100), 0, heartbeat(n));
            assert_eq!(w.verdict(at(n * 100 + 99), OURS, true), Verdict::Well);
        }
        w
    }

    #[test]
    fn a_head_with_heartbeats_by_one_network_is_well() {
        let mut w = heard_until(1000);
        w.on_end(1, End::Closed);
        assert_eq!(w.verdict(at(1099), OURS, true), Verdict::Well);
    }

    #[test]
    fn one_whose_machine_refuses_the_link_has_ended() {
        let mut w = heard_until(1000);
        w.on_end(0, End::Closed);
        w.on_end(1, End::Closed);
        // Closed alone may be an accident of the link: nothing is done yet.
        assert!(matches!(w.verdict(at(1001), OURS, false), Verdict::Suspected { .. }));
        w.on_end(0, End::Refused);
        assert_eq!(w.verdict(at(1002), OURS, false), Verdict::Propose(Why::Ended));
    }

    /// The follower connects, and nobody connects to it: it was said to be silent when it had been stopped.
    #[test]
    fn one_that_ended_every_network_and_stands_still_on_the_drives_has_ended() {
        for (second, ended) in [(End::Closed, true), (End::Lost, false)] {
            let mut w = heard_until(1000);
            w.on_end(0, End::Closed);
            w.on_end(1, second);
            assert!(matches!(w.verdict(at(1001), OURS, true), Verdict::Suspected { .. }));
            w.on_drive(at(1301), Some(heartbeat(10)));
            let silent = Duration::from_millis(302);
            let why = if ended { Why::Ended } else { Why::Still { silent } };
            assert_eq!(w.verdict(at(1302), OURS, true), Verdict::Propose(why));
        }
    }

    #[test]
    fn a_power_cut_is_known_by_silence_and_by_heartbeats_that_stand_still() {
        let mut w = heard_until(1000);
        // A look before a heartbeat was due says nothing.
        w.on_drive(at(1100), Some(heartbeat(10)));
        assert!(matches!(w.verdict(at(1300), OURS, false), Verdict::Suspected { .. }));
        w.on_drive(at(1301), Some(heartbeat(10)));
        let silent = Duration::from_millis(302);
        assert_eq!(w.verdict(at(1302), OURS, false), Verdict::Propose(Why::Still { silent }));
    }

    #[test]
    fn who_was_late_lately_is_given_more_time() {
        let mut w = heard_until(1000);
        // Our own turn was late by 200 ms, and another heartbeat by 500.
        w.on_late(at(1000), Duration::from_millis(200));
        assert_eq!(w.verdict(at(1499), OURS, false), Verdict::Well);
        w.on_heartbeat(at(1600), 0, heartbeat(11));
        assert_eq!(w.verdict(at(2399), OURS, false), Verdict::Well);
        // What stands still for less says nothing.
        w.on_drive(at(2350), Some(heartbeat(11)));
        assert!(matches!(w.verdict(at(2400), OURS, false), Verdict::Suspected { .. }));
        w.on_drive(at(2401), Some(heartbeat(11)));
        assert!(matches!(w.verdict(at(2402), OURS, false), Verdict::Propose(Why::Still { .. })));
    }

    /// The leader took 0.9 s to suspect a follower whose link was cut. That follower did not know, and put the leader out.
    #[test]
    fn the_head_that_leads_goes_on_when_the_link_is_cut_however_late_it_was() {
        let late = |slack| Some(Heartbeat { count: 20, slack: Duration::from_millis(slack), ..heartbeat(1) });
        for (slack, proposes) in [(0, 1801), (600, 2401), (9000, 3801)] {
            let mut w = heard_until(1000);
            assert!(matches!(w.verdict(at(1301), OURS, false), Verdict::Suspected { .. }));
            w.on_drive(at(1500), late(slack));
            assert_eq!(w.verdict(at(1501), OURS, false), Verdict::Suspected { at: at(proposes) });
            assert_eq!(w.next_deadline(), Some(at(proposes)));
            let silent = Duration::from_millis(proposes - 1000);
            assert_eq!(w.verdict(at(proposes), OURS, false), Verdict::Propose(Why::Cut { silent }));
        }
    }

    #[test]
    fn nobody_waits_for_longer_than_two_seconds_and_a_refusal_counts_at_once() {
        let mut w = heard_until(1000);
        w.on_late(at(1000), Duration::from_secs(9));
        assert_eq!(w.verdict(at(2999), OURS, false), Verdict::Well);
        assert!(matches!(w.verdict(at(3000), OURS, false), Verdict::Suspected { .. }));
        let mut w = heard_until(1000);
        w.on_late(at(1000), Duration::from_secs(9));
        w.on_end(0, End::Refused);
        w.on_end(1, End::Closed);
        assert_eq!(w.verdict(at(1010), OURS, false), Verdict::Propose(Why::Ended));
        // Nor does it take longer to see that one has ended which nobody connects to.
        let mut w = heard_until(1000);
        w.on_late(at(1000), Duration::from_secs(9));
        (0..2).for_each(|n| w.on_end(n, End::Closed));
        assert!(matches!(w.verdict(at(1010), OURS, false), Verdict::Suspected { .. }));
        w.on_drive(at(1301), Some(heartbeat(10)));
        assert_eq!(w.verdict(at(1302), OURS, false), Verdict::Propose(Why::Ended));
    }

    #[test]
    fn while_the_other_lives_the_leader_goes_first_and_the_follower_waits() {
        let cut = |leads: bool, ours: View| {
            let mut w = heard_until(1000);
            w.on_drive(at(1301), Some(heartbeat(13)));
            let first = w.verdict(at(1302), ours, leads);
            w.on_drive(at(1700), Some(heartbeat(17)));
            (first, w.verdict(at(1802), ours, leads))
        };
        assert!(matches!(cut(true, OURS), (Verdict::Propose(Why::Cut { .. }), _)));
        let (first, later) = cut(false, OURS);
        assert_eq!(first, Verdict::Suspected { at: at(1802) });
        assert!(matches!(later, Verdict::Propose(Why::Cut { .. })));
        // The head that sees less gives way, whichever leads.
        let less = View { reaches: 2, ..OURS };
        assert!(matches!(cut(true, less), (Verdict::Suspected { .. }, Verdict::Propose(_))));
        let more = View { reaches: 4, ..OURS };
        assert!(matches!(cut(false, more), (Verdict::Propose(_), _)));
        assert!(matches!(cut(true, View { hosts: false, reaches: 9 }), (Verdict::Suspected { .. }, _)));
    }

    #[test]
    fn it_is_reported_when_a_heartbeat_came_by_each_network_and_on_the_drives() {
        let mut w = heard_until(1000);
        assert_eq!(
            (w.heartbeat_by(0), w.heartbeat_by(1)),
            (Some(at(1000)), None),
            "who says nothing is not heard"
        );
        w.on_drive(at(900), Some(heartbeat(8)));
        assert_eq!(w.heartbeat_on_drives(), None, "it may have lain there for long");
        w.on_drive(at(1100), Some(heartbeat(10)));
        w.on_drive(at(1101), Some(heartbeat(9)));
        w.on_drive(at(1300), Some(heartbeat(10)));
        assert_eq!(w.heartbeat_on_drives(), Some(at(1100)), "it stands still since");
        w.on_pause(at(9000));
        assert_eq!((w.heartbeat_by(0), w.heartbeat_by(1)), (Some(at(1000)), None), "a pause is no heartbeat");
        w.on_drive(at(9100), Some(Heartbeat { life: 3, ..heartbeat(99) }));
        assert_eq!(w.heartbeat_on_drives(), Some(at(1100)), "of a life that is over");
    }

    #[test]
    fn a_link_that_comes_back_ends_the_suspicion() {
        let mut w = heard_until(1000);
        assert!(matches!(w.verdict(at(1350), OURS, false), Verdict::Suspected { .. }));
        w.on_heartbeat(at(1400), 1, heartbeat(14));
        assert_eq!(w.verdict(at(1401), OURS, false), Verdict::Well);
        // A heartbeat was late by 300 ms: the next may be, too.
        assert_eq!(w.verdict(at(1999), OURS, false), Verdict::Well);
        assert!(matches!(w.verdict(at(2000), OURS, false), Verdict::Suspected { .. }), "it begins anew");
    }

    #[test]
    fn who_was_paused_blames_nobody() {
        let mut w = Watch { turned: Some(at(1000)), ..heard_until(1000) };
        assert!(w.on_turn(at(11_000)));
        assert_eq!(w.verdict(at(11_001), OURS, true), Verdict::Well);
        assert!(!w.on_turn(at(11_100)));
        assert!(matches!(w.verdict(at(11_301), OURS, true), Verdict::Suspected { .. }));
    }

    #[test]
    fn a_new_life_of_the_other_is_heard_and_an_old_heartbeat_on_a_drive_is_no_news() {
        let mut w = heard_until(1000);
        w.on_heartbeat(at(1100), 0, Heartbeat { life: 10, count: 1, ..heartbeat(1) });
        w.on_drive(at(1401), Some(heartbeat(10)));
        let verdict = w.verdict(at(1402), OURS, true);
        assert!(matches!(verdict, Verdict::Propose(Why::Still { .. })), "{verdict:?}");
    }

    #[test]
    fn the_last_heartbeats_of_one_that_died_differ_from_drive_to_drive() {
        let mut w = Watch::new(Times::default(), 2, at(0));
        let mut look = |ms: u64| {
            w.on_drive(at(ms), Some(heartbeat(7)));
            w.on_drive(at(ms), Some(heartbeat(8)));
            w.verdict(at(ms + 1), OURS, false)
        };
        assert!(matches!(look(400), Verdict::Suspected { .. }), "it may live");
        assert!(matches!(look(600), Verdict::Suspected { .. }), "a heartbeat may be late");
        let verdict = look(800);
        assert!(matches!(verdict, Verdict::Propose(Why::Still { .. })), "{verdict:?}");
    }

    #[test]
    fn one_that_started_again_and_has_no_link_yet_lives() {
        let mut w = heard_until(1000);
        let again = |count| Some(Heartbeat { life: 10, count, ..heartbeat(1) });
        w.on_drive(at(1310), again(1));
        assert!(
            matches!(w.verdict(at(1311), OURS, false), Verdict::Propose(Why::Still { .. })),
            "once says nothing"
        );
        w.on_drive(at(1500), again(2));
        assert!(matches!(w.verdict(at(1501), OURS, false), Verdict::Suspected { .. }));
    }
}
