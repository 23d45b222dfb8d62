//! A drive that a pool lacks comes back: a leg that is out, the last leg in sync of a mirror, or a spare. How it is found and let go of
//! again is the same for all; who may return, and what it returns to, is not.
//!
//! ```text
//! nothing of ours is left of what was opened ▶ found: where it was, where it lies today, or at all drives that nobody holds
//!   ├─ a leg that is out     its own record says what it lacks ▶ open in the context ▶ joins, and is copied to
//!   ├─ a last leg            nobody went on from it (`reopen`) ▶ takes the place of what was opened
//!   └─ a spare               its label says so ▶ open in the context
//! it may not, or not yet ▶ let go of, and why is told
//! ```

use crate::layout::PoolId;
use crate::order::{Answered, Refusal, Reply};
use crate::steward::context::array::PendingChange;
use crate::steward::context::found::Found;
use crate::steward::context::pool::PoolContext;
use crate::steward::context::probe::Probe;
use crate::steward::context::spare::is_spare;
use crate::steward::health::watch::lacks_room_below;
use crate::steward::patience::RETURN_PATIENCE;
use crate::steward::procedures::Procedures;
use crate::steward::state::extras::FailedRow;
use array::format::{Return, judge_return};
use base::machine::Shape;
use base::{Bug, Uuid, planted};
use finding::{Cause, Instead, LegCause, LegEvent, LegRefusal};

/// A drive that a pool lacks.
pub(crate) enum Lacking {
    /// A leg that is out. By its UUID it is meant wherever it was seen last; else it lies where it is named.
    Leg { array: usize, leg: usize, named: String },
    /// The last leg in sync of a mirror, which was gone. It is looked for where it was, or everywhere.
    LastLeg { array: usize, leg: usize, everywhere: bool },
    /// A spare that was not found.
    Spare(Uuid),
}

impl Lacking {
    /// The drive's own name, and where it was; None if it is here, or is not the pool's any more.
    fn drive(&self, p: &PoolContext) -> Option<(Uuid, String)> {
        match self {
            Self::Leg { array, leg, .. } | Self::LastLeg { array, leg, .. } => {
                let leg = p.arrays.get(*array)?.legs.get(*leg)?;
                Some((leg.uuid, leg.path.clone()))
            }
            Self::Spare(uuid) => {
                let spare = p.spares.iter().find(|s| s.uuid == *uuid && s.open.is_none())?;
                Some((spare.uuid, spare.path.clone()))
            }
        }
    }
}

/// Why a drive may not return.
#[derive(PartialEq, Eq, Debug)]
enum Unfit {
    /// Somebody used it without the others.
    Apart,
    Other(LegCause),
    /// It is fit, but its pool could not be changed for it.
    Refused(Refusal),
}

impl From<LegCause> for Unfit {
    fn from(why: LegCause) -> Self {
        Self::Other(why)
    }
}

impl Procedures {
    /// Looks for a drive that the pool lacks, and takes it back.
    ///
    /// # Errors
    /// It is not found, or may not return, and why: then it is as it was.
    pub(crate) async fn come_back(&self, pool: PoolId, who: Lacking) -> Answered {
        let drive = self.context().pool(pool).and_then(|p| who.drive(p));
        let Some((uuid, path)) = drive else { return Ok(Reply::Done) };
        let shape = match &who {
            Lacking::Leg { array, leg, .. } => self.let_go_of_dead(pool, *array, *leg, &path).await?,
            Lacking::LastLeg { .. } | Lacking::Spare(_) => None,
        };
        let places = self.places_of(&who, uuid, &path).await;
        let found = match &who {
            Lacking::Leg { .. } => self.patient().find(uuid, &path, places).await,
            Lacking::LastLeg { .. } | Lacking::Spare(_) => self.find(uuid, &path, places).await,
        };
        // What was shaped for a test stays so until somebody says otherwise, whether it can be opened now or later.
        if let Some(shape) = shape {
            match &found {
                Ok(probe) => self.shape(probe.id, shape),
                Err(_) => self.shape_later(&path, shape),
            }
        }
        match who {
            Lacking::Leg { array, leg, .. } => {
                let probe = found.map_err(|why| not_back(&path, why))?;
                let probe = self.relabel(pool, array, leg, probe).await?;
                self.rejoin(pool, (array, leg), (uuid, &path), &probe).await
            }
            Lacking::LastLeg { array, leg, .. } => {
                let probe = found.map_err(|why| not_back(&path, why))?;
                if probe.good_label().is_some_and(|l| l.drive == uuid)
                    && self.swap_last(pool, array, leg, &probe).await.is_some()
                {
                    return Ok(Reply::Done);
                }
                self.let_go_wholly(probe.id, RETURN_PATIENCE).await;
                Err(LegRefusal::LegNotYetBack { leg: path }.into())
            }
            Lacking::Spare(uuid) => self.take_spare(pool, uuid, &path, found),
        }
    }

