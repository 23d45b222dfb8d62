//! What hosts let a shard wait for while others wait for memory.
//!
//! Nobody is hurried while there is memory for all. While somebody waits for some, a connection that holds
//! memory must go on: all data of the command that has waited the longest for them must come within
//! `HOST_DEADLINE`, and the next buffer of its answers must be taken as a whole within that time. Then the time
//! starts again with the next one. So a byte now and then is no progress, nor is a ping; an R2T that has not left
//! yet is not due, nor are data that stand behind others in a stream that waits for memory itself.
//!
//! A host's own connections wait for each other, too: one of a path that is dead would hold up those that live.
//! But a host alone has only its own line to be slow on, so beside its own it is enough that bytes move at all:
//! a page of them within that time.
//!
//! Who does not go on is cut off, and everything that it held is free. It costs nothing while nobody waits:
//! no timer, no list. The looks are by the clock, and each remembers what was due at the one before.
//!
//! Staging buffers are looked after in the same way: while too many connections keep bytes in them that they
//! cannot take, those that do not go on are cut off.

use super::{Connection, Core, Shard};
use crate::admission::buffer_quota::Purpose;
use crate::admission::buffers::PAGE;
use crate::limits::{HOST_DEADLINE, HOST_DEADLINE_CHECK, STALLED_MAX};
use crate::mail::{LoginOutcome, Mail};
use crate::path::link::{Io, Life, Link};
use crate::path::request::{Phase, Request};
use base::front::Close;
use base::{Bug, Effect, Effects, Instant, Memory, Slots, planted};

const OWES_DATA: &str = "it kept memory for data that it did not send";
const TAKES_NOTHING: &str = "it kept memory for data that it asked for and did not take";
const NO_REQUEST: u32 = u32::MAX;

/// Something that is waited for, as a look found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct HostDeadline {
    /// Tells it from what is due next.
    what: (u64, Instant),
    /// It was due at all looks from this time on.
    since: Instant,
    /// The host knows of it once so many bytes have been sent.
    after: u64,
    /// Bytes that had moved then.
    moved: u64,
}

/// Who waits for memory beside a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Others {
    Nobody,
    /// Other connections of its host.
    Own,
    Hosts,
}

/// What is due of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkDeadlines {
    /// Data of the command that has waited for them the longest.
    data: Option<HostDeadline>,
    /// The next buffer to be sent.
    output: Option<HostDeadline>,
    /// The number of the look that found them: what an earlier one found, is forgotten.
    look: u32,
}

impl HostDeadline {
    /// The time goes on if `found` is the same as before, the host knows of it, and what moved is not enough
    /// for those who wait.
    fn go_on(before: Option<HostDeadline>, found: HostDeadline, sent: u64, others: Others) -> HostDeadline {
        match before {
            Some(due) if due.what != found.what => found,
            Some(due) if sent < due.after => HostDeadline { after: due.after, ..found },
            Some(due) if others == Others::Own && found.moved - due.moved >= PAGE => {
                HostDeadline { after: due.after, ..found }
            }
            Some(due) => due,
            None => found,
        }
    }
    fn is_over(&self, now: Instant) -> bool {
        now.since(self.since) >= HOST_DEADLINE
    }
}

/// What a connection's commands wait for.
struct Waits {
    /// The one that has waited the longest for its host: for data, or for room for its answer.
    oldest: Option<(u64, Instant)>,
    /// Its stream waits for memory, and so does what stands in it.
    blocked: bool,
}

impl Waits {
    fn of(link: &Link, requests: &Slots<Request>) -> Self {
        let mine = || link.tags.iter().filter(|r| **r != NO_REQUEST).map(|r| (*r, &requests[*r]));
        let blocks = |r: &Request| matches!(r.phase, Phase::Buffer(_)) && r.purpose == Purpose::Unasked;
        let blocked = mine().any(|(_, r)| blocks(r));
        // Who holds memory for data that come unasked and waits for more of it may wait for himself.
        let due = |r: &Request| {
            let held = r.phase == Phase::Connection && r.buffer.is_some();
            held && (!blocked || r.purpose == Purpose::Unasked)
        };
        let oldest = mine().filter(|(_, r)| due(r)).map(|(index, r)| (r.started, index)).min();
        Self { oldest: oldest.map(|(started, index)| (u64::from(index), started)), blocked }
    }
}

