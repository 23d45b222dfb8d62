//! Between the Steward's words and the API's: the only place that knows both.

use crate::words;
use base::codec::hex;
use head::order;
use head::path::stages::Stage;

/// A time as text.
pub fn time(unix_seconds: u64) -> String {
    String::from_utf8(uring::process::utc(unix_seconds).to_vec()).expect("digits and letters")
}

fn counters(c: order::Counters) -> api::Counters {
    let order::Counters { reads, read_bytes, writes, write_bytes, flushes, errors } = c;
    api::Counters { reads, read_bytes, writes, write_bytes, flushes, errors }
}

fn times(s: order::Spread) -> api::Times {
    let order::Spread { p50_ns, p99_ns, p999_ns, max_ns, mean_ns, timed, total_ns, total_timed } = s;
    api::Times { p50_ns, p99_ns, p999_ns, max_ns, mean_ns, timed, total_ns, total_timed }
}

fn stages(s: order::Stages) -> api::Stages {
    let of = |stage: Stage| times(s.parts[stage as usize]);
    api::Stages {
        all: times(s.all),
        admitted: of(Stage::Admitted),
        volume: of(Stage::Volume),
        array: of(Stage::Array),
        drive: of(Stage::Drive),
        replied: of(Stage::Replied),
    }
}

/// What is spoken at a portal.
pub fn protocol(p: base::view::Protocol) -> api::Protocol {
    match p {
        base::view::Protocol::Nvme => api::Protocol::Nvme,
        base::view::Protocol::Discovery => api::Protocol::Discovery,
        base::view::Protocol::Iscsi => api::Protocol::Iscsi,
    }
}

/// The same, for an order.
pub fn to_protocol(p: api::Protocol) -> base::view::Protocol {
    match p {
        api::Protocol::Nvme => base::view::Protocol::Nvme,
        api::Protocol::Discovery => base::view::Protocol::Discovery,
        api::Protocol::Iscsi => base::view::Protocol::Iscsi,
    }
}

/// A drive's artificial behaviour, for an order.
pub fn to_shape(s: &api::Shape) -> base::machine::Shape {
    base::machine::Shape {
        latency_us: s.latency_us,
        iops_max: s.iops_max,
        mbps_max: s.mbps_max,
        read_errors_ppm: s.read_errors_ppm,
        write_errors_ppm: s.write_errors_ppm,
        hang: s.hang,
        gone: s.gone,
        uplink: s.uplink,
        uplink_mbps: s.uplink_mbps,
        uplink_share: s.uplink_share,
    }
}

fn shape(s: &base::machine::Shape) -> api::Shape {
    api::Shape {
        latency_us: s.latency_us,
        iops_max: s.iops_max,
        mbps_max: s.mbps_max,
        read_errors_ppm: s.read_errors_ppm,
        write_errors_ppm: s.write_errors_ppm,
        hang: s.hang,
        gone: s.gone,
        uplink: s.uplink,
        uplink_mbps: s.uplink_mbps,
        uplink_share: s.uplink_share,
    }
}

/// A secret, for an order.
pub fn to_secret(s: api::Secret) -> base::view::Secret {
    base::view::Secret(s.0.into_bytes())
}

/// Arrays of a pool to be, for an order.
pub fn to_arrays(arrays: Vec<api::ArraySpec>) -> Vec<order::ArraySpec> {
    let one = |a: api::ArraySpec| order::ArraySpec {
        mirror: a.layout == api::ArrayLayout::Mirror,
        drives: a.drives,
        weight: a.weight,
    };
    arrays.into_iter().map(one).collect()
}

/// A drive.
pub fn drive(d: order::Drive) -> api::Drive {
    api::Drive {
        path: d.path,
        uuid: (!d.uuid.is_nil()).then(|| d.uuid.to_string()),
        kind: d.kind,
        model: d.model,
        serial: d.serial,
        bytes: d.bytes,
        block_bytes: d.block_bytes,
        volatile_cache: d.volatile_cache,
        pool: d.pool,
        role: match d.role {
            order::DriveRole::Leg => api::DriveRole::Leg,
            order::DriveRole::Missing => api::DriveRole::Missing,
            order::DriveRole::Spare => api::DriveRole::Spare,
            order::DriveRole::Free => api::DriveRole::Free,
            order::DriveRole::Foreign => api::DriveRole::Foreign,
            order::DriveRole::Labelled => api::DriveRole::Labelled,
            order::DriveRole::Unusable => api::DriveRole::Unusable,
        },
        state: d.state,
        reason: d.reason,
        slow: d.slow,
        errors: d.errors,
        counters: counters(d.counters),
        read_times: d.reads.map(times),
        write_times: d.writes.map(times),
        shape: d.shape.as_ref().map(shape),
    }
}

