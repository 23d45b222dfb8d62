//! The state directory: small files that are replaced atomically, one after another. Writes that were answered survive every crash. The
//! last ones that were not answered may be missing, and an append among them may be there in part.

use super::actor::ActorId;
use super::server::Refusal;
use super::{HeadOrHost, Server, World, Wrong};
use base::{Duration, Event, Instant, Prng, StateError, StateFault, StateOp, Token};
use cluster::SystemRecord;
use std::collections::VecDeque;

/// The file with the newest decision that a head knows of.
const RECORD: &str = "system-record";

/// A change that was not answered yet, and what was there before.
struct Unanswered {
    token: Token,
    name: String,
    before: Before,
}

enum Before {
    /// The whole file, if there was one.
    File(Option<Vec<u8>>),
    /// So many bytes of it.
    Bytes(usize),
}

/// What the state directory has under way.
pub(super) struct Pending {
    unanswered: VecDeque<Unanswered>,
    /// When the thread that carries it out is free again.
    free_at: Instant,
    /// A source of its own, so that worlds in which nothing is cut off are the same with it and without.
    rng: Prng,
}

impl Pending {
    pub fn new(seed: u64) -> Self {
        Self { unanswered: VecDeque::new(), free_at: Instant(0), rng: Prng::new(seed ^ 0x7374_6174_6501) }
    }
}

