//! What reports show of tiers: what accesses cost, and simulations beside published results.

pub(crate) mod curve;
pub(crate) mod micro;
pub(crate) mod published;
pub(crate) mod simulation;

use pagelab_report::{Derive::Alone, Rank, Sections::Each, View};

/// In the order of reading.
pub(crate) const VIEWS: &[View] = &[
    View { rank: Rank::Answer, sections: Each(&[simulation::compared_section]), ..View::NONE },
    View {
        workloads: &[micro::WORKLOAD],
        short: &["mode", "page"],
        sections: Each(&[micro::section, micro::beside]),
        headlines: micro::headlines,
        ..View::NONE
    },
    View {
        workloads: &[curve::WORKLOAD],
        short: &["size", "threads"],
        derive: &[Alone(curve::derive)],
        sections: Each(&[curve::section]),
        headlines: curve::headlines,
        ..View::NONE
    },
    View {
        workloads: &[simulation::WORKLOAD],
        short: &["scenario"],
        derive: &[Alone(simulation::derive)],
        sections: Each(&[simulation::section]),
        headlines: simulation::headlines,
        ..View::NONE
    },
];
