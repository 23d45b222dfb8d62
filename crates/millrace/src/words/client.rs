//! Words about what the command line finds on its way to the daemon.

use super::Said;
use finding::ClientFault;

/// Why there is no answer.
pub fn client(f: &ClientFault) -> Said {
    match f {
        ClientFault::ClientNotStarted { error } => Said::new(
            format!("the client cannot start: {error}")
        )
        .then(
            "ulimit -a, which lists the limits of this shell"
        ),
        ClientFault::SocketNameInvalid { socket, error } => Said::new(
            format!("{socket} cannot be the name of a socket: {error}")
        )
        .then(
            "name the daemon's socket with --socket PATH or MILLRACE_SOCKET"
        ),
        ClientFault::NoDaemon { socket } => Said::new(
            format!("no daemon listens at {socket}")
        )
        .then(
            "millrace serve (or systemctl start millrace), or name its socket with --socket or MILLRACE_SOCKET"
        ),
        ClientFault::DaemonGone { socket } => Said::new(
            format!("the daemon that listened at {socket} has ended")
        )
        .then(
            "systemctl status millrace, or millrace serve"
        ),
        ClientFault::SocketForbidden { socket } => Said::new(
            format!("you may not use the socket {socket}")
        )
        .then(
            "sudo usermod -aG millrace \"$USER\", then log in again (the socket's group may use it), or the same command with sudo"
        ),
        ClientFault::NotConnected { socket, error } => Said::new(
            format!("cannot connect to the daemon at {socket}: {error}")
        )
        .then(
            "systemctl status millrace"
        ),
        ClientFault::TimedOut { socket, seconds } => Said::new(
            format!("the daemon at {socket} did not answer within {seconds} s")
        )
        .then(
            "journalctl -u millrace -n 20"
        ),
        ClientFault::BrokenOff { socket, error } => Said::new(
            format!("the daemon at {socket} closed the connection before it answered: {error}")
        )
        .then(
            "journalctl -u millrace -n 20, for why it ended; systemd starts it again"
        ),
        ClientFault::RequestInvalid { path, error } => Said::new(
            format!("{path} cannot be requested: {error}")
        )
        .then(
            "millrace --help"
        ),
        ClientFault::AnswerCut { error } => Said::new(
            format!("the daemon's answer did not arrive whole: {error}")
        )
        .then(
            "journalctl -u millrace -n 20"
        ),
        ClientFault::AnswerNotUnderstood { error } => Said::new(
            format!("this program does not understand the daemon's answer: {error}")
        )
        .then(
            "millrace --version, and millrace status: both should be of one version"
        ),
        ClientFault::NoReason { status } => Said::new(
            format!("the daemon answered with HTTP status {status} and no reason")
        )
        .then(
            "journalctl -u millrace -n 20"
        ),
    }
}
