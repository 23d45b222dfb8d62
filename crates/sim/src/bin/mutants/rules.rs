//! Mutants made by rule: each for ten seconds first, then those that nothing has found in more of the worlds that arm
//! them.
//!
//! A mutant may turn without end, take all memory or end the program, so each runs in a process of its own, which says
//! before each world that it begins and behind it how it ended.

use crate::table::{Mutant, Table, Tried, Worlds};
use crate::worlds;
use base::planted::Mistake;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The word by which this program starts itself.
pub const CHILD: &str = "--mutant";
/// How long each mutant is looked for first, on every processor; here each has one, for as many times as long.
const FIRST: Duration = Duration::from_secs(10);
/// How long one is looked for at a time after that.
const CHUNK: Duration = Duration::from_secs(60);
/// So many worlds decide on a mutant that some of them arm.
const WORLDS_MAX: u64 = 2000;
/// So many decide that none arms it.
const UNARMED_MAX: u64 = 400;
/// So many worlds of a kind that do not arm a mutant show that the kind does not.
const KIND_MIN: u64 = 8;
/// A world that goes on for longer has no end.
const HANGS: Duration = Duration::from_secs(60);
/// Memory of a process, KiB.
const MEMORY_KIB: u64 = 6 << 20;

/// Looks for all mutants of a list, as long as it may. The list of those that survive grows beside the table.
pub fn run(list: &str, table: &str, minutes: Option<u64>) -> ExitCode {
    let opened = Mutant::all(list).and_then(|mutants| Ok((mutants, Table::open(table)?)));
    let (mutants, table) = match opened {
        Ok(opened) => opened,
        Err(e) => {
            eprintln!("{list}, {table}: {e}");
            return ExitCode::from(2);
        }
    };
    let until = minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let untried = |m: &&Mutant| table.of(&m.id) == Tried::default();
    let search = Search {
        mutants: &mutants,
        until,
        first: Mutex::new(mutants.iter().filter(untried).collect()),
        then: Mutex::default(),
        table: Mutex::new(table),
    };
    search.then.lock().expect("nobody panics with it").extend(mutants.iter().filter(|m| search.is_open(m)));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| while search.step(FIRST * threads as u32) {});
        }
    });
    let report = search.table().report(&mutants);
    let tried: Vec<Tried> = mutants.iter().map(|m| search.table().of(&m.id)).collect();
    let count = |is: &dyn Fn(&Tried) -> bool| tried.iter().filter(|t| is(t)).count();
    let found = count(&|t| t.found.is_some());
    let armed = count(&|t| t.found.is_none() && t.sum().armed > 0);
    let never = count(&|t| t.found.is_none() && t.sum().armed == 0 && t.sum().of > 0);
    let left = count(&|t| t.sum().of == 0);
    println!(
        "{} mutants: {found} found, {armed} survive, {never} never armed, {left} not tried",
        mutants.len()
    );
    match report {
        Ok(path) => println!("those that survive: {}", path.display()),
        Err(e) => println!("the report cannot be written: {e}"),
    }
    ExitCode::SUCCESS
}

/// What is still to be looked for.
struct Search<'a> {
    mutants: &'a [Mutant],
    until: Option<Instant>,
    first: Mutex<VecDeque<&'a Mutant>>,
    then: Mutex<VecDeque<&'a Mutant>>,
    table: Mutex<Table>,
}

impl<'a> Search<'a> {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("nobody panics with it")
    }

    /// Whether a mutant was tried, and more worlds may find it.
    fn is_open(&self, mutant: &Mutant) -> bool {
        let tried = self.table().of(&mutant.id);
        let Worlds { of, armed } = tried.sum();
        let most = if armed > 0 { WORLDS_MAX } else { UNARMED_MAX };
        tried.found.is_none() && of > 0 && of < most
    }

    fn next(&self) -> Option<(&'a Mutant, bool)> {
        let first = self.first.lock().expect("nobody panics with it").pop_front();
        let then = || self.then.lock().expect("nobody panics with it").pop_front();
        first.map(|m| (m, true)).or_else(|| Some((then()?, false)))
    }

    /// Looks for the next mutant for a while. False: there is none, or no time.
    fn step(&self, first: Duration) -> bool {
        let left =
            self.until.map_or(CHUNK.max(first), |until| until.saturating_duration_since(Instant::now()));
        let Some((mutant, is_first)) = self.next().filter(|_| !left.is_zero()) else { return false };
        let mut tried = self.table().of(&mutant.id);
        look_for(mutant, &mut tried, if is_first { first } else { CHUNK }.min(left));
        let sum = tried.sum();
        if let Some((kind, seed, by)) = &tried.found {
            println!(
                "{} {}: found by {kind} {seed}, armed in {} of {}: {by}",
                mutant.id, mutant.what[0], sum.armed, sum.of
            );
        } else if is_first {
            println!(
                "{} {}: not found, armed in {} of {}",
                mutant.id,
                mutant.what.join(" "),
                sum.armed,
                sum.of
            );
        }
        let mut table = self.table();
        let kept = table.keep(&mutant.id, &tried).and_then(|()| table.report(self.mutants));
        drop(table);
        if let Err(e) = kept {
            eprintln!("the table cannot be written: {e}");
            return false;
        }
        if self.is_open(mutant) {
            self.then.lock().expect("nobody panics with it").push_back(mutant);
        }
        true
    }
}

