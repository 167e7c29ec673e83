//! Numbers that sentences ask for: found in this run or among what was published, or lacking.
//!
//! The one idea: a figure that is not there is a figure, too. It carries why it is not there and
//! what would measure it, through every ratio and difference that it goes into; only where a
//! sentence would show it does it drop the sentence.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use minijinja::value::{Object, ObjectRepr, Value};
use pagelab_record::Outcome;

use super::{
    claims::{Asked, Claims, FigureSpec, Place, Values},
    words::{Lack, display, words},
};
use crate::{At, Entry, Limits, Quantity, Standing, Time, Unit, name_of, ratio};

/// The arm of ours that speaks where no other is named, and the one of published records.
const OURS: &str = "pagelab";
pub(super) const THEIRS: &str = "published";
/// Statistics whose ratio between arms is taken process by process: times of the same work.
const TIMES: [&str; 4] = ["p50", "ns_per_op", "total", "round"];

/// What the sentence that is made now lacks.
pub(super) type Sink = Arc<Mutex<Vec<Lack>>>;

/// Which side a number is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Here,
    Published,
}

/// Where a number was found, with what else of that case might be asked for.
#[derive(Debug, Clone)]
struct Source {
    side: Side,
    workload: String,
    entries: Vec<(usize, Quantity)>,
    arm: String,
    series: String,
    time: Time,
    is_time: bool,
    asked: Asked,
}

/// A number or the lack of one, as a value of a template.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    pub(super) quantity: Option<Quantity>,
    /// What tells it from others of a list.
    pub(super) label: String,
    pub(super) form: Option<String>,
    /// A difference, which is written with its sign.
    pub(super) signed: bool,
    source: Option<Source>,
    pub(super) lacks: Vec<Lack>,
    sink: Sink,
}

impl Figure {
    /// A number that comes from no single place.
    pub(super) fn derived(&self, quantity: Option<Quantity>, others: &[&Self]) -> Self {
        let mut lacks = self.lacks.clone();
        lacks.extend(others.iter().flat_map(|other| other.lacks.iter().cloned()));
        let quantity = quantity.filter(|quantity| quantity.value.is_finite() && lacks.is_empty());
        if quantity.is_none() && lacks.is_empty() {
            lacks.push(Lack::of(&self.label, "nothing can be divided by it"));
        }
        Self { quantity, source: None, form: None, signed: false, lacks, ..self.clone() }
    }

    /// The number, where a sentence is about to show it; what it lacks is noted.
    pub(super) fn shown(&self) -> Option<Quantity> {
        if self.quantity.is_none() {
            self.note(true);
        }
        self.quantity
    }

    /// Notes what it lacks; `drops` where nothing can be said without it.
    pub(super) fn note(&self, drops: bool) {
        let Ok(mut sink) = self.sink.lock() else { return };
        for lack in &self.lacks {
            sink.push(Lack { drops, ..lack.clone() });
        }
    }

    /// One over the other: process by process where they are arms of one case, else with the worst
    /// ends of both.
    pub(super) fn over(&self, other: &Self, both: &Both) -> Self {
        let (Some(one), Some(two)) = (&self.source, &other.source) else {
            return self.divided(other);
        };
        let alike = one.side == Side::Here
            && (&one.workload, &one.series, one.time) == (&two.workload, &two.series, two.time)
            && one.is_time
            && two.is_time
            && one.asked == two.asked;
        if !alike || one.arm == two.arm || !self.lacks.is_empty() || !other.lacks.is_empty() {
            return self.divided(other);
        }
        let common = one.entries.iter().find(|(at, _)| two.entries.iter().any(|(b, _)| at == b));
        let of_arms = || {
            let series = &both.here.get(common?.0)?.measured()?.series;
            ratio::of_times(series, &one.series, one.time, [&one.arm, &two.arm])
        };
        let mut ratio = self.derived(of_arms(), &[other]);
        if common.is_none() {
            let lack = |source: &Source| Lack {
                arm: source.arm.clone(),
                ..Lack::of(display(&source.workload, &source.asked), "not arms of one case")
            };
            ratio.lacks = vec![lack(one), lack(two)];
        }
        ratio
    }

    fn divided(&self, other: &Self) -> Self {
        // A time over a count is a time.
        let is_plain = |unit: Unit| matches!(unit, Unit::Count | Unit::Ratio | Unit::Share);
        let over = |(a, b): (Quantity, Quantity)| {
            let unit = if is_plain(b.unit) && !is_plain(a.unit) { a.unit } else { Unit::Ratio };
            a.over(b, unit)
        };
        self.derived(self.quantity.zip(other.quantity).and_then(over), &[other])
    }

