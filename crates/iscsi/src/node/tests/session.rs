use super::*;
use crate::node::{IDLE_TIME, PING_TIME};
use crate::pdu::{
    LogoutRequest, NopOut, RESERVED_TAG, TaskManagementRequest, TextRequest, function,
    function_response as said,
};
use crate::scsi::status;
use base::VolumeId;
use base::front::{Close, Intervention};
use std::sync::Arc;

fn manage(talk: &mut Talk, function: u8, lun: u16, task: u32) {
    let request = TaskManagementRequest {
        immediate: true,
        function,
        lun: crate::scsi::lun_field(lun),
        task_tag: 900,
        referenced_task_tag: task,
        cmd_sn: talk.cmd_sn,
        ref_cmd_sn: talk.cmd_sn.wrapping_sub(1),
        ..TaskManagementRequest::default()
    };
    talk.send(request.encode(), &[]);
}

fn managed(talk: &mut Talk) -> Option<u8> {
    match talk.hear()? {
        Heard { response: Response::TaskManagement(r), .. } => Some(r.response),
        other => panic!("{other:?}"),
    }
}

fn reading(talk: &mut Talk, lun: u16) -> u32 {
    let mut c = talk.command(lun, &read10(0, 1), 4096);
    c.read = true;
    talk.send(c.encode(), &[]);
    c.task_tag
}

#[test]
fn an_abort_is_answered_after_its_task_has_ended_and_the_task_never() {
    let mut talk = Talk::ready(&[]);
    talk.prompt = false;
    let task = reading(&mut talk, 0);
    manage(&mut talk, function::ABORT_TASK, 0, task);
    assert_eq!(managed(&mut talk), None, "the task is still at the head");
    talk.end_one();
    talk.settle();
    assert_eq!(managed(&mut talk), Some(said::COMPLETE));
    assert_eq!(talk.hear(), None);
    manage(&mut talk, function::ABORT_TASK, 0, task);
    assert_eq!(managed(&mut talk), Some(said::NO_TASK));
    talk.no_leaks();
}

#[test]
fn a_reset_of_one_unit_ends_that_units_tasks_only() {
    let mut talk = Talk::ready(&[]);
    talk.prompt = false;
    reading(&mut talk, 0);
    let other = reading(&mut talk, 300);
    reading(&mut talk, 0);
    manage(&mut talk, function::LUN_RESET, 0, RESERVED_TAG);
    talk.end_one();
    talk.settle();
    assert_eq!(managed(&mut talk), None);
    talk.end_one();
    assert_eq!(talk.answer_of(other).0.status, 0, "the other unit's command goes on");
    talk.end_one();
    talk.settle();
    assert_eq!(managed(&mut talk), Some(said::COMPLETE));
    talk.prompt = true;
    let (r, data) = talk.simple(0, &[0; 6], 0);
    assert_eq!((r.status, Talk::sense(&data)), (2, (6, 0x29, 3)));
    assert_eq!(talk.simple(300, &[0; 6], 0).0.status, 0);
    talk.no_leaks();
}

#[test]
fn an_abort_while_data_are_awaited_is_answered_at_once_and_late_data_are_dropped() {
    let mut talk = Talk::ready(&[("ImmediateData", "No")]);
    let mut c = talk.command(0, &write10(0, 1), 512);
    c.write = true;
    talk.send(c.encode(), &[]);
    let Some(Heard { response: Response::R2t(r2t), .. }) = talk.hear() else { panic!("no R2T") };
    manage(&mut talk, function::ABORT_TASK_SET, 0, RESERVED_TAG);
    assert_eq!(managed(&mut talk), Some(said::COMPLETE));
    talk.data_out(c.task_tag, r2t.transfer_tag, 0, 0, true, &[1; 512]);
    assert_eq!((talk.io.closed, talk.hear()), (None, None));
    assert_eq!(talk.simple(0, &[0; 6], 0).0.status, 0);
    assert_eq!(talk.disks[0][..512], [0; 512]);
    talk.no_leaks();
}

