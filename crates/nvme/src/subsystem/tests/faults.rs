//! Hosts that break the protocol, are slow, or fall silent.

use super::*;
use crate::pdu::fes;
use crate::spec::nvm;

fn long_write() -> (Talk, Transfer) {
    let mut t = Talk::io(NONE, 0);
    let mut sqe = ranged(nvm::WRITE, 1, 0, 4);
    sqe.sgl = Sgl::transport(2048);
    t.start(sqe);
    let r2t = t.r2t();
    (t, r2t)
}

#[test]
fn two_gigabytes_announced_are_answered_at_once() {
    let mut t = Talk::io(NONE, 0);
    t.send(&[4, 0, 72, 72, 0, 0, 0, 0x80]);
    let reply = t.replies.back().expect("a TermReq").clone();
    assert_eq!(t.term(), (fes::INVALID_FIELD, 4));
    // It quotes what was wrong.
    assert_eq!(reply.data, [4, 0, 72, 72, 0, 0, 0, 0x80]);
}

#[test]
fn headers_that_make_no_sense_end_the_connection() {
    let broken = |at: usize, value: u8| {
        let mut t = Talk::io(BOTH, 0);
        let mut bytes = encode::command(&Sqe::new(0, 9), 0, BOTH, 0).to_vec();
        bytes[at] = value;
        t.send(&bytes);
        t.term()
    };
    assert_eq!(broken(0, 5), (fes::INVALID_FIELD, 0));
    assert_eq!(broken(0, 0xff), (fes::INVALID_FIELD, 0));
    assert_eq!(broken(1, 0), (fes::INVALID_FIELD, 1));
    assert_eq!(broken(2, 24), (fes::INVALID_FIELD, 2));
    assert_eq!(broken(4, 8), (fes::INVALID_FIELD, 4));
    assert_eq!(broken(30, 1).0, fes::HEADER_DIGEST);
}

#[test]
fn a_capsule_beyond_ioccsz_ends_the_connection() {
    let mut t = Talk::io(NONE, 0);
    let mut sqe = ranged(nvm::WRITE, 1, 0, 17);
    sqe.sgl = Sgl::in_capsule(17 * 512);
    t.capsule(&sqe, &[0; 17 * 512]);
    assert_eq!(t.term(), (fes::INVALID_FIELD, 4));
}

#[test]
fn data_that_nobody_asked_for_end_the_connection() {
    let case = |change: fn(&mut Transfer), last: bool| {
        let (mut t, mut transfer) = long_write();
        transfer.length = 1024;
        change(&mut transfer);
        let data = vec![0; transfer.length as usize];
        t.h2c(transfer, last, &data);
        assert!(t.done.is_empty());
        t.term()
    };
    assert_eq!(case(|t| t.ttag += 1, false), (fes::INVALID_FIELD, 10));
    assert_eq!(case(|t| t.ttag = 0xffff, false), (fes::INVALID_FIELD, 10));
    assert_eq!(case(|t| t.cccid += 1, false), (fes::INVALID_FIELD, 8));
    assert_eq!(case(|t| t.offset = 1024, false), (fes::INVALID_FIELD, 12));
    assert_eq!(case(|t| t.offset = 1028, false), (fes::OUT_OF_RANGE, 0));
    assert_eq!(case(|t| t.offset = u32::MAX, false), (fes::OUT_OF_RANGE, 0));
    assert_eq!(case(|t| t.length = 4096, false), (fes::OUT_OF_RANGE, 0));
    assert_eq!(case(|t| t.length = 0, false), (fes::INVALID_FIELD, 12));
    assert_eq!(case(|_| (), true), (fes::INVALID_FIELD, 1), "the last before the end");
    assert_eq!(case(|t| t.length = 2048, false), (fes::INVALID_FIELD, 1), "the end is not the last");
}

#[test]
fn data_after_the_end_of_a_transfer_end_the_connection() {
    let (mut t, r2t) = long_write();
    t.h2c(r2t, true, &[0; 2048]);
    t.cqe();
    t.h2c(r2t, true, &[0; 2048]);
    assert_eq!(t.term(), (fes::INVALID_FIELD, 10));
}

#[test]
fn data_before_connect_are_out_of_sequence() {
    let mut t = Talk::initialized(NONE, 0);
    t.h2c(Transfer { length: 4, ..Transfer::default() }, true, &[0; 4]);
    assert_eq!(t.term(), (fes::SEQUENCE, 0));
}

