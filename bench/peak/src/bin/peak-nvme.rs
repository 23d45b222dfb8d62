//! The ceiling of NVMe/TCP on this machine: a target that does nothing but receive and send.
//!
//! It speaks just enough of the protocol that the product's own client connects, then answers every
//! read with the same bytes and forgets every write: one receive and one send per turn and
//! connection, no drive, no checks, no sharing. Nothing of the product is in it. What it reaches is
//! the sockets' share of the work; a target can come near it, and not above.
//!
//!     peak-nvme 127.0.0.1:4499 [--block 512|4096] [--wait]
//!
//! `--wait` sleeps in the kernel between turns (one connection after another would block: a thread
//! each), which is the bare latency of a target that costs nothing when idle.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Length of the namespace in bytes: large enough for any region.
const NAMESPACE_BYTES: u64 = 1 << 40;
/// In-capsule data that we take, bytes: the same as the product.
const IN_CAPSULE: u32 = 8192;
const RECEIVE: usize = 512 << 10;
/// Slices of one send (UIO_MAXIOV).
const SLICES_MAX: usize = 1024;
const TRANSFER_MAX: usize = 1 << 20;

// PDU types (NVMe/TCP transport specification, figure 11).
const IC_REQ: u8 = 0x00;
const IC_RESP: u8 = 0x01;
const CAPSULE: u8 = 0x04;
const RESPONSE: u8 = 0x05;
const DATA_OUT: u8 = 0x06;
const DATA_IN: u8 = 0x07;
const R2T: u8 = 0x09;

/// Something to send: bytes of `Peer::headers`, or so many of the payload that all reads share.
enum Part {
    Header(usize, usize),
    Payload(usize),
}

struct Peer {
    socket: TcpStream,
    admin: bool,
    input: Vec<u8>,
    /// Bytes of `input` that are there.
    filled: usize,
    /// Bytes of data on their way in that nobody looks at.
    skip: usize,
    headers: Vec<u8>,
    parts: Vec<Part>,
    /// Parts that are sent, and bytes of the first that is not.
    sent: (usize, usize),
    /// Write commands whose data we asked for: by transfer tag, which is the command's.
    open: bool,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let address = args.first().map_or("127.0.0.1:4499", String::as_str);
    let block =
        args.iter().position(|a| a == "--block").map_or(4096, |i| args[i + 1].parse().expect("a size"));
    let wait = args.iter().any(|a| a == "--wait");
    let listener = TcpListener::bind(address).expect("the address is free");
    if wait {
        for socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut peer = Peer::new(socket);
                let payload = payload();
                while peer.open {
                    peer.turn(block, &payload);
                }
            });
        }
        return;
    }
    listener.set_nonblocking(true).expect("a listener can be asked");
    let payload = payload();
    let mut peers: Vec<Peer> = vec![];
    for turn in 0u32.. {
        if turn % 1024 == 0 || peers.is_empty() {
            if let Ok((socket, _)) = listener.accept() {
                socket.set_nonblocking(true).expect("a socket can be asked");
                peers.push(Peer::new(socket));
            }
            peers.retain(|p| p.open);
        }
        for peer in &mut peers {
            peer.turn(block, &payload);
        }
    }
}

