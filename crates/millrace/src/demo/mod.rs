//! `millrace demo`: the whole story on one machine, with drives in files.
//!
//! A daemon of its own, told everything through its API; load from separate processes through both
//! protocols; a drive that fails under it and returns. Owns the story and its folder; does nothing that
//! a user could not do by hand. Every process that it starts ends with it.

mod heads;
mod loads;
mod show;
mod stage;

use crate::arguments::count_in;
use crate::bench::Report;
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::screen::{Look, Terminal, count};
use api::{Pool, State, Status};
use base::size::print;
use clap::Args;
use loads::Loads;
use serde::Serialize;
use show::Show;
use stage::{ALONE, Daemon, Folder, free_port};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// `millrace demo`.
#[derive(Args, Debug)]
#[command(after_help = "\
The demo creates four files as drives, a pool of two mirrors, a volume and a host. It loads the volume over NVMe/TCP and iSCSI, fails a drive under load and returns it, and then serves until Ctrl-C.

Examples:
  millrace demo
  millrace demo --heads 2 --once
  millrace demo --once  # exit code 0 if nothing went wrong
  millrace demo --dir /mnt/fast --drive-size 4G --seconds 60")]
pub struct DemoArgs {
    /// Number of heads: with 2, the leading one is killed under load and comes back
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, value_parser = count_in::<u8>(1..=2))]
    heads: u8,
    /// Exit after the table of results
    #[arg(long)]
    once: bool,
    /// Folder for the drives; files of an earlier demo there are removed
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp/millrace-demo")]
    dir: PathBuf,
    /// Seconds of load to measure
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 12, value_parser = count_in::<u32>(4..=86400))]
    seconds: u32,
    /// Size of each drive
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, default_value = "512M", value_parser = drive_size)]
    drive_size: u64,
}

fn drive_size(text: &str) -> Result<u64, String> {
    match base::size::parse(text)? {
        bytes if bytes >= 256 << 20 => Ok(bytes),
        _ => Err(format!("\"{text}\" is too small: at least 256M")),
    }
}

/// The demo's own names.
const POOL: &str = "demo";
const VOLUME: &str = "demo/vm1";
const HOST: &str = "demo-host";
const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:6d696c6c-7261-4365-8465-6d6f00000001";
const HOST_IQN: &str = "iqn.2026-01.org.millrace:demo-host";
/// Longest time that a resync may take.
const RESYNC_TIMEOUT: Duration = Duration::from_secs(600);

/// Where the demo's volume is served.
struct Portals {
    nvme: SocketAddr,
    discovery: SocketAddr,
    iscsi: SocketAddr,
}

/// What the demo did, as JSON: the shape stays, keys may be added.
#[derive(Serialize)]
struct Told<'a> {
    /// The API of its daemon, as long as that serves.
    socket: String,
    /// Whether it serves on.
    serving: bool,
    /// What each initiator did and measured.
    reports: &'a [Report],
    /// The head at the end of the load.
    status: &'a Status,
    /// How a Linux host connects while it serves.
    connect: Vec<String>,
}

