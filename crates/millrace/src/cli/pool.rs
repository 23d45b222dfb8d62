//! `millrace pool`.

use super::consent::Consent;
use super::scrub::{ScrubArgs, scrub, scrub_words};
use super::status::{array_name, legs_word, pool_tree};
use crate::arguments::{block_size, count_in, drive_path, small_size};
use crate::bench::micros;
use crate::client::segment;
use crate::context::Context;
use crate::failure::Failure;
use crate::machine::{arrays_words, layout, refuse_raid_words};
use crate::screen::{Cell, Look, Table, look_of};
use api::{ArrayLayout, Importable, Leg, Pool, PoolAdd, PoolCreate, PoolImport, Status};
use base::DriveKind;
use base::size::{print, print_free};
use clap::{Args, Subcommand};

/// Create, grow, release, import, scrub and destroy pools.
#[derive(Subcommand, Debug)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  millrace pool create tank mirror /dev/a /dev/b mirror /dev/c /dev/d
  millrace pool show tank
  millrace pool release tank
  millrace pool import tank")]
pub enum PoolCommand {
    /// Create a pool of drives
    #[command(after_help = LAYOUT_HELP)]
    Create(CreateArgs),
    /// Add mirrors, drives, a further leg of a mirror, or hot spares to a pool
    #[command(after_help = "\
LAYOUT is one of:
  what `pool create` takes   new arrays, after the existing space of the pool
  leg DRIVE                  one more copy for a mirror of 2 or 3 drives
  spare DRIVE...             hot spares

Data is copied to a new leg while hosts are served. A spare replaces a drive that fails: at once if the drive reports errors, after five minutes if it is gone or silent, since it may come back. A spare that is too small for some mirrors is accepted, and `millrace pool show` names them. Arrays that keep fewer copies than the pool (a single drive beside mirrors) need --force.

Examples:
  millrace pool add tank mirror /dev/nvme4n1 /dev/nvme5n1
  millrace pool add tank mirror /dev/nvme4n1 /dev/nvme5n1 --plan
  millrace pool add tank leg /dev/nvme6n1 --to mirror-0
  millrace pool add tank spare /dev/nvme9n1")]
    Add(AddArgs),
    /// Remove the arrays that were added last, if no volume uses them
    #[command(after_help = "\
No volume may use the arrays. Arrays that were added together are removed together, the last ones first. Afterwards their drives are free. To remove a whole pool: `millrace pool destroy`.

Examples:
  millrace pool rm tank mirror-2
  millrace pool rm tank mirror-2 mirror-3  # added by one command")]
    Rm {
        /// The pool
        #[arg(value_name = "POOL", add = super::complete::pools())]
        pool: String,
        /// The arrays, as `millrace pool show` names them
        #[arg(value_name = "ARRAY", required = true)]
        arrays: Vec<String>,
    },
    /// List pools
    #[command(after_help = "\
Examples:
  millrace pool ls
  millrace pool ls --json")]
    Ls,
    /// Show one pool: arrays, drives and volumes
    #[command(after_help = "\
Examples:
  millrace pool show tank")]
    Show {
        /// The pool
        #[arg(value_name = "POOL", add = super::complete::pools())]
        pool: String,
    },
    /// Release a pool, so that another head can import it
    #[command(after_help = "\
Its volumes disappear from the hosts; their data stays on the drives. If connected hosts use them, the command asks first. --force is needed if the drives cannot be marked as released, and for a pool in memory (ram:) with volumes, which are lost.

Examples:
  millrace pool release tank  # here
  millrace pool import tank  # on the head that gets the drives")]
    Release {
        /// The pool
        #[arg(value_name = "POOL", add = super::complete::pools())]
        pool: String,
        /// Release it even if its drives cannot be marked, or volumes in memory are lost
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Compare the legs of a pool's mirrors, now or on a schedule
    #[command(after_help = "\
A scrub reads all legs while hosts are served, and gives way to them; `millrace pool show` shows its progress. Blocks that a leg cannot read are written again from another leg. Differences are reported by volume and offset.

With --repair the legs are made equal. Of three or four legs the majority counts. Of two legs nobody can tell which is right: name the good drive of each mirror with --prefer, or differences are only reported. `millrace status` shows the result until a later scrub finds no difference, or --clear.

Examples:
  millrace pool scrub tank
  millrace pool scrub tank --repair --prefer /dev/nvme1n1 --prefer /dev/nvme4n1
  millrace pool scrub tank --stop
  millrace pool scrub tank --clear  # the findings are dealt with
  millrace pool scrub tank --every 7  # a week after the last one ended
  millrace pool scrub tank --never")]
    Scrub(ScrubArgs),
    /// Import a pool from the drives of this machine, or list such pools
    #[command(after_help = "\
The daemon searches the drives of this machine, and the folders in which files of the pool were last. Without a name, it imports the only pool that it finds.

Examples:
  millrace pool import --list
  millrace pool import tank
  millrace pool import tank --drive /srv/images/a.img --drive /srv/images/b.img
  millrace pool import tank --force  # the head that had it is gone for good
  millrace pool import tank --as tank2  # there is a pool tank already")]
    Import(ImportArgs),
    /// Destroy a pool; its volumes are lost
    #[command(after_help = "\
Examples:
  millrace pool destroy tank
  millrace pool destroy tank --force  # even if it has volumes")]
    Destroy {
        /// The pool
        #[arg(value_name = "POOL", add = super::complete::pools())]
        pool: String,
        /// Destroy it even if it has volumes
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

const LAYOUT_HELP: &str = "\
LAYOUT is one of:
  DRIVE...                single drives, without redundancy
  mirror DRIVE DRIVE...   a mirror of 2 to 4 drives; may be repeated
  mirrors DRIVE DRIVE...  mirrors of 2, across NUMA nodes and switches

The word `single` between mirrors and drives adds single drives. All mirrors and single drives are striped together. There is no parity (RAID 5, RAID-Z).

Examples:
  millrace pool create fast /dev/a /dev/b /dev/c /dev/d  # no redundancy
  millrace pool create tank mirror /dev/a /dev/b mirror /dev/c /dev/d
  millrace pool create tank mirrors /dev/a /dev/b /dev/c /dev/d
  millrace pool create tank mirrors /dev/a /dev/b /dev/c /dev/d --plan
  millrace pool create mix /dev/fast /dev/slow --weights 3,1
  millrace pool create mix /dev/fast /dev/slow --measure  # weights as measured
  millrace pool create lab mirror ram:1G ram:1G  # in memory
  millrace pool create try shape:mbps-max=200,latency-us=80@/dev/a /dev/b

A drive that holds a partition table, a file system or the label of another pool is refused unless --force is given.

For tests, shape:OPTION=N,OPTION=N@DRIVE makes a drive slower or less reliable until the daemon ends. The options are those of `millrace drive shape`: latency-us, iops-max, mbps-max, uplink, uplink-mbps, uplink-share, read-errors-ppm and write-errors-ppm.";

/// `millrace pool create`.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// Name of the new pool
    #[arg(value_name = "POOL")]
    name: String,
    /// Drives, with the words `mirror`, `mirrors` and `single`
    #[arg(value_name = "LAYOUT", required = true)]
    layout: Vec<String>,
    /// Chunk size of the stripe: a power of two from 16K to 4M [default: 64K]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = small_size)]
    chunk: Option<u32>,
    /// Default block size of its volumes: 512 or 4096
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = block_size)]
    block: Option<u32>,
    /// Share of each array in the stripe, in order: 1 to 64 each
    #[arg(long, value_name = "N,N", allow_hyphen_values = true, value_delimiter = ',', value_parser = count_in::<u32>(1..=64))]
    weights: Vec<u32>,
    /// Measure the arrays to set their shares (writes to every drive)
    #[arg(long, conflicts_with = "weights")]
    measure: bool,
    /// Use drives that hold other data, which is lost, or that would be partly unused
    #[arg(long)]
    force: bool,
    /// Only predict its speed and suggest a better layout; change nothing
    #[arg(long, conflicts_with_all = ["measure", "force"])]
    plan: bool,
}

