//! Looks at drives: whether they are there, what is on them, how they were shaped.

pub(crate) mod drives;
pub(crate) mod labels;
pub(crate) mod shaped;
pub(crate) mod signature;
pub(crate) mod watch;
