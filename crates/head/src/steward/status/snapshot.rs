//! What is: the snapshot for `status`, and events.

use crate::mail::ShardMail;
use crate::order::{
    Answered, Array, ArrayLayout, Cause, Clearing, Connection, Counters, Drive, DriveRole, EventLine,
    Exported, HeadServes, Host, HostExport, Leg, Order, Pool, Portal, Reason, Reply, Resync, Shard, State,
    Status, SystemInfo, Time, Volume, Zone, ZoneWeight,
};
use crate::report::{self, ShardReport};
use crate::steward::context::absent::Shown;
use crate::steward::context::array::{ArrayDesk, LegDesk};
use crate::steward::context::desk::{Desk, Ill, PortalDesk, StoodIn, Stop};
use crate::steward::context::found::Found;
use crate::steward::context::pool::PoolDesk;
use crate::steward::legs::spares::Fit;
use crate::steward::office::Office;
use crate::steward::status::speed::Work;
use crate::steward::words::{NO_SPACE_BLOCK, address_words, array_word, count, error_words, net_words};
use array::format::LegState;
use base::codec::hex;
use base::{DriveError, Duration, HostId, Instant, PortalId};
use cluster::{HeadNo, Part};
use core::net::SocketAddr;
use std::collections::BTreeSet;

/// How long shards may take to tell their figures.
const REPORT_PATIENCE: Duration = Duration::from_secs(1);
/// How long a snapshot waits for the pools that are being imported at the start.
const START_PATIENCE: Duration = Duration::from_secs(1);
/// Events in a snapshot.
const EVENTS_SHOWN: usize = 20;

impl Office {
    /// Orders that only look.
    pub(crate) async fn look(&self, order: Order) -> Answered {
        match order {
            Order::Events { since } => {
                let desk = self.desk();
                let new = desk.events.iter().filter(|e| e.number >= since);
                Ok(Reply::Events(new.map(EventLine::answered).collect()))
            }
            _ => Ok(Reply::Snapshot(Box::new(self.snapshot(true).await))),
        }
    }

    /// Fresh figures from the shards, if they answer in time.
    pub(crate) async fn ask_reports(&self) {
        let before = self.desk().reported.clone();
        self.tell_shards(|| ShardMail::Report);
        let office = self.clone();
        let fresh = move || office.desk().reported.iter().zip(&before).all(|(now, before)| now > before);
        self.cx.until_within(REPORT_PATIENCE, fresh).await;
    }

    /// The head at this moment; with `ask`, with fresh figures from the shards.
    pub(crate) async fn snapshot(&self, ask: bool) -> Status {
        if ask {
            // Right after the start, a moment's patience spares everybody a state that is none.
            let office = self.clone();
            self.cx.until_within(START_PATIENCE, move || office.desk().ready).await;
            self.ask_reports().await;
        }
        let now = self.cx.now();
        let mut desk = self.desk_mut();
        build(&mut desk, now)
    }
}

impl Office {
    /// Notes how far long work is, so that its rate is known whenever somebody looks.
    pub(crate) fn note_speeds(&self) {
        let now = self.cx.now();
        note_speeds(&mut self.desk_mut(), now);
    }
}

/// See `Office::note_speeds`.
fn note_speeds(desk: &mut Desk, now: Instant) {
    let mut resyncs = vec![];
    for p in &desk.pools {
        for a in 0..p.arrays.len() {
            let sum = progress_of(desk, p.arrays[a].id);
            let mut legs = p.arrays[a].legs.iter().enumerate();
            resyncs.extend(match legs.find(|(l, leg)| leg.open.is_some() && p.rebuilds(a, *l)) {
                Some((_, leg)) => Some((Work::Leg(leg.uuid), sum.resync_done)),
                None if compares(desk, &p.arrays[a]) => {
                    Some((Work::Array(p.arrays[a].id), sum.crash_total - sum.crash_left))
                }
                None => None,
            });
        }
    }
    for p in &desk.pools {
        let (left, total) = uncleared_of(desk, p);
        if left > 0 {
            resyncs.push((Work::Clearing(p.id), total.saturating_sub(left)));
        }
    }
    desk.speeds.retain(|work, _| resyncs.iter().any(|(known, _)| known == work));
    for (work, done) in resyncs {
        desk.speeds.entry(work).or_default().note(now, done);
    }
    for i in 0..desk.pools.len() {
        let sums = scrub_sums(desk, i);
        let p = &mut desk.pools[i];
        if p.scrub.run.is_some() {
            let done = p.scrubbed(&sums);
            p.scrub.speed.note(now, done);
        }
    }
}

