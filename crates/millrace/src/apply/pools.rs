//! What differs of pools: arrays and spares by their drives.

use super::diff::{Action, Diff, Impossible, Loss, Note, Present};
use super::file::{Array, Pool};
use api::{ArrayLayout, ArraySpec, PoolCreate, State};
use base::Uuid;
use core::cmp::Reverse;

/// A drive that a pool has.
#[derive(Clone)]
struct Held<'a> {
    key: &'a str,
    uuid: Uuid,
    path: &'a str,
    /// The head does not have it now, so that nobody can tell what it is called elsewhere.
    away: bool,
}

impl Held<'_> {
    /// What people call it.
    fn called(&self) -> String {
        if self.path.is_empty() { self.uuid.to_string() } else { self.path.into() }
    }
    /// What orders call it: several drives may have the same path.
    fn name(&self) -> String {
        if self.uuid.is_nil() { self.path.into() } else { self.uuid.to_string() }
    }
    /// Takes it from its pool.
    fn remove(&self, pool: &str, spare: bool) -> Action {
        Action::DriveRemove { pool: pool.into(), drive: self.name(), called: self.called(), spare }
    }
}

/// Whether the file means this drive.
fn means(drive: &str, held: &Held<'_>, present: &Present<'_>) -> bool {
    present.key(drive) == held.key || drive.parse() == Ok(held.uuid)
}

/// Takes the drive that the file means from those that are left.
fn take<'a>(drive: &str, left: &mut Vec<Held<'a>>, present: &Present<'_>) -> Option<Held<'a>> {
    let at = left.iter().position(|held| means(drive, held, present))?;
    Some(left.remove(at))
}

/// Takes drives that are not there from both sides, as many as lack on both: the name of one that is not there cannot be
/// followed to what it is.
fn take_absent(
    missing: &mut Vec<&str>,
    left: &mut Vec<Held<'_>>,
    pool: &str,
    present: &Present<'_>,
    out: &mut Diff,
) {
    missing.retain(|drive| {
        let away = left.iter().position(|held| held.away).filter(|_| present.lacks(drive));
        let Some(away) = away else { return true };
        let (pool, drive, called) = (pool.to_string(), drive.to_string(), left.remove(away).called());
        out.notes.push(Note::DriveAway { pool, drive, called });
        false
    });
}

/// What a new array is to the API.
fn spec(array: &Array) -> ArraySpec {
    ArraySpec {
        layout: ArrayLayout::of(array.mirror.is_some()),
        drives: array.drives().into_iter().map(String::from).collect(),
        weight: array.weight,
    }
}

/// What differs of all pools.
pub fn compare(wanted: &[Pool], present: &Present<'_>, out: &mut Diff) {
    let status = present.status;
    for want in wanted {
        match status.pools.iter().find(|p| p.name == want.name) {
            None => create(want, present, out),
            Some(is) => pool(want, is, present, out),
        }
    }
    for is in status.pools.iter().filter(|p| !wanted.iter().any(|w| w.name == p.name)) {
        out.extra(Action::PoolDestroy { name: is.name.clone() }, Some(Loss::Data));
    }
}

fn create(want: &Pool, present: &Present<'_>, out: &mut Diff) {
    let arrays: Vec<ArraySpec> = want.arrays.iter().flatten().map(spec).collect();
    if arrays.is_empty() {
        return out.impossible(want.line, "arrays", Impossible::NoArrays { pool: want.name.clone() });
    }
    let spares = want.spares.clone().unwrap_or_default();
    let drives = arrays.iter().flat_map(|a| &a.drives).chain(&spares).map(String::as_str);
    match present.taking(drives) {
        Err(why) => out.impossible(want.line, "arrays", why),
        Ok(loss) => {
            let create = PoolCreate {
                name: want.name.clone(),
                arrays,
                chunk_bytes: want.chunk,
                block_bytes: want.block,
                measure: false,
                force: false,
            };
            out.change(Action::PoolCreate { create, spares }, loss);
        }
    }
}

fn pool(want: &Pool, is: &api::Pool, present: &Present<'_>, out: &mut Diff) {
    if is.arrays.is_empty() {
        return out.notes.push(Note::PoolAway { pool: is.name.clone() });
    }
    if let Some(wanted) = want.chunk.filter(|c| *c != is.chunk_bytes) {
        out.impossible(want.line, "chunk", Impossible::Chunk { is: is.chunk_bytes, wanted });
    }
    if let Some(wanted) = want.block.filter(|b| *b != is.block_bytes) {
        out.impossible(want.line, "block", Impossible::Block { is: is.block_bytes, wanted });
    }
    let mut serving = vec![];
    if let Some(arrays) = &want.arrays {
        serving = compare_arrays(want, arrays, is, present, out);
    }
    let Some(spares) = &want.spares else { return };
    let held = is.spares.iter().map(|s| {
        let (key, away) = (present.key(&s.path), !s.ready);
        Held { key, uuid: s.uuid, path: &s.path, away }
    });
    let mut left: Vec<Held<'_>> = held.collect();
    let wanted = spares.iter().filter(|drive| !serving.contains(drive)).map(String::as_str);
    let mut missing: Vec<&str> = wanted.filter(|d| take(d, &mut left, present).is_none()).collect();
    take_absent(&mut missing, &mut left, &is.name, present, out);
    for drive in missing {
        match present.taking([drive]) {
            Err(why) => out.impossible(want.line, "spares", why),
            Ok(loss) => {
                out.change(Action::SpareAdd { pool: want.name.clone(), drive: drive.into() }, loss);
            }
        }
    }
    for spare in left {
        out.extra(spare.remove(&is.name, true), Some(Loss::Redundancy));
    }
}

