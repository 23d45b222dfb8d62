//! Fences are tried on real reservations as a head joins: first of a drive whose two units share bytes but no reservations, then of good
//! ones.

use super::{ANSWER, PATIENCE, System};
use serde_json::Value;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A follower that is not ready is watched for so long at least after the head that leads was killed, and until it has
/// noticed that.
const WATCHED: Duration = Duration::from_secs(6);
/// The exit code of what was refused.
const REFUSED: i32 = 3;
/// In a key: it is head b's.
const B: u64 = 1 << 31;
/// What is found of the drive that has two units.
const FLAW: &str = "the fence of /drives/twin does not hold: the follower writes to this drive, but the head that leads does not see its \
                    registration";

/// How the trial of a drive's fence ended, as `head ls --json` shows it.
fn fence<'a>(system: &'a Value, drive: &str) -> &'a Value {
    let all = system["fences"].as_array().expect("fences");
    all.iter().find(|f| f["drive"] == drive).unwrap_or(&Value::Null)
}
fn state<'a>(system: &'a Value, drive: &str) -> &'a str {
    fence(system, drive)["state"].as_str().unwrap_or_default()
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

impl System {
    /// b joins while the fence of a drive does not hold, and does not take over; then that drive is replaced, and b joins once more.
    pub(super) fn tries_fences(&self) {
        let joined = self.vm.try_run("join", ANSWER).expect("the guest lives");
        assert_eq!(joined.code, REFUSED, "{}{}\n{}", joined.stdout, joined.stderr, self.logs());
        let next =
            "Next: millrace drive replace /drives/twin NEW, or mend it, then millrace head fence b on head a";
        says(&joined.stderr, &["this head joined, but does not take over: ", FLAW, next]);
        for head in ["a", "b"] {
            self.shows_the_flaw(head);
        }
        self.is_not_taken_over();
        // The next command that was named.
        self.order("a", "drive replace /drives/twin /drives/leg1");
        self.until_heads("b is ready once the drive is replaced", ["leads", "follows"]);
        self.fences_hold();
        self.until("the mirror is whole", || self.json("a", "pool show tank")["state"] == "optimal");
        self.joins_again();
    }

    fn shows_the_flaw(&self, head: &str) {
        // A busy machine may keep a drive from answering in time: it is tried again.
        self.until("the fence of the other drive holds", || {
            state(&self.json(head, "head ls"), "/drives/leg0") == "holds"
        });
        let system = self.json(head, "head ls");
        assert_eq!((state(&system, "/drives/twin"), &system["heads"][1]["ready"]), ("fails", &false.into()));
        let leg0 = fence(&system, "/drives/leg0");
        assert!(leg0["state"] == "holds" && leg0["took_ms"].is_u64(), "{system}");
        let listed = self.try_cli(head, "head ls").good("head ls").expect("it is listed").stdout;
        println!("on head {head}:\n{listed}");
        says(
            &listed,
            &["follows  not yet", "Fence of /drives/leg0 holds (", "Fence of /drives/twin does not hold: "],
        );
        let status = self.json(head, "status")["reasons"].to_string();
        says(
            &status,
            &["head b (right) does not take over: ", FLAW, "millrace drive replace /drives/twin NEW"],
        );
        says(&self.json(head, "events").to_string(), &[FLAW]);
    }

