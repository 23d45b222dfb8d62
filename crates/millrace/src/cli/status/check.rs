//! `millrace status --check`: one line and an exit code, as the plugins of Nagios and its kin have them.

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{pretty, put};
use crate::screen::count;
use api::{Status, Weight};
use std::time::Duration;

/// How long the daemon may take: such a plugin's own time is often 10 s.
const PATIENCE: Duration = Duration::from_secs(8);
/// Longest sentence that is shown.
const SENTENCE_MAX: usize = 400;

/// The word for a level.
fn word(level: Weight) -> &'static str {
    match level {
        Weight::Note => "OK",
        Weight::Warning => "WARNING",
        Weight::Error => "CRITICAL",
    }
}

/// Prints the line, and ends with the code. A daemon that does not answer is critical: nobody knows how its volumes are.
pub fn check(context: impl FnOnce() -> Result<Context, Failure>) -> Result<(), Failure> {
    let asked = context().and_then(|c| Ok((c.json, c.client.get_within::<Status>("/status", PATIENCE)?)));
    let level = asked.as_ref().map_or(Weight::Error, |(_, status)| crate::alarm::level_of(status));
    match &asked {
        Ok((true, status)) => put(&pretty(status))?,
        Ok((false, status)) => put(&line(status))?,
        Err(failure) => put(&format!("MILLRACE CRITICAL - {}\n", plain(&failure.message)))?,
    }
    std::process::exit(level as i32)
}

/// A text that ends neither the line nor its sentence.
fn plain(text: &str) -> String {
    let one = |c: char| if c == '|' || c.is_control() { ' ' } else { c };
    text.chars().map(one).take(SENTENCE_MAX).collect()
}

/// The line: how it is, and behind `|` figures.
fn line(status: &Status) -> String {
    let level = crate::alarm::level_of(status);
    let sentence = match status.reasons.first() {
        Some(worst) => {
            let more = match status.reasons.len() {
                1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            plain(&format!("{}, {}: {}", crate::words::health(status), worst.what, worst.message)) + &more
        }
        None => {
            let connected = count(status.connections.len(), "connection");
            format!(
                "{}, {}, {}, {connected}",
                crate::words::health(status),
                count(status.pools.len(), "pool"),
                count(status.volumes.len(), "volume")
            )
        }
    };
    format!("MILLRACE {} - {sentence} | {}\n", word(level), figures(status))
}

/// Figures as plugins write them: `label=value[unit];warn;crit;min;max`.
fn figures(status: &Status) -> String {
    let counters = status.volumes.iter().map(|v| v.counters);
    let sum = |of: fn(&api::Counters) -> u64| counters.clone().map(|c| of(&c)).sum::<u64>();
    let mut all = vec![
        format!("reasons={};;;0", status.reasons.len()),
        format!("connections={};;;0", status.connections.len()),
        format!("reads={}c", sum(|c| c.reads)),
        format!("read_bytes={}c", sum(|c| c.read_bytes)),
        format!("writes={}c", sum(|c| c.writes)),
        format!("write_bytes={}c", sum(|c| c.write_bytes)),
        format!("errors={}c", sum(|c| c.errors)),
    ];
    // Their names have no blank, quote or equals sign.
    all.extend(
        status.pools.iter().map(|p| format!("pool_{}_used={}B;;;0;{}", p.name, p.used_bytes, p.bytes)),
    );
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Pool, Reason, State};
    use finding::StatusCause;

    #[test]
    fn the_line_is_a_sentence_and_figures() {
        let pool = Pool { name: "tank".into(), bytes: 4096, used_bytes: 1024, ..Pool::default() };
        let mut status = Status { pools: vec![pool], ..Status::default() };
        assert_eq!(
            line(&status),
            "MILLRACE OK - optimal, 1 pool, 0 volumes, 0 connections | reasons=0;;;0 connections=0;;;0 reads=0c read_bytes=0c writes=0c write_bytes=0c errors=0c pool_tank_used=1024B;;;0;4096\n"
        );
        let reason = |state, message: &str| Reason {
            message: message.into(),
            ..Reason::new(state, "pool tank", StatusCause::PortalOpening)
        };
        for (state, word) in [
            (State::Rebuilding, "WARNING"),
            (State::Degraded, "WARNING"),
            (State::Offline, "CRITICAL"),
            (State::Failed, "CRITICAL"),
        ] {
            status.health = state;
            status.reasons = vec![reason(state, "a|b\nc"), reason(State::Degraded, "d")];
            let begin =
                format!("MILLRACE {word} - {}, pool tank: a b c (and 1 more) | reasons=2", state.word());
            assert!(line(&status).starts_with(&begin), "{}", line(&status));
        }
    }

    #[test]
    fn a_pool_whose_spares_are_used_up_is_optimal_and_a_warning() {
        let pool = Pool { name: "tank".into(), no_spare: true, ..Pool::default() };
        let reason = Reason {
            message: "no spare is left".into(),
            ..Reason::new(State::Optimal, "pool tank", StatusCause::PortalOpening)
        };
        let status = Status { pools: vec![pool], reasons: vec![reason], ..Status::default() };
        let told = line(&status);
        assert!(
            told.starts_with("MILLRACE WARNING - optimal, no spare, pool tank: no spare is left | reasons=1"),
            "{told}"
        );
    }
}
