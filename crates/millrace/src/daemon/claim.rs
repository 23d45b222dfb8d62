//! The state directory belongs to one daemon.
//!
//! Two locks: one on the directory itself, which nobody can remove and make anew under the same name while it is in use, and
//! one on the file `lock`, which says for people who has it, and which older programs look at. A second daemon needs both.
//! What is removed under a running head is made again.

use crate::config::Config;
use crate::failure::Failure;
use finding::RecordCause;
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file in the state directory.
pub const LOCK: &str = "lock";
/// How long a daemon that was killed may take to let go of the state directory: it does so when its last operation
/// has left the kernel.
pub const CLAIM_PATIENCE: Duration = Duration::from_secs(5);
/// What takes longer is told.
const SILENCE: Duration = Duration::from_millis(500);
const CLAIM_STEP: Duration = Duration::from_millis(50);
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// The state directory is ours alone, for as long as this lives.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    /// None: its file system locks no directories (NFS).
    directory: Option<File>,
    file: File,
}

/// Why a claim cannot be made.
enum Obstacle {
    /// Somebody else has it.
    Taken,
    Failed(io::Error),
}

impl From<io::Error> for Obstacle {
    fn from(e: io::Error) -> Self {
        Obstacle::Failed(e)
    }
}

impl Claim {
    /// Makes the state directory ours alone. One who answers at the socket is not waited for.
    pub fn take(config: &Config, patience: Duration) -> Result<Self, Failure> {
        let folder = &config.state_dir;
        let cannot = |e: io::Error| {
            let failure = Failure::usage(format!("state_dir = {}: {e}", folder.display()));
            match mended_first(folder, &e) {
                Some(next) => failure.with_next(next),
                None => failure.with_next("another place: state_dir = \"…\" in head.toml"),
            }
        };
        let (start, mut told) = (Instant::now(), false);
        let end = start + patience;
        loop {
            match Self::try_take(folder) {
                Ok(claim) => return Ok(claim),
                Err(Obstacle::Failed(e)) => return Err(cannot(e)),
                Err(Obstacle::Taken) if Instant::now() < end && !answers(&config.socket) => {
                    if !told && start.elapsed() > SILENCE {
                        told = true;
                        let (holder, seconds) = (holder(folder), patience.as_secs());
                        tracing::info!(
                            "{holder} has the state directory: waiting up to {seconds} s for it to let go"
                        );
                    }
                    std::thread::sleep(CLAIM_STEP);
                }
                Err(Obstacle::Taken) => {
                    let message = format!("{} has the state directory {}", holder(folder), folder.display());
                    return Err(Failure::usage(message).with_next(format!(
                        "millrace --socket {} status, or another state_dir and another socket for a second one",
                        config.socket.display()
                    )));
                }
            }
        }
    }
    fn try_take(folder: &Path) -> Result<Self, Obstacle> {
        // Secrets of hosts lie there: nobody else's business.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let directory = File::open(folder)?;
        let directory = match directory.try_lock() {
            Ok(()) => Some(directory),
            Err(TryLockError::WouldBlock) => return Err(Obstacle::Taken),
            Err(TryLockError::Error(_)) => None,
        };
        let file = lock_file(folder)?;
        try_write(folder)?;
        Ok(Self { folder: folder.to_path_buf(), directory, file })
    }
    /// The state directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    /// Makes again what somebody removed. True: something was.
    pub fn renew(&mut self) -> Result<bool, RecordCause> {
        let same = |file: &File, path: &Path| {
            !moved(file.metadata().map(|m| place(&m)), std::fs::metadata(path).map(|m| place(&m)))
        };
        let path = self.folder.join(LOCK);
        let moved = self.directory.as_ref().is_some_and(|d| !same(d, &self.folder));
        if !moved && same(&self.file, &path) {
            return Ok(false);
        }
        let again = if moved {
            Self::try_take(&self.folder).map(|claim| *self = claim)
        } else {
            lock_file(&self.folder).map(|file| self.file = file)
        };
        again.map(|()| true).map_err(|obstacle| match obstacle {
            Obstacle::Taken => RecordCause::StateDirectoryTaken { pid: holding(&self.folder) },
            Obstacle::Failed(e) => {
                let folder = self.folder.display().to_string();
                RecordCause::LockNotMade { folder, error: e.to_string() }
            }
        })
    }
}

