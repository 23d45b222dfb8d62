//! How a world is built: the orders that make the system, and the hosts that begin to work.

use super::cut;
use super::options::{MIB, VOLUME_BYTES};
use super::{Alarm, Doing, Fault, LOOK, Loss, Run, Stage, Trouble};
use crate::access::{Access, SLACK, SLACK_OUT};
use crate::host::{Host, Ledger};
use crate::operator::{ISCSI, NVME, SECOND, iqn, lets_in, nqn};
use crate::slow_peer::{self, Habit, SlowPeer};
use crate::volume::Volume;
use crate::world::ActorId;
use base::view::Protocol;
use base::{Prng, Slice};
use head::order::{ArrayLayout, ArraySpec, HostSettings, Order, Status, VolumeCaps};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use volume::GRANULE_BYTES;

/// The hosts, and what they know together.
#[derive(Default)]
pub(super) struct Hosts {
    pub volume: Rc<RefCell<Volume>>,
    pub ledgers: Vec<Rc<RefCell<Ledger>>>,
    /// In the order of their ledgers.
    pub actors: Vec<ActorId>,
    /// The turns that they had had when their ledgers were last checked.
    pub turns_checked: u64,
    /// Slow peers are to go.
    pub over: Rc<Cell<bool>>,
}

impl Hosts {
    /// Every command of each has ended, and there are no more.
    pub fn are_finished(&self) -> bool {
        self.ledgers.iter().all(|l| l.borrow().finished)
    }
    /// They begin no more commands.
    pub fn stop(&self) {
        self.ledgers.iter().for_each(|l| l.borrow_mut().stop = true);
    }
    /// They begin no commands for a while, or go on.
    pub fn rest(&self, rest: bool) {
        self.ledgers.iter().for_each(|l| l.borrow_mut().rests = rest);
    }
    /// Commands that ended well.
    pub fn good(&self) -> u64 {
        self.ledgers.iter().map(|l| l.borrow().good).sum()
    }
}

impl Run {
    /// The orders that build the system, as an operator would give them.
    pub(super) fn setup(&self) -> VecDeque<Order> {
        let options = &self.options;
        let legs = options.legs;
        let mut arrays: Vec<_> = (0..options.mirrors)
            .map(|m| ArraySpec {
                layout: ArrayLayout::of(legs > 1),
                drives: (0..legs).map(|l| format!("d{}", m * legs + l)).collect(),
                weight: None,
            })
            .collect();
        let later = if options.grown { arrays.split_off(1) } else { vec![] };
        let mut orders = VecDeque::from([Order::PoolCreate {
            name: "tank".into(),
            arrays,
            chunk_bytes: None,
            block_bytes: Some(options.block_bytes),
            measure: false,
            force: false,
        }]);
        if !later.is_empty() {
            // The answer says how much there is to fill.
            orders.push_back(Order::Status);
            orders.push_back(Order::PoolAdd { pool: "tank".into(), arrays: later, force: false });
        }
        if options.former {
            // It takes nearly all that there is, so that the hosts' volume has to wait for its space.
            orders.push_back(Order::Status);
            orders.push_back(Order::VolumeRemove {
                volume: "tank/filler".into(),
                force: true,
                disconnect: true,
            });
        }
        orders.push_back(Order::VolumeCreate {
            pool: "tank".into(),
            name: "v".into(),
            bytes: VOLUME_BYTES,
            block_bytes: Some(options.block_bytes),
        });
        if options.iops_max.is_some() {
            let caps = VolumeCaps { iops_max: options.iops_max, ..VolumeCaps::default() };
            orders.push_back(Order::VolumeCaps { volume: "tank/v".into(), caps });
        }
        orders.extend(lets_in(options.hosts.len()));
        for i in 0..options.slow_peers.len() {
            let host = options.hosts.len() + i;
            let settings = HostSettings {
                nqns: Some(vec![nqn(host)]),
                iqns: Some(vec![iqn(host)]),
                ..HostSettings::default()
            };
            if i == 0 {
                orders.push_back(Order::VolumeCreate {
                    pool: "tank".into(),
                    name: "w".into(),
                    bytes: MIB,
                    block_bytes: Some(4096),
                });
            }
            orders.push_back(Order::HostAdd { name: format!("h{host}"), settings });
            orders.push_back(Order::Export {
                volume: "tank/w".into(),
                host: format!("h{host}"),
                lun: Some(0),
            });
        }
        let wiped = options.script.iter().any(|act| matches!(act.fault, Fault::Wipe { .. }));
        // What rotted or was wiped differs indeed, and stays `degraded` until somebody has it repaired.
        if !self.two() && !wiped && !options.troubles.contains(&Trouble::Rot) {
            orders.extend(crate::operator::orders(options.seed));
        }
        orders.push_back(Order::Status);
        let made_at_work = options.cut.is_some_and(|c| c.doing == Doing::Create);
        if self.two() && !made_at_work {
            orders.push_back(Order::SystemCreate { settings: Box::new(self.settings(0)) });
        }
        orders
    }

