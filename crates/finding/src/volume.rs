//! Findings about volumes.

refusals! {
    /// Why an order about volumes was not carried out.
    pub enum VolumeRefusal {}
}

events! {
    /// What happened to volumes.
    pub enum VolumeEvent {}
}

findings! {
    /// What is worth knowing of volumes.
    pub enum VolumeNotice {}
}
