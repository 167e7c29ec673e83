//! The same thing measured twice, over and over: how often a comparison cries wolf.
//!
//! The one idea: cells of one pair of runs share a machine in one moment, so the pair is what is
//! counted: one with any FASTER or SLOWER has cried. The largest difference of a pair is the noise
//! floor of its host. What is kept of a pair is what is counted, so that pairs of yesterday and of
//! today come together.

use std::collections::BTreeMap;

use pagelab_record::{power::share_at_most, stats::median, verdict::Verdict};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Comparison, FLOOR_MAX, sections};
use crate::{
    document::{Document, Headline, Note, Section, Tone},
    forms,
    grid::Grid,
    terminal::{self, Style},
};

/// What came of one pair of runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pair {
    #[serde(rename = "pair")]
    name: String,
    seconds: f64,
    cells: Vec<Told>,
}

/// What came of one of its cells.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Told {
    workload: String,
    case: String,
    metric: String,
    verdict: Verdict,
    /// Processes of each side.
    processes: usize,
    p: f64,
    ratio: Option<f64>,
    /// The 95 % interval, where there is one.
    interval: Option<[f64; 2]>,
}

impl Told {
    /// How far the two lie apart, whichever is the longer one.
    fn difference(&self) -> Option<f64> {
        self.interval.and(self.ratio).map(|ratio| ratio.ln().abs().exp_m1())
    }

    /// Half of the interval.
    fn half(&self) -> Option<f64> {
        self.interval.map(|[low, high]| ((high / low).ln() / 2.0).exp_m1())
    }

    fn cries(&self) -> bool {
        matches!(self.verdict, Verdict::Faster | Verdict::Slower)
    }
}

impl Pair {
    /// What comparing the two comes to.
    pub fn of(name: &str, seconds: f64, comparison: &Comparison<'_>) -> Self {
        let told = comparison.cells().map(|cell| Told {
            workload: cell.pair.a.workload.clone(),
            case: cell.short.clone(),
            metric: cell.metric(),
            verdict: cell.verdict,
            processes: cell.counts().into_iter().min().unwrap_or(0),
            p: cell.p,
            ratio: cell.ratio.map(|ratio| ratio.value),
            interval: cell.ratio.and_then(|ratio| ratio.interval()),
        });
        Self { name: name.to_owned(), seconds, cells: told.collect() }
    }

    fn of_verdict(&self, verdict: Verdict) -> usize {
        self.cells.iter().filter(|cell| cell.verdict == verdict).count()
    }

    fn cries(&self) -> bool {
        self.cells.iter().any(Told::cries)
    }

    fn largest(&self) -> Option<f64> {
        self.cells.iter().filter_map(Told::difference).reduce(f64::max)
    }
}

/// Pairs of runs of the same thing.
#[derive(Debug, Clone, Default)]
pub struct Twice {
    pairs: Vec<Pair>,
}

impl Twice {
    /// One more pair.
    pub fn add(&mut self, pair: Pair) {
        self.pairs.push(pair);
    }

    /// How many there are.
    pub fn trials(&self) -> u32 {
        u32::try_from(self.pairs.len()).unwrap_or(u32::MAX)
    }

    /// What came of the last one, in a line.
    pub fn last_in_words(&self) -> String {
        let Some(pair) = self.pairs.last() else { return String::new() };
        let counts = Verdict::ALL.iter().filter_map(|verdict| {
            let count = pair.of_verdict(*verdict);
            (count > 0).then(|| format!("{count} {verdict}"))
        });
        let counts: Vec<String> = counts.collect();
        format!("{} in {:.0} s", counts.join(", "), pair.seconds)
    }

    /// The noise floor: the largest difference of a pair, the middle one of several.
    pub fn floor(&self) -> Option<f64> {
        let mut known = self.pairs.iter().filter_map(Pair::largest).peekable();
        known.peek()?;
        Some(median(known))
    }

