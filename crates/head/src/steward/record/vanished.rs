//! Files that somebody removes from the state directory or damages there under a running head: noticed at the next look, told,
//! and written again from what the head knows (docs/formats/state.md, "What is lost").
//!
//! Changes and looks are carried out in their order, so that a file which stood there before a look, and which the head did
//! not remove, and which the look does not find, was removed by somebody else.

use crate::layout::PoolId;
use crate::mail::Unmended;
use crate::order::{Answered, Cause, Notice, Order, Refusal, Reply};
use crate::steward::context::head::{HeadContext, Stop};
use crate::steward::context::loss::Loss;
use crate::steward::context::pool::PoolContext;
use crate::steward::context::witness::Witness;
use crate::steward::procedures::Procedures;
use crate::steward::record::kept::KEPT;
use crate::steward::record::lost::tells;
use crate::steward::record::texts::{CREATING, EVENTS, HOSTS, IDENTITY, POOLS, PORTALS, RELEASED, WITNESS};
use base::machine::{StateError, StateOp};
use base::{Bug, Uuid, planted};
use finding::{RecordCause, RecordEvent, RecordNotice};
use std::collections::BTreeSet;

/// What the manager found wrong with a file that lies in its place all the same.
fn wrong_with(why: &Cause) -> Option<&RecordCause> {
    let Cause::Record(cause) = why else { return None };
    matches!(cause, RecordCause::FileUnreadable { .. } | RecordCause::RowNotUnderstood { .. })
        .then_some(cause)
}

