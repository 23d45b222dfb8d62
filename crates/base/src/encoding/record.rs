//! The first 40 bytes of each of our records on drives, and the checksum in it: docs/formats/drive.md, "Feature bits".
//!
//! A record is read only if its magic, version, checksum and feature bits allow it; otherwise a `Fault` says why it cannot be read.

use crate::codec::{Reader, Writer};
use crate::crc::crc32c_append;
use crate::{Bug, planted};

/// Why a record cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// There is none: the magic is not there.
    Absent,
    /// It was written by a newer program, in a way that this one must not read.
    Newer(Newer),
    /// It is damaged: the checksum or a field is wrong.
    Damaged,
}

/// What of a record this program does not know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Newer {
    /// The layout of its fixed part.
    Version(u32),
    /// Features without which nothing of the pool may be written.
    RoCompat(u64),
    /// Features without which the rest of the record means nothing.
    Incompat(u64),
}

/// Feature bits (docs/formats/drive.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// Others may ignore these, and keep them.
    pub compat: u64,
    /// Others may look and not write.
    pub ro_compat: u64,
    /// Others must not even look.
    pub incompat: u64,
}

impl Features {
    /// Why this program may not write what carries these bits, if it may not: it knows no `ro_compat` bit.
    pub fn forbids_writing(self) -> Option<Newer> {
        (self.ro_compat != 0).then_some(Newer::RoCompat(self.ro_compat))
    }

    fn forbids_reading(self, known: u64) -> Option<Newer> {
        let unknown = self.incompat & !known;
        (unknown != 0).then_some(Newer::Incompat(unknown))
    }
}

const VERSION: u32 = 1;
/// Bytes of magic, version, checksum and features.
pub const HEADER_BYTES: usize = 40;

/// The CRC32C of `bytes` with the four bytes of the checksum itself (at 12) taken as zero.
pub fn checksum(bytes: &[u8]) -> u32 {
    let crc = crc32c_append(0, &bytes[..12]);
    crc32c_append(crc32c_append(crc, &[0; 4]), &bytes[16..])
}

/// The common 40 bytes: magic, version, checksum (filled in later), features.
pub fn header(magic: &[u8; 8], features: Features) -> Writer {
    let mut w = Writer::default();
    w.bytes(magic).u32(VERSION).u32(0).u64(features.compat).u64(features.ro_compat).u64(features.incompat);
    w
}

/// Fills in the checksum.
pub fn seal(bytes: &mut [u8]) {
    let crc = checksum(bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
}

/// The common 40 bytes of a record, and what follows.
pub struct Opened<'a> {
    features: Features,
    crc: u32,
    newer: Option<Newer>,
    /// What follows.
    pub rest: Reader<'a>,
}

impl<'a> Opened<'a> {
    /// The fields, if the record has this checksum. One of a newer layout keeps its checksum here too: a bit
    /// that rotted in the version is damage, and does not make everybody wait for a newer program.
    ///
    /// # Errors
    /// It is damaged, or from a newer program.
    pub fn checked(self, checksum: u32) -> Result<(Features, Reader<'a>), Fault> {
        match (self.crc == checksum || planted(Bug::ChecksumIgnored), self.newer) {
            (false, _) => Err(Fault::Damaged),
            (true, Some(newer)) => Err(Fault::Newer(newer)),
            (true, None) => Ok((self.features, self.rest)),
        }
    }
}

/// Looks at magic, version and features (`known` are incompat bits of this kind of record); the checksum is
/// the caller's, who knows the length.
///
/// # Errors
/// There is no such record, or its version is none.
pub fn open<'a>(magic: &[u8; 8], known: u64, bytes: &'a [u8]) -> Result<Opened<'a>, Fault> {
    let mut r = Reader(bytes);
    if r.bytes(8).map_err(|_| Fault::Absent)? != magic {
        return Err(Fault::Absent);
    }
    let damaged = |_| Fault::Damaged;
    let version = r.u32().map_err(damaged)?;
    let crc = r.u32().map_err(damaged)?;
    let features = Features {
        compat: r.u64().map_err(damaged)?,
        ro_compat: r.u64().map_err(damaged)?,
        incompat: r.u64().map_err(damaged)?,
    };
    let newer = match version {
        VERSION => features.forbids_reading(known),
        version => Some(Newer::Version(version)),
    };
    if version == 0 { Err(Fault::Damaged) } else { Ok(Opened { features, crc, newer, rest: r }) }
}
