//! Our policy: what to move follows from what was sampled, and from what moving costs.
//!
//! The one idea: no threshold, window or period is set. Samples are counted in windows whose length
//! is a number of samples for each page, so the window follows the sample rate. At its end
//! [`estimate`] says what pages with so many samples, in blocks that were so dense, are worth,
//! those that were never sampled included. Pages move as long as what they will save, if the
//! program goes on for as long as it has run, is more than what moving costs; where there is no
//! room, against the page that is worth least. [`guard`] stops exchanges that did not help. The
//! period is as short as one percent of run time allows, and longer where nothing is left to gain.
//!
//! A page that was never sampled moves only with a block of which some page was.

mod estimate;
mod guard;
mod seen;

use self::{
    estimate::{CELLS, Cell, Histogram, class},
    guard::Guard,
    seen::{BLOCK_WORDS, Seen, WORD_PAGES},
};
use super::{Counts, Move, Policy, PolicySpec, Sample, Scan, Setting, World, Young};
use crate::{BLOCK_PAGES, spec::Parameter, whole};

/// What it can be told.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::real("window", "samples a page in the longest window", 0.25, 0.001, 100.0),
    Parameter::real("first", "samples a block in the first window", 4.0, 0.1, 1000.0),
    Parameter::real("share", "share of run time that sampling may take", 0.01, 0.0, 1.0),
    Parameter::count("batch", "pages that are moved before it looks again", 8192.0, 1.0, 1e9),
];

/// What is known of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Samples of earlier windows, the older the less.
    before: f32,
    now: u16,
    /// The node that accessed it last.
    node: u8,
}

/// Counts, blocks, and what is still to be moved.
#[derive(Debug)]
struct Pagelab {
    pages: u32,
    /// The counts of this window.
    seen: Seen,
    /// The node that accessed each page last; empty where only one has processors.
    accessors: Vec<u8>,
    blocks: Vec<Block>,
    /// The class of each block at the end of the last window.
    classes: Vec<usize>,
    window: u64,
    started_ns: u64,
    /// Samples in this window, and how many end it.
    samples: u64,
    wanted: u64,
    longest: u64,
    /// Pages of lower tiers that were sampled for the first time in this window.
    fresh: Vec<u32>,
    /// Moves that were decided, the last one first.
    backlog: Vec<Move>,
    guard: Guard,
    batch: usize,
    share: f64,
    period: u64,
    periods: (u64, u64),
    counts: Counts,
}

pub(super) fn build(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    let blocks = setting.pages.div_ceil(BLOCK_PAGES);
    let several = setting.nodes.iter().filter(|node| node.cpus).count() > 1;
    Box::new(Pagelab {
        pages: setting.pages,
        seen: Seen::new(setting.pages),
        accessors: vec![0; if several { setting.pages as usize } else { 0 }],
        blocks: vec![Block::default(); blocks as usize],
        classes: Vec::with_capacity(blocks as usize),
        window: 0,
        started_ns: 0,
        samples: 0,
        wanted: whole(spec.value("first") * f64::from(blocks)).max(64),
        longest: whole(spec.value("window") * f64::from(setting.pages)).max(256),
        fresh: Vec::new(),
        backlog: Vec::new(),
        guard: Guard::new(),
        batch: usize::try_from(spec.count("batch")).unwrap_or(usize::MAX),
        share: spec.value("share"),
        period: 0,
        periods: setting.periods,
        counts: Counts::default(),
    })
}

const fn block(page: u32) -> usize {
    (page / BLOCK_PAGES) as usize
}

/// The rank of a page's cell, and the page.
type Ranked = (u8, u32);

/// What is worth moving: pages of each cell, and in which order.
#[derive(Debug)]
struct Plan {
    take: [u64; CELLS],
    rank: [u8; CELLS],
    swaps: u64,
}

impl Pagelab {
    #[inline]
    fn count(&mut self, page: u32, node: u8, world: &World<'_>) {
        let is_first = self.seen.add(page);
        let block = &mut self.blocks[block(page)];
        block.now = block.now.saturating_add(1);
        block.node = node;
        if let Some(last) = self.accessors.get_mut(page as usize) {
            *last = node;
        }
        if !world.is_top(page) {
            self.counts.recorded += 1;
            if is_first {
                self.fresh.push(page);
            }
        }
        self.guard.sampled(page);
    }

    /// The node that accessed a page last, or one near it.
    fn near(&self, page: u32) -> u8 {
        let last = self.accessors.get(page as usize).filter(|_| self.seen.count(page) > 0);
        last.copied().unwrap_or(self.blocks[block(page)].node)
    }

