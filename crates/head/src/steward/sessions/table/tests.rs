//! Who is let in, waits and is ended, at one head and at two.

use super::*;
use base::view::{Host, View};
use base::{Effect, VolumeId};

pub(super) fn place(n: u32) -> Place {
    Place { shard: 0, connection: ConnectionId::new(n, 0) }
}
fn login(tsih: u16) -> Ask {
    let initiator = "iqn.2026-01.test:a".into();
    Ask::Iscsi { principal: None, initiator, isid: [1; 6], tsih, discovery: false }
}
pub(super) fn admin(id: u8) -> Ask {
    Ask::NvmeAdmin { principal: None, nqn: "nqn.a".into(), host_id: [id; 16], discovery: false }
}
fn io(queue: u16) -> Ask {
    Ask::NvmeIo { principal: None, controller: 1, nqn: "nqn.a".into(), host_id: [1; 16], queue }
}
#[test]
fn a_host_that_comes_from_one_head_to_the_other_gets_ids_that_it_never_had() {
    let ids = |index: usize| {
        let (mut s, mut fx) = (Sessions::default(), vec![]);
        s.of_head(index);
        for n in 1..=3 {
            s.on_ask(place(n), PortalId(0), admin(n as u8), &mut fx);
            s.on_ask(place(10 + n), PortalId(0), login(0), &mut fx);
            s.on_gone(place(10 + n), &mut fx);
        }
        // All are given once before the first one comes again.
        for n in 4..=u32::from(CONTROLLERS_MAX) {
            s.on_ask(place(1000 + n), PortalId(0), admin(n as u8), &mut fx);
        }
        s.on_ask(place(1), PortalId(0), admin(0), &mut fx);
        assert!(told(&mut fx).last().is_some_and(|t| t.ends_with("Full")));
        s.on_gone(place(2), &mut fx);
        s.on_ask(place(2), PortalId(0), admin(0), &mut fx);
        let again = told(&mut fx).pop().expect("an answer");
        let controllers: Vec<u16> = s.controllers.keys().copied().collect();
        (again, controllers[0], controllers[controllers.len() - 1], s.last_session)
    };
    assert_eq!(ids(0), ("2 Admitted { id: 2 }".into(), 1, 8192, 3));
    assert_eq!(ids(1), ("2 Admitted { id: 8194 }".into(), 8193, 16_384, 8195));
}
/// A controller at place 1, with its first I/O queues at 2 and 3.
fn with_two_queues() -> (Sessions, Effects<Mail>) {
    let (mut s, mut fx) = (Sessions::default(), vec![]);
    s.on_ask(place(1), PortalId(0), admin(1), &mut fx);
    enable(&mut s, 1);
    s.on_ask(place(2), PortalId(0), io(1), &mut fx);
    s.on_ask(place(3), PortalId(0), io(2), &mut fx);
    told(&mut fx);
    (s, fx)
}
/// The host enables the controller of this admin queue.
pub(super) fn enable(s: &mut Sessions, n: u32) -> ControllerLife {
    let mut fx = vec![];
    let id = s.controllers.iter().find(|(_, c)| c.places[0] == place(n)).map_or(0, |(id, _)| *id);
    let life = ControllerLife { id, uniquifier: 1, random: u64::from(n) };
    s.on_intervene(place(n), 99, Intervention::BeginQueues { life }, &mut fx);
    assert_eq!(told(&mut fx), [format!("{n}: 99 is done, false")]);
    life
}
pub(super) fn told(fx: &mut Effects<Mail>) -> Vec<String> {
    let text = |e: Effect<Mail>| match e {
        Effect::Mail { mail: Mail::Shard(ShardMail::Answer { connection, answer }), .. } => {
            format!("{} {answer:?}", connection.slot())
        }
        Effect::Mail { mail: Mail::Shard(ShardMail::Drop { connection, .. }), .. } => {
            format!("drop {}", connection.slot())
        }
        Effect::Mail { mail: Mail::Shard(ShardMail::Obey { connection, what, .. }), .. } => {
            let what = match what {
                Intervention::AbortCommand { cid, .. } => format!("shall abort {cid}"),
                Intervention::RetryDelay { enabled } => format!("may delay {enabled}"),
                Intervention::ClearTasks { .. } => "shall clear".into(),
                Intervention::BeginQueues { .. }
                | Intervention::EndQueues
                | Intervention::ResetController { .. } => "shall not hear of it".into(),
            };
            format!("{} {what}", connection.slot())
        }
        Effect::Mail { mail: Mail::Shard(ShardMail::Intervened { connection, key, yes }), .. } => {
            format!("{}: {key} is done, {yes}", connection.slot())
        }
        other => format!("{other:?}"),
    };
    fx.drain(..).map(text).collect()
}

