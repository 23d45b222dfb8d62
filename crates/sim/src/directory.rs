//! A head alone, whose state directory refuses writes while its operator gives orders, and whose files are damaged between its lives.
//!
//! ```text
//! a directory, perhaps of a former version ─▶ start ─▶ who is let in? ─▶ orders, some of whose writes fail ─▶ it falls
//!                                               ▲                                                            │
//!                                               └──────────── a file is cut, emptied, changed or gone ◀──────┘
//! ```
//!
//! Whom a head lets in, and where it listens, is what its operator was told, and nothing that a damaged file seems to say.

use crate::memory::SimMemory;
use crate::world::{Crash, Delivery, Refusal, Step, World};
use base::view::{Portal, Protocol, Secret};
use base::{Address, HostId, Prng, Slice};
use head::mail::{ManagerMail, StewardMail};
use head::order::{Answered, HostSettings, Order, Reply, State, Status};
use head::steward::{Steward, StewardConfig};
use head::{Deadlines, Shard, ShardConfig};
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;
/// Lives of a head in a world.
const LIVES: u64 = 12;
/// Most events between two things that are waited for.
const STEPS_MAX: u64 = 1_000_000;
/// Files that say who is let in, and where.
const FILES: [&str; 2] = ["hosts", "portals"];

/// Whom a head lets in, and where it listens.
#[derive(Clone, PartialEq, Debug, Default)]
struct Said {
    hosts: Vec<access::Host>,
    portals: Vec<Portal>,
}

/// What an order is about.
#[derive(Clone, PartialEq, Debug)]
enum Subject {
    Host(String),
    Portal(core::net::SocketAddr),
}

impl Subject {
    /// The file that says so.
    fn file(&self) -> &'static str {
        match self {
            Subject::Host(_) => FILES[0],
            Subject::Portal(_) => FILES[1],
        }
    }
}

impl Said {
    /// But for what orders are about that may have been carried out or not.
    fn without(&self, subjects: &[Subject]) -> Self {
        let mut said = self.clone();
        for subject in subjects {
            match subject {
                Subject::Host(name) => said.hosts.retain(|h| h.name != *name),
                Subject::Portal(address) => said.portals.retain(|p| p.address != *address),
            }
        }
        said
    }
}

struct Run {
    world: World,
    seed: u64,
    rng: Prng,
    lives: u64,
    asked: u64,
    /// What the operator was told.
    told: Said,
    /// What may have been carried out, or not.
    open: Vec<Subject>,
}

/// Runs one world; the hash of all that happened.
///
/// # Errors
/// What went wrong.
pub fn run(seed: u64) -> Result<u64, String> {
    let mut rng = Prng::new(seed ^ 0x6469_7265_6374);
    let delivery = Delivery { state_us: rng.below(2) * rng.between(1, 20_000), ..Delivery::default() };
    let world = World::new(seed, delivery);
    let mut run = Run { world, seed, rng, lives: 0, asked: 0, told: Said::default(), open: vec![] };
    let mut damaged = run.former();
    for _ in 0..LIVES {
        run.boot()?;
        if let Some(file) = damaged.take() {
            // Nobody has a copy of what was cut off in the middle of its conversion.
            run.starts_damaged(&file)?;
            return Ok(run.world.hash());
        }
        run.starts()?;
        run.orders()?;
        let good: BTreeMap<String, Vec<u8>> = run.world.servers[0].state.clone();
        if let Some(file) = run.damage() {
            run.with_damage(file, &good)?;
        }
    }
    Ok(run.world.hash())
}