#[test]
fn more_commands_than_entries_end_the_connection() {
    let mut t = Talk::io(NONE, 0);
    t.hold = true;
    let mut flush = Sqe::new(nvm::FLUSH, 0);
    flush.nsid = 1.into();
    for _ in 0..32 {
        t.start(flush);
    }
    assert_eq!(t.io.closed, None);
    t.start(flush);
    assert_eq!(t.term(), (fes::LIMIT, 0));
}

#[test]
fn a_host_that_ends_the_connection_gets_no_answer() {
    let mut t = Talk::io(NONE, 0);
    t.send(&encode::term(2, crate::pdu::Term { fes: 1, fei: 0 }, &[1; 128]));
    assert!(t.replies.is_empty() && matches!(t.io.closed, Some(Close::Protocol(_))));
}

#[test]
fn bytes_after_the_end_are_swallowed() {
    let mut t = Talk::io(NONE, 0);
    t.send(&[0xff; 5000]);
    assert_eq!(t.term(), (fes::INVALID_FIELD, 0));
    assert_eq!(t.target.want(), Want::Nothing);
    assert!(t.staged.is_empty());
}

#[test]
fn announced_data_must_come_in_time() {
    let (mut t, r2t) = long_write();
    t.later(Duration::from_secs(29));
    t.h2c(Transfer { length: 1024, ..r2t }, false, &[0; 1024]);
    assert_eq!(t.io.closed, None);
    t.later(Duration::from_secs(2));
    assert_eq!(t.io.closed, Some(Close::Slow));
}

#[test]
fn a_younger_transfer_has_its_own_time() {
    let (mut t, first) = long_write();
    t.later(Duration::from_secs(20));
    let mut sqe = ranged(nvm::WRITE, 1, 8, 4);
    sqe.sgl = Sgl::transport(2048);
    t.start(sqe);
    let second = t.r2t();
    t.h2c(first, true, &[0; 2048]);
    t.cqe();
    t.later(Duration::from_secs(20));
    assert_eq!(t.io.closed, None);
    t.h2c(second, true, &[0; 2048]);
    t.cqe();
    t.later(Duration::from_secs(1000));
    assert_eq!(t.io.closed, None);
    assert_eq!(t.target.next_deadline(), None);
}

#[test]
fn half_a_header_must_be_followed_by_the_other_half() {
    let mut t = Talk::io(NONE, 0);
    t.send(&[4, 0, 72]);
    t.later(Duration::from_secs(29));
    assert_eq!(t.io.closed, None);
    t.send(&[0]);
    t.later(Duration::from_secs(1));
    assert_eq!(t.io.closed, Some(Close::Slow));
}

#[test]
fn half_a_capsule_must_be_followed_by_the_other_half() {
    let mut t = Talk::io(NONE, 0);
    let mut sqe = ranged(nvm::WRITE, 1, 0, 16);
    sqe.sgl = Sgl::in_capsule(8192);
    t.send(&encode::command(&sqe, 8192, NONE, 0));
    t.send(&[0; 100]);
    t.later(Duration::from_secs(30));
    assert_eq!(t.io.closed, Some(Close::Slow));
}

#[test]
fn an_idle_io_queue_lives_for_ever() {
    let mut t = Talk::io(NONE, 0);
    assert_eq!(t.target.next_deadline(), None);
    t.later(Duration::from_secs(100_000));
    assert_eq!(t.io.closed, None);
}

#[test]
fn keep_alive_runs_out_in_silence_only() {
    let mut t = Talk::admin();
    for _ in 0..5 {
        t.later(Duration::from_secs(5));
        assert_eq!(t.run(Sqe::new(admin::KEEP_ALIVE, 0)).status(), StatusField::SUCCESS);
    }
    t.later(Duration::from_millis(6999));
    assert_eq!(t.io.closed, None);
    t.later(Duration::from_millis(1));
    assert_eq!(t.io.closed, Some(Close::KeepAlive));
}

#[test]
fn keep_alive_does_not_run_out_while_we_do_not_listen() {
    let mut t = Talk::admin();
    t.io.withholds_buffers = true;
    t.hold_grants = true;
    let mut sqe = Sqe::new(admin::SET_FEATURES, 700);
    sqe.cdw10 = 0x16.into();
    sqe.sgl = Sgl::in_capsule(512);
    t.capsule(&sqe, &[0; 512]);
    t.start(Sqe::new(admin::KEEP_ALIVE, 0));
    for _ in 0..10 {
        t.later(Duration::from_secs(5));
    }
    assert_eq!(t.io.closed, None);
    t.hold_grants = false;
    t.settle();
    assert_eq!((t.cqe().status(), t.cqe().status()), (StatusField::SUCCESS, StatusField::SUCCESS));
    t.later(Duration::from_secs(7));
    assert_eq!(t.io.closed, Some(Close::KeepAlive));
}
