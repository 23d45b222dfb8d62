//! What a volume may take beside others: its caps, and its weight.

use serde::{Deserialize, Serialize};

/// The weight of a volume of which nothing else is said.
pub const WEIGHT: u16 = 100;
/// Weights that a volume may have.
pub const WEIGHTS: core::ops::RangeInclusive<u16> = 1..=1000;

/// A volume's caps; 0 for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Caps {
    /// Commands a second.
    pub iops_max: u32,
    /// Megabytes (10^6 bytes) of data a second.
    pub mbps_max: u32,
}

impl Caps {
    /// Nothing is capped.
    pub fn none(self) -> bool {
        self == Self::default()
    }
}
