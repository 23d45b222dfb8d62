//! Orders about the system.

use super::fence::cannot;
use crate::layout::PoolId;
use crate::order::{Answered, ErrorKind, Refusal, Reply};
use crate::peer::{Heartbeats, SystemSettings, SystemView};
use crate::steward::context::pool::PoolDesk;
use crate::steward::office::Office;
use crate::steward::state::Edit;
use crate::steward::words::{STATE_DISK, refuse};
use base::{Bug, Duration, FenceKind, Instant, Uuid, planted};
use cluster::{HeadState, Part, Voter};

/// How long a decision may take.
const DECIDE_PATIENCE: Duration = Duration::from_secs(5);

/// The answer to what only a leader can do.
pub(crate) fn not_leading() -> Refusal {
    refuse(ErrorKind::NotReady, "", "this head does not lead, and the one that does is not reached")
        .then("millrace head ls")
}

fn alone() -> Refusal {
    refuse(ErrorKind::NotFound, "", "this head is alone: it is in no system of two")
        .then("millrace system create --link ADDRESS:PORT")
}

impl Office {
    /// What is known of the system.
    pub(crate) fn system_view(&self) -> Result<SystemView, Refusal> {
        let desk = self.desk();
        let system = desk.system.as_ref().ok_or_else(alone)?;
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
            refused: system.refused(),
            heartbeats: Heartbeats { networks, drives: member.heartbeat_on_drives().map(ago) },
            reaches: (member.reaches(), voters as u16),
            drives,
            drives_reached,
            unreached,
            blind: system.is_blind(now),
            old_directory: member.has_old_directory(),
            out: system.out().cloned(),
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
            let message = "this head is one of a system already";
            return Err(refuse(ErrorKind::Conflict, "", message).then("millrace head ls"));
        }
        if !self.is_in_system() {
            self.clear_for_system().await?;
            self.enter_system(settings).await;
        }
        let office = self.clone();
        let leads = move || office.desk().system.as_ref().is_some_and(|s| s.part() == Part::Leader);
        if !self.cx.until_within(DECIDE_PATIENCE, leads).await {
            let message = "the state directory did not take the first decision of the system";
            return Err(refuse(ErrorKind::Internal, "", message).then("millrace status"));
        }
        let mut notices = self.share_drives().await;
        // From now on a head that knows nothing of systems does not take these pools.
        let alone = |p: &&PoolDesk| p.config().shared != Some(system);
        let pools: Vec<PoolId> = self.desk().pools.iter().filter(alone).map(|p| p.id).collect();
        for pool in pools {
            let said = self.configure(pool, vec![Edit::Shared { system }]).await;
            notices.extend(said.and(self.configure_again(pool).await).err().map(|r| r.said()));
        }
        self.leads_all();
        Ok(Reply::Created { uuid: system, notices: notices.into_iter().map(Into::into).collect() })
    }
    /// Two heads can use every drive of this head's pools, and nothing lies there that would be taken for votes.
    async fn clear_for_system(&self) -> Result<(), Refusal> {
        let drives = self.open_drives_of_pools();
        for drive in &drives {
            if let FenceKind::None(why) = drive.info.fence {
                let message = cannot(&drive.info.path, why);
                let (path, instead) = (&drive.info.path, why.instead());
                let next =
                    format!("millrace drive replace {path} NEW, where NEW is {instead}; then the same again");
                return Err(refuse(ErrorKind::Conflict, "", message).then(next));
            }
        }
        for drive in &self.drives_in_use() {
            if let Err(e) = self.clear_area(drive.id).await {
                let message = format!("{}: {}", drive.info.path, crate::steward::words::did(&drive.info, e));
                return Err(refuse(ErrorKind::Internal, "", message).then("millrace status"));
            }
        }
        Ok(())
    }
    /// Order: there is no other head any more.
    pub(crate) async fn head_release(&self, itself: bool) -> Answered {
        let view = self.system_view()?;
        let other = view.me.other();
        let is = |wanted| {
            let office = self.clone();
            move || {
                let desk = office.desk();
                desk.system.as_ref().is_none_or(|s| s.member().known().head(other).state == wanted)
            }
        };
        if is(HeadState::None)() {
            return Ok(Reply::Done);
        }
        let letter = ["a", "b"][other.index()];
        // Who has said that it leaves is waited for.
        let leaves = self.desk().system.as_ref().is_some_and(|s| s.member().releases());
        if view.record.is_in(other) && !itself && !leaves {
            let message = format!("head {letter} is in, and leaves first");
            return Err(refuse(ErrorKind::Conflict, "", message)
                .then(format!("millrace system leave, on head {letter}; or millrace head fence {letter}")));
        }
        self.in_system(|s| s.tell().release());
        if itself || self.cx.until_within(DECIDE_PATIENCE, is(HeadState::None)).await {
            return Ok(Reply::Done);
        }
        let late = self.system_view()?.late.join(", ");
        let message = match late.is_empty() {
            true => "too few voters are reached".to_string(),
            false => format!("{late}: not known to be shut off head {letter}"),
        };
        Err(refuse(ErrorKind::NotReady, "", message)
            .then(format!("millrace head fence {letter} --is-off, if that head is switched off")))
    }
    /// Order: the head that is left is alone. What is cut off half way is begun again by the same order: a pool that this head starts with
    /// is its system's, as long as there is one.
    pub(crate) async fn system_leave(&self) -> Answered {
        let view = self.system_view()?;
        if view.record.head(view.me.other()).state != HeadState::None {
            let message = "there is another head in this system";
            return Err(refuse(ErrorKind::Conflict, "", message).then("millrace head ls"));
        }
        let pools: Vec<PoolId> = self.desk().pools.iter().map(|p| p.id).collect();
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
            Part::Follower => {
                let message = "the other head leads: this one takes over by itself when it must";
                Err(refuse(ErrorKind::Conflict, "", message).then("millrace head ls"))
            }
            Part::Outside | Part::Over => {
                if !planted(Bug::OutHeadsWitness) {
                    self.discard_witnesses()
                        .await
                        .map_err(|words| refuse(ErrorKind::Internal, "", words).then(STATE_DISK))?;
                }
                self.in_system(|s| s.tell().lead_as_it_is(true));
                let office = self.clone();
                let leads = move || office.desk().system.as_ref().is_some_and(|s| s.part() == Part::Leader);
                match self.cx.until_within(DECIDE_PATIENCE, leads).await {
                    true => Ok(Reply::Done),
                    false => {
                        // What was refused does not happen later.
                        self.in_system(|s| s.tell().lead_as_it_is(false));
                        let message = "the other head is there, or too few voters are reached";
                        Err(refuse(ErrorKind::NotReady, "", message).then("millrace head ls"))
                    }
                }
            }
        }
    }
    /// Order: the other head is put out.
    pub(crate) async fn head_fence(&self, off: bool) -> Answered {
        let view = self.system_view()?;
        if view.part != Part::Leader {
            let message = "the head that leads puts the other one out, and this one does not lead";
            return Err(refuse(ErrorKind::NotReady, "", message).then("millrace head ls"));
        }
        let other = view.me.other();
        if view.record.is_in(other) {
            self.in_system(|s| s.tell().put_out());
            let office = self.clone();
            let out = move || office.desk().system.as_ref().is_none_or(|s| !s.member().known().is_in(other));
            if !self.cx.until_within(DECIDE_PATIENCE, out).await {
                let message = "too few voters are reached to put the other head out";
                return Err(refuse(ErrorKind::NotReady, "", message).then("millrace head ls"));
            }
        }
        if off {
            self.in_system(|s| s.is_off());
        }
        Ok(Reply::Done)
    }
}
