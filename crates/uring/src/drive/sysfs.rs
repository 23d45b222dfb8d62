//! What Linux shows of block devices in /sys and /proc.

use base::{FenceKind, NoFence, Place};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

const CLASS: &str = "/sys/class/block";
/// Devices below devices that are followed.
const DEPTH_MAX: u32 = 8;

/// A block device by its kernel name.
pub(crate) struct BlockDevice {
    name: String,
    sys: PathBuf,
}

impl BlockDevice {
    /// The device behind a node with device number `major:minor`.
    pub(crate) fn by_number(major: u32, minor: u32) -> Option<Self> {
        let sys = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        let name = sys.file_name()?.to_str()?.to_owned();
        Some(Self { name, sys })
    }
    /// Text of an attribute, of the whole disk if this is a partition.
    fn attribute(&self, name: &str) -> Option<String> {
        let read = |dir: &Path| fs::read_to_string(dir.join(name)).ok();
        let text =
            read(&self.sys).or_else(|| if self.is_partition() { read(self.sys.parent()?) } else { None })?;
        Some(text.trim().to_owned())
    }
    fn number(&self, name: &str) -> Option<u64> {
        self.attribute(name)?.parse().ok()
    }
    fn is_partition(&self) -> bool {
        self.sys.join("partition").exists()
    }
    /// Completed writes may be lost at a power cut. Unknown counts as yes.
    pub(crate) fn volatile_cache(&self) -> bool {
        self.attribute("queue/write_cache").is_none_or(|c| c != "write through")
    }
    /// The device can zero ranges by itself, so that giving blocks back is more than writing zeroes.
    pub(crate) fn zeroes_itself(&self) -> bool {
        self.number("queue/write_zeroes_max_bytes").is_some_and(|n| n > 0)
    }
    /// The largest block that it writes without reading first, bytes.
    pub(crate) fn physical_block_bytes(&self) -> u64 {
        self.number("queue/physical_block_size").unwrap_or(4096)
    }
    /// Operations that it takes at a time: by each hardware queue, and how many queues there are.
    pub(crate) fn queue_depth(&self) -> (u32, u32) {
        let depth = self.number("queue/nr_requests").unwrap_or(128);
        let disk = if self.is_partition() { self.sys.parent().unwrap_or(&self.sys) } else { &self.sys };
        let queues = fs::read_dir(disk.join("mq")).map_or(1, Iterator::count);
        (depth.clamp(1, 4096) as u32, queues.max(1) as u32)
    }
    /// Model and serial number, empty if unknown.
    pub(crate) fn identity(&self) -> (String, String) {
        let find = |names: &[&str]| names.iter().find_map(|n| self.attribute(n)).unwrap_or_default();
        (find(&["device/model"]), find(&["device/serial", "serial", "device/wwid"]))
    }
    /// Where its blocks lie: in itself by its number and its name for life, in the disk of a partition, in the parts of a
    /// device-mapper or md device, in the file of a loop device; and in what those lie in again.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.places_within(DEPTH_MAX)
    }
    fn places_within(&self, depth: u32) -> Vec<Place> {
        const SECTOR: u64 = 512;
        let own = |name: &str| self.own_attribute(name)?.trim().parse::<u64>().ok();
        let bytes = own("size").map_or(u64::MAX, |n| n.saturating_mul(SECTOR));
        let mut places =
            vec![Place::range(format!("device {}", self.own_attribute("dev").unwrap_or_default()), 0, bytes)];
        let wwid = self.own_attribute("wwid").or_else(|| self.own_attribute("device/wwid"));
        places.extend(wwid.filter(|id| is_for_life(id)).map(|id| Place::wwid(id.trim(), bytes)));
        if depth == 0 {
            return places;
        }
        // What lies below, and from which byte on; None if only the mapping knows.
        let slaves = self.sys.join("slaves");
        let mut below: Vec<(Self, Option<u64>)> = entries(&slaves)
            .into_iter()
            .filter_map(|name| Some((Self::by_path(&slaves.join(name))?, None)))
            .collect();
        if self.is_partition() {
            let disk = self.sys.parent().and_then(Self::by_path);
            below.extend(disk.map(|d| (d, own("start").map(|n| n.saturating_mul(SECTOR)))));
        }
        let file = self.own_attribute("loop/backing_file").and_then(|path| fs::metadata(path).ok());
        if let Some(meta) = file {
            let first = own("loop/offset");
            if meta.file_type().is_block_device() {
                let (major, minor) = device_number(&meta);
                below.extend(Self::by_number(major, minor).map(|d| (d, first)));
            } else {
                places.push(Place::whole(file_name(&meta)).part(first, bytes));
            }
        }
        for (part, first) in below {
            places.extend(part.places_within(depth - 1).into_iter().map(|p| p.part(first, bytes)));
        }
        places
    }
    /// By what means others can be kept from it, as far as the kernel knows without a command to the device.
    pub(crate) fn fence(&self) -> FenceKind {
        let has = |name: &str| self.sys.join(name).exists();
        let target = |name: &str| fs::read_link(self.sys.join(name)).unwrap_or_default();
        let ends =
            |path: &Path, name: &str| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(name));
        // A name with a number behind it: `ram0`, not `ramble0`.
        let named = |kind: &str| {
            let number = self.name.strip_prefix(kind);
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        if self.is_partition() {
            return FenceKind::None(NoFence::Partition);
        }
        if has("dm") || has("md") {
            return FenceKind::None(NoFence::Mapped);
        }
        if named("loop") {
            return FenceKind::None(NoFence::Loop);
        }
        if ["ram", "zram", "nullb", "pmem"].into_iter().any(named) {
            return FenceKind::None(NoFence::Memory);
        }
        if target("device/driver").ends_with("drivers/sd") {
            return FenceKind::Scsi;
        }
        // A namespace by its controller, or by its subsystem if it may have several.
        if has("nsid") && ends(&target("device/subsystem"), "nvme") {
            return FenceKind::Nvme;
        }
        FenceKind::None(NoFence::Driver)
    }
    fn by_path(sys: &Path) -> Option<Self> {
        let sys = fs::canonicalize(sys).ok()?;
        let name = sys.file_name()?.to_str()?.to_owned();
        Some(Self { name, sys })
    }
    /// Text of an attribute of the device itself.
    fn own_attribute(&self, name: &str) -> Option<String> {
        Some(fs::read_to_string(self.sys.join(name)).ok()?.trim_end_matches('\n').to_owned())
    }
    /// Who uses it, in words: other devices on top of it, mounts, swap; of its partitions as well.
    pub(crate) fn users(&self) -> Vec<String> {
        let mut users = Vec::new();
        for dir in std::iter::once(self.sys.clone()).chain(self.partitions()) {
            for holder in entries(&dir.join("holders")) {
                users.push(holder_words(&holder, Path::new(CLASS)));
            }
            let Ok(number) = fs::read_to_string(dir.join("dev")) else { continue };
            users.extend(
                mounts_of(number.trim()).into_iter().map(|at| format!("the file system mounted at {at}")),
            );
            let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if fs::read_to_string("/proc/swaps").is_ok_and(|s| s.contains(&format!("/dev/{name} "))) {
                users.push("swap".into());
            }
        }
        users
    }
    fn partitions(&self) -> Vec<PathBuf> {
        let below = entries(&self.sys).into_iter().map(|n| self.sys.join(n));
        below.filter(|p| p.join("partition").exists()).collect()
    }
    /// A kind of device that nobody makes a pool of.
    fn is_skipped(&self) -> bool {
        ["ram", "sr", "fd", "nbd"].iter().any(|p| {
            self.name.strip_prefix(p).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
    }
    /// The numbers in `uevent`, by which it is known to users of ours.
    fn is_candidate(&self) -> bool {
        let empty = self.number("size").unwrap_or(0) == 0;
        // A disk with partitions is represented by them.
        !empty
            && !self.is_skipped()
            && self.partitions().is_empty()
            && self.attribute("ro").is_some_and(|r| r == "0")
    }
}

/// Whether an identifier of `wwid` is one drive's alone, by the rules of those who give them out. What is made of words (`t10.`)
/// is often the same for all drives of a kind.
fn is_for_life(wwid: &str) -> bool {
    let registered =
        ["naa.", "eui.", "uuid.", "nvme."].iter().find_map(|kind| wwid.trim().strip_prefix(kind));
    registered.is_some_and(|id| id.bytes().any(|b| b.is_ascii_alphanumeric() && b != b'0'))
}

/// Nodes of the loop devices that lie in a file or a block device.
pub(crate) fn loops_over(meta: &fs::Metadata) -> Vec<PathBuf> {
    let is_same = |there: &fs::Metadata| {
        if meta.file_type().is_block_device() {
            there.file_type().is_block_device() && there.rdev() == meta.rdev()
        } else {
            (there.dev(), there.ino()) == (meta.dev(), meta.ino())
        }
    };
    let mounts = std::cell::OnceCell::new();
    let lies_there = |name: &String| {
        let file = fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file"));
        let Ok(file) = file else { return false };
        let path = file.trim_end_matches('\n');
        let mounts = mounts.get_or_init(|| fs::read_to_string("/proc/self/mountinfo").unwrap_or_default());
        // The kernel asks the file system, too, if it is asked for the numbers of the file: LOOP_GET_STATUS64 may hang as stat.
        !may_hang(path, device_of(meta), mounts) && fs::metadata(path).is_ok_and(|there| is_same(&there))
    };
    let loops = entries(Path::new("/sys/block")).into_iter().filter(|name| name.starts_with("loop"));
    loops.filter(lies_there).map(|name| Path::new("/dev").join(name)).collect()
}

/// Whether who looks at a path may have to wait for ever, by a `/proc/PID/mountinfo`: it leads through a file system that another
/// machine or process answers for, and nothing of it through the device `ours`, which somebody could look at just now.
fn may_hang(path: &str, ours: (u32, u32), mountinfo: &str) -> bool {
    let below = |at: &str| {
        let rest = path.strip_prefix(at.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mounts = mountinfo.lines().filter_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(2);
        let (device, at) = (fields.next()?, unescaped(fields.nth(1)?));
        below(&at).then(|| (device.to_owned(), at, source.split(' ').next().unwrap_or("").to_owned()))
    });
    let mut remote = false;
    for (device, at, kind) in mounts {
        if device == format!("{}:{}", ours.0, ours.1) && at != "/" {
            return false;
        }
        // If the root file system hangs, this code does not run.
        remote |= at != "/" && is_remote(&kind);
    }
    remote
}

/// File systems that answer when another machine or process does, by the name that /proc/mounts has for them.
fn is_remote(kind: &str) -> bool {
    const REMOTE: [&str; 15] = [
        "9p",
        "afs",
        "autofs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "fuse",
        "gfs2",
        "glusterfs",
        "lustre",
        "ncpfs",
        "ocfs2",
        "smb3",
        "virtiofs",
    ];
    kind.starts_with("nfs") || kind.starts_with("fuse.") || REMOTE.contains(&kind)
}

/// A name as /proc/PID/mountinfo escapes it: blanks, tabs, line breaks and backslashes are three octal digits.
fn unescaped(name: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(name.to_owned(), |name, (escape, plain)| name.replace(escape, plain))
}

/// Major and minor number of the device that a file lies on.
fn device_of(meta: &fs::Metadata) -> (u32, u32) {
    (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()))
}

