//! The head is stopped while drives hang and orders wait.

use super::*;
use base::Duration;

/// Longer than a stop may take: what systemd and people at a terminal wait for without a thought.
const SOON: u64 = 6;

impl World {
    /// The manager asks for the end. Time passes only with `pass`.
    fn stop(&mut self) -> Instant {
        self.events.push_back(Event::Mail { from: Address::Manager, mail: StewardMail::Stop.into() });
        self.now
    }
    /// An order whose answer nobody waits for.
    fn post(&mut self, id: u64, order: Order) {
        self.events
            .push_back(Event::Mail { from: Address::Manager, mail: StewardMail::Order { id, order }.into() });
    }
    fn answer(&self, id: u64) -> Option<String> {
        self.answers.get(&id).map(|a| a.as_ref().map_or_else(|r| r.why.name().into(), |_| "done".into()))
    }
}

#[test]
fn a_leg_that_hangs_does_not_keep_the_head_from_stopping() {
    let mut w = usual();
    let b = w.rest.drives.get_mut("/f/b").expect("there");
    (b.hangs, b.stuck) = (true, true);
    // Looks at it are among what it holds.
    w.pass(5);
    let asked = w.stop();
    w.pass(SOON);
    assert!(w.stopped.is_some_and(|at| at.since(asked) <= Duration::from_secs(SOON)), "{:?}", w.stopped);
    let b = w.rest.drives.get_mut("/f/b").expect("there");
    (b.hangs, b.stuck) = (false, false);
    let mut w = w.crash(2);
    assert_eq!(w.legs(0)[0], LegState::InSync);
    assert!(w.layout.volumes[0].ready, "{:?}", w.status().reasons);
}

#[test]
fn an_order_that_waits_for_a_hung_drive_is_given_up_when_the_head_stops() {
    let mut w = usual();
    for drive in ["/f/y", "/f/z"] {
        let stuck = FakeDrive { stuck: drive == "/f/z", ..drives(&[drive]).drives[drive].clone() };
        w.rest.drives.insert(drive.into(), stuck);
    }
    w.post(1000, create("late", vec![mirror("/f/y", "/f/z")]));
    w.post(1001, volume("vm2", 5 * MIB));
    w.pass(0);
    assert_eq!((w.answer(1000), w.answer(1001)), (None, None), "the drive hangs");
    let asked = w.stop();
    w.post(1002, volume("vm3", 5 * MIB));
    // The stop is asked for now, and not when the next second is over.
    w.pass(0);
    w.pass(1);
    let nothing_done = Some("StoppingNotBegun".to_string());
    assert_eq!((w.answer(1001), w.answer(1002)), (nothing_done.clone(), nothing_done));
    assert_eq!(w.answer(1000), None, "it has a moment to end by itself");
    w.pass(SOON - 1);
    assert_eq!(w.answer(1000).as_deref(), Some("StoppingGivenUp"));
    assert!(w.stopped.is_some_and(|at| at.since(asked) <= Duration::from_secs(SOON)), "{:?}", w.stopped);
    w.post(1003, host());
    w.pass(1);
    assert_eq!(w.answer(1003).as_deref(), Some("StoppingNotBegun"));
    w.rest.drives.remove("/f/z");
    let mut w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::InSync]);
    assert_eq!(w.status().volumes.len(), 1);
}

#[test]
fn an_order_that_ends_in_time_is_carried_out_and_the_pools_are_closed() {
    let mut w = usual();
    w.rest.drives.get_mut("/f/b").expect("there").hangs = true;
    w.post(1000, volume("vm2", 5 * MIB));
    w.pass(0);
    assert_eq!(w.answer(1000), None, "a drive takes its time");
    w.stop();
    w.pass(SOON);
    assert_eq!(w.answer(1000).as_deref(), Some("done"));
    assert!(w.stopped.is_some() && w.open.is_empty());
    let w = w.crash(2);
    assert_eq!(w.layout.volumes.len(), 2);
}

#[test]
fn a_stop_before_the_pools_are_there_does_not_wait_for_them() {
    let mut w = usual();
    w.rest.drives.get_mut("/f/d").expect("there").stuck = true;
    let mut w = World::power_on(w.rest, 2, u64::MAX);
    w.ready = Some(vec![]);
    w.pass(1);
    let asked = w.stop();
    w.pass(SOON);
    assert!(w.stopped.is_some_and(|at| at.since(asked) <= Duration::from_secs(SOON)), "{:?}", w.stopped);
    w.rest.drives.get_mut("/f/d").expect("there").stuck = false;
    let w = w.crash(3);
    assert_eq!((w.legs(0), w.legs(1)), (vec![LegState::InSync; 2], vec![LegState::InSync; 2]));
}

/// A restart while drives were being made the same, and the next head believed them.
#[test]
fn what_was_not_compared_when_the_head_stopped_is_compared_by_the_next() {
    let mut w = World::start(drives(&["/f/a", "/f/b"]), 1);
    w.good(create("tank", vec![mirror("/f/a", "/f/b")]));
    w.rest.forget_bitmaps(&["/f/a", "/f/b"]);
    let mut w = w.crash(2);
    assert!(w.layout.arrays[0].unclean);
    w.stop();
    w.pass(SOON);
    assert!(w.stopped.is_some());
    let w = w.crash(3);
    let array = &w.layout.arrays[0];
    assert!(array.unclean && array.dirty.count() == array.geometry.regions());
}

/// It has the record of the same life of the head, and lacks what was written after the copy was made.
#[test]
fn an_older_copy_put_in_a_drives_place_while_the_head_was_stopped_starts_from_nothing() {
    let mut w = usual();
    let older = w.rest.drives["/f/b"].blocks.clone();
    w.stop();
    w.pass(SOON);
    assert!(w.stopped.is_some());
    w.rest.drives.get_mut("/f/b").expect("there").blocks = older;
    let mut w = w.crash(2);
    assert_eq!(w.legs(0), [LegState::InSync, LegState::Rebuilding]);
    assert!(w.events().iter().any(|e| e.contains("/f/b") && e.contains("LegOlder")), "{:?}", w.events());
    let array = &w.layout.arrays[0];
    assert_eq!(array.dirty.count(), array.geometry.regions(), "all of it is copied");
}

#[test]
fn a_head_that_stops_refuses_to_say_what_it_has() {
    let mut w = usual();
    w.post(1000, Order::Status);
    w.stop();
    for id in 1001..1040 {
        w.post(id, if id % 2 == 0 { Order::Status } else { Order::Figures });
    }
    w.pass(SOON);
    assert!(w.stopped.is_some());
    w.post(1040, Order::Status);
    w.pass(1);
    assert_eq!(w.answer(1040).as_deref(), Some("Stopping"));
    let volumes = |answer: &Answered| match answer {
        Ok(Reply::Snapshot(status)) => Some(status.volumes.len()),
        Ok(Reply::Figures(figures)) => Some(figures.volumes.len()),
        _ => None,
    };
    let told: Vec<usize> = (1000..1041).filter_map(|id| volumes(&w.answers[&id])).collect();
    assert!(told.iter().all(|n| *n == 1), "{told:?}");
}
