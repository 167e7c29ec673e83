//! Two runs or more, set beside each other: what became faster, what slower, and what cannot be
//! said.
//!
//! The one idea: a cell is a case with a metric, each side gives one number for each of its
//! processes, and [`pagelab_record::verdict`] says what the two come to. Whether two cells may be
//! compared at all is asked first: a record that is not valid has no number, and machines that are
//! not the same are none of each other's business unless somebody allows the facts in which they
//! differ by name. What only one side has is shown as that.
//!
//! Cells of one run are set against each other in the same way, along a parameter ([`pairs`]). Of a
//! fleet there are too many sides for that: its hosts are a distribution ([`hosts`]).

mod arms;
mod busy;
mod counts;
mod data;
mod drawn;
mod facts;
mod headings;
mod hosts;
mod judged;
mod lkml;
mod pairs;
mod power;
mod sections;
mod twice;
mod units;

use std::collections::BTreeMap;

use pagelab_record::{
    self as record, Record, RunHeader,
    journal::Damage,
    verdict::{Better, Verdict},
};

pub(crate) use self::{arms::ratio as by_process, facts::Class};
pub use self::{
    counts::{Counting, Counts, Heading, Most, Named},
    hosts::{Fleet, Hosts},
    pairs::Pair,
    power::{Power, Question, Taken},
    twice::{Pair as TwicePair, Twice},
};
use self::{
    facts::Difference,
    judged::{Against, Cell, against, delta_of},
};
use crate::{Views, document::Document, forms::Forms, html, metric::Statistic, visible::visible};

/// A noise floor above this is none to compare on.
const FLOOR_MAX: f64 = 0.05;

/// One of the things that are compared.
#[derive(Debug, Clone, Copy)]
pub struct Side<'r> {
    /// What to call it.
    pub name: &'r str,
    /// Its run.
    pub header: &'r RunHeader,
    /// One record for each case.
    pub records: &'r [Record],
    /// Where its journal ends before its end.
    pub damage: Option<&'r Damage>,
}

/// How it is to be compared.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What the workloads are compared by.
    pub views: Views,
    /// A difference of less is none; where nobody says, what a run of two arms was asked, else the
    /// larger of 3 % and the floor.
    pub delta: Option<f64>,
    /// By how much two runs of the same thing differ on this host, where that was measured.
    pub floor: Option<f64>,
    /// What is compared of each series; the median where nothing is named.
    pub statistics: Vec<Statistic>,
    /// Facts that may differ.
    pub allow: Vec<String>,
}

impl Asked {
    /// As it is where nobody says anything.
    pub fn of(views: &Views) -> Self {
        let views = views.clone();
        Self { views, delta: None, floor: None, statistics: Vec::new(), allow: Vec::new() }
    }
}

/// A threshold: what is worse by more is a failure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// In a metric, by a share.
    Share(Statistic, f64),
    /// In counts, by their name.
    Counts(&'static str, f64),
}

/// What a comparison comes to as a whole, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// A cell is worse by more than a threshold.
    Worse,
    /// A witness failed: what was measured is not what its name says.
    Invalid,
    /// Facts differ that were not allowed, or no case is in both.
    NotComparable,
    /// Everything was skipped.
    AllSkipped,
    /// Nothing is known to be worse.
    Good,
}

/// Some sides, each compared with the first.
#[derive(Debug, Clone)]
pub struct Comparison<'r> {
    base_name: String,
    against: Vec<Against<'r>>,
    views: Views,
    allow: Vec<String>,
    delta: f64,
    floor: Option<f64>,
    notes: Vec<(String, &'r Damage)>,
}

