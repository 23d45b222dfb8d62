//! Drives that an order or their errors took out of their mirrors. A drive that failed stays so, over starts, updates and takeovers,
//! until somebody returns it: the configuration says it (docs/formats/config.md), with the reason and the errors by then.
//!
//! ```text
//! fail, or an error of a drive that answers ▶ out on record ▶ `FailedPut`
//!   ├─ return                  `FailedRemoved` ▶ rebuilding on record
//!   └─ another drive takes its place   `FailedPut` with `removed`: listed, until it is used with --force or `drive rm` names it
//! ```
//!
//! The record comes first: no write is answered before it. A head that falls between the two finds a leg that is out, and takes it back.

use crate::layout::PoolId;
use crate::order::{Answered, Drive, DriveRole, Refusal, Reply, State};
use crate::steward::context::array::Outlook;
use crate::steward::context::head::HeadContext;
use crate::steward::context::pool::PoolContext;
use crate::steward::patience::RETURN_PATIENCE;
use crate::steward::procedures::Procedures;
use crate::steward::state::Edit;
use crate::steward::state::extras::FailedRow;
use array::format::{Label, RecordArray};
use base::{DriveInfo, Uuid};
use finding::{Cause, LegCause, LegEvent};

/// What is to be expected of a drive that failed for this reason.
pub(crate) fn outlook_of(why: &Cause) -> Outlook {
    match why {
        Cause::Leg(LegCause::LegOutByHand) => Outlook::ByHand,
        _ => Outlook::Broken,
    }
}

/// Nobody is called failed who is a leg in use of this array.
pub(crate) fn forget_used(rows: &mut Vec<FailedRow>, array: &RecordArray) {
    rows.retain(|row| row.removed || !array.legs.iter().any(|l| l.drive == row.drive && !l.state.is_out()));
}

impl PoolContext {
    /// Legs that are out for good and that the configuration does not list as failed yet.
    pub(crate) fn failed_unlisted(&self) -> Vec<(usize, usize)> {
        let mut found = vec![];
        for (a, array) in self.arrays.iter().enumerate().filter(|(a, _)| self.config().arrays[*a].mirror) {
            let legs = array.legs.iter().enumerate().filter(|(l, leg)| {
                let fails = matches!(leg.outlook, Outlook::Broken | Outlook::ByHand);
                fails && self.is_out(a, *l) && self.config().extras.failed(leg.uuid).is_none()
            });
            found.extend(legs.map(|(l, _)| (a, l)));
        }
        found
    }

    /// A spare that took a failed drive's place, as long as it is there and no spare was added since.
    pub(crate) fn stands_in(&self) -> Option<(&FailedRow, &str)> {
        let legs = || self.arrays.iter().flat_map(|a| &a.legs);
        self.config().extras.failed.iter().rev().find_map(|row| {
            let leg = legs().find(|l| !row.spare.is_nil() && l.uuid == row.spare)?;
            Some((row, leg.path.as_str()))
        })
    }

    /// Spares that could take the place of a drive now.
    pub(crate) fn spares_ready(&self) -> u64 {
        self.spares.iter().filter(|s| s.ready().is_some()).count() as u64
    }

    /// Edits by which the drive with this label, serial number and path is failed no more.
    pub(crate) fn used_again(&self, was: Option<Uuid>, info: &DriveInfo) -> Vec<Edit> {
        let is_it =
            |row: &&FailedRow| Some(row.drive) == was || row.removed && row.is_like(&info.serial, &info.path);
        let rows = self.config().extras.failed.iter().filter(is_it);
        rows.map(|row| Edit::FailedRemoved { drive: row.drive }).collect()
    }

    /// The edit by which nobody is told of spares that stand in any more.
    pub(crate) fn spares_seen(&self) -> Vec<Edit> {
        let rows = self.config().extras.failed.iter().filter(|row| !row.spare.is_nil());
        rows.map(|row| Edit::FailedPut { row: FailedRow { spare: Uuid::default(), ..row.clone() } }).collect()
    }
}

impl HeadContext {
    /// A leg, as the configuration lists it once it has failed.
    pub(crate) fn failed_row(&self, p: &PoolContext, array: usize, leg: usize, since: u64) -> FailedRow {
        let leg = &p.arrays[array].legs[leg];
        if let Some(row) = p.config().extras.failed(leg.uuid) {
            return row.clone();
        }
        let why = leg.reason.clone().unwrap_or_else(|| LegCause::DriveNotFound.into());
        let ids = self.lives.get(&leg.uuid).into_iter().flatten();
        let counted: u64 = ids.map(|id| self.errors_of(*id).0).sum();
        // The shards have not counted the one yet that it has just failed by.
        let failed_by = matches!(&why, Cause::Leg(cause) if cause.fault().is_some());
        FailedRow {
            drive: leg.uuid,
            path: leg.path.clone(),
            serial: leg.open.as_ref().map_or(String::new(), |o| o.info.serial.clone()),
            why: finding::to_text(&why),
            errors: counted.max(u64::from(failed_by)),
            since,
            removed: false,
            spare: Uuid::default(),
        }
    }

