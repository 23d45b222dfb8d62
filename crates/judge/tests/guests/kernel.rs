//! A stock Linux 6.1 as host of both protocols, and beside 6.12 as host of two heads.

use judge::{Head, Paced, fio_verify, paths, until};
use lab::{Kernel, Net, Vm, skipped};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

fn guest(head: &Head, name: &str) -> Vm {
    Vm::builder(name).cpus(2).mem(1024).start(&head.net).expect("a guest")
}

/// File systems, verified I/O and a check of both, on a disk of the guest.
fn exercise(vm: &Vm, disk: &str) {
    vm.run(&format!("mkfs.ext4 -q -F {disk} && mkdir -p /t && mount {disk} /t"), 180).expect("ext4");
    vm.run(&fio_verify("/t/v", 8), 240).expect("verified I/O on ext4");
    vm.run(&format!("umount /t && fsck.ext4 -f -n {disk}"), 180).expect("a clean ext4");
}

/// How long a guest on a busy machine may take until it has seen something, s; only what hangs takes as long.
const PATIENCE: u64 = 120;

/// Kills the daemon under verified I/O by a protocol, starts it again after a pause and expects no error.
fn survive_a_crash(head: &mut Head, vm: &Vm, protocol: &str, disk: &str) {
    let fio = vm.spawn(&(fio_verify(disk, 48) + " --time_based --runtime=12 --fsync=64")).expect("fio");
    paths::wait_for_load(&[protocol], || paths::commands(&head.json("status"), "guest"));
    assert!(!fio.done(), "fio ended too early: {}", fio.so_far());
    head.kill();
    std::thread::sleep(Duration::from_secs(1));
    assert_ne!(vm.run("echo alive", 60).expect("the guest").text(), "");
    head.start();
    fio.wait(Duration::from_secs(240))
        .and_then(|o| o.good("fio over a crash of the daemon"))
        .expect("no error");
}

#[test]
fn linux_mounts_a_volume_by_nvme_tcp_and_outlives_a_crash_of_the_daemon() {
    if skipped("a Linux host by NVMe/TCP") {
        return;
    }
    let mut head = Head::with_tank("kernel-nvme");
    head.cli("portal add discovery 0.0.0.0:8009");
    let vm = guest(&head, "nvme1");
    head.give("v", "96M", 4096, "guest", &format!("--nqn {}", vm.nqn()));
    let nqn = head.nqn();

    for port in [4420, 8009] {
        let log =
            vm.run(&format!("nvme discover -t tcp -a 10.91.0.1 -s {port}"), 60).expect("discover").stdout;
        assert!(log.contains(&nqn) && log.contains("10.91.0.1"), "port {port}: {log}");
    }
    vm.try_run("nvme connect -t tcp -a 10.91.0.1 -s 4420 -n nqn.2026-01.org.nobody:x", 60)
        .map(|o| assert_ne!(o.code, 0, "a subsystem that is not there"))
        .expect("nvme connect");
    vm.try_run(
        &format!("nvme connect -t tcp -a 10.91.0.1 -s 4420 -n {nqn} -q nqn.2026-01.org.nobody:host"),
        60,
    )
    .map(|o| assert_ne!(o.code, 0, "a host that nobody knows"))
    .expect("nvme connect");

    let connect =
        format!("nvme connect -t tcp -a 10.91.0.1 -s 4420 -n {nqn} --reconnect-delay=1 --keep-alive-tmo=5");
    for digests in ["", " -g -G"] {
        vm.run(&format!("{connect}{digests}"), 60).expect("connect");
        let disk = vm.disk("/dev/disk/by-id/nvme-uuid.*").expect("a disk");
        assert_eq!(vm.run(&format!("blockdev --getsize64 {disk}"), 30).expect("size").text(), "100663296");
        exercise(&vm, &disk);
        if digests.is_empty() {
            controllers_end_each_other(&vm, &connect);
            vm.run(&format!("nvme disconnect -n {nqn}"), 60).expect("disconnect");
        } else {
            vm.run(&format!("blkdiscard {disk} || true; nvme flush {disk} -n 1; nvme id-ctrl {disk} | grep -q 'vwc *: 0x[1-9a-f]'"), 60)
                .expect("a write cache is announced");
            survive_a_crash(&mut head, &vm, "nvme", &disk);
            changes_are_noticed(&head, &vm, &disk);
        }
    }
    vm.run(&format!("nvme disconnect -n {nqn}"), 60).expect("disconnect");
    assert_eq!(vm.warnings().expect("dmesg"), Vec::<String>::new());
}

