use super::*;
use crate::chap::Algorithm;
use crate::pdu::{LogoutRequest, TextRequest, login_status as status};
use base::front::Close;
use base::view::Secret;

const NAMES: [(&str, &str); 2] = [("InitiatorName", INITIATOR), ("TargetName", IQN)];

pub(super) fn value<'a>(pairs: &'a [(String, String)], key: &str) -> Option<&'a str> {
    pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
}

fn refused(keys: &[(&str, &str)], current: Stage, change: impl Fn(&mut base::view::View)) -> u16 {
    let mut talk = Talk::with(change, OUTBOX_BYTES);
    let (answer, _) = talk.login_step(current, Some(Stage::FullFeature), keys);
    assert!(matches!(talk.io.closed, Some(Close::Refused(_))), "{:?}", talk.io.closed);
    assert!(!answer.transit);
    let name = keys.iter().find(|(k, _)| *k == "InitiatorName").map_or("", |(_, v)| v);
    assert_eq!(talk.io.refused.len(), 1, "reported once");
    assert!([name, ""].contains(&talk.io.refused[0].0.as_str()), "{:?}", talk.io.refused);
    answer.status
}

#[test]
fn every_operational_key_gets_its_answer() {
    let mut talk = Talk::new();
    let mut keys = NAMES.to_vec();
    keys.extend([
        ("HeaderDigest", "CRC32C,None"),
        ("DataDigest", "None"),
        ("MaxRecvDataSegmentLength", "65536"),
        ("MaxBurstLength", "16776192"),
        ("FirstBurstLength", "0x4000"),
        ("InitialR2T", "No"),
        ("ImmediateData", "Yes"),
        ("MaxOutstandingR2T", "8"),
        ("DefaultTime2Wait", "0"),
        ("DefaultTime2Retain", "20"),
        ("ErrorRecoveryLevel", "2"),
        ("MaxConnections", "8"),
        ("DataPDUInOrder", "No"),
        ("DataSequenceInOrder", "Yes"),
        ("OFMarker", "Yes"),
        ("IFMarkInt", "1~65535"),
        ("TaskReporting", "FastAbort,RFC3720"),
        ("iSCSIProtocolLevel", "2"),
        ("X-com.example.z", "1"),
        ("InitiatorAlias", "me"),
    ]);
    let (answer, pairs) = talk.login_step(Stage::Operational, Some(Stage::FullFeature), &keys);
    assert_eq!((answer.status, answer.tsih, answer.next), (0, 7, Stage::FullFeature));
    for (key, want) in [
        ("HeaderDigest", Some("CRC32C")),
        ("DataDigest", Some("None")),
        ("MaxRecvDataSegmentLength", Some("262144")),
        ("MaxBurstLength", Some("1048576")),
        ("FirstBurstLength", Some("16384")),
        ("InitialR2T", Some("No")),
        ("ImmediateData", Some("Yes")),
        ("MaxOutstandingR2T", Some("4")),
        ("DefaultTime2Wait", Some("2")),
        ("DefaultTime2Retain", Some("0")),
        ("ErrorRecoveryLevel", Some("0")),
        ("MaxConnections", Some("1")),
        ("DataPDUInOrder", Some("Yes")),
        ("DataSequenceInOrder", Some("Yes")),
        ("OFMarker", Some("No")),
        ("IFMarkInt", Some("Irrelevant")),
        ("TaskReporting", Some("FastAbort")),
        ("iSCSIProtocolLevel", Some("1")),
        ("X-com.example.z", Some("NotUnderstood")),
        ("InitiatorAlias", None),
        ("TargetPortalGroupTag", Some("1")),
    ] {
        assert_eq!(value(&pairs, key), want, "{key}");
    }
}

#[test]
fn values_that_cannot_be_are_rejected_and_change_nothing() {
    let mut talk = Talk::new();
    let mut keys = NAMES.to_vec();
    keys.extend([
        ("MaxBurstLength", "511"),
        ("InitialR2T", "yes"),
        ("MaxOutstandingR2T", "0"),
        ("HeaderDigest", "MD5"),
    ]);
    let (answer, pairs) = talk.login_step(Stage::Operational, Some(Stage::FullFeature), &keys);
    assert_eq!(answer.status, 0);
    for key in ["MaxBurstLength", "InitialR2T", "MaxOutstandingR2T", "HeaderDigest"] {
        assert_eq!(value(&pairs, key), Some("Reject"), "{key}");
    }
}

