//! What is: the snapshot for `status`, and events.

use crate::mail::ShardMail;
use crate::order::{
    Answered, Array, ArrayLayout, Cause, Clearing, Connection, Counters, Drive, DriveRole, EventLine,
    Exported, HeadServes, Host, HostExport, Leg, Order, Pool, Portal, Reason, Reply, Resync, Shard, State,
    Status, SystemInfo, Time, Volume, Zone, ZoneWeight,
};
use crate::report::{self, ShardReport};
use crate::steward::context::absent::Shown;
use crate::steward::context::array::{ArrayContext, LegContext};
use crate::steward::context::found::Found;
use crate::steward::context::head::{HeadContext, Ill, PortalContext, Stop};
use crate::steward::context::pool::PoolContext;
use crate::steward::procedures::Procedures;
use crate::steward::status::paths;
use crate::steward::status::speed::Work;
use array::format::LegState;
use base::codec::hex;
use base::{Duration, HostId, Instant, PortalId};
use cluster::{HeadNo, Part};
use core::net::SocketAddr;
use finding::{
    DriveFault, Event, Notice, PortalCause, RecordCause, SpareFit, StatusCause, StatusNotice, SystemCause,
    SystemEvent, SystemRefusal, WayBack,
};
use std::collections::BTreeSet;

/// How long shards may take to tell their figures.
const REPORT_PATIENCE: Duration = Duration::from_secs(1);
/// How long a snapshot waits for the pools that are being imported at the start.
const START_PATIENCE: Duration = Duration::from_secs(1);
/// Events in a snapshot.
const EVENTS_SHOWN: usize = 20;
/// How long a start or an order goes on before `status` says so.
const SLOW: Duration = Duration::from_secs(3);

impl Procedures {
    /// Orders that only look.
    pub(crate) async fn look(&self, order: Order) -> Answered {
        let seen = match order {
            Order::Events { since } => {
                let context = self.context();
                let new = context.events.iter().filter(|e| e.number >= since);
                return Ok(Reply::Events(new.map(EventLine::answered).collect()));
            }
            Order::Figures => Reply::Figures(Box::new(self.figures().await)),
            _ => Reply::Snapshot(Box::new(self.snapshot(true).await)),
        };
        // Pools that are let go of are not shown, and no head has none for that.
        if self.context().stop == Stop::Closed { Err(SystemRefusal::Stopping.into()) } else { Ok(seen) }
    }

    /// Fresh figures from the shards; whether all have answered in time.
    pub(crate) async fn ask_reports(&self) -> bool {
        let before = self.context().reported.clone();
        self.tell_shards(|| ShardMail::Report);
        let procedures = self.clone();
        let fresh =
            move || procedures.context().reported.iter().zip(&before).all(|(now, before)| now > before);
        self.cx.until_within(REPORT_PATIENCE, fresh).await
    }

    /// The head at this moment; with `ask`, with fresh figures from the shards.
    pub(crate) async fn snapshot(&self, ask: bool) -> Status {
        if ask {
            // Right after the start, a moment's patience spares everybody a state that is none.
            let procedures = self.clone();
            self.cx.until_within(START_PATIENCE, move || procedures.context().ready).await;
            self.ask_reports().await;
        }
        let now = self.cx.now();
        let mut context = self.context_mut();
        build(&mut context, now)
    }
}

impl Procedures {
    /// Notes how far long work is, so that its rate is known whenever somebody looks.
    pub(crate) fn note_speeds(&self) {
        let now = self.cx.now();
        note_speeds(&mut self.context_mut(), now);
    }
}

/// See `Procedures::note_speeds`.
fn note_speeds(context: &mut HeadContext, now: Instant) {
    paths::note_rates(context, now);
    let mut resyncs = vec![];
    for p in &context.pools {
        for a in 0..p.arrays.len() {
            let sum = progress_of(context, p.arrays[a].id);
            let mut legs = p.arrays[a].legs.iter().enumerate();
            resyncs.extend(match legs.find(|(l, leg)| leg.open.is_some() && p.rebuilds(a, *l)) {
                Some((_, leg)) => Some((Work::Leg(leg.uuid), sum.resync_done)),
                None if compares(context, &p.arrays[a]) => {
                    Some((Work::Array(p.arrays[a].id), sum.crash_total - sum.crash_left))
                }
                None => None,
            });
        }
    }
    for p in &context.pools {
        let (left, total) = uncleared_of(context, p);
        if left > 0 {
            resyncs.push((Work::Clearing(p.id), total.saturating_sub(left)));
        }
    }
    context.speeds.retain(|work, _| resyncs.iter().any(|(known, _)| known == work));
    for (work, done) in resyncs {
        context.speeds.entry(work).or_default().note(now, done);
    }
    for i in 0..context.pools.len() {
        let sums = scrub_sums(context, i);
        let p = &mut context.pools[i];
        if p.scrub.run.is_some() {
            let done = p.scrubbed(&sums);
            p.scrub.speed.note(now, done);
        }
    }
}

