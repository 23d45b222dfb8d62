//! Differences as people read them.

use super::diff::{Action, Change, Diff, Impossible, Loss, Note};
use crate::screen::{Look, Terminal, count};
use api::{ArraySpec, HostSet, PortalAdd, VolumeSet};
use base::size::print;
use serde::Serialize;

/// A change in words; also its shape in JSON, which stays.
#[derive(Serialize)]
pub struct Line {
    /// `add`, `change` or `remove`.
    #[serde(rename = "do")]
    verb: &'static str,
    /// What it is about: `volume tank/vm1`.
    pub what: String,
    /// What of it; empty if the whole.
    details: String,
    /// What is lost, which needs `--force`; for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<Loss>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    loses: Option<String>,
}

impl Line {
    /// Says a change.
    pub fn of(change: &Change) -> Self {
        let (verb, what, details) = said(&change.action);
        let loses = change.loss.as_ref().map(loss);
        Self { verb, what, details, loss: change.loss.clone(), loses }
    }
    /// On the screen. `allowed`: it may lose what it loses.
    pub fn show(&self, allowed: bool, terminal: Terminal) -> String {
        let (sign, look) = match self.verb {
            "add" => ("+ ", Look::Good),
            "remove" => ("- ", Look::Bad),
            _ => ("~ ", Look::Warn),
        };
        terminal.paragraph(look, sign, &self.sentence(allowed), 4)
    }
    /// What is done and lost, in a sentence of others.
    pub fn in_words(&self) -> String {
        format!("{} {}", self.verb, self.sentence(true))
    }
    /// The same without the sign.
    fn sentence(&self, allowed: bool) -> String {
        let details = if self.details.is_empty() { String::new() } else { format!(": {}", self.details) };
        let force = if allowed { "" } else { ", needs --force" };
        let loses = self.loses.as_ref().map_or(String::new(), |loses| format!(" ({loses}{force})"));
        format!("{}{details}{loses}", self.what)
    }
}

/// What is done, to what, and how.
fn said(action: &Action) -> (&'static str, String, String) {
    let whole = String::new;
    match action {
        Action::Unexport { volume, host } => ("remove", format!("export {volume} to {host}"), whole()),
        Action::HostRemove { name } => ("remove", format!("host {name}"), whole()),
        Action::VolumeRemove { name } => ("remove", format!("volume {name}"), whole()),
        Action::DriveRemove { pool, called, spare, drive: _ } => {
            let what = if *spare { "spare" } else { "leg" };
            ("remove", format!("{what} {called} of pool {pool}"), whole())
        }
        Action::ArraysRemove { pool, arrays } => {
            ("remove", format!("{} of pool {pool}", arrays.join(", ")), whole())
        }
        Action::PoolDestroy { name } => ("remove", format!("pool {name}"), whole()),
        Action::PoolCreate { create, spares } => {
            let parts = [
                vec![arrays(&create.arrays)],
                spares.iter().map(|s| format!("spare {s}")).collect(),
                create.chunk_bytes.map(|c| format!("chunk {}", print(c.into()))).into_iter().collect(),
                create.block_bytes.map(|b| format!("block {b}")).into_iter().collect(),
            ];
            ("add", format!("pool {}", create.name), parts.concat().join(", "))
        }
        Action::ArraysAdd { pool, arrays: new } => ("add", format!("arrays of pool {pool}"), arrays(new)),
        Action::DriveReplace { pool, called, new, old: _ } => {
            ("change", format!("leg {called} of pool {pool}"), format!("replaced by {new}"))
        }
        Action::LegAdd { pool, mirror, drive } => {
            ("add", format!("leg {drive} of pool {pool}"), format!("in {mirror}"))
        }
        Action::SpareAdd { pool, drive } => ("add", format!("spare {drive} of pool {pool}"), whole()),
        Action::VolumeCreate { create, caps } => {
            let block = create.block_bytes.map(|b| format!("block {b}"));
            let caps = caps.iter().flat_map(|set| set_words(set, None));
            let all: Vec<String> = [exact(create.bytes)].into_iter().chain(block).chain(caps).collect();
            ("add", format!("volume {}", create.name), all.join(", "))
        }
        Action::VolumeResize { name, from, to } => {
            ("change", format!("volume {name}"), format!("size {} to {}", exact(*from), exact(*to)))
        }
        Action::VolumeSet { name, was, set } => {
            ("change", format!("volume {name}"), set_words(set, Some(was)).join(", "))
        }
        Action::HostAdd(add) => {
            let names = [add.nqns.as_slice(), &add.iqns].concat();
            let proves = add.chap_secret.is_some().then(|| "CHAP secret".into());
            let mutual = add.mutual_secret.is_some().then(|| "mutual secret".into());
            let all: Vec<String> = names.into_iter().chain(proves).chain(mutual).collect();
            ("add", format!("host {}", add.name), all.join(", "))
        }
        Action::HostSet { name, set, gains, loses } => {
            ("change", format!("host {name}"), host_words(set, gains, loses))
        }
        Action::Export { volume, host, lun } => {
            let lun = lun.map_or(String::new(), |lun| format!("lun {lun}"));
            ("add", format!("export {volume} to {host}"), lun)
        }
        Action::ExportMove { volume, host, from, to } => {
            ("change", format!("export {volume} to {host}"), format!("lun {from} to {to}"))
        }
        Action::PortalAdd(add) => ("add", portal(add), portal_words(add)),
        Action::PortalChange { was, add } => {
            let was = (*was != add.protocol).then(|| format!("was {was}"));
            let moves = Some(portal_words(add)).filter(|words| !words.is_empty());
            let all: Vec<String> = was.into_iter().chain(moves).collect();
            ("change", portal(add), if all.is_empty() { "does not move".into() } else { all.join(", ") })
        }
        Action::PortalRemove { protocol, address } => {
            ("remove", format!("portal {protocol} {address}"), whole())
        }
    }
}

