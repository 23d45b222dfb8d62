//! Words that are nearly others: what somebody meant who wrote `stauts` or `shrds`.

/// How many letters two words differ by: one more, one less, another one, or two that changed places.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let other = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + other);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// The one of `known` that `word` is most like, if it is like it at all.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A longer word is nobody's slip of the finger, and would only take long.
    const LENGTH_MAX: usize = 64;
    // A shorter one begins too many.
    const BEGINNING_MIN: usize = 3;
    if word.len() > LENGTH_MAX {
        return None;
    }
    let word = word.to_lowercase();
    let most = (word.chars().count() / 3).max(1);
    let known: Vec<&str> = known.into_iter().collect();
    let near = known.iter().map(|k| (distance(&word, k), *k)).filter(|(d, k)| *d <= most && *d < k.len());
    let begun = || {
        let is_long = word.trim_start_matches('-').len() >= BEGINNING_MIN;
        let begun: Vec<&str> = known.iter().filter(|k| is_long && k.starts_with(&word)).copied().collect();
        if let [one] = begun[..] { Some(one) } else { None }
    };
    near.min_by_key(|(d, _)| *d).map(|(_, k)| k).or_else(begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_slips_of_the_finger() {
        for (a, b, n) in [
            ("status", "status", 0),
            ("stauts", "status", 1),
            ("volum", "volume", 1),
            ("ls", "sl", 1),
            ("pool", "host", 3),
        ] {
            assert_eq!(distance(a, b), n, "{a} {b}");
        }
        assert_eq!(nearest("POOL", ["pool", "host"]), Some("pool"));
        assert_eq!(nearest("x", ["a", "ls"]), None);
        assert_eq!(nearest("comp", ["completions", "pool"]), Some("completions"));
        assert_eq!(nearest("--iops", ["--iops-max", "--mbps-max"]), Some("--iops-max"));
        assert_eq!(nearest("--uplink", ["--uplink-mbps", "--uplink-share"]), None);
        assert_eq!(nearest(&"a".repeat(1000), ["a"]), None);
    }
}
