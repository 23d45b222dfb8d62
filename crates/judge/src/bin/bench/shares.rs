//! The shares of hosts under overload, and the total.

use crate::Line;
use judge::measure::{CLIENT_CORE, Shown, TARGET_CORE, middle, pin};
use judge::{Head, binary};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Hosts that share, by number.
fn nqn(host: usize) -> String {
    format!("nqn.2014-08.org.nvmexpress:uuid:6d696c6c-7261-4365-8065-73686172{host:04}")
}

/// A drive that is the limit itself: so many operations a second.
const IOPS: &str = "shape:iops-max=50000,latency-us=80@ram:1G";
/// The same: so many MB/s.
const MBPS: &str = "shape:mbps-max=1000@ram:1G";
/// A load: its host, the volume's namespace, and the words of `millrace bench`.
type Load = (usize, u64, &'static str);

pub struct Shares {
    head: Head,
    rounds: usize,
    /// Namespaces of 16 volumes on the drive of so many IOPS, one on that of so many MB/s.
    volumes: Vec<u64>,
    large: u64,
}

impl Shares {
    pub fn new(rounds: usize) -> Self {
        let mut head = Head::prepare("bench-shares");
        head.has_one_shard();
        head.start();
        head.cli("portal add nvme 127.0.0.1:4420");
        head.cli(&format!("pool create tank {IOPS}"));
        head.cli(&format!("pool create wide {MBPS}"));
        (0..4).for_each(|h| drop(head.cli(&format!("host add h{h} --nqn {}", nqn(h)))));
        let give = |volume: String, size: &str| {
            head.cli(&format!("volume create {volume} --size {size} --block 4096"));
            (0..4).for_each(|h| drop(head.cli(&format!("export {volume} --host h{h}"))));
            head.json(&format!("volume show {volume}"))["nsid"].as_u64().expect("a namespace")
        };
        let volumes = (0..16).map(|v| give(format!("tank/v{v}"), "48M")).collect();
        let large = give("wide/v".into(), "800M");
        pin(head.pid(), TARGET_CORE);
        Self { head, rounds, volumes, large }
    }

    /// Loads that begin together; the report of each.
    fn run(&self, seconds: f64, loads: &[Load]) -> Vec<Value> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        // Each process needs a moment before it can begin.
        let start = (now + Duration::from_millis(200 + 40 * loads.len() as u64)).as_millis().to_string();
        let children: Vec<_> = loads
            .iter()
            .map(|(host, volume, words)| {
                let mut command = self.head.net.command(binary());
                let url = format!("nvme://127.0.0.1:4420/{}/{volume}", self.head.nqn());
                command.args(["bench", "--json", "--force", "--ramp", "0.5", "--start-at", &start]);
                command.args(["--seconds", &seconds.to_string(), "--target", &url]);
                command.args(["--host-nqn", &nqn(*host)]).args(words.split_whitespace());
                let child = command.stdout(Stdio::piped()).spawn().expect("the load starts");
                pin(child.id(), CLIENT_CORE);
                child
            })
            .collect();
        let report = |child: std::process::Child| {
            let output = child.wait_with_output().expect("the load ends");
            let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
            assert_eq!(report["errors"], 0, "{report}");
            report
        };
        children.into_iter().map(report).collect()
    }
    fn rates(reports: &[Value]) -> Vec<f64> {
        reports.iter().map(|r| r["total"]["iops"].as_f64().expect("a rate")).collect()
    }
    fn median(&self, mut of: impl FnMut() -> f64) -> f64 {
        middle(&(0..self.rounds).map(|_| of()).collect::<Vec<_>>())
    }
    /// The slowest of these loads, as part of the fastest.
    fn equal(&self, loads: &[Load]) -> f64 {
        self.median(|| {
            let rates = Self::rates(&self.run(3.0, loads));
            let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
            slowest / rates.iter().copied().fold(0.0, f64::max)
        })
    }

    /// 16 volumes, or 16 paths of 4 hosts to 4 volumes, equal load.
    pub fn equals(&self) -> Vec<Line> {
        let volumes: Vec<Load> = (0..16).map(|v| (0, self.volumes[v], "--qd 128")).collect();
        let paths: Vec<Load> = (0..16).map(|n| (n / 4, self.volumes[n % 4], "--qd 32")).collect();
        let line = |name: &str, share| Line::least(name.into(), share, 0.90, Shown::Ratio);
        vec![
            line("16 volumes × 128, slowest of fastest", self.equal(&volumes)),
            line("16 paths × 32, slowest of fastest", self.equal(&paths)),
        ]
    }

    /// A host with one command at a time, beside one with 8192.
    pub fn little(&self) -> Vec<Line> {
        let mean = |report: &Value| report["total"]["mean_us"].as_f64().expect("a time");
        let light = (1, self.volumes[0], "--qd 1");
        let heavy = (2, self.volumes[1], "--connections 64 --qd 128");
        let alone = self.median(|| mean(&self.run(1.5, &[light])[0]));
        let beside = self.median(|| mean(&self.run(3.0, &[light, heavy])[0]));
        let name = format!("QD1 beside 64 × 128: {beside:.0} µs, alone {alone:.0} µs");
        vec![Line::most(name, beside / alone, 2.0, true, Shown::Ratio)]
    }

    /// The drive is the limit: so many commands under way as keep it busy, and up to 256 times as many.
    pub fn overload(&self) -> Vec<Line> {
        let shapes = [
            "--connections 1 --qd 32",
            "--connections 4 --qd 32",
            "--connections 16 --qd 64",
            "--connections 28 --qd 1023",
        ];
        let rate = |words| self.median(|| Self::rates(&self.run(2.0, &[(0, self.volumes[0], words)]))[0]);
        let rates = shapes.map(rate);
        let best = rates.iter().copied().fold(0.0, f64::max);
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let name = format!("overload of a drive of 50 K, least of best ({:.1} K)", best / 1e3);
        vec![Line::least(name, least / best, 0.95, Shown::Ratio)]
    }

    /// Readers of 4 KiB beside a writer of 4 MiB. Few of them are under way at a time, so that each waits for some pieces of
    /// what is written: they cannot have half of the drive, but they are not to starve.
    pub fn small(&self) -> Vec<Line> {
        let readers = (1, self.large, "--connections 2 --qd 8");
        let writer = (2, self.large, "--rw write --bs 4m --qd 16");
        let alone = self.median(|| Self::rates(&self.run(1.5, &[readers]))[0]);
        let mut written = vec![];
        let beside = self.median(|| {
            let rates = Self::rates(&self.run(3.0, &[readers, writer]));
            written.push(rates[1] * 4.194_304);
            rates[0]
        });
        let name = format!(
            "4K reads beside 4M writes ({:.0} MB/s of 1000), of {:.0} K alone",
            middle(&written),
            alone / 1e3
        );
        vec![Line::least(name, beside / alone, 0.05, Shown::Ratio)]
    }
}
