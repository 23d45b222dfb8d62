//! A daemon of our own, and its command line.

use lab::{Net, Output};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The program under judgement: `MILLRACE_BIN`, else it is built (optimised, as users have it).
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("MILLRACE_BIN") {
            return fs::canonicalize(&path).unwrap_or_else(|e| panic!("MILLRACE_BIN {path:?}: {e}"));
        }
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        build.args(["build", "--release", "--locked", "--quiet", "--package", "millrace"]);
        let built = build.arg("--target-dir").arg(target()).status().expect("cargo runs");
        assert!(built.success(), "the binary does not build");
        target().join("release/millrace")
    })
}

/// The program `fence`, which drives the fence of a drive by the product's own code: beside `MILLRACE_BIN` if it is there, else
/// it is built.
pub fn fence() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let beside = std::env::var_os("MILLRACE_BIN").map(|path| PathBuf::from(path).with_file_name("fence"));
        if let Some(path) = beside.filter(|path| path.is_file()) {
            return fs::canonicalize(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        build.args(["build", "--release", "--locked", "--quiet", "--package", "uring", "--bin", "fence"]);
        let built = build.arg("--target-dir").arg(target()).status().expect("cargo runs");
        assert!(built.success(), "the program fence does not build");
        target().join("release/fence")
    })
}

