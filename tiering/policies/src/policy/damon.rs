//! Regions by their accessed bits, as DAMON finds them, with its migrate schemes on top.
//!
//! The one idea: one page stands for its region. Every sampling interval the accessed bit of one
//! page of each region is looked at; what was counted over an aggregation interval is the region's
//! hotness; alike neighbours are merged and all are split again. Which page stands for a region is
//! chosen by a sequence that spreads evenly, not by chance: policies have no random numbers.

use super::{Counts, Move, Policy, PolicySpec, Setting, World, Young};
use crate::{MILLISECOND, PAGE_BYTES, policy::Bucket, spec::Parameter, whole};

/// What it can be told; the defaults are the kernel's, and its tiering script's quota.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::count("sample", "milliseconds between looks: sample_us", 5.0, 1.0, 60_000.0),
    Parameter::count("aggregate", "milliseconds of an aggregation: aggr_us", 100.0, 1.0, 600_000.0),
    Parameter::count("regions_min", "regions, at least", 10.0, 3.0, 1e6),
    Parameter::count("regions_max", "regions, at most", 1000.0, 3.0, 1e6),
    Parameter::real("hot", "share of looks that must hit for migrate_hot", 0.05, 0.0, 1.0),
    Parameter::count("cold_age", "milliseconds without a hit for migrate_cold", 5000.0, 0.0, 1e9),
    Parameter::count("quota", "MB a second that each scheme may move", 200.0, 1.0, 1e9),
    Parameter::real("used", "share of the top tier that may be used", 0.997, 0.01, 1.0),
];

/// A range of pages that behave alike.
#[derive(Debug, Clone, Copy)]
struct Region {
    start: u32,
    end: u32,
    /// The page that stands for it until the next look.
    sampled: u32,
    hits: u32,
    last_hits: u32,
    /// Aggregations without a change.
    age: u32,
}

/// All regions, and the two schemes.
#[derive(Debug)]
struct Damon {
    regions: Vec<Region>,
    sample_ns: u64,
    looks: u32,
    looked: u32,
    min: usize,
    max: usize,
    hot: f64,
    cold_age: u32,
    used: f64,
    up: Bucket,
    down: Bucket,
    /// A Weyl sequence: what stands in for random choices.
    weyl: u32,
    aggregated: bool,
    counts: Counts,
}

pub(super) fn build(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    let (sample, aggregate) = (spec.count("sample"), spec.count("aggregate"));
    let max = usize::try_from(spec.count("regions_max")).unwrap_or(usize::MAX);
    let min = usize::try_from(spec.count("regions_min")).unwrap_or(1).min(max);
    let pages = u64::from(setting.pages);
    let count = (min as u64).min(pages);
    let edge = |at: u64| u32::try_from(pages * at / count).unwrap_or(u32::MAX);
    let region = |at| Region::new(edge(at), edge(at + 1));
    let quota = spec.count("quota") << 20;
    Box::new(Damon {
        regions: (0..count).map(region).collect(),
        sample_ns: sample * MILLISECOND,
        looks: u32::try_from((aggregate / sample).max(1)).unwrap_or(u32::MAX),
        looked: 0,
        min,
        max,
        hot: spec.value("hot"),
        cold_age: u32::try_from(spec.count("cold_age") / aggregate.max(1)).unwrap_or(u32::MAX),
        used: spec.value("used"),
        up: Bucket::new(quota, quota),
        down: Bucket::new(quota, quota),
        weyl: 0,
        aggregated: false,
        counts: Counts::default(),
    })
}

impl Region {
    const fn new(start: u32, end: u32) -> Self {
        Self { start, end, sampled: u32::MAX, hits: 0, last_hits: 0, age: 0 }
    }

    const fn pages(&self) -> u32 {
        self.end - self.start
    }
}

impl Damon {
    /// A number below `end`, which is not 0; the next one is elsewhere.
    fn choose(&mut self, end: u32) -> u32 {
        self.weyl = self.weyl.wrapping_add(0x9e37_79b9);
        u32::try_from((u64::from(self.weyl) * u64::from(end)) >> 32).unwrap_or(0)
    }

