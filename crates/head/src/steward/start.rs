//! The Steward's life: the start, at which its pools are imported, then orders one by one.

use crate::mail::ManagerMail;
use crate::order::{ErrorKind, Notice};
use crate::peer::SystemSettings;
use crate::steward::context::absent::{AbsentPool, Waits};
use crate::steward::context::head::Stop;
use crate::steward::context::loss::Loss;
use crate::steward::context::probe::Probe;
use crate::steward::context::system::SystemContext;
use crate::steward::patience::{CLAIM_PATIENCE, CLAIM_RETRY};
use crate::steward::pools::absent::LOOK_FIRST;
use crate::steward::pools::import::{Claim, ended_with_the_daemon, faults, held_faults};
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::POOLS;
use crate::steward::state::PoolRow;
use base::DriveKind;
use base::{Bug, Duration, Instant, Uuid, planted};
use finding::{ImportFault, PoolCause, PoolEvent, PoolNotice, RecordCause, SystemEvent};
use std::collections::BTreeSet;

/// How long the start waits for pools before it serves the others.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long a drive may take to be let go of.
const RELEASE_PATIENCE: Duration = Duration::from_secs(1);
/// After that long the drives are another's, and not the rest of a life of this head: whoever does not need them
/// is served.
const HELD_PATIENCE: Duration = Duration::from_secs(2);

