//! The table of mutants made by rule: what was tried, line by line, so that a run that was ended goes on.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

/// A mutant, as `mutate` lists it.
pub struct Mutant {
    /// Its number in this build.
    pub number: u32,
    /// Its name in every build.
    pub id: String,
    /// Rule, place, item and text, as they are listed.
    pub what: Vec<String>,
}

impl Mutant {
    /// All of a list.
    pub fn all(list: &str) -> io::Result<Vec<Self>> {
        let of = |line: &str| {
            let mut words = line.split('\t').map(str::to_owned);
            let number = words.next()?.parse().ok()?;
            Some(Self { number, id: words.next()?, what: words.collect() })
        };
        let all: Vec<Self> = fs::read_to_string(list)?.lines().filter_map(of).collect();
        if all.is_empty() { Err(io::Error::other("it lists no mutant")) } else { Ok(all) }
    }
}

/// What became of a mutant in worlds of a kind: the first `of` seeds have run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Worlds {
    /// So many have run.
    pub of: u64,
    /// So many of them it made a difference in.
    pub armed: u64,
}

/// What is known of a mutant.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Tried {
    /// By kind.
    pub kinds: BTreeMap<String, Worlds>,
    /// The world that failed: kind, seed, and by what.
    pub found: Option<(String, u64, String)>,
}

impl Tried {
    /// Worlds that it made a difference in, of all.
    pub fn sum(&self) -> Worlds {
        let add = |sum: Worlds, w: &Worlds| Worlds { of: sum.of + w.of, armed: sum.armed + w.armed };
        self.kinds.values().fold(Worlds::default(), add)
    }

    /// One line of the table.
    fn add(&mut self, kind: &str, worlds: Worlds, found: Option<(u64, String)>) {
        self.kinds.insert(kind.into(), worlds);
        self.found = self.found.take().or(found.map(|(seed, by)| (kind.into(), seed, by)));
    }
}

/// All that is known, and its file.
pub struct Table {
    file: File,
    path: PathBuf,
    tried: BTreeMap<String, Tried>,
}

impl Table {
    /// What an earlier run has left, or an empty one.
    pub fn open(path: &str) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let mut tried = BTreeMap::<String, Tried>::new();
        for line in fs::read_to_string(path)?.lines() {
            // A last line may be cut off.
            if let Some((id, kind, worlds, found)) = read(line) {
                tried.entry(id).or_default().add(&kind, worlds, found);
            }
        }
        Ok(Self { file, path: path.into(), tried })
    }

    /// What is known of a mutant.
    pub fn of(&self, id: &str) -> Tried {
        self.tried.get(id).cloned().unwrap_or_default()
    }

    /// Keeps what was tried since.
    pub fn keep(&mut self, id: &str, now: &Tried) -> io::Result<()> {
        let before = self.of(id);
        let mut lines = String::new();
        for (kind, worlds) in
            now.kinds.iter().filter(|(kind, worlds)| before.kinds.get(*kind) != Some(worlds))
        {
            let found = now.found.as_ref().filter(|(found, ..)| found == kind);
            let found = found.map_or(String::new(), |(_, seed, by)| format!("{seed}\t{by}"));
            lines += &format!("{id}\t{kind}\t{}\t{}\t{found}\n", worlds.of, worlds.armed);
        }
        self.tried.insert(id.into(), now.clone());
        self.file.write_all(lines.as_bytes())
    }

    /// Writes the mutants that no world has found beside the table, those that many worlds armed first.
    pub fn report(&self, mutants: &[Mutant]) -> io::Result<PathBuf> {
        let mut rows: Vec<(Worlds, &Mutant, Tried)> =
            mutants.iter().map(|m| (m, self.of(&m.id))).map(|(m, t)| (t.sum(), m, t)).collect();
        rows.retain(|(sum, _, tried)| sum.of > 0 && tried.found.is_none());
        rows.sort_by_key(|(sum, mutant, _)| (core::cmp::Reverse(sum.armed), mutant.number));
        let mut text =
            "| mutant | rule | place | item | text | armed in | of | kinds that armed it |\n".to_owned();
        text += &format!("|{}\n", " --- |".repeat(8));
        for (sum, mutant, tried) in rows {
            let kinds = tried
                .kinds
                .iter()
                .filter(|(_, w)| w.armed > 0)
                .map(|(kind, w)| format!("{kind} {}", w.armed));
            let kinds = kinds.collect::<Vec<_>>().join(", ");
            let what: Vec<String> = mutant.what.iter().map(|word| word.replace('|', "\\|")).collect();
            text +=
                &format!("| {} | {} | {} | {} | {kinds} |\n", mutant.id, what.join(" | "), sum.armed, sum.of);
        }
        let path = self.path.with_extension("md");
        fs::write(&path, text)?;
        Ok(path)
    }
}

type Line = (String, String, Worlds, Option<(u64, String)>);

fn read(line: &str) -> Option<Line> {
    let mut words = line.split('\t');
    let (id, kind) = (words.next()?, words.next()?);
    let worlds = Worlds { of: words.next()?.parse().ok()?, armed: words.next()?.parse().ok()? };
    let seed = words.next()?;
    let found = if seed.is_empty() { None } else { Some((seed.parse().ok()?, words.next()?.to_owned())) };
    Some((id.into(), kind.into(), worlds, found))
}
