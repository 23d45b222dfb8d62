//! A second head joins by a token, once.

use super::rig::*;
use crate::link::tls::{Purpose, client};
use crate::link::wire::{REQUEST_BYTES, Request, SHORT_BYTES, VERSIONS, decode_answer};
use crate::link::{
    Happened, Identity, Invitation, LIFE_S, LinkRefusal, Listens, Newcomer, Settings, Side, Token, join,
};
use base::Uuid;
use finding::{JoinDenial, SystemRefusal, TriedAddress, UnreachedFault};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn refused_for(why: JoinDenial) -> Result<(), SystemRefusal> {
    Err(SystemRefusal::JoinDenied { why })
}

/// The creating head before anybody joined, and its token.
fn create(pair: &Pair, life_s: u64) -> (Settings, Token, Invitation) {
    let (token, invitation) =
        Token::make(SYSTEM, &[pair.at[0]], pair.creator.fingerprint(), now_s(), life_s).expect("made");
    let token = Token::decode(&token.encode()).expect("as it is pasted");
    let networks = vec![Listens { own: pair.at[0], peer: None }];
    let side = Side::Listens { networks, peer: None, invitation: Some(invitation.clone()) };
    (Settings { side, ..pair.listening() }, token, invitation)
}

/// `identity` tries to join, while `end` takes what happens and answers as `durable` says.
fn try_join(
    pair: &Pair,
    end: &End,
    token: &Token,
    identity: &Identity,
    durable: bool,
) -> (Result<(), SystemRefusal>, Vec<Newcomer>) {
    let own = [pair.at[1].ip()];
    std::thread::scope(|scope| {
        let joining = scope.spawn(|| pair.runtime.block_on(join(token, identity, &own, pair.limits)));
        let mut came = Vec::new();
        while !joining.is_finished() {
            if let Ok(Happened::Joined { newcomer, answer }) =
                end.events.recv_timeout(Duration::from_millis(5))
            {
                came.push(newcomer);
                if durable {
                    answer.accept();
                }
            }
        }
        (joining.join().expect("it ends"), came)
    })
}

#[test]
fn a_head_joins_once_and_the_path_comes_up_without_a_restart() {
    let pair = Pair::new();
    let (settings, token, invitation) = create(&pair, LIFE_S);
    let a = End::start(settings, &pair.runtime);
    // Before it joined it gets no path, though it knows whom it would pin.
    let early = pair.connect(pair.at[0]);
    assert_eq!(a.refused(), LinkRefusal::NoPeer);
    early.stop();

    let (joined, came) = try_join(&pair, &a, &token, &pair.joiner, true);
    assert_eq!(joined, Ok(()));
    let kept = Invitation { used_by: Some(pair.joiner.fingerprint()), ..invitation };
    let newcomer = Newcomer {
        fingerprint: pair.joiner.fingerprint(),
        addresses: vec![pair.at[1].ip()],
        invitation: kept,
    };
    assert_eq!(came, std::slice::from_ref(&newcomer));
    let b = pair.connect(pair.at[0]);
    b.link.send(b.up(), b"hello".to_vec()).expect("up");
    assert_eq!(a.bytes(5), b"hello");

    // The same head may ask again: its answer may have been lost.
    let (again, came) = try_join(&pair, &a, &token, &pair.joiner, true);
    assert_eq!((again, came), (Ok(()), vec![newcomer]));
    // Another one may not, and the layer above is not asked.
    let other = Identity::make().expect("made");
    let (second, came) = try_join(&pair, &a, &token, &other, true);
    assert_eq!((second, came), (refused_for(JoinDenial::Used), vec![]));
    // Nor by a new token, as long as it has a peer.
    let (fresh, invitation) =
        Token::make(SYSTEM, &[pair.at[0]], pair.creator.fingerprint(), now_s(), LIFE_S).expect("made");
    a.link.invite(Some(invitation));
    assert_eq!(try_join(&pair, &a, &fresh, &other, true).0, refused_for(JoinDenial::Taken));
}

