//! Our host against a recorded target: SPDK's, without options. It sets SUCCESS also where SQ flow control is on, and its queues
//! have 128 entries.

use super::super::{Config, Error, Lack, Session};
use crate::pdu::{flag, kind};
use base::fake::Host;
use base::{HostCommand, HostStatus, Instant, Memory, NvmeFault, Op, Slice, Want};
use std::collections::BTreeMap;

const STAGING: Slice = Slice { at: 0, len: 8192 };
const RING: Slice = Slice { at: 8192, len: 1 << 16 };
const DATA: Slice = Slice { at: RING.at + RING.len as u64, len: 4096 };
/// Requests and their answers, a line each: `name = bytes`; `00*N` stands for N zeroes.
const RECORDED: &str = include_str!("spdk.txt");

/// The name of a request in the record: its queue, its opcode, and what distinguishes commands of one opcode.
fn name(link: usize, pdu: &[u8]) -> String {
    let queue = ["admin", "io"][link];
    if pdu[0] == kind::IC_REQ {
        return format!("{queue} icreq");
    }
    assert_eq!(pdu[0], kind::COMMAND, "a host sends commands");
    let sqe = &pdu[8..];
    match (sqe[0], sqe[4]) {
        // Property Get and Set, with the property's offset; Connect.
        (0x7f, fctype @ (0 | 4)) => format!("{queue} 7f {fctype:02x} {:02x}", sqe[44]),
        (0x7f, fctype) => format!("{queue} 7f {fctype:02x}"),
        // Identify with CNS, Set Features with the feature.
        (opcode @ (0x06 | 0x09), _) => format!("{queue} {opcode:02x} {:02x}", sqe[40]),
        (opcode, _) => format!("{queue} {opcode:02x}"),
    }
}

fn bytes(text: &str) -> Vec<u8> {
    let mut out = vec![];
    for word in text.split_whitespace() {
        match word.strip_prefix("00*") {
            Some(n) => out.resize(out.len() + n.parse::<usize>().expect("a count"), 0),
            None => out.extend(base::codec::unhex(word).expect("pairs of hex digits")),
        }
    }
    out
}

/// A session, and the recorded target at the other end of its two connections.
struct Guest {
    session: Session,
    io: Host,
    answers: BTreeMap<String, Vec<u8>>,
    /// What the host has sent and the target has not answered, on each connection.
    sent: [Vec<u8>; 2],
    links: u16,
    piece: usize,
}

