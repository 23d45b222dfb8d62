//! Changes as bytes: docs/formats/changes.md. Each kind is defined once, with its tag and its fields in their order, so that none
//! can be without an encoding.

use super::config::{ArrayRow, LegRow, PoolConfig};
use super::extras::{FailedRow, Found, LastScrub, Replacement, ScrubRow, ScrubRun, SpareRow};
use super::{Identity, List, PoolRow};
use access::{Grant, Host};
use array::format::{MembershipRecord, RECORD_BYTES};
use base::codec::{Malformed, Reader, Writer};
use base::view::{Interface, Moves, Portal, Protocol, Secret};
use base::{HostId, PortalId, Uuid};
use core::net::{IpAddr, SocketAddr};
use pool::StripeMap;
use std::sync::Arc;
use volume::{Caps, Map, Run, Volume};

/// What has one form as bytes.
pub(super) trait Coded: Sized {
    fn put(&self, w: &mut Writer);
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed>;
}

/// Defines an enum whose variants have a tag, which is for life, and fields that are written in their order.
macro_rules! coded_enum {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $tag:literal $variant:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? },)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        // One is made, written and taken: it never lies in rows.
        #[allow(clippy::large_enum_variant)]
        pub enum $name {
            $($(#[$doc])* $variant { $($(#[$field_doc])* $field: $type),* },)*
        }
        impl $name {
            /// The names of all kinds: each is in the format's document and in a test.
            #[cfg(test)]
            pub(crate) const KINDS: &[(u8, &str)] = &[$(($tag, stringify!($variant))),*];
            /// Its tag.
            #[cfg(test)]
            pub(crate) fn tag(&self) -> u8 {
                match self { $(Self::$variant { .. } => $tag,)* }
            }
        }
        impl $crate::steward::state::codec::Coded for $name {
            fn put(&self, w: &mut base::codec::Writer) {
                match self {
                    $(Self::$variant { $($field),* } => {
                        w.u8($tag);
                        $($crate::steward::state::codec::Coded::put($field, w);)*
                    })*
                }
            }
            fn get(r: &mut base::codec::Reader<'_>) -> Result<Self, base::codec::Malformed> {
                match r.u8()? {
                    $($tag => Ok(Self::$variant { $($field: $crate::steward::state::codec::Coded::get(r)?),* }),)*
                    _ => Err(base::codec::Malformed),
                }
            }
        }
    };
}
pub(super) use coded_enum;

/// Fields of a struct, in their order.
macro_rules! coded_struct {
    ($($name:ident { $($field:ident),* })*) => {
        $(impl Coded for $name {
            fn put(&self, w: &mut Writer) {
                $(self.$field.put(w);)*
            }
            fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(Self { $($field: Coded::get(r)?),* })
            }
        })*
    };
}

coded_struct! {
    Identity { uuid, nqn, iqn, serial }
    PoolRow { uuid, name, drives }
    Host { id, name, nqns, iqns, chap_secret, chap_user, mutual_secret }
    Moves { prefix, interface }
    LegRow { drive, path }
    ArrayRow { mirror, weight, data_bytes, region_bytes, legs }
    SpareRow { drive, path }
    Replacement { old, old_path, new }
    FailedRow { drive, path, serial, why, errors, since, removed, spare }
    Caps { iops_max, mbps_max }
    ScrubRow { every_days, repair, last, run }
    LastScrub { ended, found }
    ScrubRun { began, repair, prefer, at, found }
    Found { differed, repaired, unreadable }
    Run { first, count }
    Volume { uuid, naa, name, block_bytes, bytes, map }
    Grant { lun, nqns, iqns }
    Portal { id, protocol, address, head, moves }
}

/// Numbers as they are in all formats.
macro_rules! coded_numbers {
    ($($type:ident)*) => {
        $(impl Coded for $type {
            fn put(&self, w: &mut Writer) {
                w.$type(*self);
            }
            fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
                r.$type()
            }
        })*
    };
}

coded_numbers! { u8 u16 u32 u64 }

