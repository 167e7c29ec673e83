//! Which record is set beside which.
//!
//! The one idea: two records are of one cell where workload and complete case agree. What was
//! published states fewer parameters, and meets every case that agrees in those. Along an axis two
//! records are of one cell where all but the axis agrees, and what follows it.

use std::collections::HashMap;

use pagelab_record::{Case, Host, Nature, Outcome, Record, vocabulary::fact::HOST_NAME};
use serde_json::Value;

use super::Side;
use crate::{Views, parameters};

/// Two records of one cell.
#[derive(Debug, Clone)]
pub struct Pair<'r> {
    /// The record of the base.
    pub a: &'r Record,
    /// The other one.
    pub b: &'r Record,
    /// What the cell is, on both sides.
    pub case: Case,
    /// What other runs of either side have of it.
    pub more: [Vec<&'r Record>; 2],
    /// Its number in a run of two arms, whose processes stand beside each other in blocks.
    pub cell: Option<u32>,
}

impl<'r> Pair<'r> {
    /// Every record of either side.
    pub fn all(&self) -> [Vec<&'r Record>; 2] {
        let [a, b] = &self.more;
        [(self.a, a), (self.b, b)].map(|(one, more)| [&[one], &more[..]].concat())
    }
}

/// A case that is not compared, and why.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(super) workload: String,
    pub(super) case: Case,
    pub(super) why: String,
    skipped: bool,
}

impl Left {
    pub(super) fn of(record: &Record, why: String) -> Self {
        let Record { workload, case, .. } = record;
        Self { workload: workload.clone(), case: case.clone(), why, skipped: false }
    }

    pub(super) fn is_skipped(&self) -> bool {
        self.skipped
    }
}

/// Records side by side, and what is left over.
pub(super) type Paired<'r> = (Vec<Pair<'r>>, Vec<Left>);

/// The first record of each case, and the others of it: those of further runs or boots.
fn by_case<'r>(
    records: impl IntoIterator<Item = &'r Record>,
) -> (Vec<&'r Record>, Vec<Vec<&'r Record>>) {
    let (mut first, mut more): (Vec<&Record>, Vec<Vec<&Record>>) = (Vec::new(), Vec::new());
    let mut places: HashMap<_, usize> = HashMap::new();
    for record in records {
        let place = *places.entry(record.key()).or_insert(first.len());
        if place == first.len() {
            first.push(record);
            more.push(Vec::new());
        } else {
            more[place].push(record);
        }
    }
    (first, more)
}

/// The records of two runs.
pub(super) fn of_runs<'r>(base: &Side<'r>, other: &Side<'r>, views: &Views) -> Paired<'r> {
    let (mut pairs, mut left) = (Vec::new(), Vec::new());
    let (here, mine) = by_case(base.records);
    let (there, theirs) = by_case(other.records);
    let mut met = vec![false; there.len()];
    let by_case: HashMap<_, usize> =
        there.iter().enumerate().map(|(at, record)| (record.key(), at)).collect();
    for (nth, a) in here.iter().copied().enumerate() {
        let same = by_case.get(&a.key()).copied();
        let mut mates: Vec<usize> = same.into_iter().collect();
        if mates.is_empty() {
            let is_lone = views.of(&a.workload).is_lone;
            mates = lone(a, &here, &there).filter(|_| is_lone).into_iter().collect();
        }
        if mates.is_empty() {
            let stated = |but: &[&str]| -> Vec<usize> {
                let told = there.iter().enumerate().filter(|(_, b)| is_stated(a, b, but));
                told.map(|(at, _)| at).collect()
            };
            mates = stated(&[]);
            if mates.is_empty() {
                // How much was gone through is not what was found.
                mates = stated(&parameters::FOLLOWING);
            }
        }
        if mates.is_empty() {
            left.push(Left::of(a, format!("only in {}", base.name)));
        }
        for at in mates {
            met[at] = true;
            let b = there[at];
            // The one that says more of the case.
            let case = if a.case.0.len() >= b.case.0.len() { &a.case } else { &b.case };
            let more = [mine[nth].clone(), theirs[at].clone()];
            let pair = Pair { a, b, case: case.clone(), more, cell: None };
            add(pair, [base.name, other.name], &mut pairs, &mut left);
        }
    }
    for (b, _) in there.iter().zip(met).filter(|(_, met)| !met) {
        left.push(Left::of(b, format!("only in {}", other.name)));
    }
    (pairs, left)
}

