//! Why a command of the command line failed, in the words that a person reads.

use core::fmt;

/// The exit codes; `millrace --help` lists them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Something failed that should not have.
    Internal = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The daemon refused.
    Refused = 3,
    /// The daemon cannot be reached.
    Unreachable = 4,
}

/// A failure: its cause, and the command that helps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The process's exit code.
    pub exit: Exit,
    /// One sentence.
    pub message: String,
    /// The next command, if one helps.
    pub next: Option<String>,
}

impl Failure {
    /// A failure without advice.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), next: None }
    }
    /// The command line or the configuration is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }
    /// Something failed that should not have.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Exit::Internal, message)
    }
    /// The same, with the next command.
    pub fn with_next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "millrace: {}.", self.message.trim_end().trim_end_matches('.'))?;
        match &self.next {
            Some(next) => write!(f, " Next: {}", next.trim_end_matches('.')),
            None => Ok(()),
        }
    }
}

impl From<api::Error> for Failure {
    fn from(e: api::Error) -> Self {
        let exit = match e.kind {
            api::ErrorKind::Internal => Exit::Internal,
            _ => Exit::Refused,
        };
        let message = match e.field {
            // The field is named unless the sentence does so already.
            Some(field) if !e.message.contains(&field) => {
                format!("{} (field {field})", e.message.trim_end_matches('.'))
            }
            _ => e.message,
        };
        Self { exit, message, next: e.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_its_cause_and_the_next_command() {
        let failure = Failure::usage("there is no pool tank.").with_next("millrace pool ls");
        assert_eq!(failure.to_string(), "millrace: there is no pool tank. Next: millrace pool ls");
        assert_eq!(Failure::internal("no").to_string(), "millrace: no.");
    }

    #[test]
    fn a_refusal_names_the_field_once() {
        let error = api::Error::new(api::ErrorKind::Invalid, "the size is not a multiple of 4096")
            .with_field("bytes");
        assert_eq!(Failure::from(error).message, "the size is not a multiple of 4096 (field bytes)");
        let error =
            api::Error::new(api::ErrorKind::Invalid, "bytes must be a multiple of 4096").with_field("bytes");
        assert_eq!(Failure::from(error).message, "bytes must be a multiple of 4096");
    }
}