/// Of each array of a pool: bytes of a scrub done, and in all, as its shards tell.
fn scrub_sums(context: &HeadContext, i: usize) -> Vec<(u64, u64)> {
    let sum = |a: &ArrayContext| {
        let reports = context.reports.iter().flatten().flat_map(|r| &r.arrays);
        let mine = reports.filter(|(id, _)| *id == a.id).map(|(_, p)| (p.scrub_done, p.scrub_total));
        mine.fold((0, 0), |sum, x| (sum.0 + x.0, sum.1 + x.1))
    };
    context.pools[i].arrays.iter().map(sum).collect()
}

/// How far the shards' work on an array is, together.
fn progress_of(context: &HeadContext, id: crate::layout::ArrayId) -> array::Progress {
    let mut sum = array::Progress::default();
    for (_, progress) in context.reports.iter().flatten().flat_map(|r| &r.arrays).filter(|(x, _)| *x == id) {
        sum.resync_done += progress.resync_done;
        sum.resync_total += progress.resync_total;
        sum.crash_left += progress.crash_left;
        sum.crash_total += progress.crash_total;
        sum.uncleared += progress.uncleared;
        sum.dirty_regions += progress.dirty_regions;
        sum.regions += progress.regions;
        sum.warm_writes += progress.warm_writes;
        sum.cold_writes += progress.cold_writes;
        sum.bitmap_sets += progress.bitmap_sets;
        sum.bitmap_clears += progress.bitmap_clears;
        sum.cold_wait_ns += progress.cold_wait_ns;
        sum.hedges_sent += progress.hedges_sent;
        sum.hedges_won += progress.hedges_won;
    }
    sum
}

fn build(context: &mut HeadContext, now: Instant) -> Status {
    note_speeds(context, now);
    let paths = paths::sums(context);
    let mut reasons = vec![];
    let mut pools: Vec<Pool> = vec![];
    let directory = state_directory(context);
    for unread in &context.unread {
        // A head that lost its name keeps its own pools away: that comes before what they suggest, since nobody else has
        // them who could release them.
        let keeps_away = unread.file == crate::steward::record::texts::IDENTITY && !context.absent.is_empty();
        reasons.push(Reason::new(
            if keeps_away { State::Offline } else { State::Degraded },
            directory.clone(),
            unread.cause.clone(),
        ));
    }
    for cause in context.unknown_causes() {
        reasons.push(Reason::new(State::Degraded, directory.clone(), cause));
    }
    for loss in context.losses.iter().cloned().chain(context.hosts_lost()) {
        reasons.push(Reason::new(State::Degraded, directory.clone(), loss.cause));
    }
    for i in 0..context.pools.len() {
        let pool = pool_of(context, i, now, &mut reasons);
        pools.push(pool);
    }
    for p in &context.absent {
        let cause = p.cause_for_hosts();
        reasons.push(Reason::new(State::Offline, format!("pool {}", p.name()), cause.clone()));
        let (name, uuid, cause) = (p.name().into(), p.uuid(), Some(cause));
        pools.push(Pool { name, uuid, cause, state: State::Offline, ..Pool::default() });
    }
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    let portals: Vec<Portal> = context.portals.iter().map(|p| portal_of(context, p.portal.id)).collect();
    // Portals that stay closed on purpose are no trouble of their own: what keeps them so is told above.
    let some_listen = portals.iter().any(|p| p.listening);
    for p in portals
        .iter()
        .filter(|p| !p.listening && context.ready && !context.held && context.stop != Stop::Closed)
    {
        let what = format!("portal {} {}", p.protocol.word(), p.address);
        let is_it = |row: &&PortalContext| {
            api::Protocol::from(row.portal.protocol) == p.protocol && row.portal.address == p.address
        };
        let row = context.portals.iter().find(is_it);
        let failure = row.and_then(PortalContext::failure);
        // An address of the other head's own: that one listens there once it is back.
        let is_others = p.served_by.is_some() && some_listen;
        if is_others && failure == Some(base::NetError::NoAddress) {
            continue;
        }
        let cause = StatusCause::PortalClosed {
            protocol: p.protocol.word().into(),
            address: p.address.to_string(),
            head: row.filter(|row| row.at != context.own_number()).and(p.head.clone()),
            fault: failure.map(Into::into),
            why: p.cause.clone().map(Box::new),
        };
        reasons.push(Reason::new(State::Degraded, what, cause));
    }
    if let Some(fault) = context.unwritable.clone() {
        let cause = RecordCause::StateUnwritable { fault };
        reasons.push(Reason::new(State::Degraded, directory, cause));
    }
    if !context.ready && context.system.is_none() && now.since(context.started) >= SLOW {
        reasons.push(Reason::new(State::Degraded, "head", SystemCause::HeadStarts));
    }
    let slow = context.under_way.as_ref().filter(|order| now.since(order.since) >= SLOW);
    if let Some(overdue) = context.overdue.as_ref().or(slow) {
        let waits_for = context.waits_for(now).map(Box::new);
        let cause = RecordCause::OrderUnfinished { order: overdue.order.into(), waits_for };
        reasons.push(Reason::new(State::Degraded, "orders", cause));
    }
    reasons.sort_by_key(|r| core::cmp::Reverse(r.state));
    context.times.turn(now);
    let mut volumes: Vec<Volume> = context.shown().flat_map(|p| volumes_of(context, &p, &pools)).collect();
    volumes.sort_by(|a, b| a.name.cmp(&b.name));
    // Each order has an event of its own beside those of what it did.
    let shown = |e: &&EventLine| !matches!(e.event, Event::System(SystemEvent::OrderDone { .. }));
    let mut events: Vec<api::Event> =
        context.events.iter().rev().filter(shown).take(EVENTS_SHOWN).map(EventLine::answered).collect();
    events.reverse();
    Status {
        at: Time(context.unix(now)),
        uptime_seconds: now.since(context.started).as_secs(),
        system: system_of(&context.shown_system()),
        health: reasons.iter().map(|r| r.state).max().unwrap_or_default(),
        reasons,
        drives: drives_of(context),
        pools,
        volumes,
        hosts: {
            let of = |h: &access::Host| Host {
                paths: paths::of_host(context, &paths, h.id, now),
                ..host_of(context, h)
            };
            context.hosts().iter().map(of).collect()
        },
        portals,
        serves: served_by_heads(context),
        connections: connections_of(context),
        shards: context.reports.iter().flatten().map(|r| shard_of(context, r)).collect(),
        events,
        notices: {
            let lasting = context
                .notices
                .iter()
                .cloned()
                .chain(crate::steward::record::vanished::restored(&context.restored));
            lasting
                .chain(stood_in(context, now))
                .map(|notice| api::Noticed { notice, message: String::new() })
                .collect()
        },
        ..Status::default()
    }
}

