//! A mistake of an operator gets a sentence that names it, and everything else goes on.

use judge::{Head, binary};
use std::process::Command;

/// `serve` with this configuration ends at once; its exit code and what it said.
fn serve(config: &[u8]) -> (i32, String) {
    let head = Head::prepare("bad-config");
    let file = head.dir.join("head.toml");
    std::fs::write(&file, config).expect("head.toml");
    let done =
        Command::new("timeout").arg("10").arg(binary()).args(["serve", "--config"]).arg(&file).output();
    let done = done.expect("the binary runs");
    (done.status.code().unwrap_or(-1), String::from_utf8_lossy(&done.stderr).into())
}

#[test]
fn a_bad_configuration_is_refused_by_the_name_of_its_field() {
    if lab::skipped("bad configurations") {
        return;
    }
    for (config, words) in [
        (&b"state_dir = \"/nowhere\"\nmemroy = \"1G\"\n"[..], &["head.toml:2", "memroy"][..]),
        (b"state_dir = 7\n", &["state_dir"]),
        (b"memory = \"18446744073709551616\"\n", &["memory"]),
        (b"memory = \"0\"\n", &["memory"]),
        (b"socket = \"/proc/nowhere/api\"\nstate_dir = \"/proc/nowhere\"\n", &["/proc/nowhere"]),
        (b"= = =\n", &["head.toml:1"]),
        (b"\xff\xfe\x00", &["head.toml"]),
    ] {
        let (code, said) = serve(config);
        assert!(code != 0 && code != 124, "{:?} is accepted ({code})", String::from_utf8_lossy(config));
        for word in words {
            assert!(said.contains(word), "'{word}' is not in: {said}");
        }
        assert!(!said.contains("panicked"), "{said}");
    }
    let done =
        Command::new(binary()).args(["serve", "--config", "/nowhere/head.toml"]).output().expect("it runs");
    assert!(!done.status.success() && String::from_utf8_lossy(&done.stderr).contains("/nowhere/head.toml"));
}

