//! The parts of a report: one table, a row for each.
//!
//! The one idea: a part says in one row which workloads it shows, what their records imply, its
//! sections, its headlines and the short name of a case. Everything that a reader
//! meets is a walk over [`VIEWS`], whose order is that of reading; so a part of a report is a file
//! and a row here.
//!
//! No part decides whether a number may be shown: [`crate::entry`] does.

mod advise;
mod distributions;
mod environment;
mod explain;
mod fit;
mod latency;
mod limits;
mod memtype;
mod other;
mod outcomes;
mod replay;
mod stages;
mod throughput;
mod tier;
mod trace;
mod userfaultfd;
mod verify;
mod workers;

use pagelab_record::{Case, Measured, Record, RunHeader, journal::Damage};

pub(crate) use self::{
    advise::{Advice, section as advice, value as advice_value},
    environment::facts,
};
use crate::{
    document::{Headline, Section},
    entry::Entry,
    fit::fits,
    limits::Limits,
    numbers::Numbers,
    parameters,
    published::Publication,
    run::Run,
};

/// A part of a report.
struct View {
    /// The workloads whose records it shows.
    workloads: &'static [&'static str],
    /// What their records imply.
    derive: &'static [Derive],
    /// Its sections, in the order of reading.
    sections: Sections,
    /// The numbers that a run is remembered by.
    headlines: fn(&Run) -> Vec<Headline>,
    /// What to call a case of its workloads among others.
    short: fn(&Case) -> String,
}

/// What records imply, by what it follows from. The three are derived one after the other.
enum Derive {
    /// From the record alone.
    Alone(fn(&Case, &Measured, &mut Numbers)),
    /// From the record beside the limits of its machine.
    Limits(fn(&Case, &Measured, &Limits, &mut Numbers)),
    /// From the records of a run together.
    Together(fn(&mut [Entry])),
}

/// The sections of a view.
enum Sections {
    None,
    One(fn(&Run) -> Option<Section>),
    Many(fn(&Run) -> Vec<Section>),
}

use Derive::{Alone, Together};
use Sections::{Many, One};

/// A view that shows nothing: what a row does not say.
const NOTHING: View = View {
    workloads: &[],
    derive: &[],
    sections: Sections::None,
    headlines: |_| Vec::new(),
    short: Case::to_string,
};

/// Every part of a report, in the order of reading.
const VIEWS: &[View] = &[
    View { sections: One(advise::section), headlines: advise::headlines, ..NOTHING },
    View { sections: Many(publications), ..NOTHING },
    View { sections: One(tier::compared_section), ..NOTHING },
    View {
        workloads: &[explain::WORKLOAD],
        derive: &[Together(explain::derive)],
        sections: One(explain::section),
        headlines: explain::headlines,
        ..NOTHING
    },
    View {
        workloads: &[latency::WORKLOAD],
        derive: &[Derive::Limits(latency::derive)],
        sections: One(latency::section),
        headlines: latency::headlines,
        ..NOTHING
    },
    View { workloads: &[userfaultfd::WORKLOAD], sections: One(userfaultfd::section), ..NOTHING },
    View {
        workloads: &[stages::WORKLOAD],
        derive: &[Alone(stages::derive)],
        sections: One(stages::section),
        ..NOTHING
    },
    View {
        workloads: &[throughput::WORKLOAD],
        derive: &[Derive::Limits(throughput::derive)],
        sections: One(throughput::section),
        headlines: throughput::headlines,
        ..NOTHING
    },
    View { sections: One(workers::section), ..NOTHING },
    View { sections: One(workers::beside_section), ..NOTHING },
    View { sections: One(fit::section), headlines: fit::headlines, ..NOTHING },
    View {
        workloads: &[replay::WORKLOAD],
        derive: &[Alone(replay::derive)],
        sections: One(replay::section),
        headlines: replay::headlines,
        ..NOTHING
    },
    View { workloads: &[verify::WORKLOAD], sections: One(verify::section), ..NOTHING },
    View {
        workloads: &[trace::WORKLOAD],
        derive: &[Alone(trace::derive)],
        sections: One(trace::section),
        headlines: trace::headlines,
        ..NOTHING
    },
    View {
        workloads: &[memtype::BANDWIDTH],
        derive: &[Alone(memtype::derive), Derive::Limits(memtype::derive_shares)],
        sections: One(memtype::bandwidth_section),
        headlines: memtype::headlines,
        ..NOTHING
    },
    View { workloads: &[memtype::LATENCY], sections: One(memtype::latency_section), ..NOTHING },
    View { workloads: &[memtype::ORDER], sections: One(memtype::order_section), ..NOTHING },
    View {
        workloads: &[tier::WORKLOAD],
        derive: &[Alone(tier::derive)],
        sections: One(tier::section),
        headlines: tier::headlines,
        ..NOTHING
    },
    View { sections: One(|run| other::section(run, is_shown)), ..NOTHING },
    View {
        workloads: &limits::WORKLOADS,
        sections: One(limits::section),
        headlines: limits::headlines,
        ..NOTHING
    },
    View {
        sections: Many(|run| vec![outcomes::witness(run)]),
        headlines: outcomes::headlines,
        ..NOTHING
    },
    View { sections: One(outcomes::skipped), ..NOTHING },
    View { sections: One(outcomes::failed), ..NOTHING },
    View { sections: One(outcomes::warnings), ..NOTHING },
    View { sections: One(environment::section), ..NOTHING },
    View { sections: One(outcomes::claims), ..NOTHING },
];

