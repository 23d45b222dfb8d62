//! `sim --seed N`: one world again, with its log if it fails. `sim --seeds N [--from M]`: many worlds, on all
//! cores, until the first failure.

use sim::run::{Options, Outcome, hashes, run};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

const HELP: &str = "\
usage: sim --seed N [--story | --trace]  one world; the same seed gives the same run
       sim --seeds N [--from M] [--all]  worlds M..M+N on all cores, to the first failure (or all of them)
       sim --hashes                      the hashes of the worlds of tests/hashes.txt, as they are now

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
  --row N   the same, of row N of the table of docs/two-heads.md (see crates/sim/src/two/rows.rs)
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
    shard_bytes: Option<u64>,
    tight: bool,
    kind: Kind,
    /// Worlds of two heads over the same drives.
    two: Option<OfTwo>,
    /// A bug to be planted, by its name.
    plant: Option<String>,
}

/// What kind of worlds of two heads.
#[derive(Clone, Copy)]
enum OfTwo {
    Heads,
    /// Hosts send all commands by one path each.
    OnePath,
    /// One head loses its path to a drive, or to all legs of a mirror.
    Paths,
    /// The same, and the power of everything goes meanwhile.
    Outages,
    /// Lanes go round.
    Turns,
    /// Each head waits for memory of the other one.
    Full,
    /// One thing goes wrong, and hosts wait no longer than they may.
    Waits,
    /// One row of what happens when, by its number.
    Row(usize),
    /// An operator changes hosts while they log in.
    Access,
}

impl OfTwo {
    fn word(self) -> &'static str {
        match self {
            OfTwo::Heads => "heads 2",
            OfTwo::OnePath => "heads 2 one-path",
            OfTwo::Paths => "paths",
            OfTwo::Outages => "outages",
            OfTwo::Turns => "turns",
            OfTwo::Full => "full",
            OfTwo::Waits => "waits",
            OfTwo::Row(n) => sim::two::ROWS[n].0,
            OfTwo::Access => "access --heads 2",
        }
    }
    fn options(self, seed: u64) -> sim::two::Options {
        match self {
            OfTwo::Heads => sim::two::Options::swarm(seed),
            OfTwo::OnePath => sim::two::Options::one_path(seed),
            OfTwo::Paths => sim::two::Options::paths(seed),
            OfTwo::Outages => sim::two::Options::outages(seed),
            OfTwo::Turns => sim::two::Options::turns(seed),
            OfTwo::Full => sim::two::Options::full(seed),
            OfTwo::Waits => sim::two::Options::waits(seed),
            OfTwo::Row(n) => sim::two::ROWS[n].1(seed),
            OfTwo::Access => sim::two::Options::access(seed),
        }
    }
}

/// What kind of worlds.
#[derive(Clone, Copy)]
enum Kind {
    Usual,
    Pairs,
    Seesaw,
    Frozen,
    Older,
    Failed,
    Wiped,
    Power,
    Dealt,
    Access,
    Volumes,
    Scarce,
    Calm,
    Directory,
}

impl Words {
    fn options(&self, seed: u64) -> Options {
        let mut options = match self.kind {
            // Those of older copies have hosts of their own, which need little memory.
            Kind::Usual if self.tight => Options::usual(seed),
            Kind::Usual => Options::swarm(seed),
            Kind::Pairs => Options::pairs(seed),
            Kind::Seesaw => Options::seesaw(seed),
            Kind::Frozen => Options::frozen(seed),
            Kind::Older => Options::older(seed),
            Kind::Failed => Options::failed(seed),
            Kind::Wiped => Options::wiped(seed),
            Kind::Power => Options::power(seed),
            Kind::Dealt => Options::dealt(seed),
            Kind::Access => Options::access(seed),
            Kind::Volumes => Options::volumes(seed),
            Kind::Scarce => Options::scarce(seed),
            Kind::Calm | Kind::Directory => Options::calm(seed),
        };
        options.shard_bytes = self.shard_bytes.unwrap_or(options.shard_bytes);
        if self.tight { options.tight() } else { options }
    }
    /// What asks for such worlds, a word each; none for the usual ones.
    fn flags(&self) -> Vec<&'static str> {
        let kind = match self.kind {
            Kind::Usual => None,
            Kind::Pairs => Some("pairs"),
            Kind::Seesaw => Some("seesaw"),
            Kind::Frozen => Some("frozen"),
            Kind::Older => Some("older"),
            Kind::Failed => Some("failed"),
            Kind::Wiped => Some("wiped"),
            Kind::Power => Some("power"),
            Kind::Dealt => Some("dealt"),
            Kind::Access => Some("access"),
            Kind::Volumes => Some("volumes"),
            Kind::Scarce => Some("scarce"),
            Kind::Calm => Some("calm"),
            Kind::Directory => Some("directory"),
        };
        kind.into_iter().chain(self.tight.then_some("tight")).chain(self.two.map(OfTwo::word)).collect()
    }
}

