//! What two shards of two heads say to each other: docs/formats/link.md, "Data connections".
//!
//! ```text
//! greeting ─▶ ◀─ greeting, then messages both ways: a header of 64 bytes, and the data of a write or of a read's answer
//! ```

use crate::admission::caps::{self, Cost};
use crate::admission::scheduler::Whose;
use crate::layout::ArrayId;
use array::{ArrayCommand, Kind};
use base::codec::Malformed;
use base::crc::crc32c;
use base::{Slice, Status, VolumeId};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of a greeting.
pub const GREETING_BYTES: usize = 96;
const MAGIC: [u8; 8] = *b"MRFARDL1";
const PROOF_AT: usize = 64;
const CRC_AT: usize = 60;

const RUN: u8 = 1;
const RAN: u8 = 2;
const ABORT: u8 = 3;
const HEAL: u8 = 4;
const CLEARED: u8 = 5;
const CREDIT: u8 = 6;
const LEASE: u8 = 7;
const LEASED: u8 = 8;

const FUA: u8 = 1;
const LITTLE: u8 = 2;
const ZEROES: u8 = 4;
const KEPT: u8 = 8;

/// What both sides of a pair of heads know: connections between their shards are good for this pair of processes alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pairing {
    /// A secret of the control connection (docs/formats/link.md, "Path").
    pub secret: [u8; 32],
    /// Lives of this head's process and of the other one's.
    pub lives: [u64; 2],
    /// The epoch that let the second one in.
    pub epoch: u64,
}

/// The first words of each side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// Number of the shard that says so, at its head.
    pub from: u16,
    /// And of the shard that it is said to, at the other one.
    pub to: u16,
    /// Bytes of memory that `from` has set aside for what `to` sends, and that are free.
    pub credit: u32,
}

impl Greeting {
    /// Its bytes.
    pub fn encode(&self, pairing: &Pairing) -> [u8; GREETING_BYTES] {
        let mut out = [0; GREETING_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        let [own, other] = pairing.lives;
        for (at, n) in [(8, own), (16, other), (24, pairing.epoch)] {
            out[at..at + 8].copy_from_slice(&n.to_le_bytes());
        }
        out[32..34].copy_from_slice(&self.from.to_le_bytes());
        out[34..36].copy_from_slice(&self.to.to_le_bytes());
        out[36..40].copy_from_slice(&self.credit.to_le_bytes());
        let proof = keyed(pairing, &out[..PROOF_AT]).finalize().into_bytes();
        out[PROOF_AT..].copy_from_slice(&proof);
        out
    }
    /// The other side's greeting.
    ///
    /// # Errors
    /// It is none, or not of this pair of processes.
    pub fn decode(bytes: &[u8; GREETING_BYTES], pairing: &Pairing) -> Result<Self, Malformed> {
        let (said, proof) = bytes.split_at(PROOF_AT);
        keyed(pairing, said).verify_slice(proof).map_err(|_| Malformed)?;
        let u64_at = |at: usize| u64::from_le_bytes(said[at..at + 8].try_into().expect("eight bytes"));
        let u16_at = |at: usize| u16::from_le_bytes([said[at], said[at + 1]]);
        let [own, other] = pairing.lives;
        let ours = said[..8] == MAGIC && u64_at(8) == other && u64_at(16) == own;
        if !ours || u64_at(24) != pairing.epoch {
            return Err(Malformed);
        }
        let credit = u32::from_le_bytes(said[36..40].try_into().expect("four bytes"));
        Ok(Self { from: u16_at(32), to: u16_at(34), credit })
    }
}

fn keyed(pairing: &Pairing, said: &[u8]) -> Hmac<Sha256> {
    let mac = Hmac::<Sha256>::new_from_slice(&pairing.secret).expect("a key may have any length");
    mac.chain_update(said)
}

/// A message. Its data follow its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Please carry out this command on a region that is yours; a write brings its data.
    Run {
        /// The sender's name for it.
        flight: u32,
        /// The array.
        array: ArrayId,
        /// The map by which it is the receiver's.
        map: u32,
        /// The command. `data` says nothing but its length.
        command: ArrayCommand,
        /// For whom. `shard` says nothing.
        whose: Whose,
    },
    /// It ended; a read that went well brings its data.
    Ran {
        /// The receiver's name for it.
        flight: u32,
        /// How.
        status: Status,
        /// How long ago the drive operation had started that ended it, nanoseconds.
        age: u64,
        /// What a read found is nothing but zeroes.
        zeroes: bool,
        /// A drive keeps its memory: `Credit` follows.
        kept: bool,
        /// Bytes that follow.
        data: u32,
    },
    /// Please do not start it if it has not begun.
    Abort {
        /// The sender's name for it.
        flight: u32,
        /// The array.
        array: ArrayId,
    },
    /// Blocks of a region that is yours could not be read on this leg, and were on another.
    Heal {
        /// The array.
        array: ArrayId,
        /// The map by which it is the receiver's.
        map: u32,
        /// First byte in the data space.
        at: u64,
        /// Bytes.
        len: u64,
        /// The leg.
        leg: u8,
    },
    /// A region has no uncleared piece since this mark.
    Cleared {
        /// The array.
        array: ArrayId,
        /// The map by which it is the sender's.
        map: u32,
        /// The region.
        region: u32,
        /// The mark.
        marks: u32,
    },
    /// So much of what a drive had kept is free again.
    Credit {
        /// Bytes.
        bytes: u32,
    },
    /// Commands of a capped volume wait here, and you count what it does. `Leased` follows.
    Lease {
        /// The volume.
        volume: VolumeId,
        /// Which of them.
        kind: caps::Kind,
        /// What they are.
        cost: Cost,
    },
    /// They may start.
    Leased {
        /// The volume.
        volume: VolumeId,
        /// Which of them.
        kind: caps::Kind,
        /// What they are.
        cost: Cost,
    },
}

