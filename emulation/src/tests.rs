//! Every refusal, by a case that meets it and a neighbour that is accepted.

#[path = "../../core/bench/tests/refusals/mod.rs"]
mod refusals;

use self::refusals::{Examples, Pairs};
use crate::WORKLOADS;

const EXAMPLES: Examples = &[
    ("emu/replay", REPLAY),
    (
        "emu/verify",
        &[
            (&[("backend", "base,noop")], &[("backend", "base,tlb")]),
            (&[("backend", "tlb,tlb")], &[("backend", "tlb,tlb/safe")]),
            (&[("ops", "all")], &[("ops", "1k")]),
            (&[("trace", FILE), ("seed", "2")], &[("seed", "2")]),
            (&[("trace", FILE), ("image", "generator")], &[("image", "generator")]),
            (&[("trace", "zipf"), ("image", "generator")], &[("trace", "zipf")]),
        ],
    ),
    (
        "trace/stats",
        &[
            (&[("ops", "all")], &[("ops", "1k")]),
            (&[("trace", FILE), ("seed", "2")], &[("seed", "2")]),
        ],
    ),
];

/// A file that is there.
const FILE: &str = "/proc/self/exe";

const REPLAY: &[(Pairs, Pairs)] = &[
    (&[("cache", "cold")], &[("cache", "cold"), ("reader", "mmap")]),
    (&[("backend", "tlb,tlb")], &[("backend", "tlb,tlb/safe")]),
    (&[("ops", "all")], &[("ops", "1k")]),
    (&[("trace", FILE), ("seed", "2")], &[("seed", "2")]),
    (&[("trace", FILE), ("image", "generator")], &[("image", "generator")]),
    (&[("trace", "zipf"), ("image", "generator")], &[("trace", "zipf")]),
];

#[test]
fn every_refusal_has_a_case_that_meets_it_and_a_neighbour_that_is_accepted() {
    refusals::meet(WORKLOADS, EXAMPLES, |_| 0);
}
