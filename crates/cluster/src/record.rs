//! The system record: docs/formats/system.md. One is decided for each epoch.

use base::codec::{Malformed, Reader, Writer};
use base::{FenceKey, Uuid};

/// Heads of a system.
pub const HEADS: usize = 2;
/// Most voters.
pub const VOTERS_MAX: usize = 7;
/// Longest name of a head, bytes.
pub const NAME_MAX: usize = 64;
/// Longest record, bytes: two fit a block, beside its fields.
pub const SYSTEM_RECORD_BYTES_MAX: usize = 1024;

/// A head of a system: a (0) or b (1), for life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HeadNo {
    /// Number 0, the one that made the system.
    A,
    /// Number 1.
    B,
}

impl HeadNo {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            HeadNo::A => HeadNo::B,
            HeadNo::B => HeadNo::A,
        }
    }
    /// 0 or 1.
    pub fn index(self) -> usize {
        self as usize
    }
    /// What people call it where it has no name: `a` made the system, `b` joined it.
    pub fn letter(self) -> &'static str {
        match self {
            HeadNo::A => "a",
            HeadNo::B => "b",
        }
    }
    /// The head with this number.
    pub fn from_number(n: u8) -> Option<Self> {
        match n {
            0 => Some(HeadNo::A),
            1 => Some(HeadNo::B),
            _ => None,
        }
    }
}

/// What a head is to the system.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HeadState {
    /// There is none of this number.
    #[default]
    None,
    /// It may read and write what the system has.
    In,
    /// It goes, in order; until then it is in.
    Leaving,
    /// It may not, and its key is to be on no drive.
    Out,
}

/// A head in the system record.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HeadRow {
    /// What it is.
    pub state: HeadState,
    /// The epoch that let it in; its key is made of it.
    pub since: u64,
    /// Random name of the process that was let in.
    pub life: u64,
    /// SHA-256 of its certificate.
    pub certificate: [u8; 32],
    /// What people call it.
    pub name: String,
}

/// A place where each head has a block that both can read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Voter {
    /// The state directory of a head; the other reaches it by the link.
    Directory(HeadNo),
    /// A drive.
    Drive(Uuid),
}

impl Voter {
    /// The drive, if it is one.
    pub fn drive(&self) -> Option<Uuid> {
        match self {
            Voter::Drive(uuid) => Some(*uuid),
            Voter::Directory(_) => None,
        }
    }
}

/// Which heads are in, which one leads, and which drives vote on the next record.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SystemRecord {
    /// The system.
    pub system: Uuid,
    /// From 1; the newest counts.
    pub epoch: u64,
    /// Which heads have the latest hosts, portals and lists of pools in their state directories: a head without them does not lead.
    pub latest: [bool; HEADS],
    /// The epoch of the last decision that was made because hosts or portals have changed, 0: none. A state directory that knows of
    /// none as new is an older copy.
    pub changed: u64,
    /// What both heads can do.
    pub features: u16,
    /// The head that changes what lies on the drives.
    pub leader: HeadNo,
    /// Both heads, by their numbers.
    pub heads: [HeadRow; HEADS],
    /// Who votes on the next record: sorted, no two the same.
    pub voters: Vec<Voter>,
}

