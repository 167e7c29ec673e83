//! The record of pghot as it was published, and what its `pghot_record_access` does with it.
//!
//! The one idea: bit for bit and step for step, weaknesses included: time is modular and nothing
//! ages, so an old access may look recent; a page once ready stays ready until it is consumed; what
//! is consumed and then not moved has lost its history. [`super::HotMap`] is how we would do it.
//!
//! The order of the steps is that of the eighth version of the series, or of the seventh. Memory is
//! asked about through [`Frames`]; the daemon's half is [`super::kmigrated`].

mod record;

pub use self::record::{Mode, Record};
use super::cells::Cells;
use crate::{SECTION_PAGES, policy::PageSet};

/// Where the filters are asked in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Nodes first, then whether the page exists.
    V7,
    /// Whether the page exists first.
    V8,
}

/// Who saw an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A hint fault: bit 0 of `enabled_sources`.
    HintFault,
    /// A hardware sample: bit 1.
    HwHint,
}

/// What is asked about a page frame.
pub trait Frames {
    /// Whether it has a page, and that is not of a zone device.
    fn is_online(&self, pfn: u32) -> bool;
    /// Its node.
    fn node(&self, pfn: u32) -> u16;
    /// Whether that is this node.
    #[inline]
    fn is_on(&self, pfn: u32, node: u16) -> bool {
        self.node(pfn) == node
    }
    /// Whether that node is in the top tier.
    fn is_top_tier(&self, pfn: u32) -> bool;
    /// Whether its folio is on an LRU list.
    fn is_on_lru(&self, pfn: u32) -> bool;
    /// Whether there is such a node.
    fn is_node(&self, node: u16) -> bool;
    /// The memory cgroup that its folio is charged to.
    fn cgroup(&self, pfn: u32) -> u32 {
        let _ = pfn;
        0
    }
}

/// At which of its eleven steps a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// 1: the daemon does not run.
    NotStarted,
    /// 2: there is no such node.
    NoNode,
    /// 3: the source is switched off.
    SourceOff,
    /// 4: no page, or one of a zone device.
    Offline,
    /// 5: the page is on the accessor's node.
    SameNode,
    /// 6: the page is in the top tier.
    TopTier,
    /// 7: the folio is not on an LRU list.
    NotOnLru,
    /// 8: the section has no map.
    NoMap,
    /// 10: recorded; not ready.
    Recorded,
    /// 11: recorded, and ready: now, or since before.
    Ready {
        /// Since before.
        again: bool,
    },
}

/// The tunables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunables {
    /// Which record.
    pub mode: Mode,
    /// Jiffies a second.
    pub hz: u64,
    /// `pghot_promote_freq_window_ms`.
    pub window_ms: u64,
    /// `pghot_freq_threshold`.
    pub threshold: u8,
    /// `pghot_target_nid`.
    pub target: u16,
    /// `pghot_enabled_sources`.
    pub sources: u8,
    /// The order of the filters.
    pub order: Order,
}

impl Tunables {
    /// The published defaults, with both sources on.
    pub const fn published(mode: Mode) -> Self {
        let window_ms = mode.window_ms();
        Self { mode, hz: 1000, window_ms, threshold: 2, target: 0, sources: 3, order: Order::V8 }
    }
}

impl Tunables {
    /// Step 10: a record with one access more.
    #[inline]
    fn counted(&self, bits: u64, node: u16, now: u64) -> (u64, Step) {
        let Self { mode, hz, window_ms, threshold, .. } = *self;
        let window = window_ms * hz / 1000;
        let old = mode.decode(bits);
        let recent =
            mode.latency(now, old.time) <= window && (!mode.restarts_by_node() || old.node == node);
        let frequency = if recent { (old.frequency + 1).min(mode.frequency_max()) } else { 1 };
        let ready = old.ready || frequency >= threshold;
        let step = if ready { Step::Ready { again: old.ready } } else { Step::Recorded };
        let record = Record { node, frequency, time: mode.time(now), ready };
        (mode.encode(record), step)
    }
}

/// Counters, as in `/proc/vmstat`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    /// `pghot_recorded_accesses`.
    pub accesses: u64,
    /// `pghot_recorded_hintfaults`: counted before the filters.
    pub hint_faults: u64,
    /// `pghot_recorded_hwhints`: counted before the filters.
    pub hw_hints: u64,
}

/// The records of one lower-tier node.
#[derive(Debug)]
pub struct Map {
    pub(super) cells: Cells,
    /// What it was told.
    pub tunables: Tunables,
    /// Its counters.
    pub counters: Counters,
    /// Whether each section has a ready page.
    hot: Vec<bool>,
    /// The pages with a ready record: ours, so that a walk need not look at every record of a hot
    /// section. What it finds is the same.
    ready: PageSet,
    /// Whether each section is offline: it has no map.
    offline: Vec<bool>,
    /// The node's bit that the daemon polls.
    activate: bool,
    started: bool,
}

impl Map {
    /// A map of so many page frames, from 0 on.
    pub fn new(pages: usize, tunables: Tunables) -> Self {
        let sections = pages.div_ceil(SECTION_PAGES as usize);
        Self {
            cells: Cells::new(pages, tunables.mode.bits()),
            tunables,
            counters: Counters::default(),
            hot: vec![false; sections],
            offline: vec![false; sections],
            ready: PageSet::new(pages, false),
            activate: false,
            started: true,
        }
    }

