//! Scrubs of a pool: begun by an operator or by schedule, kept over restarts, told by volume and offset.
//!
//! The shards do the work and know how far they are. A watcher for each pool asks them now and then, sets them
//! to work again after a restart, and has the position written down by an order of its own, as every change
//! of a pool's configuration is made by an order.

use crate::layout::PoolId;
use crate::mail::ShardMail;
use crate::order::{Answered, Finding, Notice, Order, PoolScrub, Refusal, Reply, Scrub, Time};
use crate::steward::context::pool::PoolContext;
use crate::steward::procedures::Procedures;
use crate::steward::state::Edit;
use crate::steward::state::extras::{Found, LastScrub, ScrubRun};
use crate::steward::status::speed::Speed;
use crate::steward::words::array_word;
use array::Note;
use base::{Duration, Instant, Uuid};
use finding::{Difference, PoolEvent, PoolNotice, PoolRefusal};
use volume::GRANULE_BYTES;

/// How often the shards are asked how far they are.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// The position is written down after so many looks.
const LOOKS_PER_WRITE: u32 = 6;
/// Places of one scrub that are kept for `status`, and those of them that are told as events at once. All are counted,
/// and the end of the scrub tells how many there were.
const FINDINGS_MAX: usize = 50;
const FINDINGS_TOLD: usize = 5;
const DAY_SECS: u64 = 24 * 3600;