/// Of each array of a pool: bytes of a scrub done, and in all, as its shards tell.
fn scrub_sums(desk: &Desk, i: usize) -> Vec<(u64, u64)> {
    let sum = |a: &ArrayDesk| {
        let reports = desk.reports.iter().flatten().flat_map(|r| &r.arrays);
        let mine = reports.filter(|(id, _)| *id == a.id).map(|(_, p)| (p.scrub_done, p.scrub_total));
        mine.fold((0, 0), |sum, x| (sum.0 + x.0, sum.1 + x.1))
    };
    desk.pools[i].arrays.iter().map(sum).collect()
}

/// How far the shards' work on an array is, together.
fn progress_of(desk: &Desk, id: crate::layout::ArrayId) -> array::Progress {
    let mut sum = array::Progress::default();
    for (_, progress) in desk.reports.iter().flatten().flat_map(|r| &r.arrays).filter(|(x, _)| *x == id) {
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

fn build(desk: &mut Desk, now: Instant) -> Status {
    note_speeds(desk, now);
    let mut reasons = vec![];
    let mut pools: Vec<Pool> = vec![];
    for unread in &desk.unread {
        // A head that lost its name keeps its own pools away: that comes before what they suggest, since nobody else has
        // them who could release them.
        let keeps_away = unread.file == crate::steward::record::texts::IDENTITY && !desk.absent.is_empty();
        reasons.push(Reason::new(
            if keeps_away { State::Offline } else { State::Degraded },
            "state directory",
            Cause::sentence(unread.words.clone(), Some(unread.next.into())),
        ));
    }
    for loss in desk.losses.iter().cloned().chain(desk.hosts_lost()) {
        let what = "state directory";
        reasons.push(Reason::new(State::Degraded, what, Cause::sentence(loss.words, Some(loss.next))));
    }
    for i in 0..desk.pools.len() {
        let pool = pool_of(desk, i, now, &mut reasons);
        pools.push(pool);
    }
    for p in &desk.absent {
        reasons.push(Reason::new(
            State::Offline,
            format!("pool {}", p.name()),
            Cause::sentence(p.words(), p.next.clone()),
        ));
        let cause = Some(Cause::sentence(p.words(), p.next.clone()));
        let (name, uuid) = (p.name().into(), p.uuid());
        pools.push(Pool { name, uuid, cause, state: State::Offline, ..Pool::default() });
    }
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    let portals: Vec<Portal> = desk.portals.iter().map(|p| portal_of(desk, p.portal.id)).collect();
    // Portals that stay closed on purpose are no trouble of their own: what keeps them so is told above.
    let some_listen = portals.iter().any(|p| p.listening);
    for p in portals.iter().filter(|p| !p.listening && desk.ready && !desk.held && desk.stop != Stop::Closed)
    {
        let what = format!("portal {} {}", p.protocol.word(), p.address);
        let is_it = |row: &&PortalDesk| {
            api::Protocol::from(row.portal.protocol) == p.protocol && row.portal.address == p.address
        };
        let row = desk.portals.iter().find(is_it);
        // An address of the other head's own: that one listens there once it is back.
        let is_others = p.served_by.is_some() && some_listen;
        if is_others && row.and_then(PortalDesk::failure) == Some(base::NetError::NoAddress) {
            continue;
        }
        let far = row.filter(|row| row.at != desk.own_number()).and(p.head.as_ref());
        let there = far.map_or_else(String::new, |head| format!("on head {head}: "));
        let rm = format!("millrace portal rm {} {}", p.protocol.word(), p.address);
        // It is tried again by itself.
        let next = match row.and_then(PortalDesk::failure) {
            Some(base::NetError::InUse) => {
                format!("ss -ltnp sport = :{}, and stop who listens there, or {rm}", p.address.port())
            }
            Some(base::NetError::NoAddress) => {
                format!("ip address, and give this machine {}, or {rm}", p.address.ip())
            }
            Some(base::NetError::Refused | base::NetError::Other(_)) | None => rm,
        };
        let message = match row.and_then(PortalDesk::failure) {
            Some(_) => format!("{there}{}; it is tried again", said(&p.cause)),
            None => format!("{there}{}", said(&p.cause)),
        };
        let next = format!("{there}{next}");
        reasons.push(Reason::new(State::Degraded, what, Cause::sentence(message, Some(next))));
    }
    if let Some(words) = &desk.unwritable {
        let (what, next) = ("state directory", Some(crate::steward::words::STATE_DISK.into()));
        reasons.push(Reason::new(State::Degraded, what, Cause::sentence(words.clone(), next)));
    }
    reasons.sort_by_key(|r| core::cmp::Reverse(r.state));
    desk.times.turn(now);
    let mut volumes: Vec<Volume> = desk.shown().flat_map(|p| volumes_of(desk, &p, &pools)).collect();
    volumes.sort_by(|a, b| a.name.cmp(&b.name));
    Status {
        at: Time(desk.unix(now)),
        uptime_seconds: now.since(desk.started).as_secs(),
        system: system_of(&desk.shown_system()),
        health: reasons.iter().map(|r| r.state).max().unwrap_or_default(),
        reasons,
        drives: drives_of(desk),
        pools,
        volumes,
        hosts: desk.hosts().iter().map(|h| host_of(desk, h)).collect(),
        portals,
        serves: served_by_heads(desk),
        connections: connections_of(desk),
        shards: desk.reports.iter().flatten().map(|r| shard_of(desk, r)).collect(),
        events: desk.events.iter().rev().take(EVENTS_SHOWN).rev().map(EventLine::answered).collect(),
        notices: {
            let lasting = desk
                .notices
                .iter()
                .cloned()
                .chain(crate::steward::record::vanished::restored_words(&desk.restored));
            lasting
                .chain(stood_in_words(desk, now))
                .map(|n| api::Noticed { notice: n.into(), message: String::new() })
                .collect()
        },
        ..Status::default()
    }
}

fn is_mirror(array: &Array) -> bool {
    array.layout == ArrayLayout::Mirror
}

fn said(cause: &Option<Cause>) -> String {
    cause.as_ref().map(Cause::said).unwrap_or_default()
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

/// How long ago something was, in words.
fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".into(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// Spares that took the places of drives: which, when, and what to do next.
fn stood_in_words(desk: &Desk, now: Instant) -> Vec<String> {
    let words = |s: &StoodIn| {
        let p = desk.pools.iter().find(|p| p.config().uuid == s.pool)?;
        let (name, ago) = (&p.config().name, ago(desk.unix(now).saturating_sub(s.at)));
        let left = match p.spares.iter().filter(|s| s.ready().is_some()).count() {
            0 => "no spare is left".to_string(),
            n => format!("{} left", count(n, "spare")),
        };
        Some(format!(
            "Pool {name}: the spare {} took the place of {} {ago}, {left}: replace the drive, and millrace pool add {name} spare DRIVE",
            s.spare, s.old
        ))
    };
    desk.stood_in.iter().filter_map(words).collect()
}

fn pool_of(desk: &Desk, i: usize, now: Instant, reasons: &mut Vec<Reason>) -> Pool {
    let arrays: Vec<Array> = (0..desk.pools[i].arrays.len()).map(|a| array_of(desk, i, a, now)).collect();
    let p = &desk.pools[i];
    let scrub = p.scrub_shown(now, &scrub_sums(desk, i));
    let what = format!("pool {}", p.config().name);
    let word = |a: usize| array_word(p.config().arrays[a].mirror, a);
    for (a, array) in arrays.iter().enumerate() {
        for (l, leg) in array.legs.iter().enumerate() {
            let awaited = p.replaces(leg.uuid).is_some_and(|r| p.is_leg(r.old));
            let next = match p.leg_state(a, l) {
                // Of an array that nothing serves the last leg in sync comes first: see there.
                LegState::Out | LegState::JustOut if array.state >= State::Offline => None,
                LegState::Out | LegState::JustOut if awaited => Some(format!(
                    "{1}millrace drive return {0}, or millrace drive rm {0}, and replace by another",
                    leg.path,
                    clear_first(desk, p, a, l)
                )),
                LegState::Out | LegState::JustOut => Some(way_back(desk, p, a, l)),
                LegState::InSync => ill_of(desk, p, a, l).map(|ill| ill.next.clone()),
                LegState::Rebuilding | LegState::RebuildingFull => None,
            };
            if leg.state != State::Optimal {
                let state = if leg.state == State::Rebuilding { State::Rebuilding } else { array.state };
                let unfit = p.no_spare_fits(a).filter(|_| is_mirror(array) && p.is_out(a, l) && !awaited);
                let unfit = unfit.map_or(String::new(), |words| format!("; no spare fits: {words}"));
                let message = format!("{} of {}: {}{unfit}", leg.path, word(a), said(&leg.cause));
                reasons.push(Reason::new(state, what.clone(), Cause::sentence(message, next)));
            }
        }
        if is_mirror(array) && array.legs.len() == 1 && array.state == State::Degraded {
            let message = format!("{}: {}", word(a), said(&array.cause));
            let next = Some(format!("millrace pool add {} leg DRIVE --to {}", p.config().name, word(a)));
            reasons.push(Reason::new(State::Degraded, what.clone(), Cause::sentence(message, next)));
        }
        if array.state == State::Rebuilding && array.legs.iter().all(|l| l.state == State::Optimal) {
            let message = format!("{}: {}", word(a), said(&array.cause));
            reasons.push(Reason::new(State::Rebuilding, what.clone(), Cause::sentence(message, None)));
        }
        if p.arrays[a].medium_lost > 0 {
            let message = format!(
                "{}: {} could not be read from any drive",
                word(a),
                count(p.arrays[a].medium_lost as usize, "piece")
            );
            reasons.push(Reason::new(
                State::Degraded,
                what.clone(),
                Cause::sentence(message, Some("millrace events".into())),
            ));
        }
    }
    for spare in p.spares.iter().filter(|s| s.open.is_none()) {
        let (path, name) = (&spare.path, &p.config().name);
        let hangs = desk.shapes_at_start.get(path).is_some_and(|s| s.hang || s.gone);
        let (message, next) = match &spare.found {
            found if hangs => {
                let why = found.as_ref().map_or("it is shaped to be away".into(), Found::words);
                (
                    format!("its spare {path} is of no use: {why}"),
                    format!("millrace drive shape {path} --clear, then millrace drive return {path}"),
                )
            }
            // Another label would not make it answer.
            Some(found @ Found::Mute { .. }) => (
                format!("its spare {path} is of no use: {}", found.words()),
                format!(
                    "unplug or reset it: once it answers, it is a spare again by itself (millrace drive return {path}, at once); or millrace drive rm {path}, to go on without it"
                ),
            ),
            // What lies there has its own place; the spare is elsewhere.
            Some(found @ (Found::Drive { .. } | Found::Moved { .. })) => (
                format!("its spare {path} is not there: {}", found.words()),
                format!("attach it: then it is a spare again by itself; or millrace drive rm {path}"),
            ),
            Some(found) => (
                format!("its spare {path} is of no use: {}", found.words()),
                format!("millrace drive rm {path}, then millrace pool add {name} spare {path} --force"),
            ),
            None => (
                format!("its spare {path} is not there"),
                format!(
                    "attach it, or put its file back: then it is a spare again by itself; or millrace drive rm {path}, then millrace pool add {name} spare DRIVE"
                ),
            ),
        };
        let next = Some(next);
        reasons.push(Reason::new(State::Degraded, what.clone(), Cause::sentence(message, next)));
    }
    for (path, ill) in p.spares.iter().filter_map(|s| Some((&s.path, s.open.as_ref().and(s.ill.as_ref())?))) {
        let message = format!("its spare {path} is of no use: {}", ill.words);
        reasons.push(Reason::new(
            State::Degraded,
            what.clone(),
            Cause::sentence(message, Some(ill.next.clone())),
        ));
    }
    for spare in &p.spares {
        let Fit::None { why } = p.fit_of(spare) else { continue };
        let (path, name) = (&spare.path, &p.config().name);
        let message = format!("its spare {path} fits no mirror: {why}");
        let next = Some(format!(
            "millrace drive rm {path}, and millrace pool add {name} spare DRIVE, one that fits"
        ));
        reasons.push(Reason::new(State::Degraded, what.clone(), Cause::sentence(message, next)));
    }
    let last = p.config().extras.scrub.last.map(|l| l.found).unwrap_or_default();
    if last.differed > last.repaired {
        let message = format!(
            "the last scrub found {} bytes in which legs differ, and did not repair them (pool show and events tell where)",
            last.differed - last.repaired
        );
        let running = p.scrub.run.is_some();
        // Which leg is right is for the operator to say: a repair that guesses may spread the wrong one.
        let next = match running {
            true => format!("millrace pool show {}, for how far the one under way is", p.config().name),
            false => format!(
                "millrace pool scrub {0} --repair --prefer GOOD, or, if they were written since, millrace pool scrub {0}, or millrace pool scrub {0} --clear",
                p.config().name
            ),
        };
        reasons.push(Reason::new(State::Degraded, what.clone(), Cause::sentence(message, Some(next))));
    }
    if let Some(words) = &p.trouble {
        let (state, message) = match p.unrecorded {
            true => (
                State::Offline,
                format!("its volumes are not ready, as a loss cannot be put on record: {words}"),
            ),
            false => (State::Degraded, words.clone()),
        };
        reasons.push(Reason::new(state, what.clone(), Cause::sentence(message, Some("millrace status -v names the state directory: df -h and ls -ld there; if its file system became read-only, repair it and mount -o remount,rw".into()))));
    }
    let state = arrays.iter().map(|a| a.state).max().unwrap_or_default();
    let worst = arrays.iter().enumerate().filter(|(_, a)| a.state == state && state != State::Optimal);
    let cause = worst.map(|(i, a)| format!("{}: {}", word(i), said(&a.cause)).into()).next();
    let (state, cause) = if p.unrecorded {
        (State::Offline, Some("a loss cannot be put on record".to_string().into()))
    } else {
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
        clearing: clearing_of(desk, p, now),
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
    }
}

/// Bytes of a pool's arrays that are uncleared, and bytes in all.
fn uncleared_of(desk: &Desk, p: &PoolDesk) -> (u64, u64) {
    let left = p.arrays.iter().map(|a| progress_of(desk, a.id).uncleared).sum();
    (left, p.arrays.iter().map(|a| a.geometry.data_bytes).sum())
}

fn clearing_of(desk: &Desk, p: &PoolDesk, now: Instant) -> Option<Clearing> {
    let (left_bytes, total) = uncleared_of(desk, p);
    let speed = desk.speeds.get(&Work::Clearing(p.id));
    let (rate, eta) = speed.map_or((0, None), |s| s.of(now, total.saturating_sub(left_bytes), total));
    (left_bytes > 0).then_some(Clearing { left_bytes, rate, seconds_left: eta })
}

fn array_of(desk: &Desk, i: usize, a: usize, now: Instant) -> Array {
    let sum = progress_of(desk, desk.pools[i].arrays[a].id);
    let p = &desk.pools[i];
    let mut legs: Vec<Leg> = (0..p.arrays[a].legs.len()).map(|l| leg_of(p, a, l)).collect();
    let array = &p.arrays[a];
    let rebuilding = legs.iter().position(|l| l.state == State::Rebuilding);
    let full = rebuilding.is_some_and(|l| array.legs[l].full);
    let in_sync = legs.iter().filter(|l| l.state == State::Optimal).count();
    let out = legs.iter().find(|l| matches!(l.state, State::Failed | State::Offline));
    let (state, reason) = match (in_sync, out, rebuilding) {
        (0, ..) => (State::Failed, "no drive in sync is there".to_string()),
        (_, Some(leg), _) => (State::Degraded, format!("{}: {}", leg.path, said(&leg.cause))),
        (_, None, Some(l)) => (State::Rebuilding, format!("{}: {}", legs[l].path, said(&legs[l].cause))),
        (_, None, None) if compares(desk, array) => {
            (State::Rebuilding, "what may differ between its legs is being made the same".to_string())
        }
        (_, None, None) if p.config().arrays[a].mirror && legs.len() == 1 => {
            (State::Degraded, format!("{} is its only drive", legs[0].path))
        }
        (_, None, None) => (State::Optimal, String::new()),
    };
    let (mut state, mut reason) = (state, reason);
    for (l, leg) in legs.iter_mut().enumerate() {
        let Some(ill) = ill_of(desk, p, a, l) else { continue };
        if state < ill.state {
            (state, reason) = (ill.state, format!("{}: {}", leg.path, ill.words));
        }
        leg.state = ill.state;
        leg.cause = Some(ill.words.clone().into());
    }
    let out = Array {
        layout: ArrayLayout::of(p.config().arrays[a].mirror),
        state,
        cause: (!reason.is_empty()).then(|| reason.into()),
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
        None if compares(desk, array) => {
            let partial = array.dirty.count() < array.geometry.regions();
            (Work::Array(array.id), sum.crash_total - sum.crash_left, sum.crash_total, partial)
        }
        None => return out,
    };
    let speed = desk.speeds.get(&work);
    let (rate, eta) = speed.map_or((0, None), |s| s.of(now, done_bytes, total_bytes));
    let leg = rebuilding.map(|leg| leg as u16);
    Array { resync: Some(Resync { leg, partial, done_bytes, total_bytes, rate, seconds_left: eta }), ..out }
}

/// What may differ between an array's legs is being made the same: since a crash, or since it was made.
fn compares(desk: &Desk, array: &ArrayDesk) -> bool {
    array.unclean && array.clean.len() < usize::from(desk.shards_of(array.id))
}

fn leg_of(p: &PoolDesk, a: usize, l: usize) -> Leg {
    let leg: &LegDesk = &p.arrays[a].legs[l];
    let state = match (p.leg_state(a, l), &leg.open) {
        (LegState::InSync, Some(_)) => State::Optimal,
        (LegState::Rebuilding | LegState::RebuildingFull, Some(_)) => State::Rebuilding,
        (LegState::Out | LegState::JustOut, Some(_)) => State::Failed,
        (_, None) => State::Offline,
    };
    let cause = (state != State::Optimal).then(|| leg.reason.clone().into());
    let replaces = p.replaces(leg.uuid).map(|r| r.old_path.clone());
    // Slow is said of a leg that others stand in for; where it serves alone, that tells nobody anything.
    let others = (0..p.arrays[a].legs.len()).any(|o| o != l && p.leg_state(a, o) == LegState::InSync);
    let slow = state == State::Optimal && others && !leg.slow.is_empty();
    Leg { path: leg.path.clone(), uuid: leg.uuid, state, cause, reason: String::new(), slow, replaces }
}

/// The step that comes before the return of a leg that was shaped to be gone or to hang; empty for others.
fn clear_first(desk: &Desk, p: &PoolDesk, a: usize, l: usize) -> String {
    let leg = &p.arrays[a].legs[l];
    let away = desk.shape_of(leg.open.as_ref(), &leg.path).is_some_and(|s| s.gone || s.hang);
    if away { format!("millrace drive shape {} --clear, then ", leg.path) } else { String::new() }
}

/// What helps a leg that is out.
fn way_back(desk: &Desk, p: &PoolDesk, a: usize, l: usize) -> String {
    let leg = &p.arrays[a].legs[l];
    let path = &leg.path;
    let first = clear_first(desk, p, a, l);
    if !first.is_empty() {
        return format!("{first}millrace drive return {path}");
    }
    if let Some(found) = &leg.found {
        return found.way_back(path);
    }
    if leg.reason.ends_with(&error_words(DriveError::NoSpace)) {
        return format!(
            "free space in the file system of {path}: it comes back by itself then, or at once by millrace drive return {path}"
        );
    }
    if leg.reason.ends_with(NO_SPACE_BLOCK) {
        return format!(
            "blockdev --getsize64 {path}, or lvs if it is a thin volume: give it its space again, then millrace drive return {path}; or millrace drive replace {path} NEW"
        );
    }
    match leg.open {
        // A return would say that it is not there.
        None => {
            format!("attach {path} again: it comes back by itself then, or millrace drive replace {path} NEW")
        }
        Some(_) => format!("millrace drive return {path}, or millrace drive replace {path} NEW"),
    }
}

/// What ails the drive of a leg in sync.
fn ill_of<'a>(desk: &'a Desk, p: &PoolDesk, a: usize, l: usize) -> Option<&'a Ill> {
    let open = p.arrays[a].legs[l].open.as_ref()?;
    desk.ills.get(&open.id).filter(|_| p.leg_state(a, l) == LegState::InSync)
}

fn add(to: &mut Counters, c: &report::Counters) {
    to.reads += c.reads;
    to.read_bytes += c.read_bytes;
    to.writes += c.writes;
    to.write_bytes += c.write_bytes;
    to.flushes += c.others;
    to.errors += c.errors;
}

fn drives_of(desk: &Desk) -> Vec<Drive> {
    let mut out = vec![];
    for p in &desk.pools {
        for (a, array) in p.arrays.iter().enumerate() {
            let array: &ArrayDesk = array;
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
                if let Some(ill) = ill_of(desk, p, a, l) {
                    drive.state = Some(ill.state);
                    drive.cause = Some(ill.words.clone().into());
                }
                // Under every number that it has had: figures go on when a drive returns.
                let lives = desk.lives.get(&leg.uuid);
                let figures = desk.reports.iter().flatten().flat_map(|r| &r.drives);
                for r in figures.filter(|r| lives.is_some_and(|ids| ids.contains(&r.drive))) {
                    add(&mut drive.counters, &r.counters);
                    drive.errors += r.counters.errors + r.timeouts;
                }
                let ids = lives.into_iter().flatten();
                drive.read_times = desk.times.drive(ids.clone(), false);
                drive.write_times = desk.times.drive(ids, true);
                drive.shape = desk.shape_of(leg.open.as_ref(), &leg.path).map(Into::into);
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
                drive.cause = Some(spare.reason().into());
            }
            out.push(drive);
        }
    }
    out
}

