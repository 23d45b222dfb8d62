//! The machine as a picture: a panel for each NUMA node with its cores, its links and what hangs on them, and below
//! what is in whose mirror. Plain SVG 1.1 without scripts or outside fonts, so that it can be put into a page.

use crate::drive::{Drive, DriveKind};
use crate::explain::{Limit, SharedLink, explain};
use crate::gap::Gap;
use crate::machine::Machine;
use crate::pci::Class;
use std::collections::BTreeSet;
use std::fmt::Write;

const INK: &str = "#1f2933";
const SOFT: &str = "#7b8794";
const LINE: &str = "#cbd2d9";
const GOOD: &str = "#2f855a";
const WARN: &str = "#c05621";
const BAD: &str = "#c53030";
/// Behind what is at its limit now.
const FULL: &str = "#fed7d7";
/// Colours of mirrors, told apart also by those who see few colours: each has its label too.
const PALETTE: [&str; 10] = [
    "#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#eeca3b", "#9d755d", "#ff9da6",
    "#bab0ac",
];

const CARD: (f64, f64) = (92.0, 44.0);
const GAP: f64 = 8.0;
const PANEL: f64 = 648.0;
const MARGIN: f64 = 20.0;
const INNER: f64 = 16.0;
/// Cores that are drawn in a panel; of more, the number is told.
const CORES_MAX: usize = 128;
/// Arrays of a pool that the legend names.
const ARRAYS_MAX: usize = 64;
/// Cards that are drawn in a group.
const CARDS_MAX: usize = 96;

/// What a panel shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The whole machine, which has one node or tells of none.
    Whole,
    /// One of several nodes.
    Node(u32),
    /// What does not say in which of them it is.
    Nowhere,
}

/// Nodes that are drawn.
const NODES_MAX: usize = 32;

impl Place {
    /// The panels of a machine.
    fn all(m: &Machine) -> Vec<Self> {
        if m.nodes.len() < 2 {
            return vec![Self::Whole];
        }
        let mut out: Vec<Self> = m.nodes.iter().take(NODES_MAX).map(|n| Self::Node(n.id)).collect();
        if !groups(m, Self::Nowhere).is_empty() || m.cpus.iter().any(|c| Self::Nowhere.holds(m, c.node)) {
            out.push(Self::Nowhere);
        }
        out
    }

    /// Whether what tells this node is drawn here.
    fn holds(self, m: &Machine, node: Option<u32>) -> bool {
        let drawn = |id: u32| m.nodes.iter().take(NODES_MAX).any(|n| n.id == id);
        match self {
            Self::Whole => true,
            Self::Node(id) => node == Some(id),
            Self::Nowhere => !node.is_some_and(drawn),
        }
    }
}

/// What a picture says beside names: words for it come from whoever asks for one.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Label {
    /// A switch passes less than what is below it, 10^6 bytes a second.
    PassesLess { mb: f64, below_mb: f64 },
    /// A switch passes all that is below it.
    PassesAll { mb: f64, below_mb: f64 },
    /// Drives at ports of the processor.
    ProcessorPorts,
    /// These things do not tell their node.
    NodeUnknown,
    /// What a node has.
    Has { sockets: Vec<u32>, cores: usize, threads: usize, memory_kib: Option<u64> },
    /// Cores that are not drawn.
    MoreCores { cores: usize },
    /// How rates are counted.
    Payload,
    /// What a red border means.
    RedBorder,
    /// It is at its limit now.
    Full,
    /// What a red ground means.
    RedGround,
    /// What could not be read.
    NotSeen { gaps: Vec<Gap> },
}

/// Gives words for a label.
type Say<'a> = &'a dyn Fn(&Label) -> String;

