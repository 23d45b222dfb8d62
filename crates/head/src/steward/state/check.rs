//! What may not happen: found before anything of it is durable.

use super::config::PoolConfig;
use super::{Change, Edit, List, Pool, State, portal_number};
use array::format::{LegState, MembershipRecord};
use base::Uuid;
use base::view::NSID_MAX;
use finding::HostRefusal;
use std::collections::BTreeSet;

/// Why a change is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Invalid {
    /// What is wrong with a host, its names or its exports.
    Access(HostRefusal),
    /// Another portal has the address, or the number.
    PortalTaken,
    /// There is no such pool, host, portal, volume, array, leg or drive.
    NotThere,
    /// There is one already.
    IsThere,
    /// A generation, or a record, that is not later than the one that is there.
    NotLater,
    /// The parts of the configuration would not fit each other.
    Unsound,
    /// It would not fit its place on the drives.
    TooLarge,
    /// Another pool has the name, or a volume of one the namespace id.
    Taken,
    /// An array would be left without a leg in sync, or has other legs than the configuration says.
    Members,
    /// It is not the next change: one was lost, repeated, or came before its turn.
    NotNext,
}

impl State {
    /// Whether a change may be applied.
    ///
    /// # Errors
    /// Why not: nothing of it may become durable.
    pub fn check(&self, change: &Change) -> Result<(), Invalid> {
        let is = |there: bool, why: Invalid| if there { Ok(()) } else { Err(why) };
        match change {
            Change::Identified { identity } => is(!identity.uuid.is_nil(), Invalid::Unsound),
            Change::HostPut { host } => {
                let mut hosts = self.hosts.clone();
                let put = match hosts.get(&host.name) {
                    Some(_) => hosts.set(host.clone()),
                    None => hosts.add(host.clone()),
                };
                put.map_err(Invalid::Access)
            }
            Change::HostRemoved { name } => is(self.hosts.get(name).is_some(), Invalid::NotThere),
            Change::PortalPut { portal } => {
                let taken = |p: &base::view::Portal| p.id == portal.id || p.address == portal.address;
                let number = portal.id.0 < u32::from(u16::MAX) && portal_number(portal.id) > 0;
                is(number && !self.portals.iter().any(taken), Invalid::PortalTaken)
            }
            Change::PortalRemoved { id } => is(self.portals.iter().any(|p| p.id == *id), Invalid::NotThere),
            Change::PortalsCounted { .. } => Ok(()),
            Change::Listed { row, .. } => is(!row.drives.is_empty(), Invalid::Unsound),
            Change::Unlisted { list, pool } => self.is_listed(*list, *pool),
            Change::PoolCame { config, generation, record } => {
                is(self.pool(config.uuid).is_none(), Invalid::IsThere)?;
                is(*generation > 0, Invalid::NotLater)?;
                self.check_config(config, *generation)?;
                check_members(config, record)
            }
            Change::PoolLeft { pool } => is(self.pool(*pool).is_some(), Invalid::NotThere),
            Change::Configured { pool, generation, edits } => self.after(*pool, *generation, edits).map(drop),
            Change::DriveMoved { pool, drive, .. } => {
                let config = &self.pool(*pool).ok_or(Invalid::NotThere)?.config;
                is(config.has_drive(*drive), Invalid::NotThere)
            }
            Change::Member { record } => {
                let pool = self.pool(record.pool).ok_or(Invalid::NotThere)?;
                let same = record.incarnation == pool.record.incarnation;
                let later = record.counter > pool.record.counter;
                let settled = same && record.counter == pool.record.counter;
                is(later || settled && record.settled >= pool.record.settled, Invalid::NotLater)?;
                check_members(&pool.config, record)
            }
            Change::PoolAway { row, config, .. } => {
                let fits = config.as_ref().is_none_or(|c| c.uuid == row.uuid);
                is(fits, Invalid::Unsound)
            }
            Change::AwayEnded { pool } => {
                is(self.away.iter().any(|a| a.row.uuid == *pool), Invalid::NotThere)
            }
        }
    }

