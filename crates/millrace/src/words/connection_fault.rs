//! Why a connection was ended or rejected: the end of a sentence.

use base::{ConnectionFault, IscsiFault, NvmeFault};

/// Why.
pub fn fault(why: ConnectionFault) -> &'static str {
    use ConnectionFault as C;
    match why {
        C::Nvme(why) => nvme_fault(why),
        C::Iscsi(why) => iscsi_fault(why),
        C::NoMemory => "no memory for another connection",
        C::NoMemoryForCommands => "no memory for the queue's commands",
        C::HostOverShare => {
            "its host has most of the connections or command slots there are, and the rest is for others"
        }
        C::TooManyUnauthenticated => "too many connections that do not log in",
        C::TooMuchDiscovery => "too many discovery sessions of unknown hosts",
        C::OwesData => "it kept memory for data that it did not send",
        C::TakesNothing => "it kept memory for data that it asked for and did not take",
        C::NotUnderstood => "the other head said something that is not understood",
        C::NotTheOtherHead => "it is not the other head",
    }
}

/// Of NVMe/TCP.
pub fn nvme_fault(why: NvmeFault) -> &'static str {
    use NvmeFault as N;
    match why {
        N::PduType => "unknown PDU type",
        N::PduDirection => "PDU type of the other direction",
        N::HeaderLength => "wrong header length",
        N::HeaderDigestFlag => "header digest flag is not what was agreed",
        N::PduShort => "PDU shorter than its header",
        N::PduLong => "PDU too long",
        N::PduBeyondHeader => "PDU longer than its header",
        N::DataOffset => "wrong data offset",
        N::DataDigestFlag => "data digest flag is not what was agreed",
        N::NoRoomForDigest => "PDU without room for its digest",
        N::HeaderDigest => "header digest",
        N::DataLength => "data length does not fit the PDU length",
        N::PduSequence => "PDU out of sequence",
        N::HostEnded => "the host ended the connection",
        N::CapsuleData => "in-capsule data beyond IOCCSZ",
        N::QueueOverrun => "more commands than the queue has entries",
        N::FormatVersion => "PDU format version",
        N::Hpda => "HPDA",
        N::ControllerGone => "a queue of a controller that is gone",
        N::ControllerDisabled => "a queue of a controller that is not enabled",
        N::QueueTaken => "a queue that its controller has already",
        N::ControllersFull => "too many controllers",
        N::HostRemoved => "the host was removed",
        N::ChangedMeanwhile => "its host or portal was changed while it connected",
        N::TransferTag => "no transfer has this tag",
        N::TransferCommand => "the transfer belongs to another command",
        N::BeyondR2t => "data beyond the R2T",
        N::DataOrder => "data out of order",
        N::LastTooEarly => "last data before the end of the R2T",
        N::LastMissing => "the end of the R2T in data that are not the last",
        N::NqnUnknown => "no host has this NQN",
        N::ConnectFormat => "a Connect of an unknown format",
        N::OtherSubsystem => "it asked for another subsystem",
        N::NqnInvalid => "a Connect without a valid host NQN",
        N::NoHostId => "a Connect without a host identifier",
        N::ConnectParameters => "a Connect with wrong parameters",
        N::ConnectData => "a Connect whose data did not arrive whole",
        N::PduMisplaced => "a PDU that does not belong here",
        N::FormatUnknown => "unknown PDU format version",
        N::Alignment => "alignment beyond 128 bytes",
        N::DigestUnasked => "a digest that nobody asked for",
        N::MaxH2cData => "MAXH2CDATA below 4096",
        N::DataUnread => "data for a command that reads nothing",
        N::DataMisplaced => "data outside of what was asked for, or out of order",
        N::SuccessNotLast => "SUCCESS on data that are not the last",
        N::SuccessTooEarly => "SUCCESS before all data have come",
        N::DataForNone => "data for a command that is not under way",
        N::AnswerToNone => "an answer to no command",
        N::SecondAnswer => "a second answer",
        N::R2tLimit => "more R2Ts than MAXR2T allows",
        N::R2tMisplaced => "an R2T outside of the data, or out of order",
        N::R2tForRead => "an R2T for a command that writes nothing",
    }
}

