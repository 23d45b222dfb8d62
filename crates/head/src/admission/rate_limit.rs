//! Rate limiters: commands of capped volumes wait here until their volume's rate lets them start.
//!
//! A volume without caps has no limiter, and its commands pay one branch. A limiter has two queues: commands with data to wait for, and
//! *prompt* ones (FUA, and everything without data), which never wait for bytes. Each queue is first come, first served.
//!
//! ```text
//! command ─▶ limiter at the volume's home: the meter ──────────────▶ its turn
//! command ─▶ limiter elsewhere: queue ─ ShardMail::Lease ─▶ home's meter
//!                                 ▲◀─── ShardMail::Leased ────┘ ─────▶ its turn
//! ```
//!
//! The meter lives at the volume's home shard. The other shards ask it for what waits with them, a few milliseconds' worth at a time and
//! with one question of each kind under way; home serves its own queue and its peers in turn. So one volume has its whole rate wherever its
//! hosts connect, at either head. What is left of a lease because its command was aborted expires.

use crate::admission::caps::{Cost, Kind, Meter};
use crate::admission::lines::Line;
use crate::mail::{Mail, ShardMail};
use crate::path::request::{Phase, Request};
use crate::shard::Core;
use base::{Command, Duration, Effects, Instant, Memory, Op, Slots, VolumeId};
use volume::Caps;

/// The most that one lease is for, and that one shard may start before it is the next one's turn: this much time at
/// the volume's rate, and at least one command.
const LEASE: Duration = Duration::from_millis(2);
/// How long what is left of a lease may be used.
const LEASE_LIFE: Duration = Duration::from_millis(20);

const KINDS: [Kind; 2] = [Kind::Data, Kind::Prompt];

/// What a command costs, and in which queue it waits.
fn cost_of(command: &Command, data: u32) -> (Kind, Cost) {
    let bytes = match command.op {
        Op::Read | Op::Write | Op::Compare => u64::from(data),
        // Nothing of these comes from a host or goes to one.
        Op::WriteZeroes { .. } | Op::Deallocate | Op::Flush => 0,
    };
    let kind = if bytes == 0 || command.fua { Kind::Prompt } else { Kind::Data };
    (kind, Cost { commands: 1, bytes })
}

/// One of the two queues of a limiter.
#[derive(Debug, Default)]
struct Queue {
    line: Line,
    /// Elsewhere: a lease was asked for and has not arrived.
    asked: bool,
    /// Elsewhere: what is left of leases, until then.
    credit: Cost,
    credit_until: Instant,
    /// At home: what other shards ask for, by shard.
    asks: Vec<Option<Cost>>,
    /// At home: the shard whose turn it is, and how much of it that shard has used.
    turn: u16,
    had: Duration,
}

impl Queue {
    fn waits(&self) -> bool {
        !self.line.is_empty() || self.asks.iter().any(Option::is_some)
    }
}

/// A capped volume on one shard.
#[derive(Debug)]
struct RateLimiter {
    home: u16,
    meter: Meter,
    queues: [Queue; 2],
    /// Which of the queues is asked first next time: none starves the other.
    first: usize,
    /// It is in `RateLimiters::waiting`.
    listed: bool,
}

/// The limiters of a shard.
#[derive(Debug, Default)]
pub(crate) struct RateLimiters {
    by_volume: Vec<Option<Box<RateLimiter>>>,
    count: u32,
    /// Volumes whose limiters hold commands back.
    waiting: Vec<u32>,
    /// When to look at them again.
    wake: Option<Instant>,
    /// Letters to other shards that are to be sent.
    letters: Vec<(u16, ShardMail)>,
}

impl RateLimiters {
    /// When a command that waits may start.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.wake
    }
    /// Limiters that hold back commands of this shard, or leases of others. For checkers.
    pub fn held_back(&self) -> u32 {
        let limiters = self.by_volume.iter().flatten();
        limiters.filter(|limiter| limiter.queues.iter().any(Queue::waits)).count() as u32
    }
    fn of(&mut self, volume: VolumeId) -> Option<&mut RateLimiter> {
        self.by_volume.get_mut(volume.index())?.as_deref_mut()
    }
    fn wake_at(&mut self, at: Instant) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
    /// Commands wait at this limiter; it is looked at again at that time.
    fn list(&mut self, volume: VolumeId, at: Instant) {
        let limiter = self.of(volume).expect("commands wait at it");
        if !core::mem::replace(&mut limiter.listed, true) {
            self.waiting.push(volume.index() as u32);
        }
        self.wake_at(at);
    }
}

