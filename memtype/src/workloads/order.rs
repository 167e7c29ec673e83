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
    Described, Error, Experiment, Inputs, Kind, Meter, Need, Needed, Over, Param, Read, Refusal,
    Trial, Witness, words,
};
use pagelab_record::{Case, vocabulary::Check};
use pagelab_sys::memtype::{
    Fence, FenceWord, MemoryType, Stores,
    litmus::{Litmus, Outcome, message_passing},
};

use super::needs::{AccessWidth, Module, of_space};
use super::{
    ground::Ground,
    params,
    space::{self, Space},
};
use pagelab_bench::cpus::Chosen;

const PARAMS: &[Param] = &[
    params::TYPE,
    Param::axis("store", Kind::Choice(&["plain", "nt"]), "plain")
        .help("how the data are stored, 8 bytes: ordinary or non-temporal; the flag is ordinary"),
    Param::axis("fence", Kind::Choice(Between::WORDS), "none")
        .asks(&["uc-store"])
        .help("what stands between the data and the flag; uc-store needs the kernel module"),
    Param::axis("pattern", Kind::Size, "4k")
        .help("bytes from the data to the flag; the next round uses the next line of both"),
    Param::axis("rounds", Kind::Ops, "1m").help("rounds in a repetition"),
    Param::axis("cpus", Kind::Cpus(&["auto"]), "auto")
        .help("two CPUs: one stores, the other looks; auto: the least busy one and the next"),
    params::FRAMES,
    params::LEAF,
];

/// A case, read.
#[derive(Debug, Clone)]
pub struct Asked {
    space: Space,
    stores: Stores,
    between: Between,
    /// Bytes from the data to the flag.
    distance: u64,
    /// `None` where no end is named.
    rounds: Option<u64>,
    cpus: Chosen,
}

impl Asked {
    fn of(case: &Case) -> Self {
        let space = Space::of(case, 0);
        Self {
            space: Space { bytes: bytes(case, space.leaf), ..space },
            stores: if case.is("store", "nt") { Stores::NonTemporal } else { Stores::Plain },
            between: case.word("fence"),
            distance: case.bytes("pattern").unwrap_or(4096),
            rounds: case.count("rounds"),
            cpus: Chosen::of(case, "cpus"),
        }
    }
}

/// What is turned away beside what concerns the memory.
const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| !asked.distance.is_multiple_of(64),
        "pattern that is no multiple of 64",
        "data and flag would share a cache line, which is seen whole or not at all; use 64 or more",
    ),
    Refusal::new(
        |asked| asked.cpus.listed.as_ref().is_some_and(|cpus| cpus.len() != 2),
        "cpus that are not two",
        "one CPU stores and another one looks; name two, such as 0-1",
    ),
    Refusal::new(
        |asked| asked.rounds.is_none(),
        "rounds=all|auto",
        "there is no end of rounds; use a number",
    ),
];

/// Memory that the words of all rounds lie in, at least: more lines than a first-level cache has,
/// so that a line comes again only after others.
const BYTES_MIN: u64 = 1 << 20;

/// What it is called.
pub(crate) const NAME: &str = ORDER.about.name;

