//! The story of two heads: two daemons over the same drives, which both serve. The one that leads is killed under load, the other one
//! has all hosts meanwhile, and the first one comes back.

use super::loads::Loads;
use super::show::Show;
use super::stage::{self, Daemon, Folder, HEADS, free_port};
use super::{DemoArgs, Portals, VOLUME, build, judge, listen, own_program};
use crate::bench::Report;
use crate::client::Client;
use crate::failure::Failure;
use crate::screen::{Cell, Look, Table, Terminal};
use api::{Cluster, Status};
use base::size::print_count;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a head may take to be let in, or to lead.
const PATIENCE: Duration = Duration::from_secs(30);
/// Memory of each daemon.
const MEMORY: &str = "192M";

/// Operations a second of each initiator.
#[derive(Clone, Default, Serialize)]
struct Rates {
    before: Vec<f64>,
    during: Vec<f64>,
    after: Vec<f64>,
}

/// Commands a second of each head.
#[derive(Clone, Default, Serialize)]
struct HeadRates {
    before: [f64; 2],
    /// While one of them is dead.
    during: [f64; 2],
    after: [f64; 2],
}

/// What was done, as JSON: the shape stays, keys may be added.
#[derive(Serialize)]
struct Told<'a> {
    /// From the kill until the other head said that it leads, milliseconds.
    takeover_ms: f64,
    /// The longest that a command of each initiator took, milliseconds.
    longest_stall_ms: Vec<f64>,
    iops: &'a Rates,
    /// Of head a and of head b.
    iops_of_heads: &'a HeadRates,
    reports: &'a [Report],
    system: &'a Cluster,
}

/// Both daemons, while they run.
struct Heads {
    a: Option<Daemon>,
    b: Daemon,
    to_a: Client,
    to_b: Client,
}

/// Tells it.
pub fn run(
    args: &DemoArgs,
    show: &Show,
    folder: &Folder,
    drives: &[PathBuf],
    json: bool,
) -> Result<(), Failure> {
    let mut a = Daemon::start(folder, &HEADS[0], MEMORY)?;
    let mut b = Daemon::start(folder, &HEADS[1], MEMORY)?;
    let (to_a, to_b) = (Client::new(folder.socket(&HEADS[0]))?, Client::new(folder.socket(&HEADS[1]))?);
    a.wait_until_it_answers(&to_a)?;
    b.wait_until_it_answers(&to_b)?;
    show.say("daemons", &format!("head a is process {}, head b is process {}", a.id(), b.id()));
    let mut heads = Heads { a: Some(a), b, to_a, to_b };
    let told = story(args, show, folder, drives, &mut heads, json);
    let told = told.map_err(|f| {
        f.with_next(format!("less {} {}", folder.log("a").display(), folder.log("b").display()))
    });
    if told.is_ok() && !args.once {
        show.line(&format!(
            "\nServing until Ctrl-C. Look around:  {} --socket {} head ls",
            own_program(),
            folder.socket(&HEADS[0]).display()
        ));
        stage::wait_for_interrupt(&mut heads.b)?;
        show.line("\nStopping in order.");
    }
    let stopped = heads.a.map_or(Ok(()), Daemon::stop).and(heads.b.stop());
    told.and(stopped)
}