#[test]
fn names_may_be_repeated_in_later_requests() {
    let mut talk = Talk::new();
    talk.login_step(Stage::Security, Some(Stage::Operational), &NAMES);
    let (answer, _) = talk.login_step(Stage::Operational, Some(Stage::FullFeature), &NAMES);
    assert_eq!((answer.status, answer.tsih), (0, 7));
}

#[test]
fn a_first_burst_is_no_longer_than_a_burst() {
    let burst = ("MaxBurstLength", "8192");
    let first = ("FirstBurstLength", "65536");
    for order in [[burst, first], [first, burst]] {
        let mut talk = Talk::new();
        let keys = [&NAMES[..], &order].concat();
        let (answer, pairs) = talk.login_step(Stage::Operational, Some(Stage::FullFeature), &keys);
        assert_eq!(answer.status, 0);
        assert_eq!(value(&pairs, "MaxBurstLength"), Some("8192"));
        assert_eq!(value(&pairs, "FirstBurstLength"), Some("8192"), "{order:?}");
    }
    let mut talk = Talk::new();
    talk.login_step(Stage::Operational, None, &[NAMES[0], NAMES[1], burst]);
    let (_, pairs) = talk.login_step(Stage::Operational, Some(Stage::FullFeature), &[first]);
    assert_eq!(value(&pairs, "FirstBurstLength"), Some("8192"), "in a later request as well");
}

#[test]
fn logins_that_must_fail_fail_with_their_code() {
    use Stage::{Operational, Security};
    let me = ("InitiatorName", INITIATOR);
    let to = ("TargetName", IQN);
    let same = |_: &mut base::view::View| {};
    assert_eq!(refused(&[to], Operational, same), status::MISSING_PARAMETER);
    assert_eq!(refused(&[me], Operational, same), status::MISSING_PARAMETER);
    assert_eq!(refused(&[me, ("TargetName", "iqn.x")], Operational, same), status::NOT_FOUND);
    assert_eq!(refused(&[("InitiatorName", "iqn.x"), to], Operational, same), status::FORBIDDEN);
    assert_eq!(refused(&[me, to, ("SessionType", "Odd")], Operational, same), status::SESSION_TYPE);
    assert_eq!(refused(&[me, to, ("AuthMethod", "None")], Operational, same), status::INITIATOR_ERROR);
    assert_eq!(refused(&[me, to, ("AuthMethod", "CHAP")], Security, same), status::AUTHENTICATION_FAILURE);
    assert_eq!(refused(&[me, to, ("CHAP_A", "5")], Security, same), status::INITIATOR_ERROR);
    assert_eq!(refused(&[me, to, ("TargetAlias", "x")], Operational, same), status::INITIATOR_ERROR);
    let twice = [me, to, ("InitialR2T", "No"), ("InitialR2T", "No")];
    assert_eq!(refused(&twice, Operational, same), status::INITIATOR_ERROR);
    for name in [me, to, ("SessionType", "Normal"), ("InitiatorAlias", "x")] {
        assert_eq!(refused(&[me, to, name, name], Operational, same), status::INITIATOR_ERROR, "{name:?}");
    }
    assert_eq!(
        refused(&[me, to, ("MaxRecvDataSegmentLength", "1")], Operational, same),
        status::INITIATOR_ERROR
    );
    let secret = |v: &mut base::view::View| v.hosts[0].chap_secret = Some(Secret(b"0123456789ab".to_vec()));
    assert_eq!(refused(&[me, to], Operational, secret), status::AUTHENTICATION_FAILURE);
    assert_eq!(refused(&[me, to], Security, secret), status::AUTHENTICATION_FAILURE);
    assert_eq!(refused(&[me, to, ("AuthMethod", "None")], Security, secret), status::AUTHENTICATION_FAILURE);
}

#[test]
fn the_stewards_no_becomes_a_status() {
    for (answer, want) in [(Answer::Unknown, status::NO_SESSION), (Answer::Full, status::OUT_OF_RESOURCES)] {
        let mut talk = Talk::new();
        talk.answer = answer;
        let (response, _) = talk.login_step(Stage::Operational, Some(Stage::FullFeature), &NAMES);
        assert_eq!(response.status, want);
        assert!(matches!(talk.io.closed, Some(Close::Refused(_))));
    }
}

fn chap(mutual: bool) -> Talk {
    Talk::with(
        move |v| {
            v.hosts[0].chap_secret = Some(Secret(b"0123456789ab".to_vec()));
            v.hosts[0].chap_user = "user".into();
            v.hosts[0].mutual_secret = mutual.then(|| Secret(b"ba9876543210".to_vec()));
        },
        OUTBOX_BYTES,
    )
}

