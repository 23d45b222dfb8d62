//! Reactors, sockets and drives of a real kernel. One program, since every test program costs a link.

mod common;
mod contract;
mod drives;
mod fences;
mod machines;
mod silent;
mod sockets;
