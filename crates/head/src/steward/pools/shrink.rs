//! Arrays on which nothing lies leave a pool again (docs/formats/state.md, "A removal").
//!
//! ```text
//! at rest ▶ drives in the journal ▶ configuration without them ▶ the shards know of them no more ▶ on record
//!         ▶ in the list of pools ▶ labels taken away ▶ out of the journal
//! ```
//!
//! A head that falls before the configuration is on some drive has the pool as it was; afterwards the next start takes the
//! labels away that are left.

use crate::layout::{ArrayId, PoolId};
use crate::mail::ShardMail;
use crate::order::{Answered, ErrorKind, Refusal, Reply, Weight};
use crate::steward::context::array::{LegDesk, Wish};
use crate::steward::context::open::OpenDrive;
use crate::steward::context::pool::PoolDesk;
use crate::steward::office::Office;
use crate::steward::patience::QUIET_PATIENCE;
use crate::steward::record::texts::{CREATING, POOLS, leaves, path_of};
use crate::steward::state::{Edit, PoolRow};
use crate::steward::words::{STATE_DISK, array_word, error_words, refuse};
use array::format::ConfigSlot;
use base::Uuid;
use pool::StripeMap;
use std::collections::BTreeSet;
use volume::GRANULE_BYTES;

/// What a pool is to lose.
struct Cut {
    pool: PoolId,
    uuid: Uuid,
    name: String,
    /// The first array that leaves; all behind it leave with it.
    first: usize,
    map: StripeMap,
    /// Their names.
    words: String,
}

impl PoolDesk {
    fn array_name_at(&self, array: usize) -> String {
        array_word(self.config().arrays[array].mirror, array)
    }
    fn names_from(&self, first: usize) -> String {
        (first..self.arrays.len()).map(|a| self.array_name_at(a)).collect::<Vec<_>>().join(" ")
    }
    /// Which arrays leave if these do, and what is left of the stripe. What was added last is at the end of the pool's space:
    /// it leaves first.
    fn cut_named(&self, names: &[String]) -> Result<(usize, StripeMap), Refusal> {
        let (pool, count) = (&self.config().name, self.arrays.len());
        let show = format!("millrace pool show {pool}");
        let find = |name: &String| {
            (0..count).find(|a| self.array_name_at(*a) == *name).ok_or_else(|| {
                let message = format!(
                    "pool {pool} has no array {name}: it has {}",
                    self.names_from(0).replace(' ', ", ")
                );
                refuse(ErrorKind::NotFound, "array", message).then(show.clone())
            })
        };
        let named = names.iter().map(find).collect::<Result<BTreeSet<usize>, Refusal>>()?;
        let Some(first) = named.first().copied() else {
            return Err(refuse(ErrorKind::Invalid, "array", "no array is named").then(show));
        };
        let Some(cut) = (1..=first).rev().find(|a| self.config().map.cut(*a).is_some()) else {
            let name = self.array_name_at(first);
            let message = format!("pool {pool} was made with {name}, and cannot be without it");
            return Err(refuse(ErrorKind::Conflict, "array", message).then(show));
        };
        if (cut..count).any(|a| !named.contains(&a)) {
            let missing: Vec<String> =
                (cut..count).filter(|a| !named.contains(a)).map(|a| self.array_name_at(a)).collect();
            let names: Vec<String> = named.iter().map(|a| self.array_name_at(*a)).collect();
            let message = format!(
                "{} cannot leave pool {pool} without {}: volumes are striped over arrays that were added together, and what was added last leaves first",
                names.join(", "),
                missing.join(", ")
            );
            let next = format!("millrace pool rm {pool} {}", self.names_from(cut));
            return Err(refuse(ErrorKind::Conflict, "array", message).then(next));
        }
        Ok((cut, self.config().map.cut(cut).expect("found above")))
    }
    /// Refuses to take space away that is somebody's.
    fn check_nothing_lies_behind(&self, map: &StripeMap, words: &str) -> Result<(), Refusal> {
        let (pool, end) = (&self.config().name, map.bytes() / GRANULE_BYTES);
        let reaches = |v: &&volume::Volume| v.map.runs().any(|run| run.first + run.count > end);
        let volumes: Vec<String> =
            self.config().volumes.iter().filter(reaches).map(|v| format!("{pool}/{}", v.name)).collect();
        if let Some(first) = volumes.first() {
            let message = format!("data of {} lies on {words}", volumes.join(", "));
            let next = format!(
                "millrace volume rm {first}, if its data is not needed or is elsewhere, then this again"
            );
            return Err(refuse(ErrorKind::Conflict, "array", message).then(next));
        }
        if !self.space().is_free_from(end) {
            let message = format!(
                "space of a volume that was removed or has shrunk lies on {words}, and is not free yet"
            );
            return Err(refuse(ErrorKind::NotReady, "array", message).then("this again in a few seconds"));
        }
        Ok(())
    }
    /// Refuses while something is under way that the cut would be in the way of. Each drive that stays must learn of it: one
    /// that did not would ask for the arrays that left if it were found alone.
    fn check_calm(&self, first: usize, words: &str) -> Result<(), Refusal> {
        let pool = &self.config().name;
        if self.scrub.run.is_some() {
            let message = format!("pool {pool} is being scrubbed");
            return Err(refuse(ErrorKind::Conflict, "pool", message)
                .then(format!("millrace pool scrub {pool} --stop, then this again")));
        }
        let leaving: BTreeSet<Uuid> =
            self.arrays[first..].iter().flat_map(|a| &a.legs).map(|l| l.uuid).collect();
        let rows = &self.config().extras.replacements;
        if rows.iter().any(|r| leaving.contains(&r.old) || leaving.contains(&r.new)) {
            let message = format!("a drive of {words} is being replaced");
            return Err(refuse(ErrorKind::Conflict, "array", message)
                .then("millrace status --watch, and this again once that is over"));
        }
        let stay = (0..first).flat_map(|a| (0..self.arrays[a].legs.len()).map(move |l| (a, l)));
        let away =
            stay.into_iter().find(|(a, l)| self.is_out(*a, *l) || self.arrays[*a].legs[*l].open.is_none());
        if let Some((a, l)) = away {
            let (path, array) = (self.drive_path(a, l), self.array_name_at(a));
            let message =
                format!("{path} of {array} is away or out: it would not learn which arrays pool {pool} has");
            let next =
                format!("millrace drive return {path}, or millrace drive replace {path} NEW, and this again");
            return Err(refuse(ErrorKind::NotReady, "pool", message).then(next));
        }
        Ok(())
    }
}

