//! The program as operators and loads see it. One program of tests, since each costs a link.

mod absent;
mod bad_drives;
mod binary;
mod daemon;
mod explained;
mod history;
mod hung;
mod limited;
mod loaded_heads;
mod mirrors;
mod page;
mod rejections;
mod slow_peers;
mod support;
mod tokens;
mod top;
mod two_heads;
mod weights;