impl Message {
    /// Bytes that follow the header.
    pub fn data(&self) -> u32 {
        match self {
            Message::Run { command, .. } if command.kind == Kind::Write => command.len as u32,
            Message::Ran { data, .. } => *data,
            _ => 0,
        }
    }
    /// Its header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(12, &self.data().to_le_bytes());
        match *self {
            Message::Run { flight, array, map, command, whose } => {
                let flags = if command.fua { FUA } else { 0 } | if whose.little { LITTLE } else { 0 };
                put(0, &[RUN, kind_code(command.kind)]);
                put(2, &array.0.to_le_bytes());
                put(4, &flight.to_le_bytes());
                put(8, &map.to_le_bytes());
                put(16, &command.at.to_le_bytes());
                put(24, &command.len.to_le_bytes());
                put(32, &whose.volume.0.to_le_bytes());
                put(36, &whose.host.to_le_bytes());
                put(40, &whose.link.to_le_bytes());
                put(44, &[flags]);
            }
            Message::Ran { flight, status, age, zeroes, kept, .. } => {
                let (code, more) = status_code(status);
                let flags = if zeroes { ZEROES } else { 0 } | if kept { KEPT } else { 0 };
                put(0, &[RAN, code]);
                put(4, &flight.to_le_bytes());
                put(16, &age.to_le_bytes());
                put(32, &more.to_le_bytes());
                put(44, &[flags]);
            }
            Message::Abort { flight, array } => {
                put(0, &[ABORT]);
                put(2, &array.0.to_le_bytes());
                put(4, &flight.to_le_bytes());
            }
            Message::Heal { array, map, at, len, leg } => {
                put(0, &[HEAL]);
                put(2, &array.0.to_le_bytes());
                put(8, &map.to_le_bytes());
                put(16, &at.to_le_bytes());
                put(24, &len.to_le_bytes());
                put(45, &[leg]);
            }
            Message::Cleared { array, map, region, marks } => {
                put(0, &[CLEARED]);
                put(2, &array.0.to_le_bytes());
                put(8, &map.to_le_bytes());
                put(32, &region.to_le_bytes());
                put(36, &marks.to_le_bytes());
            }
            Message::Credit { bytes } => {
                put(0, &[CREDIT]);
                put(32, &bytes.to_le_bytes());
            }
            Message::Lease { volume, kind, cost } | Message::Leased { volume, kind, cost } => {
                let code = if matches!(self, Message::Lease { .. }) { LEASE } else { LEASED };
                put(0, &[code, if kind == caps::Kind::Prompt { 1 } else { 0 }]);
                put(16, &cost.commands.to_le_bytes());
                put(24, &cost.bytes.to_le_bytes());
                put(32, &volume.0.to_le_bytes());
            }
        }
        let crc = crc32c(&out);
        out[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        out
    }
    /// What a header says.
    ///
    /// # Errors
    /// It is damaged, or says something that nobody means.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Malformed> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let mut zeroed = *bytes;
        zeroed[CRC_AT..].fill(0);
        if crc32c(&zeroed) != u32_at(CRC_AT) {
            return Err(Malformed);
        }
        let (array, flight, map, flags) = (ArrayId(u16_at(2)), u32_at(4), u32_at(8), bytes[44]);
        let message = match bytes[0] {
            RUN => {
                let (kind, at, len) = (kind_of(bytes[1])?, u64_at(16), u64_at(24));
                let moves = matches!(kind, Kind::Read | Kind::Write);
                if moves && !(1..=u64::from(array::TRANSFER_MAX)).contains(&len) {
                    return Err(Malformed);
                }
                let data = Slice::new(0, if moves { len as u32 } else { 0 });
                let command = ArrayCommand { kind, at, len, data, fua: flags & FUA != 0 };
                let (volume, host, link) = (VolumeId(u32_at(32)), u32_at(36), u32_at(40));
                let whose = Whose { volume, host, shard: 0, link, little: flags & LITTLE != 0 };
                Message::Run { flight, array, map, command, whose }
            }
            RAN => Message::Ran {
                flight,
                status: status_of(bytes[1], u32_at(32))?,
                age: u64_at(16),
                zeroes: flags & ZEROES != 0,
                kept: flags & KEPT != 0,
                data: u32_at(12),
            },
            ABORT => Message::Abort { flight, array },
            HEAL => Message::Heal { array, map, at: u64_at(16), len: u64_at(24), leg: bytes[45] },
            CLEARED => Message::Cleared { array, map, region: u32_at(32), marks: u32_at(36) },
            CREDIT => Message::Credit { bytes: u32_at(32) },
            LEASE | LEASED => {
                let kind = match bytes[1] {
                    0 => caps::Kind::Data,
                    1 => caps::Kind::Prompt,
                    _ => return Err(Malformed),
                };
                let (volume, cost) = (VolumeId(u32_at(32)), Cost { commands: u64_at(16), bytes: u64_at(24) });
                if bytes[0] == LEASE {
                    Message::Lease { volume, kind, cost }
                } else {
                    Message::Leased { volume, kind, cost }
                }
            }
            _ => return Err(Malformed),
        };
        if message.data() == u32_at(12) { Ok(message) } else { Err(Malformed) }
    }
}

