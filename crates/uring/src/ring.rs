//! One io_uring: set-up with what this kernel has, submission that never loses an entry, one system call
//! per turn.

use crate::fault::{SetupFault, errno};
use crate::region::{CHUNKS_MAX, Region};
use base::Instant;
use io_uring::{IoUring, squeue, types};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Submission entries; more in one turn cost one system call more.
const SQ_ENTRIES: u32 = 2048;
/// What is tried where memory may not be locked.
const SQ_ENTRIES_MIN: u32 = 256;
/// The kernel's limit of completion entries.
const CQ_ENTRIES_MAX: u32 = 65536;
/// Slots for drives' descriptors; a drive beyond them is used by its plain descriptor. Those of connections follow.
const DRIVE_FILES: u32 = 256;

const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 8;
const ENTER_REGISTERED_RING: u32 = 16;
const ENTER_NO_IOWAIT: u32 = 128;

/// What a completion belongs to; the low half of its user data is an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    Wake = 1,
    Accept,
    Receive,
    Send,
    Connect,
    Cancel,
    Drive,
}

impl Kind {
    pub(crate) fn user(self, index: u32) -> u64 {
        (self as u64) << 56 | u64::from(index)
    }
    /// The inverse of `user`.
    pub(crate) fn of(user: u64) -> (Kind, u32) {
        let kind = match user >> 56 {
            1 => Kind::Wake,
            2 => Kind::Accept,
            3 => Kind::Receive,
            4 => Kind::Send,
            5 => Kind::Connect,
            6 => Kind::Cancel,
            7 => Kind::Drive,
            _ => unreachable!("every entry was marked by `user`"),
        };
        (kind, user as u32)
    }
}

/// A completion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) user: u64,
    pub(crate) result: i32,
    pub(crate) flags: u32,
}

/// How long `enter` may sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Not at all.
    No,
    /// Until something completes.
    Forever,
    /// Until something completes or so many nanoseconds have passed.
    For(u64),
}

/// The ring of one thread.
pub(crate) struct Ring {
    ring: IoUring,
    /// Pieces of the region that are registered, from the first one on: fixed reads and writes work there.
    pub(crate) chunks: u16,
    /// Slots of the kernel's table for drives and for connections; 0 where it has no room for them.
    drive_files: u32,
    connection_files: u32,
    /// The ring's descriptor, or its index in this thread's registered rings.
    enter_fd: RawFd,
    flags: u32,
    /// Completions moved out of the way of a full queue.
    spilled: VecDeque<Done>,
}

impl Ring {
    /// A ring for about `in_flight` operations at a time, and so many connections.
    ///
    /// # Errors
    /// io_uring is missing, forbidden or has no memory.
    pub(crate) fn new(in_flight: u32, connections: u32) -> Result<Self, SetupFault> {
        let completions = in_flight.next_power_of_two().clamp(2 * SQ_ENTRIES, CQ_ENTRIES_MAX);
        let mut error = None;
        // Some kernels count rings as locked memory: better a small one than none.
        let sizes = [(SQ_ENTRIES, completions), (SQ_ENTRIES_MIN, 4 * SQ_ENTRIES_MIN)];
        for (way, (entries, completions)) in sizes.iter().flat_map(|s| (0..3).map(move |way| (way, *s))) {
            let mut builder = IoUring::builder();
            builder.setup_cqsize(completions).setup_clamp().setup_submit_all().dontfork();
            match way {
                // Completions are worked off when we ask for them, in our own thread: no interrupts of
                // the data path, and the largest batches.
                0 => builder.setup_single_issuer().setup_defer_taskrun(),
                1 => builder.setup_coop_taskrun().setup_taskrun_flag(),
                _ => &mut builder,
            };
            match builder.build(entries) {
                Ok(ring) => return Ok(Self::set_up(ring, connections)),
                Err(e) => error = Some(e),
            }
        }
        Err(fault_of(&error.expect("several ways were tried")))
    }

