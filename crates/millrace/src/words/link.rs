//! Words about the link: its connections, its key, and the token by which a head joins.

use super::machine::errno_words;
use crate::link::{LinkRefusal, TOKEN_PREFIX, Why};
use finding::{JoinDenial, KeyFault, TokenFault, UnreachedFault};
use std::path::Path;

/// Why a path went down.
pub fn down(why: &Why) -> String {
    match why {
        Why::Closed => "the other head closed it".into(),
        Why::Ended => "it ended without a word: the other head's process died, or was cut off".into(),
        Why::Reset => "it was reset: the other head's process died, or its machine started anew".into(),
        Why::Silent => "the other head was silent".into(),
        Why::Unreachable => "the network has no way to the other head".into(),
        Why::Backlog => "the other head did not read what was sent".into(),
        Why::Replaced => "the other head made a newer connection".into(),
        Why::Asked => "this head closed it".into(),
        Why::Stopped => "this head stops".into(),
        Why::Broken(words) => format!("it broke: {words}"),
    }
}

/// Why a path cannot be had.
pub fn unreached(why: &UnreachedFault) -> String {
    match why {
        UnreachedFault::OwnAddress { errno } => {
            format!("this head's own address cannot be used: {}", errno_words(*errno))
        }
        UnreachedFault::Nobody => "nobody listens at the other head's address".into(),
        UnreachedFault::Network { error } => format!("the other head is not reached: {error}"),
        UnreachedFault::Slow => "what answers there does not finish the handshake in time".into(),
        UnreachedFault::NotThePeer => {
            "what answers there is not the other head: it has another certificate".into()
        }
        UnreachedFault::NotKnownThere => "the other head does not know this head's certificate".into(),
        UnreachedFault::Handshake { error } => format!("the handshake failed: {error}"),
        UnreachedFault::Greeting => "the handshake failed: the greeting is not understood".into(),
        UnreachedFault::AnswerNewer => "the handshake failed: the answer is of a newer version".into(),
        UnreachedFault::Version => "the two heads have no version of the link in common".into(),
        UnreachedFault::OtherNetwork => "the other head takes this for another network of the link".into(),
    }
}

/// What is wrong with the file of the link's key, behind its path.
pub fn key_fault(fault: &KeyFault) -> String {
    match fault {
        KeyFault::Open { mode } => {
            format!("it holds a secret key, and its mode {mode:03o} lets others at it")
        }
        KeyFault::NotRead { errno } => {
            format!("the key of the link cannot be read: {}", errno_words(*errno))
        }
        KeyFault::NotWritten { errno } => {
            format!("the key of the link cannot be written: {}", errno_words(*errno))
        }
        KeyFault::TooLarge { bytes_max } => format!(
            "the key of the link cannot be read: it is larger than {bytes_max} bytes, so it is not one of ours"
        ),
        KeyFault::File { why } => super::parts::file_fault("link-identity", why),
        KeyFault::Mismatch => "key and certificate of the link do not fit each other".into(),
    }
}

/// What helps.
pub fn key_next(path: &str, fault: &KeyFault) -> String {
    match fault {
        KeyFault::Open { .. } => format!("chmod 600 {path}"),
        KeyFault::NotRead { .. } | KeyFault::TooLarge { .. } => {
            format!("ls -l {path}, and make it readable for the daemon's user alone")
        }
        KeyFault::NotWritten { .. } => {
            let folder = Path::new(path).parent().unwrap_or(Path::new("/"));
            format!("ls -ld {}, and make it writable for the daemon's user", folder.display())
        }
        KeyFault::File { .. } | KeyFault::Mismatch => format!(
            "put the file back from a backup of this head; without one, `mv {path} {path}.rotten`, restart, and join the system anew"
        ),
    }
}

/// What is wrong with a token.
pub fn token_fault(fault: &TokenFault) -> String {
    match fault {
        TokenFault::NotAToken => format!("this is no token: a token begins with {TOKEN_PREFIX}"),
        TokenFault::Version { version, own } => {
            format!("the token is of version {version}, and this program reads version {own}")
        }
        TokenFault::Character { character } => {
            format!("the token contains {character:?}, which no token does: it was mistyped")
        }
        TokenFault::Damaged => {
            "the token is not whole: it was cut off, mistyped or joined with something else".into()
        }
        TokenFault::NoAddress => "the token names no address at which a head could be reached".into(),
    }
}

/// What helps.
pub fn token_next(fault: &TokenFault) -> &'static str {
    match fault {
        TokenFault::Version { .. } => {
            "install the same version of Millrace on both heads, then `millrace system create` on the first for a new token"
        }
        TokenFault::NoAddress => {
            "on the other head: check its link addresses, then `millrace system create` for a new token"
        }
        TokenFault::NotAToken | TokenFault::Character { .. } | TokenFault::Damaged => {
            "copy the whole line that `millrace system create` printed on the other head, then `millrace system join` again"
        }
    }
}