impl SystemRecord {
    /// The row of a head.
    pub fn head(&self, head: HeadNo) -> &HeadRow {
        &self.heads[head.index()]
    }
    /// Whether a head may read and write what the system has.
    pub fn is_in(&self, head: HeadNo) -> bool {
        matches!(self.head(head).state, HeadState::In | HeadState::Leaving)
    }
    /// Whether this process is the head that is in.
    pub fn is_in_as(&self, head: HeadNo, life: u64) -> bool {
        self.is_in(head) && self.head(head).life == life
    }
    /// Votes that decide.
    pub fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }
    /// The key by which drives know a head, persistent reservations; None for one that was never in.
    pub fn key(&self, head: HeadNo) -> Option<FenceKey> {
        let since = self.head(head).since;
        (self.head(head).state != HeadState::None).then(|| key(self.system, head, since))
    }
    /// The key under which a head that is not in is registered with drives: it votes there, and does nothing else.
    pub fn key_outside(&self, head: HeadNo) -> FenceKey {
        key(self.system, head, 0)
    }
    /// The record that every system begins with: head a alone, of a process that is none.
    pub fn founding(system: Uuid) -> Self {
        let a = HeadRow { state: HeadState::In, since: 1, life: 1, ..HeadRow::default() };
        let voters = vec![Voter::Directory(HeadNo::A)];
        let heads = [a, HeadRow::default()];
        let (latest, leader) = ([true, false], HeadNo::A);
        Self { system, epoch: 1, latest, changed: 0, features: 0, leader, heads, voters }
    }
    /// The record that a head proposes next: the same, of the next epoch.
    #[must_use]
    pub fn next(&self) -> Self {
        Self { epoch: self.epoch + 1, ..self.clone() }
    }
    /// The next record, by which a head is in, as this process.
    #[must_use]
    pub fn with(&self, head: HeadNo, life: u64) -> Self {
        let mut next = self.next();
        let row = &mut next.heads[head.index()];
        row.state = HeadState::In;
        row.since = next.epoch;
        row.life = life;
        next
    }
    /// The next record, by which one head leads alone and the other is out. What that one keeps of hosts and portals is old from then
    /// on, if what the first one keeps is not.
    #[must_use]
    pub fn without(&self, other: HeadNo) -> Self {
        let mut next = self.next();
        let row = &mut next.heads[other.index()];
        if row.state != HeadState::None {
            row.state = HeadState::Out;
        }
        next.leader = other.other();
        next.latest[other.index()] &= !next.latest[other.other().index()];
        next
    }
    /// The next record, by which there is no such head any more: the other one is left alone, and votes alone.
    #[must_use]
    pub fn removed(&self, other: HeadNo) -> Self {
        let mut next = self.without(other);
        // Its last process is out for good, and is known by its name.
        let row = &mut next.heads[other.index()];
        *row = HeadRow { life: row.life, ..HeadRow::default() };
        next.latest[other.index()] = false;
        next.voters = vec![Voter::Directory(other.other())];
        next
    }
    /// The next record, by which a head has the latest hosts and portals.
    #[must_use]
    pub fn with_latest(&self, head: HeadNo) -> Self {
        let mut next = self.next();
        next.latest[head.index()] = true;
        next
    }
    /// Whether a head has the latest hosts and portals.
    pub fn has_latest(&self, head: HeadNo) -> bool {
        self.latest[head.index()]
    }
    /// The next record, by which this process leads alone: the other head was not there.
    #[must_use]
    pub fn led_by(&self, head: HeadNo, life: u64, name: &str) -> Self {
        let mut next = self.without(head.other());
        let row = &mut next.heads[head.index()];
        row.state = HeadState::In;
        row.since = next.epoch;
        row.life = life;
        row.name = name.into();
        next
    }
    pub(crate) fn encode(&self, w: &mut Writer) {
        assert!(self.voters.len() <= VOTERS_MAX, "a record within its limits");
        w.bytes(&self.system.0).u64(self.epoch);
        w.u8(u8::from(self.latest[0]) | u8::from(self.latest[1]) << 1);
        w.u64(self.changed).u16(self.features).u8(self.leader as u8);
        for head in &self.heads {
            assert!(head.name.len() <= NAME_MAX, "names are short");
            let state = match head.state {
                HeadState::None => 0,
                HeadState::In => 1,
                HeadState::Leaving => 2,
                HeadState::Out => 3,
            };
            w.u8(state).u64(head.since).u64(head.life).bytes(&head.certificate).text(&head.name);
        }
        w.u8(self.voters.len() as u8);
        for voter in &self.voters {
            match voter {
                Voter::Directory(head) => w.u8(*head as u8).bytes(&[0; 16]),
                Voter::Drive(uuid) => w.u8(2).bytes(&uuid.0),
            };
        }
    }
    /// Its bytes, as in a block and on the link.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::default();
        self.encode(&mut w);
        assert!(w.0.len() <= SYSTEM_RECORD_BYTES_MAX, "the limits fit");
        w.0
    }
    /// Reads what `to_bytes` wrote, to its last byte.
    ///
    /// # Errors
    /// These bytes are no record.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader(bytes);
        let system = Uuid(r.array()?);
        let epoch = r.u64()?;
        let latest = match r.u8()? {
            bits @ 0..=3 => [bits & 1 == 1, bits & 2 == 2],
            _ => return Err(Malformed),
        };
        let (changed, features) = (r.u64()?, r.u16()?);
        let leader = HeadNo::from_number(r.u8()?).ok_or(Malformed)?;
        let mut heads = [HeadRow::default(), HeadRow::default()];
        for head in &mut heads {
            head.state = match r.u8()? {
                0 => HeadState::None,
                1 => HeadState::In,
                2 => HeadState::Leaving,
                3 => HeadState::Out,
                _ => return Err(Malformed),
            };
            head.since = r.u64()?;
            head.life = r.u64()?;
            head.certificate = r.array()?;
            head.name = r.text()?;
            if head.name.len() > NAME_MAX {
                return Err(Malformed);
            }
        }
        let count = usize::from(r.u8()?);
        if !(1..=VOTERS_MAX).contains(&count) {
            return Err(Malformed);
        }
        let mut voters = Vec::with_capacity(count);
        for _ in 0..count {
            let (kind, uuid) = (r.u8()?, Uuid(r.array()?));
            voters.push(match (kind, HeadNo::from_number(kind)) {
                (2, _) if !uuid.is_nil() => Voter::Drive(uuid),
                (_, Some(head)) if uuid.is_nil() => Voter::Directory(head),
                _ => return Err(Malformed),
            });
        }
        let sorted = voters.is_sorted_by(|a, b| a < b);
        // Behind the last number there is no next one.
        if epoch == 0 || epoch == u64::MAX || changed > epoch || !sorted || !r.0.is_empty() {
            return Err(Malformed);
        }
        Ok(Self { system, epoch, latest, changed, features, leader, heads, voters })
    }
}

