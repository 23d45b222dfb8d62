//! What is to be done so that the head is as a file says: a function of the file and the status, without I/O.

use super::file::{Desired, Export, Host, Portal, SecretFile, Volume};
use super::pools;
use api::{Drive, DriveRole, HostAdd, HostChecked, HostSet, Protocol, Status, VolumeCreate, VolumeSet};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// What there is.
pub struct Present<'a> {
    /// The head.
    pub status: &'a Status,
    /// The drives that the file wants and no pool has.
    pub drives: &'a [Drive],
    /// Which secrets of the file hosts have already, by the host's name.
    pub secrets: &'a BTreeMap<String, HostChecked>,
    /// What drives are known by, whatever they are called: see `file::key_of`.
    pub keys: &'a BTreeMap<String, String>,
}

impl Present<'_> {
    /// What a drive is known by.
    pub fn key<'b>(&'b self, drive: &'b str) -> &'b str {
        self.keys.get(drive).map_or(drive, String::as_str)
    }
    /// Whether a drive of the file is not there, or cannot be opened.
    pub fn lacks(&self, drive: &str) -> bool {
        let found = self.drives.iter().find(|d| self.key(&d.path) == self.key(drive));
        found.is_some_and(|d| d.role == DriveRole::Unusable)
    }
    /// What taking new drives loses, or why one of them cannot be taken.
    pub fn taking<'b>(&self, drives: impl IntoIterator<Item = &'b str>) -> Result<Option<Loss>, Impossible> {
        let mut foreign = vec![];
        for drive in drives {
            let found = self.drives.iter().find(|d| self.key(&d.path) == self.key(drive));
            let Some(found) = found else { continue };
            let drive = drive.to_string();
            match found.role {
                DriveRole::Labelled => {
                    return Err(Impossible::DriveHoldsPool { drive, pool: found.pool.clone() });
                }
                DriveRole::Unusable => {
                    return Err(Impossible::DriveUnusable { drive, reason: found.reason.clone() });
                }
                DriveRole::Foreign | DriveRole::RemovedFailed => foreign.push(drive),
                DriveRole::Leg | DriveRole::Missing | DriveRole::Spare | DriveRole::Free => {}
            }
        }
        Ok((!foreign.is_empty()).then_some(Loss::Foreign(foreign)))
    }
    /// The loss of whichever of these hosts is connected.
    fn access<'b>(&self, hosts: impl IntoIterator<Item = &'b str>) -> Option<Loss> {
        let named: BTreeSet<&str> = hosts.into_iter().collect();
        let all = self.status.hosts.iter().filter(|h| h.connections > 0 && named.contains(h.name.as_str()));
        let hosts: Vec<String> = all.map(|h| h.name.clone()).collect();
        (!hosts.is_empty()).then_some(Loss::Access(hosts))
    }
}

/// What a change loses: it needs `--force`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Data of volumes.
    Data,
    /// A copy, or a drive that would become one.
    Redundancy,
    /// What these connected hosts use.
    Access(Vec<String>),
    /// All that is exported to this host.
    Exports(String),
    /// So many connections at a portal.
    Connections(u32),
    /// That a host must prove who it is.
    Authentication,
    /// What these drives hold.
    Foreign(Vec<String>),
}

/// One difference that an order removes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// What is done.
    pub action: Action,
    /// What is lost by it.
    pub loss: Option<Loss>,
}

