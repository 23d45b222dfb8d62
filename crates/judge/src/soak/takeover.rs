//! Two heads over drives with real persistent reservations, a kernel host that uses the portals of both in turns with verified I/O, and one
//! head is killed, stopped or cut off, one after the other. All of it lives in one guest (`shelf.sh`).
//!
//! In each round both heads have had I/O by both protocols, paths to a head that was killed went and came back, the host has seen no error,
//! and the drives know the keys of those heads that are in and no others. At the end the legs are equal, byte by byte.

mod trial;

use super::Rows;
use crate::{Paced, Seen, binary, paths};
use lab::{Net, Output, Vm};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

const SHELF: &str = include_str!("shelf.sh");
/// Blocks that a host writes a second, by each protocol.
const RATE: u32 = 120;
/// Portals' addresses of each head.
const ADDRESSES: [&str; 2] = ["10.92.0.1", "10.92.1.1"];
/// Volumes that the host sees.
const VOLUMES: usize = 2;
/// How long a head is stopped, and the link cut.
const PAUSE: Duration = Duration::from_secs(10);
/// Decisions while a head has next to no processor, and until it is in again: it goes out and comes in, in a guest perhaps once more, and
/// who votes may change each time.
const QUOTA_MOST: u64 = 10;
/// A stall that the timers of the hosts do not explain: their kernel's log is shown.
const LONG_S: f64 = 13.5;
/// A guest on a busy machine is slow; only what hangs takes as long.
const PATIENCE: u64 = 180;
/// An order is answered within its limit of 120 s, or the command line says that it was not after 180 s.
const ANSWER: u64 = 240;

/// What is done to a head, or to the link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Blow {
    /// The process of the head that leads is killed, and started again.
    Kill,
    /// The same of the one that follows.
    KillFollower,
    /// The head that leads is stopped for 10 s, and goes on.
    Stop,
    /// The link is down for 10 s.
    Cut,
    /// The head that leads gets a twentieth of a processor for 10 s. It may be taken for dead, once.
    Quota,
    /// The head that follows has no path to a drive for 10 s.
    Path,
}

impl Blow {
    /// In turns. Whoever takes over leads in the next round: by two of the first kind each head was killed once.
    const ALL: [Blow; 7] =
        [Blow::Kill, Blow::Kill, Blow::KillFollower, Blow::Stop, Blow::Cut, Blow::Quota, Blow::Path];
    fn words(self) -> &'static str {
        match self {
            Blow::Kill => "longest stall, kill -9",
            Blow::KillFollower => "longest stall, kill -9 of the follower",
            Blow::Stop => "longest stall, stopped for 10 s",
            Blow::Cut => "longest stall, link down for 10 s",
            Blow::Quota => "longest stall, a twentieth of a processor for 10 s",
            Blow::Path => "longest stall, the follower without a path to a drive for 10 s",
        }
    }
}

