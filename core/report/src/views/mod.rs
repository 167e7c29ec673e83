//! The parts of a report: one table, a row for each.
//!
//! What a row may say is [`View`]; a part of a report is a file and a row here.

mod distributions;
mod environment;
mod findings;
mod fit;
mod latency;
mod limits;
mod other;
mod outcomes;
mod path;
mod stages;
mod throughput;
mod userfaultfd;
mod workers;

use pagelab_record::vocabulary::series::{END_TO_END, FAULT};

pub(crate) use self::environment::{display as display_fact, facts};
pub use self::throughput::release_per_page;
use crate::{
    Run, Section, Time,
    metric::FAULT_IN,
    view::{
        Derive::{self, Alone},
        Rank,
        Sections::{Each, Many},
        View,
    },
};

/// What a report shows that is in no part yet, in the order of reading.
pub const VIEWS: &[View] = &[
    View { rank: Rank::Answer, sections: Each(&[findings::section]), ..View::NONE },
    View { rank: Rank::Answer, sections: Many(publications), ..View::NONE },
    View {
        workloads: &[latency::WORKLOAD],
        main: &[(FAULT, Time::Elapsed)],
        short: &["kind", "page"],
        derive: &[Derive::Limits(latency::derive)],
        sections: Each(&[latency::section]),
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
    View { rank: Rank::Limits, sections: Each(&[other::section]), ..View::NONE },
    View {
        rank: Rank::Limits,
        is_limit: true,
        workloads: &limits::WORKLOADS,
        main: &limits::SERIES,
        short: &["level"],
        sections: Each(&[limits::section]),
        headlines: limits::headlines,
        ..View::NONE
    },
    View {
        rank: Rank::Proof,
        sections: Each(&[
            |run| Some(outcomes::witness(run)),
            outcomes::intervals,
            outcomes::skipped,
            outcomes::failed,
            outcomes::warnings,
            environment::section,
            outcomes::claims,
        ]),
        headlines: outcomes::headlines,
        ..View::NONE
    },
];

/// What it shows of workers, and of fits over page sizes: behind segments.
pub const FITS: &[View] = &[
    View { sections: Each(&[workers::section, workers::beside_section]), ..View::NONE },
    View { sections: Each(&[fit::section]), headlines: fit::headlines, ..View::NONE },
];

/// Publications beside the run.
fn publications(run: &Run) -> Vec<Section> {
    let all = run.publications.iter();
    all.filter_map(|publication| publication.section(run)).collect()
}
