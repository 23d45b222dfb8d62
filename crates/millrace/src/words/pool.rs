//! Words about pools.

use super::Said;
use super::parts::connected;
use finding::{PoolCause, PoolEvent, PoolNotice, PoolRefusal};

/// Why an order was not carried out.
pub fn refusal(f: &PoolRefusal) -> Said {
    use PoolRefusal as R;
    match f {
        R::NoPool { pool } => Said::new(format!("there is no pool {pool}")).then("millrace pool ls"),
        R::PoolAbsent { pool, why } => {
            let why = super::cause(why);
            Said { message: format!("pool {pool} is not imported: {}", why.message), next: why.next }
        }
        R::PoolGone => "the pool is gone".into(),
        R::PoolReleaseInUse { pool, force, hosts } => {
            let force = if *force { " --force" } else { "" };
            Said::new(connected(hosts, &format!("would lose the volumes of pool {pool}")))
                .then(format!("millrace pool release {pool}{force} --yes"))
        }
        R::PoolDestroyInUse { pool, force, hosts } => {
            let force = if *force { " --force" } else { "" };
            Said::new(connected(hosts, &format!("would lose the volumes of pool {pool} with their data")))
                .then(format!("millrace pool destroy {pool}{force} --yes"))
        }
    }
}

/// What happened.
pub fn event(f: &PoolEvent) -> String {
    match *f {}
}

/// Why something is not optimal.
pub fn cause(f: &PoolCause) -> Said {
    match *f {}
}

/// What is worth knowing.
pub fn notice(f: &PoolNotice) -> String {
    match *f {}
}
