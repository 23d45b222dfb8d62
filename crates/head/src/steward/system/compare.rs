//! At a takeover: what the head that led had told of a pool, against what lies on its drives. The drives are right; a difference is told.

use crate::steward::procedures::Procedures;
use crate::steward::state::config::PoolConfig;
use core::cmp::Ordering;
use finding::SystemEvent;
use std::collections::BTreeSet;

/// A configuration with its generation.
type Known<'a> = (&'a PoolConfig, u64);

/// How what is kept in the state directory differs from what the drives hold.
fn difference((kept, kept_at): Known<'_>, (found, found_at): Known<'_>) -> Option<SystemEvent> {
    let names = |c: &PoolConfig| -> BTreeSet<String> { c.volumes.iter().map(|v| v.name.clone()).collect() };
    let (before, now) = (names(kept), names(found));
    let volumes_known = before.difference(&now).cloned().collect();
    let volumes_found = now.difference(&before).cloned().collect();
    match kept_at.cmp(&found_at) {
        Ordering::Less => Some(SystemEvent::ConfigurationLater {
            known: kept_at,
            found: found_at,
            volumes_known,
            volumes_found,
        }),
        Ordering::Greater => Some(SystemEvent::ConfigurationEarlier {
            known: kept_at,
            found: found_at,
            volumes_known,
            volumes_found,
        }),
        Ordering::Equal if kept.slot(kept_at) != found.slot(found_at) => {
            Some(SystemEvent::ConfigurationDiffers { found: found_at, volumes_known, volumes_found })
        }
        Ordering::Equal => None,
    }
}

impl Procedures {
    /// A pool's configuration was read from its drives: what this head had been told by the one that led is compared with it.
    pub(crate) fn compare_kept(&self, found: &PoolConfig, generation: u64) {
        if !self.is_in_system() {
            return;
        }
        let differs = {
            let context = self.context();
            let kept = context.absent.iter().find(|p| p.uuid() == found.uuid).and_then(|p| p.known());
            kept.and_then(|kept| difference(kept, (found, generation)))
        };
        if let Some(differs) = differs {
            let now = self.cx.now();
            self.context_mut().happened(now, format!("pool {}", found.name), differs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Weight;
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

        let (volumes_known, volumes_found) = (vec!["a".to_string()], vec!["new".to_string()]);
        let later = SystemEvent::ConfigurationLater { known: 7, found: 8, volumes_known, volumes_found };
        assert_eq!(told(7, 8), later, "a change that was under way");
        assert_eq!(later.weight(), Weight::Note);
        for (kept_at, found_at) in [(8, 7), (7, 7)] {
            assert_eq!(told(kept_at, found_at).weight(), Weight::Error, "nothing that is usual explains it");
        }
        assert_eq!(difference((&kept, 8), (&kept, 7)).map(|d| d.weight()), Some(Weight::Error));
    }
}
