//! Procedures of a fence at a drive that reports one thing and does another.

use super::*;
use base::NoFence;
use base::fence::{Reservation, ReservationKind};
use std::cell::{Cell, RefCell};

/// A drive of two paths: ours, and another head's.
#[derive(Default)]
struct Fake {
    state: RefCell<Registrants>,
    /// A register is carried out, and said to have failed.
    lies: bool,
    /// Commands that change something do nothing, and say that they did.
    idle: bool,
    /// Before our preempt arrives, we are preempted.
    slow: bool,
    resets: Cell<u32>,
}

fn key(n: u64) -> FenceKey {
    FenceKey::new(n).expect("not zero")
}

impl Fake {
    fn with(keys: &[u64], holder: Option<u64>) -> Self {
        let fake = Self::default();
        fake.state.borrow_mut().keys = sorted(keys.iter().copied());
        fake.hold(holder);
        fake
    }
    fn hold(&self, holder: Option<u64>) {
        let held =
            holder.map(|n| Reservation { holder: Some(key(n)), kind: ReservationKind::ExclusiveRegistrants });
        self.state.borrow_mut().reservation = held;
    }
    fn change(&self, with: impl FnOnce(&mut Registrants)) {
        if !self.idle {
            with(&mut self.state.borrow_mut());
        }
    }
    fn run(&self, act: FenceAct) -> Result<Registrants, FenceError> {
        let closed = AtomicBool::new(false);
        keys(self, act, &Limit { until: Instant::now() + Duration::from_secs(9), closed: &closed })
    }
}

impl Reservations for Fake {
    fn look(&self) -> Result<Registrants, FenceError> {
        Ok(self.state.borrow().clone())
    }
    fn register(&self, key: FenceKey) -> Result<(), FenceError> {
        self.change(|s| {
            s.keys.push(key);
            s.keys.sort_unstable();
        });
        if self.lies { Err(FenceError::Other(libc::EBUSY)) } else { Ok(()) }
    }
    fn unregister(&self, key: FenceKey) -> Result<(), FenceError> {
        self.change(|s| s.keys.retain(|k| *k != key));
        Ok(())
    }
    fn reserve(&self, key: FenceKey) -> Result<(), FenceError> {
        self.change(|_| {});
        if !self.idle {
            self.hold(Some(key.get()));
        }
        Ok(())
    }
    fn preempt(&self, own: FenceKey, victim: FenceKey) -> Result<(), FenceError> {
        if self.slow {
            self.change(|s| s.keys.retain(|k| *k != own));
            self.hold(Some(victim.get()));
            return Err(FenceError::Conflict);
        }
        let held = self.state.borrow().is_held_by(victim);
        self.change(|s| s.keys.retain(|k| *k != victim));
        if held {
            self.hold(Some(own.get()));
        }
        Ok(())
    }
    fn end_commands(&self) -> Result<(), FenceError> {
        self.resets.set(self.resets.get() + 1);
        Ok(())
    }
}

const SHUT_OUT: fn(u64, u64) -> FenceAct =
    |own, victim| FenceAct::ShutOut { key: key(own), victim: key(victim), process: None };

#[test]
fn a_register_that_says_it_failed_is_believed_only_if_no_key_came() {
    let act = FenceAct::Register { key: key(1) };
    let lying = Fake { lies: true, ..Fake::default() };
    assert!(lying.run(act).is_ok_and(|r| r.has(key(1))));
    let refusing = Fake { lies: true, idle: true, ..Fake::default() };
    assert_eq!(refusing.run(act), Err(FenceError::Other(libc::EBUSY)));
    // The key is there by another path of ours: that says nothing of this one.
    let other_path = Fake { lies: true, idle: true, ..Fake::with(&[1], None) };
    assert_eq!(other_path.run(act), Err(FenceError::Other(libc::EBUSY)));
    let silent = Fake { idle: true, ..Fake::default() };
    assert_eq!(silent.run(act), Err(FenceError::NotDone));
}

