//! Entry points for arbitrary bytes from a malicious target.

use super::{Config, Session};
use base::memory::PlainMemory;
use base::{HostCommand, HostIo, HostStatus, Instant, Memory, Op, Outbox, Slice, Want};

struct Io {
    memory: PlainMemory,
    outbox: Outbox,
    done: u32,
}

impl HostIo for Io {
    fn bytes(&self, data: Slice) -> &[u8] {
        self.memory.bytes(data)
    }
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8] {
        self.memory.bytes_mut(data)
    }
    fn copy(&mut self, from: Slice, to: Slice) {
        self.memory.copy(from, to);
    }
    fn room(&self) -> u32 {
        self.outbox.room()
    }
    fn header(&mut self, bytes: &[u8]) {
        self.outbox.header(&mut self.memory, bytes);
    }
    fn payload(&mut self, data: Slice) {
        self.outbox.payload(data);
    }
    fn pending(&self) -> u64 {
        self.outbox.pending()
    }
    fn done(&mut self, _: u32, _: HostStatus) {
        self.done += 1;
    }
}

/// Feeds `bytes` to a session, in pieces whose lengths the first byte decides; commands are under way as
/// soon as the session takes them. Must not panic.
pub fn session(bytes: &[u8]) {
    const STAGING: Slice = Slice { at: 0, len: 4096 };
    const RING: Slice = Slice { at: 4096, len: 16384 };
    const DATA: Slice = Slice { at: 20480, len: 131_072 };
    let Some((&choice, mut bytes)) = bytes.split_first() else { return };
    let target = (choice & 1 == 0).then_some("iqn.fuzz:target");
    let mut config = Config::new("iqn.fuzz:host", target);
    (config.header_digest, config.data_digest) = (choice & 2 != 0, choice & 4 != 0);
    config.ping = base::Duration::ZERO;
    let mut session = Session::new(config);
    let mut io =
        Io { memory: PlainMemory::new(0, DATA.end() as usize), outbox: Outbox::new(RING, 64), done: 0 };
    session.start();
    session.on_connected(&mut io);
    let piece = usize::from(choice >> 3) * 8 + 1;
    let mut submitted = 0;
    while !bytes.is_empty() && session.error().is_none() {
        let n = piece.min(bytes.len());
        let (now, mut rest) = bytes.split_at(n);
        match session.want() {
            Want::Direct(slice) => {
                let n = n.min(slice.len as usize);
                rest = &bytes[n..];
                io.memory.bytes_mut(slice.head(n as u32)).copy_from_slice(&now[..n]);
                session.on_direct(n as u32, &mut io);
            }
            Want::Staging | Want::Header(_) | Want::Nothing => {
                io.memory.bytes_mut(STAGING.head(n as u32)).copy_from_slice(now);
                session.on_bytes(Instant(1), STAGING.head(n as u32), &mut io);
            }
        }
        session.pump(Instant(1), &mut io);
        let sent = io.outbox.pending();
        if sent > 0 {
            io.outbox.on_sent(sent as u32, |_| ());
            session.on_sent(&mut io);
        }
        if session.free() > 0 && submitted < 4 && target.is_some() {
            let op = [Op::Read, Op::Write, Op::WriteZeroes { deallocate: true }, Op::Deallocate]
                [submitted as usize];
            let block = session.unit().block_bytes;
            let n = DATA.len / block;
            let data = if submitted < 2 { DATA.head(n * block) } else { Slice::default() };
            let c = HostCommand { id: submitted, op, at: 0, blocks: n, fua: false, data };
            submitted += u32::from(session.submit(&c, &mut io));
            if submitted == 2 {
                session.abort(1);
            }
        }
        bytes = rest;
    }
    session.on_lost(&mut io);
    assert!(io.done == submitted, "every command ends once");
}
