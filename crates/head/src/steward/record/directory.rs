//! Whether the state directory takes what is written: told while nothing must be, so that there is time to help.

use crate::layout::PoolId;
use crate::order::Cause;
use crate::steward::context::head::{HeadContext, Stop};
use crate::steward::context::pool::PoolContext;
use crate::steward::context::witness::BEHIND;
use crate::steward::procedures::Procedures;
use array::format::{MembershipRecord, RECORD_BYTES};
use base::machine::StateOp;
use base::{DriveError, Duration};
use finding::{RecordEvent, StateFault};

/// How often its file system is asked, which costs no I/O.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often something is written all the same.
const PROBE_INTERVAL: Duration = Duration::from_secs(60);
/// The file that is written and removed again, as large as a witness record can be as text.
const PROBE: &str = "probe";
const PROBE_BYTES: usize = 2 * RECORD_BYTES + 256;

impl Procedures {
    /// Looks each second, also for files that somebody removed, and writes something each minute, or as soon as something
    /// seems to have changed; witness records that could not be written are, once there is space again.
    pub(crate) async fn watch_directory(&self) {
        let (mut looked_well, mut probe_at) = (true, self.cx.now());
        loop {
            if self.context().stop == Stop::No {
                let look = StateOp::Look { bytes: PROBE_BYTES as u64 };
                let before = self.context().files.clone();
                let seen = self.cx.state(look).await;
                let well = seen.is_ok();
                if let Ok(seen) = seen
                    && self.context().ready
                    && self.context().stop == Stop::No
                {
                    self.on_files_seen(&seen, &before);
                }
                if well != looked_well || self.cx.now() >= probe_at {
                    looked_well = well;
                    let _ = self.probe_directory().await;
                    self.restore_later();
                    probe_at = self.cx.now() + PROBE_INTERVAL;
                }
            }
            self.cx.sleep(LOOK_INTERVAL).await;
        }
    }
    /// Why the directory takes nothing now: by its file system, or, if it took nothing before, by writing something.
    pub(crate) async fn directory_fault(&self) -> Option<StateFault> {
        if self.context().unwritable.is_some() {
            return self.try_directory().await;
        }
        let looked = self.cx.state(StateOp::Look { bytes: PROBE_BYTES as u64 }).await;
        looked.err().map(|e| StateFault::from(&e))
    }

    /// Writes something: why that failed, if it did.
    async fn try_directory(&self) -> Option<StateFault> {
        let contents = vec![b'#'; PROBE_BYTES];
        let written = self.cx.state(StateOp::Write { name: PROBE.into(), contents }).await;
        let _ = self.cx.state(StateOp::Remove { name: PROBE.into() }).await;
        written.err().map(|e| StateFault::from(&e))
    }

    /// Writes something, and remembers whether that went well, or why not.
    pub(in crate::steward) async fn probe_directory(&self) -> Option<StateFault> {
        let fault = self.try_directory().await;
        let now = self.cx.now();
        let well = fault.is_none();
        {
            let mut context = self.context_mut();
            let news = match (context.unwritable.is_some(), fault.clone()) {
                (false, Some(fault)) => Some(RecordEvent::StateUnwritable { fault }),
                (true, None) => Some(RecordEvent::StateWritable),
                (true, Some(_)) | (false, None) => None,
            };
            if let Some(news) = news {
                context.happened(now, "state directory", news);
            }
            context.is_unwritable(fault.clone());
        }
        let ids: Vec<PoolId> = {
            let context = self.context();
            let due = |p: &&PoolContext| {
                if well {
                    p.trouble.is_some() && p.recording.is_none()
                } else {
                    !p.witness.is_harmless() && p.recording.is_none()
                }
            };
            let due = context.pools.iter().filter(|p| p.serving && !p.leaving).filter(due);
            due.map(|p| p.id).collect()
        };
        for id in ids {
            if well { self.write_missing_witness(id).await } else { self.leave_witness_behind(id).await }
        }
        fault
    }
    /// A directory that takes nothing may not let go of anything either. The witness that is there would prove a leg that
    /// is lost from now on, and does not know it: records that change nothing leave it behind, while every leg is there
    /// to take them (docs/formats/membership.md).
    async fn leave_witness_behind(&self, id: PoolId) {
        let _hold = self.hold_keeper(id).await;
        for _ in 0..BEHIND {
            let due = self.context().pool(id).is_some_and(|p| !p.leaving && !p.witness.is_harmless());
            let Some(record) = due.then(|| self.next_record(id)).flatten() else { break };
            let (failed, witness) = self.write_record(id, &record, &[]).await;
            self.note_taken(id, &record, &failed, &witness);
            if !failed.is_empty() {
                break;
            }
        }
    }
    /// A record for the witness, one try: if it fails again, the pool still says so.
    pub(crate) async fn write_missing_witness(&self, id: PoolId) {
        let _hold = self.hold_keeper(id).await;
        if !self.context().pool(id).is_none_or(|p| p.leaving)
            && let Some(record) = self.next_record(id)
        {
            let (failed, witness) = self.write_record(id, &record, &[]).await;
            self.note_taken(id, &record, &failed, &witness);
        }
    }
    /// After one try to write a record.
    fn note_taken(
        &self,
        id: PoolId,
        record: &MembershipRecord,
        failed: &[(usize, usize, DriveError)],
        witness: &Result<(), Cause>,
    ) {
        let mut context = self.context_mut();
        if context.pool_mut(id).is_some_and(|p| p.has_taken(failed, witness)) {
            context.decide(id, record);
        }
    }
    /// The pool's next record, which changes nothing, in the context.
    pub(crate) fn next_record(&self, id: PoolId) -> Option<MembershipRecord> {
        let mut context = self.context_mut();
        let (me, incarnation) = (context.me(), context.new_incarnation());
        context.pool_mut(id).map(|p| {
            let record = p.record().next(me, incarnation);
            p.propose(record.clone());
            record
        })
    }
}

impl HeadContext {
    /// A pool on record whose legs are all here: none is out, and none is put out with the next record.
    pub(crate) fn has_every_leg(&self, id: PoolId) -> bool {
        self.pool(id).is_some_and(|p| {
            let legs =
                || p.arrays.iter().enumerate().flat_map(|(a, x)| (0..x.legs.len()).map(move |l| (a, l)));
            self.absent.iter().any(|x| x.uuid() == p.config().uuid)
                && legs().all(|(a, l)| p.arrays[a].legs[l].open.is_some() && !p.is_out(a, l))
        })
    }
}
