//! Random accesses: how likely each page is, drawn in constant time.
//!
//! The one idea: pages that are equally likely share a bin, and a program's change of interest is a
//! rotation of the page numbers. So a distribution over any number of pages is some hundred bins,
//! and "how often is this page accessed between here and there" has an answer without drawing.

use std::cell::Cell;

use super::curve::power;
use crate::random::Random;

/// Ranks of Zipf's law that have a bin of their own; behind them a bin spans `1/SPAN` of its rank.
const EXACT: u32 = 512;
const SPAN: u32 = 128;
/// Bins of a bell curve.
const BELL_BINS: u32 = 1024;

/// Pages that are equally likely: how many, from which index on.
#[derive(Debug, Clone, Copy)]
struct Bin {
    first: u32,
    count: u32,
}

/// What a bin is drawn by: small, so that all of them stay near.
#[derive(Debug, Clone, Copy)]
struct Choice {
    /// This bin is kept when a random number is below it.
    keep: u64,
    /// The bin that is taken otherwise.
    alias: u32,
}

/// A stretch of accesses with one rotation.
#[derive(Debug, Clone, Copy)]
struct Phase {
    end: f64,
    shift: u32,
}

/// How likely each page is, now and later.
#[derive(Debug, Clone)]
pub(super) struct Popularity {
    pages: u32,
    bins: Vec<Bin>,
    choices: Vec<Choice>,
    /// The probability of one page of each bin.
    weights: Vec<f64>,
    /// The page at each index; `None`: its own number.
    order: Option<Vec<u32>>,
    /// The bin of each page; `None`: there is one bin.
    class: Option<Vec<u16>>,
    phases: Vec<Phase>,
    phase: usize,
    /// Accesses of each page where their number is fixed beforehand.
    fixed: Option<Fixed>,
}

/// Draws without replacement: a page that was drawn has one access less to be drawn.
#[derive(Debug, Clone)]
struct Fixed {
    each: f64,
    drawn: Vec<Cell<u32>>,
}

impl Fixed {
    /// Whether an access that is still to be drawn was hit; then it is gone.
    fn takes(&self, page: u32, random: &mut Random) -> bool {
        let drawn = &self.drawn[page as usize];
        let gone = f64::from(drawn.get()) / self.each;
        let is_left = !random.chance(gone);
        drawn.set(drawn.get() + u32::from(is_left));
        is_left
    }
}

impl Popularity {
    /// Bins of so many pages and of so much weight together.
    pub(super) fn new(parts: &[(u32, f64)], scatter: Option<&mut Random>) -> Self {
        let total: f64 = parts.iter().map(|part| part.1).sum();
        let (mut bins, mut weights) = (Vec::new(), Vec::new());
        let mut first = 0;
        for &(count, weight) in parts.iter().filter(|part| part.0 > 0) {
            weights.push(weight / total / f64::from(count));
            bins.push(Bin { first, count });
            first += count;
        }
        let choices = choices(&bins, &weights);
        let order = scatter.map(|random| {
            let mut order: Vec<u32> = (0..first).collect();
            random.shuffle(&mut order);
            order
        });
        let class = (bins.len() > 1).then(|| {
            let mut class = vec![0; first as usize];
            for (number, bin) in (0_u16..).zip(&bins) {
                for index in bin.first..bin.first + bin.count {
                    let page = order.as_ref().map_or(index, |order| order[index as usize]);
                    class[page as usize] = number;
                }
            }
            class
        });
        let phases = vec![Phase { end: f64::INFINITY, shift: 0 }];
        Self { pages: first, bins, choices, weights, order, class, phases, phase: 0, fixed: None }
    }

    /// Every page alike.
    pub(super) fn uniform(pages: u32) -> Self {
        Self::new(&[(pages, 1.0)], None)
    }

