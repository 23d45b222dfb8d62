//! What the command line itself finds: on the way to the daemon, and in what was typed.

findings! {
    /// Why the command line did not get an answer of the daemon.
    pub enum ClientFault {
        /// The client itself cannot run.
        ClientNotStarted { error: String },
        /// The path of the socket is not valid.
        SocketNameInvalid { socket: String, error: String },
        /// There is no such socket.
        NoDaemon { socket: String },
        /// Nobody listens at the socket any more.
        DaemonGone { socket: String },
        /// This user may not use the socket.
        SocketForbidden { socket: String },
        /// Connecting failed for another reason.
        NotConnected { socket: String, error: String },
        /// No answer came in time.
        TimedOut { socket: String, seconds: u64 },
        /// The connection ended before the answer.
        ConnectionClosed { socket: String, error: String },
        /// This is no URL of a head.
        UrlInvalid { url: String },
        /// A secret would cross the network in clear.
        UrlUnprotected { url: String },
        /// No connection to the head's address.
        UrlUnreached { url: String, error: String },
        /// The head shows a certificate that is not known here.
        CertificateUnknown { url: String, fingerprint: String, error: String },
        /// The head shows another certificate than the one that was named.
        CertificateOther { url: String, fingerprint: String, named: String },
        /// A file or a fingerprint for a head elsewhere cannot be used.
        RemoteSettingInvalid {
            /// The option or variable.
            setting: String,
            error: String,
        },
        /// A name cannot be part of a request.
        RequestInvalid { path: String, error: String },
        /// The answer did not arrive whole.
        AnswerTruncated { error: String },
        /// The answer is not of this version of the API.
        AnswerNotUnderstood { error: String },
        /// The daemon refused without saying why.
        NoReason { status: u16 },
    }
}

findings! {
    /// What is wrong with a command or with the configuration, before anybody is asked.
    pub enum CommandFault {
        /// There is no such command.
        UnknownCommand,
        /// The command has no such option.
        UnknownOption,
        /// The command takes no further argument.
        ExtraArgument,
        /// The command lacks an argument.
        MissingArgument,
        /// An option or argument has a value that it cannot have.
        InvalidValue,
        /// An option is given twice.
        RepeatedOption,
        /// Two options cannot be used together.
        ConflictingOptions,
        /// A layout was given as a RAID level.
        RaidLevelName,
        /// The configuration file cannot be read.
        ConfigurationUnreadable,
        /// The configuration file holds something wrong.
        ConfigurationWrong,
        /// The file of desired state cannot be read.
        DesiredStateUnreadable,
        /// The file of desired state holds something wrong.
        DesiredStateWrong,
        /// The file of desired state asks for what cannot be done.
        DesiredStateImpossible,
        /// A change loses something, and that is not allowed.
        ForceNeeded,
        /// The target of a load does not answer.
        TargetNotAnswering,
    }
}
