//! Words for each topic of the crate `finding`.

pub mod client;
pub mod host;
pub mod leg;
pub mod pool;
pub mod portal;
pub mod record;
pub mod request;
pub mod system;
pub mod volume;

use super::{Said, cause, connection_fault, link, machine, notice, parts, signature, way, why};
