//! How much memory the daemon takes, and whether there is so much.
//!
//! What is locked must fit: a daemon that is larger than its control group may be is killed, with all that it serves. So
//! the sum is known before the start. It is, beside the data: what the shards receive into, the Steward's labels and
//! bitmaps, the program with its libraries and tables; and a part is left for what grows with hosts (requests, sockets)
//! and what the kernel counts.

use base::Address;
use base::size::print;
use std::path::Path;
use uring::MachineConfig;

/// The Steward's memory, bytes: labels, bitmaps and records of the drives that it looks at.
pub const STEWARD: u64 = 64 << 20;
/// Least memory for data of one head, bytes.
pub const DATA_MIN: u64 = 64 << 20;
/// Least memory for data of one shard, bytes.
const SHARD_DATA_MIN: u64 = 32 << 20;
const _: () = assert!(SHARD_DATA_MIN >= head::limits::SHARD_BYTES_MIN);
/// The program and its libraries as read from their files (17 MiB), the API server and tables (5 MiB), and what the kernel
/// keeps for them (3 MiB), measured; bytes.
const PROGRAM: u64 = 26 << 20;
/// Rings, tables and stack of a shard (1.4 MiB), and the kernel's part of them (0.5 MiB), measured; bytes.
const SHARD_TABLES: u64 = 2 << 20;

/// Memory that there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct There {
    /// Bytes; 0 if nobody says.
    bytes: u64,
    /// They are a control group's limit, which is ours; else they are the machine's, which others use too.
    group: bool,
}

impl There {
    /// What this process may use: the machine's, or its control group's if that may have less.
    pub fn here() -> Self {
        let machine = machine_memory();
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        match group_memory(&groups, |file| std::fs::read_to_string(file).ok()) {
            Some(group) if machine == 0 || group < machine => Self { bytes: group, group: true },
            _ => Self { bytes: machine, group: false },
        }
    }
    /// Most that the daemon may lock of it, bytes: seven eighths of what is its own, three quarters of what is not.
    fn most(self) -> u64 {
        if self.group { self.bytes / 8 * 7 } else { self.bytes / 4 * 3 }
    }
    fn words(self) -> String {
        let whose = if self.group { "the control group may have" } else { "the machine has" };
        format!("{whose} {}, of which the daemon locks at most {}", print(self.bytes), print(self.most()))
    }
}

/// What so many shards take beside the memory for data, bytes.
pub fn beside(shards: u16) -> u64 {
    let shard = MachineConfig::new(Address::Shard(0), 0).bytes() + SHARD_TABLES;
    PROGRAM + STEWARD + u64::from(shards) * shard
}

/// Least memory for data of so many shards, bytes.
fn data_min(shards: u16) -> u64 {
    DATA_MIN.max(u64::from(shards) * SHARD_DATA_MIN)
}

/// Memory for data where nobody says how much, bytes.
pub fn usual(shards: u16, there: There) -> u64 {
    let usual = (there.bytes / 16).clamp(256 << 20, 8 << 30).max(data_min(shards));
    if there.bytes == 0 { usual } else { usual.min(there.most().saturating_sub(beside(shards))) }
}

/// Most shards that there is memory for, with so much for data (0: as much as there is).
pub fn shards_most(data: u64, there: There) -> u16 {
    let fit = |shards: &u16| {
        let enough = data == 0 || data >= data_min(*shards);
        enough && (there.bytes == 0 || data.max(data_min(*shards)) + beside(*shards) <= there.most())
    };
    (1..=super::SHARDS_MAX).take_while(fit).last().unwrap_or(0)
}

/// Whether so many shards with so much memory for data (0: as much as is usual) have room.
///
/// # Errors
/// A sentence with the sum.
pub fn fits(data: u64, shards: u16, there: There) -> Result<(), String> {
    let (least, beside) = (data_min(shards), beside(shards));
    let has = crate::screen::count(usize::from(shards), "shard");
    if data != 0 && data < least {
        return Err(format!("memory = {}: at least {}, 32M for each of {has}", print(data), print(least)));
    }
    let most = there.most();
    if there.bytes == 0 || data.max(least) + beside <= most {
        return Ok(());
    }
    if data == 0 || least + beside > most {
        return Err(format!(
            "{has} {} {} of memory ({} for data, {} beside), and {}: give more{}",
            if shards == 1 { "needs" } else { "need" },
            print(least + beside),
            print(least),
            print(beside),
            there.words(),
            if shards == 1 { "" } else { ", or fewer shards" }
        ));
    }
    Err(format!(
        "memory = {}: at most {} here: {has} {} {} beside the memory for data, and {}",
        print(data),
        print(most - beside),
        if shards == 1 { "needs" } else { "need" },
        print(beside),
        there.words()
    ))
}