impl Guest {
    /// `change` may alter the record. Goes on until nothing moves any more.
    fn come(
        config: impl FnOnce(&mut Config),
        piece: usize,
        change: impl FnOnce(&mut BTreeMap<String, Vec<u8>>),
    ) -> Self {
        let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
        let entry = |line: &str| {
            let (name, text) = line.split_once(" = ").expect("a name and bytes");
            (name.to_string(), bytes(text))
        };
        let mut answers = lines.map(entry).collect();
        change(&mut answers);
        let mut c = Config::new("nqn.2026-01.org.example:host", [7; 16], "nqn.2016-06.io.spdk:cnode1");
        c.nsid = 1;
        config(&mut c);
        let mut session = Session::new(c);
        session.start();
        let sent = [vec![], vec![]];
        let mut guest = Self { session, io: Host::new(&[RING], DATA.end()), answers, sent, links: 0, piece };
        guest.settle();
        guest
    }
    fn settle(&mut self) {
        loop {
            while self.links < self.session.links_wanted() {
                self.session.on_connected(self.links, &mut self.io);
                self.take(usize::from(self.links));
                self.links += 1;
            }
            self.session.on_link0(Instant(1), &mut self.io);
            self.take(0);
            // A host that has found a violation says so, and there is nothing to answer.
            if !(0..2).any(|link| self.answer(link)) || self.session.error().is_some() {
                return;
            }
        }
    }
    /// What is in the outbox goes to the target.
    fn take(&mut self, link: usize) {
        let segments: Vec<Slice> = self.io.outboxes[0].segments().collect();
        for s in segments {
            self.sent[link].extend_from_slice(self.io.memory.bytes(s));
            self.io.outboxes[0].on_sent(s.len, |_| ());
        }
        self.session.on_sent(link as u16, &mut self.io);
    }
    /// The target answers what it has got. False if there was nothing.
    fn answer(&mut self, link: usize) -> bool {
        let mut out = vec![];
        let mut any = false;
        while self.sent[link].len() >= 8 {
            let plen = u32::from_le_bytes(self.sent[link][4..8].try_into().expect("four bytes")) as usize;
            let pdu: Vec<u8> = self.sent[link].drain(..plen).collect();
            any = true;
            let name = name(link, &pdu);
            // Asynchronous Event Requests wait for an event.
            if name == "admin 0c" {
                continue;
            }
            let answer = self.answers.get(&name).unwrap_or_else(|| panic!("not recorded: {name}"));
            let mut answer = &answer[..];
            while !answer.is_empty() {
                let plen = u32::from_le_bytes(answer[4..8].try_into().expect("four bytes")) as usize;
                let (one, rest) = answer.split_at(plen);
                let mut one = one.to_vec();
                match one[0] {
                    kind::RESPONSE => one[20..22].copy_from_slice(&pdu[10..12]),
                    kind::C2H_DATA => one[8..10].copy_from_slice(&pdu[10..12]),
                    _ => {}
                }
                out.extend_from_slice(&one);
                answer = rest;
            }
        }
        let mut out = &out[..];
        while !out.is_empty() && self.session.error().is_none() {
            let (place, direct) = match self.session.want(link as u16) {
                Want::Direct(slice) => (slice, true),
                Want::Staging | Want::Header(_) | Want::Nothing => (STAGING, false),
            };
            let n = out.len().min(place.len as usize).min(self.piece);
            let place = place.head(n as u32);
            self.io.memory.bytes_mut(place).copy_from_slice(&out[..n]);
            if direct {
                self.session.on_direct(link as u16, n as u32, &mut self.io);
            } else {
                self.session.on_bytes(Instant(1), link as u16, place, &mut self.io);
            }
            self.take(link);
            out = &out[n..];
        }
        any
    }
    /// Submits reads of a block until no more are taken; how many were.
    fn read(&mut self) -> u32 {
        let block = DATA.head(self.session.namespace().block_bytes);
        self.io.memory.bytes_mut(block).fill(0xff);
        let read = |id| HostCommand { id, op: Op::Read, at: 0, blocks: 1, fua: false, data: block };
        let mut n = 0;
        while self.session.submit(1, &read(n), &mut self.io) {
            n += 1;
        }
        self.take(1);
        n
    }
    fn violation(&self) -> NvmeFault {
        match self.session.error() {
            Some(Error::Protocol(violation)) => violation.why,
            other => panic!("not a violation: {other:?}"),
        }
    }
}

/// The first PDU of an answer.
fn first(answer: &mut [u8]) -> &mut [u8] {
    let plen = u32::from_le_bytes(answer[4..8].try_into().expect("four bytes")) as usize;
    &mut answer[..plen]
}

#[test]
fn a_target_that_sets_success_and_has_queues_of_128_is_taken_as_it_is() {
    for (depth, granted) in [(1, 1), (127, 127), (128, 127), (1023, 127)] {
        for (flow_control, piece) in [(true, 100_000), (false, 333), (true, 1)] {
            let config = |c: &mut Config| (c.depth, c.flow_control) = (depth, flow_control);
            let mut guest = Guest::come(config, piece, |_| ());
            assert!(guest.session.is_ready(), "{:?}", guest.session.error());
            assert_eq!((guest.session.depth(), guest.session.free(1)), (granted, granted));
            let namespace = guest.session.namespace();
            assert_eq!((namespace.nsid, namespace.block_bytes, namespace.blocks), (1, 4096, 1 << 18));
            // All places twice: what ended is free again.
            for _ in 0..2 {
                assert_eq!(guest.read(), u32::from(granted));
                assert_eq!(guest.session.free(1), 0);
                guest.settle();
                assert_eq!(guest.session.error(), None);
                let mut done = std::mem::take(&mut guest.io.done);
                done.sort_unstable_by_key(|d| d.0);
                let wanted: Vec<_> = (0..u32::from(granted)).map(|id| (id, HostStatus::Good)).collect();
                assert_eq!(done, wanted);
                assert_eq!(guest.io.memory.bytes(DATA), &guest.answers["io 02"][24..]);
            }
        }
    }
}

