//! `millrace plan`, and what `pool create` says of where drives are.

use super::layout::{arrays_words, known, layout};
use super::recording::{MachineArgs, PATIENCE, here};
use super::sizes;
use crate::arguments::count_in;
use crate::context::Context;
use crate::failure::Failure;
use crate::screen::{Cell, Look, Table, Terminal, count};
use crate::words::topology::{self as words, count as commands};
use api::{ArrayLayout, ArraySpec};
use clap::Args;
use std::path::PathBuf;
use topology::plan::{self, Array, PlacedLeg, Plan, PlanError, Prediction, Seats, Site, Unknown};
use topology::{Machine, Measured};

/// `millrace plan`.
#[derive(Args, Debug)]
#[command(after_help = "\
Without LAYOUT, the command predicts the speed of the existing pools, or suggests a layout of all free drives. The rates follow from the drives, the links above them, the network ports, and the shards while the head is under load. `≤` means that the speed of a drive itself is unknown: measure it with `millrace bench drives`, or describe it in the file for --describe:

  [[bank]]             # a switch, or whatever shares one link
  name = \"left\"
  link = \"Gen3 x16\"    # or mbps = 12700; node = 0
  [[drive]]
  name = \"left-\"       # left-0, left-1, ...
  count = 12
  bank = \"left\"
  link = \"Gen3 x4\"
  read-iops = 700_000  # and write-iops, read-mbps, write-mbps
  [[port]]
  count = 2
  mbit = 100_000       # mtu = 9000
  [head]
  shards = 16
  commands = 500_000   # per second and shard

Examples:
  millrace plan
  millrace plan mirrors /dev/nvme0n1 /dev/nvme1n1 /dev/nvme2n1 /dev/nvme3n1
  millrace plan --machine machine.rec --legs 3
  millrace plan --describe box.toml
  millrace bench drives --drive nvme0n1 --drive nvme1n1 --json > r.json
  millrace plan mirror nvme0n1 nvme1n1 --measured r.json")]
pub struct PlanArgs {
    /// Drives, with the words `mirror`, `mirrors` and `single`, as for `millrace pool create`
    #[arg(value_name = "LAYOUT")]
    layout: Vec<String>,
    /// Share of each array in the stripe, in order: 1 to 64 each
    #[arg(long, value_name = "N,N", allow_hyphen_values = true, value_delimiter = ',', requires = "layout", value_parser = count_in::<u32>(1..=64))]
    weights: Vec<u32>,
    /// Drives in each mirror of the suggestion; 1 for no redundancy
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 2, value_parser = count_in::<u8>(1..=4), conflicts_with = "layout")]
    legs: u8,
    /// Use this description of a machine, in TOML
    #[arg(long, value_name = "FILE", conflicts_with_all = ["machine", "seconds"])]
    describe: Option<PathBuf>,
    /// Speed of the drives alone: results of `millrace bench drives --json`
    #[arg(long, value_name = "FILE")]
    measured: Vec<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
}

/// A layout with its name.
struct Named {
    /// The pool's, or what it is.
    name: String,
    plan: Plan,
    /// Drives that are left over.
    rest: Vec<String>,
    /// The command that makes it, empty for a pool that is there.
    command: String,
    /// Where its head should sit, for a proposal on a machine that tells.
    seats: Option<Seats>,
    /// What speaks against it, sentences.
    warnings: Vec<String>,
    /// What else follows from it, sentences.
    notes: Vec<String>,
    /// The command that makes a better one, without its layout.
    verb: String,
}

/// The command that makes a layout, without it.
const CREATE: &str = "millrace pool create NAME";

impl Named {
    /// A layout that is there, or about to be.
    fn there(name: String, plan: Plan) -> Self {
        let (rest, warnings, notes) = Default::default();
        Self { name, plan, rest, command: String::new(), seats: None, warnings, notes, verb: CREATE.into() }
    }

    /// What programs get.
    fn json(&self) -> serde_json::Value {
        let mut out = words::planned(&self.plan, self.seats.as_ref());
        out["name"] = self.name.clone().into();
        out["rest"] = self.rest.clone().into();
        out["command"] = self.command.clone().into();
        out["warnings"] = self.warnings.clone().into();
        out["notes"] = self.notes.clone().into();
        out
    }
}

