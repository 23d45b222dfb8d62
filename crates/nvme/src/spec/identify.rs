//! Identify structures (NVMe Base 5.17, NVM 4.1.5).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of every Identify answer.
pub const IDENTIFY_BYTES: u32 = 4096;

/// Controller or Namespace Structure values.
pub mod cns {
    /// Identify Namespace.
    pub const NAMESPACE: u8 = 0x00;
    /// Identify Controller.
    pub const CONTROLLER: u8 = 0x01;
    /// Active Namespace ID list.
    pub const ACTIVE_LIST: u8 = 0x02;
    /// Namespace Identification Descriptor list.
    pub const DESCRIPTORS: u8 = 0x03;
    /// I/O command set specific namespace.
    pub const CS_NAMESPACE: u8 = 0x05;
    /// I/O command set specific controller.
    pub const CS_CONTROLLER: u8 = 0x06;
    /// I/O command set independent namespace.
    pub const INDEPENDENT_NAMESPACE: u8 = 0x08;
    /// Allocated Namespace ID list.
    pub const ALLOCATED_LIST: u8 = 0x10;
    /// Controllers attached to a namespace.
    pub const NAMESPACE_CONTROLLERS: u8 = 0x12;
    /// Controllers of the subsystem.
    pub const CONTROLLERS: u8 = 0x13;
}

/// Types of namespace identification descriptors.
pub mod nidt {
    /// EUI-64, 8 bytes.
    pub const EUI64: u8 = 1;
    /// NGUID, 16 bytes.
    pub const NGUID: u8 = 2;
    /// UUID, 16 bytes.
    pub const UUID: u8 = 3;
    /// Command set, 1 byte.
    pub const CSI: u8 = 4;
}

/// Identify Controller, 4096 bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)] // The standard's own field names, in its order; units stand in its table.
pub struct Controller {
    pub vid: U16,
    pub ssvid: U16,
    pub sn: [u8; 20],
    pub mn: [u8; 40],
    pub fr: [u8; 8],
    pub rab: u8,
    pub ieee: [u8; 3],
    pub cmic: u8,
    pub mdts: u8,
    pub cntlid: U16,
    pub ver: U32,
    pub rtd3r: U32,
    pub rtd3e: U32,
    pub oaes: U32,
    pub ctratt: U32,
    pub rrls: U16,
    pub reserved102: [u8; 9],
    pub cntrltype: u8,
    pub fguid: [u8; 16],
    pub crdt: [U16; 3],
    pub crcap: u8,
    pub ciu: u8,
    pub cirn: U64,
    pub reserved144: [u8; 112],
    pub oacs: U16,
    pub acl: u8,
    pub aerl: u8,
    pub frmw: u8,
    pub lpa: u8,
    pub elpe: u8,
    pub npss: u8,
    pub avscc: u8,
    pub apsta: u8,
    pub wctemp: U16,
    pub cctemp: U16,
    pub mtfa: U16,
    pub hmpre: U32,
    pub hmmin: U32,
    pub tnvmcap: [u8; 16],
    pub unvmcap: [u8; 16],
    pub rpmbs: U32,
    pub edstt: U16,
    pub dsto: u8,
    pub fwug: u8,
    pub kas: U16,
    pub hctma: U16,
    pub mntmt: U16,
    pub mxtmt: U16,
    pub sanicap: U32,
    pub hmminds: U32,
    pub hmmaxd: U16,
    pub nsetidmax: U16,
    pub endgidmax: U16,
    pub anatt: u8,
    pub anacap: u8,
    pub anagrpmax: U32,
    pub nanagrpid: U32,
    pub pels: U32,
    pub reserved356: [u8; 30],
    pub cqt: U16,
    pub reserved388: [u8; 124],
    pub sqes: u8,
    pub cqes: u8,
    pub maxcmd: U16,
    pub nn: U32,
    pub oncs: U16,
    pub fuses: U16,
    pub fna: u8,
    pub vwc: u8,
    pub awun: U16,
    pub awupf: U16,
    pub icsvscc: u8,
    pub nwpc: u8,
    pub acwu: U16,
    pub cdfs: U16,
    pub sgls: U32,
    pub mnan: U32,
    pub reserved544: [u8; 224],
    pub subnqn: [u8; 256],
    pub reserved1024: [u8; 768],
    pub ioccsz: U32,
    pub iorcsz: U32,
    pub icdoff: U16,
    pub fcatt: u8,
    pub msdbd: u8,
    pub ofcs: U16,
    pub dctype: u8,
    pub ccrl: u8,
    pub reserved1808: [u8; 240],
    pub psd: [[u8; 32]; 32],
    pub vendor: [u8; 1024],
}

