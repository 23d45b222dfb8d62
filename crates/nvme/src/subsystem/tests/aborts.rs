//! Abort, reset, shutdown and ACRE: what an admin queue asks of I/O queues, and what they do.

use super::*;
use crate::spec::nvm;
use base::NvmeFault;
use base::front::Intervention;

fn abort(queue: u16, cid: u16) -> Sqe {
    let mut sqe = Sqe::new(admin::ABORT, 0);
    sqe.cdw10 = (u32::from(queue) | u32::from(cid) << 16).into();
    sqe
}

/// The admin queue of this I/O queue's controller aborts `cid`.
fn obey(t: &mut Talk, id: u32, cid: u16) {
    let what = Intervention::AbortCommand { queue: 1, cid };
    t.target.on_intervention(t.now, id, &what, &mut t.io);
    t.settle();
}

fn write(t: &mut Talk, sgl: Sgl) -> u16 {
    let mut sqe = ranged(nvm::WRITE, 1, 0, 4);
    sqe.sgl = sgl;
    t.start(sqe)
}

const ABORTED: StatusField = StatusField::ABORT_REQUESTED;

#[test]
fn an_abort_is_answered_when_the_io_queue_has_and_says_whether_it_was_one() {
    for (yes, dw0) in [(true, 0), (false, 1)] {
        let mut t = Talk::admin();
        t.hold_interventions = true;
        let cid = t.start(abort(3, 77));
        assert_eq!(t.io.interventions[0].1, Intervention::AbortCommand { queue: 3, cid: 77 });
        assert!(t.replies.is_empty());
        t.hold_interventions = false;
        t.yes = yes;
        t.settle();
        let cqe = t.cqe();
        assert_eq!((cqe.cid.get(), cqe.status(), cqe.dw0.get()), (cid, StatusField::SUCCESS, dw0));
    }
}

#[test]
fn more_aborts_than_acl_says_are_refused() {
    let mut t = Talk::admin();
    t.hold_interventions = true;
    let cids: Vec<u16> = (0..4).map(|i| t.start(abort(1, i))).collect();
    assert_eq!(t.run(abort(1, 9)).status(), StatusField::ABORT_LIMIT);
    t.hold_interventions = false;
    t.settle();
    for cid in cids {
        assert_eq!(t.cqe().cid.get(), cid);
    }
    assert_eq!(t.run(abort(1, 9)).status(), StatusField::SUCCESS);
}

#[test]
fn a_command_with_the_head_is_aborted_by_the_head_and_waited_for() {
    for (end, status, yes) in [(Status::Aborted, ABORTED, true), (Status::Good, StatusField::SUCCESS, false)]
    {
        let mut t = Talk::io(NONE, 0);
        t.hold = true;
        let cid = t.start(ranged(nvm::WRITE_ZEROES, 1, 0, 8));
        obey(&mut t, 1, cid);
        obey(&mut t, 2, cid);
        assert_eq!((t.io.stopped.len(), t.io.obeyed.len()), (1, 0), "asked once, and not over yet");
        t.complete(Some(end));
        t.settle();
        let cqe = t.cqe();
        assert_eq!((cqe.cid.get(), cqe.status()), (cid, status));
        assert_eq!(t.io.obeyed, [(1, yes), (2, yes)]);
    }
}

#[test]
fn a_command_of_many_steps_stops_at_an_abort() {
    let mut t = Talk::io(NONE, 0);
    t.hold = true;
    let mut flush = Sqe::new(nvm::FLUSH, 0);
    flush.nsid = 0xffff_ffff.into();
    let cid = t.start(flush);
    obey(&mut t, 1, cid);
    t.complete(Some(Status::Good));
    t.complete(Some(Status::Aborted));
    t.settle();
    assert_eq!(t.cqe().status(), ABORTED);
    assert_eq!(t.io.obeyed, [(1, true)]);
}

