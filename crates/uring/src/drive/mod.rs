//! Drives: claimed and opened once for the whole house, used by every reactor, and closed together.

pub(crate) mod disk;
mod fence;
mod holder;
pub mod nvme;
mod ram;
mod shaper;
mod spec;
pub(crate) mod sysfs;

use crate::drive::fence::Line;
use crate::drive::fence::file::{Lock, lock};
use crate::drive::ram::Ram;
use crate::drive::shaper::Shaper;
use crate::drive::spec::Spec;
use crate::drive::sysfs::BlockDevice;
use crate::fault::HouseNotice;
use crate::mail::{Control, Routes};
use base::DriveKind;
use base::machine::Shape;
use base::{
    DriveError, DriveHealth, DriveId, DriveInfo, DriveOpenFault, DriveUser, FenceError, FenceKind, FenceOp,
    FileName, NoFence, OpenError, Place, Token,
};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Operations that one reactor keeps in the kernel for a file; more would only wait in worker threads.
const FILE_DEPTH: u32 = 128;
/// How long an open waits for a claim that a process that is gone may still have, in steps.
const CLAIM_STEP: Duration = Duration::from_millis(25);
const CLAIM_STEPS: u32 = 40;
/// How long a close waits for the kernel to give up our claim, in steps.
const RELEASE_STEP: Duration = Duration::from_millis(10);
const RELEASE_STEPS: u32 = 500;

/// Where a drive's blocks are.
pub(crate) enum Backend {
    /// A block device or a file.
    Kernel(File),
    Ram(Arc<Ram>),
    Null,
}

/// An open drive.
pub(crate) struct Drive {
    pub(crate) info: DriveInfo,
    pub(crate) backend: Backend,
    pub(crate) shaper: Shaper,
    /// Operations that one reactor may have in the kernel at a time.
    pub(crate) depth: u32,
    /// The canonical path of a device or a file.
    path: Option<PathBuf>,
    /// Something that the operator should know.
    notice: Option<HouseNotice>,
    /// Another head may have its file, too.
    shared: bool,
    /// What its fence has to do.
    fence: Line,
}

impl Drive {
    /// The same, made for the one who opened it or not.
    fn made(mut self, made: bool) -> Self {
        self.info.made = made;
        self
    }
    /// What is open, if the kernel does the work.
    pub(crate) fn file(&self) -> Option<&File> {
        match &self.backend {
            Backend::Kernel(file) => Some(file),
            Backend::Ram(_) | Backend::Null => None,
        }
    }
    /// Its descriptor.
    pub(crate) fn fd(&self) -> Option<RawFd> {
        self.file().map(File::as_raw_fd)
    }
}

/// All drives of a house.
pub(crate) struct Drives {
    table: Mutex<Vec<Option<Entry>>>,
    shards: u32,
    pub(crate) notices: Mutex<Vec<HouseNotice>>,
}

struct Entry {
    drive: Arc<Drive>,
    /// Reactors that hold it.
    users: u32,
    /// Being closed: the inbox that gets the event.
    closing: Option<usize>,
}

impl Drives {
    pub(crate) fn new(shards: u32) -> Self {
        Self { table: Mutex::default(), shards, notices: Mutex::default() }
    }
    fn table(&self) -> std::sync::MutexGuard<'_, Vec<Option<Entry>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Says something to the operator.
    pub(crate) fn notice(&self, what: HouseNotice) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// A reactor begins to use a drive. None if it is not open or about to be closed.
    pub(crate) fn attach(&self, id: DriveId) -> Option<Arc<Drive>> {
        let mut table = self.table();
        let entry = table.get_mut(id.index())?.as_mut()?;
        if entry.closing.is_some() {
            return None;
        }
        entry.users += 1;
        Some(Arc::clone(&entry.drive))
    }

