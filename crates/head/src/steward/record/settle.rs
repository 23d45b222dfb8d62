//! The first record of a pool that comes: every leg that takes part has it, and its settled copy, before any host is answered.

use crate::layout::PoolId;
use crate::order::Refusal;
use crate::steward::context::array::{PendingChange, outlook};
use crate::steward::pools::leave::no_witness;
use crate::steward::procedures::Procedures;
use base::{Bug, DriveError, planted};
use finding::{DriveFault, PoolCause, PoolRefusal};

impl Procedures {
    /// Brings the record of a pool that comes to its settled copy, before any host is answered: no leg that is older than
    /// this start is believed from then on. Legs that do not take the one or the other are put out.
    pub(crate) async fn settle_first_record(
        &self,
        id: PoolId,
        mut failed: Vec<(usize, usize, DriveError)>,
    ) -> Result<(), Refusal> {
        loop {
            while !failed.is_empty() {
                let lost = self.lost_at_import(id, failed)?;
                let record = {
                    let mut context = self.context_mut();
                    let (me, incarnation) = (context.me(), context.new_incarnation());
                    let p = context.pool_mut(id).expect("it was just added");
                    let mut record = p.record().next(me, incarnation);
                    context.take_out(id, &mut record, lost, self.cx.now());
                    let p = context.pool_mut(id).expect("seen above");
                    p.propose(record.clone());
                    record
                };
                let (again, witness) = self.write_record(id, &record, &[]).await;
                witness.map_err(no_witness)?;
                failed = again;
            }
            failed = self.write_settled_copy(id).await;
            if failed.is_empty() {
                return Ok(());
            }
        }
    }

    /// The losses of legs that did not take what an import writes.
    ///
    /// # Errors
    /// An array has no other leg in sync that took it.
    pub(crate) fn lost_at_import(
        &self,
        id: PoolId,
        failed: Vec<(usize, usize, DriveError)>,
    ) -> Result<Vec<PendingChange>, Refusal> {
        let context = self.context();
        let p = context.pool(id).expect("it was just added");
        let lost = |(array, leg, error): (usize, usize, DriveError)| {
            let fault = DriveFault::from(error);
            let took =
                p.is_whole_without(array, &failed) || !p.is_last(array, leg) && planted(Bug::ImportUntaken);
            if !took {
                let drive = p.drive_path(array, leg).to_string();
                return Err(PoolRefusal::LastNotWritten { drive, fault }.into());
            }
            let why = PoolCause::LegNotWritten { fault }.into();
            Ok(PendingChange::Lost { array, leg, why, outlook: outlook(error), there: None })
        };
        failed.iter().copied().map(lost).collect()
    }
}
