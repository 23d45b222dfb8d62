//! `millrace status`: the whole head on one screen, and what to do next.

mod check;

pub use check::check;

use super::pool::state_cell;
use super::volume::{caps_words, exports_words, weight_words};
use super::{events, host, portal, times};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::put;
use crate::screen::{Cell, Look, Table, Terminal, bar, columns, count, look_of};
use api::{Array, ArrayLayout, Counters, Drive, Leg, Pool, Resync, State, Status, Volume};
use base::size::{print, print_count, print_free, print_rate, print_seconds};
use clap::Args;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// `millrace status`.
#[derive(Args, Debug, Default)]
#[command(after_help = "\
Legs of a mirror are drawn as letters: [UU] both in sync, [UR] the second is being resynced, [U_] the second is out or missing.

Examples:
  millrace status
  millrace status -v  # with hosts, connections, latencies and shards
  millrace status --watch  # rates instead of totals, every second
  millrace status --check  # for Nagios: one line, exit code 0, 1 or 2
  millrace status --json | jq .health")]
pub struct StatusArgs {
    /// Show identifiers, hosts, connections, latencies, shards and the latest events, too
    #[arg(long, short)]
    verbose: bool,
    /// Show rates, and refresh every second until Ctrl-C
    #[arg(long, short)]
    pub watch: bool,
    /// Print one line with figures, and exit with 0 (well), 1 (warning) or 2 (critical, or no answer)
    #[arg(long, conflicts_with_all = ["verbose", "watch"])]
    pub check: bool,
}

/// Shows the head as it is.
pub fn run(args: &StatusArgs, context: &Context) -> Result<String, Failure> {
    let status: Status = context.client.get("/status")?;
    Ok(context.show(&status, |status| screen(status, None, args.verbose, context.terminal)))
}

/// What the first rates of `--watch` are measured over.
const FIRST_INTERVAL: Duration = Duration::from_millis(300);