    /// A reactor has given up `drive`: no operation of it is left.
    pub(crate) fn detach<M: Send + 'static>(&self, id: DriveId, drive: Arc<Drive>, routes: &Arc<Routes<M>>) {
        let mut table = self.table();
        let slot = table.get_mut(id.index()).expect("a drive that was attached is in the table");
        let entry = slot.as_mut().expect("a drive that was attached is in the table");
        drop(drive);
        entry.users -= 1;
        if entry.users == 0
            && let Some(notify) = entry.closing
        {
            let entry = slot.take().expect("it was there");
            finish_close(id, entry.drive, notify, Arc::clone(routes));
        }
    }

    /// Opens in a thread of its own, as some devices take seconds; the inbox `notify` gets the result.
    pub(crate) fn open<M: Send + 'static>(
        self: &Arc<Self>,
        token: Token,
        id: DriveId,
        (spec, shared): (String, bool),
        notify: usize,
        routes: &Arc<Routes<M>>,
    ) {
        let (drives, routes) = (Arc::clone(self), Arc::clone(routes));
        run_cold("drive-open", move || {
            let result = open(&spec, shared, drives.shards, &|path| drives.has(path))
                .and_then(|drive| drives.insert(id, drive));
            routes.inboxes[notify].1.control(Control::Opened(token, result));
        });
    }

    /// Whether one of our own drives is at this canonical path.
    fn has(&self, path: &Path) -> bool {
        self.table().iter().flatten().any(|e| e.drive.path.as_deref() == Some(path))
    }

    fn insert(&self, id: DriveId, mut drive: Drive) -> Result<DriveInfo, OpenError> {
        if let Some(notice) = drive.notice.take() {
            self.notice(notice);
        }
        let mut table = self.table();
        if table.len() <= id.index() {
            table.resize_with(id.index() + 1, || None);
        }
        // Shared locks do not distinguish two of our own.
        if drive.shared && table.iter().flatten().any(|e| e.drive.path == drive.path) {
            return refused(drive.path.as_deref().unwrap_or(Path::new("")), twice());
        }
        let slot = &mut table[id.index()];
        if slot.is_some() {
            let spec = drive.info.path.clone();
            return Err(OpenError::new(spec, DriveOpenFault::NumberTaken { number: id.0 }));
        }
        let info = drive.info.clone();
        *slot = Some(Entry { drive: Arc::new(drive), users: 0, closing: None });
        Ok(info)
    }

    /// Lets go of all, as the house has ended: whoever still looks at it keeps no drive from others.
    pub(crate) fn end(&self) {
        let all = std::mem::take(&mut *self.table());
        drop(all);
    }

    /// Begins to close; `notify` gets an event when nothing uses it any more and the claim is gone.
    pub(crate) fn close<M: Send + 'static>(&self, id: DriveId, notify: usize, routes: &Arc<Routes<M>>) {
        let mut table = self.table();
        let Some(entry) = table.get_mut(id.index()).and_then(Option::as_mut) else {
            drop(table);
            routes.inboxes[notify].1.control(Control::Closed(id));
            return;
        };
        if entry.closing.is_some() {
            return;
        }
        entry.closing = Some(notify);
        if entry.users == 0 {
            let entry = table[id.index()].take().expect("it was there");
            finish_close(id, entry.drive, notify, Arc::clone(routes));
        } else {
            drop(table);
            routes.broadcast(|| Control::Closing(id));
        }
    }

    /// Looks at a drive from outside, in a thread of its own, as a file system may hang; the inbox `notify`
    /// gets the result.
    pub(crate) fn inspect<M: Send + 'static>(
        &self,
        token: Token,
        id: DriveId,
        notify: usize,
        routes: &Arc<Routes<M>>,
    ) {
        let drive = self.table().get(id.index()).and_then(Option::as_ref).map(|e| Arc::downgrade(&e.drive));
        let routes = Arc::clone(routes);
        run_cold("drive-inspect", move || {
            // Held only while it is looked at: a close must not wait for a look that has not begun.
            let drive = drive.and_then(|d| d.upgrade());
            let result = drive.map_or(Err(DriveError::Gone), |d| inspect(&d));
            routes.inboxes[notify].1.control(Control::Inspected(token, result));
        });
    }

    /// Works on a drive's fence, beside everything else; the inbox `notify` gets the result within the operation's limit.
    pub(crate) fn fence<M: Send + 'static>(
        &self,
        token: Token,
        id: DriveId,
        op: FenceOp,
        notify: usize,
        routes: &Arc<Routes<M>>,
    ) {
        let routes = Arc::clone(routes);
        let report = move |result| {
            routes.inboxes[notify].1.control(Control::Fenced(token, result));
        };
        let table = self.table();
        match table.get(id.index()).and_then(Option::as_ref).filter(|e| e.closing.is_none()) {
            None => report(Err(FenceError::Gone)),
            Some(Entry { drive, .. }) => match drive.info.fence {
                FenceKind::None(why) => report(Err(FenceError::None(why))),
                FenceKind::Scsi | FenceKind::Nvme | FenceKind::File => Line::ask(drive, op, report),
            },
        }
    }

    /// Changes a drive's artificial behaviour; every reactor looks at what waits.
    pub(crate) fn shape<M>(&self, id: DriveId, shape: Shape, routes: &Routes<M>) {
        let table = self.table();
        if let Some(entry) = table.get(id.index()).and_then(Option::as_ref) {
            // Drives that name the same link share it.
            let others = table.iter().flatten().map(|e| &e.drive.shaper);
            let link = others.filter_map(|s| s.uplink(shape.uplink)).next();
            entry.drive.shaper.set(shape, id, link);
            drop(table);
            routes.broadcast(|| Control::Shaped(id));
        }
    }
}

