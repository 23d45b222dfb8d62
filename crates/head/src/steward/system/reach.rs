//! Both heads tell each other which drives of pools they reach. The one that leads says which the follower lacks: that one takes over all
//! the same, and leaves them out.
//!
//! A follower reads from its drives now and then: but for those that vote nobody else would notice that a path is gone.

use super::live::name_of;
use super::upper::Upper;
use crate::mail::ShardMail;
use crate::steward::context::open::OpenDrive;
use crate::steward::context::pool::PoolContext;
use crate::steward::context::system::{ReachNews, SystemContext};
use crate::steward::health::watch::degraded;
use crate::steward::join::{self, Boxed};
use crate::steward::procedures::Procedures;
use crate::steward::runtime::Patience;
use array::format::{LABEL_AT, RECORD_BYTES};
use base::{DriveError, DriveId, Duration, Uuid};
use cluster::Part;
use finding::SystemEvent;
use std::collections::{BTreeMap, BTreeSet};

/// How often it is looked whether anything has changed.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// So many of these looks read from drives once.
const READ_EVERY: u32 = 2;
const PATIENCE: Patience = Patience { op: Duration::from_secs(1), look: Duration::from_secs(1) };
const READ_BYTES: usize = 4096;
/// When a drive that does not answer is asked again: the kernel keeps each read, and the memory for it.
const SILENT_AGAIN: Duration = Duration::from_secs(10);
/// So many of these looks look at labels once.
const LABELS_EVERY: u32 = 10;