/// What is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// A host loses a volume.
    Unexport { volume: String, host: String },
    /// A host is forgotten.
    HostRemove { name: String },
    /// A volume is removed.
    VolumeRemove { name: String },
    /// A spare or a leg leaves its pool. `called`: what the drive is called to people.
    DriveRemove { pool: String, drive: String, called: String, spare: bool },
    /// Arrays leave their pool.
    ArraysRemove { pool: String, arrays: Vec<String> },
    /// A pool is destroyed.
    PoolDestroy { name: String },
    /// A pool is made, with these spares.
    PoolCreate { create: api::PoolCreate, spares: Vec<String> },
    /// A pool gets more arrays.
    ArraysAdd { pool: String, arrays: Vec<api::ArraySpec> },
    /// Another drive takes a leg's place. `called`: what the leg is called to people.
    DriveReplace { pool: String, old: String, called: String, new: String },
    /// A mirror gets one more leg.
    LegAdd { pool: String, mirror: String, drive: String },
    /// A pool gets a spare.
    SpareAdd { pool: String, drive: String },
    /// A volume is made, with these caps.
    VolumeCreate { create: VolumeCreate, caps: Option<VolumeSet> },
    /// A volume grows or shrinks.
    VolumeResize { name: String, from: u64, to: u64 },
    /// A volume gets other caps or another weight.
    VolumeSet { name: String, was: [u32; 3], set: VolumeSet },
    /// A host is made known.
    HostAdd(HostAdd),
    /// A host gets other names or secrets.
    HostSet { name: String, set: HostSet, gains: Vec<String>, loses: Vec<String> },
    /// A host gets a volume.
    Export { volume: String, host: String, lun: Option<u16> },
    /// A host gets a volume under another LUN.
    ExportMove { volume: String, host: String, from: u16, to: u16 },
    /// The head listens at one more address.
    PortalAdd(api::PortalAdd),
    /// A portal is for another protocol, at another head, or moves otherwise.
    PortalChange { was: Protocol, add: api::PortalAdd },
    /// The head listens at an address no more.
    PortalRemove { protocol: Protocol, address: SocketAddr },
}

impl Action {
    /// Its place in the order: from hosts to drives to remove, from drives to hosts to make.
    fn rank(&self) -> u8 {
        match self {
            Action::Unexport { .. } => 0,
            Action::HostRemove { .. } => 1,
            Action::VolumeRemove { .. } => 2,
            Action::DriveRemove { .. } => 3,
            Action::ArraysRemove { .. } => 4,
            Action::PoolDestroy { .. } => 5,
            Action::PoolCreate { .. } => 6,
            Action::DriveReplace { .. } => 7,
            Action::LegAdd { .. } | Action::ArraysAdd { .. } => 8,
            Action::SpareAdd { .. } => 9,
            Action::VolumeCreate { .. } | Action::VolumeResize { .. } | Action::VolumeSet { .. } => 10,
            // A name that goes from one host to another must be free first.
            Action::HostSet { loses, .. } => {
                if loses.is_empty() {
                    12
                } else {
                    11
                }
            }
            Action::HostAdd(_) => 13,
            Action::ExportMove { .. } => 14,
            Action::Export { .. } => 15,
            Action::PortalAdd(_) | Action::PortalChange { .. } => 16,
            // A host has the new way before it loses the old one.
            Action::PortalRemove { .. } => 17,
        }
    }
}

/// What the file wants and no order can do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Impossible {
    /// The chunk of a pool cannot be changed.
    Chunk { is: u32, wanted: u32 },
    /// The block size of a pool or volume cannot be changed.
    Block { is: u32, wanted: u32 },
    /// A pool that is not there is mentioned without arrays.
    NoArrays { pool: String },
    /// A single drive cannot become a mirror.
    SingleStays { drive: String },
    /// A drive holds a pool that is not imported.
    DriveHoldsPool { drive: String, pool: Option<String> },
    /// A drive cannot be used.
    DriveUnusable { drive: String, reason: String },
    /// There is no such pool, and the file does not make it.
    NoPool { pool: String },
    /// The pool of a volume that is wanted would be destroyed.
    PoolGoes { pool: String },
    /// A host has no secret that it could keep.
    NothingToKeep { host: String },
    /// There is no such volume, and the file does not make it.
    NoVolume { volume: String },
    /// There is no such host, and the file does not make it.
    NoHost { host: String },
    /// There is no such head.
    NoHead { head: String },
}

/// Something that is no difference, and worth knowing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// A spare serves in place of a drive that the file has as a leg.
    SpareServes { pool: String, spare: String, place: String },
    /// A drive of the file is not there, and is taken for a drive of the pool that is not there.
    DriveAway { pool: String, drive: String, called: String },
    /// The drives of a pool are not there: its arrays are not compared.
    PoolAway { pool: String },
}