/// A pool.
pub fn pool(p: order::Pool) -> api::Pool {
    let zone = |z: order::Zone| api::Zone {
        bytes: z.bytes,
        weights: z.weights.into_iter().map(|(array, weight)| api::ZoneWeight { array, weight }).collect(),
    };
    api::Pool {
        name: p.name,
        uuid: p.uuid.to_string(),
        state: p.state,
        reason: p.reason,
        chunk_bytes: p.chunk_bytes,
        bytes: p.bytes,
        used_bytes: p.used_bytes,
        resting_bytes: p.resting_bytes,
        clearing: p.clearing.map(|c| api::Clearing {
            left_bytes: c.left_bytes,
            rate: c.rate,
            seconds_left: c.eta,
        }),
        block_bytes: p.block_bytes,
        zones: p.zones.into_iter().map(zone).collect(),
        arrays: p.arrays.into_iter().map(array).collect(),
        scrub: scrub(p.scrub),
        spares: p.spares.into_iter().map(spare).collect(),
    }
}

fn spare(s: order::Spare) -> api::Spare {
    let order::Spare { path, uuid, bytes, ready, reason, fits } = s;
    api::Spare { path, uuid: uuid.to_string(), bytes, ready, reason, fits }
}

fn scrub(s: order::Scrub) -> api::Scrub {
    let finding = |f: order::Finding| api::Finding {
        volume: f.volume,
        at: f.at,
        bytes: f.bytes,
        array: f.array,
        what: words::difference(&f.what),
        repaired: f.repaired,
    };
    api::Scrub {
        running: s.running,
        repair: s.repair,
        done_bytes: s.done_bytes,
        total_bytes: s.total_bytes,
        rate: s.rate,
        seconds_left: s.eta,
        last_ended: s.last_ended.map(time),
        every_days: s.every_days,
        schedule_repairs: s.schedule_repairs,
        differed_bytes: s.differed_bytes,
        repaired_bytes: s.repaired_bytes,
        unreadable_bytes: s.unreadable_bytes,
        findings: s.findings.into_iter().map(finding).collect(),
        places: s.places,
    }
}

/// What to do about scrubs.
pub fn to_scrub(action: api::PoolScrub) -> order::ScrubAction {
    match action {
        api::PoolScrub::Start { repair, prefer } => order::ScrubAction::Start { repair, prefer },
        api::PoolScrub::Stop => order::ScrubAction::Stop,
        api::PoolScrub::Clear => order::ScrubAction::Clear,
        api::PoolScrub::Schedule { days, repair } => order::ScrubAction::Schedule { days, repair },
    }
}

fn array(a: order::Array) -> api::Array {
    let leg = |l: order::Leg| api::Leg {
        path: l.path,
        uuid: l.uuid.to_string(),
        state: l.state,
        reason: l.reason,
        slow: l.slow,
        replaces: l.replaces,
    };
    let resync = |r: order::Resync| api::Resync {
        leg: r.leg,
        partial: r.partial,
        done_bytes: r.done_bytes,
        total_bytes: r.total_bytes,
        rate: r.rate,
        seconds_left: r.eta,
    };
    api::Array {
        layout: if a.mirror { api::ArrayLayout::Mirror } else { api::ArrayLayout::Single },
        state: a.state,
        reason: a.reason,
        bytes: a.bytes,
        legs: a.legs.into_iter().map(leg).collect(),
        region_bytes: a.region_bytes,
        regions_dirty: a.regions_dirty,
        regions: a.regions,
        epoch: a.epoch,
        resync: a.resync.map(resync),
        warm_writes: a.warm_writes,
        cold_writes: a.cold_writes,
        bitmap_sets: a.bitmap_sets,
        bitmap_clears: a.bitmap_clears,
        cold_wait_ns: a.cold_wait_ns,
        hedges_sent: a.hedges_sent,
        hedges_won: a.hedges_won,
    }
}

/// A pool that could be imported.
pub fn importable(p: order::Importable) -> api::Importable {
    let said = p.cause.as_ref().map(words::cause);
    let (reason, next) = said.map_or((String::new(), None), |said| (said.message, said.next));
    let import = (!p.name.is_empty()).then(|| format!("millrace pool import {}", p.name));
    api::Importable {
        name: p.name,
        cause: p.cause,
        uuid: p.uuid.to_string(),
        state: p.state,
        reason,
        next: next.or(import),
        released: p.released,
        found: p.found,
        missing: p.missing.iter().map(|u| u.to_string()).collect(),
    }
}

