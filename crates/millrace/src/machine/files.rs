//! The files of a machine, below a root: `/`, or a folder that looks like one.

use std::io::Read;
use std::path::{Path, PathBuf};
use topology::{FILE_MAX, Missing, Source};

/// A tree of files.
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// The tree below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
    /// Where a path of the machine is in this tree.
    pub fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

impl Source for Files {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, Missing> {
        let place = self.place(path);
        let why = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Missing::Absent,
            std::io::ErrorKind::IsADirectory => Missing::Absent,
            std::io::ErrorKind::PermissionDenied => Missing::Refused,
            _ => Missing::Broken,
        };
        // A fifo or a device of that name would wait for ever.
        if !std::fs::metadata(&place).map_err(why)?.is_file() {
            return Err(Missing::Absent);
        }
        let mut out = Vec::new();
        let file = std::fs::File::open(&place).map_err(why)?;
        match file.take(FILE_MAX as u64).read_to_end(&mut out) {
            // What could be read of a device's configuration before it refused is true.
            Err(_) if !out.is_empty() => Ok(out),
            Err(e) => Err(why(e)),
            Ok(_) => Ok(out),
        }
    }
    fn list(&mut self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.place(path)) else { return Vec::new() };
        entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect()
    }
    fn link(&mut self, path: &str) -> Option<String> {
        let place = self.place(path);
        if !std::fs::symlink_metadata(&place).ok()?.is_symlink() {
            return None;
        }
        let real = std::fs::canonicalize(place).ok()?;
        let root = std::fs::canonicalize(&self.root).ok()?;
        Some(Path::new("/").join(real.strip_prefix(root).ok()?).to_str()?.to_string())
    }
}
