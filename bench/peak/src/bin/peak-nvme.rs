//! The ceiling of NVMe/TCP on this machine: a target that does nothing but receive and send.
//!
//! It speaks just enough of the protocol that the product's own client connects, then answers every
//! read with the same bytes and forgets every write: one receive and one send per turn and
//! connection, no drive, no checks, no sharing. What it reaches is the sockets' share of the work; a
//! target can come near it, and not above.
//!
//!     peak-nvme 127.0.0.1:4499 [--block 512|4096] [--wait] [--spread BYTES]
//!
//! `--wait` sleeps in the kernel between turns (one connection after another would block: a thread
//! each), which is the bare latency of a target that costs nothing when idle.

use peak::{Options, Outbox, TRANSFER_MAX, Wire, serve};

/// Length of the namespace in bytes: large enough for any region.
const NAMESPACE_BYTES: u64 = 1 << 40;
/// In-capsule data that we take, bytes: the same as the product.
const IN_CAPSULE: u32 = 8192;

// PDU types (NVMe/TCP transport specification, figure 11).
const IC_REQ: u8 = 0x00;
const IC_RESP: u8 = 0x01;
const CAPSULE: u8 = 0x04;
const RESPONSE: u8 = 0x05;
const DATA_OUT: u8 = 0x06;
const DATA_IN: u8 = 0x07;
const R2T: u8 = 0x09;

struct Nvme {
    block: u32,
    admin: bool,
    /// Bytes of data on their way in that nobody looks at.
    skip: usize,
}

fn main() {
    let options = Options::read("127.0.0.1:4499");
    serve(&options, || Nvme { block: options.block, admin: false, skip: 0 });
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Wire for Nvme {
    fn take(&mut self, input: &[u8], out: &mut Outbox) -> usize {
        let mut at = 0;
        loop {
            let skipped = self.skip.min(input.len() - at);
            at += skipped;
            self.skip -= skipped;
            let rest = &input[at..];
            // Data of a write is not looked at: its header is enough.
            if rest.len() < 8 || rest.len() < usize::from(rest[2]) {
                return at;
            }
            let (kind, header, all) = (rest[0], usize::from(rest[2]), u32_at(rest, 4) as usize);
            let small = all <= header + 1024;
            if small && rest.len() < all {
                return at;
            }
            let pdu: [u8; 72] = std::array::from_fn(|i| rest.get(i).copied().unwrap_or(0));
            match kind {
                IC_REQ => ic_resp(out),
                CAPSULE => self.command(&pdu, all - header, out),
                // The last of the data that we asked for ends its command.
                DATA_OUT if pdu[1] & 4 != 0 => response(out, u16_at(&pdu, 8), 0),
                DATA_OUT => {}
                other => panic!("a PDU that no client of ours sends: {other:#x}"),
            }
            at += header;
            self.skip = all - header;
        }
    }
}

impl Nvme {
    fn command(&mut self, pdu: &[u8; 72], inline: usize, out: &mut Outbox) {
        let sqe = &pdu[8..];
        let (opcode, cid, nsid) = (sqe[0], u16_at(sqe, 2), u32_at(sqe, 4));
        let bytes = (u32::from(u16_at(sqe, 48)) + 1) * self.block;
        match (opcode, self.admin) {
            // Fabrics: Connect, Property Get (CAP, CSTS), the rest needs no result.
            (0x7f, _) => match sqe[4] {
                0x01 => {
                    self.admin = u16_at(sqe, 42) == 0;
                    response(out, cid, 1);
                }
                // CAP: 1,024 entries, 500 ms units, NVM command set. CSTS: ready.
                0x04 if u32_at(sqe, 44) == 0 => response(out, cid, 1 << 37 | 10 << 24 | 1 << 16 | 1023),
                0x04 => response(out, cid, 1),
                _ => response(out, cid, 0),
            },
            (0x06, true) => self.identify(cid, sqe[40], nsid, out),
            // Number of Queues: 128 of each.
            (0x09, true) if sqe[40] == 7 => response(out, cid, 127 << 16 | 127),
            // An event request is never answered.
            (0x0c, true) => {}
            (_, true) | (0x00, false) => response(out, cid, 0),
            (0x01, false) if inline == 0 => r2t(out, cid, bytes),
            (0x02, false) => {
                data_in(out, cid, bytes);
                out.payload(bytes as usize);
                response(out, cid, 0);
            }
            (_, false) => response(out, cid, 0),
        }
    }

    fn identify(&self, cid: u16, cns: u8, nsid: u32, out: &mut Outbox) {
        let mut data = [0u8; 4096];
        match cns {
            0 => {
                let blocks = (NAMESPACE_BYTES / u64::from(self.block)).to_le_bytes();
                for at in [0, 8, 16] {
                    data[at..at + 8].copy_from_slice(&blocks);
                }
                data[130] = self.block.trailing_zeros() as u8;
            }
            1 => {
                data[77] = 8;
                data[516] = 1;
                data[1792..1796].copy_from_slice(&((64 + IN_CAPSULE) / 16).to_le_bytes());
                data[1796..1800].copy_from_slice(&1u32.to_le_bytes());
            }
            2 => data[..4].copy_from_slice(&1u32.to_le_bytes()),
            _ => data[..4].copy_from_slice(&nsid.to_le_bytes()),
        }
        data_in(out, cid, data.len() as u32);
        out.header(&data);
        response(out, cid, 0);
    }
}

fn ic_resp(out: &mut Outbox) {
    let mut pdu = [0u8; 128];
    pdu[0] = IC_RESP;
    pdu[2] = 128;
    pdu[4] = 128;
    pdu[12..16].copy_from_slice(&(TRANSFER_MAX as u32).to_le_bytes());
    out.header(&pdu);
}

fn response(out: &mut Outbox, cid: u16, result: u64) {
    let mut pdu = [0u8; 24];
    pdu[0] = RESPONSE;
    pdu[2] = 24;
    pdu[4] = 24;
    pdu[8..16].copy_from_slice(&result.to_le_bytes());
    pdu[20..22].copy_from_slice(&cid.to_le_bytes());
    out.header(&pdu);
}

fn r2t(out: &mut Outbox, cid: u16, bytes: u32) {
    let mut pdu = [0u8; 24];
    pdu[0] = R2T;
    pdu[2] = 24;
    pdu[4] = 24;
    pdu[8..10].copy_from_slice(&cid.to_le_bytes());
    pdu[10..12].copy_from_slice(&cid.to_le_bytes());
    pdu[16..20].copy_from_slice(&bytes.to_le_bytes());
    out.header(&pdu);
}

/// The header of a command's data, all of them.
fn data_in(out: &mut Outbox, cid: u16, bytes: u32) {
    let mut pdu = [0u8; 24];
    // Flags: the last PDU of the command.
    pdu[0] = DATA_IN;
    pdu[1] = 4;
    pdu[2] = 24;
    pdu[3] = 24;
    pdu[4..8].copy_from_slice(&(24 + bytes).to_le_bytes());
    pdu[8..10].copy_from_slice(&cid.to_le_bytes());
    pdu[16..20].copy_from_slice(&bytes.to_le_bytes());
    out.header(&pdu);
}
