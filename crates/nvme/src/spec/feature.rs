//! Feature identifiers (NVMe Base 5.27, Set Features) and asynchronous events.

/// Arbitration.
pub const ARBITRATION: u8 = 0x01;
/// Power Management.
pub const POWER_MANAGEMENT: u8 = 0x02;
/// Temperature Threshold.
pub const TEMPERATURE_THRESHOLD: u8 = 0x04;
/// Error Recovery.
pub const ERROR_RECOVERY: u8 = 0x05;
/// Volatile Write Cache.
pub const VOLATILE_WRITE_CACHE: u8 = 0x06;
/// Number of Queues.
pub const NUMBER_OF_QUEUES: u8 = 0x07;
/// Write Atomicity Normal.
pub const WRITE_ATOMICITY: u8 = 0x0a;
/// Asynchronous Event Configuration.
pub const ASYNC_EVENT: u8 = 0x0b;
/// Timestamp.
pub const TIMESTAMP: u8 = 0x0e;
/// Keep Alive Timer.
pub const KEEP_ALIVE: u8 = 0x0f;
/// Host Behavior Support.
pub const HOST_BEHAVIOR: u8 = 0x16;
/// Host Identifier.
pub const HOST_ID: u8 = 0x81;

/// Bytes of the Host Behavior Support data.
pub const HOST_BEHAVIOR_BYTES: u32 = 512;

/// Asynchronous Event Configuration bit 8: a namespace's attributes changed.
pub const EVENT_NAMESPACE: u32 = 1 << 8;
/// Asynchronous Event Configuration bit 11: the state of an ANA group changed.
pub const EVENT_ANA: u32 = 1 << 11;
/// Asynchronous Event Configuration bit 31: the discovery log changed.
pub const EVENT_DISCOVERY: u32 = 1 << 31;

/// Dword 0 of the event: type notice (2), information, log page.
pub const fn notice(information: u8, log_page: u8) -> u32 {
    2 | (information as u32) << 8 | (log_page as u32) << 16
}

/// Namespace Attribute Changed; the host reads the Changed Namespace List.
pub const NOTICE_NAMESPACE: u32 = notice(0x00, super::log::CHANGED_NAMESPACES);
/// Asymmetric Namespace Access Change.
pub const NOTICE_ANA: u32 = notice(0x03, super::log::ANA);
/// Discovery Log Page Changed.
pub const NOTICE_DISCOVERY: u32 = notice(0xf0, super::log::DISCOVERY);
