//! A power cut of drives with volatile caches. The daemon runs in a guest on SCSI disks of QEMU, each with a log of
//! everything that was written and flushed (`blklogwrites`); its state directory lies on an ext4 on one more of them. At some
//! moments the guest is stopped where it stands, and what hosts know to be durable is noted. Afterwards the drives are made
//! again as a power cut at each of these moments could have left them, without what was not flushed or with a random part of
//! it, and a daemon on this machine assembles the pool from them.

use super::log::{Left, Replay, mix};
use super::writer::{Known, Writer};
use super::{Rows, iscsi};
use crate::load;
use crate::{Head, binary, legs, until};
use lab::{Net, Vm};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// The legs of two mirrors, and the drive of the state directory.
const DRIVES: [&str; 4] = ["a", "b", "c", "d"];
const STATE: &str = "state.img";
const DRIVE_BYTES: u64 = 96 << 20;
const BLOCK: usize = 4096;

/// Discards and WRITE SAME are turned off: QEMU 7.2 garbles its log when a command for zeroes meets another one.
const SET_UP: &str = "set -e
    for d in /sys/class/scsi_disk/*; do echo full >$d/provisioning_mode; echo 0 >$d/max_write_same_blocks; done
    disk() { echo /dev/$(ls /sys/bus/scsi/devices/*:$1/block); }
    mkfs.ext4 -q $(disk 4); mkdir -p /var/lib/millrace /run/millrace; mount $(disk 4) /var/lib/millrace
    setsid /usr/bin/millrace serve >>/tmp/log 2>&1 </dev/null &
    until millrace status >/dev/null 2>&1; do sleep 0.2; done
    millrace pool create tank mirror $(disk 0) $(disk 1) mirror $(disk 2) $(disk 3)
    millrace portal add nvme 0.0.0.0:4420; millrace portal add iscsi 0.0.0.0:3260
    millrace volume create tank/v --size 48M; millrace volume create tank/w --size 24M";

/// So many power cuts, each twice: with nothing left of what was not flushed, and with some of it.
pub fn cuts(count: u32) -> Rows {
    let folder = Head::prepare("soak-cut");
    let dir = &folder.dir;
    let moments = record(dir, count);
    let images = || DRIVES.into_iter().chain([STATE]);
    let mut replays: Vec<Replay> = images()
        .map(|name| {
            Replay::new(&log_of(dir, name), dir.join(format!("{name}.base")), DRIVE_BYTES).expect("a log")
        })
        .collect();
    let (mut lost, mut blocks, mut degraded) = (0, 0, 0);
    for (i, moment) in moments.iter().enumerate() {
        for (kind, left) in ["all", "some"].into_iter().zip([Left::Nothing, Left::Some(mix(i as u64))]) {
            let mut head = Head::prepare(&format!("soak-cut-{i}-{kind}"));
            for ((replay, end), name) in replays.iter_mut().zip(&moment.logged).zip(images()) {
                lost += replay.cut(*end, left, &head.dir.join(name)).expect("a replay");
            }
            blocks += moment.check(&mut head, i);
            degraded += u32::from(moment.degraded);
        }
    }
    vec![
        ("power cuts", format!("{}, {degraded} with a leg out or being copied", 2 * moments.len())),
        ("writes that the drives forgot", lost.to_string()),
        ("lost or wrong", format!("0 of {blocks} blocks known to be durable")),
        ("legs", "equal after each, and the same is read from either".into()),
    ]
}

fn log_of(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.log"))
}

/// The daemon in its guest.
struct Guest {
    net: Net,
    vm: Vm,
    nqn: String,
    iqn: String,
}

impl Guest {
    fn start(dir: &Path) -> Guest {
        let net = Net::new().expect("a network");
        let mut builder = Vm::builder("cut1").cpus(2).mem(1536);
        for name in DRIVES.into_iter().chain([STATE]) {
            fs::File::create(dir.join(name)).and_then(|f| f.set_len(DRIVE_BYTES)).expect("a drive");
            fs::File::create(log_of(dir, name)).expect("a log");
            builder = builder.disk_logged(dir.join(name), log_of(dir, name));
        }
        builder = builder.forward("10.91.0.1:4420", 4420).forward("10.91.0.1:3260", 3260);
        let vm = builder.start(&net).expect("a guest");
        vm.push(binary(), "/usr/bin/millrace").expect("push");
        vm.run(SET_UP, 300).expect("a pool in the guest");
        for command in load::allow(&["v", "w"]) {
            vm.run(&format!("millrace {command}"), 60).expect("a host");
        }
        let mut guest = Guest { net, vm, nqn: String::new(), iqn: String::new() };
        let system = guest.status()["system"].clone();
        let name = |key: &str| system[key].as_str().expect("a name").to_owned();
        guest.nqn = name("nqn");
        guest.iqn = name("iqn");
        guest
    }

    fn status(&self) -> Value {
        let text = self.vm.run("millrace status --json", 60).expect("status").stdout;
        serde_json::from_str(&text).expect("JSON")
    }

    fn leg(&self, i: usize) -> String {
        let leg = &self.status()["pools"][0]["arrays"][i / 2]["legs"][i % 2];
        leg["path"].as_str().expect("a path").to_owned()
    }

    fn run(&self, script: &str) {
        self.net.run(script, Duration::from_secs(180)).unwrap_or_else(|e| panic!("{e:#}"));
    }

    /// Another content for `w`, by NVMe/TCP and all of it with FUA; kept in `file`.
    fn fill_w(&self, file: &Path) {
        let nsid = self.status()["volumes"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|v| v["name"] == "tank/w")
            .map(|v| v["nsid"].clone());
        let url = format!("nvme://10.91.0.1:4420/{}/{}", self.nqn, nsid.expect("the volume w"));
        self.run(&format!(
            "{} bench {} --force --rw randwrite --bs 4k --qd 8 --seconds 2 --fua --verify --read-back --patience 60",
            binary().display(),
            load::names(&url)
        ));
        self.run(&format!(
            "qemu-img convert -O raw '{}' {}",
            iscsi("10.91.0.1", &self.iqn, 1),
            file.display()
        ));
    }

    /// Stops the guest where it stands, and lets it go on when what is to be noted is noted.
    fn stopped<T>(&self, note: impl FnOnce() -> T) -> T {
        self.vm.freeze(true).expect("kill -STOP");
        // A write to a log that the kernel has begun is carried out.
        sleep(Duration::from_millis(200));
        let noted = note();
        self.vm.freeze(false).expect("kill -CONT");
        noted
    }
}

/// A moment at which the power goes.
struct Moment {
    /// How long the drives' logs were.
    logged: Vec<u64>,
    /// What the writers of `v` know.
    known: Vec<Known>,
    /// What `w` holds.
    rest: PathBuf,
    degraded: bool,
}

/// Lets hosts write, and notes moments.
fn record(dir: &Path, count: u32) -> Vec<Moment> {
    let guest = Guest::start(dir);
    let image = iscsi("10.91.0.1", &guest.iqn, 0);
    let mut writers: Vec<Writer> =
        (0..4).map(|i| Writer::start(&guest.net, &image, i * (8 << 20), i == 0)).collect();
    let (mut rest, mut out) = (PathBuf::new(), None);
    let mut moments = Vec::new();
    for i in 0..count {
        if i.is_multiple_of(4) {
            rest = dir.join(format!("w-{i}"));
            guest.fill_w(&rest);
        }
        // A leg is out, or being copied, at some of them.
        if let Some(leg) = out.take_if(|_| i % 4 == 3) {
            guest.vm.run(&format!("millrace drive return {leg}"), 60).expect("return");
        } else if i % 4 == 1 {
            let leg = guest.leg(i as usize / 4 % 4);
            guest.vm.run(&format!("millrace drive fail {leg}"), 60).expect("fail");
            out = Some(leg);
        }
        sleep(Duration::from_millis(500 + mix(u64::from(i)) % 1500));
        let degraded = guest.status()["health"] != "optimal";
        moments.push(guest.stopped(|| {
            Moment {
                logged: DRIVES
                    .into_iter()
                    .chain([STATE])
                    .map(|name| fs::metadata(log_of(dir, name)).expect("a log").len())
                    .collect(),
                known: writers.iter().map(Writer::known).collect(),
                rest: rest.clone(),
                degraded,
            }
        }));
    }
    writers.iter_mut().for_each(Writer::must_run);
    assert_eq!(guest.vm.warnings().expect("dmesg"), Vec::<String>::new());
    moments
}

impl Moment {
    /// A daemon finds its state and its pool as the power cut left them, and everything durable is there and stays the same
    /// whichever leg is lost next. Returns the blocks looked at.
    fn check(&self, head: &mut Head, i: usize) -> u64 {
        let at = head.dir.display().to_string();
        // The journal is played back, as a mount would, and the files are taken out. 1: errors were corrected.
        let extract = format!(
            "e2fsck -fy {at}/{STATE} >{at}/fsck 2>&1; [ $? -le 1 ] || {{ cat {at}/fsck >&2; exit 1; }}
            debugfs -R 'rdump / {at}/state' {at}/{STATE} 2>/dev/null; rm -rf {at}/state/lost+found {at}/state/lock"
        );
        lab::sh(&extract).expect("the state directory");
        head.start();
        let drives: String = DRIVES.map(|name| format!(" --drive {at}/{name}")).concat();
        head.cli(&format!("pool import tank{drives}"));
        let read = |lun: u64, name: &str| -> Vec<u8> {
            let file = head.dir.join(name);
            let image = iscsi("127.0.0.1", &head.iqn(), lun);
            head.run(&format!("qemu-img convert -O raw '{image}' {}", file.display()), 60);
            fs::read(file).expect("what was read")
        };
        let (v, w) = (read(0, "v.1"), read(1, "w.1"));
        let blocks: u64 = self.known.iter().map(|known| known.check(&v, BLOCK)).sum();
        let rest = fs::read(&self.rest).expect("what w held");
        if let Some(at) = (0..rest.len()).find(|at| rest[*at] != w[*at]) {
            panic!("power cut {i}: byte {at} of tank/w is not what it was");
        }
        // Whichever is lost next; refused where it is the only one.
        for name in if i.is_multiple_of(2) { ["a", "c"] } else { ["b", "d"] } {
            head.try_cli(&format!("drive fail {at}/{name}"));
        }
        assert!(read(0, "v.2") == v && read(1, "w.2") == w, "power cut {i}: what was read has changed");
        for name in DRIVES {
            head.try_cli(&format!("drive return {at}/{name}"));
        }
        until("the pool is whole", 120, || head.health() == "optimal");
        let mirrors = legs::mirrors(head);
        head.stop();
        legs::compare(&mirrors);
        blocks + (rest.len() / BLOCK) as u64
    }
}
