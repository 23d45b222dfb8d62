//! The token by which a second head joins: one line that survives copy and paste.

use super::identity::Fingerprint;
use super::invitation::Invitation;
use super::settings::is_link_address;
use base::Uuid;
use core::fmt;
use finding::{SystemRefusal, TokenFault};
use std::net::{IpAddr, SocketAddr};

/// How long a token is good, unless the operator says otherwise: seconds.
pub const LIFE_S: u64 = 24 * 60 * 60;

/// What every token begins with; the digit between is its version.
pub const PREFIX: &str = "millrace_join_";
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

impl Token {
    /// A new token of the head with `fingerprint` that listens at `addresses`, good for `life_s` seconds from `now_s` (seconds since
    /// 1970) on, and what the head keeps of it. Panics unless there are 1 to 4 addresses; fails where the kernel gives no entropy.
    pub fn make(
        system: Uuid,
        addresses: &[SocketAddr],
        fingerprint: Fingerprint,
        now_s: u64,
        life_s: u64,
    ) -> Result<(Self, Invitation), SystemRefusal> {
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
    pub fn decode(text: &str) -> Result<Self, TokenFault> {
        let rest = text.trim().strip_prefix(PREFIX).ok_or(TokenFault::NotAToken)?;
        let (version, digits) = rest.split_once('_').ok_or(TokenFault::Damaged)?;
        let mut version = version.chars();
        match (version.next(), version.next()) {
            (Some(VERSION), None) => {}
            (Some(other), None) if other.is_ascii_alphanumeric() => {
                return Err(TokenFault::Version { version: other, own: VERSION });
            }
            _ => return Err(TokenFault::Damaged),
        }
        let bytes = from_digits(digits)?;
        let (contents, crc) = bytes.split_last_chunk::<4>().ok_or(TokenFault::Damaged)?;
        if base::crc::crc32c(contents) != u32::from_be_bytes(*crc) {
            return Err(TokenFault::Damaged);
        }
        Self::from_contents(contents).ok_or(TokenFault::NoAddress)
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
fn from_digits(digits: &str) -> Result<Vec<u8>, TokenFault> {
    let (mut out, mut held, mut bits) = (Vec::new(), 0u32, 0);
    for c in digits.chars() {
        let value =
            DIGITS.iter().position(|d| char::from(*d) == c).ok_or(TokenFault::Character { character: c })?;
        held = held << 5 | value as u32;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
        if out.len() > PAYLOAD_MAX {
            return Err(TokenFault::Damaged);
        }
    }
    if held != 0 || bits >= 5 { Err(TokenFault::Damaged) } else { Ok(out) }
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
                    assert_ne!(refused, TokenFault::NoAddress, "{changed}: the checksum tells");
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
    fn each_mistake_is_told_from_the_others() {
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
            ("".to_string(), TokenFault::NotAToken),
            ("rm -rf".into(), TokenFault::NotAToken),
            (format!("{PREFIX}2_{digits}"), TokenFault::Version { version: '2', own: VERSION }),
            (format!("{PREFIX}11_{digits}"), TokenFault::Damaged),
            (format!("{text} x"), TokenFault::Character { character: ' ' }),
            (text[..text.len() - 1].to_string(), TokenFault::Damaged),
            (of(&contents[..contents.len() - 1]), TokenFault::NoAddress),
            (of(&[contents, &[0]].concat()), TokenFault::NoAddress),
            (of(&[]), TokenFault::NoAddress),
            (with(HEAD_BYTES - 1, 0), TokenFault::NoAddress),
            (with(HEAD_BYTES - 1, 5), TokenFault::NoAddress),
            (with(HEAD_BYTES, 5), TokenFault::NoAddress),
            // 224.0.0.1 is no head's.
            (with(HEAD_BYTES + 1, 224), TokenFault::NoAddress),
        ];
        for (text, error) in cases {
            assert_eq!(Token::decode(&text), Err(error), "{text}");
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
                Err(e) => assert!(matches!(e, TokenFault::NoAddress | TokenFault::Damaged), "{e:?}"),
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