fn payload() -> Vec<u8> {
    (0..TRANSFER_MAX as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Peer {
    fn new(socket: TcpStream) -> Self {
        socket.set_nodelay(true).expect("a socket can be asked");
        Self {
            socket,
            admin: false,
            input: vec![0; RECEIVE],
            filled: 0,
            skip: 0,
            headers: Vec::with_capacity(1 << 16),
            parts: Vec::with_capacity(1 << 12),
            sent: (0, 0),
            open: true,
        }
    }

    /// One receive, and one send of everything that it asks for.
    fn turn(&mut self, block: u32, payload: &[u8]) {
        if self.parts.is_empty() {
            match self.socket.read(&mut self.input[self.filled..]) {
                Ok(0) => self.open = false,
                Ok(n) => self.filled += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.open = false,
            }
            self.parse(block);
        }
        self.send(payload);
    }

    fn parse(&mut self, block: u32) {
        let mut at = 0;
        loop {
            let skipped = self.skip.min(self.filled - at);
            (at, self.skip) = (at + skipped, self.skip - skipped);
            let rest = &self.input[at..self.filled];
            // Data of a write is not looked at: its header is enough.
            if rest.len() < 8 || rest.len() < usize::from(rest[2]) {
                break;
            }
            let (kind, header, all) = (rest[0], usize::from(rest[2]), u32_at(rest, 4) as usize);
            let small = all <= header + 1024;
            if small && rest.len() < all {
                break;
            }
            let pdu: [u8; 72] = std::array::from_fn(|i| rest.get(i).copied().unwrap_or(0));
            match kind {
                IC_REQ => self.ic_resp(),
                CAPSULE => self.command(&pdu, all - header, block),
                // The last of the data that we asked for ends its command.
                DATA_OUT if pdu[1] & 4 != 0 => self.response(u16_at(&pdu, 8), 0),
                DATA_OUT => {}
                other => panic!("a PDU that no client of ours sends: {other:#x}"),
            }
            at += header;
            self.skip = all - header;
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
    }

    fn command(&mut self, pdu: &[u8; 72], inline: usize, block: u32) {
        let sqe = &pdu[8..];
        let (opcode, cid, nsid) = (sqe[0], u16_at(sqe, 2), u32_at(sqe, 4));
        let blocks = u32::from(u16_at(sqe, 48)) + 1;
        match (opcode, self.admin) {
            // Fabrics: Connect, Property Get (CAP, CSTS), the rest needs no result.
            (0x7f, _) => match sqe[4] {
                0x01 => {
                    self.admin = u16_at(sqe, 42) == 0;
                    self.response(cid, 1);
                }
                // CAP: 1,024 entries, 500 ms units, NVM command set. CSTS: ready.
                0x04 if u32_at(sqe, 44) == 0 => self.response(cid, 1 << 37 | 10 << 24 | 1 << 16 | 1023),
                0x04 => self.response(cid, 1),
                _ => self.response(cid, 0),
            },
            (0x06, true) => self.identify(cid, sqe[40], nsid, block),
            // Number of Queues: 128 of each.
            (0x09, true) if sqe[40] == 7 => self.response(cid, 127 << 16 | 127),
            // An event request is never answered.
            (0x0c, true) => {}
            (_, true) | (0x00, false) => self.response(cid, 0),
            (0x01, false) if inline == 0 => self.r2t(cid, blocks * block),
            (0x02, false) => {
                self.data_in(cid, (blocks * block) as usize);
                self.response(cid, 0);
            }
            (_, false) => self.response(cid, 0),
        }
    }

    fn identify(&mut self, cid: u16, cns: u8, nsid: u32, block: u32) {
        let mut data = [0u8; 4096];
        match cns {
            0 => {
                let blocks = (NAMESPACE_BYTES / u64::from(block)).to_le_bytes();
                for at in [0, 8, 16] {
                    data[at..at + 8].copy_from_slice(&blocks);
                }
                data[130] = block.trailing_zeros() as u8;
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
        let from = self.headers.len();
        self.data_in_header(cid, data.len());
        self.headers.extend_from_slice(&data);
        self.add_header(from);
        self.response(cid, 0);
    }

    fn ic_resp(&mut self) {
        let mut pdu = [0u8; 128];
        (pdu[0], pdu[2], pdu[4]) = (IC_RESP, 128, 128);
        pdu[12..16].copy_from_slice(&(TRANSFER_MAX as u32).to_le_bytes());
        self.header(&pdu);
    }

    fn response(&mut self, cid: u16, result: u64) {
        let mut pdu = [0u8; 24];
        (pdu[0], pdu[2], pdu[4]) = (RESPONSE, 24, 24);
        pdu[8..16].copy_from_slice(&result.to_le_bytes());
        pdu[20..22].copy_from_slice(&cid.to_le_bytes());
        self.header(&pdu);
    }

    fn r2t(&mut self, cid: u16, bytes: u32) {
        let mut pdu = [0u8; 24];
        (pdu[0], pdu[2], pdu[4]) = (R2T, 24, 24);
        pdu[8..10].copy_from_slice(&cid.to_le_bytes());
        pdu[10..12].copy_from_slice(&cid.to_le_bytes());
        pdu[16..20].copy_from_slice(&bytes.to_le_bytes());
        self.header(&pdu);
    }

    fn data_in_header(&mut self, cid: u16, bytes: usize) {
        let mut pdu = [0u8; 24];
        // Flags: the last PDU of the command.
        (pdu[0], pdu[1], pdu[2], pdu[3]) = (DATA_IN, 4, 24, 24);
        pdu[4..8].copy_from_slice(&(24 + bytes as u32).to_le_bytes());
        pdu[8..10].copy_from_slice(&cid.to_le_bytes());
        pdu[16..20].copy_from_slice(&(bytes as u32).to_le_bytes());
        self.headers.extend_from_slice(&pdu);
    }

    fn data_in(&mut self, cid: u16, bytes: usize) {
        let from = self.headers.len();
        self.data_in_header(cid, bytes);
        self.add_header(from);
        self.parts.push(Part::Payload(bytes));
    }

    fn header(&mut self, bytes: &[u8]) {
        let from = self.headers.len();
        self.headers.extend_from_slice(bytes);
        self.add_header(from);
    }

    /// What was appended since `from` is to be sent; beside an earlier header it is one slice.
    fn add_header(&mut self, from: usize) {
        let len = self.headers.len() - from;
        match self.parts.last_mut() {
            Some(Part::Header(_, before)) => *before += len,
            _ => self.parts.push(Part::Header(from, len)),
        }
    }

    fn send(&mut self, payload: &[u8]) {
        while self.sent.0 < self.parts.len() {
            let slices: Vec<IoSlice<'_>> = self.parts[self.sent.0..]
                .iter()
                .take(SLICES_MAX)
                .enumerate()
                .map(|(i, part)| {
                    let bytes = match part {
                        Part::Header(at, len) => &self.headers[*at..at + len],
                        Part::Payload(len) => &payload[..*len],
                    };
                    IoSlice::new(if i == 0 { &bytes[self.sent.1..] } else { bytes })
                })
                .collect();
            match self.socket.write_vectored(&slices) {
                Ok(mut n) => {
                    for slice in &slices {
                        if n < slice.len() {
                            self.sent.1 += n;
                            break;
                        }
                        n -= slice.len();
                        self.sent = (self.sent.0 + 1, 0);
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.open = false;
                    return;
                }
            }
        }
        self.parts.clear();
        self.headers.clear();
        self.sent = (0, 0);
    }
}
