//! *Here | published | ratio*: like beside like.
//!
//! The one idea: a row is a published record (and arm, where arms are asked for), and what stands
//! beside it agrees with it in every key that the table names and the record states. A result that
//! has no like in this run stands alone, with a dash.

use super::{
    claims::{FigureSpec, TableSpec},
    figure::{Both, Figure, Over, Side, THEIRS, fits, parameter},
    words::words,
};
use crate::{Cell, Column, Entry, Standing, Table, Tone, distinct};

const ARM: &str = "arm";

/// The table of the keys of `spec`.
pub(super) fn of(both: &Both, spec: &TableSpec) -> Table {
    let several = spec.figures.len() > 1;
    let keys = spec.shown.iter().chain(&spec.like);
    let mut columns: Vec<Column> = keys.map(|key| Column::words(key)).collect();
    if several {
        columns.push(Column::words("what"));
    }
    columns.extend([
        Column::number("here"),
        Column::number("published"),
        Column::number("ratio").rank(1),
    ]);
    let mut rows = Vec::new();
    let mut seen: Vec<Over> = Vec::new();
    for entry in &both.published {
        for arm in arms(both, spec, entry, Side::Published) {
            let key = key(spec, entry, &arm);
            let shown =
                spec.shown.iter().map(|name| Cell::toned(parameter(entry, name), Tone::Quiet));
            let shown: Vec<Cell> = shown.collect();
            rows.extend(lines(both, spec, &shown, &key, Some(entry)));
            seen.push(key);
        }
    }
    for entry in both.here.iter().filter(|entry| spec.others && entry.has_row()) {
        for arm in arms(both, spec, entry, Side::Here) {
            let key = key(spec, entry, &arm);
            let beside =
                |other: &Over| other.iter().all(|(name, value)| key.get(name) == Some(value));
            if seen.iter().any(beside) {
                continue;
            }
            let shown = vec![Cell::none(); spec.shown.len()];
            rows.extend(lines(both, spec, &shown, &key, None));
            seen.push(key);
        }
    }
    Table { columns, rows }
}

/// The arms of an entry that make rows; none where it is not of the table.
fn arms(both: &Both, spec: &TableSpec, entry: &Entry, side: Side) -> Vec<String> {
    let figures: Vec<&FigureSpec> =
        spec.figures.iter().map(|name| &both.claims.figures[name]).collect();
    if !figures.iter().any(|figure| figure.workload == entry.record.workload) {
        return Vec::new();
    }
    let asked = |figure: &&FigureSpec| {
        let theirs = figure.published.case.as_ref().filter(|_| side == Side::Published);
        fits(entry, theirs.unwrap_or(&figure.case))
    };
    if !figures.iter().copied().any(|figure| asked(&figure)) {
        return Vec::new();
    }
    if !spec.like.iter().any(|key| key == ARM) {
        return vec![String::new()];
    }
    let series = figures[0].published.series.as_ref().or(figures[0].series.as_ref());
    let series = series.map_or("", String::as_str);
    let Some(measured) = entry.measured() else { return Vec::new() };
    let mine = measured.series.iter().filter(|one| one.name == series);
    distinct(mine.map(|one| one.arm.clone()))
}

/// What a result must have to be like this one: the keys that it states.
fn key(spec: &TableSpec, entry: &Entry, arm: &str) -> Over {
    let value = |name: &String| if name == ARM { arm } else { parameter(entry, name) };
    let stated = spec.like.iter().map(|name| (name.clone(), value(name).to_owned()));
    stated.filter(|(_, value)| !value.is_empty()).collect()
}

/// A row for each figure of a key.
fn lines(
    both: &Both,
    spec: &TableSpec,
    shown: &[Cell],
    key: &Over,
    published: Option<&Entry>,
) -> Vec<Vec<Cell>> {
    let mut lines = Vec::new();
    for (nth, name) in spec.figures.iter().enumerate() {
        let figure = &both.claims.figures[name];
        let there = published.and_then(|entry| {
            let mut over = key.clone();
            // Of this very record, whichever others state the same.
            for name in &spec.shown {
                over.insert(name.clone(), parameter(entry, name).to_owned());
            }
            both.figure(name, Side::Published, &over).ok()
        });
        let here = both.figure(name, Side::Here, key).ok();
        let number = |figure: &Option<Figure>| figure.as_ref().and_then(|figure| figure.quantity);
        // A row that says nothing of either is none.
        if number(&there).is_none() && (published.is_some() || number(&here).is_none()) && nth > 0 {
            continue;
        }
        let form = figure.form.as_deref().unwrap_or_default();
        let cell =
            |number: Option<_>| Cell::maybe(number.map(|number| words(number, false, form, false)));
        let mut row = shown.to_vec();
        row.extend(spec.like.iter().map(|name| match key.get(name) {
            Some(value) if value == THEIRS => Cell::none(),
            Some(value) => Cell::from(value.as_str()),
            None => Cell::none(),
        }));
        if spec.figures.len() > 1 {
            row.push(Cell::toned(figure.called.as_deref().unwrap_or(name), Tone::Quiet));
        }
        let ours = match (number(&here), here.as_ref()) {
            (None, Some(here)) => why(here),
            (number, _) => Cell { tone: Tone::Strong, ..cell(number) },
        };
        let ratio = here.as_ref().zip(there.as_ref()).map(|(here, there)| here.over(there, both));
        let ratio = ratio.and_then(|ratio| ratio.quantity);
        row.extend([
            ours,
            Cell { tone: Tone::Quiet, ..cell(number(&there)) },
            Cell::maybe(ratio.map(|ratio| format!("{:.2}", ratio.value))),
        ]);
        lines.push(row);
    }
    lines
}

/// What stands where a number of ours would: why there is none, in a word.
fn why(figure: &Figure) -> Cell {
    let standing = figure.lacks.first().and_then(|lack| lack.standing);
    standing.map_or_else(Cell::none, Standing::cell)
}
