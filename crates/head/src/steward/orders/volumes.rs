//! Orders about volumes, hosts, portals and exports: check, write down, publish, answer.

use crate::admission::caps::Caps;
use crate::admission::scheduler::{WEIGHT, WEIGHTS};
use crate::layout::PoolId;
use crate::order::{Answered, ErrorKind, HostSettings, Refusal, Reply, VolumeCaps, Weight};
use crate::steward::context::desk::{Desk, PortalDesk};
use crate::steward::context::pool::{PoolDesk, Resting};
use crate::steward::office::Office;
use crate::steward::record::texts::{contradict, protocol_word};
use crate::steward::sessions::connected::Use;
use crate::steward::state::{Change, Edit};
use crate::steward::words::{
    access_refusal, address_next, address_words, cannot_move, cannot_move_next, count, net_words, refuse,
    size, size_there, volume_refusal,
};
use access::{AccessError, Grant, Host, LUN_MAX, lowest_free};
use base::view::NSID_MAX;
use base::view::{Moves, Portal, Protocol};
use base::{Bug, Duration, Uuid, planted};
use core::net::SocketAddr;
use volume::{Map, Run, Volume, VolumeError};

/// How long the space of a removed volume is given to nobody: its last writes may still be at the drives, and
/// none outlives promise 7's bound.
const QUARANTINE: Duration = Duration::from_secs(10);

/// The lowest cap, commands a second.
const IOPS_LEAST: u32 = 10;

fn runs(list: Vec<(u64, u64)>) -> Vec<Run> {
    list.into_iter().map(|(first, count)| Run { first, count }).collect()
}