/// So many rounds, of each kind in turn.
pub fn takeovers(rounds: u32) -> Rows {
    let net = Net::new().expect("a network");
    let system = System::start(&net);
    let mut stalls: BTreeMap<Blow, [Vec<f64>; 2]> = BTreeMap::new();
    let (mut written, mut fences, mut shares) = (0, vec![], vec![]);
    for round in 0..rounds {
        let blow = Blow::ALL[round as usize % Blow::ALL.len()];
        let (share, done) = system.round(blow);
        shares.push(share);
        for (longest, host) in stalls.entry(blow).or_default().iter_mut().zip(&done) {
            longest.push(host.stall_s);
        }
        written += done.iter().map(|host| host.blocks).sum::<u64>();
        fences.extend(system.fences_hold());
        println!(
            "{blow:?}: NVMe {:.1} s, iSCSI {:.1} s; head a had {} % and {} %",
            done[0].stall_s, done[1].stall_s, share[0], share[1]
        );
        if done.iter().any(|host| host.stall_s > LONG_S) {
            println!("{}", system.kernel_log());
        }
    }
    // Once all is well again.
    let (loads, share) = system.start_loads(system.leader());
    shares.push(share);
    written += system.finish(loads).iter().map(|host| host.blocks).sum::<u64>();
    assert_eq!(system.vm.warnings().expect("dmesg"), Vec::<String>::new());
    let compared = system.legs_equal();
    let mut rows = vec![
        ("rounds", format!("{rounds} on persistent reservations, epoch {} at the end", compared.epoch)),
        ("verified by fio", format!("{written} blocks by NVMe/TCP and iSCSI without an error")),
        ("fences", format!("tried whenever a head is let in, under load: all hold, {} ms", range(&fences))),
        (
            "head a's part of the I/O",
            format!("{} % before each round and after the last", range(shares.as_flattened())),
        ),
        ("paths", "to a head that was killed went, and came back, optimized, in one group".into()),
        ("keys", "of heads that are in, and no others, after each round".into()),
        ("legs", format!("equal: {} MiB, by scrub and by reading the drives", compared.bytes >> 20)),
        ("hosts' own timers", "as export prints them".into()),
    ];
    for (blow, [nvme, iscsi]) in stalls {
        rows.push((blow.words(), format!("NVMe {}; iSCSI {}", seconds(&nvme), seconds(&iscsi))));
    }
    rows
}

fn range(all: &[u64]) -> String {
    let [least, most] = [all.iter().min(), all.iter().max()].map(|n| n.copied().unwrap_or_default());
    format!("{least} to {most}")
}

fn seconds(all: &[f64]) -> String {
    let mut text = String::new();
    for (i, s) in all.iter().enumerate() {
        write!(text, "{}{s:.1}", if i == 0 { "" } else { ", " }).expect("memory");
    }
    text + " s"
}

struct Compared {
    epoch: u64,
    bytes: u64,
}

/// The keys by which heads that are in are registered with drives, as the head that leads tells who is.
fn keys_of_heads(system: &Value) -> Vec<u64> {
    let uuid = system["uuid"].as_str().expect("a UUID").replace('-', "");
    let start = u64::from_str_radix(&uuid[..6], 16).expect("hexadecimal");
    let mut keys = vec![];
    for (i, head) in system["heads"].as_array().into_iter().flatten().enumerate() {
        if head["state"] != "out" {
            let since = head["since_epoch"].as_u64().expect("an epoch");
            keys.push(0x4d << 56 | start << 32 | (i as u64) << 31 | since);
        }
    }
    keys.sort_unstable();
    keys
}

/// The guest with all that is in it.
struct System {
    vm: Vm,
    began: Instant,
    /// By NVMe/TCP, by iSCSI.
    disks: [String; 2],
}

impl System {
    fn start(net: &Net) -> System {
        let vm = Vm::builder("takeover").cpus(2).mem(1536).start(net).expect("a guest");
        let began = Instant::now();
        vm.push(binary(), "/usr/bin/millrace").expect("push");
        let mut system = System { vm, began, disks: [String::new(), String::new()] };
        let made = system.vm.try_run(SHELF, 600).expect("the guest lives");
        assert_eq!(made.code, 0, "a shelf and two heads: {}{}", made.stderr, system.logs());
        system.tries_fences();
        system.until_heads("b follows", ["leads", "follows"]);
        for portal in ["nvme 10.92.1.1:4420", "iscsi 10.92.1.1:3260"] {
            system.order("b", &format!("portal add {portal}"));
        }
        // What is printed then has both heads' portals.
        let exported =
            system.vm.run("order a export tank/i --host guest --json", ANSWER).expect("it is exported");
        let lines = paths::lines(&serde_json::from_str(&exported.stdout).expect("JSON"));
        paths::set_up(&system.vm, &lines);
        system.disks = paths::disks(&system.vm, &system.json("a", "status"), ["tank/n", "tank/i"]);
        paths::wait(&system.vm, "the host has paths to both heads", &ADDRESSES, &[], VOLUMES);
        system
    }

