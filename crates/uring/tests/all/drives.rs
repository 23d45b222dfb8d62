//! Drives of every kind, held to the contract and to their own promises.

use crate::contract::{DriveHarness, Job, Outcome, flush, other, pattern, read, write};
use base::machine::Shape;
use base::{
    Address, DriveError, DriveHealth, DriveId, DriveInfo, DriveOp, DriveOpKind, DriveOpenFault, DriveUser,
    Effect, Effects, Event, Fence, FenceAct, FenceError, FenceOp, FileName, Instant, Machine, Memory,
    OpenError, SizeFault, Slice, Token,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant as Wall};
use uring::{Config, House, MachineConfig, RegionPart};

const PATIENCE: Duration = Duration::from_secs(20);

/// What the tests and the toy machine send each other.
#[derive(Debug)]
pub enum Say {
    Open(u16, String, bool),
    Opened(Result<DriveInfo, OpenError>),
    Inspect(u16),
    Inspected(Result<DriveHealth, DriveError>),
    Fence(u16, FenceOp),
    Fenced(Result<Fence, FenceError>),
    Close(u16),
    Closed,
    Shape(u16, Shape),
    Shaped,
    Run(u16, Vec<Job>),
    Ran(Vec<Outcome>),
    /// Keep `depth` reads of 4096 bytes going for so long, then say how many ended.
    Load {
        drive: u16,
        depth: u64,
        ms: u64,
    },
    Loaded(u64),
}

struct Batch {
    left: usize,
    jobs: Vec<(Job, Slice)>,
    outcomes: Vec<Option<Outcome>>,
}

/// Does jobs at drives.
struct Worker {
    part: RegionPart,
    batches: BTreeMap<u64, Batch>,
    next_batch: u64,
    load: Option<(u16, u64, Instant, u64)>,
}

impl Worker {
    fn report(mail: Say) -> Effect<Say> {
        Effect::Mail { to: Address::Manager, mail }
    }
    fn start(&mut self, drive: u16, jobs: Vec<Job>, fx: &mut Effects<Say>) {
        let id = self.next_batch;
        self.next_batch += 1;
        let mut at = self.part.extent().0;
        let mut placed = Vec::new();
        for (i, job) in jobs.into_iter().enumerate() {
            let moves = matches!(job.kind, DriveOpKind::Read | DriveOpKind::Write);
            let data = Slice::new(at, if moves { job.len as u32 } else { 0 });
            at = (at + u64::from(data.len)).next_multiple_of(512);
            if job.kind == DriveOpKind::Write {
                self.part.bytes_mut(data).copy_from_slice(&job.data);
            } else {
                self.part.bytes_mut(data).fill(0xee);
            }
            let token = Token(id << 32 | i as u64);
            let (kind, at, len, fua) = (job.kind, job.at, job.len, job.fua);
            fx.push(Effect::Drive(DriveOp { drive: DriveId(drive), kind, at, len, data, fua, token }));
            placed.push((job, data));
        }
        let outcomes = placed.iter().map(|_| None).collect();
        self.batches.insert(id, Batch { left: placed.len(), jobs: placed, outcomes });
    }
    fn load_one(&mut self, drive: u16, i: u64, fx: &mut Effects<Say>) {
        let data = Slice::new(self.part.extent().0 + i % 64 * 4096, 4096);
        let (kind, at, token) = (DriveOpKind::Read, i % 64 * 4096, Token(u64::MAX));
        fx.push(Effect::Drive(DriveOp {
            drive: DriveId(drive),
            kind,
            at,
            len: 4096,
            data,
            fua: false,
            token,
        }));
    }
}

