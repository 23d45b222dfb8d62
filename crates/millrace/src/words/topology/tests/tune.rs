//! What is wanted of each machine, and what nobody asks for.

use super::machines;
use topology::tune::{Group, Verdict, choice, settings};
use topology::{Machine, Recording};

/// A setting in words.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Setting {
    group: Group,
    name: String,
    found: String,
    wanted: String,
    why: &'static str,
    how: Option<String>,
    verdict: Verdict,
}

fn of(from: &Recording) -> Vec<Setting> {
    let one = |s: &topology::tune::Setting| {
        let said = crate::words::topology::setting(s);
        assert_eq!(said.how.is_some(), s.verdict == Verdict::Advice, "{s:?}");
        let (group, verdict) = (s.group, s.verdict.clone());
        let crate::words::topology::Setting { name, found, wanted, why, how, .. } = said;
        Setting { group, name, found, wanted, why, how, verdict }
    };
    settings(&Machine::of(from), from).iter().map(one).collect()
}

fn find<'a>(list: &'a [Setting], name: &str) -> &'a Setting {
    list.iter().find(|s| s.name.contains(name)).unwrap_or_else(|| panic!("no {name} in {list:#?}"))
}

#[test]
fn choices_are_read_from_brackets() {
    assert_eq!(choice("mq-deadline [none] kyber\n"), "none");
    assert_eq!(choice("none\n"), "none");
    assert_eq!(choice("[unclosed"), "[unclosed");
}

#[test]
fn two_sockets_are_looked_at_where_the_head_is() {
    let list = of(&machines::two_sockets());
    let governor = find(&list, "governor");
    assert_eq!((governor.name.as_str(), governor.found.as_str()), ("governor of 64 CPUs", "powersave"));
    let Verdict::Change(writes) = &governor.verdict else { panic!("{governor:?}") };
    assert_eq!(writes.len(), 64);
    // The pool has eight legs; the other sixteen drives are nobody's business.
    let merging = find(&list, "merging");
    assert_eq!(merging.name, "merging of 8 drives");
    let Verdict::Change(writes) = &merging.verdict else { panic!("{merging:?}") };
    let write = writes.iter().find(|w| w.path.contains("nvme12n1")).expect("a leg");
    assert_eq!((write.was.as_str(), write.value.as_str()), ("0", "2"));
    assert_eq!(find(&list, "scheduler").verdict, Verdict::Good);
    assert!(matches!(find(&list, "NUMA balancing").verdict, Verdict::Change(_)));
    assert!(find(&list, "MTU of ens1f0np0").verdict == Verdict::Advice);
    assert_eq!(find(&list, "mitigations").verdict, Verdict::Shown);
    assert_eq!(find(&list, "transparent huge pages").found, "madvise");
}

#[test]
fn interrupts_of_a_port_go_to_its_node_and_leave_shards_alone() {
    let list = of(&machines::two_sockets());
    let queues = find(&list, "interrupts of ens2f0np0");
    let Verdict::Change(writes) = &queues.verdict else { panic!("{queues:?}") };
    let cpus: Vec<u32> = writes.iter().map(|w| w.value.parse().expect("a CPU")).collect();
    // Node 1 has cores 16 to 31; shards sit on 18 and 19.
    assert_eq!(cpus, [16, 17, 20, 21, 22, 23, 24, 25]);
    assert!(queues.found.contains("on another node"), "{}", queues.found);
    assert_eq!(writes[0].was, "0-63");
    assert!(list.iter().all(|s| !s.name.contains("ens1f1np1")), "a port that is down is left alone");
}

