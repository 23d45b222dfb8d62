//! The load generator against both targets, in memory.

use crate::world::{Disk, Hosted, STAGING_BYTES, World};
use base::Duration;
use base::memory::PlainMemory;
use base::view::{Host, Protocol, Secret};
use load::stamp::Mismatch;
use load::{Config, Down, End, Load, Mail, Pattern, Plan, PlanFault, Report, RunFault, Target};

const NQN: &str = "nqn.2026-01.org.example:host";
const IQN: &str = "iqn.2026-01.org.example:host";
const MEMORY: usize = 96 << 20;

impl Hosted for Load<PlainMemory> {
    fn memory(&mut self) -> &mut PlainMemory {
        self.memory_mut()
    }
}

fn host() -> Host {
    Host { name: "h".into(), nqns: vec![NQN.into()], iqns: vec![IQN.into()], ..Host::default() }
}

fn nvme(change: impl FnOnce(&mut nvme::host::Config)) -> Config {
    let mut c = nvme::host::Config::new(NQN, [7; 16], "nqn.2026-01.org.example:target");
    c.queues = 2;
    c.depth = 8;
    change(&mut c);
    Config { peer: "127.0.0.1:4420".parse().unwrap(), target: Target::Nvme(c) }
}

fn iscsi(isid: u8, change: impl FnOnce(&mut iscsi::initiator::Config)) -> Config {
    let mut c = iscsi::initiator::Config::new(IQN, Some("iqn.2026-01.org.example:target"));
    c.isid[5] = isid;
    c.depth = 8;
    change(&mut c);
    Config { peer: "127.0.0.1:3260".parse().unwrap(), target: Target::Iscsi(c) }
}

fn plan(sessions: Vec<Config>) -> Plan {
    Plan { time: Duration::ZERO, ops_max: 400, read_back: true, ..Plan::new(sessions) }
}

type TestWorld = World<Load<PlainMemory>>;

fn world(seed: u64, plan: &Plan, host: Host, block: u32, blocks: u64) -> TestWorld {
    let memory = PlainMemory::new(0, MEMORY);
    let load = Load::new(memory, (STAGING_BYTES, MEMORY as u64 - STAGING_BYTES), 64);
    let protocol = match plan.sessions[0].target {
        Target::Nvme(_) => Protocol::Nvme,
        Target::Iscsi(_) => Protocol::Iscsi,
    };
    World::new(load, protocol, seed, Disk::new(block, blocks), crate::world::view(host, block, blocks))
}

/// Runs a plan to its report.
fn finish(world: &mut TestWorld, plan: Plan) -> Report {
    world.mail(Mail::Start(Box::new(plan)));
    let mut report = None;
    world.run(3_000_000, |w| {
        for mail in w.letters.drain(..) {
            match mail {
                Mail::Done(r) => report = Some(*r),
                Mail::Refused(why) => panic!("refused: {why:?}"),
                Mail::Start(_) | Mail::Stop | Mail::Progress(_) => {}
            }
        }
        report.is_some()
    });
    report.expect("the run ended")
}

fn good(report: &Report) {
    assert_eq!(report.end, End::Completed, "{report:?}");
    assert_eq!(report.errors, 0, "{report:?}");
    assert!(report.verified_blocks > 0, "{report:?}");
}

#[test]
fn nvme_load_is_verified_with_and_without_digests_and_flow_control() {
    for (seed, (digests, flow)) in
        [(false, true), (true, true), (true, false), (false, false)].iter().enumerate()
    {
        let config = nvme(|c| {
            c.header_digest = *digests;
            c.data_digest = *digests;
            c.flow_control = *flow;
        });
        let plan = plan(vec![config]);
        let mut w = world(seed as u64, &plan, host(), 4096, 512);
        let report = finish(&mut w, plan);
        good(&report);
        assert_eq!(report.total.ops, 400);
        assert_eq!((report.protocol, report.connections.len()), ("nvme", 2));
        assert!(report.connections.iter().all(|c| c.figures.ops > 100), "{report:?}");
        assert_eq!(w.io_queues, 2);
    }
}

#[test]
fn a_load_deeper_than_the_targets_queues_is_as_deep_as_they_are() {
    // The target's queues have 128 entries, so they hold 127 commands; with more it ends the connection.
    let run = |depth| {
        let plan = Plan { ops_max: 4000, ..plan(vec![nvme(|c| (c.queues, c.depth) = (2, depth))]) };
        finish(&mut world(3, &plan, host(), 4096, 4096), plan)
    };
    let whole = run(127);
    for (asked, granted) in [(1000, 127), (128, 127), (127, 127), (8, 8)] {
        let report = run(asked);
        good(&report);
        assert_eq!((report.depth, report.depth_asked, report.connections_open), (granted, asked, 2));
        assert_eq!((report.total.ops, report.reconnects), (4000, 0));
        // What is not granted does not wait at our end either: that would count as the target's latency.
        let longer = report.total.mean_us / whole.total.mean_us;
        assert!(granted < 127 || (0.8..1.25).contains(&longer), "{asked}: {longer} of the latency");
    }
}

