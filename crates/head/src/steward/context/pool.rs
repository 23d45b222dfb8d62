//! What the Steward knows of a pool beyond what is decided.

use crate::layout::PoolId;
use crate::steward::context::array::{ArrayContext, Outlook, PendingChange};
use crate::steward::context::open::OpenDrive;
use crate::steward::context::scrub::ScrubContext;
use crate::steward::context::spare::SpareContext;
use crate::steward::context::witness::Witness;
use crate::steward::state::config::{PoolConfig, array_uuid};
use crate::steward::state::{Change, Pool};
use crate::steward::words::array_word;
use array::format::{Incarnation, LegState, MembershipRecord};
use base::{Bug, Instant, Uuid, VolumeId, planted};
use finding::Cause;
use pool::Granules;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use volume::Run;

/// An imported pool.
pub(crate) struct PoolContext {
    pub id: PoolId,
    /// What is decided of it, as `HeadContext::apply` left it; or, while it comes, what it will be.
    state: Arc<Pool>,
    /// The record in force, while it is not known to be where it must be: shards go by it, and nobody is answered.
    proposed: Option<MembershipRecord>,
    /// The record whose settled copy was written last.
    settled_copy: Option<Incarnation>,
    /// The generation that was used last, also for a configuration that was refused: whatever comes next is above it.
    pub generation_used: u64,
    /// A configuration is being written: the next one waits.
    pub configuring: bool,
    pub arrays: Vec<ArrayContext>,
    /// So many shards know its arrays, the first ones: those of this head, and the other's once lanes were dealt with them.
    pub shards: u16,
    /// Returned runs to which writes may still be at the drives: they are not marked yet.
    pub resting: Vec<Resting>,
    /// Volumes that have shrunk to a part of a granule: until then writes behind their end may be at the drives.
    pub shrunk: BTreeMap<Uuid, Instant>,
    /// Returned runs that every array has marked: free with the next configuration.
    pub marked: Vec<Run>,
    pub volume_ids: BTreeMap<Uuid, VolumeId>,
    /// Volumes that were made since the pool was imported: what hosts did with them, the shards have counted.
    pub made_here: BTreeSet<Uuid>,
    /// Its volumes answer commands.
    pub serving: bool,
    /// It is being let go of: volumes are gone from the hosts, the keeper stops.
    pub leaving: bool,
    pub pending: VecDeque<PendingChange>,
    pub keeping: bool,
    /// The keeper shall wait: somebody else changes what it works on (`KeeperHold`).
    pub held: bool,
    /// Lanes are being dealt anew: no space is marked meanwhile.
    pub dealing: bool,
    /// What lanes the other head has of it are of its process that is in since this epoch.
    pub far_epoch: u64,
    /// The other head has lanes of an array of which it did not reach every leg as it was told of it: it goes on without that leg until
    /// lanes are dealt anew.
    pub far_lacks: bool,
    /// Its hot spares, in the order of its configuration.
    pub spares: Vec<SpareContext>,
    /// The scrub under way, and what the last one found.
    pub scrub: ScrubContext,
    /// What lies in the state directory.
    pub witness: Witness,
    /// A leg in sync of each array has the record that the witness has, or a later one. If not, the witness alone may
    /// know of a loss, and it is not removed.
    pub known_on_legs: bool,
    /// Its configuration on some drive, or the witness, could not be written.
    pub trouble: Option<Cause>,
    /// A record that puts a leg in sync and was not taken, and the name of the one that takes its place in the context.
    pub refused: Option<(MembershipRecord, Incarnation)>,
    /// Since when the keeper tries to put a record somewhere.
    pub recording: Option<Instant>,
    /// A loss is told by that record: answers wait for it.
    pub losing: bool,
    /// Nothing takes it: the volumes are not ready until something does.
    pub unrecorded: bool,
}

/// A run of a volume that was removed or has shrunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Resting {
    pub run: Run,
    pub until: Instant,
}

impl PoolContext {
    /// A pool that comes, with its arrays.
    pub fn coming(
        id: PoolId,
        state: Pool,
        arrays: Vec<ArrayContext>,
        volume_ids: BTreeMap<Uuid, VolumeId>,
        shards: u16,
    ) -> Self {
        Self {
            id,
            scrub: ScrubContext::of(state.config()),
            generation_used: state.generation(),
            state: Arc::new(state),
            proposed: None,
            settled_copy: None,
            configuring: false,
            arrays,
            shards,
            volume_ids,
            spares: vec![],
            resting: vec![],
            shrunk: BTreeMap::new(),
            marked: vec![],
            made_here: BTreeSet::new(),
            serving: false,
            leaving: false,
            pending: VecDeque::new(),
            keeping: false,
            held: false,
            dealing: false,
            far_epoch: 0,
            far_lacks: false,
            trouble: None,
            refused: None,
            recording: None,
            losing: false,
            unrecorded: false,
            witness: Witness::Older { behind: 0 },
            known_on_legs: false,
        }
    }
    /// Which granules are given away: those of the volumes in the configuration, and those that rest. Never kept beside
    /// them, so that it cannot say anything else.
    pub fn space(&self) -> Granules {
        self.config().space().expect("volumes of a configuration do not overlap")
    }
    /// Bytes of what is returned: nobody's, and not yet free.
    pub fn resting_bytes(&self) -> u64 {
        self.config().returned().iter().map(|run| run.count * volume::GRANULE_BYTES).sum()
    }
}

