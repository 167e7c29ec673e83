//! What reports show of programs: what faults cost one, what was tried of it, which strategy is
//! advised.

pub mod advise;
pub mod explain;
pub mod tries;

use pagelab_report::{Derive::Together, Rank, Sections::Each, View};

/// In the order of reading.
pub(crate) const VIEWS: &[View] = &[
    View {
        rank: Rank::Answer,
        sections: Each(&[advise::section]),
        headlines: advise::headlines,
        ..View::NONE
    },
    View {
        workloads: &[explain::WORKLOAD],
        short: &["program"],
        derive: &[Together(explain::derive)],
        sections: Each(&[explain::section]),
        headlines: explain::headlines,
        counting: Some(&explain::COUNTING),
        is_lone: true,
        json: &[("advice", explain::value)],
        ..View::NONE
    },
    View {
        workloads: &[tries::WORKLOAD],
        short: &["rung"],
        in_rounds: true,
        sections: Each(&[tries::section]),
        headlines: tries::headlines,
        json: &[("tried", tries::value), ("predictions", tries::predictions), ("fit", tries::fit)],
        is_aside: tries::is_aside,
        ..View::NONE
    },
];
