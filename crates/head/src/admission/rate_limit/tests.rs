use crate::admission::trial::{AllCaps, Flow, Speed, Trial, reader, writer};
use base::Duration;
use volume::Caps;

/// Drives that are never the limit.
const FAST: Speed =
    Speed { each: Duration::ZERO, bytes_per_second: 1 << 40, latency: Duration::from_micros(80) };
const TEN: Duration = Duration::from_secs(10);

fn capped(iops_max: u32, mbps_max: u32) -> AllCaps {
    vec![Caps { iops_max, mbps_max }]
}

fn measured(shards: u16, caps: &AllCaps, flows: Vec<Flow>) -> Trial {
    let mut trial = Trial::new(shards, FAST, caps, flows);
    trial.measure(Duration::from_millis(500), TEN);
    trial
}

fn done(trial: &Trial) -> u64 {
    trial.flows.iter().map(|f| f.done).sum()
}

fn near(n: u64, exact: u64, percent: u64, what: &str) {
    assert!(n.abs_diff(exact) * 100 <= exact * percent, "{what}: {n}, and it should be {exact}");
}

#[test]
fn a_cap_of_commands_is_kept_on_one_shard_and_on_several_wherever_the_load_is() {
    for shards in [1_u16, 2, 3] {
        for iops in [100_u32, 5000] {
            // All on one shard, which may be the volume's home or not; or one flow on each.
            let mut loads: Vec<Vec<usize>> = (0..usize::from(shards)).map(|s| vec![s]).collect();
            loads.push((0..usize::from(shards)).collect());
            for load in loads {
                let flows = load.iter().map(|s| reader(*s, 1, 1, 32)).collect();
                let trial = measured(shards, &capped(iops, 0), flows);
                near(done(&trial), u64::from(iops) * 10, 2, &format!("{iops}, {shards} shards, {load:?}"));
                let even = u64::from(iops) * 10 / load.len() as u64;
                trial.flows.iter().for_each(|f| near(f.done, even, 10, "each shard's part"));
            }
        }
    }
}

#[test]
fn a_cap_of_bytes_is_kept_and_the_slower_of_both_counts() {
    for shards in [1_u16, 2] {
        let flows = || (0..usize::from(shards)).map(|s| writer(s, 1, 1, 8, 64 << 10)).collect();
        let trial = measured(shards, &capped(0, 20), flows());
        near(done(&trial) * (64 << 10), 200_000_000, 2, "bytes");
        let trial = measured(shards, &capped(1000, 20), flows());
        near(done(&trial) * (64 << 10), 200_000_000, 2, "bytes before commands");
        let trial = measured(shards, &capped(100, 20), flows());
        near(done(&trial), 1000, 2, "commands before bytes");
    }
}

#[test]
fn a_capped_volume_does_not_hold_up_another_and_load_below_the_cap_does_not_wait() {
    let caps =
        vec![Caps { iops_max: 100, mbps_max: 0 }, Caps::default(), Caps { iops_max: 20_000, mbps_max: 0 }];
    for shards in [1, 2] {
        let trial = measured(
            shards,
            &caps,
            vec![reader(0, 1, 1, 128), reader(0, 1, 2, 1), reader(usize::from(shards) - 1, 1, 3, 1)],
        );
        near(trial.flows[0].done, 1000, 2, "the capped one");
        let alone = FAST.latency + Duration::from_micros(1);
        assert!(trial.flows[1].mean() <= alone, "beside it: {:?}", trial.flows[1].mean());
        let most = if shards == 1 { alone } else { alone + Duration::from_micros(20) };
        assert!(trial.flows[2].mean() <= most, "below its cap: {:?}", trial.flows[2].mean());
    }
}

#[test]
fn fua_writes_and_flushes_do_not_wait_for_bytes_and_their_bytes_are_not_free() {
    let fua = Flow { fua: true, ..writer(0, 1, 1, 1, 64 << 10) };
    let flush = Flow { op: base::Op::Flush, bytes: 0, ..reader(0, 1, 1, 1) };
    let trial = measured(1, &capped(0, 1), vec![writer(0, 1, 1, 64, 64 << 10), fua, flush]);
    let [data, fua, flush] = &trial.flows[..] else { panic!("three flows") };
    assert!(fua.mean() < Duration::from_millis(1), "{:?}", fua.mean());
    assert!(flush.mean() < Duration::from_millis(1), "{:?}", flush.mean());
    assert!(data.done * (64 << 10) < 10_500_000, "{} data writes", data.done);
    // Where commands are what is short, neither kind starves the other.
    let fua = Flow { fua: true, ..writer(0, 1, 1, 32, 4096) };
    let trial = measured(1, &capped(1000, 0), vec![writer(0, 1, 1, 32, 4096), fua]);
    trial.flows.iter().for_each(|f| near(f.done, 5000, 2, "each kind's half"));
}

#[test]
fn what_waits_at_a_rate_limiter_can_be_aborted_and_the_rate_is_kept_all_the_same() {
    for shards in [1, 2] {
        let flows =
            (0..usize::from(shards)).flat_map(|s| [reader(s, 1, 1, 32), reader(s, 2, 1, 32)]).collect();
        let mut trial = Trial::new(shards, FAST, &capped(500, 0), flows);
        trial.measure(Duration::from_millis(500), Duration::from_millis(1));
        let mut aborted = 0;
        for round in 0..100 {
            let waiting = trial.flows[0].depth;
            trial.abort(round % trial.flows.len());
            aborted += u64::from(waiting);
            trial.run(Duration::from_millis(100));
        }
        let good: u64 = trial.shards.iter_mut().map(|s| s.core_mut().volume_counters[1].capped).sum();
        assert!(good > 0);
        let all = done(&trial);
        assert!(all > aborted / 2, "aborted commands are answered: {all}");
        near(trial.drive_bytes / 4096, 5000, 4, "reads that reached a drive");
    }
}

#[test]
fn a_cap_that_goes_lets_everybody_pass_and_a_new_one_holds_at_once() {
    for shards in [1, 2] {
        let flows = || (0..usize::from(shards)).map(|s| reader(s, 1, 1, 32)).collect();
        let mut trial = Trial::new(shards, FAST, &capped(10, 0), flows());
        trial.run(Duration::from_secs(3));
        trial.configure(&capped(0, 0));
        trial.measure(Duration::from_millis(10), Duration::from_millis(100));
        near(done(&trial), 1250 * 32 * u64::from(shards), 2, "without a cap");
        trial.configure(&capped(2000, 0));
        trial.measure(Duration::from_millis(10), TEN);
        near(done(&trial), 20_000, 2, "with another");
    }
}
