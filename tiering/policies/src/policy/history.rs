//! Which of the last eight passes saw a page: for sources that look at every page.
//!
//! The one idea: a pass over written or accessed bits says something of every page, so that a page
//! that was not seen is known to be idle, where a sample knows nothing of it. Eight passes are a
//! byte. A page that enough of them saw is hot; a page that none saw is cold. Hot pages fill what
//! room there is above the low watermark, then change places with cold ones, and below the
//! watermark cold ones go without anybody coming. Pages that come back soon after they went say
//! that exchanging does not pay: then exchanges stop, twice as long each time.
//!
//! Samples, where there are no passes, are gathered for a second each. Bits say nothing of how
//! often a page is accessed, so what a move saves is not weighed against what it costs.

use super::{Counts, Move, Moved, Policy, PolicySpec, Sample, Scan, Setting, World, Young};
use crate::{SECOND, spec::Parameter, whole};

/// What it can be told.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::count("hot", "passes of the last eight that make a page hot", 2.0, 1.0, 8.0),
    Parameter::real("low", "share of the top tier that is kept free", 0.005, 0.0, 0.5),
    Parameter::real("high", "share that is made free when it is not", 0.01, 0.0, 0.5),
];

/// Passes that are remembered.
const PASSES: u64 = 8;
/// Of so many demoted pages one may come back.
const RETURNS: u64 = 50;
/// Passes for which exchanges stop, at most.
const PAUSE_MAX: u64 = 1 << 10;

/// A byte of passes for each page, the last one in the lowest bit.
#[derive(Debug)]
struct History {
    seen: Vec<u8>,
    /// The pass in which each page was demoted, modulo 256; 0 for never.
    left: Vec<u8>,
    pass: u64,
    /// There is a pass that was not decided on.
    fresh: bool,
    /// Passes come from a source, not from the clock.
    scans: bool,
    hot: u32,
    low: f64,
    high: f64,
    demoted: u64,
    returned: u64,
    pause: u64,
    paused_until: u64,
    counts: Counts,
}

pub(super) fn build(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    let low = spec.value("low");
    Box::new(History {
        seen: vec![0; setting.pages as usize],
        left: vec![0; setting.pages as usize],
        pass: 0,
        fresh: false,
        scans: false,
        hot: u32::try_from(spec.count("hot")).unwrap_or(1),
        low,
        high: spec.value("high").max(low),
        demoted: 0,
        returned: 0,
        pause: 1,
        paused_until: 0,
        counts: Counts::default(),
    })
}

impl History {
    /// A pass begins: what was now is the last one.
    fn shift(&mut self) {
        for seen in &mut self.seen {
            *seen <<= 1;
        }
        self.pass += 1;
        self.fresh = true;
    }

    fn see(&mut self, page: u32, world: &World<'_>) {
        let seen = &mut self.seen[page as usize];
        self.counts.recorded += u64::from(*seen & 1 == 0 && !world.is_top(page));
        *seen |= 1;
    }

    /// The pass as it is noted with a page; never 0.
    fn mark(&self) -> u8 {
        u8::try_from(self.pass % 255).unwrap_or(0) + 1
    }

    /// Whether a page went down in one of the last passes.
    fn went_lately(&self, page: u32) -> bool {
        let left = self.left[page as usize];
        left != 0 && (u64::from(self.mark()) + 255 - u64::from(left)) % 255 < 2 * PASSES
    }

    /// Stops exchanges where too many of the demoted pages came back.
    fn judge(&mut self) {
        if self.returned * RETURNS > self.demoted && self.returned > 0 {
            self.paused_until = self.pass + self.pause * PASSES;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
            (self.demoted, self.returned) = (0, 0);
        }
    }

    /// Top-tier pages that no pass saw, in the order of their numbers, on a node with a lower one.
    fn cold(&self, most: u64, world: &World<'_>) -> Vec<u32> {
        if self.pass < PASSES {
            return Vec::new();
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let idle = |page: &u32| self.seen[*page as usize] == 0;
        world.pages(true).filter(idle).take(most).collect()
    }
}

impl Policy for History {
    fn observe(&mut self, samples: &[Sample], world: &World<'_>) {
        for sample in samples {
            self.see(sample.page, world);
        }
    }

    fn scanned(&mut self, scan: Scan<'_>, world: &World<'_>) {
        self.scans = true;
        self.shift();
        for &page in scan.pages {
            self.see(page, world);
        }
    }

    fn interval(&self) -> u64 {
        SECOND
    }

    fn tick(&mut self, _: &World<'_>, _: &mut Young<'_>) {
        if !self.scans {
            self.shift();
        }
    }

    fn decide(&mut self, world: &World<'_>, _: &mut Young<'_>, moves: &mut Vec<Move>) {
        self.counts.walked = 0;
        if !std::mem::take(&mut self.fresh) {
            return;
        }
        self.judge();
        let times = |page: u32| (self.seen[page as usize].count_ones(), page);
        let below = world.pages(false).map(times);
        let mut hot: Vec<(u32, u32)> = below.filter(|&(times, _)| times >= self.hot).collect();
        // The hottest first, and of equals in the order of addresses.
        hot.sort_by_key(|&(times, page)| (u32::MAX - times, page));
        let top = world.top_pages() as f64;
        let (low, high) = (whole(top * self.low), whole(top * self.high));
        let free = world.free_top();
        let room = free.saturating_sub(low);
        let waiting = (hot.len() as u64).saturating_sub(room);
        let may_swap = self.pass >= self.paused_until;
        let short = if free < low { high - free } else { 0 };
        let wanted = short + if may_swap { waiting } else { 0 };
        let mut spare: Vec<u64> = world.free.to_vec();
        let mut out = 0;
        for page in if wanted > 0 { self.cold(wanted, world) } else { Vec::new() } {
            let with_room = World { free: &spare, ..*world };
            let Some(to) = with_room.below(world.place[page as usize]) else { break };
            spare[usize::from(to)] -= 1;
            moves.push(Move { page, to });
            out += 1;
        }
        let fits = room + u64::saturating_sub(out, short);
        for &(_, page) in hot.iter().take(usize::try_from(fits).unwrap_or(usize::MAX)) {
            moves.push(Move { page, to: world.target(0) });
        }
        self.counts.walked = moves.len() as u64;
    }

