//! From a proposal to what is decided: checked, durable, applied. `HeadContext::apply` is called here, and where a procedure makes more
//! durable than its change says (a new drive's label, the record beside the configuration).

use crate::layout::PoolId;
use crate::order::Refusal;
use crate::steward::context::head::HeadContext;
use crate::steward::context::pool::PoolContext;
use crate::steward::health::drives::{ConfigFound, WrittenConfig};
use crate::steward::legs::exchange::Untaken;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{
    CREATING, HOSTS, IDENTITY, PORTALS, RELEASED, hosts_file, identity_file, pools_file, portals_file,
};
use crate::steward::state::config::PoolConfig;
use crate::steward::state::{Change, Edit, Invalid, List, Pool, PoolRow, State};
use access::VolumeGrants;
use array::format::ConfigSlot;
use base::DriveKind;
use base::{Bug, Uuid, planted};
use finding::{PoolRefusal, RecordRefusal};
use volume::Volume;

/// A change of a pool's configuration that was checked, and is not durable yet. Nobody else changes that configuration as long
/// as this lives.
pub(crate) struct Planned {
    change: Change,
    next: Pool,
    turn: Turn,
}

impl Planned {
    /// What the pool will be.
    pub fn next(&self) -> &Pool {
        &self.next
    }
    /// What is written to its drives.
    pub fn slot(&self) -> ConfigSlot {
        self.next.slot()
    }
}

/// It is this procedure's turn to write the files of the state directory (None), or the configuration of a pool.
struct Turn {
    procedures: Procedures,
    pool: Option<PoolId>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut context = self.procedures.context_mut();
        match self.pool {
            None => context.files(false),
            Some(id) => {
                if let Some(p) = context.pool_mut(id) {
                    p.is_configured(false);
                }
            }
        }
    }
}

impl Procedures {
    /// Proposes a change that the state directory tells: it is checked, written there, applied.
    ///
    /// # Errors
    /// It may not happen, or could not be written: nothing has changed.
    pub(crate) async fn propose(&self, change: Change) -> Result<(), Refusal> {
        let procedures = self.clone();
        self.cx.until(move || !procedures.context().filing).await;
        self.context_mut().files(true);
        let _turn = Turn { procedures: self.clone(), pool: None };
        self.check_unknown(&change)?;
        let contents = {
            let mut context = self.context_mut();
            context.state().check(&change).map_err(|e| refusal(e, ""))?;
            context.journal.proposed(&change);
            let mut next = context.state().clone();
            next.apply(change.clone());
            let concerned = context.state().concerned(&change);
            debug_assert!(concerned.drives.is_empty(), "a change of drives has a procedure");
            let of = |file: String| (contents_of(&context, &next, &file), file);
            concerned.files.into_iter().map(of).collect::<Vec<_>>()
        };
        let early = !contents.is_empty() && planted(Bug::AppliedBeforeDurable);
        if early {
            self.context_mut().apply(change.clone());
        }
        for (contents, file) in contents {
            if let Err(refusal) = self.write_file(&file, contents).await {
                self.roll_back(&file, &change).await;
                return Err(refusal);
            }
        }
        if !early {
            self.context_mut().apply(change);
        }
        Ok(())
    }
    /// A file that was not written, and may have been all the same, is written as it was.
    async fn roll_back(&self, file: &str, change: &Change) {
        if self.is_unsettled(file) {
            let before = contents_of(&self.context(), self.context().state(), file);
            let _ = self.write_file(file, before).await;
        }
        if !self.is_unsettled(file) {
            self.context_mut().journal.refused(change);
        }
    }
    /// Writes a file of the state directory as it should be, once more.
    pub(crate) async fn write_again(&self, file: &'static str) -> Result<(), Refusal> {
        let procedures = self.clone();
        self.cx.until(move || !procedures.context().filing).await;
        self.context_mut().files(true);
        let _turn = Turn { procedures: self.clone(), pool: None };
        let contents = contents_of(&self.context(), self.context().state(), file);
        self.write_file(file, contents).await
    }

