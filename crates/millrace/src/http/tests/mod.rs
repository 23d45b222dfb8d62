//! The API over a real Unix socket, with a scripted head behind it.

mod access;
mod document;

use super::*;
use crate::client::Client;
use crate::failure::{Exit, Failure};
use api::Protocol;
use base::Uuid;
use base::machine::Shape;
use finding::{
    DaemonRight, DriveFault, LegCause, PoolCause, PoolDoubt, PoolNotice, PoolRefusal, Signature, StatusCause,
    SystemNotice, VolumeRefusal, WayBack,
};
use head::order::State;
use head::order::*;
use head::path::stages::STAGES;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

/// A served API whose head is a script; ends with the process.
pub struct Fake {
    /// The way to it.
    pub client: Client,
    /// Every order that came, but for `Status`.
    pub orders: Arc<Mutex<Vec<Order>>>,
    folder: tempfile::TempDir,
}

/// Few and short, so that a test sees them.
fn limits() -> Limits {
    let header = std::time::Duration::from_millis(500);
    Limits { connections: 4, header, ..Limits::default() }
}

/// Serves `script` at a socket of its own.
pub fn serve(script: impl Fn(&Order) -> Answered + Send + 'static, process: Process) -> Fake {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("api.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
    listener.set_nonblocking(true).expect("non-blocking");
    let orders: Arc<Mutex<Vec<Order>>> = Arc::default();
    let seen = Arc::clone(&orders);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let (door, mut calls) = Door::new();
            tokio::spawn(async move {
                while let Some((order, answer)) = calls.recv().await {
                    let reply = script(&order);
                    if order != Order::Status && !matches!(order, Order::Happened { .. }) {
                        seen.lock().expect("no panic").push(order);
                    }
                    let _ = answer.send(reply);
                }
            });
            let listener = tokio::net::UnixListener::from_std(listener).expect("listening");
            super::serve(listener, router(Api::new(door, Arc::new(process))), limits(), Local).await;
        });
    });
    Fake { client: Client::new(path).expect("a runtime"), orders, folder }
}

/// A head that does everything it is told and looks like `snapshot`.
pub fn obedient(order: &Order) -> Answered {
    Ok(match order {
        Order::Status => Reply::Snapshot(Box::new(snapshot())),
        Order::DriveList { .. } => Reply::Drives(drives()),
        Order::PoolImportable { .. } => Reply::Importable(importable()),
        Order::Events { since } => {
            Reply::Events(snapshot().events.into_iter().filter(|e| e.number >= *since).collect())
        }
        Order::PoolCreate { .. } | Order::VolumeCreate { .. } | Order::PoolImport { .. } => {
            Reply::Created { uuid: uuid(77), notices: vec![PoolNotice::DrivesBeingCleared.into()] }
        }
        _ => Reply::Done,
    })
}

/// An obedient head.
pub fn fake() -> Fake {
    serve(obedient, Process { state_dir: "/var/lib/millrace".into(), ..Default::default() })
}

fn uuid(n: u64) -> Uuid {
    Uuid::from_random(0x1111_2222_3333_4444 + n, 0x5555_6666_7777_8888)
}

fn spread(ns: u64) -> Times {
    let (p50_ns, p99_ns, p999_ns, max_ns) = (ns, 3 * ns, 9 * ns, 11 * ns);
    let mut buckets = [0; api::BUCKETS];
    buckets[api::BOUNDS_NS.partition_point(|bound| *bound < ns)] = 80_000;
    Times {
        p50_ns,
        p99_ns,
        p999_ns,
        max_ns,
        mean_ns: ns,
        timed: 12_400,
        total_ns: 80_000 * ns,
        total_timed: 80_000,
        buckets,
    }
}

fn stages(ns: [u64; STAGES]) -> Stages {
    let [admitted, volume, array, drive, replied] = ns.map(spread);
    Stages { all: spread(ns.iter().sum()), admitted, volume, array, drive, replied }
}

/// That the daemon may not lock its memory.
fn not_locked() -> Notice {
    SystemNotice::RightsMissing { rights: vec![DaemonRight::LockMemory { errno: 1 }], root: false }.into()
}

