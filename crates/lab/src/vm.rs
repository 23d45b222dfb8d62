//! A virtual machine.

use crate::job::{self, Job, Output, PORTS};
use crate::net::{LANS, Net};
use crate::{Kernel, host, image};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// What a guest shall be.
#[derive(Clone, Debug)]
pub struct Builder {
    name: String,
    kernel: Kernel,
    cpus: u32,
    mem_mb: u32,
    /// The file of each, and more words for its device, such as the bus that it is on.
    nvme: Vec<(PathBuf, String)>,
    /// The file of each, and of its log.
    disks: Vec<(PathBuf, Option<PathBuf>)>,
    forwards: Vec<(String, u16)>,
    append: String,
    /// What QEMU calls processors, nodes, ports and switches: options and their values, in the order in which it makes them.
    machine: Vec<(String, String)>,
}

impl Builder {
    /// The kernel to boot; 6.1 by default.
    pub fn kernel(mut self, kernel: Kernel) -> Builder {
        self.kernel = kernel;
        self
    }

    /// Virtual processors; 2 by default.
    pub fn cpus(mut self, cpus: u32) -> Builder {
        self.cpus = cpus;
        self
    }

    /// Memory in MiB; 1024 by default.
    pub fn mem(mut self, mb: u32) -> Builder {
        self.mem_mb = mb;
        self
    }

    /// Adds an NVMe drive that keeps its bytes in `file`: `/dev/nvme0n1`, `/dev/nvme1n1` and so on.
    pub fn nvme(mut self, file: impl AsRef<Path>) -> Builder {
        self.nvme.push((file.as_ref().into(), String::new()));
        self
    }

    /// The same, on a bus that [`Builder::machine`] made.
    pub fn nvme_on(mut self, bus: &str, file: impl AsRef<Path>) -> Builder {
        self.nvme.push((file.as_ref().into(), format!(",bus={bus}")));
        self
    }

    /// More of the machine: an option of QEMU's, such as `-device`, and its value. They come before the drives.
    pub fn machine(mut self, option: &str, value: &str) -> Builder {
        self.machine.push((option.into(), value.into()));
        self
    }

    /// Adds a SCSI disk that keeps its bytes in `file`: `/dev/sda` and so on.
    pub fn disk(mut self, file: impl AsRef<Path>) -> Builder {
        self.disks.push((file.as_ref().into(), None));
        self
    }

    /// The same, and every write and flush is also kept in `log`, in the format of dm-log-writes. The file must hold
    /// zeroes and the log be empty. (There is none for NVMe: with QEMU 7.2, writes with FUA there were seen to be lost. These disks
    /// announce a volatile cache without FUA.)
    pub fn disk_logged(mut self, file: impl AsRef<Path>, log: impl AsRef<Path>) -> Builder {
        self.disks.push((file.as_ref().into(), Some(log.as_ref().into())));
        self
    }

    /// Makes a TCP port of the guest reachable from the network namespace, at an address like
    /// `10.91.0.1:4420`.
    pub fn forward(mut self, at: &str, guest_port: u16) -> Builder {
        self.forwards.push((at.into(), guest_port));
        self
    }

    /// More words for the kernel's command line.
    pub fn append(mut self, words: &str) -> Builder {
        self.append = words.into();
        self
    }

    /// Boots the guest (6 to 10 s, more on a loaded machine) and waits until it takes commands. A guest that does not
    /// within [`BOOT`] is ended, what its kernel said last is printed, and it is tried once more.
    pub fn start(self, net: &Net) -> Result<Vm> {
        let image = image::setup(self.kernel)?;
        for file in self.nvme.iter().map(|(file, _)| file).chain(self.disks.iter().map(|(file, _)| file)) {
            if !file.exists() {
                bail!("the drive file {} does not exist", file.display());
            }
        }
        let arguments = self.arguments(&image)?;
        boot(&self.name, &arguments, net).or_else(|why| {
            eprintln!("guest '{}' is started once more: {why:#}", self.name);
            boot(&self.name, &arguments, net)
        })
    }

