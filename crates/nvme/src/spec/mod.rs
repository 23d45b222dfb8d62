//! The standard's structures and numbers, as bytes: nothing here decides anything.
//!
//! Every structure is little-endian, unaligned and exactly as long as on the wire (asserted below),
//! so it can be read from and written to any bytes with `zerocopy`.

pub mod command;
pub mod fabrics;
pub mod feature;
pub mod identify;
pub mod log;
pub mod status;

pub use command::{Cqe, Sgl, Sqe, admin, nvm};
pub use fabrics::{ConnectData, ConnectFields, DISCOVERY_NQN, PropertyFields};
pub use status::StatusField;

/// A text in a field of fixed length, padded with NUL bytes (NQNs, addresses). Longer texts are cut.
pub fn text_nul<const N: usize>(text: &str) -> [u8; N] {
    pad(text, 0)
}

/// A text in a field of fixed length, padded with spaces (serial, model, firmware). Longer texts are cut.
pub fn text_spaces<const N: usize>(text: &str) -> [u8; N] {
    pad(text, b' ')
}

fn pad<const N: usize>(text: &str, with: u8) -> [u8; N] {
    let mut out = [with; N];
    let n = text.len().min(N);
    out[..n].copy_from_slice(&text.as_bytes()[..n]);
    out
}

/// The text of a NUL-padded field; None unless it ends inside the field and is UTF-8.
pub fn text_of(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|b| *b == 0)?;
    core::str::from_utf8(&field[..end]).ok()
}
