//! Topology at its door: recordings in, machines out.

mod explain;
mod machines;
mod plan;
mod read;
mod tune;
