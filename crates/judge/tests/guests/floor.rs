//! The daemon itself inside a machine with the oldest kernel that it supports (6.1) and NVMe drives.

use judge::{Head, binary, fio_verify, until};
use lab::{Net, Vm, skipped};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SERVE: &str = "mkdir -p /var/lib/millrace /run/millrace; \
    setsid /usr/bin/millrace serve >>/tmp/log 2>&1 </dev/null & \
    for i in $(seq 400); do millrace status >/dev/null 2>&1 && exit 0; sleep 0.2; done; cat /tmp/log; exit 1";
/// How long the daemon may take to its start in a guest on a busy machine, s.
const START: u64 = 300;

/// A guest with the binary in it and these drives, whose ports 4420 and 3260 are 10.91.0.1's.
fn head_in_a_guest(net: &Net, drives: &[PathBuf]) -> Vm {
    let mut builder = Vm::builder("head1").cpus(2).mem(1536);
    for drive in drives {
        builder = builder.nvme(drive);
    }
    builder = builder.forward("10.91.0.1:4420", 4420).forward("10.91.0.1:3260", 3260);
    let vm = builder.start(net).expect("a guest");
    vm.push(binary(), "/usr/bin/millrace").expect("push");
    vm.run(SERVE, START).expect("the daemon starts on Linux 6.1");
    vm
}

#[test]
fn on_linux_6_1_with_nvme_drives_a_volume_survives_a_power_cut() {
    if skipped("the daemon on Linux 6.1") {
        return;
    }
    let Head { dir, .. } = &Head::prepare("floor");
    let drives: Vec<PathBuf> = ["a", "b", "c", "d"].iter().map(|name| dir.join(name)).collect();
    for drive in &drives {
        make(drive, 96 << 20);
    }
    let net = Net::new().expect("a network");
    let vm = head_in_a_guest(&net, &drives);

    // A drive that carries something is refused by name.
    vm.run("mkfs.ext4 -q -F /dev/nvme3n1", 180).expect("mkfs");
    let refused =
        vm.try_run("millrace pool create tank mirror /dev/nvme2n1 /dev/nvme3n1", 60).expect("the CLI");
    assert!(
        refused.code != 0
            && refused.stderr.contains("/dev/nvme3n1")
            && refused.stderr.contains("file system"),
        "{refused:?}"
    );
    vm.run("millrace pool create tank mirror /dev/nvme0n1 /dev/nvme1n1", 60).expect("pool create");
    let taken = vm.try_run("millrace pool create two mirror /dev/nvme0n1 /dev/nvme2n1", 60).expect("the CLI");
    assert!(taken.code != 0 && taken.stderr.contains("/dev/nvme0n1"), "{taken:?}");

    let set_up = format!(
        "set -e
        millrace volume create tank/v --size 48M --block 512
        millrace host add me --nqn {} --iqn iqn.2026-01.org.millrace.judge:floor
        millrace export tank/v --host me
        millrace portal add nvme 0.0.0.0:4420; millrace portal add iscsi 0.0.0.0:3260
        nvme connect-all -t tcp -a 127.0.0.1 -s 4420; nvme list-subsys | grep -q 127.0.0.1",
        vm.nqn()
    );
    vm.run(&set_up, 120).expect("a volume for this host itself");
    let disk =
        vm.run("grep -l Millrace /sys/class/nvme/*/model | head -1 | xargs dirname | xargs basename", 30);
    let disk = format!("/dev/{}n1", disk.expect("a disk of ours").text());
    vm.disk(&disk).expect("the volume");
    vm.run(&format!("mkfs.ext4 -q -F {disk} && mkdir -p /t && mount {disk} /t"), 120).expect("mount");
    vm.run(&fio_verify("/t/v", 4), 240).expect("verified I/O");
    vm.run("sync; umount /t; nvme disconnect-all", 60).expect("umount");

    // From outside by iSCSI; then the power goes, without a good-bye.
    let status: serde_json::Value =
        serde_json::from_str(&vm.run("millrace status --json", 30).expect("status").stdout).expect("JSON");
    let iqn = status["system"]["iqn"].as_str().expect("an IQN").to_owned();
    let io = |commands: &str| {
        let image = format!(
            "json:{{\"driver\":\"raw\",\"file\":{{\"driver\":\"iscsi\",\"transport\":\"tcp\",\"portal\":\"10.91.0.1:3260\",\
             \"target\":\"{iqn}\",\"lun\":{},\"initiator-name\":\"iqn.2026-01.org.millrace.judge:floor\"}}}}",
            status["hosts"][0]["exports"][0]["lun"]
        );
        let said = net
            .run(&format!("qemu-io -t none {commands} '{image}' 2>&1"), Duration::from_secs(120))
            .expect("qemu-io");
        assert!(!said.stdout.contains("failed"), "{}", said.stdout);
    };
    io("-c 'write -P 0x5a 1M 8M' -c flush -c 'read -P 0x5a 1M 8M'");
    vm.run("cp -r /var/lib/millrace /tmp/state && tar -C /tmp -cf /tmp/state.tar state", 30).expect("tar");
    vm.pull("/tmp/state.tar", &dir.join("state.tar")).expect("pull");
    assert_eq!(vm.warnings().expect("dmesg"), Vec::<String>::new());
    vm.kill();
    drop(vm);

    // The state directory was in memory: it comes back as it was, as from a disk.
    let mut builder = Vm::builder("head1").cpus(2).mem(1536);
    for drive in &drives {
        builder = builder.nvme(drive);
    }
    let vm = builder.forward("10.91.0.1:3260", 3260).start(&net).expect("a guest again");
    vm.push(binary(), "/usr/bin/millrace").expect("push");
    vm.push(&dir.join("state.tar"), "/tmp/state.tar").expect("push");
    vm.run("mkdir -p /var/lib && tar -C /tmp -xf /tmp/state.tar && mv /tmp/state /var/lib/millrace", 30)
        .expect("tar");
    vm.run(SERVE, START).expect("the daemon starts");
    until("the pool is back", START, || {
        vm.run("millrace volume ls", 30).is_ok_and(|o| o.stdout.contains("tank/v"))
    });
    io("-c 'read -P 0x5a 1M 8M'");

    // A file system that is full under a file drive: an error for the write, and life goes on.
    vm.run("mkdir -p /small && mkfs.ext4 -q -F -m 0 /dev/nvme2n1 && mount /dev/nvme2n1 /small && truncate -s 400M /small/file", 120)
        .expect("a small file system");
    let full = vm.run(
        "set -e
        millrace pool create small single /small/file
        millrace volume create small/f --size 256M
        millrace export small/f --host me
        nvme connect-all -t tcp -a 127.0.0.1 -s 4420 || { millrace portal add nvme 0.0.0.0:4420 || true; nvme connect-all -t tcp -a 127.0.0.1 -s 4420; }
        until [ -n \"$disk\" ]; do
            sleep 0.1
            disk=$(lsblk -dnbo NAME,SIZE | awk '$2 == 268435456 {print $1; exit}')
        done
        ! dd if=/dev/urandom of=/dev/$disk bs=1M count=200 oflag=direct conv=fsync
        millrace status",
        240,
    );
    full.expect("a full disk is an error for the host, not the end of the daemon");
    io("-c 'write -P 0x66 1M 1M' -c flush -c 'read -P 0x66 1M 1M' -c 'read -P 0x5a 2M 7M'");
    assert_eq!(vm.warnings().expect("dmesg"), Vec::<String>::new());
}

fn make(file: &Path, bytes: u64) {
    std::fs::File::create(file).and_then(|f| f.set_len(bytes)).expect("a drive file");
}
