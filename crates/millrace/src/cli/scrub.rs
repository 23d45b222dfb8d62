//! `millrace pool scrub`, and scrubs as `pool show` tells them.

use crate::arguments::{count_in, drive_path};
use crate::client::segment;
use crate::context::Context;
use crate::failure::Failure;
use crate::screen::count;
use api::{PoolScrub, Scrub};
use base::size::{print, print_rate, print_seconds};
use clap::Args;

/// `millrace pool scrub`.
#[derive(Args, Debug)]
pub struct ScrubArgs {
    /// The pool
    #[arg(value_name = "POOL", add = super::complete::pools())]
    pool: String,
    /// Make legs equal where they differ
    #[arg(long)]
    repair: bool,
    /// The drive of a mirror that holds the right data; repeat for each mirror
    #[arg(long, value_name = "DRIVE", add = super::complete::drives(), requires = "repair", conflicts_with_all = ["every", "never", "stop"])]
    prefer: Vec<String>,
    /// Stop the running scrub
    #[arg(long, conflicts_with_all = ["repair", "every", "never"])]
    stop: bool,
    /// Clear the findings of the last scrub
    #[arg(long, conflicts_with_all = ["repair", "stop", "every", "never"])]
    clear: bool,
    /// Start a scrub this many days after the last one ended
    #[arg(long, value_name = "DAYS", allow_hyphen_values = true, value_parser = count_in::<u32>(1..=3650), conflicts_with = "never")]
    every: Option<u32>,
    /// Remove the schedule
    #[arg(long, conflicts_with = "repair")]
    never: bool,
}

/// Begins or ends a scrub, or says when.
pub fn scrub(args: ScrubArgs, context: &Context) -> Result<String, Failure> {
    let ScrubArgs { pool, repair, prefer, stop, clear, every, never } = args;
    let days = if never { Some(0) } else { every };
    let (action, words) = match (stop, days) {
        _ if clear => {
            (PoolScrub::Clear, format!("The findings of the last scrub of pool {pool} are cleared."))
        }
        (true, _) => (PoolScrub::Stop, format!("The scrub of pool {pool} is stopped.")),
        (false, Some(0)) => (
            PoolScrub::Schedule { days: 0, repair: false },
            format!("Pool {pool} is not scrubbed by schedule."),
        ),
        (false, Some(days)) => {
            let every = count(days as usize, "day");
            (PoolScrub::Schedule { days, repair }, format!("Pool {pool} is scrubbed every {every}."))
        }
        (false, None) => {
            let prefer = prefer.iter().map(|d| drive_path(d)).collect();
            let words = format!("Pool {pool} is being scrubbed.");
            (PoolScrub::Start { repair, prefer }, words)
        }
    };
    let created: api::Created = context.client.post(&format!("/pools/{}/scrub", segment(&pool)), &action)?;
    Ok(context.created(&created, words, &format!("millrace pool show {pool}")))
}

/// A pool's scrubs in words: the one under way, the last one, the schedule, what was found.
pub fn scrub_words(s: &Scrub) -> Vec<String> {
    let mut out = vec![];
    let found = match (s.differed_bytes, s.unreadable_bytes) {
        (0, 0) => "all legs the same".to_string(),
        (d, u) => {
            let differed = format!("{} differed, {} of it written again", print(d), print(s.repaired_bytes));
            let unreadable = format!("{} could not be compared", print(u));
            match (d, u) {
                (_, 0) => differed,
                (0, _) => unreadable,
                (_, _) => format!("{differed}; {unreadable}"),
            }
        }
    };
    if s.running {
        let left =
            s.seconds_left.map_or("time left unknown".to_string(), |n| format!("{} left", print_seconds(n)));
        let percent = (u128::from(s.done_bytes) * 100).checked_div(u128::from(s.total_bytes)).unwrap_or(0);
        let how = if s.repair { ", repairing" } else { "" };
        out.push(format!(
            "under way{how}: {percent} %, {} of {}, {}, {left}; so far {found}",
            print(s.done_bytes),
            print(s.total_bytes),
            print_rate(s.rate)
        ));
    } else if let Some(at) = &s.last_ended {
        out.push(format!("last ended {at}: {found}"));
    } else if (s.differed_bytes, s.unreadable_bytes) != (0, 0) {
        out.push(format!("stopped before its end: {found}"));
    }
    if s.every_days > 0 {
        let how = if s.schedule_repairs { ", repairing" } else { "" };
        out.push(format!("every {}{how}", count(s.every_days as usize, "day")));
    }
    out.extend(s.findings.iter().map(|f| {
        let place =
            f.volume.as_ref().map_or_else(|| "space of no volume".to_string(), |v| format!("volume {v}"));
        let (size, at, last) = (print(f.bytes), print(f.at), f.at + f.bytes.max(1) - 1);
        format!("{place}, {size} at {at} (bytes {} to {last}): {}", f.at, f.what)
    }));
    let more = s.places.saturating_sub(s.findings.len() as u64);
    if more > 0 && !s.findings.is_empty() {
        out.push(format!("and {} that are not listed", count(more as usize, "more place")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::scrub_words;
    use api::{Finding, Scrub};

    #[test]
    fn places_that_are_not_listed_are_counted() {
        let finding = |n: u64| Finding {
            volume: Some("tank/vm1".into()),
            at: n << 20,
            bytes: 4096,
            array: 0,
            what: "legs differ".into(),
            repaired: false,
        };
        let mut scrub = Scrub { findings: (0..50).map(finding).collect(), places: 53, ..Scrub::default() };
        let words = scrub_words(&scrub);
        assert_eq!(words.len(), 51);
        assert_eq!(words[1], "volume tank/vm1, 4K at 1M (bytes 1048576 to 1052671): legs differ");
        assert_eq!(words.last().map(String::as_str), Some("and 3 more places that are not listed"));
        scrub.places = 50;
        assert_eq!(scrub_words(&scrub).len(), 50);
    }
}
