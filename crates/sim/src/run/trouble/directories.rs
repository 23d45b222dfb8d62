//! The state directory of one of two heads is not what it left: a file is damaged, or all is older, or gone, or the file
//! `link` is. That is so when its next process begins; the other head lives, and has all that is newer.
//!
//! Here is the daemon, too: without its file `link` it removes what else is there of a system, and its head begins alone.

use crate::run::{Directory, Run};
use crate::world::{Crash, Wrong};
use base::{Duration, Instant, Prng};
use std::collections::BTreeMap;

/// A head that follows has the leader's files after this time, if it can have them at all.
const FOLLOWS: Duration = Duration::from_secs(3);
/// An operator puts back what was damaged after this time, if no head has, and a file `link` that is gone.
const MENDS: Duration = Duration::from_secs(20);
/// See `MENDS`.
const LINKS: Duration = Duration::from_secs(6);

type Files = BTreeMap<String, Vec<u8>>;

/// What a head finds in its state directory when it begins next.
pub(in crate::run) struct Found {
    what: Directory,
    /// The directory of then.
    older: Files,
    /// Which file is damaged, and how.
    pick: u64,
}

/// A state directory that is not what its head left.
pub(super) struct Foreign {
    server: usize,
    what: Directory,
    since: Instant,
    /// The file that was damaged, as it was.
    good: Option<(String, Vec<u8>)>,
    met: bool,
}

impl Run {
    /// When the head of a server has ended next, its state directory is another one, if it may be.
    pub(super) fn changes_directory(&mut self, server: usize, what: Directory, pick: u64) {
        let older = self.world.servers[server].state.clone();
        self.heads.each[server].finds = Some(Found { what, older, pick });
    }
    /// The head of a server begins anew: what it is to find is put there, if it may be.
    pub(in crate::run) fn exchange_directory(&mut self, server: usize) {
        if self.harm.foreign.is_some() || !self.may_exchange_directory(server) {
            return;
        }
        let Some(Found { what, older, pick }) = self.heads.each[server].finds.take() else { return };
        self.world.say(|| format!("the state directory of server {server}: {what:?}"));
        let state = &mut self.world.servers[server].state;
        let mut good = None;
        match what {
            Directory::Damaged => {
                good = damage(state, &mut Prng::new(pick));
                if good.is_none() {
                    return;
                }
            }
            Directory::Older => *state = older,
            Directory::Empty => state.clear(),
            Directory::Unlinked => state.retain(|name, _| !name.starts_with("system-")),
        }
        self.world.tally.make(counted(what));
        let since = self.world.now();
        self.harm.foreign = Some(Foreign { server, what, since, good, met: false });
    }
    /// Its next process begins. False: it does so alone, as it does not know that it is one of two.
    pub(in crate::run) fn finds_directory(&mut self, server: usize) -> bool {
        let Some(foreign) = self.harm.foreign.as_mut().filter(|f| f.server == server) else { return true };
        if !core::mem::replace(&mut foreign.met, true) {
            self.world.tally.meet(counted(foreign.what));
        }
        foreign.what != Directory::Unlinked
    }
    /// Whether this is so of the state directory of a server.
    pub(in crate::run) fn has_directory(&self, server: usize, what: Directory) -> bool {
        self.harm.foreign.as_ref().is_some_and(|f| f.server == server && f.what == what)
    }
    /// A head that follows has the files of the one that leads. What no head mends, or may not, an operator does: a
    /// damaged file, if it is not of votes, is as it was before, and one of votes is gone.
    pub(in crate::run) fn look_at_directory(&mut self) {
        let Some(Foreign { server, what, since, met, .. }) = self.harm.foreign else { return };
        let now = self.world.now();
        let leader = self.leader();
        let head = &self.heads.each[server];
        let long = head.up && met && head.booted > since && now.since(head.booted) > FOLLOWS;
        if what != Directory::Unlinked && long && leader == Some(1 - server) && self.follower_has_all() {
            self.harm.foreign = None;
            return;
        }
        let is_due = match what {
            Directory::Unlinked => met && now.since(since) > LINKS,
            Directory::Damaged => leader == Some(server) || now.since(since) > MENDS,
            Directory::Older | Directory::Empty => false,
        };
        if !is_due {
            return;
        }
        self.world.say(|| format!("an operator mends the state directory of server {server}"));
        let good = self.harm.foreign.take().and_then(|f| f.good);
        self.ends(server, Crash::Killed);
        if let Some((name, bytes)) = good {
            let state = &mut self.world.servers[server].state;
            let votes = name.starts_with("system-");
            if votes { drop(state.remove(&name)) } else { drop(state.insert(name, bytes)) }
        }
    }
}

fn counted(what: Directory) -> Wrong {
    match what {
        Directory::Damaged => Wrong::DamagedDirectory,
        Directory::Older => Wrong::OlderDirectory,
        Directory::Empty => Wrong::EmptyDirectory,
        Directory::Unlinked => Wrong::UnlinkedDirectory,
    }
}

/// A file that has a checksum is cut, emptied, changed or gone; the file as it was.
fn damage(state: &mut Files, rng: &mut Prng) -> Option<(String, Vec<u8>)> {
    // By the file `format` a daemon knows whether it may begin at all.
    let sealed =
        |name: &&String| *name != files::MARK && files::kind(name).is_some_and(|k| k.shape.is_sealed());
    let names: Vec<String> = state.keys().filter(sealed).cloned().collect();
    if names.is_empty() {
        return None;
    }
    let name = rng.pick(&names).clone();
    let bytes = state.get_mut(&name).filter(|bytes| !bytes.is_empty())?;
    let good = bytes.clone();
    let at = rng.below(bytes.len() as u64) as usize;
    match rng.below(6) {
        0 => bytes.clear(),
        1 => drop(state.remove(&name)),
        2 | 3 => bytes[at] ^= 1 << rng.below(8),
        _ => bytes.truncate(at),
    }
    Some((name, good))
}
