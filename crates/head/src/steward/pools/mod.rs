//! Procedures of pools: created, imported, grown, scrubbed, released.

pub(crate) mod absent;
pub(crate) mod create;
pub(crate) mod fit;
pub(crate) mod import;
pub(crate) mod judge;
pub(crate) mod leave;
pub(crate) mod listed;
pub(crate) mod meant;
pub(crate) mod released;
pub(crate) mod room;
pub(crate) mod scrub;
pub(crate) mod shrink;
pub(crate) mod uncleared;
pub(crate) mod unfinished;
