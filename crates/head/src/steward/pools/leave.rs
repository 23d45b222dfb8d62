//! Pools go: released, or let go of as the head stops.

use crate::layout::{ArrayId, PoolId};
use crate::mail::ShardMail;
use crate::order::{Answered, Cause, Notice, Refusal, Reply};
use crate::steward::context::array::Outlook;
use crate::steward::context::open::OpenDrive;
use crate::steward::context::pool::PoolContext;
use crate::steward::join::{self, Boxed};
use crate::steward::legs::members::losses;
use crate::steward::patience::QUIET_PATIENCE;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::POOLS;
use crate::steward::sessions::connected::refuse_in_use;
use crate::steward::state::{Edit, PoolRow};
use crate::steward::words::array_word;
use array::format::LegState;
use base::DriveKind;
use base::{DriveError, DriveId, Duration, Uuid};
use finding::{DriveBusy, DriveFault, FailedDrive, PoolCause, PoolEvent, PoolNotice, PoolRefusal};
use std::cell::Cell;
use std::rc::Rc;

/// How long the refusal of a release waits until hosts are served again.
const TAKE_BACK_PATIENCE: Duration = Duration::from_secs(5);

/// The last record of a pool that goes.
struct LastRecord {
    /// Legs that did not take it.
    failed: Vec<(usize, usize, DriveError)>,
    /// How the witness went.
    witness: Result<(), Cause>,
    /// Arrays of which it puts legs out.
    changed: Vec<(ArrayId, u64)>,
}