impl<M: Memory> Core<M> {
    /// A command arrives: it starts, if it can at once and nobody is before it. Else it joins the queue of turns, now or when
    /// its volume's rate lets it.
    #[inline]
    pub fn arrive(&mut self, now: Instant, index: u32, fx: &mut Effects<Mail>) {
        if self.limiters.count > 0 && !self.passes(now, index) {
            return;
        }
        let first = self.turns.is_empty() && self.parked.is_empty();
        if !first || !self.start_whole(now, index, None, fx) {
            self.turns.push_back(index);
        }
    }

    fn passes(&mut self, now: Instant, index: u32) -> bool {
        let request = &self.requests[index];
        let volume = request.command.volume;
        let (kind, cost) = cost_of(&request.command, request.data.len);
        let (id, requests) = (self.id, &mut self.requests);
        let Some(limiter) = self.limiters.of(volume) else { return true };
        let here = limiter.home == id;
        let ready = limiter.meter.ready_at(kind == Kind::Prompt);
        let queue = &mut limiter.queues[kind as usize];
        if !queue.waits() {
            if here && ready <= now {
                limiter.meter.charge(now, kind == Kind::Prompt, cost);
                return true;
            }
            if !here && queue.spend(now, cost) {
                return true;
            }
        }
        requests[index].phase = Phase::RateLimit;
        queue.line.join(requests, index);
        if let Some(counters) = self.volume_counters.get_mut(volume.index()) {
            counters.capped += 1;
        }
        // Elsewhere: what arrives in this turn is asked for in one letter.
        self.limiters.list(volume, if here { ready.max(now) } else { now });
        false
    }

    /// A command leaves its limiter.
    pub fn leave_limiter(&mut self, index: u32) {
        let request = &self.requests[index];
        let (kind, _) = cost_of(&request.command, request.data.len);
        let limiter = self.limiters.of(request.command.volume).expect("it waits there");
        limiter.queues[kind as usize].line.leave(&mut self.requests, index);
    }

    /// Starts the commands that the rates let start.
    pub fn run_limiters(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        if self.limiters.wake.is_none_or(|at| at > now) {
            return;
        }
        self.limiters.wake = None;
        let mut i = 0;
        while i < self.limiters.waiting.len() {
            let volume = VolumeId(self.limiters.waiting[i]);
            let home = self.limiters.of(volume).map(|limiter| limiter.home);
            let next = match home {
                Some(home) if home == self.id => self.serve_limiter(now, volume),
                Some(home) => self.ask_home(now, volume, home),
                None => Next::Nobody,
            };
            self.send_limiter_letters(fx);
            match next {
                Next::Nobody => {
                    self.limiters.waiting.swap_remove(i);
                    if let Some(limiter) = self.limiters.of(volume) {
                        limiter.listed = false;
                    }
                    continue;
                }
                Next::At(at) => self.limiters.wake_at(at),
                Next::Letter => {}
            }
            i += 1;
        }
    }

    fn send_limiter_letters(&mut self, fx: &mut Effects<Mail>) {
        while let Some((shard, mail)) = self.limiters.letters.pop() {
            self.send_to_shard(shard, mail, fx);
        }
    }

    /// At home: starts waiting commands and grants leases, in turn, as far as the rate lets them.
    fn serve_limiter(&mut self, now: Instant, volume: VolumeId) -> Next {
        let Self { limiters, requests, turns, id, .. } = self;
        let RateLimiters { by_volume, letters, .. } = limiters;
        let limiter = by_volume[volume.index()].as_deref_mut().expect("commands wait at it");
        loop {
            let mut served = false;
            for k in [limiter.first, 1 - limiter.first] {
                let prompt = KINDS[k] == Kind::Prompt;
                if limiter.queues[k].waits() && limiter.meter.ready_at(prompt) <= now {
                    limiter.serve(now, k, *id, requests, turns, volume, letters);
                    limiter.first = 1 - k;
                    served = true;
                    break;
                }
            }
            if !served {
                break;
            }
        }
        let waits = |k: &Kind| limiter.queues[*k as usize].waits();
        let next =
            KINDS.iter().filter(|k| waits(k)).map(|k| limiter.meter.ready_at(*k == Kind::Prompt)).min();
        next.map_or(Next::Nobody, Next::At)
    }

