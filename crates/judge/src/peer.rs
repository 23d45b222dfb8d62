//! A peer that behaves badly, run in the daemon's network by the tests:
//!
//!     peer hold ADDRESS N         opens N connections, says nothing, prints how many stay open
//!     peer visit ADDRESS N HEX..  opens N connections; each sends these one after the other, and waits for an
//!                                 answer to each; prints how many had all answers, and how many stay open
//!     peer garbage ADDRESS N      N connections that send random bytes each; prints the answers' count
//!     peer login ADDRESS N        connects and closes N times, half of them in the middle of a PDU
//!     peer slow ADDRESS HEX MS    sends the bytes one by one, MS apart; prints how many went out
//!     peer controllers ADDRESS NQN HOST N QUEUES
//!                                 opens N controllers with QUEUES I/O queues each and keeps them alive (every 7.5 s
//!                                 of 15); prints how many came in, and how many stay open
//!     peer idle ADDRESS [NQN HOST]
//!                                 logs in for iSCSI discovery, or opens a controller; prints `in`, says nothing more, and
//!                                 prints `reset` or `closed` once the connection is over
//!     peer send ADDRESS HEX       sends the bytes; prints the answer in hex when the other side closes, or
//!                                 `open HEX` when it is still open after two seconds

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["hold", at, n] => hold(address(at), number(n)),
        ["visit", at, n, ref hex @ ..] => {
            visit(address(at), number(n), &hex.iter().map(|h| bytes(h)).collect::<Vec<_>>());
        }
        ["garbage", at, n] => garbage(address(at), number(n)),
        ["login", at, n] => login(address(at), number(n)),
        ["slow", at, hex, ms] => slow(address(at), &bytes(hex), Duration::from_millis(number(ms))),
        ["controllers", at, nqn, host, n, queues] => {
            controllers(address(at), nqn, host, number(n), number(queues) as u16);
        }
        ["idle", at] => idle(discovery(address(at))),
        ["idle", at, nqn, host] => {
            idle(queue(address(at), (nqn, host), 0, 0xffff).expect("a controller").0);
        }
        ["send", at, hex] => send(address(at), &bytes(hex)),
        _ => {
            eprintln!("peer: see the top of peer.rs");
            std::process::exit(2);
        }
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address like 127.0.0.1:4420")
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two hex digits");
    (0..hex.len() / 2).map(|i| digit(2 * i)).collect()
}

fn connect(to: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(2))).ok()?;
    Some(stream)
}

fn hold(to: SocketAddr, n: u64) {
    let held: Vec<TcpStream> = (0..n).filter_map(|_| connect(to)).collect();
    println!("connected {}", held.len());
    keep(&held);
}

/// Says what there is to say and stays.
fn visit(to: SocketAddr, n: u64, words: &[Vec<u8>]) {
    let come = |_| {
        let mut stream = connect(to)?;
        let mut answer = [0; 4096];
        words.iter().try_for_each(|word| {
            stream.write_all(word).ok()?;
            stream.read(&mut answer).ok().filter(|n| *n > 0).map(|_| ())
        })?;
        Some(stream)
    };
    let held: Vec<TcpStream> = (0..n).filter_map(come).collect();
    println!("answered {}", held.len());
    keep(&held);
}

/// Keeps them until whoever started us says so; prints how many are still open.
fn keep(held: &[TcpStream]) {
    // Whoever started us asks its questions until it closes our standard input.
    std::io::stdin().read_to_end(&mut Vec::new()).ok();
    println!("open {}", held.iter().filter(|s| is_open(s)).count());
}

fn is_open(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).ok();
    stream.read(&mut [0]).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
}

/// Xorshift: the same bytes in every run, so that a failure can be repeated.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn garbage(to: SocketAddr, n: u64) {
    let (mut noise, mut answered, mut closed) = (Noise(0x9e37_79b9_7f4a_7c15), 0, 0);
    for _ in 0..n {
        let Some(mut stream) = connect(to) else { continue };
        let data: Vec<u8> = (0..1 + noise.next() % 8192).map(|_| noise.next() as u8).collect();
        stream.write_all(&data).ok();
        stream.shutdown(std::net::Shutdown::Write).ok();
        let mut answer = Vec::new();
        let end = stream.read_to_end(&mut answer);
        answered += u64::from(!answer.is_empty());
        closed +=
            u64::from(end.is_ok() || end.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
    }
    println!("answered {answered}, closed {closed}");
}

fn login(to: SocketAddr, n: u64) {
    let mut connected = 0;
    for i in 0..n {
        let Some(mut stream) = connect(to) else { continue };
        connected += 1;
        // The first half of an ICReq as well as of a Login Request.
        let half = [[0x00, 0x00, 0x80, 0x00], [0x43, 0x87, 0x00, 0x00]][(i % 2) as usize];
        if i % 4 < 2 {
            stream.write_all(&half).ok();
        }
    }
    println!("connected {connected}");
}

fn slow(to: SocketAddr, data: &[u8], pause: Duration) {
    let (mut stream, began) = (connect(to).expect("a connection"), Instant::now());
    let mut sent = 0;
    for byte in data {
        if stream.write_all(std::slice::from_ref(byte)).is_err() {
            break;
        }
        sent += 1;
        std::thread::sleep(pause);
    }
    println!("sent {sent} in {} ms", began.elapsed().as_millis());
}

