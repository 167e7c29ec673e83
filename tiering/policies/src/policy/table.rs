//! The table of policies, in the order that help prints them.

use super::{
    Kind, Needs, balance, damon, ema, fixed, histogram, history, kpromoted, numab, pagelab, pghot,
    reclaim, threshold,
};
use crate::spec::Parameter;

const THRESHOLD: Parameter =
    Parameter::count("threshold", "accesses that make a page hot", 2.0, 1.0, 3.0);
const WINDOW: Parameter =
    Parameter::count("window", "milliseconds in which they count", 3000.0, 1.0, 3_600_000.0);
const HZ: Parameter = Parameter::count("hz", "jiffies a second", 1000.0, 100.0, 1000.0);
const ORDER: Parameter =
    Parameter::count("order", "order of the filters: as in version 7 or 8", 8.0, 7.0, 8.0);
const TARGET: Parameter = Parameter::count("target", "the node to go to", 0.0, 0.0, 63.0);
const KEEP: Parameter = Parameter::flag(
    "keep",
    "1: a page that could not be moved keeps its record, as it should",
    0.0,
);
const CGROUPS: Parameter = Parameter::count(
    "cgroups",
    "memory cgroups that pages belong to by turns; a batch is of one",
    1.0,
    1.0,
    65_536.0,
);
const REPLUG: Parameter = Parameter::count(
    "replug",
    "seconds after which all lower memory goes offline and comes back, again and again; 0: never",
    0.0,
    0.0,
    1e6,
);

const LIMIT: Parameter =
    Parameter::count("limit", "MB a second: promote_rate_limit_MBps", 65_536.0, 1.0, 1e9);

/// Of records that know a node.
const PRECISE: &[Parameter] = &[
    Parameter { max: 7.0, ..THRESHOLD },
    Parameter { default: 5000.0, ..WINDOW },
    HZ,
    ORDER,
    TARGET,
    KEEP,
    LIMIT,
    CGROUPS,
    REPLUG,
    reclaim::DEMOTE,
];

/// Every policy.
pub const POLICIES: &[Kind] = &[
    Kind {
        name: "none",
        summary: "nothing moves",
        parameters: &[],
        needs: Needs::Nothing,
        build: fixed::none,
    },
    Kind {
        name: "all-at-once",
        summary: "everything moves to the top tier now, in order of page, while there is room",
        parameters: &[],
        needs: Needs::Nothing,
        build: fixed::all_at_once,
    },
    Kind {
        name: "interleave",
        summary: "pages are spread over top and lower tier by weight",
        parameters: &[
            Parameter::count("top", "weight of the top tier", 3.0, 0.0, 255.0),
            Parameter::count("lower", "weight of the lower tiers", 1.0, 0.0, 255.0),
        ],
        needs: Needs::Nothing,
        build: fixed::interleave,
    },
    Kind {
        name: "pghot",
        summary: "as published: one byte a page, modular time, one target",
        parameters: &[
            THRESHOLD,
            WINDOW,
            HZ,
            ORDER,
            TARGET,
            KEEP,
            LIMIT,
            CGROUPS,
            REPLUG,
            reclaim::DEMOTE,
        ],
        needs: Needs::Samples,
        build: pghot::default,
    },
    Kind {
        name: "pghot-precise",
        summary: "as published: four bytes a page, the accessor's node is the target",
        parameters: PRECISE,
        needs: Needs::Samples,
        build: pghot::precise,
    },
    Kind {
        name: "pghot-v3",
        summary: "as published in version 3: eight bytes a page, counted for one node at a time",
        parameters: PRECISE,
        needs: Needs::Samples,
        build: pghot::wide,
    },
    Kind {
        name: "pghot-heap",
        summary: "as published in versions 1 and 2: records of pages seen, heaps of hot ones",
        parameters: &[
            Parameter { max: 7.0, ..THRESHOLD },
            Parameter { default: 5000.0, ..WINDOW },
            HZ,
            LIMIT,
            kpromoted::VERSION,
            reclaim::DEMOTE,
        ],
        needs: Needs::Samples,
        build: kpromoted::build,
    },
    Kind {
        name: "threshold",
        summary: "a fixed number of accesses within a fixed window that is one: no alias",
        parameters: &[Parameter { max: 7.0, ..THRESHOLD }, WINDOW, reclaim::DEMOTE],
        needs: Needs::Samples,
        build: threshold::build,
    },
    Kind {
        name: "pagelab",
        summary: "ours: everything follows from the sample rate, and stops when it costs more",
        parameters: pagelab::PARAMETERS,
        needs: Needs::Samples,
        build: pagelab::build,
    },
    Kind {
        name: "numab2",
        summary: "NUMA balancing mode 2: a hint fault soon after the scan promotes",
        parameters: numab::NUMAB2,
        needs: Needs::Faults,
        build: numab::numab2,
    },
    Kind {
        name: "tpp",
        summary: "the second hint fault promotes; demotion keeps room ahead",
        parameters: numab::TPP,
        needs: Needs::Faults,
        build: numab::tpp,
    },
    Kind {
        name: "histogram",
        summary: "counts that cool; the hottest bins that fit are hot, like MEMTIS",
        parameters: histogram::PARAMETERS,
        needs: Needs::Samples,
        build: histogram::build,
    },
    Kind {
        name: "history",
        summary: "which of the last eight passes saw a page; for sources that look at every page",
        parameters: history::PARAMETERS,
        needs: Needs::Samples,
        build: history::build,
    },
    Kind {
        name: "two-ema",
        summary: "a short and a long moving average, the best that fit move, like ARMS",
        parameters: ema::PARAMETERS,
        needs: Needs::Samples,
        build: ema::build,
    },
    Kind {
        name: "latency-balance",
        summary: "moves towards equal loaded latency of the tiers, like Colloid",
        parameters: balance::PARAMETERS,
        needs: Needs::Samples,
        build: balance::build,
    },
    Kind {
        name: "damon-region",
        summary: "regions by their accessed bits, split and merged, like DAMON's migrate schemes",
        parameters: damon::PARAMETERS,
        needs: Needs::Young,
        build: damon::build,
    },
    Kind {
        name: "oracle",
        summary: "knows the future: pages are born where they are needed most, then follow it",
        parameters: &[],
        needs: Needs::Future,
        build: fixed::oracle,
    },
];
