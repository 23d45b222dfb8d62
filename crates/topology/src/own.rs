//! What the daemon says of itself: drives, pools, legs, shards, connections. A view of its status that takes any
//! version of it: what is not there is empty, what is of another kind too.

use crate::gap::Gap;
use serde::Serialize;
use serde_json::Value;

/// Loads below this many commands a second are too small to explain, or to conclude anything from.
pub(crate) const LOAD_MIN: f64 = 50.0;

/// Commands and bytes since the daemon's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counters {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// A drive of the head.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct OwnDrive {
    /// Its path.
    pub path: String,
    /// Identity by label.
    pub uuid: String,
    /// Its pool, empty if none.
    pub pool: String,
    /// leg, spare, free, foreign and so on.
    pub role: String,
    /// Its state.
    pub state: String,
    /// Failed or late operations.
    pub errors: u64,
    /// What was done.
    pub counters: Counters,
    /// Somebody made it slower: operations a second at most, 0 for no limit.
    pub iops_max: u64,
    /// The same, 10^6 bytes a second.
    pub mbps_max: u64,
    /// The same, microseconds added.
    pub latency_us: u64,
    /// A link that it was made to share with others of the same number, 0 for none.
    pub uplink: u64,
    /// What passes that link each way, 10^6 bytes a second.
    pub uplink_mbps: u64,
    /// Its part of the link beside the others', 0 for 1.
    pub uplink_share: u64,
}

/// A drive in an array.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct OwnLeg {
    /// The drive's path.
    pub path: String,
    /// The drive's identity by label.
    pub uuid: String,
    /// Its state as a leg.
    pub state: String,
    /// Its reads take far longer than those of the others.
    pub slow: bool,
}

/// An array.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct OwnArray {
    /// single or mirror.
    pub layout: String,
    /// Its state.
    pub state: String,
    /// Its legs.
    pub legs: Vec<OwnLeg>,
    /// Its weight in the first zone.
    pub weight: u64,
    /// Regions marked dirty.
    pub regions_dirty: u64,
    /// All regions.
    pub regions: u64,
    /// A resync is under way: bytes a second, seconds left.
    pub resync: Option<(u64, Option<u64>)>,
}

/// A pool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct OwnPool {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: String,
    /// Its arrays.
    pub arrays: Vec<OwnArray>,
    /// A scrub is under way: bytes a second.
    pub scrub: Option<u64>,
}

/// A volume.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct OwnVolume {
    /// pool/volume.
    pub name: String,
    /// What hosts did.
    pub counters: Counters,
    /// A cap of operations a second, 0 for none.
    pub iops_max: u64,
    /// A cap of bytes a second, 0 for none.
    pub bytes_max: u64,
    /// The hosts to which it is given, None if that is not told.
    pub hosts: Option<Vec<String>>,
}

/// A connection.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct OwnConnection {
    /// Its host's name, empty if it is not known.
    pub host: String,
    /// nvme, discovery or iscsi.
    pub protocol: String,
    /// Its address, without the port in an anonymous recording.
    pub peer: String,
    /// Its shard.
    pub shard: u64,
    /// Session or controller.
    pub session: u64,
    /// NVMe queue id (0: admin), iSCSI connection id.
    pub queue: u64,
    /// Commands so far.
    pub commands: u64,
    /// Commands under way.
    pub in_flight: u64,
    /// Both sides compute checksums over headers or data.
    pub digests: bool,
}

/// A shard.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct OwnShard {
    /// Its number.
    pub shard: u64,
    /// Commands so far.
    pub commands: u64,
    /// Its connections.
    pub connections: u64,
    /// Requests under way.
    pub requests: u64,
    /// Drive operations under way.
    pub drive_ops: u64,
    /// The core it is bound to, None if it may run anywhere or that is not known.
    pub core: Option<u32>,
    /// Its thread.
    pub thread: Option<u32>,
    /// Part of a core that it used between the readings, 0 to 1.
    pub busy: Option<f32>,
    /// Part of the time that it was ready and had to wait for a core, 0 to 1.
    pub waited: Option<f32>,
}