#[test]
fn a_session_is_reinstated_after_the_writes_of_the_old_one_have_ended() {
    let (mut s, mut fx) = (Sessions::default(), vec![]);
    s.on_ask(place(1), PortalId(0), login(0), &mut fx);
    assert_eq!(told(&mut fx), ["1 Admitted { id: 1 }"]);
    s.on_ask(place(2), PortalId(0), login(0), &mut fx);
    assert_eq!(told(&mut fx), ["drop 1"]);
    s.on_gone(place(1), &mut fx);
    assert_eq!(told(&mut fx), ["2 Admitted { id: 2 }"]);
    s.on_ask(place(3), PortalId(0), login(9), &mut fx);
    assert_eq!(told(&mut fx), ["3 Unknown"], "there is no such session to join");
}

#[test]
fn who_waits_also_waits_for_what_begins_to_end_meanwhile() {
    let (mut s, mut fx) = with_two_queues();
    s.on_ending(place(3), false, &mut fx);
    s.on_ask(place(4), PortalId(0), admin(1), &mut fx);
    assert_eq!(told(&mut fx), [""; 0], "it waits for the queue that ends");
    s.on_ending(place(1), false, &mut fx);
    assert_eq!(told(&mut fx), ["drop 2", "drop 3"]);
    s.on_gone(place(1), &mut fx);
    s.on_gone(place(3), &mut fx);
    assert_eq!(told(&mut fx), [""; 0], "writes of the other queue may still be at the drives");
    s.on_gone(place(2), &mut fx);
    assert_eq!(told(&mut fx), ["4 Admitted { id: 2 }"]);
}

#[test]
fn a_lost_queue_takes_the_others_along_but_for_the_admin_queue_and_the_next_connect_waits_for_all() {
    let (mut s, mut fx) = with_two_queues();
    s.on_ending(place(2), true, &mut fx);
    assert_eq!(told(&mut fx), ["drop 3"]);
    s.on_ask(place(4), PortalId(0), admin(1), &mut fx);
    s.on_ask(place(5), PortalId(0), io(1), &mut fx);
    s.on_gone(place(2), &mut fx);
    s.on_ending(place(3), true, &mut fx);
    assert_eq!(told(&mut fx), [""; 0], "what the other queue sent may still be at the drives");
    s.on_gone(place(3), &mut fx);
    assert_eq!(told(&mut fx), ["4 Admitted { id: 2 }", "5 Admitted { id: 1 }"]);
}

#[test]
fn a_queue_that_lives_is_not_replaced_and_one_that_ends_is_waited_for() {
    let (mut s, mut fx) = with_two_queues();
    s.on_ask(place(9), PortalId(0), io(1), &mut fx);
    assert_eq!(told(&mut fx), ["9 Taken"], "and nothing else happens");
    s.on_gone(place(9), &mut fx);
    s.on_ending(place(2), false, &mut fx);
    s.on_ask(place(4), PortalId(0), io(1), &mut fx);
    s.on_ask(place(9), PortalId(0), io(1), &mut fx);
    assert_eq!(told(&mut fx), ["9 Taken"], "the one that waits comes first");
    let abort = Intervention::AbortCommand { queue: 1, cid: 7 };
    s.on_intervene(place(1), 5, abort, &mut fx);
    assert_eq!(told(&mut fx), ["4 shall abort 7"]);
    s.on_gone(place(2), &mut fx);
    assert_eq!(told(&mut fx), ["4 Admitted { id: 1 }"]);
    s.on_gone(place(4), &mut fx);
    assert_eq!(told(&mut fx), ["1: 5 is done, false"], "its commands are over with it");
}