/// That of an array with such a drive.
fn late_leg() -> Cause {
    StatusCause::LegOfArray { leg: "/dev/nvme3n1".into(), why: timed_out().map(Box::new) }.into()
}

/// That of a drive that does not answer.
fn timed_out() -> Option<Cause> {
    Some(LegCause::failed(DriveFault::TimedOut).into())
}

fn drives() -> Vec<Drive> {
    let drive = |n: u64, state: State, cause: Option<Cause>| Drive {
        path: format!("/dev/nvme{n}n1"),
        uuid: Some(uuid(n)),
        kind: "block".into(),
        model: "SAMSUNG MZQL21T9".into(),
        serial: format!("S64GNE0R50{n}"),
        bytes: 1_920_383_410_176,
        block_bytes: 4096,
        pool: Some("tank".into()),
        role: DriveRole::Leg,
        state: Some(state),
        cause,
        errors: if state == State::Failed { 17 } else { 0 },
        counters: Counters {
            reads: 81_234_567 + n,
            read_bytes: 332_736_786_432,
            writes: 41_234_567,
            write_bytes: 168_896_786_432,
            flushes: 12,
            errors: 0,
        },
        read_times: Some(spread(84_000 + n)),
        write_times: (n != 3).then(|| spread(21_000)),
        ..Drive::default()
    };
    let mut all = vec![
        drive(0, State::Optimal, None),
        drive(1, State::Optimal, None),
        drive(2, State::Optimal, None),
        drive(3, State::Failed, timed_out()),
        drive(4, State::Optimal, None),
        drive(5, State::Rebuilding, None),
    ];
    all[1].shape = Some(api::Shape { latency_us: 5000, ..Default::default() });
    all.push(Drive {
        path: "/dev/sda".into(),
        kind: "block".into(),
        model: "QEMU HARDDISK".into(),
        bytes: 64 << 30,
        block_bytes: 512,
        role: DriveRole::Foreign,
        cause: Some(LegCause::DriveHolds { drive: "/dev/sda".into(), holds: Signature::Gpt }.into()),
        ..Drive::default()
    });
    all.push(Drive {
        path: "/dev/nvme7n1".into(),
        kind: "block".into(),
        bytes: 1_920_383_410_176,
        block_bytes: 512,
        role: DriveRole::Free,
        ..Drive::default()
    });
    all
}

fn importable() -> Vec<Importable> {
    vec![Importable {
        name: "old".into(),
        uuid: uuid(50),
        state: State::Offline,
        cause: Some(
            PoolCause::PoolNotImportable {
                why: Box::new(
                    PoolRefusal::PoolDoubtful {
                        pool: "old".into(),
                        doubts: vec![PoolDoubt::Unproven {
                            pool: "old".into(),
                            array: "mirror-0".into(),
                            missing: vec![uuid(51).to_string()],
                            current: vec!["/dev/sdx".into()],
                        }],
                    }
                    .into(),
                ),
            }
            .into(),
        ),
        reason: String::new(),
        next: None,
        released: false,
        found: vec!["/dev/sdx".into()],
        missing: vec![uuid(51).to_string()],
    }]
}

