//! Log pages (NVMe Base 5.16): the range of a page that a command asks for, and the contents of the pages.

use super::controller::Controller;
use super::identify::ERROR_ENTRIES;
use super::io::Plan;
use super::{ConnectionConfig, discovery};
use crate::spec::command::NSID_ALL;
use crate::spec::log::{self, ErrorEntry, FirmwareSlots, Smart};
use crate::spec::{Sqe, StatusField, admin, nvm, text_spaces};
use base::front::TRANSFER_MAX;
use base::view::View;
use std::collections::VecDeque;
use zerocopy::{FromZeros, IntoBytes};

/// The part of a log page that Get Log Page asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub page: u8,
    pub offset: u64,
    pub length: u64,
    /// Retain Asynchronous Event: the event stays pending after the page is read.
    pub retain: bool,
    /// Return Groups Only, of the ANA log: bit 0 of the Log Specific Field.
    pub groups_only: bool,
}

impl Request {
    pub fn of(sqe: &Sqe) -> Self {
        let cdw10 = sqe.cdw10.get();
        let dwords = u64::from(sqe.cdw11.get() & 0xffff) << 16 | u64::from(cdw10 >> 16);
        Self {
            page: (cdw10 & 0xff) as u8,
            offset: u64::from(sqe.cdw13.get()) << 32 | u64::from(sqe.cdw12.get()),
            length: (dwords + 1) * 4,
            retain: cdw10 & 1 << 15 != 0,
            groups_only: cdw10 & 1 << 8 != 0,
        }
    }
}

/// The last errors of a controller's own queue.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    count: u64,
    last: VecDeque<ErrorEntry>,
}

impl Errors {
    pub fn note(&mut self, sqe: &Sqe, status: StatusField) {
        self.count += 1;
        if self.last.len() == ERROR_ENTRIES {
            self.last.pop_back();
        }
        self.last.push_front(ErrorEntry {
            count: self.count.into(),
            cid: sqe.cid,
            status: (status.0 << 1).into(),
            location: u16::MAX.into(),
            nsid: if sqe.opcode == admin::FABRICS { 0.into() } else { sqe.nsid },
            trtype: log::TRTYPE_TCP,
            opcode: sqe.opcode,
            ..ErrorEntry::default()
        });
    }
}

/// Whether the page exists and the part makes sense; the length of the page is checked when it is made.
pub(crate) fn plan(controller: &Controller, sqe: &Sqe) -> Plan {
    let request = Request::of(sqe);
    let known = match request.page {
        log::DISCOVERY => controller.discovery,
        log::SUPPORTED => false,
        log::ERROR
        | log::SMART
        | log::FIRMWARE
        | log::CHANGED_NAMESPACES
        | log::EFFECTS
        | log::CROSS_CONTROLLER_RESET => !controller.discovery,
        log::ANA => controller.ana.is_some(),
        _ => false,
    };
    if !known {
        return Plan::refuse(StatusField::INVALID_LOG_PAGE);
    }
    // SMART is the controller's, not a namespace's (LPA bit 0 is 0); so is ANA.
    if matches!(request.page, log::SMART | log::ANA) && !matches!(sqe.nsid.get(), 0 | NSID_ALL) {
        return Plan::refuse(StatusField::INVALID_FIELD);
    }
    if !request.offset.is_multiple_of(4) || request.length > u64::from(TRANSFER_MAX) {
        return Plan::refuse(StatusField::INVALID_FIELD);
    }
    Plan::Give(request.length as u32)
}

/// The part of the page, zeroes behind its end.
pub(crate) fn answer(
    controller: &mut Controller,
    config: &ConnectionConfig,
    view: &View,
    sqe: &Sqe,
) -> Result<Vec<u8>, StatusField> {
    let request = Request::of(sqe);
    let page = match request.page {
        log::DISCOVERY => discovery::log(config, view, controller.host.is_some()),
        log::ERROR => errors(&controller.errors),
        log::SMART => smart(&controller.errors).as_bytes().to_vec(),
        log::FIRMWARE => {
            let mut slots = FirmwareSlots::new_zeroed();
            slots.active = 1;
            slots.revisions[0] = text_spaces(&view.system.firmware);
            slots.as_bytes().to_vec()
        }
        log::CHANGED_NAMESPACES => controller.changed_list(),
        log::EFFECTS => effects(),
        // A reset is answered once it is done: none is left to be reported.
        log::CROSS_CONTROLLER_RESET => vec![0; log::CROSS_CONTROLLER_RESET_BYTES],
        log::ANA => match &controller.ana {
            Some(ana) => ana.log(&controller.namespaces, request.groups_only),
            None => return Err(StatusField::INVALID_LOG_PAGE),
        },
        _ => return Err(StatusField::INVALID_LOG_PAGE),
    };
    // NVMe Base 5.16.1: an offset beyond the page is an error, a length beyond it is not.
    if request.offset > page.len() as u64 {
        return Err(StatusField::INVALID_FIELD);
    }
    let from = request.offset as usize;
    let to = page.len().min(from + request.length as usize);
    let mut out = page[from..to].to_vec();
    out.resize(request.length as usize, 0);
    if !request.retain {
        controller.page_read(request.page);
    }
    Ok(out)
}

fn errors(errors: &Errors) -> Vec<u8> {
    let mut out: Vec<u8> = errors.last.iter().flat_map(|e| e.as_bytes().iter().copied()).collect();
    out.resize(ERROR_ENTRIES * size_of::<ErrorEntry>(), 0);
    out
}

fn smart(errors: &Errors) -> Smart {
    let mut page = Smart::new_zeroed();
    page.temperature = 300.into();
    page.spare = 100;
    page.spare_threshold = 10;
    page.error_entries[..8].copy_from_slice(&errors.count.to_le_bytes());
    page
}

/// NVMe Base 5.16.1.6: bit 0 supported, bit 1 changes data.
fn effects() -> Vec<u8> {
    let mut out = vec![0; 4096];
    for opcode in [
        admin::GET_LOG_PAGE,
        admin::IDENTIFY,
        admin::ABORT,
        admin::SET_FEATURES,
        admin::GET_FEATURES,
        admin::ASYNC_EVENT,
        admin::KEEP_ALIVE,
        admin::CROSS_CONTROLLER_RESET,
    ] {
        out[usize::from(opcode) * 4] = 1;
    }
    for (opcode, effect) in [
        (nvm::FLUSH, 1),
        (nvm::WRITE, 0b11),
        (nvm::READ, 1),
        (nvm::COMPARE, 1),
        (nvm::WRITE_ZEROES, 0b11),
        (nvm::DATASET_MANAGEMENT, 0b11),
    ] {
        out[1024 + usize::from(opcode) * 4] = effect;
    }
    out
}
