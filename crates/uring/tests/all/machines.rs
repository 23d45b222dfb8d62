//! Mail, timers, the state directory and idleness, by toy machines.

use crate::common::{Note, PATIENCE, config, house};
use base::{
    Address, ConnectionId, Effect, Effects, Event, Instant, Machine, Slice, StateError, StateOp, Token,
};
use std::time::Duration;

/// Sends numbers to a friend, who passes them on to the manager; ticks.
struct Pen {
    friend: Address,
    ticks: Option<(Instant, u64)>,
}

impl Machine for Pen {
    type Mail = Note;
    fn on_event(&mut self, now: Instant, event: Event<Note>, fx: &mut Effects<Note>) {
        match event {
            // From the manager: write so many letters; or tick so many times.
            Event::Mail { from: Address::Manager, mail: Note::Number(n) } => {
                fx.extend((0..n).map(|i| Effect::Mail { to: self.friend, mail: Note::Number(i) }));
            }
            Event::Mail { from: Address::Manager, mail: Note::Closed(n) } => self.ticks = Some((now, n)),
            Event::Mail { from: Address::Manager, mail: Note::Panic } => {
                let name = || "file".to_owned();
                let write = |contents: &str| StateOp::Write { name: name(), contents: contents.into() };
                let bad = StateOp::Read { name: "../etc".into() };
                let ops = [
                    StateOp::Read { name: name() },
                    write("one"),
                    write("two"),
                    StateOp::Read { name: name() },
                    bad,
                ];
                let ask = |(i, op)| Effect::State { token: Token(i as u64), op };
                fx.extend(ops.into_iter().enumerate().map(ask));
            }
            Event::Mail { from, mail: Note::Number(i) } => {
                assert_eq!(from, self.friend);
                fx.push(Effect::Mail { to: Address::Manager, mail: Note::Number(i) });
            }
            Event::State { token, result } => {
                let good = match token.0 {
                    0 => result == Err(StateError::Missing),
                    3 => result == Ok(b"two".to_vec()),
                    4 => matches!(result, Err(StateError::Failed(_))),
                    _ => result == Ok(vec![]),
                };
                assert!(good, "{token:?}: {result:?}");
                fx.push(Effect::Mail { to: Address::Manager, mail: Note::Number(token.0) });
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    fn on_timer(&mut self, now: Instant, fx: &mut Effects<Note>) {
        let (at, left) = self.ticks.take().unwrap();
        assert!(now >= at, "a timer never fires early");
        if left > 0 {
            self.ticks = Some((now + Duration::from_millis(2), left - 1));
        } else {
            fx.push(Effect::Mail {
                to: Address::Manager,
                mail: Note::Closed(now.since(at).as_nanos() as u64),
            });
        }
    }
    fn end_of_turn(&mut self, _now: Instant, _fx: &mut Effects<Note>) {}
    fn next_deadline(&self) -> Option<Instant> {
        self.ticks.map(|(at, _)| at)
    }
    fn segments(&self, _: ConnectionId, _: usize, _: &mut Vec<Slice>) {}
}

const PENS: [Address; 3] = [Address::Shard(0), Address::Shard(1), Address::Steward];

fn pens(state_dir: Option<std::path::PathBuf>) -> (uring::House<Note>, crate::common::Letters) {
    let (mut house, letters) = house(uring::Config { state_dir, ..config(&PENS) });
    for (address, friend) in [(PENS[0], PENS[1]), (PENS[1], PENS[0]), (PENS[2], Address::Shard(9))] {
        house.spawn(address, move |_, _| Pen { friend, ticks: None }).unwrap();
    }
    (house, letters)
}

#[test]
fn mail_between_reactors_arrives_once_and_in_order_both_ways() {
    const N: u64 = 20_000;
    let (house, letters) = pens(None);
    for shard in &PENS[..2] {
        assert!(house.post().send(*shard, Note::Number(N)));
    }
    let mut next = [0; 2];
    for _ in 0..2 * N {
        let (Address::Shard(from), Note::Number(i)) = letters.recv_timeout(PATIENCE).unwrap() else {
            panic!()
        };
        let next = &mut next[usize::from(from)];
        assert_eq!(i, *next, "in order for each pair");
        *next += 1;
    }
    assert_eq!(next, [N, N]);
    house.stop().unwrap();
}

#[test]
fn single_letters_wake_a_sleeper_every_time() {
    let (house, letters) = pens(None);
    for _ in 0..300 {
        assert!(house.post().send(PENS[0], Note::Number(1)));
        assert_eq!(letters.recv_timeout(PATIENCE).unwrap(), (PENS[1], Note::Number(0)));
    }
    house.stop().unwrap();
}

#[test]
fn mail_to_nobody_is_counted_and_harms_nothing() {
    let (house, letters) = pens(None);
    assert!(!house.post().send(Address::Shard(7), Note::Number(1)));
    assert!(house.post().send(Address::Steward, Note::Number(5)));
    assert!(house.post().send(Address::Steward, Note::Closed(0)));
    assert!(matches!(letters.recv_timeout(PATIENCE).unwrap(), (Address::Steward, Note::Closed(_))));
    assert_eq!(house.mail_dropped(), 6);
    house.stop().unwrap();
}

#[test]
fn mail_after_the_end_is_not_sent() {
    let (house, _letters) = pens(None);
    let post = house.post();
    house.stop().unwrap();
    assert!(!post.send(PENS[0], Note::Number(1)));
}

#[test]
fn timers_fire_at_their_time_and_not_before() {
    let (house, letters) = pens(None);
    let begun = std::time::Instant::now();
    assert!(house.post().send(PENS[0], Note::Closed(50)));
    assert!(matches!(letters.recv_timeout(PATIENCE).unwrap().1, Note::Closed(_)));
    let took = begun.elapsed().as_millis();
    assert!((100..250).contains(&took), "50 times 2 ms took {took} ms");
    house.stop().unwrap();
}

#[test]
fn the_state_directory_is_worked_on_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let (house, letters) = pens(Some(dir.path().join("state")));
    assert!(house.post().send(Address::Steward, Note::Panic));
    for i in 0..5 {
        assert_eq!(letters.recv_timeout(PATIENCE).unwrap(), (Address::Steward, Note::Number(i)));
    }
    assert_eq!(std::fs::read(dir.path().join("state/file")).unwrap(), b"two");
    house.stop().unwrap();
}

#[test]
fn what_the_kernel_can_do_is_reported() {
    let support = uring::probe();
    assert!(support.features.iter().any(|(name, there)| *name == "io_uring" && *there), "{support}");
    assert!(support.to_string().contains("Linux "));
}
