//! Sizes as people write them: `64K`, `400G`, `1.5T`. K, M, G, T and P are powers of 1024.

use serde::{Deserialize, Serialize};

/// Powers of 1024 and their letters, largest first.
const UNITS: [(u64, char); 5] =
    [(1 << 50, 'P'), (1 << 40, 'T'), (1 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')];

/// Why a text is no size.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum SizeFault {
    /// No number with a unit.
    NotASize { text: String },
    /// 2^63 bytes or more.
    TooLarge { text: String },
    /// Not a whole number of bytes.
    Fraction { text: String },
    /// No byte at all.
    Nothing { text: String },
}

/// The bytes that `text` means.
///
/// Errors: why it is none. A size of 0 is refused, and so are sizes of 2^63 bytes and more (no block
/// device has them) and fractions of a byte.
pub fn parse(text: &str) -> Result<u64, SizeFault> {
    let wrong = || SizeFault::NotASize { text: text.into() };
    let (number, unit) = split_unit(text.trim()).ok_or_else(wrong)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || number.contains('.') && !digits(fraction) || fraction.len() > 9 {
        return Err(wrong());
    }
    let large = || SizeFault::TooLarge { text: text.into() };
    let scale = 10u128.pow(fraction.len() as u32);
    let whole: u128 = whole.parse().map_err(|_| large())?;
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| large())? };
    let scaled = whole.checked_mul(scale).and_then(|n| n.checked_add(fraction)).ok_or_else(large)?;
    let bytes = scaled.checked_mul(u128::from(unit)).ok_or_else(large)?;
    if bytes % scale != 0 {
        return Err(SizeFault::Fraction { text: text.into() });
    }
    match bytes / scale {
        0 => Err(SizeFault::Nothing { text: text.into() }),
        bytes if bytes >= 1 << 63 => Err(large()),
        bytes => Ok(bytes as u64),
    }
}

/// Number and unit: `400G`, `400GB`, `400GiB`, `400`.
fn split_unit(text: &str) -> Option<(&str, u64)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start().to_ascii_uppercase();
    let letter = unit.strip_suffix("IB").or_else(|| unit.strip_suffix('B')).unwrap_or(&unit);
    let scale = match letter {
        "" => 1,
        _ => UNITS.iter().find(|(_, l)| letter == l.to_string())?.0,
    };
    Some((number, scale))
}

/// `bytes` as people read them, exactly where that is short (`400G`), else to the nearest digit (`931.5G`).
pub fn print(bytes: u64) -> String {
    print_with(bytes, |scale| scale / 2)
}

/// The same of space that is free, rounded down: what is not there must not be promised.
pub fn print_free(bytes: u64) -> String {
    print_with(bytes, |_| 0)
}

/// The same of space that is needed, rounded up, so that a drive of the printed size is large enough.
pub fn print_needed(bytes: u64) -> String {
    print_with(bytes, |scale| scale - 1)
}

/// `more`: what is added to ten times the bytes before they are cut, of a unit.
fn print_with(bytes: u64, more: impl Fn(u64) -> u64) -> String {
    let tenths = |scale: u64| ((u128::from(bytes) * 10 + u128::from(more(scale))) / u128::from(scale)) as u64;
    // What rounds to 1024 of a unit is one of the next.
    let unit = UNITS.into_iter().enumerate().find(|(i, (scale, _))| {
        bytes >= *scale || UNITS.get(i + 1).is_some_and(|(below, _)| tenths(*below) >= 10_240)
    });
    let Some((_, (scale, letter))) = unit else { return format!("{bytes}B") };
    match (tenths(scale) / 10, tenths(scale) % 10) {
        (whole, 0) => format!("{whole}{letter}"),
        (whole, tenth) => format!("{whole}.{tenth}{letter}"),
    }
}

/// `count` as people read it, in powers of 1000: `950`, `12.3k`, `1.2M`.
pub fn print_count(count: u64) -> String {
    for (scale, letter) in [(1_000_000_000, 'G'), (1_000_000, 'M'), (1000, 'k')] {
        if count >= scale {
            let tenths = (u128::from(count) * 10 / u128::from(scale)) as u64;
            return match tenths {
                1000.. => format!("{}{letter}", tenths / 10),
                _ => format!("{}.{}{letter}", tenths / 10, tenths % 10),
            };
        }
    }
    count.to_string()
}

/// Bytes a second as people read them, in powers of 1000: `812 MB/s`.
pub fn print_rate(bytes_per_second: u64) -> String {
    match bytes_per_second {
        0..1000 => format!("{bytes_per_second} B/s"),
        1000..1_000_000 => format!("{} kB/s", bytes_per_second / 1000),
        1_000_000..10_000_000_000 => format!("{} MB/s", bytes_per_second / 1_000_000),
        _ => format!("{:.1} GB/s", bytes_per_second as f64 / 1e9),
    }
}

