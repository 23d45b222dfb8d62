//! How the command line ends if it does not get an answer of the daemon.

use crate::failure::{Exit, Failure};
use crate::words;
use finding::ClientFault;

/// The exit code that goes with it.
fn exit(fault: &ClientFault) -> Exit {
    match fault {
        ClientFault::SocketNameInvalid { .. }
        | ClientFault::RequestInvalid { .. }
        | ClientFault::UrlInvalid { .. }
        | ClientFault::UrlUnprotected { .. }
        | ClientFault::RemoteSettingInvalid { .. } => Exit::Usage,
        ClientFault::NoDaemon { .. }
        | ClientFault::DaemonGone { .. }
        | ClientFault::SocketForbidden { .. }
        | ClientFault::NotConnected { .. }
        | ClientFault::UrlUnreached { .. }
        | ClientFault::CertificateUnknown { .. }
        | ClientFault::CertificateOther { .. }
        | ClientFault::TimedOut { .. }
        | ClientFault::ConnectionClosed { .. } => Exit::Unreachable,
        ClientFault::ClientNotStarted { .. }
        | ClientFault::AnswerTruncated { .. }
        | ClientFault::AnswerNotUnderstood { .. }
        | ClientFault::NoReason { .. } => Exit::Internal,
    }
}

impl From<ClientFault> for Failure {
    fn from(fault: ClientFault) -> Self {
        let said = words::client(&fault);
        let json = serde_json::to_value(&fault).expect("plain data");
        Self {
            next: said.next,
            code: Some(finding::snake(fault.name())),
            fields: json.get("fields").cloned().map(Box::new).unwrap_or_default(),
            ..Self::new(exit(&fault), said.message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_cause_and_a_next_command() {
        for fault in ClientFault::samples() {
            let failure = Failure::from(fault);
            assert!(failure.next.is_some() && !failure.message.ends_with('.'), "{failure}");
            assert!(failure.fields.is_object(), "{failure:?}");
        }
    }
}