/// See the module's documentation.
pub const ORDER: Described<Asked> = Described {
    resolve: |case| {
        let bytes = bytes(&case, 4096);
        Space::resolve(case, bytes)
    },
    refusals: REFUSALS,
    parts: &[&Over { of: |asked: &Asked| &asked.space, tables: &[space::REFUSALS] }],
    ..Described::new(
        "memtype/order",
        "in which order another CPU sees stores: plain and non-temporal, with each fence",
        PARAMS,
        &[("rounds", "10k")],
        Asked::of,
    )
};

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        let mut needs = of_space(&self.space);
        needs.extend((self.between == Between::UcStore).then(|| Module.needed()));
        needs.push(
            AccessWidth { loads: false, nt: self.stores == Stores::NonTemporal, bytes: 8 }.needed(),
        );
        needs.push(space::cpu_needs(&self.cpus, 2));
        needs
    }

    fn footprint(&self) -> u64 {
        self.space.bytes + 4096
    }

    fn seconds(&self) -> f64 {
        // Each round is a handful of lines that change their owner; uncached words are slower.
        let is_cached = self.space.memory_type == MemoryType::Wb;
        self.rounds.unwrap_or(1) as f64 * if is_cached { 1e-6 } else { 3e-6 } + 0.01
    }

    fn prepare(&self, _: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let Self { space, between, .. } = *self;
        let cpus = match space::cpus_of(&self.cpus, 2)[..] {
            [stores, looks] => [stores, looks],
            _ => return Err(Error::Case("two CPUs are needed".to_owned())),
        };
        Ok(vec![Box::new(Messages {
            ground: Ground::new(space, &space, between == Between::UcStore)?,
            memory_type: space.memory_type,
            stores: self.stores,
            between,
            distance: usize::try_from(self.distance).unwrap_or(4096),
            rounds: self.rounds.unwrap_or(1),
            cpus,
            outcome: Outcome::default(),
        })])
    }
}

words! {
    /// What stands between the data and the flag.
    enum Between {
        Nothing = "none",
        Sfence = "sfence",
        Mfence = "mfence",
        UcStore = "uc-store",
    }
}

/// Bytes for the words of all rounds, in whole leaves.
fn bytes(case: &Case, leaf: u64) -> u64 {
    (2 * case.bytes("pattern").unwrap_or(0)).max(BYTES_MIN).next_multiple_of(leaf)
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
    ground: Ground,
    memory_type: MemoryType,
    stores: Stores,
    between: Between,
    distance: usize,
    rounds: u64,
    cpus: [usize; 2],
    outcome: Outcome,
}

impl Trial for Messages {
    fn reset(&mut self) -> Result<(), Error> {
        self.ground.look_up()
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Ground { plot, fence_word, .. } = &mut self.ground;
        let fence = match (self.between, &*fence_word) {
            (Between::Sfence, _) => Fence::Sfence,
            (Between::Mfence, _) => Fence::Mfence,
            (Between::UcStore, Some(word)) => Fence::UcStore(FenceWord::Own(word)),
            (Between::Nothing | Between::UcStore, _) => Fence::None,
        };
        let rounds = if meter.is_warm_up() { self.rounds.min(10_000) } else { self.rounds };
        let litmus = Litmus { data: self.stores, fence, distance: self.distance, rounds };
        self.outcome = message_passing(plot, &litmus, self.cpus, meter.clock())?;
        let Outcome { observed, reorderings, ns, .. } = self.outcome;
        meter.observe("round", meter.elapsed(), rounds, 0, ns);
        meter.count("observed", observed);
        meter.count("reorderings", reorderings);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let Outcome { rounds, observed, reorderings, .. } = self.outcome;
        let seen = observed.min(1);
        witness.expect_at_least(Check::FlagSeen, 1, seen);
        if is_forbidden(self.memory_type, self.stores, self.between) {
            witness.expect(Check::Reorderings, 0, reorderings);
        }
        witness.count("rounds", rounds);
        witness.count("observed", observed);
        witness.count("reorderings", reorderings);
        witness.set("width_bytes", 8);
        self.ground.testify(witness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_bench::plan::complete;

    #[test]
    fn only_weakly_ordered_stores_without_a_fence_may_be_seen_late() {
        use Between::{Mfence, Nothing, Sfence, UcStore};
        use Stores::{NonTemporal, Plain};
        for memory_type in [MemoryType::Wb, MemoryType::UcMinus, MemoryType::Wc, MemoryType::Wt] {
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
            let pairs = [("pattern", pattern), ("frames", "ordinary")];
            Asked::of(&complete(&ORDER, &pairs).unwrap()).space
        };
        assert_eq!(of("4k").bytes, 1 << 20);
        assert_eq!(of("2m").bytes, 4 << 20);
        assert_eq!(of("3000000").bytes % 4096, 0);
    }
}
