//! Gates: commands of capped volumes wait here until their volume's rate lets them start.
//!
//! A volume without caps has no gate, and its commands pay one branch. A gate has two lines: commands with data to
//! wait for, and *prompt* ones (FUA, and everything without data), which never wait for bytes. Each line is first
//! come, first served.
//!
//! ```text
//! command ─▶ gate at the volume's home: the meter  ──────────────▶ its turn
//! command ─▶ gate elsewhere: line ─ ShardMail::Lease ─▶ home's meter
//!                             ▲◀─── ShardMail::Leased ────┘ ─────────▶ its turn
//! ```
//!
//! The meter lives at the volume's home shard. The others ask for what waits, a few milliseconds' worth at a time
//! and one question of each kind under way, and home serves its own line and its peers in turn. So one volume has
//! its whole rate wherever its hosts come in, at either head. What a lease has left over (its command was aborted) expires.

use crate::admission::caps::{Caps, Cost, Kind, Meter};
use crate::admission::lines::Line;
use crate::mail::{Mail, ShardMail};
use crate::path::request::{Phase, Request};
use crate::shard::Core;
use base::{Command, Duration, Effects, Instant, Memory, Op, Slots, VolumeId};

/// What one lease is for, at most, and what one shard may start before it is the next one's turn: so much time at
/// the volume's rate, and one command at least.
const LEASE: Duration = Duration::from_millis(2);
/// How long what is left of a lease may be used.
const LEASE_LIFE: Duration = Duration::from_millis(20);

const KINDS: [Kind; 2] = [Kind::Data, Kind::Prompt];

/// What a command counts, and in which line it waits.
fn cost_of(command: &Command, data: u32) -> (Kind, Cost) {
    let bytes = match command.op {
        Op::Read | Op::Write | Op::Compare => u64::from(data),
        // Nothing of these comes from a host or goes to one.
        Op::WriteZeroes { .. } | Op::Deallocate | Op::Flush => 0,
    };
    let kind = if bytes == 0 || command.fua { Kind::Prompt } else { Kind::Data };
    (kind, Cost { commands: 1, bytes })
}

/// One line of a gate.
#[derive(Debug, Default)]
struct Lane {
    line: Line,
    /// Elsewhere: a lease was asked for, and has not come.
    asked: bool,
    /// Elsewhere: what is left of leases, until then.
    credit: Cost,
    credit_until: Instant,
    /// At home: what other shards ask for, by shard.
    asks: Vec<Option<Cost>>,
    /// At home: whose turn it is, and what it had of it.
    turn: u16,
    had: Duration,
}

impl Lane {
    fn waits(&self) -> bool {
        !self.line.is_empty() || self.asks.iter().any(Option::is_some)
    }
}

/// A capped volume on one shard.
#[derive(Debug)]
struct Gate {
    home: u16,
    meter: Meter,
    lanes: [Lane; 2],
    /// Which of the lanes is asked first next time: none starves the other.
    first: usize,
    /// It is in `Gates::waiting`.
    listed: bool,
}

/// The gates of a shard.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    by_volume: Vec<Option<Box<Gate>>>,
    gates: u32,
    /// Volumes at whose gates somebody waits.
    waiting: Vec<u32>,
    /// When to look at them again.
    wake: Option<Instant>,
    /// Letters to other shards that are to be sent.
    letters: Vec<(u16, ShardMail)>,
}

impl Gates {
    /// When somebody may pass who waits.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.wake
    }
    fn of(&mut self, volume: VolumeId) -> Option<&mut Gate> {
        self.by_volume.get_mut(volume.index())?.as_deref_mut()
    }
    fn wake_at(&mut self, at: Instant) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
    /// Somebody waits at this gate; it is looked at again then.
    fn list(&mut self, volume: VolumeId, at: Instant) {
        let gate = self.of(volume).expect("somebody waits at it");
        if !core::mem::replace(&mut gate.listed, true) {
            self.waiting.push(volume.index() as u32);
        }
        self.wake_at(at);
    }
}

impl<M: Memory> Core<M> {
    /// A command arrives: it gets in line for its turn, now or when its volume's rate lets it.
    #[inline]
    pub fn arrive(&mut self, now: Instant, index: u32) {
        if self.gates.gates == 0 || self.passes(now, index) {
            self.turns.push_back(index);
        }
    }

    fn passes(&mut self, now: Instant, index: u32) -> bool {
        let request = &self.requests[index];
        let volume = request.command.volume;
        let (kind, cost) = cost_of(&request.command, request.data.len);
        let (id, requests) = (self.id, &mut self.requests);
        let Some(gate) = self.gates.of(volume) else { return true };
        let here = gate.home == id;
        let ready = gate.meter.ready_at(kind == Kind::Prompt);
        let lane = &mut gate.lanes[kind as usize];
        if !lane.waits() {
            if here && ready <= now {
                gate.meter.charge(now, kind == Kind::Prompt, cost);
                return true;
            }
            if !here && lane.spend(now, cost) {
                return true;
            }
        }
        requests[index].phase = Phase::Gate;
        lane.line.join(requests, index);
        if let Some(counters) = self.volume_counters.get_mut(volume.index()) {
            counters.capped += 1;
        }
        // Elsewhere: what arrives in this turn is asked for in one letter.
        self.gates.list(volume, if here { ready.max(now) } else { now });
        false
    }

