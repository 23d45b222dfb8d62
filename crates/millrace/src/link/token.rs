//! The token by which a second head joins: one line that survives copy and paste.

use super::identity::Fingerprint;
use super::invitation::Invitation;
use super::settings::is_link_address;
use crate::failure::Failure;
use base::Uuid;
use core::fmt;
use std::net::{IpAddr, SocketAddr};

/// How long a token is good, unless the operator says otherwise: seconds.
pub const LIFE_S: u64 = 24 * 60 * 60;

/// What every token begins with; the digit between is its version.
const PREFIX: &str = "millrace_join_";
const VERSION: char = '1';

/// Five bits each (Crockford's base 32): no sign that a shell minds, no letters that look alike, one word for a double click.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Most link networks, and so most addresses in a token.
pub const NETWORKS_MAX: usize = 4;

/// Longest payload: the head, four IPv6 addresses, the checksum.
const PAYLOAD_MAX: usize = HEAD_BYTES + NETWORKS_MAX * (1 + 16 + 2) + 4;
const HEAD_BYTES: usize = 16 + 32 + 16 + 8 + 1;

/// What the creating head gives the joining one. It holds a secret: shown once, and stored nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// The system to join.
    pub system: Uuid,
    /// Link addresses of the creating head, 1 to 4, one for each network.
    pub addresses: Vec<SocketAddr>,
    /// Its certificate.
    pub fingerprint: Fingerprint,
    /// Proves that its holder was invited; good once.
    pub(super) secret: [u8; 16],
    /// When it ends, seconds since 1970-01-01 UTC.
    pub expires_s: u64,
}

/// What is wrong with a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenError {
    /// It does not begin as a token does.
    NotAToken,
    /// It is of a version that this program does not read.
    Version(char),
    /// A character is none that a token has.
    Character(char),
    /// The checksum is wrong: cut off, mistyped, or with something added.
    Damaged,
    /// The checksum is right, and what it holds makes no sense.
    Contents,
}

impl Token {
    /// A new token of the head with `fingerprint` that listens at `addresses`, good for `life_s` seconds from `now_s` (seconds since
    /// 1970) on, and what the head keeps of it. Panics unless there are 1 to 4 addresses; fails where the kernel gives no entropy.
    pub fn make(
        system: Uuid,
        addresses: &[SocketAddr],
        fingerprint: Fingerprint,
        now_s: u64,
        life_s: u64,
    ) -> Result<(Self, Invitation), Failure> {
        assert!((1..=NETWORKS_MAX).contains(&addresses.len()), "{} link addresses", addresses.len());
        let mut secret = [0; 16];
        super::tls::random(&mut secret)?;
        let expires_s = now_s.saturating_add(life_s);
        let invitation = Invitation::new(system, &secret, expires_s);
        Ok((Self { system, addresses: addresses.to_vec(), fingerprint, secret, expires_s }, invitation))
    }

