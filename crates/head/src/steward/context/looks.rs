//! Looks at drives.

/// Looks at all drives, counted: the last one that was asked for, that began, and that ended.
#[derive(Default)]
pub(crate) struct Looks {
    wanted: u64,
    begun: u64,
    pub ended: u64,
}

impl Looks {
    /// Asks for one that begins from now on.
    pub fn want(&mut self) -> u64 {
        self.wanted = self.begun + 1;
        self.wanted
    }
    pub fn is_wanted(&self) -> bool {
        self.wanted > self.begun
    }
    pub fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }
}
