//! The ceiling of iSCSI on this machine: a target that does nothing but receive and send.
//!
//! As `peak-nvme`: it logs anybody in, answers every read with the same bytes, status in the last Data-In, and forgets
//! every write. No digests, no checks, no state but the sequence numbers that a client insists on.
//!
//!     peak-iscsi 127.0.0.1:3299 [--block 512|4096] [--wait] [--spread BYTES]

use peak::{Options, Outbox, TRANSFER_MAX, Wire, serve};

/// Length of the logical unit in bytes.
const UNIT_BYTES: u64 = 1 << 40;
/// Commands that a session may have under way, as with the product.
const WINDOW: u32 = 128;
/// Data of one Data-In, bytes: what the product's own client takes at a time.
const SEGMENT_MAX: usize = 256 << 10;
const BHS: usize = 48;
const RESERVED: u32 = u32::MAX;

struct Iscsi {
    block: u32,
    /// Bytes of data on their way in that nobody looks at.
    skip: usize,
    stat_sn: u32,
    exp_cmd_sn: u32,
    logged_in: bool,
    /// Writes that wait for data that we asked for: task tag, bytes asked for so far, all.
    writes: Vec<(u32, u32, u32)>,
}

fn main() {
    let options = Options::read("127.0.0.1:3299");
    let block = options.block;
    let make = || Iscsi { block, skip: 0, stat_sn: 1, exp_cmd_sn: 0, logged_in: false, writes: vec![] };
    serve(&options, make);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Wire for Iscsi {
    fn take(&mut self, input: &[u8], out: &mut Outbox) -> usize {
        let mut at = 0;
        loop {
            let skipped = self.skip.min(input.len() - at);
            at += skipped;
            self.skip -= skipped;
            let rest = &input[at..];
            if rest.len() < BHS {
                return at;
            }
            let data = (u32_at(rest, 4) & 0xff_ffff) as usize;
            let padded = data.next_multiple_of(4);
            let opcode = rest[0] & 0x3f;
            // Only what is said in a login is read; all other data are skipped.
            if opcode == 0x03 && rest.len() < BHS + padded {
                return at;
            }
            let bhs: [u8; BHS] = std::array::from_fn(|i| rest[i]);
            self.pdu(opcode, &bhs, data as u32, out);
            at += BHS;
            self.skip = padded;
        }
    }
}

impl Iscsi {
    fn pdu(&mut self, opcode: u8, bhs: &[u8; BHS], data: u32, out: &mut Outbox) {
        let task = u32_at(bhs, 16);
        if bhs[0] & 0x40 == 0 && matches!(opcode, 0x00 | 0x01 | 0x02 | 0x04) {
            self.exp_cmd_sn = u32_at(bhs, 24).wrapping_add(1);
        }
        match opcode {
            // NOP-Out: answered if it asks for it.
            0x00 if task != RESERVED => {
                let mut pdu = self.answer(0x20, task);
                pdu[20..24].copy_from_slice(&RESERVED.to_be_bytes());
                out.header(&pdu);
            }
            0x00 => {}
            0x01 => self.command(bhs, task, data, out),
            // Task management: done, there is nothing to be done.
            0x02 => out.header(&self.answer(0x22, task)),
            0x03 => self.login(bhs, task, out),
            0x05 => self.data_out(bhs, task, data, out),
            0x06 => out.header(&self.answer(0x26, task)),
            other => panic!("a PDU that no client of ours sends: {other:#x}"),
        }
    }

    /// A PDU with a status number of its own.
    fn answer(&mut self, opcode: u8, task: u32) -> [u8; BHS] {
        let mut pdu = [0; BHS];
        pdu[0] = opcode;
        pdu[1] = 0x80;
        pdu[16..20].copy_from_slice(&task.to_be_bytes());
        pdu[24..28].copy_from_slice(&self.stat_sn.to_be_bytes());
        self.stat_sn = self.stat_sn.wrapping_add(1);
        self.window(&mut pdu);
        pdu
    }
    fn window(&self, pdu: &mut [u8; BHS]) {
        pdu[28..32].copy_from_slice(&self.exp_cmd_sn.to_be_bytes());
        pdu[32..36].copy_from_slice(&self.exp_cmd_sn.wrapping_add(WINDOW - 1).to_be_bytes());
    }

    /// Both stages are left as soon as the client asks for it.
    fn login(&mut self, bhs: &[u8; BHS], task: u32, out: &mut Outbox) {
        self.exp_cmd_sn = u32_at(bhs, 24);
        let current = bhs[1] >> 2 & 3;
        let (next, text): (u8, &[u8]) = match current {
            0 => (1, b"AuthMethod=None\0TargetPortalGroupTag=1\0"),
            _ => (
                3,
                b"HeaderDigest=None\0DataDigest=None\0MaxRecvDataSegmentLength=262144\0InitialR2T=No\0\
                  ImmediateData=Yes\0MaxBurstLength=1048576\0FirstBurstLength=262144\0MaxOutstandingR2T=1\0\
                  MaxConnections=1\0ErrorRecoveryLevel=0\0DataPDUInOrder=Yes\0DataSequenceInOrder=Yes\0\
                  DefaultTime2Wait=2\0DefaultTime2Retain=0\0",
            ),
        };
        let mut pdu = self.answer(0x23, task);
        pdu[1] = 0x80 | current << 2 | next;
        pdu[4..8].copy_from_slice(&(text.len() as u32).to_be_bytes());
        // The session's identifier, and a handle once it is made.
        pdu[8..14].copy_from_slice(&bhs[8..14]);
        pdu[15] = u8::from(next == 3);
        self.logged_in = next == 3;
        out.header(&pdu);
        out.header(text);
        out.header(&[0; 4][..text.len().next_multiple_of(4) - text.len()]);
    }

    fn command(&mut self, bhs: &[u8; BHS], task: u32, immediate: u32, out: &mut Outbox) {
        let cdb = &bhs[32..48];
        let expected = u32_at(bhs, 20);
        match cdb[0] {
            0x28 | 0x88 => self.read(task, expected, out),
            0x2a | 0x8a if immediate < expected => {
                // What does not come with the command, or after it unasked, is asked for.
                let unasked = if bhs[1] & 0x80 == 0 { FIRST_BURST.min(expected) } else { immediate };
                self.writes.push((task, unasked, expected));
                if unasked == immediate {
                    self.ask(task, out);
                }
            }
            0x2a | 0x8a => out.header(&self.answer(0x21, task)),
            // REPORT LUNS: one, number 0.
            0xa0 => self.small(task, &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], expected, out),
            0x12 if cdb[1] & 1 == 0 => self.small(task, &[0, 0, 6, 2, 31], expected, out),
            // Block limits: transfers of 1 MiB.
            0x12 if cdb[2] == 0xb0 => {
                let mut page = [0; 64];
                page[1] = 0xb0;
                page[3] = 60;
                page[8..12].copy_from_slice(&(TRANSFER_MAX as u32 / self.block).to_be_bytes());
                self.small(task, &page, expected, out);
            }
            0x12 => self.small(task, &[0, cdb[2], 0, 0], expected, out),
            0x9e => {
                let mut data = [0; 32];
                data[..8].copy_from_slice(&(UNIT_BYTES / u64::from(self.block) - 1).to_be_bytes());
                data[8..12].copy_from_slice(&self.block.to_be_bytes());
                self.small(task, &data, expected, out);
            }
            _ => out.header(&self.answer(0x21, task)),
        }
    }

    /// Data of a read, status with the last of them.
    fn read(&mut self, task: u32, expected: u32, out: &mut Outbox) {
        let (mut at, mut number) = (0, 0u32);
        while at < expected as usize {
            let len = (expected as usize - at).min(SEGMENT_MAX);
            let last = at + len == expected as usize;
            self.data_in(task, (number, at as u32, len as u32), last, out);
            out.payload(len);
            at += len;
            number += 1;
        }
    }

    fn data_in(&mut self, task: u32, (number, at, len): (u32, u32, u32), last: bool, out: &mut Outbox) {
        let mut pdu = if last { self.answer(0x25, task) } else { [0; BHS] };
        // Final and status, or neither.
        pdu[0] = 0x25;
        pdu[1] = if last { 0x81 } else { 0 };
        pdu[4..8].copy_from_slice(&len.to_be_bytes());
        pdu[16..20].copy_from_slice(&task.to_be_bytes());
        pdu[20..24].copy_from_slice(&RESERVED.to_be_bytes());
        self.window(&mut pdu);
        pdu[36..40].copy_from_slice(&number.to_be_bytes());
        pdu[40..44].copy_from_slice(&at.to_be_bytes());
        out.header(&pdu);
    }

    fn small(&mut self, task: u32, data: &[u8], expected: u32, out: &mut Outbox) {
        let len = data.len().min(expected as usize);
        let mut pdu = [0; BHS];
        let left = expected - len as u32;
        if left > 0 {
            // Underflow, and how much.
            pdu[1] = 2;
        }
        let underflow = pdu[1];
        self.data_in_small(task, len as u32, underflow, left, out);
        out.header(&data[..len]);
        out.header(&[0; 4][..len.next_multiple_of(4) - len]);
    }

    fn data_in_small(&mut self, task: u32, len: u32, underflow: u8, left: u32, out: &mut Outbox) {
        let mut pdu = self.answer(0x25, task);
        pdu[1] = 0x81 | underflow;
        pdu[4..8].copy_from_slice(&len.to_be_bytes());
        pdu[20..24].copy_from_slice(&RESERVED.to_be_bytes());
        pdu[44..48].copy_from_slice(&left.to_be_bytes());
        out.header(&pdu);
    }

    /// Asks for the next burst of a write.
    fn ask(&mut self, task: u32, out: &mut Outbox) {
        let Some(write) = self.writes.iter_mut().find(|w| w.0 == task) else { return };
        let (from, len) = (write.1, (write.2 - write.1).min(MAX_BURST));
        write.1 += len;
        let mut pdu = [0; BHS];
        pdu[0] = 0x31;
        pdu[1] = 0x80;
        pdu[16..20].copy_from_slice(&task.to_be_bytes());
        pdu[20..24].copy_from_slice(&task.to_be_bytes());
        pdu[24..28].copy_from_slice(&self.stat_sn.to_be_bytes());
        self.window(&mut pdu);
        pdu[40..44].copy_from_slice(&from.to_be_bytes());
        pdu[44..48].copy_from_slice(&len.to_be_bytes());
        out.header(&pdu);
    }

    /// The last data of a burst: the next is asked for, or the write is over.
    fn data_out(&mut self, bhs: &[u8; BHS], task: u32, _: u32, out: &mut Outbox) {
        if bhs[1] & 0x80 == 0 {
            return;
        }
        let Some(i) = self.writes.iter().position(|w| w.0 == task) else { return };
        let (_, asked, all) = self.writes[i];
        if asked < all {
            self.ask(task, out);
        } else {
            self.writes.swap_remove(i);
            out.header(&self.answer(0x21, task));
        }
    }
}

const FIRST_BURST: u32 = 262_144;
const MAX_BURST: u32 = 1 << 20;