    /// What a person copies: one line.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::with_capacity(PAYLOAD_MAX);
        bytes.extend(self.system.0);
        bytes.extend(self.fingerprint.0);
        bytes.extend(self.secret);
        bytes.extend(self.expires_s.to_be_bytes());
        bytes.push(self.addresses.len() as u8);
        for address in &self.addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    bytes.push(4);
                    bytes.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.push(6);
                    bytes.extend(ip.octets());
                }
            }
            bytes.extend(address.port().to_be_bytes());
        }
        bytes.extend(base::crc::crc32c(&bytes).to_be_bytes());
        format!("{PREFIX}{VERSION}_{}", to_digits(&bytes))
    }

    /// Reads what `encode` wrote. Blanks around it do not count.
    pub fn decode(text: &str) -> Result<Self, TokenError> {
        let rest = text.trim().strip_prefix(PREFIX).ok_or(TokenError::NotAToken)?;
        let (version, digits) = rest.split_once('_').ok_or(TokenError::Damaged)?;
        let mut version = version.chars();
        match (version.next(), version.next()) {
            (Some(VERSION), None) => {}
            (Some(other), None) if other.is_ascii_alphanumeric() => return Err(TokenError::Version(other)),
            _ => return Err(TokenError::Damaged),
        }
        let bytes = from_digits(digits)?;
        let (contents, crc) = bytes.split_last_chunk::<4>().ok_or(TokenError::Damaged)?;
        if base::crc::crc32c(contents) != u32::from_be_bytes(*crc) {
            return Err(TokenError::Damaged);
        }
        Self::from_contents(contents).ok_or(TokenError::Contents)
    }

    fn from_contents(contents: &[u8]) -> Option<Self> {
        let (system, rest) = contents.split_first_chunk::<16>()?;
        let (fingerprint, rest) = rest.split_first_chunk::<32>()?;
        let (secret, rest) = rest.split_first_chunk::<16>()?;
        let (expires_s, rest) = rest.split_first_chunk::<8>()?;
        let (count, mut rest) = rest.split_first()?;
        let mut addresses = Vec::new();
        for _ in 0..*count {
            let (family, after) = rest.split_first()?;
            let (ip, after): (IpAddr, &[u8]) = match family {
                4 => after.split_first_chunk::<4>().map(|(ip, after)| ((*ip).into(), after))?,
                6 => after.split_first_chunk::<16>().map(|(ip, after)| ((*ip).into(), after))?,
                _ => return None,
            };
            let (port, after) = after.split_first_chunk::<2>()?;
            addresses.push(SocketAddr::new(ip, u16::from_be_bytes(*port)));
            rest = after;
        }
        let sane = rest.is_empty()
            && (1..=NETWORKS_MAX).contains(&addresses.len())
            && addresses.iter().all(|a| a.port() != 0 && is_link_address(a.ip()));
        sane.then_some(Self {
            system: Uuid(*system),
            addresses,
            fingerprint: Fingerprint(*fingerprint),
            secret: *secret,
            expires_s: u64::from_be_bytes(*expires_s),
        })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, {:?}, {}, secret not shown)", self.system, self.addresses, self.fingerprint)
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAToken => write!(f, "this is no token: a token begins with {PREFIX}"),
            Self::Version(found) => {
                write!(f, "the token is of version {found}, and this program reads version {VERSION}")
            }
            Self::Character(c) => write!(f, "the token contains {c:?}, which no token does: it was mistyped"),
            Self::Damaged => {
                f.write_str("the token is not whole: it was cut off, mistyped or joined with something else")
            }
            Self::Contents => f.write_str("the token names no address at which a head could be reached"),
        }
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        let next = match error {
            TokenError::Version(_) => {
                "install the same version of Millrace on both heads, then `millrace system create` on the first for a new token"
            }
            TokenError::Contents => {
                "on the other head: check its link addresses, then `millrace system create` for a new token"
            }
            _ => {
                "copy the whole line that `millrace system create` printed on the other head, then `millrace system join` again"
            }
        };
        Failure::usage(error.to_string()).with_next(next)
    }
}

/// Five bits a digit, the first byte's highest bits first; the last digit is filled with zeroes.
fn to_digits(bytes: &[u8]) -> String {
    let (mut out, mut held, mut bits) = (String::new(), 0u32, 0);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.push(char::from(DIGITS[(held >> bits & 31) as usize]));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        out.push(char::from(DIGITS[(held << (5 - bits) & 31) as usize]));
    }
    out
}

