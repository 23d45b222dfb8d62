//! Hosts that ask for much over real sockets, and then neither send nor take anything, beside one that works.

use crate::daemon::{Daemon, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const WRITE: u8 = 1;
const READ: u8 = 2;

/// A controller of a host, by hand: its admin queue and one I/O queue.
struct Controller {
    _admin: TcpStream,
    io: TcpStream,
}

/// A command capsule without data (NVMe/TCP 3.6.2.4): `sqe` sets what is not zero.
fn capsule(opcode: u8, cid: u16, sqe: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut pdu = vec![0; 72];
    pdu[..8].copy_from_slice(&[4, 0, 72, 0, 72, 0, 0, 0]);
    (pdu[8], pdu[9]) = (opcode, 0x40);
    pdu[10..12].copy_from_slice(&cid.to_le_bytes());
    sqe(&mut pdu[8..]);
    pdu
}

/// The next PDU: its type and flags, and everything behind the first 8 bytes.
fn pdu(stream: &mut TcpStream) -> std::io::Result<(u8, u8, Vec<u8>)> {
    let mut head = [0; 8];
    stream.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let mut rest = vec![0; length as usize - 8];
    stream.read_exact(&mut rest)?;
    Ok((head[0], head[1], rest))
}

/// The completion of the only command under way: its first word. Panics if it failed.
fn completion(stream: &mut TcpStream) -> u32 {
    let (kind, _, cqe) = pdu(stream).expect("a response");
    assert_eq!((kind, cqe[14] >> 1, cqe[15]), (5, 0, 0), "a command failed: {cqe:02x?}");
    u32::from_le_bytes([cqe[0], cqe[1], cqe[2], cqe[3]])
}

impl Controller {
    fn new(portal: &str, subsystem: &str, host: &str) -> Self {
        let queue = |qid: u16, controller: u16| {
            let mut stream = TcpStream::connect(portal).expect("a connection");
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
            stream.set_write_timeout(Some(Duration::from_secs(60))).expect("a timeout");
            stream.set_nodelay(true).expect("small commands are sent at once");
            let mut icreq = vec![0; 128];
            (icreq[2], icreq[4]) = (128, 128);
            stream.write_all(&icreq).expect("sent");
            assert_eq!(pdu(&mut stream).expect("an ICResp").0, 1);
            let mut connect = capsule(0x7f, 0, |sqe| {
                sqe[4] = 1;
                sqe[32..36].copy_from_slice(&1024u32.to_le_bytes());
                sqe[39] = 1;
                sqe[42..44].copy_from_slice(&qid.to_le_bytes());
                sqe[44..46].copy_from_slice(&127u16.to_le_bytes());
            });
            connect[3] = 72;
            connect[4..8].copy_from_slice(&1096u32.to_le_bytes());
            let mut data = vec![0; 1024];
            data[..16].fill(host.len() as u8);
            data[16..18].copy_from_slice(&controller.to_le_bytes());
            data[256..256 + subsystem.len()].copy_from_slice(subsystem.as_bytes());
            data[512..512 + host.len()].copy_from_slice(host.as_bytes());
            connect.extend(data);
            stream.write_all(&connect).expect("sent");
            let id = completion(&mut stream) as u16;
            (stream, id)
        };
        let (mut admin, id) = queue(0, 0xffff);
        // Property Set of CC: enabled, entries of 64 and 16 bytes.
        let enable = capsule(0x7f, 1, |sqe| {
            sqe[44] = 0x14;
            sqe[48..52].copy_from_slice(&0x0046_0001u32.to_le_bytes());
        });
        admin.write_all(&enable).expect("sent");
        completion(&mut admin);
        Self { io: queue(1, id).0, _admin: admin }
    }
    /// Sends a command of so many 4 KiB blocks at the begin of the volume, whose data travel apart.
    fn ask(&mut self, opcode: u8, cid: u16, blocks: u32) -> std::io::Result<()> {
        self.io.write_all(&capsule(opcode, cid, |sqe| {
            sqe[4] = 1;
            sqe[32..36].copy_from_slice(&(blocks * 4096).to_le_bytes());
            sqe[39] = 0x5a;
            sqe[48..50].copy_from_slice(&(blocks as u16 - 1).to_le_bytes());
        }))
    }
    /// Writes some blocks, whose data are asked for.
    fn write(&mut self, blocks: u32) -> std::io::Result<()> {
        self.ask(WRITE, 7, blocks)?;
        loop {
            let (kind, _, rest) = pdu(&mut self.io)?;
            if kind == 5 {
                assert_eq!((rest[14] >> 1, rest[15]), (0, 0), "a write failed");
                return Ok(());
            }
            assert_eq!(kind, 9, "neither a response nor an R2T");
            let length = u32::from_le_bytes(rest[8..12].try_into().expect("4 bytes"));
            let mut data = vec![0; 24 + length as usize];
            data[..4].copy_from_slice(&[6, 4, 24, 24]);
            data[4..8].copy_from_slice(&(24 + length).to_le_bytes());
            data[8..16].copy_from_slice(&rest[..8]);
            // CCCID, TTAG, DATAO and DATAL as the R2T has them.
            data[12..20].copy_from_slice(&rest[4..12]);
            data[8..12].copy_from_slice(&rest[..4]);
            self.io.write_all(&data)?;
        }
    }
    /// Reads some blocks, and takes them.
    fn read(&mut self, blocks: u32) {
        self.ask(READ, 7, blocks).expect("sent");
        let mut left = blocks * 4096;
        loop {
            let (kind, flags, rest) = pdu(&mut self.io).expect("an answer");
            match kind {
                7 => left -= rest.len() as u32 - 16,
                5 => assert_eq!((rest[14] >> 1, rest[15]), (0, 0), "a read failed"),
                other => panic!("a PDU of type {other:#x}"),
            }
            if kind == 5 || flags & 8 > 0 {
                return assert_eq!(left, 0);
            }
        }
    }
}

#[test]
fn a_host_is_served_beside_many_that_keep_what_they_are_lent() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    daemon.cli("pool create tank ram:64M");
    daemon.cli("volume create tank/v --size 16M --block 4096");
    let hosts = ["good", "bad1", "bad22", "bad333"];
    let nqn = |host: &str| format!("nqn.2026-01.test:{host}");
    for host in hosts {
        daemon.cli(&format!("host add {host} --nqn {}", nqn(host)));
        daemon.cli(&format!("export tank/v --host {host}"));
    }
    let portal = daemon.portal("nvme");
    let subsystem = daemon.status()["system"]["nqn"].as_str().expect("a name").to_string();
    let controller = |host: &str| Controller::new(&portal, &subsystem, &nqn(host));

    let mut good = controller("good");
    good.read(1);
    let mut bad = vec![];
    for host in &hosts[1..] {
        for opcode in [WRITE, READ] {
            let mut controller = controller(host);
            for cid in 0..100 {
                controller.ask(opcode, cid, 256).expect("sent");
            }
            bad.push(controller);
        }
    }
    let begin = Instant::now();
    let mut slowest = Duration::ZERO;
    let mut reads = 0;
    while begin.elapsed() < Duration::from_secs(8) {
        for blocks in [1, 64] {
            let asked = Instant::now();
            good.read(blocks);
            slowest = slowest.max(asked.elapsed());
            reads += 1;
        }
    }
    // Twice the time that they are given, and much for a machine that does other things.
    assert!(slowest < Duration::from_secs(20), "{reads} reads, the slowest in {slowest:?}");
    assert!(reads > 20, "only {reads} reads in 8 s");
    until("the others are cut off", || {
        let events = daemon.events().join("\n");
        events.contains("was cut off: it kept memory for data that it did not send")
            && events.contains("was cut off: it kept memory for data that it asked for and did not take")
    });
    drop(bad);
    until("nobody waits and nothing is kept", || {
        good.read(256);
        daemon.status()["connections"].as_array().is_some_and(|all| all.len() == 2)
    });
}

