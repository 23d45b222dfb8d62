//! The demo's folder, its daemon, and ports that are free.

use crate::client::Client;
use crate::failure::Failure;
use std::fs::{File, TryLockError};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Names in the folder that are the demo's: all that is ever removed.
const OURS: [&str; 16] = [
    "head.toml",
    "state",
    "drives",
    "api.sock",
    "daemon.log",
    "nvme.log",
    "iscsi.log",
    "lock",
    "a.toml",
    "state-a",
    "a.sock",
    "a.log",
    "b.toml",
    "state-b",
    "b.sock",
    "b.log",
];

/// The names of a daemon's files in the folder.
pub struct Seat {
    config: &'static str,
    state: &'static str,
    socket: &'static str,
    log: &'static str,
}

/// Of the only daemon.
pub const ALONE: Seat = Seat { config: "head.toml", state: "state", socket: "api.sock", log: "daemon" };
/// Of the two heads of a system.
pub const HEADS: [Seat; 2] = [
    Seat { config: "a.toml", state: "state-a", socket: "a.sock", log: "a" },
    Seat { config: "b.toml", state: "state-b", socket: "b.sock", log: "b" },
];
/// How long the daemon may take to answer, and a leftover one to stop.
const PATIENCE: Duration = Duration::from_secs(30);

/// The demo's folder.
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Takes the folder and removes what an earlier demo left. A folder with anything else in it is not
    /// touched.
    pub fn claim(path: &Path) -> Result<Self, Failure> {
        let cannot = |e: std::io::Error| {
            Failure::usage(format!("the folder {}: {e}", path.display()))
                .with_next("millrace demo --dir FOLDER")
        };
        let path = std::path::absolute(path).map_err(cannot)?;
        std::fs::create_dir_all(&path).map_err(cannot)?;
        let mut foreign = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(cannot)? {
            let name = entry.map_err(cannot)?.file_name();
            foreign.extend((!OURS.iter().any(|o| name == *o)).then_some(name));
        }
        if let Some(name) = foreign.first() {
            return Err(Failure::usage(format!(
                "the folder {} holds {}, which is not the demo's",
                path.display(),
                name.display()
            ))
            .with_next("millrace demo --dir FOLDER, a new or empty one"));
        }
        // The last demo's daemon may still be stopping in order.
        let deadline = Instant::now() + PATIENCE;
        let lock = wait_for_lock(&path.join("lock"), Instant::now(), "another demo runs there")?;
        for seat in [&ALONE, &HEADS[0], &HEADS[1]] {
            let state = path.join(seat.state);
            if state.is_dir() {
                drop(wait_for_lock(&state.join("lock"), deadline, "its daemon still runs")?);
            }
        }
        for name in OURS.iter().filter(|n| **n != "lock") {
            let old = path.join(name);
            let removed =
                if old.is_dir() { std::fs::remove_dir_all(&old) } else { std::fs::remove_file(&old) };
            if let Err(e) = removed
                && e.kind() != std::io::ErrorKind::NotFound
            {
                return Err(cannot(e));
            }
        }
        Ok(Self { path, _lock: lock })
    }
    /// A daemon's socket.
    pub fn socket(&self, seat: &Seat) -> PathBuf {
        self.path.join(seat.socket)
    }
    /// What a process of the demo says.
    pub fn log(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.log"))
    }
    /// Four sparse files.
    pub fn make_drives(&self, bytes: u64) -> Result<Vec<PathBuf>, Failure> {
        let folder = self.path.join("drives");
        let make = |i: usize| {
            let path = folder.join(format!("drive{i}"));
            File::create(&path)?.set_len(bytes)?;
            Ok(path)
        };
        let made =
            std::fs::create_dir(&folder).and_then(|()| (0..4).map(make).collect::<std::io::Result<_>>());
        made.map_err(|e| {
            Failure::internal(format!("the drives in {}: {e}", folder.display()))
                .with_next("millrace demo --dir FOLDER")
        })
    }
    fn write_config(&self, seat: &Seat, memory: &str) -> Result<PathBuf, Failure> {
        // JSON's strings are TOML's basic strings, as far as paths need.
        let quoted = |p: PathBuf| serde_json::to_string(&p.display().to_string()).expect("text");
        let text = format!(
            "state_dir = {}\nsocket = {}\nsocket_mode = \"0600\"\nmemory = \"{memory}\"\nlog = \"info\"\n",
            quoted(self.path.join(seat.state)),
            quoted(self.socket(seat))
        );
        let path = self.path.join(seat.config);
        std::fs::write(&path, text).map_err(|e| Failure::internal(format!("{}: {e}", path.display())))?;
        Ok(path)
    }
}

/// Takes the lock of a file, waiting until `deadline`.
fn wait_for_lock(path: &Path, deadline: Instant, why_not: &str) -> Result<File, Failure> {
    let cannot = |e: std::io::Error| Failure::internal(format!("{}: {e}", path.display()));
    let file = File::options().write(true).create(true).truncate(false).open(path).map_err(cannot)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50))
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::usage(format!("{} is taken: {why_not}", path.display()))
                    .with_next("stop it, or millrace demo --dir FOLDER"));
            }
            Err(TryLockError::Error(e)) => return Err(cannot(e)),
        }
    }
}

