//! Figures of two readings, and how they look.

use super::figures::{By, Column, Figures, Reading, Row, Sort, Totals, Value, matches};
use super::screen;
use super::view::View;
use api::{
    Connection, Counters, Drive, DriveRole, Host, HostPath, PathRates, Protocol, Reason, Shard, Stages,
    State, Status, Times, Volume,
};
use base::Uuid;
use expect_test::expect_file;
use finding::StatusCause;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::time::Duration;

fn uuid(n: u64) -> Uuid {
    Uuid::from_random(0x1111_2222_3333_4444 + n, 0x5555_6666_7777_8888)
}

/// What was done after `n` seconds at `rate` reads and a quarter as many writes a second, of 4 KiB.
fn counters(n: u64, rate: u64) -> Counters {
    let (reads, writes) = (n * rate, n * rate / 4);
    Counters { reads, read_bytes: reads * 4096, writes, write_bytes: writes * 4096, flushes: 0, errors: 0 }
}

/// Of as many, one in 64 is timed; each takes `ns`.
fn times(n: u64, ns: u64) -> Times {
    let timed = n / 64;
    Times { p50_ns: ns, p99_ns: 3 * ns, timed, total_ns: timed * ns, total_timed: timed, ..Times::default() }
}

fn volume(name: &str, id: u64, n: u64, rate: u64) -> Volume {
    let c = counters(n, rate);
    let stages = |n, ns| Some(Stages { all: times(n, ns), ..Stages::default() });
    Volume {
        name: name.into(),
        uuid: uuid(id),
        counters: c,
        read_times: stages(c.reads, 84_000),
        write_times: stages(c.writes, 31_000),
        ..Volume::default()
    }
}

fn drive(path: &str, id: u64, n: u64, rate: u64) -> Drive {
    let c = counters(n, rate);
    Drive {
        path: path.into(),
        uuid: Some(uuid(id)),
        role: DriveRole::Leg,
        state: Some(State::Optimal),
        counters: c,
        read_times: Some(times(c.reads, 70_000)),
        write_times: Some(times(c.writes, 20_000)),
        ..Drive::default()
    }
}

fn connection(host: Option<&str>, port: u16, commands: u64, in_flight: u32) -> Connection {
    Connection {
        host: host.map(Into::into),
        peer: ([10, 0, 0, 50], port).into(),
        queue: 1,
        shard: port % 2,
        commands,
        in_flight,
        ..Connection::default()
    }
}

/// A head after `n` seconds of load.
fn busy(n: u64) -> Reading {
    let shard = |shard| Shard {
        shard,
        connections: 2,
        commands: n * 50_000,
        requests: 32,
        drive_ops: 40,
        buffer_bytes: 4 << 20,
        buffer_bytes_max: 512 << 20,
        longest_turn_us: 1200,
        ..Shard::default()
    };
    let host = |name: &str| {
        let path = |at: u8| HostPath {
            protocol: Protocol::Nvme,
            portal: ([10, 0, 0, at], 4420).into(),
            head: None,
            connections: 1,
            in_flight: 31,
            counters: counters(n, 32_000),
            rates: PathRates::default(),
            read_times: Some(times(n * 32_000, 90_000)),
            write_times: Some(times(n * 8_000, 40_000)),
            queue_times: Some(times(n * 40_000, 2_000)),
        };
        let paths = if name == "esx1" { vec![path(1), path(2)] } else { vec![] };
        Host { name: name.into(), paths, ..Host::default() }
    };
    let status = Status {
        at: api::Time(1_795_224_873 + n),
        uptime_seconds: 273_845 + n,
        volumes: vec![
            volume("tank/scratch", 1, n, 0),
            volume("tank/vm1", 2, n, 64_000),
            volume("tank/vm2", 3, n, 6400),
        ],
        drives: vec![
            drive("/dev/disk/by-id/nvme-SAMSUNG_MZQL21T9HCJR-00A07_S64GNE0R501", 11, n, 32_000),
            drive("/dev/nvme1n1", 12, n, 38_400),
        ],
        hosts: vec![host("esx1"), host("esx2"), host("esx10")],
        connections: vec![
            connection(Some("esx1"), 41_234, n * 40_000, 32),
            connection(Some("esx1"), 41_235, n * 40_000, 30),
            connection(Some("esx2"), 41_236, n * 8000, 4),
        ],
        shards: vec![shard(0), shard(1)],
        ..Status::default()
    };
    let cpu_ns = [(0, n * 430_000_000), (1, n * 510_000_000)].into();
    Reading { status, at: Duration::from_secs(n), cpu_ns }
}

