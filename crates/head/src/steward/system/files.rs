//! What the leader keeps in its state directory lies in the follower's, too, before anybody is answered (docs/rfcs/0007-cluster.md).

use super::upper::{Upper, is_shared};
use crate::layout::PoolId;
use crate::mail::ManagerMail;
use crate::order::{Answered, Refusal};
use crate::steward::context::system::SystemContext;
use crate::steward::join::Boxed;
use crate::steward::patience::LOOK_AFTER;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{HOSTS, PORTALS, named, state_refusal};
use base::machine::{StateError, StateOp};
use base::{Bug, Duration, Instant, planted};
use cluster::Part;
use finding::{SystemEvent, to_text};

/// A follower that does not say within this that it has a file is put out.
const FOLLOWER_PATIENCE: Duration = Duration::from_secs(1);

/// When a state directory that took nothing is tried again by a head that is outside.
const PROBE_AGAIN: Duration = Duration::from_secs(1);

/// When a file that could not be read is read again, for a follower.
const READ_AGAIN: Duration = Duration::from_secs(10);

/// It is this procedure's turn to change files that are shared.
pub(crate) struct Sharing(Option<Procedures>);

impl Drop for Sharing {
    fn drop(&mut self) {
        if let Some(procedures) = &self.0 {
            procedures.in_system(|s| s.shares(false));
        }
    }
}

impl Procedures {
    /// Waits until nobody else changes files that are shared: the follower is to see all changes in their order.
    pub(crate) async fn share_files(&self) -> Sharing {
        if !self.is_in_system() {
            return Sharing(None);
        }
        let procedures = self.clone();
        self.cx.until(move || procedures.context().system.as_ref().is_none_or(|s| !s.is_sharing())).await;
        self.in_system(|s| s.shares(true));
        Sharing(Some(self.clone()))
    }
    /// Hosts or portals have changed here. Who has an older copy of this directory is to know that it is one: a decision is made which it
    /// does not know of.
    pub(crate) async fn mark_change(&self) {
        if !self.context().ready {
            // A start changes nothing that anybody was told of, and has not opened the drives yet that vote.
            return;
        }
        let mark = self.in_system(|s| {
            let other = s.member().me().other();
            let two = s.member().known().head(other).state != cluster::HeadState::None;
            let marks = two && s.part() == Part::Leader && !planted(Bug::ChangeUnmarked);
            marks.then(|| s.tell().on_changed())
        });
        let Some(Some(change)) = mark else { return };
        let procedures = self.clone();
        let over = move || {
            let context = procedures.context();
            let still = context.system.as_ref().filter(|s| s.part() == Part::Leader);
            still.is_none_or(|s| s.member().has_marked(change))
        };
        // The voters may be drives that were gone, and nobody else takes a leg back while this order is under way.
        while !self.cx.until_within(LOOK_AFTER, over.clone()).await {
            let now = self.cx.now();
            let due: Vec<PoolId> = {
                let context = self.context();
                context.pools.iter().filter(|p| p.has_legs_due(now)).map(|p| p.id).collect()
            };
            for pool in due {
                let back: Boxed<'_, Answered> = Box::pin(self.legs_return(pool));
                let _ = back.await;
            }
        }
    }
    /// A file was changed here: the follower is told. With its number `has_file` waits until it has it.
    pub(crate) fn share_file(&self, name: &str, contents: Option<Vec<u8>>) -> Option<u64> {
        if !is_shared(name) {
            return None;
        }
        let follower = || self.context().system.as_ref().is_some_and(|s| s.member().follower_is_in());
        follower().then(|| self.tell_follower(|seq| Upper::File { seq, name: name.into(), contents }))
    }
    fn tell_follower(&self, message: impl FnOnce(u64) -> Upper) -> u64 {
        self.in_system(|s| {
            let seq = s.next_file();
            // What finds no room is not answered: the follower is put out for that.
            let _ = s.tell().send(message(seq).encode());
            seq
        })
        .expect("one of two")
    }
    /// Waits until the follower has a file, or is out.
    pub(crate) async fn has_file(&self, seq: u64) {
        let there = |procedures: &Procedures| {
            procedures
                .context()
                .system
                .as_ref()
                .is_none_or(|s| s.has_had(seq) || !s.member().follower_is_in())
        };
        let procedures = self.clone();
        let patience = FOLLOWER_PATIENCE + self.slack_of_follower();
        if self.cx.until_within(patience, move || there(&procedures)).await {
            return;
        }
        self.in_system(|s| s.tell().on_silent());
        let procedures = self.clone();
        self.cx.until(move || there(&procedures)).await;
    }
    /// What the follower owes may be late by so much, as it was lately.
    pub(in crate::steward) fn slack_of_follower(&self) -> Duration {
        let now = self.cx.now();
        self.context().system.as_ref().map_or(Duration::ZERO, |s| s.member().slack(now))
    }
    /// A follower was let in: it gets all files. While one of them cannot be read here, it has not all, and cannot take over.
    pub(super) async fn sync_follower(&self, epoch: u64) {
        let mut told = None;
        while let Err(file) = self.send_all_files(epoch).await {
            self.in_system(|s| s.cannot_send(Some(file.clone())));
            if told.as_ref() != Some(&file) {
                let now = self.cx.now();
                let path = self.context().state_path(&file);
                let event = SystemEvent::FollowerLacksFile { file: file.clone(), path };
                self.context_mut().happened(now, "system", event);
                told = Some(file);
            }
            self.cx.sleep(READ_AGAIN).await;
        }
        self.in_system(|s| s.cannot_send(None));
    }

