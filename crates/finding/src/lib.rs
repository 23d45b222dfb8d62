//! Findings: what a room found out, as enums with fields. A refusal says why an order was not carried out, a cause
//! why something is not optimal, an event what happened, a notice what is worth knowing beside.
//!
//! A variant's name in snake case is its *code*, stable from the first release. Its fields are names, paths, numbers
//! in base units (bytes, milliseconds) and other findings; never a sentence, never a command. What people read is
//! written in `crates/millrace/src/words`, and nowhere else (docs/rfcs/0009-findings.md). Knows no room.

#[macro_use]
mod macros;
mod client;
mod host;
mod leg;
mod parts;
mod pool;
mod portal;
mod record;
mod request;
mod sample;
mod signature;
mod status;
mod system;
mod volume;

pub use client::{ClientFault, CommandFault};
pub use host::{HostEvent, HostNotice, HostRefusal};
pub use leg::{
    DriveArea, DriveHelp, DriveOwner, Instead, LabelFault, LegCause, LegEvent, LegNotice, LegRefusal,
    NotInBay, OldLeg, SpareFit, SpareUnfit,
};
pub use parts::{
    AddressFault, AlarmFault, ConnectedHost, ContentFault, DriveFault, FenceFault, FileFault, FollowerFault,
    IqnFault, JoinDenial, KeyFault, LinkFault, LoginFate, NetFault, NewerPart, NewerRecord, NqnFault,
    OpenFault, OutReason, RecordName, SecretFault, ShapeFault, ShutOutFault, StateFault, StateFile,
    TokenFault, TrialFault, TriedAddress, UnopenedDrive, UnreachedFault,
};
pub use pool::{
    CutOffWork, Difference, DriveBusy, FailedDrive, ImportFault, Leftovers, OneDrive, PoolCause, PoolDoubt,
    PoolEvent, PoolNotice, PoolRefusal, PoolSide, UnusedSpace, VolumeData,
};
pub use portal::{PortalCause, PortalEvent, PortalRefusal};
pub use record::{FailedLeg, ListFault, RecordCause, RecordEvent, RecordNotice, RecordRefusal};
pub use request::RequestRefusal;
pub use sample::Sample;
pub use signature::Signature;
pub use status::{StatusCause, StatusNotice, WayBack};
pub use system::{
    Asker, DaemonRight, DaemonThread, NamedHead, SystemCause, SystemEvent, SystemNotice, SystemRefusal,
};
pub use volume::{VolumeEvent, VolumeNotice, VolumeRefusal};

pub use base::NoFence;
pub use base::view::Immovable;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A part of a finding as text, for the other head.
pub fn to_text<T: Serialize>(part: &T) -> String {
    serde_json::to_string(part).expect("plain data")
}

/// Reads what `to_text` wrote; None: it is of another program.
pub fn from_text<T: for<'a> Deserialize<'a>>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// A code with what it means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code {
    /// The variant's name, in camel case: see `snake`.
    pub name: &'static str,
    /// The first line of its docstring.
    pub about: &'static str,
    /// The names of its fields.
    pub fields: &'static [&'static str],
}

impl Code {
    /// As it stands in JSON.
    pub fn code(&self) -> String {
        snake(self.name)
    }
    /// Whether this is it, as it stands in JSON.
    fn is(&self, code: &str) -> bool {
        let mut rest = code.chars();
        let all = self.name.chars().enumerate().all(|(i, c)| {
            let joint = !c.is_ascii_uppercase() || i == 0 || rest.next() == Some('_');
            joint && rest.next() == Some(c.to_ascii_lowercase())
        });
        all && rest.next().is_none()
    }
}

