//! A drive that one head does not reach any more and the other does: no leg is lost.
//!
//! What the head without the path has begun there may still land, and commands of hosts are half done. So that head is put out, and starts
//! over without the drive: what it had under way ends as for a head whose process ends, and its lanes go to the head that reaches the drive.
//! If it leads, the other one takes over.

use crate::layout::PoolId;
use crate::steward::context::array::{Outlook, PendingChange};
use crate::steward::context::open::OpenDrive;
use crate::steward::procedures::Procedures;
use crate::steward::runtime::Patience;
use crate::steward::system::Upper;
use array::format::{LABEL_AT, RECORD_BYTES};
use base::{Bug, Duration, Uuid, planted};
use cluster::Part;
use finding::LegEvent;
use std::collections::BTreeMap;

/// How long a drive may take to show its label. Hosts wait, and a drive that hangs is lost.
const LOOK: Patience = Patience { op: Duration::from_millis(150), look: Duration::from_millis(150) };
/// How long the other head may take to say what it saw.
const ASK: Duration = Duration::from_millis(300);
/// How long the other head may take to take over.
const HAND_OVER: Duration = Duration::from_secs(1);
/// A path that comes and goes ends heads no more often than so: then a leg is lost, and copied to when the drive is back.
const NOT_AGAIN: Duration = Duration::from_secs(60);

/// What became of a leg that somebody lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Path {
    /// It is lost for both heads, or the drive answers and fails.
    Lost,
    /// One head reaches it, and goes on without the other.
    Moves,
}

impl Procedures {
    /// Of legs that are to be put out: those that no head has a path to, or that fail by every path.
    pub(super) async fn lost_for_all(&self, pool: PoolId, pending: Vec<PendingChange>) -> Vec<PendingChange> {
        let (mut lost, mut known) = (vec![], BTreeMap::<(usize, usize), Path>::new());
        for change in pending {
            let PendingChange::Lost { array, leg, there, outlook, .. } = &change else {
                unreachable!("chosen by kind")
            };
            if there.is_some_and(|epoch| !self.is_in_since(epoch)) {
                // That head is out, and what it had with it.
                continue;
            }
            let at = (*array, *leg);
            let path = match known.get(&at) {
                Some(path) => *path,
                None if matches!(outlook, Outlook::ByHand | Outlook::Leaves) => Path::Lost,
                None => self.path_of(pool, at, there.is_some()).await,
            };
            known.insert(at, path);
            if path == Path::Lost {
                lost.push(change);
            }
        }
        lost
    }
    /// The last leg of a mirror is gone here: it is never put out. If the other head reaches it, that one takes over.
    pub(super) async fn leave_last_leg(&self, pool: PoolId, array: usize, leg: usize) {
        let _ = self.path_of(pool, (array, leg), false).await;
    }
    async fn path_of(&self, pool: PoolId, (array, leg): (usize, usize), there: bool) -> Path {
        let now = self.cx.now();
        let open = {
            let context = self.context();
            let p = context.pool(pool).filter(|p| !p.is_out(array, leg));
            let open = p.and_then(|p| p.arrays.get(array)?.legs.get(leg)?.open.clone());
            let settled = context.system.as_ref().is_some_and(|s| !s.has_lost_path(now - NOT_AGAIN));
            open.filter(|_| context.far_shards > 0 && settled)
        };
        let Some(open) = open.filter(|_| !planted(Bug::PathIsLeg)) else { return Path::Lost };
        // What one head has lost, the other one alone must reach.
        if self.reaches(&open).await != there || self.is_reached_there(open.label.drive).await == there {
            return Path::Lost;
        }
        if there { self.go_on_without_other(&open) } else { self.hand_over(&open).await }
    }
    async fn reaches(&self, open: &OpenDrive) -> bool {
        let cx = self.cx.with(LOOK);
        cx.read(open.id, LABEL_AT, RECORD_BYTES).await.is_ok()
    }
    /// Asks the other head whether it reaches a drive. Silence says that it does not.
    async fn is_reached_there(&self, drive: Uuid) -> bool {
        let number = self.in_system(|s| s.far_mut().asks()).unwrap_or_default();
        let _ = self.in_system(|s| s.tell().send(Upper::Look { number, drive }.encode()));
        let procedures = self.clone();
        let said = move || {
            let context = procedures.context();
            context.far_shards == 0
                || context.system.as_ref().is_none_or(|s| s.far().looked(number).is_some())
        };
        self.cx.until_within(ASK, said).await;
        let context = self.context();
        context.system.as_ref().and_then(|s| s.far().looked(number)).unwrap_or(false)
    }
    /// The leader asks whether this head reaches a drive; or the follower, whether one that it has opened counts.
    pub(in crate::steward) fn look_for_other(&self, number: u64, drive: Uuid) {
        let procedures = self.clone();
        self.cx.spawn(async move {
            let leads = procedures.context().system.as_ref().is_some_and(|s| s.part() == Part::Leader);
            let reached = if leads {
                procedures.counts_there(drive).await
            } else {
                Some(procedures.reaches_in_standby(drive).await)
            };
            let Some(reached) = reached else { return };
            let _ = procedures.in_system(|s| s.tell().send(Upper::Looked { number, reached }.encode()));
        });
    }
    async fn reaches_in_standby(&self, drive: Uuid) -> bool {
        let id = {
            let context = self.context();
            let mut standby = context.system.iter().flat_map(|s| s.standby().values());
            standby.find(|d| d.label.drive == drive).map(|d| d.id)
        };
        match id {
            Some(id) => self.cx.with(LOOK).read(id, LABEL_AT, RECORD_BYTES).await.is_ok(),
            None => false,
        }
    }
    /// The follower has lost its path.
    fn go_on_without_other(&self, open: &OpenDrive) -> Path {
        self.path_is_lost(open, LegEvent::PathLostThere);
        self.in_system(|s| s.tell().on_path_lost());
        Path::Moves
    }
    /// This head, which leads, has lost its path. The other one takes over, if it reaches all else that this one does.
    async fn hand_over(&self, open: &OpenDrive) -> Path {
        let has_all = {
            let context = self.context();
            let there = context.system.as_ref().and_then(|s| s.reached().of_other());
            let mut used = context.pools.iter().flat_map(|p| p.reachable()).map(|(_, _, o)| o.label.drive);
            there.is_some_and(|there| used.all(|drive| there.contains(&drive)))
        };
        if !has_all {
            return Path::Lost;
        }
        self.path_is_lost(open, LegEvent::PathLostHere);
        let _ = self.in_system(|s| s.tell().send(Upper::Lead.encode()));
        let procedures = self.clone();
        let is_over = move || procedures.context().system.as_ref().is_none_or(|s| s.part() == Part::Over);
        if self.cx.until_within(HAND_OVER, is_over).await { Path::Moves } else { Path::Lost }
    }
    /// The head that leads has lost its path to a drive that this one reaches.
    pub(in crate::steward) fn lead_for_path(&self) {
        let now = self.cx.now();
        self.in_system(|s| {
            s.loses_path(now);
            s.tell().on_path_lost();
        });
    }
    fn path_is_lost(&self, open: &OpenDrive, event: LegEvent) {
        let now = self.cx.now();
        self.in_system(|s| s.loses_path(now));
        self.context_mut().happened(now, format!("drive {}", open.info.path), event);
    }
}
