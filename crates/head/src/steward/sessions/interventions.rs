//! What connections want of each other (NVMe Abort and controller reset, SCSI task management): the wish
//! goes to every connection that it is about, and is answered when all have done it or are gone.

use crate::mail::{Mail, ShardMail, to_shard};
use crate::steward::sessions::table::Place;
use base::Effects;
use base::front::Intervention;

/// The answer to this one is not waited for.
const NOBODY: u32 = 0;

struct UnderWay {
    asker: Place,
    key: u16,
    id: u32,
    /// Who has not answered yet.
    left: Vec<Place>,
    yes: bool,
}

/// Wishes under way. Each connection has as many as its protocol allows functions at a time.
#[derive(Default)]
pub struct Interventions {
    under_way: Vec<UnderWay>,
    last: u32,
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
        self.last = self.last.wrapping_add(1).max(NOBODY + 1);
        // The end of a connection is answered by its being gone.
        if what != Intervention::EndQueues {
            for place in &targets {
                obey(*place, self.last, what.clone(), fx);
            }
        }
        self.under_way.push(UnderWay { asker, key, id: self.last, left: targets, yes: false });
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
        self.under_way.retain(|u| u.asker != place);
        self.under_way.iter_mut().for_each(|u| u.left.retain(|p| *p != place));
        self.answer(fx);
    }

    fn answer(&mut self, fx: &mut Effects<Mail>) {
        self.under_way.retain(|u| {
            if u.left.is_empty() {
                let mail = ShardMail::Intervened { connection: u.asker.connection, key: u.key, yes: u.yes };
                fx.push(to_shard(u.asker.shard, mail));
            }
            !u.left.is_empty()
        });
    }
}

fn obey(place: Place, id: u32, what: Intervention, fx: &mut Effects<Mail>) {
    let mail = ShardMail::Obey { connection: place.connection, id, what };
    fx.push(to_shard(place.shard, mail));
}
