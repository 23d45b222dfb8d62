//! The machine as a tree on a terminal.

use crate::screen::{Cell, Look, Table, Terminal, count};
use crate::words::topology as words;
use topology::{Class, Device, Drive, Interrupt, Lanes, Machine, Port, PortKind, ranges, size};

/// The whole screen.
pub fn screen(m: &Machine, every_vector: bool, terminal: Terminal) -> String {
    let mut out = head(m, terminal);
    out.push('\n');
    out.push_str(&tree(m).print(terminal, 0));
    let shards = shards(m);
    if !shards.is_empty() {
        out.push('\n');
        out.push_str(&shards.print(terminal, 0));
    }
    let interrupts = if every_vector { vectors(m) } else { interrupts(m) };
    if !interrupts.is_empty() {
        out.push('\n');
        out.push_str(&interrupts.print(terminal, 0));
    }
    let notes = notes(m);
    if !notes.is_empty() || !m.gaps.is_empty() {
        out.push('\n');
    }
    for (look, note) in notes {
        out.push_str(&terminal.paragraph(look, "! ", &note, 2));
    }
    for gap in &m.gaps {
        out.push_str(&terminal.paragraph(Look::Dim, "? ", &words::gap(gap), 2));
    }
    out
}

fn gib(kib: u64) -> String {
    match kib {
        0..1_048_576 => format!("{}\u{a0}MiB", kib >> 10),
        _ => format!("{}\u{a0}GiB", (kib + (1 << 19)) >> 20),
    }
}

fn head(m: &Machine, terminal: Terminal) -> String {
    let mut facts: Vec<String> = Vec::new();
    facts.extend(m.product.clone());
    facts.extend(m.processor.clone().map(|p| match m.sockets.len() {
        0 | 1 => p,
        n => format!("{n} × {p}"),
    }));
    facts.extend(m.memory_kib.map(gib));
    facts.extend(m.kernel.clone().map(|k| format!("Linux {k}")));
    if m.guest {
        facts.push("virtual machine".into());
    }
    let name = format!("{}  ", m.host.as_deref().unwrap_or("machine"));
    terminal.paragraph(Look::Bold, &name, &facts.join(" · "), 2)
}

/// A row of the tree, and what hangs below it.
struct Item {
    cells: Vec<Cell>,
    below: Vec<Item>,
}

fn short(address: &str) -> &str {
    address.strip_prefix("0000:").unwrap_or(address)
}

fn mb(value: f64) -> String {
    format!("{value:.0}")
}

/// What a drive is to the head: `tank mirror-0`.
fn role(m: &Machine, drive: &Drive) -> String {
    for pool in m.own.iter().flat_map(|o| &o.pools) {
        for (i, array) in pool.arrays.iter().enumerate() {
            if array.legs.iter().any(|l| m.drive_at(&l.path).is_some_and(|d| d.name == drive.name)) {
                return format!("{} {}-{i}", pool.name, array.layout.word());
            }
        }
    }
    let own = m.own.iter().flat_map(|o| &o.drives);
    let spare = own.filter(|d| d.role == api::DriveRole::Spare && d.pool.is_some());
    let mut spare = spare.filter(|d| m.drive_at(&d.path).is_some_and(|d| d.name == drive.name));
    spare.next().map_or(String::new(), spare_of)
}

/// A drive that is nobody's leg yet: `tank spare`.
fn spare_of(d: &api::Drive) -> String {
    format!("{} spare", d.pool.as_deref().unwrap_or(""))
}

fn link_cells(device: Option<&Device>) -> (Cell, Cell) {
    let Some(link) = device.and_then(|d| d.link) else { return ("".into(), "".into()) };
    let look = match (link.degraded(), link.held_back_by_slot()) {
        (Some(_), _) => Look::Bad,
        (None, Some((now, could))) if now.speed < could.speed => Look::Warn,
        _ => Look::Plain,
    };
    match link.now {
        Some(now) => (Cell::new(look, now.name()), Cell::new(look, mb(now.payload_mb()))),
        None => (Cell::new(Look::Dim, "unknown"), "".into()),
    }
}