/// What `to_digits` wrote, and nothing else: no bytes have two spellings.
fn from_digits(digits: &str) -> Result<Vec<u8>, TokenError> {
    let (mut out, mut held, mut bits) = (Vec::new(), 0u32, 0);
    for c in digits.chars() {
        let value = DIGITS.iter().position(|d| char::from(*d) == c).ok_or(TokenError::Character(c))?;
        held = held << 5 | value as u32;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
        if out.len() > PAYLOAD_MAX {
            return Err(TokenError::Damaged);
        }
    }
    if held != 0 || bits >= 5 { Err(TokenError::Damaged) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(addresses: &[&str]) -> Token {
        let addresses: Vec<SocketAddr> = addresses.iter().map(|a| a.parse().expect("an address")).collect();
        Token::make(Uuid([0xa5; 16]), &addresses, Fingerprint::of(b"x"), 1_800_000_000, LIFE_S)
            .expect("made")
            .0
    }

    fn examples() -> Vec<Token> {
        vec![
            token(&["10.0.0.1:4420"]),
            token(&["10.0.0.1:1", "[fd00::1]:65535"]),
            token(&["[fd00::1]:7", "[fd00::2]:7", "[fd00::3]:7", "[fd00::4]:7"]),
        ]
    }

    #[test]
    fn a_token_survives_as_one_word() {
        for token in examples() {
            let text = token.encode();
            assert_eq!(Token::decode(&text), Ok(token.clone()));
            assert_eq!(Token::decode(&format!(" \t{text}\r\n")), Ok(token.clone()), "as it is pasted");
            assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{text}");
            assert!(text.len() <= 270, "{}", text.len());
            assert!(!format!("{token:?}").contains(&base::codec::hex(&token.secret)));
        }
        let (one, two) = (token(&["10.0.0.1:1"]), token(&["10.0.0.1:1"]));
        assert_ne!(one.secret, two.secret);
        assert_eq!(one.expires_s, 1_800_000_000 + 86_400);
    }

    #[test]
    fn every_changed_cut_added_or_swapped_character_is_refused() {
        for token in examples() {
            let text = token.encode();
            for at in 0..text.len() {
                for other in (0x20..0x7f).map(char::from) {
                    if text[at..].starts_with(other) {
                        continue;
                    }
                    let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                    let refused = Token::decode(&changed).expect_err(&changed);
                    assert_ne!(refused, TokenError::Contents, "{changed}: the checksum tells");
                    // Blanks around it do not count, so there a blank only cuts.
                    let added = format!("{}{other}{}", &text[..at], &text[at..]);
                    assert!(Token::decode(&added).is_err() || at == 0 && other == ' ', "{added}");
                }
                assert!(Token::decode(&text[..at]).is_err(), "cut at {at}");
                if at + 1 < text.len() && text.as_bytes()[at] != text.as_bytes()[at + 1] {
                    let mut swapped = text.clone().into_bytes();
                    swapped.swap(at, at + 1);
                    assert!(Token::decode(&String::from_utf8(swapped).expect("ASCII")).is_err());
                }
            }
            assert!(Token::decode(&format!("{text}{text}")).is_err());
            assert!(Token::decode(&text.to_uppercase()).is_err());
        }
    }

    #[test]
    fn each_mistake_has_its_own_sentence_and_next_command() {
        let text = token(&["10.0.0.1:4420"]).encode();
        let digits = text.rsplit('_').next().expect("digits");
        let of = |bytes: &[u8]| {
            let crc = base::crc::crc32c(bytes).to_be_bytes();
            format!("{PREFIX}1_{}", to_digits(&[bytes, &crc].concat()))
        };
        let bytes = from_digits(digits).expect("digits");
        let contents = &bytes[..bytes.len() - 4];
        let with = |at: usize, byte: u8| {
            let mut changed = contents.to_vec();
            changed[at] = byte;
            of(&changed)
        };
        let cases = [
            ("".to_string(), TokenError::NotAToken),
            ("rm -rf".into(), TokenError::NotAToken),
            (format!("{PREFIX}2_{digits}"), TokenError::Version('2')),
            (format!("{PREFIX}11_{digits}"), TokenError::Damaged),
            (format!("{text} x"), TokenError::Character(' ')),
            (text[..text.len() - 1].to_string(), TokenError::Damaged),
            (of(&contents[..contents.len() - 1]), TokenError::Contents),
            (of(&[contents, &[0]].concat()), TokenError::Contents),
            (of(&[]), TokenError::Contents),
            (with(HEAD_BYTES - 1, 0), TokenError::Contents),
            (with(HEAD_BYTES - 1, 5), TokenError::Contents),
            (with(HEAD_BYTES, 5), TokenError::Contents),
            // 224.0.0.1 is no head's.
            (with(HEAD_BYTES + 1, 224), TokenError::Contents),
        ];
        for (text, error) in cases {
            assert_eq!(Token::decode(&text), Err(error), "{text}");
            let failure = Failure::from(error);
            assert!(failure.next.expect("a way on").contains("`millrace system"), "{error:?}");
        }
    }

    #[test]
    fn fuzz_token() {
        // The checksum of what comes is made right, since a decoder that sees only wrong ones is not tested.
        let take = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            for text in [text.to_string(), format!("{PREFIX}1_{}", to_digits(bytes))] {
                if let Ok(token) = Token::decode(&text) {
                    assert_eq!(Token::decode(&token.encode()), Ok(token));
                }
            }
            let crc = base::crc::crc32c(bytes).to_be_bytes();
            let mended = format!("{PREFIX}1_{}", to_digits(&[bytes, &crc].concat()));
            match Token::decode(&mended) {
                Ok(token) => assert_eq!(token.encode(), mended),
                Err(e) => assert!(matches!(e, TokenError::Contents | TokenError::Damaged), "{e:?}"),
            }
        };
        let texts = examples().into_iter().map(|t| t.encode());
        let raw = texts.clone().map(|t| {
            let bytes = from_digits(t.rsplit('_').next().expect("digits")).expect("digits");
            bytes[..bytes.len() - 4].to_vec()
        });
        let examples = texts.clone().map(String::into_bytes).chain(raw).collect();
        let target = fuzz::Target { name: "token", run: take, examples, mend: |_| {}, bytes_max: 300 };
        assert!(fuzz::run(&target, 1, fuzz::limit()) > 100);
    }
}