impl Procedures {
    /// Order: release. It happens whole or not at all, wherever it is cut off (docs/formats/state.md, "A release").
    pub(crate) async fn pool_release(&self, pool: &str, force: bool, disconnect: bool) -> Answered {
        self.check_read(POOLS)?;
        let absent = {
            let context = self.context();
            let row = context.absent.iter().find(|p| p.name() == pool && context.pool_named(pool).is_err());
            row.map(|p| p.row().clone())
        };
        if let Some(row) = absent {
            return self.forget_absent(row).await;
        }
        let (id, row, ends_here) = {
            let context = self.context();
            let p = context.pool_named(pool)?;
            (p.id, p.row(), array_in_memory(p))
        };
        let (uuid, name) = (row.uuid, row.name.clone());
        if !force {
            self.check_outlives_release(id)?;
        }
        // Nobody is asked for something that is refused then.
        let failed = self.check_drives_answer(id).await?;
        if !force {
            self.check_marked(id, &failed)?;
        }
        if !disconnect {
            self.ask_other_hosts().await;
            let pool = name.to_string();
            let hosts = self.context().users_of_volumes(uuid, None, None);
            refuse_in_use(hosts, |hosts| PoolRefusal::PoolReleaseInUse { pool, force, hosts })?;
        }
        self.list_released(row).await?;
        // What a drive still holds may land after the mark, in a pool that another head has by then.
        if let Err(r) = self.rest(id).await {
            self.forget_released(uuid).await;
            return Err(r);
        }
        let behind = self.leave_behind(id);
        let mut notices = self.mark_released(id, force).await?;
        notices.extend(behind);
        self.leave_creating(uuid, vec![]).await;
        if let Some(lost) = ends_here {
            notices.push(PoolNotice::PoolInMemory { drives: lost.drives }.into());
        }
        let now = self.cx.now();
        let mut context = self.context_mut();
        let what = format!("pool {name}");
        context.happened(now, what.clone(), PoolEvent::PoolReleased);
        notices.iter().for_each(|n| context.noticed(now, what.clone(), n.clone()));
        Ok(Reply::Created { uuid: Uuid::default(), notices })
    }
    /// A pool whose drives are away is not this head's any more. What proves one of its legs stays, for an import by
    /// this head.
    async fn forget_absent(&self, row: PoolRow) -> Answered {
        let (uuid, name) = (row.uuid, row.name.clone());
        self.list_released(row).await?;
        let gone = {
            let mut context = self.context_mut();
            let at = context.absent.iter().position(|p| p.uuid() == uuid);
            at.map(|at| context.absent.remove(at))
        };
        if let Err(r) = self.write_pools().await {
            self.context_mut().absent.extend(gone);
            self.forget_released(uuid).await;
            return Err(r);
        }
        self.context_mut().forget_absent(uuid);
        self.remove_kept(uuid).await;
        self.leave_creating(uuid, vec![]).await;
        self.publish().await;
        let now = self.cx.now();
        let what = format!("pool {name}");
        self.context_mut().happened(now, what, PoolEvent::PoolForgotten);
        Ok(Reply::Done)
    }
    /// Refuses what would lose volumes: those of a pool with an array in memory end with the daemon that has it, and no
    /// other one can import them.
    fn check_outlives_release(&self, id: PoolId) -> Result<(), Refusal> {
        let context = self.context();
        let Some(p) = context.pool(id) else { return Ok(()) };
        let volumes = p.config().volumes.iter().len();
        let Some(lost) = array_in_memory(p).filter(|_| volumes > 0) else { return Ok(()) };
        let (pool, volumes) = (p.config().name.clone(), volumes as u64);
        let InMemory { array, drives, others } = lost;
        Err(if others.is_empty() {
            PoolRefusal::PoolInMemory { pool, drives, volumes }
        } else {
            PoolRefusal::ArrayInMemory { pool, array, drives, others, volumes }
        }
        .into())
    }
    /// Legs that lie in the memory of this daemon are out with the last records, where another leg has everything: whoever
    /// imports the pool needs no proof that nobody went on with them. Returns what that means.
    fn leave_behind(&self, id: PoolId) -> Vec<Notice> {
        let mut context = self.context_mut();
        let Some(p) = context.pool_mut(id) else { return vec![] };
        let mut notices = vec![];
        for (array, leg) in left_behind(p) {
            let (drive, name) = (p.arrays[array].legs[leg].path.clone(), array_word(true, array));
            let why = PoolCause::LegStaysBehind.into();
            p.is_to_lose(array, leg, why, Outlook::MayReturn);
            notices.push(PoolNotice::DriveStaysBehind { drive, array: name }.into());
        }
        notices
    }
    /// Refuses if some array has no leg in sync but those that failed: nothing would tell that the pool was released.
    fn check_marked(&self, id: PoolId, failed: &[(usize, usize, DriveError)]) -> Result<(), Refusal> {
        let context = self.context();
        let Some(p) = context.pool(id) else { return Ok(()) };
        let reachable = p.reachable();
        let took = |a: usize| {
            reachable.iter().any(|(x, l, _)| {
                *x == a
                    && p.leg_state(a, *l) == LegState::InSync
                    && !failed.iter().any(|(y, m, _)| (*y, *m) == (a, *l))
            })
        };
        let Some(a) = (0..p.arrays.len()).find(|a| !took(*a)) else { return Ok(()) };
        let why = |l: usize| {
            let error = failed.iter().find(|(x, m, _)| (*x, *m) == (a, l)).map(|(.., e)| *e);
            FailedDrive {
                drive: p.drive_path(a, l).to_string(),
                fault: error.map_or(DriveFault::Gone, DriveFault::from),
                file: DriveKind::of(p.drive_path(a, l)) == DriveKind::File,
            }
        };
        let legs = (0..p.arrays[a].legs.len()).filter(|l| p.leg_state(a, *l) == LegState::InSync);
        Err(PoolRefusal::ReleaseNotMarked {
            pool: p.config().name.clone(),
            array: p.array_name(a),
            drives: legs.map(why).collect(),
        }
        .into())
    }
    /// Marks a pool at rest as released and lets go of it, each step durable before the next; or it goes on serving.
    /// Returns what the next import should know.
    async fn mark_released(&self, id: PoolId, force: bool) -> Result<Vec<Notice>, Refusal> {
        let Some(last) = self.write_last_record(id).await else { return Ok(vec![]) };
        let LastRecord { mut failed, witness, changed } = last;
        let mut marked = self.check_marked(id, &failed);
        if let Err(why) = witness {
            // It may put a leg out, and the drives have not got it then.
            return Err(self.take_back(id, changed, no_witness(why)).await);
        }
        if force || marked.is_ok() {
            let planned = match self.plan(id, vec![Edit::Held { holder: Uuid::default() }]).await {
                Ok(planned) => planned,
                Err(r) => return Err(self.take_back(id, changed, r).await),
            };
            let also = self.write_config(id, &planned.slot()).await.failed;
            self.decided(planned);
            failed.retain(|(a, l, _)| !also.iter().any(|(x, m, _)| (x, m) == (a, l)));
            failed.extend(also);
            marked = self.check_marked(id, &failed);
        }
        if !force && let Err(r) = marked {
            return Err(self.take_back(id, changed, r).await);
        }
        if let Err(r) = self.write_pools().await {
            return Err(self.take_back(id, changed, r).await);
        }
        self.left(id);
        let (uuid, notices) = {
            let context = self.context();
            let p = context.pool(id).expect("orders come one by one");
            let unmarked = |(a, l, e): &(usize, usize, DriveError)| {
                let drive = p.drive_path(*a, *l).to_string();
                PoolNotice::DriveNotMarked { drive, fault: (*e).into() }.into()
            };
            let mut notices: Vec<Notice> = failed.iter().map(unmarked).collect();
            if marked.is_err() {
                notices.push(PoolNotice::MirrorsNotMarked { pool: p.config().name.clone() }.into());
            }
            (p.config().uuid, notices)
        };
        self.forget(&[id], QUIET_PATIENCE).await;
        // Of drives that have no mark it may be all that tells which of them lacks something.
        if marked.is_ok() {
            self.remove_witness(uuid).await;
        }
        self.remove_kept(uuid).await;
        Ok(notices)
    }
    /// A pool that was to be released goes on: hosts come back once it is on record again that it is in use.
    async fn take_back(&self, id: PoolId, changed: Vec<(ArrayId, u64)>, why: Refusal) -> Refusal {
        let hold = self.hold_keeper(id).await;
        let found = {
            let mut context = self.context_mut();
            let (me, incarnation) = (context.me(), context.new_incarnation());
            context.pool_mut(id).map(|p| {
                let mut record = p.record().next(me, incarnation);
                record.open = true;
                p.propose(record);
                p.stays();
                (p.config().uuid, p.config().holder.is_nil().then_some(Edit::Held { holder: me }))
            })
        };
        let Some((uuid, unmark)) = found else { return why };
        let (procedures, done) = (self.clone(), Rc::new(Cell::new(false)));
        let over = done.clone();
        self.cx.spawn(async move {
            // No shard reads from a leg that went meanwhile, before those are answered who wrote without it.
            procedures.publish().await;
            procedures.put_on_record(id, &changed, &[]).await;
            if let Some(edit) = unmark {
                // A drive that does not take it is put out by that; if none does, the pool says so.
                let _ = procedures.configure(id, vec![edit]).await;
            }
            procedures.forget_released(uuid).await;
            drop(hold);
            procedures.go_on(id).await;
            over.set(true);
            procedures.cx.changed();
        });
        // As long as nothing takes the record, `status` says so, and hosts wait.
        self.cx.until_within(TAKE_BACK_PATIENCE, move || done.get()).await;
        why
    }
    /// A pool at rest serves again.
    pub(crate) async fn go_on(&self, id: PoolId) {
        let arrays: Vec<_> = {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(id) else { return };
            p.serves();
            p.arrays.iter().map(|a| a.id).collect()
        };
        for array in arrays {
            self.tell_shards(|| ShardMail::Resume { array });
        }
        self.publish().await;
    }