    /// What is open of a leg that is out is let go of: nothing of ours may be left on it (promise 5). Returns its shape.
    async fn let_go_of_dead(
        &self,
        pool: PoolId,
        array: usize,
        leg: usize,
        path: &str,
    ) -> Result<Option<Shape>, Refusal> {
        let open = self.context().pool(pool).and_then(|p| p.arrays[array].legs[leg].open.clone());
        self.catch_up(pool).await?;
        let shape = open.as_ref().and_then(|o| self.context().shapes.get(&o.id).cloned());
        if let Some(s) = shape.as_ref().filter(|s| s.gone || s.hang) {
            return Err(LegRefusal::DriveShapedAway { drive: path.into(), hangs: !s.gone }.into());
        }
        if let Some(o) = open {
            if let Some(p) = self.context_mut().pool_mut(pool) {
                p.arrays[array].legs[leg].let_go();
            }
            // No shard has it in its layout any more before it is closed.
            self.publish().await;
            if !self.let_go_wholly(o.id, RETURN_PATIENCE).await {
                return Err(LegRefusal::DriveStillBusy { drive: path.into(), replaces: false }.into());
            }
        }
        let uuid = self.context().pool(pool).map(|p| p.arrays[array].legs[leg].uuid).unwrap_or_default();
        if !self.other_lets_go(uuid).await {
            return Err(LegRefusal::DriveBusyOnOther { drive: path.into() }.into());
        }
        Ok(shape)
    }
    /// Where a drive is looked for, in this order.
    async fn places_of(&self, who: &Lacking, uuid: Uuid, path: &str) -> Vec<String> {
        match who {
            Lacking::Leg { named, .. } => {
                let moved = match self.context().found_for(uuid, path) {
                    Some(Found::Moved { path, .. }) => Some(path),
                    Some(_) | None => None,
                };
                match (named.parse::<Uuid>(), moved) {
                    (Ok(_), Some(at)) if self.lies_at(uuid, &at).await => vec![at],
                    (Ok(_), _) => vec![path.to_string()],
                    (Err(_), _) => vec![named.clone()],
                }
            }
            Lacking::LastLeg { everywhere: true, .. } => {
                let others = self.candidates().await.into_iter().filter(|spec| spec != path);
                core::iter::once(path.to_string()).chain(others).collect()
            }
            Lacking::LastLeg { .. } | Lacking::Spare(_) => vec![path.to_string()],
        }
    }
    /// Opens the drive of this name, at one of these places. Of one place alone whatever lies there is told: who asked says why it
    /// is not the one.
    async fn find(&self, uuid: Uuid, path: &str, places: Vec<String>) -> Result<Probe, LegCause> {
        let alone = places.len() == 1;
        for spec in places {
            // Its own path counts as held, by what was opened there; a drive that is still the same one refuses.
            if !alone && spec != path && self.context().holds(&spec).is_some() {
                continue;
            }
            match self.probe(&spec).await {
                Ok(probe) if alone || probe.good_label().is_some_and(|l| l.drive == uuid) => {
                    return self.fence_probe(probe).await.map_err(LegCause::from);
                }
                Ok(probe) => drop(self.let_go_wholly(probe.id, RETURN_PATIENCE).await),
                Err(e) if alone => return Err(e.into()),
                Err(_) => {}
            }
        }
        Err(LegCause::DriveAbsent { path: path.into() })
    }