    /// A command that waits at a gate does so no more.
    pub fn leave_gate(&mut self, index: u32) {
        let request = &self.requests[index];
        let (kind, _) = cost_of(&request.command, request.data.len);
        let gate = self.gates.of(request.command.volume).expect("it waits there");
        gate.lanes[kind as usize].line.leave(&mut self.requests, index);
    }

    /// Lets pass who may.
    pub fn open_gates(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        if self.gates.wake.is_none_or(|at| at > now) {
            return;
        }
        self.gates.wake = None;
        let mut i = 0;
        while i < self.gates.waiting.len() {
            let volume = VolumeId(self.gates.waiting[i]);
            let home = self.gates.of(volume).map(|gate| gate.home);
            let next = match home {
                Some(home) if home == self.id => self.serve_gate(now, volume),
                Some(home) => self.ask_home(now, volume, home),
                None => Next::Nobody,
            };
            self.send_gates_letters(fx);
            match next {
                Next::Nobody => {
                    self.gates.waiting.swap_remove(i);
                    if let Some(gate) = self.gates.of(volume) {
                        gate.listed = false;
                    }
                    continue;
                }
                Next::At(at) => self.gates.wake_at(at),
                Next::Letter => {}
            }
            i += 1;
        }
    }

    fn send_gates_letters(&mut self, fx: &mut Effects<Mail>) {
        while let Some((shard, mail)) = self.gates.letters.pop() {
            self.tell_shard(shard, mail, fx);
        }
    }

    /// At home: those who wait, in turn, as far as the rate lets them.
    fn serve_gate(&mut self, now: Instant, volume: VolumeId) -> Next {
        let Self { gates, requests, turns, id, .. } = self;
        let Gates { by_volume, letters, .. } = gates;
        let gate = by_volume[volume.index()].as_deref_mut().expect("somebody waits at it");
        loop {
            let mut served = false;
            for k in [gate.first, 1 - gate.first] {
                let prompt = KINDS[k] == Kind::Prompt;
                if gate.lanes[k].waits() && gate.meter.ready_at(prompt) <= now {
                    gate.serve(now, k, *id, requests, turns, volume, letters);
                    gate.first = 1 - k;
                    served = true;
                    break;
                }
            }
            if !served {
                break;
            }
        }
        let waits = |k: &Kind| gate.lanes[*k as usize].waits();
        let next = KINDS.iter().filter(|k| waits(k)).map(|k| gate.meter.ready_at(*k == Kind::Prompt)).min();
        next.map_or(Next::Nobody, Next::At)
    }

