//! The way of a host's command: connection, request, rooms, and back; and what a layer costs.

pub mod direct;
pub mod door;
pub mod far;
pub(crate) mod flow;
mod instances;
pub(crate) mod late;
pub(crate) mod link;
pub(crate) mod request;
pub mod stages;
