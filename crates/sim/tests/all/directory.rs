//! A state directory that becomes read-only while the head serves: its old contents prove no leg that was out of reach meanwhile.

use crate::pass;
use base::Duration;
use sim::run::{Act, Fault, Options, run};
use sim::world::Crash;

/// A leg is lost just before, or up to seconds after, the directory freezes; the head falls, and the next one finds that
/// leg first, or alone. (Before a loss waited for the witness to know of it, or to prove nothing, 50 of 200 seeds read old
/// data: the directory was looked at once a minute, and what lay there proved the leg that was lost meanwhile.)
#[test]
fn no_loss_is_forgotten_whenever_the_directory_freezes() {
    pass("frozen", 0..40);
}

fn at(seconds: u64, fault: Fault) -> Act {
    Act { after: Duration::from_secs(seconds), fault }
}

/// d1 is lost after the directory froze, the head falls, and d1 alone is there at the start. It is the last that the
/// witness knows of, and lacks a minute of writes: hosts wait for d0. (It was believed, and read.)
#[test]
fn a_leg_that_was_lost_beside_a_frozen_directory_is_not_proven_by_what_lies_there() {
    for seed in 0..6 {
        let end = if seed % 2 == 0 { Crash::Killed } else { Crash::PowerCut };
        let mut options = Options::calm(seed);
        options.legs = 2;
        options.mirrors = 1;
        options.commands = 3000;
        options.script = vec![
            at(5, Fault::Freeze { server: 0 }),
            at(70, Fault::pulled(1)),
            at(100, Fault::fall(end)),
            at(100, Fault::pulled(0)),
            at(100, Fault::heals(1)),
            at(130, Fault::heals(0)),
            at(135, Fault::Room),
        ];
        options.delivery.drive_us = 150_000;
        options.habits.depth = 1;
        options.habits.reset_ppm = 0;
        options.habits.abort_permille = 0;
        options.habits.compare_permille = 0;
        options.habits.deallocate_permille = 0;
        options.habits.blocks = 64;
        options.ill_max = 2;
        match run(options) {
            Ok(o) => {
                assert!(o.time > Duration::from_secs(135), "seed {seed}: hosts were at work: {:?}", o.time);
                let refused = o.events.iter().any(|e| e.contains("Unproven {"));
                assert!(refused, "seed {seed}: {:#?}", o.events);
            }
            Err(failure) => panic!("seed {seed}: {}", failure.what),
        }
    }
}
