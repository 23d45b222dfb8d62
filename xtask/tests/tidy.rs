//! Rules of the house that a machine can check. Each rule is proven below on text that breaks it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which crates of ours a crate may use: the arrows of ARCHITECTURE.md. A new arrow is a decision:
/// write three lines in docs/rfcs/ first.
const ARROWS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("nvme", &["base"]),
    ("iscsi", &["base"]),
    ("access", &["base"]),
    ("volume", &["base"]),
    ("pool", &["base"]),
    ("array", &["base"]),
    ("head", &["base", "nvme", "iscsi", "access", "volume", "pool", "array"]),
    ("load", &["base", "nvme", "iscsi"]),
    ("uring", &["base"]),
    ("sim", &["base", "nvme", "iscsi", "access", "volume", "pool", "array", "head", "load"]),
    ("api", &[]),
    ("topology", &[]),
    ("millrace", &["base", "head", "uring", "load", "api", "topology"]),
    ("lab", &[]),
    ("fuzz", &["base", "nvme", "iscsi", "access", "volume", "pool", "array", "head", "topology"]),
    ("judge", &["lab"]),
    ("xtask", &[]),
    ("peak", &[]),
    ("path", &["base", "array", "head", "load", "pool", "volume"]),
];

/// Further arrows for tests alone: both worlds must keep the same contract, and the binary's decoders
/// (its configuration, the bodies of requests) take the same noise as those of the rooms.
const TEST_ARROWS: &[(&str, &[&str])] = &[("sim", &["uring"]), ("millrace", &["fuzz"])];

/// Sans-IO state machines: everything that happens comes in by a call, with the time.
const ROOMS: &[&str] = &["base", "nvme", "iscsi", "access", "volume", "pool", "array", "head", "load", "sim"];

/// Not rooms, since they may use serde, and yet without clock, thread and files: their words are the rooms'.
const PURE: &[&str] = &["topology"];

/// Crates of others that a room may use: small, without I/O, clock or thread.
const ROOM_CRATES: &[&str] =
    &["crc-fast", "crc32c", "hmac", "md-5", "sha2", "subtle", "thiserror", "zerocopy", "zeroize"];

/// A word that rooms do not say, and what to say instead.
const BANS: &[(&str, &str)] = &[
    ("std::time", "base::Instant, which comes as the argument `now`; core::time::Duration"),
    ("SystemTime", "StateOp::Clock, asked by the Steward"),
    ("std::thread", "a shard, or an event"),
    ("std::sync::atomic", "a plain integer: a machine has one owner, others write mail"),
    ("Mutex", "ownership: a machine has one owner, others write mail"),
    ("RwLock", "ownership: a machine has one owner, others write mail"),
    ("mpsc", "mail, which the simulator can interleave"),
    ("std::net", "core::net for addresses; sockets are the world's"),
    ("std::fs", "StateOp and DriveOp: files are the world's"),
    ("std::io", "return values and the outbox"),
    ("std::process", "a typed error"),
    ("tokio", "on_<what_happened> and an enum of phases"),
    ("async fn", "on_<what_happened> and an enum of phases"),
    ("HashMap", "BTreeMap, or a Vec indexed by id: the order of a hash map differs between runs"),
    ("HashSet", "BTreeSet, or a Vec"),
    ("rand::", "base::Prng, seeded by whoever made you"),
    ("println!", "a return value, or a counter in the report"),
];

/// Where long, restartable procedures may be `async`, on the Steward's own deterministic executor.
const PROCEDURES: &str = "crates/head/src/steward/";

/// A source file: its path below the repository, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// The crate that it belongs to.
    fn room(&self) -> &str {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates" | "bench") => parts.next().unwrap_or(""),
            Some(first) => first,
            None => "",
        }
    }

    /// Whether it is part of the product, not of a test, an example or a program beside the crate.
    fn is_product(&self) -> bool {
        self.path.contains("/src/")
            && !self.path.contains("/src/bin/")
            && !self.path.ends_with("/src/main.rs")
            && !self.path.ends_with("/tests.rs")
            && !self.path.contains("/tests/")
    }

    /// Its lines with their numbers, without comments and the contents of strings, up to its tests.
    fn code(&self) -> Vec<(usize, String)> {
        let mut lines = Vec::new();
        let mut tests_next = false;
        for (number, line) in (1..).zip(self.text.lines()) {
            let bare = bare(line);
            if tests_next && bare.trim_start().starts_with("mod ") && bare.trim_end().ends_with('{') {
                break;
            }
            tests_next = bare.trim() == "#[cfg(test)]" || tests_next && bare.trim().starts_with("#[");
            lines.push((number, bare));
        }
        lines
    }
}

