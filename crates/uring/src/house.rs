//! House: the threads, the region and the mail of one process, from start to stop.

use crate::clock;
use crate::drive::Drives;
use crate::fault::{HouseNotice, SetupFault, errno};
use crate::filler::Filler;
use crate::mail::{Control, Post, Routes};
use crate::net::listen::Portals;
use crate::net::staging::Staging;
use crate::reactor::{Counters, Place, Shared, World};
use crate::region::{Region, RegionPart, ZEROES};
use base::{Address, Machine};
use std::any::Any;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

/// Parts of the region begin at multiples of this, bytes.
const PART_ALIGN: u64 = 64 << 10;

/// What one machine gets.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Its address.
    pub address: Address,
    /// Memory of its own, bytes (`Memory::extent`); staging buffers come on top.
    pub memory_bytes: u64,
    /// Receive buffers of 64 KiB shared by its connections; a power of two.
    pub staging_buffers: u16,
    /// Connections at a time; more are accepted and closed at once.
    pub connections_max: u32,
    /// The CPU that its thread is bound to.
    pub core: Option<usize>,
}

impl MachineConfig {
    /// A machine with `memory_bytes` of its own, 128 receive buffers, 16384 connections, on any core.
    pub fn new(address: Address, memory_bytes: u64) -> Self {
        Self { address, memory_bytes, staging_buffers: 128, connections_max: 16384, core: None }
    }
    /// What it takes of the region, bytes: its own memory and the receive buffers.
    pub fn bytes(&self) -> u64 {
        Staging::bytes(self.staging_buffers).saturating_add(self.memory_bytes)
    }
}

/// What a house is made of.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Its machines; shards first and in order makes mail cheapest.
    pub machines: Vec<MachineConfig>,
    /// Where `Effect::State` keeps its files; made when first written to.
    pub state_dir: Option<PathBuf>,
}

/// A reactor's thread ended by a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    /// Whose.
    pub address: Address,
    /// What it said.
    pub message: String,
}

/// The threads of one process and what they share.
pub struct House<M: Send + 'static> {
    config: Config,
    /// Where each machine's part begins: staging, then its own, then the end.
    parts: Vec<(u64, u64, u64)>,
    region: Arc<Region>,
    drives: Arc<Drives>,
    portals: Arc<Portals>,
    routes: Arc<Routes<M>>,
    threads: Vec<(Address, JoinHandle<()>)>,
    counters: Vec<Arc<Counters>>,
    ended: (Sender<Address>, Receiver<Address>),
    filler: Option<Filler>,
}

/// A look at a house, from any thread, as long as one likes.
#[derive(Clone)]
pub struct Watch {
    region: Arc<Region>,
    drives: Arc<Drives>,
    counters: Vec<(Address, Arc<Counters>)>,
}

impl Watch {
    /// What was not allowed or not possible so far, for the operator; each once.
    pub fn notices(&self) -> Vec<HouseNotice> {
        let mut all = self.drives.notices.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort();
        all.dedup();
        all
    }
    /// Bytes of memory that are resident, of those that the machines have.
    pub fn memory(&self) -> (u64, u64) {
        (self.region.resident(), self.region.len() as u64)
    }
    /// What a machine's reactor has counted; None if there is no such machine.
    pub fn counters(&self, address: Address) -> Option<&Counters> {
        self.counters.iter().find(|(whose, _)| *whose == address).map(|(_, counters)| &**counters)
    }
}