fn main() -> ExitCode {
    match words() {
        Some(Words { hashes: true, .. }) => {
            hashes::HASHES.lines().for_each(|line| say!("{}", hashes::now(line)));
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
        shard_bytes: None,
        tight: false,
        kind: Kind::Usual,
        two: None,
        plant: None,
    };
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let mut number = || given.next()?.parse::<u64>().ok();
        match word.as_str() {
            "--seed" => words.seed = Some(number()?),
            "--seeds" => words.seeds = Some(number()?),
            "--heads" => {
                let two = number().filter(|n| (1..=2).contains(n))? == 2;
                words.two = two.then_some(words.two.unwrap_or(OfTwo::Heads));
            }
            "--shard-bytes" => words.shard_bytes = Some(number()?),
            "--from" => words.from = number()?,
            "--paths" => words.two = Some(OfTwo::Paths),
            "--outages" => words.two = Some(OfTwo::Outages),
            "--turns" => words.two = Some(OfTwo::Turns),
            "--plant" => words.plant = Some(given.next()?),
            "--full" => words.two = Some(OfTwo::Full),
            "--waits" => words.two = Some(OfTwo::Waits),
            "--row" => {
                let n = number().filter(|n| (*n as usize) < sim::two::ROWS.len())?;
                words.two = Some(OfTwo::Row(n as usize));
            }
            "--one-path" => words.two = Some(OfTwo::OnePath),
            "--story" => words.story = true,
            "--trace" => words.trace = true,
            "--all" => words.all = true,
            "--hashes" => words.hashes = true,
            "--tight" => words.tight = true,
            "--pairs" => words.kind = Kind::Pairs,
            "--seesaw" => words.kind = Kind::Seesaw,
            "--frozen" => words.kind = Kind::Frozen,
            "--older" => words.kind = Kind::Older,
            "--failed" => words.kind = Kind::Failed,
            "--wiped" => words.kind = Kind::Wiped,
            "--power" => words.kind = Kind::Power,
            "--dealt" => words.kind = Kind::Dealt,
            "--access" => words.kind = Kind::Access,
            "--volumes" => words.kind = Kind::Volumes,
            "--scarce" => words.kind = Kind::Scarce,
            "--calm" => words.kind = Kind::Calm,
            "--directory" => words.kind = Kind::Directory,
            _ => return None,
        }
    }
    // Worlds of access are of one head or of two.
    if let (Kind::Access, Some(two @ OfTwo::Heads)) = (words.kind, &mut words.two) {
        *two = OfTwo::Access;
        words.kind = Kind::Usual;
    }
    Some(words)
}

/// Makes this mistake in the worlds of this thread, which is that of `--seed`. False: this build knows no such bug.
#[cfg(feature = "planted")]
fn plant(name: &str) -> bool {
    let bug = base::planted::BUGS.iter().find(|b| b.name == name);
    base::planted::plant(bug.map(|b| b.bug));
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
    match words.two {
        Some(two) => say!("{:#?}", two.options(seed)),
        None => say!("{:#?}", words.options(seed)),
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
        if matches!(self.kind, Kind::Directory) {
            let result = std::panic::catch_unwind(|| sim::directory::run(seed));
            let result = result.unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                Err(text.unwrap_or_else(|| "a panic".into()))
            });
            return result
                .map(|hash| Outcome { hash, ..Outcome::default() })
                .map_err(|what| format!("seed {seed}: {what}"));
        }
        let result = if let Some(two) = self.two {
            let options = sim::two::Options { log, trace, ..two.options(seed) };
            std::panic::catch_unwind(|| sim::two::run(options))
        } else {
            let options = Options { log, trace, ..self.options(seed) };
            if options.shard_bytes < options.shard_bytes_min() {
                let (is, least) = (options.shard_bytes, options.shard_bytes_min());
                return Err(format!("--shard-bytes {is}: seed {seed} needs at least {least}"));
            }
            std::panic::catch_unwind(|| run(options))
        };
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
                if words.attempt(seed, false, false).is_err() {
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
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

thread_local! {
    static PLACE: std::cell::Cell<String> = const { std::cell::Cell::new(String::new()) };
}
