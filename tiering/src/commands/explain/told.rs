//! What was predicted of a policy beside what came, and what watching alone costs.
//!
//! The one idea: no two runs are alike, so whatever is said of runs is a median and a range.

use pagelab_live::predict::Predicted;
use serde_json::{Value, json};

use crate::commands::promote::Once;

/// A policy, what was predicted of it, and what came.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) policy: String,
    pub(super) predicted: Predicted,
    /// Each run.
    pub(super) took: Vec<Took>,
}

#[derive(Debug)]
pub(super) struct Took {
    ns: u64,
    promoted: u64,
    demoted: u64,
}

impl Took {
    pub(super) fn of(once: &Once) -> Self {
        Self { ns: once.ns, promoted: once.sum.promoted, demoted: once.sum.demoted }
    }

    fn json(&self) -> Value {
        json!({ "ns": self.ns, "promoted": self.promoted, "demoted": self.demoted })
    }
}

/// Shares that came out in some runs: the median, and the range, within which the median of all
/// runs that there could be lies as sure as `sure` says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    median: f64,
    range: (f64, f64),
    sure: f64,
    runs: usize,
}

impl Spread {
    pub(super) fn of(mut shares: Vec<f64>) -> Option<Self> {
        shares.sort_by(f64::total_cmp);
        let (range, runs) = ((*shares.first()?, *shares.last()?), shares.len());
        let median = f64::midpoint(shares[(runs - 1) / 2], shares[runs / 2]);
        // But for all on one side of it, by chance.
        let sure = 1.0 - 0.5_f64.powf(runs as f64 - 1.0);
        Some(Self { median, range, sure, runs })
    }

    /// `+1.0 % [+0.5, +2.0] of 3 runs, which hold the median by 75 %`.
    pub(super) fn text(&self) -> String {
        let Self { median, range: (least, most), sure, runs } = *self;
        let percent = |share: f64| share * 100.0;
        let range = match runs {
            1 => "of one run".to_owned(),
            _ => format!(
                "[{:+.1}, {:+.1}] of {runs} runs, which hold the median by {:.0} %",
                percent(least),
                percent(most),
                percent(sure)
            ),
        };
        format!("{:+.1} % {range}", percent(median))
    }

    pub(super) fn json(&self) -> Value {
        let Self { median, range: (least, most), sure, .. } = self;
        json!({ "median": median, "range": [least, most], "sure": sure })
    }
}

impl Told {
    /// By how much the prediction was off, as shares of what came.
    fn off(&self) -> Option<Spread> {
        let took = self.took.iter().filter(|took| took.ns > 0);
        Spread::of(took.map(|took| self.predicted.ns as f64 / took.ns as f64 - 1.0).collect())
    }

    /// By how much each run was slower than that of the same turn in which nobody watched.
    pub(super) fn slower(&self, alone: &[u64]) -> Option<Spread> {
        let turns = self.took.iter().zip(alone).filter(|(_, alone)| **alone > 0);
        Spread::of(turns.map(|(took, alone)| took.ns as f64 / *alone as f64 - 1.0).collect())
    }

    /// The run whose time is the median, or the shorter of two.
    fn typical(&self) -> Option<&Took> {
        let mut took: Vec<&Took> = self.took.iter().collect();
        took.sort_by_key(|took| took.ns);
        took.get(took.len().checked_sub(1)? / 2).copied()
    }

    pub(super) fn text(&self) -> String {
        let Some((Took { ns, promoted, demoted }, off)) = self.typical().zip(self.off()) else {
            return format!("{}: not run", self.policy);
        };
        let Predicted { ns: predicted, promoted: up, demoted: down, .. } = self.predicted;
        format!(
            "{}: took {}, predicted {}, off by {}; {promoted} pages promoted, predicted {up}; \
             {demoted} demoted, predicted {down}",
            self.policy,
            seconds(*ns),
            seconds(predicted),
            off.text()
        )
    }

    pub(super) fn json(&self) -> Value {
        let took: Vec<Value> = self.took.iter().map(Took::json).collect();
        let off = self.off().as_ref().map(Spread::json);
        json!({ "policy": self.policy, "predicted": self.predicted, "took": took, "error": off })
    }
}

pub(super) fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(predicted: u64, took: &[u64]) -> Told {
        let predicted = Predicted {
            ns: predicted,
            promoted: 10,
            demoted: 0,
            watched_share: 1.0,
            share: 0.2,
            looks: 10,
        };
        let took = took.iter().map(|&ns| Took { ns, promoted: 9, demoted: 1 }).collect();
        Told { policy: "history".into(), predicted, took }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn an_error_is_a_share_of_what_came_and_has_the_range_of_the_runs() {
        let off = |took: &[u64]| told(6 * SECOND, took).off().unwrap();
        let of = |median, range, sure, runs| Spread { median, range, sure, runs };
        assert_eq!(off(&[8 * SECOND]), of(-0.25, (-0.25, -0.25), 0.0, 1));
        let three = [8 * SECOND, 6 * SECOND, 12 * SECOND];
        assert_eq!(off(&three), of(-0.25, (-0.5, 0.0), 0.75, 3));
        assert!((off(&three[..2]).median + 0.125).abs() < 1e-12);
        assert_eq!(told(1, &[]).off(), None);
        assert_eq!(told(1, &[0]).off(), None);
    }

    #[test]
    fn a_run_is_compared_with_that_of_its_turn() {
        let told = told(1, &[11 * SECOND, 21 * SECOND]);
        let slower = told.slower(&[10 * SECOND, 20 * SECOND]).unwrap();
        assert!((slower.median - 0.075).abs() < 1e-9, "{slower:?}");
        assert_eq!(slower.text(), "+7.5 % [+5.0, +10.0] of 2 runs, which hold the median by 50 %");
        assert_eq!(told.slower(&[]), None);
    }

    #[test]
    fn what_came_stands_beside_what_was_predicted() {
        let text = told(6 * SECOND, &[8 * SECOND]).text();
        let pages = "9 pages promoted, predicted 10";
        for part in ["took 8.000 s", "predicted 6.000 s", "-25.0 % of one run", pages] {
            assert!(text.contains(part), "{text}");
        }
        let text = told(6 * SECOND, &[8 * SECOND, 6 * SECOND, 12 * SECOND]).text();
        let range = "took 8.000 s, predicted 6.000 s, off by -25.0 % [-50.0, +0.0] of 3 runs";
        assert!(text.contains(range), "{text}");
        assert!(told(1, &[]).text().contains("not run"));
    }
}
