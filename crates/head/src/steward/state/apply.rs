//! A change is applied. What may not happen was refused before: nothing here can fail, and nothing here looks at anything but the
//! state and the change.

use super::config::PoolConfig;
use super::extras::Returned;
use super::{Away, Change, Edit, Invalid, List, PoolRow, State, portal_number};
use base::Uuid;
use std::sync::Arc;
use volume::Run;

impl State {
    /// Takes a change that was checked. One that was not is taken as far as it can be: this never panics.
    pub fn apply(&mut self, change: Change) {
        self.number += 1;
        match change {
            Change::Identified { identity } => self.identity = identity,
            Change::HostPut { host } => {
                let _ = match self.hosts.get(&host.name) {
                    Some(_) => self.hosts.set(host),
                    None => self.hosts.add(host),
                };
            }
            Change::HostRemoved { name } => drop(self.hosts.remove(&name)),
            Change::PortalPut { portal } => {
                // Numbers go on from the one that was given last, and begin anew behind the highest.
                self.portal_last = portal_number(portal.id);
                self.portals.push(portal);
            }
            Change::PortalRemoved { id } => self.portals.retain(|p| p.id != id),
            Change::PortalsCounted { last } => self.portal_last = last,
            Change::Listed { list, row } => self.list_mut(list).relist(row),
            Change::Unlisted { list, pool } => self.list_mut(list).retain(|r| r.uuid != pool),
            Change::PoolCame { config, generation, record } => {
                self.away.retain(|a| a.row.uuid != config.uuid);
                let pool = super::Pool { config, generation, record };
                let at = self.pools.partition_point(|p| p.config.uuid < pool.config.uuid);
                self.pools.insert(at, Arc::new(pool));
            }
            Change::PoolLeft { pool } => self.pools.retain(|p| p.config.uuid != pool),
            Change::Configured { pool, generation, edits } => {
                if let Some(p) = self.pool_mut(pool) {
                    edits.iter().for_each(|edit| p.config.edit(edit, generation));
                    p.generation = generation;
                }
            }
            Change::DriveMoved { pool, drive, path } => {
                if let Some(p) = self.pool_mut(pool) {
                    p.config.moved(drive, path);
                }
            }
            Change::Member { record } => {
                if let Some(p) = self.pool_mut(record.pool) {
                    p.record = record;
                }
            }
            Change::PoolAway { row, generation, config } => {
                self.away.retain(|a| a.row.uuid != row.uuid);
                let at = self.away.partition_point(|a| a.row.uuid < row.uuid);
                self.away.insert(at, Arc::new(Away { row, generation, config }));
            }
            Change::AwayEnded { pool } => self.away.retain(|a| a.row.uuid != pool),
        }
    }

    /// Takes a change as bytes: a second state's way.
    ///
    /// # Errors
    /// It is not the next one, cannot be read, or may not happen here: the two states are not equal.
    pub fn replay(&mut self, bytes: &[u8]) -> Result<(), Invalid> {
        let (number, change) = Change::decode(bytes).map_err(|_| Invalid::Unsound)?;
        if number != self.number + 1 {
            return Err(Invalid::NotNext);
        }
        self.check(&change)?;
        self.apply(change);
        Ok(())
    }

    /// What nobody may do: for the mistake `WrittenPastApply`.
    pub(in crate::steward) fn written_past_apply(&mut self) {
        self.portal_last = self.portal_last.wrapping_add(1);
    }

    fn pool_mut(&mut self, uuid: Uuid) -> Option<&mut super::Pool> {
        self.pools.iter_mut().find(|p| p.config.uuid == uuid).map(Arc::make_mut)
    }
    fn list_mut(&mut self, list: List) -> &mut Vec<PoolRow> {
        match list {
            List::Creating => &mut self.creating,
            List::Released => &mut self.released,
        }
    }
}

/// A list of which the oldest rows give way.
trait Relist {
    fn relist(&mut self, row: PoolRow);
}

impl Relist for Vec<PoolRow> {
    fn relist(&mut self, row: PoolRow) {
        self.retain(|r| r.uuid != row.uuid);
        self.push(row);
        let surplus = self.len().saturating_sub(super::LISTED_MAX);
        self.drain(..surplus);
    }
}

