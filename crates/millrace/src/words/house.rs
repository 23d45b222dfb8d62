//! Words about the threads and the memory that the daemon runs on.

use super::machine::errno_words;
use crate::failure::Failure;
use base::Address;
use finding::SystemNotice;
use uring::{HouseNotice, SetupFault};

/// Why the threads or the memory could not be had.
pub fn setup_fault(fault: &SetupFault) -> String {
    match fault {
        SetupFault::RegionTooLarge => "the region would be larger than the address space".into(),
        SetupFault::Memory { bytes, errno } => format!(
            "{} MiB of memory could not be reserved ({}): give less",
            bytes >> 20,
            errno_words(*errno)
        ),
        SetupFault::Mailbox { errno } => format!(
            "no descriptor for a mailbox ({}): raise RLIMIT_NOFILE (LimitNOFILE in the unit)",
            errno_words(*errno)
        ),
        SetupFault::Thread { address, errno } => {
            format!("the thread of {} could not be started: {}", machine(*address), errno_words(*errno))
        }
        SetupFault::Panicked { address } => {
            format!("{} failed while it was being made", machine(*address))
        }
        SetupFault::ReceiveBuffers { errno } => format!(
            "receive buffers could not be registered ({}): Linux 6.1 or newer is needed",
            errno_words(*errno)
        ),
        SetupFault::NoRing => {
            "this kernel has no io_uring: Linux 6.1 or newer is needed, with CONFIG_IO_URING".into()
        }
        SetupFault::RingForbidden => {
            "io_uring is forbidden here: set kernel.io_uring_disabled=0 (sysctl), and \
                                      allow it in the container's seccomp profile"
                .into()
        }
        SetupFault::RingMemory => {
            "no memory for an io_uring: the process may lock too little of it (RLIMIT_MEMLOCK)".into()
        }
        SetupFault::RingFiles => {
            "no descriptor for an io_uring: raise RLIMIT_NOFILE (LimitNOFILE in the unit)".into()
        }
        SetupFault::Ring { errno } => format!("io_uring could not be set up: {}", errno_words(*errno)),
    }
}

/// The same as the failure of a command.
pub fn cannot_start(fault: SetupFault) -> Failure {
    Failure::internal(setup_fault(&fault))
}

/// What is worth knowing though it works, as a finding.
pub fn house_notice(notice: HouseNotice) -> SystemNotice {
    match notice {
        HouseNotice::FewFiles { limit, connections } => SystemNotice::OpenFilesLimited { limit, connections },
        HouseNotice::NotBound { address, core } => {
            SystemNotice::ThreadNotBound { thread: address.into(), core: core as u64 }
        }
        HouseNotice::NotResident { bytes, all_bytes, errno } => {
            SystemNotice::MemoryNotResident { bytes, all_bytes, errno }
        }
        HouseNotice::NotRegistered { bytes, errno } => SystemNotice::BuffersNotRegistered { bytes, errno },
        HouseNotice::Buffered { drive, block_bytes } => SystemNotice::DriveCached { drive, block_bytes },
    }
}

fn machine(address: Address) -> String {
    match address {
        Address::Shard(n) => format!("shard {n}"),
        Address::Steward => "the steward".into(),
        Address::Manager => "the manager".into(),
    }
}
