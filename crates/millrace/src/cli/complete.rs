//! Completions: the shell asks this program what may come next, and for names this program asks the daemon.
//!
//! A daemon that does not answer at once is none: a shell must not wait for it.

use crate::client::Client;
use crate::config;
use api::Status;
use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// Set by the shell when it asks.
const VARIABLE: &str = "MILLRACE_COMPLETE";
/// How long the daemon may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// The script for a shell.
pub fn script(shell: &str) -> String {
    let mut out = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(shell).expect("the parser lets through no other");
    completer
        .write_registration(VARIABLE, "millrace", "millrace", "millrace", &mut out)
        .expect("writing to memory");
    String::from_utf8(out).expect("completions are text")
}

/// Answers the shell, if it is the shell who asks; `line` makes the definition of the command line.
pub fn answer(line: fn() -> Command, words: &[OsString]) -> bool {
    let folder = std::env::current_dir().ok();
    let engine = CompleteEnv::with_factory(line).var(VARIABLE);
    // What goes wrong while somebody types is nobody's news.
    engine.try_complete(words.iter().cloned(), folder.as_deref()).unwrap_or(true)
}

/// Names of pools.
pub fn pools() -> ArgValueCompleter {
    names(|s| s.pools.into_iter().map(|p| p.name).collect())
}
/// Names of volumes.
pub fn volumes() -> ArgValueCompleter {
    names(|s| s.volumes.into_iter().map(|v| v.name).collect())
}
/// Names of hosts.
pub fn hosts() -> ArgValueCompleter {
    names(|s| s.hosts.into_iter().map(|h| h.name).collect())
}
/// Paths of our drives.
pub fn drives() -> ArgValueCompleter {
    names(|s| s.drives.into_iter().map(|d| d.path).collect())
}

/// The two heads of a system.
pub fn heads() -> ArgValueCompleter {
    fixed(|| ["a", "b"].map(String::from).to_vec())
}
/// What is spoken at portals.
pub fn protocols() -> ArgValueCompleter {
    fixed(|| ["nvme", "discovery", "iscsi"].map(String::from).to_vec())
}
/// Addresses of portals.
pub fn portals() -> ArgValueCompleter {
    names(|s| s.portals.into_iter().map(|p| p.address.to_string()).collect())
}
/// This machine's addresses, with the port that is usual for what was typed before.
pub fn addresses() -> ArgValueCompleter {
    fixed(|| {
        let words: Vec<String> = std::env::args().collect();
        let port = match words.iter().rev().find_map(|w| w.parse::<api::Protocol>().ok()) {
            Some(api::Protocol::Nvme) | None => 4420,
            Some(api::Protocol::Discovery) => 8009,
            Some(api::Protocol::Iscsi) => 3260,
        };
        let own = uring::process::addresses();
        own.into_iter().map(|ip| std::net::SocketAddr::new(ip, port).to_string()).collect()
    })
}

fn fixed(of: fn() -> Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| fitting(of(), current))
}

fn fitting(found: Vec<String>, current: &OsStr) -> Vec<CompletionCandidate> {
    let begin = current.to_string_lossy().into_owned();
    let fits = found.into_iter().filter(|name| name.starts_with(&begin));
    fits.map(CompletionCandidate::new).collect()
}

fn names(of: fn(Status) -> Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| fitting(status().map(of).unwrap_or_default(), current))
}

fn status() -> Option<Status> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let named = words.windows(2).find(|w| w[0] == "--socket").map(|w| PathBuf::from(&w[1]));
    let named = named.or_else(|| std::env::var_os("MILLRACE_SOCKET").map(PathBuf::from));
    let socket = named.filter(|s| !s.as_os_str().is_empty()).unwrap_or_else(config::default_socket);
    Client::new(socket).ok()?.with_patience(PATIENCE).get("/status").ok()
}
