//! A short and a long moving average of each page's accesses; the best that fit are moved.
//!
//! The one idea, which is that of ARMS: the short average finds what has become hot, the long one
//! what is hot for good, and a page moves when what it is expected to gain over its victim pays for
//! both moves. There is no threshold to set.

use super::{Counts, Move, Policy, PolicySpec, Sample, Setting, World, Young, rank};
use crate::{MILLISECOND, spec::Parameter};

/// What it can be told.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::count("interval", "milliseconds between decisions", 500.0, 1.0, 3_600_000.0),
    Parameter::real("short", "weight of the last interval in the short average", 0.5, 0.001, 1.0),
    Parameter::real("long", "weight of it in the long one", 0.05, 0.0001, 1.0),
    Parameter::real("horizon", "seconds that a page is expected to stay as hot", 10.0, 0.01, 1e6),
    Parameter::count("batch", "pages that are moved in one interval, at most", 4096.0, 1.0, 1e9),
];

/// Averages of samples in an interval.
#[derive(Debug, Clone, Copy, Default)]
struct Averages {
    short: f64,
    long: f64,
}

impl Averages {
    fn score(self) -> f64 {
        self.short.min(self.long * 4.0).max(self.long)
    }
}

/// The pages with the least keys of all that are offered, at most so many.
#[derive(Debug)]
struct Least {
    most: usize,
    /// Scores, negative where high ones are wanted, and pages.
    kept: Vec<(f64, u32)>,
    /// The largest that may still get in; infinite until enough are known.
    bar: f64,
}

impl Least {
    const fn new(most: usize) -> Self {
        Self { most, kept: Vec::new(), bar: f64::INFINITY }
    }

    fn order(left: &(f64, u32), right: &(f64, u32)) -> std::cmp::Ordering {
        left.0.total_cmp(&right.0).then(left.1.cmp(&right.1))
    }

    #[inline]
    fn offer(&mut self, score: f64, page: u32) {
        if score <= self.bar {
            self.kept.push((score, page));
            if self.kept.len() >= self.most.saturating_mul(2) {
                self.cut();
            }
        }
    }

    /// Lets go what is not among the least; what is left sets the bar.
    fn cut(&mut self) {
        if self.kept.len() > self.most {
            let (_, last, _) = self.kept.select_nth_unstable_by(self.most - 1, Self::order);
            self.bar = last.0;
            self.kept.truncate(self.most);
        }
    }

    /// In rising order.
    fn pages(mut self) -> Vec<u32> {
        self.cut();
        self.kept.sort_unstable_by(Self::order);
        self.kept.into_iter().map(|(_, page)| page).collect()
    }
}

/// Averages of all pages.
#[derive(Debug)]
struct TwoEma {
    pages: Vec<Averages>,
    /// Samples of each page in this interval.
    seen: Vec<u32>,
    interval_ns: u64,
    next_ns: u64,
    short: f64,
    long: f64,
    horizon: f64,
    batch: usize,
    counts: Counts,
}

pub(super) fn build(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    let interval_ns = spec.count("interval") * MILLISECOND;
    Box::new(TwoEma {
        pages: vec![Averages::default(); setting.pages as usize],
        seen: vec![0; setting.pages as usize],
        interval_ns,
        next_ns: interval_ns,
        short: spec.value("short"),
        long: spec.value("long"),
        horizon: spec.value("horizon") * 1e9 / interval_ns as f64,
        batch: usize::try_from(spec.count("batch")).unwrap_or(usize::MAX),
        counts: Counts::default(),
    })
}

impl TwoEma {
    fn score(&self, page: u32) -> f64 {
        self.pages[page as usize].score()
    }
}

impl Policy for TwoEma {
    fn observe(&mut self, samples: &[Sample], _: &World<'_>) {
        for sample in samples {
            self.seen[sample.page as usize] += 1;
        }
        self.counts.recorded += samples.len() as u64;
    }

    fn decide(&mut self, world: &World<'_>, _: &mut Young<'_>, moves: &mut Vec<Move>) {
        if world.now < self.next_ns {
            return;
        }
        self.next_ns = world.now + self.interval_ns;
        for (page, seen) in self.pages.iter_mut().zip(&mut self.seen) {
            let now = f64::from(std::mem::take(seen));
            page.short += self.short * (now - page.short);
            page.long += self.long * (now - page.long);
        }
        let mut best = Least::new(self.batch);
        for page in world.pages(false) {
            let score = self.score(page);
            if score > 0.0 {
                best.offer(-score, page);
            }
        }
        let outside = best.pages();
        let mut worst = Least::new(self.batch);
        // Where all fit, nobody is asked for.
        if outside.len() as u64 > world.free_top() {
            world.pages(true).for_each(|page| worst.offer(self.score(page), page));
        }
        let inside = worst.pages();
        let value = world.prices.saved_ns * world.period as f64 * self.horizon;
        let cost = 2.0 * world.prices.move_ns;
        let beats = |page, victim| {
            let gain = self.score(page) - self.score(victim);
            gain > 0.0 && gain * value > cost
        };
        rank::swap(&outside, &inside, 0, world, beats, moves);
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