fn drive_item(m: &Machine, drive: &Drive, device: Option<&Device>) -> Item {
    let (link, passes) = link_cells(device);
    let warm = drive.temperature.map_or(Cell::default(), |t| {
        let near = |limit: Option<f32>| limit.is_some_and(|l| t.now >= l);
        let look = match (near(t.critical), near(t.warning.map(|w| w - 3.0))) {
            (true, _) => Look::Bad,
            (_, true) => Look::Warn,
            _ => Look::Plain,
        };
        Cell::new(look, format!("{:.0}", t.now))
    });
    let wear = drive.health.as_ref().map_or(Cell::default(), |h| {
        let look = match h.worn() {
            Some(_) => Look::Bad,
            None if h.used >= 80 => Look::Warn,
            None => Look::Plain,
        };
        Cell::new(look, format!("{}%", h.used))
    });
    let kind = if device.is_some_and(|d| d.class == Class::Nvme) { "" } else { drive.kind.word() };
    let model = drive.model.as_deref().unwrap_or(kind).to_string();
    Item {
        cells: vec![
            drive.name.clone().into(),
            link,
            passes,
            drive.slot.clone().unwrap_or_default().into(),
            warm,
            wear,
            size(drive.bytes).into(),
            role(m, drive).into(),
            model.into(),
        ],
        below: Vec::new(),
    }
}

fn port_item(port: &Port, device: &Device) -> Item {
    let (link, passes) = link_cells(Some(device));
    let speed = match (port.speed_mbit, port.state.as_str()) {
        (_, "down") => "down".into(),
        (Some(mbit), _) if mbit >= 1000 => format!("{}G", mbit as f64 / 1000.0),
        (Some(mbit), _) => format!("{mbit}M"),
        (None, _) => String::new(),
    };
    let look = if port.state == "down" { Look::Dim } else { Look::Plain };
    let driver = port.driver.clone().unwrap_or_default();
    Item {
        cells: vec![
            port.name.clone().into(),
            link,
            passes,
            device.slot.clone().unwrap_or_default().into(),
            "".into(),
            "".into(),
            Cell::new(look, speed),
            "".into(),
            driver.into(),
        ],
        below: Vec::new(),
    }
}

/// What a device and everything below it give: none for what does not matter here, several where a port is left out
/// that has nothing to tell.
fn items(m: &Machine, at: usize, children: &[Vec<usize>]) -> Vec<Item> {
    let device = &m.devices[at];
    let below: Vec<Item> = children[at].iter().flat_map(|child| items(m, *child, children)).collect();
    if device.class == Class::Bridge {
        if device.port != PortKind::SwitchUp || below.is_empty() {
            return below;
        }
        let empty = children[at].iter().filter(|port| children[**port].is_empty()).count();
        let (link, passes) = link_cells(Some(device));
        let mut about = Vec::new();
        if let Some((uplink, sum)) = m.shared(at).filter(|(uplink, sum)| sum > &(uplink * 1.02)) {
            about.push(format!("{:.1}:1 over", sum / uplink));
        }
        if empty > 0 {
            about.push(format!("{empty} free"));
        }
        let name = format!("switch {}", short(&device.address));
        let cells = vec![
            Cell::new(Look::Bold, name),
            link,
            passes,
            "".into(),
            "".into(),
            "".into(),
            "".into(),
            about.join(", ").into(),
            "".into(),
        ];
        return vec![Item { cells, below }];
    }
    if device.function_of.is_some() {
        return Vec::new();
    }
    let drives: Vec<&Drive> =
        m.drives.iter().filter(|d| d.device.as_deref() == Some(&device.address)).collect();
    let ports = m.ports.iter().filter(|p| p.device.as_deref() == Some(&device.address));
    let mut out: Vec<Item> = ports.map(|p| port_item(p, device)).collect();
    let adapter = device.class == Class::Hba && drives.iter().all(|d| d.kind == topology::DriveKind::Scsi);
    if adapter || out.is_empty() && drives.is_empty() {
        if matches!(device.class, Class::Nvme | Class::Network | Class::Hba) {
            let (link, passes) = link_cells(Some(device));
            let driver = device.driver.clone().unwrap_or_else(|| "no driver".into());
            let name = format!("{} {}", device.class_name, short(&device.address));
            let slot = device.slot.clone().unwrap_or_default();
            let mut cells = vec![name.into(), link, passes, slot.into()];
            cells.resize(8, Cell::default());
            cells.push(driver.into());
            let below = drives.iter().map(|d| drive_item(m, d, None)).collect();
            out.push(Item { cells, below });
        }
    } else {
        out.extend(drives.iter().map(|d| drive_item(m, d, Some(device))));
    }
    out
}