/// Carries it out.
pub fn run(args: &PlanArgs, context: &Context) -> Result<String, Failure> {
    let (mut site, pools, seats) = match &args.describe {
        Some(path) => (described(path)?, Vec::new(), None),
        None => {
            let machine = Machine::of(&args.machine.recording(context, false)?);
            let site = Site::of(&machine);
            let pools = plan::pools(&site, &machine);
            (site, pools, plan::seats(&machine))
        }
    };
    let here = args.describe.is_none() && args.machine.is_here();
    for path in &args.measured {
        measured(&mut site, path, here)?;
    }
    let plans = if !args.layout.is_empty() {
        super::raid::refuse_raid_words(&args.layout, "millrace plan")?;
        let specs = layout(&args.layout, &args.weights, &site, here)?;
        let arrays = arrays(&mut site, &specs, here)?;
        let plan = made(&site, &arrays)?;
        let warnings = if here { sizes::unused(&sizes::sized(&specs)) } else { Vec::new() };
        let command = command(CREATE, &args.layout, &args.weights);
        vec![Named { command, warnings, ..Named::there("this layout".into(), plan) }]
    } else if !pools.is_empty() {
        let one = |(name, arrays): (String, Vec<Array>)| Ok(Named::there(name, made(&site, &arrays)?));
        let mut plans = pools.into_iter().map(one).collect::<Result<Vec<_>, Failure>>()?;
        if let [_, _, ..] = &plans[..] {
            plans.iter_mut().for_each(|p| p.plan.gaps.push(Unknown::OtherPools));
        }
        plans
    } else {
        let free = if here { free_here(&mut site, context) } else { site.free() };
        vec![Named { seats, ..proposal(&site, &free, usize::from(args.legs))? }]
    };
    let json: Vec<serde_json::Value> = plans.iter().map(Named::json).collect();
    Ok(context
        .show(&json, |_| plans.iter().map(|p| screen(p, context.terminal)).collect::<Vec<_>>().join("\n")))
}

fn made(site: &Site, arrays: &[Array]) -> Result<Plan, Failure> {
    plan::plan(site, arrays)
        .map_err(|e| Failure::usage(words::plan_error(&e)).with_next("millrace plan --help"))
}

/// Drives of this machine that a pool may be made of: what the head calls free; without a head, what nobody uses.
fn free_here(site: &mut Site, context: &Context) -> Vec<String> {
    match context.client.get_within::<Vec<api::Drive>>("/drives", PATIENCE) {
        Ok(drives) => {
            let free = drives.iter().filter(|d| d.role == api::DriveRole::Free);
            free.map(|d| site.know(&d.path)).collect()
        }
        Err(_) => {
            let unused = uring::candidates();
            let is_unused = |name: &String| unused.iter().any(|path| topology::plain_name(path) == name);
            site.free().into_iter().filter(is_unused).collect()
        }
    }
}

fn proposal(site: &Site, free: &[String], legs: usize) -> Result<Named, Failure> {
    let none =
        |why: String| Failure::usage(why).with_next("millrace plan LAYOUT, or millrace plan --describe FILE");
    if free.len() < legs {
        return Err(none(match free.len() {
            0 => "there is no free drive to plan with".into(),
            n => format!("{} for mirrors of {legs}", count(n, "free drive")),
        }));
    }
    let (arrays, rest) =
        plan::propose(site, free, legs).map_err(|e: PlanError| none(words::plan_error(&e)))?;
    let plan = made(site, &arrays)?;
    let command = layout_command(CREATE, &arrays);
    Ok(Named { rest, command, ..Named::there("a proposal".into(), plan) })
}

fn described(path: &std::path::Path) -> Result<Site, Failure> {
    let bad =
        |why: String| Failure::usage(format!("{}: {why}", path.display())).with_next("millrace plan --help");
    let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    let described = toml::from_str(&text).map_err(|e| bad(e.to_string().trim_end().replace('\n', "\n  ")))?;
    plan::site(&described).map_err(|e| bad(words::description_error(&e)))
}

/// What drives did alone, by a result of `bench drives --json`.
pub fn results(path: &std::path::Path) -> Result<Vec<Measured>, Failure> {
    let bad = |why: String| {
        Failure::usage(format!("{}: {why}", path.display())).with_next("millrace bench drives --json > FILE")
    };
    let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    let doc: crate::bench::Doc = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    let Some(drives) = doc.drives else { return Err(bad("it is no result of bench drives".into())) };
    let write = match drives.rw.as_str() {
        "read" | "randread" => false,
        "write" | "randwrite" => true,
        other => return Err(bad(format!("it has {other}: reads alone or writes alone are needed"))),
    };
    let alone = drives.drives.iter().zip(&drives.alone);
    let bytes = drives.block_bytes;
    Ok(alone.map(|(d, did)| Measured { drive: d.clone(), write, bytes, iops: did.total.iops }).collect())
}