/// The same with a leg that is lost.
fn degraded(n: u64) -> Reading {
    let mut reading = busy(n);
    let cause = StatusCause::LegNotOptimal {
        leg: "/dev/nvme1n1".into(),
        mirror: "mirror-0".into(),
        why: None,
        no_spare_fits: vec![],
        help: None,
    };
    let status = &mut reading.status;
    status.health = State::Degraded;
    let message = "mirror-0 has lost /dev/nvme1n1: it did not answer within 5 s".into();
    status.reasons = vec![Reason { message, ..Reason::new(State::Degraded, "pool tank", cause) }];
    status.volumes.iter_mut().for_each(|v| v.state = State::Degraded);
    status.drives[1].state = Some(State::Failed);
    status.drives[1].errors = 3;
    reading
}

fn value(figures: &Figures, by: By, name: &str, column: Column) -> Value {
    let at = by.columns().iter().position(|c| *c == column).expect("it has such a column");
    let rows = figures.rows(by);
    let row = rows.iter().find(|row| row.0[0] == name.into());
    row.unwrap_or_else(|| panic!("no {name}: {rows:?}")).0[at].clone()
}

#[test]
fn two_readings_give_rates_means_and_depths() {
    let (before, now) = (busy(10), busy(12));
    let figures = Figures::new(Some(&before), &now);
    let vm1 = |column| value(&figures, By::Volume, "tank/vm1", column);
    assert_eq!(vm1(Column::Reads), Value::Number(64_000.0));
    assert_eq!(vm1(Column::Writes), Value::Number(16_000.0));
    assert_eq!(vm1(Column::Commands), Value::Number(80_000.0));
    assert_eq!(vm1(Column::ReadBytes), Value::Number(64_000.0 * 4096.0));
    assert_eq!(
        (vm1(Column::ReadMean), vm1(Column::ReadP99)),
        (Value::Number(84_000.0), Value::Number(252_000.0))
    );
    let Value::Number(depth) = vm1(Column::Depth) else { panic!("there is a depth") };
    assert!((depth - (64_000.0 * 84e-6 + 16_000.0 * 31e-6)).abs() < 1e-6, "{depth}");
    let idle = |column| value(&figures, By::Volume, "tank/scratch", column);
    assert_eq!((idle(Column::Reads), idle(Column::Depth)), (Value::Number(0.0), Value::Number(0.0)));
    assert_eq!((idle(Column::ReadMean), idle(Column::ReadP99)), (Value::None, Value::None));
    let host = |name, column| value(&figures, By::Host, name, column);
    assert_eq!(host("esx1", Column::Commands), Value::Number(80_000.0));
    assert_eq!(host("esx1", Column::InFlight), Value::Number(62.0));
    assert_eq!(host("esx1", Column::Reads), Value::Number(64_000.0), "over both paths");
    assert_eq!(
        (host("esx1", Column::ReadMean), host("esx1", Column::QueueMean)),
        (Value::Number(90_000.0), Value::Number(2_000.0))
    );
    let path = |column| value(&figures, By::Path, "10.0.0.2:4420", column);
    assert_eq!(
        (path(Column::Writes), path(Column::WriteP99)),
        (Value::Number(8_000.0), Value::Number(120_000.0))
    );
    assert_eq!((path(Column::Host), path(Column::InFlight)), ("esx1".into(), Value::Number(31.0)));
    assert_eq!(host("esx10", Column::Connections), Value::Number(0.0));
    assert_eq!(value(&figures, By::Shard, "1", Column::Cpu), Value::Number(0.51));
    assert_eq!(value(&figures, By::Head, "this head", Column::Commands), Value::Number(100_000.0));
    assert_eq!(value(&figures, By::Head, "this head", Column::Hosts), Value::Number(2.0));
    let Totals { commands, mean_ns, p99_ns, cpu, .. } = figures.totals();
    assert_eq!((commands, p99_ns), (Some(88_000.0), Some(252_000)));
    let mean = mean_ns.expect("some were timed");
    assert!((73_000.0..74_000.0).contains(&mean), "{mean}");
    let (busy, cores) = cpu.expect("known");
    assert!((busy - 0.94).abs() < 1e-9 && cores == 2, "{busy} of {cores}");
}