/// The file, ours, with our number in it.
fn lock_file(folder: &Path) -> Result<File, Obstacle> {
    let path = folder.join(LOCK);
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Obstacle::Taken),
        Err(TryLockError::Error(e)) => return Err(e.into()),
    }
    // For people, and for who comes next: the lock is what counts.
    let _ = file.set_len(0);
    let _ = (&file).write_all(format!("{}\n", std::process::id()).as_bytes());
    Ok(file)
}

/// Makes and removes a file: a directory in which nothing can be replaced may still let its lock be opened.
fn try_write(folder: &Path) -> io::Result<()> {
    let path = folder.join(".writable");
    File::options().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)
}

/// Whether a file of ours is not the one that lies at its path. An error that is not of this says nothing: what cannot be
/// looked at for a moment is still locked.
fn moved(ours: io::Result<(u64, u64)>, there: io::Result<(u64, u64)>) -> bool {
    const GONE: [ErrorKind; 3] =
        [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::StaleNetworkFileHandle];
    match (ours, there) {
        (Ok(ours), Ok(there)) => ours != there,
        (Err(e), _) | (_, Err(e)) => GONE.contains(&e.kind()),
    }
}

/// What tells a file from another one of its name.
pub fn place(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// The process that has it, if that is known.
fn holding(folder: &Path) -> Option<u32> {
    std::fs::read_to_string(folder.join(LOCK)).ok()?.trim().parse().ok()
}

/// Who has it, in words.
fn holder(folder: &Path) -> String {
    holding(folder).map_or("another daemon".into(), |pid| format!("another daemon (process {pid})"))
}

/// What helps where a state directory cannot be written that holds something, or may: another one would make another head of
/// this one, without its hosts, portals and pools.
fn mended_first(folder: &Path, error: &std::io::Error) -> Option<String> {
    let exists = folder.exists();
    let place = folder.display();
    let repair = match error.kind() {
        ErrorKind::ReadOnlyFilesystem => {
            let mount = "mount -o remount,rw \"$(findmnt -no TARGET --target";
            format!("dmesg, for what made its file system read-only; repair that, then {mount} {place})\"")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => format!("df -h {place}, and free some space"),
        ErrorKind::PermissionDenied if exists => {
            format!("ls -ld {place}, and make it writable for the daemon's user")
        }
        _ if exists => format!("repair {place}"),
        _ => return None,
    };
    let warning = "Another state_dir is another head: it knows none of this one's hosts, portals and pools";
    Some(format!("{repair}. {warning}"))
}

/// Whether a daemon answers at a socket. One that was killed may take connections for a moment, and says nothing.
fn answers(socket: &Path) -> bool {
    let ask = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
        stream
            .write_all(b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: millrace\r\nconnection: close\r\n\r\n")?;
        stream.read(&mut [0; 16])
    };
    ask().is_ok_and(|bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_directory_belongs_to_one_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config { state_dir: folder.path().join("state"), ..Config::default() };
        let first = Claim::take(&config, Duration::ZERO).expect("free");
        let taken = Claim::take(&config, Duration::ZERO).expect_err("taken").message;
        assert!(taken.starts_with(&format!("another daemon (process {})", std::process::id())), "{taken}");
        // One that is about to be gone is waited for, unless it answers.
        let config = Config { socket: folder.path().join("s"), ..config };
        let listener = std::os::unix::net::UnixListener::bind(&config.socket).expect("bound");
        let lives = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody asks");
            assert!(stream.read(&mut [0; 256]).expect("a question") > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").expect("an answer");
        });
        Claim::take(&config, Duration::from_secs(600)).expect_err("it lives");
        lives.join().expect("no panic");
        // Nobody answers there any more.
        let waits = std::thread::spawn({
            let config = config.clone();
            move || Claim::take(&config, Duration::from_secs(600)).map(drop)
        });
        std::thread::sleep(2 * CLAIM_STEP);
        drop(first);
        waits.join().expect("no panic").expect("free again");
    }

    #[test]
    fn a_state_directory_that_cannot_be_made_is_a_sentence() {
        let config = Config { state_dir: "/proc/nowhere/state".into(), ..Config::default() };
        let failure = Claim::take(&config, Duration::ZERO).expect_err("impossible");
        assert!(failure.message.contains("state_dir = /proc/nowhere/state"), "{failure}");
    }

    #[test]
    fn a_state_directory_that_holds_something_is_repaired_and_not_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let next = |kind: ErrorKind, at: &Path| mended_first(at, &kind.into());
        for (kind, word) in [
            (ErrorKind::ReadOnlyFilesystem, "remount,rw"),
            (ErrorKind::StorageFull, "df -h"),
            (ErrorKind::QuotaExceeded, "df -h"),
            (ErrorKind::PermissionDenied, "ls -ld"),
            (ErrorKind::Other, "repair"),
        ] {
            let next = next(kind, folder.path()).expect("something lies there");
            assert!(next.contains(word) && next.contains("knows none of this one's hosts"), "{next}");
        }
        // One that never was.
        let none = folder.path().join("none");
        assert_eq!(
            (next(ErrorKind::PermissionDenied, &none), next(ErrorKind::NotFound, &none)),
            (None, None)
        );
        assert!(
            next(ErrorKind::ReadOnlyFilesystem, &none).is_some(),
            "it may lie on what is not mounted for writing"
        );
        // Whatever lies in its place is told, too.
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("written");
        let config = Config { state_dir: file, ..Config::default() };
        let failure = Claim::take(&config, Duration::ZERO).expect_err("a file");
        assert!(failure.next.is_some_and(|n| n.starts_with("repair ")));
    }

    #[test]
    fn a_file_that_cannot_be_looked_at_for_a_moment_was_not_moved() {
        let (here, other) = (|| Ok((1, 2)), || Ok((1, 3)));
        let fails = |kind: ErrorKind| Err(io::Error::from(kind));
        assert!(!moved(here(), here()) && moved(here(), other()));
        for (kind, gone) in [
            (ErrorKind::NotFound, true),
            (ErrorKind::NotADirectory, true),
            (ErrorKind::StaleNetworkFileHandle, true),
            (ErrorKind::PermissionDenied, false),
            (ErrorKind::TimedOut, false),
            (ErrorKind::Other, false),
        ] {
            assert_eq!((moved(here(), fails(kind)), moved(fails(kind), here())), (gone, gone), "{kind}");
        }
    }

    #[test]
    fn a_lock_that_is_removed_lets_no_second_daemon_in_and_is_made_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config { state_dir: folder.path().join("state"), ..Config::default() };
        let lock = config.state_dir.join(LOCK);
        let mut claim = Claim::take(&config, Duration::ZERO).expect("free");
        assert_eq!(claim.renew(), Ok(false));
        std::fs::remove_file(&lock).expect("it is there");
        Claim::take(&config, Duration::ZERO).expect_err("the directory is locked itself");
        assert!(!lock.exists(), "who may not have it leaves nothing there");
        assert_eq!((claim.renew(), claim.renew()), (Ok(true), Ok(false)));
        let text = std::fs::read_to_string(&lock).expect("made again");
        assert_eq!(text.trim(), std::process::id().to_string());
        // The whole directory, by another name and gone.
        std::fs::rename(&config.state_dir, folder.path().join("old")).expect("moved");
        assert_eq!((claim.renew(), claim.renew()), (Ok(true), Ok(false)));
        Claim::take(&config, Duration::ZERO).expect_err("it is ours again");
        std::fs::remove_dir_all(&config.state_dir).expect("removed");
        let other = Claim::take(&config, Duration::ZERO).expect("nobody had time to notice");
        let why = claim.renew().expect_err("it is somebody else's");
        assert!(matches!(why, RecordCause::StateDirectoryTaken { pid: Some(_) }), "{why:?}");
        drop(other);
        assert_eq!(claim.renew(), Ok(true));
    }
}