fn measured(site: &mut Site, path: &std::path::Path, here: bool) -> Result<(), Failure> {
    for m in results(path)? {
        check_there(site, &m.drive, here).map_err(|e| {
            Failure::usage(format!("{}: {}", path.display(), e.message)).with_next("millrace drive ls")
        })?;
        let name = known(site, &m.drive);
        site.measured(&name, m.write, m.bytes, m.iops);
    }
    Ok(())
}

/// Arrays as a plan takes them; drives that the machine does not show become known.
fn arrays(site: &mut Site, specs: &[ArraySpec], here: bool) -> Result<Vec<Array>, Failure> {
    let mut drive = |spec: &String| {
        check_there(site, spec, here)?;
        Ok(known(site, spec))
    };
    let mut one = |spec: &ArraySpec| {
        let drives = spec.drives.iter().map(&mut drive).collect::<Result<_, Failure>>()?;
        Ok(Array { drives, weight: f64::from(spec.weight.unwrap_or(1)) })
    };
    specs.iter().map(&mut one).collect()
}

/// Refuses a drive that is not at this place. `here`: the place is this machine, on which files are drives too.
fn check_there(site: &Site, spec: &str, here: bool) -> Result<(), Failure> {
    let (_, bare) = head::steward::split_shape(spec).unwrap_or((None, spec));
    let file = here && (bare.starts_with("file:") || std::path::Path::new(bare).exists());
    if site.has(bare) || plan::is_memory(bare) || file {
        return Ok(());
    }
    let next = if here { "millrace drive ls" } else { "millrace topology, with the same --machine" };
    Err(Failure::usage(format!("there is no drive {bare}")).with_next(next))
}

/// Refuses drives that are some pool's.
fn check_free(site: &Site, specs: &[ArraySpec]) -> Result<(), Failure> {
    let Some(taken) = specs.iter().flat_map(|s| &s.drives).find(|d| site.is_taken(d)) else { return Ok(()) };
    Err(Failure::usage(format!("{taken} is a drive of a pool already")).with_next("millrace drive ls"))
}

/// What is about to be created, as `millrace plan` shows it.
pub fn about_to_create(mut site: Site, specs: &[ArraySpec], context: &Context) -> Result<String, Failure> {
    check_free(&site, specs)?;
    let arrays = arrays(&mut site, specs, true)?;
    let plan = made(&site, &arrays)?;
    let warnings = sizes::unused(&sizes::sized(specs));
    let named = Named { warnings, ..Named::there("this layout".into(), plan) };
    Ok(context.show(&named.json(), |_| screen(&named, context.terminal)))
}

/// What is about to be added to a pool: the new arrays, which work beside those that it has.
pub fn about_to_add(
    mut site: Site,
    pool: &api::Pool,
    specs: &[ArraySpec],
    context: &Context,
) -> Result<String, Failure> {
    check_free(&site, specs)?;
    let arrays = arrays(&mut site, specs, true)?;
    let plan = made(&site, &arrays)?;
    let (growth, less) = sizes::growth(pool, specs);
    let warnings = less.into_iter().chain(sizes::unused(&sizes::sized(specs))).collect();
    let verb = format!("millrace pool add {}", pool.name);
    let named = Named { warnings, notes: vec![growth], verb, ..Named::there("the new arrays".into(), plan) };
    Ok(context.show(&named.json(), |_| screen(&named, context.terminal)))
}