#[test]
fn an_abort_of_a_task_that_waits_for_its_buffer_waits_for_the_head() {
    let mut talk = Talk::ready(&[]);
    talk.io.withholds_buffers = true;
    let task = reading(&mut talk, 0);
    manage(&mut talk, function::CLEAR_TASK_SET, 0, task);
    assert_eq!(managed(&mut talk), None);
    let tag = talk.io.take_aborted().expect("it waits");
    talk.connection.on_done(talk.now, tag, base::Status::Aborted, &mut talk.io);
    talk.settle();
    assert_eq!(managed(&mut talk), Some(said::COMPLETE));
    talk.no_leaks();
}

#[test]
fn functions_that_cannot_be_say_so() {
    let mut talk = Talk::ready(&[]);
    for (function, lun, want) in [
        (function::ABORT_TASK, 0, said::NO_TASK),
        (function::LUN_RESET, 9, said::NO_LUN),
        (function::ABORT_TASK_SET, 9, said::NO_LUN),
        (function::TASK_REASSIGN, 0, said::NO_REASSIGN),
        (function::CLEAR_ACA, 0, said::NOT_SUPPORTED),
        (99, 0, said::NOT_SUPPORTED),
        (function::TARGET_WARM_RESET, 0, said::COMPLETE),
    ] {
        manage(&mut talk, function, lun, 4711);
        assert_eq!(managed(&mut talk), Some(want), "{function}");
    }
    manage(&mut talk, function::TARGET_COLD_RESET, 0, RESERVED_TAG);
    assert_eq!(managed(&mut talk), Some(said::NOT_AUTHORIZED), "it would end the sessions of all hosts");
    assert_eq!(talk.io.closed, None);
}

#[test]
fn what_ends_the_tasks_of_all_hosts_is_answered_when_other_sessions_have_done_it() {
    let both: Arc<[VolumeId]> = [VolumeId(0), VolumeId(1)].into();
    let one: Arc<[VolumeId]> = [VolumeId(1)].into();
    for (function, lun, intervention) in [
        (function::ABORT_TASK_SET, 300, None),
        (function::CLEAR_TASK_SET, 300, Some(Intervention::ClearTasks { units: one.clone(), reset: false })),
        (function::LUN_RESET, 300, Some(Intervention::ClearTasks { units: one, reset: true })),
        (function::TARGET_WARM_RESET, 0, Some(Intervention::ClearTasks { units: both, reset: true })),
    ] {
        let mut talk = Talk::ready(&[]);
        talk.agreeable = false;
        manage(&mut talk, function, lun, RESERVED_TAG);
        let asked = talk.io.interventions.pop_front();
        assert_eq!(asked.as_ref().map(|(_, what)| what), intervention.as_ref(), "{function}");
        if let Some((key, _)) = asked {
            assert_eq!(managed(&mut talk), None, "{function}");
            talk.connection.on_intervened(talk.now, key, true, &mut talk.io);
            talk.settle();
        }
        assert_eq!(managed(&mut talk), Some(said::COMPLETE), "{function}");
    }
}

/// Another session clears the unit with LUN 0.
fn clear(talk: &mut Talk, id: u32, reset: bool) {
    let what = Intervention::ClearTasks { units: [VolumeId(0)].into(), reset };
    talk.connection.on_intervention(talk.now, id, &what, &mut talk.io);
    talk.settle();
}

#[test]
fn another_sessions_reset_ends_tasks_with_task_aborted_and_a_unit_attention() {
    let mut talk = Talk::ready(&[]);
    talk.prompt = false;
    let (gone, stays) = (reading(&mut talk, 0), reading(&mut talk, 300));
    clear(&mut talk, 9, true);
    let later = reading(&mut talk, 300);
    assert_eq!(talk.io.obeyed, [], "its task is still at the head");
    talk.end_one();
    assert_eq!(talk.answer_of(gone).0.status, status::TASK_ABORTED);
    assert_eq!(talk.io.obeyed, [(9, true)]);
    talk.prompt = true;
    talk.settle();
    for task in [stays, later] {
        assert_eq!(talk.answer_of(task).0.status, status::GOOD, "another unit's");
    }
    let (response, sense) = talk.simple(0, &[0; 6], 0);
    assert_eq!((response.status, sense[4], sense[14..16].to_vec()), (2, 6, vec![0x29, 3]), "{sense:?}");
    assert_eq!(talk.simple(0, &[0; 6], 0).0.status, 0);
    talk.no_leaks();
}