/// A volume.
pub fn volume(v: order::Volume) -> api::Volume {
    let exported = |e: order::Exported| api::Exported { host: e.host, names: e.names, lun: e.lun };
    // As hosts read it (VPD page 83h): of an NAA that is not of type 6 only 8 bytes are meant.
    let naa = if v.naa[0] >> 4 == 6 { &v.naa[..] } else { &v.naa[..8] };
    api::Volume {
        name: v.name,
        uuid: v.uuid.to_string(),
        nguid: hex(&v.nguid),
        naa: format!("naa.{}", hex(naa)),
        nsid: v.nsid,
        bytes: v.bytes,
        block_bytes: v.block_bytes,
        state: v.state,
        runs: v.runs,
        space_bytes: v.space_bytes,
        exports: v.exports.into_iter().map(exported).collect(),
        iops_max: v.iops_max,
        mbps_max: v.mbps_max,
        weight: v.weight,
        capped: v.capped,
        counters: counters(v.counters),
        read_times: v.reads.map(stages),
        write_times: v.writes.map(stages),
    }
}

/// A host.
pub fn host(h: order::Host) -> api::Host {
    let export = |(volume, nsid, lun)| api::HostExport { volume, nsid, lun };
    api::Host {
        name: h.name,
        nqns: h.nqns,
        iqns: h.iqns,
        authenticated: h.authenticated,
        mutual: h.mutual,
        chap_user: h.chap_user,
        exports: h.exports.into_iter().map(export).collect(),
        connections: h.connections,
    }
}

/// A portal.
pub fn portal(p: order::PortalState) -> api::Portal {
    api::Portal {
        protocol: protocol(p.protocol),
        address: p.address.to_string(),
        listening: p.listening,
        reason: p.reason,
        connections: p.connections,
        head: p.head.map(|h| h.letter().into()),
        instead: p.instead.map(|h| h.letter().into()),
        prefix: p.moves.map(|m| m.prefix),
        interface: p.moves.and_then(|m| m.interface).map(|i| i.as_str().to_string()),
        on: p.on.map(|i| i.as_str().to_string()),
    }
}

/// What a head of a system does for hosts, as far as portals do not tell it.
pub fn served(s: order::Served) -> api::HeadServes {
    let order::Served { hosts, commands, lanes, lanes_all } = s;
    api::HeadServes { portals: vec![], hosts, commands, lanes, lanes_all }
}

/// An event.
pub fn event(e: order::EventLine) -> api::Event {
    api::Event {
        number: e.number,
        at: time(e.at),
        monotonic_ms: e.monotonic.map(|at| at.0 / 1_000_000),
        weight: e.weight,
        head: None,
        what: e.what,
        message: crate::words::event(&e.event),
        event: e.event,
    }
}

/// The head; the process that answers is the caller's to add.
pub fn status(s: order::Snapshot) -> api::Status {
    let connection = |c: order::Connection| api::Connection {
        host: c.host,
        protocol: protocol(c.protocol),
        peer: c.peer.to_string(),
        head: c.head.map(|h| h.letter().into()),
        shard: c.shard,
        session: c.session,
        queue: c.queue,
        commands: c.commands,
        in_flight: c.in_flight,
        header_digest: c.digests.header,
        data_digest: c.digests.data,
    };
    let shard = |s: order::Shard| api::Shard {
        head: s.head.map(|h| h.letter().into()),
        shard: s.shard,
        connections: s.connections,
        commands: s.commands,
        requests: s.requests,
        drive_ops: s.drive_ops,
        buffer_bytes: s.buffer_bytes,
        buffer_bytes_max: s.buffer_bytes_max,
        protocol_errors: s.protocol_errors,
        last_protocol_error: s.last_protocol_error,
        // The head knows no clock: its world fills these in.
        longest_turn_us: 0,
        long_turns: 0,
    };
    api::Status {
        at: time(s.at),
        uptime_seconds: s.uptime,
        daemon: api::Daemon::default(),
        system: api::System {
            nqn: s.system.nqn,
            iqn: s.system.iqn,
            uuid: s.system.uuid.to_string(),
            serial: s.system.serial,
            model: s.system.model,
            firmware: s.system.firmware,
        },
        cluster: None,
        health: s.health,
        reasons: s.reasons.into_iter().map(crate::words::reason).collect(),
        drives: s.drives.into_iter().map(drive).collect(),
        pools: s.pools.into_iter().map(pool).collect(),
        volumes: s.volumes.into_iter().map(volume).collect(),
        hosts: s.hosts.into_iter().map(host).collect(),
        portals: s.portals.into_iter().map(portal).collect(),
        connections: s.connections.into_iter().map(connection).collect(),
        shards: s.shards.into_iter().map(shard).collect(),
        events: s.events.into_iter().map(event).collect(),
        notices: s.notices.into_iter().map(crate::words::noticed).collect(),
        asides: vec![],
    }
}
