//! What reports show of faults and of the limits of a machine.

mod distributions;
mod fit;
mod latency;
mod limits;
mod line;
mod path;
mod stages;
pub(crate) mod throughput;
mod userfaultfd;
mod workers;

use std::sync::LazyLock;

use pagelab_record::vocabulary::series::{END_TO_END, FAULT};
use pagelab_report::{
    Derive::{self, Alone},
    Rank, Rule,
    Sections::{Each, Many},
    Time, View,
};

use self::throughput::FAULT_IN;

/// What is worth a sentence.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| Rule::read(include_str!("rules.toml")));

/// In the order of reading.
pub(crate) const VIEWS: &[View] = &[
    View {
        workloads: &[latency::WORKLOAD],
        main: &[(FAULT, Time::Elapsed)],
        short: &["kind", "page"],
        derive: &[Derive::Limits(latency::derive)],
        sections: Each(&[latency::section]),
        findings: || &RULES,
        headlines: latency::headlines,
        ..View::NONE
    },
    View {
        workloads: &[userfaultfd::WORKLOAD],
        main: &[(FAULT, Time::Elapsed)],
        short: &["handler", "op", "page"],
        sections: Each(&[userfaultfd::section]),
        headlines: userfaultfd::headlines,
        ..View::NONE
    },
    View {
        workloads: &[path::WORKLOAD],
        short: &["kernel", "kind", "page"],
        sections: Many(path::sections),
        headlines: path::headlines,
        counting: Some(&path::COUNTING),
        ..View::NONE
    },
    View {
        workloads: &[stages::WORKLOAD],
        main: &[(END_TO_END, Time::Elapsed)],
        short: &["kind"],
        derive: &[Alone(stages::derive)],
        sections: Each(&[stages::section]),
        headlines: stages::headlines,
        ..View::NONE
    },
    View {
        workloads: &[throughput::WORKLOAD],
        main: &[(FAULT_IN, Time::Elapsed)],
        short: &["kind", "page"],
        derive: &[Derive::Limits(throughput::derive)],
        sections: Each(&[throughput::section]),
        headlines: throughput::headlines,
        ..View::NONE
    },
    View {
        rank: Rank::Limits,
        is_limit: true,
        ceilings: Some(&limits::CEILINGS),
        workloads: &limits::WORKLOADS,
        main: &limits::SERIES,
        short: &["level"],
        sections: Each(&[limits::section]),
        headlines: limits::headlines,
        ..View::NONE
    },
];

/// What is shown of workers and of fits over page sizes, wherever faults were taken.
pub(crate) const FITS: &[View] = &[
    View { sections: Each(&[workers::section, workers::beside_section]), ..View::NONE },
    View {
        sections: Each(&[fit::section]),
        headlines: fit::headlines,
        json: &[("derived.fits", |run| Some(line::json(run)))],
        ..View::NONE
    },
];
