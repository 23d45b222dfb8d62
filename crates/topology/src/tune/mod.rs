//! What is set on a machine, what a head wants, and why. Decides; changes nothing: each change is a list of writes, with
//! what was there before, for somebody else to carry out and to take back.

mod block;
mod cpu;
mod interrupts;
mod memory;
mod network;
mod pcie;
mod setting;
mod what;

use crate::machine::Machine;
use crate::recording::Recording;
use setting::List;

pub use setting::{Group, Setting, Verdict, Write, choice};
pub use what::{Value, What};

/// Everything that is looked at, group by group.
pub fn settings(m: &Machine, from: &Recording) -> Vec<Setting> {
    let mut out = List { settings: Vec::new(), from };
    cpu::settings(&mut out, m);
    interrupts::settings(&mut out, m);
    block::settings(&mut out, m);
    memory::settings(&mut out, m);
    network::settings(&mut out, m);
    pcie::settings(&mut out, m);
    out.settings.sort_by_key(|s| s.group);
    out.settings
}