    fn set_up(ring: IoUring, connections: u32) -> Self {
        // The table may have no more slots than the process may have files.
        let ways = [(DRIVE_FILES, connections), (DRIVE_FILES, 0)];
        let fits = |(d, c): &(u32, u32)| ring.submitter().register_files_sparse(d + c).is_ok();
        let (drive_files, connection_files) = ways.into_iter().find(fits).unwrap_or((0, 0));
        // We sleep because there is no work, not because a drive is slow.
        let mut flags = if ring.params().is_feature_no_iowait() { ENTER_NO_IOWAIT } else { 0 };
        let mut enter_fd = ring.as_raw_fd();
        if let Some(index) = register_ring_fd(&ring) {
            enter_fd = index;
            flags |= ENTER_REGISTERED_RING;
        }
        let spilled = VecDeque::new();
        Self { ring, chunks: 0, drive_files, connection_files, enter_fd, flags, spilled }
    }

    /// Makes room for the region's pieces in the kernel's table; `register_chunk` fills it.
    pub(crate) fn expect_region(&mut self, region: &Region) -> io::Result<()> {
        self.ring.submitter().register_buffers_sparse(region.chunks().min(CHUNKS_MAX) as u32)
    }
    /// Registers piece `n` of the region, so that drives need not pin its pages for each operation. Only the next one
    /// counts: after one that failed there is none. Operations under way are not touched.
    pub(crate) fn register_chunk(&mut self, region: &Region, n: usize) -> io::Result<()> {
        if n != usize::from(self.chunks) || n >= CHUNKS_MAX {
            return Ok(());
        }
        // SAFETY: the region outlives the ring: both are held by the reactor, which drops the ring first
        // and whose thread the kernel cleans up before anybody can join it.
        unsafe { self.ring.submitter().register_buffers_update(n as u32, &[region.chunk(n)], None)? };
        self.chunks += 1;
        Ok(())
    }

