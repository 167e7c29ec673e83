//! Counts that cool, in a histogram of powers of two; the hottest bins that fit are hot.
//!
//! The one idea, which is MEMTIS's: the threshold is not a number that somebody sets. It is the
//! lowest bin for which all pages of it and of those above still fit into the top tier.

use super::{Counts, Move, Policy, PolicySpec, Sample, Setting, World, Young, rank};
use crate::{spec::Parameter, whole};

/// What it can be told.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::real("cool", "samples a page, on average, after which counts halve", 4.0, 0.01, 1e6),
    Parameter::count("batch", "pages that are moved in one pass, at most", 4096.0, 1.0, 1e9),
];

const BINS: usize = 17;

/// Counts of all pages.
#[derive(Debug)]
struct Histogram {
    samples: Vec<u16>,
    /// Pages of each bin when counts were halved, and those that came to it from below since.
    bins: [u64; BINS],
    came: [u64; BINS + 1],
    cool: u64,
    since: u64,
    batch: usize,
    /// Pages of lower tiers that were seen and may be hot.
    candidates: Vec<u32>,
    hand: u32,
    counts: Counts,
    /// Where samples of lower tiers are put side by side.
    room: Vec<Sample>,
}

pub(super) fn build(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    let pages = setting.pages as usize;
    let mut bins = [0; BINS];
    bins[0] = u64::from(setting.pages);
    Box::new(Histogram {
        samples: vec![0; pages],
        bins,
        came: [0; BINS + 1],
        cool: whole(spec.value("cool") * f64::from(setting.pages)).max(1),
        since: 0,
        batch: usize::try_from(spec.count("batch")).unwrap_or(usize::MAX),
        candidates: Vec::new(),
        hand: 0,
        counts: Counts::default(),
        room: Vec::new(),
    })
}

/// The bin of a count: 0, 1, 2-3, 4-7...
const fn bin(count: u16) -> usize {
    (u16::BITS - count.leading_zeros()) as usize
}

impl Histogram {
    fn cool(&mut self) {
        (self.bins, self.came) = ([0; BINS], [0; BINS + 1]);
        for count in &mut self.samples {
            *count /= 2;
            self.bins[bin(*count)] += 1;
        }
        self.since = 0;
    }

    /// The lowest bin that fits; pages that were never seen are never hot.
    fn threshold(&self, top_pages: u64) -> usize {
        let mut sum = 0;
        for at in (1..BINS).rev() {
            sum += self.bins[at] + self.came[at] - self.came[at + 1];
            if sum > top_pages {
                return at + 1;
            }
        }
        1
    }

    /// The candidates with most samples, the most first, and of equals by number; not more than a
    /// batch.
    fn hottest(&mut self, threshold: usize, world: &World<'_>) -> Vec<u32> {
        // The order as a number: comparing two of them looks nothing up.
        let key = |page: u32| {
            let count = self.samples[page as usize];
            let is_hot = !world.is_top(page) && bin(count) >= threshold;
            is_hot.then(|| u64::from(u16::MAX - count) << 32 | u64::from(page))
        };
        let mut left: Vec<u64> = self.candidates.drain(..).filter_map(key).collect();
        let mut hot: Vec<u64> = Vec::new();
        while hot.len() < self.batch && !left.is_empty() {
            // The best of what is left, of which some are there more than once.
            let most = self.batch.min(left.len());
            if most < left.len() {
                left.select_nth_unstable(most);
            }
            let rest = left.split_off(most);
            left.sort_unstable();
            hot.append(&mut left);
            hot.dedup();
            left = rest;
        }
        hot.truncate(self.batch);
        hot.into_iter().map(|key| u32::try_from(key & u64::from(u32::MAX)).unwrap_or(0)).collect()
    }

    /// Pages of the top tier that are below the threshold, by a hand that goes round.
    fn victims(&mut self, wanted: usize, threshold: usize, world: &World<'_>) -> Vec<u32> {
        let mut victims = Vec::new();
        for _ in 0..world.place.len() {
            if victims.len() == wanted {
                break;
            }
            let page = self.hand;
            self.hand = if page as usize + 1 == world.place.len() { 0 } else { page + 1 };
            if world.is_top(page) && bin(self.samples[page as usize]) < threshold {
                victims.push(page);
            }
        }
        victims
    }
}

impl Policy for Histogram {
    fn observe(&mut self, samples: &[Sample], world: &World<'_>) {
        let seen = samples.iter().map(|sample| self.samples[sample.page as usize]);
        std::hint::black_box(seen.fold(0, |sum: u16, count| sum ^ count));
        for sample in samples {
            let count = &mut self.samples[sample.page as usize];
            let grown = count.saturating_add(1);
            // A page comes to the next bin at each power of two.
            let comes = grown.is_power_of_two() && grown != *count;
            self.came[bin(grown)] += u64::from(comes);
            *count = grown;
        }
        let below = world.below.of(samples, &mut self.room);
        self.candidates.extend(below.iter().map(|sample| sample.page));
        self.counts.recorded += samples.len() as u64;
        self.since += samples.len() as u64;
        if self.since >= self.cool {
            self.cool();
        }
    }

    fn decide(&mut self, world: &World<'_>, _: &mut Young<'_>, moves: &mut Vec<Move>) {
        let threshold = self.threshold(world.top_pages());
        let hot = self.hottest(threshold, world);
        let room = usize::try_from(world.free_top()).unwrap_or(usize::MAX);
        let victims = self.victims(hot.len().saturating_sub(room), threshold, world);
        rank::swap(&hot, &victims, 0, world, |_, _| true, moves);
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
