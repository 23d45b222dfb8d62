//! The Steward's life: the start, at which its pools are imported, then orders one by one.

use crate::mail::ManagerMail;
use crate::order::{ErrorKind, Weight};
use crate::peer::SystemSettings;
use crate::steward::context::absent::AbsentPool;
use crate::steward::context::desk::Stop;
use crate::steward::context::probe::Probe;
use crate::steward::context::system::SystemDesk;
use crate::steward::office::Office;
use crate::steward::patience::{CLAIM_PATIENCE, CLAIM_RETRY};
use crate::steward::pools::absent::LOOK_FIRST;
use crate::steward::pools::import::{Claim, ended_with_the_daemon, held_words, is_about, words};
use crate::steward::record::texts::POOLS;
use crate::steward::state::PoolRow;
use base::DriveKind;
use base::{Bug, Duration, Instant, Uuid, planted};
use finding::{Notice, SystemEvent};
use std::collections::BTreeSet;

/// How long the start waits for pools before it serves the others.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long a drive may take to be let go of.
const RELEASE_PATIENCE: Duration = Duration::from_secs(1);
/// After that long the drives are another's, and not the rest of a life of this head: whoever does not need them
/// is served.
const HELD_PATIENCE: Duration = Duration::from_secs(2);

impl Office {
    /// The Steward's life: start, then orders one by one.
    pub(crate) async fn live(self, hold: Option<String>, system: Option<SystemSettings>) {
        let mut notices = self.read_log().await;
        let office = self.clone();
        self.cx.spawn(async move { office.keep_log().await });
        if let Some(settings) = system {
            self.enter_system(settings).await;
            if self.stand_by().await.is_none() {
                return self.cx.to_manager(ManagerMail::Stopped);
            }
        }
        notices.extend(self.read_state().await);
        let office = self.clone();
        self.cx.spawn(async move { office.count_turned_away().await });
        let office = self.clone();
        self.cx.spawn(async move { office.watch_drives().await });
        let office = self.clone();
        self.cx.spawn(async move { office.watch_directory().await });
        self.read_released(&mut notices).await;
        self.read_creating(&mut notices).await;
        let rows = self.read_pools(&mut notices).await;
        for row in &rows {
            // Listed with all its drives, it was whole.
            if self.added_to(row).is_empty() && !self.has_leavers(row.uuid) {
                self.leave_creating(row.uuid, vec![]).await;
            }
            if let Err(notice) = self.miss(row).await {
                notices.push(notice);
            }
            if let Some(why) = &hold
                && let Some(absent) = self.desk_mut().absent.last_mut()
            {
                absent.is_told(why.clone(), Some(format!("millrace pool import {}", row.name)));
            }
        }
        if let Some(why) = hold {
            self.desk_mut().hold(true);
            notices.push(why.into());
        } else {
            let is_made = |r: &PoolRow| rows.iter().any(|row| row.uuid == r.uuid);
            let creating: Vec<PoolRow> =
                self.desk().creating().iter().filter(|r| !is_made(r)).cloned().collect();
            let busy = std::rc::Rc::new(std::cell::Cell::new(rows.len() + creating.len()));
            // Hosts of a pool whose drives are held see its volumes, not ready, if they are known.
            let waits = |p: &&AbsentPool| p.held && p.kept.is_some();
            for row in rows {
                let (office, left) = (self.clone(), busy.clone());
                self.cx.spawn(async move {
                    office.import_at_start(row).await;
                    left.set(left.get() - 1);
                    office.cx.changed();
                });
            }
            for row in creating {
                let (office, left) = (self.clone(), busy.clone());
                self.cx.spawn(async move {
                    if let Some(row) = office.end_creation(row).await {
                        // Nothing is kept of it yet.
                        let _ = office.miss(&row).await;
                        let uuid = row.uuid;
                        office.import_at_start(row).await;
                        if office.check_read(POOLS).and(office.write_pools().await).is_ok() {
                            office.leave_creating(uuid, vec![]).await;
                        }
                    }
                    left.set(left.get() - 1);
                    office.cx.changed();
                });
            }
            let office = self.clone();
            let over = move || {
                let desk = office.desk();
                desk.absent.iter().filter(waits).count() == busy.get() || desk.stop != Stop::No
            };
            self.cx.until_within(START_PATIENCE, over).await;
            if !self.desk().losses.is_empty() {
                // The list names them again. One that cannot be written is found to be lost at the next start, too.
                let _ = self.write_pools().await;
            }
            let office = self.clone();
            self.cx.spawn(async move { office.watch_absent().await });
        }
        self.take_addresses().await;
        self.publish().await;
        self.announce_addresses();
        {
            let now = self.cx.now();
            let mut desk = self.desk_mut();
            desk.is_ready();
            desk.notices.extend(notices.iter().cloned());
            // These are told as reasons, as long as they last.
            let absent = |p: &AbsentPool| format!("pool {} is not imported: {}", p.name(), p.reason);
            notices.extend(desk.absent.iter().map(|p| Notice::from(absent(p))));
            for notice in &notices {
                let noticed = SystemEvent::HeadNoticed { notice: notice.clone().into() };
                desk.happened(now, "head", noticed);
            }
            if desk.stop == Stop::No {
                desk.happened(now, "head", SystemEvent::HeadServes);
            }
        }
        self.leads_all();
        self.cx.to_manager(ManagerMail::Ready { notices });
        loop {
            let office = self.clone();
            self.cx.until(move || !office.desk().orders.is_empty()).await;
            let (id, order) = self.desk_mut().orders.pop_front().expect("there is one");
            self.desk_mut().orders(true);
            let stop = matches!(order, crate::order::Order::Shutdown);
            let answer = self.carry_out(order).await;
            self.desk_mut().forget_stand_ins();
            self.desk_mut().orders(false);
            // A head that is out has done nothing that counts: the other one may lead without it.
            let is_over = |s: &SystemDesk| s.part() == cluster::Part::Over && !planted(Bug::OutAnswers);
            if let Some(id) = id
                && !self.desk().system.as_ref().is_some_and(is_over)
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
    async fn gather_patiently(&self, row: &PoolRow) -> (Vec<Probe>, Vec<String>) {
        let begin = self.cx.now();
        let end = begin + CLAIM_PATIENCE;
        let drives: Vec<String> =
            row.drives.iter().filter(|d| DriveKind::of(d).survives_restart()).cloned().collect();
        loop {
            let (probes, failures) = self.gather(&drives, Some(row.uuid)).await;
            if !failures.iter().any(|f| f.held) || self.cx.now() >= end {
                return (probes, words(failures));
            }
            for probe in &probes {
                self.let_go_wholly(probe.id, RELEASE_PATIENCE).await;
            }
            if self.cx.now() >= begin + HELD_PATIENCE
                && let Some(p) = self.desk_mut().absent.iter_mut().find(|p| p.uuid() == row.uuid)
            {
                p.is_held(Some(held_words(failures.into_iter().filter(|f| f.held).collect()).join("; ")));
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
            candidates.retain(|c| failures.iter().any(|f| f.held && is_about(f, c)));
            if candidates.is_empty() || self.cx.now() >= end {
                return found;
            }
            self.cx.sleep(CLAIM_RETRY).await;
        }
    }

    async fn import_at_start(&self, row: PoolRow) {
        if !row.drives.is_empty() && row.drives.iter().all(|d| DriveKind::of(d).is_volatile()) {
            if let Some(p) = self.desk_mut().absent.iter_mut().find(|p| p.uuid() == row.uuid) {
                let r = ended_with_the_daemon(&row.name, &row.drives);
                p.is_told(r.said(), r.next());
            }
            return;
        }
        let end = self.cx.now() + CLAIM_PATIENCE;
        let (mut probes, mut failures) = self.gather_patiently(&row).await;
        if let Some(p) = self.desk_mut().absent.iter_mut().find(|p| p.uuid() == row.uuid) {
            p.is_held(None);
        }
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
        if self.desk().stop != Stop::No {
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
            let mut desk = self.desk_mut();
            match result {
                Ok(notices) => {
                    desk.absent.retain(|p| p.uuid() != row.uuid);
                    // What lies where a missing leg was explains why it is missing.
                    for n in notices.into_iter().chain(failures) {
                        desk.event(now, Weight::Warning, format!("pool {}", row.name), n);
                    }
                }
                Err(r) => {
                    let reason = if failures.is_empty() {
                        r.said()
                    } else {
                        format!("{} ({})", r.said(), failures.join("; "))
                    };
                    // Nothing was found: it is not a matter of where to look, but of drives that are away.
                    let away = r.kind() == ErrorKind::NotFound && !row.drives.is_empty();
                    let shaped = |d: &&String| desk.shapes_at_start.get(*d).is_some_and(|s| s.hang || s.gone);
                    let clear: Vec<String> = row
                        .drives
                        .iter()
                        .filter(shaped)
                        .map(|d| format!("millrace drive shape {d} --clear"))
                        .collect();
                    let next = match away {
                        // What was shaped away is attached already.
                        true if !clear.is_empty() => {
                            Some(format!("{}, then millrace pool import {}", clear.join(", then "), row.name))
                        }
                        true => Some(format!(
                            "attach {}: then it is imported by itself within a minute, or by millrace pool import {}",
                            row.drives.join(" and "),
                            row.name
                        )),
                        false => r.next(),
                    };
                    if let Some(p) = desk.absent.iter_mut().find(|p| p.uuid() == row.uuid) {
                        p.is_told(reason, next);
                        p.is_looked_for(now + LOOK_FIRST);
                    }
                }
            }
            desk.ready
        };
        if late {
            self.publish().await;
        }
    }
}
