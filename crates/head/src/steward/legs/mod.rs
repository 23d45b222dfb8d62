//! Procedures of legs: lost, returned, exchanged, promoted; and of spares.

pub(crate) mod come_back;
pub(crate) mod exchange;
pub(crate) mod failed;
pub(crate) mod hold;
pub(crate) mod members;
pub(crate) mod paths;
pub(crate) mod promote;
pub(crate) mod reopen;
pub(crate) mod spare_watch;
pub(crate) mod spares;
pub(crate) mod unrecorded;
