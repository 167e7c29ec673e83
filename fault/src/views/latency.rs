//! `fault/latency`: what one fault costs, as a distribution.
//!
//! The one idea: the median with its interval is the headline, the tail stands beside it, and the
//! same loop over present pages (the control) stands beside that; the mean is shown and never
//! leads. Only a fault that must clear its page is set against the clear limit: a read of fresh
//! memory maps the shared zero page and clears nothing.

use pagelab_record::{Case, Measured, vocabulary::counter};

use crate::views::distributions;
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    At, Cell, Entry, Grid, Headline, Limits, Numbers, Quantity, Run, Section, Table, Unit,
    all_rows, base_cases, columns, elapsed, fault, headline,
    limits::{OF_CLEAR, over_limit, share_cell},
    numbers::total,
    parameters,
};

pub(crate) use crate::latency::NAME as WORKLOAD;
pub(crate) use pagelab_record::vocabulary::{
    arm::AS_PUBLISHED, arm::CONTROL, arm::OURS as ARM, series::CALL, series::FAULT,
    series::FAULT_COLD as COLD, series::FAULT_FALLBACK as FALLBACK,
    series::FAULT_PAGE_TABLE as PAGE_TABLE, series::FAULT_RESPONSE as RESPONSE, series::TOUCH,
};
/// What a row is about where there are no faults: touches of pages that a call made present, and
/// calls that are timed themselves.
const INSTEAD: [(&str, &str); 2] = [(TOUCH, "(no fault)"), (CALL, "(call)")];
/// The counter of pages that one fault maps.
const AROUND: &str = counter::PAGES_MAPPED_BY_A_FAULT;

/// Adds what a latency case implies beside the limits: the rate at which a fault provides memory.
pub(crate) fn derive(case: &Case, _: &Measured, limits: &Limits, numbers: &mut Numbers) {
    let at = elapsed(ARM, FAULT);
    let page = case.get(parameter::PAGE).and_then(parameters::page_bytes);
    if let (Some("write"), Some(page)) = (case.get(parameter::KIND), page) {
        let median = numbers.get(at, "p50");
        let bandwidth = median.and_then(|q| q.under(page as f64 * 1e9, Unit::BytesPerSecond));
        // What the series implies from its own bytes is the same number: it is not said twice.
        if numbers.get(at, "bandwidth").is_none() {
            numbers.add(at, "bandwidth", bandwidth);
        }
        limits.add_share_of_clear(at, bandwidth, numbers);
    } else {
        numbers.0.retain(|number| number.statistic != "bandwidth");
    }
}

/// The table of latency cases, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.any(WORKLOAD)?;
    let mut section = Section::new("latency", "Fault latency");
    section.all(distributions::blocks(&run.entries));
    let shown = columns(&mine, &["kind", "page"]);
    section.add(table(&mine, &shown));
    section.add(format!(
        "{}p50: of faults that were timed one by one; fault/throughput times them in bulk, with \
         the tail and page tables. The median empty timer pair is subtracted. + table: faults that \
         also allocated a page of page table. + host: faults whose memory the host had to find \
         first. Both are kept apart. Response: from when a touch was due (--rate). Control: the \
         median of the same loop over pages that are present. Of clear: the rate of the median \
         fault over the clear limit, for faults that clear.",
        all_rows(&mine, &shown)
    ));
    section.all(around(&mine));
    section.all(disturbances(&mine));
    section.all(stalls(&mine));
    section.all(over_limit(&mine));
    section.all(mine.iter().flat_map(|entry| entry.notes()));
    Some(section)
}

/// One fault of each kind that was asked for.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let found = base_cases(&run.entries, WORKLOAD, (elapsed(ARM, FAULT), "p50"));
    let told = |(entry, median): (&Entry, Quantity)| {
        let control = entry.numbers.get(elapsed(CONTROL, FAULT), "p50");
        let control = control.map(|q| format!("present page {}", q.display()));
        let label = format!("median of one {}, each timed alone", fault(entry));
        headline(median, label, &[control])
    };
    found.into_iter().map(told).collect()
}

fn table(entries: &[&Entry], shown: &[String]) -> Table {
    let of = |row: &Row<'_>, statistic| row.entry.numbers.get(row.at, statistic);
    let control = |row: &Row<'_>| row.entry.numbers.get(elapsed(CONTROL, FAULT), "p50");
    shown
        .iter()
        .fold(Grid::<Row<'_>>::new(), |grid, name| {
            let suffix = move |row: &Row<'_>| if name == "kind" { row.suffix } else { "" };
            grid.words(name, 0, move |row| {
                let mut cell = row.entry.parameter_cell(name);
                cell.text += format!(" {}", suffix(row)).trim_end();
                cell
            })
        })
        .number("n", 5, move |row| Cell::of(of(row, "n")).quiet())
        .number("min", 4, move |row| of(row, "min"))
        .number("p50", 0, move |row| Cell::spread(of(row, "p50")).strong())
        .number("p90", 7, move |row| of(row, "p90"))
        .number("p99", 0, move |row| of(row, "p99"))
        .number("p99.9", 0, move |row| of(row, "p99.9"))
        .number("max", 0, move |row| of(row, "max"))
        .number("mean", 6, move |row| Cell::of(of(row, "mean")).quiet())
        .number("control", 1, move |row| control(row).filter(|_| row.first))
        .number("rate", 2, move |row| of(row, "bandwidth").filter(|_| row.first))
        .number("of clear", 0, |row| share_cell(&row.entry.numbers, row.at, OF_CLEAR))
        .number("proc×rep", 8, |row| row.entry.counts(row.at))
        .words("witness", 0, |row| row.entry.proof().only_if(row.first))
        .told(entries.iter().flat_map(|entry| rows(entry)))
}