    /// That a drive has failed in a pool that is here, if it has.
    pub(crate) fn failed_here(&self, label: Option<&Label>, info: &DriveInfo) -> Option<LegCause> {
        self.pools.iter().find_map(|p| {
            let is_it = |row: &&FailedRow| match label {
                Some(label) if label.pool == p.config().uuid => row.drive == label.drive,
                Some(_) | None => row.removed && row.is_like(&info.serial, &info.path),
            };
            let row = p.config().extras.failed.iter().find(is_it)?;
            Some(LegCause::DriveHasFailed {
                drive: info.path.clone(),
                pool: p.config().name.clone(),
                why: Box::new(row.cause()),
                errors: row.errors,
            })
        })
    }

    /// Drives that have failed and are no legs any more, as `status` shows them.
    pub(crate) fn removed_failed(&self) -> Vec<Drive> {
        let shown = |p: &PoolContext, row: &FailedRow| Drive {
            path: row.path.clone(),
            uuid: Some(row.drive),
            serial: row.serial.clone(),
            pool: Some(p.config().name.clone()),
            role: DriveRole::RemovedFailed,
            state: Some(State::Failed),
            cause: Some(row.cause()),
            errors: row.errors,
            ..Drive::default()
        };
        let rows = self.pools.iter().flat_map(|p| p.config().extras.failed.iter().map(move |row| (p, row)));
        rows.filter(|(_, row)| row.removed).map(|(p, row)| shown(p, row)).collect()
    }

    /// A drive that has failed and is no leg any more, by its path or UUID.
    fn removed_failed_named(&self, drive: &str) -> Option<(PoolId, FailedRow)> {
        let uuid: Option<Uuid> = drive.parse().ok();
        let is_it = |row: &&FailedRow| row.removed && (row.path == drive || uuid == Some(row.drive));
        self.pools.iter().find_map(|p| Some((p.id, p.config().extras.failed.iter().find(is_it)?.clone())))
    }
}

impl Procedures {
    /// Order of the Steward's own, and the end of `fail`: legs that are out for good are listed in the configuration.
    pub(crate) async fn legs_failed(&self, pool: PoolId) -> Answered {
        let edits: Vec<Edit> = {
            let context = self.context();
            let since = context.unix(self.cx.now());
            let Some(p) = context.pool(pool).filter(|p| !p.leaving) else { return Ok(Reply::Done) };
            let rows = p.failed_unlisted().into_iter().map(|(a, l)| context.failed_row(p, a, l, since));
            rows.map(|row| Edit::FailedPut { row }).collect()
        };
        if !edits.is_empty() {
            self.configure(pool, edits).await?;
        }
        Ok(Reply::Done)
    }

    /// A leg that had failed is about to be used again.
    pub(crate) async fn unfail(&self, pool: PoolId, drive: Uuid) -> Result<(), Refusal> {
        let failed = self.context().pool(pool).is_some_and(|p| p.config().extras.failed(drive).is_some());
        if failed { self.configure(pool, vec![Edit::FailedRemoved { drive }]).await } else { Ok(()) }
    }

    /// Part of the order to remove a drive: one that has failed and was removed is not listed any more. None: there is no such drive.
    pub(crate) async fn forget_failed(&self, drive: &str) -> Option<Answered> {
        let (pool, row) = self.context().removed_failed_named(drive)?;
        let removed = Edit::FailedRemoved { drive: row.drive };
        if let Err(r) = self.configure(pool, vec![removed]).await {
            return Some(Err(r));
        }
        let name = self.context().pool(pool).map_or(String::new(), |p| p.config().name.clone());
        if let Ok(Some((id, label, _))) = self.find_label(row.drive, &row.path).await {
            // One that does not take it keeps its label: it is of a pool that does not list it.
            let _ = self.unlabel_drive(id, &label).await;
            self.let_go_wholly(id, RETURN_PATIENCE).await;
        }
        let now = self.cx.now();
        let event = LegEvent::FailedForgotten { pool: name };
        self.context_mut().happened(now, format!("drive {}", row.path), event);
        Some(Ok(Reply::Done))
    }
}
