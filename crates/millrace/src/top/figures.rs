//! What `millrace top` shows: two readings of a head become rows with rates, latencies and queue depths.
//!
//! Pure: no clock, no terminal, no daemon.

use crate::cli::drive::{name_among, natural};
use api::{Connection, Counters, HostPath, Shard, Stages, State, Status, Times};
use core::cmp::Ordering;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What there is a row for each of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum By {
    /// Volumes.
    #[default]
    Volume,
    /// Hosts.
    Host,
    /// Paths: all that a host has over one portal.
    Path,
    /// Connections of hosts.
    Connection,
    /// Drives of pools.
    Drive,
    /// Shards.
    Shard,
    /// Heads.
    Head,
}

use Column::*;

impl By {
    /// All of them, in the order in which they are shown.
    pub const ALL: [By; 7] = [By::Volume, By::Host, By::Path, By::Connection, By::Drive, By::Shard, By::Head];

    /// The word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            By::Volume => "volume",
            By::Host => "host",
            By::Path => "path",
            By::Connection => "connection",
            By::Drive => "drive",
            By::Shard => "shard",
            By::Head => "head",
        }
    }

    /// What that word means.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.word() == word)
    }

    /// Its columns, in order.
    pub fn columns(self) -> &'static [Column] {
        match self {
            By::Volume | By::Drive => &[
                Name, InState, Commands, Reads, Writes, ReadBytes, WriteBytes, ReadMean, ReadP99, WriteMean,
                WriteP99, Depth, Errors,
            ],
            By::Host => &[
                Name,
                Connections,
                Commands,
                Reads,
                Writes,
                ReadBytes,
                WriteBytes,
                ReadMean,
                ReadP99,
                WriteMean,
                WriteP99,
                QueueMean,
                InFlight,
            ],
            By::Path => &[
                Name,
                Host,
                Protocol,
                Connections,
                Commands,
                Reads,
                Writes,
                ReadBytes,
                WriteBytes,
                ReadMean,
                ReadP99,
                WriteMean,
                WriteP99,
                QueueMean,
                InFlight,
            ],
            By::Connection => &[Name, Host, Protocol, Queue, AtShard, Commands, InFlight],
            By::Shard => {
                &[Name, Connections, Commands, InFlight, DriveOps, Buffers, LongestTurn, Cpu, Errors]
            }
            By::Head => &[Name, Role, Hosts, Connections, Commands, InFlight, DriveOps, Lanes, Cpu, Errors],
        }
    }
}

/// A column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// What the row is of.
    Name,
    /// Its state.
    InState,
    /// What a head is in its system.
    Role,
    /// The host of a connection.
    Host,
    /// What it speaks.
    Protocol,
    /// NVMe queue or iSCSI connection.
    Queue,
    /// The shard that serves it.
    AtShard,
    /// Hosts that are connected.
    Hosts,
    /// Connections.
    Connections,
    /// Commands or operations a second, of all kinds.
    Commands,
    /// Reads a second.
    Reads,
    /// Writes a second.
    Writes,
    /// Bytes read a second.
    ReadBytes,
    /// Bytes written a second.
    WriteBytes,
    /// Mean latency of the reads since the last reading.
    ReadMean,
    /// What 99 of 100 reads of the last minutes did not exceed.
    ReadP99,
    /// Mean latency of the writes since the last reading.
    WriteMean,
    /// What 99 of 100 writes of the last minutes did not exceed.
    WriteP99,
    /// Mean time that commands waited for caps and for their array since the last reading.
    QueueMean,
    /// Mean number under way since the last reading.
    Depth,
    /// Number under way now.
    InFlight,
    /// Drive operations under way now.
    DriveOps,
    /// Buffer bytes in use.
    Buffers,
    /// The longest turn of the last minutes.
    LongestTurn,
    /// Part of a core that was used.
    Cpu,
    /// Lanes of mirrors.
    Lanes,
    /// Errors since the start.
    Errors,
}

/// What a column counts in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Words.
    Word,
    /// Things.
    Count,
    /// Things that are wrong.
    Errors,
    /// A mean number of things.
    Mean,
    /// Things a second.
    Rate,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    ByteRate,
    /// Nanoseconds.
    Ns,
    /// A part of one.
    Share,
}

