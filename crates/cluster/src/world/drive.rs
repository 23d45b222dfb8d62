//! A drive that two heads share: blocks, heartbeats and data, who is registered, and what is on its way to it.

use crate::decide::{Ask, Found};
use crate::heartbeat::Heartbeat;
use crate::record::HeadNo;
use crate::slot::Slot;
use base::fence::{Registrants, Reservation, ReservationKind};
use base::{FenceKey, Prng, Uuid};

/// What a head asks of a drive.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Vote(Box<Ask>),
    Heartbeat(Heartbeat),
    Register(FenceKey),
    ShutOut {
        own: FenceKey,
        victim: FenceKey,
    },
    /// A stamped value, of the process that began to serve at this epoch.
    Write {
        epoch: u64,
    },
    Read,
}

/// How that ended.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Found(Box<Found>),
    Heartbeat(Option<Heartbeat>),
    Keys(Registrants),
    Good,
    Fenced,
    NotRegistered,
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// On its way; the drive has not seen it.
    Travels,
    /// The drive has taken it.
    Accepted,
    /// It is carried out; the answer comes.
    Landed,
}

/// An operation that is at the drive, or on its way.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub id: u64,
    pub head: HeadNo,
    /// Which process of that head.
    pub process: u64,
    pub act: Act,
    pub stage: Stage,
    /// When its next step is; an event of another time is no news.
    pub due: u64,
    pub reply: Reply,
}

/// The two places of a head's blocks; the newer one counts.
pub(super) type Places = [Option<Slot>; 2];

/// Reads the blocks of both heads.
pub(super) fn found(slots: &[Places; 2]) -> Found {
    let newest = |p: &Places| p.iter().flatten().max_by_key(|s| s.sequence).cloned();
    [newest(&slots[0]), newest(&slots[1])]
}

#[derive(Debug)]
pub(super) struct Drive {
    pub id: Uuid,
    pub slots: [Places; 2],
    pub heartbeats: [Option<Heartbeat>; 2],
    pub keys: [Option<FenceKey>; 2],
    /// The drive takes operations of registered heads only.
    pub reserved: Option<HeadNo>,
    /// Heads that cannot reach it, until then.
    pub lost: [u64; 2],
    /// It is slow until then.
    pub slow: u64,
    pub ops: Vec<Op>,
    /// The latest epoch at which a head serves from it.
    pub served: u64,
    pub generation: u32,
}

impl Drive {
    pub fn new(n: u8) -> Self {
        Self {
            id: Uuid([n; 16]),
            slots: Default::default(),
            heartbeats: [None; 2],
            keys: [None; 2],
            reserved: None,
            lost: [0; 2],
            slow: 0,
            ops: vec![],
            served: 0,
            generation: 0,
        }
    }
    pub fn op(&mut self, id: u64, due: u64) -> Option<&mut Op> {
        self.ops.iter_mut().find(|op| op.id == id && op.due == due)
    }
    /// Whether a former process of this head has something here still: the kernel does not let another one open the drive.
    pub fn is_kept_from(&self, head: HeadNo, process: u64) -> bool {
        self.ops.iter().any(|op| op.head == head && op.process != process)
    }
    pub fn takes(&self, head: HeadNo) -> bool {
        self.reserved.is_none() || self.keys[head.index()].is_some()
    }
    pub fn registrants(&self) -> Registrants {
        let mut keys: Vec<FenceKey> = self.keys.iter().flatten().copied().collect();
        keys.sort();
        let reservation = self.reserved.map(|head| Reservation {
            holder: self.keys[head.index()],
            kind: ReservationKind::ExclusiveRegistrants,
        });
        Registrants { keys, reservation, generation: self.generation }
    }
    /// Registers in place of whatever key this head had.
    pub fn register(&mut self, head: HeadNo, key: FenceKey) {
        self.generation += 1;
        self.keys[head.index()] = Some(key);
        self.reserved.get_or_insert(head);
    }
    /// Takes the other head's key away, if it is the victim's. False: our own is not there.
    pub fn preempt(&mut self, head: HeadNo, own: FenceKey, victim: FenceKey) -> bool {
        if self.keys[head.index()] != Some(own) {
            return false;
        }
        self.generation += 1;
        let theirs = &mut self.keys[head.other().index()];
        *theirs = theirs.filter(|key| *key != victim);
        self.reserved = Some(head);
        true
    }
    /// Operations of a head, but for those that only look, that the drive has taken and not carried out: each is to land by `end`, or never does.
    pub fn hasten(&mut self, head: HeadNo, now: u64, end: u64, rng: &mut Prng) -> Vec<(u64, u64)> {
        let mut due = vec![];
        for op in self.ops.iter_mut().filter(|op| op.head == head && op.stage == Stage::Accepted) {
            op.due = rng.between(now + 1, end - 1);
            if rng.chance(1, 2) {
                // Ended by the drive.
                op.stage = Stage::Landed;
                op.reply = Reply::Failed;
            }
            due.push((op.id, op.due));
        }
        due
    }
}
