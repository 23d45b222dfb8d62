//! `sim --seed N`: one world again, with its log if it fails. `sim --seeds N [--from M]`: many worlds, on all
//! cores, until the first failure.

use sim::run::{Kind, Options, Outcome, ROWS, hashes, kind, run};
use sim::world::Table;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

const HELP: &str = "\
usage: sim --seed N [--story | --trace]  one world; the same seed gives the same run
       sim --seeds N [--from M] [--all]  worlds M..M+N on all cores, to the first failure (or all of them)
                     [--tally]           counts faults that made a difference, and fails if one never did
       sim --hashes                      the hashes of some worlds of each kind

  --story   the last events before a failure
  --trace   every event, as it happens, on standard error
  --heads N         2: worlds of two heads over the same drives
  --access  the same, whose operator changes hosts and exports while hosts log in; also without --heads 2
  --one-path        the same, with hosts that send all commands by one path each
  --paths   the same, of which one loses its path to a drive or to all legs of a mirror, and nothing else happens
  --outages the same, of which one loses its path to a drive with a volatile cache, and the power of everything goes meanwhile
  --turns   the same, whose lanes go round again and again under load, while connections between them break
  --full    the same, with so many long commands that each head waits for memory of the other one, and nothing else happens
  --waits   of two heads, in which one thing goes wrong and hosts wait no longer than they may
  --cuts    of two heads, whose system is made, or ends, and is cut off somewhere
  --mixed   any fault may happen, each kind at a rate of its own: of two heads, and one in four of one
  --row N   of two heads, with what row N of crates/sim/src/run/options/rows.rs says (docs/two-heads.md measures these)
  --plant BUG       with --seed: one of the planted bugs, by its name (a build with the feature `planted`)
  --shard-bytes N   memory of each shard
  --pairs   worlds of one mirror of which both legs fall ill, side by side
  --seesaw  the same, where shards lose different legs at the same moment
  --frozen  a leg is lost while the state directory becomes read-only, and is found alone by the next head
  --directory  a head alone, whose state directory refuses writes, and whose files are damaged between its lives
  --power   the power goes again and again; drives have volatile caches
  --wiped   something else overwrites the label of a drive in use, or more
  --older   the head is stopped in order, and a drive exchanged for an older copy of itself
  --failed  an order fails a drive, and the head falls
  --volumes the hosts' volume lies where somebody had data before
  --tight   the least memory that works, or a little more, and long commands
  --scarce  the same, with many hosts and the longest commands beside short ones; a leg hangs for long
  --dealt   lanes go from shard to shard
  --slow-peers  hosts that ask for much and then give or take nothing, beside one that works
  --usual   of one head, in which anything may go wrong, as in most of those that are made without a kind
  --calm    worlds of one size in which nothing goes wrong: what speed is measured by

Many seeds end with a row for the tables of docs/seeds.md.";

/// `println!` to whoever reads: who reads no more, as `head` does, ends the program, as a signal would.
macro_rules! say {
    ($($words:tt)*) => {
        if writeln!(std::io::stdout(), $($words)*).is_err() {
            std::process::exit(NOBODY_READS);
        }
    };
}

/// What a shell makes of a program that SIGPIPE ended.
const NOBODY_READS: i32 = 141;

struct Words {
    seed: Option<u64>,
    seeds: Option<u64>,
    from: u64,
    story: bool,
    trace: bool,
    all: bool,
    hashes: bool,
    /// Faults are counted.
    tally: bool,
    shard_bytes: Option<u64>,
    tight: bool,
    kind: Kind,
    /// Worlds of a head alone and its state directory, which have a driver of their own.
    directory: bool,
    /// A bug to be planted, by its name.
    plant: Option<String>,
}

impl Words {
    fn options(&self, seed: u64) -> Options {
        let mut options = match self.kind {
            // Those of older copies have hosts of their own, which need little memory.
            ("swarm", _) if self.tight => Options::usual(seed),
            (_, world) => world(seed),
        };
        options.shard_bytes = self.shard_bytes.unwrap_or(options.shard_bytes);
        if self.tight { options.tight() } else { options }
    }
    /// What asks for such worlds, a word each; none for the usual ones.
    fn flags(&self) -> Vec<&'static str> {
        let kind = match self.kind.0 {
            _ if self.directory => Some("directory"),
            "swarm" => None,
            "heads" => Some("heads 2"),
            "heads-access" => Some("access --heads 2"),
            name => Some(name),
        };
        kind.into_iter().chain(self.tight.then_some("tight")).collect()
    }
}