#[test]
fn io_queues_come_only_while_their_controller_is_enabled() {
    let (mut s, mut fx) = (Sessions::default(), vec![]);
    let io =
        || Ask::NvmeIo { principal: None, controller: 1, nqn: "nqn.a".into(), host_id: [1; 16], queue: 1 };
    s.on_ask(place(1), PortalId(0), admin(1), &mut fx);
    told(&mut fx);
    for _ in 0..2 {
        s.on_ask(place(2), PortalId(0), io(), &mut fx);
        assert_eq!(told(&mut fx), ["2 Disabled"]);
        enable(&mut s, 1);
        s.on_ask(place(2), PortalId(0), io(), &mut fx);
        assert_eq!(told(&mut fx), ["2 Admitted { id: 1 }"]);
        s.on_intervene(place(1), 4, Intervention::EndQueues, &mut fx);
        s.on_gone(place(2), &mut fx);
        assert_eq!(told(&mut fx), ["drop 2", "1: 4 is done, false"]);
    }
}

#[test]
fn what_an_admin_queue_wants_is_done_by_the_queues_of_its_controller() {
    let (mut s, mut fx) = (Sessions::default(), vec![]);
    let io = |controller, id, queue| Ask::NvmeIo {
        principal: None,
        controller,
        nqn: "nqn.a".into(),
        host_id: [id; 16],
        queue,
    };
    s.on_ask(place(1), PortalId(0), admin(1), &mut fx);
    s.on_ask(place(2), PortalId(0), admin(2), &mut fx);
    enable(&mut s, 1);
    enable(&mut s, 2);
    s.on_ask(place(3), PortalId(0), io(1, 1, 1), &mut fx);
    s.on_ask(place(4), PortalId(0), io(1, 1, 2), &mut fx);
    s.on_ask(place(5), PortalId(0), io(2, 2, 1), &mut fx);
    told(&mut fx);
    s.on_intervene(place(1), 1, Intervention::AbortCommand { queue: 2, cid: 9 }, &mut fx);
    s.on_intervene(place(1), 2, Intervention::AbortCommand { queue: 3, cid: 9 }, &mut fx);
    assert_eq!(told(&mut fx), ["4 shall abort 9", "1: 2 is done, false"]);
    s.on_obeyed(place(4), 3, true, &mut fx);
    assert_eq!(told(&mut fx), ["1: 1 is done, true"]);
    s.on_intervene(place(1), 3, Intervention::RetryDelay { enabled: true }, &mut fx);
    assert_eq!(told(&mut fx), ["3 may delay true", "4 may delay true"]);
    s.on_obeyed(place(3), 5, true, &mut fx);
    assert!(told(&mut fx).is_empty());
    s.on_obeyed(place(4), 5, true, &mut fx);
    assert_eq!(told(&mut fx), ["1: 3 is done, true"]);
    s.on_ask(place(6), PortalId(0), io(1, 1, 3), &mut fx);
    assert_eq!(told(&mut fx), ["6 Admitted { id: 1 }", "6 may delay true"], "as those before it");
    s.on_intervene(place(1), 4, Intervention::EndQueues, &mut fx);
    assert_eq!(told(&mut fx), ["drop 3", "drop 4", "drop 6"]);
    for (n, last) in [(3, false), (6, false), (4, true)] {
        s.on_gone(place(n), &mut fx);
        assert_eq!(told(&mut fx).is_empty(), !last);
    }
    s.on_intervene(place(2), 4, Intervention::EndQueues, &mut fx);
    assert_eq!(told(&mut fx), ["drop 5"]);
    s.on_gone(place(2), &mut fx);
    told(&mut fx);
    s.on_gone(place(5), &mut fx);
    assert!(told(&mut fx).is_empty(), "nobody is left to be told");
    enable(&mut s, 1);
    s.on_ask(place(7), PortalId(0), io(1, 1, 1), &mut fx);
    assert_eq!(told(&mut fx), ["7 Admitted { id: 1 }"], "a reset forgets what was set");
}

