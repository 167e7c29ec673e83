//! Scenarios that the tests change.

use pagelab_tier::{
    Curve, MILLISECOND, Outcome, PolicySpec, SECOND, Scenario, Source, Tiers, Work, WorkSpec,
    policy::Needs,
    sim::{BitScan, Costs, HintScan, Level, Mover, Sampling},
    simulate,
};

/// A small machine: everything slow takes 60 s, everything fast 20.
pub(crate) fn scenario(generator: &str, pages: u64, top: u64, policy: &str) -> Scenario {
    let policy = PolicySpec::parse(policy).unwrap();
    let sources = match policy.row().needs {
        Needs::Samples => vec![sampling(10_000)],
        Needs::Faults => vec![hints(pages)],
        Needs::Nothing | Needs::Young | Needs::Future => Vec::new(),
    };
    Scenario {
        seed: 1,
        work: Work::Generated(WorkSpec::parse(generator).unwrap()),
        pages,
        accesses: pages * 26_000,
        threads: 16,
        stores: 0.5,
        tiers: Tiers::two(top, pages),
        curve: Curve::Power {
            fast: 20.0,
            lower: vec![Level { seconds: 60.0, exponent: 1.5 }],
            remote: None,
        },
        sources,
        policy,
        mover: Mover {
            walk_ps: 13_000,
            flush_ns: 20_000,
            copy_accesses: 32.0,
            ping_pong_ns: 10 * SECOND,
            ..Mover::kernel(3_000)
        },
        costs: Costs { sample_ns: 1_500 },
        rows: 50,
    }
}

pub(crate) fn sampling(period: u64) -> Source {
    Source::Sampling(Sampling {
        period_min: 2_500,
        period_max: 40_000,
        jitter: 15,
        ..Sampling::every(period)
    })
}

pub(crate) fn hints(pages: u64) -> Source {
    Source::Hints(HintScan {
        period_ns: 100 * MILLISECOND,
        updates: (pages / 16).max(1),
        virtual_pages: (pages / 2).max(1),
        chunk: 64,
        fault_ns: 5_000,
        ..HintScan::kernel(pages)
    })
}

pub(crate) fn bits(period_ms: u64) -> BitScan {
    BitScan { period_ns: period_ms * MILLISECOND, page_ps: 10_000, stall_ps: 100 }
}

pub(crate) fn run(scenario: &Scenario) -> Outcome {
    simulate(scenario).unwrap()
}

/// What is true of every outcome.
pub(crate) fn conserves(scenario: &Scenario, outcome: &Outcome) {
    let nodes = &scenario.tiers.nodes;
    for row in &outcome.series {
        assert_eq!(row.placed.iter().sum::<u64>(), outcome.pages, "{row:?}");
        for (placed, node) in row.placed.iter().zip(nodes) {
            assert!(*placed <= node.pages, "{row:?}");
        }
        assert!((0.0..=1.0).contains(&row.top_share));
    }
    assert!(outcome.series.len() <= scenario.rows.max(2));
    let ordered = |pair: &[pagelab_tier::sim::Row]| {
        pair[0].at_ns <= pair[1].at_ns
            && pair[0].promoted <= pair[1].promoted
            && pair[0].accesses <= pair[1].accesses
    };
    assert!(outcome.series.windows(2).all(ordered));
    let moves = outcome.promoted + outcome.demoted + outcome.exchanged;
    assert_eq!(outcome.move_bytes, moves * pagelab_tier::PAGE_BYTES);
    assert!(outcome.ping_pongs <= outcome.promoted && outcome.wasted <= outcome.promoted);
    assert!(outcome.hint_faults >= outcome.duplicate_faults);
}
