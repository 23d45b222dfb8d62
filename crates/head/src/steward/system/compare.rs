//! At a takeover: what the head that led had told of a pool, against what lies on its drives. The drives are right; a difference is told.

use crate::order::Weight;
use crate::steward::office::Office;
use crate::steward::state::config::PoolConfig;
use std::collections::BTreeSet;

/// A configuration with its generation.
type Known<'a> = (&'a PoolConfig, u64);

/// How what is kept in the state directory differs from what the drives hold, in words.
fn difference((kept, kept_at): Known<'_>, (found, found_at): Known<'_>) -> Option<(Weight, String)> {
    let names = |c: &PoolConfig| -> BTreeSet<String> { c.volumes.iter().map(|v| v.name.clone()).collect() };
    let (before, now) = (names(kept), names(found));
    let mut what: Vec<String> = vec![];
    let mut only = |these: Vec<&String>, there: &str| {
        if !these.is_empty() {
            let names: Vec<&str> = these.into_iter().map(String::as_str).collect();
            what.push(format!("volumes only {there}: {}", names.join(", ")));
        }
    };
    only(before.difference(&now).collect(), "in the state directory");
    only(now.difference(&before).collect(), "on the drives");
    let what = if what.is_empty() { String::new() } else { format!(" ({})", what.join("; ")) };
    let (weight, words) = if kept_at < found_at {
        let words = "this head had been told configuration";
        (
            Weight::Note,
            format!(
                "{words} {kept_at}, and the drives hold {found_at}{what}: a change was under way; the drives count"
            ),
        )
    } else if kept_at > found_at {
        let words = "the drives hold configuration";
        let next = "a drive that has it may be missing: millrace status";
        (
            Weight::Error,
            format!(
                "{words} {found_at}, and this head had been told {kept_at}{what}: the drives count; {next}"
            ),
        )
    } else if kept.slot(kept_at) != found.slot(found_at) {
        let words = "configuration";
        let next = "compare volumes and exports with what you know: millrace volume ls";
        (
            Weight::Error,
            format!(
                "{words} {found_at} on the drives is not the one that this head had been told{what}: the drives count; {next}"
            ),
        )
    } else {
        return None;
    };
    Some((weight, words))
}

impl Office {
    /// A pool's configuration was read from its drives: what this head had been told by the one that led is compared with it.
    pub(crate) fn compare_kept(&self, found: &PoolConfig, generation: u64) {
        if !self.is_in_system() {
            return;
        }
        let differs = {
            let desk = self.desk();
            let kept = desk.absent.iter().find(|p| p.uuid() == found.uuid).and_then(|p| p.known());
            kept.and_then(|kept| difference(kept, (found, generation)))
        };
        if let Some((weight, words)) = differs {
            let now = self.cx.now();
            self.desk_mut().event(now, weight, format!("pool {}", found.name), words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steward::state::config::tests::sample;

    #[test]
    fn what_the_drives_hold_counts_and_a_difference_is_told() {
        let kept = sample();
        assert_eq!(difference((&kept, 7), (&kept, 7)), None);

        let mut found = sample();
        let mut moved = found.volumes.iter().next().expect("it has some").clone();
        found.volumes.remove(moved.uuid);
        moved.uuid = base::Uuid::from_random(77, 77);
        moved.name = "new".into();
        found.volumes.put(moved);
        let told = |kept_at, found_at| difference((&kept, kept_at), (&found, found_at)).expect("they differ");

        let (weight, words) = told(7, 8);
        assert_eq!(weight, Weight::Note, "a change that was under way");
        for part in
            ["7", "8", "only in the state directory: a", "only on the drives: new", "the drives count"]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
        for (kept_at, found_at) in [(8, 7), (7, 7)] {
            assert_eq!(told(kept_at, found_at).0, Weight::Error, "nothing that is usual explains it");
        }
        assert_eq!(difference((&kept, 8), (&kept, 7)).map(|d| d.0), Some(Weight::Error));
    }
}
