//! What differs, case by case.

use super::diff::{Diff, Present, diff};
use super::file::{Source, key_of};
use super::print::{Line, impossible, note};
use super::{export, file};
use crate::failure::{Exit, Failure};
use api::{
    Array, ArrayLayout, Drive, DriveRole, Exported, Host, HostChecked, Leg, Pool, Portal, Spare, Status,
    Volume,
};
use base::Uuid;
use std::collections::BTreeMap;

fn uuid(n: u64) -> Uuid {
    Uuid::from_random(n, n)
}

fn leg(path: &str, n: u64) -> Leg {
    Leg { path: path.into(), uuid: uuid(n), ..Leg::default() }
}

fn mirror(legs: &[(&str, u64)]) -> Array {
    let legs = legs.iter().map(|(path, n)| leg(path, *n)).collect();
    Array { layout: ArrayLayout::Mirror, legs, ..Array::default() }
}

/// A head with a pool, two volumes, two hosts of which one is connected, and two portals.
fn status() -> Status {
    let pool = Pool {
        name: "tank".into(),
        chunk_bytes: 64 << 10,
        block_bytes: 4096,
        arrays: vec![mirror(&[("/d/a", 1), ("/d/b", 2)]), mirror(&[("/d/c", 3), ("/d/d", 4)])],
        spares: vec![Spare { path: "/d/s".into(), uuid: uuid(5), ready: true, ..Spare::default() }],
        ..Pool::default()
    };
    let volume = |name: &str, exports: Vec<Exported>| Volume {
        name: name.into(),
        bytes: 40 << 20,
        block_bytes: 4096,
        nsid: 1,
        weight: api::WEIGHT,
        exports,
        ..Volume::default()
    };
    let exported = |host: &str, lun| Exported { host: Some(host.into()), names: vec![], lun };
    let host = |name: &str, connections| Host {
        name: name.into(),
        iqns: vec![format!("iqn.2026-01.org:{name}")],
        connections,
        ..Host::default()
    };
    let portal = |protocol, address: &str, connections| Portal {
        protocol,
        address: address.parse().expect("an address"),
        listening: true,
        cause: None,
        reason: String::new(),
        connections,
        head: None,
        served_by: None,
        prefix: None,
        interface: None,
        on: None,
    };
    Status {
        pools: vec![pool],
        volumes: vec![
            volume("tank/vm1", vec![exported("busy", 0), exported("idle", 3)]),
            Volume { iops_max: 5000, ..volume("tank/vm2", vec![]) },
        ],
        hosts: vec![
            Host { authenticated: true, chap_user: "me".into(), ..host("busy", 2) },
            Host {
                exports: vec![api::HostExport { volume: "tank/vm1".into(), nsid: 1, lun: 3 }],
                ..host("idle", 0)
            },
        ],
        portals: vec![
            portal(api::Protocol::Iscsi, "10.0.0.1:3260", 2),
            portal(api::Protocol::Nvme, "10.0.0.1:4420", 0),
        ],
        ..Status::default()
    }
}

/// The file that says the same as `status`.
fn same() -> String {
    export::config(&status(), &BTreeMap::new())
}

/// Drives that the head has looked at.
fn looked_at() -> Vec<Drive> {
    let drive = |path: &str, role, pool: Option<&str>| Drive {
        path: path.into(),
        role,
        pool: pool.map(String::from),
        reason: if role == DriveRole::Unusable { "it is gone".into() } else { String::new() },
        ..Drive::default()
    };
    vec![
        drive("/d/e", DriveRole::Free, None),
        drive("/d/f", DriveRole::Foreign, None),
        drive("/d/l", DriveRole::Labelled, Some("old")),
        drive("/d/u", DriveRole::Unusable, None),
    ]
}

