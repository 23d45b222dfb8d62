//! `millrace bench`: how fast it is, and what limits it.
//!
//! | command | measures |
//! | --- | --- |
//! | `bench --target` | one load on one target over either protocol ([`single`]) |
//! | `bench ladder` | what each layer costs, in this process ([`ladder`]) |
//! | `bench sweep` | depth × jobs × block size, and the knee ([`sweep`]) |
//! | `bench drives` | 1..n drives, and where their sum bends ([`drives`]) |
//! | `bench hosts` | several processes started at one instant, summed ([`hosts`]) |
//! | `bench report` | nothing: makes one report of results that were kept ([`finish`]) |
//!
//! Owns the command lines, the figures and how they are shown; `load` decides what a load does, `head` knows the
//! order of the rooms, `uring` does it.

mod drives;
mod finish;
mod fio;
mod holds;
mod hosts;
mod html;
mod ladder;
mod options;
mod result;
mod session;
mod single;
mod stand;
mod sweep;
mod target;
mod watch;
mod work;

use crate::failure::Failure;
use clap::{Args, Subcommand};

pub use result::doc::Doc;
#[cfg(test)]
pub use result::drives::Drives;
pub use result::report::{Line, Progress, Report, micros};
pub use session::SingleArgs;
pub use single::Repeated;
pub use target::Url;
pub use watch::Live;

/// `millrace bench`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Without a command, bench measures one volume. A load that writes overwrites the data in the region it uses. If there is data, the command asks first, unless --force is given.

Examples:
  millrace bench --target nvme://10.0.0.1:4420/NQN/1 --rw randread --qd 128
  millrace bench --target iscsi://10.0.0.1:3260/IQN/0 --rw randrw --verify
  millrace bench --target nvme://10.0.0.1:4420/NQN/1 --rw write --bs 128k
  millrace bench ladder --drive null --copies 4")]
pub struct BenchArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    single: SingleArgs,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Measure what each layer costs: drive, array, pool, volume, NVMe/TCP, iSCSI
    Ladder(ladder::LadderArgs),
    /// Measure all combinations of depth, connections and block size, and find the knee
    Sweep(sweep::SweepArgs),
    /// Measure one drive, two drives, and so on, to see where their sum stops growing
    Drives(drives::DrivesArgs),
    /// Measure several hosts on one target at once, and sum their results
    Hosts(hosts::HostsArgs),
    /// Make an HTML report of results that --json printed
    Report(finish::ReportArgs),
}

/// Runs it. Fails if anything went wrong at the target.
pub fn run(args: BenchArgs, json: bool) -> Result<(), Failure> {
    match args.what {
        None => single::run(&args.single, json),
        Some(What::Ladder(args)) => ladder::run(&args, json),
        Some(What::Sweep(args)) => sweep::run(&args, json),
        Some(What::Drives(args)) => drives::run(&args, json),
        Some(What::Hosts(args)) => hosts::run(&args, json),
        Some(What::Report(args)) => finish::run(&args, json),
    }
}