#[test]
fn one_reading_has_no_rates() {
    let now = busy(10);
    for figures in [Figures::new(None, &now), Figures::new(Some(&now), &now)] {
        assert_eq!(figures.seconds(), None);
        for (by, name) in [
            (By::Volume, "tank/vm1"),
            (By::Host, "esx1"),
            (By::Connection, "10.0.0.50:41234"),
            (By::Shard, "0"),
        ] {
            assert_eq!(value(&figures, by, name, Column::Commands), Value::None, "{by:?}");
        }
        assert_eq!(value(&figures, By::Host, "esx1", Column::InFlight), Value::Number(62.0));
        assert_eq!((figures.totals().commands, figures.totals().mean_ns), (None, None));
    }
}

#[test]
fn counters_of_another_process_are_no_earlier_figures() {
    let before = busy(10);
    let restarted = [
        |s: &mut Status| s.daemon.pid = 77,
        |s: &mut Status| s.uptime_seconds = 1,
        |s: &mut Status| s.cluster = Some(api::Cluster { me: "b".into(), ..api::Cluster::default() }),
    ];
    for change in restarted {
        let mut now = busy(12);
        change(&mut now.status);
        assert_eq!(Figures::new(Some(&before), &now).seconds(), None);
    }
}

#[test]
fn a_counter_that_ran_backwards_has_no_rate() {
    let (before, mut now) = (busy(10), busy(12));
    now.status.volumes[1].counters.reads = 5;
    now.status.volumes[1].read_times = Some(Stages::default());
    now.status.connections[0].commands = 5;
    now.status.shards[0].commands = 5;
    now.cpu_ns.insert(0, 5);
    let figures = Figures::new(Some(&before), &now);
    let vm1 = |column| value(&figures, By::Volume, "tank/vm1", column);
    assert_eq!(
        (vm1(Column::Reads), vm1(Column::ReadMean), vm1(Column::Depth)),
        (Value::None, Value::None, Value::None)
    );
    assert_eq!(vm1(Column::Writes), Value::Number(16_000.0), "the others go on");
    assert_eq!(value(&figures, By::Connection, "10.0.0.50:41234", Column::Commands), Value::None);
    assert_eq!(value(&figures, By::Host, "esx1", Column::Commands), Value::Number(40_000.0));
    assert_eq!(value(&figures, By::Shard, "0", Column::Commands), Value::None);
    assert_eq!(value(&figures, By::Shard, "0", Column::Cpu), Value::None);
    assert_eq!(value(&figures, By::Head, "this head", Column::Commands), Value::None);
}

#[test]
fn what_came_has_no_rate_yet_and_what_went_has_no_row() {
    let (before, mut now) = (busy(10), busy(12));
    now.status.volumes.remove(1);
    now.status.volumes.push(volume("tank/new", 4, 1, 640));
    now.status.drives.remove(0);
    now.status.hosts.remove(1);
    // This one came since, so all of its commands did.
    now.status.connections.push(connection(None, 41_240, 8, 0));
    let figures = Figures::new(Some(&before), &now);
    let names = |by| figures.rows(by).iter().map(|row| row.0[0].clone()).collect::<Vec<_>>();
    assert_eq!(names(By::Volume), ["tank/scratch", "tank/vm2", "tank/new"].map(Value::from));
    assert_eq!(names(By::Drive), [Value::from("/dev/nvme1n1")]);
    let new = |column| value(&figures, By::Volume, "tank/new", column);
    assert_eq!((new(Column::Reads), new(Column::ReadMean)), (Value::None, Value::None));
    // One whose host is no longer known is still connected.
    assert_eq!(names(By::Host), ["esx1", "esx10", "esx2", "(not logged in)"].map(Value::from));
    assert_eq!(value(&figures, By::Host, "(not logged in)", Column::Commands), Value::Number(4.0));
}