impl PoolContext {
    /// What is decided of it.
    pub fn state(&self) -> &Pool {
        &self.state
    }
    /// What it is.
    pub fn config(&self) -> &PoolConfig {
        self.state.config()
    }
    /// Generation of the configuration on the drives.
    pub fn generation(&self) -> u64 {
        self.state.generation()
    }
    /// The membership record in force.
    pub fn record(&self) -> &MembershipRecord {
        self.proposed.as_ref().unwrap_or(self.state.record())
    }
    /// The next record is in force. It is decided once it is where it must be (`HeadContext::decide`).
    pub fn propose(&mut self, record: MembershipRecord) {
        self.proposed = Some(record);
    }
    /// So many shards know its arrays from now on.
    pub fn is_known_to(&mut self, shards: u16) {
        self.shards = shards;
    }
    /// Only shards of this head, so many, know it from now on. What others have said is forgotten.
    pub fn far_goes(&mut self, now: Instant, own: u16) {
        self.shards = own;
        self.scrub.done.retain(|(_, shard)| *shard < own);
        self.arrays.iter_mut().for_each(|a| a.far_goes(now, own));
    }
    /// Shards that know it no more had some of its lanes: nobody has those, until they are dealt anew.
    pub fn is_bereft(&self) -> bool {
        (0..self.arrays.len()).any(|a| self.is_bereft_array(a))
    }
    /// The same of an array of it.
    pub fn is_bereft_array(&self, array: usize) -> bool {
        !self.arrays[array].lanes.are_below(self.shards)
    }
    /// Whether all shards of an array are among those that have said something.
    pub fn have_all_said(&self, array: &ArrayContext, said: &BTreeSet<u16>) -> bool {
        array.lanes.are_below(self.shards) && said.len() >= usize::from(self.shards)
    }
    /// Whether every shard that has lanes of its array has copied what a leg lacks.
    pub fn is_synced(&self, array: usize, leg: usize) -> bool {
        let (array, synced) = (&self.arrays[array], &self.arrays[array].legs[leg].synced);
        let have =
            (0..self.shards).filter(|shard| array.lanes.has(*shard)).all(|shard| synced.contains(&shard));
        have && (array.lanes.are_below(self.shards) || planted(Bug::SyncedByHalf))
    }
    /// The keeper works, or waits.
    pub fn is_kept(&mut self, keeping: bool) {
        self.keeping = keeping;
    }
    /// Nobody is at its record.
    pub fn keeper_rests(&self) -> bool {
        !self.keeping && !self.held
    }
    /// The keeper shall wait, or go on.
    pub fn hold(&mut self, held: bool) {
        self.held = held;
    }
    /// Some of its lanes are those of a head that is in since this epoch.
    pub fn is_dealt_to(&mut self, epoch: u64) {
        (self.far_epoch, self.far_lacks) = (epoch, false);
    }
    /// The other head is told of it, and does not reach all that it has lanes of.
    pub fn lacks_far(&mut self) {
        self.far_lacks = true;
    }
    /// Lanes are being dealt anew, or are not.
    pub fn deals(&mut self, dealing: bool) {
        self.dealing = dealing;
    }
    /// The record in force tells of a loss: answers wait for it.
    pub fn loses(&mut self) {
        self.losing = true;
    }
    /// The keeper tries to put the record somewhere, since then; or has given up.
    pub fn records(&mut self, since: Option<Instant>) {
        self.recording = since;
    }
    /// The record is where it must be. True if the pool was not ready for it.
    pub fn has_recorded(&mut self) -> bool {
        self.recording = None;
        self.losing = false;
        core::mem::take(&mut self.unrecorded)
    }
    /// Nothing takes the record.
    pub fn cannot_record(&mut self) {
        self.unrecorded = true;
    }
    /// What could not be written.
    pub fn is_troubled(&mut self, trouble: Option<Cause>) {
        self.trouble = trouble;
    }
    /// A record that puts a leg in sync was not taken, and this is the one in its place; or none is.
    pub fn promotion_refused(&mut self, refused: Option<(MembershipRecord, Incarnation)>) {
        self.refused = refused;
    }
    /// What lies in the state directory, and whether a leg in sync of each array has as much.
    pub fn witness_is(&mut self, witness: Witness, known_on_legs: bool) {
        self.witness = witness;
        self.known_on_legs = known_on_legs;
    }
    /// Its volumes answer commands, with these spares beside its legs.
    pub fn serves(&mut self) {
        self.serving = true;
        self.leaving = false;
    }
    /// It is being let go of: its volumes answer nobody any more.
    pub fn leaves(&mut self) {
        self.serving = false;
        self.leaving = true;
    }
    /// It is not let go of after all.
    pub fn stays(&mut self) {
        self.leaving = false;
    }
    /// Its spares were found.
    pub fn has_spares(&mut self, spares: Vec<SpareContext>) {
        self.spares = spares;
    }
    /// Every array has marked these returned runs.
    pub fn has_marked(&mut self, runs: Vec<Run>) {
        self.marked = runs;
    }
    /// It is this procedure's turn to write the configuration, or nobody's.
    pub fn is_configured(&mut self, configuring: bool) {
        self.configuring = configuring;
    }
    /// A configuration of this generation is about to be written.
    pub fn uses_generation(&mut self, generation: u64) {
        self.generation_used = generation;
    }
    /// The record in force is not decided yet.
    pub fn is_proposed(&self) -> bool {
        self.proposed.is_some()
    }
    /// Whether every leg that takes part has the record in force, and none was given its settled copy yet.
    pub fn lacks_settled_copy(&self) -> bool {
        !self.is_proposed()
            && self.record().is_settled()
            && self.settled_copy != Some(self.record().incarnation)
    }

