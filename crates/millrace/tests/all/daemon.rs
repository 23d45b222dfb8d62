//! A daemon of a test's own, from the program that cargo has just built.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Until something counts as never: a bound against tests that hang, and no measure of speed.
pub const PATIENCE: Duration = Duration::from_secs(90);

pub fn millrace(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millrace")).args(words).stdin(Stdio::null()).output().expect("it runs")
}

pub fn said(output: &Output) -> (i32, String) {
    let err = String::from_utf8(output.stderr.clone()).expect("text");
    (output.status.code().expect("an exit code"), err)
}

/// A daemon in a folder of its own; killed at the end.
pub struct Daemon {
    pub folder: tempfile::TempDir,
    pub child: Option<Child>,
}

impl Daemon {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display();
        let text = format!(
            "state_dir = \"{path}/state\"\nsocket = \"{path}/api.sock\"\nshards = 1\nmemory = \"64M\"\n"
        );
        fs::write(folder.path().join("head.toml"), text).expect("written");
        Self { folder, child: None }
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        command.arg("serve").arg("--config").arg(self.path("head.toml"));
        let log = fs::File::options().append(true).create(true).open(self.path("log")).expect("opened");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }
    pub fn start(&mut self, words: &[&str]) {
        self.child = Some(self.command().args(words).spawn().expect("it runs"));
        let begin = Instant::now();
        while !self.ask(&["status"]).status.success() {
            let log = || fs::read_to_string(self.path("log")).unwrap_or_default();
            assert!(begin.elapsed() < PATIENCE, "the daemon does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    pub fn ask(&self, words: &[&str]) -> Output {
        let socket = self.path("api.sock").display().to_string();
        millrace(&[&["--socket", &socket], words].concat())
    }
    pub fn status(&self) -> serde_json::Value {
        let output = self.ask(&["status", "--json"]);
        assert!(output.status.success(), "{}", said(&output).1);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
    pub fn signal(&mut self, signal: &str) -> std::process::ExitStatus {
        let mut child = self.child.take().expect("it runs");
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill runs").success());
        let begin = Instant::now();
        loop {
            if let Some(status) = child.try_wait().expect("ours") {
                return status;
            }
            if begin.elapsed() > PATIENCE {
                let _ = child.kill();
                panic!(
                    "{signal} did not end the daemon: {}",
                    fs::read_to_string(self.path("log")).unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    /// A command line that must work; what it printed.
    pub fn cli(&self, words: &str) -> String {
        let output = self.ask(&words.split_whitespace().collect::<Vec<_>>());
        assert!(output.status.success(), "millrace {words}: {}", said(&output).1);
        String::from_utf8(output.stdout).expect("text")
    }
    /// A command line that must be refused; its sentence.
    pub fn refused(&self, words: &str) -> String {
        let output = self.ask(&words.split_whitespace().collect::<Vec<_>>());
        assert!(!output.status.success(), "millrace {words} works");
        said(&output).1
    }
    /// What a command prints with `--json`.
    pub fn json(&self, words: &str) -> serde_json::Value {
        serde_json::from_str(&self.cli(&format!("{words} --json"))).expect("JSON")
    }
    /// A file for a drive, full of holes; its path.
    pub fn file(&self, name: &str, mib: u64) -> String {
        let path = self.path(name);
        fs::File::create(&path).and_then(|f| f.set_len(mib << 20)).expect("a file");
        path.display().to_string()
    }
    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
    /// Messages of all events, with what they are about.
    pub fn events(&self) -> Vec<String> {
        let events = self.json("events");
        let line = |e: &serde_json::Value| {
            format!("{}: {}", e["what"].as_str().unwrap_or(""), e["message"].as_str().unwrap_or(""))
        };
        events.as_array().expect("a list").iter().map(line).collect()
    }
    /// Everything that is wrong, as `status` says it.
    pub fn reasons(&self) -> Vec<String> {
        let status = self.status();
        let text = |r: &serde_json::Value, key: &str| r[key].as_str().unwrap_or("").to_string();
        let line = |r: &serde_json::Value| {
            format!("{} {}: {} [{}]", text(r, "state"), text(r, "what"), text(r, "message"), text(r, "next"))
        };
        status["reasons"].as_array().expect("a list").iter().map(line).collect()
    }
    /// A portal at a free port; its address.
    pub fn portal(&self, protocol: &str) -> String {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
        self.cli(&format!("portal add {protocol} {port}"));
        port.to_string()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: {}", self.path("log").display(), self.log());
        }
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until `condition` holds.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A program that ends with the test.
pub struct Load(pub Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Daemon {
    /// Has its API listen over TCP with a certificate of its own, from the start on; the port.
    pub fn with_tls(&self) -> u16 {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let mut config = fs::File::options().append(true).open(self.path("head.toml")).expect("opened");
        writeln!(config, "[api]\ntcp = \"127.0.0.1:{port}\"\ntls = \"self-signed\"").expect("written");
        port
    }
    /// Registers a host, exports a volume of 32 MiB to it, which there is then on the pool of `drive`, and has it read and write.
    pub fn busy(&self, drive: &str) -> Load {
        const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000000000f";
        self.cli(&format!("host add loader --nqn {NQN}"));
        let portal = self.portal("nvme");
        self.cli(&format!("pool create tank {drive}"));
        self.cli("volume create tank/v --size 32M");
        self.cli("export tank/v --host loader");
        let nqn = self.status()["system"]["nqn"].as_str().expect("a name").to_string();
        let mut load = Command::new(env!("CARGO_BIN_EXE_millrace"));
        load.args(["bench", "--target", &format!("nvme://{portal}/{nqn}/1"), "--host-nqn", NQN, "--json"]);
        load.args("--rw randrw --force --bs 4k --qd 4 --seconds 300".split(' '));
        load.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Load(load.spawn().expect("it runs"))
    }
}

/// The status, the header and the body of what curl was answered.
pub fn curl(words: &[&str]) -> (String, String, String) {
    let mut command = Command::new("curl");
    command.args([
        "--silent",
        "--show-error",
        "--max-time",
        "30",
        "--include",
        "--write-out",
        "\n%{http_code}",
    ]);
    let output = command.args(words).stdin(Stdio::null()).output().expect("curl runs");
    assert!(output.status.success(), "{}", said(&output).1);
    let text = String::from_utf8(output.stdout).expect("text");
    let (text, status) = text.rsplit_once('\n').expect("a status");
    let (header, body) = text.split_once("\r\n\r\n").expect("a header");
    (status.into(), header.to_lowercase(), body.into())
}
