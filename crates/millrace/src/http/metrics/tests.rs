//! What is exported, docs/metrics.md of it, and the dashboard and rules that use it.

use super::*;
use api::{BUCKETS, Counters, DriveHealth, HostPath};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names with values.
type Labels = Vec<(String, String)>;

/// A family as it is exported: its kind, its help, and of each sample name and labels the value.
#[derive(Default)]
struct Family {
    kind: String,
    help: String,
    samples: Vec<(String, Labels, f64)>,
}

/// Takes labels apart: `a="1",b="2"`.
fn labels(text: &str) -> Labels {
    let (mut all, mut rest) = (vec![], text);
    while let Some((name, value)) = rest.split_once("=\"") {
        let mut escaped = false;
        let end = value.find(|c| match (c, escaped) {
            ('"', false) => true,
            _ => {
                escaped = c == '\\' && !escaped;
                false
            }
        });
        let end = end.expect("a value ends");
        all.push((name.trim_start_matches(',').to_string(), value[..end].to_string()));
        rest = &value[end + 1..];
    }
    all
}

/// Reads the text format 0.0.4 as it is specified.
fn read(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and a help");
            current = name.to_string();
            let new = families.insert(current.clone(), Family { help: help.into(), ..Family::default() });
            assert!(new.is_none(), "{name} comes once");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a kind");
            assert_eq!(name, current);
            families.get_mut(name).expect("it has a help").kind = kind.into();
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            let (name, of) = name.split_once('{').unwrap_or((name, "}"));
            let family = families.get_mut(&current).expect("a family");
            let value = value.parse().expect("a number");
            family.samples.push((name.into(), labels(of.strip_suffix('}').expect("labels end")), value));
        }
    }
    families
}

fn spread(ns: u64, buckets: impl Fn(usize) -> u64) -> Times {
    let mut times = Times { p50_ns: ns, total_ns: 60 * ns, ..Times::default() };
    for i in 0..BUCKETS {
        times.buckets[i] = buckets(i);
    }
    times.total_timed = times.buckets.iter().sum();
    times
}

/// A head alone, with something of everything.
fn alone() -> Status {
    let mut status = crate::words::say::status(crate::http::tests::snapshot());
    let counters =
        Counters { reads: 9, read_bytes: 36_864, writes: 4, write_bytes: 16_384, flushes: 1, errors: 2 };
    let path = |portal: &str, connections| HostPath {
        protocol: api::Protocol::Nvme,
        portal: portal.parse().expect("an address"),
        head: None,
        connections,
        in_flight: 3,
        counters,
        rates: Default::default(),
        read_times: Some(spread(80_000, |i| i as u64)),
        write_times: Some(spread(20_000, |_| 1)),
        queue_times: Some(spread(1_000, |i| u64::from(i == 0) * 12)),
    };
    status.hosts[0].paths = vec![path("10.0.0.1:4420", 5), path("10.0.1.1:4420", 0)];
    status.drives[0].health = Some(DriveHealth {
        celsius: Some(41.5),
        used_percent: Some(7),
        spare_percent: Some(98),
        media_errors: Some(3),
        throttled_seconds: Some(60),
        hours: Some(2),
        warns: false,
    });
    status.pools[0].clearing = Some(api::Clearing { left_bytes: 4096, ..Default::default() });
    status.pools[0].scrub.last_ended = Some(api::Time(1_795_000_000));
    status
}

