//! What a command has at hand: the way to the daemon, the terminal, and the person who sits there.

use crate::client::Client;
use crate::output::pretty;
use crate::screen::{Look, Terminal};
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// Shows a question; the answer.
pub type Ask = fn(&str) -> std::io::Result<bool>;

/// Asks the person at the terminal, if there is one and a screen is wanted.
pub fn by_terminal(json: bool) -> Option<Ask> {
    let there = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    (there && !json).then_some(ask_person as Ask)
}

fn ask_person(question: &str) -> std::io::Result<bool> {
    let mut err = std::io::stderr().lock();
    write!(err, "{question}Go on? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// What a command has at hand.
pub struct Context {
    /// The way to the daemon.
    pub client: Client,
    /// Print JSON.
    pub json: bool,
    /// Where the screen goes.
    pub terminal: Terminal,
    /// Tells which disks of this machine somebody has.
    pub taken: fn() -> Vec<uring::Taken>,
    /// Asks whoever sits at the terminal; None if nobody does.
    pub ask: Option<Ask>,
}

impl Context {
    /// What to print for `value`: JSON if that was asked for, else `screen`'s text.
    pub fn show<T: Serialize>(&self, value: &T, screen: impl FnOnce(&T) -> String) -> String {
        if self.json { pretty(value) } else { screen(value) }
    }
    /// What to print when something was done.
    pub fn done(&self, what: impl Into<String>, next: &str) -> String {
        self.created(&api::Created::default(), what, next)
    }
    /// What to print when something new exists.
    pub fn created(&self, created: &api::Created, what: impl Into<String>, next: &str) -> String {
        self.created_with(created, what, "", &[], next)
    }

    /// The same with lines for people behind the sentence, and commands in them for programs.
    pub fn created_with(
        &self,
        created: &api::Created,
        what: impl Into<String>,
        lines: &str,
        commands: &[String],
        next: &str,
    ) -> String {
        let next = (!next.is_empty()).then(|| next.to_string());
        let api::Created { uuid, notices } = created.clone();
        let commands = commands.to_vec();
        self.show(&Outcome { what: what.into(), uuid, notices, commands, next }, |o| {
            let mut out = self.terminal.paragraph(Look::Plain, "", &o.what, 2) + lines;
            for notice in &o.notices {
                out.push_str(&self.terminal.paragraph(Look::Plain, "Note: ", notice, 6));
            }
            out + &o.next.as_ref().map_or(String::new(), |n| self.terminal.next(n))
        })
    }
}

/// What a command that changes something has to say; the shape stays, keys may be added.
#[derive(Serialize)]
struct Outcome {
    /// What was done, one sentence.
    what: String,
    /// The identity of what was made.
    uuid: Option<String>,
    /// Worth knowing: sentences.
    notices: Vec<String>,
    /// What the host does now, if it is told that: whole command lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commands: Vec<String>,
    /// What is likely to be done next.
    next: Option<String>,
}