/// A line of code without what its strings and comments say.
fn bare(line: &str) -> String {
    let (mut out, mut in_string, mut chars) = (String::new(), false, line.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => {
                chars.next();
            }
            '"' => in_string = !in_string,
            '\'' if !in_string && chars.peek() == Some(&'"') => {
                chars.next();
            }
            '/' if !in_string && chars.peek() == Some(&'/') => break,
            c if !in_string => out.push(c),
            _ => {}
        }
    }
    out
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Files that git tracks or would track, as far as they are text.
fn tracked() -> Vec<Source> {
    let list = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the files");
    assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    let names = String::from_utf8(list.stdout).expect("file names are UTF-8");
    let read = |path: &str| {
        Some(Source { text: std::fs::read_to_string(root().join(path)).ok()?, path: path.into() })
    };
    names.split_terminator('\0').filter_map(read).collect()
}

/// Names below `[dependencies]` (`dev`: and `[dev-dependencies]`) of a crate's manifest.
fn dependencies(manifest: &str, dev: bool) -> BTreeSet<String> {
    let (mut names, mut inside) = (BTreeSet::new(), false);
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            inside = section.starts_with("dependencies")
                || section.contains(".dependencies")
                || section.starts_with("build-dependencies")
                || dev && section.starts_with("dev-dependencies");
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            let end = line.find(['.', '=', ' ']).unwrap_or(line.len());
            names.insert(line[..end].trim_matches('"').to_owned());
        }
    }
    names
}

/// Manifests of all crates, by the crate's name.
fn manifests() -> BTreeMap<String, String> {
    let manifests = tracked().into_iter().filter(|s| s.path.ends_with("/Cargo.toml"));
    manifests.map(|s| (s.room().to_owned(), s.text)).collect()
}

/// Dependencies that the workspace names and no crate uses.
fn unused_dependencies(workspace: &str, manifests: &BTreeMap<String, String>) -> Vec<String> {
    let used: BTreeSet<String> = manifests.values().flat_map(|m| dependencies(m, true)).collect();
    let unused = dependencies(workspace, false).into_iter().filter(|name| !used.contains(name));
    unused.map(|name| format!("Cargo.toml: no crate uses {name}")).collect()
}

fn broken_arrows(manifests: &BTreeMap<String, String>) -> Vec<String> {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut broken = Vec::new();
    for (name, manifest) in manifests {
        let Some(allowed) = arrows.get(name.as_str()) else {
            broken.push(format!(
                "{name}: a crate that ARROWS does not know; describe it in docs/rfcs/ and there"
            ));
            continue;
        };
        let product = dependencies(manifest, false);
        for used in dependencies(manifest, true) {
            let ours = arrows.contains_key(used.as_str());
            let in_tests = TEST_ARROWS.iter().any(|(from, to)| from == name && to.contains(&used.as_str()));
            if ours
                && !allowed.contains(&used.as_str())
                && used != *name
                && (product.contains(&used) || !in_tests)
            {
                broken.push(format!("{name} uses {used}, and no arrow leads there"));
            }
        }
        for used in dependencies(manifest, false) {
            let ours = arrows.contains_key(used.as_str());
            if ROOMS.contains(&name.as_str()) && !ours && !ROOM_CRATES.contains(&used.as_str()) {
                broken.push(format!("{name} is a room and uses {used}, which ROOM_CRATES does not list"));
            }
        }
    }
    broken
}