    /// Every page as often as another, as many times as `total` accesses make.
    pub(super) fn even(pages: u32, total: f64) -> Self {
        let each = (total / f64::from(pages)).max(1.0);
        let fixed = Fixed { each, drawn: vec![Cell::new(0); pages as usize] };
        Self { fixed: Some(fixed), ..Self::uniform(pages) }
    }

    /// Zipf's law over pages in random order.
    pub(super) fn zipf(pages: u32, exponent: f64, random: &mut Random) -> Self {
        let mut parts = Vec::new();
        let mut first = 0;
        while first < pages {
            let span = if first < EXACT { 1 } else { first / SPAN };
            let count = span.min(pages - first);
            let middle = f64::from(first) + 0.5 * f64::from(count + 1);
            parts.push((count, f64::from(count) / power(middle, exponent)));
            first += count;
        }
        Self::new(&parts, Some(random))
    }

    /// A bell curve around the middle page; `sigma` is a share of all pages.
    pub(super) fn bell(pages: u32, sigma: f64) -> Self {
        let bins = BELL_BINS.min(pages);
        let edge = |bin: u32| (u64::from(pages) * u64::from(bin) / u64::from(bins)) as f64;
        let part = |bin: u32| {
            let middle = 0.5 * (edge(bin) + edge(bin + 1));
            let far = (middle / f64::from(pages) - 0.5) / sigma;
            let count = edge(bin + 1) - edge(bin);
            (whole(count), count * libm::exp(-0.5 * far * far))
        };
        let parts: Vec<(u32, f64)> = (0..bins).map(part).collect();
        Self::new(&parts, None)
    }

    /// A hot set that gets `share` of the accesses.
    pub(super) fn hot(pages: u32, hot: u32, share: f64, scatter: Option<&mut Random>) -> Self {
        if hot >= pages {
            return Self::uniform(pages);
        }
        Self::new(&[(hot, share), (pages - hot, 1.0 - share)], scatter)
    }

    /// The pages rotate by `step` in `count` equal stretches of `total` accesses.
    pub(super) fn rotating(mut self, step: u32, count: u32, total: f64) -> Self {
        let phase = |index: u32| Phase {
            end: if index + 1 == count {
                f64::INFINITY
            } else {
                total * f64::from(index + 1) / f64::from(count)
            },
            shift: whole((u64::from(step) * u64::from(index) % u64::from(self.pages)) as f64),
        };
        self.phases = (0..count.max(1)).map(phase).collect();
        self
    }

    pub(super) const fn pages(&self) -> u32 {
        self.pages
    }

    /// Where the present stretch ends, in accesses.
    pub(super) fn change(&self) -> f64 {
        self.phases[self.phase].end
    }

    /// Which stretch it is.
    pub(super) const fn phase(&self) -> usize {
        self.phase
    }

    /// Goes on to the stretch that `at` lies in.
    pub(super) fn enter(&mut self, at: f64) {
        while at >= self.phases[self.phase].end {
            self.phase += 1;
        }
    }

