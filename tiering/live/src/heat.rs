//! Where the hottest memory of a process lies, by address.
//!
//! The one idea: a byte for each page has the last eight looks, as the policies have it, but it is
//! ours, whatever the policy. Pages that most of the looks saw are hot; those that lie near each
//! other make a range, which says how many of its pages are hot: a range of few hot pages among
//! many others does not pass for a hot range.

use std::ops::Range;

use pagelab_tier::{BLOCK_PAGES, Run};
use serde::{Deserialize, Serialize};

use crate::PAGE;

/// Pages that are not hot and still lie within a range, one after the other.
const GAP: u64 = 16;
const BLOCK: usize = BLOCK_PAGES as usize;

/// A range, and what is hot of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotRange {
    /// Address of its first hot page.
    pub start: u64,
    /// Address after its last.
    pub end: u64,
    /// Pages of it that are hot.
    pub hot: u64,
    /// Pages of it.
    pub pages: u64,
}

/// Looks of each page.
#[derive(Debug, Default)]
pub(crate) struct Heat {
    blocks: Vec<[u8; BLOCK]>,
    looks: u32,
}

impl Heat {
    /// A look saw these pages, by their numbers.
    pub(crate) fn look(&mut self, pages: u64, used: &[Run]) {
        let blocks = usize::try_from(pages).unwrap_or(0).div_ceil(BLOCK);
        self.blocks.resize(blocks, [0; BLOCK]);
        for seen in self.blocks.as_flattened_mut() {
            *seen <<= 1;
        }
        self.looks = (self.looks + 1).min(8);
        for run in used {
            let first = run.first as usize;
            let run = self.blocks.as_flattened_mut().get_mut(first..first + run.count as usize);
            for seen in run.into_iter().flatten() {
                *seen |= 1;
            }
        }
    }

    /// The ranges with most hot pages, and how many pages are hot in all; `starts` are the
    /// addresses of the blocks.
    pub(crate) fn hottest(&self, starts: &[u64], most: usize) -> (u64, Vec<HotRange>) {
        let needed = self.looks.div_ceil(2).max(1);
        let mut pages: Vec<u64> = Vec::new();
        for (block, start) in self.blocks.iter().zip(starts) {
            let hot = block.iter().zip(0_u64..).filter(|(seen, _)| seen.count_ones() >= needed);
            pages.extend(hot.map(|(_, page)| start + page * PAGE));
        }
        pages.sort_unstable();
        let mut ranges: Vec<HotRange> = Vec::new();
        for page in &pages {
            let Range { start, end } = *page..*page + PAGE;
            match ranges.last_mut().filter(|range| start - range.end <= GAP * PAGE) {
                Some(range) => (range.end, range.hot) = (end, range.hot + 1),
                None => ranges.push(HotRange { start, end, hot: 1, pages: 0 }),
            }
        }
        for range in &mut ranges {
            range.pages = (range.end - range.start) / PAGE;
        }
        ranges.sort_by_key(|range| (std::cmp::Reverse(range.hot), range.start));
        ranges.truncate(most);
        (pages.len() as u64, ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_pages_that_lie_near_each_other_are_a_range_that_says_how_many_are_hot() {
        let mut heat = Heat::default();
        let run = |first, count| Run { first, count };
        let starts = [1 << 30, 1 << 40];
        for look in 0..8 {
            let once = run(900 + look, 1);
            heat.look(1024, &[run(3, 4), run(10, 1), run(500, 1), once]);
        }
        let (hot, ranges) = heat.hottest(&starts, 10);
        assert_eq!((hot, ranges.len()), (6, 2));
        let at = |page: u64| (1 << 30) + page * PAGE;
        assert_eq!(ranges[0], HotRange { start: at(3), end: at(11), hot: 5, pages: 8 });
        assert_eq!(ranges[1], HotRange { start: at(500), end: at(501), hot: 1, pages: 1 });
        assert_eq!(heat.hottest(&starts, 1).1.len(), 1);
        for _ in 0..8 {
            heat.look(1024, &[]);
        }
        assert_eq!(heat.hottest(&starts, 10), (0, vec![]));
    }

    #[test]
    fn a_page_that_there_is_not_is_no_page() {
        let mut heat = Heat::default();
        heat.look(512, &[Run { first: 510, count: 9 }]);
        assert_eq!(heat.hottest(&[0], 10), (0, vec![]));
    }
}
