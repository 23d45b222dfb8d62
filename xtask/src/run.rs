//! Running programs.

use std::path::PathBuf;
use std::process::Command;

/// cargo with our arguments, at the root of the repository.
pub fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => root().join("target"),
    }
}

/// Says what comes now, and when: a log shows where the time went.
pub fn step(what: &str) {
    use std::sync::OnceLock;
    use std::time::Instant;
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let seconds = BEGAN.get_or_init(Instant::now).elapsed().as_secs();
    println!("\n== {}:{:02}  {what}", seconds / 60, seconds % 60);
}

/// Runs a program to its end with our streams.
pub fn run(mut command: Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?} cannot run: {e}"))?;
    if status.success() {
        return Ok(());
    }
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
    Err(format!("`{}` ended with {status}", words.join(" ")))
}
