//! What is said of machines, in the words that people read.

mod explain;
#[path = "../../../../topology/tests/all/machines.rs"]
#[allow(dead_code, reason = "the crate's own tests use the rest of it")]
mod machines;
mod pictures;
mod tune;

use topology::Machine;
use topology::explain::{Explanation, Kind};

/// A limit in words.
#[derive(Clone, PartialEq, Debug)]
struct Told {
    kind: Kind,
    sentence: String,
    arithmetic: Vec<String>,
    next: String,
}

/// An explanation in words.
#[derive(Clone, PartialEq, Debug)]
struct Explained {
    load: String,
    findings: Vec<Told>,
    next_limit: String,
    elsewhere: usize,
}

fn in_words(e: &Explanation) -> Explained {
    let told = |f: &topology::explain::Finding| {
        let said = super::limit(&f.limit);
        let next = said.next.expect("there is always something to do");
        let arithmetic = f.arithmetic.iter().map(super::figure).collect();
        Told { kind: f.kind, sentence: said.message, arithmetic, next }
    };
    Explained {
        load: super::load(&e.load),
        findings: e.findings.iter().map(told).collect(),
        next_limit: e.next_limit.as_ref().map_or(String::new(), super::next_limit),
        elsewhere: e.elsewhere,
    }
}

fn explain(m: &Machine) -> Explained {
    in_words(&topology::explain::explain(m))
}

fn explain_one(m: &Machine, name: &str) -> Option<Explained> {
    topology::explain::explain_one(m, name).as_ref().map(in_words)
}

#[test]
fn json_has_codes_fields_sentences_and_what_helps() {
    let m = Machine::of(&machines::loaded(4));
    let json = super::explained(&topology::explain::explain(&m));
    let first = &json["findings"][0];
    assert_eq!((first["kind"].as_str(), first["code"].as_str()), (Some("shard"), Some("shard_full")));
    assert!(first["fields"]["shard"].is_u64(), "{first}");
    assert!(first["message"].as_str().is_some_and(|m| m.contains("has no time left")), "{first}");
    assert!(first["next"].is_string() && first["arithmetic"][0]["message"].is_string(), "{first}");
    assert!(json["load"]["message"].is_string(), "{json}");
    let recording = machines::two_sockets();
    let m = Machine::of(&recording);
    let json = super::tuned(&topology::tune::settings(&m, &recording));
    let all = json.as_array().expect("a list");
    let mtu = all.iter().find(|s| s["code"] == "mtu").expect("a port");
    assert_eq!(mtu["found"]["message"], "1500");
    assert!(mtu["next"].as_str().is_some_and(|n| n.starts_with("ip link set")), "{mtu}");
    for s in all {
        for key in ["code", "message", "why", "group"] {
            assert!(s[key].as_str().is_some_and(|w| !w.is_empty()), "{key} in {s}");
        }
    }
}
