//! Which code is mutated, and by which names the rules know what something is.

/// The two-head code: folders and files.
const SCOPE: &[&str] = &[
    "crates/head/src/path/far/",
    "crates/head/src/path/instances.rs",
    "crates/head/src/path/late.rs",
    "crates/head/src/shard/far.rs",
    "crates/head/src/shard/sight.rs",
    "crates/head/src/steward/far/",
    "crates/head/src/steward/system/",
    "crates/head/src/steward/lanes/",
    "crates/head/src/steward/context/head.rs",
    "crates/head/src/steward/context/system/",
    "crates/head/src/steward/legs/unrecorded.rs",
    "crates/head/src/steward/record/",
    "crates/head/src/steward/sessions/from_shards.rs",
    "crates/head/src/steward/sessions/table.rs",
    "crates/head/src/steward/sessions/table/",
    "crates/head/src/steward/state/apply.rs",
    "crates/cluster/src/",
    "crates/array/src/bitmap.rs",
    "crates/array/src/change.rs",
    "crates/array/src/members.rs",
    "crates/array/src/format/",
    "crates/array/src/intent/",
    "crates/array/src/uncleared/",
];

/// Worlds, tests, and what looks on without changing anything.
const BESIDE: &[&str] =
    &["crates/cluster/src/world/", "crates/cluster/src/model.rs", "crates/head/src/steward/record/texts.rs"];

/// Whether a file is mutated.
pub fn is_in_scope(file: &str) -> bool {
    let under = |list: &[&str]| list.iter().any(|at| file.starts_with(at));
    let test = file.ends_with("/tests.rs") || file.contains("/tests/");
    file.ends_with(".rs") && under(SCOPE) && !under(BESIDE) && !test
}

/// Functions that look on: what the proof, a log or a debugger sees.
pub fn looks_on(function: &str) -> bool {
    ["fmt", "books", "idle", "at_rest"].contains(&function) || function.starts_with("check_")
}

/// Traits that the compiler could write, and that decide nothing.
pub const PLAIN_TRAITS: &[&str] =
    &["Debug", "Display", "PartialEq", "Eq", "PartialOrd", "Ord", "Hash", "Clone", "Default"];

/// Calls for who reads a log, or that stop the program.
pub fn tells_people(call: &str) -> bool {
    ["happened", "noticed", "expect", "unwrap", "planted", "planted_if"].contains(&call)
}

/// Calls that write numbers of a message or a record: who reads it finds that out at once.
pub fn writes_bytes(call: &str) -> bool {
    ["u8", "u16", "u32", "u64", "bytes", "encode", "text", "put", "extend_from_slice"].contains(&call)
}

/// Calls that give something back, or let it go.
pub fn gives_back(call: &str) -> bool {
    let whole = ["remove", "clear", "drain", "retain", "over", "hold", "changed", "ends", "end", "take"];
    let begins = ["release", "free", "unlock", "let_go", "give", "forget", "part_", "close", "done", "un"];
    whole.contains(&call) || begins.iter().any(|b| call.starts_with(b))
}

/// Calls that wait.
pub fn waits(call: &str) -> bool {
    let begins = ["until", "sleep", "wait_", "outlast", "may_serve", "unless"];
    begins.iter().any(|b| call.starts_with(b))
}

/// Calls that send a message, answer, or write a record.
pub fn sends(call: &str) -> bool {
    let whole = ["say", "note", "resume", "submit", "reply"];
    let begins =
        ["send", "tell", "answer", "publish", "confirm", "write", "propose", "put_", "keep_", "mail"];
    whole.contains(&call) || begins.iter().any(|b| call.starts_with(b))
}

/// Into what a `push` is a message.
pub const SINKS: &[&str] = &["fx", "io", "out", "mail", "effects"];

/// Numbers that say which life of something is meant.
pub fn is_number(name: &str) -> bool {
    let whole = [
        "epoch",
        "generation",
        "incarnation",
        "life",
        "lives",
        "ballot",
        "number",
        "sequence",
        "marks",
        "map",
        "since",
        "pairing",
        "standing",
        "changed",
        "promised",
    ];
    let ends = ["_epoch", "_generation", "_life", "_number", "_since", "_ballot", "_sequence", "_marks"];
    whole.contains(&name) || ends.iter().any(|e| name.ends_with(e))
}

/// What takes elements one by one, and how many words it is given.
pub const TAKERS: &[(&str, usize)] = &[("for_each", 1), ("any", 1), ("all", 1), ("collect", 0)];