/// One series of a case; the first one also says what belongs to the case as a whole.
struct Row<'a> {
    entry: &'a Entry,
    at: At<'static>,
    suffix: &'static str,
    first: bool,
}

/// One row for the case, and one for each further series or arm that it has.
fn rows(entry: &Entry) -> Vec<Row<'_>> {
    // Where a call took the faults the row is that of the touches, and is not called a fault.
    let instead = || INSTEAD.into_iter().find(|(series, _)| has(entry, ARM, series));
    let faults = has(entry, ARM, FAULT).then_some((FAULT, ""));
    let (main, word) = faults.or_else(instead).unwrap_or((FAULT, ""));
    let row = |at, suffix, first| Row { entry, at, suffix, first };
    let mut rows = vec![row(elapsed(ARM, main), word, true)];
    for (arm, series, suffix) in [
        (ARM, PAGE_TABLE, "+ table"),
        (ARM, COLD, "+ host"),
        (ARM, FALLBACK, "fell back"),
        (ARM, RESPONSE, "response"),
        (ARM, CALL, "call, per page"),
        (AS_PUBLISHED, FAULT, "as published"),
    ] {
        if (arm, series) != (ARM, main) && has(entry, arm, series) {
            rows.push(row(elapsed(arm, series), suffix, false));
        }
    }
    rows
}

fn has(entry: &Entry, arm: &str, series: &str) -> bool {
    entry.numbers.get(elapsed(arm, series), "p50").is_some()
}

/// How many pages one fault mapped, where it was more than the one that was touched.
fn around(entries: &[&Entry]) -> Option<String> {
    let pages = |entry: &&Entry| {
        (entry.value(parameter::KIND).to_owned(), entry.counter(AROUND).unwrap_or(0))
    };
    let mut told: Vec<_> = entries.iter().filter(|e| e.is_valid()).map(pages).collect();
    told.retain(|(_, pages)| *pages > 1);
    told.dedup();
    let told: Vec<String> =
        told.into_iter().map(|(kind, pages)| format!("{kind} {pages}")).collect();
    (!told.is_empty()).then(|| format!("Pages mapped by one fault: {}.", told.join(", ")))
}

/// What was set aside or cut off while measuring, as a sentence for each reason.
fn disturbances<'a>(entries: &'a [&Entry]) -> impl Iterator<Item = String> + 'a {
    const REASONS: [(&str, &str); 6] = [
        ("migrated_samples", "Samples dropped because they changed CPU"),
        ("saturated_samples", "Samples longer than 60 s, counted as 60 s"),
        (
            "repetitions_discarded_reporting",
            "Repetitions dropped because the host took memory back meanwhile",
        ),
        (
            "repetitions_discarded_reclaim",
            "Repetitions dropped because their file was reclaimed meanwhile",
        ),
        (
            "repetitions_discarded_migration",
            "Repetitions dropped because the kernel moved pages meanwhile",
        ),
        ("repetitions_discarded_unproven", "Repetitions dropped because a claim did not hold"),
    ];
    REASONS.iter().filter_map(|(counter, reason)| {
        let disturbed = entries.iter().filter(|e| e.is_valid() && e.counter(counter) > Some(0));
        let told: Vec<String> = disturbed
            .map(|entry| {
                let (kind, page) = (entry.value(parameter::KIND), entry.value(parameter::PAGE));
                format!("{kind} {page} {}", entry.counter(counter).unwrap_or(0))
            })
            .collect();
        (!told.is_empty()).then(|| format!("{reason}: {}.", told.join(", ")))
    })
}

/// Where the stalls of all valid cases could have come from, as a sentence.
fn stalls(entries: &[&Entry]) -> Option<String> {
    let valid = || entries.iter().filter(|entry| entry.is_valid());
    let of = |counter: &str| total(valid().filter_map(|entry| entry.counter(counter)));
    let (stalls, loops) = (of(counter::STALLS), of(counter::LOOP_US));
    if stalls == 0 {
        return None;
    }
    let share =
        |counter| Quantity::exact(of(counter) as f64 / loops.max(1) as f64, Unit::Share).display();
    Some(format!(
        "Stalls (samples above 20 medians and 20 µs, the control's included): {stalls}, {} of the \
         time of all loops. By the kernel's counts at most {} were preemptions, {} steal and {} \
         interrupts; unexplained: {}. No count says which sample it hit, so the longest are \
         charged first. Steal took {} of the time.",
        share(counter::STALLS_US),
        of("stalls_preempted"),
        of("stalls_stolen"),
        of("stalls_interrupted"),
        of("stalls_unexplained"),
        Quantity::exact(of("steal_ms") as f64 * 1e3 / loops.max(1) as f64, Unit::Share).display(),
    ))
}
