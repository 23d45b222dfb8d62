//! A host that knows for each block what must be there after a power cut: QEMU's block layer, driven line by line.

use super::log::mix;
use lab::Net;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Blocks of a writer's region.
const BLOCKS: u64 = 1024;
const BLOCK: u64 = 4096;
/// Writes between two flushes of a writer without FUA.
const BATCH: u64 = 64;
/// Pause before each write with FUA: what it waits for makes durable what others wrote, too.
const FUA_EVERY: Duration = Duration::from_millis(150);

/// What a writer knows. Blocks that it never wrote are not in it.
#[derive(Clone, Default)]
pub struct Known {
    /// First byte of its region.
    at: u64,
    /// For each block the pattern that is durable (0 for what lay there before), and those that were written since.
    blocks: BTreeMap<u64, (u8, Vec<u8>)>,
}

impl Known {
    /// Panics unless each block of the volume holds what is durable there, or something newer. Returns the blocks looked at.
    pub fn check(&self, volume: &[u8], block: usize) -> u64 {
        for (number, (durable, newer)) in &self.blocks {
            let at = (self.at + number * BLOCK) as usize;
            let bytes = &volume[at..at + block];
            let one = bytes.iter().all(|byte| *byte == bytes[0]);
            assert!(
                one && (bytes[0] == *durable || newer.contains(&bytes[0])),
                "byte {at} holds {:?}…, where {durable} was durable and {newer:?} were written since",
                &bytes[..8]
            );
        }
        self.blocks.len() as u64
    }

    fn written(&mut self, block: u64, pattern: u8) {
        self.blocks.entry(block).or_default().1.push(pattern);
    }

    /// The last one is durable: it was acknowledged before a Flush was asked for, or with FUA.
    fn durable(&mut self, block: u64) {
        let entry = self.blocks.get_mut(&block).expect("it was written");
        *entry = (*entry.1.last().expect("it was written"), Vec::new());
    }
}

/// The writer: a session of its own.
pub struct Writer {
    known: Arc<Mutex<Known>>,
    child: Child,
}

impl Writer {
    /// Starts to write at `at` of an image, with FUA or with a Flush now and then.
    pub fn start(net: &Net, image: &str, at: u64, fua: bool) -> Writer {
        let mut command = net.command("qemu-io");
        command.args(["-t", "none", image]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("qemu-io");
        let (to, from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let known = Arc::new(Mutex::new(Known { at, ..Known::default() }));
        let shared = Arc::clone(&known);
        std::thread::spawn(move || {
            let mut shell = Shell { to, from: BufReader::new(from) };
            (0..).try_for_each(|n| {
                if fua { durable(&mut shell, &shared, n) } else { batch(&mut shell, &shared, n) }
            })
        });
        Writer { known, child }
    }

    /// Panics if it has ended: nothing that was done to the drives may cost a host its session.
    pub fn must_run(&mut self) {
        let ended = self.child.try_wait().expect("wait");
        assert!(ended.is_none(), "a writer ended: {ended:?}");
        assert!(!self.known().blocks.is_empty(), "a writer wrote nothing");
    }

    /// What it knows now.
    pub fn known(&self) -> Known {
        self.known.lock().expect("no panic while it is held").clone()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// One write with FUA; None when the session is over.
fn durable(shell: &mut Shell, known: &Mutex<Known>, n: u64) -> Option<()> {
    std::thread::sleep(FUA_EVERY);
    let block = shell.write(known, n, "-f ")?;
    known.lock().ok()?.durable(block);
    Some(())
}

/// Some writes and a Flush.
fn batch(shell: &mut Shell, known: &Mutex<Known>, n: u64) -> Option<()> {
    let mut blocks = Vec::new();
    for i in 0..BATCH {
        blocks.push(shell.write(known, n * BATCH + i, "")?);
    }
    // A Flush says nothing; what comes after it does.
    shell.ask("flush\nlength", "MiB")?;
    blocks.sort_unstable();
    blocks.dedup();
    let mut known = known.lock().ok()?;
    blocks.into_iter().for_each(|block| known.durable(block));
    Some(())
}

struct Shell {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Shell {
    /// The n-th write, somewhere; returns the block.
    fn write(&mut self, known: &Mutex<Known>, n: u64, how: &str) -> Option<u64> {
        let (block, pattern) = (mix(n) % BLOCKS, (n % 255) as u8 + 1);
        let at = {
            let mut known = known.lock().ok()?;
            known.written(block, pattern);
            known.at + block * BLOCK
        };
        self.ask(&format!("write {how}-P {pattern} {at} {BLOCK}"), "wrote 4096/4096")?;
        Some(block)
    }

    /// Sends a line and waits for one with this word. None if the session is over or the answer is another one.
    fn ask(&mut self, line: &str, word: &str) -> Option<()> {
        writeln!(self.to, "{line}").ok()?;
        let mut answer = String::new();
        while !answer.contains(word) {
            answer.clear();
            if self.from.read_line(&mut answer).ok()? == 0 || answer.contains("failed") {
                return None;
            }
        }
        Some(())
    }
}
