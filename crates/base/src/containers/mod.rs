//! Containers whose memory is taken once, at the start.

pub mod histogram;
pub mod outbox;
pub mod slots;
