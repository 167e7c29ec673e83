//! What is compared with published results: one row for each counter of a mail.
//!
//! The names are the kernel's counters; times are in seconds and end in `_s`.

use pagelab_tier::Outcome;

/// A row of [`METRICS`].
#[derive(Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit, in words.
    pub unit: &'static str,
    /// Whether it is shown of every run, published or not.
    pub always: bool,
    value: fn(&Outcome) -> f64,
}

/// Everything that can be compared.
pub const METRICS: &[Metric] = &[
    Metric { name: "time_s", unit: "s", always: true, value: Outcome::seconds },
    Metric {
        name: "pgpromote_success",
        unit: "pages",
        always: true,
        value: |outcome| outcome.promoted as f64,
    },
    Metric {
        name: "pgdemote",
        unit: "pages",
        always: false,
        value: |outcome| outcome.demoted as f64,
    },
    Metric {
        name: "thp_migration_success",
        unit: "folios",
        always: false,
        value: |outcome| (outcome.promoted + outcome.demoted) as f64,
    },
    Metric {
        name: "numa_hint_faults",
        unit: "count",
        always: true,
        value: |outcome| outcome.hint_faults as f64,
    },
    Metric {
        name: "pghot_recorded_accesses",
        unit: "count",
        always: true,
        value: |outcome| outcome.recorded as f64,
    },
    Metric {
        name: "recorded_not_promoted",
        unit: "count",
        always: false,
        value: |outcome| outcome.recorded.saturating_sub(outcome.promoted) as f64,
    },
    Metric {
        name: "pghot_recorded_hintfaults",
        unit: "count",
        always: false,
        value: |outcome| outcome.hint_faults as f64,
    },
    Metric {
        name: "pghot_recorded_hwhints",
        unit: "count",
        always: false,
        value: |outcome| outcome.hw_events as f64,
    },
    Metric {
        name: "hwhint_total_events",
        unit: "count",
        always: true,
        value: |outcome| outcome.hw_events as f64,
    },
];

impl Metric {
    /// The metric of that name.
    ///
    /// # Errors
    /// A sentence that lists the names there are.
    pub fn of(name: &str) -> Result<&'static Self, String> {
        METRICS.iter().find(|metric| metric.name == name).ok_or_else(|| {
            let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            format!("no metric is called `{name}`; there are {}", names.join(", "))
        })
    }

    /// Its value in a simulation.
    pub fn value(&self, outcome: &Outcome) -> f64 {
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