    /// The settled copy of the record in force is being written. It is written once: a leg that does not take it is put out, or
    /// is the last one, which the next record may find well.
    pub fn has_settled_copy(&mut self) {
        self.settled_copy = Some(self.record().incarnation);
    }

    /// The record in force, if it is not decided yet: it is about to be.
    pub fn take_proposed(&mut self) -> Option<MembershipRecord> {
        self.proposed.take()
    }
    /// It is the one that is decided to be so under this UUID.
    pub fn is(&mut self, pool: &Arc<Pool>) {
        if pool.config().uuid == self.config().uuid {
            self.state.clone_from(pool);
        }
    }
    /// The change that brings it.
    pub fn comes(&self) -> Change {
        let (config, generation) = (self.config().clone(), self.generation());
        Change::PoolCame { config, generation, record: self.record().clone() }
    }
    /// A pool that comes is another than it was thought to become.
    pub fn comes_as(&mut self, state: Pool) {
        self.state = Arc::new(state);
    }
    /// The state of a leg, as it is on record. One that is about to join is not there yet.
    pub fn leg_state(&self, array: usize, leg: usize) -> LegState {
        // Who looked at an array that was removed meanwhile finds nobody there.
        let row = self.record().arrays.get(array).and_then(|row| row.legs.get(leg));
        row.map_or(LegState::Out, |l| l.state)
    }
    /// Whether a leg is being resynced.
    pub fn rebuilds(&self, array: usize, leg: usize) -> bool {
        matches!(self.leg_state(array, leg), LegState::Rebuilding | LegState::RebuildingFull)
    }
    /// Whether a leg gets nothing.
    pub fn is_out(&self, array: usize, leg: usize) -> bool {
        self.leg_state(array, leg).is_out()
    }
    /// The keeper is to put a leg out, for what is known at this head.
    pub fn is_to_lose(&mut self, array: usize, leg: usize, why: Cause, outlook: Outlook) {
        self.pending.push_back(PendingChange::Lost { array, leg, why, outlook, there: None });
    }
    /// Legs that get metadata: those that take part and whose drive is open.
    pub fn reachable(&self) -> Vec<(usize, usize, OpenDrive)> {
        let mut out = vec![];
        for (a, array) in self.arrays.iter().enumerate() {
            for (l, leg) in array.legs.iter().enumerate() {
                let takes_part = !self.is_out(a, l);
                if let Some(open) = leg.open.as_ref().filter(|_| takes_part) {
                    out.push((a, l, open.clone()));
                }
            }
        }
        out
    }
    /// Whether the leg is the only one of its array in sync.
    pub fn is_last(&self, array: usize, leg: usize) -> bool {
        let legs = self.record().arrays.get(array).map_or(&[][..], |row| &row.legs);
        let in_sync = |i: &usize| legs[*i].state == LegState::InSync;
        leg < legs.len() && in_sync(&leg) && (0..legs.len()).filter(in_sync).count() == 1
    }
    /// Every array can answer.
    pub fn complete(&self) -> bool {
        (0..self.arrays.len()).all(|a| {
            let legs = self.arrays[a].legs.iter().enumerate();
            legs.filter(|(l, leg)| leg.open.is_some() && self.leg_state(a, *l) == LegState::InSync).count()
                > 0
        })
    }
    pub fn array_uuid(&self, array: usize) -> Uuid {
        array_uuid(self.config().uuid, array)
    }
    pub fn drive_path(&self, array: usize, leg: usize) -> &str {
        &self.arrays[array].legs[leg].path
    }
    /// What operators call an array.
    pub fn array_name(&self, array: usize) -> String {
        array_word(self.config().arrays[array].mirror, array)
    }
}
