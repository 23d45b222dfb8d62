//! The archive: tar and gzip, for its owner's eyes.

use crate::failure::Failure;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// An archive that is being written. One that is not finished is removed.
pub struct Archive {
    path: PathBuf,
    finished: bool,
    tar: tar::Builder<GzEncoder<File>>,
    /// The folder that it unpacks to.
    folder: String,
    now: u64,
}

impl Archive {
    /// Makes the file `path`, which must not be there.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = made.map_err(|e| failed(path, &e).with_next("millrace support --output ANOTHER"))?;
        let name = path.file_name().map_or_else(Default::default, |n| n.to_string_lossy());
        let folder =
            name.trim_end_matches(".gz").trim_end_matches(".tar").trim_end_matches(".tgz").to_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
        let tar = tar::Builder::new(GzEncoder::new(file, Compression::default()));
        Ok(Self { path: path.into(), finished: false, tar, folder, now })
    }

    /// Adds a file.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.now);
        let name = format!("{}/{name}", self.folder);
        self.tar.append_data(&mut header, name, text.as_bytes()).map_err(|e| failed(&self.path, &e))
    }

    /// Ends it, durably.
    pub fn finish(&mut self) -> Result<(), Failure> {
        let ended = self.tar.finish().and_then(|()| {
            self.tar.get_mut().try_finish()?;
            self.tar.get_ref().get_ref().sync_all()
        });
        ended.map_err(|e| failed(&self.path, &e))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        if !self.finished {
            // It is of no use, and whoever failed says so.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{} cannot be written: {error}", path.display()))
}
