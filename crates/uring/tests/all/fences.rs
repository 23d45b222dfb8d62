//! Heads on one machine that share files: each is a process, and one of them shuts another out.

use crate::contract::{pattern, write};
use crate::drives::{Bench, Say, folder};
use base::fence::Process;
use base::machine::Shape;
use base::{DriveOpenFault, DriveUser, Fence, FenceAct, FenceError, FenceKey, FenceKind};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const SIGKILL: i32 = 9;
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(300);

/// Another head: a process with the real reactor.
struct Other {
    child: Child,
    said: BufReader<ChildStdout>,
    process: Process,
}

impl Other {
    /// Opens `drive` and carries out `steps`.
    fn start(drive: &Path, steps: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fence"));
        command.arg(drive).args(steps).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        // `… open ok File PID STARTED`
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| words.get(i).and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
        let process = Process { pid: number(4) as u32, started: number(5) };
        Self { child, said, process }
    }
    /// One that shares the drive and writes to it at depth, to blocks 256 to 1279, until it is killed.
    fn writing(drive: &Path) -> Self {
        let mut other = Self::start(drive, &["shared", "load=256,1024,32", "sleep=60000"]);
        assert!(other.hears("load ok"), "it writes");
        std::thread::sleep(Duration::from_millis(200));
        other
    }
    fn hears(&mut self, words: &str) -> bool {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.contains(words)
    }
    fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process of its own says that opens the drive for itself alone.
fn alone(drive: &Path) -> String {
    let said = Command::new(env!("CARGO_BIN_EXE_fence")).arg(drive).output().unwrap();
    String::from_utf8_lossy(&said.stdout).into_owned()
}

fn file(dir: &tempfile::TempDir, name: &str) -> PathBuf {
    let path = dir.path().join(name);
    File::create(&path).unwrap().set_len(16 << 20).unwrap();
    path
}

/// A head that shares these files as its drives 0, 1, …
fn head(drives: &[&Path]) -> Bench {
    let bench = Bench::new();
    for (i, drive) in (0..).zip(drives) {
        let info = bench.open_as(i, drive.to_str().unwrap(), true).unwrap();
        assert_eq!(info.fence, FenceKind::File);
    }
    bench
}

fn shut_out(process: Option<Process>) -> FenceAct {
    let [key, victim] = [0xa1, 0xb1].map(|k| FenceKey::new(k).unwrap());
    FenceAct::ShutOut { key, victim, process }
}

const ALONE: Result<Fence, FenceError> = Ok(Fence::File { others: false });

#[test]
fn a_shared_file_is_open_to_those_who_share_it_and_to_nobody_else() {
    let dir = folder();
    let path = file(&dir, "d");
    let bench = head(&[&path]);
    assert_eq!(bench.fence_at(0, FenceAct::Look, LONG), ALONE);
    let other = Other::start(&path, &["shared", "sleep=60000"]);
    assert!(other.process.pid > 0, "it shares the file");
    assert_eq!(bench.fence_at(0, FenceAct::Look, LONG), Ok(Fence::File { others: true }));
    assert!(alone(&path).contains("open error Open"), "{}", alone(&path));
    assert!(Bench::new().open_as(0, path.to_str().unwrap(), false).unwrap_err().why.is_held());
    drop(other);
    assert_eq!(bench.fence_at(0, FenceAct::Look, LONG), ALONE);
    // A lock that is shared does not distinguish two drives of one head.
    let twice = bench.open_as(1, path.to_str().unwrap(), true).unwrap_err();
    assert_eq!(twice.why, DriveOpenFault::Open { by: vec![DriveUser::ThisHead] });
    assert!(twice.why.is_held());
    bench.close(0);
    assert!(alone(&path).contains("open ok"), "it is nobody's");
    let whole = Bench::new();
    whole.open_as(0, path.to_str().unwrap(), false).unwrap();
    assert!(
        Bench::new().open_as(0, path.to_str().unwrap(), true).unwrap_err().why.is_held(),
        "it is one head's"
    );
}

#[test]
fn a_head_that_is_shut_out_is_dead_and_nothing_of_it_lands_afterwards() {
    let dir = folder();
    let paths = [file(&dir, "a"), file(&dir, "b")];
    for round in 0..5 {
        let mut victim = Other::writing(&paths[0]);
        let bench = head(&[&paths[0], &paths[1]]);
        let began = Instant::now();
        // All drives at once; who finds the process gone goes on to the lock.
        for drive in [0, 1] {
            let op = base::FenceOp { act: shut_out(Some(victim.process)), limit: LONG };
            bench.say(0, Say::Fence(drive, op));
        }
        for _ in 0..2 {
            let Say::Fenced(result) = bench.hear() else { panic!("an answer to Fence") };
            assert_eq!(result, ALONE);
        }
        let took = began.elapsed();
        let before = fs::read(&paths[0]).unwrap();
        assert!(before.iter().any(|b| *b != 0), "it had written");
        std::thread::sleep(SHORT);
        assert!(fs::read(&paths[0]).unwrap() == before, "round {round}: a write landed after the fence");
        assert_eq!(victim.child.wait().unwrap().signal(), Some(SIGKILL));
        eprintln!("round {round}: shut out of two files in {took:?}");
        // What is ours stays ours, and shared as before.
        assert_eq!(bench.result(0, write(0, pattern(4096, 1))), Ok(()));
        assert!(alone(&paths[0]).contains("open error Open"));
        assert!(Other::start(&paths[0], &["shared"]).process.pid > 0);
        // Again: there is nobody any more.
        assert_eq!(bench.fence_at(0, shut_out(Some(victim.process)), LONG), ALONE);
        bench.house.stop().unwrap();
    }
}

#[test]
fn another_process_with_the_victims_id_is_left_alone() {
    let dir = folder();
    let path = file(&dir, "d");
    let mut other = Other::writing(&path);
    let bench = head(&[&path]);
    let began = Instant::now();
    let victim = Process { started: other.process.started + 1, ..other.process };
    assert_eq!(bench.fence_at(0, shut_out(Some(victim)), SHORT), Err(FenceError::NotThatProcess));
    assert!(began.elapsed() < SHORT + Duration::from_millis(200), "within its limit");
    assert!(other.lives());
    // It was asked for alone, and not given: what we had is ours as before.
    drop(other);
    assert!(alone(&path).contains("open error Open"), "our own lock was not given up on the way");
    // The one who has the id now does not have the file.
    let mut bystander = Command::new("sleep").arg("60").spawn().unwrap();
    let victim = Process { pid: bystander.id(), started: 1 };
    assert_eq!(bench.fence_at(0, shut_out(Some(victim)), LONG), ALONE);
    assert!(bystander.try_wait().unwrap().is_none(), "it lives");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

/// A head that was put out had let go of its files, started anew as the same process, and was killed for what it had been.
#[test]
fn a_process_that_has_let_go_of_the_file_lives_on() {
    let dir = folder();
    let [had, has] = ["a", "b"].map(|name| file(&dir, name));
    let mut other = Other::writing(&has);
    let bench = head(&[&had, &has]);
    assert_eq!(bench.fence_at(0, shut_out(Some(other.process)), LONG), ALONE);
    assert!(other.lives());
    assert_eq!(bench.fence_at(1, shut_out(Some(other.process)), LONG), ALONE);
    assert_eq!(other.child.wait().unwrap().signal(), Some(SIGKILL));
}

#[test]
fn nobody_shuts_itself_out() {
    let dir = folder();
    let path = file(&dir, "d");
    let bench = head(&[&path]);
    let own = shut_out(Some(uring::process::identity()));
    assert_eq!(bench.fence_at(0, own, LONG), Err(FenceError::Ourselves));
    // Our id was another's before.
    let before = Process { started: 1, ..uring::process::identity() };
    assert_eq!(bench.fence_at(0, shut_out(Some(before)), LONG), ALONE);
}

#[test]
fn the_lock_is_waited_for_until_the_last_one_lets_go_or_the_limit_strikes() {
    let dir = folder();
    let path = file(&dir, "d");
    let other = Other::start(&path, &["shared", "sleep=60000"]);
    let bench = head(&[&path]);
    let began = Instant::now();
    assert_eq!(bench.fence_at(0, shut_out(None), SHORT), Err(FenceError::TimedOut));
    let took = began.elapsed();
    assert!(took < SHORT + Duration::from_millis(200), "{took:?}");
    // Nothing is stuck: the next one is carried out, in its turn.
    let op = |act, limit| base::FenceOp { act, limit };
    bench.say(0, Say::Fence(0, op(shut_out(None), LONG)));
    bench.say(0, Say::Fence(0, op(FenceAct::Look, LONG)));
    bench.say(0, Say::Fence(0, op(FenceAct::Look, SHORT)));
    // The last one has less patience than those before it.
    assert!(matches!(bench.hear(), Say::Fenced(Err(FenceError::TimedOut))));
    drop(other);
    for _ in 0..2 {
        let Say::Fenced(result) = bench.hear() else { panic!("an answer to Fence") };
        assert_eq!(result, ALONE);
    }
}

#[test]
fn a_file_is_ours_as_long_as_an_operation_of_ours_is_under_way() {
    let dir = folder();
    let path = file(&dir, "d");
    for shared in [false, true] {
        let bench = Bench::new();
        bench.open_as(0, path.to_str().unwrap(), shared).unwrap();
        bench.shape(Shape { hang: true, ..Shape::default() });
        bench.say(0, Say::Run(0, vec![write(0, pattern(4096, 1))]));
        bench.say(0, Say::Close(0));
        assert_eq!(bench.fence_at(0, FenceAct::Look, LONG), Err(FenceError::Gone), "it is being let go of");
        std::thread::sleep(SHORT);
        assert!(alone(&path).contains("open error Open"), "shared: {shared}");
        bench.say(0, Say::Shape(0, Shape::default()));
        // The last operation ends, and then the drive is closed.
        let mut heard = [bench.hear(), bench.hear(), bench.hear()];
        heard.sort_by_key(|say| !matches!(say, Say::Closed));
        assert!(matches!(heard[0], Say::Closed));
        assert!(alone(&path).contains("open ok"), "shared: {shared}");
        bench.house.stop().unwrap();
    }
}
