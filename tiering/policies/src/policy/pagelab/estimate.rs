//! How often pages will be accessed, from how often they were sampled.
//!
//! The one idea: a page that was sampled twice is not twice as hot as one that was sampled once; by
//! how much it is, the numbers of pages sampled once, twice and three times say. For counts that
//! are Poisson, whatever the rates are spread like, the mean rate of pages sampled `f` times is
//! `(f + 1) * n[f + 1] / n[f]` (Robbins, 1956). Where all pages are alike this is the same for all
//! `f`, so chance alone never makes a page look hot; for `f = 0` it is what pages that nobody has
//! sampled are worth. Pages are told apart by tier, by count, and by how dense their block was in
//! earlier windows, which the counts of this one do not depend on.

/// Counts that are told apart; the last one stands for more.
pub(super) const COUNTS: usize = 8;
/// Densities of blocks that are told apart.
pub(super) const CLASSES: usize = 8;
/// Fewer pages than this say nothing by themselves.
const FEW: u64 = 24;
/// Standard deviations that a careful guess is away from the likely one.
const NOISE: f64 = 2.0;

/// Where a block's density is, in shares of the mean, the upper ends.
const DENSITIES: [f32; CLASSES - 1] = [0.1, 0.25, 0.5, 0.8, 1.25, 2.0, 4.0];

/// The class of a block that was so dense, against the mean.
pub(super) fn class(density: f32, mean: f32) -> usize {
    let share = if mean > 0.0 { density / mean } else { 1.0 };
    DENSITIES.partition_point(|&end| end <= share)
}

/// A set of pages that look alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) is_top: bool,
    pub(super) class: usize,
    pub(super) count: usize,
}

impl Cell {
    /// A number below [`CELLS`].
    pub(super) const fn index(self) -> usize {
        (self.is_top as usize * CLASSES + self.class) * COUNTS + self.count
    }
}

/// Number of cells.
pub(super) const CELLS: usize = 2 * CLASSES * COUNTS;

/// Pages of each cell at the end of a window.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    pages: [u64; CELLS],
}

/// Mean samples in the next window of a cell's pages: a careful guess from below and from above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Histogram {
    pub(super) const fn new() -> Self {
        Self { pages: [0; CELLS] }
    }

    /// Pages of a cell, a bit for each.
    pub(super) fn add(&mut self, cell: Cell, pages: u64) {
        self.pages[cell.index()] += u64::from(pages.count_ones());
    }

    pub(super) fn pages(&self, cell: Cell) -> u64 {
        self.pages[cell.index()]
    }

    /// Cells of a tier that have pages.
    pub(super) fn cells(&self, is_top: bool) -> impl Iterator<Item = Cell> {
        let cell = move |at: usize| Cell { is_top, class: at / COUNTS, count: at % COUNTS };
        (0..CLASSES * COUNTS).map(cell).filter(|&cell| self.pages(cell) > 0)
    }

    /// What the pages of a cell can be expected to have.
    pub(super) fn rate(&self, cell: Cell) -> Rate {
        let mut rate = Rate { low: 0.0, high: f64::INFINITY };
        // More samples never mean a lower rate: a sparse cell inherits from those below it.
        for count in 0..=cell.count {
            let here = self.robbins(Cell { count, ..cell });
            rate.low = rate.low.max(here.low);
            rate.high = here.high.max(rate.low);
        }
        rate
    }

    fn robbins(&self, cell: Cell) -> Rate {
        let Cell { is_top, class, count } = cell;
        let next = (count + 1) as f64;
        let at = |class, count| self.pages(Cell { is_top, class, count });
        if count + 1 == COUNTS {
            // Of pages with more, all that is known is that they had as many.
            return Rate { low: 0.0, high: next + 2.0 };
        }
        let (mut here, mut more) = (at(class, count), at(class, count + 1));
        if count + 2 == COUNTS {
            // The last count stands for more, which would make this one look too hot.
            more = more.min(here);
        }
        if here < FEW {
            here = (0..CLASSES).map(|class| at(class, count)).sum();
            more = (0..CLASSES).map(|class| at(class, count + 1)).sum();
        }
        if here < FEW {
            return Rate { low: 0.0, high: next + 1.0 };
        }
        let (here, more) = (here as f64, more as f64);
        let noise = NOISE * libm::sqrt(more);
        Rate {
            low: next * (more - noise).max(0.0) / here,
            high: next * (more + noise + 1.0) / here,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of two rates, counted without chance.
    fn histogram(parts: &[(f64, f64)]) -> Histogram {
        let mut histogram = Histogram::new();
        for count in 0..COUNTS {
            let factorial: f64 = (1..=count).map(|number| number as f64).product();
            let pages: f64 = parts
                .iter()
                .map(|&(pages, rate)| pages * (-rate).exp() * rate.powf(count as f64) / factorial)
                .sum();
            let mut left = pages;
            while left >= 1.0 {
                histogram.add(Cell { is_top: false, class: 4, count }, 1);
                left -= 1.0;
            }
        }
        histogram
    }

    fn rate(histogram: &Histogram, count: usize) -> Rate {
        histogram.rate(Cell { is_top: false, class: 4, count })
    }

    #[test]
    fn where_all_are_alike_counts_mean_nothing() {
        let histogram = histogram(&[(1e5, 0.5)]);
        for count in 0..4 {
            let Rate { low, high } = rate(&histogram, count);
            assert!(low <= 0.5 && 0.5 <= high, "{count}: {low} {high}");
        }
        // So the best that can be said of one is never better than the worst of the other.
        assert!(rate(&histogram, 4).low <= rate(&histogram, 0).high);
    }

    #[test]
    fn a_hot_set_is_told_from_the_rest() {
        let histogram = histogram(&[(1e4, 4.0), (9e4, 0.05)]);
        assert!(rate(&histogram, 0).high < 0.2);
        assert!(rate(&histogram, 3).low > 3.0);
    }

    #[test]
    fn what_was_never_sampled_has_no_rate() {
        let histogram = histogram(&[(1e5, 0.0)]);
        assert_eq!(rate(&histogram, 0).low.to_bits(), 0.0_f64.to_bits());
        assert!(rate(&histogram, 0).high < 1e-4);
    }

    #[test]
    fn densities_have_classes() {
        assert_eq!(class(0.0, 1.0), 0);
        assert_eq!(class(1.0, 1.0), class(0.9, 1.0));
        assert_eq!(class(100.0, 1.0), CLASSES - 1);
        assert_eq!(class(0.0, 0.0), class(1.0, 1.0));
    }
}
