//! The volume of the hosts lies where other data was before: on used drives, or in the space of a removed volume. A block
//! that no host has written must be zero, whatever happens.

use crate::pass;

#[test]
fn nobody_reads_what_somebody_left() {
    pass("volumes", 0..30);
}
