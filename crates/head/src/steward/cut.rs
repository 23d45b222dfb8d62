//! Drives that are there and shorter than their labels say: files that were truncated, partitions that were made anew.

use super::drives::Probe;
use base::Uuid;

/// How much of a drive is left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CutOff {
    /// Where it is.
    pub path: String,
    /// Bytes that are there, and that its label says.
    pub bytes: u64,
    pub needed: u64,
    /// It is a file: who can write it can make it as long as it was.
    file: bool,
}

impl CutOff {
    /// Of a drive that was looked at, with the name that its label says.
    pub fn of(probe: &Probe) -> Option<(Uuid, Self)> {
        let label = probe.label.as_ref().ok().filter(|l| l.drive_bytes > probe.info.bytes)?;
        let (path, bytes) = (probe.info.path.clone(), probe.info.bytes);
        Some((label.drive, Self { file: probe.info.kind == "file", path, bytes, needed: label.drive_bytes }))
    }
    /// What is wrong with it: one sentence.
    pub fn words(&self) -> String {
        format!("it is too small: {} of its {} bytes are there", self.bytes, self.needed)
    }
    /// What helps a leg. What was cut off is lost, so everything is copied to it.
    pub fn way_back(&self) -> String {
        let Self { path, needed, .. } = self;
        match self.file {
            true => format!("truncate -s {needed} {path}, then millrace drive return {path}"),
            false => format!("millrace drive replace {path} NEW"),
        }
    }
}
