//! What two Stewards say to each other: docs/formats/link.md, "Stewards".

use crate::peer::{FenceTrial, TrialFound};
use crate::steward::context::system::far::Numbers;
use crate::steward::far::Configured;
use base::codec::{Malformed, Reader, Writer};
use base::front::ControllerLife;
use base::{DriveId, Uuid, VolumeId};
use core::net::{IpAddr, SocketAddr};
use files::{Whose, kind};
use finding::{FollowerFault, Why, from_text, to_text};
use std::collections::BTreeSet;
use std::sync::Arc;

const FILE: u8 = 1;
const ALL: u8 = 2;
const HAVE: u8 = 3;
const MANAGER: u8 = 4;
const CONNECTIONS: u8 = 5;

/// So many connections are told of, so that a message stays below its bound.
pub(crate) const CONNECTIONS_MAX: usize = 16_384;

/// A connection of a host: our address, and its own.
pub(crate) type Tcp = (SocketAddr, SocketAddr);
const TRY: u8 = 6;
const TRIED: u8 = 7;
const FENCES: u8 = 8;
const REACH: u8 = 9;
const SERVES: u8 = 10;
const CONFIGURE: u8 = 11;
const TO_SHARD: u8 = 12;
const FROM_SHARD: u8 = 13;
/// Stands for all shards.
const ALL_SHARDS: u16 = u16::MAX;

const COMES: u8 = 14;
const NOTHING: u8 = 15;
const LET_GO: u8 = 16;
const HAS_LET_GO: u8 = 17;
const CLEAR: u8 = 18;
const RESET: u8 = 19;
const LOOK: u8 = 20;
const LOOKED: u8 = 21;
const LEAD: u8 = 22;
const HAVE_NOT: u8 = 23;

/// A message between two Stewards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Upper {
    /// A file of the leader's state directory is so from now on; `Have` follows once it lies in the follower's.
    File {
        /// One more each time, of this pair of processes.
        seq: u64,
        /// Its name.
        name: String,
        /// What is in it; None: there is none.
        contents: Option<Vec<u8>>,
    },
    /// These are all files that are shared. `Have` follows once no other one lies there.
    All {
        /// As in `File`.
        seq: u64,
        /// Their names.
        names: Vec<String>,
    },
    /// It is durable here, and so is all before it.
    Have {
        /// From `File` or `All`.
        seq: u64,
    },
    /// It could not be written there, and why: the sender is to be put out.
    HaveNot {
        /// From `File` or `All`.
        seq: u64,
        /// What its state directory said.
        why: Why,
    },
    /// From one manager to the other.
    Manager(Vec<u8>),
    /// All connections that hosts have to addresses that move, at most `CONNECTIONS_MAX`.
    Connections(Vec<Tcp>),
    /// To the follower: the fence of this drive is tried on it, or has been.
    Try {
        /// One more for each trial, of this pair of processes.
        number: u64,
        /// By its label.
        drive: Uuid,
        /// It is to write there from now on; false: not any more, and it may register again.
        on: bool,
    },
    /// From the follower, of a trial.
    Tried {
        /// From `Try`.
        number: u64,
        /// What.
        said: Said,
    },
    /// To the follower: what the trials of all drives found.
    Fences(Vec<FenceTrial>),
    /// The sender reaches these drives of pools, by their labels, and no others.
    Reach(BTreeSet<Uuid>),
    /// From the follower: so many shards of its are ready to take part. It has all files, and its drives are open.
    Serves { shards: u16 },
    /// To the follower's shards: a configuration.
    Configure(Configured),
    /// A host of this name has come to the sender. `Nothing` follows once nothing of it is ending at the receiver.
    Comes { number: u64, name: String },
    /// From `Comes`.
    Nothing { number: u64 },
    /// A host at the sender ends the tasks of all others on these logical units; with a reset or without. `Nothing` follows.
    Clear { number: u64, units: Arc<[VolumeId]>, reset: bool },
    /// A host of this name, at the sender, has this controller of its ended. `Nothing` follows.
    Reset { number: u64, name: String, life: ControllerLife },
    /// To the follower: a drive is to return to its pool, and nothing that was begun there may be left. `HasLetGo` follows.
    LetGo { number: u64, drive: Uuid },
    /// From `LetGo`, once that is so.
    HasLetGo { number: u64, drive: Uuid },
    /// To the follower: does it reach this drive? `Looked` follows.
    Look { number: u64, drive: Uuid },
    /// From `Look`.
    Looked { number: u64, reached: bool },
    /// To the follower: the leader has lost a path, and the follower is to take over.
    Lead,
    /// To one of the follower's shards, or to all: `far::letters`.
    ToShard { shard: Option<u16>, letter: Vec<u8> },
    /// From one of them.
    FromShard { shard: u16, letter: Vec<u8> },
}