    /// Whether the daemon runs: without it nothing is recorded.
    pub const fn start(&mut self, runs: bool) {
        self.started = runs;
    }

    /// What the eighth version does where a section goes offline: its map is freed, and with it all
    /// that was known of its pages. Until it is online again, nothing is recorded of them.
    pub fn offline(&mut self, section: usize) {
        for pfn in self.frames(section) {
            self.take(pfn);
        }
        self.hot[section] = false;
        self.offline[section] = true;
    }

    /// A section comes online: it has a map, and nothing in it.
    pub fn online(&mut self, section: usize) {
        self.offline[section] = false;
    }

    /// The record of a page frame.
    pub fn get(&self, pfn: u32) -> Record {
        self.tunables.mode.decode(self.cells.load(pfn as usize))
    }

    /// Brings the records of page frames near that are about to be recorded, all at once. Only a
    /// hint.
    #[inline]
    pub fn warm(&self, frames: impl Iterator<Item = u32>) {
        self.cells.warm(frames.map(|pfn| pfn as usize));
    }

    /// `pghot_record_access`.
    #[inline]
    pub fn record_access(
        &mut self,
        pfn: u32,
        node: u16,
        source: Source,
        now: u64,
        frames: &impl Frames,
    ) -> Step {
        if let Some(step) = self.refuse(node, source, frames) {
            return step;
        }
        *match source {
            Source::HintFault => &mut self.counters.hint_faults,
            Source::HwHint => &mut self.counters.hw_hints,
        } += 1;
        if let Some(step) = self.pass_over(pfn, node, frames) {
            return step;
        }
        self.counters.accesses += 1;
        let (bits, step) = self.tunables.counted(self.cells.load(pfn as usize), node, now);
        self.cells.replace(pfn as usize, bits);
        if let Step::Ready { .. } = step {
            self.activate(pfn);
        }
        step
    }

    /// Steps 1 to 3.
    #[inline]
    fn refuse(&self, node: u16, source: Source, frames: &impl Frames) -> Option<Step> {
        let bit = match source {
            Source::HintFault => 1,
            Source::HwHint => 2,
        };
        if !self.started {
            return Some(Step::NotStarted);
        }
        if !frames.is_node(node) {
            return Some(Step::NoNode);
        }
        (self.tunables.sources & bit == 0).then_some(Step::SourceOff)
    }

    /// Steps 4 to 8.
    #[inline]
    fn pass_over(&self, pfn: u32, node: u16, frames: &impl Frames) -> Option<Step> {
        if let Some(step) = self.filter(pfn, node, frames) {
            return Some(step);
        }
        if !frames.is_on_lru(pfn) {
            return Some(Step::NotOnLru);
        }
        (!self.has_map(pfn)).then_some(Step::NoMap)
    }

    #[inline]
    fn has_map(&self, pfn: u32) -> bool {
        (pfn as usize) < self.cells.len() && !self.offline[(pfn / SECTION_PAGES) as usize]
    }

    /// Steps 4 to 6, in the order of the version.
    #[inline]
    fn filter(&self, pfn: u32, node: u16, frames: &impl Frames) -> Option<Step> {
        let online = || (!frames.is_online(pfn)).then_some(Step::Offline);
        let nodes = || {
            if frames.is_on(pfn, node) {
                Some(Step::SameNode)
            } else {
                frames.is_top_tier(pfn).then_some(Step::TopTier)
            }
        };
        match self.tunables.order {
            Order::V7 => nodes().or_else(online),
            Order::V8 => online().or_else(nodes),
        }
    }

    /// Step 11.
    fn activate(&mut self, pfn: u32) {
        self.hot[(pfn / SECTION_PAGES) as usize] = true;
        self.ready.set(pfn, true);
        self.activate = true;
    }

    /// Puts a record back: what a corrected daemon does with a page that it could not move.
    pub fn restore(&mut self, pfn: u32, record: Record) {
        if !self.has_map(pfn) {
            return;
        }
        self.cells.replace(pfn as usize, self.tunables.mode.encode(record));
        self.activate(pfn);
    }

    /// Test-and-clear of the node's bit.
    pub(super) const fn take_activation(&mut self) -> bool {
        std::mem::replace(&mut self.activate, false)
    }

    /// Test-and-clear of a section's bit.
    pub(super) fn take_section(&mut self, section: usize) -> bool {
        std::mem::take(&mut self.hot[section])
    }

    /// The page frames of a section.
    pub(super) fn frames(&self, section: usize) -> std::ops::Range<u32> {
        let pages = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
        let first = u32::try_from(section).unwrap_or(u32::MAX).saturating_mul(SECTION_PAGES);
        first.min(pages)..first.saturating_add(SECTION_PAGES).min(pages)
    }

    /// The ready records of a section, in rising order.
    pub(super) fn ready(&self, section: usize) -> Vec<u32> {
        self.ready.pages(self.frames(section), true).collect()
    }

    /// Takes a record out.
    pub(super) fn take(&mut self, pfn: u32) -> Record {
        self.ready.set(pfn, false);
        self.tunables.mode.decode(self.cells.replace(pfn as usize, 0))
    }

    /// Sections.
    pub const fn sections(&self) -> usize {
        self.hot.len()
    }
}

#[cfg(test)]
mod tests;
