//! Receive state: where the next bytes of the connection belong.

use crate::spec::{Sgl, Sqe, StatusField};

/// Where the next byte belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rx {
    /// To a header.
    Header,
    /// Nowhere yet: this command waits for a free tag.
    Parked { sqe: Sqe, data: u32, digest: bool },
    /// Nowhere yet: this payload waits for its buffer.
    AwaitingBuffer(Payload),
    /// To a payload.
    Payload(Payload),
    /// To a payload's digest.
    Digest(Payload),
}

/// The data of one PDU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    pub to: To,
    /// Bytes before the data, which are skipped (in-capsule SGLs may have an offset).
    pub skip: u32,
    /// Bytes of data yet to come.
    pub left: u32,
    /// Bytes after them, which are skipped.
    pub tail: u32,
    /// Where in the buffer the next byte goes.
    pub at: u32,
    /// CRC32C so far, if a digest follows.
    pub crc: u32,
    pub digest: bool,
}

/// Who gets a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum To {
    Command(u16),
    Connect,
    Nobody,
}

impl Payload {
    pub fn to_nobody(data: u32, digest: bool) -> Self {
        Self { to: To::Nobody, skip: 0, left: 0, tail: data, at: 0, crc: 0, digest }
    }
    pub fn rest(&self) -> u32 {
        self.skip + self.left + self.tail
    }
}

/// Whether reading goes on.
pub(crate) enum Step {
    Took(usize),
    Wait,
}

/// Checks the data descriptor of a command that moves `min..=max` bytes (NVMe/TCP 3.3.2).
///
/// `capsule` is the length of the in-capsule data, where the host sends data. Gives their offset in the
/// capsule, or None if the data travel in data PDUs.
pub(crate) fn check_sgl(
    sgl: &Sgl,
    min: u32,
    max: u32,
    capsule: Option<u32>,
) -> Result<Option<u32>, StatusField> {
    let length = sgl.length.get();
    match (sgl.kind, capsule) {
        (Sgl::TRANSPORT, _) | (Sgl::IN_CAPSULE, Some(_)) => {}
        _ => return Err(StatusField::SGL_TYPE_INVALID),
    }
    if length < min || length > max {
        return Err(StatusField::SGL_LENGTH_INVALID);
    }
    if sgl.kind == Sgl::TRANSPORT {
        return Ok(None);
    }
    let (at, have) = (sgl.address.get(), u64::from(capsule.unwrap_or(0)));
    if at.checked_add(u64::from(length)).is_none_or(|end| end > have) {
        return Err(StatusField::SGL_OFFSET_INVALID);
    }
    Ok(Some(at as u32))
}
