//! What goes to stdout.

use crate::failure::Failure;
use serde::Serialize;
use std::io::Write;

/// JSON for people and programs.
pub fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data without maps of odd keys") + "\n"
}

/// Prints to stdout. A reader that has seen enough (`| head`) is no failure.
pub fn put(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.map_err(|e| Failure::internal(format!("cannot write to stdout: {e}"))),
    }
}
