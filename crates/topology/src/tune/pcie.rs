//! Links.

use super::setting::{About, Group, List, Verdict};
use crate::machine::Machine;

pub(super) fn settings(out: &mut List, m: &Machine) {
    let links = m.devices.iter().filter(|d| d.link.is_some_and(|l| l.now.is_some())).count();
    if links > 0 {
        out.files(
            &About {
                group: Group::Pcie,
                name: "link power (ASPM)",
                of: "",
                why: "a link that has gone to sleep wakes for the first command after a pause",
                risk: "more power and heat, which warm drives do not need",
            },
            &[(String::new(), "/sys/module/pcie_aspm/parameters/policy".into())],
            |v| v == "performance",
            "performance",
        );
    }
    let small: Vec<&crate::pci::Device> = m
        .devices
        .iter()
        .filter(|d| d.class == crate::pci::Class::Nvme && d.payload.is_some_and(|(set, able)| set < able))
        .filter(|d| {
            let above = d.parent.and_then(|p| m.devices[p].payload);
            above.is_some_and(|(_, able)| d.payload.is_some_and(|(set, _)| set < able))
        })
        .collect();
    if let Some((set, able)) = small.first().and_then(|d| d.payload) {
        let about = About {
            group: Group::Pcie,
            name: "",
            of: "",
            why: "larger packets have fewer headers: some per cent of a link's payload",
            risk: "devices that talk to each other directly must agree",
        };
        let how = "pci=pcie_bus_perf on the kernel's command line, then a restart of the machine".to_string();
        let name = format!("packet size of {} drives", small.len());
        out.put(&about, name, format!("{set}"), format!("up to {able}"), Verdict::Advice(how));
    }
}