fn differs(text: &str, status: &Status, prune: bool) -> Diff {
    let desired = Source::of("f.toml", text).desired().unwrap_or_else(|f| panic!("{f}\n{text}"));
    // A name of the same drive as /d/a.
    let keys = BTreeMap::from([("/by-id/a".to_string(), "/d/a".to_string())]);
    let (drives, secrets) = (looked_at(), BTreeMap::new());
    diff(&desired, &Present { status, drives: &drives, secrets: &secrets, keys: &keys }, prune)
}

/// Every part of it in words.
fn words(d: &Diff) -> Vec<String> {
    let changes = d.changes.iter().map(|c| Line::of(c).in_words());
    let bad = d.impossible.iter().map(|(_, key, why)| format!("! {key}: {}", impossible(why)));
    let extras = d.extras.iter().map(|c| format!("extra {}", Line::of(c).what));
    changes.chain(bad).chain(extras).chain(d.notes.iter().map(note)).collect()
}

#[test]
fn what_is_exported_is_no_difference() {
    for prune in [false, true] {
        assert_eq!(differs(&same(), &status(), prune), Diff::default(), "{}", same());
    }
    // Nothing at all is no difference either, and says so of each kind.
    let none = export::config(&Status::default(), &BTreeMap::new());
    assert_eq!(none.matches(" = []").count(), 5, "{none}");
    assert_eq!(differs(&none, &Status::default(), true), Diff::default());
    let snapshot = crate::words::say::status(crate::http::tests::snapshot());
    let text = export::config(&snapshot, &BTreeMap::new());
    assert_eq!(words(&differs(&text, &snapshot, true)), Vec::<String>::new(), "{text}");
}

#[test]
fn a_kind_that_is_not_mentioned_is_left_alone() {
    assert_eq!(differs("", &status(), true), Diff::default());
    let d = differs("portal = []\n", &status(), false);
    assert_eq!(words(&d), ["extra portal iscsi 10.0.0.1:3260", "extra portal nvme 10.0.0.1:4420"]);
}