/// Why the other head does not let this one join.
pub fn join_denial(why: &JoinDenial) -> &'static str {
    match why {
        JoinDenial::Version => "the two heads have no version of the join exchange in common",
        JoinDenial::OtherSystem => "the token is for another system than the one that answers at its address",
        JoinDenial::NotInvited => "the other head has no token open",
        JoinDenial::Expired => "the token has expired",
        JoinDenial::Used => "another head joined by the token, so the system has both its heads",
        JoinDenial::Forged => {
            "the token's secret is not that of the token which the other head printed last: this one is older, or was changed"
        }
        JoinDenial::NotRecorded => "the other head could not write down durably that this one joins",
        JoinDenial::Networks => "the two heads have different numbers of link networks",
        JoinDenial::Taken => "the other head has a peer already",
        JoinDenial::Malformed => "the other head did not understand the request to join",
    }
}

/// What helps.
pub fn join_next(why: &JoinDenial) -> &'static str {
    match why {
        JoinDenial::Version => {
            "install the same version of Millrace on both heads, then `millrace system join` again"
        }
        JoinDenial::NotInvited | JoinDenial::Expired | JoinDenial::Forged | JoinDenial::OtherSystem => {
            "on the other head: `millrace system create`, and here `millrace system join` with the token that it prints"
        }
        JoinDenial::NotRecorded => {
            "on the other head: `millrace status`, then `millrace system join` again here"
        }
        JoinDenial::Networks => {
            "give this head as many link addresses as the other one has, then `millrace system join` again"
        }
        JoinDenial::Used | JoinDenial::Taken => {
            "`millrace system leave` on the head of that system that is to go, `millrace system create` on the one that \
             stays, then `millrace system join` with that token here"
        }
        JoinDenial::Malformed => {
            "check that both heads run Millrace of the same version, then `millrace system join` again"
        }
    }
}

/// Why somebody was not let in.
pub fn refused(why: &LinkRefusal) -> String {
    match why {
        LinkRefusal::Certificate => "its certificate is not the other head's".into(),
        LinkRefusal::Unproven => "it does not have the key of the certificate that it shows".into(),
        LinkRefusal::Address => "that is not the other head's address on this network".into(),
        LinkRefusal::NoPeer => "no other head has joined yet".into(),
        LinkRefusal::Slow => "it did not finish the handshake in time".into(),
        LinkRefusal::TooMuch => "it sent too much before it was authenticated".into(),
        LinkRefusal::Crowded => "too many others came before it was authenticated".into(),
        LinkRefusal::NotTls(words) => format!("it does not speak TLS as the other head does: {words}"),
        LinkRefusal::Left(words) => format!("it left during the handshake: {words}"),
        LinkRefusal::Version => "the two heads have no version of the link in common".into(),
        LinkRefusal::OtherNetwork(n) => format!("it came for network {n} of the link, which is another one"),
        LinkRefusal::Malformed => "it did not greet as the other head does".into(),
        LinkRefusal::Denied(why) => format!("it may not join: {}", join_denial(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn whoever_may_not_join_hears_what_is_so_and_who_is_to_do_something() {
        for full in [JoinDenial::Used, JoinDenial::Taken] {
            let next = join_next(&full);
            assert!(
                next.starts_with("`millrace system leave` on the head of that system that is to go"),
                "{next}"
            );
        }
        let forged = join_denial(&JoinDenial::Forged);
        assert!(forged.contains("older, or was changed") && !forged.contains("made a newer"), "{forged}");
        let all = JoinDenial::samples();
        let sentences: BTreeSet<&str> = all.iter().map(join_denial).collect();
        assert_eq!(sentences.len(), all.len(), "each its own");
        assert!(all.iter().all(|why| join_next(why).contains("`millrace ")));
    }

    #[test]
    fn each_fault_of_a_token_has_its_own_sentence_and_a_way_on() {
        let all = TokenFault::samples();
        let sentences: BTreeSet<String> = all.iter().map(token_fault).collect();
        assert_eq!(sentences.len(), all.len(), "each its own");
        assert!(all.iter().all(|fault| token_next(fault).contains("`millrace system")));
        let blank = token_fault(&TokenFault::Character { character: ' ' });
        assert_eq!(blank, "the token contains ' ', which no token does: it was mistyped");
    }

    #[test]
    fn each_fault_of_the_key_and_of_a_network_has_its_own_sentence() {
        let all = KeyFault::samples();
        let sentences: BTreeSet<String> = all.iter().map(key_fault).collect();
        assert_eq!(sentences.len(), all.len(), "each its own");
        assert!(all.iter().all(|fault| key_next("/s/link-identity", fault).contains("/s")));
        let all = UnreachedFault::samples();
        let sentences: BTreeSet<String> = all.iter().map(unreached).collect();
        assert_eq!(sentences.len(), all.len(), "each its own");
    }
}
