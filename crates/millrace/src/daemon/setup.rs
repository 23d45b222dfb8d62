//! What the daemon asks of the kernel before it starts, and where it was not allowed.

use crate::config::Config;
use crate::daemon::crash::Crashes;
use crate::daemon::journal::{self, Journal};
use crate::daemon::server::THREAD as API_THREAD;
use crate::failure::Failure;
use finding::{DaemonRight, SystemCause, SystemNotice};
use head::order::Weight;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

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
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none();
    let registry = tracing_subscriber::registry().with(filter);
    let started = if journal::is_stderr() {
        registry.with(Journal::open()).try_init()
    } else {
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
        registry.with(lines.with_ansi(ansi).fmt_fields(format::debug_fn(put_field))).try_init()
    };
    started.map_err(|e| Failure::internal(format!("logging cannot start: {e}")))
}

/// A line of text has no fields of the journal.
fn put_field(
    writer: &mut format::Writer<'_>,
    field: &Field,
    value: &dyn core::fmt::Debug,
) -> core::fmt::Result {
    match field.name() {
        "message" => write!(writer, "{value:?}"),
        journal::CODE | journal::SUBJECT => Ok(()),
        name => write!(writer, " {name}={value:?}"),
    }
}

/// Writes an event of the head to the log, at its level.
pub fn log_event(line: &head::order::EventLine) {
    let (what, message, code) = (&*line.what, crate::words::event(&line.event), &*line.event.code());
    match line.weight {
        Weight::Note => tracing::info!(millrace_code = code, millrace_subject = what, "{what}: {message}"),
        Weight::Warning => tracing::warn!(millrace_code = code, millrace_subject = what, "{what}: {message}"),
        Weight::Error => tracing::error!(millrace_code = code, millrace_subject = what, "{what}: {message}"),
    }
}

/// What was not allowed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Refused {
    /// What a busy head will miss.
    pub notice: Option<SystemNotice>,
    /// What matters only where the head serves disks to its own machine: for who looks closely.
    pub aside: Option<SystemNotice>,
}

/// Locks memory, raises limits, marks the process.
pub fn privileges() -> Refused {
    let mut refused = Vec::new();
    let mut minor = Vec::new();
    if let Err(e) = uring::process::lock_memory() {
        refused.push(DaemonRight::LockMemory { errno: uring::errno(&e) });
    }
    match uring::process::raise_files(FILES_WANTED) {
        Ok(files) if files >= FILES_WANTED => {}
        Ok(files) if files >= FILES_ENOUGH => {
            tracing::info!("at most {files} files can be open: so many connections and drives")
        }
        Ok(files) => refused.push(DaemonRight::MoreFiles { files }),
        Err(e) => refused.push(DaemonRight::RaiseFiles { errno: uring::errno(&e) }),
    }
    if let Err(e) = uring::process::set_io_flusher() {
        minor.push(DaemonRight::IoFlusher { errno: uring::errno(&e) });
    }
    // One notice for all of it, if there is more to say.
    if !refused.is_empty() {
        refused.append(&mut minor);
    }
    let root = uring::process::is_root();
    let notice =
        |rights: Vec<_>| (!rights.is_empty()).then_some(SystemNotice::RightsMissing { rights, root });
    Refused { notice: notice(refused), aside: notice(minor) }
}

/// A token that others on this machine can read is no secret. Nothing is said of what is no file: it is refused, and its mode is
/// nobody's to change.
pub fn token_notice(file: Option<&Path>) -> Option<SystemNotice> {
    let file = file?;
    let found = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    let mode = found.permissions().mode();
    let path = file.display().to_string();
    (mode & 0o077 != 0).then_some(SystemNotice::TokenFileOpen { path, mode: mode & 0o777 })
}

/// Records panics and fatal signals in `file`. A panic anywhere but in the API server, the alarms and the history ends the
/// process: a head that goes on with a broken part would be wrong, not only late.
pub fn crash_handlers(file: File) -> Result<(), Failure> {
    uring::process::install_crash_record(file)
        .map_err(|e| Failure::internal(format!("crashes cannot be recorded: {e}")))?;
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a thread");
        if [API_THREAD, crate::alarm::THREAD, crate::history::THREAD].contains(&name) {
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
    let cause = SystemCause::HeldBack {
        crashes: too_many.lines.len(),
        last: too_many.lines.last().cloned().unwrap_or_default(),
        path: crashes.path().display().to_string(),
        config: config.map(|path| path.display().to_string()),
    };
    crate::words::reason(api::Reason::new(api::State::Offline, "head", cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_allowed_is_one_sentence() {
        let lock = || DaemonRight::LockMemory { errno: 1 };
        let sentence =
            |rights, root| crate::words::notice(&SystemNotice::RightsMissing { rights, root }.into());
        assert_eq!(
            sentence(vec![lock()], false),
            "The daemon was not allowed to lock its memory (operation not permitted): start it with systemd, or as root"
        );
        let all = sentence(
            vec![lock(), DaemonRight::MoreFiles { files: 9 }, DaemonRight::IoFlusher { errno: 1 }],
            true,
        );
        assert!(!all.contains("as root"), "{all}");
        assert!(
            all.contains(", open more than 9 files or set PR_SET_IO_FLUSHER (operation not permitted):"),
            "{all}"
        );
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
        let words = crate::words::notice(&mode(0o644).expect("a notice").into());
        assert!(words.contains("mode 0644") && words.contains("chmod 600"), "{words}");
        assert!(mode(0o660).is_some());
        // What is no file is nobody's to chmod: it is refused.
        assert_eq!(token_notice(Some(std::path::Path::new("/dev/null"))), None);
        assert_eq!(token_notice(Some(std::path::Path::new("/"))), None);
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
