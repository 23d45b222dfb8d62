//! Text mode: `key=value` pairs, values, and the rules by which two offers become one result (RFC 7143 6, 13).

/// Longest key, bytes (RFC 7143 6.1).
pub const KEY_BYTES_MAX: usize = 63;
/// Longest value, bytes (RFC 7143 6.1: 255 unless the key says more; large binary values are longer).
pub const VALUE_BYTES_MAX: usize = 8192;

/// Names of keys (RFC 7143 12 and 13, RFC 7144 7).
pub mod key {
    #![allow(missing_docs, reason = "each constant is the key of its name")]
    pub const AUTH_METHOD: &str = "AuthMethod";
    pub const CHAP_A: &str = "CHAP_A";
    pub const CHAP_C: &str = "CHAP_C";
    pub const CHAP_I: &str = "CHAP_I";
    pub const CHAP_N: &str = "CHAP_N";
    pub const CHAP_R: &str = "CHAP_R";
    pub const DATA_DIGEST: &str = "DataDigest";
    pub const DATA_PDU_IN_ORDER: &str = "DataPDUInOrder";
    pub const DATA_SEQUENCE_IN_ORDER: &str = "DataSequenceInOrder";
    pub const DEFAULT_TIME2RETAIN: &str = "DefaultTime2Retain";
    pub const DEFAULT_TIME2WAIT: &str = "DefaultTime2Wait";
    pub const ERROR_RECOVERY_LEVEL: &str = "ErrorRecoveryLevel";
    pub const FIRST_BURST_LENGTH: &str = "FirstBurstLength";
    pub const HEADER_DIGEST: &str = "HeaderDigest";
    pub const IF_MARKER: &str = "IFMarker";
    pub const IF_MARK_INT: &str = "IFMarkInt";
    pub const IMMEDIATE_DATA: &str = "ImmediateData";
    pub const INITIAL_R2T: &str = "InitialR2T";
    pub const INITIATOR_ALIAS: &str = "InitiatorAlias";
    pub const INITIATOR_NAME: &str = "InitiatorName";
    pub const MAX_BURST_LENGTH: &str = "MaxBurstLength";
    pub const MAX_CONNECTIONS: &str = "MaxConnections";
    pub const MAX_OUTSTANDING_R2T: &str = "MaxOutstandingR2T";
    pub const MAX_RECV_DATA_SEGMENT_LENGTH: &str = "MaxRecvDataSegmentLength";
    pub const OF_MARKER: &str = "OFMarker";
    pub const OF_MARK_INT: &str = "OFMarkInt";
    pub const PROTOCOL_LEVEL: &str = "iSCSIProtocolLevel";
    pub const SEND_TARGETS: &str = "SendTargets";
    pub const SESSION_TYPE: &str = "SessionType";
    pub const TARGET_ADDRESS: &str = "TargetAddress";
    pub const TARGET_ALIAS: &str = "TargetAlias";
    pub const TARGET_NAME: &str = "TargetName";
    pub const TARGET_PORTAL_GROUP_TAG: &str = "TargetPortalGroupTag";
    pub const TASK_REPORTING: &str = "TaskReporting";
}

/// The answer to a key that is not known.
pub const NOT_UNDERSTOOD: &str = "NotUnderstood";
/// The answer to a value that cannot be accepted.
pub const REJECT: &str = "Reject";
/// The answer to a key that means nothing here.
pub const IRRELEVANT: &str = "Irrelevant";

/// The text is not made of `key=value` pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadText;

/// One pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair<'a> {
    /// Key: a letter, then letters, digits and `.-+@_`.
    pub key: &'a str,
    /// Value, possibly empty.
    pub value: &'a str,
}

