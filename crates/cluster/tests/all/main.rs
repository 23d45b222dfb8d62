//! Tests at the door of `cluster`.

mod decision;
mod link;
mod member;
mod parts;
mod world;
