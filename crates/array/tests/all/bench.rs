//! An array, its effects as they come, and drives that do what the test says.

use array::*;
use base::*;

pub const MIB: u64 = 1 << 20;
/// Where the uncleared map lies on all drives.
pub const MAP_AT: u64 = 300 * MIB;

#[derive(Default)]
pub struct Io {
    pub ops: Vec<DriveOp>,
    pub done: Vec<(u64, Status)>,
    pub notes: Vec<Note>,
    pub scratch: Vec<u8>,
    pub spare: Option<Slice>,
    /// What reads that are late may be read into, too.
    pub hedges: Vec<Slice>,
    /// What became of hedges: the buffer, and whether the command is answered from it.
    pub hedged: Vec<(Slice, bool)>,
    pub held: Vec<u32>,
    /// Reads that found zeroes without the drives.
    pub zeroed: Vec<u64>,
}

impl ArrayIo for Io {
    fn drive(&mut self, op: DriveOp) {
        self.ops.push(op);
    }
    fn done(&mut self, ticket: Ticket, status: Status) {
        self.done.push((ticket.0, status));
    }
    fn zeroes(&mut self, ticket: Ticket, _: Slice) {
        self.zeroed.push(ticket.0);
    }
    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }
    fn bytes_mut(&mut self, data: Slice) -> &mut [u8] {
        &mut self.scratch[data.at as usize..][..data.len as usize]
    }
    fn replace_buffer(&mut self, _: Ticket, _: Slice) -> Option<Slice> {
        self.spare.take()
    }
    fn same(&mut self, a: Slice, b: Slice) -> bool {
        let bytes = |s: Slice| &self.scratch[s.at as usize..][..s.len as usize];
        bytes(a) == bytes(b)
    }
    fn hedge_buffer(&mut self, _: Ticket, _: Slice) -> Option<Slice> {
        self.hedges.pop()
    }
    fn answer_from_hedge(&mut self, _: Ticket, _: Slice, hedge: Slice, _: bool) -> bool {
        self.hedged.push((hedge, true));
        true
    }
    fn drop_hedge(&mut self, _: Ticket, hedge: Slice) {
        self.hedged.push((hedge, false));
    }
    fn hold(&mut self, tag: u32, _: Slice) {
        self.held.push(tag);
    }
}

pub struct Bench {
    pub array: Array,
    pub io: Io,
    pub now: Instant,
}

pub fn leg(drive: u16, state: LegState) -> Option<Leg> {
    Some(Leg {
        drive: DriveId(drive),
        state,
        volatile_cache: true,
        deallocate_zeroes: drive != 9,
        map_at: MAP_AT,
    })
}

pub fn members(epoch: u64, states: &[LegState]) -> Membership {
    let legs = states.iter().enumerate().map(|(i, s)| leg(i as u16, *s)).collect();
    Membership { epoch, legs }
}

impl Bench {
    pub fn new(states: &[LegState]) -> Self {
        let geometry = Geometry::plan(states.len() > 1, 4 * MIB, 260 * MIB, 65536).expect("fits");
        Self::with(geometry, members(1, states), Bitmap::new(geometry.regions()), false)
    }
    pub fn with(geometry: Geometry, membership: Membership, dirty: Bitmap, unclean: bool) -> Self {
        Self::uncleared(geometry, membership, dirty, unclean, UnclearedMap::none())
    }
    /// On drives that were somebody's before.
    pub fn used(states: &[LegState]) -> Self {
        let geometry = Geometry::plan(states.len() > 1, 4 * MIB, 260 * MIB, 65536).expect("fits");
        let clean = Bitmap::new(geometry.regions());
        Self::uncleared(geometry, members(1, states), clean, false, UnclearedMap::all(&geometry, 1))
    }
    pub fn uncleared(
        geometry: Geometry,
        membership: Membership,
        dirty: Bitmap,
        unclean: bool,
        uncleared: UnclearedMap,
    ) -> Self {
        let array = Array::new(ArrayConfig {
            uuid: Uuid::from_random(1, 2),
            geometry,
            membership,
            shard: 0,
            lanes: Lanes::dealt(1),
            scratch: Slice::new(0, SCRATCH_BYTES),
            dirty,
            unclean,
            uncleared,
            shared: false,
        });
        let io = Io { scratch: vec![0; SCRATCH_BYTES as usize], ..Io::default() };
        let mut bench = Self { array, io, now: Instant(1_000_000_000) };
        bench.timer();
        bench
    }
    pub fn timer(&mut self) {
        self.array.on_timer(self.now, &mut self.io);
    }
    pub fn command(&mut self, ticket: u64, kind: Kind, at: u64, len: u64) {
        let data = if matches!(kind, Kind::Read | Kind::Write) {
            Slice::new(1 << 40, len as u32)
        } else {
            Slice::default()
        };
        let command = ArrayCommand { kind, at, len, data, fua: false };
        self.array.on_command(self.now, Ticket(ticket), command, &mut self.io);
    }
    /// What was asked of the drives since the last call, in short: drive, verb, offset in the data space.
    pub fn asked(&mut self) -> String {
        let geometry = *self.array.geometry();
        let words: Vec<String> = self.io.ops.drain(..).map(|op| self_said(&geometry, &op)).collect();
        words.join(" ")
    }
    /// The same, and all of it ends well.
    pub fn asked_and_ended(&mut self) -> String {
        self.asked_and(Ok(()))
    }
    /// The same, and none of it does.
    pub fn asked_and_failed(&mut self, error: DriveError) -> String {
        self.asked_and(Err(error))
    }
    fn asked_and(&mut self, result: Result<(), DriveError>) -> String {
        let geometry = *self.array.geometry();
        let ops = core::mem::take(&mut self.io.ops);
        let words: Vec<String> = ops.iter().map(|op| self_said(&geometry, op)).collect();
        ops.iter().for_each(|op| self.end(op.token.0, result));
        self.array.check_invariants();
        words.join(" ")
    }
    pub fn end(&mut self, tag: u64, result: Result<(), DriveError>) {
        self.array.on_drive_done(self.now, tag as u32, result, &mut self.io);
    }
    /// Ends everything well until nothing is under way; how many operations that were.
    pub fn run(&mut self) -> usize {
        let mut n = 0;
        while !self.io.ops.is_empty() {
            for op in core::mem::take(&mut self.io.ops) {
                n += 1;
                self.end(op.token.0, Ok(()));
            }
            self.array.check_invariants();
        }
        n
    }
    pub fn done(&mut self) -> Vec<(u64, Status)> {
        core::mem::take(&mut self.io.done)
    }
    pub fn tags(&mut self) -> Vec<u64> {
        self.io.ops.drain(..).map(|op| op.token.0).collect()
    }
}

pub fn self_said(geometry: &Geometry, op: &DriveOp) -> String {
    let verb = match op.kind {
        DriveOpKind::Read => "r",
        DriveOpKind::Write if op.at >= MAP_AT => return format!("{}:map", op.drive),
        DriveOpKind::Write if op.at < geometry.data_at => return format!("{}:bitmap", op.drive),
        DriveOpKind::Write => "w",
        DriveOpKind::WriteZeroes => "z",
        DriveOpKind::Deallocate => "d",
        DriveOpKind::Flush => return format!("{}:f", op.drive),
    };
    format!("{}:{verb}{}", op.drive, op.at - geometry.data_at)
}