/// Two heads, with something of everything.
fn two() -> Status {
    let mut status = alone();
    let head = |letter: &str, state: &str, lanes| api::Head {
        head: letter.into(),
        state: state.into(),
        ready: true,
        reaches: Some(6),
        serves: Some(api::HeadServes { lanes, ..api::HeadServes::default() }),
        ..api::Head::default()
    };
    status.cluster = Some(api::Cluster {
        me: "a".into(),
        epoch: 12,
        linked: true,
        networks: vec![api::LinkNetwork { address: "10.9.0.1".into(), up: true, heartbeat_ms: Some(20) }],
        heartbeat_on_drives_ms: Some(110),
        voters: 3,
        voters_reached: 3,
        drives: 6,
        heads: vec![head("a", "leads", 32), head("b", "follows", 16)],
        late: vec!["/dev/nvme0n1".into()],
        fences: vec![api::FenceTrial {
            drive: "/dev/nvme0n1".into(),
            state: "holds".into(),
            ..Default::default()
        }],
        ..api::Cluster::default()
    });
    for (n, letter) in ["a", "b"].into_iter().enumerate() {
        let letter = Some(letter.to_string());
        status.shards[n].head.clone_from(&letter);
        status.portals[n].head.clone_from(&letter);
        status.connections[n].head.clone_from(&letter);
        status.hosts[0].paths[n].head = letter;
    }
    status
}

fn exported(status: Status, asked: Option<&str>) -> String {
    encode(status, asked.map(String::from), Format::Prometheus).expect("it is encoded")
}

fn has(text: &str, sample: &str) {
    assert!(text.contains(&format!("\nmillrace_{sample}\n")), "{sample}: {text}");
}

#[test]
fn every_sample_is_of_a_family_and_comes_once() {
    for status in [alone(), two()] {
        for (name, family) in read(&exported(status, None)) {
            assert!(name.starts_with("millrace_") && !family.help.is_empty(), "{name}");
            assert_eq!(family.kind == "counter", name.ends_with("_total"), "{name}: {}", family.kind);
            assert!(!family.samples.is_empty(), "{name}");
            let mut seen = BTreeSet::new();
            for (sample, labels, value) in &family.samples {
                let parts: &[&str] =
                    if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                assert!(parts.iter().any(|part| *sample == format!("{name}{part}")), "{sample} of {name}");
                assert!(*value >= 0.0, "{sample} {value}");
                assert!(seen.insert((sample, labels)), "{sample} {labels:?} comes once");
            }
        }
    }
}

#[test]
fn buckets_grow_up_to_the_count_and_bounds_are_the_same_for_all() {
    let families = read(&exported(alone(), None));
    let mut histograms = 0;
    for (name, family) in families.iter().filter(|(_, f)| f.kind == "histogram") {
        let mut series: BTreeMap<Labels, Vec<(String, f64)>> = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for (sample, labels, value) in &family.samples {
            let (le, rest): (Vec<_>, Vec<_>) = labels.iter().cloned().partition(|(n, _)| n == "le");
            match le.first() {
                Some((_, le)) => series.entry(rest).or_default().push((le.clone(), *value)),
                None if sample.ends_with("_count") => drop(counts.insert(rest, *value)),
                None => {}
            }
        }
        for (labels, buckets) in series {
            histograms += 1;
            let bounds: Vec<f64> = buckets.iter().map(|(le, _)| le.parse().expect("a bound")).collect();
            let all: Vec<f64> = BOUNDS_NS.map(seconds).into_iter().chain([f64::INFINITY]).collect();
            assert_eq!(bounds, all, "{name}");
            assert!(buckets.is_sorted_by_key(|(_, value)| *value), "{name} {labels:?}");
            assert_eq!(
                buckets.last().map(|(_, value)| *value),
                counts.get(&labels).copied(),
                "{name} {labels:?}"
            );
        }
    }
    assert!(histograms > 8, "{histograms}");
}

