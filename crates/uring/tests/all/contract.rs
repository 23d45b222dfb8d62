//! What every drive does, whatever world it lives in. Depends on `base` alone, so that the simulator's
//! drives can be held to the same list.

use base::fence::Process;
use base::{DriveError, DriveInfo, DriveOpKind, Fence, FenceAct, FenceError, FenceKey, FenceKind};

/// One operation and, for writes, its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub kind: DriveOpKind,
    pub at: u64,
    pub len: u64,
    pub data: Vec<u8>,
    pub fua: bool,
}

/// How it ended, and, for reads, what was read.
pub type Outcome = (Result<(), DriveError>, Vec<u8>);

/// A drive in some world.
pub trait DriveHarness {
    /// What is known of it.
    fn info(&self) -> DriveInfo;
    /// Carries out all jobs side by side (together at most 8 MiB of data); their outcomes in order.
    fn run(&mut self, jobs: Vec<Job>) -> Vec<Outcome>;
    /// Carries out what is asked of its fence, within seconds.
    fn fence(&mut self, act: FenceAct) -> Result<Fence, FenceError>;
}

pub fn read(at: u64, len: u64) -> Job {
    Job { kind: DriveOpKind::Read, at, len, data: vec![], fua: false }
}
pub fn write(at: u64, data: Vec<u8>) -> Job {
    Job { kind: DriveOpKind::Write, at, len: data.len() as u64, data, fua: false }
}
pub fn other(kind: DriveOpKind, at: u64, len: u64) -> Job {
    Job { kind, at, len, data: vec![], fua: false }
}
pub fn flush() -> Job {
    other(DriveOpKind::Flush, 0, 0)
}
pub fn pattern(len: u64, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(37) ^ (i >> 8) as u8 ^ seed | 1).collect()
}

/// Holds a drive of at least 8 MiB to the contract. `keeps` is false for drives that swallow writes.
/// Everything on it is overwritten.
pub fn check(drive: &mut impl DriveHarness, keeps: bool) {
    let info = drive.info();
    assert!(info.bytes >= 8 << 20, "the contract needs 8 MiB");
    assert!(matches!(info.block_bytes, 512 | 4096), "blocks have 512 or 4096 bytes");
    assert!(info.bytes.is_multiple_of(4096), "sizes are whole 4096-byte blocks");
    assert!(info.kind != base::DriveKind::Path && !info.path.is_empty(), "a drive says what it is");
    what_is_known_to_be_zero_is_zero(drive, &info);
    if keeps {
        what_is_written_is_read(drive, &info);
        operations_side_by_side_do_not_mix(drive, &info);
        zeroes_are_read_after_write_zeroes(drive, DriveOpKind::WriteZeroes);
        if info.deallocate_zeroes {
            zeroes_are_read_after_write_zeroes(drive, DriveOpKind::Deallocate);
        }
    }
    flush_and_fua_are_taken(drive, &info, keeps);
    what_does_not_exist_is_refused_and_harms_nothing(drive, &info, keeps);
    its_fence_is_of_the_kind_that_it_says(drive, &info);
}

fn one(drive: &mut impl DriveHarness, job: Job) -> Outcome {
    let mut all = drive.run(vec![job]);
    assert_eq!(all.len(), 1, "one outcome for one job");
    all.remove(0)
}

fn good(drive: &mut impl DriveHarness, job: Job) -> Vec<u8> {
    let name = format!("{:?} of {} bytes at {}", job.kind, job.len, job.at);
    let (result, data) = one(drive, job);
    assert_eq!(result, Ok(()), "{name}");
    data
}

fn what_is_known_to_be_zero_is_zero(drive: &mut impl DriveHarness, info: &DriveInfo) {
    if info.reads_zeroes {
        for at in [0, 4096 * 100, info.bytes - 8192] {
            assert!(
                good(drive, read(at, 8192)).iter().all(|b| *b == 0),
                "a new drive reads as zeroes at {at}"
            );
        }
    }
}

fn what_is_written_is_read(drive: &mut impl DriveHarness, info: &DriveInfo) {
    let block = u64::from(info.block_bytes);
    let places = [
        (0, block),
        (block, block * 3),
        (1 << 20, 1 << 20),
        ((3 << 20) - block, 512 << 10),
        (info.bytes - block, block),
        (info.bytes - (64 << 10), (64 << 10) - block),
    ];
    for (i, (at, len)) in places.iter().enumerate() {
        good(drive, write(*at, pattern(*len, i as u8)));
    }
    for (i, (at, len)) in places.iter().enumerate() {
        assert!(good(drive, read(*at, *len)) == pattern(*len, i as u8), "{len} bytes at {at} come back");
    }
}

fn operations_side_by_side_do_not_mix(drive: &mut impl DriveHarness, info: &DriveInfo) {
    let block = u64::from(info.block_bytes);
    let at = |i: u64| (i * 7 % 300) * 4096 + i % (4096 / block) * block;
    for round in 0..3 {
        let data = |i: u64| pattern(block, (i as u8).wrapping_mul(3) ^ round);
        let written = drive.run((0..300).map(|i| write(at(i), data(i))).collect());
        assert!(written.iter().all(|(r, _)| r.is_ok()), "300 writes side by side");
        let back = drive.run((0..300).map(|i| read(at(i), block)).collect());
        for (i, (result, bytes)) in back.into_iter().enumerate() {
            assert_eq!(result, Ok(()));
            assert!(bytes == data(i as u64), "round {round}: block {i} is its own");
        }
    }
}

