//! Every refusal, by a case that meets it and a neighbour that is accepted.

#[path = "../../../core/bench/tests/refusals/mod.rs"]
mod shared;

use self::shared::{Examples, NEVER, Pairs};
use crate::WORKLOADS;

const EXAMPLES: Examples = &[
    ("fault/throughput", THROUGHPUT),
    ("fault/latency", LATENCY),
    ("fault/userfaultfd", USERFAULTFD),
    (
        "fault/stages",
        &[
            (&[("size", "4097")], &[("size", "4k")]),
            (&[("size", "64m")], &[("size", "32m")]),
            (&[("cpu", "none")], &[("cpu", "0")]),
        ],
    ),
];

const THROUGHPUT: &[(Pairs, Pairs)] = &[
    (&[("page", "hugetlb-2m"), ("backing", "brk")], &[("page", "2m"), ("backing", "brk")]),
    (&[("page", "64k"), ("backing", "brk")], &[("page", "4k"), ("backing", "brk")]),
    (&[("page", "hugetlb-2m"), ("align", "ragged")], &[("page", "hugetlb-2m")]),
    (&[("page", "4k"), ("align", "ragged")], &[("page", "4k")]),
    (&[("page", "64k"), ("align", "ragged")], &[("page", "64k")]),
    (
        &[("page", "2m"), ("align", "ragged")],
        &[("page", "2m"), ("align", "ragged"), ("touch", "8@4k")],
    ),
    (&[("threads", "2"), ("processes", "2")], &[("threads", "2")]),
    (&[("threads", "2"), ("order", "random")], &[("order", "random")]),
    (&[("page", "64k"), ("arms", "pagelab,c")], &[("page", "2m"), ("arms", "pagelab,c")]),
    (
        &[("arms", "page-fault1"), ("order", "random")],
        &[("arms", "pagelab,page-fault1,pft"), ("threads", "2")],
    ),
    (&[("size", "3m"), ("page", "2m")], &[("size", "4m"), ("page", "2m")]),
    (
        &[("lie", "early-populate"), ("populate", "map-populate")],
        &[("lie", "early-populate"), ("page", "2m")],
    ),
    (&[("kind", "collapse"), ("page", "2m")], &[("kind", "read")]),
    (
        &[("kind", "zero-write"), ("touch", "8@64k")],
        &[("kind", "read"), ("processes", "2"), ("touch", "8@4k")],
    ),
    (&[("kind", "read"), ("arms", "pagelab,c")], &[("arms", "pagelab,c")]),
    (&[("vmas", "each")], &[("vmas", "each"), ("threads", "2")]),
    (&[("beside", "munmap"), ("processes", "2")], &[("beside", "munmap"), ("threads", "2")]),
    (&[("beside", "munmap"), ("populate", "mlock")], &[("beside", "munmap")]),
    (&[("beside", "munmap"), ("cpu", "0")], &[("beside", "munmap"), ("cpu", "0-1")]),
    (&[("pressure", "memcg"), ("kind", "read")], &[("pressure", "memcg")]),
    (&[("pressure", "fragmented")], &[("pressure", "fragmented"), ("page", "2m")]),
    (&[("pressure", "fragmented"), ("page", "64k")], &[("pressure", "memcg"), ("page", "64k")]),
    (&[("populate", "mlock"), ("page", "hugetlb-2m")], &[("populate", "mlock"), ("page", "2m")]),
    (&[("populate", "populate-read"), ("page", "2m")], &[("populate", "populate-read")]),
    (&[("populate", "mlockall-future"), ("mem-node", "0")], &[("populate", "mlockall-future")]),
    (&[("populate", "map-populate"), ("backing", "brk")], &[("backing", "brk")]),
    (
        &[("populate", "madvise-populate-each")],
        &[("populate", "madvise-populate-each"), ("threads", "2")],
    ),
    (&[("page-cluster", "default")], &[("kind", "swap"), ("page-cluster", "default")]),
    (
        &[("kind", "swap"), ("swap", "file"), ("algorithm", "lz4")],
        &[("kind", "swap"), ("swap", "zram"), ("algorithm", "lz4")],
    ),
    // It has no rate.
    (NEVER, &[]),
];

