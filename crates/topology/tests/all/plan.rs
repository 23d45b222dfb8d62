//! Layouts, and what they are predicted to give.

use crate::machines;
use api::{Counters, Drive, Shard, Volume};
use topology::plan::{
    Array, Bank, Description, DescriptionError as Bad, Full, Gain, Kind, Part, Passes, Plan, PlanError,
    Ports, SeatReason, Shards, Site, Unknown, pair, plan, site,
};
use topology::{Machine, Own, OwnShard};

fn kind(name: &str, count: usize) -> Kind {
    Kind {
        name: name.into(),
        count: Some(count),
        bank: None,
        node: None,
        link: None,
        read_iops: None,
        write_iops: None,
        read_mbps: None,
        write_mbps: None,
    }
}

fn bank(name: &str, link: &str) -> Bank {
    Bank { name: name.into(), link: Some(link.into()), mbps: None, node: None }
}

fn singles(names: &[&str]) -> Vec<Array> {
    names.iter().map(|n| Array { drives: vec![n.to_string()], weight: 1.0 }).collect()
}

fn mirror(legs: &[&str], weight: f64) -> Array {
    Array { drives: legs.iter().map(|n| n.to_string()).collect(), weight }
}

/// Rates of the four loads: commands a second for 4 KiB, MB/s for 128 KiB.
fn rates(plan: &Plan) -> [f64; 4] {
    let p = &plan.predictions;
    [p[0].iops, p[1].iops, p[2].mbps, p[3].mbps].map(|n| n.expect("known"))
}

/// What passes a full part, bytes a second.
fn bytes(full: &Full) -> f64 {
    match full.passes {
        Passes::Bytes { bytes } => bytes,
        Passes::Commands { commands } => panic!("{commands} commands pass"),
    }
}

fn drive(name: &str) -> Part {
    Part::Drive { drive: name.into() }
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= expected * 0.001
}

fn measured(drives: &[(&str, f64)]) -> Description {
    let one =
        |(name, mb): &(&str, f64)| Kind { read_mbps: Some(*mb), write_mbps: Some(*mb), ..kind(name, 1) };
    Description { drive: drives.iter().map(one).collect(), ..Description::default() }
}