    /// Edits of a pool's configuration: checked, on its drives, applied.
    ///
    /// # Errors
    /// They may not happen, or no drive took them: nothing has changed. Or some drives lack them, and so does the state directory: then a
    /// start may find them or not.
    pub(crate) async fn configure(&self, pool: PoolId, edits: Vec<Edit>) -> Result<(), Refusal> {
        let planned = self.plan(pool, edits).await?;
        let slot = planned.slot();
        if planted(Bug::AppliedBeforeDurable) {
            self.decided(planned);
            self.write_config(pool, &slot).await;
            return Ok(());
        }
        // What hosts are told while the drives are away has no more than the drives from then on.
        let before = {
            let context = self.context();
            let takes = context.pool(pool).filter(|p| takes_away(p.config(), planned.next.config()));
            takes.map(PoolContext::config_slot)
        };
        if before.is_some() {
            self.keep_config(pool, &slot).await?;
        }
        let WrittenConfig { failed, found } = self.write_config(pool, &slot).await;
        if matches!(found, ConfigFound::Never) {
            if let Some(before) = before {
                let _ = self.keep_config(pool, &before).await;
            }
            return Err(PoolRefusal::NoDriveWritten { pool: planned.next.config().name.clone() }.into());
        }
        self.propose_losses(pool, failed, Untaken::Config);
        if let ConfigFound::Perhaps(why) = found {
            return Err(why);
        }
        self.decided(planned);
        Ok(())
    }
    /// The configuration as it is, of a later generation, so that the other slot of each drive says it, too.
    ///
    /// # Errors
    /// The pool is gone.
    pub(crate) async fn configure_again(&self, pool: PoolId) -> Result<(), Refusal> {
        let planned = self.plan(pool, vec![]).await?;
        let failed = self.write_config(pool, &planned.slot()).await.failed;
        self.propose_losses(pool, failed, Untaken::Config);
        self.decided(planned);
        Ok(())
    }
    /// Edits of a pool's configuration that are checked, and that the caller makes durable.
    ///
    /// # Errors
    /// They may not happen.
    pub(crate) async fn plan(&self, pool: PoolId, edits: Vec<Edit>) -> Result<Planned, Refusal> {
        let procedures = self.clone();
        self.cx.until(move || procedures.context().pool(pool).is_none_or(|p| !p.configuring)).await;
        let mut context = self.context_mut();
        let (uuid, generation, name) = {
            let p = context.pool_mut(pool).ok_or(PoolRefusal::PoolGone)?;
            p.is_configured(true);
            (p.config().uuid, p.generation().max(p.generation_used) + 1, p.config().name.clone())
        };
        drop(context);
        let turn = Turn { procedures: self.clone(), pool: Some(pool) };
        let mut context = self.context_mut();
        let checked = match context.state().pool(uuid) {
            Some(_) => context.state().after(uuid, generation, &edits),
            // It comes, and is nobody's yet.
            None => context.pool(pool).expect("seen above").state().after(generation, &edits),
        };
        let change = Change::Configured { pool: uuid, generation, edits };
        let checked = checked.map_err(|e| refusal(e, &name));
        if checked.is_ok() {
            context.pool_mut(pool).expect("seen above").uses_generation(generation);
            context.journal.proposed(&change);
        }
        drop(context);
        Ok(Planned { change, next: checked?, turn })
    }
    /// A change of a pool's configuration is durable.
    pub(crate) fn decided(&self, planned: Planned) {
        let Planned { change, next, turn } = planned;
        let mut context = self.context_mut();
        let uuid = next.config().uuid;
        match context.state().check(&change) {
            Ok(()) => context.apply(change),
            // It comes, and what it came as is told once all of it is durable.
            Err(_) => {
                let known = context.state().pool(uuid).is_some();
                debug_assert!(!known, "nobody else changed it meanwhile");
                let coming = context.pools.iter_mut().find(|p| p.config().uuid == uuid);
                if let Some(p) = coming.filter(|_| !known) {
                    p.comes_as(next);
                }
            }
        }
        drop(context);
        drop(turn);
    }
    /// A pool that was made or imported is this head's, durably.
    pub(crate) fn came(&self, pool: PoolId) {
        let mut context = self.context_mut();
        let Some(p) = context.pool(pool) else { return };
        let (change, record) = (p.comes(), p.record().clone());
        context.apply(change);
        context.decide(pool, &record);
    }
    /// A pool is not this head's any more, durably.
    pub(crate) fn left(&self, pool: PoolId) {
        let mut context = self.context_mut();
        let uuid = context.pool(pool).map(|p| p.config().uuid);
        if let Some(pool) = uuid.filter(|uuid| context.state().pool(*uuid).is_some()) {
            context.apply(Change::PoolLeft { pool });
        }
    }
    /// Puts a pool on a list, in the place of what stood there of it; or takes it off, if none of its drives outlives this daemon.
    pub(crate) async fn list(&self, list: List, row: PoolRow) -> Result<(), Refusal> {
        let drives: Vec<String> =
            row.drives.into_iter().filter(|d| DriveKind::of(d).survives_restart()).collect();
        if drives.is_empty() {
            return self.unlist(list, row.uuid).await;
        }
        let row = PoolRow { drives, ..row };
        if self.context().state().list(list).contains(&row) {
            return Ok(());
        }
        self.propose(Change::Listed { list, row }).await
    }
    /// Takes a pool off a list, if it is there.
    pub(crate) async fn unlist(&self, list: List, pool: Uuid) -> Result<(), Refusal> {
        if self.context().state().list(list).iter().all(|r| r.uuid != pool) {
            return Ok(());
        }
        self.propose(Change::Unlisted { list, pool }).await
    }
}