/// One LBA format.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct LbaFormat {
    /// Metadata bytes per block.
    pub ms: U16,
    /// Block size as a power of two.
    pub lbads: u8,
    /// Relative performance.
    pub rp: u8,
}

/// Identify Namespace (NVM command set), 4096 bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)] // The standard's own field names, in its order; units stand in its table.
pub struct Namespace {
    pub nsze: U64,
    pub ncap: U64,
    pub nuse: U64,
    pub nsfeat: u8,
    pub nlbaf: u8,
    pub flbas: u8,
    pub mc: u8,
    pub dpc: u8,
    pub dps: u8,
    pub nmic: u8,
    pub rescap: u8,
    pub fpi: u8,
    pub dlfeat: u8,
    pub nawun: U16,
    pub nawupf: U16,
    pub nacwu: U16,
    pub nabsn: U16,
    pub nabo: U16,
    pub nabspf: U16,
    pub noiob: U16,
    pub nvmcap: [u8; 16],
    pub npwg: U16,
    pub npwa: U16,
    pub npdg: U16,
    pub npda: U16,
    pub nows: U16,
    pub mssrl: U16,
    pub mcl: U32,
    pub msrc: u8,
    pub reserved81: [u8; 11],
    pub anagrpid: U32,
    pub reserved96: [u8; 3],
    pub nsattr: u8,
    pub nvmsetid: U16,
    pub endgid: U16,
    pub nguid: [u8; 16],
    pub eui64: [u8; 8],
    pub lbaf: [LbaFormat; 16],
    pub reserved192: [u8; 3648],
    pub vendor: [u8; 256],
}

impl Controller {
    /// All zero.
    pub fn zeroed() -> Self {
        Self::new_zeroed()
    }
}

impl Namespace {
    /// All zero: what an inactive namespace answers.
    pub fn zeroed() -> Self {
        Self::new_zeroed()
    }
    /// Bytes of a block of the format in use.
    pub fn block_bytes(&self) -> u32 {
        1u32.checked_shl(u32::from(self.lbaf[usize::from(self.flbas & 0xf)].lbads)).unwrap_or(0)
    }
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Controller>() == 4096);
    assert!(offset_of!(Controller, cntrltype) == 111);
    assert!(offset_of!(Controller, ciu) == 135);
    assert!(offset_of!(Controller, cirn) == 136);
    assert!(offset_of!(Controller, oacs) == 256);
    assert!(offset_of!(Controller, kas) == 320);
    assert!(offset_of!(Controller, anatt) == 342);
    assert!(offset_of!(Controller, nanagrpid) == 348);
    assert!(offset_of!(Controller, cqt) == 386);
    assert!(offset_of!(Controller, sqes) == 512);
    assert!(offset_of!(Controller, sgls) == 536);
    assert!(offset_of!(Controller, subnqn) == 768);
    assert!(offset_of!(Controller, ioccsz) == 1792);
    assert!(offset_of!(Controller, ccrl) == 1807);
    assert!(offset_of!(Controller, psd) == 2048);
    assert!(size_of::<Namespace>() == 4096);
    assert!(offset_of!(Namespace, anagrpid) == 92);
    assert!(offset_of!(Namespace, nguid) == 104);
    assert!(offset_of!(Namespace, lbaf) == 128);
    assert!(offset_of!(Namespace, vendor) == 3840);
};
