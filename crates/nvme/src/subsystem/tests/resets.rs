//! Cross-Controller Reset: which controllers may be named, how many at a time, and when a host hears of their end.

use super::control::{INVALID, identify, log};
use super::*;
use base::front::{ControllerLife, Intervention};

const OTHER: ControllerLife = ControllerLife { id: 8194, uniquifier: 7, random: 0x0123_4567_89ab_cdef };

fn reset(life: ControllerLife) -> Sqe {
    let mut sqe = Sqe::new(admin::CROSS_CONTROLLER_RESET, 0);
    sqe.cdw10 = (u32::from(life.id) | u32::from(life.uniquifier) << 16).into();
    sqe.cdw12 = (life.random as u32).into();
    sqe.cdw13 = ((life.random >> 32) as u32).into();
    sqe
}
fn other(n: u16) -> ControllerLife {
    ControllerLife { id: OTHER.id + n, ..OTHER }
}
fn holding() -> Talk {
    Talk { hold_interventions: true, ..Talk::admin() }
}
/// The oldest intervention is done.
fn done(t: &mut Talk) -> ControllerLife {
    let (key, what) = t.io.interventions.pop_front().expect("it wants something");
    let Intervention::ResetController { life } = what else { panic!("{what:?}") };
    t.target.on_intervened(t.now, key, false, &mut t.io);
    t.settle();
    life
}
/// CIU and CIRN.
fn life(t: &mut Talk) -> (u8, u64) {
    let b = identify(t, 1, 0).expect("Identify Controller");
    (b[135], u64::from_le_bytes(b[136..144].try_into().expect("eight bytes")))
}

#[test]
fn a_reset_is_answered_when_that_controller_is_over_and_says_that_it_was_immediate() {
    let mut t = holding();
    let cid = t.start(reset(OTHER));
    assert!(t.replies.is_empty());
    assert_eq!(done(&mut t), OTHER);
    let cqe = t.cqe();
    assert_eq!((cqe.cid.get(), cqe.status(), cqe.dw0.get()), (cid, StatusField::SUCCESS, 1));
    assert_eq!(log(&mut t, 0x1e, 0, 64), Ok(vec![0; 64]), "none is left to be reported");
    assert_eq!(log(&mut t, 5, 0, 4096).expect("effects")[0x38 * 4], 1);
}

#[test]
fn nobody_resets_the_controller_that_he_speaks_to() {
    let mut t = holding();
    assert_eq!(t.run(reset(ControllerLife { id: 5, ..OTHER })).status(), INVALID);
    assert!(t.io.interventions.is_empty());
    let mut t = Talk::discovery(HOST);
    assert_eq!(t.run(reset(OTHER)).status(), StatusField::INVALID_OPCODE.dnr());
    assert_eq!(log(&mut t, 0x1e, 0, 8), Err(StatusField::INVALID_LOG_PAGE.dnr()));
    let b = identify(&mut t, 1, 0).expect("Identify Controller");
    assert_eq!((b[135], &b[136..144], &b[386..388], b[1807]), (0, &[0; 8][..], &[0; 2][..], 0));
}

#[test]
fn as_many_resets_as_ccrl_says_are_under_way_and_none_of_them_twice() {
    let mut t = holding();
    let cids: Vec<u16> = (0..4).map(|n| t.start(reset(other(n)))).collect();
    assert_eq!(t.run(reset(other(4))).status(), StatusField(0x141));
    assert_eq!(t.run(reset(other(2))).status(), StatusField(0x13f));
    for (n, cid) in (0..).zip(cids) {
        assert_eq!(done(&mut t), other(n));
        assert_eq!(t.cqe().cid.get(), cid);
    }
    t.start(reset(other(2)));
    assert_eq!(done(&mut t), other(2));
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
}

#[test]
fn a_reset_that_takes_too_long_goes_on_and_whoever_asks_again_waits_for_it() {
    let mut t = holding();
    let first = t.start(reset(OTHER));
    t.later(Duration::from_millis(4999));
    assert!(t.replies.is_empty());
    t.later(Duration::from_millis(1));
    let cqe = t.cqe();
    assert_eq!((cqe.cid.get(), cqe.status()), (first, StatusField::INTERNAL_ERROR));
    assert!(!cqe.status().is_dnr(), "the host may ask again");
    let again = t.start(reset(OTHER));
    assert_eq!(t.io.interventions.len(), 1, "it goes on, and is not begun anew");
    assert_eq!(done(&mut t), OTHER);
    let cqe = t.cqe();
    assert_eq!((cqe.cid.get(), cqe.status(), cqe.dw0.get()), (again, StatusField::SUCCESS, 1));
    // Nobody waits for one: its number is free all the same once it is done.
    for n in 0..4 {
        t.start(reset(other(n)));
    }
    t.run(Sqe::new(admin::KEEP_ALIVE, 0));
    t.later(Duration::from_secs(5));
    (0..4).for_each(|_| assert_eq!(t.cqe().status(), StatusField::INTERNAL_ERROR));
    assert_eq!(t.run(reset(other(4))).status(), StatusField::RESET_LIMIT);
    (0..4).for_each(|n| assert_eq!(done(&mut t), other(n)));
    assert!(t.replies.is_empty());
    t.start(reset(other(4)));
    assert_eq!(done(&mut t), other(4));
}

#[test]
fn a_controller_gets_another_name_whenever_it_is_enabled() {
    let mut t = Talk::initialized(NONE, 0);
    assert_eq!(t.connect(connect(0), data(0xffff, NQN, HOST)), StatusField::SUCCESS);
    let mut seen = std::collections::BTreeSet::new();
    for n in 1..=256u16 {
        t.hold_interventions = true;
        let mut p = PropertyFields::of(&Sqe::new(admin::FABRICS, 0));
        p.offset = property::CC.into();
        p.value = u64::from(property::CC_HOST).into();
        t.start(p.sqe());
        let Intervention::BeginQueues { life: given } = t.io.interventions[0].1 else {
            panic!("queues are let in")
        };
        t.hold_interventions = false;
        t.settle();
        assert_eq!(t.cqe().status(), StatusField::SUCCESS);
        let (uniquifier, random) = life(&mut t);
        assert_eq!(given, ControllerLife { id: 5, uniquifier, random }, "hosts and the head know the same");
        assert_eq!(u16::from(uniquifier), if n == 256 { 1 } else { n }, "never 0");
        assert!(seen.insert(random));
        assert_eq!(t.set_property(property::CC, 0, 0), StatusField::SUCCESS);
    }
}
