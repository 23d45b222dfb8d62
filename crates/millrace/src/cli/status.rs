//! `millrace status`: the whole head on one screen, and what to do next.

use super::volume::exports_words;
use super::{Context, events, host, portal, put};
use crate::failure::Failure;
use crate::screen::{Cell, Look, Paint, Table, bar, count, look_of};
use api::size::{print, print_count, print_rate, print_seconds};
use api::{Array, ArrayLayout, Counters, Drive, Leg, Pool, Resync, State, Status, Volume};
use clap::Args;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// `millrace status`.
#[derive(Args, Debug, Default)]
#[command(after_help = "\
Legs of a mirror are drawn as letters: [UU] both in sync, [UR] the second is being resynced,
[U_] the second is out or missing.

Examples:
  millrace status
  millrace status -v                      # with identifiers, hosts, connections, shards, events
  millrace status --watch                 # rates instead of totals, every second
  millrace status --json | jq .health")]
pub struct StatusArgs {
    /// Show identifiers, hosts, connections, shards and the latest events too
    #[arg(long, short)]
    verbose: bool,
    /// Show rates, again every second, until Ctrl-C
    #[arg(long, short)]
    pub watch: bool,
}

/// Shows the head as it is.
pub fn run(args: &StatusArgs, context: &Context) -> Result<String, Failure> {
    let status: Status = context.client.get("/status")?;
    Ok(context.show(&status, |status| screen(status, None, args.verbose, context.paint)))
}