    /// Elsewhere: uses what is left of leases, and asks for what still waits.
    fn ask_home(&mut self, now: Instant, volume: VolumeId, home: u16) -> Next {
        let Self { limiters, requests, turns, .. } = self;
        let RateLimiters { by_volume, letters, .. } = limiters;
        let limiter = by_volume[volume.index()].as_deref_mut().expect("commands wait at it");
        let mut next = Next::Nobody;
        for (k, queue) in limiter.queues.iter_mut().enumerate() {
            while let Some(first) = queue.line.first() {
                let (_, cost) = cost_of(&requests[first].command, requests[first].data.len);
                if !queue.spend(now, cost) {
                    break;
                }
                queue.line.leave(requests, first);
                requests[first].phase = Phase::Turn;
                turns.push_back(first);
            }
            let Some(first) = queue.line.first() else { continue };
            next = Next::Letter;
            if core::mem::replace(&mut queue.asked, true) {
                continue;
            }
            let (mut at, mut sum) = (Some(first), Cost::default());
            while let Some(index) = at {
                let (_, cost) = cost_of(&requests[index].command, requests[index].data.len);
                sum = sum.plus(cost);
                if limiter.meter.worth(sum) >= LEASE {
                    break;
                }
                at = Line::behind(requests, index);
            }
            letters.push((home, ShardMail::Lease { volume, kind: KINDS[k], cost: sum }));
        }
        next
    }

    /// A peer asks for a lease.
    pub fn on_lease(
        &mut self,
        now: Instant,
        peer: u16,
        volume: VolumeId,
        kind: Kind,
        cost: Cost,
        fx: &mut Effects<Mail>,
    ) {
        let id = self.id;
        match self.limiters.of(volume).filter(|limiter| limiter.home == id) {
            Some(limiter) => {
                let asks = &mut limiter.queues[kind as usize].asks;
                asks.resize(asks.len().max(usize::from(peer) + 1), None);
                asks[usize::from(peer)] = Some(cost);
                self.limiters.list(volume, now);
            }
            // The cap is gone here already, and soon there.
            None => {
                self.send_to_shard(peer, ShardMail::Leased { volume, kind, cost }, fx);
            }
        }
    }

    /// What was asked of this shard may be lost: it is asked again.
    pub fn ask_limiters_again(&mut self, now: Instant, home: u16) {
        for limiter in self.limiters.by_volume.iter_mut().flatten().filter(|limiter| limiter.home == home) {
            limiter.queues.iter_mut().for_each(|queue| queue.asked = false);
        }
        if !self.limiters.waiting.is_empty() {
            self.limiters.wake_at(now);
        }
    }

    /// Home grants one.
    pub fn on_leased(&mut self, now: Instant, volume: VolumeId, kind: Kind, cost: Cost) {
        let Some(limiter) = self.limiters.of(volume) else { return };
        let queue = &mut limiter.queues[kind as usize];
        queue.asked = false;
        if queue.credit_until < now {
            queue.credit = Cost::default();
        }
        queue.credit = queue.credit.plus(cost);
        queue.credit_until = now + LEASE_LIFE;
        if limiter.listed {
            self.limiters.wake_at(now);
        }
    }