    /// What a pool is after these edits of its configuration.
    ///
    /// # Errors
    /// They may not happen, and why.
    pub fn after(&self, pool: Uuid, generation: u64, edits: &[Edit]) -> Result<Pool, Invalid> {
        let was = self.pool(pool).ok_or(Invalid::NotThere)?;
        let next = was.after(generation, edits)?;
        self.check_config(&next.config, generation)?;
        Ok(next)
    }

    fn is_listed(&self, list: List, pool: Uuid) -> Result<(), Invalid> {
        let there = self.list(list).iter().any(|r| r.uuid == pool);
        if there { Ok(()) } else { Err(Invalid::NotThere) }
    }

    fn check_config(&self, config: &PoolConfig, generation: u64) -> Result<(), Invalid> {
        if !config.is_sound() {
            return Err(Invalid::Unsound);
        }
        if config.slot(generation).encode().is_none() {
            return Err(Invalid::TooLarge);
        }
        let others = || self.pools.iter().map(|p| &p.config).filter(|c| c.uuid != config.uuid);
        let numbers: BTreeSet<u32> = config.grants.iter().map(|g| g.nsid).collect();
        let of_others = || others().flat_map(|c| c.grants.iter()).map(|g| g.nsid);
        let taken = others().any(|c| c.name == config.name) || of_others().any(|n| numbers.contains(&n));
        if taken { Err(Invalid::Taken) } else { Ok(()) }
    }
}

impl Pool {
    /// This pool after these edits, before the rest of the state is looked at.
    pub(in crate::steward) fn after(&self, generation: u64, edits: &[Edit]) -> Result<Self, Invalid> {
        if generation <= self.generation {
            return Err(Invalid::NotLater);
        }
        let mut next = self.clone();
        for edit in edits {
            next.config.check_edit(edit)?;
            next.config.edit(edit, generation);
        }
        next.generation = generation;
        Ok(next)
    }
}

impl PoolConfig {
    fn has_drive(&self, drive: Uuid) -> bool {
        self.arrays.iter().flat_map(|a| &a.legs).any(|l| l.drive == drive)
            || self.extras.spares.iter().any(|s| s.drive == drive)
    }