impl<'r> Comparison<'r> {
    /// Every side but the first against the first.
    pub fn of(sides: &[Side<'r>], asked: &Asked) -> Option<Self> {
        let (base, others) = sides.split_first()?;
        let paired = others.iter().map(|other| {
            let version = (base.header.pagelab != other.header.pagelab).then(|| {
                let versions = [base, other].map(|side| side.header.pagelab.clone());
                Difference::new(Class::Settings, "pagelab", versions)
            });
            // Publications have no header, and say what they are by their nature.
            let version = version.filter(|version| version.values.iter().all(|v| !v.is_empty()));
            let (pairs, left) = pairs::of_runs(base, other, &asked.views);
            against([base.name, other.name], pairs, left, version.as_ref(), asked)
        });
        let paired = paired.collect();
        Some(Self::new(base.name, sides, paired, asked))
    }

    /// The cases of some runs against each other, along a parameter or a fact.
    ///
    /// # Errors
    /// A sentence, where there is nothing to set against each other.
    pub fn along(
        sides: &[Side<'r>],
        axis: &str,
        baseline: Option<&str>,
        asked: &Asked,
    ) -> Result<Self, String> {
        let found = pairs::along(sides, axis, baseline)?;
        let mut asked = asked.clone();
        asked.allow.extend(found.allowed);
        let base = format!("{axis}={}", found.base);
        let paired = found
            .against
            .into_iter()
            .map(|(name, (pairs, left))| against([&base, &name], pairs, left, None, &asked));
        let paired = paired.collect();
        Ok(Self::new(&base, sides, paired, &asked))
    }

    /// The two arms of one run against each other.
    ///
    /// # Errors
    /// A sentence, where the run has no arms.
    pub fn of_arms(side: &Side<'r>, asked: &Asked) -> Result<Self, String> {
        let Some(record::Asked::Ab(ab)) = &side.header.asked else {
            return Err(format!(
                "{}: one run alone, and without arms: name another, or an axis to compare its \
                 cases along: --by page",
                side.name
            ));
        };
        let (pairs, left) = arms::of_run(side, ab);
        let names = ab.arms.each_ref().map(|arm| arm.name.as_str());
        let mut asked = asked.clone();
        asked.delta = asked.delta.or(ab.delta());
        asked.allow.extend(arms::allowed(ab));
        let against = against(names, pairs, left, None, &asked);
        Ok(Self::new(names[0], &[*side], vec![against], &asked))
    }

    /// The cells of a run of two arms that are not decided, each with the blocks that it needs in
    /// all, where that can be told.
    pub fn open_cells(&self) -> BTreeMap<u32, Option<u32>> {
        let mut open = BTreeMap::new();
        for cell in self.cells().filter(|cell| cell.verdict == Verdict::Inconclusive) {
            let (Some(number), Some(_)) = (cell.pair.cell, &cell.ratio) else { continue };
            let needs = open.entry(number).or_insert(cell.needs);
            // All of its metrics, so the one that takes longest.
            *needs = needs.zip(cell.needs).map(|(one, other)| one.max(other));
        }
        open
    }

    fn new(base: &str, sides: &[Side<'r>], against: Vec<Against<'r>>, asked: &Asked) -> Self {
        let damaged = sides.iter().filter_map(|side| Some((side.name.to_owned(), side.damage?)));
        let (delta, floor) = (delta_of(asked), asked.floor);
        let (allow, notes) = (asked.allow.clone(), damaged.collect());
        let (views, base_name) = (asked.views.clone(), base.to_owned());
        Self { base_name, against, views, allow, delta, floor, notes }
    }

    /// What it comes to, with what is a failure.
    pub fn outcome(&self, thresholds: &[Threshold]) -> Outcome {
        let has = |verdict| self.cells().any(|cell| cell.verdict == verdict);
        let is_met = |threshold: &Threshold| match *threshold {
            Threshold::Share(statistic, worse) => {
                self.cells().any(|cell| is_worse(cell, statistic, worse))
            }
            Threshold::Counts(name, most) => self.named(name).any(|counts| counts.is_worse(most)),
        };
        // A threshold on what was not counted is not passed.
        let is_blind = |threshold: &Threshold| match threshold {
            Threshold::Counts(name, _) => self.named(name).next().is_none(),
            Threshold::Share(..) => false,
        };
        if thresholds.iter().any(is_met) {
            Outcome::Worse
        } else if has(Verdict::Invalid) {
            Outcome::Invalid
        } else if has(Verdict::NotComparable) || thresholds.iter().any(is_blind) {
            Outcome::NotComparable
        } else if self.against.iter().any(|against| against.all_skipped) {
            Outcome::AllSkipped
        } else if self.against.iter().any(Against::is_empty) {
            Outcome::NotComparable
        } else {
            Outcome::Good
        }
    }

    /// Whether there is a cell of which nothing is known.
    pub fn is_undecided(&self) -> bool {
        self.cells().any(|cell| cell.verdict == Verdict::Inconclusive)
    }

    /// Whether a cell is known to be slower.
    pub fn is_slower(&self) -> bool {
        self.cells().any(|cell| cell.verdict == Verdict::Slower)
            || self.counts().any(|(_, counts)| counts.is_slower())
    }

    fn counts(&self) -> impl Iterator<Item = (&'static Counting, &dyn Counts)> {
        let all = self.against.iter().flat_map(|against| &against.counts);
        all.map(|(counting, counts)| (*counting, &**counts))
    }

    /// The counts that a threshold of that name is on.
    fn named(&self, name: &str) -> impl Iterator<Item = &dyn Counts> {
        let mine = self.counts().filter(move |(counting, _)| counting.threshold.0 == name);
        mine.map(|(_, counts)| counts)
    }

    fn cells(&self) -> impl Iterator<Item = &Cell<'r>> {
        self.against.iter().flat_map(|against| &against.cells)
    }

    /// Plain text for a mail to a kernel list, so many columns wide.
    pub fn lkml(&self, columns: usize) -> String {
        lkml::render(self, columns)
    }

    /// Stacks of paths with what they take before and after: what flame graphs of a difference are
    /// drawn from.
    pub fn folded(&self) -> String {
        visible(&self.counts().map(|(_, counts)| counts.folded()).collect::<String>())
    }
}

impl Forms for Comparison<'_> {
    const ABOUT: &'static str = html::COMPARED;

    fn document(&self) -> Document {
        sections::document(self, false)
    }

    fn page(&self) -> Document {
        let mut document = sections::document(self, true);
        drawn::add(self, &mut document);
        document
    }

    fn value(&self) -> serde_json::Value {
        data::value(self)
    }

    fn rows(&self) -> Vec<Vec<String>> {
        data::rows(self)
    }
}

/// Whether a cell is worse in a metric by more than a share.
fn is_worse(cell: &Cell<'_>, statistic: Statistic, most: f64) -> bool {
    let (Some(ratio), true) = (&cell.ratio, cell.statistic == statistic) else {
        return false;
    };
    let comparable = !matches!(cell.verdict, Verdict::Invalid | Verdict::NotComparable);
    let better = statistic.better();
    let verdict = Verdict::judge(ratio, cell.p, most, better);
    let worse = match better {
        Better::Less => ratio.value - 1.0,
        Better::More => 1.0 - ratio.value,
    };
    comparable && verdict == Verdict::Slower && worse > most
}
