//! What a drive holds in one of its layers, by sector.

use super::Sector;
use core::ops::Range;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Sectors of a page: neighbours, which are found together.
pub(super) const PAGE: u64 = 16;

type Page = [Option<Sector>; PAGE as usize];

/// Contents of sectors, in pages of which none is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer(BTreeMap<u64, Box<Page>>);

impl Layer {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn get(&self, sector: u64) -> Option<&Sector> {
        self.page(sector / PAGE)?[place(sector)].as_ref()
    }
    pub fn page(&self, number: u64) -> Option<&Page> {
        self.0.get(&number).map(|page| &**page)
    }
    /// What was there before.
    pub fn insert(&mut self, sector: u64, contents: Sector) -> Option<Sector> {
        self.0.entry(sector / PAGE).or_default()[place(sector)].replace(contents)
    }
    /// What was there.
    pub fn remove(&mut self, sector: u64) -> Option<Sector> {
        let page = self.0.get_mut(&(sector / PAGE))?;
        let contents = page[place(sector)].take()?;
        if page.iter().all(Option::is_none) {
            self.0.remove(&(sector / PAGE));
        }
        Some(contents)
    }
    /// Takes all that another layer has.
    pub fn take(&mut self, newer: Layer) {
        for (number, page) in newer.0 {
            match self.0.entry(number) {
                Entry::Vacant(free) => {
                    free.insert(page);
                }
                Entry::Occupied(mut older) => {
                    for (old, new) in older.get_mut().iter_mut().zip(*page) {
                        if new.is_some() {
                            *old = new;
                        }
                    }
                }
            }
        }
    }
    /// Numbers of the pages that a range of sectors touches, in order.
    pub fn pages(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        self.0.range(pages_of(&range)).map(|(number, _)| *number)
    }
    /// What lies in a range of sectors, in order.
    pub fn range(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Sector)> {
        let pages = self.0.range(pages_of(&range));
        let all = pages.flat_map(|(number, page)| (number * PAGE..).zip(page.iter()));
        let held = all.filter_map(|(sector, contents)| Some((sector, contents.as_ref()?)));
        held.filter(move |(sector, _)| range.contains(sector))
    }
    /// All that it has, in order.
    pub fn into_sectors(self) -> impl Iterator<Item = (u64, Sector)> {
        let all = self.0.into_iter().flat_map(|(number, page)| (number * PAGE..).zip(*page));
        all.filter_map(|(sector, contents)| Some((sector, contents?)))
    }
}

fn place(sector: u64) -> usize {
    (sector % PAGE) as usize
}

fn pages_of(sectors: &Range<u64>) -> Range<u64> {
    sectors.start / PAGE..sectors.end.div_ceil(PAGE)
}
