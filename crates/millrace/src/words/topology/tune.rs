//! What is set on a machine, what a head wants, why, and what could be worse then.

use topology::ranges;
use topology::tune::{Value, Verdict, What};

/// A setting in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Its name, with how many devices or CPUs have it.
    pub name: String,
    /// What is set.
    pub found: String,
    /// What a head wants.
    pub wanted: String,
    /// Why, one sentence.
    pub why: &'static str,
    /// What could be worse then; empty if nothing is to be changed.
    pub risk: &'static str,
    /// How to do it by hand, if somebody has to.
    pub how: Option<String>,
}

/// A setting in words.
pub fn setting(s: &topology::tune::Setting) -> Setting {
    let (why, risk) = reason(&s.what);
    let how = (s.verdict == Verdict::Advice).then(|| by_hand(&s.what, &value(&s.wanted))).flatten();
    Setting { name: name(s), found: value(&s.found), wanted: value(&s.wanted), why, risk, how }
}

fn name(s: &topology::tune::Setting) -> String {
    let plain = match &s.what {
        What::Governor => "governor".into(),
        What::Sleep { state, latency_us } => format!("{state} ({latency_us} µs)"),
        What::NumaBalancing => "NUMA balancing".into(),
        What::Smt => "SMT".into(),
        What::IrqTimeAccounting => "IRQ time accounting".into(),
        What::Mitigations => "mitigations".into(),
        What::Irqbalance => "irqbalance".into(),
        What::PortInterrupts { port } => format!("interrupts of {port}"),
        What::Scheduler => "scheduler".into(),
        What::Merging => "merging".into(),
        What::Completion => "completion".into(),
        What::Entropy => "entropy".into(),
        What::Rotational => "rotational".into(),
        What::WriteThrottling => "write throttling".into(),
        What::CommandsPerQueue => "commands per queue".into(),
        What::Polling => "polling".into(),
        What::TimeOut => "time-out (ms)".into(),
        What::WriteCache => "write cache".into(),
        What::PollQueues => "NVMe poll queues".into(),
        What::Swappiness => "swappiness".into(),
        What::HugePages => "transparent huge pages".into(),
        What::LockedMemory => "locked memory of the head".into(),
        What::OpenFiles => "open files of the head".into(),
        What::ReceiveBuffer => "largest receive buffer".into(),
        What::SendBuffer => "largest send buffer".into(),
        What::TcpReceiveBuffers => "TCP receive buffers".into(),
        What::TcpSendBuffers => "TCP send buffers".into(),
        What::QueueDiscipline => "queue discipline".into(),
        What::Mtu { port } => format!("MTU of {port}"),
        What::InterruptDelay { port } => format!("interrupt delay of {port}"),
        What::PortQueues { port } => format!("queues of {port}"),
        What::PacketsHandedOn { port, .. } => format!("packets handed on (RPS) of {port}"),
        What::SendQueues { port } => format!("queues to send from (XPS) of {port}"),
        What::LinkPower => "link power (ASPM)".into(),
        What::PacketSize { drives } => format!("packet size of {drives} drives"),
    };
    let of = match &s.what {
        What::Governor | What::Sleep { .. } => "CPU",
        _ => "drive",
    };
    match &s.owners[..] {
        [] => plain,
        [one] => format!("{plain} of {one}"),
        all => format!("{plain} of {} {of}s", all.len()),
    }
}

/// What is found or wanted.
fn value(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Number(n) => n.to_string(),
        Value::On => "on".into(),
        Value::Off => "off".into(),
        Value::Unlimited => "unlimited".into(),
        Value::Runs => "runs".into(),
        Value::Stopped => "stopped".into(),
        Value::Micros(us) => format!("{us} µs"),
        Value::AtMostMicros(us) => format!("at most {us} µs"),
        Value::UpTo(n) => format!("up to {n}"),
        Value::Adaptive => "adaptive".into(),
        Value::Of { now, most } => format!("{now} of {most}"),
        Value::Cpus(cpus) => format!("CPUs {}", ranges(cpus)),
        Value::QueuesOn { queues, cpus, beside_shards, far } => {
            let beside = match beside_shards {
                0 => String::new(),
                n => format!(", {n} beside shards"),
            };
            let far = match far {
                0 => String::new(),
                n => format!(", {n} on another node"),
            };
            format!("{queues} queues on CPUs {}{beside}{far}", ranges(cpus))
        }
        Value::OneEachOn(cpus) => format!("one each, on CPUs {}", ranges(cpus)),
        Value::QueueEach => "a queue each".into(),
        Value::AsItIs => "as it is".into(),
        Value::Measured => "measured".into(),
        Value::OnToMeasure => "on, to measure".into(),
        Value::Known => "known".into(),
        Value::AsTheDriveSays => "as the drive says".into(),
        Value::YourChoice => "your choice".into(),
        Value::Mitigations { active, open } => format!("{active} active, {open} open"),
    }
}

