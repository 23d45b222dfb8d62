//! The file `history` of the state directory: blocks of steps, each with a checksum of its own, in the order in which they were
//! complete. Drawn in docs/formats/state.md.

use super::did::{HEAD_VALUES, VALUES};
use super::kept::{Kept, MINUTE, STEPS, Whose};
use super::ring::Row;
use base::Uuid;
use base::crc::crc32c;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Name of the file.
const NAME: &str = "history";
/// How a block begins. Another version begins otherwise.
const MAGIC: [u8; 4] = *b"MRH2";
/// Bytes in front of its steps.
const HEADER: usize = 44;
/// Most steps in a block.
pub const ROWS_MAX: usize = 256;
/// The longest block.
const BLOCK_MAX: usize = HEADER + ROWS_MAX * HEAD_VALUES * 4;
/// A longer file is written anew from what is kept, which is half of this at most.
const FILE_MAX: u64 = 64 << 20;
/// No step begins so late, in seconds since 1970.
const BEGIN_END: u64 = 1 << 40;
/// So much is read at a time.
const READ_BYTES: usize = 1 << 16;

/// Steps that follow each other.
#[derive(Clone, PartialEq, Debug)]
pub enum Block {
    /// Minutes of the head.
    Head {
        /// Number of the first one.
        step: u64,
        /// Values of each.
        rows: Vec<Row<HEAD_VALUES>>,
    },
    /// Minutes or longer steps of a volume or drive.
    Thing {
        /// Whose.
        whose: Whose,
        /// How long each is.
        seconds: u64,
        /// See `Head`.
        step: u64,
        /// See `Head`.
        rows: Vec<Row<VALUES>>,
    },
}