#[test]
fn eight_drives_on_one_bank_are_what_was_published_within_five_percent() {
    let drive = Kind {
        bank: Some("left".into()),
        link: Some("Gen3 x2".into()),
        read_iops: Some(380_000.0),
        ..kind("d", 8)
    };
    let described =
        Description { bank: vec![bank("left", "Gen3 x16")], drive: vec![drive], ..Description::default() };
    let place = site(&described).expect("possible");
    let names: Vec<String> = (0..8).map(|i| format!("d{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let plan = plan(&place, &singles(&names)).expect("a plan");
    let reads = &plan.predictions[0];
    let iops = reads.iops.expect("known");
    assert!((iops / 2_980_000.0 - 1.0).abs() < 0.05, "{iops}");
    let limit = reads.limit.as_ref().expect("known");
    let passes = Passes::Commands { commands: 380_000.0 };
    assert_eq!((&limit.passes, limit.others, limit.alike), (&passes, 7, true));
    assert!(matches!(limit.part, Part::Drive { .. }), "{limit:?}");
    // A Gen3 x16 link passes 12,760 MB/s of payload.
    let (then, at) = reads.then.clone().expect("something");
    let bank = Part::BankUplink { bank: "left".into(), link: Some("Gen3 x16".into()) };
    assert!(then.part == bank && near(bytes(&then), 12_760e6) && near(at, 3_115_000.0), "{then:?} {at}");
    // Nothing is known of their writes but the links: 8 × 1595 is what the uplink passes, near enough.
    assert!(near(rates(&plan)[3], 12_760.0));
}

#[test]
fn a_drive_in_a_gen1_slot_slows_a_plain_stripe_and_weights_make_up_for_it() {
    let place =
        site(&measured(&[("a", 832.0), ("b", 1652.0), ("c", 1648.0), ("d", 1657.0)])).expect("possible");
    let plan = plan(&place, &singles(&["a", "b", "c", "d"])).expect("a plan");
    // 3,322 was measured.
    assert!((rates(&plan)[2] / 3322.0 - 1.0).abs() < 0.05);
    let limit = plan.predictions[2].limit.as_ref().expect("known");
    assert!(limit.part == drive("a") && near(bytes(limit), 832e6) && limit.others == 0, "{limit:?}");
    let better = plan.better.expect("there is something better");
    let weights: Vec<f64> = better.arrays.iter().map(|a| a.weight).collect();
    assert_eq!(weights, [1.0, 2.0, 2.0, 2.0]);
    assert!(better.predictions[2].mbps.expect("known") > 0.98 * 5789.0);
    let faster = matches!(better.why[0], Gain::Faster { factor, .. } if (1.65..1.8).contains(&factor));
    assert!(faster, "{:?}", better.why);
}

#[test]
fn a_link_that_trained_low_is_the_limit_by_name() {
    let mut slow = kind("a", 1);
    (slow.link, slow.read_mbps) = (Some("Gen1 x4".into()), Some(3200.0));
    let mut fast = kind("b", 1);
    (fast.link, fast.read_mbps) = (Some("Gen3 x4".into()), Some(3000.0));
    let place = site(&Description { drive: vec![slow, fast], ..Description::default() }).expect("possible");
    let plan = plan(&place, &singles(&["a", "b"])).expect("a plan");
    let limit = plan.predictions[2].limit.as_ref().expect("known");
    let link = Part::DriveLink { drive: "a".into(), link: "Gen1 x4".into() };
    assert!(limit.part == link && near(bytes(limit), 830e6), "{limit:?}");
    assert!(near(rates(&plan)[2], 2.0 * 830.0));
}

#[test]
fn mirrors_read_from_all_legs_and_write_to_all() {
    let place = site(&measured(&[("a", 200.0), ("b", 200.0), ("c", 400.0), ("d", 100.0)])).expect("possible");
    let one = plan(&place, &[mirror(&["a", "b"], 1.0)]).expect("a plan");
    assert!(near(rates(&one)[2], 400.0) && near(rates(&one)[3], 200.0));
    let uneven = plan(&place, &[mirror(&["c", "d"], 1.0)]).expect("a plan");
    assert!(near(rates(&uneven)[2], 500.0) && near(rates(&uneven)[3], 100.0));
    // 400 and 500: the first is full when both do 400.
    let both = plan(&place, &[mirror(&["a", "b"], 1.0), mirror(&["c", "d"], 1.0)]).expect("a plan");
    assert!(near(rates(&both)[2], 800.0) && near(rates(&both)[3], 200.0), "{:?}", rates(&both));
    let weighted = plan(&place, &[mirror(&["a", "b"], 4.0), mirror(&["c", "d"], 5.0)]).expect("a plan");
    assert!(near(rates(&weighted)[2], 900.0));
}

#[test]
fn an_uplink_passes_each_copy_of_a_write_and_each_read_once() {
    let one = |name: &str, bank: &str| Kind {
        bank: Some(bank.into()),
        read_mbps: Some(1000.0),
        write_mbps: Some(1000.0),
        ..kind(name, 2)
    };
    let narrow = |name: &str| Bank { mbps: Some(1200.0), ..bank(name, "Gen3 x16") };
    let described = Description {
        bank: vec![narrow("x"), narrow("y")],
        drive: vec![one("x", "x"), one("y", "y")],
        ..Description::default()
    };
    let place = site(&described).expect("possible");
    let within = plan(&place, &[mirror(&["x0", "x1"], 1.0)]).expect("a plan");
    assert!(near(rates(&within)[2], 1200.0) && near(rates(&within)[3], 600.0), "{:?}", rates(&within));
    assert_eq!(within.placed[0].together.as_deref(), Some("x"));
    let apart = plan(&place, &[mirror(&["x0", "y0"], 1.0)]).expect("a plan");
    assert!(near(rates(&apart)[2], 2000.0) && near(rates(&apart)[3], 1000.0));
    assert_eq!(apart.placed[0].together, None);
    let two = plan(&place, &[mirror(&["x0", "x1"], 1.0), mirror(&["y0", "y1"], 1.0)]).expect("a plan");
    assert!(near(rates(&two)[2], 2400.0) && near(rates(&two)[3], 1200.0));
    let better = two.better.expect("legs could be apart");
    assert_eq!(better.why, [Gain::SwitchesApart { pairs: 0, before: 2 }]);
    let legs: Vec<&Vec<String>> = better.arrays.iter().map(|a| &a.drives).collect();
    assert_eq!(legs, [&["x0", "y0"], &["x1", "y1"]]);
    let limit = two.predictions[3].limit.as_ref().expect("known");
    assert!(matches!(limit.part, Part::BankUplink { .. }), "{limit:?}");
    assert!(near(bytes(limit), 1200e6) && (limit.others, limit.alike) == (1, true), "{limit:?}");
}

#[test]
fn the_network_and_the_shards_are_passed_once_by_all_commands() {
    let mut described = measured(&[("a", 2000.0), ("b", 2000.0)]);
    described.port = vec![Ports { count: Some(2), mbit: 10_000, mtu: Some(9000) }];
    let place = site(&described).expect("possible");
    let plan_of = |place: &Site| plan(place, &[mirror(&["a", "b"], 1.0)]).expect("a plan");
    let found = plan_of(&place);
    // 1,250 MB/s each, of which 99 % are payload.
    assert!(near(rates(&found)[2], 2500.0 * 8948.0 / 9038.0), "{:?}", rates(&found));
    let limit = found.predictions[2].limit.as_ref().expect("known");
    assert!(limit.part == Part::Ports { ports: 2 } && near(bytes(limit), 2475e6), "{limit:?}");
    assert!(near(rates(&found)[3], 2000.0));
    described.head = Shards { shards: Some(4), commands: Some(100_000.0) };
    let found = plan_of(&site(&described).expect("possible"));
    let limit = found.predictions[0].limit.as_ref().expect("known");
    assert!(near(rates(&found)[0], 400_000.0) && limit.part == Part::Shards { shards: 4 }, "{limit:?}");
    assert_eq!(limit.passes, Passes::Commands { commands: 400_000.0 });
}

#[test]
fn descriptions_of_what_cannot_be_are_refused_by_name() {
    let words = |d: &Description| site(d).expect_err("impossible");
    let with = |change: fn(&mut Kind)| {
        let mut one = kind("d", 1);
        change(&mut one);
        words(&Description { drive: vec![one], ..Description::default() })
    };
    let of = || "drive d".to_string();
    for link in ["Gen9 x4", "Gen3 x0", "Gen3 x5", "x4"] {
        let one = Kind { link: Some(link.into()), ..kind("d", 1) };
        let bad = words(&Description { drive: vec![one], ..Description::default() });
        assert_eq!(bad, Bad::NoLink { of: of(), link: link.into() });
    }
    let nowhere = Bad::NoBank { drive: "d".into(), bank: "nowhere".into() };
    assert_eq!(with(|d| d.bank = Some("nowhere".into())), nowhere);
    let count = |count| Bad::DriveCount { drive: "d".into(), count, most: 1024 };
    assert_eq!(with(|d| d.count = Some(0)), count(0));
    assert_eq!(with(|d| d.count = Some(usize::MAX)), count(usize::MAX));
    let zero = Bad::NotPositive { key: "read-iops", of: of(), value: 0.0 };
    assert_eq!(with(|d| d.read_iops = Some(0.0)), zero);
    let nan = with(|d| d.write_mbps = Some(f64::NAN));
    assert!(matches!(nan, Bad::NotPositive { key: "write-mbps", .. }), "{nan:?}");
    let twice = Description { drive: vec![kind("d", 1), kind("d", 1)], ..Description::default() };
    assert_eq!(words(&twice), Bad::DriveTwice { drive: "d".into() });
    let banks =
        Description { bank: vec![bank("b", "Gen3 x8"), bank("b", "Gen3 x8")], ..Description::default() };
    assert_eq!(words(&banks), Bad::BankTwice { bank: "b".into() });
    let port = Ports { count: None, mbit: 0, mtu: None };
    let port = Description { port: vec![port], ..Description::default() };
    assert_eq!(words(&port), Bad::Port { mbit: 0, count: 1 });
}

#[test]
fn layouts_that_cannot_be_are_refused_and_what_is_not_known_is_said() {
    let place = site(&Description { drive: vec![kind("a", 1), kind("b", 1)], ..Description::default() });
    let place = place.expect("possible");
    let none = PlanError::NoDrive { drive: "c".into() };
    assert_eq!(plan(&place, &singles(&["c"])).expect_err("no"), none);
    let twice = PlanError::DriveTwice { drive: "a".into() };
    assert_eq!(plan(&place, &singles(&["a", "/dev/a"])).expect_err("no"), twice);
    assert!(plan(&place, &[]).is_err());
    let found = plan(&place, &singles(&["a", "b"])).expect("a plan");
    assert!(found.predictions.iter().all(|p| p.iops.is_none() && p.limit.is_none()));
    assert!(
        found.gaps.contains(&Unknown::Drives { drives: vec!["a".into(), "b".into()] }),
        "{:?}",
        found.gaps
    );
}

#[test]
fn what_was_measured_of_a_drive_counts() {
    let mut place =
        site(&Description { drive: vec![kind("a", 1)], ..Description::default() }).expect("possible");
    assert!(place.measured("/dev/a", false, 4096, 500_000.0) && place.measured("a", true, 131_072, 10_000.0));
    assert!(!place.measured("b", false, 4096, 1.0));
    let found = plan(&place, &singles(&["a"])).expect("a plan");
    assert_eq!(found.predictions[0].iops, Some(500_000.0));
    assert!(near(found.predictions[3].mbps.expect("known"), 1310.72));
    // Of the other two only bounds are known.
    assert_eq!(found.predictions.iter().map(|p| p.at_most).collect::<Vec<_>>(), [false, true, true, false]);
}

#[test]
fn legs_come_apart_by_node_then_by_switch_then_by_speed() {
    let machine = Machine::of(&machines::two_sockets());
    let place = Site::of(&machine);
    let names = place.free();
    let nvme: Vec<String> = names.into_iter().filter(|n| n.starts_with("nvme")).collect();
    assert!(nvme.len() >= 20);
    let (mirrors, rest) = pair(&place, &nvme, 2).expect("known drives");
    assert_eq!((mirrors.len(), rest.len()), (nvme.len() / 2, nvme.len() % 2));
    let node = |name: &String| machine.node_of(machine.drive_at(name).expect("a drive"));
    for m in &mirrors {
        assert_ne!(node(&m[0]), node(&m[1]), "{m:?}");
    }
    // Fast with fast.
    let place = site(&measured(&[("a", 100.0), ("b", 400.0), ("c", 100.0), ("d", 400.0), ("e", 50.0)]))
        .expect("possible");
    let names: Vec<String> = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
    let (mirrors, rest) = pair(&place, &names, 2).expect("known");
    assert_eq!(
        (mirrors, rest),
        (vec![vec!["a".to_string(), "c".into()], vec!["b".into(), "d".into()]], vec!["e".to_string()])
    );
}

#[test]
fn shards_sit_where_the_ports_are_and_leave_cores_to_interrupts() {
    let of = |recording: &topology::Recording| topology::plan::seats(&Machine::of(recording));
    // A port at each of two nodes, 16 cores of two threads each: 14 of each node.
    let two = of(&machines::two_sockets()).expect("it tells all");
    assert_eq!(topology::ranges(&two.cores), "2-15,18-31");
    let ports: Vec<(&str, Option<u32>)> = two.ports.iter().map(|(n, node)| (n.as_str(), *node)).collect();
    assert_eq!(ports, [("ens1f0np0", Some(0)), ("ens2f0np0", Some(1))]);
    assert!(two.why.contains(&SeatReason::CpusLeft { cpus: vec![0, 1, 16, 17] }), "{two:?}");
    // The network is at one of four nodes, the drives are at all.
    let four = of(&machines::four_sockets()).expect("it tells all");
    assert_eq!(topology::ranges(&four.cores), "88-111");
    assert!(four.why.contains(&SeatReason::DrivesFar { nodes: vec![0, 1, 2] }), "{four:?}");
    // Drives alone tell nodes; nothing does.
    let mut quiet = machines::four_sockets();
    quiet.put("/sys/class/net/ens9/operstate", "down\n");
    let quiet = of(&quiet).expect("it tells cores");
    assert!(quiet.ports.is_empty() && quiet.cores.len() == 96, "{quiet:?}");
    // A machine of one node: all cores but one.
    let one = of(&machines::gen1_slot()).expect("it tells all");
    assert_eq!((topology::ranges(&one.cores).as_str(), one.ports.len()), ("1-7", 1));
    // Threads that nobody knows apart are not given away.
    assert_eq!(of(&topology::Recording::default()), None);
    let mut silent = machines::gen1_slot();
    silent.put("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "");
    assert_eq!(of(&silent), None);
}

#[test]
fn a_thousand_drives_are_planned_as_a_few_are() {
    // Twenty banks of fifty, in two nodes. In time that grows with the square of them: a minute would be a
    // mistake here, and a loaded machine needs a second.
    let banks: Vec<Bank> =
        (0..20).map(|i| Bank { node: Some(i % 2), ..bank(&format!("b{i}"), "Gen4 x16") }).collect();
    let drives = (0..20)
        .map(|i| Kind {
            bank: Some(format!("b{i}")),
            read_iops: Some(400_000.0),
            write_iops: Some(100_000.0),
            read_mbps: Some(3_000.0),
            write_mbps: Some(1_000.0),
            ..kind(&format!("d{i}-"), 50)
        })
        .collect();
    let place =
        site(&Description { bank: banks, drive: drives, ..Description::default() }).expect("possible");
    let began = std::time::Instant::now();
    let (arrays, rest) = topology::plan::propose(&place, &place.free(), 2).expect("a layout");
    assert_eq!((arrays.len(), rest.len()), (500, 0));
    let apart = plan(&place, &arrays).expect("a plan");
    assert!(apart.better.is_none(), "what is proposed is not bettered: {:?}", apart.better.map(|b| b.why));
    assert!(apart.placed.iter().all(|p| p.together.is_none()));
    // Twenty uplinks are the limit of large reads.
    let uplinks = apart.predictions[2].mbps.expect("known");
    let limit = apart.predictions[2].limit.as_ref().expect("known");
    assert!(matches!(limit.part, Part::BankUplink { .. }) && limit.others > 0, "{limit:?}");
    let one = topology::Lanes::parse("Gen4 x16").expect("a link").payload_mb();
    assert!(near(uplinks, 20.0 * one), "{uplinks}, and each passes {one}");
    let took = began.elapsed();
    assert!(took.as_secs() < 60, "{took:?}");
}

#[test]
fn a_pool_of_a_running_head_is_planned_with_what_its_shapes_say() {
    let mut files = machines::guest();
    let drive = |path: &str, share: u64| {
        format!(
            r#"{{"path":"{path}","pool":"tank","role":"leg","shape":{{"mbps_max":300,"uplink":4,"uplink_mbps":400,"uplink_share":{share}}}}}"#
        )
    };
    let array = |path: &str| format!(r#"{{"layout":"single","legs":[{{"path":"{path}"}}]}}"#);
    let status = |shares: [u64; 2]| {
        format!(
            r#"{{"drives":[{},{}],"pools":[{{"name":"tank","arrays":[{},{}]}}]}}"#,
            drive("/f/a", shares[0]),
            drive("/f/b", shares[1]),
            array("/f/a"),
            array("/f/b")
        )
    };
    let mut plan_with = |shares| {
        files.put("/millrace/status", &status(shares));
        let machine = Machine::of(&files);
        let place = Site::of(&machine);
        let pools = topology::plan::pools(&place, &machine);
        assert_eq!((pools.len(), pools[0].0.as_str()), (1, "tank"));
        plan(&place, &pools[0].1).expect("a plan")
    };
    let fair = plan_with([1, 1]);
    assert!(near(rates(&fair)[2], 400.0), "{:?}", rates(&fair));
    let limit = fair.predictions[2].limit.as_ref().expect("known");
    assert!(limit.part == Part::ShapesLink { number: 4 } && near(bytes(limit), 400e6), "{limit:?}");
    assert!(fair.better.is_none());
    // b gets 100 of the 400 when both work: a plain stripe is as fast as twice that.
    let unfair = plan_with([3, 1]);
    assert!(near(rates(&unfair)[2], 200.0), "{:?}", rates(&unfair));
    let limit = unfair.predictions[2].limit.as_ref().expect("known");
    let share = Part::DriveShare { drive: "/f/b".into(), of: Box::new(Part::ShapesLink { number: 4 }) };
    assert!(limit.part == share && near(bytes(limit), 100e6), "{limit:?}");
    let better = unfair.better.expect("weights help");
    assert_eq!(better.arrays.iter().map(|a| a.weight).collect::<Vec<_>>(), [3.0, 1.0]);
    assert!(near(better.predictions[2].mbps.expect("known"), 400.0));
}

#[test]
fn drives_in_memory_that_are_called_the_same_are_told_apart_by_their_labels() {
    let mut files = machines::guest();
    let drive = |uuid: &str, mbps: u64| {
        format!(r#"{{"path":"ram:1G","uuid":"{uuid}","pool":"tank","shape":{{"mbps_max":{mbps}}}}}"#)
    };
    let leg = |uuid: &str| format!(r#"{{"path":"ram:1G","uuid":"{uuid}"}}"#);
    let [a, b] = ["aaaaaaaa-1111-4000-8000-000000000000", "bbbbbbbb-2222-4000-8000-000000000000"];
    let status = format!(
        r#"{{"drives":[{},{}],"pools":[{{"name":"tank","arrays":[{{"layout":"mirror","legs":[{},{}]}}]}}]}}"#,
        drive(a, 200),
        drive(b, 400),
        leg(b),
        leg(a)
    );
    files.put("/millrace/status", &status);
    let machine = Machine::of(&files);
    let place = Site::of(&machine);
    let found = plan(&place, &topology::plan::pools(&place, &machine)[0].1).expect("a plan");
    assert!(near(rates(&found)[2], 600.0) && near(rates(&found)[3], 200.0), "{:?}", rates(&found));
}

#[test]
fn a_plan_beside_load_says_that_what_is_measured_is_a_lower_bound() {
    let mut m = Machine::of(&machines::two_sockets());
    // The head's counters have a time of their own.
    (m.seconds, m.own_seconds) = (Some(0.5), Some(1.0));
    let own = |commands| Own {
        shards: vec![OwnShard {
            of: Shard { commands, ..Shard::default() },
            busy: Some(0.3),
            ..OwnShard::default()
        }],
        ..Own::default()
    };
    let gaps = |m: &Machine| plan(&Site::of(m), &singles(&["nvme0n1"])).expect("a plan").gaps;
    (m.own, m.own_later) = (Some(own(0)), Some(own(20_000)));
    let told = gaps(&m);
    assert!(told.contains(&Unknown::BesideLoad { rate: 20_000.0 }), "{told:?}");
    m.own_later = Some(own(3));
    assert!(!gaps(&m).iter().any(|g| matches!(g, Unknown::BesideLoad { .. })));
}

#[test]
fn what_shards_do_under_one_load_is_not_said_of_others() {
    let mut m = Machine::of(&machines::two_sockets());
    (m.seconds, m.own_seconds) = (Some(1.0), Some(1.0));
    m.ports.clear();
    let own = |commands: u64, reads: u64, writes: u64| Own {
        shards: vec![OwnShard {
            of: Shard { commands, ..Shard::default() },
            busy: Some(0.5),
            ..OwnShard::default()
        }],
        drives: vec![Drive { path: "ram:1G".into(), ..Drive::default() }],
        volumes: vec![Volume {
            name: "tank/v".into(),
            counters: Counters {
                reads,
                read_bytes: reads * 4096,
                writes,
                write_bytes: writes * 4096,
                ..Counters::default()
            },
            ..Volume::default()
        }],
        ..Own::default()
    };
    let planned = |m: &Machine| {
        let found = plan(&Site::of(m), &singles(&["ram:1G"])).expect("a plan");
        let all: Vec<(Option<f64>, bool)> = found.predictions.iter().map(|p| (p.iops, p.at_most)).collect();
        (all, found.gaps)
    };
    // Reads of 4 KiB: exact for those, a bound for larger ones, nothing for writes.
    (m.own, m.own_later) = (Some(own(0, 0, 0)), Some(own(50_000, 50_000, 0)));
    let (all, gaps) = planned(&m);
    assert_eq!((all[0], all[2]), ((Some(100_000.0), false), (Some(100_000.0), true)));
    assert!(all[1].1 && all[3].1 && all[1].0.is_none_or(|n| n.is_infinite()), "{all:?}");
    assert!(gaps.contains(&Unknown::ShardsAsTheyServe { write: false, bytes: 4096.0 }), "{gaps:?}");
    // Both at once tell of neither.
    m.own_later = Some(own(50_000, 25_000, 25_000));
    let (all, gaps) = planned(&m);
    assert!(all.iter().all(|(iops, _)| iops.is_none_or(|n| n.is_infinite())), "{all:?}");
    assert!(gaps.contains(&Unknown::Shards), "{gaps:?}");
    m.own_later = Some(own(50_000, 0, 50_000));
    let (all, _) = planned(&m);
    assert_eq!(all[1], (Some(100_000.0), false));
    assert!(all[0].1, "{all:?}");
}
