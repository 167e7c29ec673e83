//! How much of a count is chance.
//!
//! The one idea: a difference of 0.7 % says nothing by itself. The standard deviation of one run
//! follows from how the count comes about, in closed form, so no simulation is repeated for it.

use pagelab_tier::Outcome;

use super::preset::Chance;

impl Chance {
    /// The standard deviation of the count in one run; `simulated` is the count itself.
    pub fn deviation(self, outcome: &Outcome, simulated: f64) -> f64 {
        let variance = match self {
            Self::Occupancy => occupancy(outcome.pages as f64, outcome.hw_events as f64),
            Self::Poisson => simulated,
            Self::Geometric => {
                // Attempts beyond one for each page: failures, each as likely as the others.
                let pages = outcome.promoted.max(1) as f64;
                let success = (pages / simulated.max(pages)).min(1.0);
                pages * (1.0 - success) / (success * success)
            }
        };
        variance.max(0.0).sqrt()
    }
}

/// Variance of the number of pages hit by so many independent samples.
fn occupancy(pages: f64, samples: f64) -> f64 {
    if pages <= 0.0 {
        return 0.0;
    }
    let mean = samples / pages;
    let missed = (-mean).exp();
    pages * missed * (1.0 - (1.0 + mean) * missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hit_by_chance_scatter_as_balls_in_boxes_do() {
        // A hundred boxes and a hundred balls: variance 100 / e (1 - 2 / e).
        let variance = occupancy(100.0, 100.0);
        assert!(
            (variance - 100.0 * 0.367_879 * (1.0 - 2.0 * 0.367_879)).abs() < 1e-3,
            "{variance}"
        );
        assert!(occupancy(0.0, 5.0) < 1e-12 && occupancy(5.0, 0.0) < 1e-12);
    }

    #[test]
    fn attempts_scatter_by_how_often_they_fail() {
        let outcome = Outcome { promoted: 1000, pages: 1000, ..Outcome::default() };
        // 1000 pages at success 0.5: 2000 attempts, variance 1000 * 0.5 / 0.25.
        let deviation = Chance::Geometric.deviation(&outcome, 2000.0);
        assert!((deviation * deviation - 2000.0).abs() < 1e-6, "{deviation}");
        assert!(Chance::Geometric.deviation(&outcome, 1000.0) < 1e-9);
        assert!((Chance::Poisson.deviation(&outcome, 400.0) - 20.0).abs() < 1e-9);
    }
}
