//! `millrace pool`.

use super::consent::Consent;
use super::scrub::{ScrubArgs, scrub, scrub_words};
use super::status::{array_name, legs_word, pool_tree};
use crate::arguments::{block_size, drive_path, small_size};
use crate::bench::micros;
use crate::client::segment;
use crate::context::Context;
use crate::failure::Failure;
use crate::machine::{arrays_words, layout};
use crate::screen::{Cell, Look, Table, look_of};
use api::{ArrayLayout, Importable, Leg, Pool, PoolAdd, PoolCreate, PoolImport, Status};
use base::DriveKind;
use base::size::{print, print_free};
use clap::{Args, Subcommand};

/// Make pools of drives; release and import them.
#[derive(Subcommand, Debug)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  millrace pool create tank mirror /dev/a /dev/b mirror /dev/c /dev/d
  millrace pool show tank
  millrace pool release tank
  millrace pool import tank")]
pub enum PoolCommand {
    /// Make a pool of drives
    #[command(after_help = LAYOUT_HELP)]
    Create(CreateArgs),
    /// Append arrays to a pool, legs to a mirror, or hot spares
    #[command(after_help = "\
LAYOUT is as for `pool create`; or `leg` and a drive; or `spare` and drives.

The new arrays become a zone of their own behind the pool's present space.
A leg is one more copy for a mirror of up to three drives: everything is copied
to it, and hosts are served meanwhile.
A spare takes the place of a drive that fails: at once if the drive answers and
refuses, after five minutes if it may come back (it is gone or silent). It may
fit the smaller mirrors of a pool only; it is said then, and by `pool show`.
Arrays that keep fewer copies than the pool does (a single drive beside mirrors)
are refused unless --force says that they are meant.

Examples:
  millrace pool add tank mirror /dev/nvme4n1 /dev/nvme5n1
  millrace pool add tank mirror /dev/nvme4n1 /dev/nvme5n1 --plan
  millrace pool add tank leg /dev/nvme6n1 --to mirror-0
  millrace pool add tank spare /dev/nvme9n1")]
    Add(AddArgs),
    /// Take the arrays that were added last from a pool, if nothing lies on them
    #[command(after_help = "\
No volume may lie on an array that is to leave. Arrays that were added together
leave together, and those that were added last leave first. Their drives are
free afterwards.

Examples:
  millrace pool rm tank mirror-2
  millrace pool rm tank mirror-2 mirror-3  # added by one command")]
    Rm {
        /// The pool
        #[arg(value_name = "POOL", add = super::complete::pools())]
        pool: String,
        /// Its arrays, as `pool show` names them
        #[arg(value_name = "ARRAY", required = true)]
        arrays: Vec<String>,
    },
    /// List pools
    #[command(after_help = "\
Examples:
  millrace pool ls
  millrace pool ls --json")]
    Ls,
    /// Show one pool with its arrays, drives and volumes
    #[command(after_help = "\
Examples:
  millrace pool show tank")]
    Show {
        /// The pool
        #[arg(value_name = "POOL", add = super::complete::pools())]
        pool: String,
    },
    /// Let go of a pool, so that another head may import it
    #[command(after_help = "\
Its volumes vanish from the hosts; nothing on it is lost. If hosts are
connected that use them, you are asked first. A pool whose drives cannot be
marked as released stays, unless --force lets go of it all the same; so does
one in memory (ram:) that has volumes, since those are lost.

Examples:
  millrace pool release tank  # here
  millrace pool import tank  # on the head that has the drives now")]
    Release {
        /// The pool
        #[arg(value_name = "POOL", add = super::complete::pools())]
        pool: String,
        /// Even though no drive can be marked as released, or volumes in memory are lost
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Compare the legs of a pool's mirrors, now or by schedule
    #[command(after_help = "\
All legs are read while hosts are served, at a rate that yields to them; `pool
show` tells how far it is. What one leg cannot read is written again from
another. Legs that differ are told by volume and offset; with --repair they are
made equal where it is known which one is right: what most legs say counts. Of
two legs nobody can know: --prefer names the good drive, one for each mirror;
without it their differences are told and left alone. What a scrub found stays
in `status` until one finds the legs the same, or --clear.

Examples:
  millrace pool scrub tank
  millrace pool scrub tank --repair --prefer /dev/nvme1n1 --prefer /dev/nvme4n1
  millrace pool scrub tank --stop
  millrace pool scrub tank --clear   # what was found was dealt with
  millrace pool scrub tank --every 7   # a week after the last one ended
  millrace pool scrub tank --never")]
    Scrub(ScrubArgs),
    /// Take a pool that lies on drives here, or list such pools
    #[command(after_help = "\
Without a name the only pool there is is imported; --list shows what there is.

Examples:
  millrace pool import --list
  millrace pool import tank
  millrace pool import tank --drive /srv/images/a.img --drive /srv/images/b.img
  millrace pool import tank --force  # the head that had it is gone for good
  millrace pool import tank --as tank2  # another pool here is called tank")]
    Import(ImportArgs),
    /// Wipe a pool's labels; its volumes are lost
    #[command(after_help = "\
Examples:
  millrace pool destroy tank
  millrace pool destroy tank --force  # even though it has volumes")]
    Destroy {
        /// The pool
        #[arg(value_name = "POOL", add = super::complete::pools())]
        pool: String,
        /// Even though it has volumes
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

const LAYOUT_HELP: &str = "\
LAYOUT is a list of drives: `mirror` makes one array of the drives behind it (2 to 4), `single` one array of each. Drives before the first such word are single. `mirrors` makes mirrors of two of all drives behind it, the legs of each in different NUMA nodes or below different switches where there are some. All arrays are striped together.

Examples:
  millrace pool create fast /dev/a /dev/b /dev/c /dev/d  # no redundancy
  millrace pool create tank mirror /dev/a /dev/b mirror /dev/c /dev/d
  millrace pool create tank mirrors /dev/a /dev/b /dev/c /dev/d
  millrace pool create tank mirrors /dev/a /dev/b /dev/c /dev/d --plan
  millrace pool create mix /dev/fast /dev/slow --weights 3,1  # at their sum
  millrace pool create mix /dev/fast /dev/slow --measure  # shares as measured
  millrace pool create lab mirror ram:1G ram:1G  # in memory
  millrace pool create try shape:mbps-max=200,latency-us=80@/dev/a /dev/b

A drive with a shape in front (shape:OPTION=N,OPTION=N@DRIVE) is slower or less reliable than it is, until the daemon ends; options: latency-us, iops-max, mbps-max, uplink, uplink-mbps, uplink-share, read-errors-ppm and write-errors-ppm, as of `millrace drive shape`.

A drive that carries a partition table, a file system or another pool's label is refused by name, unless --force says otherwise.";

/// `millrace pool create`.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// The new pool's name
    #[arg(value_name = "POOL")]
    name: String,
    /// Drives, and the words `mirror`, `mirrors` and `single`
    #[arg(value_name = "LAYOUT", required = true)]
    layout: Vec<String>,
    /// Chunk of the stripe, a power of two from 16K to 4M
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = small_size)]
    chunk: Option<u32>,
    /// Block size of its volumes unless they say otherwise
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = block_size)]
    block: Option<u32>,
    /// The arrays' shares in the stripe, in order
    #[arg(long, value_name = "N,N", allow_hyphen_values = true, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    weights: Vec<u32>,
    /// Measure the shares (writes to every drive)
    #[arg(long, conflicts_with = "weights")]
    measure: bool,
    /// Use drives that carry something foreign, or of which much stays unused
    #[arg(long)]
    force: bool,
    /// Only say what it would give, and what would be better
    #[arg(long, conflicts_with_all = ["measure", "force"])]
    plan: bool,
}

