//! The scheduler's limits on promotion: how recent an access must be, and how many pages a second.
//!
//! The one idea: pghot's daemon asks the scheduler what hint faults ask it, so the rule is written
//! once. Time is in whatever unit the caller counts in, as long as it says how many are a second.
//! [`Gate`] is the rule with what is counted of it.

/// Seconds between adjustments of the threshold.
const ADJUST_S: u64 = 60;
/// Steps from 0 to twice the default threshold: `NUMA_MIGRATION_ADJUST_STEPS`.
const STEPS: u64 = 16;

/// What was let go so far, and what may be.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    /// Units of time in a second.
    second: u64,
    /// How old an access may be.
    pub(crate) threshold: u64,
    /// Candidates so far, and what they were at the last adjustment and second.
    candidates: u64,
    adjusted: (u64, u64),
    started: (u64, u64),
}

impl Limit {
    pub(crate) const fn new(second: u64, threshold: u64) -> Self {
        Self { second, threshold, candidates: 0, adjusted: (0, 0), started: (0, 0) }
    }

    /// Starts to adjust anew, from this threshold.
    pub(crate) const fn restart(&mut self, threshold: u64, now: u64) {
        self.threshold = threshold;
        self.adjusted = (now, self.candidates);
    }

    /// `numa_promotion_adjust_threshold`, once a minute: fewer candidates than `rate` pages a
    /// second allow raise the threshold, more lower it.
    pub(crate) fn adjust(&mut self, default: u64, rate: u64, now: u64) {
        if now < self.adjusted.0 + ADJUST_S * self.second {
            return;
        }
        let unit = default * 2 / STEPS;
        let reference = rate * ADJUST_S;
        let come = self.candidates - self.adjusted.1;
        let threshold = if come > reference * 11 / 10 {
            self.threshold.saturating_sub(unit).max(unit)
        } else if come < reference * 9 / 10 {
            (self.threshold + unit).min(default * 2)
        } else {
            self.threshold
        };
        self.restart(threshold, now);
    }

    /// Counts a candidate; whether `rate` pages a second allow it.
    pub(crate) const fn admits(&mut self, rate: u64, now: u64) -> bool {
        self.candidates += 1;
        if now >= self.started.0 + self.second {
            self.started = (now, self.candidates);
        }
        self.candidates - self.started.1 < rate
    }
}

/// Whether a page may go, and the counters of the answers.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    /// The limit.
    pub(crate) limit: Limit,
    /// Pages that went without one, for the target had room: `pgpromote_candidate_nrl`.
    pub(crate) unlimited: u64,
    /// Pages that asked it: `pgpromote_candidate`, which counts those, too, that it turned away.
    pub(crate) limited: u64,
}

impl Gate {
    pub(crate) const fn new(second: u64, threshold: u64) -> Self {
        Self { limit: Limit::new(second, threshold), unlimited: 0, limited: 0 }
    }

    /// Whether a page that was accessed so long ago may go: any where the target has room; else one
    /// that is younger than the threshold, `rate` of them a second.
    pub(crate) fn admits(
        &mut self,
        default: u64,
        rate: u64,
        has_room: bool,
        now: u64,
        age: u64,
    ) -> bool {
        if has_room {
            self.limit.threshold = 0;
            self.unlimited += 1;
            return true;
        }
        if self.limit.threshold == 0 {
            self.limit.restart(default, now);
        }
        self.limit.adjust(default, rate, now);
        let is_recent = age < self.limit.threshold;
        self.limited += u64::from(is_recent);
        is_recent && self.limit.admits(rate, now)
    }
}