    /// Elsewhere: uses what there is of a lease, and asks for what is still in line.
    fn ask_home(&mut self, now: Instant, volume: VolumeId, home: u16) -> Next {
        let Self { gates, requests, turns, .. } = self;
        let Gates { by_volume, letters, .. } = gates;
        let gate = by_volume[volume.index()].as_deref_mut().expect("somebody waits at it");
        let mut next = Next::Nobody;
        for (k, lane) in gate.lanes.iter_mut().enumerate() {
            while let Some(first) = lane.line.first() {
                let (_, cost) = cost_of(&requests[first].command, requests[first].data.len);
                if !lane.spend(now, cost) {
                    break;
                }
                lane.line.leave(requests, first);
                requests[first].phase = Phase::Turn;
                turns.push_back(first);
            }
            let Some(first) = lane.line.first() else { continue };
            next = Next::Letter;
            if core::mem::replace(&mut lane.asked, true) {
                continue;
            }
            let (mut at, mut sum) = (Some(first), Cost::default());
            while let Some(index) = at {
                let (_, cost) = cost_of(&requests[index].command, requests[index].data.len);
                sum = sum.plus(cost);
                if gate.meter.worth(sum) >= LEASE {
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
        match self.gates.of(volume).filter(|gate| gate.home == id) {
            Some(gate) => {
                let asks = &mut gate.lanes[kind as usize].asks;
                asks.resize(asks.len().max(usize::from(peer) + 1), None);
                asks[usize::from(peer)] = Some(cost);
                self.gates.list(volume, now);
            }
            // The cap is gone here already, and soon there.
            None => {
                self.tell_shard(peer, ShardMail::Leased { volume, kind, cost }, fx);
            }
        }
    }

    /// What was asked of this shard may be lost: it is asked again.
    pub fn ask_gates_again(&mut self, now: Instant, home: u16) {
        for gate in self.gates.by_volume.iter_mut().flatten().filter(|gate| gate.home == home) {
            gate.lanes.iter_mut().for_each(|lane| lane.asked = false);
        }
        if !self.gates.waiting.is_empty() {
            self.gates.wake_at(now);
        }
    }

    /// Home grants one.
    pub fn on_leased(&mut self, now: Instant, volume: VolumeId, kind: Kind, cost: Cost) {
        let Some(gate) = self.gates.of(volume) else { return };
        let lane = &mut gate.lanes[kind as usize];
        lane.asked = false;
        if lane.credit_until < now {
            lane.credit = Cost::default();
        }
        (lane.credit, lane.credit_until) = (lane.credit.plus(cost), now + LEASE_LIFE);
        if gate.listed {
            self.gates.wake_at(now);
        }
    }

    /// A new configuration: gates come, change and go. Who waits at one that goes has his turn.
    pub fn set_gates(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        let Self { gates, requests, turns, volumes, id, shards, .. } = self;
        let Gates { by_volume, letters, .. } = gates;
        if by_volume.len() < volumes.len() {
            by_volume.resize_with(volumes.len(), || None);
        }
        for (index, slot) in by_volume.iter_mut().enumerate() {
            let volume = volumes.get(index).and_then(Option::as_ref);
            let capped = volume.filter(|v| v.ready && !v.caps.none()).map(|v| (v.caps, v.home));
            if let Some(gate) =
                slot.as_deref_mut().filter(|gate| capped.is_none_or(|(_, home)| home != gate.home))
            {
                gate.dissolve(*id, VolumeId(index as u32), requests, turns, letters);
                *slot = None;
            }
            match (capped, slot.as_deref_mut()) {
                (Some((caps, _)), Some(gate)) => gate.meter.set(now, caps),
                (Some((caps, home)), None) => *slot = Some(Box::new(Gate::new(now, home, *shards, caps))),
                (None, _) => {}
            }
        }
        gates.gates = gates.by_volume.iter().flatten().count() as u32;
        gates.waiting.retain(|v| gates.by_volume[*v as usize].is_some());
        gates.waiting.reserve(gates.gates as usize);
        gates.wake = (!gates.waiting.is_empty()).then_some(now);
        self.send_gates_letters(fx);
    }
}

/// When a gate is looked at again.
enum Next {
    /// Nobody waits there.
    Nobody,
    /// Then.
    At(Instant),
    /// When home has answered.
    Letter,
}

impl Lane {
    /// Takes `cost` from what is left of leases, if that is enough.
    fn spend(&mut self, now: Instant, cost: Cost) -> bool {
        let left = if now <= self.credit_until { self.credit.minus(cost) } else { None };
        self.credit = left.unwrap_or(self.credit);
        left.is_some()
    }
}

impl Gate {
    fn new(now: Instant, home: u16, shards: u16, caps: Caps) -> Self {
        let mut meter = Meter::default();
        meter.set(now, caps);
        let lane = || Lane { asks: vec![None; usize::from(shards)], ..Lane::default() };
        Self { home, meter, lanes: [lane(), lane()], first: 0, listed: false }
    }

    /// One command of ours, or one lease of a peer's.
    #[allow(clippy::too_many_arguments, reason = "the parts of a core that a gate works on")]
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
        let Self { lanes, meter, .. } = self;
        let lane = &mut lanes[k];
        let shards = lane.asks.len() as u16;
        let mut turn = lane.turn;
        let waits = |turn| match lane.asks[usize::from(turn)] {
            Some(_) => true,
            None => turn == id && !lane.line.is_empty(),
        };
        while !waits(turn) {
            turn = (turn + 1) % shards;
        }
        if turn != lane.turn {
            (lane.turn, lane.had) = (turn, Duration::ZERO);
        }
        let cost = match lane.asks[usize::from(turn)].take() {
            Some(cost) => {
                letters.push((turn, ShardMail::Leased { volume, kind: KINDS[k], cost }));
                cost
            }
            None => {
                let first = lane.line.next(requests).expect("somebody waits");
                let request = &mut requests[first];
                request.phase = Phase::Turn;
                turns.push_back(first);
                cost_of(&request.command, request.data.len).1
            }
        };
        meter.charge(now, prompt, cost);
        lane.had += meter.worth(cost);
        if lane.had >= LEASE {
            (lane.turn, lane.had) = ((turn + 1) % shards, Duration::ZERO);
        }
    }

    /// It goes.
    fn dissolve(
        &mut self,
        id: u16,
        volume: VolumeId,
        requests: &mut Slots<Request>,
        turns: &mut std::collections::VecDeque<u32>,
        letters: &mut Vec<(u16, ShardMail)>,
    ) {
        for (k, lane) in self.lanes.iter_mut().enumerate() {
            while let Some(index) = lane.line.next(requests) {
                requests[index].phase = Phase::Turn;
                turns.push_back(index);
            }
            for (peer, ask) in lane.asks.iter_mut().enumerate().filter(|_| self.home == id) {
                if let Some(cost) = ask.take() {
                    letters.push((peer as u16, ShardMail::Leased { volume, kind: KINDS[k], cost }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
