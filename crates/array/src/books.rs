//! Books: what an instance knows of the array's regions, for worlds that compare it with what others know and with what lies on the legs.
//! Nobody asks for them in the product.

use crate::array::Array;
use crate::bitmap::Bitmap;
use crate::geometry::Lanes;

/// What one instance knows. Sets are of regions of the whole array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayBooks {
    /// The shard that it is on.
    pub shard: u16,
    /// Which shard has each lane.
    pub lanes: Lanes,
    /// The epoch of the members that it knows, and the last one that it knows to be on record.
    pub epoch: u64,
    /// See `epoch`.
    pub recorded: u64,
    /// Places of legs that it writes nothing more to, whatever the members say.
    pub lost: Vec<usize>,
    /// Own regions whose bit is set or about to be, and those of them whose bit is durable on every leg in sync.
    pub wanted: Bitmap,
    /// See `wanted`.
    pub durable: Bitmap,
    /// Regions of all lanes that may differ between legs in sync since a crash; own ones are taken out as they are made the same. None: no
    /// crash, or that is over.
    pub unclean: Option<Bitmap>,
    /// Regions of all lanes that may have uncleared pieces, and the numbers of own pieces that are uncleared.
    pub uncleared: Bitmap,
    /// See `uncleared`.
    pub pieces: Vec<u32>,
    /// Bytes of a piece.
    pub piece_bytes: u64,
    /// The last mark of returned space, whether it is under way, and the life of the map that it is of.
    pub marks: u32,
    /// See `marks`.
    pub marking: bool,
    /// See `marks`.
    pub life: u64,
}

impl Array {
    /// What it knows.
    pub fn books(&self) -> ArrayBooks {
        let (marks, marking, life) = self.uncleared.mark();
        ArrayBooks {
            shard: self.shard,
            lanes: self.lanes,
            epoch: self.epoch,
            recorded: self.recorded,
            lost: self.legs.iter().enumerate().filter(|(_, leg)| leg.lost).map(|(place, _)| place).collect(),
            wanted: self.of_regions(self.own_regions(self.intent.wanted())),
            durable: self.of_regions(self.own_regions(self.intent.durable())),
            unclean: self.unclean.clone(),
            uncleared: self.of_regions(self.uncleared.regions()),
            pieces: self.uncleared.own_pieces().collect(),
            piece_bytes: self.uncleared.piece_bytes(),
            marks,
            marking,
            life,
        }
    }
    /// The regions of numbers here. Some numbers are of regions beyond the array's end.
    fn own_regions(&self, locals: &Bitmap) -> impl Iterator<Item = u32> {
        let all = locals.iter().map(move |local| self.intent.region(local));
        all.filter(move |region| *region < self.geometry.regions())
    }
    fn of_regions(&self, regions: impl Iterator<Item = u32>) -> Bitmap {
        let mut set = Bitmap::new(self.geometry.regions());
        for region in regions {
            set.set(region);
        }
        set
    }
}
