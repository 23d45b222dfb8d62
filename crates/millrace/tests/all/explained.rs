//! What `explain` and `plan` say of a pool that works, whose drives share a link that shapes make. The link is narrow, so that it
//! is full on a machine with other work too.

use crate::daemon::{Daemon, Load, until};
use std::process::{Command, Stdio};

const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000000000e";
/// MB/s that pass the link, and what each of the four drives could do.
const LINK: f64 = 60.0;
const DRIVE: &str = "shape:mbps-max=40,uplink=1,uplink-mbps=60@ram:64M";

#[test]
fn a_link_that_a_running_pool_fills_is_planned_and_explained_by_its_name() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    daemon.cli(&format!("host add loader --nqn {NQN}"));
    let portal = daemon.portal("nvme");
    // Four drives that are called the same: told apart by their labels.
    daemon.cli(&format!("pool create tank {}", [DRIVE; 4].join(" ")));
    daemon.cli("volume create tank/v --size 128M");
    daemon.cli("export tank/v --host loader");
    let plan = daemon.json("plan --seconds 0");
    let read = &plan[0]["predictions"][2];
    assert_eq!(
        (read["mbps"].as_f64(), read["limit"]["message"].as_str()),
        (Some(LINK), Some("link 1 of the shapes: 60 MB/s"))
    );

    let nqn = daemon.status()["system"]["nqn"].as_str().expect("a name").to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    command.args(["bench", "--target", &format!("nvme://{portal}/{nqn}/1"), "--host-nqn", NQN, "--json"]);
    command.args("--rw read --bs 128k --qd 32 --seconds 300".split(' '));
    let _load = Load(
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs"),
    );
    let told = |name: &str| {
        let explained = daemon.json(&format!("explain {name}"));
        let findings = explained["findings"].as_array().expect("a list").clone();
        findings.into_iter().find(|f| f["kind"] == "uplink").map(|f| f.to_string())
    };
    until("the link is told to be full", || {
        told("").is_some_and(|text| ["link 1", "4 drives share it", "of 60"].iter().all(|w| text.contains(w)))
    });
    // So is it of what depends on it.
    for name in ["tank", "tank/v", "loader"] {
        until(name, || told(name).is_some());
    }
}
