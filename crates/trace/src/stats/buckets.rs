//! Histograms whose buckets are powers of two.

use serde::Serialize;

/// One bucket of a histogram that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// The smallest value that it holds, a power of two.
    pub min: u64,
    /// The largest value that it holds, `2 * min - 1`.
    pub max: u64,
    /// How many values it holds.
    pub count: u64,
}

/// Values that fit into a byte fall into the first buckets, as many as a byte has bits.
const NEAR: usize = u8::BITS as usize;
/// Most bytes that are counted in a byte.
const PIECE: usize = 128;

/// Counts of values from 1 on; bucket `i` holds `2^i` to `2^(i+1) - 1`. Zeros are not counted.
///
/// Nearly all values are small. They are kept as bytes and counted many at a time, because a
/// counter that is found by its index waits until it was written the last time.
#[derive(Debug, Clone)]
pub(super) struct Log2([u64; 64]);

impl Log2 {
    pub(super) const fn new() -> Self {
        Self([0; 64])
    }

    /// Counts a value above 0 by itself.
    pub(super) fn add(&mut self, value: u64) {
        self.0[value.ilog2() as usize] += 1;
    }

    /// Counts the value 1 so many times.
    pub(super) fn add_ones(&mut self, count: u64) {
        self.0[0] += count;
    }

    /// Counts values.
    pub(super) fn count(&mut self, values: &mut [u8], length: usize) {
        values[length..].fill(0);
        for piece in values[..length.next_multiple_of(PIECE)].as_chunks::<PIECE>().0 {
            // Bytes, so that the compiler compares many at once.
            let at_least = |least: u8| {
                u64::from(piece.iter().fold(0, |sum: u8, value| sum + u8::from(*value >= least)))
            };
            let mut larger = 0;
            for bucket in (0..NEAR).rev() {
                let all = at_least(1 << bucket);
                self.0[bucket] += all - larger;
                larger = all;
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_borders_of_buckets_are_powers_of_two() {
        let mut histogram = Log2::new();
        for value in [1, 2, 3, 4, 255, 256, 511, 1 << 63, u64::MAX] {
            histogram.add(value);
        }
        histogram.add_ones(2);
        let expected =
            [(1, 1, 3), (2, 3, 2), (4, 7, 1), (128, 255, 1), (256, 511, 2), (1 << 63, u64::MAX, 2)];
        assert_eq!(
            histogram.buckets(),
            expected.map(|(min, max, count)| Bucket { min, max, count })
        );
        assert_eq!(histogram.total(), 11);
    }
}
