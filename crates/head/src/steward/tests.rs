//! Tests of the Steward, in a little world.
