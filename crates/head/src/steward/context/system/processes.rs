//! Processes of the other head: on drives that are files, a fence ends the one that it is for.

use base::fence::Process;
use std::collections::VecDeque;

/// Lives of the other head whose processes are remembered.
const LIVES_MAX: usize = 8;

/// Processes by their lives: random names, which say nothing of their order.
#[derive(Default)]
pub(super) struct Processes {
    /// Who was met last comes last.
    met: VecDeque<(u64, Process)>,
}

impl Processes {
    /// A process has beaten. `on_record` is the life that the system's record has of that head, which may be long gone: it is the one that a
    /// fence is for.
    pub fn meet(&mut self, life: u64, process: Process, on_record: u64) {
        self.met.retain(|(known, _)| *known != life);
        self.met.push_back((life, process));
        if self.met.len() > LIVES_MAX {
            let oldest = self.met.iter().position(|(known, _)| *known != on_record);
            self.met.remove(oldest.unwrap_or_default());
        }
    }

    /// The process with this life, if it was met.
    pub fn of(&self, life: u64) -> Option<Process> {
        self.met.iter().find(|(known, _)| *known == life).map(|(_, process)| *process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_and_the_one_on_record_are_known_however_many_there_were() {
        let process = |pid| Process { pid, started: u64::from(pid) };
        for (first, step) in [(1_u64, 1_i64), (1000, -1)] {
            let mut processes = Processes::default();
            for n in 0..100 {
                let life = first.wrapping_add_signed(step * i64::from(n));
                processes.meet(life, process(n), first);
                assert_eq!(processes.of(life), Some(process(n)), "the latest");
                assert_eq!(processes.of(first), Some(process(0)), "the one on record");
            }
            assert!(processes.met.len() <= LIVES_MAX);
        }
    }
}