fn inspect(drive: &Drive) -> Result<DriveHealth, DriveError> {
    let Backend::Kernel(file) = &drive.backend else {
        return Ok(DriveHealth { bytes: drive.info.bytes, ..DriveHealth::default() });
    };
    let failed = |e: io::Error| drive_error(e.raw_os_error().unwrap_or(0));
    if drive.info.kind == DriveKind::Block {
        let mut bytes = 0u64;
        // SAFETY: BLKGETSIZE64 writes one u64 to a live variable.
        check(unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &mut bytes) }).map_err(failed)?;
        // The kernel gives a device that was pulled a size of nothing.
        return if bytes == 0 {
            Err(DriveError::Gone)
        } else {
            Ok(DriveHealth { bytes, ..DriveHealth::default() })
        };
    }
    let meta = file.metadata().map_err(failed)?;
    let below = rustix::fs::fstatvfs(file).map_err(|e| failed(e.into()))?;
    let free_bytes = Some(below.f_bavail.saturating_mul(below.f_frsize));
    let sparse = meta.blocks().saturating_mul(512) < meta.len();
    let name = drive.path.as_ref().map_or(FileName::There, |path| name_of(&meta, path));
    Ok(DriveHealth { bytes: meta.len(), free_bytes, sparse, name })
}

/// Refuses what somebody uses through a loop device: neither a lock of a file nor a claim of a device says so. Who has one of
/// our own drives open by both names is reported elsewhere, with the pool.
fn check_loops(path: &Path, meta: &fs::Metadata, ours: &dyn Fn(&Path) -> bool) -> Result<(), OpenError> {
    for node in sysfs::loops_over(meta) {
        let Ok(there) = fs::metadata(&node) else { continue };
        let (major, minor) = sysfs::device_number(&there);
        let mut users = BlockDevice::by_number(major, minor).map(|d| d.users()).unwrap_or_default();
        if users.is_empty() {
            let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
            let claimed = claim(!ours(&node), || {
                if !ours(&node) {
                    rustix::fs::open(&node, flags, Mode::empty())?;
                }
                Ok(())
            });
            if claimed.is_err_and(|e| e.raw_os_error() == Some(libc::EBUSY)) {
                users = holder::of_device(&node);
                if users.is_empty() {
                    users.push(DriveUser::AnotherProcess);
                }
            }
        }
        if !users.is_empty() && !ours(&node) {
            let device = node.display().to_string();
            return refused(path, DriveOpenFault::InUseThrough { device, users });
        }
    }
    Ok(())
}

