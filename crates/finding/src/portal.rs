//! Findings about portals and addresses that move.

use crate::{AddressFault, ConnectedHost, Immovable, NetFault};

refusals! {
    /// Why an order about portals and addresses that move was not carried out.
    pub enum PortalRefusal {
        /// The address has no port.
        PortalWithoutPort { address: String } = Invalid @ "address",
        /// There is a portal at this address.
        PortalTaken { protocol: String, address: String } = Conflict @ "address",
        /// The address that would move is not here.
        AddressNotHere { address: String, why: AddressFault } = Conflict @ "address",
        /// No head confirmed in time that the address that would move is here.
        AddressNotConfirmed { address: String, seconds: u64 } = Conflict @ "address",
        /// The head cannot listen at the address.
        PortalFailed {
            address: String,
            why: NetFault,
            /// The other head of the system, if the address could be its own.
            head: Option<String>,
        } = Conflict @ "address",
        /// Another portal of this head listens at the address.
        PortalOverlaps {
            address: String,
            protocol: String,
            other: String,
            /// The other head of the system, if the address could be its own.
            head: Option<String>,
        } = Conflict @ "address",
        /// Not all shards opened the portal in time.
        PortalOpenTimedOut {
            address: String,
            seconds: u64,
            /// The other head of the system, if the address could be its own.
            head: Option<String>,
        } = Conflict @ "address",
        /// The address cannot move from head to head.
        PortalImmovable { address: String, why: Immovable } = Invalid @ "prefix",
        /// The address moves in another way already.
        PortalMovesOtherwise { protocol: String, address: String } = Conflict @ "prefix",
        /// There is no such portal.
        PortalUnknown { protocol: String, address: String } = NotFound @ "address",
        /// Hosts are connected by the portal that would be removed.
        PortalInUse { protocol: String, address: String, hosts: Vec<ConnectedHost> } = Unsafe @ "disconnect",
    }
}

findings! {
    /// Why something about portals and addresses that move is not optimal.
    pub enum PortalCause {
        /// The address that moves is being configured.
        AddressPending,
        /// The address that moves cannot be here.
        AddressFailed { why: AddressFault },
    }
}

events! {
    /// What happened to portals and addresses that move.
    pub enum PortalEvent {
        /// The portal was added.
        PortalAdded = Note,
        /// The portal was removed.
        PortalRemoved = Note,
        /// The portal listens.
        PortalOpen = Note,
        /// The portal does not listen.
        PortalClosed {
            why: NetFault,
            /// It is the other head that does not.
            on_other: bool,
        } = Error,
        /// The portal has the address of the head that is out, which listens there once it is back.
        PortalOfOther = Note,
        /// The address that moves is not here.
        AddressAway { why: AddressFault } = Error,
        /// The address that moves is here.
        AddressHere { interface: String } = Note,
        /// The daemon may not send packets of its own, which tell neighbours and hosts of a takeover.
        NoRawPackets = Warning,
    }
}