/// What a regular file is called in `DriveInfo::places`.
pub(crate) fn file_name(meta: &fs::Metadata) -> String {
    format!("file {}:{}", meta.dev(), meta.ino())
}

/// Paths of block devices that are there, writable, not empty and unused.
pub fn candidates() -> Vec<String> {
    let mut found: Vec<String> = entries(Path::new(CLASS))
        .into_iter()
        .filter_map(|name| {
            let sys = fs::canonicalize(Path::new(CLASS).join(&name)).ok()?;
            let device = BlockDevice { name: name.clone(), sys };
            let path = format!("/dev/{}", name.replace('!', "/"));
            let node = fs::metadata(&path).ok()?.file_type().is_block_device();
            (node && device.is_candidate() && device.users().is_empty()).then_some(path)
        })
        .collect();
    found.sort();
    found
}

/// A block device that no pool can be made of as it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Its path.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Model, empty if unknown.
    pub model: String,
    /// Serial number, empty if unknown.
    pub serial: String,
    /// Who has it, in words; empty if nobody does.
    pub users: Vec<String>,
    /// Its partitions.
    pub partitions: Vec<String>,
    /// It cannot be written to.
    pub read_only: bool,
}

/// Disks that are no candidates: somebody uses them or a part of them, they have partitions, or cannot be written to.
pub fn taken() -> Vec<Taken> {
    let one = |name: String| {
        let sys = fs::canonicalize(Path::new(CLASS).join(&name)).ok()?;
        let device = BlockDevice { name: name.clone(), sys };
        let path = format!("/dev/{}", name.replace('!', "/"));
        let node = fs::metadata(&path).ok()?.file_type().is_block_device();
        let bytes = device.number("size").unwrap_or(0) * 512;
        if !node || bytes == 0 || device.is_skipped() || device.is_partition() {
            return None;
        }
        let partitions = device.partitions();
        let name_of = |p: &PathBuf| Some(p.file_name()?.to_string_lossy().into_owned());
        let mut partitions: Vec<String> = partitions.iter().filter_map(name_of).collect();
        partitions.sort();
        let users = device.users();
        let read_only = device.attribute("ro").is_none_or(|r| r != "0");
        // Images of programs that are mounted read-only, one loop device each, are nobody's drives.
        let image = read_only && name.starts_with("loop");
        let (model, serial) = device.identity();
        let is_taken = !users.is_empty() || !partitions.is_empty() || read_only;
        (is_taken && !image).then_some(Taken { path, bytes, model, serial, users, partitions, read_only })
    };
    let mut all: Vec<Taken> = entries(Path::new(CLASS)).into_iter().filter_map(one).collect();
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

/// What a device on top of another one is, in words: `holder` is its kernel name, `class` the folder of all block devices.
fn holder_words(holder: &str, class: &Path) -> String {
    let text = |name: &str| {
        fs::read_to_string(class.join(holder).join(name)).map(|t| t.trim().to_owned()).unwrap_or_default()
    };
    let (uuid, name) = (text("dm/uuid"), text("dm/name"));
    match uuid.split('-').next().unwrap_or_default() {
        "LVM" => format!("the LVM volume {name}"),
        "CRYPT" => format!("the encrypted device {name}"),
        "mpath" => format!("the multipath device {name}"),
        _ if !name.is_empty() => format!("the mapped device {name}"),
        _ if class.join(holder).join("md").exists() => format!("the md array {holder}"),
        _ => format!("the device {holder}"),
    }
}

/// The device a mounted file comes from, `major:minor`, is mounted where?
fn mounts_of(number: &str) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let fields = table.lines().map(|l| l.split(' ').collect::<Vec<_>>());
    fields.filter(|f| f.len() > 4 && f[2] == number).map(|f| unescaped(f[4])).collect()
}