/// A head in some trouble.
pub fn snapshot() -> Status {
    let leg = |n: u64, state: State, cause: Option<Cause>| Leg {
        path: format!("/dev/nvme{n}n1"),
        uuid: uuid(n),
        state,
        cause,
        reason: String::new(),
        slow: false,
        replaces: None,
    };
    let mirror = |state: State, cause: Option<Cause>, legs: Vec<Leg>| Array {
        layout: ArrayLayout::Mirror,
        state,
        cause,
        reason: String::new(),
        bytes: 1_919_846_539_264,
        legs,
        region_bytes: 64 << 20,
        regions_dirty: 3,
        regions: 28_608,
        epoch: 7,
        resync: None,
        warm_writes: 1_234_567,
        cold_writes: 40,
        bitmap_sets: 30,
        bitmap_clears: 2_469,
        bitmap_wait_ns: 8_400_000,
        hedged_reads: 0,
        hedged_reads_won: 0,
    };
    let mut rebuilding =
        mirror(State::Rebuilding, None, vec![leg(4, State::Optimal, None), leg(5, State::Rebuilding, None)]);
    rebuilding.resync = Some(Resync {
        leg: Some(1),
        partial: true,
        done_bytes: 1_288_490_188,
        total_bytes: 3_006_477_107,
        rate: 812_000_000,
        seconds_left: Some(130),
    });
    let counters = Counters {
        reads: 12_345_678,
        read_bytes: 50_567_897_088,
        writes: 2_345_678,
        write_bytes: 9_607_897_088,
        flushes: 120,
        errors: 0,
    };
    let volume = |n: u32, name: &str, bytes: u64, exports: Vec<Exported>| Volume {
        name: format!("tank/{name}"),
        uuid: uuid(100 + u64::from(n)),
        nguid: format!("{n:02x}").repeat(16),
        naa: format!("naa.{}", format!("{:02x}", 0x30 + n).repeat(8)),
        nsid: n,
        bytes,
        block_bytes: 4096,
        state: State::Degraded,
        runs: 1,
        space_bytes: 412_316_860_416,
        exports,
        iops_max: 0,
        mbps_max: 0,
        weight: 100,
        capped: 0,
        counters,
        read_times: (n == 1).then(|| stages([600, 0, 400, 84_000, 9_400])),
        write_times: (n == 1).then(|| stages([31_000, 0, 1_100, 25_000, 0])),
    };
    let exported = |lun: u16, host: &str| Exported {
        host: Some(host.into()),
        names: vec![format!("iqn.1998-01.com.vmware:{host}")],
        lun,
    };
    let host = |name: &str, authenticated: bool, exports: Vec<HostExport>| Host {
        name: name.into(),
        nqns: vec![format!("nqn.2014-08.org.nvmexpress:uuid:{}", uuid(200))],
        iqns: vec![format!("iqn.1998-01.com.vmware:{name}")],
        authenticated,
        mutual: authenticated,
        exports,
        connections: 5,
        ..Host::default()
    };
    let portal = |protocol, address: &str, connections| Portal {
        protocol,
        address: address.parse().expect("an address"),
        listening: true,
        cause: None,
        reason: String::new(),
        connections,
        head: None,
        served_by: None,
        prefix: None,
        interface: None,
        on: None,
    };
    let event = |number, at, weight, what: &str, message: &str| api::Event {
        number,
        at: Time(at),
        monotonic_ms: Some(273_845_000),
        weight,
        head: None,
        what: what.into(),
        event: head::order::Event::from_line(weight, message),
        message: String::new(),
    };
    let at = 1_795_224_873;
    Status {
        at: Time(at),
        uptime_seconds: 273_845,
        system: SystemInfo {
            nqn: format!("nqn.2014-08.org.nvmexpress:uuid:{}", uuid(900)),
            iqn: "iqn.2026-01.org.millrace:9f1c0a52".into(),
            uuid: uuid(900),
            serial: "MR9F1C0A52".into(),
            model: "Millrace".into(),
            firmware: "0.1.0".into(),
        },
        health: State::Degraded,
        reasons: vec![Reason::new(
            State::Degraded,
            "pool tank",
            StatusCause::LegNotOptimal {
                leg: "/dev/nvme3n1".into(),
                mirror: "mirror-1".into(),
                why: timed_out().map(Box::new),
                no_spare_fits: vec![],
                help: Some(WayBack::Return { leg: "/dev/nvme3n1".into() }),
            },
        )],
        drives: drives().into_iter().take(6).collect(),
        pools: vec![Pool {
            scrub: head::order::Scrub {
                running: true,
                done_bytes: 1_200_000_000_000,
                total_bytes: 5_759_539_617_792,
                rate: 412_000_000,
                seconds_left: Some(11_000),
                differed_bytes: 8192,
                ..Default::default()
            },
            spares: vec![
                head::order::Spare {
                    path: "/dev/nvme8n1".into(),
                    uuid: uuid(8),
                    bytes: 1_920_383_410_176,
                    ready: true,
                    cause: None,
                    reason: String::new(),
                    fit: None,
                    fits: String::new(),
                },
                head::order::Spare {
                    path: "/dev/nvme9n1".into(),
                    uuid: uuid(9),
                    bytes: 0,
                    ready: false,
                    cause: Some(LegCause::DriveNotFound.into()),
                    reason: String::new(),
                    fit: None,
                    fits: String::new(),
                },
            ],
            name: "tank".into(),
            uuid: uuid(10),
            state: State::Degraded,
            cause: Some(
                StatusCause::ArrayNotOptimal { array: "mirror-1".into(), why: Some(Box::new(late_leg())) }
                    .into(),
            ),
            reason: String::new(),
            no_spare: false,
            chunk_bytes: 65_536,
            bytes: 5_759_539_617_792,
            used_bytes: 549_755_813_888,
            freeing_bytes: 0,
            clearing: None,
            block_bytes: 4096,
            zones: vec![Zone {
                bytes: 5_759_539_617_792,
                weights: [0, 1, 2].map(|array| ZoneWeight { array, weight: 1 }).into(),
            }],
            arrays: vec![
                mirror(
                    State::Optimal,
                    None,
                    vec![leg(0, State::Optimal, None), leg(1, State::Optimal, None)],
                ),
                mirror(
                    State::Degraded,
                    Some(late_leg()),
                    vec![leg(2, State::Optimal, None), leg(3, State::Failed, timed_out())],
                ),
                rebuilding,
            ],
        }],
        volumes: vec![
            volume(1, "vm1", 400 << 30, vec![exported(0, "esx1"), exported(0, "esx2")]),
            volume(2, "scratch", 112 << 30, vec![]),
        ],
        hosts: vec![
            host("esx1", true, vec![HostExport { volume: "tank/vm1".into(), nsid: 1, lun: 0 }]),
            host("esx2", false, vec![HostExport { volume: "tank/vm1".into(), nsid: 1, lun: 0 }]),
        ],
        portals: vec![
            portal(Protocol::Nvme, "10.0.0.1:4420", 8),
            portal(Protocol::Nvme, "10.0.1.1:4420", 0),
            portal(Protocol::Discovery, "10.0.0.1:8009", 1),
            portal(Protocol::Iscsi, "10.0.0.1:3260", 2),
        ],
        connections: vec![
            Connection {
                head: None,
                host: Some("esx1".into()),
                protocol: Protocol::Nvme,
                peer: "10.0.0.50:41234".parse().expect("an address"),
                shard: 0,
                session: Some(1),
                queue: 1,
                commands: 6_123_456,
                in_flight: 32,
                header_digest: true,
                data_digest: true,
            },
            Connection {
                head: None,
                host: None,
                protocol: Protocol::Iscsi,
                peer: "10.0.0.51:41235".parse().expect("an address"),
                shard: 1,
                session: None,
                queue: 0,
                commands: 0,
                in_flight: 0,
                header_digest: false,
                data_digest: false,
            },
        ],
        shards: (0..2)
            .map(|shard| head::order::Shard {
                head: None,
                shard,
                connections: 5,
                commands: 7_345_678,
                requests: 32,
                drive_ops: 40,
                buffer_bytes: 4 << 20,
                buffer_bytes_max: 512 << 20,
                protocol_errors: u64::from(shard),
                last_protocol_fault: (shard == 1).then_some(base::NvmeFault::PduType.into()),
                last_protocol_error: String::new(),
                longest_turn_us: 0,
                long_turns: 0,
            })
            .collect(),
        events: vec![
            event(118, at - 4000, Weight::Note, "host esx1", "connected by nvme from 10.0.0.50"),
            event(119, at - 300, Weight::Error, "drive /dev/nvme3n1", "failed: did not answer within 5 s"),
            event(
                120,
                at - 30,
                Weight::Warning,
                "drive /dev/nvme5n1",
                "came back; partial resync of 2.8G begins",
            ),
        ],
        notices: vec![api::Noticed { notice: not_locked(), message: String::new() }],
        ..Status::default()
    }
}

