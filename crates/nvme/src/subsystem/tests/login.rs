//! From the first byte to an accepted Connect.

use super::*;
use crate::spec::fabrics::CATTR_NO_FLOW_CONTROL;

fn refused(fields: ConnectFields, data: ConnectData) -> (StatusField, u32) {
    let mut t = Talk::initialized(NONE, 0);
    t.capsule(&fields.sqe(), data.as_bytes());
    let cqe = t.cqe();
    assert!(t.io.asks.is_empty() && t.io.admitted.is_none());
    assert_eq!(t.io.refused.len(), 1, "reported once");
    // The queue is not there; a better Connect may follow.
    assert_eq!(t.connect(connect(0), super::data(0xffff, NQN, HOST)), StatusField::SUCCESS);
    (cqe.status(), cqe.dw0.get())
}

const PARAMETERS: StatusField = StatusField::CONNECT_PARAMETERS.dnr();
const IN_DATA: u32 = 1 << 16;

#[test]
fn an_admin_queue_comes_up_and_the_steward_hears_who_it_is() {
    let mut t = Talk::initialized(NONE, 0);
    t.answer = None;
    t.cid = 1;
    t.capsule(&connect(0).sqe(), data(0xffff, NQN, HOST).as_bytes());
    assert_eq!(t.target.want(), Want::Nothing);
    let principal = Some(base::view::Principal { host: HostId(3), proof_generation: 0 });
    let ask = Ask::NvmeAdmin { principal, nqn: HOST.into(), host_id: [9; 16], discovery: false };
    assert_eq!(t.io.asks, [ask]);
    t.answer = Some(Answer::Admitted { id: 0x1234 });
    t.settle();
    let cqe = t.cqe();
    assert_eq!((cqe.status(), cqe.dw0.get(), cqe.sqhd.get()), (StatusField::SUCCESS, 0x1234, 1));
    // 32 entries and the events that wait beside them.
    assert_eq!(t.io.admitted, Some(36));
}

#[test]
fn an_io_queue_names_its_controller_and_may_do_without_flow_control() {
    let mut t = Talk::initialized(NONE, 0);
    let mut fields = connect(3);
    fields.cattr = CATTR_NO_FLOW_CONTROL;
    t.answer = None;
    t.capsule(&fields.sqe(), data(5, NQN, HOST).as_bytes());
    let principal = Some(base::view::Principal { host: HostId(3), proof_generation: 0 });
    let ask = Ask::NvmeIo { principal, controller: 5, nqn: HOST.into(), host_id: [9; 16], queue: 3 };
    assert_eq!(t.io.asks, [ask]);
    t.answer = Some(Answer::Admitted { id: 5 });
    t.settle();
    assert_eq!(t.cqe().sqhd.get(), 0xffff);
    assert_eq!(t.io.admitted, Some(32));
}

#[test]
fn wrong_parameters_are_named_by_place() {
    let good = || data(0xffff, NQN, HOST);
    let with = |change: fn(&mut ConnectFields)| {
        let mut f = connect(0);
        change(&mut f);
        f
    };
    assert_eq!(refused(with(|f| f.recfmt = 1.into()), good()).0, StatusField::CONNECT_FORMAT.dnr());
    assert_eq!(refused(with(|f| f.sqsize = 0.into()), good()), (PARAMETERS, 44));
    assert_eq!(refused(with(|f| f.sqsize = 128.into()), good()), (PARAMETERS, 44));
    assert_eq!(refused(with(|f| f.sqsize = 65535.into()), good()), (PARAMETERS, 44));
    assert_eq!(refused(with(|f| f.qid = 9.into()), data(5, NQN, HOST)), (PARAMETERS, 42));
    assert_eq!(refused(connect(1), data(5, DISCOVERY_NQN, HOST)), (PARAMETERS, 42));
    assert_eq!(refused(connect(0), data(5, NQN, HOST)), (PARAMETERS, IN_DATA | 16));
    assert_eq!(refused(connect(0), data(0xffff, "nqn.other", HOST)), (PARAMETERS, IN_DATA | 256));
    assert_eq!(refused(connect(0), data(0xffff, "", HOST)), (PARAMETERS, IN_DATA | 256));
    assert_eq!(refused(connect(0), data(0xffff, NQN, "")), (PARAMETERS, IN_DATA | 512));
    assert_eq!(refused(connect(0), data(0xffff, NQN, &"x".repeat(224))), (PARAMETERS, IN_DATA | 512));
    let nobody = ConnectData { hostid: [0; 16], ..good() };
    assert_eq!(refused(connect(0), nobody), (PARAMETERS, IN_DATA));
    let mut endless = good();
    endless.subnqn = [b'n'; 256];
    assert_eq!(refused(connect(0), endless), (PARAMETERS, IN_DATA | 256));
    assert_eq!(refused(connect(0), data(0xffff, NQN, STRANGER)).0, StatusField::CONNECT_HOST.dnr());
}

