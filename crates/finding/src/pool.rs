//! Findings about pools.

refusals! {
    /// Why an order about pools was not carried out.
    pub enum PoolRefusal {}
}

findings! {
    /// Why something about pools is not optimal.
    pub enum PoolCause {}
}

events! {
    /// What happened to pools.
    pub enum PoolEvent {}
}

findings! {
    /// What is worth knowing of pools.
    pub enum PoolNotice {}
}
