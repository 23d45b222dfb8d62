//! Where a command without a host comes in, and how it ended.

use base::{Slice, Status, Tag};

/// The room at which a command comes in. All take the volume that the command names as the place that it may touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Door {
    /// Addresses are the volume's.
    #[default]
    Volume,
    /// Addresses are those of the volume's pool.
    Pool,
    /// Addresses are those of this array's data, by its index in the pool.
    Array(u16),
}

/// How a command of `Shard::direct_submit` ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// From the command.
    pub tag: Tag,
    /// How it ended.
    pub status: Status,
    /// Its buffer, which is the caller's again: another one than it gave, if some drive still holds that.
    pub data: Slice,
}
