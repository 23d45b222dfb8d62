//! House rules that a machine can check. Tests below prove each rule on text that breaks it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which crates of ours a crate may use: the arrows of ARCHITECTURE.md. A new arrow is a decision:
/// write three lines in docs/rfcs/ first.
const ARROWS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("nvme", &["base"]),
    ("iscsi", &["base"]),
    ("finding", &["base"]),
    ("files", &["base", "finding"]),
    ("access", &["base", "finding"]),
    ("volume", &["base", "finding"]),
    ("pool", &["base"]),
    ("array", &["base"]),
    ("cluster", &["base"]),
    (
        "head",
        &["base", "finding", "files", "api", "nvme", "iscsi", "access", "volume", "pool", "array", "cluster"],
    ),
    ("load", &["base", "nvme", "iscsi"]),
    ("uring", &["base"]),
    (
        "sim",
        &[
            "base", "finding", "files", "nvme", "iscsi", "access", "volume", "pool", "array", "cluster",
            "head", "load",
        ],
    ),
    ("engine", &["base", "head", "load", "uring"]),
    ("api", &["base", "finding"]),
    ("topology", &["api"]),
    (
        "millrace",
        &["base", "finding", "files", "cluster", "head", "uring", "load", "engine", "api", "topology"],
    ),
    ("lab", &[]),
    ("fuzz", &["base", "nvme", "iscsi", "access", "volume", "pool", "array", "cluster", "head", "topology"]),
    ("judge", &["lab"]),
    ("mutate", &[]),
    ("xtask", &[]),
    ("peak", &[]),
    ("path", &["base", "array", "head", "load", "pool", "volume"]),
];

/// Further arrows for tests alone: both worlds must keep the same contract, and the binary's decoders
/// (its configuration, the bodies of requests) take the same noise as those of the rooms.
const TEST_ARROWS: &[(&str, &[&str])] = &[("sim", &["uring"]), ("millrace", &["fuzz"])];

/// Sans-IO state machines: everything that happens comes in by a call, with the time.
const ROOMS: &[&str] =
    &["base", "nvme", "iscsi", "access", "volume", "pool", "array", "cluster", "head", "load", "sim"];

/// Not rooms, since they may use serde_json and toml, and yet without clock, thread and files: their words are the rooms'.
const PURE: &[&str] = &["topology", "finding", "files", "api"];

/// Crates of others that a room may use: small, without I/O, clock or thread.
const ROOM_CRATES: &[&str] = &[
    "crc-fast",
    "crc32c",
    "hmac",
    "md-5",
    "postcard",
    "serde",
    "sha2",
    "subtle",
    "thiserror",
    "zerocopy",
    "zeroize",
];

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

/// So many files of a crate may use each other in a circle. In a larger one nothing can be read, tested or moved without
/// all the rest.
const CIRCLE_MAX: usize = 6;

/// Places where less is allowed.
const CIRCLES_WITHIN: &[(&str, usize)] = &[("crates/head/src/steward/", 3)];

/// Crates that find things out and do not speak to people: no sentence and no command line stands there. English is in
/// `WORDS` alone.
const SPEECHLESS: &[&str] = &[
    "base", "finding", "nvme", "iscsi", "access", "volume", "pool", "array", "cluster", "head", "load",
    "uring", "engine", "api", "topology",
];

/// Where alone sentences are read, too: parsers of others say what they found as text.
const READS: &str = "crates/millrace/src/words/parser.rs";

/// Where findings are said in English.
const WORDS: &str = "crates/millrace/src/words";

/// Who stops the program because of a mistake of ours may say so where that is.
const STOPS: &[&str] = &[
    "panic!",
    "assert!",
    "assert_eq!",
    "assert_ne!",
    "debug_assert!",
    "debug_assert_eq!",
    "unreachable!",
    "expect",
    "expect_err",
    "compile_error!",
];

/// Descriptions of the API are docstrings that stand in code.
const DESCRIBES: &str = "description";

/// Files, and folders, with texts that are no sentences to an operator.
const TEXTS: &[&str] = &[
    // The format of a recording, whose first line is `millrace recording 1`.
    "crates/topology/src/recording.rs",
    // Formats of files in the state directory, which begin with a comment for who opens them.
    "crates/head/src/steward/record/kept.rs",
    "crates/head/src/steward/record/texts.rs",
    // Worlds for tests of this crate: which promise was broken, for who reads the failed test.
    "crates/cluster/src/model.rs",
    "crates/cluster/src/world/",
];

/// What the Steward knows beyond what is decided lies here, and is changed by its own methods.
const CONTEXT: &str = "crates/head/src/steward/context/";

/// So many files beside its own may assign to a struct's fields: who assigns to the same fields depends on each other as who uses
/// the same names does.
const WRITERS_MAX: usize = 2;

/// Names of fields that structs outside `CONTEXT` have, too.
const COMMON_FIELDS: &[&str] =
    &["at", "full", "legs", "open", "path", "reason", "run", "state", "uncleared", "witness"];

/// What is decided, and the structs of it whose fields nobody else may see.
const STATE: &str = "crates/head/src/steward/state/mod.rs";
const STATE_STRUCTS: &[&str] = &["State", "Pool", "Away"];

/// Letters of whom, and where alone they are taken out of what travels. Whoever writes one calls `to_shard`, `to_steward` or
/// `to_manager`, so that the compiler knows who may get what.
const RECEIVERS: &[(&str, &[&str])] = &[
    // Worlds compare what a letter says with what is so.
    ("Mail::Shard(", &["crates/head/src/shard.rs", "crates/sim/src/world/told.rs"]),
    ("Mail::Steward(", &["crates/head/src/steward/mod.rs", "crates/sim/src/world/told.rs"]),
    (
        "Mail::Manager(",
        &[
            "crates/millrace/src/daemon/run.rs",
            "crates/millrace/src/bench/stand/mod.rs",
            "crates/sim/src/world/mod.rs",
        ],
    ),
];