/// Drives of the head's pools that Linux has no device for: files and memory.
fn elsewhere(m: &Machine) -> Vec<Item> {
    let Some(own) = &m.own else { return Vec::new() };
    let item = |path: &str, role: String| {
        let mut cells = vec![Cell::default(); 9];
        cells[0] = path.to_string().into();
        cells[7] = role.into();
        cells[8] = if topology::plan::is_memory(path) { "memory" } else { "file" }.into();
        Item { cells, below: Vec::new() }
    };
    let unseen = |path: &str| !path.is_empty() && m.drive_at(path).is_none();
    let mut out = Vec::new();
    for pool in &own.pools {
        for (i, array) in pool.arrays.iter().enumerate() {
            let legs = array.legs.iter().filter(|l| unseen(&l.path));
            out.extend(legs.map(|l| item(&l.path, format!("{} {}-{i}", pool.name, array.layout.word()))));
        }
    }
    let spares =
        own.drives.iter().filter(|d| d.role == api::DriveRole::Spare && d.pool.is_some() && unseen(&d.path));
    out.extend(spares.map(|d| item(&d.path, spare_of(d))));
    out
}

/// Hundreds of loop devices are possible, and tell little.
const LOOSE_MAX: usize = 16;

fn tree(m: &Machine) -> Table {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); m.devices.len()];
    for (i, device) in m.devices.iter().enumerate() {
        if let Some(parent) = device.parent {
            children[parent].push(i);
        }
    }
    let mut tops: Vec<Item> = Vec::new();
    let row = |name: String, about: String| {
        let mut cells: Vec<Cell> = vec![Cell::default(); 9];
        cells[0] = Cell::new(Look::Bold, name);
        cells.push(Cell::new(Look::Dim, about));
        cells
    };
    let known: Vec<u32> = m.nodes.iter().map(|n| n.id).collect();
    let mut places: Vec<Option<u32>> = known.iter().map(|n| Some(*n)).collect();
    let alone = places.len() <= 1;
    if alone {
        places = vec![None];
    } else {
        places.push(None);
    }
    for place in places {
        let here = |node: Option<u32>| alone || node.filter(|n| known.contains(n)) == place;
        let roots = (0..m.devices.len()).filter(|d| m.devices[*d].parent.is_none());
        let mut below: Vec<Item> = Vec::new();
        for root in roots {
            // A root port may not tell its node where its devices do.
            let node =
                m.devices[root].node.or_else(|| m.ends_below(root).iter().find_map(|d| m.devices[*d].node));
            if here(node) {
                below.extend(items(m, root, &children));
            }
        }
        let cpus: Vec<&topology::Cpu> = m.cpus.iter().filter(|c| here(c.node)).collect();
        if place.is_none() && !alone && below.is_empty() {
            continue;
        }
        let cores = cpus.iter().filter(|c| c.siblings.first().is_none_or(|f| *f == c.id)).count();
        let ids: Vec<u32> = cpus.iter().map(|c| c.id).collect();
        let node = m.nodes.iter().find(|n| Some(n.id) == place || alone);
        let mut about = Vec::new();
        if !cpus.is_empty() {
            let threads =
                if cores < cpus.len() { format!(", {} threads", cpus.len()) } else { String::new() };
            about.push(format!("{}{threads}: CPUs {}", count(cores, "core"), ranges(&ids)));
        }
        about.extend(node.and_then(|n| n.memory_kib).map(gib));
        let name = match place {
            Some(n) => format!("node {n}"),
            None if alone => "machine".into(),
            None => "no node".into(),
        };
        tops.push(Item { cells: row(name, about.join("; ")), below });
    }
    let loose: Vec<&Drive> = m.drives.iter().filter(|d| d.device.is_none()).collect();
    if !loose.is_empty() {
        let below = loose.iter().take(LOOSE_MAX).map(|d| drive_item(m, d, None)).collect();
        let more = loose.len().saturating_sub(LOOSE_MAX);
        let about = if more > 0 { format!("and {more} more") } else { String::new() };
        tops.push(Item { cells: row("not on PCIe".into(), about), below });
    }
    let unseen = elsewhere(m);
    if !unseen.is_empty() {
        tops.push(Item { cells: row("files and memory".into(), String::new()), below: unseen });
    }
    let mut table =
        Table::new(&["MACHINE", "LINK", ">MB/S", "SLOT", ">°C", ">WEAR", ">SIZE", "FOR", "WHAT", ""])
            .optional(&["WHAT"])
            .optional(&["WEAR"])
            .optional(&["SLOT"])
            .optional(&["SIZE"])
            .prose();
    for top in tops {
        let stem = if top.below.is_empty() { "" } else { "│" };
        table.branch(ten(top.cells), stem.to_string());
        branches(&mut table, top.below, "");
    }
    table
}