/// Whether an open file is still the one at its path.
fn name_of(open: &fs::Metadata, path: &Path) -> FileName {
    let same = |there: &fs::Metadata| (there.dev(), there.ino()) == (open.dev(), open.ino());
    match fs::metadata(path) {
        Ok(there) if same(&there) => FileName::There,
        _ if open.nlink() == 0 => FileName::Removed,
        Ok(_) => FileName::Moved,
        Err(e) if e.kind() == io::ErrorKind::NotFound => FileName::Moved,
        // That it cannot be looked at says nothing.
        Err(_) => FileName::There,
    }
}

fn run_cold(name: &str, work: impl FnOnce() + Send + 'static) {
    let spawned = thread::Builder::new().name(name.into()).spawn(work);
    assert!(spawned.is_ok(), "a helper thread can be started: {spawned:?}");
}

/// Whether nothing was ever written to a file, or all of it was given back.
fn is_hole(file: &File, meta: &fs::Metadata) -> bool {
    let data = rustix::fs::seek(file, rustix::fs::SeekFrom::Data(0));
    data == Err(rustix::io::Errno::NXIO) && meta.blocks() == 0
}

/// Takes a file away again that was made as the drive was opened, if it holds nothing: who made it was refused then, and
/// has given back what was written.
fn remove_unused(drive: &Drive) {
    let (Backend::Kernel(file), Some(path)) = (&drive.backend, &drive.path) else { return };
    // A file that another process truncated is not as it was made.
    let whole =
        |open: &fs::Metadata| open.len() >= drive.info.bytes && name_of(open, path) == FileName::There;
    let empty = |open: &fs::Metadata| whole(open) && is_hole(file, open);
    if drive.info.made && file.metadata().is_ok_and(|open| empty(&open)) {
        // A file that cannot be removed does no harm.
        let _ = fs::remove_file(path);
    }
}

/// Closes the last descriptor and waits until the kernel has given up the claim: before Linux 6.3 a ring
/// that had it registered may keep it for about a second.
fn finish_close<M: Send + 'static>(id: DriveId, drive: Arc<Drive>, notify: usize, routes: Arc<Routes<M>>) {
    run_cold("drive-close", move || {
        // A file's lock is given up at once; a device's claim goes with its last descriptor.
        let node = drive.path.clone().filter(|_| drive.info.kind == DriveKind::Block);
        drive.fence.close();
        remove_unused(&drive);
        match &drive.backend {
            Backend::Kernel(file) => {
                // At once, even while a ring still holds the file: each has reported that no operation on it is left.
                let _ = lock(file, Lock::None);
                let _ = rustix::fs::flock(file, FlockOperation::Unlock);
            }
            Backend::Ram(ram) => ram.release(),
            Backend::Null => {}
        }
        drop(drive);
        if let Some(node) = node {
            for _ in 0..RELEASE_STEPS {
                let claim =
                    rustix::fs::open(&node, OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty());
                if claim.err() != Some(rustix::io::Errno::BUSY) {
                    break;
                }
                thread::sleep(RELEASE_STEP);
            }
        }
        routes.inboxes[notify].1.control(Control::Closed(id));
    });
}