impl Run {
    /// A third of all directories is one of a former version, whose conversion is cut off, and whose hosts are perhaps cut then.
    fn former(&mut self) -> Option<String> {
        if !self.rng.chance(1, 3) {
            return None;
        }
        let old = [
            (
                "identity",
                "uuid = 36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2\nnqn = nqn.2014-08.org.nvmexpress:uuid:36ebf5a9-1df9-47b3-a6d0-e9ba32e428a2\niqn = iqn.2026-01.org.millrace:a\nserial = 0123456789\n",
            ),
            ("hosts", "# Who\n[host old]\niqn = iqn.1998-01.com.example:old\nchap_secret = twelve-bytes!\n"),
            ("portals", "portal = iscsi 10.0.0.9:3260 1\nlast = 1\n"),
        ];
        let state = &mut self.world.servers[0].state;
        state.extend(old.map(|(name, text)| (name.to_string(), text.as_bytes().to_vec())));
        let steps = files::plan(state).expect("there is no mark yet");
        let done = self.rng.below(steps.len() as u64 + 1) as usize;
        steps.into_iter().take(done).for_each(|step| drop(state.insert(step.name, step.contents)));
        let host = access::Host {
            id: HostId::default(),
            name: "old".into(),
            nqns: vec![],
            iqns: vec!["iqn.1998-01.com.example:old".into()],
            chap_secret: Some(Secret(b"twelve-bytes!".to_vec())),
            chap_user: String::new(),
            mutual_secret: None,
        };
        let address = "10.0.0.9:3260".parse().expect("an address");
        let portal =
            Portal { id: base::PortalId(0), protocol: Protocol::Iscsi, address, head: 0, moves: None };
        self.told = Said { hosts: vec![host], portals: vec![portal] };
        // From the first step on, an old file counts only as it was.
        if done == 0 || self.rng.chance(1, 2) {
            return None;
        }
        let bytes = state.get_mut("hosts").expect("there");
        let cut = self.rng.below(bytes.len() as u64) as usize;
        bytes.truncate(cut);
        Some("hosts".into())
    }
    fn boot(&mut self) -> Result<(), String> {
        self.lives += 1;
        self.world.convert_state(0);
        let seed = self.seed.wrapping_mul(1000) + self.lives;
        let (at, bytes) = (1 << 32, 32 * MIB);
        let shard = Shard::new(ShardConfig {
            connections_max: 8,
            credits: head::CREDITS,
            turn_pdus: head::TURN_PDUS,
            flights: head::FLIGHTS,
            id: 0,
            shards: 1,
            memory: SimMemory::new(at, bytes),
            staging: SimMemory::new(at + bytes, MIB),
            seed,
            deadlines: Deadlines::default(),
            extents: vec![(at, bytes)],
        });
        self.world.put_head(0, Address::Shard(0), Box::new(shard), Slice::new(at + bytes, MIB as u32));
        let steward = Steward::new(StewardConfig {
            system: None,
            memory: SimMemory::new(1 << 48, 8 * MIB),
            shards: 1,
            entropy: [seed, 1, 2, 3],
            version: "sim".into(),
            hold: None,
            notices: vec![],
            state_directory: "/s".into(),
            shapes: BTreeMap::new(),
        });
        let id = self.world.put_head(0, Address::Steward, Box::new(steward), Slice::new(1 << 50, 1 << 16));
        self.world.nudge(id);
        for _ in 0..STEPS_MAX {
            match self.world.step() {
                Step::ToManager { mail: ManagerMail::Ready { .. }, .. } => return Ok(()),
                Step::Quiet => break,
                _ => {}
            }
        }
        Err("the head does not come up".into())
    }
    fn found(&self) -> Said {
        let state = self.world.decided(0).expect("it runs");
        let hosts =
            state.hosts().iter().map(|h| access::Host { id: HostId::default(), ..h.clone() }).collect();
        Said { hosts, portals: state.portals().to_vec() }
    }
    /// Gives an order; None: the head fell before it answered.
    fn order(&mut self, order: Order) -> Result<Option<Answered>, String> {
        self.asked += 1;
        self.world.manage(0, Address::Steward, StewardMail::Order { id: self.asked, order });
        for _ in 0..STEPS_MAX {
            match self.world.step() {
                Step::ToManager { mail: ManagerMail::Answered { id, answer }, .. } if id == self.asked => {
                    return Ok(Some(answer));
                }
                Step::Fell { .. } => return Ok(None),
                Step::Quiet => break,
                _ => {}
            }
        }
        Err("orders: no answer".into())
    }
    fn status(&mut self) -> Result<Box<Status>, String> {
        match self.order(Order::Status)? {
            Some(Ok(Reply::Snapshot(status))) => Ok(status),
            other => Err(format!("no status: {other:?}")),
        }
    }
    /// A start with files that are whole.
    fn starts(&mut self) -> Result<(), String> {
        let (found, open) = (self.found(), core::mem::take(&mut self.open));
        if found.without(&open) != self.told.without(&open) {
            return Err(format!(
                "directory: after a start it lets in {found:?}, and its operator was told {:?}, but for {open:?}",
                self.told
            ));
        }
        self.told = found;
        Ok(())
    }
    /// A start with a file that is damaged: nobody is let in by it, `status` names it, and it stays.
    fn starts_damaged(&mut self, file: &str) -> Result<(), String> {
        let found = self.found();
        let by_it = if file == "hosts" { !found.hosts.is_empty() } else { !found.portals.is_empty() };
        if by_it {
            return Err(format!("directory: {file} is damaged, and it lets in {found:?}"));
        }
        let status = self.status()?;
        let named = status.reasons.iter().any(|r| format!("{:?}", r.cause).contains(&format!("/s/{file}")));
        if status.health == State::Optimal || !named {
            return Err(format!(
                "directory: {file} is damaged, and status does not say so: {:?}",
                status.reasons
            ));
        }
        let Some(before) = self.world.servers[0].state.get(file).cloned() else { return Ok(()) };
        let order = if file == "hosts" { self.host_add() } else { self.portal_add() };
        match self.order(order.0)? {
            Some(Err(_)) => {}
            other => {
                return Err(format!(
                    "directory: {file} is damaged, and an order about it ends so: {other:?}"
                ));
            }
        }
        if self.world.servers[0].state.get(file) != Some(&before) {
            return Err(format!("directory: {file} is damaged, and was written over"));
        }
        Ok(())
    }
    /// Orders, some of whose writes fail, until the head falls.
    fn orders(&mut self) -> Result<(), String> {
        for left in (0..self.rng.between(1, 6)).rev() {
            let crash = if self.rng.chance(1, 2) { Crash::Killed } else { Crash::PowerCut };
            let faults = self.rng.below(2) * self.rng.between(1, 2);
            for _ in 0..faults {
                let fault = *self.rng.pick(&[Refusal::Refused, Refusal::Unsettled, Refusal::Landed]);
                self.world.servers[0].refuses.push_back(fault);
            }
            if left == 0 && self.rng.chance(1, 2) {
                self.world.doom(0, None, self.rng.below(12) as u32, crash);
            }
            let (order, subject) = self.any_order();
            let answer = self.order(order.clone())?;
            self.world.servers[0].refuses.clear();
            let Some(answer) = answer else {
                self.open.push(subject);
                return Ok(());
            };
            self.world.spare();
            self.answered(&order, subject, &answer)?;
            if left == 0 {
                self.world.fall(0, crash);
            }
        }
        Ok(())
    }
    /// What an answer says is so in memory.
    fn answered(&mut self, order: &Order, subject: Subject, answer: &Answered) -> Result<(), String> {
        let found = self.found();
        if answer.is_err() {
            if found != self.told {
                return Err(format!(
                    "directory: {order:?} is refused ({answer:?}), and yet it lets in {found:?}"
                ));
            }
            self.open.push(subject);
            return self.settles();
        }
        let there = match &subject {
            Subject::Host(name) => found.hosts.iter().any(|h| h.name == *name),
            Subject::Portal(address) => found.portals.iter().any(|p| p.address == *address),
        };
        let removes = matches!(order, Order::HostRemove { .. } | Order::PortalRemove { .. });
        if there == removes
            || found.without(core::slice::from_ref(&subject))
                != self.told.without(core::slice::from_ref(&subject))
        {
            return Err(format!("directory: {order:?} is carried out, and it lets in {found:?}"));
        }
        self.told = found;
        self.settles()
    }
    /// A file of which `status` does not say otherwise says what stands in memory.
    fn settles(&mut self) -> Result<(), String> {
        let causes: Vec<String> = self.status()?.reasons.iter().map(|r| format!("{:?}", r.cause)).collect();
        let unsettled = |file: &str| {
            let cause = format!("FileUnsettled {{ file: {file:?}");
            causes.iter().any(|c| c.contains(&cause))
        };
        self.open.retain(|subject| unsettled(subject.file()));
        Ok(())
    }
    fn host_add(&mut self) -> (Order, Subject) {
        let n = self.rng.below(100_000);
        let name = format!("h{n}");
        let secret = self.rng.chance(1, 2).then(|| Some(Secret(format!("secret-of-{n:06}").into_bytes())));
        let iqns = Some(vec![format!("iqn.1998-01.com.example:h{n}")]);
        let settings = HostSettings { iqns, chap_secret: secret, ..HostSettings::default() };
        (Order::HostAdd { name: name.clone(), settings }, Subject::Host(name))
    }
    fn portal_add(&mut self) -> (Order, Subject) {
        let port = self.rng.between(1024, 60_000);
        let address = format!("10.0.0.8:{port}").parse().expect("an address");
        let order = Order::PortalAdd { protocol: Protocol::Iscsi, address, moves: None, head: None };
        (order, Subject::Portal(address))
    }
    fn any_order(&mut self) -> (Order, Subject) {
        let host = self.told.hosts.get(self.rng.below(4) as usize).map(|h| h.name.clone());
        let portal = self.told.portals.get(self.rng.below(4) as usize).map(|p| (p.protocol, p.address));
        match (self.rng.below(5), host, portal) {
            (0, Some(name), _) => {
                let order = Order::HostRemove { name: name.clone(), force: true, disconnect: true };
                (order, Subject::Host(name))
            }
            (1, Some(name), _) => {
                let secret = Secret(format!("another-{:08}", self.rng.below(1 << 20)).into_bytes());
                let settings = HostSettings { chap_secret: Some(Some(secret)), ..HostSettings::default() };
                let order = Order::HostSet { name: name.clone(), settings, disconnect: true };
                (order, Subject::Host(name))
            }
            (2, _, Some((protocol, address))) => {
                let order = Order::PortalRemove { protocol, address, disconnect: true };
                (order, Subject::Portal(address))
            }
            (3, ..) => self.portal_add(),
            _ => self.host_add(),
        }
    }
    /// A file is cut, emptied, changed or gone; None: nothing happens to them.
    fn damage(&mut self) -> Option<String> {
        if self.rng.chance(1, 2) {
            return None;
        }
        let file = *self.rng.pick(&FILES);
        let state = &mut self.world.servers[0].state;
        let bytes = state.get_mut(file)?;
        let at = self.rng.below(bytes.len() as u64) as usize;
        match self.rng.below(8) {
            0 => bytes.clear(),
            1 => drop(state.remove(file)),
            2 | 3 => bytes[at] ^= 1 << self.rng.below(8),
            4 => {
                // A line is gone.
                let text = String::from_utf8_lossy(bytes).into_owned();
                let lines: Vec<&str> = text.split_inclusive('\n').collect();
                let gone = self.rng.below(lines.len() as u64) as usize;
                let kept = lines.iter().enumerate().filter(|(n, _)| *n != gone).map(|(_, line)| *line);
                *bytes = kept.collect::<String>().into_bytes();
            }
            _ => bytes.truncate(at),
        }
        Some(file.into())
    }
    /// A life with a damaged file, after which somebody puts back what was there.
    fn with_damage(&mut self, file: String, good: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
        self.boot()?;
        self.starts_damaged(&file)?;
        self.world.fall(0, Crash::Killed);
        if let Some(bytes) = good.get(&file) {
            self.world.servers[0].state.insert(file, bytes.clone());
        }
        Ok(())
    }
}
