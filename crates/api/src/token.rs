//! Tokens of the API.

use crate::{Secret, Time};
use core::fmt;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a token allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// To look: GET alone.
    Read,
    /// Everything.
    #[default]
    Full,
}

impl Rights {
    /// The word for people and for files.
    pub fn word(self) -> &'static str {
        match self {
            Rights::Read => "read",
            Rights::Full => "full",
        }
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A token; its secret is not kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its name.
    pub name: String,
    /// What it allows.
    pub rights: Rights,
    /// When it was made; absent for that of `api.token_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Time>,
    /// When it expires; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// When it was last shown, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Time>,
}

/// The tokens of a head, and how to know its API over TCP.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Tokens {
    /// All of them, by name.
    pub tokens: Vec<Token>,
    /// Where the API listens over TCP, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// SHA-256 of its certificate, hexadecimal; absent without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// A new token.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenAdd {
    /// Its name.
    pub name: String,
    /// What it allows.
    #[serde(default)]
    pub rights: Rights,
    /// How long it is good, seconds; absent: until it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_seconds: Option<u64>,
}

/// The secret of a new token, which is not shown again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenAdded {
    /// What requests show: `Authorization: Bearer SECRET`.
    pub secret: String,
}

/// Begins a session, for a page: its answer sets a cookie.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionBegin {
    /// The secret of a token.
    pub token: Secret,
}

/// Who asks, by session, token or socket.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Name of the token, or of the user at the socket.
    pub name: String,
    /// What is allowed.
    pub rights: Rights,
    /// When the session ends, or the token that is shown; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
}
