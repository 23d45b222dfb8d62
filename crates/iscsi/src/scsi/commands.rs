//! From a CDB to the work that it requests.

use super::cdb::{Cdb, SUPPORTED, Supported, opcode, service_action};
use super::inquiry::{self, Identity, target_port_group};
use super::modes::{self, ModeSense};
use super::{Sense, lun_field};
use base::front::TRANSFER_MAX;
use base::view::{Export, Host, PathState, Portal, Protocol, View};
use base::{HostId, VolumeId};

/// Most bytes that one UNMAP gives back.
pub const UNMAP_BYTES_MAX: u64 = 512 << 20;
/// Most descriptors of one UNMAP.
pub const UNMAP_DESCRIPTORS_MAX: u32 = 256;
/// Most bytes that one WRITE SAME fills.
pub const WRITE_SAME_BYTES_MAX: u64 = 16 << 20;
/// Longest parameter list of UNMAP, bytes.
pub const UNMAP_LIST_MAX: u32 = 8 + 16 * UNMAP_DESCRIPTORS_MAX;
/// Longest parameter list of MODE SELECT, bytes: every page and the longest descriptor fit.
pub const MODE_LIST_MAX: u32 = 256;

/// What block commands must know of a logical unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// The volume.
    pub volume: VolumeId,
    /// 512 or 4096.
    pub block_bytes: u32,
    /// Size in blocks.
    pub blocks: u64,
    /// Unmapping does something.
    pub deallocate: bool,
    /// Commands can be answered now.
    pub ready: bool,
}

impl Unit {
    /// The unit that an export is.
    pub fn of(export: &Export) -> Self {
        Self {
            volume: export.volume,
            block_bytes: export.block_bytes,
            blocks: export.blocks,
            deallocate: export.deallocate,
            ready: export.ready,
        }
    }
}

/// The question.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The command.
    pub cdb: &'a [u8; 16],
    /// The LUN; None if the field names nothing that could be here.
    pub lun: Option<u16>,
    /// The unit, if it is mapped.
    pub unit: Option<Unit>,
    /// The unit attention that waits at this unit.
    pub attention: Option<Sense>,
    /// Everything else, for the commands that describe.
    pub view: &'a View,
    /// The host.
    pub host: Option<HostId>,
    /// The portal's number: relative target port.
    pub port: u16,
}

impl<'a> Asked<'a> {
    /// The host; None if it has gone meanwhile. Looked for by those commands alone that need it.
    fn host(&self) -> Option<&'a Host> {
        self.view.host(self.host?)
    }
}

/// What a command asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// GOOD now.
    Good,
    /// CHECK CONDITION now.
    Fail(Sense),
    /// CHECK CONDITION now with the unit attention, which is over with this.
    Attention(Sense),
    /// GOOD now with the data that lies in the scratch buffer.
    Data,
    /// REQUEST SENSE: the data lies in the scratch buffer; a unit attention is over with this.
    SenseData,
    /// REPORT LUNS: the data lies in the scratch buffer; LUNS_CHANGED is over with this.
    Luns,
    /// Read blocks to the host.
    Read {
        /// First block.
        at: u64,
        /// Number of blocks, at least 1.
        blocks: u32,
    },
    /// Write the host's blocks.
    Write {
        /// First block.
        at: u64,
        /// Number of blocks, at least 1.
        blocks: u32,
        /// Durable before it is answered.
        fua: bool,
    },
    /// Read blocks and send nothing (VERIFY with BYTCHK 0).
    Verify {
        /// First block.
        at: u64,
        /// Number of blocks, at least 1.
        blocks: u32,
    },
    /// Compare with the host's blocks (VERIFY with BYTCHK 1).
    Compare {
        /// First block.
        at: u64,
        /// Number of blocks, at least 1.
        blocks: u32,
    },
    /// Zeroes without data from the host (WRITE SAME with NDOB).
    Zeroes {
        /// First block.
        at: u64,
        /// Number of blocks, at least 1.
        blocks: u32,
        /// The space may be freed.
        deallocate: bool,
    },
    /// WRITE SAME: one block from the host, many times.
    Same {
        /// First block.
        at: u64,
        /// Number of blocks, at least 1.
        blocks: u32,
        /// The space may be freed if the block is zero.
        deallocate: bool,
    },
    /// UNMAP: a parameter list of so many bytes.
    Unmap {
        /// Bytes.
        list: u32,
    },
    /// MODE SELECT: a parameter list of so many bytes.
    ModeSelect {
        /// Bytes.
        list: u32,
        /// The ten-byte command.
        ten: bool,
    },
    /// SYNCHRONIZE CACHE.
    Flush,
}