impl CreateArgs {
    /// The command line up to its layout. Weights are not in it: they go with the arrays of a layout.
    fn command(&self) -> String {
        let mut command = format!("millrace pool create {}", self.name);
        if let Some(chunk) = self.chunk {
            command += &format!(" --chunk {}", print(chunk.into()));
        }
        if let Some(block) = self.block {
            command += &format!(" --block {block}");
        }
        let flags = [(self.measure, " --measure"), (self.force, " --force"), (self.plan, " --plan")];
        command.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag));
        command
    }
}

/// `millrace pool add`.
#[derive(Args, Debug)]
pub struct AddArgs {
    /// The pool
    #[arg(value_name = "POOL", add = super::complete::pools())]
    pool: String,
    /// Drives, with the words `mirror`, `mirrors`, `single`, `leg` and `spare`
    #[arg(value_name = "LAYOUT", required = true)]
    layout: Vec<String>,
    /// The mirror that gets the leg; needed if the pool has several
    #[arg(long, value_name = "MIRROR", conflicts_with = "weights")]
    to: Option<String>,
    /// Share of each array in the stripe, in order: 1 to 64 each
    #[arg(long, value_name = "N,N", allow_hyphen_values = true, value_delimiter = ',', value_parser = count_in::<u32>(1..=64))]
    weights: Vec<u32>,
    /// Allow drives that hold other data, which is lost, or would be partly unused, and arrays with fewer copies than the pool
    #[arg(long)]
    force: bool,
    /// Only predict its speed and size; change nothing
    #[arg(long, conflicts_with = "force")]
    plan: bool,
}