/// The picture of a machine, with the words that `say` has for labels.
pub fn svg(machine: &Machine, say: &dyn Fn(&Label) -> String) -> String {
    let (places, full) = (Place::all(machine), full(machine));
    let columns = places.len().min(2);
    let width = MARGIN * 2.0 + PANEL * columns as f64 + MARGIN * (columns - 1) as f64;
    let mut out = Picture::default();
    let mut y = head(&mut out, machine);
    for row in places.chunks(2) {
        let panels: Vec<(Picture, f64)> =
            row.iter().map(|place| panel(machine, &full, *place, say)).collect();
        let height = panels.iter().map(|p| p.1).fold(0.0, f64::max);
        for (i, (picture, _)) in panels.into_iter().enumerate() {
            let x = MARGIN + i as f64 * (PANEL + MARGIN);
            out.rect(x, y, PANEL, height, 10.0, "#ffffff", LINE, 1.0);
            let _ = write!(out.0, "<g transform=\"translate({x:.0},{y:.0})\">{}</g>", picture.0);
        }
        y += height + MARGIN;
    }
    y = legend(&mut out, machine, say, y, width);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{y:.0}\" viewBox=\"0 0 {width:.0} {y:.0}\" \
         font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"11\" fill=\"{INK}\">\
         <rect width=\"100%\" height=\"100%\" fill=\"#f5f7fa\"/>{}</svg>\n",
        out.0
    )
}

/// Names of drives, ports and switches that are at their limits now, as `explain` finds them.
fn full(m: &Machine) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for finding in explain(m).findings {
        match finding.limit {
            Limit::SharedLinkFull { link: SharedLink::Switch { switch }, .. } => drop(names.insert(switch)),
            Limit::LinkFull { drives, .. } | Limit::DrivesFull { drives, .. } => names.extend(drives),
            Limit::DriveShaped { drive, .. } => drop(names.insert(drive)),
            Limit::PortFull { port, .. } => drop(names.insert(port)),
            _ => {}
        }
    }
    names
}

#[derive(Default)]
struct Picture(String);

impl Picture {
    #[allow(clippy::too_many_arguments, reason = "a rectangle has that many properties")]
    fn rect(&mut self, x: f64, y: f64, w: f64, h: f64, r: f64, fill: &str, stroke: &str, thick: f64) {
        let _ = write!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"{r}\" fill=\"{fill}\" \
             stroke=\"{stroke}\" stroke-width=\"{thick}\"/>"
        );
    }
    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, thick: f64) {
        let _ = write!(
            self.0,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{thick:.1}\" \
             stroke-linecap=\"round\"/>",
            from.0, from.1, to.0, to.1
        );
    }
    /// `style` is a list of attributes.
    fn text(&mut self, x: f64, y: f64, style: &str, text: &str) {
        let _ = write!(self.0, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>", escape(text));
    }
}