#[test]
fn each_difference_is_one_change() {
    let busy = "name = \"busy\"\niqns = [\"iqn.2026-01.org:busy\"]";
    for (from, to, prune, expected) in [
        // Pools.
        ("\"/d/a\"", "\"/by-id/a\"", false, &[][..]),
        ("\"/d/a\"", &format!("\"{}\"", uuid(1)), false, &[]),
        ("\"/d/b\"", "\"/d/e\"", false, &["change leg /d/b of pool tank: replaced by /d/e"]),
        (
            "\"/d/b\"",
            "\"/d/f\"",
            false,
            &["change leg /d/b of pool tank: replaced by /d/f (what /d/f holds is lost)"],
        ),
        (
            "\"/d/b\"",
            "\"/d/l\"",
            false,
            &["! arrays: /d/l holds pool old, which is not imported: import it, or wipe the drive by hand"],
        ),
        ("\"/d/b\"", "\"/d/u\"", false, &["! arrays: /d/u: it is gone"]),
        ("\"/d/b\"", "\"/d/b\", \"/d/e\"", false, &["add leg /d/e of pool tank: in mirror-0"]),
        ("\"/d/a\", ", "", false, &["extra leg /d/a of pool tank"]),
        ("\"/d/a\", ", "", true, &["remove leg /d/a of pool tank (less redundancy)"]),
        (
            "arrays = [\n",
            "arrays = [\n{ single = \"/d/e\" },\n",
            false,
            &["add arrays of pool tank: single /d/e"],
        ),
        ("  { mirror = [\"/d/c\", \"/d/d\"] },\n", "", true, &["remove mirror-1 of pool tank"]),
        (
            "\"/d/c\", \"/d/d\"",
            "\"/d/e\", \"/d/f\"",
            false,
            &[
                "add arrays of pool tank: mirror /d/e /d/f (what /d/f holds is lost)",
                "extra mirror-1 of pool tank",
            ],
        ),
        ("[\"/d/s\"]", "[\"/d/s\", \"/d/e\"]", false, &["add spare /d/e of pool tank"]),
        ("[\"/d/s\"]", "[]", true, &["remove spare /d/s of pool tank (less redundancy)"]),
        (
            "chunk = \"64K\"",
            "chunk = \"128K\"",
            false,
            &["! chunk: the pool has 64K, which cannot become 128K"],
        ),
        ("spares = [\"/d/s\"]\n", "", true, &[]),
        // Volumes.
        ("size = \"40M\"", "size = \"80M\"", false, &["change volume tank/vm1: size 40M to 80M"]),
        (
            "size = \"40M\"",
            "size = \"20M\"",
            false,
            &["change volume tank/vm1: size 40M to 20M (data is lost)"],
        ),
        (
            "iops_max = 5000",
            "mbps_max = 7\nweight = 300",
            false,
            &["change volume tank/vm2: iops_max 5000 to none, mbps_max none to 7, weight 100 to 300"],
        ),
        (
            "size = \"40M\"\nblock = 4096",
            "size = \"40M\"\nblock = 512",
            false,
            &["! block: it is 4096, which cannot become 512"],
        ),
        ("size = \"40M\"\nblock = 4096\n", "size = 41943040\n", false, &[]),
        (
            "name = \"tank/vm2\"",
            "name = \"tank/vm3\"",
            false,
            &["add volume tank/vm3: 40M, block 4096, iops_max 5000", "extra volume tank/vm2"],
        ),
        (
            "name = \"tank/vm2\"",
            "name = \"lake/vm2\"",
            true,
            &[
                "remove volume tank/vm2 (data is lost)",
                "add volume lake/vm2: 40M, block 4096, iops_max 5000",
                "! name: there is no pool lake, and the file makes none",
            ],
        ),
        // Hosts.
        (
            "iqn.2026-01.org:idle",
            "iqn.2026-01.org:new",
            false,
            &["change host idle: gains iqn.2026-01.org:new, loses iqn.2026-01.org:idle"],
        ),
        (
            "iqn.2026-01.org:busy",
            "iqn.2026-01.org:new",
            false,
            &["change host busy: gains iqn.2026-01.org:new, loses iqn.2026-01.org:busy (busy is connected)"],
        ),
        (busy, &format!("{busy}\nnqns = [\"nqn.x\"]"), false, &["change host busy: gains nqn.x"]),
        ("chap_user = \"me\"\n", "", false, &["change host busy: its IQN as CHAP user (busy is connected)"]),
        (
            "chap_secret_file = \"keep\"\nchap_user = \"me\"\n",
            "",
            false,
            &["change host busy: no CHAP secret, its IQN as CHAP user (its name alone lets it in)"],
        ),
        (
            "iqns = [\"iqn.2026-01.org:idle\"]",
            "iqns = [\"iqn.2026-01.org:idle\"]\nchap_secret_file = \"keep\"",
            false,
            &["! chap_secret_file: host idle has no secret that it could keep: name a file"],
        ),
        (
            "name = \"idle\"",
            "name = \"other\"",
            true,
            &["remove host idle", "add host other: iqn.2026-01.org:idle"],
        ),
        // Exports.
        ("lun = 3", "lun = 4", false, &["change export tank/vm1 to idle: lun 3 to 4"]),
        ("lun = 0", "lun = 4", false, &["change export tank/vm1 to busy: lun 0 to 4 (busy is connected)"]),
        ("lun = 0", "", false, &[]),
        (
            "host = \"busy\"",
            "host = \"none\"",
            true,
            &[
                "remove export tank/vm1 to busy (busy is connected)",
                "add export tank/vm1 to none: lun 0",
                "! host: there is no host none, and the file makes none",
            ],
        ),
        // Portals.
        (
            "10.0.0.1:4420",
            "10.0.0.1:4421",
            true,
            &["add portal nvme 10.0.0.1:4421", "remove portal nvme 10.0.0.1:4420"],
        ),
        (
            "10.0.0.1:3260",
            "10.0.0.1:3261",
            true,
            &["add portal iscsi 10.0.0.1:3261", "remove portal iscsi 10.0.0.1:3260 (2 connections end)"],
        ),
        (
            "10.0.0.1:4420\"",
            "10.0.0.1:4420\"\nprefix = 24",
            false,
            &["change portal nvme 10.0.0.1:4420: moves, prefix 24"],
        ),
        (
            "protocol = \"iscsi\"",
            "protocol = \"nvme\"",
            false,
            &["change portal nvme 10.0.0.1:3260: was iscsi (2 connections end)"],
        ),
        ("10.0.0.1:4420\"", "10.0.0.1:4420\"\nhead = \"c\"", false, &["! head: this system has no head c"]),
    ] {
        let text = same();
        assert!(text.contains(from), "{from} is not in: {text}");
        let found = words(&differs(&text.replacen(from, to, 1), &status(), prune));
        assert_eq!(found, expected, "{from} -> {to}");
    }
}

