//! Drives that hang from the start on, with the finished program: `shapes` of head.toml, and `shape:hang@` in orders.

use crate::daemon::{Daemon, until};
use std::fs::{self, File};
use std::io::Write;

#[test]
fn a_leg_that_hangs_at_a_start_is_out_and_is_back_once_it_answers() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let [a, b] = [daemon.file("a", 96), daemon.file("b", 96)];
    daemon.cli(&format!("pool create tank mirror {a} {b}"));
    daemon.cli("volume create tank/v --size 16M");
    assert_eq!(daemon.signal("-TERM").code(), Some(0));
    let config = daemon.path("head.toml");
    let mut file = File::options().append(true).open(config).expect("opened");
    writeln!(file, "shapes = [\"shape:hang@{b}\"]").expect("written");

    daemon.start(&[]);
    until("the pool is served without it", || daemon.status()["health"] == "degraded");
    let reasons = daemon.reasons().join("\n");
    assert!(reasons.contains(&format!("millrace drive shape {b} --clear")), "{reasons}");
    assert!(reasons.contains("it cannot be read") && !reasons.contains("was not found"), "{reasons}");
    let events = daemon.events().join("\n");
    assert!(events.contains(&format!("{b} cannot be read")), "{events}");
    daemon.cli(&format!("drive shape {b} --clear"));
    until("it is back by itself", || daemon.status()["health"] == "optimal");
}

#[test]
fn an_order_that_names_a_drive_that_hangs_is_refused_with_words() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let [a, b] = [daemon.file("a", 96), daemon.file("b", 96)];
    let words = daemon.refused(&format!("pool create tank mirror {a} shape:hang@{b}"));
    assert!(words.contains(&b), "{words}");
    // It keeps nothing of it.
    daemon.cli(&format!("pool create tank mirror {a} {b}"));
    assert!(fs::read_to_string(daemon.path("head.toml")).is_ok_and(|text| !text.contains("shape")));
}

#[test]
fn a_pool_whose_drives_all_hang_by_their_shapes_says_so() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let [a, b] = [daemon.file("a", 96), daemon.file("b", 96)];
    daemon.cli(&format!("pool create tank mirror {a} {b}"));
    assert_eq!(daemon.signal("-TERM").code(), Some(0));
    let mut file = File::options().append(true).open(daemon.path("head.toml")).expect("opened");
    writeln!(file, "shapes = [\"shape:hang@{a}\", \"shape:hang@{b}\"]").expect("written");

    daemon.start(&[]);
    until("the pool is away", || daemon.reasons().join("").contains("cannot be read"));
    let reasons = daemon.reasons().join("\n");
    let steps = format!(
        "[millrace drive shape {a} --clear, then millrace drive shape {b} --clear, then millrace pool import tank]"
    );
    assert!(reasons.contains(&steps), "{reasons}");
    daemon.cli(&format!("drive shape {a} --clear"));
    daemon.cli(&format!("drive shape {b} --clear"));
    // It may have been imported by itself meanwhile.
    daemon.ask(&["pool", "import", "tank"]);
    until("it is back", || daemon.status()["health"] == "optimal");
}
