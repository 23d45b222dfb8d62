//! Registrations and the reservation of a simulated drive (`base::fence`).
//!
//! An operation has two moments. When it *arrives*, the drive checks that its head is registered (`admits`); then it *lands*
//! later, whatever happens to the registration meanwhile. So the removal of a key stops no operation that is at the
//! drive already. Only the reset that belongs to a fence does, and the world carries that out.

use base::fence::{Registrants, Reservation, ReservationKind};
use base::{FenceAct, FenceError, FenceKey};
use std::collections::BTreeMap;

/// One path to a drive: the number of a head.
pub type Nexus = u8;

/// Registrations and the reservation of a drive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Registrations {
    keys: BTreeMap<Nexus, FenceKey>,
    /// Exclusive access, registrants only.
    holder: Option<Nexus>,
    generation: u32,
}

impl Registrations {
    /// Whether an operation that arrives by this path is let in.
    pub fn admits(&self, nexus: Nexus) -> bool {
        self.holder.is_none() || self.keys.contains_key(&nexus)
    }
    /// The key of this path.
    pub fn key(&self, nexus: Nexus) -> Option<FenceKey> {
        self.keys.get(&nexus).copied()
    }
    /// As everybody may read it.
    pub fn look(&self) -> Registrants {
        let mut keys: Vec<FenceKey> = self.keys.values().copied().collect();
        keys.sort_unstable();
        let reservation = self.holder.map(|nexus| Reservation {
            holder: self.keys.get(&nexus).copied(),
            kind: ReservationKind::ExclusiveRegistrants,
        });
        Registrants { keys, reservation, generation: self.generation }
    }

    /// What a head asks for by this path, as far as it changes keys and the reservation.
    ///
    /// # Errors
    /// As `base::FenceAct` says; then nothing has changed.
    pub fn carry_out(&mut self, nexus: Nexus, act: FenceAct) -> Result<Registrants, FenceError> {
        match act {
            FenceAct::Look => {}
            FenceAct::Register { key } => {
                if self.keys.insert(nexus, key) != Some(key) {
                    self.generation += 1;
                }
            }
            FenceAct::Reserve { key } => self.reserve(nexus, key)?,
            FenceAct::ShutOut { key, victim, process: _ } => {
                if key == victim {
                    return Err(FenceError::Ourselves);
                }
                self.check(nexus, key)?;
                let held_by_victim = self.holder.is_some_and(|h| self.keys.get(&h) == Some(&victim));
                if self.holder.is_some_and(|h| h != nexus) && !held_by_victim {
                    return Err(FenceError::Conflict);
                }
                let before = self.keys.len();
                self.keys.retain(|_, k| *k != victim);
                self.generation += u32::from(self.keys.len() < before);
                self.holder = Some(nexus);
            }
            FenceAct::Unregister { key } => {
                if self.keys.get(&nexus) == Some(&key) {
                    self.keys.remove(&nexus);
                    self.holder = self.holder.filter(|h| *h != nexus);
                    self.generation += 1;
                }
            }
        }
        Ok(self.look())
    }

    fn reserve(&mut self, nexus: Nexus, key: FenceKey) -> Result<(), FenceError> {
        self.check(nexus, key)?;
        if self.holder.is_some_and(|h| h != nexus) {
            return Err(FenceError::Conflict);
        }
        self.holder = Some(nexus);
        Ok(())
    }
    fn check(&self, nexus: Nexus, key: FenceKey) -> Result<(), FenceError> {
        if self.keys.get(&nexus) == Some(&key) { Ok(()) } else { Err(FenceError::NotRegistered) }
    }
}
