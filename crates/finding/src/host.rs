//! Findings about hosts and exports.

use crate::{ConnectedHost, IqnFault, LoginFate, NqnFault, SecretFault};

refusals! {
    /// Why an order about hosts and exports was not carried out.
    pub enum HostRefusal {
        /// This is no name of a host.
        HostNameInvalid { name: String } = Invalid @ "name",
        /// There is a host of this name.
        HostNameTaken { host: String } = Conflict @ "name",
        /// There is no host of this name.
        HostUnknown { host: String } = NotFound @ "host",
        /// There are as many hosts as there can be.
        TooManyHosts { hosts_max: usize } = NoSpace @ "name",
        /// The host has neither an NQN nor an IQN.
        HostWithoutNames = Invalid @ "nqns",
        /// The host has too many NQNs or IQNs.
        TooManyNames { names_max: usize } = Invalid @ "nqns",
        /// This is no NVMe qualified name.
        NqnInvalid { name: String, why: NqnFault } = Invalid @ "nqns",
        /// This is no iSCSI name.
        IqnInvalid { name: String, why: IqnFault } = Invalid @ "iqns",
        /// Another host has this NQN.
        NqnTaken { nqn: String, host: String } = Conflict @ "nqns",
        /// Another host has this IQN.
        IqnTaken { iqn: String, host: String } = Conflict @ "iqns",
        /// This CHAP secret must not be used.
        SecretInvalid { why: SecretFault } = Invalid @ "chap_secret",
        /// This mutual CHAP secret must not be used.
        MutualSecretInvalid { why: SecretFault } = Invalid @ "mutual_secret",
        /// This is no user name for CHAP.
        ChapUserInvalid { bytes_max: usize } = Invalid @ "chap_user",
        /// Another volume has this LUN for the host.
        LunTaken { lun: u16 } = Conflict @ "lun",
        /// The LUN is beyond the largest.
        LunTooLarge { lun: u16, lun_max: u16 } = Invalid @ "lun",
        /// No LUN or namespace id is free.
        NoNumberFree = NoSpace @ "lun",
        /// Volumes are exported to the host that would be removed.
        HostHasExports { host: String, volumes: usize } = Unsafe @ "name",
        /// The host that would be removed is connected.
        HostRemoveInUse { force: bool, hosts: Vec<ConnectedHost> } = Unsafe @ "disconnect",
        /// The host is connected by a name that it would lose.
        HostNameInUse { hosts: Vec<ConnectedHost> } = Unsafe @ "disconnect",
        /// The host is connected over iSCSI with the secret that would change.
        HostSecretInUse { hosts: Vec<ConnectedHost> } = Unsafe @ "disconnect",
    }
}

events! {
    /// What happened to hosts and exports.
    pub enum HostEvent {
        /// The host was added.
        HostAdded = Note,
        /// The host was changed.
        HostChanged = Note,
        /// The host was removed.
        HostRemoved = Note,
        /// A connection to a portal was rejected or cut off, or sees nothing.
        Rejected {
            /// What it calls itself; empty if it did not say.
            name: String,
            address: String,
            fate: LoginFate,
        } = Warning,
        /// The same rejection happened again, so many times in so many seconds.
        RejectedAgain { name: String, address: String, fate: LoginFate, times: u64, seconds: u64 } = Warning,
        /// Other connections were rejected, so many times in so many seconds.
        OthersRejected { times: u64, seconds: u64 } = Warning,
        /// The host has its first connection over a portal.
        HostPathConnected {
            protocol: String,
            portal: String,
            /// Which head serves it, of a system of two.
            head: Option<String>,
        } = Note,
        /// The host has no connection over a portal any more, and so many other paths.
        HostPathLeft { protocol: String, portal: String, head: Option<String>, paths_left: u64 } = Note,
        /// A path of the host comes and goes: so many more times in this time; whether it is up now.
        HostPathFlaps {
            protocol: String,
            portal: String,
            head: Option<String>,
            times: u64,
            seconds: u64,
            up: bool,
        } = Warning,
        /// So many times other paths of hosts came or left in this time.
        HostPathsChanged { times: u64, seconds: u64 } = Warning,
    }
}

findings! {
    /// What is worth knowing of hosts and exports.
    pub enum HostNotice {
        /// A host needs no secret to use these volumes.
        HostWithoutSecret { host: String, volumes: Vec<String> },
    }
}
