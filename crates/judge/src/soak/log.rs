//! The log of writes that a drive keeps below the daemon (the format of the kernel's dm-log-writes, which QEMU's
//! `blklogwrites` writes too), and what a power cut leaves of the drive.
//!
//! A log begins with a block for itself; then each entry is a block (`sector`, `sectors`, `flags`, `bytes of data`,
//! 64 bit each, little-endian) followed by its data. A Discard has no data and means zeroes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAGIC: u64 = 0x006a_7366_7773_6872;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
/// The unit of `sector` and `sectors`, whatever the log's own block is.
const SECTOR: u64 = 512;

/// One change of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Change {
    at: u64,
    bytes: u64,
    /// Where its data are in the log; None for zeroes.
    data: Option<u64>,
    /// It was FUA, or a Flush came after it.
    durable: bool,
}

/// What was done to a drive up to a moment, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct History {
    changes: Vec<Change>,
    /// So many of them came before the last Flush.
    flushed: usize,
}

/// Reads a log up to so many bytes.
fn history(log: &File, end: u64) -> io::Result<History> {
    let mut head = [0; 32];
    log.read_exact_at(&mut head, 0)?;
    let word =
        |block: &[u8], i: usize| u64::from_le_bytes(block[8 * i..8 * i + 8].try_into().expect("eight bytes"));
    let block = word(&head, 3) & 0xffff_ffff;
    if word(&head, 0) != MAGIC || !block.is_power_of_two() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no log of writes"));
    }
    let mut out = History::default();
    let mut at = block;
    while at + block <= end {
        log.read_exact_at(&mut head, at)?;
        let [sector, sectors, flags] = [0, 1, 2].map(|i| word(&head, i));
        let bytes = sectors.saturating_mul(SECTOR);
        let data = (flags & DISCARD == 0).then_some(at + block);
        at = at.saturating_add(block.saturating_add(if data.is_some() { bytes } else { 0 }));
        if at > end {
            break;
        }
        if flags & FLUSH != 0 {
            out.changes[out.flushed..].iter_mut().for_each(|change| change.durable = true);
            out.flushed = out.changes.len();
        }
        if bytes > 0 {
            out.changes.push(Change {
                at: sector.saturating_mul(SECTOR),
                bytes,
                data,
                durable: flags & FUA != 0,
            });
        }
    }
    Ok(out)
}

/// What a power cut leaves of what was only in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// Each change or not, decided by this number.
    Some(u64),
}

/// A drive made again from its log.
pub struct Replay {
    log: File,
    bytes: u64,
    /// The drive with the first changes of the log, so that each moment need not begin at the first one.
    base: PathBuf,
    applied: usize,
}

impl Replay {
    /// Of a drive that held zeroes when its log began. `base` is a file for its own use.
    ///
    /// # Errors
    /// What the file system says.
    pub fn new(log: &Path, base: PathBuf, bytes: u64) -> io::Result<Replay> {
        File::create(&base)?.set_len(bytes)?;
        Ok(Replay { log: File::open(log)?, bytes, base, applied: 0 })
    }

    /// Makes `drive` as a power cut left it at the moment at which the log had `end` bytes; moments ascend. Returns how
    /// many changes were lost.
    ///
    /// # Errors
    /// What the file system says; `InvalidData` where it is no log.
    pub fn cut(&mut self, end: u64, left: Left, drive: &Path) -> io::Result<u64> {
        let history = history(&self.log, end)?;
        if history.changes.iter().any(|change| change.at.saturating_add(change.bytes) > self.bytes) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the log has an entry beyond the end of the drive",
            ));
        }
        let base = File::options().write(true).open(&self.base)?;
        for change in history.changes.get(self.applied..history.flushed).unwrap_or_default() {
            self.apply(change, &base)?;
        }
        self.applied = self.applied.max(history.flushed);
        std::fs::copy(&self.base, drive)?;
        let drive = File::options().write(true).open(drive)?;
        drive.set_len(self.bytes)?;
        let mut lost = 0;
        for (i, change) in history.changes.iter().enumerate().skip(history.flushed) {
            let keep = match left {
                Left::Nothing => change.durable,
                Left::Some(seed) => change.durable || mix(seed.wrapping_add(i as u64)) & 1 == 0,
            };
            if keep {
                self.apply(change, &drive)?;
            } else {
                lost += 1;
            }
        }
        Ok(lost)
    }

    fn apply(&self, change: &Change, drive: &File) -> io::Result<()> {
        let mut buffer = vec![0; change.bytes as usize];
        if let Some(at) = change.data {
            self.log.read_exact_at(&mut buffer, at)?;
        }
        drive.write_all_at(&buffer, change.at)
    }
}

/// SplitMix64's last step: neighbouring numbers come out far apart.
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// A log of these entries: sector, data or a number of sectors, flags.
    fn log(entries: &[(u64, &[u8], u64)]) -> Vec<u8> {
        let mut out = vec![0; 512];
        out[..8].copy_from_slice(&MAGIC.to_le_bytes());
        out[8] = 1;
        out[24..28].copy_from_slice(&512u32.to_le_bytes());
        for (sector, data, flags) in entries {
            let mut head = vec![0; 512];
            for (i, word) in [*sector, data.len() as u64 / 512, *flags, 0].iter().enumerate() {
                head[8 * i..8 * i + 8].copy_from_slice(&word.to_le_bytes());
            }
            out.extend(head);
            if flags & DISCARD == 0 {
                out.extend(*data);
            }
        }
        out
    }

    #[test]
    fn a_cut_leaves_what_was_flushed_and_any_part_of_the_rest() {
        let dir = std::env::temp_dir().join(format!("millrace-log-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        let (a, b, c, d) = ([1; 512], [2; 512], [3; 512], [4; 512]);
        let text = log(&[
            (0, &a, 0),
            (1, &b, 0),
            (0, &[], FLUSH),
            (1, &c, DISCARD),
            (2, &c, 0),
            (2, &d, FUA),
            (3, &a, 0),
        ]);
        let (file, drive) = (dir.join("log"), dir.join("drive"));
        std::fs::write(&file, &text).expect("a log");
        // Half of the last entry is not there yet.
        let end = text.len() as u64 - 100;
        let mut replay = Replay::new(&file, dir.join("base"), 2048).expect("a replay");
        let mut bytes = |left| {
            let lost = replay.cut(end, left, &drive).expect("replayed");
            let mut bytes = Vec::new();
            File::open(&drive).expect("a drive").read_to_end(&mut bytes).expect("read");
            (lost, [0, 512, 1024, 1536].map(|at| bytes[at]))
        };
        // The FUA write is newer than what the cache may have kept of the same sector.
        assert_eq!(bytes(Left::Nothing), (2, [1, 2, 4, 0]));
        let outcomes: std::collections::BTreeSet<_> = (0..64).map(|seed| bytes(Left::Some(seed))).collect();
        let wanted = [(2, [1, 2, 4, 0]), (1, [1, 2, 4, 0]), (1, [1, 0, 4, 0]), (0, [1, 0, 4, 0])];
        assert_eq!(outcomes, wanted.into_iter().collect());
        let mut none = Replay::new(&drive, dir.join("base"), 2048).expect("a file");
        assert!(none.cut(2048, Left::Nothing, &dir.join("other")).is_err(), "a drive is no log");
        std::fs::remove_dir_all(&dir).ok();
    }
}
