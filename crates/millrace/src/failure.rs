//! Why a command of the command line failed, in the words that a person reads.

use core::fmt;
use serde::Serialize;

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
    /// Ctrl-C ended it before its end (128 and the signal's number, as shells have it).
    Interrupted = 130,
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
    /// What kind of refusal, if the daemon refused.
    pub kind: Option<api::ErrorKind>,
    /// The field of the request at fault, if the daemon named one.
    pub field: Option<String>,
    /// The stable name of this cause, if it has one.
    pub code: Option<String>,
    /// What the cause is about; null if there is nothing.
    pub fields: Box<serde_json::Value>,
}

/// A failure as JSON: the shape stays, keys may be added.
#[derive(Serialize)]
struct Told<'a> {
    /// The command that failed.
    what: &'a str,
    /// Why, one sentence.
    cause: &'a str,
    /// The command that helps.
    next: Option<&'a str>,
    /// The stable name of the cause; the word of `kind` for one that has none.
    code: &'a str,
    /// What it is about; absent if there is nothing.
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    fields: &'a serde_json::Value,
    /// The daemon's word for it, else `internal`, `usage`, `unreachable` or `interrupted`.
    kind: serde_json::Value,
    /// The exit code.
    exit: u8,
}

impl Failure {
    /// A failure without advice.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        let fields = Box::default();
        Self { exit, message: message.into(), next: None, kind: None, field: None, code: None, fields }
    }
    /// The command line or the configuration is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }
    /// Something failed that should not have.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Exit::Internal, message)
    }
    /// The same, with the stable name of the cause.
    pub fn with_code(self, code: finding::CommandFault) -> Self {
        Self { code: Some(finding::snake(code.name())), ..self }
    }
    /// The same, with the next command.
    pub fn with_next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }
    /// The same with a way on for the command `what`, unless there is some.
    pub fn or_next(self, what: &str) -> Self {
        let usual = || match self.exit {
            Exit::Usage => format!("millrace {what} --help").replace("  ", " "),
            Exit::Refused => "millrace status".to_string(),
            Exit::Interrupted => "the same again".to_string(),
            Exit::Internal | Exit::Unreachable => {
                "journalctl -u millrace -n 20, or millrace status".to_string()
            }
        };
        Self { next: self.next.or_else(|| Some(usual())), ..self }
    }
    /// The failure in one line, for a log.
    pub fn line(&self) -> String {
        let next = self.next.as_ref().map_or(String::new(), |next| format!(". Next: {}", trimmed(next)));
        trimmed(&self.message).to_string() + &next
    }
    /// The failure of the command `what` as JSON, one line.
    pub fn json(&self, what: &str) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            error: Told<'a>,
        }
        let kind = match (self.kind, self.exit) {
            (Some(kind), _) => serde_json::to_value(kind).expect("a word"),
            (None, exit) => exit.word().into(),
        };
        let cause = trimmed(&self.message);
        let exit = self.exit as u8;
        let code = self.code.as_deref().or(kind.as_str()).unwrap_or_default();
        let (next, fields) = (self.next.as_deref(), &self.fields);
        let error = Told { what, cause, next, code, fields, kind: kind.clone(), exit };
        serde_json::to_string(&Body { error }).expect("plain data")
    }
}

impl Exit {
    /// The word in JSON.
    fn word(self) -> &'static str {
        match self {
            Exit::Internal => "internal",
            Exit::Usage => "usage",
            Exit::Refused => "refused",
            Exit::Unreachable => "unreachable",
            Exit::Interrupted => "interrupted",
        }
    }
}

/// A sentence without its full stop.
fn trimmed(sentence: &str) -> &str {
    sentence.trim_end().trim_end_matches('.')
}

/// As every failure is shown, those of the parser of the command line too: what is wrong, and in a line of its own what
/// helps.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", trimmed(&self.message))?;
        match &self.next {
            Some(next) => write!(f, "\nNext: {}", trimmed(next)),
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
        Self {
            exit,
            message: e.message,
            next: e.next,
            kind: Some(e.kind),
            field: e.field,
            code: Some(e.code),
            fields: Box::new(e.fields),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_its_cause_and_the_next_command() {
        let failure = Failure::usage("there is no pool tank.").with_next("millrace pool ls");
        assert_eq!(failure.to_string(), "error: there is no pool tank\nNext: millrace pool ls");
        assert_eq!(failure.line(), "there is no pool tank. Next: millrace pool ls");
        assert_eq!(Failure::internal("no").to_string(), "error: no");
    }

    #[test]
    fn a_failure_as_json_keeps_its_shape() {
        let failure = Failure::usage("there is no pool tank.").with_next("millrace pool ls");
        assert_eq!(
            failure.json("pool show"),
            r#"{"error":{"what":"pool show","cause":"there is no pool tank","next":"millrace pool ls","code":"usage","kind":"usage","exit":2}}"#
        );
        let refused = finding::RequestRefusal::ParameterTwice { parameter: "wait".into() };
        let refused = Failure::from(crate::words::refusal(&refused.into()));
        assert_eq!((refused.field.as_deref(), refused.exit), (Some("wait"), Exit::Refused));
        let refused = Failure { next: None, ..refused };
        assert_eq!(
            refused.json("status"),
            r#"{"error":{"what":"status","cause":"wait is given twice","next":null,"code":"parameter_twice","fields":{"parameter":"wait"},"kind":"invalid","exit":3}}"#
        );
    }
}
