//! A recording: the files of a machine that matter here, once or twice, as one small text.
//!
//! The text has a line for each fact, so that one which was cut off or changed by hand still gives what is left of it:
//!
//! ```text
//! millrace recording 1
//! anonymous no
//! reading 0
//! f /sys/block/nvme0n1/size 1953525168\n
//! l /sys/block/nvme0n1 /sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1
//! m /sys/bus/pci/devices/0000:01:00.0/config refused
//! reading 1000
//! f /proc/interrupts …
//! end
//! ```
//!
//! A second reading holds only what changes; its number is the milliseconds since the first. Looking through a machine
//! takes a while: `/millrace/clock` says of each reading when its parts were read. In paths and contents `\`
//! is written `\\`, a line break `\n`, a blank in a path `\s`. Lines that begin with another word are from a later
//! version and are skipped.

use crate::gap::Gap;
use std::collections::BTreeMap;

/// The version that is written. Later ones are read as far as they are understood.
pub const VERSION: u32 = 1;
/// Longest recording that is read, bytes.
pub const TEXT_MAX: usize = 256 << 20;
/// Most of one file that is kept, bytes: the interrupts of a machine with thousands of CPUs.
pub const FILE_MAX: usize = 16 << 20;
/// Most files of one reading.
pub const FILES_MAX: usize = 1_000_000;

/// Where files come from: a running machine, a folder that looks like one, a test.
pub trait Source {
    /// The content of a file, at most [`FILE_MAX`] bytes of it.
    fn read(&mut self, path: &str) -> Result<Vec<u8>, Missing>;
    /// The names in a folder, in any order; none if it cannot be listed.
    fn list(&mut self, path: &str) -> Vec<String>;
    /// The absolute path that a link leads to, None if it is not a link.
    fn link(&mut self, path: &str) -> Option<String>;
    /// The head's status as JSON, None if no head answers.
    fn status(&mut self) -> Option<String>;
    /// Microseconds by a clock that never goes back.
    fn now_us(&mut self) -> u64;
}

/// Where a reading keeps when its parts were read: a line for each, its word and microseconds.
pub(crate) const CLOCK: &str = "/millrace/clock";

/// Parts of a reading that are read at a time of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// Counters of Linux: drives, ports, interrupts, CPUs.
    Counters,
    /// What the head tells.
    Status,
    /// The time that the head's threads used.
    Threads,
}

impl Clock {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Clock::Counters => "counters",
            Clock::Status => "status",
            Clock::Threads => "threads",
        }
    }
}

/// Why a file has no content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Missing {
    /// It is not there.
    Absent,
    /// Reading it is not allowed to this user.
    Refused,
    /// It is there and could not be read: the device went, or does not know.
    Broken,
}

impl Missing {
    fn word(self) -> &'static str {
        match self {
            Missing::Absent => "absent",
            Missing::Refused => "refused",
            Missing::Broken => "broken",
        }
    }
}

/// The files at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Milliseconds since the first reading.
    pub ms: u64,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) links: BTreeMap<String, String>,
    pub(crate) missing: BTreeMap<String, Missing>,
}

/// What was read from a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recording {
    /// The version of its text.
    pub version: u32,
    /// Serial numbers, names and addresses were replaced before it was written.
    pub anonymous: bool,
    /// When it was made, as whoever made it says.
    pub at: String,
    /// Everything.
    pub first: Reading,
    /// What changes, some time later.
    pub second: Option<Reading>,
    /// What is wrong with the recording itself.
    pub gaps: Vec<Gap>,
}

/// Why a text is no recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordingError {
    /// Its first line is not `millrace recording N`.
    NotOne {
        /// The version that is written.
        known: u32,
    },
    /// It is longer than [`TEXT_MAX`].
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// So many are read.
        most: usize,
    },
}