impl Office {
    /// Order: arrays on which nothing lies leave their pool.
    pub(crate) async fn array_remove(&self, pool: &str, names: Vec<String>) -> Answered {
        self.check_read(POOLS)?;
        self.check_read(CREATING)?;
        let cut = {
            let desk = self.desk();
            let p = desk.pool_named(pool)?;
            let (first, map) = p.cut_named(&names)?;
            let words = p.names_from(first).replace(' ', ", ");
            p.check_nothing_lies_behind(&map, &words)?;
            p.check_calm(first, &words)?;
            Cut { pool: p.id, uuid: p.config().uuid, name: p.config().name.clone(), first, map, words }
        };
        let arrays = self.stop_arrays(&cut).await?;
        self.take_keeper(cut.pool).await;
        let gone = self.take_off(&cut).await;
        self.free_keeper(cut.pool);
        let legs = match gone {
            Ok(legs) => legs,
            Err(r) => {
                self.resume_arrays(&arrays);
                return Err(r);
            }
        };
        let listed = self.write_pools().await;
        let open: Vec<OpenDrive> = legs.iter().filter_map(|l| l.open.clone()).collect();
        let kept = self.unlabel_all(&open).await;
        open.iter().for_each(|o| self.let_go(o.id));
        // One that keeps its label says so here, once: it is refused by name until `--force`.
        let paths: Vec<String> = legs.iter().map(|l| l.path.clone()).collect();
        if listed.is_ok() {
            self.done_with(cut.uuid, &paths).await;
        }
        let labelled = |l: &&LegDesk| l.open.as_ref().is_none_or(|o| kept.contains(&o.info.path));
        let told = |l: &LegDesk| {
            format!("{} is away or takes no writes: it keeps its label of pool {}", l.path, cut.name)
        };
        let notices: Vec<String> = legs.iter().filter(labelled).map(told).collect();
        let free: Vec<&str> = legs.iter().filter(|l| !labelled(l)).map(|l| l.path.as_str()).collect();
        let free =
            if free.is_empty() { String::new() } else { format!(": free again are {}", free.join(", ")) };
        {
            let now = self.cx.now();
            let mut desk = self.desk_mut();
            legs.into_iter().for_each(|l| desk.departs(Some((l.uuid, l.path))));
            let what = format!("pool {}", cut.name);
            desk.event(now, Weight::Note, what.clone(), format!("{} left it{free}", cut.words));
            notices.iter().for_each(|n| desk.event(now, Weight::Warning, what.clone(), n.clone()));
        }
        listed?;
        Ok(Reply::Created { uuid: Uuid::default(), notices: notices.into_iter().map(Into::into).collect() })
    }

