//! The share of the speed of its drives that a pool gives; `make rates` starts it: `rates [--seconds N]`. The drives are in memory
//! and slowed down by shapes, so that they, and not this machine, are the limit. Prints one table; ends with 1 if a
//! rate is below what is wanted, or further than 5 % from what `plan` says of that pool beforehand.

use judge::measure::{CLIENT_CORE, TARGET_CORE, pin};
use judge::{Head, load};
use serde_json::Value;
use std::process::{ExitCode, Stdio};

/// MB/s of the slow drive and of the fast ones.
const SLOW: f64 = 200.0;
const FAST: f64 = 400.0;

struct Rates {
    head: Head,
    seconds: u32,
    failed: bool,
    /// What `plan` says of the pool that is there: reads and writes of 128 KiB, MB/s.
    planned: [f64; 2],
}

/// A prediction is right if what is measured is within this part of it.
const APART: f64 = 0.05;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let seconds = match &words[..] {
        [] => 5,
        [name, n] if name == "--seconds" && n.parse::<u32>().is_ok_and(|n| n > 0) => n.parse().expect("seen"),
        _ => {
            eprintln!("rates: it takes --seconds N, one measurement's length");
            return ExitCode::from(2);
        }
    };
    let mut head = Head::prepare("rates");
    head.has_one_shard();
    head.start();
    let mut rates = Rates { head, seconds, failed: false, planned: [0.0; 2] };
    rates.head.cli("portal add nvme 127.0.0.1:4420");
    // The figures are the daemon's, so the load has a core of its own.
    pin(rates.head.pid(), TARGET_CORE);
    println!(
        "\n{:<44} {:>10} {:>10} {:>7} {:>7} {:>10}",
        "load", "drives", "MB/s", "share", "wanted", "plan"
    );
    rates.stripes();
    rates.mirrors();
    if rates.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A drive of this speed.
fn drive(mb_per_s: f64) -> String {
    format!("shape:mbps-max={mb_per_s}@ram:1G")
}

impl Rates {
    /// A slow drive and three fast ones give their sum if the weights fit, else four times the slow one.
    fn stripes(&mut self) {
        let drives = [SLOW, FAST, FAST, FAST].map(drive).join(" ");
        let sum = SLOW + 3.0 * FAST;
        self.make(&format!("{drives} --measure"), "2800M");
        let weights = self.weights();
        println!("  weights as measured: {weights}");
        for (rw, bs) in [("read", "128k"), ("write", "128k"), ("read", "1M"), ("write", "1M")] {
            self.row(
                &format!("stripe {weights}, {rw} {bs}"),
                sum,
                0.99,
                &format!("--rw {rw} --bs {bs} --qd 32"),
            );
        }
        self.drop();
        self.make(&format!("{drives} --weights 1,1,1,1"), "2800M");
        for rw in ["read", "write"] {
            self.row(
                &format!("stripe 1:1:1:1, {rw} 128k"),
                4.0 * SLOW,
                0.99,
                &format!("--rw {rw} --bs 128k --qd 32"),
            );
        }
        self.drop();
    }

    /// A mirror reads from both legs and writes as fast as one of them.
    fn mirrors(&mut self) {
        for (layout, reads) in [("single", 1.0), ("mirror", 2.0)] {
            let legs = match layout {
                "mirror" => format!("mirror {0} {0}", drive(SLOW)),
                _ => drive(SLOW),
            };
            self.make(&legs, "900M");
            for (rw, bs, qd, legs) in [
                // The first writes find the bitmap cold.
                ("write", "4M", 4, 1.0),
                ("write", "128k", 32, 1.0),
                ("randwrite", "64k", 32, 1.0),
                ("read", "4M", 4, reads),
                ("read", "128k", 32, reads),
                ("randread", "64k", 32, reads),
            ] {
                let words = format!("--rw {rw} --bs {bs} --qd {qd}");
                self.row(&format!("{layout}, {rw} {bs}"), SLOW * legs, 0.99, &words);
            }
            self.drop();
        }
    }

    fn make(&mut self, pool: &str, size: &str) {
        let head = &self.head;
        head.cli(&format!("pool create tank {pool}"));
        head.cli(&format!("volume create tank/v --size {size} --block 4096"));
        // Its host exists from the first pool on.
        for command in load::allow(&["v"]) {
            head.try_cli(&command);
        }
        let plan = head.json("plan --seconds 0");
        self.planned =
            [2, 3].map(|load| plan[0]["predictions"][load]["mbps"].as_f64().expect("a prediction"));
    }

    fn drop(&self) {
        self.head.cli("pool destroy tank --force --yes");
    }

    fn weights(&self) -> String {
        let pool = self.head.json("pool show tank");
        let weights = pool["zones"][0]["weights"].as_array().cloned().unwrap_or_default();
        weights.iter().map(|w| w["weight"].to_string()).collect::<Vec<_>>().join(":")
    }

    /// Measures one load against what the drives allow.
    fn row(&mut self, name: &str, allowed: f64, wanted: f64, words: &str) {
        let target = load::target(&self.head, load::Protocol::Nvme, "v");
        let mut command = self.head.net.command(judge::binary());
        command.args(["bench", "--json", "--force", "--ramp", "1", "--seconds", &self.seconds.to_string()]);
        command.args(words.split_whitespace()).args(target.split_whitespace());
        let child = command.stdout(Stdio::piped()).spawn().expect("the load starts");
        pin(child.id(), CLIENT_CORE);
        let output = child.wait_with_output().expect("the load ends");
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!((output.status.success(), &report["errors"]), (true, &0.into()), "{report}");
        let rate = report["total"]["mb_per_s"].as_f64().expect("a rate");
        let share = rate / allowed;
        // What fills these drives is bytes, so that the prediction for 128 KiB holds for larger commands too.
        let planned = self.planned[usize::from(words.contains("write"))];
        let mark = match (share < wanted, (rate / planned - 1.0).abs() > APART) {
            (true, _) => "  BELOW",
            (false, true) => "  NOT AS PLANNED",
            (false, false) => "",
        };
        self.failed |= !mark.is_empty();
        println!("{name:<44} {allowed:>10.0} {rate:>10.1} {share:>7.3} {wanted:>7.2} {planned:>10.0}{mark}");
    }
}
