//! Words about load: why a plan is not carried out, why a run ended early, what a read found.

use super::protocol::{iscsi_error, nvme_error};
use base::NetError;
use engine::inner::{Refusal, WrongByte};
use load::stamp::{Mismatch, SECTOR};
use load::{Down, IO_BYTES_MAX, PlanFault, RunFault, WrongRead};

/// Why a plan cannot be carried out; begins with the field.
pub fn plan_fault(fault: &PlanFault) -> String {
    use PlanFault as F;
    match fault {
        F::Busy => "a run is under way".into(),
        F::NoSessions => "sessions: at least one is needed".into(),
        F::IoBytes { bytes } => {
            format!("io_bytes: {bytes} is not a multiple of 512 from 512 to {IO_BYTES_MAX}")
        }
        F::ReadPercent { percent } => format!("read_percent: {percent} is more than 100"),
        F::RegionUneven => "region: begin and length must be multiples of 512".into(),
        F::Discovery => "sessions: a discovery session carries no load".into(),
        F::Depth { depth } => format!("depth: {depth} is not 1 to 1023"),
        F::Queues { queues } => format!("queues: {queues} is not 1 to 1024"),
        F::NqnLong => "host_nqn, subsystem: an NQN has at most 223 bytes".into(),
        F::InitiatorName => "initiator: an iSCSI name has 1 to 223 bytes".into(),
        F::MutualAlone => "mutual: mutual CHAP needs chap too".into(),
        F::Buffers { bytes, there_bytes } => format!(
            "depth, io_bytes: {} MiB of buffers are needed, {} MiB are there",
            bytes >> 20,
            there_bytes >> 20
        ),
        F::Connections { wanted, possible } => {
            format!("sessions: {wanted} connections are needed, {possible} can be made")
        }
        F::SizesDiffer => "sessions: they lead to volumes of different size".into(),
        F::IoBlock { bytes, block_bytes } => {
            format!("io_bytes: {bytes} is not a multiple of the volume's block of {block_bytes} bytes")
        }
        F::RegionBeyond { at, bytes, volume_bytes } => {
            format!("region: {at} + {bytes} bytes do not fit the volume of {volume_bytes} bytes")
        }
        F::RegionSmall { bytes, io_bytes } => {
            format!("region: {bytes} bytes hold no operation of {io_bytes} bytes")
        }
        F::ManyCommands { bytes, transfer_bytes } => {
            format!("io_bytes: {bytes} would need too many commands of {transfer_bytes} bytes")
        }
    }
}

/// Why a run ended early.
pub fn run_fault(fault: &RunFault) -> String {
    match fault {
        RunFault::Plan(fault) => plan_fault(fault),
        RunFault::Down { peer, why } => format!("{peer}: {}", down(why)),
    }
}

/// Why a session is down.
pub fn down(why: &Down) -> String {
    match why {
        Down::Stopped => "stopped".into(),
        Down::Unreachable(NetError::Refused) => "nobody listens there".into(),
        Down::Unreachable(e) => format!("no connection: {e:?}"),
        Down::Broken => "the connection broke".into(),
        Down::TimedOut => "no answer in time".into(),
        Down::Reset => "given up".into(),
        Down::Nvme(e) => nvme_error(e),
        Down::Iscsi(e) => iscsi_error(e),
    }
}

/// What a read found.
pub fn wrong_read(w: &WrongRead) -> String {
    format!("{}: {}", w.peer, wrong_byte(w.at, &w.holds, w.written))
}

/// What a load from inside found.
pub fn wrong_inside(w: &WrongByte) -> String {
    wrong_byte(w.at, &w.holds, w.written)
}

/// Why a load from inside cannot be carried out.
pub fn load_refusal(why: Refusal) -> String {
    match why {
        Refusal::NoVolume => "there is no volume to be loaded".into(),
        Refusal::RegionSmall { bytes, io_bytes } => format!(
            "region: {} hold no operation of {} for each shard",
            base::size::print(bytes),
            base::size::print(io_bytes.into())
        ),
        Refusal::TooDeep { depth } => format!("depth: {depth} operations are more than a shard has room for"),
        Refusal::NoMemory => "depth, io_bytes: there is not enough memory for so many operations".into(),
    }
}

/// What was found at a byte of a volume.
fn wrong_byte(at: u64, holds: &Mismatch, written: u64) -> String {
    format!("byte {at} holds {}, version {written} was written", mismatch(holds))
}

fn mismatch(found: &Mismatch) -> String {
    match found {
        Mismatch::Zeroes => "zeroes".into(),
        Mismatch::Other(s) => {
            format!("version {} of byte {} of run {:x}", s.version, s.sector * SECTOR as u64, s.seed)
        }
        Mismatch::Body => "the right stamp with wrong bytes after it".into(),
        Mismatch::Garbage => "no stamp".into(),
    }
}
