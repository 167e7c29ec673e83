//! Policies: what is told to one, what it answers, and the table of all of them.
//!
//! The one idea: the same trait is driven by the simulator and by a live engine. Everything that a
//! policy knows comes through its arguments: samples, faults, scans, and a [`World`] with the time,
//! where each page is and what is free. What it wants is a list of [`Move`]s; whoever drives it
//! moves, and tells how that went. No clock, no I/O, no random numbers.

mod balance;
mod bucket;
mod damon;
mod ema;
mod fixed;
mod histogram;
mod history;
mod kpromoted;
mod numab;
mod page_set;
mod pagelab;
mod pghot;
mod rank;
mod reclaim;
mod table;
mod threshold;

use std::fmt;

pub use self::{bucket::Bucket, page_set::PageSet, table::POLICIES};
use crate::spec::{Parameter, Row, Spec};

/// A node of memory as a policy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Its tier: 0 is the top tier.
    pub tier: u8,
    /// Pages that it has for this working set.
    pub pages: u64,
    /// Whether threads run on it.
    pub cpus: bool,
}

/// What is known of costs, as a calibration gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Nanoseconds of run time saved by each access that moves from a lower tier to the top tier,
    /// at the present placement.
    pub saved_ns: f64,
    /// Nanoseconds of run time that moving one page costs the accessors.
    pub move_ns: f64,
    /// Nanoseconds that the mover is busy with one page.
    pub busy_ns: f64,
    /// Nanoseconds of run time that one sample costs the accessors.
    pub sample_ns: f64,
    /// Loaded latency of each tier in nanoseconds, where it is measured; else empty.
    pub latency_ns: [f64; 4],
}

/// What a policy may look at.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    /// Nanoseconds since the start.
    pub now: u64,
    /// The nodes.
    pub nodes: &'a [Node],
    /// The node of each page.
    pub place: &'a [u8],
    /// Which of them are in a lower tier: what `place` and `nodes` say, for whoever asks often.
    pub below: &'a PageSet,
    /// Free pages of each node.
    pub free: &'a [u64],
    /// What things cost.
    pub prices: &'a Prices,
    /// Accesses for one sample, as the source is set now; 0 without sampling.
    pub period: u64,
    /// Who knows the future: the simulator, for the oracle.
    pub future: Option<&'a dyn Future>,
}

impl World<'_> {
    /// All pages of the top tier, or all others, in rising order.
    pub fn pages(&self, is_top: bool) -> page_set::Pages<'_> {
        let end = u32::try_from(self.place.len()).unwrap_or(u32::MAX);
        self.below.pages(0..end, !is_top)
    }

    /// Whether a page is in the top tier.
    #[inline]
    pub fn is_top(&self, page: u32) -> bool {
        !self.below.has(page)
    }

    /// The top-tier node with the most room, but `near` where that one has any.
    pub fn target(&self, near: u8) -> u8 {
        let at = near as usize;
        if self.nodes.get(at).is_some_and(|node| node.tier == 0) && self.free[at] > 0 {
            return near;
        }
        u8::try_from(self.emptiest_top(self.free)).unwrap_or(0)
    }

    /// The top-tier node with the most room, of what is free on each.
    fn emptiest_top(&self, free: &[u64]) -> usize {
        let top = (0..free.len()).filter(|&node| self.nodes[node].tier == 0);
        top.max_by_key(|&node| (free[node], usize::MAX - node)).unwrap_or(0)
    }

    /// The node of the next lower tier with the most room.
    pub fn below(&self, from: u8) -> Option<u8> {
        let tier = self.nodes[from as usize].tier;
        let lower = (0..self.nodes.len()).filter(|&node| self.nodes[node].tier > tier);
        let with_room = lower.filter(|&node| self.free[node] > 0);
        let best = with_room
            .min_by_key(|&node| (self.nodes[node].tier, u64::MAX - self.free[node], node))?;
        u8::try_from(best).ok()
    }

    /// Free pages of the top tier.
    pub fn free_top(&self) -> u64 {
        let top = self.nodes.iter().zip(self.free).filter(|(node, _)| node.tier == 0);
        top.map(|(_, free)| free).sum()
    }

    /// Pages of the top tier, free or not.
    pub fn top_pages(&self) -> u64 {
        self.nodes.iter().filter(|node| node.tier == 0).map(|node| node.pages).sum()
    }
}

/// One access that the hardware sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds since the start.
    pub at: u64,
    /// The page.
    pub page: u32,
    /// The node of the processor that accessed it.
    pub node: u8,
    /// A store, not a load.
    pub store: bool,
}

/// A hint fault: an access to a page that the scan had marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Nanoseconds since the start.
    pub at: u64,
    /// When the scan marked it.
    pub marked: u64,
    /// The page.
    pub page: u32,
    /// The node of the processor that accessed it.
    pub node: u8,
}

/// What a pass over accessed or written bits found.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a> {
    /// Pages whose bit was set, in rising order; the bits are clear now.
    pub pages: &'a [u32],
    /// Written bits instead of accessed bits.
    pub writes: bool,
    /// Nanoseconds that the bits had to be set in.
    pub window: u64,
}

/// A page that should move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The page.
    pub page: u32,
    /// Where to.
    pub to: u8,
}

