//! CHAP (RFC 1994 as RFC 7143 12.1.3 uses it): a correct response to the challenge proves the secret.

use md5::{Digest, Md5};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// A hash for CHAP_A, by its registered number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// 5.
    Md5,
    /// 7.
    Sha256,
}

/// Longest challenge that is taken, bytes (RFC 7143 12.1.3).
pub const CHALLENGE_BYTES_MAX: usize = 1024;

impl Algorithm {
    /// The first number of a CHAP_A list that we know: the initiator lists by preference.
    pub fn choose(list: &str) -> Option<Self> {
        list.split(',').find_map(|one| match one {
            "5" => Some(Self::Md5),
            "7" => Some(Self::Sha256),
            _ => None,
        })
    }
    /// Its number as a CHAP_A value.
    pub fn value(self) -> &'static str {
        match self {
            Self::Md5 => "5",
            Self::Sha256 => "7",
        }
    }
    /// Length of a response, bytes; our challenges are as long.
    pub fn bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha256 => 32,
        }
    }
    /// The response to `challenge` with identifier `id`.
    pub fn response(self, id: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
        fn hash<D: Digest>(id: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
            D::new().chain_update([id]).chain_update(secret).chain_update(challenge).finalize().to_vec()
        }
        match self {
            Self::Md5 => hash::<Md5>(id, secret, challenge),
            Self::Sha256 => hash::<Sha256>(id, secret, challenge),
        }
    }
}

/// Whether two responses are the same, in a time that does not show where they differ.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && bool::from(a.ct_eq(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::codec::hex;

    #[test]
    fn responses_are_the_hash_of_id_secret_and_challenge() {
        // MD5 and SHA-256 of "\x01secretchal", from `printf '\x01secretchal' | md5sum`, `sha256sum`.
        let md5 = Algorithm::Md5.response(1, b"secret", b"chal");
        let sha = Algorithm::Sha256.response(1, b"secret", b"chal");
        assert_eq!(hex(&md5), "b9059299ca393c22704efa29e3fd0f49");
        assert_eq!(hex(&sha), "c56311f248ba88280babb05918c08b3279d9e0d975d76b89332a221439198aad");
    }

    #[test]
    fn only_known_algorithms_are_chosen() {
        assert_eq!(Algorithm::choose("6,7,5"), Some(Algorithm::Sha256));
        assert_eq!(Algorithm::choose("6,8"), None);
        assert!(!same(b"ab", b"abc") && !same(b"ab", b"ac") && same(b"", b""));
    }
}
