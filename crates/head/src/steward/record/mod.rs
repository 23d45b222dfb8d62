//! What becomes durable, and where: configurations on drives, the witness and the state directory.

pub(crate) mod directory;
pub(crate) mod files;
pub(crate) mod kept;
pub(crate) mod lost;
pub(crate) mod propose;
pub(crate) mod settle;
pub(crate) mod texts;
pub(crate) mod unknown;
pub(crate) mod vanished;
pub(crate) mod witness;
