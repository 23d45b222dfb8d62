//! What is wanted of each machine, and what nobody asks for.

use crate::machines;
use topology::tune::{Group, Setting, Verdict, choice, settings};
use topology::{Machine, Recording};

fn of(from: &Recording) -> Vec<Setting> {
    settings(&Machine::of(from), from)
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
    assert!(matches!(find(&list, "MTU of ens1f0np0").verdict, Verdict::Advice(_)));
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
fn a_running_irqbalance_is_told_and_not_stopped() {
    let mut from = machines::two_sockets();
    assert!(of(&from).iter().all(|s| s.name != "irqbalance"));
    from.put("/proc/irqbalance/comm", "irqbalance\n");
    assert!(
        matches!(&find(&of(&from), "irqbalance").verdict, Verdict::Advice(how) if how.contains("systemctl"))
    );
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
    assert!(matches!(&memory.verdict, Verdict::Advice(how) if how.contains("LimitMEMLOCK")), "{memory:?}");
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
