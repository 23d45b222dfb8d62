//! Registrations with a simulated drive.

use base::{FenceAct, FenceError, FenceKey};
use sim::registrants::Registrations;

fn key(n: u64) -> FenceKey {
    FenceKey::new(n).expect("not zero")
}
fn shut_out(key: FenceKey, victim: FenceKey) -> FenceAct {
    FenceAct::ShutOut { key, victim, process: None }
}

#[test]
fn who_is_not_registered_is_kept_out_only_while_somebody_holds() {
    let mut drive = Registrations::default();
    assert!(drive.admits(0) && drive.admits(1));
    drive.carry_out(0, FenceAct::Register { key: key(1) }).expect("registered");
    assert!(drive.admits(1), "a key alone keeps nobody out");
    let held = drive.carry_out(0, FenceAct::Reserve { key: key(1) }).expect("reserved");
    assert!(held.is_held_by(key(1)) && drive.admits(0) && !drive.admits(1));
    // Anybody may register, and is in again.
    drive.carry_out(1, FenceAct::Register { key: key(2) }).expect("registered");
    assert!(drive.admits(1));
    assert_eq!(drive.carry_out(1, FenceAct::Reserve { key: key(2) }), Err(FenceError::Conflict));
    let left = drive.carry_out(0, FenceAct::Unregister { key: key(1) }).expect("unregistered");
    assert_eq!((left.reservation, left.keys), (None, vec![key(2)]));
}

#[test]
fn a_victim_is_shut_out_whoever_held_and_only_by_a_registrant() {
    for holder in [0, 1] {
        let mut drive = Registrations::default();
        for nexus in [0, 1] {
            let act = FenceAct::Register { key: key(1 + u64::from(nexus)) };
            drive.carry_out(nexus, act).expect("registered");
        }
        drive.carry_out(holder, FenceAct::Reserve { key: key(1 + u64::from(holder)) }).expect("reserved");
        assert_eq!(drive.carry_out(2, shut_out(key(9), key(2))), Err(FenceError::NotRegistered));
        for _ in 0..2 {
            let now = drive.carry_out(0, shut_out(key(1), key(2))).expect("shut out");
            assert!(now.is_held_by(key(1)) && now.keys == [key(1)]);
        }
        assert!(drive.admits(0) && !drive.admits(1));
        assert_eq!(drive.carry_out(1, shut_out(key(2), key(1))), Err(FenceError::NotRegistered));
        assert_eq!(drive.carry_out(0, shut_out(key(1), key(1))), Err(FenceError::Ourselves));
    }
}

#[test]
fn nobody_takes_what_a_third_holds() {
    let mut drive = Registrations::default();
    for nexus in [0, 1, 2] {
        let act = FenceAct::Register { key: key(1 + u64::from(nexus)) };
        drive.carry_out(nexus, act).expect("registered");
    }
    drive.carry_out(2, FenceAct::Reserve { key: key(3) }).expect("reserved");
    let before = drive.clone();
    assert_eq!(drive.carry_out(0, shut_out(key(1), key(2))), Err(FenceError::Conflict));
    assert_eq!(drive, before, "an error changes nothing");
}
