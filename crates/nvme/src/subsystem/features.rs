//! Features (NVMe Base 5.27) that the host may get and set.

use super::io::Plan;
use super::table::Completion;
use crate::spec::command::NSID_ALL;
use crate::spec::feature::{self, HOST_BEHAVIOR_BYTES};
use crate::spec::{Sqe, StatusField};
use base::Duration;

/// A controller's features; `Default` is what stands after a reset.
#[derive(Clone, Debug)]
pub(crate) struct Features {
    arbitration: u32,
    error_recovery: u32,
    write_atomicity: u32,
    temperature: [u32; 2],
    queues: u16,
    /// Events that the host wants.
    pub events: u32,
    /// Keep alive timeout; zero is none.
    pub keep_alive: Duration,
    /// Host Behavior Support: ACRE, ETDAS, LBAFEE.
    behavior: [u8; 3],
    discovery: bool,
    /// Events that OAES offers.
    notices: u32,
    host_id: [u8; 16],
}

/// Bytes of Host Behavior Support that mean something.
const BEHAVIORS: usize = 3;
const TEMPERATURE_OVER: u32 = 343;

impl Features {
    pub fn new(
        discovery: bool,
        notices: u32,
        io_queues_max: u16,
        keep_alive: Duration,
        host_id: [u8; 16],
    ) -> Self {
        Self {
            arbitration: 0,
            error_recovery: 0,
            write_atomicity: 0,
            temperature: [TEMPERATURE_OVER, 0],
            queues: io_queues_max,
            events: 0,
            keep_alive,
            behavior: [0; BEHAVIORS],
            discovery,
            notices,
            host_id,
        }
    }
    /// After CC.EN went from 1 to 0. Keep alive belongs to the connection and stays.
    pub fn reset(&mut self, io_queues_max: u16) {
        *self = Self::new(self.discovery, self.notices, io_queues_max, self.keep_alive, self.host_id);
    }
    /// OAES: the notices that a host may ask for.
    pub fn notices(&self) -> u32 {
        self.notices
    }
    fn supported(&self, id: u8) -> bool {
        let both = matches!(id, feature::ASYNC_EVENT | feature::KEEP_ALIVE);
        let io = matches!(
            id,
            feature::ARBITRATION
                | feature::POWER_MANAGEMENT
                | feature::TEMPERATURE_THRESHOLD
                | feature::ERROR_RECOVERY
                | feature::VOLATILE_WRITE_CACHE
                | feature::NUMBER_OF_QUEUES
                | feature::WRITE_ATOMICITY
                | feature::HOST_BEHAVIOR
                | feature::HOST_ID
        );
        both || io && !self.discovery
    }

    /// Get Features, before a buffer is known.
    pub fn plan_get(&self, sqe: &Sqe, io_queues_max: u16) -> Plan {
        let id = (sqe.cdw10.get() & 0xff) as u8;
        // ONCS bit 4 is 0: only current values.
        if sqe.cdw10.get() >> 8 & 7 != 0 || !self.supported(id) {
            return Plan::refuse(StatusField::INVALID_FIELD);
        }
        let queues = u32::from(self.queues.min(io_queues_max) - 1);
        let value = match id {
            feature::ARBITRATION => self.arbitration,
            feature::POWER_MANAGEMENT => 0,
            feature::TEMPERATURE_THRESHOLD => match threshold(sqe.cdw11.get()) {
                Some(at) => self.temperature[at],
                None => return Plan::refuse(StatusField::INVALID_FIELD),
            },
            feature::ERROR_RECOVERY => self.error_recovery,
            feature::VOLATILE_WRITE_CACHE => 1,
            feature::NUMBER_OF_QUEUES => queues | queues << 16,
            feature::WRITE_ATOMICITY => self.write_atomicity,
            feature::ASYNC_EVENT => self.events,
            feature::KEEP_ALIVE => self.keep_alive.as_millis() as u32,
            feature::HOST_BEHAVIOR => return Plan::Give(HOST_BEHAVIOR_BYTES),
            // NVMe Base 5.27.1.25: on fabrics the identifier is always the extended one.
            feature::HOST_ID if sqe.cdw11.get() & 1 == 1 => return Plan::Give(16),
            _ => return Plan::refuse(StatusField::INVALID_FIELD),
        };
        Plan::Answer(Completion::result(value))
    }

