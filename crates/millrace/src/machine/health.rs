//! How the drives of this machine say they are, for the status and metrics. A thread of its own asks them once a minute, so
//! that nobody waits for a drive that does not answer.

use super::files::Files;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use topology::{Machine, Missing, Recorder, Source};

/// How often drives are asked.
const INTERVAL: Duration = Duration::from_secs(60);
/// What a drive said counts for so long.
const LASTS: Duration = Duration::from_secs(180);
/// Where drives and their sensors are: nothing else is read.
const PLACES: [&str; 4] = ["/sys/block", "/sys/class/nvme", "/sys/class/hwmon", "/nvme"];

/// What the drives said last, and when.
#[derive(Clone, Debug, Default)]
pub struct Healths(Arc<Mutex<Vec<Said>>>);

#[derive(Debug)]
struct Said {
    drive: String,
    at: Instant,
    health: api::DriveHealth,
}

impl Healths {
    /// Begins to ask, and goes on for as long as the process lives.
    pub fn watch() -> std::io::Result<Self> {
        let all = Self::default();
        let told = all.clone();
        let ask = move || {
            let mut files = Files::new("/");
            loop {
                told.note(&look(&mut files), Instant::now());
                std::thread::sleep(INTERVAL);
            }
        };
        std::thread::Builder::new().name("drive-health".into()).spawn(ask)?;
        Ok(all)
    }
    /// What a look at the machine found. A drive that said nothing keeps what it said before, for a while.
    fn note(&self, machine: &Machine, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = machine
            .drives
            .iter()
            .filter_map(|d| Some(Said { drive: d.name.clone(), at: now, health: health_of(d)? }));
        let new: Vec<Said> = new.collect();
        all.retain(|old| now.duration_since(old.at) < LASTS && !new.iter().any(|n| n.drive == old.drive));
        all.extend(new);
    }
    /// Adds what is known to drives of the head.
    pub fn add_to(&self, drives: &mut [api::Drive]) {
        let now = Instant::now();
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for drive in drives {
            let name = device_name(&drive.path);
            let said = all.iter().find(|s| s.drive == name && now.duration_since(s.at) < LASTS);
            drive.health = said.map(|s| s.health.clone());
        }
    }
}

/// The drives of this machine.
fn look(files: &mut Files) -> Machine {
    let mut drives = Drives(files);
    Machine::of(&Recorder::begin(&mut drives, &api::Time::default().to_string(), false).end())
}

/// The device that a path of the head's means: `nvme0n1`.
fn device_name(path: &str) -> String {
    let path = path.strip_prefix("block:").unwrap_or(path);
    // A name that the system gave to it. Elsewhere nothing is looked up, since a file system may hang.
    let device = path.starts_with("/dev/disk/").then(|| std::fs::canonicalize(path).ok()).flatten();
    let device = device.as_ref().and_then(|d| d.to_str()).unwrap_or(path);
    topology::plain_name(device).to_string()
}

/// What a drive says, if it says anything.
fn health_of(drive: &topology::Drive) -> Option<api::DriveHealth> {
    let celsius = drive.temperature.map(|t| t.now);
    let Some(said) = &drive.health else {
        return celsius.map(|_| api::DriveHealth { celsius, ..api::DriveHealth::default() });
    };
    Some(api::DriveHealth {
        celsius,
        used_percent: Some(said.used),
        spare_percent: said.spare,
        media_errors: Some(said.media_errors),
        throttled_seconds: Some(said.throttled_seconds),
        hours: Some(said.hours),
        warns: !said.warnings.is_empty(),
    })
}

/// The files of drives alone.
struct Drives<'a>(&'a mut Files);

fn is_of_drives(path: &str) -> bool {
    PLACES
        .iter()
        .any(|place| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

impl Source for Drives<'_> {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, Missing> {
        if is_of_drives(path) { self.0.read(path) } else { Err(Missing::Absent) }
    }
    fn list(&mut self, path: &str) -> Vec<String> {
        if is_of_drives(path) { self.0.list(path) } else { vec![] }
    }
    fn link(&mut self, path: &str) -> Option<String> {
        if is_of_drives(path) { self.0.link(path) } else { None }
    }
    fn status(&mut self) -> Option<String> {
        None
    }
    fn now_us(&mut self) -> u64 {
        self.0.now_us()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a machine with one drive and its sensor.
    fn machine() -> (tempfile::TempDir, Machine) {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let device = "sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0";
        write(&format!("{device}/nvme0n1/size"), "8388608\n");
        write(&format!("{device}/hwmon1/name"), "nvme\n");
        write(&format!("{device}/hwmon1/temp1_input"), "41850\n");
        write("sys/class/net/eth0/speed", "100000\n");
        write("sys/class/nvme/nvme0/transport", "pcie\n");
        let page = |change: &dyn Fn(&mut [u8])| {
            let mut page = [0u8; 512];
            (page[1], page[2], page[3], page[4], page[5]) = (0x37, 0x01, 98, 10, 7);
            change(&mut page);
            page.to_vec()
        };
        std::fs::create_dir_all(folder.path().join("nvme/nvme0")).expect("made");
        std::fs::write(folder.path().join("nvme/nvme0/health"), page(&|p| p[160] = 3)).expect("written");
        for (from, to) in [("sys/block/nvme0n1", "nvme0n1"), ("sys/class/hwmon/hwmon1", "hwmon1")] {
            let from = folder.path().join(from);
            std::fs::create_dir_all(from.parent().expect("a folder")).expect("made");
            std::os::unix::fs::symlink(folder.path().join(device).join(to), from).expect("linked");
        }
        let found = look(&mut Files::new(folder.path()));
        (folder, found)
    }

    #[test]
    fn drives_say_how_they_are_and_are_believed_for_three_minutes() {
        let (_folder, machine) = machine();
        let all = Healths::default();
        let health = |all: &Healths| {
            let path = "/dev/nvme0n1".to_string();
            let mut drives = [api::Drive { path, ..api::Drive::default() }, api::Drive::default()];
            all.add_to(&mut drives);
            assert_eq!(drives[1].health, None);
            drives[0].health.clone()
        };
        assert_eq!(health(&all), None);
        all.note(&machine, Instant::now());
        let said = health(&all).expect("it said something");
        assert_eq!((said.used_percent, said.spare_percent, said.media_errors), (Some(7), Some(98), Some(3)));
        assert!(said.celsius.is_some_and(|c| (41.0..43.0).contains(&c)), "{said:?}");
        let Some(before) = Instant::now().checked_sub(LASTS) else { return };
        let all = Healths::default();
        all.note(&machine, before);
        assert_eq!(health(&all), None, "too long ago");
    }

    #[test]
    fn nothing_but_drives_is_looked_at() {
        assert!(is_of_drives("/sys/block/nvme0n1/size") && is_of_drives("/nvme"));
        assert!(
            !is_of_drives("/sys/class/net/eth0/speed")
                && !is_of_drives("/nvmeof")
                && !is_of_drives("/proc/cpuinfo")
        );
    }
}