/// A head that leads a system: `left`, and `right`, which follows.
pub fn system_view() -> head::peer::SystemView {
    use ::cluster::{HeadNo, HeadRow, HeadState, Part, SystemRecord};
    let row = |name: &str| HeadRow {
        state: HeadState::In,
        since: 1,
        life: 7,
        certificate: [0; 32],
        name: name.into(),
    };
    head::peer::SystemView {
        me: HeadNo::A,
        part: Part::Leader,
        record: SystemRecord {
            system: uuid(900),
            epoch: 3,
            latest: [true, true],
            changed: 0,
            features: 0,
            leader: HeadNo::A,
            heads: [row("left"), row("right")],
            voters: vec![],
        },
        linked: true,
        refused: None,
        heartbeats: Default::default(),
        reaches: (0, 0),
        drives: 6,
        drives_reached: [Some(6), Some(6)],
        unreached: vec![],
        blind: false,
        old_directory: false,
        out: None,
        other_lacks: None,
        unsent: None,
        lets_in_after: None,
        shut_off: None,
        late: vec![],
        fences: vec![],
        addresses: [None, None],
    }
}

/// A raw request; the answer's status line and body.
fn raw(fake: &Fake, request: &str) -> (u16, String) {
    let mut stream = UnixStream::connect(fake.client.socket()).expect("connected");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let status = answer.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status line");
    (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_string()).unwrap_or_default())
}

