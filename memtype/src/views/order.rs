//! The table of `memtype/order`: what one CPU sees of the stores of another.
//!
//! The one idea: nothing is timed, counts are the result. Where the processor manual forbids a
//! reordering the record claims that there is none; where it allows one there is no claim, and
//! none seen is no proof that none happens.

use pagelab_record::{
    Data,
    vocabulary::{Check, series},
};

use super::{ORDER, mine, withheld};
use pagelab_report::{
    Cell, Column, Entry, Grid, Headline, Run, Section, Standing, Tone, all_rows, columns,
    group_thousands, numbers,
};

/// What the two CPUs counted, over all repetitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Messages that were sent.
    pub(crate) rounds: u64,
    /// Messages whose flag was seen.
    pub(crate) observed: u64,
    /// Of these, those whose data was still old.
    pub(crate) reorderings: u64,
}

/// The counts of a record, whatever it is worth: they are no times.
pub(crate) fn count(entry: &Entry) -> Option<Count> {
    let measured = entry.measured()?;
    let mut count = Count::default();
    for series in &measured.series {
        let Data::Values(values) = &series.data else { continue };
        let sum = numbers::total(values.iter().copied());
        let (total, more) = match series.name.as_str() {
            series::ROUND => (&mut count.rounds, series.ops.saturating_mul(values.len() as u64)),
            series::OBSERVED => (&mut count.observed, sum),
            series::REORDERINGS => (&mut count.reorderings, sum),
            _ => continue,
        };
        *total = total.saturating_add(more);
    }
    Some(count)
}

/// Whether the record claims that there is no reordering.
fn is_forbidden(entry: &Entry) -> bool {
    entry.claims().iter().any(|claim| claim.is(Check::Reorderings))
}

/// What the counts come to.
fn verdict(entry: &Entry, count: Count) -> Cell {
    let seen = group_thousands(count.reorderings as f64);
    match (entry.standing, is_forbidden(entry), count.reorderings) {
        (Standing::Emulated, ..) => {
            Cell::toned("emulated: says nothing of a processor", Tone::Warn)
        }
        (_, true, 0) if entry.is_valid() => Cell::toned("forbidden and not seen", Tone::Good),
        (_, true, 1..) => Cell::toned(format!("forbidden and seen {seen}"), Tone::Bad),
        (Standing::Invalid, ..) => Cell::toned("withheld", Tone::Bad),
        (_, _, 0) => Cell::toned("allowed and not seen", Tone::Plain),
        _ => Cell::toned(format!("allowed and seen {seen}"), Tone::Strong),
    }
}

/// The table of order cases, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = mine(&run.entries, ORDER);
    mine.first()?;
    let shown = columns(&mine, &["type", "store", "fence"]);
    let number = |value: u64| group_thousands(value as f64);
    let each = |count: &Count| {
        let share = count.reorderings as f64 / count.observed as f64;
        (count.observed > 0).then(|| format!("{:.2}", share * 1e6))
    };
    let table = shown
        .iter()
        .fold(Grid::<(&Entry, Count)>::new(), |grid, name| {
            let column = match name.as_str() {
                "type" | "store" | "fence" => Column::words(name),
                "rounds" => Column::words("rounds asked").rank(4),
                name => Column::words(name).rank(3),
            };
            grid.with(column, |(entry, _)| entry.parameter_cell(name))
        })
        .number("rounds", 1, |(_, count)| number(count.rounds))
        .number("observed", 2, |(_, count)| number(count.observed))
        .number("reorderings", 0, |(_, count)| number(count.reorderings))
        .number("in a million", 0, |(_, count)| each(count))
        .words("verdict", 0, |(entry, count)| verdict(entry, *count))
        .words("witness", 0, |(entry, _)| entry.proof())
        .table(mine.iter().map(|entry| (*entry, count(entry).unwrap_or_default())));
    let mut section = Section::new("memtype-order", "Memory types: order of stores").with(table);
    section.add(format!(
        "{}One CPU stores data, then the fence of the row, then a flag; another CPU loads the \
         flag, then the data. Observed: it saw the new flag. A reordering: the data was still old. \
         In a million: of those observed. Where the processor manual allows a reordering, seeing \
         none proves nothing.",
        all_rows(&mine, &shown)
    ));
    section.all(withheld(&mine));
    Some(section)
}

/// Whether stores were seen out of order, by memory type and fence: the worst case leads.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let counted = run.valid(ORDER).into_iter().filter_map(|entry| Some((entry, count(entry)?)));
    let told = |(entry, count): (&Entry, Count)| Headline {
        value: group_thousands(count.reorderings as f64),
        label: format!("reorderings seen, {}", entry.short.trim_start_matches(ORDER).trim()),
        detail: format!("of {} messages", group_thousands(count.observed as f64)),
        tone: Tone::Plain,
    };
    counted.max_by_key(|(_, count)| count.reorderings).map(told).into_iter().collect()
}