/// What differs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Diff {
    /// What is to be done, in this order.
    pub changes: Vec<Change>,
    /// What cannot be done: the line of the file, the key, and why.
    pub impossible: Vec<(usize, &'static str, Impossible)>,
    /// What the file does not have, and what `--prune` would do about it.
    pub extras: Vec<Change>,
    /// Worth knowing.
    pub notes: Vec<Note>,
}

impl Diff {
    /// One more change.
    pub fn change(&mut self, action: Action, loss: Option<Loss>) {
        self.changes.push(Change { action, loss });
    }
    /// One more thing that the file does not have.
    pub fn extra(&mut self, action: Action, loss: Option<Loss>) {
        self.extras.push(Change { action, loss });
    }
    /// One more thing that cannot be done.
    pub fn impossible(&mut self, line: usize, key: &'static str, why: Impossible) {
        self.impossible.push((line, key, why));
    }
}

/// What is to be done so that the head is as the file says.
pub fn diff(desired: &Desired, present: &Present<'_>, prune: bool) -> Diff {
    let mut out = Diff::default();
    if let Some(wanted) = &desired.pools {
        pools::compare(wanted, present, &mut out);
    }
    if let Some(wanted) = &desired.volumes {
        volumes(wanted, desired, present, prune, &mut out);
    }
    if let Some(wanted) = &desired.hosts {
        hosts(wanted, desired.exports.is_some(), present, &mut out);
    }
    if let Some(wanted) = &desired.exports {
        exports(wanted, desired, present, &mut out);
    }
    if let Some(wanted) = &desired.portals {
        portals(wanted, present, &mut out);
    }
    if prune {
        out.changes.append(&mut out.extras);
    }
    out.changes.sort_by_key(|c| c.action.rank());
    out.extras.sort_by_key(|c| c.action.rank());
    out
}

fn volumes(wanted: &[Volume], desired: &Desired, present: &Present<'_>, prune: bool, out: &mut Diff) {
    let status = present.status;
    let in_file = |pool: &str| desired.pools.iter().flatten().any(|p| p.name == pool);
    for want in wanted {
        let pool = want.name.split_once('/').map_or(want.name.as_str(), |(pool, _)| pool);
        let is_there = status.pools.iter().any(|p| p.name == pool);
        if !is_there && !in_file(pool) {
            out.impossible(want.line, "name", Impossible::NoPool { pool: pool.into() });
        } else if prune && desired.pools.is_some() && !in_file(pool) {
            out.impossible(want.line, "name", Impossible::PoolGoes { pool: pool.into() });
        }
        let (iops, mbps, weight) = (want.iops_max, want.mbps_max, want.weight);
        let Some(is) = status.volumes.iter().find(|v| v.name == want.name) else {
            let create = VolumeCreate { name: want.name.clone(), bytes: want.size, block_bytes: want.block };
            let set = caps([(iops, 0), (mbps, 0)], (weight, api::WEIGHT));
            out.change(Action::VolumeCreate { create, caps: set }, None);
            continue;
        };
        let name = || want.name.clone();
        if let Some(wanted) = want.block.filter(|b| *b != is.block_bytes) {
            out.impossible(want.line, "block", Impossible::Block { is: is.block_bytes, wanted });
        }
        if want.size != is.bytes {
            let loss = (want.size < is.bytes).then_some(Loss::Data);
            out.change(Action::VolumeResize { name: name(), from: is.bytes, to: want.size }, loss);
        }
        if let Some(set) = caps([(iops, is.iops_max), (mbps, is.mbps_max)], (weight, is.weight)) {
            let was = [is.iops_max, is.mbps_max, is.weight.into()];
            out.change(Action::VolumeSet { name: name(), was, set }, None);
        }
    }
    for is in status.volumes.iter().filter(|v| !wanted.iter().any(|w| w.name == v.name)) {
        out.extra(Action::VolumeRemove { name: is.name.clone() }, Some(Loss::Data));
    }
}

