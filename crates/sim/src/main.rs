//! `sim --seed N`: one world again, with its story if it fails. `sim --seeds N [--from M]`: many, on all
//! cores, to the first failure.

use sim::run::{Options, Outcome, run};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

const HELP: &str = "\
usage: sim --seed N [--story]      one world; the same seed gives the same run
       sim --seeds N [--from M]    worlds M..M+N on all cores, to the first failure";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = words.iter().position(|w| w == name)?;
        words.get(at + 1)?.parse::<u64>().ok()
    };
    let story = words.iter().any(|w| w == "--story");
    match (value("--seed"), value("--seeds")) {
        (Some(seed), None) => one(seed, story),
        (None, Some(count)) => many(value("--from").unwrap_or(0), count),
        (None, None) if words.is_empty() => many(0, 200),
        _ => {
            eprintln!("{HELP}");
            ExitCode::from(2)
        }
    }
}

fn one(seed: u64, story: bool) -> ExitCode {
    let mut options = Options::swarm(seed);
    println!("{options:#?}");
    options.tell = story;
    match attempt(options) {
        Ok(outcome) => {
            println!("{outcome:#?}");
            match attempt(Options::swarm(seed)) {
                Ok(again) if again.hash == outcome.hash => ExitCode::SUCCESS,
                _ => {
                    println!("seed {seed}: the second run was another one");
                    ExitCode::FAILURE
                }
            }
        }
        Err(what) => {
            println!("{what}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one seed; a failure is told with how to see it again.
fn attempt(options: Options) -> Result<Outcome, String> {
    let seed = options.seed;
    let told = options.tell;
    let result = std::panic::catch_unwind(|| run(options));
    let (what, story) = match result {
        Ok(Ok(outcome)) => return Ok(outcome),
        Ok(Err(failure)) => (failure.what, failure.story),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            (text.or(panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default(), vec![])
        }
    };
    let again = if told { String::new() } else { format!("\nsee it again: make sim SEED={seed} STORY=1") };
    Err(format!("{}\nseed {seed}: {what}{again}", story.join("\n")))
}

fn many(from: u64, count: u64) -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let (next, stop, done) = (AtomicU64::new(from), AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut failed = None;
            while !stop.load(Ordering::Relaxed) {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= from + count {
                    break;
                }
                if let Err(what) = attempt(Options::swarm(seed)) {
                    stop.store(true, Ordering::Relaxed);
                    failed = Some(what);
                    break;
                }
                let n = done.fetch_add(1, Ordering::Relaxed) + 1;
                if n.is_multiple_of(100) {
                    println!("{n} of {count} seeds, {:.0} s", began.elapsed().as_secs_f64());
                }
            }
            failed
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles.into_iter().filter_map(|h| h.join().expect("workers catch their panics")).collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    println!("{} seeds from {from} in {seconds:.1} s", done.load(Ordering::Relaxed));
    for failure in &failures {
        println!("{failure}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
