//! From the context to every shard: a new view and a new layout at each change.

use crate::layout::{ArrayLayout, Layout, PoolId, PoolLayout, VolumeLayout};
use crate::steward::context::absent::Shown;
use crate::steward::context::head::{HeadContext, Stop};
use crate::steward::context::pool::PoolContext;
use crate::steward::procedures::Procedures;
use array::format::LegState;
use base::view::{Export, Portal, View};
use base::{Bug, VolumeId, planted_if};
use std::sync::Arc;

impl Procedures {
    /// Makes a new view and layout and waits until every shard has them in force.
    pub(crate) async fn publish(&self) {
        let generation = self.publish_now();
        let procedures = self.clone();
        let all = move || {
            let context = procedures.context();
            let have = |shards: u16| context.applied.iter().take(shards.into()).all(|g| *g >= generation);
            let shards = if context.tells_far() { context.shards() } else { context.own_shards };
            have(shards) || planted_if(Bug::FarLossUnawaited, || have(context.own_shards))
        };
        self.cx.until(all).await;
    }
    /// Makes a new view and layout; `Applied` follows from every shard.
    pub(crate) fn publish_now(&self) -> u64 {
        let (own, far) = {
            let mut context = self.context_mut();
            context.next_view();
            context.place_portals();
            context.note_lives();
            context.note_lacks();
            context.note_comparisons(self.cx.now());
            let made = |of| (view_of(&context, of), layout_of(&context, of));
            let (own, far) = (made(Head::Own), context.tells_far().then(|| made(Head::Far)));
            context.far_reads();
            (own, far)
        };
        let (generation, owes) = (own.0.generation, far.is_some());
        self.tell_configuration(own, far);
        if owes {
            self.far_owes(move |context| context.far(&context.applied).all(|g| *g >= generation));
        }
        generation
    }
}

/// For whose shards something is made. Those of the other head know the pools of which lanes were dealt with them; the others are to them
/// as if they were absent. Portals are this head's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    Own,
    Far,
}

impl HeadContext {
    /// Whether shards of the other head take part and are told of changes. They keep what they have when this head, as it is stopped, has let
    /// go of all pools: hosts of the other head are to wait until that one leads, and see no volume go.
    fn tells_far(&self) -> bool {
        self.far_shards > 0 && (self.stop != Stop::Closed || !self.pools.is_empty())
    }
    /// Pools of which hosts of this head, or of the other one, may know. Those that leave as this head is stopped are there for the other one.
    fn shown_to(&self, of: Head) -> impl Iterator<Item = Shown<'_>> {
        self.shown_with(of == Head::Far && self.stop == Stop::Closed)
    }
}

impl Head {
    fn knows(self, context: &HeadContext, pool: &PoolContext) -> bool {
        self == Head::Own || pool.shards > context.own_shards
    }
    /// The pool, if it is imported and known.
    fn known(self, context: &HeadContext, pool: Option<PoolId>) -> Option<PoolId> {
        pool.filter(|id| context.pool(*id).is_some_and(|p| self.knows(context, p)))
    }
}

/// Stands for the drive of a leg that is not open: ids begin at 1.
const NO_DRIVE: base::DriveId = base::DriveId(0);
/// Stands for a pool that is absent; none of its volumes is ready. Ids begin at 1.
const NO_POOL: PoolId = PoolId(0);

/// What the front ends may know.
fn view_of(context: &HeadContext, of: Head) -> View {
    let hosts = context.hosts().iter().map(|host| {
        let mut exports = vec![];
        for pool in context.shown_to(of) {
            for (volume, nsid, lun) in pool.config.grants.for_host(host) {
                let Some(v) = pool.config.volumes.by_uuid(volume) else { continue };
                // What is kept of an absent pool may be older than a number that was given away since.
                if exports.iter().any(|e: &Export| e.nsid == nsid || e.lun == lun) {
                    continue;
                }
                exports.push(Export {
                    nsid,
                    lun,
                    volume: pool.volume_ids[&volume],
                    name: format!("{}/{}", pool.config.name, v.name),
                    uuid: v.uuid,
                    nguid: v.nguid(),
                    naa: v.naa,
                    block_bytes: v.block_bytes,
                    blocks: v.bytes / u64::from(v.block_bytes),
                    deallocate: pool.deallocates,
                    ready: pool.ready && of.known(context, pool.id).is_some(),
                });
            }
        }
        host.view(exports)
    });
    View {
        generation: context.generation,
        system: context.shown_system(),
        portals: context
            .portals
            .iter()
            .filter(|_| !context.held && (of == Head::Far || context.stop != Stop::Closed))
            .map(|p| Portal { head: context.head_of(&p.portal), ..p.portal })
            .collect(),
        hosts: hosts.collect(),
        head: if of == Head::Own { context.own_number() } else { context.own_number() ^ 1 },
        paths: context.paths(),
    }
}