    /// Hosts log in to every portal there is, and whatever is to happen to them begins.
    pub(super) fn begin_work(&mut self) {
        let snapshot = self.last_look.clone().expect("it was looked at");
        for (i, protocol) in self.options.hosts.clone().into_iter().enumerate() {
            self.begin_host(i, protocol, &snapshot);
        }
        for i in 0..self.options.slow_peers.len() {
            self.begin_slow_peer(i, &snapshot);
        }
        if self.options.cut.is_some() {
            self.stage = Stage::Cutting;
            return self.later(cut::BEFORE, Alarm::Cut);
        }
        self.stage = Stage::Working;
        if self.two() {
            self.later(self.options.work, Alarm::Calm);
        }
        for act in self.options.script.clone() {
            self.later(act.after, Alarm::Fault(act.fault));
        }
        if !self.two() {
            self.later(LOOK, Alarm::Look);
        }
        if self.options.access > 0 {
            let hosts = self.options.hosts.clone();
            let ledgers = self.hosts.ledgers.clone();
            let slack = if self.two() && self.options.ails() { SLACK_OUT } else { SLACK };
            let access = Access::new(self.options.seed, hosts, ledgers, slack, self.options.access);
            self.orders.access = Some(access);
        }
        self.begin_loss();
        if let Some(outage) = self.options.outage {
            self.later(outage.begins, Alarm::Outage);
        }
        self.begin_troubles();
        self.next_move();
        self.next_deal();
    }
    fn begin_host(&mut self, i: usize, protocol: Protocol, snapshot: &Status) {
        let config = self.first_path(i, protocol, snapshot);
        let mut habits = self.options.habits.clone();
        habits.commands = self.options.commands;
        habits.block_bytes = self.options.block_bytes;
        habits.zeroes_fua = protocol == Protocol::Nvme;
        if self.options.looker && i + 1 == self.options.hosts.len() {
            habits.depth = 1;
            habits.short_permille = 1000;
            habits.write_permille = 0;
        }
        // Of two heads, this one stays where it is, whatever the others do.
        let stays = self.two() && self.options.used && i == 0;
        if stays {
            habits.reset_ppm = 0;
        }
        let failover = self.options.failover && protocol == Protocol::Nvme;
        let other = ((failover || self.options.in_turns) && !stays).then(|| second_path(&config));
        let at = (100 + i as u64) << 32;
        let rings = other.as_ref().map_or(0, load::Config::memory_bytes);
        let bytes = MIB + Host::memory_bytes(&config, &habits) + rings;
        let seed = self.rng.next_u64();
        let mut host = Host::new(config, habits, (at, bytes), MIB, self.hosts.volume.clone(), seed);
        if let Some(other) = other {
            host = if failover { host.with_failover(other) } else { host.with_second_path(other) };
        }
        host.ledger.borrow_mut().log = self.world.log.then(Vec::new);
        self.hosts.ledgers.push(host.ledger.clone());
        let id = self.world.put_host(Box::new(host), Slice::new(at, MIB as u32));
        self.hosts.actors.push(id);
        self.world.nudge(id);
    }
    /// The way of a host to the head that it goes to first. With one head it negotiates this and that.
    fn first_path(&mut self, i: usize, protocol: Protocol, snapshot: &Status) -> load::Config {
        let two = self.two();
        let seed = self.options.seed;
        let (peer, target) = match protocol {
            Protocol::Nvme | Protocol::Discovery => {
                let mut c = nvme::host::Config::new(&nqn(i), [i as u8 + 1; 16], &snapshot.system.nqn);
                if !two {
                    c.queues = self.rng.between(1, 3) as u16;
                    c.header_digest = self.rng.chance(1, 4);
                    c.data_digest = self.rng.chance(1, 4);
                    c.flow_control = self.rng.chance(3, 4);
                }
                (NVME, load::Target::Nvme(c))
            }
            Protocol::Iscsi => {
                let mut c = iscsi::initiator::Config::new(&iqn(i), Some(&snapshot.system.iqn));
                if !two {
                    c.header_digest = self.rng.chance(1, 4);
                    c.data_digest = self.rng.chance(1, 4);
                    c.immediate_data = self.rng.chance(1, 2);
                    c.initial_r2t = self.rng.chance(1, 2);
                }
                if self.options.tight {
                    // Most writes come in part unasked, and in part on request.
                    c.immediate_data = true;
                    c.first_burst = 512 * Prng::new(seed + i as u64).between(1, 64) as u32;
                }
                if self.options.scarce {
                    // Up to the most that the head offers.
                    c.first_burst = 512 << Prng::new(seed + i as u64).between(0, 9);
                    c.max_burst = c.first_burst.max(1 << 16);
                }
                (ISCSI, load::Target::Iscsi(c))
            }
        };
        let second = SECOND.iter().find(|(p, _)| *p == protocol).filter(|_| self.options.both && i % 2 == 1);
        let peer = second.map_or(peer, |(_, address)| address);
        load::Config { peer: peer.parse().expect("an address"), target }
    }
    /// One of the hosts that keep buffers.
    fn begin_slow_peer(&mut self, i: usize, snapshot: &Status) {
        let (protocol, habit) = self.options.slow_peers[i];
        let host = if self.options.kin { 0 } else { self.options.hosts.len() + i };
        let (peer, target) = match protocol {
            Protocol::Nvme | Protocol::Discovery => {
                let mut c = nvme::host::Config::new(&nqn(host), [host as u8 + 1; 16], &snapshot.system.nqn);
                c.depth = slow_peer::DEPTH;
                c.queues = 2;
                // Answers that are made up do not say how far the queue is read.
                c.flow_control = habit != Habit::Presumes;
                (NVME, load::Target::Nvme(c))
            }
            Protocol::Iscsi => {
                let mut c = iscsi::initiator::Config::new(&iqn(host), Some(&snapshot.system.iqn));
                c.depth = slow_peer::DEPTH;
                c.immediate_data = i.is_multiple_of(2);
                c.initial_r2t = false;
                c.isid[5] = i as u8 + 2;
                (ISCSI, load::Target::Iscsi(c))
            }
        };
        let config = load::Config { peer: peer.parse().expect("an address"), target };
        let at = (200 + i as u64) << 32;
        let bytes = MIB + SlowPeer::memory_bytes(&config);
        let mut host = SlowPeer::new(config, habit, (at, bytes), MIB, self.hosts.over.clone());
        if self.options.kin {
            // On the volume of the one that works, of which it writes the blocks before: what came of a write that was cut
            // off may be there.
            host.at = self.options.habits.blocks;
        }
        let id = self.world.put_host(Box::new(host), Slice::new(at, MIB as u32));
        self.world.nudge(id);
    }
    /// A server loses its paths to drives, one after the other or at once, and has them all back later.
    fn begin_loss(&mut self) {
        let Some(Loss { server, disks, apart, back }) = self.options.loses.clone() else { return };
        for (n, disk) in (0..).zip(disks) {
            let goes = Fault::Path { server, disk, lost: true };
            if n == 0 || apart.is_zero() {
                self.happens(goes);
            } else {
                self.later(apart * n, Alarm::Fault(goes));
            }
            self.later(back, Alarm::Fault(Fault::Path { server, disk, lost: false }));
        }
    }

