//! `mutate ROOT OUT [--since COMMIT] [--jobs N] [--found]`: writes the tree at ROOT with mutants to OUT/tree,
//! leaves out those that do not compile, and lists the others in OUT/mutants.tsv.
//!
//! `--since` makes those of files that differ from COMMIT alone, and lists first what they did not have there.
//! `--found` only says how many there are, by rule and crate.

use mutate::check::check;
use mutate::copy::Copy;
use mutate::place::{Mutant, RULES};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("mutate: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (mut jobs, mut since, mut found, mut paths) = (None, None, false, vec![]);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--jobs" => jobs = words.next(),
            "--since" => since = words.next(),
            "--found" => found = true,
            _ => paths.push(PathBuf::from(word)),
        }
    }
    let [root, out] = &paths[..] else {
        return Err("usage: mutate ROOT OUT [--since COMMIT] [--jobs N] [--found]".into());
    };
    // cargo works in the copy.
    let whole = |path: &PathBuf| std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()));
    let (root, out) = (&whole(root)?, &whole(out)?);
    let (tree, list, broken) = (out.join("tree"), out.join("mutants.tsv"), out.join("broken.txt"));
    let known: BTreeSet<String> =
        std::fs::read_to_string(&broken).unwrap_or_default().lines().map(str::to_owned).collect();
    let (mut copy, former) = match since {
        Some(commit) => Copy::since(root, &tree, &commit, &known)?,
        None => (Copy::of(root, &tree, None, &known)?, BTreeSet::new()),
    };
    if found {
        count(copy.found());
        return Ok(());
    }
    std::fs::create_dir_all(out).map_err(|e| format!("{}: {e}", out.display()))?;
    if copy.found().next().is_none() {
        return save(&list, "");
    }
    let checked = check(&mut copy, &tree, &out.join("build"), jobs.as_deref());
    let names: BTreeSet<&str> =
        known.iter().map(String::as_str).chain(copy.broken().map(|m| &m.id[..])).collect();
    save(&broken, &(names.into_iter().collect::<Vec<_>>().join("\n") + "\n"))?;
    checked?;
    // By their names, which are in no order: as far as a run has come, it has tried some of everything.
    let mut made: Vec<(u32, &Mutant)> = (0..).zip(copy.made()).collect();
    made.sort_by_key(|(_, mutant)| (former.contains(&mutant.id), &mutant.id));
    let rows: String = made.iter().map(|(n, mutant)| row(*n, mutant)).collect();
    save(&list, &rows)?;
    count(copy.made());
    println!("{} mutants of {} compile", copy.made().count(), copy.found().count());
    Ok(())
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn row(number: u32, mutant: &Mutant) -> String {
    let Mutant { id, file, line, item, rule, text } = mutant;
    let text: String = text.chars().take(100).collect();
    format!("{number}\t{id}\t{}\t{file}:{line}\t{item}\t{text}\n", rule.name())
}

/// How many there are, by rule and crate.
fn count<'a>(mutants: impl Iterator<Item = &'a Mutant>) {
    let mut counts = BTreeMap::<(&str, &str), u32>::new();
    let mut rooms = BTreeSet::new();
    for mutant in mutants {
        let room = mutant.file.split('/').nth(1).unwrap_or_default();
        rooms.insert(room);
        *counts.entry((mutant.rule.name(), room)).or_default() += 1;
    }
    let rooms: Vec<&str> = rooms.into_iter().collect();
    println!("| rule | {} | all |", rooms.join(" | "));
    println!("| --- |{}", " --- |".repeat(rooms.len() + 1));
    let line = |name: &str, of: &dyn Fn(&str) -> u32| {
        let each: Vec<u32> = rooms.iter().map(|room| of(room)).collect();
        let cells: Vec<String> = each.iter().map(u32::to_string).collect();
        println!("| {name} | {} | {} |", cells.join(" | "), each.iter().sum::<u32>());
    };
    for rule in RULES {
        line(rule.name(), &|room| counts.get(&(rule.name(), room)).copied().unwrap_or_default());
    }
    line("all", &|room| counts.iter().filter(|((_, r), _)| *r == room).map(|(_, n)| n).sum());
}
