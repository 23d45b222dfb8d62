//! `millrace topology`.

use super::recording::MachineArgs;
use super::tree;
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use std::path::{Path, PathBuf};
use topology::Machine;

/// `millrace topology`.
#[derive(Args, Debug)]
#[command(after_help = "\
MB/S is the data rate of a link without its encoding and headers.

Examples:
  millrace topology
  millrace topology --interrupts
  millrace topology --svg machine.svg
  millrace topology --record machine.rec --anonymous  # to send to somebody
  millrace topology --machine machine.rec  # to show such a file")]
pub struct TopologyArgs {
    #[command(flatten)]
    machine: MachineArgs,
    /// Show every interrupt vector of every device
    #[arg(long)]
    interrupts: bool,
    /// Draw the machine into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Record the machine in this file
    #[arg(long, value_name = "FILE", conflicts_with = "machine")]
    record: Option<PathBuf>,
    /// Leave serial numbers, names and addresses out of the recording
    #[arg(long, requires = "record")]
    anonymous: bool,
}

/// Carries it out.
pub fn run(args: &TopologyArgs, context: &Context) -> Result<String, Failure> {
    let recording = args.machine.recording(context, args.anonymous)?;
    let machine = Machine::of(&recording);
    let mut written = Vec::new();
    if let Some(path) = &args.record {
        write(path, &recording.encode())?;
        written.push((path, format!("millrace topology --machine {}", path.display())));
    }
    if let Some(path) = &args.svg {
        write(path, &topology::svg(&machine))?;
        written.push((path, String::new()));
    }
    if written.is_empty() {
        return Ok(context.show(&machine, |m| tree::screen(m, args.interrupts, context.terminal)));
    }
    let names: Vec<String> = written.iter().map(|(path, _)| path.display().to_string()).collect();
    Ok(context.done(format!("Written: {}.", names.join(", ")), &written[0].1))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|e| Failure::usage(format!("{} cannot be written: {e}", path.display())))
}
