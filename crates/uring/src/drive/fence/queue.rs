//! The queue of a drive's fence: who waits, what runs, and whether the drive is stuck. All of it lies behind one lock.

use std::collections::VecDeque;

/// Operations of one drive, in order.
pub(super) struct Queue<J> {
    waiting: VecDeque<(u64, J)>,
    running: Option<Running>,
    /// A worker was asked for, and has not ended. It may start late.
    worker: bool,
    asked: u64,
}

struct Running {
    id: u64,
    /// Who asked for it has given up: it has outlived its limit.
    late: bool,
}

/// What became of an operation that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// An earlier one has outlived its limit and has not ended.
    Stuck,
    Queued {
        id: u64,
        worker: Worker,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Worker {
    /// The caller starts one, which begins operations until there are none.
    Needed,
    There,
}

impl<J> Default for Queue<J> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), running: None, worker: false, asked: 0 }
    }
}

impl<J> Queue<J> {
    /// An operation is asked for.
    pub fn ask(&mut self, job: J) -> Asked {
        if self.running.as_ref().is_some_and(|r| r.late) {
            return Asked::Stuck;
        }
        self.asked += 1;
        self.waiting.push_back((self.asked, job));
        let worker = if self.worker { Worker::There } else { Worker::Needed };
        self.worker = true;
        Asked::Queued { id: self.asked, worker }
    }

    /// The worker has ended what it did, and begins the next one. None: there is none, and it ends.
    pub fn begin(&mut self) -> Option<J> {
        let next = self.waiting.pop_front();
        self.running = next.as_ref().map(|(id, _)| Running { id: *id, late: false });
        self.worker = next.is_some();
        next.map(|(_, job)| job)
    }

    /// Who asked for this one waits no longer: it is not begun any more, or the drive is stuck until it ends.
    pub fn give_up(&mut self, id: u64) {
        self.waiting.retain(|(waits, _)| *waits != id);
        if let Some(running) = self.running.as_mut().filter(|r| r.id == id) {
            running.late = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps that threads take, each under the lock.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Step {
        Ask,
        /// A worker that was asked for starts, or one ends what it does.
        Work,
        /// Who asked for this one gives up.
        GiveUp(u64),
    }

    /// The queue and who there is beside it.
    #[derive(Default)]
    struct Model {
        queue: Queue<u64>,
        /// Workers that were asked for and have not ended.
        workers: u32,
        asked: u64,
        /// Operations whose askers wait.
        wait: Vec<u64>,
        runs: Option<u64>,
        done: Vec<u64>,
    }

    impl Model {
        fn steps(&self) -> Vec<Step> {
            let mut steps: Vec<Step> = self.wait.iter().map(|id| Step::GiveUp(*id)).collect();
            steps.extend((self.workers > 0).then_some(Step::Work));
            steps.extend((self.asked < 3).then_some(Step::Ask));
            steps
        }
        fn take(&mut self, step: Step) {
            match step {
                Step::Ask => {
                    self.asked += 1;
                    let overdue = self.runs.is_some_and(|id| !self.wait.contains(&id));
                    match self.queue.ask(self.asked) {
                        Asked::Stuck => assert!(overdue, "nothing that outlived its limit runs"),
                        Asked::Queued { id, worker } => {
                            assert!(!overdue, "it would wait behind what outlived its limit");
                            self.workers += u32::from(worker == Worker::Needed);
                            self.wait.push(id);
                        }
                    }
                }
                Step::Work => {
                    if let Some(id) = self.runs.take() {
                        self.wait.retain(|waits| *waits != id);
                        self.done.push(id);
                    }
                    match self.queue.begin() {
                        Some(_) => self.runs = self.queue.running.as_ref().map(|r| r.id),
                        None => self.workers -= 1,
                    }
                    if let Some(id) = self.runs {
                        assert!(self.wait.contains(&id), "nobody waits for it: it is not begun");
                    }
                }
                Step::GiveUp(id) => {
                    self.queue.give_up(id);
                    self.wait.retain(|waits| *waits != id);
                }
            }
            assert!(self.workers <= 1, "two at once");
            let begun = |id: &u64| self.runs == Some(*id);
            assert!(self.workers == 1 || self.wait.iter().all(begun), "nobody works for who waits");
        }
    }

    /// Takes every order of steps: a thread may be late at each of them.
    fn explore(before: &mut Vec<Step>, seen: &mut u32) {
        let mut model = Model::default();
        before.iter().for_each(|step| model.take(*step));
        let steps = model.steps();
        if steps.is_empty() {
            *seen += 1;
            let mut after = model;
            while after.workers > 0 {
                after.take(Step::Work);
            }
            after.asked = 0;
            after.take(Step::Ask);
            assert_eq!(
                (after.workers, after.wait.len()),
                (1, 1),
                "the drive can be fenced again: {before:?}"
            );
        }
        for step in steps {
            before.push(step);
            explore(before, seen);
            before.pop();
        }
    }

    #[test]
    fn whoever_is_late_the_drive_is_fenced_again() {
        let mut seen = 0;
        explore(&mut vec![], &mut seen);
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn an_operation_that_outlives_its_limit_holds_up_others_until_it_ends() {
        let mut queue = Queue::default();
        assert_eq!(queue.ask('a'), Asked::Queued { id: 1, worker: Worker::Needed });
        assert_eq!(queue.begin(), Some('a'));
        assert_eq!(queue.ask('b'), Asked::Queued { id: 2, worker: Worker::There });
        queue.give_up(1);
        assert_eq!(queue.ask('c'), Asked::Stuck);
        assert_eq!(queue.begin(), Some('b'));
        assert_eq!(queue.ask('d'), Asked::Queued { id: 3, worker: Worker::There });
    }

    #[test]
    fn a_worker_that_starts_after_the_limit_leaves_no_stuck_drive() {
        let mut queue = Queue::default();
        queue.ask('a');
        queue.give_up(1);
        assert_eq!(queue.begin(), None);
        assert_eq!(queue.ask('b'), Asked::Queued { id: 2, worker: Worker::Needed });
    }
}