/// The one record of a workload in the other run, where this one has one too: two builds of a
/// program go by two names.
fn lone(a: &Record, here: &[&Record], there: &[&Record]) -> Option<usize> {
    let is_it = |record: &&Record| record.workload == a.workload;
    let is_lone = |all: &[&Record]| all.iter().filter(|one| is_it(one)).count() == 1;
    (is_lone(here) && is_lone(there)).then(|| there.iter().position(is_it))?
}

/// Whether one of two records is published and the other agrees with all that it states, but for
/// some parameters.
fn is_stated(a: &Record, b: &Record, but: &[&str]) -> bool {
    let states = |one: &Record, other: &Record| {
        let mut stated = one.case.0.iter();
        one.nature == Nature::Published
            && stated.all(|(name, value)| {
                but.contains(&name.as_str()) || other.case.get(name) == Some(value)
            })
    };
    a.workload == b.workload && (states(a, b) || states(b, a))
}

/// A pair of which nothing is compared.
pub(super) fn alone(pair: &Pair<'_>, why: &str) -> Left {
    Left { case: pair.case.clone(), ..Left::of(pair.a, why.to_owned()) }
}

/// A pair where both were measured; else what is to be said of it.
pub(super) fn add<'r>(
    pair: Pair<'r>,
    names: [&str; 2],
    pairs: &mut Vec<Pair<'r>>,
    left: &mut Vec<Left>,
) {
    let why = |(record, name): (&Record, &str)| match &record.outcome {
        Outcome::Measured(_) => None,
        Outcome::Skipped { need, .. } => {
            Some((format!("skipped in {name}: it needs {need}"), true))
        }
        Outcome::Failed { reason } => Some((format!("failed in {name}: {reason}"), false)),
    };
    let [a, b] = pair.all();
    let every = a.into_iter().map(|a| (a, names[0])).chain(b.into_iter().map(|b| (b, names[1])));
    let whys: Vec<(String, bool)> = every.filter_map(why).collect();
    if whys.is_empty() {
        pairs.push(pair);
        return;
    }
    let skipped = whys.iter().all(|(_, skipped)| *skipped);
    let why = whys.into_iter().map(|(why, _)| why).collect::<Vec<_>>().join("; ");
    left.push(Left { skipped, ..alone(&pair, &why) });
}

/// What was found along an axis.
pub(super) struct Along<'r> {
    pub(super) base: &'r str,
    /// The facts that the axis itself moves.
    pub(super) allowed: Vec<String>,
    pub(super) against: Vec<(String, Paired<'r>)>,
}

/// The fact that an axis names which is no parameter.
const FACTS: [(&str, &str); 3] =
    [("kernel", "kernel_release"), ("cpu", "cpu_model"), ("host", HOST_NAME)];

