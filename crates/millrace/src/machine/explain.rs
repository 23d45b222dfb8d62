//! `millrace explain`.

use super::MachineArgs;
use crate::cli::Context;
use crate::failure::{Exit, Failure};
use crate::screen::{Look, Terminal};
use clap::Args;
use topology::Machine;
use topology::explain::{Explanation, explain};

/// `millrace explain`.
#[derive(Args, Debug)]
#[command(after_help = "\
Two readings of all counters, and the machine below: what limits, by which
numbers, and what to do. Without load there is nothing to explain.

Examples:
  millrace explain
  millrace explain tank              # a pool, a volume, a host or a drive alone
  millrace explain --seconds 10
  millrace explain --machine machine.rec")]
pub struct ExplainArgs {
    /// A pool, a volume, a host or a drive [default: everything]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Carries it out.
pub fn run(args: &ExplainArgs, context: &Context) -> Result<String, Failure> {
    let recording = args.machine.recording(context, false)?;
    let machine = Machine::of(&recording);
    let mut found = explain(&machine);
    if let Some(name) = &args.name {
        if !is_there(&machine, name) && !found.findings.iter().any(|f| f.about.iter().any(|a| a == name)) {
            let what = format!("there is no pool, volume, connected host, drive or port called {name} there");
            return Err(Failure::new(Exit::Refused, what).with_next("millrace status"));
        }
        // A volume is as fast as its pool; what is about nobody is about everybody.
        let pool = name.split('/').next().unwrap_or(name);
        found.findings.retain(|f| f.about.is_empty() || f.about.iter().any(|a| a == name || a == pool));
    }
    Ok(context.show(&found, |e| screen(e, context.terminal)))
}

/// Whether something that can be explained has this name.
fn is_there(m: &Machine, name: &str) -> bool {
    let own = |own: &topology::Own| {
        own.pools.iter().any(|p| p.name == name)
            || own.volumes.iter().any(|v| v.name == name)
            || own.connections.iter().any(|c| c.host == name)
            || own.drives.iter().any(|d| d.path == name || topology::plain_name(&d.path) == name)
    };
    m.own.as_ref().is_none_or(own) || m.drive_at(name).is_some() || m.ports.iter().any(|p| p.name == name)
}

fn screen(e: &Explanation, terminal: Terminal) -> String {
    let mut out = terminal.paragraph(Look::Plain, "", &e.load, 0);
    for (i, finding) in e.findings.iter().enumerate() {
        out.push('\n');
        let look = if i == 0 { Look::Bold } else { Look::Plain };
        out.push_str(&terminal.paragraph(look, &format!("{}. ", i + 1), &finding.sentence, 3));
        for line in &finding.arithmetic {
            out.push_str(&terminal.paragraph(Look::Dim, "   ", line, 5));
        }
        out.push_str(&terminal.paragraph(Look::Plain, "   Next: ", &finding.next, 9));
    }
    if e.findings.is_empty() && !e.next_limit.is_empty() {
        out.push_str("Nothing is wrong.\n");
    }
    if !e.next_limit.is_empty() {
        out.push('\n');
        out.push_str(&terminal.paragraph(Look::Dim, "The next limit: ", &format!("{}.", e.next_limit), 16));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use topology::Recording;

    #[test]
    fn names_are_those_of_pools_volumes_hosts_drives_and_ports() {
        let bytes = include_bytes!("../../../topology/machines/two-sockets.rec");
        let m = Machine::of(&Recording::decode(bytes).expect("a recording"));
        for name in ["tank", "/dev/nvme0n1", "nvme19n1"] {
            assert!(is_there(&m, name), "{name}");
        }
        assert!(!is_there(&m, "nope") && !is_there(&m, ""));
        // Where no head answers nobody can say that a pool is not there.
        assert!(is_there(&Machine::default(), "nope"));
    }
}
