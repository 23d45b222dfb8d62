//! Our figures beside those of SPDK and tgt; `make peers` starts it: `peers [--rounds N] [--seconds N]`.
//!
//! Every target has a null volume and runs on one core, our client on the other. A round measures each target once, in
//! turn; the medians of the rounds are shown, and the median of the rounds' ratios. There is no pass or fail: the ratios show
//! how the product compares on this machine. Ends within five minutes, whatever the machine.

use judge::measure::{self, CLIENT_CORE, Run, Shown, TARGET_CORE, Time, median, middle, pin, spread};
use judge::peers::{Peer, SPDK_HINT, TGT_HINT};
use judge::{Head, load};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Loads of both protocols: name, words of `millrace bench`, and what is shown. Data that are read need no response behind them: SPDK's
/// default is to send none (`c2h_success`), and the standard allows that to hosts without flow control (NVMe/TCP 3.6.2.8).
const NVME: &[(&str, &str, Shown)] = &[
    ("NVMe 4K randread 1 × 1, latency", "--rw randread --bs 4k --qd 1 --disable-sqflow", Shown::Latency),
    ("NVMe 4K randread 1 × 32", "--rw randread --bs 4k --qd 32 --disable-sqflow", Shown::Rate),
    ("NVMe 4K randread 4 × 4", "--rw randread --bs 4k --connections 4 --qd 4 --disable-sqflow", Shown::Rate),
    (
        "NVMe 4K randread 4 × 32",
        "--rw randread --bs 4k --connections 4 --qd 32 --disable-sqflow",
        Shown::Rate,
    ),
    (
        "NVMe 4K randread 16 × 8",
        "--rw randread --bs 4k --connections 16 --qd 8 --disable-sqflow",
        Shown::Rate,
    ),
    ("NVMe 4K randwrite 1 × 32", "--rw randwrite --bs 4k --qd 32", Shown::Rate),
    ("NVMe 4K randwrite 4 × 32", "--rw randwrite --bs 4k --connections 4 --qd 32", Shown::Rate),
    ("NVMe 128K read 1 × 32", "--rw read --bs 128k --qd 32 --disable-sqflow", Shown::Large),
    ("NVMe 128K write 1 × 32", "--rw write --bs 128k --qd 32", Shown::Large),
];
const ISCSI: &[(&str, &str, Shown)] = &[
    ("iSCSI 4K randread 1 × 1, latency", "--rw randread --bs 4k --qd 1", Shown::Latency),
    ("iSCSI 4K randread 1 × 32", "--rw randread --bs 4k --qd 32", Shown::Rate),
    ("iSCSI 4K randread 4 × 32", "--rw randread --bs 4k --connections 4 --qd 32", Shown::Rate),
    ("iSCSI 4K randwrite 4 × 32", "--rw randwrite --bs 4k --connections 4 --qd 32", Shown::Rate),
];
/// After this much time no further row is begun: with the longest row the program ends within five minutes.
const BUDGET: Duration = Duration::from_secs(250);
const USAGE: &str = "peers: it takes --rounds N, --seconds N of each measurement (0.5 to 5)";

/// A target in a row: ours has no process of its own to stop.
struct Side<'a> {
    name: &'static str,
    words: String,
    pid: u32,
    peer: Option<&'a Peer>,
}

