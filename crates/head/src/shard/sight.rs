//! Of two heads, the leader passes on what it reads from drives only while it knows that the other head does not lead.
//!
//! A head that was cut off or paused may still reach a drive that the other head does not. The other head leaves that drive out after a time
//! (`cluster::fence::PUT_OUT`) and goes on without it: from then on, data read there may be old. So the Steward looks at the voters again and
//! again. A read that ends later than a fixed time after the last good look (`cluster::fence::SIGHT`) is kept until the next one. The time that
//! counts is that of the turn in which the shard finds the drive's answer: the read was at the drive before.
//!
//! This costs a single head one comparison in each turn.

use crate::path::request::Request;
use base::{Bug, Duration, Instant, Op, Slots, Status, planted};
use std::collections::VecDeque;

const NEVER: Instant = Instant(u64::MAX);

/// A host's connection that waits this long ends: the host is served elsewhere, or asks again.
const PATIENCE: Duration = Duration::from_secs(2);

/// Until when reads count, and those that wait for the next look.
pub(crate) struct Sight {
    /// Reads that end until then count.
    pub until: Instant,
    /// Requests whose reads ended later, and since when they wait.
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
    /// The Steward has looked: the requests that wait are completed.
    pub fn sees(&mut self, until: Option<Instant>, completed: &mut VecDeque<u32>) {
        self.until = until.unwrap_or(NEVER);
        completed.extend(self.kept.drain(..).map(|(request, _)| request));
    }
    /// Of the completed requests, keeps those whose answers depend on what drives hold until the next look.
    #[cold]
    pub fn keep_reads(&mut self, now: Instant, completed: &mut VecDeque<u32>, requests: &Slots<Request>) {
        completed.retain(|index| {
            let request = &requests[*index];
            let reads = match request.status {
                Status::Good => matches!(request.command.op, Op::Read | Op::Compare),
                Status::Miscompare { .. } => true,
                _ => false,
            };
            let waits = reads && !planted(Bug::ReadsUnseeing);
            if waits {
                self.kept.push((*index, now));
            }
            !waits
        });
    }
    /// Requests that have waited too long get no answer.
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
