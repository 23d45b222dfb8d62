//! Memory as stamps: one number for each 4096 bytes, and real bytes where bitmap blocks are made.

use base::Slice;

#[derive(Default)]
pub struct Stamps {
    stamps: Vec<u64>,
    bytes: std::collections::BTreeMap<u64, Vec<u8>>,
    pub end: u64,
}

impl Stamps {
    pub fn allocate(&mut self, len: u32) -> Slice {
        let slice = Slice::new(self.end, len);
        self.end += u64::from(len).next_multiple_of(4096);
        self.stamps.resize((self.end / 4096) as usize, u64::MAX);
        slice
    }
    pub fn get(&self, at: u64) -> u64 {
        self.stamps[(at / 4096) as usize]
    }
    pub fn set(&mut self, at: u64, stamp: u64) {
        self.stamps[(at / 4096) as usize] = stamp;
    }
    pub fn block_bytes(&mut self, s: Slice) -> &mut [u8] {
        assert_eq!((s.len, s.at % 4096), (4096, 0), "only bitmap blocks are looked at");
        self.bytes.entry(s.at).or_insert_with(|| vec![0xaa; 4096])
    }
}
