//! Drives are looked for: those of a pool, and why others are none of it.

use crate::steward::context::found::Found;
use crate::steward::context::probe::Probe;
use crate::steward::health::shaped::bare;
use crate::steward::join::{self, Boxed};
use crate::steward::procedures::Procedures;
use array::format::Fault;
use base::Uuid;
use base::drive_kind::path_in;
use finding::{ImportFault, UnopenedDrive};

/// A drive that was looked for, and is no drive of the pool as it lies there.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub path: String,
    /// Somebody has it, who may let go of it.
    pub held: bool,
    /// Nothing is there.
    pub missing: bool,
    pub why: ImportFault,
}

impl Unfit {
    fn unopened(spec: &str, unopened: UnopenedDrive) -> Self {
        let (held, missing) = (unopened.is_held(), unopened.is_missing());
        let UnopenedDrive { drive, fault } = unopened;
        Self { path: file_of(spec), held, missing, why: ImportFault::NotOpened { drive, fault } }
    }
    /// It can be opened, and is none of this pool, or cannot be used.
    fn other(probe: &Probe, pool: Uuid) -> Self {
        let (path, drive) = (probe.info.path.clone(), probe.info.path.clone());
        let why = match &probe.label {
            Ok(l) if l.pool == pool => {
                ImportFault::NotItself { drive, why: Box::new(Found::of(probe).cause(&path).into()) }
            }
            Ok(l) => ImportFault::OfOtherPool { drive, pool: l.pool_name.clone() },
            Err(Fault::Absent) => ImportFault::LabelAbsent { drive },
            Err(Fault::Newer(part)) => ImportFault::LabelNewer { drive, part: (*part).into() },
            Err(Fault::Damaged) => ImportFault::LabelDamaged { drive },
        };
        Self { path, held: false, missing: false, why }
    }
    /// It is the one that was asked for so.
    pub fn is(&self, spec: &str) -> bool {
        self.path == file_of(spec)
    }
}

/// Where the drive of a specification lies.
pub(super) fn file_of(spec: &str) -> String {
    path_in(bare(spec)).to_string()
}

impl Procedures {
    /// Opens drives; keeps those of one pool, or all labelled ones. Also which ones are not, and why.
    pub(crate) async fn gather(&self, specs: &[String], pool: Option<Uuid>) -> (Vec<Probe>, Vec<Unfit>) {
        self.gather_as(specs, pool, false).await
    }
    /// The same of drives on which a pool is said to lie: one without a label is told, too.
    pub(super) async fn gather_named(&self, specs: &[String]) -> (Vec<Probe>, Vec<Unfit>) {
        self.gather_as(specs, None, true).await
    }
    async fn gather_as(&self, specs: &[String], pool: Option<Uuid>, named: bool) -> (Vec<Probe>, Vec<Unfit>) {
        // Of two that name one drive the first counts: who names it with a shape means that.
        let mut unique: Vec<&String> = vec![];
        for spec in specs {
            if !unique.iter().any(|u| bare(u) == bare(spec)) && self.context().holds(spec).is_none() {
                unique.push(spec);
            }
        }
        let probes: Vec<Boxed<'_, _>> =
            unique.iter().map(|s| -> Boxed<'_, _> { Box::pin(self.probe(s)) }).collect();
        let (mut good, mut failures) = (vec![], vec![]);
        for (probe, spec) in join::all(probes).await.into_iter().zip(unique) {
            match probe {
                Ok(p) => {
                    self.context_mut().note_found(&p);
                    let ours = p.good_label().is_some_and(|l| pool.is_none_or(|uuid| l.pool == uuid));
                    if ours {
                        good.push(p);
                    } else {
                        // Of what pool a drive with a newer label is nobody can say: it may be any.
                        let newer = matches!(p.label, Err(Fault::Newer(_)));
                        let tells = newer || named && p.label.is_err();
                        let pool = pool.or(tells.then(Uuid::default));
                        failures.extend(pool.map(|pool| Unfit::other(&p, pool)));
                        self.let_go(p.id);
                    }
                }
                Err(e) => failures.push(Unfit::unopened(spec, e)),
            }
        }
        (good, failures)
    }

    /// Adds the drives that are not among them yet by another name: a loop device of a file, or another path to a drive, is
    /// no other drive, and nobody named it. It is let go of.
    pub(crate) fn add_others(&self, probes: &mut Vec<Probe>, more: Vec<Probe>) {
        for p in more {
            if probes.iter().any(|q| q.info.overlaps(&p.info)) { self.let_go(p.id) } else { probes.push(p) }
        }
    }
}

/// Drives that somebody holds: the first few.
pub(crate) fn held_faults(held: Vec<Unfit>) -> Vec<ImportFault> {
    const SHOWN: usize = 4;
    let more = held.len().saturating_sub(SHOWN);
    let mut out: Vec<ImportFault> = held.into_iter().take(SHOWN).map(|f| f.why).collect();
    if more > 0 {
        out.push(ImportFault::MoreInUse { count: more as u64 });
    }
    out
}

/// Drives that somebody holds and that nobody named: a list of pools that could be imported tells which ones.
pub(super) fn others_held(drives: usize) -> Option<ImportFault> {
    (drives > 0).then_some(ImportFault::OthersInUse { count: drives as u64 })
}

/// Why drives that are there could not be opened. Which ones are not there is told with the pool.
pub(crate) fn faults(failures: Vec<Unfit>) -> Vec<ImportFault> {
    failures.into_iter().filter(|f| !f.missing).map(|f| f.why).collect()
}