/// Kinds that armed a mutant, or all if none has.
fn kinds(tried: &Tried) -> Vec<(&'static str, Worlds)> {
    let of = |kind: &'static str| (kind, tried.kinds.get(kind).copied().unwrap_or_default());
    let all: Vec<_> = worlds::kinds().into_iter().map(of).collect();
    if tried.sum().armed == 0 {
        return all;
    }
    all.into_iter().filter(|(_, w)| w.armed > 0 || w.of < KIND_MIN).collect()
}

/// Runs worlds of a mutant in a process of its own, and hears how they ended.
fn look_for(mutant: &Mutant, tried: &mut Tried, time: Duration) {
    let program = std::env::current_exe().expect("this program has a file");
    // Of the processor's time, too: this process may be ended while that one hangs.
    let processor = (time + 2 * HANGS).as_secs();
    let limits = format!("ulimit -v {MEMORY_KIB} && ulimit -t {processor} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limits]).arg(program);
    command.args([CHILD, &mutant.number.to_string(), &time.as_secs().max(1).to_string()]);
    command.args(kinds(tried).iter().map(|(kind, w)| format!("{kind}={}={}", w.of, w.armed)));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("a shell starts this program");
    let out = child.stdout.take().expect("it is piped");
    let (says, hears) = channel();
    let reader = std::thread::spawn(move || {
        BufReader::new(out).lines().map_while(Result::ok).for_each(|line| drop(says.send(line)));
    });
    let mut begun: Option<(String, u64)> = None;
    let unended = loop {
        match hears.recv_timeout(HANGS) {
            Ok(line) => match line.split('\t').collect::<Vec<_>>()[..] {
                ["begins", kind, seed] => begun = seed.parse().ok().map(|seed| (kind.to_owned(), seed)),
                ["ended", armed, by] => {
                    let Some((kind, seed)) = begun.take() else { continue };
                    let worlds = tried.kinds.entry(kind.clone()).or_default();
                    *worlds = Worlds { of: seed + 1, armed: worlds.armed + u64::from(armed == "true") };
                    if !by.is_empty() && tried.found.is_none() {
                        tried.found = Some((kind, seed, by.to_owned()));
                    }
                }
                _ => {}
            },
            Err(RecvTimeoutError::Timeout) => break "it does not end",
            Err(RecvTimeoutError::Disconnected) => break "the process ended",
        }
    };
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
    let _ = reader.join();
    if let Some((kind, seed)) = begun {
        let worlds = tried.kinds.entry(kind.clone()).or_default();
        *worlds = Worlds { of: seed + 1, armed: worlds.armed + 1 };
        tried.found.get_or_insert((kind, seed, unended.into()));
    }
}

/// Runs worlds of a mutant, kind by kind in turns, until one fails or the time is over.
pub fn child(mutant: &str, seconds: &str, kinds: &[&str]) -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let read = |word: &&str| {
        let mut parts = word.split('=');
        let kind = parts.next()?.to_owned();
        Some((kind, Worlds { of: parts.next()?.parse().ok()?, armed: parts.next()?.parse().ok()? }))
    };
    let kinds: Option<Vec<(String, Worlds)>> = kinds.iter().map(read).collect();
    let (Ok(mutant), Ok(seconds), Some(mut kinds)) = (mutant.parse(), seconds.parse(), kinds) else {
        return ExitCode::from(2);
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut out = std::io::stdout();
    loop {
        let any = kinds.iter().any(|(_, w)| w.armed > 0);
        for (kind, worlds) in &mut kinds {
            if any && worlds.armed == 0 && worlds.of >= KIND_MIN {
                continue;
            }
            if Instant::now() >= end || writeln!(out, "begins\t{kind}\t{}", worlds.of).is_err() {
                return ExitCode::SUCCESS;
            }
            let (armed, by) = worlds::with(Mistake::Mutant(mutant), kind, worlds.of);
            *worlds = Worlds { of: worlds.of + 1, armed: worlds.armed + u64::from(armed) };
            let by = by.unwrap_or_default();
            if writeln!(out, "ended\t{armed}\t{by}").is_err() || !by.is_empty() {
                return ExitCode::SUCCESS;
            }
        }
    }
}