fn volumes_of(desk: &Desk, p: &Shown<'_>, pools: &[Pool]) -> Vec<Volume> {
    let state = pools.iter().find(|x| x.uuid == p.config.uuid).map_or(State::Offline, |x| x.state);
    let volume = |v: &volume::Volume| {
        let id = p.volume_ids[&v.uuid];
        let (mut counters, mut capped) = (Counters::default(), 0);
        for (_, c) in desk.reports.iter().flatten().flat_map(|r| &r.volumes).filter(|(x, _)| *x == id) {
            add(&mut counters, c);
            capped += c.capped;
        }
        let caps = p.config.caps_of(v.uuid);
        let grants = p.config.grants.of(v.uuid).expect("every volume has a number");
        let exported = |g: &access::Grant| Exported {
            host: desk.hosts().iter().find(|h| g.is_for(h)).map(|h| h.name.clone()),
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
            read_times: desk.times.volume(id, false),
            write_times: desk.times.volume(id, true),
        }
    };
    p.config.volumes.iter().map(volume).collect()
}

fn host_of(desk: &Desk, h: &access::Host) -> Host {
    let mut exports = vec![];
    for p in desk.shown() {
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
        connections: connections_of_host(desk, h.id),
    }
}

fn portal_of(desk: &Desk, id: PortalId) -> Portal {
    let row = desk.portals.iter().find(|p| p.portal.id == id).expect("taken from the desk");
    let whereabouts = row.portal.moves.and_then(|_| desk.addresses.whereabouts(row.portal.address.ip()));
    let immovable = whereabouts.and_then(Result::err).map(address_words);
    let listening = row.results.iter().find_map(|r| match r {
        Some(Err(e)) => Some(net_words(*e)),
        _ if desk.stop == Stop::Closed => Some("the head is being stopped".to_string()),
        None if desk.held => Some("it stays closed until the pools are imported".to_string()),
        None => Some("it is being opened".to_string()),
        Some(Ok(_)) => None,
    });
    let failure = listening.map(|words| immovable.clone().unwrap_or(words));
    let connections =
        desk.reports.iter().flatten().flat_map(|r| &r.connections).filter(|c| c.portal == id).count();
    let in_system = desk.system.is_some();
    // An address that moves belongs to whichever head leads.
    let head = if row.portal.moves.is_some() { row.at } else { row.portal.head };
    // The address in use says more than the one asked for, where that had port 0.
    let in_use: Option<SocketAddr> = row.results.iter().find_map(|r| r.and_then(Result::ok));
    let letter = |n: u8| HeadNo::from_number(n).map(|h| h.letter().to_string());
    Portal {
        protocol: row.portal.protocol.into(),
        address: in_use.unwrap_or(row.portal.address),
        listening: failure.is_none(),
        cause: failure.or(immovable).map(Into::into),
        reason: String::new(),
        connections: connections as u32,
        head: letter(head).filter(|_| in_system),
        served_by: letter(row.at).filter(|_| in_system && row.at != head),
        prefix: row.portal.moves.map(|m| m.prefix),
        interface: row.portal.moves.and_then(|m| m.interface).map(|i| i.as_str().to_string()),
        on: whereabouts.and_then(Result::ok).map(|i| i.as_str().to_string()),
    }
}

