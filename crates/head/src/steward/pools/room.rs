//! Memory for arrays: each shard keeps some of its own for every array, before the Steward puts the array into the
//! layout. Pools that are imported at a start ask at the same time, so what was promised to one is counted for the next.

use crate::limits;
use crate::mail::{Room, ShardMail};
use crate::order::Refusal;
use crate::steward::procedures::Procedures;
use array::Geometry;
use finding::PoolRefusal;

fn room_of<'a>(geometries: impl Iterator<Item = &'a Geometry>) -> Room {
    let mut room = Room::default();
    for geometry in geometries {
        *if geometry.redundant() { &mut room.mirrors } else { &mut room.singles } += 1;
    }
    room
}

fn sum(a: Room, b: Room) -> Room {
    Room { mirrors: a.mirrors + b.mirrors, singles: a.singles + b.singles }
}

/// Every shard keeps memory for so many arrays that are not in the context yet. To be dropped, without a wait in
/// between, once they are: from then on they count themselves.
#[must_use]
pub(crate) struct Promised {
    procedures: Procedures,
    room: Room,
}

impl Drop for Promised {
    fn drop(&mut self) {
        self.procedures.context_mut().keeps_promise(self.room);
    }
}

/// The one who asks: the context has room for the answers to one question.
struct Asking(Procedures);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.context_mut().room_asked();
    }
}

impl Procedures {
    fn ask_room(&self, room: Room) {
        let number = self.context_mut().tells_room();
        self.tell_shards(|| ShardMail::Room { number, room });
        self.far_owes(|context| !context.asking_room || context.far(&context.rooms).all(Option::is_some));
    }
    /// Every shard keeps the memory that arrays of these geometries need, besides those that there are; or a refusal.
    pub(crate) async fn room_for(
        &self,
        geometries: impl Iterator<Item = &Geometry>,
    ) -> Result<Promised, Refusal> {
        let more = room_of(geometries);
        let procedures = self.clone();
        self.cx.until(move || !procedures.context().asking_room).await;
        let (asking, before) = {
            let mut context = self.context_mut();
            context.asks_room();
            let arrays = context.pools.iter().flat_map(|p| &p.arrays);
            let here = room_of(arrays.map(|a| &a.geometry));
            (Asking(self.clone()), sum(here, context.promised))
        };
        let all = sum(before, more);
        self.ask_room(all);
        let procedures = self.clone();
        self.cx.until(move || procedures.context().rooms.iter().all(Option::is_some)).await;
        let rooms: Vec<(Room, u32)> = self.context().rooms.iter().copied().flatten().collect();
        if rooms.iter().all(|(room, _)| room.mirrors >= all.mirrors && room.singles >= all.singles) {
            let mut context = self.context_mut();
            context.promises(more);
            return Ok(Promised { procedures: self.clone(), room: more });
        }
        // Back to what there was. The answers are waited for: whoever is refused finds the memory free.
        self.ask_room(before);
        let procedures = self.clone();
        self.cx.until(move || procedures.context().rooms.iter().all(Option::is_some)).await;
        drop(asking);
        let most = rooms.iter().map(|(_, most)| *most).min().unwrap_or(0);
        let wanted = u64::from(all.mirrors) + u64::from(all.singles).div_ceil(limits::SINGLES_OF_A_MIRROR);
        if u64::from(most) < u64::from(all.mirrors) || more.mirrors == 0 && u64::from(most) < wanted {
            let least = rooms.len() as u64 * limits::shard_bytes_min(wanted).next_multiple_of(1 << 20);
            let mirrors = u64::from(all.mirrors);
            return Err(match more.mirrors {
                0 => {
                    let arrays = mirrors + u64::from(all.singles);
                    PoolRefusal::MemoryFullForArrays { arrays, memory_bytes_min: least }
                }
                _ => PoolRefusal::MemoryFullForMirrors {
                    mirrors_max: most.into(),
                    mirrors,
                    memory_bytes_min: least,
                },
            }
            .into());
        }
        Err(PoolRefusal::MemoryBusy.into())
    }
}