/// The daemon at one moment.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Own {
    /// Which of a system of two heads this one is: `a` or `b`. Drives, pools and volumes are those of both.
    pub head: Option<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// Its version.
    pub version: String,
    /// Its health.
    pub health: String,
    /// Its drives.
    pub drives: Vec<OwnDrive>,
    /// Its pools.
    pub pools: Vec<OwnPool>,
    /// Its volumes.
    pub volumes: Vec<OwnVolume>,
    /// Who is connected.
    pub connections: Vec<OwnConnection>,
    /// Its shards.
    pub shards: Vec<OwnShard>,
}

fn word(v: &Value, key: &str) -> String {
    v[key].as_str().unwrap_or("").to_string()
}

fn count(v: &Value, key: &str) -> u64 {
    v[key].as_u64().unwrap_or(0)
}

fn all<T>(v: &Value, key: &str, one: impl Fn(&Value) -> T) -> Vec<T> {
    some(v, key, |_| true, one)
}

fn some<T>(v: &Value, key: &str, which: impl Fn(&&Value) -> bool, one: impl Fn(&Value) -> T) -> Vec<T> {
    v[key].as_array().map_or(Vec::new(), |list| list.iter().filter(which).map(one).collect())
}

fn counters(v: &Value) -> Counters {
    let v = &v["counters"];
    let n = |key| count(v, key);
    Counters {
        reads: n("reads"),
        read_bytes: n("read_bytes"),
        writes: n("writes"),
        write_bytes: n("write_bytes"),
    }
}

fn drive(v: &Value) -> OwnDrive {
    let shape = &v["shape"];
    OwnDrive {
        path: word(v, "path"),
        uuid: word(v, "uuid"),
        pool: word(v, "pool"),
        role: word(v, "role"),
        state: word(v, "state"),
        errors: count(v, "errors"),
        counters: counters(v),
        iops_max: count(shape, "iops_max"),
        mbps_max: count(shape, "mbps_max"),
        latency_us: count(shape, "latency_us"),
        uplink: count(shape, "uplink"),
        uplink_mbps: count(shape, "uplink_mbps"),
        uplink_share: count(shape, "uplink_share"),
    }
}

fn pool(v: &Value) -> OwnPool {
    let weight = |index: usize| {
        let weights = v["zones"][0]["weights"].as_array()?;
        let of = weights.iter().find(|w| w["array"].as_u64() == Some(index as u64))?;
        of["weight"].as_u64()
    };
    let mut arrays = all(v, "arrays", |a| OwnArray {
        layout: word(a, "layout"),
        state: word(a, "state"),
        legs: all(a, "legs", |l| OwnLeg {
            path: word(l, "path"),
            uuid: word(l, "uuid"),
            state: word(l, "state"),
            slow: l["slow"].as_bool().unwrap_or(false),
        }),
        weight: 1,
        regions_dirty: count(a, "regions_dirty"),
        regions: count(a, "regions"),
        resync: a["resync"]
            .is_object()
            .then(|| (count(&a["resync"], "rate"), a["resync"]["seconds_left"].as_u64())),
    });
    for (index, array) in arrays.iter_mut().enumerate() {
        array.weight = weight(index).unwrap_or(1);
    }
    let scrub = &v["scrub"];
    let scrub = (scrub["running"] == true || scrub["state"] == "running").then(|| count(scrub, "rate"));
    OwnPool { name: word(v, "name"), state: word(v, "state"), arrays, scrub }
}

