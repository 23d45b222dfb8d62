//! The file `alarms` of the state directory: what receivers were told, and what waits for them.

use super::receiver::Kept;
use crate::state;
use crate::words::parts::file_fault;
use finding::FileFault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the file.
pub const NAME: &str = "alarms";

/// What the file holds.
#[derive(Serialize, Deserialize)]
struct Content {
    receivers: BTreeMap<String, Kept>,
}

/// What is kept, by receiver; nothing, if that cannot be read: then what stands is told again.
pub fn read(folder: &Path) -> BTreeMap<String, Kept> {
    match state::read::<Content>(folder, NAME) {
        Ok(content) => content.map_or(BTreeMap::new(), |c| c.receivers),
        Err(why) => {
            let why = file_fault(&folder.join(NAME).display().to_string(), &why);
            tracing::warn!("{why}: what is not well is told again");
            BTreeMap::new()
        }
    }
}

/// Checks the bytes of the file.
pub fn check_kept(bytes: &[u8]) -> Result<(), FileFault> {
    files::open::<Content>(NAME, bytes).map(drop)
}

/// Replaces the file. One that cannot be read is not written over.
///
/// # Errors
/// In words.
pub fn write(folder: &Path, receivers: BTreeMap<String, Kept>) -> Result<(), String> {
    state::read::<Content>(folder, NAME).map_err(|why| file_fault(NAME, &why))?;
    state::write(folder, NAME, &Content { receivers }).map_err(|e| state::unwritten(NAME, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_a_damaged_file_is_as_none_and_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path();
        assert!(read(dir).is_empty());
        let kept = BTreeMap::from([("oncall".to_string(), Kept::default())]);
        write(dir, kept.clone()).expect("written");
        write(dir, kept.clone()).expect("replaced");
        assert_eq!(read(dir), kept);
        let good = std::fs::read(dir.join(NAME)).expect("there");
        for bad in [&b""[..], b"{", &good[..good.len() - 1]] {
            std::fs::write(dir.join(NAME), bad).expect("written");
            assert!(read(dir).is_empty() && write(dir, kept.clone()).is_err());
            assert_eq!(std::fs::read(dir.join(NAME)).expect("there"), bad);
        }
    }
}