#[test]
fn a_head_alone_tells_of_everything_without_the_label_of_a_head() {
    let text = exported(alone(), None);
    assert!(!text.contains("head=") && !text.contains("answered_by"), "{text}");
    for sample in [
        "pool_state{pool=\"tank\",state=\"degraded\"} 1",
        "volume_state{volume=\"tank/vm1\",state=\"degraded\"} 1",
        "pool_spares{pool=\"tank\",state=\"ready\"} 1",
        "pool_scrub_running{pool=\"tank\"} 1",
        "pool_clearing_left_bytes{pool=\"tank\"} 4096",
        "array_resync_done_bytes{pool=\"tank\",array=\"2\"} 1288490188",
        "volume_stage_seconds_total{volume=\"tank/vm1\",op=\"read\",stage=\"drive\"} 6.72",
        "drive_latency_seconds_count{drive=\"/dev/nvme0n1\",op=\"write\"} 80000",
        "drive_temperature_celsius{drive=\"/dev/nvme0n1\"} 41.5",
        "drive_wear_ratio{drive=\"/dev/nvme0n1\"} 0.07",
        "host_connections{host=\"esx1\"} 5",
        "host_paths{host=\"esx1\"} 1",
        "path_connections{host=\"esx1\",protocol=\"nvme\",portal=\"10.0.1.1:4420\"} 0",
        "path_reads_total{host=\"esx1\",protocol=\"nvme\",portal=\"10.0.0.1:4420\"} 9",
        "path_queue_seconds_count{host=\"esx1\",protocol=\"nvme\",portal=\"10.0.0.1:4420\"} 12",
        "portal_up{protocol=\"nvme\",portal=\"10.0.1.1:4420\"} 1",
    ] {
        has(&text, sample);
    }
    assert!(text.contains("\nmillrace_shard_longest_turn_seconds{shard=\"0\"} 0.0"), "{text}");
}

#[test]
fn of_two_heads_each_has_its_samples_and_whether_it_would_take_over() {
    let mut status = two();
    let text = exported(status.clone(), Some("b"));
    for sample in [
        "answered_by{head=\"a\",asked=\"b\"} 1",
        "head_state{head=\"a\",state=\"leads\"} 1",
        "head_state{head=\"b\",state=\"leads\"} 0",
        "head_ready{head=\"b\"} 1",
        "head_lanes{head=\"b\"} 16",
        "link_up 1",
        "link_heartbeat_age_seconds{address=\"10.9.0.1\"} 0.02",
        "system_voters_reached 3",
        "fence_state{drive=\"/dev/nvme0n1\",state=\"holds\"} 1",
        "portal_up{head=\"b\",protocol=\"nvme\",portal=\"10.0.1.1:4420\"} 1",
        "host_connections{head=\"a\",host=\"esx1\"} 1",
        "host_connections{head=\"b\",host=\"esx1\"} 0",
        "path_connections{head=\"a\",host=\"esx1\",protocol=\"nvme\",portal=\"10.0.0.1:4420\"} 5",
        "shard_commands_total{head=\"b\",shard=\"1\"} 7345678",
    ] {
        has(&text, sample);
    }
    assert!(text.contains("\nmillrace_uptime_seconds{head=\"a\"} "), "{text}");
    assert!(text.contains("\nmillrace_shard_long_turns_total{head=\"a\",shard=\"0\"} "), "{text}");
    assert!(!text.contains("shard_long_turns_total{head=\"b\""), "only b knows its processors: {text}");
    // What is current, and is not there, does not take over.
    status.cluster.as_mut().expect("there").heads[1].state = "out".into();
    let text = exported(status, None);
    has(&text, "answered_by{head=\"a\",asked=\"a\"} 1");
    has(&text, "head_ready{head=\"b\"} 0");
    has(&text, "head_state{head=\"b\",state=\"out\"} 1");
}

#[test]
fn openmetrics_is_for_whoever_accepts_it() {
    let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    assert_eq!(Format::of([prometheus].into_iter()), Format::OpenMetrics);
    assert_eq!(Format::of(["text/plain", "*/*"].into_iter()), Format::Prometheus);
    let text = encode(two(), None, Format::OpenMetrics).expect("it is encoded");
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    // Counters and units have the names that the standard asks for.
    assert!(text.contains("# TYPE millrace_path_reads counter\nmillrace_path_reads_total{"), "{text}");
    assert!(text.contains("# UNIT millrace_path_latency_seconds seconds\n"), "{text}");
    // Numbers and the order of labels may differ.
    let samples = |text: &str| {
        let lines = text.lines().filter(|l| !l.starts_with('#'));
        let name = |l: &str| l.split(['{', ' ']).next().unwrap_or_default().to_string();
        let mut names: Vec<String> = lines.map(name).collect();
        names.sort();
        names
    };
    assert!(samples(&text) == samples(&exported(two(), None)), "the samples are the same");
}

