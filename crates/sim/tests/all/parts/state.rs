//! The state directory of a world.

use base::{StateOp, Token};
use sim::world::{Delivery, World};
use std::collections::BTreeSet;

#[test]
fn what_was_not_answered_may_never_have_been_and_what_was_stays() {
    let file =
        |w: &World, name: &str| w.servers[0].state.get(name).map(|f| String::from_utf8_lossy(f).into_owned());
    let (mut killed, mut cut) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..400 {
        let mut w = World::new(seed, Delivery::default());
        let mut nth = 0;
        let mut op = |w: &mut World, op: StateOp| {
            nth += 1;
            w.state_op(0, Token(nth), op).expect("it takes all");
            Token(nth)
        };
        let write = |name: &str, text: &str| StateOp::Write { name: name.into(), contents: text.into() };
        op(&mut w, write("a", "1"));
        op(&mut w, write("b", "1"));
        let line = StateOp::Append { name: "events".into(), contents: "one\n".into(), bytes_max: 100 };
        let answered = op(&mut w, line);
        w.state_answered(0, answered);
        op(&mut w, write("a", "2"));
        op(&mut w, StateOp::Remove { name: "b".into() });
        let line = StateOp::Append { name: "events".into(), contents: "two\n".into(), bytes_max: 100 };
        op(&mut w, line);
        let power = seed % 2 == 0;
        w.state_fell(0, power);
        let all = (file(&w, "a"), file(&w, "b"), file(&w, "events"));
        if power { &mut cut } else { &mut killed }.insert(all);
        w.state_fell(0, power);
    }
    let some = |text: &str| Some(text.to_string());
    let whole: BTreeSet<_> = [
        (some("1"), some("1"), some("one\n")),
        (some("2"), some("1"), some("one\n")),
        (some("2"), None, some("one\n")),
        (some("2"), None, some("one\ntwo\n")),
    ]
    .into();
    assert_eq!(killed, whole, "in order, and whole or not at all");
    let torn = ["one\nt", "one\ntw", "one\ntwo"].map(|events| (some("2"), None, some(events)));
    assert_eq!(cut, whole.into_iter().chain(torn).collect(), "with the power, what was appended in part");
}