#[test]
fn a_cleared_task_that_ended_well_says_so_and_a_clear_leaves_no_attention() {
    let mut talk = Talk::ready(&[]);
    talk.prompt = false;
    let task = reading(&mut talk, 0);
    clear(&mut talk, 1, false);
    clear(&mut talk, 2, false);
    talk.io.stopped.clear();
    talk.end_one();
    assert_eq!(talk.answer_of(task).0.status, status::GOOD);
    assert_eq!(talk.io.obeyed, [(1, true), (2, true)]);
    talk.prompt = true;
    assert_eq!(talk.simple(0, &[0; 6], 0).0.status, 0);
    talk.no_leaks();
}

#[test]
fn a_cleared_write_ends_when_its_data_have_come_and_is_not_carried_out() {
    // The R2T is out; in the middle of its immediate data; while it waits for a buffer.
    let mut talk = Talk::ready(&[("ImmediateData", "No")]);
    let mut c = talk.command(0, &write10(0, 1), 512);
    c.write = true;
    talk.send(c.encode(), &[]);
    let Some(Heard { response: Response::R2t(r2t), .. }) = talk.hear() else { panic!("no R2T") };
    clear(&mut talk, 5, true);
    assert_eq!(talk.io.obeyed, [(5, true)], "nothing of it is at a drive, and nothing will be");
    assert_eq!(talk.hear(), None);
    talk.data_out(c.task_tag, r2t.transfer_tag, 0, 0, true, &[1; 512]);
    assert_eq!(talk.answer_of(c.task_tag).0.status, status::TASK_ABORTED);
    talk.no_leaks();

    for generous in [true, false] {
        let mut talk = Talk::ready(&[("ImmediateData", "Yes")]);
        let mut c = talk.command(0, &write10(0, 1), 512);
        c.write = true;
        let mut bytes = vec![];
        talk.framing.put(&mut bytes, c.encode(), &[1; 512]);
        talk.io.withholds_buffers = !generous;
        talk.feed(&bytes[..200]);
        clear(&mut talk, 6, true);
        assert_eq!(!talk.io.obeyed.is_empty(), generous);
        if let Some(tag) = talk.io.take_aborted() {
            talk.connection.on_done(talk.now, tag, base::Status::Aborted, &mut talk.io);
        }
        talk.feed(&bytes[200..]);
        assert_eq!(talk.answer_of(c.task_tag).0.status, status::TASK_ABORTED);
        assert_eq!(talk.io.obeyed, [(6, true)]);
        assert_eq!(talk.disks[0][..512], [0; 512]);
        talk.no_leaks();
    }
}

#[test]
fn the_window_closes_with_the_slots_and_management_still_passes() {
    let mut talk = Talk::ready(&[]);
    talk.prompt = false;
    let mut tasks = vec![];
    for _ in 0..16 {
        tasks.push(reading(&mut talk, 0));
    }
    // 24 slots less 8 for immediate commands: the seventeenth is outside of the window.
    let mut c = talk.command(0, &read10(0, 1), 512);
    c.read = true;
    talk.send(c.encode(), &[]);
    assert_eq!((talk.hear(), talk.io.submitted.len()), (None, 16));
    let ping = NopOut {
        immediate: true,
        task_tag: 7,
        transfer_tag: RESERVED_TAG,
        cmd_sn: talk.cmd_sn - 1,
        ..NopOut::default()
    };
    talk.send(ping.encode(), b"are you there");
    let Some(Heard { response: Response::NopIn(pong), data }) = talk.hear() else { panic!("no pong") };
    assert_eq!((pong.task_tag, data.as_slice()), (7, &b"are you there"[..]));
    assert_eq!(pong.counters.max_cmd_sn.wrapping_add(1), pong.counters.exp_cmd_sn, "the window is closed");
    talk.end_one();
    let (response, _) = talk.answer_of(tasks[0]);
    assert_eq!(response.counters.max_cmd_sn, response.counters.exp_cmd_sn, "one command may come");
    talk.send(c.encode(), &[]);
    assert_eq!(talk.io.submitted.len(), 16);
}