/// Where the bytes are.
fn layout_of(context: &HeadContext, of: Head) -> Layout {
    let mut layout = Layout { generation: context.generation, ..Layout::default() };
    for pool in context.pools.iter().filter(|p| of.knows(context, p)) {
        layout.pools.push(PoolLayout {
            id: pool.id,
            uuid: pool.config().uuid,
            map: pool.config().map.clone(),
            arrays: pool.arrays.iter().map(|a| a.id).collect(),
        });
        layout.arrays.extend((0..pool.arrays.len()).map(|a| array_layout(pool, a, of)));
    }
    for pool in context.shown_to(of) {
        let known = of.known(context, pool.id);
        for v in pool.config.volumes.iter() {
            layout.volumes.push(VolumeLayout {
                id: pool.volume_ids[&v.uuid],
                pool: known.unwrap_or(NO_POOL),
                block_bytes: v.block_bytes,
                blocks: v.bytes / u64::from(v.block_bytes),
                map: Arc::new(v.map.clone()),
                ready: pool.ready && known.is_some(),
                caps: pool.config.caps_of(v.uuid),
                home: home_of(context, known, pool.volume_ids[&v.uuid]),
                weight: pool.config.weight_of(v.uuid),
            });
        }
    }
    layout
}

/// Where a volume's caps are counted: shards that know its pool have the volumes in turn.
fn home_of(context: &HeadContext, pool: Option<PoolId>, volume: VolumeId) -> u16 {
    let shards = pool.and_then(|id| context.pool(id)).map_or(context.own_shards, |p| p.shards);
    (volume.0 % u32::from(shards.max(1))) as u16
}

fn array_layout(pool: &PoolContext, a: usize, of: Head) -> ArrayLayout {
    let array = &pool.arrays[a];
    let record = &pool.record().arrays[a];
    // These maps are long, and the link is not as quick as memory.
    let is_read = of == Head::Far && array.far_map == Some(array.map);
    let mut legs = vec![];
    for (leg, on_record) in array.legs.iter().zip(&record.legs) {
        let state = match on_record.state {
            LegState::InSync => array::LegState::InSync,
            LegState::Rebuilding | LegState::RebuildingFull => array::LegState::Rebuilding,
            LegState::Out | LegState::JustOut => array::LegState::Missing,
        };
        // A leg that is not there is Missing, never absent from the list: no bit of the bitmap may be cleared
        // while it is away (promise 4). Absent is who left for good, which is on record.
        let shown = match leg.open.as_ref().filter(|_| !leg.unseen) {
            Some(open) => array::Leg {
                drive: open.id,
                state,
                volatile_cache: open.info.volatile_cache,
                deallocate_zeroes: open.info.deallocate_zeroes,
                map_at: array::format::tail_at(open.label.drive_bytes),
            },
            None => array::Leg {
                drive: NO_DRIVE,
                state: array::LegState::Missing,
                volatile_cache: true,
                deallocate_zeroes: false,
                map_at: 0,
            },
        };
        if legs.len() <= leg.place {
            legs.resize(leg.place + 1, None);
        }
        legs[leg.place] = Some(shown);
    }
    ArrayLayout {
        id: array.id,
        uuid: pool.array_uuid(a),
        geometry: array.geometry,
        membership: array::Membership { epoch: record.epoch, legs },
        lanes: array.lanes,
        map: array.map,
        dirty: if is_read { Arc::default() } else { array.dirty.clone() },
        unclean: array.unclean,
        uncleared: if is_read { Arc::default() } else { array.uncleared.clone() },
        shared: pool.config().shared.is_some(),
        lacks_path: false,
    }
}
