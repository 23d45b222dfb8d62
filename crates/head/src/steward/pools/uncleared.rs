//! Space that no host may read as it lies there: what it is at an import, and what becomes of space that volumes return.
//!
//! ```text
//! returned (in the configuration) ▶ nothing of it is at a drive any more ▶ every array marks it, durably
//!                                 ▶ the configuration forgets it: free
//! ```
//!
//! A crash at any moment leaves it returned, and the next head marks it anew (docs/formats/uncleared.md).

use crate::layout::{ArrayId, PoolId};
use crate::mail::ShardMail;
use crate::order::{Answered, Notice, Refusal, Reply};
use crate::steward::context::array::ArrayContext;
use crate::steward::context::open::OpenDrive;
use crate::steward::context::pool::PoolContext;
use crate::steward::procedures::Procedures;
use crate::steward::state::Edit;
use crate::steward::state::config::PoolConfig;
use array::{Geometry, UnclearedMap};
use base::{Duration, Instant, Uuid};
use finding::{DriveFault, PoolNotice, PoolRefusal};
use std::collections::BTreeMap;
use std::sync::Arc;
use volume::{GRANULE_BYTES, Run};

/// How often it is looked whether space has rested long enough.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A range of an array's data space, bytes.
type Range = (u64, u64);

impl PoolContext {
    /// Whether no shard has uncleared pieces of an array of it.
    fn is_cleared(&self, array: &ArrayContext) -> bool {
        let has_map = array.uncleared.life() != 0 || array.marks > 0;
        !has_map || self.have_all_said(array, &array.cleared)
    }
    /// Returned runs that nothing is under way to any more.
    fn rested(&self, now: Instant) -> Vec<Run> {
        let meet = |a: &Run, b: &Run| a.first < b.first + b.count && b.first < a.first + a.count;
        let rests = |run: &Run| self.resting.iter().any(|r| meet(&r.run, run) && r.until > now);
        self.config().returned().into_iter().filter(|run| !rests(run)).collect()
    }
    /// The configuration says that something is uncleared, and nothing is.
    fn is_over(&self) -> bool {
        self.config().extras.uncleared.is_some()
            && self.config().returned().is_empty()
            && self.arrays.iter().all(|a| self.is_cleared(a))
    }
    /// Where these ranges of the pool's space lie on the arrays.
    fn ranges_of(&self, ranges: &[Range]) -> BTreeMap<usize, Vec<Range>> {
        let mut all = BTreeMap::<usize, Vec<Range>>::new();
        for (at, len) in ranges {
            for (array, at, len) in self.config().map.ranges(*at, *len) {
                all.entry(array).or_default().push((at, len));
            }
        }
        all
    }
}

impl PoolConfig {
    /// Before the first configuration of an import: what an older program left free may hold anything. `generation` is that
    /// of the configuration that will say so.
    pub fn account(&mut self, generation: u64) {
        if !self.accounted {
            self.edit(&Edit::AllReturned {}, generation);
        }
    }
}

impl Procedures {
    /// What the maps of these legs, which are all of an array that are in sync, say of it. A damaged block that another leg
    /// has is mended. One leg that can be read is enough: whatever counts is on all of them.
    ///
    /// # Errors
    /// None can be read: what is uncleared is not known, and neither zeroes nor what lies there may be shown.
    pub(in crate::steward) async fn assemble_uncleared(
        &self,
        config: &PoolConfig,
        array: usize,
        geometry: &Geometry,
        legs: Vec<OpenDrive>,
        notices: &mut Vec<Notice>,
    ) -> Result<UnclearedMap, Refusal> {
        let Some(returned) = &config.extras.uncleared else { return Ok(UnclearedMap::none()) };
        let (mut areas, mut unread) = (vec![], None);
        for open in &legs {
            let read = self.read_uncleared(open).await;
            unread = unread.or(read.as_ref().err().map(|e| (open, *e)));
            areas.push(read.ok());
        }
        if let (Some((open, e)), true) = (unread, areas.iter().all(Option::is_none)) {
            let (drive, fault) = (open.info.path.clone(), DriveFault::of(&open.info, e));
            return Err(PoolRefusal::UnclearedMapUnreadable { drive, fault }.into());
        }
        let areas: Vec<Option<&[u8]>> = areas.iter().map(Option::as_deref).collect();
        let merged = UnclearedMap::merge(geometry, config.array_uuid(array), returned.life, &areas);
        for mend in &merged.mends {
            let open = &legs[mend.leg];
            let at = array::format::tail_at(open.label.drive_bytes) + mend.at;
            if let Err(e) = self.cx.write(open.id, at, &mend.bytes).await {
                let (drive, fault) = (open.info.path.clone(), DriveFault::of(&open.info, e));
                notices.push(PoolNotice::UnclearedMapDamaged { drive, fault }.into());
            }
        }
        if merged.lost > 0 {
            let pool = config.name.clone();
            notices.push(PoolNotice::UnclearedMapLost { pool, array: array as u64 }.into());
        }
        Ok(merged.map)
    }

