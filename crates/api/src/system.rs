//! Two heads as one system.

use crate::{Notice, Noticed};
use core::net::{IpAddr, SocketAddr};
use finding::{LinkFault, OutReason, StateFault, SystemNotice, TrialFault};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// What to make a system of.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SystemCreate {
    /// Addresses with ports at which the other head reaches this one: 1 to 4, one for each network of the link.
    pub link: Vec<String>,
    /// What to call this head; the machine's name if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A system was made, or a new token for it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct SystemCreated {
    /// The system.
    pub uuid: String,
    /// What the other head joins by: good once, for 24 hours. It is shown nowhere else.
    pub token: String,
    /// Worth knowing.
    #[serde(default)]
    pub notices: Vec<Noticed>,
}

impl core::fmt::Debug for SystemCreated {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SystemCreated").field("uuid", &self.uuid).finish_non_exhaustive()
    }
}

/// How to join one.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SystemJoin {
    /// From `SystemCreated`.
    pub token: String,
    /// This head's own address on each network of the link, in the order of the other one's; a port is not looked at.
    pub link: Vec<String>,
    /// What to call this head; the machine's name if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl core::fmt::Debug for SystemJoin {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SystemJoin")
            .field("link", &self.link)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// How to put the other head out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeadFence {
    /// It is switched off: a drive that cannot confirm that it is shut out is believed to be left alone by it.
    #[serde(default)]
    pub off: bool,
}

/// How to leave a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SystemLeave {
    /// The head that leads is not asked. Of a follower alone.
    #[serde(default)]
    pub force: bool,
}

/// A system, as one of its heads knows it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Cluster {
    /// The system.
    pub uuid: String,
    /// The decision that is in force: each later one has the next number.
    pub epoch: u64,
    /// The head that says this, `a` or `b`.
    pub me: String,
    /// Its process.
    #[serde(default)]
    pub pid: u32,
    /// Whether this head meets the other one by the link.
    pub linked: bool,
    /// Why this head refuses the other one whenever that comes by the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<LinkRefused>,
    /// Each network of the link.
    #[serde(default)]
    pub networks: Vec<LinkNetwork>,
    /// How many milliseconds ago the other head's last heartbeat was seen on the drives; None: none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_on_drives_ms: Option<u64>,
    /// Voter drives.
    pub voters: u16,
    /// How many of them the head that says this reaches.
    #[serde(default)]
    pub voters_reached: u16,
    /// Drives of pools.
    #[serde(default)]
    pub drives: u16,
    /// Which of them the head that follows does not reach, by the path on the head that says this: it would take over without them.
    #[serde(default)]
    pub unreached: Vec<String>,
    /// Both heads.
    pub heads: Vec<Head>,
    /// Whether this head leads and does not see most voters any more: then reads wait, and hosts are told to come again.
    #[serde(default)]
    pub blind: bool,
    /// Drives from which a head that is out is not known to be shut out, by path.
    pub late: Vec<String>,
    /// What came of the trial of each drive's fence since the head that follows was let in. Drives that are files have none.
    #[serde(default)]
    pub fences: Vec<FenceTrial>,
}

/// Addresses of the link that hosts come to as well, one notice each: what hosts send delays heartbeats there.
pub fn link_notices(link: &[IpAddr], portals: &[SocketAddr]) -> Vec<Notice> {
    // Both heads of a system on one machine may have the same one.
    let link: BTreeSet<&IpAddr> = link.iter().collect();
    let hosts = |ip: &&IpAddr| portals.iter().any(|p| p.ip() == **ip);
    let one = |ip: &IpAddr| SystemNotice::LinkShared { address: ip.to_string() }.into();
    link.into_iter().filter(hosts).map(one).collect()
}

/// Why a head refuses the other one at the link.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LinkRefused {
    /// Why; None: this program does not know the code.
    #[serde(default, deserialize_with = "if_known", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub why: Option<LinkFault>,
    /// The same, one sentence.
    pub reason: String,
    /// What to do about it.
    pub next: String,
}

/// A part of a finding, if this program knows its code: a later one may know more.
fn if_known<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(serde_json::Value::deserialize(from)?).ok())
}

/// A network of the link, as one head sees it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LinkNetwork {
    /// This head's address there.
    pub address: String,
    /// Whether it meets the other head there.
    pub up: bool,
    /// How many milliseconds ago the other head's last heartbeat came; None: none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
}

/// What came of the trial of a drive's fence: the head that follows was shut off it while it wrote.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FenceTrial {
    /// The drive, as the head that leads calls it.
    pub drive: String,
    /// `holds`, `fails`, or `untried`: it could not be tried so far.
    pub state: String,
    /// How long the drive took to shut the head out, if it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// Why not, if it does not hold.
    #[serde(default, deserialize_with = "if_known", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub why: Option<TrialFault>,
    /// The same, one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One of two heads.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Head {
    /// `a` made the system, `b` joined it.
    pub head: String,
    /// What people call it.
    pub name: String,
    /// `leads`, `follows`, `starts`, `out`, or `none`: there is no such head yet.
    pub state: String,
    /// The epoch that let it in.
    pub since_epoch: u64,
    /// Since when it is out, if the head that says this has put it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<HeadOut>,
    /// Drives of pools that it reaches; None: not known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaches: Option<u16>,
    /// It has the latest hosts and portals, and reaches all drives: it leads, or may take over.
    pub ready: bool,
    /// Addresses that move, of a head that leads: it has them, or should. Empty for one that follows; None: not known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<HeadAddress>>,
    /// What it does for hosts; in the status alone, of the head that leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<HeadServes>,
}

/// What one of two heads does for hosts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HeadServes {
    /// Portals where it listens: `nvme 10.0.0.1:4420`.
    pub portals: Vec<String>,
    /// Hosts that are connected there.
    pub hosts: u32,
    /// Commands that came there since it was let in.
    pub commands: u64,
    /// Lanes of mirrors, 16 of each, whose writes it carries out.
    pub lanes: u32,
    /// Lanes of all mirrors.
    pub lanes_all: u32,
}

/// That a head was put out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HeadOut {
    /// When; None: that is not known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Why; None: that is not known here.
    #[serde(default, deserialize_with = "if_known", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub why: Option<OutReason>,
    /// The same, one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// It lived, and nothing but the link was cut.
    #[serde(default)]
    pub lives: bool,
    /// Drives that are known to have shut it out, of those that the head that leads has open.
    pub shut_off: u16,
    /// Drives that this one has open.
    pub drives: u16,
    /// Why its state directory takes nothing, as it says itself; while that is so it is not let in.
    #[serde(default, deserialize_with = "if_known", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub lacks: Option<StateFault>,
    /// It was put out again and again for the same reason, and is let in again after so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_seconds: Option<u64>,
}

/// An address that moves to the head that leads.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HeadAddress {
    /// The address, without a port.
    pub address: String,
    /// The interface that has it, if the head that says this has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Why the head does not have it, although it leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_link_that_hosts_come_to_is_told() {
        let link: Vec<IpAddr> =
            ["10.9.0.1", "fd00::1", "10.9.0.1"].map(|a| a.parse().expect("an address")).into();
        let at = |text: &str| link_notices(&link, &[text.parse().expect("an address")]);
        let shared = |address: &str| vec![Notice::from(SystemNotice::LinkShared { address: address.into() })];
        assert_eq!(at("10.1.0.5:4420"), Vec::<Notice>::new());
        assert_eq!(at("10.9.0.1:4420"), shared("10.9.0.1"));
        assert_eq!(at("[fd00::1]:3260"), shared("fd00::1"));
    }
}