    fn arguments(&self, image: &Path) -> Result<Vec<String>> {
        let uuid = uuid_of(&self.name);
        let net: Vec<String> = LANS
            .iter()
            .enumerate()
            .map(|(i, lan)| format!("10.0.{0}.15/24@{lan}.0/24-10.0.{0}.2", 2 + i))
            .collect();
        let mut modules = vec!["virtio_console", "virtio_net"];
        if !self.disks.is_empty() {
            modules.extend(["virtio_scsi", "sd_mod"]);
        }
        if !self.nvme.is_empty() {
            modules.push("nvme");
        }
        let at = image.display();
        let mut args: Vec<String> = vec![
            // TCG always: a test must not depend on the machine's virtualisation, nor hang in it.
            "-name".into(),
            format!("millrace-lab-{}", self.name),
            "-machine".into(),
            "q35".into(),
            "-accel".into(),
            "tcg,thread=multi,tb-size=256".into(),
            "-cpu".into(),
            "max,la57=off".into(),
            "-smp".into(),
            self.cpus.to_string(),
            "-m".into(),
            self.mem_mb.to_string(),
            "-uuid".into(),
            uuid.clone(),
            "-nodefaults".into(),
            "-no-user-config".into(),
            "-display".into(),
            "none".into(),
            "-no-reboot".into(),
            "-kernel".into(),
            format!("{at}/vmlinux"),
            "-initrd".into(),
            format!("{at}/initrd"),
            "-append".into(),
            // The guest's own measurement of its clock is wrong under load, so it gets the rate.
            // Address randomization is off: programs start 2.7 times faster, since QEMU finds the
            // translated code again.
            format!(
                "console=ttyS0 panic=-1 loglevel=4 nokaslr mitigations=off net.ifnames=0 \
                 tsc_early_khz={} tsc=reliable no_timer_check norandmaps cryptomgr.notests \
                 rcupdate.rcu_cpu_stall_timeout=60 watchdog_thresh=30 lab.name={} lab.uuid={uuid} \
                 lab.net={} lab.modules={} {}",
                tsc_khz(image)?,
                self.name,
                net.join(","),
                modules.join(","),
                self.append
            ),
            "-serial".into(),
            "file:console.log".into(),
            "-qmp".into(),
            "unix:qmp.sock,server=on,wait=off".into(),
            "-drive".into(),
            format!("file={at}/root.img,if=none,id=root,format=raw,readonly=on,file.locking=off"),
            "-device".into(),
            "virtio-blk-pci,drive=root".into(),
            "-device".into(),
            "virtio-serial-pci".into(),
        ];
        let mut add = |option: &str, value: String| args.extend([option.to_owned(), value]);
        for i in 0..PORTS {
            add("-chardev", format!("socket,id=agent{i},path=agent{i}.sock,server=on,wait=off"));
            add("-device", format!("virtserialport,chardev=agent{i},name=lab.{i}"));
        }
        for i in 0..LANS.len() {
            let mut card = format!("user,ipv6=off,net=10.0.{}.0/24,id=net{i}", 2 + i);
            if i == 0 {
                for (at, port) in &self.forwards {
                    card += &format!(",hostfwd=tcp:{at}-:{port}");
                }
            }
            add("-netdev", card);
            add(
                "-device",
                format!("virtio-net-pci,id=eth{i},netdev=net{i},romfile=,mac=52:54:00:91:{i:02x}:0b"),
            );
        }
        if !self.disks.is_empty() {
            add("-device", "virtio-scsi-pci,id=scsi".into());
        }
        for (option, value) in &self.machine {
            add(option, value.clone());
        }
        for (i, (file, bus)) in self.nvme.iter().enumerate() {
            let path = fs::canonicalize(file)?;
            add("-drive", drive(&path, &format!("nvme{i}")));
            add("-device", format!("nvme,drive=nvme{i},serial={}{bus}", serial_of(&path)));
        }
        for (i, (file, log)) in self.disks.iter().enumerate() {
            let path = fs::canonicalize(file)?;
            match log {
                None => add("-drive", drive(&path, &format!("disk{i}"))),
                Some(log) => {
                    let log = fs::canonicalize(log)?;
                    // Without `discard` holes would be asked for, and not made.
                    let node = |name: &str, path: &Path| {
                        format!("driver=file,node-name={name}{i},filename={},discard=unmap", path.display())
                    };
                    add("-blockdev", node("file", &path));
                    add("-blockdev", node("log", &log));
                    let logged = format!(
                        "driver=blklogwrites,node-name=disk{i},file=file{i},log=log{i},discard=unmap"
                    );
                    add("-blockdev", logged);
                }
            }
            add("-device", format!("scsi-hd,bus=scsi.0,lun={i},drive=disk{i},serial={}", serial_of(&path)));
        }
        Ok(args)
    }
}