/// The legs of an array but for those that are being replaced.
fn legs_of<'a>(array: &'a api::Array, present: &'a Present<'_>) -> Vec<Held<'a>> {
    let replaced = |path: &str| array.legs.iter().any(|l| l.replaces.as_deref() == Some(path));
    let stay = array.legs.iter().filter(|l| l.path.is_empty() || !replaced(&l.path));
    let held = |l: &'a api::Leg| {
        let away = matches!(l.state, State::Failed | State::Offline);
        Held { key: present.key(&l.path), uuid: l.uuid, path: &l.path, away }
    };
    stay.map(held).collect()
}

/// Which wanted array is which: those with most drives in common first.
fn pairs(wanted: &[Array], legs: &[Vec<Held<'_>>], present: &Present<'_>) -> Vec<Option<usize>> {
    let common = |want: &Array, legs: &[Held<'_>]| {
        let mut left = legs.to_vec();
        want.drives().into_iter().filter(|d| take(d, &mut left, present).is_some()).count()
    };
    let mut all = vec![];
    for (w, want) in wanted.iter().enumerate() {
        all.extend(legs.iter().enumerate().map(|(i, legs)| (Reverse(common(want, legs)), w, i)));
    }
    all.sort_unstable();
    let mut found = vec![None; wanted.len()];
    for (Reverse(n), w, i) in all {
        if n > 0 && found[w].is_none() && !found.contains(&Some(i)) {
            found[w] = Some(i);
        }
    }
    found
}

/// What differs of the arrays; returns the spares of the file that serve as legs.
fn compare_arrays(
    want: &Pool,
    wanted: &[Array],
    is: &api::Pool,
    present: &Present<'_>,
    out: &mut Diff,
) -> Vec<String> {
    let legs: Vec<Vec<Held<'_>>> = is.arrays.iter().map(|a| legs_of(a, present)).collect();
    let found = pairs(wanted, &legs, present);
    let name = |i: usize| format!("{}-{i}", is.arrays[i].layout.word());
    let (mut serving, mut new) = (vec![], vec![]);
    for (array, at) in wanted.iter().zip(&found) {
        let Some(at) = *at else {
            new.push(array);
            continue;
        };
        let mut left = legs[at].clone();
        let drives = array.drives().into_iter();
        let mut missing: Vec<&str> = drives.filter(|d| take(d, &mut left, present).is_none()).collect();
        // A spare that took a leg's place stays there: nobody asked to move data back.
        for spare in want.spares.iter().flatten() {
            if !missing.is_empty() && take(spare, &mut left, present).is_some() {
                let place = missing.remove(0).to_string();
                out.notes.push(Note::SpareServes { pool: is.name.clone(), spare: spare.clone(), place });
                serving.push(spare.clone());
            }
        }
        take_absent(&mut missing, &mut left, &is.name, present, out);
        let single = is.arrays[at].layout == ArrayLayout::Single;
        let replaced = missing.len().min(left.len());
        let added = missing.split_off(replaced);
        for (new, old) in missing.into_iter().zip(left.drain(..replaced)) {
            taken(want, new, present, out, |new| Action::DriveReplace {
                pool: is.name.clone(),
                old: old.name(),
                called: old.called(),
                new,
            });
        }
        for drive in added {
            if single {
                let why = Impossible::SingleStays { drive: legs[at][0].called() };
                out.impossible(want.line, "arrays", why);
                continue;
            }
            let mirror = name(at);
            taken(want, drive, present, out, |drive| Action::LegAdd { pool: is.name.clone(), mirror, drive });
        }
        for leg in left {
            out.extra(leg.remove(&is.name, false), Some(Loss::Redundancy));
        }
    }
    if !new.is_empty() {
        match present.taking(new.iter().flat_map(|a| a.drives())) {
            Err(why) => out.impossible(want.line, "arrays", why),
            Ok(loss) => {
                let arrays = new.into_iter().map(spec).collect();
                out.change(Action::ArraysAdd { pool: is.name.clone(), arrays }, loss);
            }
        }
    }
    let gone = (0..is.arrays.len()).filter(|i| !found.contains(&Some(*i)));
    let arrays: Vec<String> = gone.map(name).collect();
    if !arrays.is_empty() {
        // The head takes away only arrays that no volume uses.
        out.extra(Action::ArraysRemove { pool: is.name.clone(), arrays }, None);
    }
    serving
}

/// A change that takes one new drive.
fn taken(
    want: &Pool,
    drive: &str,
    present: &Present<'_>,
    out: &mut Diff,
    action: impl FnOnce(String) -> Action,
) {
    match present.taking([drive]) {
        Err(why) => out.impossible(want.line, "arrays", why),
        Ok(loss) => out.change(action(drive.into()), loss),
    }
}
