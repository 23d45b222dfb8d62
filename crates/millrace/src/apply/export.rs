//! What there is, as a file that `apply` takes: `apply` of it changes nothing.

use super::file::KEEP;
use super::print::exact;
use api::{Array, Host, Pool, Portal, Status, Volume};
use std::collections::BTreeMap;
use std::path::Path;

/// The file. `names`: the lasting names of drives, by their paths.
pub fn config(status: &Status, names: &BTreeMap<String, String>) -> String {
    let mut out = String::from(
        "# What this head has. millrace apply FILE makes a head so; millrace apply --help explains it.\n",
    );
    // A kind without a table would be one that the file leaves alone.
    let kinds = [
        ("pool", status.pools.is_empty()),
        ("volume", status.volumes.is_empty()),
        ("host", status.hosts.is_empty()),
        ("export", status.volumes.iter().all(|v| v.exports.iter().all(|e| e.host.is_none()))),
        ("portal", status.portals.is_empty()),
    ];
    for (kind, _) in kinds.into_iter().filter(|(_, none)| *none) {
        out.push_str(&format!("{kind} = []\n"));
    }
    status.pools.iter().for_each(|p| pool(p, names, &mut out));
    status.volumes.iter().for_each(|v| volume(v, &mut out));
    status.hosts.iter().for_each(|h| host(h, &mut out));
    status.volumes.iter().for_each(|v| exports(v, &mut out));
    status.portals.iter().for_each(|p| portal(p, &mut out));
    out
}

/// A text, quoted.
fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|t| quoted(t)).collect::<Vec<_>>().join(", "))
}

fn pool(p: &Pool, names: &BTreeMap<String, String>, out: &mut String) {
    let drive = |path: &str, uuid: &base::Uuid| match names.get(path) {
        Some(name) => quoted(name),
        None if path.is_empty() => quoted(&uuid.to_string()),
        None => quoted(path),
    };
    out.push_str(&format!("\n[[pool]]\nname = {}\n", quoted(&p.name)));
    out.push_str(&format!("chunk = {}\nblock = {}\n", quoted(&exact(p.chunk_bytes.into())), p.block_bytes));
    if p.arrays.is_empty() {
        out.push_str("# Its drives are not all there.\n");
        return;
    }
    let weights: Vec<u32> = (0..p.arrays.len()).map(|i| weight(p, i)).collect();
    let weighed = weights.iter().any(|w| *w != weights[0]);
    out.push_str("arrays = [\n");
    for (array, weight) in p.arrays.iter().zip(&weights) {
        let legs: Vec<String> = staying(array).iter().map(|l| drive(&l.path, &l.uuid)).collect();
        let drives = match array.layout {
            api::ArrayLayout::Mirror => format!("mirror = [{}]", legs.join(", ")),
            api::ArrayLayout::Single => format!("single = {}", legs.join(", ")),
        };
        let weight = if weighed { format!(", weight = {weight}") } else { String::new() };
        out.push_str(&format!("  {{ {drives}{weight} }},\n"));
    }
    out.push_str("]\n");
    let spares: Vec<String> = p.spares.iter().map(|s| drive(&s.path, &s.uuid)).collect();
    out.push_str(&format!("spares = [{}]\n", spares.join(", ")));
}

/// The legs of an array but for those that are being replaced.
fn staying(array: &Array) -> Vec<&api::Leg> {
    let replaced = |l: &api::Leg| {
        !l.path.is_empty() && array.legs.iter().any(|other| other.replaces.as_ref() == Some(&l.path))
    };
    array.legs.iter().filter(|l| !replaced(l)).collect()
}

/// An array's weight in the first zone that it is in.
fn weight(p: &Pool, array: usize) -> u32 {
    let all = p.zones.iter().flat_map(|z| &z.weights);
    all.into_iter().find(|w| usize::from(w.array) == array).map_or(1, |w| w.weight)
}

