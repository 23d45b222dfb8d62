//! `/metrics` in Prometheus' text format 0.0.4.

use super::{Api, Asked, Refused};
use api::{Cluster, Counters, Stages, State as Health, Status, Times};
use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use core::fmt::Display;

/// Metrics for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "head",
    responses((status = 200, description = "Text format 0.0.4", body = String, content_type = "text/plain"),
              (status = "default", description = "Why not", body = api::ErrorBody)))]
pub async fn metrics(
    State(api): State<Api>,
    asked: Option<Extension<Asked>>,
) -> Result<impl IntoResponse, Refused> {
    let status = api.status().await?;
    let asked = asked.map(|Extension(Asked(head))| head.letter());
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], encode(&status, asked)))
}

/// A text of metrics.
#[derive(Default)]
struct Text(String);

impl Text {
    /// Begins a family of samples.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.0.push_str(&format!("# HELP millrace_{name} {help}\n# TYPE millrace_{name} {kind}\n"));
    }
    /// One sample; label values are escaped as the format asks.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let escape = |v: &str| v.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(n, v)| format!("{n}=\"{}\"", escape(v))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.0.push_str(&format!("millrace_{name}{labels} {value}\n"));
    }
}

impl Text {
    /// The samples of a summary, in seconds: quantiles of the last one to two minutes, sum and count since the start.
    fn summary(&mut self, name: &str, labels: &[(&str, &str)], times: &Times) {
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        if times.timed > 0 {
            for (quantile, ns) in [("0.5", times.p50_ns), ("0.99", times.p99_ns), ("0.999", times.p999_ns)] {
                let labels = [labels, &[("quantile", quantile)]].concat();
                self.sample(name, &labels, seconds(ns));
            }
        }
        self.sample(&format!("{name}_sum"), labels, seconds(times.total_ns));
        self.sample(&format!("{name}_count"), labels, times.total_timed);
    }
}

const STATES: [Health; 5] =
    [Health::Optimal, Health::Rebuilding, Health::Degraded, Health::Offline, Health::Failed];

/// One metric of `Counters`: its name, its help and how to read it.
type Field = (&'static str, &'static str, fn(&Counters) -> u64);

const COUNTERS: [Field; 6] = [
    ("reads_total", "Read commands.", |c| c.reads),
    ("read_bytes_total", "Bytes read.", |c| c.read_bytes),
    ("writes_total", "Commands that write.", |c| c.writes),
    ("written_bytes_total", "Bytes written.", |c| c.write_bytes),
    ("flushes_total", "Flushes.", |c| c.flushes),
    ("errors_total", "Commands that ended in an error.", |c| c.errors),
];

/// The label of a sample that belongs to one head, if there are two.
fn head_label(head: Option<&String>) -> impl Iterator<Item = (&'static str, &str)> {
    head.into_iter().map(|head| ("head", head.as_str()))
}

