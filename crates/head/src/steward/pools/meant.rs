//! What a layout gives away: redundancy that a pool has and new arrays lack, and space that no array can use. Nobody gets
//! either without having said that it is meant.

use crate::layout::PoolId;
use crate::order::{ArraySpec, Notice, Refusal};
use crate::report::Counters;
use crate::steward::context::pool::PoolContext;
use crate::steward::context::probe::Probe;
use crate::steward::pools::fit::{bytes_needed, objections};
use crate::steward::procedures::Procedures;
use base::Uuid;
use finding::{PoolNotice, PoolRefusal, UnusedSpace, VolumeData};

/// A drive of which more than one part in so many stays unused is told.
const WASTE: u64 = 10;

/// A drive that is larger than its array can use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unused {
    pub path: String,
    /// Of the whole drive.
    pub bytes: u64,
    /// That nothing is stored on.
    pub unused: u64,
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
    fn space(&self) -> UnusedSpace {
        UnusedSpace { drive: self.path.clone(), bytes: self.bytes, unused_bytes: self.unused }
    }
    /// That it would stay unused.
    pub fn notice(&self) -> Notice {
        PoolNotice::DriveSpaceUnused { drive: self.space() }.into()
    }
    /// The refusal of a mirror with such legs; None if there are none.
    pub fn refusal(drives: &[Self]) -> Option<Refusal> {
        let drives: Vec<UnusedSpace> = drives.iter().map(Self::space).collect();
        (!drives.is_empty()).then(|| PoolRefusal::MirrorLeavesUnused { drives }.into())
    }
}

impl PoolContext {
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
pub(crate) fn less_redundant(pool: &PoolContext, specs: &[ArraySpec]) -> Option<Refusal> {
    let has = (0..pool.arrays.len()).map(|a| pool.legs_to_stay(a)).min()?;
    let short: Vec<&ArraySpec> = specs.iter().filter(|s| copies(s) < has).collect();
    let first = short.first()?;
    Some(
        PoolRefusal::LessRedundant {
            pool: pool.config().name.clone(),
            has: has as u64,
            keeps: copies(first) as u64,
            mirror: first.is_mirror(),
            drives: first.drives.clone(),
            mirrors: mirrors_of(has, specs),
        }
        .into(),
    )
}

/// The drives of these arrays as mirrors of `legs`, as far as there are drives for it.
fn mirrors_of(legs: usize, specs: &[ArraySpec]) -> Vec<Vec<String>> {
    let singles: Vec<String> =
        specs.iter().filter(|s| !s.is_mirror()).flat_map(|s| s.drives.clone()).collect();
    let mirrors = specs.iter().filter(|s| s.is_mirror()).map(|s| s.drives.clone());
    mirrors.chain(singles.chunks(legs).map(<[String]>::to_vec)).collect()
}

/// Refuses what the operator has to say that he means: drives that hold something, arrays of which `less` says that they keep
/// less redundancy, and space that stays unused. `arrays` are the drives of each array.
pub(crate) fn check_meant<'a>(
    arrays: impl Iterator<Item = &'a [Probe]> + Clone,
    less: Option<Refusal>,
) -> Result<(), Refusal> {
    let why = objections(arrays.clone().flatten());
    let held = (!why.is_empty()).then(|| PoolRefusal::DrivesHoldData { why }.into());
    let unused: Vec<Unused> = arrays.flat_map(Unused::in_mirror).collect();
    // Whoever says --force has read all that it overrides.
    let all = [less, held, Unused::refusal(&unused)].into_iter().flatten().collect();
    PoolRefusal::together(all).map_or(Ok(()), Err)
}

impl Procedures {
    /// Refuses a volume whose data would be lost; `forced`: by an order that overrides exports. Nothing durable says whether a volume was ever
    /// written, so it was, unless it was made since the pool was imported and no shard has counted a write.
    pub(crate) async fn check_not_written(
        &self,
        pool: PoolId,
        volume: Uuid,
        name: &str,
        forced: bool,
    ) -> Result<(), Refusal> {
        let before = self.context().reported.clone();
        self.ask_reports().await;
        let context = self.context();
        // Figures that did not come in time count no write that was under way.
        let fresh = context.reported.iter().zip(&before).all(|(now, before)| now > before);
        let Some(p) = context.pool(pool) else { return Ok(()) };
        let id = p.volume_ids.get(&volume);
        let mut did = Counters::default();
        let figures = context.reports.iter().flatten().flat_map(|r| &r.volumes);
        figures.filter(|(v, _)| Some(v) == id).for_each(|(_, counters)| did.add(counters));
        let data = match (did.writes, fresh && p.made_here.contains(&volume)) {
            // A write that failed may have reached a drive.
            (0, true) if did.errors == 0 => return Ok(()),
            (0, _) => VolumeData::Unknown,
            (_, true) => VolumeData::Written { bytes: did.write_bytes },
            (_, false) => VolumeData::WrittenSinceStart { bytes: did.write_bytes },
        };
        Err(PoolRefusal::VolumeHoldsData { volume: name.into(), data, force: forced }.into())
    }
}
