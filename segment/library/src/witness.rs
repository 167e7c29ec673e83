//! The witness: what really lies in the segments, by the page table.
//!
//! The one idea: the kernel says which pages are there and in which leaves (`PAGEMAP_SCAN`, since
//! Linux 6.7), and which frame is behind each (pagemap, for root). A leaf is right where its frames
//! follow each other and its address is to the leaf as its frame is. What the module maps it says
//! itself: there every frame is base and offset.

use std::ops::Range;

use pagelab_interpose::kernel;
use pagelab_interpose::scan::{NOWHERE, Question, regions};
use pagelab_interpose::segment::{Backed, Leaf};

use crate::{
    area::{Area, PAGE, PMD, PUD},
    breaks, count,
    ground::Ground,
    heap, module, pages,
};

/// The bit of `PAGEMAP_SCAN` for pages in a leaf of 2 MiB or more.
const HUGE: u64 = 1 << 6;
/// Of an entry of pagemap: its frame, and whether there is one.
const FRAME: u64 = (1 << 55) - 1;
const IS_THERE: u64 = 1 << 63;
/// Regions that are asked for at once.
const REGIONS: usize = 64;

/// What is seen.
const KINDS: usize = Backed::ALL.len();
struct Seen([usize; KINDS]);

/// Tells what lies in all segments now.
pub(crate) fn tell() {
    let Ok(file) = kernel::open(c"/proc/self/pagemap", libc::O_RDONLY) else { return };
    let mut seen = Seen([0; KINDS]);
    for area in [&heap::AREA, &breaks::AREA, &pages::AREA] {
        let is_seen = match area.file() {
            Some(_) => seen.frames(area),
            None => seen.leaves(file, area),
        };
        seen.add(Backed::Unseen, usize::from(is_seen.is_none()));
    }
    kernel::close(file);
    Backed::ALL.into_iter().zip(seen.0).for_each(|(kind, now)| count::tell(kind, now));
}

impl Seen {
    fn add(&mut self, kind: Backed, more: usize) {
        self.0[kind as usize] += more;
    }

    /// Looks at leaves of the kernel; `None` where nobody may see them here.
    fn leaves(&mut self, file: i32, area: &Area) -> Option<()> {
        let Range { start, end } = area.range();
        let question = Question { bits: HUGE, flags: 0 };
        let mut is_seen = true;
        regions(&file, start as u64..end as u64, question, &mut [NOWHERE; REGIONS], |region| {
            is_seen &=
                self.region(file, area, region.start..region.end, region.categories).is_some();
        })
        .ok()?;
        is_seen.then_some(())
    }

    /// Looks at the leaves of some addresses with these bits.
    fn region(&mut self, file: i32, area: &Area, part: Range<u64>, bits: u64) -> Option<()> {
        let part = usize::try_from(part.start).ok()?..usize::try_from(part.end).ok()?;
        if bits & HUGE == 0 {
            self.add(Backed::BaseSeen, part.len() / PAGE);
            return Some(());
        }
        let mut at = part.start;
        while at < part.end {
            let is_giant = area.ground(at) == Ground::Pool(Leaf::Pud);
            let size = if is_giant { PUD } else { PMD };
            let is_right = is_right(file, &(at..at + size))?;
            let seen = if is_giant { Backed::GiantSeen } else { Backed::LargeSeen };
            let right = if is_giant { Backed::GiantRight } else { Backed::LargeRight };
            self.add(seen, 1);
            self.add(right, usize::from(is_right));
            at += size;
        }
        Some(())
    }

    /// Looks at frames of the module; `None` where nobody may see them.
    fn frames(&mut self, area: &Area) -> Option<()> {
        let range = area.range();
        let mut base = None;
        let mut at = range.start;
        while at < range.end {
            let Ok(Some(found)) = module::mapped(area, at) else {
                // A leaf of pages is there page by page.
                let is_whole = at.is_multiple_of(PMD) && !module::may_be_cut(area, at);
                at += if is_whole { PMD } else { PAGE };
                continue;
            };
            let leaf = usize::try_from(found.leaf).ok()?;
            let phys = usize::try_from(found.phys?).ok()?;
            let pages = leaf / PAGE;
            let start = at / leaf * leaf;
            let base = *base.get_or_insert(phys.wrapping_sub(at - range.start));
            let is_right = phys == base.wrapping_add(at - range.start);
            self.add(Backed::FramesSeen, pages);
            self.add(Backed::FramesRight, if is_right { pages } else { 0 });
            let (seen, right) = match leaf {
                PUD => (Backed::GiantSeen, Backed::GiantRight),
                PMD => (Backed::LargeSeen, Backed::LargeRight),
                _ => {
                    self.add(Backed::BaseSeen, pages);
                    at = start + leaf;
                    continue;
                }
            };
            self.add(seen, 1);
            self.add(right, usize::from(phys % leaf == at % leaf));
            at = start + leaf;
        }
        Some(())
    }
}

/// Whether frames follow each other from one that lies in its leaf as its address does; `None`
/// where nobody may see them.
fn is_right(file: i32, leaf: &Range<usize>) -> Option<bool> {
    let mut first = None;
    let mut entries = [0_u8; 4096];
    for piece in leaf.clone().step_by(PMD) {
        if kernel::read_at(file, &mut entries, piece / PAGE * 8) != entries.len() {
            return None;
        }
        for (nth, entry) in entries.as_chunks().0.iter().enumerate() {
            let entry = u64::from_ne_bytes(*entry);
            let frame = usize::try_from(entry & FRAME).ok()?;
            if entry & IS_THERE != 0 && frame == 0 {
                return None;
            }
            let offset = (piece - leaf.start) / PAGE + nth;
            let first = *first.get_or_insert(frame);
            if entry & IS_THERE == 0 || frame != first + offset {
                return Some(false);
            }
        }
    }
    let alike = |frame: usize| (frame * PAGE) % leaf.len() == leaf.start % leaf.len();
    Some(first.is_some_and(alike))
}
