//! Checks that `status` is true: the test knows what it did to the drives.

use crate::Head;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Words that a leg may be called by.
pub type Words = &'static [&'static str];

/// What may be said of each drive now: everything but these is `optimal`.
#[derive(Default)]
pub struct Truth {
    now: Mutex<(u64, BTreeMap<PathBuf, Words>)>,
    over: AtomicBool,
    /// Looks that were judged.
    pub looks: AtomicU64,
    /// Untrue words, and what was wrong with them.
    pub lies: Mutex<Vec<String>>,
    /// The largest resident memory of the daemon, MiB.
    pub memory_mib: AtomicU64,
}

impl Truth {
    /// From now on a drive may be called by these words only.
    pub fn is(&self, drive: &str, words: Words) {
        let mut now = self.now.lock().expect("no panic while it is held");
        now.0 += 1;
        now.1.insert(crate::legs::file_of(drive), words);
    }

    fn version(&self) -> u64 {
        self.now.lock().expect("no panic while it is held").0
    }

    /// Ends `watch`.
    pub fn over(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Looks at the status again and again.
    pub fn watch(&self, head: &Head) {
        while !self.over.load(Ordering::Relaxed) {
            let version = self.version();
            let began = Instant::now();
            let status = head.json("status");
            let took = began.elapsed();
            let mut lies = if version == self.version() {
                self.looks.fetch_add(1, Ordering::Relaxed);
                self.judge(&status)
            } else {
                // Something was done to a drive meanwhile: either word was true.
                Vec::new()
            };
            if took > Duration::from_secs(5) {
                lies.push(format!("status took {took:?}"));
            }
            self.lies.lock().expect("no panic while it is held").extend(lies);
            self.memory_mib.fetch_max(head.memory_mib(), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// What is not true in a status.
    fn judge(&self, status: &Value) -> Vec<String> {
        let now = self.now.lock().expect("no panic while it is held");
        let mut lies = Vec::new();
        let mut worst = "optimal";
        for array in list(&status["pools"][0]["arrays"]) {
            let mut word = "optimal";
            for leg in list(&array["legs"]) {
                let (path, state) = (text(&leg["path"]), text(&leg["state"]));
                let may = now.1.get(&crate::legs::file_of(path)).copied().unwrap_or(&["optimal"]);
                if !may.contains(&state) {
                    lies.push(format!("{path} is '{state}' ({}), and can only be {may:?}", leg["reason"]));
                }
                if state != "optimal" {
                    lies.extend(unexplained(status, leg));
                }
                word = worse(word, if state == "failed" || state == "offline" { "degraded" } else { state });
            }
            if array["state"] != word {
                lies.push(format!("an array of {} is '{}' and not '{word}'", array["legs"], array["state"]));
            }
            worst = worse(worst, word);
        }
        for (what, state) in [("the pool", &status["pools"][0]["state"]), ("the head", &status["health"])] {
            if *state != worst {
                lies.push(format!("{what} is '{state}' and not '{worst}': {}", status["reasons"]));
            }
        }
        lies
    }
}

/// A leg that is not well has a reason, the list of reasons names it, and says what helps where something is to do.
fn unexplained(status: &Value, leg: &Value) -> Option<String> {
    let path = text(&leg["path"]);
    let named = list(&status["reasons"]).iter().find(|r| text(&r["message"]).contains(path));
    let helped = |r: &Value| leg["state"] == "rebuilding" || !text(&r["next"]).is_empty();
    if text(&leg["reason"]).is_empty() {
        return Some(format!("{path} is '{}' without a reason", leg["state"]));
    }
    match named {
        Some(reason) if helped(reason) => None,
        Some(reason) => Some(format!("no command that helps with {reason}")),
        None => Some(format!("{path} is '{}', which no reason names: {}", leg["state"], status["reasons"])),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn worse(a: &'static str, b: &str) -> &'static str {
    const ORDER: [&str; 5] = ["optimal", "rebuilding", "degraded", "offline", "failed"];
    let rank = |word: &str| ORDER.iter().position(|w| *w == word).unwrap_or(ORDER.len() - 1);
    ORDER[rank(a).max(rank(b))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(leg: &str, reason: &str, array: &str, reasons: Value) -> Value {
        let legs = json!([{"path": "/a", "state": "optimal", "reason": ""},
            {"path": "/b", "state": leg, "reason": reason}]);
        let health = if reasons == json!([]) { "optimal" } else { array };
        json!({"health": health, "reasons": reasons,
            "pools": [{"state": array, "arrays": [{"state": array, "legs": legs}]}]})
    }

    #[test]
    fn a_status_is_held_against_what_was_done() {
        let truth = Truth::default();
        let well = status("optimal", "", "optimal", json!([]));
        let reasons = json!([{"message": "/b of mirror-0: it is gone", "next": "millrace drive return /b"}]);
        let out = status("failed", "it is gone", "degraded", reasons.clone());
        assert_eq!(truth.judge(&well), Vec::<String>::new());
        assert_eq!(truth.judge(&out).len(), 1, "nothing was done to /b");
        truth.is("file:/b?block=512", &["failed"]);
        assert_eq!(truth.judge(&out), Vec::<String>::new());
        assert_eq!(truth.judge(&well).len(), 1, "/b was failed");
        let mute = status("failed", "", "degraded", reasons.clone());
        assert!(truth.judge(&mute)[0].contains("without a reason"));
        let helpless = json!([{"message": "/b of mirror-0: it is gone", "next": null}]);
        assert!(truth.judge(&status("failed", "x", "degraded", helpless))[0].contains("no command"));
        let wrong = truth.judge(&status("failed", "x", "rebuilding", reasons));
        assert!(wrong[0].contains("not 'degraded'"), "{wrong:?}");
    }
}