/// `DriveInUse` as `drive_in_use`.
pub fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    for (i, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// What kind of error: decides the HTTP status and the command line's exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request cannot be understood. 400
    Malformed,
    /// The bearer token is missing or wrong. 401
    Unauthorized,
    /// Whoever asks may not do this, or not from there. 403
    Forbidden,
    /// The thing named does not exist. 404
    NotFound,
    /// The resource does not know this method. 405
    Method,
    /// It exists already, or is in use. 409
    Conflict,
    /// It would lose data or take something foreign: `force` does it all the same. Of the field `disconnect`: hosts
    /// are connected that would lose something. 409
    Unsafe,
    /// A field is wrong. 422
    Invalid,
    /// Not now: something must happen first. 503
    NotReady,
    /// Too many requests failed: later. 429
    Throttled,
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
            ErrorKind::Forbidden => 403,
            ErrorKind::NotFound => 404,
            ErrorKind::Method => 405,
            ErrorKind::Conflict | ErrorKind::Unsafe => 409,
            ErrorKind::Invalid => 422,
            ErrorKind::NotReady => 503,
            ErrorKind::Throttled => 429,
            ErrorKind::NoSpace => 507,
            ErrorKind::Internal => 500,
        }
    }
}

/// How weighty an event is.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Something was done.
    #[default]
    Note,
    /// Somebody should look.
    Warning,
    /// Something broke.
    Error,
}

impl core::str::FromStr for Weight {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        [Weight::Note, Weight::Warning, Weight::Error].into_iter().find(|w| w.word() == text).ok_or(())
    }
}

impl Weight {
    /// The word for people and for files.
    pub fn word(self) -> &'static str {
        match self {
            Weight::Note => "note",
            Weight::Warning => "warning",
            Weight::Error => "error",
        }
    }
}

/// The few states that anything can be in, best first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// All is well.
    #[default]
    Optimal,
    /// Works; a resync will soon have brought all redundancy back.
    Rebuilding,
    /// Works, with less redundancy than asked for.
    Degraded,
    /// Does not work, and may once something comes back.
    Offline,
    /// Does not work.
    Failed,
}

impl State {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            State::Optimal => "optimal",
            State::Rebuilding => "rebuilding",
            State::Degraded => "degraded",
            State::Offline => "offline",
            State::Failed => "failed",
        }
    }
}

union! {
    /// Why an order was not carried out.
    pub enum Why {
        Volume(VolumeRefusal),
        Host(HostRefusal),
        Portal(PortalRefusal),
        Pool(PoolRefusal),
        Leg(LegRefusal),
        Record(RecordRefusal),
        System(SystemRefusal),
        Request(RequestRefusal),
    }
}

impl Why {
    /// What kind of refusal it is: decides the HTTP status and the command line's exit code.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Why::Volume(r) => r.kind(),
            Why::Host(r) => r.kind(),
            Why::Portal(r) => r.kind(),
            Why::Pool(PoolRefusal::PoolNotTaken { why, .. }) => why.kind(),
            Why::Pool(r) => r.kind(),
            Why::Leg(r) => r.kind(),
            Why::Record(r) => r.kind(),
            Why::System(r) => r.kind(),
            Why::Request(r) => r.kind(),
            Why::Other { .. } => ErrorKind::Internal,
        }
    }
    /// The order's field at fault, in the spelling of the API; empty if none is.
    pub fn field(&self) -> &'static str {
        match self {
            Why::Volume(r) => r.field(),
            Why::Host(r) => r.field(),
            Why::Portal(r) => r.field(),
            Why::Pool(r) => r.field(),
            Why::Leg(r) => r.field(),
            Why::Record(r) => r.field(),
            Why::System(r) => r.field(),
            Why::Request(r) => r.field(),
            Why::Other { .. } => "",
        }
    }
}

/// An order was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Why. In a box, as every procedure can end with one.
    pub why: Box<Why>,
    /// The order's field at fault, in the spelling of the API; empty if none is.
    pub field: &'static str,
}

impl<T: Into<Why>> From<T> for Refusal {
    fn from(why: T) -> Self {
        let why = why.into();
        Self { field: why.field(), why: Box::new(why) }
    }
}

impl Refusal {
    /// What kind of refusal it is.
    pub fn kind(&self) -> ErrorKind {
        self.why.kind()
    }
    /// The same, about another field of the order.
    pub fn about(self, field: &'static str) -> Self {
        Self { field, ..self }
    }
}

