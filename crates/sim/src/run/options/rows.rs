//! Worlds of the table in docs/two-heads.md, "What happens when".

use super::Trouble::{FollowerBehindFence, LeaderBehindFence};
use super::{Loss, Options, Trouble};
use base::Duration;

/// A drive confirms nothing, or a head reaches nothing, for so long.
const HELD: Duration = Duration::from_secs(6);

/// A row of that table, by how it begins; a world of it, and the longest that hosts may wait for a command that ends well, milliseconds.
pub type Row = (&'static str, fn(u64) -> Options, u64);

/// This happens once, within 2 s, to two heads that both serve.
fn once(seed: u64, trouble: Trouble) -> Options {
    Options { both: true, work: Duration::from_secs(5), ..Options::of_one(seed, trouble) }
}
/// The same where it takes some seconds until all of it has happened.
fn held(seed: u64, trouble: Trouble) -> Options {
    Options { work: Duration::from_secs(9), ..once(seed, trouble) }
}
/// The same where it takes half a minute. Drives are slow, else hosts would do much in that time.
fn long(seed: u64, trouble: Trouble) -> Options {
    let mut options = Options { work: Duration::from_secs(27), ..once(seed, trouble) };
    options.delivery.drive_us = 5000;
    options
}
/// The power of both servers and all drives goes. A host with a path to each head would wait for its own timers: nobody resets a connection
/// to a server without power, and here nobody does once that is back.
fn blackout(seed: u64) -> Options {
    Options { in_turns: false, ..once(seed, Trouble::Blackout) }
}

/// A path of the follower is lost, and back 6 s later.
fn path_is_back(seed: u64) -> Options {
    let mut options = once(seed, Trouble::Kill);
    options.troubles.clear();
    options.loses = Some(Loss::of_one(1, 0));
    options.work = Duration::from_secs(9);
    options
}

/// The rows whose time is measured, in their order there.
pub const ROWS: [Row; 21] = [
    ("the leader's process ends", |s| once(s, Trouble::Kill), 500),
    ("the leader loses power", |s| once(s, Trouble::PowerCut), 1000),
    ("the leader hangs for seconds", |s| once(s, Trouble::Pause), 1000),
    ("all networks of the link are cut", |s| once(s, Trouble::CutLink), 1000),
    ("the follower ends, or does not", |s| once(s, Trouble::KillFollower), 1000),
    ("the follower's state directory takes", |s| Options::waits(5 * s + 2), 1000),
    ("a head is put out again for the same", |s| Options::waits(5 * s + 3), 1000),
    ("one machine, or both, are so loaded", |s| Options::waits(5 * s + 4), 1000),
    // With the 20 ms to 3 s in which these machines start.
    ("both lose power", blackout, 5000),
    ("the leader sees too few voters", |s| held(s, Trouble::Alone(HELD)), 5000),
    ("the follower loses its path", |s| once(s, Trouble::LosePathOf { leader: false }), 1500),
    ("the leader loses its path to a drive", |s| once(s, Trouble::LosePathOf { leader: true }), 1500),
    ("a head starts without a path", |s| held(s, Trouble::StartWithoutPath(0)), 1000),
    ("a lost path is back", path_is_back, 1500),
    ("the head that takes over does not reach", |s| long(s, Trouble::KillWithoutPath(s as usize % 2)), 3650),
    // 3.5 s are aimed at: docs/performance.md.
    ("a drive does not confirm within 2.5 s that the f", |s| held(s, FollowerBehindFence(0, HELD)), 3650),
    ("a drive does not confirm within 2.5 s that the h", |s| held(s, LeaderBehindFence(0, HELD)), 3650),
    // NVMe hosts that are told *not ready* wait for 10 s.
    ("the same of a last leg in sync", |s| long(s, Trouble::LastLegBehindFence(0, HELD)), 17_000),
    ("no drive confirms", |s| held(s, Trouble::KillBehindFences(HELD)), 7500),
    ("a head loses its paths to all legs", |s| Options::without_legs(s, false), 11_000),
    // One world in twenty has a host that is told *not ready*: of these twelve, one has.
    ("the leader loses its path to the last leg", |s| Options::without_legs(s + 24, true), 17_000),
];