/// Claims and opens a drive.
fn open(text: &str, shared: bool, shards: u32, ours: &dyn Fn(&Path) -> bool) -> Result<Drive, OpenError> {
    match Spec::parse(text).map_err(|why| OpenError::new(text, why))? {
        Spec::Null { bytes } => Ok(in_process(text, bytes, Backend::Null, true)),
        Spec::Ram { name, bytes } => {
            let (ram, new) = Ram::open(name.as_deref(), bytes).map_err(|why| OpenError::new(text, why))?;
            Ok(in_process(text, bytes, Backend::Ram(ram), new))
        }
        Spec::File { path, size, block_bytes } => {
            let new = make_file(&path, size)?;
            let drive = open_file(&path, block_bytes, shared, ours);
            if new && drive.is_err() {
                // Only what we have just made ourselves is taken away again.
                let _ = fs::remove_file(&path);
            }
            drive.map(|drive| drive.made(new))
        }
        Spec::Made(path) => {
            let mut meta = fs::metadata(&path).map_err(|e| explain(&path, &e, None))?;
            if meta.is_file() && meta.len() == 0 {
                // Its maker was cut off before it had its size.
                fs::remove_file(&path).map_err(|e| explain(&path, &e, None))?;
                meta = fs::metadata(&path).map_err(|e| explain(&path, &e, None))?;
            }
            if !meta.is_file() {
                return refused(&path, DriveOpenFault::NotAFile);
            }
            open_file(&path, 4096, shared, ours).map(|drive| drive.made(true))
        }
        Spec::Path(path) => {
            let meta = fs::metadata(&path).map_err(|e| explain(&path, &e, None))?;
            let kind = meta.file_type();
            if kind.is_block_device() {
                open_block(&path, &meta, shards, ours)
            } else if kind.is_file() {
                open_file(&path, 4096, shared, ours)
            } else {
                let why = if kind.is_dir() { DriveOpenFault::Directory } else { DriveOpenFault::NotADrive };
                refused(&path, why)
            }
        }
    }
}

fn in_process(text: &str, bytes: u64, backend: Backend, zeroes: bool) -> Drive {
    let info = DriveInfo {
        bytes,
        block_bytes: 512,
        volatile_cache: false,
        deallocate_zeroes: true,
        reads_zeroes: zeroes,
        kind: DriveKind::of(text),
        fence: FenceKind::None(NoFence::Private),
        path: text.into(),
        model: String::new(),
        serial: String::new(),
        ..DriveInfo::default()
    };
    Drive {
        info,
        backend,
        shaper: Shaper::new(seed()),
        depth: u32::MAX,
        path: None,
        notice: None,
        shared: false,
        fence: Line::default(),
    }
}

fn seed() -> u64 {
    crate::clock::entropy()[0]
}

