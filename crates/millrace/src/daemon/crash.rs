//! The crash record: one line for each panic and fatal signal, and whether there were too many.
//!
//! After three within a minute the head comes up with the management alone, since what broke it three
//! times will break it again, and a head that serves one minute in two ruins its hosts. That stays so
//! until the operator says otherwise: by a line in the record, or by removing it. What leaves no line
//! (kill -9, a power cut) does not count.

use super::claim::place;
use base::machine::StateOp;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The file in the state directory.
pub const CRASHES: &str = "crashes";
/// So many crashes within `WINDOW_SECONDS` are too many.
pub const CRASHES_MAX: usize = 3;
/// See `CRASHES_MAX`.
const WINDOW_SECONDS: u64 = 60;
/// Like everything in the state directory, the record is nobody else's business.
const MODE: u32 = 0o600;
/// Lines kept when the daemon starts.
const LINES_MAX: usize = 200;
/// How a line begins, after the time, that ends what was before it.
const RESUMED: &str = "resumed: ";

/// The record's file.
#[derive(Clone, Debug)]
pub struct Crashes {
    path: PathBuf,
}

/// Too many crashes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooMany {
    /// The lines of those within a minute, oldest first.
    pub lines: Vec<String>,
}

impl Crashes {
    /// The record in this state directory.
    pub fn of(state_dir: &Path) -> Self {
        Self { path: state_dir.join(CRASHES) }
    }
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// The file, open for appending, and what it says so far.
    pub fn open(&self) -> io::Result<(File, Option<TooMany>)> {
        let text = match std::fs::read(&self.path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(e),
        };
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > 2 * LINES_MAX {
            let kept = lines[lines.len() - LINES_MAX..].join("\n") + "\n";
            let dir = self.path.parent().unwrap_or(Path::new("."));
            let op = StateOp::Write { name: CRASHES.into(), contents: kept.into_bytes() };
            uring::on_state(dir, op).map_err(|e| io::Error::other(crate::state::unwritten(CRASHES, &e)))?;
        }
        let file = self.append()?;
        Ok((file, too_many(&text)))
    }
    /// Makes the record again, empty, if the file that was opened is not there any more. True: it was not.
    pub fn renew(&self, opened: &mut (u64, u64)) -> io::Result<bool> {
        if std::fs::metadata(&self.path).is_ok_and(|m| place(&m) == *opened) {
            return Ok(false);
        }
        let file = self.append()?;
        *opened = place(&file.metadata()?);
        uring::process::renew_crash_record(&file)?;
        Ok(true)
    }
    fn append(&self) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(MODE).open(&self.path)
    }
    /// Says that the operator wants to go on: what was before counts no more.
    pub fn resume(&self, why: &str) -> io::Result<()> {
        let mut file = self.append()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        file.write_all(format!("{} {RESUMED}{why}\n", api::Time(now)).as_bytes())?;
        file.sync_all()
    }
}

/// The first crashes of the record, since the operator last said to go on, that were too many within
/// a minute.
fn too_many(text: &str) -> Option<TooMany> {
    let mut since: Vec<(u64, &str)> = Vec::new();
    for line in text.lines() {
        // A line that was cut short by the crash itself, or edited, is none.
        let Some((time, what)) = line.split_once(' ') else { continue };
        let Some(at) = base::utc::seconds(time) else { continue };
        if what.starts_with(RESUMED) {
            since.clear();
        } else {
            since.push((at, line));
        }
    }
    // The clock may have been set back in between: then the difference is the other way round.
    let close = |w: &&[(u64, &str)]| w[w.len() - 1].0.abs_diff(w[0].0) <= WINDOW_SECONDS;
    let found = since.windows(CRASHES_MAX).find(close)?;
    Some(TooMany { lines: found.iter().map(|(_, line)| line.to_string()).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: u64, what: &str) -> String {
        format!("{} {what}\n", api::Time(at))
    }

    #[test]
    fn three_crashes_in_a_minute_are_too_many_and_two_are_not() {
        let at = 1_795_224_873;
        let two = line(at, "panic in shard-0: a") + &line(at + 30, "signal SIGSEGV");
        assert_eq!(too_many(&two), None);
        let third = two.clone() + &line(at + 60, "panic in shard-1: b");
        assert_eq!(too_many(&third).expect("three").lines.len(), 3);
        let late = two + &line(at + 61, "panic in shard-1: b");
        assert_eq!(too_many(&late), None);
    }

    #[test]
    fn the_head_stays_held_back_until_the_operator_says_otherwise() {
        let at = 1_795_224_873;
        let three: String = (0..3).map(|i| line(at + i, "signal SIGBUS")).collect();
        let later = three.clone() + &line(at + 100_000, "panic in api: c");
        assert!(too_many(&later).is_some());
        let resumed = later + &line(at + 100_001, "resumed: by hand");
        assert_eq!(too_many(&resumed), None);
        let again = resumed + &three;
        assert!(too_many(&again).is_some());
    }

    #[test]
    fn a_damaged_record_is_read_as_far_as_it_goes() {
        let text = format!("garbage\n\n\u{fffd}\u{fffd}\n2026\n{}", line(1_795_224_873, "signal SIGILL"));
        assert_eq!(too_many(&text), None);
    }

    #[test]
    fn the_record_is_kept_short_and_survives_reopening() {
        let folder = tempfile::tempdir().expect("a folder");
        let crashes = Crashes::of(folder.path());
        let lines: String = (0..500).map(|i| line(1_000_000_000 + i * 1000, "signal SIGFPE")).collect();
        std::fs::write(crashes.path(), lines).expect("written");
        let (mut file, held) = crashes.open().expect("opened");
        assert_eq!(held, None);
        file.write_all(line(1_100_000_000, "panic").as_bytes()).expect("appended");
        let text = std::fs::read_to_string(crashes.path()).expect("read");
        assert_eq!(text.lines().count(), LINES_MAX + 1);
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().expect("there").permissions());
        assert_eq!(mode & 0o777, MODE);
        crashes.resume("test").expect("appended");
        assert!(std::fs::read_to_string(crashes.path()).expect("read").ends_with("resumed: test\n"));
    }
}
