//! head
pub mod order;
