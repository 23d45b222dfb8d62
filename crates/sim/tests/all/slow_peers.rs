//! Slow peers, which start many commands and then send or take no data, beside one host that works: that host is served,
//! and the memory that the slow peers held comes back.

use base::view::Protocol;
use sim::run::{Options, run};
use sim::slow_peer::Habit;

fn beside(good: Protocol, slow_peers: &[(Protocol, Habit)], seed: u64) {
    let options = Options::beside(seed, good, slow_peers);
    match run(options) {
        Ok(outcome) => assert_eq!(outcome.lost, 0, "seed {seed}, {good:?} beside {slow_peers:?}"),
        Err(failure) => panic!("seed {seed}, {good:?} beside {slow_peers:?}: {}", failure.what),
    }
}

#[test]
fn a_host_works_on_beside_hosts_that_keep_what_they_are_lent() {
    use Habit::{Deaf, Dribbles, Presumes, Withholds};
    use Protocol::{Iscsi, Nvme};
    let mut seed = 0;
    for good in [Nvme, Iscsi] {
        for bad in [Nvme, Iscsi] {
            for habit in [Withholds, Dribbles, Deaf, Presumes] {
                for count in [1, 4] {
                    seed += 1;
                    beside(good, &vec![(bad, habit); count], seed);
                }
            }
        }
        let all = [Withholds, Dribbles, Deaf, Presumes].map(|habit| [(Nvme, habit), (Iscsi, habit)]).concat();
        beside(good, &all, seed);
    }
}

#[test]
fn a_host_works_on_beside_its_own_sessions_that_keep_what_they_are_lent() {
    use Habit::{Deaf, Dribbles, Presumes, Withholds};
    use Protocol::{Iscsi, Nvme};
    let mut seed = 100;
    for good in [Nvme, Iscsi] {
        for bad in [Nvme, Iscsi] {
            for habit in [Withholds, Dribbles, Deaf, Presumes] {
                seed += 1;
                let options = Options { kin: true, ..Options::beside(seed, good, &[(bad, habit); 2]) };
                match run(options) {
                    Ok(outcome) => {
                        assert_eq!(outcome.lost, 0, "seed {seed}, {good:?} beside its own {bad:?}, {habit:?}")
                    }
                    Err(e) => panic!("seed {seed}, {good:?} beside its own {bad:?}, {habit:?}: {}", e.what),
                }
            }
        }
    }
}
