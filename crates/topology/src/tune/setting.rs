//! A setting, and how those of a kind become one row.

use super::what::{Value, What};
use crate::machine::Machine;
use crate::recording::Recording;
use serde::Serialize;
use std::collections::BTreeSet;

/// What belongs together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Frequency and sleep of cores.
    Cpu,
    /// Who takes which interrupt.
    Interrupts,
    /// Queues of block devices.
    Block,
    /// Memory of the kernel and of the head.
    Memory,
    /// TCP and network ports.
    Network,
    /// Links.
    Pcie,
}

impl Group {
    /// All, in their order.
    pub const ALL: [Group; 6] =
        [Group::Cpu, Group::Interrupts, Group::Block, Group::Memory, Group::Network, Group::Pcie];

    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Group::Cpu => "cpu",
            Group::Interrupts => "interrupts",
            Group::Block => "block",
            Group::Memory => "memory",
            Group::Network => "network",
            Group::Pcie => "pcie",
        }
    }
}

/// One file to write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Write {
    /// Its path.
    pub path: String,
    /// What brings back what is there now.
    pub was: String,
    /// What to write.
    pub value: String,
}

/// What is to be done about a setting.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As wanted.
    Good,
    /// These writes make it so.
    Change(Vec<Write>),
    /// Somebody has to do it by hand.
    Advice,
    /// Worth knowing, and nobody's to change here.
    Shown,
}

/// A setting.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// Its group.
    pub group: Group,
    /// What it is.
    #[serde(flatten)]
    pub what: What,
    /// The drives or CPUs that have it, where there may be several.
    pub owners: Vec<String>,
    /// What is set.
    pub found: Value,
    /// What a head wants.
    pub wanted: Value,
    /// What is to be done.
    pub verdict: Verdict,
}

/// The choice in `[none] mq-deadline`, or the whole text where nothing is in brackets.
pub fn choice(text: &str) -> &str {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text.trim(), |(chosen, _)| chosen.trim())
}

/// Whether a file that offers choices offers this one.
fn offers(text: &str, word: &str) -> bool {
    !text.contains('[') || text.split_whitespace().any(|w| w.trim_matches(['[', ']']) == word)
}

/// Settings as they are found.
pub(super) struct List<'a> {
    pub(super) settings: Vec<Setting>,
    pub(super) from: &'a Recording,
}

impl List<'_> {
    /// Files that should all hold `wanted`; those that hold the same now are one row. Each with its owner, empty for what
    /// there is once.
    pub(super) fn files(
        &mut self,
        what: &What,
        paths: &[(String, String)],
        good: impl Fn(&str) -> bool,
        wanted: &str,
    ) {
        let mut rows: Vec<(String, Vec<String>, Vec<Write>)> = Vec::new();
        for (owner, path) in paths {
            let Some(text) = self.from.text(path) else { continue };
            if !offers(text, wanted) {
                continue;
            }
            let found = choice(text).split_whitespace().collect::<Vec<_>>().join(" ");
            let write = Write { path: path.clone(), was: found.clone(), value: wanted.into() };
            let at = rows.iter().position(|r| r.0 == found).unwrap_or_else(|| {
                rows.push((found, Vec::new(), Vec::new()));
                rows.len() - 1
            });
            rows[at].1.extend(Some(owner.clone()).filter(|o| !o.is_empty()));
            rows[at].2.push(write);
        }
        for (found, owners, writes) in rows {
            let verdict = if good(&found) { Verdict::Good } else { Verdict::Change(writes) };
            let (found, wanted) = (Value::Text(found), Value::Text(wanted.into()));
            self.settings.push(Setting { owners, ..Setting::new(what.clone(), found, wanted, verdict) });
        }
    }

    pub(super) fn put(&mut self, what: What, found: Value, wanted: Value, verdict: Verdict) {
        self.settings.push(Setting::new(what, found, wanted, verdict));
    }
}

impl Setting {
    fn new(what: What, found: Value, wanted: Value, verdict: Verdict) -> Self {
        Self { group: what.group(), what, owners: Vec::new(), found, wanted, verdict }
    }
}

/// CPUs of the head's shards and the threads beside them, as far as they are bound.
pub(super) fn shard_cpus(m: &Machine) -> BTreeSet<u32> {
    let cores: Vec<u32> = m.own.iter().flat_map(|o| &o.shards).filter_map(|s| s.core).collect();
    let with_siblings = |core: &u32| {
        let siblings = m.cpus.iter().find(|c| c.id == *core).map_or(Vec::new(), |c| c.siblings.clone());
        siblings.into_iter().chain([*core])
    };
    cores.iter().flat_map(with_siblings).collect()
}

/// CPUs that may work for a port on `node`: one thread of each of its cores, without the shards' if others are left.
pub(super) fn near(m: &Machine, node: Option<u32>) -> Vec<u32> {
    let shards = shard_cpus(m);
    let of_node = m.cpus.iter().filter(|c| node.is_none() || c.node == node);
    let first = of_node.filter(|c| c.siblings.first().is_none_or(|f| *f == c.id));
    let all: Vec<u32> = first.map(|c| c.id).collect();
    let free: Vec<u32> = all.iter().copied().filter(|c| !shards.contains(c)).collect();
    if free.is_empty() { all } else { free }
}
