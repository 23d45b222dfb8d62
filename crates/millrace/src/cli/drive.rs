//! `millrace drive`.

use super::times;
use crate::arguments::{count_in, drive_name, drive_path};
use crate::client::segment;
use crate::context::Context;
use crate::failure::Failure;
use crate::screen::{Cell, Look, Table, look_of};
use crate::words::machine::drive_user;
use api::{Drive, DriveRole, Shape};
use base::DriveKind;
use base::size::{print, print_count};
use clap::{Args, Subcommand};
use finding::LegRefusal;

/// List and show drives; fail, return, replace and remove them.
#[derive(Subcommand, Debug)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  millrace drive ls
  millrace drive fail /dev/nvme3n1
  millrace drive return /dev/nvme3n1
  millrace drive replace /dev/nvme3n1 /dev/nvme7n1")]
pub enum DriveCommand {
    /// List all drives of this machine, and what each is used for
    #[command(after_help = "\
Free drives can be used for a pool. For all others the column NOTE says why not: what the drive holds, who uses it, or that it is too small.

Examples:
  millrace drive ls
  millrace drive ls /srv/images/*.img  # files are looked at only if named
  millrace drive ls --json")]
    Ls {
        /// Other drives to list, such as files
        #[arg(value_name = "DRIVE")]
        drives: Vec<String>,
    },
    /// Show one drive: state, identity, counters and latencies
    #[command(after_help = "\
Examples:
  millrace drive show /dev/nvme0n1
  millrace drive show nvme0n1 --json")]
    Show {
        /// The drive: its path, the last part of the path, or its UUID
        #[arg(value_name = "DRIVE", add = super::complete::drives())]
        drive: String,
    },
    /// Take a drive out of its mirror
    #[command(after_help = "\
The last drive in sync of a mirror cannot be failed.

Examples:
  millrace drive fail /dev/nvme3n1
  millrace drive return /dev/nvme3n1  # the opposite")]
    Fail {
        /// The drive: its path, the last part of the path, or its UUID
        #[arg(value_name = "DRIVE", add = super::complete::drives())]
        drive: String,
        /// Fail it even if the files of all other legs were deleted
        #[arg(long)]
        force: bool,
    },
    /// Return a drive to its mirror; only what was written meanwhile is copied
    #[command(after_help = "\
Examples:
  millrace drive return /dev/nvme3n1
  millrace status --watch  # shows the resync")]
    Return {
        /// The drive: its path, the last part of the path, or its UUID
        #[arg(value_name = "DRIVE", add = super::complete::drives())]
        drive: String,
    },
    /// Write the label of a drive in use anew, after something overwrote it
    #[command(after_help = "\
If another leg is in sync, the drive is out of its mirror: then `millrace drive return` writes its label and copies everything. This is for a drive whose data no other drive has. Its records and the pool's configuration are written from what the daemon knows; what else was overwritten is not known, so check what the volumes hold.

Examples:
  millrace drive restore-label /dev/nvme3n1 --yes
  millrace status  # what was found there, before")]
    RestoreLabel {
        /// The drive: its path, the last part of the path, or its UUID
        #[arg(value_name = "DRIVE", add = super::complete::drives())]
        drive: String,
        /// Write it even if data of the drive may be damaged, too
        #[arg(long, short)]
        yes: bool,
        /// Write it even if something else was written there, which is lost
        #[arg(long)]
        force: bool,
    },
    /// Replace a drive by another one; all data is copied
    #[command(after_help = "\
If the old drive is in sync, it serves until everything is copied. Then it leaves the pool and loses its label. `millrace drive rm NEW` cancels the replacement before that.

Examples:
  millrace drive replace /dev/nvme3n1 /dev/nvme7n1
  millrace drive replace 6f1c1a52-… /dev/nvme7n1  # a missing drive, by UUID
  millrace status --watch  # shows the progress")]
    Replace {
        /// The drive to replace: its path, the last part of the path, or its UUID
        #[arg(value_name = "OLD", add = super::complete::drives())]
        old: String,
        /// Path of the new drive
        #[arg(value_name = "NEW")]
        new: String,
        /// Use the new drive even if it holds other data, which is lost
        #[arg(long)]
        force: bool,
    },
    /// Remove a hot spare from its pool, or a leg from its mirror
    #[command(after_help = "\
The drive loses its label and is free. The last drive in sync of a mirror cannot be removed. Where redundancy would be lost, --force is needed.

Examples:
  millrace drive rm /dev/nvme9n1
  millrace drive rm /dev/nvme3n1 --force  # a mirror of two becomes one drive")]
    Rm {
        /// The drive: its path, the last part of the path, or its UUID
        #[arg(value_name = "DRIVE", add = super::complete::drives())]
        drive: String,
        /// Remove it even if the mirror then has no redundancy
        #[arg(long)]
        force: bool,
    },
    /// Switch the locate light of a drive's bay on or off
    #[command(after_help = "\
This works on the machine where the command runs, without the daemon. The light belongs to an enclosure (SES), a port with enclosure management (NPEM) or a hot-plug slot.

Examples:
  millrace drive locate /dev/nvme3n1 --on
  millrace drive locate S4EVNF0M123456 --off")]
    #[command(group = clap::ArgGroup::new("light").required(true).args(["on", "off"]))]
    Locate {
        /// The drive: its path, name, serial number or slot
        #[arg(value_name = "DRIVE")]
        drive: String,
        /// Switch the light on
        #[arg(long)]
        on: bool,
        /// Switch the light off
        #[arg(long)]
        off: bool,
    },
    /// Make a drive slow, limited, faulty or absent, to test what happens (until restart)
    #[command(after_help = "\
Options that are not given keep their values.

Examples:
  millrace drive shape /dev/nvme3n1 --latency-us 5000
  millrace drive shape /dev/nvme3n1 --iops-max 10k --mbps-max 200
  millrace drive shape /dev/nvme3n1 --uplink 1 --uplink-mbps 1600
  millrace drive shape /dev/nvme3n1 --read-errors-ppm 100
  millrace drive shape /dev/nvme3n1 --hang
  millrace drive shape /dev/nvme3n1 --clear")]
    Shape(ShapeArgs),
}

/// Largest number of a shape.
const COUNT_MAX: u64 = u32::MAX as u64;

/// `millrace drive shape`.
#[derive(Args, Debug)]
pub struct ShapeArgs {
    /// The drive: its path, the last part of the path, or its UUID
    #[arg(value_name = "DRIVE", add = super::complete::drives())]
    drive: String,
    /// Microseconds to add to every operation
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count_in::<u32>(0..=COUNT_MAX))]
    latency_us: Option<u32>,
    /// Maximum operations per second (0: no limit)
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count_in::<u32>(0..=COUNT_MAX))]
    iops_max: Option<u32>,
    /// Maximum MB per second (0: no limit)
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count_in::<u32>(0..=COUNT_MAX))]
    mbps_max: Option<u32>,
    /// Number of a link that drives with the same number share (0: no link)
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count_in::<u32>(0..=COUNT_MAX))]
    uplink: Option<u32>,
    /// MB per second that the link carries in each direction
    #[arg(long, value_name = "N", allow_hyphen_values = true, requires = "uplink", value_parser = count_in::<u32>(0..=COUNT_MAX))]
    uplink_mbps: Option<u32>,
    /// Share of the link that this drive gets when the link is full [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, requires = "uplink", value_parser = count_in::<u32>(1..=1000))]
    uplink_share: Option<u32>,
    /// Reads that fail, of each million
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count_in::<u32>(0..=1_000_000))]
    read_errors_ppm: Option<u32>,
    /// Writes that fail, of each million
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count_in::<u32>(0..=1_000_000))]
    write_errors_ppm: Option<u32>,
    /// Accept operations and never answer them
    #[arg(long)]
    hang: bool,
    /// Behave as if the drive had been pulled out
    #[arg(long)]
    gone: bool,
    /// Remove all artificial behaviour
    #[arg(long, conflicts_with_all = [
        "latency_us", "iops_max", "mbps_max", "uplink", "uplink_mbps", "uplink_share", "read_errors_ppm",
        "write_errors_ppm", "hang", "gone"])]
    clear: bool,
}

/// Carries out one of them.
pub fn run(command: DriveCommand, context: &Context) -> Result<String, Failure> {
    let client = &context.client;
    match command {
        DriveCommand::Ls { drives } => {
            let drives: Vec<Drive> = client.get(&list_path(&drives))?;
            let machine = crate::machine::here(context);
            let known: Vec<String> = drives.iter().map(|d| d.path.clone()).collect();
            let taken = (context.taken)().into_iter().filter(|t| !known.contains(&t.path)).map(in_use);
            let usable = drives.into_iter().map(|d| (d, false));
            let all = usable.chain(taken.map(|d| (d, true)));
            let placed: Vec<Placed> = all.map(|(d, in_use)| Placed::of(d, in_use, &machine)).collect();
            Ok(context.show(&placed, |drives| list(drives, context)))
        }
        DriveCommand::Show { drive } => {
            let drive: Drive = client.get(&resource(&drive, context)?.0)?;
            Ok(context.show(&drive, |drive| show(drive, context)))
        }
        DriveCommand::Fail { drive, force } => {
            let (path, name) = resource(&drive, context)?;
            client.act(&format!("{path}/fail?force={force}"), &serde_json::json!({}))?;
            let next = format!("millrace drive return {name}, or millrace drive replace {name} NEW");
            Ok(context.done(format!("Drive {name} is out of its mirror."), &next))
        }
        DriveCommand::Return { drive } => {
            let (path, name) = resource(&drive, context)?;
            client.act(&format!("{path}/return"), &serde_json::json!({}))?;
            Ok(context
                .done(format!("Drive {name} is back and is being resynced."), "millrace status --watch"))
        }
        DriveCommand::RestoreLabel { drive, yes, force } => {
            let (path, name) = resource(&drive, context)?;
            client.act(&format!("{path}/restore-label?yes={yes}&force={force}"), &serde_json::json!({}))?;
            let what = format!("The label of {name} is written anew; data of the drive may be damaged.");
            Ok(context.done(what, "millrace status, and a check of what the volumes hold"))
        }
        DriveCommand::Replace { old, new, force } => {
            let (path, name) = resource(&old, context)?;
            let new = drive_path(&new);
            let body = api::DriveReplace { new: new.clone(), force };
            let placed: api::Created = client.post(&format!("{path}/replace"), &body)?;
            let what = format!("Drive {new} replaces {name} and is being resynced.");
            Ok(context.created(&placed, what, "millrace status --watch"))
        }
        DriveCommand::Rm { drive, force } => {
            let (path, name) = resource(&drive, context)?;
            client.delete(&format!("{path}?force={force}"))?;
            Ok(context.done(format!("Drive {name} is removed from its pool."), "millrace drive ls"))
        }
        DriveCommand::Shape(args) => shape(&args, context),
        DriveCommand::Locate { drive, on, off: _ } => crate::machine::locate(context, &drive, on),
    }
}

/// A drive as the daemon knows it, and what this machine tells of it.
#[derive(serde::Serialize)]
struct Placed {
    #[serde(flatten)]
    drive: Drive,
    /// Somebody else on this machine has it.
    in_use: bool,
    /// Nobody has it, and no pool can be made of it, since it is too small.
    too_small: bool,
    /// The label of its slot.
    slot: Option<String>,
    /// How warm it is, degrees Celsius.
    celsius: Option<f32>,
}

impl Placed {
    fn of(mut drive: Drive, in_use: bool, machine: &topology::Machine) -> Self {
        let too_small = drive.role == DriveRole::Free && drive.bytes < head::DRIVE_BYTES_MIN;
        if too_small {
            drive.reason = format!("a drive of a pool has at least {}", print(head::DRIVE_BYTES_MIN));
        }
        let found = machine.drive_at(&drive.path);
        if let (Some(serial), true) = (found.and_then(|d| d.serial.clone()), drive.serial.is_empty()) {
            drive.serial = serial;
        }
        let celsius = found.and_then(|d| d.temperature).map(|t| t.now);
        Self { in_use, too_small, slot: found.and_then(|d| d.slot.clone()), celsius, drive }
    }
}

/// A disk that somebody else has, as a drive, with the reason.
fn in_use(taken: uring::Taken) -> Drive {
    let uring::Taken { path, bytes, model, serial, users, partitions, read_only } = taken;
    let mut users: Vec<String> = users.iter().map(drive_user).collect();
    users.dedup();
    let reason = if !users.is_empty() {
        format!("used by {}", users.join(", "))
    } else if !partitions.is_empty() {
        format!("has the partitions {}", partitions.join(", "))
    } else if read_only {
        "cannot be written to".to_string()
    } else {
        "in use".to_string()
    };
    Drive {
        path,
        uuid: None,
        kind: "block".into(),
        model,
        serial,
        bytes,
        block_bytes: 0,
        volatile_cache: false,
        pool: None,
        role: DriveRole::Unusable,
        state: None,
        cause: None,
        reason,
        slow: false,
        errors: 0,
        counters: Default::default(),
        read_times: None,
        write_times: None,
        health: None,
        shape: None,
    }
}

fn shape(args: &ShapeArgs, context: &Context) -> Result<String, Failure> {
    let (path, name) = resource(&args.drive, context)?;
    let before = context.client.get::<Drive>(&path)?.shape.unwrap_or_default();
    let after = if args.clear {
        Shape::default()
    } else {
        Shape {
            latency_us: args.latency_us.unwrap_or(before.latency_us),
            iops_max: args.iops_max.unwrap_or(before.iops_max),
            mbps_max: args.mbps_max.unwrap_or(before.mbps_max),
            read_errors_ppm: args.read_errors_ppm.unwrap_or(before.read_errors_ppm),
            write_errors_ppm: args.write_errors_ppm.unwrap_or(before.write_errors_ppm),
            hang: args.hang || before.hang,
            gone: args.gone || before.gone,
            uplink: args.uplink.unwrap_or(before.uplink),
            uplink_mbps: match args.uplink {
                Some(0) => 0,
                _ => args.uplink_mbps.unwrap_or(before.uplink_mbps),
            },
            uplink_share: args.uplink.map_or(before.uplink_share, |_| args.uplink_share.unwrap_or(0)),
        }
    };
    // A drive that is in no imported pool may have a shape that is not shown: taking it away is always asked for.
    if after == before && !args.clear {
        let what = if before == Shape::default() { "behaves naturally" } else { "behaves so already" };
        return Ok(context.done(format!("Drive {name} {what}: {}.", describe(&after)), ""));
    }
    context.client.put(&format!("{path}/shape"), &after)?;
    let next = if after == Shape::default() {
        format!("millrace drive show {name}")
    } else {
        format!("millrace status --watch, or millrace drive shape {name} --clear")
    };
    Ok(context.done(format!("Drive {name}: {}.", describe(&after)), &next))
}

/// A shape in words.
pub fn describe(shape: &Shape) -> String {
    let mut words = Vec::new();
    let mut say = |on: bool, text: String| words.extend(on.then_some(text));
    say(shape.gone, "gone".into());
    say(shape.hang, "hangs".into());
    say(shape.latency_us > 0, format!("{} µs slower", shape.latency_us));
    say(shape.iops_max > 0, format!("at most {} IOPS", shape.iops_max));
    say(shape.mbps_max > 0, format!("at most {} MB/s", shape.mbps_max));
    let share = match shape.uplink_share {
        0 | 1 => String::new(),
        n => format!(", {n} parts of it"),
    };
    let link = format!("shares link {} of {} MB/s{share}", shape.uplink, shape.uplink_mbps);
    say(shape.uplink > 0, link);
    say(shape.read_errors_ppm > 0, format!("{} of a million reads fail", shape.read_errors_ppm));
    say(shape.write_errors_ppm > 0, format!("{} of a million writes fail", shape.write_errors_ppm));
    if words.is_empty() { "no artificial behaviour".into() } else { words.join(", ") }
}

fn list_path(drives: &[String]) -> String {
    let query: Vec<String> = drives.iter().map(|d| format!("look={}", segment(&drive_path(d)))).collect();
    if query.is_empty() { "/drives".into() } else { format!("/drives?{}", query.join("&")) }
}

/// The path of a drive's resource, and the drive's name. The last part of a path is enough where
/// only one of our drives has it.
fn resource(name: &str, context: &Context) -> Result<(String, String), Failure> {
    let uuid = name.parse::<base::Uuid>().is_ok();
    let known = if uuid || (name.contains(['/', ':']) && DriveKind::of(name).survives_restart()) {
        if uuid { name.to_string() } else { drive_path(name) }
    } else {
        let drives: Vec<Drive> = context.client.get("/drives")?;
        let begins = |d: &Drive| {
            name.len() >= UUID_SHOWN
                && d.uuid.is_some_and(|u| u.to_string().starts_with(&name.to_ascii_lowercase()))
        };
        let same: Vec<&Drive> =
            drives.iter().filter(|d| d.path.rsplit('/').next() == Some(name) || begins(d)).collect();
        match same[..] {
            [one] => match (&one.uuid, begins(one)) {
                (Some(uuid), true) => uuid.to_string(),
                _ => one.path.clone(),
            },
            [] => {
                let unknown = LegRefusal::DriveUnknown { drive: name.into() };
                return Err(crate::words::refusal(&unknown.into()).into());
            }
            [..] => {
                let paths: Vec<String> = same.iter().map(|d| told_apart(&d.path, d.uuid, &drives)).collect();
                let next = if same.iter().all(|d| d.path == same[0].path) {
                    "the same command with the beginning of the UUID that stands behind the name"
                } else {
                    "the same command with the whole path"
                };
                let cause = format!("several drives are called {name}: {}", paths.join(", "));
                return Err(Failure::usage(cause).with_next(next));
            }
        }
    };
    Ok((format!("/drives/{}", segment(&known)), known))
}

fn state_cell(drive: &Drive) -> Cell {
    match drive.role {
        DriveRole::Leg => drive.state.map_or(Cell::new(Look::Dim, "-"), Cell::state),
        DriveRole::Missing => Cell::new(Look::Bad, "missing"),
        DriveRole::Spare if drive.state == Some(api::State::Optimal) => Cell::new(Look::Plain, "spare"),
        DriveRole::Spare => Cell::new(Look::Bad, "spare, missing"),
        DriveRole::Free => Cell::new(Look::Good, "free"),
        DriveRole::Foreign | DriveRole::Labelled => Cell::new(Look::Warn, drive.role.word()),
        DriveRole::Unusable => Cell::new(Look::Bad, "unusable"),
        DriveRole::RemovedFailed => Cell::new(Look::Bad, drive.role.word()),
    }
}

fn list(placed: &[Placed], context: &Context) -> String {
    let drives: Vec<Drive> = placed.iter().map(|p| p.drive.clone()).collect();
    let drives = &drives[..];
    // Ours first; each by name.
    let mut sorted: Vec<&Placed> = placed.iter().collect();
    let ours = |d: &Drive| {
        matches!(d.role, DriveRole::Leg | DriveRole::Missing | DriveRole::Spare | DriveRole::RemovedFailed)
    };
    sorted.sort_by_key(|p| (!ours(&p.drive), p.in_use, natural(&drive_name(&p.drive))));
    let mut told = String::new();
    if drives.is_empty() {
        return "This machine has no drive.\nNext: millrace drive ls /path/to/file\n".into();
    }
    // Columns of which nothing is known are not shown.
    let slots = placed.iter().any(|p| p.slot.is_some());
    let warmth = placed.iter().any(|p| p.celsius.is_some());
    let serials = drives.iter().any(|d| !d.serial.is_empty());
    let mut heads = vec!["DRIVE", "STATE", ">SIZE", ">BLOCK", "KIND", "POOL", ">ERRORS"];
    heads.extend(slots.then_some("SLOT"));
    heads.extend(warmth.then_some(">°C"));
    heads.push("MODEL");
    heads.extend(serials.then_some("SERIAL"));
    heads.push("NOTE");
    let mut table = Table::new(&heads)
        .optional(&["MODEL"])
        .optional(&["KIND"])
        .optional(&["BLOCK"])
        .optional(&["SERIAL"])
        .prose();
    let dash = |text: &str| if text.is_empty() { "-".to_string() } else { text.to_string() };
    for p in sorted {
        let d = &p.drive;
        // The row begins with the path that the sentence begins with.
        let mut note = d.reason.strip_prefix(&format!("{} ", d.path)).unwrap_or(&d.reason).to_string();
        if d.slow && note.is_empty() {
            note = SLOW.into();
        }
        if let Some(shape) = &d.shape {
            let shape = format!("shaped: {}", describe(shape));
            note = if note.is_empty() { shape } else { format!("{note}; {shape}") };
        }
        // A shelf of drives that share a fate is told of it once.
        if !note.is_empty() && note == told {
            note = "as above".into()
        } else {
            told.clone_from(&note)
        }
        let mut cells: Vec<Cell> = vec![
            name_among(d, drives).into(),
            match (p.in_use, p.too_small) {
                (true, _) => Cell::new(Look::Dim, "in use"),
                (false, true) => Cell::new(Look::Warn, "too small"),
                (false, false) => state_cell(d),
            },
            if d.bytes > 0 { print(d.bytes) } else { "-".into() }.into(),
            if d.block_bytes > 0 { d.block_bytes.to_string() } else { "-".into() }.into(),
            dash(&d.kind).into(),
            d.pool.clone().unwrap_or_else(|| "-".into()).into(),
            Cell::errors(d.errors),
        ];
        cells.extend(slots.then(|| dash(p.slot.as_deref().unwrap_or("")).into()));
        cells.extend(warmth.then(|| p.celsius.map_or("-".to_string(), |c| format!("{c:.0}")).into()));
        cells.push(dash(&d.model).into());
        cells.extend(serials.then(|| dash(&d.serial).into()));
        cells.push(note.into());
        table.row(cells);
    }
    table.print(context.terminal, 0)
}

/// What is said of a leg that is much slower than those beside it.
pub const SLOW: &str = "slow: most reads go to the other legs";

/// Characters of a UUID that tell two drives apart.
const UUID_SHOWN: usize = 8;

/// The name of one of these drives.
pub fn name_among(drive: &Drive, all: &[Drive]) -> String {
    told_apart(&drive_name(drive), drive.uuid, all)
}

/// A drive's path; with the beginning of its UUID where another drive has the same, as `ram:256M` twice.
pub fn told_apart(path: &str, uuid: Option<base::Uuid>, all: &[Drive]) -> String {
    let same = all.iter().filter(|d| d.path == path).count();
    match uuid {
        Some(uuid) if same > 1 => format!("{path} {}", &uuid.to_string()[..UUID_SHOWN]),
        _ => path.to_string(),
    }
}

/// What comes first where names have numbers: `loop2` before `loop10`.
pub fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = vec![];
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(end);
        parts.push((word.to_string(), number.parse().unwrap_or(u64::MAX)));
        rest = tail;
    }
    parts
}

fn show(d: &Drive, context: &Context) -> String {
    let mut table = Table::new(&["", ""]).prose();
    let mut row = |name: &str, value: Cell| table.row([Cell::new(Look::Dim, name), value]);
    row("drive", Cell::new(Look::Bold, drive_name(d)));
    row("state", state_cell(d));
    if !d.reason.is_empty() {
        row("reason", Cell::new(d.state.map_or(Look::Plain, look_of), d.reason.clone()));
    }
    if d.slow {
        row("speed", Cell::new(Look::Warn, SLOW));
    }
    row("pool", d.pool.clone().unwrap_or_else(|| "none".into()).into());
    row("size", print(d.bytes).into());
    row("block", format!("{} bytes", d.block_bytes).into());
    row("kind", d.kind.clone().into());
    if !d.model.is_empty() || !d.serial.is_empty() {
        row("model", format!("{} {}", d.model, d.serial).trim().into());
    }
    let cache = if d.volatile_cache { "volatile: flushed when hosts flush" } else { "none, or protected" };
    row("write cache", cache.into());
    if let Some(uuid) = &d.uuid {
        row("uuid", uuid.to_string().into());
    }
    let c = &d.counters;
    row("read", format!("{} commands, {}", print_count(c.reads), print(c.read_bytes)).into());
    row("written", format!("{} commands, {}", print_count(c.writes), print(c.write_bytes)).into());
    row("flushes", print_count(c.flushes).into());
    row("errors", Cell::errors(d.errors));
    if let Some(shape) = &d.shape {
        row("shape", Cell::new(Look::Warn, describe(shape)));
    }
    let times = times::drive(d, context.terminal);
    table.print(context.terminal, 0) + &times.map_or(String::new(), |table| format!("\n{table}"))
}
