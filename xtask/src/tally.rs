//! Counts what passed and what failed, over suites of different kinds.

use crate::run::step;
use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::sync::{Condvar, Mutex, mpsc};
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
    pub fn cargo_test(
        &mut self,
        what: &str,
        suite: impl Fn(&[String]) -> Command + Send + Sync + 'static,
        limit: Duration,
    ) {
        let mut job = Job::tests(what, limit, move |only, _| suite(only));
        job.prefix = String::new();
        self.side_by_side(vec![vec![job]]);
    }

    /// Runs jobs, those of a lane one after the other, the lanes side by side; shows what they print, each line behind
    /// its job's name, and counts. As long as jobs with guests are left, all others have one thread.
    ///
    /// Tests that failed run once more at the end, alone: what real kernels and clocks do on a machine that has
    /// other work is not always the same, and one that then passes is reported at the end as unsteady,
    /// so that somebody looks at it. What is decided by a seed fails again.
    pub fn side_by_side(&mut self, lanes: Vec<Vec<Job>>) {
        let guests = lanes.iter().flatten().filter(|job| job.guests).count();
        let ends = Ends { guests: Mutex::new(guests), ..Ends::default() };
        let names: Vec<&str> = lanes.iter().flatten().map(|job| job.what.as_str()).collect();
        let run = |lane: &[Job]| lane.iter().map(|job| ends.run(job, &names)).collect::<Vec<Counts>>();
        let counts: Vec<Vec<Counts>> = std::thread::scope(|scope| {
            let lanes: Vec<_> = lanes.iter().map(|lane| scope.spawn(|| run(lane))).collect();
            lanes.into_iter().map(|lane| lane.join().expect("a lane does not panic")).collect()
        });
        for (job, first) in lanes.iter().flatten().zip(counts.into_iter().flatten()) {
            self.settle(job, first);
        }
    }

    /// Counts what a job said; tests that failed run again.
    fn settle(&mut self, job: &Job, mut first: Counts) {
        let names = std::mem::take(&mut first.names);
        if names.is_empty() || first.failed != names.len() as u64 {
            first.names = names;
            return self.take(job, first);
        }
        println!("\nonce more, alone: {}", names.join(", "));
        let second = job.run(&names, 1);
        let unsteady = names.iter().filter(|name| !second.names.contains(name));
        self.unsteady.extend(unsteady.map(|name| job.named(name)));
        self.passed += first.passed;
        self.skipped.append(&mut first.skipped);
        self.take(job, second);
    }

    fn take(&mut self, job: &Job, counts: Counts) {
        self.passed += counts.passed;
        self.failed += counts.failed;
        self.failures.extend(counts.names.iter().map(|name| job.named(name)));
        self.failures.extend(counts.whole);
        self.skipped.extend(counts.skipped);
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

/// Makes the command that runs a suite, or the named tests of it alone, with so many threads.
type Maker = Box<dyn Fn(&[String], usize) -> Command + Send + Sync>;

/// Threads of a job beside which no guests run.
const THREADS: usize = 2;

/// A program that runs beside others.
pub struct Job {
    /// What a log calls it.
    what: String,
    /// What stands before each of its lines.
    prefix: String,
    /// Its lines name tests; else it is one test as a whole.
    tests: bool,
    limit: Duration,
    /// What must have ended well before it begins.
    needs: Option<&'static str>,
    /// It starts guests.
    guests: bool,
    /// It fills all processors, however few threads it may have.
    fills: bool,
    /// Makes the command, for all tests or for those named.
    make: Maker,
}

impl Job {
    /// Tests: `make` makes the command for all of them, or for those named, with so many threads.
    pub fn tests(
        what: &str,
        limit: Duration,
        make: impl Fn(&[String], usize) -> Command + Send + Sync + 'static,
    ) -> Self {
        Self {
            what: what.into(),
            prefix: format!("{what:>16} | "),
            tests: true,
            limit,
            needs: None,
            guests: false,
            fills: false,
            make: Box::new(make),
        }
    }

    /// Something that is one test as a whole.
    pub fn one(what: &str, limit: Duration, make: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self::sized(what, limit, move |_| make())
    }

    /// The same of a program that is told how many threads it may have.
    pub fn sized(
        what: &str,
        limit: Duration,
        make: impl Fn(usize) -> Command + Send + Sync + 'static,
    ) -> Self {
        Self { tests: false, ..Self::tests(what, limit, move |_, threads| make(threads)) }
    }

    /// The same, begun when that job has ended well, which stands earlier in the lane or in another one.
    pub fn after(self, needs: &'static str) -> Self {
        Self { needs: Some(needs), ..self }
    }

    /// The same, whose tests start guests: one at a time, and others fill one processor meanwhile.
    pub fn with_guests(self) -> Self {
        Self { guests: true, ..self }
    }

    /// The same, which fills all processors: it begins when no guests are left. They must not stand behind it in its
    /// own lane.
    pub fn fills_all(self) -> Self {
        Self { fills: true, ..self }
    }

    /// A test of it.
    fn named(&self, test: &str) -> String {
        format!("{}: {test}", self.what)
    }

    /// Runs it with so many threads, and counts.
    fn run(&self, only: &[String], threads: usize) -> Counts {
        let mut counts = Counts::default();
        let what = &self.what;
        let deadline = Instant::now() + self.limit;
        let mut command = (self.make)(only, threads);
        // One pipe for both, so that a complaint stands where it was made.
        let (reader, writer) = match std::io::pipe() {
            Ok(pipe) => pipe,
            Err(e) => return counts.and(format!("{what}: no pipe: {e}")),
        };
        let spawned = writer.try_clone().and_then(|other| command.stdout(other).stderr(writer).spawn());
        let mut child = match spawned {
            Ok(child) => child,
            Err(e) => return counts.and(format!("{what}: it cannot run: {e}")),
        };
        // It holds our ends of the pipe.
        drop(command);
        let (lines, incoming) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        loop {
            match incoming.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    println!("{}{line}", self.prefix);
                    std::io::stdout().flush().ok();
                    if let Some(at) = line.find("SKIPPED ") {
                        counts.skipped.push(line[at..].into());
                    }
                    if self.tests {
                        counts.line(&line);
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    kill_tree(child.id());
                    child.wait().ok();
                    return counts.and(format!("{what}: not at an end after {} s", self.limit.as_secs()));
                }
            }
        }
        match child.wait() {
            Ok(status) if status.success() => {
                counts.passed += u64::from(!self.tests);
                counts
            }
            Ok(_) if counts.failed > 0 => counts,
            Ok(status) => counts.and(format!("{what}: it ended with {status}")),
            Err(e) => counts.and(format!("{what}: {e}")),
        }
    }
}

