//! What is: the snapshot for `status`, and figures.

pub(crate) mod figures;
pub(crate) mod paths;
pub(crate) mod snapshot;
pub(crate) mod speed;
pub(crate) mod times;