fn ask(fake: &Fake, method: &str, path: &str, body: &str) -> (u16, api::Error) {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, body) = raw(fake, &request);
    let parsed: api::ErrorBody =
        serde_json::from_str(&body).unwrap_or_else(|e| panic!("{path}: {e}: {body}"));
    (status, parsed.error)
}

#[test]
fn the_status_of_the_head_and_of_the_process_are_one() {
    let process = Process {
        state_dir: "/s".into(),
        notices: vec![not_locked()],
        held_back: Some(words::reason(api::Reason::new(
            api::State::Offline,
            "head",
            PoolCause::PoolHeldBack { pool: "tank".into(), crashes: 3 },
        ))),
        ..Default::default()
    };
    let fake = serve(obedient, process);
    let status: api::Status = fake.client.get("/status").expect("answered");
    assert_eq!((status.health, status.reasons.len()), (api::State::Offline, 2));
    assert!(status.daemon.management_only && status.daemon.pid == std::process::id());
    assert!(status.notices.iter().any(|n| n.message.contains("lock its memory")));
    // An import by hand ends it.
    let body = api::PoolImport { pool: Some("tank".into()), ..Default::default() };
    let _: api::Created = fake.client.post("/imports", &body).expect("imported");
    let status: api::Status = fake.client.get("/status").expect("answered");
    assert_eq!((status.health, status.daemon.management_only), (api::State::Degraded, false));
}