fn entries(dir: &Path) -> Vec<String> {
    let Ok(list) = fs::read_dir(dir) else { return Vec::new() };
    list.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect()
}

/// Major and minor number of a node.
pub(crate) fn device_number(meta: &fs::Metadata) -> (u32, u32) {
    (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_top_of_a_drive_is_named_as_its_tools_name_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        for (n, uuid, name) in
            [(0, "LVM-abc", "vg-root"), (1, "CRYPT-LUKS2-abc", "home"), (2, "mpath-36", "a"), (3, "", "odd")]
        {
            put(&format!("dm-{n}/dm/uuid"), &format!("{uuid}\n"));
            put(&format!("dm-{n}/dm/name"), &format!("{name}\n"));
        }
        put("md0/md/level", "raid1\n");
        for (holder, words) in [
            ("dm-0", "the LVM volume vg-root"),
            ("dm-1", "the encrypted device home"),
            ("dm-2", "the multipath device a"),
            ("dm-3", "the mapped device odd"),
            ("md0", "the md array md0"),
            ("bcache0", "the device bcache0"),
        ] {
            assert_eq!(holder_words(holder, folder.path()), words);
        }
    }

    /// A loop device of somebody's file on a server that did not answer held up every open of a drive.
    #[test]
    fn nothing_is_asked_of_a_server_that_has_nothing_to_do_with_a_drive() {
        let mounts = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:45 / /mnt/far rw - nfs4 server:/export rw
31 22 0:46 / /mnt/far\\040away rw shared:7 master:3 - nfs server:/other rw
32 30 8:17 / /mnt/far/near rw - xfs /dev/sdb1 rw
33 22 0:47 / /mnt/box rw - fuse.sshfs box: rw
34 22 8:33 / /mnt/stick rw - fuseblk /dev/sdc1 rw
";
        let sda = (8, 1);
        for (path, ours, hangs) in [
            ("/srv/disk.img", sda, false),
            ("/mnt/farther/disk.img", sda, false),
            ("/mnt/far/disk.img", sda, true),
            ("/mnt/far", sda, true),
            ("/mnt/far away/disk.img", sda, true),
            ("/mnt/box/disk.img", sda, true),
            ("/mnt/stick/disk.img", sda, false),
            // The drive lies there itself: it was just opened.
            ("/mnt/far/disk.img", (0, 45), false),
            ("/mnt/far/disk.img", (0, 46), true),
            // The way leads through the server.
            ("/mnt/far/near/disk.img", sda, true),
            ("/mnt/far/near/disk.img", (8, 17), false),
        ] {
            assert_eq!(may_hang(path, ours, mounts), hangs, "{path} for {ours:?}");
        }
        let diskless = "20 1 0:20 / / rw - nfs4 server:/root rw\n";
        assert!(!may_hang("/srv/disk.img", sda, diskless), "whoever has it as root waits for it anyway");
        assert!(!may_hang("/srv/disk.img", sda, ""));
    }
}