/// What a follower says of a trial.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Said {
    /// Its first write there is over.
    Writes,
    /// The drive refused it in the end; it writes nothing more, and is registered again.
    Refused,
    /// The same, but the drive never refused it.
    NotRefused,
    /// The trial says nothing, and why.
    Cannot(FollowerFault),
}

impl Upper {
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        match self {
            Upper::File { seq, name, contents } => {
                w.u8(FILE).u64(*seq).text(name).u8(u8::from(contents.is_some()));
                w.bytes(contents.as_deref().unwrap_or_default());
            }
            Upper::All { seq, names } => {
                w.u8(ALL).u64(*seq).u32(names.len() as u32);
                for name in names {
                    w.text(name);
                }
            }
            Upper::Have { seq } => drop(w.u8(HAVE).u64(*seq)),
            Upper::HaveNot { seq, why } => drop(w.u8(HAVE_NOT).u64(*seq).text(&to_text(why))),
            Upper::Manager(bytes) => drop(w.u8(MANAGER).bytes(bytes)),
            Upper::Connections(all) => {
                w.u8(CONNECTIONS).u32(all.len() as u32);
                for (local, peer) in all {
                    put_address(&mut w, *local);
                    put_address(&mut w, *peer);
                }
            }
            Upper::Try { number, drive, on } => {
                w.u8(TRY).u64(*number).bytes(&drive.0).u8(u8::from(*on));
            }
            Upper::Tried { number, said } => {
                w.u8(TRIED).u64(*number);
                match said {
                    Said::Writes => drop(w.u8(0)),
                    Said::Refused => drop(w.u8(1)),
                    Said::NotRefused => drop(w.u8(2)),
                    Said::Cannot(why) => drop(w.u8(3).text(&to_text(why))),
                }
            }
            Upper::Fences(all) => {
                w.u8(FENCES).u32(all.len() as u32);
                for FenceTrial { path, found } in all {
                    w.text(path);
                    match found {
                        TrialFound::Holds { ms } => drop(w.u8(0).u64(*ms)),
                        TrialFound::Fails(why) => drop(w.u8(1).text(&to_text(why))),
                        TrialFound::NotTried(why) => drop(w.u8(2).text(&to_text(why))),
                    }
                }
            }
            Upper::Reach(drives) => {
                w.u8(REACH).u32(drives.len() as u32);
                for drive in drives {
                    w.bytes(&drive.0);
                }
            }
            Upper::Serves { shards } => drop(w.u8(SERVES).u16(*shards)),
            Upper::Configure(Configured { secret, numbers, letter }) => {
                w.u8(CONFIGURE).bytes(secret).u16(numbers.shards).u16(numbers.drives.len() as u16);
                for (id, uuid) in &numbers.drives {
                    w.u16(id.0).bytes(&uuid.0);
                }
                w.bytes(letter);
            }
            Upper::Comes { number, name } => drop(w.u8(COMES).u64(*number).text(name)),
            Upper::Nothing { number } => drop(w.u8(NOTHING).u64(*number)),
            Upper::Clear { number, units, reset } => {
                w.u8(CLEAR).u64(*number).u8(u8::from(*reset)).u16(units.len() as u16);
                for unit in units.iter() {
                    w.u32(unit.0);
                }
            }
            Upper::Reset { number, name, life } => {
                w.u8(RESET).u64(*number).text(name).u16(life.id).u8(life.uniquifier).u64(life.random);
            }
            Upper::LetGo { number, drive } => drop(w.u8(LET_GO).u64(*number).bytes(&drive.0)),
            Upper::HasLetGo { number, drive } => drop(w.u8(HAS_LET_GO).u64(*number).bytes(&drive.0)),
            Upper::Look { number, drive } => drop(w.u8(LOOK).u64(*number).bytes(&drive.0)),
            Upper::Looked { number, reached } => drop(w.u8(LOOKED).u64(*number).u8(u8::from(*reached))),
            Upper::Lead => drop(w.u8(LEAD)),
            Upper::ToShard { shard, letter } => {
                w.u8(TO_SHARD).u16(shard.unwrap_or(ALL_SHARDS)).bytes(letter);
            }
            Upper::FromShard { shard, letter } => {
                w.u8(FROM_SHARD).u16(*shard).bytes(letter);
            }
        }
        w.0
    }
    /// Reads what the other Steward wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader(bytes);
        let message = match r.u8()? {
            FILE => {
                let (seq, name) = (r.u64()?, r.text()?);
                let contents = match r.u8()? {
                    0 if r.0.is_empty() => None,
                    1 => Some(core::mem::take(&mut r.0).to_vec()),
                    _ => return Err(Malformed),
                };
                Upper::File { seq, name: name_of(name)?, contents }
            }
            ALL => {
                let (seq, n) = (r.u64()?, r.u32()?);
                let names = (0..n).map(|_| r.text().and_then(name_of)).collect::<Result<_, _>>()?;
                Upper::All { seq, names }
            }
            HAVE => Upper::Have { seq: r.u64()? },
            HAVE_NOT => Upper::HaveNot { seq: r.u64()?, why: from_text(&r.text()?).ok_or(Malformed)? },
            CONNECTIONS => {
                let n = r.u32()?;
                let one = |_| Ok((address_of(&mut r)?, address_of(&mut r)?));
                if n as usize <= CONNECTIONS_MAX {
                    Upper::Connections((0..n).map(one).collect::<Result<_, _>>()?)
                } else {
                    return Err(Malformed);
                }
            }
            MANAGER => Upper::Manager(core::mem::take(&mut r.0).to_vec()),
            TRY => {
                let (number, drive) = (r.u64()?, Uuid(r.array()?));
                let on = match r.u8()? {
                    on @ (0 | 1) => on == 1,
                    _ => return Err(Malformed),
                };
                Upper::Try { number, drive, on }
            }
            TRIED => {
                let number = r.u64()?;
                let said = match r.u8()? {
                    0 => Said::Writes,
                    1 => Said::Refused,
                    2 => Said::NotRefused,
                    3 => Said::Cannot(from_text(&r.text()?).ok_or(Malformed)?),
                    _ => return Err(Malformed),
                };
                Upper::Tried { number, said }
            }
            FENCES => {
                let n = r.u32()?;
                Upper::Fences((0..n).map(|_| fence_of(&mut r)).collect::<Result<_, _>>()?)
            }
            REACH => {
                let n = r.u32()?;
                Upper::Reach((0..n).map(|_| Ok(Uuid(r.array()?))).collect::<Result<_, _>>()?)
            }
            SERVES => Upper::Serves { shards: r.u16()? },
            CONFIGURE => {
                let (secret, shards, n) = (r.array()?, r.u16()?, r.u16()?);
                let drives =
                    (0..n).map(|_| Ok((DriveId(r.u16()?), Uuid(r.array()?)))).collect::<Result<_, _>>()?;
                let letter = core::mem::take(&mut r.0).to_vec();
                Upper::Configure(Configured { secret, numbers: Numbers { shards, drives }, letter })
            }
            COMES => Upper::Comes { number: r.u64()?, name: r.text()? },
            NOTHING => Upper::Nothing { number: r.u64()? },
            CLEAR => {
                let (number, reset, n) = (r.u64()?, r.u8()? != 0, r.u16()?);
                let units = (0..n).map(|_| Ok(VolumeId(r.u32()?))).collect::<Result<_, _>>()?;
                Upper::Clear { number, units, reset }
            }
            RESET => {
                let (number, name) = (r.u64()?, r.text()?);
                let life = ControllerLife { id: r.u16()?, uniquifier: r.u8()?, random: r.u64()? };
                Upper::Reset { number, name, life }
            }
            LET_GO => Upper::LetGo { number: r.u64()?, drive: Uuid(r.array()?) },
            HAS_LET_GO => Upper::HasLetGo { number: r.u64()?, drive: Uuid(r.array()?) },
            LOOK => Upper::Look { number: r.u64()?, drive: Uuid(r.array()?) },
            LOOKED => Upper::Looked { number: r.u64()?, reached: r.u8()? != 0 },
            LEAD => Upper::Lead,
            TO_SHARD => {
                let shard = Some(r.u16()?).filter(|s| *s != ALL_SHARDS);
                Upper::ToShard { shard, letter: core::mem::take(&mut r.0).to_vec() }
            }
            FROM_SHARD => {
                let shard = r.u16()?;
                Upper::FromShard { shard, letter: core::mem::take(&mut r.0).to_vec() }
            }
            _ => return Err(Malformed),
        };
        if r.0.is_empty() { Ok(message) } else { Err(Malformed) }
    }
}

