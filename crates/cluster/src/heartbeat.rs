//! Heartbeats: docs/formats/system.md, "Heartbeat".

use crate::record::HeadNo;
use base::codec::{Malformed, Reader, Writer};
use base::fence::Process;
use base::record::{Fault, Features, checksum, header, open, seal};
use base::{Duration, Uuid};

const MAGIC: &[u8; 8] = b"MILLBEAT";
/// Bytes of a heartbeat on a drive.
pub const HEARTBEAT_BYTES: usize = 4096;
/// Where the heartbeat of each head lies on a voter drive.
pub const HEARTBEATS_AT: [u64; 2] = [(3 << 20) + 16384, (3 << 20) + 20480];

/// That a head lives, and what it sees.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Heartbeat {
    /// The system.
    pub system: Uuid,
    /// Who.
    pub head: HeadNo,
    /// It has a network on which hosts come.
    pub hosts: bool,
    /// Voter drives that it reaches.
    pub reaches: u16,
    /// Its process.
    pub process: Process,
    /// Random name of its process.
    pub life: u64,
    /// One more each time, of this life.
    pub count: u64,
    /// The epoch that it knows.
    pub epoch: u64,
    /// By how much the silence that makes it suspect the other head is longer than set, as turns or heartbeats were late lately. It travels in
    /// whole milliseconds, rounded up, 65.535 s at most.
    pub slack: Duration,
}

/// Two bytes travel.
const SLACK_MAX: Duration = Duration::from_millis(u16::MAX as u64);

impl Heartbeat {
    /// The fields, as they travel by the link.
    pub fn write(&self, w: &mut Writer) {
        w.bytes(&self.system.0).u8(self.head as u8).u8(u8::from(self.hosts)).u16(self.reaches);
        w.u32(self.process.pid).u64(self.life).u64(self.count).u64(self.epoch).u64(self.process.started);
        w.u16(self.slack.min(SLACK_MAX).as_micros().div_ceil(1000) as u16);
    }
    /// Reads what `write` wrote.
    ///
    /// # Errors
    /// It is none.
    pub fn read(r: &mut Reader) -> Result<Self, Malformed> {
        let system = Uuid(r.array()?);
        let head = HeadNo::from_number(r.u8()?).ok_or(Malformed)?;
        let hosts = r.u8()? & 1 == 1;
        let reaches = r.u16()?;
        let pid = r.u32()?;
        let (life, count, epoch) = (r.u64()?, r.u64()?, r.u64()?);
        let process = Process { pid, started: r.u64()? };
        let slack = Duration::from_millis(r.u16()?.into());
        if life == 0 {
            Err(Malformed)
        } else {
            Ok(Self { system, head, hosts, reaches, process, life, count, epoch, slack })
        }
    }
    /// The block on a drive.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = header(MAGIC, Features::default());
        self.write(&mut w);
        let mut bytes = w.0;
        bytes.resize(HEARTBEAT_BYTES, 0);
        seal(&mut bytes);
        bytes
    }
    /// Reads a block.
    ///
    /// # Errors
    /// There is none, or it is being written.
    pub fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        if bytes.len() != HEARTBEAT_BYTES {
            return Err(Fault::Damaged);
        }
        let (_, mut r) = open(MAGIC, 0, bytes)?.checked(checksum(bytes))?;
        Self::read(&mut r).map_err(|_| Fault::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_is_its_heads_alone_so_that_only_what_forbids_to_read_it_counts() {
        let heartbeat = Heartbeat {
            system: Uuid([3; 16]),
            head: HeadNo::B,
            hosts: true,
            reaches: 3,
            process: Process { pid: 4711, started: 99 },
            life: 5,
            count: 8,
            epoch: 2,
            slack: Duration::from_millis(1700),
        };
        let with = |word: usize| {
            let mut bytes = heartbeat.encode();
            bytes[16 + 8 * word + 7] = 0x80;
            seal(&mut bytes);
            Heartbeat::decode(&bytes)
        };
        assert_eq!((with(0), with(1)), (Ok(heartbeat), Ok(heartbeat)));
        assert_eq!(with(2), Err(Fault::Newer(base::record::Newer::Incompat(1 << 63))));
    }

    #[test]
    fn a_heartbeat_is_read_as_it_was_written_and_any_other_byte_is_damage() {
        let process = Process { pid: 4711, started: 99 };
        let (head, life) = (HeadNo::B, 5);
        let heartbeat = Heartbeat {
            system: Uuid([3; 16]),
            head,
            hosts: true,
            reaches: 3,
            process,
            life,
            count: 8,
            epoch: 2,
            slack: Duration::from_millis(1700),
        };
        let bytes = heartbeat.encode();
        assert_eq!(Heartbeat::decode(&bytes), Ok(heartbeat));
        for at in 8..HEARTBEAT_BYTES {
            let mut rotten = bytes.clone();
            rotten[at] ^= 0x80;
            assert_eq!(Heartbeat::decode(&rotten), Err(Fault::Damaged), "byte {at}");
        }
        assert_eq!(Heartbeat::decode(&[0; HEARTBEAT_BYTES]), Err(Fault::Absent));
        assert_eq!(Heartbeat::decode(&bytes[..100]), Err(Fault::Damaged));
    }
}