impl PoolContext {
    /// Which volumes lie at a place of an array: name, offset, bytes. None: nobody's space.
    fn volumes_at(&self, array: usize, at: u64, len: u64) -> Vec<(Option<String>, u64, u64)> {
        let mut out: Vec<(Option<String>, u64, u64)> = vec![];
        let (mut at, end) = (at, at + len);
        while at < end {
            let Some((pool_at, run)) = self.config().map.locate_back(array, at) else {
                out.push((None, at, end - at));
                break;
            };
            let step = (end - at).min(run).min(GRANULE_BYTES - pool_at % GRANULE_BYTES);
            let mut volumes = self.config().volumes.iter();
            let found = volumes.find_map(|v| Some((&v.name, v.map.locate_back(pool_at)?)));
            let name = found.map(|(name, _)| format!("{}/{name}", self.config().name));
            let offset = found.map_or(pool_at, |(_, offset)| offset);
            match out.last_mut() {
                Some((last, from, n)) if *last == name && *from + *n == offset => *n += step,
                _ => out.push((name, offset, step)),
            }
            at += step;
        }
        out
    }
    /// A shard told something about a scrub; what is worth an event.
    pub(crate) fn on_scrub_note(&mut self, a: usize, shard: u16, note: Note) -> Vec<PoolEvent> {
        let places = match note {
            Note::Mismatch { at, len, .. } | Note::Unreadable { at, len } => self.volumes_at(a, at, len),
            _ => vec![],
        };
        let legs = &self.arrays[a].legs;
        // One that left meanwhile has no path.
        let path = |place: usize| legs.iter().find(|leg| leg.place == place).map(|leg| leg.path.clone());
        let preferred = self.order_for(a).and_then(|order| order.prefer);
        let Some(run) = &mut self.scrub.run else { return vec![] };
        let what = match note {
            // One that was ended may have come to its end in the same moment.
            Note::Scrubbed { number } => {
                if number == self.scrub.number {
                    self.scrub.done.insert((a, shard));
                }
                return vec![];
            }
            Note::Mismatch { len, bad, source, known, repair, .. } => {
                run.found.differed += len;
                run.found.repaired += if repair { len } else { 0 };
                let places = 0..array::PLACES_MAX;
                let drives = places.filter(|l| bad & 1 << l != 0).map(path).collect();
                let from = path(source);
                match (known, repair) {
                    (true, true) => Difference::Repaired { drives },
                    (true, false) => Difference::Differs { drives },
                    (false, true) if preferred == Some(source) => Difference::RepairedAsTold { drives, from },
                    (false, true) => Difference::RepairedUnknown { drives, from },
                    (false, false) => Difference::Unknown { drives, from },
                }
            }
            Note::Unreadable { len, .. } => {
                run.found.unreadable += len;
                Difference::Unreadable
            }
            _ => return vec![],
        };
        let repaired = matches!(note, Note::Mismatch { repair: true, .. });
        let mut events = vec![];
        for (volume, at, bytes) in places {
            // A scrub tells piece by piece; what goes on behind a place is that place.
            let next = |f: &&mut Finding| {
                f.at + f.bytes == at
                    && (&f.volume, usize::from(f.array), f.difference.as_ref()) == (&volume, a, Some(&what))
                    && f.repaired == repaired
            };
            if let Some(before) = self.scrub.findings.iter_mut().find(next) {
                before.bytes += bytes;
                continue;
            }
            self.scrub.places += 1;
            if self.scrub.findings.len() == FINDINGS_MAX {
                continue;
            }
            if self.scrub.findings.len() < FINDINGS_TOLD {
                let (volume, what, last) = (volume.clone(), what.clone(), at + bytes - 1);
                events.push(PoolEvent::ScrubFound {
                    volume,
                    array: a as u64,
                    first_byte: at,
                    last_byte: last,
                    what,
                });
            }
            let what = what.clone();
            self.scrub.findings.push(Finding {
                volume,
                at,
                bytes,
                array: a as u16,
                difference: Some(what),
                what: String::new(),
                repaired,
            });
        }
        events
    }
    /// The scrub, as `status` tells it.
    pub(crate) fn scrub_shown(&self, now: Instant, sums: &[(u64, u64)]) -> Scrub {
        let row = &self.config().extras.scrub;
        let run = self.scrub.run.as_ref();
        let found = run.map(|r| r.found).or(row.last.map(|l| l.found)).unwrap_or_default();
        let mirrors = self.arrays.iter().filter(|a| a.geometry.redundant());
        let total = mirrors.map(|a| a.geometry.data_bytes).sum();
        let mut shown = Scrub {
            running: run.is_some(),
            repair: run.is_some_and(|r| r.repair),
            every_days: row.every_days,
            schedule_repairs: row.repair,
            last_ended: row.last.map(|l| l.ended).filter(|ended| *ended > 0).map(Time),
            differed_bytes: found.differed,
            repaired_bytes: found.repaired,
            unreadable_bytes: found.unreadable,
            places: self.scrub.all_places(),
            findings: self.scrub.all_findings(),
            ..Scrub::default()
        };
        if run.is_none() {
            return shown;
        }
        (shown.done_bytes, shown.total_bytes) = (self.scrubbed(sums).min(total), total);
        (shown.rate, shown.seconds_left) = self.scrub.speed.of(now, shown.done_bytes, total);
        shown
    }
    /// Bytes of the mirrors that the scrub under way has compared. `sums`: of each array, bytes done and in all as
    /// its shards tell.
    pub(crate) fn scrubbed(&self, sums: &[(u64, u64)]) -> u64 {
        // Arrays that are at it say how far they are; of the others those count that are done.
        let done = sums.iter().enumerate().map(|(a, (done, total))| {
            let bytes = self.arrays[a].geometry.data_bytes;
            let ended = self.scrub.done.iter().any(|(x, _)| *x == a);
            let rest = bytes.saturating_sub(*total);
            done + if ended { rest } else { 0 }
        });
        done.sum()
    }
    /// What is worth knowing about a repair that begins: what it will leave alone.
    fn repair_notices(&self, run: &ScrubRun) -> Vec<Notice> {
        let mirrors: Vec<usize> =
            (0..self.arrays.len()).filter(|a| self.config().arrays[*a].mirror).collect();
        let preferred = |a: usize| self.arrays[a].legs.iter().find(|l| run.prefer.contains(&l.uuid));
        let differs =
            |a: usize| self.scrub.all_findings().iter().any(|f| usize::from(f.array) == a && !f.repaired);
        let mut out: Vec<Notice> = vec![];
        let arrays: Vec<String> = mirrors
            .iter()
            .filter(|a| preferred(**a).is_none() && (run.prefer.is_empty() || differs(**a)))
            .filter(|a| !run.prefer.is_empty() || self.arrays[**a].legs.len() == 2)
            .map(|a| array_word(true, *a))
            .collect();
        if !arrays.is_empty() {
            out.push(PoolNotice::RepairUnknown { arrays }.into());
        }
        let known = mirrors.iter().any(|a| differs(*a));
        for (a, leg) in
            mirrors.iter().filter(|a| known && !differs(**a)).filter_map(|a| Some((*a, preferred(*a)?)))
        {
            let (drive, array) = (leg.path.clone(), array_word(true, a));
            out.push(PoolNotice::PreferNeedless { drive, array }.into());
        }
        out
    }
}