fn hex(bytes: &[u8]) -> String {
    let mut out = vec![];
    text::put_binary(&mut out, "k", bytes);
    String::from_utf8(out[2..out.len() - 1].to_vec()).expect("hex")
}

/// As far as the challenge: algorithm, identifier, challenge.
fn challenge(talk: &mut Talk, list: &str) -> (Algorithm, u8, Vec<u8>) {
    let mut keys = NAMES.to_vec();
    keys.push(("AuthMethod", "CHAP,None"));
    let (answer, pairs) = talk.login_step(Stage::Security, Some(Stage::Operational), &keys);
    assert!(!answer.transit);
    assert_eq!(value(&pairs, "AuthMethod"), Some("CHAP"));
    let (_, pairs) = talk.login_step(Stage::Security, None, &[("CHAP_A", list)]);
    let algorithm = Algorithm::choose(value(&pairs, "CHAP_A").expect("an algorithm")).expect("known");
    let id = value(&pairs, "CHAP_I").expect("an identifier").parse().expect("a number");
    (algorithm, id, text::binary(value(&pairs, "CHAP_C").expect("a challenge"), 64).expect("binary"))
}

#[test]
fn chap_proves_both_ways() {
    for list in ["5", "7,5"] {
        let mut talk = chap(true);
        let (algorithm, id, theirs) = challenge(&mut talk, list);
        let r = hex(&algorithm.response(id, b"0123456789ab", &theirs));
        let ours = [9; 20];
        let c = hex(&ours);
        let keys = [("CHAP_N", "user"), ("CHAP_R", r.as_str()), ("CHAP_I", "200"), ("CHAP_C", c.as_str())];
        let (answer, pairs) = talk.login_step(Stage::Security, Some(Stage::Operational), &keys);
        assert_eq!((answer.status, answer.transit), (0, true));
        assert_eq!(value(&pairs, "CHAP_N"), Some(IQN));
        let want = hex(&algorithm.response(200, b"ba9876543210", &ours));
        assert_eq!(value(&pairs, "CHAP_R"), Some(want.as_str()));
        let (answer, _) = talk.login_step(Stage::Operational, Some(Stage::FullFeature), &[]);
        assert_eq!((answer.status, answer.tsih), (0, 7));
    }
}

