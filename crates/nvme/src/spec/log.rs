//! Log pages (NVMe Base 5.16).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Supported Log Pages.
pub const SUPPORTED: u8 = 0x00;
/// Error Information.
pub const ERROR: u8 = 0x01;
/// SMART / Health Information.
pub const SMART: u8 = 0x02;
/// Firmware Slot Information.
pub const FIRMWARE: u8 = 0x03;
/// Changed Namespace List.
pub const CHANGED_NAMESPACES: u8 = 0x04;
/// Commands Supported and Effects.
pub const EFFECTS: u8 = 0x05;
/// Asymmetric Namespace Access.
pub const ANA: u8 = 0x0c;
/// Cross-Controller Reset.
pub const CROSS_CONTROLLER_RESET: u8 = 0x1e;
/// Bytes of that page without entries: u16 number of entries, 6 reserved.
pub const CROSS_CONTROLLER_RESET_BYTES: usize = 8;
/// Discovery.
pub const DISCOVERY: u8 = 0x70;

/// Entries of the Changed Namespace List.
pub const CHANGED_MAX: usize = 1024;

/// One entry of the error log, 64 bytes.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, PartialEq, Eq, Default,
)]
#[repr(C)]
pub struct ErrorEntry {
    /// Counts errors for the controller's life; 0 marks an unused entry.
    pub count: U64,
    /// Queue.
    pub sqid: U16,
    /// Command.
    pub cid: U16,
    /// Status field with phase bit.
    pub status: U16,
    /// Byte and bit of the parameter at fault; FFFFh if none.
    pub location: U16,
    /// First LBA at fault.
    pub lba: U64,
    /// Namespace.
    pub nsid: U32,
    /// Vendor log page.
    pub vendor: u8,
    /// Transport type.
    pub trtype: u8,
    /// Command set.
    pub csi: u8,
    /// Opcode.
    pub opcode: u8,
    /// Command specific.
    pub information: U64,
    /// Transport specific.
    pub transport: U16,
    /// Reserved.
    pub reserved42: [u8; 22],
}

/// SMART / Health Information, 512 bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct Smart {
    /// Critical warnings.
    pub warning: u8,
    /// Kelvin.
    pub temperature: U16,
    /// Per cent.
    pub spare: u8,
    /// Per cent.
    pub spare_threshold: u8,
    /// Per cent.
    pub used: u8,
    /// Endurance group critical warnings.
    pub group_warning: u8,
    /// Reserved.
    pub reserved7: [u8; 25],
    /// Thousands of 512-byte units.
    pub units_read: [u8; 16],
    /// Thousands of 512-byte units.
    pub units_written: [u8; 16],
    /// Read commands.
    pub reads: [u8; 16],
    /// Write commands.
    pub writes: [u8; 16],
    /// Minutes.
    pub busy: [u8; 16],
    /// Power cycles.
    pub power_cycles: [u8; 16],
    /// Power on hours.
    pub power_on_hours: [u8; 16],
    /// Unsafe shutdowns.
    pub unsafe_shutdowns: [u8; 16],
    /// Media errors.
    pub media_errors: [u8; 16],
    /// Entries ever written to the error log.
    pub error_entries: [u8; 16],
    /// Minutes above the warning temperature.
    pub warning_minutes: U32,
    /// Minutes above the critical temperature.
    pub critical_minutes: U32,
    /// Temperature sensors and thermal management.
    pub reserved200: [u8; 312],
}

/// Firmware Slot Information, 512 bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct FirmwareSlots {
    /// Active slot in bits 2:0.
    pub active: u8,
    /// Reserved.
    pub reserved1: [u8; 7],
    /// Revisions of slots 1 to 7.
    pub revisions: [[u8; 8]; 7],
    /// Reserved.
    pub reserved64: [u8; 448],
}

/// First 16 bytes of the Asymmetric Namespace Access log (NVMe Base 2.0 5.16.1.13).
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct AnaHeader {
    /// Counts changes of the log page since the controller was reset.
    pub changes: U64,
    /// Number of groups that follow.
    pub groups: U16,
    /// Reserved.
    pub reserved10: [u8; 6],
}

/// One ANA group, 32 bytes; the ids of its namespaces follow, four bytes each.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct AnaGroup {
    /// ANAGRPID.
    pub id: U32,
    /// Number of namespace ids that follow; 0 if only groups were asked for.
    pub namespaces: U32,
    /// Counts changes of this group; 0 would say that it does not.
    pub changes: U64,
    /// Its state in bits 3:0.
    pub state: u8,
    /// Reserved.
    pub reserved17: [u8; 15],
}

impl AnaGroup {
    /// ANA Optimized.
    pub const OPTIMIZED: u8 = 0x1;
    /// ANA Non-Optimized.
    pub const NON_OPTIMIZED: u8 = 0x2;
}

/// First 1024 bytes of the discovery log.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct DiscoveryHeader {
    /// Generation counter.
    pub generation: U64,
    /// Number of entries.
    pub records: U64,
    /// Record format: 0.
    pub recfmt: U16,
    /// Reserved.
    pub reserved18: [u8; 1006],
}

/// One entry of the discovery log, 1024 bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct DiscoveryEntry {
    /// Transport type: 3 is TCP.
    pub trtype: u8,
    /// Address family: 1 IPv4, 2 IPv6.
    pub adrfam: u8,
    /// 1 referral, 2 NVM subsystem, 3 this discovery subsystem.
    pub subtype: u8,
    /// Transport requirements.
    pub treq: u8,
    /// Port id.
    pub portid: U16,
    /// Controller id; FFFFh is dynamic.
    pub cntlid: U16,
    /// Largest admin queue.
    pub asqsz: U16,
    /// Flags.
    pub eflags: U16,
    /// Reserved.
    pub reserved12: [u8; 20],
    /// TCP port as decimal text.
    pub trsvcid: [u8; 32],
    /// Reserved.
    pub reserved64: [u8; 192],
    /// Subsystem.
    pub subnqn: [u8; 256],
    /// Address as text.
    pub traddr: [u8; 256],
    /// Transport specific: byte 0 is the security type of TCP.
    pub tsas: [u8; 256],
}

/// TRTYPE of TCP.
pub const TRTYPE_TCP: u8 = 3;
/// SUBTYPE of an NVM subsystem.
pub const SUBTYPE_NVM: u8 = 2;
/// SUBTYPE of the discovery subsystem that answers.
pub const SUBTYPE_CURRENT_DISCOVERY: u8 = 3;
/// TREQ: SQ flow control can be disabled; of a secure channel nothing is said. (Saying "not required",
/// value 2, makes nvme-cli 2.3 ask for TLS, which its kernel does not know.)
pub const TREQ: u8 = 1 << 2;

const _: () = {
    assert!(size_of::<ErrorEntry>() == 64);
    assert!(size_of::<Smart>() == 512);
    assert!(size_of::<FirmwareSlots>() == 512);
    assert!(size_of::<AnaHeader>() == 16);
    assert!(size_of::<AnaGroup>() == 32);
    assert!(size_of::<DiscoveryHeader>() == 1024);
    assert!(size_of::<DiscoveryEntry>() == 1024);
};
