//! Names of things. An id is an index into a table of its owner unless its docstring says otherwise.

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $raw:ty) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
        )]
        pub struct $name(pub $raw);
        impl $name {
            /// The id as an index.
            pub fn index(self) -> usize { self.0 as usize }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{}", self.0) }
        }
    };
}

id!(
    /// A drive that this head has opened; chosen by the Steward, never reused in one life of the head.
    DriveId, u16);
id!(
    /// A volume that this head serves; chosen by the Steward, never reused in one life of the head.
    VolumeId, u32);
id!(
    /// A host, as an index into `View::hosts`' ids; never reused in one life of the head.
    HostId, u32);
id!(
    /// A portal; never reused in one life of the head.
    PortalId, u32);

/// What a machine wrote on an operation to recognise its completion; opaque to everybody else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Token(pub u64);

/// A connection: the low half is a slot that the world reuses, the high half distinguishes reuses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    /// A connection in `slot`, the `generation`-th to use it.
    pub fn new(slot: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(slot))
    }
    /// The reusable slot.
    pub fn slot(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }
}

/// A universally unique identifier, bytes in the order in which they are printed (RFC 9562).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// A version 4 UUID from 128 random bits.
    pub fn from_random(hi: u64, lo: u64) -> Self {
        let mut b = [0; 16];
        b[..8].copy_from_slice(&hi.to_be_bytes());
        b[8..].copy_from_slice(&lo.to_be_bytes());
        b[6] = b[6] & 0x0f | 0x40;
        b[8] = b[8] & 0x3f | 0x80;
        Self(b)
    }
    /// Whether this is the all-zero UUID, which names nothing.
    pub fn is_nil(self) -> bool {
        self.0 == [0; 16]
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, b) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{b:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a UUID.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct BadUuid;

impl FromStr for Uuid {
    type Err = BadUuid;
    fn from_str(s: &str) -> Result<Self, BadUuid> {
        let digits: Vec<u8> = s.bytes().filter(|b| *b != b'-').collect();
        if digits.len() != 32 {
            return Err(BadUuid);
        }
        let mut out = [0; 16];
        for (i, pair) in digits.chunks(2).enumerate() {
            let text = core::str::from_utf8(pair).map_err(|_| BadUuid)?;
            out[i] = u8::from_str_radix(text, 16).map_err(|_| BadUuid)?;
        }
        Ok(Self(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_survives_text() {
        let id = Uuid::from_random(0x0123456789abcdef, 0xfedcba9876543210);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(&id.to_string()[14..15], "4");
        assert_eq!("nonsense".parse::<Uuid>(), Err(BadUuid));
    }
}
