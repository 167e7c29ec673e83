//! How long all accesses take, for a placement of the pages.
//!
//! The one idea: a placement matters through shares of traffic alone. Shares are given as a slice:
//! the top tier first, then each lower tier, and last what goes to a top-tier node of other
//! processors. Every form answers in seconds for the whole work, as if the placement stayed.

/// Seconds for all accesses, by shares of traffic.
#[derive(Debug, Clone, PartialEq)]
pub enum Curve {
    /// `fast + sum of (level.seconds - fast) * share^exponent`: the two ends of each tier are
    /// measured, and an exponent above 1 says that a tier is faster per access when less loaded.
    Power {
        /// Seconds with everything in the top tier.
        fast: f64,
        /// Each lower tier, from the top down.
        lower: Vec<Level>,
        /// Top-tier memory of other processors; `None`: as fast as one's own.
        remote: Option<Level>,
    },
    /// Measured at some shares of the lower tier, straight lines between them: two tiers only.
    Table(Vec<(f64, f64)>),
    /// From latencies, bandwidths and the accesses that are in flight.
    Physical {
        /// Each tier, from the top down.
        tiers: Vec<Loaded>,
        /// Nanoseconds that a remote node adds to an access.
        remote_ns: f64,
        /// Accesses in flight for each thread.
        in_flight: f64,
        /// Nanoseconds of computing between two accesses that wait for each other.
        think_ns: f64,
    },
}

/// Everything in one tier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Seconds with all traffic in this tier.
    pub seconds: f64,
    /// The congestion exponent, 1 or more.
    pub exponent: f64,
}

/// A tier of the physical form: latency that grows with load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loaded {
    /// Nanoseconds of a load with nothing else going on.
    pub idle_ns: f64,
    /// Bytes a second when it is saturated by reads.
    pub bytes_per_second: f64,
    /// What a written line costs in bandwidth, in lines that are read.
    pub write_weight: f64,
}

/// Bytes of a cache line.
const LINE: f64 = 64.0;

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) accesses: f64,
    pub(super) threads: f64,
    pub(super) stores: f64,
}

impl Curve {
    /// Seconds for all accesses with these shares of traffic.
    pub(super) fn seconds(&self, shares: &[f64], load: Load) -> f64 {
        match self {
            Self::Power { fast, lower, remote } => {
                let last = shares.len() - 1;
                let levels = lower.iter().zip(&shares[1..last]);
                let mut sum = 0.0;
                for (level, &share) in levels.chain(remote.iter().zip(&shares[last..])) {
                    sum += (level.seconds - fast) * power(share, level.exponent);
                }
                fast + sum
            }
            Self::Table(points) => interpolate(points, shares[1..shares.len() - 1].iter().sum()),
            Self::Physical { .. } => load.accesses / self.throughput(shares, load),
        }
    }

    /// Nanoseconds of an access to each tier, loaded as these shares load it; physical form only.
    pub(super) fn latencies(&self, shares: &[f64], load: Load) -> [f64; 4] {
        let mut latencies = [0.0; 4];
        if let Self::Physical { tiers, .. } = self {
            let rate = self.throughput(shares, load);
            for (latency, (index, tier)) in latencies.iter_mut().zip(tiers.iter().enumerate()) {
                *latency = tier.latency(rate * traffic(shares, index), load.stores);
            }
        }
        latencies
    }

    /// Nanoseconds of an access to each tier with nothing else going on: as measured, or what an
    /// access of a thread takes that waits for each of them with everything there.
    pub(super) fn idle_latencies(&self, tiers: usize, load: Load) -> Vec<f64> {
        if let Self::Physical { tiers, .. } = self {
            return tiers.iter().map(|tier| tier.idle_ns).collect();
        }
        let all_in = |tier: usize| {
            let mut shares = vec![0.0; tiers + 1];
            shares[tier] = 1.0;
            self.seconds(&shares, load) * 1e9 * load.threads / load.accesses
        };
        (0..tiers).map(all_in).collect()
    }