/// `millrace pool import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Name or UUID of the pool
    #[arg(value_name = "POOL")]
    pool: Option<String>,
    /// New name of the pool
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// Another drive to search, such as a file; may be repeated
    #[arg(long = "drive", value_name = "DRIVE")]
    drives: Vec<String>,
    /// Only list the pools that can be imported
    #[arg(long, conflicts_with_all = ["pool", "force", "name"])]
    list: bool,
    /// Import it even if another head did not release it, or a leg may be out of date
    #[arg(long)]
    force: bool,
}

/// Carries out one of them.
pub fn run(command: PoolCommand, context: &Context) -> Result<String, Failure> {
    let client = &context.client;
    match command {
        PoolCommand::Create(args) => {
            refuse_raid_words(&args.layout, &args.command())?;
            let site = crate::machine::site_here(context);
            let arrays = layout(&args.layout, &args.weights, &site, true)?;
            if args.plan {
                return crate::machine::about_to_create(site, &arrays, context);
            }
            let words = arrays_words(arrays.iter().map(|a| a.drives.len()));
            let places = crate::machine::whereabouts(site, &arrays, context.terminal);
            let body = PoolCreate {
                name: args.name.clone(),
                arrays,
                chunk_bytes: args.chunk,
                block_bytes: args.block,
                measure: args.measure,
                force: args.force,
            };
            let created: api::Created = client.post("/pools", &body)?;
            let name = args.name;
            let next = format!("millrace volume create {name}/NAME --size SIZE");
            Ok(context.created_with(
                &created,
                format!("Pool {name} is created: {words}."),
                &places,
                &[],
                &next,
            ))
        }
        PoolCommand::Add(args) if args.layout[0] == "spare" => add_spares(&args, context),
        PoolCommand::Add(args) if args.layout[0] == "leg" => add_leg(&args, context),
        PoolCommand::Add(AddArgs { to: Some(_), .. }) => Err(Failure::usage("--to is for a leg only")
            .with_next("millrace pool add POOL leg DRIVE --to MIRROR")),
        PoolCommand::Add(args) => {
            refuse_raid_words(&args.layout, &format!("millrace pool add {}", args.pool))?;
            let arrays = layout(&args.layout, &args.weights, &crate::machine::site_here(context), true)?;
            let path = format!("/pools/{}", segment(&args.pool));
            if args.plan {
                let pool: Pool = client.get(&path)?;
                return crate::machine::about_to_add(
                    crate::machine::site_here(context),
                    &pool,
                    &arrays,
                    context,
                );
            }
            let words = arrays_words(arrays.iter().map(|a| a.drives.len()));
            client.act(&format!("{path}/arrays"), &PoolAdd { arrays, force: args.force })?;
            let next = format!("millrace pool show {}", args.pool);
            Ok(context.done(format!("Pool {} has grown by {words}.", args.pool), &next))
        }
        PoolCommand::Rm { pool, arrays } => {
            let query: Vec<String> = arrays.iter().map(|a| format!("array={}", segment(a))).collect();
            let removed: api::Created =
                client.remove(&format!("/pools/{}/arrays?{}", segment(&pool), query.join("&")))?;
            let are = if arrays.len() == 1 { "is" } else { "are" };
            let what = format!("{} {are} removed from pool {pool}.", arrays.join(", "));
            Ok(context.created(&removed, what, &format!("millrace pool show {pool}")))
        }
        PoolCommand::Ls => {
            let pools: Vec<Pool> = client.get("/pools")?;
            Ok(context.show(&pools, |pools| list(pools, context)))
        }
        PoolCommand::Show { pool } => {
            let shown: Pool = client.get(&format!("/pools/{}", segment(&pool)))?;
            if context.json {
                return Ok(crate::output::pretty(&shown));
            }
            let status: Status = client.get("/status")?;
            Ok(show(&shown, &status, context))
        }
        PoolCommand::Release { pool, force, consent } => {
            let shown: Pool = client.get(&format!("/pools/{}", segment(&pool)))?;
            let files = files_of(&pool, client)?;
            let path = format!("/pools/{}/release?force={force}", segment(&pool));
            let released: api::Created = consent.obtain(context, |yes| {
                client.post(&format!("{path}&disconnect={yes}"), &serde_json::json!({}))
            })?;
            if shown.arrays.is_empty() {
                let what = format!("Pool {pool} is not listed here any more; its drives are unchanged.");
                return Ok(context.done(what, ""));
            }
            let in_memory = |l: &Leg| DriveKind::of(&l.path).is_volatile();
            let ends = shown.arrays.iter().any(|a| a.legs.iter().all(in_memory));
            let next = match files.is_empty() {
                _ if ends => String::new(),
                true => format!("millrace pool import {pool}, here or on the head that has the drives then"),
                false => format!(
                    "millrace pool import {pool}, or millrace pool import {pool}{files} (on another head)"
                ),
            };
            let what = if released.notices.is_empty() {
                format!("Pool {pool} is released: another head may import it.")
            } else {
                format!("Pool {pool} is released.")
            };
            Ok(context.created(&released, what, &next))
        }
        PoolCommand::Scrub(args) => scrub(args, context),
        PoolCommand::Import(args) => {
            let drives: Vec<String> = args.drives.iter().map(|d| drive_path(d)).collect();
            if args.list {
                let query: Vec<String> = drives.iter().map(|d| format!("look={}", segment(d))).collect();
                let found: Vec<Importable> = client.get(&format!("/imports?{}", query.join("&")))?;
                return Ok(context.show(&found, |found| importable(found, context)));
            }
            let what = args.pool.clone().map_or_else(|| "The pool".to_string(), |n| format!("Pool {n}"));
            let what = match &args.name {
                Some(name) => format!("{what} is imported as {name}."),
                None => format!("{what} is imported."),
            };
            let body = PoolImport { pool: args.pool, name: args.name, drives, force: args.force };
            let created: api::Created = client.post("/imports", &body)?;
            Ok(context.created(&created, what, "millrace status"))
        }
        PoolCommand::Destroy { pool, force, consent } => {
            let path = format!("/pools/{}?force={force}", segment(&pool));
            consent.obtain(context, |yes| client.delete(&format!("{path}&disconnect={yes}")))?;
            Ok(context.done(format!("Pool {pool} is destroyed."), ""))
        }
    }
}