impl Column {
    /// All of them.
    pub const ALL: [Column; 27] = [
        Name,
        InState,
        Role,
        Host,
        Protocol,
        Queue,
        AtShard,
        Hosts,
        Connections,
        Commands,
        Reads,
        Writes,
        ReadBytes,
        WriteBytes,
        ReadMean,
        ReadP99,
        WriteMean,
        WriteP99,
        QueueMean,
        Depth,
        InFlight,
        DriveOps,
        Buffers,
        LongestTurn,
        Cpu,
        Lanes,
        Errors,
    ];

    /// Its word on the command line, its heading (flush right with a `>`), its key in JSON, and its unit.
    fn facts(self) -> (&'static str, &'static str, &'static str, Unit) {
        match self {
            Name => ("name", "NAME", "name", Unit::Word),
            InState => ("state", "STATE", "state", Unit::Word),
            Role => ("role", "ROLE", "role", Unit::Word),
            Host => ("host", "HOST", "host", Unit::Word),
            Protocol => ("protocol", "PROTOCOL", "protocol", Unit::Word),
            Queue => ("queue", ">QUEUE", "queue", Unit::Count),
            AtShard => ("shard", ">SHARD", "shard", Unit::Word),
            Hosts => ("hosts", ">HOSTS", "hosts", Unit::Count),
            Connections => ("connections", ">CONNECTIONS", "connections", Unit::Count),
            Commands => ("commands", ">COMMANDS/S", "commands_per_s", Unit::Rate),
            Reads => ("reads", ">READS/S", "reads_per_s", Unit::Rate),
            Writes => ("writes", ">WRITES/S", "writes_per_s", Unit::Rate),
            ReadBytes => ("read", ">READ/S", "read_bytes_per_s", Unit::ByteRate),
            WriteBytes => ("written", ">WRITTEN/S", "write_bytes_per_s", Unit::ByteRate),
            ReadMean => ("read-mean", ">READ MEAN", "read_mean_ns", Unit::Ns),
            ReadP99 => ("read-p99", ">READ p99", "read_p99_ns", Unit::Ns),
            WriteMean => ("write-mean", ">WRITE MEAN", "write_mean_ns", Unit::Ns),
            WriteP99 => ("write-p99", ">WRITE p99", "write_p99_ns", Unit::Ns),
            QueueMean => ("queue-mean", ">QUEUE MEAN", "queue_mean_ns", Unit::Ns),
            Depth => ("depth", ">DEPTH", "depth", Unit::Mean),
            InFlight => ("in-flight", ">IN FLIGHT", "in_flight", Unit::Count),
            DriveOps => ("drive-ops", ">DRIVE OPS", "drive_ops", Unit::Count),
            Buffers => ("buffers", ">BUFFERS", "buffer_bytes", Unit::Bytes),
            LongestTurn => ("longest-turn", ">LONGEST TURN", "longest_turn_ns", Unit::Ns),
            Cpu => ("cpu", ">CPU", "cpu", Unit::Share),
            Lanes => ("lanes", ">LANES", "lanes", Unit::Count),
            Errors => ("errors", ">ERRORS", "errors", Unit::Errors),
        }
    }
    /// Its word on the command line.
    pub fn word(self) -> &'static str {
        self.facts().0
    }
    /// What that word means.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.word() == word)
    }
    /// Its heading; one that begins with `>` is flush right.
    pub fn heading(self) -> &'static str {
        self.facts().1
    }
    /// Its key in JSON.
    pub fn key(self) -> &'static str {
        self.facts().2
    }
    /// What it counts in.
    pub fn unit(self) -> Unit {
        self.facts().3
    }
}

/// What stands in a cell.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Not known, or nothing to be measured.
    None,
    /// A word.
    Word(String),
    /// A state.
    State(State),
    /// A number of the column's unit.
    Number(f64),
}

