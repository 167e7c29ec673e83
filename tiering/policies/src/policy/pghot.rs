//! pghot as it was published, over its own record and its own daemon.
//!
//! The one idea: nothing is improved here. [`crate::map::pghot`] records, [`crate::map::kmigrated`]
//! walks and decides; this file tells them what a page frame is, and hands on what they want.

use std::cell::RefCell;

use super::{
    Counts, Fault, Hot, Move, Moved, PageSet, Policy, PolicySpec, Sample, Scan, Setting, World,
    Young, reclaim::Reclaim,
};
use crate::{
    MILLISECOND, PAGE_BYTES, SECOND,
    map::{
        kmigrated::{Kmigrated, Now},
        pghot::{Counters, Frames, Map, Mode, Order, Record, Source, Step, Tunables},
    },
};

/// The kernel's margin above the promotion watermark: 1 GiB, or a 16th of the node where more.
const ROOM_PAGES: u64 = (1 << 30) / PAGE_BYTES;

/// Whether a node has so much room that nobody is asked whether a page is hot enough.
pub(super) fn has_room_on(world: &World<'_>, node: usize) -> bool {
    world.free[node] > ROOM_PAGES.max(world.nodes[node].pages / 16)
}

/// Whether a node of the top tier has.
pub(super) fn has_room(world: &World<'_>) -> bool {
    (0..world.nodes.len()).any(|node| world.nodes[node].tier == 0 && has_room_on(world, node))
}

/// A world's pages as page frames, which of them are isolated, and memory cgroups, to which they
/// are charged by turns.
struct Pages<'w>(World<'w>, &'w PageSet, u32);

impl Frames for Pages<'_> {
    #[inline]
    fn is_online(&self, pfn: u32) -> bool {
        (pfn as usize) < self.0.place.len()
    }

    #[inline]
    fn node(&self, pfn: u32) -> u16 {
        self.0.place[pfn as usize].into()
    }

    #[inline]
    fn is_on(&self, pfn: u32, node: u16) -> bool {
        let is_top = self.0.nodes.get(usize::from(node)).is_some_and(|node| node.tier == 0);
        // A page of a lower tier is on no node of the top tier: the bit says so, which is near.
        (!is_top || self.0.is_top(pfn)) && self.node(pfn) == node
    }

    #[inline]
    fn is_top_tier(&self, pfn: u32) -> bool {
        self.0.is_top(pfn)
    }

    #[inline]
    fn is_on_lru(&self, pfn: u32) -> bool {
        !self.1.has(pfn)
    }

    #[inline]
    fn is_node(&self, node: u16) -> bool {
        usize::from(node) < self.0.nodes.len()
    }

    #[inline]
    fn cgroup(&self, pfn: u32) -> u32 {
        pfn % self.2
    }
}

/// The map, the daemon, and reclaim.
#[derive(Debug)]
struct Pghot {
    map: Map,
    daemon: Kmigrated,
    reclaim: Reclaim,
    counts: Counts,
    /// The last jiffy, and from when to when it is.
    jiffies: u64,
    jiffy_ns: (u64, u64),
    /// The pages that wait to be moved: they are on no LRU list.
    isolated: PageSet,
    cgroups: u32,
    /// Nanoseconds between two times that all memory went offline and came back, and the next one.
    replug_ns: u64,
    next_replug_ns: u64,
    /// Records of pages under way, where they are kept.
    kept: RefCell<Vec<(u32, Record)>>,
    /// Where samples of lower tiers are put side by side.
    room: Vec<Sample>,
}

pub(super) fn default(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    Box::new(Pghot::new(Mode::Default, spec, setting))
}

pub(super) fn precise(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    Box::new(Pghot::new(Mode::Precision, spec, setting))
}

pub(super) fn wide(spec: &PolicySpec, setting: &Setting<'_>) -> Box<dyn Policy> {
    Box::new(Pghot::new(Mode::Wide, spec, setting))
}

impl Pghot {
    fn new(mode: Mode, spec: &PolicySpec, setting: &Setting<'_>) -> Self {
        let tunables = Tunables {
            hz: spec.count("hz"),
            window_ms: spec.count("window"),
            threshold: u8::try_from(spec.count("threshold")).unwrap_or(u8::MAX),
            target: u16::try_from(spec.count("target")).unwrap_or(0),
            order: if spec.count("order") == 7 { Order::V7 } else { Order::V8 },
            ..Tunables::published(mode)
        };
        let map = Map::new(setting.pages as usize, tunables);
        let keeps = spec.count("keep") == 1;
        let mut daemon = Kmigrated::published(&map);
        daemon.keeps = keeps;
        daemon.rate_pages = spec.count("limit") * ((1 << 20) / PAGE_BYTES);
        let reclaim = Reclaim::kernel(spec.count("demote") == 1);
        let isolated = PageSet::new(setting.pages as usize, false);
        let kept = RefCell::default();
        let replug_ns = spec.count("replug") * SECOND;
        Self {
            map,
            daemon,
            reclaim,
            counts: Counts::default(),
            jiffies: 0,
            jiffy_ns: (0, 0),
            isolated,
            cgroups: u32::try_from(spec.count("cgroups")).unwrap_or(1).max(1),
            replug_ns,
            next_replug_ns: replug_ns,
            kept,
            room: Vec::new(),
        }
    }

