//! Mode pages (SPC-4 7.5, SBC-3 6.4): read by MODE SENSE, and by MODE SELECT accepted if unchanged.

use super::Sense;

/// Caching page (SBC-3 6.4.5): WCE 1, since Flush and FUA mean something here; without it no host flushes.
const CACHING: [u8; 20] = [0x08, 0x12, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Control page (SPC-4 7.5.8): D_SENSE 0, unrestricted reordering, no busy timeout.
const CONTROL: [u8; 12] = [0x0a, 0x0a, 0, 0x10, 0, 0x40, 0, 0, 0xff, 0xff, 0, 0];
const PAGES: [&[u8]; 2] = [&CACHING, &CONTROL];
/// Device-specific parameter (SBC-3 6.4.1): DPOFUA, not write protected.
const DEVICE_SPECIFIC: u8 = 0x10;

/// What a MODE SENSE asks for.
#[derive(Clone, Copy, Debug)]
pub struct ModeSense {
    /// The ten-byte command.
    pub ten: bool,
    /// LLBAA: a long block descriptor may be sent.
    pub long_descriptor: bool,
    /// DBD: no block descriptor.
    pub no_descriptor: bool,
    /// PC: 0 current, 1 changeable, 2 default, 3 saved.
    pub control: u8,
    /// Page code.
    pub page: u8,
    /// Subpage code.
    pub subpage: u8,
}

/// Appends the mode parameters.
pub fn mode_sense(ask: ModeSense, blocks: u64, block_bytes: u32, out: &mut Vec<u8>) -> Result<(), Sense> {
    if ask.control == 3 {
        return Err(Sense::NO_SAVING);
    }
    let wanted = |page: &[u8]| match ask.page {
        0x3f => true,
        code => code == page[0],
    };
    // SPC-4 6.11: subpage FFh asks for all subpages of the page, of which there is the page itself only.
    if !matches!(ask.subpage, 0 | 0xff) || !PAGES.iter().any(|p| wanted(p)) {
        return Err(Sense::invalid_cdb(if matches!(ask.subpage, 0 | 0xff) { 2 } else { 3 }));
    }
    let start = out.len();
    let header = if ask.ten { 8 } else { 4 };
    out.resize(start + header, 0);
    let descriptor = match (ask.no_descriptor, ask.ten && ask.long_descriptor) {
        (true, _) => 0,
        (false, true) => {
            out.extend_from_slice(&blocks.to_be_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&block_bytes.to_be_bytes());
            16
        }
        (false, false) => {
            let short = u32::try_from(blocks).unwrap_or(u32::MAX);
            out.extend_from_slice(&short.to_be_bytes());
            out.extend_from_slice(&block_bytes.to_be_bytes());
            8
        }
    };
    for page in PAGES.iter().filter(|p| wanted(p)) {
        let at = out.len();
        out.extend_from_slice(page);
        if ask.control == 1 {
            // Nothing can be changed: a mask of zeroes.
            out[at + 2..].fill(0);
        }
    }
    let len = out.len() - start;
    let head = &mut out[start..start + header];
    if ask.ten {
        head[..2].copy_from_slice(&((len - 2) as u16).to_be_bytes());
        head[3] = DEVICE_SPECIFIC;
        head[4] = u8::from(descriptor == 16);
        head[7] = descriptor;
    } else {
        head[0] = (len - 1) as u8;
        head[2] = DEVICE_SPECIFIC;
        head[3] = descriptor;
    }
    Ok(())
}

/// Judges the parameter list of a MODE SELECT: good if it asks for what already is.
pub fn mode_select(ten: bool, list: &[u8], block_bytes: u32) -> Result<(), Sense> {
    if list.is_empty() {
        return Ok(()); // SPC-4 6.9: a length of zero is not an error.
    }
    let header = if ten { 8 } else { 4 };
    if list.len() < header {
        return Err(Sense::LIST_LENGTH);
    }
    let (long, descriptor) = if ten {
        (list[4] & 1 == 1, usize::from(u16::from_be_bytes([list[6], list[7]])))
    } else {
        (false, usize::from(list[3]))
    };
    let medium = if ten { list[2] } else { list[1] };
    if medium != 0 {
        return Err(Sense::invalid_list(if ten { 2 } else { 1 }));
    }
    let mut at = header;
    if list.len() - at < descriptor {
        return Err(Sense::LIST_LENGTH);
    }
    match (descriptor, long) {
        (0, _) => {}
        (8, false) | (16, true) => {
            // The number of blocks is not for the host to say; the block length must be what it is.
            let b = &list[at + descriptor - 4..at + descriptor];
            let mut bytes = u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
            if descriptor == 8 {
                bytes &= 0xff_ffff;
            }
            if bytes != block_bytes {
                return Err(Sense::invalid_list((at + descriptor - 4) as u16));
            }
        }
        _ => return Err(Sense::invalid_list(if ten { 6 } else { 3 })),
    }
    at += descriptor;
    while at < list.len() {
        let rest = &list[at..];
        if rest.len() < 2 {
            return Err(Sense::LIST_LENGTH);
        }
        let code = rest[0] & 0x7f; // PS is reserved here.
        let Some(page) = PAGES.iter().find(|p| p[0] == code) else {
            return Err(Sense::invalid_list(at as u16));
        };
        if rest[1] != page[1] {
            return Err(Sense::invalid_list(at as u16 + 1));
        }
        if rest.len() < page.len() {
            return Err(Sense::LIST_LENGTH);
        }
        if let Some(i) = (2..page.len()).find(|i| rest[*i] != page[*i]) {
            return Err(Sense::invalid_list((at + i) as u16));
        }
        at += page.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: ModeSense = ModeSense {
        ten: false,
        long_descriptor: false,
        no_descriptor: false,
        control: 0,
        page: 0x3f,
        subpage: 0,
    };

    fn sense(ask: ModeSense) -> Result<Vec<u8>, Sense> {
        let mut out = vec![];
        mode_sense(ask, 1 << 33, 512, &mut out).map(|()| out)
    }

    #[test]
    fn all_pages_say_write_cache_and_fua() {
        let b = sense(ASK).expect("all pages");
        assert_eq!(b.len(), 4 + 8 + 20 + 12);
        assert_eq!((usize::from(b[0]), b[2], b[3]), (b.len() - 1, 0x10, 8));
        assert_eq!(&b[4..12], &[0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]);
        assert_eq!((b[12], b[14] & 4), (8, 4));
        let b = sense(ModeSense { ten: true, long_descriptor: true, page: 8, ..ASK }).expect("caching");
        assert_eq!((b[3], b[4], b[7], b.len()), (0x10, 1, 16, 8 + 16 + 20));
    }

    #[test]
    fn nothing_can_be_changed_or_saved() {
        let b = sense(ModeSense { control: 1, page: 8, no_descriptor: true, ..ASK }).expect("mask");
        assert_eq!(&b[4..6], &[8, 0x12]);
        assert!(b[6..].iter().all(|x| *x == 0));
        assert_eq!(sense(ModeSense { control: 3, ..ASK }), Err(Sense::NO_SAVING));
        assert_eq!(sense(ModeSense { page: 0x1c, ..ASK }), Err(Sense::invalid_cdb(2)));
        assert_eq!(sense(ModeSense { page: 0x0a, subpage: 1, ..ASK }), Err(Sense::invalid_cdb(3)));
    }

    #[test]
    fn what_was_sensed_can_be_selected() {
        for ten in [false, true] {
            let mut b = sense(ModeSense { ten, ..ASK }).expect("all pages");
            b[0] = 0;
            if ten {
                b[1] = 0;
            }
            assert_eq!(mode_select(ten, &b, 512), Ok(()));
            assert!(mode_select(ten, &b, 4096).is_err());
            for cut in 1..b.len() {
                // Cut between two pages it is a shorter list, else an error.
                let header = if ten { 8 } else { 4 };
                let whole = [header + 8, header + 8 + 20].contains(&cut);
                assert_eq!(mode_select(ten, &b[..cut], 512).is_ok(), whole, "{cut}");
            }
        }
    }

    #[test]
    fn a_change_is_refused_at_its_byte() {
        let mut list = [&[0u8; 4][..], &CACHING].concat();
        list[6] = 0;
        assert_eq!(mode_select(false, &list, 512), Err(Sense::invalid_list(6)));
        assert_eq!(mode_select(false, &[0, 1, 0, 0], 512), Err(Sense::invalid_list(1)));
        assert_eq!(mode_select(false, &[0, 0, 0, 0, 0x1c, 2, 0, 0], 512), Err(Sense::invalid_list(4)));
    }
}
