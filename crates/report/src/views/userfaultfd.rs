//! `fault/userfaultfd`: what a fault costs that user space resolves.
//!
//! The one idea: a row is a resolver, and what it costs is set against a plain write fault of the
//! same run, which the kernel resolves alone. Beside the fault stands what a page costs when one
//! fault resolves many: the samples of all touches over all pages.

use std::collections::BTreeMap;

use crate::{
    cases::{all_rows, columns},
    document::{Block, Cell, Column, Headline, Section, Table},
    entry::Entry,
    headline::headline,
    numbers::elapsed,
    parameters,
    quantity::{Quantity, Unit},
    run::Run,
    views::latency,
};

/// The series of all samples added up, for each page.
use pagelab_record::vocabulary::series::BATCH;
/// The workload that this file reads.
pub(crate) use pagelab_record::vocabulary::workload::USERFAULTFD as WORKLOAD;
/// What a resolver is made of.
const RESOLVER: [&str; 3] = ["handler", "op", "page"];

/// The table of resolvers, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.rows(WORKLOAD);
    if mine.is_empty() {
        return None;
    }
    let mut shown = columns(&mine, &[]);
    shown.retain(|name| !RESOLVER.contains(&name.as_str()));
    let named = [RESOLVER.map(str::to_owned).to_vec(), shown].concat();
    let rows = mine.iter().map(|entry| row(entry, &named, &run.entries)).collect();
    let mut columns = Column::each(&named);
    columns.extend([
        Column::number("n").rank(6),
        Column::number("min").rank(4),
        Column::number("p50"),
        Column::number("× write 4k"),
        Column::number("p99"),
        Column::number("p99.9").rank(3),
        Column::number("max"),
        Column::number("per page").rank(1),
        Column::number("page × write 4k").rank(2),
        Column::number("control").rank(7),
        Column::number("proc×rep").rank(8),
        Column::words("witness"),
    ]);
    let mut section = Section::new("userfaultfd", "Faults that user space resolves");
    section.blocks.push(Block::Table(Table::of(columns, rows)));
    section.blocks.push(Block::Text(format!(
        "{}A sample lasts from the touch to its end: exception, message or signal, request, \
         way back. The median empty timer pair is subtracted. × write 4k: the median over that of \
         fault/latency kind=write page=4k with the same fifo in this run, of other processes. Per \
         page: the samples of all touches over all pages, which is less than a fault where one \
         fault resolves a batch. Control: the median of the same touch without a fault.",
        all_rows(&mine, &named)
    )));
    section.blocks.extend(fastest(&mine).map(Block::Text));
    section.blocks.extend(mine.iter().flat_map(|entry| entry.notes()));
    Some(section)
}

/// The quickest resolver.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let of = |entry: &Entry| entry.numbers.get(elapsed(latency::ARM, latency::FAULT), "p50");
    let known = run.rows(WORKLOAD).into_iter().filter_map(|entry| Some((entry, of(entry)?)));
    let quickest = known.min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    let told = |(entry, median): (&Entry, Quantity)| {
        let resolver = entry.short.trim_start_matches(WORKLOAD).trim();
        let write = plain_write(entry, &run.entries).map(|q| format!("write 4k {}", q.display()));
        headline(
            median,
            format!("median of one fault resolved by user space, {resolver}"),
            &[write],
        )
    };
    quickest.map(told).into_iter().collect()
}

fn row(entry: &Entry, named: &[String], entries: &[Entry]) -> Vec<Cell> {
    let at = elapsed(latency::ARM, latency::FAULT);
    let of = |statistic| entry.numbers.get(at, statistic);
    let plain = |statistic| Cell::of(of(statistic));
    let page = entry.numbers.get(elapsed(latency::ARM, BATCH), "p50");
    let write = plain_write(entry, entries);
    let over = |quantity: Option<Quantity>| {
        let ratio = quantity.zip(write).and_then(|(q, write)| q.over(write, Unit::Ratio));
        Cell::maybe(ratio.map(|ratio| format!("{:.2}", ratio.value)))
    };
    let mut row = entry.head(named);
    row.extend([plain("n").quiet(), plain("min"), Cell::spread(of("p50")).strong()]);
    row.push(over(of("p50")));
    row.extend(["p99", "p99.9", "max"].map(plain));
    row.push(Cell::of(page));
    row.push(over(page));
    let control = entry.numbers.get(elapsed(latency::CONTROL, latency::FAULT), "p50");
    row.push(Cell::of(control));
    row.push(entry.counts(at));
    row.push(entry.proof());
    row
}

/// The median write fault on a base page that the kernel resolves, of the same run, scheduled
/// alike; of the same size where there is one.
fn plain_write(entry: &Entry, entries: &[Entry]) -> Option<Quantity> {
    let alike = |other: &&Entry| {
        other.record.workload == latency::WORKLOAD
            && (other.parameter("kind"), other.parameter("page")) == ("write", "4k")
            && other.parameter("fifo") == entry.parameter("fifo")
            && matches!(other.parameter("order"), "" | "ascending")
    };
    let mut all: Vec<&Entry> = entries.iter().filter(alike).collect();
    all.sort_by_key(|other| other.parameter("size") != entry.parameter("size"));
    let median = |other: &&Entry| other.numbers.get(elapsed(latency::ARM, latency::FAULT), "p50");
    all.iter().find_map(median)
}

/// The resolvers that are soonest and last done, of the largest group that is otherwise alike.
fn fastest(entries: &[&Entry]) -> Option<String> {
    // Alike in everything but the resolver.
    let mut groups: BTreeMap<_, Vec<(&Entry, Quantity)>> = BTreeMap::new();
    for entry in entries {
        let one = entry.parameter("batch") == "1" && entry.parameter("handler") != "none";
        let at = elapsed(latency::ARM, latency::FAULT);
        let median = entry.numbers.get(at, "p50");
        if let Some(median) = median.filter(|_| one && entry.parameter("page") == "4k") {
            let rest = parameters::without(entry.case(), &["handler", "op"]);
            groups.entry(rest).or_default().push((entry, median));
        }
    }
    let all = groups.into_values().max_by_key(Vec::len)?;
    let by_value =
        |a: &&(&Entry, Quantity), b: &&(&Entry, Quantity)| a.1.value.total_cmp(&b.1.value);
    let (low, high) = (all.iter().min_by(by_value)?, all.iter().max_by(by_value)?);
    let name = |entry: &Entry| {
        format!("handler={} op={}", entry.parameter("handler"), entry.parameter("op"))
    };
    (all.len() > 1).then(|| {
        format!(
            "Of 4k pages, one at a fault, {} is resolved soonest ({}) and {} last ({}).",
            name(low.0),
            low.1.display(),
            name(high.0),
            high.1.display()
        )
    })
}