impl Value {
    /// The value in JSON. A millionth is as fine as any of these figures is.
    fn json(&self) -> Json {
        match self {
            Value::None => Json::Null,
            Value::Word(word) => word.as_str().into(),
            Value::State(state) => state.word().into(),
            Value::Number(n) if n.fract() == 0.0 && (0.0..1e15).contains(n) => (*n as u64).into(),
            Value::Number(n) => ((n * 1e6).round() / 1e6).into(),
        }
    }
    /// What is larger comes first, and words in their order; what is not known comes last.
    fn before(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => b.total_cmp(a),
            (Value::State(a), Value::State(b)) => b.cmp(a),
            (Value::Word(a), Value::Word(b)) => natural(a).cmp(&natural(b)),
            (..) => Ordering::Equal,
        }
    }
    fn is_known(&self) -> bool {
        *self != Value::None
    }
}

impl From<Option<f64>> for Value {
    fn from(n: Option<f64>) -> Self {
        n.map_or(Value::None, Value::Number)
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Value::Number(n as f64)
    }
}

impl From<u32> for Value {
    fn from(n: u32) -> Self {
        u64::from(n).into()
    }
}

impl From<&str> for Value {
    fn from(word: &str) -> Self {
        Value::Word(word.into())
    }
}

impl From<Option<&str>> for Value {
    fn from(word: Option<&str>) -> Self {
        word.map_or(Value::None, Value::from)
    }
}

/// A row: one value for each of its columns.
#[derive(Clone, PartialEq, Debug)]
pub struct Row(pub Vec<Value>);

/// The head at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reading {
    /// What it says.
    pub status: Status,
    /// When it said so, by a clock that does not jump.
    pub at: Duration,
    /// Nanoseconds that each of its shards has run, where that is known.
    pub cpu_ns: BTreeMap<u16, u64>,
}

/// All volumes together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Totals {
    /// Commands a second.
    pub commands: Option<f64>,
    /// Bytes read a second.
    pub read_bytes: Option<f64>,
    /// Bytes written a second.
    pub write_bytes: Option<f64>,
    /// Mean latency since the last reading, nanoseconds.
    pub mean_ns: Option<f64>,
    /// The highest median of any volume's reads or writes of the last minutes.
    pub p50_ns: Option<u64>,
    /// The highest 99th percentile of the same.
    pub p99_ns: Option<u64>,
    /// Cores that the shards kept busy, and how many have shards of which that is known.
    pub cpu: Option<(f64, usize)>,
}

/// Two readings, and the time between them.
#[derive(Clone, Debug)]
pub struct Figures<'a> {
    earlier: Option<&'a Reading>,
    now: &'a Reading,
    seconds: f64,
}

/// Readings that lie closer together are of no use.
const SECONDS_MIN: f64 = 0.001;

