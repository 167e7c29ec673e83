//! Published beside simulated: the rows of a preset, and what each of them is worth.
//!
//! The one idea: nobody writes down what kind a row is. A constant that the run depends on names
//! the results that it was fitted to or taken from; such a result is *fitted* or an *identity*, and
//! every other one is *predicted*, the test of the model.

use pagelab_tier::Outcome;
use serde::Serialize;

use super::{
    constant::Origin,
    metric::{METRICS, Metric},
    preset::{Preset, Published, Run},
};

/// What a row is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The model was given this number, or has no choice.
    Identity,
    /// A constant was chosen so that it comes out.
    Fitted,
    /// Neither.
    Predicted,
}

/// One published number, if there is one, and what the model makes of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The source of the run.
    pub source: String,
    /// The metric.
    pub metric: &'static str,
    /// What was published.
    pub published: Option<f64>,
    /// What the model says.
    pub simulated: f64,
    /// How far that is off, as a share of what was published; none where that is 0 and this not.
    pub error: Option<f64>,
    /// What it is worth.
    pub kind: Kind,
    /// The unit of both, in words.
    #[serde(skip)]
    pub unit: &'static str,
    /// Standard deviation of one run.
    #[serde(skip)]
    pub deviation: Option<f64>,
    /// How many runs the published number is the mean of.
    #[serde(skip)]
    pub runs: u32,
    /// What may explain the difference.
    #[serde(skip)]
    pub why: Option<String>,
}

/// The rows of a run. Where it was `changed` by hand it is another experiment than the published
/// one, and stands alone.
pub fn rows(preset: &Preset, run: &Run, outcome: &Outcome, changed: bool) -> Vec<Row> {
    let published = |metric: &Metric| {
        let name = format!("{}/{}", run.compares, metric.name);
        preset.published.get_key_value(&name).filter(|_| !changed)
    };
    let row = |metric: &'static Metric| {
        let found = published(metric);
        // A source that is another model is there for what was published of it.
        if found.is_none() && (!metric.always || (run.is_variant() && metric.name != "time_s")) {
            return None;
        }
        let simulated = metric.value(outcome) / repeats(run, metric);
        let value = found.map(|(_, published)| published.value);
        Some(Row {
            source: run.source.clone(),
            metric: metric.name,
            published: value,
            simulated,
            error: value.and_then(|published| error(published, simulated)),
            kind: found.map_or(Kind::Predicted, |(name, published)| kind(run, name, published)),
            unit: metric.unit,
            deviation: found
                .and_then(|(_, published)| published.chance)
                .map(|chance| chance.deviation(outcome, simulated)),
            runs: found.map_or(1, |(_, published)| published.runs),
            why: found.and_then(|(_, published)| published.why.clone()),
        })
    };
    METRICS.iter().filter_map(row).collect()
}

/// Equal parts that the time of a run is shared by.
fn repeats(run: &Run, metric: &Metric) -> f64 {
    match &run.settings.work.repeats {
        Some(repeats) if metric.name == "time_s" && repeats.value >= 1.0 => repeats.value,
        _ => 1.0,
    }
}

pub(super) fn error(published: f64, simulated: f64) -> Option<f64> {
    let off = simulated - published;
    if off.abs() < f64::EPSILON {
        return Some(0.0);
    }
    (published.abs() > 0.0).then(|| off / published)
}

/// What the constants of a run say about a published result.
fn kind(run: &Run, name: &str, published: &Published) -> Kind {
    let constants = run.constants();
    let names = |origin: &Origin| origin.results().iter().any(|result| result == name);
    let chosen = |fitted: bool| {
        constants.iter().any(|(_, constant)| {
            matches!(constant.origin, Origin::Fitted(_)) == fitted && names(&constant.origin)
        })
    };
    if published.identity.is_some() || chosen(false) {
        Kind::Identity
    } else if chosen(true) {
        Kind::Fitted
    } else {
        Kind::Predicted
    }
}

impl Row {
    /// How far the model is off, in standard deviations of the published mean.
    pub fn sigmas(&self) -> Option<f64> {
        let of_mean = self.deviation.filter(|one| *one > 0.0)? / f64::from(self.runs.max(1)).sqrt();
        Some((self.simulated - self.published?) / of_mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tier::preset::parse;

    const FILE: &str = "name = 'a'\nsummary = 'b'\n\
        [curve]\nfast = { value = 1, fitted = 'X/time_s' }\n\
        slow = { value = 9, identity = 'Y/time_s' }\n\
        [[run]]\nsource = 'X'\npolicy = 'none'\n\
        [[run]]\nsource = 'Y'\npolicy = 'none'\n\
        [[run]]\nsource = 'X (other)'\ncompares = 'X'\npolicy = 'none'\n\
        [run.curve]\nfast = { value = 2, assumed = 'left out' }\n\
        [published]\n'X/time_s' = { value = 4, source = 's', chance = 'poisson', runs = 4 }\n\
        'Y/time_s' = { value = 9, source = 's' }\n\
        'X/pgpromote_success' = { value = 0, source = 's', identity = 'nothing moves' }\n";

    fn row(source: &str, metric: &str, changed: bool) -> Option<Row> {
        let preset = parse(FILE).unwrap();
        let run = preset.runs.iter().find(|run| run.source == source).unwrap();
        let outcome = Outcome { time_ns: 5_000_000_000, ..Outcome::default() };
        rows(&preset, run, &outcome, changed).into_iter().find(|row| row.metric == metric)
    }

    #[test]
    fn the_kind_of_a_row_follows_from_the_constants_of_its_run() {
        let kind = |source, metric| row(source, metric, false).unwrap().kind;
        assert_eq!(kind("X", "time_s"), Kind::Fitted);
        assert_eq!(kind("Y", "time_s"), Kind::Identity);
        assert_eq!(kind("X", "pgpromote_success"), Kind::Identity);
        // The number that was fitted to it is another one here.
        assert_eq!(kind("X (other)", "time_s"), Kind::Predicted);
        assert_eq!(kind("Y", "numa_hint_faults"), Kind::Predicted);
    }

    #[test]
    fn an_error_is_a_share_of_what_was_published() {
        let time = row("X", "time_s", false).unwrap();
        assert!((time.error.unwrap() - 0.25).abs() < 1e-12);
        // The deviation of one run is the root of 5; that of a mean of four half of it.
        assert!((time.sigmas().unwrap() - 1.0 / (5.0_f64.sqrt() / 2.0)).abs() < 1e-12);
        assert_eq!(row("X", "pgpromote_success", false).unwrap().error, Some(0.0));
    }

    #[test]
    fn a_run_that_was_changed_stands_alone() {
        let time = row("X", "time_s", true).unwrap();
        assert_eq!((time.published, time.error, time.kind), (None, None, Kind::Predicted));
        assert!(row("X (other)", "numa_hint_faults", false).is_none());
    }
}
