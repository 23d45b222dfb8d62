//! Identify (NVMe Base 5.17): the data structures that describe the subsystem.

use super::ana;
use super::controller::Controller;
use super::namespaces::Namespaces;
use super::{ASYNC_EVENTS_MAX, CAPSULE_DATA_MAX, ConnectionConfig, QUIESCE_TIME, RESETS_MAX};
use crate::spec::command::NSID_ALL;
use crate::spec::identify::{self, IDENTIFY_BYTES, LbaFormat, cns, nidt};
use crate::spec::{DISCOVERY_NQN, Sqe, StatusField, text_nul, text_spaces};
use base::front::TRANSFER_MAX;
use base::view::{NSID_MAX, View};
use zerocopy::IntoBytes;

/// Version of the base specification: 1.4. Hosts expect more Identify data from 2.0 on than we give.
pub(crate) const VERSION: u32 = 0x0001_0400;
/// Command Retry Delay Time 1, in 100 ms: how long hosts wait after Namespace Not Ready.
pub(crate) const CRDT1: u16 = 100;
/// Entries of the error log.
pub(crate) const ERROR_ENTRIES: usize = 16;

const _: () = assert!(TRANSFER_MAX == 4096 << MDTS);
const MDTS: u8 = 8;

/// Answers Identify, or says why not.
pub(crate) fn answer(
    controller: &Controller,
    config: &ConnectionConfig,
    view: &View,
    sqe: &Sqe,
) -> Result<Vec<u8>, StatusField> {
    let nsid = sqe.nsid.get();
    let structure = (sqe.cdw10.get() & 0xff) as u8;
    if controller.discovery && structure != cns::CONTROLLER {
        return Err(StatusField::INVALID_FIELD);
    }
    let mut out = match structure {
        cns::CONTROLLER => identify_controller(controller, config, view).as_bytes().to_vec(),
        cns::NAMESPACE => identify_namespace(&controller.namespaces, controller, view, nsid)?,
        cns::ACTIVE_LIST => {
            // NVMe Base 5.17.2.2: ids above the given one; the two highest values are no ids.
            if nsid >= NSID_ALL - 1 {
                return Err(StatusField::INVALID_NAMESPACE);
            }
            let ids = controller.namespaces.iter().map(|n| n.nsid).filter(|id| *id > nsid);
            ids.take(1024).flat_map(u32::to_le_bytes).collect()
        }
        cns::DESCRIPTORS => descriptors(controller, view, nsid)?,
        _ => return Err(StatusField::INVALID_FIELD),
    };
    out.resize(IDENTIFY_BYTES as usize, 0);
    Ok(out)
}