#[test]
fn commands_outside_of_the_window_are_ignored_and_a_gap_ends_the_connection() {
    let mut talk = Talk::ready(&[]);
    for off in [u32::MAX, 1000, 1 << 31] {
        let mut c = talk.command(0, &[0; 6], 0);
        talk.cmd_sn -= 1;
        c.cmd_sn = c.cmd_sn.wrapping_add(off);
        talk.send(c.encode(), &[]);
        assert_eq!((talk.hear(), talk.io.closed), (None, None));
    }
    assert_eq!(talk.simple(0, &[0; 6], 0).0.status, 0);
    talk.cmd_sn += 1;
    let c = talk.command(0, &[0; 6], 0);
    talk.send(c.encode(), &[]);
    assert!(matches!(talk.io.closed, Some(Close::Protocol(_))));
}

#[test]
fn immediate_commands_do_not_count_and_are_limited() {
    let mut talk = Talk::ready(&[]);
    talk.prompt = false;
    for i in 0..9 {
        let mut c = talk.command(0, &read10(0, 1), 512);
        talk.cmd_sn -= 1;
        c.immediate = true;
        c.read = true;
        talk.send(c.encode(), &[]);
        match talk.hear() {
            None => assert!(i < 8),
            Some(Heard { response: Response::Reject(r), data }) => {
                assert_eq!((i, r.reason, data.len()), (8, 6, 48));
            }
            other => panic!("{other:?}"),
        }
    }
    let task = talk.tag - 9;
    talk.end_one();
    assert_eq!(talk.answer_of(task).0.status, 0);
}

#[test]
fn a_task_tag_in_use_is_rejected_and_the_first_task_goes_on() {
    let mut talk = Talk::ready(&[]);
    talk.prompt = false;
    let task = reading(&mut talk, 0);
    let mut c = talk.command(0, &write10(0, 1), 512);
    c.task_tag = task;
    c.write = true;
    talk.send(c.encode(), &[1; 512]);
    let Some(Heard { response: Response::Reject(r), .. }) = talk.hear() else { panic!("no reject") };
    assert_eq!(r.reason, 7);
    talk.end_one();
    assert_eq!(talk.answer_of(task).0.status, 0);
}

#[test]
fn unit_attentions_report_what_changed_once() {
    let mut talk = Talk::ready(&[]);
    talk.io.view.hosts[0].exports[0].blocks += 10;
    talk.connection.on_view(talk.now, &mut talk.io);
    let (_, data) = talk.simple(0, &[0; 6], 0);
    assert_eq!(Talk::sense(&data), (6, 0x2a, 9));
    assert_eq!(talk.simple(0, &[0; 6], 0).0.status, 0);
    // A unit more: the others report that the list changed, until the list is read.
    let mut more = talk.io.view.hosts[0].exports[0].clone();
    more.lun = 5;
    talk.io.view.hosts[0].exports.push(more);
    talk.connection.on_view(talk.now, &mut talk.io);
    let (_, data) = talk.simple(0, &[0; 6], 0);
    assert_eq!(Talk::sense(&data), (6, 0x3f, 0x0e));
    let (_, list) = talk.simple(0, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], 256);
    assert_eq!(list[..4], [0, 0, 0, 24]);
    assert_eq!(talk.simple(300, &[0; 6], 0).0.status, 0, "reading the list reported it for all");
    let (_, data) = talk.simple(5, &[0; 6], 0);
    assert_eq!(Talk::sense(&data), (6, 0x29, 0));
    // A unit less.
    talk.io.view.hosts[0].exports.remove(0);
    talk.connection.on_view(talk.now, &mut talk.io);
    let (_, data) = talk.simple(0, &[0; 6], 0);
    assert_eq!(Talk::sense(&data), (5, 0x25, 0));
    let (r, data) = talk.simple(0, &[0x12, 0, 0, 0, 96, 0], 96);
    assert_eq!((r.status, data[0]), (0, 0x3f));
    talk.io.view.hosts.clear();
    talk.connection.on_view(talk.now, &mut talk.io);
    assert_eq!(talk.io.closed, Some(Close::Replaced));
}

