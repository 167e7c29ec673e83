//! The hosts of a fleet beside each other: how a number lies over all of them, which hosts lie
//! apart, and what is different about those.
//!
//! The one idea: what two machines must agree in before they are compared makes groups here, and
//! within a group a host is one number of a distribution. A host that lies apart by a named rule
//! ([`rule`]) is set against the others in every fact that may differ ([`facts`]); that is no proof
//! of a cause. Records are taken in one at a time, and of each no more is kept than its numbers, so
//! that a fleet need not fit into memory.

mod data;
mod drawn;
mod facts;
mod left;
mod rule;
mod sections;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    rc::Rc,
};

use pagelab_record::{Case, Nature, Outcome as Came, Record, stats, verdict::Better};

use self::{
    facts::{Apart, Facts, Kept, Told},
    left::Left,
    rule::{NUMBERS_MIN, SCORE_MAX, Spread},
};
use super::{Asked, Outcome, Threshold, judged::delta_of, sections::machine};
use crate::{
    document::Document,
    entry::Standing,
    forms::Forms,
    html,
    metric::{self, Statistic},
    quantity::Unit,
};

/// Hosts as their records are read.
#[derive(Debug)]
pub struct Hosts {
    asked: Asked,
    kept: Kept,
    names: Vec<String>,
    by_name: HashMap<String, usize>,
    cases: Vec<(String, Case)>,
    by_case: HashMap<String, HashMap<Case, usize>>,
    groups: Vec<Group>,
    cells: BTreeMap<(usize, String), Gathered>,
    left: BTreeMap<(usize, Standing), Left>,
}

/// Machines that may be compared.
#[derive(Debug)]
struct Group {
    identity: Rc<Facts>,
    /// In one line.
    machine: String,
    hosts: BTreeSet<usize>,
}

/// The numbers of a case and a metric, a record each.
#[derive(Debug)]
struct Gathered {
    statistic: Statistic,
    unit: Unit,
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Sample {
    group: usize,
    host: usize,
    /// One for each process.
    numbers: Vec<f64>,
    told: Told,
}

impl Hosts {
    /// None yet.
    pub fn new(asked: &Asked) -> Self {
        Self {
            asked: asked.clone(),
            kept: Kept::default(),
            names: Vec::new(),
            by_name: HashMap::new(),
            cases: Vec::new(),
            by_case: HashMap::new(),
            groups: Vec::new(),
            cells: BTreeMap::new(),
            left: BTreeMap::new(),
        }
    }

    /// Takes in a record that a version of pagelab made. One that names no host has no place.
    ///
    /// # Errors
    /// A sentence, where it names none.
    pub fn add(&mut self, version: &str, record: &Record) -> Result<(), String> {
        let Some(name) = record.host.name().filter(|name| !name.is_empty()) else {
            return Err("a record names no host: it is of an earlier pagelab, or published".into());
        };
        let host = self.host(name);
        let case = self.case(record);
        let standing = Standing::of(record);
        if standing != Standing::Valid || record.nature == Nature::Published {
            let left = self.left.entry((case, standing));
            left.or_insert_with(|| Left::of(record, standing)).hosts.insert(host);
            return Ok(());
        }
        let Came::Measured(measured) = &record.outcome else { return Ok(()) };
        let told = self.kept.told(&record.host, version, &self.asked.allow);
        let group = self.group(&told.identity, record);
        self.groups[group].hosts.insert(host);
        let statistics = match &self.asked.statistics[..] {
            [] => vec![Statistic::MEDIAN],
            some => some.to_vec(),
        };
        for place in
            metric::places(self.asked.views.main(&record.workload), &record.case, measured, false)
        {
            for statistic in &statistics {
                let Ok(found) = metric::find(measured, &place, *statistic) else { continue };
                // Numbers of two units are two cells.
                let name = match found.unit {
                    Unit::Ticks => format!("{} (ticks)", place.metric(*statistic)),
                    _ => place.metric(*statistic),
                };
                let gathered = self.cells.entry((case, name)).or_insert(Gathered {
                    statistic: *statistic,
                    unit: found.unit,
                    samples: Vec::new(),
                });
                let numbers = found.processes;
                gathered.samples.push(Sample { group, host, numbers, told: told.clone() });
            }
        }
        Ok(())
    }

