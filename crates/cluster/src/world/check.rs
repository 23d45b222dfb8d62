//! Invariants of the simulated world.

use super::Failure;
use crate::member::{Member, Part};
use crate::record::{HeadNo, SystemRecord};
use std::collections::BTreeMap;

/// What is known of all that was decided.
#[derive(Debug, Default)]
pub(super) struct Check {
    records: BTreeMap<u64, SystemRecord>,
}

impl Check {
    /// So many records were decided.
    pub fn epochs(&self) -> u64 {
        self.records.last_key_value().map_or(0, |(epoch, _)| *epoch)
    }
    /// Somebody takes this for decided.
    pub fn decided(&mut self, record: &SystemRecord) -> Result<(), Failure> {
        if let Some(before) = self.records.get(&record.epoch) {
            if before != record {
                let words = "two records of one epoch are decided";
                return Err(format!("{words}, {}: {before:?} and {record:?}", record.epoch));
            }
            return Ok(());
        }
        self.records.insert(record.epoch, record.clone());
        HeadNo::from_number(0).into_iter().chain(HeadNo::from_number(1)).try_for_each(|h| self.lives(h))
    }
    /// A life that is out is never in again.
    fn lives(&self, head: HeadNo) -> Result<(), Failure> {
        let mut over = vec![];
        let mut now = None;
        for (epoch, record) in &self.records {
            let life = record.is_in(head).then(|| record.head(head).life);
            if life == now {
                continue;
            }
            over.extend(now);
            now = life;
            if now.is_some_and(|life| over.contains(&life)) {
                return Err(format!("a process that was out is in again, epoch {epoch}: {record:?}"));
            }
        }
        Ok(())
    }
    /// What a process takes itself for is what it knows.
    pub fn part(&self, member: &Member) -> Result<(), Failure> {
        let (known, me) = (member.known(), member.me());
        let is_in = known.is_in_as(me, member.life());
        let good = match member.part() {
            Part::Outside => !is_in,
            Part::Follower => is_in && known.leader != me,
            Part::Leader => is_in && known.leader == me,
            Part::Over => true,
        };
        let words = "a process takes itself for what it is not";
        if good { Ok(()) } else { Err(format!("{words}: {me:?} for {:?}, {known:?}", member.part())) }
    }
}