/// What of these differs, wanted and present; None if nothing does.
fn caps([iops, mbps]: [(u32, u32); 2], weight: (u16, u16)) -> Option<VolumeSet> {
    let set = VolumeSet {
        iops_max: (iops.0 != iops.1).then_some(iops.0),
        mbps_max: (mbps.0 != mbps.1).then_some(mbps.0),
        weight: (weight.0 != weight.1).then_some(weight.0),
        ..VolumeSet::default()
    };
    (set != VolumeSet::default()).then_some(set)
}

/// `exports_too`: what is exported to a host that goes is taken from it first.
fn hosts(wanted: &[Host], exports_too: bool, present: &Present<'_>, out: &mut Diff) {
    for want in wanted {
        match present.status.hosts.iter().find(|h| h.name == want.name) {
            None => add_host(want, out),
            Some(is) => set_host(want, is, present, out),
        }
    }
    for is in present.status.hosts.iter().filter(|h| !wanted.iter().any(|w| w.name == h.name)) {
        let connected = present.access([is.name.as_str()]);
        let given = (!is.exports.is_empty() && !exports_too).then(|| Loss::Exports(is.name.clone()));
        out.extra(Action::HostRemove { name: is.name.clone() }, connected.or(given));
    }
}

fn add_host(want: &Host, out: &mut Diff) {
    let secrets =
        [("chap_secret_file", &want.chap_secret_file), ("mutual_secret_file", &want.mutual_secret_file)];
    for (key, _) in secrets.into_iter().filter(|(_, s)| **s == SecretFile::Keep) {
        out.impossible(want.line, key, Impossible::NothingToKeep { host: want.name.clone() });
    }
    let read = |secret: &SecretFile| match secret {
        SecretFile::Read(secret) => Some(secret.clone()),
        SecretFile::None | SecretFile::Keep | SecretFile::File(_) => None,
    };
    let add = HostAdd {
        name: want.name.clone(),
        nqns: want.nqns.clone(),
        iqns: want.iqns.clone(),
        chap_secret: read(&want.chap_secret_file),
        chap_user: (!want.chap_user.is_empty()).then(|| want.chap_user.clone()),
        mutual_secret: read(&want.mutual_secret_file),
    };
    out.change(Action::HostAdd(add), None);
}

fn set_host(want: &Host, is: &api::Host, present: &Present<'_>, out: &mut Diff) {
    let same = present.secrets.get(&want.name).copied().unwrap_or_default();
    let mut secret = |key, want_secret: &SecretFile, is_set: bool, is_same: bool| match want_secret {
        SecretFile::None => is_set.then_some(None),
        SecretFile::Read(secret) => (!is_same).then(|| Some(secret.clone())),
        SecretFile::Keep | SecretFile::File(_) => {
            if !is_set {
                out.impossible(want.line, key, Impossible::NothingToKeep { host: want.name.clone() });
            }
            None
        }
    };
    let chap_secret = secret("chap_secret_file", &want.chap_secret_file, is.authenticated, same.chap_secret);
    let mutual_secret = secret("mutual_secret_file", &want.mutual_secret_file, is.mutual, same.mutual_secret);
    let names = |want: &[String], is: &[String]| -> (Vec<String>, Vec<String>) {
        let only = |a: &[String], b: &[String]| a.iter().filter(|n| !b.contains(n)).cloned().collect();
        (only(want, is), only(is, want))
    };
    let (new_nqns, old_nqns) = names(&want.nqns, &is.nqns);
    let (new_iqns, old_iqns) = names(&want.iqns, &is.iqns);
    let changed = |new: &[String], old: &[String]| !new.is_empty() || !old.is_empty();
    let set = HostSet {
        nqns: changed(&new_nqns, &old_nqns).then(|| want.nqns.clone()),
        iqns: changed(&new_iqns, &old_iqns).then(|| want.iqns.clone()),
        chap_secret,
        chap_user: (want.chap_user != is.chap_user).then(|| want.chap_user.clone()),
        mutual_secret,
    };
    if set == HostSet::default() {
        return;
    }
    let loses = [old_nqns, old_iqns].concat();
    let proves_otherwise =
        set.chap_secret.is_some() || set.mutual_secret.is_some() || set.chap_user.is_some();
    let loss = match &set.chap_secret {
        Some(None) => Some(Loss::Authentication),
        Some(Some(_)) | None if !loses.is_empty() || proves_otherwise => present.access([want.name.as_str()]),
        Some(Some(_)) | None => None,
    };
    let gains = [new_nqns, new_iqns].concat();
    out.change(Action::HostSet { name: want.name.clone(), set, gains, loses }, loss);
}

