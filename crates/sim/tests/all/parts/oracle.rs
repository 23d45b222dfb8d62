//! Tests of the oracle: which data a block may hold.

use sim::oracle::Block;

#[test]
fn an_answered_write_hides_what_was_before_it() {
    let mut b = Block::default();
    let replaced = b.write_starts(1);
    let during = b.read_starts();
    b.write_ends(1, replaced, false);
    assert_eq!(b.read_ends(during, Some(0)), Ok(()), "old or new while it was under way");
    let after = b.read_starts();
    assert!(b.read_ends(after, Some(0)).is_err(), "only new afterwards");
}

#[test]
fn writes_side_by_side_may_end_either_way_until_a_read_decides() {
    let mut b = Block::default();
    let (one, two) = (b.write_starts(1), b.write_starts(2));
    b.write_ends(1, one, false);
    b.write_ends(2, two, false);
    let r = b.read_starts();
    assert_eq!(b.read_ends(r, Some(1)), Ok(()));
    let r = b.read_starts();
    assert!(b.read_ends(r, Some(2)).is_err(), "the first read decided");
}

#[test]
fn a_write_whose_connection_was_lost_may_land_behind_others_until_its_host_is_back() {
    let mut b = Block::default();
    b.write_starts(1);
    b.write_lost(1);
    let replaced = b.write_starts(2);
    b.write_ends(2, replaced, false);
    let r = b.read_starts();
    assert_eq!(b.read_ends(r, Some(1)), Ok(()), "it was under way longer");
    b.write_settled(1);
    let replaced = b.write_starts(3);
    b.write_ends(3, replaced, false);
    let r = b.read_starts();
    assert!(b.read_ends(r, Some(1)).is_err(), "from then on it is history");
}

#[test]
fn a_write_that_was_answered_with_a_failure_never_lands_behind_what_began_after() {
    let mut b = Block::default();
    b.write_starts(1);
    b.write_failed(1);
    let r = b.read_starts();
    assert_eq!(b.read_ends(r, Some(0)), Ok(()), "it may hang on the last leg");
    let r = b.read_starts();
    assert_eq!(b.read_ends(r, Some(1)), Ok(()), "and land");
    let replaced = b.write_starts(2);
    b.write_ends(2, replaced, false);
    let r = b.read_starts();
    assert!(b.read_ends(r, Some(1)).is_err(), "but not behind this one");
}

#[test]
fn what_was_read_after_the_head_fell_stays_over_power_cuts_until_it_is_written() {
    let mut b = Block::default();
    let replaced = b.write_starts(1);
    b.write_ends(1, replaced, false);
    let r = b.read_starts();
    assert_eq!(b.read_ends(r, Some(1)), Ok(()), "before the head fell a read makes nothing durable");
    b.head_fell();
    b.power_cut();
    for found in [0, 1] {
        let mut b = b.clone();
        let r = b.read_starts();
        assert_eq!(b.read_ends(r, Some(found)), Ok(()));
        b.head_fell();
        b.power_cut();
        let r = b.read_starts();
        assert!(b.read_ends(r, Some(found ^ 1)).is_err(), "it was read");
        let replaced = b.write_starts(2);
        b.write_ends(2, replaced, false);
        let r = b.read_starts();
        assert_eq!(b.read_ends(r, Some(2)), Ok(()));
        b.head_fell();
        b.power_cut();
        let r = b.read_starts();
        assert_eq!(b.read_ends(r, Some(found)), Ok(()), "nobody has flushed the other one");
    }
}

#[test]
fn a_power_cut_may_take_what_no_flush_covered_and_nothing_else() {
    let mut b = Block::default();
    let replaced = b.write_starts(1);
    b.write_ends(1, replaced, false);
    let covered = b.flush_starts();
    let replaced = b.write_starts(2);
    b.write_ends(2, replaced, false);
    b.flush_ends(&covered);
    b.power_cut();
    for (found, right) in [(0, false), (1, true), (2, true)] {
        let mut b = b.clone();
        let r = b.read_starts();
        assert_eq!(b.read_ends(r, Some(found)).is_ok(), right, "{found}");
    }
}