#[test]
fn a_reservation_is_taken_once_and_never_from_another() {
    let act = FenceAct::Reserve { key: key(1) };
    assert!(Fake::with(&[1, 2], None).run(act).is_ok_and(|r| r.is_held_by(key(1))));
    assert!(Fake::with(&[1, 2], Some(1)).run(act).is_ok_and(|r| r.is_held_by(key(1))));
    assert_eq!(Fake::with(&[1, 2], Some(2)).run(act), Err(FenceError::Conflict));
    assert_eq!(Fake::with(&[2], None).run(act), Err(FenceError::NotRegistered));
    let idle = Fake { idle: true, ..Fake::with(&[1], None) };
    assert_eq!(idle.run(act), Err(FenceError::NotDone));
}

#[test]
fn a_victim_is_shut_out_whoever_holds_and_its_commands_are_ended_last() {
    for holder in [None, Some(1), Some(2)] {
        let drive = Fake::with(&[1, 2, 2], holder);
        let now = drive.run(SHUT_OUT(1, 2)).expect("shut out");
        assert!(now.is_held_by(key(1)) && !now.has(key(2)), "{holder:?}");
        assert_eq!(drive.resets.get(), 1);
        // Again, as after a limit that struck: its commands may not be over.
        drive.run(SHUT_OUT(1, 2)).expect("shut out");
        assert_eq!(drive.resets.get(), 2);
    }
}

#[test]
fn who_was_shut_out_itself_learns_that_and_ends_nobodys_commands() {
    let gone = Fake::with(&[2], Some(2));
    assert_eq!(gone.run(SHUT_OUT(1, 2)), Err(FenceError::NotRegistered));
    let slow = Fake { slow: true, ..Fake::with(&[1, 2], Some(1)) };
    assert_eq!(slow.run(SHUT_OUT(1, 2)), Err(FenceError::NotRegistered));
    let third = Fake::with(&[1, 2, 3], Some(3));
    assert_eq!(third.run(SHUT_OUT(1, 2)), Err(FenceError::Conflict));
    let idle = Fake { idle: true, ..Fake::with(&[1, 2], Some(1)) };
    assert_eq!(idle.run(SHUT_OUT(1, 2)), Err(FenceError::NotDone));
    assert_eq!(idle.run(SHUT_OUT(1, 1)), Err(FenceError::Ourselves));
    for drive in [gone, slow, third, idle] {
        assert_eq!(drive.resets.get(), 0);
    }
}

#[test]
fn a_key_is_taken_back_once() {
    let act = FenceAct::Unregister { key: key(1) };
    let drive = Fake::with(&[1, 2], None);
    for _ in 0..2 {
        assert!(drive.run(act).is_ok_and(|r| !r.has(key(1)) && r.has(key(2))));
    }
    let idle = Fake { idle: true, ..Fake::with(&[1], None) };
    assert_eq!(idle.run(act), Err(FenceError::NotDone));
}

#[test]
fn a_command_is_tried_again_a_bounded_number_of_times_and_not_beyond_its_limit() {
    let closed = AtomicBool::new(false);
    let limit = |ms| Limit { until: Instant::now() + Duration::from_millis(ms), closed: &closed };
    let mut left = 3;
    let attentions = until_answered(&limit(9000), || {
        left -= 1;
        Ok(if left == 0 { Answer::Good } else { Answer::Again { pause: false } })
    });
    assert_eq!((attentions, left), (Ok(()), 0));
    let mut tries = 0;
    let never = until_answered(&limit(9000), || {
        tries += 1;
        Ok(Answer::Again { pause: false })
    });
    assert_eq!((never, tries), (Err(FenceError::Other(libc::EBUSY)), TRIES));
    assert_eq!(until_answered(&limit(0), || panic!("no time is left")), Err(FenceError::TimedOut));
    closed.store(true, Ordering::Relaxed);
    assert_eq!(until_answered(&limit(9000), || panic!("it is let go of")), Err(FenceError::Gone));
}

#[test]
fn what_the_kernel_refuses_has_a_name() {
    let of = |errno| refused(&io::Error::from_raw_os_error(errno));
    assert_eq!(of(libc::EPERM), FenceError::Denied);
    assert_eq!(of(libc::ENODEV), FenceError::Gone);
    assert_eq!(of(libc::ENOTTY), FenceError::None(NoFence::Driver));
    assert_eq!(of(libc::EIO), FenceError::Other(libc::EIO));
}
