//! Weights that `pool create --measure` finds on drives of different speed, with the program itself. Rates are small
//! and compared with each other, as the machine may have other work.

use crate::daemon::{Daemon, millrace, said};

const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000000000a";
const SLOW: &str = "shape:mbps-max=20@ram:96M";
const FAST: &str = "shape:mbps-max=40@ram:96M";

/// MB/s of sequential reads from a new volume on a slow and two fast drives, and the weights in use.
fn rate(daemon: &Daemon, portal: &str, weights: &str) -> (f64, Vec<f64>) {
    daemon.cli(&format!("pool create tank {SLOW} {FAST} {FAST} {weights}"));
    daemon.cli("volume create tank/v --size 128M");
    daemon.cli("export tank/v --host loader");
    let zones = daemon.json("pool show tank")["zones"][0]["weights"].as_array().expect("a zone").clone();
    let nqn = daemon.status()["system"]["nqn"].as_str().expect("a name").to_string();
    let url = format!("nvme://{portal}/{nqn}/1");
    let words = ["bench", "--target", &url, "--host-nqn", NQN, "--json"];
    let load = "--rw read --bs 128k --qd 32 --ramp 1 --seconds 3".split(' ').collect::<Vec<_>>();
    let output = millrace(&[&words[..], &load].concat());
    assert!(output.status.success(), "{}", said(&output).1);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    daemon.cli("pool destroy tank --force");
    let weights = zones.iter().map(|z| z["weight"].as_f64().expect("a number")).collect();
    (report["total"]["mb_per_s"].as_f64().expect("a number"), weights)
}

#[test]
fn measured_weights_follow_the_drives_and_are_faster_than_equal_ones() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    daemon.cli(&format!("host add loader --nqn {NQN}"));
    let portal = daemon.portal("nvme");
    let (measured, weights) = rate(&daemon, &portal, "--measure");
    let (equal, ones) = rate(&daemon, &portal, "--weights 1,1,1");
    assert_eq!(ones, [1.0; 3]);
    for fast in &weights[1..] {
        let ratio = fast / weights[0];
        assert!(
            (1.5..=2.75).contains(&ratio),
            "a drive twice as fast has {ratio} times the share: {weights:?}"
        );
    }
    // The sum of 100 against three times the slowest.
    let gain = measured / equal;
    assert!((1.3..2.0).contains(&gain), "{measured} MB/s against {equal}: {gain} times");
}

#[test]
fn a_shape_that_is_none_is_refused_by_the_name_of_its_option() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let path = daemon.file("a", 96);
    for (shape, words) in [
        ("mbps-max=100M", "mbps-max: `100M` is not a whole number from 1"),
        ("hang", "the drive did not answer in time"),
        ("colour=red", "unknown option `colour=red`"),
    ] {
        let told = daemon.refused(&format!("pool create tank shape:{shape}@{path}"));
        assert!(told.contains(words), "{told}");
    }
    daemon.cli(&format!("pool create tank shape:latency-us=100,iops-max=5000@{path}"));
    let shape = daemon.json(&format!("drive show {path}"))["shape"].clone();
    assert_eq!((&shape["latency_us"], &shape["iops_max"]), (&100.into(), &5000.into()));
    // The pool is found again by the drive's own name, and the shape is forgotten.
    assert_eq!(daemon.signal("-TERM").code(), Some(0));
    daemon.start(&[]);
    crate::daemon::until("the pool is back", || daemon.json(&format!("drive show {path}"))["role"] == "leg");
    assert!(daemon.json(&format!("drive show {path}"))["shape"].is_null());
}
