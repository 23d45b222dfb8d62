//! Fabrics commands: Connect, Property Get and Set, Disconnect (NVMe Base 6).

use super::command::{Sgl, Sqe};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The NQN of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Longest NQN, bytes (without the NUL that ends it).
pub const NQN_MAX: usize = 223;

/// Fabrics command types.
pub mod fctype {
    /// Property Set.
    pub const PROPERTY_SET: u8 = 0x00;
    /// Connect.
    pub const CONNECT: u8 = 0x01;
    /// Property Get.
    pub const PROPERTY_GET: u8 = 0x04;
    /// Authentication Send.
    pub const AUTH_SEND: u8 = 0x05;
    /// Authentication Receive.
    pub const AUTH_RECEIVE: u8 = 0x06;
    /// Disconnect.
    pub const DISCONNECT: u8 = 0x08;
}

/// CATTR bit 2: the host wants no SQ flow control.
pub const CATTR_NO_FLOW_CONTROL: u8 = 1 << 2;

/// CNTLID in Connect data: the controller chooses.
pub const CNTLID_DYNAMIC: u16 = 0xffff;

/// CNTLID in Connect data of a static-model host: any controller.
pub const CNTLID_STATIC: u16 = 0xfffe;

/// The Connect command.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq, Default,
)]
#[repr(C)]
pub struct ConnectFields {
    /// 7Fh.
    pub opcode: u8,
    /// PSDT.
    pub flags: u8,
    /// Command identifier.
    pub cid: U16,
    /// 01h.
    pub fctype: u8,
    /// Reserved.
    pub reserved5: [u8; 19],
    /// Where the 1024 bytes of [`ConnectData`] are.
    pub sgl: Sgl,
    /// Record format: 0.
    pub recfmt: U16,
    /// Queue id: 0 is the admin queue.
    pub qid: U16,
    /// Entries of the submission queue, 0-based.
    pub sqsize: U16,
    /// Connect attributes.
    pub cattr: u8,
    /// Reserved.
    pub reserved47: u8,
    /// Keep alive timeout, milliseconds; 0 is none.
    pub kato: U32,
    /// Reserved.
    pub reserved52: [u8; 12],
}

impl ConnectFields {
    /// The command as a Connect.
    pub fn of(sqe: &Sqe) -> Self {
        zerocopy::transmute!(*sqe)
    }
    /// The Connect as a command.
    pub fn sqe(&self) -> Sqe {
        zerocopy::transmute!(*self)
    }
}

/// Data of Connect, 1024 bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ConnectData {
    /// Host identifier.
    pub hostid: [u8; 16],
    /// Controller id; FFFFh on the admin queue of a dynamic controller.
    pub cntlid: U16,
    /// Reserved.
    pub reserved18: [u8; 238],
    /// Subsystem NQN.
    pub subnqn: [u8; 256],
    /// Host NQN.
    pub hostnqn: [u8; 256],
    /// Reserved.
    pub reserved768: [u8; 256],
}

impl ConnectData {
    /// Data of a Connect.
    pub fn new(hostid: [u8; 16], cntlid: u16, subnqn: &str, hostnqn: &str) -> Self {
        Self {
            hostid,
            cntlid: cntlid.into(),
            reserved18: [0; 238],
            subnqn: super::text_nul(subnqn),
            hostnqn: super::text_nul(hostnqn),
            reserved768: [0; 256],
        }
    }
}

/// Property Get and Property Set.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PropertyFields {
    /// 7Fh.
    pub opcode: u8,
    /// PSDT.
    pub flags: u8,
    /// Command identifier.
    pub cid: U16,
    /// 00h set, 04h get.
    pub fctype: u8,
    /// Reserved.
    pub reserved5: [u8; 35],
    /// Size in bits 2:0: 0 is 4 bytes, 1 is 8 bytes.
    pub attrib: u8,
    /// Reserved.
    pub reserved41: [u8; 3],
    /// Offset of the property.
    pub offset: U32,
    /// Value (Property Set).
    pub value: U64,
    /// Reserved.
    pub reserved56: [u8; 8],
}

impl PropertyFields {
    /// The command as a property command.
    pub fn of(sqe: &Sqe) -> Self {
        zerocopy::transmute!(*sqe)
    }
    /// The property command as a command.
    pub fn sqe(&self) -> Sqe {
        zerocopy::transmute!(*self)
    }
}

/// Offsets of controller properties (NVMe Base 3.1.4) and what stands in them.
pub mod property {
    /// Controller Capabilities, 8 bytes.
    pub const CAP: u32 = 0x00;
    /// Version, 4 bytes.
    pub const VS: u32 = 0x08;
    /// Controller Configuration, 4 bytes.
    pub const CC: u32 = 0x14;
    /// Controller Status, 4 bytes.
    pub const CSTS: u32 = 0x1c;
    /// NVM Subsystem Reset, 4 bytes.
    pub const NSSR: u32 = 0x20;
    /// CC.EN.
    pub const CC_ENABLE: u32 = 1;
    /// CC.SHN.
    pub const CC_SHUTDOWN: u32 = 3 << 14;
    /// CC for hosts of the NVM command set: IOSQES 6, IOCQES 4, page 4 KiB, enabled.
    pub const CC_HOST: u32 = 4 << 20 | 6 << 16 | CC_ENABLE;
    /// CSTS.RDY.
    pub const CSTS_READY: u32 = 1;
    /// CSTS.CFS.
    pub const CSTS_FATAL: u32 = 2;
    /// CSTS.SHST.
    pub const CSTS_SHUTDOWN: u32 = 3 << 2;
    /// CSTS.SHST: shutdown occurring.
    pub const CSTS_SHUTDOWN_OCCURRING: u32 = 1 << 2;
    /// CSTS.SHST: shutdown complete.
    pub const CSTS_SHUTDOWN_COMPLETE: u32 = 2 << 2;
}

const _: () = {
    assert!(size_of::<ConnectFields>() == 64);
    assert!(size_of::<ConnectData>() == 1024);
    assert!(size_of::<PropertyFields>() == 64);
};
