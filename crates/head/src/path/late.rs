//! Operations that miss their deadline: they are given up, and the memory that their drive keeps is made up for.

use crate::admission::buffers::Buffers;
use crate::layout::ArrayId;
use crate::limits::OP_SCAN;
use crate::mail::{Mail, ShardMail, to_shard};
use crate::path::far::FarLink;
use crate::path::flow::figures;
use crate::path::request::{Phase, Request};
use crate::shard::{Core, Deadlines};
use array::{Array, OpView};
use base::{Bug, DriveError, DriveOpKind, Duration, Effects, Instant, Memory, Slice, Status, planted};
use std::collections::BTreeMap;

/// A drive has at least this time for a write, however long that had waited before.
const WRITE_LEAST: Duration = Duration::from_secs(1);

impl<M: Memory> Core<M> {
    /// Gives up operations that missed their deadline; their memory stays held.
    pub(super) fn scan_ops(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        self.arrays.iter_mut().flatten().for_each(|state| state.window.on_scan(now));
        let mut late: Vec<(ArrayId, u32)> = vec![];
        for (i, state) in self.arrays.iter().enumerate() {
            let ops = state.iter().flat_map(|state| state.array.ops().map(move |op| (&state.array, op)));
            let missed = ops.filter(|(array, (tag, op))| {
                !op.given_up && now.since(op.since) >= self.limit_of(array, *tag, op)
            });
            late.extend(missed.map(|(_, (tag, _))| (ArrayId(i as u16), tag)));
        }
        if !late.is_empty() && planted(Bug::NoDeadline) {
            late.clear();
        }
        for (id, tag) in late {
            let Some(state) = &self.arrays[id.index()] else { continue };
            let op = state.array.op(tag);
            // What is not waited for, since its leg is out, has missed nothing: the drive may be well.
            let missed = self.limit_of(&state.array, tag, &op) > Duration::ZERO;
            let OpView { data, held, .. } = op;
            let figures = figures(&mut self.drives, op.drive);
            figures.in_flight -= 1;
            figures.hung += 1;
            if missed {
                figures.timeouts += 1;
                figures.last_error = Some(DriveError::TimedOut);
            }
            if data.len > 0 && !planted(Bug::HungBufferFree) {
                match self.owner_of(data) {
                    // Only commands of this shard are hedged.
                    Some(shard) => fx.push(to_shard(shard, ShardMail::Hold { data })),
                    None if self.far_of(data).is_some() => {
                        self.far_of(data).expect("just seen").hold(data);
                    }
                    None => {
                        if !held {
                            self.buffers.hold(data);
                        }
                        self.buffers.keep(now, data);
                    }
                }
            }
            self.with_array(now, id, fx, |a, io| a.on_drive_done(now, tag, Err(DriveError::TimedOut), io));
        }
        self.lend_spares(now, fx);
    }

    /// How long an operation may take. A change that had to wait behind another one (the drive hung, and
    /// came back in time) has less time left, if the host is to hear of it in time; but never so little
    /// that a drive which is only slow would be given up. What was to change a leg that is lost meanwhile is not waited
    /// for: others may wait for it in turn, such as hosts for a copy.
    fn limit_of(&self, array: &Array, tag: u32, op: &OpView) -> Duration {
        let Deadlines { read, write } = self.deadlines;
        if op.kind == DriveOpKind::Read {
            return read;
        }
        if array.is_on_lost_leg(tag) {
            return Duration::ZERO;
        }
        let came = array.change_came(tag).unwrap_or(op.since);
        write.saturating_sub(op.since.since(came)).max(WRITE_LEAST.min(write))
    }

    /// The shard whose memory this is, if it is another.
    fn owner_of(&self, data: Slice) -> Option<u16> {
        let shard =
            self.extents.iter().position(|(start, bytes)| *start <= data.at && data.at < start + bytes);
        let shard = shard.expect("drives work on memory of shards") as u16;
        (shard != self.id).then_some(shard)
    }