/// The state directory, as a subject. Each of two heads has one, as a rule at the same path.
fn state_directory(context: &HeadContext) -> String {
    let member = context.system.as_ref().map(|s| s.member());
    let has_other = |m: &&cluster::Member| m.known().head(m.me().other()).state != cluster::HeadState::None;
    let head = member.filter(has_other).map(|m| m.me().letter());
    head.map_or("state directory".into(), |head| format!("head {head}, state directory"))
}

fn is_mirror(array: &Array) -> bool {
    array.layout == ArrayLayout::Mirror
}

fn system_of(s: &base::view::System) -> SystemInfo {
    SystemInfo {
        nqn: s.nqn.clone(),
        iqn: s.iqn.clone(),
        uuid: s.uuid,
        serial: s.serial.clone(),
        model: s.model.clone(),
        firmware: s.firmware.clone(),
    }
}

/// Spares that took the places of drives: which, and when.
fn stood_in(context: &HeadContext, now: Instant) -> Vec<Notice> {
    let notice = |p: &PoolContext| {
        let (row, spare) = p.stands_in()?;
        let notice = StatusNotice::SpareStandsIn {
            pool: p.config().name.clone(),
            spare: spare.into(),
            old: row.path.clone(),
            seconds: context.unix(now).saturating_sub(row.since),
            spares_left: p.spares_ready(),
        };
        // Where none is left that is a reason.
        (p.spares_ready() > 0).then(|| notice.into())
    };
    context.pools.iter().filter_map(notice).collect()
}

