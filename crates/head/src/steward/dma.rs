//! The Steward's memory, for worlds that move bytes themselves.

use crate::steward::Steward;
use base::{Dma, Slice};

impl Dma for Steward {
    fn dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) -> bool {
        Steward::dma(self, data, with).is_some()
    }
}