#[test]
fn impossible_orders_are_refused_and_change_nothing() {
    if lab::skipped("impossible orders") {
        return;
    }
    let head = Head::with_tank("bad-orders");
    head.cli("volume create tank/v --size 16M");
    head.cli("host add h --iqn iqn.2026-01.org.millrace.judge:h");
    head.cli("export tank/v --host h");
    let short = head.dir.join("short");
    std::fs::write(&short, "eleven char").expect("a file");
    let (e, f) = (head.file("e", 64 << 20), head.file("f", 64 << 20));
    let tiny = head.file("tiny", 1 << 20);
    let (before, mut wrong) = (state(&head), Vec::new());
    let (a, dir) = (head.drive("a"), head.dir.display());
    for (order, words) in [
        ("volume create tank/z --size 0".to_owned(), &["size"][..]),
        ("volume create tank/z --size 18446744073709551616".into(), &["size"]),
        ("volume create tank/z --size 18446744073709551615".into(), &["size"]),
        ("volume create tank/z --size 9000P".into(), &["size"]),
        ("volume create tank/z --size 8P".into(), &["tank"]),
        ("volume create tank/z --size 4097".into(), &["block"]),
        ("volume create tank/z --size 16M --block 1024".into(), &["block"]),
        ("volume create tank/v --size 16M".into(), &["already"]),
        ("volume create puddle/v --size 16M".into(), &["puddle"]),
        ("volume create tank/../v --size 16M".into(), &["name"]),
        ("volume resize tank/v --size 8M".into(), &["shrink", "force"]),
        ("volume resize tank/v --size 0".into(), &["size"]),
        ("volume resize tank/none --size 8M".into(), &["tank/none"]),
        ("volume rename tank/none x".into(), &["tank/none"]),
        ("volume rm tank/v".into(), &["export"]),
        ("pool create tank mirror {e} {f}".into(), &["tank"]),
        ("pool create two mirror {e}".into(), &["mirror"]),
        ("pool create two mirror {e} {e}".into(), &["twice"]),
        ("pool create two mirror {e} {dir}/missing".into(), &["missing"]),
        ("pool create two mirror {e} {a}".into(), &["{a}"]),
        ("pool create two single {tiny}".into(), &["at least"]),
        ("pool create two pile {e} {f}".into(), &["pile"]),
        ("pool release none".into(), &["none"]),
        ("pool import --drive {e}".into(), &[]),
        ("host add h".into(), &["h"]),
        ("host add i --nqn not-an-nqn".into(), &["not-an-nqn"]),
        ("host add i --iqn not-an-iqn".into(), &["not-an-iqn"]),
        ("host add i --iqn iqn.2026-01.org.millrace.judge:h".into(), &["iqn.2026-01.org.millrace.judge:h"]),
        ("host set none --iqn iqn.2026-01.org.millrace.judge:n".into(), &["none"]),
        ("host set h --chap-secret-file {short}".into(), &["12"]),
        ("host set h --chap-secret-file {dir}/missing".into(), &["missing"]),
        ("host rm h".into(), &["export"]),
        ("export tank/v --host none".into(), &["none"]),
        ("export tank/none --host h".into(), &["tank/none"]),
        ("export tank/v --host h".into(), &["already"]),
        ("unexport tank/v --host none".into(), &["none"]),
        ("portal add iscsi 0.0.0.0:3260".into(), &["3260"]),
        ("portal add iscsi 192.0.2.1:3260".into(), &["192.0.2.1"]),
        ("portal add iscsi nonsense".into(), &["nonsense"]),
        ("portal add http 0.0.0.0:80".into(), &["http"]),
        ("portal rm nvme 0.0.0.0:9999".into(), &["9999"]),
        ("drive fail {dir}/missing".into(), &["missing"]),
        ("drive return {a}".into(), &["{a}"]),
        ("frobnicate".into(), &["frobnicate"]),
    ] {
        let fill = |text: &str| {
            text.replace("{e}", &e)
                .replace("{f}", &f)
                .replace("{a}", &a)
                .replace("{tiny}", &tiny)
                .replace("{short}", &short.display().to_string())
                .replace("{dir}", &dir.to_string())
        };
        let order = fill(&order);
        let done = head.try_cli(&order);
        let (said, lower) = (done.stderr.trim(), done.stderr.to_lowercase());
        if done.code == 0 || said.len() < 10 || said.contains("panicked") {
            wrong.push(format!("millrace {order} ends with {}: {}{said}", done.code, done.stdout));
        }
        for word in words.iter().map(|w| fill(w).to_lowercase()).filter(|word| !lower.contains(word)) {
            wrong.push(format!("millrace {order}: '{word}' is not in: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(state(&head), before, "a refused order has changed something");
}

/// What there is, without what changes by itself.
fn state(head: &Head) -> Vec<String> {
    let status = head.json("status");
    let names = |key: &str, fields: &[&str]| -> String {
        let all = status[key].as_array().cloned().unwrap_or_default();
        all.iter().flat_map(|item| fields.iter().map(|f| item[*f].to_string())).collect::<Vec<_>>().join(" ")
    };
    vec![
        names("pools", &["name", "uuid", "bytes", "used_bytes"]),
        names("volumes", &["name", "uuid", "nsid", "bytes", "exports"]),
        names("hosts", &["name", "nqns", "iqns", "authenticated", "exports"]),
        names("portals", &["protocol", "address"]),
    ]
}

#[test]
fn without_a_daemon_every_command_says_so() {
    if lab::skipped("no daemon") {
        return;
    }
    let head = Head::prepare("no-daemon");
    let refusal = head.refused("status");
    assert_eq!(refusal.code, 4, "{}", refusal.said);
    refusal.names(&["serve"]);
}

#[test]
fn a_second_daemon_on_the_same_state_or_drives_is_refused() {
    if lab::skipped("a second daemon") {
        return;
    }
    let head = Head::with_tank("two-daemons");
    let mut second = head.net.command("timeout");
    second.arg("10").arg(binary()).args(["serve", "--config"]).arg(head.dir.join("head.toml"));
    let done = second.output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!matches!(done.status.code(), Some(0 | 124)), "a second daemon runs on the same state: {said}");
    assert!(said.contains(&head.dir.join("state").display().to_string()) || said.contains("api"), "{said}");
    head.cli("status");
}
