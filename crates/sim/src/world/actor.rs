//! The actors of a world: the machines of the head, and hosts.

use base::{Address, Dma, Event, Instant, Machine, Slice};
use head::books::{ShardBooks, StewardBooks};
use head::layout::ArrayId;
use head::mail::Mail;
use head::steward::Leads;
use head::steward::state::State;
use head::steward::state::journal::JournalEntry;

/// What a machine of the head keeps account of.
#[derive(Clone, Debug)]
pub enum Books {
    /// A shard.
    Shard(Box<ShardBooks>),
    /// The Steward.
    Steward(Box<StewardBooks>),
}

/// A machine of the head.
pub trait HeadMachine: Machine<Mail = Mail> + Dma {
    /// Nothing is under way, and nothing is kept that should be free; else what, one sentence.
    fn at_rest(&self) -> Result<(), String>;
    /// What it keeps account of.
    fn books(&self) -> Option<Books> {
        None
    }
    /// The machine itself, if it is the Steward.
    fn steward(&self) -> Option<&head::steward::Steward> {
        None
    }
    /// What it has decided since the last call.
    fn journal(&mut self) -> Vec<JournalEntry> {
        vec![]
    }
    /// All that it has decided.
    fn decided(&self) -> Option<std::cell::Ref<'_, State>> {
        None
    }
    /// What it goes by, if its head is one of two and leads.
    fn leads(&self) -> Option<Leads> {
        None
    }
    /// It owns this byte of an array, and knows that legs may differ there.
    fn is_unclean(&self, _array: ArrayId, _at: u64) -> bool {
        false
    }
}

impl<M: base::Memory> HeadMachine for head::Shard<M>
where
    head::Shard<M>: Dma,
{
    fn at_rest(&self) -> Result<(), String> {
        let under_way = self.under_way();
        if !under_way.is_empty() {
            return Err(format!("something is under way: {}", under_way.join(", ")));
        }
        let (used, kept) = (self.buffers_used(), self.buffers_kept());
        if used != kept {
            let (way, bytes) = (if used > kept { "much" } else { "little" }, used.abs_diff(kept));
            return Err(format!(
                "{used} bytes of buffers are in use, {bytes} too {way}: {kept} are accounted for"
            ));
        }
        self.arrays().for_each(|(_, a)| a.check_invariants());
        Ok(())
    }
    fn books(&self) -> Option<Books> {
        Some(Books::Shard(Box::new(head::Shard::books(self))))
    }
    fn is_unclean(&self, array: ArrayId, at: u64) -> bool {
        self.arrays().any(|(id, a)| id == array && a.is_unclean(at))
    }
}

impl HeadMachine for head::steward::Steward {
    fn at_rest(&self) -> Result<(), String> {
        let under_way = self.under_way();
        if under_way.is_empty() {
            return Ok(());
        }
        Err(format!("something is under way: {}", under_way.join(", ")))
    }
    fn books(&self) -> Option<Books> {
        Some(Books::Steward(Box::new(head::steward::Steward::books(self))))
    }
    fn steward(&self) -> Option<&head::steward::Steward> {
        Some(self)
    }
    fn journal(&mut self) -> Vec<JournalEntry> {
        self.take_journal()
    }
    fn decided(&self) -> Option<std::cell::Ref<'_, State>> {
        Some(self.state())
    }
    fn leads(&self) -> Option<Leads> {
        self.leads()
    }
}

/// A host: a machine that writes no mail.
pub trait HostMachine: Machine<Mail = ()> + Dma {}
impl<T: Machine<Mail = ()> + Dma> HostMachine for T {}

/// Who an event is for: an index into the world's actors.
pub type ActorId = usize;

pub(super) enum Body {
    Head(Box<dyn HeadMachine>),
    Host(Box<dyn HostMachine>),
}

/// An event for either kind.
pub(super) enum HeadOrHost {
    Head(Event<Mail>),
    Host(Event<()>),
}

pub(super) struct Actor {
    pub body: Body,
    /// On which server it lives; None for a host.
    pub server: Option<usize>,
    /// What it is of that server's head; None for a host.
    pub address: Option<Address>,
    /// Tells lives of the same place apart: events of an earlier life are dropped.
    pub life: u32,
    pub timer: Option<Instant>,
    pub staging: Vec<Slice>,
    pub starved: Vec<usize>,
}

/// Bytes of a staging buffer.
pub const STAGING_PIECE: u32 = 16 << 10;

impl Actor {
    /// A machine with the server and the address that it has there; a host has none.
    pub fn new(body: Body, life: u32, staging: Slice, place: Option<(usize, Address)>) -> Self {
        let pieces = staging.len / STAGING_PIECE;
        let staging = (0..pieces).rev().map(|i| staging.part(i * STAGING_PIECE, STAGING_PIECE)).collect();
        let (server, address) = place.unzip();
        Self { body, server, address, life, timer: None, staging, starved: vec![] }
    }
    /// Gives `with` the bytes of `data`, which must be this machine's.
    pub fn dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) {
        assert!(self.try_dma(data, with), "a machine names memory of its own");
    }
    /// As `dma`; false if the memory is another's.
    pub fn try_dma(&mut self, data: Slice, with: &mut dyn FnMut(&mut [u8])) -> bool {
        match &mut self.body {
            Body::Head(m) => m.dma(data, with),
            Body::Host(m) => m.dma(data, with),
        }
    }
    pub fn next_deadline(&self) -> Option<Instant> {
        match &self.body {
            Body::Head(m) => m.next_deadline(),
            Body::Host(m) => m.next_deadline(),
        }
    }
}

/// A number for what happened, for the hash of a run.
pub(super) fn kind_of<M>(event: &Event<M>) -> u64 {
    match event {
        Event::Accepted { connection, .. } => 1 << 56 ^ connection.0,
        Event::Connected { connection, result } => 2 << 56 ^ connection.0 ^ u64::from(result.is_ok()) << 40,
        Event::Received { connection, data } => 3 << 56 ^ connection.0 ^ u64::from(data.len) << 32,
        Event::Sent { connection, bytes } => 4 << 56 ^ connection.0 ^ u64::from(*bytes) << 32,
        Event::Broken { connection } => 5 << 56 ^ connection.0,
        Event::Closed { connection } => 6 << 56 ^ connection.0,
        Event::DriveDone { token, result } => 7 << 56 ^ token.0 ^ u64::from(result.is_ok()) << 40,
        Event::DriveOpened { token, .. } => 8 << 56 ^ token.0,
        Event::DriveInspected { token, result } => 13 << 56 ^ token.0 ^ u64::from(result.is_ok()) << 40,
        Event::Fenced { token, result } => 14 << 56 ^ token.0 ^ u64::from(result.is_ok()) << 40,
        Event::DriveClosed { drive } => 9 << 56 ^ u64::from(drive.0),
        Event::Listening { portal, .. } => 10 << 56 ^ u64::from(portal.0),
        Event::State { token, .. } => 11 << 56 ^ token.0,
        Event::Mail { .. } => 12 << 56,
    }
}
