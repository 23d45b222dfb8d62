//! What the daemon itself keeps in the state directory, the lock and the crash record: made again when somebody removes it
//! under the running head, and told as other files are.

use super::claim::{Claim, LOCK};
use super::crash::{CRASHES, Crashes};
use super::run::Machines;
use crate::checked::trouble_of;
use crate::state::Stamp;
use finding::RecordCause;
use head::mail::Unmended;
use std::fs::File;
use std::io;
use std::path::PathBuf;
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
}

impl Keeper {
    /// Of a directory that was claimed, and a crash record that was opened in it.
    pub fn new(claim: Claim, crashes: Crashes, record: &File) -> io::Result<Self> {
        let record = super::claim::place(&record.metadata()?);
        let folder = claim.folder().to_path_buf();
        Ok(Self { claim, crashes, record, told: Vec::new(), folder, own: Default::default() })
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
    /// Looks, and lets the head tell what was found.
    pub fn look(&mut self, machines: &Machines) {
        let (mut again, mut failed) = (Vec::new(), Vec::new());
        match self.claim.renew() {
            Ok(false) => {}
            Ok(true) => again.push(LOCK.to_string()),
            Err(why) => failed.push(Unmended { file: LOCK.into(), why: why.into() }),
        }
        // While another one may have the directory, nothing is made there.
        if failed.is_empty() {
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
        if !again.is_empty() || failed != self.told {
            self.told.clone_from(&failed);
            machines.tell_renewed(again, failed);
        }
    }
}
