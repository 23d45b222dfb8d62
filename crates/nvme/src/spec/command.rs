//! Submission and completion queue entries, SGL descriptors, opcodes (NVMe Base 3.3.3, 4.x).

use super::StatusField;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Opcodes of the admin command set.
pub mod admin {
    /// Get Log Page.
    pub const GET_LOG_PAGE: u8 = 0x02;
    /// Identify.
    pub const IDENTIFY: u8 = 0x06;
    /// Abort.
    pub const ABORT: u8 = 0x08;
    /// Set Features.
    pub const SET_FEATURES: u8 = 0x09;
    /// Get Features.
    pub const GET_FEATURES: u8 = 0x0a;
    /// Asynchronous Event Request.
    pub const ASYNC_EVENT: u8 = 0x0c;
    /// Keep Alive.
    pub const KEEP_ALIVE: u8 = 0x18;
    /// Cross-Controller Reset.
    pub const CROSS_CONTROLLER_RESET: u8 = 0x38;
    /// Every fabrics command; its type stands in byte 4.
    pub const FABRICS: u8 = 0x7f;
}

/// Opcodes of the NVM command set.
pub mod nvm {
    /// Flush.
    pub const FLUSH: u8 = 0x00;
    /// Write.
    pub const WRITE: u8 = 0x01;
    /// Read.
    pub const READ: u8 = 0x02;
    /// Compare.
    pub const COMPARE: u8 = 0x05;
    /// Write Zeroes.
    pub const WRITE_ZEROES: u8 = 0x08;
    /// Dataset Management.
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    /// CDW12 bit 31: Limited Retry.
    pub const LIMITED_RETRY: u32 = 1 << 31;
    /// CDW12 bit 30: Force Unit Access.
    pub const FUA: u32 = 1 << 30;
    /// CDW12 bits 29:26: protection information; must be 0 without metadata.
    pub const PRINFO: u32 = 0xf << 26;
    /// CDW12 bit 25 of Write Zeroes: Deallocate.
    pub const DEALLOCATE: u32 = 1 << 25;
    /// CDW11 bit 2 of Dataset Management: the ranges are no longer needed.
    pub const DSM_DEALLOCATE: u32 = 1 << 2;
    /// Largest number of ranges of Dataset Management.
    pub const DSM_RANGES_MAX: u32 = 256;
}

/// Byte 1 of the command: FUSE (1:0), PSDT (7:6).
pub mod flags {
    /// Fused operation bits.
    pub const FUSE: u8 = 0b11;
    /// Selects PRP or SGL.
    pub const PSDT: u8 = 0b1100_0000;
    /// SGL for data; the only value that fabrics allow.
    pub const PSDT_SGL: u8 = 0b0100_0000;
}

/// The namespace id that means "all of them".
pub const NSID_ALL: u32 = 0xffff_ffff;

/// An SGL descriptor, 16 bytes (NVMe Base 4.3.2).
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq, Default,
)]
#[repr(C)]
pub struct Sgl {
    /// Address, or offset into the capsule.
    pub address: U64,
    /// Bytes.
    pub length: U32,
    /// Reserved.
    pub reserved: [u8; 3],
    /// Type in the high, subtype in the low half.
    pub kind: u8,
}

impl Sgl {
    /// Data block at an offset into the capsule's data (NVMe/TCP 3.3.2.1.1: in-capsule data).
    pub const IN_CAPSULE: u8 = 0x01;
    /// Transport data block (NVMe/TCP: data travels in data PDUs).
    pub const TRANSPORT: u8 = 0x5a;
    /// In-capsule data of `length` bytes.
    pub fn in_capsule(length: u32) -> Self {
        Self { length: length.into(), kind: Self::IN_CAPSULE, ..Self::default() }
    }
    /// Data of `length` bytes that travels in data PDUs. Length 0 is what commands without data carry.
    pub fn transport(length: u32) -> Self {
        Self { length: length.into(), kind: Self::TRANSPORT, ..Self::default() }
    }
}

/// A submission queue entry, 64 bytes.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq, Default,
)]
#[repr(C)]
pub struct Sqe {
    /// Opcode.
    pub opcode: u8,
    /// FUSE and PSDT, see [`flags`].
    pub flags: u8,
    /// Command identifier.
    pub cid: U16,
    /// Namespace identifier; its lowest byte is the fabrics command type.
    pub nsid: U32,
    /// Command dword 2.
    pub cdw2: U32,
    /// Command dword 3.
    pub cdw3: U32,
    /// Metadata pointer.
    pub mptr: U64,
    /// Data pointer.
    pub sgl: Sgl,
    /// Command dword 10.
    pub cdw10: U32,
    /// Command dword 11.
    pub cdw11: U32,
    /// Command dword 12.
    pub cdw12: U32,
    /// Command dword 13.
    pub cdw13: U32,
    /// Command dword 14.
    pub cdw14: U32,
    /// Command dword 15.
    pub cdw15: U32,
}

impl Sqe {
    /// A command as hosts build it on fabrics: SGL, no data.
    pub fn new(opcode: u8, cid: u16) -> Self {
        Self { opcode, flags: flags::PSDT_SGL, cid: cid.into(), sgl: Sgl::transport(0), ..Self::default() }
    }
    /// Fabrics command type.
    pub fn fctype(&self) -> u8 {
        (self.nsid.get() & 0xff) as u8
    }
    /// First block of a read, write, compare or write zeroes.
    pub fn lba(&self) -> u64 {
        u64::from(self.cdw11.get()) << 32 | u64::from(self.cdw10.get())
    }
    /// Number of blocks of the same, 1 and up (0-based on the wire).
    pub fn blocks(&self) -> u32 {
        (self.cdw12.get() & 0xffff) + 1
    }
    /// Sets first block and number of blocks (1..=65536).
    pub fn set_range(&mut self, lba: u64, blocks: u32) {
        assert!((1..=65536).contains(&blocks), "a command covers 1 to 65536 blocks");
        self.cdw10 = (lba as u32).into();
        self.cdw11 = ((lba >> 32) as u32).into();
        self.cdw12 = (self.cdw12.get() & !0xffff | (blocks - 1)).into();
    }
}

/// A completion queue entry, 16 bytes.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq, Default,
)]
#[repr(C)]
pub struct Cqe {
    /// Command specific.
    pub dw0: U32,
    /// Command specific (high half of property values).
    pub dw1: U32,
    /// How far the controller took commands (0 where SQ flow control is disabled).
    pub sqhd: U16,
    /// Reserved on fabrics.
    pub sqid: U16,
    /// Which command.
    pub cid: U16,
    /// Status field in bits 15:1.
    pub status: U16,
}

impl Cqe {
    /// The status.
    pub fn status(&self) -> StatusField {
        StatusField(self.status.get() >> 1)
    }
    /// dw0 and dw1 as one number.
    pub fn result(&self) -> u64 {
        u64::from(self.dw1.get()) << 32 | u64::from(self.dw0.get())
    }
}

/// One range of Dataset Management, 16 bytes (NVM 3.2.3).
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq, Default,
)]
#[repr(C)]
pub struct DsmRange {
    /// Hints.
    pub attributes: U32,
    /// Blocks; 0 means none.
    pub blocks: U32,
    /// First block.
    pub lba: U64,
}

const _: () = {
    assert!(size_of::<Sgl>() == 16);
    assert!(size_of::<Sqe>() == 64);
    assert!(size_of::<Cqe>() == 16);
    assert!(size_of::<DsmRange>() == 16);
};