/// A second controller of the host is ended by way of the first one, and connects anew. No kernel sends that yet by itself.
fn controllers_end_each_other(vm: &Vm, connect: &str) {
    let second = connect.replace("10.91.0.1", "10.91.1.1");
    vm.run(&second, 60).expect("a second controller");
    // Reads a field of Identify Controller.
    let id = "id() { nvme id-ctrl /dev/$1 --raw-binary | od -An -v -t u$3 -j $2 -N $3 | tr -d ' '; }";
    let reset = "reset() { nvme admin-passthru /dev/nvme0 --opcode=0x38 --cdw10=$(($(id $1 78 2) | $(id $1 135 1) << 16)) \
         --cdw12=$(id $1 136 4) --cdw13=$(id $1 140 4) 2>&1; }";
    let with = |script: &str| format!("{id}\n{reset}\n{script}");
    assert_eq!(vm.run(&with("id nvme1 386 2; id nvme1 1807 1"), 30).expect("CQT, CCRL").text(), "5000\n4");
    let before = vm.run(&with("id nvme1 136 8"), 30).expect("CIRN").text().to_owned();
    vm.run(&with("reset nvme1 | grep 'result: *0x0*1$'"), 30).expect("it is over at once");
    until("the second controller is another one", PATIENCE, || {
        vm.try_run(&with("id nvme1 136 8"), 30)
            .is_ok_and(|o| o.code == 0 && o.text() != before && !o.text().is_empty())
    });
    vm.run(&with("reset nvme0 | grep -i 'invalid.field.*0x4002'"), 30).expect("not by itself");
}

/// A namespace that grows, appears and goes is seen by the host without a rescan.
fn changes_are_noticed(head: &Head, vm: &Vm, disk: &str) {
    let sees = |what: &str, test: &str| {
        until(what, PATIENCE, || vm.try_run(test, 30).is_ok_and(|o| o.code == 0));
    };
    head.cli("volume resize tank/v --size 128M");
    sees("the host sees the new size", &format!("[ $(blockdev --getsize64 {disk}) = 134217728 ]"));
    head.cli("volume create tank/w --size 16M");
    head.cli("export tank/w --host guest");
    sees("the host sees the new namespace", "[ $(ls /sys/block | grep -c ^nvme[0-9]*n[0-9]*$) = 2 ]");
    head.cli("unexport tank/w --host guest --yes");
    sees("the host sees that it is gone", "[ $(ls /sys/block | grep -c ^nvme[0-9]*n[0-9]*$) = 1 ]");
}

