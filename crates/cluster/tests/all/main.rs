//! Tests at the door of `cluster`.

mod decision;
mod link;
mod parts;
mod votes;
mod world;
