//! `mutants [--only NAME [--within N] | --promptly]`: plants each bug of `base::planted` and looks for it, seed
//! by seed.
//!
//! A row for each: the promise that it breaks, the first seed that fails with it, and what said so. A seed
//! that fails without the bug too proves nothing and is passed over. Fails if a bug is not found within the
//! seeds that its row states.

use base::planted::{BUGS, Planted, Worlds, plant};
use cluster::model::{LARGE, walk};
use sim::run::{Options, run};
use sim::two::Options as Two;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const HELP: &str = "\
usage: mutants [--only NAME [--within N] | --promptly]

  --only NAME   this bug alone, within the seeds that its row states or N
  --promptly    only bugs that must be found within 100 seeds";

fn main() -> ExitCode {
    let Some(chosen) = chosen() else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    // A panic is a finding; what it says is in its row.
    std::panic::set_hook(Box::new(|_| {}));
    println!("| promise | bug | found at seed | of | by |\n| --- | --- | --- | --- | --- |");
    let began = Instant::now();
    let mut missed = 0;
    let (stated, open): (Vec<_>, Vec<_>) = chosen.iter().partition(|bug| bug.within > 0);
    for bug in &stated {
        let (seed, by) = match look_for(bug) {
            Some((seed, by)) => (seed.to_string(), by),
            None => ("NOT FOUND".into(), String::new()),
        };
        missed += u32::from(by.is_empty());
        println!("| {} | {}: {} | {seed} | {} | {by} |", bug.promise, bug.name, bug.what, bug.within);
    }
    println!("{} bugs, {missed} not found, in {:.0} s", stated.len(), began.elapsed().as_secs_f64());
    for bug in open {
        println!("blind spot, not looked for: promise {}, {}: {}", bug.promise, bug.name, bug.what);
    }
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The bugs that were asked for; None if the words say nothing.
fn chosen() -> Option<Vec<Planted>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let named = |name: &str| BUGS.iter().filter(|b| b.name == name).copied().collect::<Vec<_>>();
    let chosen: Vec<Planted> = match words[..] {
        [] => BUGS.to_vec(),
        ["--promptly"] => BUGS.iter().filter(|b| (1..=100).contains(&b.within)).copied().collect(),
        ["--only", name] => named(name),
        ["--only", name, "--within", n] => {
            let within = n.parse().ok()?;
            named(name).into_iter().map(|bug| Planted { within, ..bug }).collect()
        }
        _ => return None,
    };
    Some(chosen).filter(|chosen| !chosen.is_empty())
}

/// The first seed that fails with the bug and not without it, and the checker.
fn look_for(bug: &Planted) -> Option<(u64, String)> {
    let next = AtomicU64::new(0);
    let least = AtomicU64::new(u64::MAX);
    let found = Mutex::new(None::<(u64, String)>);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= bug.within || seed > least.load(Ordering::Relaxed) {
                        return;
                    }
                    plant(Some(bug.bug));
                    let Some(by) = failure(bug.worlds, seed) else { continue };
                    plant(None);
                    if failure(bug.worlds, seed).is_some() {
                        continue;
                    }
                    least.fetch_min(seed, Ordering::Relaxed);
                    let mut found = found.lock().expect("nobody panics with it");
                    if found.as_ref().is_none_or(|(other, _)| seed < *other) {
                        *found = Some((seed, by));
                    }
                }
            });
        }
    });
    found.into_inner().expect("nobody panics with it")
}

/// What a seed fails by, if it does: the first words of the checker, without what is of one seed alone.
fn failure(worlds: Worlds, seed: u64) -> Option<String> {
    let options = match worlds {
        Worlds::Swarm => Options::swarm(seed),
        Worlds::Tight => Options::usual(seed).tight(),
        Worlds::Pairs => Options::pairs(seed),
        Worlds::Seesaw => Options::seesaw(seed),
        Worlds::Frozen => Options::frozen(seed),
        Worlds::Older => Options::older(seed),
        Worlds::Failed => Options::failed(seed),
        Worlds::Wiped => Options::wiped(seed),
        Worlds::Power => Options::power(seed),
        Worlds::Dealt => Options::dealt(seed),
        Worlds::Access => Options::access(seed),
        Worlds::Decision => {
            return LARGE.iter().find_map(|s| walk(*s, seed).err()).map(|what| one_line(&what));
        }
        Worlds::System => {
            return match std::panic::catch_unwind(|| cluster::world::run(seed)) {
                Ok(result) => result.err().map(|what| one_line(&what)),
                Err(panic) => Some(one_line(&words(&*panic))),
            };
        }
        Worlds::Directory => {
            return match std::panic::catch_unwind(|| sim::directory::run(seed)) {
                Ok(result) => result.err().map(|what| one_line(&what)),
                Err(panic) => Some(one_line(&words(&*panic))),
            };
        }
        Worlds::Heads | Worlds::Paths | Worlds::Outages | Worlds::Turns | Worlds::Full | Worlds::Waits => {
            let options = match worlds {
                Worlds::Paths => Two::paths(seed),
                Worlds::Outages => Two::outages(seed),
                Worlds::Turns => Two::turns(seed),
                Worlds::Full => Two::full(seed),
                Worlds::Waits => Two::waits(seed),
                _ => Two::swarm(seed),
            };
            return match std::panic::catch_unwind(|| sim::two::run(options)) {
                Ok(result) => result.err().map(|failure| one_line(&failure.what)),
                Err(panic) => Some(one_line(&words(&*panic))),
            };
        }
        Worlds::Volumes => Options::volumes(seed),
        Worlds::SlowPeers => Options::beside_slow_peers(seed),
        Worlds::Scarce => Options::scarce(seed),
    };
    match std::panic::catch_unwind(|| run(options)) {
        Ok(Ok(outcome)) if worlds == Worlds::SlowPeers && outcome.lost > 0 => {
            Some("sessions given up".into())
        }
        Ok(Ok(_)) => None,
        Ok(Err(failure)) => Some(one_line(&failure.what)),
        Err(panic) => Some(one_line(&words(&*panic))),
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    format!("assertion: {text}")
}

fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().replace('|', "/");
    line.chars().take(72).collect()
}
