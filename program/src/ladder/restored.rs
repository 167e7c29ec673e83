//! What was seen on a rung before a run stopped, from the record that it left.
//!
//! The one idea: a record holds all that a tally does, so that whoever goes on adds to it. Warnings
//! are not taken over: they are of the machine, which is asked again.

use std::collections::BTreeMap;

use pagelab_record::{Clock, Data, Measured, Outcome, Record, Series, Table, vocabulary::tried};

use super::{maps::Mapped, tally::Tally};

/// The tally that a record was made of, and how often its verdict had been looked at.
pub(super) fn tally(record: &Record) -> (Tally, u32) {
    let measured = match &record.outcome {
        Outcome::Measured(measured) => measured,
        outcome => return (Tally { settled: Some(outcome.clone()), ..Tally::default() }, 0),
    };
    let looks = measured.counter(tried::LOOKS).unwrap_or(0);
    let table = |name: &str| measured.table(name);
    let tally = Tally {
        elapsed_ns: by_round(measured, |s| s.name == tried::ELAPSED && s.clock == Clock::Wall),
        goal: goal(measured),
        series: measured.series.clone(),
        pages: table(tried::PAGES).map_or_else(Vec::new, |table| table.rows.clone()),
        mappings: measured.tables.iter().filter_map(mapping).collect::<BTreeMap<_, _>>(),
        witness: measured.witness.clone(),
        digest: measured.counter(tried::OUTPUT_DIGEST),
        counters: measured.counters.clone(),
        ..Tally::default()
    };
    (tally, u32::try_from(looks).unwrap_or(0))
}

fn by_round(measured: &Measured, is_mine: impl Fn(&Series) -> bool) -> Vec<(u32, u64)> {
    let mine = measured.series.iter().filter(|series| is_mine(series));
    let value = mine.filter_map(|series| match &series.data {
        Data::Values(values) => Some((series.process, *values.first()?)),
        Data::Histogram(_) | Data::Summary(_) => None,
    });
    value.collect()
}

/// By round what is to be small, as [`Tally::add`] notes it.
fn goal(measured: &Measured) -> Vec<(u32, f64)> {
    let first = measured.series.iter().find(|series| series.name.starts_with(tried::SCORE));
    let Some(first) = first else {
        let elapsed = by_round(measured, |s| s.name == tried::ELAPSED && s.clock == Clock::Wall);
        return elapsed.into_iter().map(|(round, ns)| (round, ns as f64)).collect();
    };
    let is_more = first.name.starts_with(&format!("{}{}/", tried::SCORE, tried::MORE));
    let small = |(round, thousandths): (u32, u64)| {
        let said = thousandths as f64 / 1000.0;
        (round, if is_more { said.recip() } else { said })
    };
    by_round(measured, |series| series.name == first.name).into_iter().map(small).collect()
}

fn mapping(table: &Table) -> Option<(String, Mapped)> {
    let name = table.name.strip_prefix(tried::MAPPING)?;
    let bytes = |at: usize| table.rows.first()?.get(at).map(|cell| cell.unsigned_abs());
    let mapped =
        Mapped { size: bytes(0)?, resident: bytes(1)?, large: bytes(2)?, eligible: bytes(3)? };
    Some((name.to_owned(), mapped))
}