fn banned_words(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|s| s.path.ends_with(".rs")) {
        let pure = ROOMS.contains(&source.room()) || PURE.contains(&source.room());
        let room = pure && source.is_product();
        for (number, line) in source.code() {
            let says = |word: &str| {
                line.match_indices(word).any(|(at, _)| {
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
                        && (word.ends_with([':', '!'])
                            || !line[at + word.len()..]
                                .starts_with(|c: char| c.is_alphanumeric() || c == '_'))
                })
            };
            let mut complain = |word: &str, instead: &str| {
                found.push(format!("{}:{number}: `{word}`; use {instead}", source.path));
            };
            if room {
                let procedure = |word: &str| word == "async fn" && source.path.starts_with(PROCEDURES);
                for (word, instead) in BANS.iter().filter(|(word, _)| says(word) && !procedure(word)) {
                    complain(word, instead);
                }
            }
            // A counting allocator for tests cannot be written without.
            let may = source.room() == "uring" || source.path.ends_with("tests/all/allocations.rs");
            if says("unsafe") && !may {
                complain("unsafe", "the safe calls of `uring`, its only home");
            }
            if says("ignore]") && line.contains("#[ignore") || line.contains("#[ignore =") {
                complain("#[ignore]", "an assertion of what is true today");
            }
        }
    }
    found
}

/// Places of one machine, which mean nothing on the reader's.
fn machine_paths(sources: &[Source]) -> Vec<String> {
    let places = [concat!("/", "work/"), concat!("/", "home/"), concat!("/tmp/", "bash_jobs")];
    let mut found = Vec::new();
    for source in sources.iter().filter(|s| s.path != "Cargo.lock" && s.path != "LICENSE") {
        for (number, line) in (1..).zip(source.text.lines()) {
            for place in places.iter().filter(|place| line.contains(**place)) {
                found.push(format!("{}:{number}: {place}", source.path));
            }
        }
    }
    found
}

/// Words that ask the scheduler for real-time priority, which starves everything else on a machine of few cores.
fn real_time_priority(sources: &[Source]) -> Vec<String> {
    let words = [
        concat!("ch", "rt"),
        concat!("sched_set", "scheduler"),
        concat!("sched_set", "attr"),
        concat!("SCHED_", "FIFO"),
        concat!("SCHED_", "RR"),
        concat!("CPUScheduling", "Policy"),
    ];
    let mut found = Vec::new();
    // Documents may warn of it.
    for source in sources.iter().filter(|s| !s.path.ends_with(".md") && !s.path.ends_with("Cargo.lock")) {
        for (number, line) in (1..).zip(source.text.lines()) {
            let parts: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            for word in words.iter().filter(|word| parts.contains(*word)) {
                found.push(format!("{}:{number}: {word}", source.path));
            }
        }
    }
    found
}

/// Links of the documents to files that are not there.
fn dead_links(sources: &[Source], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|s| s.path.ends_with(".md")) {
        for part in source.text.split("](").skip(1) {
            let link = part.split([')', '#', ' ']).next().unwrap_or("");
            if link.is_empty() || link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let folder = Path::new(&source.path).parent().unwrap_or(Path::new(""));
            if !exists(&folder.join(link)) {
                found.push(format!("{}: {link}", source.path));
            }
        }
    }
    found
}

