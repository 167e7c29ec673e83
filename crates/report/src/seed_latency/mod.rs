//! The page-fault latency note, repeated by its own method and by ours, and its claims answered.
//!
//! The one idea: the note asked what a zero-initialised minor fault costs and timed a read, which
//! initialises nothing. Its method is an arm of the same case, so its bias can be read off beside
//! the corrected number, and each of its remarks becomes a row with a measurement or a blank.

mod answers;

use std::collections::BTreeMap;

use crate::{
    document::{Block, Cell, Column, Note, Section, Table, Tone},
    entry::Entry,
    latency::{ARM, AS_PUBLISHED, FAULT, PAGE_TABLE, WORKLOAD},
    limits::Limits,
    numbers::{At, elapsed},
    parameters,
    quantity::{Quantity, Unit},
};

/// The suite whose report this is.
pub(crate) const SUITE: &str = "page-fault-latency";
/// The arm of published records.
const PUBLISHED: &str = "published";
/// The series of what the note printed: ticks.
const FAULT_TICKS: &str = "fault-ticks";
/// What the note expected of a zero-filled minor fault, nanoseconds.
const HYPOTHESIS_NS: (f64, f64) = (1_000.0, 10_000.0);
/// The four statistics of the note.
const STATISTICS: [&str; 4] = ["min", "p50", "p95", "max"];

/// The note's table with ours beside, its remarks, what it measured, and the verdict.
pub(crate) fn section(entries: &[Entry], published: &[Entry], limits: &Limits) -> Option<Section> {
    let mine: Vec<&Entry> =
        entries.iter().filter(|e| e.record.workload == WORKLOAD && e.has_row()).collect();
    if mine.is_empty() {
        return None;
    }
    let mut section = Section::new("page-fault-latency", "Page-fault latency note")
        .with(Block::Table(comparison(&mine, published, limits)))
        .with(Block::Text(explanation(&mine, limits)));
    section.blocks.extend(verdict(&mine).map(Block::Note));
    let said = "The note's remarks, as cases that differ in one parameter:";
    let mut section = section.with(Block::Text(said.to_owned())).with(Block::Table(remarks(&mine)));
    section.blocks.extend(answers::blocks(entries));
    Some(section)
}

/// The case that answers for a kind: base pages, and of several the first.
fn base<'a>(entries: &[&'a Entry], kind: &str, at: At<'_>) -> Option<(&'a Entry, Quantity)> {
    let mut mine =
        entries.iter().filter(|e| e.parameter("kind") == kind && e.parameter("page") == "4k");
    mine.find_map(|entry| Some((*entry, entry.numbers.get(at, "p50")?)))
}

fn comparison(entries: &[&Entry], published: &[Entry], limits: &Limits) -> Table {
    let mut columns = vec![Column::words("method"), Column::number("n").rank(2)];
    for name in ["min", "median", "p95", "max"] {
        columns.push(Column::number(name));
        columns.push(Column::number("ticks").rank(1));
    }
    let mut rows = Vec::new();
    for (method, kind, at) in [
        ("read, as published", "read", elapsed(AS_PUBLISHED, FAULT)),
        ("read", "read", elapsed(ARM, FAULT)),
        ("write", "write", elapsed(ARM, FAULT)),
        ("write + page table", "write", elapsed(ARM, PAGE_TABLE)),
    ] {
        if let Some((entry, _)) = base(entries, kind, at) {
            let number = |statistic| entry.numbers.get(at, statistic);
            // What was kept in ticks is shown as it was kept, everything else is converted.
            let kept = elapsed(at.arm, FAULT_TICKS);
            let ticks = |statistic| {
                let converted = || {
                    let ns: Quantity = number(statistic)?;
                    Some(ns.times(limits.tsc_hz? / 1e9, Unit::Ticks))
                };
                entry.numbers.get(kept, statistic).or_else(converted)
            };
            rows.push(row(method, number, ticks));
        }
    }
    for entry in published {
        let number = |series| move |name| entry.numbers.get(elapsed(PUBLISHED, series), name);
        let method = "read, published: another machine";
        let quiet = row(method, number(FAULT), number(FAULT_TICKS)).into_iter();
        rows.push(quiet.map(|cell| Cell { tone: Tone::Quiet, ..cell }).collect());
    }
    Table { columns, rows }
}

