//! Words about what the command line finds on its way to the daemon.

use super::Said;
use finding::ClientFault;

/// Why there is no answer.
pub fn client(f: &ClientFault) -> Said {
    let (message, next) = match f {
        ClientFault::ClientNotStarted { error } => {
            (format!("the client cannot start: {error}"), "ulimit -a, which lists the limits of this shell")
        }
        ClientFault::SocketNameInvalid { socket, error } => (
            format!("{socket} cannot be the name of a socket: {error}"),
            "name the daemon's socket with --socket PATH or MILLRACE_SOCKET",
        ),
        ClientFault::NoDaemon { socket } => (
            format!("no daemon listens at {socket}"),
            "millrace serve (or systemctl start millrace), or name its socket with --socket or MILLRACE_SOCKET",
        ),
        ClientFault::DaemonGone { socket } => (
            format!("the daemon that listened at {socket} has ended"),
            "systemctl status millrace, or millrace serve",
        ),
        ClientFault::SocketForbidden { socket } => (
            format!("you may not use the socket {socket}"),
            "sudo usermod -aG millrace \"$USER\", then log in again (the socket's group may use it), or the same command with sudo",
        ),
        ClientFault::NotConnected { socket, error } => {
            (format!("cannot connect to the daemon at {socket}: {error}"), "systemctl status millrace")
        }
        ClientFault::TimedOut { socket, seconds } => (
            format!("the daemon at {socket} did not answer within {seconds} s"),
            "journalctl -u millrace -n 20",
        ),
        ClientFault::ConnectionClosed { socket, error } => (
            format!("the daemon at {socket} closed the connection before it answered: {error}"),
            "journalctl -u millrace -n 20, for why it ended; systemd starts it again",
        ),
        ClientFault::UrlInvalid { url } => (
            format!("{url} is no URL of a head"),
            "write https://HEAD:PORT, with the port of api.tcp in its head.toml",
        ),
        ClientFault::UrlUnprotected { url } => (
            format!("{url} would send the token in clear over the network"),
            "the same with https://, and tls = \"self-signed\" below [api] in head.toml",
        ),
        ClientFault::UrlUnreached { url, error } => (
            format!("cannot connect to {url}: {error}"),
            "millrace status on that head, which says whether it listens at api.tcp",
        ),
        ClientFault::CertificateOther { url, fingerprint, named } => (
            format!(
                "{url} shows another certificate than the one with the fingerprint {named}: that of this one is {fingerprint}, and \
                 somebody else may answer there"
            ),
            "millrace token ls on that head itself, which shows the fingerprint of its certificate",
        ),
        ClientFault::CertificateUnknown { url, fingerprint, error } => {
            let message = format!(
                "{url} shows a certificate that is not known here ({error}); its fingerprint is {fingerprint}"
            );
            let next = format!(
                "compare it with `millrace token ls` on that head; if they are the same: --fingerprint {fingerprint}"
            );
            return Said::new(message).then(next);
        }
        ClientFault::RemoteSettingInvalid { setting, error } => {
            (format!("{setting} cannot be used: {error}"), "millrace token --help, which has an example")
        }
        ClientFault::RequestInvalid { path, error } => {
            (format!("{path} cannot be requested: {error}"), "millrace --help")
        }
        ClientFault::AnswerTruncated { error } => {
            (format!("the daemon's answer did not arrive whole: {error}"), "journalctl -u millrace -n 20")
        }
        ClientFault::AnswerNotUnderstood { error } => (
            format!("this program does not understand the daemon's answer: {error}"),
            "millrace --version, and millrace status: both should be of one version",
        ),
        ClientFault::NoReason { status } => (
            format!("the daemon answered with HTTP status {status} and no reason"),
            "journalctl -u millrace -n 20",
        ),
    };
    Said::new(message).then(next)
}
