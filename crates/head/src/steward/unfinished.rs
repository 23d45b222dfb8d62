//! Pools that are being made, in the file `creating` (docs/formats/state.md, "A creation").
//!
//! Until every drive of a new pool has all that makes it one, its configurations say so, and the file names the pool. A start
//! that finds it there and not among `pools` brings the creation to its end, if some drive says that it was whole, or frees
//! the drives again. Elsewhere such a pool is refused with words: nothing was ever stored on it.

use super::Office;
use super::desk::{OpenDrive, refuse};
use super::drives::Probe;
use super::files::{PoolRow, parse_pools, pools_text};
use super::join::{self, Boxed};
use super::released::relist;
use super::start::{CLAIM_PATIENCE, CLAIM_RETRY};
use crate::order::{Refusal, RefusalKind, Weight};
use array::format::ConfigSlot;
use base::Uuid;

/// The file.
pub(crate) const CREATING: &str = "creating";
const CREATING_IS: &str = "# Pools that are being made, and where their drives lie.";

impl Office {
    /// Reads the list.
    pub(crate) async fn read_creating(&self, troubles: &mut Vec<String>) {
        let follows = "drives of pools whose creation was cut off are not freed, and no pool is made";
        let rows = self.read_known(CREATING, follows, parse_pools, troubles).await.flatten();
        self.desk_mut().creating = rows.unwrap_or_default();
    }
    /// A pool is about to be made on these drives; or so much of it is left. None of them: nothing is left.
    pub(crate) async fn list_creating(&self, row: PoolRow) -> Result<(), Refusal> {
        let before = self.desk().creating.clone();
        relist(&mut self.desk_mut().creating, row);
        if self.desk().creating == before {
            return Ok(());
        }
        let written = self.write_creating().await;
        if written.is_err() {
            self.desk_mut().creating = before;
        }
        written
    }
    pub(crate) async fn write_creating(&self) -> Result<(), Refusal> {
        let contents = pools_text(CREATING_IS, &self.desk().creating);
        self.write_file(CREATING, contents).await
    }
    /// A pool is made whole, or nothing of it is left but on these drives, which could not be freed.
    pub(crate) async fn leave_creating(&self, pool: Uuid, drives: Vec<String>) {
        let row = self.desk().creating.iter().find(|r| r.uuid == pool).cloned();
        if let Some(row) = row {
            // One that stays is found at the next start to be made, or to be on no drive.
            let _ = self.list_creating(PoolRow { drives, ..row }).await;
        }
    }
    /// Takes our mark from drives. Returns the paths of those that still have it.
    pub(crate) async fn unlabel_all(&self, drives: &[OpenDrive]) -> Vec<String> {
        let one = |o: &OpenDrive| -> Boxed<'_, Option<String>> {
            let o = o.clone();
            Box::pin(async move {
                // What was empty is empty again. A file that was made for it is taken away so, and a file system that has no
                // room for a label may have none for zeroes in its place either.
                if o.info.reads_zeroes
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
        let end = self.cx.now() + CLAIM_PATIENCE;
        let look = |path: &String| -> Boxed<'_, Result<Probe, String>> {
            let path = path.clone();
            Box::pin(async move {
                loop {
                    match self.probe(&path).await {
                        Ok(probe) => return Ok(probe),
                        // After kill -9 the kernel may hold it until the last operation has ended.
                        Err(e) if e.held && self.cx.now() < end => self.cx.sleep(CLAIM_RETRY).await,
                        Err(_) => return Err(path),
                    }
                }
            })
        };
        let (mut found, mut away) = (vec![], vec![]);
        for result in join::all(row.drives.iter().map(look).collect()).await {
            match result {
                Ok(probe) if probe.good_label().is_some_and(|l| l.pool == row.uuid) => found.push(probe),
                // Not labelled yet, or by somebody else meanwhile.
                Ok(probe) => self.let_go(probe.id),
                Err(path) => away.push(path),
            }
        }
        if !away.is_empty() {
            // A drive may have another path today.
            let (more, _) = self.gather(&self.candidates().await, Some(row.uuid)).await;
            self.add_others(&mut found, more);
        }
        let whole = found.iter().any(|p| p.config.as_ref().is_ok_and(|c| !c.is_unfinished()));
        let (what, now) = (format!("pool {}", row.name), self.cx.now());
        if whole {
            for probe in &found {
                self.let_go_wholly(probe.id, CLAIM_RETRY).await;
            }
            let words = "its creation had been cut off when all of it was written: it is brought to its end";
            self.desk_mut().event(now, Weight::Note, what, words);
            return Some(row);
        }
        // Only what says itself that it holds nothing loses its label.
        let (empty, doubtful): (Vec<&Probe>, Vec<&Probe>) =
            found.iter().partition(|p| p.config.as_ref().is_ok_and(ConfigSlot::is_unfinished));
        let open: Vec<OpenDrive> = empty.iter().filter_map(|p| p.opened()).collect();
        let failed = self.unlabel_all(&open).await;
        found.iter().for_each(|p| self.let_go(p.id));
        let freed: Vec<&str> =
            open.iter().map(|o| o.info.path.as_str()).filter(|p| !failed.iter().any(|f| f == p)).collect();
        let doubtful = doubtful.iter().map(|p| p.info.path.clone());
        let left: Vec<String> = failed.into_iter().chain(away).chain(doubtful).collect();
        let mut words = String::from("its creation had been cut off, and was undone");
        if !freed.is_empty() {
            let are = if freed.len() == 1 { "is" } else { "are" };
            words.push_str(&format!(": {} {are} free again", freed.join(", ")));
        }
        if !left.is_empty() {
            words.push_str(&format!(
                "; {} could not be freed and may still have its label: the next start tries again, and pool create --force takes it all the same",
                left.join(", ")
            ));
        }
        self.desk_mut().event(self.cx.now(), Weight::Warning, what, words);
        self.remove_witness(row.uuid).await;
        self.leave_creating(row.uuid, left).await;
        None
    }
}

/// Words for the drives of a pool that was never finished, by another head or by this one with another state directory.
pub(crate) fn never_finished(pool: &str, probes: &[Probe]) -> Refusal {
    let paths: Vec<&str> = probes.iter().map(|p| p.info.path.as_str()).collect();
    let has = if paths.len() == 1 { "has" } else { "have" };
    let message = format!(
        "pool {pool} was never finished: its creation was cut off, and nothing was stored on it ({} {has} its label)",
        paths.join(", ")
    );
    refuse(RefusalKind::NotReady, "pool", message).then(format!(
        "start the head again that was making it, which frees the drives; or make it anew: millrace pool create {pool} … --force"
    ))
}
