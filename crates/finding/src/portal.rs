//! Findings about portals and addresses that move and addresses that move.

refusals! {
    /// Why an order about portals and addresses that move was not carried out.
    pub enum PortalRefusal {}
}

findings! {
    /// Why something about portals and addresses that move is not optimal.
    pub enum PortalCause {}
}

events! {
    /// What happened to portals and addresses that move.
    pub enum PortalEvent {}
}