union! {
    /// Why something is not optimal, or a drive cannot be used.
    pub enum Cause {
        Portal(PortalCause),
        Pool(PoolCause),
        Leg(LegCause),
        Record(RecordCause),
        System(SystemCause),
        Status(StatusCause),
    }
}

impl Cause {
    /// Reads what `to_text` wrote of one. Of a text that is none, the text is all that is known.
    pub fn of_text(text: &str) -> Self {
        let unread = || Cause::Other { code: text.into(), fields: serde_json::Value::Null };
        from_text(text).unwrap_or_else(unread)
    }
}

union! {
    /// What happened.
    pub enum Event {
        Volume(VolumeEvent),
        Host(HostEvent),
        Portal(PortalEvent),
        Pool(PoolEvent),
        Leg(LegEvent),
        Record(RecordEvent),
        System(SystemEvent),
        Old(OldEvent),
    }
}

impl Event {
    /// How weighty it is.
    pub fn weight(&self) -> Weight {
        match self {
            Event::Volume(e) => e.weight(),
            Event::Host(e) => e.weight(),
            Event::Portal(e) => e.weight(),
            Event::Pool(e) => e.weight(),
            Event::Leg(e) => e.weight(),
            Event::Record(e) => e.weight(),
            Event::System(e) => e.weight(),
            Event::Old(OldEvent::OldText { weight, .. }) => *weight,
            Event::Other { .. } => Weight::Note,
        }
    }
}

union! {
    /// What is worth knowing of an order that was carried out, or of the head.
    pub enum Notice {
        Volume(VolumeNotice),
        Host(HostNotice),
        Pool(PoolNotice),
        Leg(LegNotice),
        Record(RecordNotice),
        System(SystemNotice),
        Status(StatusNotice),
    }
}

findings! {
    /// What happened, as a program without findings wrote it down.
    pub enum OldEvent {
        /// An earlier program wrote this sentence into the log of events.
        OldText { weight: Weight, message: String },
    }
}

impl Event {
    /// As it stands in a line of the file `events`.
    pub fn to_line(&self) -> String {
        match self {
            Event::Old(OldEvent::OldText { message, .. }) => message.replace(['\t', '\n', '\r'], " "),
            event => serde_json::to_string(event).expect("plain data"),
        }
    }
    /// Reads what `to_line` wrote, or an older program's sentence.
    pub fn from_line(weight: Weight, line: &str) -> Self {
        let typed = Some(line).filter(|l| l.starts_with('{')).and_then(|l| serde_json::from_str(l).ok());
        typed.unwrap_or_else(|| OldEvent::OldText { weight, message: line.into() }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_names_in_snake_case() {
        assert_eq!(snake("DriveInUse"), "drive_in_use");
        for sample in Why::samples() {
            let json = serde_json::to_value(&sample).expect("plain data");
            assert_eq!(json["code"], snake(sample.name()));
            assert_eq!(serde_json::from_value::<Why>(json).expect("as written"), sample);
        }
    }

    #[test]
    fn each_finding_is_read_as_it_was_written_and_its_code_is_its_own() {
        fn check<T: Serialize + for<'a> Deserialize<'a> + PartialEq + core::fmt::Debug>(samples: Vec<T>) {
            let mut codes = std::collections::BTreeSet::new();
            for sample in samples {
                let json = serde_json::to_value(&sample).expect("plain data");
                assert!(codes.insert(json["code"].to_string()), "twice: {json}");
                assert_eq!(serde_json::from_value::<T>(json).expect("as written"), sample);
            }
        }
        check(Why::samples());
        check(Cause::samples());
        check(Event::samples());
        check(Notice::samples());
    }

    #[test]
    fn what_a_later_program_says_is_kept() {
        let json = r#"{"code":"from_the_future","fields":{"n":1}}"#;
        let event: Event = serde_json::from_str(json).expect("any code");
        assert!(matches!(event, Event::Other { .. }));
        assert_eq!(serde_json::to_string(&event).expect("plain data"), json);
    }
}