/// The seconds that a guest may take until it runs commands. Other guests and builds may share the processors, so the
/// limit is generous.
const BOOT: u64 = 120;

/// Starts QEMU in a folder of its own.
fn boot(name: &str, arguments: &[String], net: &Net) -> Result<Vm> {
    let (dir, lock) = own_folder(name)?;
    let log = File::create(dir.join("qemu.log"))?;
    // What lives in it keeps times, on processors that are emulated: it is not to wait for others of this machine. Who may not ask for that
    // runs it as it is.
    let mut command = net.command("nice");
    command.args(["-n", "-10", "qemu-system-x86_64"]).args(arguments).current_dir(&dir);
    let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
    let inner = Inner {
        name: name.into(),
        dir,
        _lock: lock,
        child: Mutex::new(child),
        ports: Mutex::new([false; PORTS]),
    };
    let vm = Vm { inner: Arc::new(inner) };
    vm.run("true", BOOT).with_context(|| {
        let console = fs::read(vm.inner.dir.join("console.log")).unwrap_or_default();
        format!("the guest did not boot; its console:\n{}", job::tail("", &String::from_utf8_lossy(&console)))
    })?;
    Ok(vm)
}

/// A running guest. Dropping it cuts its power.
#[derive(Clone)]
pub struct Vm {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    name: String,
    dir: PathBuf,
    /// Held as long as the guest's folder is in use.
    _lock: File,
    child: Mutex<Child>,
    ports: Mutex<[bool; PORTS]>,
}

impl Vm {
    /// A guest to be: its host NQN, host id and initiator name are made from `name` (a-z, 0-9, '-'),
    /// the same at each boot.
    pub fn builder(name: &str) -> Builder {
        let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(!name.is_empty() && name.len() < 30 && name.chars().all(fit), "no good guest name: '{name}'");
        Builder {
            name: name.into(),
            kernel: Kernel::default(),
            cpus: 2,
            mem_mb: 1024,
            nvme: Vec::new(),
            disks: Vec::new(),
            forwards: Vec::new(),
            append: String::new(),
            machine: Vec::new(),
        }
    }

    /// The guest's NVMe host name.
    pub fn nqn(&self) -> String {
        format!("nqn.2014-08.org.nvmexpress:uuid:{}", uuid_of(&self.inner.name))
    }

    /// The guest's iSCSI initiator name.
    pub fn iqn(&self) -> String {
        format!("iqn.2026-01.org.millrace.lab:{}", self.inner.name)
    }

    /// Runs a shell command for at most so many seconds; it must end with 0.
    pub fn run(&self, command: &str, seconds: u64) -> Result<Output> {
        self.try_run(command, seconds)?.good(command)
    }

    /// Runs a shell command for at most so many seconds, whatever it ends with.
    pub fn try_run(&self, command: &str, seconds: u64) -> Result<Output> {
        self.spawn(command)?.wait(Duration::from_secs(seconds))
    }

    /// The block device to which a link leads that udev makes, such as `/dev/disk/by-id/nvme-uuid.*`; waits three minutes for it. A host finds
    /// its disks after `nvme connect` or a login has ended, and `udevadm settle` waits only for those that it has found.
    pub fn disk(&self, link: &str) -> Result<String> {
        let find = format!(
            "for n in $(seq 1800); do d=$(readlink -e {link} | head -n 1); [ -b \"$d\" ] && echo $d && exit; sleep 0.1; done; \
             ls -l /dev/disk/by-*/ >&2; exit 1"
        );
        Ok(self.run(&find, 240)?.text().to_owned())
    }