/// Tells the story; with `json` on stderr, and then what was done as JSON.
pub fn run(args: DemoArgs, json: bool) -> Result<(), Failure> {
    let show = Show::new(json);
    let folder = Folder::claim(&args.dir)?;
    show.say("folder", &format!("{} (drives, state and logs of this demo)", args.dir.display()));
    let drives = folder.make_drives(args.drive_size)?;
    if args.heads == 2 {
        return heads::run(&args, &show, &folder, &drives, json);
    }
    let mut daemon = Daemon::start(&folder, &ALONE, "256M")?;
    let client = Client::new(folder.socket(&ALONE))?;
    daemon.wait_until_it_answers(&client)?;
    show.say(
        "daemon",
        &format!("millrace serve, process {}, API at {}", daemon.id(), folder.socket(&ALONE).display()),
    );
    let end = match story(&args, &show, &folder, &client, &drives) {
        Ok(end) => end,
        Err(failure) => {
            daemon.stop()?;
            return Err(failure.with_next(format!("less {}", folder.log("daemon").display())));
        }
    };
    let connect = end.portals.lines(&end.status);
    if json {
        let socket = folder.socket(&ALONE).display().to_string();
        let (reports, status, serving) = (&end.reports[..], &end.status, !args.once);
        crate::output::put(&crate::output::pretty(&Told { socket, serving, reports, status, connect }))?;
    } else {
        show.connect(&connect, args.once);
    }
    if !args.once {
        show.line(&format!(
            "\nServing until Ctrl-C. Look around:  {} --socket {} status",
            own_program(),
            folder.socket(&ALONE).display()
        ));
        stage::wait_for_interrupt(&mut daemon)?;
        show.line("\nStopping in order.");
    }
    daemon.stop()
}

/// How a shell finds this program: by its name if that is what PATH leads to, else by its path, from here if it is below.
fn own_program() -> String {
    let Ok(program) = std::env::current_exe() else { return "millrace".into() };
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let by_name = std::env::split_paths(&dirs).find_map(|dir| dir.join("millrace").canonicalize().ok());
    if by_name.as_deref() == Some(&program) {
        return "millrace".into();
    }
    let here = std::env::current_dir().ok();
    let below = here.and_then(|here| program.strip_prefix(here).ok().map(std::path::Path::to_path_buf));
    below.unwrap_or(program).display().to_string()
}

/// The end of the story.
struct End {
    portals: Portals,
    status: Status,
    reports: Vec<Report>,
}

fn story(
    args: &DemoArgs,
    show: &Show,
    folder: &Folder,
    client: &Client,
    drives: &[PathBuf],
) -> Result<End, Failure> {
    let portals = build(show, client, drives)?;
    let status: Status = client.get("/status")?;
    let volume = status.volumes.iter().find(|v| v.name == VOLUME);
    let volume = volume.ok_or_else(|| Failure::internal("the new volume is not in the status"))?;

    let Portals { nvme, iscsi, .. } = &portals;
    let mut loads = Loads::start(folder, &status.system, [&[*nvme], &[*iscsi]], volume)?;
    show.say("load", "70 % reads, 4K, random, verified: 4 connections NVMe/TCP, 2 iSCSI");
    loads.run_until_measuring(show)?;
    // The drive fails a third into the measurement, so that there is load before, without and after it.
    let end = Instant::now() + Duration::from_secs(args.seconds.into());
    loads.run_for(Duration::from_millis(u64::from(args.seconds) * 333), show)?;
    let drive = drives[3].display().to_string();
    let resource = format!("/drives/{}", segment(&drive));
    client.act(&format!("{resource}/fail"), &serde_json::json!({}))?;
    let failed_at = Instant::now();
    show.say("fail", &format!("{drive} is out; {} is {} and goes on", POOL, pool(client)?.state.word()));
    loads.run_for(Duration::from_millis(u64::from(args.seconds) * 200), show)?;
    client.act(&format!("{resource}/return"), &serde_json::json!({}))?;
    show.say("return", &format!("{drive} is back after {:.1} s", failed_at.elapsed().as_secs_f64()));
    resync(show, client, &mut loads)?;
    loads.run_for(end.saturating_duration_since(Instant::now()), show)?;
    let reports = loads.finish(show)?;

    let status: Status = client.get("/status")?;
    show.line("");
    show.line(crate::cli::status::watchless(&status, Terminal::for_stdout()).trim_end());
    show.table(&reports, "one drive failed and returned under load");
    judge(&reports, &status)?;
    Ok(End { portals, status, reports })
}

