//! One head's part, as processes of the other head come and go.

use base::fence::Process;
use base::{Duration, Instant, Uuid};
use cluster::link::{self, Heard, Link};
use cluster::member::{Do, NotReached, Settings};
use cluster::message::Message;
use cluster::watch::Times;
use cluster::{HeadNo, Member, Part, Slot, SystemRecord, Voter};

const SYSTEM: Uuid = Uuid([7; 16]);
const ROUND: u64 = 5;

/// What head b has sent arrives, and what head a sends. What that one wants done otherwise.
fn pass(member: &mut Member, now: Instant, other: &mut Link) -> Vec<Do> {
    for what in other.dos() {
        let link::Do::Send { bytes, .. } = what else { panic!("{what:?}") };
        member.on_bytes(0, &bytes);
    }
    let mut rest = vec![];
    for what in member.turn(now) {
        match what {
            Do::Link(link::Do::Send { bytes, .. }) => other.on_bytes(0, &bytes),
            what => rest.push(what),
        }
    }
    rest
}
/// What head a asks of its own directory is done, until it asks for nothing more.
fn votes(member: &mut Member, now: Instant, other: &mut Link, block: &mut Option<Slot>) {
    for _ in 0..20 {
        for what in pass(member, now, other) {
            let Do::Vote(ask) = what else { continue };
            *block = ask.write.or(block.take());
            member.on_voted(now, ask.voter, ask.round, Some([block.clone(), None]));
        }
    }
}
/// Head a, which knows this to be decided.
fn head_a(known: SystemRecord) -> Member {
    let settings = Settings {
        me: HeadNo::A,
        life: 11,
        name: "a".into(),
        process: Process { pid: 1, started: 1 },
        networks: 1,
        times: Times::default(),
        seed: 1,
    };
    Member::new(settings, known)
}
/// A process of head b comes.
fn comes(member: &mut Member, now: Instant, life: u64) -> Link {
    let mut other = Link::new(SYSTEM, HeadNo::B, life, 1, 1);
    member.on_up(0);
    other.on_up(0);
    pass(member, now, &mut other);
    other
}
/// The same, and asks for something in one of its rounds: by which number that is to be done.
fn asks(member: &mut Member, now: Instant, life: u64) -> (Link, u64) {
    let mut other = comes(member, now, life);
    other.send(Message::Vote { round: ROUND, write: None }.encode()).expect("the link is empty");
    let number = |what: &Do| match what {
        Do::VoteFor { number, .. } => Some(*number),
        _ => None,
    };
    let number = pass(member, now, &mut other).iter().find_map(number);
    (other, number.expect("it is to be done"))
}
/// The rounds in which it was answered.
fn answered(other: &mut Link) -> Vec<u64> {
    let round = |heard: Heard| match heard {
        Heard::Message(bytes) => match Message::decode(HeadNo::A, &bytes) {
            Ok(Message::Voted { round, .. }) => Some(round),
            _ => None,
        },
        _ => None,
    };
    other.heard().into_iter().filter_map(round).collect()
}

/// The state directory was slow. Each process counts its rounds from 1, and what the next one had asked for was not durable yet.
#[test]
fn what_was_done_for_a_process_that_is_over_is_no_vote_for_the_next_one() {
    let mut member = head_a(SystemRecord::founding(SYSTEM));
    let now = Instant(1_000_000_000);
    let (_, late) = asks(&mut member, now, 22);
    let now = now + Duration::from_millis(100);
    let (mut other, own) = asks(&mut member, now, 33);
    member.on_voted_for(late, Some([None, None]));
    pass(&mut member, now, &mut other);
    assert!(answered(&mut other).is_empty(), "its own is still to be done");
    member.on_voted_for(own, Some([None, None]));
    pass(&mut member, now, &mut other);
    assert_eq!(answered(&mut other), vec![ROUND]);
}

/// A shard that had no connection with the former process says so late. The next one was put out for it as soon as it was in.
#[test]
fn what_is_said_of_a_process_that_is_out_does_not_count_for_the_next_one() {
    let both = SystemRecord::founding(SYSTEM).led_by(HeadNo::A, 11, "a").with(HeadNo::B, 22);
    let out = Message::Record(Box::new(both.without(HeadNo::B)));
    let (mut member, now, mut block) = (head_a(both), Instant(1_000_000_000), None);
    let mut other = comes(&mut member, now, 33);
    other.send(out.encode()).expect("the link is empty");
    votes(&mut member, now, &mut other, &mut block);
    assert!(member.part() == Part::Leader && !member.known().is_in(HeadNo::B));
    member.on_silent();
    member.on_path_lost();
    member.put_out();
    member.on_fenced();
    other.send(Message::Join { name: "b".into() }.encode()).expect("the link is empty");
    votes(&mut member, now, &mut other, &mut block);
    assert!(member.known().is_in_as(HeadNo::B, 33), "{:?}", member.known());
}

/// Files were lost, and the other head leads: this one would fence it off every drive.
#[test]
fn a_head_that_finds_no_record_begins_no_system_before_drives_were_asked() {
    let mut member = head_a(SystemRecord::founding(SYSTEM));
    member.on_blank();
    let votes = |member: &mut Member, seconds: u64| {
        let now = Instant(1_000_000_000) + Duration::from_secs(seconds);
        member.turn(now).into_iter().filter(|what| matches!(what, Do::Vote(_))).count()
    };
    let waits = (0..20).map(|seconds| votes(&mut member, seconds)).sum::<usize>();
    assert_eq!(waits, 0);
    member.on_nothing_found();
    assert_eq!(votes(&mut member, 20), 1);
    // A drive knows better.
    let mut member = head_a(SystemRecord::founding(SYSTEM));
    member.on_blank();
    let led = SystemRecord::founding(SYSTEM).with(HeadNo::B, 22).led_by(HeadNo::B, 22, "b");
    member.on_found(Instant(1_000_000_000), &led);
    assert!(!member.is_blank() && *member.known() == led && member.part() == Part::Outside);
}

/// The trial of a drive that hung ended when the next one went on, and the other way round: this head took its own trial for its end.
#[test]
fn a_drive_is_spared_until_its_own_trials_have_ended() {
    let [first, second] = [Uuid([1; 16]), Uuid([2; 16])];
    let mut known = SystemRecord::founding(SYSTEM).led_by(HeadNo::A, 11, "a").with(HeadNo::B, 22);
    known.voters.push(Voter::Drive(first));
    let news = Message::Record(Box::new(known.next()));
    let (mut member, mut now) = (head_a(known), Instant(1_000_000_000));
    let mut other = comes(&mut member, now, 22);
    other.send(news.encode()).expect("the link is empty");
    let beats = |member: &mut Member, now: Instant, other: &mut Link| {
        let beat = |what: &Do| matches!(what, Do::Heartbeat { drive, .. } if *drive == first);
        pass(member, now, other).iter().any(beat)
    };
    assert!(beats(&mut member, now, &mut other));
    member.on_drive(now, first, Ok(None));
    now = now + Duration::from_millis(200);
    assert!(beats(&mut member, now, &mut other), "another one is on its way");
    for drive in [first, first, second] {
        member.on_trial(drive);
    }
    member.on_tried(first);
    member.on_drive(now, first, Err(NotReached::Fenced));
    assert_eq!(member.part(), Part::Leader, "one trial goes on");
    now = now + Duration::from_millis(200);
    assert!(!beats(&mut member, now, &mut other));
    member.on_tried(first);
    assert!(beats(&mut member, now, &mut other));
    member.on_drive(now, first, Err(NotReached::Fenced));
    assert_eq!(member.part(), Part::Over);
}
