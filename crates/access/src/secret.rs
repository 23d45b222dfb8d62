//! CHAP secrets: how long, and how they are written in files.

use base::view::Secret;
use finding::SecretFault;

/// Shortest secret, bytes: 96 bits (RFC 7143 12.1.3 asks that much where IPsec does not protect it).
pub const SECRET_MIN: usize = 12;
/// Longest secret, bytes (some initiators take no more than 16).
pub const SECRET_MAX: usize = 128;

/// Whether a secret may be used.
pub fn check_secret(secret: &Secret) -> Result<(), SecretFault> {
    match secret.0.len() {
        0..SECRET_MIN => Err(SecretFault::TooShort { bytes_min: SECRET_MIN }),
        SECRET_MIN..=SECRET_MAX => Ok(()),
        _ => Err(SecretFault::TooLong { bytes_max: SECRET_MAX }),
    }
}

/// A secret from text: `0x` and hexadecimal digits, else printable ASCII as it is. One line end at the
/// end is not part of it.
pub fn parse_secret(text: &str) -> Result<Secret, SecretFault> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let secret = match text.strip_prefix("0x") {
        Some(hex) => {
            let digits = hex.as_bytes();
            if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
                return Err(SecretFault::NoHex);
            }
            let nibble = |b: u8| (b as char).to_digit(16).expect("a hexadecimal digit") as u8;
            Secret(digits.chunks(2).map(|p| nibble(p[0]) << 4 | nibble(p[1])).collect())
        }
        None if text.bytes().all(|b| (0x20..0x7f).contains(&b)) => Secret(text.as_bytes().to_vec()),
        None => return Err(SecretFault::NotPrintable),
    };
    check_secret(&secret)?;
    Ok(secret)
}

/// The text that `parse_secret` reads back.
pub fn print_secret(secret: &Secret) -> String {
    let plain = secret.0.iter().all(|b| (0x21..0x7f).contains(b)) && !secret.0.starts_with(b"0x");
    if plain {
        secret.0.iter().map(|b| *b as char).collect()
    } else {
        format!("0x{}", base::codec::hex(&secret.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_survive_being_written() {
        for bytes in [
            &b"twelve bytes"[..],
            b"0xlooks like hex",
            &[0, 255, 10, 13, 1, 2, 3, 4, 5, 6, 7, 8],
            b"with#and=chars",
        ] {
            let secret = Secret(bytes.to_vec());
            assert!(parse_secret(&print_secret(&secret)) == Ok(secret));
        }
        assert!(parse_secret("plain-secret\r\n") == Ok(Secret(b"plain-secret".to_vec())));
    }

    #[test]
    fn short_long_and_unreadable_secrets_are_refused() {
        assert!(parse_secret("elevenbytes").is_err());
        assert!(parse_secret("").is_err());
        assert!(parse_secret(&"x".repeat(129)).is_err());
        assert!(parse_secret("0x123").is_err());
        assert!(parse_secret("0x0011223344556677889").is_err());
        assert!(parse_secret("pässword-longer").is_err());
        assert!(parse_secret("two\nlines-here").is_err());
    }
}