#[test]
fn what_was_kept_of_a_used_token_refuses_after_a_restart() {
    let pair = Pair::new();
    let (settings, token, _) = create(&pair, LIFE_S);
    let a = End::start(settings.clone(), &pair.runtime);
    let (_, came) = try_join(&pair, &a, &token, &pair.joiner, true);
    a.stop();
    let invitation = Invitation::decode(&came[0].invitation.encode()).expect("as it was kept");
    let networks = vec![Listens { own: pair.at[0], peer: Some(came[0].addresses[0]) }];
    let side = Side::Listens { networks, peer: Some(came[0].fingerprint), invitation: Some(invitation) };
    let a = End::start(Settings { side, ..settings }, &pair.runtime);
    let other = Identity::make().expect("made");
    assert_eq!(try_join(&pair, &a, &token, &other, true).0, refused_for(JoinDenial::Used));
    let b = pair.connect(pair.at[0]);
    assert_eq!((a.up().number, b.up().number), (1, 1));
}

#[test]
fn a_join_that_cannot_be_made_durable_did_not_happen() {
    let pair = Pair::new();
    let (settings, token, _) = create(&pair, LIFE_S);
    let a = End::start(settings, &pair.runtime);
    let (refused, came) = try_join(&pair, &a, &token, &pair.joiner, false);
    assert_eq!((refused, came.len()), (refused_for(JoinDenial::NotRecorded), 1));
    let early = pair.connect(pair.at[0]);
    assert_eq!(
        a.wait("NoPeer", |h| matches!(h, Happened::Refused { why: LinkRefusal::NoPeer, .. }).then_some(())),
        ()
    );
    early.stop();
    // The token is still good, for another head, too.
    let other = Identity::make().expect("made");
    assert_eq!(try_join(&pair, &a, &token, &other, true).0, Ok(()));
}

