//! What the daemon itself keeps in the state directory, the lock and the crash record: made again when somebody removes it
//! under the running head, and told as other files are. It also sees when a file of the head is damaged: the head, which looks
//! at names alone, writes that again.

use super::claim::{Claim, LOCK};
use super::crash::{CRASHES, Crashes};
use super::run::Machines;
use crate::checked::trouble_of;
use crate::state::Stamp;
use files::{Whose, kind};
use finding::{FileFault, RecordCause};
use head::mail::Unmended;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often it is looked.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Files that the daemon reads itself: one that is not whole, or is gone, is told.
const OWN: [&str; 6] = ["format", "tokens", "api-certificate", "link", "link-identity", "alarms"];

/// Looks after them; the state directory is ours for as long as this lives.
pub struct Keeper {
    claim: Claim,
    crashes: Crashes,
    /// Which file the crash record is.
    record: (u64, u64),
    /// What was told last of what cannot be made again.
    told: Vec<Unmended>,
    folder: PathBuf,
    /// Of each file of its own: as it was seen last, and what is wrong with it.
    own: [(Option<Stamp>, Option<RecordCause>); OWN.len()],
    /// Of each file of the head that has an end: as it was seen last, and why it is not whole.
    heads: BTreeMap<String, (Stamp, Option<FileFault>)>,
}

/// Why the file that lies there is not whole. One that cannot be read at this moment may be.
fn damage(folder: &Path, name: &str) -> Option<FileFault> {
    let bytes = crate::state::bytes(folder, name).ok().flatten()?;
    files::check(name, &bytes).err()
}

impl Keeper {
    /// Of a directory that was claimed, and a crash record that was opened in it.
    pub fn new(claim: Claim, crashes: Crashes, record: &File) -> io::Result<Self> {
        let record = super::claim::place(&record.metadata()?);
        let folder = claim.folder().to_path_buf();
        let (told, own, heads) = (Vec::new(), Default::default(), BTreeMap::new());
        Ok(Self { claim, crashes, record, told, folder, own, heads })
    }
    /// Files of its own that are not whole, that are gone, or of which a row is not used.
    fn in_trouble(&mut self) -> Vec<Unmended> {
        let mut found = Vec::new();
        for (name, (stamp, trouble)) in OWN.into_iter().zip(&mut self.own) {
            let path = self.folder.join(name);
            let seen = Stamp::of(&path);
            if seen != *stamp {
                // Only its writer knows what it held.
                let is_gone = stamp.is_some() && seen.is_none();
                *trouble = is_gone.then_some(RecordCause::ContentUnknown);
                *trouble = trouble.take().or_else(|| trouble_of(&self.folder, name));
                *stamp = seen;
            }
            if let Some(why) = trouble.clone() {
                found.push(Unmended { file: name.into(), why: why.into() });
            }
        }
        found
    }
    /// Files of the head that are not whole. Whoever writes one replaces it, so that none is seen half written.
    fn damaged(&mut self) -> Vec<Unmended> {
        let is_heads =
            |name: &String| kind(name).is_some_and(|k| k.whose == Whose::System && k.shape.is_sealed());
        let all = std::fs::read_dir(&self.folder).into_iter().flatten();
        let names = all.filter_map(|e| e.ok()?.file_name().into_string().ok());
        let (mut found, mut seen) = (Vec::new(), BTreeMap::new());
        for name in names.filter(is_heads) {
            let path = self.folder.join(&name);
            // Before it is read: what is changed meanwhile is looked at again.
            let Some(stamp) = Stamp::of(&path) else { continue };
            let fault = match self.heads.remove(&name) {
                Some((before, fault)) if before == stamp => fault,
                _ => damage(&self.folder, &name),
            };
            if let Some(why) = fault.clone() {
                let (file, path) = (name.clone(), path.display().to_string());
                let why = RecordCause::FileUnreadable { file: file.clone(), path, why };
                found.push(Unmended { file, why: why.into() });
            }
            seen.insert(name, (stamp, fault));
        }
        self.heads = seen;
        found
    }
    /// Looks, and lets the head tell what was found.
    pub fn look(&mut self, machines: &Machines) {
        let (mut again, mut failed, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
        match self.claim.renew() {
            Ok(false) => {}
            Ok(true) => again.push(LOCK.to_string()),
            Err(why) => failed.push(Unmended { file: LOCK.into(), why: why.into() }),
        }
        // While another one may have the directory, nothing is made there.
        if failed.is_empty() {
            damaged = self.damaged();
            match self.crashes.renew(&mut self.record) {
                Ok(false) => {}
                Ok(true) => again.push(CRASHES.to_string()),
                Err(e) => {
                    let path = self.crashes.path().display().to_string();
                    let why = RecordCause::CrashRecordNotMade { path, error: e.to_string() };
                    failed.push(Unmended { file: CRASHES.into(), why: why.into() });
                }
            }
        }
        failed.extend(self.in_trouble());
        if !again.is_empty() || !damaged.is_empty() || failed != self.told {
            self.told.clone_from(&failed);
            failed.extend(damaged);
            machines.tell_renewed(again, failed);
        }
    }
}