#[test]
fn drives_that_somebody_else_uses_are_left_alone() {
    let with = |mounts: &str| {
        let mut from = machines::two_sockets();
        from.put("/millrace/status", r#"{"daemon":{}}"#);
        from.put("/proc/self/mounts", mounts);
        let list = of(&from);
        let Verdict::Change(writes) = &find(&list, "merging").verdict else { panic!("{list:#?}") };
        let of = |drive: &str| writes.iter().any(|w| w.path.contains(&format!("/{drive}/")));
        (of("nvme0n1"), of("nvme1n1"), of("nvme12n1"))
    };
    assert_eq!(with(""), (true, true, true));
    assert_eq!(with("/dev/nvme0n1\n/dev/nvme1n1p2\n/dev/nvme12n10\n/dev/mapper/x\n"), (false, false, true));
}

#[test]
fn a_running_irqbalance_is_told_and_not_stopped() {
    let mut from = machines::two_sockets();
    assert!(of(&from).iter().all(|s| s.name != "irqbalance"));
    from.put("/proc/irqbalance/comm", "irqbalance\n");
    assert!(find(&of(&from), "irqbalance").how.as_ref().is_some_and(|how| how.contains("systemctl")));
}

#[test]
fn deep_sleep_is_turned_off_on_the_shards_cores_alone() {
    let mut from = machines::two_sockets();
    for cpu in 0..64 {
        for (state, name, latency) in [(1, "C1", 2), (2, "C6", 133)] {
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
            from.put(&format!("{folder}/name"), name);
            from.put(&format!("{folder}/latency"), &latency.to_string());
            from.put(&format!("{folder}/disable"), "0");
        }
    }
    let list = of(&from);
    let c6 = find(&list, "C6");
    assert_eq!(
        (c6.name.as_str(), c6.found.as_str(), c6.wanted.as_str()),
        ("C6 (133 µs) of 8 CPUs", "on", "off")
    );
    assert!(list.iter().all(|s| !s.name.contains("C1")));
}

#[test]
fn limits_of_the_head_are_told_with_the_way() {
    let mut from = machines::two_sockets();
    from.put(
        "/proc/900/limits",
        "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  8388608  8388608  bytes\nMax open files  1024  4096 files\n",
    );
    let list = of(&from);
    let memory = find(&list, "locked memory");
    assert!(memory.how.as_ref().is_some_and(|how| how.contains("LimitMEMLOCK")), "{memory:?}");
    assert_eq!(find(&list, "open files").found, "1024");
}

#[test]
fn what_cannot_be_chosen_or_is_not_there_is_not_wanted() {
    let mut from = machines::guest();
    from.put("/sys/block/vda/queue/scheduler", "[mq-deadline] kyber");
    let list = of(&from);
    assert!(list.iter().all(|s| s.name != "scheduler of vda"), "{list:#?}");
    assert!(list.iter().all(|s| s.group != Group::Pcie), "a guest has no links");
    assert_eq!(of(&Recording::default()), []);
    for (name, recording) in machines::all() {
        for s in of(&recording) {
            assert!(!s.found.is_empty() && !s.wanted.is_empty() && !s.why.is_empty(), "{name}: {s:?}");
        }
    }
}

fn port_file(name: &str) -> String {
    format!("/ethtool/ens2f0np0/{name}")
}

#[test]
fn an_interrupt_that_waits_long_is_told_unless_the_driver_chooses() {
    let mut from = machines::two_sockets();
    assert!(of(&from).iter().all(|s| !s.name.contains("interrupt delay")), "nothing is known of it");
    for (usecs, adaptive, want) in [("50", "0", "change"), ("16", "0", "good"), ("50", "1", "good")] {
        from.put(&port_file("rx-usecs"), usecs);
        from.put(&port_file("adaptive-rx"), adaptive);
        let list = of(&from);
        let delay = find(&list, "interrupt delay of ens2f0np0");
        match (&delay.verdict, want) {
            (Verdict::Change(writes), "change") => {
                assert_eq!((writes[0].was.as_str(), writes[0].value.as_str()), ("50", "16"));
                assert_eq!(delay.found, "50 µs");
            }
            (Verdict::Good, "good") => {}
            (other, _) => panic!("{usecs} {adaptive}: {other:?}"),
        }
    }
}

#[test]
fn a_port_with_few_queues_is_told_how_many_it_could_have() {
    let mut from = machines::two_sockets();
    from.put(&port_file("queues"), "2");
    from.put(&port_file("queues-max"), "63");
    let list = of(&from);
    let queues = find(&list, "queues of ens2f0np0");
    // Node 1 has 16 cores, of which shards have two.
    assert_eq!((queues.found.as_str(), queues.wanted.as_str()), ("2 of 63", "14"));
    assert_eq!(queues.how.as_deref(), Some("ethtool -L ens2f0np0 combined 14"), "{queues:?}");
    from.put(&port_file("queues-max"), "2");
    assert_eq!(find(&of(&from), "queues of ens2f0np0").verdict, Verdict::Good);
}

#[test]
fn packets_are_handed_on_where_queues_are_few_and_only_there() {
    let mut from = machines::two_sockets();
    let base = "/sys/class/net/ens2f0np0/queues";
    // Eight queues for fourteen cores: what is on goes off.
    for queue in 0..8 {
        from.put(&format!("{base}/rx-{queue}/rps_cpus"), "00000000,00000000");
    }
    assert_eq!(find(&of(&from), "(RPS) of ens2f0np0").verdict, Verdict::Good);
    from.put(&format!("{base}/rx-3/rps_cpus"), "00000001,00000002");
    let list = of(&from);
    let rps = find(&list, "(RPS) of ens2f0np0");
    let Verdict::Change(writes) = &rps.verdict else { panic!("{rps:?}") };
    assert_eq!(writes.len(), 1);
    assert_eq!((rps.found.as_str(), rps.wanted.as_str()), ("CPUs 1,32", "off"));
    assert_eq!(
        (writes[0].was.as_str(), writes[0].value.as_str()),
        ("00000001,00000002", "00000000,00000000")
    );
    // Sending: none has a CPU of its own yet.
    for queue in 0..8 {
        from.put(&format!("{base}/tx-{queue}/xps_cpus"), "00000000,00000000");
    }
    let list = of(&from);
    let xps = find(&list, "(XPS) of ens2f0np0");
    let Verdict::Change(writes) = &xps.verdict else { panic!("{xps:?}") };
    assert_eq!(writes[1].value, "02020202,02020202", "CPUs 1, 9, 17, … have the second queue");
    // A mask that names CPUs was made by somebody who knows.
    from.put(&format!("{base}/tx-0/xps_cpus"), "00000000,00000001");
    assert!(of(&from).iter().all(|s| !s.name.contains("(XPS) of ens2f0np0")));
}

#[test]
fn one_queue_for_many_cores_is_spread_by_software() {
    let other_queues = |line: &&str| !(1..8).any(|q| line.contains(&format!("ens2f0np0/queues/rx-{q}/")));
    let text = machines::two_sockets().encode();
    let text: String = text.lines().filter(other_queues).map(|l| format!("{l}\n")).collect();
    let mut from = Recording::decode(text.as_bytes()).expect("a recording");
    from.put("/sys/class/net/ens2f0np0/queues/rx-0/rps_cpus", "00000000,00000000");
    let list = of(&from);
    let rps = find(&list, "(RPS) of ens2f0np0");
    assert_eq!((rps.found.as_str(), rps.wanted.as_str()), ("off", "CPUs 16-17,20-31"));
    let Verdict::Change(writes) = &rps.verdict else { panic!("{rps:?}") };
    assert_eq!((writes.len(), writes[0].value.as_str()), (1, "00000000,fff30000"));
}

#[test]
fn buffers_that_are_larger_than_wanted_are_not_shown_as_to_be_lowered() {
    let mut from = machines::two_sockets();
    let row = |from: &Recording, name: &str| find(&of(from), name).clone();
    let small = row(&from, "TCP receive buffers");
    assert_eq!((small.wanted.as_str(), small.verdict == Verdict::Good), ("4096 131072 16777216", false));
    from.put("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t33554432\n");
    from.put("/proc/sys/net/core/rmem_max", "67108864\n");
    for (name, all) in
        [("TCP receive buffers", "4096 131072 33554432"), ("largest receive buffer", "67108864")]
    {
        let found = row(&from, name);
        assert_eq!((found.found.as_str(), found.wanted.as_str(), &found.verdict), (all, all, &Verdict::Good));
    }
}

#[test]
fn what_is_only_worth_knowing_is_shown() {
    let mut from = machines::two_sockets();
    for leg in ["nvme12n1", "nvme0n1"] {
        from.put(&format!("/sys/block/{leg}/queue/io_timeout"), "30000");
        from.put(&format!("/sys/block/{leg}/queue/write_cache"), "write back");
    }
    from.put("/proc/sys/kernel/osrelease", "6.1.0-test");
    from.put("/boot/config-6.1.0-test", "# CONFIG_IRQ_TIME_ACCOUNTING is not set");
    let list = of(&from);
    for (name, found) in
        [("time-out (ms)", "30000"), ("write cache", "write back"), ("IRQ time accounting", "off")]
    {
        let s = find(&list, name);
        assert_eq!((s.found.as_str(), &s.verdict), (found, &Verdict::Shown), "{s:?}");
    }
    from.put("/boot/config-6.1.0-test", "CONFIG_IRQ_TIME_ACCOUNTING=y");
    assert_eq!(find(&of(&from), "IRQ time accounting").found, "on");
    from.put("/proc/cmdline", "quiet tsc=noirqtime");
    assert_eq!(find(&of(&from), "IRQ time accounting").found, "off");
}

#[test]
fn a_queue_that_is_shorter_than_the_drive_takes_is_lengthened() {
    let mut from = machines::two_sockets();
    assert_eq!(find(&of(&from), "commands per queue").verdict, Verdict::Good);
    from.put("/sys/block/nvme12n1/queue/nr_requests", "64");
    let list = of(&from);
    let short = find(&list, "commands per queue of nvme12n1");
    assert!(matches!(&short.verdict, Verdict::Change(w) if w[0].value == "1023"), "{short:?}");
}
