//! A second state gets every change of the head, as a second head would, and must be equal. After a crash,
//! the next head must find on the drives and in the state directory what the second state says, possibly with
//! the changes that were about to become durable (docs/formats/changes.md).

use array::format::{LegState, MembershipRecord, RecordArray};
use base::{Bug, HostId, Uuid, planted};
use head::steward::state::config::PoolConfig;
use head::steward::state::journal::JournalEntry;
use head::steward::state::{Change, Invalid, List, Pool, State};
use std::collections::BTreeMap;

/// What is known of a pool, whichever life of the head had it last.
struct Known {
    pool: Pool,
    /// What was about to become durable since.
    proposed: Vec<Change>,
}

impl Known {
    fn may_be(&mut self, change: Change) {
        if !self.proposed.contains(&change) {
            self.proposed.push(change);
        }
    }
}

/// The second state.
#[derive(Default)]
pub(super) struct Replica {
    state: State,
    /// What the files of the state directory may say after a crash: that of the life before, and what was
    /// about to be written.
    files: Option<Vec<State>>,
    /// The newest changes of files that were proposed and not applied yet.
    filing: Vec<Change>,
    pools: BTreeMap<Uuid, Known>,
    /// Pools that are about to come.
    coming: Vec<Pool>,
    /// The head has read its files.
    read: bool,
    applied: u64,
}

impl Replica {
    /// The head's next life begins.
    pub fn reborn(&mut self) {
        if self.read {
            let after = |change: &Change| {
                let mut state = self.state.clone();
                state.apply(change.clone());
                state
            };
            let files = core::iter::once(self.state.clone()).chain(self.filing.iter().map(after)).collect();
            self.files = Some(files);
        }
        self.state = State::default();
        self.filing = vec![];
        self.read = false;
    }

    /// Takes what happened.
    pub fn take(&mut self, entries: Vec<JournalEntry>) -> Result<(), String> {
        for entry in self.spoilt(entries) {
            match entry {
                JournalEntry::Applied(bytes) => self.applied(&bytes)?,
                JournalEntry::Proposed(bytes) => self.proposed(read(&bytes)?)?,
                JournalEntry::Refused(bytes) => {
                    let refused = read(&bytes)?;
                    self.filing.retain(|change| *change != refused);
                }
                JournalEntry::Found(bytes) => self.found(read(&bytes)?)?,
            }
        }
        Ok(())
    }
    /// The head has read its files, whatever it changes next.
    pub fn ready(&mut self) -> Result<(), String> {
        if core::mem::replace(&mut self.read, true) {
            return Ok(());
        }
        let Some(files) = self.files.take() else { return Ok(()) };
        if files.iter().any(|before| said_by_files(before) == said_by_files(&self.state)) {
            return Ok(());
        }
        Err(format!(
            "replay: the state directory says {}, and what was decided is {}",
            said_by_files(&self.state),
            said_by_files(&files[0])
        ))
    }
    /// Legs in sync, of all pools, by what was decided.
    pub fn in_sync(&self) -> usize {
        let arrays = self.state.pools().iter().flat_map(|p| &p.record().arrays);
        arrays.flat_map(|a| &a.legs).filter(|l| l.state == LegState::InSync).count()
    }
    /// The head's own state.
    pub fn compare(&self, state: &State) -> Result<(), String> {
        if *state == self.state {
            return Ok(());
        }
        let (mine, its) = (format!("{:?}", self.state), format!("{state:?}"));
        let at = mine.bytes().zip(its.bytes()).position(|(a, b)| a != b).unwrap_or(0);
        let near = |text: &str| {
            let text: String = text.chars().skip(at.saturating_sub(60)).take(200).collect();
            text
        };
        Err(format!(
            "replay: after {} changes the head's state is another than the second one: {} … {}",
            self.applied,
            near(&its),
            near(&mine)
        ))
    }

