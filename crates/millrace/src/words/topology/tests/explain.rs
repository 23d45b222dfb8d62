//! A test for each limit that `explain` recognises, and for each that it must not see.

use super::{explain, explain_one, machines};
use api::{
    Array, ArrayLayout, Connection, Counters, Drive, Exported, Leg, Pool, Protocol, Resync, Scrub, Shape,
    Shard, State, Volume, Zone, ZoneWeight,
};
use topology::explain::{Crowd, Kind};
use topology::{Activity, Interrupt, Machine, Measured, Own, OwnShard, Temperature, Usual, Warning};

/// A head on the machine with two banks: a volume read with `rate` commands of 4 KiB a second.
struct Scene {
    m: Machine,
}

fn own_of(drives: &[u32]) -> Own {
    let path = |n: &u32| format!("/dev/nvme{n}n1");
    let arrays = drives
        .chunks(2)
        .map(|pair| Array {
            layout: ArrayLayout::Mirror,
            legs: pair.iter().map(|n| Leg { path: path(n), ..Leg::default() }).collect(),
            regions: 1000,
            ..Array::default()
        })
        .collect();
    Own {
        drives: drives
            .iter()
            .map(|n| Drive { path: path(n), pool: Some("tank".into()), ..Drive::default() })
            .collect(),
        pools: vec![Pool { name: "tank".into(), arrays, ..Pool::default() }],
        volumes: vec![Volume { name: "tank/vm".into(), ..Volume::default() }],
        shards: (0..4)
            .map(|shard| OwnShard {
                of: Shard { shard, ..Shard::default() },
                core: Some([2, 3, 18, 19][shard as usize]),
                busy: Some(0.3),
                ..OwnShard::default()
            })
            .collect(),
        ..Own::default()
    }
}

impl Scene {
    fn new(drives: &[u32], rate: u64) -> Self {
        let mut m = Machine::of(&machines::two_sockets());
        (m.seconds, m.own_seconds) = (Some(1.0), Some(1.0));
        m.own = Some(own_of(drives));
        let mut after = own_of(drives);
        after.volumes[0].counters = Counters { reads: rate, read_bytes: rate * 4096, ..Counters::default() };
        m.own_later = Some(after);
        Self { m }
    }
    fn before(&mut self) -> &mut Own {
        self.m.own.as_mut().expect("set")
    }
    fn after(&mut self) -> &mut Own {
        self.m.own_later.as_mut().expect("set")
    }
    /// A drive reads `mb` megabytes a second, each read taking `us`.
    fn reads(&mut self, drive: u32, mb: f64, us: f64) {
        let name = format!("nvme{drive}n1");
        let d = self.m.drives.iter_mut().find(|d| d.name == name).expect("there");
        d.activity = Some(Activity {
            reads: mb * 1e6 / 4096.0,
            read_bytes: mb * 1e6,
            read_us: Some(us),
            ..Activity::default()
        });
    }
    /// A connection of `host` with so many commands in this second, and so many in flight.
    fn connection(&mut self, host: &str, peer: &str, session: u64, commands: u64, in_flight: u64) {
        let c = Connection {
            host: Some(host.into()),
            protocol: Protocol::Nvme,
            peer: peer.parse().expect("an address"),
            session: Some(session as u16),
            queue: 1,
            in_flight: in_flight.min(u32::MAX.into()) as u32,
            ..Connection::default()
        };
        self.before().connections.push(c.clone());
        self.after().connections.push(Connection { commands, ..c });
    }
    fn kinds(&self) -> Vec<Kind> {
        explain(&self.m).findings.iter().map(|f| f.kind).collect()
    }
    /// The finding of this kind as one text.
    fn told(&self, kind: Kind) -> String {
        let e = explain(&self.m);
        let f = e.findings.iter().find(|f| f.kind == kind).unwrap_or_else(|| panic!("no {kind:?} in {e:?}"));
        format!("{} ({}) → {}", f.sentence, f.arithmetic.join("; "), f.next)
    }
}

/// The shape of a drive, which it has from now on.
fn shape(drive: &mut Drive) -> &mut Shape {
    drive.shape.get_or_insert_default()
}

fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "\"{word}\" in: {text}");
    }
}

#[test]
fn cores_that_are_all_busy_are_the_limit_also_where_shards_are_not() {
    let mut scene = Scene::new(&[0, 12], 100_000);
    scene.connection("web1", "10.0.0.1:1000", 1, 100_000, 64);
    let few = explain(&scene.m);
    assert!(few.findings.iter().any(|f| f.kind == Kind::TooFew), "{few:#?}");
    let cpus = scene.m.cpus.len();
    scene.m.cpus.iter_mut().for_each(|c| c.busy = Some(0.99));
    let full = explain(&scene.m);
    let first = &full.findings[0];
    assert_eq!(first.kind, Kind::Cores, "{full:#?}");
    assert_eq!(
        first.sentence,
        format!("The processor is the limit: all {cpus} cores of this machine are busy.")
    );
    assert!(first.arithmetic[0].contains("1.2 by shards"), "{first:?}");
    assert!(full.findings.iter().all(|f| f.kind != Kind::TooFew), "nobody needs a deeper queue then");
    assert_eq!(full.next_limit, "", "what a shard could do with a core of its own is not to be had");
    // Where Linux tells that shards did not have to wait, others fill only what is left over.
    scene.before().shards.iter_mut().for_each(|s| s.waited = Some(0.01));
    assert!(explain(&scene.m).findings.iter().all(|f| f.kind != Kind::Cores));
    scene.before().shards[1].waited = Some(0.4);
    says(&scene.told(Kind::Cores), &["waited up to 40 % of the time for a core"]);
    scene.m.cpus[0].busy = Some(0.0);
    scene.m.cpus[1].busy = Some(0.0);
    scene.m.cpus[2].busy = Some(0.0);
    scene.m.cpus[3].busy = Some(0.0);
    assert!(explain(&scene.m).findings.iter().all(|f| f.kind != Kind::Cores));
}