    fn moved(&mut self, page: u32, how: Moved, is_top: bool) {
        if how != Moved::Done {
            return;
        }
        if !is_top {
            self.demoted += 1;
            self.left[page as usize] = self.mark();
        } else if self.went_lately(page) {
            self.returned += 1;
            self.left[page as usize] = 0;
        }
    }

    fn rests(&self) -> bool {
        self.pass < self.paused_until
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Node, PageSet, Prices};

    const NODES: [Node; 2] =
        [Node { tier: 0, pages: 100, cpus: true }, Node { tier: 1, pages: 1000, cpus: false }];
    const PRICES: Prices =
        Prices { saved_ns: 0.0, move_ns: 0.0, busy_ns: 0.0, sample_ns: 0.0, latency_ns: [0.0; 4] };

    fn world<'a>(place: &'a [u8], below: &'a PageSet, free: &'a [u64]) -> World<'a> {
        let (nodes, prices) = (&NODES, &PRICES);
        World { now: 0, nodes, place, below, free, prices, period: 0, future: None }
    }

    /// A policy, and a machine that does what it says.
    struct Machine {
        policy: Box<dyn Policy>,
        place: Vec<u8>,
        below: PageSet,
        free: [u64; 2],
    }

    impl Machine {
        fn new(place: Vec<u8>) -> Self {
            let pages = u32::try_from(place.len()).unwrap();
            let setting = Setting { pages, nodes: &NODES, periods: (0, 0) };
            let spec = PolicySpec::parse("history:low=0.1,high=0.2").unwrap();
            let below: u64 = place.iter().map(|at| u64::from(*at)).sum();
            let free = [100 - (u64::from(pages) - below), 1000 - below];
            let mut bits = PageSet::new(place.len(), false);
            for (page, node) in (0..).zip(&place) {
                bits.set(page, *node > 0);
            }
            Self { policy: spec.build(&setting), place, below: bits, free }
        }

        /// A pass that saw these pages; the moves it led to.
        fn pass(&mut self, seen: &[u32]) -> Vec<Move> {
            let mut moves = Vec::new();
            let scan = Scan { pages: seen, writes: true, window: SECOND };
            self.policy.scanned(scan, &world(&self.place, &self.below, &self.free));
            self.policy.decide(
                &world(&self.place, &self.below, &self.free),
                &mut |_| false,
                &mut moves,
            );
            for &Move { page, to } in &moves {
                let from = std::mem::replace(&mut self.place[page as usize], to);
                self.below.set(page, to > 0);
                self.free[usize::from(from)] += 1;
                self.free[usize::from(to)] -= 1;
                self.policy.moved(page, Moved::Done, to == 0);
            }
            moves
        }
    }

    #[test]
    fn two_passes_make_a_page_hot_and_nothing_else_moves() {
        let mut machine = Machine::new(vec![1; 50]);
        assert_eq!(machine.pass(&[3, 7]), []);
        assert_eq!(machine.pass(&[3]), [Move { page: 3, to: 0 }]);
        assert_eq!(machine.pass(&[3]), [], "it is there");
    }

    #[test]
    fn a_full_tier_gives_cold_pages_for_hot_ones_and_comes_to_rest() {
        let mut place = vec![0; 100];
        place.extend([1; 20]);
        let mut machine = Machine::new(place);
        // The first fifty of the top tier are in use, and so are ten of the lower one.
        let used: Vec<u32> = (0..50).chain(100..110).collect();
        let moved: usize = (0..20).map(|_| machine.pass(&used).len()).sum();
        assert!(used.iter().all(|&page| machine.place[page as usize] == 0));
        assert!(machine.free[0] >= 10, "{}", machine.free[0]);
        assert!(moved <= 50, "{moved}");
        assert_eq!(machine.pass(&used), []);
        assert!(!machine.policy.rests());
    }

    #[test]
    fn exchanges_stop_where_pages_come_back() {
        // Two sets take turns that fit one at a time.
        let mut place = vec![0; 90];
        place.extend([1; 90]);
        let mut machine = Machine::new(place);
        let (left, right): (Vec<u32>, Vec<u32>) = ((0..90).collect(), (90..180).collect());
        let mut moved = Vec::new();
        for turn in 0..200 {
            let set = if turn / 10 % 2 == 0 { &left } else { &right };
            moved.push(machine.pass(set).len());
        }
        assert!(machine.policy.rests());
        let (early, late) = (&moved[..100], &moved[100..]);
        assert!(early.iter().sum::<usize>() > 100, "{moved:?}");
        assert!(late.iter().sum::<usize>() * 2 < early.iter().sum(), "{moved:?}");
    }
}
