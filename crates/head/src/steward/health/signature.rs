//! What others have left on a drive: the signatures by which the usual tools find their own.
//!
//! A drive with one of these is refused by name unless the operator says `force`. Anything else that is
//! not zero is nobody's that we know, and is taken.
//!
//! Where which magic lies is what the kernel's headers, libblkid and the owners' documents say. Left out
//! are owners that are told by a checksum or by less than four bytes alone (Minix, HFS without plus,
//! VIA, JMicron and Silicon Image RAID): noise would be called theirs.

/// Bytes of a drive's beginning and end that must be looked at.
pub const LOOK_BYTES: usize = 512 << 10;

/// Places further on that must be looked at as well, and how much of each, bytes.
pub const FAR: [u64; 3] = [1 << 20, 2 << 20, 4 << 20];
/// See `FAR`.
pub const FAR_BYTES: usize = 4096;

/// What was read of a drive.
pub struct Look {
    /// Its size.
    pub bytes: u64,
    /// Pieces of it: where, and what.
    pub pieces: Vec<(u64, Vec<u8>)>,
}

impl Look {
    /// `len` bytes at `at`, if they were read.
    fn get(&self, at: u64, len: usize) -> Option<&[u8]> {
        let of = |(start, piece): &'_ (u64, Vec<u8>)| {
            let from = usize::try_from(at.checked_sub(*start)?).ok()?;
            Some((from, from.checked_add(len)?)).filter(|(_, to)| *to <= piece.len())
        };
        self.pieces.iter().find_map(|piece| of(piece).map(|(from, to)| &piece.1[from..to]))
    }
    fn is(&self, at: u64, magic: &[u8]) -> bool {
        self.get(at, magic.len()) == Some(magic)
    }

    /// The name of what lies there.
    pub fn foreign(&self) -> Option<&'static str> {
        let front = FRONT.iter().find(|(places, magics, _)| {
            places.iter().any(|at| magics.iter().any(|magic| self.is(*at, magic)))
        });
        if let Some((.., name)) = front {
            return Some(name);
        }
        let back = |(align, before): &(u64, u64)| (self.bytes / align * align).checked_sub(*before);
        let end = BACK.iter().find(|(places, skip, magics, _)| {
            let mut places = places.iter().filter_map(back);
            places.any(|at| magics.iter().any(|magic| self.is(at + skip, magic)))
        });
        if let Some((.., name)) = end {
            return Some(name);
        }
        let more: [(Rule, &str); 7] = [
            (Self::is_ext, "an ext2/3/4 file system"),
            (Self::is_nilfs, "a NILFS2 file system"),
            (Self::is_zfs, "a member of a ZFS pool"),
            (Self::is_core_storage, "a Core Storage (FileVault) volume"),
            (Self::is_apple_map, "an Apple partition map"),
            (Self::is_sun_label, "a Sun disk label"),
            (Self::is_mbr, "an MBR partition table"),
        ];
        more.iter().find(|(is, _)| is(self)).map(|(_, name)| *name)
    }

    // Two bytes are little: something beside them must fit.

    fn is_ext(&self) -> bool {
        self.is(1024 + 56, b"\x53\xef")
    }
    /// The revision, the magic and the size of the super block.
    fn is_nilfs(&self) -> bool {
        let spare = (self.bytes / 512).checked_sub(8).map(|n| n * 512);
        [Some(1024), spare].into_iter().flatten().any(|at| {
            let size = self.get(at + 8, 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
            self.is(at, &[2, 0, 0, 0]) && self.is(at + 6, b"\x34\x34") && (80..=1024).contains(&size)
        })
    }
    /// An uberblock in the ring of one of the four labels, in either byte order.
    fn is_zfs(&self) -> bool {
        const LABEL: u64 = 256 << 10;
        let end = self.bytes / LABEL * LABEL;
        let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
        let magic = 0x00ba_b10cu64;
        labels.into_iter().flatten().any(|label| {
            (0..128).map(|i| label + (128 << 10) + i * 1024).any(|at| {
                self.get(at, 8).is_some_and(|b| b == magic.to_le_bytes() || b == magic.to_be_bytes())
            })
        })
    }
    /// The version, the magic and the kind of its checksum.
    fn is_core_storage(&self) -> bool {
        self.is(8, &[1, 0]) && self.is(88, b"CS\x01\0\0\0")
    }
    fn is_apple_map(&self) -> bool {
        self.is(0, b"ER") && self.is(512, b"PM")
    }
    /// The magic, and words whose exclusive or is nothing.
    fn is_sun_label(&self) -> bool {
        let words = self.get(0, 512).map(|b| b.chunks(2).fold([0, 0], |x, w| [x[0] ^ w[0], x[1] ^ w[1]]));
        self.is(508, b"\xda\xbe") && words == Some([0, 0])
    }
    fn is_mbr(&self) -> bool {
        let used = |i: u64| self.get(446 + 16 * i, 16).is_some_and(|e| matches!(e[0], 0 | 0x80) && e[4] != 0);
        self.is(510, b"\x55\xaa") && (0..4).any(used)
    }
}