#[test]
fn figures_of_two_heads_are_kept_apart() {
    let two = |n: u64| {
        let mut reading = busy(n);
        let head = |head: &str, state: &str| api::Head {
            head: head.into(),
            name: format!("rack-{head}"),
            state: state.into(),
            serves: Some(api::HeadServes { lanes: 8, ..api::HeadServes::default() }),
            ..api::Head::default()
        };
        let heads = vec![head("a", "leads"), head("b", "follows")];
        let cluster = api::Cluster { me: "a".into(), heads, ..api::Cluster::default() };
        let status = &mut reading.status;
        status.cluster = Some(cluster);
        let letters = ["a", "b", "a"].map(|letter| Some(letter.to_string()));
        for (connection, letter) in status.connections.iter_mut().zip(letters) {
            connection.head = letter;
        }
        status.shards[0].head = Some("a".into());
        status.shards[1].head = Some("b".into());
        status.shards[1].shard = 0;
        reading
    };
    let (before, now) = (two(10), two(12));
    let figures = Figures::new(Some(&before), &now);
    assert_eq!(value(&figures, By::Shard, "a0", Column::Cpu), Value::Number(0.43));
    assert_eq!(value(&figures, By::Shard, "b0", Column::Cpu), Value::None, "it runs elsewhere");
    assert_eq!(value(&figures, By::Head, "a (rack-a)", Column::Role), "leads".into());
    assert_eq!(value(&figures, By::Head, "a (rack-a)", Column::Hosts), Value::Number(2.0));
    assert_eq!(value(&figures, By::Head, "b (rack-b)", Column::Commands), Value::Number(50_000.0));
    // A head that is out has no shards here.
    let mut out = two(12);
    out.status.shards.remove(1);
    let figures = Figures::new(Some(&before), &out);
    assert_eq!(value(&figures, By::Head, "b (rack-b)", Column::Commands), Value::None);
}

#[test]
fn rows_are_sorted_and_filtered() {
    let (before, mut now) = (busy(10), busy(12));
    now.status.volumes.push(volume("tank/new", 4, 1, 640));
    let figures = Figures::new(Some(&before), &now);
    let names = |by: By, column, reverse| {
        let mut rows = figures.rows(by);
        Sort { column, reverse }.sort(by, &mut rows);
        let word = |row: &Row| match &row.0[0] {
            Value::Word(word) => word.trim_start_matches("tank/").to_string(),
            other => panic!("{other:?} is no name"),
        };
        rows.iter().map(word).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(By::Volume, None, false), "vm1 vm2 scratch new");
    assert_eq!(names(By::Volume, None, true), "scratch vm2 vm1 new", "what is not known stays last");
    assert_eq!(names(By::Volume, Some(Column::Name), false), "new scratch vm1 vm2");
    assert_eq!(names(By::Volume, Some(Column::InState), false), "new scratch vm1 vm2", "equal ones by name");
    assert_eq!(names(By::Host, Some(Column::Name), false), "esx1 esx2 esx10", "numbers count");
    assert_eq!(names(By::Host, Some(Column::ReadMean), false), "esx1 esx2 esx10", "a column that hosts lack");
    let row = Row(vec!["tank/Vm1".into(), Value::State(State::Degraded), Value::Number(7.0), Value::None]);
    for (filter, is_shown) in [("", true), ("vm", true), ("VM1", true), ("degr", true), ("7", false)] {
        assert_eq!(matches(&row, filter), is_shown, "{filter}");
    }
}

