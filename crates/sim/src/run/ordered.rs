//! Orders whose outcome is certain: what they made is there, and what they removed is not, after every takeover.

use head::order::{Order, Status};
use std::collections::BTreeMap;

/// What operators have ordered, and what of it is certain: it was answered, and is so after every takeover.
#[derive(Default)]
pub(super) struct Ordered(BTreeMap<String, Option<bool>>);

fn means(order: &Order) -> Option<(String, bool)> {
    Some(match order {
        Order::VolumeCreate { pool, name, .. } => (format!("volume {pool}/{name}"), true),
        Order::VolumeRemove { volume, .. } => (format!("volume {volume}"), false),
        Order::HostAdd { name, .. } => (format!("host {name}"), true),
        Order::HostRemove { name, .. } => (format!("host {name}"), false),
        Order::PortalAdd { address, .. } => (format!("portal {address}"), true),
        _ => return None,
    })
}

impl Ordered {
    /// It was answered with success.
    pub fn confirm(&mut self, order: &Order) {
        if let Some((name, is)) = means(order) {
            self.0.insert(name, Some(is));
        }
    }
    /// It may be so, or not: it is asked for, or was not answered, or was refused.
    pub fn doubt(&mut self, order: &Order) {
        if let Some((name, _)) = means(order) {
            self.0.insert(name, None);
        }
    }
    /// Whether the head that leads knows all that is certain.
    pub fn verdict(&self, snapshot: &Status) -> Result<(), String> {
        if snapshot.pools.is_empty() {
            return Ok(());
        }
        for (name, is) in &self.0 {
            let there = match name.split_once(' ') {
                Some(("volume", v)) => snapshot.volumes.iter().any(|x| x.name == v),
                Some(("host", h)) => snapshot.hosts.iter().any(|x| x.name == h),
                Some((_, p)) => snapshot.portals.iter().any(|x| x.address.to_string() == p),
                None => continue,
            };
            if is.is_some_and(|is| is != there) {
                let word = if there { "is there, and was removed" } else { "is not there, and was made" };
                let pools: Vec<String> =
                    snapshot.pools.iter().map(|p| format!("{} {}", p.name, p.state.word())).collect();
                let names = snapshot.volumes.iter().map(|v| v.name.clone());
                let all: Vec<String> = names.chain(snapshot.hosts.iter().map(|h| h.name.clone())).collect();
                return Err(format!("orders: {name} {word}: {pools:?}, {all:?}"));
            }
        }
        Ok(())
    }
}
