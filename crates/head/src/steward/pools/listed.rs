//! Drives of pools that this head lists, here or away: what others left is overwritten by `--force`, and those never.

use crate::layout::PoolId;
use crate::order::Refusal;
use crate::steward::context::head::HeadContext;
use crate::steward::context::probe::Probe;
use crate::steward::context::spare::is_spare;
use crate::steward::procedures::Procedures;
use array::format::{ConfigSlot, Label};
use base::DriveId;
use finding::PoolRefusal;

/// The pool of this head that a drive is of today.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    pub pool: String,
    /// Where the pool that is here knows the drive; None if the pool is away.
    pub place: Option<String>,
    /// It can be removed from the pool.
    removable: bool,
}

impl Listed {
    fn refusal(self, path: &str) -> Refusal {
        let Self { pool, place, removable } = self;
        PoolRefusal::DriveListed { drive: path.into(), pool, place, removable }.into()
    }
}

impl HeadContext {
    /// What is open as the drive that a label names.
    fn twin(&self, probe: &Probe) -> Option<DriveId> {
        let label: &Label = probe.label.as_ref().ok()?;
        let p = self.pools.iter().find(|p| p.config().uuid == label.pool)?;
        let leg = p.arrays.iter().flat_map(|a| &a.legs).find(|l| l.uuid == label.drive);
        let spare = p.spares.iter().find(|s| s.uuid == label.drive);
        let open = leg.and_then(|l| l.open.as_ref()).or(spare.and_then(|s| s.open.as_ref()));
        open.map(|o| o.id)
    }
    /// The pool of this head that a drive is of by its label. One that was replaced, one of a pool that was never finished, and
    /// a copy of a drive that is here itself hold nothing of it: what is open of these is none, as it was pulled.
    pub(crate) fn listing(&self, probe: &Probe, pulled: &[DriveId]) -> Option<Listed> {
        let label: &Label = probe.label.as_ref().ok()?;
        if probe.config.as_ref().is_ok_and(ConfigSlot::is_unfinished) {
            return None;
        }
        if let Some(p) = self.pools.iter().find(|p| p.config().uuid == label.pool) {
            if self.twin(probe).is_some_and(|open| !pulled.contains(&open)) {
                // The drive itself is in its place: this is a copy of it.
                return None;
            }
            let legs = p.arrays.iter().zip(&p.config().arrays);
            let mut legs = legs.flat_map(|(a, row)| a.legs.iter().map(move |l| (l, row.mirror)));
            let leg = legs.find(|(l, _)| l.uuid == label.drive);
            let leg = leg.map(|(l, mirror)| (&l.path, mirror));
            let spare = p.spares.iter().find(|s| s.uuid == label.drive);
            let (path, removable) = leg.or(spare.map(|s| (&s.path, true)))?;
            return Some(Listed { pool: p.config().name.clone(), place: Some(path.clone()), removable });
        }
        let away = self.absent.iter().find(|p| p.uuid() == label.pool)?;
        let left = away.known().is_some_and(|(config, generation)| {
            let older = probe.config.as_ref().is_ok_and(|c| c.generation < generation);
            let legs = config.arrays.iter().flat_map(|a| &a.legs).map(|l| l.drive);
            let mut all = legs.chain(config.extras.spares.iter().map(|s| s.drive));
            older && !all.any(|d| d == label.drive)
        });
        (!left).then(|| Listed { pool: away.name().into(), place: None, removable: false })
    }
}

impl Procedures {
    /// Refuses drives of pools that this head lists, whatever `--force` says. A spare of `pool` itself, and a leg of it that is
    /// out, may be taken: what it holds the others have.
    pub(crate) async fn check_listed(&self, probes: &[Probe], pool: Option<PoolId>) -> Result<(), Refusal> {
        let mut pulled = vec![];
        for probe in probes {
            // One that was pulled and put elsewhere is let go of a while later only.
            let twin = self.context().twin(probe).filter(|twin| *twin != probe.id);
            if let Some(open) = twin
                && self.cx.inspect(open).await.is_err()
            {
                pulled.push(open);
            }
        }
        let context = self.context();
        let own = pool.and_then(|id| context.pool(id));
        for probe in probes {
            let mine = |l: &&Label| {
                let legs =
                    own.into_iter().flat_map(|p| p.arrays.iter().enumerate().map(move |(a, x)| (p, a, x)));
                let mut out = legs.flat_map(|(p, a, x)| {
                    let of = x.legs.iter().enumerate();
                    of.filter(move |(i, _)| p.is_out(a, *i)).map(|(_, leg)| leg.uuid)
                });
                own.is_some_and(|p| p.config().uuid == l.pool)
                    && (is_spare(l) || out.any(|uuid| uuid == l.drive))
            };
            if probe.label.as_ref().ok().as_ref().is_some_and(mine) {
                continue;
            }
            if let Some(listed) = context.listing(probe, &pulled) {
                return Err(listed.refusal(&probe.info.path));
            }
        }
        Ok(())
    }
}
