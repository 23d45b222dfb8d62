//! Numbers and lists as people say them.

/// A number as people say it: `157 K`.
pub fn count(n: f64) -> String {
    match n {
        n if n >= 999_500.0 => format!("{:.2} M", n / 1e6),
        n if n >= 9_950.0 => format!("{:.0} K", n / 1e3),
        n if n >= 1_000.0 => format!("{:.1} K", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// Bytes a second: `830 MB/s`.
pub fn mb(bytes: f64) -> String {
    format!("{:.0} MB/s", bytes / 1e6)
}

/// A time: `90.0 µs`, `12 ms`.
pub fn micros(us: f64) -> String {
    match us {
        us if us >= 9_950.0 => format!("{:.0} ms", us / 1e3),
        us if us >= 100.0 => format!("{us:.0} µs"),
        us => format!("{us:.1} µs"),
    }
}

/// A part of 1: `12 %`.
pub fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// Names in a sentence: `a, b and c`.
pub fn names(list: &[String]) -> String {
    match list {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] if all.len() < 4 => format!("{} and {last}", all.join(", ")),
        all => format!("{} and {} more", all[..3].join(", "), all.len() - 3),
    }
}

/// With a capital at the beginning.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// `n` nodes: `node 0`, `nodes 0-2`.
pub fn nodes(nodes: &[u32]) -> String {
    let word = if nodes.len() == 1 { "node" } else { "nodes" };
    format!("{word} {}", topology::ranges(nodes))
}

/// The word, for one or for several.
pub fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}
