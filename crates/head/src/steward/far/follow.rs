//! The follower's part: it passes on what the leader says to its shards, and what they say to the leader.

use super::letters;
use crate::layout::{ArrayId, Layout};
use crate::mail::{ManagerMail, ShardMail, StewardMail};
use crate::report::ShardReport;
use crate::steward::context::system::far::{Given, Numbers};
use crate::steward::procedures::Procedures;
use crate::steward::system::Upper;
use base::view::View;
use base::{DriveId, Duration, Uuid};
use finding::SystemEvent;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long shards may take to end what they have asked each other for the head that led.
const LEAVE_PATIENCE: Duration = Duration::from_secs(10);

/// What the leader configures: a `Configure`, and what its numbers mean.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Configured {
    /// By which shards of both heads know each other.
    pub secret: [u8; 32],
    pub numbers: Numbers,
    pub letter: Vec<u8>,
}

/// The number that what confirms a letter repeats.
fn number_of(letter: &ShardMail) -> Option<u32> {
    match letter {
        ShardMail::MarkAll { number, .. }
        | ShardMail::Quiesce { number, .. }
        | ShardMail::Room { number, .. }
        | ShardMail::Halt { number, .. } => Some(*number),
        ShardMail::Scrub { order, .. } => order.map(|order| order.number),
        _ => None,
    }
}

/// The leader knows drives by its own numbers. What it does not know is nothing to it.
fn renamed(mut report: ShardReport, name: impl Fn(DriveId) -> Option<DriveId>) -> ShardReport {
    report.drives.retain_mut(|row| name(row.drive).map(|id| row.drive = id).is_some());
    report.timed_ops.retain_mut(|op| name(op.drive).map(|id| op.drive = id).is_some());
    report
}