#[test]
fn a_strange_name_cannot_break_the_format() {
    let mut status = alone();
    status.drives[0].path = "a\"b\\c\nd".into();
    let text = exported(status, None);
    has(&text, "drive_slow{drive=\"a\\\"b\\\\c\\nd\"} 0");
    read(&text);
}

/// All that is exported: by name the kind, the help and the labels.
fn all() -> BTreeMap<String, (String, String, BTreeSet<String>)> {
    let mut all: BTreeMap<String, (String, String, BTreeSet<String>)> = BTreeMap::new();
    for status in [alone(), two()] {
        for (name, family) in read(&exported(status, None)) {
            let labels =
                family.samples.iter().flat_map(|(_, labels, _)| labels.iter().map(|(n, _)| n.clone()));
            let row = all.entry(name).or_insert((family.kind.clone(), family.help.clone(), BTreeSet::new()));
            row.2.extend(labels);
        }
    }
    all
}

const DOCUMENT: &str = "# Metrics

All that `/metrics` exports. A test makes this page from the program: do not edit it. [RFC 10](rfcs/0010-metrics.md) says how the names are built, what the
labels mean and what it costs.

`packaging/prometheus/millrace.rules.yml` has alert rules, and `packaging/grafana/millrace.json` a dashboard. Scrape the API of either head of a system: each
answers for both. Counters start at 0 when their head starts. Histograms have the buckets 10 µs to 5 s, and count the commands that were timed, which is one
in 64. The label `head` is there in a system of two heads alone.

";

#[test]
fn the_page_lists_all_metrics() {
    let mut text = String::from(DOCUMENT);
    let mut table = |title: &str, is_in: &dyn Fn(&str) -> bool| {
        text.push_str(&format!(
            "## {title}\n\n| name | kind | labels | meaning |\n| --- | --- | --- | --- |\n"
        ));
        for (name, (kind, help, labels)) in all() {
            let short = name.strip_prefix("millrace_").expect("all have it");
            if !is_in(short.split('_').next().unwrap_or_default()) {
                continue;
            }
            let labels: Vec<String> = labels.iter().map(|l| format!("`{l}`")).collect();
            text.push_str(&format!("| `{name}` | {kind} | {} | {help} |\n", labels.join(" ")));
        }
        text.push('\n');
    };
    let groups: [(&str, &[&str]); 7] = [
        ("Hosts and their paths", &["host", "path"]),
        ("Volumes", &["volume"]),
        ("Pools and arrays", &["pool", "array"]),
        ("Drives", &["drive"]),
        ("Portals", &["portal"]),
        ("Shards", &["shard"]),
        ("A system of two heads", &["head", "system", "link", "fence", "answered", "drives"]),
    ];
    for (title, first) in groups {
        table(title, &|word| first.contains(&word));
    }
    table("The head", &|word| !groups.iter().any(|(_, first)| first.contains(&word)));
    let text = text.trim_end().to_string() + "\n";
    expect_test::expect_file!["../../../../../docs/metrics.md"].assert_eq(&text);
}

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file)
}

/// Names of ours in an expression.
fn names(expression: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(|c: char| !is_name(c));
    words.filter(|w| w.starts_with("millrace_")).map(String::from).collect()
}

