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
    now: f64,
}

/// Averages of all pages.
#[derive(Debug)]
struct TwoEma {
    pages: Vec<Averages>,
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
        let averages = self.pages[page as usize];
        averages.short.min(averages.long * 4.0).max(averages.long)
    }
}

impl Policy for TwoEma {
    fn observe(&mut self, samples: &[Sample], _: &World<'_>) {
        for sample in samples {
            self.pages[sample.page as usize].now += 1.0;
        }
        self.counts.recorded += samples.len() as u64;
    }

    fn decide(&mut self, world: &World<'_>, _: &mut Young<'_>, moves: &mut Vec<Move>) {
        if world.now < self.next_ns {
            return;
        }
        self.next_ns = world.now + self.interval_ns;
        for page in &mut self.pages {
            page.short += self.short * (page.now - page.short);
            page.long += self.long * (page.now - page.long);
            page.now = 0.0;
        }
        let (mut inside, mut outside): (Vec<u32>, Vec<u32>) =
            (0..).take(self.pages.len()).partition(|&page| world.tier(page) == 0);
        outside.retain(|&page| self.score(page) > 0.0);
        let most = |pages: &mut Vec<u32>, sign: f64| {
            let order = |&left: &u32, &right: &u32| {
                let (first, second) = (sign * self.score(left), sign * self.score(right));
                second.total_cmp(&first).then(left.cmp(&right))
            };
            if pages.len() > self.batch {
                pages.select_nth_unstable_by(self.batch - 1, order);
                pages.truncate(self.batch);
            }
            pages.sort_unstable_by(order);
        };
        most(&mut outside, 1.0);
        most(&mut inside, -1.0);
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
