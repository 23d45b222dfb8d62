//! Findings about volumes.

use crate::ConnectedHost;

refusals! {
    /// Why an order about volumes was not carried out.
    pub enum VolumeRefusal {
        /// This is no name of a volume.
        VolumeNameInvalid { name: String } = Invalid @ "name",
        /// The pool has a volume of this name.
        VolumeNameTaken { name: String } = Conflict @ "name",
        /// The size is 0.
        SizeZero = Invalid @ "bytes",
        /// The size is beyond the largest.
        SizeTooLarge { bytes: u64 } = Invalid @ "bytes",
        /// The size is no multiple of the block size.
        SizeNotAligned { bytes: u64, block_bytes: u32 } = Invalid @ "bytes",
        /// The block size is neither 512 nor 4096.
        BlockSizeInvalid { block_bytes: u32 } = Invalid @ "block_bytes",
        /// The block size is 512, and a drive takes only larger writes.
        BlockTooSmall { drive_block_bytes: u32 } = Invalid @ "block_bytes",
        /// The pool has as many volumes as it can have.
        TooManyVolumes { volumes_max: usize } = NoSpace @ "name",
        /// The free space is in more pieces than a volume can have.
        SpaceTooFragmented = NoSpace @ "bytes",
        /// The block size would make a spare of the pool useless.
        SpareBlockTooLarge { spare: String, pool: String, block_bytes: u32 } = Conflict @ "block_bytes",
        /// The pool has not enough space for a new volume.
        NoSpaceForVolume {
            pool: String,
            free_bytes: u64,
            /// What becomes free soon.
            freeing_bytes: u64,
            seconds: u64,
            bytes: u64,
        } = NoSpace @ "bytes",
        /// The pool has not enough space for a volume to grow.
        NoSpaceToGrow {
            pool: String,
            volume: String,
            free_bytes: u64,
            /// What becomes free soon.
            freeing_bytes: u64,
            seconds: u64,
            more_bytes: u64,
            bytes: u64,
        } = NoSpace @ "bytes",
        /// There is no such volume.
        VolumeUnknown { volume: String } = NotFound @ "volume",
        /// The name is not of the form `pool/volume`.
        VolumeNameHasNoPool { name: String } = Invalid @ "volume",
        /// The volume would shrink, and hosts may be connected that would lose what lies beyond.
        ShrinkLosesData {
            volume: String,
            old_bytes: u64,
            bytes: u64,
            hosts: Vec<ConnectedHost>,
        } = Unsafe @ "bytes",
        /// The volume would shrink, and hosts are connected that would lose what lies beyond.
        ShrinkInUse { volume: String, bytes: u64, hosts: Vec<ConnectedHost> } = Unsafe @ "disconnect",
        /// Hosts are connected that would lose the volume with its data.
        RemoveInUse { volume: String, force: bool, hosts: Vec<ConnectedHost> } = Unsafe @ "disconnect",
        /// A host is connected that would lose the volume.
        UnexportInUse { volume: String, host: String, hosts: Vec<ConnectedHost> } = Unsafe @ "disconnect",
        /// The volume that would be removed is exported.
        VolumeIsExported {
            volume: String,
            hosts: usize,
            /// One of them, if a host of its name is known.
            host: Option<String>,
        } = Unsafe @ "volume",
        /// The weight is out of range.
        WeightInvalid { volume: String, weight: u16, weight_min: u16, weight_max: u16, weight_default: u16 } = Invalid @ "weight",
        /// The cap is so low that hosts would give up commands.
        IopsTooLow { volume: String, iops_max: u32, iops_min: u32 } = Invalid @ "iops_max",
        /// The volume is exported to the host already.
        ExportedAlready { volume: String, host: String } = Conflict @ "host",
        /// The volume is not exported to the host.
        NotExported { volume: String, host: String } = NotFound @ "host",
    }
}

events! {
    /// What happened to volumes.
    pub enum VolumeEvent {
        /// The volume was created.
        VolumeCreated = Note,
        /// The volume was resized.
        VolumeResized { bytes: u64 } = Note,
        /// The volume was renamed.
        VolumeRenamed { name: String } = Note,
        /// The weight of the volume was changed.
        VolumeWeighed { weight: u16, was: u16 } = Note,
        /// The caps of the volume were changed; 0 is none.
        VolumeCapped { iops_max: u32, mbps_max: u32 } = Note,
        /// The volume was removed.
        VolumeRemoved = Note,
        /// The volume was exported to a host.
        VolumeExported { host: String, lun: u16 } = Note,
        /// The volume is no longer exported to a host.
        VolumeUnexported { host: String } = Note,
    }
}

findings! {
    /// What is worth knowing of volumes.
    pub enum VolumeNotice {
        /// It is not known whether a spare can stand in for drives of a pool with such a volume.
        SpareNotSeen { spare: String },
    }
}
