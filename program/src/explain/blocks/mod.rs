//! How densely memory is touched: what larger pages would have made of the same touches.
//!
//! The one idea: what a size would have made of a touch is decided when it faults, by the mapping
//! and the pages of that moment ([`super::block`]); it is counted by place. Where somebody took
//! pages away unseen, the touch is counted as unknown: it bounds a saving, it promises none. What
//! lies in a block of 2 MiB only later is what khugepaged could still join.
//!
//! Memory is bounded by what the program touches: 400 bytes for each 2 MiB, until the process ends.

use std::{
    collections::{BTreeMap, HashMap},
    ops::{AddAssign, Range},
};

pub use super::block::SIZES;
use super::{
    allowed,
    block::{Block, Extent, Fate, PAGES},
    kind::{Kind, Place},
    owners::Owner,
    places::{Area, Places},
};

/// The touched pages of every watched process.
#[derive(Debug, Default)]
pub struct Blocks {
    touched: HashMap<(u32, u64), ((Place, Owner), Block)>,
    counts: Densities,
    /// Processes that came from one by forks, by that one.
    families: HashMap<u32, u32>,
    /// Whether a block that was only loaded from can still become one page.
    loads_keep: bool,
}

/// What was touched, by the kind of place and whose it is.
pub type Densities = BTreeMap<(Place, Owner), Density>;

/// What was touched in one kind of place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Density {
    /// First touches that took a base page.
    pub faults: u64,
    /// Base pages with one or more of them.
    pub pages: u64,
    /// Of the first touches, those in memory that may have no larger pages.
    pub denied: u64,
    /// Of the first touches, those of a page that was touched before and given back.
    pub again: u64,
    /// Pages that came one by one and lie in a block of 2 MiB in the end.
    pub late: u64,
    /// The blocks of 2 MiB in which they lie.
    pub late_blocks: u64,
    /// For each of [`SIZES`]: what would have come as pages of that size.
    pub by_size: [Whole; SIZES.len()],
}

/// What would have come as pages of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Whole {
    /// Blocks that would have come.
    pub blocks: u64,
    /// First touches that would have brought them, or found them there.
    pub faults: u64,
    /// Base pages touched in them.
    pub pages: u64,
    /// Blocks times how often they would have come: the faults that this size takes.
    pub waves: u64,
    /// First touches that would have been among these or not: nobody knows.
    pub unknown: u64,
    /// Loads that took the zero page and would have found one of these there.
    pub reads: u64,
    /// Stores to zero pages that would have brought one of these, or found it there.
    pub rewrites: u64,
}

impl AddAssign<&Density> for Density {
    fn add_assign(&mut self, other: &Self) {
        self.faults += other.faults;
        self.pages += other.pages;
        self.denied += other.denied;
        self.again += other.again;
        self.late += other.late;
        self.late_blocks += other.late_blocks;
        for (whole, other) in self.by_size.iter_mut().zip(&other.by_size) {
            whole.blocks += other.blocks;
            whole.faults += other.faults;
            whole.pages += other.pages;
            whole.waves += other.waves;
            whole.unknown += other.unknown;
            whole.reads += other.reads;
            whole.rewrites += other.rewrites;
        }
    }
}

impl Blocks {
    /// Of this kernel.
    pub fn here() -> Self {
        Self { loads_keep: allowed::loads_keep_thp(), ..Self::default() }
    }

    /// What was seen of a page: whether it is the zero page or the file's, and whether it is there
    /// at all.
    pub fn page(&self, pid: u32, address: u64) -> (bool, bool) {
        let block = self.touched.get(&(pid, address >> 21));
        block.map_or((false, false), |(_, block)| block.page(page_of(address)))
    }

