//! Every refusal, by a case that meets it and a neighbour that is accepted.

#[path = "../../../core/bench/tests/refusals/mod.rs"]
mod refusals;

use self::refusals::Examples;
use crate::WORKLOADS;

const EXAMPLES: Examples = &[(
    "tlb/chase",
    &[
        (&[("size", "4k")], &[("size", "8k")]),
        (&[("loads", "all")], &[("loads", "1k")]),
        (&[("page", "64k"), ("against", "32k")], &[("page", "64k"), ("against", "4k")]),
        (&[("backing", "segment")], &[("backing", "segment"), ("page", "2m")]),
        (&[("page", "2m"), ("lie", "thp-on")], &[("page", "2m"), ("lie", "thp-off")]),
    ],
)];

#[test]
fn every_refusal_has_a_case_that_meets_it_and_a_neighbour_that_is_accepted() {
    refusals::meet(WORKLOADS, EXAMPLES, |_| 0);
}