impl<'a> Figures<'a> {
    /// Of two readings. An earlier one of another process, whose counters began anew, counts as none.
    pub fn new(earlier: Option<&'a Reading>, now: &'a Reading) -> Self {
        let head = |r: &'a Reading| r.status.cluster.as_ref().map(|c| c.me.as_str());
        let same = |e: &&Reading| {
            e.status.daemon.pid == now.status.daemon.pid
                && e.status.uptime_seconds <= now.status.uptime_seconds
                && e.status.cluster.as_ref().map(|c| c.me.as_str()) == head(now)
        };
        let earlier = earlier.filter(same);
        let seconds = earlier.map_or(0.0, |e| now.at.saturating_sub(e.at).as_secs_f64());
        Self { earlier: earlier.filter(|_| seconds >= SECONDS_MIN), now, seconds }
    }
    /// The newer status.
    pub fn status(&self) -> &'a Status {
        &self.now.status
    }
    /// Seconds between the readings; None if there are no rates.
    pub fn seconds(&self) -> Option<f64> {
        self.earlier.map(|_| self.seconds)
    }

    /// How much a second: None without an earlier figure, and for one that is less than before.
    fn rate(&self, before: Option<u64>, now: u64) -> Option<f64> {
        Some(now.checked_sub(before?)? as f64 / self.seconds)
    }

    /// The rows.
    pub fn rows(&self, by: By) -> Vec<Row> {
        let rows: Vec<Row> = match by {
            By::Volume => self.volumes(),
            By::Host => self.hosts(),
            By::Path => self.paths(),
            By::Connection => self.connections(),
            By::Drive => self.drives(),
            By::Shard => self.shards(),
            By::Head => self.heads(),
        };
        debug_assert!(rows.iter().all(|row| row.0.len() == by.columns().len()));
        rows
    }

    fn volumes(&self) -> Vec<Row> {
        let before: BTreeMap<_, _> =
            self.earlier.iter().flat_map(|e| &e.status.volumes).map(|v| (v.uuid, v)).collect();
        let times = |stages: &Option<Stages>| stages.as_ref().map(|s| s.all);
        let row = |v: &api::Volume| {
            let earlier = before.get(&v.uuid).map(|b| Worked {
                counters: b.counters,
                reads: times(&b.read_times),
                writes: times(&b.write_times),
            });
            let now =
                Worked { counters: v.counters, reads: times(&v.read_times), writes: times(&v.write_times) };
            self.worked(&v.name, v.state, earlier, now, v.counters.errors)
        };
        self.status().volumes.iter().map(row).collect()
    }

    fn drives(&self) -> Vec<Row> {
        let key = |d: &api::Drive| (d.uuid, d.path.clone());
        let before: BTreeMap<_, _> =
            self.earlier.iter().flat_map(|e| &e.status.drives).map(|d| (key(d), d)).collect();
        let worked =
            |d: &api::Drive| Worked { counters: d.counters, reads: d.read_times, writes: d.write_times };
        let all = &self.status().drives;
        let row = |d: &api::Drive| {
            let name = name_among(d, all);
            let earlier = before.get(&key(d)).map(|b| worked(b));
            Some(self.worked(&name, d.state?, earlier, worked(d), d.errors))
        };
        all.iter().filter_map(row).collect()
    }

    /// The row of what reads and writes.
    fn worked(&self, name: &str, state: State, before: Option<Worked>, now: Worked, errors: u64) -> Row {
        let rate =
            |of: fn(&Counters) -> u64| self.rate(before.as_ref().map(|b| of(&b.counters)), of(&now.counters));
        let (reads, writes) = (rate(|c| c.reads), rate(|c| c.writes));
        let way = |of: fn(&Worked) -> Option<Times>| before.as_ref().and_then(|b| mean(of(b), of(&now)));
        let (read_mean, write_mean) = (way(|w| w.reads), way(|w| w.writes));
        let p99 = |t: Option<Times>| t.filter(|t| t.timed > 0).map(|t| t.p99_ns as f64);
        // As many are under way as come in the time that one takes (Little).
        let under_way = |rate: Option<f64>, mean: Option<f64>| match rate? {
            0.0 => Some(0.0),
            rate => Some(rate * mean? / 1e9),
        };
        let depth = under_way(reads, read_mean).zip(under_way(writes, write_mean)).map(|(r, w)| r + w);
        Row(vec![
            name.into(),
            Value::State(state),
            rate(|c| c.reads + c.writes + c.flushes).into(),
            reads.into(),
            writes.into(),
            rate(|c| c.read_bytes).into(),
            rate(|c| c.write_bytes).into(),
            read_mean.into(),
            p99(now.reads).into(),
            write_mean.into(),
            p99(now.writes).into(),
            depth.into(),
            errors.into(),
        ])
    }

    /// Commands a second of each connection, in their order. One that was not there before has sent all of its commands
    /// since.
    fn connection_rates(&self) -> Vec<(&'a Connection, Option<f64>)> {
        let key = |c: &Connection| (c.head.clone(), c.shard, c.peer);
        let before: Option<BTreeMap<_, _>> =
            self.earlier.map(|e| e.status.connections.iter().map(|c| (key(c), c.commands)).collect());
        let rate = |c: &Connection| {
            let before = before.as_ref().map(|b| b.get(&key(c)).copied().unwrap_or(0));
            self.rate(before, c.commands)
        };
        self.status().connections.iter().map(|c| (c, rate(c))).collect()
    }

    /// What paths did a second, and how long it took: the means of the last interval, and the highest percentile of any.
    fn transferred(&self, host: &str, is_of: impl Fn(&HostPath) -> bool) -> [Value; 10] {
        let of = |reading: &'a Reading| -> Option<Vec<&'a HostPath>> {
            let host = reading.status.hosts.iter().find(|h| h.name == host)?;
            Some(host.paths.iter().filter(|p| is_of(p)).collect())
        };
        let now = of(self.now).unwrap_or_default();
        let before = self.earlier.and_then(of);
        let counted =
            |paths: &[&HostPath], of: fn(&Counters) -> u64| paths.iter().map(|p| of(&p.counters)).sum();
        let rate = |of: fn(&Counters) -> u64| {
            self.rate(before.as_ref().map(|b| counted(b, of)), counted(&now, of)).into()
        };
        let timed = |paths: &[&HostPath], of: fn(&HostPath) -> Option<Times>| {
            paths.iter().filter_map(|p| of(p)).fold(None, |sum: Option<Times>, t| {
                let sum = sum.unwrap_or_default();
                Some(Times {
                    total_ns: sum.total_ns + t.total_ns,
                    total_timed: sum.total_timed + t.total_timed,
                    timed: sum.timed + t.timed,
                    p99_ns: sum.p99_ns.max(t.p99_ns),
                    ..sum
                })
            })
        };
        let lasted = |of: fn(&HostPath) -> Option<Times>| {
            before.as_ref().and_then(|b| mean(timed(b, of), timed(&now, of))).into()
        };
        let p99 = |of: fn(&HostPath) -> Option<Times>| {
            timed(&now, of).filter(|t| t.timed > 0).map(|t| t.p99_ns as f64).into()
        };
        [
            rate(|c| c.reads + c.writes + c.flushes),
            rate(|c| c.reads),
            rate(|c| c.writes),
            rate(|c| c.read_bytes),
            rate(|c| c.write_bytes),
            lasted(|p| p.read_times),
            p99(|p| p.read_times),
            lasted(|p| p.write_times),
            p99(|p| p.write_times),
            lasted(|p| p.queue_times),
        ]
    }

    fn hosts(&self) -> Vec<Row> {
        let rates = self.connection_rates();
        let row = |name: Option<&str>| {
            let own: Vec<_> = rates.iter().filter(|(c, _)| c.host.as_deref() == name).collect();
            let commands = self.earlier.map(|_| own.iter().filter_map(|(_, rate)| *rate).sum::<f64>());
            let in_flight: u64 = own.iter().map(|(c, _)| u64::from(c.in_flight)).sum();
            let [_, rest @ ..] = self.transferred(name.unwrap_or_default(), |_| true);
            let name = name.unwrap_or(UNAUTHENTICATED);
            let mut row = vec![name.into(), (own.len() as u64).into(), commands.into()];
            row.extend(rest);
            row.push(in_flight.into());
            Row(row)
        };
        let known = self.status().hosts.iter().map(|h| Some(h.name.as_str()));
        // A host that was removed may still be connected for a moment.
        let others = rates.iter().map(|(c, _)| c.host.as_deref());
        let mut seen = BTreeSet::new();
        known.chain(others).filter(|name| seen.insert(*name)).map(row).collect()
    }

    fn paths(&self) -> Vec<Row> {
        let row = |host: &str, path: &HostPath| {
            let head = path.head.as_deref().map_or(String::new(), |head| format!("{head} "));
            let (protocol, portal) = (path.protocol, path.portal);
            let mut row = vec![
                Value::Word(format!("{head}{portal}")),
                host.into(),
                protocol.word().into(),
                path.connections.into(),
            ];
            let is_it =
                |p: &HostPath| (p.protocol, p.portal, &p.head) == (path.protocol, path.portal, &path.head);
            row.extend(self.transferred(host, is_it));
            row.push(path.in_flight.into());
            Row(row)
        };
        let hosts = self.status().hosts.iter();
        hosts.flat_map(|h| h.paths.iter().map(|p| row(&h.name, p))).collect()
    }

    fn connections(&self) -> Vec<Row> {
        let row = |(c, rate): (&Connection, Option<f64>)| {
            Row(vec![
                Value::Word(c.peer.to_string()),
                c.host.as_deref().into(),
                c.protocol.word().into(),
                u64::from(c.queue).into(),
                Value::Word(place(c.head.as_deref(), c.shard)),
                rate.into(),
                c.in_flight.into(),
            ])
        };
        self.connection_rates().into_iter().map(row).collect()
    }

    /// Commands a second of a shard.
    fn shard_rate(&self, shard: &Shard) -> Option<f64> {
        let same = |s: &&Shard| s.head == shard.head && s.shard == shard.shard;
        let before = self.earlier?.status.shards.iter().find(same)?;
        self.rate(Some(before.commands), shard.commands)
    }

    /// The part of a core that a shard kept busy: of the head alone that answers, and on its machine.
    fn shard_cpu(&self, shard: &Shard) -> Option<f64> {
        let me = self.status().cluster.as_ref().map(|c| c.me.as_str());
        if shard.head.as_deref() != me && shard.head.is_some() {
            return None;
        }
        let before = self.earlier?.cpu_ns.get(&shard.shard)?;
        let busy = self.rate(Some(*before), *self.now.cpu_ns.get(&shard.shard)?)? / 1e9;
        Some(busy.min(1.0))
    }

    fn shards(&self) -> Vec<Row> {
        let row = |s: &Shard| {
            Row(vec![
                Value::Word(place(s.head.as_deref(), s.shard)),
                s.connections.into(),
                self.shard_rate(s).into(),
                s.requests.into(),
                s.drive_ops.into(),
                s.buffer_bytes.into(),
                (s.longest_turn_us * 1000).into(),
                self.shard_cpu(s).into(),
                s.protocol_errors.into(),
            ])
        };
        self.status().shards.iter().map(row).collect()
    }

    fn heads(&self) -> Vec<Row> {
        let status = self.status();
        let row = |name: &str, letter: Option<&str>, role: Option<&str>, lanes: Option<u32>| {
            let shards: Vec<&Shard> = status.shards.iter().filter(|s| s.head.as_deref() == letter).collect();
            let connections = || status.connections.iter().filter(|c| c.head.as_deref() == letter);
            let hosts: BTreeSet<&String> = connections().filter_map(|c| c.host.as_ref()).collect();
            let sum = |of: fn(&Shard) -> u64| shards.iter().map(|s| of(s)).sum::<u64>();
            // Of a head that is not reached nothing is known.
            if shards.is_empty() {
                let mut row = vec![Value::None; By::Head.columns().len()];
                row[0] = name.into();
                row[1] = role.into();
                return Row(row);
            }
            let all = |of: &dyn Fn(&Shard) -> Option<f64>| shards.iter().map(|s| of(s)).sum::<Option<f64>>();
            Row(vec![
                name.into(),
                role.into(),
                (hosts.len() as u64).into(),
                (connections().count() as u64).into(),
                all(&|s| self.shard_rate(s)).into(),
                sum(|s| s.requests.into()).into(),
                sum(|s| s.drive_ops.into()).into(),
                lanes.map_or(Value::None, Value::from),
                all(&|s| self.shard_cpu(s)).into(),
                sum(|s| s.protocol_errors).into(),
            ])
        };
        let Some(cluster) = &status.cluster else { return vec![row("this head", None, None, None)] };
        let heads = cluster.heads.iter().filter(|h| h.state != "none");
        heads
            .map(|h| {
                let name =
                    if h.name.is_empty() { h.head.clone() } else { format!("{} ({})", h.head, h.name) };
                row(&name, Some(&h.head), Some(&h.state), h.serves.as_ref().map(|s| s.lanes))
            })
            .collect()
    }

    /// All volumes together.
    pub fn totals(&self) -> Totals {
        let rows = self.volumes();
        let sum = |column: Column| {
            let at = By::Volume.columns().iter().position(|c| *c == column).unwrap_or(0);
            let known = rows.iter().filter_map(|row| match row.0[at] {
                Value::Number(n) => Some(n),
                _ => None,
            });
            self.earlier.map(|_| known.sum::<f64>())
        };
        let all = |of: fn(&Times) -> u64| {
            let ways = self.status().volumes.iter().flat_map(|v| [&v.read_times, &v.write_times]);
            ways.flatten().map(|s| s.all).filter(|t| t.timed > 0).map(|t| of(&t)).max()
        };
        let timed = |reading: &Reading, of: fn(&Times) -> u64| {
            let ways = reading.status.volumes.iter().flat_map(|v| [&v.read_times, &v.write_times]);
            ways.flatten().map(|s| of(&s.all)).sum::<u64>()
        };
        let gained = |of: fn(&Times) -> u64| timed(self.now, of).checked_sub(timed(self.earlier?, of));
        let mean = gained(|t| t.total_ns).zip(gained(|t| t.total_timed).filter(|n| *n > 0));
        let cpu: Vec<f64> = self.status().shards.iter().filter_map(|s| self.shard_cpu(s)).collect();
        Totals {
            commands: sum(Commands),
            read_bytes: sum(ReadBytes),
            write_bytes: sum(WriteBytes),
            mean_ns: mean.map(|(ns, n)| ns as f64 / n as f64),
            p50_ns: all(|t| t.p50_ns),
            p99_ns: all(|t| t.p99_ns),
            cpu: (!cpu.is_empty()).then(|| (cpu.iter().sum(), cpu.len())),
        }
    }

    /// One line for programs.
    pub fn json(&self, by: By, rows: &[Row]) -> Json {
        let one = |row: &Row| -> Map<String, Json> {
            by.columns().iter().zip(&row.0).map(|(c, value)| (c.key().to_string(), value.json())).collect()
        };
        let t = self.totals();
        let number = |n: Option<f64>| Value::from(n).json();
        json!({
            "at": self.status().at,
            "seconds": number(self.seconds()),
            "health": self.status().health,
            "total": {
                "commands_per_s": number(t.commands),
                "read_bytes_per_s": number(t.read_bytes),
                "write_bytes_per_s": number(t.write_bytes),
                "mean_ns": number(t.mean_ns),
                "p50_ns_max": t.p50_ns,
                "p99_ns_max": t.p99_ns,
                "cpu": number(t.cpu.map(|(busy, _)| busy)),
            },
            "by": by.word(),
            "rows": rows.iter().map(one).collect::<Vec<_>>(),
        })
    }
}

