//! Who holds a pool's keeper, and what waits for its end.

use super::*;
use std::cell::Cell;
use std::rc::Rc;

/// Somebody who holds the keeper of the first pool: whether it does, and that it shall let go.
fn holder(w: &mut World) -> [Rc<Cell<bool>>; 2] {
    let (holds, goes) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
    let (held, over) = (holds.clone(), goes.clone());
    let procedures = w.steward.procedures.clone();
    let cx = procedures.cx.clone();
    cx.spawn(async move {
        let pool = procedures.context().pools[0].id;
        let hold = procedures.hold_keeper(pool).await;
        held.set(true);
        procedures.cx.until(move || over.get()).await;
        drop(hold);
    });
    w.run();
    [holds, goes]
}

/// The first to let go once let go for all: what the other had proposed was decided before it was written.
#[test]
fn the_keeper_waits_for_every_holder_and_holders_for_each_other() {
    let mut w = usual();
    let [first, first_goes] = holder(&mut w);
    let [second, second_goes] = holder(&mut w);
    assert!(first.get() && !second.get(), "one after the other");
    lose(&mut w, 0);
    first_goes.set(true);
    w.run();
    assert!(second.get());
    assert_eq!(w.legs(0), [LegState::InSync; 2], "the keeper waits for the other one");
    second_goes.set(true);
    w.run();
    assert_eq!(w.legs(0), [LegState::Missing, LegState::InSync]);
}

#[test]
fn a_pool_whose_keeper_is_held_is_not_marked_as_closed() {
    let mut w = usual();
    let [holds, _goes] = holder(&mut w);
    assert!(holds.get());
    let refused =
        w.order(Order::Shutdown).expect_err("what is written there would come after the last record");
    assert!(refused.said().contains("PoolStillBusy"), "{refused:?}");
}
