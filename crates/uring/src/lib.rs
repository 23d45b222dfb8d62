//! uring
pub mod process;