fn main() -> ExitCode {
    match words() {
        Some(Words { hashes: true, .. }) => {
            hashes::lines().for_each(|line| say!("{line}"));
            ExitCode::SUCCESS
        }
        Some(words @ Words { seed: Some(seed), seeds: None, .. }) => one(seed, &words),
        Some(words @ Words { seed: None, plant: None, .. }) => many(&words),
        _ => {
            eprintln!("{HELP}");
            ExitCode::from(2)
        }
    }
}

fn words() -> Option<Words> {
    let mut words = Words {
        seed: None,
        seeds: None,
        from: 0,
        story: false,
        trace: false,
        all: false,
        hashes: false,
        tally: false,
        shard_bytes: None,
        tight: false,
        kind: kind("swarm")?,
        directory: false,
        plant: None,
    };
    let mut two = false;
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let mut number = || given.next()?.parse::<u64>().ok();
        match word.as_str() {
            "--seed" => words.seed = Some(number()?),
            "--seeds" => words.seeds = Some(number()?),
            "--heads" => two = number().filter(|n| (1..=2).contains(n))? == 2,
            "--shard-bytes" => words.shard_bytes = Some(number()?),
            "--from" => words.from = number()?,
            "--plant" => words.plant = Some(given.next()?),
            "--row" => {
                let n = number()?.try_into().ok().filter(|n: &usize| *n < ROWS.len())?;
                words.kind = (ROWS[n].0, ROWS[n].1);
            }
            "--story" => words.story = true,
            "--trace" => words.trace = true,
            "--all" => words.all = true,
            "--hashes" => words.hashes = true,
            "--tally" => words.tally = true,
            "--tight" => words.tight = true,
            "--directory" => words.directory = true,
            name => words.kind = kind(name.strip_prefix("--")?)?,
        }
    }
    // Worlds of anything and of access are of one head or of two.
    match words.kind.0 {
        "swarm" if two => words.kind = kind("heads")?,
        "access" if two => words.kind = kind("heads-access")?,
        _ => {}
    }
    Some(words)
}

/// Makes this mistake in the worlds of this thread, which is that of `--seed`. False: this build knows no such bug.
#[cfg(feature = "planted")]
fn plant(name: &str) -> bool {
    let bug = base::planted::BUGS.iter().find(|b| b.name == name);
    base::planted::plant(bug.map(|b| base::planted::Mistake::Bug(b.bug)));
    bug.is_some()
}
#[cfg(not(feature = "planted"))]
fn plant(_: &str) -> bool {
    false
}

fn one(seed: u64, words: &Words) -> ExitCode {
    if !words.plant.as_deref().is_none_or(plant) {
        eprintln!("this build knows no planted bug of that name");
        return ExitCode::from(2);
    }
    if !words.directory {
        say!("{:#?}", words.options(seed));
    }
    match words.attempt(seed, words.story, words.trace) {
        Ok(outcome) => {
            say!("{outcome:#?}");
            match words.attempt(seed, false, false) {
                Ok(again) if again.hash == outcome.hash => ExitCode::SUCCESS,
                _ => {
                    say!("seed {seed}: the second run was another one");
                    ExitCode::FAILURE
                }
            }
        }
        Err(what) => {
            say!("{what}");
            ExitCode::FAILURE
        }
    }
}

impl Words {
    /// Runs one seed; a failure is printed with how to see it again.
    fn attempt(&self, seed: u64, log: bool, trace: bool) -> Result<Outcome, String> {
        if self.directory {
            let result = std::panic::catch_unwind(|| sim::directory::run(seed));
            let result = result.unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                Err(text.unwrap_or_else(|| "a panic".into()))
            });
            return result
                .map(|hash| Outcome { hash, ..Outcome::default() })
                .map_err(|what| format!("seed {seed}: {what}"));
        }
        let options = Options { log, trace, ..self.options(seed) };
        if options.shard_bytes < options.shard_bytes_min() {
            let (is, least) = (options.shard_bytes, options.shard_bytes_min());
            return Err(format!("--shard-bytes {is}: seed {seed} needs at least {least}"));
        }
        let result = std::panic::catch_unwind(|| run(options));
        let (what, story) = match result {
            Ok(Ok(outcome)) => return Ok(outcome),
            Ok(Err(failure)) => (failure.what, failure.story),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                (text.or(panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default(), vec![])
            }
        };
        Err(format!("{}\nseed {seed}: {what}", story.join("\n")))
    }
}

