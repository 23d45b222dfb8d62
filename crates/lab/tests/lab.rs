//! Proves the lab against a storage target that is not ours: the guest kernel's own.

use lab::{Net, Vm, skipped};
use std::time::{Duration, Instant};

/// A RAM disk of the guest, served by its kernel over NVMe/TCP on all its addresses.
const NVMET: &str = "set -e
    modprobe brd rd_nr=1 rd_size=65536
    modprobe -a nvmet-tcp nvme-tcp
    cd /sys/kernel/config/nvmet
    mkdir -p subsystems/nqn.2026-01.org.millrace.lab:self/namespaces/1 ports/1
    cd subsystems/nqn.2026-01.org.millrace.lab:self
    echo 1 >attr_allow_any_host
    echo /dev/ram0 >namespaces/1/device_path
    echo 1 >namespaces/1/enable
    cd ../../ports/1
    echo tcp >addr_trtype; echo ipv4 >addr_adrfam; echo 0.0.0.0 >addr_traddr; echo 4420 >addr_trsvcid
    ln -s ../../subsystems/nqn.2026-01.org.millrace.lab:self subsystems/";

#[test]
fn a_guest_boots_runs_commands_serves_verified_io_loses_its_link_and_dies() {
    if skipped("the lab's own test") {
        return;
    }
    let net = Net::new().expect("a network namespace");
    let drive = std::env::temp_dir().join(format!("lab-test-{}.img", std::process::id()));
    std::fs::File::create(&drive).and_then(|f| f.set_len(64 << 20)).expect("a drive file");
    let builder = Vm::builder("self").cpus(2).mem(768).nvme(&drive).forward("10.91.0.1:4420", 4420);
    let vm = builder.start(&net).expect("a guest");
    std::fs::remove_file(&drive).ok();

    let kernel = vm.run("uname -r", 30).expect("uname").stdout;
    assert!(kernel.starts_with("6.1."), "{kernel}");
    assert_eq!(
        vm.try_run("echo out; echo err >&2; exit 3", 30).map(|o| (o.code, o.stderr)).ok(),
        Some((3, "err\n".into()))
    );
    let late = vm.try_run("sleep 100", 1).expect_err("a command past its time is killed");
    assert!(format!("{late:#}").contains("did not end within 1s"), "{late:#}");
    // What a killed command has said is there, and it is gone at once.
    let sleeper = vm.spawn("echo begun; exec sleep 987").expect("a command");
    let deadline = Instant::now() + Duration::from_secs(30);
    while sleeper.so_far() != "begun\n" {
        assert!(Instant::now() < deadline, "it does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    sleeper.kill();
    let killed = sleeper.wait(Duration::from_secs(10)).expect("the guest says that it is killed");
    assert_eq!((killed.code, killed.stdout.as_str()), (137, "begun\n"));
    assert_eq!(vm.run("pgrep -f 'sleep 98[7]' || true", 30).expect("pgrep").text(), "");
    let size =
        vm.run("cat /sys/block/nvme0n1/size; cat /etc/nvme/hostnqn", 30).expect("the NVMe drive").stdout;
    assert_eq!(size, format!("131072\n{}\n", vm.nqn()));

    let pushed = std::env::temp_dir().join(format!("lab-push-{}", std::process::id()));
    std::fs::write(&pushed, vec![7u8; 300_000]).expect("a file");
    vm.push(&pushed, "/tmp/pushed").expect("push");
    assert_eq!(vm.run("wc -c </tmp/pushed", 30).expect("wc").text(), "300000");
    vm.run("echo changed >/tmp/pushed", 30).expect("echo");
    vm.pull("/tmp/pushed", &pushed).expect("pull");
    assert_eq!(std::fs::read(&pushed).ok().as_deref(), Some(&b"changed\n"[..]));
    std::fs::remove_file(&pushed).ok();

    vm.run(NVMET, 60).expect("the kernel's target");
    vm.run("nvme connect -t tcp -a 127.0.0.1 -s 4420 -n nqn.2026-01.org.millrace.lab:self -i 2 -g -G", 60)
        .expect("connect with both digests");
    let disk = vm.disk("/dev/disk/by-id/nvme-uuid.*").expect("its disk");
    let fio = vm.spawn(&format!(
        "fio --name=v --filename={disk} --size=4M --rw=randwrite --bs=4k --iodepth=16 --ioengine=libaio \
         --direct=1 --verify=crc32c --verify_fatal=1 --minimal"
    ));
    // A second command runs beside the first.
    assert_eq!(vm.run("echo beside", 30).expect("echo").text(), "beside");
    fio.and_then(|job| job.wait(Duration::from_secs(180))).and_then(|o| o.good("fio")).expect("verified I/O");

    // The guest's target as seen from outside, and no longer once the cable is pulled.
    let greet = "timeout 5 bash -c 'exec 3<>/dev/tcp/10.91.0.1/4420; \
        printf \"\\0\\0\\x80\\0\\x80\\0\\0\\0%0120d\" 0 | tr 0 \"\\0\" >&3; head -c1 <&3 | od -An -tx1'";
    let answer = net.run(greet, Duration::from_secs(20)).expect("a connection from outside");
    assert_eq!(answer.text(), "01", "the first byte of an ICResp");
    vm.link(0, false).expect("pull");
    let answer = net.try_run(greet, Duration::from_secs(20)).expect("bash");
    assert_eq!(answer.text(), "", "nothing passes a pulled cable");
    vm.link(0, true).expect("plug");
    let deadline = Instant::now() + Duration::from_secs(120);
    while net.try_run(greet, Duration::from_secs(20)).expect("bash").text() != "01" {
        assert!(Instant::now() < deadline, "the link does not come back");
    }

    vm.run("nvme disconnect -n nqn.2026-01.org.millrace.lab:self", 60).expect("disconnect");
    assert_eq!(vm.warnings().expect("dmesg"), Vec::<String>::new());
    vm.kill();
    let dead = vm.run("true", 5).expect_err("a dead guest runs nothing");
    assert!(format!("{dead:#}").contains("is not running"), "{dead:#}");
}

#[test]
fn two_networks_hold_the_same_port_and_do_not_see_each_other() {
    if skipped("networks") {
        return;
    }
    let (one, two) = (Net::new().expect("a namespace"), Net::new().expect("another"));
    let serve = "use IO::Socket::INET; my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '10.91.1.1:4420'); $s->accept";
    let mut server = one.command("perl").args(["-e", serve]).spawn().expect("a server");
    let connect = "exec 3<>/dev/tcp/10.91.1.1/4420";
    let deadline = Instant::now() + Duration::from_secs(10);
    assert_ne!(two.try_run(connect, Duration::from_secs(5)).map(|o| o.code).ok(), Some(0));
    while one.try_run(connect, Duration::from_secs(5)).expect("bash").code != 0 {
        assert!(Instant::now() < deadline, "the server cannot be reached in its own namespace");
    }
    server.kill().ok();
    server.wait().ok();
}
