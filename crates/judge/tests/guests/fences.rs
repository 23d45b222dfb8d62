//! Fences at a real target: LIO by iSCSI, with two heads that are sessions with names of their own, in one guest.
//!
//! ```text
//!   a: /dev/sdX ─┐
//!                ├─ LIO, one unit ─ dm-delay (a write takes seconds) ─ /dev/ram0, where it is seen to land
//!   b: /dev/sdY ─┘
//! ```

use judge::{Head, fence, until};
use lab::{Job, Kernel, Net, Vm, skipped};
use std::collections::BTreeMap;
use std::path::Path;

/// How long a write takes, ms.
const DELAY_MS: u64 = 3000;
/// Where each head writes: the first block of 4 KiB, and how many.
const A: (u64, u64) = (6144, 1024);
const B: (u64, u64) = (2048, 1024);

const TARGET: &str = "iqn.2026-01.org.millrace.judge:fence";
const HEAD: &str = "iqn.2026-01.org.millrace.judge:";

/// The unit has a serial number and a place for what outlives a power cut: without them LIO registers nobody.
const SET_UP: &str = r#"set -e
    modprobe -a target_core_mod iscsi_target_mod target_core_iblock dm-delay
    modprobe brd rd_nr=3 rd_size=65536
    mkdir -p /var/target/pr
    dmsetup create slow --table "0 131072 delay /dev/ram0 0 0 /dev/ram0 0 DELAY"
    dmsetup create line --table "0 32768 linear /dev/ram2 0"
    unit=/sys/kernel/config/target/core/iblock_0/slow
    mkdir -p $unit
    echo udev_path=/dev/mapper/slow >$unit/control
    echo 6d696c6c-7261-4365-8000-000000000001 >$unit/wwn/vpd_unit_serial
    echo 1 >$unit/enable
    portal=/sys/kernel/config/target/iscsi/TARGET/tpgt_1
    mkdir -p $portal/np/127.0.0.1:3260 $portal/lun/lun_0
    echo 0 >$portal/attrib/authentication
    ln -s $unit $portal/lun/lun_0/slow
    for head in a b; do
        mkdir -p $portal/acls/HEAD$head/lun_0
        ln -s $portal/lun/lun_0 $portal/acls/HEAD$head/lun_0/slow
    done
    echo 1 >$portal/enable
    for head in a b; do
        iscsiadm -m iface -I $head -o new
        iscsiadm -m iface -I $head -o update -n iface.transport_name -v tcp
        iscsiadm -m iface -I $head -o update -n iface.initiatorname -v HEAD$head
        session="iscsiadm -m node -T TARGET -p 127.0.0.1:3260 -I $head"
        $session -o new
        $session -o update -n 'node.conn[0].timeo.noop_out_interval' -v 0
        $session --login
    done
    for session in /sys/class/iscsi_session/*; do
        until ls $session/device/target*/*/block/* >/dev/null 2>&1; do sleep 0.1; done
    done
    udevadm settle
    # It would read each drive that somebody has written to, by the path of who is kept out, too.
    udevadm control --exit
    for session in /sys/class/iscsi_session/*; do
        for disk in $session/device/target*/*/block/*; do
            echo "path $(cat $session/initiatorname) /dev/${disk##*/}"
        done
    done
"#;

/// A guest with the target, and the drive by the path of each head.
struct Lab {
    vm: Vm,
    a: String,
    b: String,
}

/// What a run of `fence` said: the words behind each step, in order.
struct Said(Vec<(String, String)>);

