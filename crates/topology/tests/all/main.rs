//! Topology at its door: recordings in, machines out.

mod machines;
mod plan;
mod read;