    /// Sends all files to a follower.
    ///
    /// # Errors
    /// This one is there, and cannot be read or is not whole.
    async fn send_all_files(&self, epoch: u64) -> Result<(), String> {
        let names: Vec<String> = {
            let _turn = self.share_files().await;
            self.shared_files().await
        };
        for name in &names {
            let sent = {
                let _turn = self.share_files().await;
                if !self.is_in_since(epoch) {
                    return Ok(());
                }
                match self.cx.state(StateOp::Read { name: name.clone() }).await {
                    Ok(contents) if files::check(name, &contents).is_ok() => {
                        self.share_file(name, Some(contents))
                    }
                    // It was removed since, and that was told.
                    Err(StateError::Missing) => None,
                    Ok(_) | Err(_) => return Err(name.clone()),
                }
            };
            // One after the other: however many there are, none waits behind the others for longer than it may.
            if let Some(seq) = sent {
                self.has_file(seq).await;
            }
        }
        let last = {
            let _turn = self.share_files().await;
            let names = self.shared_files().await;
            let follower_in = self.context().system.as_ref().is_some_and(|s| s.member().follower_is_in());
            if !follower_in {
                return Ok(());
            }
            self.tell_follower(|seq| Upper::All { seq, names })
        };
        if !planted(Bug::SyncedUnheard) {
            self.has_file(last).await;
        }
        // If another was let in meanwhile, it is not that one which has it. Who takes over trusts fences.
        if self.is_in_since(epoch) && self.try_fences(epoch).await {
            self.in_system(|s| {
                if s.has_had(last) || planted(Bug::SyncedUnheard) {
                    s.tell().on_synced();
                }
            });
            self.try_others(epoch).await;
        }
        Ok(())
    }
    async fn shared_files(&self) -> Vec<String> {
        let all = self.list_files().await.unwrap_or_default();
        all.into_iter().filter(|n| is_shared(n)).collect()
    }