/// How a move went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The page is there.
    Done,
    /// The target has no room.
    Full,
    /// It could not be isolated or copied.
    Failed,
}

/// What a policy counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pages whose records the last [`Policy::decide`] walked over; while there are any, the mover
    /// does not sleep.
    pub walked: u64,
    /// Accesses that were recorded so far.
    pub recorded: u64,
    /// Recorded accesses to pages that were already on their way.
    pub duplicates: u64,
    /// What pghot's map and daemon count; other policies have neither.
    pub hot: Hot,
}

/// What pghot's map and its daemon count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hot {
    /// By source, before the map's filters: `pghot_recorded_hintfaults` and
    /// `pghot_recorded_hwhints`.
    pub by_source: [u64; 2],
    /// Samples of the hardware among them that passed all filters and were recorded:
    /// `hwhint_useful_events`.
    pub useful_hw: u64,
    /// Pages that asked the rate limit: `pgpromote_candidate`.
    pub candidates: u64,
    /// Pages that went without a limit, for the target had room: `pgpromote_candidate_nrl`.
    pub candidates_unlimited: u64,
    /// Pages of the largest batch that was handed over for moving: `kmigrated_batch_nr` and one.
    pub flush_pages: u64,
    /// Batches that were handed over: one for each change of target or memory cgroup, too.
    pub flushes: u64,
    /// Bytes of the map for each TiB of memory that it is about.
    pub map_bytes_per_tib: u64,
}

/// Whether a page was accessed since this was last asked.
pub type Young<'a> = dyn FnMut(u32) -> bool + 'a;

/// A state machine that decides which pages move.
pub trait Policy: fmt::Debug + Send {
    /// Samples, in the order of time.
    fn observe(&mut self, samples: &[Sample], world: &World<'_>) {
        let _ = (samples, world);
    }

    /// Whether samples of pages in the top tier say anything to it. Where they do not, whoever
    /// drives it may tell only how many there were.
    fn wants_top(&self) -> bool {
        true
    }

    /// So many samples were of pages in the top tier and are not told.
    fn passed_over(&mut self, samples: u64) {
        let _ = samples;
    }

    /// A hint fault; a node where the page should be moved to before the access goes on. Where a
    /// policy does not tell them apart, a fault is a sample.
    fn fault(&mut self, fault: Fault, world: &World<'_>) -> Option<u8> {
        let Fault { at, page, node, .. } = fault;
        self.observe(&[Sample { at, page, node, store: false }], world);
        None
    }

    /// A pass over accessed or written bits.
    fn scanned(&mut self, scan: Scan<'_>, world: &World<'_>) {
        let _ = (scan, world);
    }

    /// Nanoseconds between calls of [`Self::tick`]; 0 for none.
    fn interval(&self) -> u64 {
        0
    }

    /// Called every [`Self::interval`].
    fn tick(&mut self, world: &World<'_>, young: &mut Young<'_>) {
        let _ = (world, young);
    }

    /// Adds the pages that should move, most urgent first. Called when all earlier moves are done.
    fn decide(&mut self, world: &World<'_>, young: &mut Young<'_>, moves: &mut Vec<Move>) {
        let _ = (world, young, moves);
    }

    /// How a move that it asked for went, and whether the page is in the top tier now.
    fn moved(&mut self, page: u32, how: Moved, is_top: bool) {
        let _ = (page, how, is_top);
    }

    /// The sampling period that it would like, in accesses.
    fn period(&self) -> Option<u64> {
        None
    }

    /// Whether it exchanges nothing for a while, since that did not pay.
    fn rests(&self) -> bool {
        false
    }

    /// What it counted so far.
    fn counts(&self) -> Counts {
        Counts::default()
    }
}

/// What is known when a policy is built.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// Pages of the working set.
    pub pages: u32,
    /// The nodes.
    pub nodes: &'a [Node],
    /// Shortest and longest sampling period of the source; 0 without one.
    pub periods: (u64, u64),
}

/// Accesses that have not happened yet.
pub trait Future: fmt::Debug {
    /// A number that is another one after each change of the pattern.
    fn phase(&self) -> u64;

    /// Expected accesses to each page until the pattern changes.
    fn accesses(&self) -> Vec<f64>;
}

type Build = fn(&PolicySpec, &Setting<'_>) -> Box<dyn Policy>;

/// A row of [`POLICIES`].
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// One line: how it decides.
    pub summary: &'static str,
    /// What it can be told.
    pub parameters: &'static [Parameter],
    /// What it needs to observe anything.
    pub needs: Needs,
    build: Build,
}

/// What a policy learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// Sampled accesses, or hint faults in their place.
    Samples,
    /// Hint faults.
    Faults,
    /// Accessed bits that it asks for page by page.
    Young,
    /// The future.
    Future,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Row for Kind {
    const KIND: &'static str = "policy";

    fn rows() -> &'static [Self] {
        POLICIES
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }
}

/// A policy with its parameters: `pghot:threshold=1,window=3000`.
pub type PolicySpec = Spec<Kind>;

impl PolicySpec {
    /// The policy, in its first state.
    pub fn build(&self, setting: &Setting<'_>) -> Box<dyn Policy> {
        (self.row().build)(self, setting)
    }
}
