//! Drives are looked at now and then, whether hosts use them or not.
//!
//! A mirror's leg that is gone, silent or cut off is put out before a host has to find out. A drive that
//! holds what nothing else holds is never put out: what ails it is told, with the command that helps, until
//! it is well again. What hosts' operations met is known from the shards' figures. As long as another leg
//! stands in, hosts notice nothing of it and nothing is lost: that is an event, and no bad state. Whether the
//! drive has its label is looked at, too (`labels`).

use crate::layout::PoolId;
use crate::order::{Order, State};
use crate::steward::context::array::{OnRecord, Outlook, PendingChange};
use crate::steward::context::found::Found;
use crate::steward::context::head::{HeadContext, Ill};
use crate::steward::context::open::OpenDrive;
use crate::steward::health::labels::{LabelState, LegAt};
use crate::steward::join::{self, Boxed};
use crate::steward::procedures::Procedures;
use array::format::LegState;
use base::DriveKind;
use base::{DriveError, DriveHealth, DriveId, Duration, FileName, Instant};
use finding::{Cause, DriveFault, DriveHelp, LegCause, LegEvent};
use std::collections::BTreeMap;

/// How often drives are looked at.
pub(crate) const WATCH_INTERVAL: Duration = Duration::from_secs(5);
/// Looks in a row that a drive may leave unanswered.
pub(crate) const SILENT_MAX: u32 = 3;
/// Errors are told for so long after the last one.
const ERRORS_REMEMBERED: Duration = Duration::from_secs(60);
/// A file system with so much left is not full.
const SPACE_ENOUGH: u64 = 1 << 20;

/// How long an order waits for the look that it asked for.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);

/// A leg whose drive is open.
#[derive(Clone)]
struct Watched {
    pool: PoolId,
    array: usize,
    leg: usize,
    open: OpenDrive,
    /// What was on record before the look.
    on_record: OnRecord,
}

/// What a look found of the other legs of a mirror that are in sync.
struct Beside {
    /// One of them is sound, and stands in.
    sound: bool,
    /// Those whose labels are not known to be there.
    in_doubt: Vec<String>,
}

/// What is remembered of a drive from look to look.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Operations that failed or were late, so far.
    errors: u64,
    /// When there were more than before, with nothing to stand in.
    errors_at: Option<Instant>,
    last_error: Option<DriveError>,
    /// When there were more than before, and another leg stood in.
    helped_at: Option<Instant>,
    /// Looks in a row without an answer.
    silent: u32,
    /// When a copy of its label was found overwritten.
    label_at: Option<Instant>,
}

/// What a look at a drive found.
pub(crate) enum Look {
    Well(DriveHealth, LabelState),
    Cut(u64),
    Failed(DriveError),
}

impl Look {
    /// The drive is there, and holds what it should as far as its label tells.
    fn is_sound(&self) -> bool {
        matches!(self, Look::Well(_, LabelState::Intact | LabelState::Damaged(_)))
    }
}