/// Shows the head again and again. With `--json`, one line each time.
pub fn watch(args: &StatusArgs, context: &Context) -> Result<(), Failure> {
    let mut before: Option<(Status, Instant)> = None;
    loop {
        let now: Status = context.client.get("/status")?;
        let at = Instant::now();
        if context.json {
            put(&(serde_json::to_string(&now).expect("plain data") + "\n"))?;
        } else {
            let earlier = before.as_ref().map(|(s, then)| (s, at.duration_since(*then).as_secs_f64()));
            let text = screen(&now, earlier, args.verbose, context.paint);
            // Home and clear to the end, line by line: a screen that is written over does not flicker.
            match std::io::stdout().is_terminal() {
                true => put(&format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n")))?,
                false => put(&format!("{text}\n"))?,
            }
        }
        before = Some((now, at));
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The screen once, without rates, for others to show.
pub fn watchless(status: &Status, paint: Paint) -> String {
    screen(status, None, false, paint)
}

/// The status at an earlier time, and the seconds since.
type Earlier<'a> = Option<(&'a Status, f64)>;

/// The whole screen.
fn screen(status: &Status, earlier: Earlier, verbose: bool, paint: Paint) -> String {
    let mut out = head(status, verbose, paint);
    for pool in &status.pools {
        out.push('\n');
        out.push_str(&tree(pool, status, earlier, paint, verbose));
    }
    let mut sections = Vec::new();
    if verbose && !status.hosts.is_empty() {
        sections.push(host::table(&status.hosts).print(paint, 0));
    }
    if verbose && !status.portals.is_empty() {
        sections.push(portal::table(&status.portals).print(paint, 0));
    }
    if !verbose {
        sections.push(summary(status, paint));
    }
    if verbose {
        sections.extend(connections(status, paint));
        sections.push(shards(status, paint));
        if !status.events.is_empty() {
            let from = status.events.len().saturating_sub(10);
            sections.push(status.events[from..].iter().map(|e| events::line(e, paint)).collect());
        }
    }
    if !status.notices.is_empty() {
        sections.push(
            status.notices.iter().map(|n| format!("{} {n}\n", paint.text(Look::Dim, "note"))).collect(),
        );
    }
    for section in sections.iter().filter(|s| !s.is_empty()) {
        out.push('\n');
        out.push_str(section);
    }
    if let Some(next) = next_action(status) {
        out.push_str(&format!("\n{} {next}\n", paint.text(Look::Bold, "Next:")));
    }
    out
}

/// The health word and its reasons.
fn head(status: &Status, verbose: bool, paint: Paint) -> String {
    let word = paint.text(look_of(status.health), &format!("● {}", status.health.word()));
    let mut facts = vec![format!("up {}", print_seconds(status.uptime_seconds))];
    facts.push(count(status.shards.len(), "shard"));
    facts.push(format!("version {}", status.daemon.version));
    facts.push(status.at.clone());
    if status.daemon.management_only {
        facts.insert(0, "management only".to_string());
    }
    let mut out = format!(
        "{}  {word}  {}\n",
        paint.text(Look::Bold, "millrace"),
        paint.text(Look::Dim, &facts.join(" · "))
    );
    for reason in &status.reasons {
        let what = paint.text(look_of(reason.state), &reason.what);
        out.push_str(&format!("  {what}: {}\n", reason.message));
        if let Some(next) = &reason.next {
            out.push_str(&format!("    → {next}\n"));
        }
    }
    if verbose {
        let s = &status.system;
        let mut table = Table::new(&["", ""]);
        let pid = format!("pid {}, state in {}", status.daemon.pid, status.daemon.state_dir);
        for (name, value) in
            [("nqn", &s.nqn), ("iqn", &s.iqn), ("system", &s.uuid), ("serial", &s.serial), ("daemon", &pid)]
        {
            table.row([Cell::new(Look::Dim, name), value.clone().into()]);
        }
        out.push_str(&table.print(paint, 2));
    }
    out
}

/// A pool's tree without rates, for `pool show`.
pub fn pool_tree(pool: &Pool, status: &Status, paint: Paint, verbose: bool) -> String {
    tree(pool, status, None, paint, verbose)
}

/// `mirror-0`, `single-3`.
pub fn array_name(array: &Array, index: usize) -> String {
    format!("{}-{index}", array.layout.word())
}

/// The legs as letters, as md draws them: `[U_]`.
pub fn legs_word(array: &Array) -> String {
    let letter = |leg: &Leg| match leg.state {
        State::Optimal => 'U',
        State::Rebuilding => 'R',
        State::Degraded | State::Offline | State::Failed => '_',
    };
    format!("[{}]", array.legs.iter().map(letter).collect::<String>())
}

/// One pool: arrays, drives, volumes, and what is under way.
fn tree(pool: &Pool, status: &Status, earlier: Earlier, paint: Paint, verbose: bool) -> String {
    let heads = match earlier {
        None => ["POOL", "STATE", ">SIZE", ">READS", ">WRITES", ">READ", ">WRITTEN", ">ERRORS", ""],
        Some(_) => {
            ["POOL", "STATE", ">SIZE", ">READS/S", ">WRITES/S", ">READ/S", ">WRITTEN/S", ">ERRORS", ""]
        }
    };
    let mut table = Table::new(&heads);
    let volumes = volumes_of(pool, status);
    let total = sum(volumes.iter().map(|v| v.counters));
    let total_before =
        earlier.map(|(s, seconds)| (sum(volumes_of(pool, s).iter().map(|v| v.counters)), seconds));
    let free = print(pool.bytes.saturating_sub(pool.used_bytes));
    let note =
        if pool.reason.is_empty() { format!("{free} free") } else { format!("{free} free; {}", pool.reason) };
    row(
        &mut table,
        Cell::new(Look::Bold, pool.name.clone()),
        pool.state,
        pool.bytes,
        total,
        total_before,
        note.into(),
    );
    for (a, array) in pool.arrays.iter().enumerate() {
        let last = volumes.is_empty() && a + 1 == pool.arrays.len();
        let single = array.layout == ArrayLayout::Single;
        let branch = if last { "└─ " } else { "├─ " };
        if single && let [leg] = &array.legs[..] {
            // A single drive is its array: one line for both.
            leg_row(&mut table, branch.to_string(), leg, status, earlier);
            continue;
        }
        let name = format!("{branch}{} {}", array_name(array, a), legs_word(array));
        let note = match verbose && array.regions > 0 {
            true => format!("{} of {} regions dirty  {}", array.regions_dirty, array.regions, array.reason),
            false => array.reason.clone(),
        };
        let blank = || Cell::default();
        table.row([
            name.into(),
            Cell::state(array.state),
            print(array.bytes).into(),
            blank(),
            blank(),
            blank(),
            blank(),
            blank(),
            note.trim_end().into(),
        ]);
        for (l, leg) in array.legs.iter().enumerate() {
            let stem = if last { "   " } else { "│  " };
            let branch = if l + 1 == array.legs.len() { "└─ " } else { "├─ " };
            leg_row(&mut table, format!("{stem}{branch}"), leg, status, earlier);
        }
    }
    for (i, v) in volumes.iter().enumerate() {
        let branch = if i + 1 == volumes.len() { "└─ " } else { "├─ " };
        let name = v.name.strip_prefix(&format!("{}/", pool.name)).unwrap_or(&v.name);
        let before = earlier.map(|(s, seconds)| {
            let counters = s.volumes.iter().find(|b| b.uuid == v.uuid).map(|b| b.counters);
            (counters.unwrap_or(v.counters), seconds)
        });
        let exports = exports_words(&v.exports);
        let note = match exports.is_empty() {
            true => Cell::new(Look::Dim, "exported to nobody"),
            false => format!("→ {exports}").into(),
        };
        row(&mut table, format!("{branch}{name}").into(), v.state, v.bytes, v.counters, before, note);
    }
    let mut out = table.print(paint, 0);
    for (a, array) in pool.arrays.iter().enumerate() {
        if let Some(resync) = &array.resync {
            let leg = array.legs.get(usize::from(resync.leg)).map_or("?", |l| l.path.as_str());
            let kind = if resync.partial { "partial resync" } else { "resync" };
            out.push_str(&format!("  {kind} of {leg} in {}  {}\n", array_name(array, a), progress(resync)));
        }
    }
    out
}

/// `▕████    ▏ 43 %  1.2G of 2.8G  812 MB/s  2 min 10 s left`.
pub fn progress(r: &Resync) -> String {
    let percent = (u128::from(r.done_bytes.min(r.total_bytes)) * 100)
        .checked_div(u128::from(r.total_bytes))
        .unwrap_or(0);
    let left =
        r.seconds_left.map_or("time left unknown".to_string(), |s| format!("{} left", print_seconds(s)));
    format!(
        "{} {percent:>3} %  {} of {}  {}  {left}",
        bar(r.done_bytes, r.total_bytes, 24),
        print(r.done_bytes),
        print(r.total_bytes),
        print_rate(r.rate)
    )
}

fn leg_row(table: &mut Table, branch: String, leg: &Leg, status: &Status, earlier: Earlier) {
    let find = |s: &Status| -> Option<Drive> {
        s.drives.iter().find(|d| d.uuid.as_ref() == Some(&leg.uuid)).cloned()
    };
    let drive = find(status);
    let path = if leg.path.is_empty() { leg.uuid.clone() } else { leg.path.clone() };
    let mut counters = drive.as_ref().map(|d| d.counters).unwrap_or_default();
    counters.errors = drive.as_ref().map_or(0, |d| d.errors);
    let before = earlier.map(|(s, seconds)| (find(s).map_or(counters, |d| d.counters), seconds));
    let mut note = leg.reason.clone();
    if leg.slow {
        note = "slow: most reads go to the other legs".into();
    }
    if let Some(shape) = drive.as_ref().and_then(|d| d.shape.as_ref()) {
        let words = format!("shaped: {}", super::drive::describe(shape));
        note = if note.is_empty() { words } else { format!("{note}; {words}") };
    }
    let bytes = drive.map_or(0, |d| d.bytes);
    row(table, format!("{branch}{path}").into(), leg.state, bytes, counters, before, note.into());
}

fn row(
    table: &mut Table,
    name: Cell,
    state: State,
    bytes: u64,
    c: Counters,
    before: Option<(Counters, f64)>,
    note: Cell,
) {
    let figures: [Cell; 4] = match before {
        None => [print_count(c.reads), print_count(c.writes), print(c.read_bytes), print(c.write_bytes)]
            .map(Into::into),
        Some((b, seconds)) => {
            let rate = |now: u64, then: u64| (now.saturating_sub(then) as f64 / seconds.max(0.001)) as u64;
            [
                print_count(rate(c.reads, b.reads)),
                print_count(rate(c.writes, b.writes)),
                print_rate(rate(c.read_bytes, b.read_bytes)),
                print_rate(rate(c.write_bytes, b.write_bytes)),
            ]
            .map(Into::into)
        }
    };
    let [reads, writes, read, written] = figures;
    let size = if bytes == 0 { "-".to_string() } else { print(bytes) };
    table.row([
        name,
        Cell::state(state),
        size.into(),
        reads,
        writes,
        read,
        written,
        Cell::errors(c.errors),
        note,
    ]);
}

fn volumes_of<'a>(pool: &Pool, status: &'a Status) -> Vec<&'a Volume> {
    status.volumes.iter().filter(|v| v.name.split('/').next() == Some(&pool.name)).collect()
}

