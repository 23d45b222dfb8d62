//! Steward: one per head. Decides who is a member, what is on record, who is let in; carries out the
//! operator's orders. Its procedures are `async fn` on `runtime`, redone from durable state if cut off.

pub mod runtime;
pub mod sessions;