impl World {
    /// Carries out an operation on a file, and answers it once it is durable.
    pub(super) fn state(&mut self, id: ActorId, token: Token, op: StateOp) {
        let server = self.server_of(id).expect("hosts have no state directory");
        let looks = matches!(op, StateOp::Look { .. });
        let result = self.state_op(server, token, op);
        let event = Event::State { token, result };
        let slow = self.servers[server].slow_us;
        if slow > 0 && !looks {
            self.tally.meet(Wrong::SlowDirectory);
        }
        match (looks, self.delivery.state_us.max(slow)) {
            // Looks come each second: without a draw, so that worlds stay what they were before there were any.
            (true, _) => self.post(id, super::LOOK_TIME, HeadOrHost::Head(event)),
            (false, 0) => self.send_to_head(id, event),
            (false, most) => {
                let takes = Duration::from_micros(1 + self.servers[server].pending.rng.below(most));
                let now = self.now();
                let free_at = &mut self.servers[server].pending.free_at;
                let at = now.max(*free_at) + takes;
                *free_at = at;
                self.post(id, at.since(self.now()), HeadOrHost::Head(event));
            }
        }
    }
    /// What is done in a server's state directory takes up to so long from now on.
    pub fn slow_directory(&mut self, server: usize, slow_us: u64) {
        if self.servers[server].slow_us == slow_us {
            return;
        }
        if slow_us > 0 {
            self.tally.make(Wrong::SlowDirectory);
        }
        self.drive_checker.heads.upset(self.now);
        self.servers[server].slow_us = slow_us;
    }
    /// The head hears that an operation has ended: it and all before it stay.
    pub fn state_answered(&mut self, server: usize, token: Token) {
        let unanswered = &mut self.servers[server].pending.unanswered;
        if let Some(at) = unanswered.iter().position(|u| u.token == token) {
            unanswered.drain(..=at);
        }
    }
    /// What a file holds whatever becomes of its head; None: perhaps there is none.
    pub(super) fn durable_file(&self, server: usize, name: &str) -> Option<&[u8]> {
        let Server { pending, state, .. } = &self.servers[server];
        let file = state.get(name).map(Vec::as_slice);
        match pending.unanswered.iter().find(|u| u.name == name).map(|u| &u.before) {
            None => file,
            Some(Before::File(before)) => before.as_deref(),
            Some(Before::Bytes(bytes)) => file.map(|file| &file[..(*bytes).min(file.len())]),
        }
    }
    /// The newest decision that the directory of a server knows of, whatever becomes of its head.
    pub(super) fn durable_record(&self, server: usize) -> Option<SystemRecord> {
        let file = self.durable_file(server, RECORD)?;
        let files::content::Record { record } = files::open(RECORD, file).ok()?;
        SystemRecord::from_bytes(&base::codec::unhex(&record)?).ok()
    }
    /// The head is gone; with its power, or without it. Any number of the last changes never were.
    pub fn state_fell(&mut self, server: usize, power: bool) {
        let Server { pending, state, .. } = &mut self.servers[server];
        let Pending { unanswered, rng, free_at } = pending;
        *free_at = self.now;
        if unanswered.is_empty() {
            return;
        }
        let mut undone = rng.below(unanswered.len() as u64 + 1);
        while let Some(Unanswered { name, before, .. }) = unanswered.pop_back() {
            let file = state.get_mut(&name);
            match before {
                _ if undone == 0 => {
                    if let (Before::Bytes(before), Some(file), true) = (before, file, power) {
                        file.truncate(rng.between(before.min(file.len()) as u64, file.len() as u64) as usize);
                    }
                    unanswered.clear();
                    return;
                }
                Before::File(Some(before)) => drop(state.insert(name, before)),
                Before::File(None) => drop(state.remove(&name)),
                Before::Bytes(before) => file.into_iter().for_each(|f| f.truncate(before)),
            }
            undone -= 1;
        }
    }
    /// Converts the state directory of a server, as a daemon does before its head begins.
    pub fn convert_state(&mut self, server: usize) {
        let state = &mut self.servers[server].state;
        let steps = files::plan(state).unwrap_or_default();
        steps.into_iter().for_each(|step| drop(state.insert(step.name, step.contents)));
    }
    /// Carries an operation out: what it read, or the error that is its answer.
    pub fn state_op(&mut self, server: usize, token: Token, op: StateOp) -> Result<Vec<u8>, StateError> {
        let wants = match op {
            StateOp::Write { .. }
            | StateOp::Append { .. }
            | StateOp::Remove { .. }
            | StateOp::Look { .. } => true,
            StateOp::Read { .. } | StateOp::List | StateOp::Candidates | StateOp::Clock => false,
        };
        if wants && self.servers[server].frozen_at.is_some() {
            self.tally.meet(Wrong::FullDirectory);
            return Err(StateError::Failed(StateFault::ReadOnly { path: "state".into() }));
        }
        let refusal = match &op {
            StateOp::Write { name, .. } if name != "probe" => self.servers[server].refuses.pop_front(),
            _ => None,
        };
        let fault = || StateFault::Errno { path: "state".into(), errno: 5 };
        match refusal {
            Some(Refusal::Refused) => {
                self.tally.meet(Wrong::FullDirectory);
                return Err(StateError::Failed(fault()));
            }
            Some(Refusal::Unsettled) => return Err(StateError::Unsettled(fault())),
            Some(Refusal::Landed) | None => {}
        }
        if let StateOp::Write { name, contents } = &op {
            self.checker_state(server, name, contents);
        }
        let now = self.now();
        let Self { servers, disks, tally, .. } = self;
        let Server { state, pending, day_ms, .. } = &mut servers[server];
        match op {
            StateOp::Read { name } => state.get(&name).cloned().ok_or(StateError::Missing),
            StateOp::Write { name, contents } if refusal.is_some() => {
                state.insert(name, contents);
                Err(StateError::Unsettled(fault()))
            }
            StateOp::Write { name, contents } => {
                let before = Before::File(state.insert(name.clone(), contents));
                pending.unanswered.push_back(Unanswered { token, name, before });
                Ok(vec![])
            }
            StateOp::Append { name, contents, bytes_max } => {
                let file = state.entry(name.clone()).or_default();
                let mut before = Before::Bytes(file.len());
                if (file.len() + contents.len()) as u64 > bytes_max {
                    before = Before::File(Some(file.clone()));
                }
                file.extend(contents);
                if file.len() as u64 > bytes_max {
                    let half = file.len() / 2;
                    file.drain(..half);
                }
                pending.unanswered.push_back(Unanswered { token, name, before });
                Ok(vec![])
            }
            StateOp::Remove { name } => {
                let before = Before::File(state.remove(&name));
                pending.unanswered.push_back(Unanswered { token, name, before });
                Ok(vec![])
            }
            StateOp::Look { .. } | StateOp::List => {
                Ok(state.keys().map(|k| format!("{k}\n")).collect::<String>().into_bytes())
            }
            StateOp::Candidates => {
                Ok(disks.iter().map(|d| format!("{}\n", d.spec)).collect::<String>().into_bytes())
            }
            StateOp::Clock => {
                if *day_ms != 0 {
                    tally.meet(Wrong::ClockJumps);
                }
                let day = 1_800_000_000_000 + (now.0 / 1_000_000) as i64 + *day_ms;
                Ok(format!("{day}").into_bytes())
            }
        }
    }
}
