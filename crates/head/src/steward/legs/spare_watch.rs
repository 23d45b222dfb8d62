//! Spares are looked at as the drives that they may stand in for: one that is gone is found out before it is needed.
//!
//! A spare holds nothing, so nothing is lost with it. One whose drive is gone is let go of, and looked for again as one that was
//! not found at the start; one that is ill stays open, and is a spare again once it is well.

use crate::layout::PoolId;
use crate::order::Order;
use crate::steward::context::open::OpenDrive;
use crate::steward::health::labels::LabelState;
use crate::steward::health::watch::{Look, SILENT_MAX};
use crate::steward::join::{self, Boxed};
use crate::steward::procedures::Procedures;
use base::{DriveError, DriveId, FileName};
use finding::{DriveHelp, LegCause, LegEvent};
use std::collections::BTreeMap;

/// What a look says of a spare.
enum Verdict {
    Well,
    /// Nothing of it is left here.
    Gone(LegCause),
    Ill(LegCause),
    /// One more look tells.
    Unsure,
}

impl Procedures {
    /// Looks at every spare that is open. `unwell`: in how many looks in a row it was not well.
    pub(crate) async fn look_at_spares(&self, unwell: &mut BTreeMap<DriveId, u32>) {
        let spares: Vec<(PoolId, OpenDrive)> = {
            let context = self.context();
            let pools = context.pools.iter().filter(|p| p.serving && !p.leaving);
            pools.flat_map(|p| p.spares.iter().filter_map(|s| Some((p.id, s.open.clone()?)))).collect()
        };
        unwell.retain(|id, _| spares.iter().any(|(_, o)| o.id == *id));
        let looks: Vec<Boxed<'_, Option<Look>>> = spares
            .iter()
            .map(|(pool, o)| -> Boxed<'_, _> { Box::pin(self.look_at_spare(*pool, o)) })
            .collect();
        for ((pool, open), look) in spares.iter().zip(join::all(looks).await) {
            let Some(look) = look else { continue };
            let times = unwell.entry(open.id).or_default();
            *times = if matches!(look, Look::Failed(_)) { *times + 1 } else { 0 };
            self.conclude_spare(*pool, open, &look, *times);
        }
    }
    /// None: it was let go of meanwhile.
    async fn look_at_spare(&self, pool: PoolId, open: &OpenDrive) -> Option<Look> {
        let is_open = || {
            let context = self.context();
            let p = context.pool(pool).filter(|p| !p.leaving);
            p.is_some_and(|p| p.spares.iter().any(|s| s.open.as_ref().is_some_and(|o| o.id == open.id)))
        };
        match self.cx.inspect(open.id).await {
            Ok(health) if health.bytes < open.label.drive_bytes => Some(Look::Cut(health.bytes)),
            Err(e) => Some(Look::Failed(e)),
            Ok(_) if !is_open() => None,
            Ok(health) => match self.check_known_label(open).await {
                Ok(label) => Some(Look::Well(health, label)),
                Err(e) => Some(Look::Failed(e)),
            },
        }
    }

    fn conclude_spare(&self, pool: PoolId, open: &OpenDrive, look: &Look, times: u32) {
        let now = self.cx.now();
        let mut context = self.context_mut();
        // An order may be just about to use it, or have taken it away.
        if context.ordering || !context.orders.is_empty() {
            return;
        }
        if matches!(look, Look::Well(_, LabelState::Damaged(_))) {
            context.orders.push_back((None, Order::LabelsMend { pool }));
            self.cx.changed();
            return;
        }
        let shaped = context.shapes.get(&open.id).is_some_and(|s| s.gone || s.hang);
        let Some(p) = context.pool_mut(pool).filter(|p| !p.leaving) else { return };
        let name = p.config().name.clone();
        let Some(spare) = p.spares.iter_mut().find(|s| s.open.as_ref().is_some_and(|o| o.id == open.id))
        else {
            return;
        };
        let (path, was) = (spare.path.clone(), spare.ill.clone());
        let mut gone = false;
        let event = match verdict(&name, &path, open, look, times, shaped) {
            Verdict::Unsure => return,
            Verdict::Well => {
                spare.is_ill(None);
                was.is_some().then_some(LegEvent::SpareHealthy { spare: path })
            }
            Verdict::Ill(ill) => {
                spare.is_ill(Some(ill.clone()));
                (was.as_ref() != Some(&ill)).then(|| of_no_use(path, ill))
            }
            Verdict::Gone(why) => {
                spare.goes(now);
                gone = true;
                Some(of_no_use(path, why))
            }
        };
        if let Some(event) = event {
            context.happened(now, format!("pool {name}"), event);
        }
        drop(context);
        if gone {
            self.let_go(open.id);
        }
    }
}

fn of_no_use(spare: String, why: LegCause) -> LegEvent {
    LegEvent::SpareUnusable { spare, why: Box::new(why.into()) }
}

fn verdict(pool: &str, path: &str, open: &OpenDrive, look: &Look, times: u32, shaped: bool) -> Verdict {
    let spare = path.to_string();
    let failed = |e: DriveError, help| LegCause::DriveFailed { fault: e.into(), helps: Some(help) };
    match look {
        Look::Failed(e) if shaped => Verdict::Ill(failed(*e, DriveHelp::ClearShape { drive: spare })),
        Look::Failed(e @ DriveError::Gone) => Verdict::Gone(LegCause::failed((*e).into())),
        Look::Failed(_) if times < SILENT_MAX => Verdict::Unsure,
        Look::Failed(e) => Verdict::Ill(failed(*e, DriveHelp::AwaitSpare { spare })),
        Look::Cut(bytes) => {
            let (pool, bytes, had_bytes) = (pool.into(), *bytes, open.label.drive_bytes);
            Verdict::Ill(LegCause::SpareCutOff { spare, pool, bytes, had_bytes })
        }
        Look::Well(_, LabelState::Lost(_)) => {
            Verdict::Ill(LegCause::SpareLabelOverwritten { spare, pool: pool.into(), owner: None })
        }
        Look::Well(_, LabelState::Foreign(owner)) => {
            let owner = Some(owner.clone());
            Verdict::Ill(LegCause::SpareLabelOverwritten { spare, pool: pool.into(), owner })
        }
        Look::Well(health, _) => match health.name {
            FileName::There => Verdict::Well,
            FileName::Moved => Verdict::Ill(LegCause::SpareFileMoved { spare }),
            FileName::Removed => Verdict::Gone(LegCause::SpareFileRemoved),
        },
    }
}
