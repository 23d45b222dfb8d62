//! Kinds of drives, by their specifications.

/// Whether a drive lives in the memory of the daemon that made it, and ends with it.
pub(crate) fn in_memory(spec: &str) -> bool {
    spec.starts_with("ram:") || spec.starts_with("null:")
}

/// Whether a drive has no name by which it could be meant again: each `ram:1G` is another.
pub(crate) fn anonymous(spec: &str) -> bool {
    let ram = spec.strip_prefix("ram:").is_some_and(|rest| !rest.contains(','));
    ram || spec.starts_with("null:")
}
