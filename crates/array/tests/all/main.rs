//! The array at its door, and the mirror against a model. One program, since every test program costs a link.

mod assembly;
mod bench;
mod door;
mod model;
mod reads;
mod scrub;
mod uncleared;