/// Which jobs have ended, and whether well.
#[derive(Default)]
struct Ends {
    ended: Mutex<Vec<(String, bool)>>,
    changed: Condvar,
    /// Jobs with guests that have not ended.
    guests: Mutex<usize>,
    no_guests: Condvar,
}

impl Ends {
    /// Runs a job when what it needs has ended.
    fn run(&self, job: &Job, all: &[&str]) -> Counts {
        let ready = job.needs.filter(|needs| all.contains(needs)).is_none_or(|needs| self.wait(needs));
        if job.fills {
            self.wait_for_guests();
        }
        let counts = if ready {
            step(&job.what);
            let threads = if self.are_guests_left() { 1 } else { THREADS };
            let counts = job.run(&[], threads);
            step(&format!("{}: at an end", job.what));
            counts
        } else {
            Counts::default().and(format!("{}: not run, as what it needs failed", job.what))
        };
        self.ended.lock().expect("no panic").push((job.what.clone(), counts.failed == 0));
        self.changed.notify_all();
        if job.guests {
            *self.guests.lock().expect("no panic") -= 1;
            self.no_guests.notify_all();
        }
        counts
    }
    fn are_guests_left(&self) -> bool {
        *self.guests.lock().expect("no panic") > 0
    }
    fn wait_for_guests(&self) {
        let mut left = self.guests.lock().expect("no panic");
        while *left > 0 {
            left = self.no_guests.wait(left).expect("no panic");
        }
    }
    fn wait(&self, needs: &str) -> bool {
        let mut ended = self.ended.lock().expect("no panic");
        loop {
            match ended.iter().find(|(what, _)| what == needs) {
                Some((_, well)) => return *well,
                None => ended = self.changed.wait(ended).expect("no panic"),
            }
        }
    }
}