/// Data that came after an `unexport` were written all the same.
#[test]
fn tasks_on_a_unit_that_is_taken_away_start_no_more() {
    let mut talk = Talk::ready(&[("ImmediateData", "No")]);
    talk.prompt = false;
    let mut waits = talk.command(0, &write10(0, 1), 512);
    waits.write = true;
    talk.send(waits.encode(), &[]);
    let Some(Heard { response: Response::R2t(r2t), .. }) = talk.hear() else { panic!("no R2T") };
    let mut at_head = talk.command(0, &read10(0, 1), 512);
    at_head.read = true;
    talk.send(at_head.encode(), &[]);
    let mut other = talk.command(300, &read10(0, 1), 4096);
    other.read = true;
    talk.send(other.encode(), &[]);
    talk.io.view.hosts[0].exports.remove(0);
    talk.connection.on_view(talk.now, &mut talk.io);
    talk.settle();
    assert_eq!(talk.io.stopped.len(), 1, "the head is to start no more of the one that it has");
    talk.data_out(waits.task_tag, r2t.transfer_tag, 0, 0, true, &[1; 512]);
    talk.end_one();
    talk.end_one();
    let ends: Vec<(u32, u8)> = talk
        .hear_all()
        .into_iter()
        .filter_map(|heard| match heard.response {
            Response::ScsiResponse(r) => Some((r.task_tag, r.status)),
            Response::DataIn(d) => d.status.map(|status| (d.task_tag, status)),
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    const REFUSED: u8 = crate::scsi::status::CHECK_CONDITION;
    assert_eq!(ends, [(waits.task_tag, REFUSED), (at_head.task_tag, REFUSED), (other.task_tag, 0)]);
    assert!(talk.log.iter().all(|c| c.op != base::Op::Write), "late data belong to nobody");
    talk.no_leaks();
}

#[test]
fn request_sense_reports_and_ends_a_unit_attention() {
    let mut talk = Talk::new();
    talk.login(&[]);
    let (r, data) = talk.simple(0, &[0x03, 0, 0, 0, 18, 0], 18);
    assert_eq!((r.status, data[2], data[12]), (0, 6, 0x29));
    assert_eq!(talk.simple(0, &[0; 6], 0).0.status, 0);
}

#[test]
fn a_silent_initiator_is_pinged_and_then_left() {
    let mut talk = Talk::ready(&[]);
    let at = talk.connection.next_deadline().expect("a deadline");
    assert_eq!(at, talk.now + IDLE_TIME);
    talk.connection.on_timer(at, &mut talk.io);
    let Some(Heard { response: Response::NopIn(ping), .. }) = talk.hear() else { panic!("no ping") };
    assert_ne!(ping.transfer_tag, RESERVED_TAG);
    assert_eq!(ping.task_tag, RESERVED_TAG);
    talk.now = at;
    let pong = NopOut {
        immediate: true,
        task_tag: RESERVED_TAG,
        transfer_tag: ping.transfer_tag,
        cmd_sn: talk.cmd_sn,
        ..NopOut::default()
    };
    talk.send(pong.encode(), &[]);
    assert_eq!(talk.hear(), None);
    let at = talk.connection.next_deadline().expect("a deadline");
    assert_eq!(at, talk.now + IDLE_TIME);
    talk.connection.on_timer(at, &mut talk.io);
    talk.connection.on_timer(at + PING_TIME, &mut talk.io);
    assert_eq!(talk.io.closed, Some(Close::KeepAlive));
}

#[test]
fn data_that_do_not_come_end_the_connection() {
    let mut talk = Talk::ready(&[("ImmediateData", "No")]);
    let mut c = talk.command(0, &write10(0, 1), 512);
    c.write = true;
    talk.send(c.encode(), &[]);
    talk.hear().expect("an R2T");
    // The host goes on talking, and still owes its data.
    for _ in 0..10 {
        talk.now = talk.now + base::Duration::from_secs(10);
        if talk.connection.next_deadline().is_some_and(|at| at <= talk.now) {
            talk.connection.on_timer(talk.now, &mut talk.io);
            break;
        }
        talk.feed(&[0x40]);
    }
    assert_eq!(talk.io.closed, Some(Close::Slow));
}

#[test]
fn a_logout_ends_tasks_first() {
    let mut talk = Talk::ready(&[]);
    talk.prompt = false;
    reading(&mut talk, 0);
    let logout = LogoutRequest { task_tag: 9, cmd_sn: talk.cmd_sn, ..LogoutRequest::default() };
    talk.send(logout.encode(), &[]);
    assert_eq!(talk.hear(), None);
    talk.end_one();
    talk.settle();
    assert!(matches!(talk.hear(), Some(Heard { response: Response::Logout(_), .. })));
    assert_eq!(talk.io.closed, Some(Close::Logout));
}

#[test]
fn a_logout_of_a_connection_that_is_not_there_says_so_and_ends_nothing() {
    let mut talk = Talk::ready(&[]);
    for (reason, cid, response) in [(1, 9, 1), (2, 9, 2), (2, 0, 2)] {
        let cmd_sn = talk.cmd_sn;
        talk.cmd_sn += 1;
        let logout = LogoutRequest { reason, cid, task_tag: 9, cmd_sn, ..LogoutRequest::default() };
        talk.send(logout.encode(), &[]);
        let Some(Heard { response: Response::Logout(answer), .. }) = talk.hear() else { panic!("no answer") };
        assert_eq!((answer.response, answer.task_tag), (response, 9));
        assert_eq!(talk.io.closed, None);
    }
    assert_eq!(talk.simple(0, &read10(0, 4), 2048).1.len(), 2048, "the session goes on");
    let cmd_sn = talk.cmd_sn;
    let logout = LogoutRequest { reason: 1, cid: 0, task_tag: 9, cmd_sn, ..LogoutRequest::default() };
    talk.send(logout.encode(), &[]);
    let Some(Heard { response: Response::Logout(answer), .. }) = talk.hear() else { panic!("no answer") };
    assert_eq!(answer.response, 0);
    assert_eq!(talk.io.closed, Some(Close::Logout));
}

#[test]
fn a_ping_comes_back_as_far_as_the_bounds_go() {
    for (declared, sent, back) in
        [(65536, 0, 0), (65536, 4096, 4096), (65536, 100_000, 4096), (512, 4096, 512)]
    {
        let declared = declared.to_string();
        let mut talk = Talk::ready(&[("MaxRecvDataSegmentLength", declared.as_str())]);
        let ping = NopOut {
            immediate: true,
            task_tag: 7,
            transfer_tag: RESERVED_TAG,
            cmd_sn: talk.cmd_sn,
            ..NopOut::default()
        };
        let data: Vec<u8> = (0..sent).map(|i| (i % 251) as u8).collect();
        talk.send(ping.encode(), &data);
        let Some(Heard { response: Response::NopIn(answer), data: echo }) = talk.hear() else {
            panic!("no answer")
        };
        assert_eq!((answer.task_tag, answer.transfer_tag), (7, RESERVED_TAG));
        assert!(echo == data[..back], "{sent} bytes: {} came back", echo.len());
    }
}

#[test]
fn texts_of_a_session_name_its_own_target_and_declare_lengths() {
    let mut talk = Talk::ready(&[]);
    let mut ask = |text: &[u8]| {
        let request = TextRequest {
            last: true,
            task_tag: 5,
            transfer_tag: RESERVED_TAG,
            cmd_sn: talk.cmd_sn,
            ..TextRequest::default()
        };
        talk.cmd_sn += 1;
        talk.send(request.encode(), text);
        let Some(Heard { response: Response::Text(_), data }) = talk.hear() else { panic!("no answer") };
        String::from_utf8(data).expect("text")
    };
    assert!(ask(b"SendTargets=\0").contains("TargetAddress=127.0.0.1:3260,1"));
    assert_eq!(ask(b"SendTargets=All\0"), "SendTargets=Reject\0");
    assert_eq!(ask(b"MaxRecvDataSegmentLength=512\0X-what=1\0"), "X-what=NotUnderstood\0");
    let (_, data) = talk.simple(0, &read10(0, 4), 2048);
    assert_eq!(data.len(), 2048);
}