/// A name of a head, cut to what a record holds.
pub fn short_name(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_MAX)].to_string()
}

/// The key of a head that an epoch let in: docs/formats/system.md.
fn key(system: Uuid, head: HeadNo, since: u64) -> FenceKey {
    let [a, b, c, ..] = system.0;
    let low = since as u32 & 0x7fff_ffff | (head as u32) << 31;
    let number = u64::from_be_bytes([0x4d, a, b, c, 0, 0, 0, 0]) | u64::from(low);
    FenceKey::new(number).expect("its first byte is not zero")
}

/// Whether both keys are of one head of one system, of whatever epochs.
pub fn are_of_one_head(a: FenceKey, b: FenceKey) -> bool {
    (a.get() ^ b.get()) >> 31 == 0
}

/// Whether this is the key of a head that is not in.
pub fn is_outside(key: FenceKey) -> bool {
    key.get() & 0x7fff_ffff == 0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn record(epoch: u64) -> SystemRecord {
        let row = |since, name: &str| HeadRow {
            state: HeadState::In,
            since,
            life: 77 + since,
            certificate: [since as u8; 32],
            name: name.into(),
        };
        SystemRecord {
            system: Uuid([7; 16]),
            epoch,
            latest: [true, true],
            changed: 3,
            features: 1,
            leader: HeadNo::A,
            heads: [row(1, "a"), row(2, "b")],
            voters: vec![
                Voter::Directory(HeadNo::A),
                Voter::Directory(HeadNo::B),
                Voter::Drive(Uuid([9; 16])),
            ],
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_is() {
        let r = record(5);
        let bytes = r.to_bytes();
        assert_eq!(SystemRecord::from_bytes(&bytes), Ok(r));
        for n in 0..bytes.len() {
            assert!(SystemRecord::from_bytes(&bytes[..n]).is_err(), "cut at {n}");
        }
        assert!(SystemRecord::from_bytes(&[&bytes[..], &[0]].concat()).is_err(), "with a byte too many");
        let mut twice = record(5);
        twice.voters.push(Voter::Drive(Uuid([9; 16])));
        assert!(SystemRecord::from_bytes(&twice.to_bytes()).is_err(), "who votes twice");
        let early = SystemRecord { changed: 6, ..record(5) };
        assert!(SystemRecord::from_bytes(&early.to_bytes()).is_err(), "a change to come");
    }

    #[test]
    fn the_longest_record_fits() {
        let mut r = record(u64::MAX - 1);
        for head in &mut r.heads {
            head.name = "n".repeat(NAME_MAX);
        }
        r.voters.extend((10..14).map(|n| Voter::Drive(Uuid([n; 16]))));
        assert_eq!((r.voters.len(), SystemRecord::from_bytes(&r.to_bytes())), (VOTERS_MAX, Ok(r.clone())));
    }

    #[test]
    fn a_name_is_cut_between_characters() {
        assert_eq!(short_name("shelf-left"), "shelf-left");
        assert_eq!(short_name(&"n".repeat(65)), "n".repeat(64));
        // 21 times 3 bytes are 63.
        assert_eq!(short_name(&"\u{20ac}".repeat(60)), "\u{20ac}".repeat(21));
    }

    #[test]
    fn every_head_and_every_time_it_is_let_in_has_a_key_of_its_own() {
        let r = record(5);
        let again = r.with(HeadNo::B, 1);
        let keys = [r.key(HeadNo::A), r.key(HeadNo::B), again.key(HeadNo::B)];
        assert_eq!(
            keys.map(|k| format!("{:016x}", k.expect("both were in").get())),
            ["4d07070700000001", "4d07070780000002", "4d07070780000006"]
        );
        let mut alone = r.clone();
        alone.heads[1] = HeadRow::default();
        assert_eq!(alone.key(HeadNo::B), None);
        let outside = r.key_outside(HeadNo::B);
        assert_eq!(format!("{:016x}", outside.get()), "4d07070780000000");
        let [a, b, again] = keys.map(|k| k.expect("both were in"));
        assert!(are_of_one_head(b, again) && are_of_one_head(b, outside) && !are_of_one_head(a, b));
        assert!(is_outside(outside) && !is_outside(b));
    }

    #[test]
    fn a_head_that_is_put_out_leads_no_more() {
        let next = record(5).without(HeadNo::A);
        assert_eq!((next.epoch, next.leader), (6, HeadNo::B));
        assert_eq!(next.latest, [false, true]);
        let behind = SystemRecord { latest: [true, false], ..record(5) };
        assert_eq!(behind.without(HeadNo::A).latest, [true, false], "nobody else has it");
        assert!(!next.is_in(HeadNo::A) && next.is_in_as(HeadNo::B, 79) && !next.is_in_as(HeadNo::B, 80));
    }
}