fn ten(mut cells: Vec<Cell>) -> [Cell; 10] {
    cells.resize(10, Cell::default());
    cells.try_into().expect("ten of them")
}

fn branches(table: &mut Table, items: Vec<Item>, stem: &str) {
    let last = items.len().saturating_sub(1);
    for (i, item) in items.into_iter().enumerate() {
        let (here, below) = if i == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let mut cells = item.cells;
        cells[0] = cells[0].headed(&format!("{stem}{here}"));
        let deeper = format!("{stem}{below}");
        let rest = if item.below.is_empty() { deeper.trim_end().to_string() } else { format!("{deeper}│") };
        table.branch(ten(cells), rest);
        branches(table, item.below, &deeper);
    }
}

fn percent(part: Option<f32>) -> String {
    part.map_or(String::new(), |p| format!("{:.0}%", p * 100.0))
}

/// Interrupts that a CPU takes a second, those of devices alone.
fn interrupts_on(m: &Machine, cpu: u32) -> Option<f32> {
    m.seconds?;
    let of_devices = m.interrupts.iter().filter(|i| i.name.parse::<u32>().is_ok());
    let on = |i: &Interrupt| i.per_second.as_ref()?.iter().find(|(c, _)| *c == cpu).map(|(_, n)| *n);
    // The sum of nothing is -0 for floats, and would be shown as that.
    Some(of_devices.filter_map(on).fold(0.0, |all, n| all + n))
}