/// What one job said.
#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    /// The tests that failed.
    names: Vec<String>,
    /// Why the suite as a whole failed.
    whole: Option<String>,
    /// What tests said of themselves that could not run.
    skipped: Vec<String>,
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
    use super::{Job, Tally};
    use std::process::Command;
    use std::time::Duration;

    fn counted(script: &str, limit: Duration) -> (u64, u64) {
        let tally = tally_of(script, limit);
        (tally.passed, tally.failed)
    }

    /// A suite that is this script; `$1` and on are the tests that it shall run again.
    fn tally_of(script: &str, limit: Duration) -> Tally {
        let mut tally = Tally::default();
        tally.side_by_side(vec![vec![shell("a suite", script, limit)]]);
        tally
    }

    fn shell(what: &str, script: &str, limit: Duration) -> Job {
        let script = script.to_owned();
        Job::tests(what, limit, move |only, threads| {
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh"]).args(only).env("THREADS", threads.to_string());
            command
        })
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
        let tally = tally_of(script, Duration::from_secs(10));
        assert_eq!((tally.passed, tally.failed), (8, 1));
        assert_eq!(
            (tally.failures, tally.unsteady),
            (vec!["a suite: a".to_string()], vec!["a suite: b".to_string()])
        );
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

    #[test]
    fn a_job_waits_for_what_it_needs_and_does_not_run_without() {
        let file = std::env::temp_dir().join(format!("xtask-tally-{}", std::process::id()));
        let path = file.display();
        let limit = Duration::from_secs(10);
        let ok = "echo 'test result: ok. 1 passed; 0 failed;'";
        let make = shell("make", &format!("sleep 0.3; echo made > {path}; {ok}"), limit);
        let broken = shell("broken", "exit 1", limit);
        let user = shell("user", &format!("rm {path} && {ok}"), limit).after("make");
        let other = shell("other", ok, limit).after("broken");
        let mut tally = Tally::default();
        tally.side_by_side(vec![vec![user, other], vec![make, broken]]);
        assert_eq!((tally.passed, tally.failed), (2, 2), "{:?}", tally.failures);
        assert!(tally.failures.iter().any(|f| f == "other: not run, as what it needs failed"));
    }

    #[test]
    fn beside_guests_others_have_one_thread_and_what_fills_all_processors_waits() {
        let file = std::env::temp_dir().join(format!("xtask-guests-{}", std::process::id()));
        let (path, limit) = (file.display(), Duration::from_secs(10));
        let ok = "echo 'test result: ok. 1 passed; 0 failed;'";
        let waits = format!("until [ -e {path} ]; do sleep 0.1; done; rm {path}");
        let guests = shell("guests", &format!("{waits}; [ $THREADS = 1 ] && {ok}"), limit).with_guests();
        let after = shell("after", &format!("[ $THREADS = 2 ] && {ok}"), limit);
        let beside = shell("beside", &format!("[ $THREADS = 1 ] && touch {path} && {ok}"), limit);
        let fills =
            shell("fills", &format!("[ $THREADS = 2 ] && [ ! -e {path} ] && {ok}"), limit).fills_all();
        let mut tally = Tally::default();
        tally.side_by_side(vec![vec![guests, after], vec![beside, fills]]);
        assert_eq!((tally.passed, tally.failed), (4, 0), "{:?}", tally.failures);
    }

    #[test]
    fn what_is_no_suite_counts_as_one_test() {
        let one = |script: &'static str| {
            Job::one("a program", Duration::from_secs(10), move || {
                let mut command = Command::new("sh");
                command.args(["-c", script]);
                command
            })
        };
        let mut tally = Tally::default();
        let failing = one("echo 'test result: ok. 9 passed; 0 failed;' >&2; exit 3");
        tally.side_by_side(vec![vec![one("true"), failing]]);
        assert_eq!((tally.passed, tally.failed), (1, 1));
        assert_eq!(tally.failures, ["a program: it ended with exit status: 3"]);
    }
}
