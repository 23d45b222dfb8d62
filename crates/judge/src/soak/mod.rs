//! The long runs: mixed load over ill drives, daemons killed in loops, power cut from drives with caches, takeovers of two heads.
//!
//! `make soak` runs them for as long as asked, `make test` for a round or two. Each returns rows for the table
//! and panics when a promise is broken.

mod calm;
mod cut;
mod guest;
mod holders;
mod kills;
mod log;
mod mixed;
mod takeover;
mod truth;
mod writer;

pub use calm::calm;
pub use cut::cuts;
pub use guest::guest;
pub use holders::holders;
pub use kills::kills;
pub use mixed::mixed;
pub use takeover::takeovers;

use crate::{Head, legs, until};

/// What a run found: what was looked at, and the figure.
pub type Rows = Vec<(&'static str, String)>;

/// Prints what a run found, as part of one table.
pub fn print(run: &str, rows: &Rows) {
    for (i, (what, figure)) in rows.iter().enumerate() {
        println!("{:<14} {what:<34} {figure}", if i == 0 { run } else { "" });
    }
}

/// Waits until the pool is whole, compares its legs by a scrub, ends the daemon and compares the files too. Returns
/// the MiB of mirrors that were compared.
fn legs_equal(head: &mut Head) -> u64 {
    until("the pool is whole", 300, || head.health() == "optimal");
    compare_legs(head)
}

/// The same of a pool that is whole, whatever else is missing.
fn compare_legs(head: &mut Head) -> u64 {
    scrub(head);
    let mirrors = legs::mirrors(head);
    assert_eq!(head.stop(), 0, "an orderly end");
    legs::compare(&mirrors) >> 20
}

/// A scrub that finds nothing.
fn scrub(head: &Head) {
    let ended = |head: &Head| head.json("pool show tank")["scrub"]["last_ended"].clone();
    let before = ended(head);
    // The end is given to the second.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    head.cli("pool scrub tank");
    until("the scrub ends", 600, || {
        let scrub = &head.json("pool show tank")["scrub"];
        scrub["running"] == false && scrub["last_ended"] != before
    });
    let scrub = &head.json("pool show tank")["scrub"];
    for figure in ["differed_bytes", "unreadable_bytes"] {
        assert_eq!(scrub[figure], 0, "a scrub after the run: {scrub}");
    }
}

/// QEMU's name for a LUN of the loads' host.
fn iscsi(address: &str, iqn: &str, lun: u64) -> String {
    format!(
        "json:{{\"driver\":\"raw\",\"file\":{{\"driver\":\"iscsi\",\"transport\":\"tcp\",\"portal\":\"{address}:3260\",\
         \"target\":\"{iqn}\",\"lun\":{lun},\"initiator-name\":\"{}\"}}}}",
        crate::load::IQN
    )
}
