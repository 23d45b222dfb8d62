//! Findings about hosts and exports and exports.

refusals! {
    /// Why an order about hosts and exports was not carried out.
    pub enum HostRefusal {}
}

findings! {
    /// Why something about hosts and exports is not optimal.
    pub enum HostCause {}
}

events! {
    /// What happened to hosts and exports.
    pub enum HostEvent {}
}

findings! {
    /// What is worth knowing of hosts and exports.
    pub enum HostNotice {}
}
