//! Files of the state directory that the daemon keeps itself, read and written as the Steward's are, and the conversion of a
//! directory of a former version (docs/formats/state.md).

use crate::failure::Failure;
use crate::words::parts::state_fault;
use base::machine::{StateError, StateOp};
use finding::{FileFault, StateFile};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What shows that a file is another one than before, or changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    /// Of the file that lies there.
    pub fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self { inode: found.ino(), bytes: found.size(), changed: (found.ctime(), found.ctime_nsec()) })
    }
}

/// The bytes of a file; None: there is none.
pub fn bytes(dir: &Path, name: &str) -> Result<Option<Vec<u8>>, FileFault> {
    match uring::on_state(dir, StateOp::Read { name: name.into() }) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(StateError::Missing) => Ok(None),
        Err(e) => Err(FileFault::State { fault: (&e).into() }),
    }
}

/// What a file says; None: there is none.
pub fn read<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<Option<T>, FileFault> {
    bytes(dir, name)?.map(|bytes| files::open(name, &bytes)).transpose()
}

/// Replaces a file, durably.
pub fn write<T: Serialize>(dir: &Path, name: &str, content: &T) -> Result<(), StateError> {
    put(dir, name, files::seal(name, content))
}

/// Replaces a file by these bytes, durably.
pub fn put(dir: &Path, name: &str, contents: Vec<u8>) -> Result<(), StateError> {
    uring::on_state(dir, StateOp::Write { name: name.into(), contents }).map(drop)
}

/// Why a file could not be written, in words.
pub fn unwritten(name: &str, error: &StateError) -> String {
    state_fault(&StateFile::Named { file: name.into() }, &error.into())
}

/// The number of the operating system for it.
pub fn errno_of(error: &StateError) -> i32 {
    use base::machine::StateFault::{Errno, Forbidden};
    match error {
        StateError::NoSpace => rustix::io::Errno::NOSPC.raw_os_error(),
        StateError::Failed(Forbidden { errno, .. } | Errno { errno, .. })
        | StateError::Unsettled(Forbidden { errno, .. } | Errno { errno, .. }) => *errno,
        _ => rustix::io::Errno::IO.raw_os_error(),
    }
}

/// The files of a directory that have an end, as bytes.
fn sealed(dir: &Path) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    let list = uring::on_state(dir, StateOp::List)
        .map_err(|e| Failure::usage(unwritten(&dir.display().to_string(), &e)))?;
    let mut found = BTreeMap::new();
    for name in String::from_utf8_lossy(&list).lines() {
        let is_sealed = files::kind(name).is_some_and(|k| k.shape.is_sealed());
        // One that cannot be read is there, and is none that could be converted. Its reader says why.
        if is_sealed && let Some(bytes) = bytes(dir, name).unwrap_or(Some(Vec::new())) {
            found.insert(name.to_string(), bytes);
        }
    }
    Ok(found)
}

/// Converts a directory of a former version, or goes on with that. A mark that cannot be read is said by `Keeper`.
pub fn convert(dir: &Path) -> Result<(), Failure> {
    let Ok(steps) = files::plan(&sealed(dir)?) else { return Ok(()) };
    let all = steps.len();
    for step in steps {
        put(dir, &step.name, step.contents).map_err(|e| {
            let message = format!("the state directory cannot be converted: {}", unwritten(&step.name, &e));
            Failure::usage(message)
                .with_next(format!("ls -ld {0}, and df -h {0}; nothing was lost", dir.display()))
        })?;
    }
    if all > 1 {
        tracing::info!("{}: {} files have the format of this version now", dir.display(), all - 2);
    }
    Ok(())
}
