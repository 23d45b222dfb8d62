//! Drives that an order failed: none of them is used again before an order says so.

use head::order::{Order, State, Status};
use std::collections::BTreeSet;

/// Paths of drives that an order failed that was answered, and that no order has named since.
#[derive(Default)]
pub struct Failed(BTreeSet<String>);

/// The drives that an order gives a place, or takes one from.
fn named(order: &Order) -> Vec<&String> {
    match order {
        Order::DriveReturn { drive }
        | Order::DriveRemove { drive, .. }
        | Order::SpareAdd { drive, .. }
        | Order::LegAdd { drive, .. } => vec![drive],
        Order::DriveReplace { old, new, .. } => vec![old, new],
        Order::PoolAdd { arrays, .. } => arrays.iter().flat_map(|a| &a.drives).collect(),
        _ => vec![],
    }
}

impl Failed {
    /// An order goes out: whatever it does with a drive that it names is meant.
    pub fn ordered(&mut self, order: &Order) {
        for drive in named(order) {
            self.0.remove(drive);
        }
    }

    /// An order was carried out.
    pub fn carried_out(&mut self, order: &Order) {
        if let Order::DriveFail { drive, .. } = order {
            self.0.insert(drive.clone());
        }
    }

    /// What `status` says of the drives.
    pub fn verdict(&self, snapshot: &Status) -> Result<(), String> {
        for leg in snapshot.pools.iter().flat_map(|p| &p.arrays).flat_map(|a| &a.legs) {
            let used = matches!(leg.state, State::Optimal | State::Rebuilding | State::Degraded);
            if used && self.0.contains(&leg.path) {
                return Err(format!(
                    "failed: {} was failed by an order, and is used again without one",
                    leg.path
                ));
            }
        }
        Ok(())
    }
}
