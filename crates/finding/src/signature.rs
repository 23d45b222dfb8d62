//! What others left on a drive.

findings! {
    /// Whose a drive is by what lies there.
    #[derive(Copy)]
    pub enum Signature {
        /// An ext2/3/4 file system.
        Ext,
        /// A NILFS2 file system.
        Nilfs2,
        /// A member of a ZFS pool.
        Zfs,
        /// A Core Storage (FileVault) volume.
        CoreStorage,
        /// An Apple partition map.
        AppleMap,
        /// A Sun disk label.
        SunLabel,
        /// An MBR partition table.
        Mbr,
        /// A LUKS container.
        Luks,
        /// A BitLocker volume.
        BitLocker,
        /// An LVM physical volume.
        Lvm,
        /// A member of an md array.
        Md,
        /// A Stratis block device.
        Stratis,
        /// A VDO device.
        Vdo,
        /// A bcache device.
        Bcache,
        /// A Ceph BlueStore device.
        BlueStore,
        /// An SPDK blobstore or RAID.
        Spdk,
        /// A DRBD control volume.
        DrbdControl,
        /// A device-mapper snapshot.
        DmSnapshot,
        /// A dm-verity or dm-integrity device.
        DmVerity,
        /// Metadata of a device-mapper thin pool or cache.
        DmThin,
        /// An Oracle ASM disk.
        OracleAsm,
        /// An AIX physical volume.
        Aix,
        /// A member of a HighPoint RAID.
        HighPoint,
        /// A VMFS volume.
        Vmfs,
        /// An OCFS2 file system.
        Ocfs2,
        /// An OCFS file system.
        Ocfs,
        /// A GFS2 file system.
        Gfs2,
        /// An XFS file system.
        Xfs,
        /// An XFS log.
        XfsLog,
        /// A Btrfs file system.
        Btrfs,
        /// A bcachefs file system.
        Bcachefs,
        /// An F2FS file system.
        F2fs,
        /// A JFS file system.
        Jfs,
        /// A Reiser4 file system.
        Reiser4,
        /// A ReiserFS file system.
        ReiserFs,
        /// An EROFS file system.
        Erofs,
        /// A squashfs file system.
        Squashfs,
        /// A cramfs file system.
        Cramfs,
        /// A romfs file system.
        Romfs,
        /// A zonefs file system.
        Zonefs,
        /// A UBI or UBIFS volume.
        Ubi,
        /// An ISO 9660 file system.
        Iso9660,
        /// A UDF file system.
        Udf,
        /// A ReFS file system.
        ReFs,
        /// An NTFS file system.
        Ntfs,
        /// An exFAT file system.
        ExFat,
        /// A FAT file system.
        Fat,
        /// An HPFS file system.
        Hpfs,
        /// An APFS container.
        Apfs,
        /// An HFS+ file system.
        HfsPlus,
        /// A BeFS file system.
        BeFs,
        /// A UFS file system.
        Ufs,
        /// A HAMMER2 file system.
        Hammer2,
        /// A VxFS file system.
        VxFs,
        /// Swap space.
        Swap,
        /// A GPT partition table.
        Gpt,
        /// A BSD disk label.
        BsdLabel,
        /// An SGI disk label.
        SgiLabel,
        /// An Amiga partition table.
        Amiga,
        /// A qcow2 disk image.
        Qcow2,
        /// A QED disk image.
        Qed,
        /// A VMDK disk image.
        Vmdk,
        /// A VHDX disk image.
        Vhdx,
        /// A VHD disk image.
        Vhd,
        /// A VDI disk image.
        Vdi,
        /// A Parallels disk image.
        Parallels,
        /// A tar archive.
        Tar,
        /// A member of an Intel (IMSM) RAID.
        IntelRaid,
        /// A member of a DDF RAID.
        Ddf,
        /// A DRBD device.
        Drbd,
        /// A GEOM device.
        Geom,
        /// A member of an NVIDIA RAID.
        NvidiaRaid,
        /// A member of an LSI MegaRAID.
        MegaRaid,
        /// A member of an Adaptec RAID.
        Adaptec,
        /// A member of a Promise RAID.
        Promise,
        /// A DMG disk image.
        Dmg,
    }
}
