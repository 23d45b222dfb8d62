//! Containers that allocate once, at the start.

pub mod histogram;
pub mod outbox;
pub mod slots;