#[test]
fn everything_is_made_in_an_order_that_works_and_taken_away_in_the_other() {
    // There is nothing that a new head could keep.
    let text = same().replace("chap_secret_file = \"keep\"\n", "");
    let all = words(&differs(&text, &Status::default(), true));
    assert_eq!(
        all,
        [
            "add pool tank: mirror /d/a /d/b, mirror /d/c /d/d, spare /d/s, chunk 64K, block 4096",
            "add volume tank/vm1: 40M, block 4096",
            "add volume tank/vm2: 40M, block 4096, iops_max 5000",
            "add host busy: iqn.2026-01.org:busy",
            "add host idle: iqn.2026-01.org:idle",
            "add export tank/vm1 to busy: lun 0",
            "add export tank/vm1 to idle: lun 3",
            "add portal iscsi 10.0.0.1:3260",
            "add portal nvme 10.0.0.1:4420",
        ]
    );
    let none = export::config(&Status::default(), &BTreeMap::new());
    assert_eq!(
        words(&differs(&none, &status(), true)),
        [
            "remove export tank/vm1 to busy (busy is connected)",
            "remove export tank/vm1 to idle",
            "remove host busy (busy is connected)",
            "remove host idle",
            "remove volume tank/vm1 (data is lost)",
            "remove volume tank/vm2 (data is lost)",
            "remove pool tank (data is lost)",
            "remove portal iscsi 10.0.0.1:3260 (2 connections end)",
            "remove portal nvme 10.0.0.1:4420",
        ]
    );
    // Whose exports stay in the API's hands keeps them.
    let d = words(&differs("host = []\n", &status(), true));
    assert_eq!(
        d,
        ["remove host busy (busy is connected)", "remove host idle (volumes are exported to idle)"]
    );
    let d = words(&differs("pool = []\n[[volume]]\nname = \"tank/vm1\"\nsize = \"40M\"\n", &status(), true));
    assert!(
        d.contains(&"! name: pool tank is not in the file, and --prune would destroy it".to_string()),
        "{d:?}"
    );
}

#[test]
fn a_spare_that_serves_and_a_leg_under_way_are_no_difference() {
    // The spare has taken the place of /d/a, which is out.
    let mut now = status();
    now.pools[0].arrays[0].legs = vec![leg("/d/s", 5), leg("/d/b", 2)];
    now.pools[0].spares.clear();
    let note = "In pool tank, the spare /d/s serves in place of /d/a. It stays there.";
    assert_eq!(words(&differs(&same(), &now, true)), [note]);
    // The same while it is being resynced, and a replacement by hand.
    now.pools[0].arrays[0].legs.push(leg("/d/a", 1));
    now.pools[0].arrays[0].legs[0].replaces = Some("/d/a".into());
    assert_eq!(words(&differs(&same(), &now, true)), [note]);
    let by_hand = same().replace("\"/d/a\"", "\"/d/s\"").replace("[\"/d/s\"]", "[]");
    assert_eq!(words(&differs(&by_hand, &now, true)), Vec::<String>::new());
    let exported = export::config(&now, &BTreeMap::new());
    assert!(exported.contains("mirror = [\"/d/s\", \"/d/b\"]"), "{exported}");
    // A pool whose drives are not there has no arrays to be compared.
    now.pools[0].arrays.clear();
    assert_eq!(
        words(&differs(&same(), &now, true)),
        ["The drives of pool tank are not all there. Its arrays and spares are not compared."]
    );
}

