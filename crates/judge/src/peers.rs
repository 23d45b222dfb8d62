//! Targets of others, each with a volume that discards writes: alternatives that users have, and targets for our
//! initiators. SPDK runs from a checkout that is built already, tgt from Debian's package.

use lab::Net;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How to get SPDK, for whoever lacks it.
pub const SPDK_HINT: &str =
    "build SPDK (docs/performance.md, \"Beside other targets\") and name its folder: SPDK=/path/to/spdk";
/// How to get tgt, for whoever lacks it.
pub const TGT_HINT: &str = "apt-get install tgt";

/// SPDK's subsystem.
const NQN: &str = "nqn.2016-06.io.spdk:peer";
/// tgt's target.
const IQN: &str = "iqn.2026-01.org.millrace.judge:tgt";
/// The longest that a target takes to come up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The checkout of SPDK that the environment names, with this program in it.
///
/// Errors: there is none, with the reason.
pub fn spdk(program: &str) -> Result<PathBuf, String> {
    let root = std::env::var_os("SPDK").filter(|path| !path.is_empty()).ok_or("SPDK is not set")?;
    let root = PathBuf::from(root);
    let built = root.join("build/bin").join(program);
    if built.is_file() { Ok(root) } else { Err(format!("there is no {}", built.display())) }
}

/// A target of somebody else's. It ends with the value.
pub struct Peer {
    /// What users call it.
    pub name: &'static str,
    /// Where `millrace bench` finds its volume.
    pub url: String,
    child: Child,
    /// It polls, and takes its core as long as it is not stopped.
    spins: bool,
}

impl Peer {
    /// SPDK's NVMe/TCP target as it is without options. Namespace 1 is a null volume of 64 GiB, namespace 2 keeps what is
    /// written, 64 MiB of it. `dir`: for its log and socket.
    ///
    /// Errors: it is not there, or does not come up, in a sentence.
    pub fn spdk_nvmf(net: &Net, dir: &Path, port: u16) -> Result<Peer, String> {
        let calls = [
            "nvmf_create_transport -t TCP".to_string(),
            format!("nvmf_create_subsystem {NQN} -a -s PEER"),
            format!("nvmf_subsystem_add_ns {NQN} Null0"),
            "bdev_malloc_create -b Malloc0 64 4096".to_string(),
            format!("nvmf_subsystem_add_ns {NQN} Malloc0"),
            format!("nvmf_subsystem_add_listener {NQN} -t tcp -f ipv4 -a 127.0.0.1 -s {port}"),
        ];
        let url = format!("nvme://127.0.0.1:{port}/{NQN}/1");
        spawn_spdk(net, dir, "nvmf_tgt", "512", &calls, url)
    }

    /// SPDK's iSCSI target, with queues of 128 and a null volume of 64 GiB as LUN 0.
    ///
    /// Errors: as [`Peer::spdk_nvmf`].
    pub fn spdk_iscsi(net: &Net, dir: &Path, port: u16) -> Result<Peer, String> {
        let calls = [
            format!("iscsi_create_portal_group 1 127.0.0.1:{port}"),
            "iscsi_create_initiator_group 1 ANY ANY".to_string(),
            "iscsi_create_target_node peer peer Null0:0 1:1 128 -d".to_string(),
        ];
        let url = format!("iscsi://127.0.0.1:{port}/iqn.2016-06.io.spdk:peer/0");
        spawn_spdk(net, dir, "iscsi_tgt", "4096", &calls, url)
    }

