//! Moments as texts, by the calendar.

/// A time as `YYYY-MM-DDThh:mm:ssZ` (RFC 3339). Years beyond 9999 are printed as 9999.
pub fn text(unix_seconds: u64) -> [u8; 20] {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Years are counted from March, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = (era * 400 + year_of_era + u64::from(month <= 2)).min(9999);
    let mut out = *b"0000-00-00T00:00:00Z";
    let mut put = |at: usize, digits: usize, mut value: u64| {
        for i in (0..digits).rev() {
            out[at + i] = b'0' + (value % 10) as u8;
            value /= 10;
        }
    };
    put(0, 4, year);
    put(5, 2, month);
    put(8, 2, day);
    put(11, 2, second / 3600);
    put(14, 2, second / 60 % 60);
    put(17, 2, second % 60);
    out
}

/// Reads what `text` wrote; None for anything else.
pub fn seconds(text: &str) -> Option<u64> {
    let digits = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let second = digits(11, 13)? * 3600 + digits(14, 16)? * 60 + digits(17, 19)?;
    // Years are counted from March, as in `text`.
    let from_march = year.checked_sub(u64::from(month <= 2))?;
    let month_from_march = (month + 9) % 12;
    let days = from_march * 365 + from_march / 4 - from_march / 100 + from_march / 400;
    let days = (days + (153 * month_from_march + 2) / 5 + day).checked_sub(719_469)?;
    let found = days * 86_400 + second;
    (self::text(found) == *text.as_bytes()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_were_written() {
        for (at, text_of) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_795_224_873, "2026-11-21T01:34:33Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(core::str::from_utf8(&text(at)), Ok(text_of));
            assert_eq!(seconds(text_of), Some(at));
        }
        assert!(text(u64::MAX / 2).starts_with(b"9999-"), "it fits its place");
        for bad in [
            "",
            "yesterday",
            "2026-11-21 01:34:33Z",
            "2026-11-21T01:34:3éZ",
            "2026-11-21",
            "2026-13-21T01:21:13Z",
            "2026-02-30T01:21:13Z",
            "2026-11-21T01:21:13+",
        ] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