#[test]
fn a_drive_that_is_not_there_is_one_by_any_name() {
    let mut now = status();
    now.pools[0].arrays[0].legs[0].state = api::State::Failed;
    let text = same().replace("\"/d/a\"", "\"/d/u\"");
    let note = "Drive /d/u is not there. It is taken for /d/a of pool tank, which is not there either.";
    assert_eq!(words(&differs(&text, &now, true)), [note]);
    // One that is there replaces it.
    let text = same().replace("\"/d/a\"", "\"/d/e\"");
    assert_eq!(words(&differs(&text, &now, true)), ["change leg /d/a of pool tank: replaced by /d/e"]);
    now.pools[0].spares[0].ready = false;
    let note = "Drive /d/u is not there. It is taken for /d/s of pool tank, which is not there either.";
    assert_eq!(words(&differs(&same().replace("\"/d/s\"", "\"/d/u\""), &now, true)), [note]);
}

#[test]
fn drives_in_memory_are_told_apart_by_their_number() {
    let mut now = status();
    now.pools[0].arrays =
        vec![mirror(&[("ram:64M", 1), ("ram:64M", 2)]), mirror(&[("ram:64M", 3), ("ram:64M", 4)])];
    let text = export::config(&now, &BTreeMap::new());
    assert_eq!(differs(&text, &now, true), Diff::default());
    let more = text.replacen("\"ram:64M\"", "\"ram:64M\", \"ram:64M\"", 1);
    assert_eq!(words(&differs(&more, &now, true)), ["add leg ram:64M of pool tank: in mirror-0"]);
}

#[test]
fn a_secret_is_set_only_if_the_head_has_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    std::fs::write(&path, "a secret of busy\n").expect("written");
    let text = same().replace("\"keep\"", &format!("\"{}\"", path.display()));
    let desired = Source::of("f.toml", &text).desired().expect("a good file");
    let now = status();
    let changes = |chap_secret| {
        let secrets = BTreeMap::from([("busy".into(), HostChecked { chap_secret, mutual_secret: false })]);
        let (drives, keys) = (vec![], BTreeMap::new());
        let present = Present { status: &now, drives: &drives, secrets: &secrets, keys: &keys };
        words(&diff(&desired, &present, true))
    };
    assert_eq!(changes(true), Vec::<String>::new());
    assert_eq!(changes(false), ["change host busy: another CHAP secret (busy is connected)"]);
    let printed = format!("{desired:?}");
    assert!(!printed.contains("a secret of busy"), "{printed}");
}

