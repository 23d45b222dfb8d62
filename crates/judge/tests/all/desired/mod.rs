//! One file says what there should be: `millrace apply`, `millrace export-config`, and the Ansible role.

mod ansible;

use judge::Head;
use lab::{Output, skipped};
use serde_json::Value;

/// A head without pools, with five drives of 256 MiB.
fn head(name: &str) -> Head {
    let head = Head::new(name);
    for drive in ["a", "b", "c", "d", "e"] {
        head.file(drive, 256 << 20);
    }
    head
}

/// Writes the file `desired.toml` of a head; `DIR` stands for its folder.
fn write(head: &Head, text: &str) -> String {
    let path = head.dir.join("desired.toml");
    let text = text.replace("DIR", &head.dir.display().to_string());
    std::fs::write(&path, text).expect("desired.toml");
    path.display().to_string()
}

/// The desired state of most tests.
const DESIRED: &str = r#"
[[pool]]
name = "tank"
chunk = "64K"
arrays = [
  { mirror = ["DIR/a", "DIR/b"] },
  { mirror = ["DIR/c", "DIR/d"] },
]
spares = ["DIR/e"]

[[volume]]
name = "tank/vm1"
size = "40M"
iops_max = 5000

[[volume]]
name = "tank/vm2"
size = "40M"

[[host]]
name = "web1"
nqns = ["nqn.2014-08.org.nvmexpress:uuid:8f4c9e3a-0000-4000-8000-000000000001"]
iqns = ["iqn.2026-01.org.millrace.judge:web1"]
chap_secret_file = "secret"

[[export]]
volume = "tank/vm1"
host = "web1"
lun = 3

[[portal]]
protocol = "iscsi"
address = "0.0.0.0:3260"
"#;

/// Runs `apply`; its exit code must be this one.
fn apply(head: &Head, words: &str, code: i32) -> Output {
    let done = head.try_cli(&format!("apply {words}"));
    assert_eq!(done.code, code, "millrace apply {words}: {}{}", done.stdout, done.stderr);
    done
}

/// What there is, without what changes by itself.
fn state(head: &Head) -> String {
    head.cli("export-config")
}

#[test]
fn a_file_is_applied_again_changed_pruned_and_exported() {
    if skipped("desired state") {
        return;
    }
    let head = head("desired");
    std::fs::write(head.dir.join("secret"), "a secret of web1\n").expect("a secret");
    let file = write(&head, DESIRED);

    // All at once, and nothing the second time.
    let shown = apply(&head, &format!("{file} --diff"), 5).stdout;
    for line in
        ["+ pool tank: mirror", "+ volume tank/vm1: 40M, iops_max 5000", "+ export tank/vm1 to web1: lun 3"]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(shown.contains("6 to add"), "{shown}");
    assert_eq!(head.json("pool ls").as_array().map(Vec::len), Some(0), "--diff has changed something");
    let done = apply(&head, &file, 0).stdout;
    assert!(done.contains("Done: 6 added"), "{done}");
    let host = head.json("host show web1");
    assert_eq!((&host["authenticated"], &host["exports"][0]["lun"]), (&Value::Bool(true), &3.into()));
    assert_eq!(head.json("volume show tank/vm1")["iops_max"], 5000);
    for words in [format!("{file} --diff"), file.clone(), format!("{file} --prune --force")] {
        let again = apply(&head, &words, 0).stdout;
        assert!(again.contains("Nothing to do"), "{words}: {again}");
    }

    // What is exported is what is applied.
    let exported = state(&head);
    let copy = head.dir.join("exported.toml").display().to_string();
    std::fs::write(&copy, &exported).expect("a file");
    let again = apply(&head, &format!("{copy} --prune --force"), 0).stdout;
    assert!(again.contains("Nothing to do"), "{again}\n{exported}");
    assert_eq!(state(&head), exported);

    // Changes that lose nothing; a secret is known only by asking.
    std::fs::write(head.dir.join("secret"), "another secret of web1\n").expect("a secret");
    let file = write(&head, &DESIRED.replace("iops_max = 5000", "mbps_max = 200").replacen("40M", "80M", 1));
    let told: Value = serde_json::from_str(&apply(&head, &format!("{file} --json"), 0).stdout).expect("JSON");
    let what = |change: &Value| format!("{}: {}", change["what"], change["details"]).replace('"', "");
    let changes: Vec<String> = told["changes"].as_array().expect("a list").iter().map(what).collect();
    assert_eq!(
        changes,
        [
            "volume tank/vm1: size 40M to 80M",
            "volume tank/vm1: iops_max 5000 to none, mbps_max none to 200",
            "host web1: another CHAP secret",
        ]
    );
    assert_eq!(head.json("volume show tank/vm1")["bytes"], 80 << 20);

    // What loses something is refused as a whole: the growth of the other volume is not begun.
    let shrunk = DESIRED
        .replace("iops_max = 5000", "mbps_max = 200")
        .replace("name = \"tank/vm2\"\nsize = \"40M\"", "name = \"tank/vm2\"\nsize = \"48M\"");
    let file = write(&head, &shrunk);
    let before = state(&head);
    let said = apply(&head, &file, 3).stderr;
    assert!(said.contains("needs --force") && said.contains("size 80M to 40M"), "{said}");
    assert_eq!(state(&head), before);
    apply(&head, &format!("{file} --force"), 0);
    assert_eq!(head.json("volume show tank/vm1")["bytes"], 40 << 20);
    assert_eq!(head.json("volume show tank/vm2")["bytes"], 48 << 20);

    // What the file does not have stays, is refused, and goes.
    let (kept, _) = shrunk.split_once("[[volume]]\nname = \"tank/vm2\"").expect("the second volume");
    let (_, rest) = shrunk.split_once("[[host]]").expect("the host");
    let less = format!("{kept}[[host]]{rest}").replace("spares = [\"DIR/e\"]", "spares = []");
    let file = write(&head, &less);
    let left = apply(&head, &file, 0).stdout;
    assert!(left.contains("left alone") && left.contains("volume tank/vm2"), "{left}");
    let said = apply(&head, &format!("{file} --prune"), 3).stderr;
    assert!(said.contains("2 changes need --force") && said.contains("remove volume tank/vm2"), "{said}");
    assert_eq!(head.json("volume ls").as_array().map(Vec::len), Some(2));
    let gone = apply(&head, &format!("{file} --prune --force"), 0).stdout;
    assert!(gone.contains("- volume tank/vm2") && gone.contains("Done: 2 removed"), "{gone}");
    assert_eq!(head.json("volume ls").as_array().map(Vec::len), Some(1));
    assert_eq!(head.json("pool show tank")["spares"], Value::Array(vec![]));

    // A drive is replaced by a free one; the old one is not wanted back.
    let file = write(&head, &less.replace("DIR/d\"", "DIR/e\""));
    let done = apply(&head, &file, 0).stdout;
    assert!(done.contains("replaced by"), "{done}");
    assert!(apply(&head, &file, 0).stdout.contains("Nothing to do"));
}