fn assert_none(found: Vec<String>) {
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn crates_use_only_the_crates_that_an_arrow_leads_to() {
    assert_none(broken_arrows(&manifests()));
}

#[test]
fn every_dependency_of_the_workspace_is_used_by_a_crate() {
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace's manifest");
    assert!(dependencies(&workspace, false).contains("base"), "its dependencies are found");
    assert_none(unused_dependencies(&workspace, &manifests()));
}

#[test]
fn rooms_do_not_say_banned_words() {
    assert_none(banned_words(&tracked()));
}

#[test]
fn nothing_names_a_place_of_somebodys_machine() {
    assert_none(machine_paths(&tracked()));
}

#[test]
fn nothing_asks_for_real_time_priority() {
    assert_none(real_time_priority(&tracked()));
    let asks = concat!("for_threads(pid, &[\"ch", "rt\", \"-rp\", \"10\"]);");
    let found = real_time_priority(&[source("crates/judge/src/bin/bench/main.rs", asks)]);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn documents_link_to_files_that_are_there() {
    assert_none(dead_links(&tracked(), |path| root().join(path).exists()));
}

#[test]
fn every_crate_begins_with_a_sentence_about_itself() {
    let silent = tracked()
        .into_iter()
        .filter(|s| s.path.ends_with("src/lib.rs") || s.path.ends_with("src/main.rs"))
        .filter(|s| !s.text.starts_with("//! ") || s.text.lines().next().is_some_and(|l| l.len() < 20))
        .map(|s| s.path);
    assert_none(silent.collect());
}

#[test]
fn long_files_are_named() {
    // No failure: where a file has two subjects is a matter of judgement, but somebody shall look.
    for source in tracked().iter().filter(|s| s.path.ends_with(".rs") && s.text.lines().count() > 900) {
        println!("{} has {} lines: two subjects by now?", source.path, source.text.lines().count());
    }
}

// The rules themselves.

fn source(path: &str, text: &str) -> Source {
    Source { path: path.into(), text: text.into() }
}

#[test]
fn a_room_that_reads_the_clock_is_found_and_told_what_to_use() {
    let found = banned_words(&[source(
        "crates/array/src/mirror.rs",
        "fn f() {\n let t = std::time::Instant::now();\n}",
    )]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("crates/array/src/mirror.rs:2: `std::time`; use base::Instant"),
        "{found:?}"
    );
}

#[test]
fn every_ban_is_found_in_a_room_and_in_its_grandchild_modules() {
    for (word, _) in BANS {
        for path in ["crates/nvme/src/subsystem/io.rs", "crates/topology/src/pci.rs"] {
            let found = banned_words(&[source(path, &format!("use x::{word};"))]);
            assert_eq!(found.len(), 1, "{word}: {found:?}");
        }
    }
}

#[test]
fn comments_strings_tests_and_longer_words_are_not_code() {
    let text = "// HashMap would do\nlet a = \"tokio \\\" tokio\"; let MyHashMapping = 1; // std::thread\n\
                #[cfg(test)]\n#[allow(x)]\nmod tests {\n use std::collections::HashMap;\n}";
    assert_none(banned_words(&[source("crates/pool/src/lib.rs", text)]));
}

#[test]
fn what_is_no_room_may_use_threads_but_not_unsafe() {
    assert_none(banned_words(&[source(
        "crates/millrace/src/serve.rs",
        "std::thread::spawn(f); tokio::spawn(g);",
    )]));
    assert_none(banned_words(&[source("crates/uring/src/ring.rs", "unsafe { f() }")]));
    let found = banned_words(&[source("crates/millrace/src/serve.rs", "unsafe { f() }")]);
    assert_eq!(found.len(), 1, "{found:?}");
    let found = banned_words(&[source("crates/sim/tests/all.rs", "#[ignore]")]);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_room_that_uses_another_room_is_found() {
    let manifest = |text: &str| BTreeMap::from([("array".to_owned(), text.to_owned())]);
    assert_none(broken_arrows(&manifest(
        "[dependencies]\nbase.workspace = true\nzerocopy = { version = \"1\" }",
    )));
    for (text, expected) in [
        ("[dependencies]\nvolume.workspace = true", "array uses volume"),
        ("[dev-dependencies]\nhead = { path = \"../head\" }", "array uses head"),
        ("[dependencies]\ntokio.workspace = true", "array is a room and uses tokio"),
        ("[target.'cfg(unix)'.dependencies]\nrand = \"1\"", "array is a room and uses rand"),
    ] {
        let found = broken_arrows(&manifest(text));
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(expected), "{found:?}");
    }
    let found = broken_arrows(&BTreeMap::from([("attic".to_owned(), String::new())]));
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_dependency_that_nobody_uses_is_found() {
    let workspace =
        "[workspace.dependencies]\nbase = { path = \"crates/base\" }\nserde = \"1\"\ntempfile = \"3\"";
    let manifest =
        "[dependencies]\nbase.workspace = true\n[dev-dependencies]\ntempfile = { workspace = true }";
    let manifests = BTreeMap::from([("pool".to_owned(), manifest.to_owned())]);
    assert_eq!(unused_dependencies(workspace, &manifests), ["Cargo.toml: no crate uses serde"]);
}

#[test]
fn a_path_of_a_machine_and_a_dead_link_are_found() {
    let text = concat!("see /", "work/x and [this](there.md#a), [that](docs/gone.md), [w](https://x.y/z)");
    let sources = [source("README.md", text)];
    assert_eq!(machine_paths(&sources).len(), 1);
    assert_eq!(dead_links(&sources, |path| path == Path::new("there.md")), ["README.md: docs/gone.md"]);
}
