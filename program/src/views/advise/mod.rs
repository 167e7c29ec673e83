//! `pagelab advise`: which way of getting fresh memory is the fastest, and what it costs.
//!
//! The one idea: the header says what was asked and which strategies there are, the records say
//! how long each took for a sample; from the two follow a ranking, an answer and its price. Two
//! strategies are compared round by round, and of those whose verdict is a tie the one with
//! the least to set up is named. What a way needs that the machine does not have now
//! stands beside it, with the best way that needs nothing.
//!
//! Time is proportional to size here; what speaks against that is said with the answer.

mod form;

use std::collections::BTreeSet;

use pagelab_record::{
    Asked, Data, Series,
    asked::{Advise, Memory, Strategy},
    stats::Samples,
    units::{display_bytes, parse_bytes},
    verdict::Verdict,
};

use pagelab_fault::throughput::NAME as WORKLOAD;
use pagelab_record::vocabulary::{arm::OURS as ARM, parameter};
use pagelab_report::{
    Entry, Headline, Limits, Quantity, Run, Section, Time, Unit,
    cases::{is_parallel, touches_fault},
    clock_of, headline,
    limits::is_over,
    numbers::summed,
    ratio, visible,
};

/// A ratio nearer to 1 than this is a tie.
const TIE: f64 = 0.05;
/// Not told apart only if its best repetition is so near to that of the fastest: what makes rounds
/// of two strategies look alike is mostly a disturbance of the faster one.
const NEAR_AT_BEST: f64 = 1.2;
/// The series that stands for all that makes memory present.
use pagelab_record::vocabulary::series::MAP as PRESENT;

/// What is advised, where it was asked.
pub(crate) fn section(run: &Run) -> Option<Section> {
    Advice::of(run).as_ref().map(form::section)
}

/// The same as JSON, `pagelab.advice/1`.
pub fn json(run: &Run) -> Option<String> {
    let advice = Advice::of(run)?;
    Some(visible(&format!("{:#}\n", form::value(&advice))))
}

/// The fastest strategy, and the fastest without changing a setting where that is another.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let Some(advice) = Advice::of(run) else { return Vec::new() };
    let headline = |(said, choice): (&str, &Choice)| {
        let row = &advice.rows[choice.named];
        let others = advice.others(choice);
        let others = if others.is_empty() { others } else { format!("not told from {others}") };
        let seconds = advice.seconds(row)?;
        let others = Some(others).filter(|others| !others.is_empty());
        Some(headline(seconds, format!("{said}: {}", row.strategy.name), &[others]))
    };
    advice.answers().into_iter().filter_map(headline).collect()
}

/// A strategy and what came of it.
#[derive(Debug)]
struct Row<'a> {
    strategy: &'a Strategy,
    entry: Option<&'a Entry>,
    /// Nanoseconds for 4 KiB, where it was measured and its proof holds.
    per_page: Option<Quantity>,
    share: Option<Quantity>,
    /// The same where it is above what a limit allows, and no result.
    over: Option<Quantity>,
    /// Time over that of the fastest, round by round.
    ratio: Option<Quantity>,
    /// One value for each process and repetition: nanoseconds for the whole sample.
    series: Vec<Series>,
}

/// The answer over some of the rows, by place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    fastest: usize,
    /// Not told apart from the fastest, which is not among them.
    ties: Vec<usize>,
    named: usize,
}

/// Everything that the records say about the question.
#[derive(Debug)]
pub(crate) struct Advice<'a> {
    asked: &'a Advise,
    /// The fastest first, then what was not measured.
    rows: Vec<Row<'a>>,
    /// Over all that was measured.
    any: Option<Choice>,
    /// Over what needs nothing that the machine does not have now.
    as_set: Option<Choice>,
    run: &'a str,
}

