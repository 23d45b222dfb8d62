//! Tests of what all hosts of a world know together.

use sim::oracle::WriteId;
use sim::volume::{Volume, stamp};

const BYTES: usize = 512;

fn rotten(id: WriteId, at: u64) -> Vec<u8> {
    let mut block = vec![0; BYTES];
    stamp(id, at, BYTES, &mut block);
    block[77] ^= 4;
    block
}

fn stamped(id: WriteId, at: u64) -> Vec<u8> {
    let mut block = vec![0; BYTES];
    stamp(id, at, BYTES, &mut block);
    block
}

/// A write that is answered with success.
fn written(volume: &mut Volume, at: u64) -> WriteId {
    let write = volume.write_starts(at, 1, false, false);
    let id = write.id;
    volume.write_ends(write);
    id
}

#[test]
fn a_flush_covers_all_that_was_answered_before_it_and_no_earlier_one_covered() {
    let mut volume = Volume::default();
    let first = written(&mut volume, 0);
    let flush = volume.flush_starts();
    let (later, other) = (written(&mut volume, 0), written(&mut volume, 1));
    volume.flush_ends(flush);
    let flush = volume.flush_starts();
    let last = written(&mut volume, 1);
    volume.flush_ends(flush);
    volume.head_fell(true);
    for (id, at, may_be) in [(first, 0, false), (later, 0, true), (other, 1, true), (last, 1, true)] {
        assert_eq!(volume.may_hold(at, &stamped(id, at)), may_be, "{id} in block {at}");
    }
    // The power cut ended what had not been covered: a Flush says nothing of it.
    let flush = volume.flush_starts();
    volume.flush_ends(flush);
    assert!(volume.may_hold(1, &stamped(other, 1)));
}

#[test]
fn a_rotten_block_may_be_read_until_it_is_written_and_by_whoever_began_before() {
    let mut volume = Volume::default();
    let write = volume.write_starts(0, 1, false, false);
    let id = write.id;
    volume.write_ends(write);
    let before = volume.read_starts(0, 1);
    volume.rots(0);
    let during = volume.read_starts(0, 1);
    let write = volume.write_starts(0, 1, false, false);
    volume.write_ends(write);
    let after = volume.read_starts(0, 1);
    for (read, right) in [(before, true), (during, true), (after, false)] {
        assert_eq!(volume.read_ends(read, Some(&rotten(id, 0)), BYTES).is_ok(), right);
    }
}
