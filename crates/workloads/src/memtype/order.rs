//! `memtype/order`: in which order another CPU sees two stores.
//!
//! Verification on the CPU that stored proves nothing about a fence, for a CPU always sees its own
//! stores. Here one CPU stores data, then (after a fence or none) a flag; another one waits for the
//! flag and reads the data. The new flag with old data is a reordering. The counts are the result;
//! a claim is made only where the processor manual forbids what would be counted.
//!
//! One series, `round`, holds the time of all rounds, meeting before each of them included: it says
//! how long the experiment took, and nothing about the cost of a fence.

use pagelab_bench::{
    Kind, Param,
    count::parse_count,
    inputs::Inputs,
    meter::{Meter, Witness},
    need::{Need, Needed},
    refusal::{Refusal, listed, refuse},
    workload::{Error, Trial, Workload},
};
use pagelab_record::Case;
use pagelab_sys::memtype::{
    Fence, FenceWord, MemoryType, Plot, Stores,
    litmus::{Litmus, Outcome, message_passing},
};

use super::{
    params,
    signature::{self, Probe},
    space::{self, Found, Space},
};
use crate::memtype::needs::{Module, StoreWidth, of_space};

const PARAMS: &[Param] = &[
    params::TYPE,
    Param::axis("store", Kind::Choice(&["plain", "nt"]), "plain")
        .help("how the data are stored, 8 bytes: ordinary or non-temporal; the flag is ordinary"),
    Param::axis("fence", Kind::Choice(&["none", "sfence", "mfence", "uc-store"]), "none")
        .help("what stands between the data and the flag; uc-store needs the kernel module"),
    Param::axis("pattern", Kind::Size, "4k")
        .help("bytes from the data to the flag; the next round uses the next line of both"),
    Param::axis("rounds", Kind::Ops, "1m").help("rounds in a repetition"),
    Param::axis("cpus", Kind::Cpus(&["auto"]), "auto")
        .help("two CPUs: one stores, the other looks; auto: the least busy one and the next"),
    params::FRAMES,
    params::LEAF,
];

const REFUSALS: &[Refusal<Case>] = &[
    Refusal::new(
        |case| !params::bytes(case, "pattern").is_multiple_of(64),
        "pattern that is no multiple of 64",
        "data and flag would share a cache line, which is seen whole or not at all; use 64 or more",
    ),
    Refusal::new(
        |case| named_cpus(case).is_some_and(|cpus| cpus.len() != 2),
        "cpus that are not two",
        "one CPU stores and another one looks; name two, such as 0-1",
    ),
    Refusal::new(
        |case| parse_count(case.get("rounds").unwrap_or_default()).is_err(),
        "rounds=all|auto",
        "there is no end of rounds; use a number",
    ),
];

fn named_cpus(case: &Case) -> Option<Vec<usize>> {
    case.get("cpus").and_then(pagelab_sys::machine::topology::parse_list)
}

/// Memory that the words of all rounds lie in, at least: more lines than a first-level cache has,
/// so that a line comes again only after others.
const BYTES_MIN: u64 = 1 << 20;

/// See the module's documentation.
#[derive(Debug)]
pub struct Order;

