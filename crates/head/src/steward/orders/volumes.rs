//! Orders about volumes, hosts, portals and exports: check, write down, publish, answer.

use crate::layout::PoolId;
use crate::order::{Answered, Event, HostChecked, HostSettings, Refusal, Reply, VolumeCaps};
use crate::steward::context::head::{HeadContext, PortalContext};
use crate::steward::context::pool::{PoolContext, Resting};
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{HOSTS, PORTALS, contradict, protocol_word};
use crate::steward::sessions::connected::{Use, refuse_in_use};
use crate::steward::state::{Change, Edit};
use access::{Grant, Host, LUN_MAX, lowest_free};
use base::view::NSID_MAX;
use base::view::{Moves, Portal, Protocol, Secret};
use base::{Bug, Duration, Uuid, planted};
use core::net::SocketAddr;
use finding::{
    HostEvent, HostRefusal, NetFault, PoolRefusal, PortalEvent, PortalRefusal, VolumeEvent, VolumeNotice,
    VolumeRefusal,
};
use volume::{Caps, Map, Run, Volume, WEIGHT, WEIGHTS};

/// How long the manager may take to say where an address is, and shards to open a portal.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(1);
const OPEN_PATIENCE: Duration = Duration::from_secs(5);

/// How long the space of a removed volume is given to nobody: its last writes may still be at the drives, and
/// none outlives promise 7's bound.
const QUARANTINE: Duration = Duration::from_secs(10);

/// The lowest cap, commands a second.
const IOPS_LEAST: u32 = 10;

fn runs(list: Vec<(u64, u64)>) -> Vec<Run> {
    list.into_iter().map(|(first, count)| Run { first, count }).collect()
}

impl Procedures {
    fn note(&self, what: String, event: impl Into<Event>) {
        let now = self.cx.now();
        self.context_mut().happened(now, what, event);
    }
    /// The host of this name.
    fn host_named(&self, name: &str) -> Result<Host, Refusal> {
        let host = self.context().hosts().get(name).cloned();
        if host.is_none() {
            self.check_known(HOSTS)?;
            self.check_rows(HOSTS, |row| row.text("name") == Some(name))?;
        }
        host.ok_or_else(|| HostRefusal::HostUnknown { host: name.into() }.into())
    }

    /// Order: create a volume.
    pub(crate) async fn volume_create(
        &self,
        pool: &str,
        name: &str,
        bytes: u64,
        block_bytes: Option<u32>,
    ) -> Answered {
        let (id, usual, uuid, nsid, mut space, freeing, unseen) = {
            let mut context = self.context_mut();
            let uuid = context.new_uuid();
            let p = context.pool_named(pool)?;
            let block = block_bytes.unwrap_or(p.config().block_bytes);
            p.config().volumes.check_new(name, bytes, block, p.config().drive_block_bytes)?;
            if let Some(spare) = p.spare_made_useless(block) {
                return Err(VolumeRefusal::SpareBlockTooLarge {
                    spare: spare.path.clone(),
                    pool: pool.into(),
                    block_bytes: block,
                }
                .into());
            }
            let unseen = p.spares_unseen(block);
            let used = context.configs().flat_map(|c| c.grants.iter()).map(|g| g.nsid);
            let nsid = lowest_free(used, 1, NSID_MAX)?;
            (p.id, p.config().block_bytes, uuid, nsid, p.space(), p.resting_bytes(), unseen)
        };
        let want = Volume::granules_for(bytes);
        let taken = space.take(want, None).map_err(|e| VolumeRefusal::NoSpaceForVolume {
            pool: pool.into(),
            free_bytes: e.free * volume::GRANULE_BYTES,
            freeing_bytes: freeing,
            seconds: QUARANTINE.as_secs(),
            bytes,
        })?;
        let map = Map::new(&runs(taken)).ok_or(VolumeRefusal::SpaceTooFragmented)?;
        let block_bytes = block_bytes.unwrap_or(usual);
        let volume = Volume { uuid, naa: volume::naa(uuid), name: name.into(), block_bytes, bytes, map };
        let edits = vec![Edit::VolumePut { volume }, Edit::Numbered { volume: uuid, nsid }];
        self.configure(id, edits).await?;
        {
            let mut context = self.context_mut();
            let volume = context.new_volume();
            if let Some(p) = context.pool_mut(id) {
                p.volume_ids.insert(uuid, volume);
                p.made_here.insert(uuid);
            }
        }
        self.publish().await;
        self.note(format!("volume {pool}/{name}"), VolumeEvent::VolumeCreated);
        let notice = |spare| VolumeNotice::SpareNotSeen { spare }.into();
        Ok(Reply::Created { uuid, notices: unseen.into_iter().map(notice).collect() })
    }

