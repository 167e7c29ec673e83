//! Random numbers that a seed repeats.
//!
//! The one idea: each session has a generator of its own, made from the seed and its number, so
//! that what one session draws does not depend on how long another took.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// A stream of numbers (`SplitMix64`).
#[derive(Debug, Clone)]
pub(super) struct Draw(u64);

impl Draw {
    /// The stream of a session.
    pub(super) fn of(seed: u64, session: u64) -> Self {
        let mut draw = Self(seed ^ session.wrapping_mul(0xd134_2543_de82_ef95));
        draw.next();
        draw
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, which is above 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        // Less than 2^-32 from even for every `end` there is here.
        usize::try_from(self.next() % end as u64).unwrap_or(0)
    }

    /// True once in `n` times.
    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A moment of a span.
    pub(super) fn moment(&mut self, span: Duration) -> Duration {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        span.mul_f64(share)
    }

    /// Brings a list into another order.
    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.below(end + 1));
        }
    }
}

/// A seed that nobody chose.
pub(super) fn any_seed() -> u64 {
    RandomState::new().build_hasher().finish() % 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_numbers_and_a_session_has_its_own() {
        let numbers = |seed, session| {
            let mut draw = Draw::of(seed, session);
            [draw.below(1000), draw.below(1000), draw.below(1000)]
        };
        assert_eq!(numbers(7, 1), numbers(7, 1));
        assert_ne!(numbers(7, 1), numbers(7, 2));
        assert_ne!(numbers(7, 1), numbers(8, 1));
    }

    #[test]
    fn moments_fall_into_every_part_of_a_span() {
        let mut draw = Draw::of(1, 1);
        let mut tenths = [0; 10];
        for _ in 0..1000 {
            let moment = draw.moment(Duration::from_secs(10));
            tenths[usize::try_from(moment.as_secs()).unwrap()] += 1;
        }
        assert!(tenths.iter().all(|count| *count > 50), "{tenths:?}");
    }

    #[test]
    fn a_list_is_shuffled_whole() {
        let mut list: Vec<_> = (0..60).collect();
        Draw::of(3, 0).shuffle(&mut list);
        assert_ne!(list, (0..60).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..60).collect::<Vec<_>>());
    }
}