    /// Starts a shell command; up to 8 run side by side.
    pub fn spawn(&self, command: &str) -> Result<Job> {
        Job::start(&self.inner, command, Vec::new())
    }

    /// Copies a file into the guest, with its mode.
    pub fn push(&self, from: &Path, to: &str) -> Result<()> {
        let data = fs::read(from).with_context(|| from.display().to_string())?;
        let mode = fs::metadata(from)?.permissions().mode() & 0o777;
        let command = format!("cat >'{to}' && chmod {mode:o} '{to}'");
        Job::start(&self.inner, &command, data)?.wait(Duration::from_secs(180))?.good(&command)?;
        Ok(())
    }

    /// Copies a file out of the guest.
    pub fn pull(&self, from: &str, to: &Path) -> Result<()> {
        let job = self.spawn(&format!("cat '{from}'"))?;
        let (code, data, why) = job.wait_bytes(Duration::from_secs(180))?;
        if code != 0 {
            bail!("{}", String::from_utf8_lossy(&why).trim());
        }
        Ok(fs::write(to, data)?)
    }

    /// Pulls (`up` false) or plugs the cable of network card 0 or 1.
    pub fn link(&self, card: u32, up: bool) -> Result<()> {
        self.qmp("set_link", &json!({"name": format!("eth{card}"), "up": up})).map(drop)
    }

    /// Stops the whole machine where it stands, or lets it go on. Unlike `stop` of [`Vm::qmp`] this does not flush
    /// its drives.
    pub fn freeze(&self, on: bool) -> Result<()> {
        let signal = if on { "STOP" } else { "CONT" };
        host::sh(&format!("kill -{signal} {}", self.inner.child().id())).map(drop)
    }

    /// For how long threads of the guest were ready to run, and had no processor of this machine, together. A guest that
    /// was slow for want of one is told by it from a guest that waits for something.
    pub fn starved(&self) -> Duration {
        let tasks = format!("/proc/{}/task", self.inner.child().id());
        let threads = fs::read_dir(tasks).into_iter().flatten().flatten();
        let texts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok());
        // Nanoseconds that it ran, nanoseconds that it waited to run, and how often it did.
        let waited = |text: String| text.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
        Duration::from_nanos(texts.filter_map(waited).sum())
    }

    /// Sends one command to QEMU's monitor; `stop` and `cont` freeze and thaw the guest.
    pub fn qmp(&self, execute: &str, arguments: &Value) -> Result<Value> {
        let mut socket = job::connect(&self.inner.dir, "qmp.sock")?;
        socket.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut lines = BufReader::new(socket.try_clone()?).lines();
        let mut next = || -> Result<Value> {
            Ok(serde_json::from_str(&lines.next().context("QEMU closed its monitor")??)?)
        };
        next()?;
        let mut answer = Value::Null;
        for message in
            [json!({"execute": "qmp_capabilities"}), json!({"execute": execute, "arguments": arguments})]
        {
            socket.write_all(format!("{message}\n").as_bytes())?;
            answer = next()?;
            while answer.get("event").is_some() {
                answer = next()?;
            }
        }
        match answer.get("error") {
            Some(error) => bail!("QEMU refused '{execute}': {}", error["desc"]),
            None => Ok(answer["return"].take()),
        }
    }

    /// Lines of the guest's kernel log that a correct target never causes.
    pub fn warnings(&self) -> Result<Vec<String>> {
        const BAD: [&str; 9] = [
            "WARNING:",
            "BUG:",
            "Oops",
            "Call Trace",
            "blocked for more than",
            "soft lockup",
            "detected stall",
            "refcount_t",
            "UBSAN",
        ];
        let log = self.run("dmesg", 60)?.stdout;
        Ok(log.lines().filter(|line| BAD.iter().any(|bad| line.contains(bad))).map(str::to_owned).collect())
    }

    /// The text of the guest's serial console since its start.
    pub fn console(&self) -> String {
        self.inner.console()
    }

    /// Cuts the guest's power: nothing in it is written back or closed. Drives keep what QEMU has
    /// written to their files.
    pub fn kill(&self) {
        self.inner.kill();
    }
}

