//! `fault/stages`: where the time of one fault goes.
//!
//! The one idea: the stages are those of a fault that was *traced*, and being traced costs as much
//! as the fault. So both stand in the table: what was measured, which adds up to the traced
//! end-to-end, and an estimate of the same stage without events, which adds up to the untraced one.
//! The estimate spreads the measured cost of the events evenly: half of an event's cost before its
//! stamp, half after it.

use pagelab_record::{Case, Measured, units::place, vocabulary::counter};

use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    At, Cell, Column, Entry, Grid, Headline, Numbers, Quantity, Run, Section, Tone, Unit, all_rows,
    columns, elapsed, headline,
};

/// The workload that this file reads.
pub(crate) use crate::stages::NAME as WORKLOAD;
use pagelab_record::vocabulary::{
    arm::CONTROL, arm::ONE_EVENT as ONE, arm::TRACED, arm::UNTRACED, series::END_TO_END as WHOLE,
};
/// The stages, in the order in which a fault passes them, and where each ends.
const STAGES: [(&str, &str); 5] = [
    ("entry", "exceptions:page_fault_user"),
    ("allocation", "kmem:mm_page_alloc"),
    ("mapping", "kmem:rss_stat"),
    ("completion", "minor-faults"),
    ("return", "the next instruction"),
];
/// Characters of a bar that is a whole fault.
const BAR: usize = 30;

/// Adds the share of each stage, what it would take without events, and what an event costs.
pub(crate) fn derive(_: &Case, measured: &Measured, numbers: &mut Numbers) {
    let median = |arm, series| numbers.get(elapsed(arm, series), "p50");
    let stages: Vec<(&str, Quantity)> =
        STAGES.iter().filter_map(|(stage, _)| Some((*stage, median(TRACED, stage)?))).collect();
    let sum: f64 = stages.iter().map(|(_, median)| median.value).sum();
    let (Some(traced), Some(untraced)) = (median(TRACED, WHOLE), median(UNTRACED, WHOLE)) else {
        return;
    };
    let one = median(ONE, WHOLE);
    let events = measured.counter(counter::EVENTS_PER_FAULT).unwrap_or(1).max(1) as f64;
    let cost = (traced.value - untraced.value) / events;
    let exact = |value: f64, unit| Some(Quantity::exact(value, unit));
    let last = stages.len().saturating_sub(1);
    for (index, (stage, median)) in stages.iter().enumerate() {
        // Events stand between stages: the first and the last stage have one at one end only.
        let events_here = if index == 0 || index == last { 0.5 } else { 1.0 };
        let estimate = (median.value - events_here * cost).max(0.0);
        let at = elapsed(TRACED, stage);
        numbers.add(at, "share", exact(median.value / sum, Unit::Share));
        numbers.add(at, "estimate_untraced", exact(estimate, Unit::Ns));
    }
    let whole = elapsed(TRACED, WHOLE);
    numbers.add(whole, "sum_of_stages", exact(sum, Unit::Ns));
    numbers.add(whole, "sum_over_whole", exact(sum / traced.value, Unit::Share));
    numbers.add(whole, "cost_of_an_event", exact(cost.max(0.0), Unit::Ns));
    numbers.add(whole, "ratio_to_untraced", traced.over(untraced, Unit::Ratio));
    let first = one.map(|one| Quantity::exact((one.value - untraced.value).max(0.0), Unit::Ns));
    numbers.add(elapsed(ONE, WHOLE), "cost_of_an_event", first);
}

/// The stages of each kind, where any were measured.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.any(WORKLOAD)?;
    let shown = columns(&mine, &["kind"]);
    let of = |row: &Row<'_>, statistic| row.entry.numbers.get(row.at, statistic);
    let is_stage = |row: &Row<'_>| row.stage.is_some();
    let table = Grid::<Row<'_>>::new()
        .case(&shown, |row| row.entry)
        .words("stage", 0, |row| row.name)
        .with(Column::words("ends at").explains(), |row| {
            row.stage.as_ref().map_or_else(Cell::default, |(end, _)| Cell::from(*end).quiet())
        })
        .number("p50", 0, move |row| {
            let tone = if row.at.arm == UNTRACED { Tone::Strong } else { Tone::Plain };
            Cell { tone, ..Cell::spread(of(row, "p50")) }
        })
        .number("share", 0, move |row| Cell::of(of(row, "share")).only_if(is_stage(row)))
        .words("of the traced fault", 3, |row| {
            row.stage.as_ref().map_or_else(Cell::default, |(_, bar)| bar.as_str().into())
        })
        .number("p99", 4, move |row| of(row, "p99"))
        .number("without events, about", 2, move |row| {
            Cell::of(of(row, "estimate_untraced")).only_if(is_stage(row))
        })
        .number("proc×rep", 5, move |row| row.entry.counts(row.at).only_if(!is_stage(row)))
        .words("witness", 0, move |row| {
            row.entry.proof().only_if(row.at.arm == TRACED && !is_stage(row))
        })
        .told(mine.iter().flat_map(|entry| rows(entry)));
    let mut section = Section::new("stages", "Stages of a fault").with(table);
    section.add(format!(
        "{}Stages are those of a fault whose events are open; each contains what its \
         events cost. Without events: what is left when the measured cost of the events is taken \
         off evenly, half before and half after each stamp; an estimate, without an interval. \
         Every time contains one reading of the clock.",
        all_rows(&mine, &shown)
    ));
    section.all(mine.iter().filter_map(|entry| costs(entry)));
    section.all(mine.iter().flat_map(|entry| entry.notes()));
    Some(section)
}

