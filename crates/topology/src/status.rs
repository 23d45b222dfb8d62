//! What the daemon says of itself: its status, in the types of the API, as far as it matters for the machine below. Any
//! version of it is read: what is not there, or is of another kind, is as in a default one.

use crate::gap::Gap;
use api::{Array, Connection, Drive, Leg, Pool, Shape, Shard, State, Volume};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Loads below this many commands a second are too small to explain, or to conclude anything from.
pub(crate) const LOAD_MIN: f64 = 50.0;

/// A shard, and what Linux says of its thread.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct OwnShard {
    /// What the daemon says of it.
    #[serde(flatten)]
    pub of: Shard,
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
    pub health: State,
    /// Its drives.
    pub drives: Vec<Drive>,
    /// Its pools.
    pub pools: Vec<Pool>,
    /// Its volumes.
    pub volumes: Vec<Volume>,
    /// It tells to whom volumes are given.
    pub tells_exports: bool,
    /// Who is connected.
    pub connections: Vec<Connection>,
    /// Its shards.
    pub shards: Vec<OwnShard>,
}

/// `T` as `told` has it, and where that is silent or strange, as in a default one.
fn read<T: Default + Serialize + DeserializeOwned>(told: &Value) -> T {
    let Value::Object(told) = told else { return T::default() };
    let Ok(Value::Object(mut all)) = serde_json::to_value(T::default()) else { return T::default() };
    let made = |map: &Map<String, Value>| serde_json::from_value::<T>(Value::Object(map.clone()));
    let mut whole = all.clone();
    whole.extend(told.clone());
    if let Ok(done) = made(&whole) {
        return done;
    }
    for (key, value) in told {
        let was = all.insert(key.clone(), value.clone());
        if made(&all).is_err() {
            match was {
                Some(was) => all.insert(key.clone(), was),
                None => all.remove(key),
            };
        }
    }
    made(&all).unwrap_or_default()
}

fn list<T>(told: &Value, one: impl Fn(&Value) -> T) -> Vec<T> {
    told.as_array().map_or(Vec::new(), |list| list.iter().map(one).collect())
}

fn drive(told: &Value) -> Drive {
    let shape = told["shape"].is_object().then(|| read(&told["shape"]));
    Drive { counters: read(&told["counters"]), shape, ..read(told) }
}

fn pool(told: &Value) -> Pool {
    let zone = |z: &Value| api::Zone { weights: list(&z["weights"], read), ..read(z) };
    let array = |a: &Value| {
        let resync = a["resync"].is_object().then(|| read(&a["resync"]));
        Array { legs: list(&a["legs"], read::<Leg>), resync, ..read(a) }
    };
    let (zones, arrays) = (list(&told["zones"], zone), list(&told["arrays"], array));
    Pool { zones, arrays, scrub: read(&told["scrub"]), ..read(told) }
}

fn volume(told: &Value) -> Volume {
    Volume { counters: read(&told["counters"]), exports: list(&told["exports"], read), ..read(told) }
}

/// What somebody made of a drive; all zeroes if nobody did.
pub(crate) fn shape(drive: &Drive) -> Shape {
    drive.shape.clone().unwrap_or_default()
}

/// The weight of an array in its pool's first zone.
pub(crate) fn weight(pool: &Pool, array: usize) -> u32 {
    let weights = pool.zones.first().map_or(&[][..], |z| &z.weights);
    weights.iter().find(|w| usize::from(w.array) == array).map_or(1, |w| w.weight.max(1))
}

/// Both sides of a connection compute checksums over headers or data.
pub(crate) fn digests(connection: &Connection) -> bool {
    connection.header_digest || connection.data_digest
}

/// A connection's host by its name, empty if it is not known.
pub(crate) fn host(connection: &Connection) -> &str {
    connection.host.as_deref().unwrap_or("")
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
        let is_here = |of: &Option<String>| head.is_none() || of.is_none() || *of == head;
        let daemon: api::Daemon = read(&v["daemon"]);
        let mut connections = list(&v["connections"], read::<Connection>);
        connections.retain(|c| is_here(&c.head));
        let mut shards = list(&v["shards"], |s| OwnShard { of: read(s), ..OwnShard::default() });
        shards.retain(|s| is_here(&s.of.head));
        Ok(Self {
            pid: Some(daemon.pid).filter(|n| *n > 0),
            version: daemon.version,
            health: serde_json::from_value(v["health"].clone()).unwrap_or_default(),
            drives: list(&v["drives"], drive),
            pools: list(&v["pools"], pool),
            volumes: list(&v["volumes"], volume),
            tells_exports: list(&v["volumes"], |v| v["exports"].is_array()).contains(&true),
            connections,
            shards,
            head: head.clone(),
        })
    }

    /// Whether a volume may be given to a host: where that is not told, each may.
    pub(crate) fn may_use(&self, host: &str, volume: &Volume) -> bool {
        !self.tells_exports || volume.exports.iter().any(|e| e.host.as_deref() == Some(host))
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
    "message",
    "fields",
    "next",
    "fits",
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
        let caps: Vec<_> = own.volumes.iter().map(|v| (v.iops_max, v.mbps_max)).collect();
        assert_eq!(caps, [(5000, 200), (0, 0)]);
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
        let hosts: Vec<&str> = own.connections.iter().map(host).collect();
        let shards: Vec<u16> = own.shards.iter().map(|s| s.of.shard).collect();
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
        let pool = &own.pools[0];
        assert_eq!((weight(pool, 0), weight(pool, 1)), (1, 3));
        let rate = |i: usize| pool.arrays[i].resync.as_ref().map(|r| (r.rate, r.seconds_left));
        assert_eq!((rate(0), rate(1)), (None, Some((5, None))));
    }
}
