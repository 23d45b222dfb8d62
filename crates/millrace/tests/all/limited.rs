//! The daemon in a control group that is small: what it locks fits, and what would not fit is refused before it is locked.

use crate::daemon::{Daemon, until};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A control group with a limit; gone with the value.
struct Group(PathBuf);

impl Group {
    /// None where this process may make none: in most containers.
    fn new(name: &str, bytes: u64) -> Option<Self> {
        let file = |version2: bool| if version2 { "memory.max" } else { "memory.limit_in_bytes" };
        for (root, version2) in [("/sys/fs/cgroup/memory", false), ("/sys/fs/cgroup", true)] {
            let path = PathBuf::from(root).join(format!("millrace-{}-{name}", std::process::id()));
            if !PathBuf::from(root).join("cgroup.procs").exists() || fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Self(path);
            if fs::write(group.0.join(file(version2)), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        None
    }
    /// The most that it ever had, bytes. Version 2 tells it since Linux 5.19.
    fn peak(&self) -> u64 {
        let read = |file: &str| fs::read_to_string(self.0.join(file)).ok()?.trim().parse().ok();
        read("memory.max_usage_in_bytes").or_else(|| read("memory.peak")).unwrap_or(0)
    }
    /// The command, with everything that it starts, in the group.
    fn command(&self, inner: &Command) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.0);
        command.arg(inner.get_program()).args(inner.get_args());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

const MIB: u64 = 1 << 20;

#[test]
fn a_daemon_fits_into_its_control_group_or_says_what_it_needs() {
    let (Some(small), Some(tiny)) = (Group::new("small", 200 * MIB), Group::new("tiny", 128 * MIB)) else {
        eprintln!("SKIPPED: this process may not make control groups with a limit of memory");
        return;
    };
    // Drives on a file system in memory, as /tmp is on some machines, would be memory of whoever writes to them.
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    // Nothing is said of memory: it takes what fits.
    let mut daemon = Daemon::new();
    let path = daemon.path("").display().to_string();
    let path = path.trim_end_matches('/');
    let config = format!("state_dir = \"{path}/state\"\nsocket = \"{path}/api.sock\"\nshards = 1\n");
    fs::write(daemon.path("head.toml"), &config).expect("written");
    let refused = tiny.command(&daemon.command()).stderr(Stdio::piped()).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success(), "128M are not enough");
    assert!(said.contains("1 shard needs 164M of memory (64M for data, 100M beside)"), "{said}");
    assert!(tiny.peak() < 64 * MIB, "it was refused before anything was locked: {}", tiny.peak());

    // This program is not optimised, and its code is twice what `config::memory` counts. Read here, it counts for whoever tests.
    fs::read(env!("CARGO_BIN_EXE_millrace")).expect("the program");
    let log = fs::File::create(daemon.path("log")).expect("made");
    daemon.child = Some(small.command(&daemon.command()).stderr(log).spawn().expect("it runs"));
    until("it serves", || daemon.ask(&["status"]).status.success());
    let bytes = |key: &str| daemon.status()["daemon"][key].as_u64().unwrap_or(0);
    until("all memory is there", || bytes("memory_resident_bytes") == bytes("memory_bytes"));
    assert!(bytes("memory_data_bytes") >= 64 * MIB && bytes("memory_data_bytes") < bytes("memory_bytes"));
    // And it works.
    let [a, b] = ["a", "b"].map(|name| disk.path().join(name).display().to_string());
    for drive in [&a, &b] {
        fs::File::create(drive).and_then(|file| file.set_len(96 * MIB)).expect("made");
    }
    daemon.cli(&format!("pool create tank mirror {a} {b}"));
    daemon.cli("volume create tank/v --size 16M");
    daemon.cli("host add h --nqn nqn.2014-08.org.nvmexpress:h");
    daemon.cli("export tank/v --host h");
    let portal = daemon.portal("nvme");
    let nqn = daemon.status()["system"]["nqn"].as_str().expect("a name").to_string();
    let target = format!("nvme://{portal}/{nqn}/1");
    let load = "--host-nqn nqn.2014-08.org.nvmexpress:h --rw randrw --force --bs 64k --qd 32 --connections 4 --seconds 2";
    let words = [vec!["bench", "--target", &target], load.split(' ').collect()].concat();
    let output = crate::daemon::millrace(&words);
    assert!(output.status.success(), "{}", crate::daemon::said(&output).1);
    assert!(small.peak() > 150 * MIB && small.peak() <= 200 * MIB, "{}", small.peak());
    assert_eq!(daemon.status()["health"], "optimal");
    // The group is empty before it goes.
    daemon.signal("-TERM");
}
