//! Memory of the kernel and of the head.

use super::setting::{About, Group, List, Verdict};
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
    out.files(
        &About {
            group: Group::Memory,
            name: "swappiness",
            of: "",
            why: "memory that a head waits for must not lie on a disk",
            risk: "with little memory the page cache shrinks first",
        },
        &[(String::new(), "/proc/sys/vm/swappiness".into())],
        |v| v.parse::<u64>().is_ok_and(|n| n <= 10),
        "1",
    );
    out.files(
        &About {
            group: Group::Memory,
            name: "transparent huge pages",
            of: "",
            why: "making them without being asked stops programs for milliseconds",
            risk: "programs that live by them and do not ask get slower",
        },
        &[(String::new(), "/sys/kernel/mm/transparent_hugepage/enabled".into())],
        |v| v == "madvise" || v == "never",
        "madvise",
    );
    let Some(pid) = m.own.as_ref().and_then(|o| o.pid) else { return };
    let Some(text) = out.from.file(&format!("/proc/{pid}/limits")) else { return };
    let rows = [
        (
            "Max locked memory",
            "locked memory of the head",
            None,
            "unlimited",
            "LimitMEMLOCK=infinity in its unit, then a restart of the head",
            "buffers that the kernel may not pin are copied or refused",
        ),
        (
            "Max open files",
            "open files of the head",
            Some(FILES_MIN),
            "65536",
            "LimitNOFILE=1048576 in its unit, then a restart of the head",
            "each connection is a file",
        ),
    ];
    for (line, name, least, wanted, how, why) in rows {
        let Some(found) = limit(text, line) else { continue };
        let about = About { group: Group::Memory, name, of: "", why, risk: "none" };
        let good = found.is_none() || least.is_some_and(|least| found.is_some_and(|n| n >= least));
        let verdict = if good { Verdict::Good } else { Verdict::Advice(how.into()) };
        let found = found.map_or("unlimited".to_string(), |n| n.to_string());
        out.put(&about, name.into(), found, wanted.into(), verdict);
    }
}
