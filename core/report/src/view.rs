//! What a part adds to a report: rows of [`View`]; and what all rows together make of a journal.
//!
//! A row says which workloads it shows, what their records imply, its sections, its headlines and
//! how a case is called and compared. [`Views`] is every row of a program in the order of reading;
//! nothing else in this crate knows a workload. No row decides whether a number may be shown:
//! [`crate::entry`] does.

use std::sync::Arc;

use pagelab_record::{Case, Measured, Record, RunHeader, journal::Damage};
use serde_json::Value;

use crate::{
    Entry, Headline, Limits, Numbers, Run, Section, Time,
    cases::name_shortly,
    compare::{Counting, Most},
    findings::of as findings_of,
    limits::Ceilings,
    parameter, parameters,
    published::Publication,
};

/// The default of a workload's parameter, where it has one: what a report need not say.
pub type Defaults = fn(workload: &str, parameter: &str) -> Option<&'static str>;

/// What a part shows of its records.
#[derive(Debug)]
pub struct View {
    /// Where in a report it stands; rows of one rank are in the order of their parts.
    pub rank: Rank,
    /// The workloads whose records it shows.
    pub workloads: &'static [&'static str],
    /// What their records imply.
    pub derive: &'static [Derive],
    /// Its sections, in the order of reading.
    pub sections: Sections,
    /// The numbers that a run is remembered by.
    pub headlines: fn(&Run) -> Vec<Headline>,
    /// The series and the time of the number that a case of each workload is compared by; without
    /// one, every series that is a time.
    pub main: &'static [(&'static str, Time)],
    /// The parameters that a case of its workloads is called by; what tells it from others of its
    /// run is added.
    pub short: &'static [&'static str],
    /// How its counts are compared, where it has any.
    pub counting: Option<&'static Counting>,
    /// Whether its workloads measure a limit of the machine: what was asked for comes before them.
    pub is_limit: bool,
    /// What of its workloads every result is set against.
    pub ceilings: Option<&'static Ceilings>,
    /// Whether they come in rounds: a later record holds the rounds before it, and what else its
    /// run measured decides nothing.
    pub in_rounds: bool,
    /// Whether the only case of a run stands beside the only one of another, whatever it is called.
    pub is_lone: bool,
    /// What it adds to the report as JSON, by name; a dot leads into what is there.
    pub json: &'static [(&'static str, Said)],
    /// Whether a record of any workload is left out of sections: it only says what is predicted of
    /// those that this row shows.
    pub is_aside: fn(&RunHeader, &Entry) -> bool,
}

impl View {
    /// A row that shows nothing: what a row need not say.
    pub const NONE: Self = Self {
        rank: Rank::Measured,
        workloads: &[],
        derive: &[],
        sections: Sections::Each(&[]),
        headlines: |_| Vec::new(),
        main: &[],
        short: &[],
        counting: None,
        is_limit: false,
        ceilings: None,
        in_rounds: false,
        is_lone: false,
        json: &[],
        is_aside: |_, _| false,
    };
}

/// What a row says for programs, where it has something to say.
pub type Said = fn(&Run) -> Option<Value>;

/// The places of a report, in the order of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// What was asked and what came out, over all records.
    Answer,
    /// What was measured.
    Measured,
    /// The limits of the machine, which it is set against.
    Limits,
    /// Checks, skips, failures and the machine.
    Proof,
}

/// What records imply, by what it follows from. The three are derived one after the other.
#[derive(Debug)]
pub enum Derive {
    /// From the record alone.
    Alone(fn(&Case, &Measured, &mut Numbers)),
    /// From the record beside the limits of its machine.
    Limits(fn(&Case, &Measured, &Limits, &mut Numbers)),
    /// From the records of a run together.
    Together(fn(&mut [Entry])),
}

/// The sections of a view.
#[derive(Debug)]
pub enum Sections {
    /// Each of these that the run has.
    Each(&'static [fn(&Run) -> Option<Section>]),
    /// As many as there are.
    Many(fn(&Run) -> Vec<Section>),
}

/// The rows of every part, in the order of reading, and the defaults of parameters.
#[derive(Debug, Clone)]
pub struct Views {
    rows: Arc<[&'static View]>,
    defaults: Defaults,
}

impl Default for Views {
    fn default() -> Self {
        Self::new([], |_, _| None)
    }
}

impl Views {
    /// Those of some parts.
    pub fn new(rows: impl IntoIterator<Item = &'static View>, defaults: Defaults) -> Self {
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_by_key(|view| view.rank);
        Self { rows: rows.into(), defaults }
    }

