//! Portals.

use crate::Cause;
use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is spoken at a portal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// NVMe/TCP, I/O and discovery.
    #[default]
    Nvme,
    /// NVMe/TCP, discovery only.
    Discovery,
    /// iSCSI.
    Iscsi,
}

impl Protocol {
    /// The word for people and in paths.
    pub fn word(self) -> &'static str {
        match self {
            Protocol::Nvme => "nvme",
            Protocol::Discovery => "discovery",
            Protocol::Iscsi => "iscsi",
        }
    }
}

impl From<base::view::Protocol> for Protocol {
    fn from(p: base::view::Protocol) -> Self {
        match p {
            base::view::Protocol::Nvme => Protocol::Nvme,
            base::view::Protocol::Discovery => Protocol::Discovery,
            base::view::Protocol::Iscsi => Protocol::Iscsi,
        }
    }
}

impl From<Protocol> for base::view::Protocol {
    fn from(p: Protocol) -> Self {
        match p {
            Protocol::Nvme => base::view::Protocol::Nvme,
            Protocol::Discovery => base::view::Protocol::Discovery,
            Protocol::Iscsi => base::view::Protocol::Iscsi,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Protocol {
    type Err = ();
    fn from_str(s: &str) -> Result<Self, ()> {
        [Protocol::Nvme, Protocol::Discovery, Protocol::Iscsi].into_iter().find(|p| p.word() == s).ok_or(())
    }
}

/// A portal: an address that we listen on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Portal {
    /// What is spoken.
    pub protocol: Protocol,
    /// Address and port.
    #[schema(value_type = String)]
    pub address: SocketAddr,
    /// Listening on every shard.
    pub listening: bool,
    /// Why, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why not; empty if it is.
    pub reason: String,
    /// Connections that came in by it and are there.
    pub connections: u32,
    /// Whose it is, of two heads: `a` or `b`. None: this head is alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<String>,
    /// The other head, while that listens there in its place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub served_by: Option<String>,
    /// Its address moves to the head that leads, which configures it with a prefix of this length.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prefix: Option<u8>,
    /// The interface that was named for it; without one it is that of another address of the subnet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interface: Option<String>,
    /// The interface of this head that has an address that moves; none: it is not here.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on: Option<String>,
}

/// An address to listen on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortalAdd {
    /// What is spoken there.
    pub protocol: Protocol,
    /// Address and port: `10.0.0.1:4420`, `[fd00::1]:3260`.
    pub address: String,
    /// The address moves to the head that leads, which configures it with a prefix of this length.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prefix: Option<u8>,
    /// On which interface, on both heads; without one it is that of another address of the subnet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interface: Option<String>,
    /// Which of two heads is to listen there, by its letter or its name; without it the head that is asked. An address that moves has
    /// none: it is at the head that leads.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<String>,
}