#[test]
fn chap_refuses_wrong_names_secrets_and_reflections() {
    type Forge = fn(Algorithm, u8, &[u8]) -> Vec<(&'static str, String)>;
    let right = |a: Algorithm, id: u8, c: &[u8]| hex(&a.response(id, b"0123456789ab", c));
    let _ = right;
    let forgeries: [Forge; 6] = [
        |a, id, c| vec![("CHAP_N", "user".into()), ("CHAP_R", hex(&a.response(id, b"wrong", c)))],
        |a, id, c| vec![("CHAP_N", "other".into()), ("CHAP_R", hex(&a.response(id, b"0123456789ab", c)))],
        |_, _, _| vec![("CHAP_N", "user".into()), ("CHAP_R", "nonsense".into())],
        |_, _, _| vec![],
        // Our own challenge comes back.
        |a, id, c| {
            let r = hex(&a.response(id, b"0123456789ab", c));
            vec![("CHAP_N", "user".into()), ("CHAP_R", r), ("CHAP_I", "1".into()), ("CHAP_C", hex(c))]
        },
        // An empty response must not be equal to anything.
        |_, _, _| vec![("CHAP_N", "user".into()), ("CHAP_R", "0x".into())],
    ];
    for (i, forge) in forgeries.iter().enumerate() {
        let mut talk = chap(true);
        let (algorithm, id, theirs) = challenge(&mut talk, "5");
        let keys = forge(algorithm, id, &theirs);
        let keys: Vec<_> = keys.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let (answer, pairs) = talk.login_step(Stage::Security, Some(Stage::Operational), &keys);
        assert_eq!(answer.status, status::AUTHENTICATION_FAILURE, "forgery {i}");
        assert!(pairs.is_empty(), "a forger learns nothing");
    }
    let mut talk = chap(false);
    let mut keys = NAMES.to_vec();
    keys.push(("AuthMethod", "CHAP"));
    talk.login_step(Stage::Security, None, &keys);
    let (answer, _) = talk.login_step(Stage::Security, None, &[("CHAP_A", "6,8")]);
    assert_eq!(answer.status, status::AUTHENTICATION_FAILURE);
}

#[test]
fn stages_out_of_order_versions_and_other_pdus_end_the_login() {
    let mut talk = Talk::new();
    let (answer, _) = talk.login_step(Stage::Operational, Some(Stage::Security), &NAMES);
    assert_eq!(answer.status, status::INVALID_REQUEST);

    let mut talk = Talk::new();
    let request = LoginRequest { version_min: 1, version_max: 1, ..LoginRequest::default() };
    talk.send(request.encode(), b"InitiatorName=x\0");
    let Some(Heard { response: Response::Login(answer), .. }) = talk.hear() else { panic!("no answer") };
    assert_eq!(answer.status, status::UNSUPPORTED_VERSION);

    let mut talk = Talk::new();
    talk.send(TextRequest::default().encode(), b"SendTargets=All\0");
    assert!(matches!(talk.io.closed, Some(Close::Protocol(_))));
    assert_eq!(talk.hear(), None);
}

#[test]
fn a_text_in_pieces_is_one_text() {
    let mut talk = Talk::new();
    let mut data = vec![];
    for (key, value) in NAMES {
        text::put(&mut data, key, value);
    }
    let (one, two) = data.split_at(20);
    let mut request = LoginRequest {
        continues: true,
        current: Stage::Operational,
        next: Stage::FullFeature,
        ..LoginRequest::default()
    };
    talk.send(request.encode(), one);
    let Some(Heard { response: Response::Login(answer), data }) = talk.hear() else { panic!("no answer") };
    assert_eq!((answer.status, answer.transit, data.len()), (0, false, 0));
    request.continues = false;
    request.transit = true;
    talk.send(request.encode(), two);
    let Some(Heard { response: Response::Login(answer), .. }) = talk.hear() else { panic!("no answer") };
    assert_eq!((answer.status, answer.tsih), (0, 7));
}

#[test]
fn text_without_end_and_logins_without_end_are_ended() {
    let mut talk = Talk::new();
    let request = LoginRequest { continues: true, current: Stage::Operational, ..LoginRequest::default() };
    for _ in 0..3 {
        talk.send(request.encode(), &[b'a'; 8000]);
    }
    assert!(matches!(talk.io.closed, Some(Close::Refused(_))));

    let mut talk = Talk::new();
    talk.login_step(Stage::Operational, None, &NAMES);
    for _ in 0..100 {
        if talk.io.closed.is_none() {
            talk.login_step(Stage::Operational, None, &[]);
        }
    }
    assert!(matches!(talk.io.closed, Some(Close::Refused(_))));

    let mut talk = Talk::new();
    talk.connection.on_timer(Instant(5), &mut talk.io);
    assert_eq!(talk.io.closed, None);
    let at = talk.connection.next_deadline().expect("a login has a deadline");
    talk.connection.on_timer(at, &mut talk.io);
    assert_eq!(talk.io.closed, Some(Close::Slow));
}

fn discover(initiator: &str, ask: &str) -> (Talk, String) {
    let mut talk = Talk::new();
    let found = send_targets(&mut talk, initiator, ask);
    (talk, found)
}

/// What a discovery session gets.
pub(super) fn send_targets(talk: &mut Talk, initiator: &str, ask: &str) -> String {
    let keys = [("InitiatorName", initiator), ("SessionType", "Discovery"), ("MaxBurstLength", "512")];
    let (answer, pairs) = talk.login_step(Stage::Operational, Some(Stage::FullFeature), &keys);
    assert_eq!(answer.status, 0);
    assert_eq!(value(&pairs, "MaxBurstLength"), Some("Irrelevant"));
    let request = TextRequest {
        last: true,
        task_tag: 5,
        transfer_tag: u32::MAX,
        cmd_sn: talk.cmd_sn,
        ..TextRequest::default()
    };
    talk.send(request.encode(), format!("SendTargets={ask}\0").as_bytes());
    let Some(Heard { response: Response::Text(answer), data }) = talk.hear() else { panic!("no answer") };
    assert!(answer.last && !answer.continues);
    String::from_utf8(data).expect("text")
}

#[test]
fn known_hosts_discover_the_target_and_unknown_hosts_nothing() {
    let found = format!("TargetName={IQN}\0TargetAddress=127.0.0.1:3260,1\0");
    assert_eq!(discover(INITIATOR, "All").1, found);
    assert_eq!(discover(INITIATOR, IQN).1, found);
    assert_eq!(discover(INITIATOR, "iqn.other").1, "");
    assert_eq!(discover("iqn.unknown", "All").1, "");
}

#[test]
fn a_discovery_session_takes_no_commands_and_logs_out() {
    let (mut talk, _) = discover(INITIATOR, "All");
    talk.cmd_sn += 1;
    let c = talk.command(0, &[0; 6], 0);
    talk.send(c.encode(), &[]);
    assert!(matches!(talk.hear(), Some(Heard { response: Response::Reject(_), .. })));
    let logout = LogoutRequest { task_tag: 9, cmd_sn: talk.cmd_sn, ..LogoutRequest::default() };
    talk.send(logout.encode(), &[]);
    let Some(Heard { response: Response::Logout(answer), .. }) = talk.hear() else { panic!("no answer") };
    assert_eq!((answer.response, answer.task_tag), (0, 9));
    assert_eq!(talk.io.closed, Some(Close::Logout));
}

/// What the target has answered when an order comes.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// AuthMethod, with or without a proof.
    Proof,
    /// Everything but the last request, which the Steward has.
    Question,
}