/// Why a head wants it, and what could be worse then.
fn reason(what: &What) -> (&'static str, &'static str) {
    match what {
        What::Governor => (
            "a core that has clocked down serves the first commands after a pause slowly",
            "more power and heat while idle",
        ),
        What::Sleep { .. } => (
            "waking from it takes longer than a drive's answer",
            "more power; with few cores awake, less turbo",
        ),
        What::NumaBalancing => (
            "it unmaps pages to see who uses them, and the head's memory has its place already",
            "other programs on this machine may lose by it",
        ),
        What::Smt => {
            ("a second thread helps some loads and hurts others: measure both with millrace bench", "")
        }
        What::IrqTimeAccounting => {
            ("without it, time that interrupts take on a shard's core is counted as the shard's own", "")
        }
        What::Mitigations => {
            ("each system call pays for them; whether that is worth it is not ours to say", "")
        }
        What::Irqbalance => (
            "it moves interrupts while the head runs, also onto the shards' cores",
            "interrupts of other devices stay where they are",
        ),
        What::PortInterrupts { .. } => (
            "an interrupt on a shard's core stops the shard, and several queues on one core are one queue",
            "irqbalance, if it runs, moves them again",
        ),
        What::Scheduler => (
            "flash has no order to keep; a scheduler is a lock and a list between the head and the drive",
            "other users of the same drive are no longer served in turns",
        ),
        What::Merging => (
            "the head sends whole transfers: looking for neighbours finds none and costs time",
            "other programs that write small pieces in order send more commands",
        ),
        What::Completion => ("a command ends on the core that sent it, whose caches hold it", "none known"),
        What::Entropy => ("each completion would feed the random generator", "none since Linux 5.6"),
        What::Rotational => ("Linux treats it as a disk with a head to move", "none for flash"),
        What::WriteThrottling => (
            "Linux holds writes back when reads get slower; the head balances both itself",
            "buffered writers on the same drive can crowd out readers",
        ),
        What::CommandsPerQueue => ("the drive takes more at once than Linux sends it", "none known"),
        What::Polling => (
            "1: the drive has queues without interrupts (see poll queues), which a core that polls can use",
            "",
        ),
        What::TimeOut => (
            "the head goes on without a leg that is late long before; until then what hangs is the kernel's, and the leg \
             cannot return",
            "",
        ),
        What::WriteCache => (
            "a drive that may lose what it answered is flushed for each flush and FUA of a host; drives with power-loss \
             protection say write through",
            "to write \"write through\" here only stops the flushes: a volatile cache then loses answered writes when the power fails",
        ),
        What::PollQueues => (
            "a shard that polls takes no interrupt: measure whether that pays here",
            "a core that polls is never idle",
        ),
        What::Swappiness => (
            "memory that a head waits for must not lie on a disk",
            "with little memory the page cache shrinks first",
        ),
        What::HugePages => (
            "making them without being asked stops programs for milliseconds",
            "programs that live by them and do not ask get slower",
        ),
        What::LockedMemory => ("buffers that the kernel may not pin are copied or refused", "none"),
        What::OpenFiles => ("each connection is a file", "none"),
        What::ReceiveBuffer | What::SendBuffer | What::TcpReceiveBuffers | What::TcpSendBuffers => (
            "a connection sends no more than this before it is acknowledged: bandwidth times delay",
            "more memory in connections that are slow to be acknowledged",
        ),
        What::QueueDiscipline => (
            "the packets of many connections take turns, and each is sent at its own pace",
            "holds for ports that come up later",
        ),
        What::Mtu { .. } => (
            "a 4 KiB answer in one packet instead of three costs both ends less",
            "every switch and host on the way must agree, or connections hang on large packets",
        ),
        What::InterruptDelay { .. } => (
            "at depth 1 each command waits so long before the head hears of it",
            "more interrupts under load: where their cores are full, measure",
        ),
        What::PortQueues { .. } => {
            ("a queue is served by one core at a time", "the link goes down for a moment; hosts reconnect")
        }
        What::PacketsHandedOn { spread: true, .. } => {
            ("few queues: one core would do the work of TCP for all connections", "none known")
        }
        What::PacketsHandedOn { spread: false, .. } => {
            ("there are queues enough: handing packets on costs an interrupt between cores", "none known")
        }
        What::SendQueues { .. } => {
            ("a core that has a queue of its own to send from shares no lock with others", "none known")
        }
        What::LinkPower => (
            "a link that has gone to sleep wakes for the first command after a pause",
            "more power and heat, which warm drives do not need",
        ),
        What::PacketSize { .. } => (
            "larger packets have fewer headers: some per cent of a link's payload",
            "devices that talk to each other directly must agree",
        ),
    }
}

/// How to do it by hand; None for what is never left to people.
fn by_hand(what: &What, wanted: &str) -> Option<String> {
    Some(match what {
        What::Irqbalance => "systemctl disable --now irqbalance".into(),
        What::PollQueues => {
            "options nvme poll_queues=N in /etc/modprobe.d, then a restart of the machine".into()
        }
        What::LockedMemory => "LimitMEMLOCK=infinity in its unit, then a restart of the head".into(),
        What::OpenFiles => "LimitNOFILE=1048576 in its unit, then a restart of the head".into(),
        What::Mtu { port } => {
            format!("ip link set {port} mtu {wanted}, after the switches and together with the hosts")
        }
        What::PortQueues { port } => format!("ethtool -L {port} combined {wanted}"),
        What::PacketSize { .. } => {
            "pci=pcie_bus_perf on the kernel's command line, then a restart of the machine".into()
        }
        What::Governor
        | What::Sleep { .. }
        | What::NumaBalancing
        | What::Smt
        | What::IrqTimeAccounting
        | What::Mitigations
        | What::PortInterrupts { .. }
        | What::Scheduler
        | What::Merging
        | What::Completion
        | What::Entropy
        | What::Rotational
        | What::WriteThrottling
        | What::CommandsPerQueue
        | What::Polling
        | What::TimeOut
        | What::WriteCache
        | What::Swappiness
        | What::HugePages
        | What::ReceiveBuffer
        | What::SendBuffer
        | What::TcpReceiveBuffers
        | What::TcpSendBuffers
        | What::QueueDiscipline
        | What::InterruptDelay { .. }
        | What::PacketsHandedOn { .. }
        | What::SendQueues { .. }
        | What::LinkPower => return None,
    })
}