fn shards(m: &Machine) -> Table {
    let mut table =
        Table::new(&["SHARD", ">CORE", "SIBLINGS", ">NODE", ">BUSY", ">SOFTIRQ", ">INTERRUPTS/S"]);
    for shard in m.own.iter().flat_map(|o| &o.shards) {
        let cpu = shard.core.and_then(|core| m.cpus.iter().find(|c| c.id == core));
        let siblings: Vec<u32> =
            cpu.map_or(Vec::new(), |c| c.siblings.iter().copied().filter(|s| *s != c.id).collect());
        let busy = match shard.busy {
            Some(b) if b > 0.95 => Cell::new(Look::Bad, percent(shard.busy)),
            _ => percent(shard.busy).into(),
        };
        let rate = cpu.and_then(|c| interrupts_on(m, c.id));
        table.row([
            shard.of.shard.to_string().into(),
            shard.core.map_or("any".to_string(), |c| c.to_string()).into(),
            ranges(&siblings).into(),
            cpu.and_then(|c| c.node).map_or(String::new(), |n| n.to_string()).into(),
            busy,
            percent(cpu.and_then(|c| c.softirq)).into(),
            rate.map_or(String::new(), |r| format!("{r:.0}")).into(),
        ]);
    }
    table
}

/// Whose a vector is, for people.
fn owner(m: &Machine, address: &str) -> String {
    let drive = m.drives.iter().find(|d| d.device.as_deref() == Some(address)).map(|d| d.name.clone());
    let port = m.ports.iter().find(|p| p.device.as_deref() == Some(address)).map(|p| p.name.clone());
    drive.or(port).unwrap_or_else(|| short(address).to_string())
}

/// Devices that are shown without being asked for: the busiest.
const DEVICES_MAX: usize = 8;

