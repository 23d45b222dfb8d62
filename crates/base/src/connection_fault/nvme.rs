//! What a peer does wrong in NVMe/TCP, and why a Connect is rejected.

faults! {
    /// Why an NVMe/TCP connection was ended or rejected, by a controller or a host.
    #[serde(rename_all = "snake_case")]
    pub enum NvmeFault {
        /// Unknown PDU type.
        PduType,
        /// PDU type of the other direction.
        PduDirection,
        /// Wrong header length.
        HeaderLength,
        /// Header digest flag is not what was agreed.
        HeaderDigestFlag,
        /// PDU shorter than its header.
        PduShort,
        /// PDU too long.
        PduLong,
        /// PDU longer than its header.
        PduBeyondHeader,
        /// Wrong data offset.
        DataOffset,
        /// Data digest flag is not what was agreed.
        DataDigestFlag,
        /// PDU without room for its digest.
        NoRoomForDigest,
        /// Header digest.
        HeaderDigest,
        /// Data length does not fit the PDU length.
        DataLength,
        /// PDU out of sequence.
        PduSequence,
        /// The host ended the connection.
        HostEnded,
        /// In-capsule data beyond IOCCSZ.
        CapsuleData,
        /// More commands than the queue has entries.
        QueueOverrun,
        /// PDU format version.
        FormatVersion,
        /// HPDA.
        Hpda,
        /// A queue of a controller that is gone.
        ControllerGone,
        /// A queue of a controller that is not enabled.
        ControllerDisabled,
        /// A queue that its controller has already.
        QueueTaken,
        /// Too many controllers.
        ControllersFull,
        /// The host was removed.
        HostRemoved,
        /// Its host or portal was changed while the Connect was under way.
        ChangedMeanwhile,
        /// No transfer has this tag.
        TransferTag,
        /// The transfer belongs to another command.
        TransferCommand,
        /// Data beyond the R2T.
        BeyondR2t,
        /// Data out of order.
        DataOrder,
        /// Last data before the end of the R2T.
        LastTooEarly,
        /// The end of the R2T in data that are not the last.
        LastMissing,
        /// No host has this NQN.
        NqnUnknown,
        /// A Connect of an unknown format.
        ConnectFormat,
        /// It asked for another subsystem.
        OtherSubsystem,
        /// A Connect without a valid host NQN.
        NqnInvalid,
        /// A Connect without a host identifier.
        NoHostId,
        /// A Connect with wrong parameters.
        ConnectParameters,
        /// A Connect whose data did not arrive whole.
        ConnectData,
        /// A PDU that does not belong here.
        PduMisplaced,
        /// Unknown PDU format version.
        FormatUnknown,
        /// Alignment beyond 128 bytes.
        Alignment,
        /// A digest that nobody asked for.
        DigestUnasked,
        /// MAXH2CDATA below 4096.
        MaxH2cData,
        /// Data for a command that reads nothing.
        DataUnread,
        /// Data outside of what was asked for, or out of order.
        DataMisplaced,
        /// SUCCESS on data that are not the last.
        SuccessNotLast,
        /// SUCCESS before all data have come.
        SuccessTooEarly,
        /// Data for a command that is not under way.
        DataForNone,
        /// An answer to no command.
        AnswerToNone,
        /// A second answer.
        SecondAnswer,
        /// More R2Ts than MAXR2T allows.
        R2tLimit,
        /// An R2T outside of the data, or out of order.
        R2tMisplaced,
        /// An R2T for a command that writes nothing.
        R2tForRead,
    }
}