#[test]
fn a_load_on_more_connections_than_the_target_grants_says_so() {
    let config = nvme(|c| (c.queues, c.depth) = (12, 2));
    let plan = plan(vec![config]);
    let report = finish(&mut world(4, &plan, host(), 4096, 512), plan);
    good(&report);
    assert_eq!((report.connections.len(), report.connections_open), (12, 8));
}

#[test]
fn a_load_that_thinks_pauses_and_its_latency_is_that_of_its_operations() {
    let config = || nvme(|c| (c.queues, c.depth) = (1, 1));
    let think = Duration::from_millis(10);
    let plan = |think| Plan { ops_max: 50, think, ..plan(vec![config()]) };
    let run = |plan: Plan| finish(&mut world(1, &plan, host(), 4096, 512), plan);
    let (eager, pensive) = (run(plan(Duration::ZERO)), run(plan(think)));
    good(&pensive);
    assert_eq!(pensive.total.ops, 50);
    let pauses = pensive.total.ops as f64 / pensive.total.iops - eager.total.ops as f64 / eager.total.iops;
    assert!((0.45..0.55).contains(&pauses), "50 pauses of 10 ms, all in all {pauses} s");
    assert!(pensive.total.mean_us < 2.0 * eager.total.mean_us, "{pensive:?}");
}

#[test]
fn nvme_sizes_from_one_sector_to_split_commands() {
    for (seed, (block, io)) in
        [(512, 512), (512, 7680), (4096, 8192), (4096, 65536), (512, 1 << 20), (4096, 4 << 20)]
            .iter()
            .enumerate()
    {
        let config = nvme(|c| (c.queues, c.depth, c.data_digest) = (1, 4, true));
        let ops_max = if *io > 1 << 18 { 24 } else { 200 };
        let plan = Plan { io_bytes: *io, ops_max, ..plan(vec![config]) };
        let mut w = world(seed as u64, &plan, host(), *block, (32 << 20) / u64::from(*block));
        let report = finish(&mut w, plan);
        good(&report);
        assert_eq!((report.total.ops, report.block_bytes), (ops_max, *block));
    }
}

#[test]
fn nvme_links_are_cut_and_commands_put_off_and_nothing_is_lost() {
    for seed in 0..6 {
        let plan = Plan { ops_max: 1500, pattern: Pattern::Sequential, ..plan(vec![nvme(|_| ())]) };
        let mut w = world(seed, &plan, host(), 4096, 256);
        w.cut_every = 700;
        w.not_ready_every = 40;
        let report = finish(&mut w, plan);
        good(&report);
        assert!(report.retries > 0 && report.reconnects > 0 && w.cuts > 0, "{report:?}");
        assert!(report.reconnects <= w.cuts);
    }
}

#[test]
fn a_disk_that_forgets_a_write_is_found_out() {
    let plan = plan(vec![nvme(|_| ())]);
    let mut w = world(3, &plan, host(), 4096, 64);
    w.mail(Mail::Start(Box::new(plan)));
    w.run(1_000_000, |w| w.disk.commands > 200);
    let zeroes = vec![0; 4096 * 4];
    w.disk.bytes[4096 * 8..4096 * 12].copy_from_slice(&zeroes);
    let mut report = None;
    w.run(1_000_000, |w| {
        report = w.letters.drain(..).find_map(|m| if let Mail::Done(r) = m { Some(r) } else { None });
        report.is_some()
    });
    let report = report.unwrap();
    assert!(report.mismatches > 0 && report.errors == report.mismatches, "{report:?}");
    assert_eq!(report.mismatch_examples[0].holds, Mismatch::Zeroes, "{report:?}");
}

#[test]
fn a_host_that_is_not_known_learns_why() {
    let plan = plan(vec![nvme(|c| c.host_nqn = "nqn.2026-01.org.example:unknown".into())]);
    let mut w = world(1, &plan, host(), 4096, 64);
    let report = finish(&mut w, plan);
    let End::Failed(RunFault::Down { peer, why: Down::Nvme(why) }) = report.end else { panic!("{report:?}") };
    assert_eq!(peer, "127.0.0.1:4420".parse().expect("an address"));
    let nvme::host::Error::Refused { what: "Connect", status } = why else { panic!("{why:?}") };
    assert_eq!(status.code(), nvme::host::StatusField::CONNECT_HOST);
}

