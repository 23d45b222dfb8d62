//! Orders of the operator: who carries out what, and those about drives and volumes.

pub(crate) mod dispatch;
pub(crate) mod limit;
pub(crate) mod volumes;