fn pool_of(context: &HeadContext, i: usize, now: Instant, reasons: &mut Vec<Reason>) -> Pool {
    let arrays: Vec<Array> =
        (0..context.pools[i].arrays.len()).map(|a| array_of(context, i, a, now)).collect();
    let p = &context.pools[i];
    let scrub = p.scrub_shown(now, &scrub_sums(context, i));
    let what = format!("pool {}", p.config().name);
    let word = |a: usize| p.array_name(a);
    for (a, array) in arrays.iter().enumerate() {
        for (l, leg) in array.legs.iter().enumerate() {
            if leg.state == State::Optimal {
                continue;
            }
            let awaited = p.replaces(leg.uuid).is_some_and(|r| p.is_leg(r.old));
            let help = match p.leg_state(a, l) {
                // Of an array that nothing serves the last leg in sync comes first: see there.
                LegState::Out | LegState::JustOut if array.state >= State::Offline => None,
                LegState::Out | LegState::JustOut if awaited => Some(WayBack::ReturnOrRemove {
                    leg: leg.path.clone(),
                    shaped: is_shaped_away(context, p, a, l),
                }),
                LegState::Out | LegState::JustOut => Some(way_back(context, p, a, l)),
                LegState::InSync => Some(WayBack::AsTheCauseSays),
                LegState::Rebuilding | LegState::RebuildingFull => None,
            };
            let state = if leg.state == State::Rebuilding { State::Rebuilding } else { array.state };
            let waits = is_mirror(array) && p.is_out(a, l) && !awaited;
            let cause = StatusCause::LegNotOptimal {
                leg: leg.path.clone(),
                mirror: word(a),
                why: leg.cause.clone().map(Box::new),
                no_spare_fits: p.no_spare_fits(a).filter(|_| waits).unwrap_or_default(),
                help,
            };
            reasons.push(Reason::new(state, what.clone(), cause));
        }
        if is_mirror(array) && array.legs.len() == 1 && array.state == State::Degraded {
            let (pool, leg) = (p.config().name.clone(), array.legs[0].path.clone());
            let cause = StatusCause::MirrorOneLeg { pool, mirror: word(a), leg };
            reasons.push(Reason::new(State::Degraded, what.clone(), cause));
        }
        if array.state == State::Rebuilding && array.legs.iter().all(|l| l.state == State::Optimal) {
            let cause = StatusCause::MirrorComparing { mirror: word(a) };
            reasons.push(Reason::new(State::Rebuilding, what.clone(), cause));
        }
        if p.arrays[a].medium_lost > 0 {
            let cause = StatusCause::BlocksUnreadable { array: word(a), pieces: p.arrays[a].medium_lost };
            reasons.push(Reason::new(State::Degraded, what.clone(), cause));
        }
    }
    for spare in p.spares.iter().filter(|s| s.open.is_none()) {
        let (path, pool) = (spare.path.clone(), p.config().name.clone());
        let shaped = context.shapes_at_start.get(&path).is_some_and(|s| s.hang || s.gone);
        let why = spare.found.as_ref().map(|found| Box::new(Cause::from(found.cause(&path))));
        let cause = match (&spare.found, why) {
            (_, why) if shaped => StatusCause::SpareShapedAway { spare: path, why },
            // Another label would not make it answer.
            (Some(Found::Mute { .. }), Some(why)) => StatusCause::SpareUnreadable { spare: path, why },
            // What lies there has its own place; the spare is elsewhere.
            (Some(Found::Drive { .. } | Found::Moved { .. }), Some(why)) => {
                StatusCause::SpareElsewhere { spare: path, why }
            }
            (Some(_), Some(why)) => StatusCause::SpareOverwritten { spare: path, pool, why },
            (_, None) | (None, _) => StatusCause::SpareMissing { spare: path, pool },
        };
        reasons.push(Reason::new(State::Degraded, what.clone(), cause));
    }
    for (path, ill) in p.spares.iter().filter_map(|s| Some((&s.path, s.open.as_ref().and(s.ill.as_ref())?))) {
        let cause = StatusCause::SpareUnhealthy { spare: path.clone(), why: Box::new(ill.clone().into()) };
        reasons.push(Reason::new(State::Degraded, what.clone(), cause));
    }
    for spare in &p.spares {
        let Some(SpareFit::Nowhere { why }) = p.fit_of(spare) else { continue };
        let (spare, pool) = (spare.path.clone(), p.config().name.clone());
        let cause = StatusCause::SpareFitsNone { spare, pool, why };
        reasons.push(Reason::new(State::Degraded, what.clone(), cause));
    }
    let used = p.stands_in().filter(|_| p.spares_ready() == 0);
    if let Some((row, spare)) = used {
        let (pool, seconds) = (p.config().name.clone(), context.unix(now).saturating_sub(row.since));
        let (spare, old) = (spare.to_string(), row.path.clone());
        let cause = StatusCause::NoSpareLeft { pool, spare, old, seconds };
        reasons.push(Reason::new(State::Optimal, what.clone(), cause));
    }
    let last = p.config().extras.scrub.last.map(|l| l.found).unwrap_or_default();
    if last.differed > last.repaired {
        // Which leg is right is for the operator to say: a repair that guesses may spread the wrong one.
        let cause = StatusCause::ScrubDiffered {
            pool: p.config().name.clone(),
            bytes: last.differed - last.repaired,
            running: p.scrub.run.is_some(),
        };
        reasons.push(Reason::new(State::Degraded, what.clone(), cause));
    }
    if let Some(trouble) = &p.trouble {
        let why = Box::new(trouble.clone());
        let (state, cause) = if p.unrecorded {
            (State::Offline, StatusCause::LossNotOnRecord { why })
        } else {
            (State::Degraded, StatusCause::PoolNotRecorded { why })
        };
        reasons.push(Reason::new(state, what.clone(), cause));
    }
    let state = arrays.iter().map(|a| a.state).max().unwrap_or_default();
    let worst = arrays.iter().enumerate().find(|(_, a)| a.state == state && state != State::Optimal);
    let (state, cause) = if p.unrecorded {
        (State::Offline, Some(StatusCause::PoolLossNotOnRecord.into()))
    } else if let Some(drive) = context.lacks_fence(p) {
        let cause = finding::PoolCause::PoolBehindFence { drives: vec![drive] };
        reasons.push(Reason::new(State::Offline, what.clone(), cause.clone()));
        (State::Offline, Some(cause.into()))
    } else {
        let cause = worst.map(|(i, a)| {
            StatusCause::ArrayNotOptimal { array: word(i), why: a.cause.clone().map(Box::new) }.into()
        });
        (state, cause)
    };
    let space = p.space();
    Pool {
        name: p.config().name.clone(),
        uuid: p.config().uuid,
        state,
        cause,
        reason: String::new(),
        chunk_bytes: p.config().map.chunk_bytes() as u32,
        bytes: space.count() * volume::GRANULE_BYTES,
        used_bytes: (space.count() - space.free()) * volume::GRANULE_BYTES,
        freeing_bytes: p.resting_bytes(),
        clearing: clearing_of(context, p, now),
        block_bytes: p.config().block_bytes,
        zones: p
            .config()
            .map
            .zones()
            .into_iter()
            .map(|z| Zone {
                bytes: z.bytes,
                weights: z
                    .parts
                    .iter()
                    .map(|w| ZoneWeight { array: w.array, weight: u32::from(w.weight) })
                    .collect(),
            })
            .collect(),
        arrays,
        scrub,
        spares: p.spares_shown(),
        no_spare: used.is_some(),
    }
}

