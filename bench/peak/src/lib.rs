//! What the bare programs have in common: sockets that are turned one after another, and answers that leave in one send.
//!
//! Nothing of the product is in it, and nothing that a target must do beside receiving and sending.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Most bytes of one answer's data.
pub const TRANSFER_MAX: usize = 1 << 20;
/// Bytes of one receive.
const RECEIVE: usize = 512 << 10;
/// Slices of one send (UIO_MAXIOV).
const SLICES_MAX: usize = 1024;

/// A protocol on one connection.
pub trait Wire: Send + 'static {
    /// Looks at what has arrived; how many bytes of it are done with. What it has to say goes to `out`.
    fn take(&mut self, input: &[u8], out: &mut Outbox) -> usize;
}

/// Something to send: bytes of `Outbox::headers`, or of the payload that all reads share: begin and length.
enum Part {
    Header(usize, usize),
    Payload(usize, usize),
}

/// What one turn has to say.
pub struct Outbox {
    headers: Vec<u8>,
    parts: Vec<Part>,
    /// Parts that are sent, and bytes of the first that is not.
    sent: (usize, usize),
    /// Data are taken in turn from so many bytes of the payload; and from where next.
    spread: usize,
    next: usize,
}

impl Outbox {
    fn new(spread: usize) -> Self {
        let (headers, parts) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 12));
        Self { headers, parts, sent: (0, 0), spread, next: 0 }
    }
    /// Sends these bytes.
    pub fn header(&mut self, bytes: &[u8]) {
        let from = self.headers.len();
        self.headers.extend_from_slice(bytes);
        // Beside an earlier header it is one slice.
        match self.parts.last_mut() {
            Some(Part::Header(_, before)) => *before += bytes.len(),
            _ => self.parts.push(Part::Header(from, bytes.len())),
        }
    }
    /// Sends so many bytes of data that nobody looks at, at most `TRANSFER_MAX`.
    pub fn payload(&mut self, bytes: usize) {
        if self.next + bytes > self.spread {
            self.next = 0;
        }
        self.parts.push(Part::Payload(self.next, bytes));
        self.next += bytes;
    }

    fn send(&mut self, socket: &mut TcpStream, payload: &[u8]) -> Result<(), ()> {
        while self.sent.0 < self.parts.len() {
            let slices: Vec<IoSlice<'_>> = self.parts[self.sent.0..]
                .iter()
                .take(SLICES_MAX)
                .enumerate()
                .map(|(i, part)| {
                    let bytes = match part {
                        Part::Header(at, len) => &self.headers[*at..at + len],
                        Part::Payload(at, len) => &payload[*at..at + len],
                    };
                    IoSlice::new(if i == 0 { &bytes[self.sent.1..] } else { bytes })
                })
                .collect();
            match socket.write_vectored(&slices) {
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
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(()),
            }
        }
        self.parts.clear();
        self.headers.clear();
        self.sent = (0, 0);
        Ok(())
    }
}

struct Peer<W> {
    socket: TcpStream,
    wire: W,
    input: Vec<u8>,
    /// Bytes of `input` that are there.
    filled: usize,
    out: Outbox,
    open: bool,
}

impl<W: Wire> Peer<W> {
    fn new(socket: TcpStream, wire: W, spread: usize) -> Self {
        socket.set_nodelay(true).expect("a socket can be asked");
        Self { socket, wire, input: vec![0; RECEIVE], filled: 0, out: Outbox::new(spread), open: true }
    }

    /// One receive, and one send of everything that it asks for.
    fn turn(&mut self, payload: &[u8]) {
        if self.out.parts.is_empty() {
            match self.socket.read(&mut self.input[self.filled..]) {
                Ok(0) => self.open = false,
                Ok(n) => self.filled += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.open = false,
            }
            let taken = self.wire.take(&self.input[..self.filled], &mut self.out);
            self.input.copy_within(taken..self.filled, 0);
            self.filled -= taken;
        }
        self.open &= self.out.send(&mut self.socket, payload).is_ok();
    }
}

/// Options of a bare target.
pub struct Options {
    /// Where it listens.
    pub address: String,
    /// Bytes of a block.
    pub block: u32,
    /// It sleeps in the kernel between turns.
    pub wait: bool,
    /// What is read comes in turn from so many bytes, as from the buffers of as many commands; 0: always from the same.
    pub spread: usize,
}

impl Options {
    /// `ADDRESS [--block 512|4096] [--wait] [--spread BYTES]`.
    pub fn read(address: &str) -> Self {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let after = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1));
        let (block, spread) = (after("--block"), after("--spread"));
        Self {
            address: args.first().map_or(address, String::as_str).into(),
            block: block.map_or(4096, |b| b.parse().expect("--block takes a size in bytes")),
            wait: args.iter().any(|a| a == "--wait"),
            spread: spread.map_or(0, |b| b.parse().expect("--spread takes a size in bytes")),
        }
    }
}

/// Serves for ever, each connection by a `make`.
pub fn serve<W: Wire>(options: &Options, make: impl Fn() -> W) {
    let listener = TcpListener::bind(&options.address).expect("the address is free");
    let payload: Vec<u8> = (0..TRANSFER_MAX.max(options.spread) as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    if options.wait {
        for socket in listener.incoming().flatten() {
            let (mut peer, payload) = (Peer::new(socket, make(), options.spread), payload.clone());
            std::thread::spawn(move || {
                while peer.open {
                    peer.turn(&payload);
                }
            });
        }
        return;
    }
    listener.set_nonblocking(true).expect("a listener can be asked");
    let mut peers: Vec<Peer<W>> = vec![];
    for turn in 0u32.. {
        if turn % 1024 == 0 || peers.is_empty() {
            if let Ok((socket, _)) = listener.accept() {
                socket.set_nonblocking(true).expect("a socket can be asked");
                peers.push(Peer::new(socket, make(), options.spread));
            }
            peers.retain(|p| p.open);
        }
        for peer in &mut peers {
            peer.turn(&payload);
        }
    }
}