/// A host's path that is dead keeps what it was lent, and its living path waits for that.
#[test]
fn a_living_path_of_a_host_does_not_wait_for_its_dead_ones() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    daemon.cli("pool create tank ram:64M");
    daemon.cli("volume create tank/v --size 16M --block 4096");
    let nqn = "nqn.2026-01.test:h";
    daemon.cli(&format!("host add h --nqn {nqn}"));
    daemon.cli("export tank/v --host h");
    let portal = daemon.portal("nvme");
    let subsystem = daemon.status()["system"]["nqn"].as_str().expect("a name").to_string();
    let controller = || Controller::new(&portal, &subsystem, nqn);

    let mut living: Vec<_> = (0..4).map(|_| controller()).collect();
    // Each is asked for a mebibyte at a time: that many have all that there is.
    let mut dead: Vec<_> = (0..40).map(|_| controller()).collect();
    for controller in &mut dead {
        for cid in 0..2 {
            controller.ask(WRITE, cid, 256).expect("sent");
        }
    }
    // They have come in by then, or the machine is slow and this proves less.
    std::thread::sleep(Duration::from_millis(500));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for controller in &mut living {
            scope.spawn(|| controller.write(256).expect("a living path is not cut off"));
        }
    });
    let took = begin.elapsed();
    until("the dead ones are cut off", || {
        daemon.events().join("\n").contains("was cut off: it kept memory for data that it did not send")
    });
    for controller in &mut living {
        controller.write(256).expect("a living path is not cut off");
    }
    // One time limit, however many are dead, and what a busy machine needs.
    assert!(took < Duration::from_secs(15), "{took:?}");
}