#[test]
fn a_wrong_file_is_a_sentence_with_line_and_key() {
    for (text, words) in [
        ("[[pool]]\nnam = \"tank\"\n", "f.toml:2: unknown key \"nam\"; did you mean \"name\"?"),
        ("[[pools]]\nname = \"tank\"\n", "f.toml:1: unknown key \"pools\"; did you mean \"pool\"?"),
        ("[[volume]]\nname = \"a/b\"\n", "f.toml:1: the key size is missing"),
        ("[[volume]]\nname = \"a/b\"\nsize = \"x\"\n", "f.toml:3: size: \"x\" is not a size"),
        ("[[volume]]\nname = \"a/b\"\nsize = true\n", "f.toml:3: size: write a size such as \"400G\""),
        ("[[volume]]\nname = \"b\"\nsize = \"1G\"\n", "f.toml:2: name: \"b\" does not name a volume"),
        (
            "[[volume]]\nname = \"a/b\"\nsize = \"1G\"\nblock = 1024\n",
            "f.toml:4: block: \"1024\" is not a block size",
        ),
        (
            "[[volume]]\nname = \"a/b\"\nsize = \"1G\"\nweight = 0\n",
            "f.toml:4: weight: a number from 1 to 1000",
        ),
        ("[[host]]\nname = \"a\"\n", "f.toml:1: nqns: a host needs an NQN"),
        (
            "[[host]]\nname = \"a\"\nnqns = [\"n\"]\n\n[[host]]\nname = \"a\"\nnqns = [\"m\"]\n",
            "f.toml:6: name: host a is in line 1 already",
        ),
        (
            "[[host]]\nname = \"a\"\niqns = [\"n\"]\nmutual_secret_file = \"m\"\n",
            "f.toml:4: mutual_secret_file: needs chap_secret_file",
        ),
        (
            "[[host]]\nname = \"a\"\niqns = [\"n\"]\nchap_secret_file = \"/nowhere\"\n",
            "f.toml:4: chap_secret_file: cannot read /nowhere",
        ),
        (
            "[[export]]\nvolume = \"a/b\"\nhost = \"h\"\nlun = 70000\n",
            "f.toml:4: lun: 70000 is not a whole number from 0 to 65535",
        ),
        ("[[export]]\nvolume = \"a/b\"\nhost = \"h\"\nlun = 20000\n", "f.toml:4: lun: at most 16383"),
        (
            "[[export]]\nvolume = \"a/b\"\nhost = \"h\"\nlun = 1\n[[export]]\nvolume = \"a/c\"\nhost = \"h\"\nlun = 1\n",
            "f.toml:8: lun: LUN 1 of host h is in line 1 already",
        ),
        ("[[portal]]\nprotocol = \"http\"\naddress = \"10.0.0.1:80\"\n", "f.toml:2: protocol:"),
        ("[[portal]]\nprotocol = \"nvme\"\naddress = \"10.0.0.1\"\n", "f.toml:3: address:"),
        (
            "[[portal]]\nprotocol = \"nvme\"\naddress = \"10.0.0.1:80\"\ninterface = \"e\"\n",
            "f.toml:4: interface: needs a prefix",
        ),
        (
            "[[pool]]\nname = \"p\"\narrays = [{ single = \"sda\" }]\n",
            "f.toml:3: arrays: \"sda\": write the whole path",
        ),
        (
            "[[pool]]\nname = \"p\"\narrays = [\n{ single = \"/a\" },\n{ mirrors = [\"/a\"] },\n]\n",
            "f.toml:5: unknown key \"mirrors\"; did you mean \"mirror\"?",
        ),
        (
            "[[pool]]\nname = \"p\"\narrays = [{ single = \"/a\" }]\nspares = [\"/a\"]\n",
            "f.toml:4: spares: /a is there twice",
        ),
        ("[[pool]]\nname = \"p\"\narrays = [{}]\n", "f.toml:3: arrays: an array is"),
        ("pool = \n", "f.toml:1"),
    ] {
        let failure = Source::of("f.toml", text).desired().expect_err(text);
        assert!(failure.message.starts_with(words), "{text}: {}", failure.message);
        assert!(failure.exit == Exit::Usage && failure.next.is_some() && !failure.message.contains('\n'));
    }
}

#[test]
fn a_drive_is_known_by_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    std::fs::write(&real, "").expect("written");
    std::os::unix::fs::symlink(&real, &link).expect("linked");
    let real = std::fs::canonicalize(real).expect("there").display().to_string();
    let link = link.display();
    for name in [link.to_string(), format!("file:{link}?block=512"), format!("shape:mbps-max=1@{link}")] {
        assert_eq!(key_of(&name), real, "{name}");
    }
    assert_eq!(key_of("ram:64M"), "ram:64M");
    assert_eq!(file::bare("shape:hang@/d/a"), "/d/a");
}