/// A discovery session (RFC 7143 11.12).
fn discovery(to: SocketAddr) -> TcpStream {
    let mut stream = connect(to).expect("a connection");
    let keys = b"InitiatorName=iqn.2026-01.org.millrace.judge:idle\0SessionType=Discovery\0";
    let mut pdu = vec![0; 48];
    // Login Request, immediate; to the full feature phase from operational negotiation.
    pdu[..2].copy_from_slice(&[0x43, 0x87]);
    pdu[4..8].copy_from_slice(&(keys.len() as u32).to_be_bytes());
    pdu[8..14].copy_from_slice(&[0x40, 0, 0, 1, 0, 1]);
    pdu[24..28].copy_from_slice(&1u32.to_be_bytes());
    pdu.extend_from_slice(keys);
    pdu.resize(pdu.len().next_multiple_of(4), 0);
    stream.write_all(&pdu).expect("a login");
    let mut answer = [0; 4096];
    let n = stream.read(&mut answer).expect("an answer");
    assert!(n >= 48 && answer[0] == 0x23 && answer[36] == 0, "the login is refused: {:?}", &answer[..n]);
    stream
}

fn idle(mut stream: TcpStream) {
    stream.set_read_timeout(None).expect("a socket");
    println!("in");
    let mut rest = [0; 4096];
    let word = loop {
        match stream.read(&mut rest) {
            Ok(0) => break "closed".to_owned(),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => break "reset".to_owned(),
            Err(e) => break e.to_string(),
        }
    };
    println!("{word}");
}

fn send(to: SocketAddr, data: &[u8]) {
    let mut stream = connect(to).expect("a connection");
    stream.write_all(data).ok();
    let mut answer = Vec::new();
    let open = stream.read_to_end(&mut answer).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock);
    let hex: String = answer.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{}{hex}", if open { "open " } else { "" });
}

/// A command capsule: 64 bytes of command with data behind it (NVMe/TCP 3.6.2.3).
fn capsule(command: &[(usize, &[u8])], data: &[u8]) -> Vec<u8> {
    let mut pdu = vec![0; 72];
    pdu[0] = 4;
    pdu[2] = 72;
    pdu[3] = if data.is_empty() { 0 } else { 72 };
    pdu[4..8].copy_from_slice(&(72 + data.len() as u32).to_le_bytes());
    pdu[9] = 0x40;
    command.iter().for_each(|(at, bytes)| pdu[8 + at..8 + at + bytes.len()].copy_from_slice(bytes));
    pdu.extend_from_slice(data);
    pdu
}

/// Sends a command and reads its response: what the completion's first four bytes say. None: it failed.
fn ask(stream: &mut TcpStream, capsule: &[u8]) -> Option<u32> {
    stream.write_all(capsule).ok()?;
    let mut answer = [0; 24];
    stream.read_exact(&mut answer).ok()?;
    let good = answer[0] == 5 && answer[22..24].iter().all(|byte| *byte == 0);
    good.then(|| u32::from_le_bytes(answer[8..12].try_into().expect("four bytes")))
}

/// A queue of a controller: 0 of a new one. The controller's number is the answer.
fn queue(to: SocketAddr, names: (&str, &str), id: u16, controller: u16) -> Option<(TcpStream, u16)> {
    let mut stream = connect(to)?;
    let mut hello = [0; 128];
    hello[2] = 128;
    hello[4] = 128;
    stream.write_all(&hello).ok()?;
    stream.read_exact(&mut hello).ok()?;
    let mut data = vec![0; 1024];
    data[0] = 1;
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + names.0.len()].copy_from_slice(names.0.as_bytes());
    data[512..512 + names.1.len()].copy_from_slice(names.1.as_bytes());
    let keep_alive: u32 = if id == 0 { 15_000 } else { 0 };
    let connect: [(usize, &[u8]); 7] = [
        (0, &[0x7f]),
        (4, &[1]),
        (32, &1024u32.to_le_bytes()),
        (39, &[1]),
        (42, &id.to_le_bytes()),
        (44, &127u16.to_le_bytes()),
        (48, &keep_alive.to_le_bytes()),
    ];
    let answer = ask(&mut stream, &capsule(&connect, &data))?;
    Some((stream, answer as u16))
}

fn controllers(to: SocketAddr, nqn: &str, host: &str, n: u64, queues: u16) {
    let (mut admins, mut all) = (vec![], vec![]);
    for _ in 0..n {
        let Some((mut admin, id)) = queue(to, (nqn, host), 0, 0xffff) else { break };
        // Property Set: CC.EN, with entries of 64 and 16 bytes.
        let enable: [(usize, &[u8]); 3] = [(0, &[0x7f]), (44, &[0x14]), (48, &0x0046_0001u32.to_le_bytes())];
        if ask(&mut admin, &capsule(&enable, &[])).is_none() {
            break;
        }
        admins.push(admin);
        all.extend((1..=queues).map_while(|q| queue(to, (nqn, host), q, id)).map(|(stream, _)| stream));
    }
    println!("controllers {} queues {}", admins.len(), all.len());
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let alive = std::thread::spawn(move || {
        let ping = capsule(&[(0, &[0x18])], &[]);
        // In turn, so that they come evenly.
        let pause = Duration::from_millis(7500) / admins.len().max(1) as u32;
        let mut turn = 0;
        while is_over.recv_timeout(pause) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let index = turn % admins.len();
            ask(&mut admins[index], &ping);
            turn += 1;
        }
        admins
    });
    keep(&all);
    drop(over);
    let admins = alive.join().expect("it only pings");
    println!("controllers open {}", admins.iter().filter(|s| is_open(s)).count());
}