    /// Order: resize.
    pub(crate) async fn volume_resize(
        &self,
        name: &str,
        bytes: u64,
        force: bool,
        disconnect: bool,
    ) -> Answered {
        let (id, uuid, old) = {
            let context = self.context();
            let (id, uuid) = context.volume_named(name)?;
            let p = context.pool(id).expect("just found");
            (id, uuid, p.config().volumes.by_uuid(uuid).expect("just found").clone())
        };
        volume::check_size(bytes, old.block_bytes)?;
        if bytes > old.bytes {
            self.clear_tail(id, uuid).await?;
        }
        let (pool, pool_name, mut space, freeing) = {
            let context = self.context();
            let p = context.pool(id).ok_or(PoolRefusal::PoolGone)?;
            (p.config().uuid, p.config().name.clone(), p.space(), p.resting_bytes())
        };
        let mut v = old;
        if bytes < v.bytes && !(force && disconnect) {
            // What they hold beyond it hosts lose under their feet, as with a volume that goes.
            self.ask_other_hosts().await;
            let hosts =
                if disconnect { vec![] } else { self.context().users_of_volumes(pool, Some(uuid), None) };
            let volume = name.into();
            if !force {
                return Err(
                    VolumeRefusal::ShrinkLosesData { volume, old_bytes: v.bytes, bytes, hosts }.into()
                );
            }
            refuse_in_use(hosts, |hosts| VolumeRefusal::ShrinkInUse { volume, bytes, hosts })?;
        }
        let (have, want) = (v.map.granules(), Volume::granules_for(bytes));
        let mut freed = vec![];
        if want > have {
            let after = v.map.runs().last().map(|r| r.first + r.count);
            let taken = space.take(want - have, after).map_err(|e| VolumeRefusal::NoSpaceToGrow {
                pool: pool_name,
                volume: name.into(),
                free_bytes: e.free * volume::GRANULE_BYTES,
                freeing_bytes: freeing,
                seconds: QUARANTINE.as_secs(),
                more_bytes: (want - have) * volume::GRANULE_BYTES,
                bytes,
            })?;
            v.map = v.map.grown(&runs(taken)).ok_or(VolumeRefusal::SpaceTooFragmented)?;
        } else {
            (v.map, freed) = v.map.shrunk(want);
        }
        let shrinks = bytes < v.bytes;
        v.bytes = bytes;
        self.configure(id, vec![Edit::VolumePut { volume: v }, returned(&freed)]).await?;
        self.rest_of(id, freed);
        if let Some(p) = self.context_mut().pool_mut(id).filter(|_| shrinks) {
            let now = self.cx.now();
            p.shrunk.retain(|_, until| *until > now);
            p.shrunk.insert(uuid, now + QUARANTINE);
        }
        self.publish().await;
        self.note(format!("volume {name}"), VolumeEvent::VolumeResized { bytes });
        Ok(Reply::Done)
    }

    /// Order: rename.
    pub(crate) async fn volume_rename(&self, name: &str, new: &str) -> Answered {
        let (id, volume) = {
            let context = self.context();
            let (id, uuid) = context.volume_named(name)?;
            let volumes = &context.pool(id).expect("just found").config().volumes;
            volumes.check_free(new)?;
            (id, Volume { name: new.into(), ..volumes.by_uuid(uuid).expect("just found").clone() })
        };
        self.configure(id, vec![Edit::VolumePut { volume }]).await?;
        self.publish().await;
        self.note(format!("volume {name}"), VolumeEvent::VolumeRenamed { name: new.into() });
        Ok(Reply::Done)
    }

