//! How near to the limit of the machine the product is; `make bench` starts it: `bench [--rounds N] [--seconds N] [--only WORDS]`.
//!
//! Each row is two programs under the same load by the same client, in turn (A B A B …), target on one core and client
//! on the other; the median of the rounds' ratios counts. A is a bare program that only receives and sends
//! (`bench/peak`), or the product in another configuration; B is the product. Rows that share a measurement are measured together, in
//! turn (A B C A B C …), and share it in each round. A row that cannot be measured here says why. Ends with 1 if a row falls short.

mod controllers;
mod heads;
mod shares;
mod zram;

use judge::measure::{self, CLIENT_CORE, Run, Shown, TARGET_CORE, Time, median, middle, pin, spread};
use judge::{Head, binary, load};
use std::path::PathBuf;
use std::process::{Child, ExitCode, Stdio};

/// Load before a measurement that is not counted, seconds.
const RAMP: f64 = 0.3;
/// How long a load that pauses for 1 s between commands is measured, seconds.
const PAUSING: f64 = 4.0;
const USAGE: &str =
    "bench: it takes --rounds N, --seconds N of each measurement, --only WORDS of a row's name";

/// Who is loaded.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Who {
    /// Our daemon over NVMe/TCP: null drive, blocks of 4096 or 512.
    Nvme(u32),
    /// Our daemon over iSCSI.
    Iscsi(u32),
    /// The bare NVMe/TCP program; it sleeps between turns, or spins.
    BareNvme(u32, bool),
    /// The bare NVMe/TCP program that spins, with as many buffers as this many bytes are.
    BareSpread(usize),
    /// The bare iSCSI program, likewise.
    BareIscsi(u32, bool),
}

/// How a row is judged.
#[derive(Clone, Copy)]
enum Judged {
    /// B's rate is at least so much of A's.
    Rate(f64),
    /// The same; or where the client is the limit, B's CPU time for each command at most so many ns above A's.
    RateOrCpu(f64, f64),
    /// B's CPU time for each command is at most so many ns above A's.
    Cpu(f64),
    /// B's mean latency is at most so many µs above A's.
    Latency(f64),
}

