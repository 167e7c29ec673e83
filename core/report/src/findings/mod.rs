//! What a run found: plain sentences, each as far as its interval carries it.
//!
//! The one idea: a row of [`rules::RULES`] says which two cells it sets against each other, how far
//! from 1 their ratio must be to be worth a sentence, and the sentence. The ratio is that of every
//! comparison, one number for each process; it is told where its whole 95 % interval lies beyond
//! the bound, and where it reaches over it, or where there is none, nothing is said.
//!
//! A finding is data: which cells, which ratio, of what nature, with what to bear in mind. How it
//! looks is for the forms of the report.

mod rules;
mod wording;

use std::collections::BTreeMap;

use pagelab_record::{
    Case, Measured, Nature,
    verdict::{Ratio, Verdict},
    vocabulary::arm::CONTROL,
};

use self::rules::{Base, Bounds, Cells, RULES, Rule, Take};
use crate::{
    Entry, Limits, Quantity,
    compare::by_process,
    metric::{Found, Place, Statistic, find, places},
    parameter, parameters,
};

/// A case whose time is this much more than its time on the CPU says nothing of memory: on a busy
/// machine a long call is put aside more often than many short faults.
const WAITED_MAX: f64 = 1.25;

/// A sentence, and what it rests on.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    /// The rule that it follows from.
    pub(crate) rule: &'static str,
    pub(crate) sentence: String,
    pub(crate) nature: Nature,
    /// What the number does not say.
    pub(crate) caveat: &'static str,
    /// The ratios in it, in the order of the sentence.
    pub(crate) ratios: Vec<Compared>,
}

/// Two cells and what one is over the other.
#[derive(Debug, Clone)]
pub(crate) struct Compared {
    pub(crate) ratio: Ratio,
    pub(crate) statistic: Statistic,
    /// What the sentence is about, and what that is set against.
    pub(crate) sides: [Cell; 2],
    /// Where the interval lies.
    lies: Lies,
}

impl Compared {
    /// The ends of the interval in the words of the ratio: `1.84–1.93 times`.
    pub(crate) fn told_interval(&self) -> String {
        wording::interval(&self.ratio)
    }
}

/// A number of a record.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) workload: String,
    pub(crate) case: Case,
    pub(crate) place: Place,
    /// What stands for its processes together.
    pub(crate) middle: Quantity,
}

/// On which side of a rule's bounds an interval lies, all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lies {
    Below,
    Above,
}

impl Lies {
    /// `None` where it lies between the bounds, or reaches over one.
    fn of(interval: [f64; 2], bounds: Bounds) -> Option<Self> {
        let [below, above] = bounds.ends();
        let against = |bound: f64| Verdict::of(interval.map(|end| end / bound), 0.0);
        if below.is_some_and(|bound| against(bound) == Verdict::Faster) {
            Some(Self::Below)
        } else if above.is_some_and(|bound| against(bound) == Verdict::Slower) {
            Some(Self::Above)
        } else {
            None
        }
    }
}

/// All that the rules find among the records of a run.
pub(crate) fn of(entries: &[Entry], limits: &Limits) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| by(rule, entries, limits)).collect()
}

/// All that one rule finds.
fn by(rule: &'static Rule, entries: &[Entry], limits: &Limits) -> Vec<Finding> {
    let mut found: Vec<Told<'_>> = Vec::new();
    for candidate in candidates(&rule.cells, entries) {
        let of = |cells, candidate| compared(cells, candidate, entries, limits);
        let Some(first) = of(&rule.cells, candidate) else { continue };
        let Some(beside) = &rule.beside else {
            found.push((candidate, vec![first]));
            continue;
        };
        let mut same = candidates(beside, entries).into_iter();
        let same = same.find(|other| other.value == candidate.value);
        if let Some(second) = same.and_then(|same| of(beside, same)) {
            found.push((candidate, vec![first, second]));
        }
    }
    match rule.take {
        Take::Each => {}
        Take::First => found.truncate(1),
        Take::Furthest => found = furthest(found),
    }
    let finding = |(candidate, ratios): Told<'_>| Finding {
        rule: &rule.id,
        sentence: rule.says(candidate.value, &ratios, candidate.entry.case()),
        nature: candidate.entry.record.nature,
        caveat: &rule.caveat,
        ratios,
    };
    found.into_iter().map(finding).collect()
}

/// A record with the value that a rule speaks of.
#[derive(Clone, Copy)]
struct Candidate<'e> {
    entry: &'e Entry,
    value: &'e str,
}

/// What a rule has to say of one.
type Told<'e> = (Candidate<'e>, Vec<Compared>);

/// Of what lies above and of what lies below the one that is furthest off.
fn furthest(mut found: Vec<Told<'_>>) -> Vec<Told<'_>> {
    let ratio = |(_, ratios): &Told<'_>| ratios[0].ratio.value;
    found.sort_by(|one, other| ratio(other).total_cmp(&ratio(one)));
    let (first, last) = (0, found.len().saturating_sub(1));
    let is_it = |nth: usize, (_, ratios): &Told<'_>| match ratios[0].lies {
        Lies::Above => nth == first,
        Lies::Below => nth == last,
    };
    let kept = found.into_iter().enumerate().filter(|(nth, told)| is_it(*nth, told));
    kept.map(|(_, told)| told).collect()
}

