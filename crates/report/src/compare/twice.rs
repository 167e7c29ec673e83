//! The same thing measured twice, over and over: how often a comparison cries wolf.
//!
//! The one idea: cells of one pair of runs share a machine in one moment, so the pair is what is
//! counted: one with any FASTER or SLOWER has cried. The largest difference of a pair is the noise
//! floor of its host.

use std::collections::BTreeMap;

use pagelab_record::{stats::median, verdict::Verdict};
use serde_json::json;

use super::{Comparison, FLOOR_MAX, sections};
use crate::{
    document::{Block, Cell, Column, Document, Headline, Note, Section, Table, Tone},
    terminal::{self, Style},
    visible::visible,
};

/// What came of one pair of runs.
#[derive(Debug, Clone)]
struct Pair {
    name: String,
    verdicts: BTreeMap<Verdict, usize>,
    largest: Option<f64>,
}

impl Pair {
    fn of(&self, verdict: Verdict) -> usize {
        self.verdicts.get(&verdict).copied().unwrap_or_default()
    }

    fn cries(&self) -> bool {
        self.of(Verdict::Faster) + self.of(Verdict::Slower) > 0
    }
}

/// Pairs of runs of the same thing.
#[derive(Debug, Clone, Default)]
pub struct Twice {
    pairs: Vec<Pair>,
}

impl Twice {
    /// One more pair.
    pub fn add(&mut self, name: &str, comparison: &Comparison<'_>) {
        let mut verdicts = BTreeMap::new();
        for cell in comparison.cells() {
            *verdicts.entry(cell.verdict).or_default() += 1;
        }
        let largest = comparison.largest_difference();
        self.pairs.push(Pair { name: name.to_owned(), verdicts, largest });
    }

    /// The noise floor: the largest difference of a pair, the middle one of several.
    pub fn floor(&self) -> Option<f64> {
        let mut known = self.pairs.iter().filter_map(|pair| pair.largest).peekable();
        known.peek()?;
        Some(median(known))
    }

    fn cries(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.cries()).count()
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.pairs.iter().map(|pair| pair.of(verdict)).sum()
    }

    fn cells(&self) -> usize {
        self.pairs.iter().flat_map(|pair| pair.verdicts.values()).sum()
    }

    /// What they come to, for a terminal; with several, a row for each.
    pub fn terminal(&self, style: Style) -> String {
        let (pairs, cells) = (self.pairs.len(), self.cells());
        let headline = |value: String, label: &str, detail: String| Headline {
            value,
            label: label.to_owned(),
            detail,
            tone: Tone::Strong,
        };
        let mut headlines = vec![
            headline(
                self.cries().to_string(),
                "pairs with a FASTER or SLOWER",
                format!("of {pairs}; there is none to find"),
            ),
            headline(
                self.count(Verdict::Same).to_string(),
                "cells that are SAME",
                format!("of {cells}; {} INCONCLUSIVE", self.count(Verdict::Inconclusive)),
            ),
        ];
        let floor = self.floor();
        headlines.extend(floor.map(|floor| {
            let of = if pairs > 1 { "the median over pairs" } else { "the noise floor" };
            let label = "largest difference of a p50";
            headline(sections::share(floor), label, of.to_owned())
        }));
        let noisy = floor.filter(|floor| *floor > FLOOR_MAX).map(|floor| Note {
            tone: Tone::Warn,
            tag: "noisy",
            text: format!(
                "a floor of {} is more than {}: this host fails the test, and what is smaller \
                 cannot be seen on it",
                sections::share(floor),
                sections::share(FLOOR_MAX)
            ),
            cure: "measure on a quiet machine, with more --forks".to_owned(),
        });
        let columns = vec![
            Column::words("pair"),
            Column::number("SAME"),
            Column::number("INCONCLUSIVE"),
            Column::number("FASTER"),
            Column::number("SLOWER"),
            Column::number("largest"),
        ];
        let row = |pair: &Pair| -> Vec<Cell> {
            let count = |verdict| Cell::from(pair.of(verdict).to_string());
            vec![
                pair.name.clone().into(),
                count(Verdict::Same),
                count(Verdict::Inconclusive),
                count(Verdict::Faster),
                count(Verdict::Slower),
                Cell::maybe(pair.largest.map(sections::share)),
            ]
        };
        let rows = self.pairs.iter().map(row).collect();
        let table = Section::new("pairs", "Pairs").with(Block::Table(Table { columns, rows }));
        let document = Document {
            title: "The same thing twice".to_owned(),
            alerts: noisy.into_iter().collect(),
            headlines,
            sections: if pairs > 1 { vec![table] } else { Vec::new() },
            ..Document::default()
        };
        terminal::render(&document.harmless(), style)
    }

    /// As JSON, `pagelab.twice/1`.
    pub fn json(&self) -> String {
        let pair = |pair: &Pair| {
            let counts: BTreeMap<&str, usize> =
                Verdict::ALL.iter().map(|verdict| (verdict.name(), pair.of(*verdict))).collect();
            json!({"pair": pair.name, "verdicts": counts, "largest": pair.largest})
        };
        let document = json!({
            "schema": "pagelab.twice/1",
            "pairs_with_a_difference": self.cries(),
            "cells": self.cells(),
            "same": self.count(Verdict::Same),
            "floor": self.floor(),
            "pairs": self.pairs.iter().map(pair).collect::<Vec<_>>(),
        });
        visible(&format!("{document:#}\n"))
    }
}