/// The least limit of the control groups that a process is in, by its `/proc/PID/cgroup` (cgroups(7)): of each group up to
/// the root, since a limit holds for all below. In a container the file may name a path that is not visible inside; then
/// the group at the root is its own.
fn group_memory(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut least = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|c| c == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        for above in group.ancestors() {
            // "max" is no number, and no limit.
            let limit =
                read(&Path::new(root).join(above).join(file)).and_then(|t| t.trim().parse::<u64>().ok());
            least = least.into_iter().chain(limit).min();
        }
    }
    least
}

/// Bytes of memory that the machine has; 0 if it does not say.
fn machine_memory() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let kib: u64 = total.and_then(|l| l.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0);
    kib * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn group(mib: u64) -> There {
        There { bytes: mib * MIB, group: true }
    }

    #[test]
    fn the_smaller_of_machine_and_control_group_counts() {
        let limits = |files: &'static [(&'static str, &'static str)], groups: &str| {
            group_memory(groups, |path| {
                files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| text.to_string())
            })
        };
        let v2: &[_] = &[
            ("/sys/fs/cgroup/system.slice/millrace.service/memory.max", "max\n"),
            ("/sys/fs/cgroup/system.slice/memory.max", "1073741824\n"),
        ];
        assert_eq!(
            limits(v2, "0::/system.slice/millrace.service\n"),
            Some(1 << 30),
            "a limit above holds below"
        );
        assert_eq!(limits(v2, "0::/user.slice\n"), None);
        let container: &[_] = &[("/sys/fs/cgroup/memory.max", "536870912\n")];
        assert_eq!(limits(container, "0::/\n"), Some(512 << 20));
        assert_eq!(limits(container, "0::/../not/visible/here\n"), Some(512 << 20));
        let v1: &[_] = &[
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "268435456\n"),
        ];
        assert_eq!(limits(v1, "12:cpu,cpuacct:/box\n4:memory:/box\n0::/box\n"), Some(256 << 20));
        assert_eq!(limits(v1, ""), None);
    }

    #[test]
    fn what_is_chosen_always_fits_and_what_is_refused_does_not() {
        for group in [false, true] {
            for mib in (64..4096).step_by(8) {
                let there = There { bytes: mib * MIB, group };
                for shards in [1, 2, 8, 64] {
                    let fit = shards <= shards_most(0, there);
                    assert_eq!(fits(0, shards, there).is_ok(), fit, "{shards} shards, {mib}M");
                    if !fit {
                        continue;
                    }
                    let data = usual(shards, there);
                    assert!(data >= u64::from(shards) * SHARD_DATA_MIN && data >= DATA_MIN);
                    assert!(data + beside(shards) <= there.most(), "{shards} shards, {mib}M");
                    fits(data, shards, there).expect("what is chosen");
                    let most = there.most() - beside(shards);
                    fits(most, shards, there).expect("the most");
                    let refused = fits(most + 1, shards, there).expect_err("more than that");
                    assert!(refused.contains("beside the memory for data"), "{refused}");
                }
            }
        }
        let nobody_says = There { bytes: 0, group: false };
        assert_eq!(usual(2, nobody_says), 256 * MIB);
        assert_eq!(
            (fits(1 << 50, 2, nobody_says), shards_most(0, nobody_says)),
            (Ok(()), super::super::SHARDS_MAX)
        );
        assert_eq!(usual(4, There { bytes: 64 << 30, group: false }), 4 << 30);
    }

    #[test]
    fn a_control_group_of_200m_has_room_for_two_shards_and_not_for_eight() {
        assert!(usual(2, group(200)) >= DATA_MIN);
        assert_eq!(shards_most(0, group(200)), 2);
        assert_eq!(shards_most(0, group(100)), 0);
        let refused = fits(0, 8, group(200)).expect_err("too many");
        assert_eq!(
            refused,
            "8 shards need 426M of memory (256M for data, 170M beside), and the control group may have 200M, of which the \
             daemon locks at most 175M: give more, or fewer shards"
        );
        let refused = fits(160 * MIB, 2, group(200)).expect_err("too much");
        assert!(
            refused.starts_with("memory = 160M: at most 65M here: 2 shards need 110M beside"),
            "{refused}"
        );
        assert!(
            fits(96 * MIB, 4, group(1024))
                .expect_err("too little")
                .contains("at least 128M, 32M for each of 4")
        );
        assert_eq!(
            shards_most(96 * MIB, group(1024)),
            3,
            "memory that was given is shared by as many as it lasts for"
        );
    }
}