impl<'a> Advice<'a> {
    /// The advice of a run, where one was asked for.
    pub(crate) fn of(run: &'a Run) -> Option<Self> {
        let Run { header, entries, limits, .. } = run;
        let Some(Asked::Advise(asked)) = &header.asked else { return None };
        let row = |strategy: &'a Strategy| Row::of(strategy, entries, limits);
        let mut rows: Vec<Row<'a>> = asked.strategies.iter().map(row).collect();
        let time = |row: &Row<'_>| row.per_page.map_or(f64::INFINITY, |time| time.value);
        rows.sort_by(|a, b| time(a).total_cmp(&time(b)));
        let any = choose(&rows, |_| true);
        let fastest = any.as_ref().map(|choice| rows[choice.fastest].series.clone());
        for row in &mut rows {
            let fastest = fastest.as_deref().unwrap_or_default();
            row.ratio = row.per_page.and_then(|_| paired(&row.series, fastest));
        }
        let as_set = choose(&rows, |row| row.strategy.lacks.is_empty());
        Some(Self { asked, rows, any, as_set, run: &header.run })
    }

    /// What is named, each with what it is.
    fn answers(&self) -> Vec<(&'static str, &Choice)> {
        let is_same = self.any.as_ref().map(|any| any.named)
            == self.as_set.as_ref().map(|as_set| as_set.named);
        let any = self
            .any
            .iter()
            .map(|any| (if is_same { "fastest, no setting changed" } else { "fastest" }, any));
        let as_set = self.as_set.iter().filter(|_| !is_same);
        let as_set = as_set.map(|as_set| ("fastest without changing a setting", as_set));
        any.chain(as_set).collect()
    }

    /// The others that a choice is not told apart from.
    fn others(&self, choice: &Choice) -> String {
        let all = std::iter::once(choice.fastest).chain(choice.ties.iter().copied());
        let others = all.filter(|place| *place != choice.named).map(|place| self.name(place));
        others.collect::<Vec<_>>().join(", ")
    }

    fn name(&self, place: usize) -> &str {
        &self.rows[place].strategy.name
    }

    /// Seconds for all of the memory, were each page as dear as one of the sample.
    fn seconds(&self, row: &Row<'_>) -> Option<Quantity> {
        let pages = self.asked.size.div_ceil(4096) as f64;
        row.per_page.map(|per_page| per_page.times(pages, Unit::Ns))
    }
}

impl<'a> Row<'a> {
    fn of(strategy: &'a Strategy, entries: &'a [Entry], limits: &Limits) -> Self {
        let threads = strategy.threads.to_string();
        let is_mine = |entry: &&Entry| {
            entry.record.workload == WORKLOAD
                && entry.value(parameter::PAGE) == strategy.page
                && entry.value(parameter::POPULATE) == strategy.populate
                && entry.value(parameter::THREADS) == threads
        };
        let entry = entries.iter().find(is_mine);
        let mut row = Self {
            strategy,
            entry,
            per_page: None,
            share: None,
            over: None,
            ratio: None,
            series: Vec::new(),
        };
        let Some(entry) = entry.filter(|entry| entry.is_valid()) else { return row };
        row.series = present(entry);
        let Some(first) = row.series.first() else { return row };
        let bytes = entry.value(parameter::SIZE);
        let Ok(bytes) = parse_bytes(bytes) else { return row };
        let pages = bytes as f64 / 4096.0;
        let total = Samples::of(&row.series, PRESENT, ARM, first.clock).estimate(0.5);
        let total = total.map(|total| Quantity::of(&total, Unit::Ns));
        row.per_page = total.map(|total| total.times(1.0 / pages, Unit::Ns));
        // The limit is one thread's: of several together it would be no limit.
        if !is_parallel(entry.case()) {
            let rate = row.per_page.and_then(|time| time.under(4096e9, Unit::BytesPerSecond));
            let share = limits.share_of_clear(rate);
            row.over = share.filter(|share| is_over(*share));
            row.share = share.filter(|_| row.over.is_none());
        }
        row
    }

