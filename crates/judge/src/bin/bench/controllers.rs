//! A thousand idle controllers.

use crate::Line;
use judge::measure::Shown;
use judge::{Head, load};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CONTROLLERS: u64 = 1000;
const QUEUES: u64 = 10;
/// Longer than the keep-alive of 15 s.
const TIME: Duration = Duration::from_secs(17);

/// What 1,000 connected controllers with 10 queues each and a keep-alive of 15 s cost.
pub fn idle() -> Vec<Line> {
    let mut head = Head::prepare("bench-controllers");
    // As many connections as that takes, and no more memory than is wanted.
    let config = head.dir.join("head.toml");
    let text = std::fs::read_to_string(&config).expect("head.toml").replace("256M", "512M");
    std::fs::write(&config, text).expect("head.toml");
    head.has_one_shard();
    head.start();
    head.cli("portal add nvme 127.0.0.1:4420");
    head.cli("pool create tank null:1T");
    head.cli("volume create tank/v --size 1G --block 4096");
    load::allow(&["v"]).iter().for_each(|command| drop(head.cli(command)));
    let peer = std::env::current_exe().expect("our own path").with_file_name("peer");
    let mut command = head.net.command("prlimit");
    command.args(["--nofile=40000:40000", "--"]).arg(peer);
    command.args(["controllers", "127.0.0.1:4420", &head.nqn(), load::NQN]);
    command.args([CONTROLLERS.to_string(), QUEUES.to_string()]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the peer starts");
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let mut came = String::new();
    said.read_line(&mut came).expect("what it says");
    let all = format!("controllers {CONTROLLERS} queues {}", CONTROLLERS * QUEUES);
    let (before, begin) = (head.ticks(), Instant::now());
    std::thread::sleep(TIME);
    let share = (head.ticks() - before) as f64 / 100.0 / begin.elapsed().as_secs_f64();
    let memory = head.memory_mib();
    drop(child.stdin.take());
    let mut stayed = String::new();
    said.read_to_string(&mut stayed).expect("what it says");
    child.wait().expect("the peer ends");
    let whole = came.trim() == all && stayed.contains(&format!("controllers open {CONTROLLERS}"));
    if !whole {
        println!("the controllers: {} {}", came.trim(), stayed.trim());
    }
    let name = "1,000 controllers, 10,000 queues, idle";
    vec![
        Line::most(format!("{name}: cores"), share, 0.01, whole, Shown::Share),
        Line::most(format!("{name}: MiB"), memory as f64, 1024.0, whole, Shown::Number),
    ]
}

/// Whether this machine lets a process have so many files.
pub fn is_possible() -> bool {
    let mut try_it = Command::new("prlimit");
    try_it.args(["--nofile=40000:40000", "--", "true"]).stderr(Stdio::null());
    try_it.status().is_ok_and(|status| status.success())
}