/// What each head does for hosts, by its number, if this one leads.
fn served_by_heads(desk: &Desk) -> Option<[HeadServes; 2]> {
    desk.system.as_ref().filter(|s| s.part() == Part::Leader)?;
    let lanes_all = desk.pools.iter().map(|p| p.arrays.len()).sum::<usize>() as u32 * array::LANES;
    let owners = desk.pools.iter().flat_map(|p| &p.arrays);
    let owners: Vec<u16> =
        owners.flat_map(|a| (0..array::LANES).map(|lane| a.lanes.of_region(lane))).collect();
    let connections = connections_of(desk);
    Some([0, 1].map(|head| {
        let has = |shard: u16| (shard < desk.own_shards) == (head == desk.own_number());
        let letter = HeadNo::from_number(head).map(|h| h.letter().to_string());
        let here = |c: &&Connection| c.head == letter;
        let hosts = connections.iter().filter(here).filter_map(|c| c.host.as_ref());
        let reports = desk.reports.iter().flatten().filter(|r| has(r.shard));
        HeadServes {
            portals: vec![],
            commands: reports.map(|r| shard_of(desk, r).commands).sum(),
            hosts: hosts.collect::<BTreeSet<_>>().len() as u32,
            lanes: owners.iter().filter(|shard| has(**shard)).count() as u32,
            lanes_all,
        }
    }))
}

