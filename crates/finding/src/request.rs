//! Findings about requests of the API, before they become orders.

use crate::{FileFault, StateFault};

refusals! {
    /// Why a request was not understood.
    pub enum RequestRefusal {
        /// The request does not show the token of this head.
        TokenWrong = Unauthorized @ "",
        /// The session has ended, or is not known any more.
        SessionEnded = Unauthorized @ "",
        /// The token has expired.
        TokenExpired {
            name: String,
            /// As the API prints times.
            expired: String,
        } = Unauthorized @ "",
        /// The token may only read.
        TokenReadOnly { name: String } = Forbidden @ "",
        /// Too many wrong tokens came from this address.
        ApiThrottled { seconds: u64 } = Throttled @ "",
        /// The request names this head by a name that it was not given.
        HeadNameUnknown { name: String } = Forbidden @ "",
        /// A page of another site sent the order, or a session sent it without saying from where.
        OriginForeign {
            /// Empty: it was not said.
            origin: String,
        } = Forbidden @ "",
        /// This is no name of a token.
        TokenNameInvalid { name: String, characters_max: u64 } = Invalid @ "name",
        /// There is a token of this name.
        TokenNameTaken { name: String } = Conflict @ "name",
        /// There is no token of this name.
        TokenUnknown { name: String, tokens: Vec<String> } = NotFound @ "name",
        /// The token is of the configuration.
        TokenOfConfiguration { name: String } = Conflict @ "name",
        /// There are as many tokens as there may be.
        TokensFull { tokens_max: u64 } = Conflict @ "",
        /// The token would expire at once, or never.
        TokenLifeInvalid { seconds: u64 } = Invalid @ "expires_seconds",
        /// The file of the tokens cannot be used.
        TokensUnusable { path: String, why: FileFault } = Internal @ "",
        /// The file of the tokens could not be written: nothing has changed.
        TokensNotWritten { path: String, fault: StateFault } = Internal @ "",
        /// There is no resource of this path.
        ResourceUnknown { path: String } = NotFound @ "",
        /// The resource does not know this method.
        MethodUnknown { path: String, method: String } = Method @ "",
        /// The path is not percent-encoded UTF-8.
        PathNotText = Malformed @ "",
        /// The parameters are not percent-encoded UTF-8.
        ParametersNotText = Malformed @ "",
        /// There is no such parameter.
        ParameterUnknown { parameter: String } = Invalid @ "",
        /// A parameter is given twice.
        ParameterTwice { parameter: String } = Invalid @ "",
        /// A parameter has a value of the wrong kind.
        ParameterInvalid { parameter: String, value: String } = Invalid @ "",
        /// The connection ended within the body.
        BodyCut = Malformed @ "",
        /// The body did not arrive in time.
        BodyTimedOut { seconds: u64 } = Malformed @ "",
        /// The body is longer than any that is read.
        BodyTooLong { bytes_max: u64 } = Malformed @ "",
        /// The body is not JSON.
        BodyNotJson {
            /// What the parser says.
            error: String,
        } = Malformed @ "",
        /// Something stands behind the JSON of the body.
        BodyGoesOn {
            /// What the parser says.
            error: String,
        } = Malformed @ "",
        /// The body is JSON of another shape.
        BodyInvalid {
            /// What the parser says.
            error: String,
        } = Invalid @ "",
        /// There is no such field.
        FieldUnknown {
            field: String,
            /// Those that there are.
            fields: Vec<String>,
        } = Invalid @ "",
        /// A field that must be there is missing.
        FieldMissing { field: String } = Invalid @ "",
        /// A field is given twice.
        FieldTwice { field: String } = Invalid @ "",
        /// A field has a value of the wrong kind.
        FieldInvalid {
            field: String,
            /// What the parser says.
            error: String,
        } = Invalid @ "",
        /// There is no receiver of alarms of this name.
        ReceiverUnknown { receiver: String } = NotFound @ "receiver",
        /// The configuration names no receiver of alarms.
        AlarmsOff = NotFound @ "receiver",
        /// Nothing of the volume is to be changed.
        VolumeUnchanged = Invalid @ "",
        /// More is to be changed of the volume than can be at one time.
        VolumeChangesTogether = Invalid @ "bytes",
        /// This is no address with a port.
        AddressInvalid { address: String } = Invalid @ "address",
        /// No such protocol is spoken here.
        ProtocolUnknown { protocol: String } = Invalid @ "protocol",
        /// This is no name of a network interface.
        InterfaceInvalid { interface: String } = Invalid @ "interface",
        /// An interface is named for an address that does not move.
        InterfaceWithoutPrefix = Invalid @ "interface",
        /// A head is named for an address that moves.
        MovingAddressOfHead = Invalid @ "head",
        /// The heads meet at this address.
        AddressOfLink {
            /// Where they meet.
            address: String,
        } = Conflict @ "address",
        /// The machine below the head could not be looked at.
        MachineNotSeen = Internal @ "",
        /// The head gave an answer to another question.
        AnswerOfAnother = Internal @ "",
        /// The request is too long to be passed on to the head that leads.
        RequestTooLongForLink = NotReady @ "",
        /// This head does not understand its own list of events.
        EventsNotUnderstood {
            /// What the parser says.
            error: String,
        } = Internal @ "",
    }
}

impl RequestRefusal {
    /// The field or parameter at fault, where the request names it: not one of those that `field` knows.
    pub fn place(&self) -> Option<&str> {
        match self {
            Self::ParameterUnknown { parameter }
            | Self::ParameterTwice { parameter }
            | Self::ParameterInvalid { parameter, .. } => Some(parameter),
            Self::FieldUnknown { field, .. }
            | Self::FieldMissing { field }
            | Self::FieldTwice { field }
            | Self::FieldInvalid { field, .. } => Some(field),
            _ => None,
        }
    }
}
