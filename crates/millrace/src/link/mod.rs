//! The transport of the link between the two heads of a system: who the other head is, and streams of bytes to it.
//!
//! Owns: this head's key and certificate ([`Identity`]), the token that invites the other head ([`Token`], [`Invitation`]), and a
//! connection for each network of the link ([`Link`]), made again whenever it is lost.
//! Promise: bytes reach and come from the holder of the pinned certificate's key alone, in order, and never from an older connection
//! once a newer one of the same path is up. Whoever is not authenticated costs bounded memory for a bounded time.
//! Does not know what the bytes mean, and keeps none of them: what was under way when a path went down is lost, and sent again by
//! whoever numbers it. Layout of all that is sent and stored here: `docs/formats/link.md`.

mod admit;
mod backlog;
mod connect;
mod handle;
mod happened;
mod identity;
mod invitation;
mod listen;
mod path;
mod settings;
mod tls;
mod token;
mod wire;

#[cfg(test)]
mod tests;

pub use backlog::NotSent;
pub use connect::join;
pub use handle::Link;
pub use happened::{Answer, Connection, Happened, LinkRefusal, Newcomer, Why};
pub use identity::{Fingerprint, Identity};
pub use invitation::{Attempt, Invitation};
pub use settings::{Connects, Limits, Listens, Settings, Side};
pub use tls::{PathSecret, random};
pub use token::{LIFE_S, PREFIX as TOKEN_PREFIX, Token};
