//! Links.

use super::setting::{List, Verdict};
use super::what::{Value, What};
use crate::machine::Machine;

pub(super) fn settings(out: &mut List, m: &Machine) {
    let links = m.devices.iter().filter(|d| d.link.is_some_and(|l| l.now.is_some())).count();
    if links > 0 {
        let path = "/sys/module/pcie_aspm/parameters/policy".into();
        out.files(&What::LinkPower, &[(String::new(), path)], |v| v == "performance", "performance");
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
        let what = What::PacketSize { drives: small.len() };
        out.put(what, Value::Number(set.into()), Value::UpTo(able.into()), Verdict::Advice);
    }
}
