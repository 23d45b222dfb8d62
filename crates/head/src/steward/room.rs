//! Memory for mirrors: each shard keeps some of its own for every mirror, before the Steward puts the mirror into the
//! layout. Pools that are imported at a start ask at the same time, so what was promised to one is counted for the next.

use super::Office;
use super::desk::refuse;
use crate::limits;
use crate::mail::Mail;
use crate::order::{Refusal, RefusalKind};

/// Every shard keeps memory for so many mirrors that are not on the desk yet. To be dropped, without a wait in
/// between, once they are: from then on they count themselves.
#[must_use]
pub(crate) struct Promised {
    office: Office,
    mirrors: usize,
}

impl Drop for Promised {
    fn drop(&mut self) {
        self.office.desk_mut().mirrors_promised -= self.mirrors;
    }
}

/// The one who asks: answers do not say whose question they answer.
struct Asking(Office);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.desk_mut().asking_room = false;
    }
}

impl Office {
    /// Every shard keeps the memory that so many more mirrors need; or a refusal.
    pub(crate) async fn room_for(&self, more: usize) -> Result<Promised, Refusal> {
        let promised = |mirrors| Promised { office: self.clone(), mirrors };
        if more == 0 {
            return Ok(promised(0));
        }
        let office = self.clone();
        self.cx.until(move || !office.desk().asking_room).await;
        let (asking, before) = {
            let mut desk = self.desk_mut();
            desk.asking_room = true;
            desk.rooms = vec![None; usize::from(desk.shards)];
            let arrays = desk.pools.iter().flat_map(|p| &p.arrays);
            let here = arrays.filter(|a| a.geometry.redundant()).count();
            (Asking(self.clone()), here + desk.mirrors_promised)
        };
        let all = (before + more) as u32;
        self.tell_shards(|| Mail::Room { mirrors: all });
        let office = self.clone();
        self.cx.until(move || office.desk().rooms.iter().all(Option::is_some)).await;
        let rooms: Vec<(u32, u32)> = self.desk().rooms.iter().copied().flatten().collect();
        if rooms.iter().all(|(mirrors, _)| *mirrors >= all) {
            self.desk_mut().mirrors_promised += more;
            return Ok(promised(more));
        }
        // Back to what there was. The answers are waited for: the next who asks must not take them for its own.
        self.desk_mut().rooms.fill(None);
        self.tell_shards(|| Mail::Room { mirrors: before as u32 });
        let office = self.clone();
        self.cx.until(move || office.desk().rooms.iter().all(Option::is_some)).await;
        drop(asking);
        let most = rooms.iter().map(|(_, most)| *most).min().unwrap_or(0);
        if most < all {
            let least =
                rooms.len() as u64 * limits::shard_bytes_min(u64::from(all)).next_multiple_of(1 << 20);
            let message = format!(
                "the head's memory has room for the scratch of {most} mirrors, and these would make {all}"
            );
            let next =
                format!("memory = \"{}M\" or more in head.toml, a restart, then this again", least >> 20);
            return Err(refuse(RefusalKind::NoSpace, "memory", message).then(next));
        }
        let message =
            "hosts use so much of the head's memory that there is none for another mirror's scratch";
        Err(refuse(RefusalKind::NotReady, "memory", message).then("this again when they do less"))
    }
}
