//! Encodings: numbers as bytes, and sizes as people write them.

pub mod codec;
pub mod crc;
pub mod record;
pub mod size;