/// The records of some runs by their value on an axis, each against those of the first.
pub(super) fn along<'r>(
    sides: &[Side<'r>],
    axis: &str,
    baseline: Option<&str>,
) -> Result<Along<'r>, String> {
    let records: Vec<&'r Record> = sides.iter().flat_map(|side| side.records).collect();
    let known = FACTS.iter().find(|(name, _)| *name == axis).map(|(_, fact)| *fact);
    let fact = known.unwrap_or(axis);
    let of_host = |record: &'r Record| -> Option<&'r str> {
        let Host { identity, volatile, .. } = &record.host;
        identity.get(fact).or_else(|| volatile.get(fact)).and_then(Value::as_str)
    };
    // A parameter may have the name of a fact: what is said is the one in which the records differ.
    let has_hosts = known.is_some_and(|_| {
        let mut values = records.iter().copied().filter_map(of_host);
        values.next().is_some_and(|first| values.any(|value| value != first))
    });
    let has_parameter = records.iter().any(|record| record.case.get(axis).is_some());
    let is_parameter = has_parameter && !has_hosts;
    let value = |record: &'r Record| {
        if is_parameter { record.case.get(axis) } else { of_host(record) }
    };
    let mut values: Vec<&'r str> = records.iter().copied().filter_map(value).collect();
    values.sort_by_key(|value| (parameters::page_rank(value), *value));
    values.dedup();
    if let Some(wanted) = baseline {
        let Some(at) = values.iter().position(|value| *value == wanted) else {
            let known = values.join(", ");
            return Err(format!(
                "--baseline {wanted}: no record has {axis}={wanted}; there are {known}"
            ));
        };
        let first = values.remove(at);
        values.insert(0, first);
    }
    let (Some(base), true) = (values.first().copied(), values.len() > 1) else {
        let what = if values.is_empty() { "no record has it" } else { "all records agree in it" };
        return Err(format!("--by {axis}: {what}; name a parameter or fact in which cases differ"));
    };
    let parameter = if is_parameter { axis } else { "" };
    let mut against = Vec::new();
    for other in &values[1..] {
        let (mut pairs, mut left) = (Vec::new(), Vec::new());
        // What several runs have of one value, each in its boot, is one cell's.
        let of = |wanted| by_case(records.iter().copied().filter(|r| value(r) == Some(wanted)));
        let ((here, mine), (there, theirs)) = (of(base), of(*other));
        for (a, mine) in here.into_iter().zip(mine) {
            let mates = there.iter().zip(&theirs).filter(|(b, _)| b.workload == a.workload);
            let mates: Vec<(&Record, &Vec<&Record>)> = mates.map(|(b, more)| (*b, more)).collect();
            let told: Vec<&Case> = mates.iter().map(|(b, _)| &b.case).collect();
            match parameters::otherwise_equal(&a.case, &told, parameter) {
                Some(at) => {
                    let (b, theirs) = mates[at];
                    let mut case = a.case.clone();
                    case.0.remove(parameter);
                    let names = [base, *other];
                    let more = [mine, theirs.clone()];
                    let pair = Pair { a, b, case, more, cell: None };
                    add(pair, names, &mut pairs, &mut left);
                }
                None => {
                    left.push(Left::of(a, format!("nothing to set beside it at {axis}={other}")));
                }
            }
        }
        against.push((format!("{axis}={other}"), (pairs, left)));
    }
    let allowed = if is_parameter {
        // A case sets what it needs set.
        vec!["settings".to_owned()]
    } else if axis == "kernel" {
        ["kernel_release", "kernel_version", "kernel_config"].map(str::to_owned).to_vec()
    } else {
        vec![fact.to_owned()]
    };
    Ok(Along { base, allowed, against })
}

/// What to call some cases: what tells each from the others of its workload.
pub(super) fn short_names(cases: &[(&str, &Case)], views: &Views) -> Vec<String> {
    let mut names = vec![String::new(); cases.len()];
    let mut workloads: Vec<&str> = cases.iter().map(|(workload, _)| *workload).collect();
    workloads.sort_unstable();
    workloads.dedup();
    for workload in workloads {
        let mine: Vec<usize> = (0..cases.len()).filter(|at| cases[*at].0 == workload).collect();
        let told: Vec<&Case> = mine.iter().map(|at| cases[*at].1).collect();
        let short = crate::cases::short_names(workload, &told, views.of(workload).short);
        for (at, short) in mine.into_iter().zip(short) {
            names[at] = short;
        }
    }
    names
}
