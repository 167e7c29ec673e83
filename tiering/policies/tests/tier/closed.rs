//! Closed forms: what a simulation of uniform accesses should come to, without simulating.
//!
//! The one idea: with uniform accesses and every sample a promotion, the share of pages that are
//! still slow decays exponentially in accesses, and time is an integral over that. `model.rs` holds
//! the simulator against these.

/// A machine with two tiers and a program that accesses every page alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Uniform {
    /// Seconds with everything in the top tier.
    pub(crate) fast: f64,
    /// Seconds with everything in the lower tier.
    pub(crate) slow: f64,
    /// The congestion exponent.
    pub(crate) exponent: f64,
    /// Pages.
    pub(crate) pages: f64,
    /// Accesses in all.
    pub(crate) accesses: f64,
}

impl Uniform {
    /// Seconds for all accesses with this share in the lower tier.
    pub(crate) fn seconds(&self, share: f64) -> f64 {
        self.fast + (self.slow - self.fast) * libm::pow(share, self.exponent)
    }

    /// Samples for each page.
    pub(crate) fn samples_per_page(&self, period: f64) -> f64 {
        self.accesses / period / self.pages
    }

    /// Pages that are sampled at least once, and so promoted at threshold 1.
    pub(crate) fn promoted(&self, period: f64) -> f64 {
        self.pages * -libm::expm1(-self.samples_per_page(period))
    }

    /// Share of the accesses that go to the lower tier, at threshold 1.
    pub(crate) fn slow_share(&self, period: f64) -> f64 {
        let samples = self.samples_per_page(period);
        -libm::expm1(-samples) / samples
    }

    /// Seconds at threshold 1, if promotion takes no time.
    pub(crate) fn sampled(&self, period: f64) -> f64 {
        let decay = self.exponent * self.samples_per_page(period);
        self.fast + (self.slow - self.fast) * -libm::expm1(-decay) / decay
    }

    /// Seconds where a scan that starts after `delay` seconds promotes all pages evenly over
    /// `span` seconds.
    pub(crate) fn scanned(&self, delay: f64, span: f64) -> f64 {
        // The work done in the span: the integral of the speed, by Simpson's rule.
        const PARTS: u32 = 1000;
        let speed = |at: u32| 1.0 / self.seconds(1.0 - f64::from(at) / f64::from(PARTS));
        let mut sum = speed(0) + speed(PARTS);
        for at in 1..PARTS {
            sum += if at % 2 == 1 { 4.0 } else { 2.0 } * speed(at);
        }
        let done = delay / self.slow + span * sum / (3.0 * f64::from(PARTS));
        delay + span + (1.0 - done) * self.fast
    }

    /// The period at which what sampling costs equals what it saves, for a sample that takes
    /// `sample_seconds` from one of `threads` threads.
    pub(crate) fn best_period(&self, sample_seconds: f64, threads: f64) -> f64 {
        let slower = self.slow - self.fast;
        let root = sample_seconds * self.exponent / (threads * self.pages * slower);
        self.accesses * libm::sqrt(root)
    }
}

/// Whether two counts of a random process may be the same: how many standard deviations of a count
/// of pages that are hit at least once lie between them.
pub(crate) fn deviations(pages: f64, samples: f64, hit: f64) -> f64 {
    let missed = libm::exp(-samples / pages);
    // The variance of occupied cells when `samples` balls fall into `pages` of them.
    let variance = pages * missed * (1.0 - (1.0 + samples / pages) * missed);
    (hit - pages * (1.0 - missed)) / libm::sqrt(variance.max(f64::MIN_POSITIVE))
}

const PROGRAM: Uniform =
    Uniform { fast: 20.0, slow: 100.0, exponent: 1.0, pages: 1e6, accesses: 1e10 };

fn near(left: f64, right: f64) {
    assert!((left / right - 1.0).abs() < 1e-6, "{left} is not {right}");
}

#[test]
fn the_integral_is_the_one_of_the_curve() {
    for exponent in [1.0, 2.5, 5.5] {
        let program = Uniform { exponent, ..PROGRAM };
        let samples = program.samples_per_page(5000.0);
        let parts = 100_000_u32;
        let at = |part: u32| (f64::from(part) + 0.5) / f64::from(parts);
        let sum: f64 = (0..parts).map(|part| program.seconds((-samples * at(part)).exp())).sum();
        near(program.sampled(5000.0), sum / f64::from(parts));
    }
}

#[test]
fn without_a_difference_of_speed_a_scan_changes_nothing() {
    let program = Uniform { slow: 20.0, ..PROGRAM };
    near(program.scanned(1.0, 5.0), 20.0);
}

#[test]
fn the_best_period_is_where_the_sum_is_least() {
    let best = PROGRAM.best_period(2e-6, 64.0);
    let total = |period: f64| 80.0 / PROGRAM.samples_per_page(period) + 1e10 / period * 2e-6 / 64.0;
    assert!(total(best) < total(best * 1.01) && total(best) < total(best * 0.99));
}

#[test]
fn the_expected_count_is_no_deviation_away() {
    let expected = PROGRAM.promoted(5000.0);
    assert!(deviations(1e6, 2e6, expected).abs() < 1e-6);
    // sqrt(1e6 * e^-2 * (1 - 3 e^-2)) = 283.5
    assert!((deviations(1e6, 2e6, expected + 283.5) - 1.0).abs() < 0.01);
}
