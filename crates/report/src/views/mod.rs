//! The parts of a report: one table, a row for each.
//!
//! The one idea: a part says in one row which workloads it shows, what their records imply, its
//! sections, its headlines and the short name of a case. Everything that a reader
//! meets is a walk over [`VIEWS`], whose order is that of reading; so a part of a report is a file
//! and a row here.
//!
//! No part decides whether a number may be shown: [`crate::entry`] does.

mod advise;
mod curve;
mod distributions;
mod environment;
pub(crate) mod explain;
mod findings;
mod fit;
mod latency;
mod limits;
mod memtype;
mod micro;
mod other;
mod outcomes;
mod path;
mod replay;
mod segment;
mod stages;
mod throughput;
mod tier;
mod tlb;
mod trace;
mod tries;
mod userfaultfd;
mod verify;
mod workers;

pub(crate) use limits::is_limit;
use pagelab_record::{
    Case, Measured, Record, RunHeader,
    journal::Damage,
    vocabulary::series::{END_TO_END, FAULT, LOAD, OP, REPLAY, TEST},
};

pub use self::tries::BuildLimit;
pub(crate) use self::{
    advise::{Advice, section as advice, value as advice_value},
    environment::{display as display_fact, facts},
    explain::{folded, value as advised},
    outcomes::intervals,
    tries::{Fitted, Foretold, exceeded, value as tried},
};
use crate::{
    Entry, Headline, Limits, Numbers, Run, Section, Time, cases::name_shortly,
    findings::of as findings_of, fit::fits, metric::FAULT_IN, parameter, parameters,
    published::Publication,
};

/// The default of a workload's parameter, where it has one: what a report need not say.
pub type Defaults = fn(workload: &str, parameter: &str) -> Option<&'static str>;

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
    /// The series and the time of the number that a case of each workload is compared by; without
    /// one, every series that is a time.
    main: &'static [(&'static str, Time)],
    /// The parameters that a case of its workloads is called by; what tells it from others of its
    /// run is added.
    short: &'static [&'static str],
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
    main: &[],
    short: &[],
};

/// Every part of a report, in the order of reading.
const VIEWS: &[View] = &[
    View { sections: One(advise::section), headlines: advise::headlines, ..NOTHING },
    View { sections: One(findings::section), ..NOTHING },
    View { sections: Many(publications), ..NOTHING },
    View { sections: One(tier::compared_section), ..NOTHING },
    View {
        workloads: &[explain::WORKLOAD],
        short: &["program"],
        derive: &[Together(explain::derive)],
        sections: One(explain::section),
        headlines: explain::headlines,
        ..NOTHING
    },
    View {
        workloads: &[tries::WORKLOAD],
        short: &["rung"],
        sections: One(tries::section),
        headlines: tries::headlines,
        ..NOTHING
    },
    View {
        workloads: &[latency::WORKLOAD],
        main: &[(FAULT, Time::Elapsed)],
        short: &["kind", "page"],
        derive: &[Derive::Limits(latency::derive)],
        sections: One(latency::section),
        headlines: latency::headlines,
    },
    View {
        workloads: &[userfaultfd::WORKLOAD],
        main: &[(FAULT, Time::Elapsed)],
        short: &["handler", "op", "page"],
        sections: One(userfaultfd::section),
        headlines: userfaultfd::headlines,
        ..NOTHING
    },
    View {
        workloads: &[path::WORKLOAD],
        short: &["kernel", "kind", "page"],
        sections: Many(path::sections),
        headlines: path::headlines,
        ..NOTHING
    },
    View {
        workloads: &[stages::WORKLOAD],
        main: &[(END_TO_END, Time::Elapsed)],
        short: &["kind"],
        derive: &[Alone(stages::derive)],
        sections: One(stages::section),
        headlines: stages::headlines,
    },
    View {
        workloads: &[throughput::WORKLOAD],
        main: &[(FAULT_IN, Time::Elapsed)],
        short: &["kind", "page"],
        derive: &[Derive::Limits(throughput::derive)],
        sections: One(throughput::section),
        headlines: throughput::headlines,
    },
    View {
        workloads: &[segment::WORKLOAD],
        short: &["size"],
        derive: &[Derive::Limits(segment::derive)],
        sections: One(segment::section),
        headlines: segment::headlines,
        ..NOTHING
    },
    View { sections: One(workers::section), ..NOTHING },
    View { sections: One(workers::beside_section), ..NOTHING },
    View { sections: One(fit::section), headlines: fit::headlines, ..NOTHING },
    View {
        workloads: &[replay::WORKLOAD],
        main: &[(REPLAY, Time::Cpu)],
        short: &["trace"],
        derive: &[Alone(replay::derive)],
        sections: One(replay::section),
        headlines: replay::headlines,
    },
    View {
        workloads: &[verify::WORKLOAD],
        short: &["trace"],
        sections: One(verify::section),
        headlines: verify::headlines,
        ..NOTHING
    },
    View {
        workloads: &[trace::WORKLOAD],
        short: &["trace"],
        derive: &[Alone(trace::derive)],
        sections: One(trace::section),
        headlines: trace::headlines,
        ..NOTHING
    },
    View {
        workloads: &[memtype::BANDWIDTH],
        main: &[(TEST, Time::Elapsed)],
        short: &["type", "test"],
        derive: &[Alone(memtype::derive), Derive::Limits(memtype::derive_shares)],
        sections: One(memtype::bandwidth_section),
        headlines: memtype::headlines,
    },
    View {
        workloads: &[memtype::LATENCY],
        main: &[(OP, Time::Elapsed)],
        short: &["type"],
        sections: One(memtype::latency_section),
        headlines: memtype::latency_headlines,
        ..NOTHING
    },
    View {
        workloads: &[memtype::ORDER],
        short: &["type", "store", "fence"],
        sections: One(memtype::order_section),
        headlines: memtype::order_headlines,
        ..NOTHING
    },
    View {
        workloads: &[tlb::WORKLOAD],
        main: &[(LOAD, Time::Elapsed)],
        short: &["page", "size"],
        derive: &[Alone(tlb::derive)],
        sections: One(tlb::section),
        headlines: tlb::headlines,
    },
    View {
        workloads: &[micro::WORKLOAD],
        short: &["mode", "page"],
        sections: Many(micro::sections),
        headlines: micro::headlines,
        ..NOTHING
    },
    View {
        workloads: &[curve::WORKLOAD],
        short: &["size", "threads"],
        derive: &[Alone(curve::derive)],
        sections: One(curve::section),
        headlines: curve::headlines,
        ..NOTHING
    },
    View {
        workloads: &[tier::WORKLOAD],
        short: &["scenario"],
        derive: &[Alone(tier::derive)],
        sections: One(tier::section),
        headlines: tier::headlines,
        ..NOTHING
    },
    View { sections: One(|run| other::section(run, is_shown)), ..NOTHING },
    View {
        workloads: &limits::WORKLOADS,
        main: &limits::SERIES,
        short: &["level"],
        sections: One(limits::section),
        headlines: limits::headlines,
        ..NOTHING
    },
    View {
        sections: Many(|run| vec![outcomes::witness(run)]),
        headlines: outcomes::headlines,
        ..NOTHING
    },
    View { sections: One(intervals), ..NOTHING },
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

/// The parameters that a case of a workload is called by.
pub(crate) fn called_by(workload: &str) -> &'static [&'static str] {
    of(workload).short
}