/// Pool, volume, host, portals and export, all through the API.
fn build(show: &Show, client: &Client, drives: &[PathBuf]) -> Result<Portals, Failure> {
    let path = |i: usize| drives[i].display().to_string();
    let mirror = |a, b| api::ArraySpec {
        layout: api::ArrayLayout::Mirror,
        drives: vec![path(a), path(b)],
        weight: None,
    };
    let create = api::PoolCreate {
        name: POOL.into(),
        arrays: vec![mirror(0, 1), mirror(2, 3)],
        chunk_bytes: None,
        block_bytes: None,
        measure: false,
        force: false,
    };
    let _: api::Created = client.post("/pools", &create)?;
    let made = pool(client)?;
    show.say(
        "pool",
        &format!("{POOL}: {}, striped, {}", count(made.arrays.len(), "mirror"), print(made.bytes)),
    );
    let bytes = (made.bytes / 4 * 3) & !((1 << 20) - 1);
    let body = api::VolumeCreate { name: VOLUME.into(), bytes, block_bytes: None };
    let _: api::Created = client.post("/volumes", &body)?;
    show.say("volume", &format!("{VOLUME}, {}", print(bytes)));
    let body = api::HostAdd {
        name: HOST.into(),
        nqns: vec![HOST_NQN.into()],
        iqns: vec![HOST_IQN.into()],
        ..Default::default()
    };
    let _: api::Created = client.post("/hosts", &body)?;
    show.say("host", &format!("{HOST}, {HOST_NQN}, {HOST_IQN}"));
    let portals = Portals {
        nvme: listen(show, client, api::Protocol::Nvme, 4420)?,
        discovery: listen(show, client, api::Protocol::Discovery, 8009)?,
        iscsi: listen(show, client, api::Protocol::Iscsi, 3260)?,
    };
    let Portals { nvme, discovery, iscsi } = &portals;
    show.say("portals", &format!("NVMe/TCP {nvme}, discovery {discovery}, iSCSI {iscsi}"));
    let body = api::ExportAdd { volume: VOLUME.into(), host: HOST.into(), lun: Some(0) };
    let _: api::Created = client.post("/exports", &body)?;
    Ok(portals)
}

/// A portal of the head that is asked, at this port or the next that is free.
fn listen(show: &Show, client: &Client, protocol: api::Protocol, port: u16) -> Result<SocketAddr, Failure> {
    let free = free_port(port)?;
    if free != port {
        show.say(
            "portal",
            &format!("port {port} is taken by somebody else, so {protocol} listens at {free}"),
        );
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free));
    let body =
        api::PortalAdd { protocol, address: address.to_string(), prefix: None, interface: None, head: None };
    let _: api::Created = client.post("/portals", &body)?;
    Ok(address)
}

fn pool(client: &Client) -> Result<Pool, Failure> {
    client.get(&format!("/pools/{POOL}"))
}

/// Shows the resync until both mirrors are whole again.
fn resync(show: &Show, client: &Client, loads: &mut Loads) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut last: Option<api::Resync> = None;
    let bar = show.resync_bar();
    loop {
        let pool = pool(client)?;
        let under_way = pool.arrays.iter().find_map(|a| a.resync.clone());
        if let Some(resync) = under_way {
            bar.update(&resync);
            last = Some(resync);
        } else if pool.state == State::Optimal {
            break;
        }
        if begun.elapsed() > RESYNC_TIMEOUT {
            return Err(Failure::internal(format!(
                "the resync did not end within {} s: {}",
                RESYNC_TIMEOUT.as_secs(),
                pool.reason
            )));
        }
        loads.run_for(Duration::from_millis(50), show)?;
    }
    bar.end();
    let seconds = begun.elapsed().as_secs_f64();
    let what = match last {
        Some(r) => {
            let kind = if r.partial { "by bitmap, not the whole drive" } else { "the whole drive" };
            let rate = base::size::print_rate((r.total_bytes as f64 / seconds.max(0.001)) as u64);
            format!("{} in {seconds:.1} s ({rate}) under load, {kind}", print(r.total_bytes))
        }
        None => format!("done within {seconds:.1} s"),
    };
    show.say("resync", &what);
    Ok(())
}