fn main() -> ExitCode {
    let began = Instant::now();
    let (mut rounds, mut seconds) = (3, 0.8);
    let words: Vec<String> = std::env::args().skip(1).collect();
    for pair in words.chunks(2) {
        match pair {
            [name, n] if name == "--rounds" && n.parse().is_ok_and(|n: usize| n > 0) => {
                rounds = n.parse().expect("seen");
            }
            [name, n] if name == "--seconds" && n.parse().is_ok_and(|n: f64| (0.5..=5.0).contains(&n)) => {
                seconds = n.parse().expect("seen");
            }
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let head = measure::head("peers");
    head.cli("volume create tank/v --size 64G --block 4096");
    load::allow(&["v"]).iter().for_each(|command| drop(head.cli(command)));
    let mut missing = vec![];
    let mut found = |peer: Result<Peer, String>, what: &str, hint: &str| match peer {
        Ok(peer) => {
            pin(peer.pid(), TARGET_CORE);
            peer.run(false);
            Some(peer)
        }
        Err(why) => {
            missing.push(format!("not measured: {what}: {why}. Next: {hint}"));
            None
        }
    };
    let spdk = found(Peer::spdk_nvmf(&head.net, &head.dir, 4430), "SPDK over NVMe/TCP", SPDK_HINT);
    let spdk_iscsi = found(Peer::spdk_iscsi(&head.net, &head.dir, 3270), "SPDK over iSCSI", SPDK_HINT);
    let tgt = found(Peer::tgt(&head.net, &head.dir, 3280), "tgt over iSCSI", TGT_HINT);
    println!(
        "\ntarget on core {TARGET_CORE}, client on core {CLIENT_CORE}, null volumes, {rounds} rounds of {seconds} s, all targets \
         in turn; medians.\nRatio: ours to theirs, of rates; of latencies theirs to ours; above 1 we are ahead. Busy: target + \
         client.\n*: neither was busy, so something else was the limit, often other work on this machine.\n"
    );
    println!(
        "{:<34} {:<9} {:>10} {:>8} {:>13}  {:<10}",
        "load", "target", "median", "ratio", "spread", "busy"
    );
    let time = Time { ramp: 0.3, seconds };
    let mut left = 0;
    for (rows, protocol, peers) in [
        (NVME, load::Protocol::Nvme, [spdk.as_ref(), None]),
        (ISCSI, load::Protocol::Iscsi, [spdk_iscsi.as_ref(), tgt.as_ref()]),
    ] {
        let ours = load::target(&head, protocol, "v");
        let ours = Side { name: "Millrace", words: ours, pid: head.pid(), peer: None };
        let theirs = peers.into_iter().flatten().map(|peer| Side {
            name: peer.name,
            words: load::names(&peer.url),
            pid: peer.pid(),
            peer: Some(peer),
        });
        let sides: Vec<Side<'_>> = std::iter::once(ours).chain(theirs).collect();
        for (name, words, shown) in rows {
            if began.elapsed() > BUDGET {
                left += 1;
                continue;
            }
            row(&head, name, words, *shown, &sides, rounds, time);
        }
    }
    println!();
    if left > 0 {
        println!("not measured: {left} loads, as the time is up. Next: fewer --rounds");
    }
    missing.iter().for_each(|line| println!("{line}"));
    ExitCode::SUCCESS
}

/// Measures a load on every target, in turn, and shows it.
fn row(head: &Head, name: &str, words: &str, shown: Shown, sides: &[Side<'_>], rounds: usize, time: Time) {
    let mut runs: Vec<Result<Vec<Run>, String>> = sides.iter().map(|_| Ok(vec![])).collect();
    for _ in 0..rounds {
        for (side, runs) in sides.iter().zip(&mut runs) {
            let Ok(done) = runs else { continue };
            if let Some(peer) = side.peer {
                peer.run(true);
            }
            let run = measure::load(&head.net, side.pid, std::slice::from_ref(&side.words), words, time);
            if let Some(peer) = side.peer {
                peer.run(false);
            }
            match run {
                Ok(run) => done.push(run),
                Err(why) => *runs = Err(why),
            }
        }
    }
    let ours = runs[0].clone();
    for (i, (side, runs)) in sides.iter().zip(&runs).enumerate() {
        let name = if i == 0 { name } else { "" };
        let runs = match runs {
            Ok(runs) => runs,
            Err(why) => {
                println!("{name:<34} {:<9} {why}", side.name);
                continue;
            }
        };
        let (ratio, width) = match &ours {
            Ok(ours) if i > 0 => {
                let ratios = ratios(shown, ours, runs);
                (format!("{:.2}", middle(&ratios)), spread(&ratios, 2))
            }
            _ => (String::new(), String::new()),
        };
        println!(
            "{name:<34} {:<9} {:>10} {ratio:>8} {width:>13}  {:.2}+{:.2}{}",
            side.name,
            shown.of(runs),
            median(runs, |r| r.target),
            median(runs, |r| r.client),
            if disturbed(shown, runs) { " *" } else { "" },
        );
    }
}

/// Whether neither end had its core to itself: then something else was the limit, and the rate says nothing.
fn disturbed(shown: Shown, runs: &[Run]) -> bool {
    let idle = |share: f64| share < 0.9;
    shown != Shown::Latency && idle(median(runs, |r| r.target)) && idle(median(runs, |r| r.client))
}

/// Of each round, how much better ours is.
fn ratios(shown: Shown, ours: &[Run], theirs: &[Run]) -> Vec<f64> {
    let of = |(ours, theirs): (&Run, &Run)| {
        let (ours, theirs) = (shown.figure(ours), shown.figure(theirs));
        if shown == Shown::Latency { theirs / ours } else { ours / theirs }
    };
    ours.iter().zip(theirs).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_above_one_is_ours_for_rates_and_for_latencies() {
        let run = |iops: f64| Run { iops, mb_per_s: iops / 2.0, mean_us: 1e6 / iops, ..Run::default() };
        let (ours, theirs) = ([run(200.0), run(90.0)], [run(100.0), run(180.0)]);
        for shown in [Shown::Rate, Shown::Large, Shown::Latency] {
            assert_eq!(ratios(shown, &ours, &theirs), [2.0, 0.5], "{shown:?}");
        }
    }

    #[test]
    fn a_rate_that_neither_end_limited_is_marked() {
        let run = |target, client| [Run { target, client, ..Run::default() }; 3];
        assert!(disturbed(Shown::Rate, &run(0.5, 0.7)));
        assert!(!disturbed(Shown::Rate, &run(0.98, 0.1)) && !disturbed(Shown::Large, &run(0.1, 0.98)));
        assert!(!disturbed(Shown::Latency, &run(0.5, 0.5)), "one command at a time leaves both idle");
    }

    #[test]
    fn all_rows_fit_into_the_time_with_every_target_there() {
        // A measurement takes its time and about half a second to start, connect and end.
        let one = 0.3 + 0.8 + 0.5;
        let runs = 3 * (2 * NVME.len() + 3 * ISCSI.len());
        assert!(one * runs as f64 + 30.0 < BUDGET.as_secs_f64(), "{} s", one * runs as f64);
    }
}