    /// Brings the arrays that leave to rest: no volume lies there, but legs may be compared or copied.
    async fn stop_arrays(&self, cut: &Cut) -> Result<Vec<ArrayId>, Refusal> {
        let (arrays, number) = {
            let mut desk = self.desk_mut();
            let p = desk.pool(cut.pool).expect("orders come one by one");
            let arrays: Vec<ArrayId> = p.arrays[cut.first..].iter().map(|a| a.id).collect();
            let number = desk.asks_for_rest(&arrays);
            (arrays, number)
        };
        for array in &arrays {
            self.tell_shards(|| ShardMail::Quiesce { array: *array, number });
        }
        let (office, all) = (self.clone(), arrays.clone());
        let quiet = move || office.desk().are_quiet(&all);
        if self.cx.until_within(QUIET_PATIENCE, quiet).await {
            return Ok(arrays);
        }
        self.resume_arrays(&arrays);
        let message = format!(
            "a drive of {} still holds operations after {} seconds",
            cut.words,
            QUIET_PATIENCE.as_secs()
        );
        Err(refuse(ErrorKind::NotReady, "array", message)
            .then("millrace status -v, for the drive that hangs"))
    }
    fn resume_arrays(&self, arrays: &[ArrayId]) {
        for array in arrays {
            self.tell_shards(|| ShardMail::Resume { array: *array });
        }
    }
    /// Keeps the keeper from its work, and whoever else does that: a last leg that comes back holds it, too.
    async fn take_keeper(&self, pool: PoolId) {
        let office = self.clone();
        self.cx.until(move || office.desk().pool(pool).is_none_or(|p| !p.keeping && !p.held)).await;
        self.hold_keeper(pool).await;
    }

    /// The arrays are no part of the pool any more, durably; or all is as it was. Returns their legs.
    async fn take_off(&self, cut: &Cut) -> Result<Vec<LegDesk>, Refusal> {
        let drives: Vec<String> = {
            let desk = self.desk();
            let p = desk.pool(cut.pool).expect("orders come one by one");
            // A leg may have been lost while the arrays came to rest.
            p.check_calm(cut.first, &cut.words)?;
            let leaving = p.arrays[cut.first..].iter().flat_map(|a| &a.legs).filter(|l| l.open.is_some());
            leaving.map(|l| leaves(&l.path)).collect()
        };
        let listed = self.list_addition(cut.uuid, &cut.name, drives.clone()).await;
        listed.map_err(|r| r.then(STATE_DISK))?;
        let map = cut.map.clone().into();
        let edit = Edit::ArraysRemoved { first: cut.first as u32, map };
        let planned = self.plan(cut.pool, vec![edit]).await?;
        if let Err(r) = self.put_on_stayers(cut, &planned.slot()).await {
            // Whoever has it would go on without the arrays, and whoever lacks it with them.
            drop(planned);
            self.configure_again(cut.pool).await?;
            let paths: Vec<String> = drives.iter().map(|d| path_of(d).to_string()).collect();
            self.done_with(cut.uuid, &paths).await;
            return Err(r);
        }
        self.decided(planned);
        let legs = {
            let mut desk = self.desk_mut();
            let p = desk.pool_mut(cut.pool).expect("orders come one by one");
            let mut record = p.record().clone();
            record.arrays.truncate(cut.first);
            p.propose(record);
            p.promotion_refused(None);
            let is_here = |w: &Wish| {
                let (Wish::Lost { array, .. } | Wish::Joined { array, .. } | Wish::Synced { array, .. }) = w;
                *array < cut.first
            };
            p.wishes.retain(is_here);
            p.scrub.forget_arrays(cut.first);
            let legs: Vec<LegDesk> = p.arrays.drain(cut.first..).flat_map(|a| a.legs).collect();
            legs
        };
        // No shard uses a drive any more before its label goes.
        self.publish().await;
        // The record may name more than the configuration does; but with drives that are gone, heads that fall one after the
        // other would find less of what tells their records apart.
        self.next_record(cut.pool);
        self.put_on_record(cut.pool, &[], &[]).await;
        // The other slot says it, too: no slot of a drive asks for the arrays that left.
        self.configure_again(cut.pool).await?;
        Ok(legs)
    }
    /// Writes a configuration to the drives that stay, and to the state directory. All take it, or it is refused.
    async fn put_on_stayers(&self, cut: &Cut, slot: &ConfigSlot) -> Result<(), Refusal> {
        let failed = self.put_config_below(cut.pool, slot, cut.first).await;
        let Some((a, l, error)) = failed.first() else {
            self.keep_config(cut.pool, slot).await;
            return Ok(());
        };
        let path = self.desk().pool(cut.pool).map_or(String::new(), |p| p.drive_path(*a, *l).to_string());
        let message = format!("{path} could not be told of it: the drive {}", error_words(*error));
        Err(refuse(ErrorKind::Internal, "pool", message).then("millrace status"))
    }

