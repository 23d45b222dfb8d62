//! What the daemon asks of the kernel before it starts, told in sentences where it was not allowed.

use crate::config::Config;
use crate::daemon::crash::Crashes;
use crate::daemon::server::THREAD as API_THREAD;
use crate::failure::Failure;
use head::order::Weight;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tracing_subscriber::EnvFilter;

/// Open files that a busy head wants: connections, drives, rings.
const FILES_WANTED: u64 = 1 << 20;
/// With fewer open files a busy head runs out of them. What is between is in the log alone, once.
const FILES_ENOUGH: u64 = 8_192;

/// Starts logging to stderr; under systemd the journal adds the time.
pub fn log(config: &Config) -> Result<(), Failure> {
    let directives = std::env::var("RUST_LOG").unwrap_or_else(|_| config.log.clone());
    let filter = EnvFilter::try_new(&directives).map_err(|e| {
        Failure::usage(format!("log = \"{directives}\" is not understood: {e}"))
            .with_next("log = \"info\" in head.toml")
    })?;
    let to_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none();
    let started = match to_journal {
        true => builder.with_ansi(false).without_time().try_init(),
        false => builder.with_ansi(ansi).try_init(),
    };
    started.map_err(|e| Failure::internal(format!("logging cannot start: {e}")))
}

/// Writes an event of the head to the log, at its level.
pub fn log_event(line: &head::order::EventLine) {
    let (what, message) = (&line.what, &line.message);
    match line.weight {
        Weight::Note => tracing::info!("{what}: {message}"),
        Weight::Warning => tracing::warn!("{what}: {message}"),
        Weight::Error => tracing::error!("{what}: {message}"),
    }
}

/// How long a daemon that was killed may take to let go of the state directory: it does so when its last operation
/// has left the kernel.
pub const CLAIM_PATIENCE: Duration = Duration::from_secs(5);
const CLAIM_STEP: Duration = Duration::from_millis(50);
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// Makes the state directory ours alone, for as long as the file lives. One who answers at the socket is not waited for.
pub fn claim_state_dir(config: &Config, patience: Duration) -> Result<File, Failure> {
    let folder = &config.state_dir;
    let cannot = |e: std::io::Error| {
        let failure = Failure::usage(format!("state_dir = {}: {e}", folder.display()));
        match mended_first(folder, &e) {
            Some(next) => failure.with_next(next),
            None => failure.with_next("another place: state_dir = \"…\" in head.toml"),
        }
    };
    // Secrets of hosts lie there: nobody else's business.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(cannot)?;
    let path = folder.join("lock");
    let file =
        File::options().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(cannot)?;
    let end = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {
                if Instant::now() < end && !answers(&config.socket) {
                    std::thread::sleep(CLAIM_STEP);
                    continue;
                }
                let who = std::fs::read_to_string(&path).unwrap_or_default();
                let who = match who.trim().parse::<u32>() {
                    Ok(pid) => format!("another daemon (process {pid})"),
                    Err(_) => "another daemon".to_string(),
                };
                return Err(Failure::usage(format!("{who} has the state directory {}", folder.display()))
                    .with_next(format!(
                        "millrace --socket {} status, or another state_dir and another socket for a second one",
                        config.socket.display()
                    )));
            }
            Err(TryLockError::Error(e)) => return Err(cannot(e)),
        }
    }
    // For people, and for who comes next: the lock is what counts.
    let _ = file.set_len(0);
    let _ = (&file).write_all(format!("{}\n", std::process::id()).as_bytes());
    Ok(file)
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

/// What was not allowed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Refused {
    /// What a busy head will miss: one sentence.
    pub notice: Option<String>,
    /// What matters only where the head serves disks to its own machine: one sentence, for who looks closely.
    pub aside: Option<String>,
}

/// Locks memory, raises limits, marks the process.
pub fn privileges() -> Refused {
    let mut refused = Vec::new();
    let mut minor = Vec::new();
    if let Err(e) = uring::process::lock_memory() {
        refused.push(format!("lock its memory ({})", plain(&e)));
    }
    match uring::process::raise_files(FILES_WANTED) {
        Ok(files) if files >= FILES_WANTED => {}
        Ok(files) if files >= FILES_ENOUGH => {
            tracing::info!("at most {files} files can be open: so many connections and drives")
        }
        Ok(files) => refused.push(format!("open more than {files} files")),
        Err(e) => refused.push(format!("raise its limit of open files ({})", plain(&e))),
    }
    if let Err(e) = uring::process::set_io_flusher() {
        minor.push(format!("set PR_SET_IO_FLUSHER ({})", plain(&e)));
    }
    let root = uring::process::is_root();
    // One sentence for all of it, if there is more to say.
    if !refused.is_empty() {
        refused.append(&mut minor);
    }
    Refused { notice: sentence(&refused, root), aside: sentence(&minor, root) }
}

/// A token that others on this machine can read is no secret. Nothing is said of what is no file: it is refused, and its mode is
/// nobody's to change.
pub fn token_notice(file: Option<&Path>) -> Option<String> {
    let file = file?;
    let found = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    let mode = found.permissions().mode();
    (mode & 0o077 != 0).then(|| {
        let (path, mode) = (file.display(), mode & 0o777);
        format!("api.token_file = {path} has mode {mode:04o}: others than its owner can use or change the token: chmod 600 {path}")
    })
}