#[test]
fn the_record_is_of_a_target_that_sets_success_on_every_answer_with_data() {
    let mut seen = 0;
    Guest::come(
        |_| (),
        1000,
        |record| {
            for answer in record.values_mut().filter(|a| a[0] == kind::C2H_DATA) {
                let pdu = first(answer);
                assert_eq!(pdu[1] & (flag::LAST | flag::SUCCESS), flag::LAST | flag::SUCCESS);
                assert_eq!(pdu.len(), answer.len(), "no response capsule follows");
                seen += 1;
            }
        },
    );
    assert_eq!(seen, 4, "Identify three times, and a read");
}

#[test]
fn success_without_last_or_before_all_data_is_refused() {
    let fails = |change: fn(&mut Vec<u8>)| {
        let mut guest = Guest::come(|_| (), 1000, |r| change(r.get_mut("io 02").expect("a read")));
        assert!(guest.session.is_ready(), "{:?}", guest.session.error());
        guest.read();
        guest.settle();
        assert!(guest.io.done.is_empty(), "no command ended well: {:?}", guest.io.done);
        guest.violation()
    };
    assert_eq!(fails(|read| read[1] &= !flag::LAST), NvmeFault::SuccessNotLast);
    let short = |read: &mut Vec<u8>| {
        let plen = read.len() as u32 - 512;
        read[4..8].copy_from_slice(&plen.to_le_bytes());
        read[16..20].copy_from_slice(&(4096u32 - 512).to_le_bytes());
        read.truncate(plen as usize);
    };
    assert_eq!(fails(short), NvmeFault::SuccessTooEarly);
}

#[test]
fn a_response_after_success_is_refused() {
    let mut guest = Guest::come(
        |c| c.depth = 1,
        1000,
        |record| {
            let mut response = vec![0; 24];
            response[0] = kind::RESPONSE;
            response[2] = 24;
            response[4] = 24;
            record.get_mut("io 02").expect("a read").extend_from_slice(&response);
        },
    );
    guest.read();
    guest.settle();
    assert_eq!(guest.io.done, [(0, HostStatus::Good)]);
    assert_eq!(guest.violation(), NvmeFault::AnswerToNone);
}

#[test]
fn the_depth_is_the_least_of_what_was_asked_for_and_both_limits_of_the_controller() {
    // CAP.MQES in the response's first dword; MAXCMD in bytes 514 and 515 of Identify Controller.
    let mqes = |record: &mut BTreeMap<String, Vec<u8>>, n: u16| {
        first(record.get_mut("admin 7f 04 00").expect("CAP"))[8..10].copy_from_slice(&n.to_le_bytes())
    };
    let maxcmd = |record: &mut BTreeMap<String, Vec<u8>>, n: u16| {
        let identify = record.get_mut("admin 06 01").expect("Identify Controller");
        identify[24 + 514..24 + 516].copy_from_slice(&n.to_le_bytes());
    };
    for (asked, entries, commands, granted) in
        [(200, 1023, 0, 200), (200, 1023, 64, 64), (200, 31, 64, 31), (16, 31, 64, 16), (200, 1, 1, 1)]
    {
        let guest = Guest::come(
            |c| c.depth = asked,
            100_000,
            |record| {
                mqes(record, entries);
                maxcmd(record, commands);
            },
        );
        assert_eq!((guest.session.is_ready(), guest.session.depth()), (true, granted));
    }
    let guest = Guest::come(|_| (), 1000, |record| mqes(record, 0));
    assert_eq!(guest.session.error(), Some(Error::Incapable(Lack::QueueSize)));
}