/// The records that a rule may speak of, in the order of their values; of those with one value that
/// whose other parameters are as most have them.
fn candidates<'e>(cells: &Cells, entries: &'e [Entry]) -> Vec<Candidate<'e>> {
    let mine = |entry: &&Entry| {
        let mut with = cells.with.iter();
        entry.is_valid()
            && entry.record.workload == cells.workload
            && with.all(|(name, value)| entry.case().get(name).is_none_or(|told| told == value))
    };
    let mine: Vec<&Entry> = entries.iter().filter(mine).collect();
    let usual = parameters::usual(&mine.iter().map(|entry| entry.case()).collect::<Vec<_>>());
    let mut found: BTreeMap<_, (usize, Candidate<'_>)> = BTreeMap::new();
    for entry in mine {
        let values = match &cells.base {
            Base::Arm(_) => entry.numbers.arms(&cells.axis),
            Base::Value(_) | Base::Clear => entry.case().get(&cells.axis).into_iter().collect(),
        };
        let unusual = parameters::unusual(entry.case(), &usual, &[&cells.axis, "trace"]);
        for value in values.into_iter().filter(|value| cells.speaks_of(value)) {
            let key = (entry.value(parameter::TRACE), parameters::page_rank(value), value);
            let one = (unusual, Candidate { entry, value });
            let kept = found.entry(key).or_insert(one);
            if unusual < kept.0 {
                *kept = one;
            }
        }
    }
    found.into_values().map(|(_, candidate)| candidate).collect()
}

/// What a rule sets a record against: another record, and which arms of the two.
fn base_of<'e>(
    cells: &'static Cells,
    Candidate { entry, value }: Candidate<'e>,
    entries: &'e [Entry],
    limits: &'e Limits,
) -> Option<(&'e Entry, [Option<&'e str>; 2])> {
    let base = match &cells.base {
        Base::Arm(other) => (entry, [Some(value), Some(other)]),
        Base::Clear => {
            let [workload, level, arm] = limits.clear_by()?;
            let is_it = |entry: &&Entry| {
                entry.record.workload == workload && entry.value(parameter::LEVEL) == level
            };
            (entries.iter().find(is_it)?, [None, Some(arm)])
        }
        Base::Value(other) => {
            let mates = entries.iter().filter(|mate| {
                mate.record.workload == entry.record.workload && mate.value(&cells.axis) == other
            });
            let mates: Vec<&Entry> = mates.collect();
            let told: Vec<&Case> = mates.iter().map(|mate| mate.case()).collect();
            let at = parameters::otherwise_equal(entry.case(), &told, &cells.axis)?;
            (mates[at], [None, None])
        }
    };
    let same = |entry: &Entry| (entry.record.nature, entry.record.boot.clone());
    (base.0.is_valid() && same(entry) == same(base.0)).then_some(base)
}

/// The two cells of a rule, where their ratio is worth a sentence.
fn compared(
    cells: &'static Cells,
    candidate: Candidate<'_>,
    entries: &[Entry],
    limits: &Limits,
) -> Option<Compared> {
    let (base, [arm, other_arm]) = base_of(cells, candidate, entries, limits)?;
    let (cell, one) = cell(candidate.entry, arm, cells.statistic)?;
    let (base, other) = self::cell(base, other_arm, cells.statistic)?;
    if one.unit != other.unit {
        return None;
    }
    let ratio = match &cells.base {
        // Arms take turns in one process.
        Base::Arm(_) => by_process(&other, &one)?,
        Base::Value(_) | Base::Clear => Ratio::of(&[other.processes], &[one.processes])?,
    };
    let lies = Lies::of(ratio.interval()?, cells.bounds)?;
    Some(Compared { ratio, statistic: cells.statistic, sides: [cell, base], lies })
}

/// The number of a record that is compared, of one arm where one is named, and its processes'.
fn cell(entry: &Entry, arm: Option<&str>, statistic: Statistic) -> Option<(Cell, Found)> {
    let measured = entry.measured()?;
    let record = &entry.record;
    let mut places = places(entry.main, &record.case, measured, false).into_iter();
    // Where the touches take no fault only the control has a series of that name.
    let is_it = |place: &Place| arm.map_or(place.arm != CONTROL, |arm| place.arm == arm);
    let place = places.find(is_it)?;
    let found = find(measured, &place, statistic).ok()?;
    if has_waited(measured, &place) {
        return None;
    }
    let middle = Quantity::exact(found.middle(), found.unit);
    let (workload, case) = (record.workload.clone(), record.case.clone());
    Some((Cell { workload, case, place, middle }, found))
}

/// Whether much of a time went by without the CPU: then it is the scheduler's, or the host's.
fn has_waited(measured: &Measured, place: &Place) -> bool {
    let middle = |place| Some(find(measured, place, Statistic::MEDIAN).ok()?.middle());
    let both = middle(place).zip(middle(&place.on_cpu()));
    both.is_some_and(|(elapsed, cpu)| elapsed > WAITED_MAX * cpu)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BEYOND: Bounds = Bounds::Beyond(0.2);

    proptest! {
        #[test]
        fn an_interval_that_reaches_over_a_bound_says_nothing(
            middle in 0.1_f64..10.0, width in 1.0_f64..4.0,
        ) {
            let [low, high] = [middle / width, middle * width];
            let expected = match () {
                () if high < 0.8 => Some(Lies::Below),
                () if low > 1.25 => Some(Lies::Above),
                () => None,
            };
            prop_assert_eq!(Lies::of([low, high], BEYOND), expected);
        }

        #[test]
        fn with_its_sides_swapped_an_interval_lies_on_the_other_one(
            middle in 0.1_f64..10.0, width in 1.0_f64..4.0,
        ) {
            let [low, high] = [middle / width, middle * width];
            let lies = [Lies::of([low, high], BEYOND), Lies::of([1.0 / high, 1.0 / low], BEYOND)];
            let one_each = [[None, None], [Some(Lies::Below), Some(Lies::Above)]];
            let mirrored = [Some(Lies::Above), Some(Lies::Below)];
            prop_assert!(one_each.contains(&lies) || lies == mirrored, "{:?}", lies);
        }
    }
}
