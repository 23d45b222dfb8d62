//! Drives that are not what they were, or not what is needed: each is refused, or handled, with words that name it.

use crate::daemon::{Daemon, said, until};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// A mirror of two files with a volume.
fn mirror() -> (Daemon, [String; 2]) {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let drives = [daemon.file("a", 96), daemon.file("b", 96)];
    daemon.cli(&format!("pool create tank mirror {}", drives.join(" ")));
    daemon.cli("volume create tank/v --size 16M");
    (daemon, drives)
}
fn cut(path: &str, mib: u64) {
    File::options().write(true).open(path).and_then(|f| f.set_len(mib << 20)).expect("it has another size");
}
fn is_optimal(daemon: &Daemon) -> bool {
    daemon.status()["health"] == "optimal"
}

/// A block device over a file; None where this machine has none to give.
struct Loop(String);

impl Loop {
    fn new(file: &str, words: &[&str]) -> Option<Self> {
        let made = Command::new("losetup").args(words).args(["--find", "--show", file]).output().ok()?;
        let path = String::from_utf8(made.stdout).ok()?.trim().to_string();
        (made.status.success() && Path::new(&path).exists()).then_some(Self(path))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn drives_that_change_places_are_known_by_their_labels() {
    let (mut daemon, [a, b]) = mirror();
    assert_eq!(daemon.signal("-TERM").code(), Some(0));
    let elsewhere = format!("{a}.moved");
    for (from, to) in [(&a, &elsewhere), (&b, &a), (&elsewhere, &b)] {
        fs::rename(from, to).expect("moved");
    }
    daemon.start(&[]);
    until("the pool is well", || is_optimal(&daemon));
    assert_eq!(daemon.reasons(), Vec::<String>::new());
}

#[test]
fn of_two_copies_of_a_drive_none_is_taken_by_chance() {
    let (daemon, [a, b]) = mirror();
    let copy = format!("{a}.copy");
    fs::copy(&a, &copy).expect("copied");
    // While the pool is here a copy is a drive that holds something.
    let words = daemon.refused(&format!("pool add tank spare {copy}"));
    assert!(words.contains("is labelled as a drive of pool tank"), "{words}");
    daemon.cli("pool release tank");
    let words = daemon.refused(&format!("pool import tank --drive {a} --drive {b} --drive {copy}"));
    assert!(words.contains("carry the same label: one is a copy of the other"), "{words}");
    assert!(words.contains(&copy) && words.contains("take one of them away"), "{words}");
    daemon.cli(&format!("pool import tank --drive {a} --drive {b}"));
    until("the pool is well", || is_optimal(&daemon));
}

#[test]
fn a_drive_that_was_cut_off_stays_out_until_it_has_its_size_and_is_then_copied() {
    let (mut daemon, [_, b]) = mirror();
    assert_eq!(daemon.signal("-TERM").code(), Some(0));
    cut(&b, 80);
    daemon.start(&[]);
    until("it is told", || daemon.reasons().join("\n").contains(&b));
    assert_eq!(daemon.status()["health"], "degraded");
    let told = daemon.reasons().join("\n");
    let words = "it is too small: 83886080 of its 100663296 bytes are there";
    let next = format!("[truncate -s 100663296 {b}, then millrace drive return {b}]");
    assert!(told.contains(words) && told.contains(&next), "{told}");
    let words = daemon.refused(&format!("drive return {b}"));
    assert!(words.contains("it is too small: 83886080 of its 100663296 bytes are there"), "{words}");
    cut(&b, 96);
    daemon.cli(&format!("drive return {b}"));
    until("the pool is well", || is_optimal(&daemon));
}

#[test]
fn a_file_that_is_removed_under_the_daemon_is_told_while_its_contents_can_be_saved() {
    let (daemon, [_, b]) = mirror();
    fs::remove_file(&b).expect("removed");
    until("it is told", || daemon.reasons().join("\n").contains("its file was removed"));
    assert_eq!(daemon.status()["health"], "degraded");
    // What the next command says is done, and nothing is lost.
    let new = daemon.file("n", 96);
    daemon.cli(&format!("drive replace {b} {new}"));
    until("the pool is well", || is_optimal(&daemon));
}

#[test]
fn the_one_leg_that_has_a_file_is_not_failed_beside_one_whose_file_was_removed() {
    let (daemon, [a, b]) = mirror();
    fs::remove_file(&b).expect("removed");
    let words = daemon.refused(&format!("drive fail {a}"));
    assert!(words.contains(&format!("the file of {b} was removed")) && words.contains("--force"), "{words}");
    assert!(words.contains(&format!("drive replace {b} NEW")), "{words}");
    let legs = || daemon.status()["pools"][0]["arrays"][0]["legs"].clone();
    assert_eq!(legs()[0]["state"], "optimal");
    // The other way round nothing is lost that stays.
    daemon.cli(&format!("drive fail {b}"));
    assert_eq!(legs()[0]["state"], "optimal");
}

/// It was told as ready until it was needed.
#[test]
fn a_spare_whose_file_is_removed_under_the_daemon_is_told_and_can_be_put_in_its_place_again() {
    let (daemon, _) = mirror();
    let spare = daemon.file("s", 96);
    daemon.cli(&format!("pool add tank spare {spare}"));
    assert!(is_optimal(&daemon));
    let elsewhere = format!("{spare}.moved");
    fs::rename(&spare, &elsewhere).expect("moved");
    until("it is told", || daemon.reasons().join("\n").contains("is not at its path any more"));
    assert!(daemon.cli("pool show tank").contains("missing"));
    fs::rename(&elsewhere, &spare).expect("moved back");
    until("it is a spare again", || is_optimal(&daemon));
    fs::remove_file(&spare).expect("removed");
    until("it is told", || daemon.reasons().join("\n").contains(&format!("its spare {spare} is not there")));
    daemon.cli(&format!("drive rm {spare}"));
    assert_eq!(daemon.reasons(), Vec::<String>::new());
}

/// What the refusal says is typed as it stands there.
#[test]
fn a_drive_whose_label_is_gone_takes_its_own_place_as_the_refusal_of_its_return_says() {
    let (daemon, [_, b]) = mirror();
    daemon.cli(&format!("drive fail {b}"));
    // Somebody overwrites it: nothing of it can be believed.
    cut(&b, 0);
    cut(&b, 96);
    let words = daemon.refused(&format!("drive return {b}"));
    let next =
        words.split_once("Next: millrace ").and_then(|(_, next)| next.split_once(" (")).map(|(n, _)| n);
    assert_eq!(next, Some(&*format!("drive replace {b} {b} --force")), "{words}");
    daemon.cli(next.expect("seen above"));
    until("the pool is well", || is_optimal(&daemon));
    assert_eq!(daemon.reasons(), Vec::<String>::new());
}

#[test]
fn drives_of_another_size_are_taken_if_everything_fits() {
    let (daemon, [_, b]) = mirror();
    let (small, tiny, large) = (daemon.file("s", 64), daemon.file("t", 1), daemon.file("l", 128));
    for (order, least) in [("pool add tank spare", "96M"), (&*format!("drive replace {b}"), "96M")] {
        let words = daemon.refused(&format!("{order} {small}"));
        assert!(words.contains("has 64M") && words.contains(least), "{words}");
        let words = daemon.refused(&format!("{order} {tiny}"));
        assert!(words.contains("has 1M") && words.contains("at least 64M"), "{words}");
    }
    daemon.cli(&format!("drive replace {b} {large}"));
    until("it has taken the place", || {
        is_optimal(&daemon) && !daemon.json("pool show tank").to_string().contains(&format!("\"{b}\""))
    });
}

#[test]
fn block_devices_that_cannot_be_written_or_have_larger_blocks_are_told_apart() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    let files = ["a", "b", "c"].map(|name| daemon.file(name, 96));
    let devices = [
        Loop::new(&files[0], &["--read-only"]),
        Loop::new(&files[1], &["--sector-size", "4096"]),
        Loop::new(&files[2], &[]),
    ];
    let [Some(read_only), Some(large), Some(small)] = &devices else {
        eprintln!("skipped: this machine has no loop devices to give");
        return;
    };
    let words = daemon.refused(&format!("pool create no mirror {} {}", read_only.0, small.0));
    assert!(words.contains(&read_only.0) && words.contains("read-only"), "{words}");
    // Legs of both kinds: blocks of the larger ones, unless somebody needs the smaller.
    daemon.cli(&format!("pool create mix mirror {} {}", large.0, small.0));
    daemon.cli("volume create mix/v --size 8M");
    let words = daemon.refused("volume create mix/w --size 8M --block 512");
    assert!(words.contains("one here takes 4096") && words.contains("--block 4096"), "{words}");
    until("the pool is well", || is_optimal(&daemon));
    assert_eq!(daemon.signal("-TERM").code(), Some(0));
}

/// Drives without a name counted as one: memory of some size could be of one pool alone.
#[test]
fn memory_without_a_name_is_another_drive_each_time() {
    let mut daemon = Daemon::new();
    daemon.start(&[]);
    daemon.cli("pool create a mirror ram:128M ram:128M");
    daemon.cli("pool create b mirror ram:128M ram:128M");
    daemon.cli("pool add b spare ram:128M");
    daemon.cli("pool create c ram:kept,128M");
    daemon.cli("pool create n null:128M");
    let (code, words) = said(&daemon.ask(&["pool", "create", "d", "ram:kept,128M"]));
    assert!(code != 0 && words.contains("ram:kept,128M is a drive of pool c"), "{words}");
    let screen = daemon.ask(&["status"]).stdout;
    // Sentences go on in the next line.
    let screen = String::from_utf8(screen).expect("text").replace('│', " ");
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(screen.matches("in memory: its data is lost when the daemon ends").count(), 3, "{screen}");
    assert!(screen.contains("null drives: data is not kept"), "{screen}");
    let drives = daemon.status()["drives"].as_array().expect("a list").len();
    assert_eq!(drives, 7, "two of each mirror, a spare, and two alone");
}