fn open_block(
    given: &Path,
    meta: &fs::Metadata,
    shards: u32,
    ours: &dyn Fn(&Path) -> bool,
) -> Result<Drive, OpenError> {
    let path = fs::canonicalize(given).map_err(|e| explain(given, &e, None))?;
    let (major, minor) = sysfs::device_number(meta);
    let device = BlockDevice::by_number(major, minor);
    check_loops(&path, meta, ours)?;
    let flags = OFlags::RDWR | OFlags::EXCL | OFlags::DIRECT | OFlags::CLOEXEC;
    // Who is known to hold it will not let go by itself.
    let patient = device.as_ref().is_none_or(|d| d.users().is_empty()) && !ours(&path);
    let file = claim(patient, || Ok(rustix::fs::open(&path, flags, Mode::empty())?));
    let file = File::from(file.map_err(|e| explain(&path, &e, device.as_ref()))?);
    let asked = |result: io::Result<()>| result.map_err(|e| explain(&path, &e, device.as_ref()));
    let mut read_only: libc::c_int = 0;
    // SAFETY: BLKROGET writes one int to a live variable.
    asked(check(unsafe { libc::ioctl(file.as_raw_fd(), BLKROGET, &mut read_only) }))?;
    if read_only != 0 {
        // The kernel opens it for writing all the same, and refuses the first write.
        return Err(explain(&path, &io::Error::from_raw_os_error(libc::EROFS), device.as_ref()));
    }
    let (mut bytes, mut logical) = (0u64, 0 as libc::c_int);
    // SAFETY: BLKGETSIZE64 writes one u64 to a live variable.
    asked(check(unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &mut bytes) }))?;
    // SAFETY: BLKSSZGET writes one int to a live variable.
    asked(check(unsafe { libc::ioctl(file.as_raw_fd(), BLKSSZGET, &mut logical) }))?;
    let logical = logical as u64;
    if logical > 4096 {
        return refused(&path, DriveOpenFault::LargeBlocks { bytes: logical });
    }
    if bytes < 4096 {
        return refused(&path, DriveOpenFault::Empty { bytes });
    }
    let physical = device.as_ref().map_or(4096, BlockDevice::physical_block_bytes).max(logical);
    let (depth, queues) = device.as_ref().map_or((128, 1), BlockDevice::queue_depth);
    let (model, serial) = device.as_ref().map(BlockDevice::identity).unwrap_or_default();
    let block_bytes = if physical <= 512 { 512 } else { 4096 };
    let places = device.as_ref().map(BlockDevice::places).unwrap_or_default();
    let info = DriveInfo {
        made: false,
        bytes: bytes - bytes % 4096,
        // A 512e drive takes 512 bytes by reading, changing and writing 4096, which a power cut can tear.
        block_bytes,
        volatile_cache: device.as_ref().is_none_or(BlockDevice::volatile_cache),
        // Linux gives blocks back by "write zeroes, may unmap", so they read as zeroes.
        deallocate_zeroes: device.as_ref().is_some_and(BlockDevice::zeroes_itself),
        reads_zeroes: false,
        kind: DriveKind::Block,
        fence: device.as_ref().map_or(FenceKind::None(NoFence::Driver), BlockDevice::fence),
        path: path.display().to_string(),
        model,
        serial,
        end: read_end(&file, bytes),
        places,
    };
    // Beyond the device's tags the kernel parks operations in worker threads, which costs far more than
    // waiting here.
    let depth = (depth * queues.min(shards.max(1)) / shards.max(1)).max(32);
    let shaper = Shaper::new(seed());
    Ok(Drive {
        info,
        backend: Backend::Kernel(file),
        shaper,
        depth,
        path: Some(path),
        notice: None,
        shared: false,
        fence: Line::default(),
    })
}

/// `_IOR(0x12, 114, size_t)`, `_IO(0x12, 94)` and `_IO(0x12, 104)` of linux/fs.h.
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
const BLKROGET: libc::c_ulong = 0x125e;
const BLKSSZGET: libc::c_ulong = 0x1268;

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a missing file of `size` bytes; true if it was made.
fn make_file(path: &Path, size: Option<u64>) -> Result<bool, OpenError> {
    let failed = |e: io::Error| explain(path, &e, None);
    match (fs::metadata(path), size) {
        (Ok(meta), Some(size)) if meta.is_file() && meta.len() != size => {
            refused(path, DriveOpenFault::OtherSize { bytes: meta.len(), wanted_bytes: size })
        }
        (Ok(meta), _) if !meta.is_file() => refused(path, DriveOpenFault::NotAFileHere),
        (Ok(_), _) => Ok(false),
        (Err(e), Some(size)) if e.kind() == io::ErrorKind::NotFound => {
            let file = File::options().read(true).write(true).create_new(true).open(path).map_err(failed)?;
            let made = file.set_len(size).and_then(|()| file.sync_all());
            if let Err(e) = made {
                let _ = fs::remove_file(path);
                return Err(failed(e));
            }
            Ok(true)
        }
        (Err(e), None) if e.kind() == io::ErrorKind::NotFound => refused(path, DriveOpenFault::NoSize),
        (Err(e), _) => Err(failed(e)),
    }
}

