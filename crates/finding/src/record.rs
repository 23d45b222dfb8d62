//! Findings about what is written down: the state directory, membership, configuration.

refusals! {
    /// Why an order about what is written down was not carried out.
    pub enum RecordRefusal {}
}

findings! {
    /// Why something about what is written down is not optimal.
    pub enum RecordCause {}
}

events! {
    /// What happened to what is written down.
    pub enum RecordEvent {}
}

findings! {
    /// What is worth knowing of what is written down.
    pub enum RecordNotice {}
}