fn interrupts(m: &Machine) -> Table {
    let mut table = Table::new(&["INTERRUPTS", ">VECTORS", ">PER SECOND", "BUSIEST CPU", "CPUS"]);
    let mut devices: Vec<&str> = m.interrupts.iter().filter_map(|i| i.device.as_deref()).collect();
    devices.sort_unstable();
    devices.dedup();
    let mut rows: Vec<(f32, [Cell; 5])> = Vec::new();
    for device in devices {
        let of: Vec<&Interrupt> =
            m.interrupts.iter().filter(|i| i.device.as_deref() == Some(device)).collect();
        let mut on: std::collections::BTreeMap<u32, f32> = std::collections::BTreeMap::new();
        for (cpu, rate) in of.iter().flat_map(|i| i.per_second.iter().flatten()) {
            *on.entry(*cpu).or_default() += rate;
        }
        let total: f32 = on.values().fold(0.0, |sum, n| sum + n);
        let busiest = on.iter().max_by(|a, b| a.1.total_cmp(b.1)).filter(|(_, rate)| **rate > 0.0);
        let mut cpus: Vec<u32> = of.iter().flat_map(|i| i.effective.iter().copied()).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let rate = m.seconds.map_or(String::new(), |_| format!("{total:.0}"));
        let busiest =
            busiest.map_or(String::new(), |(cpu, rate)| format!("{cpu}: {:.0}%", rate / total * 100.0));
        let cells = [
            owner(m, device).into(),
            of.len().to_string().into(),
            rate.into(),
            busiest.into(),
            ranges(&cpus).into(),
        ];
        rows.push((total, cells));
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = rows.len().saturating_sub(DEVICES_MAX);
    for (_, cells) in rows.into_iter().take(DEVICES_MAX) {
        table.row(cells);
    }
    if more > 0 {
        table.row([
            Cell::new(Look::Dim, format!("{more} more: --interrupts")),
            "".into(),
            "".into(),
            "".into(),
            "".into(),
        ]);
    }
    table
}

fn vectors(m: &Machine) -> Table {
    let mut table = Table::new(&["INTERRUPT", "OF", ">PER SECOND", "TAKEN BY", "MAY BE TAKEN BY", "NAME"])
        .optional(&["MAY BE TAKEN BY"]);
    for i in &m.interrupts {
        let taken: Vec<u32> = match (&i.per_second, i.effective.is_empty()) {
            (_, false) => i.effective.clone(),
            (Some(list), _) => list.iter().map(|(cpu, _)| *cpu).collect(),
            (None, _) => i.taken.iter().map(|(cpu, _)| *cpu).collect(),
        };
        table.row([
            i.name.clone().into(),
            i.device.as_deref().map_or(String::new(), |d| owner(m, d)).into(),
            i.rate().map_or(String::new(), |r| format!("{r:.0}")).into(),
            ranges(&taken).into(),
            ranges(&i.allowed).into(),
            i.action.clone().into(),
        ]);
    }
    table
}

/// What is wrong, in sentences with numbers.
fn notes(m: &Machine) -> Vec<(Look, String)> {
    let mut out = Vec::new();
    // Drives that suffer alike are told of together.
    let mut bad: Vec<((Lanes, Lanes), Vec<&Device>)> = Vec::new();
    let mut slow = bad.clone();
    for device in &m.devices {
        let Some(link) = device.link else { continue };
        let of_slot = link.held_back_by_slot().filter(|(now, could)| now.speed < could.speed);
        for (list, found) in [(&mut bad, link.degraded()), (&mut slow, of_slot)] {
            let Some(pair) = found else { continue };
            match list.iter_mut().find(|(p, _)| *p == pair) {
                Some((_, devices)) => devices.push(device),
                None => list.push((pair, vec![device])),
            }
        }
    }
    let names = |devices: &[&Device]| {
        let name = |d: &&Device| match &d.slot {
            Some(slot) => format!("{} (slot {slot})", owner(m, &d.address)),
            None => owner(m, &d.address),
        };
        let mut names: Vec<String> = devices.iter().take(8).map(name).collect();
        names.extend((devices.len() > 8).then(|| format!("{} more", devices.len() - 8)));
        names.join(", ")
    };
    for ((now, could), devices) in bad {
        let (runs, ends) =
            if devices.len() == 1 { ("runs", "both ends") } else { ("run", "both ends of each") };
        out.push((
            Look::Bad,
            format!(
                "{} {runs} at {}, and {ends} can {}: {:.0} of {:.0} MB/s. Seat again what is plugged, or try another slot or cable.",
                names(&devices),
                now.name(),
                could.name(),
                now.payload_mb(),
                could.payload_mb()
            ),
        ));
    }
    for ((now, could), devices) in slow {
        out.push((
            Look::Warn,
            format!(
                "{} could do {}, and the slot has {}: {:.0} of {:.0} MB/s.",
                names(&devices),
                could.name(),
                now.name(),
                now.payload_mb(),
                could.payload_mb()
            ),
        ));
    }
    for shared in m.legs_sharing_a_bank() {
        out.push((
            Look::Warn,
            format!(
                "{} and {}, legs of mirror-{} of {}, hang on one switch ({}): it takes both away when it fails.",
                topology::plain_name(&shared.legs[0]),
                topology::plain_name(&shared.legs[1]),
                shared.array,
                shared.pool,
                short(&shared.switch)
            ),
        ));
    }
    for drive in &m.drives {
        if let Some(worn) = drive.health.as_ref().and_then(|h| h.worn()) {
            out.push((
                Look::Bad,
                format!(
                    "{}: {}. millrace drive replace, while it can be read.",
                    drive.name,
                    words::wear(&worn)
                ),
            ));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use topology::Recording;

    fn shown(recording: &[u8], width: usize) -> String {
        let recording = Recording::decode(recording).expect("a recording");
        screen(&Machine::of(&recording), false, Terminal::plain(width))
    }

    #[test]
    fn every_machine_fits_a_terminal() {
        for recording in [
            &include_bytes!("../../../topology/machines/two-sockets.rec")[..],
            include_bytes!("../../../topology/machines/four-sockets.rec"),
            include_bytes!("../../../topology/machines/gen1-slot.rec"),
            include_bytes!("../../../topology/machines/laptop.rec"),
            include_bytes!("../../../topology/machines/guest.rec"),
            include_bytes!("../../../topology/machines/recorded.rec"),
        ] {
            for width in [80, 100, 140] {
                let text = shown(recording, width);
                let wide = text.lines().find(|l| crate::screen::columns(l) > width || l.ends_with(' '));
                assert_eq!(wide, None, "{width}:\n{text}");
            }
        }
    }

    #[test]
    fn a_slow_slot_is_told_with_its_price() {
        let text = shown(include_bytes!("../../../topology/machines/gen1-slot.rec"), 80);
        expect_test::expect![[r#"
            bench  Vendor Workstation · Some CPU 8 cores · 64 GiB · Linux 6.12.9

            MACHINE     LINK     MB/S  SLOT  °C  WEAR    SIZE  FOR  WHAT
            machine
            │    8 cores: CPUs 0-7; 64 GiB
            ├─ nvme0n1  Gen1 x4   830  1     42    3%  512 GB       EXAMPLE PRO 512GB
            ├─ nvme1n1  Gen2 x4  1660  2     43    4%  512 GB       EXAMPLE PRO 512GB
            ├─ nvme2n1  Gen2 x4  1660  3     44    5%  512 GB       EXAMPLE PRO 512GB
            ├─ nvme3n1  Gen2 x4  1660  4     45    6%  512 GB       EXAMPLE PRO 512GB
            └─ enp6s0   Gen1 x1   208                      1G       e1000e

            INTERRUPTS  VECTORS  PER SECOND  BUSIEST CPU  CPUS
            nvme0n1           9                           0-7
            nvme1n1           9                           0-7
            nvme2n1           9                           0-7
            nvme3n1           9                           0-7
            enp6s0            8                           0

            ! nvme0n1 (slot 1) could do Gen3 x4, and the slot has Gen1 x4: 830 of 3190 MB/s.
            ! nvme1n1 (slot 2), nvme2n1 (slot 3), nvme3n1 (slot 4) could do Gen3 x4, and the
              slot has Gen2 x4: 1660 of 3190 MB/s.
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn two_banks_and_who_is_in_them() {
        let text = shown(include_bytes!("../../../topology/machines/two-sockets.rec"), 80);
        for line in [
            "├─ switch 17:00.0  Gen3 x16  12760                           1.5:1 over, 8 free",
            "│  ├─ nvme3n1      Gen3 x2    1595  4     42    6%  3.84 TB  tank mirror-3",
            "! nvme3n1 and nvme4n1, legs of mirror-3 of tank, hang on one switch (17:00.0):",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }

    #[test]
    fn pools_of_files_and_memory_stand_in_the_tree_too() {
        let own = r#"{"drives":[{"path":"/srv/spare.img","pool":"tank","role":"spare"}],"pools":[
            {"name":"tank","arrays":[{"layout":"mirror","legs":[{"path":"/srv/a.img"},{"path":"ram:1G"}]}]},
            {"name":"fast","arrays":[{"layout":"single","legs":[{"path":"/dev/vda"}]}]}]}"#;
        let guest = include_bytes!("../../../topology/machines/guest.rec");
        let mut recording = Recording::decode(guest).expect("a recording");
        recording.put("/millrace/status", own);
        let text = screen(&Machine::of(&recording), false, Terminal::plain(80));
        for words in [
            &["files and memory"][..],
            &["├─ /srv/a.img", "tank mirror-0", "file"],
            &["├─ ram:1G", "tank mirror-0", "memory"],
            &["└─ /srv/spare.img", "tank spare", "file"],
            &["vda", "fast single-0", "virtio"],
        ] {
            assert!(text.lines().any(|l| words.iter().all(|w| l.contains(w))), "{words:?} in\n{text}");
        }
        assert_eq!(text.matches("/dev/vda").count(), 0, "it has its place already:\n{text}");
    }

    #[test]
    fn nothing_known_is_a_screen_too() {
        let text = shown(b"millrace recording 1\n", 80);
        assert!(text.contains("cut off") && text.contains("CPUs are not listed"), "{text}");
    }
}
