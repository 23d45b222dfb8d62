//! SendTargets (RFC 7143 Appendix C): who we are and where we listen, for hosts that we know.

use super::ConnectionConfig;
use crate::text::{self, key};
use base::view::{Protocol, View};

/// Appends the answer to `SendTargets=value`. `known`: the initiator is one of our hosts.
pub(super) fn send_targets(value: &str, known: bool, view: &View, at: &ConnectionConfig, out: &mut Vec<u8>) {
    let meant = value == "All" || value.is_empty() || value.eq_ignore_ascii_case(&view.system.iqn);
    if !known || !meant {
        return;
    }
    text::put(out, key::TARGET_NAME, &view.system.iqn);
    for portal in view.portals.iter().filter(|p| p.protocol == Protocol::Iscsi) {
        let Some(address) = portal.seen_at(at.local.ip(), view.head) else { continue };
        // `SocketAddr` prints IPv6 in brackets, as RFC 7143 13.8 wants.
        text::put(out, key::TARGET_ADDRESS, &format!("{address},{}", portal.id.0 + 1));
    }
}
