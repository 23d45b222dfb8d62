//! The state directory: small files, replaced atomically and durably by a helper thread that may block.

use crate::drive::sysfs;
pub use crate::drive::sysfs::Taken;
use crate::mail::{Control, Inbox};
use base::Token;
use base::machine::{StateError, StateFault, StateOp};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// Larger files are not ours.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// What a new file is called until it is durable; no other file has a name that begins with a dot.
const TEMPORARY: &str = ".new";

/// The thread that works on the state directory, in order.
pub(crate) struct StateThread {
    jobs: Sender<(Token, StateOp)>,
}

impl StateThread {
    /// Starts it; ends with the last handle. Without a directory everything but the clock and the
    /// candidates fails.
    pub(crate) fn start<M: Send + 'static>(dir: Option<PathBuf>, inbox: Arc<Inbox<M>>) -> io::Result<Self> {
        let (jobs, todo) = channel();
        thread::Builder::new().name("state".into()).spawn(move || {
            for (token, op) in todo {
                let result = carry_out(dir.as_deref(), op);
                inbox.control(Control::State(token, result));
            }
        })?;
        Ok(Self { jobs })
    }
    /// Does `op` after those before it; the inbox gets the result.
    pub(crate) fn ask(&self, token: Token, op: StateOp) {
        self.jobs.send((token, op)).expect("the state thread lives as long as its reactor");
    }
}

/// Drives worth looking at: paths of block devices that are writable, not empty and unused.
pub fn candidates() -> Vec<String> {
    sysfs::candidates()
}

/// Disks of which no pool can be made as they stand, and who has them.
pub fn taken() -> Vec<Taken> {
    sysfs::taken()
}

/// Does `op` at once in a state directory, which the caller has claimed.
pub fn on_state(dir: &Path, op: StateOp) -> Result<Vec<u8>, StateError> {
    carry_out(Some(dir), op)
}

/// Does `op`, waiting for it.
fn carry_out(dir: Option<&Path>, op: StateOp) -> Result<Vec<u8>, StateError> {
    let none = || StateError::Failed(StateFault::NoDirectory);
    let name = match &op {
        StateOp::Candidates => return Ok(candidates().join("\n").into_bytes()),
        StateOp::Clock => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            return Ok(since.as_millis().to_string().into_bytes());
        }
        StateOp::List | StateOp::Look { .. } => "",
        StateOp::Read { name }
        | StateOp::Write { name, .. }
        | StateOp::Append { name, .. }
        | StateOp::Remove { name } => name.as_str(),
    };
    let dir = dir.ok_or_else(none)?;
    let named = !matches!(op, StateOp::List | StateOp::Look { .. });
    if named && (name.is_empty() || name.starts_with('.') || name.contains(['/', '\0'])) {
        return Err(StateError::Failed(StateFault::Name { name: name.into() }));
    }
    let path = dir.join(name);
    let done = match &op {
        StateOp::Read { .. } => read(&path),
        StateOp::Write { contents, .. } => replace(dir, &path, contents).map(|()| Vec::new()),
        StateOp::Append { contents, bytes_max, .. } => {
            append(dir, &path, contents, *bytes_max).map(|()| Vec::new())
        }
        StateOp::Remove { .. } => remove(dir, &path).map(|()| Vec::new()),
        StateOp::Look { bytes } => {
            look(dir, *bytes)?;
            list(dir)
        }
        StateOp::List => list(dir),
        StateOp::Candidates | StateOp::Clock => unreachable!("answered above"),
    };
    done.map_err(|e| match e.raw_os_error() {
        _ if e.get_ref().is_some_and(|inner| inner.is::<Replaced>()) => {
            let inner = e.into_inner().and_then(|inner| inner.downcast::<Replaced>().ok());
            StateError::Unsettled(fault(&path, inner.and_then(|r| r.0.raw_os_error())))
        }
        Some(libc::ENOENT) if matches!(op, StateOp::Read { .. }) => StateError::Missing,
        Some(libc::ENOSPC | libc::EDQUOT) => StateError::NoSpace,
        errno => StateError::Failed(fault(&path, errno)),
    })
}

