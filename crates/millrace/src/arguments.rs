//! What words of a command line mean: sizes, counts, and the names of volumes and drives.

use crate::client::segment;
use crate::words::machine::size_fault;
use api::{Drive, Secret};
use core::ops::RangeInclusive;
use std::io::Read;

/// A count as people write it: `500`, `5k`, `1.5M`. Here k, M and G are powers of 1000; in sizes they are powers of 1024.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "\"{text}\" is not a number: write digits, with k, M or G behind them if you like, such as 5k"
        )
    };
    let (number, scale) = match text.strip_suffix(['k', 'K', 'M', 'm', 'G', 'g']) {
        None => (text, 1),
        Some(number) => match text.as_bytes()[number.len()] {
            b'k' | b'K' => (number, 1000),
            b'm' | b'M' => (number, 1_000_000),
            _ => (number, 1_000_000_000),
        },
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |s: &str| !s.is_empty() && s.len() <= 20 && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(wrong());
    }
    let parts = 10u128.pow(fraction.len() as u32);
    let [whole, fraction]: [u128; 2] = [whole, fraction].map(|s| s.parse().expect("at most 20 digits fit"));
    let all = (whole * parts + fraction) * scale;
    if !all.is_multiple_of(parts) {
        return Err(format!("\"{text}\" is not a whole number"));
    }
    u64::try_from(all / parts).map_err(|_| format!("\"{text}\" is too large"))
}

/// The parser of a count that lies in `range`.
pub fn count_in<T: TryFrom<u64> + Clone + Send + Sync + 'static>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let wrong = || format!("\"{text}\" is not a number from {} to {}", range.start(), range.end());
        let n = count(text).ok().filter(|n| range.contains(n)).ok_or_else(wrong)?;
        T::try_from(n).map_err(|_| wrong())
    }
}

/// A span of time as people write it, in seconds: `90s`, `15m`, `4h`, `2d`, `1w`.
pub fn span(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\" is not a span of time: write 90s, 15m, 4h, 2d or 1w");
    let unit = match text.as_bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3600,
        Some(b'd') => 86_400,
        Some(b'w') => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let digits = &text[..text.len() - 1];
    let n: u64 = digits.parse().ok().filter(|_| !digits.starts_with('+')).ok_or_else(wrong)?;
    n.checked_mul(unit).ok_or_else(wrong)
}

/// A size argument, or a sentence.
pub fn size(text: &str) -> Result<u64, String> {
    base::size::parse(text).map_err(|fault| size_fault(&fault))
}

/// A size argument of at most 4 GiB - 1.
pub fn small_size(text: &str) -> Result<u32, String> {
    let bytes = size(text)?;
    u32::try_from(bytes).map_err(|_| format!("\"{text}\" is too large here: sizes end below 4G"))
}

/// `pool/volume` split, or a sentence.
pub fn volume_name(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((pool, volume)) if !pool.is_empty() && !volume.is_empty() && !volume.contains('/') => {
            Ok(text.to_string())
        }
        _ => Err(format!("\"{text}\" does not name a volume: write POOL/VOLUME, such as tank/vm1")),
    }
}

/// The path of a volume's resource.
pub fn volume_path(name: &str) -> String {
    let (pool, volume) = name.split_once('/').expect("checked by `volume_name`");
    format!("/volumes/{}/{}", segment(pool), segment(volume))
}

/// The daemon has another working directory: paths are made absolute here. `sdb` means `/dev/sdb`
/// unless a file of that name lies here.
pub fn drive_path(text: &str) -> String {
    if text.starts_with("shape:")
        && let Some((shape, drive)) = text.split_once('@')
    {
        return format!("{shape}@{}", drive_path(drive));
    }
    let special = ["ram:", "null:", "file:/", "block:/"].iter().any(|prefix| text.starts_with(prefix));
    if special || text.starts_with('/') || text.is_empty() {
        return text.to_string();
    }
    if let Some(kind) = ["file:", "block:"].into_iter().find(|kind| text.starts_with(kind)) {
        let rest = &text[kind.len()..];
        return std::path::absolute(rest)
            .map_or_else(|_| text.to_string(), |p| format!("{kind}{}", p.display()));
    }
    let device = format!("/dev/{text}");
    if !std::path::Path::new(text).exists() && std::path::Path::new(&device).exists() {
        return device;
    }
    std::path::absolute(text).map_or_else(|_| text.to_string(), |p| p.display().to_string())
}

/// 512 or 4096, written as either.
pub fn block_size(text: &str) -> Result<u32, String> {
    match base::size::parse(text) {
        Ok(512) => Ok(512),
        Ok(4096) => Ok(4096),
        _ => Err(format!("\"{text}\" is not a block size: 512 or 4096")),
    }
}

/// The drive's path, or its UUID if the path is not known.
pub fn drive_name(drive: &Drive) -> String {
    match &drive.uuid {
        Some(uuid) if drive.path.is_empty() => uuid.to_string(),
        _ => drive.path.clone(),
    }
}

/// The secret in a file, or on stdin for `-`, without the line break at its end; or why there is none.
pub fn read_secret(file: &str) -> Result<Secret, String> {
    // A secret is at most 255 bytes (RFC 7143 12.1.3); more is read only to say that it is too much.
    const MOST: u64 = 4096;
    let mut bytes = Vec::new();
    let read = match file {
        "-" => std::io::stdin().lock().take(MOST).read_to_end(&mut bytes),
        _ => std::fs::File::open(file).and_then(|f| f.take(MOST).read_to_end(&mut bytes)),
    };
    read.map_err(|e| e.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not text")?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if text.contains(['\r', '\n']) {
        // One of the lines is meant, and none says which.
        return Err("it has several lines, and a secret is one".into());
    }
    Ok(Secret(text.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_a_unit() {
        for (text, seconds) in
            [("90s", 90), ("15m", 900), ("4h", 14_400), ("2d", 172_800), ("1w", 604_800), ("0s", 0)]
        {
            assert_eq!(span(text), Ok(seconds), "{text}");
        }
        for text in ["", "s", "4", "4 h", "-4h", "+4h", "1.5h", "4H", "99999999999999999999d", "é"] {
            assert!(span(text).expect_err(text).contains("not a span of time"), "{text}");
        }
    }

    #[test]
    fn counts_are_decimal_and_refused_in_words() {
        for (text, n) in
            [("0", 0), ("500", 500), ("5k", 5000), ("5K", 5000), ("1.5M", 1_500_000), ("2G", 2_000_000_000)]
        {
            assert_eq!(count(text), Ok(n), "{text}");
        }
        for text in ["", "k", "-1", "+1", "5kk", "5 k", "1.", ".5", "ten", "5T", "5é"] {
            assert!(count(text).expect_err(text).contains("is not a number"), "{text}");
        }
        assert!(count("1.5").expect_err("half").contains("whole number"));
        assert!(count("99999999999999999999G").expect_err("large").contains("too large"));
        assert_eq!(count_in::<u16>(1..=1023)("1k"), Ok(1000));
        assert_eq!(count_in::<u16>(1..=1023)("2k"), Err("\"2k\" is not a number from 1 to 1023".into()));
        assert_eq!(count_in::<u8>(0..=1000)("300"), Err("\"300\" is not a number from 0 to 1000".into()));
    }
}
