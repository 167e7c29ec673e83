//! Random accesses as they are asked for: over how much memory, by how many threads, how many.
//!
//! The one idea: what is measured over tiers, a mode that promotes or a placement that stays, makes
//! the same draws, and turns the same requests away.

use pagelab_bench::{Read, Refusal};
use pagelab_record::Case;
use pagelab_sys::{
    loops::draws::{DRAWERS_MAX, Draws},
    machine::Topology,
};

use crate::{cpus::Chosen, needs::near_node};

/// The part of a case.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    /// Bytes of memory.
    pub(super) size: u64,
    pub(super) threads: usize,
    /// Of each thread; `None` where no end is named.
    pub(super) accesses: Option<u64>,
    seed: u64,
    pub(super) cpus: Chosen,
}

/// What nobody's draws can be.
pub(super) const REFUSALS: &[Refusal<Drawn>] = &[
    Refusal::new(
        |drawn| drawn.size == 0 || !drawn.size.is_multiple_of(2 << 20),
        "size not divisible by 2m",
        "memory is placed in whole pages, of which a few say nothing; use size=64m",
    ),
    Refusal::new(
        |drawn| drawn.size / 4096 > u64::from(u32::MAX),
        "size of 16t and more",
        "pages are drawn by 32 bits; use size=8g",
    ),
    Refusal::new(
        |drawn| drawn.accesses.is_none_or(|accesses| accesses < 4 || accesses % 2 == 1),
        "accesses=all|auto, an odd number, or less than 4",
        "every second access is a store; use accesses=1m",
    ),
];

impl Drawn {
    pub(super) fn of(case: &Case) -> Self {
        let threads = case.count("threads").unwrap_or(1);
        Self {
            size: case.bytes("size").unwrap_or(0),
            threads: usize::try_from(threads).unwrap_or(1).min(DRAWERS_MAX),
            accesses: case.count("accesses"),
            seed: case.count("seed").unwrap_or(1),
            cpus: Chosen::of(case, "cpu"),
        }
    }

    /// As many threads as the fast node has CPUs, where nobody says.
    pub(super) fn resolve(case: Case) -> Case {
        if !case.is("threads", "auto") {
            return case;
        }
        let cpus = on_near(Chosen::of(&case, "cpu").all()).len();
        case.with("threads", &cpus.clamp(1, DRAWERS_MAX).to_string())
    }

    /// Bytes, as a distance of addresses.
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.size).expect("addresses have 64 bits")
    }

    /// Base pages.
    pub(super) fn pages(&self) -> u32 {
        u32::try_from(self.size / 4096).unwrap_or(u32::MAX)
    }

    /// The CPU of each thread, all of the fast node.
    pub(super) fn places(&self) -> Vec<Option<usize>> {
        let cpus = on_near(self.cpus.all());
        (0..self.threads).map(|nth| cpus.get(nth % cpus.len().max(1)).copied()).collect()
    }

    /// The draws of each thread; `stores`: every second one is a store.
    pub(super) fn draws(&self, stores: bool) -> Vec<Draws> {
        let accesses = self.accesses.unwrap_or(0);
        let of = |thread| Draws::of(self.seed, thread, self.pages(), accesses, stores);
        (0..self.threads).map(of).collect()
    }
}

/// Those of these CPUs that are on the fast node; all where none is.
fn on_near(cpus: Vec<usize>) -> Vec<usize> {
    let nodes = Topology::machine().nodes();
    let near = near_node().and_then(|near| nodes.into_iter().find(|node| node.id == near));
    let Some(near) = near else { return cpus };
    let there: Vec<usize> = cpus.iter().copied().filter(|cpu| near.cpus.contains(cpu)).collect();
    if there.is_empty() { cpus } else { there }
}
