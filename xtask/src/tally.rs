//! Counts what passed and what failed, over suites of different kinds.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The sum.
#[derive(Default)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests, lints and builds that failed.
    pub failed: u64,
    failures: Vec<String>,
    skipped: Vec<String>,
}

impl Tally {
    /// Counts something that is one test as a whole.
    pub fn one(&mut self, what: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => self.fail(&format!("{what}: {why}")),
        }
    }

    /// Counts a failure.
    pub fn fail(&mut self, what: &str) {
        self.failed += 1;
        self.failures.push(what.into());
    }

    /// Runs `cargo test`, shows what it prints and counts its tests. A suite that does not compile,
    /// is killed or takes too long is a failure of its own.
    pub fn cargo_test(&mut self, what: &str, mut command: Command, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut child = match command.stdout(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(e) => return self.fail(&format!("{what}: cargo cannot run: {e}")),
        };
        let (lines, incoming) = mpsc::channel();
        let Some(stdout) = child.stdout.take() else { return self.fail(&format!("{what}: no output")) };
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        let before = self.failed;
        loop {
            match incoming.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    println!("{line}");
                    std::io::stdout().flush().ok();
                    self.line(&line);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    kill_tree(child.id());
                    child.wait().ok();
                    return self.fail(&format!("{what}: not at an end after {} s", limit.as_secs()));
                }
            }
        }
        match child.wait() {
            Ok(status) if status.success() || self.failed > before => {}
            Ok(status) => self.fail(&format!("{what}: cargo ended with {status}")),
            Err(e) => self.fail(&format!("{what}: {e}")),
        }
    }

    /// Takes what a line of a test's output says.
    fn line(&mut self, line: &str) {
        if let Some(at) = line.find("SKIPPED ") {
            self.skipped.push(line[at..].into());
        }
        if let Some(counts) = line.strip_prefix("test result: ") {
            let count = |word: &str| -> u64 {
                let end = counts.find(word).unwrap_or(0);
                counts[..end].split_whitespace().last().and_then(|n| n.parse().ok()).unwrap_or(0)
            };
            self.passed += count(" passed;");
            self.failed += count(" failed;");
        } else if line.starts_with("test ") && line.ends_with("FAILED") {
            self.failures.push(line.trim_start_matches("test ").into());
        }
    }

    /// Prints failures and skips, and last of all the sum.
    pub fn print(&self) {
        println!();
        for what in &self.skipped {
            println!("{what}");
        }
        for what in &self.failures {
            println!("FAILED {what}");
        }
        println!("{} passed, {} failed", self.passed, self.failed);
    }
}

/// Ends a process with all that came of it: killing cargo alone would leave its test running.
fn kill_tree(id: u32) {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let children: String =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok()).collect();
    Command::new("kill").args(["-9", &id.to_string()]).status().ok();
    for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
        kill_tree(child);
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use std::process::Command;
    use std::time::Duration;

    fn counted(script: &str, limit: Duration) -> (u64, u64) {
        let mut tally = Tally::default();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        tally.cargo_test("a suite", command, limit);
        (tally.passed, tally.failed)
    }

    #[test]
    fn suites_are_summed() {
        let script = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'; echo 'test a ... FAILED'
            echo 'test result: FAILED. 4 passed; 1 failed; 0 ignored'; exit 101";
        assert_eq!(counted(script, Duration::from_secs(10)), (7, 1));
    }

    #[test]
    fn a_suite_that_does_not_compile_is_a_failure() {
        assert_eq!(counted("exit 101", Duration::from_secs(10)), (0, 1));
    }

    #[test]
    fn a_suite_that_hangs_is_killed_and_a_failure() {
        let script = "echo 'test result: ok. 3 passed; 0 failed;'; sleep 600 & wait";
        assert_eq!(counted(script, Duration::from_millis(300)), (3, 1));
    }
}