/// Writes a block behind `out`: steps of this length, and the number of the first one.
pub fn encode<const W: usize>(whose: Whose, seconds: u64, step: u64, rows: &[Row<W>], out: &mut Vec<u8>) {
    let start = out.len();
    let (what, uuid) = match whose {
        Whose::Head => (0u32, Uuid::default()),
        Whose::Volume(uuid) => (1, uuid),
        Whose::Drive(uuid) => (2, uuid),
    };
    out.extend(MAGIC);
    out.extend([0; 4]);
    out.extend(what.to_le_bytes());
    out.extend((rows.len() as u32).to_le_bytes());
    out.extend((step * seconds).to_le_bytes());
    out.extend(uuid.0);
    out.extend((seconds as u32).to_le_bytes());
    rows.iter().flatten().for_each(|value| out.extend(value.to_le_bytes()));
    let sum = crc32c(&out[start + 8..]);
    out[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
}

/// The block that these bytes begin with, and its length.
fn parse(bytes: &[u8]) -> Option<(Block, usize)> {
    let header = bytes.get(..HEADER)?;
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four"));
    let (what, count) = (word(8), word(12) as usize);
    let width = if what == 0 { HEAD_VALUES } else { VALUES };
    if header[..4] != MAGIC || !(1..=ROWS_MAX).contains(&count) {
        return None;
    }
    let len = HEADER + count * width * 4;
    let whole = bytes.get(..len).filter(|whole| crc32c(&whole[8..]) == word(4))?;
    let begin = u64::from_le_bytes(header[16..24].try_into().expect("eight"));
    let uuid = Uuid(header[24..40].try_into().expect("sixteen"));
    let whose = match what {
        0 => Whose::Head,
        1 => Whose::Volume(uuid),
        2 => Whose::Drive(uuid),
        _ => return None,
    };
    let seconds = u64::from(word(40));
    let known = if what == 0 { seconds == MINUTE } else { seconds >= MINUTE && STEPS.contains(&seconds) };
    if !known {
        return None;
    }
    let step = Some(begin / seconds).filter(|step| begin < BEGIN_END && step * seconds == begin)?;
    let values = &whole[HEADER..];
    let block = match whose {
        Whose::Head => Block::Head { step, rows: rows(values) },
        whose => Block::Thing { whose, seconds, step, rows: rows(values) },
    };
    Some((block, len))
}

fn rows<const W: usize>(values: &[u8]) -> Vec<Row<W>> {
    let value = |bytes: &[u8]| {
        let value = f32::from_le_bytes(bytes.try_into().expect("four"));
        if value.is_finite() && value >= 0.0 { value } else { f32::NAN }
    };
    let row = |bytes: &[u8]| std::array::from_fn(|i| value(&bytes[4 * i..4 * i + 4]));
    values.chunks_exact(4 * W).map(row).collect()
}

/// All blocks that are whole, in order. True: nothing lay between them.
pub fn decode(input: impl Read, mut take: impl FnMut(Block)) -> io::Result<bool> {
    let (mut input, mut bytes, mut at) = (input.take(FILE_MAX), Vec::new(), 0);
    let (mut ended, mut whole) = (false, true);
    loop {
        while !ended && bytes.len() - at < BLOCK_MAX {
            bytes.drain(..at);
            at = 0;
            let read = input.by_ref().take((BLOCK_MAX + READ_BYTES) as u64).read_to_end(&mut bytes)?;
            ended = read == 0;
        }
        let rest = &bytes[at..];
        match parse(rest) {
            Some((block, len)) => {
                take(block);
                at += len;
            }
            None if rest.is_empty() => return Ok(whole),
            None => {
                whole = false;
                // Up to where the next one may begin.
                at += 1 + rest[1..].iter().position(|byte| *byte == MAGIC[0]).unwrap_or(rest.len() - 1);
            }
        }
    }
}

/// Where the file is.
pub fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Reads what is there. True: it is whole.
pub fn read(path: &Path, kept: &Mutex<Kept>) -> bool {
    let read = File::open(path).and_then(|file| decode(file, |block| lock(kept).restore(block)));
    lock(kept).resume();
    let why = match read {
        Ok(true) => return true,
        Ok(false) => "parts of it are damaged or of another version".to_string(),
        Err(e) if e.kind() == ErrorKind::NotFound => return true,
        Err(e) => e.to_string(),
    };
    tracing::warn!("{} could not be read in full, and is begun anew: {why}", path.display());
    false
}

/// Writes blocks behind what is there; `anew`: all that is kept, in a new file.
pub fn write(path: &Path, kept: &Mutex<Kept>, blocks: &[u8], anew: bool) -> io::Result<()> {
    if !anew {
        let mut file = File::options().append(true).create(true).mode(0o600).open(path)?;
        let len = file.metadata()?.len();
        if len > 0 && len + blocks.len() as u64 <= FILE_MAX {
            file.write_all(blocks)?;
            return file.sync_data();
        }
    }
    let new = path.with_extension("new");
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    let (mut file, all) = (BufWriter::new(file), lock(kept).all());
    for whose in all {
        // One after the other, so that nobody waits for all.
        let mut block = Vec::new();
        lock(kept).encode(whose, &mut block);
        file.write_all(&block)?;
    }
    file.into_inner()?.sync_data()?;
    std::fs::rename(&new, path)
}

/// A panic elsewhere does not make it wrong.
pub fn lock(kept: &Mutex<Kept>) -> std::sync::MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::did::tests::moment;
    use super::*;

    fn uuid(n: u8) -> Uuid {
        Uuid([n; 16])
    }

    /// A file of a few blocks, and these.
    fn example() -> (Vec<u8>, Vec<Block>) {
        let mut bytes = Vec::new();
        let head = |n: f32| -> Row<HEAD_VALUES> { std::array::from_fn(|i| n + i as f32) };
        encode(Whose::Head, 60, 100, &[head(1.0)], &mut bytes);
        encode(Whose::Volume(uuid(1)), 600, 10, &[[1.0; VALUES], [2.0; VALUES]], &mut bytes);
        encode(Whose::Drive(uuid(2)), 60, 110, &[[3.0; VALUES]], &mut bytes);
        encode(Whose::Head, 60, 101, &[head(2.0), head(3.0)], &mut bytes);
        let rows = vec![[1.0; VALUES], [2.0; VALUES]];
        let blocks = vec![
            Block::Head { step: 100, rows: vec![head(1.0)] },
            Block::Thing { whose: Whose::Volume(uuid(1)), seconds: 600, step: 10, rows },
            Block::Thing { whose: Whose::Drive(uuid(2)), seconds: 60, step: 110, rows: vec![[3.0; VALUES]] },
            Block::Head { step: 101, rows: vec![head(2.0), head(3.0)] },
        ];
        (bytes, blocks)
    }
    fn decoded(bytes: &[u8]) -> (bool, Vec<Block>) {
        let mut blocks = Vec::new();
        let whole = decode(bytes, |block| blocks.push(block)).expect("no file, no failure");
        (whole, blocks)
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let (bytes, blocks) = example();
        assert_eq!(decoded(&bytes), (true, blocks));
        assert_eq!(decoded(&[]), (true, vec![]));
        const { assert!(BLOCK_MAX < READ_BYTES) };
    }

    #[test]
    fn of_a_damaged_file_all_is_read_that_is_whole() {
        let (bytes, blocks) = example();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            for flip in [1, 0x80, 0xff] {
                damaged[at] = bytes[at] ^ flip;
                let (whole, found) = decoded(&damaged);
                assert!(!whole && found.len() == blocks.len() - 1, "{at} {flip}: {found:?}");
                assert!(found.iter().all(|block| blocks.contains(block)), "{at} {flip}: {found:?}");
            }
        }
        let mut ends = Vec::new();
        for (i, _) in blocks.iter().enumerate() {
            let begin: usize = ends.last().copied().unwrap_or(0);
            ends.push(begin + parse(&bytes[begin..]).unwrap_or_else(|| panic!("block {i}")).1);
        }
        for len in 0..=bytes.len() {
            let (whole, found) = decoded(&bytes[..len]);
            assert_eq!(found, blocks[..ends.iter().filter(|end| **end <= len).count()], "{len}");
            assert_eq!(whole, len == 0 || ends.contains(&len), "{len}");
            // What is written behind a block that was cut off counts.
            let (_, more) = decoded(&[&bytes[..len], &bytes[..]].concat());
            assert!(more.ends_with(&blocks), "{len}");
        }
    }

    #[test]
    fn another_version_and_steps_that_make_no_sense_are_as_none() {
        let (bytes, _) = example();
        let mut other = bytes.clone();
        other.iter_mut().filter(|b| **b == b'2').for_each(|b| *b = b'1');
        assert_eq!(decoded(&other).1, []);
        for (what, count, begin, seconds) in [
            (3u32, 1u32, 6000u64, 60u32),
            (0, 0, 6000, 60),
            (0, 257, 6000, 60),
            (0, 1, 6001, 60),
            (0, 1, BEGIN_END * 60, 60),
            (0, 1, 6000, 600),
            (0, 1, 6000, 0),
            (1, 1, 6060, 600),
            (1, 1, 6000, 5),
            (1, 1, 6000, 61),
        ] {
            let mut odd = bytes.clone();
            odd[8..12].copy_from_slice(&what.to_le_bytes());
            odd[12..16].copy_from_slice(&count.to_le_bytes());
            odd[16..24].copy_from_slice(&begin.to_le_bytes());
            odd[40..44].copy_from_slice(&seconds.to_le_bytes());
            mend(&mut odd);
            assert_eq!(decoded(&odd).1.len(), 3, "{what} {count} {begin} {seconds}");
        }
        let mut rows = Vec::new();
        encode(Whose::Drive(uuid(1)), 600, 1, &[[f32::NAN, -1.0, f32::INFINITY, 0.0, -0.0, 5.0]], &mut rows);
        let (_, found) = decoded(&rows);
        let [Block::Thing { rows, .. }] = &found[..] else { panic!("{found:?}") };
        assert!(rows[0][..3].iter().all(|x| x.is_nan()) && rows[0][3..] == [0.0, 0.0, 5.0]);
    }

    /// Makes the checksum of the first block right, as long as it says that it is.
    fn mend(bytes: &mut [u8]) {
        if bytes.len() < HEADER {
            return;
        }
        bytes[..4].copy_from_slice(&MAGIC);
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let width = if word(8) == 0 { HEAD_VALUES } else { VALUES };
        let len = HEADER.saturating_add((word(12) as usize).saturating_mul(4 * width)).min(bytes.len());
        let sum = crc32c(&bytes[8..len]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    }

    #[test]
    fn fuzz_history_file() {
        let take = |bytes: &[u8]| {
            let kept = Mutex::new(Kept::default());
            let (_, blocks) = decoded(bytes);
            for block in blocks {
                let mut again = Vec::new();
                match &block {
                    Block::Head { step, rows } => encode(Whose::Head, MINUTE, *step, rows, &mut again),
                    Block::Thing { whose, seconds, step, rows } => {
                        encode(*whose, *seconds, *step, rows, &mut again);
                    }
                }
                // As text, since what is unknown equals nothing.
                assert_eq!(format!("{:?}", decoded(&again)), format!("{:?}", (true, [&block])));
                lock(&kept).restore(block);
            }
            lock(&kept).resume();
            lock(&kept).take(moment(1e6, 1e6, 0));
            let mut all = Vec::new();
            let kept = lock(&kept);
            kept.all().into_iter().for_each(|whose| kept.encode(whose, &mut all));
            assert!(decoded(&all).0, "what is kept is written whole");
        };
        let examples = vec![example().0];
        let target = fuzz::Target { name: "history", run: take, examples, mend, bytes_max: 4096 };
        assert!(fuzz::run(&target, 1, fuzz::limit()) > 100);
    }

    /// All that is kept, as a file has it.
    fn all_of(kept: &Mutex<Kept>) -> Vec<u8> {
        let (kept, mut all) = (lock(kept), Vec::new());
        kept.all().into_iter().for_each(|whose| kept.encode(whose, &mut all));
        all
    }
    /// As after a start.
    fn found(path: &Path) -> (bool, Mutex<Kept>) {
        let kept = Mutex::new(Kept::default());
        (read(path, &kept), kept)
    }

    #[test]
    fn whenever_the_daemon_is_killed_all_minutes_are_there_but_the_last() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = path(folder.path());
        let kept = Mutex::new(Kept::default());
        assert!(read(&path, &kept) && !path.exists());
        for s in 1200..3700 {
            if lock(&kept).take(moment(s as f64 + 0.01, s as f64, 10 * s)) {
                let (blocks, anew) = lock(&kept).take_unwritten();
                write(&path, &kept, &blocks, anew).expect("written");
                let (whole, again) = found(&path);
                assert!(whole);
                assert_eq!(all_of(&again), all_of(&kept), "{s}");
                let minutes = lock(&again).head(60).and_then(|r| r.newest()).expect("a minute");
                assert!(s - (minutes + 1) * 60 <= 1, "{s}: {minutes}");
            }
        }
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).expect("there"));
        assert_eq!(mode & 0o777, 0o600);
        // A file that was cut, and one that somebody removed: all is there again after the next minute.
        let bytes = std::fs::read(&path).expect("there");
        std::fs::write(&path, &bytes[..bytes.len() - 3]).expect("cut");
        let (whole, cut) = found(&path);
        assert!(!whole && all_of(&cut) != all_of(&kept));
        write(&path, &cut, &[], true).expect("anew");
        assert!(found(&path).0);
        std::fs::remove_file(&path).expect("removed");
        write(&path, &kept, &[], false).expect("made again");
        assert_eq!(all_of(&found(&path).1), all_of(&kept));
        // A directory that refuses it costs nothing else.
        let nowhere = folder.path().join("nowhere").join(NAME);
        assert!(write(&nowhere, &kept, &[], false).is_err() && found(&nowhere).0);
    }

    #[test]
    fn a_file_that_grew_is_written_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, kept) = (path(folder.path()), Mutex::new(Kept::default()));
        File::create(&path).and_then(|f| f.set_len(FILE_MAX - 10)).expect("full of holes");
        write(&path, &kept, &[0; 11], false).expect("anew");
        assert_eq!(std::fs::metadata(&path).expect("there").len(), 0, "nothing is kept");
    }
}