#[test]
fn the_tasks_of_a_unit_are_ended_in_all_other_sessions() {
    let (mut s, mut fx) = (Sessions::default(), vec![]);
    for n in 1..4 {
        let initiator = format!("iqn.2026-01.test:{n}");
        let ask = Ask::Iscsi { principal: None, initiator, isid: [1; 6], tsih: 0, discovery: n == 3 };
        s.on_ask(place(n), PortalId(0), ask, &mut fx);
    }
    s.on_ask(place(4), PortalId(0), admin(1), &mut fx);
    told(&mut fx);
    let reset = Intervention::ClearTasks { units: [VolumeId(1)].into(), reset: true };
    s.on_intervene(place(1), 0, reset, &mut fx);
    assert_eq!(told(&mut fx), ["2 shall clear"], "not a discovery session, nor NVMe");
    s.on_gone(place(2), &mut fx);
    assert_eq!(told(&mut fx), ["1: 0 is done, false"]);
}

#[test]
fn a_reset_at_one_head_is_done_once_both_have_ended_the_tasks() {
    let two_sessions = || {
        let (mut s, mut fx) = (Sessions::default(), vec![]);
        for n in 1..3 {
            let initiator = format!("iqn.2026-01.test:{n}");
            let ask = Ask::Iscsi { principal: None, initiator, isid: [1; 6], tsih: 0, discovery: false };
            s.on_ask(place(n), PortalId(0), ask, &mut fx);
        }
        told(&mut fx);
        s.other_serves();
        (s, fx)
    };
    let units: Arc<[VolumeId]> = [VolumeId(1)].into();
    let reset = || Intervention::ClearTasks { units: units.clone(), reset: true };
    let number = |s: &mut Sessions| match &s.take_words()[..] {
        [Word::Clear { number, units: said, reset: true }] if *said == units => *number,
        other => panic!("the other head is told of the reset, and of nothing else: {other:?}"),
    };
    for here_first in [true, false] {
        let (mut s, mut fx) = two_sessions();
        s.on_intervene(place(1), 7, reset(), &mut fx);
        assert_eq!(told(&mut fx), ["2 shall clear"]);
        let there = number(&mut s);
        let here = |s: &mut Sessions, fx: &mut Effects<Mail>| s.on_obeyed(place(2), 1, true, fx);
        if here_first {
            here(&mut s, &mut fx)
        } else {
            s.other_has_nothing(there, &mut fx)
        }
        assert_eq!(told(&mut fx), [""; 0], "one of two");
        if here_first {
            s.other_has_nothing(there, &mut fx)
        } else {
            here(&mut s, &mut fx)
        }
        assert_eq!(told(&mut fx), ["1: 7 is done, true"]);
    }
    // It goes meanwhile: what it had begun is over once it is shut out.
    let (mut s, mut fx) = two_sessions();
    s.on_intervene(place(1), 7, reset(), &mut fx);
    number(&mut s);
    s.on_obeyed(place(2), 1, true, &mut fx);
    s.other_is_gone();
    assert_eq!(told(&mut fx), ["2 shall clear"]);
    s.other_is_shut_out(&mut fx);
    assert_eq!(told(&mut fx), ["1: 7 is done, true"]);
    // What it had sent here may be at drives even then.
    let (mut s, mut fx) = two_sessions();
    s.on_intervene(place(1), 7, reset(), &mut fx);
    s.on_obeyed(place(2), 1, true, &mut fx);
    s.other_is_gone();
    let parting = s.parts(1);
    s.other_is_shut_out(&mut fx);
    s.on_intervene(place(2), 8, reset(), &mut fx);
    s.on_obeyed(place(1), 2, true, &mut fx);
    assert_eq!(told(&mut fx), ["2 shall clear", "1 shall clear"]);
    s.has_parted(0, parting, &mut fx);
    assert_eq!(told(&mut fx), ["1: 7 is done, true", "2: 8 is done, true"]);
    // The other one wants it: all here end, and it is told once they have.
    let (mut s, mut fx) = two_sessions();
    s.clear_for_other(5, units.clone(), true, &mut fx);
    assert_eq!(told(&mut fx), ["1 shall clear", "2 shall clear"]);
    s.on_obeyed(place(1), 1, true, &mut fx);
    assert_eq!(s.take_words(), []);
    s.on_gone(place(2), &mut fx);
    assert_eq!((told(&mut fx), s.take_words()), (vec![], vec![Word::Done { number: 5 }]));
}