const LATENCY: &[(Pairs, Pairs)] = &[
    (&[("host", "cold"), ("kind", "present")], &[("host", "cold")]),
    (&[("kind", "present"), ("rate", "1k")], &[("rate", "1k")]),
    (&[("caches", "cold"), ("rate", "1k")], &[("caches", "cold")]),
    (
        &[("fifo", "on"), ("rate", "1k"), ("size", "128m")],
        &[("fifo", "on"), ("rate", "1k"), ("size", "2m")],
    ),
    (&[("arms", "as-published")], &[("arms", "as-published"), ("kind", "read")]),
    (&[("size", "3m"), ("page", "2m")], &[("size", "4m"), ("page", "2m")]),
    (&[("lie", "thp-off")], &[("lie", "thp-off"), ("page", "2m")]),
    (&[("populate", "mlock"), ("kind", "read")], &[("populate", "mlock")]),
    (&[("dir", "/var/tmp")], &[("dir", "/var/tmp"), ("kind", "file-minor")]),
    (&[("pressure", "memcg"), ("lie", "present")], &[("pressure", "memcg")]),
    (&[("pressure", "fragmented")], &[("pressure", "fragmented"), ("page", "64k")]),
    (
        &[("populate", "map-locked"), ("page", "hugetlb-2m")],
        &[("populate", "map-locked"), ("page", "2m")],
    ),
    (&[("populate", "populate-read"), ("page", "2m")], &[("populate", "populate-read")]),
    (&[("populate", "map-populate"), ("mem-node", "far")], &[("populate", "map-populate")]),
    (&[("swap", "file")], &[("kind", "swap"), ("swap", "file")]),
    (
        &[("kind", "swap"), ("swap", "file"), ("algorithm", "lz4")],
        &[("kind", "swap"), ("algorithm", "lz4")],
    ),
    (
        &[("kind", "swap"), ("page-cluster", "default"), ("rate", "1k")],
        &[("kind", "swap"), ("rate", "1k")],
    ),
];

const USERFAULTFD: &[(Pairs, Pairs)] = &[
    (&[("handler", "none"), ("op", "wp")], &[("handler", "none"), ("op", "wp-async")]),
    (&[("op", "wp-async")], &[("op", "wp")]),
    (&[("cpu", "none")], &[("cpu", "none"), ("handler", "any-cpu")]),
    (&[("threads", "2")], &[("threads", "2"), ("uffds", "each")]),
    (&[("uffds", "each")], &[("uffds", "each"), ("threads", "2")]),
    (&[("handler", "sigbus"), ("handlers", "2")], &[("handlers", "2")]),
    (&[("op", "move"), ("page", "hugetlb-2m")], &[("op", "copy"), ("page", "hugetlb-2m")]),
    (
        &[("handler", "none"), ("op", "wp-async"), ("batch", "2")],
        &[("handler", "same-cpu"), ("op", "wp"), ("batch", "2")],
    ),
    (&[("page", "hugetlb-2m"), ("batch", "16")], &[("page", "hugetlb-2m"), ("batch", "8")]),
    (&[("size", "12k"), ("batch", "2")], &[("size", "16k"), ("batch", "2")]),
    (&[("lie", "content"), ("op", "wp")], &[("lie", "content"), ("op", "copy")]),
];

#[test]
fn every_refusal_has_a_case_that_meets_it_and_a_neighbour_that_is_accepted() {
    shared::meet(WORKLOADS, EXAMPLES, |name| match name {
        "fault/latency" | "fault/path" => 1,
        _ => 0,
    });
}