/// `millrace pool add`.
#[derive(Args, Debug)]
pub struct AddArgs {
    /// The pool
    #[arg(value_name = "POOL", add = super::complete::pools())]
    pool: String,
    /// Drives, and the words `mirror`, `mirrors`, `single`, `leg` and `spare`
    #[arg(value_name = "LAYOUT", required = true)]
    layout: Vec<String>,
    /// The mirror that gets the leg; needed where the pool has several
    #[arg(long, value_name = "MIRROR", conflicts_with = "weights")]
    to: Option<String>,
    /// The arrays' shares in the stripe, in order
    #[arg(long, value_name = "N,N", allow_hyphen_values = true, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    weights: Vec<u32>,
    /// Use drives that carry something foreign, that keep fewer copies than the pool, or of which much stays unused
    #[arg(long)]
    force: bool,
    /// Only say what it would give, and change nothing
    #[arg(long, conflicts_with = "force")]
    plan: bool,
}

/// `millrace pool import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Its name or UUID
    #[arg(value_name = "POOL")]
    pool: Option<String>,
    /// The name that it has from now on
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// A drive to look at beside this machine's own, and beside where the pool's files lay last
    #[arg(long = "drive", value_name = "DRIVE")]
    drives: Vec<String>,
    /// Only list what could be imported
    #[arg(long, conflicts_with_all = ["pool", "force", "name"])]
    list: bool,
    /// Even if another head did not release it, or a leg cannot be proven current
    #[arg(long)]
    force: bool,
}

