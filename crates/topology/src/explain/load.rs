//! What is asked of the head, and what would be full next.

use super::figure::Part;
use crate::status::LOAD_MIN;
use serde::Serialize;

/// Reads and writes a second.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Rates {
    /// Reads.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub write_bytes: f64,
}

impl Rates {
    /// Commands of both kinds.
    pub fn commands(&self) -> f64 {
        self.reads + self.writes
    }
    /// So little that nothing follows from it.
    pub fn is_little(&self) -> bool {
        self.commands() < LOAD_MIN
    }
}

/// What is asked of the head now.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Load {
    /// No head answers here.
    #[default]
    NoHead,
    /// There is one reading, and rates need two.
    OneReading,
    /// All of it.
    All { rates: Rates },
    /// All of it, of two heads; so many commands a second come to the one that is looked at.
    BothHeads { rates: Rates, head: String, here: f64 },
    /// A volume, a pool or a drive does this.
    Of { name: String, rates: Rates },
    /// A host asks for so many commands a second.
    OfHost { host: String, rate: f64 },
    /// All of it, since what was asked about has no counters.
    WholeHead { rates: Rates },
}

/// What would be full next.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NextLimit {
    /// What.
    pub part: Part,
    /// Commands a second at which it is full.
    pub rate: f64,
    /// The part of it that is used now, 0 to 1.
    pub used: f64,
    /// Drives may be full before: nobody knows what they can.
    pub unless_drives: bool,
}
