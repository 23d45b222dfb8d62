//! Worlds in which legs hang again and again, and hosts write the same few blocks: a write waits for others whose
//! leg hangs, and then its own leg hangs.

use base::Duration;
use sim::run::{Options, Trouble, run};

/// Promise 7: 5 s, however many hangs there are one after the other. (Each write had 3.5 s of its own for each
/// drive operation, so that one that had waited for another took up to twice that. And one that waited for a copy to a leg
/// that hung, and was lost by other writes meanwhile, waited until the copy's own time was over: 5.8 s with seed 44.)
#[test]
fn a_write_behind_hung_writes_is_in_time() {
    for seed in 0..80 {
        let mut options = Options::usual(seed);
        options.troubles = vec![Trouble::Hang];
        options.ill_max = 1;
        options.pause = Duration::from_millis(5);
        options.troubles_max = 100_000;
        options.habits.blocks = 8;
        options.habits.blocks_max = 4;
        options.habits.reset_ppm = 0;
        if let Err(failure) = run(options) {
            panic!("seed {seed}: {}", failure.what);
        }
    }
}