    fn applied(&mut self, bytes: &[u8]) -> Result<(), String> {
        let number = self.state.number();
        self.state.replay(bytes).map_err(|why: Invalid| {
            format!("replay: the second state cannot take what comes after change {number}: {why:?}")
        })?;
        self.applied += 1;
        let (_, change) = Change::decode(bytes).expect("it was just taken");
        self.filing.retain(|c| *c != change);
        match change.pool() {
            None => {}
            Some(uuid) => match self.state.pool(uuid) {
                Some(pool) => {
                    let pool = Pool::clone(pool);
                    let before = self.pools.remove(&uuid).map_or(vec![], |k| k.proposed);
                    let proposed = before.into_iter().filter(|c| is_later(c, &pool)).collect();
                    self.pools.insert(uuid, Known { pool, proposed });
                    self.coming.retain(|p| p.config().uuid != uuid);
                }
                None if matches!(change, Change::PoolLeft { .. }) => drop(self.pools.remove(&uuid)),
                None => {}
            },
        }
        Ok(())
    }
    fn proposed(&mut self, change: Change) -> Result<(), String> {
        // Whatever comes first that is not read from a file.
        self.ready()?;
        match &change {
            Change::PoolCame { config, generation, record } => {
                self.coming.push(Pool::coming(config.clone(), *generation, record.clone()));
            }
            Change::Configured { pool, .. } => {
                if let Some(known) = self.pools.get_mut(pool) {
                    known.may_be(change);
                }
            }
            Change::Member { record } => {
                let mut more = vec![];
                for pool in self.coming.iter().filter(|p| p.config().uuid == record.pool) {
                    more.push(Pool::coming(pool.config().clone(), pool.generation(), record.clone()));
                }
                self.coming.extend(more);
                if let Some(known) = self.pools.get_mut(&record.pool) {
                    known.may_be(change);
                }
            }
            // The files take one change after the other.
            _ => self.filing = vec![change],
        }
        Ok(())
    }
    /// A pool was found on its drives.
    fn found(&mut self, change: Change) -> Result<(), String> {
        self.ready()?;
        let Change::PoolCame { config, generation, record } = change else {
            return Err("replay: something was found that is no pool".into());
        };
        let known = self.pools.get(&config.uuid);
        let coming = self.coming.iter().filter(|p| p.config().uuid == config.uuid);
        let mut all: Vec<Pool> = coming.cloned().collect();
        if let Some(known) = known {
            all.push(known.pool.clone());
            for change in &known.proposed {
                let mut state = State::default();
                state.apply(Change::PoolCame {
                    config: known.pool.config().clone(),
                    generation: known.pool.generation(),
                    record: known.pool.record().clone(),
                });
                state.apply(change.clone());
                all.extend(state.pool(config.uuid).map(|p| Pool::clone(p)));
            }
        }
        let same_config =
            all.iter().any(|p| p.generation() == generation && comparable(p.config()) == comparable(&config));
        if !same_config {
            return Err(format!(
                "replay: pool {} was found with configuration {generation}, which is none of {:?} that were decided or begun: {}",
                config.name,
                all.iter().map(Pool::generation).collect::<Vec<_>>(),
                all.iter().find(|p| p.generation() == generation).map_or(String::new(), |p| {
                    format!("{:?}, not {:?}", comparable(&config), comparable(p.config()))
                })
            ));
        }
        let same_record = all.iter().any(|p| is_same(p.record(), &record));
        if !same_record {
            let names: Vec<_> = all.iter().map(|p| (p.record().counter, p.record().incarnation)).collect();
            return Err(format!(
                "replay: pool {} was found with record {} {}, which is none of {names:?} that were decided or begun",
                config.name, record.counter, record.incarnation
            ));
        }
        Ok(())
    }

    /// What is passed on of these entries by a head with a mistake.
    fn spoilt(&self, mut entries: Vec<JournalEntry>) -> Vec<JournalEntry> {
        // Not the first ones: a head that begins would notice.
        let is_applied = |e: &JournalEntry| matches!(e, JournalEntry::Applied(_));
        let Some(at) = entries.iter().position(is_applied).filter(|_| self.applied == 12) else {
            return entries;
        };
        if planted(Bug::ChangeLost) {
            entries.remove(at);
        }
        if planted(Bug::ChangeRepeated) {
            entries.insert(at, entries[at].clone());
        }
        if let Some(JournalEntry::Applied(bytes)) = entries.get(at)
            && let Ok((number, change)) = Change::decode(bytes)
            && planted(Bug::ChangesReordered)
        {
            // It comes as the one behind it.
            entries[at] = JournalEntry::Applied(change.encode(number + 1));
        }
        entries
    }
}

fn read(bytes: &[u8]) -> Result<Change, String> {
    Change::decode(bytes).map(|(_, change)| change).map_err(|_| "replay: a change cannot be read back".into())
}

/// A configuration but for who is a leg, which the record says, and for where drives lie, which is a hint.
fn comparable(config: &PoolConfig) -> PoolConfig {
    let mut config = config.clone();
    config.arrays.iter_mut().for_each(|a| a.legs.clear());
    config.extras.spares.iter_mut().for_each(|s| s.path.clear());
    config
}

/// Two records say the same of who is a member. They are one, whether or not it is known yet that it is
/// everywhere; or one changed nothing and came behind the other: a head that fell may have had it on some
/// legs only. A record that was written before its arrays were may have more of them.
fn is_same(a: &MembershipRecord, b: &MembershipRecord) -> bool {
    let row = |r: &RecordArray| (r.epoch, r.legs.clone());
    let same_members = a.arrays.iter().zip(&b.arrays).all(|(x, y)| row(x) == row(y));
    let follows = a.ancestors.contains(&b.incarnation) || b.ancestors.contains(&a.incarnation);
    same_members && (a.incarnation == b.incarnation || follows)
}

/// What was proposed and not applied, and may still be found on some drive.
fn is_later(change: &Change, pool: &Pool) -> bool {
    match change {
        Change::Configured { generation, .. } => *generation > pool.generation(),
        Change::Member { record } => {
            record.counter >= pool.record().counter && record.incarnation != pool.record().incarnation
        }
        _ => false,
    }
}

/// What the files of the state directory say but for pools, as text. Hosts have other ids in each life.
fn said_by_files(state: &State) -> String {
    let host = |h: &access::Host| access::Host { id: HostId::default(), ..h.clone() };
    let hosts: Vec<_> = state.hosts().iter().map(host).collect();
    format!(
        "{:?} {hosts:?} {:?} {} {:?} {:?}",
        state.identity(),
        state.portals(),
        state.portal_last(),
        state.list(List::Creating),
        state.list(List::Released)
    )
}