/// The end of a story, in lines of a terminal's width or two.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let cut = |line: &&str| line.chars().take(200).collect::<String>();
    lines[lines.len().saturating_sub(60)..].iter().map(cut).collect::<Vec<_>>().join("\n")
}

/// What was run.
fn commit() -> String {
    let git = std::process::Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let name =
        git.ok().filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    name.unwrap_or("unknown".into())
}

fn many(words: &Words) -> ExitCode {
    let (from, count) = (words.from, words.seeds.unwrap_or(200));
    // A panic is printed with its seed and its place, once.
    std::panic::set_hook(Box::new(|info| {
        PLACE.set(info.location().map(|l| format!("{}:{}", l.file(), l.line())).unwrap_or_default());
    }));
    let (next, stop, done) = (AtomicU64::new(from), AtomicBool::new(false), AtomicU64::new(0));
    // As it was when the run began: who runs seeds may go on working.
    let commit = commit();
    let failures = Mutex::new(vec![]);
    let table = Mutex::new(Table::default());
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let failed: u64 = std::thread::scope(|scope| {
        let work = || {
            let mut failed = 0;
            while !stop.load(Ordering::Relaxed) {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= from + count {
                    break;
                }
                let attempt = words.attempt(seed, false, false);
                if let Ok(outcome) = &attempt {
                    table.lock().expect("nobody panics with it").add(&outcome.tally);
                }
                if attempt.is_err() {
                    // Once more, with its story: keeping one costs more than the run itself.
                    let what = words.attempt(seed, true, false).err().unwrap_or_else(|| {
                        format!("seed {seed}: it failed once, and not when it was run again")
                    });
                    say!("{} {}", last_lines(what.trim_start()), PLACE.take());
                    let flags: String = words.flags().iter().map(|f| format!(" --{f}")).collect();
                    match words.flags()[..] {
                        [] => say!("at commit {commit}; see it again: make sim SEED={seed} STORY=1"),
                        ["heads 2"] => {
                            say!("at commit {commit}; see it again: make sim HEADS=2 SEED={seed} STORY=1");
                        }
                        _ => say!("at commit {commit}; see it again: sim --seed {seed}{flags} --story"),
                    }
                    failures.lock().expect("nobody panics with it").push(seed);
                    stop.store(!words.all, Ordering::Relaxed);
                    failed += 1;
                }
                let n = done.fetch_add(1, Ordering::Relaxed) + 1;
                if n.is_multiple_of(500) {
                    let seconds = began.elapsed().as_secs_f64();
                    let rate = n as f64 / seconds;
                    let left = (count - n) as f64 / rate;
                    say!("{n} of {count} seeds, {:.0} a minute, {left:.0} s left", rate * 60.0);
                }
            }
            failed
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles.into_iter().map(|h| h.join().expect("workers catch their panics")).sum()
    });
    let seconds = began.elapsed().as_secs_f64();
    let done = done.load(Ordering::Relaxed);
    say!("{done} seeds from {from} in {seconds:.1} s, {failed} failed");
    let mut failures = failures.into_inner().expect("nobody panics with it");
    failures.sort_unstable();
    let result = match &failures[..] {
        [] => "none failed".into(),
        seeds => format!("failed: {}", seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    if done > 0 {
        let kind: String = words.flags().iter().map(|f| format!("{f} ")).collect();
        say!("| {kind}{from} to {} | {commit} | {result} |", from + done - 1);
    }
    let table = table.into_inner().expect("nobody panics with it");
    let all_met = !words.tally || tells(&table);
    if failed == 0 && all_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints how often each fault was made and met. False: one never was.
fn tells(table: &Table) -> bool {
    say!("| fault | made | met | worlds in which it was met |");
    say!("| --- | --- | --- | --- |");
    table.rows().for_each(|row| say!("{row}"));
    let never = table.never();
    if !never.is_empty() {
        say!("never made, or never met: {never:?}");
    }
    never.is_empty()
}

thread_local! {
    static PLACE: std::cell::Cell<String> = const { std::cell::Cell::new(String::new()) };
}