fn open_file(
    given: &Path,
    block_bytes: u32,
    shared: bool,
    ours: &dyn Fn(&Path) -> bool,
) -> Result<Drive, OpenError> {
    let path = fs::canonicalize(given).map_err(|e| explain(given, &e, None))?;
    let failed = |e: io::Error| explain(&path, &e, None);
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let direct = rustix::fs::open(&path, flags | OFlags::DIRECT, Mode::empty()).map_err(io::Error::from);
    let (mut file, mut direct) = match direct {
        Ok(fd) => (File::from(fd), true),
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => (open_buffered(&path, flags)?, false),
        Err(e) => return Err(failed(e)),
    };
    let meta = file.metadata().map_err(failed)?;
    check_loops(&path, &meta, ours)?;
    let bytes = meta.len() - meta.len() % 4096;
    if bytes == 0 {
        return refused(&path, DriveOpenFault::TooSmall { bytes: meta.len() });
    }
    if direct && let Err(e) = try_read(&file, block_bytes) {
        if e.raw_os_error() != Some(libc::EINVAL) {
            return Err(failed(e));
        }
        file = open_buffered(&path, flags)?;
        direct = false;
    }
    let flock =
        if shared { FlockOperation::NonBlockingLockShared } else { FlockOperation::NonBlockingLockExclusive };
    if shared && ours(&path) {
        return refused(&path, twice());
    }
    let claimed = claim(!ours(&path), || {
        rustix::fs::flock(&file, flock)?;
        // Another head that shuts a head out has it exclusively for a moment.
        if shared { lock(&file, Lock::Shared) } else { Ok(()) }
    });
    claimed.map_err(|e| {
        let plain = failed(e);
        match plain.why.is_held().then(|| holder::of_file(&file)).flatten() {
            Some(who) => OpenError::new(plain.drive, DriveOpenFault::Open { by: vec![who] }),
            None => plain,
        }
    })?;
    let notice = (!direct).then(|| HouseNotice::Buffered { drive: path.display().to_string(), block_bytes });
    let info = DriveInfo {
        made: false,
        bytes,
        block_bytes,
        // The file system keeps both data and extents until it is asked to drop them.
        volatile_cache: true,
        deallocate_zeroes: true,
        reads_zeroes: is_hole(&file, &meta),
        kind: DriveKind::File,
        fence: FenceKind::File,
        // Opened by this, it is the same drive again.
        path: match block_bytes {
            4096 => path.display().to_string(),
            small => format!("file:{}?block={small}", path.display()),
        },
        model: String::new(),
        serial: String::new(),
        end: read_end(&file, meta.len()),
        places: vec![Place::whole(sysfs::file_name(&meta))],
    };
    let shaper = Shaper::new(seed());
    Ok(Drive {
        info,
        backend: Backend::Kernel(file),
        shaper,
        depth: FILE_DEPTH,
        path: Some(path),
        notice,
        shared,
        fence: Line::default(),
    })
}

/// A file that is a drive of ours already.
fn twice() -> DriveOpenFault {
    DriveOpenFault::Open { by: vec![DriveUser::ThisHead] }
}

fn refused<T>(path: &Path, why: DriveOpenFault) -> Result<T, OpenError> {
    Err(OpenError::new(path.display().to_string(), why))
}

/// Tries to get a claim. A daemon that was killed holds its drives until its last operation has left the
/// kernel, so its successor is patient.
fn claim<T>(patient: bool, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..if patient { CLAIM_STEPS } else { 0 } {
        match attempt() {
            Err(e) if matches!(e.raw_os_error(), Some(libc::EBUSY | libc::EWOULDBLOCK)) => {
                thread::sleep(CLAIM_STEP)
            }
            other => return other,
        }
    }
    attempt()
}

fn open_buffered(path: &Path, flags: OFlags) -> Result<File, OpenError> {
    let opened = rustix::fs::open(path, flags, Mode::empty());
    opened.map(File::from).map_err(|e| explain(path, &e.into(), None))
}