/// What an errno at `path` means; without one the file is too large.
fn fault(path: &Path, errno: Option<i32>) -> StateFault {
    let path = path.display().to_string();
    match errno {
        Some(errno @ (libc::EACCES | libc::EPERM | libc::EROFS)) => StateFault::Forbidden { path, errno },
        Some(errno) => StateFault::Errno { path, errno },
        None => StateFault::TooLarge { path, bytes_max: FILE_BYTES_MAX },
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    // A pipe is no file, and would be waited for.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut contents)?;
    if contents.len() as u64 > FILE_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(contents)
}

/// The file was replaced, and its folder could not be flushed.
#[derive(Debug)]
struct Replaced(io::Error);

impl core::fmt::Display for Replaced {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(&self.0, f)
    }
}

impl core::error::Error for Replaced {}

/// Old or new contents after a crash, new once this has returned.
fn replace(dir: &Path, path: &Path, contents: &[u8]) -> io::Result<()> {
    ensure(dir)?;
    let name = path.file_name().expect("a checked name").to_string_lossy();
    let temporary = dir.join(format!("{TEMPORARY}.{name}"));
    let written = write_new(&temporary, contents).and_then(|()| fs::rename(&temporary, path));
    if let Err(e) = written {
        let _ = fs::remove_file(&temporary);
        return Err(e);
    }
    sync_dir(dir).map_err(|e| io::Error::other(Replaced(e)))
}

fn write_new(path: &Path, contents: &[u8]) -> io::Result<()> {
    // Secrets may be in it: the daemon's user only.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // One that a crash left may have another mode, and so may what the umask makes.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(contents)?;
    file.sync_all()
}

fn append(dir: &Path, path: &Path, contents: &[u8], bytes_max: u64) -> io::Result<()> {
    ensure(dir)?;
    let new = !path.exists();
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let before = file.metadata()?.len();
    let written = file.write_all(contents).and_then(|()| file.sync_data());
    if let Err(e) = written {
        // Half a line would be read as a whole one.
        let _ = file.set_len(before);
        return Err(e);
    }
    if new {
        sync_dir(dir)?;
    }
    if before + contents.len() as u64 <= bytes_max {
        return Ok(());
    }
    let all = read(path)?;
    let from = all.len() - (bytes_max / 2).min(all.len() as u64) as usize;
    // From a line's beginning on, unless it is all one line.
    let line = (from..all.len()).find(|i| *i == 0 || all[i - 1] == b'\n').unwrap_or(from);
    replace(dir, path, &all[line..])
}

fn remove(dir: &Path, path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
        Ok(()) => sync_dir(dir),
    }
}

/// What its file system says, without writing anything.
fn look(dir: &Path, bytes: u64) -> Result<(), StateError> {
    let below = match rustix::fs::statvfs(dir) {
        // It is made with the first file.
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(e) => return Err(StateError::Failed(fault(dir, Some(e.raw_os_error())))),
        Ok(below) => below,
    };
    if below.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        return Err(StateError::Failed(StateFault::ReadOnly { path: dir.display().to_string() }));
    }
    // Whoever may not write there: its owner, or a mark that nothing there may be changed (chattr +i).
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    if let Err(e) = rustix::fs::access(dir, access) {
        return Err(StateError::Failed(fault(dir, Some(e.raw_os_error()))));
    }
    let free = below.f_bavail.saturating_mul(below.f_frsize.max(1));
    // File systems without a table of inodes say that there are none at all.
    let nameless = below.f_files > 0 && below.f_favail == 0;
    if free < bytes || nameless { Err(StateError::NoSpace) } else { Ok(()) }
}

fn list(dir: &Path) -> io::Result<Vec<u8>> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names.join("\n").into_bytes())
}