/// More than a magic.
type Rule = fn(&Look) -> bool;

/// In which bytes from the beginning, which magics, whose.
type Front = (&'static [u64], &'static [&'static [u8]], &'static str);

const FRONT: &[Front] = &[
    // Encryption.
    (&[0], &[b"LUKS\xba\xbe"], "a LUKS container"),
    (
        // The second header of LUKS 2.
        &[0x4000, 0x8000, 0x1_0000, 0x2_0000, 0x4_0000, 0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000],
        &[b"SKUL\xba\xbe"],
        "a LUKS container",
    ),
    (&[3], &[b"-FVE-FS-"], "a BitLocker volume"),
    // Volume managers, software RAID and other layers of block storage.
    (&[24, 512 + 24, 1024 + 24, 1536 + 24], &[b"LVM2 001"], "an LVM physical volume"),
    (&[0], &[b"HM\x01\0", b"HM\x02\0"], "an LVM physical volume"),
    (&[0, 4096], &[MD_LITTLE], "a member of an md array"),
    (&[512 + 4, 9 * 512 + 4], &[b"!Stra0tis\x86\xff\x02^\x41rh"], "a Stratis block device"),
    (&[0], &[b"dmvdo001"], "a VDO device"),
    (&[4096 + 24], &[b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"], "a bcache device"),
    (&[0], &[b"bluestore block device"], "a Ceph BlueStore device"),
    (&[0], &[b"SPDKBLOB", b"SPDKRAID"], "an SPDK blobstore or RAID"),
    (&[0], &[b"$DRBDmgr=q"], "a DRBD control volume"),
    (&[0], &[b"SnAp"], "a device-mapper snapshot"),
    (&[0], &[b"verity\0\0", b"integrt\0"], "a dm-verity or dm-integrity device"),
    (
        &[32],
        &[&27_022_010u64.to_le_bytes(), &6_142_003u64.to_le_bytes()],
        "metadata of a device-mapper thin pool or cache",
    ),
    (&[32], &[b"ORCLDISK"], "an Oracle ASM disk"),
    (&[0], &[b"\xc9\xc2\xd4\xc1"], "an AIX physical volume"),
    (&[4640], &[b"\xf0\x16\x78\x5a", b"\xfd\x16\x78\x5a"], "a member of a HighPoint RAID"),
    // Of clusters and hypervisors.
    (&[1 << 20], &[b"\x0d\xd0\x01\xc0"], "a VMFS volume"),
    (&[2 << 20], &[b"\x5e\xf1\xab\x2f"], "a VMFS volume"),
    (&[1024, 2048, 4096, 8192], &[b"OCFSV2"], "an OCFS2 file system"),
    (&[8192], &[b"OracleCFS"], "an OCFS file system"),
    (&[65536], &[b"\x01\x16\x19\x70"], "a GFS2 file system"),
    // File systems.
    (&[0], &[b"XFSB"], "an XFS file system"),
    (&[0], &[b"\xfe\xed\xba\xbe"], "an XFS log"),
    (&[65536 + 64], &[b"_BHRfS_M"], "a Btrfs file system"),
    (
        &[4096 + 24],
        &[b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"],
        "a bcachefs file system",
    ),
    (&[1024, 4096 + 1024], &[b"\x10\x20\xf5\xf2"], "an F2FS file system"),
    (&[32768], &[b"JFS1"], "a JFS file system"),
    (&[65536], &[b"ReIsEr4"], "a Reiser4 file system"),
    (&[8192 + 52, 65536 + 52], &[b"ReIsEr"], "a ReiserFS file system"),
    (&[1024], &[b"\xe2\xe1\xf5\xe0"], "an EROFS file system"),
    (&[0], &[b"hsqs", b"sqsh"], "a squashfs file system"),
    (&[0], &[b"\x45\x3d\xcd\x28", b"\x28\xcd\x3d\x45"], "a cramfs file system"),
    (&[0], &[b"-rom1fs-"], "a romfs file system"),
    (&[0], &[b"SFOZ"], "a zonefs file system"),
    (&[0], &[b"UBI#", b"\x31\x18\x10\x06"], "a UBI or UBIFS volume"),
    (&[32769], &[b"CD001"], "an ISO 9660 file system"),
    (&[32769], &[b"BEA01", b"NSR02", b"NSR03"], "a UDF file system"),
    (&[0], &[b"\0\0\0ReFS\0"], "a ReFS file system"),
    (&[3], &[b"NTFS    "], "an NTFS file system"),
    (&[3], &[b"EXFAT   "], "an exFAT file system"),
    (&[54], &[b"FAT", b"MSDOS"], "a FAT file system"),
    (&[82], &[b"FAT32", b"MSWIN"], "a FAT file system"),
    (&[8192], &[b"\x49\xe8\x95\xf9"], "an HPFS file system"),
    (&[32], &[b"NXSB"], "an APFS container"),
    (&[1024], &[b"H+\0\x04", b"HX\0\x05"], "an HFS+ file system"),
    (&[32, 512 + 32], &[b"BFS1", b"1SFB"], "a BeFS file system"),
    (
        &[0x55c, 0x255c, 0x1_055c, 0x4_055c],
        &[b"\x54\x19\x01\0", b"\0\x01\x19\x54", b"\x19\x01\x54\x19", b"\x19\x54\x01\x19"],
        "a UFS file system",
    ),
    (&[0], &[b"\x11\x20\x17\x05\x32\x4d\x41\x48"], "a HAMMER2 file system"),
    (&[1024], &[b"\xf5\xfc\x01\xa5"], "a VxFS file system"),
    (&[8192], &[b"\xa5\x01\xfc\xf5"], "a VxFS file system"),
    // Swap and hibernation, by the sizes that a page may have.
    (
        &[0xff6, 0x1ff6, 0x3ff6, 0x7ff6, 0xfff6],
        &[b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"],
        "swap space",
    ),
    // Partition tables.
    (&[512, 4096], &[b"EFI PART"], "a GPT partition table"),
    (&[64, 512], &[b"\x57\x45\x56\x82"], "a BSD disk label"),
    (&[0], &[b"\x0b\xe5\xa9\x41"], "an SGI disk label"),
    (&[0], &[b"RDSK"], "an Amiga partition table"),
    // Images of disks: a file with one of these is somebody's machine.
    (&[0], &[b"QFI\xfb"], "a qcow2 disk image"),
    (&[0], &[b"QED\0"], "a QED disk image"),
    (&[0], &[b"KDMV", b"COWD", b"# Disk DescriptorFile"], "a VMDK disk image"),
    (&[0], &[b"vhdxfile"], "a VHDX disk image"),
    (&[0], &[b"conectix"], "a VHD disk image"),
    (&[64], &[b"\x7f\x10\xda\xbe"], "a VDI disk image"),
    (&[0], &[b"WithoutFreeSpace", b"WithouFreSpacExt"], "a Parallels disk image"),
    (&[257], &[b"ustar\0", b"ustar "], "a tar archive"),
];

/// From the drive's end, which counts as a multiple of the first number: how many bytes before it, and how
/// many on from there; which magics, whose.
type Back = (&'static [(u64, u64)], u64, &'static [&'static [u8]], &'static str);

const BACK: &[Back] = &[
    // md 1.0 lies 8 KiB before the end, md 0.90 in the last whole 64 KiB but one.
    (&[(4096, 8192), (65536, 65536)], 0, &[MD_LITTLE, MD_BIG], "a member of an md array"),
    (&[(512, 1024), (4096, 8192)], 0, &[b"Intel Raid ISM Cfg Sig. "], "a member of an Intel (IMSM) RAID"),
    (
        &[(512, 512), (512, 257 * 512), (4096, 4096)],
        0,
        &[b"\xde\x11\xde\x11", b"\x11\xde\x11\xde"],
        "a member of a DDF RAID",
    ),
    (
        &[(4096, 4096)],
        60,
        &[b"\x83\x74\x02\x6a", b"\x83\x74\x02\x6b", b"\x83\x74\x02\x6c", b"\x83\x74\x02\x6d"],
        "a DRBD device",
    ),
    (&[(512, 512), (4096, 4096)], 0, &[b"GEOM::"], "a GEOM device"),
    (&[(512, 1024)], 0, &[b"NVIDIA"], "a member of an NVIDIA RAID"),
    (&[(512, 512)], 0, &[b"$XIDE$"], "a member of an LSI MegaRAID"),
    (&[(512, 512)], 0, &[b"\x37\xfc\x4d\x1e"], "a member of an Adaptec RAID"),
    (&[(512, 11 * 512)], 0, &[b"\xf3\x16\x78\x5a", b"\xfd\x16\x78\x5a"], "a member of a HighPoint RAID"),
    (
        &[
            (512, 63 * 512),
            (512, 255 * 512),
            (512, 256 * 512),
            (512, 16 * 512),
            (512, 399 * 512),
            (512, 591 * 512),
            (512, 675 * 512),
            (512, 735 * 512),
            (512, 911 * 512),
            (512, 974 * 512),
            (512, 991 * 512),
            (512, 951 * 512),
        ],
        0,
        &[b"Promise Technology, Inc."],
        "a member of a Promise RAID",
    ),
    (&[(512, 512), (4096, 4096)], 0, &[b"EFI PART"], "a GPT partition table"),
    (&[(512, 512)], 0, &[b"conectix"], "a VHD disk image"),
    (&[(512, 512)], 0, &[b"koly"], "a DMG disk image"),
];

const MD_LITTLE: &[u8] = &0xa92b_4efcu32.to_le_bytes();
const MD_BIG: &[u8] = &0xa92b_4efcu32.to_be_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 8 << 20;

    fn look(drive: &[u8]) -> Look {
        let piece = |at: usize, len: usize| {
            let from = at.min(drive.len());
            (from as u64, drive[from..(from + len).min(drive.len())].to_vec())
        };
        let mut pieces =
            vec![piece(0, LOOK_BYTES), piece(drive.len().saturating_sub(LOOK_BYTES), LOOK_BYTES)];
        pieces.extend(FAR.iter().map(|at| piece(*at as usize, FAR_BYTES)));
        Look { bytes: drive.len() as u64, pieces }
    }
    fn with(at: u64, magic: &[u8]) -> Option<&'static str> {
        let mut drive = vec![0u8; BYTES as usize];
        drive[at as usize..at as usize + magic.len()].copy_from_slice(magic);
        look(&drive).foreign()
    }

    /// What lies where, by the owners' documents; read by hand, not from the tables above.
    fn known() -> Vec<(u64, &'static [u8], &'static str)> {
        vec![
            (0, b"LUKS\xba\xbe\0\x01", "a LUKS container"),
            (0, b"LUKS\xba\xbe\0\x02", "a LUKS container"),
            (16384, b"SKUL\xba\xbe\0\x02", "a LUKS container"),
            (4 << 20, b"SKUL\xba\xbe\0\x02", "a LUKS container"),
            (0, b"\xeb\x58\x90-FVE-FS-", "a BitLocker volume"),
            (512, b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001", "an LVM physical volume"),
            (0, b"HM\x01\0", "an LVM physical volume"),
            (4096, b"\xfc\x4e\x2b\xa9\x01\0\0\0", "a member of an md array"),
            (0, b"\xfc\x4e\x2b\xa9\x01\0\0\0", "a member of an md array"),
            (BYTES - 8192, b"\xfc\x4e\x2b\xa9\x01\0\0\0", "a member of an md array"),
            (BYTES - 65536, b"\xfc\x4e\x2b\xa9", "a member of an md array"),
            (BYTES - 65536, b"\xa9\x2b\x4e\xfc", "a member of an md array"),
            (516, b"!Stra0tis\x86\xff\x02^Arh", "a Stratis block device"),
            (4612, b"!Stra0tis\x86\xff\x02^Arh", "a Stratis block device"),
            (0, b"dmvdo001", "a VDO device"),
            (
                4120,
                b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
                "a bcache device",
            ),
            (
                4120,
                b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
                "a bcachefs file system",
            ),
            (0, b"bluestore block device\n01234567", "a Ceph BlueStore device"),
            (0, b"SPDKBLOB", "an SPDK blobstore or RAID"),
            (0, b"SPDKRAID", "an SPDK blobstore or RAID"),
            (0, b"$DRBDmgr=q", "a DRBD control volume"),
            (0, b"SnAp\x01\0\0\0", "a device-mapper snapshot"),
            (0, b"verity\0\0\x01\0\0\0", "a dm-verity or dm-integrity device"),
            (0, b"integrt\0", "a dm-verity or dm-integrity device"),
            (32, b"\xba\x52\x9c\x01\0\0\0\0", "metadata of a device-mapper thin pool or cache"),
            (32, b"\x33\xb8\x5d\0\0\0\0\0", "metadata of a device-mapper thin pool or cache"),
            (32, b"ORCLDISKDATA01", "an Oracle ASM disk"),
            (0, b"\xc9\xc2\xd4\xc1", "an AIX physical volume"),
            (0x1220, b"\xf0\x16\x78\x5a", "a member of a HighPoint RAID"),
            (0x10_0000, b"\x0d\xd0\x01\xc0\x05\0\0\0", "a VMFS volume"),
            (0x20_0000, b"\x5e\xf1\xab\x2f", "a VMFS volume"),
            (2048, b"OCFSV2\0\0", "an OCFS2 file system"),
            (8192, b"OCFSV2\0\0", "an OCFS2 file system"),
            (8192, b"OracleCFS", "an OCFS file system"),
            (65536, b"\x01\x16\x19\x70\0\0\0\x01", "a GFS2 file system"),
            (0, b"XFSB\0\0\x10\0", "an XFS file system"),
            (0, b"\xfe\xed\xba\xbe", "an XFS log"),
            (65600, b"_BHRfS_M", "a Btrfs file system"),
            (1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
            (5120, b"\x10\x20\xf5\xf2", "an F2FS file system"),
            (32768, b"JFS1", "a JFS file system"),
            (65536, b"ReIsEr4", "a Reiser4 file system"),
            (65588, b"ReIsEr2Fs", "a ReiserFS file system"),
            (8244, b"ReIsErFs", "a ReiserFS file system"),
            (1024, b"\xe2\xe1\xf5\xe0", "an EROFS file system"),
            (0, b"hsqs", "a squashfs file system"),
            (0, b"\x45\x3d\xcd\x28", "a cramfs file system"),
            (0, b"-rom1fs-", "a romfs file system"),
            (0, b"\x53\x46\x4f\x5a", "a zonefs file system"),
            (0, b"UBI#\x01", "a UBI or UBIFS volume"),
            (32768, b"\x01CD001\x01", "an ISO 9660 file system"),
            (32768, b"\0BEA01\x01", "a UDF file system"),
            (0, b"\0\0\0ReFS\0\0\0\0", "a ReFS file system"),
            (0, b"\xeb\x52\x90NTFS    ", "an NTFS file system"),
            (0, b"\xeb\x76\x90EXFAT   ", "an exFAT file system"),
            (54, b"FAT16   ", "a FAT file system"),
            (82, b"FAT32   ", "a FAT file system"),
            (8192, b"\x49\xe8\x95\xf9", "an HPFS file system"),
            (32, b"NXSB", "an APFS container"),
            (1024, b"H+\0\x04", "an HFS+ file system"),
            (1024, b"HX\0\x05", "an HFS+ file system"),
            (544, b"1SFB", "a BeFS file system"),
            (65536 + 1372, b"\x19\x01\x54\x19", "a UFS file system"),
            (8192 + 1372, b"\x54\x19\x01\0", "a UFS file system"),
            (0, b"\x11\x20\x17\x05\x32\x4d\x41\x48", "a HAMMER2 file system"),
            (1024, b"\xf5\xfc\x01\xa5", "a VxFS file system"),
            (8192, b"\xa5\x01\xfc\xf5", "a VxFS file system"),
            (4086, b"SWAPSPACE2", "swap space"),
            (4086, b"S1SUSPEND", "swap space"),
            (65526, b"SWAPSPACE2", "swap space"),
            (512, b"EFI PART", "a GPT partition table"),
            (4096, b"EFI PART", "a GPT partition table"),
            (BYTES - 512, b"EFI PART", "a GPT partition table"),
            (BYTES - 4096, b"EFI PART", "a GPT partition table"),
            (512, b"\x57\x45\x56\x82", "a BSD disk label"),
            (0, b"\x0b\xe5\xa9\x41", "an SGI disk label"),
            (0, b"RDSK", "an Amiga partition table"),
            (0, b"QFI\xfb\0\0\0\x03", "a qcow2 disk image"),
            (0, b"QED\0", "a QED disk image"),
            (0, b"KDMV\x01\0\0\0", "a VMDK disk image"),
            (0, b"COWD", "a VMDK disk image"),
            (0, b"# Disk DescriptorFile\nversion=1\n", "a VMDK disk image"),
            (0, b"vhdxfile", "a VHDX disk image"),
            (0, b"conectix", "a VHD disk image"),
            (BYTES - 512, b"conectix", "a VHD disk image"),
            (0, b"<<< Oracle VM VirtualBox Disk Image >>>\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x7f\x10\xda\xbe", "a VDI disk image"),
            (0, b"WithoutFreeSpace", "a Parallels disk image"),
            (BYTES - 512, b"koly\0\0\0\x04", "a DMG disk image"),
            (257, b"ustar\0", "a tar archive"),
            (BYTES - 1024, b"Intel Raid ISM Cfg Sig. 1.3.00", "a member of an Intel (IMSM) RAID"),
            (BYTES - 8192, b"Intel Raid ISM Cfg Sig. 1.3.00", "a member of an Intel (IMSM) RAID"),
            (BYTES - 512, b"\xde\x11\xde\x11", "a member of a DDF RAID"),
            (BYTES - 257 * 512, b"\x11\xde\x11\xde", "a member of a DDF RAID"),
            (BYTES - 4096 + 60, b"\x83\x74\x02\x6b", "a DRBD device"),
            (BYTES - 4096 + 60, b"\x83\x74\x02\x6d", "a DRBD device"),
            (BYTES - 512, b"GEOM::MIRROR\0", "a GEOM device"),
            (BYTES - 1024, b"NVIDIA  ", "a member of an NVIDIA RAID"),
            (BYTES - 512, b"$XIDE$", "a member of an LSI MegaRAID"),
            (BYTES - 512, b"\x37\xfc\x4d\x1e", "a member of an Adaptec RAID"),
            (BYTES - 11 * 512, b"\xf3\x16\x78\x5a", "a member of a HighPoint RAID"),
            (BYTES - 63 * 512, b"Promise Technology, Inc.", "a member of a Promise RAID"),
            (BYTES - 991 * 512, b"Promise Technology, Inc.", "a member of a Promise RAID"),
            (1080, b"\x53\xef", "an ext2/3/4 file system"),
            (1024, b"\x02\0\0\0\0\0\x34\x34\x18\x01", "a NILFS2 file system"),
            (BYTES - 4096, b"\x02\0\0\0\0\0\x34\x34\x18\x01", "a NILFS2 file system"),
            ((128 << 10) + 4096, b"\x0c\xb1\xba\0\0\0\0\0", "a member of a ZFS pool"),
            ((384 << 10) + 1024, b"\0\0\0\0\0\xba\xb1\x0c", "a member of a ZFS pool"),
            (BYTES - (384 << 10), b"\x0c\xb1\xba\0\0\0\0\0", "a member of a ZFS pool"),
            (BYTES - (128 << 10), b"\x0c\xb1\xba\0\0\0\0\0", "a member of a ZFS pool"),
        ]
    }

    #[test]
    fn what_others_left_is_called_by_its_name() {
        for (at, magic, name) in known() {
            assert_eq!(with(at, magic), Some(name), "at {at}");
        }
        let mut mbr = vec![0u8; 66];
        (mbr[4], mbr[64], mbr[65]) = (0x83, 0x55, 0xaa);
        assert_eq!(with(446, &mbr), Some("an MBR partition table"));
        let mut map = vec![0u8; 514];
        (map[0], map[1], map[512], map[513]) = (b'E', b'R', b'P', b'M');
        assert_eq!(with(0, &map), Some("an Apple partition map"));
        let mut sun = vec![0u8; 512];
        (sun[508], sun[509], sun[510], sun[511]) = (0xda, 0xbe, 0xda, 0xbe);
        assert_eq!(with(0, &sun), Some("a Sun disk label"));
        let mut vault = vec![0u8; 94];
        (vault[8], vault[88], vault[89], vault[90]) = (1, b'C', b'S', 1);
        assert_eq!(with(0, &vault), Some("a Core Storage (FileVault) volume"));
    }

    #[test]
    fn every_row_has_its_example() {
        let known = known();
        let names = FRONT.iter().map(|row| row.2).chain(BACK.iter().map(|row| row.3));
        for name in names {
            assert!(known.iter().any(|(.., known)| *known == name), "no example of {name}");
        }
    }

    #[test]
    fn an_end_that_is_no_multiple_of_anything_is_found_as_well() {
        for odd in [512, 4096 + 512, 100 << 10, 65536 + 3 * 512] {
            let bytes = BYTES as usize + odd;
            let name = |at: usize, magic: &[u8]| {
                let mut drive = vec![0u8; bytes];
                drive[at..at + magic.len()].copy_from_slice(magic);
                look(&drive).foreign()
            };
            let md = name((bytes & !0xffff) - 65536, MD_LITTLE);
            assert_eq!(md, Some("a member of an md array"), "{odd}");
            let imsm = name(bytes - 1024, b"Intel Raid ISM Cfg Sig. ");
            assert_eq!(imsm, Some("a member of an Intel (IMSM) RAID"), "{odd}");
            let drbd = name((bytes & !4095) - 4096 + 60, b"\x83\x74\x02\x6d");
            assert_eq!(drbd, Some("a DRBD device"), "{odd}");
            let zfs = name((bytes & !0x3_ffff) - (128 << 10), b"\x0c\xb1\xba\0\0\0\0\0");
            assert_eq!(zfs, Some("a member of a ZFS pool"), "{odd}");
        }
    }

    #[test]
    fn zeroes_noise_and_tiny_drives_are_nobodys() {
        assert_eq!(with(0, b""), None);
        assert_eq!(with(5000, b"some old data"), None);
        assert_eq!(with(510, b"\x55\xaa"), None, "a boot sector without partitions");
        assert_eq!(with(1030, b"\x34\x34"), None, "two bytes are not enough for NILFS2");
        for bytes in [0, 1, 512, 4096, 65536] {
            assert_eq!(look(&vec![0; bytes]).foreign(), None);
        }
        let mut noise = base::Prng::new(7);
        for _ in 0..200 {
            let mut drive = vec![0u8; 1 << 20];
            noise.fill(&mut drive);
            // Noise is somebody's by two bytes in 65536 cases at most.
            (drive[510], drive[1080]) = (0, 0);
            assert_eq!(look(&drive).foreign(), None);
        }
    }
}