    /// tgt with a null volume as LUN 1. `dir`: for its log and socket.
    ///
    /// Errors: as [`Peer::spdk_nvmf`].
    pub fn tgt(net: &Net, dir: &Path, port: u16) -> Result<Peer, String> {
        let there = net.try_run("command -v tgtd && command -v tgtadm", PATIENCE);
        if !there.is_ok_and(|done| done.code == 0) {
            return Err("there is no tgtd on the PATH".into());
        }
        let log = log(dir, "tgtd")?;
        let portal = format!("portal=127.0.0.1:{port}");
        let mut command = net.command("tgtd");
        // A control port of its own: another tgtd of this machine is left alone.
        command.args(["-f", "-C", "77", "--iscsi", &portal]).env("TGT_IPC_SOCKET", dir.join("tgt"));
        command.stdin(Stdio::null()).stdout(log.1).stderr(log.2);
        let child = command.spawn().map_err(|e| format!("nsenter does not run: {e}"))?;
        let url = format!("iscsi://127.0.0.1:{port}/{IQN}/1");
        let mut peer = Peer { name: "tgt", url, child, spins: false };
        let admin = |words: &str| {
            let mut command = net.command("tgtadm");
            command.args(["-C", "77", "--lld", "iscsi"]).args(words.split_whitespace());
            output(command.env("TGT_IPC_SOCKET", dir.join("tgt")))
        };
        peer.wait(&log.0, || admin("--op show --mode sys").is_ok())?;
        admin(&format!("--op new --mode target --tid 1 -T {IQN}"))?;
        admin("--op new --mode logicalunit --tid 1 --lun 1 -b null --bstype null --blocksize 4096")?;
        for (name, value) in [
            ("MaxRecvDataSegmentLength", "262144"),
            ("FirstBurstLength", "262144"),
            ("ImmediateData", "Yes"),
            ("InitialR2T", "No"),
            ("MaxQueueCmd", "512"),
        ] {
            admin(&format!("--op update --mode target --tid 1 --name {name} --value {value}"))?;
        }
        admin("--op bind --mode target --tid 1 -I ALL")?;
        Ok(peer)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets one that polls run, or keeps it from its core while somebody else is measured there.
    pub fn run(&self, run: bool) {
        if self.spins {
            let signal = if run { "CONT" } else { "STOP" };
            lab::sh(&format!("kill -{signal} {}", self.pid())).expect("kill");
        }
    }

    /// Waits until it is `up`.
    ///
    /// Errors: it ends first, or takes too long, with the end of its log.
    fn wait(&mut self, log: &Path, mut up: impl FnMut() -> bool) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while !up() {
            let ended = self.child.try_wait().map_err(|e| e.to_string())?;
            if ended.is_some() || Instant::now() > deadline {
                let text = fs::read_to_string(log).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                let last = lines[lines.len().saturating_sub(5)..].join("\n");
                let how = ended.map_or("does not come up".into(), |status| format!("ended with {status}"));
                return Err(format!("{} {how}: {last}", self.name));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // tgtd does not end for a SIGTERM.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Starts one of SPDK's targets on the target's core, with `mib` of memory, and carries out `calls` of its rpc.py.
fn spawn_spdk(
    net: &Net,
    dir: &Path,
    program: &str,
    mib: &str,
    calls: &[String],
    url: String,
) -> Result<Peer, String> {
    let root = spdk(program)?;
    let log = log(dir, program)?;
    let socket = dir.join(format!("{program}.sock"));
    let mut command = net.command(root.join("build/bin").join(program));
    // Memory of its own instead of huge pages, which need a machine that was prepared.
    command.args(["--no-huge", "-s", mib, "--iova-mode=va", "-m", "0x1", "--disable-cpumask-locks", "-r"]);
    command.arg(&socket).stdin(Stdio::null()).stdout(log.1).stderr(log.2);
    let child = command.spawn().map_err(|e| format!("nsenter does not run: {e}"))?;
    let mut peer = Peer { name: "SPDK", url, child, spins: true };
    peer.wait(&log.0, || socket.exists())?;
    let mut rpc = Command::new(root.join("scripts/rpc.py"));
    rpc.args(["-t", "30", "-s"]).arg(&socket);
    // Its interpreter takes longer to start than a call to be carried out: all of them at once.
    let calls = format!("bdev_null_create Null0 65536 4096\n{}\n", calls.join("\n"));
    let mut child = rpc
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{} does not run: {e}", root.join("scripts/rpc.py").display()))?;
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(calls.as_bytes()));
    let done = child.wait_with_output().map_err(|e| e.to_string())?;
    if !done.status.success() || !matches!(written, Some(Ok(()))) {
        return Err(format!("rpc.py: {}", String::from_utf8_lossy(&done.stderr).trim()));
    }
    Ok(peer)
}

/// A log for a program: its path, and two handles.
fn log(dir: &Path, program: &str) -> Result<(PathBuf, File, File), String> {
    let path = dir.join(format!("{program}.log"));
    let open = || File::options().create(true).append(true).open(&path).map_err(|e| format!("{e}"));
    Ok((path.clone(), open()?, open()?))
}

/// Runs a program to its end.
///
/// Errors: it does not run or fails, with what it said.
fn output(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output().map_err(|e| format!("{name} does not run: {e}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    if done.status.success() { Ok(()) } else { Err(format!("{name}: {}", said.trim())) }
}
