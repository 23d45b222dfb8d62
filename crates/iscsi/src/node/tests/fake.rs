//! A head of one connection over plain memory and RAM disks, for tests: it checks that tags are used as
//! the door says, and can hold back buffers, answers, ends and room.

use base::front::{Close, Intervention, TRANSFER_MAX};
use base::memory::{Memory, PlainMemory};
use base::view::{Export, Host, Portal, Protocol, System, View};
use base::{Ask, Command, FrontIo, HostId, Op, PortalId, Slice, Status, Tag, Uuid, VolumeId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Free,
    Waiting(u32),
    Held(Slice),
    Running(Slice),
}

/// Volumes as bytes, shared by connections.
pub type Disks = Arc<Mutex<Vec<Vec<u8>>>>;

const BUFFER: u64 = 2 * TRANSFER_MAX as u64;
const START: u64 = 4096;

pub struct Fake {
    pub view: View,
    pub disks: Disks,
    pub memory: PlainMemory,
    uses: Vec<Use>,
    admitted: u16,
    pub ring: u32,
    pub ring_used: u32,
    pub out: Vec<u8>,
    pub running: VecDeque<(Tag, Command, Slice)>,
    pub aborted: Vec<Tag>,
    pub asks: VecDeque<Ask>,
    /// What it wanted of other sessions, and what it answered them.
    pub wishes: VecDeque<(u16, Intervention)>,
    pub obeyed: Vec<(u32, bool)>,
    /// Buffers that were asked for data that come unasked: how long, and which tags hold them.
    pub inline: Vec<u32>,
    pub inline_tags: Vec<Tag>,
    pub closed: Option<Close>,
    /// Who was refused, and why.
    pub refused: Vec<(String, &'static str)>,
    /// Buffers are given at once.
    pub generous: bool,
    /// What the next commands end in, instead of being carried out.
    pub fate: Option<Status>,
    pub log: Vec<Command>,
}

pub const IQN: &str = "iqn.2026-01.org.example:system";
pub const INITIATOR: &str = "iqn.2026-01.org.example:host";

/// Volume 0: 512-byte blocks, LUN 0; volume 1: 4096, LUN 300.
pub fn view(blocks: u64) -> View {
    let export = |lun: u16, block_bytes: u32| Export {
        nsid: u32::from(lun) + 1,
        lun,
        volume: VolumeId(u32::from(lun > 0)),
        name: format!("tank/v{lun}"),
        uuid: Uuid::from_random(7, u64::from(lun)),
        nguid: [7; 16],
        naa: [0x3a, 1, 2, 3, 4, 5, lun as u8, (lun >> 8) as u8, 0, 0, 0, 0, 0, 0, 0, 0],
        block_bytes,
        blocks: blocks * 512 / u64::from(block_bytes),
        deallocate: true,
        ready: true,
    };
    View {
        generation: 1,
        system: System {
            iqn: IQN.into(),
            serial: "1234".into(),
            model: "array".into(),
            firmware: "0.1".into(),
            ..System::default()
        },
        portals: vec![portal()],
        hosts: vec![Host {
            id: HostId(4),
            name: "h".into(),
            iqns: vec![INITIATOR.into()],
            exports: vec![export(0, 512), export(300, 4096)],
            ..Host::default()
        }],
    }
}

pub fn portal() -> Portal {
    Portal {
        id: PortalId(0),
        protocol: Protocol::Iscsi,
        address: "0.0.0.0:3260".parse().expect("an address"),
    }
}

pub fn disks(blocks: u64) -> Disks {
    Arc::new(Mutex::new(vec![vec![0; blocks as usize * 512]; 2]))
}

impl Fake {
    pub fn new(view: View, disks: Disks, ring: u32) -> Self {
        Self {
            view,
            disks,
            memory: PlainMemory::new(START, 0),
            uses: vec![],
            admitted: 0,
            ring,
            ring_used: 0,
            out: vec![],
            running: VecDeque::new(),
            aborted: vec![],
            asks: VecDeque::new(),
            wishes: VecDeque::new(),
            obeyed: vec![],
            inline: vec![],
            inline_tags: vec![],
            closed: None,
            refused: vec![],
            generous: true,
            fate: None,
            log: vec![],
        }
    }

    fn buffer(&self, tag: Tag, len: u32) -> Slice {
        Slice::new(START + BUFFER * tag.index() as u64, len)
    }

    /// Tags that wait for a buffer get it: one, if any.
    pub fn grant(&mut self) -> Option<(Tag, Slice)> {
        let i = self.uses.iter().position(|u| matches!(u, Use::Waiting(_)))?;
        let Use::Waiting(len) = self.uses[i] else { unreachable!("found above") };
        let slice = self.buffer(Tag(i as u16), len);
        self.uses[i] = Use::Held(slice);
        Some((Tag(i as u16), slice))
    }

    /// The head gives up finding a buffer for a tag, or ends one that was aborted while it waited.
    pub fn give_up(&mut self) -> Option<Tag> {
        let i = self.uses.iter().position(|u| matches!(u, Use::Waiting(_)))?;
        self.uses[i] = Use::Held(Slice::default());
        Some(Tag(i as u16))
    }

    pub fn in_use(&self) -> usize {
        self.uses.iter().filter(|u| **u != Use::Free).count()
    }

