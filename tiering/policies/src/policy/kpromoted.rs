//! pghot as its first two versions had it: a record for each page that was seen, and heaps of those
//! that are hot.
//!
//! The one idea: the first access to a page makes its record, and taking the page from a heap frees
//! it. Nothing else does, so what was seen once and never again keeps its record for good. A heap
//! belongs to the node that its pages should go to; every 20 ms the hottest 1024 leave it. Two
//! things differ from what was published: among pages of one frequency the first goes first, where
//! theirs was whichever lay on top; and a page that another node accesses leaves its heap, where
//! theirs was lost in it.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{
    Counts, Fault, Hot, Move, Moved, PageSet, Policy, PolicySpec, Sample, Scan, Setting, World,
    Young, pghot::has_room, reclaim::Reclaim,
};
use crate::{
    MILLISECOND, PAGE_BYTES, SECOND, map::limit::Gate, map::pghot::Source, spec::Parameter,
};

/// `KPROMOTE_DELAY`: between two looks at the heaps.
const DELAY_NS: u64 = 20 * MILLISECOND;
/// `KPROMOTED_MIGRATE_BATCH`: pages of one look.
const BATCH: u64 = 1024;
/// `PGHOT_HASH_PCT` and `PGHOT_HEAP_PCT`: a quarter of half of the lower tiers' pages fit a heap.
const HEAP_PART: u64 = 8;
/// Bytes of `struct pghot_info` by version: times, counts and nodes have fields, or share one.
const RECORD_BYTES: [u64; 2] = [48, 40];
/// Bits of the time and of the frequency where they share a field.
const TIME_BITS: u32 = 19;
const FREQUENCY_MAX: u32 = 7;

/// Which of the two: what they do not share is said there.
pub(super) const VERSION: Parameter =
    Parameter::count("version", "1: no rate limit, and what is old is dropped; 2", 2.0, 1.0, 2.0);

/// `struct pghot_info`; without an access there is none.
#[derive(Debug, Clone, Copy, Default)]
struct Info {
    last: u32,
    frequency: u32,
    node: u8,
    is_in_heap: bool,
}

/// A heap: the most frequent first. What its page's record no longer says is passed over.
#[derive(Debug, Default)]
struct Heap {
    entries: BinaryHeap<(u32, Reverse<u32>)>,
    pages: u64,
}

#[derive(Debug)]
struct Kpromoted {
    infos: Vec<Info>,
    heaps: Vec<Heap>,
    heap_pages: u64,
    hz: u64,
    window_ms: u64,
    threshold: u32,
    is_first: bool,
    rate_pages: u64,
    gate: Gate,
    reclaim: Reclaim,
    /// Looks at the heaps so far.
    looks: u64,
    records: u64,
    records_max: u64,
    counts: Counts,
    /// The pages that wait to be moved: they are on no LRU list.
    isolated: PageSet,
}

pub(super) fn build(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    let below = setting.nodes.iter().filter(|node| node.tier > 0);
    let window_ms = spec.count("window");
    Box::new(Kpromoted {
        infos: vec![Info::default(); setting.pages as usize],
        heaps: setting.nodes.iter().map(|_| Heap::default()).collect(),
        heap_pages: (below.map(|node| node.pages).sum::<u64>() / HEAP_PART).max(1),
        hz: spec.count("hz"),
        window_ms,
        threshold: u32::try_from(spec.count("threshold")).unwrap_or(u32::MAX),
        is_first: spec.count("version") == 1,
        rate_pages: spec.count("limit") * ((1 << 20) / PAGE_BYTES),
        gate: Gate::new(1000, window_ms),
        reclaim: Reclaim::kernel(spec.count("demote") == 1),
        looks: 0,
        records: 0,
        records_max: 0,
        counts: Counts::default(),
        isolated: PageSet::new(setting.pages as usize, false),
    })
}

impl Kpromoted {
    /// The time of a record: of version 2 it has 19 bits, and differences are taken without them.
    fn time(&self, at: u64) -> u32 {
        let jiffies = at / (SECOND / self.hz);
        let bits = if self.is_first { u32::BITS } else { TIME_BITS };
        u32::try_from(jiffies & ((1 << bits) - 1)).unwrap_or(u32::MAX)
    }

