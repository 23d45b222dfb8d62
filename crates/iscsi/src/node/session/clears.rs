//! Task management of other sessions that ends tasks of this one (SAM-5 5.7, RFC 7143 11.5.1): CLEAR TASK SET, LOGICAL UNIT
//! RESET and TARGET RESET end the tasks of all hosts on a unit. The control mode page says TAS 1, so our
//! host gets TASK ABORTED and tries again; a unit attention reports a reset besides.

use super::{Attentions, Phase, Session};
use crate::scsi::Sense;
use base::{FrontIo, Tag, VolumeId};
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
        for slot in 0..self.tasks.capacity() {
            let Some(task) = self.tasks.get_mut(slot).filter(|t| units.contains(&t.unit.volume)) else {
                continue;
            };
            match task.phase {
                Phase::Buffer | Phase::Submitted => {
                    task.ending.clear();
                    io.abort(Tag(slot as u16));
                }
                // It never starts; it is answered when the data that were asked for have come.
                Phase::Data => {
                    task.ending.clear();
                    self.fail(slot, Sense::ABORTED);
                    if receiving != Some(slot) {
                        self.next_data(slot, io);
                    }
                }
                // It has ended, or its own host waits for its end already.
                Phase::Answer | Phase::Aborting { .. } => {}
            }
        }
        self.clears.push(Clear { id, units: units.clone(), youngest: self.generation });
        self.answer_clears(io);
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
