//! What the member wants done on voters: blocks and heartbeats, on drives and in the state directory.

use crate::order::Refusal;
use crate::steward::context::open::OpenDrive;
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{named, state_refusal};
use base::codec::{hex, unhex};
use base::machine::{StateError, StateOp};
use base::record::Fault;
use base::{DriveError, DriveId, Uuid};
use cluster::decide::{Ask, Found};
use cluster::heartbeat::{HEARTBEAT_BYTES, HEARTBEATS_AT};
use cluster::member::NotReached;
use cluster::slot::{self, SLOT_BYTES, SLOTS_AT, Slot};
use cluster::{HeadNo, Heartbeat, SystemRecord, Voter};
use files::content;
use finding::{Cause, ContentFault, FileFault, LegCause};

/// The newest record that is known here to be decided.
pub(crate) const RECORD: &str = "system-record";
const HEADS: [HeadNo; 2] = [HeadNo::A, HeadNo::B];

/// The file of a head's block.
fn slot_file(head: HeadNo) -> &'static str {
    ["system-slot-0", "system-slot-1"][head.index()]
}

/// What a file that holds bytes in hex says, and what is wrong with it.
fn bytes_of(key: &str, hex: &str) -> Result<Vec<u8>, FileFault> {
    let why = ContentFault::NoHex { key: key.into() };
    unhex(hex).ok_or(FileFault::Content { row: String::new(), why })
}

