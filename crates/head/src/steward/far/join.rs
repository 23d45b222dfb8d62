//! The leader's part: shards of the other head come, answer, and go.

use super::letters;
use crate::mail::StewardMail;
use crate::order::{Answered, Order, Reply};
use crate::steward::context::head::{HeadContext, Stop};
use crate::steward::context::pool::PoolContext;
use crate::steward::patience::RETURN_PATIENCE;
use crate::steward::procedures::Procedures;
use crate::steward::sessions::table::{Sessions, Word};
use crate::steward::system::Upper;
use base::front::ControllerLife;
use base::{Bug, Duration, Uuid, VolumeId, planted};
use cluster::Part;
use cluster::fence::PUT_OUT;
use finding::{SystemEvent, SystemRefusal, Why};
use std::sync::Arc;

/// What shards answer at once they answer within this, or their head is put out: a record that waits for all of them is not to wait for
/// longer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pools that did not come to rest, or shards that have no memory for them, are asked again after this.
const AGAIN: Duration = Duration::from_secs(3);
/// The same where hosts wait, since nobody has some lanes.
const SOON: Duration = Duration::from_millis(50);
/// How long shards of two heads have to meet.
const MEETING: Duration = Duration::from_secs(2);
/// Most shards of a head.
const SHARDS_MAX: u16 = 1024;

impl HeadContext {
    /// Shards of the other head are ready, and do not take part, or do not know every pool.
    fn far_waits(&self) -> bool {
        let leads = self.system.as_ref().filter(|s| s.part() == Part::Leader && self.ready);
        let offered = leads.is_some_and(|s| s.far().offered().is_some());
        let unknown = |p: &PoolContext| p.shards < self.shards() && !p.leaving && !p.is_copying();
        // A drive that is tried refuses the follower meanwhile, which would cost its pool a leg.
        let joins = || self.far_shards == 0 && (self.fences_hold() || planted(Bug::ServesUntried));
        let learns = self.far_shards > 0 && self.pools.iter().any(unknown);
        offered && self.stop == Stop::No && (learns || joins())
    }
    /// Asks for what is due of that, unless it waits for its turn already: while a drive does not confirm its fence each attempt takes a
    /// second, and an operator's order would wait behind all those that were asked for meanwhile.
    fn ask_for_far(&mut self) {
        let order = (None, if self.far_waits() { Order::FarJoins } else { Order::LanesDeal });
        if !self.orders.contains(&order) {
            self.orders.push_back(order);
        }
    }
}