struct Row {
    name: &'static str,
    a: (Who, &'static str),
    b: (Who, &'static str),
    judged: Judged,
    /// So many loads, each on a volume of its own; 0 for one.
    volumes: usize,
}

/// A measurement: who is loaded, with which words, and on how many volumes.
type Shape = (Who, &'static str, usize);

impl Row {
    fn shapes(&self) -> [Shape; 2] {
        [self.a, self.b].map(|(who, words)| (who, words, self.volumes))
    }
}

/// Rows that share measurements, together; in the order in which they came otherwise.
fn groups(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut groups: Vec<Vec<Row>> = vec![];
    for row in rows {
        let shares = |group: &Vec<Row>| {
            group.iter().any(|other| other.shapes().iter().any(|shape| row.shapes().contains(shape)))
        };
        match groups.iter_mut().find(|group| shares(group)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// A row of one figure, without an A and a B.
struct Line {
    name: String,
    value: f64,
    shown: Shown,
    wanted: String,
    good: bool,
}

impl Line {
    fn least(name: String, value: f64, least: f64, shown: Shown) -> Self {
        Self { wanted: format!("≥ {}", shown.text(least)), good: value >= least, name, value, shown }
    }
    /// `valid`: it was measured as it should be.
    fn most(name: String, value: f64, most: f64, valid: bool, shown: Shown) -> Self {
        Self { wanted: format!("≤ {}", shown.text(most)), good: valid && value <= most, name, value, shown }
    }
}

struct Bench {
    head: Head,
    rounds: usize,
    seconds: f64,
    only: String,
    failed: u32,
}

fn rows() -> Vec<Row> {
    use Judged::{Cpu, Latency, Rate, RateOrCpu};
    use Who::{BareIscsi, BareNvme, BareSpread, Iscsi, Nvme};
    let mut rows = vec![];
    let shapes = [
        ("1 × 32", "--connections 1 --qd 32"),
        ("1 × 128", "--connections 1 --qd 128"),
        ("4 × 32", "--connections 4 --qd 32"),
        ("4 × 128", "--connections 4 --qd 128"),
        ("16 × 8", "--connections 16 --qd 8"),
        ("4 × 4", "--connections 4 --qd 4"),
        ("64 × 1", "--connections 64 --qd 1"),
    ];
    let leak = |text: String| -> &'static str { text.leak() };
    for (shape, words) in shapes {
        let load = leak(format!("--rw randread --bs 4k {words}"));
        let name = leak(format!("NVMe 4K randread {shape}"));
        rows.push(Row {
            name,
            a: (BareNvme(4096, false), load),
            b: (Nvme(4096), load),
            judged: Rate(0.92),
            volumes: 0,
        });
    }
    // The same where the bare program sends from as many buffers as commands are under way, as a target must.
    for (shape, words, spread) in
        [("1 × 32", "--connections 1 --qd 32", 32 << 12), ("4 × 32", "--connections 4 --qd 32", 128 << 12)]
    {
        let load = leak(format!("--rw randread --bs 4k {words}"));
        let name = leak(format!("the same {shape}, as many buffers"));
        rows.push(Row {
            name,
            a: (BareSpread(spread), load),
            b: (Nvme(4096), load),
            judged: Rate(0.92),
            volumes: 0,
        });
    }
    for (shape, words) in &shapes[..5] {
        let load = leak(format!("--rw randwrite --bs 4k {words}"));
        let name = leak(format!("NVMe 4K randwrite {shape}"));
        let judged = RateOrCpu(0.92, 80.0);
        rows.push(Row { name, a: (BareNvme(4096, true), load), b: (Nvme(4096), load), judged, volumes: 0 });
    }
    for (rw, wait) in [("read", false), ("write", true)] {
        let load = leak(format!("--rw {rw} --bs 128k --qd 32"));
        let name = leak(format!("NVMe 128K {rw} 1 × 32"));
        let judged = if wait { RateOrCpu(0.90, 80.0) } else { Rate(0.90) };
        rows.push(Row { name, a: (BareNvme(4096, wait), load), b: (Nvme(4096), load), judged, volumes: 0 });
    }
    let load = "--rw randread --bs 4k --qd 1";
    rows.push(Row {
        name: "NVMe 4K randread alone, latency",
        a: (BareNvme(4096, false), load),
        b: (Nvme(4096), load),
        judged: Latency(1.5),
        volumes: 0,
    });
    let load = "--rw randread --bs 4k --qd 1 --think 1000";
    rows.push(Row {
        name: "the first read after 1 s, latency",
        a: (BareNvme(4096, true), load),
        b: (Nvme(4096), load),
        judged: Latency(3.0),
        volumes: 0,
    });
    let load = "--rw randread --bs 4k --connections 4 --qd 32";
    rows.push(Row {
        name: "NVMe digests, of without",
        a: (Nvme(4096), load),
        b: (Nvme(4096), "--rw randread --bs 4k --connections 4 --qd 32 --digests"),
        judged: Rate(0.80),
        volumes: 0,
    });
    for (rw, jobs) in [("randread", 1), ("randread", 4), ("randwrite", 1), ("randwrite", 4)] {
        let load = leak(format!("--rw {rw} --bs 4k --connections {jobs} --qd 32"));
        let name = leak(format!("iSCSI 4K {rw} {jobs} × 32, of NVMe"));
        rows.push(Row {
            name,
            a: (Nvme(4096), load),
            b: (Iscsi(4096), load),
            judged: Rate(0.85),
            volumes: 0,
        });
        let name = leak(format!("iSCSI 4K {rw} {jobs} × 32"));
        rows.push(Row {
            name,
            a: (BareIscsi(4096, false), load),
            b: (Iscsi(4096), load),
            judged: Rate(0.85),
            volumes: 0,
        });
    }
    for (name, a, b, most) in [
        ("NVMe 512 16 volumes × 128, CPU", BareNvme(512, true), Nvme(512), 120.0),
        ("iSCSI 512 16 volumes × 128, CPU", BareIscsi(512, true), Iscsi(512), 160.0),
    ] {
        let load = "--rw randread --bs 512 --qd 128";
        rows.push(Row { name, a: (a, load), b: (b, load), judged: Cpu(most), volumes: VOLUMES });
    }
    rows
}

/// Figures that no row has, and where they are.
const ELSEWHERE: &[(&str, &str)] = &[
    ("instructions of the rooms", "make count (rooms-read-mirrors, rooms-write-mirrors)"),
    ("shaped drives, weights, mirrors", "make rates"),
];
/// Volumes of the rows with many.
const VOLUMES: usize = 16;

fn main() -> ExitCode {
    let (mut rounds, mut seconds, mut only) = (5, 0.6, String::new());
    let words: Vec<String> = std::env::args().skip(1).collect();
    for pair in words.chunks(2) {
        match pair {
            [name, n] if name == "--rounds" && n.parse().is_ok_and(|n: usize| n > 0) => {
                rounds = n.parse().expect("seen");
            }
            [name, n] if name == "--seconds" && n.parse().is_ok_and(|n: f64| n >= 0.5) => {
                seconds = n.parse().expect("seen");
            }
            [name, text] if name == "--only" => only.clone_from(text),
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let mut bench = Bench { head: head(), rounds, seconds, only, failed: 0 };
    println!(
        "\ntarget on core {TARGET_CORE}, client on core {CLIENT_CORE}, {rounds} rounds of {seconds} s, A and B in turn; busy: target + client\n"
    );
    println!(
        "{:<34} {:>9} {:>9} {:>8} {:>15} {:>9}  {:<9} {:<9} ",
        "row", "A", "B", "ratio", "spread", "wanted", "busy A", "busy B"
    );
    let wanted = rows().into_iter().filter(|row| row.name.contains(&bench.only)).collect();
    groups(wanted).iter().for_each(|group| bench.group(group));
    bench.lines();
    if bench.only.is_empty() {
        println!();
        ELSEWHERE.iter().for_each(|(what, place)| println!("elsewhere: {what}: {place}"));
    }
    if bench.failed == 0 {
        return ExitCode::SUCCESS;
    }
    println!("\n{} rows fall short.", bench.failed);
    ExitCode::FAILURE
}

/// Our daemon with one shard on a null drive, and a volume of each block size.
fn head() -> Head {
    let head = measure::head("bench");
    head.cli("volume create tank/v --size 256G --block 4096");
    head.cli("volume create tank/w --size 256G --block 512");
    let many: Vec<String> = (0..VOLUMES).map(|n| format!("x{n}")).collect();
    many.iter().for_each(|name| drop(head.cli(&format!("volume create tank/{name} --size 16G --block 512"))));
    let names: Vec<&str> = ["v", "w"].into_iter().chain(many.iter().map(String::as_str)).collect();
    load::allow(&names).iter().for_each(|command| drop(head.cli(command)));
    head
}

/// A bare program, gone with the value.
struct Bare(Child);

impl Drop for Bare {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Bench {
    /// Measures rows that share measurements, each measurement once a round.
    fn group(&mut self, rows: &[Row]) {
        let mut shapes: Vec<Shape> = vec![];
        for shape in rows.iter().flat_map(Row::shapes) {
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        let mut runs: Vec<Vec<Run>> = vec![vec![]; shapes.len()];
        for _ in 0..self.rounds {
            for ((who, words, volumes), runs) in shapes.iter().zip(&mut runs) {
                runs.push(self.measure(*who, words, *volumes));
            }
        }
        for row in rows {
            let [a, b] = row.shapes().map(|shape| {
                let at = shapes.iter().position(|s| *s == shape).expect("it is of this group");
                &runs[at]
            });
            self.row(row, a, b);
        }
    }

    fn row(&mut self, row: &Row, a: &[Run], b: &[Run]) {
        let verdict = verdict(row.judged, a, b);
        self.failed += u32::from(!verdict.good);
        let shown = |runs: &[Run]| verdict.shown.of(runs);
        let busy =
            |runs: &[Run]| format!("{:.2}+{:.2}", median(runs, |r| r.target), median(runs, |r| r.client));
        println!(
            "{:<34} {:>9} {:>9} {:>8} {:>15} {:>9}  {:<9} {:<9} {}",
            row.name,
            shown(a),
            shown(b),
            verdict.value,
            verdict.spread,
            verdict.wanted,
            busy(a),
            busy(b),
            if verdict.good { "pass" } else { "falls short" }
        );
    }

    /// The rows of one figure.
    fn lines(&mut self) {
        let wanted = |bench: &Self, words: &str| words.contains(&bench.only);
        let mut lines = vec![];
        if wanted(self, "overload") {
            lines.extend(self.overload());
        }
        if wanted(self, "tail") {
            lines.extend(self.tail());
        }
        if wanted(self, "shares") {
            let shares = shares::Shares::new(self.rounds.min(3));
            lines.extend(shares.equals());
            lines.extend(shares.little());
            lines.extend(shares.small());
            lines.extend(shares.overload());
        }
        if wanted(self, "forwarded write") {
            lines.extend(heads::forwarded(self.rounds, Time { ramp: RAMP, seconds: self.seconds }));
        }
        if wanted(self, "zram") {
            match zram::mirror(self.rounds.min(3)) {
                Ok(rows) => lines.extend(rows),
                Err(why) => println!("\nnot measured: a mirror on zram: no device of that kind: {why}"),
            }
        }
        if wanted(self, "controllers") && controllers::is_possible() {
            lines.extend(controllers::idle());
        }
        if !lines.is_empty() {
            println!("\n{:<62} {:>9} {:>11}", "row (one figure)", "", "wanted");
        }
        for line in lines {
            self.failed += u32::from(!line.good);
            let verdict = if line.good { "pass" } else { "falls short" };
            println!("{:<62} {:>9} {:>11}  {verdict}", line.name, line.shown.text(line.value), line.wanted);
        }
    }

    /// Commands under way from the knee to 32 times as many and beyond: the least rate of the best, also beside the bare
    /// program's. Far beyond the knee the client and the sockets' memory are the limit for both.
    fn overload(&self) -> Vec<Line> {
        let shapes = ["4 × 32", "4 × 128", "16 × 128", "32 × 128", "28 × 1023"];
        let rate = |who: Who, shape: &str| {
            let (connections, depth) = shape.split_once(" × ").expect("two numbers");
            let words = format!("--rw randread --bs 4k --connections {connections} --qd {depth}");
            self.measure(who, &words, 0).iops
        };
        let before = self.head.memory_mib();
        let both = |shape: &&str| [Who::BareNvme(4096, false), Who::Nvme(4096)].map(|who| rate(who, shape));
        let rounds: Vec<Vec<[f64; 2]>> =
            (0..self.rounds).map(|_| shapes.iter().map(both).collect()).collect();
        let more = self.head.memory_mib().saturating_sub(before);
        let [bare, ours] = [0, 1].map(|who| {
            let of = |i: usize| middle(&rounds.iter().map(|r| r[i][who]).collect::<Vec<_>>());
            (0..shapes.len()).map(of).collect::<Vec<f64>>()
        });
        let shown = |rates: &[f64]| {
            let one = |(shape, rate): (&&str, &f64)| format!("{shape}: {:.0} K", rate / 1e3);
            shapes.iter().zip(rates).map(one).collect::<Vec<_>>().join(", ")
        };
        println!("\noverload, bare: {}\noverload, ours: {}", shown(&bare), shown(&ours));
        let kept = |rates: &[f64]| {
            let best = rates.iter().copied().fold(0.0, f64::max);
            rates.iter().copied().fold(f64::INFINITY, f64::min) / best
        };
        let least_of_bare = ours.iter().zip(&bare).map(|(o, b)| o / b).fold(f64::INFINITY, f64::min);
        vec![
            Line::least("overload, least of best".into(), kept(&ours), 0.95, Shown::Ratio),
            Line::least(
                format!("the same, of the bare program's ({:.2})", kept(&bare)),
                kept(&ours) / kept(&bare),
                0.95,
                Shown::Ratio,
            ),
            Line::least("overload, least of bare at any depth".into(), least_of_bare, 0.92, Shown::Ratio),
            Line::most("overload, MiB more".into(), more as f64, 64.0, true, Shown::Number),
        ]
    }

    /// p99.9 of p50 at that depth of which the rate is nearest to 70 % of the best.
    fn tail(&self) -> Vec<Line> {
        let run = |words: &str| self.measure(Who::Nvme(4096), &format!("--rw randread --bs 4k {words}"), 0);
        let best = run("--connections 4 --qd 32").iops;
        let shapes = [(1, 2), (1, 4), (1, 8), (2, 4), (2, 8), (4, 4)];
        let words = |(c, d): (u32, u32)| format!("--connections {c} --qd {d}");
        let off = |shape: &(u32, u32)| ((run(&words(*shape)).iops / best - 0.7).abs() * 1e6) as u64;
        let shape = shapes.into_iter().min_by_key(off).expect("some");
        let runs: Vec<Run> = (0..self.rounds).map(|_| run(&words(shape))).collect();
        let name = format!(
            "tail, p99.9 of p50, {} × {} ({:.0} % of the best rate)",
            shape.0,
            shape.1,
            100.0 * median(&runs, |r| r.iops) / best
        );
        let ratio = median(&runs, |r| r.p999_us / r.p50_us);
        vec![Line::most(name, ratio, 5.0, true, Shown::Ratio)]
    }

    /// One load on one target, or one on each of so many volumes.
    fn measure(&self, who: Who, words: &str, volumes: usize) -> Run {
        let peak = |name: &str| binary().with_file_name(name);
        let spawn = |program: PathBuf, address: &str, block: u32, wait: bool, spread: usize| {
            let mut command = self.head.net.command(program);
            command.args([address, "--block", &block.to_string(), "--spread", &spread.to_string()]);
            command.args(wait.then_some("--wait"));
            let child = command.stdout(Stdio::null()).spawn().expect("the bare program starts");
            pin(child.id(), TARGET_CORE);
            Bare(child)
        };
        let name = |n: usize, block: u32| match (volumes, block) {
            (0, 512) => "w".into(),
            (0, _) => "v".into(),
            _ => format!("x{n}"),
        };
        let (bare, urls): (_, Vec<String>) = {
            let ours = |protocol, block| {
                let urls = (0..volumes.max(1)).map(|n| load::target(&self.head, protocol, &name(n, block)));
                (None, urls.collect())
            };
            let theirs = |bare, url: &str| (Some(bare), vec![load::names(url); volumes.max(1)]);
            match who {
                Who::Nvme(block) => ours(load::Protocol::Nvme, block),
                Who::Iscsi(block) => ours(load::Protocol::Iscsi, block),
                Who::BareNvme(block, wait) => {
                    let bare = spawn(peak("peak-nvme"), "127.0.0.1:4499", block, wait, 0);
                    theirs(bare, "nvme://127.0.0.1:4499/nqn.peak/1")
                }
                Who::BareSpread(bytes) => {
                    let bare = spawn(peak("peak-nvme"), "127.0.0.1:4499", 4096, false, bytes);
                    theirs(bare, "nvme://127.0.0.1:4499/nqn.peak/1")
                }
                Who::BareIscsi(block, wait) => {
                    let bare = spawn(peak("peak-iscsi"), "127.0.0.1:3299", block, wait, 0);
                    theirs(bare, "iscsi://127.0.0.1:3299/iqn.2026-01.org.peak/0")
                }
            }
        };
        let target = bare.as_ref().map_or(self.head.pid(), |b| b.0.id());
        // Who pauses has few commands.
        let seconds = if words.contains("--think") { PAUSING } else { self.seconds };
        measure::load(&self.head.net, target, &urls, words, Time { ramp: RAMP, seconds })
            .unwrap_or_else(|why| panic!("{why}"))
    }
}

struct Verdict {
    value: String,
    spread: String,
    wanted: String,
    shown: Shown,
    good: bool,
}

fn verdict(judged: Judged, a: &[Run], b: &[Run]) -> Verdict {
    let paired =
        |of: &dyn Fn(&Run, &Run) -> f64| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| of(a, b)).collect() };
    let ratio = |least: f64| {
        let ratios = paired(&|a, b| b.iops / a.iops);
        let value = middle(&ratios);
        // Large blocks are read as bytes.
        let large = a.iter().any(|r| r.mb_per_s * 1e6 > 60_000.0 * r.iops);
        Verdict {
            value: format!("{value:.3}"),
            spread: spread(&ratios, 3),
            wanted: format!("≥ {least:.2}"),
            shown: if large { Shown::Large } else { Shown::Rate },
            good: value >= least,
        }
    };
    let more = |unit: &str, most: f64, shown: Shown, of: &dyn Fn(&Run) -> f64| {
        let more = paired(&|a, b| of(b) - of(a));
        let value = middle(&more);
        Verdict {
            value: format!("{value:+.1}{unit}"),
            spread: spread(&more, 1),
            wanted: format!("≤ +{most}{unit}"),
            shown,
            good: value <= most,
        }
    };
    match judged {
        Judged::Rate(least) => ratio(least),
        Judged::RateOrCpu(least, most) => {
            let rate = ratio(least);
            let limited = median(b, |r| r.client) > 0.95 && median(b, |r| r.target) < 0.95;
            if rate.good || !limited { rate } else { more("ns", most, Shown::Cpu, &|r| r.target_ns) }
        }
        Judged::Cpu(most) => more("ns", most, Shown::Cpu, &|r| r.target_ns),
        Judged::Latency(most) => more("µs", most, Shown::Latency, &|r| r.mean_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(iops: f64, target_ns: f64, target: f64, client: f64) -> Run {
        let mb_per_s = iops * 4096.0 / 1e6;
        Run { iops, mb_per_s, target_ns, target, client, mean_us: 1e6 / iops, ..Run::default() }
    }

    #[test]
    fn the_median_of_the_paired_ratios_counts() {
        let a = [100.0, 200.0, 100.0].map(|n| run(n, 10.0, 1.0, 0.5));
        let b = [95.0, 180.0, 10.0].map(|n| run(n, 10.0, 1.0, 0.5));
        let v = verdict(Judged::Rate(0.90), &a, &b);
        assert_eq!((v.value.as_str(), v.spread.as_str(), v.good), ("0.900", "0.100–0.950", true));
        assert!(!verdict(Judged::Rate(0.92), &a, &b).good);
    }

    #[test]
    fn where_the_client_is_the_limit_the_targets_time_counts() {
        let a = [run(100.0, 500.0, 0.8, 1.0)];
        let limited = [run(80.0, 570.0, 0.8, 1.0)];
        let v = verdict(Judged::RateOrCpu(0.92, 80.0), &a, &limited);
        assert_eq!((v.value.as_str(), v.good, v.shown), ("+70.0ns", true, Shown::Cpu));
        let slow = [run(80.0, 570.0, 1.0, 0.8)];
        assert!(!verdict(Judged::RateOrCpu(0.92, 80.0), &a, &slow).good);
    }

    #[test]
    fn rows_that_share_a_measurement_are_measured_together() {
        let names = |groups: &[Vec<Row>]| -> Vec<Vec<&str>> {
            groups.iter().map(|group| group.iter().map(|row| row.name).collect()).collect()
        };
        let groups = groups(rows());
        let of = |name: &str| names(&groups).into_iter().find(|group| group.contains(&name)).expect(name);
        let one = ["NVMe 4K randread 1 × 32", "the same 1 × 32, as many buffers"];
        let two = ["iSCSI 4K randread 1 × 32, of NVMe", "iSCSI 4K randread 1 × 32"];
        assert_eq!(of(one[0]), [one, two].concat());
        assert_eq!(of("NVMe 4K randread 64 × 1").len(), 1);
        assert_eq!(groups.iter().flatten().count(), rows().len());
    }

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let mut names: Vec<&str> = rows().iter().map(|r| r.name).collect();
        names.sort_unstable();
        let n = names.len();
        names.dedup();
        assert_eq!(names.len(), n);
    }
}