    /// A fault that brought no base page for a first touch, in an area that may have larger pages
    /// or not.
    pub fn other(
        &mut self,
        (pid, address): (u32, u64),
        area: Option<&Area>,
        kind: Kind,
        allowed: bool,
    ) {
        let page = page_of(address);
        let extent = area.filter(|area| allowed && self.loads_keep && !area.untold);
        let extent = extent.map(|area| extent_of(area, address));
        let block = self.block(pid, address, area, None);
        let (spared, came) = match kind {
            Kind::Read => (block.read(page, extent), false),
            Kind::ZeroWrite => block.rewrite(page),
            // The page of the file.
            Kind::FileMinor | Kind::FileMajor => return block.other(page, true),
            _ => return block.other(page, false),
        };
        if !came && !spared.contains(&true) {
            return;
        }
        let whose = self.touched[&(pid, address >> 21)].0;
        let density = self.counts.entry(whose).or_default();
        for (whole, spared) in density.by_size.iter_mut().zip(spared) {
            whole.reads += u64::from(spared && kind == Kind::Read);
            whole.rewrites += u64::from(spared && kind == Kind::ZeroWrite);
        }
        density.by_size[SIZES.len() - 1].waves += u64::from(came);
    }

    /// The first touch of a base page, in an area and of an owner; it may have larger pages or not.
    pub fn first(
        &mut self,
        pid: u32,
        address: u64,
        (area, owner): (Option<&Area>, Owner),
        allowed: bool,
    ) {
        let page = page_of(address);
        let block = self.block(pid, address, area, Some(owner));
        let is_again = block.was_touched(page);
        let fates = match area {
            Some(area) if allowed => {
                Some(block.first(page, extent_of(area, address), !area.untold))
            }
            _ => {
                block.denied(page);
                None
            }
        };
        let place = area.map_or(Place::Unknown, |area| area.place);
        let density = self.counts.entry((place, owner)).or_default();
        density.faults += 1;
        density.denied += u64::from(area.is_some() && !allowed);
        density.again += u64::from(is_again);
        for (whole, fate) in density.by_size.iter_mut().zip(fates.into_iter().flatten()) {
            whole.faults += u64::from(matches!(fate, Fate::Whole | Fate::Covered));
            whole.waves += u64::from(fate == Fate::Whole);
            whole.unknown += u64::from(fate == Fate::Unknown);
        }
    }

    fn block(
        &mut self,
        pid: u32,
        address: u64,
        area: Option<&Area>,
        owner: Option<Owner>,
    ) -> &mut Block {
        let new = || ((Place::Unknown, Owner::Unknown), Block::default());
        let ((place, old), block) = self.touched.entry((pid, address >> 21)).or_insert_with(new);
        *place = area.map_or(*place, |area| area.place);
        *old = owner.unwrap_or(*old);
        block
    }

    /// Whether nothing is known to be in the 2 MiB around an address.
    pub fn is_untouched(&self, pid: u32, address: u64) -> bool {
        self.touched.get(&(pid, address >> 21)).is_none_or(|(_, block)| block.present() == 0)
    }

    /// A process gave pages back, so many of which were there; where it unmapped them, with their
    /// page tables and from these mappings.
    pub fn take(&mut self, pid: u32, (start, end): (u64, u64), unmapped: Option<&Places>) -> u64 {
        let (start, end) = (start >> 12, end.saturating_add(4095) >> 12);
        let within = |at: u64| -> Extent {
            let base = at * PAGES;
            (start.saturating_sub(base).min(PAGES), end.saturating_sub(base).min(PAGES))
        };
        let mut pages = 0;
        let mut take = |at: u64, block: &mut Block| {
            if let Some(places) = unmapped {
                block.lay_whole |= lies_whole(places.find(pid, at << 21), at);
            }
            let before = block.present();
            block.take(within(at), unmapped.is_some());
            pages += before - block.present();
        };
        let blocks = start / PAGES..end.div_ceil(PAGES);
        // Whichever are fewer: the blocks of the range, or those that anything is known of.
        if blocks.end.saturating_sub(blocks.start) <= self.touched.len() as u64 {
            for at in blocks {
                if let Some((_, block)) = self.touched.get_mut(&(pid, at)) {
                    take(at, block);
                }
            }
        } else {
            for ((owner, at), (_, block)) in &mut self.touched {
                if *owner == pid && blocks.contains(at) {
                    take(*at, block);
                }
            }
        }
        pages
    }

