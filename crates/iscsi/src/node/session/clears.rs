//! What ends tasks of this session from outside: the operator, who takes a unit from the host, and task management of other
//! sessions (SAM-5 5.7, RFC 7143 11.5.1). CLEAR TASK SET, LOGICAL UNIT RESET and TARGET RESET end the tasks of all hosts on a unit. The control mode page says TAS 1, so our
//! host gets TASK ABORTED and tries again; a unit attention reports a reset besides.

use super::{Attentions, Ending, Phase, Session};
use crate::node::transfer::NO_UNIT;
use crate::scsi::Sense;
use base::{Bug, FrontIo, Tag, VolumeId, planted_if};
use std::sync::Arc;

/// A function of another session, until none of the tasks that it meant is at the head.
#[derive(Clone, Debug)]
pub(crate) struct Clear {
    id: u32,
    units: Arc<[VolumeId]>,
    /// The youngest task that was there when it came.
    youngest: u32,
}

impl Session {
    /// Another session has cleared these units. `receiving`: the task whose command is just coming in.
    pub(crate) fn clear(
        &mut self,
        id: u32,
        units: &Arc<[VolumeId]>,
        reset: bool,
        receiving: Option<u32>,
        io: &mut impl FrontIo,
    ) {
        for known in self.units.iter_mut().filter(|u| units.contains(&u.unit.volume)) {
            known.attentions.add(Attentions::RESET, reset);
        }
        self.end_tasks(|volume| units.contains(&volume), Ending::clear, receiving, io);
        self.clears.push(Clear { id, units: units.clone(), youngest: self.generation });
        self.answer_clears(io);
    }

    /// Ends tasks on units that the host does not see any more: what is not at a drive never starts.
    pub(crate) fn end_tasks_of_gone_units(&mut self, receiving: Option<u32>, io: &mut impl FrontIo) {
        let units = core::mem::take(&mut self.units);
        let is_gone =
            |volume| volume != NO_UNIT.volume && units.iter().all(|known| known.unit.volume != volume);
        let differs = || self.tasks.iter().any(|(_, task)| is_gone(task.unit.volume));
        if !planted_if(Bug::UnexportedStarts, differs) {
            self.end_tasks(is_gone, Ending::lose_unit, receiving, io);
        }
        self.units = units;
        self.answer_clears(io);
    }

    /// Ends tasks on the units that are meant, of which nothing more is to be carried out.
    fn end_tasks(
        &mut self,
        is_meant: impl Fn(VolumeId) -> bool,
        note: fn(&mut Ending),
        receiving: Option<u32>,
        io: &mut impl FrontIo,
    ) {
        for slot in 0..self.tasks.capacity() {
            let Some(task) = self.tasks.get_mut(slot).filter(|t| is_meant(t.unit.volume)) else {
                continue;
            };
            match task.phase {
                Phase::Buffer | Phase::Submitted => {
                    note(&mut task.ending);
                    io.abort(Tag(slot as u16));
                }
                // It never starts; it is answered when the data that were asked for have come.
                Phase::Data => {
                    note(&mut task.ending);
                    self.fail(slot, Sense::ABORTED);
                    if receiving != Some(slot) {
                        self.next_data(slot, io);
                    }
                }
                // It has ended, or its own host waits for its end already.
                Phase::Answer | Phase::Aborting { .. } => {}
            }
        }
    }

    /// Answers functions of other sessions whose tasks have all ended at the head.
    pub(crate) fn answer_clears(&mut self, io: &mut impl FrontIo) {
        if self.clears.is_empty() {
            return;
        }
        let mut clears = core::mem::take(&mut self.clears);
        clears.retain(|clear| {
            let waits = self.tasks.iter().any(|(_, task)| {
                matches!(task.phase, Phase::Buffer | Phase::Submitted | Phase::Aborting { .. })
                    && clear.units.contains(&task.unit.volume)
                    && clear.youngest.wrapping_sub(task.generation) < 1 << 31
            });
            if !waits {
                io.intervened(clear.id, true);
            }
            waits
        });
        self.clears = clears;
    }
}