fn zeroes_are_read_after_write_zeroes(drive: &mut impl DriveHarness, kind: DriveOpKind) {
    let (at, len) = (1 << 20, 3 << 20);
    for mib in 0..5 {
        good(drive, write(mib << 20, pattern(1 << 20, 9)));
    }
    // Both what file systems do by whole extents and what they do by hand.
    for (at, len) in [(at, len), (8192, 4096), (4096 * 5, 4096 * 3)] {
        good(drive, other(kind, at, len));
        assert!(good(drive, read(at, len)).iter().all(|b| *b == 0), "{kind:?}: {len} bytes at {at} are zero");
        for near in [at - 4096, at + len] {
            let all = pattern(1 << 20, 9);
            let expected = &all[(near % (1 << 20)) as usize..][..4096];
            assert!(
                good(drive, read(near, 4096)) == expected,
                "{kind:?} leaves the neighbour at {near} alone"
            );
        }
    }
}

fn flush_and_fua_are_taken(drive: &mut impl DriveHarness, info: &DriveInfo, keeps: bool) {
    let block = u64::from(info.block_bytes);
    let data = pattern(block * 2, 77);
    good(drive, Job { fua: true, ..write(block * 10, data.clone()) });
    good(drive, flush());
    assert!(!keeps || good(drive, read(block * 10, block * 2)) == data, "written by FUA");
    let many = (0..20).flat_map(|i| [write(i * 4096, pattern(4096, i as u8)), flush()]);
    assert!(drive.run(many.collect()).iter().all(|(r, _)| r.is_ok()), "flushes between writes");
}

fn what_does_not_exist_is_refused_and_harms_nothing(
    drive: &mut impl DriveHarness,
    info: &DriveInfo,
    keeps: bool,
) {
    let block = u64::from(info.block_bytes);
    let end = info.bytes;
    let last = pattern(block, 123);
    good(drive, write(end - block, last.clone()));
    use DriveOpKind::{Deallocate, Read, Write, WriteZeroes};
    for kind in [Read, Write, WriteZeroes, Deallocate] {
        for (at, len) in [
            (end, block),
            (end - block, block * 2),
            (end + block, block),
            (u64::MAX - block + 1, block),
            (1, block),
            (block / 2, block),
            (0, block - 1),
            (0, block + block / 2),
            (0, 0),
        ] {
            let data = if kind == Write { pattern(len, 5) } else { vec![] };
            let (result, _) = one(drive, Job { kind, at, len, data, fua: false });
            assert!(matches!(result, Err(DriveError::Other(_))), "{kind:?} of {len} at {at}: {result:?}");
        }
    }
    assert!(!keeps || good(drive, read(end - block, block)) == last, "refused operations change nothing");
}

/// Nobody else is at the drive.
fn its_fence_is_of_the_kind_that_it_says(drive: &mut impl DriveHarness, info: &DriveInfo) {
    let [key, victim, later] = [0xa1, 0xb1, 0xa2].map(|k| FenceKey::new(k).expect("not zero"));
    let register = |key| FenceAct::Register { key };
    let shut_out = |process| FenceAct::ShutOut { key, victim, process };
    let acts = [
        FenceAct::Look,
        register(key),
        FenceAct::Reserve { key },
        shut_out(None),
        FenceAct::Unregister { key },
    ];
    match info.fence {
        FenceKind::None(why) => {
            for act in acts {
                assert_eq!(drive.fence(act), Err(FenceError::None(why)), "{act:?}");
            }
        }
        FenceKind::File => {
            // No process has the id 0: there is nobody to be ended.
            for act in acts.into_iter().chain([shut_out(Some(Process { pid: 0, started: 1 }))]) {
                assert_eq!(drive.fence(act), Ok(Fence::File { others: false }), "{act:?}");
            }
        }
        FenceKind::Scsi | FenceKind::Nvme => {
            let mut keys = |act| match drive.fence(act) {
                Ok(Fence::Keys(registrants)) => Ok(registrants),
                Ok(Fence::File { .. }) => panic!("it is no file"),
                Err(error) => Err(error),
            };
            let before = keys(FenceAct::Look).expect("a look");
            assert_eq!((before.keys.len(), before.reservation), (0, None));
            for refused in [FenceAct::Reserve { key }, shut_out(None)] {
                assert_eq!(keys(refused), Err(FenceError::NotRegistered), "{refused:?}");
            }
            for _ in 0..2 {
                assert_eq!(keys(register(key)).expect("registered").keys, [key]);
            }
            for act in [FenceAct::Reserve { key }, FenceAct::Reserve { key }, shut_out(None), shut_out(None)]
            {
                assert!(keys(act).expect("held").is_held_by(key), "{act:?}");
            }
            // In place of the key before: whoever comes back is another incarnation, by the same path.
            let replaced = keys(register(later)).expect("registered");
            assert!(replaced.keys == [later] && replaced.is_held_by(later));
            assert!(keys(FenceAct::Unregister { key }).expect("it is not there").has(later));
            let after = keys(FenceAct::Unregister { key: later }).expect("unregistered");
            assert_eq!((after.keys.len(), after.reservation), (0, None));
            assert_ne!(after.generation, before.generation);
        }
    }
    good(drive, flush());
}
