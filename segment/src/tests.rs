//! Every refusal, by a case that meets it and a neighbour that is accepted.

#[path = "../../core/bench/tests/refusals/mod.rs"]
mod refusals;

use self::refusals::Examples;
use crate::WORKLOADS;

const EXAMPLES: Examples = &[(
    "segment/fault",
    &[
        (&[("size", "4097")], &[("size", "4k")]),
        (&[("align", "ragged"), ("size", "2m")], &[("align", "ragged"), ("size", "4m")]),
        (&[("arms", "plain"), ("lie", "thp-off")], &[("arms", "plain,thp"), ("lie", "thp-off")]),
        (
            &[("arms", "plain,thp"), ("lie", "unzeroed")],
            &[("arms", "plain,segment-2m"), ("lie", "unzeroed")],
        ),
    ],
)];

#[test]
fn every_refusal_has_a_case_that_meets_it_and_a_neighbour_that_is_accepted() {
    refusals::meet(WORKLOADS, EXAMPLES, |_| 0);
}