    /// Accesses a second: what is in flight divided by the latency that it causes.
    ///
    /// More throughput means more latency means less throughput: the two meet once, and halving
    /// finds where.
    fn throughput(&self, shares: &[f64], load: Load) -> f64 {
        let Self::Physical { tiers, remote_ns, in_flight, think_ns } = self else { return 1.0 };
        let last = shares.len() - 1;
        let sustained = |rate: f64| {
            let mut latency = think_ns + shares[last] * remote_ns;
            for (index, tier) in tiers.iter().enumerate() {
                let share = traffic(shares, index);
                latency += share * tier.latency(rate * share, load.stores);
            }
            load.threads * in_flight / (latency * 1e-9)
        };
        let (mut low, mut high) = (0.0, sustained(0.0));
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if sustained(middle) > middle {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    }
}

/// The share of a tier of the physical form: the top tier is what is near and what is remote.
fn traffic(shares: &[f64], tier: usize) -> f64 {
    if tier == 0 { shares[0] + shares[shares.len() - 1] } else { shares[tier] }
}

impl Loaded {
    /// Nanoseconds of an access when there are `rate` of them a second, as a queue has it.
    fn latency(&self, rate: f64, stores: f64) -> f64 {
        let lines = 1.0 + stores * self.write_weight;
        let load = rate * LINE * lines / self.bytes_per_second;
        // Beyond 99.9 % the queue would be infinite; a thousandfold latency is as good.
        self.idle_ns / (1.0 - load.min(0.999))
    }
}

/// `share^exponent`; shares that are a rounding error below 0 are 0.
pub(crate) fn power(share: f64, exponent: f64) -> f64 {
    if share <= 0.0 {
        0.0
    } else if exponent.to_bits() == 1.0_f64.to_bits() {
        share
    } else {
        libm::pow(share, exponent)
    }
}

/// Straight lines between points that rise in the share.
fn interpolate(points: &[(f64, f64)], share: f64) -> f64 {
    let (first, last) = (points[0], points[points.len() - 1]);
    if share <= first.0 {
        return first.1;
    }
    for pair in points.windows(2) {
        let ((left, low), (right, high)) = (pair[0], pair[1]);
        if share <= right {
            return low + (high - low) * (share - left) / (right - left);
        }
    }
    last.1
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load { accesses: 1e9, threads: 64.0, stores: 0.5 };

    fn near(left: f64, right: f64) {
        assert!((left - right).abs() <= 1e-9 * right.abs(), "{left} is not {right}");
    }

    #[test]
    fn a_power_curve_meets_its_ends() {
        let lower = vec![Level { seconds: 100.0, exponent: 2.5 }];
        let curve = Curve::Power { fast: 20.0, lower, remote: None };
        near(curve.seconds(&[1.0, 0.0, 0.0], LOAD), 20.0);
        near(curve.seconds(&[0.0, 1.0, 0.0], LOAD), 100.0);
        near(curve.seconds(&[0.75, 0.25, 0.0], LOAD), 20.0 + 80.0 / 32.0);
        // 64 threads, each of which waits for 1e9 / 64 accesses.
        near(curve.idle_latencies(2, LOAD)[0], 1280.0);
        near(curve.idle_latencies(2, LOAD)[1], 6400.0);
    }

    #[test]
    fn remote_memory_has_a_level_of_its_own() {
        let lower = vec![Level { seconds: 100.0, exponent: 1.0 }];
        let remote = Some(Level { seconds: 40.0, exponent: 1.0 });
        let curve = Curve::Power { fast: 20.0, lower, remote };
        near(curve.seconds(&[0.5, 0.0, 0.5], LOAD), 30.0);
    }

    #[test]
    fn a_table_is_followed_in_straight_lines() {
        let curve = Curve::Table(vec![(0.0, 10.0), (0.5, 12.0), (1.0, 20.0)]);
        for (share, seconds) in [(0.0, 10.0), (0.25, 11.0), (0.75, 16.0), (1.0, 20.0)] {
            near(curve.seconds(&[1.0 - share, share, 0.0], LOAD), seconds);
        }
    }

    #[test]
    fn a_loaded_tier_is_slower_and_never_exceeds_its_bandwidth() {
        let tier =
            |idle_ns, bytes_per_second| Loaded { idle_ns, bytes_per_second, write_weight: 1.0 };
        let curve = Curve::Physical {
            tiers: vec![tier(100.0, 200e9), tier(300.0, 20e9)],
            remote_ns: 0.0,
            in_flight: 4.0,
            think_ns: 0.0,
        };
        let (fast, slow) =
            (curve.seconds(&[1.0, 0.0, 0.0], LOAD), curve.seconds(&[0.0, 1.0, 0.0], LOAD));
        assert!(slow > 3.0 * fast, "{slow} {fast}");
        let bytes = 1e9 * LINE * 1.5;
        assert!(bytes / slow <= 20e9, "{slow}");
        assert!(curve.idle_latencies(2, LOAD).iter().eq(&[100.0, 300.0]));
        let latencies = curve.latencies(&[0.0, 1.0, 0.0], LOAD);
        assert!(latencies[1] > 300.0 && latencies[0] < 101.0, "{latencies:?}");
    }
}