/// A child that is this very program, that ends when we do, and that Ctrl-C at the terminal does not
/// reach: its end is ours to order.
pub fn ourselves(log: &Path) -> Result<Command, Failure> {
    let internal = |e: std::io::Error| Failure::internal(format!("cannot start a process of the demo: {e}"));
    let log = File::create(log).map_err(internal)?;
    let mut command = Command::new(std::env::current_exe().map_err(internal)?);
    command
        .stdin(Stdio::null())
        .stderr(log)
        .process_group(0)
        .env_remove("MILLRACE_SOCKET")
        .env_remove("NOTIFY_SOCKET");
    Ok(command)
}

/// The daemon as a child process.
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts it.
    pub fn start(folder: &Folder, seat: &Seat, memory: &str) -> Result<Self, Failure> {
        let config = folder.write_config(seat, memory)?;
        let log = folder.log(seat.log);
        let mut command = ourselves(&log)?;
        let parent = std::process::id().to_string();
        command
            .arg("serve")
            .arg("--config")
            .arg(config)
            .args(["--die-with-parent", &parent])
            .stdout(Stdio::null());
        let child =
            command.spawn().map_err(|e| Failure::internal(format!("cannot start the daemon: {e}")))?;
        Ok(Self { child, log })
    }
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
    /// Waits until its API answers.
    pub fn wait_until_it_answers(&mut self, client: &Client) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.ended(status));
            }
            match client.get::<api::Status>("/status") {
                Ok(_) => return Ok(()),
                Err(failure) if Instant::now() > deadline => return Err(failure),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
    /// Ends it as a crash does, with SIGKILL.
    pub fn kill(mut self) -> Result<(), Failure> {
        let internal = |e: std::io::Error| Failure::internal(format!("the daemon cannot be killed: {e}"));
        self.child.kill().map_err(internal)?;
        self.child.wait().map_err(internal).map(drop)
    }
    /// Stops it in order.
    pub fn stop(mut self) -> Result<(), Failure> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(self.ended(status));
        }
        let internal = |e: std::io::Error| Failure::internal(format!("the daemon cannot be stopped: {e}"));
        uring::process::terminate(&mut self.child).map_err(internal)?;
        let status = self.child.wait().map_err(internal)?;
        if status.success() { Ok(()) } else { Err(self.ended(status)) }
    }
    fn ended(&self, status: ExitStatus) -> Failure {
        Failure::internal(format!("the daemon ended ({status}){}", tail(&self.log)))
            .with_next(format!("less {}", self.log.display()))
    }
}

/// The last words of a log, for a failure that names its own next step.
pub fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let Some(line) = text.lines().rev().map(str::trim).find(|l| !l.is_empty() && !l.starts_with("Next: "))
    else {
        return String::new();
    };
    let line = line.split(" Next: ").next().unwrap_or(line);
    format!(": {}", line.strip_prefix("error: ").unwrap_or(line))
}

/// `port` of 127.0.0.1, or the next that nobody has.
pub fn free_port(port: u16) -> Result<u16, Failure> {
    let free = |p: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *p)).is_ok();
    (port..port.saturating_add(100)).find(free).ok_or_else(|| {
        Failure::internal(format!("no port from {port} to {} is free", port.saturating_add(99)))
            .with_next("ss -ltnp")
    })
}

/// Waits for Ctrl-C or SIGTERM. A daemon that ends before is a failure.
pub fn wait_for_interrupt(daemon: &mut Daemon) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let internal = |e: std::io::Error| Failure::internal(format!("cannot listen to signals: {e}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(internal)?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(internal)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(internal)?;
        loop {
            tokio::select! {
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                () = tokio::time::sleep(Duration::from_millis(500)) => {
                    if let Ok(Some(status)) = daemon.child.try_wait() {
                        return Err(daemon.ended(status));
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_demo_left_is_removed_and_nothing_else() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("demo");
        let folder = Folder::claim(&path).expect("new");
        folder.make_drives(1 << 20).expect("made");
        std::fs::create_dir(path.join("state")).expect("made");
        assert!(Folder::claim(&path).err().expect("taken").message.contains("another demo"));
        drop(folder);
        let again = Folder::claim(&path).expect("reused");
        assert!(!path.join("drives").exists() && !path.join("state").exists());
        drop(again);
        std::fs::write(path.join("thesis.tex"), "years").expect("written");
        assert!(Folder::claim(&path).err().expect("not ours").message.contains("thesis.tex"));
        assert!(path.join("thesis.tex").exists());
    }

    #[test]
    fn a_taken_port_leads_to_the_next() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
        let port = taken.local_addr().expect("bound").port();
        if port < u16::MAX - 100 {
            assert!(free_port(port).expect("a free one") > port);
        }
    }

    #[test]
    fn the_config_of_the_demo_is_read() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = Folder::claim(&place.path().join("with \"quotes\"")).expect("new");
        let path = folder.write_config(&ALONE, "256M").expect("written");
        let config = crate::config::Config::load(Some(&path)).expect("read");
        assert_eq!(config.socket, folder.socket(&ALONE));
    }
}
