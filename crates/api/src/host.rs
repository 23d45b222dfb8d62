//! Hosts.

use crate::{Counters, Protocol, Times};
use core::fmt;
use core::net::SocketAddr;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// A host: a client that volumes can be given to. Its secrets are never told.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Short name.
    pub name: String,
    /// NVMe qualified names.
    pub nqns: Vec<String>,
    /// iSCSI names.
    pub iqns: Vec<String>,
    /// It proves a secret (iSCSI CHAP); otherwise it is identified, not authenticated.
    pub authenticated: bool,
    /// We prove a secret to it.
    pub mutual: bool,
    /// CHAP user name; empty for its iSCSI name.
    pub chap_user: String,
    /// What was given to it.
    pub exports: Vec<HostExport>,
    /// Its connections now.
    pub connections: u32,
    /// Its paths: each is all that it has over one portal. One without connections was used since the head started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<HostPath>,
}

/// All that a host has over one portal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct HostPath {
    /// What is spoken.
    pub protocol: Protocol,
    /// The portal's address.
    #[schema(value_type = String)]
    pub portal: SocketAddr,
    /// The head that serves it, of a system of two: `a` or `b`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Its connections now.
    pub connections: u32,
    /// Commands under way.
    pub in_flight: u32,
    /// What was done by it since the head started that serves it.
    pub counters: Counters,
    /// The same by second, of the last five to twenty seconds.
    pub rates: PathRates,
    /// How long its reads take; absent if none was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_times: Option<Times>,
    /// How long its writes take; absent if none was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_times: Option<Times>,
    /// How long its commands waited for their volume's caps and for a place at their array; absent if none was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_times: Option<Times>,
}

/// What was done in a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PathRates {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// A volume as a host sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct HostExport {
    /// `pool/volume`.
    pub volume: String,
    /// NVMe namespace id.
    pub nsid: u32,
    /// Logical unit number.
    pub lun: u16,
}

/// A secret on its way to the daemon; never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// A host to make known.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostAdd {
    /// Short name.
    pub name: String,
    /// NVMe qualified names.
    #[serde(default)]
    pub nqns: Vec<String>,
    /// iSCSI names.
    #[serde(default)]
    pub iqns: Vec<String>,
    /// The secret that it must prove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap_secret: Option<Secret>,
    /// CHAP user name; its iSCSI name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap_user: Option<String>,
    /// The secret that we prove to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual_secret: Option<Secret>,
}

/// A change to a host: what is absent stays, a secret that is null is removed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSet {
    /// All its NVMe qualified names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nqns: Option<Vec<String>>,
    /// All its iSCSI names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iqns: Option<Vec<String>>,
    /// The secret that it must prove.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub chap_secret: Option<Option<Secret>>,
    /// CHAP user name; empty for its iSCSI name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap_user: Option<String>,
    /// The secret that we prove to it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub mutual_secret: Option<Option<Secret>>,
}

/// Secrets that a host may have, to be held against those that it has.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostCheck {
    /// The secret that it must prove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap_secret: Option<Secret>,
    /// The secret that we prove to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual_secret: Option<Secret>,
}

/// How a host connects to what is exported to it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HostConnect {
    /// What a Linux host runs, as root, by every portal that it could use.
    pub commands: Vec<String>,
    /// What to know of them: sentences.
    pub notes: Vec<String>,
    /// Commands that open a portal, of protocols of which it has a name and for which none is open.
    pub next: Vec<String>,
}

/// Which of these secrets a host has; one that was not asked about is not the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HostChecked {
    /// It must prove this secret.
    pub chap_secret: bool,
    /// We prove this secret to it.
    pub mutual_secret: bool,
}

/// Tells a null (`Some(None)`) from an absent field (`None`, by `default`).
fn present<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Option<Secret>>, D::Error> {
    Option::<Secret>::deserialize(input).map(Some)
}

impl From<Secret> for base::view::Secret {
    fn from(s: Secret) -> Self {
        Self(s.0.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_secret_is_not_an_absent_one() {
        let set: HostSet = serde_json::from_str(r#"{"chap_secret":null}"#).expect("valid");
        assert_eq!((set.chap_secret, set.mutual_secret), (Some(None), None));
        let set = HostSet { chap_secret: Some(None), ..Default::default() };
        assert_eq!(serde_json::to_string(&set).expect("plain data"), r#"{"chap_secret":null}"#);
    }

    #[test]
    fn a_secret_is_not_printed() {
        let add = HostAdd { chap_secret: Some(Secret("open sesame!".into())), ..Default::default() };
        assert!(!format!("{add:?}").contains("sesame"));
    }

    #[test]
    fn an_unknown_field_is_refused_by_name() {
        let error = serde_json::from_str::<HostAdd>(r#"{"name":"a","nqm":[]}"#).expect_err("misspelt");
        assert!(error.to_string().contains("unknown field `nqm`"), "{error}");
    }
}