fn ensure(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(dir: &Path, op: StateOp) -> Result<String, StateError> {
        carry_out(Some(dir), op).map(|c| String::from_utf8(c).unwrap())
    }
    fn read(dir: &Path, name: &str) -> Result<String, StateError> {
        op(dir, StateOp::Read { name: name.into() })
    }
    fn write(dir: &Path, name: &str, contents: &str) -> Result<String, StateError> {
        op(dir, StateOp::Write { name: name.into(), contents: contents.into() })
    }
    fn append(dir: &Path, contents: &str, bytes_max: u64) {
        op(dir, StateOp::Append { name: "log".into(), contents: contents.into(), bytes_max }).unwrap();
    }

    #[test]
    fn files_are_written_read_listed_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = &dir.path().join("made/when/needed");
        assert_eq!(op(dir, StateOp::List), Ok(String::new()));
        assert_eq!(read(dir, "hosts"), Err(StateError::Missing));
        write(dir, "hosts", "one").unwrap();
        write(dir, "hosts", "two").unwrap();
        write(dir, "a", "").unwrap();
        assert_eq!(read(dir, "hosts"), Ok("two".into()));
        assert_eq!(op(dir, StateOp::List), Ok("a\nhosts".into()));
        op(dir, StateOp::Remove { name: "a".into() }).unwrap();
        op(dir, StateOp::Remove { name: "a".into() }).unwrap();
        assert_eq!(op(dir, StateOp::List), Ok("hosts".into()));
    }

    #[test]
    fn what_is_no_file_is_not_read_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
        assert!(made.success());
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        for name in ["pipe", "socket", "folder"] {
            assert!(matches!(read(dir.path(), name), Err(StateError::Failed(_))), "{name}");
        }
    }

    #[test]
    fn a_log_is_cut_to_its_newest_half_at_a_line() {
        let dir = tempfile::tempdir().unwrap();
        for i in 10..20 {
            append(dir.path(), &format!("line {i}\n"), 64);
        }
        assert_eq!(read(dir.path(), "log"), Ok("line 15\nline 16\nline 17\nline 18\nline 19\n".into()));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["", ".", "..", "../x", "/etc/passwd", ".new", "a/b", "a\0b"] {
            let refused = write(dir.path(), name, "x");
            assert_eq!(refused, Err(StateError::Failed(StateFault::Name { name: name.into() })));
        }
    }

    #[test]
    fn without_a_directory_only_clock_and_candidates_work() {
        let clock = carry_out(None, StateOp::Clock).unwrap();
        assert!(String::from_utf8(clock).unwrap().parse::<u64>().unwrap() > 1_700_000_000_000);
        carry_out(None, StateOp::Candidates).unwrap();
        let list = carry_out(None, StateOp::List);
        assert_eq!(list, Err(StateError::Failed(StateFault::NoDirectory)));
    }

    #[test]
    fn a_look_asks_the_file_system_and_writes_nothing() {
        let look = |dir: &Path, bytes| op(dir, StateOp::Look { bytes });
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(look(dir.path(), 1), Ok(String::new()));
        write(dir.path(), "hosts", "").unwrap();
        assert_eq!(look(dir.path(), 1), Ok("hosts".into()));
        fs::remove_file(dir.path().join("hosts")).unwrap();
        assert_eq!(look(dir.path(), u64::MAX), Err(StateError::NoSpace));
        assert_eq!(look(&dir.path().join("comes/with/the/first/file"), u64::MAX), Ok(String::new()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // Field 5 is where it is mounted, field 6 how.
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let fields = mounts.lines().map(|l| l.split(' ').skip(4).take(2).collect::<Vec<_>>());
        let read_only = fields.filter(|f| f[1].split(',').any(|o| o == "ro")).map(|f| PathBuf::from(f[0]));
        match read_only.into_iter().find(|d| d.is_dir()) {
            None => eprintln!("nothing here is mounted read-only"),
            Some(dir) => {
                let refused = look(&dir, 1);
                let path = dir.display().to_string();
                assert_eq!(refused, Err(StateError::Failed(StateFault::ReadOnly { path })));
            }
        }
    }

    #[test]
    fn a_directory_that_is_a_file_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "file", "x").unwrap();
        let failed = write(&dir.path().join("file"), "x", "y");
        let path = dir.path().join("file/x").display().to_string();
        assert_eq!(failed, Err(StateError::Failed(StateFault::Errno { path, errno: libc::EEXIST })));
    }
}
