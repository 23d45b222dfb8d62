//! Status fields of completions (NVMe Base 4.2.3).

/// The 15 bits of a completion's status: SC (7:0), SCT (10:8), CRD (12:11), More (13), DNR (14).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatusField(pub u16);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $sct:literal, $sc:literal;)*) => {
        impl StatusField {
            $($(#[$doc])* pub const $name: StatusField = StatusField($sct << 8 | $sc);)*
            /// The standard's name, if we know it.
            pub fn name(self) -> Option<&'static str> {
                match self.code() {
                    $(StatusField::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

// Command-specific codes mean different things for different commands: only those with one meaning
// among our commands are here, and Connect's stand from 80h on.
codes! {
    /// Success.
    SUCCESS = 0, 0x00;
    /// Invalid Command Opcode.
    INVALID_OPCODE = 0, 0x01;
    /// Invalid Field in Command.
    INVALID_FIELD = 0, 0x02;
    /// Command ID Conflict.
    COMMAND_ID_CONFLICT = 0, 0x03;
    /// Data Transfer Error.
    DATA_TRANSFER_ERROR = 0, 0x04;
    /// Internal Error.
    INTERNAL_ERROR = 0, 0x06;
    /// Command Abort Requested.
    ABORT_REQUESTED = 0, 0x07;
    /// Command Aborted due to SQ Deletion.
    ABORTED_SQ_DELETED = 0, 0x08;
    /// Command Aborted due to Failed Fused Command.
    ABORTED_FAILED_FUSED = 0, 0x09;
    /// Command Aborted due to Missing Fused Command.
    ABORTED_MISSING_FUSED = 0, 0x0a;
    /// Invalid Namespace or Format.
    INVALID_NAMESPACE = 0, 0x0b;
    /// Command Sequence Error.
    COMMAND_SEQUENCE = 0, 0x0c;
    /// Invalid SGL Segment Descriptor.
    SGL_SEGMENT_INVALID = 0, 0x0d;
    /// Invalid Number of SGL Descriptors.
    SGL_COUNT_INVALID = 0, 0x0e;
    /// Data SGL Length Invalid.
    SGL_LENGTH_INVALID = 0, 0x0f;
    /// SGL Descriptor Type Invalid.
    SGL_TYPE_INVALID = 0, 0x11;
    /// SGL Offset Invalid.
    SGL_OFFSET_INVALID = 0, 0x16;
    /// Host Identifier Inconsistent Format.
    HOST_ID_INCONSISTENT = 0, 0x18;
    /// Keep Alive Timer Expired.
    KEEP_ALIVE_EXPIRED = 0, 0x19;
    /// Keep Alive Timeout Invalid.
    KEEP_ALIVE_INVALID = 0, 0x1a;
    /// Namespace is Write Protected.
    WRITE_PROTECTED = 0, 0x20;
    /// Command Interrupted.
    INTERRUPTED = 0, 0x21;
    /// Transient Transport Error.
    TRANSIENT_TRANSPORT = 0, 0x22;
    /// LBA Out of Range.
    LBA_OUT_OF_RANGE = 0, 0x80;
    /// Capacity Exceeded.
    CAPACITY_EXCEEDED = 0, 0x81;
    /// Namespace Not Ready.
    NAMESPACE_NOT_READY = 0, 0x82;
    /// Invalid Queue Identifier.
    INVALID_QUEUE_ID = 1, 0x01;
    /// Invalid Queue Size.
    INVALID_QUEUE_SIZE = 1, 0x02;
    /// Abort Command Limit Exceeded.
    ABORT_LIMIT = 1, 0x03;
    /// Asynchronous Event Request Limit Exceeded.
    ASYNC_EVENT_LIMIT = 1, 0x05;
    /// Invalid Log Page.
    INVALID_LOG_PAGE = 1, 0x09;
    /// Feature Identifier Not Saveable.
    FEATURE_NOT_SAVEABLE = 1, 0x0d;
    /// Feature Not Changeable.
    FEATURE_NOT_CHANGEABLE = 1, 0x0e;
    /// Feature Not Namespace Specific.
    FEATURE_NOT_NAMESPACE = 1, 0x0f;
    /// Controller Reset in Progress (Cross-Controller Reset).
    RESET_IN_PROGRESS = 1, 0x3f;
    /// Cross-Controller Reset Limit Exceeded.
    RESET_LIMIT = 1, 0x41;
    /// Connect Incompatible Format.
    CONNECT_FORMAT = 1, 0x80;
    /// Connect Controller Busy.
    CONNECT_BUSY = 1, 0x81;
    /// Connect Invalid Parameters.
    CONNECT_PARAMETERS = 1, 0x82;
    /// Connect Restart Discovery.
    CONNECT_RESTART_DISCOVERY = 1, 0x83;
    /// Connect Invalid Host.
    CONNECT_HOST = 1, 0x84;
    /// Invalid Queue Type (Disconnect).
    INVALID_QUEUE_TYPE = 1, 0x85;
    /// Write Fault.
    WRITE_FAULT = 2, 0x80;
    /// Unrecovered Read Error.
    READ_ERROR = 2, 0x81;
    /// Compare Failure.
    COMPARE_FAILURE = 2, 0x85;
    /// Access Denied.
    ACCESS_DENIED = 2, 0x86;
}

impl StatusField {
    /// Do Not Retry.
    pub const DNR: u16 = 1 << 14;
    /// More information is in the error log.
    pub const MORE: u16 = 1 << 13;
    /// The same status, not to be retried.
    #[must_use]
    pub const fn dnr(self) -> Self {
        Self(self.0 | Self::DNR)
    }
    /// The same status with Command Retry Delay `index` (0..=3): wait for CRDT1..3 first.
    #[must_use]
    pub const fn crd(self, index: u16) -> Self {
        assert!(index <= 3);
        Self(self.0 & !(3 << 11) | index << 11)
    }
    /// Type and code alone.
    pub const fn code(self) -> Self {
        Self(self.0 & 0x7ff)
    }
    /// Whether retrying is of no use.
    pub const fn is_dnr(self) -> bool {
        self.0 & Self::DNR != 0
    }
    /// Command Retry Delay index.
    pub const fn retry_delay(self) -> u16 {
        self.0 >> 11 & 3
    }
    /// Whether the command succeeded.
    pub const fn is_good(self) -> bool {
        self.code().0 == 0
    }
}

impl core::fmt::Debug for StatusField {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "{:#05x}", self.code().0)?,
        }
        if self.retry_delay() != 0 {
            write!(f, "+crd{}", self.retry_delay())?;
        }
        if self.is_dnr() { f.write_str("+dnr") } else { Ok(()) }
    }
}
