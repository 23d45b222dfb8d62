//! Words about requests of the API.

use super::Said;
use super::parts::{STATE_DISK, file_fault, state_fault};
use finding::{FileFault, RequestRefusal, StateFile};

/// Where it is written what a request is.
const DOCUMENT: &str = "GET /api/v1/openapi.json describes every field and parameter";

/// Why a request was not carried out.
pub fn refusal(f: &RequestRefusal) -> Said {
    match f {
        RequestRefusal::TokenWrong => Said::new("the request does not show the token of this head")
            .then("send the header Authorization: Bearer TOKEN, with a secret that `millrace token add` printed"),
        RequestRefusal::SessionEnded => {
            Said::new("the session has ended: 12 hours, a restart of the daemon or the end of its token ends one")
                .then("POST /api/v1/session with the secret of a token, as the page does that asks for it")
        }
        RequestRefusal::TokenExpired { name, expired } => {
            Said::new(format!("the token {name} expired at {expired}"))
                .then(format!("millrace token rm {name} on the head, then millrace token add {name}"))
        }
        RequestRefusal::TokenReadOnly { name } => {
            Said::new(format!("the token {name} may only read")).then("millrace token add NAME, for a token with all rights")
        }
        RequestRefusal::ApiThrottled { seconds } => {
            Said::new(format!("too many wrong tokens came from this address: it is heard again in {seconds} s"))
                .then("look which program there uses an old token, then try again")
        }
        RequestRefusal::HeadNameUnknown { name } => {
            Said::new(format!("this head was not given the name {name}"))
                .then("use its IP address, or add the name to api.names in head.toml")
        }
        RequestRefusal::OriginForeign { origin } if origin.is_empty() => {
            Said::new("the order came with a session and without the header Origin, and only the head's own page may use a session")
                .then("programs send the header Authorization: Bearer TOKEN instead")
        }
        RequestRefusal::OriginForeign { origin } => {
            Said::new(format!("a page of {origin} sent the order, and only this head's own may"))
                .then("send orders from a program rather than a page of another site")
        }
        RequestRefusal::TokenNameInvalid { name, characters_max } => Said::new(format!(
            "{name} cannot be the name of a token: 1 to {characters_max} letters, digits, dots, hyphens or underscores, a letter or digit first"
        ))
        .then("millrace token add monitor --read"),
        RequestRefusal::TokenNameTaken { name } => {
            Said::new(format!("there is a token {name} already"))
                .then(format!("another name, or millrace token rm {name} first"))
        }
        RequestRefusal::TokenUnknown { name, tokens } if tokens.is_empty() => {
            Said::new(format!("there is no token {name}, and no other one")).then("millrace token add NAME")
        }
        RequestRefusal::TokenUnknown { name, tokens } => {
            Said::new(format!("there is no token {name}, but {}", tokens.join(", "))).then("millrace token ls")
        }
        RequestRefusal::TokenOfConfiguration { name } => {
            Said::new(format!("the token {name} is of the configuration"))
                .then("remove api.token_file from head.toml and restart the daemon")
        }
        RequestRefusal::TokensFull { tokens_max } => {
            Said::new(format!("there are {tokens_max} tokens, which is the limit"))
                .then("millrace token ls shows those not used for long, and millrace token rm NAME removes one")
        }
        RequestRefusal::TokenLifeInvalid { seconds } => {
            Said::new(format!("a token cannot expire after {seconds} s: from 1 s to 100 years"))
                .then("millrace token add NAME --expires 90d")
        }
        RequestRefusal::TokensUnusable { path, why } => {
            let message = format!("the tokens cannot be used: {}", file_fault(path, why));
            Said::new(message).then(match why {
                FileFault::State { .. } => STATE_DISK.to_string(),
                _ => super::record::mended(path),
            })
        }
        RequestRefusal::TokensNotWritten { path, fault } => {
            let what = StateFile::Named { file: path.clone() };
            Said::new(format!("{}: no token was made or removed", state_fault(&what, fault))).then(STATE_DISK)
        }
        RequestRefusal::ResourceUnknown { path } => {
            Said::new(format!("there is no resource {path}")).then("GET /api/v1/openapi.json lists all")
        }
        RequestRefusal::MethodUnknown { path, method } => {
            Said::new(format!("{path} does not know the method {method}"))
                .then("GET /api/v1/openapi.json lists all")
        }
        RequestRefusal::PathNotText => wrong("the path is not percent-encoded UTF-8"),
        RequestRefusal::ParametersNotText => wrong("the parameters are not percent-encoded UTF-8"),
        RequestRefusal::ParameterUnknown { parameter } => wrong(format!("unknown parameter {parameter}")),
        RequestRefusal::ParameterTwice { parameter } => wrong(format!("{parameter} is given twice")),
        RequestRefusal::ParameterInvalid { parameter, value } => {
            wrong(format!("{parameter}: the value {value} is not understood"))
        }
        RequestRefusal::BodyCut => wrong("the body ended early"),
        RequestRefusal::BodyTimedOut { seconds } => {
            wrong(format!("the body was not there within {seconds} s"))
        }
        RequestRefusal::BodyTooLong { bytes_max } => {
            wrong(format!("the body is longer than {bytes_max} bytes"))
        }
        RequestRefusal::BodyNotJson { error } => wrong(format!("the body is not JSON: {error}")),
        RequestRefusal::BodyGoesOn { error } => wrong(format!("the body goes on after the JSON: {error}")),
        RequestRefusal::BodyInvalid { error } => wrong(format!("the body is wrong: {error}")),
        RequestRefusal::FieldUnknown { field, fields } if fields.is_empty() => {
            wrong(format!("unknown field {field}: there are no fields"))
        }
        RequestRefusal::FieldUnknown { field, fields } => {
            wrong(format!("unknown field {field}: there are {}", fields.join(", ")))
        }
        RequestRefusal::FieldMissing { field } => wrong(format!("the field {field} is missing")),
        RequestRefusal::FieldTwice { field } => wrong(format!("the field {field} is given twice")),
        RequestRefusal::FieldInvalid { field, error } => wrong(format!("{field}: {error}")),
        RequestRefusal::ReceiverUnknown { receiver } => {
            Said::new(format!("there is no alarm receiver {receiver}")).then("millrace alarm ls")
        }
        RequestRefusal::AlarmsOff => Said::new("head.toml names no receiver of alarms")
            .then("millrace serve --example shows how one is written, behind [alarm]"),
        RequestRefusal::VolumeUnchanged => {
            wrong("nothing is to be changed: bytes, name, iops_max, mbps_max or weight")
        }
        RequestRefusal::VolumeChangesTogether => {
            wrong("bytes, name and caps (with weight) are changed one at a time")
        }
        RequestRefusal::AddressInvalid { address } => {
            wrong(format!("address: {address} is not an address with a port, such as 10.0.0.1:4420"))
        }
        RequestRefusal::ProtocolUnknown { protocol } => {
            wrong(format!("{protocol} is not a protocol: write nvme, discovery or iscsi"))
        }
        RequestRefusal::InterfaceInvalid { interface } => {
            Said::new(format!("interface: {interface} is no name of a network interface"))
                .then("ip -brief link")
        }
        RequestRefusal::InterfaceWithoutPrefix => {
            Said::new("interface: an address that moves has a prefix, too")
                .then("the same with --prefix: ip -brief address shows that of the subnet")
        }
        RequestRefusal::MovingAddressOfHead => {
            Said::new("head: an address with a prefix moves to the head that leads, and is of neither")
                .then("the same without --head")
        }
        RequestRefusal::AddressOfLink { address } => Said::new(format!(
            "address: the heads meet at {address}, and their shards at the ports behind it, one for each"
        ))
        .then("the same with another port, or with an address of a network that hosts use"),
        RequestRefusal::MachineNotSeen => Said::new("the machine could not be looked at, by a mistake of this program")
            .then("millrace topology on the head, and journalctl -u millrace -n 20 for what went wrong"),
        RequestRefusal::AnswerOfAnother => Said::new("the head gave an answer to another question"),
        RequestRefusal::RequestTooLongForLink => {
            Said::new("the request is too long for the link: ask the head that leads")
                .then("millrace head ls")
        }
        RequestRefusal::EventsNotUnderstood { error } => {
            Said::new(format!("own events are not understood: {error}"))
        }
    }
}

/// A request that is not what the document says.
fn wrong(message: impl Into<String>) -> Said {
    Said::new(message).then(DOCUMENT)
}