    /// Order: caps and weight.
    pub(crate) async fn volume_caps(&self, name: &str, caps: VolumeCaps) -> Answered {
        let (id, uuid, old, weighed) = {
            let context = self.context();
            let (id, uuid) = context.volume_named(name)?;
            let config = &context.pool(id).expect("just found").config();
            (id, uuid, config.caps_of(uuid), config.weight_of(uuid))
        };
        let VolumeCaps { iops_max, mbps_max, weight } = caps;
        if let Some(n) = weight.filter(|n| !WEIGHTS.contains(n)) {
            return Err(VolumeRefusal::WeightInvalid {
                volume: name.into(),
                weight: n,
                weight_min: *WEIGHTS.start(),
                weight_max: *WEIGHTS.end(),
                weight_default: WEIGHT,
            }
            .into());
        }
        // Below, a host's own timers would end commands that wait their turn behind a few deep queues.
        if let Some(n) = iops_max.filter(|n| (1..IOPS_LEAST).contains(n)) {
            let volume = name.into();
            return Err(VolumeRefusal::IopsTooLow { volume, iops_max: n, iops_min: IOPS_LEAST }.into());
        }
        let new =
            Caps { iops_max: iops_max.unwrap_or(old.iops_max), mbps_max: mbps_max.unwrap_or(old.mbps_max) };
        let weight = weight.unwrap_or(weighed);
        if new == old && weight == weighed {
            return Ok(Reply::Done);
        }
        let capped = (new != old).then_some(Edit::Capped { volume: uuid, caps: new });
        let weighs = (weight != weighed).then_some(Edit::Weighed { volume: uuid, weight });
        self.configure(id, capped.into_iter().chain(weighs).collect()).await?;
        self.publish().await;
        if weight != weighed {
            self.note(format!("volume {name}"), VolumeEvent::VolumeWeighed { weight, was: weighed });
        }
        if new != old {
            let Caps { iops_max, mbps_max } = new;
            self.note(format!("volume {name}"), VolumeEvent::VolumeCapped { iops_max, mbps_max });
        }
        Ok(Reply::Done)
    }

    /// Order: remove.
    pub(crate) async fn volume_remove(&self, name: &str, force: bool, disconnect: bool) -> Answered {
        let (id, uuid, pool, grants) = {
            let context = self.context();
            let (id, uuid) = context.volume_named(name)?;
            let config = &context.pool(id).expect("just found").config();
            (id, uuid, config.uuid, config.grants.of(uuid).map_or(vec![], |g| g.grants.clone()))
        };
        if let Some(first) = grants.first().filter(|_| !force) {
            let host = self.context().hosts().iter().find(|h| first.is_for(h)).map(|h| h.name.clone());
            return Err(
                VolumeRefusal::VolumeIsExported { volume: name.into(), hosts: grants.len(), host }.into()
            );
        }
        if !disconnect {
            self.ask_other_hosts().await;
            let volume = name.to_string();
            let hosts = self.context().users_of_volumes(pool, Some(uuid), None);
            refuse_in_use(hosts, |hosts| VolumeRefusal::RemoveInUse { volume, force, hosts })?;
            self.check_not_written(id, uuid, name, force).await?;
        }
        let freed: Vec<Run> = {
            let context = self.context();
            let config = &context.pool(id).expect("orders come one by one").config();
            config.volumes.by_uuid(uuid).expect("just found").map.runs().collect()
        };
        self.configure(id, vec![Edit::VolumeRemoved { volume: uuid }, returned(&freed)]).await?;
        {
            let mut context = self.context_mut();
            if let Some(gone) = context.pool_mut(id).and_then(|p| p.volume_ids.remove(&uuid)) {
                context.times.forget(gone);
            }
        }
        self.rest_of(id, freed);
        self.publish().await;
        self.note(format!("volume {name}"), VolumeEvent::VolumeRemoved);
        Ok(Reply::Done)
    }
    /// They rest until no write to them can be left at a drive.
    fn rest_of(&self, pool: PoolId, freed: Vec<Run>) {
        let until = self.cx.now() + QUARANTINE;
        if let Some(p) = self.context_mut().pool_mut(pool) {
            p.resting.extend(freed.into_iter().map(|run| Resting { run, until }));
        }
    }

