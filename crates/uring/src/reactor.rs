//! Reactor: one thread, one ring, one machine. A turn is: reap, give the machine its events, carry out what it
//! wants, enter the kernel once.

use crate::clock;
use crate::drive::Drives;
use crate::drive::disk::Disk;
use crate::fault::{HouseNotice, SetupFault, errno};
use crate::mail::{Control, Inbox, Letter, Routes};
use crate::net::listen::Portals;
use crate::net::staging::Staging;
use crate::net::{Net, net_error};
use crate::region::Region;
use crate::ring::{Done, Kind, Ring, Wait, wait_until};
use crate::state::StateThread;
use base::machine::OWN_SLOTS;
use base::{Address, DriveError, DriveId, Effect, Effects, Event, Instant, Machine, Slice, Token};
use io_uring::{opcode, types};
use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Completions reported in one turn; the rest comes in the next, so that answers are not held up.
const TURN_MAX: usize = 512;
/// Turns that may follow each other on in-process completions alone before the kernel is asked again.
const INNER_TURNS_MAX: u32 = 8;
/// A wait shorter than this on average is not worth a sleep: putting a thread to sleep and waking it costs about
/// as much, in a virtual machine more, and who is at the other end then waits as much longer. So we look again, for
/// up to twice as long as waits took lately.
const SPIN_NS_MAX: u64 = 50_000;
/// How long listeners rest when descriptors or memory ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a turn may take: connections of other hosts wait for so long at most.
pub const TURN_BUDGET: Duration = Duration::from_millis(5);
/// The longest turn is reported for a time at least so long, and at most twice.
const LONGEST_OF: Duration = Duration::from_secs(60);

/// What a reactor has counted since it began. Read from any thread.
#[derive(Debug, Default)]
pub struct Counters {
    /// Turns, each with at most one system call for all sockets and drives.
    pub turns: AtomicU64,
    /// Events that the machine got.
    pub events: AtomicU64,
    /// Times that the thread went to sleep in the kernel.
    pub sleeps: AtomicU64,
    /// Connections closed at once because every slot was taken.
    pub refused: AtomicU64,
    /// Turns that took longer than `TURN_BUDGET`, on the clock: what the machine's other work took counts.
    pub long_turns: AtomicU64,
    /// The longest turn of this minute, and that of the last one, nanoseconds.
    longest: [AtomicU64; 2],
    /// When this minute ends; the reactor's own.
    minute_ends: AtomicU64,
}

impl Counters {
    /// The longest turn of the last one to two minutes in which there were any. A turn goes from the look at what
    /// has happened to the call of the kernel.
    pub fn longest_turn(&self) -> Duration {
        let [this, last] = &self.longest;
        Duration::from_nanos(this.load(Ordering::Relaxed).max(last.load(Ordering::Relaxed)))
    }

