//! Carries changes out: one order of the API after the other, as an operator would give them.

use super::diff::{Action, Change};
use crate::arguments::volume_path;
use crate::client::{Client, segment};
use crate::failure::Failure;
use api::{Created, DriveReplace, ExportAdd, LegAdd, Noticed, PoolAdd, PoolCreate, SpareAdd, VolumeSet};
use serde::Serialize;

/// The way to the head.
pub struct Runner<'a> {
    /// The head.
    pub client: &'a Client,
    /// Losses are allowed.
    pub force: bool,
    /// What the head found worth knowing.
    pub notices: Vec<Noticed>,
}

impl Runner<'_> {
    /// Carries them out until one is refused. `done` is told of each that is done.
    ///
    /// # Errors
    /// How many were done, and why the next one was not.
    pub fn run(
        &mut self,
        changes: &[Change],
        mut done: impl FnMut(&Change) -> Result<(), Failure>,
    ) -> Result<(), (usize, Failure)> {
        // Two volumes may change their LUNs: both must be free first.
        let is_move = |c: &&Change| matches!(c.action, Action::ExportMove { .. });
        let first_move = changes.iter().position(|c| is_move(&c));
        for (i, change) in changes.iter().enumerate() {
            if Some(i) == first_move {
                for change in changes.iter().filter(is_move) {
                    if let Action::ExportMove { volume, host, .. } = &change.action {
                        self.unexport(volume, host).map_err(|f| (i, f))?;
                    }
                }
            }
            self.carry_out(&change.action).and_then(|()| done(change)).map_err(|f| (i, f))?;
        }
        Ok(())
    }

    fn carry_out(&mut self, action: &Action) -> Result<(), Failure> {
        let (client, force) = (self.client, self.force);
        match action {
            Action::Unexport { volume, host } => self.unexport(volume, host),
            Action::HostRemove { name } => {
                client.delete(&format!("/hosts/{}?force={force}&disconnect={force}", segment(name)))
            }
            Action::VolumeRemove { name } => {
                client.delete(&format!("{}?force={force}&disconnect={force}", volume_path(name)))
            }
            Action::DriveRemove { drive, .. } => {
                client.delete(&format!("/drives/{}?force={force}", segment(drive)))
            }
            Action::ArraysRemove { pool, arrays } => {
                let query: Vec<String> = arrays.iter().map(|a| format!("array={}", segment(a))).collect();
                let path = format!("/pools/{}/arrays?{}", segment(pool), query.join("&"));
                let removed: Created = client.remove(&path)?;
                self.notices.extend(removed.notices);
                Ok(())
            }
            Action::PoolDestroy { name } => {
                client.delete(&format!("/pools/{}?force={force}&disconnect={force}", segment(name)))
            }
            Action::PoolCreate { create, spares } => {
                self.make("/pools", &PoolCreate { force, ..create.clone() })?;
                spares.iter().try_for_each(|drive| self.add_spare(&create.name, drive))
            }
            Action::ArraysAdd { pool, arrays } => {
                let body = PoolAdd { arrays: arrays.clone(), force };
                self.make(&format!("/pools/{}/arrays", segment(pool)), &body)
            }
            Action::DriveReplace { old, new, .. } => {
                let body = DriveReplace { new: new.clone(), force };
                self.make(&format!("/drives/{}/replace", segment(old)), &body)
            }
            Action::LegAdd { pool, mirror, drive } => {
                let body = LegAdd { drive: drive.clone(), mirror: Some(mirror.clone()), force };
                client.act(&format!("/pools/{}/legs", segment(pool)), &body)
            }
            Action::SpareAdd { pool, drive } => self.add_spare(pool, drive),
            Action::VolumeCreate { create, caps } => {
                self.make("/volumes", create)?;
                caps.iter().try_for_each(|set| client.patch(&volume_path(&create.name), set))
            }
            Action::VolumeResize { name, to, .. } => {
                let body = VolumeSet { bytes: Some(*to), force, ..VolumeSet::default() };
                client.patch(&format!("{}?disconnect={force}", volume_path(name)), &body)
            }
            Action::VolumeSet { name, set, .. } => client.patch(&volume_path(name), set),
            Action::HostAdd(add) => self.make("/hosts", add),
            Action::HostSet { name, set, .. } => {
                client.patch(&format!("/hosts/{}?disconnect={force}", segment(name)), set)
            }
            Action::Export { volume, host, lun } => self.export(volume, host, *lun),
            Action::ExportMove { volume, host, to, .. } => self.export(volume, host, Some(*to)),
            Action::PortalAdd(add) => self.make("/portals", add),
            Action::PortalChange { was, add } => {
                self.close(*was, &add.address)?;
                self.make("/portals", add)
            }
            Action::PortalRemove { protocol, address } => self.close(*protocol, &address.to_string()),
        }
    }

    /// Makes something, and keeps what the head says about it.
    fn make(&mut self, path: &str, body: &impl Serialize) -> Result<(), Failure> {
        let created: Created = self.client.post(path, body)?;
        self.notices.extend(created.notices);
        Ok(())
    }

    fn add_spare(&mut self, pool: &str, drive: &str) -> Result<(), Failure> {
        let body = SpareAdd { drive: drive.into(), force: self.force };
        self.make(&format!("/pools/{}/spares", segment(pool)), &body)
    }

    fn export(&mut self, volume: &str, host: &str, lun: Option<u16>) -> Result<(), Failure> {
        self.make("/exports", &ExportAdd { volume: volume.into(), host: host.into(), lun })
    }

    fn unexport(&self, volume: &str, host: &str) -> Result<(), Failure> {
        let (pool, name) = volume.split_once('/').unwrap_or((volume, ""));
        let path = format!("/exports/{}/{}/{}", segment(pool), segment(name), segment(host));
        self.client.delete(&format!("{path}?disconnect={}", self.force))
    }

    fn close(&self, protocol: api::Protocol, address: &str) -> Result<(), Failure> {
        let path = format!("/portals/{protocol}/{}", segment(address));
        self.client.delete(&format!("{path}?disconnect={}", self.force))
    }
}
