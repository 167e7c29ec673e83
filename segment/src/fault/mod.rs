//! `segment/fault`: what first touch and taking again cost where memory comes in segments.
//!
//! The published loop, round after round: take memory, store to every 4 KiB, give it back. Arms
//! differ in where it comes from: the kernel's base pages, its transparent huge pages, a segment of
//! ours, a segment of the kernel module. They alternate in one process, and each is over as much
//! memory.
//!
//! A segment of ours is address space that is reserved once, aligned to its leaf and mapped. Its
//! *first pass* faults every leaf in. What is given back stays mapped and is cleared in one piece,
//! so that in the *steady state* taking it again takes no fault. A segment of the module is what
//! was published: each round faults all of it, by offset, and the kernel clears it there.
//!
//! `setup`, `zero`, `map`, `touch` and `release` are series of their own, those of the first pass
//! with `first-` before them; `process` is the CPU time of all of them, and `all` adds that of the
//! kernel's helpers. Clearing counts for the round that takes what was cleared. After each round of
//! a segment of ours the same extent is cleared (`clear`) and touched (`control`) once more, which
//! is what a round without any overhead would be. Reading back the page table, marking words and
//! looking for them are off every clock.

mod asked;
mod cleaner;
mod held;
mod kernel;
mod module;
mod paid;
mod proof;

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Kind, Needed, Param, Refusal, Trial, cpus::stay,
};

use self::{
    asked::{Arm, Asked, Lie, Zeroing},
    held::Held,
    kernel::Kernel,
    module::Module,
};
pub use self::{
    asked::{Backed, Place},
    proof::{Found, Frames},
};
use pagelab_mappings::{leave_unmarked, space};

const PARAMS: &[Param] = &[
    Param::arms("arms", Kind::Choice(Arm::WORDS), Arm::EVERY)
        .asks(&["segment-1g", "module-2m"])
        .help("where memory comes from; what the host lacks something for is left out"),
    Param::axis("size", Kind::Size, "1g").help("memory of a round"),
    Param { default: "20", ..space::ROUNDS }
        .help("rounds of each arm in each process; auto is as many as the interval needs"),
    Param::axis("align", Kind::Choice(&["aligned", "ragged"]), "aligned")
        .help("from a boundary of the leaf, or from the middle of a leaf of each size (ragged)"),
    Param::axis("backing", Kind::Choice(Backed::WORDS), "thp")
        .help("what leaves of 2m of a segment are: transparent huge pages, or pages of the pool"),
    Param::axis("zero", Kind::Choice(Zeroing::WORDS), "release")
        .help("who clears: a helper when memory is given back, or the program that takes it again"),
    space::CPU,
    Param { kind: Kind::Choice(Lie::WORDS), ..space::LIE },
];

const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| !asked.size.is_multiple_of(4096),
        "size not divisible by 4k",
        "only whole pages are touched",
    ),
    Refusal::new(
        |asked| asked.is_ragged && asked.size <= 2 << 20,
        "align=ragged with size up to 2m",
        "no whole leaf would lie in it; use size=4m",
    ),
    Refusal::new(
        |asked| asked.lie == Lie::ThpOff && !asked.arms.iter().any(|arm| asked.asks_for_thp(*arm)),
        "lie=thp-off without arms=thp|segment-2m",
        "no other arm asks for huge pages; it would be the truth",
    ),
    Refusal::new(
        |asked| asked.lie == Lie::Unzeroed && !asked.arms.iter().any(|arm| arm.is_segment()),
        "lie=unzeroed without a segment",
        "nobody but a segment clears; it would be the truth",
    ),
];

/// See the module's documentation.
pub const FAULT: Described<Asked> = Described {
    refusals: REFUSALS,
    ..Described::new(
        "segment/fault",
        "first touch, and taking again, of segments of 4k, 2m and 1g beside plain and huge pages",
        PARAMS,
        &[("size", "4m"), ("rounds", "3")],
        Asked::of,
    )
};

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        // The first arm is what the others stand beside.
        let first = self.arms.first().map(|arm| self.of_arm(*arm)).unwrap_or_default();
        [self.memory()].into_iter().chain(self.cpus.needs()).chain(first).collect()
    }

    fn of_arms(&self) -> Vec<(&'static str, Vec<Needed>)> {
        self.arms.iter().map(|arm| (arm.name(), self.of_arm(*arm))).collect()
    }

    fn footprint(&self) -> u64 {
        let held = self.arms.iter().filter(|arm| arm.holds()).count() as u64;
        let passes = self.arms.iter().any(|arm| !arm.is_segment());
        self.size * (held + u64::from(passes))
    }

    fn seconds(&self) -> f64 {
        let ns_per_page = |arm: &Arm| match arm {
            Arm::Plain | Arm::Module4k => 1500.0,
            _ => 400.0,
        };
        let each: f64 = self.arms.iter().map(ns_per_page).sum();
        (self.size / 4096) as f64 * each / 1e9 + 0.002
    }

    fn repetitions(&self) -> Option<u32> {
        self.rounds
    }

    fn prepare(&self, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        leave_unmarked();
        stay(self.cpus.of_workers(1)[0])?;
        let trial = |arm: &Arm| -> Result<Box<dyn Trial>, Error> {
            Ok(match arm {
                Arm::Plain | Arm::Thp => Box::new(Kernel::new(self, *arm, inputs)?),
                Arm::Segment2m | Arm::Segment1g => Box::new(Held::new(self, *arm, inputs)?),
                _ => Box::new(Module::new(self, *arm)),
            })
        };
        self.arms.iter().filter(|arm| inputs.has(arm.name())).map(trial).collect()
    }
}

#[cfg(test)]
mod tests {
    use pagelab_bench::plan::complete;

    use super::*;

    fn asked(pairs: &[(&str, &str)]) -> Asked {
        Asked::of(&complete(&FAULT, pairs).unwrap())
    }

    #[test]
    fn the_published_counts_follow_from_where_the_memory_begins() {
        let ragged = asked(&[("size", "10g"), ("align", "ragged")]);
        let counts = |arm| ragged.place(arm).counts();
        let faults = |arm| 20 * counts(arm).iter().sum::<u64>();
        assert_eq!(faults(Arm::Module4k), 52_428_800);
        assert_eq!((faults(Arm::Segment2m), faults(Arm::Module2m)), (112_620, 112_620));
        assert_eq!((counts(Arm::Segment1g), faults(Arm::Module1g)), ([512, 511, 9], 20_640));
        let aligned = asked(&[("size", "10g")]);
        assert_eq!(aligned.place(Arm::Segment1g).counts(), [0, 0, 10]);
    }

    #[test]
    fn one_leaf_of_each_size_takes_three_faults() {
        let asked = asked(&[("size", "1050628k")]);
        assert_eq!(asked.place(Arm::Module1g).counts(), [1, 1, 1]);
        assert_eq!(asked.place(Arm::Module2m).counts(), [1, 513, 0]);
    }

    #[test]
    fn only_the_first_arm_is_what_a_case_cannot_do_without() {
        let one = asked(&[("arms", "module-2m")]);
        let beside = asked(&[("arms", "plain,module-2m")]);
        let names = |needs: Vec<Needed>| needs.iter().map(|need| need.name()).collect::<Vec<_>>();
        let module = "the kernel module of pagelab".to_owned();
        assert!(names(one.needs()).contains(&module) && one.wishes().is_empty());
        assert!(!names(beside.needs()).contains(&module));
        assert!(names(beside.wishes()).contains(&module));
    }
}