/// Bytes of a pool's arrays that are uncleared, and bytes in all.
fn uncleared_of(context: &HeadContext, p: &PoolContext) -> (u64, u64) {
    let left = p.arrays.iter().map(|a| progress_of(context, a.id).uncleared).sum();
    (left, p.arrays.iter().map(|a| a.geometry.data_bytes).sum())
}

fn clearing_of(context: &HeadContext, p: &PoolContext, now: Instant) -> Option<Clearing> {
    let (left_bytes, total) = uncleared_of(context, p);
    let speed = context.speeds.get(&Work::Clearing(p.id));
    let (rate, eta) = speed.map_or((0, None), |s| s.of(now, total.saturating_sub(left_bytes), total));
    (left_bytes > 0).then_some(Clearing { left_bytes, rate, seconds_left: eta })
}

fn array_of(context: &HeadContext, i: usize, a: usize, now: Instant) -> Array {
    let sum = progress_of(context, context.pools[i].arrays[a].id);
    let p = &context.pools[i];
    let mut legs: Vec<Leg> = (0..p.arrays[a].legs.len()).map(|l| leg_of(p, a, l)).collect();
    let array = &p.arrays[a];
    let rebuilding = legs.iter().position(|l| l.state == State::Rebuilding);
    let full = rebuilding.is_some_and(|l| array.legs[l].full);
    let in_sync = legs.iter().filter(|l| l.state == State::Optimal).count();
    let out = legs.iter().find(|l| matches!(l.state, State::Failed | State::Offline));
    let of_leg =
        |leg: &Leg| StatusCause::LegOfArray { leg: leg.path.clone(), why: leg.cause.clone().map(Box::new) };
    let (mut state, mut cause) = match (in_sync, out, rebuilding) {
        (0, ..) => (State::Failed, Some(StatusCause::ArrayWithoutLegs)),
        (_, Some(leg), _) => (State::Degraded, Some(of_leg(leg))),
        (_, None, Some(l)) => (State::Rebuilding, Some(of_leg(&legs[l]))),
        (_, None, None) if compares(context, array) => (State::Rebuilding, Some(StatusCause::ArrayComparing)),
        (_, None, None) if p.config().arrays[a].mirror && legs.len() == 1 => {
            (State::Degraded, Some(StatusCause::ArrayOneLeg { leg: legs[0].path.clone() }))
        }
        (_, None, None) => (State::Optimal, None),
    };
    for (l, leg) in legs.iter_mut().enumerate() {
        let Some(ill) = ill_of(context, p, a, l) else { continue };
        leg.state = ill.state;
        leg.cause = Some(ill.cause.clone());
        if state < ill.state {
            state = ill.state;
            cause = Some(of_leg(leg));
        }
    }
    let out = Array {
        layout: ArrayLayout::of(p.config().arrays[a].mirror),
        state,
        cause: cause.map(Into::into),
        reason: String::new(),
        bytes: array.geometry.data_bytes,
        legs,
        region_bytes: array.geometry.region_bytes,
        regions_dirty: u64::from(sum.dirty_regions),
        regions: u64::from(array.geometry.regions()),
        epoch: p.record().arrays[a].epoch,
        resync: None,
        warm_writes: sum.warm_writes,
        cold_writes: sum.cold_writes,
        bitmap_sets: sum.bitmap_sets,
        bitmap_clears: sum.bitmap_clears,
        bitmap_wait_ns: sum.cold_wait_ns,
        hedged_reads: sum.hedges_sent,
        hedged_reads_won: sum.hedges_won,
    };
    let (work, done_bytes, total_bytes, partial) = match rebuilding {
        Some(leg) => (Work::Leg(array.legs[leg].uuid), sum.resync_done, sum.resync_total, !full),
        None if compares(context, array) => {
            let partial = array.dirty.count() < array.geometry.regions();
            (Work::Array(array.id), sum.crash_total - sum.crash_left, sum.crash_total, partial)
        }
        None => return out,
    };
    let speed = context.speeds.get(&work);
    let (rate, eta) = speed.map_or((0, None), |s| s.of(now, done_bytes, total_bytes));
    let leg = rebuilding.map(|leg| leg as u16);
    Array { resync: Some(Resync { leg, partial, done_bytes, total_bytes, rate, seconds_left: eta }), ..out }
}