impl Recording {
    /// Reads a recording from its text. What is damaged is left out and named in `gaps`.
    ///
    /// Errors: it is not the text of a recording at all.
    pub fn decode(text: &[u8]) -> Result<Self, RecordingError> {
        if text.len() > TEXT_MAX {
            return Err(RecordingError::TooLong { bytes: text.len(), most: TEXT_MAX });
        }
        let text = String::from_utf8_lossy(text);
        let mut lines = text.split_inclusive('\n');
        let head = lines.next().unwrap_or("").trim_end();
        let version = head.strip_prefix("millrace recording ").and_then(|n| n.parse().ok());
        let mut out =
            Self { version: version.ok_or(RecordingError::NotOne { known: VERSION })?, ..Self::default() };
        if out.version > VERSION {
            out.gaps.push(Gap::LaterVersion { version: out.version, known: VERSION });
        }
        let (mut ended, mut unknown, mut torn, mut surplus) = (false, 0usize, 0usize, 0usize);
        for line in lines {
            // The last line of a text that was cut off is a piece of one.
            let Some(line) = line.strip_suffix('\n') else {
                torn += 1;
                continue;
            };
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let reading = out.second.as_mut().unwrap_or(&mut out.first);
            let full = reading.files.len() + reading.links.len() + reading.missing.len() >= FILES_MAX;
            match (word, rest.split_once(' ').unwrap_or((rest, ""))) {
                ("f" | "l" | "m", _) if full => surplus += 1,
                ("f", (path, content)) if path.starts_with('/') => {
                    reading.files.insert(unescape(path), unescape(content));
                }
                ("l", (path, target)) if path.starts_with('/') && target.starts_with('/') => {
                    reading.links.insert(unescape(path), unescape(target));
                }
                ("m", (path, why)) if path.starts_with('/') => {
                    let why = match why {
                        "refused" => Missing::Refused,
                        "absent" => Missing::Absent,
                        _ => Missing::Broken,
                    };
                    reading.missing.insert(unescape(path), why);
                }
                ("reading", (ms, _)) => match ms.parse() {
                    Ok(0) => {}
                    Ok(ms) if out.second.is_none() => out.second = Some(Reading { ms, ..Reading::default() }),
                    _ => unknown += 1,
                },
                ("anonymous", (yes, _)) => out.anonymous = yes == "yes",
                ("at", _) => out.at = unescape(rest),
                ("end", _) => ended = true,
                ("", _) => {}
                (word, _) if word.starts_with('#') => {}
                _ => unknown += 1,
            }
        }
        if !ended || torn > 0 {
            out.gaps.push(Gap::CutOff);
        }
        if unknown > 0 && out.version <= VERSION {
            out.gaps.push(Gap::UnknownLines { lines: unknown });
        }
        if surplus > 0 {
            out.gaps.push(Gap::TooManyFiles { most: FILES_MAX, left_out: surplus });
        }
        Ok(out)
    }

    /// The text of this recording.
    pub fn encode(&self) -> String {
        let mut out = format!("millrace recording {VERSION}\n");
        out.push_str(&format!("anonymous {}\n", if self.anonymous { "yes" } else { "no" }));
        if !self.at.is_empty() {
            out.push_str(&format!("at {}\n", escape(&self.at, false)));
        }
        for reading in [Some(&self.first), self.second.as_ref()].into_iter().flatten() {
            out.push_str(&format!("reading {}\n", reading.ms));
            for (path, content) in &reading.files {
                out.push_str(&format!("f {} {}\n", escape(path, true), escape(content, false)));
            }
            for (path, target) in &reading.links {
                out.push_str(&format!("l {} {}\n", escape(path, true), escape(target, false)));
            }
            for (path, why) in &reading.missing {
                out.push_str(&format!("m {} {}\n", escape(path, true), why.word()));
            }
        }
        out + "end\n"
    }

    /// The whole content of a file in the first reading.
    pub fn file(&self, path: &str) -> Option<&str> {
        self.first.file(path)
    }

    /// A file's content without blanks at its ends, None if that is nothing.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.file(path).map(str::trim).filter(|t| !t.is_empty())
    }

    /// A file that holds a number, decimal or with 0x.
    pub fn number(&self, path: &str) -> Option<u64> {
        number(self.text(path)?)
    }

    /// A file's content at the second reading.
    pub fn later(&self, path: &str) -> Option<&str> {
        self.second.as_ref()?.file(path)
    }

    /// Seconds between the two readings, None if there are not two.
    pub fn seconds(&self) -> Option<f64> {
        self.second.as_ref().filter(|s| s.ms > 0).map(|s| s.ms as f64 / 1000.0)
    }

    /// Seconds between the two readings of one part; between the readings as a whole where they keep no such times.
    pub fn seconds_of(&self, which: Clock) -> Option<f64> {
        let whole = self.seconds()?;
        let own = self.second.as_ref().and_then(|s| s.clock(which)).zip(self.first.clock(which));
        let own = own.filter(|(after, before)| after > before);
        Some(own.map_or(whole, |(after, before)| (after - before) as f64 / 1e6))
    }

    /// Names below a folder, in their order.
    pub fn list(&self, folder: &str) -> Vec<String> {
        self.first.list(folder)
    }

    /// Where a link leads.
    pub fn link(&self, path: &str) -> Option<&str> {
        self.first.links.get(path).map(String::as_str)
    }

    /// The last part of where a link leads.
    pub fn link_name(&self, path: &str) -> Option<&str> {
        self.link(path)?.rsplit('/').next().filter(|n| !n.is_empty())
    }

    /// Why a file has no content.
    pub fn missing(&self, path: &str) -> Option<Missing> {
        self.first.missing.get(path).copied()
    }

    /// Puts a file in; for tests and for what does not come from a file.
    pub fn put(&mut self, path: &str, content: &str) {
        self.first.files.insert(path.into(), content.into());
    }

    /// Puts a link in.
    pub fn put_link(&mut self, path: &str, target: &str) {
        self.first.links.insert(path.into(), target.into());
    }

    /// Puts a file into the second reading, which is `ms` after the first.
    pub fn put_later(&mut self, ms: u64, path: &str, content: &str) {
        let second = self.second.get_or_insert_with(Reading::default);
        second.ms = ms.max(1);
        second.files.insert(path.into(), content.into());
    }
}

