//! The copy of the tree in which the mutants are.

use crate::names::is_in_scope;
use crate::place::{Mutant, Place, named};
use crate::places::places;
use crate::render::{Rendered, render};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a tree is, and where its copy.
pub struct Copy {
    root: PathBuf,
    tree: PathBuf,
    files: Vec<Source>,
}

/// A file that is mutated.
struct Source {
    path: String,
    text: String,
    places: Vec<Place>,
    names: Vec<Vec<Mutant>>,
    /// By place: it does not compile.
    broken: Vec<bool>,
    rendered: Rendered,
}

impl Copy {
    /// The mutants of all files of a tree that are in scope, or of those of `only`. Places that hold a mutant of
    /// `broken` are left as they are.
    ///
    /// # Errors
    /// A sentence.
    pub fn of(
        root: &Path,
        tree: &Path,
        only: Option<&[String]>,
        broken: &BTreeSet<String>,
    ) -> Result<Self, String> {
        let mut files = vec![];
        for path in listed(root)? {
            if !is_in_scope(&path) || !only.is_none_or(|only| only.contains(&path)) {
                continue;
            }
            let text = fs::read_to_string(root.join(&path)).map_err(|e| format!("{path}: {e}"))?;
            let places = places(&text).map_err(|e| format!("{path}: {e}"))?;
            let names = named(&path, &text, &places);
            let broken = names.iter().map(|n| n.iter().any(|m| broken.contains(&m.id))).collect();
            files.push(Source { path, text, places, names, broken, rendered: Rendered::default() });
        }
        Ok(Self { root: root.into(), tree: tree.into(), files })
    }

    /// The same of the files that differ from a commit, and names of the mutants that these files had there.
    ///
    /// # Errors
    /// A sentence.
    pub fn since(
        root: &Path,
        tree: &Path,
        commit: &str,
        broken: &BTreeSet<String>,
    ) -> Result<(Self, BTreeSet<String>), String> {
        let changed = git(root, &["diff", "--name-only", "--no-renames", "-z", commit, "--"])?;
        let new = git(root, &["ls-files", "-z", "--others", "--exclude-standard"])?;
        let only: Vec<String> = [changed, new].concat();
        let copy = Self::of(root, tree, Some(&only), broken)?;
        let mut former = BTreeSet::new();
        for file in &copy.files {
            // A file that is new was nothing there.
            let Ok(text) = git(root, &["show", &format!("{commit}:{}", file.path)]) else { continue };
            let text = text.concat();
            let places = places(&text).map_err(|e| format!("{} at {commit}: {e}", file.path))?;
            former.extend(named(&file.path, &text, &places).into_iter().flatten().map(|m| m.id));
        }
        Ok((copy, former))
    }

    /// All mutants, also those of places that do not compile.
    pub fn found(&self) -> impl Iterator<Item = &Mutant> {
        self.files.iter().flat_map(|f| f.names.iter().flatten())
    }

    /// Mutants of the copy, in the order of their numbers, from 0.
    pub fn made(&self) -> impl Iterator<Item = &Mutant> {
        self.files
            .iter()
            .flat_map(|f| f.names.iter().zip(&f.broken).filter(|(_, b)| !**b).flat_map(|(n, _)| n))
    }

    /// Names of the mutants that do not compile.
    pub fn broken(&self) -> impl Iterator<Item = &Mutant> {
        self.files
            .iter()
            .flat_map(|f| f.names.iter().zip(&f.broken).filter(|(_, b)| **b).flat_map(|(n, _)| n))
    }

    /// Writes what differs from what is there: cargo compiles nothing else anew.
    ///
    /// # Errors
    /// A sentence.
    pub fn write(&mut self) -> Result<(), String> {
        let mut written = BTreeMap::new();
        for path in listed(&self.root)? {
            // Not a link that leads nowhere, nor a folder of another repository.
            if let Ok(bytes) = fs::read(self.root.join(&path)) {
                written.insert(path, bytes);
            }
        }
        let mut first = 0;
        for file in &mut self.files {
            let mut numbered = vec![];
            let mut kept = vec![];
            for (at, place) in file.places.iter().enumerate().filter(|(at, _)| !file.broken[*at]) {
                numbered.push((place, first));
                kept.push(at);
                first += place.rules.len() as u32;
            }
            file.rendered = render(&file.text, &numbered);
            file.rendered.regions.iter_mut().for_each(|(_, place)| *place = kept[*place]);
            if let Err(e) = syn::parse_file(&file.rendered.text) {
                let line = file.rendered.text.lines().nth(e.span().start().line - 1).unwrap_or_default();
                return Err(format!("the copy of {} is no Rust: {e}: {line}", file.path));
            }
            written.insert(file.path.clone(), file.rendered.text.clone().into_bytes());
        }
        remove_others(&self.tree, &self.tree, &written)?;
        for (path, bytes) in &written {
            let to = self.tree.join(path);
            if fs::read(&to).is_ok_and(|there| there == *bytes) {
                continue;
            }
            let folder = to.parent().unwrap_or(&self.tree);
            let done = fs::create_dir_all(folder).and_then(|()| fs::write(&to, bytes));
            done.map_err(|e| format!("{}: {e}", to.display()))?;
        }
        Ok(())
    }

    /// An error of the compiler is at these bytes of files of the copy, those that matter most first. From now on
    /// the innermost place around the first of them that has one is left as it is; if none has one, all places
    /// between them. False: there is none.
    pub fn blame(&mut self, spans: &[(String, Range<usize>)]) -> bool {
        for (path, bytes) in spans {
            let Some(file) = self.files.iter_mut().find(|f| f.path == *path) else { continue };
            // Inner regions come first.
            let around =
                |(region, _): &&(Range<usize>, usize)| region.start <= bytes.start && bytes.end <= region.end;
            if let Some((_, place)) = file.rendered.regions.iter().find(around) {
                file.broken[*place] = true;
                return true;
            }
        }
        let Some((path, _)) = spans.first() else { return false };
        let Some(file) = self.files.iter_mut().find(|f| f.path == *path) else { return false };
        let there = || spans.iter().filter(|(p, _)| p == path).map(|(_, bytes)| bytes);
        let begin = there().map(|bytes| bytes.start).min().unwrap_or_default();
        let end = there().map(|bytes| bytes.end).max().unwrap_or_default();
        let mut any = false;
        for (_, place) in file.rendered.regions.iter().filter(|(r, _)| begin <= r.start && r.end <= end) {
            any |= !core::mem::replace(&mut file.broken[*place], true);
        }
        any
    }
}

/// Files that git tracks or would track.
fn listed(root: &Path) -> Result<Vec<String>, String> {
    git(root, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
}

/// What git says, up to each zero byte.
fn git(root: &Path, words: &[&str]) -> Result<Vec<String>, String> {
    let said = Command::new("git").args(words).current_dir(root).output();
    let said = said.map_err(|e| format!("git cannot run: {e}"))?;
    if !said.status.success() {
        let why = String::from_utf8_lossy(&said.stderr).into_owned();
        return Err(format!("git {}: {}", words.join(" "), why.trim()));
    }
    Ok(String::from_utf8_lossy(&said.stdout).split_terminator('\0').map(str::to_owned).collect())
}

/// Removes what an earlier copy had and this one has not.
fn remove_others(tree: &Path, folder: &Path, keep: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.strip_prefix(tree).unwrap_or(&path).to_string_lossy().into_owned();
        if path.is_dir() {
            remove_others(tree, &path, keep)?;
        } else if !keep.contains_key(&name) {
            fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    Ok(())
}
