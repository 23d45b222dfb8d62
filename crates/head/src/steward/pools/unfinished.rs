//! Pools that are being made, and arrays that are being added to one, in the file `creating` (docs/formats/state.md, "A
//! creation", "An addition").
//!
//! Until every drive of a new pool has all that makes it one, its configurations say so, and the file names the pool. A start
//! that finds it there and not among `pools` brings the creation to its end, if some drive says that it was whole, or frees
//! the drives again. Elsewhere such a pool is refused: nothing was ever stored on it.
//!
//! New drives of a pool that is there are told apart in the same way: their configuration says that they are being added, until
//! one of the drives that were there before says that they belong to the pool. Files that were made for it go again.

use crate::order::{ArraySpec, Notice, Refusal};
use crate::steward::context::head::HeadContext;
use crate::steward::context::open::OpenDrive;
use crate::steward::context::probe::Probe;
use crate::steward::health::shaped;
use crate::steward::join::{self, Boxed};
use crate::steward::patience::{CLAIM_PATIENCE, CLAIM_RETRY};
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{CREATING, LEAVES, MADE, POOLS, parse_pools, path_of};
use crate::steward::state::{Change, List, PoolRow};
use array::format::ConfigSlot;
use base::Uuid;
use finding::{CutOffWork, Leftovers, PoolEvent, PoolNotice, PoolRefusal};

/// The file that opening a drive makes, if it is missing (`file:PATH?size=SIZE`).
fn makes(spec: &str) -> Option<&str> {
    let (path, options) = shaped::bare(spec).strip_prefix("file:")?.split_once('?')?;
    options.split('&').any(|o| o.starts_with("size=")).then_some(path)
}

/// What became of the drives of a list.
#[derive(Default)]
pub(crate) struct Listed {
    /// They have the pool's label.
    pub found: Vec<Probe>,
    /// Paths of those that do not let themselves be looked at.
    pub away: Vec<String>,
    /// Paths of files that were made for the pool, hold nothing, and go.
    removed: Vec<String>,
    /// Paths of files that were made for the pool and hold something without its label: that may be somebody else's today.
    kept: Vec<String>,
}

