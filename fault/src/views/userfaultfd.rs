//! `fault/userfaultfd`: what a fault costs that user space resolves.
//!
//! The one idea: a row is a resolver, and what it costs is set against a plain write fault of the
//! same run, which the kernel resolves alone. Beside the fault stands what a page costs when one
//! fault resolves many: the samples of all touches over all pages.

use std::collections::BTreeMap;

use crate::views::latency;
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Cell, Entry, Grid, Headline, Quantity, Run, Section, Table, Unit, all_rows, columns, elapsed,
    headline, parameters,
};

/// The workload that this file reads.
pub(crate) use crate::userfaultfd::NAME as WORKLOAD;
/// The series of all samples added up, for each page.
use pagelab_record::vocabulary::series::BATCH;
/// What a resolver is made of.
const RESOLVER: [&str; 3] = ["handler", "op", "page"];

/// The table of resolvers, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.any(WORKLOAD)?;
    let mut shown = columns(&mine, &[]);
    shown.retain(|name| !RESOLVER.contains(&name.as_str()));
    let named = [RESOLVER.map(str::to_owned).to_vec(), shown].concat();
    let mut section = Section::new("userfaultfd", "Faults that user space resolves");
    section.add(table(&mine, &named, &run.entries));
    section.add(format!(
        "{}A sample lasts from the touch to its end: exception, message or signal, request, \
         way back. The median empty timer pair is subtracted. × write 4k: the median over that of \
         fault/latency kind=write page=4k with the same fifo in this run, of other processes. Per \
         page: the samples of all touches over all pages, which is less than a fault where one \
         fault resolves a batch. Control: the median of the same touch without a fault.",
        all_rows(&mine, &named)
    ));
    section.all(fastest(&mine));
    section.all(mine.iter().flat_map(|entry| entry.notes()));
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

fn table(mine: &[&Entry], named: &[String], entries: &[Entry]) -> Table {
    let at = elapsed(latency::ARM, latency::FAULT);
    let of = |entry: &Entry, statistic| entry.numbers.get(at, statistic);
    let page = |entry: &Entry| entry.numbers.get(elapsed(latency::ARM, BATCH), "p50");
    let control = elapsed(latency::CONTROL, latency::FAULT);
    let over = |entry: &Entry, quantity: Option<Quantity>| {
        let ratio = quantity?.over(plain_write(entry, entries)?, Unit::Ratio);
        ratio.map(|ratio| format!("{:.2}", ratio.value))
    };
    Grid::<&Entry>::new()
        .case(named, |entry| entry)
        .number("n", 6, |entry| Cell::of(of(entry, "n")).quiet())
        .number("min", 4, |entry| of(entry, "min"))
        .number("p50", 0, |entry| Cell::spread(of(entry, "p50")).strong())
        .number("× write 4k", 0, |entry| over(entry, of(entry, "p50")))
        .number("p99", 0, |entry| of(entry, "p99"))
        .number("p99.9", 3, |entry| of(entry, "p99.9"))
        .number("max", 0, |entry| of(entry, "max"))
        .number("per page", 1, |entry| page(entry))
        .number("page × write 4k", 2, |entry| over(entry, page(entry)))
        .number("control", 7, |entry| entry.numbers.get(control, "p50"))
        .number("proc×rep", 8, |entry| entry.counts(at))
        .words("witness", 0, |entry| entry.proof())
        .told(mine.iter().copied())
}

/// The median write fault on a base page that the kernel resolves, of the same run, scheduled
/// alike; of the same size where there is one.
fn plain_write(entry: &Entry, entries: &[Entry]) -> Option<Quantity> {
    let alike = |other: &&Entry| {
        other.record.workload == latency::WORKLOAD
            && (other.value(parameter::KIND), other.value(parameter::PAGE)) == ("write", "4k")
            && other.value(parameter::FIFO) == entry.value(parameter::FIFO)
            && matches!(other.value(parameter::ORDER), "" | "ascending")
    };
    let mut all: Vec<&Entry> = entries.iter().filter(alike).collect();
    all.sort_by_key(|other| other.value(parameter::SIZE) != entry.value(parameter::SIZE));
    let median = |other: &&Entry| other.numbers.get(elapsed(latency::ARM, latency::FAULT), "p50");
    all.iter().find_map(median)
}

/// The resolvers that are soonest and last done, of the largest group that is otherwise alike.
fn fastest(entries: &[&Entry]) -> Option<String> {
    // Alike in everything but the resolver.
    let mut groups: BTreeMap<_, Vec<(&Entry, Quantity)>> = BTreeMap::new();
    for entry in entries {
        let one = entry.value(parameter::BATCH) == "1" && entry.value(parameter::HANDLER) != "none";
        let at = elapsed(latency::ARM, latency::FAULT);
        let median = entry.numbers.get(at, "p50");
        if let Some(median) = median.filter(|_| one && entry.value(parameter::PAGE) == "4k") {
            let rest = parameters::without(entry.case(), &["handler", "op"]);
            groups.entry(rest).or_default().push((entry, median));
        }
    }
    let all = groups.into_values().max_by_key(Vec::len)?;
    let by_value =
        |a: &&(&Entry, Quantity), b: &&(&Entry, Quantity)| a.1.value.total_cmp(&b.1.value);
    let (low, high) = (all.iter().min_by(by_value)?, all.iter().max_by(by_value)?);
    let name = |entry: &Entry| {
        format!("handler={} op={}", entry.value(parameter::HANDLER), entry.value(parameter::OP))
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