#[test]
fn a_connect_without_its_data_in_the_capsule_is_refused() {
    let sgl = |sgl: Sgl, bytes: usize| {
        let mut t = Talk::initialized(NONE, 0);
        let mut fields = connect(0);
        fields.sgl = sgl;
        t.capsule(&fields.sqe(), &vec![0; bytes]);
        assert!(t.io.closed.is_none());
        t.cqe().status()
    };
    assert_eq!(sgl(Sgl::transport(1024), 0), StatusField::SGL_TYPE_INVALID.dnr());
    assert_eq!(sgl(Sgl::in_capsule(1023), 1024), StatusField::SGL_LENGTH_INVALID.dnr());
    assert_eq!(sgl(Sgl::in_capsule(1024), 1000), StatusField::SGL_OFFSET_INVALID.dnr());
    assert_eq!(
        sgl(Sgl { address: u64::MAX.into(), ..Sgl::in_capsule(1024) }, 1024),
        StatusField::SGL_OFFSET_INVALID.dnr()
    );
}

#[test]
fn connect_data_may_lie_anywhere_in_the_capsule() {
    let mut t = Talk::initialized(BOTH, 0);
    let mut fields = connect(0);
    fields.sgl.address = 100.into();
    let mut bytes = vec![1; 100];
    bytes.extend_from_slice(data(0xffff, NQN, HOST).as_bytes());
    bytes.extend_from_slice(&[2; 50]);
    t.capsule(&fields.sqe(), &bytes);
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
}

#[test]
fn the_stewards_refusals_reach_the_host() {
    let refuse = |answer| {
        let mut t = Talk::initialized(NONE, 0);
        t.answer = Some(answer);
        let status = t.connect(connect(1), data(5, NQN, HOST));
        assert!(t.io.closed.is_none());
        status
    };
    assert_eq!(refuse(Answer::Unknown), PARAMETERS);
    assert_eq!(refuse(Answer::Full), StatusField::CONNECT_BUSY);
    assert_eq!(refuse(Answer::Taken), StatusField::COMMAND_SEQUENCE);
    assert_eq!(refuse(Answer::Disabled), StatusField::COMMAND_SEQUENCE);
    let mut t = Talk::initialized(NONE, 0);
    t.io.full = true;
    assert_eq!(t.connect(connect(0), data(0xffff, NQN, HOST)), StatusField::CONNECT_BUSY);
    assert!(matches!(t.io.closed, Some(Close::Refused(_))));
}

#[test]
fn a_host_that_is_removed_while_the_steward_thinks_is_refused() {
    let mut t = Talk::initialized(NONE, 0);
    t.answer = None;
    t.capsule(&connect(0).sqe(), data(0xffff, NQN, HOST).as_bytes());
    t.new_view(|v| v.hosts.clear());
    t.answer = Some(Answer::Admitted { id: 5 });
    t.settle();
    assert_eq!(t.cqe().status(), StatusField::CONNECT_HOST.dnr());
    assert!(matches!(t.io.closed, Some(Close::Refused(_))));
}

#[test]
fn commands_before_connect_are_out_of_sequence() {
    let mut t = Talk::initialized(BOTH, 0);
    assert_eq!(t.write(Sqe::new(admin::IDENTIFY, 0), &[7; 600]), StatusField::COMMAND_SEQUENCE.dnr());
    assert_eq!(t.get_property(property::CAP, 1), Err(StatusField::COMMAND_SEQUENCE.dnr()));
    assert_eq!(t.connect(connect(0), data(0xffff, NQN, HOST)), StatusField::SUCCESS);
}

#[test]
fn a_second_connect_is_out_of_sequence() {
    for mut t in [Talk::admin(), Talk::io(BOTH, 3)] {
        assert_eq!(t.connect(connect(0), data(0xffff, NQN, HOST)), StatusField::COMMAND_SEQUENCE.dnr());
        assert!(t.io.closed.is_none());
    }
}

#[test]
fn a_discovery_portal_has_the_discovery_controller_alone() {
    let at = |subsystem| {
        let mut t = Talk::at(portal(1, Protocol::Discovery, "0.0.0.0:8009"));
        t.initialize(NONE, 0);
        t.connect(connect(0), data(0xffff, subsystem, HOST))
    };
    assert_eq!(at(NQN), PARAMETERS);
    assert_eq!(at(DISCOVERY_NQN), StatusField::SUCCESS);
}