fn sum(counters: impl Iterator<Item = Counters>) -> Counters {
    counters.fold(Counters::default(), |a, c| Counters {
        reads: a.reads + c.reads,
        read_bytes: a.read_bytes + c.read_bytes,
        writes: a.writes + c.writes,
        write_bytes: a.write_bytes + c.write_bytes,
        flushes: a.flushes + c.flushes,
        errors: a.errors + c.errors,
    })
}

/// Portals and hosts, a line each.
fn summary(status: &Status, paint: Paint) -> String {
    let mut table = Table::new(&["", ""]);
    for protocol in [api::Protocol::Nvme, api::Protocol::Discovery, api::Protocol::Iscsi] {
        let here: Vec<String> = status
            .portals
            .iter()
            .filter(|p| p.protocol == protocol)
            .map(|p| {
                if p.listening { p.address.clone() } else { format!("{} (closed: {})", p.address, p.reason) }
            })
            .collect();
        if !here.is_empty() {
            table.row([Cell::new(Look::Dim, protocol.word()), here.join(", ").into()]);
        }
    }
    if !status.hosts.is_empty() {
        let hosts: Vec<String> = status
            .hosts
            .iter()
            .map(|h| {
                let known = if h.authenticated { "" } else { ", identified, not authenticated" };
                format!("{} ({}{known})", h.name, count(h.connections as usize, "connection"))
            })
            .collect();
        table.row([Cell::new(Look::Dim, "hosts"), hosts.join(", ").into()]);
    }
    if table.is_empty() { String::new() } else { table.print(paint, 0) }
}

