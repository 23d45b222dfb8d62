//! History: figures of the past ([why](../../../../docs/rfcs/0015-page.md)).
//!
//! Owns a thread, rings of steps and the file `history`. Promise: what it says was measured; of what nobody saw it says nothing. Its
//! memory is bounded. Does not know what the head decides: it reads counters, once a second.

mod did;
mod file;
mod kept;
mod ring;
mod task;

pub use kept::Whose;
pub use task::{Running, THREAD};

use crate::http::Api;
use did::{HEAD_VALUES, STAGES, VALUES};
use file::lock;
use kept::{HEAD_STEPS, Kept, STEPS};
use ring::{Ring, Row};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The history of this head; clones are the same.
#[derive(Clone, Default)]
pub struct History(Arc<Mutex<Kept>>);

impl History {
    /// Keeps it from now on, and what of it is in the state directory.
    pub fn start(&self, folder: &Path, api: Api) -> std::io::Result<Running> {
        task::start(Arc::clone(&self.0), folder, api)
    }
    /// Steps of this length that begin at `since` or later; None if no steps of this length are kept.
    pub fn of(&self, whose: Whose, step: u64, since: u64) -> Option<api::History> {
        let lengths: &[u64] = if whose == Whose::Head { &HEAD_STEPS } else { &STEPS };
        if !lengths.contains(&step) {
            return None;
        }
        let kept = lock(&self.0);
        let nothing = || api::History {
            step_seconds: step,
            begin: task::wall().as_secs() / step * step,
            ..Default::default()
        };
        let found = if whose == Whose::Head {
            kept.head(step).map(|r| of_head(r, since))
        } else {
            kept.thing(whose, step).map(|r| of_thing(r, since))
        };
        let found = found.filter(|h| !h.reads.is_empty());
        Some(found.unwrap_or_else(|| {
            let times = (whose == Whose::Head).then(Default::default);
            api::History { times, ..nothing() }
        }))
    }
}

/// A column of values.
fn column<const W: usize>(rows: &[&Row<W>], value: usize) -> Vec<Option<f32>> {
    rows.iter().map(|row| Some(row[value]).filter(|x| x.is_finite())).collect()
}

/// What all have.
fn rates<const W: usize>(ring: &Ring<W>, first: u64, rows: &[&Row<W>]) -> api::History {
    let (step_seconds, column) = (ring.seconds(), |value| column(rows, value));
    api::History {
        step_seconds,
        begin: first * step_seconds,
        reads: column(0),
        writes: column(1),
        read_bytes: column(2),
        write_bytes: column(3),
        read_mean_ns: column(4),
        write_mean_ns: column(5),
        times: None,
    }
}

fn of_thing(ring: &Ring<VALUES>, since: u64) -> api::History {
    let (first, rows) = ring.since(since);
    rates(ring, first, &rows.collect::<Vec<_>>())
}

fn of_head(ring: &Ring<HEAD_VALUES>, since: u64) -> api::History {
    let (first, rows) = ring.since(since);
    let rows: Vec<&Row<HEAD_VALUES>> = rows.collect();
    let column = |value| column(&rows, value);
    let stages = |at: usize| api::HistoryStages {
        admitted_ns: column(at),
        volume_ns: column(at + 1),
        array_ns: column(at + 2),
        drive_ns: column(at + 3),
        replied_ns: column(at + 4),
    };
    let times = api::HistoryTimes {
        read_p50_ns: column(VALUES),
        read_p99_ns: column(VALUES + 1),
        write_p50_ns: column(VALUES + 2),
        write_p99_ns: column(VALUES + 3),
        read_stages: stages(VALUES + 4),
        write_stages: stages(VALUES + 4 + STAGES),
    };
    api::History { times: Some(times), ..rates(ring, first, &rows) }
}