#[test]
fn who_says_nothing_is_shown_the_door() {
    let mut t = Talk::new();
    // The first deadline starts the clock.
    t.later(Duration::ZERO);
    assert_eq!(t.target.next_deadline(), Some(t.now + super::super::LOGIN_TIME));
    t.later(Duration::from_secs(9));
    t.initialize(NONE, 0);
    assert!(t.io.closed.is_none());
    t.later(Duration::from_secs(1));
    assert_eq!(t.io.closed, Some(Close::Slow));
    assert_eq!(t.target.next_deadline(), None);
}

#[test]
fn one_byte_a_second_is_too_slow_for_a_login() {
    let mut t = Talk::new();
    let bytes = encode::ic_req(IcReq::default());
    for byte in bytes.iter() {
        t.send(&[*byte]);
        t.later(Duration::from_secs(1));
        if t.io.closed.is_some() {
            break;
        }
    }
    assert_eq!(t.io.closed, Some(Close::Slow));
}

#[test]
fn initialization_with_nonsense_is_refused() {
    let term = |request: IcReq| {
        let mut t = Talk::new();
        t.send(&encode::ic_req(request));
        t.term()
    };
    assert_eq!(term(IcReq { pfv: 1, ..IcReq::default() }), (6, 8));
    assert_eq!(term(IcReq { hpda: 32, ..IcReq::default() }), (1, 10));
    let mut t = Talk::new();
    t.send(&encode::command(&Sqe::default(), 0, NONE, 0));
    assert_eq!(t.term(), (2, 0));
    let mut t = Talk::initialized(NONE, 0);
    t.send(&encode::ic_req(IcReq::default()));
    assert_eq!(t.term(), (2, 0));
}

#[test]
fn the_steward_may_take_longer_than_a_host() {
    let mut t = Talk::initialized(NONE, 0);
    t.answer = None;
    t.capsule(&connect(1).sqe(), data(5, NQN, HOST).as_bytes());
    t.later(Duration::from_secs(100));
    assert_eq!(t.io.closed, None);
    t.answer = Some(Answer::Unknown);
    t.settle();
    assert_eq!(t.cqe().status(), PARAMETERS);
    t.later(Duration::from_secs(9));
    assert_eq!(t.io.closed, None);
    t.later(Duration::from_secs(1));
    assert_eq!(t.io.closed, Some(Close::Slow));
}

/// An order came while the Connect was under way, and the Steward had not heard of it, or had.
#[test]
fn a_connect_is_let_in_by_what_holds_when_it_ends() {
    type Order = fn(&mut View);
    let orders: [(Order, StatusField); 4] = [
        (|_| {}, StatusField::SUCCESS),
        (|v| v.hosts.clear(), StatusField::CONNECT_HOST.dnr()),
        (|v| v.hosts[0].nqns[0] = STRANGER.into(), StatusField::CONNECT_HOST.dnr()),
        // Another host has the name: it may come by it, but not by what the first one was let in by.
        (|v| v.hosts[0].id = HostId(9), StatusField::CONNECT_BUSY),
    ];
    for (order, ends) in orders {
        for queue in [0, 1] {
            for answer in [Answer::Admitted { id: 5 }, Answer::Changed] {
                let changed = ends != StatusField::SUCCESS;
                if !changed && answer == Answer::Changed {
                    continue;
                }
                let mut t = Talk::initialized(NONE, 0);
                t.answer = None;
                let controller = if queue == 0 { 0xffff } else { 5 };
                t.capsule(&connect(queue).sqe(), data(controller, NQN, HOST).as_bytes());
                t.new_view(order);
                t.answer = Some(answer);
                t.settle();
                t.drain();
                assert_eq!(t.cqe().status(), ends, "queue {queue}");
                assert_eq!((t.io.closed.is_some(), t.io.admitted.is_none()), (changed, changed));
                assert_eq!(t.io.refused.len(), usize::from(changed), "reported once");
            }
        }
    }
}

#[test]
fn a_discovery_controller_of_an_unknown_host_has_nothing_to_be_taken_away() {
    let mut t = Talk::initialized(NONE, 0);
    t.answer = None;
    t.capsule(&connect(0).sqe(), data(0xffff, DISCOVERY_NQN, STRANGER).as_bytes());
    t.new_view(|v| v.hosts[0].nqns.push(STRANGER.into()));
    t.answer = Some(Answer::Admitted { id: 5 });
    t.settle();
    assert_eq!(t.cqe().status(), StatusField::SUCCESS);
}
