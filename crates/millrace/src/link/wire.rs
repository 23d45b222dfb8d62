//! What is said inside a fresh TLS session, before the bytes of the layer above: fixed sizes, so that whoever reads needs no more
//! memory than this. Drawn in `docs/formats/link.md`.

use super::identity::Fingerprint;
use super::invitation::{self, Attempt};
use super::token::NETWORKS_MAX;
use base::Uuid;
use finding::JoinDenial;
use std::net::IpAddr;

/// The versions of these exchanges that this program speaks: the oldest and the newest.
pub const VERSIONS: (u8, u8) = (1, 1);

/// Size of a greeting and its answer, and of the answer to a request to join, bytes.
pub const SHORT_BYTES: usize = 8;
/// Size of a request to join, bytes.
pub const REQUEST_BYTES: usize = 40 + 17 * NETWORKS_MAX;

const GREETING: [u8; 4] = *b"MRPG";
const WELCOME: [u8; 4] = *b"MRPW";
const REQUEST: [u8; 4] = *b"MRJR";
const ANSWER: [u8; 4] = *b"MRJA";

/// What whoever connects for a path says first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// Oldest and newest version that it speaks.
    pub versions: (u8, u8),
    /// The number of the network.
    pub path: u8,
}

/// Why an authenticated peer gets no path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unwelcome {
    /// No version in common.
    Version,
    /// It came for another network than the one on which it came.
    Network,
    /// What it said is no greeting.
    Malformed,
}

/// The newest version that both speak.
pub fn common(theirs: (u8, u8)) -> Option<u8> {
    let version = VERSIONS.1.min(theirs.1);
    (version >= VERSIONS.0.max(theirs.0)).then_some(version)
}

impl Greeting {
    /// As bytes.
    pub fn encode(self) -> [u8; SHORT_BYTES] {
        let [a, b, c, d] = GREETING;
        [a, b, c, d, self.versions.0, self.versions.1, self.path, 0]
    }
    /// What `encode` wrote.
    pub fn decode(bytes: &[u8; SHORT_BYTES]) -> Option<Self> {
        let [a, b, c, d, oldest, newest, path, 0] = *bytes else { return None };
        let whole = [a, b, c, d] == GREETING && oldest <= newest;
        whole.then_some(Self { versions: (oldest, newest), path })
    }
}

/// The answer to a greeting: the version that is spoken from here on, or why there is no path.
pub fn encode_welcome(answer: Result<u8, Unwelcome>) -> [u8; SHORT_BYTES] {
    let (code, version) = match answer {
        Ok(version) => (0, version),
        Err(Unwelcome::Version) => (1, VERSIONS.1),
        Err(Unwelcome::Network) => (2, VERSIONS.1),
        Err(Unwelcome::Malformed) => (3, VERSIONS.1),
    };
    short(WELCOME, code, version)
}

/// What `encode_welcome` wrote; None for anything else, and for a version that was not offered.
pub fn decode_welcome(bytes: &[u8; SHORT_BYTES]) -> Option<Result<u8, Unwelcome>> {
    let (code, version) = from_short(WELCOME, bytes)?;
    match code {
        0 => (VERSIONS.0..=VERSIONS.1).contains(&version).then_some(Ok(version)),
        1 => Some(Err(Unwelcome::Version)),
        2 => Some(Err(Unwelcome::Network)),
        3 => Some(Err(Unwelcome::Malformed)),
        _ => None,
    }
}

/// A request to join.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// Oldest and newest version that the joining head speaks.
    pub versions: (u8, u8),
    /// The system of the token.
    pub system: Uuid,
    /// The secret of the token.
    pub secret: [u8; 16],
    /// From where the joining head will connect, one for each network, 1 to 4.
    pub addresses: Vec<IpAddr>,
}

impl Request {
    /// As bytes. Panics unless there are 1 to 4 addresses.
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        assert!((1..=NETWORKS_MAX).contains(&self.addresses.len()), "{} networks", self.addresses.len());
        let mut out = [0; REQUEST_BYTES];
        out[..4].copy_from_slice(&REQUEST);
        out[4..7].copy_from_slice(&[self.versions.0, self.versions.1, self.addresses.len() as u8]);
        out[8..24].copy_from_slice(&self.system.0);
        out[24..40].copy_from_slice(&self.secret);
        for (place, address) in out[40..].chunks_mut(17).zip(&self.addresses) {
            match address {
                IpAddr::V4(ip) => {
                    place[0] = 4;
                    place[1..5].copy_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    place[0] = 6;
                    place[1..17].copy_from_slice(&ip.octets());
                }
            }
        }
        out
    }

    /// What `encode` wrote.
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let count = usize::from(bytes[6]);
        let address = |place: &[u8]| match *place {
            [4, a, b, c, d, ..] => Some(IpAddr::from([a, b, c, d])),
            [6, ref ip @ ..] => <[u8; 16]>::try_from(ip).ok().map(IpAddr::from),
            _ => None,
        };
        let addresses: Option<Vec<IpAddr>> = bytes[40..].chunks(17).take(count).map(address).collect();
        let found = Self {
            versions: (bytes[4], bytes[5]),
            system: Uuid(bytes[8..24].try_into().ok()?),
            secret: bytes[24..40].try_into().ok()?,
            addresses: addresses?,
        };
        let counted = (1..=NETWORKS_MAX).contains(&count) && bytes[4] <= bytes[5];
        // Zeroes where nothing is, and the magic: all as it would be written.
        (counted && found.encode() == *bytes).then_some(found)
    }

    /// What is decided about, once it is known whose certificate brought it.
    pub fn attempt(&self, fingerprint: Fingerprint) -> Attempt {
        Attempt { system: self.system, secret: self.secret, fingerprint }
    }
}

