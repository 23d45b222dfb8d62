//! What a layout gives away: redundancy that a pool has and new arrays lack, and space that no array can use. Nobody gets
//! either without having said that it is meant.

use crate::layout::PoolId;
use crate::order::{ArraySpec, ErrorKind, Refusal};
use crate::report::Counters;
use crate::steward::context::pool::PoolDesk;
use crate::steward::context::probe::Probe;
use crate::steward::office::Office;
use crate::steward::pools::fit::{bytes_needed, check_probes};
use crate::steward::words::{refuse, size, size_there};
use base::Uuid;

/// A drive of which more than one part in so many stays unused is told.
const WASTE: u64 = 10;

/// A drive that is larger than its array can use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unused {
    path: String,
    /// Of the whole drive.
    bytes: u64,
    /// That nothing is stored on.
    unused: u64,
}

impl Unused {
    /// None if at most a tenth of the drive stays unused.
    pub fn of(path: &str, bytes: u64, used: u64) -> Option<Self> {
        let unused = bytes.saturating_sub(used);
        (unused > bytes / WASTE).then(|| Self { path: path.into(), bytes, unused })
    }
    /// The legs of a mirror that are much larger than its smallest one.
    pub fn in_mirror(legs: &[Probe]) -> Vec<Self> {
        let smallest = legs.iter().map(|l| l.info.bytes).min().unwrap_or(0);
        legs.iter().filter_map(|l| Self::of(&l.info.path, l.info.bytes, smallest)).collect()
    }
    /// A sentence without its end.
    pub fn words(&self) -> String {
        let Self { path, bytes, unused } = self;
        format!("{} of the {} of {path} would stay unused", size_there(*unused), size_there(*bytes))
    }
    /// The refusal of a mirror with such legs; None if there are none.
    pub fn refusal(drives: &[Self]) -> Option<Refusal> {
        let words: Vec<String> = drives.iter().map(Self::words).collect();
        let message =
            format!("{}: each drive of a mirror holds as much as its smallest one", words.join(", "));
        (!drives.is_empty()).then(|| {
            refuse(ErrorKind::Unsafe, "drives", message)
                .then("the same command with drives of one size, or with --force")
        })
    }
}

impl PoolDesk {
    /// That much of a drive stays unused wherever it stands in for another one.
    pub(crate) fn unused_as_spare(&self, probe: &Probe) -> Option<Unused> {
        let mirrors = self.arrays.iter().filter(|a| a.geometry.redundant());
        let largest = mirrors.map(|a| a.geometry.data_at + a.geometry.data_bytes).max()?;
        Unused::of(&probe.info.path, probe.info.bytes, bytes_needed(probe, largest))
    }
}

/// Copies that an array keeps of everything.
fn copies(spec: &ArraySpec) -> usize {
    if spec.is_mirror() { spec.drives.len() } else { 1 }
}

/// The refusal of arrays that keep fewer copies than the pool does.
pub(crate) fn less_redundant(pool: &PoolDesk, specs: &[ArraySpec]) -> Option<Refusal> {
    let has = (0..pool.arrays.len()).map(|a| pool.legs_to_stay(a)).min()?;
    let short: Vec<&ArraySpec> = specs.iter().filter(|s| copies(s) < has).collect();
    let first = short.first()?;
    let name = &pool.config().name;
    let what = match first.is_mirror() {
        true => format!("a mirror of {}", copies(first)),
        false => format!("the single drive {}", first.drives.join(" ")),
    };
    let then = match copies(first) {
        1 => "if that drive fails, data of volumes is lost".to_string(),
        n => format!("data of volumes is lost if {n} drives fail instead of {has}"),
    };
    let message = format!(
        "pool {name} keeps {has} copies of everything, and {what} would keep {}: {then}",
        copies(first)
    );
    let next =
        format!("millrace pool add {name} {}, or the same command with --force", mirrors_of(has, specs));
    Some(refuse(ErrorKind::Unsafe, "arrays", message).then(next))
}

/// The drives of these arrays as mirrors of at least `legs`; `DRIVE` stands for each that is missing.
fn mirrors_of(legs: usize, specs: &[ArraySpec]) -> String {
    let singles: Vec<&str> =
        specs.iter().filter(|s| !s.is_mirror()).flat_map(|s| &s.drives).map(String::as_str).collect();
    let mirrors =
        specs.iter().filter(|s| s.is_mirror()).map(|s| s.drives.iter().map(String::as_str).collect());
    let all: Vec<Vec<&str>> = mirrors.chain(singles.chunks(legs).map(<[&str]>::to_vec)).collect();
    let words = all.into_iter().map(|mut drives| {
        drives.resize(drives.len().max(legs), "DRIVE");
        format!("mirror {}", drives.join(" "))
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Refuses what the operator has to say that he means: drives that hold something, arrays of which `less` says that they keep
/// less redundancy, and space that stays unused. `arrays` are the drives of each array.
pub(crate) fn check_meant<'a>(
    arrays: impl Iterator<Item = &'a [Probe]> + Clone,
    less: Option<Refusal>,
) -> Result<(), Refusal> {
    let held: Vec<String> =
        arrays.clone().flatten().filter_map(Probe::objection).map(|why| format!("{why:?}")).collect();
    let held = match held.is_empty() {
        true => None,
        false => arrays
            .clone()
            .find_map(|legs| check_probes(legs, false, false))
            .map(|r| r.with_message(format!("{}; what is there would be lost", held.join("; ")))),
    };
    let unused: Vec<Unused> = arrays.flat_map(Unused::in_mirror).collect();
    // Whoever says --force has read all that it overrides.
    let all: Vec<Refusal> = [less, held, Unused::refusal(&unused)].into_iter().flatten().collect();
    match &all[..] {
        [] => Ok(()),
        [one] => Err(one.clone()),
        [first, ..] => {
            let message = all.iter().map(Refusal::said).collect::<Vec<_>>().join("; and ");
            Err(first.clone().with_message(message).then("other drives (millrace drive ls), or the same command with --force, which overrides all of this"))
        }
    }
}

impl Office {
    /// Refuses a volume whose data would be lost; `command` does it all the same. Nothing durable says whether a volume was ever
    /// written, so it was, unless it was made since the pool was imported and no shard has counted a write.
    pub(crate) async fn check_not_written(
        &self,
        pool: PoolId,
        volume: Uuid,
        name: &str,
        command: &str,
    ) -> Result<(), Refusal> {
        let before = self.desk().reported.clone();
        self.ask_reports().await;
        let desk = self.desk();
        // Figures that did not come in time count no write that was under way.
        let fresh = desk.reported.iter().zip(&before).all(|(now, before)| now > before);
        let Some(p) = desk.pool(pool) else { return Ok(()) };
        let id = p.volume_ids.get(&volume);
        let mut did = Counters::default();
        let figures = desk.reports.iter().flatten().flat_map(|r| &r.volumes);
        figures.filter(|(v, _)| Some(v) == id).for_each(|(_, counters)| did.add(counters));
        let message = match (did.writes, fresh && p.made_here.contains(&volume)) {
            // A write that failed may have reached a drive.
            (0, true) if did.errors == 0 => return Ok(()),
            (0, _) => format!("volume {name} may hold data, which would be lost"),
            (_, true) => {
                format!("hosts wrote {} to volume {name}: its data would be lost", size(did.write_bytes))
            }
            (_, false) => format!(
                "volume {name} holds data (hosts wrote {} since the daemon started), which would be lost",
                size(did.write_bytes)
            ),
        };
        Err(refuse(ErrorKind::Unsafe, "disconnect", message).then(command))
    }
}