    /// The volume that goes had data all over its space.
    pub(super) fn soil(&mut self) {
        for disk in 0..self.options.mirrors * self.options.legs {
            if let Some((at, len)) = self.data_space(disk) {
                self.world.disks[disk].soil(at, len, 0);
            }
        }
    }
    /// A volume that leaves no space, or half of what hosts need: their own comes to lie on what is added, or half of it.
    pub(super) fn filler(&self, snapshot: &Status) -> Order {
        let half = self.options.former || !self.options.seed.is_multiple_of(2);
        let left = if half { VOLUME_BYTES / 2 } else { 0 };
        let free: u64 = snapshot.pools.iter().map(|p| p.bytes - p.used_bytes).sum();
        let bytes = (free - left) / GRANULE_BYTES * GRANULE_BYTES;
        Order::VolumeCreate { pool: "tank".into(), name: "filler".into(), bytes, block_bytes: None }
    }
}

/// The way of such a host to the other head: the same name, and a session of its own beside the first one.
fn second_path(first: &load::Config) -> load::Config {
    let mut config = first.clone();
    let protocol = match &mut config.target {
        load::Target::Nvme(_) => Protocol::Nvme,
        load::Target::Iscsi(c) => {
            c.isid[5] += 1;
            Protocol::Iscsi
        }
    };
    let ours = if protocol == Protocol::Nvme { NVME } else { ISCSI };
    let theirs = SECOND.iter().find(|(p, _)| *p == protocol).expect("of both protocols").1;
    let [ours, theirs] = [ours, theirs].map(|a| a.parse().expect("an address"));
    config.peer = if first.peer == ours { theirs } else { ours };
    config
}
