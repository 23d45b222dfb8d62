//! Load generators against targets in memory. One program, since every test program costs a link.

mod door;
mod pair;
mod world;
