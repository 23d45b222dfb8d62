//! Who may use the API: tokens, sessions, failures, certificates. Plain state; the middleware that asks it is `http/access.rs`.

mod backoff;
mod sessions;
mod tls;
mod tokens;

pub use backoff::Backoff;
pub use sessions::Sessions;
pub use tls::{Certificate, Verifier};
pub use tokens::WRITE_PATIENCE as TOKENS_PATIENCE;
pub use tokens::{Denied, Tokens, check_tokens, new_secret, token_not_understood};

use finding::Asker;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncWrite};

/// Where a connection comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Peer {
    /// A user of this machine, at the socket.
    User(u32),
    /// Somebody at this address.
    Address(IpAddr),
}

impl Peer {
    /// The address, of one that has one.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Peer::User(_) => None,
            Peer::Address(ip) => Some(ip.to_canonical()),
        }
    }
}

/// Who sent a request, and from where.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Asking {
    /// Who.
    pub who: Asker,
    /// The address; None for the socket.
    pub from: Option<String>,
}

impl Asking {
    /// The user with this number, by the name that this machine's own file has for it, else by the number.
    pub fn user(uid: u32) -> Self {
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let name = name_in(&users, uid).unwrap_or_else(|| uid.to_string());
        Self { who: Asker::LocalUser { name, uid }, from: None }
    }
}

/// The name of a user in the text of `passwd(5)`.
fn name_in(users: &str, uid: u32) -> Option<String> {
    let is = |line: &&str| line.split(':').nth(2).and_then(|n| n.parse().ok()) == Some(uid);
    Some(users.lines().find(is)?.split(':').next()?.to_string())
}

/// What decides who may use the API of a head.
pub struct Access {
    /// Its tokens.
    pub tokens: Arc<Tokens>,
    /// Sessions of pages.
    pub sessions: Sessions,
    /// Names by which requests may call it, beside addresses and `localhost`.
    pub names: Vec<String>,
    /// Where it listens over TCP, if it does.
    pub tcp: Option<SocketAddr>,
    /// What it shows there; None: no TLS.
    pub certificate: Option<Certificate>,
    /// Failures by address.
    pub backoff: Mutex<Backoff>,
}

/// Whether `host`, with a port or without, is an address or one of the names of a head: what a page of another site has its
/// name resolved to is neither.
pub fn is_named(host: &str, names: &[String]) -> bool {
    let bare = host.strip_prefix('[').and_then(|h| h.split_once(']'));
    let name = bare.map_or_else(|| host.split(':').next().unwrap_or_default(), |(ip, _)| ip);
    let name = name.strip_suffix('.').unwrap_or(name);
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    name.parse::<IpAddr>().is_ok() || is("localhost") || names.iter().any(|n| is(n))
}

/// Whether `origin`, as browsers write it, is the head that the request calls `host`. What came by TLS was sent by a page
/// that came by TLS.
pub fn is_own_origin(origin: &str, host: &str, tls: bool) -> bool {
    let plain = || origin.strip_prefix("http://").filter(|_| !tls);
    let site = origin.strip_prefix("https://").or_else(plain);
    site.is_some_and(|site| site.eq_ignore_ascii_case(host))
}

/// A connection, with TLS or without.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_called_by_its_addresses_and_the_names_that_it_was_given() {
        let names = ["array1.example".to_string()];
        for good in ["10.0.0.1", "10.0.0.1:8420", "[fd00::1]:8420", "localhost:1", "Array1.example.:8420"] {
            assert!(is_named(good, &names), "{good}");
        }
        for bad in ["", "evil.example", "array1.example.evil", "10.0.0.1.evil.example:8420", "[evil]", ":1"] {
            assert!(!is_named(bad, &names), "{bad}");
        }
        assert!(is_own_origin("https://array1.example:8420", "array1.example:8420", true));
        let plain = |tls| is_own_origin("http://localhost:8420", "localhost:8420", tls);
        assert!(plain(false) && !plain(true));
        for bad in ["null", "https://evil.example", "https://array1.example:1", "array1.example:8420"] {
            assert!(!is_own_origin(bad, "array1.example:8420", false), "{bad}");
        }
    }

    #[test]
    fn a_user_is_known_by_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/srv/ann:/bin/sh\n";
        assert_eq!(name_in(users, 1000).as_deref(), Some("ann"));
        assert_eq!(name_in(users, 1001), None);
    }
}
