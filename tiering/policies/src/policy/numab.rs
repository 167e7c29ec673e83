//! NUMA balancing's memory tiering, and its relative with hysteresis: hint faults that promote.
//!
//! The one idea: the access itself does the work. A fault soon after the scan means that the page
//! is accessed often; where the top tier has room, any fault will do. Candidates and their limit
//! are counted as the scheduler counts them.

use super::{
    Counts, Fault, Move, Policy, PolicySpec, Setting, World, Young, pghot::has_room_on,
    reclaim::Reclaim,
};
use crate::{MILLISECOND, PAGE_BYTES, SECOND, map::limit::Limit, spec::Parameter};

/// What mode 2 can be told.
pub(super) const NUMAB2: &[Parameter] = &[
    Parameter::count("hot_threshold", "milliseconds: hot_threshold_ms", 1000.0, 1.0, 3_600_000.0),
    Parameter::count("limit", "MB a second: promote_rate_limit_MBps", 65_536.0, 1.0, 1e9),
    super::reclaim::DEMOTE,
];

/// What the one with hysteresis can be told.
pub(super) const TPP: &[Parameter] = &[
    Parameter::count("faults", "hint faults that promote", 2.0, 1.0, 3.0),
    Parameter::real("low", "share of the top tier where demotion starts", 0.01, 0.0, 0.5),
    Parameter::real("high", "share of it that demotion frees", 0.02, 0.0, 0.5),
];

/// Mode 2.
#[derive(Debug)]
struct Numab2 {
    default_ns: u64,
    rate_pages: u64,
    limit: Limit,
    reclaim: Reclaim,
    counts: Counts,
}

pub(super) fn numab2(spec: &PolicySpec, _: &Setting<'_>) -> Box<dyn Policy> {
    let default_ns = spec.count("hot_threshold") * MILLISECOND;
    Box::new(Numab2 {
        default_ns,
        rate_pages: spec.count("limit") * (1 << 20) / PAGE_BYTES,
        limit: Limit::new(SECOND, default_ns),
        reclaim: Reclaim::kernel(spec.count("demote") == 1),
        counts: Counts::default(),
    })
}

impl Policy for Numab2 {
    fn fault(&mut self, fault: Fault, world: &World<'_>) -> Option<u8> {
        if world.is_top(fault.page) {
            return None;
        }
        self.counts.recorded += 1;
        if has_room_on(world, usize::from(fault.node)) {
            // `pgpromote_candidate_nrl`; the threshold starts anew when room gets scarce.
            self.limit.threshold = self.default_ns;
            return Some(fault.node);
        }
        self.limit.adjust(self.default_ns, self.rate_pages, fault.at);
        let is_recent = fault.at - fault.marked < self.limit.threshold;
        let is_within = is_recent && self.limit.admits(self.rate_pages, fault.at);
        is_within.then_some(fault.node)
    }

    fn decide(&mut self, world: &World<'_>, young: &mut Young<'_>, moves: &mut Vec<Move>) {
        self.reclaim.run(world, 0, young, moves);
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

/// A page must fault more than once; demotion runs ahead of allocation.
#[derive(Debug)]
struct Tpp {
    /// Faults of each page so far, two bits each: the LRU's inactive and active lists.
    faults: Vec<u8>,
    wanted: u8,
    reclaim: Reclaim,
    counts: Counts,
}

pub(super) fn tpp(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    Box::new(Tpp {
        faults: vec![0; (setting.pages as usize).div_ceil(4)],
        wanted: u8::try_from(spec.count("faults")).unwrap_or(2),
        reclaim: Reclaim::new(spec.value("low"), spec.value("high"), true),
        counts: Counts::default(),
    })
}

impl Policy for Tpp {
    fn fault(&mut self, fault: Fault, world: &World<'_>) -> Option<u8> {
        if world.is_top(fault.page) {
            return None;
        }
        self.counts.recorded += 1;
        let (at, shift) = (fault.page as usize / 4, fault.page % 4 * 2);
        let faults = (self.faults[at] >> shift & 3) + 1;
        self.faults[at] &= !(3 << shift);
        if faults >= self.wanted {
            return Some(world.target(fault.node));
        }
        self.faults[at] |= faults << shift;
        None
    }

    fn decide(&mut self, world: &World<'_>, young: &mut Young<'_>, moves: &mut Vec<Move>) {
        self.reclaim.run(world, 0, young, moves);
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