#[test]
fn a_command_that_waits_for_a_buffer_never_gets_one() {
    for sgl in [Sgl::transport(2048), Sgl::in_capsule(2048)] {
        let mut t = Talk::io(NONE, 0);
        t.io.withholds_buffers = true;
        t.hold_grants = true;
        let cid = if sgl.kind == Sgl::IN_CAPSULE {
            let mut sqe = ranged(nvm::WRITE, 1, 0, 4);
            t.cid += 1;
            sqe.cid = t.cid.into();
            sqe.sgl = sgl;
            t.capsule(&sqe, &[7; 2048]);
            t.cid
        } else {
            write(&mut t, sgl)
        };
        assert!(t.replies.is_empty());
        obey(&mut t, 4, cid);
        assert_eq!(t.cqe().status(), ABORTED);
        assert_eq!(t.io.obeyed, [(4, true)]);
        // The stream goes on behind it.
        let mut flush = Sqe::new(nvm::FLUSH, 0);
        flush.nsid = 1.into();
        assert_eq!(t.run(flush).status(), StatusField::SUCCESS);
        assert!(t.done.iter().all(|c| c.op == Op::Flush));
    }
}

#[test]
fn a_write_whose_data_are_awaited_is_answered_at_once_and_late_data_are_dropped() {
    for came in [0, 512, 1536] {
        let mut t = Talk::io(BOTH, 0);
        let cid = write(&mut t, Sgl::transport(2048));
        let r2t = t.r2t();
        let part = |offset, length| Transfer { offset, length, ..r2t };
        if came > 0 {
            t.h2c(part(0, came), false, &vec![1; came as usize]);
        }
        obey(&mut t, 8, cid);
        assert_eq!(t.cqe().status(), ABORTED);
        assert_eq!(t.io.obeyed, [(8, true)]);
        // The next command has the same identifier, and in the end the same slot; what the host had sent of the first
        // comes then.
        let mut sqe = ranged(nvm::WRITE, 1, 0, 4);
        sqe.sgl = Sgl::transport(2048);
        sqe.cid = cid.into();
        for _ in 0..130 {
            t.capsule(&sqe, &[]);
            let next = t.r2t();
            assert_ne!(next.ttag, r2t.ttag);
            if next.ttag & 0x7f == r2t.ttag & 0x7f {
                t.h2c(part(came, 2048 - came), true, &vec![2; 2048 - came as usize]);
                assert!(t.replies.is_empty());
            }
            t.h2c(next, true, &[3; 2048]);
            assert_eq!(t.cqe().status(), StatusField::SUCCESS);
        }
        assert_eq!(&t.disk[..2048], &[3; 2048]);
        assert_eq!(t.done.len(), 130);
    }
}

#[test]
fn more_late_data_than_were_asked_for_break_the_protocol() {
    let mut t = Talk::io(NONE, 0);
    let cid = write(&mut t, Sgl::transport(2048));
    let r2t = t.r2t();
    obey(&mut t, 8, cid);
    t.h2c(r2t, true, &[1; 2048]);
    assert_eq!((t.cqe().status(), t.io.closed), (ABORTED, None));
    t.h2c(Transfer { length: 4, ..r2t }, true, &[1; 4]);
    assert_eq!(t.io.closed, Some(Close::Protocol(NvmeFault::TransferTag.into())));
}

#[test]
fn an_abort_in_the_midst_of_a_pdu_waits_for_its_end() {
    let mut t = Talk::io(NONE, 0);
    let cid = write(&mut t, Sgl::transport(2048));
    let r2t = t.r2t();
    let mut pdu = encode::h2c_data(Transfer { length: 1024, ..r2t }, false, NONE, 0).to_vec();
    pdu.extend([5; 1024]);
    t.send(&pdu[..500]);
    obey(&mut t, 8, cid);
    assert!(t.replies.is_empty() && t.io.obeyed.is_empty());
    t.send(&pdu[500..]);
    assert_eq!((t.cqe().status(), t.io.obeyed.as_slice()), (ABORTED, &[(8, true)][..]));
    t.h2c(Transfer { offset: 1024, length: 1024, ..r2t }, true, &[1; 1024]);
    assert_eq!((t.replies.len(), t.done.len(), t.io.closed), (0, 0, None));
}