#[test]
fn the_end_of_the_admin_queue_ends_the_association_and_the_next_waits_for_it() {
    let (mut s, mut fx) = (Sessions::default(), vec![]);
    s.on_ask(place(1), PortalId(0), admin(1), &mut fx);
    let io = |controller, id| Ask::NvmeIo {
        principal: None,
        controller,
        nqn: "nqn.a".into(),
        host_id: [id; 16],
        queue: 1,
    };
    assert_eq!(told(&mut fx), ["1 Admitted { id: 1 }"]);
    enable(&mut s, 1);
    s.on_ask(place(2), PortalId(0), io(1, 1), &mut fx);
    s.on_ask(place(3), PortalId(0), io(1, 2), &mut fx);
    s.on_ask(place(4), PortalId(0), io(7, 1), &mut fx);
    let both = ["2 Admitted { id: 1 }", "3 Unknown", "4 Unknown"];
    assert_eq!(told(&mut fx), both, "host id and controller must fit");
    s.on_ending(place(1), false, &mut fx);
    assert_eq!(told(&mut fx), ["drop 2"]);
    s.on_gone(place(1), &mut fx);
    s.on_ask(place(5), PortalId(0), admin(1), &mut fx);
    assert!(told(&mut fx).is_empty(), "queue 2 may have writes at the drives");
    s.on_gone(place(2), &mut fx);
    assert_eq!(told(&mut fx), ["5 Admitted { id: 2 }"]);
    enable(&mut s, 5);
    s.on_ask(place(6), PortalId(0), io(2, 1), &mut fx);
    assert_eq!(told(&mut fx), ["6 Admitted { id: 2 }"]);
    s.on_ending(place(6), false, &mut fx);
    assert!(told(&mut fx).is_empty(), "an I/O queue goes alone");
    s.on_ask(place(7), PortalId(0), io(2, 1), &mut fx);
    assert!(told(&mut fx).is_empty(), "queue 6 may have writes at the drives");
    s.on_gone(place(6), &mut fx);
    assert_eq!(told(&mut fx), ["7 Admitted { id: 2 }"]);
    s.on_gone(place(7), &mut fx);
    s.on_gone(place(5), &mut fx);
    assert_eq!(s.all().count(), 0);
}

/// A view of hosts a, b and c, with a portal for each place of a test.
fn view_of(generation: u64, change: impl FnOnce(&mut Vec<Host>)) -> View {
    let host = |(n, name): (u32, &str)| Host {
        id: HostId(n),
        nqns: vec![format!("nqn.{name}")],
        iqns: vec![format!("iqn.{name}")],
        ..Host::default()
    };
    let portal = |id| base::view::Portal {
        id: PortalId(id),
        protocol: base::view::Protocol::Nvme,
        address: "10.0.0.1:4420".parse().expect("an address"),
        head: 0,
        moves: None,
    };
    let mut hosts: Vec<Host> = [(1, "a"), (2, "b"), (3, "c")].map(host).to_vec();
    change(&mut hosts);
    View { generation, hosts, portals: (0..8).map(portal).collect(), ..View::default() }
}