/// What may differ between an array's legs is being made the same: since a crash, or since it was made.
fn compares(context: &HeadContext, array: &ArrayContext) -> bool {
    array.unclean && array.clean.len() < usize::from(context.shards_of(array.id))
}

fn leg_of(p: &PoolContext, a: usize, l: usize) -> Leg {
    let leg: &LegContext = &p.arrays[a].legs[l];
    let state = match (p.leg_state(a, l), &leg.open) {
        (LegState::InSync, Some(_)) => State::Optimal,
        (LegState::Rebuilding | LegState::RebuildingFull, Some(_)) => State::Rebuilding,
        (LegState::Out | LegState::JustOut, Some(_)) => State::Failed,
        (_, None) => State::Offline,
    };
    let cause = leg.reason.clone().filter(|_| state != State::Optimal);
    let replaces = p.replaces(leg.uuid).map(|r| r.old_path.clone());
    // Slow is said of a leg that others stand in for; where it serves alone, that tells nobody anything.
    let others = (0..p.arrays[a].legs.len()).any(|o| o != l && p.leg_state(a, o) == LegState::InSync);
    let slow = state == State::Optimal && others && !leg.slow.is_empty();
    Leg { path: leg.path.clone(), uuid: leg.uuid, state, cause, reason: String::new(), slow, replaces }
}

/// Whether a leg was shaped to be gone or to hang: that is cleared before it can return.
fn is_shaped_away(context: &HeadContext, p: &PoolContext, a: usize, l: usize) -> bool {
    let leg = &p.arrays[a].legs[l];
    context.shape_of(leg.open.as_ref(), &leg.path).is_some_and(|s| s.gone || s.hang)
}

/// What helps a leg that is out.
fn way_back(context: &HeadContext, p: &PoolContext, a: usize, l: usize) -> WayBack {
    let row = &p.arrays[a].legs[l];
    let leg = row.path.clone();
    if is_shaped_away(context, p, a, l) {
        return WayBack::ClearShape { leg };
    }
    if let Some(found) = &row.found {
        return WayBack::AsFound { why: Box::new(found.cause(&leg).into()) };
    }
    let fault = match &row.reason {
        Some(Cause::Leg(why)) => why.fault(),
        _ => None,
    };
    match fault {
        Some(DriveFault::NoSpace) => WayBack::FreeFileSystem { leg },
        Some(DriveFault::NoSpaceBlock) => WayBack::RestoreSpace { leg },
        // A return would say that it is not there.
        _ if row.open.is_none() => WayBack::Attach { leg },
        _ => WayBack::Return { leg },
    }
}

/// What ails the drive of a leg in sync.
fn ill_of<'a>(context: &'a HeadContext, p: &PoolContext, a: usize, l: usize) -> Option<&'a Ill> {
    let open = p.arrays[a].legs[l].open.as_ref()?;
    context.ills.get(&open.id).filter(|_| p.leg_state(a, l) == LegState::InSync)
}

pub(super) fn add(to: &mut Counters, c: &report::Counters) {
    to.reads += c.reads;
    to.read_bytes += c.read_bytes;
    to.writes += c.writes;
    to.write_bytes += c.write_bytes;
    to.flushes += c.others;
    to.errors += c.errors;
}

fn drives_of(context: &HeadContext) -> Vec<Drive> {
    let mut out = vec![];
    for p in &context.pools {
        for (a, array) in p.arrays.iter().enumerate() {
            let array: &ArrayContext = array;
            for (l, leg) in array.legs.iter().enumerate() {
                let shown = leg_of(p, a, l);
                let mut drive = Drive {
                    path: leg.path.clone(),
                    uuid: Some(leg.uuid),
                    pool: Some(p.config().name.clone()),
                    role: if leg.open.is_some() { DriveRole::Leg } else { DriveRole::Missing },
                    state: Some(shown.state),
                    cause: shown.cause,
                    slow: shown.slow,
                    ..Drive::default()
                };
                if let Some(ill) = ill_of(context, p, a, l) {
                    drive.state = Some(ill.state);
                    drive.cause = Some(ill.cause.clone());
                }
                // Under every number that it has had: figures go on when a drive returns.
                let lives = context.lives.get(&leg.uuid);
                let figures = context.reports.iter().flatten().flat_map(|r| &r.drives);
                for r in figures.filter(|r| lives.is_some_and(|ids| ids.contains(&r.drive))) {
                    add(&mut drive.counters, &r.counters);
                    drive.errors += r.counters.errors + r.timeouts;
                }
                // A head that began since knows of none.
                let failed = p.config().extras.failed(leg.uuid);
                drive.errors = drive.errors.max(failed.map_or(0, |row| row.errors));
                let ids = lives.into_iter().flatten();
                drive.read_times = context.times.drive(ids.clone(), false);
                drive.write_times = context.times.drive(ids, true);
                drive.shape = context.shape_of(leg.open.as_ref(), &leg.path).map(Into::into);
                if let Some(o) = &leg.open {
                    drive.kind = o.info.kind.word().into();
                    drive.model = o.info.model.clone();
                    drive.serial = o.info.serial.clone();
                    (drive.bytes, drive.block_bytes) = (o.info.bytes, o.info.block_bytes);
                    drive.volatile_cache = o.info.volatile_cache;
                }
                out.push(drive);
            }
        }
        for spare in &p.spares {
            let mut drive = Drive {
                path: spare.path.clone(),
                uuid: Some(spare.uuid),
                pool: Some(p.config().name.clone()),
                role: DriveRole::Spare,
                state: Some(State::Optimal),
                ..Drive::default()
            };
            if let Some(o) = &spare.open {
                drive.kind = o.info.kind.word().into();
                (drive.model, drive.serial) = (o.info.model.clone(), o.info.serial.clone());
                (drive.bytes, drive.block_bytes) = (o.info.bytes, o.info.block_bytes);
                drive.volatile_cache = o.info.volatile_cache;
            }
            if spare.ready().is_none() {
                drive.state = Some(State::Offline);
                drive.cause = spare.reason().map(Into::into);
            }
            out.push(drive);
        }
    }
    out.extend(context.removed_failed());
    out
}