impl Procedures {
    /// Reads the list.
    pub(crate) async fn read_creating(&self, troubles: &mut Vec<Notice>) {
        let rows = self.read_known(CREATING, |bytes| parse_pools(CREATING, bytes), troubles).await.flatten();
        for row in rows.unwrap_or_default() {
            self.context_mut().apply(Change::Listed { list: List::Creating, row });
        }
    }
    /// A pool is about to be made on these drives; or so much of it is left. None of them: nothing is left.
    pub(crate) async fn list_creating(&self, row: PoolRow) -> Result<(), Refusal> {
        self.list(List::Creating, row).await
    }
    /// Of the drives of new arrays, the files that are made as they are opened, as they are listed: whoever opens them lists them
    /// before.
    pub(crate) async fn files_to_make(&self, specs: &[ArraySpec]) -> Vec<String> {
        let mut missing = vec![];
        for path in specs.iter().flat_map(|s| &s.drives).filter_map(|d| makes(d)) {
            let id = self.context_mut().new_drive();
            match self.cx.open(id, &format!("file:{path}")).await {
                // It is opened again soon.
                Ok(_) => {
                    self.let_go_wholly(id, CLAIM_PATIENCE).await;
                }
                Err(e) => {
                    if !self.cx.is_opening(id) {
                        self.context_mut().free_drive(id);
                    }
                    if e.why.is_missing() {
                        missing.push(format!("{MADE}{path}"));
                    }
                }
            }
        }
        missing
    }
    /// A pool is made whole, or nothing of it is left but on these drives, which could not be freed.
    pub(crate) async fn leave_creating(&self, pool: Uuid, drives: Vec<String>) {
        self.keep_listed(pool, |path| drives.iter().any(|d| path_of(d) == path)).await;
    }
    /// Of these drives nothing is left to be done.
    pub(crate) async fn done_with(&self, pool: Uuid, drives: &[String]) {
        self.keep_listed(pool, |path| !drives.iter().any(|d| path_of(d) == path)).await;
    }
    async fn keep_listed(&self, pool: Uuid, stays: impl Fn(&str) -> bool) {
        let row = self.context().creating().iter().find(|r| r.uuid == pool).cloned();
        if let Some(mut row) = row {
            row.drives.retain(|d| stays(path_of(d)));
            // One that stays is found at the next start to be made, or to be on no drive.
            let _ = self.list_creating(row).await;
        }
    }
    /// These drives are about to become a pool's, besides those that still have a label from an earlier attempt.
    pub(crate) async fn list_addition(
        &self,
        pool: Uuid,
        name: &str,
        mut drives: Vec<String>,
    ) -> Result<(), Refusal> {
        let before = self.context().creating().iter().find(|r| r.uuid == pool).cloned();
        let before = before.into_iter().flat_map(|r| r.drives);
        let others: Vec<String> =
            before.filter(|b| !drives.iter().any(|d| path_of(d) == path_of(b))).collect();
        drives.extend(others);
        self.list_creating(PoolRow { uuid: pool, name: name.into(), drives }).await
    }
    /// Drives that were being added to a pool whose drives are these, as they are listed.
    pub(crate) fn added_to(&self, pool: &PoolRow) -> Vec<String> {
        let context = self.context();
        let listed = context.creating().iter().filter(|r| r.uuid == pool.uuid).flat_map(|r| &r.drives);
        let added = listed.filter(|d| !d.starts_with(LEAVES));
        added.filter(|d| !pool.drives.iter().any(|p| p == path_of(d))).cloned().collect()
    }
    /// Whether drives of a pool were leaving it.
    pub(crate) fn has_leavers(&self, pool: Uuid) -> bool {
        let context = self.context();
        let mut listed = context.creating().iter().filter(|r| r.uuid == pool).flat_map(|r| &r.drives);
        listed.any(|d| d.starts_with(LEAVES))
    }
    /// Takes our mark from drives. Returns the paths of those that still have it.
    pub(crate) async fn unlabel_all(&self, drives: &[OpenDrive]) -> Vec<String> {
        let one = |o: &OpenDrive| -> Boxed<'_, Option<String>> {
            let o = o.clone();
            Box::pin(async move {
                // What was empty is empty again. A file that was made for it is taken away so, and a file system that has no
                // room for a label may have none for zeroes in its place either.
                if (o.info.reads_zeroes || o.info.made)
                    && o.info.deallocate_zeroes
                    && self.cx.deallocate(o.id, 0, o.info.bytes).await.is_ok()
                {
                    return None;
                }
                let done = self.unlabel_drive(o.id, &o.label).await;
                done.is_err().then(|| o.info.path.clone())
            })
        };
        join::all(drives.iter().map(one).collect()).await.into_iter().flatten().collect()
    }

    /// A creation was cut off by the end of the life before. Returns the pool if it is whole: else its drives are free
    /// again, as far as they are there.
    pub(crate) async fn end_creation(&self, row: PoolRow) -> Option<PoolRow> {
        let mut listed = self.look_for_listed(&row).await;
        if !listed.away.is_empty() {
            // A drive may have another path today.
            let (more, _) = self.gather(&self.candidates().await, Some(row.uuid)).await;
            self.add_others(&mut listed.found, more);
        }
        let found = &listed.found;
        let whole = found.iter().any(|p| p.config.as_ref().is_ok_and(|c| !c.is_unfinished()));
        let (what, now) = (format!("pool {}", row.name), self.cx.now());
        if whole {
            for probe in found {
                self.let_go_wholly(probe.id, CLAIM_RETRY).await;
            }
            self.context_mut().happened(now, what, PoolEvent::CreationEnded);
            let drives = row.drives.iter().map(|d| path_of(d).to_string()).collect();
            return Some(PoolRow { drives, ..row });
        }
        let left = self.free_unfinished(&row.name, CutOffWork::Creation, listed).await;
        self.remove_witness(row.uuid).await;
        self.leave_creating(row.uuid, left).await;
        None
    }

    /// Looks at the drives of the list. A file that was made for the pool and holds nothing goes as it is let go of.
    pub(crate) async fn look_for_listed(&self, row: &PoolRow) -> Listed {
        let end = self.cx.now() + CLAIM_PATIENCE;
        let look = |listed: &String| -> Boxed<'_, Result<Probe, Option<String>>> {
            let listed = listed.clone();
            Box::pin(async move {
                loop {
                    match self.probe_listed(&listed).await {
                        Ok(probe) => return Ok(probe),
                        // After kill -9 the kernel may hold it until the last operation has ended.
                        Err(e) if e.is_held() && self.cx.now() < end => self.cx.sleep(CLAIM_RETRY).await,
                        // What was made for it is gone already.
                        Err(e) if e.is_missing() && listed.starts_with(MADE) => return Err(None),
                        Err(_) => return Err(Some(path_of(&listed).to_string())),
                    }
                }
            })
        };
        let mut listed = Listed::default();
        for result in join::all(row.drives.iter().map(look).collect()).await {
            match result {
                Ok(probe) if probe.good_label().is_some_and(|l| l.pool == row.uuid) => {
                    listed.found.push(probe);
                }
                Ok(probe) if probe.info.made && probe.label.is_err() => {
                    // The label is the last that is written, so something without one may be ours, or of who has the path today.
                    let path = probe.info.path.clone();
                    if probe.info.reads_zeroes {
                        listed.removed.push(path)
                    } else {
                        listed.kept.push(path)
                    }
                    self.let_go(probe.id);
                }
                // Not labelled yet, or by somebody else meanwhile.
                Ok(probe) => self.let_go(probe.id),
                Err(path) => listed.away.extend(path),
            }
        }
        listed
    }
    /// Takes their labels from drives that say that they hold nothing yet, and tells it. Returns the paths of those that may
    /// still have one, those among them that are away.
    async fn free_unfinished(&self, pool: &str, what: CutOffWork, listed: Listed) -> Vec<String> {
        let Listed { found, away, removed, kept } = listed;
        // Only what says itself that it holds nothing loses its label.
        let (empty, doubtful): (Vec<&Probe>, Vec<&Probe>) =
            found.iter().partition(|p| p.config.as_ref().is_ok_and(ConfigSlot::is_unfinished));
        let open: Vec<OpenDrive> = empty.iter().filter_map(|p| p.opened()).collect();
        let failed = self.unlabel_all(&open).await;
        found.iter().for_each(|p| self.let_go(p.id));
        let well = open.iter().filter(|o| !failed.contains(&o.info.path));
        let (made, freed): (Vec<&OpenDrive>, Vec<&OpenDrive>) = well.partition(|o| o.info.made);
        let path = |o: &&OpenDrive| o.info.path.clone();
        let freed: Vec<String> = freed.iter().map(path).collect();
        let removed: Vec<String> = made.iter().map(path).chain(removed).collect();
        let doubtful = doubtful.iter().map(|p| p.info.path.clone());
        let left: Vec<String> = failed.into_iter().chain(away).chain(doubtful).collect();
        let drives = Leftovers { freed, removed, kept, left: left.clone() };
        let (pool, now) = (pool.to_string(), self.cx.now());
        let mut context = self.context_mut();
        context.happened(
            now,
            format!("pool {pool}"),
            PoolEvent::WorkUndone { what: what.clone(), drives: drives.clone() },
        );
        let note = PoolNotice::WorkUndone { pool, what, drives }.into();
        if !context.notices.contains(&note) {
            context.notices.push(note);
        }
        left
    }
    /// The pool was imported: drives that were being added to it when the life before ended are its own, or free again.
    pub(crate) async fn end_addition(&self, uuid: Uuid) {
        let row = {
            let context = self.context();
            let row = context.creating().iter().find(|r| r.uuid == uuid).cloned();
            let pool = context.pools.iter().find(|p| p.config().uuid == uuid);
            row.zip(pool).map(|(row, pool)| (PoolRow { name: pool.config().name.clone(), ..row }, pool.row()))
        };
        let Some((mut row, pool)) = row else { return };
        let others = self.added_to(&pool);
        // Those that leave have a procedure of their own.
        let leaving: Vec<String> = row.drives.extract_if(.., |d| d.starts_with(LEAVES)).collect();
        let all = row.drives.len();
        let left = if others.is_empty() {
            vec![]
        } else {
            let listed = self.look_for_listed(&PoolRow { drives: others.clone(), ..row.clone() }).await;
            self.free_unfinished(&row.name, CutOffWork::Addition, listed).await
        };
        if others.len() < all {
            let (what, now) = (format!("pool {}", row.name), self.cx.now());
            self.context_mut().happened(now, what, PoolEvent::AdditionEnded);
            if self.check_read(POOLS).and(self.write_pools().await).is_err() {
                return;
            }
        }
        let left = left.into_iter().chain(leaving.iter().map(|d| path_of(d).to_string()));
        self.leave_creating(uuid, left.collect()).await;
    }
}

impl HeadContext {
    /// What had been cut off was done again, or is not wanted any more.
    pub fn forget_undone(&mut self, name: &str) {
        let is_of_it =
            |n: &Notice| matches!(n, Notice::Pool(PoolNotice::WorkUndone { pool, .. }) if pool == name);
        self.notices.retain(|n| !is_of_it(n));
    }
}

/// The drives are those of a pool that was never finished, by another head or by this one with another state directory.
pub(crate) fn never_finished(pool: &str, probes: &[Probe]) -> Refusal {
    let drives = probes.iter().map(|p| p.info.path.clone()).collect();
    PoolRefusal::PoolUnfinished { pool: pool.into(), drives }.into()
}
