//! What happened.

use crate::{Time, Weight};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Grows by one with each event, for the life of the state directory.
    pub number: u64,
    /// When.
    pub at: Time,
    /// When, in milliseconds by the clock that nobody sets and that begins with the machine's start (CLOCK_MONOTONIC): it
    /// tells the time between two events of one such run also where the other clock was set. None where it was not noted.
    #[serde(default)]
    pub monotonic_ms: Option<u64>,
    /// How weighty.
    pub weight: Weight,
    /// The head that says this, where both of a system are told of: each has numbers of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// What it is about.
    pub what: String,
    /// What happened.
    #[serde(flatten)]
    pub event: finding::Event,
    /// What happened, one sentence.
    pub message: String,
}

/// Events, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Events {
    /// The events asked for.
    pub events: Vec<Event>,
    /// What to ask for next: `?since=`.
    pub next: u64,
    /// The same of what a head said itself that does not lead: `?own=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_own: Option<u64>,
}