fn connections(status: &Status, paint: Paint) -> Option<String> {
    let mut table = Table::new(&[
        "CONNECTION",
        "HOST",
        "PROTOCOL",
        ">SESSION",
        ">QUEUE",
        ">SHARD",
        ">COMMANDS",
        ">IN FLIGHT",
    ]);
    for c in &status.connections {
        table.row([
            c.peer.clone().into(),
            c.host.clone().unwrap_or_else(|| "-".into()).into(),
            c.protocol.word().into(),
            c.session.map_or("-".into(), |s| s.to_string()).into(),
            c.queue.to_string().into(),
            c.shard.to_string().into(),
            print_count(c.commands).into(),
            c.in_flight.to_string().into(),
        ]);
    }
    (!table.is_empty()).then(|| table.print(paint, 0))
}

fn shards(status: &Status, paint: Paint) -> String {
    let mut table = Table::new(&[
        "SHARD",
        ">CONNECTIONS",
        ">COMMANDS",
        ">REQUESTS",
        ">DRIVE OPS",
        ">BUFFERS",
        ">OF",
        ">PROTOCOL ERRORS",
        "",
    ]);
    for s in &status.shards {
        table.row([
            s.shard.to_string().into(),
            s.connections.to_string().into(),
            print_count(s.commands).into(),
            s.requests.to_string().into(),
            s.drive_ops.to_string().into(),
            print(s.buffer_bytes).into(),
            print(s.buffer_bytes_max).into(),
            Cell::errors(s.protocol_errors),
            s.last_protocol_error.clone().into(),
        ]);
    }
    if table.is_empty() { String::new() } else { table.print(paint, 0) }
}

/// What to do next: what helps the worst trouble, else the step that is missing before a host can
/// use a volume.
fn next_action(status: &Status) -> Option<String> {
    if status.health != State::Optimal {
        return status.reasons.iter().find_map(|r| r.next.clone());
    }
    let first_pool = status.pools.first().map(|p| p.name.as_str());
    let first_volume = status.volumes.first().map(|v| v.name.as_str());
    let first_host = status.hosts.first().map(|h| h.name.as_str());
    match (first_pool, first_volume, first_host) {
        (None, _, _) => {
            Some("millrace pool create NAME mirror DRIVE DRIVE (drives: millrace drive ls)".into())
        }
        (Some(pool), None, _) => Some(format!("millrace volume create {pool}/NAME --size SIZE")),
        (Some(_), Some(_), None) => Some("millrace host add NAME --nqn NQN --iqn IQN".into()),
        (Some(_), Some(volume), Some(host)) => {
            if status.portals.is_empty() {
                Some(
                    "millrace portal add nvme ADDRESS:4420, or millrace portal add iscsi ADDRESS:3260".into(),
                )
            } else if status.volumes.iter().all(|v| v.exports.is_empty()) {
                Some(format!("millrace export {volume} --host {host}"))
            } else {
                None
            }
        }
    }
}