/// A mirror of a pool with the leg that it is about to get.
pub fn about_to_join(
    mut site: Site,
    (name, mirror): (&str, &api::Array),
    drive: &str,
    context: &Context,
) -> Result<String, Failure> {
    let new = ArraySpec { layout: ArrayLayout::Mirror, drives: vec![drive.into()], weight: None };
    check_free(&site, core::slice::from_ref(&new))?;
    let there = mirror.legs.iter().map(|l| l.path.clone());
    let spec = ArraySpec { drives: there.chain([drive.to_string()]).collect(), ..new };
    let arrays = arrays(&mut site, &[spec], true)?;
    let plan = Plan { better: None, ..made(&site, &arrays)? };
    let mut legs: Vec<(String, Option<u64>)> =
        mirror.legs.iter().map(|l| (l.path.clone(), sizes::bytes_of(&l.path))).collect();
    // Of the drives that are there nothing can be changed any more.
    let smallest = legs.iter().filter_map(|(_, bytes)| *bytes).min();
    legs.iter_mut().for_each(|(_, bytes)| *bytes = smallest);
    let bytes = sizes::bytes_of(drive);
    if let Some(bytes) = bytes.filter(|bytes| *bytes < mirror.bytes) {
        let (has, needs) = (base::size::print(bytes), base::size::print(mirror.bytes));
        let what = format!("{drive} has {has}, and a drive of {name} needs more than {needs}");
        return Err(Failure::usage(what).with_next("millrace drive ls"));
    }
    legs.push((drive.into(), bytes));
    let named =
        Named { warnings: sizes::unused(&[legs]), ..Named::there(format!("{name} with {drive}"), plan) };
    Ok(context.show(&named.json(), |_| screen(&named, context.terminal)))
}

/// Where the legs of what was created are, if the machine tells: lines for people.
pub fn whereabouts(mut site: Site, specs: &[ArraySpec], terminal: Terminal) -> String {
    let Ok(arrays) = arrays(&mut site, specs, true) else { return String::new() };
    let Ok(plan) = plan::plan(&site, &arrays) else { return String::new() };
    let known = plan.placed.iter().flat_map(|p| &p.legs).any(|l| l.bank.is_some() || l.node.is_some());
    if known { legs(&plan, terminal) } else { String::new() }
}

/// This machine, and what drives on it can, as far as that is known without load.
pub fn site_here(context: &Context) -> Site {
    Site::of(&here(context))
}

fn command(verb: &str, layout: &[String], weights: &[u32]) -> String {
    let layout: Vec<String> = layout.iter().map(|word| words::quoted(word)).collect();
    let layout = layout.join(" ");
    let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
    let weights =
        if weights.is_empty() { String::new() } else { format!(" --weights {}", weights.join(",")) };
    format!("{verb} {layout}{weights}")
}

/// The command that makes a layout.
fn layout_command(verb: &str, arrays: &[Array]) -> String {
    let mut words = Vec::new();
    for array in arrays {
        words.push(if array.drives.len() > 1 { "mirror" } else { "single" }.to_string());
        words.extend(array.drives.iter().cloned());
    }
    let weights: Vec<u32> = arrays.iter().map(|a| a.weight as u32).collect();
    let plain = weights.iter().all(|w| *w == weights[0]);
    command(verb, &words, if plain { &[] } else { &weights })
}

fn rates(predictions: &[Prediction], terminal: Terminal) -> String {
    let mut table = Table::new(&["LOAD", ">IOPS", ">MB/S", "FULL IS", "THEN"]).optional(&["THEN"]).prose();
    for p in predictions {
        let bound = if p.at_most { "≤ " } else { "" };
        let (iops, mbps) = match (p.iops, p.mbps) {
            (Some(iops), Some(mbps)) => (format!("{bound}{}", commands(iops)), format!("{bound}{mbps:.0}")),
            _ => ("-".into(), "-".into()),
        };
        let then = p
            .then
            .as_ref()
            .map_or(String::new(), |(what, at)| format!("{}, at {}", words::full(what), commands(*at)));
        table.row([
            p.load.name.into(),
            Cell::new(Look::Bold, iops),
            mbps.into(),
            p.limit.as_ref().map_or("not known".into(), words::full).into(),
            Cell::new(Look::Dim, then),
        ]);
    }
    table.print(terminal, 0)
}

fn legs(plan: &Plan, terminal: Terminal) -> String {
    let mut out = String::new();
    for p in &plan.placed {
        out.push_str(&terminal.paragraph(
            Look::Plain,
            "  ",
            &format!("{}: {}", p.array, p.legs.iter().map(leg).collect::<Vec<_>>().join(", ")),
            4,
        ));
        if let Some(bank) = &p.together {
            let takes = format!("{}.", words::takes_away(bank, p.legs.len()));
            out.push_str(&terminal.paragraph(Look::Warn, "    ! ", &takes, 6));
        }
    }
    out
}

