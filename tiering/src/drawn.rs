//! Random accesses as they are asked for: over how much memory, by how many threads, how many.
//!
//! The one idea: what is measured over tiers, a mode that promotes or a placement that stays, makes
//! the same draws, and turns the same requests away.

use pagelab_bench::{Error, Read, Refusal, Witness, cpus::Chosen, needs::near_node};
use pagelab_record::{Case, vocabulary::Check};
use pagelab_sys::{
    Area,
    loops::draws::{DRAWERS_MAX, Draws},
    machine::Topology,
    process::{
        Pinned,
        crew::{Barrier, threads},
    },
    time::{Clock, Span},
};

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

/// What accesses took.
#[derive(Debug)]
pub(super) struct Made {
    /// From the first thread's start to the last one's end.
    pub(super) span: Span,
    /// What the loads of each thread added up to.
    pub(super) sums: Vec<u64>,
}

/// Has each thread make its draws over an area, on its CPU; `is_short`: two less than it should.
pub(super) fn access(
    area: &Area,
    draws: &[Draws],
    cpus: &[Option<usize>],
    is_short: bool,
    clock: &Clock,
) -> Result<Made, Error> {
    let barrier = Barrier::new(u32::try_from(draws.len()).unwrap_or(1))?;
    let made = threads(draws.len(), |thread: usize| -> Result<(Span, u64), Error> {
        // Who could not be bound says so afterwards: the others wait for it.
        let pinned = cpus[thread].map(Pinned::to).transpose();
        let draws = if is_short { draws[thread].fewer(2) } else { draws[thread] };
        let mut sum = 0;
        barrier.wait();
        let span = clock.span(|| sum = area.draw(&draws));
        pinned.map(drop)?;
        Ok((span, sum))
    })?;
    let made: Vec<(Span, u64)> = made.into_iter().collect::<Result<_, Error>>()?;
    let span = made.iter().map(|(span, _)| *span).reduce(Span::union).unwrap_or_default();
    Ok(Made { span, sums: made.into_iter().map(|(_, sum)| sum).collect() })
}

/// Makes the draws once more over an array, which is zero or as the area is, and claims that the
/// loads added up to the same and that the area holds what they leave.
pub(super) fn compare(
    area: &Area,
    draws: &[Draws],
    sums: &[u64],
    is_stored: bool,
    witness: &mut Witness,
) {
    let pages = area.layout().bytes() / 4096;
    let (mut expected, mut observed, mut wrong) = (0_u64, 0_u64, 0);
    for (draws, sum) in draws.iter().zip(sums) {
        let word = |page: usize| area.word(page * 4096 + draws.slot());
        let mut words: Vec<u64> =
            if is_stored { vec![0; pages] } else { (0..pages).map(word).collect() };
        expected = expected.rotate_left(7) ^ draws.replay(&mut words);
        observed = observed.rotate_left(7) ^ sum;
        wrong += (0..pages).filter(|page| word(*page) != words[*page]).count() as u64;
    }
    witness.expect(Check::WordsOfAccesses, 0, wrong);
    witness.expect_digest(Check::DigestOfAccesses, expected, observed);
}

/// Those of these CPUs that are on the fast node; all where none is.
fn on_near(cpus: Vec<usize>) -> Vec<usize> {
    let nodes = Topology::machine().nodes();
    let near = near_node().and_then(|near| nodes.into_iter().find(|node| node.id == near));
    let Some(near) = near else { return cpus };
    let there: Vec<usize> = cpus.iter().copied().filter(|cpu| near.cpus.contains(cpu)).collect();
    if there.is_empty() { cpus } else { there }
}
