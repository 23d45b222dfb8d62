//! Entry points for arbitrary bytes: the PDU decoder, the text codec, and a whole target connection.
//! None of them may panic, and a connection must keep its memory bounded and its tags accounted for.

use crate::node::{Connection, ConnectionConfig, OUTBOX_BYTES};
use crate::pdu::{self, BHS_BYTES, Request, Response};
use crate::text;
use base::front::{Close, Intervention, TRANSFER_MAX};
use base::memory::PlainMemory;
use base::view::{Export, Host, PathState, Portal, Protocol, System, View};
use base::{
    Answer, Ask, Command, ConnectionFault, FrontIo, HostId, Instant, Memory, PortalId, Prng, Slice, Status,
    Tag, VolumeId, Want,
};
use std::collections::VecDeque;

/// The initiator's name that the fuzzed target knows.
pub const INITIATOR: &str = "iqn.fuzz:host";
/// The fuzzed target's name.
pub const TARGET: &str = "iqn.fuzz:target";
const TAGS: u16 = 24;

/// Decodes a header in both directions, and its additional headers.
pub fn header(bytes: &[u8]) {
    let Some((bhs, rest)) = bytes.split_first_chunk::<BHS_BYTES>() else { return };
    let _ = (Request::decode(bhs), Response::decode(bhs));
    let ahs = &rest[..pdu::ahs_len(bhs).min(rest.len())];
    assert!(pdu::ahs_segments(ahs).count() <= ahs.len() / 4 + 1);
}

/// Reads a text and its values.
pub fn text(bytes: &[u8]) {
    for pair in text::pairs(bytes).map_while(Result::ok) {
        let _ = (text::number(pair.value), text::boolean(pair.value), text::choose(pair.value, &["None"]));
        assert!(text::binary(pair.value, 64).is_none_or(|b| b.len() <= 64));
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Free,
    Waiting(u32),
    Held,
    Running,
}

/// A head without volumes: every buffer is the same memory, and ends are drawn by lot.
pub struct Head {
    view: View,
    memory: PlainMemory,
    uses: Vec<Use>,
    ring_used: u32,
    running: VecDeque<Tag>,
    asked: bool,
    /// What it wanted of other sessions, and what they want of it.
    asked_of_others: Vec<u16>,
    interventions: Vec<u32>,
    last_intervention: u32,
    closed: bool,
    lots: Prng,
    withholds_buffers: bool,
}

impl Default for Head {
    fn default() -> Self {
        let export = |lun, block_bytes| Export {
            lun,
            volume: VolumeId(u32::from(lun)),
            block_bytes,
            blocks: 4096,
            deallocate: true,
            ready: true,
            ..Export::default()
        };
        let host = Host {
            id: HostId(1),
            iqns: vec![INITIATOR.into()],
            exports: vec![export(0, 512), export(1, 4096)],
            ..Host::default()
        };
        let system = System { iqn: TARGET.into(), ..System::default() };
        Self {
            view: View { system, portals: vec![portal()], hosts: vec![host], ..View::default() },
            memory: PlainMemory::new(0, 2 * TRANSFER_MAX as usize),
            uses: vec![],
            ring_used: 0,
            running: VecDeque::new(),
            asked: false,
            asked_of_others: vec![],
            interventions: vec![],
            last_intervention: 0,
            closed: false,
            lots: Prng::new(0),
            withholds_buffers: false,
        }
    }
}

fn portal() -> Portal {
    let address = core::net::SocketAddr::from(([0, 0, 0, 0], 3260));
    Portal { id: PortalId(0), protocol: Protocol::Iscsi, address, head: 0, moves: None }
}

impl FrontIo for Head {
    fn view(&self) -> &View {
        &self.view
    }
    fn admit(&mut self, commands_max: u16) -> Result<(), ConnectionFault> {
        self.uses = vec![Use::Free; usize::from(commands_max)];
        Ok(())
    }
    fn reserve(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        assert_eq!(self.uses[tag.index()], Use::Free);
        assert!((1..=2 * TRANSFER_MAX).contains(&len));
        let waits = self.withholds_buffers && self.lots.chance(1, 2);
        self.uses[tag.index()] = if waits { Use::Waiting(len) } else { Use::Held };
        (!waits).then(|| Slice::new(0, len))
    }
    fn submit(&mut self, tag: Tag, command: Command, data: Slice) {
        assert!(matches!(self.uses[tag.index()], Use::Free | Use::Held));
        assert!(command.op.takes_data() <= (data.len > 0));
        assert!(command.at + command.blocks <= 4096, "the range was checked");
        self.uses[tag.index()] = Use::Running;
        self.running.push_back(tag);
    }
    fn finish(&mut self, tag: Tag) {
        assert_eq!(self.uses[tag.index()], Use::Held);
        self.uses[tag.index()] = Use::Free;
    }
    fn finish_after_send(&mut self, tag: Tag) {
        self.finish(tag);
    }
    fn abort(&mut self, tag: Tag) {
        match self.uses[tag.index()] {
            Use::Waiting(_) => {
                self.uses[tag.index()] = Use::Running;
                self.running.push_back(tag);
            }
            Use::Running => {}
            other => panic!("aborted while {other:?}"),
        }
    }
    fn bytes(&self, data: Slice) -> &[u8] {
        self.memory.bytes(data)
    }
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8] {
        self.memory.bytes_mut(data)
    }
    fn room(&self) -> u32 {
        OUTBOX_BYTES - self.ring_used
    }
    fn header(&mut self, bytes: &[u8]) {
        assert!(!self.closed, "sent after close");
        self.ring_used += bytes.len() as u32;
        assert!(self.ring_used <= OUTBOX_BYTES, "the outbox ran out of room");
    }
    fn payload(&mut self, data: Slice) {
        assert!(data.end() <= 2 * u64::from(TRANSFER_MAX));
    }
    fn ask(&mut self, _: Ask) {
        assert!(!self.asked, "one question at a time");
        self.asked = true;
    }
    fn intervene(&mut self, key: u16, _: Intervention) {
        self.asked_of_others.push(key);
    }
    fn intervened(&mut self, id: u32, _: bool) {
        assert!(self.interventions.contains(&id), "what was asked is answered, once");
        self.interventions.retain(|i| *i != id);
    }
    fn close(&mut self, _: Close) {
        assert!(!self.closed, "closed once");
        self.closed = true;
    }
}

