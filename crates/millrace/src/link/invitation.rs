//! What the creating head keeps of a token, and whether somebody who brings its secret may join.

use super::identity::Fingerprint;
use base::Uuid;
use finding::JoinDenial;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// What [`Invitation::encode`] writes, bytes.
pub const ENCODED_BYTES: usize = 128;

const MAGIC: &[u8; 8] = b"MILLINVI";
const VERSION: u8 = 1;

/// What the creating head keeps of a token: nothing from which the token could be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invitation {
    /// The system that the token is for.
    pub system: Uuid,
    /// SHA-256 of the secret. The secret has 128 random bits, so no salt and no slow hash is needed.
    pub secret_hash: [u8; 32],
    /// When it ends, seconds since 1970-01-01 UTC.
    pub expires_s: u64,
    /// Whose certificate joined by it, once somebody did.
    pub used_by: Option<Fingerprint>,
}

/// What somebody who would join brings.
#[derive(Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The system of the token.
    pub system: Uuid,
    /// The secret of the token.
    pub secret: [u8; 16],
    /// The certificate whose key was shown in the handshake.
    pub fingerprint: Fingerprint,
}

impl Invitation {
    /// Of the token with `secret`.
    pub fn new(system: Uuid, secret: &[u8; 16], expires_s: u64) -> Self {
        Self { system, secret_hash: Sha256::digest(secret).into(), expires_s, used_by: None }
    }

    /// Whether `attempt` may join at `now_s` (seconds since 1970): the invitation as it is to be kept from then on, or why not.
    ///
    /// It is good for one certificate. The same one may come again, whenever: the answer to its first attempt may have been lost, and
    /// it gains nothing that it does not have. Somebody without the secret learns nothing about the rest.
    pub fn decide(&self, attempt: &Attempt, now_s: u64) -> Result<Self, JoinDenial> {
        if attempt.system != self.system {
            return Err(JoinDenial::OtherSystem);
        }
        let brought: [u8; 32] = Sha256::digest(attempt.secret).into();
        if !bool::from(brought.ct_eq(&self.secret_hash)) {
            return Err(JoinDenial::Forged);
        }
        match self.used_by {
            Some(by) if by == attempt.fingerprint => return Ok(self.clone()),
            Some(_) => return Err(JoinDenial::Used),
            None => {}
        }
        if now_s >= self.expires_s {
            return Err(JoinDenial::Expired);
        }
        Ok(Self { used_by: Some(attempt.fingerprint), ..self.clone() })
    }

