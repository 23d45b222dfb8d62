//! What connections want of each other (NVMe Abort and controller resets, SCSI task management): an intervention
//! goes to every connection that it is about, and is answered when all have done it or are gone.

use crate::mail::{Mail, ShardMail, to_shard};
use crate::steward::sessions::table::{OTHER, Place, far_away, stands_for_more};
use base::Effects;
use base::front::Intervention;

/// The answer to this one is not waited for.
const NOBODY: u32 = 0;

/// Who wants something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asker {
    /// A connection here, by its own number for it.
    Here(Place, u16),
    /// The other head, by its number.
    There(u64),
}

struct UnderWay {
    asker: Asker,
    id: u32,
    /// Who has not answered yet.
    left: Vec<Place>,
    yes: bool,
}

/// Interventions under way. Each connection has as many as its protocol allows functions at a time.
#[derive(Default)]
pub struct Interventions {
    under_way: Vec<UnderWay>,
    last: u32,
    /// What the other head wanted, and is done here.
    done: Vec<u64>,
}

impl Interventions {
    /// `asker` wants `what` of `targets`.
    pub fn begin(
        &mut self,
        asker: Place,
        key: u16,
        what: Intervention,
        targets: Vec<Place>,
        fx: &mut Effects<Mail>,
    ) {
        self.begin_for(Asker::Here(asker, key), what, targets, fx);
    }
    /// The other head wants that, for a connection there.
    pub fn begin_for_other(
        &mut self,
        number: u64,
        what: Intervention,
        targets: Vec<Place>,
        fx: &mut Effects<Mail>,
    ) {
        self.begin_for(Asker::There(number), what, targets, fx);
    }
    fn begin_for(&mut self, asker: Asker, what: Intervention, targets: Vec<Place>, fx: &mut Effects<Mail>) {
        self.last = self.last.wrapping_add(1).max(NOBODY + 1);
        // The end of a connection is answered by its being gone.
        if !matches!(what, Intervention::EndQueues | Intervention::ResetController { .. }) {
            for place in targets.iter().filter(|p| !stands_for_more(p)) {
                obey(*place, self.last, what.clone(), fx);
            }
        }
        self.under_way.push(UnderWay { asker, id: self.last, left: targets, yes: false });
        self.answer(fx);
    }
    /// Tells one connection something that nobody waits for.
    pub fn tell(&self, place: Place, what: Intervention, fx: &mut Effects<Mail>) {
        obey(place, NOBODY, what, fx);
    }
    /// A connection has done it.
    pub fn on_obeyed(&mut self, place: Place, id: u32, yes: bool, fx: &mut Effects<Mail>) {
        for u in self.under_way.iter_mut().filter(|u| u.id == id) {
            u.left.retain(|p| *p != place);
            u.yes |= yes;
        }
        self.answer(fx);
    }
    /// A connection is over, and so are its commands.
    pub fn on_gone(&mut self, place: Place, fx: &mut Effects<Mail>) {
        self.under_way.retain(|u| !matches!(u.asker, Asker::Here(asker, _) if asker == place));
        self.under_way.iter_mut().for_each(|u| u.left.retain(|p| *p != place));
        self.answer(fx);
    }

    /// The other head is gone: what it was to do is over once it is shut out, and it wants nothing any more.
    pub fn other_is_gone(&mut self) {
        self.under_way.retain(|u| matches!(u.asker, Asker::Here(..)));
        for place in self.under_way.iter_mut().flat_map(|u| &mut u.left).filter(|p| far_away(p)) {
            *place = OTHER;
        }
        self.done.clear();
    }
    /// What it had sent here may still be at drives, and stands for what it was to do, too.
    pub fn parts(&mut self, parting: &[Place]) {
        for u in self.under_way.iter_mut().filter(|u| u.left.contains(&OTHER)) {
            let news: Vec<Place> = parting.iter().copied().filter(|p| !u.left.contains(p)).collect();
            u.left.extend(news);
        }
    }
    /// What the other head wanted, by its numbers, and is done.
    pub fn take_done(&mut self) -> Vec<u64> {
        core::mem::take(&mut self.done)
    }

    fn answer(&mut self, fx: &mut Effects<Mail>) {
        let Self { under_way, done, .. } = self;
        under_way.retain(|u| {
            match u.asker {
                _ if !u.left.is_empty() => {}
                Asker::Here(place, key) => {
                    let mail = ShardMail::Intervened { connection: place.connection, key, yes: u.yes };
                    fx.push(to_shard(place.shard, mail));
                }
                Asker::There(number) => done.push(number),
            }
            !u.left.is_empty()
        });
    }
}

fn obey(place: Place, id: u32, what: Intervention, fx: &mut Effects<Mail>) {
    let mail = ShardMail::Obey { connection: place.connection, id, what };
    fx.push(to_shard(place.shard, mail));
}
