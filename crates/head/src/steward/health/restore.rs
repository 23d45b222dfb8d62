//! Order: what a pool keeps on a drive in use, and that somebody has written over, is written again from this head.
//!
//! ```text
//! the keeper waits ▶ front, tail ▶ record ▶ votes ▶ bitmap and map, by the shards ▶ configuration, both slots ▶ label, the first copy last
//! ```
//!
//! The label comes last, as when a pool is made: cut off before that, the drive is as far from being found as it was. What volumes hold
//! there is not looked at: nothing else has it, and nobody knows what it was.

use crate::layout::PoolId;
use crate::mail::ShardMail;
use crate::order::{Answered, Refusal, Reply};
use crate::steward::context::open::OpenDrive;
use crate::steward::context::pool::PoolContext;
use crate::steward::health::labels::Kept;
use crate::steward::procedures::Procedures;
use array::format::{ALIGNMENT, LABEL_AT, RECORD_BYTES, label_copy_at, tail_at};
use base::{DriveError, Duration};
use finding::{LegEvent, LegRefusal, Written};

/// How long shards may take to write their maps.
const MAPS: Duration = Duration::from_secs(30);

impl Procedures {
    /// Order: restore the label of a leg in sync.
    pub(crate) async fn drive_restore_label(&self, drive: &str, force: bool, meant: bool) -> Answered {
        let (pool, array, leg) = self.leg_of("drive", drive)?;
        let (path, name, open) = {
            let context = self.context();
            let p = context.pool(pool).expect("just found");
            let path = p.drive_path(array, leg).to_string();
            if p.is_out(array, leg) {
                return Err(LegRefusal::LabelOfLegOut { drive: path }.into());
            }
            (path, p.config().name.clone(), p.arrays[array].legs[leg].open.clone())
        };
        let Some(open) = open else { return Err(LegRefusal::DriveNotOpen { drive: path }.into()) };
        let untaken =
            |e: DriveError| LegRefusal::LabelNotRestored { drive: path.clone(), fault: open.fault(e) };
        let kept = self.read_kept(&open).await.map_err(untaken)?;
        let others = match kept {
            Kept::Whole => return Err(LegRefusal::LabelWhole { drive: path }.into()),
            Kept::Label | Kept::Overwritten(Written::Bytes) => None,
            Kept::Front(holds) => Some(Written::Holds { holds }),
            Kept::Overwritten(ref written) => Some(written.clone()),
        };
        if let Some(written) = others.filter(|_| !force) {
            return Err(LegRefusal::RestoreOverOthers { drive: path, written }.into());
        }
        if kept != Kept::Label && !meant {
            return Err(LegRefusal::RestoreMayHideDamage { drive: path, pool: name }.into());
        }
        self.restore_drive(pool, (array, leg), &open).await.map_err(untaken)??;
        let now = self.cx.now();
        {
            let mut context = self.context_mut();
            let event = LegEvent::LabelRestored { pool: name };
            context.happened(now, format!("drive {path}"), event);
        }
        Ok(Reply::Done)
    }

    async fn restore_drive(
        &self,
        pool: PoolId,
        (array, leg): (usize, usize),
        open: &OpenDrive,
    ) -> Result<Result<(), Refusal>, DriveError> {
        self.hold_keeper(pool).await;
        let written = self.restore_record(pool, open).await;
        if let Some(p) = self.context_mut().pool_mut(pool) {
            p.arrays[array].legs[leg].holds_others(false);
        }
        self.free_keeper(pool);
        written?;
        self.restore_votes(open).await?;
        if !self.rewrite_maps(pool, array).await {
            return Ok(Err(LegRefusal::BitmapNotWritten.into()));
        }
        // Each slot of each drive says the same.
        for _ in 0..2 {
            if let Err(r) = self.configure_again(pool).await {
                return Ok(Err(r));
            }
        }
        self.cx.flush(open.id).await?;
        self.write_label(open.id, &open.label).await?;
        Ok(Ok(()))
    }

    /// What others left goes, and the record in force is there.
    async fn restore_record(&self, pool: PoolId, open: &OpenDrive) -> Result<(), DriveError> {
        let label = &open.label;
        let Some(record) = self.context().pool(pool).map(|p| p.record().clone()) else { return Ok(()) };
        let copy_at = label_copy_at(label.drive_bytes);
        let copy_is_good = self.cx.read(open.id, copy_at, RECORD_BYTES).await? == label.encode();
        self.cx.write(open.id, 0, &[0; LABEL_AT as usize]).await?;
        let behind = label.membership_at[1] + RECORD_BYTES as u64;
        self.cx.zero(open.id, behind, label.config_at[0] - behind).await?;
        if !copy_is_good && !self.has_its_map(open).await? {
            self.cx.zero(open.id, tail_at(label.drive_bytes), ALIGNMENT).await?;
        }
        let bytes = record.encode();
        let slot = record.slot();
        self.cx.write(open.id, label.membership_at[slot], &bytes).await?;
        // The other slot says nothing older, and nothing of somebody else.
        self.cx.zero(open.id, label.membership_at[1 - slot], RECORD_BYTES as u64).await
    }

    /// Every shard writes its blocks of bitmap and map to every leg of an array.
    async fn rewrite_maps(&self, pool: PoolId, array: usize) -> bool {
        let id = {
            let mut context = self.context_mut();
            let Some(p) = context.pool_mut(pool) else { return false };
            p.arrays[array].rewrites();
            p.arrays[array].id
        };
        self.tell_shards(|| ShardMail::RewriteMaps { array: id });
        let procedures = self.clone();
        let said = move || {
            let all = |p: &PoolContext| p.have_all_said(&p.arrays[array], &p.arrays[array].rewritten);
            procedures.context().pool(pool).is_none_or(all)
        };
        self.cx.until_within(MAPS, said).await
    }
}
