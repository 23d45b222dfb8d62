//! The cost of a write that is forwarded to the other head: TWO-HEADS, "a forwarded write".

use crate::Line;
use judge::measure::{Shown, Time, middle, pin};
use judge::{Head, binary, load};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A write of this many bytes, with the link's header before it, goes there; as much as the header comes back.
const BLOCK: usize = 4096;
const HEADER: usize = 64;
const ROUND_TRIPS: u32 = 20_000;
/// Less than a region of an array has, so that one lane has all of it.
const REGION: &str = "64k";
/// The processor of each head, of the load at its portal, and of each end of a bare round trip: heads are two machines, and a message between them
/// wakes another processor.
const CORES: [&str; 2] = ["0", "1"];

/// A write at the head whose lane it is, the same write at the other head, and a bare round trip of the same bytes, all of them one at a time.
pub fn forwarded(rounds: usize, time: Time) -> Vec<Line> {
    let mut a = Head::prepare("bench-left");
    let mut b = a.beside("bench-right");
    for head in [&mut a, &mut b] {
        head.has_one_shard();
        head.start();
    }
    for name in ["x", "y"] {
        a.file(name, 256 << 20);
    }
    a.cli(&format!("pool create tank mirror {} {}", a.drive("x"), a.drive("y")));
    a.cli("volume create tank/v --size 64M --block 4096");
    load::allow(&["v"]).iter().for_each(|command| drop(a.cli(command)));
    a.cli("portal add nvme 127.0.0.1:4420");
    a.lead(&b, ["127.0.0.1", "127.0.0.1"]);
    a.cli("portal add nvme 127.0.0.1:4421 --head b");
    judge::until("both heads have lanes", 60, || {
        let heads = &a.json("head ls")["heads"];
        (0..2).all(|n| heads[n]["serves"]["lanes"].as_u64().is_some_and(|lanes| lanes > 0))
    });
    [&a, &b].into_iter().zip(CORES).for_each(|(head, core)| pin(head.pid(), core));
    let at_a = load::target(&a, load::Protocol::Nvme, "v");
    let write = |port: u16, core| write(&a, &at_a.replace(":4420", &format!(":{port}")), time, core);
    let mut all = [vec![], vec![], vec![]];
    for _ in 0..rounds {
        for (port, of) in [(4420, 0), (4421, 1)] {
            match write(port, CORES[of]) {
                Ok(us) => all[of].push(us),
                Err(why) => {
                    println!("a forwarded write is not measured: {why}");
                    return vec![];
                }
            }
        }
        all[2].push(round_trip());
    }
    let [mut local, mut far, bare] = all.map(|values| middle(&values));
    // The heads decide which of them has the lane.
    if far < local {
        (local, far) = (far, local);
    }
    println!("a write {local:.1} µs, a forwarded one {far:.1} µs, a bare round trip {bare:.1} µs");
    vec![Line::most(
        "forwarded write: above a local one, round trips".into(),
        (far - local) / bare,
        1.3,
        true,
        Shown::Ratio,
    )]
}

/// The median of writes that go one at a time to `target`, words of `millrace bench`, µs.
fn write(head: &Head, target: &str, time: Time, core: &str) -> Result<f64, String> {
    let mut command = head.net.command("taskset");
    command.args(["-c", core]).arg(binary());
    command.args([
        "bench",
        "--json",
        "--force",
        "--rw",
        "randwrite",
        "--bs",
        "4k",
        "--connections",
        "1",
        "--qd",
        "1",
    ]);
    command.args([
        "--region",
        REGION,
        "--ramp",
        &time.ramp.to_string(),
        "--seconds",
        &time.seconds.to_string(),
    ]);
    let output = command.args(target.split_whitespace()).output().expect("the load runs");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let median =
        report["total"]["p50_us"].as_f64().filter(|_| output.status.success() && report["errors"] == 0);
    median.ok_or_else(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// Binds the thread that calls to a processor.
fn pin_thread(core: &str) {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("the kernel has it");
    let id = stat.split(' ').next().expect("a number");
    let done = Command::new("taskset").args(["-cp", core, id]).stdout(Stdio::null()).status();
    assert!(done.expect("util-linux is there").success(), "thread {id} is bound to a processor");
}

/// The median of a round trip between two threads on two processors, that wait for each other, µs.
fn round_trip() -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        pin_thread(CORES[1]);
        let (mut peer, _) = listener.accept().expect("a client");
        peer.set_nodelay(true).expect("an option");
        let mut bytes = vec![0; BLOCK + HEADER];
        while peer.read_exact(&mut bytes).is_ok() {
            peer.write_all(&[1; HEADER]).expect("it is taken");
        }
    });
    pin_thread(CORES[0]);
    let mut peer = TcpStream::connect(at).expect("a connection");
    peer.set_nodelay(true).expect("an option");
    let mut answer = [0; HEADER];
    let mut one = || {
        let began = Instant::now();
        peer.write_all(&[2; BLOCK + HEADER]).expect("it is taken");
        peer.read_exact(&mut answer).expect("an answer");
        began.elapsed().as_nanos() as f64 / 1e3
    };
    let all: Vec<f64> = (0..ROUND_TRIPS).map(|_| one()).collect();
    drop(peer);
    server.join().expect("it ends");
    middle(&all)
}