/// Every name in `expression` is that of a sample, and every label that it chooses by or groups by is one of that.
fn check(expression: &str, of: &str) {
    let all = all();
    let family = |name: &str| {
        let stems = ["_bucket", "_sum", "_count"].into_iter().filter_map(|part| name.strip_suffix(part));
        let histogram = stems.filter_map(|stem| all.get(stem)).find(|f| f.0 == "histogram");
        all.get(name).filter(|f| f.0 != "histogram").or(histogram)
    };
    let names = names(expression);
    assert!(!names.is_empty(), "{of}: {expression}");
    let mut labels: BTreeSet<&str> = ["instance", "job", "le"].into();
    for name in &names {
        let found = family(name).unwrap_or_else(|| panic!("{of}: {name} is not exported: {expression}"));
        labels.extend(found.2.iter().map(String::as_str));
    }
    let chosen = expression.split('{').skip(1).filter_map(|s| s.split_once('}')).map(|(inside, _)| inside);
    let chosen =
        chosen.flat_map(|inside| inside.split("\",").filter_map(|s| s.split(['=', '!', '~']).next()));
    let grouped = ["by (", "by(", "on (", "on(", "group_left ("].into_iter().flat_map(|word| {
        expression
            .split(word)
            .skip(1)
            .filter_map(|s| s.split_once(')'))
            .flat_map(|(inside, _)| inside.split(','))
    });
    for name in chosen.chain(grouped).map(str::trim).filter(|name| !name.is_empty()) {
        assert!(labels.contains(name), "{of}: no label {name}: {expression}");
    }
}

#[test]
fn the_rules_ask_for_what_is_exported() {
    let text = std::fs::read_to_string(packaging("prometheus/millrace.rules.yml")).expect("it is there");
    let rules: Vec<&str> = text.split("- alert: ").skip(1).collect();
    assert!(rules.len() >= 12, "{}", rules.len());
    for rule in rules {
        let name = rule.lines().next().unwrap_or_default();
        let expression = rule.lines().find_map(|l| l.trim().strip_prefix("expr: ")).expect("an expression");
        check(expression.trim_matches('\''), name);
        for part in ["severity: ", "summary: ", "description: "] {
            assert!(rule.contains(part), "{name} has {part}");
        }
    }
}

#[test]
fn the_dashboard_asks_for_what_is_exported() {
    let text = std::fs::read_to_string(packaging("grafana/millrace.json")).expect("it is there");
    let board: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let panels = board["panels"].as_array().expect("panels");
    let (mut ids, mut asked) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_u64()), "{title}: an id comes once");
        if panel["type"] == "row" {
            continue;
        }
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("an expression");
            check(&expression.replace("$__rate_interval", "5m"), title);
            asked.extend(names(expression));
        }
    }
    for variable in board["templating"]["list"].as_array().expect("variables") {
        if let Some(query) = variable["query"].as_str().filter(|q| q.contains("millrace_")) {
            let inside = query.trim_start_matches("label_values(").trim_end_matches(')');
            let (metric, label) = inside.rsplit_once(',').expect("a metric and a label");
            check(&format!("sum by ({}) ({metric})", label.trim()), "a variable");
        }
    }
    for about in ["path", "volume", "drive", "pool", "shard", "array", "head", "host"] {
        assert!(
            asked.iter().any(|name| name.starts_with(&format!("millrace_{about}_"))),
            "nothing of {about}"
        );
    }
}

/// Prometheus' own tool, where `make test` has unpacked it or it is installed.
fn promtool(args: &[&str], input: &str) -> Option<String> {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| packaging("../target"), PathBuf::from);
    let unpacked = folder.join("promtool/usr/bin/promtool");
    let mut command = Command::new(if unpacked.exists() { unpacked } else { "promtool".into() });
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("written");
    let done = child.wait_with_output().expect("it ends");
    let told = [done.stdout, done.stderr].concat();
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(done.status.success(), "promtool {args:?}: {told}");
    Some(told)
}

#[test]
fn promtool_finds_nothing_wrong_with_metrics_and_rules() {
    for status in [alone(), two()] {
        let told = promtool(&["check", "metrics"], &exported(status, None));
        assert_eq!(told.unwrap_or_default().trim(), "");
    }
    let rules = packaging("prometheus/millrace.rules.yml");
    let told = promtool(&["check", "rules", &rules.display().to_string()], "");
    assert!(told.is_none_or(|told| told.contains("SUCCESS")));
}
