//! What each file holds. A field may be added, and then it must be optional; none changes its meaning.

use crate::Row;
use serde::{Deserialize, Serialize};

/// `identity`: the names of the system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Identity {
    pub uuid: String,
    pub nqn: String,
    pub iqn: String,
    pub serial: String,
}

/// `hosts`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Hosts {
    /// Its rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<Row<Host>>,
}

/// A row of `hosts`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Host {
    /// What operators call it.
    pub name: String,
    /// Its names, NVMe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nqn: Vec<String>,
    /// Its names, iSCSI.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iqn: Vec<String>,
    /// The secret that it proves; None: it is identified by its name alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap_secret: Option<String>,
    /// The user name that goes with it; None: the IQN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap_user: Option<String>,
    /// The secret that this system proves to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual_secret: Option<String>,
}

/// `portals`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Portals {
    /// The number that was given to a portal last.
    pub last: u16,
    /// Its rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub portal: Vec<Row<Portal>>,
}

/// A row of `portals`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Portal {
    /// By which hosts know it: 1 to 65535.
    pub number: u16,
    /// `nvme`, `discovery` or `iscsi`.
    pub protocol: String,
    /// Address and port.
    pub address: String,
    /// The head that has it, `a` or `b`; None: `a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Prefix length of an address that moves to the head that leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<u8>,
    /// Interface of an address that moves, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
}

/// `pools`, `released` or `creating`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Pools {
    /// Its rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<Row<Pool>>,
}

/// A row of `pools`, `released` or `creating`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Pool {
    /// The pool.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// Where its drives lie.
    #[serde(default)]
    pub drives: Vec<String>,
}

/// `witness-UUID` or `system-record`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The record's bytes in hex; zeroes at the end of a membership record are cut.
    pub record: String,
}

/// `config-UUID`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// Whether the pool gives blocks back, as hosts saw it last.
    pub deallocate: bool,
    /// The configuration slot in hex.
    pub config: String,
}

/// `system-slot-0` or `system-slot-1`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Slot {
    /// The block's bytes in hex.
    pub block: String,
}

/// `link-identity`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkIdentity {
    /// The private key, PKCS #8 DER in hex.
    pub key: String,
    /// The certificate, DER in hex.
    pub certificate: String,
}

/// `tokens`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tokens {
    /// Its rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub token: Vec<Row<Token>>,
}

/// A row of `tokens`. Times are seconds since 1970-01-01 UTC.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Token {
    /// Its name.
    pub name: String,
    /// `read` or `full`.
    pub rights: String,
    /// SHA-256 of its secret in hex.
    pub sha256: String,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<u64>,
    /// When it expires; None: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// When it was used last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
}

/// `api-certificate`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Certificate {
    /// PEM.
    pub certificate: String,
    /// PEM.
    pub key: String,
}

/// `format`: this directory was converted, or is being converted.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Mark {
    /// Files that the directory lacked, which are made empty before the conversion is over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub make: Vec<String>,
    /// Files that still count in their old format.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub old: Vec<Old>,
}

/// A file that still counts in its old format.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Old {
    /// Its name.
    pub file: String,
    /// CRC-32C of its bytes, 8 hex digits: with other bytes it does not count.
    pub crc32c: String,
}
