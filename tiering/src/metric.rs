//! What is compared with published results: one row for each counter of a mail.
//!
//! The names are the kernel's counters; times are in seconds and end in `_s`.

use pagelab_tier::Outcome;

/// A row of [`METRICS`].
#[derive(Debug)]
pub(super) struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit, in words.
    pub unit: &'static str,
    /// Whether it is shown of every run, published or not.
    pub always: bool,
    value: fn(&Outcome) -> f64,
}

/// Everything that can be compared.
pub(super) const METRICS: &[Metric] = &[
    Metric::always("time_s", "s", Outcome::seconds),
    Metric::always("pgpromote_success", "pages", |outcome| outcome.promoted as f64),
    Metric::published("pgdemote", "pages", |outcome| outcome.demoted as f64),
    Metric::published("thp_migration_success", "folios", |outcome| {
        (outcome.promoted + outcome.demoted) as f64
    }),
    Metric::always("numa_hint_faults", "count", |outcome| outcome.hint_faults as f64),
    Metric::always("pghot_recorded_accesses", "count", |outcome| outcome.recorded as f64),
    Metric::published("recorded_not_promoted", "count", |outcome| {
        outcome.recorded.saturating_sub(outcome.promoted) as f64
    }),
    Metric::published("pghot_recorded_hintfaults", "count", |outcome| {
        outcome.hot.by_source[0] as f64
    }),
    Metric::published("pghot_recorded_hwhints", "count", |outcome| outcome.hot.by_source[1] as f64),
    Metric::always("hwhint_total_events", "count", |outcome| outcome.hw_events as f64),
    Metric::published("hwhint_useful_events", "count", |outcome| outcome.hot.useful_hw as f64),
    Metric::published("pgpromote_candidate", "pages", |outcome| outcome.hot.candidates as f64),
    Metric::published("pgpromote_candidate_nrl", "pages", |outcome| {
        outcome.hot.candidates_unlimited as f64
    }),
];

impl Metric {
    /// One that is shown of every run.
    const fn always(name: &'static str, unit: &'static str, value: fn(&Outcome) -> f64) -> Self {
        Self { name, unit, always: true, value }
    }

    /// One that is shown where it was published.
    const fn published(name: &'static str, unit: &'static str, value: fn(&Outcome) -> f64) -> Self {
        Self { name, unit, always: false, value }
    }

    /// The metric of that name.
    ///
    /// # Errors
    /// A sentence that lists the names there are.
    pub(super) fn of(name: &str) -> Result<&'static Self, String> {
        METRICS.iter().find(|metric| metric.name == name).ok_or_else(|| {
            let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            format!("no metric is called `{name}`; there are {}", names.join(", "))
        })
    }

    /// Its value in a simulation.
    pub(super) fn value(&self, outcome: &Outcome) -> f64 {
        (self.value)(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_metric_is_answered_with_the_known_ones() {
        let error = Metric::of("promoted").unwrap_err();
        assert!(error.contains("pgpromote_success"), "{error}");
    }

    #[test]
    fn what_was_recorded_and_not_promoted_is_a_difference() {
        let outcome = Outcome { recorded: 7, promoted: 4, ..Outcome::default() };
        let value = Metric::of("recorded_not_promoted").unwrap().value(&outcome);
        assert!((value - 3.0).abs() < f64::EPSILON);
    }
}
