//! What is asked of the head, and what would be full next.

use super::numbers::{count, mb, percent};
use topology::explain::{Load, NextLimit, Part, Rates};

/// What is asked of the head now.
pub fn load(load: &Load) -> String {
    match load {
        Load::NoHead => "No head answers here, so there is nothing to explain.".into(),
        Load::OneReading => "There is one reading only: rates need two.".into(),
        Load::All { rates: all } => rates(all),
        Load::BothHeads { rates: all, head, here } => {
            let other = if head == "a" { "b" } else { "a" };
            format!(
                "Both heads: {} {} commands a second come to head {head}, whose machine is looked at; head {other} explains itself.",
                rates(all),
                count(*here)
            )
        }
        Load::Of { name, rates: its } => format!("{name}: {}", rates(its)),
        Load::OfHost { host, rate } => format!("{host}: {} commands a second.", count(*rate)),
        Load::WholeHead { rates: all } => format!("The whole head: {}", rates(all)),
    }
}

fn rates(r: &Rates) -> String {
    if r.is_little() {
        return format!("Hardly anything is asked of it: {:.0} commands a second.", r.commands());
    }
    format!(
        "{} reads and {} writes a second, {} and {}.",
        count(r.reads),
        count(r.writes),
        mb(r.read_bytes),
        mb(r.write_bytes)
    )
}

/// What would be full next: it stands behind a colon.
pub fn next_limit(next: &NextLimit) -> String {
    let unless = if next.unless_drives { ", unless the drives are it before" } else { "" };
    format!(
        "{} at {} commands a second: now {}{unless}",
        part(&next.part),
        count(next.rate),
        percent(next.used)
    )
}

/// A part of the way.
pub fn part(part: &Part) -> String {
    match part {
        Part::Shard { shard } => format!("shard {shard}"),
        Part::Drive { drive } => format!("the drive {drive}"),
        Part::Link { drive } => format!("the link of {drive}"),
        Part::Uplink { switch } => format!("the uplink of switch {switch}"),
        Part::Port { port } => format!("the network port {port}"),
    }
}
