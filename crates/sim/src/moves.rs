//! Orders about drives in one world of five, while hosts work and faults happen: drives are replaced, added, removed,
//! failed and made spares, one order after the other. Four more drives are there, of which two may become another mirror:
//! the pool grows while hosts work. Orders may be refused; at the end every mirror must be whole again, with all data on
//! all legs. Other volumes are created, resized and deleted beside the volume of the hosts, and each must have space of
//! its own.

use base::{Duration, Instant, Prng};
use head::order::{Array, ArraySpec, Order, State, Status};
use volume::{GRANULE_BYTES, Volume};

/// Drives without a pool at the start, in worlds where the operator moves drives.
pub const MORE_DRIVES: usize = 4;
/// Mirrors by which a pool grows, at most.
const GROWS_MAX: usize = 1;

/// How often, at least, before hosts and faults may end.
pub const MOVES: u32 = 8;

/// Whether the operator moves drives in this world.
pub fn moves_drives(seed: u64) -> bool {
    seed % 5 == 4
}

/// Whether any one drive may be lost without a mirror that is left with none.
pub fn redundant(snapshot: &Status) -> bool {
    let in_sync = |a: &Array| a.legs.iter().filter(|l| l.state == State::Optimal).count();
    snapshot.health < State::Offline && snapshot.pools.iter().flat_map(|p| &p.arrays).all(|a| in_sync(a) >= 2)
}

/// The next thing to do to some drive; `drives` are all there are, and the pool had `mirrors` at the start.
pub fn next(rng: &mut Prng, snapshot: &Status, drives: &[String], mirrors: usize) -> Option<Order> {
    let pool = snapshot.pools.first()?;
    let a = rng.below(pool.arrays.len() as u64) as usize;
    let legs = &pool.arrays[a].legs;
    if legs.is_empty() {
        return None;
    }
    let leg = rng.pick(legs).path.clone();
    let free = free(snapshot, drives);
    let new = if free.is_empty() { leg.clone() } else { rng.pick(&free).clone() };
    let (name, force) = (pool.name.clone(), true);
    if rng.chance(1, 8)
        && let [first, second, ..] = &free[..]
        && pool.arrays.len() < mirrors + GROWS_MAX
    {
        let drives = vec![first.clone(), second.clone()];
        let arrays = vec![ArraySpec { layout: head::order::ArrayLayout::Mirror, drives, weight: None }];
        return Some(Order::PoolAdd { pool: name, arrays, force });
    }
    Some(match rng.below(12) {
        0..5 => Order::DriveReplace { old: leg, new, force },
        5..7 => Order::LegAdd { pool: name, mirror: Some(format!("mirror-{a}")), drive: new, force },
        7..9 => Order::DriveRemove { drive: leg, force: rng.chance(1, 4) },
        9 => Order::DriveFail { drive: leg, force: false },
        10 => Order::SpareAdd { pool: name, drive: new, force },
        _ => Order::DriveRemove { drive: pool.spares.first()?.path.clone(), force: false },
    })
}

/// Whether an order is one of those.
pub fn is_move(order: &Order) -> bool {
    matches!(
        order,
        Order::PoolAdd { .. }
            | Order::DriveReplace { .. }
            | Order::LegAdd { .. }
            | Order::DriveRemove { .. }
            | Order::DriveFail { .. }
            | Order::SpareAdd { .. }
    )
}

/// The next thing to do to a volume that no host uses.
pub fn next_volume(rng: &mut Prng, snapshot: &Status) -> Option<Order> {
    let spare = |v: &&head::order::Volume| v.name.starts_with("tank/x");
    let there: Vec<String> = snapshot.volumes.iter().filter(spare).map(|v| v.name.clone()).collect();
    let bytes = rng.between(1, 3) * GRANULE_BYTES;
    Some(match rng.below(4) {
        0 if !there.is_empty() => {
            Order::VolumeRemove { volume: rng.pick(&there).clone(), force: true, disconnect: true }
        }
        1 if !there.is_empty() => {
            Order::VolumeResize { volume: rng.pick(&there).clone(), bytes, force: true, disconnect: true }
        }
        _ => {
            let name = format!("x{}", rng.below(1000));
            Order::VolumeCreate { pool: "tank".into(), name, bytes, block_bytes: None }
        }
    })
}

/// Bytes of the pool that a volume has.
fn space(v: &head::order::Volume) -> u64 {
    Volume::granules_for(v.bytes) * GRANULE_BYTES
}

/// Space that volumes gave back a short time ago, and that may not be free yet.
#[derive(Default)]
pub struct Freed(Vec<(Instant, u64)>);

/// How long it may take until space is free again, the order itself included.
const FREE_AGAIN: Duration = Duration::from_secs(30);

impl Freed {
    /// An order goes out that may give a volume's space back.
    pub fn order(&mut self, now: Instant, order: &Order, snapshot: &Status) {
        if let Order::VolumeRemove { volume, .. } | Order::VolumeResize { volume, .. } = order {
            let named = snapshot.volumes.iter().filter(|v| v.name == *volume);
            self.0.extend(named.map(|v| (now, space(v))));
        }
    }

    /// Each volume has space of its own, and what is used is theirs or was until a short while ago.
    pub fn verdict(&mut self, now: Instant, snapshot: &Status) -> Result<(), String> {
        self.0.retain(|(at, _)| *at + FREE_AGAIN > now);
        let rests: u64 = self.0.iter().map(|(_, bytes)| bytes).sum();
        for pool in snapshot.pools.iter().filter(|p| !p.arrays.is_empty()) {
            let of = format!("{}/", pool.name);
            let volumes = snapshot.volumes.iter().filter(|v| v.name.starts_with(&of));
            let sum: u64 = volumes.map(space).sum();
            if !(sum..=sum + rests).contains(&pool.used_bytes) {
                return Err(format!(
                    "{} bytes of the pool are used, {sum} by volumes, and {rests} may rest",
                    pool.used_bytes
                ));
            }
        }
        Ok(())
    }
}

/// What a pool needs that is left with too little: a leg for a mirror of one, no spare that is not there.
pub fn mend(snapshot: &Status, drives: &[String]) -> Vec<Order> {
    let mut orders = vec![];
    let mut free = free(snapshot, drives).into_iter();
    for pool in &snapshot.pools {
        for spare in pool.spares.iter().filter(|s| !s.ready) {
            orders.push(Order::DriveRemove { drive: spare.path.clone(), force: false });
        }
        for (a, _) in pool
            .arrays
            .iter()
            .enumerate()
            .filter(|(_, a)| a.layout == head::order::ArrayLayout::Mirror && a.legs.len() == 1)
        {
            let mirror = Some(format!("mirror-{a}"));
            // The last one is the largest: it fits any mirror.
            match (free.next_back(), pool.spares.first()) {
                (Some(drive), _) => {
                    orders.push(Order::LegAdd { pool: pool.name.clone(), mirror, drive, force: true });
                }
                (None, Some(spare)) => {
                    orders.push(Order::DriveRemove { drive: spare.path.clone(), force: false });
                }
                (None, None) => {}
            }
        }
    }
    orders
}

fn free(snapshot: &Status, drives: &[String]) -> Vec<String> {
    // One that failed and was removed may be used again, if that is meant.
    let is_ours =
        |x: &head::order::Drive| x.pool.is_some() && x.role != head::order::DriveRole::RemovedFailed;
    let used = |d: &&String| snapshot.drives.iter().any(|x| x.path == **d && is_ours(x));
    drives.iter().filter(|d| !used(d)).cloned().collect()
}