    /// Brings a pool to rest, or refuses and lets it go on serving: a drive that hangs keeps what it was given.
    pub(crate) async fn rest(&self, id: PoolId) -> Result<(), Refusal> {
        // Hosts lose nothing for a pool of which this is known before.
        self.check_drives_answer(id).await?;
        let Err(r) = self.quiet(&[id], QUIET_PATIENCE).await else { return Ok(()) };
        self.go_on(id).await;
        // By now the shards may have found out which drive it is.
        self.check_drives_answer(id).await?;
        Err(r)
    }
    /// Refuses if a drive of the pool does not answer, or holds operations that were given up. Returns the legs that
    /// answered with an error.
    async fn check_drives_answer(&self, id: PoolId) -> Result<Vec<(usize, usize, DriveError)>, Refusal> {
        self.ask_reports().await;
        let legs: Vec<(usize, usize, String, Option<OpenDrive>)> = {
            let context = self.context();
            let p = context.pool(id).expect("orders come one by one");
            let legs =
                p.arrays.iter().enumerate().flat_map(|(a, x)| x.legs.iter().enumerate().map(move |l| (a, l)));
            legs.map(|(a, (l, leg))| (a, l, leg.path.clone(), leg.open.clone())).collect()
        };
        let reads: Vec<Boxed<'_, _>> = legs
            .iter()
            .map(|(.., open)| -> Boxed<'_, _> {
                Box::pin(async move {
                    let id = open.as_ref()?.id;
                    self.cx.read(id, array::format::LABEL_AT, array::format::RECORD_BYTES).await.err()
                })
            })
            .collect();
        let mut failed = vec![];
        let errors = join::all(reads).await;
        for ((a, l, path, open), error) in legs.into_iter().zip(errors) {
            let hung: u32 = {
                let context = self.context();
                let figures = context.reports.iter().flatten().flat_map(|r| &r.drives);
                figures.filter(|d| open.as_ref().is_some_and(|o| o.id == d.drive)).map(|d| d.hung).sum()
            };
            // One that was let go of, and may do what it was given before whenever it likes.
            let still_held = open.is_none() && self.cx.still_holds(&path);
            let why = match (hung, error) {
                (0, _) if still_held => DriveBusy::HoldsFormer,
                (0, Some(DriveError::TimedOut)) => DriveBusy::Silent,
                (0, error) => {
                    failed.extend(error.map(|e| (a, l, e)));
                    continue;
                }
                (n, _) => DriveBusy::Hangs { operations: n.into() },
            };
            self.look_soon();
            let context = self.context();
            let shaped = match &open {
                Some(o) => context.shapes.get(&o.id),
                None => context.shapes_at_start.get(&path),
            };
            let shaped = shaped.is_some_and(|s| s.hang);
            return Err(PoolRefusal::PoolNotAtRest { drive: path, why, shaped }.into());
        }
        Ok(failed)
    }

    /// Volumes vanish from the hosts, and every command on the arrays ends.
    pub(crate) async fn quiet(&self, ids: &[PoolId], patience: Duration) -> Result<(), Refusal> {
        {
            let mut context = self.context_mut();
            for id in ids {
                let Some(p) = context.pool_mut(*id) else { continue };
                p.leaves();
            }
        }
        // The keeper and who holds it end what they are at; their last record must not come after ours.
        let (procedures, all) = (self.clone(), ids.to_vec());
        let at_rest = move || {
            let context = procedures.context();
            all.iter().filter_map(|id| context.pool(*id)).all(PoolContext::keeper_rests)
        };
        let rests = self.cx.until_within(patience, at_rest).await;
        self.publish().await;
        let arrays: Vec<_> = {
            let context = self.context();
            ids.iter()
                .filter_map(|id| context.pool(*id))
                .flat_map(|p| p.arrays.iter().map(|a| a.id))
                .collect()
        };
        let number = self.context_mut().asks_for_rest(&arrays);
        for array in &arrays {
            self.tell_shards(|| ShardMail::Quiesce { array: *array, number });
        }
        let procedures = self.clone();
        let quiet = self.cx.until_within(patience, move || procedures.context().are_quiet(&arrays));
        if quiet.await && rests {
            Ok(())
        } else {
            Err(PoolRefusal::PoolStillBusy { seconds: patience.as_secs() }.into())
        }
    }

    /// Marks a quiet pool as closed.
    pub(crate) async fn put_last_record(&self, id: PoolId) -> Result<(), Refusal> {
        let Some(last) = self.write_last_record(id).await else { return Ok(()) };
        last.witness.map_err(no_witness)?;
        let Some((a, l, error)) = last.failed.first() else { return Ok(()) };
        let drive = self.context().pool(id).map_or(String::new(), |p| p.drive_path(*a, *l).to_string());
        Err(PoolRefusal::PoolNotClosed { drive, fault: (*error).into() }.into())
    }
    /// Writes a quiet pool's last record, which says that it is closed, and the settled copy of it. A leg that lacks the record was
    /// not there at the end: it is an older copy (docs/formats/membership.md).
    async fn write_last_record(&self, id: PoolId) -> Option<LastRecord> {
        let now = self.cx.now();
        let (record, changed) = {
            let mut context = self.context_mut();
            let (me, incarnation) = (context.me(), context.new_incarnation());
            let p = context.pool_mut(id)?;
            let mut record = p.record().next(me, incarnation);
            // Losses that were told last are on record too: nobody reads the leg as in sync again.
            let losses = losses(&mut p.pending);
            context.take_out(id, &mut record, losses, now);
            record.open = false;
            let p = context.pool_mut(id)?;
            let changed = p.changed(&record);
            p.propose(record.clone());
            (record, changed)
        };
        let (mut failed, witness) = self.write_record(id, &record, &[]).await;
        if witness.is_ok() {
            self.context_mut().decide(id, &record);
            failed.extend(self.write_settled_copy(id).await);
        }
        Some(LastRecord { failed, witness, changed })
    }

    /// Takes quiet pools from the context and lets go of their drives, waiting at most so long for the kernel.
    pub(crate) async fn forget(&self, ids: &[PoolId], patience: Duration) {
        let open: Vec<DriveId> = {
            let mut context = self.context_mut();
            let gone = context.pools.extract_if(.., |p| ids.contains(&p.id)).collect();
            let drives = |p: PoolContext| {
                let spares = p.spares.into_iter().filter_map(|s| s.open);
                let legs = p.arrays.into_iter().flat_map(|a| a.legs).filter_map(|l| l.open);
                legs.chain(spares).map(|o| o.id).collect::<Vec<_>>()
            };
            let gone: Vec<PoolContext> = gone;
            gone.into_iter().flat_map(drives).collect()
        };
        if self.context().ready {
            self.publish().await;
        }
        open.iter().for_each(|id| self.let_go(*id));
        let cx = self.cx.clone();
        self.cx.until_within(patience, move || open.iter().all(|id| cx.closed(*id))).await;
    }
}

