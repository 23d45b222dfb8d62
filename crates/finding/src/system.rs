//! Findings about two heads, and the head itself.

refusals! {
    /// Why an order about two heads, and the head itself was not carried out.
    pub enum SystemRefusal {
        /// The head is stopping.
        Stopping = NotReady @ "",
    }
}

findings! {
    /// Why something about two heads, and the head itself is not optimal.
    pub enum SystemCause {}
}

events! {
    /// What happened to two heads, and the head itself.
    pub enum SystemEvent {
        /// The head serves.
        HeadServes = Note,
    }
}

findings! {
    /// What is worth knowing of two heads, and the head itself.
    pub enum SystemNotice {
        /// An address of the link is one of a portal, too: what hosts send there delays heartbeats.
        LinkShared { address: String },
    }
}
