//! The table of `memtype/bandwidth`: rates of stores and loads, by memory type.
//!
//! The one idea: a row is a case and an arm; its rate to the last store issued, to the end that the
//! test names, and to completion stand side by side. What a name says about stores and fences is
//! not said again in columns.

use pagelab_record::vocabulary::counter;

use super::{
    ARM, BANDWIDTH, COMPLETION, ISSUE, TEST, TWIN, arms, charts, display_gb, display_mib, mine,
    number, over_wb, withheld,
};
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Cell, Column, Entry, Grid, Quantity, Run, Section, Table, Tone, all_rows,
    cases::test_of,
    columns, elapsed, group_thousands,
    limits::{OF_CLEAR, OF_READ, OVER, over_cell},
    parameters,
};

/// Choices that the name of the test says, and those that a word after it says.
const NAMED: [&str; 6] = ["store", "fence", "verify", "load", "sum", "fence-word"];

/// The table of bandwidth cases, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = mine(&run.entries, BANDWIDTH);
    mine.first()?;
    let mut section = Section::new("memtype-bandwidth", "Memory types: stores and loads");
    section.all(charts::bandwidth(run));
    let mut shown = columns(&mine, &["type", "test"]);
    shown.retain(|name| !NAMED.contains(&name.as_str()));
    section.add(table(&mine, &shown));
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
         clear limit, loads over the read limit. What a cache holds can exceed it: above 105 % it \
         is no share.",
    );
    section.add(text);
    section.all(withheld(&mine));
    Some(section)
}

fn table(entries: &[&Entry], shown: &[String]) -> Table {
    let arms = |entry: &'_ Entry| match arms(entry, "arms") {
        none if none.is_empty() => vec![ARM.to_owned()],
        some => some.into_iter().map(ToOwned::to_owned).collect(),
    };
    let rows =
        entries.iter().flat_map(|entry| arms(entry).into_iter().map(move |arm| (*entry, arm)));
    let rows: Vec<(&Entry, String)> = rows.collect();
    let several = rows.iter().any(|(_, arm)| arm != ARM);
    let rate = |(entry, arm): &(&Entry, String), series| number(entry, arm, series, "bandwidth");
    let timed = move |row: &_| {
        let rate = rate(row, TEST)?;
        let mib = |value| display_mib(Quantity { value, ..rate });
        Some(format!("{} {}", display_mib(rate), rate.display_spread_by(mib)).trim_end().to_owned())
    };
    let share = |entry: &Entry| number(entry, ARM, TEST, "share_of_c");
    shown
        .iter()
        .fold(Grid::new(), |grid, name| {
            let column = match name.as_str() {
                "type" | "test" | "size" | "width" => Column::words(name),
                "iterations" => Column::words("rounds").rank(6),
                name => Column::words(name).rank(4),
            };
            grid.with(column, |(entry, arm): &(&Entry, String)| said(entry, name, arm == ARM))
        })
        .only_if(several, |grid| grid.words("arm", 0, |(_, arm)| arm.clone()))
        .number("issue MiB/s", 1, move |row| rate(row, ISSUE).map(display_mib))
        .number("as timed MiB/s", 0, move |row| Cell::maybe(timed(row)).strong())
        .number("GB/s", 2, move |row| rate(row, TEST).map(display_gb))
        .number("complete MiB/s", 1, move |row| rate(row, COMPLETION).map(display_mib))
        .number("a round", 5, |(entry, arm)| Cell::of(number(entry, arm, TEST, "round")).quiet())
        .number("of C", 2, |(entry, arm)| Cell::spread(share(entry).filter(|_| arm != TWIN)))
        .number("× WB", 2, |(entry, arm)| {
            over_wb(entry, [arm, TEST, "bandwidth"], entries)
                .map(|ratio| format!("{:.3}", ratio.value))
        })
        .number("of limit", 3, |(entry, arm)| of_limit(entry, arm))
        .number("wrong words", 5, |(entry, arm)| wrong_words(entry, arm))
        .number("proc×rep", 7, |(entry, arm)| entry.counts(elapsed(arm, TEST)))
        .words("witness", 0, |(entry, _)| entry.proof())
        .told(rows)
}

fn said(entry: &Entry, name: &str, first: bool) -> Cell {
    let tone = if first { Tone::Plain } else { Tone::Quiet };
    match name {
        "test" => {
            let mut test = test_of(entry.case());
            if entry.value(parameter::SUM) == "accumulated" {
                test.push_str(", sums go on");
            }
            if entry.value(parameter::FENCE_WORD) == "overlap" {
                test.push_str(", overlap");
            }
            Cell::toned(test, tone)
        }
        "type" => Cell::toned(parameters::display(name, entry.value(name)), tone),
        _ => Cell::maybe(entry.case().get(name).map(Into::into)).quiet(),
    }
}

/// Complete stores as a share of clearing, or loads of reading.
fn of_limit(entry: &Entry, arm: &str) -> Cell {
    let over = [COMPLETION, TEST].into_iter().find_map(|series| number(entry, arm, series, OVER));
    if over.is_some() {
        return over_cell();
    }
    let stores = number(entry, arm, COMPLETION, OF_CLEAR);
    Cell::of(stores.or_else(|| number(entry, arm, TEST, OF_READ)))
}

fn wrong_words(entry: &Entry, arm: &str) -> Cell {
    let wrong = entry.counter(counter::WRONG_WORDS).filter(|_| arm == ARM).map(|wrong| {
        let tone = if wrong == 0 { Tone::Good } else { Tone::Bad };
        Cell::toned(group_thousands(wrong as f64), tone)
    });
    wrong.unwrap_or_else(Cell::none)
}