    /// How many pages each cell has, and the class of each block.
    fn cells(&mut self, world: &World<'_>) -> Histogram {
        let mean = self.blocks.iter().map(|block| block.before).sum::<f32>()
            / self.blocks.len().max(1) as f32;
        let mut histogram = Histogram::new();
        self.classes.clear();
        for (number, block) in self.blocks.iter().enumerate() {
            let class = class(block.before, mean);
            self.classes.push(class);
            let first = number * BLOCK_WORDS;
            for word in first..(first + BLOCK_WORDS).min(self.seen.words()) {
                let (valid, below) = (self.seen.valid(word), world.below.words()[word]);
                for (count, pages) in self.seen.by_count(word).into_iter().enumerate() {
                    let pages = pages & valid;
                    if pages != 0 {
                        let cell = |is_top| Cell { is_top, class, count };
                        histogram.add(cell(false), pages & below);
                        histogram.add(cell(true), pages & !below);
                    }
                }
            }
        }
        histogram
    }

    /// The end of a window: what its counts say is put into the backlog.
    fn close(&mut self, world: &World<'_>) {
        let pages = u32::try_from(world.place.len()).unwrap_or(u32::MAX);
        let histogram = self.cells(world);
        let may_swap = self.guard.judge();
        let plan = self.plan(&histogram, world, may_swap);
        let (mut up, mut down) = self.chosen(&plan, world);
        self.counts.walked += u64::from(pages) * 2;
        up.sort_by_key(|&(rank, _)| rank);
        down.sort_by_key(|&(rank, _)| rank);
        self.queue(&up, &down, plan.swaps, world);
        self.next_window(world, plan.swaps);
    }

    /// The pages that go up and those that go down, each with the rank of its cell.
    fn chosen(&self, plan: &Plan, world: &World<'_>) -> (Vec<Ranked>, Vec<Ranked>) {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let mut left = plan.take;
        if left.iter().all(|pages| *pages == 0) {
            return (up, down);
        }
        // From another page each time, so that a part of a cell is not always the same one.
        let start = (self.window * 0x9e37_79b9 % u64::from(self.pages.max(1))).to_le_bytes();
        let start = u32::from_le_bytes([start[0], start[1], start[2], start[3]]);
        let (first, behind) = ((start / WORD_PAGES) as usize, u64::MAX << (start % WORD_PAGES));
        let round = [(first, behind)].into_iter();
        let round = round.chain((first + 1..self.seen.words()).map(|word| (word, u64::MAX)));
        let round = round.chain((0..first).map(|word| (word, u64::MAX))).chain([(first, !behind)]);
        for (word, part) in round {
            let block = &self.blocks[word / BLOCK_WORDS];
            // Whether anything of the block was ever sampled.
            let is_seen = block.now > 0 || block.before > 0.0;
            let class = self.classes[word / BLOCK_WORDS];
            let (part, below) = (part & self.seen.valid(word), world.below.words()[word]);
            let mut wanted = 0;
            for (count, pages) in self.seen.by_count(word).into_iter().enumerate() {
                let cell = |is_top| Cell { is_top, class, count }.index();
                wanted |= if left[cell(true)] > 0 { pages & !below } else { 0 };
                wanted |= if is_seen && left[cell(false)] > 0 { pages & below } else { 0 };
            }
            wanted &= part;
            while wanted != 0 {
                // Below 2^31, as all page numbers.
                let page = u32::try_from(word).unwrap_or(0) * WORD_PAGES + wanted.trailing_zeros();
                wanted &= wanted - 1;
                let is_top = world.is_top(page);
                let cell = Cell { is_top, class, count: self.seen.count(page) }.index();
                if left[cell] > 0 {
                    left[cell] -= 1;
                    let side = if is_top { &mut down } else { &mut up };
                    side.push((plan.rank[cell], page));
                }
            }
        }
        (up, down)
    }

    /// How many pages of which cells are worth moving.
    fn plan(&self, histogram: &Histogram, world: &World<'_>, may_swap: bool) -> Plan {
        let elapsed = (world.now - self.started_ns).max(1) as f64;
        // As long again as it has run: nobody knows better.
        let windows = (world.now as f64 / elapsed).max(1.0);
        let weight = world.period.max(1) as f64;
        let value = world.prices.saved_ns * weight * windows;
        let mut plan = Plan { take: [0; CELLS], rank: [u8::MAX; CELLS], swaps: 0 };
        let mut lower: Vec<(Cell, f64)> =
            histogram.cells(false).map(|cell| (cell, histogram.rate(cell).low)).collect();
        let mut top: Vec<(Cell, f64)> =
            histogram.cells(true).map(|cell| (cell, histogram.rate(cell).high)).collect();
        lower.sort_by(|left, right| right.1.total_cmp(&left.1));
        top.sort_by(|left, right| left.1.total_cmp(&right.1));
        let mut room = world.free_top();
        let mut victims = top.iter().map(|&(cell, rate)| (cell, rate, histogram.pages(cell)));
        let mut victim = victims.next();
        for (rank, &(cell, rate)) in (0_u8..).zip(&lower) {
            plan.rank[cell.index()] = rank;
            let mut pages = histogram.pages(cell);
            if rate * value > world.prices.move_ns {
                let fill = pages.min(room);
                room -= fill;
                pages -= fill;
                plan.take[cell.index()] += fill;
            }
            while may_swap && pages > 0 && room == 0 {
                let Some((out, worth, left)) = &mut victim else { break };
                if (rate - *worth) * value <= 2.0 * world.prices.move_ns || rate <= *worth {
                    break;
                }
                let swap = pages.min(*left);
                pages -= swap;
                *left -= swap;
                plan.take[cell.index()] += swap;
                plan.take[out.index()] += swap;
                plan.swaps += swap;
                if *left == 0 {
                    victim = victims.next();
                }
            }
        }
        for (rank, (cell, _)) in (0_u8..).zip(&top) {
            plan.rank[cell.index()] = rank;
        }
        plan
    }