    /// The words of it; `value` leaves its interval out, what else is a form is a unit.
    pub(super) fn words(&self, form: Option<&str>) -> Option<String> {
        let quantity = self.shown()?;
        let interval = form != Some("value");
        let form = form.filter(|form| *form != "value").or(self.form.as_deref());
        Some(words(quantity, self.signed, form.unwrap_or_default(), interval))
    }
}

impl Object for Figure {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.quantity.is_some()
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if key.as_str()? == "label" {
            return Some(Value::from(self.label.clone()));
        }
        let quantity = self.shown()?;
        match key.as_str()? {
            "value" => Some(Value::from(quantity.value)),
            "low" => Some(Value::from(quantity.low)),
            "high" => Some(Value::from(quantity.high)),
            _ => None,
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(Some("value")).unwrap_or_default())
    }
}

/// This run and what was published, asked for the same things.
#[derive(Debug)]
pub(super) struct Both {
    pub(super) here: Vec<Entry>,
    pub(super) published: Vec<Entry>,
    pub(super) limits: Limits,
    pub(super) claims: Claims,
    pub(super) sink: Sink,
}

/// What a call may change besides parameters.
const PLACES: [&str; 5] = ["arm", "series", "statistic", "time", "counter"];

/// What changes a figure when it is asked for: parameters, or another place in the record.
pub(super) type Over = BTreeMap<String, String>;

impl Both {
    /// The figure of that name, with some of it changed.
    pub(super) fn figure(&self, name: &str, side: Side, over: &Over) -> Result<Figure, String> {
        let spec = self.claims.figures.get(name).ok_or_else(|| self.claims.no_figure(name))?;
        let found = self.find(spec, side, over)?;
        let label = over.get("arm").or_else(|| over.values().next());
        let label = label.cloned().unwrap_or_else(|| name.to_owned());
        let quantity = found.source.entries.first().map(|(_, quantity)| *quantity);
        let lacks = if quantity.is_some() { Vec::new() } else { vec![self.lack(spec, &found)] };
        let (form, source, sink) = (spec.form.clone(), Some(found.source), Arc::clone(&self.sink));
        Ok(Figure { quantity, label, form, signed: false, source, lacks, sink })
    }

    /// Every entry that a figure may be taken from, the best first, with its number where it has
    /// one that may be quoted.
    pub(super) fn all(&self, name: &str, side: Side, over: &Over) -> Result<Vec<Quantity>, String> {
        let spec = self.claims.figures.get(name).ok_or_else(|| self.claims.no_figure(name))?;
        let found = self.find(spec, side, over)?;
        Ok(found.source.entries.iter().map(|(_, quantity)| *quantity).collect())
    }

    /// A number that no record holds.
    pub(super) fn exact(&self, label: &str, quantity: Option<Quantity>, cure: &str) -> Figure {
        let lack = Lack { cure: cure.to_owned(), ..Lack::of(label, "no such case ran") };
        let lacks = if quantity.is_some() { Vec::new() } else { vec![lack] };
        let (label, sink) = (label.to_owned(), Arc::clone(&self.sink));
        Figure { quantity, label, form: None, signed: false, source: None, lacks, sink }
    }

    pub(super) fn entries(&self, side: Side) -> &[Entry] {
        match side {
            Side::Here => &self.here,
            Side::Published => &self.published,
        }
    }