/// Publications beside the run.
fn publications(run: &Run) -> Vec<Section> {
    let all = run.publications.iter();
    all.filter_map(|publication| publication.section(&run.entries, &run.limits, entry)).collect()
}

/// The view that shows the records of a workload, or one that shows nothing.
fn of(workload: &str) -> &'static View {
    VIEWS.iter().find(|view| view.workloads.contains(&workload)).unwrap_or(&NOTHING)
}

/// Whether a workload has a view of its own.
fn is_shown(workload: &str) -> bool {
    !of(workload).workloads.is_empty()
}

/// A record with all that it implies by itself.
pub(crate) fn entry(record: &Record) -> Entry {
    let view = of(&record.workload);
    let mut entry = Entry::of(record);
    let short = format!("{} {}", record.workload, (view.short)(&record.case));
    short.trim_end().clone_into(&mut entry.short);
    for derive in view.derive {
        if let Alone(derive) = derive {
            entry.derive(derive);
        }
    }
    entry
}

/// Derives every number of a journal's contents and of the published results beside it.
pub(crate) fn run(
    header: &RunHeader,
    records: &[Record],
    damage: Option<&Damage>,
    publications: &[Publication],
) -> Run {
    let mut entries: Vec<Entry> = records.iter().map(entry).collect();
    // Grids interleave their axes; a reader looks for a page size.
    entries.sort_by_cached_key(|entry| {
        let kind = entry.parameter("kind").to_owned();
        let first = records.iter().position(|record| record.workload == entry.record.workload);
        (first, kind, parameters::page_rank(entry.parameter("page")))
    });
    let limits = Limits::of(&entries);
    for entry in &mut entries {
        for derive in of(&entry.record.workload).derive {
            if let Derive::Limits(derive) = derive {
                entry.derive(|case, measured, numbers| derive(case, measured, &limits, numbers));
            }
        }
    }
    for derive in VIEWS.iter().flat_map(|view| view.derive) {
        if let Together(derive) = derive {
            derive(&mut entries);
        }
    }
    let fits = fits(&entries);
    let published = publications.iter().flat_map(Publication::records).map(entry).collect();
    let (header, damage) = (header.clone(), damage.cloned());
    let publications = publications.to_vec();
    Run { header, damage, entries, publications, published, limits, fits }
}

/// Every section that the records support.
pub(crate) fn sections(run: &Run) -> Vec<Section> {
    let sections = |view: &View| match view.sections {
        Sections::None => Vec::new(),
        One(section) => section(run).into_iter().collect(),
        Many(sections) => sections(run),
    };
    VIEWS.iter().flat_map(sections).collect()
}

/// Every headline that the records support.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    VIEWS.iter().flat_map(|view| (view.headlines)(run)).collect()
}