/// Numbers with a meaning.
macro_rules! coded_ids {
    ($($type:ident)*) => {
        $(impl Coded for $type {
            fn put(&self, w: &mut Writer) {
                self.0.put(w);
            }
            fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(Self(Coded::get(r)?))
            }
        })*
    };
}

coded_ids! { HostId PortalId Uuid Secret }

impl Coded for bool {
    fn put(&self, w: &mut Writer) {
        w.u8(u8::from(*self));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match r.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

impl<const N: usize> Coded for [u8; N] {
    fn put(&self, w: &mut Writer) {
        w.bytes(self);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.array()
    }
}

impl Coded for String {
    fn put(&self, w: &mut Writer) {
        w.text(self);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.text()
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn put(&self, w: &mut Writer) {
        w.u32(self.len() as u32);
        self.iter().for_each(|one| one.put(w));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        // A number that the bytes cannot bear takes no memory.
        (0..r.u32()?).map(|_| T::get(r)).collect()
    }
}

impl<T: Coded> Coded for Option<T> {
    fn put(&self, w: &mut Writer) {
        self.is_some().put(w);
        self.iter().for_each(|one| one.put(w));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        if bool::get(r)? { T::get(r).map(Some) } else { Ok(None) }
    }
}

impl Coded for List {
    fn put(&self, w: &mut Writer) {
        w.u8(match self {
            Self::Creating => 1,
            Self::Released => 2,
        });
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match r.u8()? {
            1 => Ok(Self::Creating),
            2 => Ok(Self::Released),
            _ => Err(Malformed),
        }
    }
}

impl Coded for Protocol {
    fn put(&self, w: &mut Writer) {
        w.u8(match self {
            Self::Nvme => 1,
            Self::Discovery => 2,
            Self::Iscsi => 3,
        });
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match r.u8()? {
            1 => Ok(Self::Nvme),
            2 => Ok(Self::Discovery),
            3 => Ok(Self::Iscsi),
            _ => Err(Malformed),
        }
    }
}

impl Coded for Interface {
    fn put(&self, w: &mut Writer) {
        w.text(self.as_str());
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.text()?.parse().map_err(|()| Malformed)
    }
}

impl Coded for SocketAddr {
    fn put(&self, w: &mut Writer) {
        match self.ip() {
            IpAddr::V4(ip) => w.u8(4).bytes(&ip.octets()),
            IpAddr::V6(ip) => w.u8(6).bytes(&ip.octets()),
        };
        w.u16(self.port());
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let ip = match r.u8()? {
            4 => IpAddr::from(r.array::<4>()?),
            6 => IpAddr::from(r.array::<16>()?),
            _ => return Err(Malformed),
        };
        Ok(Self::new(ip, r.u16()?))
    }
}

impl Coded for Map {
    fn put(&self, w: &mut Writer) {
        self.encode(w);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::decode(r)
    }
}

impl Coded for Arc<StripeMap> {
    fn put(&self, w: &mut Writer) {
        self.encode(w);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        StripeMap::decode(r).map(Self::new)
    }
}

/// As on drives, without the zeroes at its end.
impl Coded for MembershipRecord {
    fn put(&self, w: &mut Writer) {
        let bytes = self.encode();
        let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
        w.u16(end as u16).bytes(&bytes[..end]);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = usize::from(r.u16()?);
        if len > RECORD_BYTES {
            return Err(Malformed);
        }
        let mut bytes = r.bytes(len)?.to_vec();
        bytes.resize(RECORD_BYTES, 0);
        Self::decode(&bytes).map_err(|_| Malformed)
    }
}

/// As on drives: feature bits, length and body.
impl Coded for PoolConfig {
    fn put(&self, w: &mut Writer) {
        let slot = self.slot(1);
        w.u64(slot.features.compat).u64(slot.features.incompat).u32(slot.body.len() as u32).bytes(&slot.body);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (compat, incompat) = (r.u64()?, r.u64()?);
        let len = r.u32()? as usize;
        Self::of_body(r.bytes(len)?, compat, incompat)
    }
}