/// One sentence for all that was refused.
fn sentence(refused: &[String], root: bool) -> Option<String> {
    let (last, others) = refused.split_last()?;
    let list = if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) };
    // Root in a container, or under a limit: only whoever set the limit can raise it.
    let next = match root {
        true => "this container or session limits even root; packaging/millrace.service does not",
        false => "start it by systemd, or as root",
    };
    Some(format!("The daemon was not allowed to {list}: {next}"))
}

/// An error without its number.
fn plain(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

/// Records panics and fatal signals in `file`. A panic anywhere but in the API server ends the
/// process: a head that goes on with a broken part would be wrong, not only late.
pub fn crash_handlers(file: File) -> Result<(), Failure> {
    uring::process::install_crash_record(file)
        .map_err(|e| Failure::internal(format!("crashes cannot be recorded: {e}")))?;
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a thread");
        if name == API_THREAD {
            return;
        }
        let text = info.payload_as_str().unwrap_or("without words");
        let place = info.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
        uring::process::record_crash(&format!("panic in {name}: {text}{place}"));
        std::process::abort();
    }));
    Ok(())
}

/// Why the pools are not imported: what `status` shows.
pub fn held_back(crashes: &Crashes, too_many: &super::crash::TooMany, config: Option<&Path>) -> api::Reason {
    let config = config.map_or(String::new(), |path| format!(" --config {}", path.display()));
    let last = too_many.lines.last().map_or("", String::as_str);
    api::Reason {
        state: api::State::Offline,
        what: "head".into(),
        message: format!(
            "the daemon crashed {} times within a minute (last: {last}), so it came up with the management alone and the pools were not imported",
            too_many.lines.len()
        ),
        next: Some(format!(
            "millrace pool import POOL, or millrace serve --import{config}, or remove {} and restart the daemon",
            crashes.path().display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_allowed_is_one_sentence() {
        assert_eq!(sentence(&[], false), None);
        let one = sentence(&["lock its memory (operation not permitted)".into()], false).expect("one");
        assert_eq!(
            one,
            "The daemon was not allowed to lock its memory (operation not permitted): start it by systemd, or as root"
        );
        let all = sentence(&["a".into(), "b".into(), "c".into()], true).expect("three");
        assert!(!all.contains("as root"), "{all}");
        assert!(all.contains("to a, b or c:"), "{all}");
    }

    #[test]
    fn a_state_directory_belongs_to_one_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config { state_dir: folder.path().join("state"), ..Config::default() };
        let first = claim_state_dir(&config, Duration::ZERO).expect("free");
        let taken = claim_state_dir(&config, Duration::ZERO).expect_err("taken").message;
        assert!(taken.starts_with(&format!("another daemon (process {})", std::process::id())), "{taken}");
        // One that is about to be gone is waited for, unless it answers.
        let config = Config { socket: folder.path().join("s"), ..config };
        let listener = std::os::unix::net::UnixListener::bind(&config.socket).expect("bound");
        let lives = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody asks");
            assert!(stream.read(&mut [0; 256]).expect("a question") > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").expect("an answer");
        });
        claim_state_dir(&config, Duration::from_secs(600)).expect_err("it lives");
        lives.join().expect("no panic");
        // Nobody answers there any more.
        let waits = std::thread::spawn({
            let config = config.clone();
            move || claim_state_dir(&config, Duration::from_secs(600)).map(drop)
        });
        std::thread::sleep(2 * CLAIM_STEP);
        drop(first);
        waits.join().expect("no panic").expect("free again");
    }

    #[test]
    fn a_token_that_others_can_read_is_told() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mode = |mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), permissions).expect("ours");
            token_notice(Some(file.path()))
        };
        assert_eq!((mode(0o600), mode(0o400), token_notice(None)), (None, None, None));
        let words = mode(0o644).expect("a sentence");
        assert!(words.contains("mode 0644") && words.contains("chmod 600"), "{words}");
        assert!(mode(0o660).is_some());
        // What is no file is nobody's to chmod: it is refused.
        assert_eq!(token_notice(Some(std::path::Path::new("/dev/null"))), None);
        assert_eq!(token_notice(Some(std::path::Path::new("/"))), None);
    }

    #[test]
    fn a_state_directory_that_cannot_be_made_is_a_sentence() {
        let config = Config { state_dir: "/proc/nowhere/state".into(), ..Config::default() };
        let failure = claim_state_dir(&config, Duration::ZERO).expect_err("impossible");
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
        let failure = claim_state_dir(&config, Duration::ZERO).expect_err("a file");
        assert!(failure.next.is_some_and(|n| n.starts_with("repair ")));
    }

    #[test]
    fn the_reason_for_being_held_back_says_how_to_go_on() {
        let crashes = Crashes::of(std::path::Path::new("/var/lib/millrace"));
        let lines = vec!["t panic in shard-0: a".into(); 3];
        let reason =
            held_back(&crashes, &super::super::crash::TooMany { lines }, Some(Path::new("head.toml")));
        assert!(reason.message.contains("3 times") && reason.message.contains("panic in shard-0"));
        let next = reason.next.expect("advice");
        assert!(next.contains("/var/lib/millrace/crashes"), "{next}");
        assert!(next.contains("millrace serve --import --config head.toml,"), "{next}");
    }
}