impl Machine for Worker {
    type Mail = Say;
    fn on_event(&mut self, now: Instant, event: Event<Say>, fx: &mut Effects<Say>) {
        match event {
            Event::Mail { mail: Say::Open(drive, spec, shared), .. } => {
                fx.push(Effect::OpenDrive { token: Token(7), drive: DriveId(drive), spec, shared });
            }
            Event::DriveOpened { token: Token(7), result } => fx.push(Self::report(Say::Opened(result))),
            Event::Mail { mail: Say::Inspect(drive), .. } => {
                fx.push(Effect::InspectDrive { token: Token(8), drive: DriveId(drive) });
            }
            Event::DriveInspected { token: Token(8), result } => {
                fx.push(Self::report(Say::Inspected(result)))
            }
            Event::Mail { mail: Say::Fence(drive, op), .. } => {
                fx.push(Effect::Fence { token: Token(9), drive: DriveId(drive), op });
            }
            Event::Fenced { token: Token(9), result } => fx.push(Self::report(Say::Fenced(result))),
            Event::Mail { mail: Say::Close(drive), .. } => {
                fx.push(Effect::CloseDrive { drive: DriveId(drive) })
            }
            Event::DriveClosed { .. } => fx.push(Self::report(Say::Closed)),
            Event::Mail { mail: Say::Shape(drive, shape), .. } => {
                fx.push(Effect::ShapeDrive { drive: DriveId(drive), shape });
                // Effects are carried out in order, so the shape is on when this arrives.
                fx.push(Self::report(Say::Shaped));
            }
            Event::Mail { mail: Say::Run(drive, jobs), .. } => self.start(drive, jobs, fx),
            Event::Mail { mail: Say::Load { drive, depth, ms }, .. } => {
                self.load = Some((drive, depth, now + Duration::from_millis(ms), 0));
                (0..depth).for_each(|i| self.load_one(drive, i, fx));
            }
            Event::DriveDone { token: Token(u64::MAX), result } => {
                assert_eq!(result, Ok(()));
                let (drive, in_flight, until, done) = self.load.as_mut().unwrap();
                if now < *until {
                    *done += 1;
                    let (drive, i) = (*drive, *done);
                    self.load_one(drive, i, fx);
                } else {
                    *in_flight -= 1;
                    if *in_flight == 0 {
                        fx.push(Self::report(Say::Loaded(*done)));
                    }
                }
            }
            Event::DriveDone { token, result } => {
                let batch = self.batches.get_mut(&(token.0 >> 32)).expect("DriveDone for what was asked");
                let i = (token.0 & 0xffff_ffff) as usize;
                let (job, data) = &batch.jobs[i];
                let bytes = match job.kind {
                    DriveOpKind::Read => self.part.bytes(*data).to_vec(),
                    _ => vec![],
                };
                assert!(batch.outcomes[i].replace((result, bytes)).is_none(), "DriveDone comes once");
                batch.left -= 1;
                if batch.left == 0 {
                    let batch = self.batches.remove(&(token.0 >> 32)).unwrap();
                    fx.push(Self::report(Say::Ran(batch.outcomes.into_iter().map(Option::unwrap).collect())));
                }
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    fn on_timer(&mut self, _now: Instant, _fx: &mut Effects<Say>) {}
    fn end_of_turn(&mut self, _now: Instant, _fx: &mut Effects<Say>) {}
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn segments(&self, _: base::ConnectionId, _: usize, _: &mut Vec<Slice>) {}
}

/// A house with two shards that use the same drives.
pub struct Bench {
    pub house: House<Say>,
    letters: Receiver<(Address, Say)>,
    info: DriveInfo,
    early: RefCell<VecDeque<Say>>,
}

impl Bench {
    pub fn new() -> Self {
        let (to, letters) = channel();
        let machine =
            |n| MachineConfig { connections_max: 4, ..MachineConfig::new(Address::Shard(n), 16 << 20) };
        let config = Config { machines: vec![machine(0), machine(1)], state_dir: None };
        let mut house = House::build(config, move |from, say| {
            let _ = to.send((from, say));
        })
        .unwrap();
        for n in 0..2 {
            let make = |part, _| Worker { part, batches: BTreeMap::new(), next_batch: 0, load: None };
            house.spawn(Address::Shard(n), make).unwrap();
        }
        // Meanwhile: the first operations find the memory not registered, the others do.
        house.make_resident();
        Self { house, letters, info: DriveInfo::default(), early: RefCell::default() }
    }
    /// A house whose drive 0 is `spec`.
    fn with(spec: &str) -> Self {
        let mut bench = Self::new();
        bench.info = bench.open(0, spec).unwrap();
        bench
    }
    pub fn say(&self, shard: u16, say: Say) {
        assert!(self.house.post().send(Address::Shard(shard), say));
    }
    pub fn hear(&self) -> Say {
        let early = self.early.borrow_mut().pop_front();
        early.unwrap_or_else(|| self.hear_next())
    }
    fn hear_next(&self) -> Say {
        self.letters.recv_timeout(PATIENCE).expect("an answer in time").1
    }
    fn hear_nothing_for(&self, ms: u64) {
        let heard = self.letters.recv_timeout(Duration::from_millis(ms));
        assert!(matches!(heard, Err(RecvTimeoutError::Timeout)), "an answer came that should not");
    }
    fn open(&self, drive: u16, spec: &str) -> Result<DriveInfo, DriveOpenFault> {
        self.try_open(drive, spec).map_err(|e| e.why)
    }
    fn try_open(&self, drive: u16, spec: &str) -> Result<DriveInfo, OpenError> {
        self.open_as(drive, spec, false)
    }
    pub fn open_as(&self, drive: u16, spec: &str, shared: bool) -> Result<DriveInfo, OpenError> {
        self.say(0, Say::Open(drive, spec.into(), shared));
        let Say::Opened(result) = self.hear() else { panic!("an answer to Open") };
        result
    }
    fn inspect(&self, drive: u16) -> Result<DriveHealth, DriveError> {
        self.say(0, Say::Inspect(drive));
        let Say::Inspected(result) = self.hear() else { panic!("an answer to Inspect") };
        result
    }
    pub fn fence_at(&self, drive: u16, act: FenceAct, limit: Duration) -> Result<Fence, FenceError> {
        self.say(0, Say::Fence(drive, FenceOp { act, limit }));
        let Say::Fenced(result) = self.hear() else { panic!("an answer to Fence") };
        result
    }
    pub fn close(&self, drive: u16) {
        self.say(0, Say::Close(drive));
        assert!(matches!(self.hear(), Say::Closed));
    }
    fn run_at(&self, shard: u16, drive: u16, jobs: Vec<Job>) -> Vec<Outcome> {
        self.say(shard, Say::Run(drive, jobs));
        self.ran()
    }
    pub fn ran(&self) -> Vec<Outcome> {
        let Say::Ran(outcomes) = self.hear() else { panic!("an answer to Run") };
        outcomes
    }
    pub fn shape(&self, shape: Shape) {
        self.say(0, Say::Shape(0, shape));
        loop {
            match self.hear_next() {
                Say::Shaped => return,
                // What hung may answer first.
                other => self.early.borrow_mut().push_back(other),
            }
        }
    }
    fn load(&self, depth: u64, ms: u64) -> u64 {
        self.say(0, Say::Load { drive: 0, depth, ms });
        let Say::Loaded(done) = self.hear() else { panic!("an answer to Load") };
        done
    }
    pub fn result(&self, shard: u16, job: Job) -> Result<(), DriveError> {
        self.run_at(shard, 0, vec![job])[0].0
    }
}

impl DriveHarness for Bench {
    fn info(&self) -> DriveInfo {
        self.info.clone()
    }
    fn run(&mut self, jobs: Vec<Job>) -> Vec<Outcome> {
        self.run_at(0, 0, jobs)
    }
    fn fence(&mut self, act: FenceAct) -> Result<Fence, FenceError> {
        self.fence_at(0, act, PATIENCE)
    }
}

pub fn folder() -> tempfile::TempDir {
    // Not /tmp, which may be a tmpfs.
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn contract_of(spec: &str, kind: &str, keeps: bool) {
    let mut bench = Bench::with(spec);
    assert_eq!(bench.info.kind.word(), kind);
    crate::contract::check(&mut bench, keeps);
    bench.close(0);
    bench.house.stop().unwrap();
}

fn sh(program: &str, args: &[&str]) -> Option<String> {
    let out = Command::new(program).args(args).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// A loop device, if this machine lets us make one.
struct LoopDevice(String);

impl LoopDevice {
    fn over(file: &Path) -> Option<Self> {
        Self::of(file, &[])
    }
    fn of(file: &Path, options: &[&str]) -> Option<Self> {
        let made = sh("losetup", &[&["-f", "--show"], options, &[file.to_str().unwrap()]].concat());
        if made.is_none() {
            eprintln!("SKIPPED: this machine does not let us make a loop device (losetup needs root)");
        }
        made.map(Self)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        sh("losetup", &["-d", &self.0]);
    }
}

/// A small tmpfs, if this machine lets us mount one.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn at(dir: &Path, size: &str) -> Option<Self> {
        let option = format!("size={size}");
        let made = sh("mount", &["-t", "tmpfs", "-o", &option, "tmpfs", dir.to_str().unwrap()]);
        if made.is_none() {
            eprintln!("SKIPPED: this machine does not let us mount a tmpfs (needs root)");
        }
        made.map(|_| Self(dir.to_owned()))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        sh("umount", &["-l", self.0.to_str().unwrap()]);
    }
}

#[test]
fn a_loop_device_is_its_file_by_another_name() {
    let dir = folder();
    let paths = ["a", "b"].map(|name| dir.path().join(name));
    for path in &paths {
        File::create(path).unwrap().set_len(16 << 20).unwrap();
    }
    let (Some(a), Some(twin), Some(b)) =
        (LoopDevice::over(&paths[0]), LoopDevice::over(&paths[0]), LoopDevice::over(&paths[1]))
    else {
        return;
    };
    let bench = Bench::with(&a.0);
    let file = bench.open(1, &paths[0].display().to_string()).unwrap();
    let twin = bench.open(2, &twin.0).unwrap();
    let other = bench.open(3, &b.0).unwrap();
    for same in [&file, &twin] {
        assert!(bench.info.overlaps(same) && same.overlaps(&bench.info), "{same:?}");
        assert!(!other.overlaps(same) && !same.overlaps(&other), "{same:?}");
    }
}

#[test]
fn loop_devices_of_disjoint_parts_of_a_file_are_two_drives() {
    let dir = folder();
    let path = dir.path().join("f");
    File::create(&path).unwrap().set_len(32 << 20).unwrap();
    let part =
        |first: u64| LoopDevice::of(&path, &["-o", &(first << 20).to_string(), "--sizelimit", "16777216"]);
    let (Some(first), Some(second), Some(both)) = (part(0), part(16), part(8)) else { return };
    let bench = Bench::with(&first.0);
    let [second, both] = [(1, &second), (2, &both)].map(|(id, l)| bench.open(id, &l.0).unwrap());
    assert!(!bench.info.overlaps(&second) && !second.overlaps(&bench.info), "{second:?}");
    assert!(both.overlaps(&bench.info) && both.overlaps(&second), "{both:?}");
    let file = bench.open(3, &path.display().to_string()).unwrap();
    assert!(file.overlaps(&bench.info) && file.overlaps(&second), "{file:?}");
}

#[test]
fn a_file_that_was_made_for_a_drive_goes_with_it_if_it_holds_nothing_then() {
    let dir = folder();
    let path = dir.path().join("d");
    let spec = format!("file:{}?size=16M", path.display());
    let (put, free) = (|| write(8192, pattern(4096, 1)), |len| other(DriveOpKind::Deallocate, 0, len));
    for (jobs, stays) in [
        (vec![], false),
        (vec![vec![put()], vec![free(16 << 20)]], false),
        (vec![vec![put()], vec![free(4096)]], true),
        // It is there by now: nobody takes away what he found.
        (vec![vec![free(16 << 20)]], true),
    ] {
        let bench = Bench::with(&spec);
        for job in jobs {
            assert!(bench.run_at(0, 0, job).iter().all(|(result, _)| result.is_ok()));
        }
        bench.close(0);
        assert_eq!(path.exists(), stays);
    }
}

/// One that was made by a daemon which was killed then: the next one knows it from its journal.
#[test]
fn a_file_that_is_opened_as_one_that_was_made_goes_if_it_holds_nothing_and_no_other_does() {
    let dir = folder();
    let path = dir.path().join("d");
    let (plain, made) = (path.display().to_string(), format!("made:{}", path.display()));
    for (spec, emptied, stays) in [(&plain, true, true), (&made, false, true), (&made, true, false)] {
        File::create(&path).unwrap().set_len(16 << 20).unwrap();
        let bench = Bench::with(spec);
        assert_eq!((bench.info.made, &bench.info.path), (*spec == made, &plain));
        assert_eq!(bench.result(0, write(8192, pattern(4096, 3))), Ok(()));
        if emptied {
            assert_eq!(bench.result(0, other(DriveOpKind::Deallocate, 0, 16 << 20)), Ok(()));
        }
        bench.close(0);
        assert_eq!(path.exists(), stays, "{spec}");
    }
    assert!(Bench::new().try_open(0, &made).unwrap_err().why.is_missing(), "it makes none");
    assert_eq!(Bench::new().open(0, "made:/dev/null"), Err(DriveOpenFault::NotAFile));
}

#[test]
fn a_file_is_a_drive() {
    let dir = folder();
    contract_of(&format!("file:{}?size=16M", dir.path().join("d").display()), "file", true);
}

#[test]
fn a_file_with_small_blocks_is_a_drive() {
    let dir = folder();
    contract_of(&format!("file:{}?size=16M&block=512", dir.path().join("d").display()), "file", true);
}

#[test]
fn a_file_on_tmpfs_is_a_drive() {
    let dir = folder();
    let Some(_mount) = Tmpfs::at(dir.path(), "64M") else { return };
    contract_of(&format!("file:{}?size=16M", dir.path().join("d").display()), "file", true);
}

#[test]
fn memory_is_a_drive() {
    contract_of("ram:16M", "ram", true);
}

#[test]
fn nothing_is_a_drive_that_forgets() {
    contract_of("null:1T", "null", false);
}

#[test]
fn a_block_device_is_a_drive() {
    let dir = folder();
    let path = dir.path().join("backing");
    File::create(&path).unwrap().set_len(32 << 20).unwrap();
    // Real ones, whose contents do not matter, may be named as well.
    for path in std::env::var("MILLRACE_TEST_DRIVES").iter().flat_map(|all| all.split(',')) {
        contract_of(path, "block", true);
    }
    let Some(device) = LoopDevice::over(&path) else { return };
    contract_of(&device.0, "block", true);
    // The claim is gone, and while it is held nobody else gets one.
    let first = Bench::with(&device.0);
    let second = Bench::new();
    let busy = second.try_open(0, &device.0).unwrap_err();
    assert!(busy.drive == device.0 && busy.why.is_held(), "{busy:?}");
    first.close(0);
    second.open(0, &device.0).unwrap();
}

#[test]
fn a_mounted_block_device_is_refused_and_its_mount_point_named() {
    let dir = folder();
    let path = dir.path().join("backing");
    File::create(&path).unwrap().set_len(32 << 20).unwrap();
    let Some(device) = LoopDevice::over(&path) else { return };
    let at = dir.path().join("mnt");
    fs::create_dir(&at).unwrap();
    assert!(uring::candidates().contains(&device.0), "a free device is a candidate");
    let made = sh("mkfs.ext4", &["-q", "-F", &device.0])
        .and_then(|_| sh("mount", &[&device.0, at.to_str().unwrap()]));
    if made.is_none() {
        eprintln!("SKIPPED: this machine does not let us make and mount an ext4");
        return;
    }
    let mount = Tmpfs(at.clone());
    let refused = Bench::new().open(0, &device.0).unwrap_err();
    let users = vec![DriveUser::Mount { path: at.display().to_string() }];
    assert_eq!(refused, DriveOpenFault::InUse { users });
    assert!(!uring::candidates().contains(&device.0), "a mounted device is no candidate");
    drop(mount);
}

/// The kernel opens it for writing, and the first write failed when a pool was half made.
#[test]
fn a_read_only_device_is_refused_before_anything_is_written() {
    let dir = folder();
    let path = dir.path().join("backing");
    File::create(&path).unwrap().set_len(32 << 20).unwrap();
    let Some(device) = LoopDevice::of(&path, &["-r"]) else { return };
    let refused = Bench::new().open(0, &device.0).unwrap_err();
    assert_eq!(refused, DriveOpenFault::ReadOnly);
}

/// A daemon's API looks at it for a moment after its machines have ended, and others want the drives meanwhile.
#[test]
fn a_house_that_has_ended_has_no_drive_although_somebody_looks_at_it() {
    let dir = folder();
    let path = dir.path().join("x");
    File::create(&path).unwrap().set_len(32 << 20).unwrap();
    let bench = Bench::with(&path.display().to_string());
    let watch = bench.house.watch();
    let file = File::open(&path).unwrap();
    assert!(file.try_lock().is_err(), "it is the house's");
    bench.house.stop().unwrap();
    let begun = Wall::now();
    while file.try_lock().is_err() {
        assert!(begun.elapsed() < PATIENCE, "it is still locked");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(watch.memory().1 > 0);
}

/// A lock of the file says nothing of who has a loop device of it.
#[test]
fn a_file_that_is_in_use_through_a_loop_device_is_refused() {
    let dir = folder();
    let path = dir.path().join("backing");
    let spec = path.display().to_string();
    File::create(&path).unwrap().set_len(32 << 20).unwrap();
    let Some(device) = LoopDevice::over(&path) else { return };
    // As a drive of a second head.
    let there = Bench::with(&device.0);
    let refused = Bench::new().open(0, &spec).unwrap_err();
    let through = |why: &DriveOpenFault| matches!(why, DriveOpenFault::InUseThrough { device: d, .. } if *d == device.0);
    assert!(through(&refused), "{refused:?}");
    there.close(0);
    there.house.stop().unwrap();
    let idle = Bench::with(&spec);
    idle.close(0);
    idle.house.stop().unwrap();
    let at = dir.path().join("mnt");
    fs::create_dir(&at).unwrap();
    let made = sh("mkfs.ext4", &["-q", "-F", &device.0])
        .and_then(|_| sh("mount", &[&device.0, at.to_str().unwrap()]));
    if made.is_none() {
        eprintln!("SKIPPED: this machine does not let us make and mount an ext4");
        return;
    }
    let mount = Tmpfs(at.clone());
    let refused = Bench::new().open(0, &spec).unwrap_err();
    let users = vec![DriveUser::Mount { path: at.display().to_string() }];
    assert_eq!(refused, DriveOpenFault::InUseThrough { device: device.0.clone(), users });
    drop(mount);
}

#[test]
fn what_cannot_be_opened_is_reported_with_cause_and_remedy() {
    let dir = folder();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path("small"), b"tiny").unwrap();
    fs::write(path("exists"), vec![0; 8192]).unwrap();
    let bench = Bench::new();
    let folder = dir.path().display().to_string();
    let text = |text: &str| -> String { text.into() };
    let (nothing, large) = (text("0"), text("99999999999999999999"));
    for (spec, drive, why) in [
        (path("missing"), path("missing"), DriveOpenFault::Missing),
        (format!("file:{}", path("missing")), path("missing"), DriveOpenFault::NoSize),
        (format!("file:{}?size=1M", path("no/folder")), path("no/folder"), DriveOpenFault::Missing),
        (
            format!("file:{}?size=1M", path("exists")),
            path("exists"),
            DriveOpenFault::OtherSize { bytes: 8192, wanted_bytes: 1 << 20 },
        ),
        (path("small"), path("small"), DriveOpenFault::TooSmall { bytes: 4 }),
        (folder.clone(), folder, DriveOpenFault::Directory),
        (text("/dev/null"), text("/dev/null"), DriveOpenFault::NotADrive),
        (text("ram:0"), text("ram:0"), DriveOpenFault::Size { fault: SizeFault::Nothing { text: nothing } }),
        (
            format!("null:{large}"),
            format!("null:{large}"),
            DriveOpenFault::Size { fault: SizeFault::TooLarge { text: large } },
        ),
    ] {
        let error = bench.try_open(0, &spec).expect_err(&spec);
        assert_eq!((error.drive, error.why), (drive, why), "{spec}");
    }
    bench.open(0, "ram:16M").unwrap();
    assert_eq!(bench.open(0, "ram:16M"), Err(DriveOpenFault::NumberTaken { number: 0 }));
}

#[test]
fn a_file_that_was_made_and_never_written_goes_as_it_is_closed_and_no_other_does() {
    let dir = folder();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let there = |name: &str| dir.path().join(name).exists();
    let bench = Bench::with(&format!("file:{}?size=1M", path("made")));
    assert!(there("made"));
    bench.close(0);
    assert!(!there("made"), "whoever made it was refused");
    // One that was there before stays, and so does what was written to.
    File::create(path("older")).unwrap().set_len(1 << 20).unwrap();
    bench.open(0, &format!("file:{}?size=1M", path("older"))).unwrap();
    bench.close(0);
    bench.open(0, &format!("file:{}?size=1M", path("used"))).unwrap();
    assert_eq!(bench.result(0, write(8192, pattern(4096, 3))), Ok(()));
    bench.close(0);
    assert!(there("older") && there("used"));
}

#[test]
fn a_file_has_one_user_and_keeps_its_contents() {
    let dir = folder();
    let path = dir.path().join("d").display().to_string();
    let bench = Bench::with(&format!("file:{path}?size=16M"));
    assert!(bench.info.reads_zeroes, "a new file is all hole");
    assert_eq!(bench.result(1, write(8192, pattern(4096, 3))), Ok(()));
    let refused = Bench::new().try_open(0, &path).unwrap_err();
    assert!(refused.drive == path && refused.why.is_held(), "{refused:?}");
    assert!(matches!(bench.open(1, &path), Err(DriveOpenFault::Open { .. } | DriveOpenFault::Locked)));
    assert!(bench.try_open(1, &path).unwrap_err().why.is_held(), "whoever has it may let go of it");
    assert!(!bench.try_open(1, "/nonexistent/d").unwrap_err().why.is_held());
    bench.close(0);
    let again = bench.open(2, &path).unwrap();
    assert!(!again.reads_zeroes, "a written file is not known to be zero");
    assert!(bench.run_at(0, 2, vec![read(8192, 4096)])[0].1 == pattern(4096, 3));
}

/// A fixed VHD is a disk with 512 bytes more; others keep their marks in a device's last sector.
#[test]
fn what_lies_behind_the_last_whole_block_is_reported() {
    let dir = folder();
    let path = dir.path().join("d.vhd");
    let footer = [&b"conectix"[..], &[7; 504]].concat();
    fs::write(&path, [vec![1; 16 << 20], footer.clone()].concat()).unwrap();
    let bench = Bench::with(path.to_str().unwrap());
    assert_eq!((bench.info.bytes, &bench.info.end), (16 << 20, &footer));
    bench.close(0);
    if let Some(device) = LoopDevice::over(&path) {
        let info = bench.open(1, &device.0).unwrap();
        assert_eq!((info.bytes, info.end), (16 << 20, footer));
        bench.close(1);
    }
}

#[test]
fn a_look_from_outside_sees_the_size_and_the_space_left() {
    let dir = folder();
    let path = dir.path().join("d");
    let bench = Bench::with(&format!("file:{}?size=16M", path.display()));
    let health = bench.inspect(0).unwrap();
    assert!(health.bytes == 16 << 20 && health.free_bytes.is_some_and(|free| free > 0), "{health:?}");
    File::options().write(true).open(&path).unwrap().set_len(5 << 20).unwrap();
    assert_eq!(bench.inspect(0).unwrap().bytes, 5 << 20);
    assert_eq!(health.name, FileName::There);
    let moved = dir.path().join("moved");
    std::fs::rename(&path, &moved).unwrap();
    assert_eq!(bench.inspect(0).unwrap().name, FileName::Moved);
    File::create(&path).unwrap();
    assert_eq!(bench.inspect(0).unwrap().name, FileName::Moved, "another file has its path");
    std::fs::remove_file(&moved).unwrap();
    assert_eq!(bench.inspect(0).unwrap().name, FileName::Removed);
    bench.open(1, "ram:16M").unwrap();
    assert_eq!(bench.inspect(1), Ok(DriveHealth { bytes: 16 << 20, ..DriveHealth::default() }));
    assert_eq!(bench.inspect(9), Err(DriveError::Gone));
}

#[test]
fn a_drive_opened_by_the_path_it_reported_is_the_same_drive() {
    let dir = folder();
    let bench = Bench::with(&format!("file:{}?size=16M&block=512", dir.path().join("d").display()));
    assert_eq!(bench.result(0, write(512, pattern(512, 3))), Ok(()));
    bench.close(0);
    let again = bench.open(1, &bench.info.path).unwrap();
    assert_eq!(again, DriveInfo { reads_zeroes: false, made: false, ..bench.info.clone() });
}

#[test]
fn named_memory_keeps_its_contents_until_the_process_ends() {
    let bench = Bench::with("ram:kept,16M");
    assert!(bench.info.reads_zeroes);
    assert_eq!(bench.result(0, write(4096, pattern(4096, 8))), Ok(()));
    assert_eq!(bench.open(1, "ram:kept,16M"), Err(DriveOpenFault::RamInUse));
    bench.close(0);
    let size = DriveOpenFault::RamSize { bytes: 16 << 20, wanted_bytes: 32 << 20 };
    assert_eq!(bench.open(1, "ram:kept,32M"), Err(size));
    assert!(!bench.open(1, "ram:kept,16M").unwrap().reads_zeroes);
    assert!(bench.run_at(1, 1, vec![read(4096, 4096)])[0].1 == pattern(4096, 8));
}

#[test]
fn a_file_that_became_shorter_is_cut_off_and_nothing_of_it_is_believed() {
    let dir = folder();
    let path = dir.path().join("d");
    let bench = Bench::with(&format!("file:{}?size=16M", path.display()));
    assert_eq!(bench.result(0, write(0, pattern(1 << 20, 1))), Ok(()));
    File::options().write(true).open(&path).unwrap().set_len(512 << 10).unwrap();
    assert_eq!(bench.result(0, read(256 << 10, 512 << 10)), Err(DriveError::Cut));
    assert_eq!(bench.result(0, read(8 << 20, 4096)), Err(DriveError::Cut));
    assert_eq!(bench.result(0, read(0, 4096)), Err(DriveError::Cut), "who knows what lies there");
}

/// A write behind the new end made the file longer again, and everything before it read as zeroes.
#[test]
fn no_zeroes_are_read_of_a_file_that_was_cut_off_and_written_to() {
    let dir = folder();
    let path = dir.path().join("d");
    let zeroes = other(DriveOpKind::WriteZeroes, 8 << 20, 4096);
    for after in [write(8 << 20, pattern(4096, 2)), zeroes, flush()] {
        let bench = Bench::with(&format!("file:{}?size=16M", path.display()));
        assert_eq!(bench.result(0, write(0, pattern(1 << 20, 1))), Ok(()));
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert_eq!(bench.result(1, after.clone()), Err(DriveError::Cut), "{:?}", after.kind);
        for shard in 0..2 {
            let outcomes = bench.run_at(shard, 0, (0..16).map(|i| read(i << 16, 64 << 10)).collect());
            assert!(outcomes.iter().all(|(r, _)| *r == Err(DriveError::Cut)));
        }
        bench.close(0);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_full_file_system_is_reported_as_such_and_reads_go_on() {
    let dir = folder();
    let Some(_mount) = Tmpfs::at(dir.path(), "2M") else { return };
    let bench = Bench::with(&format!("file:{}?size=16M", dir.path().join("d").display()));
    let writes = (0..16).map(|i| write(i << 20, pattern(512 << 10, i as u8)));
    let results: Vec<_> = bench.run_at(0, 0, writes.collect()).into_iter().map(|o| o.0).collect();
    assert!(results.contains(&Err(DriveError::NoSpace)), "{results:?}");
    let only = |r: &Result<(), DriveError>| matches!(r, Ok(()) | Err(DriveError::NoSpace));
    assert!(results.iter().all(only), "{results:?}");
    assert_eq!(bench.result(0, read(0, 1 << 20)), Ok(()));
    bench.close(0);
}

#[test]
fn operations_on_a_drive_that_is_not_open_find_it_gone() {
    let bench = Bench::new();
    assert_eq!(bench.run_at(0, 9, vec![read(0, 4096)])[0].0, Err(DriveError::Gone));
    bench.close(9);
    bench.open(9, "ram:16M").unwrap();
    assert_eq!(bench.run_at(1, 9, vec![read(0, 4096)])[0].0, Ok(()));
    bench.close(9);
    assert_eq!(bench.run_at(1, 9, vec![read(0, 4096)])[0].0, Err(DriveError::Gone));
}

/// The drives that a shape is tried on: one in the kernel, one in the process.
fn shaped(test: impl Fn(Bench)) {
    let dir = folder();
    test(Bench::with(&format!("file:{}?size=16M", dir.path().join("d").display())));
    test(Bench::with("ram:16M"));
}

#[test]
fn latency_is_added() {
    shaped(|bench| {
        bench.shape(Shape { latency_us: 30_000, ..Shape::default() });
        let begun = Wall::now();
        assert!(
            bench.run_at(0, 0, (0..50).map(|i| read(i * 4096, 4096)).collect()).iter().all(|o| o.0.is_ok())
        );
        let took = begun.elapsed().as_millis();
        assert!((30..200).contains(&took), "50 reads side by side took {took} ms");
    });
}

/// Windows of a load of which one must reach the limit.
const WINDOWS: u32 = 10;

/// No window has more than the limit, and one of them reaches it: a machine that is busy with other things can only be slower.
fn kept(range: std::ops::RangeInclusive<u64>, what: &str, mut window: impl FnMut() -> u64) {
    let mut all = vec![];
    while all.len() < WINDOWS as usize {
        let done = window();
        all.push(done);
        assert!(done <= *range.end(), "{all:?} {what}");
        if range.contains(&done) {
            return;
        }
    }
    panic!("{all:?} {what}");
}

#[test]
fn an_iops_limit_is_kept_within_a_tenth() {
    shaped(|bench| {
        bench.shape(Shape { iops_max: 4000, ..Shape::default() });
        for depth in [1, 16] {
            kept(1800..=2200, &format!("reads in half a second at 4000 IOPS, depth {depth}"), || {
                bench.load(depth, 500)
            });
        }
    });
}

#[test]
fn a_throughput_limit_is_kept_within_a_tenth() {
    let bench = Bench::with("ram:16M");
    bench.shape(Shape { mbps_max: 20, ..Shape::default() });
    kept(9_000_000..=11_000_000, "bytes in half a second at 20 MB/s", || bench.load(8, 500) * 4096);
}

#[test]
fn a_hung_drive_answers_when_it_is_let_go() {
    shaped(|bench| {
        bench.shape(Shape { hang: true, ..Shape::default() });
        bench.say(
            0,
            Say::Run(
                0,
                vec![write(0, pattern(4096, 4)), flush(), other(DriveOpKind::WriteZeroes, 8192, 4096)],
            ),
        );
        bench.say(1, Say::Run(0, vec![write(4096, pattern(4096, 5))]));
        bench.hear_nothing_for(200);
        bench.shape(Shape::default());
        assert!(bench.ran().iter().chain(&bench.ran()).all(|o| o.0.is_ok()));
        assert!(bench.run_at(1, 0, vec![read(0, 4096)])[0].1 == pattern(4096, 4));
    });
}

#[test]
fn a_drive_that_is_gone_fails_what_hangs_and_what_comes_and_may_return() {
    shaped(|bench| {
        assert_eq!(bench.result(0, write(0, pattern(4096, 6))), Ok(()));
        bench.shape(Shape { hang: true, ..Shape::default() });
        bench.say(1, Say::Run(0, vec![read(0, 4096)]));
        bench.hear_nothing_for(50);
        bench.shape(Shape { hang: true, gone: true, ..Shape::default() });
        assert_eq!(bench.ran()[0].0, Err(DriveError::Gone));
        for job in [read(0, 4096), write(0, pattern(4096, 7)), flush()] {
            assert_eq!(bench.result(0, job), Err(DriveError::Gone));
        }
        bench.shape(Shape::default());
        let (result, data) = bench.run_at(0, 0, vec![read(0, 4096)]).remove(0);
        assert!(result.is_ok() && data == pattern(4096, 6), "what failed was not written");
    });
}

#[test]
fn errors_come_about_as_often_as_asked() {
    shaped(|bench| {
        bench.shape(Shape { read_errors_ppm: 300_000, ..Shape::default() });
        let reads = bench.run_at(0, 0, (0..1000).map(|i| read(i * 4096, 4096)).collect());
        let failed = reads.iter().filter(|o| o.0 == Err(DriveError::Medium)).count();
        assert!((200..400).contains(&failed), "{failed} of 1000 reads failed at 30 %");
        assert_eq!(bench.result(0, write(0, pattern(4096, 1))), Ok(()));
    });
}

#[test]
fn a_drive_is_closed_only_after_the_last_hung_operation_of_anybody() {
    shaped(|bench| {
        bench.shape(Shape { hang: true, ..Shape::default() });
        bench.say(1, Say::Run(0, vec![read(0, 4096)]));
        // The answer to this says that the read has begun, however busy the machine is.
        bench.say(1, Say::Shape(0, Shape { hang: true, ..Shape::default() }));
        assert!(matches!(bench.hear(), Say::Shaped));
        bench.say(0, Say::Close(0));
        bench.hear_nothing_for(150);
        bench.shape(Shape::default());
        assert!(matches!(bench.hear(), Say::Ran(outcomes) if outcomes[0].0.is_ok()));
        assert!(matches!(bench.hear(), Say::Closed));
    });
}

#[test]
fn a_delayed_operation_goes_on_when_the_shape_is_taken_away() {
    let bench = Bench::with("ram:16M");
    bench.shape(Shape { latency_us: 60_000_000, ..Shape::default() });
    bench.say(0, Say::Run(0, vec![read(0, 4096)]));
    bench.hear_nothing_for(100);
    bench.shape(Shape::default());
    assert_eq!(bench.ran()[0].0, Ok(()));
}
