//! Topology at its door: recordings in, machines out.

mod explain;
mod machines;
mod read;
mod tune;
