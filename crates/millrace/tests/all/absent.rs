//! A pool whose drives are away when the daemon starts: hosts wait for it, and go on where they were.

use crate::daemon::{Daemon, until};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn bench(url: &str, words: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    command.args(["bench", "--target", url, "--json"]).args(words.split(' '));
    command.args(["--iqn", "iqn.2026-01.test:loader", "--host-nqn", "nqn.2026-01.test:loader"]);
    // A session is given up once an operation is older than that: on a machine that compiles, a disk may take seconds.
    command.args(["--patience", "120"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

/// Waits for the end of a load, which must have found everything as it was written.
fn ends_well(load: Child) {
    let done = load.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert!(!report.is_null());
}

#[test]
fn initiators_of_both_protocols_wait_for_a_pool_that_is_away_and_go_on_when_it_is_back() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let drives = [daemon.file("a", 96), daemon.file("b", 96)];
    daemon.cli(&format!("pool create tank mirror {}", drives.join(" ")));
    daemon.cli("host add loader --iqn iqn.2026-01.test:loader --nqn nqn.2026-01.test:loader");
    for name in ["tank/v", "tank/w"] {
        daemon.cli(&format!("volume create {name} --size 16M"));
        daemon.cli(&format!("export {name} --host loader"));
    }
    let (iscsi, nvme) = (daemon.portal("iscsi"), daemon.portal("nvme"));
    let status = daemon.status();
    let name = |key: &str| status["system"][key].as_str().expect("a name").to_string();
    let lun = |n: u16| format!("iscsi://{iscsi}/{}/{n}", name("iqn"));
    let urls = [lun(0), format!("nvme://{nvme}/{}/2", name("nqn"))];
    for url in &urls {
        ends_well(bench(url, "--rw randrw --force --verify --prepare --read-back --seconds 1 --qd 4"));
    }
    let numbers = |daemon: &Daemon| {
        let volumes = daemon.status()["volumes"].as_array().expect("a list").clone();
        let one = |v: &serde_json::Value| {
            ["name", "uuid", "nguid", "naa", "nsid", "bytes", "exports"].map(|key| v[key].clone())
        };
        volumes.iter().map(one).collect::<Vec<_>>()
    };
    let before = numbers(&daemon);
    assert_eq!(before.len(), 2);

    assert_eq!(daemon.signal("-TERM").code(), Some(0));
    let elsewhere = |path: &str| format!("{path}.away");
    drives.iter().for_each(|d| std::fs::rename(d, elsewhere(d)).expect("moved"));
    daemon.start(&[]);
    let reasons = daemon.reasons().join("\n");
    assert!(reasons.contains("none of its drives was found"), "{reasons}");
    assert!(reasons.contains("hosts see 2 volumes as not ready"), "{reasons}");
    assert!(reasons.contains("then it is imported by itself"), "{reasons}");
    assert_eq!(numbers(&daemon), before);

    // What is not there is refused at once; what is not ready is waited for.
    let mut loads =
        urls.each_ref().map(|url| bench(url, "--rw randrw --force --verify --prepare --seconds 2 --qd 4"));
    let gone = bench(&lun(7), "--rw randread --seconds 1").wait_with_output().expect("it ends");
    assert!(!gone.status.success(), "there is no LUN 7");
    std::thread::sleep(Duration::from_secs(3));
    for load in &mut loads {
        assert!(load.try_wait().expect("ours").is_none(), "it waits");
    }
    let connections = daemon.status()["connections"].as_array().map_or(0, Vec::len);
    assert!(connections >= 2, "both are logged in: {connections}");

    drives.iter().for_each(|d| std::fs::rename(elsewhere(d), d).expect("moved back"));
    until("the pool is imported by itself", || daemon.status()["health"] == "optimal");
    loads.into_iter().for_each(ends_well);
    assert_eq!(numbers(&daemon), before);
}