#[test]
fn late_forged_foreign_and_uninvited_heads_are_refused_with_the_reason() {
    let pair = Pair::new();
    let (settings, token, _) = create(&pair, 0);
    let a = End::start(settings, &pair.runtime);
    let denied = |token: &Token| {
        let (joined, came) = try_join(&pair, &a, token, &pair.joiner, true);
        assert_eq!(came, [], "the layer above is not asked");
        match joined {
            Err(SystemRefusal::JoinDenied { why }) => why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(denied(&token), JoinDenial::Expired);
    let mut forged = token.clone();
    forged.secret[15] ^= 1;
    assert_eq!(denied(&forged), JoinDenial::Forged);
    assert_eq!(denied(&Token { system: Uuid([1; 16]), ..token.clone() }), JoinDenial::OtherSystem);
    a.events.try_iter().for_each(drop);
    a.link.invite(None);
    // Nobody is waited for, so that nobody is listened to.
    let (joined, _) = try_join(&pair, &a, &token, &pair.joiner, true);
    assert!(matches!(joined, Err(SystemRefusal::HeadUnreached { .. })), "{joined:?}");
    let said = crate::words::why(&joined.expect_err("nobody is invited").into());
    assert!(said.next.expect("a way on").contains("millrace"));
}

#[test]
fn a_join_whose_answer_was_lost_is_asked_for_again() {
    let mut pair = Pair::new();
    pair.limits.handshake = Duration::from_millis(400);
    let (settings, token, _) = create(&pair, LIFE_S);
    let a = End::start(settings, &pair.runtime);
    // Cut at every tenth of what a join says and hears, some 2,500 bytes; each attempt is of the same head.
    let proxy = Proxy::start(pair.at[2], pair.at[0]);
    let through = Token { addresses: vec![pair.at[2]], ..token };
    let (mut accepted, mut unanswered) = (0, 0);
    for cut in (100..2800).step_by(10) {
        proxy.cut_after(Some(cut));
        let (joined, came) = try_join(&pair, &a, &through, &pair.joiner, true);
        accepted += came.len();
        match joined {
            Ok(()) => break,
            Err(SystemRefusal::JoinUnanswered { .. }) => unanswered += 1,
            Err(SystemRefusal::HeadUnreached { .. }) => {}
            Err(other) => panic!("{other:?} after {cut} bytes"),
        }
    }
    assert!(accepted >= 2 && unanswered >= 1, "{accepted} were let in, {unanswered} times nobody said so");
    let b = pair.connect(pair.at[0]);
    b.link.send(b.up(), b"in".to_vec()).expect("up");
    assert_eq!(a.bytes(2), b"in");
}

#[test]
fn a_token_is_not_shown_to_another_head_at_the_same_address() {
    let pair = Pair::new();
    let (settings, token, _) = create(&pair, LIFE_S);
    let impostor = Identity::make().expect("made");
    let a = End::start(Settings { identity: impostor, ..settings }, &pair.runtime);
    let (joined, came) = try_join(&pair, &a, &token, &pair.joiner, true);
    let tried = TriedAddress { address: pair.at[0].to_string(), why: UnreachedFault::NotThePeer };
    assert_eq!(joined, Err(SystemRefusal::HeadUnreached { tried: vec![tried] }));
    assert_eq!(came, []);
}

#[test]
fn the_next_address_is_tried_and_both_heads_have_as_many() {
    let pair = Pair::new();
    let dead = addresses();
    let (settings, _, _) = create(&pair, LIFE_S);
    let (token, invitation) =
        Token::make(SYSTEM, &[dead[0], pair.at[0]], pair.creator.fingerprint(), now_s(), LIFE_S)
            .expect("made");
    let own: [IpAddr; 2] = [dead[1].ip(), pair.at[1].ip()];
    let networks = [dead[2], pair.at[0]].map(|own| Listens { own, peer: None }).to_vec();
    let side = Side::Listens { networks, peer: None, invitation: Some(invitation.clone()) };
    let a = End::start(Settings { side, ..settings.clone() }, &pair.runtime);
    let to_join = join(&token, &pair.joiner, &own, pair.limits);
    std::thread::scope(|scope| {
        let joining = scope.spawn(|| pair.runtime.block_on(to_join));
        let addresses = a.wait("Joined", |h| match h {
            Happened::Joined { newcomer, .. } => Some(newcomer.addresses.clone()),
            _ => None,
        });
        // The answer was dropped with the event.
        assert_eq!(addresses, own);
        assert_eq!(joining.join().expect("it ends"), refused_for(JoinDenial::NotRecorded));
    });
    let few = pair.runtime.block_on(join(&token, &pair.joiner, &own[..1], pair.limits));
    assert_eq!(few, Err(SystemRefusal::JoinNetworksDiffer { own: 1, token: 2 }));
    a.stop();
    // A token of two addresses at a head that has one by now.
    let side = Side::Listens {
        networks: vec![Listens { own: pair.at[0], peer: None }],
        peer: None,
        invitation: Some(invitation),
    };
    let _a = End::start(Settings { side, ..settings }, &pair.runtime);
    let many = pair.runtime.block_on(join(&token, &pair.joiner, &own, pair.limits));
    assert_eq!(many, refused_for(JoinDenial::Networks));
    for error in [few, many].map(|e| e.expect_err("refused")) {
        assert!(crate::words::why(&error.into()).next.is_some());
    }
}

#[test]
fn a_request_of_another_version_or_of_noise_is_answered() {
    let pair = Pair::new();
    let (settings, token, _) = create(&pair, LIFE_S);
    let a = End::start(settings, &pair.runtime);
    let request = Request {
        versions: VERSIONS,
        system: SYSTEM,
        secret: token.secret,
        addresses: vec![pair.at[1].ip()],
    };
    let newer = Request { versions: (8, 9), ..request.clone() }.encode();
    let mut noise = request.encode();
    noise[7] = 1;
    let mut nowhere = request.encode();
    nowhere[41..45].fill(0);
    for (bytes, denied) in [
        (newer, JoinDenial::Version),
        (noise, JoinDenial::Malformed),
        (nowhere, JoinDenial::Networks),
        ([0; REQUEST_BYTES], JoinDenial::Version),
    ] {
        let mut peer = Peer::new(pair.at[0], client(&pair.joiner, Purpose::Join, pair.creator.fingerprint()));
        let mut answer = [0; SHORT_BYTES];
        peer.tls.write_all(&bytes).and_then(|()| peer.tls.read_exact(&mut answer)).expect("an answer");
        assert_eq!(decode_answer(&answer), Some(Err(denied.clone())));
        drop(peer);
        assert_eq!(a.refused(), LinkRefusal::Denied(denied));
    }
}
