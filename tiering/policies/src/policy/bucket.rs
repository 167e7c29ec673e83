//! A token bucket: how much may be moved, and when.
//!
//! The one idea: whole numbers only, and time is passed in. Over any stretch of `t` seconds no more
//! than `rate * t + burst` is given out.

use crate::SECOND;

/// Tokens that come at a rate, up to a burst.
#[derive(Debug, Clone)]
pub struct Bucket {
    rate: u64,
    burst: u64,
    tokens: u64,
    /// When `tokens` was right, and what was left of a token then, in `1 / SECOND`.
    at: u64,
    rest: u64,
}

impl Bucket {
    /// An empty one at time 0; neither number is 0.
    pub const fn new(rate: u64, burst: u64) -> Self {
        Self { rate, burst, tokens: 0, at: 0, rest: 0 }
    }

    /// The most that can be taken at once.
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    fn fill(&mut self, now: u64) {
        let passed = now.saturating_sub(self.at);
        let come = u128::from(passed) * u128::from(self.rate) + u128::from(self.rest);
        let whole = u64::try_from(come / u128::from(SECOND)).unwrap_or(u64::MAX);
        self.rest = u64::try_from(come % u128::from(SECOND)).unwrap_or(0);
        self.tokens = self.tokens.saturating_add(whole);
        if self.tokens >= self.burst {
            (self.tokens, self.rest) = (self.burst, 0);
        }
        self.at = self.at.max(now);
    }

    /// Takes so much now, or nothing.
    pub fn take(&mut self, now: u64, amount: u64) -> bool {
        self.fill(now);
        let enough = self.tokens >= amount;
        if enough {
            self.tokens -= amount;
        }
        enough
    }

    /// Takes so much, which is no more than the burst, as soon as it is there: returns when.
    pub fn take_when(&mut self, now: u64, amount: u64) -> u64 {
        self.fill(now);
        let now = now.max(self.at);
        if self.tokens >= amount {
            self.tokens -= amount;
            return now;
        }
        let missing = u128::from(amount - self.tokens) * u128::from(SECOND);
        let wait = missing.saturating_sub(u128::from(self.rest)).div_ceil(u128::from(self.rate));
        let then = now.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX));
        self.fill(then);
        self.tokens = self.tokens.saturating_sub(amount);
        then
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_stretch_gets_more_than_rate_and_burst(
            rate in 1_u64..1_000_000_000,
            burst in 1_u64..1_000_000,
            wishes in prop::collection::vec(
                (0_u64..2 * SECOND, 1_u64..1_000_000, any::<bool>()),
                1..50,
            ),
        ) {
            let mut bucket = Bucket::new(rate, burst);
            let mut given: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            for (pause, amount, wait) in wishes {
                now += pause;
                let amount = amount.min(burst);
                if wait {
                    now = bucket.take_when(now, amount);
                    given.push((now, amount));
                } else if bucket.take(now, amount) {
                    given.push((now, amount));
                }
            }
            for from in 0..given.len() {
                let mut sum = 0_u128;
                for &(at, amount) in &given[from..] {
                    sum += u128::from(amount);
                    let passed = u128::from(at - given[from].0);
                    let most = passed * u128::from(rate) / u128::from(SECOND) + u128::from(burst);
                    prop_assert!(sum <= most + 1, "{sum} of {most}");
                }
            }
        }
    }

    #[test]
    fn waiting_is_as_short_as_the_rate_allows() {
        let mut bucket = Bucket::new(1000, 500);
        assert_eq!(bucket.take_when(0, 500), SECOND / 2);
        assert!(!bucket.take(SECOND / 2, 1));
        assert!(bucket.take(SECOND / 2 + 1_000_000, 1));
    }
}