    /// `pghot_record_access`; what passed its filters is told.
    fn record(&mut self, page: u32, node: u8, source: Source, at: u64, world: &World<'_>) -> bool {
        self.counts.recorded += 1;
        self.counts.hot.by_source[usize::from(source == Source::HwHint)] += 1;
        if world.is_top(page) || self.isolated.has(page) {
            return false;
        }
        let (now, window) = (self.time(at), self.window_ms * self.hz / 1000);
        let info = &mut self.infos[page as usize];
        if info.frequency == 0 {
            *info = Info { last: now, frequency: 1, node, is_in_heap: false };
            self.records += 1;
            self.records_max = self.records_max.max(self.records);
            return true;
        }
        // Hint faults come too slowly for a window, so that version 2 leaves it out for them.
        let is_old = u64::from(now.wrapping_sub(info.last)) > window
            && (self.is_first || source == Source::HwHint);
        let most = if self.is_first { u32::MAX } else { FREQUENCY_MAX };
        let again = !is_old && info.node == node;
        let before = *info;
        let frequency = if again { info.frequency.saturating_add(1).min(most) } else { 1 };
        let stays = before.is_in_heap && before.node == node && frequency >= self.threshold;
        *info = Info { last: now, frequency, node, is_in_heap: stays };
        if before.is_in_heap && !stays {
            self.heaps[usize::from(before.node)].pages -= 1;
        }
        if frequency >= self.threshold {
            let heap = &mut self.heaps[usize::from(node)];
            if !stays && heap.pages < self.heap_pages {
                heap.pages += 1;
                info.is_in_heap = true;
            }
            if info.is_in_heap {
                self.counts.duplicates += u64::from(stays);
                heap.entries.push((frequency, Reverse(page)));
            }
        }
        true
    }

    /// The hottest page of a node's heap, with its record, which is freed.
    fn extract(&mut self, node: usize) -> Option<(u32, Info)> {
        let heap = &mut self.heaps[node];
        while let Some((frequency, Reverse(page))) = heap.entries.pop() {
            let info = &mut self.infos[page as usize];
            if info.is_in_heap && usize::from(info.node) == node && info.frequency == frequency {
                heap.pages -= 1;
                self.records -= 1;
                return Some((page, std::mem::take(info)));
            }
        }
        None
    }

    /// `phi_is_pfn_hot`: whether a page that was taken from a heap may go.
    fn may_go(&mut self, info: Info, now: u64, has_room: bool) -> bool {
        let age = u64::from(self.time(now).wrapping_sub(info.last)) * 1000 / self.hz;
        if self.is_first {
            return age <= 2 * self.window_ms;
        }
        self.gate.admits(self.window_ms, self.rate_pages, has_room, now / MILLISECOND, age)
    }
}

impl Policy for Kpromoted {
    fn observe(&mut self, samples: &[Sample], world: &World<'_>) {
        for sample in samples {
            let is_useful = self.record(sample.page, sample.node, Source::HwHint, sample.at, world);
            self.counts.hot.useful_hw += u64::from(is_useful);
        }
    }

    fn wants_top(&self) -> bool {
        false
    }

    fn passed_over(&mut self, samples: u64) {
        // Counted before anything is asked, and not recorded.
        self.counts.recorded += samples;
        self.counts.hot.by_source[usize::from(true)] += samples;
    }

    fn fault(&mut self, fault: Fault, world: &World<'_>) -> Option<u8> {
        self.record(fault.page, fault.node, Source::HintFault, fault.at, world);
        None
    }

    fn scanned(&mut self, scan: Scan<'_>, world: &World<'_>) {
        for page in scan.pages {
            self.record(*page, 0, Source::HwHint, world.now, world);
        }
    }