#[test]
fn every_request_becomes_its_order() {
    let fake = fake();
    let c = &fake.client;
    let arrays = vec![api::ArraySpec {
        layout: api::ArrayLayout::Mirror,
        drives: vec!["/dev/a".into(), "/dev/b".into()],
        weight: Some(2),
    }];
    let create = api::PoolCreate {
        name: "tank".into(),
        arrays: arrays.clone(),
        chunk_bytes: Some(65536),
        block_bytes: None,
        measure: false,
        force: true,
    };
    let created: api::Created = c.post("/pools", &create).expect("created");
    assert!(created.uuid.is_some());
    c.act("/drives/%2Fdev%2Fsdb/fail", &serde_json::json!({})).expect("done");
    c.act("/drives/%2Fdev%2Fsdb/fail?force=true", &serde_json::json!({})).expect("done");
    c.act("/drives/%2Fdev%2Fsdb/return", &serde_json::json!({})).expect("done");
    c.act("/drives/%2Fdev%2Fsdb/restore-label?yes=true", &serde_json::json!({})).expect("done");
    c.put("/drives/%2Fdev%2Fsdb/shape", &api::Shape { hang: true, ..Default::default() }).expect("done");
    c.delete("/pools/tank?force=true").expect("done");
    c.patch("/volumes/tank/vm1", &api::VolumeSet { bytes: Some(8192), ..Default::default() }).expect("done");
    let caps =
        api::VolumeSet { iops_max: Some(5000), mbps_max: Some(0), weight: Some(300), ..Default::default() };
    c.patch("/volumes/tank/vm1", &caps).expect("done");
    c.delete("/exports/tank/vm1/esx1?disconnect=true").expect("done");
    c.delete("/portals/iscsi/%5Bfd00%3A%3A1%5D%3A3260").expect("done");
    let set = api::HostSet { chap_secret: Some(None), ..Default::default() };
    c.patch("/hosts/esx1", &set).expect("done");
    let spec = ArraySpec {
        layout: ArrayLayout::Mirror,
        drives: vec!["/dev/a".into(), "/dev/b".into()],
        weight: Some(2),
    };
    let drive = || "/dev/sdb".to_string();
    let expected = [
        Order::PoolCreate {
            name: "tank".into(),
            arrays: vec![spec],
            chunk_bytes: Some(65536),
            block_bytes: None,
            measure: false,
            force: true,
        },
        Order::DriveFail { drive: drive(), force: false },
        Order::DriveFail { drive: drive(), force: true },
        Order::DriveReturn { drive: drive() },
        Order::LabelRestore { drive: drive(), yes: true, force: false },
        Order::DriveShape { drive: drive(), shape: Shape { hang: true, ..Shape::default() } },
        Order::PoolDestroy { pool: "tank".into(), force: true, disconnect: false },
        Order::VolumeResize { volume: "tank/vm1".into(), bytes: 8192, force: false, disconnect: false },
        Order::VolumeCaps {
            volume: "tank/vm1".into(),
            caps: VolumeCaps { iops_max: Some(5000), mbps_max: Some(0), weight: Some(300) },
        },
        Order::Unexport { volume: "tank/vm1".into(), host: "esx1".into(), disconnect: true },
        Order::PortalRemove {
            protocol: Protocol::Iscsi.into(),
            address: "[fd00::1]:3260".parse().expect("an address"),
            disconnect: false,
        },
        Order::HostSet {
            name: "esx1".into(),
            settings: HostSettings { chap_secret: Some(None), ..Default::default() },
            disconnect: false,
        },
    ];
    assert_eq!(*fake.orders.lock().expect("no panic"), expected);
}

#[test]
fn a_secret_can_be_asked_about_and_is_not_shown() {
    let script = |order: &Order| match order {
        Order::HostCheck { chap_secret, .. } => {
            let right = *chap_secret == Some(base::view::Secret(b"a secret of esx1".to_vec()));
            Ok(Reply::HostChecked(api::HostChecked { chap_secret: right, mutual_secret: false }))
        }
        other => obedient(other),
    };
    let fake = serve(script, Process::default());
    let ask = |secret: &str| {
        let check = api::HostCheck { chap_secret: Some(api::Secret(secret.into())), mutual_secret: None };
        fake.client.post::<api::HostChecked>("/hosts/esx1/check", &check).expect("an answer").chap_secret
    };
    assert!(ask("a secret of esx1") && !ask("another secret of esx1"));
}