    /// As bytes, to be kept ("invitation" in `docs/formats/link.md`).
    pub fn encode(&self) -> [u8; ENCODED_BYTES] {
        let mut out = [0; ENCODED_BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[8] = VERSION;
        out[9] = u8::from(self.used_by.is_some());
        out[16..24].copy_from_slice(&self.expires_s.to_le_bytes());
        out[24..40].copy_from_slice(&self.system.0);
        out[40..72].copy_from_slice(&self.secret_hash);
        out[72..104].copy_from_slice(&self.used_by.map_or([0; 32], |f| f.0));
        let crc = base::crc::crc32c(&out[..124]);
        out[124..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// What `encode` wrote; None for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; ENCODED_BYTES] = bytes.try_into().ok()?;
        let mut used_by = [0; 32];
        used_by.copy_from_slice(&bytes[72..104]);
        let found = Self {
            system: Uuid(bytes[24..40].try_into().ok()?),
            secret_hash: bytes[40..72].try_into().ok()?,
            expires_s: u64::from_le_bytes(bytes[16..24].try_into().ok()?),
            used_by: (bytes[9] == 1).then_some(Fingerprint(used_by)),
        };
        // Zeroes where nothing is, the version, the checksum: all as it would be written.
        (found.encode() == *bytes).then_some(found)
    }
}

/// All of them, with the number by which each is sent.
const CODES: [(JoinDenial, u8); 10] = [
    (JoinDenial::Version, 1),
    (JoinDenial::OtherSystem, 2),
    (JoinDenial::NotInvited, 3),
    (JoinDenial::Expired, 4),
    (JoinDenial::Used, 5),
    (JoinDenial::Forged, 6),
    (JoinDenial::NotRecorded, 7),
    (JoinDenial::Networks, 8),
    (JoinDenial::Taken, 9),
    (JoinDenial::Malformed, 10),
];

/// The number by which a reason is sent, never 0.
pub(super) fn code(why: &JoinDenial) -> u8 {
    CODES.iter().find(|(denial, _)| denial == why).map_or(0, |(_, code)| *code)
}

/// What a number means; None for one of a newer version.
pub(super) fn from_code(code: u8) -> Option<JoinDenial> {
    CODES.iter().find(|(_, c)| *c == code).map(|(denial, _)| denial.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(invited: &Invitation, secret: u8, by: u8) -> Attempt {
        Attempt { system: invited.system, secret: [secret; 16], fingerprint: Fingerprint([by; 32]) }
    }

    #[test]
    fn an_invitation_is_good_for_one_head_until_its_end() {
        let open = Invitation::new(Uuid([1; 16]), &[7; 16], 1000);
        let used = open.decide(&attempt(&open, 7, 5), 999).expect("in time");
        assert_eq!(used, Invitation { used_by: Some(Fingerprint([5; 32])), ..open.clone() });
        assert_eq!(used.decide(&attempt(&open, 7, 6), 999), Err(JoinDenial::Used), "another head");
        assert_eq!(used.decide(&attempt(&open, 7, 5), 5000), Ok(used.clone()), "the same one asks again");
        assert_eq!(used.decide(&attempt(&open, 8, 5), 999), Err(JoinDenial::Forged));
        assert_eq!(
            used.decide(&attempt(&open, 8, 6), 999),
            Err(JoinDenial::Forged),
            "nor does it learn that it is used"
        );
    }

    #[test]
    fn what_is_late_forged_or_of_another_system_is_refused() {
        let open = Invitation::new(Uuid([1; 16]), &[7; 16], 1000);
        assert_eq!(open.decide(&attempt(&open, 7, 5), 1000), Err(JoinDenial::Expired));
        assert_eq!(open.decide(&attempt(&open, 7, 5), u64::MAX), Err(JoinDenial::Expired));
        for bit in 0..128 {
            let mut forged = attempt(&open, 7, 5);
            forged.secret[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open.decide(&forged, 0), Err(JoinDenial::Forged), "bit {bit}");
        }
        let elsewhere = Attempt { system: Uuid([2; 16]), ..attempt(&open, 7, 5) };
        assert_eq!(open.decide(&elsewhere, 0), Err(JoinDenial::OtherSystem));
    }

    #[test]
    fn an_invitation_survives_as_bytes_and_no_changed_byte_does() {
        let open = Invitation::new(Uuid([1; 16]), &[7; 16], 1_800_000_000);
        let used = Invitation { used_by: Some(Fingerprint([0; 32])), ..open.clone() };
        for kept in [open, used] {
            let bytes = kept.encode();
            assert_eq!(Invitation::decode(&bytes), Some(kept));
            for at in 0..bytes.len() {
                let mut changed = bytes;
                changed[at] ^= 1;
                assert_eq!(Invitation::decode(&changed), None, "byte {at}");
                assert_eq!(Invitation::decode(&bytes[..at]), None, "cut at {at}");
            }
        }
    }

    #[test]
    fn fuzz_invitation() {
        let take = |bytes: &[u8]| {
            if let Some(kept) = Invitation::decode(bytes) {
                assert_eq!(kept.encode(), bytes);
            }
        };
        let mend = |bytes: &mut [u8]| {
            if let Some(bytes) = bytes.get_mut(..ENCODED_BYTES) {
                let crc = base::crc::crc32c(&bytes[..124]);
                bytes[124..].copy_from_slice(&crc.to_le_bytes());
            }
        };
        let examples = vec![Invitation::new(Uuid([1; 16]), &[7; 16], 1000).encode().to_vec()];
        let target = fuzz::Target { name: "invitation", run: take, examples, mend, bytes_max: 160 };
        assert!(fuzz::run(&target, 1, fuzz::limit() / 4) > 100);
    }

    #[test]
    fn every_reason_has_a_number() {
        assert_eq!(JoinDenial::samples(), CODES.map(|(denial, _)| denial));
        for (denial, number) in CODES {
            assert_eq!((code(&denial), from_code(number)), (number, Some(denial)));
        }
        assert_eq!((from_code(0), from_code(11)), (None, None));
    }
}