/// Samples of the head that says this, in front of which the other one, `asked`, may have been asked.
fn encode(status: &Status, asked: Option<&str>) -> String {
    let mut out = Text::default();
    let me = status.cluster.as_ref().map(|c| &c.me);
    out.family("info", "gauge", "The program; always 1.");
    let program = [("version", &*status.daemon.version), ("nqn", &*status.system.nqn)];
    out.sample("info", &head_label(me).chain(program).collect::<Vec<_>>(), 1);
    out.family("uptime_seconds", "gauge", "Seconds since the head started.");
    out.sample("uptime_seconds", &head_label(me).collect::<Vec<_>>(), status.uptime_seconds);
    if let Some(cluster) = &status.cluster {
        heads(cluster, asked, &mut out);
    }
    out.family("health", "gauge", "The head's state: 1 for the one it is in.");
    for state in STATES {
        out.sample("health", &[("state", state.word())], u64::from(status.health == state));
    }
    pools(status, &mut out);
    for (name, help, read) in COUNTERS {
        let name = format!("volume_{name}");
        out.family(&name, "counter", help);
        for v in &status.volumes {
            out.sample(&name, &[("volume", &v.name)], read(&v.counters));
        }
    }
    out.family("volume_state", "gauge", "The volume's state: 1 for the one it is in.");
    for v in &status.volumes {
        for state in STATES {
            let labels = [("volume", &*v.name), ("state", state.word())];
            out.sample("volume_state", &labels, u64::from(v.state == state));
        }
    }
    out.family("volume_bytes", "gauge", "Size of the volume.");
    for v in &status.volumes {
        out.sample("volume_bytes", &[("volume", &v.name)], v.bytes);
    }
    type Cap = (&'static str, &'static str, &'static str, fn(&api::Volume) -> u64);
    let caps: [Cap; 4] = [
        ("volume_iops_max", "gauge", "Commands a second that it is capped at, 0 for none.", |v| {
            v.iops_max.into()
        }),
        ("volume_bytes_per_second_max", "gauge", "Bytes a second that it is capped at, 0 for none.", |v| {
            u64::from(v.mbps_max) * 1_000_000
        }),
        ("volume_weight", "gauge", "Its part of what drives do, beside that of other volumes.", |v| {
            v.weight.into()
        }),
        ("volume_capped_total", "counter", "Commands that waited for a cap.", |v| v.capped),
    ];
    for (name, kind, help, read) in caps {
        out.family(name, kind, help);
        for v in &status.volumes {
            out.sample(name, &[("volume", &v.name)], read(v));
        }
    }
    for (name, help, read) in &COUNTERS[..5] {
        let name = format!("drive_{name}");
        out.family(&name, "counter", help);
        for d in &status.drives {
            out.sample(&name, &[("drive", &crate::arguments::drive_name(d))], read(&d.counters));
        }
    }
    out.family("drive_errors_total", "counter", "Operations that failed or were late.");
    for d in &status.drives {
        out.sample("drive_errors_total", &[("drive", &crate::arguments::drive_name(d))], d.errors);
    }
    out.family("drive_state", "gauge", "The drive's state: 1 for the one it is in.");
    for d in &status.drives {
        for state in STATES {
            let labels = [("drive", &*crate::arguments::drive_name(d)), ("state", state.word())];
            out.sample("drive_state", &labels, u64::from(d.state == Some(state)));
        }
    }
    times(status, &mut out);
    connections(status, &mut out);
    shards(status, &mut out);
    out.0
}

/// What a head may be, as `api::Head` says it.
const HEAD_STATES: [&str; 5] = ["leads", "follows", "starts", "out", "none"];

fn heads(cluster: &Cluster, asked: Option<&str>, out: &mut Text) {
    out.family("answered_by", "gauge", "The head that says all this, and the one that was asked; always 1.");
    out.sample("answered_by", &[("head", &cluster.me), ("asked", asked.unwrap_or(&cluster.me))], 1);
    out.family("head_state", "gauge", "What the head does in its system: 1 for the state it is in.");
    for h in &cluster.heads {
        for state in HEAD_STATES {
            let labels = [("head", &*h.head), ("state", state)];
            out.sample("head_state", &labels, u64::from(h.state == state));
        }
    }
    out.family("head_ready", "gauge", "1 if the head leads, or would take over.");
    for h in &cluster.heads {
        let ready = h.ready && ["leads", "follows"].contains(&&*h.state);
        out.sample("head_ready", &[("head", &h.head)], u64::from(ready));
    }
    out.family("link_up", "gauge", "1 if the heads meet by a network of the link.");
    out.sample("link_up", &[], u64::from(cluster.linked));
    out.family("head_lanes", "gauge", "Lanes of mirrors whose writes the head carries out.");
    for h in &cluster.heads {
        if let Some(serves) = &h.serves {
            out.sample("head_lanes", &[("head", &h.head)], serves.lanes);
        }
    }
}

fn pools(status: &Status, out: &mut Text) {
    out.family("pool_state", "gauge", "The pool's state: 1 for the one it is in.");
    for p in &status.pools {
        for state in STATES {
            out.sample(
                "pool_state",
                &[("pool", &p.name), ("state", state.word())],
                u64::from(p.state == state),
            );
        }
    }
    out.family("pool_bytes", "gauge", "Space for volumes.");
    for p in &status.pools {
        out.sample("pool_bytes", &[("pool", &p.name)], p.bytes);
    }
    out.family("pool_used_bytes", "gauge", "Space given to volumes.");
    for p in &status.pools {
        out.sample("pool_used_bytes", &[("pool", &p.name)], p.used_bytes);
    }
    out.family("pool_spares", "gauge", "Hot spares: ready ones, and those that are not there.");
    for p in &status.pools {
        for (state, ready) in [("ready", true), ("missing", false)] {
            let count = p.spares.iter().filter(|s| s.ready == ready).count() as u64;
            out.sample("pool_spares", &[("pool", &p.name), ("state", state)], count);
        }
    }
    type Field = (&'static str, &'static str, fn(&api::Scrub) -> u64);
    let scrub: [Field; 6] = [
        ("pool_scrub_running", "1 while the legs of the pool's mirrors are compared.", |s| {
            u64::from(s.running)
        }),
        ("pool_scrub_done_bytes", "Bytes that the scrub under way has compared.", |s| s.done_bytes),
        ("pool_scrub_total_bytes", "Bytes that the scrub under way has to compare.", |s| s.total_bytes),
        (
            "pool_scrub_differed_bytes",
            "Bytes in which legs differed, of the scrub under way or the last one.",
            |s| s.differed_bytes,
        ),
        ("pool_scrub_repaired_bytes", "Of these, bytes that were written again.", |s| s.repaired_bytes),
        ("pool_scrub_unreadable_bytes", "Bytes that this scrub could not compare.", |s| s.unreadable_bytes),
    ];
    for (name, help, value) in scrub {
        out.family(name, "gauge", help);
        for p in &status.pools {
            out.sample(name, &[("pool", &p.name)], value(&p.scrub));
        }
    }
    let arrays = || {
        status.pools.iter().flat_map(|p| p.arrays.iter().enumerate().map(move |(i, a)| (p, i.to_string(), a)))
    };
    out.family("array_regions_dirty", "gauge", "Regions marked in the bitmap.");
    for (p, i, a) in arrays() {
        out.sample("array_regions_dirty", &[("pool", &p.name), ("array", &i)], a.regions_dirty);
    }
    for (name, help, value) in [
        (
            "array_hedged_reads_total",
            "Reads that were late and were sent to another leg too.",
            (|a| a.hedged_reads) as fn(&api::Array) -> u64,
        ),
        ("array_hedged_reads_won_total", "Late reads that were answered from another leg.", |a| {
            a.hedged_reads_won
        }),
        ("array_warm_writes_total", "Writes that found their region marked in the bitmap.", |a| {
            a.warm_writes
        }),
        ("array_cold_writes_total", "Writes that waited until their region was marked.", |a| a.cold_writes),
        ("array_bitmap_sets_total", "Bitmap blocks written to mark regions, to all legs at once.", |a| {
            a.bitmap_sets
        }),
        ("array_bitmap_clears_total", "Bitmap blocks written only to clear marks.", |a| a.bitmap_clears),
    ] {
        out.family(name, "counter", help);
        for (p, i, a) in arrays() {
            out.sample(name, &[("pool", &p.name), ("array", &i)], value(a));
        }
    }
    let name = "array_bitmap_wait_seconds_total";
    out.family(name, "counter", "What cold writes waited for the bitmap, summed.");
    for (p, i, a) in arrays() {
        let seconds = format!("{}.{:09}", a.bitmap_wait_ns / 1_000_000_000, a.bitmap_wait_ns % 1_000_000_000);
        out.sample(name, &[("pool", &p.name), ("array", &i)], seconds);
    }
    out.family("array_resync_done_bytes", "gauge", "Bytes that the resync under way has done.");
    for (p, i, a) in arrays() {
        if let Some(r) = &a.resync {
            out.sample("array_resync_done_bytes", &[("pool", &p.name), ("array", &i)], r.done_bytes);
        }
    }
    out.family("array_resync_total_bytes", "gauge", "Bytes that the resync under way has to do.");
    for (p, i, a) in arrays() {
        if let Some(r) = &a.resync {
            out.sample("array_resync_total_bytes", &[("pool", &p.name), ("array", &i)], r.total_bytes);
        }
    }
}

/// A kind of command and how to find its times.
type Way<T, S> = (&'static str, fn(&T) -> &Option<S>);

fn times(status: &Status, out: &mut Text) {
    out.family(
        "volume_stage_seconds",
        "summary",
        "How long commands took, and in which stage; of those that were timed, which is one in 64.",
    );
    let ways: [Way<api::Volume, Stages>; 2] = [("read", |v| &v.read_times), ("write", |v| &v.write_times)];
    for v in &status.volumes {
        for (op, of) in ways {
            let Some(stages) = of(v) else { continue };
            for (stage, times) in [("all", &stages.all)].into_iter().chain(stages.parts()) {
                let labels = [("volume", &*v.name), ("op", op), ("stage", stage)];
                out.summary("volume_stage_seconds", &labels, times);
            }
        }
    }
    out.family(
        "drive_seconds",
        "summary",
        "How long the drive took; of operations that were timed, which is one in 64.",
    );
    let ways: [Way<api::Drive, Times>; 2] = [("read", |d| &d.read_times), ("write", |d| &d.write_times)];
    for d in &status.drives {
        for (op, of) in ways {
            if let Some(times) = of(d) {
                let labels = [("drive", &*crate::arguments::drive_name(d)), ("op", op)];
                out.summary("drive_seconds", &labels, times);
            }
        }
    }
}

fn connections(status: &Status, out: &mut Text) {
    out.family("host_connections", "gauge", "Connections of the host.");
    for h in &status.hosts {
        match &status.cluster {
            None => out.sample("host_connections", &[("host", &h.name)], h.connections),
            Some(cluster) => {
                for head in cluster.heads.iter().map(|head| &head.head) {
                    let here = |c: &&api::Connection| {
                        c.session.is_some()
                            && c.host.as_ref() == Some(&h.name)
                            && c.head.as_ref() == Some(head)
                    };
                    let labels = [("head", &**head), ("host", &h.name)];
                    out.sample("host_connections", &labels, status.connections.iter().filter(here).count());
                }
            }
        }
    }
    out.family("portal_up", "gauge", "1 if the portal is listening.");
    for p in &status.portals {
        let address = p.address.to_string();
        let place = [("protocol", p.protocol.word()), ("address", &address)];
        let labels: Vec<_> = head_label(p.head.as_ref()).chain(place).collect();
        out.sample("portal_up", &labels, u64::from(p.listening));
    }
}

fn shards(status: &Status, out: &mut Text) {
    type Field = (&'static str, &'static str, &'static str, fn(&api::Shard) -> u64);
    // Another head's processors are known to that one alone.
    let me = status.cluster.as_ref().map(|c| &c.me);
    let own = ["shard_longest_turn_microseconds", "shard_long_turns_total"];
    let fields: [Field; 8] = [
        ("shard_commands_total", "counter", "Commands of hosts.", |s| s.commands),
        ("shard_requests", "gauge", "Requests under way.", |s| s.requests.into()),
        ("shard_drive_ops", "gauge", "Drive operations under way.", |s| s.drive_ops.into()),
        ("shard_buffer_bytes", "gauge", "Buffer bytes in use.", |s| s.buffer_bytes),
        ("shard_buffer_bytes_max", "gauge", "Buffer bytes there are.", |s| s.buffer_bytes_max),
        (
            "shard_protocol_errors_total",
            "counter",
            "Connections ended because the peer broke the protocol.",
            |s| s.protocol_errors,
        ),
        (
            "shard_longest_turn_microseconds",
            "gauge",
            "The longest turn of the last one to two minutes, by the clock.",
            |s| s.longest_turn_us,
        ),
        ("shard_long_turns_total", "counter", "Turns that took longer than 5 ms.", |s| s.long_turns),
    ];
    for (name, kind, help, read) in fields {
        out.family(name, kind, help);
        for s in status.shards.iter().filter(|s| s.head.as_ref() == me || !own.contains(&name)) {
            let number = s.shard.to_string();
            let labels: Vec<_> = head_label(s.head.as_ref()).chain([("shard", &*number)]).collect();
            out.sample(name, &labels, read(s));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many samples have a name and a value, as the format asks.
    fn check(text: &str) -> u32 {
        let (mut family, mut summary) = (String::new(), false);
        let mut samples = 0;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a kind");
                (family, summary) = (name.to_string(), kind == "summary");
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').expect("a value");
                let name = name.split('{').next().expect("a name");
                let of = ["", "_sum", "_count"].map(|part| format!("{family}{part}"));
                assert!(of.iter().take(if summary { 3 } else { 1 }).any(|n| n == name), "{line}");
                assert!(value.parse::<f64>().expect("a number") >= 0.0);
                samples += 1;
            }
        }
        samples
    }

    #[test]
    fn every_sample_belongs_to_a_family_and_is_a_number() {
        let status = crate::words::say::status(crate::http::tests::snapshot());
        let text = encode(&status, None);
        assert!(check(&text) > 50, "{text}");
        assert!(!text.contains("head=") && !text.contains("answered_by"), "{text}");
        assert!(text.contains("millrace_pool_state{pool=\"tank\",state=\"degraded\"} 1"), "{text}");
        assert!(text.contains("millrace_volume_state{volume=\"tank/vm1\",state=\"degraded\"} 1"), "{text}");
        assert!(text.contains("millrace_pool_spares{pool=\"tank\",state=\"ready\"} 1"), "{text}");
        assert!(text.contains("millrace_pool_scrub_running{pool=\"tank\"} 1"), "{text}");
        let stage = "millrace_volume_stage_seconds{volume=\"tank/vm1\",op=\"read\",stage=\"drive\",quantile=\"0.99\"}";
        assert!(text.contains(&format!("{stage} 0.000252000")), "{text}");
        assert!(
            text.contains("millrace_drive_seconds_count{drive=\"/dev/nvme0n1\",op=\"write\"} 80000"),
            "{text}"
        );
    }

    #[test]
    fn of_two_heads_each_has_its_samples_and_whether_it_would_take_over() {
        let mut status = crate::words::say::status(crate::http::tests::snapshot());
        let head = |letter: &str, state: &str, ready, lanes| api::Head {
            head: letter.into(),
            state: state.into(),
            ready,
            serves: Some(api::HeadServes { lanes, ..api::HeadServes::default() }),
            ..api::Head::default()
        };
        let heads = vec![head("a", "leads", true, 32), head("b", "follows", true, 16)];
        status.cluster = Some(Cluster { me: "a".into(), linked: true, heads, ..Cluster::default() });
        let letters = [Some("a".to_string()), Some("b".to_string())];
        for (n, letter) in letters.iter().enumerate() {
            status.shards[n].head.clone_from(letter);
            status.portals[n].head.clone_from(letter);
            status.connections[n].head.clone_from(letter);
        }
        let text = encode(&status, Some("b"));
        check(&text);
        for sample in [
            "answered_by{head=\"a\",asked=\"b\"} 1",
            "uptime_seconds{head=\"a\"} ",
            "head_state{head=\"a\",state=\"leads\"} 1",
            "head_state{head=\"b\",state=\"leads\"} 0",
            "head_ready{head=\"b\"} 1",
            "head_lanes{head=\"b\"} 16",
            "link_up 1",
            "portal_up{head=\"b\",protocol=\"nvme\",address=\"10.0.1.1:4420\"} ",
            "host_connections{head=\"a\",host=\"esx1\"} 1",
            "host_connections{head=\"b\",host=\"esx1\"} 0",
            "shard_commands_total{head=\"b\",shard=\"1\"} 7345678",
            "shard_long_turns_total{head=\"a\",shard=\"0\"} ",
        ] {
            assert!(text.contains(&format!("\nmillrace_{sample}")), "{sample}: {text}");
        }
        assert!(!text.contains("shard_long_turns_total{head=\"b\""), "only b knows its processors: {text}");
        // What is current, and is not there, does not take over.
        let heads = &mut status.cluster.as_mut().expect("there").heads;
        heads[1] = head("b", "out", true, 0);
        let text = encode(&status, None);
        assert!(text.contains("millrace_answered_by{head=\"a\",asked=\"a\"} 1"), "{text}");
        assert!(text.contains("millrace_head_ready{head=\"b\"} 0"), "{text}");
        assert!(text.contains("millrace_head_state{head=\"b\",state=\"out\"} 1"), "{text}");
    }

    #[test]
    fn a_strange_name_cannot_break_the_format() {
        let mut out = Text::default();
        out.sample("x", &[("drive", "a\"b\\c\nd")], 1);
        assert_eq!(out.0, "millrace_x{drive=\"a\\\"b\\\\c\\nd\"} 1\n");
    }
}
