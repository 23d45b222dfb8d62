//! Our load generator with SPDK's NVMe/TCP target, without options.

use judge::peers::{Peer, SPDK_HINT, spdk};
use judge::{Head, binary, load};
use lab::skipped;
use serde_json::Value;
use std::io::Write;
use std::process::Output;

/// Whether there is no SPDK here: says so on a line that `make test` repeats at its end.
fn lacks_spdk(test: &str) -> bool {
    let Err(why) = spdk("nvmf_tgt") else { return false };
    writeln!(std::io::stdout(), "SKIPPED {test}: {why}. Next: {SPDK_HINT}").ok();
    true
}

#[test]
fn our_load_generator_is_a_guest_of_spdk() {
    let test = "our load generator at SPDK's target";
    if skipped(test) || lacks_spdk(test) {
        return;
    }
    // A network and a folder; no daemon of ours runs in it.
    let place = Head::prepare("spdk");
    let peer = Peer::spdk_nvmf(&place.net, &place.dir, 4430).unwrap_or_else(|why| panic!("{why}"));
    let bench = |url: &str, words: &str| -> Output {
        let mut command = place.net.command(binary());
        command.args(["bench", "--seconds", "0.5", "--ramp", "0.2"]).args(words.split_whitespace());
        command.args(load::names(url).split_whitespace()).output().expect("the load ends")
    };
    let report = |url: &str, words: &str| -> Value {
        let done = bench(url, &format!("{words} --json"));
        assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
        let report: Value = serde_json::from_slice(&done.stdout).expect("a report");
        assert_eq!(
            (&report["end"], &report["errors"]),
            (&"completed".into(), &0.into()),
            "{words}: {report}"
        );
        assert!(report["total"]["ops"].as_u64().is_some_and(|n| n > 0), "{words}: {report}");
        report
    };
    // Its queues have 128 entries, so they hold 127 commands.
    for (words, depth) in [
        ("--rw randread --qd 1", 1),
        ("--rw randread --qd 128", 127),
        ("--rw randread --connections 4 --qd 1023", 127),
        ("--rw randwrite --qd 32", 32),
        ("--rw read --bs 128k --qd 32 --digests", 32),
        ("--rw write --bs 128k --qd 32 --digests", 32),
    ] {
        let report = report(&peer.url, words);
        assert_eq!(report["depth"], depth, "{words}");
        let asked: u64 =
            words.split("--qd ").nth(1).and_then(|w| w.split(' ').next()?.parse().ok()).expect("--qd");
        assert_eq!(report["depth_asked"], asked, "{words}");
        assert!((0.45..0.7).contains(&report["seconds"].as_f64().expect("a time")), "{words}: {report}");
    }
    // What is read is what was written: on the namespace that keeps it.
    let kept = format!("{}/2", peer.url.strip_suffix("/1").expect("namespace 1"));
    let verified = report(&kept, "--rw randrw --verify --prepare --read-back --qd 128 --region 16M");
    assert!(verified["verified_blocks"].as_u64().is_some_and(|n| n >= 4096), "{verified}");
    let said = bench(&peer.url, "--rw randread --qd 128");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said.matches("127 on each connection instead of 128").count(), 1, "{said}");
}
