//! What could not be read of a machine.

use crate::health::Silent;
use serde::Serialize;

/// What could not be read, or does not follow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Gap {
    /// The recording is of a later version than this program knows.
    LaterVersion { version: u32, known: u32 },
    /// The recording has no end.
    CutOff,
    /// Lines of the recording mean nothing.
    UnknownLines { lines: usize },
    /// The recording lists more files than are read.
    TooManyFiles { most: usize, left_out: usize },
    /// The CPUs are not listed.
    CpusUnknown,
    /// CPUs do not tell which others are threads of the same core.
    SiblingsUnknown { cpus: usize },
    /// PCI devices do not say what they are.
    ClassUnknown { devices: usize },
    /// PCIe capabilities need root to be read.
    CapabilitiesUnread,
    /// Devices do not tell the speed of their link.
    LinkSpeedUnknown { devices: usize },
    /// Interrupts could not be read.
    InterruptsUnread,
    /// How worn NVMe drives are is not known.
    HealthUnknown { drives: usize, why: Silent },
    /// The daemon's status is not JSON.
    StatusBroken { error: String },
    /// The daemon's status is not an object.
    StatusNoObject,
}
