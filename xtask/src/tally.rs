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
    unsteady: Vec<String>,
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
    /// is killed or takes too long is a failure of its own. `suite` makes the command, for all tests
    /// or for those named.
    ///
    /// Tests that failed run once more, alone: what real kernels and clocks do on a machine that has
    /// other work is not always the same, and one that then passes is told at the end as unsteady,
    /// so that somebody looks at it. What is decided by a seed fails again.
    pub fn cargo_test(&mut self, what: &str, suite: impl Fn(&[String]) -> Command, limit: Duration) {
        let first = self.suite(what, suite(&[]), limit);
        let names: Vec<String> = first.names.iter().map(|name| name.to_string()).collect();
        if names.is_empty() || first.failed != names.len() as u64 {
            return self.take(first);
        }
        println!("\nonce more, alone: {}", names.join(", "));
        let second = self.suite(what, suite(&names), limit);
        let unsteady = names.iter().filter(|name| !second.names.contains(name));
        self.unsteady.extend(unsteady.cloned());
        self.passed += first.passed;
        self.take(second);
    }

    fn take(&mut self, counts: Counts) {
        self.passed += counts.passed;
        self.failed += counts.failed;
        self.failures.extend(counts.names);
        self.failures.extend(counts.whole);
    }

    /// Runs one `cargo test` and counts.
    fn suite(&mut self, what: &str, mut command: Command, limit: Duration) -> Counts {
        let deadline = Instant::now() + limit;
        let mut counts = Counts::default();
        let mut child = match command.stdout(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(e) => return counts.and(format!("{what}: cargo cannot run: {e}")),
        };
        let (lines, incoming) = mpsc::channel();
        let Some(stdout) = child.stdout.take() else { return counts.and(format!("{what}: no output")) };
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        loop {
            match incoming.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    println!("{line}");
                    std::io::stdout().flush().ok();
                    if let Some(at) = line.find("SKIPPED ") {
                        self.skipped.push(line[at..].into());
                    }
                    counts.line(&line);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    kill_tree(child.id());
                    child.wait().ok();
                    return counts.and(format!("{what}: not at an end after {} s", limit.as_secs()));
                }
            }
        }
        match child.wait() {
            Ok(status) if status.success() || counts.failed > 0 => counts,
            Ok(status) => counts.and(format!("{what}: cargo ended with {status}")),
            Err(e) => counts.and(format!("{what}: {e}")),
        }
    }

    /// Prints failures, skips and tests that passed the second time only, and last of all the sum.
    pub fn print(&self) {
        println!();
        for what in &self.skipped {
            println!("{what}");
        }
        for what in &self.unsteady {
            println!("UNSTEADY {what}: failed, and passed when it ran again alone");
        }
        for what in &self.failures {
            println!("FAILED {what}");
        }
        println!("{} passed, {} failed", self.passed, self.failed);
    }
}

/// What one `cargo test` said.
#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    /// The tests that failed.
    names: Vec<String>,
    /// Why the suite as a whole failed.
    whole: Option<String>,
}

impl Counts {
    /// The suite as a whole failed.
    fn and(mut self, why: String) -> Self {
        self.failed += 1;
        self.whole = Some(why);
        self
    }

    /// Takes what a line of a test's output says.
    fn line(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            let count = |word: &str| -> u64 {
                let end = counts.find(word).unwrap_or(0);
                counts[..end].split_whitespace().last().and_then(|n| n.parse().ok()).unwrap_or(0)
            };
            self.passed += count(" passed;");
            self.failed += count(" failed;");
        } else if let Some(test) = line.strip_prefix("test ").and_then(|t| t.strip_suffix(" ... FAILED")) {
            self.names.push(test.trim_end_matches(" - should panic").into());
        }
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
        let tally = told(script, limit);
        (tally.passed, tally.failed)
    }

    /// A suite that is this script; `$1` and on are the tests that it shall run again.
    fn told(script: &str, limit: Duration) -> Tally {
        let mut tally = Tally::default();
        let suite = |only: &[String]| {
            let mut command = Command::new("sh");
            command.args(["-c", script, "sh"]).args(only);
            command
        };
        tally.cargo_test("a suite", suite, limit);
        tally
    }

    #[test]
    fn suites_are_summed() {
        let script = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'; echo 'test a ... FAILED'
            echo 'test result: FAILED. 4 passed; 1 failed; 0 ignored'; exit 101";
        assert_eq!(counted(script, Duration::from_secs(10)), (14, 1));
    }

    #[test]
    fn what_fails_twice_has_failed_and_what_passes_alone_is_unsteady() {
        let script = "[ $# = 0 ] && echo 'test result: ok. 3 passed; 0 failed; 0 ignored'
            [ $# = 0 ] && echo 'test a ... FAILED' && echo 'test b - should panic ... FAILED'
            [ $# = 0 ] && echo 'test result: FAILED. 4 passed; 2 failed; 0 ignored' && exit 101
            [ \"$*\" = 'a b' ] && echo 'test a ... FAILED'
            echo 'test result: FAILED. 1 passed; 1 failed; 5 filtered out'; exit 101";
        let tally = told(script, Duration::from_secs(10));
        assert_eq!((tally.passed, tally.failed), (8, 1));
        assert_eq!((tally.failures, tally.unsteady), (vec!["a".to_string()], vec!["b".to_string()]));
    }

    #[test]
    fn a_suite_that_does_not_compile_is_a_failure() {
        assert_eq!(counted("exit 101", Duration::from_secs(10)), (0, 1));
    }

    #[test]
    fn a_binary_that_dies_is_a_failure_and_not_tried_again() {
        let script = "echo 'test a ... FAILED'; echo 'test result: FAILED. 4 passed; 1 failed;'
            echo 'test result: FAILED. 0 passed; 1 failed;'; exit 101";
        assert_eq!(counted(script, Duration::from_secs(10)), (4, 2));
    }

    #[test]
    fn a_suite_that_hangs_is_killed_and_a_failure() {
        let script = "echo 'test result: ok. 3 passed; 0 failed;'; sleep 600 & wait";
        assert_eq!(counted(script, Duration::from_millis(300)), (3, 1));
    }
}