fn exports(wanted: &[Export], desired: &Desired, present: &Present<'_>, out: &mut Diff) {
    let status = present.status;
    let is_made = |name: &str| desired.volumes.iter().flatten().any(|v| v.name == name);
    let is_known = |name: &str| desired.hosts.iter().flatten().any(|h| h.name == name);
    for want in wanted {
        let (volume, host) = (want.volume.clone(), want.host.clone());
        if !status.volumes.iter().any(|v| v.name == volume) && !is_made(&volume) {
            out.impossible(want.line, "volume", Impossible::NoVolume { volume: volume.clone() });
        }
        if !status.hosts.iter().any(|h| h.name == host) && !is_known(&host) {
            out.impossible(want.line, "host", Impossible::NoHost { host: host.clone() });
        }
        let given = status.volumes.iter().filter(|v| v.name == volume).flat_map(|v| &v.exports);
        let is = given.into_iter().find(|e| e.host.as_ref() == Some(&host));
        match (is, want.lun) {
            (None, lun) => out.change(Action::Export { volume, host, lun }, None),
            (Some(is), Some(to)) if is.lun != to => {
                let loss = present.access([host.as_str()]);
                out.change(Action::ExportMove { volume, host, from: is.lun, to }, loss);
            }
            (Some(_), _) => {}
        }
    }
    for volume in &status.volumes {
        // What hosts have that are not known here is not ours to take.
        for host in volume.exports.iter().filter_map(|e| e.host.as_ref()) {
            if !wanted.iter().any(|w| w.volume == volume.name && w.host == *host) {
                let action = Action::Unexport { volume: volume.name.clone(), host: host.clone() };
                out.extra(action, present.access([host.as_str()]));
            }
        }
    }
}

fn portals(wanted: &[Portal], present: &Present<'_>, out: &mut Diff) {
    let status = present.status;
    for want in wanted {
        let heads = status.cluster.iter().flat_map(|c| &c.heads);
        let letter = want.head.as_ref().map(|head| {
            let found = heads.into_iter().find(|h| h.head == *head || h.name == *head);
            found.map(|h| h.head.clone()).ok_or_else(|| Impossible::NoHead { head: head.clone() })
        });
        let letter = match letter.transpose() {
            Ok(letter) => letter,
            Err(why) => {
                out.impossible(want.line, "head", why);
                continue;
            }
        };
        let add = api::PortalAdd {
            protocol: want.protocol,
            address: want.address.to_string(),
            prefix: want.prefix,
            interface: want.interface.clone(),
            head: letter.clone(),
        };
        let Some(is) = status.portals.iter().find(|p| p.address == want.address) else {
            out.change(Action::PortalAdd(add), None);
            continue;
        };
        let elsewhere = letter.is_some() && letter != is.head;
        let moves_otherwise = want.prefix != is.prefix || want.interface != is.interface;
        if elsewhere || moves_otherwise || want.protocol != is.protocol {
            out.change(Action::PortalChange { was: is.protocol, add }, cut(is));
        }
    }
    for is in status.portals.iter().filter(|p| !wanted.iter().any(|w| w.address == p.address)) {
        out.extra(Action::PortalRemove { protocol: is.protocol, address: is.address }, cut(is));
    }
}

/// What ends with a portal.
fn cut(portal: &api::Portal) -> Option<Loss> {
    (portal.connections > 0).then_some(Loss::Connections(portal.connections))
}
