//! What a run keeps of its units: a table for each, and what was chosen of them.
//!
//! The one idea: the units are of the run that was watched, the choice follows from them and from
//! what faults cost here, which is measured behind it: so the record is kept once without and once
//! with a choice, and a run that goes on chooses the same again.

use std::collections::BTreeSet;

use pagelab_fault::latency::NAME as LATENCY;
use pagelab_interpose::preload::log::Way;
use pagelab_record::{
    Case, Measured, Outcome, Record, Table,
    stats::Samples,
    units::whole,
    vocabulary::{arm, series, tried},
};

use super::{
    choice::{Promise, SHARE, choose},
    logged::Logged,
    played::{How, Played, Unit, play},
};
use crate::{explain::counts::First, made};

/// Units that are told, those with most faults first.
const TOLD: usize = 200;

/// The record of the units of a program, of which none is chosen. Of the faults that are `unknown`
/// nobody saw whether they were first touches.
pub fn units(run: &str, case: Case, logged: &Logged, (firsts, unknown): (&[First], u64)) -> Record {
    let Played { mut units, elsewhere } = play(logged, firsts);
    units.sort_by_key(|unit| (std::cmp::Reverse(unit.faults), unit.key));
    let rest: u64 = units.iter().skip(TOLD).map(|unit| unit.faults).sum();
    units.truncate(TOLD);
    let names = logged.names(units.iter().map(|unit| &unit.site));
    let tables = units.iter().zip(&names).enumerate();
    let tables = tables.map(|(nth, (unit, name))| table(nth, name, unit)).collect();
    let counters = [
        (tried::ELSEWHERE, elsewhere + rest),
        (tried::UNKNOWN, unknown),
        (tried::UNLOGGED, logged.lost),
    ];
    let counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
    let measured = Measured { tables, counters, ..Measured::default() };
    made::record(run, super::WORKLOAD, case, Outcome::Measured(measured))
}

fn table(nth: usize, name: &str, unit: &Unit) -> Table {
    let Unit { key, how, bytes, areas, faults, saved, huge, extra, .. } = *unit;
    let way = match how {
        How::Heap => tried::HEAP,
        How::Asked(Way::Map) => tried::MAPPED,
        How::Asked(Way::Malloc) => tried::ALLOCATED,
    };
    let row = [key, way, bytes, areas, faults, saved, huge, extra, 0, 0, 0];
    Table::new(format!("{}{nth}/{name}", tried::UNIT), tried::UNIT_COLUMNS, [row])
}

/// A number of a unit, by the name of its column.
fn cell(table: &Table, name: &str) -> u64 {
    table.cell(name).map_or(0, |cell| u64::try_from(cell).unwrap_or(0))
}

fn is_unit(table: &Table) -> bool {
    table.name.starts_with(tried::UNIT)
}

/// Mean nanoseconds of a first write by pages of a size, as it was measured in this run.
fn price(records: &[Record], page: &str) -> Option<f64> {
    let is_it = |record: &&Record| {
        let of = |name| record.case.get(name);
        record.workload == LATENCY && of("kind") == Some("write") && of("page") == Some(page)
    };
    let Outcome::Measured(measured) = &records.iter().rfind(is_it)?.outcome else { return None };
    let mean = |arm: &str| {
        let is_mine = |s: &&pagelab_record::Series| s.name == series::FAULT && s.arm == arm;
        let clock = measured.series.iter().find(is_mine)?.clock;
        Samples::of(&measured.series, series::FAULT, arm, clock).undisturbed_mean()
    };
    let control = mean(arm::CONTROL).map_or(0.0, |control| control.value);
    Some((mean(arm::OURS)?.value - control).max(0.0))
}

/// What is to be had of the units of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// What the library calls them.
    pub keys: BTreeSet<u64>,
    /// Whether malloc's heap is among them.
    pub heap: bool,
}

impl Chosen {
    /// Those that a column of a record marks.
    pub fn of(record: &Record, column: &str) -> Self {
        let Some(measured) = record.measured() else { return Self::default() };
        let mut chosen = Self::default();
        for table in measured.tables.iter().filter(|table| is_unit(table)) {
            if cell(table, column) == 0 {
                continue;
            }
            match cell(table, "way") {
                tried::HEAP => chosen.heap = true,
                _ => drop(chosen.keys.insert(cell(table, "key"))),
            }
        }
        chosen
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && !self.heap
    }
}

/// The same record with a choice, by the prices among the records of its run.
///
/// # Errors
/// What is missing, where nothing can be chosen.
pub fn chosen(record: &Record, records: &[Record]) -> Result<Record, String> {
    let mut record = record.clone();
    let Outcome::Measured(measured) = &mut record.outcome else {
        return Err("a watched run that tells of its mappings".to_owned());
    };
    let prices = price(records, "4k").zip(price(records, "2m"));
    let Some((base_ns, huge_ns)) = prices else {
        return Err("a price for faults of 4 KiB and of 2 MiB".to_owned());
    };
    let mut units: Vec<&mut Table> =
        measured.tables.iter_mut().filter(|table| is_unit(table)).collect();
    let promises: Vec<Promise> = units
        .iter()
        .map(|unit| {
            let [saved, huge, extra] = ["saved", "huge", "extra"].map(|name| cell(unit, name));
            // Page walks by mapping, where they are known one day, are a term more.
            let gain_ns = saved as f64 * base_ns - huge as f64 * huge_ns;
            Promise { gain_ns, extra, touched: saved << 12 }
        })
        .collect();
    let choice = choose(&promises, SHARE);
    for (nth, (unit, promise)) in units.iter_mut().zip(&promises).enumerate() {
        #[expect(clippy::cast_possible_truncation, reason = "nanoseconds of one run")]
        let marks = [
            ("gain", promise.gain_ns as i64),
            ("chosen", i64::from(choice.chosen.contains(&nth))),
            ("gains", i64::from(choice.gains.contains(&nth))),
        ];
        for (name, value) in marks {
            let at = unit.index(name);
            if let Some(cell) = at.and_then(|at| unit.rows.first_mut()?.get_mut(at)) {
                *cell = value;
            }
        }
    }
    let counters = [
        (tried::BASE_FAULT, whole(base_ns.round())),
        (tried::HUGE_FAULT, whole(huge_ns.round())),
        (tried::EXTRA_BOUND, choice.bound),
    ];
    measured.counters.extend(counters.map(|(name, count)| (name.to_owned(), count)));
    Ok(record)
}
