//! The system: this head is one of two that share drives (docs/rfcs/0007-cluster.md).
//!
//! ```text
//! start ─▶ what is decided, as far as it is known here ─▶ member ─▶ Leader? ─▶ the start of a head, with every drive fenced
//!                                                           └─▶ Follower: drives open, files kept like the leader's; until it leads
//! ```

mod addresses;
pub(crate) mod behind;
mod compare;
mod decide;
mod fence;
mod files;
mod live;
mod order;
mod reach;
mod standby;
mod trial;
mod upper;

pub(crate) use order::not_leading;
pub(crate) use upper::{Said, Upper};