    /// Ends an aggregation: ages, merges, and splits while there is room for more regions.
    fn aggregate(&mut self) {
        let near = (self.looks / 10).max(1);
        for region in &mut self.regions {
            let is_same = region.hits.abs_diff(region.last_hits) <= near;
            region.age = if is_same { region.age.saturating_add(1) } else { 0 };
        }
        let largest = self.regions.iter().map(Region::pages).sum::<u32>() / len(self.min);
        let mut merged: Vec<Region> = Vec::with_capacity(self.regions.len());
        for &region in &self.regions {
            if let Some(last) = merged.last_mut()
                && last.hits.abs_diff(region.hits) <= near
                && last.pages() + region.pages() <= largest.max(1)
            {
                let (left, right) = (u64::from(last.pages()), u64::from(region.pages()));
                let mean = |first: u32, second: u32| {
                    let sum = u64::from(first) * left + u64::from(second) * right;
                    u32::try_from(sum / (left + right)).unwrap_or(0)
                };
                (last.hits, last.age) = (mean(last.hits, region.hits), mean(last.age, region.age));
                last.end = region.end;
                continue;
            }
            merged.push(region);
        }
        self.regions = merged;
        self.aggregated = true;
    }

    fn split(&mut self) {
        for region in &mut self.regions {
            region.last_hits = region.hits;
        }
        if self.regions.len() * 2 > self.max {
            return;
        }
        let mut split = Vec::with_capacity(self.regions.len() * 2);
        for region in std::mem::take(&mut self.regions) {
            if region.pages() < 2 {
                split.push(region);
                continue;
            }
            // From a tenth to nine tenths of the region.
            let tenths = u64::from(self.choose(9)) + 1;
            let part = u64::from(region.pages()) * tenths / 10;
            let middle = region.start + u32::try_from(part).unwrap_or(0).max(1);
            split.push(Region { end: middle, sampled: u32::MAX, ..region });
            split.push(Region { start: middle, sampled: u32::MAX, ..region });
        }
        self.regions = split;
    }
}

fn len(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX).max(1)
}

impl Policy for Damon {
    fn interval(&self) -> u64 {
        self.sample_ns
    }

    fn tick(&mut self, _: &World<'_>, young: &mut Young<'_>) {
        for at in 0..self.regions.len() {
            let Region { start, sampled, .. } = self.regions[at];
            if sampled != u32::MAX && young(sampled) {
                self.regions[at].hits += 1;
                self.counts.recorded += 1;
            }
            let next = start + self.choose(self.regions[at].pages());
            // Looking clears the bit: what is seen next time was accessed from now on.
            young(next);
            self.regions[at].sampled = next;
        }
        self.looked += 1;
        if self.looked >= self.looks {
            self.looked = 0;
            self.aggregate();
        }
    }

    fn decide(&mut self, world: &World<'_>, _: &mut Young<'_>, moves: &mut Vec<Move>) {
        if !std::mem::take(&mut self.aggregated) {
            return;
        }
        let mut order: Vec<usize> = (0..self.regions.len()).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(self.regions[at].hits), at));
        let allowed = whole(world.top_pages() as f64 * self.used);
        let used = world.top_pages() - world.free_top();
        let mut room = allowed.saturating_sub(used);
        let hot_hits = self.hot * f64::from(self.looks);
        for &at in &order {
            let Region { start, end, hits, .. } = self.regions[at];
            if hits == 0 || f64::from(hits) < hot_hits {
                break;
            }
            for page in world.below.pages(start..end, true) {
                if room == 0 || !self.up.take(world.now, PAGE_BYTES) {
                    break;
                }
                room -= 1;
                moves.push(Move { page, to: world.target(0) });
            }
        }
        // Cold regions make room only where it is scarce.
        let mut need = if room == 0 { world.top_pages() - allowed + 512 } else { 0 };
        for &at in order.iter().rev() {
            let Region { start, end, hits, age, .. } = self.regions[at];
            if hits > 0 || age < self.cold_age {
                continue;
            }
            for page in world.below.pages(start..end, false) {
                let Some(to) = world.below(world.place[page as usize]) else { break };
                if need == 0 || !self.down.take(world.now, PAGE_BYTES) {
                    break;
                }
                need -= 1;
                moves.push(Move { page, to });
            }
        }
        self.split();
        for region in &mut self.regions {
            region.hits = 0;
        }
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
