//! Admission: what waits for what, and what is next: in-flight windows of arrays, rates of volumes, memory for data.

pub(crate) mod arena;
pub(crate) mod buffer_quota;
pub mod buffers;
pub mod caps;
pub(crate) mod lines;
pub mod rate_limit;
pub mod scheduler;
#[cfg(test)]
mod trial;
pub(crate) mod waiters;
pub mod window;
