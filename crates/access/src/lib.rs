//! Access: which hosts may connect, and what each of them sees.
//!
//! Owns hosts (their names and secrets), exports (which volume as which NSID and LUN) and the rules for
//! names and secrets. Promise: a host sees what was given to it and nothing else, two hosts never share
//! a name, and no secret leaves by `Debug`, by `encode` or in an error. Does not know bytes, drives or
//! sockets.

mod grants;
mod hosts;
mod names;
mod secret;

pub use grants::{Grant, Grants, VolumeGrants, lowest_free};
pub use hosts::{Host, Hosts};
pub use names::{check_nqn, normal_iqn};
pub use secret::{SECRET_MAX, SECRET_MIN, check_secret, parse_secret, print_secret};

/// Most hosts.
pub const HOSTS_MAX: usize = 512;
/// Most names of one kind of a host.
pub const NAMES_MAX: usize = 16;
/// Largest logical unit number (flat space addressing, SAM-5 4.7.7).
pub const LUN_MAX: u16 = 16383;

/// Why something about hosts or exports cannot be as it was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccessError {
    /// No short name (see `volume::check_name` for the same rule).
    HostName(String),
    /// There is a host of this name.
    HostTaken(String),
    /// There is no host of this name.
    NoHost(String),
    /// More than `HOSTS_MAX` hosts.
    TooManyHosts,
    /// Neither an NQN nor an IQN: no connection could belong to this host.
    Nameless,
    /// More than `NAMES_MAX` names.
    TooManyNames,
    /// Not an NVMe qualified name, and why.
    Nqn {
        /// What was given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not an iSCSI name, and why.
    Iqn {
        /// What was given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another host has this NQN or IQN.
    NameOfAnother {
        /// The name.
        name: String,
        /// Whose it is.
        host: String,
        /// An NQN; else an IQN.
        nqn: bool,
    },
    /// A secret that must not be used, and why. Never the secret.
    Secret {
        /// The mutual one; else the host's.
        mutual: bool,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No user name for CHAP.
    ChapUser,
    /// The LUN is in use for this host, or too large.
    Lun(u16),
    /// No free number is left.
    Full,
}

impl AccessError {
    /// The field at fault, as `Order` spells it.
    pub fn field(&self) -> &'static str {
        match self {
            AccessError::HostName(_) | AccessError::HostTaken(_) | AccessError::TooManyHosts => "name",
            AccessError::NoHost(_) => "host",
            AccessError::Nameless | AccessError::TooManyNames | AccessError::Nqn { .. } => "nqns",
            AccessError::Iqn { .. } => "iqns",
            AccessError::NameOfAnother { nqn, .. } => {
                if *nqn {
                    "nqns"
                } else {
                    "iqns"
                }
            }
            AccessError::Secret { mutual, .. } => {
                if *mutual {
                    "mutual_secret"
                } else {
                    "chap_secret"
                }
            }
            AccessError::ChapUser => "chap_user",
            AccessError::Lun(_) | AccessError::Full => "lun",
        }
    }
}

impl core::fmt::Display for AccessError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            AccessError::HostName(n) => write!(
                f,
                "{n:?} is no name: a name has 1 to 63 characters of a-z A-Z 0-9 . _ - and begins with a letter or digit"
            ),
            AccessError::HostTaken(n) => write!(f, "there is a host {n} already"),
            AccessError::NoHost(n) => write!(f, "there is no host {n}"),
            AccessError::TooManyHosts => {
                write!(f, "there are {HOSTS_MAX} hosts already, the most there can be")
            }
            AccessError::Nameless => {
                f.write_str("a host needs an NQN or an IQN, or nobody could come in as it")
            }
            AccessError::TooManyNames => write!(f, "a host has at most {NAMES_MAX} names of a kind"),
            AccessError::Nqn { name, why } => write!(f, "{name:?} is no NVMe qualified name: {why}"),
            AccessError::Iqn { name, why } => write!(f, "{name:?} is no iSCSI name: {why}"),
            AccessError::NameOfAnother { name, host, .. } => write!(f, "{name} belongs to host {host}"),
            AccessError::Secret { mutual: false, why } => write!(f, "the CHAP secret {why}"),
            AccessError::Secret { mutual: true, why } => write!(f, "the mutual CHAP secret {why}"),
            AccessError::ChapUser => f.write_str("a CHAP user name has 1 to 255 printable characters"),
            AccessError::Lun(n) if *n > LUN_MAX => write!(f, "LUN {n} is beyond the largest, {LUN_MAX}"),
            AccessError::Lun(n) => write!(f, "LUN {n} is another volume of this host"),
            AccessError::Full => f.write_str("no number is free"),
        }
    }
}
