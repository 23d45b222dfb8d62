//! What others have left on a drive: the signatures by which the usual tools find their own.
//!
//! A drive with one of these is refused by name unless the operator says `force`. Anything else that is
//! not zero is nobody's that we know, and is taken.
//!
//! Where which magic lies is what the kernel's headers, libblkid and the owners' documents say. Left out
//! are owners that are told by a checksum or by less than four bytes alone (Minix, HFS without plus,
//! VIA, JMicron and Silicon Image RAID): noise would be called theirs.

use finding::Signature;

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
    pub fn foreign(&self) -> Option<Signature> {
        let front = FRONT.iter().find(|(places, magics, _)| {
            places.iter().any(|at| magics.iter().any(|magic| self.is(*at, magic)))
        });
        if let Some((.., name)) = front {
            return Some(*name);
        }
        let back = |(align, before): &(u64, u64)| (self.bytes / align * align).checked_sub(*before);
        let end = BACK.iter().find(|(places, skip, magics, _)| {
            let mut places = places.iter().filter_map(back);
            places.any(|at| magics.iter().any(|magic| self.is(at + skip, magic)))
        });
        if let Some((.., name)) = end {
            return Some(*name);
        }
        let more: [(Rule, Signature); 7] = [
            (Self::is_ext, Signature::Ext),
            (Self::is_nilfs, Signature::Nilfs2),
            (Self::is_zfs, Signature::Zfs),
            (Self::is_core_storage, Signature::CoreStorage),
            (Self::is_apple_map, Signature::AppleMap),
            (Self::is_sun_label, Signature::SunLabel),
            (Self::is_mbr, Signature::Mbr),
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
type Front = (&'static [u64], &'static [&'static [u8]], Signature);

const FRONT: &[Front] = &[
    // Encryption.
    (&[0], &[b"LUKS\xba\xbe"], Signature::Luks),
    (
        // The second header of LUKS 2.
        &[0x4000, 0x8000, 0x1_0000, 0x2_0000, 0x4_0000, 0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000],
        &[b"SKUL\xba\xbe"],
        Signature::Luks,
    ),
    (&[3], &[b"-FVE-FS-"], Signature::BitLocker),
    // Volume managers, software RAID and other layers of block storage.
    (&[24, 512 + 24, 1024 + 24, 1536 + 24], &[b"LVM2 001"], Signature::Lvm),
    (&[0], &[b"HM\x01\0", b"HM\x02\0"], Signature::Lvm),
    (&[0, 4096], &[MD_LITTLE], Signature::Md),
    (&[512 + 4, 9 * 512 + 4], &[b"!Stra0tis\x86\xff\x02^\x41rh"], Signature::Stratis),
    (&[0], &[b"dmvdo001"], Signature::Vdo),
    (&[4096 + 24], &[b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"], Signature::Bcache),
    (&[0], &[b"bluestore block device"], Signature::BlueStore),
    (&[0], &[b"SPDKBLOB", b"SPDKRAID"], Signature::Spdk),
    (&[0], &[b"$DRBDmgr=q"], Signature::DrbdControl),
    (&[0], &[b"SnAp"], Signature::DmSnapshot),
    (&[0], &[b"verity\0\0", b"integrt\0"], Signature::DmVerity),
    (&[32], &[&27_022_010u64.to_le_bytes(), &6_142_003u64.to_le_bytes()], Signature::DmThin),
    (&[32], &[b"ORCLDISK"], Signature::OracleAsm),
    (&[0], &[b"\xc9\xc2\xd4\xc1"], Signature::Aix),
    (&[4640], &[b"\xf0\x16\x78\x5a", b"\xfd\x16\x78\x5a"], Signature::HighPoint),
    // Of clusters and hypervisors.
    (&[1 << 20], &[b"\x0d\xd0\x01\xc0"], Signature::Vmfs),
    (&[2 << 20], &[b"\x5e\xf1\xab\x2f"], Signature::Vmfs),
    (&[1024, 2048, 4096, 8192], &[b"OCFSV2"], Signature::Ocfs2),
    (&[8192], &[b"OracleCFS"], Signature::Ocfs),
    (&[65536], &[b"\x01\x16\x19\x70"], Signature::Gfs2),
    // File systems.
    (&[0], &[b"XFSB"], Signature::Xfs),
    (&[0], &[b"\xfe\xed\xba\xbe"], Signature::XfsLog),
    (&[65536 + 64], &[b"_BHRfS_M"], Signature::Btrfs),
    (
        &[4096 + 24],
        &[b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"],
        Signature::Bcachefs,
    ),
    (&[1024, 4096 + 1024], &[b"\x10\x20\xf5\xf2"], Signature::F2fs),
    (&[32768], &[b"JFS1"], Signature::Jfs),
    (&[65536], &[b"ReIsEr4"], Signature::Reiser4),
    (&[8192 + 52, 65536 + 52], &[b"ReIsEr"], Signature::ReiserFs),
    (&[1024], &[b"\xe2\xe1\xf5\xe0"], Signature::Erofs),
    (&[0], &[b"hsqs", b"sqsh"], Signature::Squashfs),
    (&[0], &[b"\x45\x3d\xcd\x28", b"\x28\xcd\x3d\x45"], Signature::Cramfs),
    (&[0], &[b"-rom1fs-"], Signature::Romfs),
    (&[0], &[b"SFOZ"], Signature::Zonefs),
    (&[0], &[b"UBI#", b"\x31\x18\x10\x06"], Signature::Ubi),
    (&[32769], &[b"CD001"], Signature::Iso9660),
    (&[32769], &[b"BEA01", b"NSR02", b"NSR03"], Signature::Udf),
    (&[0], &[b"\0\0\0ReFS\0"], Signature::ReFs),
    (&[3], &[b"NTFS    "], Signature::Ntfs),
    (&[3], &[b"EXFAT   "], Signature::ExFat),
    (&[54], &[b"FAT", b"MSDOS"], Signature::Fat),
    (&[82], &[b"FAT32", b"MSWIN"], Signature::Fat),
    (&[8192], &[b"\x49\xe8\x95\xf9"], Signature::Hpfs),
    (&[32], &[b"NXSB"], Signature::Apfs),
    (&[1024], &[b"H+\0\x04", b"HX\0\x05"], Signature::HfsPlus),
    (&[32, 512 + 32], &[b"BFS1", b"1SFB"], Signature::BeFs),
    (
        &[0x55c, 0x255c, 0x1_055c, 0x4_055c],
        &[b"\x54\x19\x01\0", b"\0\x01\x19\x54", b"\x19\x01\x54\x19", b"\x19\x54\x01\x19"],
        Signature::Ufs,
    ),
    (&[0], &[b"\x11\x20\x17\x05\x32\x4d\x41\x48"], Signature::Hammer2),
    (&[1024], &[b"\xf5\xfc\x01\xa5"], Signature::VxFs),
    (&[8192], &[b"\xa5\x01\xfc\xf5"], Signature::VxFs),
    // Swap and hibernation, by the sizes that a page may have.
    (
        &[0xff6, 0x1ff6, 0x3ff6, 0x7ff6, 0xfff6],
        &[b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"],
        Signature::Swap,
    ),
    // Partition tables.
    (&[512, 4096], &[b"EFI PART"], Signature::Gpt),
    (&[64, 512], &[b"\x57\x45\x56\x82"], Signature::BsdLabel),
    (&[0], &[b"\x0b\xe5\xa9\x41"], Signature::SgiLabel),
    (&[0], &[b"RDSK"], Signature::Amiga),
    // Images of disks: a file with one of these is somebody's machine.
    (&[0], &[b"QFI\xfb"], Signature::Qcow2),
    (&[0], &[b"QED\0"], Signature::Qed),
    (&[0], &[b"KDMV", b"COWD", b"# Disk DescriptorFile"], Signature::Vmdk),
    (&[0], &[b"vhdxfile"], Signature::Vhdx),
    (&[0], &[b"conectix"], Signature::Vhd),
    (&[64], &[b"\x7f\x10\xda\xbe"], Signature::Vdi),
    (&[0], &[b"WithoutFreeSpace", b"WithouFreSpacExt"], Signature::Parallels),
    (&[257], &[b"ustar\0", b"ustar "], Signature::Tar),
];

/// From the drive's end, which counts as a multiple of the first number: how many bytes before it, and how
/// many on from there; which magics, whose.
type Back = (&'static [(u64, u64)], u64, &'static [&'static [u8]], Signature);

const BACK: &[Back] = &[
    // md 1.0 lies 8 KiB before the end, md 0.90 in the last whole 64 KiB but one.
    (&[(4096, 8192), (65536, 65536)], 0, &[MD_LITTLE, MD_BIG], Signature::Md),
    (&[(512, 1024), (4096, 8192)], 0, &[b"Intel Raid ISM Cfg Sig. "], Signature::IntelRaid),
    (
        &[(512, 512), (512, 257 * 512), (4096, 4096)],
        0,
        &[b"\xde\x11\xde\x11", b"\x11\xde\x11\xde"],
        Signature::Ddf,
    ),
    (
        &[(4096, 4096)],
        60,
        &[b"\x83\x74\x02\x6a", b"\x83\x74\x02\x6b", b"\x83\x74\x02\x6c", b"\x83\x74\x02\x6d"],
        Signature::Drbd,
    ),
    (&[(512, 512), (4096, 4096)], 0, &[b"GEOM::"], Signature::Geom),
    (&[(512, 1024)], 0, &[b"NVIDIA"], Signature::NvidiaRaid),
    (&[(512, 512)], 0, &[b"$XIDE$"], Signature::MegaRaid),
    (&[(512, 512)], 0, &[b"\x37\xfc\x4d\x1e"], Signature::Adaptec),
    (&[(512, 11 * 512)], 0, &[b"\xf3\x16\x78\x5a", b"\xfd\x16\x78\x5a"], Signature::HighPoint),
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
        Signature::Promise,
    ),
    (&[(512, 512), (4096, 4096)], 0, &[b"EFI PART"], Signature::Gpt),
    (&[(512, 512)], 0, &[b"conectix"], Signature::Vhd),
    (&[(512, 512)], 0, &[b"koly"], Signature::Dmg),
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
    fn with(at: u64, magic: &[u8]) -> Option<Signature> {
        let mut drive = vec![0u8; BYTES as usize];
        drive[at as usize..at as usize + magic.len()].copy_from_slice(magic);
        look(&drive).foreign()
    }

    /// What lies where, by the owners' documents; read by hand, not from the tables above.
    fn known() -> Vec<(u64, &'static [u8], Signature)> {
        vec![
            (0, b"LUKS\xba\xbe\0\x01", Signature::Luks),
            (0, b"LUKS\xba\xbe\0\x02", Signature::Luks),
            (16384, b"SKUL\xba\xbe\0\x02", Signature::Luks),
            (4 << 20, b"SKUL\xba\xbe\0\x02", Signature::Luks),
            (0, b"\xeb\x58\x90-FVE-FS-", Signature::BitLocker),
            (512, b"LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001", Signature::Lvm),
            (0, b"HM\x01\0", Signature::Lvm),
            (4096, b"\xfc\x4e\x2b\xa9\x01\0\0\0", Signature::Md),
            (0, b"\xfc\x4e\x2b\xa9\x01\0\0\0", Signature::Md),
            (BYTES - 8192, b"\xfc\x4e\x2b\xa9\x01\0\0\0", Signature::Md),
            (BYTES - 65536, b"\xfc\x4e\x2b\xa9", Signature::Md),
            (BYTES - 65536, b"\xa9\x2b\x4e\xfc", Signature::Md),
            (516, b"!Stra0tis\x86\xff\x02^Arh", Signature::Stratis),
            (4612, b"!Stra0tis\x86\xff\x02^Arh", Signature::Stratis),
            (0, b"dmvdo001", Signature::Vdo),
            (
                4120,
                b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
                Signature::Bcache,
            ),
            (
                4120,
                b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
                Signature::Bcachefs,
            ),
            (0, b"bluestore block device\n01234567", Signature::BlueStore),
            (0, b"SPDKBLOB", Signature::Spdk),
            (0, b"SPDKRAID", Signature::Spdk),
            (0, b"$DRBDmgr=q", Signature::DrbdControl),
            (0, b"SnAp\x01\0\0\0", Signature::DmSnapshot),
            (0, b"verity\0\0\x01\0\0\0", Signature::DmVerity),
            (0, b"integrt\0", Signature::DmVerity),
            (32, b"\xba\x52\x9c\x01\0\0\0\0", Signature::DmThin),
            (32, b"\x33\xb8\x5d\0\0\0\0\0", Signature::DmThin),
            (32, b"ORCLDISKDATA01", Signature::OracleAsm),
            (0, b"\xc9\xc2\xd4\xc1", Signature::Aix),
            (0x1220, b"\xf0\x16\x78\x5a", Signature::HighPoint),
            (0x10_0000, b"\x0d\xd0\x01\xc0\x05\0\0\0", Signature::Vmfs),
            (0x20_0000, b"\x5e\xf1\xab\x2f", Signature::Vmfs),
            (2048, b"OCFSV2\0\0", Signature::Ocfs2),
            (8192, b"OCFSV2\0\0", Signature::Ocfs2),
            (8192, b"OracleCFS", Signature::Ocfs),
            (65536, b"\x01\x16\x19\x70\0\0\0\x01", Signature::Gfs2),
            (0, b"XFSB\0\0\x10\0", Signature::Xfs),
            (0, b"\xfe\xed\xba\xbe", Signature::XfsLog),
            (65600, b"_BHRfS_M", Signature::Btrfs),
            (1024, b"\x10\x20\xf5\xf2", Signature::F2fs),
            (5120, b"\x10\x20\xf5\xf2", Signature::F2fs),
            (32768, b"JFS1", Signature::Jfs),
            (65536, b"ReIsEr4", Signature::Reiser4),
            (65588, b"ReIsEr2Fs", Signature::ReiserFs),
            (8244, b"ReIsErFs", Signature::ReiserFs),
            (1024, b"\xe2\xe1\xf5\xe0", Signature::Erofs),
            (0, b"hsqs", Signature::Squashfs),
            (0, b"\x45\x3d\xcd\x28", Signature::Cramfs),
            (0, b"-rom1fs-", Signature::Romfs),
            (0, b"\x53\x46\x4f\x5a", Signature::Zonefs),
            (0, b"UBI#\x01", Signature::Ubi),
            (32768, b"\x01CD001\x01", Signature::Iso9660),
            (32768, b"\0BEA01\x01", Signature::Udf),
            (0, b"\0\0\0ReFS\0\0\0\0", Signature::ReFs),
            (0, b"\xeb\x52\x90NTFS    ", Signature::Ntfs),
            (0, b"\xeb\x76\x90EXFAT   ", Signature::ExFat),
            (54, b"FAT16   ", Signature::Fat),
            (82, b"FAT32   ", Signature::Fat),
            (8192, b"\x49\xe8\x95\xf9", Signature::Hpfs),
            (32, b"NXSB", Signature::Apfs),
            (1024, b"H+\0\x04", Signature::HfsPlus),
            (1024, b"HX\0\x05", Signature::HfsPlus),
            (544, b"1SFB", Signature::BeFs),
            (65536 + 1372, b"\x19\x01\x54\x19", Signature::Ufs),
            (8192 + 1372, b"\x54\x19\x01\0", Signature::Ufs),
            (0, b"\x11\x20\x17\x05\x32\x4d\x41\x48", Signature::Hammer2),
            (1024, b"\xf5\xfc\x01\xa5", Signature::VxFs),
            (8192, b"\xa5\x01\xfc\xf5", Signature::VxFs),
            (4086, b"SWAPSPACE2", Signature::Swap),
            (4086, b"S1SUSPEND", Signature::Swap),
            (65526, b"SWAPSPACE2", Signature::Swap),
            (512, b"EFI PART", Signature::Gpt),
            (4096, b"EFI PART", Signature::Gpt),
            (BYTES - 512, b"EFI PART", Signature::Gpt),
            (BYTES - 4096, b"EFI PART", Signature::Gpt),
            (512, b"\x57\x45\x56\x82", Signature::BsdLabel),
            (0, b"\x0b\xe5\xa9\x41", Signature::SgiLabel),
            (0, b"RDSK", Signature::Amiga),
            (0, b"QFI\xfb\0\0\0\x03", Signature::Qcow2),
            (0, b"QED\0", Signature::Qed),
            (0, b"KDMV\x01\0\0\0", Signature::Vmdk),
            (0, b"COWD", Signature::Vmdk),
            (0, b"# Disk DescriptorFile\nversion=1\n", Signature::Vmdk),
            (0, b"vhdxfile", Signature::Vhdx),
            (0, b"conectix", Signature::Vhd),
            (BYTES - 512, b"conectix", Signature::Vhd),
            (0, b"<<< Oracle VM VirtualBox Disk Image >>>\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x7f\x10\xda\xbe", Signature::Vdi),
            (0, b"WithoutFreeSpace", Signature::Parallels),
            (BYTES - 512, b"koly\0\0\0\x04", Signature::Dmg),
            (257, b"ustar\0", Signature::Tar),
            (BYTES - 1024, b"Intel Raid ISM Cfg Sig. 1.3.00", Signature::IntelRaid),
            (BYTES - 8192, b"Intel Raid ISM Cfg Sig. 1.3.00", Signature::IntelRaid),
            (BYTES - 512, b"\xde\x11\xde\x11", Signature::Ddf),
            (BYTES - 257 * 512, b"\x11\xde\x11\xde", Signature::Ddf),
            (BYTES - 4096 + 60, b"\x83\x74\x02\x6b", Signature::Drbd),
            (BYTES - 4096 + 60, b"\x83\x74\x02\x6d", Signature::Drbd),
            (BYTES - 512, b"GEOM::MIRROR\0", Signature::Geom),
            (BYTES - 1024, b"NVIDIA  ", Signature::NvidiaRaid),
            (BYTES - 512, b"$XIDE$", Signature::MegaRaid),
            (BYTES - 512, b"\x37\xfc\x4d\x1e", Signature::Adaptec),
            (BYTES - 11 * 512, b"\xf3\x16\x78\x5a", Signature::HighPoint),
            (BYTES - 63 * 512, b"Promise Technology, Inc.", Signature::Promise),
            (BYTES - 991 * 512, b"Promise Technology, Inc.", Signature::Promise),
            (1080, b"\x53\xef", Signature::Ext),
            (1024, b"\x02\0\0\0\0\0\x34\x34\x18\x01", Signature::Nilfs2),
            (BYTES - 4096, b"\x02\0\0\0\0\0\x34\x34\x18\x01", Signature::Nilfs2),
            ((128 << 10) + 4096, b"\x0c\xb1\xba\0\0\0\0\0", Signature::Zfs),
            ((384 << 10) + 1024, b"\0\0\0\0\0\xba\xb1\x0c", Signature::Zfs),
            (BYTES - (384 << 10), b"\x0c\xb1\xba\0\0\0\0\0", Signature::Zfs),
            (BYTES - (128 << 10), b"\x0c\xb1\xba\0\0\0\0\0", Signature::Zfs),
        ]
    }

    #[test]
    fn what_others_left_is_called_by_its_name() {
        for (at, magic, name) in known() {
            assert_eq!(with(at, magic), Some(name), "at {at}");
        }
        let mut mbr = vec![0u8; 66];
        (mbr[4], mbr[64], mbr[65]) = (0x83, 0x55, 0xaa);
        assert_eq!(with(446, &mbr), Some(Signature::Mbr));
        let mut map = vec![0u8; 514];
        (map[0], map[1], map[512], map[513]) = (b'E', b'R', b'P', b'M');
        assert_eq!(with(0, &map), Some(Signature::AppleMap));
        let mut sun = vec![0u8; 512];
        (sun[508], sun[509], sun[510], sun[511]) = (0xda, 0xbe, 0xda, 0xbe);
        assert_eq!(with(0, &sun), Some(Signature::SunLabel));
        let mut vault = vec![0u8; 94];
        (vault[8], vault[88], vault[89], vault[90]) = (1, b'C', b'S', 1);
        assert_eq!(with(0, &vault), Some(Signature::CoreStorage));
    }

    #[test]
    fn every_row_has_its_example() {
        let known = known();
        let names = FRONT.iter().map(|row| row.2).chain(BACK.iter().map(|row| row.3));
        for name in names {
            assert!(known.iter().any(|(.., known)| *known == name), "no example of {name:?}");
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
            assert_eq!(md, Some(Signature::Md), "{odd}");
            let imsm = name(bytes - 1024, b"Intel Raid ISM Cfg Sig. ");
            assert_eq!(imsm, Some(Signature::IntelRaid), "{odd}");
            let drbd = name((bytes & !4095) - 4096 + 60, b"\x83\x74\x02\x6d");
            assert_eq!(drbd, Some(Signature::Drbd), "{odd}");
            let zfs = name((bytes & !0x3_ffff) - (128 << 10), b"\x0c\xb1\xba\0\0\0\0\0");
            assert_eq!(zfs, Some(Signature::Zfs), "{odd}");
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
