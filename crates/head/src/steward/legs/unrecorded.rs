//! A loss that neither the witness nor a leg takes on record: hosts get `NotReady` instead of waiting for ever.
//!
//! ```text
//! recording ─ too long ▶ not ready, published ▶ applied by all shards ▶ Unrecorded (held answers go out)
//!     └─ taken ▶ Recorded ▶ ready, published
//! ```
//!
//! From the second step on no shard answers a read, so nobody sees a value that a crash could take back.

use crate::layout::PoolId;
use crate::mail::ShardMail;
use crate::steward::procedures::Procedures;
use base::Duration;
use finding::LegEvent;

/// How long hosts wait for a record: with the time that a drive may take before it is given up, 5 s in all (promise 7).
const RECORD_PATIENCE: Duration = Duration::from_millis(1300);

impl Procedures {
    /// Watches how long the keeper's records take.
    pub(crate) async fn watch_record(&self, pool: PoolId) {
        loop {
            let procedures = self.clone();
            let due = move || procedures.context().pool(pool).is_none_or(|p| p.is_losing() && !p.unrecorded);
            self.cx.until(due).await;
            let Some(began) = self.context().pool(pool).map(|p| p.recording) else { return };
            let procedures = self.clone();
            let over = move || procedures.context().pool(pool).is_none_or(|p| p.recording != began);
            if !self.cx.until_within(RECORD_PATIENCE, over).await {
                self.answer_without_record(pool).await;
            }
        }
    }

    async fn answer_without_record(&self, pool: PoolId) {
        let now = self.cx.now();
        {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool) else { return };
            p.cannot_record();
            let why = p.trouble.clone().map(Box::new);
            let what = format!("pool {}", p.config().name);
            context.happened(now, what, LegEvent::LossNotRecorded { why });
        }
        self.publish().await;
        // Perhaps it was taken meanwhile.
        let arrays: Vec<_> = match self.context().pool(pool) {
            Some(p) if p.unrecorded => p.arrays.iter().map(|a| a.id).collect(),
            _ => return,
        };
        for array in arrays {
            self.tell_shards(|| ShardMail::LossNotOnRecord { array });
        }
    }

    /// The record in the context was taken.
    pub(crate) async fn end_of_recording(&self, pool: PoolId) {
        let now = self.cx.now();
        let arrays = {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool) else { return };
            if !p.has_recorded() {
                return;
            }
            let epochs =
                p.arrays.iter().zip(&p.record().arrays).map(|(a, r)| (a.id, r.epoch)).collect::<Vec<_>>();
            let what = format!("pool {}", p.config().name);
            context.happened(now, what, LegEvent::LossRecorded);
            epochs
        };
        self.recorded(&arrays);
        self.publish().await;
    }
}

impl crate::steward::context::pool::PoolContext {
    /// A record is being written, and answers wait for it or for the next one.
    fn is_losing(&self) -> bool {
        let lost = |w: &crate::steward::context::array::PendingChange| {
            matches!(w, crate::steward::context::array::PendingChange::Lost { .. })
        };
        self.recording.is_some() && (self.losing || self.pending.iter().any(lost))
    }
}