#[test]
fn linux_mounts_a_volume_by_iscsi_and_outlives_a_crash_of_the_daemon() {
    if skipped("a Linux host by iSCSI") {
        return;
    }
    let mut head = Head::with_tank("kernel-iscsi");
    let vm = guest(&head, "iscsi1");
    let lun = head.give("v", "96M", 512, "guest", &format!("--iqn {}", vm.iqn()));
    let iqn = head.iqn();
    let (secret, mutual) = (head.dir.join("secret"), head.dir.join("mutual"));
    std::fs::write(&secret, "secret-of-the-host").expect("a file");
    std::fs::write(&mutual, "secret-of-the-target").expect("a file");

    let found = vm.run("iscsiadm -m discovery -t sendtargets -p 10.91.0.1", 60).expect("discovery").stdout;
    assert!(found.contains(&iqn) && found.contains("10.91.0.1:3260"), "{found}");
    let (login, logout) = (
        format!("iscsiadm -m node -T {iqn} -p 10.91.0.1 --login"),
        format!("iscsiadm -m node -T {iqn} -p 10.91.0.1 --logout"),
    );
    let link = format!("/dev/disk/by-path/ip-10.91.0.1:3260-*-lun-{lun}");

    vm.run(&login, 60).expect("login");
    let disk = vm.disk(&link).expect("a disk");
    exercise(&vm, &disk);
    vm.run(
        &format!(
            "cd /sys/block/{0}/device; grep -q 'write back' /sys/block/{0}/queue/write_cache",
            &disk[5..]
        ),
        30,
    )
    .expect("a write cache is announced");
    vm.run(&logout, 60).expect("logout");

    // Mutual CHAP, both digests, and data that waits for R2T.
    head.cli(&format!(
        "host set guest --chap-secret-file {} --mutual-secret-file {} --yes",
        secret.display(),
        mutual.display()
    ));
    let refused = vm.try_run(&login, 60).expect("iscsiadm");
    assert_ne!(refused.code, 0, "a login without the secret");
    let settings = [
        ("node.session.auth.authmethod", "CHAP"),
        ("node.session.auth.username", &vm.iqn()),
        ("node.session.auth.password", "secret-of-the-host"),
        ("node.session.auth.username_in", &iqn),
        ("node.session.auth.password_in", "secret-of-the-target"),
        ("node.conn[0].iscsi.HeaderDigest", "CRC32C"),
        ("node.conn[0].iscsi.DataDigest", "CRC32C"),
        ("node.session.iscsi.ImmediateData", "No"),
        ("node.session.iscsi.InitialR2T", "Yes"),
        ("node.conn[0].timeo.noop_out_interval", "2"),
        ("node.conn[0].timeo.noop_out_timeout", "3"),
    ];
    let set: String = settings
        .iter()
        .map(|(name, value)| {
            format!("iscsiadm -m node -T {iqn} -p 10.91.0.1 -o update -n '{name}' -v '{value}' && ")
        })
        .collect();
    vm.run(&format!("{set}{login}"), 120).expect("login with mutual CHAP and digests");
    let disk = vm.disk(&link).expect("a disk");
    exercise(&vm, &disk);
    for page in [
        "sg_inq",
        "sg_vpd -p sv",
        "sg_vpd -p di",
        "sg_vpd -p bl",
        "sg_vpd -p lbpv",
        "sg_readcap -l",
        "sg_modes",
        "sg_luns",
        "sg_turs",
    ] {
        vm.run(&format!("{page} {disk}"), 60).expect(page);
    }
    survive_a_crash(&mut head, &vm, "iscsi", &disk);
    vm.run(&logout, 60).expect("logout");
    assert_eq!(vm.warnings().expect("dmesg"), Vec::<String>::new());
}

/// Two heads over the same files, each with a network of its own, a link between them, and a network of hosts that reaches each by a card.
struct Pair {
    a: Head,
    b: Head,
    hosts: Net,
}

/// Where hosts find each head.
const ADDRESSES: [&str; 2] = ["10.91.0.1", "10.91.1.1"];

fn pair() -> Pair {
    let hosts = Net::new().expect("a network").beside().expect("a network");
    let run = |net: &Net, script: &str| drop(net.run(script, Duration::from_secs(10)).expect("ip"));
    let [a, b] = [0, 1].map(|n| {
        let net = hosts.beside().expect("a network");
        run(
            &hosts,
            &format!(
                "ip link add head{n} type veth peer name eth0 netns {}; ip link set head{n} up; ip addr add 10.91.{n}.2/24 dev head{n}",
                net.id()
            ),
        );
        run(&net, &format!("ip link set eth0 up; ip addr add {}/24 dev eth0", ADDRESSES[n]));
        net
    });
    run(&a, &format!("ip link add lnk type veth peer name lnk netns {}", b.id()));
    for (net, n) in [(&a, 1), (&b, 2)] {
        run(net, &format!("ip link set lnk up; ip addr add 10.9.0.{n}/24 dev lnk"));
    }
    let mut a = Head::within(Arc::new(a), "paths-a");
    let mut b = Head::within(Arc::new(b), "paths-b");
    a.start();
    b.start();
    let [x, y] = ["x", "y"].map(|drive| a.file(drive, 192 << 20));
    a.cli(&format!("pool create tank mirror {x} {y}"));
    a.lead(&b, ["10.9.0.1", "10.9.0.2"]);
    for (protocol, port) in [("nvme", 4420), ("iscsi", 3260)] {
        a.cli(&format!("portal add {protocol} {}:{port}", ADDRESSES[0]));
        a.cli(&format!("portal add {protocol} {}:{port} --head b", ADDRESSES[1]));
    }
    Pair { a, b, hosts }
}