/// Reads one block, to see whether direct I/O in such blocks works here.
fn try_read(file: &File, block_bytes: u32) -> io::Result<()> {
    let mut memory = Page::default();
    file.read_exact_at(&mut memory.0[..block_bytes as usize], u64::from(block_bytes) % 4096)
}

/// What follows the last 4096 whole bytes of `bytes`. Bytes that cannot be read hold no mark.
fn read_end(file: &File, bytes: u64) -> Vec<u8> {
    let odd = (bytes % 4096) as usize;
    if odd == 0 {
        return vec![];
    }
    // Direct I/O asks for whole blocks, and gives what there is of the last one.
    let mut memory = Page::default();
    let len = if file.metadata().is_ok_and(|m| m.is_file()) { 4096 } else { odd };
    let read = file.read_at(&mut memory.0[..len], bytes - odd as u64).unwrap_or(0);
    memory.0[..read.min(odd)].to_vec()
}

/// Memory as direct I/O wants it.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

impl Default for Page {
    fn default() -> Self {
        Self([0; 4096])
    }
}

/// Why a drive could not be opened.
fn explain(path: &Path, error: &io::Error, device: Option<&BlockDevice>) -> OpenError {
    OpenError::new(path.display().to_string(), open_fault(path, error, device))
}

fn open_fault(path: &Path, error: &io::Error, device: Option<&BlockDevice>) -> DriveOpenFault {
    match error.raw_os_error() {
        Some(libc::EBUSY) => {
            let users = device.map(BlockDevice::users).unwrap_or_default();
            if !users.is_empty() {
                return DriveOpenFault::InUse { users };
            }
            let by = holder::of_device(path);
            if by.is_empty() { DriveOpenFault::Claimed } else { DriveOpenFault::Open { by } }
        }
        Some(libc::EWOULDBLOCK) => DriveOpenFault::Locked,
        Some(libc::ENOENT) => DriveOpenFault::Missing,
        Some(libc::EACCES | libc::EPERM) => DriveOpenFault::Forbidden,
        Some(libc::EROFS) => DriveOpenFault::ReadOnly,
        Some(libc::ENXIO | libc::ENODEV | libc::ENOMEDIUM) => DriveOpenFault::NoMedium,
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => DriveOpenFault::NoSpace,
        Some(libc::EMFILE | libc::ENFILE) => DriveOpenFault::TooManyFiles,
        Some(libc::EIO) => DriveOpenFault::Unreadable,
        Some(errno) => DriveOpenFault::Errno { errno },
        None if error.kind() == io::ErrorKind::UnexpectedEof => DriveOpenFault::Short,
        // The kernel was not asked: no file can have such a name.
        None => DriveOpenFault::Errno { errno: libc::EINVAL },
    }
}

/// An errno as rooms know it.
pub(crate) fn drive_error(errno: i32) -> DriveError {
    match errno {
        libc::EIO | libc::ENODATA | libc::EILSEQ | libc::EREMOTEIO | libc::EBADMSG => DriveError::Medium,
        libc::ENODEV | libc::ENXIO | libc::ESHUTDOWN | libc::ENOMEDIUM | libc::EBADF => DriveError::Gone,
        libc::ENOSPC | libc::EDQUOT => DriveError::NoSpace,
        libc::EBADE => DriveError::Fenced,
        other => DriveError::Other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_of_another_is_no_medium_error() {
        assert_eq!(drive_error(libc::EBADE), DriveError::Fenced);
        for errno in [libc::EIO, libc::ENODATA, libc::EILSEQ, libc::EREMOTEIO, libc::EBADMSG] {
            assert_eq!(drive_error(errno), DriveError::Medium);
        }
        assert_eq!(drive_error(libc::ENODEV), DriveError::Gone);
        assert_eq!(drive_error(libc::EROFS), DriveError::Other(libc::EROFS));
    }
}
