//! Which mutants compile.

use crate::copy::Copy;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// So often at most the copy is compiled: errors hide others behind them.
const ROUNDS_MAX: u32 = 40;

/// Compiles the copy again and again, each time without the places that had errors, until there are none.
///
/// # Errors
/// A sentence: errors that are at no place.
pub fn check(copy: &mut Copy, tree: &Path, build: &Path, jobs: Option<&str>) -> Result<(), String> {
    for round in 1..=ROUNDS_MAX {
        copy.write()?;
        let errors = errors(tree, build, jobs)?;
        let before = copy.broken().count();
        let mut strange = vec![];
        for error in &errors {
            if !copy.blame(&error.spans) {
                strange.push(error.rendered.clone());
            }
        }
        let left_out = copy.broken().count() - before;
        println!("round {round}: {} errors, {left_out} more mutants do not compile", errors.len());
        if errors.is_empty() {
            return Ok(());
        }
        if left_out == 0 {
            return Err(format!("errors of the copy that no mutant makes:\n{}", strange.join("\n")));
        }
    }
    Err(format!("the copy does not compile after {ROUNDS_MAX} rounds"))
}

/// An error, and where it is, the place that matters most first.
struct CompileError {
    rendered: String,
    spans: Vec<(String, core::ops::Range<usize>)>,
}

fn errors(tree: &Path, build: &Path, jobs: Option<&str>) -> Result<Vec<CompileError>, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["check", "--locked", "--quiet", "--keep-going", "--message-format=json"]);
    cargo.args(["--package", "sim", "--features", "planted", "--bin", "mutants"]);
    if let Some(jobs) = jobs {
        cargo.args(["--jobs", jobs]);
    }
    cargo.arg("--target-dir").arg(build);
    cargo.current_dir(tree).env("RUSTFLAGS", "--cap-lints=allow").stderr(Stdio::inherit());
    let output = cargo.output().map_err(|e| format!("cargo cannot run: {e}"))?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors: Vec<CompileError> = lines.lines().filter_map(error).collect();
    if errors.is_empty() && !output.status.success() {
        return Err(format!("cargo ended with {} and named no error", output.status));
    }
    Ok(errors)
}

/// The error that a line of cargo's says, if any.
fn error(line: &str) -> Option<CompileError> {
    let line: Value = serde_json::from_str(line).ok()?;
    let message = line.get("message").filter(|_| line["reason"] == "compiler-message")?;
    let spans = message["spans"].as_array().filter(|spans| !spans.is_empty())?;
    if message["level"] != "error" {
        return None;
    }
    let place = |span: &Value| {
        let at = |name: &str| usize::try_from(span[name].as_u64()?).ok();
        Some((span["file_name"].as_str()?.to_owned(), at("byte_start")?..at("byte_end")?))
    };
    let (first, rest): (Vec<&Value>, Vec<&Value>) = spans.iter().partition(|s| s["is_primary"] == true);
    let spans = first.into_iter().chain(rest).filter_map(place).collect();
    Some(CompileError { rendered: message["rendered"].as_str().unwrap_or_default().to_owned(), spans })
}

#[cfg(test)]
mod tests {
    use super::error;

    #[test]
    fn an_error_is_at_its_primary_span_first() {
        let span = |primary: bool, at: u32| {
            format!(r#"{{"file_name":"a.rs","byte_start":{at},"byte_end":9,"is_primary":{primary}}}"#)
        };
        let line = |level: &str| {
            let spans = [span(false, 1), span(true, 2)].join(",");
            format!(
                r#"{{"reason":"compiler-message","message":{{"level":"{level}","spans":[{spans}],"rendered":"no"}}}}"#
            )
        };
        let found = error(&line("error")).expect("an error");
        assert_eq!(found.spans, [("a.rs".to_owned(), 2..9), ("a.rs".to_owned(), 1..9)]);
        assert!(error(&line("warning")).is_none());
        assert!(error(r#"{"reason":"build-finished","success":false}"#).is_none());
    }
}
