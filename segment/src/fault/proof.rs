//! What proves a round of a segment: where its leaves lie, and that what was given back is zero.
//!
//! The one idea: words that nobody touches are marked before memory is given back, one in each
//! 64 KiB; when it is taken again all of them must be zero. They lie in other cache lines than
//! those that the program stores to, so that looking leaves these as they were.

use pagelab_bench::{Error, Witness};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area,
    memory::{
        Ranges, Residency,
        account::{self, smaps_kib},
        leaves,
    },
    memtype::Segment,
};

use super::asked::Place;

/// Distance of the words.
const STEP: usize = 64 << 10;
/// Leaves whose frames are looked at, at most.
const LOOKED_AT: usize = 32;
/// Leaves of the module that are asked about, at most.
const ASKED: usize = 1024;
/// What is written.
const MARK: u64 = 0x5345_474d_454e_5401;

/// The words of so many bytes: never in the first line of a base page.
fn places(bytes: usize) -> impl Iterator<Item = usize> {
    (0..bytes / STEP).map(|nth| {
        let word = (nth.wrapping_mul(2_654_435_761) % (STEP / 8)) | 8;
        nth * STEP + word * 8
    })
}

/// How many words there are.
pub(super) fn words(bytes: usize) -> u64 {
    places(bytes).count() as u64
}

/// Writes to them.
pub(super) fn mark(area: &Area) {
    places(area.layout().bytes()).for_each(|at| area.set_word(at, MARK ^ at as u64));
}

/// Those that are not zero.
pub(super) fn not_zero(area: &Area) -> u64 {
    places(area.layout().bytes()).filter(|at| area.word(*at) != 0).count() as u64
}

/// What was found of where the leaves lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    present: u64,
    huge: u64,
    pooled: u64,
    /// Of the leaves looked at; `None` where the kernel does not tell this user.
    astray: Option<u64>,
}

impl Found {
    /// Looks.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn of(found: &Residency, ranges: &Ranges, place: &Place) -> Result<Self, Error> {
        // The kernel may take a large page that is mapped once for a shared one.
        let kib = |field| smaps_kib(ranges, field);
        let pooled = (kib("Private_Hugetlb")? + kib("Shared_Hugetlb")?) / 4;
        let all = ranges.iter().flat_map(|(start, end)| leaves(start, end, place.leaf));
        let large: Vec<(usize, usize)> = all.filter(|(_, bytes)| *bytes > 4096).collect();
        let asked = large.len().min(LOOKED_AT);
        let mut astray = (asked > 0).then_some(0);
        for nth in 0..asked {
            let (start, bytes) = large[nth * large.len() / asked];
            let one = account::Frames::of_range(start, start + bytes)?.astray();
            astray = astray.zip(one).map(|(all, one)| all + one);
        }
        Ok(Self { present: found.present, huge: found.huge, pooled, astray })
    }

    /// Claims what the page table must show.
    pub fn testify(&self, place: &Place, witness: &mut Witness) {
        let [_, large, giant] = place.counts();
        let whole = place.bytes as u64 / 4096;
        witness.expect(Check::Present, whole, self.present);
        let huge = (large << 9) + (giant << 18);
        witness.expect(Check::Huge, huge, self.huge);
        witness.expect(Check::Pooled, place.pooled(), self.pooled);
        if let Some(astray) = self.astray {
            witness.expect(Check::Astray, 0, astray);
        }
    }
}

/// What was found of the leaves of a segment of the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frames {
    other_leaf: u64,
    astray: u64,
}

impl Frames {
    /// Asks the page table about leaves from one end to the other.
    ///
    /// # Errors
    /// When the module does not answer.
    pub fn of(segment: &Segment, ranges: &Ranges, place: &Place) -> Result<Self, Error> {
        let all = ranges.iter().flat_map(|(start, end)| leaves(start, end, place.leaf));
        let all: Vec<(usize, usize)> = all.collect();
        let base = all.first().map_or(0, |(start, _)| *start);
        let (first, mut found) = (segment.leaf(base)?.phys, Self::default());
        let asked = all.len().min(ASKED);
        for nth in 0..asked {
            let (start, bytes) = all[nth * all.len() / asked];
            // Its last page, too: nothing of the leaf may be elsewhere.
            for at in [start, start + bytes - 4096] {
                let leaf = segment.leaf(at)?;
                found.other_leaf += u64::from(leaf.bytes != bytes as u64);
                if let (Some(first), Some(phys)) = (first, leaf.phys) {
                    found.astray += u64::from(phys != first + (at - base) as u64);
                }
            }
        }
        Ok(found)
    }

    /// Claims that all are as they must be.
    pub fn testify(self, witness: &mut Witness) {
        let Self { other_leaf, astray } = self;
        witness.expect(Check::SegmentLeaves, 0, other_leaf);
        witness.expect(Check::SegmentFrames, 0, astray);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_marked_word_lies_where_the_loop_stores() {
        let all: Vec<usize> = places(4 << 20).collect();
        assert_eq!((all.len() as u64, words(4 << 20)), (64, 64));
        assert!(all.iter().all(|at| at % 4096 >= 64 && at.is_multiple_of(8)));
        assert!(all.iter().enumerate().all(|(nth, at)| at / STEP == nth));
    }
}
