//! `mutants [--only NAME [--within N] | --promptly]`: plants each bug of `base::planted` and looks for it, seed
//! by seed. `mutants --rules LIST TABLE`: the same of mutants made by rule, in a build that has them.
//!
//! A row for each: the promise that it breaks, the first seed that fails with it, and what said so. A seed
//! that fails without the bug too proves nothing and is passed over. *Armed in* so many of the worlds until
//! then the bug made a difference. Fails if a bug is not found *within* so many worlds that arm it, and for
//! another reason if none does: that one asks for a world, not for a checker.

mod rules;
mod table;
mod worlds;

use base::planted::{BUGS, Mistake, Planted};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

const HELP: &str = "\
usage: mutants [--only NAME [--within N] | --promptly]
       mutants --rules LIST TABLE [--minutes N]

  --only NAME   this bug alone, within the worlds that its row states or N
  --promptly    only bugs that must be found within 100 worlds that arm them
  --rules       mutants of LIST, as `mutate` writes it; goes on where TABLE ends (docs/rfcs/0018-mutants.md)
  --minutes N   for so long at most";

/// So many seeds are tried for each world of a bug's budget: most of them may not arm it.
const SEEDS_FOR_EACH: u64 = 10;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let usage = || {
        eprintln!("{HELP}");
        ExitCode::from(2)
    };
    if let ["--rules", list, table, limit @ ..] = &words[..] {
        let minutes = match limit {
            [] => Some(None),
            ["--minutes", n] => n.parse().ok().map(Some),
            _ => None,
        };
        return minutes.map_or_else(usage, |minutes| rules::run(list, table, minutes));
    }
    if let [rules::CHILD, mutant, seconds, kinds @ ..] = &words[..] {
        return rules::child(mutant, seconds, kinds);
    }
    let Some(chosen) = chosen(&words) else { return usage() };
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
fn chosen(words: &[&str]) -> Option<Vec<Planted>> {
    let named = |name: &str| BUGS.iter().filter(|b| b.name == name).copied().collect::<Vec<_>>();
    let chosen: Vec<Planted> = match *words {
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
                    let kind = worlds::name(bug.worlds);
                    let (armed, failed_by) = worlds::with(Mistake::Bug(bug.bug), kind, seed);
                    search.lock().expect("nobody panics with it").end(seed, armed, failed_by);
                }
            });
        }
    });
    search.into_inner().expect("nobody panics with it")
}
