//! Alarms: what receivers are told, and how they are.

use crate::{Time, Weight};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a receiver is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlarmState {
    /// Something happened: an event.
    Happened,
    /// Something is not well: it is new, or worse than it was.
    Raised,
    /// The same, and it was told before.
    Repeated,
    /// It is over.
    Recovered,
    /// An operator tries the receiver.
    Test,
}

impl AlarmState {
    /// The word for people and for programs.
    pub fn word(self) -> &'static str {
        match self {
            AlarmState::Happened => "happened",
            AlarmState::Raised => "raised",
            AlarmState::Repeated => "repeated",
            AlarmState::Recovered => "recovered",
            AlarmState::Test => "test",
        }
    }
}

/// One thing that a receiver is told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Alarm {
    /// Why it is told.
    pub state: AlarmState,
    /// How weighty.
    pub level: Weight,
    /// When it happened, was seen, or was over.
    pub at: Time,
    /// Since when it is not well; None for an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// What it is about: `pool tank`.
    pub subject: String,
    /// What exactly: a code of events or of causes.
    pub code: String,
    /// What the code is about; absent if there is nothing.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    #[schema(value_type = Object)]
    pub fields: serde_json::Value,
    /// One sentence.
    pub message: String,
    /// The command that helps, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What a webhook and a command get.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlarmMessage {
    /// All of it in one line, for people.
    pub text: String,
    /// Version of this shape: 1. Keys may be added to it.
    pub version: u32,
    /// The worst level of the alarms.
    pub level: Weight,
    /// Name of the machine that says this.
    pub machine: String,
    /// Serial number of the system; empty until it is known.
    pub serial: String,
    /// Oldest first.
    pub alarms: Vec<Alarm>,
    /// Alarms before these that found no room in the receiver's queue.
    pub lost: u64,
}

/// How a receiver is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiverState {
    /// It took what it was sent last, or was sent nothing yet.
    #[default]
    Well,
    /// It did not take the last message, which is sent again.
    Failing,
    /// It did not take several in a row.
    Dead,
}

impl ReceiverState {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            ReceiverState::Well => "well",
            ReceiverState::Failing => "failing",
            ReceiverState::Dead => "dead",
        }
    }
}

/// A receiver of alarms.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlarmReceiver {
    /// Its name in the configuration.
    pub name: String,
    /// `webhook`, `command` or `mail`.
    pub kind: String,
    /// The least level that it is told.
    pub level: Weight,
    /// How it is.
    pub state: ReceiverState,
    /// Why it did not take the last message, one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When it took one last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Time>,
    /// Alarms that wait for it.
    pub waiting: u64,
    /// Alarms that found no room since then.
    pub lost: u64,
}

/// All receivers, and what is not well.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Alarms {
    /// Those of the configuration of the head that answers, by name.
    pub receivers: Vec<AlarmReceiver>,
    /// What stands now, whether anybody is told or not.
    pub standing: Vec<Alarm>,
}

/// Tries receivers.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlarmTest {
    /// This one; all if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<String>,
}

/// What a receiver answered to a trial.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlarmTested {
    /// Its name in the configuration.
    pub name: String,
    /// `webhook`, `command` or `mail`.
    pub kind: String,
    /// Whether it took the alarm.
    pub taken: bool,
    /// What it answered, or why it did not take it.
    pub answer: String,
    /// How long it took.
    pub milliseconds: u64,
}