/// What a pool's last record says did not go to the state directory.
pub(crate) fn no_witness(why: Cause) -> Refusal {
    Refusal::from(PoolRefusal::WitnessNotWritten { why: Box::new(why) }).about("pool")
}

/// What an array holds in the memory of this daemon alone.
struct InMemory {
    /// The array's name.
    array: String,
    /// Its drives that lie there and are in sync.
    drives: Vec<String>,
    /// Its drives that lie elsewhere, none of them in sync.
    others: Vec<String>,
}

/// An array that has nothing in sync but in the memory of this daemon: without it the pool is none.
fn array_in_memory(p: &PoolContext) -> Option<InMemory> {
    (0..p.arrays.len()).find_map(|a| {
        let legs = &p.arrays[a].legs;
        let in_sync = || legs.iter().enumerate().filter(|(l, _)| p.leg_state(a, *l) == LegState::InSync);
        let all = in_sync().next().is_some() && in_sync().all(|(_, l)| DriveKind::of(&l.path).is_volatile());
        let drives = in_sync().map(|(_, l)| l.path.clone()).collect();
        all.then(|| InMemory {
            array: p.array_name(a),
            drives,
            others: legs
                .iter()
                .map(|l| l.path.clone())
                .filter(|path| DriveKind::of(path).survives_restart())
                .collect(),
        })
    })
}

/// Legs in the memory of this daemon of mirrors that have a leg in sync elsewhere: it holds everything, and goes without them.
fn left_behind(p: &PoolContext) -> Vec<(usize, usize)> {
    let mut out = vec![];
    for (a, array) in p.arrays.iter().enumerate() {
        let in_sync = |l: &usize| p.leg_state(a, *l) == LegState::InSync;
        let is_here = |l: &usize| DriveKind::of(&array.legs[*l].path).is_volatile();
        let legs = || (0..array.legs.len()).filter(in_sync);
        if legs().any(|l| !is_here(&l)) {
            out.extend(legs().filter(is_here).map(|l| (a, l)));
        }
    }
    out
}
