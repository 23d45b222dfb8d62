//! `mutants [--only NAME [--within N] | --promptly]`: plants each bug of `base::planted` and looks for it, seed
//! by seed.
//!
//! A row for each: the promise that it breaks, the first seed that fails with it, and what said so. A seed
//! that fails without the bug too proves nothing and is passed over. *Armed in* so many of the worlds until
//! then the bug made a difference. Fails if a bug is not found *within* so many worlds that arm it, and for
//! another reason if none does: that one asks for a world, not for a checker.

use base::planted::{BUGS, Mistake, Planted, Worlds, armed, plant};
use cluster::model::{LARGE, walk};
use sim::run::{Options, run};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

const HELP: &str = "\
usage: mutants [--only NAME [--within N] | --promptly]

  --only NAME   this bug alone, within the worlds that its row states or N
  --promptly    only bugs that must be found within 100 worlds that arm them";

/// So many seeds are tried for each world of a bug's budget: most of them may not arm it.
const SEEDS_FOR_EACH: u64 = 10;

fn main() -> ExitCode {
    let Some(chosen) = chosen() else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    // A panic is a finding; what it says is in its row.
    std::panic::set_hook(Box::new(|_| {}));
    println!("| promise | bug | found at seed | armed in | of | within | by |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let began = Instant::now();
    let (mut missed, mut unarmed) = (0, 0);
    let (stated, open): (Vec<_>, Vec<_>) = chosen.iter().partition(|bug| bug.within > 0);
    for bug in &stated {
        let Tried { found, armed, of } = look_for(bug).tried();
        let (seed, by) = match found {
            Some((seed, by)) => (seed.to_string(), by),
            None if armed == 0 => {
                unarmed += 1;
                ("NEVER ARMED".into(), String::new())
            }
            None => {
                missed += 1;
                ("NOT FOUND".into(), String::new())
            }
        };
        let Planted { promise, name, what, within, .. } = bug;
        println!("| {promise} | {name}: {what} | {seed} | {armed} | {of} | {within} | {by} |");
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("{} bugs, {missed} not found, {unarmed} never armed, in {seconds:.0} s", stated.len());
    for bug in open {
        println!("blind spot, not looked for: promise {}, {}: {}", bug.promise, bug.name, bug.what);
    }
    if missed + unarmed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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

/// Worlds with a bug, which may end in any order.
struct Search {
    /// So many that arm the bug are looked at.
    within: u64,
    /// By seed, whether the world armed the bug; None: it has not ended.
    worlds: Vec<Option<bool>>,
    /// The worlds of so many seeds have all ended, and so many of them armed the bug.
    ended: (usize, u64),
    /// The first seed that fails with the bug and not without it, and the checker.
    found: Option<(u64, String)>,
}

/// What was found, and how many worlds armed the bug until then, of all.
struct Tried {
    found: Option<(u64, String)>,
    armed: u64,
    of: u64,
}

impl Search {
    fn new(within: u64) -> Self {
        Self { within, worlds: vec![], ended: (0, 0), found: None }
    }

    /// The next seed. None: there is none, or what its world shows would not count any more.
    fn begin(&mut self) -> Option<u64> {
        let seed = self.worlds.len() as u64;
        let found = self.found.as_ref().is_some_and(|(found, _)| *found < seed);
        if found || self.ended.1 >= self.within || seed >= SEEDS_FOR_EACH * self.within {
            return None;
        }
        self.worlds.push(None);
        Some(seed)
    }

    /// Its world has ended.
    fn end(&mut self, seed: u64, armed: bool, failed_by: Option<String>) {
        self.worlds[seed as usize] = Some(armed);
        while let Some(Some(armed)) = self.worlds.get(self.ended.0) {
            self.ended = (self.ended.0 + 1, self.ended.1 + u64::from(*armed));
        }
        if let Some(by) = failed_by
            && self.found.as_ref().is_none_or(|(found, _)| seed < *found)
        {
            self.found = Some((seed, by));
        }
    }

    /// What counts, whatever else ended meanwhile: worlds in the order of their seeds, within the budget.
    fn tried(self) -> Tried {
        let (mut armed, mut of) = (0, 0);
        for world in self.worlds {
            if armed == self.within {
                break;
            }
            armed += u64::from(world == Some(true));
            of += 1;
            if let Some(found) = self.found.as_ref().filter(|(seed, _)| seed + 1 == of) {
                return Tried { found: Some(found.clone()), armed, of };
            }
        }
        Tried { found: None, armed, of }
    }
}

fn look_for(bug: &Planted) -> Search {
    let search = Mutex::new(Search::new(bug.within));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = search.lock().expect("nobody panics with it").begin();
                    let Some(seed) = seed else { return };
                    let (armed, failed_by) = world(bug, seed);
                    search.lock().expect("nobody panics with it").end(seed, armed, failed_by);
                }
            });
        }
    });
    search.into_inner().expect("nobody panics with it")
}

/// Whether a world armed the bug, and what it failed by because of the bug.
fn world(bug: &Planted, seed: u64) -> (bool, Option<String>) {
    plant(Some(Mistake::Bug(bug.bug)));
    let by = failure(bug.worlds, seed);
    let armed = armed() > 0;
    plant(None);
    // What fails unarmed fails without the bug.
    let by = by.filter(|_| armed && failure(bug.worlds, seed).is_none());
    (armed, by)
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
        Worlds::Heads => Options::two_heads(seed),
        Worlds::Paths => Options::paths(seed),
        Worlds::Outages => Options::outages(seed),
        Worlds::Turns => Options::turns(seed),
        Worlds::Full => Options::full(seed),
        Worlds::Waits => Options::waits(seed),
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