    pub(super) fn let_go(&mut self, data: Slice, fx: &mut Effects<Mail>) {
        if data.len > 0 && !planted(Bug::HungBufferFree) {
            match self.owner_of(data) {
                Some(shard) => fx.push(to_shard(shard, ShardMail::Unhold { data })),
                None => self.let_go_here(data),
            }
        }
    }
    /// A drive has let go of memory of this shard.
    pub fn let_go_here(&mut self, data: Slice) {
        match self.far_of(data) {
            Some(link) => link.let_go(data),
            None => {
                self.buffers.keep_no_more(data);
                self.buffers.release(data);
            }
        }
        if !self.buffers.is_short_of_spares() {
            self.exhausted = false;
            let lent = self.far.iter().any(FarLink::has_lent_spare);
            self.spare_memory(lent);
        }
    }
    /// A far shard has hardly any memory here that drives do not keep: it is lent its spare. That is not to be kept as well. So a leg that
    /// keeps some goes out, beside a good one, and an array whose last leg hangs takes no more commands.
    fn lend_spares(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        if self.drives.iter().all(|drive| drive.hung == 0) {
            return;
        }
        for far in 0..self.far.len() {
            let link = &self.far[far];
            if !link.has_spare() || !link.needs_spare(self.kept_of(link)) {
                continue;
            }
            // By the next look other shards know of it.
            if self.put_out_hung(now, fx) {
                return;
            }
            self.far[far].lend_spare();
        }
        if self.far.iter().any(FarLink::has_lent_spare) {
            self.spare_memory(true);
        }
    }
    /// Bytes of the memory of a far shard that operations have which were given up.
    pub fn kept_of(&self, far: &FarLink) -> u64 {
        let of_arrays = self.arrays.iter().flatten().flat_map(|state| state.array.ops());
        let all = of_arrays.map(|(_, op)| op).chain(self.orphans.iter().map(|orphan| orphan.op));
        let kept = all.filter(|op| op.given_up && op.data.len > 0 && far.has_granted(op.data));
        // Several legs may keep what came with one command.
        let buffers: BTreeMap<u64, u32> = kept.map(|op| (op.data.at, op.data.len)).collect();
        buffers.into_values().map(Buffers::footprint).sum()
    }
    /// Somebody has waited for memory for a while. What drives keep of it is made up for: with the last spare only when
    /// they have taken no more for as long as an operation may take, as whatever was on its way to one that hangs has been
    /// given up by then, and when no leg is used that keeps some, beside a good one: one that hung on a few reads may still be.
    /// An array whose last leg hangs gets no more from when that spare is needed: a host that asks it again and again, one
    /// command at a time, would put that moment off for ever.
    pub fn make_up_for_kept(&mut self, now: Instant, fx: &mut Effects<Mail>) {
        let (paused, settled) = (now - 2 * OP_SCAN, now - (self.deadlines.write + 2 * OP_SCAN));
        if planted(Bug::KeptForGood) {
            return;
        }
        if self.buffers.is_short_of_spares() {
            self.spare_memory(true);
        }
        // By the next look other shards know of it.
        if self.buffers.needs_last_spare(settled) && self.put_out_hung(now, fx) {
            return;
        }
        self.buffers.use_spares(paused, settled);
        let patience = 4 * self.deadlines.write;
        let is_late = |r: &Request| matches!(r.phase, Phase::Buffer(_)) && now.since(r.started) >= patience;
        self.exhausted = self.buffers.is_short_of_spares()
            && (self.exhausted || self.requests.iter().any(|(_, request)| is_late(request)));
        if self.exhausted {
            self.end_waits();
        }
    }
    /// Drives keep so much memory that somebody has waited for some for as long as four writes may take. Until they let go,
    /// a command that finds none ends in `NotReady`, and its host retries. This does not happen while one leg of a mirror hangs.
    #[cold]
    fn end_waits(&mut self) {
        let waits = |r: &Request| matches!(r.phase, Phase::Buffer(_));
        let over: Vec<u32> = self.requests.iter().filter(|(_, r)| waits(r)).map(|(index, _)| index).collect();
        for index in over {
            self.wait_no_more(index);
            self.end(index, Status::NotReady);
        }
    }
    fn spare_memory(&mut self, spare: bool) {
        self.arrays.iter_mut().flatten().for_each(|state| state.array.spare_memory(spare));
    }
    fn put_out_hung(&mut self, now: Instant, fx: &mut Effects<Mail>) -> bool {
        let mut some = false;
        for i in 0..self.arrays.len() {
            self.with_array(now, ArrayId(i as u16), fx, |a, io| some |= a.put_out_hung(now, io));
        }
        some
    }
}