    fn decide(&mut self, world: &World<'_>, young: &mut Young<'_>, moves: &mut Vec<Move>) {
        self.reclaim.run(world, 0, young, moves);
        let looks = world.now / DELAY_NS - self.looks;
        self.looks += looks;
        let has_room = has_room(world);
        self.counts.walked = 0;
        for node in (0..world.nodes.len()).filter(|&node| world.nodes[node].tier == 0) {
            let mut taken = 0;
            while taken < looks * BATCH {
                let Some((page, info)) = self.extract(node) else { break };
                taken += 1;
                if usize::from(world.place[page as usize]) == node
                    || !self.may_go(info, world.now, has_room)
                {
                    continue;
                }
                moves.push(Move { page, to: info.node });
                self.isolated.set(page, true);
            }
            self.counts.walked += taken;
            self.counts.hot.flushes += taken.div_ceil(BATCH);
            self.counts.hot.flush_pages = self.counts.hot.flush_pages.max(taken.min(BATCH));
        }
    }

    fn moved(&mut self, page: u32, _: Moved, _: bool) {
        self.isolated.set(page, false);
    }

    fn counts(&self) -> Counts {
        let bytes = RECORD_BYTES[usize::from(!self.is_first)];
        let pages = self.infos.len().max(1) as u64;
        let hot = Hot {
            candidates: self.gate.limited,
            candidates_unlimited: self.gate.unlimited,
            map_bytes_per_tib: self.records_max * bytes * ((1 << 40) / PAGE_BYTES) / pages,
            ..self.counts.hot
        };
        Counts { hot, ..self.counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Node, Prices};

    const NODES: [Node; 2] =
        [Node { tier: 0, pages: 1 << 20, cpus: true }, Node { tier: 1, pages: 64, cpus: false }];

    /// What a policy does with samples of pages at milliseconds, asked 100 ms after the last.
    fn moves(spec: &str, samples: &[(u64, u32)]) -> (Vec<u32>, Counts) {
        let place = [1_u8; 64];
        let below = PageSet::new(64, true);
        let prices = Prices {
            saved_ns: 0.0,
            move_ns: 0.0,
            busy_ns: 0.0,
            sample_ns: 0.0,
            latency_ns: [0.0; 4],
        };
        let setting = Setting { pages: 64, nodes: &NODES, periods: (0, 0) };
        let mut policy = PolicySpec::parse(spec).unwrap().build(&setting);
        let world = World {
            now: (samples.last().map_or(0, |sample| sample.0) + 100) * MILLISECOND,
            nodes: &NODES,
            place: &place,
            below: &below,
            free: &[1 << 20, 0],
            prices: &prices,
            period: 1,
            future: None,
        };
        for &(ms, page) in samples {
            let sample = Sample { at: ms * MILLISECOND, page, node: 0, store: false };
            policy.observe(&[sample], &world);
        }
        let mut moves = Vec::new();
        policy.decide(&world, &mut |_| false, &mut moves);
        (moves.iter().map(|step| step.page).collect(), policy.counts())
    }

    #[test]
    fn the_hottest_goes_first_and_one_access_is_a_record_and_no_more() {
        let (pages, counts) =
            moves("pghot-heap", &[(0, 1), (1, 1), (2, 7), (3, 7), (4, 7), (5, 9)]);
        assert_eq!(pages, [7, 1]);
        // Three records at most, of 64 pages: 40 bytes each.
        assert_eq!(counts.hot.map_bytes_per_tib, 3 * 40 * (1 << 28) / 64);
        assert_eq!((counts.recorded, counts.hot.flush_pages), (6, 2));
    }

    #[test]
    fn a_heap_that_is_full_lets_nobody_in() {
        // An eighth of 64 pages.
        let samples: Vec<(u64, u32)> = (0..24).map(|page| (u64::from(page), page % 12)).collect();
        assert_eq!(moves("pghot-heap", &samples).0.len(), 8);
    }

    #[test]
    fn after_the_window_counting_starts_again() {
        for (apart, moved) in [(5000, 1), (5001, 0)] {
            assert_eq!(moves("pghot-heap", &[(0, 1), (apart, 1)]).0.len(), moved, "{apart}");
        }
    }
}
