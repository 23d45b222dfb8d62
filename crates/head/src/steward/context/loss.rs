//! What is lost of the state directory.

/// What was found to be lost, and what helps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Loss {
    /// The file that is told as lost until it is written again; empty for what is not made good so.
    pub file: String,
    /// A sentence.
    pub words: String,
    pub next: String,
}