    /// A new configuration: limiters are made, changed and removed. What waits at one that is removed starts.
    pub fn set_limiters(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        let Self { limiters, requests, turns, volumes, id, shards, .. } = self;
        let RateLimiters { by_volume, letters, .. } = limiters;
        if by_volume.len() < volumes.len() {
            by_volume.resize_with(volumes.len(), || None);
        }
        for (index, slot) in by_volume.iter_mut().enumerate() {
            let volume = volumes.get(index).and_then(Option::as_ref);
            let capped = volume.filter(|v| v.ready && !v.caps.none()).map(|v| (v.caps, v.home));
            if let Some(limiter) =
                slot.as_deref_mut().filter(|limiter| capped.is_none_or(|(_, home)| home != limiter.home))
            {
                limiter.dissolve(*id, VolumeId(index as u32), requests, turns, letters);
                *slot = None;
            }
            match (capped, slot.as_deref_mut()) {
                (Some((caps, _)), Some(limiter)) => limiter.meter.set(now, caps),
                (Some((caps, home)), None) => {
                    *slot = Some(Box::new(RateLimiter::new(now, home, *shards, caps)))
                }
                (None, _) => {}
            }
        }
        limiters.count = limiters.by_volume.iter().flatten().count() as u32;
        limiters.waiting.retain(|v| limiters.by_volume[*v as usize].is_some());
        limiters.waiting.reserve(limiters.count as usize);
        limiters.wake = (!limiters.waiting.is_empty()).then_some(now);
        self.send_limiter_letters(fx);
    }
}

/// When a limiter is looked at again.
enum Next {
    /// Nobody waits there.
    Nobody,
    /// Then.
    At(Instant),
    /// When home has answered.
    Letter,
}

impl Queue {
    /// Takes `cost` from what is left of leases, if that is enough.
    fn spend(&mut self, now: Instant, cost: Cost) -> bool {
        let left = if now <= self.credit_until { self.credit.minus(cost) } else { None };
        self.credit = left.unwrap_or(self.credit);
        left.is_some()
    }
}

impl RateLimiter {
    fn new(now: Instant, home: u16, shards: u16, caps: Caps) -> Self {
        let mut meter = Meter::default();
        meter.set(now, caps);
        let queue = || Queue { asks: vec![None; usize::from(shards)], ..Queue::default() };
        Self { home, meter, queues: [queue(), queue()], first: 0, listed: false }
    }

    /// Starts one command of this shard, or grants one lease to a peer.
    #[allow(clippy::too_many_arguments, reason = "the parts of a core that a limiter works on")]
    fn serve(
        &mut self,
        now: Instant,
        k: usize,
        id: u16,
        requests: &mut Slots<Request>,
        turns: &mut std::collections::VecDeque<u32>,
        volume: VolumeId,
        letters: &mut Vec<(u16, ShardMail)>,
    ) {
        let prompt = KINDS[k] == Kind::Prompt;
        let Self { queues, meter, .. } = self;
        let queue = &mut queues[k];
        let shards = queue.asks.len() as u16;
        let mut turn = queue.turn;
        let waits = |turn| match queue.asks[usize::from(turn)] {
            Some(_) => true,
            None => turn == id && !queue.line.is_empty(),
        };
        while !waits(turn) {
            turn = (turn + 1) % shards;
        }
        if turn != queue.turn {
            queue.turn = turn;
            queue.had = Duration::ZERO;
        }
        let cost = match queue.asks[usize::from(turn)].take() {
            Some(cost) => {
                letters.push((turn, ShardMail::Leased { volume, kind: KINDS[k], cost }));
                cost
            }
            None => {
                let first = queue.line.next(requests).expect("somebody waits");
                let request = &mut requests[first];
                request.phase = Phase::Turn;
                turns.push_back(first);
                cost_of(&request.command, request.data.len).1
            }
        };
        meter.charge(now, prompt, cost);
        queue.had += meter.worth(cost);
        if queue.had >= LEASE {
            queue.turn = (turn + 1) % shards;
            queue.had = Duration::ZERO;
        }
    }

    /// It is removed: everything that waits starts.
    fn dissolve(
        &mut self,
        id: u16,
        volume: VolumeId,
        requests: &mut Slots<Request>,
        turns: &mut std::collections::VecDeque<u32>,
        letters: &mut Vec<(u16, ShardMail)>,
    ) {
        for (k, queue) in self.queues.iter_mut().enumerate() {
            while let Some(index) = queue.line.next(requests) {
                requests[index].phase = Phase::Turn;
                turns.push_back(index);
            }
            for (peer, ask) in queue.asks.iter_mut().enumerate().filter(|_| self.home == id) {
                if let Some(cost) = ask.take() {
                    letters.push((peer as u16, ShardMail::Leased { volume, kind: KINDS[k], cost }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