    /// Watches over the returned space of a pool as long as it is here.
    pub(crate) async fn watch_returned(&self, pool: PoolId) {
        loop {
            let procedures = self.clone();
            let due = move || {
                let (context, now) = (procedures.context(), procedures.cx.now());
                context.pool(pool).is_none_or(|p| !p.leaving && (!p.rested(now).is_empty() || p.is_over()))
            };
            let rests = self.context().pool(pool).is_some_and(|p| !p.resting.is_empty());
            if rests {
                if !self.cx.until_within(LOOK_INTERVAL, due).await {
                    continue;
                }
            } else {
                let procedures = self.clone();
                self.cx
                    .until(move || {
                        due() || procedures.context().pool(pool).is_some_and(|p| !p.resting.is_empty())
                    })
                    .await;
            }
            let runs = {
                let mut context = self.context_mut();
                let now = self.cx.now();
                let Some(p) = context.pool_mut(pool) else { return };
                p.resting.retain(|r| r.until > now);
                p.rested(now)
            };
            if self
                .context()
                .pool(pool)
                .is_some_and(|p| p.leaving || p.is_bereft() || runs.is_empty() && !p.is_over())
            {
                self.cx.sleep(LOOK_INTERVAL).await;
                continue;
            }
            let ranges: Vec<Range> =
                runs.iter().map(|run| (run.first * GRANULE_BYTES, run.count * GRANULE_BYTES)).collect();
            if !runs.is_empty() && !self.mark(pool, &ranges).await {
                continue;
            }
            if let Some(p) = self.context_mut().pool_mut(pool) {
                p.has_marked(runs);
            }
            // By an order, so that nobody else changes the configuration meanwhile.
            self.context_mut().orders.push_back((None, crate::order::Order::SpaceMarked { pool }));
            let procedures = self.clone();
            self.cx
                .until(move || {
                    let d = procedures.context();
                    d.orders.is_empty() && !d.ordering
                })
                .await;
            // What was refused is tried again, in a while.
            self.cx.sleep(LOOK_INTERVAL).await;
        }
    }
    /// What lies behind a volume's end in its last granule may be what it held before it shrank: nobody reads that once the
    /// volume grows over it.
    ///
    /// # Errors
    /// It has shrunk a moment ago, and writes there may still be at a drive; or the configuration cannot be written.
    pub(in crate::steward) async fn clear_tail(&self, pool: PoolId, uuid: Uuid) -> Result<(), Refusal> {
        let gone = || Refusal::from(PoolRefusal::VolumeGone);
        let (has_maps, tail, until) = {
            let context = self.context();
            let p = context.pool(pool).ok_or_else(gone)?;
            let v = p.config().volumes.by_uuid(uuid).ok_or_else(gone)?;
            let tail = v.tail();
            (p.config().extras.uncleared.is_some(), tail, p.shrunk.get(&uuid).copied())
        };
        let Some(tail) = tail else { return Ok(()) };
        let left = until.map_or(Duration::ZERO, |until| until.since(self.cx.now()));
        if left > Duration::ZERO {
            let seconds = left.as_nanos().div_ceil(1_000_000_000) as u64;
            return Err(PoolRefusal::VolumeJustShrunk { seconds }.into());
        }
        if !has_maps {
            self.configure(pool, vec![Edit::MapsBegun {}]).await?;
        }
        if !self.mark(pool, &[tail]).await {
            let stays = self.context().pool(pool).is_some_and(|p| !p.leaving);
            return Err(if stays { PoolRefusal::PoolBeingTakenOver.into() } else { gone() });
        }
        Ok(())
    }
    /// Has every array mark these ranges of the pool's space, and waits until they have. False if the pool is let go of, or
    /// nobody has some of its lanes: what has been marked of it does not count then.
    async fn mark(&self, pool: PoolId, ranges: &[Range]) -> bool {
        let procedures = self.clone();
        let over = move || procedures.context().pool(pool).is_none_or(|p| !p.dealing || p.is_bereft());
        self.cx.until(over).await;
        let mut letters: Vec<(ArrayId, u64, u32, Arc<Vec<Range>>)> = vec![];
        {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool).filter(|p| !p.is_bereft()) else { return false };
            let life = p.config().extras.uncleared.as_ref().map_or(0, |u| u.life);
            for (array, ranges) in p.ranges_of(ranges) {
                let array = &mut p.arrays[array];
                letters.push((array.id, life, array.marks_again(), Arc::new(ranges)));
            }
        }
        let marked: Vec<ArrayId> = letters.iter().map(|(id, ..)| *id).collect();
        for (array, life, marks, ranges) in letters {
            self.tell_shards(|| ShardMail::Returned { array, life, marks, ranges: ranges.clone() });
        }
        let procedures = self.clone();
        let done = move || {
            let context = procedures.context();
            context.pool(pool).is_none_or(|p| {
                // Somebody else's mark that came later includes this one.
                let is_done = |a: &ArrayContext| !marked.contains(&a.id) || p.have_all_said(a, &a.marked);
                p.leaving || p.is_bereft() || p.arrays.iter().all(is_done)
            })
        };
        self.cx.until(done).await;
        self.context().pool(pool).is_some_and(|p| !p.leaving && !p.is_bereft())
    }

    /// Order of the Steward's own: returned space that every array has marked is free.
    pub(crate) async fn space_marked(&self, pool: PoolId) -> Answered {
        let (edits, over) = {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool).filter(|p| !p.leaving) else { return Ok(Reply::Done) };
            let marked = core::mem::take(&mut p.marked);
            let left = p.config().returned().into_iter().filter(|run| !marked.contains(run)).count();
            let over = left == 0 && p.arrays.iter().all(|a| p.is_cleared(a));
            let freed = (!marked.is_empty()).then_some(Edit::SpaceFreed { runs: marked });
            let ended = over.then_some(Edit::MapsEnded {});
            (freed.into_iter().chain(ended).collect(), over)
        };
        self.configure(pool, edits).await?;
        if over {
            let arrays: Vec<(ArrayId, u32)> = {
                let context = self.context();
                context.pool(pool).map_or(vec![], |p| p.arrays.iter().map(|a| (a.id, a.marks)).collect())
            };
            for (array, marks) in arrays {
                self.tell_shards(|| ShardMail::AllCleared { array, marks });
            }
        }
        Ok(Reply::Done)
    }
}
