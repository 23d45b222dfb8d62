//! Findings about drives, drives, legs and spares and spares.

refusals! {
    /// Why an order about drives, legs and spares was not carried out.
    pub enum LegRefusal {}
}

findings! {
    /// Why something about drives, legs and spares is not optimal.
    pub enum LegCause {}
}

events! {
    /// What happened to drives, legs and spares.
    pub enum LegEvent {}
}

findings! {
    /// What is worth knowing of drives, legs and spares.
    pub enum LegNotice {}
}