    /// Pages of a process lie at other addresses now, as far as they were there.
    pub fn shift(&mut self, pid: u32, from: Range<u64>, to: u64) {
        let shifted = |page: u64| to.wrapping_add((page << 12).wrapping_sub(from.start));
        let (first, last) = (from.start >> 12, from.end >> 12);
        let blocks = (first / PAGES..last.div_ceil(PAGES)).filter_map(|at| {
            Some((at * PAGES, *self.touched.get(&(pid, at)).map(|(whose, _)| whose)?))
        });
        let mut pages = Vec::new();
        for (base, whose) in blocks.collect::<Vec<_>>() {
            for page in base.max(first)..(base + PAGES).min(last) {
                let (zero, seen) = self.page(pid, page << 12);
                if seen {
                    pages.push((shifted(page), zero, whose));
                }
            }
        }
        for (address, zero, whose) in pages {
            let new = || (whose, Block::default());
            let (_, block) = self.touched.entry((pid, address >> 21)).or_insert_with(new);
            block.other(page_of(address), zero);
        }
    }

    /// A process has what its parent had.
    pub fn fork(&mut self, pid: u32, parent: u32) {
        let of_parent = self.touched.iter_mut().filter(|((owner, _), _)| *owner == parent);
        let copies: Vec<_> = of_parent
            .map(|((_, at), (whose, block))| ((pid, *at), (*whose, block.copy())))
            .collect();
        self.touched.extend(copies);
        let family = *self.families.entry(parent).or_insert(parent);
        self.families.insert(pid, family);
    }

    /// Whether a page that a process shared at a fork is shared still: another process of its
    /// family has not stored to it, nor given it back; `None` where nobody knows.
    pub fn is_shared(&self, pid: u32, address: u64) -> Option<bool> {
        let is_shared = |pid: u32| {
            let block = self.touched.get(&(pid, address >> 21));
            block.is_some_and(|(_, block)| block.is_shared(page_of(address)))
        };
        let family = self.families.get(&pid).filter(|_| is_shared(pid))?;
        let mut others = self.families.iter().filter(|(other, of)| *of == family && **other != pid);
        Some(others.any(|(other, _)| is_shared(*other)))
    }

    /// A process ends, or becomes another program, with these mappings.
    pub fn end(&mut self, pid: u32, places: &Places) {
        let Self { touched, counts, families, .. } = self;
        families.remove(&pid);
        touched.retain(|(owner, at), (whose, block)| {
            if *owner == pid {
                count(block, places.find(pid, *at << 21), *at, counts.entry(*whose).or_default());
            }
            *owner != pid
        });
    }

    /// What was touched; processes that run on have these mappings.
    pub fn finish(mut self, places: &Places) -> Densities {
        for ((pid, at), (whose, block)) in &self.touched {
            let area = places.find(*pid, *at << 21);
            count(block, area, *at, self.counts.entry(*whose).or_default());
        }
        let is_any = |whole: &Whole| whole.reads + whole.rewrites > 0;
        self.counts.retain(|_, density| density.faults > 0 || density.by_size.iter().any(is_any));
        self.counts
    }
}

/// Adds what is left to count of a block when its process ends.
fn count(block: &Block, area: Option<&Area>, at: u64, density: &mut Density) {
    let pages = block.pages();
    density.pages += pages;
    for (size, whole) in SIZES.iter().zip(&mut density.by_size) {
        let (blocks, pages) = block.windows(*size);
        whole.blocks += blocks;
        whole.pages += pages;
    }
    if (block.lay_whole || lies_whole(area, at)) && block.is_in_pieces() {
        density.late += pages;
        density.late_blocks += 1;
    }
}

/// Whether a block lies in the area of its first address as a whole, and may be one page.
fn lies_whole(area: Option<&Area>, at: u64) -> bool {
    area.is_some_and(|area| area.may_be_huge && area.end >= (at + 1) << 21)
}

/// Which pages of the block around an address lie in an area.
fn extent_of(area: &Area, address: u64) -> Extent {
    let base = address >> 21 << 21;
    let inside = |at: u64| (at.saturating_sub(base) >> 12).min(PAGES);
    (inside(area.start), inside(area.end))
}

fn page_of(address: u64) -> u64 {
    address >> 12 & (PAGES - 1)
}

#[cfg(test)]
mod tests;