/// The next buffer that the kernel is to take for a connection.
fn output(link: &Link, requests: &Slots<Request>) -> Option<(u64, Instant)> {
    match link.outbox.next_mark() {
        _ if !link.sending => None,
        Some(request) => Some((u64::from(request), requests[request].started)),
        // Answers without data hold no memory but a place in line, and perhaps a staging buffer.
        None => link.stalled.then(|| ((1 << 63) | (link.outbox.sent() / PAGE), Instant(0))),
    }
}

impl<M: Memory> Core<M> {
    /// Whether somebody waits for memory, or too many keep staging buffers.
    #[inline]
    pub(super) fn is_short_of_memory(&self) -> bool {
        self.quota.waiting() > 0 || self.stalled >= STALLED_MAX
    }
    /// Who waits beside a connection.
    fn others(&self, link: &Link) -> Others {
        if self.stalled >= STALLED_MAX || self.quota.waiting_beside(link.account) > 0 {
            Others::Hosts
        } else if self.quota.waiting_beside_link(link.index) > 0 {
            Others::Own
        } else {
            Others::Nobody
        }
    }
    /// Counts the connections whose bytes cannot be taken.
    #[inline]
    pub(super) fn stall(&mut self, link: &mut Link) {
        // Who stands in line for a turn could go on.
        let stalled = !link.staged.is_empty() && !link.in_line;
        if link.stalled != stalled {
            link.stalled = !link.stalled;
            self.stalled = if link.stalled { self.stalled + 1 } else { self.stalled - 1 };
        }
    }
}

impl<M: Memory> Shard<M> {
    /// The end of a turn: while somebody waits, there will be a look at what is due.
    pub(super) fn plan_look(&mut self, now: Instant) {
        if !self.core.is_short_of_memory() {
            self.look = None;
        } else if self.look.is_none() {
            // What was found while others waited before does not count.
            self.looks = self.looks.wrapping_add(1);
            self.look = Some(now + HOST_DEADLINE_CHECK);
        }
    }

    /// Finds what is due, and cuts off those who have not gone on for too long.
    pub(super) fn check_deadlines(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        self.look = Some(now + HOST_DEADLINE_CHECK);
        self.core.make_up_for_kept(now, fx);
        let mut over = vec![];
        for (index, Connection { link, .. }) in self.connections.iter_mut() {
            if link.life != Life::Open || link.live == 0 {
                continue;
            }
            let before =
                if link.deadlines.look == self.looks { link.deadlines } else { LinkDeadlines::default() };
            let waits = Waits::of(link, &self.core.requests);
            let others = self.core.others(link);
            let (sent, pending) = (link.outbox.sent(), link.outbox.pending());
            let data = waits.oldest.filter(|_| others != Others::Nobody || waits.blocked);
            let output = output(link, &self.core.requests).filter(|_| others != Others::Nobody);
            let due = |before, what, after, moved| {
                HostDeadline::go_on(before, HostDeadline { what, since: now, after, moved }, sent, others)
            };
            link.deadlines = LinkDeadlines {
                data: data.map(|what| due(before.data, what, sent + pending, link.came)),
                output: output.map(|what| due(before.output, what, 0, sent)),
                look: self.looks,
            };
            let late = |due: Option<HostDeadline>| due.is_some_and(|due| due.is_over(now));
            if late(link.deadlines.output) {
                over.push((index, TAKES_NOTHING));
            } else if late(link.deadlines.data) {
                over.push((index, OWES_DATA));
            }
        }
        if planted(Bug::NeverCutOff) {
            over.clear();
        }
        for (index, why) in over {
            self.cut_off(now, index, why, fx);
        }
    }

    /// Ends a connection at once: last words would wait behind what its host does not take.
    fn cut_off(&mut self, now: Instant, index: u32, why: &'static str, fx: &mut Effects<Mail>) {
        let core = &mut self.core;
        let link = &mut self.connections[index].link;
        let host = link.host.and_then(|id| core.view.host(id));
        let name = host.map(|h| h.name.clone()).unwrap_or_default();
        Io { now, core, link, fx }.report_outcome(LoginOutcome::CutOff, name, why);
        link.why = Some(Close::Slow);
        link.life = Life::Closing;
        self.core.touch(link);
        fx.push(Effect::Close { connection: link.id });
        self.abort_all(now, index, fx);
    }
}