    /// A turn went from `began` to `ended`. Only the reactor's own thread says so: nothing is lost in between.
    fn turned(&self, began: Instant, ended: Instant) {
        let [this, last] = &self.longest;
        if ended.0 >= self.minute_ends.load(Ordering::Relaxed) {
            last.store(this.swap(0, Ordering::Relaxed), Ordering::Relaxed);
            self.minute_ends.store(ended.0 + LONGEST_OF.as_nanos() as u64, Ordering::Relaxed);
        }
        let took = ended.0 - began.0;
        if took > this.load(Ordering::Relaxed) {
            this.store(took, Ordering::Relaxed);
        }
        if took > TURN_BUDGET.as_nanos() as u64 {
            self.long_turns.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What a reactor shares with its house.
pub(crate) struct Shared<M> {
    pub(crate) region: Arc<Region>,
    pub(crate) drives: Arc<Drives>,
    pub(crate) portals: Arc<Portals>,
    pub(crate) routes: Arc<Routes<M>>,
    pub(crate) state_dir: Option<PathBuf>,
}

/// Where a reactor lives.
pub(crate) struct Place {
    pub(crate) address: Address,
    pub(crate) inbox: usize,
    pub(crate) connections_max: u32,
    pub(crate) staging_at: u64,
    pub(crate) staging_buffers: u16,
    pub(crate) counters: Arc<Counters>,
}

/// Everything of a reactor but the machine. The ring is dropped first: the kernel then lets go of what
/// the other fields own.
pub(crate) struct World<M> {
    ring: Ring,
    staging: Staging,
    net: Net,
    disk: Disk,
    shared: Shared<M>,
    place: Place,
    inbox: Arc<Inbox<M>>,
    /// Where the kernel puts the count of an eventfd that we do not look at.
    wake_count: Box<u64>,
    /// Events that happened here and not in the kernel.
    pending: VecDeque<Event<M>>,
    /// Drive operations that ended here.
    ended: VecDeque<(Token, Result<(), DriveError>)>,
    /// Mail of this turn, by receiver.
    outgoing: Vec<Vec<Letter<M>>>,
    incoming: VecDeque<Letter<M>>,
    state: Option<StateThread>,
    accept_again: Option<Instant>,
    stopping: bool,
    /// How long we waited lately for something to happen, nanoseconds.
    usual_wait: u64,
}

fn not_registered<M>(shared: &Shared<M>, e: &std::io::Error) {
    let bytes = shared.region.len() as u64;
    shared.drives.notice(HouseNotice::NotRegistered { bytes, errno: errno(e) });
}

impl<M: Send + 'static> World<M> {
    /// Sets up the ring of this thread.
    ///
    /// # Errors
    /// What the kernel refused.
    pub(crate) fn new(shared: Shared<M>, place: Place) -> Result<Self, SetupFault> {
        let mut ring = Ring::new(
            place.connections_max.saturating_mul(2).saturating_add(8192),
            place.connections_max + OWN_SLOTS,
        )?;
        if let Err(e) = ring.expect_region(&shared.region) {
            not_registered(&shared, &e);
        }
        let region = Arc::clone(&shared.region);
        let staging = Staging::new(&mut ring, Arc::clone(&region), place.staging_at, place.staging_buffers)
            .map_err(|e| SetupFault::ReceiveBuffers { errno: errno(&e) })?;
        let net = Net::new(place.connections_max, Arc::clone(&region));
        let disk = Disk::new(Arc::clone(&shared.drives), region);
        let inbox = Arc::clone(&shared.routes.inboxes[place.inbox].1);
        let outgoing = shared.routes.inboxes.iter().map(|_| Vec::with_capacity(256)).collect();
        let mut world = Self {
            ring,
            staging,
            net,
            disk,
            shared,
            place,
            inbox,
            wake_count: Box::new(0),
            pending: VecDeque::with_capacity(64),
            ended: VecDeque::with_capacity(4096),
            outgoing,
            incoming: VecDeque::with_capacity(1024),
            state: None,
            accept_again: None,
            stopping: false,
            usual_wait: SPIN_NS_MAX,
        };
        world.listen_to_inbox();
        Ok(world)
    }

    fn listen_to_inbox(&mut self) {
        let at: *mut u64 = &mut *self.wake_count;
        let entry = opcode::Read::new(types::Fd(self.inbox.wake.as_raw_fd()), at.cast(), 8).build();
        // SAFETY: boxed, and only the kernel touches it; one such read is under way at a time.
        unsafe { self.ring.push(&entry.user_data(Kind::Wake.user(0))) };
    }

    /// Runs `machine` until the house stops.
    pub(crate) fn run<T: Machine<Mail = M>>(mut self, mut machine: T) {
        let mut fx: Effects<M> = Vec::with_capacity(4096);
        let mut done: Vec<Done> = Vec::with_capacity(TURN_MAX);
        let mut events: VecDeque<Event<M>> = VecDeque::with_capacity(4096);
        let mut inner = 0;
        // The first turn has no event: it lets the machine begin.
        let mut first = true;
        loop {
            let now = clock::now();
            std::mem::swap(&mut events, &mut self.pending);
            let mut reported = u64::from(std::mem::take(&mut first));
            self.read_mail(now, &mut events);
            self.ring.reap(&mut done, TURN_MAX);
            self.disk.on_reaped();
            // Nothing in between may reorder what happened here first and in the kernel later: what
            // happened here is reported first, and of that the drives, so that a drive's last operation comes
            // before its end.
            while let Some((token, result)) = self.ended.pop_front() {
                reported += 1;
                machine.on_event(now, Event::DriveDone { token, result }, &mut fx);
            }
            while let Some(event) = events.pop_front() {
                reported += 1;
                machine.on_event(now, event, &mut fx);
            }
            for done in done.drain(..) {
                if let Some(event) = self.on_done(done) {
                    reported += 1;
                    machine.on_event(now, event, &mut fx);
                }
            }
            self.own_timers(now);
            if machine.next_deadline().is_some_and(|at| at <= now) {
                reported += 1;
                machine.on_timer(now, &mut fx);
            }
            if reported > 0 {
                self.place.counters.events.fetch_add(reported, Ordering::Relaxed);
                machine.end_of_turn(now, &mut fx);
                for effect in fx.drain(..) {
                    self.carry_out(now, effect, &machine);
                }
                self.send_mail();
                self.place.counters.turned(now, clock::now());
            }
            if self.stopping {
                break;
            }
            self.net.feed_starved(&self.staging);
            self.net.ask_some(&self.staging);
            self.disk.release_idle(&mut self.ring, &self.shared.routes);
            self.place.counters.turns.fetch_add(1, Ordering::Relaxed);
            self.place.counters.refused.store(self.net.refused, Ordering::Relaxed);
            if self.has_pending() && !self.ring.unsubmitted() && inner < INNER_TURNS_MAX {
                inner += 1;
                continue;
            }
            inner = 0;
            self.staging.before_enter();
            self.enter(now, machine.next_deadline());
        }
    }

    /// Something happened here that the machine has not got as an event.
    fn has_pending(&self) -> bool {
        !self.pending.is_empty() || !self.ended.is_empty()
    }

    fn on_done(&mut self, done: Done) -> Option<Event<M>> {
        let (kind, index) = Kind::of(done.user);
        match kind {
            Kind::Receive => self.net.on_receive(&mut self.ring, &mut self.staging, index, done),
            Kind::Send => self.net.on_send(&mut self.ring, index, done),
            Kind::Drive => {
                let (token, result) = self.disk.on_done(&mut self.ring, index, done)?;
                Some(Event::DriveDone { token, result })
            }
            Kind::Accept => self.net.on_accept(&mut self.ring, index, done),
            Kind::Connect => self.net.on_connect(&mut self.ring, index, done),
            Kind::Cancel => None,
            Kind::Wake => {
                self.listen_to_inbox();
                None
            }
        }
    }

    fn own_timers(&mut self, now: Instant) {
        while let Some(ended) = self.disk.on_timer(&mut self.ring, now) {
            self.ended.extend(ended);
        }
        self.net.on_look(now, &mut self.pending);
        if self.net.listeners.pausing && self.accept_again.is_none() {
            self.accept_again = Some(now + ACCEPT_PAUSE);
        }
        if self.accept_again.is_some_and(|at| at <= now) {
            self.accept_again = None;
            self.net.listeners.resume(&mut self.ring);
        }
    }

    fn read_mail(&mut self, now: Instant, events: &mut VecDeque<Event<M>>) {
        self.inbox.take(&mut self.incoming);
        while let Some(letter) = self.incoming.pop_front() {
            let event = match letter {
                Letter::Mail(from, mail) => Event::Mail { from, mail },
                Letter::Control(Control::Stop) => {
                    self.stopping = true;
                    continue;
                }
                Letter::Control(Control::Resident(n)) => {
                    if let Err(e) = self.ring.register_chunk(&self.shared.region, n) {
                        not_registered(&self.shared, &e);
                    }
                    continue;
                }
                Letter::Control(Control::Shaped(drive)) => {
                    self.disk.on_shaped(&mut self.ring, now, drive, &mut self.ended);
                    continue;
                }
                Letter::Control(Control::Closing(drive)) => {
                    self.disk.on_closing(&mut self.ring, drive, &self.shared.routes);
                    continue;
                }
                Letter::Control(Control::Opened(token, result)) => Event::DriveOpened { token, result },
                Letter::Control(Control::Inspected(token, result)) => Event::DriveInspected { token, result },
                Letter::Control(Control::Fenced(token, result)) => Event::Fenced { token, result },
                Letter::Control(Control::Closed(drive)) => Event::DriveClosed { drive },
                Letter::Control(Control::State(token, result)) => Event::State { token, result },
            };
            events.push_back(event);
        }
    }

    fn send_mail(&mut self) {
        for (index, letters) in self.outgoing.iter_mut().enumerate() {
            let n = letters.len();
            if n > 0 && !self.shared.routes.inboxes[index].1.post(letters) {
                (0..n).for_each(|_| self.shared.routes.drop_one());
            }
        }
    }

    fn carry_out<T: Machine<Mail = M>>(&mut self, now: Instant, effect: Effect<M>, machine: &T) {
        let event = match effect {
            Effect::Drive(op) => {
                let ended = self.disk.submit(&mut self.ring, now, op);
                self.ended.extend(ended);
                return;
            }
            Effect::Send { connection } => {
                let segments = |max, out: &mut Vec<Slice>| machine.segments(connection, max, out);
                self.net.send(&mut self.ring, connection, segments);
                None
            }
            Effect::Receive { connection, into, most, batch } => {
                self.net.receive(&self.staging, connection, into, (most, batch));
                None
            }
            Effect::Recycle { data } => {
                self.staging.recycle(data);
                None
            }
            Effect::Mail { to, mail } => {
                self.mail(to, mail);
                None
            }
            Effect::Close { connection } => self.net.close(&mut self.ring, connection),
            Effect::Connect { connection, peer } => self.net.connect(&mut self.ring, connection, peer),
            Effect::Listen { portal, address } => {
                let listening = self.shared.portals.listen(portal, address);
                let result = listening.map(|(socket, local)| {
                    self.net.listeners.add(&mut self.ring, portal, socket);
                    local
                });
                Some(Event::Listening { portal, result: result.map_err(|e| net_error(&e)) })
            }
            Effect::Unlisten { portal } => {
                if self.net.listeners.remove(&mut self.ring, portal) {
                    self.shared.portals.unlisten(portal);
                }
                None
            }
            Effect::OpenDrive { token, drive, spec, shared } => {
                let spec = (spec, shared);
                self.shared.drives.open(token, drive, spec, self.place.inbox, &self.shared.routes);
                None
            }
            Effect::InspectDrive { token, drive } => {
                self.shared.drives.inspect(token, drive, self.place.inbox, &self.shared.routes);
                None
            }
            Effect::Fence { token, drive, op } => {
                self.shared.drives.fence(token, drive, op, self.place.inbox, &self.shared.routes);
                None
            }
            Effect::CloseDrive { drive } => {
                self.close_drive(drive);
                None
            }
            Effect::ShapeDrive { drive, shape } => {
                self.shared.drives.shape(drive, shape, &self.shared.routes);
                None
            }
            Effect::State { token, op } => {
                self.ask_state(token, op);
                None
            }
        };
        self.pending.extend(event);
    }

    fn mail(&mut self, to: Address, mail: M) {
        match self.shared.routes.index(to) {
            Some(index) => self.outgoing[index].push(Letter::Mail(self.place.address, mail)),
            None if to == Address::Manager => self.shared.routes.to_manager(self.place.address, mail),
            None => self.shared.routes.drop_one(),
        }
    }

    fn close_drive(&mut self, drive: DriveId) {
        self.shared.drives.close(drive, self.place.inbox, &self.shared.routes);
    }

    fn ask_state(&mut self, token: base::Token, op: base::StateOp) {
        let (dir, inbox) = (&self.shared.state_dir, &self.inbox);
        let thread = self.state.get_or_insert_with(|| {
            let started = StateThread::start(dir.clone(), Arc::clone(inbox));
            started.expect("a helper thread can be started")
        });
        thread.ask(token, op);
    }

    /// Submits what there is, and sleeps if nothing is left to do.
    fn enter(&mut self, now: Instant, deadline: Option<Instant>) {
        self.net.submit_receives(&mut self.ring);
        let own = [self.disk.next_deadline(), self.accept_again, self.net.next_look(now)];
        let deadline = own.into_iter().chain([deadline]).flatten().min();
        let busy = self.has_pending() || self.inbox.is_filled() || self.ring.has_completions();
        if busy || deadline.is_some_and(|at| at <= now) {
            // EBUSY and the like go away as the next turn reaps.
            let _ = self.ring.enter(Wait::No);
            return;
        }
        if self.net.keeps_back() {
            let _ = self.ring.enter(Wait::No);
            if self.ring.has_completions() {
                return;
            }
            self.net.ask_all(&self.staging);
            self.net.submit_receives(&mut self.ring);
        }
        if self.usual_wait < SPIN_NS_MAX {
            let until = now.0 + 2 * self.usual_wait.max(1000);
            loop {
                let _ = self.ring.enter(Wait::No);
                let at = clock::now();
                if self.ring.has_completions() || self.inbox.is_filled() || deadline.is_some_and(|d| d <= at)
                {
                    self.waited(at.0 - now.0);
                    return;
                }
                if at.0 > until {
                    break;
                }
                std::hint::spin_loop();
            }
        }
        if self.inbox.fall_asleep() {
            self.place.counters.sleeps.fetch_add(1, Ordering::Relaxed);
            let asleep = clock::now();
            let _ = self.ring.enter(wait_until(asleep, deadline));
            self.inbox.wake_up();
        } else {
            let _ = self.ring.enter(Wait::No);
        }
        self.waited(clock::now().0 - now.0);
    }

    fn waited(&mut self, ns: u64) {
        // One long silence is enough to stop looking; it takes a run of short ones to begin again.
        self.usual_wait = (self.usual_wait * 7 + ns.min(50 * SPIN_NS_MAX)) / 8;
    }
}

impl<M> Drop for World<M> {
    fn drop(&mut self) {
        // However the thread ends: these letters have no reader any more.
        self.inbox.close();
    }
}

#[cfg(test)]
mod tests {
    use super::Counters;
    use base::Instant;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    #[test]
    fn the_longest_turn_is_reported_for_a_minute_and_forgotten_after_two() {
        let counters = Counters::default();
        let turn = |at_s: u64, took_ms: u64| {
            let began = at_s * 1_000_000_000;
            counters.turned(Instant(began), Instant(began + took_ms * 1_000_000));
            counters.longest_turn()
        };
        assert_eq!(turn(1000, 3), Duration::from_millis(3));
        assert_eq!(turn(1001, 2), Duration::from_millis(3));
        assert_eq!(turn(1030, 7), Duration::from_millis(7));
        assert_eq!(turn(1070, 1), Duration::from_millis(7), "it was within the last minute");
        assert_eq!(turn(1140, 1), Duration::from_millis(1));
        assert_eq!(counters.long_turns.load(Ordering::Relaxed), 1, "one took more than its time");
    }
}