fn row(
    method: &str,
    ns: impl Fn(&'static str) -> Option<Quantity>,
    ticks: impl Fn(&'static str) -> Option<Quantity>,
) -> Vec<Cell> {
    let mut row = vec![Cell::from(method), Cell::maybe(ns("n").map(Quantity::display))];
    for statistic in STATISTICS {
        row.push(Cell::maybe(ns(statistic).map(Quantity::display)));
        // The heading says ticks already.
        let ticks = ticks(statistic).map(|ticks| Quantity { unit: Unit::Count, ..ticks });
        row.push(Cell::maybe(ticks.map(Quantity::display)));
    }
    row
}

/// What the note timed, with the numbers that show it.
fn explanation(entries: &[&Entry], limits: &Limits) -> String {
    let measured = |kind, at| {
        let median = base(entries, kind, at).map(|(_, median)| median.display());
        median.unwrap_or_else(|| "not measured".to_owned())
    };
    let pair = limits.costs.iter().find(|(name, ..)| *name == "empty timer pair");
    let pair = pair.map_or("not measured".to_owned(), |(_, pair, _)| pair.display());
    format!(
        "The note timed a read of one byte: with THP off the kernel maps the shared zero page, so \
         no page is allocated and none is cleared. Here such a read takes {}, the write that does \
         allocate and clear takes {}, and the note's own method on the same reads says {}: its \
         rdtsc is unfenced and its timer cost (here {pair} for a pair) is not subtracted. As the \
         first fault of its process, each of its samples also allocates page-table pages; a write \
         that does so takes {} here.",
        measured("read", elapsed(ARM, FAULT)),
        measured("write", elapsed(ARM, FAULT)),
        measured("read", elapsed(AS_PUBLISHED, FAULT)),
        measured("write", elapsed(ARM, PAGE_TABLE)),
    )
}

/// Whether the write fault costs what the note expected.
fn verdict(entries: &[&Entry]) -> Option<Note> {
    let (_, median) = base(entries, "write", elapsed(ARM, FAULT))?;
    let (low, high) = HYPOTHESIS_NS;
    let (tone, tag, word) = if median.low >= low && median.high <= high {
        (Tone::Good, "holds", "inside")
    } else if median.high < low || median.low > high {
        (Tone::Bad, "does not hold", "outside")
    } else {
        (Tone::Warn, "open", "not clearly inside")
    };
    let interval = median.display_interval();
    let interval = if interval.is_empty() { interval } else { format!(" ({interval})") };
    let text = format!(
        "The hypothesis of 1–10 µs: the median write fault takes {}{interval}, {word} that range.",
        median.display()
    );
    Some(Note { tone, tag, text, cure: String::new() })
}

/// Write cases that differ in one parameter only, each next to its like.
fn remarks(entries: &[&Entry]) -> Table {
    let columns = vec![
        Column::words("remark"),
        Column::words("case"),
        Column::number("p50"),
        Column::number("p99"),
        Column::number("p99 / p50"),
        Column::number("max"),
    ];
    let mut rows = Vec::new();
    for (remark, name, wanted) in [
        ("THP off and on", "page", Some(["4k", "2m"])),
        ("SCHED_FIFO off and on", "fifo", Some(["off", "on"])),
        ("pinned to a CPU and not", "cpu", None),
        ("node of the memory", "mem-node", None),
    ] {
        let mut groups: BTreeMap<_, Vec<&Entry>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.parameter("kind") == "write") {
            let value = entry.parameter(name);
            if wanted.is_none_or(|wanted| wanted.contains(&value)) && !value.is_empty() {
                let key = parameters::without(entry.case(), &[name, "size"]);
                groups.entry(key).or_default().push(entry);
            }
        }
        // More than one group would say the same of other parameters: the first with a pair speaks.
        let Some(pair) = groups.into_values().find(|group| group.len() > 1) else {
            let blank = format!("not measured: needs two values of {name}");
            let mut row = vec![remark.into(), Cell::toned(blank, Tone::Quiet)];
            row.extend(std::iter::repeat_n(Cell::none(), 4));
            rows.push(row);
            continue;
        };
        rows.extend(pair.iter().map(|entry| {
            let of = |statistic| entry.numbers.get(elapsed(ARM, FAULT), statistic);
            let spread = of("p99").zip(of("p50")).map(|(p99, p50)| p99.value / p50.value);
            let display = |statistic| Cell::maybe(of(statistic).map(Quantity::display));
            vec![
                remark.into(),
                format!("{name}={}", entry.parameter(name)).into(),
                display("p50"),
                display("p99"),
                Cell::maybe(spread.map(|spread| format!("{spread:.1}"))),
                display("max"),
            ]
        }));
    }
    Table { columns, rows }
}

#[cfg(test)]
mod tests {
    use pagelab_record::journal;

    use super::*;

    #[test]
    fn the_published_times_are_its_ticks_at_the_base_clock() {
        let text = include_str!("../../../../published/page-fault-latency.jsonl");
        let records = journal::read_records(text).unwrap();
        let [record] = &records[..] else { panic!("one record") };
        let entry = Entry::of(record);
        let hz = record.host.identity["base_clock_hz"].as_f64().unwrap();
        for statistic in STATISTICS {
            let of = |series| entry.numbers.get(elapsed(PUBLISHED, series), statistic).unwrap();
            let from_ticks = of(FAULT_TICKS).value / hz * 1e9;
            assert!((from_ticks - of(FAULT).value).abs() < 1.0, "{statistic}: {from_ticks}");
        }
    }
}
