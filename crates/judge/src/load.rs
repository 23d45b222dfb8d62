//! A verified load of our own initiators.

use crate::{Head, binary};
use serde_json::Value;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The name by which loads come to a head over NVMe/TCP.
pub const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:6d696c6c-7261-4365-8065-736f616b0001";
pub(crate) const IQN: &str = "iqn.2026-01.org.millrace.judge:soak";

/// Which of our initiators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// NVMe/TCP.
    Nvme,
    /// iSCSI.
    Iscsi,
}

/// `millrace bench` with stamps in the head's network, until it is asked to stop. Lost connections and refusals
/// are retried for two minutes; what was acknowledged is checked whenever it is read, and all of it at the end.
pub struct Load {
    name: String,
    child: Child,
    said: PathBuf,
    complaint: PathBuf,
}

/// What a load did and saw.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Operations.
    pub ops: u64,
    /// Blocks that held what was last acknowledged.
    pub verified: u64,
    /// Sessions opened again.
    pub reconnects: u64,
    /// The slowest read, seconds.
    pub read_max_s: f64,
    /// The slowest write, seconds.
    pub write_max_s: f64,
}

impl Report {
    /// Adds another load's.
    pub fn add(&mut self, other: &Report) {
        self.ops += other.ops;
        self.verified += other.verified;
        self.reconnects += other.reconnects;
        self.read_max_s = self.read_max_s.max(other.read_max_s);
        self.write_max_s = self.write_max_s.max(other.write_max_s);
    }
}

/// The commands that give volumes of `tank` to the loads' host, as LUN 0 and so on.
pub fn allow(volumes: &[&str]) -> Vec<String> {
    let mut commands = vec![format!("host add soak --nqn {NQN} --iqn {IQN}")];
    commands.extend(
        volumes.iter().enumerate().map(|(lun, name)| format!("export tank/{name} --host soak --lun {lun}")),
    );
    commands
}

/// Makes two volumes of `tank` for the loads: `v` is LUN 0, `w` is LUN 1.
pub fn volumes(head: &Head, v: &str, w: &str) {
    for (name, size) in [("v", v), ("w", w)] {
        head.cli(&format!("volume create tank/{name} --size {size} --block 4096"));
    }
    allow(&["v", "w"]).iter().for_each(|command| drop(head.cli(command)));
}

/// The words of `bench` for a target at which the loads' host is known.
pub fn names(url: &str) -> String {
    format!("--target {url} --host-nqn {NQN} --iqn {IQN}")
}

/// The words of `bench` that lead to a volume that [`allow`] gave to the loads' host.
pub fn target(head: &Head, protocol: Protocol, name: &str) -> String {
    let host = head.json("host show soak");
    let exports = host["exports"].as_array().expect("what it may see");
    let whole = format!("tank/{name}");
    let export = exports.iter().find(|e| e["volume"] == whole.as_str()).expect("it was given to the host");
    names(&match protocol {
        Protocol::Nvme => format!("nvme://127.0.0.1:4420/{}/{}", head.nqn(), export["nsid"]),
        Protocol::Iscsi => format!("iscsi://127.0.0.1:3260/{}/{}", head.iqn(), export["lun"]),
    })
}

impl Load {
    /// Starts one. `words` are those of `millrace bench`: target, shape, and where.
    pub fn start(head: &Head, name: &str, words: &str) -> Load {
        Self::start_in(&head.net, head, name, words)
    }

    /// The same in another network; the head's folder keeps what it says.
    pub fn start_in(net: &lab::Net, head: &Head, name: &str, words: &str) -> Load {
        static SEED: AtomicU32 = AtomicU32::new(1);
        let (said, complaint) = (head.dir.join(format!("{name}.json")), head.dir.join(format!("{name}.err")));
        let mut command = net.command(binary());
        command.args([
            "bench",
            "--json",
            "--verify",
            "--read-back",
            "--seconds",
            "0",
            "--patience",
            "120",
            "--force",
        ]);
        command.args(["--seed", &SEED.fetch_add(1, Ordering::Relaxed).to_string()]);
        command.args(words.split_whitespace()).stdin(Stdio::null());
        command
            .stdout(File::create(&said).expect("a file"))
            .stderr(File::create(&complaint).expect("a file"));
        let child = command.spawn().expect("the load starts");
        Load { name: name.into(), child, said, complaint }
    }

    /// Panics if it has ended: it shall run until it is asked to stop.
    pub fn must_run(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            panic!("the load '{}' ended ({status}): {}", self.name, self.complaint());
        }
    }

    fn complaint(&self) -> String {
        fs::read_to_string(&self.complaint).unwrap_or_default().trim().into()
    }

    /// Stops it, lets it read back everything that it wrote, and returns its figures. Panics if anything that
    /// was acknowledged was not there, or if any operation failed.
    pub fn finish(mut self) -> Report {
        self.must_run();
        lab::sh(&format!("kill -INT {}", self.child.id())).expect("kill");
        let mut ended = None;
        crate::until(&format!("the load '{}' reads back and ends", self.name), 300, || {
            ended = self.child.try_wait().expect("wait");
            ended.is_some()
        });
        let text = fs::read_to_string(&self.said).expect("what it said");
        let report: Value = serde_json::from_str(&text)
            .unwrap_or_else(|e| panic!("the load '{}' has no report ({e}): {}", self.name, self.complaint()));
        let good = ended.is_some_and(|status| status.success());
        assert!(
            good && report["end"] == "stopped" && report["errors"] == 0 && report["mismatches"] == 0,
            "the load '{}' went wrong: {} {text}",
            self.name,
            self.complaint()
        );
        let number = |value: &Value| value.as_u64().expect("a count");
        let seconds = |value: &Value| value["max_us"].as_f64().unwrap_or(0.0) / 1e6;
        let done = Report {
            ops: number(&report["total"]["ops"]),
            verified: number(&report["verified_blocks"]),
            reconnects: number(&report["reconnects"]),
            read_max_s: seconds(&report["reads"]),
            write_max_s: seconds(&report["writes"]),
        };
        assert!(done.verified > 0, "the load '{}' verified nothing: {text}", self.name);
        done
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