/// The stage that takes most of each kind's fault.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let share = |entry: &Entry, stage| entry.numbers.get(elapsed(TRACED, stage), "share");
    let longest = |entry: &Entry| {
        let known = STAGES.iter().filter_map(|(stage, _)| Some((*stage, share(entry, stage)?)));
        let (stage, most) = known.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))?;
        let of = |arm| entry.numbers.get(elapsed(arm, WHOLE), "p50").map(Quantity::display);
        let whole = of(TRACED).map(|whole| format!("{whole} traced"));
        let bare = of(UNTRACED).map(|bare| format!("{bare} untraced"));
        let label =
            format!("of a {} fault, while traced, is {stage}", entry.value(parameter::KIND));
        Some(headline(most, label, &[whole, bare]))
    };
    run.rows(WORKLOAD).into_iter().filter_map(longest).take(3).collect()
}

/// What being told cost, as a sentence.
fn costs(entry: &Entry) -> Option<String> {
    let of = |arm, statistic| entry.numbers.get(elapsed(arm, WHOLE), statistic);
    let (sum, share) = (of(TRACED, "sum_of_stages")?, of(TRACED, "sum_over_whole")?);
    let cost = of(TRACED, "cost_of_an_event")?;
    let one = of(ONE, "cost_of_an_event")
        .map_or_else(String::new, |one| format!(", the first one alone {}", one.display()));
    Some(format!(
        "{}: the stages add up to {}, {} of the traced end-to-end. An event costs {} on \
         average{one}.",
        entry.value(parameter::KIND),
        sum.display(),
        share.display(),
        cost.display(),
    ))
}

/// A stage, with where it ends and its part as a bar; or a fault from end to end.
struct Row<'e> {
    entry: &'e Entry,
    at: At<'static>,
    name: &'static str,
    stage: Option<(&'static str, String)>,
}

fn rows(entry: &Entry) -> Vec<Row<'_>> {
    let of = |at, statistic| entry.numbers.get(at, statistic);
    let mut rows = Vec::new();
    let mut before = 0.0;
    for (name, end) in STAGES {
        let at = elapsed(TRACED, name);
        if of(at, "p50").is_some() {
            let part = of(at, "share").map_or(0.0, |share| share.value);
            rows.push(Row { entry, at, name, stage: Some((end, bar(before, part))) });
            before += part;
        }
    }
    let wholes = [
        ("end-to-end, traced", TRACED),
        ("end-to-end, one event", ONE),
        ("end-to-end, untraced", UNTRACED),
        ("present page (control)", CONTROL),
    ];
    let whole = |(name, arm)| Row { entry, at: elapsed(arm, WHOLE), name, stage: None };
    rows.extend(wholes.map(whole));
    rows
}

/// A part of a whole fault that begins after `before`, as a bar in its place.
fn bar(before: f64, part: f64) -> String {
    let cell = |share: f64| place((share.clamp(0.0, 1.0) * BAR as f64).round());
    let (from, to) = (cell(before), cell(before + part));
    let is_mine = |index: usize| from <= index && index < to.max(from + 1);
    (0..BAR).map(|index| if is_mine(index) { '█' } else { '·' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_of_all_stages_fill_one_line_without_a_gap() {
        let parts = [0.1, 0.35, 0.25, 0.2, 0.1];
        let mut before = 0.0;
        let mut filled = [0; BAR];
        for part in parts {
            for (count, mark) in filled.iter_mut().zip(bar(before, part).chars()) {
                *count += u32::from(mark == '█');
            }
            before += part;
        }
        assert_eq!(filled, [1; BAR]);
        assert_eq!(bar(0.0, 0.0).chars().filter(|mark| *mark == '█').count(), 1);
    }
}