impl Said {
    fn of(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| {
            let (_, rest) = line.split_once(' ')?;
            let (step, said) = rest.split_once(' ')?;
            Some((step.to_owned(), said.to_owned()))
        });
        Self(lines.collect())
    }
    /// What the `nth` step of this name said.
    fn nth(&self, step: &str, nth: usize) -> &str {
        let found = self.0.iter().filter(|(name, _)| name == step).nth(nth);
        &found.unwrap_or_else(|| panic!("no {step} number {nth} in {:?}", self.0)).1
    }
    fn step(&self, step: &str) -> &str {
        self.nth(step, 0)
    }
    /// How long it took, ms.
    fn took(&self, step: &str, nth: usize) -> u64 {
        self.number(self.nth(step, nth), "took")
    }
    fn number(&self, said: &str, word: &str) -> u64 {
        let found = said.split(' ').find_map(|w| w.strip_prefix(word)?.strip_prefix('='));
        found.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("no {word} in '{said}'"))
    }
    /// How many writes of the load ended in each error.
    fn bad(&self) -> BTreeMap<String, u64> {
        let said = self.step("settle");
        let list = said.split(' ').find_map(|w| w.strip_prefix("bad=")).expect("a tally");
        let each = list.split(',').filter_map(|w| w.split_once(':'));
        each.map(|(error, n)| (error.into(), n.split('@').next().unwrap_or(n).parse().expect("a count")))
            .collect()
    }
}

impl Lab {
    fn start(kernel: Kernel, net: &Net, spare: &Path) -> Self {
        let vm =
            Vm::builder("fence").kernel(kernel).cpus(1).mem(768).nvme(spare).start(net).expect("a guest");
        vm.push(fence(), "/usr/bin/fence").expect("push");
        let script =
            SET_UP.replace("TARGET", TARGET).replace("HEAD", HEAD).replace("DELAY", &DELAY_MS.to_string());
        let said = vm.run(&script, 180).expect("a target and two sessions").stdout;
        let path = |head: &str| {
            let found = said.lines().find_map(|l| l.strip_prefix(&format!("path {HEAD}{head} ")));
            found.unwrap_or_else(|| panic!("no path of {head}: {said}")).trim().to_owned()
        };
        let (a, b) = (path("a"), path("b"));
        Self { vm, a, b }
    }
    fn spawn(&self, drive: &str, steps: &str) -> Job {
        self.vm.spawn(&format!("fence {drive} {steps}")).expect("fence runs")
    }
    fn end(&self, job: Job) -> Said {
        let done = job.wait(std::time::Duration::from_secs(120)).and_then(|o| o.good("fence"));
        let text = done.expect("fence ends well").stdout;
        eprint!("{text}");
        Said::of(&text)
    }
    fn run(&self, drive: &str, steps: &str) -> Said {
        self.end(self.spawn(drive, steps))
    }
    /// A hash of what the RAM disk holds of the blocks of b.
    fn landed(&self) -> String {
        let (first, blocks) = B;
        let read =
            format!("dd if=/dev/ram0 bs=4k skip={first} count={blocks} iflag=direct 2>/dev/null | md5sum");
        self.vm.run(&read, 60).expect("the RAM disk").text().to_owned()
    }
    /// Once something is there, a hash of the blocks of b, and another once every write of then has landed.
    fn landed_after(&self, file: &str) -> (String, String) {
        until(file, 60, || self.vm.try_run(&format!("[ -e {file} ]"), 30).is_ok_and(|o| o.code == 0));
        let at_once = self.landed();
        std::thread::sleep(std::time::Duration::from_millis(DELAY_MS + 2000));
        (at_once, self.landed())
    }
    fn clean(&self) {
        self.vm.run("rm -f /tmp/*", 30).expect("rm");
        let left = self.run(&self.a, "register=a1 unregister=a1 look");
        let left = left.step("look");
        if !left.contains("keys= ") {
            self.run(&self.b, "register=b1 unregister=b1 look");
        }
        let left = self.run(&self.a, "look");
        assert!(left.step("look").starts_with("ok keys= holder=none"), "{}", left.step("look"));
    }
}

fn load((first, blocks): (u64, u64), depth: u64) -> String {
    format!("load={first},{blocks},{depth}")
}

