//! The conversion of a directory whose files a former version wrote.
//!
//! ```text
//! 1. `format` names each old file that can be read, with its checksum, and what is to be made
//! 2. each of them, in the new format                    a start behind any step goes on from there:
//! 3. what is to be made, empty                          an old file counts only with the bytes that `format` names
//! 4. `format` names nothing: the directory is converted
//! ```

use crate::content::{Mark, Old, Pools, Portals};
use crate::table::kind;
use crate::{converted, open, seal};
use base::crc::crc32c;
use finding::FileFault;
use std::collections::BTreeMap;

/// The file that says that a directory was converted.
pub const MARK: &str = "format";

/// A file that is written, durably, before the next one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub contents: Vec<u8>,
}

impl Step {
    fn new(name: &str, contents: Vec<u8>) -> Self {
        Self { name: name.into(), contents }
    }
}

/// Whether a directory was converted, or is being converted: it has the mark, or a file of the format.
pub fn is_converted(files: &BTreeMap<String, Vec<u8>>) -> bool {
    files.contains_key(MARK) || files.iter().any(|(name, bytes)| is_sealed(name) && is_new(bytes))
}

fn is_sealed(name: &str) -> bool {
    kind(name).is_some_and(|k| k.shape.is_sealed())
}

/// Whether a file begins as those of the format do, whole or not. Old ones do not: `version` was no key of theirs, or stood
/// elsewhere.
fn is_new(bytes: &[u8]) -> bool {
    let begins = bytes.strip_prefix(b"{\n  \"version\": ").is_some();
    let second = bytes.split(|b| *b == b'\n').nth(1).unwrap_or_default();
    begins || bytes.starts_with(b"# ") && second.starts_with(b"version = ")
}

fn sum(bytes: &[u8]) -> String {
    format!("{:08x}", crc32c(bytes))
}

/// What is to be written before anybody reads this directory, in order; nothing, if it was converted. A start that was cut off behind
/// any step asks again, and gets the rest.
///
/// # Errors
/// The mark itself cannot be read: no old file counts.
pub fn plan(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<Step>, FileFault> {
    let done = || Step::new(MARK, seal(MARK, &Mark::default()));
    let Some(mark) = files.get(MARK) else {
        // Without a mark beside a new file, somebody removed it. What is old there was never named, and does not count.
        if is_converted(files) {
            return Ok(vec![done()]);
        }
        let mark = mark_of(files);
        let first = Step::new(MARK, seal(MARK, &mark));
        let rest = if mark == Mark::default() { vec![] } else { rest(&mark, files) };
        return Ok(core::iter::once(first).chain(rest).collect());
    };
    let mark: Mark = open(MARK, mark)?;
    Ok(if mark == Mark::default() { vec![] } else { rest(&mark, files) })
}

/// What the first step says.
fn mark_of(files: &BTreeMap<String, Vec<u8>>) -> Mark {
    let readable = |(name, bytes): &(&String, &Vec<u8>)| is_sealed(name) && converted(name, bytes).is_ok();
    let old = files.iter().filter(readable);
    let old = old.map(|(name, bytes)| Old { file: name.clone(), crc32c: sum(bytes) }).collect();
    // Former versions wrote these with their first row; from now on one that is not there is lost.
    let lacks = |name: &&str| files.contains_key("identity") && !files.contains_key(*name);
    let make = ["portals", "pools"].into_iter().filter(lacks).map(str::to_string).collect();
    Mark { make, old }
}

/// The steps behind the first one.
fn rest(mark: &Mark, files: &BTreeMap<String, Vec<u8>>) -> Vec<Step> {
    let old = mark.old.iter().filter_map(|old| {
        let bytes = files.get(&old.file).filter(|bytes| sum(bytes) == old.crc32c)?;
        Some(Step::new(&old.file, converted(&old.file, bytes).ok()?))
    });
    let make = mark.make.iter().filter(|name| !files.contains_key(*name)).filter_map(|name| {
        let contents = match name.as_str() {
            "portals" => seal(name, &Portals::default()),
            "pools" => seal(name, &Pools::default()),
            _ => return None,
        };
        Some(Step::new(name, contents))
    });
    old.chain(make).chain([Step::new(MARK, seal(MARK, &Mark::default()))]).collect()
}
