//! Orders of an operator while hosts work and faults happen: a scrub in one world of four, and in worlds with rotten
//! blocks a scrub with repair at the end.
//!
//! Worlds of the first kind have no rot, so a scrub that reports a difference is a false alarm, whatever hosts write
//! meanwhile and however often the head ends in the middle.

use base::view::Protocol;
use finding::{Cause, LegCause, StatusCause};
use head::order::{Drive, DriveRole, HostSettings, Order, PoolScrub, Scrub, State, Status};
use std::collections::{BTreeMap, BTreeSet};

/// Orders that follow those that build the system.
pub fn orders(seed: u64) -> Option<Order> {
    let action = PoolScrub::Start { repair: seed % 8 == 3, prefer: vec![] };
    (seed % 4 == 3).then(|| Order::PoolScrub { pool: "tank".into(), action })
}

/// Addresses of our portals.
pub const NVME: &str = "10.0.0.254:4420";
/// See `NVME`.
pub const ISCSI: &str = "10.0.0.254:3260";

/// Addresses of the second head's portals.
pub const SECOND: [(Protocol, &str); 2] =
    [(Protocol::Nvme, "10.0.0.253:4430"), (Protocol::Iscsi, "10.0.0.253:3270")];

/// Portals of the second head, of both protocols.
pub fn second_portals() -> Vec<Order> {
    let portal = |(protocol, address): (Protocol, &str)| Order::PortalAdd {
        protocol,
        address: address.parse().expect("an address"),
        moves: None,
        head: Some(1),
    };
    SECOND.map(portal).to_vec()
}

/// The name of a host, NVMe.
pub fn nqn(i: usize) -> String {
    format!("nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000000000{i}")
}

/// The name of a host, iSCSI.
pub fn iqn(i: usize) -> String {
    format!("iqn.1994-05.com.example:h{i}")
}

/// Portals of both protocols, and so many hosts that may use the volume.
pub fn lets_in(hosts: usize) -> Vec<Order> {
    let portal = |protocol, address: &str| {
        let address = address.parse().expect("an address");
        Order::PortalAdd { protocol, address, moves: None, head: None }
    };
    let mut orders = vec![portal(Protocol::Nvme, NVME), portal(Protocol::Iscsi, ISCSI)];
    for i in 0..hosts {
        let settings =
            HostSettings { nqns: Some(vec![nqn(i)]), iqns: Some(vec![iqn(i)]), ..Default::default() };
        orders.push(Order::HostAdd { name: format!("h{i}"), settings });
        orders.push(Order::Export { volume: "tank/v".into(), host: format!("h{i}"), lun: Some(0) });
    }
    orders
}

/// What `status` asks an operator to do: drives that are out are returned, or take their own places anew where nothing says whose they are,
/// and pools that are away are imported.
pub fn nursing(snapshot: &Status) -> Vec<Order> {
    let is_out = |d: &&Drive| {
        let ill = matches!(d.state, Some(State::Failed | State::Offline)) || d.role == DriveRole::Missing;
        ill && !matches!(d.role, DriveRole::Free | DriveRole::RemovedFailed)
    };
    let returned = snapshot.drives.iter().filter(is_out);
    let unlabelled = |drive: &str| {
        snapshot.reasons.iter().any(|r| match &r.cause {
            Cause::Status(StatusCause::LegNotOptimal { leg, why: Some(why), .. }) => {
                leg == drive && matches!(**why, Cause::Leg(LegCause::DriveUnlabelled { .. }))
            }
            _ => false,
        })
    };
    let back = |d: &Drive| match d.path.clone() {
        drive if unlabelled(&drive) => Order::DriveReplace { old: drive.clone(), new: drive, force: true },
        drive => Order::DriveReturn { drive },
    };
    let mut orders: Vec<Order> = returned.map(back).collect();
    if snapshot.pools.is_empty() || snapshot.health == State::Offline {
        orders.push(Order::PoolImport { pool: None, name: None, drives: vec![], force: false });
    }
    orders
}

/// What a scrub must not have said.
pub fn verdict(snapshot: &Status) -> Result<(), String> {
    for pool in &snapshot.pools {
        if pool.scrub.differed_bytes > 0 {
            return Err(format!("a scrub raised a false alarm: {:?}", pool.scrub));
        }
    }
    Ok(())
}

/// The repair of what rotted, and what it must have known: one leg of three is outvoted, and of two the one
/// is right whose drive never rotted. Nothing else may have copied what was rotten: no drive was away, and
/// the head never fell.
#[derive(Default)]
pub struct Repair {
    /// Drives on which a block rotted, by block.
    places: BTreeMap<u64, BTreeSet<usize>>,
    step: Step,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Step {
    #[default]
    Waiting,
    Running,
    Over,
}

impl Repair {
    /// A block rots on a drive.
    pub fn rots(&mut self, block: u64, disk: usize) {
        self.places.entry(block).or_default().insert(disk);
    }
    /// What is to be ordered now, in a system that is at rest.
    pub fn go_on(&mut self, legs: usize, mirrors: usize, scrub: &Scrub) -> Option<Order> {
        let action = match self.step {
            Step::Waiting => {
                let drives: BTreeSet<usize> = self.places.values().flatten().copied().collect();
                let prefer = match drives.first() {
                    Some(_) if legs > 2 => vec![],
                    Some(bad) if drives.len() == 1 && mirrors == 1 => vec![format!("d{}", 1 - bad)],
                    _ => return None,
                };
                self.step = Step::Running;
                PoolScrub::Start { repair: true, prefer }
            }
            Step::Running if !scrub.running && scrub.last_ended.is_some() => {
                self.step = Step::Over;
                PoolScrub::Clear
            }
            Step::Running | Step::Over => return None,
        };
        Some(Order::PoolScrub { pool: "tank".into(), action })
    }
    /// It came to its end.
    pub fn is_over(&self) -> bool {
        self.step == Step::Over
    }
    /// It has begun, and is not over.
    pub fn is_under_way(&self) -> bool {
        self.step == Step::Running
    }
    /// A repair came to its end that must have known what belongs here.
    pub fn knew(&self, block: u64) -> bool {
        self.is_over() && self.places.get(&block).is_some_and(|drives| drives.len() == 1)
    }
}