impl Workload for Order {
    fn name(&self) -> &'static str {
        "memtype/order"
    }

    fn summary(&self) -> &'static str {
        "in which order another CPU sees stores: plain and non-temporal, with each fence"
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn resolve(&self, case: Case) -> Case {
        let bytes = bytes(&case, 4096);
        Space::resolve(case, bytes)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        refuse(REFUSALS, case)?;
        refuse(space::REFUSALS, &space_of(case))
    }

    fn refusals(&self) -> Vec<(&'static str, &'static str)> {
        listed(REFUSALS).chain(listed(space::REFUSALS)).collect()
    }

    fn needs(&self, case: &Case) -> Vec<Needed> {
        let mut needs = of_space(&space_of(case));
        if case.get("fence") == Some("uc-store") {
            needs.push(Module.needed());
        }
        needs.push(StoreWidth { nt: stores(case) == Stores::NonTemporal, bytes: 8 }.needed());
        needs.push(space::cpu_needs(case, "cpus", 2));
        needs
    }

    fn footprint(&self, case: &Case) -> u64 {
        space_of(case).bytes + 4096
    }

    fn seconds(&self, case: &Case) -> f64 {
        // Each round is a handful of lines that change their owner; uncached words are slower.
        let is_cached = space_of(case).memory_type == MemoryType::Wb;
        rounds(case) as f64 * if is_cached { 1e-6 } else { 3e-6 } + 0.01
    }

    fn smallest(&self) -> &'static [(&'static str, &'static str)] {
        &[("rounds", "10k")]
    }

    fn prepare(&self, case: &Case, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let space = space_of(case);
        let cpus = match space::cpus_of(case, "cpus", 2)[..] {
            [stores, looks] => [stores, looks],
            _ => return Err(Error::Case("two CPUs are needed".to_owned())),
        };
        let mut plot = space.plot()?;
        let between = Between::of(case);
        let mut fence_word = match between {
            Between::UcStore => Some(Space::of_fence_word(None).plot()?),
            _ => None,
        };
        let probe = signature::probe(&mut plot, fence_word.as_mut())?;
        Ok(vec![Box::new(Messages {
            space,
            plot,
            probe,
            fence_word,
            stores: stores(case),
            between,
            distance: usize::try_from(params::bytes(case, "pattern")).unwrap_or(4096),
            rounds: rounds(case),
            cpus,
            before: None,
            outcome: Outcome::default(),
        })])
    }
}

/// What stands between the data and the flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    Nothing,
    Sfence,
    Mfence,
    UcStore,
}

impl Between {
    fn of(case: &Case) -> Self {
        match case.get("fence") {
            Some("sfence") => Self::Sfence,
            Some("mfence") => Self::Mfence,
            Some("uc-store") => Self::UcStore,
            _ => Self::Nothing,
        }
    }
}

fn stores(case: &Case) -> Stores {
    if case.get("store") == Some("nt") { Stores::NonTemporal } else { Stores::Plain }
}

fn rounds(case: &Case) -> u64 {
    parse_count(case.get("rounds").unwrap_or_default()).unwrap_or(1)
}

/// Bytes for the words of all rounds, in whole leaves.
fn bytes(case: &Case, leaf: u64) -> u64 {
    (2 * params::bytes(case, "pattern")).max(BYTES_MIN).next_multiple_of(leaf)
}

fn space_of(case: &Case) -> Space {
    let space = Space::of_bytes(case, 0);
    Space { bytes: bytes(case, space.leaf), ..space }
}

/// Whether the manual (Intel SDM 3A, chapters on memory ordering and memory cache control) forbids
/// that another CPU sees the flag before the data.
///
/// Stores to WB, WT and UC memory are seen in program order. A non-temporal store to WB, WT or WC
/// memory, and any store to WC memory, may be seen later, unless an `sfence` or `mfence` stands
/// behind it; in UC memory the hint is ignored. A store to UC memory empties the WC buffers, too,
/// but the manual does not call it a fence.
fn is_forbidden(memory_type: MemoryType, stores: Stores, between: Between) -> bool {
    if matches!(between, Between::Sfence | Between::Mfence) {
        return true;
    }
    match memory_type {
        MemoryType::Wc => false,
        MemoryType::UcMinus | MemoryType::Uc | MemoryType::Wp => true,
        MemoryType::Wb | MemoryType::Wt => stores == Stores::Plain,
    }
}

/// The one arm.
#[derive(Debug)]
struct Messages {
    space: Space,
    plot: Plot,
    probe: Option<Probe>,
    fence_word: Option<Plot>,
    stores: Stores,
    between: Between,
    distance: usize,
    rounds: u64,
    cpus: [usize; 2],
    before: Option<Found>,
    outcome: Outcome,
}