impl Procedures {
    /// All files are here, and drives are open: shards of this head are ready to take part. Said once.
    pub(in crate::steward) fn offer_shards(&self) {
        if !self.follows() {
            return;
        }
        let shards = self.context().own_shards;
        self.in_system(|s| {
            if s.both_serve()
                && s.far().may_serve()
                && s.tell().send(Upper::Serves { shards }.encode()).is_ok()
            {
                s.far_mut().serves();
            }
        });
    }
    /// A letter of the leader's to a shard here, or to all.
    pub(in crate::steward) fn take_letter(&self, shard: Option<u16>, letter: &[u8]) {
        let own = self.context().own_shards;
        let to = shard.map_or(0..own, |s| s..s.saturating_add(1).min(own));
        for shard in to {
            let Ok(letter) = letters::to_shard(letter) else { return };
            if self.follows() {
                if let Some(number) = number_of(&letter) {
                    self.context_quietly().leader_asks(number);
                }
                self.cx.to_shard(shard, letter);
            }
        }
    }
    /// A configuration of the leader's. One that cannot be read is not confirmed.
    pub(in crate::steward) fn take_configuration(&self, configured: &Configured) {
        let Configured { secret, numbers, letter } = configured;
        let Ok((view, layout)) = letters::configuration(letter) else { return };
        if !self.follows() {
            return;
        }
        let own = self.context().own_shards;
        let told = self.in_system(|s| {
            let layout = numbers.translate(layout, own, |uuid| s.open_drive(uuid));
            let names = numbers.drives.iter().filter_map(|(name, uuid)| Some((s.open_drive(*uuid)?, *name)));
            let names: BTreeMap<DriveId, DriveId> = names.collect();
            let layout = Arc::new(layout);
            s.far_mut().is_given(Arc::new(view.clone()), layout.clone(), names);
            (view, layout)
        });
        if let Some((view, layout)) = told {
            self.context_mut().note_given(&numbers.drives);
            self.meet_far(numbers.shards, *secret);
            self.context_mut().sessions.other_serves();
            self.context_mut().has_seen(&view, &layout);
            self.configure_own(view, layout);
        }
    }
    pub(super) fn configure_own(&self, view: View, layout: Arc<Layout>) {
        // Before the other head opens what goes there: it asks here what of a host is still ending.
        let view = self.in_sessions(|s, fx| s.on_view(view, fx));
        for shard in 0..self.context().own_shards {
            self.cx.to_shard(shard, ShardMail::Configure { view: view.clone(), layout: layout.clone() });
        }
    }
    /// What a shard here says is the leader's to hear, if this head follows and the letter travels. Else it comes back.
    pub(in crate::steward) fn pass_on(&self, shard: u16, mail: StewardMail) -> Option<StewardMail> {
        if !self.follows() {
            return Some(mail);
        }
        let mail = match mail {
            StewardMail::Reported(report) => {
                let context = self.context();
                let given = context.system.as_ref().and_then(|s| s.far().given());
                let name = |drive| given.and_then(|g| g.name_of(drive));
                StewardMail::Reported(Box::new(renamed(*report, name)))
            }
            StewardMail::Listening { portal, result } => {
                self.context_mut().former_listens.insert((portal, shard), result);
                mail
            }
            other => other,
        };
        let Some(letter) = letters::encode(&mail) else { return Some(mail) };
        // What finds no room is not heard: this head is put out for that.
        let _ = self.in_system(|s| s.tell().send(Upper::FromShard { shard, letter }.encode()));
        None
    }
    /// Shards of the other head, of which there are so many, are to be met, or were. If that head is known to be out, nobody is told
    /// anything: shards here part from it once that is carried out, under a number that `Sessions` waits for.
    pub(in crate::steward) fn meet_far(&self, shards: u16, secret: [u8; 32]) {
        let meeting = self.context().meeting;
        let setup = self.in_system(|s| s.far_setup(meeting, shards, secret)).flatten();
        let Some(setup) = setup.map(Arc::new) else { return };
        for shard in 0..self.context().own_shards {
            self.cx.to_shard(shard, ShardMail::Far(setup.clone()));
        }
    }
    /// The leader wants a drive of which its layout has nothing any more: what shards here have there ends first, also what they had there when
    /// it was let go of before, as its path was lost. It is opened anew then.
    pub(in crate::steward) fn let_go_for_leader(&self, number: u64, drive: Uuid) {
        if !self.follows() {
            return;
        }
        let found = {
            let context = self.context();
            let mut standby = context.system.iter().flat_map(|s| s.standby());
            standby.find(|(_, d)| d.label.drive == drive).map(|(spec, _)| spec.clone())
        };
        let open = found.and_then(|spec| self.in_system(|s| s.take_standby(&spec)).flatten());
        if let Some(open) = &open {
            self.let_go(open.id);
            self.in_system(|s| s.reach().lets_go());
        }
        let leaving = self.in_system(|s| s.leaving(drive)).unwrap_or_default();
        let procedures = self.clone();
        self.cx.spawn(async move {
            let cx = procedures.cx.clone();
            procedures.cx.until(move || leaving.iter().all(|id| !cx.leaves(*id))).await;
            let _ = procedures.in_system(|s| s.tell().send(Upper::HasLetGo { number, drive }.encode()));
        });
    }
    /// There are none any more: what was theirs to do comes back to those here.
    pub(in crate::steward) fn part_from_far(&self) {
        let own = self.context().own_shards;
        let number = self.context_mut().sessions.parts(own);
        for shard in 0..own {
            self.cx.to_shard(shard, ShardMail::FarGone { number });
        }
    }
    /// This head leads from now on: shards here let go of the arrays that they had for the former leader, before pools are imported. What
    /// their hosts want waits meanwhile.
    pub(in crate::steward) async fn leave_given(&self) {
        let Some(Some(Given { view, layout, .. })) = self.in_system(|s| s.far_mut().take_given()) else {
            return;
        };
        self.context_mut().sessions.other_is_gone();
        self.part_from_far();
        let arrays: Vec<ArrayId> = layout.arrays.iter().map(|a| a.id).collect();
        let number = self.context_mut().asks_for_rest(&arrays);
        self.tell_own(&arrays, |array| ShardMail::Halt { array, number });
        let (procedures, all) = (self.clone(), arrays.clone());
        self.all_end(move || procedures.context().are_halted(&all)).await;
        self.tell_own(&arrays, |array| ShardMail::Leave { array, number });
        let procedures = self.clone();
        self.all_end(move || procedures.context().are_quiet(&arrays)).await;
        let (view, mut layout) = (Arc::unwrap_or_clone(view), Arc::unwrap_or_clone(layout));
        layout.pools.clear();
        layout.arrays.clear();
        layout.volumes.iter_mut().for_each(|v| (v.ready, v.pool) = (false, Default::default()));
        layout.waits = true;
        self.apply_own(view, layout).await;
    }
    /// Waits until shards have ended what they had begun for the head that led. One may wait for another one, which waits for the record of a loss
    /// that the former leader was to write: a new process waits for nobody.
    async fn all_end(&self, over: impl Fn() -> bool + 'static) {
        if self.cx.until_within(LEAVE_PATIENCE, over).await {
            return;
        }
        let now = self.cx.now();
        self.context_mut().happened(now, "system", SystemEvent::HeadOutUnended);
        self.cx.to_manager(ManagerMail::Out(SystemEvent::HeadOutUnended.into()));
        core::future::pending().await
    }
    fn tell_own(&self, arrays: &[ArrayId], letter: impl Fn(ArrayId) -> ShardMail) {
        for shard in 0..self.context().own_shards {
            arrays.iter().for_each(|array| self.cx.to_shard(shard, letter(*array)));
        }
    }
    async fn apply_own(&self, view: View, layout: Layout) {
        let generation = {
            let mut context = self.context_mut();
            context.next_view();
            context.generation
        };
        self.configure_own(View { generation, ..view }, Arc::new(Layout { generation, ..layout }));
        let procedures = self.clone();
        self.cx.until(move || procedures.context().applied.iter().all(|g| *g >= generation)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::ArrayLayout;
    use crate::mail::Room;
    use crate::steward::context::head::HeadContext;
    use array::{Bitmap, Geometry, Lanes, Leg, LegState, Membership, UnclearedMap};
    use base::{Instant, Uuid};

    /// Each process counted from 1, and arrays have the leader's numbers on both heads.
    #[test]
    fn what_shards_confirm_to_the_former_leader_has_no_number_of_what_this_head_asks() {
        let array = ArrayId(1);
        for letter in [
            ShardMail::Halt { array, number: 1 },
            ShardMail::Quiesce { array, number: 1 },
            ShardMail::MarkAll { array, number: 1 },
            ShardMail::Room { number: 1, room: Room::default() },
        ] {
            let mut context = HeadContext::new(1, [1, 2, 3, 4], String::new(), vec![]);
            context.leader_asks(number_of(&letter).expect("it is confirmed"));
            let number = context.asks_for_rest(&[array]);
            context.hear(Instant(0), 0, StewardMail::Halted { array, number: 1 });
            assert!(!context.are_halted(&[array]), "{letter:?}");
            context.hear(Instant(0), 0, StewardMail::Halted { array, number });
            assert!(context.are_halted(&[array]), "{letter:?}");
        }
        assert_eq!(number_of(&ShardMail::Resume { array }), None);
    }

    #[test]
    fn a_layout_of_the_leaders_is_translated() {
        let leg = |drive| {
            let (volatile_cache, deallocate_zeroes) = (true, false);
            Some(Leg {
                drive: DriveId(drive),
                state: LegState::InSync,
                volatile_cache,
                deallocate_zeroes,
                map_at: 0,
            })
        };
        let geometry = Geometry::plan(true, 0, 1 << 30, 65536).expect("fits");
        let array = ArrayLayout {
            id: ArrayId(1),
            uuid: Uuid([1; 16]),
            geometry,
            membership: Membership { epoch: 1, legs: vec![leg(1), leg(2), None, leg(3)] },
            lanes: Lanes::dealt(5),
            map: 0,
            dirty: Arc::new(Bitmap::new(geometry.regions())),
            unclean: false,
            uncleared: Arc::new(UnclearedMap::none()),
            shared: true,
            lacks_path: false,
        };
        let mut layout = Layout { arrays: vec![array], ..Layout::default() };
        // The leader has two shards, this head three: 2, 3 and 4 are its own.
        let drives = [(DriveId(1), Uuid([11; 16])), (DriveId(2), Uuid([12; 16]))].into();
        let open = |uuid: Uuid| (uuid == Uuid([11; 16])).then_some(DriveId(40));
        let numbers = Numbers { shards: 2, drives };
        let translated = |layout: &Layout| numbers.translate(layout.clone(), 3, open).arrays.remove(0);
        let legs = |array: &ArrayLayout| -> Vec<_> {
            array.membership.legs.iter().map(|l| l.map(|l| (l.drive.0, l.state))).collect()
        };
        let array = translated(&layout);
        let lanes: Vec<u16> = (0..5).map(|region| array.lanes.of_region(region)).collect();
        assert_eq!(lanes, [3, 4, 0, 1, 2]);
        // This head has lanes: what it does on a leg in sync that it does not reach fails.
        let (in_sync, missing) = (LegState::InSync, LegState::Missing);
        assert_eq!(legs(&array), [Some((40, in_sync)), Some((0, in_sync)), None, Some((0, in_sync))]);
        assert!(array.lacks_path);
        // It has none: the leg is missing to it.
        layout.arrays[0].lanes = Lanes::dealt(2);
        let array = translated(&layout);
        assert_eq!(legs(&array), [Some((40, in_sync)), Some((0, missing)), None, Some((0, missing))]);
        assert!(array.lacks_path);
        // What is copied to a leg begins anew with the next map.
        layout.arrays[0].lanes = Lanes::dealt(5);
        for leg in layout.arrays[0].membership.legs.iter_mut().flatten().skip(1) {
            leg.state = LegState::Rebuilding;
        }
        let array = translated(&layout);
        assert_eq!(legs(&array), [Some((40, in_sync)), Some((0, missing)), None, Some((0, missing))]);
        assert!(array.lacks_path);
        // A leg that is out is nobody's to reach.
        layout.arrays[0].membership.legs.iter_mut().flatten().skip(1).for_each(|leg| leg.state = missing);
        assert!(!translated(&layout).lacks_path);
    }
}
