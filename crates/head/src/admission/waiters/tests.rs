use crate::admission::trial::{Flow, Speed, Trial, reader, writer};
use array::{LANES, Lanes};
use base::Duration;
use volume::Caps;

/// Two drives of 50,000 operations a second.
const SPEED: Speed =
    Speed { each: Duration::from_micros(20), bytes_per_second: 1 << 30, latency: Duration::from_micros(80) };
const SETTLE: Duration = Duration::from_secs(1);
const TIME: Duration = Duration::from_secs(4);

fn measured(shards: u16, volumes: usize, flows: Vec<Flow>) -> Trial {
    let mut trial = Trial::new(shards, SPEED, &vec![Caps::default(); volumes], flows);
    trial.measure(SETTLE, TIME);
    trial
}

fn done(trial: &Trial) -> u64 {
    trial.flows.iter().map(|f| f.done).sum()
}

fn spread(trial: &Trial) -> f64 {
    let of = || trial.flows.iter().map(|f| f.done);
    of().min().expect("some") as f64 / of().max().expect("some") as f64
}

#[test]
fn one_command_beside_thousands_of_another_host_waits_about_as_long_as_alone() {
    let alone = measured(1, 1, vec![reader(0, 1, 1, 1)]).flows[0].mean();
    for bytes in [4096, 64 << 10] {
        let many = |i: u32| Flow { bytes, ..reader(0, 2, 1 + i % 2, 128) };
        let without = done(&measured(1, 2, (0..64).map(many).collect()));
        let mut flows: Vec<Flow> = (0..64).map(many).collect();
        flows.push(reader(0, 1, 1, 1));
        let with = measured(1, 2, flows);
        let mean = with.flows[64].mean();
        let own =
            SPEED.each + Duration::from_nanos(u64::from(bytes) * 1_000_000_000 / SPEED.bytes_per_second);
        let most = 2 * alone + 3 * own;
        assert!(mean <= most, "{bytes}: {mean:?}, alone {alone:?}, at most {most:?}");
        let others: u64 = with.flows[..64].iter().map(|f| f.done).sum();
        assert!(others * 100 >= without * 90 && done(&with) * 100 >= without * 97, "{others} of {without}");
    }
}

#[test]
fn one_command_on_another_shard_waits_as_short() {
    let alone = measured(2, 2, vec![reader(1, 1, 1, 1)]).flows[0].mean();
    let mut flows: Vec<Flow> = (0..64).map(|_| reader(0, 2, 2, 128)).collect();
    flows.push(reader(1, 1, 1, 1));
    let mean = measured(2, 2, flows).flows[64].mean();
    assert!(mean <= 2 * alone + 2 * SPEED.each, "{mean:?}, alone {alone:?}");
}

#[test]
fn equal_volumes_and_equal_paths_have_equal_shares_of_all_that_the_drives_do() {
    let all = 2 * (TIME.as_nanos() / 24_000) as u64;
    for shards in [1, 2] {
        let shard = |i: u32| i as usize % usize::from(shards);
        let volumes = (0..16).map(|i| reader(shard(i), 1, 1 + i, 128)).collect();
        let trial = measured(shards, 16, volumes);
        assert!(spread(&trial) > 0.95, "volumes, {shards} shards: {}", spread(&trial));
        assert!(done(&trial) * 100 >= all * 97, "{} of {all}", done(&trial));
        for depth in [32, 64] {
            let paths = (0..16).map(|i| reader(shard(i), 1 + i % 4, 1 + i / 4, depth)).collect();
            let trial = measured(shards, 4, paths);
            assert!(spread(&trial) > 0.95, "paths, {shards} shards: {}", spread(&trial));
            assert!(done(&trial) * 100 >= all * 97, "{} of {all}", done(&trial));
        }
    }
}

#[test]
fn a_host_of_one_connection_has_as_much_as_one_of_sixty_four() {
    let mut flows: Vec<Flow> = (0..64).map(|_| reader(0, 2, 1, 128)).collect();
    flows.push(reader(0, 1, 1, 128));
    let trial = measured(1, 1, flows);
    let share = trial.flows[64].done as f64 / done(&trial) as f64;
    assert!((0.45..0.55).contains(&share), "{share}");
}

#[test]
fn a_writer_of_large_blocks_does_not_starve_readers_of_small_ones() {
    let mut flows: Vec<Flow> = (0..2).map(|_| writer(0, 2, 2, 32, 4 << 20)).collect();
    flows.extend((0..4).map(|_| reader(0, 1, 1, 8)));
    let trial = measured(1, 2, flows);
    let (written, read) = trial.flows.split_at(2);
    let bytes = written.iter().map(|f| f.done).sum::<u64>() << 20 << 2;
    let reads = read.iter().map(|f| f.done).sum::<u64>();
    assert!(bytes * 100 >= (30 * TIME.as_secs()) << 30, "written: {bytes}");
    assert!(reads >= 10_000 * TIME.as_secs(), "read: {reads}, {:?}", read[0].mean());
}

