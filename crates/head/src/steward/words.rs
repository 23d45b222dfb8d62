//! Names that many procedures give.

/// An array as `status` names it: `mirror-0`, `single-3`.
pub(crate) fn array_word(mirror: bool, index: usize) -> String {
    format!("{}-{index}", if mirror { "mirror" } else { "single" })
}
