//! Mirrors of four legs, with the program itself under load.

mod daemon;

use daemon::{Daemon, until};
use std::process::{Command, Stdio};

#[test]
fn a_mirror_of_four_legs_loses_two_under_load_and_gets_them_back() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let drives: Vec<String> = ["a", "b", "c", "d"].iter().map(|name| daemon.file(name, 96)).collect();
    daemon.cli(&format!("pool create tank mirror {}", drives.join(" ")));
    daemon.cli("volume create tank/v --size 32M");
    let iqn = "iqn.2026-01.test:loader";
    daemon.cli(&format!("host add loader --iqn {iqn}"));
    daemon.cli("export tank/v --host loader");
    let portal = daemon.portal("iscsi");
    let target = daemon.status()["system"]["iqn"].as_str().expect("a name").to_string();
    let bench = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        let url = format!("iscsi://{portal}/{target}/0");
        command.args(["bench", "--target", &url, "--iqn", iqn, "--json"]).args(words.split(' '));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
    };
    let load = bench("--rw randrw --verify --prepare --read-back --seconds 8 --qd 8");
    std::thread::sleep(std::time::Duration::from_secs(2));
    let legs = || {
        let pools = daemon.json("pool show tank");
        let legs = pools["arrays"][0]["legs"].as_array().expect("legs").clone();
        legs.iter().map(|l| l["state"].as_str().unwrap_or("").to_string()).collect::<Vec<_>>()
    };
    for drive in &drives[1..3] {
        daemon.cli(&format!("drive fail {drive}"));
    }
    assert_eq!(legs(), ["optimal", "failed", "failed", "optimal"]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    for drive in &drives[1..3] {
        daemon.cli(&format!("drive return {drive}"));
    }
    until("all legs are in sync", || legs().iter().all(|state| state == "optimal"));
    let done = load.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));

    // The two that never left may go now; the last one that is in sync may not.
    for drive in [&drives[0], &drives[3], &drives[1]] {
        daemon.cli(&format!("drive fail {drive}"));
    }
    assert!(daemon.refused(&format!("drive fail {}", drives[2])).contains("last"));
    for drive in [&drives[0], &drives[3], &drives[1]] {
        daemon.cli(&format!("drive return {drive}"));
    }
    until("all legs are in sync again", || legs().iter().all(|state| state == "optimal"));
    assert_eq!(daemon.signal("-TERM").code(), Some(0));
    // Labels, records and bitmaps lie before and behind; every leg has the same data.
    let data = |path: &String| std::fs::read(path).expect("a drive")[8 << 20..64 << 20].to_vec();
    let first = data(&drives[0]);
    assert!(first.iter().any(|b| *b != 0), "something was written there");
    assert!(drives[1..].iter().all(|path| data(path) == first), "legs differ");
}