#[test]
fn shards_with_more_paths_get_more_credits() {
    let shard = |i: u32| usize::from(i >= 11);
    let volumes = (0..16).map(|i| reader(shard(i), 1, 1 + i, 128)).collect();
    let trial = measured(2, 16, volumes);
    assert!(spread(&trial) > 0.9, "volumes: {}", spread(&trial));
    let paths = (0..16).map(|i| reader(shard(i), 1 + i % 4, 1 + i / 4, 128)).collect();
    let trial = measured(2, 4, paths);
    assert!(spread(&trial) > 0.9, "paths: {}", spread(&trial));
}

#[test]
fn who_is_aborted_while_it_waits_leaves_its_place_in_line_and_comes_again() {
    let mut trial =
        measured(2, 2, (0..32).map(|i| reader(i as usize % 2, 1 + i % 4, 1 + i % 2, 64)).collect());
    for i in 0..64 {
        trial.abort(i % 32);
        trial.run(Duration::from_millis(7));
    }
    trial.measure(SETTLE, TIME);
    assert!(spread(&trial) > 0.9, "{}", spread(&trial));
}

#[test]
fn volumes_have_shares_by_their_weights_also_when_these_change_and_on_two_shards() {
    for shards in [1, 2] {
        let last = usize::from(shards) - 1;
        let flows = [(0, 1), (0, 2), (last, 2), (last, 3)].map(|(shard, v)| reader(shard, 1, v, 512));
        let mut trial = Trial::new(shards, SPEED, &vec![Caps::default(); 3], flows.into());
        for weights in [vec![], vec![100, 300, 100], vec![50, 100, 400]] {
            trial.weights = weights.clone();
            trial.configure(&vec![Caps::default(); 3]);
            trial.measure(SETTLE, TIME);
            let of =
                |v: u32| trial.flows.iter().filter(|f| f.volume == v).map(|f| f.done).sum::<u64>() as f64;
            let weight = |v: u32| f64::from(weights.get(v as usize - 1).copied().unwrap_or(100));
            for v in 2..=3 {
                let (has, wanted) = (of(v) / of(1), weight(v) / weight(1));
                assert!((has / wanted - 1.0).abs() < 0.1, "{shards} shards, {weights:?}, {v}: {has}");
            }
        }
    }
}

/// Each shard had all parts of commands that it may have under way at the other one. Its own next command waited for one
/// of them, and the other's waited behind that, for ever.
#[test]
fn two_shards_whose_commands_are_all_at_each_other_go_on() {
    let zeroes = |shard: usize| Flow {
        op: base::Op::WriteZeroes { deallocate: false },
        bytes: 1 << 20,
        ..reader(shard, 1 + shard as u32, 1, 64)
    };
    let flows = vec![zeroes(0), zeroes(1)];
    let mut trial = Trial::with(2, SPEED, &vec![Caps::default(); 1], flows, (2, 16));
    trial.measure(SETTLE, TIME);
    let each: Vec<u64> = trial.flows.iter().map(|f| f.done).collect();
    assert!(each.iter().all(|done| *done > 100), "{each:?}");
}

/// All lanes of one shard, then all of the other, then any: commands wait meanwhile, and none is lost or refused. Writes of 64 KiB to few
/// places meet each other all the time.
#[test]
fn lanes_are_dealt_anew_under_load() {
    let mut prng = base::Prng::new(3);
    let flow = |i: u32| match i % 3 {
        0 => reader(i as usize % 3, 1, 1 + i % 2, 16),
        _ => writer(i as usize % 3, 2, 1 + i % 2, 16, 64 << 10),
    };
    let mut trial = Trial::new(3, SPEED, &vec![Caps::default(); 2], (0..12).map(flow).collect());
    trial.run(SETTLE);
    let mut longest = Duration::ZERO;
    for round in 0..40 {
        let lanes = match round {
            0..3 => Lanes::new([round; LANES as usize]),
            _ => Lanes::new(core::array::from_fn(|_| prng.below(3) as u16)),
        };
        if round % 4 == 3 {
            trial.halt_and_resume();
            trial.run(Duration::from_millis(20));
        }
        longest = longest.max(trial.deal(lanes));
        let before = done(&trial);
        trial.run(Duration::from_millis(prng.between(1, 100)));
        trial.measure(Duration::ZERO, Duration::from_millis(200));
        assert!(trial.flows.iter().all(|f| f.done > 0), "round {round}, after {before}: {:?}", done(&trial));
    }
    // What was under way, its bits, and a flush.
    assert!(longest < Duration::from_millis(100), "{longest:?}");
    println!("no command started for {longest:?} at most");
}
