//! Mixed load on 24 drives: one is slow, one has errors, and one comes and goes.

use super::truth::{Truth, Words};
use super::{Rows, legs_equal};
use crate::load::{self, Load, Protocol, Report};
use crate::{Head, until};
use serde_json::Value;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

const MIRRORS: usize = 11;
const DRIVE_BYTES: u64 = 128 << 20;
const OUT: Words = &["failed", "offline"];
/// A leg that is on its way out, and one that is on its way back.
const GOING: Words = &["optimal", "failed", "offline"];
const COMING: Words = &["optimal", "rebuilding", "failed", "offline"];
const COPIED: Words = &["optimal", "rebuilding"];
const WELL: Words = &["optimal"];
/// The slowest answer of a read and of a write, whatever a drive does: promise 7 says 2 s and 5 s, and one more is for this
/// machine, which may be busy with other things.
const READ_MAX_S: f64 = 3.0;
const WRITE_MAX_S: f64 = 6.0;
/// Times that a drive comes back by itself before the operator helps: each return is tried later than the one before.
const RETURNS_ALONE: u32 = 2;

/// The run, for so long and at least once through everything.
pub fn mixed(length: Duration) -> Rows {
    let mut head = Head::new("soak-mixed");
    let names: Vec<String> = (0..2 * MIRRORS + 2).map(|i| format!("d{i:02}")).collect();
    let drives: Vec<String> = names.iter().map(|name| head.file(name, DRIVE_BYTES)).collect();
    let (legs, spares) = drives.split_at(2 * MIRRORS);
    let layout: Vec<String> = legs.chunks(2).map(|pair| format!("mirror {} {}", pair[0], pair[1])).collect();
    head.cli(&format!("pool create tank {}", layout.join(" ")));
    for spare in spares {
        head.cli(&format!("pool add tank spare {spare}"));
    }
    head.cli("portal add nvme 127.0.0.1:4420");
    head.cli("portal add iscsi 127.0.0.1:3260");
    let mut loads = start_loads(&head);

    let truth = Truth::default();
    let mut story = Story { head: &head, truth: &truth, spares: [&spares[0], &spares[1]], rows: Rows::new() };
    let (slow, faulty, coming) = (&drives[0], &drives[7], &drives[12]);
    let began = Instant::now();
    let mut rounds = 0;
    let early = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| truth.watch(&head));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            story.one_is_slow(slow);
            let early = settle(&head);
            while rounds == 0 || began.elapsed() < length {
                loads.iter_mut().for_each(Load::must_run);
                story.one_throws_errors(faulty, rounds);
                story.one_comes_and_goes(coming, rounds);
                rounds += 1;
            }
            early
        }));
        truth.over();
        watcher.join().expect("status was answered");
        result.unwrap_or_else(|why| std::panic::resume_unwind(why))
    });
    let mut rows = story.rows;
    let mut report = Report::default();
    loads.into_iter().for_each(|load| report.add(&load.finish()));
    let lies = truth.lies.into_inner().expect("the watcher has ended");
    assert!(
        lies.is_empty(),
        "status was not true {} times; the first:\n{}",
        lies.len(),
        lies[..lies.len().min(5)].join("\n")
    );
    assert!(
        report.read_max_s < READ_MAX_S && report.write_max_s < WRITE_MAX_S,
        "an answer took too long: {report:?}"
    );
    let late = head.memory_mib();
    assert!(late <= early + 32, "memory grew from {early} to {late} MiB");
    let most = truth.memory_mib.load(Ordering::Relaxed);
    let hedges = sum(&head.json("pool show tank")["arrays"], "hedged_reads");
    head.cli(&format!("drive shape {slow} --clear"));
    let compared = legs_equal(&mut head);
    rows.extend([
        (
            "load",
            format!("{:.0} s, {} operations by both protocols", began.elapsed().as_secs_f64(), report.ops),
        ),
        ("lost or wrong", format!("0 of {} blocks read", report.verified)),
        ("slowest answers", format!("read {:.1} s, write {:.1} s", report.read_max_s, report.write_max_s)),
        ("reads sent to another leg too", hedges.to_string()),
        ("sessions lost", report.reconnects.to_string()),
        ("status", format!("true in {} looks", truth.looks.load(Ordering::Relaxed))),
        ("memory", format!("{early} MiB at first, {most} at most, {late} at the end")),
        ("legs", format!("equal: {compared} MiB of mirrors by scrub and by reading the files")),
    ]);
    rows
}

