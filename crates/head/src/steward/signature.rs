//! What others have left on a drive: the signatures by which the usual tools find their own.
//!
//! A drive with one of these is refused by name unless the operator says `force`. Anything else that is
//! not zero is nobody's that we know, and is taken.

/// Bytes of a drive's beginning and end that must be looked at.
pub const LOOK_BYTES: usize = 512 << 10;

/// The name of what lies on a drive, from its first and its last `LOOK_BYTES` (or all, if it is smaller).
pub fn signature(head: &[u8], tail: &[u8], drive_bytes: u64) -> Option<&'static str> {
    let front = |at: usize, magic: &[u8]| head.get(at..at + magic.len()) == Some(magic);
    let tail_at = drive_bytes.saturating_sub(tail.len() as u64);
    let back = |at: u64, magic: &[u8]| {
        let Some(at) = at.checked_sub(tail_at).map(|n| n as usize) else { return false };
        tail.get(at..at + magic.len()) == Some(magic)
    };
    let fronts: [(usize, &[u8], &str); 24] = [
        (0, b"LUKS\xba\xbe", "a LUKS container"),
        (0, b"XFSB", "an XFS file system"),
        (65536 + 64, b"_BHRfS_M", "a Btrfs file system"),
        (4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", "a bcache device"),
        (
            4096 + 24,
            b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
            "a bcachefs file system",
        ),
        (4086, b"SWAPSPACE2", "swap space"),
        (4086, b"SWAP-SPACE", "swap space"),
        (65526, b"SWAPSPACE2", "swap space"),
        (0, MD_MAGIC, "a member of an md array"),
        (4096, MD_MAGIC, "a member of an md array"),
        (24, b"LVM2 001", "an LVM physical volume"),
        (512 + 24, b"LVM2 001", "an LVM physical volume"),
        (1024 + 24, b"LVM2 001", "an LVM physical volume"),
        (1536 + 24, b"LVM2 001", "an LVM physical volume"),
        (0, b"bluestore block device", "a Ceph BlueStore device"),
        (0, b"hsqs", "a squashfs file system"),
        (32769, b"CD001", "an ISO 9660 file system"),
        (1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
        (3, b"NTFS    ", "an NTFS file system"),
        (3, b"EXFAT   ", "an exFAT file system"),
        (54, b"FAT", "a FAT file system"),
        (82, b"FAT32", "a FAT file system"),
        (512, b"EFI PART", "a GPT partition table"),
        (4096, b"EFI PART", "a GPT partition table"),
    ];
    if let Some((_, _, name)) = fronts.iter().find(|(at, magic, _)| front(*at, magic)) {
        return Some(name);
    }
    if front(1024 + 56, b"\x53\xef") {
        return Some("an ext2/3/4 file system");
    }
    // ZFS: an uberblock in the ring of the first label, in either byte order.
    let uberblock =
        |at: usize| front(at, &0x00ba_b10cu64.to_le_bytes()) || front(at, &0x00ba_b10cu64.to_be_bytes());
    if (0..128).any(|i| uberblock((128 << 10) + i * 1024)) {
        return Some("a member of a ZFS pool");
    }
    // md 1.0 lies 8 KiB before the end, md 0.90 in the last whole 64 KiB but one.
    let md_1_0 = drive_bytes.saturating_sub(8192) & !4095;
    let md_0_90 = (drive_bytes & !0xffff).saturating_sub(65536);
    if back(md_1_0, MD_MAGIC) || back(md_0_90, MD_MAGIC) {
        return Some("a member of an md array");
    }
    if [512, 4096].iter().any(|sector| drive_bytes > *sector && back(drive_bytes - sector, b"EFI PART")) {
        return Some("a GPT partition table");
    }
    let partition = |i: usize| {
        let entry = &head[446 + 16 * i..462 + 16 * i];
        matches!(entry[0], 0 | 0x80) && entry[4] != 0
    };
    if front(510, b"\x55\xaa") && (0..4).any(partition) {
        return Some("an MBR partition table");
    }
    None
}

const MD_MAGIC: &[u8] = &0xa92b_4efcu32.to_le_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 4 << 20;

    fn with(at: u64, magic: &[u8]) -> Option<&'static str> {
        let mut drive = vec![0u8; BYTES as usize];
        drive[at as usize..at as usize + magic.len()].copy_from_slice(magic);
        signature(&drive[..LOOK_BYTES], &drive[drive.len() - LOOK_BYTES..], BYTES)
    }

    #[test]
    fn what_others_left_is_called_by_its_name() {
        let mut mbr = vec![0u8; 66];
        (mbr[4], mbr[64], mbr[65]) = (0x83, 0x55, 0xaa);
        for (at, magic, name) in [
            (0, &b"LUKS\xba\xbe\0\x02"[..], "a LUKS container"),
            (0, b"XFSB", "an XFS file system"),
            (65600, b"_BHRfS_M", "a Btrfs file system"),
            (1080, b"\x53\xef", "an ext2/3/4 file system"),
            (4086, b"SWAPSPACE2", "swap space"),
            (4096, MD_MAGIC, "a member of an md array"),
            (BYTES - 8192, MD_MAGIC, "a member of an md array"),
            (BYTES - 65536, MD_MAGIC, "a member of an md array"),
            (512, b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001", "an LVM physical volume"),
            ((128 << 10) + 4096, b"\x0c\xb1\xba\0\0\0\0\0", "a member of a ZFS pool"),
            (512, b"EFI PART", "a GPT partition table"),
            (BYTES - 512, b"EFI PART", "a GPT partition table"),
            (BYTES - 4096, b"EFI PART", "a GPT partition table"),
            (446, &mbr, "an MBR partition table"),
        ] {
            assert_eq!(with(at, magic), Some(name), "at {at}");
        }
    }

    #[test]
    fn zeroes_noise_and_tiny_drives_are_nobodys() {
        assert_eq!(with(0, b""), None);
        assert_eq!(with(5000, b"some old data"), None);
        assert_eq!(with(510, b"\x55\xaa"), None, "a boot sector without partitions");
        assert_eq!(signature(&[0; 512], &[0; 512], 512), None);
        assert_eq!(signature(&[], &[], 0), None);
    }
}
