//! Options that several measurements have, and what their words mean.

use crate::arguments::size;
use clap::ValueEnum;
use load::Pattern;
use std::time::Duration;

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Mode {
    /// Reads at random places
    Randread,
    /// Writes at random places
    Randwrite,
    /// Both, at random places
    Randrw,
    /// Reads in order
    Read,
    /// Writes in order
    Write,
    /// Both, in order
    Rw,
}

impl Mode {
    /// Order of places, and reads among 100 operations if those of a mix are `mix`.
    pub fn shape(self, mix: u8) -> (Pattern, u8) {
        let pattern = match self {
            Mode::Randread | Mode::Randwrite | Mode::Randrw => Pattern::Random,
            Mode::Read | Mode::Write | Mode::Rw => Pattern::Sequential,
        };
        let reads = match self {
            Mode::Randread | Mode::Read => 100,
            Mode::Randwrite | Mode::Write => 0,
            Mode::Randrw | Mode::Rw => mix,
        };
        (pattern, reads)
    }
    /// The word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Randread => "randread",
            Mode::Randwrite => "randwrite",
            Mode::Randrw => "randrw",
            Mode::Read => "read",
            Mode::Write => "write",
            Mode::Rw => "rw",
        }
    }
}

/// A block size of the command line.
pub fn block(text: &str) -> Result<u32, String> {
    match size(text)? {
        bytes if bytes.is_multiple_of(512) && bytes <= u64::from(load::IO_BYTES_MAX) => Ok(bytes as u32),
        _ => Err(format!(
            "\"{text}\" is not a multiple of 512 of at most {}",
            base::size::print(load::IO_BYTES_MAX.into())
        )),
    }
}

/// A place in a volume.
pub fn offset(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text) }
}

/// Longest time that the command line takes, seconds: a year.
const SECONDS_MAX: f64 = 31_536_000.0;

/// `0.5`, `3`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is no number of seconds from 0 to {SECONDS_MAX}, like 0.5 or 3");
    let n: f64 = text.parse().map_err(|_| wrong())?;
    if (0.0..=SECONDS_MAX).contains(&n) { Ok(Duration::from_secs_f64(n)) } else { Err(wrong()) }
}

/// The same, and not none.
pub fn some_seconds(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|time| {
        if time < Duration::from_millis(10) {
            Err(format!("\"{text}\" is too short to measure anything: 0.01 or more"))
        } else {
            Ok(time)
        }
    })
}

/// The same, or 0, which stands for "until Ctrl-C".
pub fn some_or_no_end(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|time| if time.is_zero() { Ok(time) } else { some_seconds(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_and_refused_in_words() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["", "-1", "1e9", "ten", "inf", "NaN"] {
            assert!(seconds(text).expect_err(text).contains("number of seconds"), "{text}");
        }
        assert!(seconds("0").is_ok() && some_seconds("0").expect_err("no time").contains("too short"));
        assert_eq!(some_or_no_end("0"), Ok(Duration::ZERO));
        assert_eq!(some_or_no_end("0.5"), Ok(Duration::from_millis(500)));
        assert!(some_or_no_end("0.001").expect_err("too little time").contains("too short"));
    }
}
