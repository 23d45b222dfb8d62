//! Why a request was not carried out.

use crate::ErrorKind;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
    /// What exactly, for programs: stable, see docs/api-codes.md.
    #[schema(schema_with = finding::Why::code_schema)]
    pub code: String,
    /// What it is about; absent if there is nothing.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    #[schema(value_type = Object)]
    pub fields: serde_json::Value,
    /// The field of the request at fault, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The cause, one sentence.
    pub message: String,
    /// The command that helps, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
