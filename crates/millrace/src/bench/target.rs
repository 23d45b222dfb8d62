//! Where a target is and who we are.

use core::fmt;
use core::str::FromStr;
use std::net::SocketAddr;

/// A volume at a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Url {
    /// `nvme://ADDRESS:PORT/NQN/NSID`
    Nvme {
        /// The portal.
        peer: SocketAddr,
        /// The subsystem.
        nqn: String,
        /// The namespace, 0 for the first.
        nsid: u32,
    },
    /// `iscsi://ADDRESS:PORT/IQN/LUN`
    Iscsi {
        /// The portal.
        peer: SocketAddr,
        /// The target.
        iqn: String,
        /// The logical unit.
        lun: u16,
    },
}

impl FromStr for Url {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!(
                "\"{text}\": {what}; write nvme://10.0.0.1:4420/NQN/NSID or iscsi://10.0.0.1:3260/IQN/LUN"
            )
        };
        let (protocol, rest) = text.split_once("://").ok_or_else(|| wrong("no protocol"))?;
        let (peer, rest) = rest.split_once('/').ok_or_else(|| wrong("no target name"))?;
        let peer: SocketAddr = peer.parse().map_err(|_| wrong("no address with a port"))?;
        // The last part is the number of the volume; without one the first is meant.
        let (name, number) = match rest.rsplit_once('/') {
            Some((name, number)) => (name, Some(number)),
            None => (rest, None),
        };
        if name.is_empty() {
            return Err(wrong("no target name"));
        }
        let name = name.to_string();
        match protocol {
            "nvme" => {
                let nsid =
                    number.map_or(Ok(0), str::parse).map_err(|_| wrong("the namespace is no number"))?;
                Ok(Url::Nvme { peer, nqn: name, nsid })
            }
            "iscsi" => {
                let lun = number
                    .map_or(Ok(0), str::parse)
                    .map_err(|_| wrong("the LUN is no number up to 16383"))?;
                if lun > 16_383 {
                    return Err(wrong("the LUN is no number up to 16383"));
                }
                Ok(Url::Iscsi { peer, iqn: name, lun })
            }
            _ => Err(wrong("the protocol is not known")),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Url::Nvme { peer, nqn, nsid } => write!(f, "nvme://{peer}/{nqn}/{nsid}"),
            Url::Iscsi { peer, iqn, lun } => write!(f, "iscsi://{peer}/{iqn}/{lun}"),
        }
    }
}

/// This machine's host NQN as its own NVMe tools know it.
pub fn machine_nqn() -> String {
    let own = std::fs::read_to_string("/etc/nvme/hostnqn").unwrap_or_default();
    let own = own.trim();
    if own.starts_with("nqn.") { own.into() } else { "nqn.2026-01.org.millrace:bench".into() }
}

/// This machine's iSCSI name as open-iscsi knows it.
pub fn machine_iqn() -> String {
    let own = std::fs::read_to_string("/etc/iscsi/initiatorname.iscsi").unwrap_or_default();
    let own = own.lines().find_map(|l| l.trim().strip_prefix("InitiatorName="));
    own.map_or_else(|| "iqn.2026-01.org.millrace:bench".into(), |n| n.trim().to_string())
}

/// The host identifier that goes with a host NQN: its UUID if it ends with one, else made from it.
pub fn host_id(nqn: &str) -> [u8; 16] {
    if let Some(Ok(uuid)) = nqn.rsplit_once("uuid:").map(|(_, text)| text.parse::<base::Uuid>()) {
        return uuid.0;
    }
    // FNV-1a, twice with different beginnings: any fixed function of the name will do.
    let hash = |start: u64| nqn.bytes().fold(start, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    base::Uuid::from_random(hash(0xcbf2_9ce4_8422_2325), hash(0x9ae1_6a3b_2f90_404f)).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_is_written() {
        for text in [
            "nvme://127.0.0.1:4420/nqn.2014-08.org.nvmexpress:uuid:1/7",
            "iscsi://[::1]:3260/iqn.2026-01.org.millrace:a/16383",
        ] {
            assert_eq!(text.parse::<Url>().expect(text).to_string(), text);
        }
        let bare = "nvme://127.0.0.1:4420/nqn.a".parse::<Url>().expect("the first namespace");
        assert_eq!(bare.to_string(), "nvme://127.0.0.1:4420/nqn.a/0");
    }

    #[test]
    fn what_is_no_target_is_told_in_a_sentence() {
        for text in [
            "",
            "127.0.0.1",
            "nvme://127.0.0.1/nqn/1",
            "nvme://127.0.0.1:4420",
            "nvme://127.0.0.1:4420/",
            "nvme://127.0.0.1:4420//1",
            "nvme://127.0.0.1:4420/nqn/x",
            "nvme://127.0.0.1:4420/nqn/-1",
            "iscsi://127.0.0.1:3260/iqn/16384",
            "nbd://127.0.0.1:10809/a/1",
        ] {
            assert!(text.parse::<Url>().expect_err(text).contains("write nvme://"), "{text}");
        }
    }

    #[test]
    fn a_host_has_one_identifier_for_life() {
        let nqn = "nqn.2014-08.org.nvmexpress:uuid:01234567-89ab-4def-8123-456789abcdef";
        assert_eq!(host_id(nqn)[..4], [1, 0x23, 0x45, 0x67]);
        assert_eq!(host_id("nqn.a"), host_id("nqn.a"));
        assert_ne!(host_id("nqn.a"), host_id("nqn.b"));
    }
}