/// The program in a Debian package, made as `make deb` does but in haste; its path. Empty: the usual version.
pub fn packed(folder: &str, version: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/deb.sh");
    let mut pack = Command::new(script);
    pack.arg(binary()).arg(folder).env("COMPRESSION", "none").env("VERSION", version);
    if !binary().to_string_lossy().contains("/release/") {
        // A program that is not optimised is larger.
        pack.env("SIZE_MAX", "200000000");
    }
    let done = pack.output().expect("the script runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// cargo's folder: a program lies in `debug` or `release` of it, a test's in `deps` of that.
fn target() -> PathBuf {
    let me = std::env::current_exe().expect("a program knows its path");
    let folder = me.parent().expect("a program lies in a folder");
    let profile = if folder.ends_with("deps") { folder.parent().expect("a folder above") } else { folder };
    profile.parent().expect("a folder above").to_owned()
}

/// How a command was refused.
#[derive(Debug)]
pub struct Refusal {
    /// Exit code of the command.
    pub code: i32,
    /// What it said on standard error.
    pub said: String,
}

impl Refusal {
    /// Panics unless the message has all these words: it must name what is wrong.
    pub fn names(&self, words: &[&str]) -> &Refusal {
        for word in words {
            assert!(
                self.said.to_lowercase().contains(&word.to_lowercase()),
                "'{word}' is not in: {}",
                self.said
            );
        }
        self
    }
}

/// A head: daemon, state directory, drives, and the network that it listens in. All of it goes with
/// the value.
pub struct Head {
    /// The network: the daemon is at 127.0.0.1, 10.91.0.1 and 10.91.1.1 of it.
    pub net: Arc<Net>,
    /// The folder with `head.toml`, the state directory, the socket and the drives.
    pub dir: PathBuf,
    daemon: Option<Child>,
    /// Capabilities that the daemon is started without, as in `-net_raw`.
    without: Option<&'static str>,
    /// How many volumes there were when it was last killed or stopped.
    volumes: usize,
}

impl Head {
    /// A folder and a network for a head that does not run yet.
    pub fn prepare(name: &str) -> Head {
        Self::within(Arc::new(Net::new().expect("a network")), name)
    }

    /// The same in the network of this one, as a second head of a system.
    pub fn beside(&self, name: &str) -> Head {
        Self::within(Arc::clone(&self.net), name)
    }

    /// The same in a network that is there.
    pub fn within(net: Arc<Net>, name: &str) -> Head {
        let dir = target().join("judge").join(format!("{name}-{}", std::process::id()));
        fs::remove_dir_all(&dir).ok();
        fs::create_dir_all(dir.join("state")).expect("a folder");
        let at = dir.display();
        let config = format!("state_dir = \"{at}/state\"\nsocket = \"{at}/api\"\nmemory = \"256M\"\n");
        fs::write(dir.join("head.toml"), config).expect("head.toml");
        Head { net, dir, daemon: None, without: None, volumes: 0 }
    }

    /// Gives it one shard, from its next start on.
    pub fn has_one_shard(&self) {
        let file = File::options().append(true).open(self.dir.join("head.toml"));
        file.and_then(|mut file| file.write_all(b"shards = 1\n")).expect("head.toml");
    }

    /// Has its daemon started without these capabilities from now on, as in `-net_raw`.
    pub fn do_without(&mut self, capabilities: &'static str) {
        self.without = Some(capabilities);
    }

    /// A running head without pools.
    pub fn new(name: &str) -> Head {
        let mut head = Head::prepare(name);
        head.start();
        head
    }

    /// A running head with the pool `tank` (two mirrors of two files each, striped) that listens on
    /// all addresses at the usual ports.
    pub fn with_tank(name: &str) -> Head {
        let head = Head::new(name);
        for name in ["a", "b", "c", "d"] {
            head.file(name, 256 << 20);
        }
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| head.drive(name));
        head.cli(&format!("pool create tank mirror {a} {b} mirror {c} {d}"));
        head.cli("portal add nvme 0.0.0.0:4420");
        head.cli("portal add iscsi 0.0.0.0:3260");
        head
    }

    /// Makes a file for a drive, full of holes; returns its path.
    pub fn file(&self, name: &str, bytes: u64) -> String {
        let path = self.dir.join(name);
        File::create(&path).and_then(|f| f.set_len(bytes)).expect("a drive file");
        path.display().to_string()
    }

    /// The name of a file of this head as a drive, with 512-byte blocks, so that volumes of both block
    /// sizes can be had.
    pub fn drive(&self, name: &str) -> String {
        format!("file:{}?block=512", self.dir.join(name).display())
    }

    /// Starts the daemon, and waits for nothing.
    pub fn launch(&mut self) {
        assert!(self.daemon.is_none(), "it runs already");
        let log = File::options().create(true).append(true).open(self.dir.join("log")).expect("a log");
        let mut command = match self.without {
            None => self.net.command(binary()),
            Some(these) => {
                let mut less = self.net.command("setpriv");
                less.args(["--bounding-set", these, "--inh-caps", these, "--"]).arg(binary());
                less
            }
        };
        command.arg("serve").arg("--config").arg(self.dir.join("head.toml"));
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        self.daemon = Some(command.spawn().expect("the daemon starts"));
    }

    /// Starts the daemon and waits until it answers and serves again what it served before.
    pub fn start(&mut self) {
        self.launch();
        crate::until("the daemon answers", 20, || {
            let ended = self.daemon.as_mut().and_then(|d| d.try_wait().ok().flatten());
            assert!(ended.is_none(), "the daemon ended with {ended:?}:\n{}", self.log());
            self.try_cli("status").code == 0
        });
        crate::until("the volumes and portals are back", 20, || {
            let ports = self.json("portal ls").as_array().cloned().unwrap_or_default();
            let ports =
                ports.iter().filter_map(|p| p["address"].as_str()?.rsplit(':').next().map(str::to_owned));
            let connect: String =
                ports.map(|port| format!("exec 3<>/dev/tcp/127.0.0.1/{port} && ")).collect();
            let listening = self.net.try_run(&(connect + "true"), Duration::from_secs(5));
            self.volumes() >= self.volumes && listening.is_ok_and(|done| done.code == 0)
        });
    }

    fn volumes(&self) -> usize {
        self.json("volume ls").as_array().map_or(0, Vec::len)
    }

    /// Kills the daemon as -9 does: nothing is written back or closed.
    pub fn kill(&mut self) {
        self.volumes = self.volumes();
        self.kill_at_once();
    }

    /// The same without a question before.
    pub fn kill_at_once(&mut self) {
        let mut daemon = self.daemon.take().expect("a running daemon");
        daemon.kill().expect("kill");
        daemon.wait().expect("wait");
    }

    /// Asks the daemon to end and waits for it; returns its exit code.
    pub fn stop(&mut self) -> i32 {
        self.volumes = self.volumes();
        let mut daemon = self.daemon.take().expect("a running daemon");
        lab::sh(&format!("kill -TERM {}", daemon.id())).expect("kill");
        let mut ended = None;
        crate::until("the daemon ends when asked", 30, || {
            ended = daemon.try_wait().expect("wait");
            ended.is_some()
        });
        ended.and_then(|status| status.code()).unwrap_or(-1)
    }

    /// The daemon's process.
    pub fn pid(&self) -> u32 {
        self.daemon.as_ref().expect("a running daemon").id()
    }

    /// Runs a command line; whatever it ends with. Words are split at blanks.
    pub fn try_cli(&self, words: &str) -> Output {
        let mut command = Command::new(binary());
        command
            .args(words.split_whitespace())
            .env("MILLRACE_SOCKET", self.dir.join("api"))
            .stdin(Stdio::null());
        let done = command.output().expect("the binary runs");
        Output {
            code: done.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&done.stdout).into(),
            stderr: String::from_utf8_lossy(&done.stderr).into(),
        }
    }

    /// Runs a command line that must work; returns what it printed.
    pub fn cli(&self, words: &str) -> String {
        self.try_cli(words).good(&format!("millrace {words}")).unwrap_or_else(|e| panic!("{e:#}")).stdout
    }

    /// The same with `--json`.
    pub fn json(&self, words: &str) -> Value {
        let text = self.cli(&format!("{words} --json"));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("millrace {words} --json: {e}\n{text}"))
    }

    /// Runs a command line that must be refused with a sentence on standard error.
    pub fn refused(&self, words: &str) -> Refusal {
        let done = self.try_cli(words);
        assert_ne!(done.code, 0, "millrace {words} should be refused, and said: {}", done.stdout);
        assert!(
            done.stderr.trim().len() > 10,
            "millrace {words} is refused without a sentence: '{}'",
            done.stderr
        );
        assert!(!done.stderr.contains("panicked"), "millrace {words} panics: {}", done.stderr);
        Refusal { code: done.code, said: done.stderr }
    }

    /// Makes it and another head one system, by a link between these two addresses, and waits until the other one follows and is ready.
    pub fn lead(&self, other: &Head, link: [&str; 2]) {
        let created = self.json(&format!("system create --link {}:7400 --name left", link[0]));
        let token = created["token"].as_str().expect("a token");
        other.cli(&format!("system join {token} --link {} --name right", link[1]));
        crate::until("the other head follows", 60, || self.heads() == ["leads", "follows, ready"]);
    }

    /// What each head of its system is, as this one knows it: none, if it does not answer.
    pub fn heads(&self) -> Vec<String> {
        let done = self.try_cli("head ls --json");
        let Ok(system) = serde_json::from_str::<Value>(&done.stdout) else { return vec![] };
        let word = |h: &Value| {
            let state = h["state"].as_str().unwrap_or("");
            format!("{state}{}", if state == "follows" && h["ready"] == true { ", ready" } else { "" })
        };
        system["heads"].as_array().map(|all| all.iter().map(word).collect()).unwrap_or_default()
    }

    /// What drives, pools and volumes are in: `optimal` and so on.
    pub fn health(&self) -> String {
        self.json("status")["health"].as_str().unwrap_or("").to_owned()
    }

    /// The target's iSCSI name.
    pub fn iqn(&self) -> String {
        self.json("status")["system"]["iqn"].as_str().expect("the system's IQN").to_owned()
    }

    /// The subsystem's NVMe name.
    pub fn nqn(&self) -> String {
        self.json("status")["system"]["nqn"].as_str().expect("the system's NQN").to_owned()
    }

    /// Makes the volume `tank/NAME` and gives it to a host that has these names; returns its LUN.
    pub fn give(&self, name: &str, size: &str, block: u32, host: &str, names: &str) -> u64 {
        self.cli(&format!("volume create tank/{name} --size {size} --block {block}"));
        self.cli(&format!("host add {host} {names}"));
        self.cli(&format!("export tank/{name} --host {host}"));
        let hosts = self.json("host ls");
        let host = hosts.as_array().and_then(|all| all.iter().find(|h| h["name"] == host)).expect("the host");
        host["exports"][0]["lun"].as_u64().expect("a LUN")
    }

    /// Runs a shell command in the daemon's network; it must end with 0.
    pub fn run(&self, script: &str, seconds: u64) -> Output {
        self.net.run(script, Duration::from_secs(seconds)).unwrap_or_else(|e| panic!("{e:#}"))
    }

    /// Waits until the daemon has the memory that it makes resident after its start.
    pub fn wait_for_memory(&self) {
        crate::until("all memory is resident", 120, || {
            let daemon = &self.json("status")["daemon"];
            daemon["memory_resident_bytes"] == daemon["memory_bytes"]
        });
    }

    /// Resident memory of the daemon, MiB.
    pub fn memory_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("a running daemon");
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number") / 1024
    }

    /// Processor time that the daemon has used, in clock ticks of 10 ms.
    pub fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("a running daemon");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        fields[11..13].iter().map(|n| n.parse::<u64>().expect("a number")).sum()
    }

    /// What the daemon has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().ok();
            daemon.wait().ok();
        }
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("the daemon's log ends with:\n{}", lines[lines.len().saturating_sub(40)..].join("\n"));
        }
        fs::remove_dir_all(&self.dir).ok();
    }
}