/// b writes at depth, a does too and shuts b out.
fn shut_out(lab: &Lab, holder: &str) {
    lab.clean();
    let (reserves_a, reserves_b) = match holder {
        "a" => ("reserve=a1", ""),
        _ => ("", "reserve=b1"),
    };
    let b = lab.spawn(
        &lab.b,
        &format!(
            "register=b1 touch=/tmp/b awaited=/tmp/a {reserves_b} {} awaiterror read=0 write=2000 settle look",
            load(B, 16)
        ),
    );
    let a = lab.spawn(
        &lab.a,
        &format!(
            "register=a1 touch=/tmp/a awaited=/tmp/b {reserves_a} {} awaited=/tmp/go limit=30000 shutout=a1,b1 touch=/tmp/shut \
             sleep=1000 settle read=0 look",
            load(A, 4)
        ),
    );
    // All writes begin together, so the second ones are half way then.
    let wait = "until [ -e /tmp/a ] && [ -e /tmp/b ]; do sleep 0.2; done; sleep 4.6; touch /tmp/go";
    lab.vm.run(wait, 120).expect("both write");
    let (at_once, later) = lab.landed_after("/tmp/shut");
    assert_eq!(at_once, later, "{holder} holds: a write of b landed after the fence");
    let (a, b) = (lab.end(a), lab.end(b));
    assert!(
        a.step("shutout").starts_with("ok keys=a1 holder=a1 ExclusiveRegistrants"),
        "{}",
        a.step("shutout")
    );
    // It waited for what b had at the drive.
    assert!(a.took("shutout", 0) > DELAY_MS / 4, "{}", a.step("shutout"));
    assert!(b.number(b.step("settle"), "good") > 0, "b wrote before");
    assert_eq!(b.bad().keys().collect::<Vec<_>>(), ["Fenced"], "{}", b.step("settle"));
    for step in ["read", "write"] {
        assert!(b.step(step).starts_with("error Fenced"), "{step}: {}", b.step(step));
    }
    assert!(
        b.step("look").starts_with("ok keys=a1 holder=a1"),
        "who is kept out may look: {}",
        b.step("look")
    );
    assert!(a.step("read").starts_with("ok"), "{}", a.step("read"));
    println!("{holder} holds: {} / a: {} / b: {}", a.step("shutout"), a.step("settle"), b.step("settle"));
}

/// The test can fail: without the reset b's writes land afterwards.
fn preempt_alone_is_no_fence(lab: &Lab) {
    lab.clean();
    let b = lab.spawn(&lab.b, &format!("register=b1 touch=/tmp/b {} awaiterror settle", load(B, 16)));
    lab.run(&lab.a, "register=a1 awaited=/tmp/b reserve=a1");
    let preempt = "sg_persist --out --preempt --param-rk=0xa1 --param-sark=0xb1 --prout-type=6";
    lab.vm.run(&format!("sleep 5; {preempt} {} && touch /tmp/shut", lab.a), 60).expect("sg_persist");
    let (at_once, later) = lab.landed_after("/tmp/shut");
    assert_ne!(at_once, later, "nothing of b landed after a preempt alone: this test sees nothing");
    lab.end(b);
}

/// The limit strikes while the drive waits for b's writes; nobody hangs, and later it has been carried out.
fn a_limit_strikes(lab: &Lab) {
    lab.clean();
    let b = lab.spawn(&lab.b, &format!("register=b1 touch=/tmp/b {} awaiterror settle", load(B, 16)));
    let a = lab.run(
        &lab.a,
        "register=a1 awaited=/tmp/b reserve=a1 sleep=4000 limit=300 shutout=a1,b1 limit=20000 look sleep=8000 look \
         shutout=a1,b1 read=0",
    );
    assert!(a.step("shutout").starts_with("error TimedOut"), "{}", a.step("shutout"));
    assert!((300..DELAY_MS).contains(&a.took("shutout", 0)), "{}", a.step("shutout"));
    // At once: in its own time the drive would have answered.
    assert!(a.step("look").starts_with("error TimedOut"), "one is stuck: {}", a.step("look"));
    for (step, nth) in [("look", 1), ("shutout", 1)] {
        assert!(a.nth(step, nth).starts_with("ok keys=a1 holder=a1"), "{step}: {}", a.nth(step, nth));
    }
    assert!(a.step("read").starts_with("ok"));
    assert_eq!(lab.end(b).bad().keys().collect::<Vec<_>>(), ["Fenced"]);
}