/// Text as it may stand in XML and HTML, also between quotes; characters that XML has no place for are left out.
pub fn escape(text: &str) -> String {
    let may =
        |c: &char| !(c.is_control() && !matches!(c, '\t' | '\n') || matches!(c, '\u{fffe}' | '\u{ffff}'));
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(may) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// `text` in at most `room` characters.
fn cut(text: &str, room: usize) -> String {
    match text.chars().count() {
        n if n <= room => text.into(),
        _ => text.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
    }
}

fn gb(mb: f64) -> String {
    if mb < 1000.0 { format!("{mb:.0} MB/s") } else { format!("{:.1} GB/s", mb / 1000.0) }
}

fn head(out: &mut Picture, m: &Machine) -> f64 {
    let name = m.host.as_deref().unwrap_or("machine");
    out.text(MARGIN, 38.0, "font-size=\"22\" font-weight=\"bold\"", &cut(name, 40));
    let mut facts: Vec<String> = Vec::new();
    facts.extend(m.product.clone());
    facts.extend(m.processor.clone().map(|p| match m.sockets.len() {
        0 | 1 => p,
        n => format!("{n} × {p}"),
    }));
    facts.extend(m.memory_kib.map(|k| format!("{} GiB", (k + (1 << 19)) >> 20)));
    facts.extend(m.kernel.clone().map(|k| format!("Linux {k}")));
    out.text(MARGIN, 58.0, &format!("fill=\"{SOFT}\" font-size=\"12\""), &cut(&facts.join("  ·  "), 110));
    76.0
}

/// The panel of one place, and its height.
fn panel(m: &Machine, full: &BTreeSet<String>, place: Place, say: Say) -> (Picture, f64) {
    let mut out = Picture::default();
    let (title, of) = match (place, &m.nodes[..]) {
        (Place::Node(id), nodes) => (format!("node {id}"), nodes.iter().find(|n| n.id == id)),
        (Place::Whole, [one]) => (format!("node {}", one.id), Some(one)),
        (Place::Whole, _) => ("machine".into(), None),
        (Place::Nowhere, _) => ("no node".into(), None),
    };
    let holds = |s: &&crate::cpu::Socket| match place {
        Place::Whole => true,
        Place::Node(id) => s.nodes.contains(&id),
        Place::Nowhere => false,
    };
    let sockets: Vec<u32> = m.sockets.iter().filter(holds).map(|s| s.id).collect();
    out.text(INNER, 24.0, "font-size=\"14\" font-weight=\"bold\"", &title);
    let cpus: Vec<&crate::cpu::Cpu> = m.cpus.iter().filter(|c| place.holds(m, c.node)).collect();
    let first = |c: &&&crate::cpu::Cpu| c.siblings.first().is_none_or(|f| *f == c.id);
    let cores: Vec<&&crate::cpu::Cpu> = cpus.iter().filter(first).collect();
    let about = match place {
        Place::Nowhere if cpus.is_empty() => Label::NodeUnknown,
        _ => {
            let memory_kib = of.and_then(|n| n.memory_kib);
            Label::Has { sockets, cores: cores.len(), threads: cpus.len(), memory_kib }
        }
    };
    out.text(PANEL - INNER, 24.0, &format!("text-anchor=\"end\" fill=\"{SOFT}\""), &say(&about));
    // Cores: a square for each, divided among its threads; shards are named in theirs.
    let shards = m.own.iter().flat_map(|o| &o.shards);
    let shard_on: Vec<(u32, u16)> = shards.filter_map(|s| Some((s.core?, s.of.shard))).collect();
    let (mut y, per_row, side) = (38.0, 32, 17.0);
    for (i, core) in cores.iter().take(CORES_MAX).enumerate() {
        let (cx, cy) = (INNER + (i % per_row) as f64 * (side + 2.4), y + (i / per_row) as f64 * (side + 2.4));
        let threads: Vec<u32> = if core.siblings.is_empty() { vec![core.id] } else { core.siblings.clone() };
        let threads = &threads[..threads.len().min(8)];
        let part = side / threads.len() as f64;
        for (t, id) in threads.iter().enumerate() {
            let busy = m.cpus.iter().find(|c| c.id == *id).and_then(|c| c.busy);
            let fill = match busy {
                Some(b) if b > 0.85 => "#feb2b2",
                Some(b) if b > 0.4 => "#fbd38d",
                Some(b) if b > 0.05 => "#c6f6d5",
                _ => "#edf2f7",
            };
            out.rect(cx + t as f64 * part, cy, part, side, 2.0, fill, LINE, 0.8);
        }
        if let Some((_, shard)) = shard_on.iter().find(|(c, _)| threads.contains(c)) {
            out.rect(cx, cy, side, side, 2.0, "#2b6cb0", "#2b6cb0", 0.8);
            out.text(
                cx + side / 2.0,
                cy + 12.5,
                "text-anchor=\"middle\" fill=\"#ffffff\" font-size=\"10\" font-weight=\"bold\"",
                &shard.to_string(),
            );
        }
    }
    let drawn = cores.len().min(CORES_MAX);
    y += drawn.div_ceil(per_row) as f64 * (side + 2.4) + 4.0;
    if cores.len() > drawn {
        out.text(
            INNER,
            y + 10.0,
            &format!("fill=\"{SOFT}\""),
            &say(&Label::MoreCores { cores: cores.len() - drawn }),
        );
        y += 16.0;
    }
    y += 10.0;
    for group in groups(m, place) {
        y = draw_group(&mut out, m, (full, say), &group, y);
    }
    (out, y + 6.0)
}

/// Things that are drawn together: those behind one switch, or those at ports of the processor.
struct Group {
    bank: Option<usize>,
    drives: Vec<usize>,
    others: Vec<usize>,
    /// Drives that no PCIe device is known of.
    loose: Vec<usize>,
}

fn groups(m: &Machine, place: Place) -> Vec<Group> {
    let here = |node: Option<u32>| place.holds(m, node);
    let mut out: Vec<Group> = Vec::new();
    for (i, device) in m.devices.iter().enumerate() {
        let known = matches!(device.class, Class::Nvme | Class::Network | Class::Hba);
        let used = m.drives.iter().any(|d| d.device.as_deref() == Some(&device.address));
        if !(known || used) || device.function_of.is_some() || !here(device.node) {
            continue;
        }
        let bank = m.bank(i);
        let at = match out.iter().position(|g| g.bank == bank) {
            Some(at) => at,
            None => {
                out.push(Group { bank, drives: Vec::new(), others: Vec::new(), loose: Vec::new() });
                out.len() - 1
            }
        };
        if device.class == Class::Nvme { out[at].drives.push(i) } else { out[at].others.push(i) }
    }
    let loose: Vec<usize> = (0..m.drives.len())
        .filter(|d| m.drives[*d].device.is_none() && Machine::is_hardware(&m.drives[*d]) && here(None))
        .collect();
    if !loose.is_empty() {
        out.push(Group { bank: None, drives: Vec::new(), others: Vec::new(), loose });
    }
    // Banks first, as they say most.
    out.sort_by_key(|g| (g.bank.is_none(), g.bank));
    out
}

fn draw_group(
    out: &mut Picture,
    m: &Machine,
    (full, say): (&BTreeSet<String>, Say),
    group: &Group,
    mut y: f64,
) -> f64 {
    let top = y;
    let address = |bank: usize| m.devices[bank].address.trim_start_matches("0000:");
    let uplink_full = group.bank.is_some_and(|bank| full.contains(address(bank)));
    let cards: usize = group.drives.len() + group.others.len() + group.loose.len();
    if let Some(bank) = group.bank {
        let device = &m.devices[bank];
        let link = device.link.and_then(|l| l.now);
        let name = link.map_or("link unknown".to_string(), |l| l.name());
        let title = format!("switch {}  {name}", address(bank));
        if uplink_full {
            out.rect(INNER + 10.0, y, PANEL - 2.0 * INNER - 10.0, 18.0, 5.0, FULL, "none", 0.0);
            let ink = format!("text-anchor=\"end\" fill=\"{BAD}\" font-weight=\"bold\"");
            out.text(PANEL - INNER - 6.0, y + 12.0, &ink, &say(&Label::Full));
        }
        out.text(INNER + 14.0, y + 12.0, "font-weight=\"bold\"", &title);
        if let Some((uplink, sum)) = m.shared(bank) {
            let over = sum > uplink * 1.02;
            let (x, w) = (250.0, 150.0);
            out.rect(x, y + 3.0, w, 10.0, 5.0, "#edf2f7", LINE, 0.8);
            let part = (uplink / sum).min(1.0);
            out.rect(x, y + 3.0, w * part, 10.0, 5.0, if over { "#ed8936" } else { "#68d391" }, "none", 0.0);
            let says = if over {
                Label::PassesLess { mb: uplink, below_mb: sum }
            } else {
                Label::PassesAll { mb: uplink, below_mb: sum }
            };
            let colour = if over { WARN } else { GOOD };
            out.text(x + w + 10.0, y + 12.0, &format!("fill=\"{colour}\""), &say(&says));
        }
        y += 24.0;
    } else if !group.drives.is_empty() {
        out.text(INNER + 14.0, y + 12.0, "font-weight=\"bold\"", &say(&Label::ProcessorPorts));
        y += 24.0;
    }
    let per_row = ((PANEL - 2.0 * INNER - 14.0 + GAP) / (CARD.0 + GAP)) as usize;
    let place = |i: usize, y: f64| {
        (INNER + 14.0 + (i % per_row) as f64 * (CARD.0 + GAP), y + (i / per_row) as f64 * (CARD.1 + GAP))
    };
    let mut at = 0;
    for device in group.drives.iter().take(CARDS_MAX) {
        let (cx, cy) = place(at, y);
        drive_card(out, m, (full, say), *device, cx, cy);
        at += 1;
    }
    for drive in group.loose.iter().take(CARDS_MAX) {
        let (cx, cy) = place(at, y);
        let d = &m.drives[*drive];
        let ground = ground(full, &d.name);
        let kind = if ground == FULL { say(&Label::Full) } else { d.kind.word().into() };
        card(out, (cx, cy), (ground, LINE), &d.name, &kind, &crate::machine::size(d.bytes), None);
        at += 1;
    }
    let rows = at.div_ceil(per_row);
    y += rows as f64 * (CARD.1 + GAP);
    if cards > CARDS_MAX {
        out.text(INNER + 14.0, y + 10.0, &format!("fill=\"{SOFT}\""), &format!("… of {cards}"));
        y += 16.0;
    }
    for device in group.others.iter().take(CARDS_MAX) {
        y = other_row(out, m, (full, say), *device, y);
    }
    // The link from the processor, as thick as it is fast.
    let fast = group.bank.and_then(|b| m.devices[b].link?.payload_mb());
    let thick = fast.map_or(2.0, |mb| (mb / 1600.0).clamp(1.5, 9.0));
    let colour = match group.bank {
        Some(_) if uplink_full => BAD,
        Some(_) => "#718096",
        None => LINE,
    };
    out.line((INNER + 4.0, top + 4.0), (INNER + 4.0, (y - GAP).max(top + 8.0)), colour, thick);
    y + 8.0
}

/// The mark of an array on its drives and in the legend.
struct Badge {
    colour: &'static str,
    label: String,
}

impl Badge {
    /// The mark of array `array` of pool `pool`, which is the `index`th of all. Each label stands once in a picture: with
    /// several pools each has a letter of its own.
    fn of(m: &Machine, pool: usize, array: usize, index: usize) -> Self {
        let pools = m.own.as_ref().map_or(0, |o| o.pools.len());
        let letters = ('a'..='z').filter(|l| *l != 'm').collect::<Vec<char>>();
        let label = match (pools, letters.get(pool)) {
            (0 | 1, _) => format!("m{array}"),
            (_, Some(letter)) => format!("{letter}{array}"),
            (_, None) => format!("{pool}.{array}"),
        };
        Self { colour: PALETTE[index % PALETTE.len()], label }
    }

    fn draw(&self, out: &mut Picture, x: f64, y: f64) {
        out.rect(x, y, 22.0, 13.0, 6.0, self.colour, self.colour, 0.0);
        out.text(
            x + 11.0,
            y + 10.0,
            "text-anchor=\"middle\" font-size=\"9\" fill=\"#ffffff\" font-weight=\"bold\"",
            &self.label,
        );
    }
}

/// The mirror or array that a drive is in: its mark.
fn member(m: &Machine, drive: &Drive) -> Option<Badge> {
    let mut index = 0;
    for (p, pool) in m.own.iter().flat_map(|o| &o.pools).enumerate() {
        for (i, array) in pool.arrays.iter().enumerate() {
            if array.legs.iter().any(|l| m.drive_at(&l.path).is_some_and(|d| d.name == drive.name)) {
                return Some(Badge::of(m, p, i, index));
            }
            index += 1;
        }
    }
    None
}

/// The ground of a card.
fn ground(full: &BTreeSet<String>, name: &str) -> &'static str {
    if full.contains(name) { FULL } else { "#f7fafc" }
}