impl Own {
    /// Reads a status of the daemon.
    ///
    /// Errors: it is not JSON, or not an object.
    pub fn decode(text: &str) -> Result<Self, Gap> {
        let v: Value = serde_json::from_str(text).map_err(|e| Gap::StatusBroken { error: e.to_string() })?;
        if !v.is_object() {
            return Err(Gap::StatusNoObject);
        }
        let head = v["head"].as_str().map(str::to_owned);
        let is_here =
            |v: &&Value| head.is_none() || v["head"].is_null() || v["head"].as_str() == head.as_deref();
        Ok(Self {
            pid: v["daemon"]["pid"].as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0),
            version: word(&v["daemon"], "version"),
            health: word(&v, "health"),
            drives: all(&v, "drives", drive),
            pools: all(&v, "pools", pool),
            volumes: all(&v, "volumes", |v| OwnVolume {
                name: word(v, "name"),
                counters: counters(v),
                iops_max: count(v, "iops_max"),
                bytes_max: count(v, "mbps_max").saturating_mul(1_000_000),
                hosts: v["exports"].is_array().then(|| all(v, "exports", |e| word(e, "host"))),
            }),
            connections: some(&v, "connections", is_here, |v| OwnConnection {
                host: word(v, "host"),
                protocol: word(v, "protocol"),
                peer: word(v, "peer"),
                shard: count(v, "shard"),
                session: count(v, "session"),
                queue: count(v, "queue"),
                commands: count(v, "commands"),
                in_flight: count(v, "in_flight"),
                digests: v["header_digest"] == true || v["data_digest"] == true,
            }),
            shards: some(&v, "shards", is_here, |v| OwnShard {
                shard: count(v, "shard"),
                commands: count(v, "commands"),
                connections: count(v, "connections"),
                requests: count(v, "requests"),
                drive_ops: count(v, "drive_ops"),
                ..OwnShard::default()
            }),
            head: head.clone(),
        })
    }

    /// The parts of a status that a recording keeps. `other` gives what stands there for a name: for a path, the device
    /// that it leads to, by whose name the drive is found in sysfs; in an anonymous recording another name, the same for
    /// the same thing each time.
    pub(crate) fn reduced(
        text: &str,
        anonymous: bool,
        other: &mut dyn FnMut(Named, &str) -> String,
    ) -> String {
        let Ok(v) = serde_json::from_str::<Value>(text) else { return "{}".into() };
        let mut out = serde_json::Map::new();
        for key in [
            "head",
            "daemon",
            "health",
            "uptime_seconds",
            "drives",
            "pools",
            "volumes",
            "connections",
            "shards",
        ] {
            if !v[key].is_null() {
                out.insert(key.into(), v[key].clone());
            }
        }
        let mut out = Value::Object(out);
        paths(&mut out, other);
        if anonymous {
            for v in out["pools"].as_array_mut().into_iter().flatten() {
                rename(&mut v["name"], Named::Pool, other);
            }
            for v in out["volumes"].as_array_mut().into_iter().flatten() {
                rename(&mut v["name"], Named::Volume, other);
            }
            anonymise(&mut out, other);
        }
        out.to_string()
    }
}

/// What a name in a status is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    Path,
    Pool,
    Volume,
    Host,
    Peer,
}

/// Puts what stands for a name in its place. A volume's name begins with its pool's.
fn rename(v: &mut Value, what: Named, other: &mut dyn FnMut(Named, &str) -> String) {
    let Value::String(name) = v else { return };
    *name = match (what, name.split_once('/')) {
        (Named::Volume, Some((pool, volume))) if !volume.is_empty() => {
            format!("{}/{}", other(Named::Pool, pool), other(Named::Volume, volume))
        }
        (..) => other(what, name),
    };
}

/// Replaces every `path` by the device behind it.
fn paths(v: &mut Value, real: &mut dyn FnMut(Named, &str) -> String) {
    match v {
        Value::Array(list) => list.iter_mut().for_each(|v| paths(v, real)),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(path) if key == "path" && path.starts_with('/') => {
                        *path = real(Named::Path, path)
                    }
                    value => paths(value, real),
                }
            }
        }
        _ => {}
    }
}