#[test]
fn a_bad_file_is_a_sentence_with_line_and_key() {
    if skipped("bad files of desired state") {
        return;
    }
    let head = head("desired-bad");
    head.cli(&format!("pool create lone {}", head.drive("a")));
    let volume = "[[volume]]\nname = \"lone/v\"\n";
    for (text, code, words) in [
        (
            format!("{volume}size = \"40M\"\niop_max = 5\n"),
            2,
            "desired.toml:4: unknown key \"iop_max\"; did you mean \"iops_max\"?",
        ),
        (format!("{volume}size = \"much\"\n"), 2, "desired.toml:3: size: \"much\" is not a size"),
        (volume.into(), 2, "the key size is missing"),
        (
            format!("{volume}size = 4096\n{volume}size = 4096\n"),
            2,
            "desired.toml:5: name: volume lone/v is in line 1 already",
        ),
        (
            "[[host]]\nname = \"h\"\niqns = [\"iqn.2026-01.org:h\"]\nchap_secret_file = \"none\"\n".into(),
            2,
            "desired.toml:4: chap_secret_file: cannot read",
        ),
        (
            "[[host]]\nname = \"h\"\niqns = [\"iqn.2026-01.org:h\"]\nchap_secret_file = \"keep\"\n".into(),
            3,
            "desired.toml:4: chap_secret_file: host h has no secret",
        ),
        (
            "[[volume]]\nname = \"none/v\"\nsize = 4096\n".into(),
            3,
            "desired.toml:2: name: there is no pool none",
        ),
        ("[[pool]]\nname = \"lone\"\nchunk = \"16K\"\n".into(), 3, "desired.toml:3: chunk: the pool has 64K"),
        (
            "[[pool]]\nname = \"lone\"\narrays = [{ mirror = [\"DIR/a\", \"DIR/b\"] }]\n".into(),
            3,
            "desired.toml:3: arrays: the single drive",
        ),
        // The head refuses it: what was done before is told, and stays.
        (
            format!("{volume}size = \"8M\"\n[[volume]]\nname = \"lone/w\"\nsize = \"8T\"\n"),
            3,
            "1 of 2 changes are done",
        ),
    ] {
        let file = write(&head, &text);
        let said = apply(&head, &file, code).stderr;
        assert!(said.contains(words), "'{words}' is not in: {said}");
    }
    assert_eq!(head.json("volume ls").as_array().map(Vec::len), Some(1));
    let said = head.refused("apply /nowhere.toml");
    said.names(&["/nowhere.toml"]);
}
