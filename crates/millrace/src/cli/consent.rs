//! What would send connected hosts away is asked first: on a terminal the person, else by `--yes`.
//!
//! The daemon decides what that is and refuses it (`disconnect`), so that nobody who connects between the
//! question and the deed goes unnoticed; only then somebody is asked.

use super::Context;
use crate::failure::{Exit, Failure};
use api::ErrorKind;
use clap::Args;
use std::io::{IsTerminal, Write};

/// Shows a question; the answer.
pub type Ask = fn(&str) -> std::io::Result<bool>;

/// `--yes`.
#[derive(Args, Clone, Copy, Debug)]
pub struct Consent {
    /// Do not ask, even though hosts are connected that lose something
    #[arg(long, short)]
    yes: bool,
}

impl Consent {
    /// Does what may send connected hosts away; `act` is told whether that is meant.
    pub fn obtain<T>(
        self,
        context: &Context,
        act: impl Fn(bool) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let refused = match act(self.yes) {
            Err(f) if f.kind == Some(ErrorKind::Unsafe) && f.field.as_deref() == Some("disconnect") => f,
            other => return other,
        };
        let Some(ask) = context.ask else { return Err(refused) };
        let mut question = refused.message.clone();
        if let Some(first) = question.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        match ask(&context.terminal.paragraph(crate::screen::Look::Plain, "", &format!("{question}."), 0)) {
            Ok(true) => act(true),
            Ok(false) => Err(Failure { field: None, ..refused }.but("nothing was done")),
            Err(e) => Err(Failure::new(Exit::Internal, format!("the answer cannot be read: {e}"))),
        }
    }
}

impl Failure {
    fn but(self, message: &str) -> Self {
        Self { message: message.into(), ..self }
    }
}

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
