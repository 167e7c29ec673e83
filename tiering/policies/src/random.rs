//! Random numbers of the simulator: the same on every machine and in every version.
//!
//! The one idea: `SplitMix64` (Steele, Lea and Flood, 2014), one stream for each purpose, so that a
//! source that is switched on does not change what another one draws. What needs a logarithm or a
//! power takes it from `libm`, never from the platform. This is no cryptography.

pub(crate) use pagelab_trace::synth::mix;

/// The golden ratio of 2^64: what `SplitMix64` counts by.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream `name` of a seed; streams do not follow from each other.
    pub(crate) fn stream(seed: u64, name: u64) -> Self {
        Self(mix(seed ^ mix(name.wrapping_add(GAMMA))))
    }

    /// Any 64 bits.
    #[inline]
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A number below `end`, which is not 0.
    #[inline]
    pub(crate) const fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * end as u64) >> 32) as u32
    }

    /// From 0 to below 1, in steps of 2^-53.
    #[inline]
    pub(crate) const fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// True with this probability.
    #[inline]
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// True unless a count that is this much on average, and by chance, is none.
    ///
    /// It is what [`Self::chance`] says of `1 - exp(-mean)`, and mostly without the exponential: a
    /// number that is below what that is at least, or above what it is at most, has its answer.
    #[inline]
    pub(crate) fn any_of(&mut self, mean: f64) -> bool {
        // Far above what rounding makes of either side.
        const NEAR: f64 = 1e-9;
        if mean < NEAR {
            return self.chance(1.0 - libm::exp(-mean));
        }
        let unit = self.unit();
        // The first terms of the exponential's series, and the line that touches the curve.
        let least = 1.0 - 1.0 / (1.0 + mean * (1.0 + mean * (0.5 + mean * (1.0 / 6.0))));
        if unit < least - NEAR {
            return true;
        }
        unit < mean + NEAR && unit < 1.0 - libm::exp(-mean)
    }

    /// Exponentially distributed with mean 1.
    #[inline]
    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// Shuffles, by Fisher and Yates.
    pub(crate) fn shuffle(&mut self, items: &mut [u32]) {
        for last in (1..items.len()).rev() {
            let end = u32::try_from(last + 1).unwrap_or(u32::MAX);
            items.swap(last, self.below(end) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |seed, name| {
            let mut random = Random::stream(seed, name);
            [random.next(), random.next()]
        };
        assert_eq!(draw(1, 1), draw(1, 1));
        assert_ne!(draw(1, 1), draw(1, 2));
        assert_ne!(draw(1, 1), draw(2, 1));
    }

    #[test]
    fn the_mixer_is_the_published_one() {
        // The first output of SplitMix64 for seed 1234567, as its authors' C code prints it.
        let mut random = Random(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
    }

    #[test]
    fn an_exponential_has_mean_and_variance_one() {
        let mut random = Random::stream(7, 0);
        let drawn: Vec<f64> = (0..100_000).map(|_| random.exponential()).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        let square = drawn.iter().map(|value| value * value).sum::<f64>() / 1e5;
        // Five standard deviations of the mean of 100,000: 1/316 and sqrt(20)/316.
        assert!((mean - 1.0).abs() < 0.016, "{mean}");
        assert!((square - 2.0).abs() < 0.071, "{square}");
    }

    #[test]
    fn whether_there_is_any_is_the_chance_of_one_minus_an_exponential() {
        let (mut quick, mut slow) = (Random::stream(9, 0), Random::stream(9, 0));
        for step in 0..200_000 {
            let mean = f64::from(step % 1000) * 1e-3 * f64::from(step % 50).powi(2) * 1e-2;
            let expected = slow.chance(1.0 - libm::exp(-mean));
            assert_eq!(quick.any_of(mean), expected, "{mean}");
        }
        assert_eq!(quick.next(), slow.next());
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..1000).collect();
        Random::stream(3, 0).shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.into_iter().eq(0..1000));
    }
}