    /// Order: a new host.
    pub(crate) async fn host_add(&self, name: String, settings: HostSettings) -> Answered {
        let host = {
            let mut context = self.context_mut();
            let id = context.new_host();
            merged(Host { id, name: name.clone(), ..Host::default() }, settings)
        };
        // The same change replaces a host that is there.
        if self.context().hosts().get(&name).is_some() {
            return Err(HostRefusal::HostNameTaken { host: name }.into());
        }
        self.propose(Change::HostPut { host }).await?;
        self.publish().await;
        self.note(format!("host {name}"), HostEvent::HostAdded);
        let notices = self.context().open_by_name(None, Some(&name));
        Ok(Reply::Created { uuid: Uuid::default(), notices: notices.into_iter().map(Into::into).collect() })
    }

    /// Order: change a host. Its exports follow its names.
    pub(crate) async fn host_set(&self, name: &str, settings: HostSettings, disconnect: bool) -> Answered {
        let old = self.host_named(name)?;
        let mut hosts = self.context().hosts().clone();
        hosts.set(merged(old.clone(), settings))?;
        let new = hosts.get(name).expect("just set").clone();
        // CHAP is of iSCSI: what an NVMe host must prove does not change with it.
        let proof_changed = old.chap_secret != new.chap_secret
            || old.mutual_secret != new.mutual_secret
            || old.chap_user != new.chap_user;
        if !disconnect {
            let all_iqns: Vec<&String> = old.iqns.iter().collect();
            let nqns: Vec<&String> = old.nqns.iter().filter(|n| !new.nqns.contains(n)).collect();
            let iqns: Vec<&String> = old.iqns.iter().filter(|n| !new.iqns.contains(n)).collect();
            let names_stay = nqns.is_empty() && iqns.is_empty();
            let ends = |u: &Use<'_>| {
                u.is_by(Protocol::Nvme, &nqns)
                    || u.is_by(Protocol::Iscsi, if proof_changed { &all_iqns } else { &iqns })
            };
            self.ask_other_hosts().await;
            let hosts = self.context().connected_host(old.id, ends);
            refuse_in_use(hosts, |hosts| {
                if names_stay {
                    HostRefusal::HostSecretInUse { hosts }
                } else {
                    HostRefusal::HostNameInUse { hosts }
                }
            })?;
        }
        // The file first: until the pools follow, exports find the host by the names that it keeps.
        self.propose(Change::HostPut { host: new.clone() }).await?;
        let edited = self.edit_exports(&old, |volume, grant| {
            let renamed = Grant::to(&new, grant.lun);
            let before = (!renamed.shares_name(grant)).then(|| grant.clone());
            let before = before.map(|grant| Edit::Unexported { volume, grant });
            let after = (renamed != *grant).then_some(Edit::Exported { volume, grant: renamed });
            before.into_iter().chain(after).collect()
        });
        let edited = edited.await;
        // What is decided of the host is in force, though a pool could not follow.
        self.publish().await;
        edited?;
        self.note(format!("host {name}"), HostEvent::HostChanged);
        Ok(Reply::Done)
    }

    /// Order: whether a host has these secrets, which are shown to nobody.
    pub(crate) fn host_check(&self, name: &str, chap: Option<&Secret>, mutual: Option<&Secret>) -> Answered {
        let host = self.host_named(name)?;
        let is = |asked: Option<&Secret>, has: &Option<Secret>| asked.is_some() && asked == has.as_ref();
        let chap_secret = is(chap, &host.chap_secret);
        Ok(Reply::HostChecked(HostChecked { chap_secret, mutual_secret: is(mutual, &host.mutual_secret) }))
    }

    /// Order: forget a host.
    pub(crate) async fn host_remove(&self, name: &str, force: bool, disconnect: bool) -> Answered {
        let host = self.host_named(name)?;
        let exports: usize = self.context().configs().map(|c| c.grants.for_host(&host).count()).sum();
        if exports > 0 && !force {
            return Err(HostRefusal::HostHasExports { host: name.into(), volumes: exports }.into());
        }
        if !disconnect {
            self.ask_other_hosts().await;
            let hosts = self.context().connected_host(host.id, |_| true);
            refuse_in_use(hosts, |hosts| HostRefusal::HostRemoveInUse { force, hosts })?;
        }
        // Exports lie on the drives. None is taken while the file of hosts cannot be changed.
        self.write_again(HOSTS).await?;
        let taken =
            self.edit_exports(&host, |volume, grant| vec![Edit::Unexported { volume, grant: grant.clone() }]);
        let removed = match taken.await {
            Ok(()) => self.propose(Change::HostRemoved { name: name.into() }).await,
            Err(e) => Err(e),
        };
        // What was taken from the host is, though the rest could not be.
        self.publish().await;
        removed?;
        self.note(format!("host {name}"), HostEvent::HostRemoved);
        Ok(Reply::Done)
    }
    /// Edits what is exported to a host, in every pool that is here.
    async fn edit_exports(
        &self,
        host: &Host,
        edit: impl Fn(Uuid, &Grant) -> Vec<Edit>,
    ) -> Result<(), Refusal> {
        let pools: Vec<(PoolId, Vec<Edit>)> = {
            let context = self.context();
            let edits =
                |p: &PoolContext| p.config().grants.given_to(host).flat_map(|(v, g)| edit(v, g)).collect();
            context.pools.iter().map(|p| (p.id, edits(p))).collect()
        };
        for (id, edits) in pools.into_iter().filter(|(_, edits)| !edits.is_empty()) {
            self.configure(id, edits).await?;
        }
        Ok(())
    }

    /// Order: listen.
    pub(crate) async fn portal_add(
        &self,
        protocol: Protocol,
        address: SocketAddr,
        moves: Option<Moves>,
        head: Option<u8>,
    ) -> Answered {
        let head = head.unwrap_or(self.context().own_number());
        let what = format!("portal {} {address}", protocol_word(protocol));
        if address.port() == 0 {
            return Err(PortalRefusal::PortalWithoutPort { address: address.to_string() }.into());
        }
        self.check_moves(address, moves)?;
        let taken =
            self.context().portals.iter().find(|p| p.portal.address == address).map(|p| p.portal.protocol);
        if let Some(there) = taken {
            let protocol = protocol_word(there).into();
            return Err(PortalRefusal::PortalTaken { protocol, address: address.to_string() }.into());
        }
        let (last, id) = {
            let mut context = self.context_mut();
            let last = context.last_portal();
            let id = context.new_portal();
            context.put_portal(Portal { id, protocol, address, head, moves });
            context.portals.last_mut().expect("just added").is_tried(true);
            (last, id)
        };
        let address_failure = match moves {
            None => None,
            Some(_) => {
                // What was said before is of another portal.
                let told = self.take_addresses().await;
                match self.context().addresses.whereabouts(address.ip()).filter(|_| told) {
                    Some(Ok(_)) => None,
                    Some(Err(why)) => {
                        Some(PortalRefusal::AddressNotHere { address: address.to_string(), why: why.clone() })
                    }
                    None => Some(PortalRefusal::AddressNotConfirmed {
                        address: address.to_string(),
                        seconds: ADDRESS_PATIENCE.as_secs(),
                    }),
                }
            }
        };
        self.publish().await;
        // What the other head's shards come to is no reason to refuse it: they try again.
        let results = |context: &HeadContext| {
            let here =
                |p: &&PortalContext| p.portal.id == id && context.head_of(&p.portal) == context.own_number();
            context.portals.iter().find(here).map_or(vec![], |p| p.results.clone())
        };
        let procedures = self.clone();
        let told = move || results(&procedures.context()).iter().all(Option::is_some);
        self.cx.until_within(OPEN_PATIENCE, told).await;
        let listen_failure = {
            let context = self.context();
            let other = context.system.as_ref().map(|s| s.member().me().other().letter().to_string());
            let head_of_address = other.filter(|_| moves.is_none());
            let failed = |why: NetFault| PortalRefusal::PortalFailed {
                address: address.to_string(),
                why,
                head: head_of_address.clone(),
            };
            let met =
                || context.portals.iter().find(|p| p.portal.id != id && meet(p.portal.address, address));
            results(&context).into_iter().find_map(|r| match r {
                Some(Err(base::NetError::InUse)) => Some(match met() {
                    Some(other) => PortalRefusal::PortalOverlaps {
                        address: address.to_string(),
                        protocol: protocol_word(other.portal.protocol).into(),
                        other: other.portal.address.to_string(),
                        head: head_of_address.clone(),
                    },
                    None => failed(NetFault::InUse),
                }),
                // It is the other head's, which listens there once it serves.
                Some(Err(base::NetError::NoAddress)) if head != context.own_number() => None,
                Some(Err(e)) => Some(failed(e.into())),
                Some(Ok(_)) => None,
                None => Some(PortalRefusal::PortalOpenTimedOut {
                    address: address.to_string(),
                    seconds: OPEN_PATIENCE.as_secs(),
                    head: head_of_address.clone(),
                }),
            })
        };
        let result = match address_failure.or(listen_failure) {
            Some(failure) => Err(failure.into()),
            None => {
                self.propose(Change::PortalPut { portal: Portal { id, protocol, address, head, moves } })
                    .await
            }
        };
        if let Err(r) = result {
            let row = {
                let mut context = self.context_mut();
                let at = context.portals.iter().position(|p| p.portal.id == id).expect("just added");
                context.portals.remove(at)
            };
            self.publish().await;
            moves.into_iter().for_each(|moves| self.let_address_go(address.ip(), moves));
            // The next one may have its number, unless what a shard says late could be taken for its.
            if row.results.iter().all(Option::is_some) {
                self.context_mut().portal_given_last(last);
            }
            return Err(r);
        }
        if let Some(row) = self.context_mut().portals.iter_mut().find(|p| p.portal.id == id) {
            row.is_tried(false);
        }
        self.note(what, PortalEvent::PortalAdded);
        self.announce_addresses();
        Ok(Reply::Done)
    }
    /// Refuses an address that cannot move so.
    fn check_moves(&self, address: SocketAddr, moves: Option<Moves>) -> Result<(), Refusal> {
        let Some(moves) = moves else { return Ok(()) };
        if let Err(why) = moves.check(address.ip()) {
            let address = address.ip().to_string();
            return Err(PortalRefusal::PortalImmovable { address, why }.into());
        }
        let new =
            Portal { id: base::PortalId(0), protocol: Protocol::Nvme, address, head: 0, moves: Some(moves) };
        match self.context().portals.iter().find(|p| contradict(&p.portal, &new)) {
            Some(other) => {
                let protocol = protocol_word(other.portal.protocol).into();
                let address = other.portal.address.to_string();
                Err(PortalRefusal::PortalMovesOtherwise { protocol, address }.into())
            }
            None => Ok(()),
        }
    }

    /// Order: listen no more.
    pub(crate) async fn portal_remove(
        &self,
        protocol: Protocol,
        address: SocketAddr,
        disconnect: bool,
    ) -> Answered {
        let (word, written) = (protocol_word(protocol).to_string(), address.to_string());
        let what = format!("portal {word} {address}");
        let is_it = |p: &&PortalContext| (p.portal.protocol, p.portal.address) == (protocol, address);
        let found = self.context().portals.iter().find(is_it).map(|p| (p.portal.id, p.portal.moves));
        let Some((id, moves)) = found else {
            self.check_known(PORTALS)?;
            self.check_rows(PORTALS, |row| row.text("address") == Some(written.as_str()))?;
            return Err(PortalRefusal::PortalUnknown { protocol: word, address: written }.into());
        };
        if !disconnect {
            self.ask_other_hosts().await;
            let hosts = self.context().users_of_portal(id);
            refuse_in_use(hosts, |hosts| PortalRefusal::PortalInUse {
                protocol: word,
                address: written,
                hosts,
            })?;
        }
        self.propose(Change::PortalRemoved { id }).await?;
        self.context_mut().portals.retain(|p| p.portal.id != id);
        self.publish().await;
        moves.into_iter().for_each(|moves| self.let_address_go(address.ip(), moves));
        self.note(what, PortalEvent::PortalRemoved);
        Ok(Reply::Done)
    }

    /// Order: export.
    pub(crate) async fn export(&self, volume: &str, host: &str, lun: Option<u16>) -> Answered {
        let (id, uuid, host, has_it, lun) = {
            let context = self.context();
            let (id, uuid) = context.volume_named(volume)?;
            let host = self.host_named(host)?;
            let used: Vec<u32> = context
                .configs()
                .flat_map(|c| c.grants.for_host(&host))
                .map(|(_, _, l)| u32::from(l))
                .collect();
            let lun = match lun {
                Some(lun) if lun > LUN_MAX => {
                    return Err(HostRefusal::LunTooLarge { lun, lun_max: LUN_MAX }.into());
                }
                Some(lun) if used.contains(&u32::from(lun)) => {
                    return Err(HostRefusal::LunTaken { lun }.into());
                }
                Some(n) => n,
                None => lowest_free(used.into_iter(), 0, u32::from(LUN_MAX))? as u16,
            };
            let grants = &context.pool(id).expect("just found").config().grants;
            let has_it = grants.given_to(&host).any(|(volume, _)| volume == uuid);
            (id, uuid, host, has_it, lun)
        };
        if has_it {
            return Err(VolumeRefusal::ExportedAlready { volume: volume.into(), host: host.name }.into());
        }
        self.configure(id, vec![Edit::Exported { volume: uuid, grant: Grant::to(&host, lun) }]).await?;
        self.publish().await;
        self.note(format!("volume {volume}"), VolumeEvent::VolumeExported { host: host.name, lun });
        Ok(Reply::Done)
    }

    /// Order: unexport.
    pub(crate) async fn unexport(&self, volume: &str, host: &str, disconnect: bool) -> Answered {
        let (id, uuid, host, pool, grant) = {
            let context = self.context();
            let (id, uuid) = context.volume_named(volume)?;
            let host = self.host_named(host)?;
            let config = &context.pool(id).expect("just found").config();
            let grant = config.grants.given_to(&host).find(|(volume, _)| *volume == uuid);
            let grant = grant.map(|(_, grant)| grant.clone());
            (id, uuid, host, config.uuid, grant)
        };
        let Some(grant) = grant else {
            return Err(VolumeRefusal::NotExported { volume: volume.into(), host: host.name }.into());
        };
        if !disconnect {
            self.ask_other_hosts().await;
            let (volume, name) = (volume.into(), host.name.clone());
            let hosts = self.context().users_of_volumes(pool, Some(uuid), Some(host.id));
            refuse_in_use(hosts, |hosts| VolumeRefusal::UnexportInUse { volume, host: name, hosts })?;
        }
        self.configure(id, vec![Edit::Unexported { volume: uuid, grant }]).await?;
        self.publish().await;
        self.note(format!("volume {volume}"), VolumeEvent::VolumeUnexported { host: host.name });
        Ok(Reply::Done)
    }
}

/// These runs are nobody's any more.
fn returned(freed: &[Run]) -> Edit {
    let handed_out = !freed.is_empty() && planted(Bug::UnclearedHandedOut);
    Edit::SpaceReturned { runs: if handed_out { vec![] } else { freed.to_vec() } }
}

/// A host with what an order says of it.
fn merged(mut host: Host, s: HostSettings) -> Host {
    host.nqns = s.nqns.unwrap_or(host.nqns);
    host.iqns = s.iqns.unwrap_or(host.iqns);
    host.chap_secret = s.chap_secret.unwrap_or(host.chap_secret);
    host.chap_user = s.chap_user.unwrap_or(host.chap_user);
    host.mutual_secret = s.mutual_secret.unwrap_or(host.mutual_secret);
    host
}

/// Whether a socket at one of these addresses keeps one at the other from listening.
fn meet(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port()
        && (a.ip() == b.ip() || [a, b].iter().any(|s| s.ip().to_canonical().is_unspecified()))
}
