//! Memory of the kernel and of the head.

use super::setting::{List, Verdict};
use super::what::{Value, What};
use crate::machine::Machine;

/// A limit of the head's process: soft value, None for unlimited.
fn limit(text: &str, name: &str) -> Option<Option<u64>> {
    let rest = text.lines().find_map(|l| l.strip_prefix(name))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

/// What the head needs at least: open files, and memory that stays.
const FILES_MIN: u64 = 65_536;

pub(super) fn settings(out: &mut List, m: &Machine) {
    let once = |path: &str| [(String::new(), path.to_string())];
    let low = |v: &str| v.parse::<u64>().is_ok_and(|n| n <= 10);
    out.files(&What::Swappiness, &once("/proc/sys/vm/swappiness"), low, "1");
    let asked = |v: &str| v == "madvise" || v == "never";
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    out.files(&What::HugePages, &once(path), asked, "madvise");
    let Some(pid) = m.own.as_ref().and_then(|o| o.pid) else { return };
    let Some(text) = out.from.file(&format!("/proc/{pid}/limits")) else { return };
    for (line, what, least) in [
        ("Max locked memory", What::LockedMemory, None),
        ("Max open files", What::OpenFiles, Some(FILES_MIN)),
    ] {
        let Some(found) = limit(text, line) else { continue };
        let good = found.is_none() || least.is_some_and(|least| found.is_some_and(|n| n >= least));
        let verdict = if good { Verdict::Good } else { Verdict::Advice };
        let value = |n: Option<u64>| n.map_or(Value::Unlimited, Value::Number);
        out.put(what, value(found), value(least), verdict);
    }
}
