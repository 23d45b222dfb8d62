//! The head is stopped.
//!
//! ```text
//! asked ▶ orders that wait are refused, the one under way gets a moment and is given up ▶ portals closed, hosts sent
//! away ▶ arrays quiet ▶ pools marked as closed ▶ drives let go of ▶ Stopped
//! ```
//!
//! Nothing here waits long for a drive that hangs. What is not over in time ends with the process, and is then what a
//! crash leaves behind: a pool that did not come to rest stays marked as open, and the next start makes its legs the same.

use crate::layout::PoolId;
use crate::mail::{ManagerMail, ShardMail};
use crate::order::{Answered, Needs, Order, Refusal, Reply};
use crate::steward::context::head::Stop;
use crate::steward::join::{self, Boxed};
use crate::steward::procedures::Procedures;
use base::Duration;
use base::front::Close;
use finding::{SystemEvent, SystemRefusal};

/// How long the order under way has to end by itself.
pub(in crate::steward) const ORDER_PATIENCE: Duration = Duration::from_secs(2);
/// How long shards may take to become quiet.
const QUIET_PATIENCE: Duration = Duration::from_secs(3);
/// How long drives may take to come back from the kernel: otherwise they do when the process ends.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);
/// How long the event log may take.
const LOG_PATIENCE: Duration = Duration::from_secs(1);

/// The answer to an order that comes too late.
pub(crate) fn too_late() -> Refusal {
    SystemRefusal::StoppingNotBegun.into()
}

impl Procedures {
    /// Somebody asks for the end.
    pub(crate) fn on_stop(&self) {
        let waiting: Vec<_> = {
            let mut context = self.context_mut();
            if context.stop != Stop::No {
                return;
            }
            // Before the pools are there, hosts see nobody rather than a head without volumes.
            let stop = if context.ready { Stop::Asked(self.cx.now()) } else { Stop::Closed };
            context.stops(stop);
            context.orders.drain(..).collect()
        };
        for id in waiting.into_iter().filter_map(|(id, _)| id) {
            self.cx.to_manager(ManagerMail::Answered { id, answer: Err(too_late()) });
        }
        self.context_mut().orders.push_back((None, Order::Shutdown));
        // So that the order under way is looked at again by then, whatever else happens.
        let cx = self.cx.clone();
        self.cx.spawn(async move { cx.sleep(ORDER_PATIENCE).await });
    }
    /// Carries out an order; gives it up if the head is to stop and it does not end. Every procedure may be dropped
    /// wherever it waits, as at a crash.
    pub(in crate::steward) async fn execute_unless_stopped(&self, order: Order) -> Answered {
        let only_looks = order.needs() == Needs::Nothing;
        let procedures = self.clone();
        let over = move || {
            let stop = procedures.context().stop;
            matches!(stop, Stop::Asked(at) if procedures.cx.now() >= at + ORDER_PATIENCE)
        };
        if let Some(answer) = self.cx.unless(over, self.execute(order)).await {
            return answer;
        }
        self.context_mut().cuts_short(!only_looks);
        Err(SystemRefusal::StoppingGivenUp.into())
    }

    /// Order: stop in order.
    pub(crate) async fn shutdown(&self) -> Answered {
        let ids: Vec<PoolId> = self.context().pools.iter().map(|p| p.id).collect();
        // Portals first: who is sent away and comes again at once shall find nobody, not a head without volumes.
        self.context_mut().stops(Stop::Closed);
        self.publish().await;
        let places = self.context().sessions.places();
        for p in places {
            let mail = ShardMail::Drop { connection: p.connection, why: Close::Logout };
            self.cx.to_shard(p.shard, mail);
        }
        let mut result = self.quiet(&ids, QUIET_PATIENCE).await.map(|()| Reply::Done);
        let quiet = result.is_ok();
        let cut_short = self.context().cut_short;
        if cut_short {
            // What it had begun is told from what it had not at the next start, as after a crash.
            result = Err(SystemRefusal::OrderGivenUp.into());
        }
        if quiet && !cut_short {
            let closing: Vec<Boxed<'_, _>> =
                ids.iter().map(|id| -> Boxed<'_, _> { Box::pin(self.put_last_record(*id)) }).collect();
            for closed in join::all(closing).await {
                result = closed.and(result);
            }
        }
        // Shards that are still at work on an array keep it: the process ends, and the work with it.
        if quiet {
            self.forget(&ids, CLOSE_PATIENCE).await;
        }
        let now = self.cx.now();
        let what = match &result {
            Ok(_) => SystemEvent::HeadStopped,
            Err(r) => SystemEvent::HeadStoppedUnclean { why: r.why.clone() },
        };
        self.context_mut().happened(now, "head", what);
        let procedures = self.clone();
        self.cx.until_within(LOG_PATIENCE, move || procedures.context().unlogged.is_empty()).await;
        result
    }
}