    /// Where it is time, all of the lower memory goes offline and comes back. Its pages went
    /// elsewhere and came back, too: what is lost is what was known of them.
    fn replug(&mut self, now: u64) {
        if self.replug_ns == 0 || now < self.next_replug_ns {
            return;
        }
        self.next_replug_ns = now + self.replug_ns;
        for section in 0..self.map.sections() {
            self.map.offline(section);
            self.map.online(section);
        }
    }

    fn record(&mut self, page: u32, node: u8, source: Source, at: u64, world: &World<'_>) {
        if at < self.jiffy_ns.0 || at >= self.jiffy_ns.1 {
            let length = SECOND / self.map.tunables.hz;
            self.jiffies = at / length;
            self.jiffy_ns = (self.jiffies * length, (self.jiffies + 1) * length);
        }
        let jiffies = self.jiffies;
        let pages = Pages(*world, &self.isolated, self.cgroups);
        let step = self.map.record_access(page, node.into(), source, jiffies, &pages);
        let is_recorded = matches!(step, Step::Recorded | Step::Ready { .. });
        self.counts.hot.useful_hw += u64::from(is_recorded && source == Source::HwHint);
        self.counts.duplicates += u64::from(step == Step::Ready { again: true });
    }
}

impl Policy for Pghot {
    fn observe(&mut self, samples: &[Sample], world: &World<'_>) {
        let mut room = std::mem::take(&mut self.room);
        let below = world.below.of(samples, &mut room);
        self.map.warm(below.iter().map(|sample| sample.page));
        self.passed_over((samples.len() - below.len()) as u64);
        for sample in below {
            self.record(sample.page, sample.node, Source::HwHint, sample.at, world);
        }
        self.room = room;
    }

    fn wants_top(&self) -> bool {
        false
    }

    fn passed_over(&mut self, samples: u64) {
        // The map counts before it asks where a page is, and does nothing else with these.
        self.map.counters.hw_hints += samples;
    }

    fn fault(&mut self, fault: Fault, world: &World<'_>) -> Option<u8> {
        self.record(fault.page, fault.node, Source::HintFault, fault.at, world);
        None
    }

    fn scanned(&mut self, scan: Scan<'_>, world: &World<'_>) {
        // The page-table scan of version 3 to 5; later ones have no such source.
        for page in scan.pages {
            self.record(*page, 0, Source::HwHint, world.now, world);
        }
    }

    fn decide(&mut self, world: &World<'_>, young: &mut Young<'_>, moves: &mut Vec<Move>) {
        self.reclaim.run(world, 0, young, moves);
        self.replug(world.now);
        let now = Now {
            ms: world.now / MILLISECOND,
            jiffies: world.now / (SECOND / self.map.tunables.hz),
            has_room: has_room(world),
        };
        let kept = &self.kept;
        let keeps = self.daemon.keeps;
        let pages = Pages(*world, &self.isolated, self.cgroups);
        let first = moves.len();
        let Hot { flush_pages: mut flushed, mut flushes, .. } = self.counts.hot;
        self.counts.walked = self.daemon.pass(&mut self.map, &pages, now, |batch, target| {
            flushed = flushed.max(batch.len() as u64);
            flushes += 1;
            let to = u8::try_from(target).unwrap_or(0);
            for candidate in batch {
                if keeps {
                    kept.borrow_mut().push((candidate.pfn, candidate.record));
                }
                moves.push(Move { page: candidate.pfn, to });
            }
        });
        (self.counts.hot.flush_pages, self.counts.hot.flushes) = (flushed, flushes);
        for order in &moves[first..] {
            self.isolated.set(order.page, true);
        }
    }

    fn moved(&mut self, page: u32, how: Moved, _: bool) {
        self.isolated.set(page, false);
        let mut kept = self.kept.borrow_mut();
        if let Some(at) = kept.iter().position(|&(pfn, _)| pfn == page) {
            let (pfn, record) = kept.swap_remove(at);
            if how != Moved::Done {
                self.map.restore(pfn, record);
            }
        }
    }

    fn counts(&self) -> Counts {
        let Counters { accesses, hint_faults, hw_hints } = self.map.counters;
        let hot = Hot {
            by_source: [hint_faults, hw_hints],
            candidates: self.daemon.gate.limited,
            candidates_unlimited: self.daemon.gate.unlimited,
            map_bytes_per_tib: self.map.tunables.mode.map_bytes(1 << 40),
            ..self.counts.hot
        };
        Counts { recorded: accesses, hot, ..self.counts }
    }
}
