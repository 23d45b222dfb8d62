//! The witness: the pool's latest membership record, in the state directory. It proves a leg that is found alone after a
//! crash (docs/formats/membership.md), so it must never outlive a loss that it does not know of.
//!
//! ```text
//! a loss      witness written ▶ legs written ▶ taken
//!                └─ refused ▶ removed ▶ legs …
//!                      └─ refused ▶ harmless already? ▶ legs …
//!                            └─ no: nobody is answered, and no leg has the record, until it is written or removed
//! ```

use crate::order::{Cause, Refusal};
use crate::steward::context::pool::PoolContext;
use crate::steward::context::witness::{Witness, puts_out};
use crate::steward::procedures::Procedures;
use crate::steward::record::texts::{WITNESS, state_cause, state_refusal, witness_file, witness_name};
use array::format::{LegState, MembershipRecord};
use base::machine::StateOp;
use base::{Bug, DriveError, Uuid, planted};
use finding::StateFile;

impl PoolContext {
    /// Whether a start that finds the leg which `record` puts out would know of it, though the state directory did not take
    /// the record: nothing there proves the leg, or another array has the record on every leg in sync, and the pool is not
    /// served without one of them.
    pub(crate) fn loss_is_provable(
        &self,
        record: &MembershipRecord,
        failed: &[(usize, usize, DriveError)],
    ) -> bool {
        let knows = |a: usize| {
            let legs = &record.arrays[a].legs;
            let has = |l: usize| {
                self.arrays[a].legs[l].open.is_some() && !failed.iter().any(|f| (f.0, f.1) == (a, l))
            };
            let known_legs = legs.len().min(self.arrays[a].legs.len());
            legs.iter().all(|l| l.state != LegState::JustOut)
                && legs
                    .iter()
                    .enumerate()
                    .all(|(l, leg)| leg.state != LegState::InSync || l < known_legs && has(l))
        };
        !puts_out(record)
            || self.witness == Witness::Newest
            || self.witness.is_harmless()
            || (0..self.arrays.len()).any(knows)
            || planted(Bug::WitnessOutlives)
    }
    /// Whether each array has a leg in sync that has taken `record`.
    pub(crate) fn is_on_each_array(
        &self,
        record: &MembershipRecord,
        failed: &[(usize, usize, DriveError)],
    ) -> bool {
        let took = |a: usize, l: usize| {
            record.arrays[a].legs.get(l).is_some_and(|leg| leg.state == LegState::InSync)
                && !failed.iter().any(|f| (f.0, f.1) == (a, l))
        };
        let mut arrays = self.arrays.iter().enumerate();
        arrays.all(|(a, x)| x.legs.iter().enumerate().any(|(l, leg)| leg.open.is_some() && took(a, l)))
    }
}

impl Procedures {
    /// Writes the witness.
    pub(crate) async fn write_witness(&self, pool: Uuid, record: &[u8]) -> Result<(), Cause> {
        let name = witness_name(pool);
        let op = StateOp::Write { contents: witness_file(&name, record), name };
        self.change_file(op).await.map_err(|e| state_cause(StateFile::Witness, &e))
    }
    /// The other head led since this one had the latest witnesses: they prove nothing.
    pub(crate) async fn discard_witnesses(&self) -> Result<(), Refusal> {
        let failed = |e| state_refusal(StateFile::OldWitness, &e);
        let all = self.list_files().await.map_err(failed)?;
        for name in all.into_iter().filter(|name| name.starts_with(WITNESS)) {
            self.change_file(StateOp::Remove { name }).await.map_err(failed)?;
        }
        Ok(())
    }
    /// Removes the witness; false if it may still be there.
    pub(crate) async fn remove_witness(&self, pool: Uuid) -> bool {
        self.change_file(StateOp::Remove { name: witness_name(pool) }).await.is_ok()
    }
}