fn put_address(w: &mut Writer, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => w.u8(4).bytes(&ip.octets()),
        IpAddr::V6(ip) => w.u8(6).bytes(&ip.octets()),
    };
    w.u16(address.port());
}

fn address_of(r: &mut Reader<'_>) -> Result<SocketAddr, Malformed> {
    let ip = match r.u8()? {
        4 => IpAddr::from(r.array::<4>()?),
        6 => IpAddr::from(r.array::<16>()?),
        _ => return Err(Malformed),
    };
    Ok(SocketAddr::new(ip, r.u16()?))
}

fn fence_of(r: &mut Reader<'_>) -> Result<FenceTrial, Malformed> {
    let path = r.text()?;
    let found = match r.u8()? {
        0 => TrialFound::Holds { ms: r.u64()? },
        1 => TrialFound::Fails(from_text(&r.text()?).ok_or(Malformed)?),
        2 => TrialFound::NotTried(from_text(&r.text()?).ok_or(Malformed)?),
        _ => return Err(Malformed),
    };
    Ok(FenceTrial { path, found })
}

/// A name of a file, and no path.
fn name_of(name: String) -> Result<String, Malformed> {
    let good = !name.is_empty() && !name.starts_with('.') && !name.contains('/');
    if good && is_shared(&name) { Ok(name) } else { Err(Malformed) }
}