impl Inner {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn kill(&self) {
        let mut child = self.child();
        child.kill().ok();
        child.wait().ok();
    }

    fn console(&self) -> String {
        let bytes = fs::read(self.dir.join("console.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }

    /// A free command port with a connection to it, or None for now.
    pub(crate) fn take_port(&self) -> Option<(usize, UnixStream)> {
        let mut ports = self.ports.lock().unwrap_or_else(|poison| poison.into_inner());
        let port = ports.iter().position(|taken| !taken)?;
        let socket = self.connect(port).ok()?;
        ports[port] = true;
        Some((port, socket))
    }

    /// A connection to a command port, which is the guest's once the one before it is closed.
    pub(crate) fn connect(&self, port: usize) -> std::io::Result<UnixStream> {
        job::connect(&self.dir, &format!("agent{port}.sock"))
    }

    pub(crate) fn free_port(&self, port: usize) {
        self.ports.lock().unwrap_or_else(|poison| poison.into_inner())[port] = false;
    }

    /// A sentence if the guest is no longer well.
    pub(crate) fn why_dead(&self) -> Option<String> {
        let log = self.console();
        let last = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(15)..].join("\n")
        };
        if let Some(at) = log.find("Kernel panic - not syncing") {
            let end = log[at..].find('\n').map_or(log.len(), |n| at + n);
            return Some(format!("the kernel of guest '{}' panicked:\n{}", self.name, last(&log[..end])));
        }
        match self.child().try_wait() {
            Ok(None) => None,
            Ok(Some(_)) | Err(_) => {
                let qemu = fs::read_to_string(self.dir.join("qemu.log")).unwrap_or_default();
                Some(format!(
                    "guest '{}' is not running; its last lines:\n{}\n{}",
                    self.name,
                    last(&log),
                    last(&qemu)
                ))
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.kill();
        fs::remove_dir_all(&self.dir).ok();
    }
}

/// A new folder for a guest's sockets and logs, locked for as long as it is used. What killed
/// processes left behind is removed on the way.
fn own_folder(name: &str) -> Result<(PathBuf, File)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let parent = host::folder().join("vm");
    fs::create_dir_all(&parent)?;
    // A folder is made and locked in one step as seen by others who clean up.
    let all = File::create(parent.join("lock"))?;
    all.lock()?;
    for old in fs::read_dir(&parent)?.flatten().map(|e| e.path()).filter(|p| p.is_dir()) {
        if File::open(old.join("in-use")).is_ok_and(|lock| lock.try_lock().is_ok()) {
            fs::remove_dir_all(&old).ok();
        }
    }
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let dir = parent.join(format!("{name}-{}-{number}", std::process::id()));
    fs::remove_dir_all(&dir).ok();
    fs::create_dir(&dir)?;
    let lock = File::create(dir.join("in-use"))?;
    lock.lock()?;
    Ok((dir, lock))
}

/// The rate of this machine's time-stamp counter, which QEMU hands to the guest unchanged.
fn tsc_khz(image: &Path) -> Result<&'static str> {
    static RATE: OnceLock<String> = OnceLock::new();
    if RATE.get().is_none() {
        let rate = host::output(Command::new(image.join("agent")).arg("--tsc-khz"))?;
        RATE.get_or_init(|| rate.trim().to_owned());
    }
    RATE.get().map(String::as_str).context("no rate")
}

/// FNV-1a: names and recipes need a number that stays the same, not a cryptographic one.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// A version 8 UUID made from a name.
fn uuid_of(name: &str) -> String {
    let (a, b) = (fnv(name.as_bytes()), fnv(format!("lab.{name}").as_bytes()));
    format!(
        "{:08x}-{:04x}-8{:03x}-8{:03x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        b >> 52,
        b & 0xffff_ffff_ffff
    )
}

/// The option for a drive that QEMU keeps in a file: nothing is cached, and two guests may share it.
fn drive(file: &Path, id: &str) -> String {
    format!("file={},id={id},if=none,format=raw,cache=none,file.locking=off,discard=unmap", file.display())
}

fn serial_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(20).collect()
}