/// Shows the head again and again. With `--json`, one line each time.
pub fn watch(args: &StatusArgs, context: &Context) -> Result<(), Failure> {
    let mut before: Option<(Status, Instant)> = None;
    if !context.json {
        // Rates from the first screen on.
        before = Some((context.client.get("/status")?, Instant::now()));
        std::thread::sleep(FIRST_INTERVAL);
    }
    loop {
        let now: Status = context.client.get("/status")?;
        let at = Instant::now();
        // A terminal may have changed its size.
        let terminal = Terminal::for_stdout();
        if context.json {
            put(&(serde_json::to_string(&now).expect("plain data") + "\n"))?;
        } else {
            let earlier = before.as_ref().map(|(s, then)| (s, at.duration_since(*then).as_secs_f64()));
            let text = terminal.cut(&screen(&now, earlier, args.verbose, terminal));
            // Home and clear to the end, line by line: a screen that is written over does not flicker.
            if std::io::stdout().is_terminal() {
                put(&format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n")))?
            } else {
                put(&format!("{text}\n"))?
            }
        }
        before = Some((now, at));
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The screen once, without rates, for others to show.
pub fn watchless(status: &Status, terminal: Terminal) -> String {
    screen(status, None, false, terminal)
}

/// The status at an earlier time, and the seconds since.
type Earlier<'a> = Option<(&'a Status, f64)>;

/// The whole screen.
fn screen(status: &Status, earlier: Earlier, verbose: bool, terminal: Terminal) -> String {
    let mut out = head(status, verbose, terminal);
    for pool in &status.pools {
        out.push('\n');
        out.push_str(&tree(pool, status, earlier, terminal, verbose));
    }
    let mut sections = Vec::new();
    if verbose && !status.hosts.is_empty() {
        sections.push(host::table(&status.hosts).print(terminal, 0));
    }
    if verbose && !status.portals.is_empty() {
        sections.push(portal::table(&status.portals).print(terminal, 0));
    }
    if !verbose {
        sections.push(summary(status, terminal));
    }
    if verbose {
        sections.extend(connections(status, terminal));
        sections.extend(times::volumes(&status.volumes, terminal));
        sections.extend(times::drives(&status.drives, terminal));
        sections.push(shards(status, terminal));
        if !status.events.is_empty() {
            let from = status.events.len().saturating_sub(10);
            sections.push(status.events[from..].iter().map(|e| events::line(e, terminal)).collect());
        }
    }
    let minor = status.minor_notices.iter().filter(|_| verbose);
    let notices: Vec<&String> = status.notices.iter().chain(minor).map(|n| &n.message).collect();
    if !notices.is_empty() {
        sections.push(notices.iter().map(|n| terminal.paragraph(Look::Dim, "note  ", n, 6)).collect());
    }
    for section in sections.iter().filter(|s| !s.is_empty()) {
        out.push('\n');
        out.push_str(section);
    }
    if let Some(next) = next_action(status) {
        out.push_str(&format!("\n{}", terminal.next(&next)));
    }
    out
}

/// The health word and its reasons.
fn head(status: &Status, verbose: bool, terminal: Terminal) -> String {
    let health = crate::words::health(status);
    let word = terminal.text(look_of(status.health), &format!("● {health}"));
    let mut facts = vec![format!("up {}", print_seconds(status.uptime_seconds))];
    if status.daemon.management_only {
        facts.insert(0, "management only".to_string());
    }
    facts.push(count(status.shards.len(), "shard"));
    let (resident, memory) = (status.daemon.memory_resident_bytes, status.daemon.memory_bytes);
    if resident < memory {
        facts.push(format!("memory {} of {}", print(resident), print(memory)));
    }
    facts.push(status.at.to_string());
    facts.push(format!("version {}", status.daemon.version));
    let begin = columns("millrace  ● ") + health.len() + 2;
    let facts = terminal.facts(begin, &facts);
    let mut out = format!("{}  {word}  {facts}\n", terminal.text(Look::Bold, "millrace"));
    let at_the_end = next_action(status);
    for reason in &status.reasons {
        let what = format!("  {}: ", reason.what);
        out.push_str(&terminal.paragraph(look_of(reason.state), &what, &reason.message, 4));
        // The last line of the screen says what helps the worst trouble.
        if let Some(next) = reason.next.as_ref().filter(|n| Some(*n) != at_the_end.as_ref()) {
            out.push_str(&terminal.steps(Look::Plain, ["    → ", "      or ", "      then "], next));
        }
    }
    if verbose {
        let s = &status.system;
        let mut table = Table::new(&["", ""]).prose();
        let mut pid = format!("pid {}, state in {}", status.daemon.pid, status.daemon.state_dir);
        if memory > 0 {
            let data = status.daemon.memory_data_bytes;
            pid.push_str(&format!(", memory {} ({} for data)", print(memory), print(data)));
        }
        for (name, value) in [
            ("nqn", &s.nqn),
            ("iqn", &s.iqn),
            ("system", &s.uuid.to_string()),
            ("serial", &s.serial),
            ("daemon", &pid),
        ] {
            table.row([Cell::new(Look::Dim, name), value.clone().into()]);
        }
        out.push_str(&table.print(terminal, 2));
    }
    out
}

/// A pool's tree without rates, for `pool show`.
pub fn pool_tree(pool: &Pool, status: &Status, terminal: Terminal) -> String {
    tree(pool, status, None, terminal, false)
}

/// `mirror-0`, `single-3`.
pub fn array_name(array: &Array, index: usize) -> String {
    format!("{}-{index}", array.layout.word())
}

/// The legs as letters, as md draws them: `[U_]`.
pub fn legs_word(array: &Array) -> String {
    let letter = |leg: &Leg| match leg.state {
        // One that had errors is in use all the same.
        State::Optimal | State::Degraded => 'U',
        State::Rebuilding => 'R',
        State::Offline | State::Failed => '_',
    };
    format!("[{}]", array.legs.iter().map(letter).collect::<String>())
}

/// One pool: arrays, drives, volumes, and what is under way.
fn tree(pool: &Pool, status: &Status, earlier: Earlier, terminal: Terminal, verbose: bool) -> String {
    let mut table = match earlier {
        None => {
            Table::new(&["POOL", "STATE", ">SIZE", ">READS", ">WRITES", ">READ", ">WRITTEN", ">ERRORS", ""])
                .optional(&["READS", "WRITES"])
                .optional(&["READ", "WRITTEN"])
        }
        Some(_) => {
            let heads =
                ["POOL", "STATE", ">SIZE", ">READS/S", ">WRITES/S", ">READ/S", ">WRITTEN/S", ">ERRORS", ""];
            Table::new(&heads).short_names(24).optional(&["SIZE"]).optional(&["READ/S", "WRITTEN/S"])
        }
    }
    .prose();
    let volumes = volumes_of(pool, status);
    let total = sum(volumes.iter().map(|v| v.counters));
    let total_before =
        earlier.map(|(s, seconds)| (sum(volumes_of(pool, s).iter().map(|v| v.counters)), seconds));
    // Every reason is told once: above the tree, and at the leg that is the cause.
    let name = if pool.arrays.is_empty() {
        pool.name.clone()
    } else {
        format!("{}, {} free", pool.name, print_free(pool.bytes.saturating_sub(pool.used_bytes)))
    };
    let name = Cell::new(Look::Bold, name);
    let note = Cell::new(Look::Warn, weakness(pool, status));
    row(&mut table, (name, "│"), state_cell(pool), pool.bytes, total, total_before, note);
    for (a, array) in pool.arrays.iter().enumerate() {
        let last = volumes.is_empty() && pool.spares.is_empty() && a + 1 == pool.arrays.len();
        let single = array.layout == ArrayLayout::Single;
        let branch = if last { "└─ " } else { "├─ " };
        if single && let [leg] = &array.legs[..] {
            // A single drive is its array: one line for both.
            leg_row(&mut table, "", branch, leg, status, earlier);
            continue;
        }
        let name = format!("{branch}{} {}", array_name(array, a), legs_word(array));
        let note = match verbose && array.regions > 0 {
            true => format!("{} of {} regions dirty", array.regions_dirty, array.regions),
            // Where a leg is the cause, the leg says so.
            false if array.legs.iter().all(|l| l.state == State::Optimal) => array.reason.clone(),
            false => String::new(),
        };
        let stem = if last { "   " } else { "│  " };
        let mut cells = vec![name.into(), Cell::state(array.state), print(array.bytes).into()];
        cells.resize(8, Cell::default());
        cells.push(note.into());
        table.branch(cells, format!("{stem}│"));
        for (l, leg) in array.legs.iter().enumerate() {
            let branch = if l + 1 == array.legs.len() { "└─ " } else { "├─ " };
            leg_row(&mut table, stem, branch, leg, status, earlier);
        }
    }
    for (i, spare) in pool.spares.iter().enumerate() {
        let last = volumes.is_empty() && i + 1 == pool.spares.len();
        let branch = if last { "└─ " } else { "├─ " };
        let (state, note) = if spare.ready {
            (Cell::new(Look::Plain, "spare"), spare.fits.clone())
        } else {
            (Cell::new(Look::Bad, "missing"), format!("a spare: {}", spare.reason))
        };
        let size = if spare.bytes == 0 { "-".to_string() } else { print(spare.bytes) };
        let mut cells = vec![format!("{branch}{}", spare.path).into(), state, size.into()];
        cells.resize(8, Cell::default());
        cells.push(note.into());
        table.branch(cells, below(branch).to_string());
    }
    for (i, v) in volumes.iter().enumerate() {
        let branch = if i + 1 == volumes.len() { "└─ " } else { "├─ " };
        let name = v.name.strip_prefix(&format!("{}/", pool.name)).unwrap_or(&v.name);
        let before = earlier.map(|(s, seconds)| {
            let counters = s.volumes.iter().find(|b| b.uuid == v.uuid).map(|b| b.counters);
            (counters.unwrap_or(v.counters), seconds)
        });
        let exports = exports_words(v);
        let caps =
            caps_words(v).filter(|_| verbose).map(|caps| format!("; capped at {caps}")).unwrap_or_default();
        let weight =
            weight_words(v).filter(|_| verbose).map(|weight| format!("; {weight}")).unwrap_or_default();
        let note = if exports.is_empty() {
            Cell::new(Look::Dim, format!("exported to nobody{caps}{weight}"))
        } else {
            format!("→ {exports}{caps}{weight}").into()
        };
        let name = format!("{branch}{name}").into();
        row(&mut table, (name, below(branch)), Cell::state(v.state), v.bytes, v.counters, before, note);
    }
    let mut out = table.print(terminal, 0);
    for (a, array) in pool.arrays.iter().enumerate() {
        if let Some(resync) = &array.resync {
            let kind = if resync.partial { "partial resync" } else { "resync" };
            let what = match resync.leg.and_then(|leg| array.legs.get(usize::from(leg))) {
                Some(leg) => format!("  {kind} of {} in {}", leg.path, array_name(array, a)),
                None => format!("  {kind} of {}, to make its legs equal", array_name(array, a)),
            };
            out.push_str(&beside(&what, &progress(resync), terminal));
        }
    }
    if pool.scrub.running {
        let s = &pool.scrub;
        let mut what = format!("  scrub of {}", pool.name);
        if s.repair {
            what.push_str(", repairing");
        }
        if s.differed_bytes > 0 {
            what.push_str(&format!(": {} differed so far", print(s.differed_bytes)));
        }
        let bar = bar_of(s.done_bytes, s.total_bytes, s.rate, s.seconds_left);
        out.push_str(&beside(&what, &bar, terminal));
    }
    out
}

/// A title and its bar, below each other where they do not fit.
fn beside(what: &str, bar: &str, terminal: Terminal) -> String {
    let joint = if columns(what) + 2 + columns(bar) <= terminal.width() { "  " } else { "\n    " };
    format!("{what}{joint}{bar}\n")
}

/// What the pool would not survive although all is well: one drive, or the end of the daemon.
fn weakness(pool: &Pool, status: &Status) -> String {
    let single = |a: &&Array| a.layout == ArrayLayout::Single;
    let singles = pool.arrays.iter().filter(single).count();
    let is_one_of = |leg: &Leg, kinds: &[&str]| {
        let drive = status.drives.iter().find(|d| d.uuid.as_ref() == Some(&leg.uuid));
        drive.is_some_and(|d| kinds.contains(&d.kind.as_str()))
    };
    // A mirror lives as long as one of its legs.
    let all_of = |kinds: &[&str]| {
        pool.arrays.iter().any(|a| !a.legs.is_empty() && a.legs.iter().all(|l| is_one_of(l, kinds)))
    };
    let redundancy = match (singles, pool.arrays.len()) {
        (0, _) => "",
        (n, all) if n == all => "no redundancy: if one drive fails, the pool is lost",
        (..) => "redundant only in part: if a single drive fails, the pool is lost",
    };
    let memory = match () {
        () if all_of(&["null"]) => "null drives: data is not kept",
        () if all_of(&["ram", "null"]) => "in memory: its data is lost when the daemon ends",
        () => "",
    };
    match (redundancy.is_empty(), memory.is_empty()) {
        (false, false) => format!("{redundancy}; {memory}"),
        (..) => format!("{redundancy}{memory}"),
    }
}

/// What goes on below a row that begins with `branch`.
fn below(branch: &str) -> &'static str {
    if branch.starts_with('├') { "│" } else { " " }
}

/// `▕████    ▏ 43 %  1.2G of 2.8G  812 MB/s  2 min 10 s left`.
pub fn progress(r: &Resync) -> String {
    bar_of(r.done_bytes, r.total_bytes, r.rate, r.seconds_left)
}

/// The same of other long work.
fn bar_of(done: u64, total: u64, rate: u64, seconds_left: Option<u64>) -> String {
    let percent = (u128::from(done.min(total)) * 100).checked_div(u128::from(total)).unwrap_or(0);
    let pace = pace_words(done, rate, seconds_left);
    format!("{} {percent:>3} %  {} of {}  {pace}", bar(done, total, 24), print(done), print(total))
}

/// `812 MB/s  2 min 10 s left`; work that has just begun has no rate yet, and nothing is said that would look like a halt.
pub fn pace_words(done: u64, rate: u64, seconds_left: Option<u64>) -> String {
    match seconds_left {
        Some(s) => format!("{}  {} left", print_rate(rate), print_seconds(s)),
        None if done == 0 => "no rate yet".to_string(),
        None => format!("{}  time left unknown", print_rate(rate)),
    }
}

fn leg_row(table: &mut Table, stem: &str, branch: &str, leg: &Leg, status: &Status, earlier: Earlier) {
    let find = |s: &Status| -> Option<Drive> {
        s.drives.iter().find(|d| d.uuid.as_ref() == Some(&leg.uuid)).cloned()
    };
    let drive = find(status);
    let path = if leg.path.is_empty() {
        leg.uuid.to_string()
    } else {
        super::drive::told_apart(&leg.path, Some(leg.uuid), &status.drives)
    };
    let mut counters = drive.as_ref().map(|d| d.counters).unwrap_or_default();
    counters.errors = drive.as_ref().map_or(0, |d| d.errors);
    let before = earlier.map(|(s, seconds)| (find(s).map_or(counters, |d| d.counters), seconds));
    let mut note = leg.reason.clone();
    if leg.slow {
        note = super::drive::SLOW.into();
    }
    if let Some(shape) = drive.as_ref().and_then(|d| d.shape.as_ref()) {
        let words = format!("shaped: {}", super::drive::describe(shape));
        note = if note.is_empty() { words } else { format!("{note}; {words}") };
    }
    let bytes = drive.map_or(0, |d| d.bytes);
    let name = format!("{stem}{branch}{path}").into();
    let below = format!("{stem}{}", below(branch));
    row(table, (name, &below), Cell::state(leg.state), bytes, counters, before, note.into());
}

fn row(
    table: &mut Table,
    (name, below): (Cell, &str),
    state: Cell,
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
    let errors = Cell::errors(c.errors);
    let cells = [name, state, size.into(), reads, writes, read, written, errors, note];
    table.branch(cells, below.to_string());
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
fn summary(status: &Status, terminal: Terminal) -> String {
    let mut table = Table::new(&["", ""]).prose();
    for protocol in [api::Protocol::Nvme, api::Protocol::Discovery, api::Protocol::Iscsi] {
        let here: Vec<String> = status
            .portals
            .iter()
            .filter(|p| p.protocol == protocol)
            .map(|p| {
                let head = p.head.as_ref().map(|head| format!("head {head}"));
                let closed = (!p.listening).then(|| format!("closed: {}", p.reason));
                let words: Vec<String> = head.into_iter().chain(closed).collect();
                if words.is_empty() {
                    p.address.to_string()
                } else {
                    format!("{} ({})", p.address, words.join(", "))
                }
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
                let trust = match (h.authenticated, h.nqns.is_empty()) {
                    (true, true) => String::new(),
                    (true, false) => format!(", nvme {}", host::IDENTIFIED),
                    (false, _) => format!(", {}", host::IDENTIFIED),
                };
                // A host stays in one piece.
                format!("{} ({}{trust})", h.name, count(h.connections as usize, "connection"))
                    .replace(' ', "\u{a0}")
            })
            .collect();
        table.row([Cell::new(Look::Dim, "hosts"), hosts.join(", ").into()]);
    }
    if let Some(cluster) = &status.cluster {
        let word = |h: &api::Head| {
            let ready = if h.state == "follows" && h.ready { " and is ready to take over" } else { "" };
            let name = if h.name.is_empty() { h.head.clone() } else { format!("{} ({})", h.head, h.name) };
            format!("{name} {}{ready}", h.state)
        };
        let heads: Vec<String> = cluster.heads.iter().filter(|h| h.state != "none").map(word).collect();
        let link = if cluster.linked { "the link is up" } else { "the link is down" };
        table.row([Cell::new(Look::Dim, "heads"), format!("{}; {link}", heads.join(", ")).into()]);
    }
    if table.is_empty() { String::new() } else { table.print(terminal, 0) }
}

fn connections(status: &Status, terminal: Terminal) -> Option<String> {
    let mut table = Table::new(&[
        "CONNECTION",
        "HOST",
        "PROTOCOL",
        ">SESSION",
        ">QUEUE",
        ">SHARD",
        ">COMMANDS",
        ">IN FLIGHT",
    ])
    .optional(&["SHARD"])
    .optional(&["SESSION"]);
    for c in &status.connections {
        table.row([
            c.peer.to_string().into(),
            c.host.clone().unwrap_or_else(|| "-".into()).into(),
            c.protocol.word().into(),
            c.session.map_or("-".into(), |s| s.to_string()).into(),
            c.queue.to_string().into(),
            place(c.head.as_deref(), c.shard).into(),
            print_count(c.commands).into(),
            c.in_flight.to_string().into(),
        ]);
    }
    (!table.is_empty()).then(|| table.print(terminal, 0))
}

/// A shard, with its head where there are two.
fn place(head: Option<&str>, shard: u16) -> String {
    format!("{}{shard}", head.unwrap_or_default())
}

fn shards(status: &Status, terminal: Terminal) -> String {
    let mut table = Table::new(&[
        "SHARD",
        ">CONNECTIONS",
        ">COMMANDS",
        ">REQUESTS",
        ">DRIVE OPS",
        ">BUFFERS",
        ">OF",
        ">LONGEST TURN",
        ">ERRORS",
        "",
    ])
    .optional(&["REQUESTS"])
    .prose();
    for s in &status.shards {
        table.row([
            place(s.head.as_deref(), s.shard).into(),
            s.connections.to_string().into(),
            print_count(s.commands).into(),
            s.requests.to_string().into(),
            s.drive_ops.to_string().into(),
            print(s.buffer_bytes).into(),
            print(s.buffer_bytes_max).into(),
            format!("{:.1} ms", s.longest_turn_us as f64 / 1e3).into(),
            Cell::errors(s.protocol_errors),
            s.last_protocol_error.clone().into(),
        ]);
    }
    if table.is_empty() { String::new() } else { table.print(terminal, 0) }
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
                Some(portal::ADD.into())
            } else if status.volumes.iter().all(|v| v.exports.is_empty()) {
                Some(format!("millrace export {volume} --host {host}"))
            } else {
                None
            }
        }
    }
}
