//! Mirrors of four legs, with the program itself under load.

use crate::daemon::{Daemon, until};
use std::process::{Child, Command, Stdio};

const IQN: &str = "iqn.2026-01.test:loader";

/// Gives the volume to our load generator; portal and target.
pub fn export(daemon: &Daemon) -> (String, String) {
    daemon.cli(&format!("host add loader --iqn {IQN}"));
    daemon.cli("export tank/v --host loader");
    let portal = daemon.portal("iscsi");
    (portal, daemon.status()["system"]["iqn"].as_str().expect("a name").to_string())
}
pub fn bench(portal: &str, target: &str, words: &str) -> Child {
    bench_at(&format!("iscsi://{portal}/{target}/0"), &format!("--iqn {IQN} {words}"))
}
/// The same of any volume, by the names that the words say.
pub fn bench_at(url: &str, words: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    command.args(["bench", "--target", url, "--json"]).args(words.split(' '));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}
/// What hosts wrote: labels, records and bitmaps lie before and behind.
pub fn data(path: &String) -> Vec<u8> {
    std::fs::read(path).expect("a drive")[8 << 20..64 << 20].to_vec()
}

#[test]
fn a_mirror_of_four_legs_loses_two_under_load_and_gets_them_back() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let drives: Vec<String> = ["a", "b", "c", "d"].iter().map(|name| daemon.file(name, 96)).collect();
    daemon.cli(&format!("pool create tank mirror {}", drives.join(" ")));
    daemon.cli("volume create tank/v --size 32M");
    let (portal, target) = export(&daemon);
    let bench = |words: &str| bench(&portal, &target, words);
    let load = bench("--rw randrw --force --verify --prepare --read-back --seconds 8 --qd 8");
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
    let first = data(&drives[0]);
    assert!(first.iter().any(|b| *b != 0), "something was written there");
    assert!(drives[1..].iter().all(|path| data(path) == first), "legs differ");
}

#[test]
fn drives_are_replaced_removed_and_added_under_load_and_over_a_kill() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| daemon.file(name, 96));
    daemon.cli(&format!("pool create tank mirror {a} {b}"));
    daemon.cli("volume create tank/v --size 32M");
    let (portal, target) = export(&daemon);
    let load =
        bench(&portal, &target, "--rw randrw --force --verify --prepare --read-back --seconds 8 --qd 8");
    std::thread::sleep(std::time::Duration::from_secs(2));
    let legs = |daemon: &Daemon| {
        let pools = daemon.json("pool show tank");
        let legs = pools["arrays"][0]["legs"].as_array().expect("legs").clone();
        let leg = |l: &serde_json::Value| {
            format!("{} {}", l["path"].as_str().unwrap_or(""), l["state"].as_str().unwrap_or(""))
        };
        legs.iter().map(leg).collect::<Vec<_>>()
    };
    let optimal = |paths: &[&String]| paths.iter().map(|p| format!("{p} optimal")).collect::<Vec<_>>();
    daemon.cli(&format!("drive replace {a} {c}"));
    assert_eq!(legs(&daemon)[..2], optimal(&[&a, &b]), "both serve while the new one is copied");
    until("the old one has left", || legs(&daemon) == optimal(&[&b, &c]));
    daemon.cli(&format!("pool add tank leg {a}"));
    until("three are in sync", || legs(&daemon) == optimal(&[&b, &c, &a]));
    daemon.cli(&format!("drive rm {b}"));
    assert_eq!(legs(&daemon), optimal(&[&c, &a]));
    assert!(daemon.refused(&format!("drive rm {c}")).contains("one drive in sync"));
    let done = load.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));

    // Slow enough that the kill finds it on its way.
    daemon.cli(&format!("drive shape {c} --mbps-max 2"));
    daemon.cli(&format!("drive replace {c} {d}"));
    let shown = daemon.cli("status");
    assert!(shown.contains(&format!("resync of {d}")), "{shown}");
    daemon.signal("-KILL");
    daemon.start(&[]);
    until("the old one has left", || legs(&daemon) == optimal(&[&a, &d]));
    until("its label is gone", || {
        daemon.events().iter().any(|e| e.ends_with("it can be used again") && e.contains(&c))
    });
    let story = daemon.events();
    let told = [
        format!("pool tank: {d} takes the place of {c}, which serves until everything is copied"),
        format!("drive {d}: it is in sync in pool tank"),
        format!("drive {c}: it leaves pool tank: {d} has taken its place"),
        format!("drive {c}: its label of pool tank is taken away: it can be used again"),
    ];
    let steps: Vec<Option<usize>> = told.iter().map(|t| story.iter().position(|e| e == t)).collect();
    assert!(steps.iter().all(Option::is_some) && steps.is_sorted(), "{steps:?} {story:#?}");
    assert_eq!(daemon.signal("-TERM").code(), Some(0));
    assert!(data(&a).iter().any(|b| *b != 0), "something was written there");
    assert!(data(&a) == data(&d), "legs differ");
}

#[test]
fn a_leg_that_is_taken_out_while_it_is_copied_has_no_errors() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let [a, b, c] = ["a", "b", "c"].map(|name| daemon.file(name, 96));
    daemon.cli(&format!("pool create tank mirror {a} {b}"));
    daemon.cli(&format!("drive shape {b} --mbps-max 2"));
    daemon.cli(&format!("drive replace {b} {c}"));
    // Copies to it are under way for a second each, and are not waited for once it is out.
    daemon.cli(&format!("drive shape {c} --latency-us 1000000"));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    daemon.cli(&format!("drive fail {c}"));
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let drive = daemon.json(&format!("drive show {c}"));
    assert_eq!((drive["errors"].as_u64(), drive["state"].as_str()), (Some(0), Some("failed")), "{drive}");
}