/// Whether a file of the state directory is the system's, and so in the directories of both heads.
pub(crate) fn is_shared(name: &str) -> bool {
    kind(name).is_some_and(|k| k.whose == Whose::System)
}

#[cfg(test)]
mod tests {
    use super::*;
    use finding::TrialFault;

    #[test]
    fn a_message_is_read_as_it_was_written_and_names_no_path() {
        let file = |name: &str, contents| Upper::File { seq: 7, name: name.into(), contents };
        for message in [
            file("hosts", Some(b"text".to_vec())),
            file("hosts", Some(vec![])),
            file("witness-1", None),
            Upper::All { seq: 8, names: vec!["hosts".into(), "pools".into()] },
            Upper::Have { seq: 9 },
            Upper::Manager(vec![1, 2]),
            Upper::Connections(vec![]),
            Upper::Connections(vec![
                ("10.1.0.5:4420".parse().expect("one"), "10.1.0.9:50000".parse().expect("one")),
                ("[fd00::5]:3260".parse().expect("one"), "[fd00::9]:50001".parse().expect("one")),
            ]),
            Upper::Try { number: 3, drive: Uuid([7; 16]), on: true },
            Upper::Try { number: 3, drive: Uuid([7; 16]), on: false },
            Upper::Tried { number: 3, said: Said::Writes },
            Upper::Tried { number: 3, said: Said::Refused },
            Upper::Tried { number: 3, said: Said::NotRefused },
            Upper::Tried { number: 3, said: Said::Cannot(FollowerFault::NotOpened { seconds: 8 }) },
            Upper::Fences(vec![
                FenceTrial { path: "/dev/a".into(), found: TrialFound::Holds { ms: 12 } },
                FenceTrial { path: "/dev/b".into(), found: TrialFound::Fails(TrialFault::LetIn) },
                FenceTrial { path: "/dev/c".into(), found: TrialFound::NotTried(TrialFault::NoFollower) },
            ]),
            Upper::HaveNot { seq: 7, why: finding::SystemRefusal::HeadAlone.into() },
            Upper::Reach(BTreeSet::new()),
            Upper::Reach([Uuid([7; 16]), Uuid([8; 16])].into()),
            Upper::Serves { shards: 3 },
            Upper::Comes { number: 7, name: "nqn.a".into() },
            Upper::Nothing { number: 7 },
            Upper::Clear { number: 9, units: [VolumeId(2), VolumeId(7)].into(), reset: true },
            Upper::Clear { number: 9, units: [].into(), reset: false },
            Upper::Reset {
                number: 4,
                name: "nqn.a".into(),
                life: ControllerLife { id: 8193, uniquifier: 255, random: u64::MAX - 1 },
            },
            Upper::LetGo { number: 8, drive: Uuid([7; 16]) },
            Upper::Look { number: 8, drive: Uuid([7; 16]) },
            Upper::Looked { number: 8, reached: true },
            Upper::Lead,
            Upper::HasLetGo { number: 8, drive: Uuid([7; 16]) },
            Upper::Configure(Configured {
                secret: [9; 32],
                numbers: Numbers { shards: 2, drives: [(DriveId(1), Uuid([7; 16]))].into() },
                letter: vec![1, 2],
            }),
            Upper::ToShard { shard: None, letter: vec![1, 2] },
            Upper::ToShard { shard: Some(1), letter: vec![] },
            Upper::FromShard { shard: 1, letter: vec![3] },
        ] {
            assert_eq!(Upper::decode(&message.encode()), Ok(message.clone()));
            let short = matches!(message, Upper::Manager(_) | Upper::Lead);
            assert!(Upper::decode(&message.encode()[..1]).is_err() || short);
        }
        for name in [
            "../hosts",
            "a/b",
            "",
            ".x",
            "events",
            "link-identity",
            "system-record",
            "tokens",
            "api-certificate",
        ] {
            assert_eq!(Upper::decode(&file(name, None).encode()), Err(Malformed), "{name}");
        }
        assert_eq!(Upper::decode(&[14]), Err(Malformed));
        assert_eq!(Upper::decode(&[REACH, 255, 255, 255, 255, 1]), Err(Malformed));
        let too_many = [&[CONNECTIONS][..], &u32::MAX.to_le_bytes()].concat();
        assert_eq!(Upper::decode(&too_many), Err(Malformed));
        assert_eq!(Upper::decode(&[CONNECTIONS, 1, 0, 0, 0, 5]), Err(Malformed));
    }
}
