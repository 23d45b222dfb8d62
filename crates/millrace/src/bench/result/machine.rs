//! What a reader must know of the machine that figures come from.

use serde::{Deserialize, Serialize};
use std::fs;

/// The machine. Keys may be added.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// The kernel.
    pub kernel: String,
    /// The system's name for itself.
    pub system: String,
    /// It is a virtual machine.
    pub virtual_machine: bool,
    /// The frequency governor of the first core, if there is one.
    pub governor: Option<String>,
    /// Processes that wanted to run in the last minute, before the benchmark.
    pub load: f64,
    /// This program's version.
    pub version: String,
    /// Optimised, or not.
    pub build: String,
}

impl Machine {
    /// This one, as it is now.
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let info = read("/proc/cpuinfo");
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|l| l.split([':', '=']).next().is_some_and(|n| n.trim() == name))?;
            Some(line.split_once([':', '='])?.1.trim().trim_matches('"').to_string())
        };
        let kib = field(&read("/proc/meminfo"), "MemTotal");
        let kib = kib.and_then(|t| t.split(' ').next()?.parse::<u64>().ok()).unwrap_or(0);
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let governor = Some(governor.trim().to_string()).filter(|g| !g.is_empty());
        Self {
            cpu: field(&info, "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: kib << 10,
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            system: field(&read("/etc/os-release"), "PRETTY_NAME").unwrap_or_default(),
            virtual_machine: field(&info, "flags").is_some_and(|f| f.split(' ').any(|f| f == "hypervisor")),
            governor,
            load: read("/proc/loadavg").split(' ').next().and_then(|l| l.parse().ok()).unwrap_or(0.0),
            version: env!("CARGO_PKG_VERSION").into(),
            build: if cfg!(debug_assertions) { "not optimised" } else { "release" }.into(),
        }
    }
    /// What a reader of the figures must be told: sentences.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = vec![];
        if self.build != "release" {
            all.push("This build is not optimised: its figures say nothing. Use make build.".into());
        }
        if self.load > 0.5 {
            all.push(format!(
                "Other processes were busy on this machine (load {:.1}): read ratios, not rates.",
                self.load
            ));
        }
        if self.governor.as_ref().is_some_and(|g| g == "powersave") {
            all.push("The frequency governor is powersave: cores may run slower than they can.".into());
        }
        all
    }
    /// One line.
    pub fn line(&self) -> String {
        let kind = if self.virtual_machine { "virtual, " } else { "" };
        let cores = crate::screen::count(self.cores, "core");
        format!("{} ({kind}{cores}, {}), {}", self.cpu, base::size::print(self.memory), self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_processor_memory_and_a_kernel() {
        let here = Machine::here();
        assert!(!here.cpu.is_empty() && here.cores > 0 && here.memory > 0, "{here:?}");
        assert!(here.kernel.len() > "Linux ".len());
        assert!(here.line().contains("core"));
    }

    #[test]
    fn what_spoils_figures_is_said() {
        let good = Machine { build: "release".into(), ..Machine::default() };
        assert!(good.warnings().is_empty());
        let bad =
            Machine { build: "not optimised".into(), load: 3.0, governor: Some("powersave".into()), ..good };
        assert_eq!(bad.warnings().len(), 3);
    }
}
