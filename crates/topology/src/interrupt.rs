//! Interrupts: whose they are, which CPUs take them, how many a second.

use crate::gap::Gap;
use crate::pci::is_address;
use crate::recording::{Clock, Recording, members};
use serde::Serialize;
use std::collections::BTreeMap;

/// A vector.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Interrupt {
    /// Its number, or the word that stands for it (`LOC`, `RES`).
    pub name: String,
    /// What its driver calls it: `nvme0q3`.
    pub action: String,
    /// The PCI device that raises it.
    pub device: Option<String>,
    /// CPUs that may take it.
    pub allowed: Vec<u32>,
    /// CPUs that do.
    pub effective: Vec<u32>,
    /// Taken since the start, by CPU, where not zero.
    pub taken: Vec<(u32, u64)>,
    /// Taken a second between the readings, by CPU, where not zero; None without two readings.
    pub per_second: Option<Vec<(u32, f32)>>,
}

impl Interrupt {
    /// Taken a second by all CPUs.
    pub fn rate(&self) -> Option<f32> {
        // The sum of nothing is -0 for floats, and would be shown as that.
        self.per_second.as_ref().map(|list| list.iter().fold(0.0, |all, (_, n)| all + n))
    }
}

/// Interrupts that are not a device's are told by a word; these are worth showing.
const WORDS: &[&str] = &["LOC", "RES", "CAL", "TLB", "NMI", "THR", "MCE", "TRM"];

/// A line of the table: counts by CPU, and what follows them.
struct Line<'a> {
    counts: Vec<(u32, u64)>,
    rest: Vec<&'a str>,
}

fn table(text: &str) -> BTreeMap<&str, Line<'_>> {
    let mut lines = text.lines();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or("")
        .split_whitespace()
        .map_while(|w| w.strip_prefix("CPU")?.parse().ok())
        .collect();
    let mut out = BTreeMap::new();
    for line in lines {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let mut words = rest.split_whitespace().peekable();
        let mut counts = Vec::new();
        for cpu in &cpus {
            let Some(count) = words.peek().and_then(|w| w.parse::<u64>().ok()) else { break };
            words.next();
            if count > 0 {
                counts.push((*cpu, count));
            }
        }
        out.insert(name.trim(), Line { counts, rest: words.collect() });
    }
    out
}

/// The address of a PCI device in a word such as `PCI-MSIX-0000:00:02.0`.
fn address_in(word: &str) -> Option<&str> {
    let at = word.find(':')?;
    let before = word[..at].char_indices().rfind(|(_, c)| !c.is_ascii_hexdigit());
    let start = before.map_or(0, |(i, c)| i + c.len_utf8());
    Some(&word[start..]).filter(|a| is_address(a))
}

pub(crate) fn interrupts(from: &Recording, gaps: &mut Vec<Gap>) -> Vec<Interrupt> {
    let Some(text) = from.file("/proc/interrupts") else {
        gaps.push(Gap::InterruptsUnread);
        return Vec::new();
    };
    let base = "/sys/bus/pci/devices";
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for address in from.list(base).into_iter().filter(|a| is_address(a)) {
        for number in from.list(&format!("{base}/{address}/msi_irqs")) {
            owners.insert(number, address.clone());
        }
    }
    let before = table(text);
    let after = from.later("/proc/interrupts").map(table);
    let seconds = from.seconds_of(Clock::Counters);
    let mut out: Vec<Interrupt> = Vec::new();
    for (name, line) in &before {
        let number = name.parse::<u32>().ok();
        if number.is_none() && !WORDS.contains(name) {
            continue;
        }
        let device = owners
            .get(*name)
            .cloned()
            .or_else(|| line.rest.iter().find_map(|w| address_in(w)).map(String::from));
        let list = |file: &str| {
            number.and_then(|n| from.text(&format!("/proc/irq/{n}/{file}"))).map_or(Vec::new(), members)
        };
        let per_second = after.as_ref().zip(seconds).map(|(after, seconds)| {
            let was: BTreeMap<u32, u64> = line.counts.iter().copied().collect();
            let rate = |(cpu, n): &(u32, u64)| {
                let gone = n.saturating_sub(was.get(cpu).copied().unwrap_or(0));
                (*cpu, (gone as f64 / seconds) as f32)
            };
            let now = after.get(name).map_or(&[][..], |l| &l.counts[..]);
            now.iter().map(rate).filter(|(_, n)| *n > 0.0).collect()
        });
        out.push(Interrupt {
            name: (*name).into(),
            action: match number {
                Some(_) => line.rest.last().copied().unwrap_or("").into(),
                None => line.rest.join(" "),
            },
            device,
            allowed: list("smp_affinity_list"),
            effective: list("effective_affinity_list"),
            taken: line.counts.clone(),
            per_second,
        });
    }
    out.sort_by_key(|i| (i.name.parse::<u32>().unwrap_or(u32::MAX), i.name.clone()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_devices_rates_and_cpus() {
        let mut from = Recording::default();
        from.put(
            "/proc/interrupts",
            "CPU0 CPU2\n36: 0 100 PCI-MSIX-0000:00:02.0 1-edge nvme0q1\n37: 5 5 IR-PCI-MSI 1-edge eth0-rx-0\nLOC: 7 8 Local timer\n\
             bad line\n99: x\nERR: 0\n",
        );
        from.put("/sys/bus/pci/devices/0000:3b:00.0/msi_irqs/37", "msix");
        from.put("/proc/irq/36/smp_affinity_list", "0,2");
        from.put_later(2000, "/proc/interrupts", "CPU0 CPU2\n36: 20 300 x\n37: 5 5 y\n");
        let got = interrupts(&from, &mut Vec::new());
        assert_eq!(got.len(), 4, "{got:?}");
        assert_eq!((got[0].device.as_deref(), got[0].action.as_str()), (Some("0000:00:02.0"), "nvme0q1"));
        assert_eq!(got[0].allowed, [0, 2]);
        assert_eq!(got[0].per_second, Some(vec![(0, 10.0), (2, 100.0)]));
        assert_eq!((got[1].device.as_deref(), got[1].rate()), (Some("0000:3b:00.0"), Some(0.0)));
        assert_eq!((got[3].name.as_str(), got[3].action.as_str()), ("LOC", "Local timer"));
    }

    #[test]
    fn an_address_is_found_behind_any_letter() {
        for (word, found) in [
            ("PCI-MSIX-0000:00:02.0", Some("0000:00:02.0")),
            ("é0000:00:02.0", Some("0000:00:02.0")),
            ("0000:00:02.0", Some("0000:00:02.0")),
            ("é:", None),
            (":", None),
        ] {
            assert_eq!(address_in(word), found, "{word}");
        }
    }

    #[test]
    fn a_counter_that_runs_backwards_is_no_rate() {
        let mut from = Recording::default();
        from.put("/proc/interrupts", "CPU0\n1: 50 a\n");
        from.put_later(1, "/proc/interrupts", "CPU0\n1: 3 a\n");
        assert_eq!(interrupts(&from, &mut Vec::new())[0].rate(), Some(0.0));
    }
}