/// A short time as people read it: `0.4 µs`, `85 µs`, `1.2 ms`, `25 s`.
pub fn print_ns(ns: u64) -> String {
    let us = ns as f64 / 1e3;
    match us {
        ..0.05 => "0 µs".into(),
        ..9.95 => format!("{us:.1} µs"),
        ..999.5 => format!("{us:.0} µs"),
        ..9_995.0 => format!("{:.1} ms", us / 1e3),
        ..999_500.0 => format!("{:.0} ms", us / 1e3),
        ..9_995_000.0 => format!("{:.1} s", us / 1e6),
        _ => format!("{:.0} s", us / 1e6),
    }
}

/// Seconds as people read them: `45 s`, `2 min 5 s`, `3 h 20 min`, `4 d 2 h`.
pub fn print_seconds(seconds: u64) -> String {
    let two = |big: u64, big_word: &str, small: u64, small_word: &str| match small {
        0 => format!("{big} {big_word}"),
        _ => format!("{big} {big_word} {small} {small_word}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => two(seconds / 60, "min", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds / 60 % 60, "min"),
        _ => two(seconds / 86_400, "d", seconds / 3600 % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_print_as_they_parse() {
        for (text, bytes) in [
            ("1", 1),
            ("512", 512),
            ("64K", 65536),
            ("64k", 65536),
            ("64KiB", 65536),
            ("400G", 400 << 30),
            ("400 GB", 400 << 30),
            ("1.5T", 3 << 39),
            ("8191P", 8191 << 50),
            (" 2M ", 2 << 20),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["64K", "400G", "1.5T", "3P", "17M"] {
            assert_eq!(print(parse(text).expect("a size")), text);
        }
        assert_eq!(print(1_000_204_886_016), "931.5G");
        assert_eq!(print(1023), "1023B");
        // To the nearest, but for what is free.
        assert_eq!((print(1_920_383_410_176), print_free(1_920_383_410_176)), ("1.7T".into(), "1.7T".into()));
        assert_eq!((print((5 << 30) - 1), print_free((5 << 30) - 1)), ("5G".into(), "4.9G".into()));
        assert_eq!((print((1 << 40) - 1), print_free((1 << 40) - 1)), ("1T".into(), "1023.9G".into()));
        assert_eq!((print_needed(5 << 30), print_needed((5 << 30) + 1)), ("5G".into(), "5.1G".into()));
        assert_eq!((print((1 << 20) - 1), print(u64::MAX)), ("1M".into(), "16384P".into()));
        assert_eq!((print(0), print(1024), print(1075)), ("0B".into(), "1K".into(), "1K".into()));
        assert_eq!(parse(&print(1023)), Ok(1023));
    }

    #[test]
    fn what_is_not_a_size_is_refused() {
        for text in ["", "G", "-1", "-1G", "1e3", "ten", "1..5G", "1.G", ".5G", "4X", "0x10", "1G1", "1.1"] {
            let bad = matches!(parse(text), Err(SizeFault::NotASize { .. } | SizeFault::Fraction { .. }));
            assert!(bad, "{text}");
        }
        for text in ["0", "0G"] {
            assert_eq!(parse(text), Err(SizeFault::Nothing { text: text.into() }));
        }
        for text in [
            "18446744073709551616",
            "18446744073709551615",
            "8192P",
            "99999999999999999999999999999999999999999P",
        ] {
            assert_eq!(parse(text), Err(SizeFault::TooLarge { text: text.into() }));
        }
    }

    #[test]
    fn counts_rates_and_times_are_short() {
        assert_eq!(print_count(999), "999");
        assert_eq!(print_count(12_345), "12.3k");
        assert_eq!(print_count(812_345), "812k");
        assert_eq!(print_count(1_234_567), "1.2M");
        assert_eq!(print_rate(812_000_000), "812 MB/s");
        assert_eq!(print_rate(12_340_000_000), "12.3 GB/s");
        let short = [0, 430, 9_960, 84_900, 999_700, 1_240_000, 25_300_000, 999_700_000, 25_000_000_000]
            .map(print_ns);
        assert_eq!(short, ["0 µs", "0.4 µs", "10 µs", "85 µs", "1.0 ms", "1.2 ms", "25 ms", "1.0 s", "25 s"]);
        assert_eq!(print_seconds(125), "2 min 5 s");
        assert_eq!(print_seconds(3600), "1 h");
        assert_eq!(print_seconds(90_000), "1 d 1 h");
    }
}
