//! Promise 11: idle is idle. Alone in its process, as it measures CPU time.

#[path = "all/common.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod common;

use base::Address;
use common::{Note, PATIENCE, echo};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// CPU time of this process's threads called `name`, clock ticks of 10 ms.
fn cpu_ticks(name: &str) -> u64 {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let Ok(stat) = std::fs::read_to_string(task.unwrap().path().join("stat")) else { continue };
        let (front, back) = stat.rsplit_once(") ").unwrap();
        if front.ends_with(&format!("({name}")) {
            let fields: Vec<&str> = back.split(' ').collect();
            sum += fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        }
    }
    sum
}

#[test]
fn a_reactor_with_idle_connections_uses_no_cpu() {
    let (house, letters, at) = echo(false, 512);
    let _streams: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(at).unwrap()).collect();
    loop {
        assert!(house.post().send(Address::Shard(0), Note::Connections(0)));
        if letters.recv_timeout(PATIENCE).unwrap().1 == Note::Connections(200) {
            break;
        }
    }
    std::thread::sleep(Duration::from_millis(100));
    let counters = house.counters(Address::Shard(0)).unwrap();
    let (turns, ticks) = (counters.turns.load(Ordering::Relaxed), cpu_ticks("shard-0"));
    std::thread::sleep(Duration::from_secs(2));
    let turns = counters.turns.load(Ordering::Relaxed) - turns;
    assert!(turns <= 2, "{turns} turns in two seconds of silence");
    let ticks = cpu_ticks("shard-0").saturating_sub(ticks);
    assert!(ticks <= 2, "{ticks} ticks of 10 ms in two seconds");
    house.stop().unwrap();
}
