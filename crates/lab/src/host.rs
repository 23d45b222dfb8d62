//! Changes that the lab makes to the machine that it runs on.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where images, packages and the state of guests are kept; not made yet.
pub fn folder() -> PathBuf {
    match std::env::var_os("MILLRACE_LAB_DIR") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => PathBuf::from(std::env::var_os("HOME").unwrap_or("/var/tmp".into())).join(".cache/millrace-lab"),
    }
}

/// Whether we are root; else the lab uses a user namespace wherever root's rights are needed.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// A command with root's rights over files of ours and over namespaces of ours.
pub(crate) fn as_root(program: impl AsRef<OsStr>) -> Command {
    if is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.arg("--map-root-user").arg("--").arg(program);
    command
}

/// Runs a command to its end; returns what it printed on both streams. Fails with its last lines.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let said = format!("{command:?}");
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {said}"))?;
    let mut text = String::from_utf8_lossy(&done.stdout).into_owned();
    if !done.status.success() {
        text += &String::from_utf8_lossy(&done.stderr);
        let lines: Vec<&str> = text.lines().collect();
        let said: String = said.chars().take(300).collect();
        bail!("{said} failed ({}):\n{}", done.status, lines[lines.len().saturating_sub(8)..].join("\n"));
    }
    Ok(text)
}

/// Runs a shell command on this machine; returns its standard output.
pub fn sh(script: &str) -> Result<String> {
    output(Command::new("bash").args(["-c", script]))
}

/// The path of a program, or None.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':').map(|dir| PathBuf::from(dir).join(program)).find(|file| file.is_file())
}

/// Why this machine cannot run the lab at all (a sentence), or None if it can. A missing package is a
/// reason, since `make test` installs them.
pub fn cannot() -> Option<String> {
    let tools =
        ["qemu-system-x86_64", "mke2fs", "xz", "ip", "setpriv", "nsenter", "unshare", "apt-get", "gcc"];
    let missing: Vec<&str> = tools.into_iter().filter(|tool| which(tool).is_none()).collect();
    if !missing.is_empty() {
        return Some(format!("programs are missing: {} (try `cargo xtask deps test`)", missing.join(" ")));
    }
    if !cfg!(target_arch = "x86_64") {
        return Some("guests are x86_64 and so must be the machine".into());
    }
    crate::Net::new().err().map(|e| format!("no network namespace can be made: {e:#}"))
}

/// Whether a test must be left out because this machine cannot run the lab: says so on a line that no
/// test runner swallows and that `make test` repeats at its end. Where `CI` is set it is a failure.
pub fn skipped(test: &str) -> bool {
    let Some(why) = cannot() else { return false };
    assert!(std::env::var_os("CI").is_none(), "{test} must run in CI, but {why}");
    use std::io::Write;
    writeln!(std::io::stdout(), "SKIPPED {test}: {why}").ok();
    true
}