/// A drive with its place: `nvme0n1 (below 17:00.0, node 0)`.
fn leg(l: &PlacedLeg) -> String {
    let bank = l.bank.as_ref().map(|bank| format!("below {bank}"));
    let node = l.node.map(|node| format!("node {node}"));
    match bank.into_iter().chain(node).collect::<Vec<_>>().join(", ") {
        place if place.is_empty() => l.drive.clone(),
        place => format!("{} ({place})", l.drive),
    }
}

/// Where a head should sit, with what to write into its configuration.
fn seated(seats: &Seats, terminal: Terminal) -> String {
    let mut out = terminal.paragraph(
        Look::Plain,
        "  shards: ",
        &format!("{}, on CPUs {}", count(seats.cores.len(), "core"), topology::ranges(&seats.cores)),
        4,
    );
    let port = |(name, node): &(String, Option<u32>)| match node {
        Some(node) => format!("{name} (node {node})"),
        None => name.clone(),
    };
    if !seats.ports.is_empty() {
        let all = seats.ports.iter().map(port).collect::<Vec<_>>().join(", ");
        let each = match seats.ports.len() {
            1 => "a portal on it",
            _ => "a portal on each, so that hosts have a path through each; another head has its own",
        };
        out.push_str(&terminal.paragraph(Look::Plain, "  ports: ", &format!("{all}: {each}"), 4));
    }
    for why in &seats.why {
        out.push_str(&terminal.paragraph(Look::Dim, "    ", &format!("{}.", words::seat_reason(why)), 4));
    }
    let cores: Vec<String> = seats.cores.iter().map(u32::to_string).collect();
    out.push_str(&terminal.paragraph(
        Look::Plain,
        "  head.toml: ",
        &format!("cores = [{}]", cores.join(", ")),
        4,
    ));
    out
}

