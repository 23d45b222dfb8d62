//! Why a request was not carried out.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What kind of error: decides the HTTP status and the command line's exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request cannot be understood. 400
    Malformed,
    /// The bearer token is missing or wrong. 401
    Unauthorized,
    /// The thing named does not exist. 404
    NotFound,
    /// The resource does not know this method. 405
    Method,
    /// It exists already, or is in use. 409
    Conflict,
    /// It would lose data or take something foreign: `force` does it all the same. 409
    Unsafe,
    /// A field is wrong. 422
    Invalid,
    /// Not now: something must happen first. 503
    NotReady,
    /// Not enough room on the drives or in the state directory. 507
    NoSpace,
    /// The head's own failure, or a drive's. 500
    Internal,
}

impl ErrorKind {
    /// The HTTP status code that goes with it.
    pub fn status(self) -> u16 {
        match self {
            ErrorKind::Malformed => 400,
            ErrorKind::Unauthorized => 401,
            ErrorKind::NotFound => 404,
            ErrorKind::Method => 405,
            ErrorKind::Conflict | ErrorKind::Unsafe => 409,
            ErrorKind::Invalid => 422,
            ErrorKind::NotReady => 503,
            ErrorKind::NoSpace => 507,
            ErrorKind::Internal => 500,
        }
    }
}

/// The body of every answer that is not a success.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: Error,
}

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Error {
    /// Its kind.
    pub kind: ErrorKind,
    /// The field of the request at fault, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The cause, one sentence.
    pub message: String,
    /// The command that helps, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Error {
    /// An error without a field and without advice.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, field: None, message: message.into(), next: None }
    }
    /// The same, with the field at fault.
    pub fn with_field(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }
    /// The same, with the command that helps.
    pub fn with_next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }
}