#[test]
fn a_target_that_is_not_there_is_waited_for_and_then_given_up() {
    let mut plan = plan(vec![nvme(|_| ())]);
    plan.patience = Duration::from_secs(3);
    let mut w = world(1, &plan, host(), 4096, 64);
    w.deaf = true;
    let report = finish(&mut w, plan.clone());
    let peer = "127.0.0.1:4420".parse().expect("an address");
    let why = Down::Unreachable(base::NetError::Refused);
    assert_eq!(report.end, End::Failed(RunFault::Down { peer, why }));
    let since = w.now;
    w.mail(Mail::Start(Box::new(plan)));
    w.run(1_000_000, |w| w.now.since(since) > Duration::from_secs(1));
    w.deaf = false;
    let mut done = false;
    w.run(1_000_000, |w| {
        done |= w.letters.drain(..).any(|m| matches!(m, Mail::Done(r) if r.end == End::Completed));
        done
    });
}

#[test]
fn plans_that_cannot_work_are_refused_with_the_field() {
    let check = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan(vec![nvme(|_| ())]);
        change(&mut plan);
        let mut w = world(1, &plan, host(), 4096, 64);
        w.mail(Mail::Start(Box::new(plan)));
        let mut fault = None;
        w.run(1_000_000, |w| {
            for mail in w.letters.drain(..) {
                match mail {
                    Mail::Refused(why) => fault = Some(why),
                    Mail::Done(r) => match r.end {
                        End::Failed(RunFault::Plan(why)) => fault = Some(why),
                        end => panic!("{end:?}"),
                    },
                    Mail::Start(_) | Mail::Stop | Mail::Progress(_) => {}
                }
            }
            fault.is_some()
        });
        fault.expect("it was refused")
    };
    use PlanFault as F;
    assert_eq!(check(&|p| p.io_bytes = 1000), F::IoBytes { bytes: 1000 });
    assert_eq!(check(&|p| p.io_bytes = 512), F::IoBlock { bytes: 512, block_bytes: 4096 });
    assert_eq!(check(&|p| p.read_percent = 101), F::ReadPercent { percent: 101 });
    assert_eq!(check(&|p| p.region_at = 1 << 30), F::RegionSmall { bytes: 0, io_bytes: 4096 });
    let beyond = check(&|p| (p.region_at, p.region_bytes) = (4096, 1 << 40));
    assert!(matches!(beyond, F::RegionBeyond { at: 4096, .. }), "{beyond:?}");
    assert!(matches!(check(&|p| p.region_bytes = 512), F::RegionSmall { bytes: 512, .. }));
    assert_eq!(check(&|p| p.sessions = vec![nvme(|c| c.depth = 0)]), F::Depth { depth: 0 });
    let deep = check(&|p| p.sessions = vec![nvme(|c| (c.queues, c.depth) = (60, 1000))]);
    assert!(matches!(deep, F::Buffers { .. }), "{deep:?}");
    let wide = check(&|p| p.sessions = vec![nvme(|c| c.queues = 100)]);
    assert!(matches!(wide, F::Connections { wanted: 101, .. }), "{wide:?}");
}

#[test]
fn stop_ends_a_run_without_end_and_progress_comes_meanwhile() {
    let plan = Plan {
        ops_max: 0,
        read_back: false,
        progress_every: Duration::from_millis(1),
        ..plan(vec![nvme(|_| ())])
    };
    let mut w = world(1, &plan, host(), 4096, 64);
    w.mail(Mail::Start(Box::new(plan)));
    let (mut seen, mut stopped, mut report) = (0, false, None);
    w.run(1_000_000, |w| {
        for mail in std::mem::take(&mut w.letters) {
            match mail {
                Mail::Progress(p) => seen += u32::from(p.phase == "measuring" && p.ops > 0 && p.ready == 1),
                Mail::Done(r) => report = Some(r),
                Mail::Start(_) | Mail::Stop | Mail::Refused(_) => {}
            }
        }
        if seen > 3 && !stopped {
            stopped = true;
            w.mail(Mail::Stop);
        }
        report.is_some()
    });
    let report = report.unwrap();
    assert_eq!((report.end, report.errors), (End::Stopped, 0));
    assert!(report.total.p50_us > 0.0 && report.total.p999_us >= report.total.p50_us);
}

