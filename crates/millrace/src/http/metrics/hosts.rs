//! Metrics of hosts, their paths, and portals.

use super::{Labels, Out, label, of_head};
use api::{Counters, Host, HostPath, Status, Times};
use core::fmt;

/// A counter of a path: its name, its help and how to read it.
type Field = (&'static str, &'static str, fn(&Counters) -> u64);

const COUNTERS: [Field; 6] = [
    ("path_reads_total", "Reads.", |c| c.reads),
    ("path_read_bytes_total", "Bytes read.", |c| c.read_bytes),
    ("path_writes_total", "Writes.", |c| c.writes),
    ("path_written_bytes_total", "Bytes written.", |c| c.write_bytes),
    ("path_other_commands_total", "Flushes, deallocations and comparisons.", |c| c.flushes),
    ("path_errors_total", "Commands that ended in an error.", |c| c.errors),
];

fn labels<'a>(host: &'a Host, path: &'a HostPath, op: Option<&'static str>) -> Labels<'a> {
    let which = [
        label("host", &*host.name),
        label("protocol", path.protocol.word()),
        label("portal", path.portal.to_string()),
    ];
    of_head(&path.head, which).into_iter().chain(op.map(|op| label("op", op))).collect()
}

pub fn hosts(status: &Status, out: &mut Out<'_>) -> fmt::Result {
    let connections = status.hosts.iter().flat_map(|h| {
        let one = |head: Option<&String>| {
            let here = |c: &&api::Connection| {
                c.session.is_some() && c.host.as_ref() == Some(&h.name) && c.head.as_ref() == head
            };
            let count = status.connections.iter().filter(here).count() as u64;
            let head = head.map(|head| label("head", head.clone()));
            (head.into_iter().chain([label("host", &*h.name)]).collect::<Labels<'_>>(), count)
        };
        match &status.cluster {
            None => vec![(vec![label("host", &*h.name)], u64::from(h.connections))],
            Some(cluster) => cluster.heads.iter().map(|head| one(Some(&head.head))).collect(),
        }
    });
    out.gauge("host_connections", "Connections of a host.", connections)?;
    let up = |h: &Host| h.paths.iter().filter(|p| p.connections > 0).count() as u64;
    out.gauge(
        "host_paths",
        "Paths of a host that have connections.",
        status.hosts.iter().map(|h| (vec![label("host", &*h.name)], up(h))),
    )?;
    paths(status, out)?;
    let portals = || {
        status.portals.iter().map(|p| {
            let which = [label("protocol", p.protocol.word()), label("portal", p.address.to_string())];
            (of_head(&p.head, which), p)
        })
    };
    out.gauge(
        "portal_up",
        "1 if a portal is listening.",
        portals().map(|(l, p)| (l, u64::from(p.listening))),
    )?;
    out.gauge(
        "portal_connections",
        "Connections by a portal.",
        portals().map(|(l, p)| (l, u64::from(p.connections))),
    )
}

fn paths(status: &Status, out: &mut Out<'_>) -> fmt::Result {
    let paths = || status.hosts.iter().flat_map(|h| h.paths.iter().map(move |p| (h, p)));
    out.gauge(
        "path_connections",
        "Connections of a host over a portal; 0 for one that it used since the head started.",
        paths().map(|(h, p)| (labels(h, p, None), u64::from(p.connections))),
    )?;
    out.gauge(
        "path_commands",
        "Commands of a host over a portal that are under way.",
        paths().map(|(h, p)| (labels(h, p, None), u64::from(p.in_flight))),
    )?;
    for (name, help, read) in COUNTERS {
        out.counter(name, help, paths().map(|(h, p)| (labels(h, p, None), read(&p.counters))))?;
    }
    type Way = (&'static str, fn(&HostPath) -> Option<&Times>);
    let ways: [Way; 2] = [("read", |p| p.read_times.as_ref()), ("write", |p| p.write_times.as_ref())];
    out.histogram(
        "path_latency_seconds",
        "From a command's arrival until its answer was gone; of commands that were timed, which is one in 64.",
        paths().flat_map(|(h, p)| ways.iter().filter_map(move |(op, of)| Some((labels(h, p, Some(op)), of(p)?)))),
    )?;
    out.histogram(
        "path_queue_seconds",
        "The part of it in which the command waited for its volume's caps and for a place at its array.",
        paths().filter_map(|(h, p)| Some((labels(h, p, None), p.queue_times.as_ref()?))),
    )
}