/// Of iSCSI.
pub fn iscsi_fault(why: IscsiFault) -> &'static str {
    use IscsiFault as I;
    match why {
        I::DataInNumber => "Data-In with a wrong DataSN",
        I::DataInForWrite => "Data-In for a write",
        I::R2tLimit => "more R2Ts than MaxOutstandingR2T",
        I::LoginEndless => "a login without end",
        I::LoginTextLong => "too much text in a login",
        I::LoginTextPairs => "a login text that is not made of pairs",
        I::NameTwice => "a name said twice in one login",
        I::Version => "an iSCSI version that is not ours",
        I::LoginOtherSession => "a login that changes its session",
        I::LoginStages => "login stages out of order",
        I::InitiatorNameLength => "an initiator name of a wrong length",
        I::NoInitiatorName => "a login without InitiatorName",
        I::SessionType => "an unknown session type",
        I::NoTargetName => "a login without TargetName",
        I::OtherTarget => "a login to another target",
        I::NotLetIn => "an initiator that is not let in",
        I::SecretUnproven => "a host that must prove its secret and does not",
        I::ChapUnchosen => "CHAP keys before CHAP was chosen",
        I::NoCommonMethod => "no common authentication method",
        I::MethodChosen => "AuthMethod was chosen already",
        I::NoChapAlgorithm => "CHAP_A is missing",
        I::ChapBeforeChallenge => "CHAP keys before the challenge",
        I::NoCommonAlgorithm => "no common CHAP algorithm",
        I::AlgorithmChosen => "CHAP_A was chosen already",
        I::ChallengeUnanswered => "a challenge without an answer",
        I::SecretGone => "the host has no secret any more",
        I::ChangedMeanwhile => "its host or portal was changed while it logged in",
        I::SecretWrong => "a wrong CHAP name or secret",
        I::ChallengeInvalid => "a CHAP challenge that is none",
        I::ChallengeReflected => "our own CHAP challenge came back",
        I::NoMutualSecret => "a host asks for a secret that we do not have",
        I::SecretsSame => "both CHAP secrets are the same",
        I::ChallengeHalf => "half a CHAP challenge",
        I::ChapOver => "CHAP is over",
        I::LoginOtherNames => "a login that changes its names",
        I::SecurityKeysLate => "security keys after the security stage",
        I::KeyTwice => "a key said twice",
        I::KeyMisplaced => "a key that initiators do not send in a login",
        I::KeyNegotiatedTwice => "a key negotiated twice",
        I::MaxRecvRange => "a MaxRecvDataSegmentLength out of range",
        I::DigestUnknown => "it asks for a digest other than CRC32C or None",
        I::NoSession => "no such session",
        I::SessionsFull => "too many sessions",
        I::HeaderDigest => "a header digest that does not match",
        I::SegmentLong => "a data segment longer than agreed upon",
        I::NotALogin => "something else than a login",
        I::CommandGap => "a gap in the command numbers",
        I::AhsCutOff => "an additional header that is cut off",
        I::TextPairs => "a text that is not made of pairs",
        I::TextLong => "a text that asks for too much",
        I::DataTask => "data for an unknown task",
        I::DataUnasked => "data that nobody asked for",
        I::DataTooEarly => "solicited data before the unsolicited ones ended",
        I::DataTag => "data for an unknown transfer tag",
        I::DataTooMuch => "more data than was asked for",
        I::DataEnd => "a sequence of data that ends where it should not",
        I::LoginTextEndless => "login text without end",
        I::LoginResponseLate => "a login response after the login",
        I::LoginResponseStage => "a login response of another stage",
        I::StageInText => "a stage change in the middle of a text",
        I::ChapSkipped => "the target skipped CHAP",
        I::AlgorithmUnoffered => "a CHAP algorithm that nobody offered",
        I::StageUnasked => "a stage that nobody asked for",
        I::LoginTextInvalid => "login text that is no text",
        I::LoginValue => "a login key with a value that it may not have",
        I::NoSessionHandle => "a login without a session handle",
        I::SegmentTooLong => "a data segment longer than we take",
        I::HeaderDigestWrong => "a wrong header digest",
        I::DataDigestWrong => "a wrong data digest",
        I::DataInForNone => "Data-In for no command",
        I::DataInLate => "Data-In after the answer",
        I::DataInMisplaced => "Data-In outside of what was asked for, or out of order",
        I::DataInBeyondBuffer => "Data-In beyond our buffer",
        I::AnswerLong => "a text or answer beyond 64 KiB",
        I::Opcode => "an unknown opcode",
        I::PduInLogin => "a PDU that does not belong into a login",
        I::StatSn => "a StatSN that is not the next",
        I::AnswerToNone => "an answer to no command",
        I::R2tNumber => "an R2T with a wrong number or tag",
        I::R2tMisplaced => "an R2T outside of the data, or out of order",
        I::R2tForNone => "an R2T for no write",
        I::TextUnasked => "a text response that nobody asked for",
        I::TargetsEndless => "a list of targets without end",
        I::TargetsInvalid => "a list of targets that is no text",
        I::CapacityShort => "a capacity that is too short",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_fault_has_words_of_its_own() {
        let nvme: Vec<&str> = NvmeFault::ALL.iter().map(|f| nvme_fault(*f)).collect();
        let iscsi: Vec<&str> = IscsiFault::ALL.iter().map(|f| iscsi_fault(*f)).collect();
        for all in [nvme, iscsi] {
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
            assert!(all.iter().all(|words| !words.is_empty() && !words.ends_with('.')), "{all:?}");
        }
    }
}