/// AuthMethod=None was answered, an order set a secret, and the next request was let in.
#[test]
fn a_login_is_let_in_by_what_holds_when_it_ends() {
    type Order = fn(&mut base::view::View);
    let orders: [(Order, u16); 6] = [
        (|v| v.hosts[0].exports.clear(), 0),
        (|v| v.hosts[0].proof_generation = 2, status::UNAVAILABLE),
        (|v| v.hosts[0].iqns[0] = "iqn.2026-01.org.example:new".into(), status::UNAVAILABLE),
        (|v| v.hosts[0].iqns.push("iqn.2026-01.org.example:new".into()), 0),
        (|v| v.hosts[0].id = base::HostId(9), status::UNAVAILABLE),
        (|v| v.hosts.clear(), status::UNAVAILABLE),
    ];
    for (order, want) in orders {
        for mutual in [None, Some(false), Some(true)] {
            for before in [Before::Proof, Before::Question] {
                let mut talk = mutual.map_or_else(Talk::new, chap);
                prove(&mut talk, mutual);
                if let Before::Question = before {
                    talk.answers = false;
                    talk.send(last_request(), &[]);
                }
                order(&mut talk.io.view);
                talk.connection.on_view(talk.now, &mut talk.io);
                if let Before::Proof = before {
                    talk.send(last_request(), &[]);
                }
                talk.answers = true;
                talk.settle();
                let Some(Heard { response: Response::Login(answer), .. }) = talk.hear() else {
                    panic!("no login response; closed: {:?}", talk.io.closed)
                };
                assert_eq!(answer.status, want, "{mutual:?} {before:?}");
                assert_eq!((talk.io.closed.is_some(), talk.io.admitted.is_none()), (want != 0, want != 0));
            }
        }
    }
}

/// From the first request to the last answer of the security stage.
fn prove(talk: &mut Talk, mutual: Option<bool>) {
    let Some(mutual) = mutual else {
        let keys = [NAMES[0], NAMES[1], ("AuthMethod", "None")];
        let (answer, _) = talk.login_step(Stage::Security, Some(Stage::Operational), &keys);
        return assert_eq!((answer.status, answer.transit), (0, true));
    };
    let (algorithm, id, theirs) = challenge(talk, "5");
    let (r, c) = (hex(&algorithm.response(id, b"0123456789ab", &theirs)), hex(&[9; 20]));
    let mut keys = vec![("CHAP_N", "user"), ("CHAP_R", r.as_str())];
    if mutual {
        keys.extend([("CHAP_I", "200"), ("CHAP_C", c.as_str())]);
    }
    let (answer, _) = talk.login_step(Stage::Security, Some(Stage::Operational), &keys);
    assert_eq!((answer.status, answer.transit), (0, true));
}

fn last_request() -> crate::pdu::Bhs {
    let request = LoginRequest {
        transit: true,
        current: Stage::Operational,
        next: Stage::FullFeature,
        isid: [0x40, 1, 2, 3, 4, 5],
        cmd_sn: 1,
        exp_stat_sn: 50,
        ..LoginRequest::default()
    };
    request.encode()
}

#[test]
fn a_session_ends_when_what_it_was_let_in_by_is_taken_away() {
    type Order = fn(&mut base::view::View);
    let orders: [(Order, bool); 4] = [
        (|v| v.hosts[0].iqns.push("iqn.2026-01.org.example:new".into()), false),
        (|v| v.hosts[0].proof_generation = 2, true),
        (|v| v.hosts[0].iqns[0] = "iqn.2026-01.org.example:new".into(), true),
        (|v| v.hosts.clear(), true),
    ];
    for (order, ends) in orders {
        let mut talk = Talk::ready(&[]);
        order(&mut talk.io.view);
        talk.connection.on_view(talk.now, &mut talk.io);
        assert_eq!(talk.io.closed, ends.then_some(Close::Replaced));
    }
}