fn story(
    args: &DemoArgs,
    show: &Show,
    folder: &Folder,
    drives: &[PathBuf],
    heads: &mut Heads,
    json: bool,
) -> Result<(), Failure> {
    let Portals { nvme, iscsi, .. } = build(show, &heads.to_a, drives)?;
    let link = format!("127.0.0.1:{}", free_port(7400)?);
    let create = api::SystemCreate { link: vec![link.clone()], name: Some("left".into()) };
    let created: api::SystemCreated = heads.to_a.post("/system", &create)?;
    show.say("system", &format!("head a made it, and listens for the other one at {link}"));
    let join =
        api::SystemJoin { token: created.token, link: vec!["127.0.0.1".into()], name: Some("right".into()) };
    heads.to_b.act("/system/join", &join)?;
    wait_until(&heads.to_a, "head b to follow", |s| is(s, "b", "follows") && ready(s, "b"))?;
    show.say("follower", "head b joined by the token, follows, and has all that it needs to take over");
    // Each belongs to the head that is asked.
    let nvme = [nvme, listen(show, &heads.to_b, api::Protocol::Nvme, 4421)?];
    let iscsi = [iscsi, listen(show, &heads.to_b, api::Protocol::Iscsi, 3261)?];
    wait_until_both_serve(&heads.to_a)?;
    show.say(
        "portals",
        &format!("of head a: {}, {}; of head b: {}, {}", nvme[0], iscsi[0], nvme[1], iscsi[1]),
    );

    let status: Status = heads.to_a.get("/status")?;
    let volume = status.volumes.iter().find(|v| v.name == VOLUME);
    let volume = volume.ok_or_else(|| Failure::internal("the new volume is not in the status"))?;
    let mut loads = Loads::start(folder, &status.system, [&nvme, &iscsi], volume)?;
    show.say("load", "70 % reads, 4K, random, verified, at each head: 2 connections NVMe/TCP, 1 iSCSI");
    loads.run_until_measuring(show)?;
    let third = Duration::from_millis(u64::from(args.seconds) * 333);
    let before = run_for(third, &mut loads, &heads.to_a, show)?;
    let mut of_heads = HeadRates { before, ..HeadRates::default() };
    let mut rates = Rates { before: loads.rates(), ..Rates::default() };

    let killed_at = Instant::now();
    heads.a.take().expect("it runs").kill()?;
    show.say("kill -9", "head a, which led, is dead");
    while !cluster(&heads.to_b).is_some_and(|s| is(&s, "b", "leads")) {
        if killed_at.elapsed() > PATIENCE {
            return Err(Failure::internal("head b did not take over within 30 s"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let takeover = killed_at.elapsed();
    show.say("takeover", &format!("head b leads after {:.0} ms", takeover.as_secs_f64() * 1e3));
    rates.during = loads.rates();
    let (earlier, begun) = (commands(&heads.to_b)?, Instant::now());
    for _ in 0..10 {
        loads.run_for(Duration::from_millis(200), show)?;
        for (least, now) in rates.during.iter_mut().zip(loads.rates()) {
            *least = least.min(now);
        }
    }
    of_heads.during = since(earlier, commands(&heads.to_b)?, begun);
    heads.a = Some(Daemon::start(folder, &HEADS[0], MEMORY)?);
    wait_until(&heads.to_b, "head a to follow", |s| is(s, "a", "follows") && ready(s, "a"))?;
    wait_until_both_serve(&heads.to_b)?;
    show.say("back", "head a started again, was let in, follows, and has its portals again");
    of_heads.after = run_for(third, &mut loads, &heads.to_b, show)?;
    rates.after = loads.rates();
    let reports = loads.finish(show)?;
    whole(&heads.to_b)?;

    // Asked of the follower, which passes it on.
    let status: Status = heads.to_a.get("/status")?;
    let system: Cluster = heads.to_b.get("/system")?;
    show.line("");
    show.line(crate::cli::status::watchless(&status, Terminal::for_stdout()).trim_end());
    show.table(&reports, "the head that led was killed under load");
    table(show, &reports, &rates);
    table_of_heads(show, &of_heads);
    if json {
        let stall = |r: &Report| r.total.max_us / 1e3;
        let longest_stall_ms = reports.iter().map(stall).collect();
        let takeover_ms = takeover.as_secs_f64() * 1e3;
        let (iops, iops_of_heads) = (&rates, &of_heads);
        let told =
            Told { takeover_ms, longest_stall_ms, iops, iops_of_heads, reports: &reports, system: &system };
        crate::output::put(&crate::output::pretty(&told))?;
    }
    judge(&reports, &status)
}

/// IOPS before, during and after, and the longest stall of each host.
fn table(show: &Show, reports: &[Report], rates: &Rates) {
    let mut table = Table::new(&["HOST", ">IOPS BEFORE", ">LEAST", ">AFTER", ">LONGEST STALL", ">ERRORS"]);
    for (i, r) in reports.iter().enumerate() {
        let rate = |all: &[f64]| print_count(all.get(i).copied().unwrap_or_default() as u64);
        let look = if r.errors == 0 { Look::Good } else { Look::Bad };
        table.row([
            Cell::new(Look::Bold, r.protocol.clone()),
            rate(&rates.before).into(),
            rate(&rates.during).into(),
            rate(&rates.after).into(),
            format!("{:.0} ms", r.total.max_us / 1e3).into(),
            Cell::new(look, r.errors.to_string()),
        ]);
    }
    show.line(&format!("\n{}", table.print(Terminal::for_stdout(), 0)));
}

/// Commands a second of each head, in the same times.
fn table_of_heads(show: &Show, rates: &HeadRates) {
    let mut table = Table::new(&["HEAD", ">IOPS BEFORE", ">HEAD A DEAD", ">AFTER"]);
    for (head, letter) in ["a", "b"].into_iter().enumerate() {
        let rate = |all: [f64; 2]| Cell::from(print_count(all[head] as u64));
        table.row([Cell::new(Look::Bold, letter), rate(rates.before), rate(rates.during), rate(rates.after)]);
    }
    show.line(&table.print(Terminal::for_stdout(), 0));
}

/// Commands that hosts have sent to each head so far, as the one that leads knows it.
fn commands(leader: &Client) -> Result<[u64; 2], Failure> {
    let heads = leader.get::<Status>("/status")?.cluster.map_or(vec![], |c| c.heads);
    let of = |n: usize| heads.get(n).and_then(|h| h.serves.as_ref()).map_or(0, |s| s.commands);
    Ok([of(0), of(1)])
}

/// Commands a second since then.
fn since(earlier: [u64; 2], now: [u64; 2], begun: Instant) -> [f64; 2] {
    [0, 1].map(|head| now[head].saturating_sub(earlier[head]) as f64 / begun.elapsed().as_secs_f64())
}

/// Runs the load for some time; commands a second of each head.
fn run_for(time: Duration, loads: &mut Loads, leader: &Client, show: &Show) -> Result<[f64; 2], Failure> {
    let (earlier, begun) = (commands(leader)?, Instant::now());
    loads.run_for(time, show)?;
    Ok(since(earlier, commands(leader)?, begun))
}

/// Waits until each head has its portals, and writes of its own to carry out.
fn wait_until_both_serve(leader: &Client) -> Result<(), Failure> {
    let end = Instant::now() + PATIENCE;
    loop {
        let status: Status = leader.get("/status")?;
        let heads = status.cluster.map_or(vec![], |c| c.heads);
        let lanes = |h: &api::Head| h.serves.as_ref().is_some_and(|s| s.lanes > 0);
        if status.portals.iter().all(|p| p.listening && p.served_by.is_none()) && heads.iter().all(lanes) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(Failure::internal("waited 30 s in vain for both heads to serve"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn cluster(client: &Client) -> Option<Cluster> {
    client.get("/system").ok()
}
fn is(system: &Cluster, head: &str, state: &str) -> bool {
    system.heads.iter().any(|h| h.head == head && h.state == state)
}
fn ready(system: &Cluster, head: &str) -> bool {
    system.heads.iter().any(|h| h.head == head && h.ready)
}
fn wait_until(client: &Client, what: &str, so: impl Fn(&Cluster) -> bool) -> Result<(), Failure> {
    let end = Instant::now() + PATIENCE;
    while !cluster(client).is_some_and(|s| so(&s)) {
        if Instant::now() > end {
            return Err(Failure::internal(format!("waited 30 s in vain for {what}")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
/// Waits until the legs are equal after the crash.
fn whole(client: &Client) -> Result<(), Failure> {
    let end = Instant::now() + PATIENCE;
    loop {
        let pool = super::pool(client)?;
        let status: Status = client.get("/status")?;
        if status.health == api::State::Optimal && pool.arrays.iter().all(|a| a.resync.is_none()) {
            return Ok(());
        }
        if Instant::now() > end {
            let why = status.reasons.first().map_or(pool.reason, |r| format!("{}: {}", r.what, r.message));
            return Err(Failure::internal(format!("not all is well after 30 s: {why}")));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
