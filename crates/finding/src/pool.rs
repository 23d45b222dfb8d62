//! Findings about pools.

use crate::{Cause, ConnectedHost};

refusals! {
    /// Why an order about pools was not carried out.
    pub enum PoolRefusal {
        /// There is no such pool.
        NoPool { pool: String } = NotFound @ "pool",
        /// The pool is not imported.
        PoolAbsent { pool: String, why: Box<Cause> } = NotReady @ "pool",
        /// The pool went away meanwhile.
        PoolGone = NotFound @ "pool",
        /// Hosts are connected that would lose the volumes of the pool that would be released.
        PoolReleaseInUse { pool: String, force: bool, hosts: Vec<ConnectedHost> } = Unsafe @ "disconnect",
        /// Hosts are connected that would lose the volumes of the pool that would be destroyed.
        PoolDestroyInUse { pool: String, force: bool, hosts: Vec<ConnectedHost> } = Unsafe @ "disconnect",
    }
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
