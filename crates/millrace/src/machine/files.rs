//! The files of a machine, below a root: `/`, or a folder that looks like one. What the kernel tells of network ports
//! by a call alone has a path too, `/ethtool/PORT/VALUE`, so that it is recorded, changed and restored like the rest; so has
//! what NVMe drives tell of their health, `/nvme/CONTROLLER/health`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use topology::{FILE_MAX, Missing, Source};
use uring::ethtool::{self, Knob};

/// A tree of files.
pub struct Files {
    root: PathBuf,
    began: Instant,
    /// Controllers that were asked how they are and have not answered yet.
    asked: BTreeMap<String, mpsc::Receiver<Page>>,
}

/// What a controller tells of its health.
type Page = std::io::Result<Vec<u8>>;

impl Files {
    /// The tree below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), began: Instant::now(), asked: BTreeMap::new() }
    }
    /// The port and its value that a path means, if this tree is the machine itself.
    fn knob<'a>(&self, path: &'a str) -> Option<(&'a str, Knob)> {
        let (port, word) = path.strip_prefix("/ethtool/")?.split_once('/')?;
        let knob = Knob::ALL.into_iter().find(|k| k.word() == word)?;
        (self.root == Path::new("/")).then_some((port, knob))
    }
    /// The controller whose health a path means, if this tree is the machine itself.
    fn patient<'a>(&self, path: &'a str) -> Option<&'a str> {
        let controller = path.strip_prefix("/nvme/")?.strip_suffix("/health")?;
        (self.root == Path::new("/")).then_some(controller)
    }
    /// Gives `value` to a file of the kernel, which takes it in one write. Files are neither made nor cut.
    pub fn write(&self, path: &str, value: &str) -> std::io::Result<()> {
        if let Some((port, knob)) = self.knob(path) {
            let value = value.parse().map_err(|_| std::io::ErrorKind::InvalidInput)?;
            return ethtool::set(port, knob, value);
        }
        let place = self.place(path);
        // A file on a disk (a folder that looks like a machine) would keep the end of a longer text.
        let plain = !["/proc", "/sys"].iter().any(|kernel| place.starts_with(kernel));
        let mut file = std::fs::OpenOptions::new().write(true).truncate(plain).open(&place)?;
        file.write_all(value.as_bytes())
    }
    /// Where a path of the machine is in this tree.
    pub fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

impl Source for Files {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, Missing> {
        let place = self.place(path);
        if let Some((port, knob)) = self.knob(path) {
            // Most drivers have only some of these: what one has not is not there.
            let value = ethtool::get(port, knob).map_err(|_| Missing::Absent)?;
            return Ok(value.to_string().into_bytes());
        }
        let why = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Missing::Absent,
            std::io::ErrorKind::IsADirectory => Missing::Absent,
            std::io::ErrorKind::PermissionDenied => Missing::Refused,
            _ => Missing::Broken,
        };
        if let Some(controller) = self.patient(path) {
            return self.health(controller);
        }
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
        let path = if path == "/ethtool" && self.root == Path::new("/") { "/sys/class/net" } else { path };
        let path = if path == "/nvme" && self.root == Path::new("/") { "/sys/class/nvme" } else { path };
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
    fn status(&mut self) -> Option<String> {
        None
    }
    fn now_us(&mut self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }
}

/// How long a controller may take to tell its health; the rest of the machine is not kept waiting.
const HEALTH_PATIENCE: Duration = Duration::from_secs(3);

impl Files {
    /// What a controller on PCIe that works tells of its health. Those of other machines are theirs to ask, and one that
    /// is being reset would not answer. One that has not answered is not asked again.
    fn health(&mut self, controller: &str) -> Result<Vec<u8>, Missing> {
        let is = |file: &str, wanted: &str| {
            let text = std::fs::read_to_string(format!("/sys/class/nvme/{controller}/{file}"));
            text.map(|t| t.trim() == wanted).map_err(|_| Missing::Absent)
        };
        if !(is("transport", "pcie")? && is("state", "live")?) {
            return Err(Missing::Absent);
        }
        let answer = match self.asked.remove(controller) {
            Some(answer) => answer,
            None => ask(controller),
        };
        match answer.recv_timeout(HEALTH_PATIENCE) {
            Ok(Ok(page)) => Ok(page),
            Ok(Err(e)) if e.kind() == std::io::ErrorKind::NotFound => Err(Missing::Absent),
            Ok(Err(e)) if e.kind() == std::io::ErrorKind::PermissionDenied => Err(Missing::Refused),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                self.asked.insert(controller.into(), answer);
                Err(Missing::Broken)
            }
            Ok(Err(_)) | Err(mpsc::RecvTimeoutError::Disconnected) => Err(Missing::Broken),
        }
    }
}

/// Asks a controller, in a thread that may hang.
fn ask(controller: &str) -> mpsc::Receiver<Page> {
    let (told, tells) = mpsc::channel();
    let name = controller.to_string();
    std::thread::spawn(move || {
        let page = uring::nvme::health(&name).map(|page| page.to_vec());
        // Whoever waited may have gone on.
        let _ = told.send(page);
    });
    tells
}
