//! Budgets: how shares of a whole are met by choices that are made one after the other.

/// Takes, each time, the entry that is furthest behind its share of all that was taken.
#[derive(Debug)]
pub(super) struct Budget {
    shares: &'static [u64],
    total: u64,
    taken: Vec<u64>,
    sum: u64,
}

impl Budget {
    /// Nothing taken yet; not all shares are 0.
    pub(super) fn new(shares: &'static [u64]) -> Self {
        Self { shares, total: shares.iter().sum(), taken: vec![0; shares.len()], sum: 0 }
    }

    /// The index of the entry to take, for something that weighs so much.
    pub(super) fn take(&mut self, weight: u64) -> usize {
        self.sum += weight;
        let behind = |index: usize| {
            i128::from(self.shares[index]) * i128::from(self.sum)
                - i128::from(self.taken[index]) * i128::from(self.total)
        };
        // Of equals the first, so that the choice is the same everywhere.
        let first = |best, index| if behind(index) > behind(best) { index } else { best };
        let best = (1..self.shares.len()).fold(0, first);
        self.taken[best] += weight;
        best
    }
}

/// A budget of lengths from 1, in buckets; inside one they are spread evenly.
#[derive(Debug)]
pub(super) struct Lengths {
    budget: Budget,
    /// The longest of each bucket.
    ends: &'static [u64],
    turns: Vec<u32>,
}

impl Lengths {
    /// Nothing taken yet; one share for each bucket.
    pub(super) fn new(ends: &'static [u64], shares: &'static [u64]) -> Self {
        debug_assert_eq!(ends.len(), shares.len());
        Self { budget: Budget::new(shares), ends, turns: vec![0; ends.len()] }
    }

    /// A length, for something that weighs so much.
    pub(super) fn take(&mut self, weight: u64) -> u64 {
        let bucket = self.budget.take(weight);
        let turn = &mut self.turns[bucket];
        *turn = turn.wrapping_add(1);
        // Multiples of the golden ratio of 2^32 visit a range evenly, wherever one stops.
        let part = u64::from(turn.wrapping_mul(0x9e37_79b1));
        let before = bucket.checked_sub(1).map_or(0, |last| self.ends[last]);
        before + 1 + ((part * (self.ends[bucket] - before)) >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_met_whatever_the_weights_are() {
        let mut budget = Budget::new(&[1, 0, 6, 3]);
        let mut sums = [0; 4];
        for weight in (1..=1000).rev() {
            sums[budget.take(weight)] += weight;
        }
        let total: u64 = sums.iter().sum();
        for (sum, share) in sums.into_iter().zip([1, 0, 6, 3]) {
            assert!(sum.abs_diff(total * share / 10) < 20, "{sums:?}");
        }
    }

    #[test]
    fn lengths_fill_their_bucket() {
        let mut lengths = Lengths::new(&[4, 9], &[0, 1]);
        let mut counts = [0; 10];
        for _ in 0..1000 {
            counts[usize::try_from(lengths.take(1)).unwrap()] += 1;
        }
        assert_eq!(counts[..5], [0; 5]);
        assert!(counts[5..].iter().all(|&count| (195..=205).contains(&count)), "{counts:?}");
    }
}
