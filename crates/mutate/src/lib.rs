//! Mutate: makes mutants by rule of this repository's own code, in a copy of it.
//!
//! Owns the rules, the places where they apply, their names, and the copy. Promise: the same text gives the same
//! places and names, and with none chosen the copy does what the tree does. Does not know worlds, and changes
//! nothing in the tree.

pub mod check;
pub mod copy;
pub mod names;
pub mod place;
pub mod places;
pub mod render;
