//! What findings mean in English, with the command that helps. Nothing else writes sentences about what a room found.
//!
//! A refusal or a cause begins with a small letter or a name and ends without a full stop, so that it can stand behind a colon. A
//! notice is a sentence of its own.

#[cfg(test)]
mod codes;
pub mod connect;
mod connection_fault;
pub mod house;
pub mod link;
pub mod load;
pub mod machine;
mod parser;
pub mod parts;
pub mod protocol;
pub mod say;
mod signature;
mod status;
#[cfg(test)]
mod tests;
mod topics;
pub mod topology;

pub use parser::{Wrong, of_parser, read};
pub use status::{health, pool_state};
pub use topics::client::client;
pub use topics::pool::difference;
pub use topics::system::{fence_trial, head_out};

use topics::{host, leg, pool, portal, record, request, system, volume};

use api::{Cause, Notice};
use finding::{ErrorKind, Event, OldEvent, Refusal, Why};

/// A sentence, and what helps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// The sentence.
    pub message: String,
    /// The command that helps, if one does.
    pub next: Option<String>,
}

impl Said {
    /// A sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), next: None }
    }
    /// The same, with the command that helps.
    pub fn then(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }
}

impl From<String> for Said {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for Said {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

/// Why an order was not carried out.
pub fn why(why: &Why) -> Said {
    match why {
        Why::Volume(r) => volume::refusal(r),
        Why::Host(r) => host::refusal(r),
        Why::Portal(r) => portal::refusal(r),
        Why::Pool(r) => pool::refusal(r),
        Why::Leg(r) => leg::refusal(r),
        Why::Record(r) => record::refusal(r),
        Why::System(r) => system::refusal(r),
        Why::Request(r) => request::refusal(r),
        Why::Other { code, fields } => other(code, fields),
    }
}

/// A refusal as the API answers it.
pub fn refusal(r: &Refusal) -> api::Error {
    let said = why(&r.why);
    let next = said.next.unwrap_or_else(|| usual_next(r.kind(), r.field).into());
    let json = serde_json::to_value(&r.why).expect("plain data");
    api::Error {
        kind: r.kind(),
        code: r.why.code(),
        fields: json.get("fields").cloned().unwrap_or_default(),
        field: Some(place(r).to_string()).filter(|f| !f.is_empty()),
        message: said.message,
        next: Some(next),
    }
}

/// The field or parameter at fault; empty if none is.
fn place(r: &Refusal) -> &str {
    match &*r.why {
        Why::Request(request) => request.place().unwrap_or(r.field),
        _ => r.field,
    }
}

/// The command that helps against what is quoted of a refusal.
fn way(why: &Why) -> String {
    self::why(why).next.unwrap_or_else(|| usual_next(why.kind(), why.field()).into())
}

/// The command that shows what there is of such things.
fn usual_next(kind: ErrorKind, field: &str) -> &'static str {
    match (kind, field) {
        (ErrorKind::Internal, _) | (_, "") => "millrace events, or journalctl -u millrace -n 20",
        (_, "drive" | "drives" | "old" | "new" | "prefer") => "millrace drive ls",
        (_, "host" | "nqns" | "iqns" | "chap_user" | "chap_secret" | "mutual_secret") => "millrace host ls",
        (_, "volume" | "bytes" | "lun") => "millrace volume ls",
        (_, "address") => "millrace portal ls",
        (_, "pool" | "arrays" | "weight" | "chunk_bytes" | "block_bytes") => "millrace pool ls",
        (..) => "millrace status",
    }
}

/// Why something is not optimal.
pub fn cause(cause: &Cause) -> Said {
    match cause {
        Cause::Portal(c) => portal::cause(c),
        Cause::Pool(c) => pool::cause(c),
        Cause::Leg(c) => leg::cause(c),
        Cause::Record(c) => record::cause(c),
        Cause::System(c) => system::cause(c),
        Cause::Status(c) => status::cause(c),
        Cause::Other { code, fields } => other(code, fields),
    }
}

/// A reason with its sentence.
pub fn reason(r: api::Reason) -> api::Reason {
    let said = cause(&r.cause);
    api::Reason { message: said.message, next: said.next, ..r }
}

/// A notice with its sentence.
pub fn noticed(notice: Notice) -> api::Noticed {
    api::Noticed { message: self::notice(&notice), notice }
}

/// What happened.
pub fn event(event: &Event) -> String {
    match event {
        Event::Volume(e) => volume::event(e),
        Event::Host(e) => host::event(e),
        Event::Portal(e) => portal::event(e),
        Event::Pool(e) => pool::event(e),
        Event::Leg(e) => leg::event(e),
        Event::Record(e) => record::event(e),
        Event::System(e) => system::event(e),
        Event::Old(OldEvent::OldText { message, .. }) => message.clone(),
        Event::Other { code, fields } => other(code, fields).message,
    }
}

/// What is worth knowing.
pub fn notice(notice: &Notice) -> String {
    match notice {
        Notice::Volume(n) => volume::notice(n),
        Notice::Host(n) => host::notice(n),
        Notice::Pool(n) => pool::notice(n),
        Notice::Leg(n) => leg::notice(n),
        Notice::Record(n) => record::notice(n),
        Notice::System(n) => system::notice(n),
        Notice::Status(n) => status::notice(n),
        Notice::Other { code, fields } => other(code, fields).message,
    }
}

/// A finding of a later program.
fn other(code: &str, fields: &serde_json::Value) -> Said {
    format!("{} {fields} (a later program knows what this means)", code.replace('_', " ")).into()
}