/// What a host asks that was found in this view.
fn by_nqn(view: &View, name: &str, n: u32) -> Ask {
    let principal = view.principal(LoginName::Nqn(name));
    Ask::NvmeAdmin { principal, nqn: name.into(), host_id: [n as u8; 16], discovery: false }
}

fn by_iqn(view: &View, name: &str, n: u32) -> Ask {
    let principal = view.principal(LoginName::Iqn(name));
    Ask::Iscsi { principal, initiator: name.into(), isid: [n as u8; 6], tsih: 0, discovery: false }
}

/// AuthMethod=None was answered, an order set a secret, and the next request was let in.
#[test]
fn a_login_is_let_in_by_what_holds_when_it_ends() {
    type Order = fn(&mut Vec<Host>);
    let orders: [(Order, [&str; 2]); 6] = [
        (|_| {}, ["Admitted", "Admitted"]),
        // NVMe proves nothing.
        (|h| h[0].chap_secret = Some(base::view::Secret(vec![1; 16])), ["Admitted", "Changed"]),
        (|h| h[0].chap_user = "other".into(), ["Admitted", "Changed"]),
        (|h| h[0].nqns.clear(), ["Changed", "Admitted"]),
        (|h| h[0].iqns[0] = "iqn.new".into(), ["Admitted", "Changed"]),
        (|h| drop(h.remove(0)), ["Changed", "Changed"]),
    ];
    for (order, ends) in orders {
        for waits in [false, true] {
            let (mut s, mut fx) = (Sessions::default(), vec![]);
            let began = s.on_view(view_of(1, |_| {}), &mut fx);
            // Something of the other head's must be over first.
            let parting = waits.then(|| s.parts(1));
            if parting.is_none() {
                s.on_view(view_of(2, order), &mut fx);
            }
            s.on_ask(place(1), PortalId(1), by_nqn(&began, "nqn.a", 1), &mut fx);
            s.on_ask(place(2), PortalId(1), by_iqn(&began, "iqn.A", 2), &mut fx);
            s.on_ask(place(3), PortalId(1), by_iqn(&began, "iqn.b", 3), &mut fx);
            if let Some(parting) = parting {
                assert_eq!(told(&mut fx), [""; 0]);
                s.on_view(view_of(2, order), &mut fx);
                s.has_parted(0, parting, &mut fx);
            }
            let answers = told(&mut fx);
            let word = |a: &String| a.split_whitespace().nth(1).expect("an answer").to_owned();
            let answers: Vec<String> = answers.iter().map(word).collect();
            assert_eq!(answers, [ends[0], ends[1], "Admitted"], "waits: {waits}");
        }
    }
}

#[test]
fn a_host_is_let_in_by_the_number_of_the_last_parting_alone() {
    let (mut s, mut fx) = (Sessions::default(), vec![]);
    let former = s.parts(2);
    s.has_parted(0, former, &mut fx);
    let last = s.parts(2);
    assert_ne!(former, last);
    s.on_ask(place(1), PortalId(0), admin(1), &mut fx);
    (0..2).for_each(|shard| s.has_parted(shard, former, &mut fx));
    s.has_parted(0, last, &mut fx);
    assert_eq!(told(&mut fx), [""; 0], "the second shard may have something of it at a drive");
    s.has_parted(1, last, &mut fx);
    assert_eq!(told(&mut fx), ["1 Admitted { id: 1 }"]);
}