    /// Data of Get Features, where `plan_get` asked for a buffer.
    pub fn data(&self, sqe: &Sqe) -> Vec<u8> {
        match (sqe.cdw10.get() & 0xff) as u8 {
            feature::HOST_ID => self.host_id.to_vec(),
            _ => {
                let mut out = vec![0; HOST_BEHAVIOR_BYTES as usize];
                out[..BEHAVIORS].copy_from_slice(&self.behavior);
                out
            }
        }
    }

    /// Set Features.
    pub fn plan_set(&mut self, sqe: &Sqe, io_queues_max: u16) -> Plan {
        let id = (sqe.cdw10.get() & 0xff) as u8;
        let value = sqe.cdw11.get();
        if !self.supported(id) {
            return Plan::refuse(StatusField::INVALID_FIELD);
        }
        if sqe.cdw10.get() & 1 << 31 != 0 {
            return Plan::refuse(StatusField::FEATURE_NOT_SAVEABLE);
        }
        // None of ours belongs to a namespace, error recovery excepted.
        if !matches!(sqe.nsid.get(), 0 | NSID_ALL) && id != feature::ERROR_RECOVERY {
            return Plan::refuse(StatusField::FEATURE_NOT_NAMESPACE);
        }
        let invalid = Plan::refuse(StatusField::INVALID_FIELD);
        match id {
            feature::ARBITRATION => self.arbitration = value,
            // One power state.
            feature::POWER_MANAGEMENT if value & 0x1f != 0 => return invalid,
            feature::POWER_MANAGEMENT => {}
            feature::TEMPERATURE_THRESHOLD => match threshold(value) {
                Some(at) => self.temperature[at] = value & 0xffff,
                None => return invalid,
            },
            // Bit 16: no error for deallocated blocks can be had here.
            feature::ERROR_RECOVERY if value & 1 << 16 != 0 => return invalid,
            feature::ERROR_RECOVERY => self.error_recovery = value & 0xffff,
            feature::VOLATILE_WRITE_CACHE if value & 1 == 1 => {}
            feature::VOLATILE_WRITE_CACHE => return Plan::refuse(StatusField::FEATURE_NOT_CHANGEABLE),
            feature::NUMBER_OF_QUEUES => {
                let (submission, completion) = (value & 0xffff, value >> 16);
                if submission == 0xffff || completion == 0xffff {
                    return invalid;
                }
                let wanted = submission.max(completion) + 1;
                self.queues = wanted.min(u32::from(io_queues_max)) as u16;
                let n = u32::from(self.queues) - 1;
                return Plan::Answer(Completion::result(n | n << 16));
            }
            feature::WRITE_ATOMICITY => self.write_atomicity = value & 1,
            feature::ASYNC_EVENT => {
                // Health warnings (7:0) may always be asked for; notices only as OAES offers them.
                let known = if self.discovery { self.notices } else { self.notices | 0xff };
                if value & !known != 0 {
                    return invalid;
                }
                self.events = value;
            }
            feature::KEEP_ALIVE => self.keep_alive = Duration::from_secs(u64::from(value).div_ceil(1000)),
            feature::HOST_BEHAVIOR => {
                return Plan::Take { min: HOST_BEHAVIOR_BYTES, max: HOST_BEHAVIOR_BYTES };
            }
            // NVMe Base 5.27.1.25: on fabrics, Connect has set it.
            feature::HOST_ID => return Plan::refuse(StatusField::COMMAND_SEQUENCE),
            _ => return invalid,
        }
        Plan::Answer(Completion::GOOD)
    }

    /// The host understands Command Retry Delay (ACRE).
    pub fn retry_delay(&self) -> bool {
        self.behavior[0] == 1
    }
    /// Data of Set Features have come: Host Behavior Support.
    pub fn set_data(&mut self, data: &[u8]) -> Completion {
        let Some(wanted) = data.first_chunk::<BEHAVIORS>().filter(|b| b.iter().all(|b| *b <= 1)) else {
            return Completion::failed(StatusField::INVALID_FIELD.dnr());
        };
        self.behavior = *wanted;
        Completion::GOOD
    }
}

/// Over (0) or under (1) threshold of the composite temperature; we have no other sensor.
fn threshold(cdw11: u32) -> Option<usize> {
    let (sensor, kind) = (cdw11 >> 16 & 0xf, cdw11 >> 20 & 3);
    // Fh: every sensor (Set Features only; harmless to ask).
    (matches!(sensor, 0 | 0xf) && kind < 2).then_some(kind as usize)
}