impl<M: Send + 'static> House<M> {
    /// Lays out the region and the mailboxes. `manager` gets every letter to `Address::Manager`, in the
    /// sender's thread: it must not wait.
    ///
    /// # Errors
    /// No memory, no descriptors.
    pub fn build(
        config: Config,
        manager: impl Fn(Address, M) + Send + Sync + 'static,
    ) -> Result<Self, SetupFault> {
        let mut at = u64::from(ZEROES.len);
        let mut parts = Vec::new();
        for m in &config.machines {
            assert!(m.staging_buffers.is_power_of_two(), "staging buffers are a power of two");
            let own = at + Staging::bytes(m.staging_buffers);
            let end = own.checked_add(m.memory_bytes).ok_or(SetupFault::RegionTooLarge)?;
            parts.push((at, own, end));
            at = end.next_multiple_of(PART_ALIGN);
        }
        let region =
            Region::map(at as usize).map_err(|e| SetupFault::Memory { bytes: at, errno: errno(&e) })?;
        let addresses: Vec<Address> = config.machines.iter().map(|m| m.address).collect();
        let routes = Routes::new(&addresses, Box::new(manager))
            .map_err(|e| SetupFault::Mailbox { errno: errno(&e) })?;
        let shards = addresses.iter().filter(|a| matches!(a, Address::Shard(_))).count();
        let drives = Arc::new(Drives::new(shards as u32));
        let wanted: u64 = config.machines.iter().map(|m| u64::from(m.connections_max)).sum();
        if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current
            && wanted + 256 > limit
        {
            drives.notice(HouseNotice::FewFiles { limit, connections: wanted });
        }
        Ok(Self {
            counters: config.machines.iter().map(|_| Arc::default()).collect(),
            config,
            parts,
            region,
            drives,
            portals: Arc::default(),
            routes: Arc::new(routes),
            threads: Vec::new(),
            ended: channel(),
            filler: None,
        })
    }

    /// Starts the machine that lives at `address`: `make` is called in its own thread with its part of
    /// the region and 256 random bits. Returns when the thread is ready; mail sent before waits.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn spawn<T: Machine<Mail = M>>(
        &mut self,
        address: Address,
        make: impl FnOnce(RegionPart, [u64; 4]) -> T + Send + 'static,
    ) -> Result<(), SetupFault> {
        let index = self.routes.index(address).expect("the machine is in the configuration");
        assert!(self.threads.iter().all(|(a, _)| *a != address), "a machine is started once");
        let machine = &self.config.machines[index];
        let (staging_at, own, end) = self.parts[index];
        let part = RegionPart::new(Arc::clone(&self.region), staging_at, own, end);
        let shared = Shared {
            region: Arc::clone(&self.region),
            drives: Arc::clone(&self.drives),
            portals: Arc::clone(&self.portals),
            routes: Arc::clone(&self.routes),
            state_dir: self.config.state_dir.clone(),
        };
        let place = Place {
            address,
            inbox: index,
            connections_max: machine.connections_max,
            staging_at,
            staging_buffers: machine.staging_buffers,
            counters: Arc::clone(&self.counters[index]),
        };
        let (core, ended) = (machine.core, self.ended.0.clone());
        let (ready, is_ready) = channel();
        let body = move || {
            let _ended = Ended { address, to: ended };
            clock::sharpen_timers();
            if let Some(core) = core
                && !clock::bind_to_core(core)
            {
                shared.drives.notice(HouseNotice::NotBound { address, core });
            }
            match World::new(shared, place) {
                Ok(world) => {
                    let machine = make(part, clock::entropy());
                    let _ = ready.send(Ok(()));
                    world.run(machine);
                }
                Err(fault) => {
                    let _ = ready.send(Err(fault));
                }
            }
        };
        let name = match address {
            Address::Shard(n) => format!("shard-{n}"),
            Address::Steward => "steward".into(),
            Address::Manager => "manager".into(),
        };
        let handle = thread::Builder::new()
            .name(name)
            .spawn(body)
            .map_err(|e| SetupFault::Thread { address, errno: errno(&e) })?;
        self.threads.push((address, handle));
        // No answer at all means that `make` panicked; `stop` says how.
        is_ready.recv().unwrap_or(Err(SetupFault::Panicked { address }))
    }

    /// Start and length of a machine's own memory in the region (`Memory::extent` of its part).
    pub fn extent(&self, address: Address) -> Option<(u64, u64)> {
        let (_, own, end) = self.parts[self.routes.index(address)?];
        Some((own, end - own))
    }

    /// A hand for sending mail as `Address::Manager`, from any thread.
    pub fn post(&self) -> Post<M> {
        Post { routes: Arc::clone(&self.routes) }
    }

    /// What a machine's reactor has counted.
    pub fn counters(&self, address: Address) -> Option<&Counters> {
        Some(&self.counters[self.routes.index(address)?])
    }

    /// Letters without a receiver.
    pub fn mail_dropped(&self) -> u64 {
        self.routes.dropped()
    }

    /// A look at it.
    pub fn watch(&self) -> Watch {
        let addresses = self.config.machines.iter().map(|m| m.address);
        Watch {
            region: Arc::clone(&self.region),
            drives: Arc::clone(&self.drives),
            counters: addresses.zip(self.counters.iter().cloned()).collect(),
        }
    }

    /// Begins to make the machines' memory resident, in a thread of its own, and to register it with the kernel. Before
    /// that everything works, and costs more: who waits for the house to stand need not wait for this.
    pub fn make_resident(&mut self) {
        self.filler.get_or_insert_with(|| {
            Filler::start(Arc::clone(&self.region), Arc::clone(&self.routes), Arc::clone(&self.drives))
        });
    }
    /// The same, and waits for the end: for measurements.
    pub fn make_resident_now(&mut self) {
        self.make_resident();
        self.filler.iter_mut().for_each(Filler::wait);
    }

    /// Waits until a machine's thread ends, which before `stop` means that it panicked.
    pub fn wait(&self) -> Address {
        self.ended.1.recv().expect("the house itself holds a sender")
    }

    /// Ends every thread and waits for them. Connections are cut; operations at drives end first.
    ///
    /// # Errors
    /// The threads that had panicked.
    pub fn stop(mut self) -> Result<(), Vec<Panicked>> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Vec<Panicked>> {
        self.filler = None;
        self.routes.broadcast(|| Control::Stop);
        let mut panicked = Vec::new();
        for (address, handle) in self.threads.drain(..) {
            if let Err(payload) = handle.join() {
                panicked.push(Panicked { address, message: message(&*payload) });
            }
        }
        self.drives.end();
        if panicked.is_empty() { Ok(()) } else { Err(panicked) }
    }
}

impl<M: Send + 'static> Drop for House<M> {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Tells the house when a thread ends, however it does.
struct Ended {
    address: Address,
    to: Sender<Address>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.to.send(self.address);
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}
