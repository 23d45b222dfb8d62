//! A real kernel as host, by both protocols at once, while the daemon is killed, legs come and go, and the host is reset.

use super::kills::give_back;
use super::{Rows, legs_equal};
use crate::{Head, fio_verify, paths};
use lab::{Job, Vm};
use std::thread::sleep;
use std::time::Duration;

/// How long a load lasts; then everything was read back, and the file systems are checked.
const LOAD_SECONDS: u32 = 60;
/// Every third load ends with the host instead, after so many kills of the daemon.
const KILLS_BEFORE_RESET: u32 = 3;

/// A host with a disk by each protocol.
struct Host {
    vm: Vm,
    disks: [String; 2],
}

/// So many kills; sometimes the host loses its power too.
pub fn guest(rounds: u32) -> Rows {
    let mut head = Head::with_tank("soak-guest");
    let (mut done, mut out, mut resets, mut written) = (0, 0, 0, 0);
    let host = boot(&head);
    head.cli("volume create tank/n --size 64M");
    head.cli("volume create tank/i --size 64M");
    head.cli(&format!("host add guest --nqn {} --iqn {}", host.nqn(), host.iqn()));
    head.cli("export tank/n --host guest");
    head.cli("export tank/i --host guest");
    let mut host = connect(&head, host);
    for disk in &host.disks {
        host.vm.run(&format!("mkfs.ext4 -q -F {disk}"), 180).expect("ext4");
    }
    let (mut turn, mut failed) = (0, None);
    while done < rounds {
        let reset = turn % 3 == 2;
        let seconds = (10 * (rounds - done)).min(LOAD_SECONDS);
        let loads = start_loads(&host, seconds);
        // A guest on a busy machine takes its time to begin.
        paths::wait_for_load(&["nvme", "iscsi"], || paths::commands(&head.json("status"), "guest"));
        let mut kills = 0;
        while done < rounds && !loads.iter().any(Job::done) && !(reset && kills == KILLS_BEFORE_RESET) {
            sleep(Duration::from_millis(u64::from(done * 701 % 3000) + 1500));
            if done % 3 == 1 {
                let drive = head.drive(["a", "b", "c", "d"][done as usize / 3 % 4]);
                if head.try_cli(&format!("drive fail {drive}")).code == 0 {
                    out += 1;
                    failed = Some(drive);
                }
                sleep(Duration::from_secs(1));
            }
            head.kill();
            sleep(Duration::from_millis(500));
            head.start();
            give_back(&head, &mut failed);
            done += 1;
            kills += 1;
        }
        assert!(kills > 0, "a load was over before the first kill");
        if reset {
            host.vm.kill();
            drop(loads);
            resets += 1;
            host = connect(&head, boot(&head));
        } else {
            written += finish(&host, loads);
        }
        check(&host);
        turn += 1;
    }
    assert_eq!(host.vm.warnings().expect("dmesg"), Vec::<String>::new());
    host.vm.kill();
    let compared = legs_equal(&mut head);
    vec![
        ("kills", format!("{done}, {out} with a leg out; the host was reset {resets} times")),
        ("verified by fio on ext4", format!("{written} loads without an error")),
        ("file systems", "clean after each load and each reset".into()),
        ("legs", format!("equal: {compared} MiB of mirrors by scrub and by reading the files")),
    ]
}

fn boot(head: &Head) -> Vm {
    Vm::builder("soak1").cpus(2).mem(1024).start(&head.net).expect("a guest")
}

/// Logs in by both protocols. Hosts wait for the array as long as it takes.
fn connect(head: &Head, vm: Vm) -> Host {
    let (nqn, iqn) = (head.nqn(), head.iqn());
    let nvme = format!(
        "nvme connect -t tcp -a 10.91.0.1 -s 4420 -n {nqn} --reconnect-delay=1 --keep-alive-tmo=5 --ctrl-loss-tmo=-1"
    );
    let iscsi = format!(
        "iscsiadm -m discovery -t sendtargets -p 10.91.0.1 && iscsiadm -m node -T {iqn} -p 10.91.0.1 --login"
    );
    vm.run(&format!("{nvme} && {iscsi}"), 120).expect("both logins");
    // Each protocol shows both volumes: each is used by one of them.
    let status = head.json("status");
    let field = |volume: &str, key: &str| -> String {
        let all = status["volumes"].as_array().into_iter().flatten();
        let one = all.filter(|v| v["name"] == volume).map(|v| v[key].to_string()).next();
        one.expect("the volume").trim_matches('"').to_owned()
    };
    let lun =
        status["hosts"][0]["exports"].as_array().into_iter().flatten().find(|e| e["volume"] == "tank/i");
    let lun = lun.expect("the export")["lun"].clone();
    let find = |link: String| vm.disk(&link).expect("a disk");
    let disks = [
        find(format!("/dev/disk/by-id/nvme-uuid.{}", field("tank/n", "uuid"))),
        find(format!("/dev/disk/by-path/ip-10.91.0.1:3260-*-lun-{lun}")),
    ];
    Host { vm, disks }
}

/// Verified I/O on a file system on each disk.
fn start_loads(host: &Host, seconds: u32) -> Vec<Job> {
    let load = |(i, disk): (usize, &String)| {
        let fio = fio_verify(&format!("/t{i}/v"), 16);
        let time = format!("--time_based --runtime={seconds} --fsync=64");
        host.vm.spawn(&format!("mkdir -p /t{i} && mount {disk} /t{i} && {fio} {time}")).expect("fio")
    };
    host.disks.iter().enumerate().map(load).collect()
}

/// Waits for the loads. Returns how many there were.
fn finish(host: &Host, loads: Vec<Job>) -> u32 {
    let count = loads.len() as u32;
    for load in loads {
        let done = load.wait(Duration::from_secs(300)).and_then(|o| o.good("fio over crashes of the daemon"));
        done.expect("no error of fio");
    }
    host.vm.run("sync; umount /t0 /t1", 120).expect("umount");
    count
}

/// The journal is played back by a mount; then both file systems are clean.
fn check(host: &Host) {
    for disk in &host.disks {
        let script = format!("mkdir -p /t && mount {disk} /t && umount /t && fsck.ext4 -f -n {disk}");
        host.vm.run(&script, 240).expect("a clean ext4");
    }
}