    /// What of an edit must be there before, so that applying it cannot fail.
    fn check_edit(&self, edit: &Edit) -> Result<(), Invalid> {
        let is = |there: bool, why: Invalid| if there { Ok(()) } else { Err(why) };
        let volume = |uuid: Uuid| is(self.volumes.by_uuid(uuid).is_some(), Invalid::NotThere);
        let array = |n: u32| self.arrays.get(n as usize).ok_or(Invalid::NotThere);
        match edit {
            Edit::Renamed { name } => is(volume::check_name(name).is_ok(), Invalid::Unsound),
            Edit::Held { .. } | Edit::MapsBegun {} | Edit::MapsEnded {} | Edit::AllReturned {} => Ok(()),
            Edit::DriveBlock { bytes } => is([512, 4096].contains(bytes), Invalid::Unsound),
            Edit::VolumePut { volume } => {
                let fits = volume::check_size(volume.bytes, volume.block_bytes).is_ok()
                    && volume::check_name(&volume.name).is_ok()
                    && volume.map.granules() >= volume::Volume::granules_for(volume.bytes);
                is(fits, Invalid::Unsound)?;
                let known = self.volumes.by_uuid(volume.uuid);
                let named = self.volumes.by_name(&volume.name);
                is(named.is_none_or(|v| v.uuid == volume.uuid), Invalid::Taken)?;
                is(known.is_some() || self.volumes.iter().len() < volume::VOLUMES_MAX, Invalid::TooLarge)
            }
            Edit::VolumeRemoved { volume: uuid } => volume(*uuid),
            Edit::Numbered { volume: uuid, nsid } => {
                volume(*uuid)?;
                let mut others = self.grants.iter().filter(|g| g.volume != *uuid);
                is((1..=NSID_MAX).contains(nsid), Invalid::Unsound)?;
                is(!others.any(|g| g.nsid == *nsid), Invalid::Taken)
            }
            Edit::Exported { volume: uuid, grant } => {
                is(self.grants.of(*uuid).is_some(), Invalid::NotThere)?;
                let names = grant.nqns.len().max(grant.iqns.len());
                let named = !grant.nqns.is_empty() || !grant.iqns.is_empty();
                is(named && names <= access::NAMES_MAX && grant.lun <= access::LUN_MAX, Invalid::Unsound)
            }
            Edit::Unexported { volume: uuid, .. }
            | Edit::Capped { volume: uuid, .. }
            | Edit::Weighed { volume: uuid, .. } => volume(*uuid),
            Edit::Scrubbed { scrub } => {
                let marks = scrub.run.as_ref().map_or(0, |run| run.at.len());
                is(marks <= self.arrays.len(), Invalid::Unsound)
            }
            Edit::SpaceReturned { runs } | Edit::SpaceFreed { runs } => {
                let end = self.map.bytes() / volume::GRANULE_BYTES;
                let inside = |r: &volume::Run| r.first.checked_add(r.count).is_some_and(|e| e <= end);
                is(runs.iter().all(|r| r.count > 0 && inside(r)), Invalid::Unsound)
            }
            Edit::ArraysAdded { rows, map } => {
                is(map.arrays() == self.arrays.len() + rows.len(), Invalid::Unsound)?;
                is(rows.iter().all(super::config::ArrayRow::has_its_legs), Invalid::Members)
            }
            Edit::ArraysRemoved { first, map } => {
                is(*first > 0 && (*first as usize) < self.arrays.len(), Invalid::NotThere)?;
                is(map.arrays() == *first as usize, Invalid::Unsound)
            }
            Edit::LegPut { array: n, leg, row } => {
                let (legs, mirror) = array(*n).map(|a| (&a.legs, a.mirror))?;
                let fits = (*leg as usize) < legs.len()
                    || mirror && *leg as usize == legs.len() && legs.len() < array::PLACES_MAX;
                is(fits, Invalid::NotThere)?;
                is(!self.has_drive(row.drive), Invalid::IsThere)
            }
            Edit::LegRemoved { array: n, leg } => {
                let legs = array(*n).map(|a| a.legs.len())?;
                is((*leg as usize) < legs && legs > 1, Invalid::Members)
            }
            Edit::SparePut { row } => is(!self.has_drive(row.drive), Invalid::IsThere),
            Edit::SpareRemoved { drive } => {
                is(self.extras.spares.iter().any(|s| s.drive == *drive), Invalid::NotThere)
            }
            Edit::ReplacementPut { .. } | Edit::Shared { .. } => Ok(()),
            Edit::FailedPut { row } => is(!row.drive.is_nil(), Invalid::Unsound),
            Edit::FailedRemoved { drive } => is(self.extras.failed(*drive).is_some(), Invalid::NotThere),
            Edit::ReplacementRemoved { old } => {
                is(self.extras.replacements.iter().any(|r| r.old == *old), Invalid::NotThere)
            }
        }
    }
}

/// A record of the pool's arrays, or of more that are about to come; each has a leg in sync.
fn check_members(config: &PoolConfig, record: &MembershipRecord) -> Result<(), Invalid> {
    let fits = record.pool == config.uuid && record.arrays.len() >= config.arrays.len();
    let alive = |a: &array::format::RecordArray| a.legs.iter().any(|l| l.state == LegState::InSync);
    if fits && record.arrays.iter().all(alive) { Ok(()) } else { Err(Invalid::Members) }
}