    fn try_cli(&self, head: &str, words: &str) -> Output {
        let done = self.vm.try_run(&format!("on-head {head} {words}"), ANSWER);
        done.unwrap_or_else(|e| panic!("{e:#}\n{}", self.logs()))
    }
    /// An order that must be carried out.
    fn order(&self, head: &str, words: &str) {
        let done = self.try_cli(head, words).good(words);
        done.unwrap_or_else(|e| panic!("on head {head}: {e:#}\n{}", self.logs()));
    }
    fn json(&self, head: &str, words: &str) -> Value {
        let said = self.try_cli(head, &format!("{words} --json")).good(words).expect("it answers").stdout;
        serde_json::from_str(&said).expect("JSON")
    }
    /// What the head that leads says of both; None: none does. One that is stopped answers nothing, and one beside loads and
    /// compilers answers after some seconds.
    fn heads(&self) -> Option<Value> {
        const ASK: &str = "for h in a b; do timeout 9 on-head $h head ls --json >/run/ls-$h 2>/dev/null & done; wait; \
                           cat /run/ls-a /run/ls-b";
        let said = self.vm.try_run(ASK, 60).unwrap_or_else(|e| panic!("{e:#}\n{}", self.logs())).stdout;
        let all = serde_json::Deserializer::from_str(&said).into_iter::<Value>();
        // Whoever leads knows best.
        let leads = |v: &Value| {
            let own = v["heads"].as_array().into_iter().flatten().find(|h| h["head"] == v["me"]);
            own.is_some_and(|h| h["state"] == "leads")
        };
        all.flatten().find(leads)
    }
    /// Waits until something holds; if it does not, there is something to read.
    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(PATIENCE);
        while !holds() {
            assert!(Instant::now() < end, "not within {PATIENCE} s: {what}\n{}", self.logs());
            sleep(Duration::from_millis(200));
        }
    }
    /// Waits until the head that leads reports these states of a and b, and a follower is ready.
    fn until_heads(&self, what: &str, states: [&str; 2]) {
        let end = Instant::now() + Duration::from_secs(PATIENCE);
        loop {
            let system = self.heads();
            let row = |i: usize| system.as_ref().map(|s| &s["heads"][i]);
            let is_so = (0..2).all(|i| {
                row(i).is_some_and(|r| r["state"] == states[i] && (r["ready"] == true || states[i] == "out"))
            });
            if is_so {
                return;
            }
            if Instant::now() >= end {
                panic!("not within {PATIENCE} s: {what}; {system:?}\n{}", self.logs());
            }
            sleep(Duration::from_millis(200));
        }
    }
    /// What there is to read if something is not as it should be. Heads in a guest that got no processor miss the times
    /// that they keep: then one takes over, or loses its voters, and neither is at fault.
    fn logs(&self) -> String {
        const READ: &str = "for h in a b; do echo; echo head $h:; tail -n 40 /run/$h.log; done";
        let [starved, of] = [self.vm.starved(), self.began.elapsed()].map(|time| time.as_secs());
        let read = self.vm.try_run(READ, 60).map_or_else(|e| format!("{e:#}"), |o| o.stdout);
        let waited =
            format!("in {of} s the guest's threads waited for processors of this machine for {starved} s");
        format!("{waited}\n{read}{}", paths::state(&self.vm))
    }
    /// What the kernel of the hosts says of their sessions.
    fn kernel_log(&self) -> String {
        self.vm.run("dmesg | grep -E 'nvme|connection|multipath' | tail -n 60", 60).expect("dmesg").stdout
    }
    fn kill(&self, head: &str) {
        self.signal(head, "KILL");
    }
    fn signal(&self, head: &str, signal: &str) {
        self.vm.run(&format!("kill -{signal} $(cat /run/{head}.pid)"), 60).expect("kill");
    }

    /// The keys that a drive knows of heads that are in, or were. The key by which one that is out only votes is none of them.
    fn keys(&self, leg: usize) -> Vec<u64> {
        let said = self.vm.run(&format!("keys-of {leg}"), 60).expect("the drive's keys").stdout;
        let key = |line: &str| u64::from_str_radix(line.trim().strip_prefix("0x")?, 16).ok();
        let mut keys: Vec<u64> = said.lines().filter_map(key).filter(|key| key & 0x7fff_ffff != 0).collect();
        keys.sort_unstable();
        keys
    }
    /// The keys that each drive knows are those of the heads that are in. Who leads is known before the drives have
    /// confirmed, and a head on a busy machine may not answer in time.
    fn check_keys(&self, when: &str) {
        let end = Instant::now() + Duration::from_secs(PATIENCE);
        loop {
            let system = self.heads();
            let wanted = system.as_ref().map(keys_of_heads);
            let there = [0, 1].map(|leg| self.keys(leg));
            if wanted.as_ref().is_some_and(|wanted| there.iter().all(|keys| keys == wanted)) {
                return;
            }
            assert!(
                Instant::now() < end,
                "{when}: the drives have the keys {there:x?}, not {wanted:x?}: {system:?}\n{}",
                self.logs()
            );
            sleep(Duration::from_millis(200));
        }
    }

    /// Verified I/O by both protocols, until it is ended; head a's percentage of each, once it goes to both.
    fn start_loads(&self, leads: usize) -> ([Paced; 2], [u64; 2]) {
        let loads = [0, 1].map(|i| Paced::start(&self.vm, &self.disks[i], RATE));
        let status = || paths::commands(&self.json(["a", "b"][leads], "status"), "guest");
        let share = paths::go_to_both(status);
        loads.iter().for_each(Paced::must_run);
        (loads, share)
    }
    fn finish(&self, loads: [Paced; 2]) -> [Seen; 2] {
        Paced::end(loads, "fio over a takeover", || self.logs())
    }

    fn round(&self, blow: Blow) -> ([u64; 2], [Seen; 2]) {
        let leads = self.leader();
        let goes = if matches!(blow, Blow::Kill | Blow::Stop | Blow::Quota) { leads } else { 1 - leads };
        let [first, who, stays] = [leads, goes, 1 - goes].map(|i| ["a", "b"][i]);
        let both = |word| if goes == 0 { [word, "leads"] } else { ["leads", word] };
        let (loads, share) = self.start_loads(leads);
        let (began, epoch) = (Instant::now(), self.epoch());
        let out = |how: &str| {
            self.until_heads(&format!("{who} is out and {stays} leads"), both("out"));
            self.check_keys(how);
        };
        match blow {
            Blow::Kill | Blow::KillFollower => {
                self.kill(who);
                out("a head was killed");
                let (up, down) = ([ADDRESSES[1 - goes]], [ADDRESSES[goes]]);
                paths::wait(&self.vm, "the host has paths to one head", &up, &down, VOLUMES);
                self.vm.run(&format!("start-head {who}"), 60).expect("it starts");
            }
            Blow::Stop => {
                self.signal(who, "STOP");
                out("a head was stopped");
                sleep(PAUSE.saturating_sub(began.elapsed()));
                self.signal(who, "CONT");
            }
            Blow::Cut => {
                self.vm.run(&format!("ip -n {first} link set wire down"), 60).expect("ip");
                // Who leads goes on.
                out("the link is down");
                sleep(PAUSE.saturating_sub(began.elapsed()));
                self.vm.run(&format!("ip -n {first} link set wire up"), 60).expect("ip");
            }
            Blow::Quota => {
                self.vm.run(&format!("quota {who} 5000"), 60).expect("a quota");
                sleep(PAUSE);
                self.vm.run(&format!("quota {who} max"), 60).expect("no quota");
            }
            Blow::Path => {
                self.vm.run(&format!("path {who} 1 offline"), 60).expect("a path");
                sleep(PAUSE);
                self.vm.run(&format!("path {who} 1 running"), 60).expect("a path");
            }
        }
        if blow == Blow::Quota && self.leader() == goes {
            let still = if goes == 0 { ["leads", "follows"] } else { ["follows", "leads"] };
            self.until_heads(&format!("{who} leads still"), still);
        } else {
            self.until_heads(&format!("{who} follows"), both("follows"));
        }
        // Out and in again are two decisions; others may be about who votes.
        let decisions = self.epoch() - epoch;
        assert!(blow != Blow::Quota || decisions <= QUOTA_MOST, "{decisions} decisions\n{}", self.logs());
        self.check_keys("both are in");
        paths::wait(&self.vm, "the host has paths to both heads again", &ADDRESSES, &[], VOLUMES);
        loads.iter().for_each(Paced::must_run);
        (share, self.finish(loads))
    }
    fn epoch(&self) -> u64 {
        let mut found = None;
        self.until("a head leads", || {
            found = self.heads().and_then(|s| s["epoch"].as_u64());
            found.is_some()
        });
        found.expect("one leads")
    }
    fn leader(&self) -> usize {
        let mut found = None;
        self.until("a head leads", || {
            let system = self.heads();
            found = system.and_then(|s| s["heads"].as_array()?.iter().position(|h| h["state"] == "leads"));
            found.is_some()
        });
        found.expect("one leads")
    }

    /// Both heads end in order, after a scrub; the data of both legs are compared.
    fn legs_equal(&self) -> Compared {
        let leads = self.leader();
        let [first, other] = if leads == 0 { ["a", "b"] } else { ["b", "a"] };
        let pool = || self.json(first, "pool show tank");
        self.until("the mirror is whole", || pool()["state"] == "optimal");
        let before = pool()["scrub"]["last_ended"].clone();
        // The end is given to the second.
        sleep(Duration::from_millis(1100));
        self.order(first, "pool scrub tank");
        self.until("the scrub ends", || {
            let scrub = &pool()["scrub"];
            scrub["running"] == false && scrub["last_ended"] != before
        });
        let scrub = &pool()["scrub"];
        assert_eq!((&scrub["differed_bytes"], &scrub["unreadable_bytes"]), (&0.into(), &0.into()), "{scrub}");
        let epoch = self.heads().expect("a head leads")["epoch"].as_u64().expect("an epoch");
        for head in [other, first] {
            self.signal(head, "TERM");
            let gone = format!("! kill -0 $(cat /run/{head}.pid)");
            self.until("a head ends in order", || self.vm.try_run(&gone, 60).is_ok_and(|o| o.code == 0));
        }
        let word = |leg: u32, at: u32| -> u64 {
            let script = format!(
                "dd if=/dev/ram{leg} bs=4k skip=1 count=1 iflag=direct 2>/dev/null | od -A n -t u8 -j {at} -N 8"
            );
            self.vm.run(&script, 60).expect("od").text().parse().expect("a number")
        };
        // Where the fields of the label are: docs/formats/label.md.
        let [at, bytes] = [152, 160].map(|field| {
            assert_eq!(word(0, field), word(1, field), "the legs' labels");
            word(0, field)
        });
        assert!(at % 4096 == 0 && bytes > 32 << 20, "data of {bytes} bytes at {at}");
        let sum = |leg: u32| {
            let script = format!(
                "dd if=/dev/ram{leg} bs=4k skip={} count={} iflag=direct 2>/dev/null | md5sum",
                at / 4096,
                bytes / 4096
            );
            self.vm.run(&script, 120).expect("the drive").text().to_owned()
        };
        assert_eq!(sum(0), sum(1), "the legs differ");
        Compared { epoch, bytes }
    }
}
