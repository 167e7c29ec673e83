//! A fixed threshold in a fixed window, over the map that has no alias.
//!
//! The one idea: what pghot's documentation describes. It is the arm that fixed parameters are
//! compared on, and the lower half of other policies.

use super::{
    Counts, Move, Policy, PolicySpec, Sample, Setting, World, Young, page_set::PageSet,
    reclaim::Reclaim,
};
use crate::{
    MILLISECOND, SECTION_PAGES,
    map::{Epoch, HotMap, Recorded},
};

/// The map, and the pages that are ready.
#[derive(Debug)]
pub(super) struct Threshold {
    map: HotMap,
    /// Accesses that make a page hot.
    wanted: u8,
    /// The epoch of the last sample, and when it is over.
    epoch: Epoch,
    until: u64,
    reclaim: Reclaim,
    ready: PageSet,
    counts: Counts,
    /// Where samples of lower tiers are put side by side.
    room: Vec<Sample>,
}

pub(super) fn build(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    Box::new(Threshold::new(
        setting.pages,
        spec.count("threshold"),
        spec.count("window"),
        spec.count("demote") == 1,
    ))
}

impl Threshold {
    pub(super) fn new(pages: u32, threshold: u64, window_ms: u64, demotes: bool) -> Self {
        let mut map = HotMap::new(pages as usize, window_ms * MILLISECOND);
        Self {
            epoch: map.epoch(0),
            until: 0,
            map,
            wanted: u8::try_from(threshold).unwrap_or(u8::MAX),
            reclaim: Reclaim::kernel(demotes),
            ready: PageSet::new(pages as usize, false),
            counts: Counts::default(),
            room: Vec::new(),
        }
    }

    /// Records samples of pages of lower tiers.
    pub(super) fn record(&mut self, below: &[Sample]) {
        self.map.warm(below.iter().map(|sample| sample.page as usize));
        for sample in below {
            if sample.at >= self.until {
                self.epoch = self.map.epoch(sample.at);
                self.until = self.map.end_ns(self.epoch);
            }
            let page = sample.page as usize;
            self.counts.recorded += 1;
            match self.map.record_access(page, sample.node.into(), self.epoch, self.wanted) {
                Recorded::Ready => self.ready.set(sample.page, true),
                Recorded::Again => self.counts.duplicates += 1,
                Recorded::Counted(_) | Recorded::Dropped => {}
            }
        }
    }

    /// Makes room in the top tier.
    pub(super) fn reclaim(
        &mut self,
        world: &World<'_>,
        young: &mut Young<'_>,
        moves: &mut Vec<Move>,
    ) {
        self.reclaim.run(world, 0, young, moves);
    }

    /// The ready pages of lower tiers, in rising order, at most so many; the rest waits.
    pub(super) fn take(&mut self, most: usize, world: &World<'_>, moves: &mut Vec<Move>) {
        let epoch = self.map.epoch(world.now);
        self.counts.walked = 0;
        let mut section = u32::MAX;
        let mut wanted = 0;
        let map = &mut self.map;
        let walked = &mut self.counts.walked;
        self.ready.retain(|page| {
            if page / SECTION_PAGES != section {
                section = page / SECTION_PAGES;
                *walked += u64::from(SECTION_PAGES);
            }
            if wanted == most {
                return map.get(page as usize, epoch).is_some();
            }
            let record = map.take(page as usize, epoch).filter(|record| record.ready);
            if let Some(record) = record.filter(|_| !world.is_top(page)) {
                let near = u8::try_from(record.node).unwrap_or(0);
                moves.push(Move { page, to: world.target(near) });
                wanted += 1;
            }
            false
        });
        self.counts.walked = self.counts.walked.min(world.place.len() as u64);
    }
}

impl Policy for Threshold {
    fn observe(&mut self, samples: &[Sample], world: &World<'_>) {
        let mut room = std::mem::take(&mut self.room);
        self.record(world.below.of(samples, &mut room));
        self.room = room;
    }

    fn wants_top(&self) -> bool {
        false
    }

    fn decide(&mut self, world: &World<'_>, young: &mut Young<'_>, moves: &mut Vec<Move>) {
        self.reclaim.run(world, 0, young, moves);
        self.take(usize::MAX, world, moves);
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