    /// A page, by the present stretch.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u32 {
        let mut page = self.any(random);
        if let Some(fixed) = &self.fixed {
            while !fixed.takes(page, random) {
                page = self.any(random);
            }
        }
        page
    }

    #[inline]
    fn any(&self, random: &mut Random) -> u32 {
        let index = if self.bins.len() > 1 { self.index(random) } else { random.below(self.pages) };
        let page = self.order.as_ref().map_or(index, |order| order[index as usize]);
        self.turned(page)
    }

    /// An index, by its bin.
    #[inline]
    fn index(&self, random: &mut Random) -> u32 {
        let at = random.below(whole_len(self.choices.len()));
        let Choice { keep, alias } = self.choices[at as usize];
        // No branch: which of the two it is, nobody can foresee.
        let is_kept = u32::from(random.next() < keep).wrapping_neg();
        let bin = self.bins[(at & is_kept | alias & !is_kept) as usize];
        bin.first + random.below(bin.count)
    }

    /// A page after the rotation of the present stretch.
    #[inline]
    fn turned(&self, page: u32) -> u32 {
        let page = page + self.phases[self.phase].shift;
        if page >= self.pages { page - self.pages } else { page }
    }

    /// As many pages as there is room for, as that many calls of [`Self::draw`] would say; none
    /// where each draw depends on the last.
    pub(super) fn draw_many(&self, random: &mut Random, pages: &mut [u32]) -> bool {
        if self.fixed.is_some() {
            return false;
        }
        if self.bins.len() > 1 {
            pages.fill_with(|| self.index(random));
        } else {
            pages.fill_with(|| random.below(self.pages));
        }
        // All at once: each is somewhere else in memory, and waits for nothing.
        if let Some(order) = &self.order {
            for page in &mut *pages {
                *page = order[*page as usize];
            }
        }
        for page in pages {
            *page = self.turned(*page);
        }
        true
    }

    /// The probability of a page, in the present stretch.
    #[inline]
    pub(super) fn weight(&self, page: u32) -> f64 {
        self.weight_in(page, self.phases[self.phase].shift)
    }

    #[inline]
    fn weight_in(&self, page: u32, shift: u32) -> f64 {
        let Some(class) = &self.class else { return self.weights[0] };
        let at = if page >= shift { page - shift } else { page + self.pages - shift };
        self.weights[class[at as usize] as usize]
    }

    /// Expected accesses to a page between two counts of accesses.
    pub(super) fn expected(&self, page: u32, from: f64, to: f64) -> f64 {
        let mut sum = 0.0;
        let mut start = from;
        for phase in self.stretches(from) {
            let end = phase.end.min(to);
            if end > start {
                sum += self.weight_in(page, phase.shift) * (end - start);
            }
            start = phase.end;
            if start >= to {
                break;
            }
        }
        sum
    }

    /// The count at which a page is accessed next, after `at`; infinite where it never is.
    pub(super) fn next(&self, page: u32, at: f64, random: &mut Random) -> f64 {
        let mut left = random.exponential();
        let mut start = at;
        for phase in self.stretches(at) {
            let weight = self.weight_in(page, phase.shift);
            if weight > 0.0 {
                let due = start + left / weight;
                if due < phase.end {
                    return due;
                }
                left -= (phase.end - start) * weight;
            }
            start = phase.end;
        }
        f64::INFINITY
    }

    fn stretches(&self, from: f64) -> impl Iterator<Item = &Phase> {
        let first = self.phases.partition_point(|phase| phase.end <= from);
        self.phases[first..].iter()
    }
}

/// A non-negative whole number that fits, as it is by construction here.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "by construction")]
fn whole(value: f64) -> u32 {
    value as u32
}

#[expect(clippy::cast_possible_truncation, reason = "a few thousand bins")]
const fn whole_len(len: usize) -> u32 {
    len as u32
}

/// Vose's way of filling an alias table.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of 0 to 2^64")]
fn choices(bins: &[Bin], weights: &[f64]) -> Vec<Choice> {
    let parts = bins.len() as f64;
    let scale = |(bin, weight): (&Bin, &f64)| weight * f64::from(bin.count) * parts;
    let mut left: Vec<f64> = bins.iter().zip(weights).map(scale).collect();
    let mut choices = vec![Choice { keep: u64::MAX, alias: 0 }; bins.len()];
    let (mut poor, mut rich): (Vec<usize>, Vec<usize>) =
        (0..bins.len()).partition(|&at| left[at] < 1.0);
    while let (Some(needy), Some(&giver)) = (poor.pop(), rich.last()) {
        choices[needy].keep = (left[needy] * 18_446_744_073_709_551_616.0) as u64;
        choices[needy].alias = whole_len(giver);
        left[giver] -= 1.0 - left[needy];
        if left[giver] < 1.0 {
            rich.pop();
            poor.push(giver);
        }
    }
    choices
}

#[cfg(test)]
mod tests;