    /// Rounds that it was measured in.
    fn rounds(&self) -> usize {
        self.series.iter().map(|series| series.process).collect::<BTreeSet<_>>().len()
    }

    /// Nanoseconds of its best repetition, for the whole sample.
    fn at_best(&self) -> u64 {
        let values = self.series.iter().filter_map(|series| match &series.data {
            Data::Values(values) => values.iter().min().copied(),
            _ => None,
        });
        values.min().unwrap_or(u64::MAX)
    }

    /// What it costs in memory, in words.
    fn price(&self) -> String {
        let Memory { rounding, pool, locked } = self.strategy.memory;
        let bytes = |bytes: u64| display_bytes(bytes as f64);
        let mut parts = Vec::new();
        if pool > 0 {
            parts.push(format!("{} set aside in a pool", bytes(pool)));
        }
        if locked > 0 {
            parts.push(format!("{} locked", bytes(locked)));
        }
        if rounding > 0 {
            parts.push(format!("{} more by rounding up", bytes(rounding)));
        }
        if parts.is_empty() { "its size".to_owned() } else { parts.join(", ") }
    }
}

/// Time until the sample was present, for each process and repetition: mapping, advising,
/// populating, and the touches where it is they that fault. Two names less than `fault-in`: what
/// is present already is not touched for its own sake.
fn present(entry: &Entry) -> Vec<Series> {
    let Some(measured) = entry.measured() else { return Vec::new() };
    let Some(clock) = clock_of(&measured.series, PRESENT, ARM, Time::Elapsed) else {
        return Vec::new();
    };
    let mut parts = vec!["advise", "populate"];
    if touches_fault(entry.case()) {
        parts.push("touch");
    }
    let sums = summed(&measured.series, &parts, PRESENT, ARM, clock);
    sums.into_iter().map(|series| Series { ops: 1, ..series }).collect()
}

/// One strategy over another, round by round: process `n` of each was taken in round `n`.
fn paired(one: &[Series], other: &[Series]) -> Option<Quantity> {
    let clock = one.first()?.clock;
    let named = |series: &[Series], arm: &str| -> Vec<Series> {
        series.iter().map(|series| Series { arm: arm.to_owned(), ..series.clone() }).collect()
    };
    if one == other {
        return Some(Quantity::exact(1.0, Unit::Ratio));
    }
    let both = [named(one, "one"), named(other, "other")].concat();
    ratio::of_arms(&both, PRESENT, clock, ["one", "other"])
}

/// The answer over the rows that are allowed. What dropped out after a few rounds of many is not
/// named: one good round says less than the median of all.
fn choose(rows: &[Row<'_>], allowed: impl Fn(&Row<'_>) -> bool) -> Option<Choice> {
    let is_there = |row: &Row<'_>| row.per_page.is_some() && allowed(row);
    let most = rows.iter().filter(|row| is_there(row)).map(Row::rounds).max()?;
    let is_in = |row: &Row<'_>| is_there(row) && 2 * row.rounds() >= most;
    let fastest = rows.iter().position(is_in)?;
    let is_tie = |row: &Row<'_>| {
        let Some(ratio) = paired(&row.series, &rows[fastest].series) else { return false };
        let at_best = row.at_best() as f64 / rows[fastest].at_best() as f64;
        let open = ratio.value <= 1.0 + TIE && at_best <= NEAR_AT_BEST;
        match Verdict::of([ratio.low, ratio.high], TIE) {
            Verdict::Same => true,
            Verdict::Inconclusive => open,
            _ => false,
        }
    };
    let ties: Vec<usize> = (fastest + 1..rows.len())
        .filter(|place| is_in(&rows[*place]) && is_tie(&rows[*place]))
        .collect();
    let all = std::iter::once(fastest).chain(ties.iter().copied());
    let named = all.min_by_key(|place| rows[*place].strategy.effort)?;
    Some(Choice { fastest, ties, named })
}
