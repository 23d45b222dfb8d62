//! Shards of the other head are more shards, at the end of a longer mail (docs/rfcs/0008-both-serve.md).
//!
//! ```text
//! follower: all files, drives open ─▶ Serves ─▶ leader: room asked for ─▶ each pool dealt anew, and published to both
//! leader's Steward ─▶ Configure, ToShard ─▶ follower's Steward ─▶ its shards ─▶ FromShard ─▶ the leader's context
//! put out, or left ─▶ what they have said is forgotten, and nobody waits for them
//! ```

mod follow;
mod join;
pub(in crate::steward) mod letters;
mod send;

pub(crate) use follow::Configured;