/// The pairs of a whole text (all continued PDUs together). Ends after the first error.
pub fn pairs(mut text: &[u8]) -> impl Iterator<Item = Result<Pair<'_>, BadText>> {
    core::iter::from_fn(move || {
        // Senders may end with more than one NUL; nothing lies between two of them.
        while let [0, rest @ ..] = text {
            text = rest;
        }
        if text.is_empty() {
            return None;
        }
        let pair = (|| {
            let end = text.iter().position(|b| *b == 0)?;
            let one = core::str::from_utf8(&text[..end]).ok()?;
            let (key, value) = one.split_once('=')?;
            let key_char = |c: u8| c.is_ascii_alphanumeric() || b".-+@_".contains(&c);
            let good = (1..=KEY_BYTES_MAX).contains(&key.len())
                && key.as_bytes()[0].is_ascii_alphabetic()
                && key.bytes().all(key_char)
                && value.len() <= VALUE_BYTES_MAX;
            good.then_some((Pair { key, value }, end + 1))
        })();
        match pair {
            Some((pair, used)) => {
                text = &text[used..];
                Some(Ok(pair))
            }
            None => {
                text = &[];
                Some(Err(BadText))
            }
        }
    })
}

/// Appends `key=value` and its NUL.
pub fn put(out: &mut Vec<u8>, key: &str, value: &str) {
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// Appends `key=number`.
pub fn put_number(out: &mut Vec<u8>, key: &str, value: u64) {
    put(out, key, &value.to_string());
}

/// Appends `key=Yes` or `key=No`.
pub fn put_bool(out: &mut Vec<u8>, key: &str, value: bool) {
    put(out, key, if value { "Yes" } else { "No" });
}

/// Appends `key=0x…`.
pub fn put_binary(out: &mut Vec<u8>, key: &str, value: &[u8]) {
    let mut text = String::with_capacity(2 + 2 * value.len());
    text.push_str("0x");
    for b in value {
        for digit in [b >> 4, b & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    put(out, key, &text);
}

/// A number: decimal, or hexadecimal after `0x` (RFC 7143 6.1).
pub fn number(value: &str) -> Option<u64> {
    let (digits, radix) = match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (value, 10),
    };
    // `from_str_radix` would take a sign.
    if digits.is_empty() || !digits.bytes().all(|b| char::from(b).is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// `Yes` or `No`.
pub fn boolean(value: &str) -> Option<bool> {
    match value {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

/// A binary value: hexadecimal after `0x`, base64 after `0b` (RFC 7143 6.1); at most `bytes_max` bytes.
pub fn binary(value: &str, bytes_max: usize) -> Option<Vec<u8>> {
    let prefix = value.get(..2)?;
    let digits = &value.as_bytes()[2..];
    if digits.is_empty() || digits.len() > 2 * bytes_max {
        return None;
    }
    let bytes = match prefix {
        "0x" | "0X" => {
            // An odd number of digits has a leading zero that was left out.
            let nibble = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
            let (first, rest) = digits.split_at(digits.len() % 2);
            let mut out = Vec::with_capacity(digits.len() / 2 + 1);
            for b in first {
                out.push(nibble(*b)?);
            }
            for pair in rest.chunks(2) {
                out.push(nibble(pair[0])? << 4 | nibble(pair[1])?);
            }
            out
        }
        "0b" | "0B" => base64(digits)?,
        _ => return None,
    };
    (bytes.len() <= bytes_max).then_some(bytes)
}

fn base64(digits: &[u8]) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let used = digits.len() - digits.iter().rev().take_while(|b| **b == b'=').count();
    if digits.len() - used > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(used * 3 / 4);
    let (mut bits, mut have) = (0u32, 0);
    for b in &digits[..used] {
        let six = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        have += 6;
        if have >= 8 {
            have -= 8;
            out.push((bits >> have) as u8);
            bits &= (1 << have) - 1;
        }
    }
    // RFC 4648 3.5: bits that are left over are zero.
    (bits == 0).then_some(out)
}

/// The first of the offered `list` that is also in `ours` (RFC 7143 6.2.1).
pub fn choose<'a>(list: &str, ours: &[&'a str]) -> Option<&'a str> {
    list.split(',').find_map(|offer| ours.iter().find(|o| **o == offer).copied())
}

/// What the two sides of a session have agreed upon (RFC 7143 13); the default is what holds unsaid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// HeaderDigest is CRC32C.
    pub header_digest: bool,
    /// DataDigest is CRC32C.
    pub data_digest: bool,
    /// The longest data segment that the *peer* takes, bytes.
    pub peer_max_recv: u32,
    /// MaxBurstLength, bytes.
    pub max_burst: u32,
    /// FirstBurstLength, bytes.
    pub first_burst: u32,
    /// InitialR2T.
    pub initial_r2t: bool,
    /// ImmediateData.
    pub immediate_data: bool,
    /// MaxOutstandingR2T.
    pub max_outstanding_r2t: u16,
    /// DefaultTime2Wait, seconds.
    pub time2wait: u16,
    /// DefaultTime2Retain, seconds.
    pub time2retain: u16,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            header_digest: false,
            data_digest: false,
            peer_max_recv: 8192,
            max_burst: 262_144,
            first_burst: 65_536,
            initial_r2t: true,
            immediate_data: true,
            max_outstanding_r2t: 1,
            time2wait: 2,
            time2retain: 20,
        }
    }
}

