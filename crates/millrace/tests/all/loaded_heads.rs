//! Two daemons on machines that are loaded: what is late is not dead (docs/two-heads.md).

use crate::daemon::{Daemon, Load, until};
use crate::mirrors::bench;
use crate::two_heads::{heads, system, without_errors};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Runnable threads a core.
const SIXFOLD: usize = 6;
/// How long each load lasts.
const LOADED: Duration = Duration::from_secs(8);
/// A period of a quota, as the kernel has it by default.
const PERIOD: Duration = Duration::from_millis(100);

/// Programs that do nothing but use processors, so many for each.
fn busy(each: usize) -> Vec<Load> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let one = |_| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Load(shell.spawn().expect("it runs"))
    };
    (0..cores * each).map(one).collect()
}

/// A process that runs for so many hundredths of each period, as if by a quota of its control group. It needs no control group, and all of its
/// threads stand still together, as those of one that has used up its quota do.
struct Quota {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Quota {
    fn of(daemon: &Daemon, percent: u32) -> Self {
        let id = daemon.child.as_ref().expect("it runs").id();
        let pid = Pid::from_raw(id.cast_signed()).expect("a process");
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let thread = std::thread::spawn(move || {
            let runs = PERIOD * percent / 100;
            while !told.load(Ordering::Relaxed) {
                std::thread::sleep(runs);
                // One that was killed for being late is gone.
                let _ = kill_process(pid, Signal::STOP);
                std::thread::sleep(PERIOD.saturating_sub(runs));
                let _ = kill_process(pid, Signal::CONT);
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn epoch(daemon: &Daemon) -> u64 {
    daemon.json("head ls")["epoch"].as_u64().expect("a number")
}

fn load(seconds: u64, portal: &str, target: &str) -> Child {
    let words = "--rw randrw --force --verify --prepare --read-back --qd 4 --patience 60";
    bench(portal, target, &format!("{words} --seconds {seconds}"))
}

#[test]
fn two_heads_beside_six_runnable_threads_a_core_stay_what_they_are() {
    let (mut a, b, _, (portal, target), _) = system();
    until("all is well", || a.status()["health"] == "optimal");
    let before = epoch(&a);
    let hosts = load(LOADED.as_secs() + 4, &portal, &target);
    let all = busy(SIXFOLD);
    std::thread::sleep(LOADED);
    drop(all);
    assert_eq!(heads(&a), ["a leads", "b follows"], "{:#?}", a.events());
    assert_eq!(epoch(&a), before, "nothing was decided: {:#?}", a.events());
    // What it has learned of the load does not keep it from seeing that a process has ended.
    let killed = Instant::now();
    a.signal("-KILL");
    until("b leads", || heads(&b) == ["a out, not ready", "b leads"]);
    let took = killed.elapsed();
    println!("b led {took:?} after a was killed");
    assert!(took < Duration::from_secs(2), "{took:?}");
    a.start(&[]);
    without_errors(hosts);
}

#[test]
fn a_head_with_a_third_of_a_processor_stays_in() {
    let (a, b, _, (portal, target), _) = system();
    until("all is well", || a.status()["health"] == "optimal");
    let before = epoch(&a);
    let hosts = load(2 * LOADED.as_secs(), &portal, &target);
    for head in [&a, &b] {
        let quota = Quota::of(head, 30);
        std::thread::sleep(LOADED);
        drop(quota);
        assert_eq!(heads(&a), ["a leads", "b follows"], "{:#?}", a.events());
        assert_eq!(epoch(&a), before, "nothing was decided: {:#?}", a.events());
    }
    without_errors(hosts);
}

/// With so little a head may be taken for dead, but not again and again; hosts see no error, and all is well afterwards by itself.
fn goes_out_once_at_most(leader: bool) {
    let (mut a, mut b, _, (portal, target), _) = system();
    until("all is well", || a.status()["health"] == "optimal");
    let before = epoch(&a);
    let hosts = load(LOADED.as_secs() + 4, &portal, &target);
    let quota = Quota::of(if leader { &a } else { &b }, 5);
    std::thread::sleep(LOADED);
    drop(quota);
    // On files the other head kills the process of one that it takes for dead, which then is started again.
    let starved = if leader { &mut a } else { &mut b };
    if starved.child.as_mut().expect("it ran").try_wait().expect("ours").is_some() {
        starved.start(&[]);
    }
    let leads = || [&a, &b].into_iter().find(|d| heads(d).iter().any(|h| h.ends_with("leads")));
    until("both are in, and all is well", || {
        let both = |d: &Daemon| heads(d).iter().all(|h| h.ends_with("leads") || h.ends_with("follows"));
        both(&a) && both(&b) && leads().is_some_and(|d| d.status()["health"] == "optimal")
    });
    // Out and in again are two decisions, and a few more may be about who votes.
    let leads = leads().expect("one of them");
    let decisions = epoch(leads) - before;
    assert!(decisions <= 4, "{decisions} decisions: {:#?}", leads.events());
    without_errors(hosts);
    assert_eq!(b.signal("-TERM").code(), Some(0));
}

#[test]
fn a_leader_with_a_twentieth_of_a_processor_goes_out_once_at_most() {
    goes_out_once_at_most(true);
}

#[test]
fn a_follower_with_a_twentieth_of_a_processor_goes_out_once_at_most() {
    goes_out_once_at_most(false);
}
