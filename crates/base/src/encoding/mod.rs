//! How numbers become bytes, and sizes words.

pub mod codec;
pub mod crc;
pub mod record;
pub mod size;
