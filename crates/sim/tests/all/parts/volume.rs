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