/// What a file says of a state.
/// Whether a configuration has less for some host than the one before it.
fn takes_away(before: &PoolConfig, after: &PoolConfig) -> bool {
    let smaller = |v: &Volume| after.volumes.by_uuid(v.uuid).is_none_or(|w| w.bytes < v.bytes);
    let ungranted = |v: &VolumeGrants| {
        let stay = after.grants.of(v.volume).map_or(&[][..], |w| &w.grants);
        v.grants.iter().any(|grant| !stay.contains(grant))
    };
    before.volumes.iter().any(smaller) || before.grants.iter().any(ungranted)
}

fn contents_of(context: &HeadContext, state: &State, file: &str) -> Vec<u8> {
    let unknown = context.unknown_rows_of(file);
    match file {
        IDENTITY => identity_file(state.identity()),
        HOSTS => hosts_file(state.hosts(), unknown),
        PORTALS => portals_file(state.portals(), state.portal_last(), unknown),
        CREATING => pools_file(CREATING, state.list(List::Creating), unknown),
        RELEASED => pools_file(RELEASED, state.list(List::Released), unknown),
        _ => unreachable!("{file} is written by its own procedure"),
    }
}

/// Why a change is refused, for the operator. What an operator can ask for was refused with better words before.
fn refusal(why: Invalid, pool: &str) -> Refusal {
    let why = match why {
        Invalid::Access(e) => return e.into(),
        Invalid::PortalTaken => RecordRefusal::PortalAddressTaken,
        Invalid::TooLarge => return PoolRefusal::PoolConfigTooLarge { pool: pool.into() }.into(),
        Invalid::Taken => RecordRefusal::NumberTaken,
        Invalid::NotThere => RecordRefusal::ChangeTargetGone,
        Invalid::IsThere => RecordRefusal::ChangeTargetExists,
        Invalid::NotLater => RecordRefusal::ChangedMeanwhile,
        Invalid::Unsound => RecordRefusal::ChangeInvalid,
        Invalid::Members => RecordRefusal::ChangeWithoutDrive,
        Invalid::NotNext => RecordRefusal::EarlierChangeMissing,
    };
    why.into()
}