#[test]
fn a_line_for_programs_has_a_key_for_each_column() {
    let (before, now) = (busy(10), busy(12));
    let figures = Figures::new(Some(&before), &now);
    for by in By::ALL {
        let json = figures.json(by, &figures.rows(by));
        let row = json["rows"][0].as_object().expect("a row");
        assert_eq!(row.len(), by.columns().len(), "{by:?}");
        assert_eq!(json["by"], by.word());
    }
    let json = figures.json(By::Volume, &figures.rows(By::Volume));
    assert_eq!(json["total"]["commands_per_s"], 88_000);
    assert_eq!(json["rows"][1]["reads_per_s"], 64_000);
    assert_eq!(json["rows"][1]["state"], "optimal");
    assert!(json["rows"][0]["read_mean_ns"].is_null());
}

/// What a terminal of this size shows.
fn drawn(figures: &Figures, view: &View, trouble: Option<&str>, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let draw = |frame: &mut ratatui::Frame| {
        screen::draw(figures, view, trouble, true, frame.area(), frame.buffer_mut());
    };
    terminal.draw(draw).expect("drawn");
    let buffer = terminal.backend().buffer();
    let line = |cells: &[ratatui::buffer::Cell]| {
        cells.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_string() + "\n"
    };
    buffer.content().chunks(usize::from(width)).map(line).collect()
}

#[test]
fn the_screens_are_what_they_were() {
    let nothing = Reading::default();
    let readings = [busy(10), busy(12), degraded(10), degraded(12)];
    let [busy_before, busy_now, degraded_before, degraded_now] = &readings;
    for (width, file) in [(80, expect_file!["screens/80.txt"]), (160, expect_file!["screens/160.txt"])] {
        let mut all = String::new();
        let mut show = |name: &str, figures: &Figures, view: View, trouble| {
            let text = drawn(figures, &view, trouble, (width, 13));
            assert!(text.lines().all(|l| crate::screen::columns(l) <= usize::from(width)), "{text}");
            all.push_str(&format!("--- {name}\n{text}"));
        };
        show("empty", &Figures::new(None, &nothing), View::default(), None);
        let figures = Figures::new(Some(busy_before), busy_now);
        for by in By::ALL {
            show(&format!("busy, by {}", by.word()), &figures, View { by, ..View::default() }, None);
        }
        let view = View { filter: "vm2".into(), is_typing: true, ..View::default() };
        show("busy, a filter is typed", &figures, view, None);
        let figures = Figures::new(Some(degraded_before), degraded_now);
        show("degraded", &figures, View::default(), None);
        let view = View { by: By::Drive, filter: "nvme".into(), ..View::default() };
        show("degraded, drives, no answer", &figures, view, Some("the daemon does not answer"));
        file.assert_eq(&all);
    }
}

#[test]
fn a_small_terminal_shows_what_fits() {
    let (before, now) = (busy(10), busy(12));
    let figures = Figures::new(Some(&before), &now);
    for width in [1, 2, 10, 40, 60, 79] {
        for height in 1..8 {
            let text = drawn(&figures, &View::default(), Some("trouble"), (width, height));
            assert_eq!(text.lines().count(), usize::from(height));
        }
    }
    let view = View { scroll: 2, ..View::default() };
    let text = drawn(&figures, &view, None, (80, 7));
    assert!(text.contains("tank/scratch") && !text.contains("tank/vm1"), "{text}");
}

#[test]
fn a_pipe_gets_the_same_without_keys() {
    let (before, now) = (degraded(10), degraded(12));
    let text = screen::plain(
        &Figures::new(Some(&before), &now),
        &View { by: By::Drive, ..View::default() },
        crate::screen::Terminal::plain(160),
    );
    assert!(text.starts_with("millrace  ● degraded  up "), "{text}");
    assert!(text.contains("pool tank: mirror-0 has lost") && text.contains("/dev/nvme1n1"), "{text}");
    assert!(!text.contains("q: quit") && text.ends_with("\n\n"), "{text}");
}

#[test]
fn times_between_readings_are_read() {
    use super::interval;
    for (text, ms) in [("1s", 1000), ("500ms", 500), ("0.5", 500), ("2", 2000), ("1.5s", 1500)] {
        assert_eq!(interval(text), Ok(Duration::from_millis(ms)), "{text}");
    }
    for text in ["", "s", "0", "1ms", "-1", "nan", "2h", "99999"] {
        assert!(interval(text).expect_err(text).contains("is not a time"), "{text}");
    }
}
