//! Of two heads the one that leads passes on what drives hold only while it knows that the other one does not lead.
//!
//! A head that was cut off, or paused, may still reach a drive that the other one does not. That one leaves the drive out after a time
//! (`cluster::fence::PUT_OUT`) and goes on without it: from then on what is read there may be old. So the Steward looks at the voters
//! again and again, and a read that ends later than so long after the last good look (`cluster::fence::SIGHT`) is kept until the next one.
//! The time is that of the turn in which the drive's answer is found: the read was at the drive before.
//!
//! It costs a single head one comparison in each turn.

use crate::path::request::Request;
use base::{Bug, Duration, Instant, Op, Slots, Status, planted};
use std::collections::VecDeque;

const NEVER: Instant = Instant(u64::MAX);

/// The connection of a host that waits so long ends: it is served elsewhere, or asks again.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far a shard sees.
pub(crate) struct Sight {
    /// What is read until then counts.
    pub until: Instant,
    /// Requests that have read something later, and since when they wait.
    kept: Vec<(u32, Instant)>,
}

impl Default for Sight {
    fn default() -> Self {
        Self { until: NEVER, kept: vec![] }
    }
}

impl Sight {
    /// Whether somebody waits.
    pub fn keeps(&self) -> bool {
        !self.kept.is_empty()
    }
    /// The Steward has looked: whoever waits is completed.
    pub fn sees(&mut self, until: Option<Instant>, completed: &mut VecDeque<u32>) {
        self.until = until.unwrap_or(NEVER);
        completed.extend(self.kept.drain(..).map(|(request, _)| request));
    }
    /// Of what is to be told now: what says what drives hold waits for the next look.
    #[cold]
    pub fn keep_reads(&mut self, now: Instant, completed: &mut VecDeque<u32>, requests: &Slots<Request>) {
        if planted(Bug::ReadsUnseeing) {
            return;
        }
        completed.retain(|index| {
            let request = &requests[*index];
            let reads = match request.status {
                Status::Good => matches!(request.command.op, Op::Read | Op::Compare),
                Status::Miscompare { .. } => true,
                _ => false,
            };
            if reads {
                self.kept.push((*index, now));
            }
            !reads
        });
    }
    /// Those who have waited long enough get no answer.
    pub fn withhold_overdue(
        &mut self,
        now: Instant,
        completed: &mut VecDeque<u32>,
        requests: &mut Slots<Request>,
    ) {
        self.kept.retain(|(index, since)| {
            let over = now.since(*since) >= PATIENCE;
            if over {
                requests[*index].status = Status::Withheld;
                completed.push_back(*index);
            }
            !over
        });
    }
}