    /// Puts moves into the backlog: into room first, then in pairs, out before in.
    fn queue(&mut self, up: &[Ranked], down: &[Ranked], swaps: u64, world: &World<'_>) {
        let swaps = usize::try_from(swaps).unwrap_or(usize::MAX).min(down.len()).min(up.len());
        let (fill, exchange) = up.split_at(up.len() - swaps);
        let mut moves = Vec::with_capacity(up.len() + swaps);
        let into_room = |&(_, page): &Ranked| Move { page, to: world.target(self.near(page)) };
        moves.extend(fill.iter().map(into_room));
        for (&(_, page), &(_, victim)) in exchange.iter().zip(down) {
            let from = world.place[victim as usize];
            let to = world.below(from).unwrap_or(world.place[page as usize]);
            moves.push(Move { page: victim, to });
            moves.push(Move { page, to: from });
            self.guard.remember(page, true);
            self.guard.remember(victim, false);
        }
        moves.reverse();
        self.backlog = moves;
    }

    /// Starts the next window, twice as long until it is long enough.
    fn next_window(&mut self, world: &World<'_>, swaps: u64) {
        for block in &mut self.blocks {
            block.before = 0.5 * block.before + f32::from(block.now);
            block.now = 0;
        }
        self.seen.clear();
        self.tune(world, swaps);
        self.window += 1;
        self.started_ns = world.now;
        self.samples = 0;
        self.wanted = (self.wanted * 2).min(self.longest);
        self.fresh.clear();
    }

    /// The period that costs no more than it may, and less when there is nothing to do.
    fn tune(&mut self, world: &World<'_>, swaps: u64) {
        let elapsed = (world.now - self.started_ns).max(1) as f64;
        let cost = self.samples as f64 * world.prices.sample_ns / elapsed;
        let is_busy = swaps * 200 > world.place.len() as u64 || !self.backlog.is_empty();
        let may = if is_busy { self.share } else { self.share * 0.2 };
        let (shortest, longest) = self.periods;
        let wanted = world.period as f64 * cost / may.max(1e-9);
        self.period = whole(wanted).clamp(shortest, longest.max(shortest));
    }
}

impl Policy for Pagelab {
    fn observe(&mut self, samples: &[Sample], world: &World<'_>) {
        for sample in samples {
            self.count(sample.page, sample.node, world);
        }
        self.samples += samples.len() as u64;
    }

    fn scanned(&mut self, scan: Scan<'_>, world: &World<'_>) {
        for &page in scan.pages {
            let node = self.blocks[block(page)].node;
            self.count(page, node, world);
        }
        self.samples += scan.pages.len() as u64;
    }

    fn decide(&mut self, world: &World<'_>, _: &mut Young<'_>, moves: &mut Vec<Move>) {
        self.counts.walked = 0;
        if self.period == 0 {
            self.period = self.periods.0;
        }
        let mut room = world.free_top();
        // While there is room, whatever was sampled has earned its move if a sample is worth one.
        let pays = world.period as f64 * world.prices.saved_ns > world.prices.move_ns;
        for page in std::mem::take(&mut self.fresh) {
            if room == 0 || !pays {
                break;
            }
            if !world.is_top(page) {
                room -= 1;
                moves.push(Move { page, to: world.target(self.near(page)) });
            }
        }
        if self.backlog.is_empty() && self.samples >= self.wanted {
            self.close(world);
        }
        for _ in 0..self.batch {
            let Some(next) = self.backlog.pop() else { break };
            let is_top = world.nodes[usize::from(next.to)].tier == 0;
            if is_top != world.is_top(next.page) {
                moves.push(next);
            }
        }
        self.counts.walked += moves.len() as u64;
    }

    fn rests(&self) -> bool {
        self.guard.rests()
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn period(&self) -> Option<u64> {
        (self.period > 0).then_some(self.period)
    }
}
