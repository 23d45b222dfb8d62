//! What the daemon asks of the kernel before it starts, told in sentences where it was not allowed.

use crate::config::Config;
use crate::daemon::crash::Crashes;
use crate::daemon::server::THREAD as API_THREAD;
use crate::failure::Failure;
use head::order::Weight;
use std::fs::{File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
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

/// Makes the state directory ours alone, for as long as the file lives.
pub fn claim_state_dir(config: &Config) -> Result<File, Failure> {
    let folder = &config.state_dir;
    let cannot = |e: std::io::Error| {
        Failure::usage(format!("state_dir = {}: {e}", folder.display()))
            .with_next("another place: state_dir = \"…\" in head.toml")
    };
    // Secrets of hosts lie there: nobody else's business.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(cannot)?;
    let path = folder.join("lock");
    let file =
        File::options().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::usage(format!("another daemon has the state directory {}", folder.display()))
                .with_next("millrace status, or another state_dir and another socket for a second one"))
        }
        Err(TryLockError::Error(e)) => Err(cannot(e)),
    }
}

/// Locks memory, raises limits, marks the process; returns one sentence if something was not allowed.
pub fn privileges() -> Vec<String> {
    let mut refused = Vec::new();
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
        refused.push(format!("set PR_SET_IO_FLUSHER ({})", plain(&e)));
    }
    sentence(&refused, uring::process::is_root()).into_iter().collect()
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
pub fn held_back(crashes: &Crashes, too_many: &super::crash::TooMany) -> api::Reason {
    let last = too_many.lines.last().map_or("", String::as_str);
    api::Reason {
        state: api::State::Offline,
        what: "head".into(),
        message: format!(
            "the daemon crashed {} times within a minute (last: {last}), so it came up with the management alone and the pools were not imported",
            too_many.lines.len()
        ),
        next: Some(format!(
            "millrace pool import POOL, or millrace serve --import, or remove {} and restart the daemon",
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
        let first = claim_state_dir(&config).expect("free");
        assert!(claim_state_dir(&config).expect_err("taken").message.contains("another daemon"));
        drop(first);
        claim_state_dir(&config).expect("free again");
    }

    #[test]
    fn a_state_directory_that_cannot_be_made_is_a_sentence() {
        let config = Config { state_dir: "/proc/nowhere/state".into(), ..Config::default() };
        let failure = claim_state_dir(&config).expect_err("impossible");
        assert!(failure.message.contains("state_dir = /proc/nowhere/state"), "{failure}");
    }

    #[test]
    fn the_reason_for_being_held_back_says_how_to_go_on() {
        let crashes = Crashes::of(std::path::Path::new("/var/lib/millrace"));
        let lines = vec!["t panic in shard-0: a".into(); 3];
        let reason = held_back(&crashes, &super::super::crash::TooMany { lines });
        assert!(reason.message.contains("3 times") && reason.message.contains("panic in shard-0"));
        assert!(reason.next.expect("advice").contains("/var/lib/millrace/crashes"));
    }
}