impl PoolConfig {
    /// A drive has another path.
    pub(super) fn moved(&mut self, drive: Uuid, path: String) {
        let legs = self.arrays.iter_mut().flat_map(|a| &mut a.legs).filter(|l| l.drive == drive);
        legs.for_each(|l| l.path.clone_from(&path));
        let spares = self.extras.spares.iter_mut().filter(|s| s.drive == drive);
        spares.for_each(|s| s.path.clone_from(&path));
    }
    /// Takes an edit; `generation` is that of the configuration that says so.
    pub(in crate::steward) fn edit(&mut self, edit: &Edit, generation: u64) {
        match edit {
            Edit::Renamed { name } => self.name.clone_from(name),
            Edit::Held { holder } => self.holder = *holder,
            Edit::DriveBlock { bytes } => self.drive_block_bytes = *bytes,
            Edit::VolumePut { volume } => self.volumes.put(volume.clone()),
            Edit::VolumeRemoved { volume } => {
                self.volumes.remove(*volume);
                self.grants.remove_volume(*volume);
                self.extras.caps.retain(|row| row.volume != *volume);
                self.extras.weights.retain(|row| row.volume != *volume);
            }
            Edit::Numbered { volume, nsid } => self.grants.number(*volume, *nsid),
            Edit::Exported { volume, grant } => self.grants.put(*volume, grant.clone()),
            Edit::Unexported { volume, grant } => self.grants.take(*volume, grant),
            Edit::Capped { volume, caps } => self.set_caps(*volume, *caps),
            Edit::Weighed { volume, weight } => self.set_weight(*volume, *weight),
            Edit::Scrubbed { scrub } => self.extras.scrub = scrub.clone(),
            Edit::SpaceReturned { runs } => self.return_space(runs, generation),
            Edit::SpaceFreed { runs } => self.free_space(runs),
            Edit::MapsBegun {} => {
                let new = || Returned { life: generation, ..Returned::default() };
                self.extras.uncleared.get_or_insert_with(new);
            }
            Edit::MapsEnded {} => self.extras.uncleared = None,
            Edit::AllReturned {} => {
                self.accounted = true;
                let life = self.extras.uncleared.take().map_or(generation, |u| u.life);
                self.extras.uncleared = Some(Returned { life, all_free: true, runs: vec![] });
            }
            Edit::ArraysAdded { rows, map } => {
                self.arrays.extend(rows.iter().cloned());
                self.map.clone_from(map);
            }
            Edit::ArraysRemoved { first, map } => {
                self.arrays.truncate(*first as usize);
                self.map.clone_from(map);
                if let Some(run) = &mut self.extras.scrub.run {
                    run.at.truncate(*first as usize);
                }
            }
            Edit::LegPut { array, leg, row } => {
                let Some(array) = self.arrays.get_mut(*array as usize) else { return };
                match array.legs.get_mut(*leg as usize) {
                    Some(place) => place.clone_from(row),
                    None => array.legs.push(row.clone()),
                }
            }
            Edit::LegRemoved { array, leg } => {
                let array = self.arrays.get_mut(*array as usize);
                if let Some(array) = array.filter(|a| (*leg as usize) < a.legs.len()) {
                    array.legs.remove(*leg as usize);
                }
            }
            Edit::SparePut { row } => self.extras.spares.push(row.clone()),
            Edit::SpareRemoved { drive } => self.extras.spares.retain(|s| s.drive != *drive),
            Edit::ReplacementPut { row } => {
                let rows = &mut self.extras.replacements;
                match rows.iter_mut().find(|r| r.old == row.old) {
                    Some(place) => place.clone_from(row),
                    None => rows.push(row.clone()),
                }
            }
            Edit::FailedPut { row } => self.extras.put_failed(row),
            Edit::FailedRemoved { drive } => self.extras.failed.retain(|row| row.drive != *drive),
            Edit::Shared { system } => self.shared = Some(*system).filter(|system| !system.is_nil()),
            Edit::ReplacementRemoved { old } => self.extras.replacements.retain(|r| r.old != *old),
        }
    }
    fn return_space(&mut self, runs: &[Run], generation: u64) {
        if runs.is_empty() {
            return;
        }
        let new = || Returned { life: generation, ..Returned::default() };
        let returned = self.extras.uncleared.get_or_insert_with(new);
        if !returned.all_free {
            returned.runs.extend(runs);
        }
    }
    fn free_space(&mut self, runs: &[Run]) {
        if runs.is_empty() {
            return;
        }
        let mut left = self.returned();
        left.retain(|run| !runs.contains(run));
        if let Some(returned) = &mut self.extras.uncleared {
            returned.all_free = false;
            returned.runs = left;
        }
    }
}