fn drive_card(
    out: &mut Picture,
    m: &Machine,
    (full, say): (&BTreeSet<String>, Say),
    device: usize,
    x: f64,
    y: f64,
) {
    let pci = &m.devices[device];
    let Some(drive) = m.drives.iter().find(|d| d.device.as_deref() == Some(&pci.address)) else {
        let name = pci.address.trim_start_matches("0000:");
        card(out, (x, y), (ground(full, name), LINE), name, "no namespace", "", None);
        return;
    };
    let link = pci.link.and_then(|l| l.now).map_or("link ?".to_string(), |l| l.name());
    let wrong = pci.link.is_some_and(|l| {
        l.degraded().is_some() || l.held_back_by_slot().is_some_and(|(now, could)| now.speed < could.speed)
    });
    let hot = drive.temperature.is_some_and(|t| t.warning.is_some_and(|w| t.now >= w - 3.0));
    let worn = drive.health.as_ref().is_some_and(|h| h.worn().is_some());
    let degrees = match drive.temperature {
        _ if worn => "worn".to_string(),
        Some(t) => format!("{:.0} °C", t.now),
        None => String::new(),
    };
    let ground = ground(full, &drive.name);
    let slot = match &drive.slot {
        _ if ground == FULL => say(&Label::Full),
        Some(slot) => format!("slot {}", cut(slot, 8)),
        None => String::new(),
    };
    let member = member(m, drive);
    let border = if wrong { BAD } else { LINE };
    card(out, (x, y), (ground, border), &drive.name, &link, &slot, member);
    out.text(
        x + CARD.0 - 6.0,
        y + 39.0,
        &format!("text-anchor=\"end\" font-size=\"9.5\" fill=\"{}\"", if hot || worn { BAD } else { SOFT }),
        &degrees,
    );
}

