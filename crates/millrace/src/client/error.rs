//! Why the command line did not get an answer of the daemon.

use crate::failure::{Exit, Failure};

/// What went wrong between the command line and the daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientError {
    /// The client itself cannot run.
    NotStarted { error: String },
    /// The name of the socket is none.
    SocketNameInvalid { socket: String, error: String },
    /// There is no such socket.
    NoDaemon { socket: String },
    /// Nobody listens at the socket any more.
    DaemonGone { socket: String },
    /// This user may not use the socket.
    SocketForbidden { socket: String },
    /// Connecting failed for another reason.
    NotConnected { socket: String, error: String },
    /// No answer came in time.
    TimedOut { socket: String, seconds: u64 },
    /// The connection ended before the answer.
    BrokenOff { socket: String, error: String },
    /// A name cannot be part of a request.
    RequestInvalid { path: String, error: String },
    /// The answer did not arrive whole.
    AnswerCut { error: String },
    /// The answer is not of this version of the API.
    AnswerNotUnderstood { error: String },
    /// The daemon refused without saying why.
    NoReason { status: u16 },
}

/// What is said of one.
struct Words {
    code: &'static str,
    exit: Exit,
    cause: String,
    next: String,
}

impl ClientError {
    /// Code and words of each, in one place. Codes are stable.
    fn words(&self) -> Words {
        let words = |code, exit, cause: String, next: &str| Words { code, exit, cause, next: next.into() };
        match self {
            Self::NotStarted { error } => words(
                "client_not_started",
                Exit::Internal,
                format!("the client cannot start: {error}"),
                "ulimit -a, which lists the limits of this shell",
            ),
            Self::SocketNameInvalid { socket, error } => words(
                "socket_name_invalid",
                Exit::Usage,
                format!("{socket} cannot be the name of a socket: {error}"),
                "name the daemon's socket with --socket PATH or MILLRACE_SOCKET",
            ),
            Self::NoDaemon { socket } => words(
                "no_daemon",
                Exit::Unreachable,
                format!("no daemon listens at {socket}"),
                "millrace serve (or systemctl start millrace), or name its socket with --socket or MILLRACE_SOCKET",
            ),
            Self::DaemonGone { socket } => words(
                "daemon_gone",
                Exit::Unreachable,
                format!("the daemon that listened at {socket} has ended"),
                "systemctl status millrace, or millrace serve",
            ),
            Self::SocketForbidden { socket } => words(
                "socket_forbidden",
                Exit::Unreachable,
                format!("you may not use the socket {socket}"),
                "sudo usermod -aG millrace \"$USER\", then log in again (the socket's group may use it), or the same command with sudo",
            ),
            Self::NotConnected { socket, error } => words(
                "not_connected",
                Exit::Unreachable,
                format!("cannot connect to the daemon at {socket}: {error}"),
                "systemctl status millrace",
            ),
            Self::TimedOut { socket, seconds } => words(
                "timed_out",
                Exit::Unreachable,
                format!("the daemon at {socket} did not answer within {seconds} s"),
                "journalctl -u millrace -n 20",
            ),
            Self::BrokenOff { socket, error } => words(
                "broken_off",
                Exit::Unreachable,
                format!("the daemon at {socket} closed the connection before it answered: {error}"),
                "journalctl -u millrace -n 20, for why it ended; systemd starts it again",
            ),
            Self::RequestInvalid { path, error } => words(
                "request_invalid",
                Exit::Usage,
                format!("{path} cannot be requested: {error}"),
                "millrace --help",
            ),
            Self::AnswerCut { error } => words(
                "answer_cut",
                Exit::Internal,
                format!("the daemon's answer did not arrive whole: {error}"),
                "journalctl -u millrace -n 20",
            ),
            Self::AnswerNotUnderstood { error } => words(
                "answer_not_understood",
                Exit::Internal,
                format!("this program does not understand the daemon's answer: {error}"),
                "millrace --version, and millrace status: both should be of one version",
            ),
            Self::NoReason { status } => words(
                "no_reason",
                Exit::Internal,
                format!("the daemon answered with HTTP status {status} and no reason"),
                "journalctl -u millrace -n 20",
            ),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let Words { code, exit, cause, next } = error.words();
        Failure::new(exit, cause).with_code(code).with_next(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_error_has_a_code_of_its_own_a_cause_and_a_next_command() {
        let (socket, error) = ("/run/millrace/api.sock".to_string(), "odd".to_string());
        let all = [
            ClientError::NotStarted { error: error.clone() },
            ClientError::SocketNameInvalid { socket: socket.clone(), error: error.clone() },
            ClientError::NoDaemon { socket: socket.clone() },
            ClientError::DaemonGone { socket: socket.clone() },
            ClientError::SocketForbidden { socket: socket.clone() },
            ClientError::NotConnected { socket: socket.clone(), error: error.clone() },
            ClientError::TimedOut { socket: socket.clone(), seconds: 3 },
            ClientError::BrokenOff { socket, error: error.clone() },
            ClientError::RequestInvalid { path: "/pools/x".into(), error: error.clone() },
            ClientError::AnswerCut { error: error.clone() },
            ClientError::AnswerNotUnderstood { error },
            ClientError::NoReason { status: 500 },
        ];
        let mut codes = BTreeSet::new();
        for one in all {
            let failure = Failure::from(one.clone());
            let code = failure.code.clone().expect("a code");
            assert!(code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
            assert!(codes.insert(code), "{one:?}");
            assert!(failure.next.is_some() && !failure.message.ends_with('.'), "{failure}");
        }
    }
}