fn volume(v: &Volume, out: &mut String) {
    out.push_str(&format!("\n[[volume]]\nname = {}\nsize = {}\n", quoted(&v.name), quoted(&exact(v.bytes))));
    out.push_str(&format!("block = {}\n", v.block_bytes));
    let figures = [
        ("iops_max", v.iops_max, 0),
        ("mbps_max", v.mbps_max, 0),
        ("weight", v.weight.into(), api::WEIGHT.into()),
    ];
    for (key, value, _) in figures.into_iter().filter(|(_, value, usual)| value != usual) {
        out.push_str(&format!("{key} = {value}\n"));
    }
}

fn host(h: &Host, out: &mut String) {
    out.push_str(&format!("\n[[host]]\nname = {}\n", quoted(&h.name)));
    for (key, names) in [("nqns", &h.nqns), ("iqns", &h.iqns)] {
        if !names.is_empty() {
            out.push_str(&format!("{key} = {}\n", list(names)));
        }
    }
    if h.authenticated || h.mutual {
        out.push_str("# No secret is ever shown. On another head, name a file here.\n");
    }
    if h.authenticated {
        out.push_str(&format!("chap_secret_file = {}\n", quoted(KEEP)));
    }
    if !h.chap_user.is_empty() {
        out.push_str(&format!("chap_user = {}\n", quoted(&h.chap_user)));
    }
    if h.mutual {
        out.push_str(&format!("mutual_secret_file = {}\n", quoted(KEEP)));
    }
}

fn exports(v: &Volume, out: &mut String) {
    for e in &v.exports {
        match &e.host {
            Some(host) => out.push_str(&format!(
                "\n[[export]]\nvolume = {}\nhost = {}\nlun = {}  # NVMe namespace {}\n",
                quoted(&v.name),
                quoted(host),
                e.lun,
                v.nsid
            )),
            None => out.push_str(&format!(
                "\n# {} is also exported to a host that this head does not know: {}\n",
                v.name,
                e.names.join(", ").escape_debug()
            )),
        }
    }
}

fn portal(p: &Portal, out: &mut String) {
    out.push_str(&format!("\n[[portal]]\nprotocol = \"{}\"\naddress = \"{}\"\n", p.protocol, p.address));
    if let (Some(head), None) = (&p.head, p.prefix) {
        out.push_str(&format!("head = {}\n", quoted(head)));
    }
    if let Some(prefix) = p.prefix {
        out.push_str(&format!("prefix = {prefix}\n"));
    }
    if let Some(interface) = &p.interface {
        out.push_str(&format!("interface = {}\n", quoted(interface)));
    }
}

/// The names of block devices that stay when devices are found in another order, by their paths.
pub fn lasting_names(status: &Status) -> BTreeMap<String, String> {
    let folder = Path::new("/dev/disk/by-id");
    let links = std::fs::read_dir(folder).map(|all| all.flatten().collect()).unwrap_or_else(|_| vec![]);
    // The name with model and serial number says most to people.
    let mut names: Vec<String> = links.iter().filter_map(|l| l.file_name().into_string().ok()).collect();
    names.sort_by_key(|n| {
        (n.starts_with("wwn-") || n.starts_with("nvme-eui.") || n.starts_with("nvme-uuid."), n.clone())
    });
    let drives = status.pools.iter().flat_map(|p| {
        p.arrays.iter().flat_map(|a| &a.legs).map(|l| &l.path).chain(p.spares.iter().map(|s| &s.path))
    });
    let named = |path: &String| {
        let device = path.starts_with("/dev/").then(|| std::fs::canonicalize(path).ok())??;
        let is_it = |n: &&String| std::fs::canonicalize(folder.join(n)).is_ok_and(|d| d == device);
        Some((path.clone(), folder.join(names.iter().find(is_it)?).display().to_string()))
    };
    drives.filter_map(named).collect()
}
