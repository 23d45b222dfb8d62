//! A shell command in a guest. The wire between the two is described in `guest/agent.c`.

use crate::vm::Inner;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How many commands run side by side in a guest.
pub(crate) const PORTS: usize = 8;
const MAGIC: &[u8; 8] = b"MLAB\x01\x02\r\n";
const FRAME: usize = 16384;
/// A guest that has not begun with a command after this time is sent it again by another connection. It was seen to lose one now and then,
/// when it is busy: QEMU has read the request, and the guest waits for none.
const AGAIN: Duration = Duration::from_secs(20);
/// How often a command is sent.
const TRIES: u32 = 3;
/// The length of a frame that kills the command.
const KILL: u32 = u32::MAX;
/// How long a guest may take to say that it has killed a command, before its port is closed.
const KILLED: Duration = Duration::from_secs(10);

/// What a finished command said.
#[derive(Clone, Debug)]
pub struct Output {
    /// Exit status; 128 and more: the number of the signal that ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// The output if the command ended with 0, else an error that shows the end of what it said.
    pub fn good(self, command: &str) -> Result<Output> {
        if self.code != 0 {
            bail!("'{command}' failed ({}):\n{}", self.code, tail(&self.stdout, &self.stderr));
        }
        Ok(self)
    }

    /// Standard output without white space around it.
    pub fn text(&self) -> &str {
        self.stdout.trim()
    }
}

/// The end of what a command said, for messages.
pub(crate) fn tail(stdout: &str, stderr: &str) -> String {
    let text = format!("{stdout}{stderr}");
    let start = text.char_indices().rev().nth(3000).map_or(0, |(at, _)| at);
    text[start..].to_owned()
}

/// Reads a stream to its end as text.
pub(crate) fn read_all(mut from: impl Read) -> String {
    let mut data = Vec::new();
    from.read_to_end(&mut data).ok();
    String::from_utf8_lossy(&data).into_owned()
}

/// Connects to a socket file, however long its path is (a socket's name has at most 107 bytes).
pub(crate) fn connect(folder: &Path, name: &str) -> std::io::Result<UnixStream> {
    let dir = File::open(folder)?;
    UnixStream::connect(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))
}

#[derive(Default)]
struct Said {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    code: Option<u32>,
    over: bool,
}

/// What the job, its reader and the guest's port table share.
struct Shared {
    said: Mutex<Said>,
    changed: Condvar,
    /// The connection by which it runs, or None: it shall end.
    socket: Mutex<Option<UnixStream>>,
    /// Whether all of the request is sent, so that a frame may follow it.
    fed: AtomicBool,
}

impl Shared {
    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn socket(&self) -> MutexGuard<'_, Option<UnixStream>> {
        self.socket.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// A command that runs in a guest; its output is collected in the background. Dropping it ends it.
pub struct Job {
    vm: Arc<Inner>,
    command: String,
    shared: Arc<Shared>,
}

impl Job {
    pub(crate) fn start(vm: &Arc<Inner>, command: &str, input: Vec<u8>) -> Result<Job> {
        let deadline = Instant::now() + Duration::from_secs(30);
        let (port, socket) = loop {
            if let Some(reason) = vm.why_dead() {
                bail!(reason);
            }
            if let Some(taken) = vm.take_port() {
                break taken;
            }
            if Instant::now() >= deadline {
                bail!("all {PORTS} command ports of guest '{}' were busy for 30 s", vm.name());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let shared = Shared {
            said: Mutex::default(),
            changed: Condvar::new(),
            socket: Mutex::new(Some(socket.try_clone()?)),
            fed: AtomicBool::new(false),
        };
        let job = Job { vm: vm.clone(), command: command.into(), shared: Arc::new(shared) };
        let mut token = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut token)?;
        let mut request = [&MAGIC[..], &token, &(command.len() as u32).to_le_bytes()].concat();
        request.extend_from_slice(command.as_bytes());
        let (words, shared, owner) = (Arc::new((request, input)), job.shared.clone(), vm.clone());
        std::thread::spawn(move || {
            let last = carry(&owner, port, socket, token, &words, &shared);
            // QEMU takes the next connection to a port only once this one is closed.
            last.shutdown(Shutdown::Both).ok();
            shared.said().over = true;
            shared.changed.notify_all();
            owner.free_port(port);
        });
        Ok(job)
    }

    /// Whether it has ended.
    pub fn done(&self) -> bool {
        self.shared.said().over
    }

    /// What it has printed on standard output until now.
    pub fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.shared.said().stdout).into_owned()
    }