/// The series that the number of a workload stands in, and its time.
pub(crate) fn main(workload: &str) -> Option<(&'static str, Time)> {
    let view = of(workload);
    let at = view.workloads.iter().position(|known| *known == workload)?;
    view.main.get(at).copied()
}

/// Whether a workload has a view of its own.
fn is_shown(workload: &str) -> bool {
    !of(workload).workloads.is_empty()
}

/// A record with all that it implies by itself.
pub(crate) fn entry(record: &Record) -> Entry {
    let mut entry = Entry::of(record);
    for derive in of(&record.workload).derive {
        if let Alone(derive) = derive {
            entry.derive(derive);
        }
    }
    entry
}

/// A record whose case also says its arm, where that is more than a parameter: nothing else tells
/// the two from each other.
fn with_arm(record: &Record) -> Record {
    let mut record = record.clone();
    if let Some(arm) = record.ab.as_ref().and_then(|turns| turns.arm.beyond_case()) {
        record.case = record.case.with("ab", arm);
    }
    record
}

/// Derives every number of a journal's contents and of the published results beside it.
pub(crate) fn run(
    header: &RunHeader,
    records: &[Record],
    damage: Option<&Damage>,
    publications: &[Publication],
    defaults: Defaults,
) -> Run {
    let mut entries: Vec<Entry> = records.iter().map(|record| entry(&with_arm(record))).collect();
    for Entry { record, set, .. } in &mut entries {
        set.retain(|name| defaults(&record.workload, name) != record.case.get(name));
    }
    for view in VIEWS.iter().filter(|view| !view.short.is_empty()) {
        for workload in view.workloads {
            let mine = entries.iter_mut().filter(|entry| entry.record.workload == *workload);
            name_shortly(&mut mine.collect::<Vec<_>>(), view.short);
        }
    }
    // Grids interleave their axes; a reader looks for a page size.
    entries.sort_by_cached_key(|entry| {
        let kind = entry.value(parameter::KIND).to_owned();
        let first = records.iter().position(|record| record.workload == entry.record.workload);
        (first, kind, parameters::page_rank(entry.value(parameter::PAGE)))
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
    let (aside, entries): (Vec<Entry>, Vec<Entry>) =
        entries.into_iter().partition(|entry| tries::is_aside(header, entry));
    let fits = fits(&entries);
    let findings = findings_of(&entries, &limits);
    let published = publications.iter().flat_map(Publication::records).map(entry).collect();
    let (header, damage) = (header.clone(), damage.cloned());
    let publications = publications.to_vec();
    Run { header, damage, entries, aside, publications, published, limits, fits, findings }
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