    fn host(&mut self, name: &str) -> usize {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn case(&mut self, record: &Record) -> usize {
        let (workload, case) = (&record.workload, &record.case);
        if let Some(known) = self.by_case.get(workload).and_then(|cases| cases.get(case)) {
            return *known;
        }
        self.cases.push((workload.clone(), case.clone()));
        let at = self.cases.len() - 1;
        self.by_case.entry(workload.clone()).or_default().insert(case.clone(), at);
        at
    }

    fn group(&mut self, identity: &Rc<Facts>, record: &Record) -> usize {
        let known = self.groups.iter().position(|group| Rc::ptr_eq(&group.identity, identity));
        known.unwrap_or_else(|| {
            let (identity, machine) = (identity.clone(), machine(record));
            self.groups.push(Group { identity, machine, hosts: BTreeSet::new() });
            self.groups.len() - 1
        })
    }

    /// The fleet, when all records are in.
    ///
    /// # Errors
    /// A sentence, where there are no two hosts.
    pub fn fleet(self, title: &str) -> Result<Fleet, String> {
        if self.names.len() < 2 {
            let name = self.names.first().map_or("no host", String::as_str);
            return Err(format!("--by host: all records are of {name}; name runs of several"));
        }
        Ok(Fleet::of(self, title))
    }
}

/// A fleet, ready to be read.
#[derive(Debug)]
pub struct Fleet {
    title: String,
    delta: f64,
    names: Vec<String>,
    cases: Vec<(String, Case)>,
    /// What each case is called among the others.
    shorts: Vec<String>,
    /// The largest first.
    groups: Vec<Group>,
    cells: Vec<Cell>,
    outlying: Vec<Outlying>,
    left: BTreeMap<(usize, Standing), Left>,
}

/// A case and a metric over the hosts of a group.
#[derive(Debug)]
struct Cell {
    case: usize,
    metric: String,
    group: usize,
    statistic: Statistic,
    unit: Unit,
    /// In order.
    values: Vec<Value>,
    /// Of the logarithms.
    spread: Spread,
}

/// What a host says in a cell.
#[derive(Debug, Clone, Copy)]
struct Value {
    host: usize,
    number: f64,
    /// Over the median of all.
    ratio: f64,
    score: f64,
    is_outlier: bool,
}

/// A host that lies apart, in which cells, and what is different about it.
#[derive(Debug)]
struct Outlying {
    host: usize,
    group: usize,
    /// Cells with its value there, the farthest first.
    cells: Vec<(usize, Value)>,
    apart: Vec<Apart>,
}

impl Fleet {
    fn of(hosts: Hosts, title: &str) -> Self {
        let Hosts { asked, kept, names, cases, mut groups, cells: gathered, left, .. } = hosts;
        let delta = delta_of(&asked);
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|at| (usize::MAX - groups[*at].hosts.len(), *at));
        let place = |group: usize| order.iter().position(|at| *at == group).unwrap_or(group);
        let mut cells = Vec::new();
        let mut by_host: BTreeMap<(usize, usize), Vec<(usize, Value)>> = BTreeMap::new();
        let mut far: HashMap<(usize, usize), (f64, Vec<Apart>)> = HashMap::new();
        for ((case, metric), Gathered { statistic, unit, samples }) in gathered {
            let mut by_group: BTreeMap<usize, BTreeMap<usize, Vec<&Sample>>> = BTreeMap::new();
            for sample in &samples {
                let group = by_group.entry(place(sample.group)).or_default();
                group.entry(sample.host).or_default().push(sample);
            }
            for (group, hosts) in by_group {
                let (values, spread) = judged(&hosts, delta);
                let at = cells.len();
                let mine = values.iter().filter(|value| value.is_outlier);
                for value in mine {
                    by_host.entry((group, value.host)).or_default().push((at, *value));
                    let known = far.get(&(group, value.host));
                    if known.is_none_or(|(score, _)| *score < value.score.abs()) {
                        let others = values.iter().filter(|other| !other.is_outlier);
                        let others: Vec<&Told> =
                            others.map(|other| &hosts[&other.host][0].told).collect();
                        let apart = facts::apart(&kept, &hosts[&value.host][0].told, &others);
                        far.insert((group, value.host), (value.score.abs(), apart));
                    }
                }
                let metric = metric.clone();
                cells.push(Cell { case, metric, group, statistic, unit, values, spread });
            }
        }
        let outlying = by_host.into_iter().map(|((group, host), mut cells)| {
            cells.sort_by(|(_, a), (_, b)| b.score.abs().total_cmp(&a.score.abs()));
            let apart = far.remove(&(group, host)).map_or_else(Vec::new, |(_, apart)| apart);
            Outlying { host, group, cells, apart }
        });
        let mut outlying: Vec<Outlying> = outlying.collect();
        outlying.sort_by_key(|one| (usize::MAX - one.cells.len(), one.group, one.host));
        let told: Vec<_> = cases.iter().map(|(workload, case)| (workload.as_str(), case)).collect();
        let shorts = super::pairs::short_names(&told, &asked.views);
        let mut taken: Vec<Option<Group>> = groups.drain(..).map(Some).collect();
        let groups = order.iter().filter_map(|at| taken[*at].take()).collect();
        let title = title.to_owned();
        Self { title, delta, names, cases, shorts, groups, cells, outlying, left }
    }

