//! Sim: the whole head in one thread, in virtual time, from one seed.
//!
//! Owns the simulated kernel (links, drives, state directory), hosts that speak the real PDUs, faults, and
//! the checkers. Promise: the same seed gives the same run, to the last event. Does not know the kernel.

pub mod access;
pub mod directory;
pub mod disk;
pub mod failover;
pub mod host;
pub mod memory;
pub mod moves;
pub mod operator;
pub mod oracle;
pub mod path;
pub mod registrants;
pub mod run;
pub mod slow_peer;
pub mod volume;
pub mod world;
