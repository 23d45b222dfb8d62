//! State directories of two heads: what the head that leads counts as had by the other one lies there, whatever becomes of that head.
//!
//! To be asked at an answer of the head that leads, and at rests. Nothing is to be said while a file is on its way, or while the other head
//! is out or has not all.

use super::World;
use super::actor::Books;
use base::Uuid;
use head::steward::Leads;
use std::collections::{BTreeMap, BTreeSet};

/// Files that say who may come, and where.
const MARKED: [&str; 2] = ["hosts", "portals"];

/// What each file of `MARKED` holds.
type Files = [Option<Vec<u8>>; MARKED.len()];

/// What hosts and portals were by the last change that a record marks, at answers of a head since it began to lead.
#[derive(Default)]
pub(super) struct Marked(BTreeMap<(usize, Uuid, u64), Files>);

impl Marked {
    /// Another head may lead, or one that had changed something and not marked it.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

impl World {
    /// What the head that leads says, if no file is on its way to the other one, which has all.
    fn shares_nothing(&self, leader: usize) -> Option<Leads> {
        let heads = &self.drive_checker.heads;
        if !self.is_shared() || heads.lead() != leader || heads.is_out(leader) || heads.is_out(1 - leader) {
            return None;
        }
        let books = self.books_of(leader).into_iter().find_map(|books| match books {
            Books::Steward(books) => Some(books),
            Books::Shard(_) => None,
        });
        let system = books.filter(|books| books.ready)?.system?;
        let leads = self.leads(leader)?;
        let there = leads.other_is_in && leads.other_has_latest;
        let all = !system.sharing && !system.has_not && system.had >= system.sent;
        (there && all).then_some(leads)
    }
    /// Files that both heads must have lie in both directories, the same, and each change of hosts and portals is marked by a record that both
    /// know.
    ///
    /// # Errors
    /// The first thing that is not so.
    pub fn check_directories(&mut self, leader: usize) -> Result<(), String> {
        let Some(leads) = self.shares_nothing(leader) else { return Ok(()) };
        let follower = 1 - leader;
        let [one, other] = [leader, follower].map(|server| &self.servers[server].state);
        let shared = |name: &&String| files::kind(name).is_some_and(|k| k.whose == files::Whose::System);
        let names: BTreeSet<&String> = one.keys().chain(other.keys()).filter(shared).collect();
        for name in names {
            let [one, other] = [leader, follower].map(|server| self.durable_file(server, name));
            if one != other {
                let [one, other] = [one, other].map(|file| file.map(<[u8]>::len));
                return Err(format!(
                    "directories: server {follower} has all files, and {name} is not what it is at server {leader}: {other:?} bytes \
                     instead of {one:?}"
                ));
            }
        }
        let known = self.durable_record(follower).map(|record| record.changed);
        if known.is_none_or(|known| known < leads.changed) {
            return Err(format!(
                "directories: server {follower} has the hosts and portals of epoch {}, and its own record knows of {known:?}",
                leads.changed
            ));
        }
        let now = MARKED.map(|name| self.durable_file(leader, name).map(<[u8]>::to_vec));
        let then = self.told.marked.0.entry((leader, leads.system, leads.changed)).or_insert(now.clone());
        match MARKED.iter().zip(now.iter().zip(then)).find(|(_, (now, then))| now != then) {
            Some((name, _)) => Err(format!(
                "directories: {name} of server {leader} has changed since epoch {}, and no record marks that",
                leads.changed
            )),
            None => Ok(()),
        }
    }
}