/// A size as a person types it, exactly.
fn typed(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let unit = units.into_iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1u64 << shift));
    unit.map_or(bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

impl Office {
    fn note(&self, what: String, message: &str) {
        let now = self.cx.now();
        self.desk_mut().event(now, Weight::Note, what, message);
    }

    /// Order: create a volume.
    pub(crate) async fn volume_create(
        &self,
        pool: &str,
        name: &str,
        bytes: u64,
        block_bytes: Option<u32>,
    ) -> Answered {
        let (id, usual, uuid, nsid, mut space, resting, unseen) = {
            let mut desk = self.desk_mut();
            let uuid = desk.new_uuid();
            let p = desk.pool_named(pool)?;
            let block = block_bytes.unwrap_or(p.config().block_bytes);
            p.config()
                .volumes
                .check_new(name, bytes, block, p.config().drive_block_bytes)
                .map_err(volume_refusal)?;
            if let Some(spare) = p.spare_made_useless(block) {
                let path = &spare.path;
                let message = format!(
                    "{path}, a spare of pool {pool}, takes no {block}-byte writes: with such a volume it could stand in for no drive"
                );
                let next =
                    format!("the same command with --block 4096, or millrace drive rm {path} before it");
                return Err(refuse(ErrorKind::Conflict, "block_bytes", message).then(next));
            }
            let unseen = p.spares_unseen(block);
            let used = desk.configs().flat_map(|c| c.grants.iter()).map(|g| g.nsid);
            let nsid = lowest_free(used, 1, NSID_MAX).map_err(access_refusal)?;
            (p.id, p.config().block_bytes, uuid, nsid, p.space(), p.resting_bytes(), unseen)
        };
        let want = Volume::granules_for(bytes);
        let taken = space.take(want, None).map_err(|e| {
            let free = e.free * volume::GRANULE_BYTES;
            let asked = format!("{} were asked for", size(bytes));
            no_space(pool, free, resting, want * volume::GRANULE_BYTES, &asked)
        })?;
        let map = Map::new(&runs(taken)).ok_or_else(|| volume_refusal(VolumeError::TooScattered))?;
        let block_bytes = block_bytes.unwrap_or(usual);
        let volume = Volume { uuid, naa: volume::naa(uuid), name: name.into(), block_bytes, bytes, map };
        let edits = vec![Edit::VolumePut { volume }, Edit::Numbered { volume: uuid, nsid }];
        self.configure(id, edits).await?;
        {
            let mut desk = self.desk_mut();
            let volume = desk.new_volume();
            if let Some(p) = desk.pool_mut(id) {
                p.volume_ids.insert(uuid, volume);
                p.made_here.insert(uuid);
            }
        }
        self.publish().await;
        self.note(format!("volume {pool}/{name}"), "it was created");
        let told = |path: String| {
            format!(
                "the spare {path} cannot be looked at: if it takes no 512-byte writes, it stands in for no drive from now on"
            )
        };
        Ok(Reply::Created { uuid, notices: unseen.into_iter().map(told).map(Into::into).collect() })
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
            let desk = self.desk();
            let (id, uuid) = desk.volume_named(name)?;
            let p = desk.pool(id).expect("just found");
            (id, uuid, p.config().volumes.by_uuid(uuid).expect("just found").clone())
        };
        volume::check_size(bytes, old.block_bytes).map_err(volume_refusal)?;
        if bytes > old.bytes {
            self.clear_tail(id, uuid).await?;
        }
        let (pool, pool_name, mut space, resting) = {
            let desk = self.desk();
            let gone = || refuse(ErrorKind::NotFound, "pool", "the pool is gone");
            let p = desk.pool(id).ok_or_else(gone)?;
            (p.config().uuid, p.config().name.clone(), p.space(), p.resting_bytes())
        };
        let mut v = old;
        if bytes < v.bytes && !(force && disconnect) {
            // What they hold beyond it hosts lose under their feet, as with a volume that goes.
            let command = format!("millrace volume resize {name} --size {} --force", typed(bytes));
            let what = format!("what lies beyond {} of volume {name}", size(bytes));
            let yes = format!("{command} --yes");
            self.ask_other_hosts().await;
            let used = self.desk().check_volumes_unused(pool, Some(uuid), None, &what, &yes).err();
            let used = used.filter(|_| !disconnect);
            if !force {
                let message = format!(
                    "{name} would shrink from {} to {}: what lies beyond is lost",
                    size(v.bytes),
                    size(bytes)
                );
                // Both are said at once, and one command does it.
                let (message, next) = match &used {
                    Some(r) => (format!("{message}; {}", r.said()), yes),
                    None => (message, command),
                };
                return Err(refuse(ErrorKind::Unsafe, "bytes", message).then(next));
            }
            if let Some(r) = used {
                return Err(r);
            }
        }
        let (have, want) = (v.map.granules(), Volume::granules_for(bytes));
        let mut freed = vec![];
        if want > have {
            let after = v.map.runs().last().map(|r| r.first + r.count);
            let taken = space.take(want - have, after).map_err(|e| {
                let free = e.free * volume::GRANULE_BYTES;
                let more = (want - have) * volume::GRANULE_BYTES;
                let asked = format!("{name} needs {} more for {}", size(more), size(bytes));
                no_space(&pool_name, free, resting, more, &asked)
            })?;
            v.map = v.map.grown(&runs(taken)).ok_or_else(|| volume_refusal(VolumeError::TooScattered))?;
        } else {
            (v.map, freed) = v.map.shrunk(want);
        }
        let shrinks = bytes < v.bytes;
        v.bytes = bytes;
        self.configure(id, vec![Edit::VolumePut { volume: v }, returned(&freed)]).await?;
        self.rest_of(id, freed);
        if let Some(p) = self.desk_mut().pool_mut(id).filter(|_| shrinks) {
            let now = self.cx.now();
            p.shrunk.retain(|_, until| *until > now);
            p.shrunk.insert(uuid, now + QUARANTINE);
        }
        self.publish().await;
        self.note(format!("volume {name}"), &format!("its size is {} now", size(bytes)));
        Ok(Reply::Done)
    }

    /// Order: rename.
    pub(crate) async fn volume_rename(&self, name: &str, new: &str) -> Answered {
        let (id, volume) = {
            let desk = self.desk();
            let (id, uuid) = desk.volume_named(name)?;
            let volumes = &desk.pool(id).expect("just found").config().volumes;
            volumes.check_free(new).map_err(volume_refusal)?;
            (id, Volume { name: new.into(), ..volumes.by_uuid(uuid).expect("just found").clone() })
        };
        self.configure(id, vec![Edit::VolumePut { volume }]).await?;
        self.publish().await;
        self.note(format!("volume {name}"), &format!("it is called {new} now"));
        Ok(Reply::Done)
    }

    /// Order: caps and weight.
    pub(crate) async fn volume_caps(&self, name: &str, caps: VolumeCaps) -> Answered {
        let (id, uuid, old, weighed) = {
            let desk = self.desk();
            let (id, uuid) = desk.volume_named(name)?;
            let config = &desk.pool(id).expect("just found").config();
            (id, uuid, config.caps_of(uuid), config.weight_of(uuid))
        };
        let VolumeCaps { iops_max, mbps_max, weight } = caps;
        if let Some(n) = weight.filter(|n| !WEIGHTS.contains(n)) {
            let (least, most) = (WEIGHTS.start(), WEIGHTS.end());
            let message = format!("{n} is no weight: {least} to {most}, {WEIGHT} is the usual one");
            return Err(refuse(ErrorKind::Invalid, "weight", message)
                .then(format!("millrace volume set {name} --weight N")));
        }
        // Below, a host's own timers would end commands that wait their turn behind a few deep queues.
        if let Some(n) = iops_max.filter(|n| (1..IOPS_LEAST).contains(n)) {
            let message = format!("{n} commands a second would keep hosts waiting until they give up");
            return Err(refuse(ErrorKind::Invalid, "iops_max", message)
                .then(format!("millrace volume set {name} --iops-max {IOPS_LEAST}, or more, or none")));
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
            self.note(format!("volume {name}"), &format!("its weight is {weight} now, it was {weighed}"));
        }
        if new != old {
            let words = match (new.iops_max, new.mbps_max) {
                (0, 0) => "it has no caps now".to_string(),
                (iops, 0) => format!("it is capped at {iops} commands a second"),
                (0, mbps) => format!("it is capped at {mbps} MB/s"),
                (iops, mbps) => format!("it is capped at {iops} commands and {mbps} MB a second"),
            };
            self.note(format!("volume {name}"), &words);
        }
        Ok(Reply::Done)
    }

    /// Order: remove.
    pub(crate) async fn volume_remove(&self, name: &str, force: bool, disconnect: bool) -> Answered {
        let (id, uuid, pool, grants) = {
            let desk = self.desk();
            let (id, uuid) = desk.volume_named(name)?;
            let config = &desk.pool(id).expect("just found").config();
            (id, uuid, config.uuid, config.grants.of(uuid).map_or(vec![], |g| g.grants.clone()))
        };
        if let Some(first) = grants.first().filter(|_| !force) {
            let message = format!("{name} is exported to {}", count(grants.len(), "host"));
            let host = self.desk().hosts().iter().find(|h| first.is_for(h)).map(|h| h.name.clone());
            let force = format!("millrace volume rm {name} --force");
            return Err(refuse(ErrorKind::Unsafe, "volume", message).then(match host {
                Some(host) => format!("millrace unexport {name} --host {host}, or {force}"),
                None => force,
            }));
        }
        if !disconnect {
            let forced = if force { " --force" } else { "" };
            let command = format!("millrace volume rm {name}{forced} --yes");
            let what = format!("volume {name} with its data");
            self.ask_other_hosts().await;
            self.desk().check_volumes_unused(pool, Some(uuid), None, &what, &command)?;
            self.check_not_written(id, uuid, name, force).await?;
        }
        let freed: Vec<Run> = {
            let desk = self.desk();
            let config = &desk.pool(id).expect("orders come one by one").config();
            config.volumes.by_uuid(uuid).expect("just found").map.runs().collect()
        };
        self.configure(id, vec![Edit::VolumeRemoved { volume: uuid }, returned(&freed)]).await?;
        {
            let mut desk = self.desk_mut();
            if let Some(gone) = desk.pool_mut(id).and_then(|p| p.volume_ids.remove(&uuid)) {
                desk.times.forget(gone);
            }
        }
        self.rest_of(id, freed);
        self.publish().await;
        self.note(format!("volume {name}"), "it was removed");
        Ok(Reply::Done)
    }
    /// They rest until no write to them can be left at a drive.
    fn rest_of(&self, pool: PoolId, freed: Vec<Run>) {
        let until = self.cx.now() + QUARANTINE;
        if let Some(p) = self.desk_mut().pool_mut(pool) {
            p.resting.extend(freed.into_iter().map(|run| Resting { run, until }));
        }
    }

    /// Order: a new host.
    pub(crate) async fn host_add(&self, name: String, settings: HostSettings) -> Answered {
        let host = {
            let mut desk = self.desk_mut();
            let id = desk.new_host();
            merged(Host { id, name: name.clone(), ..Host::default() }, settings)
        };
        // The same change replaces a host that is there.
        if self.desk().hosts().get(&name).is_some() {
            return Err(access_refusal(AccessError::HostTaken(name)));
        }
        self.propose(Change::HostPut { host }).await?;
        self.publish().await;
        self.note(format!("host {name}"), "it was added");
        let notices = self.desk().open_by_name(None, Some(&name));
        Ok(Reply::Created { uuid: Uuid::default(), notices: notices.into_iter().map(Into::into).collect() })
    }

    /// Order: change a host. Its exports follow its names.
    pub(crate) async fn host_set(&self, name: &str, settings: HostSettings, disconnect: bool) -> Answered {
        let old = {
            let desk = self.desk();
            desk.hosts().get(name).cloned().ok_or_else(|| access_refusal(AccessError::NoHost(name.into())))?
        };
        let mut hosts = self.desk().hosts().clone();
        hosts.set(merged(old.clone(), settings)).map_err(access_refusal)?;
        let new = hosts.get(name).expect("just set").clone();
        // CHAP is of iSCSI: what an NVMe host must prove does not change with it.
        let proof_changed = old.chap_secret != new.chap_secret
            || old.mutual_secret != new.mutual_secret
            || old.chap_user != new.chap_user;
        if !disconnect {
            let all_iqns: Vec<&String> = old.iqns.iter().collect();
            let nqns: Vec<&String> = old.nqns.iter().filter(|n| !new.nqns.contains(n)).collect();
            let iqns: Vec<&String> = old.iqns.iter().filter(|n| !new.iqns.contains(n)).collect();
            let why = if nqns.is_empty() && iqns.is_empty() {
                "would be sent away: what it must prove over iSCSI changes"
            } else {
                "would be sent away: a name of it goes"
            };
            let ends = |u: &Use<'_>| {
                u.is_by(Protocol::Nvme, &nqns)
                    || u.is_by(Protocol::Iscsi, if proof_changed { &all_iqns } else { &iqns })
            };
            self.ask_other_hosts().await;
            self.desk().check_host_away(old.id, ends, why, "the same command with --yes")?;
        }
        // The file first: until the pools follow, exports find the host by the names that it keeps.
        self.propose(Change::HostPut { host: new.clone() }).await?;
        self.edit_exports(&old, |volume, grant| {
            let renamed = Grant::to(&new, grant.lun);
            let before = (!renamed.shares_name(grant)).then(|| grant.clone());
            let before = before.map(|grant| Edit::Unexported { volume, grant });
            let after = (renamed != *grant).then_some(Edit::Exported { volume, grant: renamed });
            before.into_iter().chain(after).collect()
        })
        .await?;
        self.publish().await;
        self.note(format!("host {name}"), "it was changed");
        Ok(Reply::Done)
    }

    /// Order: forget a host.
    pub(crate) async fn host_remove(&self, name: &str, force: bool, disconnect: bool) -> Answered {
        let host = self.desk().hosts().get(name).cloned();
        let host = host.ok_or_else(|| access_refusal(AccessError::NoHost(name.into())))?;
        let exports: usize = self.desk().configs().map(|c| c.grants.for_host(&host).count()).sum();
        if exports > 0 && !force {
            let are = if exports == 1 { "is" } else { "are" };
            let message = format!("{} {are} exported to host {name}", count(exports, "volume"));
            return Err(
                refuse(ErrorKind::Unsafe, "name", message).then(format!("millrace host rm {name} --force"))
            );
        }
        if !disconnect {
            let force = if force { " --force" } else { "" };
            let command = format!("millrace host rm {name}{force} --yes");
            self.ask_other_hosts().await;
            self.desk().check_host_away(host.id, |_| true, "would be sent away", &command)?;
        }
        self.edit_exports(&host, |volume, grant| vec![Edit::Unexported { volume, grant: grant.clone() }])
            .await?;
        self.propose(Change::HostRemoved { name: name.into() }).await?;
        self.publish().await;
        self.note(format!("host {name}"), "it was removed");
        Ok(Reply::Done)
    }
    /// Edits what is exported to a host, in every pool that is here.
    async fn edit_exports(
        &self,
        host: &Host,
        edit: impl Fn(Uuid, &Grant) -> Vec<Edit>,
    ) -> Result<(), Refusal> {
        let pools: Vec<(PoolId, Vec<Edit>)> = {
            let desk = self.desk();
            let edits =
                |p: &PoolDesk| p.config().grants.given_to(host).flat_map(|(v, g)| edit(v, g)).collect();
            desk.pools.iter().map(|p| (p.id, edits(p))).collect()
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
        let head = head.unwrap_or(self.desk().own_number());
        let what = format!("portal {} {address}", protocol_word(protocol));
        if address.port() == 0 {
            let message =
                format!("{address} names no port: hosts must find the same one after every restart");
            return Err(refuse(ErrorKind::Invalid, "address", message)
                .then("4420 for NVMe/TCP, 8009 for discovery, 3260 for iSCSI"));
        }
        self.check_moves(address, moves)?;
        let taken =
            self.desk().portals.iter().find(|p| p.portal.address == address).map(|p| p.portal.protocol);
        if let Some(there) = taken {
            let message = format!("there is a portal {} {address} already", protocol_word(there));
            return Err(refuse(ErrorKind::Conflict, "address", message).then("millrace portal ls"));
        }
        let (last, id) = {
            let mut desk = self.desk_mut();
            let last = desk.last_portal();
            let id = desk.new_portal();
            desk.put_portal(Portal { id, protocol, address, head, moves });
            desk.portals.last_mut().expect("just added").is_tried(true);
            (last, id)
        };
        let address_failure = match moves {
            None => None,
            Some(_) => {
                // What was said before is of another portal.
                let told = self.take_addresses().await;
                match self.desk().addresses.whereabouts(address.ip()).filter(|_| told) {
                    Some(Ok(_)) => None,
                    Some(Err(why)) => Some((address_words(why), address_next(why))),
                    None => Some(("no answer came within a second".into(), "millrace portal ls")),
                }
            }
        };
        self.publish().await;
        // What the other head's shards come to is no reason to refuse it: they try again.
        let results = |desk: &Desk| {
            let here = |p: &&PortalDesk| p.portal.id == id && desk.head_of(&p.portal) == desk.own_number();
            desk.portals.iter().find(here).map_or(vec![], |p| p.results.clone())
        };
        let office = self.clone();
        let told = move || results(&office.desk()).iter().all(Option::is_some);
        self.cx.until_within(Duration::from_secs(5), told).await;
        let listen_failure = {
            let desk = self.desk();
            results(&desk).into_iter().find_map(|r| match r {
                Some(Err(base::NetError::InUse)) => {
                    let own =
                        desk.portals.iter().find(|p| p.portal.id != id && meet(p.portal.address, address));
                    Some(own.map_or_else(
                        || net_words(base::NetError::InUse),
                        |p| format!("{} listens there", p.words()),
                    ))
                }
                // It is the other head's, which listens there once it serves.
                Some(Err(base::NetError::NoAddress)) if head != desk.own_number() => None,
                Some(Err(e)) => Some(net_words(e)),
                Some(Ok(_)) => None,
                None => Some("no answer came within 5 seconds".to_string()),
            })
        };
        let next = match self.desk().system.as_ref().map(|s| s.member().me().other()) {
            Some(other) if moves.is_none() => {
                format!(
                    "ip address; ss -ltnp; or, if head {0} has the address, the same with --head {0}",
                    other.letter()
                )
            }
            _ => "millrace portal ls; ip address; ss -ltnp".into(),
        };
        let listen_failure = listen_failure.map(|words| (words, next));
        let address_failure = address_failure.map(|(words, next)| (words, next.to_string()));
        let result = match address_failure.or(listen_failure) {
            Some((words, next)) => {
                let message = format!("{address} cannot be listened at: {words}");
                Err(refuse(ErrorKind::Conflict, "address", message).then(next))
            }
            None => {
                self.propose(Change::PortalPut { portal: Portal { id, protocol, address, head, moves } })
                    .await
            }
        };
        if let Err(r) = result {
            let row = {
                let mut desk = self.desk_mut();
                let at = desk.portals.iter().position(|p| p.portal.id == id).expect("just added");
                desk.portals.remove(at)
            };
            self.publish().await;
            moves.into_iter().for_each(|moves| self.let_address_go(address.ip(), moves));
            // The next one may have its number, unless what a shard says late could be taken for its.
            if row.results.iter().all(Option::is_some) {
                self.desk_mut().portal_given_last(last);
            }
            return Err(r);
        }
        if let Some(row) = self.desk_mut().portals.iter_mut().find(|p| p.portal.id == id) {
            row.is_tried(false);
        }
        self.note(what, "it was added");
        self.announce_addresses();
        Ok(Reply::Done)
    }
    /// Refuses an address that cannot move so.
    fn check_moves(&self, address: SocketAddr, moves: Option<Moves>) -> Result<(), Refusal> {
        let Some(moves) = moves else { return Ok(()) };
        if let Err(why) = moves.check(address.ip()) {
            let message = format!("{} cannot move from head to head: {}", address.ip(), cannot_move(why));
            return Err(refuse(ErrorKind::Invalid, "prefix", message).then(cannot_move_next(why)));
        }
        let new =
            Portal { id: base::PortalId(0), protocol: Protocol::Nvme, address, head: 0, moves: Some(moves) };
        match self.desk().portals.iter().find(|p| contradict(&p.portal, &new)) {
            Some(other) => {
                let message = format!("{} moves with another prefix or interface than this", other.words());
                Err(refuse(ErrorKind::Conflict, "prefix", message).then("millrace portal ls"))
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
        let what = format!("{} {address}", protocol_word(protocol));
        let (id, moves) = {
            let desk = self.desk();
            let found =
                desk.portals.iter().find(|p| (p.portal.protocol, p.portal.address) == (protocol, address));
            let missing = || {
                refuse(ErrorKind::NotFound, "address", format!("there is no portal {what}"))
                    .then("millrace portal ls")
            };
            found.map(|p| (p.portal.id, p.portal.moves)).ok_or_else(missing)?
        };
        if !disconnect {
            self.ask_other_hosts().await;
            self.desk().check_portal_unused(id, &format!("millrace portal rm {what} --yes"))?;
        }
        self.propose(Change::PortalRemoved { id }).await?;
        self.desk_mut().portals.retain(|p| p.portal.id != id);
        self.publish().await;
        self.in_sessions(|s, fx| s.end_portal(id, fx));
        moves.into_iter().for_each(|moves| self.let_address_go(address.ip(), moves));
        self.note(format!("portal {what}"), "it was removed");
        Ok(Reply::Done)
    }

    /// Order: export.
    pub(crate) async fn export(&self, volume: &str, host: &str, lun: Option<u16>) -> Answered {
        let (id, uuid, host, has_it, lun) = {
            let desk = self.desk();
            let (id, uuid) = desk.volume_named(volume)?;
            let host = desk
                .hosts()
                .get(host)
                .cloned()
                .ok_or_else(|| access_refusal(AccessError::NoHost(host.into())))?;
            let used: Vec<u32> =
                desk.configs().flat_map(|c| c.grants.for_host(&host)).map(|(_, _, l)| u32::from(l)).collect();
            let lun = match lun {
                Some(n) if n > LUN_MAX || used.contains(&u32::from(n)) => {
                    return Err(access_refusal(AccessError::Lun(n)));
                }
                Some(n) => n,
                None => lowest_free(used.into_iter(), 0, u32::from(LUN_MAX)).map_err(access_refusal)? as u16,
            };
            let grants = &desk.pool(id).expect("just found").config().grants;
            let has_it = grants.given_to(&host).any(|(volume, _)| volume == uuid);
            (id, uuid, host, has_it, lun)
        };
        if has_it {
            let message = format!("{volume} is exported to host {} already", host.name);
            return Err(
                refuse(ErrorKind::Conflict, "host", message).then(format!("millrace volume show {volume}"))
            );
        }
        self.configure(id, vec![Edit::Exported { volume: uuid, grant: Grant::to(&host, lun) }]).await?;
        self.publish().await;
        self.note(format!("volume {volume}"), &format!("it was exported to host {} as LUN {lun}", host.name));
        Ok(Reply::Done)
    }

    /// Order: unexport.
    pub(crate) async fn unexport(&self, volume: &str, host: &str, disconnect: bool) -> Answered {
        let (id, uuid, host, pool, grant) = {
            let desk = self.desk();
            let (id, uuid) = desk.volume_named(volume)?;
            let host = desk
                .hosts()
                .get(host)
                .cloned()
                .ok_or_else(|| access_refusal(AccessError::NoHost(host.into())))?;
            let config = &desk.pool(id).expect("just found").config();
            let grant = config.grants.given_to(&host).find(|(volume, _)| *volume == uuid);
            let grant = grant.map(|(_, grant)| grant.clone());
            (id, uuid, host, config.uuid, grant)
        };
        let Some(grant) = grant else {
            let message = format!("{volume} is not exported to host {}", host.name);
            return Err(
                refuse(ErrorKind::NotFound, "host", message).then(format!("millrace volume show {volume}"))
            );
        };
        if !disconnect {
            let command = format!("millrace unexport {volume} --host {} --yes", host.name);
            let what = format!("volume {volume}");
            self.ask_other_hosts().await;
            self.desk().check_volumes_unused(pool, Some(uuid), Some(host.id), &what, &command)?;
        }
        self.configure(id, vec![Edit::Unexported { volume: uuid, grant }]).await?;
        self.publish().await;
        self.note(format!("volume {volume}"), &format!("it was taken from host {}", host.name));
        Ok(Reply::Done)
    }
}

/// These runs are nobody's any more.
fn returned(freed: &[Run]) -> Edit {
    let handed_out = planted(Bug::UnclearedHandedOut);
    Edit::SpaceReturned { runs: if handed_out { vec![] } else { freed.to_vec() } }
}

/// There is not enough space in `pool` for `want` bytes. `resting`: what was of volumes and becomes free soon.
fn no_space(pool: &str, free: u64, resting: u64, want: u64, asked: &str) -> Refusal {
    let mut has = format!("{} free", size_there(free));
    if resting > 0 {
        let seconds = QUARANTINE.as_secs();
        has += &format!(" and {} that becomes free within {seconds} seconds", size_there(resting));
    }
    let next = match free + resting >= want {
        true => "the same command a little later".to_string(),
        false => format!("millrace pool show {pool}"),
    };
    refuse(ErrorKind::NoSpace, "bytes", format!("pool {pool} has {has}, and {asked}")).then(next)
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