/// Feeds bytes to a target connection. The first byte decides how they are cut, whether buffers come at
/// once, and whether a login comes before them; `head` may be used again.
pub fn connection(bytes: &[u8], head: &mut Head) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    head.uses.clear();
    head.running.clear();
    head.asked_of_others.clear();
    head.interventions.clear();
    head.ring_used = 0;
    head.asked = false;
    head.closed = false;
    head.withholds_buffers = choice & 2 != 0;
    head.lots = Prng::new(u64::from(choice) + bytes.len() as u64);
    let config = ConnectionConfig {
        local: portal().address,
        peer: portal().address,
        portal: portal(),
        seed: 1,
        commands_max: TAGS,
    };
    let mut c = Connection::new(config);
    if choice & 1 != 0 {
        feed(&mut c, head, &login(choice & 4 != 0), usize::MAX);
    }
    feed(&mut c, head, bytes, usize::from(choice >> 3) * 9 + 1);
    // Whatever it was, time ends it.
    let mut now = Instant(2);
    for _ in 0..8 {
        settle(&mut c, head, now);
        match c.next_deadline() {
            Some(at) if !head.closed => {
                now = now.max(at);
                c.on_timer(now, head);
            }
            _ => break,
        }
    }
    assert!(head.closed, "silence ends every connection");
}

/// A login that leads to full feature phase.
pub fn login(eager: bool) -> Vec<u8> {
    let mut keys = vec![];
    text::put(&mut keys, text::key::INITIATOR_NAME, INITIATOR);
    text::put(&mut keys, text::key::TARGET_NAME, TARGET);
    if eager {
        text::put(&mut keys, text::key::INITIAL_R2T, "No");
        text::put_number(&mut keys, text::key::MAX_RECV_DATA_SEGMENT_LENGTH, 65_536);
    }
    let request = pdu::LoginRequest {
        transit: true,
        current: pdu::Stage::Operational,
        next: pdu::Stage::FullFeature,
        cmd_sn: 1,
        ..pdu::LoginRequest::default()
    };
    let mut out = vec![];
    pdu::Framing::default().put(&mut out, request.encode(), &keys);
    out
}