    /// Ends the oldest running command: its tag and status.
    pub fn carry_out(&mut self) -> Option<(Tag, Status)> {
        let (tag, command, data) = self.running.pop_front()?;
        let Use::Running(buffer) = self.uses[tag.index()] else {
            panic!("a tag runs that was not submitted")
        };
        self.uses[tag.index()] = Use::Held(buffer);
        self.log.push(command);
        if self.aborted.contains(&tag) {
            self.aborted.retain(|t| *t != tag);
            return Some((tag, Status::Aborted));
        }
        if let Some(status) = self.fate {
            return Some((tag, status));
        }
        let block = self.view.hosts.iter().flat_map(|h| &h.exports).find(|e| e.volume == command.volume);
        let Some(export) = block else { return Some((tag, Status::NoVolume)) };
        let size = u64::from(export.block_bytes);
        let mut disks = self.disks.lock().expect("nobody panicked");
        let disk = &mut disks[command.volume.index()];
        if command.at + command.blocks > disk.len() as u64 / size {
            return Some((tag, Status::OutOfRange));
        }
        let range = (command.at * size) as usize..((command.at + command.blocks) * size) as usize;
        let place = &mut disk[range];
        let len = place.len();
        let differs = |a: &[u8], b: &[u8]| a.iter().zip(b).position(|(a, b)| a != b);
        let status = match command.op {
            Op::Read => {
                assert_eq!(data.len as usize, len);
                self.memory.bytes_mut(data).copy_from_slice(place);
                Status::Good
            }
            Op::Write => {
                assert_eq!(data.len as usize, len);
                place.copy_from_slice(self.memory.bytes(data));
                Status::Good
            }
            Op::WriteZeroes { .. } | Op::Deallocate => {
                place.fill(0);
                Status::Good
            }
            Op::Flush => Status::Good,
            Op::Compare => match differs(place, self.memory.bytes(data)) {
                Some(at) => Status::Miscompare { at: at as u32 },
                None => Status::Good,
            },
        };
        Some((tag, status))
    }
}

impl FrontIo for Fake {
    fn view(&self) -> &View {
        &self.view
    }
    fn admit(&mut self, commands_max: u16) -> Result<(), &'static str> {
        assert_eq!(self.admitted, 0, "admitted once");
        self.admitted = commands_max;
        self.uses = vec![Use::Free; usize::from(commands_max)];
        self.memory = PlainMemory::new(START, usize::from(commands_max) * BUFFER as usize);
        Ok(())
    }
    fn reserve(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        assert_eq!(self.uses[tag.index()], Use::Free, "a tag reserves once");
        assert!(len > 0 && u64::from(len) <= BUFFER);
        if !self.generous {
            self.uses[tag.index()] = Use::Waiting(len);
            return None;
        }
        let slice = self.buffer(tag, len);
        self.uses[tag.index()] = Use::Held(slice);
        // The contents are undefined.
        self.memory.bytes_mut(slice).fill(0xee);
        Some(slice)
    }
    fn reserve_inline(&mut self, tag: Tag, len: u32) -> Option<Slice> {
        self.inline.push(len);
        self.inline_tags.push(tag);
        self.reserve(tag, len)
    }
    fn submit(&mut self, tag: Tag, command: Command, data: Slice) {
        let buffer = match self.uses[tag.index()] {
            Use::Free => Slice::default(),
            Use::Held(buffer) => buffer,
            other => panic!("submitted while {other:?}"),
        };
        assert!(data.len == 0 || data.at >= buffer.at && data.end() <= buffer.end());
        self.uses[tag.index()] = Use::Running(buffer);
        self.running.push_back((tag, command, data));
    }
    fn finish(&mut self, tag: Tag) {
        assert!(
            matches!(self.uses[tag.index()], Use::Held(_)),
            "finished while {:?}",
            self.uses[tag.index()]
        );
        self.uses[tag.index()] = Use::Free;
        self.inline_tags.retain(|t| *t != tag);
    }
    fn finish_after_send(&mut self, tag: Tag) {
        self.finish(tag);
    }
    fn abort(&mut self, tag: Tag) {
        assert!(matches!(self.uses[tag.index()], Use::Running(_) | Use::Waiting(_)));
        self.aborted.push(tag);
    }
    fn bytes(&self, data: Slice) -> &[u8] {
        self.memory.bytes(data)
    }
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8] {
        self.memory.bytes_mut(data)
    }
    fn room(&self) -> u32 {
        self.ring - self.ring_used
    }
    fn header(&mut self, bytes: &[u8]) {
        assert!(self.closed.is_none(), "sent after close");
        assert!(bytes.len() as u32 <= self.room(), "the ring ran out of room");
        self.ring_used += bytes.len() as u32;
        self.out.extend_from_slice(bytes);
    }
    fn payload(&mut self, data: Slice) {
        self.out.extend_from_slice(self.memory.bytes(data));
    }
    fn pending(&self) -> u64 {
        u64::from(self.ring_used)
    }
    fn ask(&mut self, ask: Ask) {
        self.asks.push_back(ask);
    }
    fn refused(&mut self, name: &str, why: &'static str) {
        self.refused.push((name.into(), why));
    }
    fn intervene(&mut self, key: u16, what: Intervention) {
        self.wishes.push_back((key, what));
    }
    fn intervened(&mut self, id: u32, yes: bool) {
        self.obeyed.push((id, yes));
    }
    fn close(&mut self, why: Close) {
        assert!(self.closed.is_none(), "closed once");
        self.closed = Some(why);
    }
}