fn card(
    out: &mut Picture,
    (x, y): (f64, f64),
    (ground, border): (&str, &str),
    name: &str,
    link: &str,
    low: &str,
    member: Option<Badge>,
) {
    let thick = if border == BAD { 2.0 } else { 1.0 };
    out.rect(x, y, CARD.0, CARD.1, 5.0, ground, border, thick);
    if let Some(badge) = member {
        out.rect(x, y, 5.0, CARD.1, 2.5, badge.colour, badge.colour, 0.0);
        badge.draw(out, x + CARD.0 - 27.0, y + 17.0);
    }
    out.text(x + 10.0, y + 14.0, "font-weight=\"bold\" font-size=\"10.5\"", &cut(name, 10));
    let ink = if border == BAD { BAD } else { INK };
    out.text(x + 10.0, y + 27.0, &format!("font-size=\"10\" fill=\"{ink}\""), &cut(link, 14));
    out.text(x + 10.0, y + 39.0, &format!("font-size=\"9.5\" fill=\"{SOFT}\""), &cut(low, 14));
}

/// A card of another kind takes a line: a network card, an HBA, a virtual device.
fn other_row(
    out: &mut Picture,
    m: &Machine,
    (full, say): (&BTreeSet<String>, Say),
    device: usize,
    y: f64,
) -> f64 {
    let pci = &m.devices[device];
    let ports: Vec<&crate::net::Port> =
        m.ports.iter().filter(|p| p.device.as_deref() == Some(&pci.address)).collect();
    let drives: Vec<&Drive> = m.drives.iter().filter(|d| d.device.as_deref() == Some(&pci.address)).collect();
    let names: Vec<String> =
        ports.iter().map(|p| p.name.clone()).chain(drives.iter().map(|d| d.name.clone())).collect();
    let name = if names.is_empty() { pci.address.clone() } else { names.join(" ") };
    let w = PANEL - 2.0 * INNER - 14.0;
    let at_limit = names.iter().any(|name| full.contains(name));
    out.rect(INNER + 14.0, y, w, 24.0, 5.0, if at_limit { FULL } else { "#f0f5ff" }, LINE, 1.0);
    out.text(INNER + 24.0, y + 16.0, "font-weight=\"bold\" font-size=\"10.5\"", &cut(&name, 34));
    let what = match ports.first() {
        Some(p) => {
            let speed = match p.state.as_str() {
                "down" => "down".to_string(),
                _ => p.speed_mbit.map_or("speed unknown".to_string(), speed),
            };
            format!("{} {speed}", pci.class_name)
        }
        // A hypervisor calls its drives SCSI controllers.
        None => match drives.first().filter(|d| d.kind == DriveKind::Virtio) {
            Some(drive) => drive.kind.word().to_string(),
            None => pci.class_name.to_string(),
        },
    };
    let mut more: Vec<String> = drives.iter().map(|d| crate::machine::size(d.bytes)).collect();
    more.extend(at_limit.then(|| say(&Label::Full)));
    out.text(INNER + 234.0, y + 16.0, "", &cut(&format!("{what} {}", more.join(" ")), 34));
    let (link, colour) = match pci.link.and_then(|l| Some((l, l.now?))) {
        Some((l, now)) => {
            let colour = if l.degraded().is_some() { BAD } else { SOFT };
            (format!("{}, {}", now.name(), gb(now.payload_mb())), colour)
        }
        None => (String::new(), SOFT),
    };
    out.text(INNER + w + 4.0, y + 16.0, &format!("text-anchor=\"end\" fill=\"{colour}\""), &link);
    y + 24.0 + GAP
}

