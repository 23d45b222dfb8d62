//! The head's machines in the kernel's world, and the courier that carries orders to the Steward.

use crate::alarm;
use crate::backend::Call;
use crate::config::{Config, memory};
use crate::daemon::addresses::Addresses;
use crate::daemon::server::Stop;
use crate::daemon::setup;
use crate::daemon::system::System;
use crate::failure::Failure;
use crate::http::Api;
use crate::words::house::setup_fault;
use base::Address;
use head::mail::{Mail, ManagerMail, StewardMail, Unmended};
use head::order::Answered;
use head::peer::SystemSettings;
use head::steward::{Steward, StewardConfig};
use head::{Deadlines, Shard, ShardConfig};
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};
use uring::{House, MachineConfig, Post, RegionPart, SetupFault, Watch};

/// What the daemon's main thread is told.
#[derive(Debug)]
pub enum News {
    /// The pools are imported, or the Steward has said why not.
    Ready,
    /// The Steward has stopped in order.
    Stopped,
    /// The daemon is to start anew, in order.
    Again,
    /// This process is out of its system: it ends at once.
    Out(head::order::Event),
    /// SIGTERM or SIGINT.
    Signal(&'static str),
}

impl From<Stop> for News {
    fn from(stop: Stop) -> Self {
        News::Signal(stop.0)
    }
}

/// Orders under way, by number.
#[derive(Default)]
struct Pending(Mutex<BTreeMap<u64, oneshot::Sender<Answered>>>);

impl Pending {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, oneshot::Sender<Answered>>> {
        // A panic elsewhere does not make the map wrong.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries orders to the Steward.
pub struct Courier {
    post: Post<Mail>,
    pending: Arc<Pending>,
}

/// The running machines.
pub struct Machines {
    house: House<Mail>,
    addresses: Arc<Addresses>,
}

impl Machines {
    /// Starts shards and Steward. `hold`: after so many crashes the Steward shall not import the pools that it knows.
    pub fn start(
        config: &Config,
        hold: Option<u64>,
        system: &Arc<System>,
        news: Sender<News>,
        alarms: Option<alarm::Handle>,
    ) -> Result<(Self, Courier), Failure> {
        let peer = Arc::clone(system);
        let addresses = Arc::new(Addresses::default());
        addresses.is_head(system.settings().map(|s| s.me));
        let moved = Arc::clone(&addresses);
        let pending = Arc::new(Pending::default());
        let answered = Arc::clone(&pending);
        let manager = move |_from: Address, mail: Mail| {
            let Mail::Manager(mail) = mail else {
                return tracing::error!("a letter that is not for the manager: {mail:?}");
            };
            match *mail {
                ManagerMail::Answered { id, answer } => {
                    if let Some(to) = answered.lock().remove(&id) {
                        // Whoever asked may have gone away meanwhile.
                        let _ = to.send(answer);
                    }
                }
                ManagerMail::Peer(work) => peer.work(work),
                ManagerMail::FromPeer(bytes) => peer.on_peer(&bytes),
                ManagerMail::Leads(leads) => peer.leads(leads),
                ManagerMail::Out(why) => {
                    // First of all: the head that leads now has them.
                    moved.let_go();
                    drop(news.send(News::Out(why)));
                }
                ManagerMail::Addresses { number, here, gone } => moved.order(number, here, gone),
                ManagerMail::Announce(resets) => moved.announce(resets),
                ManagerMail::Happened(line) => {
                    setup::log_event(&line);
                    if let Some(alarms) = &alarms {
                        alarms.on_event(&line);
                    }
                }
                ManagerMail::Ready { .. } => {
                    let _ = news.send(News::Ready);
                }
                ManagerMail::Stopped => {
                    let _ = news.send(News::Stopped);
                }
            }
        };
        let mut house = House::build(house_config(config), manager).map_err(cannot_start)?;
        spawn(&mut house, config, hold, system.settings())?;
        system.meets(house.post());
        addresses.meets(house.post());
        let courier = Courier { post: house.post(), pending };
        Ok((Self { house, addresses }, courier))
    }
    /// A look at what the kernel did not allow, and at the memory.
    pub fn watch(&self) -> Watch {
        self.house.watch()
    }
    /// Begins to make the memory for data resident.
    pub fn make_memory_resident(&mut self) {
        self.house.make_resident();
    }
    /// Asks for an orderly stop; `News::Stopped` follows.
    pub fn ask_to_stop(&self) {
        if !self.house.post().send(Address::Steward, StewardMail::Stop.into()) {
            tracing::error!("the Steward is gone, so this is no clean stop");
        }
    }
    /// Lets the head tell of files of the state directory that were removed, and that are the daemon's own.
    pub fn tell_renewed(&self, again: Vec<String>, failed: Vec<Unmended>) {
        // A Steward that is gone is told elsewhere.
        let _ = self.house.post().send(Address::Steward, StewardMail::Renewed { again, failed }.into());
    }
    /// A way to write to them.
    pub fn post(&self) -> Post<Mail> {
        self.house.post()
    }
    /// Lets the first shard panic, by a letter that is none for it.
    pub fn provoke_panic(&self) {
        let _ = self.house.post().send(Address::Shard(0), ManagerMail::Stopped.into());
    }
    /// Ends the threads.
    pub fn end(self) -> Result<(), Failure> {
        self.addresses.let_go();
        self.house.stop().map_err(|panicked| {
            let words: Vec<String> =
                panicked.iter().map(|p| format!("{:?}: {}", p.address, p.message)).collect();
            Failure::internal(format!("threads ended by a panic: {}", words.join("; ")))
        })
    }
}

impl Courier {
    /// Carries calls until the API server lets go of its door.
    pub async fn carry(self, mut calls: mpsc::UnboundedReceiver<Call>) {
        let mut id = 0;
        while let Some((order, answer)) = calls.recv().await {
            id += 1;
            self.pending.lock().insert(id, answer);
            if !self.post.send(Address::Steward, StewardMail::Order { id, order }.into())
                && let Some(answer) = self.pending.lock().remove(&id)
            {
                let _ = answer.send(Err(finding::SystemRefusal::Stopping.into()));
            }
        }
    }
}

/// The head as its alarms see it.
pub struct Watched {
    /// Says how it is.
    pub api: Api,
    /// Goes to its Steward.
    pub post: Post<Mail>,
}

impl alarm::Head for Watched {
    fn leads(&self) -> bool {
        self.api.leads()
    }
    fn status(&self) -> std::pin::Pin<Box<dyn Future<Output = Option<api::Status>> + Send>> {
        let api = self.api.clone();
        Box::pin(async move { api.status().await.ok() })
    }
    fn say(&self, what: String, event: finding::SystemEvent) {
        // A Steward that is gone is told elsewhere.
        let _ = self.post.send(Address::Steward, StewardMail::Said { what, event: event.into() }.into());
    }
}

/// Open files that are not hosts' connections: drives, rings, state, API.
const FILES_KEPT: u64 = 1024;
/// Connections of one shard.
const CONNECTIONS_MAX: u64 = 16384;

/// Connections of each shard: as many as files may be open (said in `status` if that is few), some kept for
/// the rest.
fn connections_max(shards: u16) -> u32 {
    let files = uring::process::raise_files(0).unwrap_or(0);
    (files.saturating_sub(FILES_KEPT) / u64::from(shards)).clamp(64, CONNECTIONS_MAX) as u32
}

fn house_config(config: &Config) -> uring::Config {
    let shards = config.shard_count();
    let data = config.memory_bytes() / u64::from(shards);
    let mut machines: Vec<MachineConfig> = (0..shards)
        .map(|n| MachineConfig {
            core: config.cores.get(usize::from(n)).map(|c| usize::from(*c)),
            connections_max: connections_max(shards),
            ..MachineConfig::new(Address::Shard(n), data)
        })
        .collect();
    machines.push(MachineConfig {
        connections_max: 0,
        staging_buffers: 1,
        ..MachineConfig::new(Address::Steward, memory::STEWARD)
    });
    uring::Config { machines, state_dir: Some(config.state_dir.clone()) }
}

/// Starts shards and Steward in their threads.
fn spawn(
    house: &mut House<Mail>,
    config: &Config,
    hold: Option<u64>,
    system: Option<SystemSettings>,
) -> Result<(), Failure> {
    let shards = config.shard_count();
    let extent = |n: u16| house.extent(Address::Shard(n)).expect("the shard is in the configuration");
    let extents: Vec<(u64, u64)> = (0..shards).map(extent).collect();
    let connections_max = connections_max(shards);
    for id in 0..shards {
        let extents = extents.clone();
        let make = move |part: RegionPart, entropy: [u64; 4]| {
            let (staging, memory) = part.split();
            let deadlines = Deadlines::default();
            let seed = entropy[0];
            let credits = head::CREDITS;
            Shard::new(ShardConfig {
                id,
                shards,
                memory,
                staging,
                seed,
                deadlines,
                extents,
                connections_max,
                credits,
                turn_pdus: head::TURN_PDUS,
                flights: head::FLIGHTS,
            })
        };
        engine::spawn_shard(house, Address::Shard(id), Box::new(make)).map_err(cannot_start)?;
    }
    let shapes = config.shapes_by_drive();
    let state_directory = config.state_dir.display().to_string();
    let make = move |memory: RegionPart, entropy: [u64; 4]| {
        let (version, notices) = (env!("CARGO_PKG_VERSION").into(), Vec::new());
        Steward::new(StewardConfig {
            memory,
            shards,
            entropy,
            version,
            hold,
            notices,
            system,
            state_directory,
            shapes,
        })
    };
    house.spawn(Address::Steward, make).map_err(cannot_start)
}

fn cannot_start(why: SetupFault) -> Failure {
    Failure::internal(setup_fault(&why)).with_next(
        "ulimit -l unlimited before a start by hand, LimitMEMLOCK=infinity in the unit; uname -r: Linux 6.1 or later is needed",
    )
}