impl Procedures {
    /// The Steward's life: start, then orders one by one.
    pub(crate) async fn live(self, hold: Option<u64>, system: Option<SystemSettings>) {
        let mut troubles = self.read_log().await;
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.keep_log().await });
        if let Some(settings) = system {
            self.enter_system(settings, false).await;
            if self.stand_by().await.is_none() {
                return self.cx.to_manager(ManagerMail::Stopped);
            }
        }
        troubles.extend(self.read_state().await);
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.count_rejections().await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.watch_paths().await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.watch_drives().await });
        let procedures = self.clone();
        self.cx.spawn(async move { procedures.watch_directory().await });
        self.read_released(&mut troubles).await;
        self.read_creating(&mut troubles).await;
        let rows = self.read_pools(&mut troubles).await;
        let mut notices: Vec<Notice> = troubles.into_iter().collect();
        for row in &rows {
            // Listed with all its drives, it was whole.
            if self.added_to(row).is_empty() && !self.has_leavers(row.uuid) {
                self.leave_creating(row.uuid, vec![]).await;
            }
            if let Err(notice) = self.miss(row).await {
                notices.push(notice);
            }
            if let Some(crashes) = hold
                && let Some(absent) = self.context_mut().absent.last_mut()
            {
                absent.is_told(PoolCause::PoolHeldBack { pool: row.name.clone(), crashes });
            }
        }
        if let Some(crashes) = hold {
            self.context_mut().hold(true);
            notices.push(PoolNotice::PoolsHeldBack { crashes }.into());
        } else {
            let is_made = |r: &PoolRow| rows.iter().any(|row| row.uuid == r.uuid);
            let creating: Vec<PoolRow> =
                self.context().creating().iter().filter(|r| !is_made(r)).cloned().collect();
            let busy = std::rc::Rc::new(std::cell::Cell::new(rows.len() + creating.len()));
            // Hosts of a pool whose drives are held see its volumes, not ready, if they are known.
            let waits = |p: &&AbsentPool| p.waits != Waits::Nothing && p.kept.is_some();
            for row in rows {
                let (procedures, left) = (self.clone(), busy.clone());
                self.cx.spawn(async move {
                    procedures.import_at_start(row).await;
                    left.set(left.get() - 1);
                    procedures.cx.changed();
                });
            }
            for row in creating {
                let (procedures, left) = (self.clone(), busy.clone());
                self.cx.spawn(async move {
                    if let Some(row) = procedures.end_creation(row).await {
                        // Nothing is kept of it yet.
                        let _ = procedures.miss(&row).await;
                        let uuid = row.uuid;
                        procedures.import_at_start(row).await;
                        if procedures.check_read(POOLS).and(procedures.write_pools().await).is_ok() {
                            procedures.leave_creating(uuid, vec![]).await;
                        }
                    }
                    left.set(left.get() - 1);
                    procedures.cx.changed();
                });
            }
            let procedures = self.clone();
            let over = move || {
                let context = procedures.context();
                context.absent.iter().filter(waits).count() == busy.get() || context.stop != Stop::No
            };
            self.cx.until_within(START_PATIENCE, over).await;
            let found = |l: &Loss| matches!(l.cause, RecordCause::PoolsFound { .. });
            if self.context().losses.iter().any(found) {
                // The list names them again. One that cannot be written is found to be lost at the next start, too.
                let _ = self.write_pools().await;
            }
            let procedures = self.clone();
            self.cx.spawn(async move { procedures.watch_absent().await });
        }
        self.take_addresses().await;
        self.publish().await;
        self.announce_addresses();
        {
            let now = self.cx.now();
            let mut context = self.context_mut();
            context.is_ready();
            let stays_away = |p: &AbsentPool| {
                let (pool, why) = (p.name().to_string(), Box::new(p.cause().clone()));
                PoolNotice::PoolStaysAway { pool, why }.into()
            };
            let away: Vec<Notice> = context.absent.iter().map(stays_away).collect();
            for n in notices.iter().chain(&away) {
                context.noticed(now, "head", n.clone());
            }
            if context.stop == Stop::No {
                context.happened(now, "head", SystemEvent::HeadServes);
            }
            context.notices.extend(notices.iter().cloned());
            notices.extend(away);
        }
        self.leads_all();
        self.cx.to_manager(ManagerMail::Ready { notices });
        loop {
            let procedures = self.clone();
            self.cx.until(move || procedures.context().has_next_order()).await;
            let (id, order) = self.context_mut().next_order().expect("there is one");
            self.context_mut().orders(true);
            let stop = matches!(order, crate::order::Order::Shutdown);
            let answer = self.carry_out(order).await;
            let overdue = self.context().overdue.is_some();
            self.context_mut().orders(overdue);
            // A head that is out has done nothing that counts: the other one may lead without it.
            let is_over = |s: &SystemContext| s.part() == cluster::Part::Over && !planted(Bug::OutAnswers);
            if let Some(id) = id
                && !self.context().system.as_ref().is_some_and(is_over)
            {
                self.cx.to_manager(ManagerMail::Answered { id, answer });
            }
            if stop {
                self.cx.to_manager(ManagerMail::Stopped);
            }
        }
    }

    /// Opens a pool's drives. After kill -9 the kernel may hold them until the last operation of the
    /// daemon before has ended: going on without them would put legs out that are well.
    async fn gather_patiently(&self, row: &PoolRow) -> (Vec<Probe>, Vec<ImportFault>) {
        let begin = self.cx.now();
        let end = begin + CLAIM_PATIENCE;
        let drives: Vec<String> =
            row.drives.iter().filter(|d| DriveKind::of(d).survives_restart()).cloned().collect();
        loop {
            let (probes, failures) = self.gather(&drives, Some(row.uuid)).await;
            if !failures.iter().any(|f| f.held) || self.cx.now() >= end {
                return (probes, faults(failures));
            }
            for probe in &probes {
                self.let_go_wholly(probe.id, RELEASE_PATIENCE).await;
            }
            if self.cx.now() >= begin + HELD_PATIENCE {
                let also = held_faults(failures.into_iter().filter(|f| f.held).collect());
                self.is_held(row.uuid, Some(PoolCause::PoolDrivesInUse { also }));
            }
            self.cx.changed();
            self.cx.sleep(CLAIM_RETRY).await;
        }
    }

    /// Opens those of these drives that are a pool's. Pools are imported side by side, and who looks at a drive holds it for that
    /// long: what is held is tried again.
    async fn gather_candidates(&self, mut candidates: Vec<String>, pool: Uuid, end: Instant) -> Vec<Probe> {
        let mut found = vec![];
        loop {
            let (more, failures) = self.gather(&candidates, Some(pool)).await;
            found.extend(more);
            candidates.retain(|c| failures.iter().any(|f| f.held && f.is(c)));
            if candidates.is_empty() || self.cx.now() >= end {
                return found;
            }
            self.cx.sleep(CLAIM_RETRY).await;
        }
    }

    /// What keeps a pool that is imported at the start, while others are served; None: nothing does any more.
    fn is_held(&self, pool: Uuid, why: Option<PoolCause>) {
        if let Some(p) = self.context_mut().absent.iter_mut().find(|p| p.uuid() == pool) {
            p.is_held(why);
        }
    }
    async fn import_at_start(&self, row: PoolRow) {
        if !row.drives.is_empty() && row.drives.iter().all(|d| DriveKind::of(d).is_volatile()) {
            if let Some(p) = self.context_mut().absent.iter_mut().find(|p| p.uuid() == row.uuid) {
                let why = Box::new(ended_with_the_daemon(&row.name, &row.drives).into());
                p.is_told(PoolCause::PoolNotImportable { why });
            }
            return;
        }
        let end = self.cx.now() + CLAIM_PATIENCE;
        let (mut probes, mut failures) = self.gather_patiently(&row).await;
        self.is_held(row.uuid, None);
        let all_there = !row.drives.is_empty() && probes.len() == row.drives.len();
        let added = self.added_to(&row);
        if !added.is_empty() {
            // What is wrong with them is told when they are freed.
            let (more, _) = self.gather_patiently(&PoolRow { drives: added, ..row.clone() }).await;
            self.add_others(&mut probes, more);
        }
        if !all_there {
            // A drive may have another path today.
            let seen: BTreeSet<String> =
                probes.iter().map(|p| p.info.path.clone()).chain(row.drives.iter().cloned()).collect();
            let candidates =
                self.candidates().await.into_iter().filter(|c| !seen.contains(c)).collect::<Vec<_>>();
            let more = self.gather_candidates(candidates, row.uuid, end).await;
            if !more.is_empty() {
                failures.clear();
            }
            self.add_others(&mut probes, more);
        }
        if self.context().stop != Stop::No {
            // Who goes takes nothing: a leg that was not found in time would be put out for nothing.
            probes.iter().for_each(|p| self.let_go(p.id));
            return;
        }
        if self.ends_release(&row, &probes).await {
            return;
        }
        let result = self.take(row.uuid, probes, &Claim::default()).await;
        if result.is_ok() {
            // Of a release that had not come far.
            self.forget_released(row.uuid).await;
        }
        let now = self.cx.now();
        let late = {
            let mut context = self.context_mut();
            match result {
                Ok(notices) => {
                    context.absent.retain(|p| p.uuid() != row.uuid);
                    let what = format!("pool {}", row.name);
                    notices.into_iter().for_each(|n| context.noticed(now, what.clone(), n));
                    // What lies where a missing leg was explains why it is missing.
                    let met = failures.into_iter().map(|what| PoolEvent::ImportMet { what });
                    met.for_each(|event| context.happened(now, what.clone(), event));
                }
                Err(r) => {
                    // Nothing was found: it is not a matter of where to look, but of drives that are away.
                    let is_away = r.kind() == ErrorKind::NotFound;
                    // One that is there without its label cannot be attached.
                    let is_there =
                        |d: &String| failures.iter().any(|f| f.without_label() == Some(d.as_str()));
                    let away: Vec<String> =
                        row.drives.iter().filter(|d| is_away && !is_there(d)).cloned().collect();
                    let is_shaped =
                        |d: &&String| context.shapes_at_start.get(*d).is_some_and(|s| s.hang || s.gone);
                    let cause = PoolCause::PoolNotImported {
                        pool: row.name.clone(),
                        why: r.why,
                        also: failures,
                        shaped: away.iter().filter(is_shaped).cloned().collect(),
                        away,
                    };
                    if let Some(p) = context.absent.iter_mut().find(|p| p.uuid() == row.uuid) {
                        p.is_told(cause);
                        p.is_looked_for(now + LOOK_FIRST);
                    }
                }
            }
            context.ready
        };
        if late {
            self.publish().await;
        }
    }
}