    /// Kills the command in the guest.
    pub fn kill(&self) {
        let Some(mut socket) = self.shared.socket().take() else { return };
        socket.set_write_timeout(Some(Duration::from_secs(1))).ok();
        if !self.shared.fed.load(Ordering::SeqCst) || socket.write_all(&KILL.to_le_bytes()).is_err() {
            socket.shutdown(Shutdown::Both).ok();
            return;
        }
        // QEMU may forget what it has not read yet of a socket that is closed.
        let shared = self.shared.clone();
        std::thread::spawn(move || {
            let said = shared.said();
            drop(shared.changed.wait_timeout_while(said, KILLED, |said| !said.over));
            socket.shutdown(Shutdown::Both).ok();
        });
    }

    /// Waits for the end, whatever the exit status. Fails when the time is over (and kills the
    /// command) or when the guest dies.
    pub fn wait(self, timeout: Duration) -> Result<Output> {
        let bytes = self.wait_bytes(timeout)?;
        let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
        Ok(Output { code: bytes.0, stdout: text(&bytes.1), stderr: text(&bytes.2) })
    }

    pub(crate) fn wait_bytes(self, timeout: Duration) -> Result<(i32, Vec<u8>, Vec<u8>)> {
        let deadline = Instant::now() + timeout;
        let mut said = self.shared.said();
        while !said.over && Instant::now() < deadline {
            said = match self.shared.changed.wait_timeout(said, Duration::from_millis(500)) {
                Ok((said, _)) => said,
                Err(poison) => poison.into_inner().0,
            };
            if !said.over
                && let Some(reason) = self.vm.why_dead()
            {
                bail!(reason);
            }
        }
        match (said.code, said.over) {
            (Some(code), _) => Ok((code as i32, said.stdout.clone(), said.stderr.clone())),
            (None, over) => {
                let how = if over { "was cut off".into() } else { format!("did not end within {timeout:?}") };
                let tail =
                    tail(&String::from_utf8_lossy(&said.stdout), &String::from_utf8_lossy(&said.stderr));
                Err(anyhow::anyhow!("its last output:\n{tail}"))
                    .with_context(|| format!("'{}' in guest '{}' {how}", self.command, self.vm.name()))
            }
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a request and collects the answer, by another connection if the guest does not begin. Returns the last one.
fn carry(
    vm: &Inner,
    port: usize,
    mut socket: UnixStream,
    token: [u8; 8],
    words: &Arc<(Vec<u8>, Vec<u8>)>,
    shared: &Arc<Shared>,
) -> UnixStream {
    for tries in 1.. {
        let Ok(to) = socket.try_clone() else { break };
        let (words, job) = (words.clone(), shared.clone());
        job.fed.store(false, Ordering::SeqCst);
        std::thread::spawn(move || {
            if feed(to, &words.0, &words.1).is_ok() {
                job.fed.store(true, Ordering::SeqCst);
            }
        });
        socket.set_read_timeout((tries < TRIES).then_some(AGAIN)).ok();
        let begun = await_token(&socket, token);
        socket.set_read_timeout(None).ok();
        match begun {
            Ok(()) => {
                collect(&socket, shared).ok();
                break;
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        eprintln!("lab: guest '{}' does not begin with a command, and is sent it again", vm.name());
        socket.shutdown(Shutdown::Both).ok();
        let mut current = shared.socket();
        let Ok(next) = vm.connect(port) else { break };
        // Whoever ended it meanwhile had the connection before.
        if current.is_none() || next.try_clone().map(|next| *current = Some(next)).is_err() {
            break;
        }
        socket = next;
    }
    socket
}

/// Sends the request and standard input, frame by frame. Fails when the command ends, and its port closes, before it has read everything.
fn feed(mut socket: UnixStream, request: &[u8], input: &[u8]) -> std::io::Result<()> {
    socket.write_all(request)?;
    for part in input.chunks(FRAME) {
        socket.write_all(&(part.len() as u32).to_le_bytes())?;
        socket.write_all(part)?;
    }
    socket.write_all(&0u32.to_le_bytes())
}

/// Waits until the guest begins with the command.
fn await_token(mut socket: &UnixStream, token: [u8; 8]) -> std::io::Result<()> {
    let mut last = [0; 8];
    while last != token {
        // What an earlier command has left in the port comes first.
        last.rotate_left(1);
        socket.read_exact(&mut last[7..])?;
    }
    Ok(())
}

/// Collects the frames of the answer until the exit status.
fn collect(mut socket: &UnixStream, shared: &Shared) -> std::io::Result<()> {
    loop {
        let mut head = [0; 5];
        socket.read_exact(&mut head)?;
        let mut body = vec![0; u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize];
        socket.read_exact(&mut body)?;
        let mut said = shared.said();
        match head[0] {
            b'o' => said.stdout.extend(body),
            b'e' => said.stderr.extend(body),
            _ => {
                said.code = body.try_into().ok().map(u32::from_le_bytes);
                return Ok(());
            }
        }
    }
}
