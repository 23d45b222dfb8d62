//! The parts of a world, each alone. They are here since a second build of the crate, for tests inside of it, costs more than all of
//! them.

mod books;
mod disk;
mod fences;
mod memory;
mod oracle;
mod registrants;
mod state;
mod volume;
