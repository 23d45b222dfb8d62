//! What would send connected hosts away is asked first: on a terminal the person, else by `--yes`.
//!
//! The daemon decides what that is and refuses it (`disconnect`), so that nobody who connects between the
//! question and the deed goes unnoticed; only then somebody is asked.

use crate::context::Context;
use crate::failure::{Exit, Failure};
use api::ErrorKind;
use clap::Args;

/// `--yes`.
#[derive(Args, Clone, Copy, Debug)]
pub struct Consent {
    /// Do not ask, even if connected hosts lose access
    #[arg(long, short)]
    yes: bool,
}

impl Consent {
    /// As an option of its own said.
    pub fn of(yes: bool) -> Self {
        Self { yes }
    }

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
