//! What was measured: plain data that is kept as JSON, the arithmetic on it, and its screens.

pub mod doc;
pub mod drives;
pub mod figures;
pub mod hosts;
pub mod ladder;
pub mod machine;
pub mod report;
pub mod sweep;
