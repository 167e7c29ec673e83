//! Histograms whose buckets are powers of two.
//!
//! The one idea: nearly all values fit into a byte. Those are kept elsewhere and counted here many
//! at a time, by comparisons: a counter that is found by its index waits until it was written.

/// One bucket of a histogram that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Bucket {
    /// The smallest value that it holds, a power of two.
    pub min: u64,
    /// The largest value that it holds, `2 * min - 1`.
    pub max: u64,
    /// How many values it holds.
    pub count: u64,
}

/// Most bytes whose counts fit into bytes.
const PIECE: usize = 128;

/// Counts of values from 1 on; bucket `i` holds `2^i` to `2^(i+1) - 1`. Zeros are not counted.
#[derive(Debug)]
pub(super) struct Values([u64; 64]);

impl Values {
    pub(super) const fn new() -> Self {
        Self([0; 64])
    }

    /// The byte to keep for [`Self::count`]; a value that does not fit is counted at once.
    #[inline(always)]
    pub(super) fn near(&mut self, value: u64) -> u8 {
        u8::try_from(value).unwrap_or_else(|_| self.far(value))
    }

    #[cold]
    #[inline(never)]
    fn far(&mut self, value: u64) -> u8 {
        self.0[value.ilog2() as usize] += 1;
        0
    }

    /// Counts the first `length` values.
    pub(super) fn count<const N: usize>(&mut self, values: &mut [u8; N], length: usize) {
        const { assert!(N.is_multiple_of(PIECE)) }
        values[length..].fill(0);
        for piece in values.as_chunks::<PIECE>().0 {
            let at_least = |least: u8| {
                u64::from(piece.iter().fold(0, |sum: u8, value| sum + u8::from(*value >= least)))
            };
            let mut larger = 0;
            for bucket in (0..u8::BITS as usize).rev() {
                let all = at_least(1 << bucket);
                self.0[bucket] += all - larger;
                larger = all;
            }
        }
    }

    /// Counts so many ones.
    pub(super) fn count_ones(&mut self, count: u64) {
        self.0[0] += count;
    }

    /// Counts one value; zeros are not counted.
    pub(super) fn add_one(&mut self, value: u64) {
        if let Some(bucket) = value.checked_ilog2() {
            self.0[bucket as usize] += 1;
        }
    }

    /// Takes one value back, where there is one like it.
    pub(super) fn take_one(&mut self, value: u64) {
        if let Some(bucket) = value.checked_ilog2() {
            let count = &mut self.0[bucket as usize];
            *count = count.saturating_sub(1);
        }
    }

    /// Counts by power of two, from the zeroth on.
    pub(super) const fn by_power(&self) -> &[u64; 64] {
        &self.0
    }

    /// Adds such counts.
    pub(super) fn add_all(&mut self, by_power: &[u64]) {
        for (count, more) in self.0.iter_mut().zip(by_power) {
            *count = count.saturating_add(*more);
        }
    }

    /// How many values were counted.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The buckets that are not empty, in ascending order.
    pub(super) fn buckets(&self) -> Vec<Bucket> {
        let bucket = |(at, &count): (usize, &u64)| {
            let min = 1 << at;
            Bucket { min, max: min | (min - 1), count }
        };
        self.0.iter().enumerate().filter(|(_, count)| **count > 0).map(bucket).collect()
    }
}

/// `part / whole`, and 0 where there is no whole.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_borders_of_buckets_are_powers_of_two() {
        let values = [0, 1, 2, 3, 4, 128, 255, 256, 511, 1 << 63, u64::MAX];
        let (mut histogram, mut kept) = (Values::new(), [9; 2 * PIECE]);
        for (byte, value) in kept.iter_mut().zip(values) {
            *byte = histogram.near(value);
        }
        histogram.count(&mut kept, values.len());
        histogram.count_ones(2);
        let expected = [(1, 3), (2, 2), (4, 1), (128, 2), (256, 2), (1 << 63, 2)];
        let bucket = |(min, count)| Bucket { min, max: min + (min - 1), count };
        assert_eq!(histogram.buckets(), expected.map(bucket));
        assert_eq!(histogram.total(), 12);
    }

    #[test]
    fn a_full_batch_is_counted() {
        let mut histogram = Values::new();
        histogram.count(&mut [200; 4 * PIECE], 4 * PIECE);
        assert_eq!(histogram.buckets(), [Bucket { min: 128, max: 255, count: 4 * PIECE as u64 }]);
    }
}
