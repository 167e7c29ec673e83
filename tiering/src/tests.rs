//! Every refusal, by a case that meets it and a neighbour that is accepted.

#[path = "../../core/bench/tests/refusals/mod.rs"]
mod refusals;

use self::refusals::Examples;
use crate::WORKLOADS;

const EXAMPLES: Examples = &[
    (
        "tier/curve",
        &[
            (&[("size", "1m")], &[("size", "4m")]),
            (&[("size", "16t")], &[("size", "8t")]),
            (&[("accesses", "all")], &[("accesses", "1k")]),
        ],
    ),
    (
        "tier/micro",
        &[
            (&[("kind", "file"), ("page", "2m")], &[("kind", "file")]),
            (&[("mode", "ours"), ("kind", "file")], &[("mode", "ours")]),
            (&[("scan", "hurried")], &[("mode", "numab2"), ("scan", "hurried")]),
            (&[("window", "3000")], &[("mode", "pghot"), ("window", "3000")]),
            (&[("size", "1m")], &[("size", "4m")]),
            (&[("size", "16t")], &[("size", "8t")]),
            (&[("accesses", "all")], &[("accesses", "1k")]),
        ],
    ),
];

#[test]
fn every_refusal_has_a_case_that_meets_it_and_a_neighbour_that_is_accepted() {
    let measured = WORKLOADS.iter().filter(|workload| workload.about().is_measured);
    let measured: Vec<_> = measured.copied().collect();
    refusals::meet(&measured, EXAMPLES, |_| 0);
}