/// The range of the segment and burst lengths (RFC 7143 13.12 to 13.14), bytes.
pub const LENGTH_RANGE: core::ops::RangeInclusive<u64> = 512..=0xff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_and_written_back() {
        let mut out = vec![];
        put(&mut out, "InitiatorName", "iqn.2026-01.org.example:a=b");
        put_number(&mut out, "MaxBurstLength", 512);
        put_bool(&mut out, "InitialR2T", false);
        put(&mut out, "X-empty", "");
        let found: Vec<_> = pairs(&out).map(|p| p.map(|p| (p.key, p.value))).collect();
        let want = [
            Ok(("InitiatorName", "iqn.2026-01.org.example:a=b")),
            Ok(("MaxBurstLength", "512")),
            Ok(("InitialR2T", "No")),
            Ok(("X-empty", "")),
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn texts_that_are_not_pairs_are_refused() {
        for bad in [&b"novalue\0"[..], b"=x\0", b"1a=x\0", b"a b=x\0", b"a=unterminated", b"a=\xff\0"] {
            assert_eq!(pairs(bad).last(), Some(Err(BadText)), "{bad:?}");
        }
        let long = [vec![b'k'; 64], b"=1\0".to_vec()].concat();
        assert_eq!(pairs(&long).last(), Some(Err(BadText)));
        assert_eq!(pairs(b"\0\0").count(), 0);
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal_and_nothing_else() {
        assert_eq!(number("262144"), Some(262_144));
        assert_eq!(number("0x1F"), Some(31));
        for bad in ["", "0x", "+5", "-1", "1k", "99999999999999999999", "0x1g"] {
            assert_eq!(number(bad), None, "{bad}");
        }
        assert_eq!(boolean("yes"), None);
    }

    #[test]
    fn binary_values_come_in_two_alphabets() {
        assert_eq!(binary("0x0102ff", 8), Some(vec![1, 2, 255]));
        assert_eq!(binary("0x102", 8), Some(vec![1, 2]));
        assert_eq!(binary("0bAQL/", 8), Some(vec![1, 2, 255]));
        assert_eq!(binary("0bAQ==", 8), Some(vec![1]));
        for bad in
            ["", "0", "0x", "0b", "0bAQ", "0bA===", "0bAR==", "0b****", "0xzz", "zz00", "0x010203", "é0"]
        {
            assert_eq!(binary(bad, 2), None, "{bad}");
        }
        let mut out = vec![];
        put_binary(&mut out, "CHAP_C", &[1, 0xab]);
        assert_eq!(out, b"CHAP_C=0x01ab\0");
    }

    #[test]
    fn the_offerers_order_decides() {
        assert_eq!(choose("CRC32C,None", &["None", "CRC32C"]), Some("CRC32C"));
        assert_eq!(choose("Other", &["None"]), None);
    }
}