/// Four loads: small and large, random and in order, both protocols on one volume, digests, FUA.
fn start_loads(head: &Head) -> Vec<Load> {
    load::volumes(head, "256M", "256M");
    let start = |name: &str, protocol, volume, words: &str| {
        Load::start(
            head,
            name,
            &format!("{} {words} --region 96M --prepare", load::target(head, protocol, volume)),
        )
    };
    vec![
        start("nvme-v", Protocol::Nvme, "v", "--rw randrw --mix 70 --bs 4k --qd 8 --connections 2"),
        start(
            "iscsi-v",
            Protocol::Iscsi,
            "v",
            "--rw randrw --mix 50 --bs 4k --qd 8 --digests --region-at 128M",
        ),
        start("nvme-w", Protocol::Nvme, "w", "--rw rw --mix 50 --bs 64k --qd 4 --digests"),
        start("iscsi-w", Protocol::Iscsi, "w", "--rw randrw --mix 30 --bs 16k --qd 4 --fua --region-at 128M"),
    ]
}

/// Waits until all buffers have been used, and returns the memory in use then, MiB.
fn settle(head: &Head) -> u64 {
    sleep(Duration::from_secs(10));
    head.memory_mib()
}

fn sum(arrays: &Value, key: &str) -> u64 {
    arrays.as_array().map_or(0, |all| all.iter().filter_map(|a| a[key].as_u64()).sum())
}

/// What is done to the drives, and that the head notices.
struct Story<'a> {
    head: &'a Head,
    truth: &'a Truth,
    spares: [&'a str; 2],
    rows: Rows,
}