/// A size that can be written into a file again.
pub fn exact(bytes: u64) -> String {
    let short = print(bytes);
    if base::size::parse(&short) == Ok(bytes) { short } else { bytes.to_string() }
}

fn arrays(all: &[ArraySpec]) -> String {
    let one = |a: &ArraySpec| {
        let weight = a.weight.map_or(String::new(), |w| format!(" (weight {w})"));
        format!("{} {}{weight}", a.layout.word(), a.drives.join(" "))
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Caps and weight, each with what it was, if there was a volume.
fn set_words(set: &VolumeSet, was: Option<&[u32; 3]>) -> Vec<String> {
    let cap = |n: u32| if n == 0 { "none".to_string() } else { n.to_string() };
    let new = [set.iops_max, set.mbps_max, set.weight.map(u32::from)];
    let names = ["iops_max", "mbps_max", "weight"];
    let one = |(i, (new, name)): (usize, (Option<u32>, &str))| {
        let to = cap(new?);
        Some(was.map_or_else(|| format!("{name} {to}"), |was| format!("{name} {} to {to}", cap(was[i]))))
    };
    new.into_iter().zip(names).enumerate().filter_map(one).collect()
}

fn host_words(set: &HostSet, gains: &[String], loses: &[String]) -> String {
    let mut all: Vec<String> = gains.iter().map(|name| format!("gains {name}")).collect();
    all.extend(loses.iter().map(|name| format!("loses {name}")));
    match &set.chap_secret {
        Some(Some(_)) => all.push("another CHAP secret".into()),
        Some(None) => all.push("no CHAP secret".into()),
        None => {}
    }
    match &set.mutual_secret {
        Some(Some(_)) => all.push("another mutual secret".into()),
        Some(None) => all.push("no mutual secret".into()),
        None => {}
    }
    match set.chap_user.as_deref() {
        Some("") => all.push("its IQN as CHAP user".into()),
        Some(user) => all.push(format!("CHAP user {user}")),
        None => {}
    }
    all.join(", ")
}

fn portal(add: &PortalAdd) -> String {
    format!("portal {} {}", add.protocol, add.address)
}

fn portal_words(add: &PortalAdd) -> String {
    let head = add.head.as_ref().map(|head| format!("at head {head}"));
    let prefix = add.prefix.map(|bits| format!("moves, prefix {bits}"));
    let interface = add.interface.as_ref().map(|name| format!("interface {name}"));
    head.into_iter().chain(prefix).chain(interface).collect::<Vec<_>>().join(", ")
}

/// What a change loses.
fn loss(loss: &Loss) -> String {
    match loss {
        Loss::Data => "data is lost".into(),
        Loss::Redundancy => "less redundancy".into(),
        Loss::Access(hosts) => {
            let are = if hosts.len() == 1 { "is" } else { "are" };
            format!("{} {are} connected", hosts.join(", "))
        }
        Loss::Exports(host) => format!("volumes are exported to {host}"),
        Loss::Connections(n) => {
            format!("{} end{}", count(*n as usize, "connection"), if *n == 1 { "s" } else { "" })
        }
        Loss::Authentication => "its name alone lets it in".into(),
        Loss::Foreign(drives) => format!("what {} holds is lost", drives.join(", ")),
    }
}

/// Why something cannot be done.
pub fn impossible(why: &Impossible) -> String {
    match why {
        Impossible::Chunk { is, wanted } => {
            format!("the pool has {}, which cannot become {}", print((*is).into()), print((*wanted).into()))
        }
        Impossible::Block { is, wanted } => format!("it is {is}, which cannot become {wanted}"),
        Impossible::NoArrays { pool } => {
            format!("there is no pool {pool}, and none can be made without arrays")
        }
        Impossible::SingleStays { drive } => format!("the single drive {drive} cannot become a mirror"),
        Impossible::DriveHoldsPool { drive, pool } => {
            let pool = pool.as_ref().map_or("a pool".into(), |pool| format!("pool {pool}"));
            format!("{drive} holds {pool}, which is not imported: import it, or wipe the drive by hand")
        }
        Impossible::DriveUnusable { drive, reason } => format!("{drive}: {reason}"),
        Impossible::NoPool { pool } => format!("there is no pool {pool}, and the file makes none"),
        Impossible::PoolGoes { pool } => {
            format!("pool {pool} is not in the file, and --prune would destroy it")
        }
        Impossible::NothingToKeep { host } => {
            format!("host {host} has no secret that it could keep: name a file")
        }
        Impossible::NoVolume { volume } => format!("there is no volume {volume}, and the file makes none"),
        Impossible::NoHost { host } => format!("there is no host {host}, and the file makes none"),
        Impossible::NoHead { head } => format!("this system has no head {head}"),
    }
}

/// What is worth knowing.
pub fn note(note: &Note) -> String {
    match note {
        Note::SpareServes { pool, spare, place } => {
            format!("In pool {pool}, the spare {spare} serves in place of {place}. It stays there.")
        }
        Note::DriveAway { pool, drive, called } => {
            format!(
                "Drive {drive} is not there. It is taken for {called} of pool {pool}, which is not there either."
            )
        }
        Note::PoolAway { pool } => {
            format!("The drives of pool {pool} are not all there. Its arrays and spares are not compared.")
        }
    }
}

/// What the file does not have and is left alone; None if it has everything.
pub fn left_alone(diff: &Diff) -> Option<String> {
    let all: Vec<String> = diff.extras.iter().map(|c| Line::of(c).what).collect();
    (!all.is_empty()).then(|| format!("Not in the file, and left alone: {}.", all.join(", ")))
}

/// `2 to add, 1 to change` of these changes.
pub fn counts(changes: &[Change], before: &str) -> String {
    let lines: Vec<Line> = changes.iter().map(Line::of).collect();
    let one = |verb: &str, past: &str| {
        let n = lines.iter().filter(|l| l.verb == verb).count();
        let word = if before.is_empty() { past } else { verb };
        (n > 0).then(|| format!("{n} {before}{word}"))
    };
    let all = [one("add", "added"), one("change", "changed"), one("remove", "removed")];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
