//! A scenario: everything that a simulation depends on.
//!
//! The one idea: plain values, all public, no defaults that hide a measurement. What belongs to the
//! kernel (sizes of a scan, lengths of a batch) has the kernel's default; what belongs to a machine
//! (seconds, nanoseconds) has to be said.

use std::sync::Arc;

use super::{curve::Curve, generators::WorkSpec, trace::TraceWork};
use crate::policy::{Node, PolicySpec};

/// One simulation.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What random choices start from.
    pub seed: u64,
    /// What the program accesses.
    pub work: Work,
    /// Pages that it accesses; a trace brings its own number, and this must be 0.
    pub pages: u64,
    /// Accesses that miss the caches, all threads together; 0 for a trace: as many as it has.
    pub accesses: u64,
    /// Its threads.
    pub threads: u32,
    /// Share of accesses that are stores; a trace knows itself.
    pub stores: f64,
    /// The memory.
    pub tiers: Tiers,
    /// How long the accesses take.
    pub curve: Curve,
    /// What is observed of them. More than one source may be on.
    pub sources: Vec<Source>,
    /// Who decides.
    pub policy: PolicySpec,
    /// Who moves.
    pub mover: Mover,
    /// What observing costs the program.
    pub costs: Costs,
    /// Rows of the time series, at most.
    pub rows: usize,
}

/// What the program accesses.
#[derive(Debug, Clone)]
pub enum Work {
    /// A generator of [`super::GENERATORS`].
    Generated(WorkSpec),
    /// A recorded sequence.
    Trace(Arc<TraceWork>),
}

/// The nodes, and where the pages are at the start.
#[derive(Debug, Clone, PartialEq)]
pub struct Tiers {
    /// Every node. Tier 0 is the top; the last tier has room for the rest.
    pub nodes: Vec<Node>,
    /// Where pages are before the first access.
    pub start: Placement,
    /// Share of the accesses to a page that come from one node with processors, its home: 1 where
    /// each page belongs to the threads of one node. Homes are ranges of pages of equal size.
    pub locality: f64,
}

/// Where pages are before the first access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// On one node; what does not fit is on those behind it.
    Node(u8),
    /// In order of page: the first node is filled, then the next.
    Fill,
    /// Round robin over nodes by weight; as many weights as nodes.
    Weighted(Vec<u32>),
}

/// What is observed of accesses.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The processor samples accesses.
    Sampling(Sampling),
    /// The kernel takes the present bit away and waits for faults.
    Hints(HintScan),
    /// Accessed bits of every page are read and cleared.
    Young(BitScan),
    /// Written bits of every page are read and cleared.
    Written(BitScan),
}

/// Sampling by the processor.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Accesses for one sample.
    pub period: u64,
    /// The shortest period that the driver takes; a policy may ask for it. 0: not adjustable.
    pub period_min: u64,
    /// The longest one.
    pub period_max: u64,
    /// The period is random by so many accesses, up and down.
    pub jitter: u64,
    /// Share of samples that are lost anyhow.
    pub loss: f64,
    /// Samples that fit into the ring buffers, all processors together; 0: any number.
    pub ring: u64,
    /// Nanoseconds after which the rings are emptied.
    pub drain_ns: u64,
    /// How often an access to the top tier counts, against 1 for the lower tiers.
    pub bias: f64,
    /// Stores are not sampled.
    pub loads_only: bool,
    /// Share of the samples that are of accesses which the caches answer: those of pages that miss
    /// as often. 0 where the hardware looks at misses only.
    pub hits: f64,
    /// Nanoseconds that a load takes at least to be told, unloaded; 0 for any. A store has no such
    /// time and a hit less than any: neither is told.
    pub latency_min_ns: f64,
}

/// Hint faults as the scheduler's scanner arranges them.
#[derive(Debug, Clone, PartialEq)]
pub struct HintScan {
    /// Nanoseconds before the first scan.
    pub delay_ns: u64,
    /// Nanoseconds between scans at the start: a worker's is the delay, a main thread's the floor.
    pub period_ns: u64,
    /// The shortest period: see [`HintScan::floor_ns`].
    pub period_min_ns: u64,
    /// The longest one.
    pub period_max_ns: u64,
    /// Whether the period moves after a full pass, as `update_task_scan_period` does it.
    pub adapts: bool,
    /// Share of faults that the scheduler takes for private to their thread.
    pub private: f64,
    /// Entries that one scan changes: `scan_size`.
    pub updates: u64,
    /// Pages that one scan passes, changed or not: eight times as many.
    pub virtual_pages: u64,
    /// Pages that are walked at once.
    pub chunk: u64,
    /// Share of faults whose page cannot be moved.
    pub failure: f64,
    /// Nanoseconds in which another access to the page faults too, before the first is done.
    pub duplicate_ns: u64,
    /// Nanoseconds that a fault takes from its thread, the move included.
    pub fault_ns: u64,
}

