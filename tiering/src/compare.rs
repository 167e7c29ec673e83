//! Published beside simulated: the rows of a preset, and what each of them is worth.
//!
//! The one idea: nobody writes down what kind a row is. A constant that the run depends on names
//! the results that it was fitted to or taken from; such a result is *fitted* or an *identity*, and
//! every other one is *predicted*, the test of the model.

use pagelab_tier::Outcome;

use super::{
    constant::Origin,
    metric::{METRICS, Metric},
    preset::{Preset, Published, Run},
};

/// What a row is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The model was given this number, or has no choice.
    Identity,
    /// A constant was chosen so that it comes out.
    Fitted,
    /// Neither.
    Predicted,
}

/// One published number, if there is one, and what the model makes of it. How far that is off is
/// for whoever reads the record.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// The metric.
    pub metric: &'static Metric,
    /// What was published.
    pub published: Option<f64>,
    /// What the model says.
    pub simulated: f64,
    /// What it is worth.
    pub kind: Kind,
    /// Standard deviation of one run.
    pub deviation: Option<f64>,
    /// How many runs the published number is the mean of.
    pub runs: u32,
}

/// The rows of a run. Where it was `changed` by hand it is another experiment than the published
/// one, and stands alone.
pub(super) fn rows(preset: &Preset, run: &Run, outcome: &Outcome, changed: bool) -> Vec<Row> {
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
        Some(Row {
            metric,
            published: found.map(|(_, published)| published.value),
            simulated,
            kind: found.map_or(Kind::Predicted, |(name, published)| kind(run, name, published)),
            deviation: found
                .and_then(|(_, published)| published.chance)
                .map(|chance| chance.deviation(outcome, simulated)),
            runs: found.map_or(1, |(_, published)| published.runs),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::parse;

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
        rows(&preset, run, &outcome, changed).into_iter().find(|row| row.metric.name == metric)
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
    fn chance_comes_from_the_model_and_runs_from_the_file() {
        let time = row("X", "time_s", false).unwrap();
        assert_eq!((time.published, time.simulated, time.runs), (Some(4.0), 5.0, 4));
        assert!((time.deviation.unwrap() - 5.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_run_that_was_changed_stands_alone() {
        let time = row("X", "time_s", true).unwrap();
        assert_eq!((time.published, time.kind), (None, Kind::Predicted));
        assert!(row("X (other)", "numa_hint_faults", false).is_none());
    }
}