/// A shard's head, of a system of two, and its number there.
fn at_home(desk: &Desk, shard: u16) -> (Option<String>, u16) {
    let (head, number) = match shard.checked_sub(desk.own_shards) {
        Some(number) => (desk.own_number() ^ 1, number),
        None => (desk.own_number(), shard),
    };
    let head = HeadNo::from_number(head).filter(|_| desk.system.is_some());
    (head.map(|h| h.letter().to_string()), number)
}

fn connections_of_host(desk: &Desk, host: HostId) -> u32 {
    let all = desk.reports.iter().flatten().flat_map(|r| &r.connections);
    all.filter(|c| c.login.session.is_some() && c.host == Some(host)).count() as u32
}

fn connections_of(desk: &Desk) -> Vec<Connection> {
    let mut out = vec![];
    for r in desk.reports.iter().flatten() {
        for c in &r.connections {
            let host = c.host.and_then(|h| desk.hosts().by_id(h));
            let portal = desk.portals.iter().find(|p| p.portal.id == c.portal);
            let n = &c.counters;
            let (head, shard) = at_home(desk, r.shard);
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

fn shard_of(desk: &Desk, r: &ShardReport) -> Shard {
    let commands = r.volumes.iter().map(|(_, c)| c.reads + c.writes + c.others + c.errors).sum();
    let last = desk.last_protocol_errors.get(&r.shard).copied().unwrap_or_default();
    let (head, shard) = at_home(desk, r.shard);
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
        last_protocol_error: last.into(),
        // The head knows no clock: its world fills these in.
        longest_turn_us: 0,
        long_turns: 0,
    }
}

/// The SCSI identity as hosts read it (VPD page 83h): of an NAA that is not of type 6 only 8 bytes are meant.
fn naa_text(naa: &[u8; 16]) -> String {
    format!("naa.{}", hex(if naa[0] >> 4 == 6 { &naa[..] } else { &naa[..8] }))
}