impl Trial for Messages {
    fn arm(&self) -> &'static str {
        "pagelab"
    }

    fn reset(&mut self) -> Result<(), Error> {
        let plot = &self.plot;
        self.before = plot.is_module().then(|| space::look_up(&self.space, plot)).transpose()?;
        Ok(())
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let fence = match (self.between, &self.fence_word) {
            (Between::Sfence, _) => Fence::Sfence,
            (Between::Mfence, _) => Fence::Mfence,
            (Between::UcStore, Some(word)) => Fence::UcStore(FenceWord::Own(word)),
            (Between::Nothing | Between::UcStore, _) => Fence::None,
        };
        let rounds = if meter.is_warm_up() { self.rounds.min(10_000) } else { self.rounds };
        let litmus = Litmus { data: self.stores, fence, distance: self.distance, rounds };
        self.outcome = message_passing(&mut self.plot, &litmus, self.cpus, meter.clock())?;
        let Outcome { observed, reorderings, ns, .. } = self.outcome;
        meter.observe("round", meter.elapsed(), rounds, 0, ns);
        meter.count("observed", observed);
        meter.count("reorderings", reorderings);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let Outcome { rounds, observed, reorderings, .. } = self.outcome;
        let seen = observed.min(1);
        witness.expect_at_least("rounds in which the flag was seen, at least", 1, seen);
        if is_forbidden(self.space.memory_type, self.stores, self.between) {
            witness.expect("reorderings, which the manual forbids here", 0, reorderings);
        }
        witness.count("rounds", rounds);
        witness.count("observed", observed);
        witness.count("reorderings", reorderings);
        witness.set("width_bytes", 8);
        if let Some(probe) = &self.probe {
            probe.testify(witness);
        }
        space::testify(&self.space, &self.plot, self.before.take(), witness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::plan::complete;

    fn refused(pairs: &[(&str, &str)]) -> bool {
        complete(&Order, pairs).is_err()
    }

    #[test]
    fn every_refusal_has_a_case_that_meets_it_and_the_neighbour_is_accepted() {
        assert!(refused(&[("pattern", "8")]));
        assert!(refused(&[("cpus", "0")]));
        assert!(refused(&[("rounds", "all")]));
        assert!(refused(&[("type", "wt"), ("frames", "scattered")]));
        assert!(!refused(&[("pattern", "64"), ("cpus", "0-1")]));
        assert!(!refused(&[("type", "wt")]));
    }

    #[test]
    fn only_weakly_ordered_stores_without_a_fence_may_be_seen_late() {
        use Between::{Mfence, Nothing, Sfence, UcStore};
        use Stores::{NonTemporal, Plain};
        for memory_type in MemoryType::REQUESTABLE {
            for stores in [Plain, NonTemporal] {
                assert!(is_forbidden(memory_type, stores, Sfence));
                assert!(is_forbidden(memory_type, stores, Mfence));
            }
        }
        assert!(is_forbidden(MemoryType::Wb, Plain, Nothing));
        assert!(!is_forbidden(MemoryType::Wb, NonTemporal, Nothing));
        assert!(!is_forbidden(MemoryType::Wb, NonTemporal, UcStore));
        assert!(!is_forbidden(MemoryType::Wc, Plain, Nothing));
        assert!(is_forbidden(MemoryType::UcMinus, NonTemporal, Nothing));
    }

    #[test]
    fn the_memory_is_whole_leaves_and_has_room_for_both_words() {
        let of = |pattern: &str| {
            space_of(&complete(&Order, &[("pattern", pattern), ("frames", "ordinary")]).unwrap())
        };
        assert_eq!(of("4k").bytes, 1 << 20);
        assert_eq!(of("2m").bytes, 4 << 20);
        assert_eq!(of("3000000").bytes % 4096, 0);
    }
}
