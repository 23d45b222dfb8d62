//! Pools go: released, or let go of as the head stops.

use super::Office;
use super::desk::{OpenDrive, PoolDesk, refuse};
use super::drives::RecordWritten;
use super::files::PoolRow;
use super::join::{self, Boxed};
use crate::layout::PoolId;
use crate::mail::Mail;
use crate::order::{Answered, Refusal, RefusalKind, Reply, Weight};
use array::format::LegState;
use base::{Bug, DriveId, Duration, Uuid, planted};

/// How long shards may take to become quiet, and drives to come back from the kernel.
pub(crate) const QUIET_PATIENCE: Duration = Duration::from_secs(30);

impl Office {
    /// Order: release.
    pub(crate) async fn pool_release(&self, pool: &str, disconnect: bool) -> Answered {
        let absent = {
            let desk = self.desk();
            let row = desk.absent.iter().find(|p| p.name == pool && desk.pool_named(pool).is_err());
            row.map(|p| PoolRow { uuid: p.uuid, name: p.name.clone(), drives: p.drives.clone() })
        };
        if let Some(row) = absent {
            let uuid = row.uuid;
            self.desk_mut().absent.retain(|p| p.uuid != uuid);
            self.write_pools().await?;
            self.remove_kept(uuid).await;
            self.publish().await;
            self.remember_released(row).await;
            let now = self.cx.now();
            self.desk_mut().event(
                now,
                Weight::Note,
                format!("pool {pool}"),
                "it was forgotten: its drives are away",
            );
            return Ok(Reply::Done);
        }
        let (id, row) = {
            let desk = self.desk();
            let p = desk.pool_named(pool)?;
            (p.id, p.row())
        };
        let (uuid, name) = (row.uuid, row.name.clone());
        if !disconnect {
            let command = format!("millrace pool release {name} --yes");
            let what = format!("the volumes of pool {name}");
            self.desk().check_volumes_unused(uuid, None, None, &what, &command)?;
        }
        // What a drive still holds may land after the mark, in a pool that another head has by then.
        self.rest(id).await?;
        if let Some(p) = self.desk_mut().pool_mut(id) {
            p.config.holder = Uuid::default();
        }
        let written = self.put_last_record(id, true).await;
        // The pool is stopped in any case; if it could not be marked, the next import asks for `--force`.
        self.write_pools().await?;
        self.forget(&[id], QUIET_PATIENCE).await;
        self.remove_witness(uuid).await;
        self.remove_kept(uuid).await;
        self.remember_released(row).await;
        let now = self.cx.now();
        self.desk_mut().event(now, Weight::Note, format!("pool {name}"), "it was released");
        written.map(|()| Reply::Done)
    }