fn screen(named: &Named, terminal: Terminal) -> String {
    let Named { name, plan, rest, command, seats, warnings, notes, verb } = named;
    let shares: Vec<String> = plan.arrays.iter().map(|a| format!("{}", a.weight)).collect();
    let weighted = plan.arrays.iter().any(|a| a.weight != plan.arrays[0].weight);
    let shares = if weighted { format!(", weights {}", shares.join(":")) } else { String::new() };
    let mut out = terminal.paragraph(
        Look::Bold,
        "",
        &format!("{name}: {}{shares}", arrays_words(plan.arrays.iter().map(|a| a.drives.len()))),
        2,
    );
    out.push('\n');
    out.push_str(&rates(&plan.predictions, terminal));
    out.push('\n');
    out.push_str(&legs(plan, terminal));
    for (look, mark, words) in [(Look::Plain, "  ", notes), (Look::Warn, "  ! ", warnings)] {
        for words in words {
            out.push_str(&terminal.paragraph(look, mark, &format!("{words}."), mark.len() + 2));
        }
    }
    if !rest.is_empty() {
        out.push_str(&terminal.paragraph(Look::Dim, "  ", &format!("left over: {}", rest.join(", ")), 4));
    }
    if let Some(seats) = seats {
        out.push_str(&seated(seats, terminal));
    }
    for gap in &plan.gaps {
        out.push_str(&terminal.paragraph(Look::Dim, "Not known: ", &format!("{}.", words::unknown(gap)), 11));
    }
    match &plan.better {
        Some(better) => {
            out.push_str(&terminal.paragraph(
                Look::Bold,
                "\nBetter: ",
                &format!("{}.", better.why.iter().map(words::gain).collect::<Vec<_>>().join("; ")),
                8,
            ));
            out.push('\n');
            out.push_str(&rates(&better.predictions, terminal));
            out.push('\n');
            out.push_str(&terminal.next(&layout_command(verb, &better.arrays)));
        }
        None if !command.is_empty() => out.push_str(&terminal.next(command)),
        None => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use topology::Recording;

    const MACHINES: [&[u8]; 6] = [
        include_bytes!("../../../topology/machines/two-sockets.rec"),
        include_bytes!("../../../topology/machines/four-sockets.rec"),
        include_bytes!("../../../topology/machines/gen1-slot.rec"),
        include_bytes!("../../../topology/machines/laptop.rec"),
        include_bytes!("../../../topology/machines/guest.rec"),
        include_bytes!("../../../topology/machines/recorded.rec"),
    ];

    fn of(recording: &[u8]) -> Machine {
        Machine::of(&Recording::decode(recording).expect("a recording"))
    }

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let layout = ["mirror", "file:/a?size=1G", "/srv/it's b", "/dev/c"].map(String::from);
        let text = command(CREATE, &layout, &[3, 1]);
        assert!(text.starts_with("millrace pool create NAME mirror 'file:/a?size=1G'"), "{text}");
        let shell = format!("set -- {text}; printf '%s\n' \"$@\"");
        let output = std::process::Command::new("sh").args(["-c", &shell]).output().expect("a shell");
        let words = String::from_utf8(output.stdout).expect("text");
        assert_eq!(words.lines().skip(4).take(4).collect::<Vec<_>>(), layout);
    }

    #[test]
    fn every_machine_has_a_plan_that_fits_a_terminal_or_a_sentence() {
        for recording in MACHINES {
            let machine = of(recording);
            let site = Site::of(&machine);
            let mut named: Vec<Named> =
                (1..=4).filter_map(|legs| proposal(&site, &site.free(), legs).ok()).collect();
            for (name, arrays) in plan::pools(&site, &machine) {
                let plan = made(&site, &arrays).expect("its own pools");
                named.push(Named { seats: plan::seats(&machine), ..Named::there(name, plan) });
            }
            for (n, width) in named.iter().flat_map(|n| [80, 120].map(|w| (n, w))) {
                let text = screen(n, Terminal::plain(width));
                // Commands stay in one piece, so that they can be copied.
                let wide = |l: &&str| crate::screen::columns(l) > width && !l.contains("pool create");
                assert_eq!(text.lines().find(wide), None, "{text}");
            }
        }
    }

    #[test]
    fn a_slow_slot_is_planned_with_its_price() {
        let machine = of(MACHINES[2]);
        let mut site = Site::of(&machine);
        let drives = ["nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1"].map(String::from);
        let specs = layout(&drives, &[], &site, false).expect("a layout");
        let arrays = arrays(&mut site, &specs, false).expect("its drives");
        let plan = made(&site, &arrays).expect("a plan");
        let named = Named::there("this layout".into(), plan);
        let text = screen(&named, Terminal::plain(100));
        expect_test::expect![[r#"
            this layout: 4 single drives, striped

            LOAD            IOPS   MB/S  FULL IS                     THEN
            randread 4k   ≤ 29 K  ≤ 118  the network port: 118 MB/s  the link of nvme0n1, Gen1 x4: 830 MB/s, at
                                                                     811 K
            randwrite 4k  ≤ 29 K  ≤ 118  the network port: 118 MB/s  the link of nvme0n1, Gen1 x4: 830 MB/s, at
                                                                     811 K
            read 128k      ≤ 898  ≤ 118  the network port: 118 MB/s  the link of nvme0n1, Gen1 x4: 830 MB/s, at
                                                                     25 K
            write 128k     ≤ 898  ≤ 118  the network port: 118 MB/s  the link of nvme0n1, Gen1 x4: 830 MB/s, at
                                                                     25 K

              single-0: nvme0n1
              single-1: nvme1n1
              single-2: nvme2n1
              single-3: nvme3n1
            Not known: what 4 drives themselves can is not known for all loads, so these rates are the most that
                       the way to them passes; measure it: millrace bench drives --drive nvme0n1 --drive nvme1n1
                       and so on --json > r.json, then millrace plan --measured r.json.
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn mirrors_are_ours_to_pair_and_words_go_wrong_with_a_reason() {
        let site = Site::of(&of(MACHINES[0]));
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let layout = |text: &str| super::layout(&words(text), &[], &site, false);
        let legs: Vec<Vec<String>> = layout("mirrors nvme0n1 nvme1n1 nvme12n1 nvme13n1")
            .expect("a layout")
            .into_iter()
            .map(|a| a.drives)
            .collect();
        assert_eq!(legs, [["nvme0n1", "nvme12n1"], ["nvme1n1", "nvme13n1"]]);
        // Drives that the machine does not show are paired as they come, twice the same memory too.
        let legs = layout("mirrors ram:1G ram:1G /f/a /f/b").expect("a layout");
        assert_eq!(
            legs.iter().map(|a| a.drives.join(" ")).collect::<Vec<_>>(),
            ["ram:1G ram:1G", "/f/a /f/b"]
        );
        for (text, part) in [
            ("mirrors nvme0n1", "1 drive is given"),
            ("mirrors nvme0n1 nvme1n1 nvme2n1", "3 drives are given"),
            ("mirrors", "mirrors have two drives each"),
            ("nvme0n1 mirrors nvme1n1 nvme2n1", "the word mirrors comes first"),
            ("mirrors nvme1n1 mirror nvme2n1", "the word mirrors comes first"),
        ] {
            let why = layout(text).expect_err(text).to_string();
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn shapes_count_also_before_the_pool_is_made() {
        let mut site = Site::default();
        let link = "uplink=1,uplink-mbps=300";
        let words =
            [format!("shape:mbps-max=200,{link}@ram:1G"), format!("shape:mbps-max=200,{link}@ram:1G")];
        let specs = layout(&words, &[], &site, true).expect("a layout");
        let arrays = arrays(&mut site, &specs, true).expect("its drives");
        let plan = made(&site, &arrays).expect("a plan");
        let read = &plan.predictions[2];
        let limit = read.limit.as_ref().map(words::full);
        assert_eq!(
            (read.mbps, read.at_most, limit.as_deref()),
            (Some(300.0), false, Some("link 1 of the shapes: 300 MB/s"))
        );
    }

    #[test]
    fn what_was_measured_and_described_is_read_from_files_or_refused_by_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        let words = |e: Failure| e.to_string();
        let bad = words(described(&file("a.toml", "[[drive]]\nname = \"a\"\nspeed = 3\n")).expect_err("bad"));
        assert!(bad.contains("a.toml") && bad.contains("speed"), "{bad}");
        let bad = words(described(&folder.path().join("none.toml")).expect_err("bad"));
        assert!(bad.contains("none.toml"), "{bad}");
        let mut site = described(&file("b.toml", "[[drive]]\nname = \"a\"\n")).expect("a machine");
        let bad = words(measured(&mut site, &file("c.json", "{}"), false).expect_err("bad"));
        assert!(bad.contains("c.json"), "{bad}");
        let mut doc = crate::bench::Doc::default();
        let mut drives = crate::bench::Drives {
            drives: vec!["/dev/a".into()],
            rw: "randread".into(),
            block_bytes: 4096,
            alone: vec![Default::default()],
            ..Default::default()
        };
        drives.alone[0].total.iops = 123_456.0;
        doc.drives = Some(drives);
        let text = serde_json::to_string(&doc).expect("JSON");
        measured(&mut site, &file("d.json", &text), false).expect("a result");
        let arrays = [Array { drives: vec!["a".into()], weight: 1.0 }];
        assert_eq!(made(&site, &arrays).expect("a plan").predictions[0].iops, Some(123_456.0));
        // A result of a drive that the machine does not have is nobody's; one of a file here is that file's.
        let other = text.replace("/dev/a", "/dev/other");
        let bad = words(measured(&mut site, &file("e.json", &other), false).expect_err("another machine's"));
        assert!(bad.contains("e.json") && bad.contains("there is no drive /dev/other"), "{bad}");
        let drive = file("drive.img", "").display().to_string();
        measured(&mut site, &file("f.json", &text.replace("/dev/a", &drive)), true).expect("a file's");
        let arrays = [Array { drives: vec![drive], weight: 1.0 }];
        assert_eq!(made(&site, &arrays).expect("a plan").predictions[0].iops, Some(123_456.0));
    }

    #[test]
    fn drives_that_are_not_there_are_not_planned_with() {
        let mut site = Site::of(&of(MACHINES[0]));
        let mut planned = |drives: &[&str], here: bool| {
            let words: Vec<String> = drives.iter().map(|d| d.to_string()).collect();
            let specs = layout(&words, &[], &site, false).expect("a layout");
            arrays(&mut site, &specs, here).map(|a| a.len()).map_err(|e| e.to_string())
        };
        assert_eq!(planned(&["mirror", "nvme0n1", "/dev/nvme1n1"], false), Ok(1));
        for (drives, here) in [
            (&["mirror", "typo1", "nvme1n1"][..], false),
            (&["miror", "nvme0n1", "nvme1n1"][..], false),
            (&["/dev/nope"][..], true),
            (&["file:/f/a?size=1G"][..], false),
        ] {
            let why = planned(drives, here).expect_err("not there");
            assert!(why.contains("there is no drive "), "{drives:?}: {why}");
        }
        assert_eq!(planned(&["ram:1G", "file:/f/a?size=1G"], true), Ok(2));
    }
}
