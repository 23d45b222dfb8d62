//! Entry points for arbitrary bytes from a malicious target.

use super::{Config, Session};
use base::fake::Host;
use base::{HostCommand, Instant, Memory, Op, Slice, Want};

/// Feeds `bytes` to a session, in pieces whose lengths the first bytes decide; commands are under way as
/// soon as the session would take them. Must not panic.
pub fn session(bytes: &[u8]) {
    const STAGING: Slice = Slice { at: 0, len: 4096 };
    const RING: Slice = Slice { at: 4096, len: 8192 };
    const DATA: Slice = Slice { at: 12288, len: 65536 };
    let Some((&choice, mut bytes)) = bytes.split_first() else { return };
    let mut config = Config::new("nqn.fuzz:host", [1; 16], "nqn.fuzz:target");
    config.header_digest = choice & 1 != 0;
    config.data_digest = choice & 2 != 0;
    config.flow_control = choice & 4 != 0;
    let mut session = Session::new(config);
    let mut io = Host::new(&[RING], DATA.end());
    session.start();
    session.on_connected(0, &mut io);
    let piece = usize::from(choice >> 3) * 8 + 1;
    let (mut link, mut submitted) = (0, 0);
    while !bytes.is_empty() && session.error().is_none() {
        let n = piece.min(bytes.len());
        let (now, rest) = bytes.split_at(n);
        match session.want(link) {
            Want::Direct(slice) => {
                let n = n.min(slice.len as usize);
                io.memory.bytes_mut(slice.head(n as u32)).copy_from_slice(&now[..n]);
                session.on_direct(link, n as u32, &mut io);
            }
            Want::Staging | Want::Header(_) | Want::Nothing => {
                io.memory.bytes_mut(STAGING.head(n as u32)).copy_from_slice(now);
                session.on_bytes(Instant(1), link, STAGING.head(n as u32), &mut io);
            }
        }
        session.on_link0(Instant(1), &mut io);
        let sent = io.outboxes[0].pending();
        if sent > 0 {
            io.outboxes[0].on_sent(sent as u32, |_| ());
            session.on_sent(link, &mut io);
        }
        // Once the I/O link is wanted, it is the one that gets the bytes.
        if link == 0 && session.links_wanted() > 1 {
            link = 1;
            session.on_connected(1, &mut io);
        }
        if session.free(1) > 0 && submitted < 3 {
            let op = [Op::Read, Op::Write, Op::Flush][submitted as usize];
            let blocks = session.namespace().block_bytes.max(1);
            let n = DATA.len / blocks;
            let data = if op == Op::Flush { Slice::default() } else { DATA.head(n * blocks) };
            let c = HostCommand { id: submitted, op, at: 0, blocks: n, fua: false, data };
            submitted += u32::from(session.submit(1, &c, &mut io));
        }
        bytes = rest;
    }
    session.on_lost(0, &mut io);
    session.on_lost(1, &mut io);
    assert!(io.done.len() == submitted as usize, "every command ends once");
}
