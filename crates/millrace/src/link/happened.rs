//! What a link reports to the layer above.

use super::identity::Fingerprint;
use super::invitation::Invitation;
use super::tls::PathSecret;
use finding::{JoinDenial, UnreachedFault};
use std::net::{IpAddr, SocketAddr};
use tokio::sync::oneshot;

/// A connection of a path. Later ones of the same path have higher numbers, from 1 on while the link lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Connection {
    /// The network's number, from 0 on.
    pub path: usize,
    /// Which connection of the path.
    pub number: u64,
}

/// What happened on a link. Each path's events arrive in order: `Up`, any number of `Bytes`, `Down`, and so on.
#[derive(Debug)]
pub enum Happened {
    /// A path is there: its peer holds the pinned certificate's key, and has greeted.
    Up {
        /// The connection from now on.
        on: Connection,
        /// The peer's end of it.
        peer_address: SocketAddr,
        /// A secret that both ends have, and nobody else.
        secret: PathSecret,
    },
    /// The next bytes of the stream, at least one, at most 64 KiB.
    Bytes {
        /// Of which connection.
        on: Connection,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The path is gone; nothing of this connection comes any more.
    Down {
        /// Which connection it was.
        on: Connection,
        /// Why.
        why: Why,
    },
    /// A path cannot be made, and is tried again. Reported once for each reason.
    Unreached {
        /// The network's number.
        path: usize,
        /// Why.
        why: UnreachedFault,
    },
    /// Somebody connected and was refused. At most 5 are reported at once, then one a second.
    Refused {
        /// Who.
        from: SocketAddr,
        /// Why.
        why: LinkRefusal,
        /// Refusals before this one that were not reported.
        unreported: u64,
    },
    /// Another head brought the token's secret, and waits for an answer.
    Joined {
        /// Who.
        newcomer: Newcomer,
        /// To be given once `newcomer` is durable.
        answer: Answer,
    },
}

/// A head that was invited and came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Newcomer {
    /// Its certificate: to be pinned.
    pub fingerprint: Fingerprint,
    /// From where it will connect, one for each network.
    pub addresses: Vec<IpAddr>,
    /// The invitation as it is to be kept: used by this head.
    pub invitation: Invitation,
}

/// Lets a newcomer in. Dropped, it says that the join could not be made durable.
#[derive(Debug)]
pub struct Answer(pub(super) oneshot::Sender<()>);

impl Answer {
    /// The newcomer and the invitation are durable: it gets its answer, and its paths are accepted from now on.
    pub fn accept(self) {
        // Nobody waits any more: the newcomer comes again, and is found to have joined.
        let _ = self.0.send(());
    }
}

/// Why a path went down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// The peer ended it, and said so: it stops, or closes this path.
    Closed,
    /// The stream ended without a word: the peer's process died, or something between the heads ended it.
    Ended,
    /// The peer's kernel knows the connection no more: the process died, or the machine started anew.
    Reset,
    /// The peer's kernel said nothing for `Limits::silence`, or took nothing.
    Silent,
    /// The network says that there is no way to the peer.
    Unreachable,
    /// The peer did not read, and more than `Limits::backlog_bytes` waited.
    Backlog,
    /// The peer made a newer connection for this path.
    Replaced,
    /// This side called `Link::close`.
    Asked,
    /// This side stops.
    Stopped,
    /// What came is not what the peer sent, or the operating system failed: its words.
    Broken(String),
}

/// Why somebody was not let in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkRefusal {
    /// Its certificate is not the pinned one.
    Certificate,
    /// It showed a certificate whose key it does not have, or none.
    Unproven,
    /// It came from another address than the other head's of this network.
    Address,
    /// It wants a path, and no other head has joined.
    NoPeer,
    /// It did not finish the handshake in time.
    Slow,
    /// It sent too much before it was authenticated.
    TooMuch,
    /// Too many connections were not authenticated, and this was the oldest.
    Crowded,
    /// It speaks no TLS, or another kind: in words.
    NotTls(String),
    /// It went away in the middle: in words.
    Left(String),
    /// It is authenticated and gets no path: it speaks no common version.
    Version,
    /// It is authenticated and gets no path: it came for the network with this number.
    OtherNetwork(u8),
    /// It is authenticated and gets no path: what it said is no greeting.
    Malformed,
    /// It wanted to join, and may not.
    Denied(JoinDenial),
}
