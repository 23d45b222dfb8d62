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
