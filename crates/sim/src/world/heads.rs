//! What the drive checker knows of the heads: which one leads, and which one is written out.
//!
//! ```text
//! in ── its leader writes it out ─▶ late: it may not know it, and drives let it in ── a drive is fenced ─▶ nothing of it comes there
//!  ▲                                                                                                              │
//!  └───────────────────────────────── its leader lets its next process in, or it leads itself ◀───────────────────┘
//! ```
//!
//! It learns that from the machines themselves, before they act by it. Before there is a system, the head that writes records leads.

use super::World;
use base::{Duration, Instant, Uuid};
use head::steward::Leads;
use std::collections::BTreeSet;

/// See the module.
#[derive(Default)]
pub(super) struct Heads {
    lead: usize,
    /// The system and the epoch of the newest record that a leader went by.
    newest: Option<(Uuid, u64)>,
    out: BTreeSet<usize>,
    /// Servers whose process has ended, which no leader has written down yet.
    fallen: BTreeSet<usize>,
    /// Servers that are out, and drives that have confirmed it.
    shut_out: BTreeSet<(usize, usize)>,
    upset_at: Instant,
}

impl Heads {
    /// The server whose head leads.
    pub fn lead(&self) -> usize {
        self.lead
    }
    /// Whether the head of a server is written out: what it still writes is late.
    pub fn is_out(&self, server: usize) -> bool {
        self.out.contains(&server)
    }
    /// Whether any head is.
    pub fn is_any_out(&self) -> bool {
        !self.out.is_empty()
    }
    /// Whether this drive has confirmed that such a head is shut off it.
    pub fn is_shut_out(&self, server: usize, disk: usize) -> bool {
        self.is_out(server) && self.shut_out.contains(&(server, disk))
    }
    /// When a process last ended, another head came to lead, or one was written out or let in; or until when one stands still.
    pub fn upset_at(&self) -> Instant {
        self.upset_at
    }
    /// Nothing of that was for so long, and no process has ended that a leader still takes for one that lives.
    pub fn are_settled(&self, now: Instant, time: Duration) -> bool {
        self.fallen.is_empty() && now.since(self.upset_at) > time
    }

    /// Something happens that may leave legs different for a time, or does so until then.
    pub fn upset(&mut self, at: Instant) {
        self.upset_at = self.upset_at.max(at);
    }
    /// The process of a server has ended.
    pub fn falls(&mut self, server: usize, now: Instant) {
        self.fallen.insert(server);
        self.upset(now);
    }
    /// A head writes a membership record. True: another one led until now.
    pub fn writes(&mut self, server: usize) -> bool {
        self.fallen.remove(&server);
        core::mem::replace(&mut self.lead, server) != server
    }
    /// What a head goes by that leads. One that does not know yet that another leads goes by an older record, which says nothing. True:
    /// another one led until now.
    pub fn hears(&mut self, server: usize, leads: Leads, now: Instant) -> bool {
        let Leads { system, epoch, other_is_in, .. } = leads;
        if self.newest.is_some_and(|(known, newer)| known == system && newer > epoch) {
            return false;
        }
        self.newest = Some((system, epoch));
        let other = 1 - server;
        let was = (self.lead, self.is_out(other));
        self.comes_in(server);
        self.fallen.remove(&server);
        if other_is_in {
            self.comes_in(other);
        } else {
            self.out.insert(other);
            self.fallen.remove(&other);
        }
        self.lead = server;
        if was != (server, !other_is_in) {
            self.upset(now);
        }
        was.0 != server
    }
    fn comes_in(&mut self, server: usize) {
        if self.out.remove(&server) {
            self.shut_out.retain(|(of, _)| *of != server);
        }
    }
    /// A drive has confirmed that a head is shut off it.
    pub fn confirms(&mut self, server: usize, disk: usize) {
        if self.is_out(server) {
            self.shut_out.insert((server, disk));
        }
    }
}

impl World {
    /// When something happened last that heads, or their ways to drives, may not have come over yet.
    pub fn upset_at(&self) -> Instant {
        self.drive_checker.heads.upset_at()
    }
    /// Nothing has happened to heads for so long, and none has ended that the other one takes for one that lives.
    pub fn heads_are_settled(&self, time: Duration) -> bool {
        self.drive_checker.heads.are_settled(self.now, time)
    }
}
