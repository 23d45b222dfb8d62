//! What the bitmaps of an array's legs say together.

use crate::steward::context::open::OpenDrive;
use crate::steward::procedures::Procedures;
use array::format::LegState;
use array::{Bitmap, Geometry};
use base::{Bug, Uuid, planted};

/// A leg, as far as it has to do with which regions are dirty.
pub(crate) struct Marked {
    pub state: LegState,
    pub open: Option<OpenDrive>,
}

impl Procedures {
    /// Regions that are dirty by the bitmaps of these legs, which are all of an array: at its import, or while it is halted.
    pub(in crate::steward) async fn assemble_dirty(
        &self,
        geometry: &Geometry,
        uuid: Uuid,
        legs: &[Marked],
    ) -> Bitmap {
        if !geometry.redundant() {
            return Bitmap::new(geometry.regions());
        }
        // What a leg lacks that lacks everything is in no bitmap yet.
        if legs.iter().any(|l| l.state == LegState::RebuildingFull) {
            return Bitmap::full(geometry.regions());
        }
        let mut current = vec![];
        for open in legs.iter().filter(|l| l.state == LegState::InSync).filter_map(|l| l.open.as_ref()) {
            current.push(self.read_bitmap(open).await);
        }
        let current: Vec<Option<&[u8]>> = current.iter().map(Option::as_deref).collect();
        let mut dirty = array::merge(geometry, uuid, &current).0;
        // A leg that rebuilds may have been written where no other bitmap says so.
        let others = legs.iter().filter(|l| l.state != LegState::InSync);
        for open in others.filter_map(|l| l.open.as_ref()).filter(|_| !planted(Bug::OwnBitmapIgnored)) {
            let own = self.read_bitmap(open).await;
            dirty.union(&array::merge(geometry, uuid, &[own.as_deref()]).0);
        }
        dirty
    }
}