impl Procedures {
    /// Looks at every drive of every pool, for ever.
    pub(crate) async fn watch_drives(&self) {
        let mut seen: BTreeMap<DriveId, Seen> = BTreeMap::new();
        let mut unwell: BTreeMap<DriveId, u32> = BTreeMap::new();
        loop {
            let procedures = self.clone();
            self.cx.until_within(WATCH_INTERVAL, move || procedures.context().looks.is_wanted()).await;
            let look = self.context_mut().looks.begin();
            if !self.context().pools.is_empty() {
                join::both(self.look_at_drives(&mut seen), self.look_at_spares(&mut unwell)).await;
            }
            self.context_mut().looks.ended = look;
            self.cx.changed();
        }
    }
    async fn look_at_drives(&self, seen: &mut BTreeMap<DriveId, Seen>) {
        self.ask_reports().await;
        self.note_speeds();
        self.context_mut().forget_slow(self.cx.now());
        let legs = watched(&self.context());
        seen.retain(|id, _| legs.iter().any(|w| w.open.id == *id));
        let looks: Vec<Boxed<'_, Look>> =
            legs.iter().map(|w| -> Boxed<'_, _> { Box::pin(self.look_from_outside(w)) }).collect();
        let looks = join::all(looks).await;
        let looked: Vec<(&Watched, &Look)> = legs.iter().zip(&looks).collect();
        for (w, look) in &looked {
            let beside = self.beside(w, &looked);
            self.conclude(w, look, &beside, seen.entry(w.open.id).or_default());
        }
    }
    fn beside(&self, w: &Watched, looked: &[(&Watched, &Look)]) -> Beside {
        let context = self.context();
        let state = |o: &Watched| context.pool(o.pool).map_or(LegState::Out, |p| p.leg_state(o.array, o.leg));
        let is_beside = |o: &Watched| (o.pool, o.array) == (w.pool, w.array) && o.leg != w.leg;
        let (mut sound, mut in_doubt) = (false, vec![]);
        for (o, look) in looked.iter().filter(|(o, _)| is_beside(o) && state(o) == LegState::InSync) {
            sound |= look.is_sound();
            if matches!(look, Look::Well(_, label) if label.is_in_doubt()) {
                in_doubt.push(o.open.info.path.clone());
            }
        }
        Beside { sound, in_doubt }
    }
    /// Has the drives looked at soon: who is the last leg in sync, and so what ails it, has changed.
    pub(crate) fn look_soon(&self) {
        self.context_mut().looks.want();
        self.cx.changed();
    }
    /// Looks at the drives now, since an order changed what they do: whoever looks at `status` next sees it.
    /// A drive that does not answer is not waited for.
    pub(crate) async fn look_now(&self) {
        let look = self.context_mut().looks.want();
        self.cx.changed();
        let procedures = self.clone();
        self.cx.until_within(LOOK_PATIENCE, move || procedures.context().looks.ended >= look).await;
    }

    /// From outside first; then its label is read, which a drive that hangs does not answer.
    async fn look_from_outside(&self, w: &Watched) -> Look {
        let Watched { pool, array, leg, ref open, .. } = *w;
        match self.cx.inspect(open.id).await {
            Ok(health) if health.bytes < open.label.drive_bytes => Look::Cut(health.bytes),
            Ok(health) => match self.check_label(LegAt { pool, array, leg, open }).await {
                Ok(label) => Look::Well(health, label),
                Err(e) => Look::Failed(e),
            },
            Err(e) => Look::Failed(e),
        }
    }

    /// What becomes of a leg whose label is not what it was: why it is put out, if another leg stands in for it, or else what
    /// ails it.
    fn conclude_label(
        &self,
        w: &Watched,
        look: &Look,
        seen: &mut Seen,
        (last, others): (bool, &[String]),
    ) -> Option<LegCause> {
        let Look::Well(_, label) = look else { return None };
        let (now, path) = (self.cx.now(), &w.open.info.path);
        let mut context = self.context_mut();
        if let Some(p) = context.pool_mut(w.pool).filter(|_| *label == LabelState::Intact) {
            p.arrays[w.array].legs[w.leg].seen_whole(w.on_record);
        }
        // An order may be writing there.
        let ordering = context.ordering || !context.orders.is_empty();
        if let LabelState::Damaged(_) = label
            && !ordering
        {
            seen.label_at = Some(now);
            context.orders.push_back((None, Order::LabelsMend { pool: w.pool }));
            self.cx.changed();
        }
        let why = label.cause(path, last, others).filter(|_| last || !ordering);
        if let Some(p) = context.pool_mut(w.pool).filter(|_| why.is_some() && !last) {
            let leg = &mut p.arrays[w.array].legs[w.leg];
            leg.loses_label();
            if let LabelState::Foreign(owner) = label {
                leg.finds(Found::taken(&w.open, owner));
            }
        }
        let lately = seen.label_at.is_some_and(|at| now.since(at) < ERRORS_REMEMBERED);
        why.or_else(|| lately.then(|| LegCause::DriveLabelOverwritten { drive: path.clone() }))
    }

    fn conclude(&self, w: &Watched, look: &Look, beside: &Beside, seen: &mut Seen) {
        let now = self.cx.now();
        let context = self.context();
        // Another drive may stand there by now.
        let p = context.pool(w.pool).filter(|p| !p.leaving);
        let same = |p: &crate::steward::context::pool::PoolContext| {
            let open = p.arrays.get(w.array).and_then(|a| a.legs.get(w.leg)).and_then(|l| l.open.as_ref());
            open.is_some_and(|o| o.id == w.open.id) && !p.leg_state(w.array, w.leg).is_out()
        };
        let Some(p) = p.filter(|p| same(p)) else { return };
        let last = p.is_last(w.array, w.leg);
        let alone = last || !beside.sound;
        let ordering = context.ordering || !context.orders.is_empty();
        drop(context);
        if matches!(look, Look::Well(_, label) if label.is_unsettled(ordering, alone)) {
            // Until it is looked at again, what is known of it stays.
            return;
        }
        let label = self.conclude_label(w, look, seen, (alone, &beside.in_doubt));
        let mut context = self.context_mut();
        let (errors, last_error) = context.errors_of(w.open.id);
        let more = errors > seen.errors;
        seen.errors = errors;
        if more && last {
            (seen.errors_at, seen.last_error) = (Some(now), last_error);
        }
        let silent = matches!(look, Look::Failed(DriveError::TimedOut));
        seen.silent = if silent { seen.silent + 1 } else { 0 };
        let path = &w.open.info.path;
        let shaped = context.shapes.get(&w.open.id).is_some_and(|s| s.gone || s.hang);
        // What helps is told of the last leg here; of a leg that is out, `status` tells it.
        let help = |help| Some(help).filter(|_| last);
        let drive = path.clone();
        let away = if shaped { DriveHelp::ClearShape { drive } } else { DriveHelp::Attach { drive } };
        let out = match look {
            Look::Failed(DriveError::Gone) => {
                Some(LegCause::DriveFailed { fault: DriveFault::Gone, helps: help(away) })
            }
            Look::Failed(DriveError::TimedOut) if seen.silent >= SILENT_MAX => {
                Some(LegCause::DriveFailed { fault: DriveFault::TimedOut, helps: help(away) })
            }
            Look::Cut(bytes) => Some(LegCause::DriveCutOff {
                bytes: *bytes,
                had_bytes: w.open.label.drive_bytes,
                helps: help(DriveHelp::Restore { drive: path.clone() }),
            }),
            Look::Failed(_) | Look::Well(..) => None,
        };
        let lost = label.clone().filter(LegCause::puts_out);
        // What is there now is not what it was: the operator says when it comes back.
        let outlook = if lost.is_some() { Outlook::Broken } else { Outlook::MayReturn };
        if let Some(why) = out.or(lost) {
            if last {
                let cut = matches!(look, Look::Cut(_));
                let state = if cut { State::Degraded } else { State::Offline };
                context.set_ill(now, w.open.id, path, Some(Ill { state, cause: why.into() }));
                let gone = matches!(look, Look::Failed(DriveError::Gone)) && !shaped;
                if let Some(p) = context.pool_mut(w.pool) {
                    let leg = &mut p.arrays[w.array].legs[w.leg];
                    leg.is_gone(gone, now);
                    self.cx.changed();
                }
            } else if let Some(p) = context.pool_mut(w.pool) {
                self.cx.changed();
                let why = Cause::from(why);
                p.pending.push_back(PendingChange::Lost {
                    array: w.array,
                    leg: w.leg,
                    why,
                    outlook,
                    there: None,
                });
            }
            return;
        }
        if let Some(p) = context.pool_mut(w.pool) {
            let leg = &mut p.arrays[w.array].legs[w.leg];
            leg.is_there();
        }
        let ill = label.map(degraded).or_else(|| nameless(path, look, last)).or_else(|| match look {
            // Hosts wait for it, and nothing else has what it has: that is told at once.
            Look::Failed(DriveError::TimedOut) if last => Some(silent_at_first(path, shaped)),
            Look::Well(..) | Look::Cut(_) | Look::Failed(_) => {
                full_below(path, look, last).or_else(|| ill_of(now, &w.open, look, seen).filter(|_| last))
            }
        });
        context.set_ill(now, w.open.id, path, ill);
        if more && !last {
            let told = seen.helped_at.is_some_and(|at| now.since(at) < ERRORS_REMEMBERED);
            seen.helped_at = Some(now);
            if !told {
                let fault = w.open.fault(last_error.unwrap_or(DriveError::Medium));
                context.happened(now, format!("drive {path}"), LegEvent::DriveErrors { fault });
            }
        }
    }
}

/// What ails a drive that left a look unanswered. It may be busy, and is not given up.
fn silent_at_first(path: &str, shaped: bool) -> Ill {
    degraded(LegCause::DriveSilent { drive: path.into(), shaped })
}

pub(crate) fn degraded(cause: LegCause) -> Ill {
    Ill { state: State::Degraded, cause: cause.into() }
}

/// What ails a file that is open and well, and that the next start will not find.
fn nameless(path: &str, look: &Look, last: bool) -> Option<Ill> {
    let Look::Well(health, _) = look else { return None };
    let drive = path.to_string();
    Some(degraded(match (health.name, last) {
        (FileName::There, _) => return None,
        (FileName::Moved, _) => LegCause::DriveFileMoved { drive },
        (FileName::Removed, false) => LegCause::DriveFileRemoved { drive },
        (FileName::Removed, true) => LegCause::LastFileRemoved,
    }))
}

/// What ails a file that is not whole on the disk, where no more fits. Whether a write has failed already or not: a
/// head that was just started knows of none, and a mirror is better told before it loses a leg.
fn full_below(path: &str, look: &Look, last: bool) -> Option<Ill> {
    matches!(look, Look::Well(health, _) if lacks_room_below(health)).then(|| full(path, last))
}

/// A file that is not whole on the disk, on a file system that is full.
pub(crate) fn lacks_room_below(health: &DriveHealth) -> bool {
    health.sparse && health.free_bytes.is_some_and(|free| free < SPACE_ENOUGH)
}

fn full(path: &str, last: bool) -> Ill {
    degraded(LegCause::DriveFileSystemFull { drive: path.into(), last })
}

/// What ails a drive that answers, and that nothing stands in for.
fn ill_of(now: Instant, open: &OpenDrive, look: &Look, seen: &Seen) -> Option<Ill> {
    let path = &open.info.path;
    let free = match look {
        Look::Well(health, _) => health.free_bytes,
        Look::Cut(_) | Look::Failed(_) => None,
    };
    let since = now.since(seen.errors_at?);
    if seen.last_error == Some(DriveError::NoSpace) && open.info.kind == DriveKind::Block {
        // It is as large as it was: else the look had found it cut off.
        let full = LegCause::DriveThinPoolFull { drive: path.clone() };
        return (since < ERRORS_REMEMBERED).then(|| degraded(full));
    }
    if seen.last_error == Some(DriveError::NoSpace) {
        let still = free.is_none_or(|free| free < SPACE_ENOUGH) || since < WATCH_INTERVAL;
        return still.then(|| full(path, true));
    }
    let last = seen.last_error.unwrap_or(DriveError::Medium);
    // It is there and answers: what failed while it did not was told to hosts as "not ready", and is tried again.
    if matches!((look, last), (Look::Well(..), DriveError::Gone | DriveError::TimedOut)) {
        return None;
    }
    // The count is not part of it: it would be another event at each look.
    let failed = LegCause::DriveOperationsFailed { drive: path.clone(), fault: open.fault(last) };
    (since < ERRORS_REMEMBERED).then(|| degraded(failed))
}

fn watched(context: &HeadContext) -> Vec<Watched> {
    let mut out = vec![];
    for p in context.pools.iter().filter(|p| p.serving && !p.leaving) {
        out.extend(p.reachable().into_iter().map(|(array, leg, open)| Watched {
            pool: p.id,
            array,
            leg,
            open,
            on_record: OnRecord { record: (p.record().counter, p.record().settled), config: p.generation() },
        }));
    }
    out
}