impl Procedures {
    /// What is decided, as far as this state directory says, and the epoch of the newest record that it knows of, decided or accepted.
    pub(super) async fn known_record(&self, system: Uuid) -> (SystemRecord, u64) {
        let mut known = SystemRecord::founding(system);
        let mut hear = |record: SystemRecord| {
            if record.system == system && record.epoch > known.epoch {
                known = record;
            }
        };
        if let Ok(bytes) = self.cx.state(StateOp::Read { name: RECORD.into() }).await {
            let read =
                files::open::<content::Record>(RECORD, &bytes).and_then(|r| bytes_of("record", &r.record));
            match read {
                Ok(bytes) => drop(SystemRecord::from_bytes(&bytes).map(&mut hear)),
                Err(fault) => self.leave_unreadable(RECORD, fault),
            }
        }
        let mut accepted = 0;
        for head in HEADS {
            let read = self.read_slot_file(head).await;
            if let Err(fault) = &read {
                self.leave_unreadable(slot_file(head), fault.clone());
            }
            if let Ok(Some(slot)) = read {
                let ours = slot.decided.system == system;
                accepted = accepted.max(slot.accepted.as_ref().filter(|_| ours).map_or(0, |(_, r)| r.epoch));
                hear(slot.decided);
            }
        }
        let newest = accepted.max(known.epoch);
        (known, newest)
    }
    /// Keeps what is decided, for the next start. It may be older than the truth at any time.
    ///
    /// # Errors
    /// The file is not written.
    pub(super) async fn keep_record(&self, record: SystemRecord) -> Result<(), Refusal> {
        self.check_read(RECORD)?;
        let contents = files::seal(RECORD, &content::Record { record: hex(&record.to_bytes()) });
        let written = self.cx.state(StateOp::Write { name: RECORD.into(), contents }).await;
        written.map(drop).map_err(|e| state_refusal(named(RECORD), &e))
    }
    async fn read_slot_file(&self, head: HeadNo) -> Result<Option<Slot>, FileFault> {
        let name = slot_file(head);
        let bytes = match self.cx.state(StateOp::Read { name: name.into() }).await {
            Ok(bytes) => bytes,
            Err(StateError::Missing) => return Ok(None),
            Err(e) => return Err(FileFault::State { fault: (&e).into() }),
        };
        let block = bytes_of("block", &files::open::<content::Slot>(name, &bytes)?.block)?;
        let damaged = |_: Fault| FileFault::Checksum;
        Slot::decode(head, &block).map(Some).map_err(damaged)
    }
    /// A vote in this state directory: `write` is written, then both blocks are read.
    pub(super) async fn vote_here(&self, write: Option<Slot>) -> Option<Found> {
        let system = self.context().system.as_ref()?.member().known().system;
        if let Some(slot) = write {
            let name = slot_file(slot.head);
            // Nobody knows what one promised that cannot be read: it is not written over.
            self.check_read(name).ok()?;
            let contents = files::seal(name, &content::Slot { block: hex(&slot.encode()) });
            self.cx.state(StateOp::Write { name: name.into(), contents }).await.ok()?;
        }
        let mut found = [None, None];
        for (head, place) in HEADS.into_iter().zip(&mut found) {
            *place = self.read_slot_file(head).await.ok()?.filter(|s| s.decided.system == system);
        }
        Some(found)
    }
    /// The open drive that is this voter.
    fn voter_drive(&self, uuid: Uuid) -> Option<DriveId> {
        let context = self.context();
        let leg = context.open_drives().find(|o| o.label.drive == uuid).map(|o| o.id);
        let drive = leg.or_else(|| context.system.as_ref()?.open_drive(uuid))?;
        let legs = context.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs);
        let mut causes = legs.filter(|l| l.uuid == uuid).filter_map(|l| l.reason.as_ref());
        let ill = context.ills.get(&drive).map(|ill| &ill.cause);
        let is_taken = |cause: &Cause| matches!(cause, Cause::Leg(LegCause::DriveTakenOver { .. }));
        // What somebody else wrote there is not overwritten.
        (!causes.any(is_taken) && !ill.is_some_and(is_taken)).then_some(drive)
    }
    pub(super) async fn vote_on(&self, drive: DriveId, write: Option<Slot>) -> Option<Found> {
        let system = self.context().system.as_ref()?.member().known().system;
        if let Some(slot) = write {
            let at = SLOTS_AT[slot.head.index()][slot.place()];
            self.cx.write(drive, at, &slot.encode()).await.ok()?;
        }
        let mut found = [None, None];
        for (head, place) in HEADS.into_iter().zip(&mut found) {
            let [first, second] = SLOTS_AT[head.index()];
            let both = self.cx.read(drive, first, 2 * SLOT_BYTES).await.ok()?;
            debug_assert_eq!(second, first + SLOT_BYTES as u64, "one behind the other");
            let (one, other) = both.split_at(SLOT_BYTES);
            let newest = slot::newest([one, other].map(|b| Slot::decode(head, b))).ok()?;
            // What a system of former times left there says nothing.
            *place = newest.filter(|s| s.decided.system == system);
        }
        Some(found)
    }
    /// The blocks of both heads, as other voter drives have them, on a voter that lost its own: a head writes the same to all.
    pub(in crate::steward) async fn restore_votes(&self, open: &OpenDrive) -> Result<(), DriveError> {
        let mine = Voter::Drive(open.label.drive);
        let voters = self.context().system.as_ref().map(|s| s.member().known().voters.clone());
        let voters = voters.filter(|all| all.contains(&mine)).unwrap_or_default();
        let mut newest: [Option<Slot>; 2] = [None, None];
        for voter in voters.into_iter().filter(|v| *v != mine) {
            let found = match voter.drive().and_then(|uuid| self.voter_drive(uuid)) {
                Some(drive) => self.vote_on(drive, None).await,
                None => None,
            };
            for (best, slot) in newest.iter_mut().zip(found.unwrap_or_default()) {
                let sequence = best.as_ref().map_or(0, |s| s.sequence);
                if let Some(slot) = slot.filter(|s| s.sequence > sequence) {
                    *best = Some(slot);
                }
            }
        }
        self.wait_for_voter(mine).await;
        let written = self.write_votes(open.id, newest).await;
        self.in_system(|s| s.frees_voter(mine));
        written
    }

    /// Writes what is newer than what a voter has. What is none goes.
    async fn write_votes(&self, drive: DriveId, newest: [Option<Slot>; 2]) -> Result<(), DriveError> {
        if self.vote_on(drive, None).await.is_none() {
            for [first, _] in SLOTS_AT {
                self.cx.write(drive, first, &[0; 2 * SLOT_BYTES]).await?;
            }
        }
        let there = self.vote_on(drive, None).await.unwrap_or_default();
        for (slot, there) in newest.into_iter().zip(there) {
            let known = there.map_or(0, |s| s.sequence);
            if let Some(slot) = slot.filter(|s| s.sequence > known) {
                self.cx.write(drive, SLOTS_AT[slot.head.index()][slot.place()], &slot.encode()).await?;
            }
        }
        Ok(())
    }

    /// Does what a voter is asked for, one after the other.
    pub(super) async fn vote(&self, ask: Ask) {
        let Ask { voter, round, write } = ask;
        self.wait_for_voter(voter).await;
        let found = match voter {
            Voter::Directory(_) => self.vote_here(write).await,
            Voter::Drive(uuid) => match self.voter_drive(uuid) {
                Some(drive) => self.vote_on(drive, write).await,
                None => None,
            },
        };
        let now = self.cx.now();
        self.in_system(|s| {
            s.frees_voter(voter);
            s.tell().on_voted(now, voter, round, found);
        });
    }
    pub(super) async fn vote_for(&self, me: HeadNo, number: u64, write: Option<Slot>) {
        let voter = Voter::Directory(me);
        self.wait_for_voter(voter).await;
        let found = self.vote_here(write).await;
        self.in_system(|s| {
            s.frees_voter(voter);
            s.tell().on_voted_for(number, found);
        });
    }
    async fn wait_for_voter(&self, voter: Voter) {
        let procedures = self.clone();
        self.cx.until(move || procedures.context().system.as_ref().is_none_or(|s| s.is_free(voter))).await;
        self.in_system(|s| s.takes_voter(voter));
    }
    /// Writes a heartbeat and reads the other head's.
    pub(super) async fn heartbeat_on(&self, uuid: Uuid, heartbeat: Heartbeat) {
        let found = match self.voter_drive(uuid) {
            None => Err(NotReached::Failed),
            Some(drive) => self.heartbeat_on_drive(drive, &heartbeat).await.map_err(|e| match e {
                DriveError::Fenced => NotReached::Fenced,
                _ => NotReached::Failed,
            }),
        };
        let now = self.cx.now();
        self.in_system(|s| s.on_drive(now, uuid, found));
    }
    async fn heartbeat_on_drive(
        &self,
        drive: DriveId,
        heartbeat: &Heartbeat,
    ) -> Result<Option<Heartbeat>, DriveError> {
        self.cx.write(drive, HEARTBEATS_AT[heartbeat.head.index()], &heartbeat.encode()).await?;
        let bytes =
            self.cx.read(drive, HEARTBEATS_AT[heartbeat.head.other().index()], HEARTBEAT_BYTES).await?;
        Ok(Heartbeat::decode(&bytes).ok())
    }
}