impl Procedures {
    /// Order: scrub.
    pub(crate) async fn pool_scrub(&self, pool: &str, action: PoolScrub) -> Answered {
        let now = self.cx.now();
        let (id, mut row, arrays, mirror, running) = {
            let context = self.context();
            let p = context.pool_named(pool)?;
            let rows = &p.config().arrays;
            let mirror = rows.iter().any(|a| a.mirror);
            (p.id, p.config().extras.scrub.clone(), rows.len(), mirror, p.scrub.run.clone())
        };
        let clears = action == PoolScrub::Clear && running.is_none();
        let stops = action == PoolScrub::Stop;
        let mut notices = vec![];
        let name = || pool.to_string();
        let (run, event) = match action {
            PoolScrub::Start { repair, prefer } => {
                if running.is_some() {
                    return Err(PoolRefusal::PoolBeingScrubbed { pool: name() }.into());
                }
                if !mirror {
                    return Err(PoolRefusal::NothingToScrub { pool: name() }.into());
                }
                let prefer = self.preferred(id, &prefer, repair)?;
                let (began, at) = (self.context().unix(now), vec![0; arrays]);
                let run = ScrubRun { began, repair, prefer, at, ..ScrubRun::default() };
                if repair && let Some(p) = self.context().pool(id) {
                    notices = p.repair_notices(&run);
                }
                (Some(run), PoolEvent::ScrubBegan { repair })
            }
            PoolScrub::Stop => {
                let Some(run) = &running else {
                    return Err(PoolRefusal::NoScrub { pool: name() }.into());
                };
                row.last = keep_found(row.last, run.found);
                (None, PoolEvent::ScrubStopped)
            }
            PoolScrub::Clear => {
                let Some(last) = row.last.filter(|l| l.found != Found::default()) else {
                    return Err(PoolRefusal::NothingToClear { pool: name() }.into());
                };
                // One that was stopped, and none before it that was not: there is nothing left to tell.
                row.last = (last.ended > 0).then_some(LastScrub { found: Found::default(), ..last });
                (running.clone(), PoolEvent::ScrubCleared)
            }
            PoolScrub::Schedule { days, repair } => {
                (row.every_days, row.repair) = (days, repair && days > 0);
                (running.clone(), PoolEvent::ScrubScheduled { days })
            }
        };
        row.run.clone_from(&run);
        self.configure(id, vec![Edit::Scrubbed { scrub: row }]).await?;
        if clears && let Some(p) = self.context_mut().pool_mut(id) {
            (p.scrub.findings, p.scrub.last_findings) = Default::default();
            (p.scrub.places, p.scrub.last_places) = (0, 0);
        }
        if stops && let Some(p) = self.context_mut().pool_mut(id) {
            (p.scrub.last_places, p.scrub.last_findings) = (p.scrub.all_places(), p.scrub.all_findings());
        }
        if run != running {
            self.set_to_work(id, run);
        }
        self.context_mut().happened(now, format!("pool {pool}"), event);
        Ok(Reply::Created { uuid: Uuid::default(), notices })
    }
    /// The drives that count, one for a mirror.
    fn preferred(&self, pool: PoolId, drives: &[String], repair: bool) -> Result<Vec<Uuid>, Refusal> {
        let mut found: Vec<(usize, Uuid, &String)> = vec![];
        for drive in drives {
            if !repair {
                return Err(PoolRefusal::PreferWithoutRepair.into());
            }
            let leg = self.context().leg_named(drive).filter(|(p, ..)| *p == pool);
            let Some((_, array, leg)) = leg else {
                return Err(PoolRefusal::PreferUnknown { drive: drive.clone() }.into());
            };
            if let Some((.., other)) = found.iter().find(|(a, ..)| *a == array) {
                let (drive, other, array) = (drive.clone(), (*other).clone(), array_word(true, array));
                return Err(PoolRefusal::PreferTwice { drive, other, array }.into());
            }
            let uuid = self.context().pool(pool).expect("just found").arrays[array].legs[leg].uuid;
            found.push((array, uuid, drive));
        }
        Ok(found.into_iter().map(|(_, uuid, _)| uuid).collect())
    }
    /// A scrub begins, or ends, on all shards.
    fn set_to_work(&self, pool: PoolId, run: Option<ScrubRun>) {
        let now = self.cx.now();
        let arrays = {
            let mut context = self.context_mut();
            let number = context.next_number();
            let Some(p) = context.pool_mut(pool) else { return };
            p.scrub.run = run;
            p.scrub.number = number;
            p.scrub.done.clear();
            p.scrub.findings.clear();
            p.scrub.places = 0;
            p.scrub.speed = Speed::begun(now);
            (0..p.arrays.len()).map(|a| (p.arrays[a].id, p.order_for(a))).collect::<Vec<_>>()
        };
        for (array, order) in arrays {
            self.tell_shards(|| ShardMail::Scrub { array, order });
        }
    }

