//! INQUIRY: standard data and vital product data pages (SPC-4 6.6, 7.8; SBC-3 6.6).

use super::{Sense, Unit};
use crate::scsi::commands::{UNMAP_BYTES_MAX, UNMAP_DESCRIPTORS_MAX, WRITE_SAME_BYTES_MAX};
use base::front::TRANSFER_MAX;
use base::view::{Export, System};

/// T10 vendor identification.
const VENDOR: &[u8; 8] = b"MILLRACE";
/// The target port group of a head's portals (SPC-4 5.15): they reach every unit equally well.
pub const fn target_port_group(head: u8) -> u16 {
    head as u16 + 1
}

/// What an INQUIRY is answered from.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    /// The system.
    pub system: &'a System,
    /// The unit; None if nothing is mapped there.
    pub export: Option<&'a Export>,
    /// The LUN is 0.
    pub lun_zero: bool,
    /// The portal's number: relative target port and portal group tag.
    pub port: u16,
    /// The target port group of that portal.
    pub group: u16,
}

impl Identity<'_> {
    /// PERIPHERAL QUALIFIER and DEVICE TYPE (SPC-4 6.6.2).
    fn peripheral(&self) -> u8 {
        match (self.export.is_some(), self.lun_zero) {
            (true, _) => 0x00,
            // 001b: a unit could be here and is not; hosts scan on from LUN 0.
            (false, true) => 0x3f,
            // 011b: no unit can be here.
            (false, false) => 0x7f,
        }
    }
}

/// Appends standard INQUIRY data (SPC-4 6.6.2).
pub fn standard(id: &Identity<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + 96, 0);
    let b = &mut out[start..];
    b[0] = id.peripheral();
    b[2] = 0x06; // SPC-4
    b[3] = 0x12; // HISUP, response data format 2
    b[4] = 91;
    b[5] = 0x10; // TPGS: implicit asymmetric access
    b[6] = 0x10; // MULTIP
    b[7] = 0x02; // CMDQUE
    b[8..16].copy_from_slice(VENDOR);
    put_text(&mut b[16..32], &id.system.model);
    put_text(&mut b[32..36], revision(&id.system.firmware));
    // SAM-5, iSCSI, SPC-4, SBC-3 (no versions claimed).
    for (i, descriptor) in [0x00a0u16, 0x0960, 0x0460, 0x04c0].iter().enumerate() {
        b[58 + 2 * i..60 + 2 * i].copy_from_slice(&descriptor.to_be_bytes());
    }
}

/// As much of a version as the four characters of the field hold: `0.1` of `0.1.12`, not `0.1.`.
fn revision(version: &str) -> &str {
    let four = version.get(..4).unwrap_or(version);
    // Half a number would be another one.
    match version.as_bytes().get(4) {
        None | Some(b'.') => four,
        Some(_) => four.rsplit_once('.').map_or(four, |(front, _)| front),
    }
}

/// ASCII in a field padded with spaces (SPC-4 4.4.1).
fn put_text(field: &mut [u8], text: &str) {
    field.fill(b' ');
    for (to, from) in field.iter_mut().zip(text.bytes()) {
        *to = if (0x20..0x7f).contains(&from) { from } else { b'?' };
    }
}

const PAGES_WITHOUT_UNIT: &[u8] = &[0x00];
const PAGES: &[u8] = &[0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2];

/// Appends a vital product data page.
pub fn vital(id: &Identity<'_>, page: u8, out: &mut Vec<u8>) -> Result<(), Sense> {
    let pages = if id.export.is_some() { PAGES } else { PAGES_WITHOUT_UNIT };
    if !pages.contains(&page) {
        return Err(Sense::invalid_cdb(2));
    }
    let start = out.len();
    out.extend_from_slice(&[id.peripheral(), page, 0, 0]);
    match (page, id.export) {
        (0x80, Some(export)) => out.extend_from_slice(serial(export).as_bytes()),
        (0x83, Some(export)) => identification(id, export, out),
        (0x86, Some(_)) => extended(out),
        (0xb0, Some(export)) => block_limits(&Unit::of(export), out),
        (0xb1, Some(_)) => characteristics(out),
        (0xb2, Some(export)) => provisioning(&Unit::of(export), out),
        _ => out.extend_from_slice(pages),
    }
    let len = (out.len() - start - 4) as u16;
    out[start + 2..start + 4].copy_from_slice(&len.to_be_bytes());
    Ok(())
}

