//! Finds who holds a drive that cannot be claimed, from /proc of other processes. A wrong guess is worse than no answer, so
//! it names only holders that it is sure of.

use crate::drive::sysfs;
use base::DriveUser;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Characters of a command line that are shown.
const COMMAND_MAX: usize = 60;

/// The process that has locked `file` (flock).
pub(crate) fn of_file(file: &File) -> Option<DriveUser> {
    let meta = file.metadata().ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    Some(process(locker(&locks, (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev())), meta.ino())?))
}

/// The processes that have the block device at `path` open. Which of them claimed it the kernel does not say.
pub(crate) fn of_device(path: &Path) -> Vec<DriveUser> {
    let Ok(meta) = fs::metadata(path) else { return Vec::new() };
    let device = sysfs::device_number(&meta);
    let opens = |pid: &u32| {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        // Only what looks like a device is asked: a file of a network file system might hang.
        let nodes = descriptors.flatten().map(|d| d.path());
        let nodes = nodes.filter(|d| fs::read_link(d).is_ok_and(|to| to.starts_with("/dev")));
        nodes
            .filter_map(|d| fs::metadata(d).ok())
            .any(|m| sysfs::device_number(&m) == device && m.rdev() != 0)
    };
    processes().into_iter().filter(opens).map(process).collect()
}

/// The process id in a line of /proc/locks for this inode: `1: FLOCK  ADVISORY  WRITE 4711 fe:01:12345 0 EOF`.
fn locker(locks: &str, device: (u32, u32), inode: u64) -> Option<u32> {
    let wanted = format!("{:02x}:{:02x}:{inode}", device.0, device.1);
    let fields = locks.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    let mut found = fields.filter(|f| f.get(1) == Some(&"FLOCK") && f.get(5) == Some(&&*wanted));
    found.next()?.get(4)?.parse().ok().filter(|pid| *pid > 0)
}

fn processes() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

fn process(pid: u32) -> DriveUser {
    if pid == std::process::id() {
        return DriveUser::ThisHead;
    }
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    DriveUser::Process { pid, command: shown(&bytes) }
}

/// A command line as it was typed: `millrace serve --config head.toml`.
fn shown(command: &[u8]) -> String {
    let text = String::from_utf8_lossy(command);
    // Where the program lies says less than what it was asked to do.
    let mut parts = text.split('\0').filter(|p| !p.is_empty());
    let program = parts.next().map(|p| p.rsplit('/').next().unwrap_or(p).to_string());
    let command: Vec<String> = program.into_iter().chain(parts.map(String::from)).collect();
    let mut command: String = command.join(" ").chars().filter(|c| !c.is_control()).collect();
    if command.chars().count() > COMMAND_MAX {
        command = command.chars().take(COMMAND_MAX).chain(['…']).collect();
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_found_by_its_device_and_inode() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fe:01:11 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 4711 fe:01:11 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 8 fe:01:11 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 0 00:2d:12 0 EOF\n";
        assert_eq!(locker(locks, (0xfe, 1), 11), Some(4711));
        assert_eq!(locker(locks, (0xfe, 1), 12), None);
        assert_eq!(locker(locks, (0, 0x2d), 12), None, "of another container it is not known who");
        assert_eq!(locker("nonsense\n\n", (0, 0), 0), None);
    }

    #[test]
    fn a_command_is_named_as_it_was_typed_and_not_too_long() {
        assert_eq!(shown(b"/usr/bin/millrace\0serve\0-c\0head.toml\0"), "millrace serve -c head.toml");
        assert_eq!(shown(b""), "");
        let long = shown(&[b'x'; 200]);
        assert!(long.ends_with("x…") && long.chars().count() < 65, "{long}");
        assert_eq!(shown(b"a\x1b[2J\0b"), "a[2J b", "a terminal is not written to by others");
    }

    #[test]
    fn a_locked_file_names_its_process() {
        let file = tempfile::tempfile().expect("a file");
        assert_eq!(of_file(&file), None);
        file.lock().expect("locked");
        // Where /proc/locks hides it, nothing is said.
        assert!(of_file(&file).is_none_or(|w| w == DriveUser::ThisHead));
    }
}