impl Reading {
    /// The whole content of a file.
    pub fn file(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// When a part of it was read, microseconds by the clock of whoever read it.
    pub(crate) fn clock(&self, which: Clock) -> Option<u64> {
        let mut lines = self.file(CLOCK)?.lines();
        lines.find_map(|l| l.strip_prefix(which.word())?.trim().parse().ok())
    }

    /// Names below a folder, each once, in their order.
    pub fn list(&self, folder: &str) -> Vec<String> {
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        let mut names: Vec<String> = Vec::new();
        let files = self.files.range(prefix.clone()..).map(|(path, _)| path);
        let links = self.links.range(prefix.clone()..).map(|(path, _)| path);
        let missing = self.missing.range(prefix.clone()..).map(|(path, _)| path);
        let mut take = |paths: &mut dyn Iterator<Item = &String>| {
            for path in paths {
                let Some(rest) = path.strip_prefix(&prefix) else { break };
                let name = rest.split('/').next().unwrap_or("");
                if !name.is_empty() && names.last().is_none_or(|last| last != name) {
                    names.push(name.into());
                }
            }
        };
        take(&mut files.into_iter());
        take(&mut links.into_iter());
        take(&mut missing.into_iter());
        names.sort();
        names.dedup();
        names
    }
}

/// A number as sysfs writes them: decimal, or hexadecimal after 0x.
pub(crate) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The members of a list such as `0-3,8`, at most [`MEMBERS_MAX`]; those that are no numbers are left out.
pub(crate) fn members(list: &str) -> Vec<u32> {
    let mut out = Vec::new();
    for part in list.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (Ok(from), Ok(to)) = (from.trim().parse::<u32>(), to.trim().parse::<u32>()) else { continue };
        let room = MEMBERS_MAX.saturating_sub(out.len());
        out.extend((from..=to).take(room));
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// Most members of a list of CPUs: four times what Linux can have.
pub(crate) const MEMBERS_MAX: usize = 32_768;

/// Bytes as a recording keeps them: two hexadecimal digits for each, in small letters.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A list of numbers as the kernel writes them: `0-3,8`.
pub fn ranges(numbers: &[u32]) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < numbers.len() {
        let mut end = at;
        while end + 1 < numbers.len() && numbers[end + 1] == numbers[end].wrapping_add(1) {
            end += 1;
        }
        out.push(match end - at {
            0 => numbers[at].to_string(),
            _ => format!("{}-{}", numbers[at], numbers[end]),
        });
        at = end + 1;
    }
    out.join(",")
}

fn escape(text: &str, path: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            ' ' if path => out.push_str("\\s"),
            c => out.push(c),
        }
    }
    out
}

fn unescape(text: &str) -> String {
    let (mut out, mut chars) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('s') => ' ',
                Some(other) => other,
                None => '\\',
            },
            c => c,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_reads_back_as_it_was() {
        let mut recording = Recording { version: VERSION, at: "now".into(), ..Recording::default() };
        recording.put("/a b/c\\d", "one\ntwo \\n three\n");
        recording.put("/e", "");
        recording.put_link("/l", "/a b");
        recording.first.missing.insert("/m".into(), Missing::Refused);
        recording.put_later(1000, "/e", "5");
        assert_eq!(Recording::decode(recording.encode().as_bytes()), Ok(recording));
    }

    #[test]
    fn what_was_cut_off_is_named_and_the_rest_is_there() {
        let mut recording = Recording { version: VERSION, ..Recording::default() };
        recording.put("/a", "1");
        recording.put("/b", "2");
        let text = recording.encode();
        let cut = &text[..text.find("f /b").expect("written") + 5];
        let got = Recording::decode(cut.as_bytes()).expect("a recording");
        assert_eq!((got.number("/a"), got.file("/b")), (Some(1), None));
        assert_eq!(got.gaps, [Gap::CutOff]);
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_understood() {
        let got =
            Recording::decode(b"millrace recording 9\nphoto /a xyz\nf /a 1\nend of all\n").expect("one");
        assert_eq!(got.number("/a"), Some(1));
        assert_eq!(got.gaps, [Gap::LaterVersion { version: 9, known: VERSION }]);
        assert_eq!(Recording::decode(b"\x7fELF"), Err(RecordingError::NotOne { known: VERSION }));
        assert_eq!(Recording::decode(b""), Err(RecordingError::NotOne { known: VERSION }));
    }

    #[test]
    fn folders_are_made_of_paths() {
        let mut recording = Recording::default();
        for path in ["/s/b/x", "/s/a/x", "/s/a/y", "/s-t/z", "/s/c"] {
            recording.put(path, "");
        }
        recording.put_link("/s/d", "/s/a");
        assert_eq!(recording.list("/s"), ["a", "b", "c", "d"]);
        assert_eq!(recording.list("/none"), [""; 0]);
    }

    #[test]
    fn lists_of_cpus_are_read_and_written_and_have_an_end() {
        assert_eq!(members("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(members("3,x,1-,5-4"), [3]);
        assert_eq!(members("0-4294967295").len(), MEMBERS_MAX);
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(ranges(&[]), "");
    }
}
