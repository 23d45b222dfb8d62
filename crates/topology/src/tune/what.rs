//! What there is to set, and what is found and wanted of it. What people read of these is in
//! `crates/millrace/src/words/topology`.

use super::setting::Group;
use serde::Serialize;

/// What is set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum What {
    /// What chooses the frequency of CPUs.
    Governor,
    /// A state in which CPUs sleep.
    Sleep { state: String, latency_us: u64 },
    /// Whether Linux moves memory to the node that uses it.
    NumaBalancing,
    /// Whether cores have two threads.
    Smt,
    /// Whether the time of interrupts is accounted for.
    IrqTimeAccounting,
    /// Mitigations of flaws of processors.
    Mitigations,
    /// Whether irqbalance runs.
    Irqbalance,
    /// Which CPUs take the interrupts of a port.
    PortInterrupts { port: String },
    /// The I/O scheduler of drives.
    Scheduler,
    /// Whether commands are merged.
    Merging,
    /// On which core commands end.
    Completion,
    /// Whether completions feed the random generator.
    Entropy,
    /// Whether Linux takes the drive for a disk.
    Rotational,
    /// Whether Linux holds writes back.
    WriteThrottling,
    /// Commands that Linux sends to a queue of a drive.
    CommandsPerQueue,
    /// Whether the drive has queues to poll.
    Polling,
    /// How long Linux waits for a drive.
    TimeOut,
    /// What the drive says of its cache.
    WriteCache,
    /// NVMe queues without interrupts.
    PollQueues,
    /// How readily Linux swaps.
    Swappiness,
    /// Transparent huge pages.
    HugePages,
    /// Memory that the head may lock.
    LockedMemory,
    /// Files that the head may open.
    OpenFiles,
    /// Largest buffer of a socket for what comes in.
    ReceiveBuffer,
    /// Largest buffer of a socket for what goes out.
    SendBuffer,
    /// Buffers of TCP for what comes in.
    TcpReceiveBuffers,
    /// Buffers of TCP for what goes out.
    TcpSendBuffers,
    /// The queue discipline of new ports.
    QueueDiscipline,
    /// The largest packet of a port.
    Mtu { port: String },
    /// How long a port gathers packets before it interrupts.
    InterruptDelay { port: String },
    /// Queues of a port.
    PortQueues { port: String },
    /// Who handles what comes in by a port. `spread`: it has few queues for its cores.
    PacketsHandedOn { port: String, spread: bool },
    /// Which queue takes what goes out by a port.
    SendQueues { port: String },
    /// Whether links sleep.
    LinkPower,
    /// The packet size of drives.
    PacketSize { drives: usize },
}

impl What {
    /// Its group.
    pub fn group(&self) -> Group {
        match self {
            What::Governor
            | What::Sleep { .. }
            | What::NumaBalancing
            | What::Smt
            | What::IrqTimeAccounting
            | What::Mitigations => Group::Cpu,
            What::Irqbalance | What::PortInterrupts { .. } => Group::Interrupts,
            What::Scheduler
            | What::Merging
            | What::Completion
            | What::Entropy
            | What::Rotational
            | What::WriteThrottling
            | What::CommandsPerQueue
            | What::Polling
            | What::TimeOut
            | What::WriteCache
            | What::PollQueues => Group::Block,
            What::Swappiness | What::HugePages | What::LockedMemory | What::OpenFiles => Group::Memory,
            What::ReceiveBuffer
            | What::SendBuffer
            | What::TcpReceiveBuffers
            | What::TcpSendBuffers
            | What::QueueDiscipline
            | What::Mtu { .. }
            | What::InterruptDelay { .. }
            | What::PortQueues { .. }
            | What::PacketsHandedOn { .. }
            | What::SendQueues { .. } => Group::Network,
            What::LinkPower | What::PacketSize { .. } => Group::Pcie,
        }
    }
}

/// What is found or wanted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "code", content = "fields", rename_all = "snake_case")]
#[allow(missing_docs, reason = "fields are what their names say")]
pub enum Value {
    /// As the kernel writes it.
    Text(String),
    /// A number.
    Number(u64),
    /// It is on.
    On,
    /// It is off.
    Off,
    /// No limit.
    Unlimited,
    /// A program that runs.
    Runs,
    /// A program that does not.
    Stopped,
    /// A time.
    Micros(u64),
    /// A time and everything below.
    AtMostMicros(u64),
    /// A number and everything below.
    UpTo(u64),
    /// The driver chooses.
    Adaptive,
    /// So many of those that there can be.
    Of { now: u64, most: u64 },
    /// These CPUs.
    Cpus(Vec<u32>),
    /// Queues, and the CPUs that take their interrupts.
    QueuesOn { queues: usize, cpus: Vec<u32>, beside_shards: usize, far: usize },
    /// Each queue on one of these CPUs.
    OneEachOn(Vec<u32>),
    /// A queue for each CPU.
    QueueEach,
    /// As it is.
    AsItIs,
    /// What measuring says.
    Measured,
    /// On, to measure.
    OnToMeasure,
    /// That somebody knows of it.
    Known,
    /// What the drive says.
    AsTheDriveSays,
    /// What the owner chooses.
    YourChoice,
    /// Mitigations that are active, and flaws that have none.
    Mitigations { active: usize, open: usize },
}
