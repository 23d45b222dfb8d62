//! Findings about two heads, and the head itself.

refusals! {
    /// Why an order about two heads, and the head itself was not carried out.
    pub enum SystemRefusal {}
}

findings! {
    /// Why something about two heads, and the head itself is not optimal.
    pub enum SystemCause {}
}

events! {
    /// What happened to two heads, and the head itself.
    pub enum SystemEvent {}
}

findings! {
    /// What is worth knowing of two heads, and the head itself.
    pub enum SystemNotice {}
}