/// `millrace pool add POOL spare DRIVE…`.
fn add_spares(args: &AddArgs, context: &Context) -> Result<String, Failure> {
    let drives = &args.layout[1..];
    if drives.is_empty() {
        return Err(Failure::usage("name a drive after the word spare").with_next("millrace pool add --help"));
    }
    if args.plan {
        return Err(Failure::usage(
            "--plan predicts nothing for a spare, as it changes neither speed nor size",
        )
        .with_next("millrace pool add POOL spare DRIVE, which says which mirrors it fits"));
    }
    let mut added = api::Created::default();
    for drive in drives {
        let body = api::SpareAdd { drive: drive_path(drive), force: args.force };
        let one: api::Created =
            context.client.post(&format!("/pools/{}/spares", segment(&args.pool)), &body)?;
        added.notices.extend(one.notices);
    }
    let spares = if drives.len() == 1 { "a new hot spare" } else { "new hot spares" };
    let what = format!("Pool {} has {spares}: {}.", args.pool, drives.join(", "));
    Ok(context.created(&added, what, &format!("millrace pool show {}", args.pool)))
}

/// `millrace pool add POOL leg DRIVE`.
fn add_leg(args: &AddArgs, context: &Context) -> Result<String, Failure> {
    let [drive] = &args.layout[1..] else {
        return Err(Failure::usage("name one drive after the word leg").with_next("millrace pool add --help"));
    };
    if args.plan {
        return plan_leg(args, &drive_path(drive), context);
    }
    let body = api::LegAdd { drive: drive_path(drive), mirror: args.to.clone(), force: args.force };
    context.client.act(&format!("/pools/{}/legs", segment(&args.pool)), &body)?;
    let what = format!("Drive {} is one more leg of pool {} and is being resynced.", body.drive, args.pool);
    Ok(context.done(what, "millrace status --watch"))
}