    /// The view that shows the records of a workload, or one that shows nothing.
    pub fn of(&self, workload: &str) -> &'static View {
        let mine = self.rows.iter().find(|view| view.workloads.contains(&workload));
        mine.copied().unwrap_or(&View::NONE)
    }

    /// How counts are compared.
    pub(crate) fn countings(&self) -> impl Iterator<Item = &'static Counting> {
        self.rows.iter().filter_map(|view| view.counting)
    }

    /// The threshold of that name on counts.
    pub fn threshold(&self, name: &str) -> Option<(&'static str, Most)> {
        self.countings().map(|counting| counting.threshold).find(|(known, _)| *known == name)
    }

    /// The series that the number of a workload stands in, and its time.
    pub(crate) fn main(&self, workload: &str) -> Option<(&'static str, Time)> {
        let view = self.of(workload);
        let at = view.workloads.iter().position(|known| *known == workload)?;
        view.main.get(at).copied()
    }

    /// A record with all that it implies by itself.
    pub fn entry(&self, record: &Record) -> Entry {
        let mut entry = Entry::of(record);
        entry.main = self.main(&record.workload);
        for derive in self.of(&record.workload).derive {
            if let Derive::Alone(derive) = derive {
                entry.derive(derive);
            }
        }
        entry
    }

    /// Derives every number of a journal's contents and of the published results beside it.
    pub(crate) fn run(
        &self,
        header: &RunHeader,
        records: &[Record],
        damage: Option<&Damage>,
        publications: &[Publication],
    ) -> Run {
        let mut entries: Vec<Entry> =
            records.iter().map(|record| self.entry(&with_arm(record))).collect();
        for Entry { record, set, .. } in &mut entries {
            set.retain(|name| (self.defaults)(&record.workload, name) != record.case.get(name));
        }
        for view in self.rows.iter().filter(|view| !view.short.is_empty()) {
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
        let ceilings = self.rows.iter().find_map(|view| view.ceilings);
        let limits = ceilings.map(|it| Limits::of(&entries, it)).unwrap_or_default();
        for entry in &mut entries {
            for derive in self.of(&entry.record.workload).derive {
                if let Derive::Limits(derive) = derive {
                    entry.derive(|case, measured, numbers| {
                        derive(case, measured, &limits, numbers);
                    });
                }
            }
        }
        for derive in self.rows.iter().flat_map(|view| view.derive) {
            if let Derive::Together(derive) = derive {
                derive(&mut entries);
            }
        }
        let is_aside = |entry: &Entry| self.rows.iter().any(|row| (row.is_aside)(header, entry));
        let (aside, entries): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(is_aside);
        let findings = findings_of(&entries, &limits);
        let published = publications.iter().flat_map(Publication::records);
        let published = published.map(|record| self.entry(record)).collect();
        let (header, damage) = (header.clone(), damage.cloned());
        let (views, publications) = (self.clone(), publications.to_vec());
        Run { views, header, damage, entries, aside, publications, published, limits, findings }
    }

    /// Every section that the records support.
    pub(crate) fn sections(&self, run: &Run) -> Vec<Section> {
        let sections = |view: &&View| match view.sections {
            Sections::Each(each) => each.iter().filter_map(|section| section(run)).collect(),
            Sections::Many(sections) => sections(run),
        };
        self.rows.iter().flat_map(sections).collect()
    }

    /// Every headline that the records support.
    pub(crate) fn headlines(&self, run: &Run) -> Vec<Headline> {
        self.rows.iter().flat_map(|view| (view.headlines)(run)).collect()
    }

    /// What the rows add to the report as JSON.
    pub(crate) fn json(&self, run: &Run) -> Vec<(&'static str, Value)> {
        let all = self.rows.iter().flat_map(|view| view.json);
        all.filter_map(|(name, value)| Some((*name, value(run)?))).collect()
    }
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
