//! `millrace events`.

use crate::arguments::{count, span};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::put;
use crate::screen::{Look, Terminal, columns};
use api::{ErrorKind, Event, Events, Time, Weight};
use clap::Args;
use std::time::{Duration, SystemTime};

/// `millrace events`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  millrace events
  millrace events --last 20
  millrace events --since 2h --level warning
  millrace events --since 2026-11-20T14:00Z
  millrace events --follow --level error
  millrace events --since 120 --json  # with --follow: one event a line")]
pub struct EventsArgs {
    /// Wait for new events, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Only so many events, the latest
    #[arg(long, short = 'n', value_name = "N", value_parser = count)]
    last: Option<u64>,
    /// From a number, a time (2026-11-20T14:00Z) or so long ago (90s, 15m, 4h, 2d) on
    #[arg(long, value_name = "FROM", allow_hyphen_values = true, default_value = "0", value_parser = since)]
    since: Since,
    /// Only of this level and above: note, warning or error
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    level: Option<Weight>,
}

/// Where events begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Since {
    Number(u64),
    Time(Time),
    /// So many seconds ago.
    Ago(u64),
}

fn level(text: &str) -> Result<Weight, String> {
    text.parse().map_err(|()| format!("\"{text}\" is no level: note, warning or error"))
}

/// A number has digits alone, a span of time a unit, and a time a year and a month.
fn since(text: &str) -> Result<Since, String> {
    let time = |text: String| text.parse::<Time>().ok();
    let whole = match text.len() {
        10 => time(format!("{text}T00:00:00Z")),
        17 => time(format!("{}:00Z", text.trim_end_matches('Z'))),
        _ => time(text.to_string()),
    };
    match (whole, span(text)) {
        (Some(at), _) => Ok(Since::Time(at)),
        (None, Ok(seconds)) => Ok(Since::Ago(seconds)),
        (None, Err(_)) => count(text).map(Since::Number).map_err(|_| {
            format!(
                "\"{text}\" is no number, no time and no span of time: write 120, 2026-11-20T14:00Z or 2h"
            )
        }),
    }
}

impl EventsArgs {
    /// The parameters that stay the same with each request.
    fn filters(&self) -> String {
        let from = match self.since {
            Since::Number(_) => None,
            Since::Time(at) => Some(at),
            Since::Ago(seconds) => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                Some(Time(now.as_secs().saturating_sub(seconds)))
            }
        };
        let from = from.map_or(String::new(), |from| format!("&from={from}"));
        from + &self.level.map_or(String::new(), |level| format!("&level={}", level.word()))
    }
    /// The number to begin with.
    fn number(&self) -> u64 {
        match self.since {
            Since::Number(number) => number,
            Since::Time(_) | Since::Ago(_) => 0,
        }
    }
    /// The parameter for the first request.
    fn last(&self) -> String {
        self.last.map_or(String::new(), |last| format!("&last={last}"))
    }
}

/// Seconds that one request waits for more.
const WAIT_SECONDS: u32 = 30;
/// How soon a daemon that went is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Shows what there is.
pub fn run(args: &EventsArgs, context: &Context) -> Result<String, Failure> {
    let (number, last, filters) = (args.number(), args.last(), args.filters());
    let found: Events = context.client.get(&format!("/events?since={number}{last}{filters}"))?;
    Ok(context.show(&found.events, |events| {
        if events.is_empty() {
            let all = number == 0 && last.is_empty() && filters.is_empty();
            if all { "Nothing has happened.\n" } else { "No event matches.\n" }.to_string()
        } else {
            events.iter().map(|e| line(e, context.terminal)).collect()
        }
    }))
}

/// Shows what there is, and more as it happens.
pub fn follow(args: &EventsArgs, context: &Context) -> Result<(), Failure> {
    let (mut since, mut own, mut reached) = (args.number(), String::new(), false);
    let (mut last, filters) = (args.last(), args.filters());
    loop {
        let path = format!("/events?since={since}{own}{last}{filters}&wait={WAIT_SECONDS}");
        let found = context.client.get::<Events>(&path);
        let found = match found {
            // The daemon is started again, and whoever waits for events wants those of that most of all. One that is being
            // stopped in order says so.
            Err(e) if reached && (e.exit == Exit::Unreachable || e.kind == Some(ErrorKind::NotReady)) => {
                std::thread::sleep(AGAIN);
                continue;
            }
            found => found?,
        };
        reached = true;
        for event in &found.events {
            if context.json {
                put(&(serde_json::to_string(event).expect("plain data") + "\n"))?
            } else {
                put(&line(event, context.terminal))?
            }
        }
        since = found.next;
        last.clear();
        own = found.next_own.map_or(String::new(), |next| format!("&own={next}"));
    }
}

/// An event as one line.
pub fn line(e: &Event, terminal: Terminal) -> String {
    let look = match e.weight {
        Weight::Note => Look::Plain,
        Weight::Warning => Look::Warn,
        Weight::Error => Look::Bad,
    };
    let begin = terminal.text(Look::Dim, &format!("{:>6}  {}  ", e.number, e.at));
    let word = format!("{:<7}  ", e.weight.word());
    let head = e.head.as_ref().map_or(String::new(), |head| format!("head {head}: "));
    let indent = 6 + 2 + columns(&e.at.to_string()) + 2;
    let rest =
        terminal.indented(indent).paragraph(look, &word, &format!("{head}{}: {}", e.what, e.message), 9);
    begin + rest.replace('\n', &format!("\n{}", " ".repeat(indent))).trim_end_matches(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_number_a_time_or_a_span() {
        let at = |text: &str| Since::Time(text.parse().expect("a time"));
        for (text, found) in [
            ("0", Since::Number(0)),
            ("120", Since::Number(120)),
            ("5k", Since::Number(5000)),
            ("90s", Since::Ago(90)),
            ("15m", Since::Ago(900)),
            ("2d", Since::Ago(172_800)),
            ("2026-11-20", at("2026-11-20T00:00:00Z")),
            ("2026-11-20T14:00Z", at("2026-11-20T14:00:00Z")),
            ("2026-11-20T14:02:11Z", at("2026-11-20T14:02:11Z")),
        ] {
            assert_eq!(since(text), Ok(found), "{text}");
        }
        for text in ["", "-1", "yesterday", "2026-13-20", "2026-11-20T25:00Z", "2 h"] {
            assert!(since(text).expect_err(text).contains("no span of time"), "{text}");
        }
    }
}