/// Megabits a second as people say them.
fn speed(mbit: u64) -> String {
    if mbit >= 1000 { format!("{} Gbit/s", mbit as f64 / 1000.0) } else { format!("{mbit} Mbit/s") }
}

fn legend(out: &mut Picture, m: &Machine, say: Say, mut y: f64, width: f64) -> f64 {
    let shared = m.legs_sharing_a_bank();
    let mut index = 0;
    let (mut x, column) = (MARGIN, (width - 2.0 * MARGIN) / 3.0);
    let mut any = false;
    for (p, pool) in m.own.iter().flat_map(|o| &o.pools).enumerate() {
        for (i, array) in pool.arrays.iter().enumerate() {
            let badge = Badge::of(m, p, i, index);
            index += 1;
            if i >= ARRAYS_MAX {
                continue;
            }
            let together = shared.iter().any(|s| s.pool == pool.name && s.array == i);
            if x + column > width - MARGIN + 1.0 {
                (x, y) = (MARGIN, y + 18.0);
            }
            badge.draw(out, x, y);
            let legs: Vec<&str> = array.legs.iter().map(|l| crate::record::plain_name(&l.path)).collect();
            let says = format!("{} {}: {}", pool.name, array.layout.word(), legs.join(" + "));
            out.text(x + 28.0, y + 10.5, "", &cut(&says, 52));
            if together {
                out.text(
                    x + 38.0 + 6.4 * cut(&says, 52).chars().count() as f64,
                    y + 10.5,
                    &format!("fill=\"{BAD}\" font-weight=\"bold\""),
                    "one bank",
                );
            }
            x += column;
            any = true;
        }
    }
    if any {
        y += 26.0;
    }
    let mut notes = vec![Label::Payload];
    if out.0.contains(BAD) {
        notes.push(Label::RedBorder);
    }
    if out.0.contains(FULL) {
        notes.push(Label::RedGround);
    }
    if !m.gaps.is_empty() {
        notes.push(Label::NotSeen { gaps: m.gaps.clone() });
    }
    for note in notes {
        out.text(MARGIN, y + 10.0, &format!("fill=\"{SOFT}\""), &cut(&say(&note), 220));
        y += 16.0;
    }
    y + MARGIN - 4.0
}
