//! The parts of a report: one table, a row for each.
//!
//! What a row may say is [`View`]; a part of a report is a file and a row here.

mod environment;
mod findings;
mod other;
mod outcomes;

pub(crate) use self::environment::{display as display_fact, facts};
use crate::{
    Run, Section,
    view::{
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

/// Publications beside the run.
fn publications(run: &Run) -> Vec<Section> {
    let all = run.publications.iter();
    all.filter_map(|publication| publication.section(run)).collect()
}
