//! Orders about the system.

use crate::layout::PoolId;
use crate::order::{Answered, Refusal, Reply};
use crate::peer::{Heartbeats, SystemSettings, SystemView, link_fault};
use crate::steward::context::pool::PoolContext;
use crate::steward::procedures::Procedures;
use crate::steward::state::Edit;
use base::{Bug, Duration, FenceKind, Instant, Uuid, planted};
use cluster::{HeadState, Part, Voter};
use finding::{DriveFault, PoolRefusal, SystemNotice, SystemRefusal};

/// How long a decision may take.
const DECIDE_PATIENCE: Duration = Duration::from_secs(5);

/// The answer to what only a leader can do.
pub(crate) fn not_leading() -> Refusal {
    SystemRefusal::LeaderUnreached.into()
}

fn alone() -> Refusal {
    SystemRefusal::HeadAlone.into()
}

impl Procedures {
    /// What is known of the system.
    pub(crate) fn system_view(&self) -> Result<SystemView, Refusal> {
        let context = self.context();
        let system = context.system.as_ref().ok_or_else(alone)?;
        let member = system.member();
        let voters = member.known().voters.iter().filter(|v| matches!(v, Voter::Drive(_))).count();
        let now = self.cx.now();
        let ago = |at: Instant| now.since(at).as_millis() as u64;
        let networks = member.networks().into_iter().map(|(up, at)| (up, at.map(ago))).collect();
        let (drives, drives_reached, unreached) = self.reach_of_heads();
        Ok(SystemView {
            me: member.me(),
            part: member.part(),
            record: member.known().clone(),
            linked: member.is_linked(),
            refused: system.refused().map(link_fault),
            heartbeats: Heartbeats { networks, drives: member.heartbeat_on_drives().map(ago) },
            reaches: (member.reaches(), voters as u16),
            drives,
            drives_reached,
            unreached,
            blind: system.is_blind(now),
            old_directory: member.has_old_directory(),
            out: system.out().cloned(),
            other_lacks: system.other_lacks(),
            unsent: system.unsent().map(|file| (file.into(), context.state_path(file))),
            lets_in_after: member.lets_in_at().filter(|at| *at > now).map(|at| at.since(now)),
            shut_off: self.shut_off(),
            late: system.late(),
            fences: match member.part() {
                Part::Leader => system.tried().all(),
                Part::Follower => system.tried().told().to_vec(),
                Part::Outside | Part::Over => vec![],
            },
            addresses: self.addresses_of_heads(),
        })
    }
    /// Order: this head becomes head a of a system. What is cut off half way is ended by a start, as head a of that system, or by the same
    /// order again.
    pub(crate) async fn system_create(&self, settings: SystemSettings) -> Answered {
        let system = settings.system;
        if self.system().is_some_and(|is| is != system) {
            return Err(SystemRefusal::HeadInSystem.into());
        }
        if !self.is_in_system() {
            self.clear_for_system().await?;
            self.enter_system(settings, true).await;
        }
        let procedures = self.clone();
        let leads = move || procedures.context().system.as_ref().is_some_and(|s| s.part() == Part::Leader);
        if !self.cx.until_within(DECIDE_PATIENCE, leads).await {
            return Err(SystemRefusal::FirstDecisionFailed.into());
        }
        let mut notices = self.share_drives().await;
        // From now on a head that knows nothing of systems does not take these pools.
        let alone = |p: &&PoolContext| p.config().shared != Some(system);
        let pools: Vec<(PoolId, String)> =
            self.context().pools.iter().filter(alone).map(|p| (p.id, p.config().name.clone())).collect();
        for (pool, name) in pools {
            let marked = self.configure(pool, vec![Edit::Shared { system }]).await;
            if let Err(Refusal { why, .. }) = marked.and(self.configure_again(pool).await) {
                notices.push(SystemNotice::PoolNotMarked { pool: name, why });
            }
        }
        self.leads_all();
        Ok(Reply::Created { uuid: system, notices: notices.into_iter().map(Into::into).collect() })
    }
    /// Two heads can use every drive of this head's pools, and nothing lies there that would be taken for votes.
    async fn clear_for_system(&self) -> Result<(), Refusal> {
        let drives = self.open_drives_of_pools();
        for drive in &drives {
            if let FenceKind::None(why) = drive.info.fence {
                let drive = drive.info.path.clone();
                return Err(SystemRefusal::DriveUnshareable { drive, why, new: false }.into());
            }
        }
        for drive in &self.drives_in_use() {
            if let Err(e) = self.clear_area(drive.id).await {
                let fault = DriveFault::of(&drive.info, e);
                return Err(PoolRefusal::VotesNotCleared { drive: drive.info.path.clone(), fault }.into());
            }
        }
        Ok(())
    }
    /// Order: there is no other head any more.
    pub(crate) async fn head_release(&self, itself: bool) -> Answered {
        let view = self.system_view()?;
        let other = view.me.other();
        let is = |wanted| {
            let procedures = self.clone();
            move || {
                let context = procedures.context();
                context.system.as_ref().is_none_or(|s| s.member().known().head(other).state == wanted)
            }
        };
        if is(HeadState::None)() {
            return Ok(Reply::Done);
        }
        let head = other.letter().to_string();
        // Who has said that it leaves is waited for.
        let leaves = self.context().system.as_ref().is_some_and(|s| s.member().releases());
        if view.record.is_in(other) && !itself && !leaves {
            return Err(SystemRefusal::OtherHeadIn { head }.into());
        }
        self.in_system(|s| s.tell().release());
        if itself || self.cx.until_within(DECIDE_PATIENCE, is(HeadState::None)).await {
            return Ok(Reply::Done);
        }
        let drives = self.system_view()?.late;
        Err(if drives.is_empty() {
            SystemRefusal::ReleaseVotersUnreached { head }.into()
        } else {
            SystemRefusal::ReleaseDrivesLate { head, drives }.into()
        })
    }
    /// Order: the head that is left is alone. What is cut off half way is begun again by the same order: a pool that this head starts with
    /// is its system's, as long as there is one.
    pub(crate) async fn system_leave(&self) -> Answered {
        let view = self.system_view()?;
        if view.record.head(view.me.other()).state != HeadState::None {
            return Err(SystemRefusal::OtherHeadThere.into());
        }
        // Drives that are nobody's do not vote: a start in between must know by itself that this head is alone.
        self.keep_record(view.record).await?;
        let pools: Vec<PoolId> = self.context().pools.iter().map(|p| p.id).collect();
        for pool in pools {
            self.configure(pool, vec![Edit::Shared { system: Uuid::default() }]).await?;
            // Both slots say so: none is left that names a system.
            self.configure_again(pool).await?;
        }
        for drive in self.open_drives_of_pools() {
            self.unregister(drive.id).await;
        }
        Ok(Reply::Done)
    }
    /// Order: this head leads as it is.
    pub(crate) async fn head_lead(&self) -> Answered {
        let view = self.system_view()?;
        match view.part {
            Part::Leader => Ok(Reply::Done),
            Part::Follower => Err(SystemRefusal::OtherHeadLeads.into()),
            Part::Outside | Part::Over => {
                if !planted(Bug::OutHeadsWitness) {
                    self.discard_witnesses().await?;
                }
                self.in_system(|s| s.tell().lead_as_it_is(true));
                let procedures = self.clone();
                let leads =
                    move || procedures.context().system.as_ref().is_some_and(|s| s.part() == Part::Leader);
                if self.cx.until_within(DECIDE_PATIENCE, leads).await {
                    Ok(Reply::Done)
                } else {
                    // What was refused does not happen later.
                    self.in_system(|s| s.tell().lead_as_it_is(false));
                    Err(SystemRefusal::LeadVotersUnreached.into())
                }
            }
        }
    }
    /// Order: the other head is put out.
    pub(crate) async fn head_fence(&self, off: bool) -> Answered {
        let view = self.system_view()?;
        if view.part != Part::Leader {
            return Err(SystemRefusal::FenceNotLeading.into());
        }
        let other = view.me.other();
        self.in_system(|s| s.tell().return_at_once());
        if view.record.is_in(other) {
            self.in_system(|s| s.tell().put_out());
            let procedures = self.clone();
            let out =
                move || procedures.context().system.as_ref().is_none_or(|s| !s.member().known().is_in(other));
            if !self.cx.until_within(DECIDE_PATIENCE, out).await {
                return Err(SystemRefusal::FenceVotersUnreached.into());
            }
        }
        if off {
            self.in_system(|s| s.is_off());
        }
        Ok(Reply::Done)
    }
}
