//! Sampling by the processor: every so many accesses one is looked at.
//!
//! The one idea: between two events the placement stays, so a run of samples is drawn at once and
//! handed to the policy in batches. Positions are exact: a sequence is sampled at the access that
//! the period names.
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times below 2^53 ns")]

use super::{machine::Machine, scenario::Sampling};
use crate::{policy::Sample, random::Random};

/// Samples that are handed over at once.
const BATCH: usize = 512;

/// The state of the sampling hardware and its driver.
#[derive(Debug)]
pub(super) struct Sampler {
    sampling: Sampling,
    /// Accesses for one sample now.
    pub(super) period: u64,
    /// The number of the access that is sampled next.
    next: f64,
    random: Random,
    /// Which stretch of emptying the rings it is, and the samples in them.
    drain: u64,
    held: u64,
    /// Where the pages of a batch are drawn.
    pages: Vec<u32>,
    /// For each tier, whether its loads take long enough to be told.
    is_told: Vec<bool>,
    pub(super) events: u64,
    pub(super) dropped: u64,
}

/// A stretch of accesses at one speed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) from: f64,
    pub(super) to: f64,
    /// When the first of them happens, and accesses a nanosecond.
    pub(super) start_ns: f64,
    pub(super) speed: f64,
}

impl Stretch {
    /// When the access with this number happens.
    pub(super) fn at(&self, access: f64) -> u64 {
        let ns = self.start_ns + (access - self.from) / self.speed;
        // By way of a signed number: a processor without AVX-512 has no instruction for others.
        (ns as i64).max(0).cast_unsigned()
    }
}

impl Sampler {
    /// `latencies` are those of an access to each tier, in nanoseconds.
    pub(super) fn new(sampling: &Sampling, latencies: &[f64], seed: u64) -> Self {
        let period = sampling.period;
        Self {
            sampling: sampling.clone(),
            period,
            next: period as f64,
            random: Random::stream(seed, 1),
            drain: 0,
            held: 0,
            pages: vec![0; BATCH],
            is_told: latencies.iter().map(|ns| *ns >= sampling.latency_min_ns).collect(),
            events: 0,
            dropped: 0,
        }
    }

    /// Changes the period, within what the driver takes.
    pub(super) fn adjust(&mut self, period: u64, done: f64) {
        let Sampling { period_min, period_max, .. } = self.sampling;
        if period_min == 0 {
            return;
        }
        let period = period.clamp(period_min, period_max.max(period_min));
        if period != self.period {
            self.period = period;
            self.next = self.next.min(done + period as f64);
        }
    }

    /// Whether every sample arrives, whatever it is of.
    fn is_plain(&self) -> bool {
        let Sampling { loss, ring, bias, loads_only, latency_min_ns, .. } = self.sampling;
        loss <= 0.0 && ring == 0 && bias >= 1.0 && !loads_only && latency_min_ns <= 0.0
    }

    /// Counts the samples of a stretch that nobody looks at; nothing where their number is chance.
    pub(super) fn count(&mut self, stretch: Stretch) -> Option<u64> {
        if !self.is_plain() || self.sampling.jitter > 0 {
            return None;
        }
        // Whole numbers below 2^53: what a float makes of the division may be one off.
        let period = self.period as f64;
        let position = |samples: u64| self.next + samples as f64 * period;
        let mut samples = ((stretch.to - self.next) / period).max(0.0) as u64;
        while position(samples) < stretch.to {
            samples += 1;
        }
        while samples > 0 && position(samples - 1) >= stretch.to {
            samples -= 1;
        }
        self.next = position(samples);
        self.events += samples;
        Some(samples)
    }

    /// Draws the samples of a stretch; returns how many interrupts that were. Those of the top tier
    /// may be passed over where nobody wants them: how many is told after each batch.
    pub(super) fn run(
        &mut self,
        machine: &Machine<'_>,
        stretch: Stretch,
        wants_top: bool,
        mut sink: impl FnMut(&[Sample], u64),
    ) -> u64 {
        let plain = self.is_plain();
        let before = self.events + self.dropped;
        let mut batch = [Sample { at: 0, page: 0, node: 0, store: false }; BATCH];
        let mut told = [(0.0, 0); BATCH];
        // Nothing but pages is drawn: all pages of a batch can be drawn at once.
        let only = machine.places.only_accessor().filter(|_| plain && self.sampling.jitter == 0);
        while self.next < stretch.to {
            let (mut filled, mut passed) = (0, 0);
            if let Some(node) = only
                && self.next + (BATCH - 1) as f64 * (self.period as f64) < stretch.to
                && machine.pattern.draw_many(&mut self.random, &mut self.pages)
            {
                if wants_top {
                    for (slot, &page) in batch.iter_mut().zip(&self.pages) {
                        *slot = Sample { at: stretch.at(self.next), page, node, store: false };
                        self.next += self.period as f64;
                    }
                    filled = BATCH;
                } else {
                    // No branch: where the next page is, nobody can foresee.
                    for &page in &self.pages {
                        told[filled] = (self.next, page);
                        filled += usize::from(!machine.places.is_top(page));
                        self.next += self.period as f64;
                    }
                    for (slot, &(next, page)) in batch.iter_mut().zip(&told[..filled]) {
                        *slot = Sample { at: stretch.at(next), page, node, store: false };
                    }
                }
                passed = BATCH - filled;
            }
            while filled + passed < BATCH && self.next < stretch.to {
                let at = stretch.at(self.next);
                let (page, store) = machine.pattern.draw(self.next, &mut self.random);
                self.advance();
                if !plain && !self.arrives(machine, page, store, at) {
                    continue;
                }
                let node = machine.places.accessor(page, &mut self.random);
                batch[filled] = Sample { at, page, node, store: store.unwrap_or(false) };
                filled += 1;
            }
            self.events += (filled + passed) as u64;
            sink(&batch[..filled], passed as u64);
        }
        self.events + self.dropped - before
    }

    #[inline]
    fn advance(&mut self) {
        self.next += self.period as f64;
        let jitter = self.sampling.jitter;
        if jitter > 0 {
            let range = (2 * jitter + 1).min(u64::from(u32::MAX)) as u32;
            self.next += f64::from(self.random.below(range)) - jitter as f64;
        }
    }

    /// Whether a sampled access is one that counts, and its sample arrives.
    #[cold]
    fn arrives(&mut self, machine: &Machine<'_>, page: u32, store: Option<bool>, at: u64) -> bool {
        let Sampling { loss, ring, drain_ns, bias, loads_only, hits, latency_min_ns, .. } =
            self.sampling;
        let by_latency = latency_min_ns > 0.0;
        if (loads_only || by_latency)
            && store.unwrap_or_else(|| self.random.chance(machine.scenario.stores))
        {
            return false;
        }
        if by_latency
            && (!self.is_told[usize::from(machine.places.tier(page))] || self.random.chance(hits))
        {
            return false;
        }
        if bias < 1.0 && machine.places.is_top(page) && !self.random.chance(bias) {
            return false;
        }
        let drain = at / drain_ns.max(1);
        if drain != self.drain {
            (self.drain, self.held) = (drain, 0);
        }
        self.held += 1;
        if ring > 0 && self.held > ring || self.random.chance(loss) {
            self.dropped += 1;
            return false;
        }
        true
    }
}