impl Procedures {
    /// Watches drives, and tells the other head, until this one is out.
    pub(super) async fn watch_reach(&self) {
        let mut looks = 0;
        loop {
            self.cx.sleep(LOOK_INTERVAL).await;
            let part = self.context().system.as_ref().map_or(Part::Over, SystemContext::part);
            match part {
                Part::Over => return,
                Part::Outside => continue,
                Part::Follower if looks % LABELS_EVERY == 1 => self.watch_standby_labels().await,
                Part::Follower if looks % READ_EVERY == 0 => self.read_standby().await,
                Part::Follower | Part::Leader => {}
            }
            looks += 1;
            self.tell_reach();
            self.ask_of_opened();
            self.note_reach();
        }
    }
    /// Lets go of drives that do not answer: they are opened anew once that can be done.
    async fn read_standby(&self) {
        let drives: Vec<(String, DriveId)> = {
            let context = self.context();
            let Some(system) = context.system.as_ref() else { return };
            system.standby().iter().map(|(spec, s)| (spec.clone(), s.id)).collect()
        };
        let procedures = self.with(self.cx.with(PATIENCE));
        let procedures = &procedures;
        let one = |id: DriveId| -> Boxed<'_, bool> {
            // Who refuses this head has heard it.
            Box::pin(async move {
                matches!(procedures.cx.read(id, 0, READ_BYTES).await, Ok(_) | Err(DriveError::Fenced))
            })
        };
        let answered = join::all(drives.iter().map(|(_, id)| one(*id)).collect()).await;
        for ((spec, id), answered) in drives.into_iter().zip(answered) {
            let lost = self.in_system(|s| {
                // A takeover may have it by now.
                let same = s.part() == Part::Follower && s.standby().get(&spec).is_some_and(|d| d.id == id);
                let lost = same && s.reach().is_lost(id, answered);
                if lost {
                    s.take_standby(&spec);
                }
                lost
            });
            if lost == Some(true) {
                // The leader may have nothing new to say of its arrays.
                for shard in 0..self.context().own_shards {
                    self.cx.to_shard(shard, ShardMail::PathLost { drive: id });
                }
                self.let_go(id);
            }
        }
        self.in_system(|s| {
            let open: BTreeSet<DriveId> = s.standby().values().map(|d| d.id).collect();
            s.reach().only(&open);
        });
    }
    /// Looks whether somebody overwrote what this head writes to, too. The head that leads mends it; this one says what it sees.
    async fn watch_standby_labels(&self) {
        let drives: Vec<OpenDrive> = {
            let context = self.context();
            context.system.iter().flat_map(|s| s.standby().values().cloned()).collect()
        };
        let procedures = self.with(self.cx.with(PATIENCE));
        let one = |open| -> Boxed<'_, _> { Box::pin(procedures.check_known_label(open)) };
        let found = join::all(drives.iter().map(one).collect()).await;
        let now = self.cx.now();
        let mut context = self.context_mut();
        for (open, found) in drives.iter().zip(found) {
            let standby = || context.system.iter().flat_map(|s| s.standby().values());
            if let Ok(label) = found
                && standby().any(|s| s.id == open.id)
            {
                let path = &open.info.path;
                let ill = label.cause(path, false, &[]).map(degraded);
                context.set_ill(now, open.id, path, ill);
            }
        }
    }
    /// The other head says what it reaches. A drive may have lost its power alone, and what lay in its cache: who opens it anew does not see
    /// that, and who has had it open all the time does. So what the follower opens counts once the head that leads has read there, too.
    pub(super) fn other_reaches(&self, drives: &BTreeSet<Uuid>) {
        let new = self.in_system(|s| s.reach().other_says(drives)).unwrap_or_default();
        for (drive, said) in new {
            let procedures = self.clone();
            self.cx.spawn(async move { procedures.look_with_other(drive, said).await });
        }
    }
    async fn look_with_other(&self, drive: Uuid, said: u64) {
        let (cx, mut asked) = (self.cx.with(PATIENCE), false);
        loop {
            let open = {
                let context = self.context();
                let system = context.system.as_ref().filter(|s| s.reached().is_unseen(drive, said));
                let Some(system) = system else { return };
                let leads = system.part() == Part::Leader;
                let mut used = context.pools.iter().filter(|_| leads).flat_map(PoolContext::reachable);
                used.find(|(.., d)| d.label.drive == drive).map(|(.., d)| d.id)
            };
            let read = match open {
                Some(id) => cx.read(id, LABEL_AT, RECORD_BYTES).await.map(drop),
                None => Ok(()),
            };
            if read.is_ok() {
                let counts = self.in_system(|s| s.reach().has_seen(drive, said)) == Some(true);
                if counts && self.context().far_shards > 0 {
                    self.publish_now();
                }
                return;
            }
            if !core::mem::replace(&mut asked, true) {
                self.look_soon();
            }
            let silent = read == Err(DriveError::TimedOut);
            self.cx.sleep(if silent { SILENT_AGAIN } else { LOOK_INTERVAL }).await;
        }
    }
    /// Whether what the follower has opened counts, once this head has looked there; None: that follower is out.
    pub(in crate::steward) async fn counts_there(&self, drive: Uuid) -> Option<bool> {
        let since = self.context().system.as_ref()?.other_since();
        let procedures = self.clone();
        let looked = move || {
            let context = procedures.context();
            let waits = |s: &SystemContext| s.other_since() == since && s.reached().waits_for_look(drive);
            !context.system.as_ref().is_some_and(waits)
        };
        self.cx.until(looked).await;
        let context = self.context();
        let system = context.system.as_ref().filter(|s| s.other_since() == since)?;
        Some(system.reached().of_other().is_some_and(|there| there.contains(&drive)))
    }
    /// A follower asks of what it has opened whether it counts: it may take over before the head that leads has looked.
    fn ask_of_opened(&self) {
        let new = {
            let context = self.context();
            let Some(system) = context.system.as_ref().filter(|s| s.part() == Part::Follower) else { return };
            system.reached().to_ask(system.standby().values().map(|d| (d.id, d.label.drive)))
        };
        for (id, drive) in new {
            self.in_system(|s| {
                let number = s.far_mut().asks();
                if s.tell().send(Upper::Look { number, drive }.encode()).is_ok() {
                    s.reach().asks(number, id);
                }
            });
        }
    }
    /// Drives of pools that this head has open.
    fn reached_here(&self) -> BTreeSet<Uuid> {
        let context = self.context();
        match context.system.as_ref() {
            Some(s) if s.part() != Part::Leader => s.standby().values().map(|d| d.label.drive).collect(),
            Some(_) | None => self.drives_shared().into_keys().collect(),
        }
    }
    /// Of the head that leads: drives of the system's pools that it has open, and by what path.
    fn drives_shared(&self) -> BTreeMap<Uuid, String> {
        let context = self.context();
        let shared = context.pools.iter().filter(|p| p.config().shared.is_some());
        let of_pools: BTreeSet<Uuid> = shared.map(|p| p.config().uuid).collect();
        let open = context.open_drives().filter(|d| of_pools.contains(&d.label.pool));
        open.map(|d| (d.label.drive, d.info.path.clone())).collect()
    }
    pub(super) fn tell_reach(&self) {
        // What a follower has not opened yet is not lost.
        let begun = |s: &SystemContext| s.part() == Part::Leader || s.tried().may_run();
        let other_is_in = |s: &SystemContext| s.part() == Part::Follower || s.member().follower_is_in();
        if !self.context().system.as_ref().is_some_and(|s| begun(s) && other_is_in(s)) {
            return;
        }
        let drives = self.reached_here();
        let news = self.context_quietly().system_mut().is_some_and(|s| s.reach().is_news(&drives));
        if news {
            let _ = self.in_system(|s| s.tell().send(Upper::Reach(drives).encode()));
        }
    }
    /// The head that leads says what the follower does not reach any more, or does again.
    fn note_reach(&self) {
        let here = self.drives_shared();
        let now = self.cx.now();
        let news = {
            let mut context = self.context_quietly();
            let system = context.system_mut().filter(|s| s.member().follower_is_in());
            system.map(|s| {
                let other = name_of(s.member().known(), s.member().me().other());
                (other, s.reach().compare(now, &here))
            })
        };
        let Some(((head, name), news)) = news else { return };
        if self.context().system.as_ref().is_some_and(|s| !s.reached().lacks().is_empty()) {
            // Somebody may wait until it is clear that the follower has no path to a drive.
            self.cx.changed();
        }
        for news in news {
            let (head, name) = (head.clone(), name.clone());
            let what = match news {
                ReachNews::Lost(drive) => SystemEvent::FollowerLacksDrive { head, name, drive },
                ReachNews::Back(drive) => SystemEvent::FollowerReachesDrive { head, name, drive },
            };
            self.context_mut().happened(now, "system", what);
            self.cx.changed();
        }
    }
    /// Drives of pools that there are, how many of them each head reaches, and which the follower does not.
    pub(super) fn reach_of_heads(&self) -> (u16, [Option<u16>; 2], Vec<String>) {
        let context = self.context();
        let Some(system) = context.system.as_ref() else { return (0, [None, None], vec![]) };
        let (member, reach) = (system.member(), system.reached());
        let (me, other) = (member.me(), member.me().other());
        let own = self.reached_here();
        let mut reached = [None, None];
        reached[me.index()] = Some(own.len() as u16);
        match system.part() {
            Part::Leader => {
                let shared = || context.pools.iter().filter(|p| p.config().shared.is_some());
                let legs = shared().flat_map(|p| &p.arrays).flat_map(|a| &a.legs).map(|l| l.uuid);
                let all: BTreeSet<Uuid> =
                    legs.chain(shared().flat_map(|p| &p.spares).map(|s| s.uuid)).collect();
                let there = reach.of_other().filter(|_| member.follower_is_in());
                reached[other.index()] = there.map(|there| there.intersection(&all).count() as u16);
                let lacks = if member.follower_is_in() { reach.lacks() } else { vec![] };
                (all.len() as u16, reached, lacks)
            }
            part => {
                let there = reach.of_other().filter(|_| part == Part::Follower && member.is_linked());
                reached[other.index()] = there.map(|there| there.len() as u16);
                let lacks =
                    |spec: &&String| system.tried().may_run() && !system.standby().contains_key(*spec);
                let lacks = reach.wanted().iter().filter(lacks).cloned().collect();
                (reach.wanted().len() as u16, reached, lacks)
            }
        }
    }
}