/// What could tell whose machine it is. Sentences name drives and hosts, and are left out whole.
const SECRET: &[&str] = &[
    "serial",
    "reason",
    "what",
    "state_dir",
    "names",
    "nqn",
    "iqn",
    "nguid",
    "naa",
    "uuid",
    "notices",
    "last_protocol_error",
    "replaces",
];

/// Removes what could tell whose machine it is; names that stand for something become other ones.
fn anonymise(v: &mut Value, other: &mut dyn FnMut(Named, &str) -> String) {
    match v {
        Value::Array(list) => list.iter_mut().for_each(|v| anonymise(v, other)),
        Value::Object(map) => {
            map.retain(|key, _| !SECRET.contains(&key.as_str()));
            for (key, value) in map.iter_mut() {
                match (key.as_str(), value) {
                    ("host", value @ Value::String(_)) => rename(value, Named::Host, other),
                    ("pool", value @ Value::String(_)) => rename(value, Named::Pool, other),
                    ("volume", value @ Value::String(_)) => rename(value, Named::Volume, other),
                    ("peer", Value::String(name)) => {
                        // The port differs between connections of one host.
                        *name = other(Named::Peer, name.rsplit_once(':').map_or(name.as_str(), |p| p.0));
                    }
                    (_, value) => anonymise(value, other),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_of_a_volume_are_read_as_the_daemon_says_them() {
        let own =
            Own::decode(r#"{"volumes":[{"name":"tank/vm1","iops_max":5000,"mbps_max":200},{"name":"v"}]}"#)
                .expect("a status");
        let caps: Vec<_> = own.volumes.iter().map(|v| (v.iops_max, v.bytes_max)).collect();
        assert_eq!(caps, [(5000, 200_000_000), (0, 0)]);
    }

    #[test]
    fn a_status_of_any_version_is_read() {
        let own = Own::decode(
            r#"{"future":1,"daemon":{"pid":"x"},"drives":[{"path":7},{"path":"/dev/a","counters":null}],"pools":{},
                "shards":[null,3,{"shard":1}]}"#,
        )
        .expect("an object");
        assert_eq!((own.pid, own.drives.len(), own.pools.len(), own.shards.len()), (None, 2, 0, 3));
        assert_eq!((own.drives[0].path.as_str(), own.drives[1].path.as_str()), ("", "/dev/a"));
        assert!(Own::decode("[]").is_err() && Own::decode("{").is_err());
    }

    #[test]
    fn of_two_heads_connections_and_shards_are_those_of_the_one_that_was_asked() {
        let rows = r#""shards":[{"shard":0,"head":"a"},{"shard":0,"head":"b"},{"shard":1,"head":"b"}],
            "connections":[{"host":"x","head":"a"},{"host":"y","head":"b"}]"#;
        let own = Own::decode(&format!(r#"{{"head":"b",{rows}}}"#)).expect("a status");
        let hosts: Vec<&str> = own.connections.iter().map(|c| c.host.as_str()).collect();
        let shards: Vec<u64> = own.shards.iter().map(|s| s.shard).collect();
        assert_eq!((own.head.as_deref(), shards, hosts), (Some("b"), vec![0, 1], vec!["y"]));
        // Nobody knows which was asked.
        assert_eq!(Own::decode(&format!("{{{rows}}}")).expect("a status").shards.len(), 3);
    }

    #[test]
    fn weights_come_from_the_first_zone() {
        let own = Own::decode(
            r#"{"pools":[{"name":"p","zones":[{"weights":[{"array":1,"weight":3}]}],
                "arrays":[{"layout":"mirror","legs":[{"path":"/dev/a"}]},{"resync":{"rate":5}}]}]}"#,
        )
        .expect("an object");
        let arrays = &own.pools[0].arrays;
        assert_eq!((arrays[0].weight, arrays[1].weight), (1, 3));
        assert_eq!((arrays[0].resync, arrays[1].resync), (None, Some((5, None))));
    }
}
