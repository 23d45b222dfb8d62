//! `millrace events`.

use crate::arguments::count;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::put;
use crate::screen::{Look, Terminal, columns};
use api::{ErrorKind, Event, Events, Weight};
use clap::Args;
use std::time::Duration;

/// `millrace events`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  millrace events
  millrace events --follow
  millrace events --since 120 --json  # with --follow: one event a line")]
pub struct EventsArgs {
    /// Wait for new events, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Number of the first event to show
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, default_value_t = 0, value_parser = count)]
    since: u64,
}

/// Seconds that one request waits for more.
const WAIT_SECONDS: u32 = 30;
/// How soon a daemon that went is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Shows what there is.
pub fn run(args: &EventsArgs, context: &Context) -> Result<String, Failure> {
    let found: Events = context.client.get(&format!("/events?since={}", args.since))?;
    Ok(context.show(&found.events, |events| {
        if events.is_empty() {
            "Nothing has happened.\n".to_string()
        } else {
            events.iter().map(|e| line(e, context.terminal)).collect()
        }
    }))
}

/// Shows what there is, and more as it happens.
pub fn follow(args: &EventsArgs, context: &Context) -> Result<(), Failure> {
    let (mut since, mut own, mut reached) = (args.since, String::new(), false);
    loop {
        let found = context.client.get::<Events>(&format!("/events?since={since}{own}&wait={WAIT_SECONDS}"));
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
