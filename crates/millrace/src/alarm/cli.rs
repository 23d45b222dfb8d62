//! `millrace alarm`.

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{pretty, put};
use crate::screen::{Cell, Look, Table};
use api::{AlarmReceiver, AlarmTest, AlarmTested, Alarms, ReceiverState, Weight};
use clap::{Args, Subcommand};

/// `millrace alarm`.
#[derive(Subcommand, Debug)]
#[command(after_help = "\
Examples:
  millrace alarm ls
  millrace alarm test oncall")]
pub enum AlarmCommand {
    /// List the receivers of alarms, and what stands
    #[command(after_help = "\
Examples:
  millrace alarm ls
  millrace alarm ls --json | jq .standing")]
    Ls,
    /// Send a test alarm, and show what each receiver answers
    #[command(after_help = "\
The daemon sends it, whatever the receiver's level, codes and quiet time. The exit code is 1 if a receiver did not take it. Receivers are tables [alarm.NAME] of head.toml: millrace serve --example.

Examples:
  millrace alarm test
  millrace alarm test oncall")]
    Test(TestArgs),
}

/// `millrace alarm test`.
#[derive(Args, Debug)]
pub struct TestArgs {
    /// The receiver [default: all]
    name: Option<String>,
}

/// Carries it out.
pub fn run(command: AlarmCommand, context: &Context) -> Result<String, Failure> {
    match command {
        AlarmCommand::Ls => {
            let alarms: Alarms = context.client.get("/alarms")?;
            Ok(context.show(&alarms, |alarms| screen(alarms, context)))
        }
        AlarmCommand::Test(TestArgs { name }) => {
            let tested: Vec<AlarmTested> =
                context.client.post("/alarms/test", &AlarmTest { receiver: name })?;
            let all = if context.json { pretty(&tested) } else { answers(&tested, context) };
            let failed: Vec<&str> = tested.iter().filter(|t| !t.taken).map(|t| t.name.as_str()).collect();
            if failed.is_empty() {
                return Ok(all);
            }
            put(&all)?;
            Err(Failure::internal(format!("no alarm reaches {}", failed.join(", "))).with_next(
                "correct [alarm.NAME] in head.toml, systemctl restart millrace, and the same again",
            ))
        }
    }
}

fn answers(tested: &[AlarmTested], context: &Context) -> String {
    let mut table = Table::new(&["RECEIVER", "KIND", ">TIME", "ANSWER"]).prose();
    for t in tested {
        let look = if t.taken { Look::Good } else { Look::Bad };
        table.row([
            t.name.clone().into(),
            t.kind.clone().into(),
            format!("{} ms", t.milliseconds).into(),
            Cell::new(look, &t.answer),
        ]);
    }
    table.print(context.terminal, 0)
}

fn screen(alarms: &Alarms, context: &Context) -> String {
    let mut table = Table::new(&["RECEIVER", "KIND", "LEVEL", "STATE", ">WAITING", "LAST SENT", ""]).prose();
    for r in &alarms.receivers {
        table.row(row(r));
    }
    let mut out = table.print(context.terminal, 0);
    if alarms.standing.is_empty() {
        return out + "\nNothing stands.\n";
    }
    out.push('\n');
    for alarm in &alarms.standing {
        let look = if alarm.level == Weight::Error { Look::Bad } else { Look::Warn };
        let since = alarm.since.unwrap_or(alarm.at);
        let begin = format!("{since}  {:<7}  ", alarm.level.word());
        let text = format!("{}: {}", alarm.subject, alarm.message);
        out.push_str(&context.terminal.paragraph(look, &begin, &text, 4));
    }
    out
}

fn row(r: &AlarmReceiver) -> [Cell; 7] {
    let look = match r.state {
        ReceiverState::Well => Look::Good,
        ReceiverState::Failing => Look::Warn,
        ReceiverState::Dead => Look::Bad,
    };
    [
        r.name.clone().into(),
        r.kind.clone().into(),
        r.level.word().to_string().into(),
        Cell::new(look, r.state.word()),
        r.waiting.to_string().into(),
        r.sent.map_or(String::new(), |at| at.to_string()).into(),
        r.reason.clone().into(),
    ]
}
