//! The small text files of the state directory: docs/formats/state.md.

use core::fmt::Write;
use finding::{FileFault, LineFault};

/// A line that cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextError {
    /// Counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub why: TextFault,
}

/// What is wrong with a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TextFault {
    /// It is not UTF-8.
    NotText,
    /// A line of it cannot be understood, or the lines together.
    Line(LineFault),
}

impl TextError {
    /// Of a line, counted from 1; 0 for the file as a whole.
    pub fn new(line: usize, why: LineFault) -> Self {
        Self { line, why: TextFault::Line(why) }
    }
}

impl From<TextError> for FileFault {
    fn from(error: TextError) -> Self {
        match error.why {
            TextFault::NotText => FileFault::NotText,
            TextFault::Line(why) => FileFault::Line { line: error.line as u64, why },
        }
    }
}

/// A section: the lines before the first `[…]` are one without kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Section {
    /// First word in the brackets.
    pub kind: String,
    /// Second word.
    pub name: String,
    /// Where it begins.
    pub line: usize,
    /// Line, key, value.
    pub entries: Vec<(usize, String, String)>,
}

impl Section {
    /// Every value of a key.
    pub fn all(&self, key: &str) -> Vec<String> {
        self.entries.iter().filter(|(_, k, _)| k == key).map(|(_, _, v)| v.clone()).collect()
    }
    /// The value of a key that stands there once or not at all.
    pub fn one(&self, key: &str) -> Result<Option<String>, TextError> {
        let mut found = self.entries.iter().filter(|(_, k, _)| k == key);
        match (found.next(), found.next()) {
            (first, None) => Ok(first.map(|(_, _, v)| v.clone())),
            (_, Some((line, ..))) => Err(TextError::new(*line, LineFault::KeyTwice { key: key.into() })),
        }
    }
    /// The value of a key that must stand there once.
    pub fn must(&self, key: &str) -> Result<String, TextError> {
        self.one(key)?.ok_or_else(|| TextError::new(self.line, LineFault::KeyMissing { key: key.into() }))
    }
}

/// Cuts a file into sections, and refuses kinds and keys that are not in `known` (kind, its keys).
pub fn parse(bytes: &[u8], known: &[(&str, &[&str])]) -> Result<Vec<Section>, TextError> {
    let text = core::str::from_utf8(bytes).map_err(|_| TextError { line: 0, why: TextFault::NotText })?;
    let mut out = vec![Section { line: 1, ..Section::default() }];
    for (i, line) in text.lines().enumerate() {
        let (at, line) = (i + 1, line.trim());
        let error = |why| TextError::new(at, why);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(inner) = line.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or_else(|| error(LineFault::SectionOpen))?;
            let mut words = inner.split_whitespace();
            let (kind, name) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            if words.next().is_some() || name.is_empty() || !known.iter().any(|(k, _)| *k == kind) {
                return Err(error(LineFault::SectionUnknown { section: inner.into() }));
            }
            out.push(Section { kind: kind.into(), name: name.into(), line: at, entries: vec![] });
            continue;
        }
        let (key, value) = line.split_once('=').ok_or_else(|| error(LineFault::NoKey))?;
        let (key, value) = (key.trim(), value.trim());
        let section = out.last_mut().expect("there is always one");
        let keys = known.iter().find(|(k, _)| *k == section.kind).map_or(&[][..], |(_, keys)| keys);
        if !keys.contains(&key) {
            return Err(error(LineFault::KeyUnknown { key: key.into() }));
        }
        section.entries.push((at, key.into(), value.into()));
    }
    Ok(out)
}

/// Appends `key = value`.
pub fn line(out: &mut String, key: &str, value: &str) {
    assert!(!value.contains('\n'), "a value is one line");
    writeln!(out, "{key} = {value}").expect("writing to a string");
}

/// Appends `[kind name]`.
pub fn section(out: &mut String, kind: &str, name: &str) {
    writeln!(out, "\n[{kind} {name}]").expect("writing to a string");
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[(&str, &[&str])] = &[("", &["a"]), ("host", &["nqn"])];

    #[test]
    fn sections_and_keys_are_read_back() {
        let mut text = String::from("# a comment\n");
        line(&mut text, "a", "x = y # z");
        section(&mut text, "host", "esx1");
        line(&mut text, "nqn", "1");
        line(&mut text, "nqn", "2");
        let sections = parse(text.as_bytes(), KNOWN).expect("good");
        assert_eq!(sections[0].must("a").as_deref(), Ok("x = y # z"));
        assert_eq!((sections[1].kind.as_str(), sections[1].name.as_str()), ("host", "esx1"));
        assert_eq!(sections[1].all("nqn"), ["1", "2"]);
        assert_eq!(sections[1].one("nqn").map_err(|e| e.line), Err(6));
        assert_eq!(sections[1].must("b").map_err(|e| e.line), Err(4));
    }

    #[test]
    fn what_cannot_be_understood_is_told_with_its_line() {
        let line = |text: &[u8]| parse(text, KNOWN).map(|_| ()).map_err(|e| e.line);
        assert_eq!(line(b"a = 1\nb = 2"), Err(2));
        assert_eq!(line(b"nonsense"), Err(1));
        assert_eq!(line(b"[host esx1"), Err(1));
        assert_eq!(line(b"[host]"), Err(1));
        assert_eq!(line(b"[pool x]"), Err(1));
        assert_eq!(line(b"[host x y]"), Err(1));
        assert_eq!(line(b"\n[host x]\na = 1"), Err(3), "a key of another section");
        assert_eq!(line(b"\xff"), Err(0));
    }
}
