//! Hosts on both protocols, shards, mirrors and simulated drives, under the toy Steward.
use base::memory::PlainMemory;
use base::view::Protocol;
use base::{Address, Duration, Slice};
use head::mail::Mail;
use head::{Deadlines, Shard, ShardConfig};
use sim::disk::Disk;
use sim::host::{Habits, Host};
use sim::toy::{Toy, host};
use sim::volume::Volume;
use sim::world::{Kindness, Step, World};
use std::cell::RefCell;
use std::rc::Rc;

const MIB: u64 = 1 << 20;

fn run(seed: u64, protocols: &[Protocol], tell: bool) -> u64 {
    let mut world = World::new(seed, Kindness::default());
    world.tell = tell;
    let shards = 2u16;
    let extents: Vec<(u64, u64)> = (0..shards).map(|s| ((1 + u64::from(s)) << 32, 32 * MIB)).collect();
    for s in 0..shards {
        let (at, bytes) = extents[usize::from(s)];
        let staging = at + bytes;
        let shard = Shard::new(ShardConfig {
            id: s,
            shards,
            memory: PlainMemory::new(at, bytes as usize),
            staging: PlainMemory::new(staging, MIB as usize),
            seed,
            deadlines: Deadlines::default(),
            extents: extents.clone(),
        });
        world.put_head(Address::Shard(s), Box::new(shard), Slice::new(staging, MIB as u32));
    }
    let disks: Vec<String> = (0..4).map(|i| format!("d{i}")).collect();
    for d in &disks {
        world.disks.push(Disk::new(d.clone(), 64 * MIB, true));
    }
    let known = (0..2).map(host).collect();
    let toy = Toy::new(shards, disks, 2, known);
    let id = world.put_head(Address::Steward, Box::new(toy), Slice::new(1 << 50, 1 << 16));
    world.nudge(id);
    let volume = Rc::new(RefCell::new(Volume::default()));
    let mut ledgers = vec![];
    loop {
        match world.step() {
            Step::ToManager(Mail::Ready { .. }) => {
                for (i, protocol) in protocols.iter().enumerate() {
                    let h = host(i as u32);
                    let (peer, target) = match protocol {
                        Protocol::Nvme => {
                            let mut c = nvme::host::Config::new(
                                &h.nqns[0],
                                [i as u8 + 1; 16],
                                "nqn.2026-01.test:sys",
                            );
                            c.queues = 2;
                            c.keep_alive = Duration::from_secs(5);
                            ("10.0.0.254:4420", load::Target::Nvme(c))
                        }
                        _ => {
                            let c = iscsi::initiator::Config::new(&h.iqns[0], Some("iqn.2026-01.test:sys"));
                            ("10.0.0.254:3260", load::Target::Iscsi(c))
                        }
                    };
                    let config = load::Config { peer: peer.parse().expect("address"), target };
                    let habits = Habits {
                        commands: 1000,
                        depth: 16,
                        blocks: 200,
                        write_permille: 450,
                        flush_permille: 30,
                        zero_permille: 30,
                        abort_permille: 5,
                        fua_permille: 50,
                        blocks_max: 20,
                        reset_ppm: 500,
                    };
                    let at = (100 + i as u64) << 32;
                    let bytes = MIB + Host::memory_bytes(&config, habits.depth);
                    let h = Host::new(config, habits, (at, bytes), MIB, volume.clone(), seed + i as u64);
                    ledgers.push(h.ledger.clone());
                    let id = world.put_host(Box::new(h), Slice::new(at, MIB as u32));
                    world.nudge(id);
                }
            }
            Step::Quiet => panic!("nothing happens any more"),
            _ => {}
        }
        if !ledgers.is_empty() && ledgers.iter().all(|l| l.borrow().finished) {
            break;
        }
        if world.now().0 > 60_000_000_000 {
            for line in &world.story {
                println!("{line}");
            }
            for l in &ledgers {
                let l = l.borrow();
                println!("good {} failed {} lost {} sessions {}", l.good, l.failed, l.lost, l.sessions);
            }
            panic!("seed {seed}: not finished after a virtual minute");
        }
        if let Some(b) = ledgers.iter().find_map(|l| l.borrow().broken.first().cloned()) {
            for line in &world.story {
                println!("{line}");
            }
            panic!("seed {seed}: {b:?}");
        }
    }
    for l in &ledgers {
        let l = l.borrow();
        assert!(l.good > 500, "good {} failed {} lost {} sessions {}", l.good, l.failed, l.lost, l.sessions);
    }
    world.hash()
}

#[test]
fn nvme_hosts_read_what_they_wrote() {
    for seed in 0..20 {
        let a = run(seed, &[Protocol::Nvme, Protocol::Nvme], false);
        if seed < 2 {
            assert_eq!(a, run(seed, &[Protocol::Nvme, Protocol::Nvme], false), "the same seed, the same run");
        }
    }
}
