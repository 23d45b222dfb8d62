//! Mutants made by rule: docs/rfcs/0018-mutants.md.

use crate::patient;
use crate::run::{cargo, root, run, step, target};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long those of changed files may take in all.
const CHANGED_MAX: Duration = Duration::from_secs(30 * 60);

/// All mutants, from where the table of an earlier run ends.
pub fn all() -> Result<(), String> {
    if !make(None)? {
        return Err("no mutant was made".into());
    }
    look_for("table.tsv", None)
}

/// Those of files that differ from a commit, or `1`: from where this branch began. What an earlier run has found does not
/// count: the code is another one.
pub fn changed(since: &str) -> Result<(), String> {
    let began = Instant::now();
    let since = if since == "1" { branched_at()? } else { since.to_owned() };
    if !make(Some(&since))? {
        println!("no file that is mutated differs from {since}");
        return Ok(());
    }
    let table = "changed.tsv";
    match std::fs::remove_file(folder().join(table)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(format!("{table}: {e}")),
        Ok(()) | Err(_) => {}
    }
    let left = CHANGED_MAX.saturating_sub(began.elapsed());
    look_for(table, Some(left.as_secs() / 60))
}

/// Absolute, since cargo works in the copy.
fn folder() -> PathBuf {
    let folder = target().join("mutants");
    std::path::absolute(&folder).unwrap_or(folder)
}

/// Makes the copy and builds its simulator. False: it has no mutants.
fn make(since: Option<&str>) -> Result<bool, String> {
    step("mutants by rule: which compile");
    let mut mutate = cargo(&["run", "--quiet", "--locked", "--package", "mutate", "--"]);
    mutate.arg(root()).arg(folder());
    if let Some(since) = since {
        mutate.args(["--since", since]);
    }
    run(mutate)?;
    let list = folder().join("mutants.tsv");
    let listed = std::fs::metadata(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    if listed.len() == 0 {
        return Ok(false);
    }
    step("the simulator with them");
    let mut build = cargo(&["build", "--profile", "planted", "--locked", "--quiet", "--package", "sim"]);
    build.args(["--features", "planted", "--bin", "mutants", "--target-dir"]).arg(folder().join("build"));
    build.current_dir(folder().join("tree")).env("RUSTFLAGS", "--cap-lints=allow");
    run(build).map(|()| true)
}

fn look_for(table: &str, minutes: Option<u64>) -> Result<(), String> {
    step("mutants by rule, each in worlds of its own");
    let mut command = Command::new(folder().join("build/planted/mutants"));
    command.arg("--rules").arg(folder().join("mutants.tsv")).arg(folder().join(table));
    if let Some(minutes) = minutes {
        command.args(["--minutes", &minutes.to_string()]);
    }
    run(patient(&command))
}

/// Where this branch began.
fn branched_at() -> Result<String, String> {
    for main in ["origin/main", "main"] {
        let git = Command::new("git").args(["merge-base", "HEAD", main]).current_dir(root()).output();
        let git = git.map_err(|e| format!("git cannot run: {e}"))?;
        if git.status.success() {
            return Ok(String::from_utf8_lossy(&git.stdout).trim().to_owned());
        }
    }
    Err("there is no branch main; say CHANGED=commit".into())
}
