//! Entry points for arbitrary bytes from a malicious target.

use super::{Config, Session};
use base::fake::Host;
use base::{HostCommand, Instant, Memory, Op, Slice, Want};

/// Feeds `bytes` to a session, in pieces whose lengths the first byte decides; commands are under way as
/// soon as the session takes them. Must not panic.
pub fn session(bytes: &[u8]) {
    const STAGING: Slice = Slice { at: 0, len: 4096 };
    const RING: Slice = Slice { at: 4096, len: 16384 };
    const DATA: Slice = Slice { at: 20480, len: 131_072 };
    let Some((&choice, mut bytes)) = bytes.split_first() else { return };
    let target = (choice & 1 == 0).then_some("iqn.fuzz:target");
    let mut config = Config::new("iqn.fuzz:host", target);
    config.header_digest = choice & 2 != 0;
    config.data_digest = choice & 4 != 0;
    config.ping = base::Duration::ZERO;
    let mut session = Session::new(config);
    let mut io = Host::new(&[RING], DATA.end());
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
        let sent = io.outboxes[0].pending();
        if sent > 0 {
            io.outboxes[0].on_sent(sent as u32, |_| ());
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
                session.clear(true);
            }
        }
        bytes = rest;
    }
    session.on_lost(&mut io);
    assert!(io.done.len() == submitted as usize, "every command ends once");
}
