//! What the Steward knows beyond what is decided: drives that are open, what looks found, who waits, figures and events. After a
//! crash it is found again. It may read the state; the state knows nothing of it.

pub(crate) mod absent;
pub(crate) mod addresses;
pub(crate) mod array;
pub(crate) mod found;
pub(crate) mod head;
pub(crate) mod looks;
pub(crate) mod loss;
pub(crate) mod open;
pub(crate) mod overdue;
pub(crate) mod pool;
pub(crate) mod probe;
pub(crate) mod scrub;
pub(crate) mod spare;
pub(crate) mod system;
pub(crate) mod witness;