fn feed(c: &mut Connection, head: &mut Head, mut bytes: &[u8], piece: usize) {
    let now = Instant(1);
    while !bytes.is_empty() && !head.closed {
        let n = bytes.len().min(piece);
        let taken = match c.want() {
            Want::Nothing => 0,
            Want::Direct(slice) => {
                let n = n.min(slice.len as usize);
                head.memory.bytes_mut(slice.head(n as u32)).copy_from_slice(&bytes[..n]);
                c.on_direct(now, n as u32, head);
                n
            }
            Want::Staging | Want::Header(_) => c.on_bytes(now, &bytes[..n], head),
        };
        bytes = &bytes[taken..];
        if !head.closed && head.lots.chance(1, 16) {
            clear_tasks(c, head, now);
        }
        if !head.closed && head.lots.chance(1, 32) {
            let states = [PathState::Optimized, PathState::NonOptimized];
            let paths = [*head.lots.pick(&states), *head.lots.pick(&states)];
            head.view.paths = head.lots.chance(3, 4).then_some(paths);
            c.on_view(now, head);
        }
        if taken == 0 || head.lots.chance(1, 4) {
            settle(c, head, now);
            assert!(taken > 0 || head.closed || c.want() != Want::Nothing, "the stream stands still");
        }
    }
}

/// Another session resets a unit.
fn clear_tasks(c: &mut Connection, head: &mut Head, now: Instant) {
    head.last_intervention += 1;
    head.interventions.push(head.last_intervention);
    let units = [VolumeId(head.lots.below(3) as u32)].into();
    let what = Intervention::ClearTasks { units, reset: head.lots.chance(1, 2) };
    c.on_intervention(now, head.last_intervention, &what, head);
}