    /// Registers `entries` provided buffers described at `at` as group 0.
    ///
    /// # Safety
    /// `at` is page-aligned, describes that many buffers that the kernel may write to, and both stay
    /// until the ring is gone.
    pub(crate) unsafe fn register_staging(&mut self, at: u64, entries: u16) -> io::Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.ring.submitter().register_buf_ring_with_flags(at, entries, 0, 0) }
    }

    /// Puts a drive's descriptor into the kernel's table, which saves a look-up for each operation; its number there. None: it
    /// has to be used by its own.
    pub(crate) fn register_drive(&mut self, drive: u32, fd: RawFd) -> Option<i32> {
        let registered = drive < self.drive_files && self.register(drive, fd);
        registered.then_some(drive as i32)
    }
    /// The same with a connection's, by its slot.
    pub(crate) fn register_connection(&mut self, connection: u32, fd: RawFd) -> Option<i32> {
        let slot = self.drive_files + connection;
        let registered = connection < self.connection_files && self.register(slot, fd);
        registered.then_some(slot as i32)
    }
    fn register(&mut self, slot: u32, fd: RawFd) -> bool {
        self.ring.submitter().register_files_update(slot, &[fd]).is_ok()
    }
    /// Takes a number that was registered out of the table; the kernel lets go of the file once no operation has it.
    pub(crate) fn unregister_file(&mut self, number: i32) {
        let emptied = self.ring.submitter().register_files_update(number as u32, &[-1]);
        assert!(emptied.is_ok(), "a fixed file that was registered can be unregistered: {emptied:?}");
    }

    /// Queues an entry; submits if the queue is full.
    ///
    /// # Safety
    /// What the entry points to stays valid, and unshared as the operation demands, until its
    /// completion has been reaped.
    pub(crate) unsafe fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: the caller's promise.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            if self.enter(Wait::No).is_err() {
                // The kernel wants completions out of the way first.
                while let Some(done) = self.next() {
                    self.spilled.push_back(done);
                }
            }
        }
    }

    /// Whether something is queued that the kernel does not know of.
    pub(crate) fn unsubmitted(&mut self) -> bool {
        !self.ring.submission().is_empty()
    }

    fn next(&mut self) -> Option<Done> {
        let done = self.ring.completion().next()?;
        Some(Done { user: done.user_data(), result: done.result(), flags: done.flags() })
    }

    /// Moves at most `max` completions to `out`.
    pub(crate) fn reap(&mut self, out: &mut Vec<Done>, max: usize) {
        while out.len() < max
            && let Some(done) = self.spilled.pop_front()
        {
            out.push(done);
        }
        let room = max - out.len();
        let done = self.ring.completion().take(room);
        out.extend(done.map(|d| Done { user: d.user_data(), result: d.result(), flags: d.flags() }));
    }

    /// Whether `reap` would find something.
    pub(crate) fn has_completions(&mut self) -> bool {
        !self.spilled.is_empty() || !self.ring.completion().is_empty()
    }

    /// Submits everything and waits as `wait` says.
    ///
    /// # Errors
    /// Only what goes away by reaping completions or by trying again (EBUSY, EAGAIN).
    pub(crate) fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let submit = self.ring.submission().len() as u32;
        let flags = self.flags | ENTER_GETEVENTS;
        let mut time = types::Timespec::new();
        let mut args = types::SubmitArgs::new();
        let (min, flags, arg, size) = match wait {
            Wait::No => (0, flags, std::ptr::null(), 0),
            Wait::Forever => (1, flags, std::ptr::null(), 0),
            Wait::For(ns) => {
                time = time.sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
                args = args.timespec(&time);
                (1, flags | ENTER_EXT_ARG, (&raw const args).cast::<libc::c_void>(), size_of_val(&args))
            }
        };
        // SAFETY: what the entries point to is promised by `push`; the argument and the time it points to
        // live until the call returns, and SubmitArgs is io_uring_getevents_arg, as EXT_ARG expects.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.enter_fd,
                submit,
                min as libc::c_uint,
                flags,
                arg,
                size,
            )
        };
        if result >= 0 {
            return Ok(());
        }
        let e = io::Error::last_os_error();
        match e.raw_os_error() {
            Some(libc::ETIME | libc::EINTR) => Ok(()),
            Some(libc::EBUSY | libc::EAGAIN | libc::ENOMEM) => Err(e),
            _ => panic!("io_uring_enter failed: {e}"),
        }
    }
}

/// Registers the ring with this thread, which saves a descriptor look-up per turn (Linux 5.18); its index.
/// The `io-uring` crate does it too, but forgets the index with each `Submitter`.
fn register_ring_fd(ring: &IoUring) -> Option<RawFd> {
    /// `struct io_uring_rsrc_update` of linux/io_uring.h.
    #[repr(C)]
    struct Update {
        offset: u32,
        reserved: u32,
        data: u64,
    }
    const IORING_REGISTER_RING_FDS: libc::c_uint = 20;
    let fd = ring.as_raw_fd();
    let mut update = Update { offset: u32::MAX, reserved: 0, data: fd as u64 };
    // SAFETY: the kernel reads and writes one such structure, which is alive.
    let done =
        unsafe { libc::syscall(libc::SYS_io_uring_register, fd, IORING_REGISTER_RING_FDS, &mut update, 1) };
    (done == 1).then_some(update.offset as RawFd)
}

/// The time from `now` until `deadline` as a wait.
pub(crate) fn wait_until(now: Instant, deadline: Option<Instant>) -> Wait {
    match deadline {
        None => Wait::Forever,
        Some(at) if at <= now => Wait::No,
        Some(at) => Wait::For(at.0 - now.0),
    }
}

fn fault_of(error: &io::Error) -> SetupFault {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => SetupFault::NoRing,
        Some(libc::EPERM) => SetupFault::RingForbidden,
        Some(libc::ENOMEM) => SetupFault::RingMemory,
        Some(libc::EMFILE | libc::ENFILE) => SetupFault::RingFiles,
        _ => SetupFault::Ring { errno: errno(error) },
    }
}
