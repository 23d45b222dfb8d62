//! Metrics of the head itself, of its shards, and of a system of two heads.

use super::{Labels, Out, healths, label, of_head, seconds};
use api::{Cluster, Head, Shard, Status};
use core::fmt;

pub fn head(status: &Status, asked: Option<&str>, out: &mut Out<'_>) -> fmt::Result {
    let me = status.cluster.as_ref().map(|c| c.me.clone());
    let program = [label("version", &*status.daemon.version), label("nqn", &*status.system.nqn)];
    out.gauge("info", "The program and the system; always 1.", [(of_head(&me, program), 1u64)])?;
    let own = || of_head(&me, []);
    out.gauge("uptime_seconds", "Time since the head started.", [(own(), status.uptime_seconds)])?;
    for (name, help, bytes) in [
        (
            "memory_bytes",
            "Memory for data, and for what machines need beside it.",
            status.daemon.memory_bytes,
        ),
        ("memory_data_bytes", "The part of it that is for data.", status.daemon.memory_data_bytes),
        ("memory_resident_bytes", "What of that was made resident.", status.daemon.memory_resident_bytes),
    ] {
        out.gauge(name, help, [(own(), bytes)])?;
    }
    out.states(
        "health",
        "State of the whole: 1 for the one it is in.",
        &healths(),
        [(vec![], Some(status.health))],
    )?;
    let count = |state| status.reasons.iter().filter(|r| r.state == state).count() as u64;
    let reasons =
        healths().into_iter().skip(1).map(|(word, state)| (vec![label("state", word)], count(state)));
    out.gauge("health_reasons", "Reasons why the health is not better, by how bad they are.", reasons)?;
    let last = status.events.last().map(|e| (own(), e.number));
    out.counter("events_total", "Events in the log so far.", last)?;
    match &status.cluster {
        Some(cluster) => system(cluster, asked, out),
        None => Ok(()),
    }
}

/// What a head may be, as `api::Head` says it.
const HEAD_STATES: [&str; 5] = ["leads", "follows", "starts", "out", "none"];