#[test]
fn a_window_of_two_latencies_gives_the_rate_of_a_long_one() {
    let run = |time: u64| {
        let (time, ramp) = (Duration::from_micros(time), Duration::from_millis(1));
        let sessions = vec![nvme(|c| (c.queues, c.depth) = (1, 64))];
        let base = plan(sessions);
        let plan = Plan { ops_max: 0, verify: false, read_back: false, prepare: false, time, ramp, ..base };
        finish(&mut world(1, &plan, host(), 4096, 512), plan).total
    };
    let long = run(20_000);
    let short = run(2 * long.p50_us as u64);
    assert!(short.iops > 0.8 * long.iops, "{} of {} IOPS", short.iops, long.iops);
}

#[test]
fn iscsi_load_is_verified_with_every_way_to_send_data() {
    for (seed, (digests, immediate, initial_r2t, first_burst)) in [
        (false, true, false, 65_536),
        (true, true, true, 65_536),
        (true, false, false, 8192),
        (false, false, true, 4096),
        (true, true, false, 1024),
    ]
    .iter()
    .enumerate()
    {
        let session = |isid| {
            iscsi(isid, |c| {
                c.header_digest = *digests;
                c.data_digest = *digests;
                c.immediate_data = *immediate;
                c.initial_r2t = *initial_r2t;
                c.first_burst = *first_burst;
            })
        };
        let plan = plan(vec![session(1), session(2)]);
        let mut w = world(seed as u64, &plan, host(), 512, 4096);
        let report = finish(&mut w, plan);
        good(&report);
        assert_eq!((report.total.ops, report.protocol), (400, "iscsi"));
        assert!(report.connections.iter().all(|c| c.figures.ops > 100), "{report:?}");
    }
}

#[test]
fn iscsi_sizes_from_one_sector_to_split_commands() {
    for (seed, (block, io)) in
        [(512, 512), (512, 7680), (4096, 65536), (512, 1 << 20), (4096, 4 << 20)].iter().enumerate()
    {
        let config = iscsi(1, |c| (c.depth, c.data_digest, c.max_burst) = (4, true, 131_072));
        let ops_max = if *io > 1 << 18 { 24 } else { 200 };
        let plan = Plan { io_bytes: *io, ops_max, ..plan(vec![config]) };
        let mut w = world(seed as u64, &plan, host(), *block, (32 << 20) / u64::from(*block));
        let report = finish(&mut w, plan);
        good(&report);
        assert_eq!((report.total.ops, report.block_bytes), (ops_max, *block));
    }
}

#[test]
fn iscsi_links_are_cut_and_commands_put_off_and_nothing_is_lost() {
    for seed in 0..6 {
        let sessions = vec![iscsi(1, |_| ()), iscsi(2, |_| ())];
        let plan = Plan { ops_max: 1500, pattern: Pattern::Sequential, ..plan(sessions) };
        let mut w = world(seed, &plan, host(), 4096, 256);
        w.cut_every = 700;
        w.not_ready_every = 40;
        let report = finish(&mut w, plan);
        good(&report);
        assert!(report.retries > 0 && report.reconnects > 0 && w.cuts > 0, "{report:?}");
    }
}

#[test]
fn iscsi_chap_in_both_directions_and_with_wrong_secrets() {
    use iscsi::initiator::Credential;
    let secret = |s: &str| Secret(s.as_bytes().to_vec());
    let known = Host {
        chap_secret: Some(secret("a secret of the host")),
        mutual_secret: Some(secret("a secret of the target")),
        ..host()
    };
    let run = |chap: Option<&str>, mutual: Option<&str>, md5: bool| {
        let config = iscsi(1, |c| {
            c.chap_md5_only = md5;
            c.chap = chap.map(|s| Credential { name: IQN.into(), secret: secret(s) });
            c.mutual = mutual
                .map(|s| Credential { name: "iqn.2026-01.org.example:target".into(), secret: secret(s) });
        });
        let plan = Plan { ops_max: 20, ..plan(vec![config]) };
        let mut w = world(1, &plan, known.clone(), 4096, 64);
        match finish(&mut w, plan).end {
            End::Completed => "in".to_string(),
            End::Stopped => "stopped".to_string(),
            End::Failed(RunFault::Down { why: Down::Iscsi(why), .. }) => format!("{why:?}"),
            End::Failed(why) => panic!("{why:?}"),
        }
    };
    for md5 in [false, true] {
        assert_eq!(run(Some("a secret of the host"), None, md5), "in");
        assert_eq!(run(Some("a secret of the host"), Some("a secret of the target"), md5), "in");
        assert_eq!(run(Some("a secret of the host"), Some("not its secret"), md5), "NotTheTarget");
        assert_eq!(run(Some("not the secret"), None, md5), "LoginRefused(513)");
    }
    assert_eq!(run(None, None, false), "LoginRefused(513)");
}