/// The answer to a request to join.
pub fn encode_answer(answer: &Result<(), JoinDenial>) -> [u8; SHORT_BYTES] {
    short(ANSWER, answer.as_ref().err().map_or(0, invitation::code), VERSIONS.1)
}

/// What `encode_answer` wrote.
pub fn decode_answer(bytes: &[u8; SHORT_BYTES]) -> Option<Result<(), JoinDenial>> {
    match from_short(ANSWER, bytes)?.0 {
        0 => Some(Ok(())),
        code => invitation::from_code(code).map(Err),
    }
}

fn short(magic: [u8; 4], code: u8, version: u8) -> [u8; SHORT_BYTES] {
    let [a, b, c, d] = magic;
    [a, b, c, d, code, version, 0, 0]
}

fn from_short(magic: [u8; 4], bytes: &[u8; SHORT_BYTES]) -> Option<(u8, u8)> {
    let [a, b, c, d, code, version, 0, 0] = *bytes else { return None };
    ([a, b, c, d] == magic).then_some((code, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        let addresses = ["10.0.0.1", "fd00::1", "10.0.0.3"].map(|a| a.parse().expect("an address")).to_vec();
        Request { versions: (1, 3), system: Uuid([7; 16]), secret: [9; 16], addresses }
    }

    #[test]
    fn what_is_written_is_read_and_what_could_not_be_written_is_refused() {
        let greeting = Greeting { versions: (1, 2), path: 3 };
        assert_eq!(Greeting::decode(&greeting.encode()), Some(greeting));
        assert_eq!(Greeting::decode(&Greeting { versions: (2, 1), path: 3 }.encode()), None);
        assert!(Request::decode(&request().encode()) == Some(request()));
        let answers = [Ok(1), Err(Unwelcome::Version), Err(Unwelcome::Network), Err(Unwelcome::Malformed)];
        for answer in answers {
            assert_eq!(decode_welcome(&encode_welcome(answer)), Some(answer));
        }
        assert_eq!(decode_welcome(&encode_welcome(Ok(9))), None, "a version that was not offered");
        for answer in [Ok(()), Err(JoinDenial::Used), Err(JoinDenial::Malformed)] {
            assert_eq!(decode_answer(&encode_answer(&answer)), Some(answer));
        }
        assert_eq!(decode_answer(b"MRJA\xff\x01\0\0"), None);
        assert_eq!(decode_answer(&encode_welcome(Ok(1))), None, "another message");
        for at in 0..7 {
            let mut bytes = encode_answer(&Ok(()));
            bytes[at] ^= 0x80;
            assert!(at == 5 || decode_answer(&bytes) != Some(Ok(())), "byte {at}");
        }
        for count in [0, 2, 4, 5, 255] {
            let mut bytes = request().encode();
            bytes[6] = count;
            assert!(Request::decode(&bytes).is_none(), "{count} networks");
        }
    }

    #[test]
    fn the_newest_common_version_is_spoken() {
        let (oldest, newest) = VERSIONS;
        assert_eq!(common(VERSIONS), Some(newest));
        assert_eq!(common((oldest, newest + 5)), Some(newest));
        assert_eq!(common((newest + 1, newest + 5)), None);
        assert_eq!(common((0, oldest - 1)), None);
    }

    #[test]
    fn fuzz_before_authentication() {
        let take = |bytes: &[u8]| {
            if let Some(request) = bytes.first_chunk().and_then(Request::decode) {
                assert_eq!(&request.encode()[..], &bytes[..REQUEST_BYTES]);
            }
            if let Some(short) = bytes.first_chunk() {
                if let Some(greeting) = Greeting::decode(short) {
                    assert_eq!(&greeting.encode(), short);
                }
                let _ = (decode_welcome(short), decode_answer(short));
            }
        };
        let examples = vec![
            request().encode().to_vec(),
            Greeting { versions: VERSIONS, path: 0 }.encode().to_vec(),
            encode_welcome(Ok(1)).to_vec(),
            encode_answer(&Err(JoinDenial::Used)).to_vec(),
        ];
        let target =
            fuzz::Target { name: "link greeting", run: take, examples, mend: |_| {}, bytes_max: 160 };
        assert!(fuzz::run(&target, 1, fuzz::limit() / 2) > 100);
    }
}
