//! The parts of a report: one table, a row for each.
//!
//! What a row may say is [`View`]; a part of a report is a file and a row here.

mod environment;
mod findings;
mod other;
mod outcomes;
mod segment;
mod tlb;

use pagelab_record::vocabulary::series::LOAD;

pub(crate) use self::environment::{display as display_fact, facts};
use crate::{
    Run, Section, Time,
    view::{
        Derive::{self, Alone},
        Rank,
        Sections::{Each, Many},
        View,
    },
};

/// What a report shows of records of any part, in the order of reading.
pub const VIEWS: &[View] = &[
    View { rank: Rank::Answer, sections: Each(&[findings::section]), ..View::NONE },
    View { rank: Rank::Answer, sections: Many(publications), ..View::NONE },
    View { rank: Rank::Limits, sections: Each(&[other::section]), ..View::NONE },
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

/// What is in no part yet and comes before emulated memory.
pub const OTHERS: &[View] = &[View {
    workloads: &[segment::WORKLOAD],
    short: &["size"],
    derive: &[Derive::Limits(segment::derive)],
    sections: Each(&[segment::section]),
    headlines: segment::headlines,
    ..View::NONE
}];

/// Those after emulated memory.
pub const LATER: &[View] = &[View {
    workloads: &[tlb::WORKLOAD],
    main: &[(LOAD, Time::Elapsed)],
    short: &["page", "size"],
    derive: &[Alone(tlb::derive)],
    sections: Each(&[tlb::section]),
    headlines: tlb::headlines,
    ..View::NONE
}];

/// Publications beside the run.
fn publications(run: &Run) -> Vec<Section> {
    let all = run.publications.iter();
    all.filter_map(|publication| publication.section(run)).collect()
}