    /// Shards have built a pool's arrays anew: a scrub that is under way goes on there from where it was known to be.
    pub(in crate::steward) fn scrub_again(&self, pool: PoolId) {
        let orders: Vec<_> = {
            let context = self.context();
            let Some(p) = context.pool(pool) else { return };
            let mirrors = (0..p.arrays.len()).filter(|a| p.arrays[*a].geometry.redundant());
            mirrors.filter_map(|a| Some((p.arrays[a].id, p.order_for(a)?))).collect()
        };
        for (array, order) in orders {
            self.tell_shards(|| ShardMail::Scrub { array, order: Some(order) });
        }
    }

    /// Watches the scrubs of a pool as long as it is here.
    pub(crate) async fn watch_scrubs(&self, pool: PoolId) {
        let mut looks = 0;
        loop {
            let procedures = self.clone();
            let due = move || {
                let context = procedures.context();
                context.pool(pool).is_none_or(|p| !p.leaving && p.scrub_ended())
            };
            self.cx.until_within(LOOK_INTERVAL, due).await;
            let (running, ended, scheduled) = {
                let context = self.context();
                let Some(p) = context.pool(pool) else { return };
                if p.leaving {
                    continue;
                }
                (p.scrub.run.is_some(), p.scrub_ended(), p.scrub_is_due(context.unix(self.cx.now())))
            };
            if scheduled {
                let action = Order::ScrubKeep { pool };
                self.context_mut().orders.push_back((None, action));
            }
            if !running {
                if scheduled {
                    self.cx.sleep(LOOK_INTERVAL).await;
                }
                continue;
            }
            self.ask_reports().await;
            self.wake_idle_shards(pool);
            looks += 1;
            if ended || looks >= LOOKS_PER_WRITE {
                looks = 0;
                self.context_mut().orders.push_back((None, Order::ScrubKeep { pool }));
                let procedures = self.clone();
                // Until that was done, there is nothing else to say.
                self.cx
                    .until(move || {
                        let d = procedures.context();
                        d.orders.is_empty() && !d.ordering
                    })
                    .await;
            }
        }
    }
    /// After a restart shards know of no scrub; after they were set to work they do.
    fn wake_idle_shards(&self, pool: PoolId) {
        let letters = {
            let context = self.context();
            let Some(p) = context.pool(pool) else { return };
            let mut letters = vec![];
            for (a, array) in p.arrays.iter().enumerate().filter(|(_, x)| x.geometry.redundant()) {
                for report in context.reports.iter().flatten() {
                    let known = report.arrays.iter().find(|(id, _)| *id == array.id);
                    let idle = known.is_some_and(|(_, progress)| progress.scrub_total == 0);
                    if idle && !p.scrub.done.contains(&(a, report.shard)) {
                        letters.push((report.shard, array.id, p.order_for(a)));
                    }
                }
            }
            letters
        };
        for (shard, array, order) in letters {
            self.tell_shard(shard, ShardMail::Scrub { array, order });
        }
    }

