//! Whole heads in simulated worlds. One program, since every test program costs a link.

mod access;
mod allocations;
mod contract;
mod cut_system;
mod dealt;
mod directory;
mod failed;
mod files;
mod hangs;
mod hashes;
mod memory;
mod older;
mod overheats;
mod pairs;
mod parts;
mod power;
mod regressions;
mod seeds;
mod slow_peers;
mod starts;
mod two_heads;
mod volumes;
mod waits;
mod wiped;
