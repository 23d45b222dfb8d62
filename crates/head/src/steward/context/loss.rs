//! What is lost of the state directory.

use finding::RecordCause;

/// What was found to be lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Loss {
    /// The file that is told as lost until it is written again; empty for what is not made good so.
    pub file: String,
    /// What was found.
    pub cause: RecordCause,
}