fn volumes_of(context: &HeadContext, p: &Shown<'_>, pools: &[Pool]) -> Vec<Volume> {
    let state = pools.iter().find(|x| x.uuid == p.config.uuid).map_or(State::Offline, |x| x.state);
    let volume = |v: &volume::Volume| {
        let id = p.volume_ids[&v.uuid];
        let (mut counters, mut capped) = (Counters::default(), 0);
        for (_, c) in context.reports.iter().flatten().flat_map(|r| &r.volumes).filter(|(x, _)| *x == id) {
            add(&mut counters, c);
            capped += c.capped;
        }
        let caps = p.config.caps_of(v.uuid);
        let grants = p.config.grants.of(v.uuid).expect("every volume has a number");
        let exported = |g: &access::Grant| Exported {
            host: context.hosts().iter().find(|h| g.is_for(h)).map(|h| h.name.clone()),
            names: g.nqns.iter().chain(&g.iqns).cloned().collect(),
            lun: g.lun,
        };
        Volume {
            name: format!("{}/{}", p.config.name, v.name),
            uuid: v.uuid,
            nguid: hex(&v.nguid()),
            naa: naa_text(&v.naa),
            nsid: grants.nsid,
            bytes: v.bytes,
            block_bytes: v.block_bytes,
            state,
            runs: v.map.runs().len() as u32,
            space_bytes: v.map.granules() * volume::GRANULE_BYTES,
            exports: grants.grants.iter().map(exported).collect(),
            iops_max: caps.iops_max,
            mbps_max: caps.mbps_max,
            weight: p.config.weight_of(v.uuid),
            capped,
            counters,
            read_times: context.times.volume(id, false),
            write_times: context.times.volume(id, true),
        }
    };
    p.config.volumes.iter().map(volume).collect()
}

fn host_of(context: &HeadContext, h: &access::Host) -> Host {
    let mut exports = vec![];
    for p in context.shown() {
        for (volume, nsid, lun) in p.config.grants.for_host(h) {
            if let Some(v) = p.config.volumes.by_uuid(volume) {
                let volume = format!("{}/{}", p.config.name, v.name);
                exports.push(HostExport { volume, nsid, lun });
            }
        }
    }
    exports.sort_by(|a, b| a.volume.cmp(&b.volume));
    Host {
        name: h.name.clone(),
        nqns: h.nqns.clone(),
        iqns: h.iqns.clone(),
        authenticated: h.chap_secret.is_some(),
        mutual: h.mutual_secret.is_some(),
        chap_user: h.chap_user.clone(),
        exports,
        connections: connections_of_host(context, h.id),
        paths: vec![],
    }
}

fn portal_of(context: &HeadContext, id: PortalId) -> Portal {
    let row = context.portals.iter().find(|p| p.portal.id == id).expect("taken from the context");
    let whereabouts = row.portal.moves.and_then(|_| context.addresses.whereabouts(row.portal.address.ip()));
    let away = whereabouts
        .and_then(|w| w.as_ref().err())
        .map(|why| PortalCause::AddressFailed { why: why.clone() }.into());
    let closed: Option<Cause> = row.results.iter().find_map(|r| match r {
        Some(Err(e)) => Some(StatusCause::PortalFault { fault: (*e).into() }.into()),
        _ if context.stop == Stop::Closed => Some(StatusCause::PortalStopping.into()),
        None if context.held => Some(StatusCause::PortalHeld.into()),
        None => Some(StatusCause::PortalOpening.into()),
        Some(Ok(_)) => None,
    });
    let listening = closed.is_none();
    let connections =
        context.reports.iter().flatten().flat_map(|r| &r.connections).filter(|c| c.portal == id).count();
    let in_system = context.system.is_some();
    // An address that moves belongs to whichever head leads.
    let head = if row.portal.moves.is_some() { row.at } else { row.portal.head };
    // The address in use says more than the one asked for, where that had port 0.
    let in_use: Option<SocketAddr> = row.results.iter().find_map(|r| r.and_then(Result::ok));
    let letter = |n: u8| HeadNo::from_number(n).map(|h| h.letter().to_string());
    Portal {
        protocol: row.portal.protocol.into(),
        address: in_use.unwrap_or(row.portal.address),
        listening,
        cause: away.or(closed),
        reason: String::new(),
        connections: connections as u32,
        head: letter(head).filter(|_| in_system),
        served_by: letter(row.at).filter(|_| in_system && row.at != head),
        prefix: row.portal.moves.map(|m| m.prefix),
        interface: row.portal.moves.and_then(|m| m.interface).map(|i| i.as_str().to_string()),
        on: whereabouts.and_then(|w| w.as_ref().ok()).map(|i| i.as_str().to_string()),
    }
}

