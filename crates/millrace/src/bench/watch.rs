//! While a benchmark runs: CPU time of the threads that matter, the live line, Ctrl-C.

use super::result::report::micros;
use crate::failure::Failure;
use crate::screen::columns;
use base::size::print_count;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often news and Ctrl-C are looked for.
pub const LOOK: Duration = Duration::from_millis(50);

static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

/// From now on Ctrl-C does not end the process: it is counted, and whoever measures ends in order.
pub fn listen() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let cannot = |e: std::io::Error| Failure::internal(format!("cannot listen to signals: {e}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    // Caught from here on, not from when the thread gets to run.
    let guard = runtime.enter();
    let mut signals = signal(SignalKind::interrupt()).map_err(cannot)?;
    drop(guard);
    let count = move || {
        runtime.block_on(async {
            while signals.recv().await.is_some() {
                INTERRUPTS.fetch_add(1, Ordering::SeqCst);
            }
        });
    };
    std::thread::Builder::new().name("signals".into()).spawn(count).map_err(cannot)?;
    Ok(())
}

/// How often Ctrl-C was pressed.
pub fn interrupts() -> u32 {
    INTERRUPTS.load(Ordering::SeqCst)
}

/// Whether the user wants an end.
pub fn interrupted() -> bool {
    interrupts() > 0
}

/// What the kernel counts of all cores by now, for `topology::cores_busy`; empty where it is not told.
pub fn cores() -> String {
    std::fs::read_to_string("/proc/stat").unwrap_or_default()
}

/// The CPU time of some threads of this process.
#[derive(Clone, Debug, Default)]
pub struct Cpu(Arc<Mutex<Vec<PathBuf>>>);

impl Cpu {
    /// The calling thread is one of them.
    pub fn register(&self) {
        if let Ok(me) = std::fs::read_link("/proc/thread-self") {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(PathBuf::from("/proc").join(me));
        }
    }
    /// Nanoseconds that they have run; None where the kernel does not count them so finely.
    pub fn ns(&self) -> Option<u64> {
        let threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let one = |thread: &PathBuf| {
            let text = std::fs::read_to_string(thread.join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        };
        if threads.is_empty() { None } else { threads.iter().map(one).sum() }
    }
}

/// CPU time and operations between the first and the last look at a measurement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    first: Option<Sample>,
    last: Option<Sample>,
    ops: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    target: Option<u64>,
    client: Option<u64>,
}

/// What a window saw.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Spent {
    /// Nanoseconds of the target's threads for each operation.
    pub target_ns: Option<f64>,
    /// Nanoseconds of the client's threads for each operation.
    pub client_ns: Option<f64>,
    /// Cores that the target's threads kept busy.
    pub target_busy: Option<f64>,
    /// Cores that the client's threads kept busy.
    pub client_busy: Option<f64>,
}

impl Window {
    /// Something was told of the run.
    pub fn see(&mut self, progress: &load::Progress, target: &Cpu, client: &Cpu) {
        if progress.phase != "measuring" {
            return;
        }
        let sample = Sample { at: Instant::now(), target: target.ns(), client: client.ns() };
        if self.first.is_none() {
            self.first = Some(sample);
        } else {
            self.ops += progress.ops;
            self.last = Some(sample);
        }
    }
    /// Between the first and the last look.
    pub fn spent(&self) -> Spent {
        let (Some(first), Some(last)) = (self.first, self.last) else { return Spent::default() };
        let time = last.at.duration_since(first.at).as_nanos() as f64;
        if self.ops == 0 || time == 0.0 {
            return Spent::default();
        }
        let used = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?) as f64);
        let (target, client) = (used(first.target, last.target), used(first.client, last.client));
        let ops = self.ops as f64;
        Spent {
            target_ns: target.map(|ns| ns / ops),
            client_ns: client.map(|ns| ns / ops),
            target_busy: target.map(|ns| ns / time),
            client_busy: client.map(|ns| ns / time),
        }
    }
}

/// The line at the bottom of the terminal that says how it goes. Nothing, if nobody looks.
#[derive(Debug)]
pub struct Live {
    shown: bool,
    width: usize,
    step: String,
}

impl Live {
    /// A line on stderr if that is a terminal.
    pub fn new() -> Self {
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let width = size.map_or(80, |(w, _)| usize::from(w.0));
        Self { shown: std::io::stderr().is_terminal(), width, step: String::new() }
    }
    /// What is measured from now on.
    pub fn step(&mut self, step: impl Into<String>) {
        self.step = step.into();
        self.say("");
    }
    /// How it goes.
    pub fn progress(&self, p: &load::Progress) {
        let done = p.done.map_or(String::new(), |d| format!("{:>3.0} %", d * 100.0));
        let p99 = micros(p.p99_us);
        let rate = print_count(p.iops as u64);
        self.say(&format!("{:<9} {done:>5}  {rate:>6} IOPS  {:>6.0} MB/s  p99 {p99}", p.phase, p.mb_per_s));
    }
    /// A sentence in its place.
    pub fn say(&self, text: &str) {
        if self.shown {
            let mut line = format!("{}  {text}", self.step);
            if columns(&line) >= self.width {
                line = line.chars().take(self.width.saturating_sub(1)).collect();
            }
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush();
        }
    }
    /// The line goes.
    pub fn clear(&self) {
        if self.shown {
            eprint!("\r\x1b[K");
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_only_what_lies_between_its_ends() {
        let busy = Cpu::default();
        busy.register();
        let see = |window: &mut Window, phase: &'static str, ops: u64| {
            window.see(&load::Progress { phase, ops, ..load::Progress::default() }, &busy, &Cpu::default());
        };
        let mut window = Window::default();
        see(&mut window, "ramp", 1_000_000);
        see(&mut window, "measuring", 1_000_000);
        assert_eq!(window.spent(), Spent::default());
        let mut x = 1u64;
        while window.spent().target_ns.is_none_or(|ns| ns == 0.0) {
            (0..100_000u64).for_each(|i| x = std::hint::black_box(x.wrapping_mul(31).wrapping_add(i)));
            see(&mut window, "measuring", 10);
        }
        let spent = window.spent();
        assert!(spent.target_busy.is_some_and(|b| b > 0.0 && b < 1.5), "{spent:?}");
        assert_eq!((spent.client_ns, spent.client_busy), (None, None), "nobody was registered");
    }
}