fn system(cluster: &Cluster, asked: Option<&str>, out: &mut Out<'_>) -> fmt::Result {
    let me = [label("head", &*cluster.me), label("asked", asked.unwrap_or(&cluster.me))];
    out.gauge(
        "answered_by",
        "The head that says all this, and the one that was asked; always 1.",
        [(me.into(), 1u64)],
    )?;
    let of = |h: &'_ Head| vec![label("head", h.head.clone())];
    let states = HEAD_STATES.map(|state| (state, state));
    let is = |h: &Head| HEAD_STATES.into_iter().find(|s| *s == h.state);
    let heads = || cluster.heads.iter();
    out.states(
        "head_state",
        "What a head does in its system: 1 for the state it is in.",
        &states,
        heads().map(|h| (of(h), is(h))),
    )?;
    let ready = |h: &Head| u64::from(h.ready && ["leads", "follows"].contains(&&*h.state));
    out.gauge("head_ready", "1 if the head leads, or would take over.", heads().map(|h| (of(h), ready(h))))?;
    out.gauge(
        "head_since_epoch",
        "The epoch that let the head in.",
        heads().filter(|h| h.state != "none").map(|h| (of(h), h.since_epoch)),
    )?;
    out.gauge(
        "head_drives_reached",
        "Drives of pools that a head reaches, as far as the one that answers knows.",
        heads().filter_map(|h| Some((of(h), u64::from(h.reaches?)))),
    )?;
    let lanes = heads().filter_map(|h| Some((of(h), u64::from(h.serves.as_ref()?.lanes))));
    out.gauge("head_lanes", "Lanes of mirrors whose writes a head carries out.", lanes)?;
    out.gauge(
        "system_epoch",
        "Number of the decision about both heads that is in force.",
        [(vec![], cluster.epoch)],
    )?;
    for (name, help, value) in [
        ("link_up", "1 if the heads meet by a network of the link.", u64::from(cluster.linked)),
        ("system_voters", "Voter drives.", cluster.voters.into()),
        (
            "system_voters_reached",
            "Voter drives that the head that answers reaches.",
            cluster.voters_reached.into(),
        ),
        (
            "system_blind",
            "1 if the head leads and does not see most voters: hosts wait.",
            cluster.blind.into(),
        ),
        ("system_drives", "Drives of pools.", cluster.drives.into()),
        (
            "system_drives_unreached",
            "Drives that the head that follows does not reach.",
            cluster.unreached.len() as u64,
        ),
        (
            "system_drives_not_shut_off",
            "Drives from which a head that is out is not known to be shut out.",
            cluster.late.len() as u64,
        ),
    ] {
        out.gauge(name, help, [(vec![], value)])?;
    }
    let networks = || cluster.networks.iter().map(|n| (vec![label("address", &*n.address)], n));
    out.gauge(
        "link_network_up",
        "1 if the heads meet by this network of the link.",
        networks().map(|(labels, n)| (labels, u64::from(n.up))),
    )?;
    let age = |ms: u64| seconds(ms.saturating_mul(1_000_000));
    out.gauge(
        "link_heartbeat_age_seconds",
        "Time since the other head's last heartbeat came by this network.",
        networks().filter_map(|(labels, n)| Some((labels, age(n.heartbeat_ms?)))),
    )?;
    out.gauge(
        "drives_heartbeat_age_seconds",
        "Time since the other head's last heartbeat was seen on the drives.",
        cluster.heartbeat_on_drives_ms.map(|ms| (vec![], age(ms))),
    )?;
    let fences = ["holds", "fails", "untried"].map(|state| (state, state));
    let is = |state: &str| fences.iter().map(|f| f.0).find(|f| *f == state);
    out.states(
        "fence_state",
        "What came of the trial of a drive's fence: 1 for that.",
        &fences,
        cluster.fences.iter().map(|f| (vec![label("drive", &*f.drive)], is(&f.state))),
    )
}

type Figure = (&'static str, &'static str, fn(&Shard) -> u64);

fn shard_labels(s: &Shard) -> Labels<'_> {
    of_head(&s.head, [label("shard", s.shard.to_string())])
}

pub fn shards(status: &Status, out: &mut Out<'_>) -> fmt::Result {
    let me = status.cluster.as_ref().map(|c| &c.me);
    let all = || status.shards.iter();
    let counters: [Figure; 2] = [
        ("shard_commands_total", "Commands of hosts that ended.", |s| s.commands),
        ("shard_protocol_errors_total", "Connections ended because the peer broke the protocol.", |s| {
            s.protocol_errors
        }),
    ];
    for (name, help, read) in counters {
        out.counter(name, help, all().map(|s| (shard_labels(s), read(s))))?;
    }
    let gauges: [Figure; 5] = [
        ("shard_connections", "Connections.", |s| s.connections.into()),
        ("shard_requests", "Requests under way.", |s| s.requests.into()),
        ("shard_drive_operations", "Drive operations under way.", |s| s.drive_ops.into()),
        ("shard_buffer_used_bytes", "Memory for data in use.", |s| s.buffer_bytes),
        ("shard_buffer_bytes", "Memory for data.", |s| s.buffer_bytes_max),
    ];
    for (name, help, read) in gauges {
        out.gauge(name, help, all().map(|s| (shard_labels(s), read(s))))?;
    }
    // Another head's processors are known to that one alone.
    let own = || all().filter(|s| s.head.as_ref() == me);
    out.gauge(
        "shard_longest_turn_seconds",
        "The longest turn of the last one to two minutes, by the clock.",
        own().map(|s| (shard_labels(s), seconds(s.longest_turn_us * 1000))),
    )?;
    out.counter(
        "shard_long_turns_total",
        "Turns that took longer than 5 ms.",
        own().map(|s| (shard_labels(s), s.long_turns)),
    )
}
