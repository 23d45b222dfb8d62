//! The product and guests: stock kernels as its hosts, and machines that it runs in.
//!
//! A program of its own: `make test` runs one of these tests at a time, and beside them nothing that fills all
//! processors. A guest that gets none misses the times that the product keeps, and what a test then sees says nothing.

mod fences;
mod floor;
mod kernel;
mod machine;
mod soak;
mod systemd;
mod wire;
