//! The file `alarms` of the state directory: what receivers were told, and what waits for them.

use super::receiver::Kept;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Name of the file.
const NAME: &str = "alarms";

/// What the file holds.
#[derive(Serialize, Deserialize)]
struct Content {
    /// Of this shape: 1.
    version: u32,
    receivers: BTreeMap<String, Kept>,
}

/// Where the file is.
pub fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// What is kept, by receiver; nothing, if that cannot be read: then what stands is told again.
pub fn read(path: &Path) -> BTreeMap<String, Kept> {
    let why = match std::fs::read(path) {
        Ok(bytes) => match serde_json::from_slice::<Content>(&bytes) {
            Ok(content) if content.version == 1 => return content.receivers,
            Ok(content) => format!("its version is {}", content.version),
            Err(e) => e.to_string(),
        },
        Err(e) if e.kind() == ErrorKind::NotFound => return BTreeMap::new(),
        Err(e) => e.to_string(),
    };
    tracing::warn!("{} cannot be read ({why}): what is not well is told again", path.display());
    BTreeMap::new()
}

/// As it stands in the file.
pub fn text(receivers: BTreeMap<String, Kept>) -> String {
    serde_json::to_string(&Content { version: 1, receivers }).expect("plain data") + "\n"
}

/// Replaces the file.
pub fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut file = std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    std::fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_a_damaged_file_is_as_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = path(folder.path());
        assert!(read(&path).is_empty());
        let kept = BTreeMap::from([("oncall".to_string(), Kept::default())]);
        write(&path, &text(kept.clone())).expect("written");
        write(&path, &text(kept.clone())).expect("replaced");
        assert_eq!(read(&path), kept);
        for text in ["", "{", "{\"version\":2,\"receivers\":{}}"] {
            std::fs::write(&path, text).expect("written");
            assert!(read(&path).is_empty(), "{text}");
        }
    }
}
