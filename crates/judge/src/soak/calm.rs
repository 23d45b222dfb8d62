//! Two heads with default timeouts on one machine whose processors are overloaded by six times as many busy processes: neither
//! head takes the other one for dead.

use super::{Rows, compare_legs};
use crate::load::{self, Load, Protocol};
use crate::{Head, until};
use serde_json::Value;
use std::process::{Child, Stdio};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

/// Busy processes for each processor.
const BUSY: usize = 6;
/// The link of the two, in their network.
const LINK: [&str; 2] = ["127.0.0.1", "127.0.0.1"];

/// A process that wants a processor all the time, at the priority that everybody has.
struct Busy(Child);

impl Busy {
    fn start(head: &Head) -> Busy {
        let mut command = head.net.command("bash");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).stdout(Stdio::null());
        Busy(command.spawn().expect("bash"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// For so long; a host writes and verifies meanwhile.
pub fn calm(time: Duration) -> Rows {
    let mut a = Head::with_tank("calm-a");
    let mut b = a.beside("calm-b");
    b.start();
    load::volumes(&a, "32M", "32M");
    a.lead(&b, LINK);
    let is_well = |system: &Value| {
        let row = |i: usize| (system["heads"][i]["state"].as_str(), system["heads"][i]["ready"].as_bool());
        row(0) == (Some("leads"), Some(true)) && row(1) == (Some("follows"), Some(true))
    };
    let heads = |head: &Head| -> Value {
        serde_json::from_str(&head.try_cli("head ls --json").stdout).unwrap_or(Value::Null)
    };
    until("b follows, and is ready", 60, || is_well(&heads(&a)) && is_well(&heads(&b)));
    let first = heads(&a);
    let cores = available_parallelism().map_or(1, usize::from);
    let busy: Vec<Busy> = (0..BUSY * cores).map(|_| Busy::start(&a)).collect();
    let words = load::target(&a, Protocol::Nvme, "v") + " --rw randrw --bs 4k --qd 4";
    let mut verified = Load::start(&a, "calm", &words);
    let (end, mut looks) = (Instant::now() + time, 0);
    while Instant::now() < end {
        sleep(Duration::from_secs(1).min(end.saturating_duration_since(Instant::now())));
        verified.must_run();
        for head in [&a, &b] {
            let now = heads(head);
            assert!(
                now["epoch"] == first["epoch"] && is_well(&now),
                "nobody had fallen: {first}, then {now}; a: {}\nb: {}",
                a.log(),
                b.log()
            );
        }
        looks += 1;
    }
    drop(busy);
    let done = verified.finish();
    assert_eq!(heads(&a)["epoch"], first["epoch"], "{}", a.log());
    b.stop();
    until("a leads alone", 30, || heads(&a)["heads"][1]["state"] == "out");
    // The head is degraded without the other one.
    until("the pool is whole", 60, || a.json("pool show tank")["state"] == "optimal");
    let compared = compare_legs(&mut a);
    vec![
        ("time", format!("{} s, {} busy processes on {cores} processors", time.as_secs(), BUSY * cores)),
        ("takeovers", format!("none: epoch {} in {looks} looks at each head", first["epoch"])),
        ("verified load", format!("{} operations, {} blocks as they should be", done.ops, done.verified)),
        ("slowest", format!("read {:.2} s, write {:.2} s", done.read_max_s, done.write_max_s)),
        ("legs", format!("equal: {compared} MiB")),
    ]
}