#[test]
fn fuzz_desired_state() {
    let take = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let Err(failure) = Source::of("f.toml", &text).parse() else { return };
        assert!(failure.message.starts_with("f.toml") && !failure.message.contains('\n'), "{failure}");
    };
    let examples = vec![same().into_bytes(), b"pool = []\n".to_vec()];
    let target = fuzz::Target { name: "desired state", run: take, examples, mend: |_| {}, bytes_max: 4096 };
    let inputs = fuzz::run(&target, 1, fuzz::limit());
    assert!(inputs > 100, "only {inputs} inputs");
}

#[test]
fn a_refusal_of_the_head_says_how_far_it_came_and_what_allows_the_rest() {
    let args = |force| super::ApplyArgs { file: "f.toml".into(), diff: false, prune: true, force };
    let refused = |kind| {
        let advice = Some("millrace volume rm tank/vm1 --yes".into());
        Failure { kind: Some(kind), next: advice, ..Failure::new(Exit::Refused, "host busy is connected.") }
    };
    let failure = super::stopped(2, 5, refused(api::ErrorKind::Unsafe), &args(false));
    assert_eq!(failure.message, "host busy is connected; 2 of 5 changes are done");
    assert_eq!(failure.next.as_deref(), Some("millrace apply f.toml --prune --force"));
    let failure = super::stopped(0, 1, refused(api::ErrorKind::NoSpace), &args(true));
    assert_eq!(failure.message, "host busy is connected.");
    assert_eq!(failure.next.as_deref(), Some("millrace volume rm tank/vm1 --yes"));
}

/// Everything that needs an order has the order of the API that an operator would give, with the guards of `--force`.
#[test]
fn changes_are_orders_and_only_force_disconnects() {
    use super::run::Runner;
    use crate::client::Client;
    let d = differs(&export::config(&Status::default(), &BTreeMap::new()), &status(), true);
    for force in [false, true] {
        let fake = crate::http::tests::fake();
        let client = Client::new(fake.client.socket()).expect("a runtime");
        let mut runner = Runner { client: &client, force, notices: vec![] };
        let mut done = 0;
        let counted = |_: &super::diff::Change| {
            done += 1;
            Ok(())
        };
        runner.run(&d.changes, counted).expect("an obedient head");
        assert_eq!(done, d.changes.len());
        let orders = fake.orders.lock().expect("no panic");
        assert_eq!(orders.len(), d.changes.len());
        let said = format!("{orders:?}");
        assert!(!said.contains(&format!("disconnect: {}", !force)), "{said}");
        assert!(!said.contains(&format!("force: {}", !force)), "{said}");
    }
}

#[test]
fn two_luns_that_are_exchanged_are_both_free_in_between() {
    use super::run::Runner;
    use crate::client::Client;
    use head::order::Order;
    let mut now = status();
    now.volumes[1].exports = vec![Exported { host: Some("idle".into()), names: vec![], lun: 4 }];
    let text = export::config(&now, &BTreeMap::new());
    let text = text.replace("lun = 3", "lun = x").replace("lun = 4", "lun = 3").replace("lun = x", "lun = 4");
    let d = differs(&text, &now, false);
    let fake = crate::http::tests::fake();
    let client = Client::new(fake.client.socket()).expect("a runtime");
    let mut runner = Runner { client: &client, force: false, notices: vec![] };
    runner.run(&d.changes, |_| Ok(())).expect("an obedient head");
    let orders = fake.orders.lock().expect("no panic");
    let order = |o: &Order| match o {
        Order::Unexport { volume, .. } => format!("- {volume}"),
        Order::Export { volume, lun, .. } => format!("+ {volume} {lun:?}"),
        other => panic!("{other:?}"),
    };
    let orders: Vec<String> = orders.iter().map(order).collect();
    assert_eq!(orders, ["- tank/vm1", "- tank/vm2", "+ tank/vm1 Some(4)", "+ tank/vm2 Some(3)"]);
}