/// Carries out one of them.
pub fn run(command: PoolCommand, context: &Context) -> Result<String, Failure> {
    let client = &context.client;
    match command {
        PoolCommand::Create(args) => {
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
            Ok(context.created_with(&created, format!("Pool {name} is made: {words}."), &places, &[], &next))
        }
        PoolCommand::Add(args) if args.layout[0] == "spare" => add_spares(&args, context),
        PoolCommand::Add(args) if args.layout[0] == "leg" => add_leg(&args, context),
        PoolCommand::Add(AddArgs { to: Some(_), .. }) => Err(Failure::usage("--to is said of a leg only")
            .with_next("millrace pool add POOL leg DRIVE --to MIRROR")),
        PoolCommand::Add(args) => {
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
            let have = if arrays.len() == 1 { "has" } else { "have" };
            let what = format!("{} {have} left pool {pool}.", arrays.join(", "));
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
                let what = format!("Pool {pool} is forgotten here; nothing on its drives was changed.");
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
            let what = match released.notices.is_empty() {
                true => format!("Pool {pool} is released: another head may import it."),
                false => format!("Pool {pool} is released."),
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
                Some(name) => format!("{what} is imported, and called {name} from now on."),
                None => format!("{what} is imported."),
            };
            let body = PoolImport { pool: args.pool, name: args.name, drives, force: args.force };
            let created: api::Created = client.post("/imports", &body)?;
            Ok(context.created(&created, what, "millrace status"))
        }
        PoolCommand::Destroy { pool, force, consent } => {
            let path = format!("/pools/{}?force={force}", segment(&pool));
            consent.obtain(context, |yes| client.delete(&format!("{path}&disconnect={yes}")))?;
            Ok(context.done(format!("Pool {pool} is gone."), ""))
        }
    }
}

/// `millrace pool add POOL spare DRIVE…`.
fn add_spares(args: &AddArgs, context: &Context) -> Result<String, Failure> {
    let drives = &args.layout[1..];
    if drives.is_empty() {
        return Err(Failure::usage("no drive follows the word spare").with_next("millrace pool add --help"));
    }
    if args.plan {
        return Err(Failure::usage("a spare changes nothing that could be planned")
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
        return Err(Failure::usage("one drive follows the word leg").with_next("millrace pool add --help"));
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
        let what = match names.is_empty() {
            true => format!("pool {} has no mirror", args.pool),
            false => {
                format!("the mirrors of pool {} are {}: name one with --to", args.pool, names.join(", "))
            }
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
        let known_free = |p: &Pool| match p.arrays.is_empty() {
            true => "-".to_string(),
            false => print_free(p.bytes.saturating_sub(p.used_bytes)),
        };
        table.row([
            Cell::new(Look::Bold, p.name.clone()),
            Cell::state(p.state),
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

fn importable(found: &[Importable], context: &Context) -> String {
    let (pools, held): (Vec<&Importable>, Vec<&Importable>) = found.iter().partition(|p| !p.name.is_empty());
    let mut out = String::new();
    if pools.is_empty() {
        let (could, next) = match held.is_empty() {
            true => ("here", "millrace pool import --list --drive FILE, if it lies in files"),
            false => {
                ("that could be looked at", "stop what holds the others, then millrace pool import --list")
            }
        };
        out.push_str(&format!("No pool lies on the drives {could}.\n"));
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
    let wait = micros(a.cold_wait_ns as f64 / 1e3 / a.cold_writes as f64);
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
    row("state", Cell::state(pool.state));
    // With its drives at hand, the tree says it where it is.
    if !pool.reason.is_empty() && pool.arrays.is_empty() {
        row("reason", Cell::new(look_of(pool.state), pool.reason.clone()));
    }
    row("uuid", pool.uuid.clone().into());
    if !pool.arrays.is_empty() {
        let free = pool.bytes.saturating_sub(pool.used_bytes);
        row(
            "space",
            match pool.resting_bytes {
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
        if a.hedges_sent > 0 {
            let hedged = format!(
                "{} were late and sent to another leg too, {} answered from there",
                a.hedges_sent, a.hedges_won
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
            "{} hold what somebody left there, read as zeroes, and are being cleared: {pace}",
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