/// UNIT SERIAL NUMBER: the volume's identity, for life.
fn serial(export: &Export) -> String {
    export.uuid.to_string()
}

/// Device Identification (SPC-4 7.8.6).
fn identification(id: &Identity<'_>, export: &Export, out: &mut Vec<u8>) {
    const BINARY: u8 = 1;
    const ASCII: u8 = 2;
    const UTF8: u8 = 3;
    const UNIT: u8 = 0x00;
    const PORT: u8 = 0x90; // PIV and association 01b
    const TARGET: u8 = 0xa0; // PIV and association 10b
    const ISCSI: u8 = 0x50;
    let mut put = |code_set: u8, kind: u8, bytes: &[u8]| {
        let protocol = if kind & 0x80 != 0 { ISCSI } else { 0 };
        out.extend_from_slice(&[protocol | code_set, kind, 0, bytes.len() as u8]);
        out.extend_from_slice(bytes);
    };
    // NAA 6 (IEEE registered extended) has 16 bytes, the others 8.
    let naa = if export.naa[0] >> 4 == 6 { &export.naa[..] } else { &export.naa[..8] };
    put(BINARY, UNIT | 3, naa);
    put(ASCII, UNIT | 1, &[&VENDOR[..], serial(export).as_bytes()].concat());
    put(BINARY, PORT | 4, &[&[0, 0][..], &id.port.to_be_bytes()].concat());
    put(BINARY, PORT | 5, &[&[0, 0][..], &id.group.to_be_bytes()].concat());
    let name = |text: String| {
        let mut bytes = text.into_bytes();
        // SPC-4 7.8.6.11: ended by a NUL and padded to words; at most 255 bytes fit the length field.
        bytes.truncate(251);
        bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
        bytes
    };
    put(UTF8, PORT | 8, &name(format!("{},t,0x{:04x}", id.system.iqn, id.port)));
    put(UTF8, TARGET | 8, &name(id.system.iqn.clone()));
}

/// Extended INQUIRY Data (SPC-4 7.8.7).
fn extended(out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + 60, 0);
    // SIMPSUP: every task is treated as simple, so nothing more is claimed.
    out[start + 1] = 0x01;
    // V_SUP: there may be a volatile cache.
    out[start + 2] = 0x01;
}

/// Block Limits (SBC-3 6.6.4).
fn block_limits(unit: &Unit, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + 60, 0);
    let blocks = |bytes: u64| bytes / u64::from(unit.block_bytes);
    // Offsets as in the standard, which counts the page's header.
    let b = &mut out[start - 4..];
    b[4] = 0x01; // WSNZ: WRITE SAME of zero blocks is refused
    b[8..12].copy_from_slice(&(blocks(u64::from(TRANSFER_MAX)) as u32).to_be_bytes());
    if unit.deallocate {
        b[20..24].copy_from_slice(&(blocks(UNMAP_BYTES_MAX) as u32).to_be_bytes());
        b[24..28].copy_from_slice(&UNMAP_DESCRIPTORS_MAX.to_be_bytes());
        let granularity = blocks(4096).max(1) as u32;
        b[28..32].copy_from_slice(&granularity.to_be_bytes());
        b[32] = 0x80; // UGAVALID, alignment 0
    }
    b[36..44].copy_from_slice(&blocks(WRITE_SAME_BYTES_MAX).to_be_bytes());
}

