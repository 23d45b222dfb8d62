//! Encodings: numbers as bytes, and sizes and moments as people write them.

pub mod codec;
pub mod crc;
pub mod record;
pub mod size;
pub mod utc;