/// What the row of connections before their login is called.
const UNAUTHENTICATED: &str = "(not logged in)";

/// What something did so far.
struct Worked {
    counters: Counters,
    reads: Option<Times>,
    writes: Option<Times>,
}

/// The mean of what was timed between two readings; None if nothing was.
fn mean(before: Option<Times>, now: Option<Times>) -> Option<f64> {
    let (before, now) = (before.unwrap_or_default(), now?);
    let timed = now.total_timed.checked_sub(before.total_timed).filter(|n| *n > 0)?;
    Some(now.total_ns.checked_sub(before.total_ns)? as f64 / timed as f64)
}

/// A shard, with its head where there are two.
fn place(head: Option<&str>, shard: u16) -> String {
    format!("{}{shard}", head.unwrap_or_default())
}

/// In which order rows are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sort {
    /// By which column; the busiest first if there is none, or the rows have no such column.
    pub column: Option<Column>,
    /// The other way round.
    pub reverse: bool,
}

impl Sort {
    /// The column that decides.
    pub fn column_of(self, by: By) -> Column {
        self.column.filter(|c| by.columns().contains(c)).unwrap_or(Commands)
    }
    /// Sorts rows. What is not known comes last either way; equal ones are in the order of their names.
    pub fn sort(self, by: By, rows: &mut [Row]) {
        let column = self.column_of(by);
        let at = by.columns().iter().position(|c| *c == column).unwrap_or(0);
        rows.sort_by(|a, b| {
            let (x, y) = (&a.0[at], &b.0[at]);
            let order = if self.reverse { y.before(x) } else { x.before(y) };
            let known = y.is_known().cmp(&x.is_known());
            known.then(order).then_with(|| a.0[0].before(&b.0[0]))
        });
    }
}

/// Whether a word of the row contains `filter`, in small or capital letters.
pub fn matches(row: &Row, filter: &str) -> bool {
    let filter = filter.to_lowercase();
    row.0.iter().any(|value| match value {
        Value::Word(word) => word.to_lowercase().contains(&filter),
        Value::State(state) => state.word().contains(&filter),
        Value::None | Value::Number(_) => false,
    })
}
