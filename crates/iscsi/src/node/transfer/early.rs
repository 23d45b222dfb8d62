//! Commands with both unsolicited and solicited data.
//!
//! Unsolicited data blocks the stream until it has a buffer, and solicited data may wait in the stream behind
//! unsolicited data of other commands. So a command never holds memory for unsolicited data while it waits for solicited
//! data: the head carries out the whole blocks that came unsolicited, less than a block is kept aside, the buffer goes
//! back, and then an R2T asks for the rest. (SBC-3 promises no atomicity beyond a block, nor do our pages.)

use super::super::session::{Holds, Phase, Session, Task};
use crate::scsi::{Sense, Work};
use base::{Command, FrontIo, Op, Slice, Tag};

impl Session {
    /// A buffer for a command of which `unasked` bytes come unasked; `whole`: what it needs for all its data.
    pub(super) fn reserve_unasked(
        &mut self,
        slot: u32,
        unasked: u32,
        whole: u32,
        io: &mut impl FrontIo,
    ) -> Option<Slice> {
        let tag = Tag(slot as u16);
        let task = &mut self.tasks[slot];
        if unasked >= task.from_host.wire {
            return io.reserve_inline(tag, whole);
        }
        // Memory of the other kind may wait for the rest. If there is some, nothing needs to be done in two parts.
        if let Some(buffer) = io.reserve_spare(tag, whole) {
            task.holds = Holds::All;
            return Some(buffer);
        }
        let copies = if matches!(task.work, Work::Compare { .. }) { 2 } else { 1 };
        io.reserve_inline(tag, whole.min(copies * unasked))
    }
    /// All that comes unasked has come, and it is not all.
    pub(super) fn carry_out_early(&mut self, slot: u32, io: &mut impl FrontIo) {
        let task = &mut self.tasks[slot];
        let size = task.unit.block_bytes;
        let bytes = task.from_host.received / size * size;
        let (op, at, fua) = match task.work {
            Work::Write { at, fua, .. } if bytes > 0 => (Op::Write, at, fua),
            Work::Compare { at, .. } if bytes > 0 => (Op::Compare, at, false),
            // Parameter lists and single blocks: short enough to be kept aside whole.
            _ => return self.change_buffer(slot, io),
        };
        task.holds = Holds::Early { bytes };
        task.held = true;
        let command = Command { volume: task.unit.volume, op, at, blocks: u64::from(bytes / size), fua };
        let data = task.buffer.head(bytes);
        self.set_phase(slot, Phase::Submitted);
        io.submit(Tag(slot as u16), command, data);
    }
    /// What came unasked has been carried out.
    pub(super) fn carried_out_early(&mut self, slot: u32, io: &mut impl FrontIo) {
        if self.tasks[slot].ending.is_cleared() {
            self.fail(slot, Sense::ABORTED);
            return self.answer(slot, io);
        }
        self.change_buffer(slot, io);
    }
    /// The rest gets a buffer of its own.
    fn change_buffer(&mut self, slot: u32, io: &mut impl FrontIo) {
        let tag = Tag(slot as u16);
        let task = &mut self.tasks[slot];
        let base = match task.holds {
            Holds::Early { bytes } => bytes,
            Holds::All | Holds::Unasked | Holds::Rest { .. } => 0,
        };
        let kept = io.bytes(task.buffer.part(base, task.from_host.received - base)).to_vec();
        task.holds = Holds::Rest { base, kept };
        io.finish(tag);
        let len = task.rest_len();
        self.set_phase(slot, Phase::Buffer);
        if let Some(buffer) = io.reserve(tag, len) {
            self.granted(slot, buffer, io);
            self.next_data(slot, io);
        }
    }
}

impl Task {
    /// Where in the command's data the buffer begins.
    pub(super) fn base(&self) -> u32 {
        match self.holds {
            Holds::Rest { base, .. } => base,
            Holds::All | Holds::Unasked | Holds::Early { .. } => 0,
        }
    }
    fn rest_len(&self) -> u32 {
        let (size, rest) = (self.unit.block_bytes, self.from_host.wire - self.base());
        match self.work {
            Work::Compare { .. } => 2 * rest.next_multiple_of(size),
            Work::Same { blocks, .. } => {
                (u64::from(blocks) * u64::from(size)).min(u64::from(super::COPY_STEP)) as u32
            }
            Work::Write { .. } => rest.next_multiple_of(size),
            _ => rest,
        }
    }
    /// What was kept aside comes first in the new buffer.
    pub(super) fn restore(&mut self, io: &mut impl FrontIo) {
        if let Holds::Rest { kept, .. } = &mut self.holds {
            let kept = core::mem::take(kept);
            io.bytes_mut(self.buffer.head(kept.len() as u32)).copy_from_slice(&kept);
        }
    }
}
