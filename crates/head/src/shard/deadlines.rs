//! Deadlines of hosts: how long a host may keep memory that others wait for.
//!
//! There is no deadline while there is memory for all. While somebody waits for memory, a connection that holds some must make progress:
//! all data of the command that has waited for them the longest must arrive within `HOST_DEADLINE`, and the host must take the next buffer
//! of its answers as a whole within that time. Then the time starts again with the next one. So neither a byte now and then nor a ping is
//! progress. An R2T that has not left yet has no deadline, nor have data that stand behind others in a stream that itself waits for memory.
//!
//! Connections of one host wait for each other, too: a path that is dead would hold up those that work. But a host that is alone delays
//! only itself if its line is slow, so beside its own connections it is enough that bytes move at all: a page of them within that time.
//!
//! A connection that misses its deadline is cut off, and everything that it held is free. This costs nothing while nobody waits: no timer,
//! no list. The checks are periodic, and each remembers what was owed at the one before.
//!
//! Staging buffers are treated in the same way: while too many connections keep bytes in them that they cannot take, those that make no
//! progress are cut off.

use super::{Connection, Core, Shard};
use crate::admission::buffer_quota::Purpose;
use crate::admission::buffers::PAGE;
use crate::limits::{HOST_DEADLINE, HOST_DEADLINE_CHECK, STALLED_MAX};
use crate::mail::Mail;
use crate::path::link::{Io, Life, Link};
use crate::path::request::{Phase, Request};
use base::front::Close;
use base::{Bug, ConnectionFault, Effect, Effects, Instant, Memory, Slots, planted};
use finding::LoginFate;

const NO_REQUEST: u32 = u32::MAX;

/// What a host owes, as a check found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct HostDeadline {
    /// Distinguishes it from what is owed next.
    what: (u64, Instant),
    /// All checks since this time have found it.
    since: Instant,
    /// The host knows of it once this many bytes have been sent.
    after: u64,
    /// Bytes that had moved at that time.
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

/// What one connection owes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkDeadlines {
    /// The data of the command that has waited the longest for its data.
    data: Option<HostDeadline>,
    /// The next buffer to be sent.
    output: Option<HostDeadline>,
    /// The number of the check that found them; findings of earlier rounds do not count.
    look: u32,
}

impl HostDeadline {
    /// The time goes on if `found` is the same as before, the host knows of it, and not enough bytes have moved for those who wait.
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
        // A connection that holds memory for unsolicited data and waits for more of it may wait for itself.
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
        // Answers without data hold no memory, only their position in the stream and perhaps a staging buffer.
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
        // A connection that only waits for its turn is not stalled.
        let stalled = !link.staged.is_empty() && !link.in_line;
        if link.stalled != stalled {
            link.stalled = !link.stalled;
            self.stalled = if link.stalled { self.stalled + 1 } else { self.stalled - 1 };
        }
    }
}

impl<M: Memory> Shard<M> {
    /// The end of a turn: plans a check of the deadlines while somebody waits.
    pub(super) fn plan_look(&mut self, now: Instant) {
        if !self.core.is_short_of_memory() {
            self.look = None;
        } else if self.look.is_none() {
            // What was found in an earlier time of waiting does not count.
            self.looks = self.looks.wrapping_add(1);
            self.look = Some(now + HOST_DEADLINE_CHECK);
        }
    }

    /// Finds what each connection owes, and cuts off those that have made no progress for too long.
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
                over.push((index, ConnectionFault::TakesNothing));
            } else if late(link.deadlines.data) {
                over.push((index, ConnectionFault::OwesData));
            }
        }
        if !over.is_empty() && planted(Bug::NeverCutOff) {
            over.clear();
        }
        for (index, why) in over {
            self.cut_off(now, index, why, fx);
        }
    }

    /// Ends a connection at once: a last PDU would wait behind what its host does not take.
    fn cut_off(&mut self, now: Instant, index: u32, why: ConnectionFault, fx: &mut Effects<Mail>) {
        let core = &mut self.core;
        let link = &mut self.connections[index].link;
        let host = link.host.and_then(|id| core.view.host(id));
        let name = host.map(|h| h.name.clone()).unwrap_or_default();
        Io { now, core, link, fx }.report_outcome(LoginFate::CutOff { why }, name);
        link.why = Some(Close::Slow);
        link.life = Life::Closing;
        self.core.touch(link);
        fx.push(Effect::Close { connection: link.id });
        self.abort_all(now, index, fx);
    }
}