impl Procedures {
    /// Changes a file, and remembers whether it is there.
    pub(crate) async fn change_file(&self, op: StateOp) -> Result<(), StateError> {
        let (name, stays) = match &op {
            StateOp::Write { name, .. } | StateOp::Append { name, .. } => (name.clone(), true),
            StateOp::Remove { name } => (name.clone(), false),
            StateOp::Read { .. }
            | StateOp::Look { .. }
            | StateOp::List
            | StateOp::Candidates
            | StateOp::Clock => panic!("this changes no file: {op:?}"),
        };
        let contents = match &op {
            StateOp::Write { contents, .. } => Some(contents.clone()),
            _ => None,
        };
        let turn = self.share_files().await;
        let change = {
            let mut context = self.context_mut();
            if !stays {
                context.files.remove(&name);
            }
            let last = context.file_changes.entry(name.clone()).or_default();
            *last += 1;
            *last
        };
        if let Err(error) = self.cx.state(op).await {
            self.note_unsettled(&name, &error);
            return Err(error);
        }
        if [HOSTS, PORTALS].contains(&name.as_str()) {
            self.mark_change().await;
        }
        let shared = self.share_file(&name, contents);
        drop(turn);
        if let Some(seq) = shared.filter(|_| !planted(Bug::FollowerNotAwaited)) {
            self.has_file(seq).await;
        }
        let mut context = self.context_mut();
        // Whoever removes it meanwhile has the last word.
        if stays && context.file_changes.get(&name) == Some(&change) {
            // One that was missing at the start is there from now on.
            let missing =
                |l: &Loss| matches!(&l.cause, RecordCause::FileMissing { file, .. } if *file == name);
            context.losses.retain(|l| l.file != name && !missing(l));
            context.files.insert(name);
        }
        Ok(())
    }
    /// A file that may say something else after a crash is written again until it does not.
    fn note_unsettled(&self, name: &str, error: &StateError) {
        if !matches!(error, StateError::Unsettled(_)) || planted(Bug::UnsettledForgotten) {
            return;
        }
        let now = self.cx.now();
        let mut context = self.context_mut();
        let (file, path, fault) = (name.to_string(), context.state_path(name), error.into());
        let cause = RecordCause::FileUnsettled { file: file.clone(), path: path.clone(), fault };
        if !context.losses.iter().any(|l| l.cause == cause) {
            let event = RecordEvent::FileUnsettled { path, fault: error.into() };
            context.happened(now, "state directory", event);
        }
        context.losses.retain(|l| l.file != file);
        context.losses.push(Loss { file, cause });
    }
    /// Whether a file may say something else after a crash.
    pub(crate) fn is_unsettled(&self, file: &str) -> bool {
        let is = |l: &Loss| l.file == file && matches!(l.cause, RecordCause::FileUnsettled { .. });
        self.context().losses.iter().any(is)
    }
    /// A look has found these files, where those of `before` should be.
    pub(crate) fn on_files_seen(&self, seen: &[u8], before: &BTreeSet<String>) {
        let seen = String::from_utf8_lossy(seen);
        let seen: BTreeSet<&str> = seen.lines().collect();
        let gone: Vec<String> = before.iter().filter(|f| !seen.contains(f.as_str())).cloned().collect();
        if gone.is_empty() {
            return;
        }
        let now = self.cx.now();
        let mut context = self.context_mut();
        let context = &mut *context;
        context.files.retain(|f| !gone.contains(f));
        let gone: Vec<String> = gone.into_iter().filter(|f| context.knows_file(f)).collect();
        if gone.is_empty() {
            return;
        }
        for p in context
            .pools
            .iter_mut()
            .filter(|p| gone.contains(&crate::steward::record::texts::witness_name(p.config().uuid)))
        {
            p.witness_is(Witness::Gone, p.known_on_legs);
        }
        context.happened(now, "state directory", RecordEvent::FilesRemoved { files: gone.clone() });
        context.restore_files(gone, |file| RecordCause::FileRemoved { file });
    }
    /// The manager has found that these files are not whole. What the head wrote or read there it knows, and nobody else does any
    /// more: it is written again.
    fn on_files_damaged(&self, files: impl Iterator<Item = String>) {
        let now = self.cx.now();
        let mut context = self.context_mut();
        if !context.ready || context.stop != Stop::No {
            return;
        }
        // It says so each second, until they are whole.
        let is_told = |f: &String| context.losses.iter().any(|l| l.file == *f);
        let is_news = |f: &String| context.files.contains(f) && context.knows_file(f) && !is_told(f);
        let damaged: Vec<String> = files.filter(is_news).collect();
        if damaged.is_empty() {
            return;
        }
        // A witness may have been replaced since: it is not taken for one that proves nothing.
        context.happened(now, "state directory", RecordEvent::FilesDamaged { files: damaged.clone() });
        context.restore_files(damaged, |file| RecordCause::FileDamaged { file });
    }
    /// What could not be written again is tried once more.
    pub(crate) fn restore_later(&self) {
        let mut context = self.context_mut();
        let files: Vec<String> = context.losses.iter().map(|l| l.file.clone()).filter(|f| tells(f)).collect();
        if !files.is_empty() && context.ready {
            context.orders.push_back((None, Order::StateRestore { files }));
        }
    }
    /// Order of the Steward's own: files that were removed or damaged under the running head are written again.
    pub(crate) async fn state_restore(&self, files: Vec<String>) -> Answered {
        let mut failed: Vec<Unmended> = vec![];
        let (unsettled, files): (Vec<String>, Vec<String>) =
            files.into_iter().partition(|file| self.is_unsettled(file));
        for file in &unsettled {
            // Until it can be written, `status` goes on to say so.
            let _ = self.restore(file).await;
        }
        for file in &files {
            if let Err(why) = self.restore(file).await {
                failed.push(Unmended { file: file.clone(), why });
            }
        }
        let is_well = |f: &&String| !failed.iter().any(|x| x.file == **f);
        let again: Vec<String> = files.iter().filter(is_well).cloned().collect();
        self.tell_restored(again, failed, |file, why| RecordCause::FileNotRestored { file, why });
        Ok(Reply::Done)
    }
    /// The manager has looked for the files that it keeps itself. One that it could not make again and names no more lies in
    /// its place again, by whoever put it there. It also names files of the head that are not whole.
    pub(crate) fn on_renewed(&self, again: Vec<String>, failed: Vec<Unmended>) {
        let (damaged, failed): (Vec<Unmended>, Vec<Unmended>) =
            failed.into_iter().partition(|x| tells(&x.file));
        self.on_files_damaged(damaged.into_iter().map(|x| x.file));
        self.forget_healed(&again, &failed);
        let gone: Vec<String> = {
            let context = self.context();
            let told = |f: &String| context.losses.iter().any(|l| l.file == *f);
            let removed = failed.iter().filter(|x| wrong_with(&x.why).is_none()).map(|x| &x.file);
            again.iter().chain(removed).filter(|f| !told(f)).cloned().collect()
        };
        if !gone.is_empty() {
            let now = self.cx.now();
            self.context_mut().happened(now, "state directory", RecordEvent::FilesRemoved { files: gone });
        }
        self.tell_restored(again, failed, |file, why| match wrong_with(&why) {
            Some(cause) => cause.clone(),
            None => RecordCause::DaemonFileNotMade { file, why },
        });
    }
    fn forget_healed(&self, again: &[String], failed: &[Unmended]) {
        let now = self.cx.now();
        let mut context = self.context_mut();
        let is_healed = |l: &Loss| {
            let managers = !l.file.is_empty() && !tells(&l.file);
            managers && !again.contains(&l.file) && !failed.iter().any(|x| x.file == l.file)
        };
        let healed: Vec<String> =
            context.losses.iter().filter(|l| is_healed(l)).map(|l| l.file.clone()).collect();
        if !healed.is_empty() {
            context.losses.retain(|l| !is_healed(l));
            context.happened(now, "state directory", RecordEvent::FilesReturned { files: healed });
        }
    }
    /// These were written again, and those could not be.
    fn tell_restored(
        &self,
        again: Vec<String>,
        failed: Vec<Unmended>,
        cause_of: impl Fn(String, Box<Cause>) -> RecordCause,
    ) {
        let now = self.cx.now();
        let mut context = self.context_mut();
        context.losses.retain(|l| !again.contains(&l.file));
        if !again.is_empty() {
            context.happened(now, "state directory", RecordEvent::FilesRestored { files: again.clone() });
            context.restored.extend(again);
        }
        for Unmended { file, why } in failed {
            let why = Box::new(why);
            let cause = cause_of(file.clone(), why.clone());
            let known = context.losses.iter().any(|l| l.cause == cause);
            context.losses.retain(|l| l.file != file);
            if !known {
                let event = match *why {
                    Cause::Record(RecordCause::FileUnreadable { file, path, why }) => {
                        RecordEvent::FileUnreadable { file, path, why }
                    }
                    Cause::Record(RecordCause::RowNotUnderstood { path, row, field, .. }) => {
                        RecordEvent::RowNotUnderstood { path, row, field }
                    }
                    why => RecordEvent::FileNotRestored { file: file.clone(), why: Box::new(why) },
                };
                context.happened(now, "state directory", event);
            }
            context.losses.push(Loss { file, cause });
        }
    }
    async fn restore(&self, file: &str) -> Result<(), Cause> {
        let refused = |r: Refusal| -> Cause { RecordCause::NotWritten { why: r.why }.into() };
        match file {
            IDENTITY => self.write_again(IDENTITY).await.map_err(refused),
            HOSTS => self.write_again(HOSTS).await.map_err(refused),
            PORTALS => self.write_again(PORTALS).await.map_err(refused),
            RELEASED => self.write_again(RELEASED).await.map_err(refused),
            CREATING => self.write_again(CREATING).await.map_err(refused),
            POOLS => self.write_pools().await.map_err(refused),
            EVENTS => self.write_log().await,
            _ => {
                let uuid = |prefix: &str| file.strip_prefix(prefix).and_then(|u| u.parse::<Uuid>().ok());
                match (uuid(WITNESS), uuid(KEPT)) {
                    (Some(pool), _) => self.restore_witness(pool).await,
                    (None, Some(pool)) => self.restore_kept(pool).await,
                    (None, None) => Err(RecordCause::ContentUnknown.into()),
                }
            }
        }
    }
    /// The record is not written as it was: while the file was not there, one may have gone to the drives. The next one,
    /// which changes nothing, goes to the drives and here.
    async fn restore_witness(&self, pool: Uuid) -> Result<(), Cause> {
        let Some(id) = self.context().pool_of(pool) else {
            return Err(RecordCause::WitnessPoolAway.into());
        };
        // Somebody is at it already, and as long as he is not done, nobody is answered.
        if self.context().pool(id).is_some_and(|p| p.recording.is_some()) {
            return Ok(());
        }
        self.write_missing_witness(id).await;
        match self.context().pool(id).and_then(|p| p.trouble.clone()) {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }
    async fn restore_kept(&self, pool: Uuid) -> Result<(), Cause> {
        let Some(id) = self.context().pool_of(pool) else { return self.keep_absent(pool).await };
        let _hold = self.hold_keeper(id).await;
        // What is about to be written there is later.
        let procedures = self.clone();
        self.cx.until(move || procedures.context().pool(id).is_none_or(|p| !p.configuring)).await;
        let slot = self.context().pool(id).filter(|p| !p.leaving).map(PoolContext::config_slot);
        if let Some(slot) = slot {
            let _ = self.keep_config(id, &slot).await;
        }
        Ok(())
    }
}

impl HeadContext {
    /// Whether the head knows what this file says. Who takes away what could not be read does as was advised; what is of no pool
    /// of ours says nothing.
    fn knows_file(&self, file: &str) -> bool {
        let Some(uuid) = file.strip_prefix(KEPT).or(file.strip_prefix(WITNESS)) else {
            return !self.unread.iter().any(|u| u.file == file);
        };
        let uuid = uuid.parse::<Uuid>().ok();
        let here = self.pools.iter().map(|p| p.config().uuid);
        here.chain(self.absent.iter().map(|p| p.uuid())).any(|u| Some(u) == uuid)
    }
    /// Somebody else changed these files, for this cause: they are written again.
    fn restore_files(&mut self, files: Vec<String>, cause: impl Fn(String) -> RecordCause) {
        let loss = |file: &String| Loss { file: file.clone(), cause: cause(file.clone()) };
        self.losses.extend(files.iter().map(loss));
        self.orders.push_back((None, Order::StateRestore { files }));
    }
    fn pool_of(&self, uuid: Uuid) -> Option<PoolId> {
        self.pools.iter().find(|p| p.config().uuid == uuid).map(|p| p.id)
    }
}

/// What `status` says of all that were removed or damaged so far.
pub(crate) fn restored(files: &BTreeSet<String>) -> Option<Notice> {
    let files: Vec<String> = files.iter().cloned().collect();
    (!files.is_empty()).then(|| RecordNotice::FilesRestored { files }.into())
}