    /// Takes what the other Steward says, one after the other.
    pub(super) async fn receive(&self) {
        loop {
            let procedures = self.clone();
            self.cx.until(move || procedures.context().system.as_ref().is_some_and(|s| s.has_come())).await;
            let Some(Some(bytes)) = self.in_system(|s| s.take_came()) else { continue };
            let Ok(message) = Upper::decode(&bytes) else { continue };
            match message {
                Upper::Have { seq } => drop(self.in_system(|s| s.follower_has(seq))),
                Upper::HaveNot { why, .. } => drop(self.in_system(|s| s.follower_has_not(why))),
                Upper::Manager(bytes) => self.cx.to_manager(ManagerMail::FromPeer(bytes)),
                Upper::Connections(all) => drop(self.in_system(|s| s.leader_has(all))),
                Upper::File { .. } | Upper::All { .. } => self.take_file(message).await,
                Upper::Try { number, drive, on } => self.is_tried(number, drive, on),
                Upper::Tried { number, said } => drop(self.in_system(|s| s.trials().on_said(number, said))),
                Upper::Reach(drives) => self.other_reaches(&drives),
                Upper::Comes { number, name } => self.host_comes_there(number, name),
                Upper::Nothing { number } => self.in_sessions(|s, fx| s.other_has_nothing(number, fx)),
                Upper::Clear { number, units, reset } => self.clear_for_other(number, units, reset),
                Upper::Reset { number, name, life } => self.reset_for_other(number, &name, life),
                Upper::LetGo { number, drive } => self.let_go_for_leader(number, drive),
                Upper::HasLetGo { number, drive } => {
                    self.in_system(|s| {
                        s.reach().other_lets_go(drive);
                        s.far_mut().has_let_go(number);
                    });
                }
                Upper::Look { number, drive } => self.look_for_other(number, drive),
                Upper::Looked { number, reached } => {
                    self.in_system(|s| {
                        s.far_mut().has_looked(number, reached);
                        s.reach().is_answered(number, reached);
                    });
                }
                Upper::Lead => self.lead_for_path(),
                Upper::Serves { shards } => self.far_offers(shards),
                Upper::ToShard { shard, letter } => self.take_letter(shard, &letter),
                Upper::Configure(configured) => self.take_configuration(&configured),
                Upper::FromShard { shard, letter } => self.hear_far(shard, &letter),
                Upper::Fences(all) => drop(self.in_system(|s| s.trials().is_told(all))),
            }
        }
    }
    async fn take_file(&self, message: Upper) {
        let follows = || self.context().system.as_ref().is_some_and(|s| s.part() == cluster::Part::Follower);
        if !follows() {
            return;
        }
        let (seq, done): (u64, Result<(), Refusal>) = match message {
            Upper::File { seq, name, contents } => {
                if name == PORTALS {
                    self.note_portals(contents.as_deref().unwrap_or_default());
                }
                let marked = [HOSTS, PORTALS].contains(&name.as_str());
                // One that is not whole is not had, and nothing that is here gives way to it.
                if contents.as_deref().is_some_and(|bytes| files::check(&name, bytes).is_err()) {
                    return;
                }
                let what = named(&name);
                let op = match contents {
                    Some(contents) => StateOp::Write { name, contents },
                    None => StateOp::Remove { name },
                };
                let mut done = self.cx.state(op).await.map(drop).map_err(|e| state_refusal(what, &e));
                // Whoever has it knows of the decision that was made for it.
                if marked && done.is_ok() && !planted(Bug::FileBeforeRecord) {
                    done = self.keep_known_record().await;
                }
                (seq, done)
            }
            Upper::All { seq, names } => {
                let mut done = Ok(());
                for name in self.shared_files().await.into_iter().filter(|n| !names.contains(n)) {
                    let what = named(&name);
                    let removed = self.cx.state(StateOp::Remove { name }).await;
                    done = done.and(removed.map(drop).map_err(|e| state_refusal(what, &e)));
                }
                // Whoever has all knows that he is in: a directory that does not is an older copy.
                done = done.and(self.keep_known_record().await);
                self.in_system(|s| s.far_mut().has_all());
                (seq, done)
            }
            _ => return,
        };
        // One that could not be written is not had: the leader goes on without this head.
        let said = match done {
            Ok(()) => Upper::Have { seq },
            Err(refusal) => Upper::HaveNot { seq, why: *refusal.why },
        };
        let _ = self.in_system(|s| s.tell().send(said.encode()));
    }
    /// Keeps what is decided, as far as this head knows, in its state directory.
    async fn keep_known_record(&self) -> Result<(), Refusal> {
        let Some(known) = self.in_system(|s| s.member().known().clone()) else { return Ok(()) };
        self.keep_record(known).await
    }
    /// While this head is outside, tells the other one whether the state directory here takes what a follower must keep. Who leads watches
    /// it otherwise (`watch_directory`).
    pub(super) async fn tell_what_it_lacks(&self) {
        let outside = || self.context().system.as_ref().is_some_and(|s| s.part() == Part::Outside);
        while outside() {
            let fault = self.probe_directory().await;
            let well = fault.is_none();
            let said = fault.map_or(vec![], |fault| to_text(&fault).into_bytes());
            self.in_system(|s| s.tell().on_lacks(said));
            if well {
                return;
            }
            self.cx.sleep(PROBE_AGAIN).await;
        }
    }
    /// Takes a message of the manager's to the manager of the other head.
    pub(crate) fn to_peer(&self, bytes: Vec<u8>) {
        let _ = self.in_system(|s| s.tell().send(Upper::Manager(bytes).encode()));
    }
    /// Something newer is decided, or not: it is kept for the next start, and told.
    pub(super) fn note_record(&self, now: Instant) {
        let Some(Some((record, was))) = self.in_system(SystemContext::take_news_of_record) else { return };
        let (me, leads) = {
            let context = self.context();
            let system = context.system.as_ref().expect("one of two");
            (system.member().me(), system.part() == Part::Leader)
        };
        let other = me.other();
        if leads && record.has_latest(other) && !was[other.index()] {
            self.context_mut().happened(now, "system", SystemEvent::FollowerReady);
        }
        if !leads && !record.is_in(me) && !record.has_latest(me) && was[me.index()] {
            self.context_mut().happened(now, "system", SystemEvent::OtherHeadHasLatest);
        }
        let procedures = self.clone();
        self.cx.spawn(async move {
            let _ = procedures.keep_record(record).await;
        });
    }
}