/// Nothing may have gone wrong.
fn judge(reports: &[Report], status: &Status) -> Result<(), Failure> {
    if let Some(why) = reports.iter().find_map(|r| r.failure().map(|why| format!("{}: {why}", r.protocol))) {
        return Err(Failure::internal(why));
    }
    if let Some(r) = reports.iter().find(|r| r.verified_blocks == 0) {
        return Err(Failure::internal(format!("{}: not one block was verified", r.protocol)));
    }
    if status.health != State::Optimal {
        return Err(Failure::internal(format!("the head is {} at the end", status.health.word())));
    }
    Ok(())
}

impl Portals {
    /// How a Linux host would connect.
    fn lines(&self, status: &Status) -> Vec<String> {
        let (nqn, iqn) = (&status.system.nqn, &status.system.iqn);
        let id = HOST_NQN.rsplit_once("uuid:").map_or("", |(_, id)| id);
        let (nvme, discovery) = (self.nvme, self.discovery);
        vec![
            format!(
                "nvme discover -t tcp -a {} -s {} --hostnqn={HOST_NQN} --hostid={id}",
                discovery.ip(),
                discovery.port()
            ),
            format!(
                "nvme connect -t tcp -a {} -s {} -n {nqn} --hostnqn={HOST_NQN} --hostid={id}",
                nvme.ip(),
                nvme.port()
            ),
            // The name goes with an interface of its own: the machine's /etc/iscsi/initiatorname.iscsi stays as it is.
            "iscsiadm -m iface -I demo --op new".to_string(),
            format!("iscsiadm -m iface -I demo --op update -n iface.initiatorname -v {HOST_IQN}"),
            format!("iscsiadm -m discovery -t sendtargets -p {} -I demo", self.iscsi),
            format!("iscsiadm -m node -T {iqn} -p {} -I demo --login", self.iscsi),
        ]
    }
}

/// A heading's colour; here so that `show` and tests agree.
const HEADING: Look = Look::Bold;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_fails_if_anything_went_wrong() {
        let good = Report { protocol: "nvme".into(), verified_blocks: 1, ..Default::default() };
        let status = Status::default();
        assert_eq!(judge(std::slice::from_ref(&good), &status), Ok(()));
        let unverified = Report { verified_blocks: 0, ..good.clone() };
        assert!(judge(&[good.clone(), unverified], &status).is_err());
        let wrong = Report { mismatches: 1, errors: 1, ..good.clone() };
        assert!(judge(&[wrong], &status).expect_err("wrong").message.contains("nvme"));
        let degraded = Status { health: State::Degraded, ..Status::default() };
        assert!(judge(&[good], &degraded).expect_err("degraded").message.contains("degraded"));
    }

    #[test]
    fn the_program_is_named_so_that_a_shell_finds_it() {
        let named = own_program();
        // This test is not in PATH.
        assert!(named.contains('/') && std::path::Path::new(&named).exists(), "{named}");
    }

    #[test]
    fn a_host_is_told_how_to_connect() {
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let portals = Portals { nvme: address(4420), discovery: address(8009), iscsi: address(3260) };
        let system = api::System { nqn: "nqn.x".into(), iqn: "iqn.x".into(), ..Default::default() };
        let text = portals.lines(&Status { system, ..Default::default() }).join("\n");
        for words in [
            "nvme connect -t tcp -a 127.0.0.1 -s 4420 -n nqn.x",
            "iscsiadm -m iface -I demo --op update -n iface.initiatorname -v iqn.",
            "iscsiadm -m node -T iqn.x -p 127.0.0.1:3260 -I demo --login",
        ] {
            assert!(text.contains(words), "{text}");
        }
        assert!(!text.contains('>'), "nothing of the host's is written over: {text}");
    }
}