/// What each head does for hosts, by its number, if this one leads.
fn served_by_heads(context: &HeadContext) -> Option<[HeadServes; 2]> {
    context.system.as_ref().filter(|s| s.part() == Part::Leader)?;
    let lanes_all = context.pools.iter().map(|p| p.arrays.len()).sum::<usize>() as u32 * array::LANES;
    let owners = context.pools.iter().flat_map(|p| &p.arrays);
    let owners: Vec<u16> =
        owners.flat_map(|a| (0..array::LANES).map(|lane| a.lanes.of_region(lane))).collect();
    let connections = connections_of(context);
    Some([0, 1].map(|head| {
        let has = |shard: u16| (shard < context.own_shards) == (head == context.own_number());
        let letter = HeadNo::from_number(head).map(|h| h.letter().to_string());
        let here = |c: &&Connection| c.head == letter;
        let hosts = connections.iter().filter(here).filter_map(|c| c.host.as_ref());
        let reports = context.reports.iter().flatten().filter(|r| has(r.shard));
        HeadServes {
            portals: vec![],
            commands: reports.map(|r| shard_of(context, r).commands).sum(),
            hosts: hosts.collect::<BTreeSet<_>>().len() as u32,
            lanes: owners.iter().filter(|shard| has(**shard)).count() as u32,
            lanes_all,
        }
    }))
}

/// A shard's head, of a system of two, and its number there.
fn at_home(context: &HeadContext, shard: u16) -> (Option<String>, u16) {
    let (head, number) = match shard.checked_sub(context.own_shards) {
        Some(number) => (context.own_number() ^ 1, number),
        None => (context.own_number(), shard),
    };
    let head = HeadNo::from_number(head).filter(|_| context.system.is_some());
    (head.map(|h| h.letter().to_string()), number)
}

fn connections_of_host(context: &HeadContext, host: HostId) -> u32 {
    let all = context.reports.iter().flatten().flat_map(|r| &r.connections);
    all.filter(|c| c.login.session.is_some() && c.host == Some(host)).count() as u32
}

fn connections_of(context: &HeadContext) -> Vec<Connection> {
    let mut out = vec![];
    for r in context.reports.iter().flatten() {
        for c in &r.connections {
            let host = c.host.and_then(|h| context.hosts().by_id(h));
            let portal = context.portals.iter().find(|p| p.portal.id == c.portal);
            let n = &c.counters;
            let (head, shard) = at_home(context, r.shard);
            out.push(Connection {
                head,
                host: host.map(|h| h.name.clone()),
                protocol: portal.map_or(api::Protocol::Nvme, |p| p.portal.protocol.into()),
                peer: c.peer,
                shard,
                session: c.login.session,
                queue: c.login.queue,
                commands: n.reads + n.writes + n.others + n.errors,
                in_flight: c.commands,
                header_digest: c.digests.header,
                data_digest: c.digests.data,
            });
        }
    }
    out
}

fn shard_of(context: &HeadContext, r: &ShardReport) -> Shard {
    let commands = r.volumes.iter().map(|(_, c)| c.reads + c.writes + c.others + c.errors).sum();
    let last = context.last_protocol_errors.get(&r.shard).copied();
    let (head, shard) = at_home(context, r.shard);
    Shard {
        head,
        shard,
        connections: r.connections.len() as u32,
        commands,
        requests: r.connections.iter().map(|c| c.commands).sum(),
        drive_ops: r.drives.iter().map(|d| d.in_flight).sum(),
        buffer_bytes: r.buffers_used,
        buffer_bytes_max: r.buffers_bytes,
        protocol_errors: r.protocol_errors,
        last_protocol_fault: last,
        last_protocol_error: String::new(),
        // The head knows no clock: its world fills these in.
        longest_turn_us: 0,
        long_turns: 0,
    }
}

/// The SCSI identity as hosts read it (VPD page 83h): of an NAA that is not of type 6 only 8 bytes are meant.
fn naa_text(naa: &[u8; 16]) -> String {
    format!("naa.{}", hex(if naa[0] >> 4 == 6 { &naa[..] } else { &naa[..8] }))
}