#[test]
fn a_portal_belongs_to_the_head_that_is_named() {
    let script = |order: &Order| match order {
        Order::System => Ok(Reply::System(Box::new(system_view()))),
        other => obedient(other),
    };
    let fake = serve(script, Process::default());
    let add = |head: &str, more: &str| {
        let body = format!(r#"{{"protocol":"nvme","address":"10.1.0.5:4420","head":"{head}"{more}}}"#);
        ask(&fake, "POST", "/api/v1/portals", &body)
    };
    for (name, number) in [("a", 0), ("b", 1), ("right", 1)] {
        let body = api::PortalAdd {
            protocol: api::Protocol::Nvme,
            address: "10.1.0.5:4420".into(),
            prefix: None,
            interface: None,
            head: Some(name.into()),
        };
        let _: api::Created = fake.client.post("/portals", &body).expect("made");
        let orders = fake.orders.lock().expect("no panic");
        let made = orders.iter().rev().find(|o| matches!(o, Order::PortalAdd { .. }));
        assert!(
            matches!(made, Some(Order::PortalAdd { head: Some(n), .. }) if *n == number),
            "{name}: {made:?}"
        );
    }
    let (status, error) = add("c", "");
    assert_eq!((status, error.field.as_deref()), (404, Some("head")), "{error:?}");
    assert_eq!(
        error.message,
        "head: there is no head c in this system, but head a (left) and head b (right)"
    );
    assert_eq!(error.next.as_deref(), Some("millrace head ls"));
    let (status, error) = add("b", r#","prefix":24"#);
    assert_eq!((status, error.field.as_deref()), (422, Some("head")), "{error:?}");
    assert!(error.message.contains("moves to the head that leads"), "{error:?}");
}

#[test]
fn a_refusal_keeps_its_kind_field_and_advice() {
    let hosts = vec![finding::ConnectedHost { host: "esx1".into(), connections: 3 }];
    let in_use = VolumeRefusal::UnexportInUse { volume: "tank/a".into(), host: "esx1".into(), hosts };
    let all: [(Refusal, u16); 7] = [
        (SystemRefusal::HeadAlone.into(), 404),
        (SystemRefusal::HeadInSystem.into(), 409),
        (in_use.into(), 409),
        (VolumeRefusal::SizeZero.into(), 422),
        (SystemRefusal::Stopping.into(), 503),
        (VolumeRefusal::SpaceTooFragmented.into(), 507),
        (SystemRefusal::FirstDecisionFailed.into(), 500),
    ];
    for (refusal, status) in all {
        let refusal = refusal.about("bytes");
        let said = words::refusal(&refusal);
        let kind = refusal.kind();
        let fake = serve(move |_: &Order| Err(refusal.clone()), Process::default());
        let (got, error) = ask(&fake, "POST", "/api/v1/volumes", r#"{"name":"tank/a","bytes":1}"#);
        assert_eq!((got, error.field.as_deref()), (status, Some("bytes")), "{kind:?}");
        assert_eq!(error, said, "with its code and fields");
        let body = api::VolumeCreate { name: "tank/a".into(), bytes: 1, block_bytes: None };
        let failure: Failure = fake.client.post::<api::Created>("/volumes", &body).expect_err("refused");
        let exit = if kind == ErrorKind::Internal { Exit::Internal } else { Exit::Refused };
        assert_eq!(failure.exit, exit);
        let next = said.next.expect("each has one");
        assert_eq!(failure.to_string(), format!("error: {}\nNext: {next}", said.message));
    }
}

#[test]
fn bad_requests_get_an_answer_that_names_what_is_wrong() {
    let fake = fake();
    let check = |method: &str, path: &str, body: &str, status: u16, field: Option<&str>| {
        let (got, error) = ask(&fake, method, path, body);
        assert_eq!(
            (got, error.field.as_deref()),
            (status, field),
            "{method} {path} {body}: {}",
            error.message
        );
        assert!(error.next.is_some(), "{method} {path} {body}: {} has no next step", error.message);
    };
    check("GET", "/api", "", 404, None);
    check("POST", "/", "", 404, None);
    check("GET", "/api/v1/nothing", "", 404, None);
    check("GET", "/api/v1/pools/none", "", 404, Some("pool"));
    check("GET", "/api/v1/volumes/tank/none", "", 404, Some("volume"));
    check("GET", "/api/v1/hosts/none", "", 404, Some("host"));
    check("GET", "/api/v1/drives/none", "", 404, Some("drive"));
    check("PUT", "/api/v1/pools", "", 405, None);
    check("POST", "/api/v1/pools", "{", 400, None);
    check("POST", "/api/v1/pools", "", 422, Some("name"));
    check("POST", "/api/v1/volumes", r#"{"name":"tank/a","size":1}"#, 422, Some("size"));
    check("POST", "/api/v1/volumes", r#"{"name":"vm1","bytes":1}"#, 422, Some("name"));
    check("POST", "/api/v1/volumes", r#"{"name":"tank/a","bytes":18446744073709551616}"#, 422, Some("bytes"));
    check("POST", "/api/v1/portals", r#"{"protocol":"smb","address":"1.2.3.4:5"}"#, 422, Some("protocol"));
    check("POST", "/api/v1/portals", r#"{"protocol":"nvme","address":"1.2.3.4"}"#, 422, Some("address"));
    let bad = r#"{"protocol":"nvme","address":"10.1.0.5:4420","interface":"eth1"}"#;
    check("POST", "/api/v1/portals", bad, 422, Some("interface"));
    let bad = r#"{"protocol":"nvme","address":"10.1.0.5:4420","prefix":24,"interface":"a/b"}"#;
    check("POST", "/api/v1/portals", bad, 422, Some("interface"));
    check("PATCH", "/api/v1/volumes/tank/vm1", "{}", 422, None);
    check("PATCH", "/api/v1/volumes/tank/vm1", r#"{"bytes":1,"name":"a"}"#, 422, Some("name"));
    check("DELETE", "/api/v1/pools/tank?forse=true", "", 422, Some("forse"));
    check("DELETE", "/api/v1/pools/tank?force=maybe", "", 422, Some("force"));
    check("GET", "/api/v1/events?since=-1", "", 422, Some("since"));
    check("GET", "/api/v1/drives?look=%ff", "", 400, None);
    for path in ["/api/v1/pools/%ff", "/api/v1/drives/%2Fdev%2", "/api/v1/hosts/%zz", "/%ff", "/metrics/%ff"]
    {
        check("GET", path, "", 400, None);
    }
    check("DELETE", "/api/v1/volumes/tank/%ff", "", 400, None);
    check("POST", "/api/v1/pools", &"x".repeat(2 << 20), 400, None);
    assert!(fake.orders.lock().expect("no panic").iter().all(|o| matches!(o, Order::DriveList { .. })));
}

#[test]
fn a_head_that_is_gone_is_told_as_not_ready() {
    let fake = serve(|_| panic!("the head died"), Process::default());
    for _ in 0..2 {
        let failure = fake.client.get::<api::Status>("/status").expect_err("dead");
        assert_eq!(failure.exit, Exit::Refused);
        assert!(failure.message.contains("stopping"), "{failure}");
    }
}

#[test]
fn events_wait_until_something_happens() {
    let quiet = serve(
        |order| match order {
            Order::Events { .. } => Ok(Reply::Events(Vec::new())),
            other => obedient(other),
        },
        Process::default(),
    );
    let begin = std::time::Instant::now();
    let events: api::Events = quiet.client.get("/events?since=5&wait=1").expect("answered");
    assert!(begin.elapsed() >= std::time::Duration::from_millis(900));
    assert_eq!((events.events.len(), events.next), (0, 5));
    let events: api::Events = fake().client.get("/events?since=119&wait=60").expect("answered");
    assert_eq!((events.events.len(), events.next), (2, 121));
}
#[test]
fn who_says_nothing_is_sent_away_and_the_others_are_served() {
    let fake = fake();
    let open = |text: &[u8]| {
        let mut stream = UnixStream::connect(fake.client.socket()).expect("connected");
        stream.write_all(text).expect("sent");
        stream
    };
    // More half-open connections than there are places.
    let mut silent: Vec<UnixStream> =
        (0..20).map(|n| open(if n % 2 == 0 { b"" } else { b"GET /api" })).collect();
    let status: api::Status = fake.client.get("/status").expect("served all the same");
    assert_eq!(status.health, api::State::Degraded);
    for stream in &mut silent {
        stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("set");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("closed, not left open");
    }
    // Garbage and a header without end get an answer or are closed.
    for text in [&b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n"[..], &[b'x'; 100_000][..]] {
        let mut stream = UnixStream::connect(fake.client.socket()).expect("connected");
        let _ = stream.write_all(text);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
}