#[test]
fn a_head_with_nothing_wrong_has_a_next_limit() {
    let mut s = Scene::new(&[0, 12], 100_000);
    s.before().shards[1].busy = Some(0.5);
    let e = explain(&s.m);
    assert_eq!(e.findings, []);
    says(&e.next_limit, &["shard 1 at 200 K commands a second"]);
    says(&e.load, &["100 K reads", "410 MB/s"]);
}

#[test]
fn rates_of_the_head_follow_from_the_time_between_its_own_two_answers() {
    let mut s = Scene::new(&[0, 12], 100_000);
    (s.m.seconds, s.m.own_seconds) = (Some(1.0), Some(1.25));
    s.after().volumes[0].iops_max = 100_000;
    let e = explain(&s.m);
    says(&e.load, &["80 K reads", "328 MB/s"]);
    assert_eq!(e.findings, [], "four fifths of a cap are not at it");
    // A recording tells both times: the scan of its files was slow the first time.
    let mut files = machines::two_sockets();
    let status =
        |reads: u64| format!(r#"{{"volumes":[{{"name":"tank/vm","counters":{{"reads":{reads}}}}}]}}"#);
    files.put("/millrace/clock", "counters 1000000\nstatus 1400000\n");
    files.put("/millrace/status", &status(0));
    files.put_later(1_500, "/millrace/clock", "counters 2500000\nstatus 2600000\n");
    files.put_later(1_500, "/millrace/status", &status(120_000));
    let m = Machine::of(&files);
    assert_eq!((m.seconds, m.own_seconds), (Some(1.5), Some(1.2)));
    says(&explain(&m).load, &["100 K reads"]);
}

#[test]
fn nothing_is_explained_without_two_readings_or_without_a_head() {
    let mut s = Scene::new(&[0, 12], 100_000);
    (s.m.seconds, s.m.own_seconds) = (None, None);
    says(&explain(&s.m).load, &["one reading"]);
    s.m.own = None;
    says(&explain(&s.m).load, &["No head"]);
    assert_eq!(explain(&s.m).findings, []);
    let idle = Scene::new(&[0, 12], 3);
    says(&explain(&idle.m).load, &["Hardly anything"]);
    assert_eq!((explain(&idle.m).next_limit.as_str(), idle.kinds()), ("", vec![]));
}

#[test]
fn a_drive_in_a_slower_slot_is_named_with_what_it_costs() {
    let mut m = Machine::of(&machines::gen1_slot());
    (m.seconds, m.own_seconds) = (Some(1.0), Some(1.0));
    let own = Own {
        pools: vec![Pool {
            name: "fast".into(),
            arrays: (0..4)
                .map(|n| Array {
                    layout: ArrayLayout::Single,
                    legs: vec![Leg { path: format!("/dev/nvme{n}n1"), ..Leg::default() }],
                    ..Array::default()
                })
                .collect(),
            ..Pool::default()
        }],
        ..Own::default()
    };
    (m.own, m.own_later) = (Some(own.clone()), Some(own));
    let mut s = Scene { m };
    let told = s.told(Kind::SlowDrive);
    says(&told, &["can do less than the others of fast", "as its weights are now, 3320"]);
    for own in [&mut s.m.own, &mut s.m.own_later].into_iter().flatten() {
        let weights = [1, 2, 2, 2].into_iter().zip(0..).map(|(weight, array)| ZoneWeight { array, weight });
        own.pools[0].zones = vec![Zone { bytes: 1, weights: weights.collect() }];
    }
    let weighed = s.told(Kind::SlowDrive);
    assert!(!weighed.contains("as its weights are now"), "{weighed}");
    // Measured: 832, 1652, 1648 and 1657 alone, 3322 as a plain stripe.
    says(&told, &["nvme0n1", "its slot gives it Gen1 x4", "4 × 830 = 3320", "ours by weight 5810"]);
}

#[test]
fn a_link_that_trained_badly_is_told_from_a_slow_slot() {
    let mut m = Machine::of(&machines::four_sockets());
    (m.seconds, m.own_seconds) = (Some(1.0), Some(1.0));
    let mut own = own_of(&[6, 7, 8, 9]);
    own.shards.clear();
    (m.own, m.own_later) = (Some(own.clone()), Some(own));
    says(
        &Scene { m }.told(Kind::SlowDrive),
        &[
            "2 arrays: a plain stripe gives 2 × ",
            "nvme7n1",
            "runs at Gen4 x2 where both ends can Gen4 x4",
            "seat it again",
        ],
    );
}

#[test]
fn heat_is_a_reason() {
    let mut s = Scene::new(&[0, 12, 1, 13], 10_000);
    let hot = s.m.drives.iter_mut().find(|d| d.name == "nvme1n1").expect("there");
    hot.temperature = Some(Temperature { now: 74.0, warning: Some(70.0), critical: Some(80.0) });
    says(&s.told(Kind::SlowDrive), &["nvme1n1", "74 °C", "from 70 °C on"]);
}

#[test]
fn wear_is_a_reason_for_a_slow_drive_and_is_told_only_where_one_is_slow() {
    let mut s = Scene::new(&[0, 12, 1, 13], 10_000);
    for drive in [0, 12, 13] {
        s.reads(drive, 100.0, 90.0);
    }
    s.reads(1, 100.0, 400.0);
    let health = |s: &mut Scene, change: &dyn Fn(&mut topology::Health)| {
        let drive = s.m.drives.iter_mut().find(|d| d.name == "nvme1n1").expect("there");
        change(drive.health.get_or_insert_default());
    };
    // What is read of it and is no reason is told.
    says(
        &s.told(Kind::SlowDrive),
        &[
            "nvme1n1",
            "why is not seen (it is not hot, and has used 4 % of its rated life, the others at most 6 %)",
        ],
    );
    health(&mut s, &|h| h.used = 104);
    says(&s.told(Kind::SlowDrive), &["it is worn: 104 % of its rated life is used", "drive replace nvme1n1"]);
    health(&mut s, &|h| (h.warnings, h.spare) = (vec![Warning::Spare], Some(4)));
    says(&s.told(Kind::SlowDrive), &["its spare blocks run out: 4 % are left, and 10 % is its limit"]);
    // A drive that is worn and as fast as the others limits nothing.
    s.reads(1, 100.0, 90.0);
    assert!(!s.kinds().contains(&Kind::SlowDrive));
    // A drive that warns of heat by itself, where Linux knows no limit of it.
    let drive = s.m.drives.iter_mut().find(|d| d.name == "nvme1n1").expect("there");
    drive.temperature = Some(Temperature { now: 81.0, ..Temperature::default() });
    health(&mut s, &|h| h.warnings = vec![Warning::Temperature]);
    says(&s.told(Kind::SlowDrive), &["it is at 81 °C, and says itself that this is too much"]);
    // Where nobody could read it, nothing is said of wear.
    let drive = s.m.drives.iter_mut().find(|d| d.name == "nvme1n1").expect("there");
    (drive.health, drive.temperature) = (None, None);
    s.reads(1, 100.0, 400.0);
    says(&s.told(Kind::SlowDrive), &["why is not seen (how worn it is was not read"]);
}

#[test]
fn a_late_drive_with_fewer_queues_is_told_so() {
    let mut s = Scene::new(&[0, 12, 1, 13], 10_000);
    for drive in [0, 12, 13] {
        s.reads(drive, 100.0, 90.0);
    }
    s.reads(1, 100.0, 400.0);
    says(&s.told(Kind::SlowDrive), &["nvme1n1", "why is not seen", "a read takes 400 µs, 90.0 µs"]);
    s.m.drives.iter_mut().find(|d| d.name == "nvme1n1").expect("there").queues = 2;
    says(&s.told(Kind::SlowDrive), &["it has 2 queues where the others have 8"]);
}

#[test]
fn a_full_uplink_is_named_with_who_shares_it() {
    let mut s = Scene::new(&[0, 1, 2, 3], 10_000);
    for drive in 0..12 {
        s.reads(drive, 1_020.0, 200.0);
    }
    let told = s.told(Kind::Uplink);
    says(
        &told,
        &["switch 17:00.0 is full", "12 drives share it, 1020 MB/s for each", "12240 MB/s of 12760", "96 %"],
    );
    for drive in 0..12 {
        s.reads(drive, 700.0, 200.0);
    }
    assert!(!s.kinds().contains(&Kind::Uplink));
}

#[test]
fn a_picture_marks_what_is_full_now() {
    let drawn = |s: &Scene| topology::svg(&s.m, &crate::words::topology::label);
    let marks = |s: &Scene| drawn(s).matches("full now").count();
    let mut s = Scene::new(&[0, 1, 2, 3], 10_000);
    assert_eq!((marks(&s), drawn(&s).contains("A red ground")), (0, false));
    (0..12).for_each(|drive| s.reads(drive, 1_020.0, 200.0));
    assert_eq!((marks(&s), drawn(&s).contains("A red ground")), (1, true), "the switch above them");
    s.m.ports[0].tx_bytes = Some(11.8e9);
    assert_eq!(marks(&s), 2, "and a port");
}

#[test]
fn a_switch_that_divides_unfairly_makes_measured_weights_wrong() {
    let mut s = Scene::new(&[0, 1, 2, 3], 10_000);
    for drive in 0..12 {
        let (mb, us) = if drive < 6 { (1_300.0, 200.0) } else { (740.0, 800.0) };
        s.reads(drive, mb, us);
    }
    says(
        &s.told(Kind::Uplink),
        &[
            "unfairly",
            "740 MB/s to 1300 MB/s",
            "145 commands waiting, 800 µs for each",
            "weights that were measured on single drives are wrong",
        ],
    );
}

#[test]
fn a_stripe_of_equal_shares_hides_an_unfair_link_in_the_time_that_commands_wait() {
    let mut s = Scene::new(&[0, 1, 2, 3], 10_000);
    // The slowest drive sets the pace: all move the same, and only those that the link favours answer at once.
    for drive in 0..12 {
        s.reads(drive, 1_020.0, if drive < 6 { 90.0 } else { 900.0 });
    }
    says(
        &s.told(Kind::Uplink),
        &["unfairly: its 12 drives get 1020 MB/s for each", "900 µs for each", "90.0 µs"],
    );
}

#[test]
fn drives_of_which_less_is_asked_do_not_make_a_link_unfair() {
    let mut s = Scene::new(&[0, 1, 2, 3], 10_000);
    // Weights of 2 and 1, another pool, a host with a shallow queue: what gets less has less waiting.
    for us in [200.0, 400.0] {
        for drive in 0..12 {
            let (mb, us) = if drive < 6 { (1_360.0, 200.0) } else { (680.0, us / 2.0) };
            s.reads(drive, mb, us);
        }
        let told = s.told(Kind::Uplink);
        says(
            &told,
            &["is full: 12 drives share it, from 680 MB/s to 1360 MB/s", "less may be asked of those"],
        );
        assert!(!told.contains("unfair") && !told.contains("wrong"), "{told}");
    }
}

#[test]
fn a_link_that_shapes_share_is_an_uplink_too() {
    let mut s = Scene::new(&[0, 1, 2, 3], 10_000);
    let moves = |s: &mut Scene, mb: [u64; 4]| {
        for (i, mb) in mb.into_iter().enumerate() {
            for own in [&mut s.m.own, &mut s.m.own_later] {
                let drive = &mut own.as_mut().expect("a head").drives[i];
                drive.shape = Some(Shape { uplink: 7, uplink_mbps: 1000, ..Shape::default() });
                drive.counters = Counters::default();
            }
            let later = s.m.own_later.as_mut().expect("a head");
            later.drives[i].counters.read_bytes =
                (mb as f64 * 1e6 * s.m.own_seconds.expect("two readings")) as u64;
        }
    };
    moves(&mut s, [240, 240, 240, 240]);
    says(
        &s.told(Kind::Uplink),
        &["link 7", "4 drives share it, 240 MB/s for each", "960 MB/s of 1000", "96 %"],
    );
    // Nobody said that this link prefers a drive: less is asked of the others.
    moves(&mut s, [600, 120, 120, 120]);
    says(&s.told(Kind::Uplink), &["4 drives share it, from 120 MB/s to 600 MB/s"]);
    assert!(!s.told(Kind::Uplink).contains("unfair"));
    for own in [&mut s.m.own, &mut s.m.own_later] {
        shape(&mut own.as_mut().expect("a head").drives[0]).uplink_share = 3;
    }
    says(&s.told(Kind::Uplink), &["divided unfairly", "120 MB/s to 600 MB/s", "gives them 3:1:1:1"]);
    moves(&mut s, [100, 100, 100, 100]);
    assert!(!s.kinds().contains(&Kind::Uplink));
}

#[test]
fn a_full_shard_beside_idle_ones_wants_connections_spread() {
    let mut s = Scene::new(&[0, 12], 200_000);
    s.before().shards[0].busy = Some(0.99);
    says(&s.told(Kind::Shard), &["Shard 0 has no time left while", "1 (30 %)", "should be spread"]);
    for shard in &mut s.before().shards {
        shard.busy = Some(0.98);
    }
    says(
        &s.told(Kind::Shard),
        &["the processor is the limit", "200 K commands a second on 3.9 cores: 19.6 µs"],
    );
}

#[test]
fn digests_are_named_where_shards_have_no_time_left_and_only_there() {
    let mut s = Scene::new(&[0, 12], 200_000);
    s.connection("esx1", "10.0.0.5:1000", 1, 150_000, 32);
    s.connection("web1", "10.0.0.6:1000", 2, 50_000, 32);
    s.after().connections[0].data_digest = true;
    assert!(!s.kinds().contains(&Kind::Digests), "the shards have time");
    s.before().shards.iter_mut().for_each(|shard| shard.busy = Some(0.98));
    says(
        &s.told(Kind::Digests),
        &[
            "esx1 asked for digests",
            "1 of 2 connections have digests, and carry 75 % of all",
            "--digests",
            "TLS is no part of it",
        ],
    );
    s.after().connections[0].data_digest = false;
    assert!(!s.kinds().contains(&Kind::Digests));
}

#[test]
fn more_hosts_that_get_less_than_fewer_did_are_told_so() {
    let drives = [0, 12, 1, 13];
    let scene = |hosts: u64, rate: u64, each: u64| {
        let mut s = Scene::new(&drives, rate);
        for host in 0..hosts {
            s.connection(&format!("esx{host}"), &format!("10.0.0.{host}:1000"), host, rate / hosts, each);
        }
        s
    };
    let two = Crowd::of(&scene(2, 400_000, 64).m).expect("hosts work");
    assert_eq!((two.hosts, two.rate, two.in_flight, two.bytes), (2, 400_000.0, 128.0, 4096.0));
    let with = |mut s: Scene| {
        s.m.earlier = Some(two);
        s
    };
    says(
        &with(scene(4, 280_000, 64)).told(Kind::MoreHosts),
        &[
            "More hosts get less: 4 have 280 K commands a second together, 2 had 400 K",
            "before: 2 hosts, 128 in flight at 320 µs is 400 K",
            "now: 4 hosts, 256 in flight at 914 µs is 280 K",
            "128 in flight together gave more",
        ],
    );
    // What is full is the reason, and comes first.
    let mut full = with(scene(4, 280_000, 64));
    full.before().shards.iter_mut().for_each(|s| s.busy = Some(0.99));
    says(&full.told(Kind::MoreHosts), &["what is full comes first"]);
    assert_eq!(full.kinds()[0], Kind::Shard);
    let silent = |s: Scene| assert!(!s.kinds().contains(&Kind::MoreHosts));
    silent(with(scene(4, 390_000, 64)));
    silent(with(scene(2, 280_000, 64)));
    // Hosts that keep less in flight than fewer did get less for that reason.
    silent(with(scene(4, 280_000, 16)));
    silent(scene(4, 280_000, 64));
    // Larger commands are another load.
    let mut large = with(scene(4, 280_000, 64));
    large.after().volumes[0].counters.read_bytes *= 32;
    silent(large);
    assert_eq!(Crowd::of(&Scene::new(&drives, 0).m), None);
}

#[test]
fn a_recording_under_load_is_explained_as_the_answers_show_it() {
    let mut m = Machine::of(&machines::loaded(4));
    m.earlier = Crowd::of(&Machine::of(&machines::loaded(2)));
    let s = Scene { m };
    let kinds = s.kinds();
    assert_eq!(kinds[0], Kind::Shard, "{kinds:?}");
    says(&s.told(Kind::Path), &["One of 2 paths of esx4 is starved: 10.0.2.4", "12 commands a second"]);
    says(&s.told(Kind::Digests), &["esx3 asked for digests"]);
    says(&s.told(Kind::MoreHosts), &["4 have 280 K commands a second together, 2 had 400 K"]);
    // Two hosts leave the shards time: nothing is wrong, and the shards would be full next.
    let few = explain(&Machine::of(&machines::loaded(2)));
    assert!(few.next_limit.contains("shard"), "{few:#?}");
}

#[test]
fn a_drive_is_found_by_the_name_that_drive_ls_and_the_drive_commands_have() {
    let mut s = Scene::new(&[0, 12], 10_000);
    for own in [&mut s.m.own, &mut s.m.own_later].into_iter().flatten() {
        own.drives.push(Drive {
            path: "/srv/bay 1/disk.img".into(),
            uuid: "0f3c2a1b-0000-4000-8000-000000000001".parse().ok(),
            ..Drive::default()
        });
    }
    for name in ["/srv/bay 1/disk.img", "disk.img", "0f3c2a1b", "0F3C2A1B-0000", "nvme0n1", "/dev/nvme0n1"] {
        assert!(explain_one(&s.m, name).is_some(), "{name}");
    }
    for name in ["disk", "0f3c", "img", "", "srv"] {
        assert!(explain_one(&s.m, name).is_none(), "{name}");
    }
}

#[test]
fn interrupts_on_a_shards_core_or_its_sibling_are_found() {
    for cpu in [2, 34] {
        let mut s = Scene::new(&[0, 12], 10_000);
        let vector = s.m.interrupts.iter_mut().find(|i| i.action.starts_with("ens1f0")).expect("a port's");
        vector.per_second = Some(vec![(cpu, 45_000.0)]);
        let place = if cpu == 2 { "its core, 2" } else { "CPU 34, a thread of its core" };
        says(
            &s.told(Kind::Interrupts),
            &["shard 0", "45 K a second", place, "ens1f0np0-rx", "tune --apply --only interrupts"],
        );
    }
    let mut s = Scene::new(&[0, 12], 10_000);
    let vector = s.m.interrupts.iter_mut().find(|i| i.action.starts_with("ens1f0")).expect("a port's");
    vector.per_second = Some(vec![(9, 45_000.0)]);
    assert!(!s.kinds().contains(&Kind::Interrupts), "CPU 9 is nobody's");
}

#[test]
fn a_core_that_only_serves_the_network_is_found() {
    let mut s = Scene::new(&[0, 12], 10_000);
    s.m.cpus[9].softirq = Some(0.97);
    says(&s.told(Kind::Softirq), &["CPU 9", "97 %", "more queues"]);
}

#[test]
fn data_from_another_node_is_named_with_the_exception() {
    let mut s = Scene::new(&[0, 12], 10_000);
    s.reads(12, 500.0, 90.0);
    assert!(!s.kinds().contains(&Kind::FarNode), "shards run on both nodes");
    s.before().shards.truncate(2);
    says(&s.told(Kind::FarNode), &["nvme12n1", "500 MB/s cross", "measure local, remote and unbound"]);
}

#[test]
fn too_few_in_flight_is_littles_law() {
    let mut s = Scene::new(&[0, 12], 157_000);
    for shard in &mut s.before().shards {
        shard.busy = Some(0.3925);
    }
    s.connection("esx1", "10.0.0.5:1000", 1, 157_000, 32);
    says(
        &s.told(Kind::TooFew),
        &[
            "esx1",
            "32 in flight at 204 µs is 157 K commands a second",
            "to reach 400 K",
            "needs 82; it has 32",
        ],
    );
}

#[test]
fn too_many_in_flight_wait_in_line() {
    let mut s = Scene::new(&[0, 12], 100_000);
    for shard in &mut s.before().shards {
        shard.busy = Some(0.99);
    }
    s.reads(0, 200.0, 90.0);
    s.connection("esx1", "10.0.0.5:1000", 1, 100_000, 1024);
    says(
        &s.told(Kind::TooMany),
        &["esx1", "1024 in flight at 10 ms is 100 K", "99 % waits", "18 in flight would give the same"],
    );
    assert!(!s.kinds().contains(&Kind::TooFew));
}

#[test]
fn drives_that_are_at_their_limit_are_told_as_that_and_not_as_too_few_in_flight() {
    let drives = [0, 1, 2, 3, 12, 13, 14, 15];
    let scene = || {
        let mut s = Scene::new(&drives, 800_000);
        s.connection("esx1", "10.0.0.5:1000", 1, 800_000, 2048);
        // 100 K each at 2.5 ms: 250 under way in each.
        drives.iter().for_each(|d| s.reads(*d, 409.6, 2_500.0));
        s
    };
    // Nobody knows what they can: that is said, and nobody is sent for a deeper queue.
    let s = scene();
    says(
        &s.told(Kind::InDrives),
        &[
            "wait in the drives",
            "2000 under way in 8 drives, 2500 µs each; hosts keep 2048",
            "explain --measured",
        ],
    );
    assert_eq!(s.kinds(), [Kind::InDrives]);
    says(&explain(&s.m).next_limit, &["unless the drives are it before"]);
    // They took far less time before this load.
    let mut s = scene();
    let usual = |s: &mut Scene, us: f64, bytes: f64| {
        s.m.drives.iter_mut().for_each(|d| d.usual = [Some(Usual { us, bytes }), None]);
    };
    usual(&mut s, 90.0, 4096.0);
    says(
        &s.told(Kind::Drives),
        &[
            "The drives are the limit: 2000 commands wait",
            "100 K reads a second",
            "250 under way",
            "before this it took 90.0 µs",
        ],
    );
    assert!(!s.kinds().contains(&Kind::TooFew) && !s.kinds().contains(&Kind::InDrives), "{:?}", s.kinds());
    says(&s.told(Kind::TooMany), &["144 in flight would give the same rate"]);
    // Time of larger operations says nothing of smaller ones; nor does a time that was much the same.
    usual(&mut s, 90.0, 65_536.0);
    assert_eq!(s.kinds(), [Kind::InDrives]);
    usual(&mut s, 2_000.0, 4096.0);
    assert_eq!(s.kinds(), [Kind::InDrives]);
    // Somebody measured them: they are full, or they are not and a deeper queue helps.
    let measured = |s: &mut Scene, iops: f64| {
        let one = |d: &u32| Measured { drive: format!("/dev/nvme{d}n1"), write: false, bytes: 4096, iops };
        s.m.measured = drives.iter().map(one).collect();
    };
    let mut s = scene();
    measured(&mut s, 105_000.0);
    says(&s.told(Kind::Drives), &["The drives are the limit", "105 K was measured alone: 95 %"]);
    assert!(!s.kinds().contains(&Kind::TooFew));
    measured(&mut s, 150_000.0);
    says(&s.told(Kind::TooFew), &["to reach 1.20 M (where the drive nvme", "needs 307"]);
    s.m.measured.iter_mut().for_each(|m| m.write = true);
    assert_eq!(s.kinds(), [Kind::InDrives], "writes that were measured say nothing of reads");
}

#[test]
fn what_was_not_seen_is_not_called_free() {
    let mut s = Scene::new(&[0, 12], 157_000);
    s.connection("esx1", "10.0.0.5:1000", 1, 157_000, 32);
    s.m.ports.iter_mut().for_each(|p| (p.rx_bytes, p.tx_bytes) = (Some(1e6), Some(1e6)));
    says(&s.told(Kind::TooFew), &["nothing else that was seen is full", "no load was seen of the drives"]);
    s.reads(0, 300.0, 90.0);
    says(&s.told(Kind::TooFew), &["in flight: nothing else is full."]);
    s.m.ports.iter_mut().for_each(|p| p.tx_bytes = None);
    says(&s.told(Kind::TooFew), &["no load was seen of the network"]);
}

#[test]
fn a_full_network_port_is_named() {
    let mut s = Scene::new(&[0, 12], 10_000);
    let port = &mut s.m.ports[0];
    (port.rx_bytes, port.tx_bytes) = (Some(1e9), Some(11.8e9));
    says(
        &s.told(Kind::Port),
        &["ens1f0np0 is full (out)", "11800 MB/s of 11769 MB/s that 100000 Mbit/s with packets of 1500"],
    );
    s.m.ports[0].speed_mbit = None;
    assert!(!s.kinds().contains(&Kind::Port), "a port of unknown speed is never full");
}

#[test]
fn a_path_that_does_nothing_or_starves_is_named() {
    let mut s = Scene::new(&[0, 12], 900_000);
    s.connection("esx1", "10.0.0.5:1000", 1, 900_000, 32);
    s.connection("esx1", "10.0.1.5:1000", 2, 0, 0);
    says(&s.told(Kind::Path), &["One of 2 paths of esx1 does nothing: 10.0.1.5", "nvme list-subsys"]);
    let mut s = Scene::new(&[0, 12], 900_000);
    s.connection("esx1", "10.0.0.5:1000", 1, 900_000, 32);
    s.connection("esx1", "10.0.1.5:1000", 2, 12, 8);
    says(&s.told(Kind::Path), &["is starved", "12 commands a second, 8 in flight", "900 K"]);
}

#[test]
fn a_cold_bitmap_a_resync_a_scrub_and_a_lost_leg_are_named() {
    let mut s = Scene::new(&[0, 12, 1, 13], 0);
    s.after().volumes[0].counters = Counters { writes: 1_000, write_bytes: 4_096_000, ..Counters::default() };
    s.after().pools[0].arrays[0].regions_dirty = 600;
    says(&s.told(Kind::ColdBitmap), &["tank mirror-0 is cold", "600 regions a second", "600 of 1000"]);
    s.after().pools[0].arrays[1].resync =
        Some(Resync { rate: 250_000_000, seconds_left: Some(90), ..Resync::default() });
    says(&s.told(Kind::Repair), &["resync of tank mirror-1", "250 MB/s", "90 s left"]);
    let array = &mut s.after().pools[0].arrays[1];
    (array.resync, array.state) = (None, State::Degraded);
    array.legs[0].state = State::Failed;
    says(&s.told(Kind::Degraded), &["tank mirror-1 lacks nvme1n1: 1 of 2 legs"]);
    s.after().pools[0].scrub = Scrub { running: true, rate: 100_000_000, ..Scrub::default() };
    says(&s.told(Kind::Repair), &["scrub of tank", "100 MB/s"]);
}

#[test]
fn a_cap_that_somebody_set_comes_first() {
    let mut s = Scene::new(&[0, 12], 10_000);
    for own in [&mut s.m.own, &mut s.m.own_later] {
        shape(&mut own.as_mut().expect("set").drives[0]).iops_max = 10_000;
    }
    s.after().drives[0].counters = Counters { reads: 9_900, read_bytes: 9_900 * 4096, ..Counters::default() };
    s.before().shards[0].busy = Some(0.99);
    assert_eq!(s.kinds()[0], Kind::Cap);
    says(
        &s.told(Kind::Cap),
        &["nvme0n1", "10 K operations a second", "9.9 K", "drive shape /dev/nvme0n1 --clear"],
    );
    let mut s = Scene::new(&[0, 12], 9_800);
    s.after().volumes[0].iops_max = 10_000;
    says(&s.told(Kind::Cap), &["tank/vm", "9.8 K of 10 K commands", "volume set tank/vm", "--iops-max none"]);
    assert!(!s.told(Kind::Cap).contains("MB/s of"), "a cap that nobody set is no number");
}

#[test]
fn a_drive_that_was_shaped_slow_is_told_as_that_and_not_as_ill() {
    let mut s = Scene::new(&[0, 12, 1, 13], 10_000);
    for drive in [0, 12, 13] {
        s.reads(drive, 100.0, 90.0);
    }
    s.reads(1, 1.0, 50_090.0);
    s.after().pools[0].arrays[1].legs[0].slow = true;
    // What the mirror thought while there was work is no news when there is none.
    let mut idle = Scene::new(&[0, 12, 1, 13], 0);
    [0, 12, 1, 13].iter().for_each(|d| idle.reads(*d, 0.0, 0.0));
    idle.after().pools[0].arrays[1].legs[0].slow = true;
    assert!(!idle.kinds().contains(&Kind::SlowDrive));
    let ill = s.told(Kind::SlowDrive);
    says(&ill, &["nvme1n1 is slower"]);
    for own in [s.m.own.as_mut(), s.m.own_later.as_mut()].into_iter().flatten() {
        shape(&mut own.drives[2]).latency_us = 50_000;
    }
    s.after().drives[2].counters = Counters { reads: 20, read_bytes: 81_920, ..Counters::default() };
    says(
        &s.told(Kind::Cap),
        &["Somebody shaped the drive nvme1n1: each operation takes 50 ms more", "--clear"],
    );
    assert!(!s.kinds().contains(&Kind::SlowDrive), "{:?}", s.kinds());
}

#[test]
fn names_are_those_of_pools_volumes_hosts_drives_and_ports() {
    let mut s = Scene::new(&[0, 12], 10_000);
    s.connection("esx1", "10.0.0.5:1000", 1, 10_000, 4);
    for name in ["tank", "tank/vm", "esx1", "/dev/nvme0n1", "nvme0n1", "nvme19n1", "ens1f0np0"] {
        assert!(explain_one(&s.m, name).is_some(), "{name}");
    }
    for name in ["nope", "", "vm", "tank/", "tank/vm2"] {
        assert!(explain_one(&s.m, name).is_none(), "{name}");
    }
    // Where no head answers nobody can say that a pool is not there.
    assert!(explain_one(&Machine::default(), "nope").is_some());
}

#[test]
fn a_thing_is_headed_by_its_own_rates() {
    let mut s = Scene::new(&[0, 12], 10_000);
    s.connection("esx1", "10.0.0.5:1000", 1, 7_000, 4);
    for own in [&mut s.m.own, &mut s.m.own_later].into_iter().flatten() {
        own.pools.push(Pool { name: "cold".into(), ..Pool::default() });
        own.volumes.push(Volume { name: "cold/log".into(), ..Volume::default() });
        own.drives.push(Drive { path: "/srv/disk.img".into(), ..Drive::default() });
    }
    let seconds = s.m.own_seconds.expect("two readings");
    let later = s.m.own_later.as_mut().expect("two readings");
    let gone = |rate: f64| (rate * seconds) as u64;
    later.volumes.last_mut().expect("there").counters.writes = gone(2_000.0);
    later.drives.last_mut().expect("there").counters.reads = gone(3_000.0);
    for (name, load) in [
        ("tank", "tank: 10 K reads and 0 writes a second"),
        ("tank/vm", "tank/vm: 10 K reads and 0 writes a second"),
        ("cold", "cold: 0 reads and 2.0 K writes a second"),
        ("cold/log", "cold/log: 0 reads and 2.0 K writes a second"),
        ("disk.img", "/srv/disk.img: 3.0 K reads and 0 writes a second"),
        ("esx1", "esx1: 7.0 K commands a second."),
        ("ens1f0np0", "The whole head: 10 K reads and 2.0 K writes a second"),
    ] {
        let told = explain_one(&s.m, name).expect("there").load;
        assert!(told.starts_with(load), "{name}: {told}");
    }
    assert!(explain(&s.m).load.starts_with("10 K reads and 2.0 K writes"), "{}", explain(&s.m).load);
}

#[test]
fn what_limits_a_thing_is_told_of_everything_that_depends_on_it() {
    let kinds = |s: &Scene, name: &str| -> Vec<Kind> {
        let e = explain_one(&s.m, name).unwrap_or_else(|| panic!("no {name}"));
        e.findings.iter().map(|f| f.kind).collect()
    };
    let scene = || {
        let mut s = Scene::new(&[0, 1, 2, 3], 10_000);
        s.connection("esx1", "10.0.0.5:1000", 1, 10_000, 4);
        for own in [&mut s.m.own, &mut s.m.own_later].into_iter().flatten() {
            // A pool, a volume and a host that have nothing to do with the first.
            own.pools.push(Pool {
                name: "cold".into(),
                arrays: vec![Array {
                    layout: ArrayLayout::Single,
                    legs: vec![Leg { path: "/dev/nvme12n1".into(), ..Leg::default() }],
                    ..Array::default()
                }],
                ..Pool::default()
            });
            let to = |host: &str| vec![Exported { host: Some(host.into()), ..Exported::default() }];
            own.tells_exports = true;
            own.volumes[0].exports = to("esx1");
            let exports = to("web1");
            own.volumes.push(Volume { name: "cold/log".into(), exports, ..Volume::default() });
        }
        s
    };
    let mut uplink = scene();
    (0..12).for_each(|drive| uplink.reads(drive, 1_020.0, 200.0));
    let mut port = scene();
    port.m.ports[0].tx_bytes = Some(11.8e9);
    let mut cap = scene();
    cap.after().volumes[0].iops_max = 10_000;
    let all = ["tank", "tank/vm", "esx1", "nvme0n1"];
    for name in all {
        assert!(kinds(&uplink, name).contains(&Kind::Uplink), "{name}");
        assert!(kinds(&port, name).contains(&Kind::Port), "{name}");
        assert!(kinds(&cap, name).contains(&Kind::Cap), "{name}");
    }
    // What is full is nothing that comes next.
    assert!(!explain_one(&port.m, "tank").expect("there").next_limit.contains("ens1f0np0"));
    // Nobody else's limit is its own, and that there is one is said.
    for name in ["cold", "cold/log", "web1", "nvme12n1"] {
        assert_eq!((kinds(&uplink, name), kinds(&cap, name)), (vec![], vec![]), "{name}");
        assert_eq!(explain_one(&cap.m, name).expect("there").elsewhere, 1, "{name}");
    }
    assert_eq!(explain(&cap.m).elsewhere, 0);
}

#[test]
fn a_drive_that_fills_its_own_link_is_at_its_limit() {
    let mut s = Scene::new(&[0, 12, 1, 13], 10_000);
    let passes = |s: &Scene| {
        let device =
            s.m.drives.iter().find(|d| d.name == "nvme0n1").and_then(|d| s.m.device(d.device.as_deref()?));
        s.m.devices[device.expect("a device")].link.and_then(|l| l.payload_mb()).expect("a rate")
    };
    let most = passes(&s);
    s.reads(0, 0.97 * most, 300.0);
    says(&s.told(Kind::Link), &["The link of nvme0n1 is full: Gen", "97 %"]);
    assert!(!s.kinds().contains(&Kind::TooFew));
    for drive in [12, 1, 13] {
        s.reads(drive, 0.97 * most, 300.0);
    }
    says(&s.told(Kind::Link), &["The links of 4 drives are full", "nvme0n1"]);
    s.reads(0, 0.8 * most, 300.0);
    says(&s.told(Kind::Link), &["The links of 3 drives are full"]);
}

#[test]
fn counters_that_run_backwards_are_no_load() {
    let mut s = Scene::new(&[0, 12], 0);
    s.before().volumes[0].counters.reads = u64::MAX;
    s.connection("h", "10.0.0.5:1000", 1, 0, u64::MAX);
    let e = explain(&s.m);
    says(&e.load, &["Hardly anything"]);
    assert_eq!(e.findings, []);
}

#[test]
fn a_sum_of_nothing_is_not_shown_as_minus_zero() {
    let nobody = Interrupt { per_second: Some(Vec::new()), ..Interrupt::default() };
    assert_eq!(format!("{:.0}", nobody.rate().expect("two readings")), "0");
    let mut s = Scene::new(&[0, 12], 100_000);
    s.before().shards.clear();
    s.m.cpus.iter_mut().for_each(|c| c.busy = Some(0.99));
    says(&s.told(Kind::Cores), &[" 0.0 by shards"]);
}

#[test]
fn every_machine_can_be_explained() {
    for (name, recording) in machines::all() {
        let m = Machine::of(&recording);
        let e = explain(&m);
        // Where there was load while it was read twice, something is told of it; else nothing.
        assert!(!e.load.is_empty() && e.findings.is_empty() == m.own_later.is_none(), "{name}: {e:?}");
    }
}

#[test]
fn of_two_heads_the_one_whose_machine_is_looked_at_is_named() {
    let mut s = Scene::new(&[0, 12], 100_000);
    for own in [s.m.own.as_mut().expect("set"), s.m.own_later.as_mut().expect("set")] {
        own.head = Some("b".into());
        own.shards[0].busy = Some(0.99);
    }
    s.after().shards[0].of.commands = 40_000;
    says(&s.told(Kind::Shard), &["Shard 0 of head b has no time left"]);
    let load = explain(&s.m).load;
    says(
        &load,
        &["Both heads: 100", "40", "come to head b, whose machine is looked at; head a explains itself"],
    );
}
