//! How much two runs of the same thing differ: the noise floor of a machine.
//!
//! The one idea: no difference smaller than this means anything. The same case, arm and series of
//! both runs are set side by side, at the median and at p99, and the largest difference is the
//! answer. It is no comparison: there is no better or worse between two runs of one thing.

use pagelab_record::{Record, stats};
use serde_json::json;

use crate::{
    document::{Block, Cell, Column, Document, Headline, Section, Table, Tone},
    entry::Entry,
    numbers::Time,
    quantity::{Quantity, Unit},
    terminal::{self, Style},
    views,
};

/// One quantity in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseCell {
    /// The workload and its case.
    pub case: String,
    /// The arm.
    pub arm: String,
    /// The series, and its clock where that is the CPU's.
    pub series: String,
    /// `p50` or `p99`.
    pub statistic: &'static str,
    /// In the first run, nanoseconds or ticks for each operation.
    pub a: f64,
    /// In the second run.
    pub b: f64,
    /// |a − b| as a share of their mean.
    pub difference: f64,
}

/// Two runs of the same thing, cell by cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NoiseFloor {
    /// Every cell that both runs have, the largest difference first.
    pub cells: Vec<NoiseCell>,
}

/// Sets two runs of the same cases side by side. Records that are not valid take no part.
pub fn noise_floor(a: &[Record], b: &[Record]) -> NoiseFloor {
    let others: Vec<Entry> = b.iter().map(views::entry).collect();
    let mut cells = Vec::new();
    for one in a.iter().map(views::entry) {
        let same = |other: &&Entry| {
            other.record.workload == one.record.workload && other.case() == one.case()
        };
        if let Some(other) = others.iter().find(same) {
            cells.extend(cells_of(&one, other));
        }
    }
    cells.sort_by(|x, y| y.difference.total_cmp(&x.difference));
    NoiseFloor { cells }
}

fn cells_of(one: &Entry, other: &Entry) -> Vec<NoiseCell> {
    let timed = one.numbers.0.iter().filter(|number| {
        ["p50", "p99"].contains(&number.statistic)
            && matches!(number.quantity.unit, Unit::Ns | Unit::Ticks)
    });
    let cell = |number: &crate::numbers::Number| {
        let at = crate::numbers::At { arm: &number.arm, series: &number.series, time: number.time };
        let (a, b) = (number.quantity.value, other.numbers.get(at, number.statistic)?.value);
        let mean = f64::midpoint(a, b);
        Some(NoiseCell {
            case: format!("{} {}", one.record.workload, one.case()),
            arm: number.arm.clone(),
            series: match number.time {
                Time::Elapsed | Time::None => number.series.clone(),
                Time::Cpu => format!("{} (CPU)", number.series),
            },
            statistic: number.statistic,
            a,
            b,
            difference: if mean > 0.0 { (a - b).abs() / mean } else { 0.0 },
        })
    };
    timed.filter_map(cell).collect()
}

impl NoiseFloor {
    /// The largest relative difference of a statistic (`p50`, `p99`); `None` without cells.
    pub fn largest(&self, statistic: &str) -> Option<f64> {
        self.differences(statistic).reduce(f64::max)
    }

    /// The median relative difference of a statistic; `None` without cells.
    pub fn median(&self, statistic: &str) -> Option<f64> {
        self.differences(statistic).next()?;
        Some(stats::median(self.differences(statistic)))
    }

    fn differences<'a>(&'a self, statistic: &'a str) -> impl Iterator<Item = f64> + 'a {
        self.cells.iter().filter(move |c| c.statistic == statistic).map(|c| c.difference)
    }

    /// For a terminal.
    pub fn terminal(&self, style: Style) -> String {
        let headline = |statistic: &str| {
            let share = |value| Quantity::exact(value, Unit::Share).display();
            Some(Headline {
                value: share(self.largest(statistic)?),
                label: format!("largest difference of a {statistic}"),
                detail: format!("median {}", share(self.median(statistic)?)),
                tone: Tone::Strong,
            })
        };
        let columns = vec![
            Column::words("case").rank(1),
            Column::words("arm"),
            Column::words("series"),
            Column::words("statistic"),
            Column::number("a"),
            Column::number("b"),
            Column::number("difference"),
        ];
        let row = |cell: &NoiseCell| -> Vec<Cell> {
            let time = |value| Quantity::exact(value, Unit::Ns).display();
            vec![
                cell.case.clone().into(),
                cell.arm.clone().into(),
                cell.series.clone().into(),
                cell.statistic.into(),
                time(cell.a).into(),
                time(cell.b).into(),
                Quantity::exact(cell.difference, Unit::Share).display().into(),
            ]
        };
        let table = Table { columns, rows: self.cells.iter().map(row).collect() };
        let document = Document {
            title: "Noise floor: two runs of the same thing".to_owned(),
            headlines: ["p50", "p99"].iter().filter_map(|statistic| headline(statistic)).collect(),
            sections: vec![Section::new("cells", "Every cell").with(Block::Table(table))],
            ..Document::default()
        };
        terminal::render(&document.harmless(), style)
    }

    /// As JSON, `pagelab.noise/1`.
    pub fn json(&self) -> String {
        let cell = |cell: &NoiseCell| {
            json!({
                "case": cell.case, "arm": cell.arm, "series": cell.series,
                "statistic": cell.statistic, "a": cell.a, "b": cell.b,
                "difference": cell.difference,
            })
        };
        let of = |statistic| {
            let (largest, median) = (self.largest(statistic), self.median(statistic));
            json!({"largest": largest, "median": median})
        };
        let document = json!({
            "schema": "pagelab.noise/1",
            "p50": of("p50"),
            "p99": of("p99"),
            "cells": self.cells.iter().map(cell).collect::<Vec<_>>(),
        });
        format!("{document:#}\n")
    }
}