/// A pass over a bit of every page.
#[derive(Debug, Clone, PartialEq)]
pub struct BitScan {
    /// Nanoseconds between passes.
    pub period_ns: u64,
    /// Picoseconds for each page that the scanner is busy with.
    pub page_ps: u64,
    /// Picoseconds that it takes from the program for each page: flushed translations.
    pub stall_ps: u64,
}

/// Who moves pages.
#[derive(Debug, Clone, PartialEq)]
pub struct Mover {
    /// Nanoseconds between looks at the policy when there is nothing to do: `kmigrated_sleep_ms`.
    pub sleep_ns: u64,
    /// Picoseconds for each record that it walks over.
    pub walk_ps: u64,
    /// Nanoseconds to move one page.
    pub move_ns: u64,
    /// Pages that are moved at once. pghot flushes when its counter exceeds `kmigrated_batch_nr`:
    /// one page more than that number.
    pub batch: u32,
    /// Share of pages that cannot be moved.
    pub failure: f64,
    /// Bytes a second that may be moved; `None` for no limit. What was not used is kept for a
    /// second at most.
    pub limit: Option<u64>,
    /// Nanoseconds that a batch takes from every thread: the flush of translations.
    pub flush_ns: u64,
    /// Accesses' worth of lower tier time that copying one page takes from the program.
    pub copy_accesses: f64,
    /// Nanoseconds after a demotion in which a promotion of the page is a ping-pong.
    pub ping_pong_ns: u64,
}

/// What observing costs the program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Costs {
    /// Nanoseconds that a sample takes from its thread.
    pub sample_ns: u64,
}

impl HintScan {
    /// The kernel's defaults for a working set of so many pages: 256 MB a scan, one second before
    /// the first one, and the floor that 2560 MB a second leaves.
    pub fn kernel(pages: u64) -> Self {
        Self {
            delay_ns: 1_000_000_000,
            period_ns: 1_000_000_000,
            period_min_ns: Self::floor_ns(pages, 1_000_000_000, 65_536),
            period_max_ns: 60_000_000_000,
            adapts: true,
            private: 1.0,
            updates: 65_536,
            virtual_pages: 524_288,
            chunk: 512,
            failure: 0.0,
            duplicate_ns: 0,
            fault_ns: 0,
        }
    }

    /// `task_scan_min`: the period that covers `pages` in `period_min_ns` by scans of `updates`
    /// pages, but no shorter than what 2560 MB a second allow.
    pub fn floor_ns(pages: u64, period_min_ns: u64, updates: u64) -> u64 {
        let updates = updates.max(1);
        let windows = (2560 * 256 / updates).max(1);
        let floor = 1_000_000_000 / windows;
        let scans = pages.div_ceil(updates).max(1);
        floor.max(period_min_ns / scans)
    }
}

impl Sampling {
    /// Every sample arrives, of loads and stores, from every tier alike.
    pub fn every(period: u64) -> Self {
        Self {
            period,
            period_min: 0,
            period_max: 0,
            jitter: 0,
            loss: 0.0,
            ring: 0,
            drain_ns: 0,
            bias: 1.0,
            loads_only: false,
            hits: 0.0,
            latency_min_ns: 0.0,
        }
    }
}

impl Mover {
    /// The kernel's defaults for a daemon that moves a page in `move_ns`: looks every 100 ms,
    /// batches of `kmigrated_batch_nr` pages and one.
    pub fn kernel(move_ns: u64) -> Self {
        Self {
            sleep_ns: 100_000_000,
            walk_ps: 0,
            move_ns,
            batch: 513,
            failure: 0.0,
            limit: None,
            flush_ns: 0,
            copy_accesses: 0.0,
            ping_pong_ns: 10_000_000_000,
        }
    }
}

impl Tiers {
    /// A top tier with processors and a lower tier with room for `pages`, where they all are.
    pub fn two(top_pages: u64, pages: u64) -> Self {
        let top = Node { tier: 0, pages: top_pages, cpus: true };
        let lower = Node { tier: 1, pages, cpus: false };
        Self { nodes: vec![top, lower], start: Placement::Node(1), locality: 1.0 }
    }
}