fn kind_code(kind: Kind) -> u8 {
    match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        Kind::WriteZeroes => 2,
        Kind::Deallocate => 3,
        Kind::Flush => 4,
    }
}

fn kind_of(code: u8) -> Result<Kind, Malformed> {
    Ok(match code {
        0 => Kind::Read,
        1 => Kind::Write,
        2 => Kind::WriteZeroes,
        3 => Kind::Deallocate,
        4 => Kind::Flush,
        _ => return Err(Malformed),
    })
}

/// A status, and what it says beside.
fn status_code(status: Status) -> (u8, u32) {
    let code = match status {
        Status::Good => 0,
        Status::OutOfRange => 1,
        Status::Medium => 2,
        Status::Miscompare { at } => return (3, at),
        Status::NotReady => 4,
        Status::NoVolume => 5,
        Status::Aborted => 6,
        Status::NoSpace => 7,
        Status::WriteProtected => 8,
        Status::Internal => 9,
        Status::Withheld => 10,
        Status::Moved => 11,
    };
    (code, 0)
}

fn status_of(code: u8, more: u32) -> Result<Status, Malformed> {
    Ok(match code {
        0 => Status::Good,
        1 => Status::OutOfRange,
        2 => Status::Medium,
        3 => Status::Miscompare { at: more },
        4 => Status::NotReady,
        5 => Status::NoVolume,
        6 => Status::Aborted,
        7 => Status::NoSpace,
        8 => Status::WriteProtected,
        9 => Status::Internal,
        10 => Status::Withheld,
        11 => Status::Moved,
        _ => return Err(Malformed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    fn pairing() -> Pairing {
        Pairing { secret: [7; 32], lives: [11, 22], epoch: 3 }
    }

    fn messages() -> Vec<Message> {
        let whose = Whose { volume: VolumeId(9), host: 4, shard: 0, link: 17, little: true };
        let command = |kind, len: u64, data| ArrayCommand {
            kind,
            at: 1 << 40,
            len,
            data: Slice::new(0, data),
            fua: true,
        };
        let run = |command| Message::Run { flight: 5, array: ArrayId(2), map: 6, command, whose };
        let ran = |status, data| Message::Ran { flight: 5, status, age: 77, zeroes: true, kept: true, data };
        vec![
            run(command(Kind::Write, 4096, 4096)),
            run(command(Kind::Read, 1 << 20, 1 << 20)),
            run(command(Kind::Deallocate, 1 << 30, 0)),
            run(command(Kind::WriteZeroes, 512, 0)),
            run(command(Kind::Flush, 0, 0)),
            ran(Status::Good, 4096),
            ran(Status::Miscompare { at: 8 }, 0),
            ran(Status::Withheld, 0),
            ran(Status::Moved, 0),
            Message::Abort { flight: 5, array: ArrayId(2) },
            Message::Heal { array: ArrayId(2), map: 6, at: 1 << 33, len: 4096, leg: 3 },
            Message::Cleared { array: ArrayId(2), map: 6, region: 8, marks: 9 },
            Message::Lease {
                volume: VolumeId(3),
                kind: caps::Kind::Data,
                cost: Cost { commands: 4, bytes: 1 << 33 },
            },
            Message::Leased {
                volume: VolumeId(3),
                kind: caps::Kind::Prompt,
                cost: Cost { commands: 5, bytes: 0 },
            },
            Message::Credit { bytes: 4096 },
        ]
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for message in messages() {
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
        assert_eq!(messages()[0].data(), 4096);
        assert_eq!(messages()[1].data(), 0, "a read asks, and its answer brings the data");
    }

    #[test]
    fn a_changed_bit_of_a_header_is_noticed_and_a_command_that_nobody_means_is_refused() {
        for message in messages() {
            for bit in 0..8 * HEADER_BYTES {
                let mut bytes = message.encode();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Message::decode(&bytes), Err(Malformed), "bit {bit} of {message:?}");
            }
        }
        let mut rng = Prng::new(1);
        for _ in 0..1000 {
            let bytes: [u8; HEADER_BYTES] = core::array::from_fn(|_| rng.next_u64() as u8);
            assert_eq!(Message::decode(&bytes), Err(Malformed));
        }
        let mut long = messages()[0];
        if let Message::Run { command, .. } = &mut long {
            command.len = u64::from(array::TRANSFER_MAX) + 1;
        }
        assert_eq!(Message::decode(&long.encode()), Err(Malformed));
    }

    #[test]
    fn who_is_not_of_this_pair_of_processes_is_not_understood() {
        let greeting = Greeting { from: 1, to: 2, credit: 1 << 20 };
        let theirs = Pairing { lives: [22, 11], ..pairing() };
        let said = greeting.encode(&theirs);
        assert_eq!(Greeting::decode(&said, &pairing()), Ok(greeting));
        for other in [
            Pairing { secret: [8; 32], ..pairing() },
            Pairing { lives: [11, 23], ..pairing() },
            Pairing { lives: [12, 22], ..pairing() },
            Pairing { epoch: 4, ..pairing() },
        ] {
            assert_eq!(Greeting::decode(&said, &other), Err(Malformed), "{other:?}");
        }
        for bit in 0..8 * GREETING_BYTES {
            let mut bytes = said;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Greeting::decode(&bytes, &pairing()), Err(Malformed), "bit {bit}");
        }
        // Said back, it is not taken for an answer.
        assert_eq!(Greeting::decode(&said, &theirs), Err(Malformed));
    }
}
