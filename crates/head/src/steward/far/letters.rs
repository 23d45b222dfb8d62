//! Letters between a Steward and shards of the other head, as bytes: docs/formats/link.md, "Stewards".
//!
//! A letter that stays within its head (`skip` in `mail.rs`) cannot be written: `encode` gives None. What is read is checked, and shards
//! may believe it.

use crate::layout::Layout;
use crate::mail::{ShardMail, StewardMail};
use base::codec::Malformed;
use base::view::View;
use serde::{Serialize, de::DeserializeOwned};

/// A letter as bytes; None if it is not one that travels.
pub(crate) fn encode(letter: &impl Serialize) -> Option<Vec<u8>> {
    postcard::to_allocvec(letter).ok()
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Malformed> {
    match postcard::take_from_bytes(bytes) {
        Ok((letter, [])) => Ok(letter),
        Ok(_) | Err(_) => Err(Malformed),
    }
}

/// Reads a letter to a shard. What a leader has configured is read by `configuration`.
pub(crate) fn to_shard(bytes: &[u8]) -> Result<ShardMail, Malformed> {
    let letter = decode(bytes)?;
    if matches!(letter, ShardMail::Configure { .. }) { Err(Malformed) } else { Ok(letter) }
}

/// Reads a `Configure`.
pub(crate) fn configuration(bytes: &[u8]) -> Result<(View, Layout), Malformed> {
    let ShardMail::Configure { view, layout } = decode(bytes)? else { return Err(Malformed) };
    if !layout.fits() || layout.generation != view.generation {
        return Err(Malformed);
    }
    Ok((std::sync::Arc::unwrap_or_clone(view), std::sync::Arc::unwrap_or_clone(layout)))
}

/// Reads a letter from a shard.
pub(crate) fn from_shard(bytes: &[u8]) -> Result<StewardMail, Malformed> {
    decode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{ArrayId, ArrayLayout, PoolId, PoolLayout, VolumeLayout};
    use crate::mail::Room;
    use crate::path::stages::{STAGES, Timed, TimedOp};
    use crate::report::{ConnectionReport, Counters, Digests, DriveReport, Login, PathId, ShardReport};
    use array::{
        Bitmap, Geometry, Lanes, Leg, LegState, Membership, Note, Pace, Progress, Scrub, UnclearedMap,
        Verdict,
    };
    use base::view::{Export, Host, Moves, PathState, Portal, Protocol, Secret, System};
    use base::{
        ConnectionId, DriveError, DriveId, Duration, HostId, NetError, PortalId, Prng, Uuid, VolumeId,
    };
    use std::sync::Arc;

    fn bitmap(len: u32) -> Bitmap {
        let mut bits = Bitmap::new(len);
        for i in (0..len).step_by(3) {
            bits.set(i);
        }
        bits
    }

    fn view() -> View {
        let export = Export {
            nsid: 7,
            lun: 3,
            volume: VolumeId(9),
            name: "tank/vm1".into(),
            uuid: Uuid([4; 16]),
            nguid: [5; 16],
            naa: [6; 16],
            block_bytes: 4096,
            blocks: 1 << 20,
            deallocate: true,
            ready: true,
        };
        let host = Host {
            id: HostId(2),
            name: "esx1".into(),
            nqns: vec!["nqn.a".into(), "nqn.b".into()],
            iqns: vec!["iqn.a".into()],
            chap_secret: Some(Secret(b"twelve-bytes!".to_vec())),
            chap_user: "me".into(),
            mutual_secret: None,
            proof_generation: 0,
            exports: vec![export.clone(), Export { nsid: 8, lun: 4, ready: false, ..export }],
        };
        let interface = Some("eth0".parse().expect("a name"));
        let portal = |id, address: &str, moves| Portal {
            id: PortalId(id),
            protocol: [Protocol::Nvme, Protocol::Discovery, Protocol::Iscsi][id as usize],
            address: address.parse().expect("an address"),
            head: 1,
            moves,
        };
        View {
            generation: 12,
            head: 1,
            paths: Some([PathState::Optimized, PathState::NonOptimized]),
            system: System { nqn: "nqn.s".into(), uuid: Uuid([1; 16]), ..System::default() },
            portals: vec![
                portal(0, "10.0.0.1:4420", Some(Moves { prefix: 24, interface })),
                portal(1, "[fd00::1]:8009", Some(Moves { prefix: 64, interface: None })),
                portal(2, "0.0.0.0:3260", None),
            ],
            hosts: vec![host, Host::default()],
        }
    }

    fn layout() -> Layout {
        let mirror = Geometry::plan(true, 4 << 20, 1 << 30, 65536).expect("fits");
        let single = Geometry::plan(false, 4 << 20, 1 << 30, 65536).expect("fits");
        let leg = |drive, state| {
            let (volatile_cache, deallocate_zeroes) = (true, drive == 1);
            Some(Leg { drive: DriveId(drive), state, volatile_cache, deallocate_zeroes, map_at: 77 })
        };
        let legs =
            vec![leg(1, LegState::InSync), None, leg(2, LegState::Rebuilding), leg(0, LegState::Missing)];
        let array = |id, geometry: Geometry, uncleared| ArrayLayout {
            id: ArrayId(id),
            uuid: Uuid([id as u8; 16]),
            geometry,
            membership: Membership { epoch: 5, legs: legs.clone() },
            lanes: Lanes::dealt(3),
            map: 2,
            dirty: Arc::new(bitmap(geometry.regions())),
            unclean: true,
            uncleared: Arc::new(uncleared),
            shared: true,
            lacks_path: false,
        };
        let space = pool::ArraySpace { bytes: 512 << 20, weight: 1 };
        let map = pool::StripeMap::new(65536, &[space, space]).expect("a good map");
        let runs = [volume::Run { first: 3, count: 2 }, volume::Run { first: 9, count: 1 }];
        Layout {
            waits: true,
            generation: 12,
            pools: vec![PoolLayout {
                id: PoolId(1),
                uuid: Uuid([9; 16]),
                map: Arc::new(map),
                arrays: vec![ArrayId(1), ArrayId(2)],
            }],
            arrays: vec![
                array(1, mirror, UnclearedMap::all(&mirror, 3)),
                array(2, single, UnclearedMap::none()),
            ],
            volumes: vec![VolumeLayout {
                id: VolumeId(9),
                pool: PoolId(1),
                block_bytes: 512,
                blocks: 100,
                map: Arc::new(volume::Map::new(&runs).expect("a good map")),
                ready: true,
                home: 0,
                caps: volume::Caps { iops_max: 10, mbps_max: 20 },
                weight: 300,
            }],
        }
    }

    fn to_shards() -> Vec<ShardMail> {
        let array = ArrayId(1);
        let scrub = Scrub { number: 12, from: 4096, repair: true, prefer: Some(1), block_bytes: 512 };
        vec![
            ShardMail::Recorded { array, epoch: 7 },
            ShardMail::LossNotOnRecord { array },
            ShardMail::Clean { array },
            ShardMail::MarkAll { array, number: 6 },
            ShardMail::AddDirty { array, dirty: Arc::new(bitmap(1000)) },
            ShardMail::Unmark { array },
            ShardMail::Returned { array, life: 3, marks: 4, ranges: Arc::new(vec![(5, 6), (7, 8)]) },
            ShardMail::AllCleared { array, marks: 4 },
            ShardMail::Pace { array, pace: Pace { floor: 1, ceiling: 2, quiet: Duration::from_millis(3) } },
            ShardMail::Scrub { array, order: Some(scrub) },
            ShardMail::Scrub { array, order: None },
            ShardMail::Quiesce { array, number: 7 },
            ShardMail::Room { number: 9, room: Room { mirrors: 3, singles: 1 } },
            ShardMail::Halt { array, number: 8 },
            ShardMail::Resume { array },
            ShardMail::Report,
        ]
    }

    fn notes() -> Vec<Note> {
        let (leg, epoch, at, len) = (1, 5, 4096, 512);
        vec![
            Note::LegFailed { leg, epoch, error: DriveError::Other(-5) },
            Note::LegAhead { leg, epoch, last: 0, error: None },
            Note::Synced { leg, epoch },
            Note::CrashClean { epoch },
            Note::AllDirty { number: 6 },
            Note::Healed { at, len, leg },
            Note::Judged { leg, verdict: Verdict::Slow, epoch },
            Note::Mismatch { at, len, bad: 2, source: 0, known: true, repair: false },
            Note::Unreadable { at, len },
            Note::Scrubbed { number: 12 },
            Note::Returned { marks: 3 },
            Note::AllCleared { marks: 0 },
            Note::MediumLost { at, len },
        ]
    }

    fn report() -> ShardReport {
        let counters = Counters { reads: 1, write_bytes: u64::MAX, ..Counters::default() };
        ShardReport {
            shard: 1,
            connections: vec![ConnectionReport {
                connection: ConnectionId::new(3, 4),
                portal: PortalId(1),
                peer: "10.0.0.9:50000".parse().expect("an address"),
                host: Some(HostId(2)),
                login: Login { session: Some(6), queue: 7, discovery: true },
                commands: 5,
                digests: Digests { header: true, data: false },
                counters,
            }],
            ended: vec![(PathId { host: HostId(2), portal: PortalId(1) }, counters)],
            volumes: vec![(VolumeId(9), counters)],
            drives: vec![DriveReport {
                drive: DriveId(2),
                counters,
                last_error: Some(DriveError::Fenced),
                ..DriveReport::default()
            }],
            arrays: vec![(ArrayId(1), Progress { resync_done: 3, hedges_won: 4, ..Progress::default() })],
            timed: vec![Timed {
                volume: VolumeId(9),
                path: Some(PathId { host: HostId(2), portal: PortalId(1) }),
                write: true,
                ns: [7; STAGES],
            }],
            timed_ops: vec![TimedOp { drive: DriveId(2), write: false, ns: 8 }],
            ..ShardReport::default()
        }
    }

    fn from_shards() -> Vec<StewardMail> {
        let array = ArrayId(1);
        let mut all: Vec<StewardMail> =
            notes().into_iter().map(|note| StewardMail::Note { array, note }).collect();
        all.extend([
            StewardMail::Applied { generation: 12 },
            StewardMail::Halted { array, number: 9 },
            StewardMail::Quiesced { array, number: 10 },
            StewardMail::HasRoom { number: 11, room: Room { mirrors: 3, singles: 1 }, mirrors_max: 9 },
            StewardMail::Reported(Box::new(report())),
            StewardMail::Listening { portal: PortalId(1), result: Ok("[::1]:4420".parse().expect("one")) },
            StewardMail::Listening { portal: PortalId(1), result: Err(NetError::InUse) },
        ]);
        all
    }

    /// The letters of both directions, as bytes.
    fn all() -> Vec<Vec<u8>> {
        let configure = ShardMail::Configure { view: Arc::new(view()), layout: Arc::new(layout()) };
        let mut all = vec![encode(&configure).expect("it travels")];
        all.extend(to_shards().iter().map(|l| encode(l).expect("it travels")));
        all.extend(from_shards().iter().map(|l| encode(l).expect("it travels")));
        all
    }

    #[test]
    fn a_letter_is_read_as_it_was_written() {
        for letter in to_shards() {
            let read = to_shard(&encode(&letter).expect("it travels")).expect("good");
            assert_eq!(format!("{read:?}"), format!("{letter:?}"));
        }
        for letter in from_shards() {
            let read = from_shard(&encode(&letter).expect("it travels")).expect("good");
            assert_eq!(format!("{read:?}"), format!("{letter:?}"));
        }
        let letter = ShardMail::Configure { view: Arc::new(view()), layout: Arc::new(layout()) };
        let bytes = encode(&letter).expect("it travels");
        let (read, of) = configuration(&bytes).expect("good");
        assert_eq!(read.hosts[0].chap_secret, view().hosts[0].chap_secret, "what is never printed");
        assert_eq!(format!("{read:?} {of:?}"), format!("{:?} {:?}", view(), layout()));
        assert!(to_shard(&bytes).is_err(), "a layout is checked");
    }

    #[test]
    fn what_stays_within_its_head_is_not_written() {
        let array = ArrayId(1);
        assert_eq!(encode(&ShardMail::Sight { until: None }), None);
        assert_eq!(encode(&ShardMail::Cleared { array, map: 1, region: 2, marks: 3 }), None);
        assert_eq!(encode(&StewardMail::Stop), None);
        let heal = Note::Heal { at: 0, len: 1, leg: 0 };
        assert_eq!(encode(&StewardMail::Note { array, note: heal }), None);
    }

    #[test]
    fn a_layout_that_contradicts_itself_is_none() {
        let broken: [fn(&mut Layout); 7] = [
            |l| l.generation += 1,
            |l| drop(l.arrays.pop()),
            |l| l.pools[0].arrays[0] = ArrayId(3),
            |l| l.arrays[0].dirty = Arc::new(Bitmap::new(5)),
            |l| {
                let larger = Geometry::plan(true, 4 << 20, 2 << 30, 65536).expect("fits");
                l.arrays[1].uncleared = Arc::new(UnclearedMap::all(&larger, 9));
            },
            |l| l.volumes[0].pool = PoolId(7),
            |l| l.volumes[0].blocks = 1 << 40,
        ];
        let read = |layout: Layout| {
            let letter = ShardMail::Configure { view: Arc::new(view()), layout: Arc::new(layout) };
            configuration(&encode(&letter).expect("it travels"))
        };
        assert!(read(layout()).is_ok());
        for (i, spoil) in broken.into_iter().enumerate() {
            let mut layout = layout();
            spoil(&mut layout);
            assert!(read(layout).is_err(), "{i}");
        }
    }

    #[test]
    fn mangled_letters_are_errors_or_letters_and_never_panics() {
        let mut random = Prng::new(8);
        let mut good = 0;
        for (i, whole) in all().into_iter().enumerate() {
            for _ in 0..if i == 0 { 2000 } else { 200 } {
                let mut bytes = whole.clone();
                match random.below(4) {
                    0 => bytes.truncate(random.below(bytes.len() as u64) as usize),
                    1 => random.fill(&mut bytes),
                    _ => {
                        for _ in 0..random.between(1, 4) {
                            let at = random.below(bytes.len() as u64) as usize;
                            bytes[at] = random.next_u64() as u8;
                        }
                    }
                }
                let read = [
                    to_shard(&bytes).ok().map(|l| encode(&l)),
                    from_shard(&bytes).ok().map(|l| encode(&l)),
                    configuration(&bytes).ok().map(|(view, layout)| {
                        encode(&ShardMail::Configure { view: Arc::new(view), layout: Arc::new(layout) })
                    }),
                ];
                for again in read.into_iter().flatten() {
                    assert!(again.is_some(), "what was read travels");
                    good += 1;
                }
            }
            let readers: [fn(&[u8]) -> bool; 3] =
                [|b| to_shard(b).is_ok(), |b| from_shard(b).is_ok(), |b| configuration(b).is_ok()];
            for reads in readers.into_iter().filter(|reads| reads(&whole)) {
                for cut in (0..whole.len()).step_by(1 + whole.len() / 300) {
                    assert!(!reads(&whole[..cut]), "letter {i} cut to {cut}");
                }
            }
        }
        assert!(good > 100, "some are good: {good}");
    }
}
