//! The table of `memtype/bandwidth`: rates of stores and loads, by memory type.
//!
//! The one idea: a row is a case and an arm; its rate to the last store issued, to the end that the
//! test names, and to completion stand side by side. What a name says about stores and fences is
//! not said again in columns.

use pagelab_record::vocabulary::counter;

use super::{
    ARM, BANDWIDTH, COMPLETION, ISSUE, TEST, TWIN, TYPES, arms, charts, display_gb, display_mib,
    mine, number, withheld,
};
use crate::{
    cases::{all_rows, columns, test_of},
    document::{Block, Cell, Column, Section, Table, Tone},
    entry::Entry,
    numbers::elapsed,
    parameters,
    quantity::{Quantity, Unit, group_thousands},
    run::Run,
};

/// Choices that the name of the test says, and those that a word after it says.
const NAMED: [&str; 6] = ["store", "fence", "verify", "load", "sum", "fence-word"];
/// Where the memory lies: what a type implies, so that types are compared across it.
const PLACE: [&str; 3] = ["type", "frames", "leaf"];

/// The table of bandwidth cases, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = mine(&run.entries, BANDWIDTH);
    if mine.is_empty() {
        return None;
    }
    let mut section = Section::new("memtype-bandwidth", "Memory types: stores and loads");
    section.blocks.extend(charts::bandwidth(run));
    let mut shown = columns(&mine, &["type", "test"]);
    shown.retain(|name| !NAMED.contains(&name.as_str()));
    section.blocks.push(Block::Table(table(&mine, &shown)));
    let said: Vec<String> = shown.iter().cloned().chain(NAMED.map(str::to_owned)).collect();
    let mut text = all_rows(&mine, &said);
    if let Some(clear) = run.limits.clear() {
        text.push_str(&format!("Clear limit in DRAM, one thread: {}. ", clear.display()));
    }
    text.push_str(
        "Issue: until the last store was issued, which is before it is complete. As timed: until \
         the end that the test names. Complete: until an sfence and an mfence after everything. Of \
         C: the rate over that of the same loop in C, process by process. × WB: the rate over that \
         of the same test in WB memory, in other processes. Of limit: complete stores over the \
         clear limit, loads over the read limit; what a cache holds can exceed it.",
    );
    section.blocks.push(Block::Text(text));
    section.blocks.extend(withheld(&mine));
    Some(section)
}

fn table(entries: &[&Entry], shown: &[String]) -> Table {
    let several = entries.iter().any(|entry| arms(entry, "arms").iter().any(|arm| *arm != ARM));
    let parameter = |name: &String| match name.as_str() {
        "type" | "test" | "size" | "width" => Column::words(name),
        "iterations" => Column::words("rounds").rank(6),
        name => Column::words(name).rank(4),
    };
    let mut columns: Vec<Column> = shown.iter().map(parameter).collect();
    if several {
        columns.push(Column::words("arm"));
    }
    columns.extend([
        Column::number("issue MiB/s").rank(1),
        Column::number("as timed MiB/s"),
        Column::number("GB/s").rank(2),
        Column::number("complete MiB/s").rank(1),
        Column::number("a round").rank(5),
    ]);
    columns.extend([
        Column::number("of C").rank(2),
        Column::number("× WB").rank(2),
        Column::number("of limit").rank(3),
        Column::number("wrong words").rank(5),
        Column::number("proc×rep").rank(7),
        Column::words("witness"),
    ]);
    let mut rows = Vec::new();
    for entry in entries {
        let mut arms = arms(entry, "arms");
        if arms.is_empty() {
            arms.push(ARM);
        }
        for arm in arms {
            let mut row: Vec<Cell> =
                shown.iter().map(|name| said(entry, name, arm == ARM)).collect();
            if several {
                row.push(arm.into());
            }
            row.extend(rates(entry, arm));
            let share = number(entry, ARM, TEST, "share_of_c").filter(|_| arm != TWIN);
            let ratio = over_wb(entry, arm, entries).map(|ratio| format!("{:.3}", ratio.value));
            row.extend([Cell::spread(share), Cell::maybe(ratio), Cell::of(of_limit(entry, arm))]);
            row.extend(rest(entry, arm));
            rows.push(row);
        }
    }
    Table::of(columns, rows)
}

fn said(entry: &Entry, name: &str, first: bool) -> Cell {
    let tone = if first { Tone::Plain } else { Tone::Quiet };
    match name {
        "test" => {
            let mut test = test_of(entry.case());
            if entry.parameter("sum") == "accumulated" {
                test.push_str(", sums go on");
            }
            if entry.parameter("fence-word") == "overlap" {
                test.push_str(", overlap");
            }
            Cell::toned(test, tone)
        }
        "type" => Cell::toned(parameters::display(name, entry.parameter(name)), tone),
        _ => Cell::maybe(entry.case().get(name).map(Into::into)).quiet(),
    }
}

fn rates(entry: &Entry, arm: &str) -> Vec<Cell> {
    let rate = |series| number(entry, arm, series, "bandwidth");
    let timed = rate(TEST).map(|rate| {
        let mib = |value| display_mib(Quantity { value, ..rate });
        format!("{} {}", display_mib(rate), rate.display_spread_by(mib)).trim_end().to_owned()
    });
    vec![
        Cell::maybe(rate(ISSUE).map(display_mib)),
        Cell::maybe(timed).strong(),
        Cell::maybe(rate(TEST).map(display_gb)),
        Cell::maybe(rate(COMPLETION).map(display_mib)),
        Cell::of(number(entry, arm, TEST, "round")).quiet(),
    ]
}

/// Complete stores as a share of clearing, or loads of reading.
fn of_limit(entry: &Entry, arm: &str) -> Option<Quantity> {
    let stores = number(entry, arm, COMPLETION, "share_of_clear");
    stores.or_else(|| number(entry, arm, TEST, "share_of_read"))
}

fn rest(entry: &Entry, arm: &str) -> Vec<Cell> {
    let wrong = entry.counter(counter::WRONG_WORDS).filter(|_| arm == ARM).map(|wrong| {
        let tone = if wrong == 0 { Tone::Good } else { Tone::Bad };
        Cell::toned(group_thousands(wrong as f64), tone)
    });
    vec![wrong.unwrap_or_else(Cell::none), entry.counts(elapsed(arm, TEST)), entry.proof()]
}

/// The rate over that of the same test in WB memory.
fn over_wb(entry: &Entry, arm: &str, entries: &[&Entry]) -> Option<Quantity> {
    // Rounds are bounded for slow types: a round is what is compared.
    let ignored = [&PLACE[..], &["iterations"]].concat();
    let rest = |entry: &Entry| parameters::without(entry.case(), &ignored);
    if entry.parameter("type") == TYPES[0] {
        return None;
    }
    let wb = entries
        .iter()
        .filter(|other| other.parameter("type") == TYPES[0] && rest(other) == rest(entry));
    let mut rates = wb.filter_map(|other| number(other, arm, TEST, "bandwidth"));
    number(entry, arm, TEST, "bandwidth")?.over(rates.next()?, Unit::Ratio)
}
