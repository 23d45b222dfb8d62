//! `millrace volume`.

use super::consent::Consent;
use super::times;
use crate::arguments::{block_size, count, count_in, volume_name, volume_path};
use crate::context::Context;
use crate::failure::Failure;
use crate::screen::{Cell, Look, Table};
use api::{Exported, Volume, VolumeCreate, VolumeSet, WEIGHT};
use base::size::{print, print_count};
use clap::Subcommand;

/// Create, resize, rename, limit and remove volumes.
#[derive(Subcommand, Debug)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  millrace volume create tank/vm1 --size 400G
  millrace volume ls
  millrace volume resize tank/vm1 --size 800G
  millrace volume set tank/vm1 --iops-max 5k")]
pub enum VolumeCommand {
    /// Create a volume
    #[command(after_help = "\
Examples:
  millrace volume create tank/vm1 --size 400G
  millrace volume create tank/vm2 --size 1.5T --block 512")]
    Create {
        /// Pool and name of the new volume: POOL/VOLUME
        #[arg(value_name = "VOLUME", value_parser = volume_name)]
        name: String,
        /// Size, such as 400G or 1.5T; the pool provides it in steps of 4M
        #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = crate::arguments::size)]
        size: u64,
        /// Block size, which cannot be changed later: 512 or 4096 [default: the pool's]
        #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = block_size)]
        block: Option<u32>,
    },
    /// List volumes
    #[command(after_help = "\
Examples:
  millrace volume ls
  millrace volume ls --json")]
    Ls,
    /// Show one volume: size, identifiers, hosts, counters and latencies
    #[command(after_help = "\
Examples:
  millrace volume show tank/vm1")]
    Show {
        /// The volume: POOL/VOLUME
        #[arg(value_name = "VOLUME", add = super::complete::volumes(), value_parser = volume_name)]
        name: String,
    },
    /// Grow a volume while it is in use, or shrink it with --force
    #[command(after_help = "\
Hosts see the new size at once. The command asks before it shrinks a volume that connected hosts use.

Examples:
  millrace volume resize tank/vm1 --size 800G
  millrace volume resize tank/vm1 --size 200G --force  # shrink")]
    Resize {
        /// The volume: POOL/VOLUME
        #[arg(value_name = "VOLUME", add = super::complete::volumes(), value_parser = volume_name)]
        name: String,
        /// New size
        #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = crate::arguments::size)]
        size: u64,
        /// Shrink the volume; data beyond the new size is lost
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Rename a volume; hosts see no difference
    #[command(after_help = "\
Examples:
  millrace volume rename tank/vm1 web1")]
    Rename {
        /// The volume: POOL/VOLUME
        #[arg(value_name = "VOLUME", add = super::complete::volumes(), value_parser = volume_name)]
        name: String,
        /// New name, without the pool
        #[arg(value_name = "NAME")]
        new: String,
    },
    /// Limit a volume's IOPS or MB/s, or set its weight
    #[command(after_help = "\
Commands beyond a limit wait; none is refused. --iops-max counts every command, --mbps-max the data of reads and writes. FUA writes and flushes never wait for --mbps-max.

Weights matter when the drives are busy: busy volumes then share them in the ratio of their weights. What one volume does not use, the others get. The hosts of a volume have equal shares.

Examples:
  millrace volume set tank/db --weight 300  # three times the usual 100
  millrace volume set tank/vm1 --iops-max 5k --mbps-max 200
  millrace volume set tank/vm1 --iops-max none  # no limit")]
    #[command(override_usage = "millrace volume set <VOLUME> <--iops-max N|--mbps-max N|--weight N>")]
    #[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["iops_max", "mbps_max", "weight"]))]
    Set {
        /// The volume: POOL/VOLUME
        #[arg(value_name = "VOLUME", add = super::complete::volumes(), value_parser = volume_name)]
        name: String,
        /// Maximum commands per second: 10 or more, such as 5k, or none
        #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = cap)]
        iops_max: Option<u32>,
        /// Maximum megabytes (10^6 bytes) per second, or none
        #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = cap)]
        mbps_max: Option<u32>,
        /// Share of the drives' performance, relative to other volumes: 1 to 1000 (default 100)
        #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count_in::<u16>(1..=1000))]
        weight: Option<u16>,
    },
    /// Remove a volume; its data is lost
    #[command(after_help = "\
The command asks first if the volume may hold data, or if connected hosts use it.

Examples:
  millrace volume rm tank/vm1
  millrace volume rm tank/vm1 --force  # even if it is exported")]
    Rm {
        /// The volume: POOL/VOLUME
        #[arg(value_name = "VOLUME", add = super::complete::volumes(), value_parser = volume_name)]
        name: String,
        /// Remove it even if it is exported
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

/// Carries out one of them.
pub fn run(command: VolumeCommand, context: &Context) -> Result<String, Failure> {
    let client = &context.client;
    match command {
        VolumeCommand::Create { name, size, block } => {
            let body = VolumeCreate { name: name.clone(), bytes: size, block_bytes: block };
            let created: api::Created = client.post("/volumes", &body)?;
            let sentence = format!("Volume {name} is created: {}.", print(size));
            Ok(context.created(&created, sentence, &format!("millrace export {name} --host HOST")))
        }
        VolumeCommand::Ls => {
            let volumes: Vec<Volume> = client.get("/volumes")?;
            Ok(context.show(&volumes, |volumes| list(volumes, context)))
        }
        VolumeCommand::Show { name } => {
            let volume: Volume = client.get(&volume_path(&name))?;
            Ok(context.show(&volume, |volume| show(volume, context)))
        }
        VolumeCommand::Resize { name, size, force, consent } => {
            let path = volume_path(&name);
            let body = VolumeSet { bytes: Some(size), force, ..Default::default() };
            consent.obtain(context, |yes| client.patch(&format!("{path}?disconnect={yes}"), &body))?;
            Ok(context.done(format!("Volume {name} is {} now.", print(size)), ""))
        }
        VolumeCommand::Rename { name, new } => {
            // `tank/web1` is understood too, as long as the pool stays the same.
            let (pool, _) = name.split_once('/').expect("checked by `volume_name`");
            let new = new.strip_prefix(&format!("{pool}/")).unwrap_or(&new).to_string();
            client
                .patch(&volume_path(&name), &VolumeSet { name: Some(new.clone()), ..Default::default() })?;
            Ok(context.done(format!("Volume {name} is renamed to {pool}/{new}."), ""))
        }
        VolumeCommand::Set { name, iops_max, mbps_max, weight } => {
            let set = VolumeSet { iops_max, mbps_max, weight, ..Default::default() };
            client.patch(&volume_path(&name), &set)?;
            let volume: Volume = client.get(&volume_path(&name))?;
            let capped = iops_max.is_some() || mbps_max.is_some();
            let caps = match caps_words(&volume) {
                Some(caps) => format!("is capped at {caps}"),
                None => "has no caps".to_string(),
            };
            let weight = format!("has weight {}", volume.weight);
            let words = match (capped, set.weight) {
                (true, Some(_)) => format!("{caps} and {weight}"),
                (true, None) => caps,
                (false, _) => weight,
            };
            Ok(context.done(format!("Volume {name} {words} now."), ""))
        }
        VolumeCommand::Rm { name, force, consent } => {
            let path = format!("{}?force={force}", volume_path(&name));
            consent.obtain(context, |yes| client.delete(&format!("{path}&disconnect={yes}")))?;
            Ok(context.done(format!("Volume {name} is removed."), ""))
        }
    }
}

/// A cap: a number a second, or 0 or `none` for no cap.
fn cap(text: &str) -> Result<u32, String> {
    if text == "none" {
        return Ok(0);
    }
    let wrong =
        || format!("\"{text}\" is not a limit: write a number per second, such as 5000 or 5k, or none");
    count(text).ok().and_then(|n| u32::try_from(n).ok()).ok_or_else(wrong)
}

/// A volume's weight, in words; None if it is the usual one.
pub fn weight_words(v: &Volume) -> Option<String> {
    (v.weight != WEIGHT).then(|| format!("weight {}", v.weight))
}

/// What a volume is capped at, in words; None if at nothing.
pub fn caps_words(v: &Volume) -> Option<String> {
    let iops = (v.iops_max > 0).then(|| format!("{} IOPS", v.iops_max));
    let mbps = (v.mbps_max > 0).then(|| format!("{} MB/s", v.mbps_max));
    let words: Vec<String> = iops.into_iter().chain(mbps).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Whether a host with these names is one of NVMe alone: its number for a volume is the namespace id.
fn is_nvme_alone(names: &[String]) -> bool {
    !names.is_empty() && names.iter().all(|n| n.starts_with("nqn."))
}

/// To whom a volume is given, in words.
pub fn exports_words(v: &Volume) -> String {
    let one = |e: &Exported| {
        let number =
            if is_nvme_alone(&e.names) { format!("nsid {}", v.nsid) } else { format!("lun {}", e.lun) };
        match &e.host {
            Some(host) => format!("{host} ({number})"),
            None => format!("unknown host {} ({number})", e.names.first().map_or("?", String::as_str)),
        }
    };
    v.exports.iter().map(|e| one(e).replace(' ', "\u{a0}")).collect::<Vec<_>>().join(", ")
}

fn list(volumes: &[Volume], context: &Context) -> String {
    if volumes.is_empty() {
        return "There is no volume.\nNext: millrace volume create POOL/NAME --size SIZE\n".into();
    }
    // Columns for caps and weights only where there are any.
    let capped = volumes.iter().any(|v| caps_words(v).is_some());
    let weighed = volumes.iter().any(|v| weight_words(v).is_some());
    let heads = ["VOLUME", "STATE", ">SIZE", ">BLOCK", ">NSID", ">READS", ">WRITES", ">ERRORS"];
    let heads: Vec<&'static str> = heads
        .into_iter()
        .chain(capped.then_some("CAPS"))
        .chain(weighed.then_some(">WEIGHT"))
        .chain(["EXPORTED TO"])
        .collect();
    let mut table = Table::new(&heads).optional(&["READS", "WRITES"]).optional(&["BLOCK"]).prose();
    for v in volumes {
        let exports = exports_words(v);
        let caps = capped.then(|| match caps_words(v) {
            Some(words) => Cell::from(words.replace(' ', "\u{a0}").replace(",\u{a0}", ", ")),
            None => Cell::new(Look::Dim, "none"),
        });
        let figures = [
            Cell::new(Look::Bold, v.name.clone()),
            Cell::state(v.state),
            print(v.bytes).into(),
            v.block_bytes.to_string().into(),
            v.nsid.to_string().into(),
            print_count(v.counters.reads).into(),
            print_count(v.counters.writes).into(),
            Cell::errors(v.counters.errors),
        ];
        let weight = weighed.then(|| Cell::from(v.weight.to_string()));
        table.row(figures.into_iter().chain(caps).chain(weight).chain([if exports.is_empty() {
            Cell::new(Look::Dim, "nobody")
        } else {
            exports.into()
        }]));
    }
    table.print(context.terminal, 0)
}

fn show(v: &Volume, context: &Context) -> String {
    let mut table = Table::new(&["", ""]).prose();
    let mut row = |name: &str, value: Cell| table.row([Cell::new(Look::Dim, name), value]);
    row("volume", Cell::new(Look::Bold, v.name.clone()));
    row("state", Cell::state(v.state));
    row("size", print(v.bytes).into());
    row("block", format!("{} bytes", v.block_bytes).into());
    let space = match v.space_bytes {
        0 => String::new(),
        n => format!("{} of the pool, in ", print(n)),
    };
    row("space", format!("{space}{}", crate::screen::count(v.runs as usize, "run")).into());
    row("uuid", v.uuid.to_string().into());
    row("nvme", format!("namespace {}, nguid {}", v.nsid, v.nguid).into());
    row("scsi", v.naa.clone().into());
    let c = &v.counters;
    row("read", format!("{} commands, {}", print_count(c.reads), print(c.read_bytes)).into());
    row("written", format!("{} commands, {}", print_count(c.writes), print(c.write_bytes)).into());
    row("flushes", print_count(c.flushes).into());
    row("errors", Cell::errors(c.errors));
    if let Some(caps) = caps_words(v) {
        row("capped at", format!("{caps}; {} commands had to wait", print_count(v.capped)).into());
    }
    let share = if v.weight == WEIGHT { "usual".to_string() } else { format!("{WEIGHT} is usual") };
    row("weight", format!("{} ({share})", v.weight).into());
    let exports = exports_words(v);
    row("exported to", if exports.is_empty() { Cell::new(Look::Dim, "nobody") } else { exports.into() });
    let times = times::volumes(core::slice::from_ref(v), context.terminal);
    table.print(context.terminal, 0) + &times.map_or(String::new(), |table| format!("\n{table}"))
}