/// Keys come and go, and conflicts are reported.
fn keys_and_conflicts(lab: &Lab) {
    lab.clean();
    let a = lab.run(&lab.a, "reserve=a1 register=a1 register=a1 reserve=a1 reserve=a1 register=a2 look");
    assert!(a.step("open").starts_with("ok Scsi "), "{}", a.step("open"));
    assert!(a.step("reserve").starts_with("error NotRegistered"));
    for nth in [0, 1] {
        assert!(a.nth("register", nth).starts_with("ok keys=a1 holder=none"), "{}", a.nth("register", nth));
        assert!(
            a.nth("reserve", nth + 1).starts_with("ok keys=a1 holder=a1"),
            "{}",
            a.nth("reserve", nth + 1)
        );
    }
    // Whoever comes back as another incarnation has its reservation as before.
    assert!(a.step("look").starts_with("ok keys=a2 holder=a2 ExclusiveRegistrants"), "{}", a.step("look"));
    let b = lab.run(
        &lab.b,
        "write=9000 read=9000 reserve=b1 shutout=b1,a2 register=b1 write=9000 reserve=b1 unregister=b1 unregister=b1 read=9000",
    );
    assert!(b.step("write").starts_with("error Fenced") && b.step("read").starts_with("error Fenced"));
    assert!(
        b.step("reserve").starts_with("error NotRegistered")
            && b.step("shutout").starts_with("error NotRegistered")
    );
    assert!(b.nth("write", 1).starts_with("ok"), "anybody may register: {}", b.nth("write", 1));
    assert!(b.nth("reserve", 1).starts_with("error Conflict"), "{}", b.nth("reserve", 1));
    assert!(b.nth("unregister", 1).starts_with("ok keys=a2 holder=a2"));
    assert!(b.nth("read", 1).starts_with("error Fenced"));
    let a = lab.run(&lab.a, "unregister=a2 look");
    assert!(a.step("look").starts_with("ok keys= holder=none"), "{}", a.step("look"));
}

/// What cannot be fenced says why.
fn drives_without(lab: &Lab) {
    for (drive, kind, look) in [
        ("/dev/mapper/line", "None(Mapped)", "error None(Mapped)"),
        ("/dev/ram1", "None(Memory)", "error None(Memory)"),
        ("/dev/nvme0n1p1", "None(Partition)", "error None(Partition)"),
        // QEMU's NVMe drives have no reservations, as they themselves say.
        ("/dev/nvme0n1", "Nvme", "error None(Drive)"),
    ] {
        let said = lab.run(drive, "look register=a1 read=0");
        assert!(said.step("open").starts_with(&format!("ok {kind} ")), "{drive}: {}", said.step("open"));
        assert!(said.step("look").starts_with(look), "{drive}: {}", said.step("look"));
        assert!(said.step("read").starts_with("ok"), "{drive}: {}", said.step("read"));
    }
}

/// A boot record with a partition from sector 2048 on, of 16,384 sectors.
fn one_partition() -> [u8; 512] {
    let mut record = [0; 512];
    record[450] = 0x83;
    record[454..458].copy_from_slice(&2048u32.to_le_bytes());
    record[458..462].copy_from_slice(&16_384u32.to_le_bytes());
    record[510..].copy_from_slice(&[0x55, 0xaa]);
    record
}

#[test]
fn a_head_that_is_shut_out_of_a_scsi_drive_writes_nothing_more() {
    if skipped("fences at LIO") {
        return;
    }
    let Head { dir, .. } = &Head::prepare("fence");
    let spare = dir.join("spare");
    let mut bytes = vec![0; 64 << 20];
    bytes[..512].copy_from_slice(&one_partition());
    std::fs::write(&spare, bytes).expect("a drive file");
    let net = Net::new().expect("a network");
    let lab = Lab::start(Kernel::V6_1, &net, &spare);
    keys_and_conflicts(&lab);
    shut_out(&lab, "a");
    shut_out(&lab, "b");
    preempt_alone_is_no_fence(&lab);
    a_limit_strikes(&lab);
    drives_without(&lab);
    assert_eq!(lab.vm.warnings().expect("dmesg"), Vec::<String>::new());
}
