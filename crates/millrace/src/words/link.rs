//! Words about connections of the link.

use crate::link::{LinkRefusal, Unreached, Why};

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
pub fn unreached(why: &Unreached) -> String {
    match why {
        Unreached::Own(words) => format!("this head's own address cannot be used: {words}"),
        Unreached::Nobody => "nobody listens at the other head's address".into(),
        Unreached::Network(words) => format!("the other head is not reached: {words}"),
        Unreached::Slow => "what answers there does not finish the handshake in time".into(),
        Unreached::NotThePeer => {
            "what answers there is not the other head: it has another certificate".into()
        }
        Unreached::NotKnownThere => "the other head does not know this head's certificate".into(),
        Unreached::Handshake(words) => format!("the handshake failed: {words}"),
        Unreached::Version => "the two heads have no version of the link in common".into(),
        Unreached::OtherNetwork => "the other head takes this for another network of the link".into(),
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
        LinkRefusal::Denied(denied) => format!("it may not join: {denied}"),
    }
}