    /// What it comes to, with what is a failure: a host that lies apart, and is worse than the
    /// middle of its group by more.
    pub fn outcome(&self, thresholds: &[Threshold]) -> Outcome {
        let is_worse = |threshold: &Threshold| match *threshold {
            Threshold::Share(statistic, most) => self.cells.iter().any(|cell| {
                cell.statistic == statistic
                    && cell.values.iter().any(|value| value.is_outlier && cell.worse(value) > most)
            }),
            Threshold::Counts(..) => false,
        };
        let has = |standing| self.left.keys().any(|(_, known)| *known == standing);
        if thresholds.iter().any(is_worse) {
            Outcome::Worse
        } else if has(Standing::Invalid) {
            Outcome::Invalid
        } else if self.cells.is_empty() && self.left.keys().all(|(_, s)| *s == Standing::Skipped) {
            Outcome::AllSkipped
        } else if self.cells.is_empty() || !self.alone().is_empty() {
            Outcome::NotComparable
        } else {
            Outcome::Good
        }
    }

    /// Hosts that no other may stand beside.
    fn alone(&self) -> Vec<usize> {
        let with_others = |host: &usize| {
            self.groups.iter().any(|group| group.hosts.len() > 1 && group.hosts.contains(host))
        };
        let all: BTreeSet<usize> =
            self.groups.iter().flat_map(|group| group.hosts.iter().copied()).collect();
        all.into_iter().filter(|host| !with_others(host)).collect()
    }
}

impl Forms for Fleet {
    const ABOUT: &'static str = html::COMPARED;

    fn document(&self) -> Document {
        sections::document(self)
    }

    fn page(&self) -> Document {
        let mut document = self.document();
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

impl Cell {
    /// By which share a value is worse than the middle.
    fn worse(&self, value: &Value) -> f64 {
        match self.statistic.better() {
            Better::Less => value.ratio - 1.0,
            Better::More => 1.0 - value.ratio,
        }
    }

    /// The numbers alone, in order.
    fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|value| value.number).collect()
    }
}

/// The values of a cell in order, and their spread. A host is one number: the median of its
/// processes, in however many records they are.
fn judged(hosts: &BTreeMap<usize, Vec<&Sample>>, delta: f64) -> (Vec<Value>, Spread) {
    let number = |samples: &Vec<&Sample>| {
        stats::median(samples.iter().flat_map(|sample| sample.numbers.iter().copied()))
    };
    let mut numbers: Vec<(usize, f64)> =
        hosts.iter().map(|(host, samples)| (*host, number(samples))).collect();
    numbers.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let spread = Spread::of(numbers.iter().map(|(_, number)| number.ln()));
    let value = |(host, number): (usize, f64)| {
        let ratio = (number.ln() - spread.middle).exp();
        let score = spread.score(number.ln());
        let is_far = score.abs() > SCORE_MAX && (ratio.max(1.0 / ratio) - 1.0) > delta;
        Value { host, number, ratio, score, is_outlier: is_far && hosts.len() >= NUMBERS_MIN }
    };
    (numbers.into_iter().map(value).collect(), spread)
}