/// `millrace pool add POOL leg DRIVE --plan`.
fn plan_leg(args: &AddArgs, drive: &str, context: &Context) -> Result<String, Failure> {
    let pool: Pool = context.client.get(&format!("/pools/{}", segment(&args.pool)))?;
    let named = pool.arrays.iter().enumerate().map(|(i, a)| (array_name(a, i), a));
    let mirrors: Vec<(String, &api::Array)> =
        named.filter(|(_, a)| a.layout == ArrayLayout::Mirror).collect();
    let names: Vec<&str> = mirrors.iter().map(|(name, _)| name.as_str()).collect();
    let found = match (&args.to, &mirrors[..]) {
        (Some(to), _) => mirrors.iter().find(|(name, _)| name == to),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let Some((name, mirror)) = found else {
        let what = if names.is_empty() {
            format!("pool {} has no mirror", args.pool)
        } else {
            format!("the mirrors of pool {} are {}: name one with --to", args.pool, names.join(", "))
        };
        return Err(Failure::usage(what).with_next(format!("millrace pool show {}", args.pool)));
    };
    crate::machine::about_to_join(crate::machine::site_here(context), (name, mirror), drive, context)
}

fn list(pools: &[Pool], context: &Context) -> String {
    if pools.is_empty() {
        let next = "millrace pool create NAME mirror DRIVE DRIVE, or millrace pool import --list";
        return format!("There is no pool.\n{}", context.terminal.next(next));
    }
    let mut table = Table::new(&["POOL", "STATE", ">SIZE", ">USED", ">FREE", "ARRAYS", ">CHUNK", "NOTE"])
        .optional(&["CHUNK"])
        .prose();
    for p in pools {
        // Of a pool whose drives are away nothing is known.
        let known = |bytes: u64| if p.arrays.is_empty() { "-".to_string() } else { print(bytes) };
        let known_free = |p: &Pool| {
            if p.arrays.is_empty() {
                "-".to_string()
            } else {
                print_free(p.bytes.saturating_sub(p.used_bytes))
            }
        };
        table.row([
            Cell::new(Look::Bold, p.name.clone()),
            state_cell(p),
            known(p.bytes).into(),
            known(p.used_bytes).into(),
            known_free(p).into(),
            p.arrays.iter().map(legs_word).collect::<Vec<_>>().join(" ").into(),
            known(u64::from(p.chunk_bytes)).into(),
            p.reason.clone().into(),
        ]);
    }
    table.print(context.terminal, 0)
}

/// Its state, and that it has used up its spares.
pub fn state_cell(pool: &Pool) -> Cell {
    let spent = pool.no_spare && pool.state == api::State::Optimal;
    let look = if spent { Look::Warn } else { look_of(pool.state) };
    Cell::new(look, crate::words::pool_state(pool))
}

fn importable(found: &[Importable], context: &Context) -> String {
    let (pools, held): (Vec<&Importable>, Vec<&Importable>) = found.iter().partition(|p| !p.name.is_empty());
    let mut out = String::new();
    if pools.is_empty() {
        let (could, next) = if held.is_empty() {
            ("here", "millrace pool import --list --drive FILE, if it lies in files")
        } else {
            ("that could be looked at", "stop what holds the others, then millrace pool import --list")
        };
        out.push_str(&format!("There is no pool to import on the drives {could}.\n"));
        for p in held {
            out.push_str(&context.terminal.paragraph(Look::Warn, "  ", &p.reason, 4));
        }
        return out + &context.terminal.next(next);
    }
    for p in pools {
        let state = context.terminal.text(look_of(p.state), p.state.word());
        // One that another head has and did not release is offline, and says so.
        let whose = match (p.state, p.released) {
            (_, true) => ", released",
            (api::State::Offline | api::State::Failed, false) => "",
            (_, false) => ", this head's own",
        };
        out.push_str(&format!(
            "{}  {state}{whose}\n  uuid     {}\n",
            context.terminal.text(Look::Bold, &p.name),
            p.uuid
        ));
        for drive in &p.found {
            out.push_str(&format!("  found    {drive}\n"));
        }
        for drive in &p.missing {
            out.push_str(&format!("  missing  {drive}\n"));
        }
        if !p.reason.is_empty() {
            out.push_str(&context.terminal.paragraph(Look::Plain, "  ", &p.reason, 2));
        }
        if let Some(next) = &p.next {
            let steps = context.terminal.indented(2).next(next);
            out.extend(steps.lines().map(|line| format!("  {line}\n")));
        }
    }
    for p in held {
        out.push_str(&context.terminal.paragraph(Look::Warn, "Not looked at: ", &p.reason, 2));
    }
    out
}

/// ` --drive A --drive B` for those drives of a pool that are found only if they are named.
fn files_of(pool: &str, client: &crate::client::Client) -> Result<String, Failure> {
    let drives: Vec<api::Drive> = client.get("/drives")?;
    let named = drives.iter().filter(|d| d.pool.as_deref() == Some(pool) && d.kind == "file");
    Ok(named.map(|d| format!(" --drive {}", d.path)).collect())
}

/// What the bitmap of a mirror has cost its writes: warm ones find their region's mark set, cold ones wait for it.
fn intents(a: &api::Array) -> String {
    let cleared = match a.bitmap_clears {
        0 => String::new(),
        n => format!("; cleared by {} writes beside them", base::size::print_count(n)),
    };
    let warm = format!("{} warm writes waited for none", base::size::print_count(a.warm_writes));
    if a.cold_writes == 0 {
        return warm + &cleared;
    }
    let each = a.bitmap_sets as f64 / a.cold_writes as f64;
    let wait = micros(a.bitmap_wait_ns as f64 / 1e3 / a.cold_writes as f64);
    let cold = format!(
        "{} cold ones for {wait}, with {each:.2} bitmap writes each",
        base::size::print_count(a.cold_writes)
    );
    format!("{warm}, {cold}{cleared}")
}

fn show(pool: &Pool, status: &Status, context: &Context) -> String {
    let mut table = Table::new(&["", ""]).prose();
    let mut row = |name: &str, value: Cell| table.row([Cell::new(Look::Dim, name), value]);
    row("pool", Cell::new(Look::Bold, pool.name.clone()));
    row("state", state_cell(pool));
    // With its drives at hand, the tree says it where it is.
    if !pool.reason.is_empty() && pool.arrays.is_empty() {
        row("reason", Cell::new(look_of(pool.state), pool.reason.clone()));
    }
    row("uuid", pool.uuid.to_string().into());
    if !pool.arrays.is_empty() {
        let free = pool.bytes.saturating_sub(pool.used_bytes);
        row(
            "space",
            match pool.freeing_bytes {
                0 => format!(
                    "{}: {} used, {} free",
                    print(pool.bytes),
                    print(pool.used_bytes),
                    print_free(free)
                ),
                resting => format!(
                    "{}: {} used, {} becoming free within seconds, {} free",
                    print(pool.bytes),
                    print(pool.used_bytes.saturating_sub(resting)),
                    print(resting),
                    print_free(free)
                ),
            }
            .into(),
        );
        row("chunk", print(u64::from(pool.chunk_bytes)).into());
        row("block", format!("{} bytes unless a volume says otherwise", pool.block_bytes).into());
    }
    for (i, zone) in pool.zones.iter().enumerate() {
        let shares: Vec<String> = zone
            .weights
            .iter()
            .map(|w| {
                let name = pool
                    .arrays
                    .get(usize::from(w.array))
                    .map_or("?".into(), |a| array_name(a, usize::from(w.array)));
                format!("{name} × {}", w.weight)
            })
            .collect();
        row(&format!("zone {i}"), format!("{} over {}", print(zone.bytes), shares.join(", ")).into());
    }
    for (i, a) in pool.arrays.iter().enumerate().filter(|(_, a)| a.regions > 0) {
        let dirty = format!(
            "{} of {} regions of {} dirty, epoch {}",
            a.regions_dirty,
            a.regions,
            print(a.region_bytes),
            a.epoch
        );
        row(&format!("{} bitmap", array_name(a, i)), dirty.into());
        if a.warm_writes + a.cold_writes > 0 {
            row(&format!("{} intents", array_name(a, i)), intents(a).into());
        }
        if a.hedged_reads > 0 {
            let hedged = format!(
                "{} were late and also sent to another leg, which answered {} of them first",
                a.hedged_reads, a.hedged_reads_won
            );
            row(&format!("{} reads", array_name(a, i)), hedged.into());
        }
    }
    for (i, spare) in pool.spares.iter().enumerate() {
        let words = match spare.ready {
            true if spare.fits.is_empty() => format!("{} ({})", spare.path, print(spare.bytes)).into(),
            true => format!("{} ({}), {}", spare.path, print(spare.bytes), spare.fits).into(),
            false => Cell::new(Look::Bad, format!("{}: {}", spare.path, spare.reason)),
        };
        row(if i == 0 { "spares" } else { "" }, words);
    }
    if let Some(clearing) = &pool.clearing {
        let pace = super::status::pace_words(1, clearing.rate, clearing.seconds_left);
        let words = format!(
            "{} of old data, which hosts read as zeroes, are being cleared: {pace}",
            print(clearing.left_bytes)
        );
        row("clearing", words.into());
    }
    for (i, words) in scrub_words(&pool.scrub).into_iter().enumerate() {
        row(if i == 0 { "scrub" } else { "" }, words.into());
    }
    let what = format!("pool {}", pool.name);
    let next = status.reasons.iter().filter(|r| r.what == what).find_map(|r| r.next.as_deref());
    let next = next.map_or(String::new(), |n| format!("\n{}", context.terminal.next(n)));
    let tree = pool_tree(pool, status, context.terminal);
    format!("{}\n{tree}{next}", table.print(context.terminal, 0))
}
