//! What the kernel refused while a house was made, and what is worth knowing of one that works.

use base::Address;
use std::io;

/// Why a house, or one of its threads, could not be made. `errno` is 0 if the kernel gave none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum SetupFault {
    /// The region would be larger than the address space.
    RegionTooLarge,
    /// Memory could not be reserved.
    Memory { bytes: u64, errno: i32 },
    /// There is no descriptor for a mailbox.
    Mailbox { errno: i32 },
    /// A thread could not be started.
    Thread { address: Address, errno: i32 },
    /// A thread panicked while its machine was made.
    Panicked { address: Address },
    /// Receive buffers could not be registered.
    ReceiveBuffers { errno: i32 },
    /// The kernel has no io_uring.
    NoRing,
    /// The system forbids io_uring.
    RingForbidden,
    /// There is no memory for an io_uring.
    RingMemory,
    /// There is no descriptor for an io_uring.
    RingFiles,
    /// An io_uring failed with another error.
    Ring { errno: i32 },
}

/// What was not allowed or not possible, though the house works.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum HouseNotice {
    /// The limit of open files is below the connections that may come.
    FewFiles { limit: u64, connections: u64 },
    /// A thread could not be bound to its CPU.
    NotBound { address: Address, core: usize },
    /// Not all of the memory could be made resident ahead.
    NotResident { bytes: u64, all_bytes: u64, errno: i32 },
    /// Not all buffers are registered with the kernel.
    NotRegistered { bytes: u64, errno: i32 },
    /// The file system of a file drive does no direct I/O.
    Buffered { drive: String, block_bytes: u32 },
}

/// The kernel's number of an error; EIO where it gave none.
pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
