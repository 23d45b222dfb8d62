//! `millrace explain`.

use super::plan::results;
use super::recording::{MachineArgs, read};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::screen::{Look, Terminal, count};
use clap::Args;
use std::path::PathBuf;
use topology::Machine;
use topology::explain::{Crowd, Explanation, explain, explain_one};

/// `millrace explain`.
#[derive(Args, Debug)]
#[command(after_help = "\
The command reads all counters twice, --seconds apart, and compares them with what the machine can do. Run it while hosts are working.

Examples:
  millrace explain
  millrace explain tank  # one pool, volume, host or drive
  millrace explain --seconds 10
  millrace explain --measured r.json  # from millrace bench drives --json
  millrace explain --before few.rec  # from millrace topology --record
  millrace explain --machine machine.rec")]
pub struct ExplainArgs {
    /// A pool, volume, host or drive [default: everything]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Speed of the drives alone: results of `millrace bench drives --json`
    #[arg(long, value_name = "FILE")]
    measured: Vec<PathBuf>,
    /// A recording made with fewer hosts, to see whether more hosts make it slower
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Carries it out.
pub fn run(args: &ExplainArgs, context: &Context) -> Result<String, Failure> {
    let recording = args.machine.recording(context, false)?;
    let mut machine = Machine::of(&recording);
    for path in &args.measured {
        machine.measured.extend(results(path)?);
    }
    if let Some(path) = &args.before {
        let earlier = Crowd::of(&Machine::of(&read(path)?)).ok_or_else(|| {
            let what = format!("{} has no load of hosts in two readings", path.display());
            Failure::usage(what).with_next("millrace topology --record FILE, while hosts work")
        })?;
        machine.earlier = Some(earlier);
    }
    let found = match &args.name {
        None => explain(&machine),
        Some(name) => explain_one(&machine, name).ok_or_else(|| {
            let what = format!("there is no pool, volume, connected host, drive or port called {name} there");
            Failure::new(Exit::Refused, what).with_next("millrace status")
        })?,
    };
    Ok(context.show(&found, |e| screen(e, context.terminal)))
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
        match e.elsewhere {
            0 => out.push_str("Nothing is wrong.\n"),
            n => out.push_str(&terminal.paragraph(
                Look::Plain,
                "",
                &format!(
                    "Nothing is wrong with it; {} of other things: millrace explain.",
                    count(n, "limit")
                ),
                0,
            )),
        }
    }
    if !e.next_limit.is_empty() {
        out.push('\n');
        out.push_str(&terminal.paragraph(Look::Dim, "The next limit: ", &format!("{}.", e.next_limit), 16));
    }
    out
}
