//! A result: what was measured, on what machine, by which command. It is kept as JSON.

use super::drives::Drives;
use super::hosts::Hosts;
use super::ladder::Ladder;
use super::machine::Machine;
use super::sweep::Sweep;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A result, as `--json` prints it. Keys may be added.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Doc {
    /// `ladder`, `sweep`, `drives` or `hosts`.
    pub what: String,
    /// Seconds since 1970-01-01 UTC.
    pub at: u64,
    /// The command line.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// What a reader must be told: sentences.
    pub notes: Vec<String>,
    /// Of `bench ladder`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Ladder>,
    /// Of `bench sweep`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Of `bench drives`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drives: Option<Drives>,
    /// Of `bench hosts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
}

impl Doc {
    /// A result that begins now.
    pub fn begin(what: &str) -> Self {
        let machine = Machine::here();
        Self {
            what: what.into(),
            at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            command: command_line(std::env::args()),
            notes: machine.warnings(),
            machine,
            ..Self::default()
        }
    }
}

/// The words of a command line, so that a shell reads them again; the program by its name alone.
fn command_line(words: impl Iterator<Item = String>) -> String {
    let quoted = |word: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let named = |(i, word): (usize, String)| match (i, Path::new(&word).file_name()) {
        (0, Some(name)) => name.to_string_lossy().into_owned(),
        _ => word,
    };
    words.enumerate().map(named).map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_is_read() {
        let doc =
            Doc { notes: vec!["a note".into()], ladder: Some(Ladder::default()), ..Doc::begin("ladder") };
        let text = serde_json::to_string(&doc).expect("plain data");
        assert_eq!(serde_json::from_str::<Doc>(&text).expect("JSON"), doc);
    }

    #[test]
    fn a_command_line_can_be_pasted() {
        let words = ["/usr/bin/millrace", "bench", "it's", "a b", "--bs=4k", ""];
        let line = command_line(words.iter().map(|w| w.to_string()));
        assert_eq!(line, r#"millrace bench 'it'\''s' 'a b' --bs=4k ''"#);
    }
}