    /// The pool was imported: arrays that were leaving it when the life before ended have left, and their drives are free
    /// again; or they are still there.
    pub(crate) async fn end_removal(&self, uuid: Uuid) {
        let (row, members) = {
            let desk = self.desk();
            let row = desk.creating().iter().find(|r| r.uuid == uuid).cloned();
            let Some((row, p)) = row.zip(desk.pools.iter().find(|p| p.config().uuid == uuid)) else { return };
            let legs = p.arrays.iter().flat_map(|a| &a.legs).map(|l| l.uuid);
            let members: BTreeSet<Uuid> = legs.chain(p.spares.iter().map(|s| s.uuid)).collect();
            let (drives, here) = (row.drives.iter().filter(|d| leaves(path_of(d)) == **d), p.row().drives);
            let drives = drives.map(|d| path_of(d).to_string()).partition::<Vec<_>, _>(|d| here.contains(d));
            ((p.config().name.clone(), drives), members)
        };
        let (name, (here, gone)) = row;
        // The configuration that lacks them was not on any drive yet.
        self.done_with(uuid, &here).await;
        if gone.is_empty() {
            return;
        }
        let listed = self.look_for_listed(&PoolRow { uuid, name: name.clone(), drives: gone.clone() }).await;
        let is_member = |l: &array::format::Label| members.contains(&l.drive);
        let ours = listed.found.iter().filter(|p| p.good_label().is_some_and(|l| !is_member(l)));
        let open: Vec<OpenDrive> = ours.filter_map(|p| p.opened()).collect();
        let failed = self.unlabel_all(&open).await;
        listed.found.iter().for_each(|p| self.let_go(p.id));
        let left: Vec<String> = failed.into_iter().chain(listed.away).collect();
        let free: Vec<&str> =
            open.iter().map(|o| o.info.path.as_str()).filter(|p| !left.iter().any(|l| l == p)).collect();
        let mut words = String::from("arrays were leaving it when the head fell: that is brought to its end");
        if !free.is_empty() {
            words.push_str(&format!(", and free again are {}", free.join(", ")));
        }
        if !left.is_empty() {
            words.push_str(&format!(
                "; {} may still have its label: the next start tries again, and --force takes it all the same",
                left.join(", ")
            ));
        }
        let (what, now) = (format!("pool {name}"), self.cx.now());
        self.desk_mut().event(now, Weight::Note, what, words);
        if self.check_read(POOLS).and(self.write_pools().await).is_ok() {
            let done: Vec<String> = gone.into_iter().filter(|d| !left.contains(d)).collect();
            self.done_with(uuid, &done).await;
        }
    }
}
