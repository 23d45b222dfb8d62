//! Finds connections whose peer acknowledges nothing any more, so that a path that was cut is given up soon.
//!
//! The kernel probes a connection that is silent both ways ([`set_options`](super::listen)). With bytes under way it
//! retransmits them instead, and gives up after a quarter of an hour. `TCP_USER_TIMEOUT` would shorten that, but would
//! also end the connection of a host that is alive and takes nothing. So this module checks the connections that have
//! sent something.

use base::Instant;
use std::os::fd::RawFd;
use std::time::Duration;

/// How often connections with bytes under way are looked at.
const EVERY: Duration = Duration::from_secs(1);
/// A peer that acknowledges nothing although the kernel has sent it something again so often, the last time after 3 s at the
/// earliest (0.2, 0.4, 0.8 and 1.6 s each), is out of reach. Any acknowledgement begins the count anew, also one that still has no room.
const UNANSWERED: u8 = 4;

/// Connections that have sent since their bytes were last seen to be acknowledged.
#[derive(Default)]
pub(super) struct Watch {
    slots: Vec<u32>,
    /// When they are looked at.
    at: Option<Instant>,
}

/// What the kernel knows of a connection that has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Peer {
    /// It has acknowledged everything.
    HasAll,
    /// It has not, yet.
    Owes,
    /// It answers nothing.
    Silent,
}

impl Watch {
    /// This one sends; not reported again before [`look`](Self::look) has let go of it.
    pub fn add(&mut self, slot: u32) {
        self.slots.push(slot);
    }

    /// When to look, if there is anything to look at.
    pub fn next(&mut self, now: Instant) -> Option<Instant> {
        if self.slots.is_empty() {
            self.at = None;
        } else if self.at.is_none() {
            self.at = Some(now + EVERY);
        }
        self.at
    }

    /// Whether it is time; then `keep` says of each whether it is checked again.
    pub fn look(&mut self, now: Instant, keep: impl FnMut(&u32) -> bool) {
        if self.at.is_some_and(|at| at <= now) {
            self.at = None;
            self.slots.retain(keep);
        }
    }
}

/// Asks the kernel about a connection's peer.
pub(super) fn peer(fd: RawFd) -> Peer {
    let mut owed: libc::c_int = 0;
    // SAFETY: the descriptor is open and ours, and the request stores one int.
    let failed = unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut owed) } < 0;
    if failed || owed == 0 {
        return Peer::HasAll;
    }
    // SAFETY: all-zero is a valid tcp_info.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel stores at most `len` bytes there.
    let failed = unsafe {
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut len) < 0
    };
    let again = info.tcpi_retransmits.max(info.tcpi_probes);
    let silent = !failed && again >= UNANSWERED;
    if silent { Peer::Silent } else { Peer::Owes }
}
