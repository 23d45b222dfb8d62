//! `millrace explain`.

use super::plan::results;
use super::recording::{MachineArgs, read};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::screen::{Look, Terminal, count};
use crate::words::topology as words;
use clap::Args;
use std::path::PathBuf;
use topology::Machine;
use topology::explain::{Crowd, Explanation, explain, explain_one};

/// `millrace explain`.
#[derive(Args, Debug)]
#[command(after_help = "\
Two readings of all counters, and the machine below: what limits, by which
numbers, and what to do. Without load there is nothing to explain.

Examples:
  millrace explain
  millrace explain tank              # a pool, a volume, a host or a drive alone
  millrace explain --seconds 10
  millrace explain --measured r.json # what bench drives found
  millrace explain --before few.rec  # topology --record with fewer hosts
  millrace explain --machine machine.rec")]
pub struct ExplainArgs {
    /// A pool, a volume, a host or a drive [default: everything]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// What drives do alone: results of `bench drives --json`
    #[arg(long, value_name = "FILE")]
    measured: Vec<PathBuf>,
    /// A recording of this head while fewer hosts worked: do more of them give less?
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
    Ok(context.show(&words::explained(&found), |_| screen(&found, context.terminal)))
}

fn screen(e: &Explanation, terminal: Terminal) -> String {
    let mut out = terminal.paragraph(Look::Plain, "", &words::load(&e.load), 0);
    for (i, finding) in e.findings.iter().enumerate() {
        out.push('\n');
        let look = if i == 0 { Look::Bold } else { Look::Plain };
        let said = words::limit(&finding.limit);
        out.push_str(&terminal.paragraph(look, &format!("{}. ", i + 1), &said.message, 3));
        for figure in &finding.arithmetic {
            out.push_str(&terminal.paragraph(Look::Dim, "   ", &words::figure(figure), 5));
        }
        if let Some(next) = said.next {
            out.push_str(&terminal.paragraph(Look::Plain, "   Next: ", &next, 9));
        }
    }
    if e.findings.is_empty() && e.next_limit.is_some() {
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
    if let Some(next) = &e.next_limit {
        out.push('\n');
        let next = format!("{}.", words::next_limit(next));
        out.push_str(&terminal.paragraph(Look::Dim, "The next limit: ", &next, 16));
    }
    out
}
