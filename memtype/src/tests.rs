//! Every refusal, by a case that meets it and a neighbour that is accepted; every need.

#[path = "../../core/bench/tests/refusals/mod.rs"]
mod refusals;

use pagelab_bench::Need as _;

use self::refusals::{Examples, NEVER, Pairs};
use crate::{
    REQUIREMENTS, WORKLOADS,
    workloads::{
        needs::{AccessWidth, LINE_FLUSH, Typed},
        space::Space,
    },
};

const EXAMPLES: Examples =
    &[("memtype/bandwidth", BANDWIDTH), ("memtype/latency", LATENCY), ("memtype/order", ORDER)];

const BANDWIDTH: &[(Pairs, Pairs)] = &[
    (&[("store", "none")], &[("store", "none"), ("test", "read")]),
    (&[("test", "read"), ("fence", "sfence")], &[("test", "read")]),
    (
        &[("test", "read"), ("load", "nt"), ("width", "8")],
        &[("test", "read"), ("load", "nt"), ("width", "16")],
    ),
    (
        &[("test", "ntwrite_nofence_deferred"), ("load", "plain")],
        &[("test", "ntwrite_nofence_deferred")],
    ),
    (
        &[("type", "uc"), ("fence-word", "overlap")],
        &[("type", "uc"), ("test", "read"), ("fence-word", "overlap")],
    ),
    (&[("sum", "accumulated")], &[("test", "read"), ("sum", "accumulated")]),
    (
        &[
            ("type", "uc"),
            ("test", "write_ucfence"),
            ("fence-word", "overlap"),
            ("arms", "pagelab,c"),
        ],
        &[("type", "uc"), ("test", "write_ucfence"), ("fence-word", "overlap")],
    ),
    (&[("size", "12k"), ("threads", "2")], &[("size", "16k"), ("threads", "2")]),
    (&[("cpu", "0"), ("threads", "2")], &[("cpu", "0-1"), ("threads", "2")]),
    (&[("lie", "stale")], &[("lie", "stale"), ("test", "read")]),
    (&[("type", "uc"), ("frames", "ordinary")], &[("type", "uc"), ("frames", "scattered")]),
    (&[("type", "wt"), ("frames", "contiguous")], &[("type", "wt")]),
    (&[("frames", "scattered"), ("leaf", "2m")], &[("frames", "contiguous"), ("leaf", "2m")]),
    (
        &[("frames", "ordinary"), ("leaf", "1g"), ("size", "1g")],
        &[("frames", "reserved"), ("leaf", "1g"), ("size", "1g")],
    ),
    (&[("frames", "reserved"), ("node", "0")], &[("frames", "contiguous"), ("node", "0")]),
    (&[("frames", "nodes"), ("node", "0")], &[("frames", "nodes")]),
    (
        &[("frames", "contiguous"), ("leaf", "2m"), ("size", "3m")],
        &[("frames", "contiguous"), ("leaf", "2m"), ("size", "4m")],
    ),
];

const LATENCY: &[(Pairs, Pairs)] = &[
    (&[("state", "flushed"), ("type", "uc")], &[("state", "flushed")]),
    (&[("samples", "all")], &[("samples", "1k")]),
    (&[("op", "load,store,load")], &[("op", "load,store")]),
    (&[("type", "wc"), ("frames", "ordinary")], &[("type", "wc"), ("op", "load,uc-fence")]),
    (&[("type", "wt"), ("frames", "scattered")], &[("type", "wt")]),
    (&[("frames", "scattered"), ("leaf", "2m")], &[("frames", "ordinary"), ("leaf", "2m")]),
    (
        &[("frames", "ordinary"), ("leaf", "1g"), ("size", "1g")],
        &[("frames", "reserved"), ("leaf", "1g"), ("size", "1g")],
    ),
    // It has no node.
    (NEVER, &[]),
    (NEVER, &[]),
    (
        &[("frames", "contiguous"), ("leaf", "2m"), ("size", "3m")],
        &[("frames", "contiguous"), ("leaf", "2m"), ("size", "4m")],
    ),
];

const ORDER: &[(Pairs, Pairs)] = &[
    (&[("pattern", "8")], &[("pattern", "64")]),
    (&[("cpus", "0")], &[("cpus", "0-1")]),
    (&[("rounds", "all")], &[("rounds", "1k")]),
    (&[("type", "uc"), ("frames", "ordinary")], &[("type", "uc")]),
    (&[("type", "wt"), ("frames", "scattered")], &[("type", "wt")]),
    (&[("frames", "scattered"), ("leaf", "2m")], &[("frames", "contiguous"), ("leaf", "2m")]),
    (&[("frames", "ordinary"), ("leaf", "1g")], &[("frames", "ordinary"), ("leaf", "2m")]),
    // It has no node, and its memory is made of whole leaves.
    (NEVER, &[]),
    (NEVER, &[]),
    (NEVER, &[]),
];

#[test]
fn every_refusal_has_a_case_that_meets_it_and_a_neighbour_that_is_accepted() {
    refusals::meet(WORKLOADS, EXAMPLES, |_| 0);
}

#[test]
fn every_need_has_a_name_and_a_cure() {
    let own = [
        Typed(Space::of_fence_word(None)).needed(),
        AccessWidth { loads: true, nt: true, bytes: 8 }.needed(),
        LINE_FLUSH.needed(),
    ];
    for need in REQUIREMENTS.iter().flat_map(|row| row()).chain(own) {
        assert!(!need.name().is_empty() && need.cure().len() > 10, "{need:?}");
    }
}