/// The head does everything that it owes.
fn settle(c: &mut Connection, head: &mut Head, now: Instant) {
    while !head.closed {
        let waiting = head.uses.iter().position(|u| matches!(u, Use::Waiting(_)));
        if core::mem::take(&mut head.asked) {
            c.on_answer(now, Answer::Admitted { id: 3 }, head);
        } else if let Some(key) = head.asked_of_others.pop() {
            c.on_intervened(now, key, true, head);
        } else if let Some(tag) = head.running.pop_front() {
            head.uses[tag.index()] = Use::Held;
            let ends = [Status::Good, Status::Good, Status::Good, Status::Medium, Status::Aborted];
            let status = *head.lots.pick(&ends);
            c.on_done(now, tag, status, head);
        } else if head.ring_used > 0 {
            head.ring_used = 0;
            c.on_sent(now, head);
        } else if let Some(i) = waiting {
            let Use::Waiting(len) = core::mem::replace(&mut head.uses[i], Use::Held) else {
                unreachable!("found above")
            };
            let tag = Tag(i as u16);
            if head.lots.chance(1, 8) {
                c.on_done(now, tag, Status::Aborted, head);
            } else {
                c.on_granted(now, tag, Slice::new(0, len), head);
            }
        } else {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu::{
        DataOut, Framing, LogoutRequest, NopOut, RESERVED_TAG, ScsiCommand, TaskManagementRequest,
        TextRequest,
    };

    /// Some PDUs that belong together, more or less.
    fn stream(prng: &mut Prng) -> Vec<u8> {
        let mut out = vec![];
        let mut cmd_sn = 1;
        for i in 0..prng.between(1, 8) as u32 {
            let mut c = ScsiCommand {
                last: prng.chance(3, 4),
                read: prng.chance(1, 2),
                lun: prng.below(3) << 48,
                task_tag: i,
                expected: *prng.pick(&[0, 100, 512, 1024, 4096, 70_000]),
                cmd_sn,
                ..ScsiCommand::default()
            };
            c.write = !c.read;
            let op = *prng.pick(&[
                0x00, 0x03, 0x12, 0x1a, 0x15, 0x25, 0x28, 0x2a, 0x2a, 0x2a, 0x2f, 0x35, 0x41, 0x42, 0x5a,
                0x88, 0x89, 0x8a, 0x93, 0x9e, 0xa0, 0xa3,
            ]);
            prng.fill(&mut c.cdb[1..]);
            c.cdb[0] = op;
            if prng.chance(3, 4) {
                c.cdb[1..].fill(0);
                c.cdb[7] = 0;
                c.cdb[8] = prng.below(20) as u8;
                c.cdb[13] = 1;
            }
            let data = vec![0; if c.write { *prng.pick(&[0, 100, 512, 1024]) } else { 0 }];
            match prng.below(8) {
                0 => {
                    let d = DataOut {
                        last: prng.chance(1, 2),
                        task_tag: i.saturating_sub(1),
                        transfer_tag: *prng.pick(&[RESERVED_TAG, 1 << 18, 2 << 18]),
                        ..DataOut::default()
                    };
                    Framing::default().put(&mut out, d.encode(), &data);
                    continue;
                }
                1 => {
                    let t = TaskManagementRequest {
                        immediate: true,
                        function: prng.below(10) as u8,
                        task_tag: 100 + i,
                        referenced_task_tag: i.saturating_sub(1),
                        cmd_sn,
                        ..TaskManagementRequest::default()
                    };
                    Framing::default().put(&mut out, t.encode(), &[]);
                    continue;
                }
                2 => {
                    let t = TextRequest {
                        last: prng.chance(1, 2),
                        task_tag: i,
                        transfer_tag: *prng.pick(&[RESERVED_TAG, 1]),
                        cmd_sn,
                        ..TextRequest::default()
                    };
                    Framing::default().put(&mut out, t.encode(), b"SendTargets=All\0");
                }
                3 => {
                    let n = NopOut { task_tag: i, transfer_tag: RESERVED_TAG, cmd_sn, ..NopOut::default() };
                    Framing::default().put(&mut out, n.encode(), &data);
                }
                4 if prng.chance(1, 8) => {
                    let l = LogoutRequest { task_tag: i, cmd_sn, ..LogoutRequest::default() };
                    Framing::default().put(&mut out, l.encode(), &[]);
                }
                _ => Framing::default().put(&mut out, c.encode(), &data),
            }
            cmd_sn += 1;
        }
        out
    }

    fn mutate(prng: &mut Prng, bytes: &mut Vec<u8>) {
        for _ in 0..prng.below(4) {
            if bytes.is_empty() {
                return;
            }
            let at = prng.below(bytes.len() as u64) as usize;
            match prng.below(4) {
                0 => bytes[at] = prng.next_u64() as u8,
                1 => bytes[at] ^= 1 << prng.below(8),
                2 => bytes.truncate(at),
                _ => {
                    bytes.remove(at);
                }
            }
        }
    }

    #[test]
    fn no_bytes_panic_a_target_and_silence_ends_every_connection() {
        let mut prng = Prng::new(2026);
        let mut head = Head::default();
        for _ in 0..60_000 {
            let choice = prng.next_u64() as u8 | u8::from(prng.chance(7, 8));
            let mut bytes = if choice & 1 != 0 { stream(&mut prng) } else { login(true) };
            mutate(&mut prng, &mut bytes);
            bytes.insert(0, choice);
            connection(&bytes, &mut head);
        }
    }

    #[test]
    fn no_bytes_panic_the_decoders() {
        let mut prng = Prng::new(7);
        let mut noise = [0; 200];
        for _ in 0..140_000 {
            prng.fill(&mut noise);
            if prng.chance(1, 2) {
                noise[4] = prng.below(40) as u8;
            }
            header(&noise[..prng.between(0, 200) as usize]);
            let alphabet = b"aZ09=,\0.0x0b+-~ \xff";
            for b in &mut noise {
                *b = alphabet[usize::from(*b) % alphabet.len()];
            }
            text(&noise[..prng.between(0, 200) as usize]);
        }
    }
}
