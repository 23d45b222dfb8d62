//! tshark reads what goes over the wire: no malformed PDU, right digests.

use judge::{Head, fio_verify};
use lab::{Vm, skipped};
use std::process::{Child, Stdio};
use std::time::Duration;

/// A capture of everything on the loopback of the head's network.
struct Capture<'a> {
    head: &'a Head,
    tshark: Child,
}

impl Capture<'_> {
    fn start(head: &Head) -> Capture<'_> {
        let mut command = head.net.command("dumpcap");
        command.args(["-q", "-B", "64", "-i", "lo", "-w"]).arg(head.dir.join("pcap"));
        let tshark = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("dumpcap");
        let capture = Capture { head, tshark };
        judge::until("the capture begins", 20, || {
            head.dir.join("pcap").metadata().is_ok_and(|m| m.len() > 0)
        });
        capture
    }

    fn end(mut self) -> Trace<'static> {
        std::thread::sleep(Duration::from_secs(1));
        lab::sh(&format!("kill -INT {}", self.tshark.id())).expect("kill");
        self.tshark.wait().expect("wait");
        Trace { file: self.head.dir.join("pcap").display().to_string(), options: "" }
    }
}

struct Trace<'a> {
    file: String,
    options: &'a str,
}

impl Trace<'_> {
    fn lines(&self, filter: &str, more: &str) -> Vec<String> {
        let script = format!("tshark -r {} {} -Y '{filter}' {more} 2>/dev/null", self.file, self.options);
        lab::sh(&script).expect("tshark").lines().map(str::to_owned).collect()
    }
}

#[test]
fn tshark_finds_nothing_wrong_in_iscsi_and_nvme_tcp_with_digests() {
    if skipped("tshark's view of both protocols") {
        return;
    }
    let head = Head::with_tank("wire");
    let vm = Vm::builder("wire1").cpus(2).mem(768).start(&head.net).expect("a guest");
    let lun = head.give("v", "64M", 512, "guest", &format!("--iqn {} --nqn {}", vm.iqn(), vm.nqn()));
    let (iqn, nqn) = (head.iqn(), head.nqn());

    let capture = Capture::start(&head);
    let fio = |disk: &str| {
        vm.run(&(fio_verify(disk, 1) + " --bsrange=512-128k"), 120).expect("verified I/O");
    };
    vm.run(&format!("nvme connect -t tcp -a 10.91.0.1 -s 4420 -n {nqn} -g -G"), 60).expect("connect");
    fio(&vm.disk("/dev/nvme0n1").expect("a disk"));
    vm.run(&format!("nvme write-zeroes /dev/nvme0n1 -s 0 -c 7 -n 1; nvme dsm /dev/nvme0n1 -n 1 -d -s 0 -b 8; nvme disconnect -n {nqn}"), 60)
        .expect("other commands");
    let set = |name: &str, value: &str| {
        format!("iscsiadm -m node -T {iqn} -p 10.91.0.1 -o update -n '{name}' -v '{value}'; ")
    };
    let script = "iscsiadm -m discovery -t sendtargets -p 10.91.0.1; ".to_owned()
        + &set("node.conn[0].iscsi.HeaderDigest", "CRC32C")
        + &set("node.conn[0].iscsi.DataDigest", "CRC32C")
        + &format!("iscsiadm -m node -T {iqn} -p 10.91.0.1 --login");
    vm.run(&script, 120).expect("login");
    let disk = vm.disk(&format!("/dev/disk/by-path/*lun-{lun}")).expect("a disk");
    fio(&disk);
    vm.run(&format!("sg_vpd -p di {disk}; sg_modes {disk}; sg_luns {disk}; iscsiadm -m node -T {iqn} -p 10.91.0.1 --logout"), 60)
        .expect("other commands");
    let mut trace = capture.end();

    // NVMe/TCP: tshark says 1 for a digest that is right.
    trace.options = "-o nvme-tcp.check_hdgst:TRUE -o nvme-tcp.check_ddgst:TRUE";
    assert!(trace.lines("nvme-tcp", "").len() > 100, "too little NVMe/TCP was seen");
    for digest in ["hdgst", "ddgst"] {
        let field = format!("nvme-tcp.{digest}.status");
        let seen = trace.lines(&field, &format!("-T fields -e {field}"));
        assert!(seen.len() > 20, "{} packets with {digest}", seen.len());
        let wrong: Vec<&String> =
            seen.iter().filter(|s| s.split(',').any(|one| one != "1" && one != "Good")).collect();
        assert!(wrong.is_empty(), "{digest}: {wrong:?}");
    }
    assert_eq!(trace.lines("nvme-tcp && _ws.malformed", ""), Vec::<String>::new());

    // iSCSI: the digests' verdict stands in the text of the tree.
    let seen = trace.lines("iscsi", "-V | grep -E \"(Header|Data)Digest: 0x\" || true");
    for digest in ["HeaderDigest", "DataDigest"] {
        let seen: Vec<&String> = seen.iter().filter(|line| line.contains(digest)).collect();
        assert!(seen.len() > 20, "{} times {digest}", seen.len());
        let wrong: Vec<&&String> = seen.iter().filter(|line| !line.contains("Good")).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
    // tshark calls an answer malformed that was cut at the allocation length, as kernels ask for the
    // first 4 or 36 bytes of a page to learn its length: frames with at most 64 bytes of such data.
    let cut = |line: &&String| {
        let length = line.split('\t').next().and_then(|n| n.parse().ok()).unwrap_or(u32::MAX);
        line.contains("Response Data)") && length <= 14 + 20 + 32 + 48 + 4 + 64 + 4
    };
    let malformed =
        trace.lines("iscsi && _ws.malformed", "-T fields -e frame.len -e _ws.col.Info -e frame.number");
    let malformed: Vec<&String> = malformed.iter().filter(|line| !cut(line)).collect();
    assert!(malformed.is_empty(), "{malformed:?}");
}