#[test]
fn a_write_in_line_for_its_r2t_is_answered_instead() {
    let mut t = Talk::io(NONE, 0);
    t.stuck = true;
    let mut flush = Sqe::new(nvm::FLUSH, 0);
    flush.nsid = 1.into();
    let mut flushes = 0;
    while t.io.room() > 320 {
        t.start(flush);
        flushes += 1;
    }
    t.start(flush);
    let cid = write(&mut t, Sgl::transport(2048));
    obey(&mut t, 3, cid);
    assert!(t.io.obeyed.is_empty(), "there is no room for the answer");
    t.stuck = false;
    t.settle();
    t.replies.drain(..flushes + 1);
    assert_eq!((t.cqe().status(), t.replies.len()), (ABORTED, 0));
    assert_eq!(t.io.obeyed, [(3, true)]);
}

#[test]
fn what_is_over_or_was_never_there_is_not_aborted() {
    let mut t = Talk::io(NONE, 0);
    let cid = t.start(ranged(nvm::WRITE_ZEROES, 1, 0, 8));
    assert_eq!(t.cqe().cid.get(), cid);
    obey(&mut t, 1, cid);
    obey(&mut t, 2, 4711);
    assert_eq!(t.io.obeyed, [(1, false), (2, false)]);
    // A queue that has not connected yet.
    let mut t = Talk::initialized(NONE, 0);
    obey(&mut t, 3, 1);
    assert_eq!(t.io.obeyed, [(3, false)]);
}

#[test]
fn csts_says_ready_when_io_queues_are_let_in() {
    let mut t = Talk::initialized(NONE, 0);
    assert_eq!(t.connect(connect(0), data(0xffff, NQN, HOST)), StatusField::SUCCESS);
    t.hold_interventions = true;
    let mut p = PropertyFields::of(&Sqe::new(admin::FABRICS, 0));
    p.offset = property::CC.into();
    p.value = u64::from(property::CC_HOST).into();
    let cid = t.start(p.sqe());
    assert!(matches!(t.io.interventions[0].1, Intervention::BeginQueues { .. }));
    assert_eq!(t.get_property(property::CSTS, 0), Ok(0));
    t.hold_interventions = false;
    t.settle();
    assert_eq!((t.cqe().cid.get(), t.get_property(property::CSTS, 0)), (cid, Ok(1)));
}

#[test]
fn csts_says_that_a_reset_is_over_when_the_io_queues_have_ended() {
    let mut t = Talk::admin();
    t.hold_interventions = true;
    assert_eq!(t.set_property(property::CC, 0, 0), StatusField::SUCCESS);
    assert_eq!(t.io.interventions[0].1, Intervention::EndQueues);
    assert_eq!(t.get_property(property::CSTS, 0), Ok(1), "still ready");
    let refused = t.run(Sqe::new(admin::KEEP_ALIVE, 0)).status();
    assert_eq!(refused, StatusField::COMMAND_SEQUENCE.dnr(), "but not for commands");
    t.hold_interventions = false;
    t.settle();
    assert_eq!(t.get_property(property::CSTS, 0), Ok(0));
    t.enable();
}

#[test]
fn a_host_that_enables_too_early_gets_its_controller_when_the_reset_is_over() {
    let mut t = Talk::admin();
    t.hold_interventions = true;
    t.set_property(property::CC, 0, 0);
    t.set_property(property::CC, 0, u64::from(property::CC_HOST));
    let keep_alive = Sqe::new(admin::KEEP_ALIVE, 0);
    assert_eq!(t.run(keep_alive).status(), StatusField::COMMAND_SEQUENCE.dnr());
    t.hold_interventions = false;
    t.settle();
    assert_eq!(t.get_property(property::CSTS, 0), Ok(1));
    assert_eq!(t.run(keep_alive).status(), StatusField::SUCCESS);
}