    fn find(&self, spec: &FigureSpec, side: Side, over: &Over) -> Result<Found, String> {
        let theirs = Place::default();
        let theirs = if side == Side::Published { &spec.published } else { &theirs };
        let pick = |name: &str, other: &Option<String>, own: &Option<String>, default: &str| {
            let picked = over.get(name).or(other.as_ref()).or(own.as_ref());
            picked.cloned().unwrap_or_else(|| default.to_owned())
        };
        let arm = match side {
            Side::Here => pick("arm", &None, &spec.arm, OURS),
            Side::Published => pick("arm", &theirs.arm, &None, THEIRS),
        };
        let series = pick("series", &theirs.series, &spec.series, "");
        let statistic = pick("statistic", &theirs.statistic, &spec.statistic, "p50");
        let counter = match (&theirs.counter, &theirs.series, over.contains_key("series")) {
            (Some(counter), ..) => Some(counter.clone()),
            (None, Some(_), _) | (None, None, true) => None,
            (None, None, false) => spec.counter.clone(),
        };
        let counter = over.get("counter").cloned().or(counter);
        let time = pick("time", &theirs.time, &spec.time, "elapsed");
        let time = Time::ALL
            .into_iter()
            .find(|known| known.name() == time)
            .ok_or_else(|| format!("no time is called `{time}`; there are elapsed, cpu, none"))?;
        let mut asked = theirs.case.clone().unwrap_or_else(|| spec.case.clone());
        let changed = over.iter().filter(|(name, _)| !PLACES.contains(&name.as_str()));
        asked.extend(changed.map(|(n, value)| (n.clone(), Values::One(value.clone()))));
        let entries = self.entries(side);
        let mine = |entry: &&Entry| entry.record.workload == spec.workload && fits(entry, &asked);
        let mut all: Vec<(usize, &Entry)> =
            entries.iter().enumerate().filter(|(_, entry)| mine(entry)).collect();
        all.sort_by_key(|(_, entry)| rank(entry, spec));
        let number = |entry: &Entry| match &counter {
            Some(name) => {
                let measured = entry.measured().filter(|_| entry.is_valid())?;
                // A counter is of the whole case, which is an arm's where it has that one.
                let is_its = measured.series.iter().any(|series| series.arm == arm);
                let counters = &measured.counters;
                let count = counters.get(name).filter(|_| is_its || !over.contains_key("arm"));
                count.map(|count| Quantity::exact(*count as f64, Unit::Count))
            }
            None => entry.numbers.get(At { arm: &arm, series: &series, time }, &statistic),
        };
        let with = all.iter().filter_map(|(at, entry)| Some((*at, number(entry)?))).collect();
        let is_time = TIMES.contains(&statistic.as_str()) && counter.is_none();
        let workload = spec.workload.clone();
        let source = Source { side, workload, entries: with, arm, series, time, is_time, asked };
        Ok(Found { source, first: all.first().map(|(at, _)| *at) })
    }

    /// Why a figure is not there: the best of the cases that it could have been taken from says.
    fn lack(&self, spec: &FigureSpec, found: &Found) -> Lack {
        let Source { side, arm, asked, .. } = &found.source;
        let entry = found.first.and_then(|at| self.entries(*side).get(at));
        let command = || {
            let flags = asked.iter().filter_map(|(name, values)| {
                let value = values.all().iter().find(|value| !value.is_empty())?;
                Some(format!(" --{name} {value}"))
            });
            let arms =
                spec.arms.as_ref().map_or_else(String::new, |flag| format!(" --{flag} {arm}"));
            format!("pagelab run {}{}{arms}", spec.workload, flags.collect::<String>())
        };
        let failed;
        let (why, cure) = match entry.map(|entry| (&entry.record.outcome, entry.standing)) {
            None if *side == Side::Published => ("not published", String::new()),
            None => ("no such case ran", command()),
            Some((Outcome::Skipped { need, cure }, _)) => (need.as_str(), cure.clone()),
            Some((Outcome::Failed { reason }, _)) => {
                failed = format!("failed: {reason}");
                (failed.as_str(), String::new())
            }
            Some((_, Standing::Invalid)) => ("INVALID", String::new()),
            Some((_, Standing::Emulated)) => {
                ("an emulated machine: times mean nothing", String::new())
            }
            Some(_) => ("its case has no such number", command()),
        };
        let arm = if spec.arms.is_some() { arm.clone() } else { String::new() };
        let standing = entry.map(|entry| entry.standing);
        Lack { arm, standing, cure, ..Lack::of(display(&spec.workload, asked), why) }
    }
}

struct Found {
    source: Source,
    /// The best of the cases, with or without the number.
    first: Option<usize>,
}

/// A parameter as results are compared by: a trace by its name, without what its generator takes.
pub(super) fn parameter<'a>(entry: &'a Entry, name: &str) -> &'a str {
    if name == "trace" { name_of(entry.case()) } else { entry.value(name) }
}

/// Whether a case has what is asked of it.
pub(super) fn fits(entry: &Entry, asked: &Asked) -> bool {
    asked.iter().all(|(name, values)| {
        let value = parameter(entry, name);
        values.all().iter().any(|asked| asked == value)
    })
}

/// Which of several cases may speak: what may be quoted, then what is preferred, then by its arms.
fn rank(entry: &Entry, spec: &FigureSpec) -> (u8, usize, usize) {
    let standing = match entry.standing {
        Standing::Valid => 0,
        Standing::Invalid => 1,
        Standing::Emulated => 2,
        Standing::Failed => 3,
        Standing::Skipped => 4,
    };
    let wanted = spec.prefer.iter();
    let unlike = wanted.filter(|(name, values)| {
        let value = parameter(entry, name);
        !values.all().iter().any(|asked| asked == value)
    });
    let arms = entry.numbers.arms(spec.series.as_deref().unwrap_or_default()).len();
    (standing, unlike.count(), if spec.alone { arms } else { usize::MAX - arms })
}
