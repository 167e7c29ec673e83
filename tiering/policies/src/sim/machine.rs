//! The machine and the program: what policies may look at, and what things cost now.
//!
//! The one idea: everything that is asked while something else changes is here, so that the loop in
//! [`super::engine`] can lend it out while it changes a source or the policy.

use super::{curve::Load, places::Places, scenario::Scenario, work::Pattern};
use crate::policy::{Future, Prices, World};

/// The machine and the program: what policies may look at, and where it all is.
#[derive(Debug)]
pub(super) struct Machine<'s> {
    pub(super) scenario: &'s Scenario,
    pub(super) pattern: Pattern,
    pub(super) places: Places,
    pub(super) now: u64,
    /// Accesses so far, and in all.
    pub(super) done: f64,
    pub(super) total: f64,
    pub(super) prices: Prices,
    pub(super) period: u64,
}

impl Machine<'_> {
    pub(super) fn world(&self) -> World<'_> {
        World {
            now: self.now,
            nodes: &self.places.nodes,
            place: &self.places.place,
            below: &self.places.below,
            free: &self.places.free,
            prices: &self.prices,
            period: self.period,
            future: Some(self),
        }
    }

    pub(super) const fn is_sequence(&self) -> bool {
        !matches!(self.pattern, Pattern::Random(_))
    }

    fn load(&self) -> Load {
        let Scenario { threads, stores, .. } = *self.scenario;
        Load { accesses: self.total, threads: f64::from(threads), stores }
    }

    /// Shares of the traffic by class, on average until the access `to`.
    pub(super) fn shares(&self, to: f64) -> Vec<f64> {
        let mut shares = vec![0.0; self.places.shares().len()];
        let place = &self.places.place;
        let is_window = self.pattern.window(self.done, to, |page, accesses| {
            self.places.spread(page, place[page as usize], accesses, &mut shares);
        });
        if !is_window {
            return self.places.shares().to_vec();
        }
        let sum: f64 = shares.iter().sum();
        let sum = if sum > 0.0 { sum } else { 1.0 };
        shares.iter().map(|share| share / sum).collect()
    }

    /// Accesses a nanosecond at these shares.
    pub(super) fn speed(&self, shares: &[f64]) -> f64 {
        self.total / (self.scenario.curve.seconds(shares, self.load()) * 1e9)
    }

    /// What an access saves now when it goes to the top tier, and what moving costs.
    pub(super) fn reprice(&mut self) {
        let shares = self.places.shares();
        let last = shares.len() - 1;
        let lower: f64 = shares[1..last].iter().sum();
        let step = lower.min(0.01);
        let curve = &self.scenario.curve;
        if step > 1e-9 {
            let mut nearer = shares.to_vec();
            nearer[0] += step;
            for share in &mut nearer[1..last] {
                *share -= step * *share / lower;
            }
            let seconds = |shares: &[f64]| curve.seconds(shares, self.load());
            let saved = (seconds(shares) - seconds(&nearer)) / step;
            self.prices.saved_ns = saved / self.total * 1e9;
        }
        self.prices.latency_ns = curve.latencies(shares, self.load());
    }

    /// Nanoseconds of run time that moving so many pages at once takes from the program.
    pub(super) fn toll(&self, pages: f64) -> f64 {
        let mover = &self.scenario.mover;
        mover.flush_ns as f64 + pages * mover.copy_accesses * self.slow_ns()
    }

    /// Accesses to a page that pay for having moved it.
    pub(super) fn pays(&self) -> f64 {
        let mut shares = vec![0.0; self.places.shares().len()];
        shares[0] = 1.0;
        let saved = self.slow_ns() - 1.0 / self.speed(&shares);
        if saved > 0.0 { (self.prices.move_ns / saved).max(0.5) } else { f64::INFINITY }
    }

    /// Nanoseconds of run time for an access with everything in the last tier.
    fn slow_ns(&self) -> f64 {
        let mut shares = vec![0.0; self.places.shares().len()];
        let last = shares.len() - 2;
        shares[last] = 1.0;
        1.0 / self.speed(&shares)
    }
}

impl Future for Machine<'_> {
    fn phase(&self) -> u64 {
        self.pattern.phase() as u64
    }

    fn accesses(&self) -> Vec<f64> {
        let end = self.pattern.change().min(self.total);
        let pages = 0..self.pattern.pages();
        pages.map(|page| self.pattern.expected(page, self.done, end)).collect()
    }
}
