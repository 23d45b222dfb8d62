//! The Debian package under systemd, on the oldest kernel: it installs, starts, upgrades and purges, and the daemon starts again
//! after it ends.

use judge::{binary, packed, until};
use lab::{Kernel, Net, Vm, skipped};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// systemd, dpkg and the libraries that the guest's tools do not bring along.
const PACKAGES: &[&str] = &[
    "systemd",
    "dpkg",
    "tar",
    "perl-base",
    "init-system-helpers",
    "libmd0",
    "libbz2-1.0",
    "zlib1g",
    "libsystemd-shared",
    "libsystemd0",
    "libacl1",
    "libapparmor1",
    "libargon2-1",
    "libaudit1",
    "libblkid1",
    "libcap-ng0",
    "libcap2",
    "libcrypt1",
    "libcryptsetup12",
    "libdevmapper1.02.1",
    "libfdisk1",
    "libgcrypt20",
    "libgpg-error0",
    "libip4tc2",
    "libjson-c5",
    "libkmod2",
    "liblz4-1",
    "liblzma5",
    "libmount1",
    "libp11-kit0",
    "libpam0g",
    "libpcre2-8-0",
    "libseccomp2",
    "libselinux1",
    "libssl3",
    "libzstd1",
];

/// The guest's first process is the lab's: systemd is the first of a process namespace, as in a container.
/// The processor is emulated, so the daemon gets little memory to lock.
const BOOT: &str = r#"set -e
    tar -C / -xzf /tmp/systemd.tgz --keep-directory-symlink --no-same-owner
    mkdir -p /etc/millrace /etc/systemd/system/multi-user.target.wants /var/log/journal
    printf 'shards = 1\nmemory = "64M"\n' >/etc/millrace/head.toml
    mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers
    : >>/var/lib/dpkg/status
    for unit in getty.target systemd-{udevd,udev-trigger,logind,modules-load,random-seed,remount-fs,sysctl}.service \
        iscsid.socket iscsid.service open-iscsi.service multipathd.service multipathd.socket nvmf-autoconnect.service
    do ln -sf /dev/null /etc/systemd/system/$unit; done
    tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
    setsid unshare --fork --pid --mount --cgroup --mount-proc sh -c 'mount -t cgroup2 none /sys/fs/cgroup;
        exec env container=lab /lib/systemd/systemd --system --unit=multi-user.target' >/tmp/log 2>&1 </dev/null &"#;

/// What the daemon logs once it serves.
const SERVES: &str = " serves; its API is at ";
/// The unit's RestartSec.
const PAUSE: f64 = 0.2;

/// Runs a command as the machine that systemd made.
fn inside(command: &str) -> String {
    format!("nsenter -t $(pgrep -xo systemd) --all {command}")
}

/// Installs a package. The guest has the libraries that it needs, but no record of them; its settings stay as they are.
fn install(vm: &Vm, deb: &str) {
    let words = "--force-depends --force-bad-path --force-confold --install";
    vm.run(&inside(&format!("dpkg {words} {deb}")), 120).unwrap_or_else(|e| panic!("{deb}: {e:#}"));
}

/// Crashes that many count only within this time, s, as the unit's daemon counts them; somewhat less is sure.
const WINDOW: f64 = 60.0;
const WITHIN: f64 = 50.0;
/// A guest on a busy machine may take too long for three of them.
const CRASHES_MOST: usize = 12;

/// Crashes the daemon; when that was, and seconds until the next one serves, by the guest's clock and the journal's.
fn crash(vm: &Vm, signal: &str, n: usize) -> (f64, f64) {
    let script = format!("date +%s.%N; kill -{signal} $(pgrep -xo millrace)");
    let killed: f64 = vm.run(&script, 30).expect("kill").text().parse().expect("a time");
    let journal = inside("journalctl -u millrace --no-pager -o short-unix");
    // Asking costs more of an emulated processor than starting.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let mut serves = 0.0;
    until("the daemon serves again", 180, || {
        let lines = vm.run(&journal, 30).expect("the journal").stdout;
        let all: Vec<f64> = lines
            .lines()
            .filter(|line| line.contains(SERVES))
            .filter_map(|line| line.split(' ').next()?.parse().ok())
            .collect();
        serves = all.last().copied().unwrap_or(0.0);
        all.len() == n + 1
    });
    (killed, serves - killed)
}