    /// Order of the Steward's own: a scrub that is due begins, one that is over is put on record, of one under
    /// way the position is.
    pub(crate) async fn scrub_keep(&self, pool: PoolId) -> Answered {
        let now = self.cx.now();
        let (name, mut row, run, ended, due) = {
            let context = self.context();
            let Some(p) = context.pool(pool).filter(|p| !p.leaving) else { return Ok(Reply::Done) };
            let mut run = p.scrub.run.clone();
            if let Some(run) = &mut run {
                for a in 0..p.arrays.len() {
                    let from =
                        context.reports.iter().flatten().flat_map(|r| r.arrays.iter().map(|x| (r.shard, x)));
                    let from = from.filter(|(_, (id, _))| *id == p.arrays[a].id).map(
                        |(shard, (_, progress))| match (
                            p.scrub.done.contains(&(a, shard)),
                            progress.scrub_total,
                        ) {
                            (true, _) => p.arrays[a].geometry.data_bytes,
                            (false, 0) => 0,
                            (false, _) => progress.scrub_from,
                        },
                    );
                    let at = from.min().unwrap_or(0) / p.arrays[a].geometry.region_bytes;
                    let at = at * p.arrays[a].geometry.region_bytes;
                    if let Some(known) = run.at.get_mut(a) {
                        *known = at.max(*known);
                    }
                }
            }
            let due = p.scrub_is_due(context.unix(now));
            let row = p.config().extras.scrub.clone();
            (p.config().name.clone(), row, run, p.scrub_ended(), due)
        };
        let Some(run) = run else {
            let repair = row.repair;
            return if due {
                self.pool_scrub(&name, PoolScrub::Start { repair, prefer: vec![] }).await
            } else {
                Ok(Reply::Done)
            };
        };
        if !ended {
            row.run = Some(run.clone());
            self.configure(pool, vec![Edit::Scrubbed { scrub: row }]).await?;
            if let Some(p) = self.context_mut().pool_mut(pool)
                && let Some(live) = &mut p.scrub.run
            {
                live.at = run.at;
            }
            return Ok(Reply::Done);
        }
        let found = run.found;
        row.run = None;
        row.last = Some(LastScrub { ended: self.context().unix(now), found });
        self.configure(pool, vec![Edit::Scrubbed { scrub: row }]).await?;
        let mut context = self.context_mut();
        let mut places = 0;
        if let Some(p) = context.pool_mut(pool) {
            p.scrub.run = None;
            p.scrub.last_findings = core::mem::take(&mut p.scrub.findings);
            places = core::mem::take(&mut p.scrub.places);
            p.scrub.last_places = places;
        }
        let places = Some(places).filter(|n| *n > FINDINGS_TOLD as u64);
        let what = format!("pool {name}");
        let event = match (found.differed, found.unreadable) {
            (0, 0) => PoolEvent::ScrubClean,
            (0, n) => PoolEvent::ScrubUnreadable { pool: name, unreadable_bytes: n, places },
            (n, m) => PoolEvent::ScrubDiffered {
                pool: name,
                differed_bytes: n,
                repaired_bytes: found.repaired,
                unreadable_bytes: m,
                places,
            },
        };
        context.happened(now, what, event);
        Ok(Reply::Done)
    }
}

/// What is kept of a scrub that was stopped: what it found and did not repair, unless more was known before.
fn keep_found(last: Option<LastScrub>, found: Found) -> Option<LastScrub> {
    let left = |f: Found| (f.differed - f.repaired, f.differed, f.unreadable);
    let before = last.unwrap_or_default();
    if found != Found::default() && left(found) >= left(before.found) {
        Some(LastScrub { found, ..before })
    } else {
        last
    }
}

impl PoolContext {
    fn order_for(&self, array: usize) -> Option<array::Scrub> {
        let run = self.scrub.run.as_ref()?;
        let legs = &self.arrays[array].legs;
        let prefer = legs.iter().find(|l| run.prefer.contains(&l.uuid)).map(|l| l.place);
        let from = run.at.get(array).copied().unwrap_or(0);
        // Who names the good drive of one mirror has said nothing of the others: they are only compared.
        let repair = run.repair && (run.prefer.is_empty() || prefer.is_some());
        let (number, block_bytes) = (self.scrub.number, self.config().drive_block_bytes);
        Some(array::Scrub { number, from, repair, prefer, block_bytes })
    }
    /// Every shard has done its part of every mirror.
    fn scrub_ended(&self) -> bool {
        let mirrors = (0..self.arrays.len()).filter(|a| self.arrays[*a].geometry.redundant());
        self.scrub.run.is_some()
            && mirrors.into_iter().all(|a| (0..self.shards).all(|s| self.scrub.done.contains(&(a, s))))
    }
    fn scrub_is_due(&self, unix: u64) -> bool {
        let row = &self.config().extras.scrub;
        let last = row.last.map_or(0, |l| l.ended).max(self.config().created);
        let mirror = self.config().arrays.iter().any(|a| a.mirror);
        self.scrub.run.is_none()
            && row.every_days > 0
            && mirror
            && unix >= last.saturating_add(u64::from(row.every_days) * DAY_SECS)
    }
}
