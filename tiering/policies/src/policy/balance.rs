//! Towards equal loaded latency of the tiers.
//!
//! The one idea, which is Colloid's: a hot page belongs into the tier that is faster now, with its
//! load, and that need not be the top one. While the top tier is faster, hot pages go up; when it
//! has become slower by more than a margin, hot pages go down. How many depends on how far apart
//! the latencies are.

use super::{
    Counts, Move, Policy, PolicySpec, Sample, Setting, World, Young, reclaim, threshold::Threshold,
};
use crate::{spec::Parameter, whole};

/// What it can be told.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::count("threshold", "accesses that make a page hot", 1.0, 1.0, 7.0),
    Parameter::count("window", "milliseconds in which they count", 3000.0, 1.0, 3_600_000.0),
    Parameter::real("margin", "difference of latencies that is none, as a share", 0.05, 0.0, 1.0),
    Parameter::real("step", "share of all pages moved when one is twice as slow", 0.05, 1e-6, 1.0),
    reclaim::DEMOTE,
];

/// Hotness is the threshold policy's.
#[derive(Debug)]
struct Balance {
    hot: Threshold,
    margin: f64,
    step: f64,
    /// Pages of the top tier that were sampled lately: what goes down when it is the slower one.
    top: Vec<u32>,
    /// Where samples of lower tiers are put side by side.
    room: Vec<Sample>,
}

pub(super) fn build(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    let demotes = spec.count("demote") == 1;
    Box::new(Balance {
        hot: Threshold::new(setting.pages, spec.count("threshold"), spec.count("window"), demotes),
        margin: spec.value("margin"),
        step: spec.value("step"),
        top: Vec::new(),
        room: Vec::new(),
    })
}

/// Pages of the top tier that are remembered.
const TOP_MAX: usize = 65_536;

impl Policy for Balance {
    fn observe(&mut self, samples: &[Sample], world: &World<'_>) {
        let mut room = std::mem::take(&mut self.room);
        self.hot.record(world.below.split(samples, &mut room, &mut self.top));
        self.top.truncate(TOP_MAX);
        self.room = room;
    }

    fn wants_top(&self) -> bool {
        self.top.len() < TOP_MAX
    }

    fn decide(&mut self, world: &World<'_>, young: &mut Young<'_>, moves: &mut Vec<Move>) {
        let [top, lower, ..] = world.prices.latency_ns;
        // Without measured latencies the calibration says whether moving up saves anything.
        let apart = match (top > 0.0, lower > 0.0) {
            (true, true) => lower / top - 1.0,
            _ => f64::from(u8::from(world.prices.saved_ns > 0.0)),
        };
        let most = world.place.len() as f64 * self.step * apart.abs().min(1.0);
        let most = usize::try_from(whole(most.ceil())).unwrap_or(usize::MAX);
        if apart > self.margin {
            self.hot.reclaim(world, young, moves);
            self.hot.take(most, world, moves);
        } else if apart < -self.margin {
            let mut down = std::mem::take(&mut self.top);
            down.sort_unstable();
            down.dedup();
            down.retain(|&page| world.is_top(page));
            let to_lower = |&page: &u32| {
                let to = world.below(world.place[page as usize])?;
                Some(Move { page, to })
            };
            moves.extend(down.iter().take(most).filter_map(to_lower));
        }
        self.top.clear();
    }

    fn counts(&self) -> Counts {
        self.hot.counts()
    }
}