#[test]
fn a_secret_that_is_taken_away_and_given_back_lets_no_login_in_that_began_before() {
    let (mut s, mut fx) = (Sessions::default(), vec![]);
    let secret =
        |byte: u8| move |h: &mut Vec<Host>| h[0].chap_secret = Some(base::view::Secret(vec![byte; 16]));
    let began = s.on_view(view_of(1, secret(1)), &mut fx);
    s.on_view(view_of(2, secret(2)), &mut fx);
    let again = s.on_view(view_of(3, secret(1)), &mut fx);
    s.on_ask(place(1), PortalId(1), by_iqn(&began, "iqn.a", 1), &mut fx);
    s.on_ask(place(2), PortalId(1), by_iqn(&again, "iqn.a", 1), &mut fx);
    assert_eq!(told(&mut fx), ["1 Changed", "2 Admitted { id: 1 }"]);
    // An order that leaves it as it is ends nothing.
    let later = s.on_view(view_of(4, secret(1)), &mut fx);
    assert_eq!(later.principal(LoginName::Iqn("iqn.a")), again.principal(LoginName::Iqn("iqn.a")));
}

#[test]
fn a_login_that_is_refused_for_an_order_replaces_no_session_of_its_host() {
    let (mut s, mut fx) = (Sessions::default(), vec![]);
    let secret = |h: &mut Vec<Host>| h[0].chap_secret = Some(base::view::Secret(vec![2; 16]));
    let began = s.on_view(view_of(1, |_| {}), &mut fx);
    let is = s.on_view(view_of(2, secret), &mut fx);
    s.on_ask(place(1), PortalId(1), by_iqn(&is, "iqn.a", 1), &mut fx);
    s.on_ask(place(2), PortalId(1), by_iqn(&began, "iqn.a", 1), &mut fx);
    assert_eq!(told(&mut fx), ["1 Admitted { id: 1 }", "2 Changed"]);
}

#[test]
fn a_login_by_a_portal_that_is_gone_is_not_let_in() {
    let (mut s, mut fx) = (Sessions::default(), vec![]);
    let began = s.on_view(view_of(1, |_| {}), &mut fx);
    let mut is = view_of(2, |_| {});
    is.portals.retain(|p| p.id != PortalId(1));
    s.on_view(is, &mut fx);
    s.on_ask(place(1), PortalId(1), by_nqn(&began, "nqn.a", 1), &mut fx);
    s.on_ask(place(2), PortalId(2), by_nqn(&began, "nqn.a", 1), &mut fx);
    assert_eq!(told(&mut fx), ["1 Changed", "2 Admitted { id: 1 }"]);
    // A head that closes its portals shows none.
    s.on_view(View { portals: vec![], ..view_of(3, |_| {}) }, &mut fx);
    s.on_ask(place(3), PortalId(1), by_nqn(&began, "nqn.a", 1), &mut fx);
    assert_eq!(told(&mut fx), ["3 Admitted { id: 2 }"]);
}

#[test]
fn an_io_queue_is_its_controllers_only_while_its_host_has_the_name() {
    let (mut s, mut fx) = (Sessions::default(), vec![]);
    let began = s.on_view(view_of(1, |_| {}), &mut fx);
    s.on_ask(place(1), PortalId(1), by_nqn(&began, "nqn.a", 1), &mut fx);
    enable(&mut s, 1);
    let is = s.on_view(view_of(2, |h| h[1].nqns = core::mem::take(&mut h[0].nqns)), &mut fx);
    let queue = |view: &View, queue| {
        let principal = view.principal(LoginName::Nqn("nqn.a"));
        Ask::NvmeIo { principal, controller: 1, nqn: "nqn.a".into(), host_id: [1; 16], queue }
    };
    s.on_ask(place(2), PortalId(1), queue(&began, 1), &mut fx);
    s.on_ask(place(3), PortalId(1), queue(&is, 2), &mut fx);
    assert_eq!(told(&mut fx)[1..], ["2 Changed", "3 Unknown"], "the name is another host's");
}
