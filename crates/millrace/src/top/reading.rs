//! Reads the head: its status, and how long its shards have run.

use super::figures::Reading;
use crate::client::Client;
use crate::failure::Failure;
use api::{Cluster, Status};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads the head again and again.
pub struct Reader {
    client: Client,
    began: Instant,
}

impl Reader {
    /// One that asks by `client`.
    pub fn new(client: Client) -> Self {
        Self { client, began: Instant::now() }
    }

    /// The head now.
    pub fn read(&self) -> Result<Reading, Failure> {
        let status: Status = self.client.get_within("/status", PATIENCE)?;
        let at = self.began.elapsed();
        let cpu_ns = if self.is_here(&status) { cpu_ns(status.daemon.pid) } else { BTreeMap::new() };
        Ok(Reading { status, at, cpu_ns })
    }

    /// Whether the head whose status this is runs on this machine: a head that follows forwards the question.
    fn is_here(&self, status: &Status) -> bool {
        let Some(cluster) = &status.cluster else { return true };
        self.client.get_within::<Cluster>("/system", PATIENCE).is_ok_and(|own| own.me == cluster.me)
    }
}

/// Nanoseconds that each shard of a process has run; without those that the kernel does not tell.
fn cpu_ns(pid: u32) -> BTreeMap<u16, u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let read = |task: std::fs::DirEntry| {
        let text = |name: &str| std::fs::read_to_string(task.path().join(name)).ok();
        let shard = text("comm")?.trim().strip_prefix("shard-")?.parse::<u16>().ok()?;
        Some((shard, text("schedstat")?.split_whitespace().next()?.parse::<u64>().ok()?))
    };
    tasks.filter_map(read).collect()
}