/// Block Device Characteristics (SBC-3 6.6.3).
fn characteristics(out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + 60, 0);
    out[start + 1] = 1; // non-rotating
}

/// Logical Block Provisioning (SBC-3 6.6.6).
fn provisioning(unit: &Unit, out: &mut Vec<u8>) {
    // LBPU, LBPWS, LBPWS10; LBPRZ 0: what was unmapped may still read as before. Volumes have all
    // their space from the beginning: resource provisioned where blocks can be given back.
    let (flags, kind) = if unit.deallocate { (0xe0, 0x01) } else { (0, 0) };
    out.extend_from_slice(&[0, flags, kind, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(export: Option<&Export>, page: u8) -> Result<Vec<u8>, Sense> {
        let system = System { iqn: "iqn.2026-01.org.example:a".into(), ..System::default() };
        let mut out = vec![];
        vital(&Identity { system: &system, export, lun_zero: false, port: 3, group: 2 }, page, &mut out)
            .map(|()| out)
    }

    #[test]
    fn every_page_is_as_long_as_it_says() {
        let export = Export { block_bytes: 4096, blocks: 100, deallocate: true, ..Export::default() };
        for code in PAGES {
            let b = page(Some(&export), *code).expect("listed");
            assert_eq!(b[1], *code);
            assert_eq!(usize::from(u16::from_be_bytes([b[2], b[3]])), b.len() - 4);
        }
        assert_eq!(page(Some(&export), 0x84), Err(Sense::invalid_cdb(2)));
        assert_eq!(page(None, 0x83), Err(Sense::invalid_cdb(2)));
        assert_eq!(page(None, 0), Ok(vec![0x7f, 0, 0, 1, 0]));
    }

    #[test]
    fn a_unit_names_itself_its_port_and_its_target() {
        let mut export = Export::default();
        export.naa[0] = 0x60;
        let b = page(Some(&export), 0x83).expect("identification");
        let (mut at, mut kinds) = (4, vec![]);
        while at < b.len() {
            kinds.push((b[at + 1] & 0x3f, b[at + 3]));
            at += 4 + usize::from(b[at + 3]);
        }
        assert_eq!(at, b.len());
        assert_eq!(kinds[..4], [(3, 16), (1, 44), (0x14, 4), (0x15, 4)]);
        assert_eq!((kinds[4].0, kinds[5].0), (0x18, 0x28));
        export.naa[0] = 0x30;
        assert_eq!(page(Some(&export), 0x83).expect("identification")[7], 8);
    }

    #[test]
    fn limits_are_in_the_units_own_blocks() {
        let export = Export { block_bytes: 4096, deallocate: false, ..Export::default() };
        let b = page(Some(&export), 0xb0).expect("limits");
        assert_eq!(b.len(), 64);
        assert_eq!(&b[8..12], &256u32.to_be_bytes());
        assert_eq!(&b[20..33], &[0; 13]);
        assert_eq!(page(Some(&export), 0xb2).expect("provisioning")[5..7], [0, 0]);
    }

    #[test]
    fn an_unmapped_lun_zero_and_others_say_different_things() {
        let system = System { model: "Käse and a name that is too long".into(), ..System::default() };
        let of = |lun_zero| {
            let mut out = vec![];
            standard(&Identity { system: &system, export: None, lun_zero, port: 1, group: 1 }, &mut out);
            out
        };
        assert_eq!((of(true)[0], of(false)[0]), (0x3f, 0x7f));
        assert_eq!(&of(true)[16..32], b"K??se and a name");
        assert_eq!(&of(true)[32..36], b"    ");
    }

    #[test]
    fn a_revision_is_no_half_of_a_version() {
        for (version, field) in [
            ("0.1.0", "0.1"),
            ("0.1", "0.1"),
            ("1.12.3", "1.12"),
            ("1.123.4", "1"),
            ("2026", "2026"),
            ("20261", "2026"),
            ("", ""),
        ] {
            assert_eq!(revision(version), field, "{version}");
        }
    }
}