    fn cries(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.cries()).count()
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.pairs.iter().map(|pair| pair.of_verdict(verdict)).sum()
    }

    fn cells(&self) -> usize {
        self.pairs.iter().map(|pair| pair.cells.len()).sum()
    }

    /// What is told of each cell, over all pairs, in the order of the suite.
    fn by_cell(&self) -> Vec<Vec<&Told>> {
        let mut places: BTreeMap<[&str; 3], usize> = BTreeMap::new();
        let mut cells: Vec<Vec<&Told>> = Vec::new();
        for told in self.pairs.iter().flat_map(|pair| &pair.cells) {
            let name = [&told.workload[..], &told.case, &told.metric];
            let place = *places.entry(name).or_insert_with(|| {
                cells.push(Vec::new());
                cells.len() - 1
            });
            cells[place].push(told);
        }
        cells
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
        let at_most = share_at_most(self.cries(), pairs);
        let mut headlines = vec![
            headline(
                self.cries().to_string(),
                "pairs with a FASTER or SLOWER",
                format!(
                    "of {pairs}; there is none to find: 95 % sure, at most {} of such pairs have \
                     one",
                    sections::share(at_most)
                ),
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
        let noisy = floor.filter(|floor| *floor > FLOOR_MAX).map(|floor| {
            let text = format!(
                "a floor of {} is more than {}: this host fails the test, and what is smaller \
                 cannot be seen on it",
                sections::share(floor),
                sections::share(FLOOR_MAX)
            );
            let cure = "measure on a quiet machine, with more --forks or --budget";
            Note::warn("noisy", text, cure)
        });
        let document = Document {
            title: "The same thing twice".to_owned(),
            alerts: noisy.into_iter().collect(),
            headlines,
            sections: if pairs > 1 { vec![self.of_cells(), self.of_pairs()] } else { Vec::new() },
            ..Document::default()
        };
        terminal::render(&document.harmless(), style)
    }

    fn of_cells(&self) -> Section {
        type Of = fn(&Told) -> Option<f64>;
        let count = |is_it: fn(&Told) -> bool| {
            move |told: &Vec<&Told>| told.iter().filter(|told| is_it(told)).count().to_string()
        };
        let middle = |of: Of| {
            move |told: &Vec<&Told>| {
                let known: Vec<f64> = told.iter().filter_map(|told| of(told)).collect();
                (!known.is_empty()).then(|| sections::share(median(known)))
            }
        };
        let table = Grid::<Vec<&Told>>::new()
            .words("case", 0, |told| told[0].case.clone())
            .words("metric", 0, |told| told[0].metric.clone())
            .number("pairs", 0, |told| told.len().to_string())
            .number("SAME", 0, count(|told| told.verdict == Verdict::Same))
            .number("INCONCLUSIVE", 0, count(|told| told.verdict == Verdict::Inconclusive))
            .number("FASTER, SLOWER", 0, count(Told::cries))
            .number("processes", 0, |told| {
                format!("{:.0}", median(told.iter().map(|told| told.processes as f64)))
            })
            .number("±", 0, middle(Told::half))
            .number("floor", 0, middle(Told::difference))
            .number("largest", 0, |told| {
                let largest = told.iter().filter_map(|told| told.difference()).reduce(f64::max);
                largest.map(sections::share)
            })
            .table(self.by_cell());
        Section::new("cells", "Cells").with(table).with(
            "Processes of each side, half of the 95 % interval, and the floor (how far the two \
                 lie apart): the middle of the pairs.",
        )
    }

    fn of_pairs(&self) -> Section {
        let count = |verdict| move |pair: &&Pair| pair.of_verdict(verdict).to_string();
        let table = Grid::<&Pair>::new()
            .words("pair", 0, |pair| pair.name.clone())
            .number("SAME", 0, count(Verdict::Same))
            .number("INCONCLUSIVE", 0, count(Verdict::Inconclusive))
            .number("FASTER", 0, count(Verdict::Faster))
            .number("SLOWER", 0, count(Verdict::Slower))
            .number("largest", 0, |pair| pair.largest().map(sections::share))
            .number("seconds", 0, |pair| format!("{:.0}", pair.seconds))
            .table(&self.pairs);
        Section::new("pairs", "Pairs").with(table)
    }

    /// As JSON, `pagelab.twice/2`.
    pub fn json(&self) -> String {
        let cell = |told: &Vec<&Told>| {
            let count = |verdict| told.iter().filter(|told| told.verdict == verdict).count();
            let differences: Vec<f64> = told.iter().filter_map(|told| told.difference()).collect();
            json!({
                "workload": told[0].workload, "case": told[0].case, "metric": told[0].metric,
                "pairs": told.len(), "same": count(Verdict::Same),
                "inconclusive": count(Verdict::Inconclusive),
                "faster": count(Verdict::Faster), "slower": count(Verdict::Slower),
                "floor": (!differences.is_empty()).then(|| median(differences.iter().copied())),
                "largest": differences.iter().copied().reduce(f64::max),
            })
        };
        let document = json!({
            "schema": "pagelab.twice/2",
            "pairs_with_a_difference": self.cries(),
            "share_at_most": share_at_most(self.cries(), self.pairs.len()),
            "cells": self.cells(),
            "same": self.count(Verdict::Same),
            "floor": self.floor(),
            "by_cell": self.by_cell().iter().map(cell).collect::<Vec<_>>(),
            "pairs": self.pairs,
        });
        forms::json(&document)
    }
}