/// A host with a volume by each protocol, set up as `export` says.
struct Host {
    name: &'static str,
    vm: Vm,
    disks: [String; 2],
}

impl Host {
    const VOLUMES: usize = 2;

    fn start(pair: &Pair, name: &'static str, kernel: Kernel) -> Host {
        let vm = Vm::builder(name).kernel(kernel).cpus(1).mem(768).start(&pair.hosts).expect("a guest");
        // The lab's own; Debian installs none.
        vm.run("rm /etc/multipath.conf", 30).expect("rm");
        pair.a.cli(&format!("host add {name} --nqn {} --iqn {}", vm.nqn(), vm.iqn()));
        let volumes = ["n", "i"].map(|volume| format!("tank/{name}-{volume}"));
        let mut exported = Value::Null;
        for volume in &volumes {
            pair.a.cli(&format!("volume create {volume} --size 16M"));
            exported = pair.a.json(&format!("export {volume} --host {name}"));
        }
        let log = vm.run(&format!("nvme discover -t tcp -a {} -s 4420", ADDRESSES[1]), 60).expect("discover");
        for address in ADDRESSES {
            assert!(log.stdout.contains(&format!("traddr:  {address}\n")), "{address}: {}", log.stdout);
        }
        paths::set_up(&vm, &paths::lines(&exported));
        let disks = paths::disks(&vm, &pair.a.json("status"), [&volumes[0], &volumes[1]]);
        let host = Host { name, vm, disks };
        host.has_paths("to both heads", &ADDRESSES, &[]);
        host
    }
    fn has_paths(&self, what: &str, up: &[&str], down: &[&str]) {
        paths::wait(&self.vm, &format!("{}: paths {what}", self.name), up, down, Self::VOLUMES);
    }
    fn load(&self) -> [Paced; 2] {
        [0, 1].map(|i| Paced::start(&self.vm, &self.disks[i], 60))
    }
    fn finish(&self, what: &str, loads: [Paced; 2]) {
        let [nvme, iscsi] = Paced::end(loads, "fio at two heads", || paths::state(&self.vm));
        println!(
            "{}, {what}: longest command NVMe {:.1} s, iSCSI {:.1} s",
            self.name, nvme.stall_s, iscsi.stall_s
        );
    }
}

/// Verified I/O of all hosts until it is ended, which goes to both heads.
fn load_both(leads: &Head, hosts: &[Host]) -> Vec<[Paced; 2]> {
    let loads = hosts.iter().map(Host::load).collect();
    for host in hosts {
        let [nvme, iscsi] = paths::go_to_both(|| paths::commands(&leads.json("status"), host.name));
        println!("{}: head a gets {nvme} % by NVMe, {iscsi} % by iSCSI", host.name);
    }
    loads
}

#[test]
fn linux_6_1_and_6_12_use_both_heads_in_turns_by_the_lines_that_export_prints() {
    if skipped("Linux hosts of two heads") {
        return;
    }
    let mut pair = pair();
    let hosts = [("debian12", Kernel::V6_1), ("debian13", Kernel::V6_12)]
        .map(|(name, kernel)| Host::start(&pair, name, kernel));
    let loads = load_both(&pair.a, &hosts);
    pair.a.kill_at_once();
    until("b leads", PATIENCE, || pair.b.heads() == ["out", "leads"]);
    for host in &hosts {
        host.has_paths("to the head that is left", &ADDRESSES[1..], &ADDRESSES[..1]);
    }
    pair.a.launch();
    until("a follows", PATIENCE, || pair.b.heads() == ["follows, ready", "leads"]);
    for host in &hosts {
        host.has_paths("to both again", &ADDRESSES, &[]);
    }
    for (host, loads) in hosts.iter().zip(loads) {
        host.finish("a head dies", loads);
    }
    for (host, loads) in hosts.iter().zip(load_both(&pair.b, &hosts)) {
        host.finish("both heads", loads);
        assert_eq!(host.vm.warnings().expect("dmesg"), Vec::<String>::new());
    }
}