/// A daemon on the machine's own processor, beside the guests.
struct Native {
    dir: PathBuf,
    portal: SocketAddr,
    daemon: Child,
}

impl Native {
    /// One that has a mirror of two files, a volume and a portal.
    fn new() -> Self {
        let dir = std::env::temp_dir().join(format!("millrace-systemd-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        // The system gives such a port to nobody else soon.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
        let daemon = Self::serve(&dir, "64M");
        let native = Self { dir, portal: free, daemon };
        until("the daemon answers", 60, || native.cli("status").is_some());
        let drives = ["a", "b"].map(|name| native.dir.join(name));
        for drive in &drives {
            File::create(drive).and_then(|f| f.set_len(256 << 20)).expect("a drive file");
        }
        let [a, b] = drives.map(|d| d.display().to_string());
        for order in [
            format!("pool create tank mirror {a} {b}"),
            "volume create tank/v --size 64M".into(),
            format!("portal add nvme {free}"),
        ] {
            assert!(native.cli(&order).is_some(), "millrace {order}");
        }
        native
    }
    fn serve(dir: &Path, memory: &str) -> Child {
        let (state, socket, config) = (dir.join("state"), dir.join("socket"), dir.join("head.toml"));
        let words = format!("memory = {memory:?}\nstate_dir = {state:?}\nsocket = {socket:?}\n");
        std::fs::write(&config, words).expect("a configuration");
        let mut command = Command::new(binary());
        command.args(["serve", "--config"]).arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the daemon starts")
    }
    fn cli(&self, words: &str) -> Option<String> {
        let mut command = Command::new(binary());
        command.args(words.split(' ')).arg("--socket").arg(self.dir.join("socket"));
        let done = command.stderr(Stdio::null()).output().expect("the binary runs");
        done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
    }
    /// Kills the daemon; seconds that the next one, with this memory, takes until a host is answered at its portal.
    fn start(&mut self, memory: &str) -> f64 {
        self.daemon.kill().expect("kill -9");
        self.daemon.wait().expect("it ends");
        let began = Instant::now();
        self.daemon = Self::serve(&self.dir, memory);
        until("a host is answered", 120, || {
            let hello = || -> std::io::Result<()> {
                let mut host = TcpStream::connect(self.portal)?;
                let mut request = [0; 128];
                request[2] = 128;
                request[4] = 128;
                host.write_all(&request)?;
                host.read_exact(&mut request)
            };
            hello().is_ok()
        });
        began.elapsed().as_secs_f64()
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn a_start_does_not_wait_for_the_memory() {
    let mut native = Native::new();
    let machine = std::fs::read_to_string("/proc/meminfo").expect("a machine with memory");
    let kib: u64 = machine.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    let much = (kib / 1024 / 4).min(1536);
    for memory in ["64M".to_string(), format!("{much}M")] {
        let memory = memory.as_str();
        // The best of three, as others may have the processor for a while.
        let took = [0; 3].map(|_| native.start(memory));
        println!("with {memory} a host is answered after {took:.2?} s");
        assert!(PAUSE + took.iter().copied().fold(f64::MAX, f64::min) < 2.0, "{memory}: {took:?}");
    }
    until("all memory is resident", 120, || {
        let said = native.cli("status --json").expect("status");
        let status: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        let bytes = |name| status["daemon"][name].as_u64().expect("a number");
        let (all, resident) = (bytes("memory_bytes"), bytes("memory_resident_bytes"));
        assert!(all >= much << 20 && resident <= all, "{resident} of {all}");
        resident == all
    });
}

#[test]
fn systemd_starts_a_crashed_daemon_within_2_s_and_the_fourth_with_the_management_alone() {
    if skipped("the unit under systemd") {
        return;
    }
    let net = Net::new().expect("a network");
    let vm = Vm::builder("systemd").cpus(2).mem(1536).start(&net).expect("a guest");
    vm.push(&lab::packages(Kernel::V6_1, PACKAGES).expect("packages"), "/tmp/systemd.tgz").expect("push");
    let dir = std::env::temp_dir().join(format!("millrace-unit-{}", std::process::id()));
    let deb = |version: &str| packed(&dir.display().to_string(), version);
    vm.push(Path::new(&deb("1")), "/var/1.deb").expect("push");
    vm.run(BOOT, 60).expect("systemd starts");
    let booted = inside("systemctl is-system-running");
    until("systemd is up", 180, || {
        vm.try_run(&booted, 30).is_ok_and(|o| ["running", "degraded"].contains(&o.text()))
    });
    install(&vm, "/var/1.deb");
    let active = inside("systemctl is-active millrace");
    until("the unit is active", 180, || vm.run(&active, 30).is_ok_and(|o| o.text() == "active"));
    let verified =
        vm.run(&inside("systemd-analyze verify --man=no millrace.service 2>&1"), 60).expect("verify");
    assert_eq!(verified.text(), "", "systemd has nothing to say about the unit");

    let status = || -> serde_json::Value {
        let said = vm.run(&inside("millrace status --json"), 30).expect("status").stdout;
        serde_json::from_str(&said).expect("JSON")
    };
    assert!(
        status()["daemon"]["notices"].as_array().is_none_or(|n| n.is_empty()),
        "the unit gives all that the daemon asks for: {}",
        status()["daemon"]
    );
    let as_user = |group: u32| {
        let who = format!("setpriv --reuid=65534 --regid=65534 --groups={group} millrace status --json");
        vm.try_run(&inside(&who), 30).expect("setpriv")
    };
    let group = vm.run("grep ^millrace: /etc/group", 30).expect("the package makes a group");
    let group = group.text().split(':').nth(2).and_then(|n| n.parse().ok()).expect("a number");
    assert_eq!(as_user(group).code, 0, "a member of the socket's group needs no root");
    let other_user = as_user(65534);
    assert!(other_user.code == 4 && other_user.stderr.contains("usermod -aG millrace"), "{other_user:?}");
    // The guest's processor is emulated, some ten times slower than the machine's, and may have to wait for that: there
    // it is seen that systemd waits as long as the unit says, and the daemon's own start is held to the 2 s on the
    // machine itself, above.
    let pause = vm.run(&inside("systemctl show millrace -p RestartUSec --value"), 30).expect("systemctl");
    assert_eq!(pause.text(), format!("{}ms", PAUSE * 1e3));
    let (mut killed, mut took): (Vec<f64>, Vec<f64>) = (vec![], vec![]);
    while status()["daemon"]["management_only"] == false {
        let last: Vec<f64> = killed.iter().rev().take(3).copied().collect();
        let many = last.len() == 3 && last[0] - last[2] < WITHIN;
        assert!(!many && killed.len() < CRASHES_MOST, "it serves after crashes at {killed:.1?}");
        let (at, again) = crash(&vm, ["SEGV", "ABRT"][killed.len() % 2], killed.len() + 1);
        killed.push(at);
        took.push(again);
    }
    println!("served again after {took:.1?} s");
    let crashes = killed.len();
    assert!(crashes >= 3 && killed[crashes - 1] - killed[crashes - 3] <= WINDOW + 1.0, "{killed:.1?}");
    let status = status();
    assert_eq!(status["daemon"]["management_only"], true, "{status}");
    assert!(
        status["reasons"][0]["message"].as_str().is_some_and(|m| m.contains("crashed 3 times")),
        "{status}"
    );
    let restarts = vm.run(&inside("systemctl show millrace -p NRestarts --value"), 30).expect("systemctl");
    assert_eq!(restarts.text(), crashes.to_string(), "systemd does not give up");

    // A newer package starts its program once, and leaves everything else as it was.
    let state = |what: &str| vm.run(&inside(what), 30).expect(what).stdout;
    let (identity, settings) =
        (state("cat /var/lib/millrace/identity"), state("cat /etc/millrace/head.toml"));
    let process = state("pgrep -xo millrace");
    vm.push(Path::new(&deb("2")), "/var/2.deb").expect("push");
    install(&vm, "/var/2.deb");
    until("the new daemon answers", 180, || {
        vm.try_run(&inside("millrace status"), 30).is_ok_and(|o| o.code == 0)
    });
    assert_ne!(state("pgrep -xo millrace"), process, "the new program runs");
    assert_eq!(state("cat /var/lib/millrace/identity"), identity);
    assert_eq!(state("cat /etc/millrace/head.toml"), settings);

    vm.run(&inside("dpkg --force-bad-path --purge millrace"), 120).expect("purge");
    let left = "ls -d /usr/bin/millrace /var/lib/millrace /etc/millrace/head.toml /run/millrace 2>/dev/null; pgrep -x millrace";
    assert_eq!(
        vm.try_run(&inside(&format!("sh -c '{left}'")), 30).expect("ls").text(),
        "",
        "nothing is left"
    );
    std::fs::remove_dir_all(&dir).ok();
}
