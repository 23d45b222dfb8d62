//! What a peer does wrong in iSCSI, and why a login is rejected.

faults! {
    /// Why an iSCSI connection was ended or rejected, by a target or an initiator.
    #[serde(rename_all = "snake_case")]
    pub enum IscsiFault {
        /// Data-In with a wrong `DataSN`.
        DataInNumber,
        /// Data-In for a write.
        DataInForWrite,
        /// More R2Ts than `MaxOutstandingR2T`.
        R2tLimit,
        /// A login without end.
        LoginEndless,
        /// Too much text in a login.
        LoginTextLong,
        /// A login text that is not made of pairs.
        LoginTextPairs,
        /// A name said twice in one login.
        NameTwice,
        /// An iSCSI version that is not ours.
        Version,
        /// A login that changes its session.
        LoginOtherSession,
        /// Login stages out of order.
        LoginStages,
        /// An initiator name of a wrong length.
        InitiatorNameLength,
        /// A login without `InitiatorName`.
        NoInitiatorName,
        /// An unknown session type.
        SessionType,
        /// A login without `TargetName`.
        NoTargetName,
        /// A login to another target.
        OtherTarget,
        /// An initiator that is not let in.
        NotLetIn,
        /// A host that must prove its secret and does not.
        SecretUnproven,
        /// CHAP keys before CHAP was chosen.
        ChapUnchosen,
        /// No common authentication method.
        NoCommonMethod,
        /// `AuthMethod` was chosen already.
        MethodChosen,
        /// `CHAP_A` is missing.
        NoChapAlgorithm,
        /// CHAP keys before the challenge.
        ChapBeforeChallenge,
        /// No common CHAP algorithm.
        NoCommonAlgorithm,
        /// `CHAP_A` was chosen already.
        AlgorithmChosen,
        /// A challenge without an answer.
        ChallengeUnanswered,
        /// The host has no secret any more.
        SecretGone,
        /// Its host or portal was changed while the login was under way.
        ChangedMeanwhile,
        /// A wrong CHAP name or secret.
        SecretWrong,
        /// A CHAP challenge that is none.
        ChallengeInvalid,
        /// Our own CHAP challenge came back.
        ChallengeReflected,
        /// A host asks for a secret that we do not have.
        NoMutualSecret,
        /// Both CHAP secrets are the same.
        SecretsSame,
        /// Half a CHAP challenge.
        ChallengeHalf,
        /// CHAP is over.
        ChapOver,
        /// A login that changes its names.
        LoginOtherNames,
        /// Security keys after the security stage.
        SecurityKeysLate,
        /// A key said twice.
        KeyTwice,
        /// A key that initiators do not send in a login.
        KeyMisplaced,
        /// A key negotiated twice.
        KeyNegotiatedTwice,
        /// A `MaxRecvDataSegmentLength` out of range.
        MaxRecvRange,
        /// It asks for a digest other than CRC32C or None.
        DigestUnknown,
        /// No such session.
        NoSession,
        /// Too many sessions.
        SessionsFull,
        /// A header digest that does not match.
        HeaderDigest,
        /// A data segment longer than agreed upon.
        SegmentLong,
        /// Something else than a login.
        NotALogin,
        /// A gap in the command numbers.
        CommandGap,
        /// An additional header that is cut off.
        AhsCutOff,
        /// A text that is not made of pairs.
        TextPairs,
        /// A text that asks for too much.
        TextLong,
        /// Data for an unknown task.
        DataTask,
        /// Data that nobody asked for.
        DataUnasked,
        /// Solicited data before the unsolicited ones ended.
        DataTooEarly,
        /// Data for an unknown transfer tag.
        DataTag,
        /// More data than was asked for.
        DataTooMuch,
        /// A sequence of data that ends where it should not.
        DataEnd,
        /// Login text without end.
        LoginTextEndless,
        /// A login response after the login.
        LoginResponseLate,
        /// A login response of another stage.
        LoginResponseStage,
        /// A stage change in the middle of a text.
        StageInText,
        /// The target skipped CHAP.
        ChapSkipped,
        /// A CHAP algorithm that nobody offered.
        AlgorithmUnoffered,
        /// A stage that nobody asked for.
        StageUnasked,
        /// Login text that is no text.
        LoginTextInvalid,
        /// A login key with a value that it may not have.
        LoginValue,
        /// A login without a session handle.
        NoSessionHandle,
        /// A data segment longer than we take.
        SegmentTooLong,
        /// A wrong header digest.
        HeaderDigestWrong,
        /// A wrong data digest.
        DataDigestWrong,
        /// Data-In for no command.
        DataInForNone,
        /// Data-In after the answer.
        DataInLate,
        /// Data-In outside of what was asked for, or out of order.
        DataInMisplaced,
        /// Data-In beyond our buffer.
        DataInBeyondBuffer,
        /// A text or answer beyond 64 KiB.
        AnswerLong,
        /// An unknown opcode.
        Opcode,
        /// A PDU that does not belong into a login.
        PduInLogin,
        /// A `StatSN` that is not the next.
        StatSn,
        /// An answer to no command.
        AnswerToNone,
        /// An R2T with a wrong number or tag.
        R2tNumber,
        /// An R2T outside of the data, or out of order.
        R2tMisplaced,
        /// An R2T for no write.
        R2tForNone,
        /// A text response that nobody asked for.
        TextUnasked,
        /// A list of targets without end.
        TargetsEndless,
        /// A list of targets that is no text.
        TargetsInvalid,
        /// A capacity that is too short.
        CapacityShort,
    }
}