    /// Brings a pool to rest, or refuses and lets it go on serving: a drive that hangs keeps what it was given.
    pub(crate) async fn rest(&self, id: PoolId) -> Result<(), Refusal> {
        // Hosts lose nothing for a pool of which this is known before.
        self.check_drives_answer(id).await?;
        let Err(r) = self.quiet(&[id], QUIET_PATIENCE).await else { return Ok(()) };
        let arrays: Vec<_> = {
            let mut desk = self.desk_mut();
            let p = desk.pool_mut(id).expect("orders come one by one");
            (p.leaving, p.serving) = (false, true);
            p.arrays.iter().map(|a| a.id).collect()
        };
        for array in arrays {
            self.tell_shards(|| Mail::Resume { array });
        }
        self.publish().await;
        // By now the shards may have found out which drive it is.
        self.check_drives_answer(id).await?;
        Err(r)
    }
    /// Refuses if a drive of the pool does not answer, or holds operations that were given up.
    async fn check_drives_answer(&self, id: PoolId) -> Result<(), Refusal> {
        self.ask_reports().await;
        let open: Vec<OpenDrive> = {
            let desk = self.desk();
            let p = desk.pool(id).expect("orders come one by one");
            p.arrays.iter().flat_map(|a| &a.legs).filter_map(|l| l.open.clone()).collect()
        };
        let reads: Vec<Boxed<'_, _>> = open
            .iter()
            .map(|o| -> Boxed<'_, _> {
                Box::pin(self.cx.read(o.id, array::format::LABEL_AT, array::format::RECORD_BYTES))
            })
            .collect();
        let silent: Vec<bool> = join::all(reads)
            .await
            .into_iter()
            .map(|read| matches!(read, Err(base::DriveError::TimedOut)))
            .collect();
        let desk = self.desk();
        for (o, silent) in open.iter().zip(silent) {
            let figures = desk.reports.iter().flatten().flat_map(|r| &r.drives);
            let hung: u32 = figures.filter(|d| d.drive == o.id).map(|d| d.hung).sum();
            if hung == 0 && !silent {
                continue;
            }
            drop(desk);
            self.look_soon();
            let desk = self.desk();
            let path = &o.info.path;
            let what = match hung {
                0 => "does not answer".to_string(),
                1 => "holds 1 operation that does not end".to_string(),
                n => format!("holds {n} operations that do not end"),
            };
            let message = format!("{path} {what}: the pool cannot come to rest, and goes on serving");
            let shaped = desk.shapes.get(&o.id).is_some_and(|s| s.hang);
            let next = match shaped {
                true => format!("millrace drive shape {path} --clear, then this again"),
                false => format!(
                    "unplug or reset {path}, then this again; or stop the daemon, which ends all it holds"
                ),
            };
            return Err(refuse(RefusalKind::NotReady, "pool", message).then(next));
        }
        Ok(())
    }

    /// Volumes vanish from the hosts, and every command on the arrays ends.
    pub(crate) async fn quiet(&self, ids: &[PoolId], patience: Duration) -> Result<(), Refusal> {
        {
            let mut desk = self.desk_mut();
            for id in ids {
                let Some(p) = desk.pool_mut(*id) else { continue };
                (p.leaving, p.serving) = (true, false);
                // Of an attempt before that came to nothing.
                let arrays: Vec<_> = p.arrays.iter().map(|a| a.id).collect();
                desk.quiesced.retain(|(array, _)| !arrays.contains(array));
            }
        }
        // The keeper ends what it is at; its last record must not come after ours.
        let (office, all) = (self.clone(), ids.to_vec());
        let at_rest = move || !all.iter().any(|id| office.desk().pool(*id).is_some_and(|p| p.keeping));
        let rests = self.cx.until_within(patience, at_rest).await;
        self.publish().await;
        let arrays: Vec<_> = {
            let desk = self.desk();
            ids.iter().filter_map(|id| desk.pool(*id)).flat_map(|p| p.arrays.iter().map(|a| a.id)).collect()
        };
        for array in &arrays {
            self.tell_shards(|| Mail::Quiesce { array: *array });
        }
        let office = self.clone();
        let quiet = self.cx.until_within(patience, move || {
            let desk = office.desk();
            arrays.iter().all(|a| (0..desk.shards).all(|s| desk.quiesced.contains(&(*a, s))))
        });
        if quiet.await && rests {
            Ok(())
        } else {
            let message = format!("a drive still holds operations after {} seconds", patience.as_secs());
            Err(refuse(RefusalKind::NotReady, "pool", message)
                .then("millrace status -v, for the drive that hangs"))
        }
    }

    /// Marks a quiet pool as closed.
    ///
    /// Two records: one that every leg takes now that nothing changes any more, and behind it the one that says that the
    /// pool is closed. A leg that has neither was not there at the end: it is an older copy (docs/formats/membership.md).
    pub(crate) async fn put_last_record(&self, id: PoolId, config_too: bool) -> Result<(), Refusal> {
        let (mut failed, witness) = match planted(Bug::OlderCopyBelieved) {
            true => (vec![], Ok(())),
            false => self.put_record_at_rest(id, true).await,
        };
        if let Err(words) = witness {
            return Err(refuse(RefusalKind::Internal, "pool", words));
        }
        if config_too {
            let slot = self.desk_mut().pool_mut(id).map(|p| {
                p.generation += 1;
                p.config_slot()
            });
            if let Some(slot) = slot {
                failed.extend(self.write_config(id, &slot).await);
            }
        }
        let (also, witness) = self.put_record_at_rest(id, false).await;
        if let Err(words) = witness {
            return Err(refuse(RefusalKind::Internal, "pool", words));
        }
        match failed.into_iter().chain(also).next() {
            None => Ok(()),
            Some((a, l, error)) => {
                let path = self.desk().pool(id).map_or(String::new(), |p| p.drive_path(a, l).to_string());
                let message = format!(
                    "{path} could not be marked as closed: the drive {}",
                    super::desk::error_words(error)
                );
                Err(refuse(RefusalKind::Internal, "pool", message))
            }
        }
    }

    /// A quiet pool's next record, open or closed; the legs that did not take it, and how the witness fared.
    async fn put_record_at_rest(&self, id: PoolId, open: bool) -> RecordWritten {
        let record = {
            let mut desk = self.desk_mut();
            let (me, incarnation) = (desk.system.uuid, desk.new_incarnation());
            let Some(p) = desk.pool_mut(id) else { return (vec![], Ok(())) };
            let mut record = p.record.next(me, incarnation);
            // Losses that were told last are on record too: nobody reads the leg as in sync again.
            for wish in p.wishes.drain(..) {
                if let super::desk::Wish::Lost { array, leg, .. } = wish {
                    let legs = &mut record.arrays[array].legs;
                    let others = (0..legs.len()).any(|l| l != leg && legs[l].state == LegState::InSync);
                    if others && legs[leg].state == LegState::InSync {
                        legs[leg].state = LegState::JustOut;
                    }
                }
            }
            record.open = open;
            p.record = record.clone();
            record
        };
        self.write_record(id, &record, &[]).await
    }

    /// Takes quiet pools from the desk and lets go of their drives, waiting at most so long for the kernel.
    pub(crate) async fn forget(&self, ids: &[PoolId], patience: Duration) {
        let open: Vec<DriveId> = {
            let mut desk = self.desk_mut();
            let (gone, left) =
                core::mem::take(&mut desk.pools).into_iter().partition(|p| ids.contains(&p.id));
            desk.pools = left;
            let drives = |p: PoolDesk| {
                let spares = p.spares.into_iter().filter_map(|s| s.open);
                let legs = p.arrays.into_iter().flat_map(|a| a.legs).filter_map(|l| l.open);
                legs.chain(spares).map(|o| o.id).collect::<Vec<_>>()
            };
            let gone: Vec<PoolDesk> = gone;
            gone.into_iter().flat_map(drives).collect()
        };
        if self.desk().ready {
            self.publish().await;
        }
        open.iter().for_each(|id| self.let_go(*id));
        let cx = self.cx.clone();
        self.cx.until_within(patience, move || open.iter().all(|id| cx.closed(*id))).await;
    }
}
