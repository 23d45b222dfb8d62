//! Every order is answered: one that cannot be made durable is refused before it begins, and one that does not end within its
//! limit is answered with what it waits for, and goes on.
//!
//! ```text
//! the state directory takes nothing ▶ refused, nothing has begun
//! begun ▶ ended ▶ its answer
//!   └─ the limit ▶ "not done yet: …" ▶ whoever orders something else hears that, too ▶ ended ▶ an event
//! ```

use crate::order::{Answered, Cause, Needs, Order};
use crate::steward::context::head::HeadContext;
use crate::steward::context::overdue::Overdue;
use crate::steward::procedures::Procedures;
use crate::steward::stop::ORDER_PATIENCE;
use base::{Duration, Instant};
use finding::{RecordCause, RecordEvent, RecordRefusal, SystemCause};
use std::cell::RefCell;
use std::rc::Rc;

/// How long whoever gave an order waits for its end. A client waits longer.
const ORDER_LIMIT: Duration = Duration::from_secs(120);

/// The same if it is known by then that a record can be put nowhere.
const UNRECORDED_LIMIT: Duration = Duration::from_secs(5);

/// How far an order is.
enum Progress {
    /// It goes on, and who gave it waits.
    Awaited,
    Ended(Answered),
    /// It goes on, and who gave it was told so; with what others are told meanwhile, if it keeps them from going on.
    Left(Option<Overdue>),
}

impl Procedures {
    /// Carries out an order, and answers it within its limit.
    pub(crate) async fn carry_out(&self, order: Order) -> Answered {
        if matches!(order, Order::Shutdown) {
            // What is under way is given up by then.
            let procedures = self.clone();
            let none = move || procedures.context().overdue.is_none();
            self.cx.until_within(ORDER_PATIENCE * 2, none).await;
            return self.execute(order).await;
        }
        self.check_may_begin(&order).await?;
        let looks = order.needs() == Needs::Nothing;
        let overdue = Overdue { order: order.command(), since: self.cx.now() };
        self.context_mut().is_under_way(Some(overdue.clone()));
        let progress = Rc::new(RefCell::new(Progress::Awaited));
        let (procedures, ended) = (self.clone(), progress.clone());
        self.cx.spawn(async move {
            let result = procedures.execute_unless_stopped(order).await;
            procedures.order_ended(result, &ended);
        });
        let (procedures, ended, since) = (self.clone(), progress.clone(), overdue.since);
        let over = move || {
            let now = procedures.cx.now();
            !matches!(*ended.borrow(), Progress::Awaited)
                || !looks && now >= since + UNRECORDED_LIMIT && procedures.context().is_unrecorded(now)
        };
        self.cx.until_within(ORDER_LIMIT, over).await;
        let mut context = self.context_mut();
        context.is_under_way(None);
        let refusal = context.unfinished(&overdue, self.cx.now());
        let left = (!looks).then_some(overdue);
        if let Progress::Ended(result) = progress.replace(Progress::Left(left.clone())) {
            return result;
        }
        if left.is_some() {
            context.is_overdue(left);
        }
        Err(refusal.into())
    }

    /// Whether an order may begin.
    ///
    /// # Errors
    /// An order before it goes on still, or nothing that it decides can be made durable.
    async fn check_may_begin(&self, order: &Order) -> Result<(), crate::order::Refusal> {
        let needs = order.needs();
        if needs == Needs::Nothing {
            return Ok(());
        }
        if let Some(overdue) = self.context().overdue.clone() {
            return Err(self.context().unfinished(&overdue, self.cx.now()).into());
        }
        if needs == Needs::ItsTurn {
            return Ok(());
        }
        match self.directory_fault().await {
            Some(fault) => Err(RecordRefusal::NothingDurable { fault }.into()),
            None => Ok(()),
        }
    }

    /// An order is over: whoever waits for it is answered; if nobody waits any more, it is an event.
    fn order_ended(&self, result: Answered, progress: &RefCell<Progress>) {
        let now = self.cx.now();
        let mut context = self.context_mut();
        let mut progress = progress.borrow_mut();
        match &mut *progress {
            Progress::Awaited | Progress::Ended(_) => *progress = Progress::Ended(result),
            Progress::Left(Some(Overdue { order, since })) => {
                let refused = result.err().map(|r| r.why);
                let seconds = now.since(*since).as_secs();
                let event = RecordEvent::LateOrderEnded { order: (*order).into(), seconds, refused };
                context.happened(now, "head", event);
                context.is_overdue(None);
                context.orders(false);
            }
            Progress::Left(None) => {}
        }
        drop(context);
        self.cx.changed();
    }
}

impl HeadContext {
    /// Whether a record of some pool is written in vain for so long that whoever waits for it is told.
    fn is_unrecorded(&self, now: Instant) -> bool {
        let in_vain = |began: Instant| now >= began + UNRECORDED_LIMIT;
        self.pools.iter().any(|p| p.trouble.is_some() && p.recording.is_some_and(in_vain))
    }

    /// What an order that is not over waits for, as far as that is known.
    pub(crate) fn waits_for(&self, now: Instant) -> Option<Cause> {
        let record = self.pools.iter().filter(|p| p.recording.is_some()).find_map(|p| p.trouble.clone());
        let unwritable =
            || self.unwritable.clone().map(|fault| RecordCause::StateUnwritable { fault }.into());
        record.or_else(unwritable).or_else(|| self.waits_in_system(now).map(Cause::from))
    }

    /// The same of what is decided by both heads, or takes the other one away from drives.
    fn waits_in_system(&self, now: Instant) -> Option<SystemCause> {
        let system = self.system.as_ref()?;
        if system.is_blind(now) {
            return Some(SystemCause::VotersUnreached);
        }
        let drive = system.late().into_iter().next()?;
        let head = system.member().me().other().letter().to_string();
        Some(SystemCause::DriveNotShutOff { drive, head })
    }

    fn unfinished(&self, overdue: &Overdue, now: Instant) -> RecordRefusal {
        RecordRefusal::OrderUnfinished {
            order: overdue.order.into(),
            seconds: now.since(overdue.since).as_secs(),
            waits_for: self.waits_for(now).map(Box::new),
        }
    }
}
