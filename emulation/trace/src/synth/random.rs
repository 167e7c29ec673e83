//! Random numbers and permutations that are the same on every machine and in every version.
//!
//! The one idea: a generated trace is named by its seed, so its numbers come from here and not from
//! a library whose sequence may change. Whole numbers only. This is no cryptography.

/// The golden ratio of 2^64: what `SplitMix64` counts by.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// `SplitMix64` (Steele, Lea and Flood, 2014): a counter, and a mixer that makes its values random.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any 64 bits.
    #[inline]
    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A number below `end`, which is not 0. Large ends are less than `end / 2^64` from uniform.
    #[inline]
    pub(super) const fn below(&mut self, end: u64) -> u64 {
        ((self.next() as u128 * end as u128) >> 64) as u64
    }

    /// True once in so many times: `millionths` of a million.
    #[inline]
    pub(super) const fn chance(&mut self, millionths: u64) -> bool {
        self.below(1_000_000) < millionths
    }
}

/// The mixer of `SplitMix64`: every bit of the result depends on every bit of `value`.
#[inline]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A random permutation of the numbers below `count`, which takes no memory.
///
/// Four rounds of a Feistel network over the next power of two; a result that is too large is
/// permuted again until it is not, which keeps it a permutation.
#[derive(Debug, Clone)]
pub(super) struct Permutation {
    count: u64,
    left_bits: u32,
    right_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// A permutation of `0..count`; `count` is not 0.
    pub(super) fn new(count: u64, random: &mut Random) -> Self {
        let bits = u64::BITS - (count - 1).leading_zeros();
        let left_bits = bits / 2;
        let keys = std::array::from_fn(|_| random.next());
        Self { count, left_bits, right_bits: bits - left_bits, keys }
    }

    /// How many numbers it permutes.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Where `index` goes; it is below the count, and so is the result.
    #[inline]
    pub(super) fn at(&self, index: u64) -> u64 {
        let mut value = index;
        loop {
            value = self.once(value);
            if value < self.count {
                return value;
            }
        }
    }

    fn once(&self, value: u64) -> u64 {
        let low = |bits: u32| if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
        let (mut left_bits, mut right_bits) = (self.left_bits, self.right_bits);
        let (mut left, mut right) = (value >> right_bits, value & low(right_bits));
        for key in self.keys {
            (left, right) = (right, (left ^ mix(right ^ key)) & low(left_bits));
            (left_bits, right_bits) = (right_bits, left_bits);
        }
        left << right_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first outputs of SplitMix64 for seed 1234567, as its authors' C code prints them.
        let mut random = Random::new(1_234_567);
        let first: [u64; 3] = std::array::from_fn(|_| random.next());
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_permutation_reaches_every_number_once() {
        for count in [1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097] {
            let permutation = Permutation::new(count, &mut Random::new(count));
            let mut seen: Vec<u64> = (0..count).map(|index| permutation.at(index)).collect();
            if count > 60 {
                assert!(!seen.is_sorted(), "{count}");
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..count), "{count}");
        }
    }

    #[test]
    fn the_largest_permutation_stays_in_range() {
        let permutation = Permutation::new(u64::MAX, &mut Random::new(1));
        for index in [0, 1, u64::MAX - 2, u64::MAX - 1] {
            assert!(permutation.at(index) < u64::MAX);
        }
    }

    #[test]
    fn numbers_below_an_end_reach_both_ends() {
        let mut random = Random::new(3);
        let drawn: Vec<u64> = (0..1000).map(|_| random.below(10)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&0), Some(&9)));
    }
}