#[test]
fn csts_says_that_a_shutdown_is_over_when_the_io_queues_have_ended() {
    let mut t = Talk::admin();
    t.hold_interventions = true;
    let shut = u64::from(property::CC_HOST) | 1 << 14;
    t.set_property(property::CC, 0, shut);
    assert_eq!(t.get_property(property::CSTS, 0), Ok(1 | 1 << 2), "shutdown occurring");
    // Written again it is the same shutdown.
    t.set_property(property::CC, 0, shut);
    assert_eq!(t.io.interventions.len(), 1);
    // And then the reset: both wait.
    t.set_property(property::CC, 0, shut & !1);
    assert_eq!(t.io.interventions.len(), 2);
    let (key, _) = t.io.interventions.pop_front().expect("one");
    t.target.on_intervened(t.now, key, false, &mut t.io);
    assert_eq!(t.get_property(property::CSTS, 0), Ok(1 | 1 << 2));
    t.hold_interventions = false;
    t.settle();
    assert_eq!(t.get_property(property::CSTS, 0), Ok(2 << 2));
}

#[test]
fn a_retry_delay_is_reported_only_where_acre_was_enabled() {
    let status = |enabled: Option<bool>| {
        let mut t = Talk::io(NONE, 0);
        if let Some(enabled) = enabled {
            let what = Intervention::RetryDelay { enabled };
            t.target.on_intervention(t.now, 1, &what, &mut t.io);
            assert_eq!(t.io.obeyed, [(1, true)]);
        }
        t.hold = true;
        t.start(ranged(nvm::WRITE_ZEROES, 1, 0, 8));
        t.complete(Some(Status::NotReady));
        t.settle();
        t.cqe().status()
    };
    let patience = StatusField::NAMESPACE_NOT_READY;
    assert_eq!(
        (status(None), status(Some(false)), status(Some(true))),
        (patience, patience, patience.crd(1))
    );
}

#[test]
fn host_behavior_is_answered_when_the_io_queues_know_it() {
    let mut t = Talk::admin();
    t.hold_interventions = true;
    let mut sqe = Sqe::new(admin::SET_FEATURES, 0);
    sqe.cdw10 = 0x16.into();
    sqe.cid = 99.into();
    sqe.sgl = Sgl::in_capsule(512);
    let mut behavior = vec![0; 512];
    behavior[0] = 1;
    t.capsule(&sqe, &behavior);
    assert_eq!(t.io.interventions[0].1, Intervention::RetryDelay { enabled: true });
    assert!(t.replies.is_empty());
    t.hold_interventions = false;
    t.settle();
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
    t.hold_interventions = true;
    assert_eq!(t.write(sqe, &behavior), StatusField::SUCCESS, "nothing new to report");
}

const GONE: StatusField = StatusField::INVALID_NAMESPACE.dnr();

/// Data that came after an `unexport` were written all the same, to whatever had the namespace id by then.
#[test]
fn commands_on_a_namespace_that_is_taken_away_start_no_more() {
    let orders: [fn(&mut View); 2] =
        [|v| v.hosts[0].exports.retain(|e| e.nsid != 1), |v| v.hosts[0].exports[0].volume = VolumeId(77)];
    for order in orders {
        let mut t = Talk::io(NONE, 0);
        let waits = write(&mut t, Sgl::transport(2048));
        let r2t = t.r2t();
        t.hold = true;
        let at_head = t.start(ranged(nvm::WRITE_ZEROES, 1, 0, 8));
        let mut other = Sqe::new(nvm::FLUSH, 0);
        other.nsid = 2.into();
        let other = t.start(other);
        t.new_view(order);
        assert_eq!(t.io.stopped.len(), 1, "the head is to start no more of the one that it has");
        let cqe = t.cqe();
        assert_eq!((cqe.cid.get(), cqe.status()), (waits, GONE));
        t.complete(Some(Status::Aborted));
        t.hold = false;
        t.h2c(r2t, true, &[1; 2048]);
        let ends = [(); 2].map(|()| t.cqe()).map(|cqe| (cqe.cid.get(), cqe.status()));
        assert_eq!(ends, [(at_head, GONE), (other, StatusField::SUCCESS)]);
        assert!(t.done.iter().all(|c| c.op != Op::Write), "late data belong to nobody");
    }
}