/// Where those are made.
const LETTERS: &str = "crates/head/src/mail.rs";

/// Most characters of a commit's subject.
const SUBJECT_MAX: usize = 72;

/// Since when that holds.
const SUBJECTS_SINCE: &str = "2026-11-26T23:00:00Z";

/// The words of this project; its last column has those that it does not use.
const GLOSSARY: &str = "docs/glossary.md";

/// Documents beside those in docs/ that keep to the glossary.
const DOCUMENTS: &[&str] = &["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "SPECIFICATION.md"];

/// Where a program speaks to people.
const SPEAKS: &str = "crates/millrace/src/";

/// So many source files may lie in one folder: beyond it nobody finds anything by looking.
const FOLDER_MAX: usize = 15;

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
            if tests_next && bare.split(' ').any(|word| word == "mod") && bare.trim_end().ends_with('{') {
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

/// Tests of the judge that start guests and are not in the program that `make test` runs one test of at a time.
fn guests_elsewhere(sources: &[Source]) -> Vec<String> {
    let starts = ["Vm::builder", "soak::guest(", "soak::cuts(", "soak::takeovers("];
    let elsewhere = |s: &&Source| {
        s.path.starts_with("crates/judge/tests/") && !s.path.starts_with("crates/judge/tests/guests/")
    };
    let mut found = Vec::new();
    for source in sources.iter().filter(elsewhere) {
        for (number, line) in (1..).zip(source.text.lines()) {
            if starts.iter().any(|start| line.contains(start)) {
                found.push(format!("{}:{number}: a guest belongs to crates/judge/tests/guests", source.path));
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

/// Code alone: comments, what strings and characters say, and what is compiled for tests only become blanks.
fn code_alone(text: &str) -> Vec<char> {
    let (mut code, _) = code_and_strings(text);
    blank_tests(&mut code);
    code
}

/// Code without comments and without what strings and characters say, and where those strings are.
fn code_and_strings(text: &str) -> (Vec<char>, Vec<core::ops::Range<usize>>) {
    let mut code: Vec<char> = text.chars().collect();
    let mut strings = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        let end = match rest {
            ['/', '/', ..] => rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => comment_end(rest),
            ['r', '"' | '#', ..] if at == 0 || !is_word(code[at - 1]) => raw_string_end(rest),
            ['"', ..] => quoted_end(rest, '"'),
            ['\'', '\\', ..] => quoted_end(rest, '\''),
            ['\'', _, '\'', ..] => 3,
            _ => 0,
        };
        if end > 0 && (rest[0] == '"' || rest[0] == 'r') {
            strings.push(at..at + end);
        }
        code[at..at + end].fill(' ');
        at += end.max(1);
    }
    (code, strings)
}

/// What is compiled for tests only becomes `x`, as many as it has characters.
fn blank_tests(code: &mut [char]) {
    let marker: Vec<char> = "#[cfg(test)]".chars().collect();
    let mut at = 0;
    while at + marker.len() <= code.len() {
        let end = if code[at..].starts_with(&marker) { item_end(&code[at..]) } else { 0 };
        code[at..at + end].fill(' ');
        at += end.max(1);
    }
}

/// A string of the product's code: its line, what it says, and the calls that it stands in, innermost last.
struct Literal {
    line: usize,
    says: String,
    calls: Vec<String>,
    /// Bytes are what lies on a drive or a wire, not what somebody reads.
    is_bytes: bool,
}

/// The strings of a source file that are compiled into the product.
fn literals(text: &str) -> Vec<Literal> {
    let (code, strings) = code_and_strings(text);
    let mut product = code.clone();
    // What stays of a test's code differs from the code.
    blank_tests(&mut product);
    let all: Vec<char> = text.chars().collect();
    let (mut calls, mut found, mut line, mut at) = (Vec::<String>::new(), Vec::new(), 1, 0);
    let mut strings = strings.into_iter().peekable();
    while at < all.len() {
        if let Some(string) = strings.next_if(|s| s.start == at) {
            let in_test = {
                // A test's item is blank in `product` from its attribute on: look at the code before and behind.
                let near = |mut i: usize, step: isize| loop {
                    let next = i as isize + step;
                    if next < 0 || next as usize >= code.len() {
                        break false;
                    }
                    i = next as usize;
                    if !code[i].is_whitespace() {
                        break product[i].is_whitespace();
                    }
                };
                near(string.start, -1) && near(string.end - 1, 1)
            };
            let says: String = all[string.clone()].iter().collect();
            if !in_test {
                let is_bytes = at > 0 && code[at - 1] == 'b';
                found.push(Literal { line, says: says.clone(), calls: calls.clone(), is_bytes });
            }
            line += says.matches('\n').count();
            at = string.end;
            continue;
        }
        match code[at] {
            '(' | '[' | '{' => {
                let mut from = at;
                while from > 0 && (is_word(code[from - 1]) || code[from - 1] == '!') {
                    from -= 1;
                }
                let attribute = code[at] == '[' && from > 0 && code[from - 1] == '#';
                let name: String = code[from..at].iter().collect();
                calls.push(if attribute { "#".into() } else { name });
            }
            ')' | ']' | '}' => {
                calls.pop();
            }
            _ => {}
        }
        if all[at] == '\n' {
            line += 1;
        }
        at += 1;
    }
    found
}

/// Whether a string has a part of a sentence in it: three words of small letters, one behind the other.
fn is_sentence(says: &str) -> bool {
    let is_word = |w: &str| {
        let w = w.trim_end_matches([',', ';', ':', '.', '\'', '"']);
        w.len() > 1 && w.chars().all(|c| c.is_ascii_lowercase() || c == '\'')
    };
    let inner = says.trim_matches(['r', '#', '"']);
    let words: Vec<&str> = inner.split([' ', '\n']).collect();
    words.windows(3).any(|w| w.iter().all(|w| is_word(w)))
}

/// Sentences and command lines outside of `WORDS`, in crates that do not speak.
fn sentences(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    let speechless = |s: &&Source| {
        SPEECHLESS.contains(&s.room())
            && s.path.ends_with(".rs")
            && s.is_product()
            && !TEXTS.iter().any(|text| s.path.starts_with(text))
    };
    for source in sources.iter().filter(speechless) {
        for literal in literals(&source.text) {
            let stops = |call: &String| call == "#" || call == DESCRIBES || STOPS.contains(&call.as_str());
            let command = literal.says.trim_matches('"').starts_with("millrace ");
            if !literal.is_bytes
                && !literal.calls.iter().any(stops)
                && (command || is_sentence(&literal.says))
            {
                found.push(format!("{}:{}: {} belongs to {WORDS}", source.path, literal.line, literal.says));
            }
        }
    }
    found
}

/// Code that looks into a sentence for what a type should say.
fn inspected(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    let looks =
        ["contains", "starts_with", "ends_with", "strip_prefix", "strip_suffix", "find", "split_once"];
    for source in sources.iter().filter(|s| s.path.starts_with("crates/") && s.is_product()) {
        // Tests of the product from outside read what people read, and so do the lab and the judge.
        if !source.path.ends_with(".rs") || ["judge", "lab"].contains(&source.room()) || source.path == READS
        {
            continue;
        }
        for literal in literals(&source.text) {
            let looked_for = literal.calls.last().is_some_and(|call| looks.contains(&call.as_str()));
            if looked_for && is_sentence(&literal.says) {
                found.push(format!(
                    "{}:{}: {} is looked for in a text",
                    source.path, literal.line, literal.says
                ));
            }
        }
        for (number, line) in source.code() {
            for look in looks.iter().map(|l| format!("message.{l}(")).filter(|l| line.contains(l)) {
                found.push(format!("{}:{number}: {look} inspects a sentence", source.path));
            }
        }
    }
    found
}

/// Subjects of commits that are long, or hold two thoughts.
fn long_subjects(subjects: &str) -> Vec<String> {
    let bad = |s: &&str| s.chars().count() > SUBJECT_MAX || s.contains(';');
    subjects.lines().filter(bad).map(str::to_string).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where a comment ends that may hold others.
fn comment_end(code: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < code.len() {
        match &code[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
            }
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Where a raw string ends; 0 if it is none.
fn raw_string_end(code: &[char]) -> usize {
    let hashes = code[1..].iter().take_while(|c| **c == '#').count();
    if code.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let closing =
        |from: &[char]| from[0] == '"' && from[1..].iter().take_while(|c| **c == '#').count() >= hashes;
    let begin = 2 + hashes;
    let body = (begin..code.len()).find(|at| closing(&code[*at..]));
    body.map_or(code.len(), |end| end + 1 + hashes)
}

/// Where a string or a character ends.
fn quoted_end(code: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < code.len() && code[at] != quote {
        at += if code[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(code.len())
}

/// Where the item behind an attribute ends: at its semicolon, or where its braces close.
fn item_end(code: &[char]) -> usize {
    let mut depth = 0usize;
    for (at, c) in code.iter().enumerate() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(c, ';' | '}') {
            return at + 1;
        }
    }
    code.len()
}

/// A module's path below its crate: `["bench", "result"]`.
type Module = Vec<String>;

/// Words, `::` and single signs of the code.
fn tokens(text: &str) -> Vec<String> {
    let code = code_alone(text);
    let (mut out, mut at) = (Vec::new(), 0);
    while at < code.len() {
        let len = match code[at..] {
            [c, ..] if is_word(c) => code[at..].iter().take_while(|c| is_word(**c)).count(),
            [':', ':', ..] => 2,
            _ => 1,
        };
        if !code[at].is_whitespace() {
            out.push(code[at..at + len].iter().collect());
        }
        at += len;
    }
    out
}

/// The paths from `crate`, `super` or `self` on that the code of a module's file names, as the crate's root sees them.
fn named_paths(text: &str, module: &[String]) -> BTreeSet<Module> {
    let tokens = tokens(text);
    let token = |at: usize| tokens.get(at).map_or("", String::as_str);
    // Modules within the file, and how deep they began: there `super` is the file itself.
    let (mut inside, mut began) = (module.to_vec(), Vec::new());
    let (mut found, mut depth, mut at) = (BTreeSet::new(), 0usize, 0);
    while at < tokens.len() {
        let before = |n: usize| at.checked_sub(n).map_or("", token);
        match token(at) {
            "mod" if token(at + 2) == "{" => {
                inside.push(token(at + 1).into());
                began.push(depth);
            }
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if began.last() == Some(&depth) {
                    began.pop();
                    inside.pop();
                }
            }
            // `pub(in crate::x)` uses nothing.
            "crate" | "super" | "self"
                if token(at + 1) == "::" && before(1) != "::" && [before(2), before(1)] != ["(", "in"] =>
            {
                let mut paths = Vec::new();
                at = path_tree(&tokens, at, &[], &mut paths);
                found.extend(paths.iter().filter_map(|path| from_root(path, &inside)));
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Reads the path, or the tree of paths, that begins at `at` and continues `prefix`; where it ends.
fn path_tree(tokens: &[String], mut at: usize, prefix: &[String], out: &mut Vec<Module>) -> usize {
    let token = |at: usize| tokens.get(at).map_or("", String::as_str);
    if token(at) == "{" {
        at += 1;
        while !matches!(token(at), "}" | "") {
            at = path_tree(tokens, at, prefix, out);
            // What it is called here is of no interest.
            while !matches!(token(at), "," | "}" | "") {
                at += 1;
            }
            at += usize::from(token(at) == ",");
        }
        return at + 1;
    }
    let mut path = prefix.to_vec();
    // Behind a prefix `self` is what the prefix names.
    if token(at).starts_with(is_word) && (path.is_empty() || token(at) != "self") {
        path.push(token(at).into());
    }
    let goes_on = token(at + 1) == "::" && (token(at + 2) == "{" || token(at + 2).starts_with(is_word));
    if goes_on {
        return path_tree(tokens, at + 2, &path, out);
    }
    out.push(path);
    at + 1
}

/// A path as its crate's root sees it.
fn from_root(path: &[String], module: &[String]) -> Option<Module> {
    let (first, mut rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Vec::new(),
        "self" => module.to_vec(),
        _ => module.split_last()?.1.to_vec(),
    };
    while let Some((_, more)) = rest.split_first().filter(|(next, _)| *next == "super") {
        base.pop()?;
        rest = more;
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

/// The root of a file's crate (the library, or a program beside it), and the file's module there. None for tests.
fn module_of(path: &str) -> Option<(String, Module)> {
    let (before, below) = path.strip_suffix(".rs")?.split_once("/src/")?;
    let mut parts: Vec<&str> = below.split('/').collect();
    if parts.contains(&"tests") {
        return None;
    }
    let mut root = format!("{before}/src");
    if parts.len() > 1 && parts[0] == "bin" {
        root = format!("{root}/bin/{}", parts[1]);
        parts.drain(..2);
    }
    if parts.last() == Some(&"mod") || matches!(parts[..], ["lib" | "main"]) {
        parts.pop();
    }
    Some((root, parts.iter().map(|part| part.to_string()).collect()))
}

/// Files of one crate that use each other in a circle. A file uses another if it names a path in the module
/// that the other one is.
fn circles(sources: &[&Source], modules: &BTreeMap<Module, usize>) -> Vec<Vec<usize>> {
    let mut uses = vec![BTreeSet::new(); sources.len()];
    for (module, from) in modules {
        for path in named_paths(&sources[*from].text, module) {
            let file = (0..=path.len()).rev().find_map(|n| modules.get(&path[..n]));
            uses[*from].extend(file.filter(|to| *to != from));
        }
    }
    let reaches = |from: usize| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(at) = next.pop() {
            next.extend(uses[at].iter().filter(|to| seen.insert(**to)));
        }
        seen
    };
    let reached: Vec<BTreeSet<usize>> = (0..sources.len()).map(reaches).collect();
    let circle = |of: usize| -> Vec<usize> {
        reached[of].iter().copied().filter(|at| reached[*at].contains(&of)).collect()
    };
    // Each of its members names the same circle.
    let found: BTreeSet<Vec<usize>> = (0..sources.len()).map(circle).filter(|c| c.len() > 1).collect();
    found.into_iter().collect()
}

/// Circles that are larger than they may be.
fn large_circles(sources: &[Source]) -> Vec<String> {
    let mut crates: BTreeMap<String, (Vec<&Source>, BTreeMap<Module, usize>)> = BTreeMap::new();
    for source in sources {
        let Some((root, module)) = module_of(&source.path) else { continue };
        let (files, modules) = crates.entry(root).or_default();
        // Of a library and a program in one folder the library counts: it is listed first.
        modules.entry(module).or_insert(files.len());
        files.push(source);
    }
    let mut found = Vec::new();
    for (root, (files, modules)) in &crates {
        for circle in circles(files, modules) {
            let paths: Vec<&str> = circle.iter().map(|at| files[*at].path.as_str()).collect();
            let within = |place: &str| paths.iter().any(|path| path.starts_with(place));
            let strict = CIRCLES_WITHIN.iter().filter(|(place, _)| within(place)).map(|(_, max)| *max).min();
            let max = strict.unwrap_or(CIRCLE_MAX);
            if paths.len() > max {
                let names: Vec<&str> = paths.iter().map(|path| &path[root.len() + 1..]).collect();
                found.push(format!(
                    "{root}: {} files use each other in a circle, at most {max} may: {}; move what they share to a file \
                     that uses none of them",
                    paths.len(),
                    names.join(" ")
                ));
            }
        }
    }
    found
}

/// A struct's fields as they are written, by its name.
fn structs(source: &Source) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut within: Option<String> = None;
    for (_, line) in source.code() {
        let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        if let Some(at) = words.iter().position(|w| *w == "struct").filter(|_| line.trim_end().ends_with('{'))
        {
            within = words.get(at + 1).map(|name| name.to_string());
        } else if line.starts_with('}') {
            within = None;
        } else if let (Some(name), Some((field, _))) = (&within, line.trim().split_once(':')) {
            found.entry(name.clone()).or_default().push(field.to_string());
        }
    }
    found
}

/// Fields to which a line assigns: `x.field = …`, `x.field[i] += …`, `(x.one, x.other) = …`.
fn assigned(line: &str) -> Vec<String> {
    let mut found = vec![];
    for sign in [" = ", " += ", " -= ", " |= "] {
        let Some((left, _)) = line.split_once(sign).filter(|(left, _)| !left.contains("let ")) else {
            continue;
        };
        let tuple = left.trim().strip_prefix('(').and_then(|l| l.strip_suffix(')'));
        let places = tuple.map_or(vec![left.trim()], |inner| inner.split(',').map(str::trim).collect());
        for place in places {
            let mut depth = 0;
            let indexed = |c: &char| {
                depth += i32::from(*c == '[');
                let inside = depth > 0;
                depth -= i32::from(*c == ']');
                !inside
            };
            let place: String = place.chars().filter(indexed).collect();
            let is_place = |c: char| c.is_alphanumeric() || ['_', '.', '*', '(', ')', '?', '&'].contains(&c);
            if let Some((_, field)) = place.rsplit_once('.').filter(|_| place.chars().all(is_place)) {
                found.push(field.to_string());
            }
        }
    }
    found
}

/// Structs of the context to whose fields too many files assign.
fn many_writers(sources: &[Source]) -> Vec<String> {
    let mut found = vec![];
    for own in sources.iter().filter(|s| s.path.starts_with(CONTEXT)) {
        for (name, fields) in structs(own) {
            let bare = |f: &String| f.rsplit(' ').next().unwrap_or(f).to_string();
            let fields: BTreeSet<String> =
                fields.iter().map(bare).filter(|f| !COMMON_FIELDS.contains(&f.as_str())).collect();
            let writes = |s: &&Source| {
                let apart = [CONTEXT, STATE.strip_suffix("mod.rs").unwrap_or(STATE)];
                let is_apart = apart.iter().any(|place| s.path.starts_with(place));
                let is_other = s.path.starts_with(PROCEDURES) && !is_apart && s.is_product();
                is_other && s.code().iter().any(|(_, line)| assigned(line).iter().any(|f| fields.contains(f)))
            };
            let writers: Vec<&str> = sources.iter().filter(writes).map(|s| s.path.as_str()).collect();
            if writers.len() > WRITERS_MAX {
                found.push(format!(
                    "{} files assign to fields of {name} ({}): {}; give it methods that say what happens",
                    writers.len(),
                    own.path,
                    writers.join(" ")
                ));
            }
        }
    }
    found
}

/// Fields of what is decided that others could write.
fn open_state(sources: &[Source]) -> Vec<String> {
    let mut found = vec![];
    for source in sources.iter().filter(|s| s.path == STATE) {
        let structs = structs(source);
        for name in STATE_STRUCTS {
            match structs.get(*name) {
                None => found
                    .push(format!("{STATE} has no struct {name}: name it in tidy.rs as it is called today")),
                Some(fields) => found.extend(fields.iter().filter(|f| f.starts_with("pub")).map(|f| {
                    format!("{STATE}: {name} has a field that others can write, {f}: only `apply` may")
                })),
            }
        }
    }
    found
}

/// Letters that somebody else than their receiver takes apart, or writes by hand.
fn strange_letters(sources: &[Source]) -> Vec<String> {
    let mut found = vec![];
    for source in sources.iter().filter(|s| s.path.ends_with(".rs") && s.is_product() && s.path != LETTERS) {
        for (number, line) in source.code() {
            for (words, takers) in RECEIVERS {
                if line.contains(words) && !takers.contains(&source.path.as_str()) {
                    found.push(format!(
                        "{}:{number} says {words}…): only its receiver takes such a letter; write one with {LETTERS}",
                        source.path
                    ));
                }
            }
        }
    }
    found
}

/// What joins two operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    And,
    Or,
}

impl Joint {
    /// The one that this code ends with. Behind what is no operand, `||` begins a closure.
    fn at_end(code: &str) -> Option<Self> {
        let is_operand = |c: char| is_word(c) || matches!(c, ')' | ']' | '}' | '?');
        if let Some(before) = code.strip_suffix("||") {
            return before.trim_end().ends_with(is_operand).then_some(Self::Or);
        }
        code.ends_with("&&").then_some(Self::And)
    }
    /// The one that this code begins with, and what follows it.
    fn at_start(code: &str) -> Option<(Self, &str)> {
        let and = code.strip_prefix("&&").map(|behind| (Self::And, behind));
        and.or_else(|| code.strip_prefix("||").map(|behind| (Self::Or, behind)))
    }
}

/// What stands before an operand: without its negations and the path that it is called by.
fn before_operand(mut code: &str) -> &str {
    loop {
        code = code.trim_end_matches(|c: char| c.is_whitespace() || c == '!');
        let Some(path) = code.strip_suffix("::") else { return code };
        code = path.trim_end_matches(is_word);
    }
}

/// What is behind the bracket that this code begins with.
fn behind_bracket(code: &str) -> &str {
    let mut depth = 0usize;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return code[at + c.len_utf8()..].trim_start();
        }
    }
    ""
}

/// Where a planted bug is asked for before all else says that its answer counts: worlds would count as armed in which it changes
/// nothing.
fn asked_too_early(sources: &[Source]) -> Vec<String> {
    let mut found = vec![];
    for source in sources.iter().filter(|s| s.path.ends_with(".rs") && s.is_product()) {
        let code: String = code_alone(&source.text).into_iter().collect();
        for (call, is_value) in [("planted(", true), ("planted_if(", false)] {
            for (at, _) in code.match_indices(call).filter(|(at, _)| !code[..*at].ends_with(is_word)) {
                let before = before_operand(&code[..at]);
                let behind = behind_bracket(&code[at + call.len() - 1..]);
                let early = Joint::at_start(behind).is_some_and(|(joint, next)| {
                    let next = next.trim_start_matches(|c: char| c.is_whitespace() || c == '!');
                    match (Joint::at_end(before), joint) {
                        (Some(Joint::And), Joint::Or) => false,
                        (Some(other), joint) => other != joint || !next.starts_with("planted"),
                        (None, _) => true,
                    }
                });
                let is_if = before.strip_suffix("if").is_some_and(|b| !b.ends_with(is_word));
                let alone = is_value && is_if && behind.starts_with('{');
                let chooses = alone && behind_bracket(behind).starts_with("else");
                if early || chooses {
                    let chars = source.text.chars().take(code[..at].chars().count());
                    let line = 1 + chars.filter(|c| *c == '\n').count();
                    found.push(format!(
                        "{}:{line}: a planted bug is asked for last: wrong || planted(…), right && !planted(…), or by planted_if",
                        source.path
                    ));
                }
            }
        }
    }
    found
}

/// Folders with more source files than somebody can survey.
fn full_folders(sources: &[Source]) -> Vec<String> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources.iter().filter(|s| s.path.ends_with(".rs") && s.path.contains("/src/")) {
        let (folder, _) = source.path.rsplit_once('/').expect("it lies in a folder, as was seen above");
        if !format!("{folder}/").contains("/tests/") {
            *folders.entry(folder).or_default() += 1;
        }
    }
    let full = folders.into_iter().filter(|(_, files)| *files > FOLDER_MAX);
    let sentence = |(folder, files)| {
        format!(
            "{folder} has {files} source files, at most {FOLDER_MAX} may lie there: group them by subject"
        )
    };
    full.map(sentence).collect()
}

/// Words of a name or a text, in small letters: `HostId` and `host_id` are both `host`, `id`.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut before) = (vec![String::new()], ' ');
    for c in text.chars() {
        if !c.is_alphanumeric() || before.is_lowercase() && c.is_uppercase() {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().expect("never empty").extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|w| !w.is_empty());
    words
}

/// Words that are not used, each with the one that is: those set as code in the last column of the glossary.
fn old_words(glossary: &str) -> Vec<(Vec<String>, String)> {
    let mut old = Vec::new();
    for row in glossary.lines().filter(|l| l.starts_with("| ")) {
        let columns: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let [word, _, unused] = columns[..] else { panic!("a row of three columns: {row}") };
        old.extend(unused.split('`').skip(1).step_by(2).map(|unused| (words(unused), word.to_string())));
    }
    old
}

/// Old words in names of the product's code, in documents and in what the program says.
fn old_words_used(sources: &[Source], old: &[(Vec<String>, String)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut look = |path: &str, line: usize, text: &str| {
        let text = words(text);
        let is = |word: &String, old: &String| word == old || word.strip_suffix('s') == Some(old);
        for (unused, word) in old {
            if text.windows(unused.len()).any(|w| w.iter().zip(unused).all(|(w, o)| is(w, o))) {
                found.push(format!("{path}:{line}: `{}`; the glossary says {word}", unused.join(" ")));
            }
        }
    };
    for source in sources {
        let path = source.path.as_str();
        if DOCUMENTS.contains(&path) || path.starts_with("docs/") && path.ends_with(".md") && path != GLOSSARY
        {
            // Words of two cells of a table are no words of one text.
            for (number, line) in (1..).zip(source.text.lines()) {
                line.split(" | ").for_each(|text| look(path, number, text));
            }
        } else if path.starts_with("crates/") && path.ends_with(".rs") && source.is_product() {
            for (number, line) in source.code() {
                line.split(|c| !is_word(c)).for_each(|name| look(path, number, name));
            }
            if path.starts_with(SPEAKS) {
                literals(&source.text).iter().for_each(|l| look(path, l.line, &l.says));
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
fn what_is_found_is_said_in_one_place() {
    assert_none(sentences(&tracked()));
}

#[test]
fn nobody_looks_into_a_sentence() {
    assert_none(inspected(&tracked()));
}

#[test]
fn subjects_of_commits_are_short_and_hold_one_thought() {
    let git = |args: &[&str]| {
        let out = Command::new("git").args(args).current_dir(root()).output().expect("git runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    assert_none(long_subjects(&git(&["log", "--format=%s", &format!("--since={SUBJECTS_SINCE}")])));
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
fn guests_have_a_program_of_their_own() {
    assert_none(guests_elsewhere(&tracked()));
    let starts = "let vm = Vm::builder(\"one\").start(&net);";
    assert_eq!(guests_elsewhere(&[source("crates/judge/tests/all/wire.rs", starts)]).len(), 1);
    assert_none(guests_elsewhere(&[source("crates/judge/tests/guests/wire.rs", starts)]));
}

#[test]
fn documents_link_to_files_that_are_there() {
    assert_none(dead_links(&tracked(), |path| root().join(path).exists()));
}

#[test]
fn few_files_of_a_crate_use_each_other_in_a_circle() {
    assert_none(large_circles(&tracked()));
}

#[test]
fn what_the_steward_knows_is_changed_by_its_own_methods() {
    assert_none(many_writers(&tracked()));
}

#[test]
fn what_is_decided_is_written_by_apply_alone() {
    assert_none(open_state(&tracked()));
}

#[test]
fn nobody_takes_the_letters_of_another() {
    assert_none(strange_letters(&tracked()));
}

#[test]
fn planted_bugs_are_asked_for_last() {
    assert_none(asked_too_early(&tracked()));
}

#[test]
fn nobody_uses_a_word_that_the_glossary_has_another_one_for() {
    let sources = tracked();
    let glossary = sources.iter().find(|s| s.path == GLOSSARY).expect("the glossary");
    assert_none(old_words_used(&sources, &old_words(&glossary.text)));
}

#[test]
fn no_folder_is_too_full() {
    assert_none(full_folders(&tracked()));
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
fn a_sentence_and_a_command_in_a_room_are_found() {
    let found = |text: &str| sentences(&[source("crates/head/src/a.rs", text)]).len();
    assert_eq!(found("fn f() -> String { format!(\"the drive {d} is gone\") }"), 0, "two words and a name");
    assert_eq!(found("fn f() -> String { format!(\"{d} could not be labelled\") }"), 1);
    assert_eq!(found("const F: &str = \"millrace drive ls\";"), 1);
    assert_eq!(
        found("fn f() { assert!(x, \"this is our own mistake\"); g().expect(\"it was just found\"); }"),
        0
    );
    assert_eq!(
        found("// \"this is said nowhere at all\"\n#[doc = \"this is said to readers\"]\nfn f() {}"),
        0
    );
    assert_eq!(found("#[cfg(test)]\nmod tests { fn f() { g(\"this is said in tests\"); } }"), 0);
    assert_eq!(found("fn f() { g('\"', \"this is said behind it\") }"), 1);
    assert_eq!(found("const MAGIC: &[u8] = b\"what lies on a drive\";"), 0);
    assert_eq!(found("fn f() { o.description(Some(\"what this is for\")) }"), 0);
    assert!(
        sentences(&[source("crates/millrace/src/words/a.rs", "const A: &str = \"the head is away\";")])
            .is_empty()
    );
}

#[test]
fn code_that_looks_into_a_sentence_is_found() {
    let found = |text: &str| inspected(&[source("crates/millrace/src/a.rs", text)]).len();
    assert_eq!(found("fn f(r: &R) -> bool { r.message.contains(&x) }"), 1);
    assert_eq!(found("fn f(r: &str) -> bool { r.ends_with(\"it was cut off\") }"), 1);
    assert_eq!(found("fn f(r: &str) -> bool { r.starts_with(\"ram:\") }"), 0);
}

#[test]
fn a_long_subject_is_found() {
    let long = "head: ".to_string() + &"x".repeat(70);
    assert_eq!(long_subjects(&format!("head: short\n{long}\nhead: one; two\n")).len(), 2);
}

#[test]
fn a_room_that_reads_the_clock_is_found_with_what_to_use() {
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

/// `n` files of the crate array that use each other in a ring, by the path that `named` makes of the next one's name.
fn ring(folder: &str, n: usize, named: impl Fn(&str) -> String) -> Vec<Source> {
    let file = |i: usize| source(&format!("{folder}/m{i}.rs"), &named(&format!("m{}", (i + 1) % n)));
    (0..n).map(file).collect()
}

#[test]
fn a_large_circle_is_found_however_it_is_written() {
    for way in [
        "use crate::NEXT::Thing;",
        "use super::NEXT;",
        "use crate::{bitmap::Bitmap, NEXT::{self, Thing as Other}};",
        "use super::{\n    bitmap,\n    NEXT::{deep::{Thing}, *},\n};",
        "fn f() -> u32 { 'a'; crate::NEXT::deep::f(\"\\\"\") }",
        "fn f(x: &crate :: NEXT :: Thing) {}",
        "mod inner { use super::super::NEXT::Thing; }",
        "fn f<'a>(x: &'a str) -> crate::NEXT::Thing<'a> { g(x) }",
    ] {
        let named = |next: &str| way.replace("NEXT", next);
        assert_none(large_circles(&ring("crates/array/src", CIRCLE_MAX, named)));
        let found = large_circles(&ring("crates/array/src", CIRCLE_MAX + 1, named));
        assert_eq!(found.len(), 1, "{way}: {found:?}");
        assert!(
            found[0]
                .starts_with("crates/array/src: 7 files use each other in a circle, at most 6 may: m0.rs")
        );
    }
}

#[test]
fn what_is_no_use_of_another_file_makes_no_circle() {
    for way in [
        "// crate::NEXT::Thing\n/* crate::NEXT /* crate::NEXT */ crate::NEXT */",
        "const A: &str = \"\\\\\\\"crate::NEXT\\n\n crate::NEXT\"; const B: &str = r#\"\"crate::NEXT\"#;",
        "#[cfg(test)]\nmod tests { use crate::NEXT::Thing; fn f() { crate::NEXT::g() } }",
        "#[cfg(test)]\nuse crate::NEXT::Thing;",
        "use other::NEXT::Thing; use array::{NEXT};",
        "mod inner { use super::NEXT::Thing; }",
        "pub(in crate::NEXT) fn f() {}",
    ] {
        let found = large_circles(&ring("crates/array/src", 9, |next| way.replace("NEXT", next)));
        assert!(found.is_empty(), "{way}: {found:?}");
    }
    let tests = ring("crates/array/src/tests", 9, |next| format!("use super::{next}::Thing;"));
    assert_none(large_circles(&tests));
}

#[test]
fn a_path_belongs_to_the_deepest_file_that_it_names() {
    // The parent uses its children, and they each other through `super`, but none of them the parent.
    let mut sources = ring("crates/array/src/deep", 5, |next| format!("use super::{next}::Thing;"));
    sources.push(source("crates/array/src/deep/mod.rs", "use self::m0::Thing; use crate::deep::m1::g;"));
    sources.push(source("crates/array/src/lib.rs", "pub use crate::deep::Thing;"));
    assert_none(large_circles(&sources));
    // One of them takes a type from the parent, another one from the root.
    sources[0].text += "use super::{Plain, m3};";
    sources[1].text += "use crate::Name;";
    let found = large_circles(&sources);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("7 files") && found[0].contains("deep/mod.rs") && found[0].contains("lib.rs"));
}

#[test]
fn programs_of_a_crate_are_crates_of_their_own() {
    let mut sources = ring("crates/judge/src", 4, |next| format!("use crate::{next}::Thing;"));
    sources.extend(ring("crates/judge/src/bin/soak", 4, |next| format!("use crate::{next}::Thing;")));
    assert_none(large_circles(&sources));
}

#[test]
fn the_control_plane_may_have_smaller_circles() {
    let named = |next: &str| format!("use super::{next}::Thing;");
    assert_none(large_circles(&ring("crates/head/src/steward", 3, named)));
    let found = large_circles(&ring("crates/head/src/steward", 4, named));
    assert!(found.len() == 1 && found[0].contains("at most 3 may"), "{found:?}");
    assert_none(large_circles(&ring("crates/head/src/path", 6, named)));
}

#[test]
fn a_struct_that_many_files_write_is_found() {
    let own = source(
        &format!("{CONTEXT}pool.rs"),
        "pub(crate) struct PoolContext {\n    pub held: bool,\n    pub path: String,\n    marks: u32,\n}\nimpl X { fn f(&mut self) { self.held = true; } }",
    );
    let writer = |n: usize, line: &str| source(&format!("{PROCEDURES}legs/f{n}.rs"), line);
    let lines = [
        "    p.held = true;",
        "        (p.marks, p.leg) = (1, 2);",
        "    self.context_mut().pools[3].held |= x;",
    ];
    let mut sources = vec![own];
    sources.extend(lines.iter().enumerate().take(WRITERS_MAX).map(|(n, line)| writer(n, line)));
    for harmless in
        ["let p.held = 1;", "if p.held == q {}", "x.path = y;", "// p.held = true;", "f(p.held, marks = 1)"]
    {
        sources.push(writer(9, harmless));
        assert_none(many_writers(&sources));
        sources.pop();
    }
    sources.push(writer(WRITERS_MAX, lines[WRITERS_MAX]));
    let found = many_writers(&sources);
    assert!(found.len() == 1 && found[0].starts_with("3 files assign to fields of PoolContext"), "{found:?}");
}

#[test]
fn a_field_of_the_state_that_others_can_write_is_found() {
    let text = "pub struct State {\n    number: u64,\n}\npub struct Pool {\n    pub(crate) record: u8,\n}\n";
    let found = open_state(&[source(STATE, text)]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("Pool has a field that others can write, pub(crate) record"), "{found:?}");
    assert!(found[1].contains("no struct Away"), "{found:?}");
}

#[test]
fn a_letter_in_the_wrong_hands_is_found() {
    let takes = "fn f(m: Mail) {\n    let Mail::Steward(m) = m else { panic!() };\n}\n#[cfg(test)]\nmod tests {\n    Mail::Shard(x)\n}\n";
    assert_none(strange_letters(&[source("crates/head/src/steward/mod.rs", takes)]));
    let found = strange_letters(&[source("crates/head/src/shard/letters.rs", takes)]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("crates/head/src/shard/letters.rs:2 says Mail::Steward("), "{found:?}");
}

#[test]
fn a_planted_bug_that_is_asked_for_too_early_is_found() {
    let found = |text: &str| asked_too_early(&[source("crates/head/src/a.rs", text)]);
    for early in [
        "if planted(Bug::A) && x {}",
        "let a = !planted(Bug::A)\n    || x;",
        "let a = x || planted(Bug::A) && y;",
        "let a = x && !planted(Bug::A) && y;",
        "let a = x || planted(Bug::A) || y;",
        "let a = (base::planted(Bug::A) && x);",
        "let a = planted_if(Bug::A, || x != y) && z;",
        "f(|p| !planted(Bug::A) && p.x)",
        "f(|| planted(Bug::A) || x)",
        "if let Some(x) = y && planted(Bug::A) && let Ok(z) = x {}",
        "let a = if planted(Bug::A) { 0 } else { x };",
        "let a = if !planted(Bug::A) {\n    x\n} else {\n    0\n};",
    ] {
        assert_eq!(found(early).len(), 1, "{early}");
    }
    for last in [
        "let a = x || planted(Bug::A);",
        "let a = x && !planted(Bug::A) || y;",
        "let a = x && !planted(Bug::A) && !planted(Bug::B);",
        "let a = if x && planted(Bug::A) { 0 } else { x };",
        "if planted(Bug::A) {\n    return;\n}",
        "match x { y if planted(Bug::A) => 1, _ => 2 }",
        "let a = planted_if(Bug::A, || x && y || z);",
        "let a = if planted_if(Bug::A, || any != all) { any } else { all };",
        "let a = x.any(|x| x.y || !planted(Bug::A)) && z;",
        "f(|| planted(Bug::A));",
        "// planted(Bug::A) && x\nlet a = is_planted(Bug::A) && x;",
        "#[cfg(test)]\nmod tests {\n    fn f() { planted(Bug::A) && x }\n}",
    ] {
        assert_none(found(last));
    }
    let found = found("fn f() {\n    g(\"\n\");\n    planted(Bug::A) && x\n}");
    assert!(found[0].starts_with("crates/head/src/a.rs:4: "), "{found:?}");
}

#[test]
fn an_old_word_is_found() {
    let glossary = "| word | meaning | not used |\n| --- | --- | --- |\n| label | 4 KiB | `superblock`, header |\n\
                    | ancestor | before it | `fore father` (of a record) |";
    let found = |path: &str, text: &str| old_words_used(&[source(path, text)], &old_words(glossary)).len();
    let (code, said) = ("crates/array/src/a.rs", "crates/millrace/src/a.rs");
    assert_eq!(found(code, "fn f(a: SuperblockHeader, superblocks_max: u8) {}"), 2);
    assert_eq!(found(code, "fn f(fore_father: ForeFather, header: Super, block: u8) {}"), 2);
    assert_eq!(found(code, "// superblock\nfn f() { g(\"superblock\") }"), 0, "for who reads the code");
    assert_eq!(found(said, "fn f() { g(\"no superblock\") }"), 1);
    assert_eq!(found("docs/admin.md", "Superblocks, headers\nand a fore-father"), 2);
    assert_eq!(found("crates/array/tests/a.rs", "fn superblock() {}"), 0);
}

#[test]
fn a_folder_that_is_too_full_is_found() {
    let files =
        |folder: &str, n: usize| (0..n).map(|i| source(&format!("{folder}/f{i}.rs"), "")).collect::<Vec<_>>();
    let mut sources = files("crates/uring/src", FOLDER_MAX);
    sources.extend(files("crates/uring/src/net", FOLDER_MAX));
    sources.extend(files("crates/uring/src/net/tests", 40));
    sources.extend(files("crates/uring/tests/all", 40));
    sources.push(source("crates/uring/src/report.css", ""));
    assert_none(full_folders(&sources));
    sources.push(source("crates/uring/src/net/more.rs", ""));
    let found = full_folders(&sources);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("crates/uring/src/net has 16 source files, at most 15 may"), "{found:?}");
}
