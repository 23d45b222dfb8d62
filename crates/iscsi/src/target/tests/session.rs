use super::*;
use crate::pdu::{
    LogoutRequest, NopOut, RESERVED_TAG, TaskManagementRequest, TextRequest, function,
    function_response as said,
};
use crate::target::{IDLE_TIME, PING_TIME};
use base::front::Close;

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
    assert_eq!(talk.io.disks.lock().expect("alive")[0][..512], [0; 512]);
    talk.no_leaks();
}

#[test]
fn an_abort_of_a_task_that_waits_for_its_buffer_waits_for_the_head() {
    let mut talk = Talk::ready(&[]);
    talk.io.generous = false;
    let task = reading(&mut talk, 0);
    manage(&mut talk, function::CLEAR_TASK_SET, 0, task);
    assert_eq!(managed(&mut talk), None);
    let tag = talk.io.give_up().expect("it waits");
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
    assert_eq!(managed(&mut talk), Some(said::COMPLETE));
    assert!(talk.io.closed.is_some(), "a cold reset ends the connection");
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
    assert_eq!((talk.hear(), talk.io.running.len()), (None, 16));
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
    assert_eq!(talk.io.running.len(), 16);
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
        (c.immediate, c.read) = (true, true);
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
    (c.task_tag, c.write) = (task, true);
    talk.send(c.encode(), &[1; 512]);
    let Some(Heard { response: Response::Reject(r), .. }) = talk.hear() else { panic!("no reject") };
    assert_eq!(r.reason, 7);
    talk.end_one();
    assert_eq!(talk.answer_of(task).0.status, 0);
}

#[test]
fn unit_attentions_tell_what_changed_once() {
    let mut talk = Talk::ready(&[]);
    talk.io.view.hosts[0].exports[0].blocks += 10;
    talk.connection.on_view(talk.now, &mut talk.io);
    let (_, data) = talk.simple(0, &[0; 6], 0);
    assert_eq!(Talk::sense(&data), (6, 0x2a, 9));
    assert_eq!(talk.simple(0, &[0; 6], 0).0.status, 0);
    // A unit more: the others tell that the list changed, until the list is read.
    let mut more = talk.io.view.hosts[0].exports[0].clone();
    more.lun = 5;
    talk.io.view.hosts[0].exports.push(more);
    talk.connection.on_view(talk.now, &mut talk.io);
    let (_, data) = talk.simple(0, &[0; 6], 0);
    assert_eq!(Talk::sense(&data), (6, 0x3f, 0x0e));
    let (_, list) = talk.simple(0, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], 256);
    assert_eq!(list[..4], [0, 0, 0, 24]);
    assert_eq!(talk.simple(300, &[0; 6], 0).0.status, 0, "reading the list told it for all");
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

#[test]
fn request_sense_tells_and_ends_a_unit_attention() {
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
