//! Connect: which hosts are let in, to which controller (NVMe Base 6.3).

use super::ConnectionConfig;
use super::table::Completion;
use crate::spec::fabrics::{CATTR_NO_FLOW_CONTROL, CNTLID_DYNAMIC, NQN_MAX};
use crate::spec::{ConnectData, ConnectFields, DISCOVERY_NQN, StatusField, text_of};
use base::view::{LoginName, Principal, Protocol, View};
use base::{Ask, NvmeFault};
use zerocopy::{FromZeros, IntoBytes};

/// A Connect on its way: its command, and its data as they come in.
#[derive(Debug)]
pub(crate) struct Login {
    pub fields: ConnectFields,
    pub data: ConnectData,
    pub principal: Option<Principal>,
    pub discovery: bool,
}

/// Where in the command or its data a parameter is wrong.
fn invalid(in_data: bool, offset: u32) -> Completion {
    let dw0 = offset | u32::from(in_data) << 16;
    Completion { status: StatusField::CONNECT_PARAMETERS.dnr(), dw0, dw1: 0 }
}

const SQSIZE: u32 = 44;
const QID: u32 = 42;
const CNTLID: u32 = 16;
const SUBNQN: u32 = 256;
const HOSTNQN: u32 = 512;
const HOSTID: u32 = 0;

/// Why a Connect was refused.
pub(crate) fn why(refused: &Completion) -> NvmeFault {
    let (status, field) = (refused.status, refused.dw0);
    if status == StatusField::CONNECT_HOST.dnr() {
        NvmeFault::NqnUnknown
    } else if status == StatusField::CONNECT_FORMAT.dnr() {
        NvmeFault::ConnectFormat
    } else if status == StatusField::CONNECT_PARAMETERS.dnr() && field == (SUBNQN | 1 << 16) {
        NvmeFault::OtherSubsystem
    } else if status == StatusField::CONNECT_PARAMETERS.dnr() && field == (HOSTNQN | 1 << 16) {
        NvmeFault::NqnInvalid
    } else if status == StatusField::CONNECT_PARAMETERS.dnr() && field == (HOSTID | 1 << 16) {
        NvmeFault::NoHostId
    } else if status == StatusField::CONNECT_PARAMETERS.dnr() {
        NvmeFault::ConnectParameters
    } else {
        NvmeFault::ConnectData
    }
}

impl Login {
    pub fn new(fields: ConnectFields) -> Box<Self> {
        Box::new(Self { fields, data: ConnectData::new_zeroed(), principal: None, discovery: false })
    }
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.data.as_mut_bytes()
    }
    /// Entries of the queue.
    pub fn entries(&self) -> u16 {
        self.fields.sqsize.get() + 1
    }
    pub fn flow_control(&self) -> bool {
        self.fields.cattr & CATTR_NO_FLOW_CONTROL == 0
    }
    /// The Steward does not know the controller of this I/O queue.
    pub fn unknown_controller() -> Completion {
        invalid(true, CNTLID)
    }
    /// Checks everything that the view knows; the rest is for the Steward.
    pub fn check(&mut self, config: &ConnectionConfig, view: &View) -> Result<Ask, Completion> {
        let f = &self.fields;
        let queue = f.qid.get();
        if f.recfmt.get() != 0 {
            return Err(Completion::failed(StatusField::CONNECT_FORMAT.dnr()));
        }
        let subnqn = nqn(&self.data.subnqn).ok_or(invalid(true, SUBNQN))?;
        let hostnqn = nqn(&self.data.hostnqn).ok_or(invalid(true, HOSTNQN))?;
        // NVMe Base 6.3: a host that does not say which one it is could be any.
        if self.data.hostid == [0; 16] {
            return Err(invalid(true, HOSTID));
        }
        self.discovery = subnqn == DISCOVERY_NQN;
        let ours = subnqn == view.system.nqn && config.portal.protocol == Protocol::Nvme;
        if !self.discovery && !ours {
            return Err(invalid(true, SUBNQN));
        }
        // NVMe Base 3.1.3.3: a discovery controller has no I/O queues.
        let queues_max = if self.discovery { 0 } else { config.io_queues_max };
        if queue > queues_max {
            return Err(invalid(false, QID));
        }
        if f.sqsize.get() == 0 || u32::from(f.sqsize.get()) >= u32::from(config.queue_depth_max) {
            return Err(invalid(false, SQSIZE));
        }
        let principal = view.principal(LoginName::Nqn(hostnqn));
        self.principal = principal;
        // A discovery controller opens for anybody; what it shows depends on who asks.
        if principal.is_none() && !self.discovery {
            return Err(Completion::failed(StatusField::CONNECT_HOST.dnr()));
        }
        let (nqn, host_id) = (hostnqn.to_owned(), self.data.hostid);
        let controller = self.data.cntlid.get();
        if queue == 0 {
            // Our controllers are dynamic: the host cannot ask for one.
            if controller != CNTLID_DYNAMIC {
                return Err(invalid(true, CNTLID));
            }
            return Ok(Ask::NvmeAdmin { principal, nqn, host_id, discovery: self.discovery });
        }
        Ok(Ask::NvmeIo { principal, controller, nqn, host_id, queue })
    }
    /// The host's name, after `check`.
    pub fn hostnqn(&self) -> &str {
        nqn(&self.data.hostnqn).unwrap_or_default()
    }
}

fn nqn(field: &[u8]) -> Option<&str> {
    text_of(field).filter(|t| !t.is_empty() && t.len() <= NQN_MAX)
}