    /// The head that leads is killed, and comes back.
    fn is_not_taken_over(&self) {
        // b registers as a new process; what a has is left to it.
        let keys_of_a = || self.keys(0).into_iter().filter(|key| key & B == 0).collect::<Vec<u64>>();
        let before = keys_of_a();
        assert_eq!(before.len(), 1);
        let gone = "head a (left), which led, is gone, and this head does not take over: ";
        let notices =
            || self.vm.try_run(&format!("grep -F '{gone}' /run/b.log"), 60).is_ok_and(|o| o.code == 0);
        self.kill("a");
        let killed = Instant::now();
        while killed.elapsed() < WATCHED || !notices() {
            assert!(killed.elapsed().as_secs() < PATIENCE, "b does not notice it\n{}", self.logs());
            // Its daemon may just start anew.
            if let Ok(said) = self.try_cli("b", "head ls --json").good("head ls") {
                let system: Value = serde_json::from_str(&said.stdout).expect("JSON");
                assert!(
                    ["follows", "starts"].contains(&system["heads"][1]["state"].as_str().expect("a state"))
                );
            }
            sleep(Duration::from_millis(500));
        }
        assert_eq!(keys_of_a(), before, "b shut a out");
        let mut listed = String::new();
        self.until("b is up again, and waits for a", || {
            listed = self.try_cli("b", "head ls").stdout;
            listed.contains("starts  no")
        });
        println!("a is killed, on head b:\n{listed}");
        says(&listed, &["starts  no", "This head was not ready to take over from head a: start head a"]);
        let status = self.json("b", "status");
        assert_eq!(
            (&status["health"], status["pools"].as_array().map(Vec::len)),
            (&"offline".into(), Some(0))
        );
        says(
            &status["reasons"].to_string(),
            &["head a (left) is not reached, and this head was not ready", "start head a"],
        );
        println!("{}", self.try_cli("b", "status").stdout);
        // The daemon ends right after it: the line may not have come into the file of events.
        let log = self.vm.run("grep ERROR /run/b.log", 60).expect("b's log").stdout;
        says(&log, &[gone, FLAW]);
        // What only a head that leads can do is refused soon.
        let refused = self.try_cli("b", "pool ls");
        assert_eq!(refused.code, REFUSED);
        says(&refused.stderr, &["this head does not lead, and the one that does is not reached"]);
        self.vm.run("start-head a", 60).expect("it starts");
        self.until("the fence is tried again", || {
            self.heads().is_some_and(|s| s["me"] == "a" && state(&s, "/drives/twin") == "fails")
        });
    }

    /// b leaves, and joins with drives whose fences hold.
    fn joins_again(&self) {
        // Its daemon may start anew before it has answered: what counts is that it is alone then. One that was refused,
        // as a busy machine held up the link, leaves once more.
        let mut left = self.try_cli("b", "system leave");
        self.until("b is alone", || {
            let listed = self.try_cli("b", "head ls");
            let alone = listed.code == REFUSED && listed.stderr.contains("this head is alone");
            if !alone && left.code == REFUSED && left.stderr.contains("was not let go") {
                left = self.try_cli("b", "system leave");
            }
            alone
        });
        self.order("a", "system create >/run/token");
        let joined = self.vm.try_run("join", ANSWER).and_then(|o| o.good("join"));
        let joined = joined.unwrap_or_else(|e| panic!("it joins: {e:#}\n{}", self.logs())).stdout;
        println!("{joined}");
        says(
            &joined,
            &[
                "Fence of /drives/leg0 holds (",
                "Fence of /drives/leg1 holds (",
                "Joined: this head follows, and is ready to take over.",
            ],
        );
        self.until_heads("b follows", ["leads", "follows"]);
        self.fences_hold();
        says(&self.json("a", "events").to_string(), &["the fences of 2 drives were tried: all hold"]);
    }

    /// Waits until both fences were tried and hold, as both heads report; how long the drives took, ms.
    pub(super) fn fences_hold(&self) -> Vec<u64> {
        let took = |head: &str| -> Option<Vec<u64>> {
            let system = self.json(head, "head ls");
            let all = system["fences"].as_array().expect("fences");
            let hold = all.len() == 2 && all.iter().all(|f| f["state"] == "holds");
            hold.then(|| all.iter().map(|f| f["took_ms"].as_u64().expect("a time")).collect())
        };
        let mut held = None;
        self.until("both fences hold, and the follower shows what was found", || {
            held = took("a").filter(|leads| took("b").as_ref() == Some(leads));
            held.is_some()
        });
        held.expect("it was just seen")
    }
}