    /// A leg that is out may join, or stays out.
    async fn rejoin(
        &self,
        pool: PoolId,
        (array, leg): (usize, usize),
        (uuid, path): (Uuid, &str),
        probe: &Probe,
    ) -> Answered {
        let pool_name = self.context().pool(pool).map_or(String::new(), |p| p.config().name.clone());
        if let Err(r) = self.check_room_below(probe).await {
            self.stays_out(pool, array, leg, probe).await;
            return Err(r);
        }
        let admitted = self.readmit(pool, array, (uuid, path), probe).await;
        let marked = if admitted == Ok(true) { self.mark_all(pool, array).await } else { Ok(()) };
        if let Err(r) = marked {
            self.stays_out(pool, array, leg, probe).await;
            return Err(r);
        }
        match admitted {
            Ok(full) => {
                {
                    let mut context = self.context_mut();
                    if let Some(p) = context.pool_mut(pool) {
                        let l = &mut p.arrays[array].legs[leg];
                        l.takes(probe.opened(), &probe.info.path);
                        p.pending.push_back(PendingChange::Joined { array, leg, full, new: false });
                    }
                    context.moved(pool, uuid, &probe.info.path);
                }
                self.joined(pool, array, leg).await;
                self.write_pools().await?;
                Ok(Reply::Done)
            }
            Err(unfit) => {
                self.stays_out(pool, array, leg, probe).await;
                let why = match unfit {
                    Unfit::Refused(refusal) => return Err(refusal),
                    Unfit::Apart => None,
                    Unfit::Other(why) => Some(why),
                };
                // The leg may have lain elsewhere.
                let here = &probe.info.path;
                let found = match why {
                    None => Found::Apart { drive: uuid, path: here.clone(), pool: pool_name.clone() },
                    Some(_) => Found::of(probe),
                };
                let cut_off = matches!(&found, Found::CutOff { drive, .. } if *drive == uuid);
                let apart = matches!(&found, Found::Apart { .. });
                let why = why.unwrap_or_else(|| found.cause(path));
                // A drive of another pool of this head has its place there, and is not to be overwritten.
                let listed = self.context().listing(probe, &[]).filter(|_| found.drive() != Some(uuid));
                let instead = match (cut_off || apart, listed) {
                    (true, _) => Instead::AsItSays,
                    (false, Some(listed)) => match listed.place {
                        Some(place) => Instead::PutBack { place, drive: here.clone() },
                        None => Instead::Import { pool: listed.pool, drive: here.clone() },
                    },
                    (false, None) => Instead::Overwrite { leg: path.into(), drive: here.clone() },
                };
                if let Some(p) = self.context_mut().pool_mut(pool)
                    && (cut_off || here.as_str() == path)
                {
                    let l = &mut p.arrays[array].legs[leg];
                    l.lies_at(here);
                    // The drive itself, whole, may not return for what happened to it elsewhere.
                    if cut_off || apart || found.drive() != Some(uuid) {
                        l.is_told(found.cause(path), Some(found))
                    } else {
                        l.is_told(why.clone(), None)
                    }
                }
                let (drive, why) = (here.clone(), Box::new(why.into()));
                Err(LegRefusal::LegMayNotReturn { drive, pool: pool_name, why, instead }.into())
            }
        }
    }
    /// Whether a drive lies at a path now.
    async fn lies_at(&self, drive: Uuid, path: &str) -> bool {
        match self.patient().probe(path).await {
            Ok(probe) => {
                self.context_mut().note_found(&probe);
                self.let_go_wholly(probe.id, RETURN_PATIENCE).await;
                probe.good_label().is_some_and(|l| l.drive == drive)
            }
            Err(_) => false,
        }
    }
    /// A return was refused. The leg's own drive, where it always was, stays open and out as it was before, with its shape:
    /// it is there, and nobody must attach it. It gets no records (`reachable`). Anything else is let go of.
    async fn stays_out(&self, pool: PoolId, array: usize, leg: usize, probe: &Probe) {
        let stays = match (self.context_mut().pool_mut(pool), probe.opened()) {
            (Some(p), Some(open)) => {
                let l = &mut p.arrays[array].legs[leg];
                let own = l.open.is_none() && open.label.drive == l.uuid && open.info.path == l.path;
                if own {
                    let path = open.info.path.clone();
                    l.takes(Some(open), &path);
                }
                own
            }
            (None, _) | (_, None) => false,
        };
        if stays {
            self.publish().await;
        } else {
            self.let_go_wholly(probe.id, RETURN_PATIENCE).await;
        }
    }
    /// Refuses a file to which nothing can be copied: it would be put out again at once, and so for ever.
    async fn check_room_below(&self, probe: &Probe) -> Result<(), Refusal> {
        match self.cx.inspect(probe.id).await {
            Ok(health) if lacks_room_below(&health) => {
                Err(LegRefusal::LegFileSystemFull { drive: probe.info.path.clone() }.into())
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
    /// Whether a drive may come back, and if so whether everything must be copied. Its configuration is brought up
    /// to date. The leg was last seen at `path`.
    async fn readmit(
        &self,
        pool: PoolId,
        array: usize,
        (uuid, path): (Uuid, &str),
        probe: &Probe,
    ) -> Result<bool, Unfit> {
        let label = match (&probe.label, probe.good_label()) {
            (_, Some(l)) => l,
            (Ok(_), None) => return Err(Found::of(probe).cause(path).into()),
            (Err(fault), None) => {
                let (leg, path) = (path.into(), probe.info.path.clone());
                return Err(LegCause::DriveLabelUnreadable { leg, path, fault: (*fault).into() }.into());
            }
        };
        if label.drive != uuid {
            return Err(LegCause::DriveLabelOfOther { pool: label.pool_name.clone() }.into());
        }
        if let Some(holds) = probe.foreign {
            let (leg, path) = (path.into(), probe.info.path.clone());
            return Err(LegCause::DriveOverwritten { leg, path, holds }.into());
        }
        // What a newer program wrote there may be newer than all that is here.
        if let Some(newer) = probe.newer() {
            let (leg, path) = (path.into(), probe.info.path.clone());
            return Err(LegCause::DriveNewer { leg, path, newer }.into());
        }
        let verdict = {
            let context = self.context();
            let p = context.pool(pool).ok_or(LegCause::PoolGone)?;
            if label.array != array as u32 {
                return Err(LegCause::DriveLabelElsewhere.into());
            }
            judge_return(probe.record.as_ref().ok(), uuid, p.record())
        };
        let full = match verdict {
            Return::Partial => !probe.whole || self.was_overwritten(pool, array, uuid),
            Return::Full => !self.was_overwritten(pool, array, uuid) || !planted(Bug::WipedByBitmap),
            Return::Diverged => return Err(Unfit::Apart),
        };
        // The configuration that is written to it below does not call it failed any more.
        self.unfail(pool, uuid).await.map_err(Unfit::Refused)?;
        let slot = self.context().pool(pool).ok_or(LegCause::PoolGone)?.config_slot();
        let cleared = self.clear_newcomer(probe).await;
        cleared.map_err(|e| LegCause::DriveNotCleared { fault: e.into() })?;
        let bytes = slot.encode().expect("it lies on the other drives");
        let written = self.cx.write(probe.id, label.config_at[slot.slot()], &bytes).await;
        written.map_err(|e| LegCause::LegConfigNotTaken { fault: e.into() })?;
        if !probe.whole {
            // What was overwritten may be anything: all is copied, and the label's copies are made good.
            let bytes = label.encode();
            for at in [array::format::label_copy_at(label.drive_bytes), array::format::LABEL_AT] {
                let written = self.cx.write(probe.id, at, &bytes).await;
                written.map_err(|e| LegCause::DriveLabelNotWritten { fault: e.into() })?;
            }
        }
        Ok(full)
    }

    /// Whether the leg was put out because somebody had overwritten what its drive holds, in this life of the head or before.
    fn was_overwritten(&self, pool: PoolId, array: usize, uuid: Uuid) -> bool {
        let context = self.context();
        let Some(p) = context.pool(pool) else { return false };
        let noted = p.config().extras.failed(uuid).map(FailedRow::cause);
        let noted = matches!(noted, Some(Cause::Leg(why)) if why.puts_out());
        noted || p.arrays[array].legs.iter().any(|l| l.uuid == uuid && l.unlabelled.is_some())
    }

    /// A spare was found, or something else.
    fn take_spare(&self, pool: PoolId, uuid: Uuid, path: &str, found: Result<Probe, LegCause>) -> Answered {
        let ours =
            |p: &Probe| p.newer().is_none() && p.good_label().is_some_and(|l| l.drive == uuid && is_spare(l));
        let (open, found, answer) = match &found {
            Ok(p) if ours(p) => (p.opened(), None, Ok(Reply::Done)),
            Ok(p) => {
                self.let_go(p.id);
                let found = Found::of(p);
                let (spare, why) = (path.into(), Box::new(found.cause(path).into()));
                (None, Some(found), Err(LegRefusal::SpareNotThere { spare, why }.into()))
            }
            Err(e) => {
                let found = self.context().found_for(uuid, path);
                let (spare, why) = (path.into(), Box::new(e.clone().into()));
                (None, found, Err(LegRefusal::SpareNotBack { spare, why }.into()))
            }
        };
        let opened = open.as_ref().map(|o| o.id);
        let taken = {
            let mut context = self.context_mut();
            // Meanwhile an order may have taken it out, or the keeper have found it.
            let p = context.pool_mut(pool);
            let name = p.as_ref().map_or(String::new(), |p| p.config().name.clone());
            let mut spares = p.into_iter().flat_map(|p| &mut p.spares);
            let spare = spares.find(|s| s.uuid == uuid && s.open.is_none());
            spare.map(|s| {
                s.comes(open, found);
                name
            })
        };
        match (opened, taken) {
            (Some(id), None) => self.let_go(id),
            (Some(_), Some(name)) => {
                let now = self.cx.now();
                let event = LegEvent::SpareReturned { spare: path.into() };
                self.context_mut().happened(now, format!("pool {name}"), event);
            }
            (None, _) => {}
        }
        answer
    }
}

fn not_back(leg: &str, why: LegCause) -> LegRefusal {
    LegRefusal::LegNotBack { leg: leg.into(), why: Box::new(why.into()) }
}