fn identify_controller(c: &Controller, config: &ConnectionConfig, view: &View) -> identify::Controller {
    let mut id = identify::Controller::zeroed();
    let system = &view.system;
    id.sn = text_spaces(&system.serial);
    id.mn = text_spaces(&system.model);
    id.fr = text_spaces(&system.firmware);
    id.mdts = MDTS;
    id.cntlid = c.id.into();
    id.ver = VERSION.into();
    // 128-bit host identifiers, as fabrics demand.
    id.ctratt = 1.into();
    id.crdt[0] = CRDT1.into();
    id.aerl = ASYNC_EVENTS_MAX as u8 - 1;
    id.elpe = ERROR_ENTRIES as u8 - 1;
    // Offsets and long lengths in Get Log Page.
    id.lpa = 1 << 2;
    // Keep alive in steps of 1 s.
    id.kas = 10.into();
    id.maxcmd = config.queue_depth_max.into();
    // SGLs of any alignment; an offset into the capsule is understood.
    id.sgls = (1 | 1 << 20).into();
    id.subnqn = text_nul(if c.discovery { DISCOVERY_NQN } else { &system.nqn });
    id.oaes = c.features.notices().into();
    if c.discovery {
        id.cntrltype = 2;
        return id;
    }
    id.cntrltype = 1;
    // Several ports and several controllers: two portals are two paths to one namespace.
    id.cmic = 0b11;
    if c.ana.is_some() {
        // Asymmetric Namespace Access is reported.
        id.cmic |= 1 << 3;
        id.anatt = ana::TRANSITION_SECONDS;
        id.anacap = ana::CAPABILITIES;
        id.anagrpmax = ana::GROUP.into();
        id.nanagrpid = 1.into();
    }
    // Commands supported and effects.
    id.lpa |= 1 << 1;
    id.acl = super::ABORTS_MAX - 1;
    // Cross-Controller Reset: which life this is, and how long the end of one may take.
    id.ciu = c.life.uniquifier;
    id.cirn = c.life.random.into();
    id.cqt = (QUIESCE_TIME.as_millis() as u16).into();
    id.ccrl = RESETS_MAX;
    // One firmware slot, read only.
    id.frmw = 0b11;
    id.wctemp = 343.into();
    id.cctemp = 353.into();
    id.sqes = 0x66;
    id.cqes = 0x44;
    id.nn = NSID_MAX.into();
    id.mnan = NSID_MAX.into();
    // Compare, Dataset Management, Write Zeroes.
    id.oncs = (1 | 1 << 2 | 1 << 3).into();
    // A volatile write cache (Linux never flushes without); Flush may name all namespaces.
    id.vwc = 0b111;
    id.ioccsz = ((64 + CAPSULE_DATA_MAX) / 16).into();
    id.iorcsz = 1.into();
    id.msdbd = 1;
    // Disconnect.
    id.ofcs = 1.into();
    // Power state 0: 25 W, in hundredths.
    id.psd[0][..2].copy_from_slice(&2500u16.to_le_bytes());
    id
}

fn identify_namespace(
    namespaces: &Namespaces,
    controller: &Controller,
    view: &View,
    nsid: u32,
) -> Result<Vec<u8>, StatusField> {
    // NSID FFFFFFFFh asks for what is common to all: only with namespace management.
    if nsid == 0 || nsid > NSID_MAX {
        return Err(StatusField::INVALID_NAMESPACE);
    }
    let mut id = identify::Namespace::zeroed();
    // An id that is valid but not active: all zeroes.
    let Some(n) = namespaces.get(nsid) else { return Ok(id.as_bytes().to_vec()) };
    id.nsze = n.blocks.into();
    id.ncap = n.blocks.into();
    id.nuse = n.blocks.into();
    // May be shared by controllers.
    id.nmic = 1;
    // What was deallocated reads as zeroes; Write Zeroes may deallocate.
    id.dlfeat = 1 | if n.deallocate { 1 << 3 } else { 0 };
    id.anagrpid = controller.ana.as_ref().map_or(0, |_| ana::GROUP).into();
    id.nguid = nguid(controller, view, nsid);
    id.lbaf[0] = LbaFormat { ms: 0.into(), lbads: n.block_bytes.trailing_zeros() as u8, rp: 0 };
    Ok(id.as_bytes().to_vec())
}

fn nguid(controller: &Controller, view: &View, nsid: u32) -> [u8; 16] {
    let export = controller.host.and_then(|h| view.host(h)).and_then(|h| h.by_nsid(nsid));
    export.map_or([0; 16], |e| e.nguid)
}

fn descriptors(controller: &Controller, view: &View, nsid: u32) -> Result<Vec<u8>, StatusField> {
    let n = controller.namespaces.get(nsid).ok_or(StatusField::INVALID_NAMESPACE)?;
    let mut out = Vec::new();
    let mut put = |kind: u8, bytes: &[u8]| {
        out.extend_from_slice(&[kind, bytes.len() as u8, 0, 0]);
        out.extend_from_slice(bytes);
    };
    if !n.uuid.is_nil() {
        put(nidt::UUID, &n.uuid.0);
    }
    let nguid = nguid(controller, view, nsid);
    if nguid != [0; 16] {
        put(nidt::NGUID, &nguid);
    }
    // The NVM command set.
    put(nidt::CSI, &[0]);
    Ok(out)
}