impl Story<'_> {
    fn leg(&self, drive: &str) -> Value {
        let pool = self.head.json("pool show tank");
        let mut legs = pool["arrays"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|a| a["legs"].as_array().into_iter().flatten());
        legs.rfind(|leg| leg["path"] == drive).cloned().unwrap_or(Value::Null)
    }

    fn until_leg_is(&self, drive: &str, words: Words, seconds: u64) {
        until(&format!("{drive} is {words:?}"), seconds, || {
            self.leg(drive)["state"].as_str().is_some_and(|state| words.contains(&state))
        });
    }

    /// Everything is whole, and from now on nothing else may be said.
    fn until_well(&self, drive: &str) {
        self.until_leg_is(drive, WELL, 300);
        until("the head is well", 60, || self.head.health() == "optimal");
        self.truth.is(drive, WELL);
    }

    fn shape(&self, drive: &str, words: &str) {
        self.head.cli(&format!("drive shape {drive} {words}"));
    }

    /// A drive that is slow is shown as such, and stays in use.
    fn one_is_slow(&mut self, drive: &str) {
        // A leg that was never read is not known to be slow while writes keep reads away from it.
        let reads = || self.head.json(&format!("drive show {drive}"))["counters"]["reads"].as_u64();
        until("the drive is read", 60, || reads() > Some(100));
        self.shape(drive, "--latency-us 40000");
        let began = Instant::now();
        until("the slow drive is called slow", 60, || self.leg(drive)["slow"] == true);
        self.rows.push((
            "a slow drive (40 ms)",
            format!("called so after {:.1} s, and used on", began.elapsed().as_secs_f64()),
        ));
    }

    /// Few errors are healed; many, or a refused write, put the drive out, and a spare takes its place. Then the drive
    /// is well again and replaces the spare.
    fn one_throws_errors(&mut self, drive: &str, round: u32) {
        let reads = |head: &Head| {
            head.json(&format!("drive show {drive}"))["counters"]["reads"].as_u64().unwrap_or(0)
        };
        let errors = |head: &Head| head.json(&format!("drive show {drive}"))["errors"].as_u64().unwrap_or(0);
        let (reads_before, errors_before) = (reads(self.head), errors(self.head));
        sleep(Duration::from_secs(2));
        // One error in two seconds or so: far from what fails a leg.
        let rate = ((reads(self.head) - reads_before) / 2).max(1);
        self.shape(drive, &format!("--read-errors-ppm {}", (500_000 / rate).clamp(1, 20_000)));
        until("an error is counted", 60, || errors(self.head) > errors_before);
        sleep(Duration::from_secs(5));
        assert_eq!(self.leg(drive)["state"], "optimal", "few errors are healed");

        self.truth.is(drive, GOING);
        for spare in self.spares {
            self.truth.is(spare, COPIED);
        }
        let began = Instant::now();
        self.shape(
            drive,
            if round.is_multiple_of(2) { "--write-errors-ppm 1000000" } else { "--read-errors-ppm 500000" },
        );
        until("a spare has taken its place", 60, || self.leg(drive) == Value::Null);
        let spare = self.spares.into_iter().find(|s| self.leg(s) != Value::Null).expect("a spare");
        let taken = began.elapsed();
        self.until_well(spare);
        let copied = began.elapsed();
        // The spare serves until the drive is in, and leaves at the next look.
        self.truth.is(drive, COPIED);
        self.truth.is(spare, COMING);
        self.head.cli(&format!("drive replace {spare} {drive} --force"));
        self.until_well(drive);
        until("the spare has left", 60, || self.leg(spare) == Value::Null);
        self.truth.is(spare, WELL);
        self.head.cli(&format!("pool add tank spare {spare}"));
        if round < 2 {
            let what = if round == 0 { "a drive that refuses writes" } else { "a drive that refuses reads" };
            let words = format!(
                "a spare took over after {:.1} s, whole after {:.1} s",
                taken.as_secs_f64(),
                copied.as_secs_f64()
            );
            self.rows.push((what, words));
        }
    }

    /// A drive is gone, silent, or taken out by hand, and comes back: by itself, or by hand.
    fn one_comes_and_goes(&mut self, drive: &str, round: u32) {
        self.truth.is(drive, GOING);
        let began = Instant::now();
        let (what, by_hand) = match round % 3 {
            0 => ("a drive that is gone", false),
            1 => ("a drive that is silent", false),
            _ => ("a drive taken out by hand", true),
        };
        match round % 3 {
            0 => self.shape(drive, "--gone"),
            1 => self.shape(drive, "--hang"),
            _ => drop(self.head.cli(&format!("drive fail {drive}"))),
        }
        // Under load it is noticed at the first write; a hang by deadlines.
        self.until_leg_is(drive, OUT, 20);
        let noticed = began.elapsed();
        self.truth.is(drive, OUT);
        sleep(Duration::from_secs(10));
        self.truth.is(drive, COMING);
        let began = Instant::now();
        if !by_hand {
            self.shape(drive, "--clear");
        }
        let alone = !by_hand && round < RETURNS_ALONE;
        if !alone {
            until("it is taken back", 30, || self.head.try_cli(&format!("drive return {drive}")).code == 0);
        }
        self.until_well(drive);
        if round < 3 {
            let how = if alone { "back by itself" } else { "back by hand" };
            let words = format!(
                "out after {:.1} s, {how} and whole in {:.1} s",
                noticed.as_secs_f64(),
                began.elapsed().as_secs_f64()
            );
            self.rows.push((what, words));
        }
    }
}