impl Procedures {
    /// Shards of the follower are ready to take part.
    pub(in crate::steward) fn far_offers(&self, shards: u16) {
        let is_in =
            self.context().system.as_ref().is_some_and(|s| s.both_serve() && s.member().follower_is_in());
        if is_in && (1..=SHARDS_MAX).contains(&shards) {
            self.in_system(|s| s.far_mut().offers(Some(shards)));
        }
    }
    /// Asks for that as long as it is to be done: by an order, so that nobody else asks something of shards meanwhile.
    pub(in crate::steward) async fn watch_far(&self) {
        loop {
            let procedures = self.clone();
            let due = move || {
                let context = procedures.context();
                context.far_waits() || context.lanes_wait()
            };
            self.cx.until(due).await;
            let bereft = {
                let context = self.context();
                context.pools.iter().any(PoolContext::is_bereft)
            };
            self.context_mut().ask_for_far();
            if bereft {
                self.cx.sleep(SOON).await;
            } else {
                let procedures = self.clone();
                let hurries = move || procedures.context().pools.iter().any(PoolContext::is_bereft);
                self.cx.until_within(AGAIN, hurries).await;
            }
        }
    }
    /// Order of the Steward's own: shards of the other head take part from now on, and all pools become known to them.
    pub(in crate::steward) async fn far_joins(&self) -> Answered {
        let shards = {
            let context = self.context();
            match context.system.as_ref().and_then(|s| s.far().offered()) {
                Some(shards) if context.far_waits() => shards,
                _ => return Ok(Reply::Done),
            }
        };
        if self.context().far_shards == 0 {
            let secret = self.in_system(|s| s.secret()).flatten().unwrap_or_default();
            self.context_mut().far_comes(shards, secret);
            self.meet_far(shards, secret);
            // For all arrays that there are: those that come ask for themselves.
            if let Err(why) = self.room_for([].iter()).await {
                self.far_stays_away(why.why.clone());
                return Err(why);
            }
            self.publish().await;
            let procedures = self.clone();
            let met = move || {
                let context = procedures.context();
                context.far_shards == 0 || context.far_met.len() == usize::from(context.own_shards)
            };
            if !self.cx.until_within(MEETING, met).await {
                self.far_stays_away(Box::new(SystemRefusal::ShardsUnreached.into()));
                return Err(SystemRefusal::ShardsUnreached.into());
            }
        }
        // It may have gone meanwhile: nobody would answer for it whether hosts that come here are ending there.
        if self.context().far_shards == 0 {
            return Ok(Reply::Done);
        }
        self.context_mut().sessions.other_serves();
        self.deal_lanes(false).await
    }
    fn far_stays_away(&self, why: Box<Why>) {
        let now = self.cx.now();
        self.context_mut().far_goes(now);
        self.part_from_far();
        if self.in_system(|s| s.far_mut().tells()) == Some(true) {
            let what = SystemEvent::ShardsStayAway { why };
            self.context_mut().happened(now, "system", what);
        }
    }
    /// The other head is out, or another process: its shards take part no more, and nobody waits for them.
    pub(in crate::steward) fn far_goes(&self) {
        let now = self.cx.now();
        self.in_system(|s| s.far_mut().offers(None));
        let was = self.context().far_shards > 0;
        self.context_mut().far_goes(now);
        if was {
            self.context_mut().sessions.other_is_gone();
            self.part_from_far();
            let procedures = self.clone();
            self.cx.spawn(async move {
                // A drive that does not confirm holds up its array alone, and is left out by then.
                let asked = procedures.clone();
                let shut = move || !asked.is_out() || asked.shut_off().is_none_or(|(done, all)| done == all);
                procedures.cx.until_within(PUT_OUT, shut).await;
                procedures.other_is_shut_out();
            });
        }
        if was && self.context().ready {
            // Its portals come here.
            self.publish_now();
        }
    }
    /// Shards of the other head are to have done something soon, or it is put out.
    pub(in crate::steward) fn far_owes(&self, done: impl Fn(&HeadContext) -> bool + Clone + 'static) {
        if self.context().far_shards == 0 {
            return;
        }
        let procedures = self.clone();
        self.cx.spawn(async move {
            let asked = procedures.clone();
            let over = move || {
                let context = asked.context();
                context.far_shards == 0 || done(&context)
            };
            // Twice the half: if this process did not run for a while, what came meanwhile is heard first.
            let again = over.clone();
            let patience = PATIENCE / 2 + procedures.slack_of_follower();
            if !procedures.cx.until_within(patience, over).await
                && !procedures.cx.until_within(PATIENCE / 2, again).await
            {
                procedures.in_system(|s| s.tell().on_silent());
            }
        });
    }
    /// A host has come to the other head: it is let in there once nothing of it is ending here.
    pub(in crate::steward) fn host_comes_there(&self, number: u64, name: String) {
        let procedures = self.clone();
        self.cx.spawn(async move {
            let asked = procedures.clone();
            procedures.cx.until(move || !asked.context().sessions.is_ending(&name)).await;
            let _ = procedures.in_system(|s| s.tell().send(Upper::Nothing { number }.encode()));
        });
    }
    /// Shards of the other head have nothing at a drive any more that they began before it left its pool: what lands late would undo what
    /// is copied there. False: they still have, or say nothing.
    pub(in crate::steward) async fn other_lets_go(&self, drive: Uuid) -> bool {
        if self.context().far_shards == 0 || planted(Bug::OtherHoldsOn) {
            return true;
        }
        let number = self.in_system(|s| s.far_mut().asks()).unwrap_or_default();
        let _ = self.in_system(|s| s.tell().send(Upper::LetGo { number, drive }.encode()));
        let procedures = self.clone();
        let over = move || {
            let context = procedures.context();
            // What a head that is out has begun is over before its lanes are dealt anew.
            context.far_shards == 0 || context.system.as_ref().is_none_or(|s| s.far().let_go(number))
        };
        self.cx.until_within(RETURN_PATIENCE, over).await && self.context().far_shards > 0
    }
    /// Says to the other head what is to be said about hosts.
    pub(in crate::steward) fn tell_other_head(&self) {
        let words = self.context_mut().sessions.take_words();
        for word in words {
            let word = match word {
                Word::Comes { number, name } => Upper::Comes { number, name },
                Word::Clear { number, units, reset } => Upper::Clear { number, units, reset },
                Word::Reset { number, name, life } => Upper::Reset { number, name, life },
                Word::Done { number } => Upper::Nothing { number },
            };
            let _ = self.in_system(|s| s.tell().send(word.encode()));
        }
    }
    /// A host there ends the tasks of all others on these logical units.
    pub(in crate::steward) fn clear_for_other(&self, number: u64, units: Arc<[VolumeId]>, reset: bool) {
        self.in_sessions(|s, fx| s.clear_for_other(number, units, reset, fx));
        self.tell_other_head();
    }
    /// A host there has its controller here ended.
    pub(in crate::steward) fn reset_for_other(&self, number: u64, name: &str, life: ControllerLife) {
        self.in_sessions(|s, fx| s.reset_for_other(number, name, life, fx));
        self.tell_other_head();
    }
    /// The other head has no way to drives any more.
    pub(in crate::steward) fn other_is_shut_out(&self) {
        self.in_sessions(Sessions::other_is_shut_out);
    }
    /// A shard of the other head says something.
    pub(in crate::steward) fn hear_far(&self, shard: u16, letter: &[u8]) {
        let now = self.cx.now();
        let Ok(mut letter) = letters::from_shard(letter) else { return };
        let mut context = self.context_mut();
        // What comes of one that has left is nothing any more.
        if shard < context.far_shards {
            let shard = context.own_shards + shard;
            if let StewardMail::Reported(report) = &mut letter {
                report.shard = shard;
            }
            context.hear(now, shard, letter);
        }
    }
}