impl Work {
    /// Whether it is answered without a task.
    pub fn is_instant(&self) -> bool {
        matches!(
            self,
            Self::Good | Self::Fail(_) | Self::Attention(_) | Self::Data | Self::SenseData | Self::Luns
        )
    }
    /// Bytes that it wants from the host.
    pub fn data_out(&self, block_bytes: u32) -> u64 {
        let size = u64::from(block_bytes);
        match *self {
            Self::Write { blocks, .. } | Self::Compare { blocks, .. } => u64::from(blocks) * size,
            Self::Same { .. } => size,
            Self::Unmap { list } | Self::ModeSelect { list, .. } => u64::from(list),
            Self::Good
            | Self::Fail(_)
            | Self::Attention(_)
            | Self::Data
            | Self::SenseData
            | Self::Luns
            | Self::Read { .. }
            | Self::Verify { .. }
            | Self::Zeroes { .. }
            | Self::Flush => 0,
        }
    }
}

/// What `asked` wants; data of the answer, already cut to the allocation length, is put into `out`,
/// which comes empty.
pub fn plan(asked: &Asked<'_>, out: &mut Vec<u8>) -> Work {
    work(asked, out).unwrap_or_else(|sense| {
        out.clear();
        Work::Fail(sense)
    })
}

fn work(asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<Work, Sense> {
    let cdb = Cdb(asked.cdb);
    // SAM-5 5.14: INQUIRY, REPORT LUNS and REQUEST SENSE are carried out despite a unit attention, and
    // also where no unit is; a missing unit comes before an unknown command.
    let answers_always =
        matches!(cdb.opcode(), opcode::INQUIRY | opcode::REPORT_LUNS | opcode::REQUEST_SENSE);
    if asked.unit.is_none() && !answers_always {
        return Err(Sense::NO_UNIT);
    }
    if let (Some(attention), false) = (asked.attention, answers_always) {
        return Ok(Work::Attention(attention));
    }
    // These are in the table, and most commands are one of them.
    let usual =
        matches!(cdb.opcode(), opcode::READ_10 | opcode::WRITE_10 | opcode::READ_16 | opcode::WRITE_16);
    if !usual {
        is_supported(&cdb)?;
    }
    // SAM-5 5.2: NACA asks for auto contingent allegiance, which we do not offer (NORMACA 0).
    if cdb.control() & 0x04 != 0 {
        return Err(Sense::invalid_cdb(cdb.len() as u16 - 1));
    }
    match cdb.opcode() {
        opcode::INQUIRY => return inquiry(asked, &cdb, out),
        opcode::REPORT_LUNS => return report_luns(asked, &cdb, out),
        opcode::REQUEST_SENSE => return Ok(request_sense(asked, &cdb, out)),
        _ => {}
    }
    let Some(unit) = asked.unit else { return Err(Sense::NO_UNIT) };
    if usual { transfer(&cdb, &unit) } else { unit_work(asked, &cdb, &unit, out) }
}

/// Whether the command is one of the table.
fn is_supported(cdb: &Cdb<'_>) -> Result<(), Sense> {
    let mut known = SUPPORTED.iter().filter(|s| s.opcode == cdb.opcode()).peekable();
    match known.peek() {
        None => Err(Sense::INVALID_OPCODE),
        Some(s) if s.service_action.is_some() => {
            let named = known.any(|s| s.service_action == Some(cdb.service_action()));
            if named { Ok(()) } else { Err(Sense::invalid_cdb(1)) }
        }
        Some(_) => Ok(()),
    }
}

fn unit_work(asked: &Asked<'_>, cdb: &Cdb<'_>, unit: &Unit, out: &mut Vec<u8>) -> Result<Work, Sense> {
    let b = cdb.0;
    Ok(match cdb.opcode() {
        opcode::TEST_UNIT_READY => ready(unit)?,
        opcode::START_STOP_UNIT => {
            // SBC-3 5.25: no power conditions, nothing to eject.
            if b[4] & 0xf0 != 0 || b[4] & 0x02 != 0 {
                return Err(Sense::invalid_cdb(4));
            }
            Work::Good
        }
        opcode::PREVENT_ALLOW_MEDIUM_REMOVAL => Work::Good,
        opcode::MODE_SENSE_6 | opcode::MODE_SENSE_10 => {
            let ten = cdb.opcode() == opcode::MODE_SENSE_10;
            let ask = ModeSense {
                ten,
                long_descriptor: b[1] & 0x10 != 0,
                no_descriptor: b[1] & 0x08 != 0,
                control: b[2] >> 6,
                page: b[2] & 0x3f,
                subpage: b[3],
            };
            modes::mode_sense(ask, unit.blocks, unit.block_bytes, out)?;
            allocated(out, if ten { u32::from(cdb.u16(7)) } else { u32::from(b[4]) })
        }
        opcode::MODE_SELECT_6 | opcode::MODE_SELECT_10 => {
            let ten = cdb.opcode() == opcode::MODE_SELECT_10;
            let list = if ten { u32::from(cdb.u16(7)) } else { u32::from(b[4]) };
            // PF must be 1 (pages as SPC defines them), SP 0 (nothing is saved).
            if b[1] & 0x11 != 0x10 {
                return Err(Sense::invalid_cdb(1));
            }
            match list {
                0 => Work::Good,
                n if n > MODE_LIST_MAX => return Err(Sense::invalid_cdb(if ten { 7 } else { 4 })),
                list => Work::ModeSelect { list, ten },
            }
        }
        opcode::READ_CAPACITY_10 => {
            // SBC-3 5.15: without PMI the address must be zero; PMI is obsolete.
            if cdb.u32(2) != 0 || b[8] & 1 != 0 {
                return Err(Sense::invalid_cdb(2));
            }
            ready(unit)?;
            let last = u32::try_from(unit.blocks.saturating_sub(1)).unwrap_or(u32::MAX);
            out.extend_from_slice(&last.to_be_bytes());
            out.extend_from_slice(&unit.block_bytes.to_be_bytes());
            Work::Data
        }
        opcode::SERVICE_ACTION_IN_16 => {
            ready(unit)?;
            match cdb.service_action() {
                service_action::READ_CAPACITY_16 => read_capacity_16(unit, out),
                service_action::GET_LBA_STATUS => lba_status(unit, cdb.u64(2), out)?,
                _ => return Err(Sense::invalid_cdb(1)),
            }
            allocated(out, cdb.u32(10))
        }
        opcode::MAINTENANCE_IN => maintenance_in(asked, cdb, out)?,
        opcode::SYNCHRONIZE_CACHE_10 | opcode::SYNCHRONIZE_CACHE_16 => {
            let (at, blocks) = cdb.range();
            in_range(unit, at, blocks)?;
            Work::Flush
        }
        opcode::PRE_FETCH_10 | opcode::PRE_FETCH_16 => {
            let (at, blocks) = cdb.range();
            in_range(unit, at, blocks)?;
            Work::Good
        }
        opcode::UNMAP => {
            if !unit.deallocate {
                return Err(Sense::INVALID_OPCODE);
            }
            if b[1] & 0x01 != 0 {
                return Err(Sense::invalid_cdb(1)); // ANCHOR: not offered
            }
            match u32::from(cdb.u16(7)) {
                0 => Work::Good,
                1..8 => return Err(Sense::LIST_LENGTH),
                n if n > UNMAP_LIST_MAX => return Err(Sense::invalid_cdb(7)),
                list => Work::Unmap { list },
            }
        }
        _ => return transfer(cdb, unit),
    })
}

/// The commands that carry blocks.
fn transfer(cdb: &Cdb<'_>, unit: &Unit) -> Result<Work, Sense> {
    let b = cdb.0;
    let (at, count) = cdb.range();
    // RDPROTECT, WRPROTECT, VRPROTECT: the unit has no protection information.
    if cdb.len() > 6 && b[1] >> 5 != 0 {
        return Err(Sense::invalid_cdb(1));
    }
    in_range(unit, at, count)?;
    let blocks = count as u32;
    let most = TRANSFER_MAX / unit.block_bytes;
    let fua = cdb.len() > 6 && b[1] & 0x08 != 0;
    let field = match cdb.len() {
        6 => 4,
        10 => 7,
        12 => 6,
        _ => 10,
    };
    let bounded = |work: Work| match blocks {
        0 => Ok(Work::Good),
        n if n > most => Err(Sense::invalid_cdb(field)),
        _ => Ok(work),
    };
    match cdb.opcode() {
        opcode::READ_6 | opcode::READ_10 | opcode::READ_12 | opcode::READ_16 => {
            bounded(Work::Read { at, blocks })
        }
        opcode::WRITE_6 | opcode::WRITE_10 | opcode::WRITE_12 | opcode::WRITE_16 => {
            bounded(Work::Write { at, blocks, fua })
        }
        opcode::WRITE_AND_VERIFY_10 | opcode::WRITE_AND_VERIFY_12 | opcode::WRITE_AND_VERIFY_16 => {
            // Our drives verify what they write; the medium is reached before the answer.
            match b[1] >> 1 & 3 {
                0 | 1 => bounded(Work::Write { at, blocks, fua: true }),
                _ => Err(Sense::invalid_cdb(1)),
            }
        }
        opcode::VERIFY_10 | opcode::VERIFY_12 | opcode::VERIFY_16 => match b[1] >> 1 & 3 {
            0 if blocks == 0 => Ok(Work::Good),
            0 => Ok(Work::Verify { at, blocks }),
            1 => bounded(Work::Compare { at, blocks }),
            _ => Err(Sense::invalid_cdb(1)),
        },
        opcode::WRITE_SAME_10 | opcode::WRITE_SAME_16 => {
            let (unmap, anchor) = (b[1] & 0x08 != 0, b[1] & 0x10 != 0);
            let no_data = cdb.len() == 16 && b[1] & 0x01 != 0;
            if anchor || unmap && !unit.deallocate {
                return Err(Sense::invalid_cdb(1));
            }
            // WSNZ 1: zero does not mean "to the end" here.
            if blocks == 0 || count * u64::from(unit.block_bytes) > WRITE_SAME_BYTES_MAX {
                return Err(Sense::invalid_cdb(field));
            }
            Ok(if no_data {
                Work::Zeroes { at, blocks, deallocate: unmap }
            } else {
                Work::Same { at, blocks, deallocate: unmap }
            })
        }
        other => unreachable!("{other:#x} is in the table of supported commands and not here"),
    }
}

fn ready(unit: &Unit) -> Result<Work, Sense> {
    if unit.ready { Ok(Work::Good) } else { Err(Sense::BECOMING_READY) }
}

fn in_range(unit: &Unit, at: u64, blocks: u64) -> Result<(), Sense> {
    if at <= unit.blocks && blocks <= unit.blocks - at { Ok(()) } else { Err(Sense::OUT_OF_RANGE) }
}

/// SPC-4 4.2.5.6: the allocation length cuts the data off, and that is no error.
fn allocated(out: &mut Vec<u8>, length: u32) -> Work {
    out.truncate(length as usize);
    Work::Data
}

fn inquiry(asked: &Asked<'_>, cdb: &Cdb<'_>, out: &mut Vec<u8>) -> Result<Work, Sense> {
    let (vital, page) = (cdb.0[1] & 1 != 0, cdb.0[2]);
    // CMDDT is obsolete; without EVPD the page code must be zero.
    if cdb.0[1] & 2 != 0 {
        return Err(Sense::invalid_cdb(1));
    }
    if !vital && page != 0 {
        return Err(Sense::invalid_cdb(2));
    }
    let export = asked.unit.and(asked.lun).and_then(|lun| asked.host()?.by_lun(lun));
    let id = Identity {
        system: &asked.view.system,
        export,
        lun_zero: asked.lun == Some(0),
        port: asked.port,
        group: own_group(asked.view),
    };
    if vital {
        inquiry::vital(&id, page, out)?;
    } else {
        inquiry::standard(&id, out);
    }
    Ok(allocated(out, u32::from(cdb.u16(3))))
}

fn request_sense(asked: &Asked<'_>, cdb: &Cdb<'_>, out: &mut Vec<u8>) -> Work {
    let sense = match (asked.unit, asked.attention) {
        (None, _) => Sense::NO_UNIT,
        (Some(_), Some(attention)) => attention,
        (Some(unit), None) if !unit.ready => Sense::BECOMING_READY,
        (Some(_), None) => Sense::NONE,
    };
    if cdb.0[1] & 1 != 0 {
        sense.descriptors(out);
    } else {
        out.extend_from_slice(&sense.fixed());
    }
    allocated(out, u32::from(cdb.0[4]));
    Work::SenseData
}

fn report_luns(asked: &Asked<'_>, cdb: &Cdb<'_>, out: &mut Vec<u8>) -> Result<Work, Sense> {
    let length = cdb.u32(6);
    // SPC-4 6.33: at least 16 bytes are asked for.
    if length < 16 {
        return Err(Sense::invalid_cdb(6));
    }
    let every = match cdb.0[2] {
        0 | 2 => true,
        1 => false, // well-known units: none
        _ => return Err(Sense::invalid_cdb(2)),
    };
    let exports = asked.host().filter(|_| every).map_or(&[][..], |h| &h.exports);
    out.extend_from_slice(&(8 * exports.len() as u32).to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    let mut sorted: Vec<u16> = exports.iter().map(|e| e.lun).collect();
    sorted.sort_unstable();
    for lun in sorted {
        out.extend_from_slice(&lun_field(lun).to_be_bytes());
    }
    allocated(out, length);
    Ok(Work::Luns)
}

fn read_capacity_16(unit: &Unit, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + 32, 0);
    let b = &mut out[start..];
    b[..8].copy_from_slice(&(unit.blocks.saturating_sub(1)).to_be_bytes());
    b[8..12].copy_from_slice(&unit.block_bytes.to_be_bytes());
    // LBPME as the provisioning page says; LBPRZ 0.
    b[14] = if unit.deallocate { 0x80 } else { 0 };
}

/// SBC-4 5.4: one descriptor from the first block that was asked for to the last, or as many as its field can count.
/// Volumes are thick: every block has its place, and which ones the drives below gave back is theirs to know. So
/// all are "mapped, or not known" (0), which promises nothing.
fn lba_status(unit: &Unit, first: u64, out: &mut Vec<u8>) -> Result<(), Sense> {
    if first >= unit.blocks {
        return Err(Sense::OUT_OF_RANGE);
    }
    let blocks = u32::try_from(unit.blocks - first).unwrap_or(u32::MAX);
    let start = out.len();
    out.resize(start + 24, 0);
    let b = &mut out[start..];
    b[..4].copy_from_slice(&20u32.to_be_bytes());
    b[8..16].copy_from_slice(&first.to_be_bytes());
    b[16..20].copy_from_slice(&blocks.to_be_bytes());
    Ok(())
}

fn maintenance_in(asked: &Asked<'_>, cdb: &Cdb<'_>, out: &mut Vec<u8>) -> Result<Work, Sense> {
    match cdb.service_action() {
        service_action::REPORT_TARGET_PORT_GROUPS => report_port_groups(asked, cdb, out)?,
        service_action::REPORT_SUPPORTED_OPERATION_CODES => report_opcodes(cdb, out)?,
        _ => {
            // SPC-4 6.36: ABORT TASK, ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET, TARGET RESET.
            out.extend_from_slice(&[0xda, 0, 0, 0]);
            if cdb.0[2] & 0x80 != 0 {
                out[3] = 12; // REPD: timeouts, none of which is stated
                out.extend_from_slice(&[0; 12]);
            }
        }
    }
    Ok(allocated(out, cdb.u32(6)))
}

/// The target port group of the portals that this head listens at. A head alone is the first, whatever its number.
fn own_group(view: &View) -> u16 {
    target_port_group(view.paths.map_or(0, |_| view.head))
}

/// REPORT TARGET PORT GROUPS (SPC-4 6.37): a group for each head, with its iSCSI portals; one with all of them if the
/// head is alone.
fn report_port_groups(asked: &Asked<'_>, cdb: &Cdb<'_>, out: &mut Vec<u8>) -> Result<(), Sense> {
    let extended = match cdb.0[1] >> 5 {
        0 => false,
        1 => true,
        _ => return Err(Sense::invalid_cdb(1)),
    };
    out.extend_from_slice(&[0; 4]);
    if extended {
        // No implicit transition takes time.
        out.extend_from_slice(&[0x10, 0, 0, 0]);
    }
    let view = asked.view;
    match view.paths {
        None => port_group(view, own_group(view), 0, AO_SUP, |_| true, out),
        Some(paths) => {
            for (head, path) in (0..).zip(paths) {
                let state = match path {
                    PathState::Optimized => 0,
                    PathState::NonOptimized => 1,
                };
                let group = target_port_group(head);
                port_group(view, group, state, AO_SUP | AN_SUP, |p| p.head == head, out);
            }
        }
    }
    let length = out.len() as u32 - 4;
    out[..4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Active/optimized is supported (SPC-4 6.37, T_SUP to AO_SUP).
const AO_SUP: u8 = 0x01;
/// Active/non-optimized is supported.
const AN_SUP: u8 = 0x02;

/// One target port group descriptor, if it has a port: its state, and which there are.
fn port_group(
    view: &View,
    group: u16,
    state: u8,
    supported: u8,
    is_in: impl Fn(&Portal) -> bool,
    out: &mut Vec<u8>,
) {
    let ports = || view.portals.iter().filter(|p| p.protocol == Protocol::Iscsi && is_in(p)).take(255);
    let count = ports().count() as u8;
    if count == 0 && view.paths.is_some() {
        return;
    }
    out.extend_from_slice(&[state, supported]);
    out.extend_from_slice(&group.to_be_bytes());
    // The state is ours to choose: implicit asymmetric access.
    out.extend_from_slice(&[0, 0x02, 0, count]);
    for portal in ports() {
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&((portal.id.0 + 1) as u16).to_be_bytes());
    }
}

/// REPORT SUPPORTED OPERATION CODES (SPC-4 6.35).
fn report_opcodes(cdb: &Cdb<'_>, out: &mut Vec<u8>) -> Result<(), Sense> {
    let b = cdb.0;
    let timeouts = b[2] & 0x80 != 0;
    let (wanted, wanted_action) = (b[3], cdb.u16(4));
    let put_timeouts = |out: &mut Vec<u8>| {
        if timeouts {
            out.extend_from_slice(&[0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
    };
    let of_opcode = || SUPPORTED.iter().filter(|s| s.opcode == wanted);
    let found: Option<&Supported> = match b[2] & 7 {
        0 => {
            let each = if timeouts { 20 } else { 8 };
            out.extend_from_slice(&(each * SUPPORTED.len() as u32).to_be_bytes());
            for s in SUPPORTED {
                let flags = u8::from(timeouts) << 1 | u8::from(s.service_action.is_some());
                let action = s.service_action.unwrap_or(0);
                out.extend_from_slice(&[s.opcode, 0, 0, action, 0, flags, 0, s.usage.len() as u8]);
                put_timeouts(out);
            }
            return Ok(());
        }
        // One operation code, which must have no service actions.
        1 if of_opcode().any(|s| s.service_action.is_some()) => return Err(Sense::invalid_cdb(2)),
        1 => of_opcode().next(),
        // One operation code and service action, which it must have.
        2 if of_opcode().any(|s| s.service_action.is_none()) => return Err(Sense::invalid_cdb(2)),
        2 => of_opcode().find(|s| s.service_action.map(u16::from) == Some(wanted_action)),
        // Either way.
        3 => of_opcode().find(|s| u16::from(s.service_action.unwrap_or(0)) == wanted_action),
        _ => return Err(Sense::invalid_cdb(2)),
    };
    match found {
        Some(s) => {
            out.extend_from_slice(&[0, u8::from(timeouts) << 7 | 3, 0, s.usage.len() as u8]);
            out.extend_from_slice(s.usage);
            if let Some(action) = s.service_action {
                // The service action's own field is reported as its value.
                out[5] = out[5] & !0x1f | action;
            }
            put_timeouts(out);
        }
        None => out.extend_from_slice(&[0, 1, 0, 0]),
    }
    Ok(())
}

/// One range of an UNMAP parameter list.
pub fn unmap_descriptor(list: &[u8], index: usize) -> Option<(u64, u32)> {
    let b = list.get(8 + 16 * index..24 + 16 * index)?;
    let at = u64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
    Some((at, u32::from_be_bytes([b[8], b[9], b[10], b[11]])))
}

/// Judges an UNMAP parameter list (SBC-3 5.28); how many descriptors it has.
pub fn unmap_check(list: &[u8], unit: &Unit) -> Result<usize, Sense> {
    if list.len() < 8 {
        return Err(Sense::LIST_LENGTH);
    }
    let said = usize::from(u16::from_be_bytes([list[2], list[3]]));
    // A descriptor that the length cuts off does not count.
    let count = said.min(list.len() - 8) / 16;
    let mut total = 0;
    for i in 0..count {
        let (at, blocks) = unmap_descriptor(list, i).expect("index is below the count");
        in_range(unit, at, u64::from(blocks))?;
        total += u64::from(blocks);
    }
    if total * u64::from(unit.block_bytes) > UNMAP_BYTES_MAX {
        return Err(Sense::invalid_list(8));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Unit =
        Unit { volume: VolumeId(1), block_bytes: 512, blocks: 10_000, deallocate: true, ready: true };

    fn ask(bytes: &[u8], unit: Option<Unit>, attention: Option<Sense>) -> (Work, Vec<u8>) {
        let mut cdb = [0; 16];
        cdb[..bytes.len()].copy_from_slice(bytes);
        let view = View::default();
        let mut out = vec![];
        let asked = Asked { cdb: &cdb, lun: Some(3), unit, attention, view: &view, host: None, port: 1 };
        (plan(&asked, &mut out), out)
    }

    fn work_of(bytes: &[u8]) -> Work {
        ask(bytes, Some(UNIT), None).0
    }

    #[test]
    fn block_commands_of_all_lengths_become_work() {
        assert_eq!(work_of(&[0x08, 0, 0, 5, 2, 0]), Work::Read { at: 5, blocks: 2 });
        assert_eq!(work_of(&[0x28, 0x18, 0, 0, 0, 5, 0, 0, 2, 0]), Work::Read { at: 5, blocks: 2 });
        assert_eq!(
            work_of(&[0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0]),
            Work::Write { at: 5, blocks: 2, fua: true }
        );
        assert_eq!(
            work_of(&[0xaa, 0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0]),
            Work::Write { at: 5, blocks: 2, fua: false }
        );
        assert_eq!(work_of(&[0x2f, 2, 0, 0, 0, 5, 0, 0, 2, 0]), Work::Compare { at: 5, blocks: 2 });
        assert_eq!(work_of(&[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Work::Flush);
        assert_eq!(
            work_of(&[0x93, 9, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 9, 0, 0]),
            Work::Zeroes { at: 5, blocks: 9, deallocate: true }
        );
    }

    #[test]
    fn a_transfer_of_nothing_is_good_and_still_checks_its_range() {
        assert_eq!(work_of(&[0x28, 0, 0, 0, 0x27, 0x10, 0, 0, 0, 0]), Work::Good);
        assert_eq!(work_of(&[0x28, 0, 0, 0, 0x27, 0x11, 0, 0, 0, 0]), Work::Fail(Sense::OUT_OF_RANGE));
    }

    #[test]
    fn what_lies_beyond_the_end_or_the_limits_is_refused() {
        assert_eq!(work_of(&[0x28, 0, 0, 0, 0x27, 0x0f, 0, 0, 2, 0]), Work::Fail(Sense::OUT_OF_RANGE));
        assert_eq!(
            work_of(&[0x88, 0, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 1, 0, 0]),
            Work::Fail(Sense::OUT_OF_RANGE)
        );
        assert_eq!(work_of(&[0x28, 0, 0, 0, 0, 0, 0, 0x08, 1, 0]), Work::Fail(Sense::invalid_cdb(7)));
        assert_eq!(work_of(&[0x28, 0x20, 0, 0, 0, 0, 0, 0, 1, 0]), Work::Fail(Sense::invalid_cdb(1)));
        assert_eq!(work_of(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 4]), Work::Fail(Sense::invalid_cdb(9)));
        assert_eq!(work_of(&[0x41, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Work::Fail(Sense::invalid_cdb(7)));
    }

    #[test]
    fn unknown_commands_reservations_and_compare_and_write_are_invalid_operation_codes() {
        for op in [0x89, 0x5e, 0x5f, 0x16, 0x17, 0x56, 0x57, 0x7f, 0xff, 0x83, 0xc0] {
            assert_eq!(work_of(&[op]), Work::Fail(Sense::INVALID_OPCODE), "{op:#x}");
        }
        assert_eq!(work_of(&[0x9e, 0x11]), Work::Fail(Sense::invalid_cdb(1)));
    }

    #[test]
    fn a_missing_unit_answers_only_what_must_be_answered() {
        assert_eq!(ask(&[0], None, None).0, Work::Fail(Sense::NO_UNIT));
        assert_eq!(ask(&[0xff], None, None).0, Work::Fail(Sense::NO_UNIT));
        let (work, data) = ask(&[0x12, 0, 0, 0, 255, 0], None, None);
        assert_eq!((work, data[0], data.len()), (Work::Data, 0x7f, 96));
        let (work, data) = ask(&[0x03, 0, 0, 0, 18, 0], None, None);
        assert_eq!((work, data[12]), (Work::SenseData, 0x25));
        assert_eq!(ask(&[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16], None, None), (Work::Luns, vec![0; 8]));
        assert_eq!(ask(&[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 8], None, None).0, Work::Fail(Sense::invalid_cdb(6)));
    }

    #[test]
    fn a_unit_attention_comes_first_except_for_three_commands() {
        let attention = Some(Sense::POWER_ON);
        let with = |b: &[u8]| ask(b, Some(UNIT), attention).0;
        assert_eq!(with(&[0]), Work::Attention(Sense::POWER_ON));
        assert_eq!(with(&[0xff]), Work::Attention(Sense::POWER_ON));
        assert_eq!(with(&[0x03, 0, 0, 0, 18, 0]), Work::SenseData);
        assert_eq!(with(&[0x12, 0, 0, 0, 36, 0]), Work::Data);
    }

    #[test]
    fn the_status_of_blocks_is_one_run_to_the_end_of_the_unit() {
        let of = |unit: Unit, first: u64, length: u8| {
            let mut cdb = [0u8; 16];
            cdb[0] = 0x9e;
            cdb[1] = 0x12;
            cdb[13] = length;
            cdb[2..10].copy_from_slice(&first.to_be_bytes());
            ask(&cdb, Some(unit), None)
        };
        for block_bytes in [512, 4096] {
            let unit = Unit { block_bytes, ..UNIT };
            let (work, data) = of(unit, 7, 64);
            assert_eq!((work, data.len()), (Work::Data, 24));
            assert_eq!(data[..8], [0, 0, 0, 20, 0, 0, 0, 0]);
            assert_eq!(data[8..], [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0x27, 0x09, 0, 0, 0, 0]);
            assert_eq!(of(unit, 9_999, 24).1[16..20], [0, 0, 0, 1], "the last block");
            assert_eq!(of(unit, 10_000, 24).0, Work::Fail(Sense::OUT_OF_RANGE));
            assert_eq!(of(unit, u64::MAX, 24).0, Work::Fail(Sense::OUT_OF_RANGE));
            assert_eq!(
                of(unit, 7, 8).1,
                [0, 0, 0, 20, 0, 0, 0, 0],
                "what there is does not depend on what is taken"
            );
            assert_eq!(of(unit, 7, 0).1, [0; 0]);
        }
        let large = Unit { blocks: 1 << 40, ..UNIT };
        assert_eq!(of(large, 0, 24).1[16..20], [0xff; 4]);
    }

    #[test]
    fn the_allocation_length_cuts() {
        let (work, data) = ask(&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0], Some(UNIT), None);
        assert_eq!((work, data), (Work::Data, vec![0, 0, 0, 0, 0, 0, 0x27, 0x0f, 0, 0, 2, 0]));
    }

    #[test]
    fn supported_commands_are_reported_alone_and_together() {
        let (_, all) = ask(&[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0], Some(UNIT), None);
        assert_eq!(all.len(), 4 + 8 * SUPPORTED.len());
        let (_, one) = ask(&[0xa3, 0x0c, 1, 0x28, 0, 0, 0, 0, 255, 255, 0, 0], Some(UNIT), None);
        assert_eq!(one[..5], [0, 3, 0, 10, 0x28]);
        let (_, none) = ask(&[0xa3, 0x0c, 1, 0xff, 0, 0, 0, 0, 255, 255, 0, 0], Some(UNIT), None);
        assert_eq!(none, [0, 1, 0, 0]);
        let (_, action) = ask(&[0xa3, 0x0c, 2, 0x9e, 0, 0x10, 0, 0, 255, 255, 0, 0], Some(UNIT), None);
        assert_eq!(action[..6], [0, 3, 0, 16, 0x9e, 0x10]);
        assert_eq!(work_of(&[0xa3, 0x0c, 1, 0x9e, 0, 0, 0, 0, 255, 255]), Work::Fail(Sense::invalid_cdb(2)));
    }

    #[test]
    fn unmap_lists_are_judged_whole_before_anything_is_unmapped() {
        let mut list = vec![0, 38, 0, 32, 0, 0, 0, 0];
        for (at, blocks) in [(5u64, 10u32), (9_999, 1)] {
            list.extend_from_slice(&at.to_be_bytes());
            list.extend_from_slice(&blocks.to_be_bytes());
            list.extend_from_slice(&[0; 4]);
        }
        assert_eq!(unmap_check(&list, &UNIT), Ok(2));
        assert_eq!(unmap_descriptor(&list, 1), Some((9_999, 1)));
        assert_eq!(unmap_check(&list[..30], &UNIT), Ok(1));
        assert_eq!(unmap_check(&list[..7], &UNIT), Err(Sense::LIST_LENGTH));
        list[35] = 2;
        assert_eq!(unmap_check(&list, &UNIT), Err(Sense::OUT_OF_RANGE));
        let big = Unit { blocks: 1 << 40, ..UNIT };
        list[16..20].fill(0xff);
        assert_eq!(unmap_check(&list, &big), Err(Sense::invalid_list(8)));
    }
}
